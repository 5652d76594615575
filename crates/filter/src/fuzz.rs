//! Differential tests of the engines on random filters and packets: the interpreter of programs, the lifted tests,
//! generated code, the interpreter of tables, one at a time and in batches, before and after removals. Packets end at a
//! guard page, so that a read beyond one faults.

#[cfg(feature = "pcap")]
mod collection;
mod corpus;
mod filters;
mod guard;
mod kernel;
mod packets;
mod random;

#[cfg(feature = "pcap")]
pub use collection::{Corpus, CorpusComparison, CorpusDisagreement};
pub use corpus::{Captured, Written, corpus};
pub use guard::Guard;
pub use kernel::Kernel;
pub use random::Random;

use crate::bpf::Program;
use crate::classifier::Classifier;
use crate::ir::Filter;
use crate::packet::Packet;
use crate::types::{Engine, Id, Match};
use std::collections::hash_map::DefaultHasher;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::AddAssign;

/// Counts of comparisons.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Classifiers.
    pub rounds: u64,
    /// Filters.
    pub filters: u64,
    /// Packets.
    pub packets: u64,
    /// Verdicts of one filter on one packet.
    pub evaluations: u64,
    /// Those that matched.
    pub matches: u64,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        self.rounds += other.rounds;
        self.filters += other.filters;
        self.packets += other.packets;
        self.evaluations += other.evaluations;
        self.matches += other.matches;
    }
}

/// Two answers that differ, with the data to reproduce them.
#[derive(Clone, Debug)]
pub struct Disagreement {
    /// The round, or the packet of a capture.
    pub place: String,
    /// The answers and their engines.
    pub what: String,
    /// The filters.
    pub filters: Vec<String>,
    /// The bytes of the packet.
    pub packet: Vec<u8>,
    /// Its length on the wire.
    pub wire_length: u32,
}

impl fmt::Display for Disagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.place, self.what)?;
        let bytes: Vec<String> = self.packet.iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(f, "packet of {} bytes, {} on the wire: {}", bytes.len(), self.wire_length, bytes.join(" "))?;
        for (at, filter) in self.filters.iter().enumerate() {
            writeln!(f, "filter {at}:\n{filter}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Disagreement {}

/// Another implementation of programs, such as `bpf_filter`.
#[derive(Clone, Copy)]
pub struct Oracle<'o> {
    /// Its name.
    pub name: &'static str,
    /// Its verdict on a program and a packet, if it differs from the given one.
    pub disagrees: &'o dyn Fn(&Program, Packet<'_>, u32) -> Option<u32>,
}

impl fmt::Debug for Oracle<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Oracle").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A filter, and the program it was made of.
struct EngineUnderTest {
    filter: Filter,
    program: Option<Program>,
    priority: u32,
}

/// One round: some filters, many packets.
///
/// # Errors
/// The first [`Disagreement`].
pub fn round(seed: u64, guard: &mut Guard, oracles: &[Oracle<'_>]) -> Result<Counts, Box<Disagreement>> {
    let mut random = Random::new(seed);
    let subjects = subjects(&mut random);
    let mut round = Round::new(seed, &mut random, subjects);
    let mut counts = Counts { rounds: 1, filters: round.subjects.len() as u64, ..Counts::default() };
    for stage in 0..3 {
        let packets = 1 + random.below(40);
        for _ in 0..packets {
            let bytes = packets::packet(&mut random);
            for length in packets::lengths(&mut random, bytes.len()) {
                let wire_length = length as u32 + if random.chance(1, 4) { random.below(2000) as u32 } else { 0 };
                let packet = guard.packet(&bytes[..length], wire_length);
                counts += round.compare(packet, if stage == 0 { oracles } else { &[] })?;
            }
        }
        round.change(&mut random);
    }
    Ok(counts)
}

/// The filters of a round.
pub fn filters(seed: u64) -> Vec<Filter> {
    subjects(&mut Random::new(seed)).into_iter().map(|subject| subject.filter).collect()
}

/// A random packet, cut to some lengths.
pub fn packets(random: &mut Random) -> impl Iterator<Item = Vec<u8>> + use<> {
    let bytes = packets::packet(random);
    packets::lengths(random, bytes.len()).into_iter().map(move |length| bytes[..length].to_vec())
}

/// Hashes of 64 bits of the filters of a round, so that distinct filters can be counted.
pub fn fingerprints(seed: u64) -> impl Iterator<Item = u64> {
    subjects(&mut Random::new(seed)).into_iter().map(|subject| {
        let mut hasher = DefaultHasher::new();
        match &subject.program {
            Some(program) => program.hash(&mut hasher),
            None => subject.filter.hash(&mut hasher),
        }
        hasher.finish()
    })
}

/// One random program on many packets, interpreted and by the oracles: for oracles that load programs slowly.
///
/// # Errors
/// The first [`Disagreement`].
pub fn one_program(seed: u64, guard: &mut Guard, oracles: &[Oracle<'_>]) -> Result<Counts, Box<Disagreement>> {
    let mut random = Random::new(seed);
    let mut style = random.clone();
    let mut counts = Counts { rounds: 1, ..Counts::default() };
    let (_, Some(program)) = filters::filter(&mut style, &mut random) else { return Ok(counts) };
    counts.filters = 1;
    for _ in 0..20 {
        let bytes = packets::packet(&mut random);
        for length in packets::lengths(&mut random, bytes.len()) {
            let packet = guard.packet(&bytes[..length], length as u32);
            let verdict = program.run(packet);
            counts.packets += 1;
            counts.evaluations += 1;
            counts.matches += u64::from(verdict != 0);
            for oracle in oracles {
                if let Some(other) = (oracle.disagrees)(&program, packet, verdict) {
                    return Err(Box::new(Disagreement {
                        place: format!("program {seed}"),
                        what: format!("it says {verdict}, {} {other}", oracle.name),
                        filters: vec![crate::bpf::Disassembly(&program).to_string()],
                        packet: packet.data().to_vec(),
                        wire_length: packet.wire_length(),
                    }));
                }
            }
        }
    }
    Ok(counts)
}

fn subjects(random: &mut Random) -> Vec<EngineUnderTest> {
    let priorities = [0, 0, 0, 1, 7, u32::MAX];
    if random.chance(1, 5) {
        let count = *random.pick(&[8, 20, 60, 200]);
        let rule = |random: &mut Random| EngineUnderTest {
            filter: filters::rule(random),
            program: None,
            priority: *random.pick(&priorities),
        };
        return (0..count).map(|_| rule(random)).collect();
    }
    let count = *random.pick(&[1, 1, 2, 3, 5, 20, 60]);
    let same_shape = random.chance(1, 2);
    let style = random.next();
    let subject = |random: &mut Random| {
        let mut own = Random::new(if same_shape { style } else { random.next() });
        let (filter, program) = filters::filter(&mut own, random);
        EngineUnderTest { filter, program, priority: *random.pick(&priorities) }
    };
    (0..count).map(|_| subject(random)).collect()
}

struct Round {
    seed: u64,
    subjects: Vec<EngineUnderTest>,
    live: Vec<Option<(Id, Id)>>,
    code: Classifier,
    interpreter: Classifier,
}

impl Round {
    fn new(seed: u64, random: &mut Random, subjects: Vec<EngineUnderTest>) -> Round {
        let (code, interpreter) = (Classifier::new(), Classifier::with_engine(Engine::Interpreter));
        let live = subjects.iter().map(|_| None).collect();
        let mut round = Round { seed, subjects, live, code, interpreter };
        let at_once = random.below(round.subjects.len() + 1);
        let of = |range: &[EngineUnderTest], classifier: &Classifier| {
            let all = range.iter().map(|subject| (&subject.filter, subject.priority));
            classifier.insert_all(all).expect("there are few filters, of known widths")
        };
        let first = of(&round.subjects[..at_once], &round.code);
        let second = of(&round.subjects[..at_once], &round.interpreter);
        for (at, ids) in first.into_iter().zip(second).enumerate() {
            round.live[at] = Some(ids);
        }
        for at in at_once..round.subjects.len() {
            round.insert(at);
        }
        round
    }

    fn insert(&mut self, at: usize) {
        let subject = &self.subjects[at];
        let insert = |classifier: &Classifier| {
            classifier.insert(&subject.filter, subject.priority).expect("there are few filters, of known widths")
        };
        self.live[at] = Some((insert(&self.code), insert(&self.interpreter)));
    }

    /// Removes some filters and adds some that had been removed.
    fn change(&mut self, random: &mut Random) {
        for at in 0..self.subjects.len() {
            if random.chance(1, 2) {
                continue;
            }
            match self.live[at].take() {
                Some((code, interpreter)) => {
                    self.code.remove(code).expect("it is there");
                    self.interpreter.remove(interpreter).expect("it is there");
                }
                None => self.insert(at),
            }
        }
    }

    fn compare(&self, packet: Packet<'_>, oracles: &[Oracle<'_>]) -> Result<Counts, Box<Disagreement>> {
        let mut expected: [Vec<Match>; 2] = Default::default();
        let mut counts = Counts { packets: 1, ..Counts::default() };
        for (subject, live) in self.subjects.iter().zip(&self.live) {
            let matches = subject.filter.matches(packet);
            counts.evaluations += 1;
            counts.matches += u64::from(matches);
            if let Some(program) = &subject.program {
                let verdict = program.run(packet);
                if (verdict != 0) != matches {
                    return Err(self.disagreement(packet, format!("the program says {verdict}, its tests {matches}")));
                }
                for oracle in oracles {
                    if let Some(other) = (oracle.disagrees)(program, packet, verdict) {
                        let what = format!("the program says {verdict}, {} {other}", oracle.name);
                        return Err(self.disagreement(packet, what));
                    }
                }
            }
            if let (true, Some((code, interpreter))) = (matches, live) {
                expected[0].push(Match(Match::rank(subject.priority, code.0)));
                expected[1].push(Match(Match::rank(subject.priority, interpreter.0)));
            }
        }
        let engines = [(&self.code, "code"), (&self.interpreter, "the interpreter")];
        for ((classifier, name), expected) in engines.into_iter().zip(&mut expected) {
            expected.sort_unstable_by_key(|found| std::cmp::Reverse(found.0));
            let best = expected.first().copied().unwrap_or_default();
            let mut reader = classifier.reader();
            let mut view = reader.pin();
            let found = view.classify(packet);
            if found != best {
                return Err(self.disagreement(packet, format!("{name} says {found:?}, filters one by one {best:?}")));
            }
            // A full vector of packets, and a partial one.
            let mut batch = [Match::NONE; 19];
            view.classify_batch(&[packet; 19], &mut batch);
            if batch != [best; 19] {
                return Err(self.disagreement(packet, format!("in a batch {name} says {batch:?}, not {best:?}")));
            }
            let mut all = Vec::new();
            view.matches(packet, &mut all);
            if all != *expected {
                return Err(self.disagreement(packet, format!("{name} says {all:?}, filters one by one {expected:?}")));
            }
        }
        Ok(counts)
    }

    fn disagreement(&self, packet: Packet<'_>, what: String) -> Box<Disagreement> {
        let filters = self.subjects.iter().zip(&self.live).map(|(subject, live)| {
            let program = subject.program.as_ref();
            let program = program.map(|program| crate::bpf::Disassembly(program).to_string()).unwrap_or_default();
            format!("{live:?}, priority {}\n{program}{}", subject.priority, subject.filter)
        });
        Box::new(Disagreement {
            place: format!("round {}", self.seed),
            what,
            filters: filters.collect(),
            packet: packet.data().to_vec(),
            wire_length: packet.wire_length(),
        })
    }
}
