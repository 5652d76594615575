//! The transition relation: the successors of a state that is given as a vector of component numbers.
//!
//! A transition of one instance, or of the two partners of a rendezvous, depends on their component states alone; it is
//! computed once by the flow IR's `step` and cached (`transition_cache`). Otherwise each transition is recomputed on
//! the complete state (`monolithic`): in programs with pools, with an operation of more than 63 branches, or with fast
//! paths. `partial_order_reduction` selects a persistent subset, `valuation` evaluates the atomic propositions of a
//! property.

mod monolithic;
mod partial_order_reduction;
mod transition;
mod transition_cache;
mod valuation;

pub(crate) use partial_order_reduction::waits_for_environment;
pub(crate) use transition::{CachedDelta, Transition, TransitionId, TransitionOutcome};
pub(crate) use transition_cache::{MAX_CHOICES, MAX_FUEL};

use crate::collapse::ComponentId;
use crate::environment::{OpenEnvironment, QuiescenceProbe};
use crate::exploration_plan::{ExplorationPlan, SuccessorMode};
use crate::options::{Limit, Limits};
use crate::questions::NumberedAnswer;
use crate::store;
use crate::timer::Stopwatch;
use quaject_esp_exec::coverage::Coverage;
use quaject_esp_exec::explore::leak::LeakRoots;
use quaject_esp_exec::priority;
use quaject_esp_exec::report::Outcome;
use quaject_esp_exec::step::{Checks, Machine, State, Step, TooLarge};
use quaject_esp_ir::ir::{MemoryMode, PoolId};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use transition_cache::LocalTransitions;

/// The maximum number of cached rendezvous, as pairs of component states.
const MAX_CACHED_RENDEZVOUS: usize = 1 << 23;
/// Marks a component state without an entry in the cache.
pub(crate) const UNKNOWN: u32 = u32::MAX;

/// Appends answers of pure functions as bytes.
fn write_answers(answers: &[NumberedAnswer], bytes: &mut Vec<u8>) {
    for number in answers.iter().flat_map(|(question, answer)| [question, answer]) {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
}

/// The inverse of [`write_answers`].
fn read_answers(bytes: &[u8]) -> Vec<NumberedAnswer> {
    let mut numbers =
        bytes.chunks_exact(4).map(|bytes| u32::from_le_bytes(bytes.try_into().expect("a chunk has 4 bytes")));
    std::iter::from_fn(|| Some((numbers.next()?, numbers.next()?))).collect()
}

/// One thread's successor generator with its cache.
pub(crate) struct SuccessorGenerator<'m> {
    pub(crate) plan: &'m ExplorationPlan<'m>,
    pub(crate) machine: Machine<'m>,
    pub(crate) state: State,
    pub(crate) environment: OpenEnvironment,
    /// Per component index and component: the index of its entry in `local_transitions_of`.
    pub(crate) cache_index: Vec<Vec<u32>>,
    pub(crate) local_transitions_of: Vec<LocalTransitions>,
    /// All cached transitions, and their cached effects.
    pub(crate) transitions: Vec<Transition>,
    pub(crate) deltas: Vec<CachedDelta>,
    /// Potential receivers of pending sends: entries of `local_transitions_of` refer to ranges of it.
    pub(crate) partners: Vec<u32>,
    /// Transitions of a rendezvous by pair of instances and their component states: a range of `transitions`.
    pub(crate) rendezvous: FxHashMap<(u32, ComponentId, ComponentId), (u32, u32)>,
    /// The enabled transitions of the current state.
    pub(crate) enabled: Vec<TransitionId>,
    /// Per instance: the branches that take part in an enabled transition of the current state.
    pub(crate) enabled_branches: Vec<u64>,
    /// Per enabled transition: its participants. Scratch memory of the reduction.
    pub(crate) participant_sets: Vec<u128>,
    /// Scratch memory of a component state.
    pub(crate) scratch: Vec<u8>,
    /// Per instance whose labels a property names: the labels it has passed since its last operation, in the order of
    /// [`ExplorationPlan::label_atoms`].
    pub(crate) passed_labels: Vec<u8>,
    /// Per instance: the deadlines that local code may have moved since the last operation, in the order of
    /// [`ExplorationPlan::deadlines`].
    pub(crate) moved_deadlines: Vec<u64>,
    /// Per instance: the variables that a property names, with their values at the instance's last wait.
    pub(crate) variable_values: Vec<Vec<i128>>,
    /// The roots from which objects are reachable, if programs release objects explicitly.
    pub(crate) leak_roots: Option<LeakRoots>,
    /// The coverage recorded before the machine's own record was last cleared.
    pub(crate) executed: Option<Coverage>,
    /// The time since the start of the search.
    pub(crate) stopwatch: Stopwatch,
    limits: Limits,
    /// The limit that was reached; `enabled` is incomplete then.
    pub(crate) limit_reached: Option<Limit>,
}

impl<'m> SuccessorGenerator<'m> {
    pub(crate) fn new(plan: &'m ExplorationPlan<'m>) -> Result<SuccessorGenerator<'m>, TooLarge> {
        let mut machine = Machine::new(&plan.model.program, Checks::On)?;
        machine.record_coverage();
        machine.set_fuel_limit(MAX_FUEL);
        machine.detect_repetition();
        let mut state = machine.start();
        for instance in 0..plan.instances as u32 {
            if plan.is_omitted(instance) {
                state.omit_instance(instance);
            }
        }
        let leak_roots = match plan.model.program.memory {
            MemoryMode::Manual => Some(machine.leak_roots()),
            MemoryMode::Automatic => None,
        };
        Ok(SuccessorGenerator {
            plan,
            leak_roots,
            machine,
            state,
            environment: OpenEnvironment::new(Arc::clone(&plan.environment_values)),
            cache_index: (0..plan.instances).map(|_| Vec::new()).collect(),
            local_transitions_of: Vec::new(),
            transitions: Vec::new(),
            deltas: Vec::new(),
            partners: Vec::new(),
            rendezvous: FxHashMap::default(),
            enabled: Vec::new(),
            enabled_branches: vec![0; plan.instances],
            participant_sets: Vec::new(),
            scratch: Vec::new(),
            passed_labels: vec![0; plan.instances],
            moved_deadlines: vec![0; plan.instances],
            variable_values: plan.initial_values(),
            executed: None,
            stopwatch: Stopwatch::start(None),
            limits: Limits::default(),
            limit_reached: None,
        })
    }

    /// From now on stops computing transitions of one state at these limits, counted from `started`, or when the search
    /// is interrupted.
    pub(crate) fn set_limits(&mut self, limits: &Limits, started: Stopwatch) {
        self.stopwatch = started;
        self.limits = limits.clone();
    }

    /// Whether a limit is reached, given the number of transitions computed for the current state so far.
    pub(crate) fn is_at_limit(&mut self, transitions: usize) -> bool {
        if self.limit_reached.is_some() {
            return true;
        }
        if self.limits.time().is_some_and(|limit| self.stopwatch.elapsed() >= limit) {
            self.limit_reached = Some(Limit::Time);
        }
        if self.limits.bytes.is_some_and(|max| (transitions * size_of::<Transition>()) as u64 > max) {
            self.limit_reached = Some(Limit::Memory);
        }
        if self.limits.is_interrupted() {
            self.limit_reached = Some(Limit::Interrupted);
        }
        self.limit_reached.is_some()
    }

    /// The state vector of the initial state. To be called first.
    pub(crate) fn start(&mut self) -> Vec<u32> {
        let mut state_vector = vec![0; self.plan.width];
        self.environment.give(&[]);
        self.environment.collect_questions();
        for component_index in self.plan.component_indices() {
            // If the table is full, the search reports the limit before it takes a transition.
            state_vector[component_index as usize] = self.save(component_index).unwrap_or(0);
        }
        state_vector
    }

    /// The code executed so far.
    pub(crate) fn coverage(&mut self) -> Option<Coverage> {
        let mut coverage = self.machine.coverage()?.clone();
        self.executed.iter().for_each(|executed| coverage.add(executed));
        Some(coverage)
    }

    /// Loads a state.
    pub(crate) fn load_all(&mut self, state_vector: &[u32]) {
        for component_index in self.plan.component_indices() {
            self.load(component_index, state_vector[component_index as usize]);
        }
    }

    pub(crate) fn load(&mut self, component_index: u32, component: ComponentId) {
        self.scratch.clear();
        self.plan.components.read(self.plan.table_of_component[component_index as usize], component, &mut self.scratch);
        if self.plan.shared == Some(component_index) {
            self.machine.load_shared(&mut self.state, &self.scratch);
        } else if self.plan.answers == Some(component_index) {
            self.environment.give(&read_answers(&self.scratch));
        } else {
            let rest = self.read_propositions(component_index);
            self.machine.load_instance(&mut self.state, component_index, &self.scratch[rest..]);
        }
    }

    /// The number of the component state at an index. None if its table is full, which is a limit of the search.
    pub(crate) fn save(&mut self, component_index: u32) -> Option<ComponentId> {
        self.scratch.clear();
        if self.plan.shared == Some(component_index) {
            self.state.save_shared(&mut self.scratch);
        } else if self.plan.answers == Some(component_index) {
            let answers = self.environment.answers_in_use(&|question| self.plan.keeps_answer(question, &self.state));
            write_answers(&answers, &mut self.scratch);
        } else {
            self.write_propositions(component_index);
            self.state.save_instance(component_index, &mut self.scratch);
        }
        let number = self.plan.components.number(self.plan.table_of_component[component_index as usize], &self.scratch);
        if number.is_none() {
            self.limit_reached.get_or_insert(Limit::Memory);
        }
        number
    }

    /// The machine, the loaded state and the environment, to execute a run step by step.
    pub(crate) fn execution(&mut self) -> (&mut Machine<'m>, &mut State, &mut OpenEnvironment) {
        (&mut self.machine, &mut self.state, &mut self.environment)
    }

    /// The outcome of a quiescent state: quiescent, terminated, or deadlocked.
    pub(crate) fn quiescence(&mut self, state_vector: &[u32]) -> Outcome {
        self.load_all(state_vector);
        self.quiescence_of_loaded()
    }

    /// As [`Self::quiescence`], of the loaded state.
    pub(crate) fn quiescence_of_loaded(&mut self) -> Outcome {
        self.environment.offer(None);
        self.environment.set_quiescence_probe(QuiescenceProbe::AllChannelsOffer);
        let outcome = self.machine.classify_quiescence(&mut self.state, &mut self.environment);
        self.environment.set_quiescence_probe(QuiescenceProbe::Actual);
        outcome
    }

    /// A pool with an object that is no longer reachable.
    pub(crate) fn leak(&mut self, state_vector: &[u32]) -> Option<PoolId> {
        if self.leak_roots.is_none() || self.plan.shared.is_none() {
            return None;
        }
        self.load_all(state_vector);
        self.leak_in_loaded()
    }

    /// As [`Self::leak`], in the loaded state.
    pub(crate) fn leak_in_loaded(&self) -> Option<PoolId> {
        self.machine.leaked_object(&self.state, self.leak_roots.as_ref()?)
    }

    pub(crate) fn get(&self, transition: TransitionId) -> &Transition {
        &self.transitions[transition.0 as usize]
    }

    /// The cached transitions of an instance; [`Self::local_transitions`] has been called for this component.
    #[inline]
    pub(crate) fn cached_local(&self, instance: u32, component: ComponentId) -> &LocalTransitions {
        &self.local_transitions_of[self.cache_index[instance as usize][component as usize] as usize]
    }

    /// The index of the cached transitions of an instance in this component state; computes them if they are not
    /// cached.
    #[inline]
    pub(crate) fn local_transitions(&mut self, instance: u32, component: ComponentId) -> u32 {
        match self.cache_index[instance as usize].get(component as usize) {
            Some(entry) if *entry != UNKNOWN => *entry,
            Some(_) | None => self.compute_uncached(instance, component),
        }
    }

    /// The successor by an enabled transition and its hash, given the state's hash. In [`SuccessorMode::EagerLocal`]
    /// the participants then take their eager local steps.
    #[inline]
    pub(crate) fn apply(&mut self, transition: TransitionId, from: &[u32], hash: u64, to: &mut [u32]) -> u64 {
        loop {
            match self.deltas[transition.0 as usize] {
                CachedDelta::TwoComponents { indices: [first, second], components, change } => {
                    to.copy_from_slice(from);
                    to[first as usize] = components[0];
                    to[second as usize] = components[1];
                    return hash.wrapping_add(change);
                }
                CachedDelta::General => return self.apply_general(transition, from, hash, to),
                CachedDelta::Unknown => self.deltas[transition.0 as usize] = self.compute_delta(transition, from),
            }
        }
    }

    /// The effect of a transition that changes at most two components: the same in every state with these components.
    #[cold]
    fn compute_delta(&mut self, transition: TransitionId, from: &[u32]) -> CachedDelta {
        let transition = self.get(transition);
        let (indices, raw) = match (&transition.changes[..], transition.counter) {
            ([(component_index, component)], None) => ([*component_index; 2], [*component; 2]),
            ([first, second], None) => ([first.0, second.0], [first.1, second.1]),
            (_, _) => return CachedDelta::General,
        };
        if self.plan.successor_mode == SuccessorMode::Monolithic {
            return CachedDelta::General;
        }
        let components = [self.after_eager_steps(indices[0], raw[0]), self.after_eager_steps(indices[1], raw[1])];
        let change_of = |component_index: u32, component| {
            let before = store::hash_of(component_index as usize, from[component_index as usize]);
            store::hash_of(component_index as usize, component).wrapping_sub(before)
        };
        let first = change_of(indices[0], components[0]);
        let change =
            if indices[0] == indices[1] { first } else { first.wrapping_add(change_of(indices[1], components[1])) };
        CachedDelta::TwoComponents { indices, components, change }
    }

    fn apply_general(&mut self, transition: TransitionId, from: &[u32], hash: u64, to: &mut [u32]) -> u64 {
        to.copy_from_slice(from);
        let mut hash = hash;
        let (count, counter) = {
            let transition = self.get(transition);
            (transition.changes.len(), transition.counter)
        };
        for index in 0..count {
            let (component_index, component) = self.get(transition).changes[index];
            let component = self.after_eager_steps(component_index, component);
            hash = hash
                .wrapping_sub(store::hash_of(component_index as usize, to[component_index as usize]))
                .wrapping_add(store::hash_of(component_index as usize, component));
            to[component_index as usize] = component;
        }
        if let Some(component_index) = counter {
            let component_index = component_index as usize;
            hash = hash
                .wrapping_sub(store::hash_of(component_index, to[component_index]))
                .wrapping_add(store::hash_of(component_index, to[component_index] + 1));
            to[component_index] += 1;
        }
        hash
    }

    /// The component that an instance reaches by its eager local step, or the same one.
    pub(crate) fn after_eager_steps(&mut self, component_index: u32, component: ComponentId) -> ComponentId {
        if self.plan.successor_mode != SuccessorMode::EagerLocal || component_index as usize >= self.plan.instances {
            return component;
        }
        let entry = self.local_transitions(component_index, component);
        self.local_transitions_of[entry as usize].eager_target
    }

    /// Takes the eager local step of every instance.
    pub(crate) fn run_eager_steps(&mut self, state_vector: &mut [u32]) {
        for instance in 0..self.plan.instances as u32 {
            state_vector[instance as usize] = self.after_eager_steps(instance, state_vector[instance as usize]);
        }
    }

    /// Computes the enabled transitions of a state.
    pub(crate) fn find_enabled(&mut self, state_vector: &[u32]) {
        self.enabled.clear();
        match self.plan.successor_mode {
            SuccessorMode::Monolithic => self.find_enabled_monolithic(state_vector),
            SuccessorMode::SingleStep | SuccessorMode::EagerLocal => self.find_enabled_cached(state_vector),
        }
    }

    fn find_enabled_cached(&mut self, state_vector: &[u32]) {
        let (mut needs_priority_filter, mut receives) = (false, 0);
        for instance in 0..self.plan.instances as u32 {
            let entry = self.local_transitions(instance, state_vector[instance as usize]);
            let local = &self.local_transitions_of[entry as usize];
            needs_priority_filter |= local.needs_priority_filter;
            receives |= local.in_channels;
            for number in local.first..local.end {
                let counter = self.transitions[number as usize].counter;
                if counter.is_none_or(|counter| self.plan.may_count(counter, state_vector[counter as usize])) {
                    self.enabled.push(TransitionId(number));
                }
            }
        }
        for sender in 0..self.plan.instances as u32 {
            let from = state_vector[sender as usize];
            let local = self.cached_local(sender, from);
            if local.out_channels & receives == 0 {
                continue;
            }
            let (sends, partners) = (local.out_channels, local.partners.clone());
            for index in partners {
                let receiver = self.partners[index as usize];
                let to = state_vector[receiver as usize];
                if self.cached_local(receiver, to).in_channels & sends != 0 {
                    let (first, end) = self.rendezvous_of((sender, from), (receiver, to));
                    self.enabled.extend((first..end).map(TransitionId));
                }
            }
        }
        if needs_priority_filter {
            self.filter_by_priority(state_vector);
        }
    }

    /// Removes transitions that a `pri alt` with a preferred branch enabled, or an `else` with another branch enabled,
    /// forbids.
    fn filter_by_priority(&mut self, state_vector: &[u32]) {
        let (mut enabled_branches, mut candidates) =
            (std::mem::take(&mut self.enabled_branches), std::mem::take(&mut self.enabled));
        enabled_branches.fill(0);
        for transition in &candidates {
            if let Step::Communicate { sender, sender_branch, receiver, receiver_branch } = self.get(*transition).step {
                enabled_branches[sender as usize] |= 1 << sender_branch;
                enabled_branches[receiver as usize] |= 1 << receiver_branch;
            }
        }
        let is_first = |instance: u32, branch: u32| {
            let local = self.cached_local(instance, state_vector[instance as usize]);
            !local.is_pri_alt || enabled_branches[instance as usize] & ((1u64 << branch) - 1) == 0
        };
        let is_priority = |instance: u32| self.cached_local(instance, state_vector[instance as usize]).is_pri_alt;
        // A cycle of preferences needs two `pri alt`s.
        let contradict = (0..self.plan.instances as u32).filter(|instance| is_priority(*instance)).count() > 1;
        let mut rendezvous: Vec<Step> = Vec::new();
        if contradict {
            let steps = candidates.iter().map(|transition| self.get(*transition).step);
            rendezvous.extend(steps.filter(|step| matches!(step, Step::Communicate { .. })));
        }
        let is_in_cycle = |step: Step| {
            let other = (!rendezvous.contains(&step)).then_some(step);
            let steps: Vec<Step> = rendezvous.iter().copied().chain(other).collect();
            priority::is_allowed(step, &steps, &is_priority)
        };
        let allowed = |transition: &TransitionId| match self.get(*transition).step {
            Step::Local { .. } => true,
            Step::Else { instance } => enabled_branches[instance as usize] == 0,
            step @ (Step::Communicate { .. }
            | Step::FromEnvironment { .. }
            | Step::ToEnvironment { .. }
            | Step::After { .. }) => {
                priority::participants(step).all(|(instance, branch)| is_first(instance, branch))
                    || contradict && is_in_cycle(step)
            }
        };
        candidates.retain(allowed);
        self.enabled = candidates;
        self.enabled_branches = enabled_branches;
    }

    /// The transitions of a rendezvous between two instances in these component states: a range of `transitions`.
    #[inline]
    fn rendezvous_of(&mut self, sender: (u32, ComponentId), receiver: (u32, ComponentId)) -> (u32, u32) {
        let pair = sender.0 * self.plan.instances as u32 + receiver.0;
        match self.rendezvous.get(&(pair, sender.1, receiver.1)) {
            Some(range) => *range,
            None => self.compute_rendezvous(sender, receiver),
        }
    }

    /// Empties the cache when it is too large. Transition numbers are invalid then.
    pub(crate) fn evict_if_large(&mut self) {
        if self.rendezvous.len() > MAX_CACHED_RENDEZVOUS {
            self.cache_index.iter_mut().for_each(Vec::clear);
            self.local_transitions_of.clear();
            self.transitions.clear();
            self.deltas.clear();
            self.partners.clear();
            self.rendezvous.clear();
            self.enabled.clear();
        }
    }

    /// Approximate memory of the cache.
    pub(crate) fn memory_bytes(&self) -> usize {
        let known: usize = self.cache_index.iter().map(Vec::len).sum();
        let local_transitions_of =
            4 * (known + self.partners.len()) + self.local_transitions_of.len() * size_of::<LocalTransitions>();
        // The changes of a transition are a small allocation of their own.
        let transitions = self.transitions.len() * (size_of::<Transition>() + size_of::<CachedDelta>() + 32);
        local_transitions_of + transitions + self.rendezvous.capacity() * 21
    }
}
