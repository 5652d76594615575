//! Captures are read as tcpdump reads them: formats, times, lengths, link layers.

mod support;

use quaject_test_support::{Effort, Random, tool};
use std::path::Path;
use std::process::Command;
use support::Folder;

/// The order of the bytes of a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Order {
    Little,
    Big,
}

impl Order {
    fn bytes<const N: usize>(self, mut little: [u8; N]) -> [u8; N] {
        if self == Order::Big {
            little.reverse();
        }
        little
    }

    fn half(self, number: u16) -> [u8; 2] {
        self.bytes(number.to_le_bytes())
    }

    fn word(self, number: u32) -> [u8; 4] {
        self.bytes(number.to_le_bytes())
    }

    fn long(self, number: u64) -> [u8; 8] {
        self.bytes(number.to_le_bytes())
    }
}

/// Seconds, nanoseconds, length on the wire, data.
type Stamped = (u32, u32, u32, Vec<u8>);

/// The packets of a pcap file with times in nanoseconds, which tcpdump and qj write.
fn packets_of(path: &Path) -> Vec<Stamped> {
    let bytes = std::fs::read(path).unwrap_or_default();
    let Some(magic) = bytes.first_chunk::<4>() else { return Vec::new() };
    let is_big = *magic == 0xa1b2_3c4d_u32.to_be_bytes();
    assert!(is_big || *magic == 0xa1b2_3c4d_u32.to_le_bytes(), "{magic:02x?}");
    let word = |at: usize| {
        let word = bytes[at..at + 4].try_into().expect("four bytes");
        if is_big { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) }
    };
    let (mut packets, mut at) = (Vec::new(), 24);
    while at < bytes.len() {
        let length = word(at + 8) as usize;
        packets.push((word(at), word(at + 4), word(at + 12), bytes[at + 16..at + 16 + length].to_vec()));
        at += 16 + length;
    }
    packets
}

/// A pcap file of packets whose lengths on the wire are given.
fn pcap(
    order: Order,
    magic: u32,
    version: (u16, u16),
    snapshot: u32,
    link: u32,
    packets: &[(u32, Vec<u8>)],
) -> Vec<u8> {
    let mut file = order.word(magic).to_vec();
    file.extend([order.half(version.0), order.half(version.1)].concat());
    file.extend([0, 0, snapshot, link].into_iter().flat_map(|word| order.word(word)));
    for (number, (wire, data)) in packets.iter().enumerate() {
        let captured = data.len() as u32;
        let lengths = if version < (2, 3) || version.0 == 543 { [*wire, captured] } else { [captured, *wire] };
        let times = [1_700_000_000 + number as u32, 999_999];
        file.extend(times.into_iter().chain(lengths).flat_map(|word| order.word(word)));
        if magic == 0xa1b2_cd34 {
            file.extend([0; 8]);
        }
        file.extend(data);
    }
    file
}

fn block(order: Order, kind: u32, content: &[u8]) -> Vec<u8> {
    let padding = content.len().next_multiple_of(4) - content.len();
    let length = order.word((12 + content.len() + padding) as u32);
    [&order.word(kind)[..], &length, content, &vec![0; padding], &length].concat()
}

/// A pcapng file with one interface.
fn pcapng(order: Order, snapshot: u32, options: &[(u16, Vec<u8>)], packets: &[(u32, Vec<u8>)]) -> Vec<u8> {
    let section = [&order.word(0x1a2b_3c4d)[..], &order.half(1), &order.half(0), &[255; 8]].concat();
    let mut file = block(order, 0x0a0d_0d0a, &section);
    let mut interface = [&order.half(1)[..], &[0; 2], &order.word(snapshot)].concat();
    for (code, value) in options {
        interface.extend([order.half(*code), order.half(value.len() as u16)].concat());
        interface.extend(value);
        interface.resize(interface.len().next_multiple_of(4), 0);
    }
    file.extend(block(order, 1, &interface));
    for (number, (wire, data)) in packets.iter().enumerate() {
        let time = 0x0006_553f_1234_5678_u64 + number as u64;
        let captured = data.len() as u32;
        let words = [0, (time >> 32) as u32, time as u32, captured, *wire];
        let head: Vec<u8> = words.into_iter().flat_map(|word| order.word(word)).collect();
        file.extend(block(order, 6, &[&head[..], data].concat()));
        // A packet without a time, and one of the obsolete kind.
        if number == 1 {
            file.extend(block(order, 3, &[&order.word(captured)[..], data].concat()));
            let words = [(time >> 32) as u32, time as u32, captured, *wire];
            let head: Vec<u8> = words.into_iter().flat_map(|word| order.word(word)).collect();
            file.extend(block(order, 2, &[&order.half(0)[..], &order.half(7), &head, data].concat()));
        }
    }
    file
}

fn samples() -> Vec<(u32, Vec<u8>)> {
    [(60, 60), (1500, 33), (14, 14), (64, 64)].map(|(wire, captured)| (wire, vec![wire as u8; captured])).into()
}

/// The packets that qj and tcpdump read in a file, and whether each of them finds it whole.
fn read_by_both(folder: &Folder, file: &[u8]) -> [(Vec<Stamped>, bool); 2] {
    std::fs::write(folder.path("in.cap"), file).expect("a file can be written");
    for old in ["theirs.pcap", "out/all.pcap"] {
        let _ = std::fs::remove_file(folder.path(old));
    }
    let ours = folder.qj("filter -f all.txt -r in.cap --split out").output().expect("qj runs");
    let mut tcpdump = Command::new("tcpdump");
    tcpdump.args(["-r", "in.cap", "-w", "theirs.pcap", "--time-stamp-precision=nano"]).current_dir(folder.path(""));
    let theirs = tcpdump.output().expect("tcpdump runs");
    [
        (packets_of(&folder.path("out/all.pcap")), ours.status.success()),
        (packets_of(&folder.path("theirs.pcap")), theirs.status.success()),
    ]
}

fn folder() -> Option<Folder> {
    tool(&["tcpdump"])?;
    Some(Folder::with(&[("all.txt", "all: len >= 0\n")]))
}

#[test]
fn pcap_files_of_every_version_are_read_as_tcpdump_reads_them() {
    let Some(folder) = folder() else { return };
    for order in [Order::Little, Order::Big] {
        for magic in [0xa1b2_c3d4, 0xa1b2_3c4d, 0xa1b2_cd34] {
            for version in [(2, 4), (2, 3), (2, 2), (543, 0), (2, 5), (1, 2)] {
                for snapshot in [65_535, 20, 0, 0xffff_ffff] {
                    let file = pcap(order, magic, version, snapshot, 1, &samples());
                    let [ours, theirs] = read_by_both(&folder, &file);
                    assert_eq!(ours, theirs, "{order:?} {magic:x} {version:?} {snapshot}");
                }
            }
        }
    }
    // A packet that is longer than any, and one that is cut short.
    let mut file = pcap(Order::Little, 0xa1b2_c3d4, (2, 4), 65_535, 1, &samples());
    file.pop();
    let [ours, theirs] = read_by_both(&folder, &file);
    assert_eq!((ours.0.len(), &ours), (3, &theirs));
    let at = file.len() - 63 - 8;
    file[at..at + 4].copy_from_slice(&300_000_u32.to_le_bytes());
    let [ours, theirs] = read_by_both(&folder, &file);
    assert_eq!((ours.0.len(), &ours), (3, &theirs));
}

#[test]
fn times_of_pcapng_files_are_read_as_tcpdump_reads_them() {
    let Some(folder) = folder() else { return };
    for order in [Order::Little, Order::Big] {
        for resolution in [None, Some(0), Some(3), Some(6), Some(9), Some(19), Some(20), Some(0x80)]
            .into_iter()
            .chain([0x8a, 0x94, 0x9e, 0xc0, 0xff].map(Some))
        {
            for offset in [None, Some(0), Some(3_600), Some(-3_600_i64), Some(1 << 40)] {
                let resolution = resolution.map(|value: u8| (9, vec![value]));
                let offset = offset.map(|value| (14, order.long(value as u64).to_vec()));
                let options: Vec<_> = resolution.into_iter().chain(offset).collect();
                let [ours, theirs] = read_by_both(&folder, &pcapng(order, 0, &options, &samples()));
                assert_eq!(ours, theirs, "{order:?} {options:?}");
            }
        }
    }
    // What libpcap refuses: options that are given twice, have another length, or are cut short; long packets.
    for options in [
        vec![(9, vec![9]), (9, vec![9])],
        vec![(9, vec![9, 9])],
        vec![(14, vec![0; 4])],
        vec![(0, vec![1])],
        vec![(2, b"eth0".to_vec()), (0, Vec::new()), (9, vec![9, 9])],
    ] {
        let [ours, theirs] = read_by_both(&folder, &pcapng(Order::Big, 0, &options, &samples()));
        assert_eq!(ours, theirs, "{options:?}");
    }
    let [ours, theirs] = read_by_both(&folder, &pcapng(Order::Big, 60, &[], &samples()));
    assert_eq!((ours.1, &ours), (false, &theirs));
}

/// IP headers behind address families as loopback interfaces write them, and behind headers of Ethernet.
fn link_samples() -> Vec<(u32, Vec<u8>)> {
    let ip = |version: u8| {
        let mut packet = vec![0; 60];
        packet[0] = if version == 4 { 0x45 } else { 0x60 };
        packet[if version == 4 { 9 } else { 6 }] = 6;
        let tcp = if version == 4 { 20 } else { 40 };
        packet[tcp + 1] = 80;
        packet
    };
    let mut packets = vec![ip(4), ip(6)];
    for family in [2_u32, 10, 24, 28, 30] {
        let packet = ip(if family == 2 { 4 } else { 6 });
        packets.push([&family.to_le_bytes()[..], &packet].concat());
        packets.push([&family.to_be_bytes()[..], &packet].concat());
    }
    for head in [2, 4, 8, 12, 14, 16, 22, 24] {
        for (kind, version) in [(0x0800_u16, 4), (0x86dd, 6), (0x0021, 4), (0x0057, 6)] {
            packets.push([&vec![0; head][..], &kind.to_be_bytes(), &ip(version)].concat());
            packets.push([&[0xff, 3], &kind.to_be_bytes()[..], &vec![0; head], &ip(version)].concat());
        }
    }
    let mut random = Random(5);
    packets.extend((0..40).map(|_| (0..64).map(|_| random.index(8) as u8).collect()));
    packets.into_iter().map(|data| (data.len() as u32, data)).collect()
}

#[test]
fn filters_match_on_every_link_layer_what_tcpdump_matches() {
    let Some(folder) = folder() else { return };
    let known =
        [0, 1, 6, 7, 9, 10, 50, 51, 100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 113, 117, 122, 123, 127, 276];
    let link_types = match Effort::wanted() {
        Effort::Quick => known[..].to_vec(),
        Effort::Full | Effort::Soak => (0..300).chain([9_999]).collect(),
    };
    let expressions = ["ip", "ip6", "tcp port 80", "inbound", "link[0] = 2", "len > 70"];
    let rules: String = expressions.map(|expression| format!("{expression}\n")).concat();
    let (mut matched, mut refused) = (0, 0);
    for link_type in link_types {
        for order in [Order::Little, Order::Big] {
            // Headers of USB and of the netfilter log, which libpcap rewrites in the byte order of the machine: qj
            // leaves packets as they are.
            if matches!((link_type, order), (189 | 220 | 239, Order::Big)) {
                continue;
            }
            let file = pcap(order, 0xa1b2_c3d4, (2, 4), 65_535, link_type, &link_samples());
            std::fs::write(folder.path("in.cap"), file).expect("a file can be written");
            let theirs: Vec<Option<usize>> = expressions
                .iter()
                .map(|expression| {
                    let _ = std::fs::remove_file(folder.path("theirs.pcap"));
                    let mut tcpdump = Command::new("tcpdump");
                    tcpdump.args([
                        "-O",
                        "-r",
                        "in.cap",
                        "-w",
                        "theirs.pcap",
                        "--time-stamp-precision=nano",
                        expression,
                    ]);
                    let output = tcpdump.current_dir(folder.path("")).output().expect("tcpdump runs");
                    output.status.success().then(|| packets_of(&folder.path("theirs.pcap")).len())
                })
                .collect();
            refused += theirs.iter().filter(|count| count.is_none()).count();
            matched += theirs.iter().flatten().sum::<usize>();
            // Those that libpcap takes are counted together; each of the others is refused.
            let taken: String = rules
                .lines()
                .zip(&theirs)
                .filter(|(_, own)| own.is_some())
                .map(|(rule, _)| format!("{rule}\n"))
                .collect();
            std::fs::write(folder.path("rules.txt"), &taken).expect("a file can be written");
            let output = folder.qj("filter -f rules.txt -r in.cap --count").output().expect("qj runs");
            let printed = String::from_utf8_lossy(&output.stdout).into_owned();
            let ours: Vec<usize> =
                printed.lines().filter_map(|line| line.split_whitespace().next()?.parse().ok()).collect();
            let expected: Vec<usize> = theirs.iter().flatten().copied().collect();
            assert_eq!(
                ours,
                expected,
                "link type {link_type}, {order:?}\n{taken}{}",
                String::from_utf8_lossy(&output.stderr)
            );
            for (rule, _) in rules.lines().zip(&theirs).filter(|(_, own)| own.is_none()) {
                std::fs::write(folder.path("rules.txt"), format!("{rule}\n")).expect("a file can be written");
                let output = folder.qj("filter -f rules.txt -r in.cap --count").output().expect("qj runs");
                assert!(!output.status.success(), "link type {link_type}: {rule}");
            }
        }
    }
    assert!(matched > 100 && refused > 10, "{matched} {refused}");
}

/// The link type has no filters: said once, whatever the number of rules, and the packets of others are still sorted.
#[test]
fn a_link_type_without_filters_is_reported_once() {
    let Some(folder) = folder() else { return };
    std::fs::write(folder.path("rules.txt"), "a: ip\nb: arp\nc: tcp\n").expect("a file can be written");
    let section = [&0x1a2b_3c4d_u32.to_le_bytes()[..], &[1, 0, 0, 0], &[255; 8]].concat();
    let mut file = block(Order::Little, 0x0a0d_0d0a, &section);
    for link_type in [1_u16, 9_999, 101] {
        file.extend(block(Order::Little, 1, &[&link_type.to_le_bytes()[..], &[0; 6]].concat()));
    }
    let mut ethernet = vec![0; 60];
    ethernet[12..14].copy_from_slice(&[8, 0]);
    for (interface, data) in
        [(0_u32, ethernet.clone()), (1, vec![0; 60]), (2, vec![0x45; 60]), (1, vec![1; 60]), (0, ethernet)]
    {
        let words = [interface, 0, 7, 60, 60];
        let head: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
        file.extend(block(Order::Little, 6, &[head, data].concat()));
    }
    std::fs::write(folder.path("in.pcapng"), file).expect("a file can be written");
    let output = folder.qj("filter -f rules.txt -r in.pcapng --split out").output().expect("qj runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "2  a.pcap\n1  a+101.pcap\n", "{said}");
    assert_eq!(said.matches("error[F0106]: ").count(), 1, "{said}");
    assert!(said.contains("warning: 2 packets were left out: no filter can be applied to them"), "{said}");
    for (name, count) in [("a.pcap", 2), ("a+101.pcap", 1)] {
        assert_eq!(packets_of(&folder.path("out").join(name)).len(), count, "{name}");
    }
}

/// `ip broadcast` needs the netmask.
#[test]
fn broadcasts_are_found_by_the_netmask() {
    let Some(folder) = folder() else { return };
    std::fs::write(folder.path("rules.txt"), "b: ip broadcast\n").expect("a file can be written");
    let to = |last: u8| {
        let mut packet = vec![0; 60];
        packet[12..15].copy_from_slice(&[8, 0, 0x45]);
        packet[30..34].copy_from_slice(&[10, 1, 2, last]);
        (60, packet)
    };
    let file = pcap(Order::Little, 0xa1b2_c3d4, (2, 4), 65_535, 1, &[to(255), to(0), to(15), to(16), to(31), to(7)]);
    std::fs::write(folder.path("in.cap"), file).expect("a file can be written");
    let unknown = folder.qj("filter -f rules.txt -r in.cap --count").assert().code(1);
    unknown.stderr_eq("error[F0103]: netmask not known, so 'ip broadcast' not supported\n...\n");
    for (mask, count) in [("255.255.255.0", 2), ("255.255.255.240", 5), ("255.255.0.0", 0)] {
        let counted = folder.qj(&format!("filter -f rules.txt -r in.cap --count --netmask {mask}")).assert().success();
        counted.stdout_eq(format!("{count}  b\n"));
    }
}
