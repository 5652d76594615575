//! What others can see of a step: messages that pass between the program and its surroundings, calls of extern functions
//! with what they are given and return, faults and ends. Each by number, so that sequences of them are short.

use crate::moves::Mover;
use crate::retrace::Chosen;
use quaject_esp_exec::datum::Datum;
use quaject_esp_exec::report::FaultReport;
use quaject_esp_exec::step::{Effect, Step};
use quaject_esp_ir::ir::{ChannelId, ExternId, Fault, Location};
use rustc_hash::FxHashMap;
use smol_str::SmolStr;
use std::collections::BTreeSet;

/// One thing that others can see.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Seen {
    /// A message from the world or to it.
    Message(ChannelId, Vec<Datum>),
    /// A call, what it was given, and what it returned.
    Call(ExternId, Vec<Datum>, Option<Datum>),
    /// The program ends with this status.
    Exited(u8),
    /// A fault of an instance stops it.
    Faulted(Fault, u32, Location, Option<SmolStr>),
    /// An instance runs without end.
    Endless(u32),
}

impl Seen {
    fn fault(report: &FaultReport) -> Seen {
        Seen::Faulted(report.fault, report.instance, report.location, report.name.clone())
    }
}

/// Everything that has been seen so far, by number.
#[derive(Default)]
pub(super) struct Sights {
    numbers: FxHashMap<Seen, u32>,
    /// Channels inside the program where what passes is seen as well.
    pub(super) met: BTreeSet<ChannelId>,
    /// The fault that the last step ended with.
    pub(super) fault: Option<Box<FaultReport>>,
}

impl Sights {
    /// All of it, by number.
    pub(super) fn all(&self) -> Vec<Seen> {
        let mut all: Vec<(u32, &Seen)> = self.numbers.iter().map(|(seen, number)| (*number, seen)).collect();
        all.sort_unstable_by_key(|(number, _)| *number);
        all.into_iter().map(|(_, seen)| seen.clone()).collect()
    }

    fn number(&mut self, seen: Seen) -> u32 {
        let next = self.numbers.len() as u32;
        *self.numbers.entry(seen).or_insert(next)
    }

    /// Takes a step that is possible in a state, and tells what is seen of it. The state that it leads to is at hand then.
    pub(super) fn of_step(&mut self, mover: &mut Mover<'_>, numbers: &[u32], chosen: &Chosen) -> Vec<u32> {
        mover.load_all(numbers);
        let (machine, state, world) = mover.scene();
        let (message, effect) = chosen.take(machine, state, world);
        // What passes inside is nobody's business, unless the surroundings are processes too.
        let is_inside = matches!(chosen.step, Step::Communicate { .. });
        let message = message.filter(|(channel, _)| !is_inside || self.met.contains(channel));
        let mut seen: Vec<Seen> =
            message.into_iter().map(|(channel, message)| Seen::Message(channel, message)).collect();
        let calls = world.calls().iter().zip(world.given());
        seen.extend(calls.map(|((function, result), given)| Seen::Call(*function, given.clone(), result.clone())));
        self.fault = None;
        match effect {
            Effect::Done => {}
            Effect::Exited(status) => seen.push(Seen::Exited(status)),
            Effect::Faulted(report) => {
                seen.push(Seen::fault(&report));
                self.fault = Some(report);
            }
            Effect::Unfinished => seen.push(Seen::Endless(actor(chosen.step))),
        }
        seen.into_iter().map(|seen| self.number(seen)).collect()
    }
}

/// Whose own code a step can run.
fn actor(step: Step) -> u32 {
    match step {
        Step::Communicate { receiver: instance, .. }
        | Step::Local { instance }
        | Step::FromWorld { instance, .. }
        | Step::ToWorld { instance, .. }
        | Step::After { instance, .. }
        | Step::Else { instance } => instance,
    }
}
