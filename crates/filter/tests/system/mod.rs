//! The libpcap of the machine, for tests that compare with it.

use quaject_filter::pcap::Pcap;

/// The library; without it the test says so and should return. Where it is promised, its absence is a failure.
pub(crate) fn pcap() -> Option<Pcap> {
    match Pcap::load() {
        Ok(pcap) => Some(pcap),
        Err(absent) => {
            let set = |name: &str, values: &[&str]| std::env::var(name).is_ok_and(|own| values.contains(&own.as_str()));
            let promised = set("CI", &["true"]) || set("QJ_TEST", &["full", "soak"]);
            assert!(!promised, "{absent}; {}", absent.help());
            eprintln!("SKIPPED a test: {absent}; {}", absent.help());
            None
        }
    }
}
