//! The visible actions of a step (reference, section 8): messages between the program and its environment, calls of
//! extern functions with arguments and results, faults and termination. Actions are numbered, so that sequences of them
//! are short.

use crate::reconstruct::ResolvedStep;
use crate::successors::SuccessorGenerator;
use quaject_esp_exec::datum::Datum;
use quaject_esp_exec::report::FaultReport;
use quaject_esp_exec::step::{Effect, Step};
use quaject_esp_ir::ir::{ChannelId, ExternId, Fault, Location};
use rustc_hash::FxHashMap;
use smol_str::SmolStr;
use std::collections::BTreeSet;

/// A visible action.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum VisibleAction {
    /// A message from or to the environment.
    Message(ChannelId, Vec<Datum>),
    /// A call with its arguments and its result.
    Call(ExternId, Vec<Datum>, Option<Datum>),
    /// The program ends with this status.
    Exited(u8),
    /// A fault of an instance.
    Faulted(Fault, u32, Location, Option<SmolStr>),
    /// Local code of an instance does not terminate.
    NonTermination(u32),
}

impl VisibleAction {
    fn fault(report: &FaultReport) -> VisibleAction {
        VisibleAction::Faulted(report.fault, report.instance, report.location, report.name.clone())
    }
}

/// The alphabet of visible actions, by number.
#[derive(Default)]
pub(super) struct Alphabet {
    numbers: FxHashMap<VisibleAction, u32>,
    /// Internal channels whose messages are visible, because their other end is an environment process.
    pub(super) process_channels: BTreeSet<ChannelId>,
    /// The fault in which the last step ended.
    pub(super) fault: Option<Box<FaultReport>>,
}

impl Alphabet {
    /// All actions in order of their numbers.
    pub(super) fn all(&self) -> Vec<VisibleAction> {
        let mut all: Vec<(u32, &VisibleAction)> =
            self.numbers.iter().map(|(action, number)| (*number, action)).collect();
        all.sort_unstable_by_key(|(number, _)| *number);
        all.into_iter().map(|(_, action)| action.clone()).collect()
    }

    fn number(&mut self, action: VisibleAction) -> u32 {
        let next = self.numbers.len() as u32;
        *self.numbers.entry(action).or_insert(next)
    }

    /// Fires a step in a state and returns the numbers of its visible actions. The next state is loaded then.
    pub(super) fn actions_of_step(
        &mut self,
        generator: &mut SuccessorGenerator<'_>,
        state_vector: &[u32],
        chosen: &ResolvedStep,
    ) -> Vec<u32> {
        generator.load_all(state_vector);
        let (machine, state, environment) = generator.execution();
        let (message, effect) = chosen.fire(machine, state, environment, &chosen.answers);
        // Internal messages are invisible, except to an environment that consists of processes.
        let is_internal = matches!(chosen.step, Step::Communicate { .. });
        let message = message.filter(|(channel, _)| !is_internal || self.process_channels.contains(channel));
        let mut actions: Vec<VisibleAction> =
            message.into_iter().map(|(channel, message)| VisibleAction::Message(channel, message)).collect();
        let calls = environment.calls().iter().zip(environment.arguments_log());
        actions.extend(
            calls.map(|((function, result), arguments)| {
                VisibleAction::Call(*function, arguments.clone(), result.clone())
            }),
        );
        self.fault = None;
        match effect {
            Effect::Done => {}
            Effect::Exited(status) => actions.push(VisibleAction::Exited(status)),
            Effect::Faulted(report) => {
                actions.push(VisibleAction::fault(&report));
                self.fault = Some(report);
            }
            Effect::Unfinished => actions.push(VisibleAction::NonTermination(actor(chosen.step))),
        }
        actions.into_iter().map(|action| self.number(action)).collect()
    }
}

/// The instance whose local code a step can run.
fn actor(step: Step) -> u32 {
    match step {
        Step::Communicate { receiver: instance, .. }
        | Step::Local { instance }
        | Step::FromEnvironment { instance, .. }
        | Step::ToEnvironment { instance, .. }
        | Step::After { instance, .. }
        | Step::Else { instance } => instance,
    }
}
