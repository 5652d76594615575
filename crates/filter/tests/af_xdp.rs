//! Frames by AF_XDP are the frames that were sent: every length, in order, as AF_PACKET and libpcap's file would have
//! them, and classified alike. Between two interfaces in a network namespace of the test's own.
#![cfg(all(feature = "af-xdp", feature = "fuzz", target_os = "linux"))]

use quaject_filter::af_xdp::AfXdp;
use quaject_filter::fuzz::{Random, filters};
use quaject_filter::{Classifier, Engine, Packet};
use quaject_test_support::{HANG_TIMEOUT, tool};
use std::io;
use std::iter::repeat_n;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::process::Command;
use std::time::Instant;

/// Runs `ip` with these arguments in the thread's network; whether it did what it was to do.
fn ip(arguments: &str) -> bool {
    Command::new("ip").args(arguments.split(' ')).status().is_ok_and(|status| status.success())
}

/// A network of this thread's own with two ends of a wire, `left` and `right`; none where that is not permitted.
fn wire(mtu: u32) -> Option<()> {
    tool(&["ip"])?;
    // SAFETY: no pointers are passed; only this thread is concerned.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
        eprintln!("SKIPPED a test: no network of its own: {}", io::Error::last_os_error());
        return None;
    }
    // Else the system greets its neighbours, and the test would count that.
    let _ = std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
    let made = ip(&format!("link add left mtu {mtu} type veth peer name right mtu {mtu}"))
        && ip("link set left addrgenmode none")
        && ip("link set right addrgenmode none")
        && ip("link set left up")
        && ip("link set right up");
    if !made {
        eprintln!("SKIPPED a test: this kernel has no virtual wires");
    }
    made.then_some(())
}

/// Takes frames by AF_XDP; none where the kernel has no such thing, or does not permit it.
fn open(name: &str) -> Option<AfXdp> {
    match AfXdp::open(name) {
        Ok(opened) => Some(opened),
        Err(error) => {
            let promised = std::env::var("CI").as_deref() == Ok("true");
            assert!(!promised, "{error}; {}", error.help());
            eprintln!("SKIPPED a test: {error}; {}", error.help());
            None
        }
    }
}

/// A socket that sees and sends whole frames.
struct Raw(OwnedFd);

impl Raw {
    fn open(name: &str) -> Raw {
        let every = (libc::ETH_P_ALL as u16).to_be();
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK;
        // SAFETY: no pointers are passed.
        let socket = unsafe { libc::socket(libc::AF_PACKET, kind, i32::from(every)) };
        assert!(socket >= 0, "a user that may create networks may listen to them");
        // SAFETY: the descriptor is new, and has no other owner.
        let socket = unsafe { OwnedFd::from_raw_fd(socket) };
        let name = std::ffi::CString::new(name).expect("a name");
        // SAFETY: plain data, for which zeros are a value; the name ends with zero.
        let (mut address, index) =
            unsafe { (std::mem::zeroed::<libc::sockaddr_ll>(), libc::if_nametoindex(name.as_ptr())) };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = every;
        address.sll_ifindex = index as i32;
        let length = size_of_val(&address) as libc::socklen_t;
        // SAFETY: the address is one of `length` bytes.
        let status = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) };
        assert_eq!(status, 0, "{}", io::Error::last_os_error());
        Raw(socket)
    }

    fn send(&self, frame: &[u8]) {
        // SAFETY: pointer and length are those of a slice.
        let sent = unsafe { libc::send(self.0.as_raw_fd(), frame.as_ptr().cast(), frame.len(), 0) };
        assert_eq!(sent, frame.len() as isize, "{}", io::Error::last_os_error());
    }

    fn receive(&self) -> Option<Vec<u8>> {
        let mut room = vec![0; 1 << 16];
        // SAFETY: pointer and length are those of a vector.
        let length = unsafe { libc::recv(self.0.as_raw_fd(), room.as_mut_ptr().cast(), room.len(), 0) };
        room.truncate(usize::try_from(length).ok()?);
        Some(room)
    }
}

/// Whether a descriptor becomes ready.
fn is_ready(descriptor: &impl AsFd, patience_ms: i32) -> bool {
    let mut entry = libc::pollfd { fd: descriptor.as_fd().as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one entry, as is said.
    unsafe { libc::poll(&mut entry, 1, patience_ms) > 0 }
}

/// The next frame, which has been sent.
fn next(xdp: &mut AfXdp) -> Vec<u8> {
    loop {
        if let Some(frame) = xdp.next_frame().expect("the interface is up") {
            return frame.data.to_vec();
        }
        assert!(is_ready(xdp, 5_000), "a frame was sent");
    }
}

/// A frame with random content, of a protocol without a receiver.
fn frame(random: &mut Random, length: usize) -> Vec<u8> {
    let mut frame: Vec<u8> = (0..length).map(|_| random.next() as u8).collect();
    frame[..6].copy_from_slice(&[2, 0, 0, 0, 0, 9]);
    frame[12..14].copy_from_slice(&[0x88, 0xb5]);
    frame
}

/// Sends frames of these lengths and compares what comes with what AF_PACKET gives of as many before, byte by byte and
/// by the filters that match.
fn compare(xdp: &str, lengths: &[usize]) {
    let from = Raw::open("left");
    let mut random = Random::new(lengths.len() as u64);
    let frames: Vec<Vec<u8>> = lengths.iter().map(|length| frame(&mut random, *length)).collect();
    let listener = Raw::open(xdp);
    let mut by_packet = Vec::new();
    for frame in &frames {
        from.send(frame);
        assert!(is_ready(&listener.0, 5_000), "AF_PACKET has it");
        by_packet.push(listener.receive().expect("it is ready"));
    }
    let Some(mut own) = open(xdp) else { return };
    let sets: Vec<_> = (0..4).map(filters).collect();
    let classify = |engine| {
        sets.iter()
            .map(|filters| {
                let classifier = Classifier::with_engine(engine);
                classifier.insert_all(filters.iter().map(|filter| (filter, 0))).expect("random filters are valid");
                classifier
            })
            .collect::<Vec<_>>()
    };
    let (code, interpreter) = (classify(Engine::Code), classify(Engine::Interpreter));
    for (frame, reference) in frames.iter().zip(&by_packet) {
        from.send(frame);
        let got = next(&mut own);
        assert_eq!(got.len(), reference.len(), "in length");
        assert!(got == *reference && got == *frame, "{} bytes: differs in content", frame.len());
        for (code, interpreter) in code.iter().zip(&interpreter) {
            let of_frame = code.reader().classify(Packet::new(&got));
            assert_eq!(of_frame, interpreter.reader().classify(Packet::new(reference)));
        }
    }
    assert_eq!(own.lost(), 0);
    assert!(own.next_frame().expect("it is up").is_none(), "no more than was sent");
    println!("{} frames, by the driver: {}", frames.len(), own.is_in_driver());
}

#[test]
fn frames_of_every_length_come_as_they_were_sent() {
    if wire(1500).is_none() {
        return;
    }
    let lengths: Vec<usize> = (14..=1514).collect();
    compare("right", &lengths);
}

#[test]
fn frames_longer_than_a_page_come_whole() {
    if wire(9000).is_none() {
        return;
    }
    let lengths: Vec<usize> = [60, 1514, 3000, 9014, 60]
        .into_iter()
        .chain(3580..3600)
        .chain(3830..3850)
        .chain(4080..4110)
        // Several times around all chunks.
        .chain(repeat_n(9014, 5_000))
        .collect();
    compare("right", &lengths);
}

#[test]
fn many_queues_are_one_interface() {
    if wire(1500).is_none() {
        return;
    }
    let steps = [
        "link del left",
        "link add left numtxqueues 4 type veth peer name right numrxqueues 4 numtxqueues 4",
        "link set left addrgenmode none",
        "link set right addrgenmode none",
        "link set left up",
        "link set right up",
    ];
    assert!(steps.into_iter().all(ip), "as in `wire`");
    compare("right", &[60; 300]);
}

#[test]
fn more_frames_than_there_is_room_for_are_counted_and_what_was_kept_is_whole() {
    if wire(1500).is_none() {
        return;
    }
    let Some(mut own) = open("right") else { return };
    let from = Raw::open("left");
    let mut random = Random::new(3);
    // Around all rings and chunks several times.
    let mut sent = 0_u32;
    for _ in 0..6 {
        let mut burst = Vec::new();
        for _ in 0..3_000 {
            let mut frame = frame(&mut random, 64);
            frame[14..18].copy_from_slice(&sent.to_be_bytes());
            from.send(&frame);
            burst.push(frame);
            sent += 1;
        }
        for frame in burst {
            assert_eq!(next(&mut own), frame);
        }
    }
    assert_eq!(own.lost(), 0, "they were taken in time");
    let flood = 20_000_u32;
    for number in 0..flood {
        let mut frame = frame(&mut random, 64);
        frame[14..18].copy_from_slice(&number.to_be_bytes());
        from.send(&frame);
    }
    let mut kept = 0_u32;
    let mut last = None;
    while is_ready(&own, 300) {
        while let Some(frame) = own.next_frame().expect("it is up") {
            let number = u32::from_be_bytes(frame.data[14..18].try_into().expect("four bytes"));
            assert!(last.is_none_or(|last| last < number), "in order");
            last = Some(number);
            kept += 1;
        }
    }
    assert!(own.lost() > 0, "there is not room for all");
    assert_eq!(u64::from(kept) + own.lost(), u64::from(flood));
}

/// Whether a program is on an interface.
fn has_program(name: &str) -> bool {
    let output = Command::new("ip").args(["link", "show", "dev", name]).output().expect("it was there before");
    String::from_utf8_lossy(&output.stdout).contains("prog/xdp")
}

#[test]
fn the_system_has_its_packets_again_afterwards() {
    if wire(1500).is_none() {
        return;
    }
    let Some(own) = open("right") else { return };
    assert!(has_program("right"));
    let second = AfXdp::open("right").expect_err("it is taken");
    assert!(second.to_string().contains("busy"), "{second}");
    assert!(second.help().contains("another"), "{}", second.help());
    drop(own);
    // A process that another test starts has all descriptors until it becomes another program, and the kernel takes its
    // time.
    let start = Instant::now();
    while has_program("right") {
        assert!(start.elapsed() < HANG_TIMEOUT, "the program goes with its descriptor");
    }
    let (from, to) = (Raw::open("left"), Raw::open("right"));
    from.send(&frame(&mut Random::new(1), 60));
    assert!(is_ready(&to.0, 5_000));
    assert!(open("right").is_some(), "it can be taken again");
}

#[test]
fn an_interface_that_cannot_be_used_is_an_error_with_a_remedy() {
    if wire(1500).is_none() {
        return;
    }
    let Some(mut own) = open("right") else { return };
    for absent in ["nosuch0", "any", "", "a-name-that-is-far-too-long", "a\0b"] {
        let error = AfXdp::open(absent).expect_err("there is none");
        assert_eq!(error.to_string(), "cannot find the interface: No such device (os error 19)");
        assert!(error.help().contains("ip link"), "{}", error.help());
    }
    if ip("tuntap add plain mode tun") && ip("link set plain up") {
        let error = AfXdp::open("plain").expect_err("no Ethernet");
        assert_eq!(error.to_string(), "it is no Ethernet interface");
    }
    // What had arrived is delivered before the end is reported.
    Raw::open("left").send(&frame(&mut Random::new(1), 60));
    assert!(is_ready(&own, 5_000));
    assert!(ip("link del left"), "with it its peer goes");
    assert_eq!(next(&mut own).len(), 60);
    assert!(is_ready(&own, 5_000), "the removal of an interface wakes a waiter");
    let error = loop {
        match own.next_frame() {
            Ok(None) => assert!(is_ready(&own, 5_000)),
            Ok(Some(_)) => panic!("nothing more was sent"),
            Err(error) => break error,
        }
    };
    assert_eq!(error.to_string(), "the interface was removed");
}

#[test]
fn an_interface_that_goes_down_ends_it() {
    if wire(1500).is_none() {
        return;
    }
    let Some(mut own) = open("right") else { return };
    assert!(ip("link set right down"));
    assert!(is_ready(&own, 5_000));
    let error = loop {
        match own.next_frame() {
            Ok(_) => assert!(is_ready(&own, 5_000)),
            Err(error) => break error,
        }
    };
    assert_eq!(error.to_string(), "the interface went down");
    let error = AfXdp::open("right").expect_err("it is down");
    assert!(error.to_string().ends_with("Network is down (os error 100)"), "{error}");
}

#[test]
fn missing_privileges_are_an_error_that_names_them() {
    if wire(1500).is_none() || open("right").is_none() {
        return;
    }
    // Each thread has user ids of its own; the user 65534 has no capabilities.
    // SAFETY: no pointers are passed; called like this, only this thread is concerned.
    let status = unsafe { libc::syscall(libc::SYS_setresuid, 65534, 65534, 65534) };
    assert_eq!(status, 0);
    let error = AfXdp::open("right").expect_err("it has no rights");
    assert!(error.to_string().ends_with("Operation not permitted (os error 1)"), "{error}");
    assert!(error.help().contains("cap_net_admin"), "{}", error.help());
}
