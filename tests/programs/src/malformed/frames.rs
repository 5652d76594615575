//! Frames at TAP interfaces: the TCP/IP host, and the router between two networks. The kernel has no address there, so
//! that all frames are those of the test.

use super::tcp::{self, Answers, Peer};
use super::{Run, Watch, in_own_network, maybe_damaged};
use crate::nat::packets as nat;
use crate::network::folder;
use crate::tcpip;
use nix::ifaddrs::getifaddrs;
use nix::sys::socket::{self, AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType};
use quaject_test_support::HANG_TIMEOUT;
use quaject_test_support::random::Random;
use std::collections::VecDeque;
use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The number of frames after which the program must have read all: fewer than the queue of an interface.
const BATCH: u64 = 200;

/// The number of TCP frames after which the answers of the host are read.
const ROUND: u64 = 40;

/// The kernel's side of an interface.
struct Wire {
    name: &'static str,
    socket: OwnedFd,
    /// The count of frames at the start that the program had read or that were dropped, and of those sent since.
    before: u64,
    sent: u64,
}

impl Wire {
    /// The interface that a program creates.
    fn open(run: &mut Run, name: &'static str) -> Wire {
        run.wait_until(|| {
            Command::new("ip")
                .args(["link", "set", name, "up"])
                .stderr(Stdio::null())
                .status()
                .is_ok_and(|s| s.success())
        });
        let interfaces = getifaddrs().expect("there are interfaces");
        let address = interfaces
            .filter(|interface| interface.interface_name == name)
            .find_map(|interface| interface.address.as_ref().and_then(|address| address.as_link_addr()).copied());
        let address = address.expect("an interface of Ethernet has an address");
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let socket = socket::socket(AddressFamily::Packet, SockType::Raw, flags, SockProtocol::EthAll)
            .expect("the network is ours");
        socket::bind(socket.as_raw_fd(), &address).expect("the interface is there");
        let mut wire = Wire { name, socket, before: 0, sent: 0 };
        wire.before = wire.read_or_dropped();
        wire
    }

    /// The number of frames that the program has read or that were dropped.
    fn read_or_dropped(&self) -> u64 {
        let table = fs::read_to_string("/proc/thread-self/net/dev").expect("every Linux has it");
        let line = table.lines().find_map(|line| line.trim_start().strip_prefix(self.name)?.strip_prefix(':'));
        let counts: Vec<u64> = line.unwrap_or("").split_whitespace().filter_map(|count| count.parse().ok()).collect();
        // The kernel's transmissions are the program's receptions.
        counts.get(9).copied().unwrap_or(0) + counts.get(11).copied().unwrap_or(0)
    }

    /// Sends a frame; whether the kernel accepts it.
    fn send(&mut self, frame: &[u8]) -> bool {
        let sent = socket::send(self.socket.as_raw_fd(), frame, MsgFlags::empty()).is_ok();
        self.sent += u64::from(sent);
        sent
    }

    fn receive(&self, buffer: &mut [u8]) -> Option<usize> {
        socket::recv(self.socket.as_raw_fd(), buffer, MsgFlags::empty()).ok()
    }

    fn is_taken(&self) -> bool {
        self.read_or_dropped() >= self.before + self.sent
    }
}

#[test]
fn tcpip() {
    in_own_network();
    let folder = folder(&[]);
    fs::write(folder.path().join("f"), vec![b'f'; 5_000]).expect("the folder is writable");
    let mut run = Run::start(folder.path(), tcpip::HOST, &[], Stdio::null(), Stdio::null());
    let mut wire = Wire::open(&mut run, "tap0");
    let mut watch = Watch::over("tcpip", &run.process);
    let mut random = Random(17);
    let mut peers = tcp::all();
    let mut answers = Answers::default();
    let mut inside = 0;
    loop {
        let mut sent = 0;
        // Peers receive answers of the host after two or three segments of theirs.
        for _ in 0..ROUND {
            let peer = &mut peers[tcp::turn(&mut random)];
            let is_inside = peer.is_inside();
            let (frame, kind) = match random.below(16) {
                0 => (tcpip::non_tcp_frame(&mut random, peer.address), false),
                1 => (tcpip::arp_question(&mut random, peer.address), false),
                _ => (peer.frame(&mut random), is_inside),
            };
            let frame = maybe_damaged(&mut random, frame, 16);
            let taken = u64::from(wire.send(&frame));
            sent += taken;
            inside += taken * u64::from(kind);
        }
        watch.wait_until("taking them", || wire.is_taken());
        listen(&wire, &mut peers, &mut answers);
        if !watch.goes_on(sent) {
            break;
        }
    }
    let sent = watch.sent;
    let begun = Instant::now();
    let address = peers[0].address;
    let mut answered = false;
    while !answered {
        assert!(begun.elapsed() < HANG_TIMEOUT, "tcpip: no answer to a ping");
        wire.send(&tcpip::arp_question(&mut Random(1), address));
        wire.send(&tcpip::ip(&mut Random(7), address, 1, &tcpip::ping(b"still there?")));
        std::thread::sleep(Duration::from_millis(100));
        let mut buffer = [0; 2048];
        while let Some(length) = wire.receive(&mut buffer) {
            answered |= buffer[..length].ends_with(b"still there?");
        }
    }
    // The kernel's TCP is served as well, once connections are free.
    let script = format!(
        "ip address add 10.77.0.1/24 dev {}; for i in 1 2 3 4 5 6 7 8 9 10 11 12; do \
         curl -sS -m 10 http://10.77.0.2/f && exit; sleep 5; done",
        wire.name
    );
    let output = Command::new("sh").args(["-c", &script]).output().expect("every machine has it");
    assert_eq!(output.stdout, vec![b'f'; 5_000], "tcpip: {}", String::from_utf8_lossy(&output.stderr));
    watch.end(&format!("{inside} into open connections; answers: {answers}"));
    answers.suffice(sent);
    assert!(inside > sent / 2, "tcpip: {inside} of {sent} packets meet an open connection");
    run.stop();
}

/// Reads the frames of the host: peers learn its sequence numbers.
fn listen(wire: &Wire, peers: &mut [Peer], answers: &mut Answers) {
    let mut buffer = [0; 2048];
    while let Some(length) = wire.receive(&mut buffer) {
        if let Some(segment) = answers.count(&buffer[..length]) {
            for peer in peers.iter_mut().filter(|peer| peer.is(&segment)) {
                peer.hear(&segment);
            }
        }
    }
}

#[test]
fn nat() {
    in_own_network();
    let folder = folder(&[]);
    let mut run = Run::start(folder.path(), "examples/nat/nat.esp", &[], Stdio::null(), Stdio::null());
    let mut inside = Wire::open(&mut run, "nat0");
    let mut outside = Wire::open(&mut run, "nat1");
    let mut watch = Watch::over("nat", &run.process);
    let mut random = Random(19);
    // The recent mappings of the router: inside address and outside port.
    let mut known: VecDeque<nat::Flow> = VecDeque::new();
    let (mut number, mut out, mut inward) = (0, 0_u64, 0_u64);
    loop {
        let mut sent = 0;
        for _ in 0..BATCH {
            number += 1;
            let outward = random.below(2) == 0;
            let frame = match (random.below(40), outward) {
                (0, true) => nat::arp_request(0x4e, nat::HOSTS[random.below(2) as usize], 0x0a4e_0001),
                (0, false) => nat::arp_request(0x4f, nat::GATEWAY, nat::PUBLIC),
                (_, true) => {
                    let mut flow = nat::any_flow(&mut random);
                    // Sometimes a port scan, which evicts mappings and sessions.
                    if random.below(8) == 0 {
                        flow.port = random.next() as u16;
                        flow.peer_port = random.next() as u16;
                    }
                    let packet = nat::any_packet(&mut random, nat::Way::Out, flow, number);
                    nat::frame(0x4e, 2, 0x0800, &packet)
                }
                (_, false) => {
                    let flow = match known.get(random.below(64) as usize) {
                        Some(flow) => *flow,
                        None => nat::Flow { host: nat::PUBLIC, ..nat::any_flow(&mut random) },
                    };
                    nat::frame(0x4f, 2, 0x0800, &nat::any_packet(&mut random, nat::Way::In, flow, number))
                }
            };
            let frame = maybe_damaged(&mut random, frame, 12);
            sent += u64::from(if outward { inside.send(&frame) } else { outside.send(&frame) });
        }
        watch.wait_until("taking them", || inside.is_taken() && outside.is_taken());
        let mut buffer = [0; 2048];
        while let Some(length) = outside.receive(&mut buffer) {
            if let Some(flow) = flow_outside(&buffer[..length]) {
                out += 1;
                known.truncate(63);
                known.push_front(flow);
            }
        }
        while let Some(length) = inside.receive(&mut buffer) {
            inward += u64::from(length > 34 && buffer[12..14] == [8, 0] && nat::long(&buffer, 26) != 0x0a4e_0001);
        }
        if !watch.goes_on(sent) {
            break;
        }
    }
    assert!(out.min(inward) > watch.sent / 20, "nat: {out} packets out and {inward} in only");
    let begun = Instant::now();
    let flow = nat::Flow { protocol: nat::TCP, host: nat::HOSTS[0], port: 1_000, peer: 0x0808_0808, peer_port: 9 };
    let mut passed = false;
    while !passed {
        assert!(begun.elapsed() < HANG_TIMEOUT, "nat: packets do not pass any more");
        outside.send(&nat::arp_request(0x4f, nat::GATEWAY, nat::PUBLIC));
        std::thread::sleep(Duration::from_millis(10));
        let packet = nat::said(nat::Way::Out, flow, nat::SYN, 77_777_777);
        inside.send(&nat::frame(0x4e, 2, 0x0800, &packet));
        std::thread::sleep(Duration::from_millis(100));
        let mut buffer = [0; 2048];
        while let Some(length) = outside.receive(&mut buffer) {
            passed |= length >= 60 && nat::own(&buffer[14..length]) == 77_777_777;
        }
    }
    watch.end(&format!("{out} packets passed out, {inward} in"));
    run.stop();
}

/// The sender of a packet that the router has forwarded.
fn flow_outside(frame: &[u8]) -> Option<nat::Flow> {
    let packet = frame.get(14..).filter(|packet| packet.len() >= 28 && frame[12..14] == [8, 0] && packet[0] == 0x45)?;
    let protocol = packet[9];
    let (port, peer_port) = match protocol {
        nat::ICMP if packet[20] == 8 => (nat::word(packet, 24), 0),
        nat::TCP | nat::UDP => (nat::word(packet, 20), nat::word(packet, 22)),
        _ => return None,
    };
    Some(nat::Flow { protocol, host: nat::PUBLIC, port, peer: nat::long(packet, 16), peer_port })
}
