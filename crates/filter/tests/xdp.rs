//! Rules as C for XDP: what clang makes of them says of random packets what the interpreter of filters says, in a
//! machine that knows no kernel and, where it is permitted, in the kernel, whose verifier has to accept it first.
#![cfg(all(feature = "fuzz", feature = "pcap", target_os = "linux", target_endian = "little"))]

use object::{Object, ObjectSection};
use quaject_filter::fuzz::{Random, filters, packets};
use quaject_filter::xdp::XdpProblem;
use quaject_filter::{Expression, Filter, Packet, Scope, xdp};
use quaject_test_support::{Effort, tool};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;
use std::process::Command;
use system::pcap;

mod system;

/// Programs around the rules: one for the kernel, one for memory that begins with a length. The number of the rule is
/// their result.
const AROUND: &str = r#"
#define QJ_RULES_ONLY
#include "rules.c"
__attribute__((section("xdp"), used)) int of_kernel(struct xdp_md *c) {
    return qj_rule((const __u8 *)(long)c->data, (const __u8 *)(long)c->data_end);
}
__attribute__((section("raw"), used)) int of_memory(const __u8 *at) {
    return qj_rule(at + 8, at + 8 + *(const __u64 *)at);
}
"#;

/// What clang made of some filters.
struct Compiled {
    kernel: Vec<u8>,
    raw: Vec<u8>,
}

fn clang(source: &Path, arguments: &[&str]) -> Vec<u8> {
    let object = source.with_extension("o");
    let output = Command::new("clang")
        .args(["-O2", "-target", "bpfel", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function", "-I/usr/include"])
        // Where Debian keeps <asm/types.h>, which is the same for all machines.
        .arg(format!("-I/usr/include/{}-linux-gnu", std::env::consts::ARCH))
        .args(arguments)
        .arg("-c")
        .arg(source)
        .arg("-o")
        .arg(&object)
        .output()
        .expect("clang starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::read(object).expect("clang wrote it")
}

fn compiled(filters: &[Filter]) -> Compiled {
    let named: Vec<(&str, &Filter)> = filters.iter().map(|filter| ("rule */", filter)).collect();
    let source = xdp::source(&named).expect("no random program jumps backwards");
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("rules.c"), source).expect("the folder is writable");
    std::fs::write(folder.path().join("around.c"), AROUND).expect("the folder is writable");
    let object = clang(&folder.path().join("around.c"), &[]);
    let object = object::File::parse(&*object).expect("clang writes ELF");
    let section = |name| {
        let section = object.section_by_name(name).expect("it is in the source");
        assert_eq!(section.relocations().count(), 0, "nothing is called and no map is used");
        section.data().expect("it is in the file").to_vec()
    };
    Compiled { kernel: section("xdp"), raw: section("raw") }
}

/// The rule that has a packet: the first that matches.
fn expected(filters: &[Filter], packet: &[u8]) -> u64 {
    let packet = Packet::new(packet);
    filters.iter().position(|filter| filter.matches(packet)).unwrap_or(filters.len()) as u64
}

fn raw(program: &[u8], packet: &[u8]) -> u64 {
    let mut memory = (packet.len() as u64).to_le_bytes().to_vec();
    memory.extend(packet);
    let vm = rbpf::EbpfVmRaw::new(Some(program)).expect("the program is valid");
    vm.execute_program(&mut memory).expect("it reads nothing but the packet") & u64::from(u32::MAX)
}

fn bpf(command: libc::c_long, attributes: &mut [u64; 16]) -> io::Result<libc::c_int> {
    // SAFETY: the attributes are as long as said, and what they point to lives through the call.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, attributes.as_mut_ptr(), size_of_val(attributes)) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as libc::c_int) }
}

/// Loads a program for XDP; what the verifier says is part of the error.
fn load(program: &[u8]) -> Result<OwnedFd, (io::Error, String)> {
    let mut log = vec![0_u8; 1 << 20];
    let load = |attributes: &mut [u64; 16]| bpf(5, attributes);
    // Type and number of instructions; instructions; licence.
    let mut attributes = [0_u64; 16];
    attributes[0] = 6 | (program.len() as u64 / 8) << 32;
    attributes[1] = program.as_ptr() as u64;
    attributes[2] = c"GPL".as_ptr() as u64;
    let loaded = load(&mut attributes).map_err(|error| {
        // Once more, for the reason: level and length of the log, and its buffer.
        attributes[3] = 1 | (log.len() as u64) << 32;
        attributes[4] = log.as_mut_ptr() as u64;
        let _ = load(&mut attributes);
        let said: Vec<u8> = log.iter().copied().take_while(|byte| *byte != 0).collect();
        let said = String::from_utf8_lossy(&said).into_owned();
        (error, said[said.len().saturating_sub(2000)..].to_owned())
    })?;
    // SAFETY: the descriptor is new, and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(loaded) })
}

fn in_kernel(program: &OwnedFd, packet: &[u8]) -> io::Result<u64> {
    // Program and result; lengths of input and output; input; output; repetitions.
    let mut attributes = [0_u64; 16];
    attributes[0] = program.as_raw_fd() as u64;
    attributes[1] = packet.len() as u64;
    attributes[2] = packet.as_ptr() as u64;
    attributes[4] = 1;
    bpf(10, &mut attributes)?;
    Ok(attributes[0] >> 32)
}

/// Whether the kernel takes programs for XDP at all, asked once with the smallest; says so loudly if not.
fn kernel_takes_programs() -> bool {
    // r0 = 2; exit.
    let smallest = [0xb7, 0, 0, 0, 2, 0, 0, 0, 0x95, 0, 0, 0, 0, 0, 0, 0];
    match load(&smallest).map_err(|(error, _)| error).and_then(|program| in_kernel(&program, &[0; 60])) {
        Ok(result) => {
            assert_eq!(result, 2);
            true
        }
        Err(error) => {
            eprintln!("SKIPPED the kernel's part of a test: it runs no programs for XDP here: {error}");
            false
        }
    }
}

#[test]
fn exported_rules_mean_what_filters_mean() {
    if tool(&["clang"]).is_none() {
        return;
    }
    let kernel = kernel_takes_programs();
    let (mut found, mut missed, mut asked) = (0_u64, 0_u64, 0_u64);
    for seed in 0..Effort::wanted().pick(12, 60, 3_000) {
        let mut random = Random::new(seed);
        // As many as the verifier follows: it looks at every path.
        let filters: Vec<Filter> = filters(seed).into_iter().take(12).collect();
        let compiled = compiled(&filters);
        let loaded = kernel.then(|| {
            load(&compiled.kernel).unwrap_or_else(|(error, said)| panic!("set {seed}: the verifier: {error}\n{said}"))
        });
        for _ in 0..100 {
            for packet in packets(&mut random) {
                let rule = expected(&filters, &packet);
                *if rule < filters.len() as u64 { &mut found } else { &mut missed } += 1;
                let of_machine = raw(&compiled.raw, &packet);
                assert_eq!(of_machine, rule, "set {seed}: {packet:02x?}\n{filters:#?}");
                // The kernel makes frames of no less than a header.
                if let Some(program) = loaded.as_ref().filter(|_| packet.len() >= 14) {
                    let of_kernel = in_kernel(program, &packet).expect("it was loaded");
                    asked += 1;
                    assert_eq!(of_kernel, rule, "the kernel, set {seed}: {packet:02x?}\n{filters:#?}");
                }
            }
        }
    }
    println!("{found} packets with a rule, {missed} without; the kernel's answer {asked} times");
    assert!(found > missed / 20 && missed > found / 20, "one answer only proves nothing: {found}, {missed}");
}

/// A program of this machine: reads lengths and packets, prints rules.
const NATIVE: &str = r#"
#define QJ_RULES_ONLY
#include "rules.c"
#include <stdio.h>
int main(void) {
    static __u8 packet[1 << 16];
    for (__u32 length; fread(&length, sizeof length, 1, stdin) == 1;) {
        if (fread(packet, 1, length, stdin) != length) return 1;
        printf("%u\n", qj_rule(packet, packet + length));
    }
}
"#;

/// The rules of packets, as the same C says that is compiled for this machine.
fn natively(filters: &[Filter], packets: &[Vec<u8>]) -> Vec<u64> {
    let named: Vec<(&str, &Filter)> = filters.iter().map(|filter| ("rule", filter)).collect();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let write = |name: &str, content: &[u8]| std::fs::write(folder.path().join(name), content).expect("it is writable");
    write("rules.c", xdp::source(&named).expect("it was accepted").as_bytes());
    write("native.c", NATIVE.as_bytes());
    let input: Vec<u8> =
        packets.iter().flat_map(|packet| [&(packet.len() as u32).to_le_bytes()[..], packet].concat()).collect();
    write("packets", &input);
    let command = "clang -O1 -w native.c -o native && ./native < packets";
    let output = Command::new("sh").args(["-c", command]).current_dir(folder.path()).output().expect("sh runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("numbers are text");
    text.lines().map(|line| line.parse().expect("a number")).collect()
}

/// Rules as they are written for firewalls.
fn rule(random: &mut Random) -> String {
    let (host, port, length) = (random.below(256), random.below(65_536), random.below(1_500));
    let two = [random.below(65_536), random.below(65_536)];
    let (low, high) = (two[0].min(two[1]), two[0].max(two[1]));
    let term = match random.below(16) {
        0 => format!("host 10.0.0.{host}"),
        1 => format!("ip net 192.168.{host}.0/24"),
        2 => format!("udp src port {port}"),
        3 => format!("tcp dst port {port}"),
        4 => format!("ip[4:2] & 0x0fff >= {length} and ip[4:2] & 0x0fff <= {}", length + 7),
        5 => format!("tcp portrange {low}-{high}"),
        6 => format!("ip6 host fe80::{host}"),
        7 => "tcp[tcpflags] & (tcp-syn|tcp-fin) != 0".to_owned(),
        8 => format!("vlan {host} and ip"),
        9 => "icmp[icmptype] = icmp-echo".to_owned(),
        10 => format!("len > {length}"),
        11 => format!("tcp[((tcp[12:1] & 0xf0) >> 2):4] = 0x{host:08x}"),
        12 => format!("ip[(ip[0] & 0xf) << 2] + ip[9] = {host}"),
        13 => format!("port {port} and not net 10.0.0.0/8"),
        14 => "ip6 and not udp".to_owned(),
        _ => format!("ether[{}] ^ {host} = ether[{}]", random.below(60), random.below(60)),
    };
    match random.below(6) {
        0 => format!("not ({term})"),
        1 => format!("({term}) or ({})", rule(random)),
        2 => format!("({term}) and ({})", rule(random)),
        _ => term,
    }
}

/// The verifier follows every path of a set; what it refuses is refused before, with a reason.
#[test]
fn sets_of_written_rules_pass_the_verifier() {
    let Some(pcap) = pcap() else { return };
    if tool(&["clang"]).is_none() {
        return;
    }
    let kernel = kernel_takes_programs();
    let (mut loaded, mut refused) = (0, 0);
    for seed in 0..Effort::wanted().pick(4, 24, 1_000) {
        let mut random = Random::new(seed);
        let rules: Vec<String> = (0..1 + random.below(50)).map(|_| rule(&mut random)).collect();
        let filter = |rule: &String| pcap.compile(rule, 1).map(|program| Filter::of_program(&program));
        let filters: Vec<Filter> = rules.iter().map(|rule| filter(rule).expect("libpcap knows the rule")).collect();
        let named: Vec<(&str, &Filter)> = filters.iter().map(|filter| ("rule", filter)).collect();
        if xdp::source(&named).is_err() {
            refused += 1;
            continue;
        }
        let compiled = compiled(&filters);
        let program = kernel.then(|| {
            load(&compiled.kernel)
                .unwrap_or_else(|(error, said)| panic!("set {seed}: the verifier: {error}\n{rules:#?}\n{said}"))
        });
        loaded += 1;
        let packets: Vec<Vec<u8>> = (0..20).flat_map(|_| packets(&mut random)).collect();
        for (packet, native) in packets.iter().zip(natively(&filters, &packets)) {
            let rule = expected(&filters, packet);
            assert_eq!(native, rule, "set {seed}: {packet:02x?}\n{rules:#?}");
            if let Some(program) = program.as_ref().filter(|_| packet.len() >= 14) {
                let of_kernel = in_kernel(program, packet).expect("it was loaded");
                assert_eq!(of_kernel, rule, "the kernel, set {seed}: {packet:02x?}\n{rules:#?}");
            }
        }
    }
    println!("{loaded} sets loaded, {refused} refused");
    assert!(loaded > refused, "{loaded} {refused}");
}

/// The longest sets that are exported pass the verifier; longer ones are refused at the rule that is too much.
#[test]
fn the_longest_sets_pass_the_verifier() {
    let Some(pcap) = pcap() else { return };
    if tool(&["clang"]).is_none() {
        return;
    }
    let kernel = kernel_takes_programs();
    let host = |host: usize| format!("host 10.0.{}.{}", host / 250, host % 250);
    let sums = |host: usize| format!("ip[{}] + ip[{}] = {}", host % 40, host % 31, host % 256);
    for rule in [&host as &dyn Fn(usize) -> String, &sums] {
        let filter = |number| Filter::of_program(&pcap.compile(&rule(number), 1).expect("libpcap knows the rule"));
        let mut filters: Vec<Filter> = (0..4096).map(filter).collect();
        let named: Vec<(&str, &Filter)> = filters.iter().map(|filter| ("rule", filter)).collect();
        let error = xdp::source(&named).expect_err("there are too many");
        assert_eq!(error.problem, XdpProblem::TooLong);
        assert!(error.filter > 40, "{error:?}");
        filters.truncate(error.filter);
        let compiled = compiled(&filters);
        if kernel {
            load(&compiled.kernel).unwrap_or_else(|(error, said)| panic!("{}: {error}\n{said}", rule(1)));
        }
    }
}

#[test]
fn the_whole_file_compiles_with_its_maps() {
    if tool(&["clang"]).is_none() {
        return;
    }
    let web = Expression::All(vec![Scope::packet().equals(12, 2, 0x0800), Scope::packet().equals(23, 1, 6)]);
    let filter = web.filter().expect("two tests");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let source = folder.path().join("rules.c");
    std::fs::write(&source, xdp::source(&[("web", &filter)]).expect("it has no loop")).expect("the folder is writable");
    let object = clang(&source, &["-g"]);
    let object = object::File::parse(&*object).expect("clang writes ELF");
    for section in ["xdp", ".maps", "license", ".BTF"] {
        assert!(object.section_by_name(section).is_some(), "{section}");
    }
}
