//! What it costs to change filters: one in ten thousand while a reader spins, ten thousand at once, a thousand from
//! text.

#[cfg(rte_acl)]
use crate::peers;
use crate::{Workload, expression, filter, thread_seconds, tuples};
use quaject_bench_harness::median;
use quaject_filter::ir::{Field, Test};
use quaject_filter::pcap::Pcap;
use quaject_filter::{Classifier, Filter, Packet};
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

const FILTERS: usize = 10_000;
const UPDATES: usize = 20_000;

pub fn changes(pcap: Option<&Pcap>) {
    let tuples = tuples(Workload::Tuple, FILTERS + UPDATES);
    let filters: Vec<Filter> = tuples.iter().map(filter).collect();
    one_by_one(&filters);
    at_once(&filters[..FILTERS]);
    if let Some(pcap) = pcap {
        from_text(pcap);
    }
}

fn middle_and_slow(what: &str, times: &mut [f64]) {
    times.sort_by(f64::total_cmp);
    let (middle, slow) = (times[times.len() / 2], times[times.len() * 99 / 100]);
    println!(
        "  {what:<44} median {middle:9.0} ns   99 % below {slow:9.0} ns   slowest {:9.0} ns",
        times[times.len() - 1]
    );
}

fn one_by_one(filters: &[Filter]) {
    println!("\nChanges among {FILTERS} filters, one reader spinning");
    let classifier = Classifier::new();
    let mut ids: std::collections::VecDeque<_> =
        classifier.insert_all(filters[..FILTERS].iter().map(|filter| (filter, 0))).expect("there is room").into();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut reader = classifier.reader();
            let packet = [0_u8; 60];
            while !done.load(Ordering::Relaxed) {
                let view = reader.pin();
                for _ in 0..32 {
                    black_box(view.classify(Packet::new(&packet)));
                }
            }
        });
        let timed = |work: &mut dyn FnMut()| {
            let begun = Instant::now();
            work();
            begun.elapsed().as_nanos() as f64
        };
        let (mut inserts, mut removes) = (Vec::new(), Vec::new());
        for filter in &filters[FILTERS..] {
            inserts.push(timed(&mut || ids.push_back(classifier.insert(filter, 0).expect("there is room"))));
            let oldest = ids.pop_front().expect("there are many");
            removes.push(timed(&mut || classifier.remove(oldest).expect("it is there")));
        }
        middle_and_slow("insert, known shape", &mut inserts);
        middle_and_slow("remove", &mut removes);
        let (mut news, mut removed) = (Vec::new(), Vec::new());
        for at in 0..300 {
            let new = Filter::all(vec![
                Test::equal(Field::new(12, 2), 0x0800),
                Test::equal(Field::new(38 + at, 2), 7),
                Test::equal(Field::new(30, 4), 7),
            ]);
            news.push(timed(&mut || ids.push_back(classifier.insert(&new, 0).expect("there is room"))));
        }
        middle_and_slow("insert, new shape", &mut news);
        for id in ids.split_off(FILTERS) {
            removed.push(timed(&mut || classifier.remove(id).expect("it is there")));
        }
        middle_and_slow("remove, the last of its shape", &mut removed);
        done.store(true, Ordering::Relaxed);
    });
}

fn at_once(filters: &[Filter]) {
    println!("\n{FILTERS} filters at once, milliseconds, median of 11");
    let own = || {
        let classifier = Classifier::new();
        black_box(classifier.insert_all(filters.iter().map(|filter| (filter, 0))).expect("there is room"));
    };
    #[cfg(rte_acl)]
    let rules: Vec<_> = tuples(Workload::Tuple, FILTERS).iter().map(peers::Rule::exact).collect();
    let contenders: &[(&str, &dyn Fn())] = &[
        ("filter", &own),
        #[cfg(rte_acl)]
        ("rte_acl", &|| drop(black_box(peers::Acl::new(&rules)))),
    ];
    let mut times = vec![Vec::new(); contenders.len()];
    for _ in 0..11 {
        for ((_, build), times) in contenders.iter().zip(&mut times) {
            let begun = thread_seconds();
            build();
            times.push((thread_seconds() - begun) * 1e3);
        }
    }
    let first = median(&times[0]);
    for ((name, _), times) in contenders.iter().zip(&times) {
        println!("  {name:<8} {:8.2}   {:.1}x as long", median(times), median(times) / first);
    }
}

fn from_text(pcap: &Pcap) {
    const TEXTS: usize = 1000;
    println!("\n{TEXTS} five-tuples from text, milliseconds (libpcap's merged expression once)");
    let texts: Vec<String> = tuples(Workload::Tuple, TEXTS).iter().map(expression).collect();
    let (mut parse, mut rest) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        let begun = thread_seconds();
        let programs: Vec<_> = texts.iter().map(|text| pcap.compile(text, 1).expect("libpcap knows it")).collect();
        parse.push((thread_seconds() - begun) * 1e3);
        let begun = thread_seconds();
        let filters: Vec<Filter> = programs.iter().map(Filter::of_program).collect();
        let classifier = Classifier::new();
        classifier.insert_all(filters.iter().map(|filter| (filter, 0))).expect("there is room");
        rest.push((thread_seconds() - begun) * 1e3);
    }
    let text = texts.iter().map(|text| format!("({text})")).collect::<Vec<_>>().join(" or ");
    let begun = thread_seconds();
    let merged = pcap.compile_optimized(&text, &crate::ETHERNET).map(|program| program.operations().len());
    let theirs = (thread_seconds() - begun) * 1e3;
    let (parse, rest) = (median(&parse), median(&rest));
    println!("  libpcap one by one {parse:8.2}   from programs to a classifier {rest:8.2}");
    let outcome = merged.map_or_else(|refused| refused.to_string(), |length| format!("{length} instructions"));
    println!("  libpcap merged {theirs:10.2} ({outcome})   {:.0}x as long", theirs / (parse + rest));
}
