//! Every engine against the others on random filters and packets; and, where the system has libpcap, `bpf_filter`; and,
//! where it is permitted, the kernel.

use quaject_filter::Packet;
use quaject_filter::bpf::Program;
use quaject_filter::fuzz::{Counts, Guard, Kernel, Oracle, one_program, round};
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
