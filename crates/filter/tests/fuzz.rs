//! Every engine against the others on random filters and packets; and, where the system has libpcap, `bpf_filter`; and,
//! where it is permitted, the kernel.

use quaject_filter::Packet;
use quaject_filter::bpf::Program;
use quaject_filter::fuzz::{Captured, Corpus, CorpusComparison, Counts, Guard, Kernel, Oracle, one_program, round};
use quaject_filter::link::LinkLayer;
use quaject_test_support::Effort;
use system::pcap;

mod system;

#[test]
fn engines_agree_on_random_filters() {
    let mut guard = Guard::new().expect("the system gives pages");
    let pcap = pcap();
    let disagrees = |program: &Program, packet: Packet<'_>, verdict: u32| {
        Some(pcap.as_ref()?.prepare(program)?.run(packet)).filter(|other| *other != verdict)
    };
    let oracle = Oracle { name: "bpf_filter", disagrees: &disagrees };
    let mut counts = Counts::default();
    for seed in 0..Effort::wanted().pick(300, 4_000, 2_000_000) {
        match round(seed, &mut guard, &[oracle]) {
            Ok(more) => counts += more,
            Err(disagreement) => panic!("{disagreement}"),
        }
    }
    // A test in which nothing matches, or everything, would see nothing.
    assert!(counts.matches * 50 > counts.evaluations, "{counts:?}");
    assert!(counts.matches * 3 < counts.evaluations * 2, "{counts:?}");
    println!("{counts:?}");
}

#[test]
fn the_kernel_says_the_same_of_random_programs() {
    let kernel = match Kernel::new() {
        Ok(kernel) => kernel,
        // No package brings what a sandbox forbids or another kernel does not have.
        Err(error) => {
            eprintln!("SKIPPED a test: this system attaches no filters to sockets: {error}");
            return;
        }
    };
    let mut guard = Guard::new().expect("the system gives pages");
    let disagrees = |program: &Program, packet: Packet<'_>, verdict: u32| kernel.disagrees(program, packet, verdict);
    let oracle = Oracle { name: "the kernel", disagrees: &disagrees };
    let mut counts = Counts::default();
    for seed in 0..Effort::wanted().pick(300, 3_000, 300_000) {
        match one_program(seed, &mut guard, &[oracle]) {
            Ok(more) => counts += more,
            Err(disagreement) => panic!("{disagreement}"),
        }
    }
    // It must have been asked about most of them, and have said yes and no.
    assert!(kernel.verdicts() * 2 > counts.evaluations, "{} {counts:?}", kernel.verdicts());
    assert!(counts.matches * 20 > counts.evaluations, "{counts:?}");
    println!("{} verdicts of the kernel; {counts:?}", kernel.verdicts());
}

#[test]
fn a_corpus_is_compared_per_link_type_without_equal_programs() {
    let Some(pcap) = pcap() else { return };
    let mut guard = Guard::new().expect("the system gives pages");
    let mut corpus = Corpus::default();
    corpus.add_rules("(ip)\n");
    corpus.add_text("expr => 'tcp port 80',\nip\n");
    assert_eq!((corpus.expressions(), corpus.has_packets()), (3, false));
    let mut ethernet = vec![0; 60];
    ethernet[12..14].copy_from_slice(&[8, 0]);
    let raw = [&[0x45][..], &[0; 39]].concat();
    for (link_type, data) in [(1, ethernet), (101, raw)] {
        let wire_length = data.len() as u32;
        corpus.add_packet(
            LinkLayer::native(link_type),
            Captured { place: format!("link type {link_type}"), data, wire_length },
        );
    }
    let comparison = CorpusComparison { pcap: &pcap, kernel: None, sets: 2, seed: 1 };
    let mut link_types = Vec::new();
    let total = comparison.run(&corpus, &mut guard, |link, counts| link_types.push((link.link_type, counts.filters)));
    let total = total.unwrap_or_else(|error| panic!("{error}: {}", error.disagreement));
    // `ip` and `(ip)` are one program.
    assert_eq!(link_types, [(1, 2), (101, 2)]);
    assert_eq!((total.packets, total.evaluations, total.matches, total.rounds), (2, 4, 2, 4));
}
