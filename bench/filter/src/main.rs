//! What a packet costs among N filters, in random order, and what a change of filters costs; with the peers, in turn,
//! in one run. Every contender's answers are compared with the expected ones first.

mod changes;
mod ebpf;
mod limit;
#[cfg(rte_acl)]
mod peers;
mod rules;
#[cfg(xdp)]
mod xdp;

use limit::{Limit, Tuple};
use quaject_bench_harness::median;
use quaject_bench_peers::{LIBPCAP, left_out};
use quaject_filter::link::LinkLayer;
use quaject_filter::pcap::{Pcap, Prepared, Target};
use quaject_filter::{Classifier, Expression, Filter, Match, Packet, Reader, Scope, View};
use std::hint::black_box;
use std::time::Instant;

/// Distinct packets of a pass.
pub const PACKETS: usize = 4096;
/// Bytes of a packet, and from one to the next.
pub const LENGTH: usize = 60;
pub const STRIDE: usize = 64;
/// Passes in turn.
const ROUNDS: usize = 11;
/// What the expressions are about.
const ETHERNET: Target = Target { link: LinkLayer::native(1), netmask: None };

/// Which fields filters differ in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Workload {
    /// The port they are sent to: the paper's case.
    Port,
    /// Addresses and ports.
    Tuple,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let only = arguments.first().map(String::as_str);
    // For counting instructions: nothing but one contender's passes.
    if only == Some("count") {
        count(&arguments[1..]);
        return;
    }
    print!("{}{}", include_str!(concat!(env!("OUT_DIR"), "/left_out.txt")), left_out(&[&LIBPCAP]));
    let max_filters = arguments.get(1).map_or(10_000, |text| text.parse().expect("the largest number of filters"));
    let pcap = LIBPCAP.is_installed().then(|| Pcap::load().expect("it has the functions of version 1"));
    #[cfg(rte_acl)]
    peers::start();
    if only.is_none_or(|only| only == "packets") {
        for workload in [Workload::Port, Workload::Tuple] {
            for filters in [1, 10, 1000, 10_000].into_iter().filter(|filters| *filters <= max_filters) {
                packets(pcap.as_ref(), workload, filters);
            }
        }
    }
    if only.is_none_or(|only| only == "ranges") {
        for seed in [rules::Seed::Access, rules::Seed::Firewall] {
            for count in [1000, 10_000].into_iter().filter(|count| *count <= max_filters) {
                rules::ranges(seed, count);
            }
        }
    }
    if only.is_none_or(|only| only == "changes") {
        changes::changes(pcap.as_ref());
    }
}

/// The tuples of a workload.
pub fn tuples(workload: Workload, count: usize) -> Vec<Tuple> {
    let mut state = 3_u64;
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u32
    };
    (0..count)
        .map(|at| match workload {
            Workload::Port => Tuple {
                source: 0x0a00_0001,
                destination: 0x0a00_0002,
                source_port: 1234,
                destination_port: 1000 + at as u16,
            },
            Workload::Tuple => Tuple {
                source: random() << 1 ^ at as u32,
                destination: 0x0a01_0100 | (random() % 4),
                source_port: random() as u16,
                destination_port: [80, 443][random() as usize % 2],
            },
        })
        .collect()
}

/// The filter of a tuple, from the builder.
pub fn filter(tuple: &Tuple) -> Filter {
    let ethernet = Scope::packet();
    let ip = ethernet.skip(14);
    let tcp = ip.after_ipv4();
    let whole = quaject_filter::ir::Test::masked(ip.field(6, 2), 0x1fff, 0);
    let expression = Expression::All(vec![
        ethernet.equals(12, 2, 0x0800),
        ip.equals(9, 1, 6),
        whole.into(),
        ip.equals(12, 4, tuple.source),
        ip.equals(16, 4, tuple.destination),
        tcp.equals(0, 2, tuple.source_port.into()),
        tcp.equals(2, 2, tuple.destination_port.into()),
    ]);
    expression.filter().expect("the fields have widths")
}

/// The expression of a tuple.
pub fn expression(tuple: &Tuple) -> String {
    let address = |number: u32| std::net::Ipv4Addr::from(number);
    format!(
        "tcp and src host {} and dst host {} and src port {} and dst port {}",
        address(tuple.source),
        address(tuple.destination),
        tuple.source_port,
        tuple.destination_port
    )
}

/// A packet of a tuple.
fn write_packet(place: &mut [u8], tuple: &Tuple) {
    place[12] = 8;
    place[14] = 0x45;
    place[23] = 6;
    place[26..30].copy_from_slice(&tuple.source.to_be_bytes());
    place[30..34].copy_from_slice(&tuple.destination.to_be_bytes());
    place[34..36].copy_from_slice(&tuple.source_port.to_be_bytes());
    place[36..38].copy_from_slice(&tuple.destination_port.to_be_bytes());
}

/// Packets in random order of filters, on lines of their own, and the filter of each, from one on.
fn traffic(tuples: &[Tuple]) -> (Vec<u8>, Vec<u32>) {
    let mut state = 99_u64;
    let mut bytes = vec![0; (PACKETS + 1) * STRIDE];
    let start = bytes.as_ptr().align_offset(STRIDE);
    bytes.drain(..start.min(STRIDE));
    let mut expected = Vec::new();
    for at in 0..PACKETS {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let own = (state >> 33) as usize % tuples.len();
        write_packet(&mut bytes[at * STRIDE..at * STRIDE + LENGTH], &tuples[own]);
        expected.push(own as u32 + 1);
    }
    (bytes, expected)
}

/// One pass over all packets: answers from one on, zero for none.
pub type Pass<'p> = Box<dyn FnMut(&mut [u32]) + 'p>;

/// A contender that measures the nanoseconds per packet itself.
pub type Clocked<'p> = Box<dyn FnMut() -> f64 + 'p>;

pub fn number(found: Match) -> u32 {
    found.id().map_or(0, |id| id.number() + 1)
}

fn packets(pcap: Option<&Pcap>, workload: Workload, filters: usize) {
    let tuples = tuples(workload, filters);
    let (bytes, expected) = traffic(&tuples);
    let slices: Vec<&[u8]> = bytes.chunks_exact(STRIDE).take(PACKETS).map(|chunk| &chunk[..LENGTH]).collect();
    let views: Vec<Packet<'_>> = slices.iter().map(|slice| Packet::new(slice)).collect();
    let pointers: Vec<*const u8> = slices.iter().map(|slice| slice.as_ptr()).collect();

    let all: Vec<Filter> = tuples.iter().map(filter).collect();
    let classifier = Classifier::new();
    classifier.insert_all(all.iter().map(|filter| (filter, 0))).expect("there is room");
    let (mut first, mut second, mut third) = (classifier.reader(), classifier.reader(), classifier.reader());
    let (one, many, burst) = (first.pin(), second.pin(), &mut third);
    let limit = Limit::new(&tuples);
    let compile = |pcap: &Pcap, text: &str| pcap.compile_optimized(text, &ETHERNET).expect("libpcap knows the text");
    let first = tuples.iter().take(1000);
    let programs: Vec<_> = first.flat_map(|tuple| pcap.map(|pcap| compile(pcap, &expression(tuple)))).collect();
    let prepare = |program| pcap.and_then(|pcap| pcap.prepare(program));
    let oracles: Vec<_> = programs.iter().filter_map(prepare).collect();
    let merged = pcap.filter(|_| (2..=100).contains(&filters)).map(|pcap| {
        let text = tuples.iter().map(|tuple| format!("({})", expression(tuple))).collect::<Vec<_>>().join(" or ");
        compile(pcap, &text)
    });
    let merged = merged.as_ref().and_then(prepare);
    // Peers that test one filter after the other run only with filter counts at which they end in time.
    let oracles = if filters <= 1000 { &oracles[..] } else { &[] };
    #[cfg(rte_acl)]
    let jit = (filters <= 1000 && !programs.is_empty()).then(|| peers::Bpf::new(&programs));
    #[cfg(rte_acl)]
    let acl = peers::Acl::new(&tuples.iter().map(peers::Rule::exact).collect::<Vec<_>>());
    let mut rbpf = (filters <= ebpf::MAX_RBPF_FILTERS).then(|| ebpf::Rbpf::new(&tuples, &bytes, LENGTH, STRIDE));
    #[cfg(xdp)]
    let kernel = xdp::Xdp::new(&tuples);
    let mut matches = [Match::NONE; 64];
    let mut contenders: Vec<(String, Pass<'_>)> = Vec::new();
    add_limit(&mut contenders, &limit, &pointers);
    add_classifier(&mut contenders, &views, one, many, burst, &mut matches);
    add_libpcap(&mut contenders, &views, oracles, merged.as_ref(), &expected);
    #[cfg(rte_acl)]
    peers::add_bpf(&mut contenders, &pointers, jit.as_ref());
    if let Some(rbpf) = &mut rbpf {
        contenders.push(("rbpf, one after the other".to_owned(), Box::new(|found| rbpf.classify(found))));
    }
    #[cfg(rte_acl)]
    peers::add_acl(&mut contenders, &pointers, &acl);
    println!(
        "\n{workload:?}, {filters} filters: nanoseconds per packet, median of {ROUNDS} (best), ratio to the limit"
    );
    #[cfg(xdp)]
    let clocked = kernel.iter().flat_map(|kernel| xdp::contenders(kernel, &pointers, &expected)).collect();
    #[cfg(not(xdp))]
    let clocked = Vec::new();
    report(contenders, clocked, &expected);
}

/// The code of the filters as generated C: the lower limit.
fn add_limit<'p>(contenders: &mut Vec<(String, Pass<'p>)>, limit: &Limit, pointers: &'p [*const u8]) {
    let classify = limit.classify;
    contenders.push((
        "generated C, the limit".to_owned(),
        Box::new(move |found| {
            for (pointer, found) in pointers.iter().zip(found) {
                // SAFETY: each packet has this many bytes.
                *found = unsafe { classify(*pointer, LENGTH as u64) };
            }
        }),
    ));
}

/// The classifier, packet by packet and in batches, with a reader for each.
fn add_classifier<'p>(
    contenders: &mut Vec<(String, Pass<'p>)>,
    views: &'p [Packet<'p>],
    one: View<'p>,
    many: View<'p>,
    burst: &'p mut Reader,
    matches: &'p mut [Match; 64],
) {
    contenders.push((
        "filter, one".to_owned(),
        Box::new(move |found| {
            for (packet, found) in views.iter().zip(found) {
                *found = number(one.classify(*packet));
            }
        }),
    ));
    contenders.push((
        "filter, one, pinned for 32".to_owned(),
        Box::new(move |found| {
            for (packets, found) in views.chunks(32).zip(found.chunks_mut(32)) {
                let view = burst.pin();
                for (packet, found) in packets.iter().zip(found) {
                    *found = number(view.classify(*packet));
                }
            }
        }),
    ));
    contenders.push((
        "filter, batches of 64".to_owned(),
        Box::new(move |found| {
            for (packets, found) in views.chunks(64).zip(found.chunks_mut(64)) {
                many.classify_batch(packets, matches);
                for (own, found) in matches.iter().zip(found) {
                    *found = number(*own);
                }
            }
        }),
    ));
}

/// libpcap: the filters one after the other, and one expression for all of them.
fn add_libpcap<'p>(
    contenders: &mut Vec<(String, Pass<'p>)>,
    views: &'p [Packet<'p>],
    oracles: &'p [Prepared<'p>],
    merged: Option<&'p Prepared<'p>>,
    expected: &'p [u32],
) {
    if !oracles.is_empty() {
        contenders.push((
            "bpf_filter, one after the other".to_owned(),
            Box::new(move |found| {
                for (packet, found) in views.iter().zip(found) {
                    *found = oracles.iter().position(|own| own.run(*packet) != 0).map_or(0, |at| at as u32 + 1);
                }
            }),
        ));
    }
    if let Some(merged) = merged {
        contenders.push((
            "libpcap, one expression (yes or no)".to_owned(),
            Box::new(move |found| {
                for ((packet, found), expected) in views.iter().zip(found).zip(expected) {
                    *found = if merged.run(*packet) != 0 { *expected } else { 0 };
                }
            }),
        ));
    }
}

/// Runs contenders in turn and prints what they took.
pub fn report(mut contenders: Vec<(String, Pass<'_>)>, mut clocked: Vec<(String, Clocked<'_>)>, expected: &[u32]) {
    let mut found = vec![0; expected.len()];
    let mut passes: Vec<usize> = Vec::new();
    for (name, pass) in &mut contenders {
        found.fill(u32::MAX);
        let begun = Instant::now();
        pass(&mut found);
        let seconds = begun.elapsed().as_secs_f64();
        assert!(found == expected, "{name} gives wrong answers");
        // As many passes as take about ten milliseconds.
        passes.push(((0.01 / seconds) as usize).clamp(1, 200));
    }
    let mut times: Vec<Vec<f64>> = vec![Vec::new(); contenders.len() + clocked.len()];
    for _ in 0..ROUNDS {
        for ((_, pass), (passes, times)) in contenders.iter_mut().zip(passes.iter().zip(&mut times)) {
            let begun = thread_seconds();
            for _ in 0..*passes {
                pass(black_box(&mut found));
            }
            times.push((thread_seconds() - begun) * 1e9 / (*passes * expected.len()) as f64);
        }
        for ((_, own), times) in clocked.iter_mut().zip(&mut times[contenders.len()..]) {
            times.push(own());
        }
    }
    let limit = median(&times[0]);
    let names = contenders.iter().map(|(name, _)| name).chain(clocked.iter().map(|(name, _)| name));
    for (name, times) in names.zip(&times) {
        let best = times.iter().copied().fold(f64::INFINITY, f64::min);
        let middle = median(times);
        println!("  {name:<36} {middle:10.2} ({best:9.2}) {:9.2}x", middle / limit);
    }
}

/// Seconds this thread has run: what other programs take of the processor does not count.
pub fn thread_seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a live variable.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// `count limit|one|batch port|tuple N PASSES`, `count one|batch access|firewall N PASSES`: run it under callgrind.
fn count(arguments: &[String]) {
    let [contender, workload, filters, passes] = arguments else { panic!("count CONTENDER WORKLOAD N PASSES") };
    let (filters, passes) = (filters.parse().expect("a number"), passes.parse().expect("a number"));
    match workload.as_str() {
        "access" => return rules::count(rules::Seed::Access, filters, contender == "one", passes),
        "firewall" => return rules::count(rules::Seed::Firewall, filters, contender == "one", passes),
        _ => {}
    }
    let workload = if workload == "port" { Workload::Port } else { Workload::Tuple };
    let tuples = tuples(workload, filters);
    let (bytes, expected) = traffic(&tuples);
    let views: Vec<Packet<'_>> =
        bytes.chunks_exact(STRIDE).take(PACKETS).map(|chunk| Packet::new(&chunk[..LENGTH])).collect();
    let classifier = Classifier::new();
    let all: Vec<Filter> = tuples.iter().map(filter).collect();
    classifier.insert_all(all.iter().map(|filter| (filter, 0))).expect("there is room");
    let mut reader = classifier.reader();
    let view = reader.pin();
    let limit = Limit::new(&tuples);
    let mut matches = [Match::NONE; 64];
    let mut wrong = 0;
    for _ in 0..passes {
        match contender.as_str() {
            "limit" => {
                for (packet, expected) in views.iter().zip(&expected) {
                    // SAFETY: each packet has this many bytes.
                    wrong += u32::from(unsafe { (limit.classify)(packet.data().as_ptr(), LENGTH as u64) } != *expected);
                }
            }
            "one" => {
                for (packet, expected) in views.iter().zip(&expected) {
                    wrong += u32::from(number(view.classify(*packet)) != *expected);
                }
            }
            _ => {
                for packets in views.chunks(64) {
                    view.classify_batch(packets, &mut matches);
                    black_box(&matches);
                }
            }
        }
    }
    assert_eq!(wrong, 0);
}
