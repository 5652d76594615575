//! Weak fairness: which instances have an enabled fair transition, and which must not wait forever.

use crate::exploration_plan::ExplorationPlan;
use crate::instance_set::{instance_bit, participant_set};
use crate::successors::{SuccessorGenerator, waits_for_environment};
use quaject_esp_exec::step::Step;
use quaject_esp_ir::ir::Blocking;
use quaject_esp_ir::model::Role;
use rustc_hash::FxHashMap;

/// The transitions to which weak fairness applies.
#[derive(Clone, Copy)]
pub(super) enum FairnessScope {
    /// All, also those that receive from the environment: an instance that lacks only a message of the environment does
    /// not count as starved.
    AllInstances,
    /// All except those that depend on the environment: it need not send a message, and the instances in this set,
    /// which stand for omitted processes, need not communicate. The environment accepts every message.
    ExceptEnvironment(u128),
}

impl FairnessScope {
    pub(super) fn except_environment(plan: &ExplorationPlan<'_>) -> FairnessScope {
        let is_open_stub =
            |instance: &usize| plan.model.roles[plan.process(*instance as u32).0 as usize] == Role::OpenStub;
        FairnessScope::ExceptEnvironment(
            (0..plan.instances).filter(is_open_stub).fold(0, |all, instance| all | instance_bit(instance)),
        )
    }

    /// The participants of a step to which fairness applies; none of another step.
    fn fair_participants(self, step: Step) -> u128 {
        match (self, step) {
            (FairnessScope::ExceptEnvironment(_), Step::FromEnvironment { .. }) => 0,
            (FairnessScope::ExceptEnvironment(open_stubs), step) if participant_set(step) & open_stubs != 0 => 0,
            (FairnessScope::AllInstances | FairnessScope::ExceptEnvironment(_), step) => participant_set(step),
        }
    }

    /// The instances that have an enabled transition to which fairness applies, and which has no participant in
    /// `without`.
    pub(super) fn fair_enabled(self, generator: &SuccessorGenerator<'_>, without: u128) -> u128 {
        let transitions = generator.enabled.iter().map(|transition| generator.get(*transition));
        transitions.fold(0, |fair_enabled, transition| {
            let participants = self.fair_participants(transition.step);
            // Whether a message of the environment matches can depend on the answers of pure functions.
            let is_certain = !matches!(transition.step, Step::FromEnvironment { .. }) || transition.answers.is_empty();
            if participants & without == 0 && is_certain { fair_enabled | participants } else { fair_enabled }
        })
    }

    /// Whether a step that only these instances take, is the program's own and fair, so that no fair run omits it
    /// forever while it is enabled.
    pub(super) fn is_own_step_of(self, step: Step, instances: u128) -> bool {
        participant_set(step) & !instances == 0 && !waits_for_environment(step) && self.fair_participants(step) != 0
    }
}

/// By instance and component: whether the instance waits at an operation that is not `idle`.
#[derive(Default)]
pub(super) struct WaitCache(FxHashMap<(u32, u32), bool>);

impl WaitCache {
    pub(super) fn among(
        &mut self,
        generator: &mut SuccessorGenerator<'_>,
        instances: &[u32],
        state_vector: &[u32],
    ) -> u128 {
        let mut waits = |instance: u32| {
            let component = state_vector[instance as usize];
            *self.0.entry((instance, component)).or_insert_with(|| {
                generator.load(instance, component);
                let (machine, state, _) = generator.execution();
                let view = machine.instance_view(state, instance);
                !view.branches.is_empty() && view.blocking == Blocking::Deadlock
            })
        };
        instances
            .iter()
            .fold(0, |all, instance| if waits(*instance) { all | instance_bit(*instance as usize) } else { all })
    }
}
