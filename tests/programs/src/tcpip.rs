//! IPv4, ARP, ICMP, UDP, TCP and HTTP on them (examples/tcpip) against the kernel, curl and nc in a network namespace,
//! and against damaged frames without a network.

use super::network::{HTTP, assert_output, folder, in_own_network, tools_are_there};
use super::{assert_stories, engines, repository, run};
use quaject_test_support::Effort;
use quaject_test_support::random::Random;
use std::fs;
use std::path::Path;
use std::process::Output;

pub(super) const HOST: &str = "examples/tcpip/host.esp";

/// Sizes around those of a segment, and around the buffers of a connection.
const SIZES: &[usize] = &[0, 1, 1_459, 1_460, 1_461, 11_680, 23_361, 65_536, 1_048_576];

/// The faults of real networks, frequent enough to occur in every transfer.
const BAD: &str = "--fault tap:loss=4%,dup=4%,reorder=4%,flip=1%,seed=3";

/// Runs a script in a network where the host is at 10.77.0.2, in its folder.
fn run_with_host(engine: &str, options: &str, folder: &Path, script: &str) -> Output {
    let script = format!(
        "ip link set lo up\n\
         $QJ run $HOST --engine {engine} {options} & host=$!\n\
         trap 'kill -TERM $host; wait $host; test $? = 143 || echo the host has ended' EXIT\n\
         for i in $(seq 2400); do ip link show tap0 >/dev/null 2>&1 && break; kill -0 $host || exit 1; sleep 0.05; done\n\
         ip address add 10.77.0.1/24 dev tap0 && ip link set tap0 up && patient tap0 || exit 1\n\
         {script}"
    );
    in_own_network(&script, folder, &[("HOST", HOST)])
}

#[test]
fn the_kernel_curl_and_nc_are_served() {
    if !tools_are_there() {
        return;
    }
    let folder = folder(SIZES);
    for engine in engines() {
        let script = "
            for size in 0 1471 1472; do ping -q -c 2 -i 0.1 -W 600 -s $size 10.77.0.2 | grep -o '2 received'; done
            for size in 0 1 1459 1460 1461 11680 23361 65536 1048576; do
                curl -sS -m 1200 http://10.77.0.2/$size | cmp - $size || echo $size differs
            done
            curl -sS -m 1200 -I http://10.77.0.2/1461?x | tr -d '\\r'
            for name in missing ../etc/passwd; do
                curl -s -m 1200 --path-as-is -o /dev/null -w '%{http_code}\\n' http://10.77.0.2/$name
            done
            # Ends before it has the answer.
            printf 'GET /65536 HTTP/1.0\\r\\n\\r\\n' | timeout 1200 nc -N 10.77.0.2 80 | tail -c 65536 | cmp - 65536
            printf 'what\\n\\n' | timeout 1200 nc -N 10.77.0.2 80 | head -1 | tr -d '\\r'
            # Both ways at once.
            timeout 1200 nc -N 10.77.0.2 7 < 1048576 | cmp - 1048576
            echo datagram | nc -u -w 1 10.77.0.2 7
            curl -s -m 1200 http://10.77.0.2:81/; echo refused: $?
            # More at once than there are connections.
            for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
                (curl -sS -m 1200 http://10.77.0.2/65536 | cmp - 65536 || echo $i differs) & all=\"$all $!\"
            done
            wait $all
            # Goes away while much is to come.
            for i in 1 2 3 4 5 6 7 8 9 10; do curl -s -m 0.1 --limit-rate 1000 -o /dev/null http://10.77.0.2/1048576; done
            curl -sS -m 1200 http://10.77.0.2/11680 | cmp - 11680
        ";
        let expected = "2 received\n2 received\n2 received\n\
            HTTP/1.0 200 OK\nContent-Length: 1461\n\n404\n404\n\
            HTTP/1.0 400 Bad Request\ndatagram\nrefused: 7\n";
        assert_output(&run_with_host(engine, "", folder.path(), script), expected, engine);
    }
}

#[test]
fn its_fast_path_serves_the_same_requests() {
    if !tools_are_there() {
        return;
    }
    let folder = folder(&[0, 1_461, 300_000]);
    let options = format!("--mode fastpath --fast-paths {}", repository("examples/tcpip/host.fp").display());
    // Each engine forms the path again.
    for engine in engines().into_iter().take(Effort::wanted().pick(1, 3, 3)) {
        let script = "
            for size in 0 1461 300000; do
                curl -sS -m 1200 http://10.77.0.2/$size | cmp - $size || echo $size differs
            done
            timeout 1200 nc -N 10.77.0.2 7 < 300000 | cmp - 300000
            # An address that has just expired is resolved again, which only the last of several packets waits for.
            for i in $(seq 5); do ping -q -c 20 -i 0.01 -W 60 10.77.0.2 | grep -o '20 received' && break; done
        ";
        assert_output(&run_with_host(engine, &options, folder.path(), script), "20 received\n", engine);
    }
}

#[test]
fn transfers_complete_on_a_bad_network() {
    if !tools_are_there() {
        return;
    }
    let size = Effort::wanted().pick(30_000, 200_000, 4_000_000);
    let folder = folder(&[size]);
    for engine in engines() {
        let script = format!(
            "for i in 1 2 3 4; do
                 (curl -sS -m 1200 http://10.77.0.2/{size} | cmp - {size} || echo $i differs) & all=\"$all $!\"
             done
             (timeout 1200 nc -N 10.77.0.2 7 < {size} | cmp - {size} || echo echo differs) & all=\"$all $!\"
             wait $all"
        );
        let output = run_with_host(engine, BAD, folder.path(), &script);
        assert_output(&output, "", engine);
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(complaint.contains("lost") && complaint.contains("doubled"), "{engine}: {complaint}");
    }
}

/// A network beyond the kernel forwards packets of at most 600 bytes: the host adapts its segments to the kernel's
/// reports, and the kernel fragments replies to pings, which allow it.
#[test]
fn a_path_of_small_packets_is_used() {
    if !tools_are_there() {
        return;
    }
    let folder = folder(&[1, 65_536]);
    for engine in &engines()[..Effort::wanted().pick(1, engines().len(), engines().len())] {
        let script = "
            unshare --net sleep 1000 & far=$!
            trap 'kill -TERM $host; wait $host; test $? = 143 || echo the host has ended; kill $far' EXIT
            for i in $(seq 2400); do
                [ $(readlink /proc/$far/ns/net) != $(readlink /proc/self/ns/net) ] && break; sleep 0.05
            done
            far() { nsenter --net=/proc/$far/ns/net \"$@\"; }
            ip link add near0 type veth peer name far0 && ip link set far0 netns $far || exit 1
            ip address add 192.0.2.1/24 dev near0 && ip link set near0 up || exit 1
            far ip address add 192.0.2.2/24 dev far0 && far ip link set far0 up || exit 1
            far ip route add default via 192.0.2.1 && echo 1 > /proc/sys/net/ipv4/ip_forward || exit 1
            ip route replace 192.0.2.0/24 dev near0 mtu lock 600 || exit 1
            for size in 1 65536; do far curl -sS -m 1200 http://10.77.0.2/$size | cmp - $size || echo $size differs; done
            far ping -q -c 2 -i 0.1 -W 600 -s 1400 10.77.0.2 | grep -o '2 received'
            tcpdump -nn -r host.pcap 'icmp[icmptype] = 3 and icmp[icmpcode] = 4' 2>/dev/null | grep -q 'mtu 600' && echo reported
        ";
        let output = run_with_host(engine, "--pcap host.pcap", folder.path(), script);
        assert_output(&output, "2 received\nreported\n", engine);
    }
}

/// Runs the host on these frames, the last of which is a ping; returns the frames that it sends.
fn answers(engine: &str, frames: &[Vec<u8>]) -> Vec<String> {
    let input: String = frames.iter().map(|frame| super::literal(frame)).collect();
    let binds = ["--bind", "inC=text:-", "--bind", "outC=text:-", "--bind", "secretC=bytes:/dev/zero"];
    let output = run(engine, HOST, &binds, input.as_bytes());
    assert_eq!(output.status.code(), Some(0), "{engine}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text").lines().map(str::to_owned).collect()
}

/// A packet with these ends, undamaged.
fn datagram(from: [u8; 4], to: [u8; 4], protocol: u8, content: &[u8]) -> Vec<u8> {
    let length = (20 + content.len()) as u16;
    let mut header = [&[0x45, 0][..], &length.to_be_bytes(), &[0, 0, 0, 0, 64, protocol, 0, 0], &from, &to].concat();
    let sum = checksum(&[&header]);
    header[10..12].copy_from_slice(&sum);
    [&header, content].concat()
}

/// No ICMP error answers a broadcast, in the frame, the packet or its source, nor another error (RFC 1122, 3.2.2), and
/// the echo service no other one (RFC 862 services would answer each other forever).
#[test]
fn nothing_answers_broadcasts_errors_and_other_echo_services() {
    let peer = [10, 77, 0, 1];
    let everywhere = [[10, 77, 0, 255], [10, 77, 0, 0], [255, 255, 255, 255], [0, 0, 0, 0], [224, 0, 0, 1]];
    let udp = |from: u8, to: u8| vec![0, from, 0, to, 0, 9, 0, 0, b'x'];
    let to_closed_port = datagram(peer, ADDRESS, 17, &udp(9, 9));
    let mut error = [&[3, 3, 0, 0, 0, 0, 0, 0][..], &datagram(ADDRESS, peer, 17, &udp(9, 9))].concat();
    let sum = checksum(&[&error]);
    error[2..4].copy_from_slice(&sum);

    let mut silent = vec![
        datagram(peer, ADDRESS, 17, &udp(7, 7)), // from echo to echo
        datagram(peer, ADDRESS, 1, &error),
        datagram([127, 0, 0, 1], ADDRESS, 17, &udp(9, 9)),
        datagram(ADDRESS, ADDRESS, 17, &udp(9, 7)), // from itself
    ];
    for address in everywhere {
        silent.push(datagram(address, ADDRESS, 17, &udp(9, 9)));
        silent.push(datagram(address, ADDRESS, 17, &udp(9, 7)));
        silent.push(datagram(address, ADDRESS, 1, &ping(b"all")));
        silent.push(datagram(peer, address, 17, &udp(9, 9)));
        silent.push(datagram(peer, address, 99, b"anything"));
        silent.push(datagram(peer, address, 1, &ping(b"all")));
    }
    let mut frames: Vec<Vec<u8>> = silent.iter().map(|packet| ethernet(0x0800, packet)).collect();
    for packet in [&to_closed_port, &datagram(peer, ADDRESS, 99, b"anything"), &datagram(peer, ADDRESS, 1, &ping(b"x"))]
    {
        let mut frame = ethernet(0x0800, packet);
        frame[..6].fill(0xff);
        frames.push(frame);
    }
    let known = {
        let start = [0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1];
        ethernet(0x0806, &[&start[..], &peer, &[0; 6], &ADDRESS].concat())
    };
    let last = ethernet(0x0800, &datagram(peer, ADDRESS, 1, &ping(b"still there?")));
    for engine in engines() {
        let said = answers(engine, &[std::slice::from_ref(&known), &frames[..], std::slice::from_ref(&last)].concat());
        assert!(said.len() == 2 && said[1].contains("still there?"), "{engine}: {said:#?}");
        // What is sent to this host alone is answered.
        let few = [
            known.clone(),
            ethernet(0x0800, &to_closed_port),
            ethernet(0x0800, &datagram(peer, ADDRESS, 17, &udp(9, 7))),
            last.clone(),
        ];
        assert_eq!(answers(engine, &few).len(), 4, "{engine}");
    }
}

/// Regressions: each program of the folder shows an error of an earlier version.
#[test]
fn a_connection_respects_the_window_and_releases_its_application() {
    assert_stories("tests/programs/src/tcpip");
}

/// Requests for connections from hosts that are not there, as fast as they can be written.
const FLOOD: &str = r#"
layout ethernet { to: 48, from: 48, kind: 16 }
channel outC: bytes[<=54] external in = "packet:tap0";
const IP = "E\0\0(\0\0\0\0@\x06\0\0";
process flood {
  var random: u64 = 1;
  for i in 0..20000 {
    random = random * 6364136223846793005 + 1442695040888963407;
    var f: #bytes[<=54] = #"";
    f.len = 54;
    f.ethernet[0].to = 0x020000000002;
    f.ethernet[0].from = 0x020000000099;
    f.ethernet[0].kind = 0x0800;
    f[14..26] = IP;
    f.be32[26] = 0x0a4d0010 + u32(random >> 40) % 200;
    f.be32[30] = 0x0a4d0002;
    f.be16[34] = u16(random >> 48);
    f.be16[36] = i % 2 == 0 ? 80 : 7;
    f.be32[38] = u32(random >> 30);
    f[46] = 0x50;
    f[47] = 2;
    f.be16[48] = 1000;
    f.be16[24] = sum(freeze(f), 14, 34, 0);
    f.be16[50] = sum(freeze(f), 26, 54, 6 + 20);
    out(outC, freeze(f));
  }
}
fn sum(f: bytes[<=54], first: int, end: int, more: u32) -> u16 {
  var total = more;
  for i in 0..(end - first) / 2 { total += f.be16[first + 2 * i]; }
  total = (total >> 16) + (total & 0xffff);
  return ~u16((total >> 16) + total);
}
"#;

#[test]
fn the_host_survives_a_syn_flood() {
    if !tools_are_there() {
        return;
    }
    let folder = folder(&[1_461]);
    fs::write(folder.path().join("flood.esp"), FLOOD).expect("the folder is writable");
    // Half-open connections are dropped after seven seconds.
    for engine in &engines()[..Effort::wanted().pick(1, engines().len(), engines().len())] {
        let script = "
            $QJ run flood.esp || echo no flood
            ping -q -c 2 -i 0.1 -W 600 10.77.0.2 | grep -o '2 received'
            curl -sS -m 1200 http://10.77.0.2/1461 | cmp - 1461
        ";
        assert_output(&run_with_host(engine, "", folder.path(), script), "2 received\n", engine);
    }
}

/// A client that sends much to the echo service, reads nothing and resets the connection. The echo service, of which
/// there are four instances, once kept waiting to send the rest.
#[test]
fn an_echo_service_drops_the_data_of_a_reset_connection() {
    if !tools_are_there() {
        return;
    }
    let folder = folder(&[1_461, 1_048_576]);
    for engine in &engines()[..Effort::wanted().pick(1, engines().len(), engines().len())] {
        let script = "
            for i in 1 2 3 4 5 6; do (timeout -s KILL 1 nc 10.77.0.2 7 < 1048576 | sleep 1.2) & all=\"$all $!\"; done
            wait $all
            timeout 1200 nc -N 10.77.0.2 7 < 1461 | cmp - 1461 && echo served
        ";
        assert_output(&run_with_host(engine, "", folder.path(), script), "served\n", engine);
    }
}

/// The HTTP program on the kernel's TCP gives the same answers.
#[test]
fn http_gives_the_same_answers_on_the_kernels_tcp() {
    if !tools_are_there() {
        return;
    }
    let folder = folder(SIZES);
    for engine in engines() {
        let script = format!(
            "ip link set lo up\n\
             $QJ run $HTTP --engine {engine} & server=$!\n\
             trap 'kill $server; wait' EXIT\n\
             for i in $(seq 600); do nc -z 127.0.0.1 8080 && break; sleep 0.05; done\n\
             for size in 0 1461 1048576; do curl -sS -m 1200 http://127.0.0.1:8080/$size | cmp - $size || exit 1; done\n\
             curl -sS -m 1200 http://127.0.0.1:8080/%31%34%361 | cmp - 1461 || exit 1\n\
             curl -s -m 1200 -o /dev/null -w '%{{http_code}}' http://127.0.0.1:8080/missing\n"
        );
        let output = in_own_network(&script, folder.path(), &[("HTTP", HTTP)]);
        assert_output(&output, "404", engine);
    }
}

pub(super) const OURS: [u8; 6] = [2, 0, 0, 0, 0, 2];
pub(super) const ADDRESS: [u8; 4] = [10, 77, 0, 2];
pub(super) const FIN: u8 = 1;
pub(super) const SYN: u8 = 2;
pub(super) const RST: u8 = 4;
pub(super) const ACK: u8 = 16;

/// The Internet checksum (RFC 1071) of parts of even length, but for the last.
pub(super) fn checksum(parts: &[&[u8]]) -> [u8; 2] {
    let bytes = parts.concat();
    let sum: u64 =
        bytes.chunks(2).map(|pair| u64::from(pair[0]) << 8 | pair.get(1).map_or(0, |byte| u64::from(*byte))).sum();
    let folded = (0..4).fold(sum, |sum, _| (sum >> 16) + (sum & 0xffff));
    (!(folded as u16)).to_be_bytes()
}

/// Flips bits anywhere from `first` on, once in `rarely` times.
pub(super) fn damage(random: &mut Random, bytes: &mut [u8], first: usize, rarely: u64) {
    if random.below(rarely) == 0 && first < bytes.len() {
        for _ in 0..=random.below(3) {
            let at = first + random.below((bytes.len() - first) as u64) as usize;
            bytes[at] = if random.below(2) == 0 { random.byte() } else { bytes[at] ^ 1 << random.below(8) };
        }
    }
}

pub(super) fn ethernet(kind: u16, content: &[u8]) -> Vec<u8> {
    [&OURS[..], &[2, 0, 0, 0, 0, 1], &kind.to_be_bytes(), content].concat()
}

pub(super) fn ip(random: &mut Random, from: [u8; 4], protocol: u8, content: &[u8]) -> Vec<u8> {
    let length = (20 + content.len()) as u16;
    let mut header =
        [&[0x45, 0][..], &length.to_be_bytes(), &[0, 0, 0, 0, 64, protocol, 0, 0], &from, &ADDRESS].concat();
    damage(random, &mut header, 0, 30);
    header[10..12].fill(0);
    let sum = checksum(&[&header]);
    header[10..12].copy_from_slice(&sum);
    ethernet(0x0800, &[header, content.to_vec()].concat())
}

/// UDP or TCP, its checksum at this place.
pub(super) fn with_sum(from: [u8; 4], protocol: u8, mut content: Vec<u8>, at: usize) -> Vec<u8> {
    content[at..at + 2].fill(0);
    let sum = checksum(&[&from, &ADDRESS, &[0, protocol], &(content.len() as u16).to_be_bytes(), &content]);
    content[at..at + 2].copy_from_slice(&sum);
    content
}

/// The initial sequence number of a connection, with a key of zeros, at time 0 (RFC 6528).
#[expect(deprecated, reason = "the one SipHash-2-4 of the standard library")]
fn first_number(from: [u8; 4], port: u16, local: u16) -> u32 {
    use std::hash::Hasher;
    let mut hasher = std::hash::SipHasher::new_with_keys(0, 0);
    let flow = u64::from(u32::from_be_bytes(from)) << 32 | u64::from(port) << 16 | u64::from(local);
    hasher.write(&flow.to_le_bytes());
    hasher.finish() as u32
}

/// A peer that knows the sequence numbers of its connection and sends random segments, mostly in a valid order.
struct Peer {
    address: [u8; 4],
    port: u16,
    local: u16,
    open: bool,
    seq: u32,
}

impl Peer {
    /// A random peer of the host.
    fn number(n: usize) -> Peer {
        Peer {
            address: [10, 77, 0, [1, 3, 9][n % 3]],
            port: 1_000 + n as u16 / 6,
            local: [80, 7, 80, 81][n % 4],
            open: false,
            seq: 0,
        }
    }

    fn segment(&mut self, random: &mut Random) -> Vec<u8> {
        let (mut flags, mut data, mut options, mut seq) = (ACK, Vec::new(), Vec::new(), self.seq);
        // Acknowledgements that fit an answer: its header, segments, all of it, the end.
        let acked = [1, 1, 42, 578, 1_114, 1_502, 5_042, 5_043][random.below(8) as usize];
        let first = first_number(self.address, self.port, self.local);
        let mut ack = first.wrapping_add(acked);
        let action = if self.open { random.below(24) } else { 0 };
        match action {
            0 => {
                seq = random.next() as u32;
                flags = SYN;
                let known =
                    [vec![2, 4, 5, 180], vec![1, 3, 0], vec![2, 2, 255, 255], vec![8, 200, 0, 0], vec![2, 4, 0, 0]];
                options = known[random.below(5) as usize].clone();
                self.seq = seq.wrapping_add(1);
                self.open = true;
            }
            1..=8 => {}
            9..=13 => data = b"GET /f HTTP/1.0\r\n\r\n".to_vec(),
            14..=16 => data = vec![b'x'; random.below(1_461) as usize],
            17 => flags |= FIN,
            18 => {
                flags = RST;
                self.open = false;
            }
            19 => flags = random.byte(),
            _ => {
                seq = seq.wrapping_add(random.below(6_000) as u32).wrapping_sub(3_000);
                ack = ack.wrapping_add(random.below(6_000) as u32).wrapping_sub(3_000);
                data = vec![b'y'; random.below(100) as usize];
            }
        }
        if matches!(action, 9..=17) {
            self.seq = seq.wrapping_add(data.len() as u32 + u32::from(flags & FIN));
            if random.below(8) == 0 {
                seq = seq.wrapping_add(100); // early
            }
        }
        let window: u16 = [0, 1, 500, 8_000, 65_535, 65_535][random.below(6) as usize];
        options.resize(options.len().next_multiple_of(4), 0);
        let words = (5 + options.len() / 4) as u8;
        let mut segment = [
            &self.port.to_be_bytes()[..],
            &self.local.to_be_bytes(),
            &seq.to_be_bytes(),
            &ack.to_be_bytes(),
            &[words << 4, flags],
            &window.to_be_bytes(),
            &[0, 0, 0, 0],
            &options,
            &data,
        ]
        .concat();
        damage(random, &mut segment, 12, 30);
        let segment = with_sum(self.address, 6, segment, 16);
        ip(random, self.address, 6, &segment)
    }
}

pub(super) fn arp_question(random: &mut Random, address: [u8; 4]) -> Vec<u8> {
    let operation = 1 + random.below(2) as u8;
    let start = [0, 1, 8, 0, 6, 4, 0, operation, 2, 0, 0, 0, 0, 1];
    ethernet(0x0806, &[&start[..], &address, &[0; 6], &ADDRESS].concat())
}

pub(super) fn ping(content: &[u8]) -> Vec<u8> {
    let mut message = [&[8, 0, 0, 0, 0, 1, 0, 1][..], content].concat();
    let sum = checksum(&[&message]);
    message[2..4].copy_from_slice(&sum);
    message
}

/// A frame of ARP, ICMP, UDP, or of an unknown protocol.
pub(super) fn non_tcp_frame(random: &mut Random, from: [u8; 4]) -> Vec<u8> {
    match random.below(4) {
        0 => arp_question(random, from),
        1 => ip(random, from, 1, &ping(b"who")),
        2 => {
            let local = [0, 7, 7, 9][random.below(4) as usize];
            let mut datagram = vec![3, random.byte(), 0, local, 0, 12, 0, 0, 1, 2, 3, 4];
            damage(random, &mut datagram, 0, 4);
            ip(random, from, 17, &with_sum(from, 17, datagram, 6))
        }
        _ => {
            let protocol = random.byte();
            ip(random, from, protocol, b"anything")
        }
    }
}

/// A frame, possibly damaged.
fn frame(random: &mut Random, peers: &mut [Peer]) -> Vec<u8> {
    let which = random.below(peers.len() as u64) as usize;
    let from = peers[which].address;
    let mut frame = match random.below(5) {
        0 => non_tcp_frame(random, from),
        _ => peers[which].segment(random),
    };
    damage(random, &mut frame, 0, 30);
    if random.below(30) == 0 {
        frame.truncate(random.below(frame.len() as u64 + 1) as usize);
    }
    frame
}

#[test]
fn the_host_survives_random_frames() {
    let folder = folder(&[]);
    fs::write(folder.path().join("f"), vec![b'f'; 5_000]).expect("the folder is writable");
    fs::write(folder.path().join("secret"), [0; 16]).expect("the folder is writable");
    let path = folder.path().display();
    let binds = [
        "inC=text:-".to_owned(),
        "outC=text:-".to_owned(),
        format!("fileC=file:{path}"),
        format!("fileReplyC=file:{path}"),
        format!("secretC=bytes:{path}/secret"),
    ];
    let arguments: Vec<&str> = binds.iter().flat_map(|bind| ["--bind", bind]).collect();
    for engine in engines() {
        // A desynchronised connection stays so until its timeout: many short runs find more than few long ones.
        let seeds =
            if engine == "interp" { Effort::wanted().pick(4, 30, 10_000) } else { Effort::wanted().pick(2, 2, 100) };
        let mut served = 0;
        for seed in 1..=seeds {
            let mut random = Random(seed);
            let mut peers: Vec<Peer> = (0..24).map(Peer::number).collect();
            let mut frames: Vec<Vec<u8>> = (0..1_000).map(|_| frame(&mut random, &mut peers)).collect();
            let address = peers[0].address;
            frames.push(arp_question(&mut Random(1), address));
            frames.push(ip(&mut Random(7), address, 1, &ping(b"still there?")));
            let input: String = frames.iter().map(|frame| super::literal(frame)).collect();
            let output = run(engine, HOST, &arguments, input.as_bytes());
            let what = format!("engine {engine}, seed {seed}");
            assert_eq!(output.status.code(), Some(0), "{what}: {}", String::from_utf8_lossy(&output.stderr));
            let said = String::from_utf8(output.stdout).expect("text");
            served += said.matches("200 OK").count();
            assert!(said.contains("still there?"), "{what}: no answer to a ping");
        }
        assert!(served > 0, "engine {engine}: no connection comes far enough to be worth the effort");
    }
}
