//! Expressions of tcpdump: what they mean, and how long they may be.
#![cfg(all(feature = "pcap", feature = "fuzz", target_os = "linux"))]

use quaject_filter::bpf::assemble;
use quaject_filter::fuzz::Random;
use quaject_filter::link::LinkLayer;
use quaject_filter::pcap::{Pcap, Target};
use quaject_filter::rules::{RuleCode, compile, read};
use quaject_filter::{Classifier, Filter, Packet};
use quaject_test_support::{Effort, tool};
use system::pcap;

mod system;

/// An Ethernet packet with IPv4 and TCP.
fn packet(from: u32, to: u32, ports: [u16; 2]) -> Vec<u8> {
    let mut packet = vec![0; 60];
    packet[12..15].copy_from_slice(&[8, 0, 0x45]);
    packet[23] = 6;
    packet[26..30].copy_from_slice(&from.to_be_bytes());
    packet[30..34].copy_from_slice(&to.to_be_bytes());
    packet[34..36].copy_from_slice(&ports[0].to_be_bytes());
    packet[36..38].copy_from_slice(&ports[1].to_be_bytes());
    packet
}

fn matches(pcap: &Pcap, expression: &str, data: &[u8]) -> bool {
    let program = pcap.compile(expression, 1).unwrap_or_else(|error| panic!("{expression}: {error}"));
    let packet = Packet::new(data);
    let verdict = program.run(packet) != 0;
    assert_eq!(Filter::of_program(&program).matches(packet), verdict, "{expression}");
    verdict
}

/// Expressions that libpcap's optimizer changes the meaning of.
#[test]
fn expressions_mean_what_they_meant_before_the_optimizer() {
    let Some(pcap) = pcap() else { return };
    let (one, zero) = ([1; 64], [0; 64]);
    for (expression, matches_one, matches_zero) in [
        ("link[0:1] & 0xffffffff != 0", true, false),
        ("link[0:1] & 0xffffffff == 0", false, true),
        ("len >= 2147483648 & 2147483648 or len < 0 | 2147483648", true, true),
        ("len <= 4294967295 & 2147483647 and len > 2147483647 + 0", false, false),
        ("(1 = 0) || (1 / 4294967295 = 0) and (0 & 4294967295 = 0)", true, true),
    ] {
        assert_eq!(matches(&pcap, expression, &one), matches_one, "{expression}");
        assert_eq!(matches(&pcap, expression, &zero), matches_zero, "{expression}");
    }
    // A load that lies outside of the packet rejects it, whether its value counts or not.
    assert!(!matches(&pcap, "link[60:4] & 0 == 0", &[0; 60]));
    assert!(matches(&pcap, "link[60:4] & 0 == 0", &[0; 64]));
}

/// Long expressions are translated in parts: they mean what the whole means, which libpcap translates slowly.
#[test]
fn long_expressions_mean_what_they_mean_as_a_whole() {
    let Some(pcap) = pcap() else { return };
    if tool(&["tcpdump"]).is_none() {
        return;
    }
    let mut random = Random::new(3);
    let terms =
        |count: u32, term: &dyn Fn(u32) -> String, joined: &str| (0..count).map(term).collect::<Vec<_>>().join(joined);
    let hosts = |count| terms(count, &|host| format!("host 10.0.0.{host}"), " or ");
    let ports = |count| terms(count, &|port| format!("port {}", port + 1), " or ");
    for expression in [
        hosts(60),
        format!("src host {}", terms(60, &|host| format!("10.0.0.{host}"), " or ")),
        format!("({}) and ({})", hosts(40), ports(70)),
        format!("not ({}) and not ({})", hosts(40), ports(70)),
        format!("{} and {} or arp and tcp", hosts(40), ports(70)),
        format!("tcp and not ({}) or ({})", hosts(40), ports(70)),
        terms(60, &|host| format!("not host 10.0.0.{host}"), " and "),
        terms(60, &|host| format!("(src host 10.0.0.{host} and dst port {host})"), " or "),
        terms(60, &|host| format!("ip[{}] != {host}", 12 + host % 8), " && "),
    ] {
        let program = pcap.compile(&expression, 1).unwrap_or_else(|error| panic!("{expression}: {error}"));
        let whole = std::process::Command::new("tcpdump").args(["-O", "-ddd", "-y", "EN10MB", &expression]).output();
        let whole = String::from_utf8(whole.expect("tcpdump runs").stdout).expect("numbers are text");
        let whole = assemble(&whole).unwrap_or_else(|error| panic!("{expression}: {error}"));
        let filter = Filter::of_program(&program);
        let (mut yes, mut no) = (0, 0);
        for _ in 0..3_000 {
            let mut address = || 0x0a00_0000 + random.below(90) as u32;
            let (from, to) = (address(), address());
            let mut data = packet(from, to, [random.below(90) as u16, random.below(90) as u16]);
            data[13] = *random.pick(&[0, 0, 0, 6]);
            data[23] = *random.pick(&[6, 6, 17, 1]);
            data.truncate(*random.pick(&[60, 60, 60, 37, 33, 20]));
            let packet = Packet::new(&data);
            let verdict = whole.run(packet) != 0;
            *if verdict { &mut yes } else { &mut no } += 1;
            assert_eq!(program.run(packet) != 0, verdict, "{expression}: {data:02x?}");
            assert_eq!(filter.matches(packet), verdict, "{expression}: {data:02x?}");
        }
        assert!(no > 0 && (yes > 0 || expression.starts_with("ip[")), "{yes} {no}: {expression}");
    }
}

/// libpcap would take minutes. The tests of one shape are one look-up.
#[test]
fn thousands_of_alternatives_are_merged() {
    let Some(pcap) = pcap() else { return };
    let host = |number: u32| 0x0a00_0000 + number * 3;
    let text = |address: u32| std::net::Ipv4Addr::from(address).to_string();
    let hosts: Vec<String> = (0..3_000).map(|number| format!("host {}", text(host(number)))).collect();
    let filter = Filter::of_program(&pcap.compile(&hosts.join(" or "), 1).expect("libpcap knows the expression"));
    let classifier = Classifier::new();
    classifier.insert(&filter, 0).expect("there is room");
    let stats = classifier.stats();
    assert!(stats.programs == 0 && stats.groups <= 9, "{stats:?}");
    let mut reader = classifier.reader();
    for number in 0..9_000 {
        let data = packet(0x0a00_0000 + number, 1, [1, 2]);
        assert_eq!(reader.classify(Packet::new(&data)).id().is_some(), number % 3 == 0, "{number}");
    }
    // An error in the last of them is found as well.
    let (rules, _) = read(&format!("{} or tcp prot 80\n", hosts.join(" or ")));
    let (_, diagnostics) = compile(&pcap, &rules, &LinkLayer::native(1).into());
    assert_eq!(diagnostics.len(), 1);
    assert_eq!(diagnostics[0].span.start as usize, hosts.join(" or ").len() + " or tcp ".len());
}

/// So are those below an `and` or a `not`, together with other terms: none of them stays a program.
#[test]
fn alternatives_below_other_connectives_are_merged() {
    let Some(pcap) = pcap() else { return };
    let mut random = Random::new(5);
    let count: u32 = Effort::wanted().pick(300, 400, 1_000);
    let text = |address: u32| std::net::Ipv4Addr::from(address).to_string();
    let hosts: Vec<String> = (0..count).map(|host| format!("host {}", text(0x0a00_0000 + host * 3))).collect();
    let many = hosts.join(" or ");
    for expression in [
        format!("tcp and ({many})"),
        format!("({many}) and port 80"),
        format!("({many}) and (port 80 or port 443) and not tcp"),
        format!("not ({many})"),
        format!("not ({many}) and port 80"),
        format!("port 80 and not ({many})"),
        format!("(ip or ip6) and not ({many} or udp)"),
    ] {
        let program = pcap.compile(&expression, 1).expect("libpcap knows the expression");
        let filter = Filter::of_program(&program);
        assert!(matches!(filter, Filter::Any(_)), "{} operations: {expression:.60}", program.operations().len());
        let classifier = Classifier::new();
        classifier.insert(&filter, 0).expect("there is room");
        assert_eq!(classifier.stats().programs, 0);
        let mut reader = classifier.reader();
        let mut seen = [0, 0];
        for _ in 0..2_000 {
            let mut address = || 0x0a00_0000 + random.below(4 * count as usize) as u32;
            let (from, to) = (address(), address());
            let mut data = packet(from, to, [*random.pick(&[80, 443, 7]), *random.pick(&[80, 7])]);
            data[13] = *random.pick(&[0, 0, 0, 0, 6]);
            data[23] = *random.pick(&[6, 17, 1]);
            data.truncate(*random.pick(&[60, 60, 60, 60, 37, 33, 20]));
            let packet = Packet::new(&data);
            let verdict = program.run(packet) != 0;
            seen[usize::from(verdict)] += 1;
            assert_eq!(filter.matches(packet), verdict, "{expression:.60}: {data:02x?}");
            assert_eq!(reader.classify(packet).id().is_some(), verdict, "{expression:.60}: {data:02x?}");
        }
        assert!(seen[0] > 20 && seen[1] > 20, "{expression:.60}: {seen:?}");
    }
}

/// What only the kernel knows of a packet is refused; it once was a test that no packet passes.
#[test]
fn data_of_the_kernel_is_refused() {
    let Some(pcap) = pcap() else { return };
    for expression in ["inbound", "outbound", "ifindex 1", "tcp port 80 and outbound"] {
        let error = pcap.compile(expression, 1).expect_err("Ethernet frames have no direction");
        assert!(error.to_string().contains("only the kernel knows it"), "{error}");
        // The header of the Linux cooked form has the direction; the second version has the interface, too.
        let found = pcap.compile(expression, 276);
        assert!(found.is_ok(), "{expression}: {found:?}");
    }
}

#[test]
fn reads_of_unwritten_scratch_memory_are_found() {
    let Some(pcap) = pcap() else { return };
    let text = "geneve or ip\ngeneve or udp\nnot geneve and ip\ngeneve and ip\nvlan and ip\nvlan or ip\n\
                geneve and (vlan or udp)\nip[0] = ip[1] or len = ip[2:2]\nip6 protochain 6\n";
    let (rules, _) = read(text);
    let (compiled, diagnostics) = compile(&pcap, &rules, &LinkLayer::native(1).into());
    let lines: Vec<usize> =
        compiled.iter().filter(|own| own.program.unwritten_read().is_some()).map(|own| own.rule.line).collect();
    assert_eq!(lines, [1, 2, 3]);
    assert!(diagnostics.iter().all(|own| own.code == RuleCode::Undefined), "{diagnostics:?}");
    assert_eq!(diagnostics.len(), 3);
}

#[test]
fn a_netmask_makes_broadcasts() {
    let Some(pcap) = pcap() else { return };
    let link = LinkLayer::native(1);
    pcap.compile_for("ip broadcast", &link.into()).expect_err("the netmask is not known");
    let target = Target { link, netmask: Some([255, 255, 255, 0].into()) };
    let program = pcap.compile_for("ip broadcast", &target).expect("it is known");
    for (to, is_broadcast) in [(0x0a00_00ff, true), (0x0a00_0000, true), (0x0a00_0001, false), (0xff00_0001, false)] {
        assert_eq!(program.run(Packet::new(&packet(1, to, [1, 2]))) != 0, is_broadcast, "{to:x}");
    }
}
