//! Written filters on captured packets: every engine against the others, each filter by itself
//! and hundreds merged at random. Opens no files.

use super::{Counts, Disagreement, Guard, Oracle, Random};
use crate::bpf::{Disassembly, Program};
use crate::classifier::Classifier;
use crate::ir::Filter;
use crate::packet::Packet;
use crate::types::{Engine, Id, Match};

/// A filter with its name.
#[derive(Clone, Debug)]
pub struct Written {
    /// What a disagreement calls it.
    pub name: String,
    /// What it was compiled to.
    pub program: Program,
}

/// A packet with its origin.
#[derive(Clone, Debug)]
pub struct Captured {
    /// What a disagreement calls it.
    pub place: String,
    /// The bytes.
    pub data: Vec<u8>,
    /// Its length on the wire.
    pub wire_length: u32,
}

/// The most filters of a merged set; the first set has all filters there are.
const MAX_MERGED: usize = 400;

/// Compares engines: the program as it runs, the tests it was taken apart into, its generated code one at a time and in
/// batches, and the oracles, for every filter on every packet; then for merged sets of filters.
///
/// # Errors
/// The first [`Disagreement`].
pub fn corpus(
    filters: &[Written],
    packets: &[Captured],
    sets: usize,
    guard: &mut Guard,
    random: &mut Random,
    oracles: &[Oracle<'_>],
) -> Result<Counts, Box<Disagreement>> {
    let mut counts = Counts { filters: filters.len() as u64, packets: packets.len() as u64, ..Counts::default() };
    let lifted: Vec<Filter> = filters.iter().map(|own| Filter::of_program(&own.program)).collect();
    let mut verdicts = Vec::with_capacity(filters.len());
    for (written, filter) in filters.iter().zip(&lifted) {
        let own = by_itself(written, filter, packets, guard, oracles)?;
        counts.evaluations += own.len() as u64;
        counts.matches += own.iter().filter(|matches| **matches).count() as u64;
        verdicts.push(own);
    }
    for number in 0..if filters.is_empty() { 0 } else { sets } {
        let members: Vec<(usize, u32)> = if number == 0 {
            (0..filters.len()).map(|at| (at, 0)).collect()
        } else {
            let count = 1 + random.below(filters.len().min(MAX_MERGED));
            (0..count).map(|_| (random.below(filters.len()), *random.pick(&[0, 0, 0, 1, 7, u32::MAX]))).collect()
        };
        merged(number, &members, &lifted, &verdicts, packets, guard)?;
        counts.rounds += 1;
    }
    Ok(counts)
}

/// The packets that a filter matches, if all engines agree.
fn by_itself(
    written: &Written,
    filter: &Filter,
    packets: &[Captured],
    guard: &mut Guard,
    oracles: &[Oracle<'_>],
) -> Result<Vec<bool>, Box<Disagreement>> {
    let classifier = Classifier::new();
    let id = classifier.insert(filter, 0).expect("one filter that was made of a program");
    let mut reader = classifier.reader();
    let view = reader.pin();
    let mut verdicts = Vec::with_capacity(packets.len());
    let complain = |captured: &Captured, what: String| {
        let text = format!("`{}`\n{}{filter}", written.name, Disassembly(&written.program));
        Err(disagreement(captured, what, vec![text]))
    };
    for captured in packets {
        let packet = guard.packet(&captured.data, captured.wire_length);
        let verdict = written.program.run(packet);
        let tests = filter.matches(packet);
        let code = view.classify(packet).id() == Some(id);
        if tests != (verdict != 0) || code != tests {
            return complain(captured, format!("the program says {verdict}, its tests {tests}, its code {code}"));
        }
        for oracle in oracles {
            if let Some(other) = (oracle.disagrees)(&written.program, packet, verdict) {
                return complain(captured, format!("the program says {verdict}, {} {other}", oracle.name));
            }
        }
        verdicts.push(verdict != 0);
    }
    // Truncated to the room of a guarded packet.
    let views = packets.iter().map(|own| {
        let data = &own.data[..own.data.len().min(Guard::ROOM)];
        Packet::captured(data, own.wire_length)
    });
    let views: Vec<Packet<'_>> = views.collect();
    let mut found = vec![Match::NONE; views.len()];
    view.classify_batch(&views, &mut found);
    let different = found.iter().zip(&verdicts).position(|(found, verdict)| (found.id() == Some(id)) != *verdict);
    match different {
        Some(at) => complain(&packets[at], format!("alone it is {}, in a batch {:?}", verdicts[at], found[at])),
        None => Ok(verdicts),
    }
}

/// Compares one merged set with the verdicts of its members: the best one, and all.
fn merged(
    number: usize,
    members: &[(usize, u32)],
    lifted: &[Filter],
    verdicts: &[Vec<bool>],
    packets: &[Captured],
    guard: &mut Guard,
) -> Result<(), Box<Disagreement>> {
    for (engine, name) in [(Engine::Code, "generated code"), (Engine::Interpreter, "the interpreter")] {
        let classifier = Classifier::with_engine(engine);
        let filters = members.iter().map(|(at, priority)| (&lifted[*at], *priority));
        let ids: Vec<Id> = classifier.insert_all(filters).expect("filters that were made of programs");
        let mut reader = classifier.reader();
        let mut view = reader.pin();
        let (mut expected, mut all) = (Vec::new(), Vec::new());
        for (at, captured) in packets.iter().enumerate() {
            let packet = guard.packet(&captured.data, captured.wire_length);
            expected.clear();
            let matching = members.iter().zip(&ids).filter(|((own, _), _)| verdicts[*own][at]);
            expected.extend(matching.map(|((_, priority), id)| Match(Match::rank(*priority, id.0))));
            expected.sort_unstable_by_key(|found| std::cmp::Reverse(found.0));
            let best = expected.first().copied().unwrap_or_default();
            let found = view.classify(packet);
            view.matches(packet, &mut all);
            if found != best || all != expected {
                let what = format!(
                    "set {number} of {}: {name} says {found:?} and {all:?}, filters one by one {expected:?}",
                    members.len()
                );
                return Err(disagreement(captured, what, Vec::new()));
            }
        }
    }
    Ok(())
}

fn disagreement(captured: &Captured, what: String, filters: Vec<String>) -> Box<Disagreement> {
    Box::new(Disagreement {
        place: captured.place.clone(),
        what,
        filters,
        packet: captured.data.clone(),
        wire_length: captured.wire_length,
    })
}
