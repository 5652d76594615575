//! `qj filter corpus`: the captures and filters of the repository, and folders that lack something.

mod support;

use std::path::Path;
use support::Folder;

/// Whether the machine has libpcap; prints a note if not, and fails where the environment promises it.
fn has_pcap() -> bool {
    let Err(absent) = quaject_filter::pcap::Pcap::load() else { return true };
    let promised = std::env::var("CI").as_deref() == Ok("true")
        || matches!(std::env::var("QJ_TEST").as_deref(), Ok("full" | "soak"));
    assert!(!promised, "{absent}; {}", absent.help());
    eprintln!("SKIPPED a test: {absent}; {}", absent.help());
    false
}

#[test]
fn engines_agree_on_the_repositorys_packets() {
    if !has_pcap() {
        return;
    }
    let packets = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/packets");
    let output = Folder::with(&[]).qj("filter corpus").arg(packets).output().expect("qj runs");
    let (text, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{text}{said}");
    let number = |what: &str| -> u64 {
        let before = text.split(what).next().and_then(|before| before.split_whitespace().last());
        before.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{what}: {text}"))
    };
    assert!(text.ends_with("merged sets, 0 differences\n"), "{text}");
    // Filters that nothing matches, or everything, would compare nothing.
    let (evaluations, matches) = (number(" evaluations"), number(" matches"));
    assert!(evaluations > 50_000, "{text}");
    assert!(matches * 50 > evaluations && matches * 2 < evaluations, "{text}");
    assert!(said.contains("8 captures (0 broken)"), "{said}");
}

#[test]
fn expressions_are_found_in_quotes_and_lines() {
    if !has_pcap() {
        return;
    }
    let folder = Folder::with(&[("suite.pl", "expr => 'tcp port 80',\nip proto 17\n'host example', eth0\n")]);
    let capture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/packets/ethernet.pcap");
    std::fs::copy(&capture, folder.path("a.pcap")).expect("a file can be copied");
    std::fs::write(folder.path("cut.pcap"), &std::fs::read(&capture).expect("it is there")[..300]).expect("written");
    folder
        .qj("filter corpus . --sets 2")
        .assert()
        .success()
        .stdout_eq("[..] packets, 2 filters, [..] evaluations, [..] matches, 2 merged sets, 0 differences\n")
        .stderr_eq("2 captures (1 broken), 2 expressions; [..]\nlink type 1: [..]\n...\n");
}

#[test]
fn a_folder_without_packets_or_filters_is_an_error() {
    if !has_pcap() {
        return;
    }
    let folder = Folder::with(&[("a.rules", "ip\n")]);
    folder
        .qj("filter corpus .")
        .assert()
        .code(1)
        .stderr_eq("error[H0204]: no file in `.` has a packet\nhelp: captures are pcap or pcapng files; [..]\n");
    folder.qj("filter corpus nowhere").assert().code(1).stderr_eq("error[H0201]: cannot read `nowhere`: [..]\n...\n");
}
