//! The steps from a state given as numbers of parts, looked up among those that `learn` has worked out. Programs with
//! pools, where one step can concern all instances, are stepped as a whole.

mod monolithic;
mod partial_order_reduction;
mod transition;
mod transition_cache;
mod valuation;

pub(crate) use partial_order_reduction::waits_for_environment;
pub(crate) use transition::{CachedDelta, Transition, TransitionId, TransitionOutcome};
pub(crate) use transition_cache::MAX_FUEL;

use crate::collapse::ComponentId;
use crate::environment::{OpenEnvironment, QuiescenceProbe};
use crate::exploration_plan::{ExplorationPlan, SuccessorMode};
use crate::options::{Limit, Limits};
use crate::store;
use quaject_esp_exec::coverage::Coverage;
use quaject_esp_exec::leak::LeakRoots;
use quaject_esp_exec::priority;
use quaject_esp_exec::report::Outcome;
use quaject_esp_exec::step::{Checks, Machine, State, Step, TooLarge};
use quaject_esp_ir::ir::{MemoryMode, PoolId};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::time::Instant;
use transition_cache::LocalTransitions;

/// Most remembered meetings of two instances.
const MAX_CACHED_RENDEZVOUS: usize = 1 << 23;
/// No information yet.
pub(crate) const UNKNOWN: u32 = u32::MAX;

/// One thread's view of a space, with all it has worked out so far.
pub(crate) struct SuccessorGenerator<'m> {
    pub(crate) plan: &'m ExplorationPlan<'m>,
    pub(crate) machine: Machine<'m>,
    pub(crate) state: State,
    pub(crate) environment: OpenEnvironment,
    /// Per slot and part: the number of what is known of it.
    pub(crate) cache_index: Vec<Vec<u32>>,
    pub(crate) local_transitions_of: Vec<LocalTransitions>,
    /// All moves that are remembered, and what they do.
    pub(crate) transitions: Vec<Transition>,
    pub(crate) deltas: Vec<CachedDelta>,
    /// Who can receive what is on offer, for all infos.
    pub(crate) partners: Vec<u32>,
    /// What happens when two in certain parts meet: a range of `moves`.
    pub(crate) rendezvous: FxHashMap<(u32, ComponentId, ComponentId), (u32, u32)>,
    /// The moves of the state at hand.
    pub(crate) enabled: Vec<TransitionId>,
    /// Per instance: which of its branches can meet somebody's in the state at hand.
    pub(crate) enabled_branches: Vec<u64>,
    /// Per move of the state at hand: who takes part, while moves are chosen.
    pub(crate) participant_sets: Vec<u128>,
    pub(crate) bytes: Vec<u8>,
    /// Per instance, for those with labels that a property names: which of them it has passed on its way to where it
    /// stands, in the order of [`ExplorationPlan::watched`].
    pub(crate) passed_labels: Vec<u8>,
    /// Per instance: the variables that a property asks for, as they were where it last waited.
    pub(crate) variable_values: Vec<Vec<i128>>,
    /// What leads to objects, if programs have to release them themselves.
    pub(crate) holders: Option<LeakRoots>,
    /// What was executed before the machine's own record was last cleared.
    pub(crate) executed: Option<Coverage>,
    /// When no more moves are to be worked out, and how much memory those of one state may take.
    pub(crate) deadline: Option<Instant>,
    limits: Limits,
    /// The limit at which moves were left out; those at hand are not all then.
    pub(crate) limit_reached: Option<Limit>,
}

impl<'m> SuccessorGenerator<'m> {
    pub(crate) fn new(plan: &'m ExplorationPlan<'m>) -> Result<SuccessorGenerator<'m>, TooLarge> {
        let mut machine = Machine::new(&plan.model.program, Checks::On)?;
        machine.watch();
        machine.set_fuel_limit(MAX_FUEL);
        let mut state = machine.start();
        for instance in 0..plan.instances as u32 {
            if plan.is_left_out(instance) {
                state.leave_out(instance);
            }
        }
        let holders = match plan.model.program.memory {
            MemoryMode::Manual => Some(machine.leak_roots()),
            MemoryMode::Automatic => None,
        };
        Ok(SuccessorGenerator {
            plan,
            holders,
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
            bytes: Vec::new(),
            passed_labels: vec![0; plan.instances],
            variable_values: plan.tracked_variables.iter().map(|names| vec![0; names.len()]).collect(),
            executed: None,
            deadline: None,
            limits: Limits::default(),
            limit_reached: None,
        })
    }

    /// Moves are left out from now on where they would take longer, or more memory, than this from `started` on, or once
    /// somebody wishes the search to end.
    pub(crate) fn set_limits(&mut self, limits: &Limits, started: Instant) {
        self.deadline = limits.time.and_then(|time| started.checked_add(time));
        self.limits = limits.clone();
    }

    /// Whether a limit is reached while the moves of one state are worked out, so many so far.
    pub(crate) fn is_at_limit(&mut self, transitions: usize) -> bool {
        if self.limit_reached.is_some() {
            return true;
        }
        if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            self.limit_reached = Some(Limit::Time);
        }
        if self.limits.bytes.is_some_and(|most| (transitions * size_of::<Transition>()) as u64 > most) {
            self.limit_reached = Some(Limit::Memory);
        }
        if self.limits.is_interrupted() {
            self.limit_reached = Some(Limit::Interrupted);
        }
        self.limit_reached.is_some()
    }

    /// The numbers of the first state. To be asked of a new mover.
    pub(crate) fn start(&mut self) -> Vec<u32> {
        let mut numbers = vec![0; self.plan.width];
        for slot in 0..self.plan.instances as u32 + u32::from(self.plan.shared.is_some()) {
            numbers[slot as usize] = self.save(slot);
        }
        numbers
    }

    /// What its machine has executed.
    pub(crate) fn coverage(&mut self) -> Option<Coverage> {
        let mut coverage = self.machine.coverage()?.clone();
        self.executed.iter().for_each(|executed| coverage.add(executed));
        Some(coverage)
    }

    /// Makes the state at hand this one.
    pub(crate) fn load_all(&mut self, numbers: &[u32]) {
        for slot in 0..self.plan.instances as u32 + u32::from(self.plan.shared.is_some()) {
            self.load(slot, numbers[slot as usize]);
        }
    }

    pub(crate) fn load(&mut self, slot: u32, component: ComponentId) {
        self.bytes.clear();
        self.plan.components.read(self.plan.table_of_slot[slot as usize], component, &mut self.bytes);
        if self.plan.shared == Some(slot) {
            self.machine.load_shared(&mut self.state, &self.bytes);
        } else {
            let rest = self.read_propositions(slot);
            self.machine.load_instance(&mut self.state, slot, &self.bytes[rest..]);
        }
    }

    pub(crate) fn save(&mut self, slot: u32) -> ComponentId {
        self.bytes.clear();
        if self.plan.shared == Some(slot) {
            self.state.save_shared(&mut self.bytes);
        } else {
            self.write_propositions(slot);
            self.state.save_instance(slot, &mut self.bytes);
        }
        self.plan.components.number(self.plan.table_of_slot[slot as usize], &self.bytes)
    }

    /// The machine, the state loaded last and the world, for those who tell of a run.
    pub(crate) fn execution(&mut self) -> (&mut Machine<'m>, &mut State, &mut OpenEnvironment) {
        (&mut self.machine, &mut self.state, &mut self.environment)
    }

    /// What a state is in which only the world and the clock could go on.
    pub(crate) fn quiescence(&mut self, numbers: &[u32]) -> Outcome {
        self.load_all(numbers);
        self.quiescence_of_loaded()
    }

    /// Likewise of the state that was loaded or stepped to last.
    pub(crate) fn quiescence_of_loaded(&mut self) -> Outcome {
        self.environment.offer(None);
        self.environment.set_quiescence_probe(QuiescenceProbe::Yes);
        let outcome = self.machine.classify_quiescence(&mut self.state, &mut self.environment);
        self.environment.set_quiescence_probe(QuiescenceProbe::No);
        outcome
    }

    /// An object that nobody can release any more.
    pub(crate) fn leak(&mut self, numbers: &[u32]) -> Option<PoolId> {
        if self.holders.is_none() || self.plan.shared.is_none() {
            return None;
        }
        self.load_all(numbers);
        self.leak_in_loaded()
    }

    /// Likewise in the state that was loaded or stepped to last.
    pub(crate) fn leak_in_loaded(&self) -> Option<PoolId> {
        self.machine.leaked_object(&self.state, self.holders.as_ref()?)
    }

    pub(crate) fn get(&self, found: TransitionId) -> &Transition {
        &self.transitions[found.0 as usize]
    }

    /// What is known of an instance whose moves have been looked for.
    #[inline]
    pub(crate) fn cached_local(&self, slot: u32, component: ComponentId) -> &LocalTransitions {
        &self.local_transitions_of[self.cache_index[slot as usize][component as usize] as usize]
    }

    /// Works out what an instance in this part is and can do alone.
    #[inline]
    pub(crate) fn local_transitions(&mut self, slot: u32, component: ComponentId) -> u32 {
        match self.cache_index[slot as usize].get(component as usize) {
            Some(info) if *info != UNKNOWN => *info,
            Some(_) | None => self.compute_uncached(slot, component),
        }
    }

    /// Where a move of the state at hand leads, and the hash of that, given the hash of the state. With
    /// [`SuccessorMode::Settled`] those who moved then run their own code.
    #[inline]
    pub(crate) fn apply(&mut self, found: TransitionId, from: &[u32], hash: u64, to: &mut [u32]) -> u64 {
        loop {
            match self.deltas[found.0 as usize] {
                CachedDelta::TwoSlots { slots: [first, second], components, change } => {
                    to.copy_from_slice(from);
                    to[first as usize] = components[0];
                    to[second as usize] = components[1];
                    return hash.wrapping_add(change);
                }
                CachedDelta::General => return self.apply_general(found, from, hash, to),
                CachedDelta::Unknown => self.deltas[found.0 as usize] = self.compute_delta(found, from),
            }
        }
    }

    /// What a move of one part, or of two that meet, does: the same in every state with these parts.
    #[cold]
    fn compute_delta(&mut self, found: TransitionId, from: &[u32]) -> CachedDelta {
        let found = self.get(found);
        let (slots, raw) = match (&found.changes[..], found.counter) {
            ([(slot, component)], None) => ([*slot; 2], [*component; 2]),
            ([first, second], None) => ([first.0, second.0], [first.1, second.1]),
            (_, _) => return CachedDelta::General,
        };
        if self.plan.successor_mode == SuccessorMode::Monolithic {
            return CachedDelta::General;
        }
        let components = [self.after_eager_steps(slots[0], raw[0]), self.after_eager_steps(slots[1], raw[1])];
        let change_of = |slot: u32, component| {
            let before = store::hash_of(slot as usize, from[slot as usize]);
            store::hash_of(slot as usize, component).wrapping_sub(before)
        };
        let first = change_of(slots[0], components[0]);
        let change = if slots[0] == slots[1] { first } else { first.wrapping_add(change_of(slots[1], components[1])) };
        CachedDelta::TwoSlots { slots, components, change }
    }

    fn apply_general(&mut self, found: TransitionId, from: &[u32], hash: u64, to: &mut [u32]) -> u64 {
        to.copy_from_slice(from);
        let mut hash = hash;
        let (count, counter) = {
            let found = self.get(found);
            (found.changes.len(), found.counter)
        };
        for index in 0..count {
            let (slot, component) = self.get(found).changes[index];
            let component = self.after_eager_steps(slot, component);
            hash = hash
                .wrapping_sub(store::hash_of(slot as usize, to[slot as usize]))
                .wrapping_add(store::hash_of(slot as usize, component));
            to[slot as usize] = component;
        }
        if let Some(slot) = counter {
            let slot = slot as usize;
            hash = hash.wrapping_sub(store::hash_of(slot, to[slot])).wrapping_add(store::hash_of(slot, to[slot] + 1));
            to[slot] += 1;
        }
        hash
    }

    /// Where an instance's own code takes it if nobody can tell when it does so.
    pub(crate) fn after_eager_steps(&mut self, slot: u32, component: ComponentId) -> ComponentId {
        if self.plan.successor_mode != SuccessorMode::EagerLocal || slot as usize >= self.plan.instances {
            return component;
        }
        let info = self.local_transitions(slot, component);
        self.local_transitions_of[info as usize].eager_target
    }

    /// Lets everybody run their own code, as far as nobody can tell when they do so.
    pub(crate) fn run_eager_steps(&mut self, numbers: &mut [u32]) {
        for slot in 0..self.plan.instances as u32 {
            numbers[slot as usize] = self.after_eager_steps(slot, numbers[slot as usize]);
        }
    }

    /// Finds all moves of a state.
    pub(crate) fn find_enabled(&mut self, numbers: &[u32]) {
        self.enabled.clear();
        match self.plan.successor_mode {
            SuccessorMode::Monolithic => self.find_enabled_monolithic(numbers),
            SuccessorMode::SingleStep | SuccessorMode::EagerLocal => self.find_enabled_cached(numbers),
        }
    }

    fn find_enabled_cached(&mut self, numbers: &[u32]) {
        let (mut has_choice, mut receives) = (false, 0);
        for slot in 0..self.plan.instances as u32 {
            let info = self.local_transitions(slot, numbers[slot as usize]);
            let info = &self.local_transitions_of[info as usize];
            has_choice |= info.has_choice;
            receives |= info.in_channels;
            for number in info.first..info.end {
                let counter = self.transitions[number as usize].counter;
                if counter.is_none_or(|counter| self.plan.may_count(counter, numbers[counter as usize])) {
                    self.enabled.push(TransitionId(number));
                }
            }
        }
        for sender in 0..self.plan.instances as u32 {
            let from = numbers[sender as usize];
            let info = self.cached_local(sender, from);
            if info.out_channels & receives == 0 {
                continue;
            }
            let (sends, partners) = (info.out_channels, info.partners.clone());
            for index in partners {
                let receiver = self.partners[index as usize];
                let to = numbers[receiver as usize];
                if self.cached_local(receiver, to).in_channels & sends != 0 {
                    let (first, end) = self.rendezvous_of((sender, from), (receiver, to));
                    self.enabled.extend((first..end).map(TransitionId));
                }
            }
        }
        if has_choice {
            self.filter_by_priority(numbers);
        }
    }

    /// Drops what a `pri alt` with a better branch, or an `else` beside an open one, does not allow.
    fn filter_by_priority(&mut self, numbers: &[u32]) {
        let (mut enabled_branches, mut found) =
            (std::mem::take(&mut self.enabled_branches), std::mem::take(&mut self.enabled));
        enabled_branches.fill(0);
        for found in &found {
            if let Step::Communicate { sender, sender_branch, receiver, receiver_branch } = self.get(*found).step {
                enabled_branches[sender as usize] |= 1 << sender_branch;
                enabled_branches[receiver as usize] |= 1 << receiver_branch;
            }
        }
        let is_first = |instance: u32, branch: u32| {
            let info = self.cached_local(instance, numbers[instance as usize]);
            !info.priority || enabled_branches[instance as usize] & ((1u64 << branch) - 1) == 0
        };
        let is_priority = |instance: u32| self.cached_local(instance, numbers[instance as usize]).priority;
        // Only two orders can contradict each other.
        let contradict = (0..self.plan.instances as u32).filter(|slot| is_priority(*slot)).count() > 1;
        let mut rendezvous: Vec<Step> = Vec::new();
        if contradict {
            let steps = found.iter().map(|found| self.get(*found).step);
            rendezvous.extend(steps.filter(|step| matches!(step, Step::Communicate { .. })));
        }
        let is_in_circle = |step: Step| {
            let environment = (!rendezvous.contains(&step)).then_some(step);
            let steps: Vec<Step> = rendezvous.iter().copied().chain(environment).collect();
            priority::is_allowed(step, &steps, &is_priority)
        };
        let allowed = |found: &TransitionId| match self.get(*found).step {
            Step::Local { .. } => true,
            Step::Else { instance } => enabled_branches[instance as usize] == 0,
            step @ (Step::Communicate { .. }
            | Step::FromEnvironment { .. }
            | Step::ToEnvironment { .. }
            | Step::After { .. }) => {
                priority::participants(step).all(|(instance, branch)| is_first(instance, branch))
                    || contradict && is_in_circle(step)
            }
        };
        found.retain(allowed);
        self.enabled = found;
        self.enabled_branches = enabled_branches;
    }

    /// What can happen when a sender and a receiver in these parts meet: a range of `moves`.
    #[inline]
    fn rendezvous_of(&mut self, sender: (u32, ComponentId), receiver: (u32, ComponentId)) -> (u32, u32) {
        let pair = sender.0 * self.plan.instances as u32 + receiver.0;
        match self.rendezvous.get(&(pair, sender.1, receiver.1)) {
            Some(range) => *range,
            None => self.compute_rendezvous(sender, receiver),
        }
    }

    /// Forgets what is cheap to work out again when there is too much of it. Moves found before are gone then.
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

    /// About how much memory is remembered.
    pub(crate) fn bytes(&self) -> usize {
        let known: usize = self.cache_index.iter().map(Vec::len).sum();
        let local_transitions_of =
            4 * (known + self.partners.len()) + self.local_transitions_of.len() * size_of::<LocalTransitions>();
        // A move's changes are a small allocation beside it.
        let transitions = self.transitions.len() * (size_of::<Transition>() + size_of::<CachedDelta>() + 32);
        local_transitions_of + transitions + self.rendezvous.capacity() * 21
    }
}
