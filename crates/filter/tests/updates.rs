//! Filters come and go while readers classify: every answer must be one that the filters that were there allow.

use quaject_filter::ir::{Field, Test};
use quaject_filter::{Classifier, Engine, Expression, Filter, Id, Packet, Scope};
use quaject_test_support::Effort;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Filters that come and go; a packet for each is matched by it and by the one that is always there.
const FILTERS: usize = 96;

/// A filter for one port, in one of several shapes, so that there is always something to be generated.
fn filter(number: usize) -> Filter {
    let packet = Scope::packet();
    let ip = packet.skip(14);
    let port = ip.after_ipv4().equals(2, 2, number as u32);
    let kind = packet.equals(12, 2, 0x0800);
    let expression = match number % 8 {
        0..=3 => kind & port,
        4 => kind & ip.equals(9, 1, 6) & port,
        5 => kind & port & ip.within(16, 4, 0x0a00_0000..=0x0a00_0000 + number as u32),
        6 => kind & port & ip.equals(12, 4, number as u32),
        _ => {
            // A shape of its own.
            let version = Expression::from(Test::masked(Field::new(14, 1), 0xf0, 0x40));
            kind & version & port & !ip.equals(9, 1, 17) & packet.equals(40 + number as u32 % 20, 1, 0)
        }
    };
    expression.filter().expect("the fields have widths")
}

fn packet(number: usize) -> Vec<u8> {
    let mut bytes = vec![0; 60];
    bytes[12] = 8;
    bytes[14] = if number.is_multiple_of(3) { 0x46 } else { 0x45 };
    bytes[23] = 6;
    bytes[26..30].copy_from_slice(&(number as u32).to_be_bytes());
    bytes[30..34].copy_from_slice(&0x0a00_0000_u32.to_be_bytes());
    let transport = 14 + 4 * usize::from(bytes[14] & 15);
    bytes[transport + 2..transport + 4].copy_from_slice(&(number as u16).to_be_bytes());
    bytes
}

/// Whether a filter is there, in a word that is zero while that changes: a version, a bit, the number.
fn word(version: u64, id: Option<Id>) -> u64 {
    version << 40 | 1 << 39 | id.map_or(0, |id| 1 << 38 | u64::from(id.number()))
}

/// Ends the test when a reader does, for whatever reason.
struct Stop<'s>(&'s AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn check(engine: Engine, updates: u64) {
    let classifier = Classifier::with_engine(engine);
    let always = classifier.insert(&Filter::all(vec![Test::equal(Field::new(12, 2), 0x0800)]), 0).expect("room");
    let states: Vec<AtomicU64> = (0..FILTERS).map(|_| AtomicU64::new(word(0, None))).collect();
    let done = AtomicBool::new(false);
    let judged = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for reader in 0..2_usize {
            let (classifier, states, done, judged) = (&classifier, &states, &done, &judged);
            scope.spawn(move || {
                let packets: Vec<Vec<u8>> = (0..FILTERS).map(packet).collect();
                let mut own = classifier.reader();
                let mut at = reader;
                let _stop = Stop(done);
                while !done.load(Ordering::Relaxed) {
                    let mut view = own.pin();
                    for _ in 0..32 {
                        at = (at * 5 + 1) % FILTERS;
                        let packet = Packet::new(&packets[at]);
                        // Pairs with the stores around each update.
                        let before = states[at].load(Ordering::SeqCst);
                        let found = view.classify(packet).id();
                        let mut all = Vec::new();
                        view.matches(packet, &mut all);
                        let after = states[at].load(Ordering::SeqCst);
                        if before != after || before == 0 {
                            continue;
                        }
                        judged.fetch_add(1, Ordering::Relaxed);
                        let there = before >> 38 & 1 == 1;
                        let expected = if there { before as u32 } else { always.number() };
                        assert_eq!(found.map(Id::number), Some(expected), "packet {at}, there: {there}");
                        assert_eq!(all.len(), 1 + usize::from(there), "packet {at}: {all:?}");
                    }
                }
            });
        }
        let mut live: Vec<Option<Id>> = vec![None; FILTERS];
        let mut random = 1_u64;
        // A busy machine may let the writer be done before a reader has begun.
        let enough = || judged.load(Ordering::Relaxed) > updates / 10;
        for version in (1..).take_while(|version| !done.load(Ordering::Relaxed) && (*version <= updates || !enough())) {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let at = (random >> 33) as usize % FILTERS;
            states[at].store(0, Ordering::SeqCst);
            live[at] = match live[at] {
                Some(id) => {
                    classifier.remove(id).expect("it is there");
                    None
                }
                None => Some(classifier.insert(&filter(at), 1 + (random >> 20) as u32 % 3).expect("there is room")),
            };
            states[at].store(word(version, live[at]), Ordering::SeqCst);
        }
        done.store(true, Ordering::Relaxed);
    });
    let stats = classifier.stats();
    assert_eq!(stats.waiting, 0, "everything that was replaced is dropped when no reader is left: {stats:?}");
}

#[test]
fn readers_see_filters_that_are_there_by_code() {
    check(Engine::Code, Effort::wanted().pick(2_000, 40_000, 4_000_000));
}

#[test]
fn readers_see_filters_that_are_there_by_the_interpreter() {
    check(Engine::Interpreter, Effort::wanted().pick(2_000, 20_000, 1_000_000));
}

#[test]
fn a_known_shape_needs_no_new_code() {
    let classifier = Classifier::new();
    let ids: Vec<Id> = (0..4000)
        .map(|port| {
            let ip = Scope::packet().skip(14);
            classifier.insert(&ip.after_ipv4().equals(2, 2, port).filter().expect("a width"), 0).expect("room")
        })
        .collect();
    let before = classifier.stats().generations;
    for (port, id) in ids.iter().enumerate().take(1000) {
        classifier.remove(*id).expect("it is there");
        let ip = Scope::packet().skip(14);
        classifier.insert(&ip.after_ipv4().equals(2, 2, port as u32).filter().expect("a width"), 0).expect("room");
    }
    let after = classifier.stats();
    assert!(after.generations - before <= 2, "{before} {after:?}");
    assert_eq!(after.filters, 4000);
}

#[test]
fn more_than_a_million_filters() {
    if quaject_test_support::quick_run("a million filters") {
        return;
    }
    let ip = Scope::packet().skip(14);
    let filter = |at: u32| {
        let expression = ip.equals(12, 4, at / 50_000) & ip.after_ipv4().equals(0, 4, at);
        expression.filter().expect("fields have widths")
    };
    let filters: Vec<Filter> = (0..1_000_100).map(filter).collect();
    let classifier = Classifier::new();
    let ids = classifier.insert_all(filters.iter().map(|filter| (filter, 0))).expect("there is room");
    let mut reader = classifier.reader();
    let view = reader.pin();
    for at in (0..1_000_100).step_by(997) {
        let mut packet = [0; 60];
        packet[14] = 0x45;
        packet[26..30].copy_from_slice(&(at / 50_000_u32).to_be_bytes());
        packet[34..38].copy_from_slice(&at.to_be_bytes());
        assert_eq!(view.classify(Packet::new(&packet)).id(), Some(ids[at as usize]));
        packet[26] = 1;
        assert_eq!(view.classify(Packet::new(&packet)).id(), None);
    }
}
