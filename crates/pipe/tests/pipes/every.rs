//! Every composition of up to four steps, at every length up to 300 and around page ends, at every alignment, as every
//! kind of code that this processor runs, against the reference; data and what is written end at guard pages.
//!
//! A run of the tests takes a slice: every composition, as every kind of code, in a few of its cases. The whole is
//! `cargo xtask pipes`. What it leaves out makes no difference:
//!
//! - **Alignments** count modulo the longest vector of the code, 64 bytes or less: no instruction demands more than
//!   that, and no code looks at more of an address.
//! - **Pairs of alignments** are for the patient. There are as many parts as places in a line, and a part holds each
//!   place of the source and each of the target once: at every length, the source ends 0 to 63 bytes before a guard
//!   page, and in part `p` the target `p` more than that. So one part is every alignment of both, and all parts are
//!   every pair. Code has no use for pairs: below 1024 bytes it looks at no address; from there on, and where it stores
//!   past the caches, at the target's and at whether the source's is the same in its line; which is why the long
//!   lengths have pairs of their own in each part.
//! - **The same code** runs once. Levels of a processor often make the same of a composition, and `copy` and `count`
//!   have no code of their own: a composition with them runs in a few cases, if its code is that of the one without,
//!   byte for byte.
//! - **Handlers** have no loops of their own: what they deliver runs as the data here do.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::oracle::compositions;
use crate::support::{Guarded, Place, alphabet, composers, describe, fill, random_step};
use quaject_pipe::{Composer, MAX_STREAMS, Options, Pipe, Report, Runner, Step, Store, cross, reference};
use quaject_test_support::{Effort, Random, wanted_number};
use quaject_vcode::Features;

/// Bytes of a line of the caches, which no vector is longer than.
const LINE: usize = 64;
/// Lengths from 0 on, all of them.
const SHORT: usize = 301;
/// Lengths that end blocks of several vectors, begin to be aligned, and end around a page.
const LONG: [usize; 24] = [
    511, 512, 513, 575, 576, 577, 1023, 1024, 1025, 1091, 4031, 4032, 4033, 4088, 4089, 4094, 4095, 4096, 4097, 4098,
    4103, 4104, 4159, 4160,
];
/// By how many bytes the source lies otherwise in its line than the target, where data are long.
const DISTANCES: [usize; 4] = [0, 8, 1, 32];
const MAX_LENGTH: usize = 4160;
const CANARY: u8 = 0x5c;

/// Where data are, and how they pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// At once, ending so many bytes before guard pages.
    Apart { from: usize, to: usize },
    /// At once, beginning right behind guard pages.
    Behind,
    /// Where they are, ending so many bytes before a guard page.
    InPlace { end: usize },
    /// As lists of two, cut at these places.
    Cut { source: usize, target: usize },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Case {
    length: usize,
    manner: Manner,
}

impl Case {
    /// How many a part has for code to which so many places are different, in an order in which little has to be made
    /// anew from one to the next.
    fn count(places: usize) -> usize {
        SHORT * places + LONG.len() * 8 + SHORT + SHORT + 5 * SHORT
    }

    fn of(part: usize, number: usize, store: Store, places: usize) -> Case {
        // Past the caches only targets are stored to that whole vectors can be aligned to; others take the code that
        // prefetches.
        let streamed = |length: usize, to: usize| match store {
            Store::Streaming => (LINE - length % 8) % 8 + to % 8 * 8,
            Store::Cached | Store::Prefetching => to % LINE,
        };
        let mut rest = number;
        if rest < SHORT * places {
            let (length, from) = (rest / places, rest % places);
            let to = match store {
                Store::Streaming => streamed(length, from + part),
                Store::Cached | Store::Prefetching => (from + part) % places,
            };
            return Case { length, manner: Manner::Apart { from, to } };
        }
        rest -= SHORT * places;
        if rest < LONG.len() * 8 {
            let length = LONG[rest / 8];
            // Addresses that are multiples of eight first.
            let to = streamed(length, (part / 4 + 8 * (rest % 8) + 7 * length) % LINE);
            return Case { length, manner: Manner::Apart { from: (to + DISTANCES[part % 4]) % LINE, to } };
        }
        rest -= LONG.len() * 8;
        let length = rest % SHORT;
        let manner = match rest / SHORT {
            0 => Manner::Behind,
            1 => Manner::InPlace { end: streamed(length, part + length) },
            cut => {
                let source = (part + LINE * (cut - 2)).min(length);
                Manner::Cut { source, target: (7 * source + length) % (length + 1) }
            }
        };
        Case { length, manner }
    }
}

/// Code for a composition: which of those for the levels of the processor are the same is found by their bytes.
struct Code<'p> {
    name: &'static str,
    pipe: &'p Pipe,
    store: Store,
    /// How many places in memory are different to it.
    places: usize,
    runner: Runner<'p>,
}

fn codes<'p>(pipes: &'p [(&'static str, Pipe)]) -> Vec<Code<'p>> {
    let mut seen: Vec<&[u8]> = Vec::new();
    let mut codes = Vec::new();
    for (name, pipe) in pipes {
        for store in Store::ALL {
            let (bytes, vector_bits) = cross::code(pipe, store).expect("there is room for the code");
            if !seen.contains(&bytes) {
                seen.push(bytes);
                let places = (vector_bits as usize / 8).max(8);
                codes.push(Code { name, pipe, store, places, runner: pipe.runner() });
            }
        }
    }
    codes
}

/// What a thread runs pipes in.
struct Room {
    source: Guarded,
    target: Guarded,
    keys: [Guarded; MAX_STREAMS],
    random: Random,
    /// What the source and the keys hold, as far as they are long.
    data: [u8; MAX_LENGTH],
    key_data: [[u8; MAX_LENGTH]; MAX_STREAMS],
    /// Where they are now, before their guard pages or behind them, and how long.
    placed: Option<(usize, Place)>,
    /// What the reference makes of them, for each length that was wanted.
    expected: Vec<Option<(Vec<u8>, Report)>>,
    evaluations: u64,
}

impl Room {
    fn new(seed: u64) -> Room {
        let mut target = Guarded::new(3);
        target.all().fill(CANARY);
        Room {
            source: Guarded::new(3),
            target,
            keys: std::array::from_fn(|_| Guarded::new(3)),
            random: Random(seed),
            data: [0; MAX_LENGTH],
            key_data: [[0; MAX_LENGTH]; MAX_STREAMS],
            placed: None,
            expected: Vec::new(),
            evaluations: 0,
        }
    }

    /// Begins a composition, with data of its own.
    fn begin(&mut self) {
        fill(&mut self.random, &mut self.data);
        self.key_data.iter_mut().for_each(|key| fill(&mut self.random, key));
        self.placed = None;
        self.expected.clear();
        self.expected.resize(MAX_LENGTH + 1, None);
    }

    /// Has what the reference makes of the first `length` bytes.
    fn expect(&mut self, steps: &[Step], length: usize) {
        if self.expected[length].is_none() {
            let mut expected = self.data[..length].to_vec();
            let keys = self.key_data.each_ref().map(|key| &key[..length]);
            let report = reference::run(steps, &mut expected, &keys);
            self.expected[length] = Some((expected, report));
        }
    }

    /// Has the first `length` bytes in the source, and of keys where the pipe wants any.
    fn place(&mut self, streams: usize, length: usize, place: Place) {
        if self.placed != Some((length, place)) {
            if let Some((length, place)) = self.placed {
                assert!(same(self.source.at(place, length), &self.data[..length]), "a source was written");
            }
            self.source.at(place, length).copy_from_slice(&self.data[..length]);
            // Keys lie otherwise than the source.
            let offset = match place {
                Place::Before(end) => Place::Before((length + end) % LINE),
                Place::Start(_) | Place::End => place,
            };
            for (key, data) in self.keys.iter_mut().zip(&self.key_data).take(streams) {
                key.at(offset, length).copy_from_slice(&data[..length]);
            }
            self.placed = Some((length, place));
        }
    }

    fn check(&mut self, code: &mut Code<'_>, Case { length, manner }: Case) {
        let (pipe, store) = (code.pipe, code.store);
        let (from, to) = match manner {
            Manner::Apart { from, to } => (Place::Before(from), Place::Before(to)),
            Manner::Behind => (Place::Start(0), Place::Start(0)),
            Manner::InPlace { end } => (Place::Before(end), Place::Before(end)),
            Manner::Cut { .. } => (Place::Before(0), Place::Before(0)),
        };
        self.expect(pipe.steps(), length);
        self.place(pipe.streams(), length, from);
        let offset = match from {
            Place::Before(end) => Place::Before((length + end) % LINE),
            Place::Start(_) | Place::End => from,
        };
        let streams = self.keys.each_mut().map(|key| &*key.at(offset, length));
        let streams = &streams[..pipe.streams()];
        // Plain stores are the default, by a shorter path.
        let options =
            Options { store: Some(store).filter(|store| *store != Store::Cached), streams, ..Options::default() };
        let (before, target, after) = around(&mut self.target, to, length);
        let written = match manner {
            Manner::InPlace { .. } => {
                target.copy_from_slice(&self.data[..length]);
                code.runner.run_in_place(target, options)
            }
            Manner::Apart { .. } | Manner::Behind => {
                let target = if pipe.writes() { &mut *target } else { &mut [] };
                code.runner.run_with(self.source.at(from, length), target, options)
            }
            Manner::Cut { source, target: cut } => {
                let (first, second) = self.source.at(from, length).split_at(source);
                let (one, two) = if pipe.writes() { target.split_at_mut(cut) } else { Default::default() };
                code.runner.run_lists(&[first, second], &mut [one, two], options)
            }
        };
        let found = written.expect("the lengths are right");
        let (expected, report) = self.expected[length].as_ref().expect("the reference has just run");
        let remains = matches!(manner, Manner::InPlace { .. }) && !pipe.writes();
        let wanted = match () {
            () if remains => &self.data[..length],
            () if pipe.writes() => &expected[..],
            () => &[],
        };
        let target = if pipe.writes() || remains { target } else { &mut target[..0] };
        let right = found.report() == report
            && found.checksum() == report.checksum()
            && same(target, wanted)
            && same(before, &[CANARY; LINE][..before.len()])
            && same(after, &[CANARY; LINE][..after.len()]);
        assert!(
            right,
            "{} on {}, {store}, {length} bytes, {manner:?}:\n{found:x?} {target:02x?} and not\n{:x?} {wanted:02x?}; or written \
             outside",
            describe(pipe.steps()),
            code.name,
            report
        );
        target.fill(CANARY);
        self.evaluations += 1;
    }
}

/// Whether both hold the same.
//
// What the C library compares with masks takes a processor hundreds of cycles where a mask hides a guard page.
fn same(one: &[u8], other: &[u8]) -> bool {
    let ((ones, one_rest), (others, other_rest)) = (one.as_chunks::<8>(), other.as_chunks::<8>());
    let word = |bytes: &[u8; 8]| u64::from_ne_bytes(*bytes);
    let differs = ones.iter().zip(others).fold(0, |all, (one, other)| all | (word(one) ^ word(other)));
    one.len() == other.len() && differs == 0 && one_rest.iter().zip(other_rest).all(|(one, other)| one == other)
}

/// Bytes in guarded memory, with a line before them, where there is one, and what is between them and the next guard
/// page.
fn around(memory: &mut Guarded, place: Place, length: usize) -> (&[u8], &mut [u8], &[u8]) {
    let all = memory.all();
    let first = place.first(all.len(), length);
    let (before, rest) = all.split_at_mut(first);
    let (here, after) = rest.split_at_mut(length);
    (&before[first.saturating_sub(LINE)..], here, &after[..after.len().min(LINE)])
}

/// The composition that has the same code as this one: without steps that have none, but writing if this one writes.
fn with_code(steps: &[Option<Step>]) -> Vec<Option<Step>> {
    let writes = |steps: &[Option<Step>]| steps.iter().flatten().any(Step::writes);
    let has_code = |step: &&Option<Step>| !matches!(step, Some(Step::Copy | Step::Count));
    let mut code: Vec<Option<Step>> = steps.iter().filter(has_code).cloned().collect();
    if writes(steps) && !writes(&code) {
        code.push(Some(Step::Copy));
    }
    code
}

/// The same with steps of the user's: others in every composition, of all widths, but the same if the code is the same.
fn with_users(steps: &[Option<Step>]) -> Vec<Step> {
    let kinds = alphabet();
    let kind = |step: &Option<Step>| kinds.iter().position(|kind| Some(kind) == step.as_ref()).unwrap_or(kinds.len());
    let seed = with_code(steps).iter().fold(1, |seed, step| seed * 16 + kind(step) as u64);
    let mut random = Random(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed));
    let user = |step: &Option<Step>| step.clone().unwrap_or_else(|| Step::User(random_step(&mut random)));
    steps.iter().map(user).collect()
}

/// What of all a run takes.
#[derive(Clone, Copy)]
enum Amount {
    /// Every case of so many parts.
    Parts(usize),
    /// One in so many compositions, and of each kind of code so many cases.
    Slice { every: usize, cases: usize },
}

#[test]
fn every_composition_of_up_to_four_steps_does_what_its_steps_do() {
    let amount = match wanted_number("QJ_PARTS") {
        Some(parts) => Amount::Parts(usize::try_from(parts).map_or(LINE, |parts| parts.min(LINE))),
        None => {
            let (every, cases) = Effort::wanted().pick((16, 3), (1, 3), (1, 2_000));
            Amount::Slice { every, cases }
        }
    };
    let all: Vec<Vec<Option<Step>>> = (0..=4).flat_map(compositions).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut room = Room::new(0);
        let mut composers = composers();
        composers.push(("integer registers", cross::integer_composer(Features::detect()).expect("there is memory")));
        composers.push(("integer registers alone", cross::integer_composer(Features::NONE).expect("there is memory")));
        let mut codes_run = 0;
        loop {
            // Pairs with nothing: each is handed out once, and what threads found out is joined at the end.
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(steps) = all.get(number) else { return (codes_run, room.evaluations) };
            room.random = Random(0x9e37_79b9_7f4a_7c15 ^ (number as u64) << 32);
            if let Amount::Slice { every, .. } = amount
                && room.random.index(every) != 0
            {
                continue;
            }
            codes_run += run(steps, amount, &composers, &mut room);
            if matches!(amount, Amount::Parts(_)) && number % 500 == 499 {
                eprintln!("{} of {} compositions", number + 1, all.len());
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let counts: Vec<(u64, u64)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        threads.into_iter().map(|thread| thread.join().expect("every case is right")).collect()
    });
    let (codes, evaluations) = counts.iter().fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1));
    eprintln!("{} compositions, {codes} functions, {evaluations} evaluations, no difference", all.len());
}

/// Cases of a composition whose code runs in all cases for another one.
const FEW: usize = 20;

/// Runs one composition; the number of its functions.
fn run(kinds: &[Option<Step>], amount: Amount, composers: &[(&'static str, Composer)], room: &mut Room) -> u64 {
    let compose = |steps: &[Step]| -> Vec<(&'static str, Pipe)> {
        let pipe = |composer: &Composer| composer.compose(steps).unwrap_or_else(|error| panic!("{steps:?}: {error}"));
        composers.iter().map(|(name, composer)| (*name, pipe(composer))).collect()
    };
    let steps = with_users(kinds);
    let pipes = compose(&steps);
    let others = with_code(kinds);
    let mut amount = amount;
    if others != kinds && matches!(amount, Amount::Parts(_)) {
        let same = |one: &Pipe, other: &Pipe| {
            Store::ALL.iter().all(|store| cross::code(one, *store) == cross::code(other, *store))
        };
        let others = compose(&with_users(&others));
        if pipes.iter().zip(&others).all(|((_, one), (_, other))| same(one, other)) {
            amount = Amount::Slice { every: 1, cases: FEW };
        }
    }
    room.begin();
    let mut codes = codes(&pipes);
    for code in &mut codes {
        let (store, places) = (code.store, code.places);
        match amount {
            Amount::Parts(parts) => {
                for part in 0..parts {
                    // Later parts would repeat pairs of places of shorter vectors, and of the eight targets of a line
                    // that can be streamed to.
                    let repeats = part >= if store == Store::Streaming { 8 } else { places };
                    let first = if repeats { SHORT * places } else { 0 };
                    let numbers = first..Case::count(places);
                    numbers.for_each(|number| room.check(code, Case::of(part, number, store, places)));
                }
            }
            Amount::Slice { cases, .. } => {
                for _ in 0..cases {
                    let (part, number) = (room.random.index(LINE), room.random.index(Case::count(places)));
                    room.check(code, Case::of(part, number, store, places));
                }
            }
        }
        assert!(room.target.all().iter().all(|byte| *byte == CANARY), "{}: written outside", describe(&steps));
    }
    codes.len() as u64
}
