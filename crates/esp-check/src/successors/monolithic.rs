//! Monolithic successor generation: transitions computed on the complete state, without a cache. Used for programs with
//! pools, for programs with an operation of more than 63 branches (a branch set is one word), and for implementations
//! with fast paths, which change their members.

use super::{CachedDelta, SuccessorGenerator, TransitionId, TransitionOutcome};
use crate::collapse::ComponentId;
use quaject_esp_exec::explore::OpenBranch;
use quaject_esp_exec::step::{Control, Step};
use quaject_esp_ir::ir::ChannelId;

impl<'m> SuccessorGenerator<'m> {
    pub(crate) fn find_enabled_monolithic(&mut self, state_vector: &[u32]) {
        self.load_all(state_vector);
        self.environment.offer(None);
        self.environment.choose(&[]);
        let steps = self.machine.enabled_under_open_environment(&mut self.state, &mut self.environment);
        let component_indices: Vec<u32> = self.plan.component_indices().collect();
        let mut transitions = Vec::new();
        for step in steps {
            let messages = match self.channel_from_environment(step) {
                Some(channel) => {
                    let counter = self.plan.counter(channel);
                    if counter.is_some_and(|component_index| {
                        !self.plan.may_count(component_index, state_vector[component_index as usize])
                    }) {
                        continue;
                    }
                    let count = self.environment.environment_values().messages[channel.0 as usize].len();
                    (0..count).map(|number| Some((channel, number))).collect()
                }
                None => vec![None],
            };
            for message in messages {
                if self.is_at_limit(transitions.len()) {
                    break;
                }
                let restore = |generator: &mut SuccessorGenerator<'m>| generator.load_all(state_vector);
                self.fire_with_every_choice(step, message, &component_indices, &restore, &mut transitions);
            }
            self.load_all(state_vector);
        }
        for transition in &mut transitions {
            let changed = transition
                .changes
                .iter()
                .filter(|(component_index, component)| state_vector[*component_index as usize] != *component);
            transition.changes = changed.copied().collect();
        }
        self.enabled.extend((0..transitions.len() as u32).map(TransitionId));
        self.deltas.clear();
        self.deltas.resize(transitions.len(), CachedDelta::General);
        self.transitions = transitions;
    }

    /// Moves a persistent subset of the enabled transitions to the front and returns its size: one eligible local step
    /// that blocks without touching a pool and commutes with all steps of the other instances (see
    /// [`ExplorationPlan::is_independent`]), or all. The cycle proviso holds: each reduced step turns a running
    /// instance into a blocked one, so no cycle consists of reduced steps only: every cycle contains a fully expanded
    /// state.
    ///
    /// [`ExplorationPlan::is_independent`]: crate::exploration_plan::ExplorationPlan::is_independent
    pub(crate) fn persistent_subset_monolithic(&mut self, is_eligible: &dyn Fn(Step) -> bool) -> usize {
        for index in 0..self.enabled.len() {
            let transition = self.get(self.enabled[index]);
            let (Step::Local { instance }, TransitionOutcome::Continues, true) =
                (transition.step, &transition.outcome, transition.is_deterministic())
            else {
                continue;
            };
            let [(component_index, component)] = transition.changes[..] else { continue };
            let step = transition.step;
            if component_index != instance || !self.plan.is_independent(instance) || !is_eligible(step) {
                continue;
            }
            if self.is_blocked_in(instance, component) {
                self.enabled.swap(0, index);
                return 1;
            }
        }
        self.enabled.len()
    }

    /// Chooses the answers on which the operations of waiting instances depend, in the loaded state.
    pub(crate) fn answer_operations(&mut self) {
        self.environment.offer(None);
        self.environment.collect_questions();
        self.machine.enabled_under_open_environment(&mut self.state, &mut self.environment);
    }

    /// Whether an instance in this component state waits or has ended.
    pub(crate) fn is_blocked_in(&mut self, instance: u32, component: ComponentId) -> bool {
        self.load(instance, component);
        match self.state.control(instance) {
            Control::Waiting { .. } | Control::CapturedByPath { .. } | Control::Ended => true,
            Control::Running { .. } => false,
        }
    }

    fn channel_from_environment(&self, step: Step) -> Option<ChannelId> {
        let Step::FromEnvironment { instance, branch } = step else { return None };
        match self.machine.instance_view(&self.state, instance).branches.get(branch as usize) {
            Some(Some(OpenBranch::FromEnvironment(channel))) => Some(*channel),
            Some(_) | None => None,
        }
    }
}
