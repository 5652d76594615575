//! Random packets from both sides, whole, damaged, cut short, quoted in errors: whatever comes out is compared with
//! what came in. The expected checksum is computed in full, whereas the router updates it incrementally.

use super::{engines, folder};
use crate::repository;
use crate::tcpip::{checksum, damage};
use quaject_test_support::Effort;
use quaject_test_support::qj::qj_binary;
use quaject_test_support::random::Random;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::process::Command;

pub(crate) const PUBLIC: u32 = 0xcb00_7101;
pub(crate) const GATEWAY: u32 = 0xcb00_71fe;
pub(crate) const HOSTS: [u32; 2] = [0x0a4e_0002, 0x0a4e_0003];
const PEERS: [u32; 3] = [0xc633_6401, GATEWAY, 0x0808_0808];
pub(crate) const ICMP: u8 = 1;
pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;
pub(crate) const SYN: u8 = 2;
const ACK: u8 = 16;
/// Packets are numbered in steps of this, so that no damage makes one number of another; and its inverse.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
const STEPS: u64 = 0xf1de_83e1_9937_733d;

/// A host's port and a peer's.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Flow {
    pub(crate) protocol: u8,
    pub(crate) host: u32,
    pub(crate) port: u16,
    pub(crate) peer: u32,
    pub(crate) peer_port: u16,
}

/// Which port outside belongs to a host's.
type Ports = HashMap<(u8, u32, u16), u16>;

pub(crate) fn any_flow(random: &mut Random) -> Flow {
    let protocol = [ICMP, TCP, UDP][random.below(3) as usize];
    Flow {
        protocol,
        host: HOSTS[random.below(2) as usize],
        port: 1_000 + random.below(3) as u16,
        peer: PEERS[random.below(3) as usize],
        peer_port: if protocol == ICMP { 0 } else { 9 + random.below(2) as u16 },
    }
}

pub(crate) fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

pub(crate) fn long(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Where the content of a packet begins.
pub(crate) fn content(packet: &[u8]) -> usize {
    4 * usize::from(packet[0] & 15)
}

fn sum_at(packet: &[u8]) -> usize {
    content(packet) + if packet[9] == TCP { 16 } else { 6 - 4 * usize::from(packet[9] == ICMP) }
}

/// Whether the checksum of the content is right.
fn is_whole(packet: &[u8]) -> bool {
    content_sum(packet) == [0, 0]
}

fn content_sum(packet: &[u8]) -> [u8; 2] {
    let content = &packet[content(packet)..];
    if packet[9] == ICMP {
        return checksum(&[content]);
    }
    checksum(&[&packet[12..20], &[0, packet[9]], &(content.len() as u16).to_be_bytes(), content])
}

/// A packet of these contents, with its checksums.
fn packet(from: u32, to: u32, protocol: u8, content: &[u8]) -> Vec<u8> {
    let length = (20 + content.len()) as u16;
    let mut packet = [&[0x45, 0][..], &length.to_be_bytes(), &[0, 0, 0, 0, 64, protocol, 0, 0]].concat();
    packet.extend([from.to_be_bytes(), to.to_be_bytes()].concat());
    packet.extend(content);
    let at = sum_at(&packet);
    let sum = content_sum(&packet);
    packet[at..at + 2].copy_from_slice(&sum);
    with_header_sum(packet)
}

fn with_header_sum(mut packet: Vec<u8>) -> Vec<u8> {
    packet[10..12].fill(0);
    let sum = checksum(&[&packet[..20]]);
    packet[10..12].copy_from_slice(&sum);
    packet
}

/// Whether the packet goes from the first of two ends to the second.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Out,
    In,
}

/// What is said between a host, by whichever address and port, and a peer; it ends with eight bytes of its own.
pub(crate) fn said(way: Way, flow: Flow, flags: u8, own: u64) -> Vec<u8> {
    let (from, to, from_port, to_port) = match way {
        Way::Out => (flow.host, flow.peer, flow.port, flow.peer_port),
        Way::In => (flow.peer, flow.host, flow.peer_port, flow.port),
    };
    let mut head = [from_port.to_be_bytes(), to_port.to_be_bytes()].concat();
    match flow.protocol {
        TCP => head.extend([&[0; 8][..], &[0x50, flags, 1, 0, 0, 0, 0, 0]].concat()),
        UDP => head.extend([0, 18, 0, 0, 0, 0]),
        _ => head = [&[if way == Way::Out { 8 } else { 0 }, 0, 0, 0][..], &flow.port.to_be_bytes(), &[0; 4]].concat(),
    }
    head.extend(own.wrapping_mul(STEP).to_be_bytes());
    packet(from, to, flow.protocol, &head)
}

/// One packet of a flow. Outside, a host is its port there.
pub(crate) fn any_packet(random: &mut Random, way: Way, flow: Flow, own: u64) -> Vec<u8> {
    let flags = [SYN, SYN, ACK, SYN | ACK, ACK | 1, 4][random.below(6) as usize];
    let mut packet = match random.below(10) {
        // A packet from the other side has reached no host.
        0 => {
            let other = if way == Way::Out { Way::In } else { Way::Out };
            let quoted = said(other, flow, flags, own);
            let quoted = if random.below(2) == 0 {
                quoted
            } else {
                [&quoted[..28], &own.wrapping_mul(STEP).to_be_bytes()].concat()
            };
            let (from, to) = if way == Way::Out { (flow.host, flow.peer) } else { (PEERS[1], flow.host) };
            self::packet(from, to, ICMP, &[&[3, 3, 0, 0, 0, 0, 0, 0][..], &quoted].concat())
        }
        1 if flow.protocol == UDP => {
            let mut packet = said(way, flow, 0, own);
            packet[26..28].fill(0);
            packet
        }
        _ => said(way, flow, flags, own),
    };
    if random.below(20) == 0 {
        damage(random, &mut packet, 0, 1);
        if random.below(2) == 0 {
            packet = with_header_sum(packet);
        }
    }
    packet
}

/// A datagram whose sum is nothing at all when it has been changed, which may not be sent.
fn zero_sum(flow: Flow, port: u16, own: u64) -> Vec<u8> {
    let mut changed = said(Way::Out, Flow { host: PUBLIC, port, ..flow }, 0, own);
    let sum = [changed[26], changed[27]];
    changed[28..30].copy_from_slice(&sum);
    changed[26..28].fill(0);
    assert_eq!(content_sum(&changed), [0, 0]);
    let mut original = said(Way::Out, flow, 0, own);
    original[28..30].copy_from_slice(&sum);
    original[26..28].fill(0);
    let sum = content_sum(&original);
    original[26..28].copy_from_slice(&sum);
    original
}

pub(crate) fn frame(to: u8, from: u8, kind: u16, content: &[u8]) -> Vec<u8> {
    [&[2, 0, 0, 0, 0, to][..], &[2, 0, 0, 0, 1, from], &kind.to_be_bytes(), content].concat()
}

/// An ARP request.
pub(crate) fn arp_request(to: u8, sender: u32, target: u32) -> Vec<u8> {
    let start = [0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 1, sender as u8];
    frame(to, sender as u8, 0x0806, &[&start[..], &sender.to_be_bytes(), &[0; 6], &target.to_be_bytes()].concat())
}

/// The bytes of a line that holds a literal.
fn bytes_of(line: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = line.trim().trim_start_matches('"').bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'"' => break,
            b'\\' => match rest.next().expect("an escape") {
                b'n' => b'\n',
                b'r' => b'\r',
                b't' => b'\t',
                b'0' => 0,
                b'x' => {
                    let digits = [rest.next(), rest.next()].map(|digit| digit.expect("a digit") as char);
                    u8::from_str_radix(&String::from_iter(digits), 16).expect("two digits")
                }
                other => other,
            },
            byte => byte,
        });
    }
    bytes
}

/// Another source or target, in a packet or in one that it quotes.
fn put(packet: &mut [u8], target: bool, address: u32, port: u16) {
    let (a, c) = (12 + 4 * usize::from(target), content(packet));
    packet[a..a + 4].copy_from_slice(&address.to_be_bytes());
    let at = c + if packet[9] == ICMP { 4 } else { 2 * usize::from(target) };
    packet[at..at + 2].copy_from_slice(&port.to_be_bytes());
}

fn quotes(packet: &[u8]) -> bool {
    packet[9] == ICMP && matches!(packet[content(packet)], 3 | 11 | 12)
}

/// Whether a packet is a fragment without ports: those of its first fragment decide.
fn is_later_fragment(packet: &[u8]) -> bool {
    word(packet, 6) & 0x1fff != 0
}

/// Asserts that a packet is another one that has been changed as it should be.
fn assert_changed(before: &[u8], after: &[u8], target: bool, address: u32, port: u16) {
    let mut expected = before.to_vec();
    expected[8] -= 1;
    let c = content(before);
    if word(before, 6) & 0x3fff != 0 {
        // Of two hosts' packets, fragments may have the same identification: the router gives them another one.
        expected[4..6].copy_from_slice(&after[4..6]);
    }
    let mut parts = vec![0];
    if quotes(before) {
        let a = 12 + 4 * usize::from(target);
        expected[a..a + 4].copy_from_slice(&address.to_be_bytes());
        put(&mut expected[c + 8..], !target, address, port);
        parts.push(c + 8);
    } else {
        put(&mut expected, target, address, port);
    }
    assert_eq!(before.len(), after.len());
    for at in parts {
        let (old, new) = (&before[at..], &after[at..]);
        let header = content(old);
        assert_eq!(checksum(&[&old[..header]]), checksum(&[&new[..header]]), "the sum of the header at {at}");
        expected[at + 10..at + 12].copy_from_slice(&new[10..12]);
        let sum = sum_at(old);
        if sum + 2 > old.len() {
            continue;
        }
        if old[9] == UDP && word(old, sum) == 0 {
            assert_eq!(word(new, sum), 0, "a datagram without a checksum gets none");
        } else if usize::from(word(old, 2)) == old.len() {
            assert_eq!(is_whole(old), is_whole(new), "the sum of the content at {at}");
            assert!(new[9] != UDP || word(new, sum) != 0);
        }
        expected[at + sum..at + sum + 2].copy_from_slice(&new[sum..sum + 2]);
    }
    assert_eq!(expected, after);
}

/// Runs the router on frames from both sides and returns the packets that leave it, inside and outside.
fn route(engine: &str, inside: &[Vec<u8>], outside: &[Vec<u8>]) -> [Vec<Vec<u8>>; 2] {
    let folder = folder(&[]);
    let write = |name: &str, frames: &[Vec<u8>]| {
        let text: String = frames.iter().map(|frame| crate::literal(frame)).collect();
        fs::write(folder.path().join(name), text).expect("the folder is writable");
    };
    write("inside", inside);
    write("outside", outside);
    let mut command = Command::new(qj_binary());
    command.env("CC", quaject_test_support::quick_compiler()).current_dir(folder.path());
    command.args(["run", "--clock", "virtual", "--engine", engine]).arg(repository("examples/nat/nat.esp"));
    let binds = ["insideInC=text:inside", "outsideInC=text:outside", "insideOutC=text:in", "outsideOutC=text:out"];
    command.args(binds.iter().flat_map(|bind| ["--bind", bind]));
    let output = command.output().expect("cargo built qj");
    assert_eq!(output.status.code(), Some(0), "engine {engine}: {}", String::from_utf8_lossy(&output.stderr));
    ["in", "out"].map(|name| {
        let text = fs::read_to_string(folder.path().join(name)).expect("the run has written it");
        let frames = text.lines().map(bytes_of);
        // Without what the router says itself.
        frames
            .filter(|frame| word(frame, 12) == 0x0800 && long(frame, 26) != 0x0a4e_0001)
            .map(|frame| frame[14..].to_vec())
            .collect()
    })
}

/// The number of a packet, or one that none has.
pub(crate) fn own(packet: &[u8]) -> usize {
    let (high, low) = (long(packet, packet.len() - 8), long(packet, packet.len() - 4));
    (u64::from(high) << 32 | u64::from(low)).wrapping_mul(STEPS) as usize
}

/// What packets that have left tell of the ports outside.
fn learn(sent: &[Vec<u8>], left: &[Vec<u8>]) -> Ports {
    let mut ports = Ports::new();
    for after in left {
        let Some(before) = sent.get(own(after)).filter(|before| !quotes(before) && before.len() >= 28) else {
            continue;
        };
        let at = content(before) + if before[9] == ICMP { 4 } else { 0 };
        let port = ports.entry((before[9], long(before, 12), word(before, at))).or_insert(word(after, at));
        assert_eq!(*port, word(after, at), "a host's port has two outside");
    }
    let different: HashSet<(u8, u16)> = ports.iter().map(|((protocol, ..), port)| (*protocol, *port)).collect();
    assert_eq!(different.len(), ports.len(), "two ports share one outside");
    ports
}

#[test]
fn only_addresses_ports_and_checksums_of_packets_change() {
    for engine in engines() {
        let count = if engine == "interp" { Effort::wanted().pick(500, 4_000, 100_000) } else { 500 };
        let seeds = Effort::wanted().pick(1, 3, 100);
        for seed in 1..=seeds {
            one_run(engine, seed, count);
        }
    }
}

fn one_run(engine: &str, seed: u64, count: usize) {
    let mut random = Random(seed);
    // The first packets open everything, undamaged.
    let mut flows: Vec<Flow> = (0..count).map(|_| any_flow(&mut random)).collect();
    flows.sort_by_key(|flow| (flow.host, flow.port, flow.peer, flow.peer_port, flow.protocol));
    flows.dedup();
    let openings = flows.len();
    flows.extend((openings..count.max(openings)).map(|_| any_flow(&mut random)));
    let mut out: Vec<Vec<u8>> = flows
        .iter()
        .enumerate()
        .map(|(own, flow)| match own < openings {
            true => said(Way::Out, *flow, SYN, own as u64),
            false => any_packet(&mut random, Way::Out, *flow, own as u64),
        })
        .collect();
    let arp_requests = |to: u8, target: u32, senders: &[u32]| {
        senders.iter().map(|sender| arp_request(to, *sender, target)).collect::<Vec<_>>()
    };
    let frames = |to: u8, packets: &[Vec<u8>]| packets.iter().map(|p| frame(to, 2, 0x0800, p)).collect::<Vec<_>>();
    let known = arp_requests(0x4e, 0x0a4e_0001, &HOSTS);
    let gateway = arp_requests(0x4f, PUBLIC, &[GATEWAY]);

    let [_, left] = route(engine, &[known.clone(), frames(0x4e, &out)].concat(), &gateway);
    let ports = learn(&out, &left);
    let public = |flow: &Flow| ports.get(&(flow.protocol, flow.host, flow.port)).copied();

    for (own, packet) in out.iter_mut().enumerate().skip(openings) {
        if flows[own].protocol == UDP && random.below(8) == 0 {
            *packet = zero_sum(flows[own], public(&flows[own]).expect("its port is open"), own as u64);
        }
    }
    let inward: Vec<Vec<u8>> = (0..count)
        .map(|own| {
            let mut flow = any_flow(&mut random);
            // Some come from a host that was not contacted, or go to a port without mapping.
            flow.peer_port += u16::from(flow.protocol != ICMP && random.below(10) == 0);
            flow.port = public(&flow).map_or(0, |port| port + u16::from(random.below(10) == 0));
            any_packet(&mut random, Way::In, Flow { host: PUBLIC, ..flow }, own as u64)
        })
        .collect();
    let [came, left] = route(
        engine,
        &[known, frames(0x4e, &out)].concat(),
        &[gateway, vec![vec![]; openings], frames(0x4f, &inward)].concat(),
    );
    assert_eq!(learn(&out, &left), ports);
    for after in &left {
        let Some(before) = out.get(own(after)).filter(|before| !is_later_fragment(before)) else { continue };
        let quoted = &before[if quotes(before) { content(before) + 8 } else { 0 }..];
        let which = usize::from(quotes(before));
        let port_at = content(quoted) + if quoted[9] == ICMP { 4 } else { 2 * which };
        let port = ports[&(quoted[9], long(quoted, 12 + 4 * which), word(quoted, port_at))];
        assert_changed(before, after, false, PUBLIC, port);
    }
    let called: HashSet<Flow> = flows.iter().copied().collect();
    for after in &came {
        let Some(before) = inward.get(own(after)).filter(|before| !is_later_fragment(before)) else { continue };
        let (error, inner) = (quotes(before), if quotes(before) { content(before) + 8 } else { 0 });
        let quoted = &after[inner..];
        let (a, c) = (if error { 12 } else { 16 }, content(quoted));
        let (host, peer) = (long(quoted, a), long(quoted, 28 - a));
        let (near, far) = match (quoted[9], error) {
            (ICMP, _) => (word(quoted, c + 4), 0),
            (_, true) => (word(quoted, c), word(quoted, c + 2)),
            (_, false) => (word(quoted, c + 2), word(quoted, c)),
        };
        let flow = Flow { protocol: quoted[9], host, port: near, peer, peer_port: far };
        assert!(called.contains(&flow), "no host has contacted the sender of {flow:?}");
        assert_changed(before, after, true, host, near);
        let at = content(&before[inner..]) + if quoted[9] == ICMP { 4 } else { 2 * usize::from(!error) };
        assert_eq!(word(&before[inner..], at), ports[&(quoted[9], host, near)]);
    }
    // Who asks too little of the router finds nothing wrong with it.
    assert!(left.len() > count * 3 / 4 && came.len() > count / 2, "{} and {} of {count}", left.len(), came.len());
}
