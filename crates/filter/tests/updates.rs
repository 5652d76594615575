//! Filters are inserted and removed while readers classify: every answer must be linearizable.

use quaject_filter::ir::{Field, Test};
use quaject_filter::{Classifier, Engine, Expression, Filter, Id, Packet, Scope};
use quaject_test_support::{Effort, Random};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

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

/// How many states of a filter are remembered.
const REMEMBERED: usize = 1024;
/// The state of a filter that is not there.
const ABSENT: u64 = 0;
/// The state of a filter whose number is not known yet, because the insertion has not returned.
const COMING: u64 = u64::MAX;

/// What a filter has been, in order: a ring of states.
struct History {
    states: [AtomicU64; REMEMBERED],
    /// States that began, and of these those whose beginning is over.
    begun: AtomicUsize,
    done: AtomicUsize,
}

impl History {
    fn new() -> History {
        let (begun, done) = (AtomicUsize::new(1), AtomicUsize::new(1));
        History { states: [const { AtomicU64::new(ABSENT) }; REMEMBERED], begun, done }
    }

    /// Changes a filter: `change` returns its number, or none if it is no longer there.
    fn change(&self, to: u64, change: impl FnOnce() -> Option<Id>) -> Option<Id> {
        let at = self.begun.load(Ordering::SeqCst);
        self.states[at % REMEMBERED].store(to, Ordering::SeqCst);
        // Readers look at these around each classification.
        self.begun.store(at + 1, Ordering::SeqCst);
        let id = change();
        self.states[at % REMEMBERED].store(id.map_or(ABSENT, state), Ordering::SeqCst);
        self.done.store(at + 1, Ordering::SeqCst);
        id
    }

    /// The first of the states `from..to` that an answer shows; `None` if they are not remembered.
    fn find(&self, from: usize, to: usize, answer: u64, over: &AtomicBool) -> Option<Result<usize, Vec<u64>>> {
        let mut seen = Vec::new();
        for at in from..to {
            let mut state = self.states[at % REMEMBERED].load(Ordering::SeqCst);
            while state == COMING && !over.load(Ordering::Relaxed) {
                std::thread::yield_now();
                state = self.states[at % REMEMBERED].load(Ordering::SeqCst);
            }
            if self.begun.load(Ordering::SeqCst) >= from + REMEMBERED || state == COMING {
                return None;
            }
            if state == answer {
                return Some(Ok(at));
            }
            seen.push(state);
        }
        Some(Err(seen))
    }
}

fn state(id: Id) -> u64 {
    u64::from(id.number()) + 1
}

/// Ends the test when a thread does, for whatever reason.
struct Stop<'s>(&'s AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What one reader knows of each filter: the first state that its last answer allows, by question.
struct Judge<'t> {
    histories: &'t [History],
    known: Vec<[usize; 2]>,
    over: &'t AtomicBool,
    judged: &'t AtomicU64,
    /// Answers given while their filter changed.
    contended: &'t AtomicU64,
}

impl Judge<'_> {
    /// An answer must be the state of the filter at some moment of the question, and of no earlier moment than the
    /// answer to the same question before.
    fn ask(&mut self, at: usize, question: usize, ask: impl FnOnce() -> u64) {
        let history = &self.histories[at];
        let done = history.done.load(Ordering::SeqCst);
        let answer = ask();
        let begun = history.begun.load(Ordering::SeqCst);
        let from = self.known[at][question].max(done - 1);
        match history.find(from, begun, answer, self.over) {
            Some(Ok(state)) => self.known[at][question] = state,
            Some(Err(seen)) => panic!("packet {at}, question {question}: {answer} is none of {seen:?}"),
            None => return,
        }
        self.judged.fetch_add(1, Ordering::Relaxed);
        self.contended.fetch_add(u64::from(begun > done), Ordering::Relaxed);
    }
}

fn check(engine: Engine, updates: u64) {
    let classifier = Classifier::with_engine(engine);
    let always = classifier.insert(&Filter::all(vec![Test::equal(Field::new(12, 2), 0x0800)]), 0).expect("room");
    let histories: Vec<History> = (0..FILTERS).map(|_| History::new()).collect();
    let over = AtomicBool::new(false);
    let (judged, contended) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for reader in 0..2_usize {
            let (classifier, over) = (&classifier, &over);
            let known = vec![[0; 2]; FILTERS];
            let mut judge = Judge { histories: &histories, known, over, judged: &judged, contended: &contended };
            scope.spawn(move || {
                let packets: Vec<Vec<u8>> = (0..FILTERS).map(packet).collect();
                let mut own = classifier.reader();
                let mut all = Vec::new();
                let mut at = reader;
                let _stop = Stop(over);
                while !over.load(Ordering::Relaxed) {
                    let mut view = own.pin();
                    for _ in 0..32 {
                        at = (at * 5 + 1) % FILTERS;
                        let packet = Packet::new(&packets[at]);
                        judge.ask(at, 0, || match view.classify(packet).id() {
                            Some(id) if id == always => ABSENT,
                            Some(id) => state(id),
                            None => panic!("packet {at}: not even the filter that is always there"),
                        });
                        judge.ask(at, 1, || {
                            view.matches(packet, &mut all);
                            let ids: Vec<Id> = all.iter().filter_map(|found| found.id()).collect();
                            match ids[..] {
                                [id] if id == always => ABSENT,
                                [id, last] if last == always => state(id),
                                _ => panic!("packet {at}: {ids:?}"),
                            }
                        });
                    }
                }
            });
        }
        let _stop = Stop(&over);
        let mut live: Vec<Option<Id>> = vec![None; FILTERS];
        let mut random = Random(1);
        // A busy machine may let the writer be done before a reader has begun.
        let enough = || judged.load(Ordering::Relaxed) > updates / 10;
        for _ in (1..).take_while(|done| !over.load(Ordering::Relaxed) && (*done <= updates || !enough())) {
            // Mostly a few filters, so that they change while they are looked at.
            let range = if random.index(2) == 0 { 4 } else { FILTERS };
            let at = random.index(range);
            live[at] = match live[at] {
                Some(id) => histories[at].change(ABSENT, || {
                    classifier.remove(id).expect("it is there");
                    None
                }),
                None => histories[at].change(COMING, || {
                    Some(classifier.insert(&filter(at), 1 + random.below(3) as u32).expect("there is room"))
                }),
            };
        }
    });
    println!("{judged:?} answers, {contended:?} of them while their filter changed");
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
fn removed_shapes_free_their_memory() {
    let live = 40;
    // Every number has a shape of its own: of its bits, one byte each that must be zero.
    let shape = |number: usize| {
        let bytes = (0..12).filter(|byte| number >> byte & 1 != 0);
        Filter::all(bytes.map(|byte| Test::equal(Field::new(byte, 1), 0)).collect())
    };
    for engine in [Engine::Code, Engine::Interpreter] {
        let classifier = Classifier::with_engine(engine);
        let mut reader = classifier.reader();
        let mut there: Vec<(Id, Filter)> = Vec::new();
        for number in 1..2000 {
            let filter = shape(number);
            there.push((classifier.insert(&filter, number as u32 % 3).expect("it is inserted"), filter));
            if there.len() > live {
                // Mostly old ones go, but some stay for long.
                let (removed, _) = there.remove(number % 7);
                classifier.remove(removed).expect("it was there");
            }
            if number % 100 == 0 {
                for zeros in 0..64_u32 {
                    let zeros = zeros.wrapping_mul(0x9e37_79b1) >> 20;
                    let bytes: [u8; 12] = std::array::from_fn(|byte| (zeros >> byte & 1) as u8 ^ 1);
                    let packet = Packet::new(&bytes);
                    let mut expected: Vec<Id> =
                        there.iter().filter(|(_, own)| own.matches(packet)).map(|(id, _)| *id).collect();
                    let mut found = Vec::new();
                    reader.pin().matches(packet, &mut found);
                    let best = found.first().and_then(|own| own.id());
                    assert_eq!(reader.classify(packet).id(), best, "{engine:?}, {number}");
                    let mut found: Vec<Id> = found.iter().filter_map(|own| own.id()).collect();
                    expected.sort_unstable();
                    found.sort_unstable();
                    assert_eq!(found, expected, "{engine:?}, {number}");
                }
            }
        }
        let stats = classifier.stats();
        assert_eq!((stats.filters, stats.groups), (live, live));
        assert!(stats.chunks < 16, "chunks are laid out anew: {stats:?}");
    }
}

#[test]
fn alternatives_with_one_key_go_once() {
    let ip = Scope::packet().skip(14);
    let filter = |port: u32| {
        let either = ip.within(2, 2, 0..=9) | ip.within(2, 2, 20..=29);
        (ip.equals(16, 2, port) & either).filter().expect("fields have widths")
    };
    let classifier = Classifier::new();
    for round in 0..20 {
        let insert = |port: u32| classifier.insert(&filter(port + round), 0).expect("there is room");
        let ids: Vec<Id> = (0..60).map(insert).collect();
        ids.into_iter().for_each(|id| classifier.remove(id).expect("it is there"));
    }
    assert_eq!(classifier.stats().filters, 0);
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
