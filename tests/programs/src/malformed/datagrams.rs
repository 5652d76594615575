//! Malformed datagrams: at the TFTP server on loopback, and at the control unit on its CAN bus over UDP.

use super::{Run, Watch, damaged, in_own_network, maybe_damaged};
use quaject_test_support::HANG_TIMEOUT;
use quaject_test_support::random::Random;
use std::collections::VecDeque;
use std::fs;
use std::net::{Ipv4Addr, UdpSocket};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// The number of packets after which the program must have read all: fewer than a socket's buffer holds.
const BATCH: u64 = 100;

/// The bytes that are queued at the UDP sockets of this network namespace, without those of the test.
fn waiting(own: &[u16]) -> u64 {
    let table = fs::read_to_string("/proc/thread-self/net/udp").expect("every Linux has it");
    let sockets = table.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
    let of_others = sockets.filter(|fields| {
        let port = fields[1].split(':').nth(1).and_then(|port| u16::from_str_radix(port, 16).ok());
        port.is_none_or(|port| !own.contains(&port))
    });
    of_others
        .map(|fields| fields[4].split(':').nth(1).map_or(0, |size| u64::from_str_radix(size, 16).unwrap_or(0)))
        .sum()
}

fn is_open(port: u16) -> bool {
    let table = fs::read_to_string("/proc/thread-self/net/udp").expect("every Linux has it");
    table.contains(&format!(":{port:04X} "))
}

const SERVER: u16 = 69;
const RRQ: u8 = 1;
const WRQ: u8 = 2;
const DATA: u8 = 3;
const ACK: u8 = 4;
const ERROR: u8 = 5;
const OACK: u8 = 6;

/// Turns after which a client gives up; it retransmits in each.
const PATIENT: u32 = 30;

/// A client that mostly follows the protocol.
struct Client {
    socket: UdpSocket,
    /// The port of its transfer.
    transfer: Option<u16>,
    /// The last packet received, if it is unanswered.
    last: Vec<u8>,
    /// Turns without a packet.
    silent: u32,
}

impl Client {
    fn new() -> Client {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("there are ports");
        socket.set_nonblocking(true).expect("sockets can be");
        Client { socket, transfer: None, last: Vec::new(), silent: 0 }
    }

    /// Handles received packets; whether a file is complete.
    fn listen(&mut self) -> bool {
        let (mut buffer, mut ended) = ([0; 2048], false);
        self.silent += 1;
        while let Ok((length, from)) = self.socket.recv_from(&mut buffer) {
            // Possibly an earlier transfer, which an error packet ends.
            if self.transfer.is_some_and(|port| port != from.port()) {
                if buffer[1] != ERROR {
                    let _ = self.socket.send_to(b"\0\x05\0\x05stranger\0", from);
                }
                continue;
            }
            self.silent = 0;
            self.transfer = Some(from.port());
            self.last = buffer[..length].to_vec();
            ended |= buffer[1] == DATA && length < 4 + 512;
        }
        ended
    }

    /// The next packet, possibly damaged, and its port.
    fn next(&mut self, random: &mut Random) -> (u16, Vec<u8>) {
        let given_up = self.transfer.is_some() && self.silent >= PATIENT;
        let (port, packet) = self.next_whole(random);
        // A missing packet would make the server wait for seconds, and all other clients with it.
        (port, if given_up { packet } else { maybe_damaged(random, packet, 5) })
    }

    fn next_whole(&mut self, random: &mut Random) -> (u16, Vec<u8>) {
        let (Some(port), true) = (self.transfer, self.silent < PATIENT) else {
            // An error ends a transfer that makes no progress.
            return match self.transfer.take() {
                Some(port) => (port, b"\0\x05\0\0enough\0".to_vec()),
                None => {
                    self.silent = 0;
                    (SERVER, request(random))
                }
            };
        };
        let block = [self.last.get(2).copied().unwrap_or(0), self.last.get(3).copied().unwrap_or(0)];
        let next = u16::from_be_bytes(block).wrapping_add(1).to_be_bytes();
        let said = match self.last.get(1) {
            Some(&DATA) => vec![0, ACK, block[0], block[1]],
            Some(&ACK) => data(random, next),
            Some(&OACK) if random.below(2) == 0 => vec![0, ACK, 0, 0],
            Some(&OACK) => data(random, [0, 1]),
            _ => {
                self.transfer = None;
                return (SERVER, request(random));
            }
        };
        (port, said)
    }
}

fn data(random: &mut Random, block: [u8; 2]) -> Vec<u8> {
    let size = [512, 512, 512, 0, 1, 511, 513, 1_428, 1_429][random.below(9) as usize];
    [&[0, DATA, block[0], block[1]][..], &vec![b'x'; size]].concat()
}

fn request(random: &mut Random) -> Vec<u8> {
    let operation = [RRQ, RRQ, RRQ, WRQ, WRQ, random.byte()][random.below(6) as usize];
    let new = format!("new{}", random.below(100));
    let files = ["0", "1", "512", "5000", "missing", "../outside", "/etc/passwd", "", ".", "a\u{e9}"];
    let name = if operation == WRQ { new.as_str() } else { files[random.below(10) as usize] };
    let mode = ["octet", "octet", "octet", "OcTeT", "netascii", "mail", ""][random.below(7) as usize];
    let size = ["8", "512", "1428", "65464", "65465", "0", "-1", "99999999999999999999", ""][random.below(9) as usize];
    let options = match random.below(4) {
        0 => format!("blksize\0{size}\0"),
        1 => format!("tsize\x000\0BLKSIZE\0{size}\0timeout\x001\0"),
        _ => String::new(),
    };
    [&[0, operation][..], format!("{name}\0{mode}\0{options}").as_bytes()].concat()
}

#[test]
fn tftp() {
    in_own_network();
    let outside = tempfile::tempdir().expect("a temporary folder");
    let folder = outside.path().join("files");
    fs::create_dir(&folder).expect("the folder is writable");
    fs::write(outside.path().join("outside"), "not to be seen").expect("the folder is writable");
    for size in [0, 1, 512, 5_000] {
        fs::write(folder.join(size.to_string()), vec![b'f'; size]).expect("the folder is writable");
    }
    let mut run = Run::start(&folder, "examples/tftp/server.esp", &[], Stdio::null(), Stdio::null());
    run.wait_until(|| is_open(SERVER));
    let mut watch = Watch::over("tftp", &run.process);
    let mut random = Random(11);
    let mut clients: Vec<Client> = (0..16).map(|_| Client::new()).collect();
    let own: Vec<u16> = clients.iter().map(|client| client.socket.local_addr().expect("it is bound").port()).collect();
    let (mut ended, mut turn) = (0_u64, 0_usize);
    loop {
        let mut sent = 0;
        for _ in 0..BATCH {
            turn += 1;
            let transfers: Vec<u16> = clients.iter().filter_map(|client| client.transfer).collect();
            let number = turn % clients.len();
            let client = &mut clients[number];
            ended += u64::from(client.listen());
            let (mut port, packet) = client.next(&mut random);
            // Sometimes to the transfer of another client.
            if random.below(16) == 0 && packet.get(1) != Some(&ERROR) && !transfers.is_empty() {
                port = transfers[random.below(transfers.len() as u64) as usize];
            }
            // The system may have no buffer, or refuse port 0.
            sent += u64::from(client.socket.send_to(&packet, (Ipv4Addr::LOCALHOST, port)).is_ok());
        }
        watch.wait_until("taking them", || waiting(&own) == 0);
        if turn % 100_000 < BATCH as usize {
            sweep(&folder);
        }
        if !watch.goes_on(sent) {
            break;
        }
    }
    // Transfers without a client end at their timeout.
    for turn in 0..160 {
        let client = &mut clients[turn % 16];
        client.listen();
        if let Some(port) = client.transfer {
            let _ = client.socket.send_to(b"\0\x05\0\0good bye\0", (Ipv4Addr::LOCALHOST, port));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let begun = Instant::now();
    while get(b"\0\x015000\0octet\0") != vec![b'f'; 5_000] {
        assert!(begun.elapsed() < HANG_TIMEOUT, "tftp: no file any more");
    }
    sweep(&folder);
    let entries = fs::read_dir(outside.path()).expect("it is ours").count();
    assert_eq!(entries, 2, "tftp: it has written outside of its folder");
    assert!(ended > watch.sent / 1_000, "tftp: {ended} files only come to their end");
    watch.end(&format!("{ended} files read to their end"));
    let lost = run.stop();
    assert!(lost * 100 <= watch.sent, "tftp: {lost} of {} packets did not reach it", watch.sent);
}

/// Removes uploaded files from the folder.
fn sweep(folder: &std::path::Path) {
    for entry in fs::read_dir(folder).expect("it is ours").flatten() {
        if !["0", "1", "512", "5000"].map(|name| name.into()).contains(&entry.file_name()) {
            fs::remove_file(entry.path()).expect("it is a file");
        }
    }
}

/// A download in progress.
fn get(request: &[u8]) -> Vec<u8> {
    let client = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("there are ports");
    client.set_read_timeout(Some(Duration::from_secs(1))).expect("the time is not zero");
    client.send_to(request, (Ipv4Addr::LOCALHOST, SERVER)).expect("the server listens");
    let (mut file, mut buffer, mut block) = (Vec::new(), [0; 2048], 1_u16);
    while let Ok((length, from)) = client.recv_from(&mut buffer) {
        if buffer[1] == ERROR {
            break;
        }
        client.send_to(&[0, ACK, buffer[2], buffer[3]], from).expect("the server listens");
        if buffer[2..4] == block.to_be_bytes() {
            block += 1;
            file.extend(&buffer[4..length]);
            if length < 4 + 512 {
                break;
            }
        }
    }
    file
}

const BUS: u16 = 43_113;
const GROUP: Ipv4Addr = Ipv4Addr::new(239, 74, 163, 2);
const UNIT: u32 = 0x7e0;
const FUNCTIONAL: u32 = 0x7df;
const TESTER: u32 = 0x7e8;

/// A frame in the form of python-can (MessagePack).
fn packed(id: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x86];
    let mut field = |name: &str, value: &[u8]| {
        bytes.push(0xa0 | name.len() as u8);
        bytes.extend(name.as_bytes());
        bytes.extend(value);
    };
    field("arbitration_id", &[&[0xce][..], &id.to_be_bytes()].concat());
    field("is_extended_id", &[if id > 0x7ff { 0xc3 } else { 0xc2 }]);
    field("is_remote_frame", &[0xc2]);
    field("is_error_frame", &[0xc2]);
    field("dlc", &[data.len() as u8]);
    field("data", &[&[0xc4, data.len() as u8][..], data].concat());
    bytes
}

/// The frames of a message (ISO 15765-2).
fn segmented(message: &[u8]) -> Vec<Vec<u8>> {
    if message.len() <= 7 {
        return vec![[&[message.len() as u8][..], message].concat()];
    }
    let mut frames = vec![[&(0x1000 | message.len() as u16).to_be_bytes()[..], &message[..6]].concat()];
    for (number, piece) in message[6..].chunks(7).enumerate() {
        frames.push([&[0x20 | (number as u8 + 1) & 15][..], piece].concat());
    }
    frames
}

fn request_of_tester(random: &mut Random) -> Vec<u8> {
    // The routine runs for seconds, in which the unit accepts no requests.
    if random.below(50_000) == 0 {
        return b"\x31\x01\xff\x00".to_vec();
    }
    let known: [&[u8]; 14] = [
        b"\x10\x01",
        b"\x10\x03",
        b"\x3e\x00",
        b"\x3e\x80",
        b"\x22\xf1\x90",
        b"\x22\xf1\x86\xf1\x8c",
        b"\x22\xf1\x90\xf1\x90\xf1\x90\xf1\x90",
        b"\x27\x01",
        b"\x27\x02\0\0\0\0",
        b"\x31\x01\x02\x03",
        b"\x31\x02\x02\x03",
        b"\x31\x03\x02\x03",
        b"\x31\x02\xff\x00",
        b"\x85\x01",
    ];
    match random.below(16) {
        number @ 0..14 => known[number as usize].to_vec(),
        14 => [&[0x22][..], &b"\xf1\x90".repeat(random.below(200) as usize)].concat(),
        _ => (0..random.below(300)).map(|_| random.byte()).collect(),
    }
}

/// The key of a seed, by the unit's secret.
fn key(seed: [u8; 4]) -> [u8; 4] {
    (u32::from_be_bytes(seed) ^ 0x5eed_c0de).wrapping_mul(0x0101_0101).rotate_left(7).to_be_bytes()
}

#[test]
fn uds() {
    in_own_network();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut run = Run::start(folder.path(), "examples/uds/server.esp", &[], Stdio::null(), Stdio::null());
    run.wait_until(|| is_open(BUS));
    let mut watch = Watch::over("uds", &run.process);
    let bus = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("there are ports");
    let own = bus.local_addr().expect("it is bound").port();
    let mut ear = Ear::open();
    let mut random = Random(13);
    let (mut frames, mut answers) = (VecDeque::new(), 0_u64);
    loop {
        for _ in 0..BATCH {
            if frames.is_empty() || random.below(100) == 0 {
                frames = segmented(&request_of_tester(&mut random)).into();
            }
            // A long message arrives only if few of its frames are damaged.
            let frame = match random.below(24) {
                // Continue, wait, overflow, and invalid values.
                0 => {
                    vec![0x30 | random.below(4) as u8, random.below(9) as u8, [0, 0, 0, 0xf1][random.below(4) as usize]]
                }
                1 => (0..random.below(9)).map(|_| random.byte()).collect(),
                _ => frames.pop_front().unwrap_or_default(),
            };
            let mut frame = maybe_damaged(&mut random, frame, 24);
            frame.truncate(if random.below(200) == 0 { 64 } else { 8 });
            // The unit respects the requested separation time; long ones slow it down.
            if frame.len() > 2 && frame[0] >> 4 == 3 && random.below(20) > 0 {
                frame[2] = [0, 1, 0xf1][random.below(3) as usize];
            }
            let id = match random.below(60) {
                0 => 0x7e1,
                1 => TESTER,
                2 => 0x1234_5678,
                3..7 => FUNCTIONAL,
                _ => UNIT,
            };
            let mut datagram = packed(id, &frame);
            if random.below(50) == 0 {
                datagram = damaged(&mut random, datagram);
            }
            bus.send_to(&datagram, (GROUP, BUS)).expect("the bus is there");
        }
        watch.wait_until("taking them", || {
            answers += ear.answer(&bus);
            waiting(&[own]) == 0
        });
        if !watch.goes_on(BATCH) {
            break;
        }
    }
    let begun = Instant::now();
    loop {
        bus.send_to(&packed(UNIT, b"\x02\x3e\x00"), (GROUP, BUS)).expect("the bus is there");
        std::thread::sleep(Duration::from_millis(100));
        if ear.frames().iter().any(|frame| frame.starts_with(b"\x02\x7e\x00")) {
            break;
        }
        assert!(begun.elapsed() < HANG_TIMEOUT, "uds: no answer any more");
    }
    assert!(answers > watch.sent / 200, "uds: {answers} answers only");
    // Every kind of service has been answered.
    let reached = [0x7f, 0x50, 0x62, 0x67, 0x71, 0x7e].map(|service| ear.services[service]);
    assert!(reached.iter().all(|count| *count > 0) || watch.sent < 20_000, "uds: {reached:?}");
    watch.end(&format!("{answers} frames of answers; of each service {reached:?}"));
    let lost = run.stop();
    assert!(lost * 100 <= watch.sent, "uds: {lost} of {} frames did not reach it", watch.sent);
}

/// The receiver of the bus.
struct Ear {
    bus: UdpSocket,
    /// Answers, by their first byte.
    services: [u64; 256],
}

impl Ear {
    fn open() -> Ear {
        use rustix::net::{AddressFamily, SocketType, bind, socket, sockopt};
        let ear = socket(AddressFamily::INET, SocketType::DGRAM, None).expect("there are sockets");
        sockopt::set_socket_reuseaddr(&ear, true).expect("sockets can be");
        bind(&ear, &std::net::SocketAddrV4::new(GROUP, BUS)).expect("the port may be shared");
        let ear = UdpSocket::from(ear);
        ear.join_multicast_v4(&GROUP, &Ipv4Addr::LOCALHOST).expect("the interface is up");
        ear.set_nonblocking(true).expect("sockets can be");
        Ear { bus: ear, services: [0; 256] }
    }

    /// The frames received of the unit.
    fn frames(&self) -> Vec<Vec<u8>> {
        let (mut frames, mut buffer) = (Vec::new(), [0; 2048]);
        let sent_by_unit = [&b"arbitration_id\xcd"[..], &(TESTER as u16).to_be_bytes()].concat();
        while let Ok(length) = self.bus.recv(&mut buffer) {
            let datagram = &buffer[..length];
            if !datagram.windows(sent_by_unit.len()).any(|bytes| bytes == sent_by_unit) {
                continue;
            }
            let data = datagram.windows(6).position(|bytes| bytes == b"data\xc4\x08");
            frames.extend(data.and_then(|at| datagram.get(at + 6..at + 14)).map(<[u8]>::to_vec));
        }
        frames
    }

    /// Handles received frames, and sends flow control as a tester does: without it the unit waits for seconds. Returns
    /// the number of frames.
    fn answer(&mut self, bus: &UdpSocket) -> u64 {
        let frames = self.frames();
        for frame in &frames {
            match frame[0] >> 4 {
                0 => self.services[usize::from(frame[1])] += 1,
                1 => self.services[usize::from(frame[2])] += 1,
                _ => {}
            }
            let said = match frame[..] {
                [0x06, 0x67, 0x01, a, b, c, d, _] => [&b"\x06\x27\x02"[..], &key([a, b, c, d])].concat(),
                [head, ..] if head >> 4 == 1 => vec![0x30, 0, 0],
                _ => continue,
            };
            bus.send_to(&packed(UNIT, &said), (GROUP, BUS)).expect("the bus is there");
        }
        frames.len() as u64
    }
}
