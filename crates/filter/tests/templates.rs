//! Small groups, whose filters are compared as a whole: every answer against the filters one by one, for packets that
//! differ in one bit, are cut at every length, have headers of every length, and end where memory ends; and while slots
//! are reused by other filters.

use quaject_filter::fuzz::{Guard, Random};
use quaject_filter::ir::{Field, Test};
use quaject_filter::{Classifier, Engine, Expression, Filter, Id, Match, Packet, Scope};
use quaject_test_support::{Effort, HANG_TIMEOUT};
use std::cmp::Reverse;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

/// What filters of a test look at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// Addresses and ports, all different.
    Tuple,
    /// The same, of which no 32 bits are different in all.
    Grid,
    /// Only the port.
    Port,
    /// Tuples, where a range must hold too.
    Checked,
    /// Only a port, whatever is before it: nothing that all compare is other than zero.
    Alone,
    /// Addresses, some bits of them: nothing moves.
    Addresses,
    /// 32 bytes are needed, so that a template begins where the packet does.
    Exactly,
    /// One byte less.
    Less,
}

const KINDS: [Kind; 8] =
    [Kind::Tuple, Kind::Grid, Kind::Port, Kind::Checked, Kind::Alone, Kind::Addresses, Kind::Exactly, Kind::Less];

/// The filter of a number.
fn filter(kind: Kind, number: u32) -> Filter {
    let ethernet = Scope::packet();
    let ip = ethernet.skip(14);
    let tcp = ip.after_ipv4();
    let whole: Expression = Test::masked(ip.field(6, 2), 0x1fff, 0).into();
    let scattered = number.wrapping_mul(0x9e37_79b1);
    let mut tests = vec![ethernet.equals(12, 2, 0x0800), ip.equals(9, 1, 6), whole];
    match kind {
        Kind::Tuple | Kind::Checked => {
            tests.extend([ip.equals(12, 4, scattered), ip.equals(16, 4, 0x0a00_0000 | (number % 3))]);
            tests.extend([tcp.equals(0, 2, scattered >> 20), tcp.equals(2, 2, 80)]);
            if kind == Kind::Checked {
                tests.extend([ip.within(8, 1, 3..=200), tcp.within(13, 1, 1..=255)]);
            }
        }
        Kind::Grid => {
            tests.extend([ip.equals(12, 4, number % 4), ip.equals(16, 4, number / 4 % 4)]);
            tests.extend([tcp.equals(0, 2, number / 16), tcp.equals(2, 2, 80)]);
        }
        Kind::Port => tests.push(tcp.equals(2, 2, 1000 + number)),
        Kind::Alone => tests = vec![tcp.equals(2, 2, number)],
        Kind::Addresses => {
            let high = Test::masked(Field::new(26, 4), 0xffff_f000, scattered & 0xffff_f000);
            tests.extend([high.into(), ip.equals(16, 4, number)]);
        }
        Kind::Exactly => tests.extend([ethernet.equals(0, 2, number), ethernet.equals(30, 2, 7)]),
        Kind::Less => tests.extend([ethernet.equals(0, 2, number), ethernet.equals(29, 2, 7)]),
    }
    Expression::All(tests).filter().expect("the fields have widths")
}

/// A packet of a number, with a header of so many words.
fn packet(kind: Kind, number: u32, words: u8) -> Vec<u8> {
    let scattered = number.wrapping_mul(0x9e37_79b1);
    let mut bytes = vec![0_u8; 90];
    let mut put = |at: usize, number: u32, width: usize| {
        bytes[at..at + width].copy_from_slice(&number.to_be_bytes()[4 - width..]);
    };
    put(12, 0x0800, 2);
    let (source, destination, from, to) = match kind {
        Kind::Tuple | Kind::Checked => (scattered, 0x0a00_0000 | (number % 3), scattered >> 20, 80),
        Kind::Grid => (number % 4, number / 4 % 4, number / 16, 80),
        Kind::Port => (number, 0, 1, 1000 + number),
        Kind::Alone => (1, 2, 3, number),
        Kind::Addresses => (scattered & 0xffff_f000 | 0x123, number, 0, 0),
        Kind::Exactly => (0, 7 << 16, 0, 0),
        Kind::Less => (7, 0, 0, 0),
    };
    put(26, source, 4);
    put(30, destination, 4);
    match kind {
        Kind::Exactly => put(0, number, 2),
        Kind::Less => {
            put(0, number, 2);
            put(29, 7, 2);
        }
        Kind::Tuple | Kind::Checked | Kind::Grid | Kind::Port | Kind::Alone | Kind::Addresses => {
            // In the header, where that is shorter than any.
            let ports = 14 + 4 * usize::from(words);
            put(ports, from, 2);
            put(ports + 2, to, 2);
            put(ports + 13, 0x10, 1);
        }
    }
    bytes[14] = 0x40 | words;
    bytes[22] = 64;
    bytes[23] = 6;
    bytes
}

/// Classifiers of both engines with the same filters under the same numbers.
struct Both {
    kind: Kind,
    classifiers: [Classifier; 2],
    live: Vec<(Id, Filter, u32)>,
}

impl Both {
    fn new(kind: Kind, numbers: impl Iterator<Item = u32>, random: &mut Random) -> Both {
        let classifiers = [Classifier::new(), Classifier::with_engine(Engine::Interpreter)];
        let all: Vec<(Filter, u32)> = numbers.map(|at| (filter(kind, at), random.below(3) as u32)).collect();
        let ids = classifiers.each_ref().map(|own| {
            own.insert_all(all.iter().map(|(filter, priority)| (filter, *priority))).expect("there is room")
        });
        assert_eq!(ids[0], ids[1]);
        let live = ids[0].iter().zip(all).map(|(id, (filter, priority))| (*id, filter, priority)).collect();
        Both { kind, classifiers, live }
    }

    fn insert(&mut self, number: u32, priority: u32) {
        let filter = filter(self.kind, number);
        let ids = self.classifiers.each_ref().map(|own| own.insert(&filter, priority).expect("there is room"));
        assert_eq!(ids[0], ids[1]);
        self.live.push((ids[0], filter, priority));
    }

    fn remove(&mut self, at: usize) {
        let (id, ..) = self.live.swap_remove(at);
        for own in &self.classifiers {
            own.remove(id).expect("it is there");
        }
    }

    /// Asks both engines in all ways; how many filters match.
    fn compare(&self, packet: Packet<'_>) -> usize {
        let mut expected: Vec<(u32, Reverse<Id>)> = self
            .live
            .iter()
            .filter(|(_, filter, _)| filter.matches(packet))
            .map(|(id, _, priority)| (*priority, Reverse(*id)))
            .collect();
        expected.sort_unstable_by_key(|own| Reverse(*own));
        let expected: Vec<Id> = expected.into_iter().map(|(_, id)| id.0).collect();
        for own in &self.classifiers {
            let mut reader = own.reader();
            let mut view = reader.pin();
            let describe = |found: &str| format!("{:?}, {found}, {:02x?}", self.kind, packet.data());
            assert_eq!(view.classify(packet).id(), expected.first().copied(), "{}", describe("one"));
            let mut batch = [Match::NONE; 3];
            view.classify_batch(&[packet; 3], &mut batch);
            assert!(batch.iter().all(|own| own.id() == expected.first().copied()), "{}", describe("a batch"));
            let mut all = Vec::new();
            view.matches(packet, &mut all);
            assert_eq!(all.iter().filter_map(|own| own.id()).collect::<Vec<_>>(), expected, "{}", describe("all"));
        }
        expected.len()
    }

    /// Packets of these numbers in all that can be done to them; how many filters matched.
    fn check(&self, numbers: &[u32], guard: &mut Guard, random: &mut Random) -> usize {
        let mut matches = 0;
        for number in numbers {
            for words in 0..=15 {
                let whole = packet(self.kind, *number, words);
                matches += self.compare(guard.packet(&whole, 90));
                for length in [random.below(91), 31, 32, 33, 34, 36, 37, 38, 46, 47, 48] {
                    matches += self.compare(guard.packet(&whole[..length], 90));
                }
            }
            let whole = packet(self.kind, *number, 5);
            for length in 0..60 {
                matches += self.compare(guard.packet(&whole[..length], 90));
            }
            for bit in 0..8 * 50 {
                let mut other = whole.clone();
                other[bit / 8] ^= 1 << (bit % 8);
                matches += self.compare(guard.packet(&other[..[90, 48, 38][bit % 3].max(bit / 8)], 90));
            }
        }
        matches
    }

    fn has_template(&self) -> bool {
        self.classifiers[0].explain().contains("template bytes")
    }
}

#[test]
fn small_groups_are_what_their_filters_are() {
    let mut guard = Guard::new().expect("the system gives pages");
    let mut random = Random::new(1);
    let max = Effort::wanted().pick(12, 12, 100);
    for kind in KINDS {
        for count in [1, 2, 3, 10, 30, 41] {
            let mut both = Both::new(kind, 0..count, &mut random);
            // Too many keys, or too few bytes, and there is none.
            let wanted = kind != Kind::Less && count <= 40;
            assert_eq!(both.has_template(), wanted, "{kind:?} {count}\n{}", both.classifiers[0].explain());
            let some: Vec<u32> = (0..max).map(|_| random.below(count as usize + 1) as u32).collect();
            assert!(both.check(&some, &mut guard, &mut random) > 0, "{kind:?} {count}");
            // Slots are given to others; some filters have one key.
            for number in 0..count.min(12) {
                both.remove(random.below(both.live.len()));
                both.insert(50 + number / 2, number % 3);
            }
            let some: Vec<u32> = (0..max).map(|_| 50 + random.below(7) as u32).chain(some).collect();
            assert!(both.check(&some, &mut guard, &mut random) > 0, "{kind:?} {count}");
        }
    }
}

#[test]
fn groups_with_templates_come_one_after_the_other() {
    let mut guard = Guard::new().expect("the system gives pages");
    let mut random = Random::new(2);
    let mut both = Both::new(Kind::Tuple, 0..10, &mut random);
    for kind in [Kind::Port, Kind::Addresses, Kind::Grid, Kind::Checked] {
        both.kind = kind;
        for number in 0..10 {
            both.insert(number, random.below(5) as u32);
        }
    }
    assert!(both.classifiers[0].explain().matches("template bytes").count() >= 4, "{}", both.classifiers[0].explain());
    for kind in [Kind::Tuple, Kind::Port, Kind::Addresses, Kind::Grid, Kind::Checked] {
        both.kind = kind;
        assert!(both.check(&[0, 3, 9], &mut guard, &mut random) > 0, "{kind:?}");
    }
}

#[test]
fn a_slot_that_is_given_on_is_never_taken_for_what_it_was() {
    const KEYS: u32 = 100;
    let classifier = Classifier::new();
    // Some that stay, so that the table does.
    for number in KEYS..KEYS + 4 {
        classifier.insert(&filter(Kind::Tuple, number), 1 + number).expect("there is room");
    }
    let filters: Vec<Filter> = (0..KEYS).map(|number| filter(Kind::Tuple, number)).collect();
    let packets: Vec<Vec<u8>> = (0..KEYS).map(|number| packet(Kind::Tuple, number, 5)).collect();
    let (over, found) = (AtomicBool::new(false), AtomicU64::new(0));
    let beginning = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut reader = classifier.reader();
            while !over.load(Ordering::Relaxed) {
                for (number, bytes) in packets.iter().enumerate() {
                    // The priority says whose filter it is.
                    let priority = reader.classify(Packet::new(bytes)).priority();
                    assert!(priority.is_none_or(|own| own == 1 + number as u32), "{number} is {priority:?}");
                    found.fetch_add(u64::from(priority.is_some()), Ordering::Relaxed);
                }
            }
        });
        let turns = Effort::wanted().pick(200, 2_000, 20_000);
        // On a busy machine the reader may start late. A packet that matches no filter would test nothing.
        let is_enough = |turn| turn >= turns && found.load(Ordering::Relaxed) > 0;
        for turn in 0.. {
            if is_enough(turn) || beginning.elapsed() > HANG_TIMEOUT {
                break;
            }
            for (number, filter) in filters.iter().enumerate() {
                let id = classifier.insert(filter, 1 + number as u32).expect("there is room");
                classifier.remove(id).expect("it is there");
            }
        }
        over.store(true, Ordering::Relaxed);
    });
    assert!(found.into_inner() > 0);
}
