//! The cache of transitions: the local behaviour of an instance in a component state, and the rendezvous of two
//! instances, computed once by the flow IR's `step`. Most transitions of a search are looked up here.

use super::{CachedDelta, SuccessorGenerator, Transition, TransitionOutcome, UNKNOWN};
use crate::collapse::ComponentId;
use crate::environment::EnvironmentValues;
use crate::options::Limit;
use quaject_esp_exec::datum::Datum;
use quaject_esp_exec::explore::{InstanceView, OpenBranch};
use quaject_esp_exec::step::{Control, Effect, Step};
use quaject_esp_ir::ir::{AltOrder, ChannelId};
use std::ops::Range;
use std::time::Duration;

/// The maximum number of IR steps between two operations. Local code that takes more ends the search at a limit, unless
/// its state repeats, which proves that it need not terminate.
pub(crate) const MAX_FUEL: u64 = 1 << 26;
/// The first fuel limit. It doubles as long as the deadline allows.
const INITIAL_FUEL: u64 = 1 << 20;
/// The maximum number of nondeterministic choices in an attempt that ran out of fuel. Each choice branches; beyond it
/// the step is not repeated.
pub(crate) const MAX_CHOICES: usize = 1 << 14;

/// The local transitions of one instance in one component state.
#[derive(Debug)]
pub(crate) struct LocalTransitions {
    pub(crate) running: bool,
    pub(crate) ended: bool,
    /// Whether it waits at a `pri alt` or an operation with `else`.
    pub(crate) needs_priority_filter: bool,
    pub(crate) is_pri_alt: bool,
    /// The internal channels on which it sends and receives, as bits of the channel numbers modulo 64.
    pub(crate) out_channels: u64,
    pub(crate) in_channels: u64,
    /// Transitions without a partner: a range of the generator's transitions.
    pub(crate) first: u32,
    pub(crate) end: u32,
    /// Potential receivers of its messages: a range of the generator's partners.
    pub(crate) partners: Range<u32>,
    /// The component after its eager local step; the same one if it has none.
    pub(crate) eager_target: ComponentId,
    /// The dependency relation: instances with which it can interact from here, whatever they do at present.
    pub(crate) dependents: u128,
}

/// A result that can be incomplete because fuel ran out.
pub(crate) trait FuelLimited {
    fn ran_out_of_fuel(&self) -> bool;
}

impl FuelLimited for Effect {
    fn ran_out_of_fuel(&self) -> bool {
        *self == Effect::Unfinished
    }
}

impl FuelLimited for bool {
    fn ran_out_of_fuel(&self) -> bool {
        false
    }
}

impl FuelLimited for Option<Effect> {
    fn ran_out_of_fuel(&self) -> bool {
        *self == Some(Effect::Unfinished)
    }
}

/// Open internal branches, each with its channel.
type OpenBranches = Vec<(u32, ChannelId)>;

fn channel_bit(channel: ChannelId) -> u64 {
    1 << (channel.0 % 64)
}

impl<'m> SuccessorGenerator<'m> {
    #[cold]
    pub(crate) fn compute_uncached(&mut self, instance: u32, component: ComponentId) -> u32 {
        self.load(instance, component);
        let view = self.machine.instance_view(&self.state, instance);
        let mut local = LocalTransitions {
            running: matches!(view.control, Control::Running { .. }),
            ended: view.control == Control::Ended || waits_for_nothing(&view),
            needs_priority_filter: view.otherwise || view.order == AltOrder::Priority,
            is_pri_alt: view.order == AltOrder::Priority,
            out_channels: 0,
            in_channels: 0,
            first: 0,
            end: 0,
            partners: 0..0,
            eager_target: component,
            dependents: 0,
        };
        let mut receivers = 0;
        for (branch, open_branch) in view.branches.iter().enumerate() {
            match open_branch {
                Some(OpenBranch::Out(channel)) => {
                    local.out_channels |= channel_bit(*channel);
                    let message = self.message(instance, branch as u32);
                    receivers |= self.plan.possible_receivers(instance, *channel, message.as_deref());
                }
                Some(OpenBranch::In(channel)) => local.in_channels |= channel_bit(*channel),
                Some(OpenBranch::FromEnvironment(_) | OpenBranch::ToEnvironment(_) | OpenBranch::After) | None => {}
            }
        }
        local.dependents = self.plan.dependents(instance, &view, receivers);
        local.partners.start = self.partners.len() as u32;
        let plan = self.plan;
        let partners = plan.receivers[instance as usize].iter().copied();
        self.partners.extend(partners.filter(|partner| plan.is_among(*partner, receivers)));
        local.partners.end = self.partners.len() as u32;
        let mut own_transitions = Vec::new();
        for (step, messages) in single_instance_steps(instance, &view, self.environment.environment_values()) {
            for message in messages {
                if self.is_at_limit(own_transitions.len()) {
                    break;
                }
                let restore = |generator: &mut SuccessorGenerator<'m>| generator.load(instance, component);
                self.fire_with_every_choice(step, message, &[instance], &restore, &mut own_transitions);
            }
        }
        local.eager_target = self.eager_target(instance, component, &local, &own_transitions);
        (local.first, local.end) = self.store_transitions(own_transitions);
        let known = &mut self.cache_index[instance as usize];
        if known.len() <= component as usize {
            known.resize(component as usize + 1, UNKNOWN);
        }
        let number = self.local_transitions_of.len() as u32;
        known[component as usize] = number;
        self.local_transitions_of.push(local);
        number
    }

    /// The message that a branch of the loaded instance sends; none if it is not determined.
    fn message(&mut self, instance: u32, branch: u32) -> Option<Vec<Datum>> {
        self.environment.offer(None);
        self.environment.choose(&[]);
        self.machine.set_fuel_limit(INITIAL_FUEL);
        // Evaluating a message does not count as executing it.
        let executed = self.machine.coverage().cloned();
        let message = self.machine.message(&mut self.state, &mut self.environment, instance, branch);
        if let (Some(coverage), Some(executed)) = (self.machine.coverage(), executed) {
            *coverage = executed;
        }
        message.filter(|_| self.environment.calls().is_empty()).map(|(_, message)| message)
    }

    /// Adds transitions to the cache and returns their range.
    fn store_transitions(&mut self, transitions: Vec<Transition>) -> (u32, u32) {
        let first = self.transitions.len() as u32;
        self.transitions.extend(transitions);
        self.deltas.resize(self.transitions.len(), CachedDelta::Unknown);
        (first, self.transitions.len() as u32)
    }

    fn eager_target(
        &mut self,
        instance: u32,
        component: ComponentId,
        local: &LocalTransitions,
        own_transitions: &[Transition],
    ) -> ComponentId {
        let [only] = own_transitions else { return component };
        let is_independent =
            local.running && only.is_deterministic() && self.plan.has_independent_local_steps(instance);
        match (&only.outcome, &only.changes[..]) {
            (TransitionOutcome::Continues, [(_, to)]) if is_independent => {
                self.load(instance, *to);
                match self.state.control(instance) {
                    Control::Waiting { .. } | Control::CapturedByPath { .. } | Control::Ended => *to,
                    Control::Running { .. } => component,
                }
            }
            (
                TransitionOutcome::Continues
                | TransitionOutcome::Terminates
                | TransitionOutcome::Faults(_)
                | TransitionOutcome::NonTerminating(_),
                _,
            ) => component,
        }
    }

    /// Fires a step once for every combination of results of extern functions with which it is enabled. `restore` loads
    /// the state before it. A step that receives from the environment is enabled if its patterns match the message;
    /// others are enabled in any case.
    pub(crate) fn fire_with_every_choice(
        &mut self,
        step: Step,
        message: Option<(ChannelId, usize)>,
        component_indices: &[u32],
        restore: &dyn Fn(&mut SuccessorGenerator<'m>),
        transitions: &mut Vec<Transition>,
    ) {
        let counter = match message {
            Some((channel, _)) => self.plan.counter(channel),
            None => None,
        };
        self.environment.offer(message);
        self.environment.choose(&[]);
        while !self.is_at_limit(transitions.len()) {
            let Some(effect) = self.fire(step, restore) else { break };
            let Some(effect) = effect else {
                if self.environment.advance() {
                    continue;
                }
                break;
            };
            self.record_propositions(step, component_indices);
            if effect == Effect::Done && self.plan.answers.is_some() {
                self.answer_operations();
                self.environment.offer(message);
            }
            let outcome = match effect {
                Effect::Done => TransitionOutcome::Continues,
                Effect::Exited(_) => TransitionOutcome::Terminates,
                Effect::Faulted(report) => TransitionOutcome::Faults(report),
                Effect::Unfinished => TransitionOutcome::NonTerminating(component_indices[0]),
            };
            let changes = match &outcome {
                TransitionOutcome::Continues | TransitionOutcome::Terminates => {
                    component_indices.iter().map(|index| Some((*index, self.save(*index)?))).collect()
                }
                TransitionOutcome::Faults(_) | TransitionOutcome::NonTerminating(_) => Some(Box::default()),
            };
            let Some(changes) = changes else { break };
            let message = message.map(|(_, number)| number as u32);
            transitions.push(Transition {
                step,
                message,
                choices: self.environment.choices(),
                answers: self.environment.chosen_answers().into(),
                changes,
                counter,
                outcome,
            });
            // Every other choice can be non-terminating as well.
            let does_not_terminate =
                transitions.last().is_some_and(|last| matches!(last.outcome, TransitionOutcome::NonTerminating(_)));
            if does_not_terminate || !self.environment.advance() {
                break;
            }
        }
        self.environment.offer(None);
    }

    /// Fires a step in the state that `restore` loads; none at a limit, `Some(None)` if the message of the environment
    /// does not match. An unfinished step has a state that repeats.
    fn fire(&mut self, step: Step, restore: &dyn Fn(&mut SuccessorGenerator<'m>)) -> Option<Option<Effect>> {
        let effect = self.with_growing_fuel(|generator, mut fuel| {
            restore(generator);
            generator.environment.rewind();
            generator.begin_recording();
            let SuccessorGenerator { machine, state, environment, .. } = generator;
            if let Step::FromEnvironment { instance, branch } = step {
                if !machine.environment_ready(state, environment, instance, branch) {
                    return None;
                }
                restore(generator);
            }
            let SuccessorGenerator { machine, state, environment, .. } = generator;
            let effect = machine.step(step, state, environment, &mut fuel);
            Some(if machine.fuel_exhausted() { Effect::Unfinished } else { effect })
        })?;
        if effect == Some(Effect::Unfinished) && !self.machine.has_repetition() {
            self.limit_reached = Some(Limit::LocalSteps);
            return None;
        }
        Some(effect)
    }

    /// Runs an attempt with a fuel limit, and again with twice as much while fuel runs out, up to [`MAX_FUEL`]. None if
    /// the deadline does not allow it.
    pub(crate) fn with_growing_fuel<T>(
        &mut self,
        mut attempt: impl FnMut(&mut SuccessorGenerator<'m>, u64) -> T,
    ) -> Option<T>
    where
        T: FuelLimited,
    {
        let mut fuel_limit = INITIAL_FUEL;
        loop {
            self.machine.set_fuel_limit(fuel_limit);
            let started = self.limits.time().map(|limit| (limit, self.stopwatch.elapsed()));
            let result = attempt(self, fuel_limit);
            let has_too_many_choices = self.environment.choice_count() > MAX_CHOICES;
            if !result.ran_out_of_fuel() && !self.machine.fuel_exhausted()
                || self.machine.has_repetition()
                || fuel_limit == MAX_FUEL
                || has_too_many_choices
            {
                return Some(result);
            }
            let is_late = |(limit, started): (Duration, Duration)| {
                let now = self.stopwatch.elapsed();
                now + 2 * now.saturating_sub(started) > limit
            };
            if started.is_some_and(is_late) {
                self.limit_reached = Some(Limit::Time);
                return None;
            }
            if self.is_at_limit(0) {
                return None;
            }
            fuel_limit *= 2;
        }
    }

    #[cold]
    pub(crate) fn compute_rendezvous(
        &mut self,
        sender: (u32, ComponentId),
        receiver: (u32, ComponentId),
    ) -> (u32, u32) {
        let restore = |generator: &mut SuccessorGenerator<'m>| {
            generator.load(sender.0, sender.1);
            generator.load(receiver.0, receiver.1);
        };
        let mut transitions = Vec::new();
        restore(self);
        let outs = self.open_branches(sender.0).0;
        let ins = self.open_branches(receiver.0).1;
        for (sender_branch, out) in &outs {
            for (receiver_branch, _) in ins.iter().filter(|(_, channel)| channel == out) {
                let (from, to) = ((sender.0, *sender_branch), (receiver.0, *receiver_branch));
                let can_communicate = self.with_growing_fuel(|generator, _| {
                    restore(generator);
                    generator.environment.choose(&[]);
                    generator.machine.can_rendezvous(&mut generator.state, &mut generator.environment, from, to)
                });
                if can_communicate == Some(true) {
                    let (sender_branch, receiver_branch) = (from.1, to.1);
                    let step =
                        Step::Communicate { sender: sender.0, sender_branch, receiver: receiver.0, receiver_branch };
                    self.fire_with_every_choice(step, None, &[sender.0, receiver.0], &restore, &mut transitions);
                }
            }
        }
        let range = self.store_transitions(transitions);
        let pair = sender.0 * self.plan.instances as u32 + receiver.0;
        self.rendezvous.insert((pair, sender.1, receiver.1), range);
        range
    }

    /// The open internal branches of the loaded instance: those that send, those that receive.
    fn open_branches(&self, instance: u32) -> (OpenBranches, OpenBranches) {
        let (mut outs, mut ins) = (Vec::new(), Vec::new());
        for (branch, open_branch) in self.machine.instance_view(&self.state, instance).branches.iter().enumerate() {
            match open_branch {
                Some(OpenBranch::Out(channel)) => outs.push((branch as u32, *channel)),
                Some(OpenBranch::In(channel)) => ins.push((branch as u32, *channel)),
                Some(OpenBranch::FromEnvironment(_) | OpenBranch::ToEnvironment(_) | OpenBranch::After) | None => {}
            }
        }
        (outs, ins)
    }
}

/// Whether an instance has terminated and waits only for properties to see its variables.
fn waits_for_nothing(view: &InstanceView) -> bool {
    matches!(view.control, Control::Waiting { .. }) && view.branches.is_empty() && !view.otherwise
}

/// A message of the environment by channel and number, or none.
type Offer = Option<(ChannelId, usize)>;

/// The steps of one instance without a partner, each with the messages of the environment to try.
fn single_instance_steps(
    instance: u32,
    view: &InstanceView,
    environment_values: &EnvironmentValues,
) -> Vec<(Step, Vec<Offer>)> {
    let mut steps = Vec::new();
    if let Control::Running { .. } = view.control {
        steps.push((Step::Local { instance }, vec![None]));
    }
    for (branch, open_branch) in view.branches.iter().enumerate() {
        let branch = branch as u32;
        match open_branch {
            Some(OpenBranch::FromEnvironment(channel)) => {
                let count = environment_values.messages[channel.0 as usize].len();
                let messages = (0..count).map(|number| Some((*channel, number))).collect();
                steps.push((Step::FromEnvironment { instance, branch }, messages));
            }
            Some(OpenBranch::ToEnvironment(_)) => steps.push((Step::ToEnvironment { instance, branch }, vec![None])),
            Some(OpenBranch::After) => steps.push((Step::After { instance, branch }, vec![None])),
            Some(OpenBranch::In(_) | OpenBranch::Out(_)) | None => {}
        }
    }
    if view.otherwise {
        steps.push((Step::Else { instance }, vec![None]));
    }
    steps
}
