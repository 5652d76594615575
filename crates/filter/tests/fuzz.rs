//! Every engine against the others on random filters and packets; and, where the system has libpcap, `bpf_filter`.

use quaject_filter::Packet;
use quaject_filter::bpf::Program;
use quaject_filter::fuzz::{Counts, Guard, round};
use quaject_test_support::Effort;
use system::pcap;

mod system;

#[test]
fn engines_agree_on_random_filters() {
    let mut guard = Guard::new().expect("the system gives pages");
    let pcap = pcap();
    let oracle = |program: &Program, packet: Packet<'_>| Some(pcap.as_ref()?.prepare(program)?.run(packet));
    let mut counts = Counts::default();
    for seed in 0..Effort::wanted().pick(300, 4_000, 2_000_000) {
        match round(seed, &mut guard, Some(&oracle)) {
            Ok(more) => counts += more,
            Err(disagreement) => panic!("{disagreement}"),
        }
    }
    // A test in which nothing matches, or everything, would see nothing.
    assert!(counts.matches * 50 > counts.evaluations, "{counts:?}");
    assert!(counts.matches * 3 < counts.evaluations * 2, "{counts:?}");
    println!("{counts:?}");
}
