//! The labelled transition system of the specification, computed on demand: its states, their weak successors after a
//! sequence of visible actions, and normal forms under invisible local steps.

use super::visible::Alphabet;
use crate::instance_set::{instance_bit, participant_set};
use crate::options::Limit;
use crate::reconstruct::ResolvedStep;
use crate::store::hash;
use crate::successors::{SuccessorGenerator, TransitionOutcome};
use quaject_esp_exec::explore::live_projection::LivenessTable;
use quaject_esp_exec::report::Outcome;
use quaject_esp_exec::step::Step;
use rustc_hash::{FxHashMap, FxHashSet};

/// The maximum number of local steps to a normal form.
const MAX_LOCAL_STEPS: usize = 1000;

/// States that are still expanded after an equivalent of the wanted state was found.
const MAX_EXTRA_STATES: usize = 256;

/// A specification state by number.
pub(super) type SpecState = u32;

/// A transition.
struct SpecEdge {
    participants: u128,
    is_local: bool,
    /// Its visible actions.
    actions: Box<[u32]>,
    /// The next state; none if the program ends.
    to: Option<SpecState>,
}

/// The visible actions of a transition, and its next state.
pub(super) type SpecStep = (Box<[u32]>, Option<SpecState>);

/// The weak successors of a set of states.
pub(super) struct WeakSuccessors {
    /// The states, sorted.
    pub(super) states: Vec<SpecState>,
    /// Those with the wanted normal form.
    pub(super) corresponding: Vec<SpecState>,
    /// Whether the program can have ended.
    pub(super) can_have_ended: bool,
}

/// The specification.
pub(super) struct SpecLts<'m> {
    pub(super) generator: SuccessorGenerator<'m>,
    pub(super) liveness_table: LivenessTable,
    numbers: FxHashMap<Box<[u32]>, SpecState>,
    states: Vec<Box<[u32]>>,
    edges: Vec<Option<Box<[SpecEdge]>>>,
    normal_form: Vec<Option<SpecState>>,
    /// The instances whose local steps can be delayed.
    members: u128,
    /// Whether the order of those local steps is observable.
    order_is_observable: bool,
    bytes: usize,
}

impl<'m> SpecLts<'m> {
    /// The specification; `members` can be on a path.
    pub(super) fn new(mut generator: SuccessorGenerator<'m>, members: u128) -> SpecLts<'m> {
        let instances = 0..generator.plan.instances as u32;
        let mut all = instances.filter(|instance| members & instance_bit(*instance as usize) != 0);
        let order_is_observable = all.any(|instance| !generator.plan.is_independent(instance));
        let liveness_table = generator.execution().0.liveness_table();
        generator.environment.record_arguments();
        let (numbers, states) = (FxHashMap::default(), Vec::new());
        let (edges, normal_form) = (Vec::new(), Vec::new());
        SpecLts {
            generator,
            liveness_table,
            numbers,
            states,
            edges,
            normal_form,
            members,
            order_is_observable,
            bytes: 0,
        }
    }

    /// Number of states.
    pub(super) fn count(&self) -> usize {
        self.states.len()
    }

    /// Approximate memory.
    pub(super) fn memory_bytes(&self) -> usize {
        self.bytes + self.generator.memory_bytes() + self.generator.plan.components.memory_bytes()
    }

    /// The number of a state.
    pub(super) fn number(&mut self, state: &[u32]) -> SpecState {
        if let Some(known) = self.numbers.get(state) {
            return *known;
        }
        let number = self.states.len() as SpecState;
        self.numbers.insert(state.into(), number);
        self.states.push(state.into());
        self.edges.push(None);
        self.normal_form.push(None);
        // The state is stored twice, plus overhead.
        self.bytes += 2 * size_of_val(state) + 64;
        number
    }

    /// The vector of a state.
    pub(super) fn state(&self, state: SpecState) -> &[u32] {
        &self.states[state as usize]
    }

    /// The outcome of a quiescent state; none if the state is not quiescent.
    pub(super) fn quiescence(&mut self, state: SpecState) -> Result<Option<Outcome>, Limit> {
        let state_vector = self.states[state as usize].clone();
        self.generator.find_enabled(&state_vector);
        if let Some(limit) = self.generator.limit_reached {
            return Err(limit);
        }
        Ok(self.generator.is_quiescent().then(|| self.generator.quiescence(&state_vector)))
    }

    /// The normal form of a state: members of paths take their invisible, deterministic local steps (a path returns
    /// control to its members in the middle of local code, which the specification may have executed already), and the
    /// objects are numbered canonically (heap symmetry; the two programs can allocate and free in different orders).
    pub(super) fn normal_form(&mut self, state: SpecState, alphabet: &mut Alphabet) -> Result<SpecState, Limit> {
        let mut at = state;
        let mut run = Vec::new();
        // Local steps can form a cycle, by `yield`.
        while run.len() < MAX_LOCAL_STEPS {
            if let Some(known) = self.normal_form[at as usize] {
                at = known;
                break;
            }
            self.compute_edges(at, alphabet)?;
            let edges = self.edges[at as usize].as_deref().expect("its edges have just been computed");
            let is_only = |edge: &&SpecEdge| {
                let alternatives =
                    edges.iter().filter(|other| other.is_local && other.participants == edge.participants).count();
                edge.is_local && edge.participants & self.members != 0 && edge.actions.is_empty() && alternatives == 1
            };
            let Some(next) = edges.iter().filter(is_only).find_map(|edge| edge.to) else { break };
            run.push(at);
            at = next;
        }
        run.push(at);
        let canonical = self.renumbered(at)?;
        run.push(canonical);
        for passed in run {
            self.normal_form[passed as usize] = Some(canonical);
        }
        Ok(canonical)
    }

    /// The state with canonical object numbers (heap symmetry).
    fn renumbered(&mut self, state: SpecState) -> Result<SpecState, Limit> {
        let Some(shared) = self.generator.plan.shared else { return Ok(state) };
        let mut state_vector = self.states[state as usize].clone();
        self.generator.load_all(&state_vector);
        let (machine, loaded, _) = self.generator.execution();
        machine.canonicalize_heap(loaded);
        for component_index in 0..=shared {
            state_vector[component_index as usize] = self.generator.save(component_index).ok_or(Limit::Memory)?;
        }
        Ok(self.number(&state_vector))
    }

    /// The states that steps of `among` alone reach with exactly these visible actions, and those of them with the
    /// normal form of `wanted`. Unless the order of delayed local steps is observable, one corresponding state
    /// suffices: the search ends when `wanted` itself is reached, or at most [`MAX_EXTRA_STATES`] states after an
    /// equivalent one.
    pub(super) fn weak_successors(
        &mut self,
        from: &[SpecState],
        among: u128,
        actions: &[u32],
        wanted: Option<SpecState>,
        alphabet: &mut Alphabet,
        check_budget: &mut dyn FnMut(&SpecLts<'m>) -> Result<(), Limit>,
    ) -> Result<WeakSuccessors, Limit> {
        let normal_form = wanted.map(|wanted| self.normal_form(wanted, alphabet)).transpose()?;
        let mut known: FxHashSet<(SpecState, u32)> = from.iter().map(|state| (*state, 0)).collect();
        let mut frontier: Vec<(SpecState, u32)> = from.iter().map(|state| (*state, 0)).collect();
        let all = actions.len() as u32;
        let mut reached = WeakSuccessors { states: Vec::new(), corresponding: Vec::new(), can_have_ended: false };
        let mut more = MAX_EXTRA_STATES;
        while !frontier.is_empty() && more > 0 {
            let mut next = Vec::new();
            for (state, count) in frontier {
                check_budget(self)?;
                if normal_form.is_some() && count == all && Some(self.normal_form(state, alphabet)?) == normal_form {
                    if wanted == Some(state) && !self.order_is_observable {
                        reached.corresponding = vec![state];
                        return Ok(reached);
                    }
                    reached.corresponding.push(state);
                }
                self.compute_edges(state, alphabet)?;
                let edges = self.edges[state as usize].as_deref().expect("its edges have just been computed");
                for edge in edges.iter().filter(|edge| edge.participants & !among == 0) {
                    if !actions[count as usize..].starts_with(&edge.actions) {
                        continue;
                    }
                    let count = count + edge.actions.len() as u32;
                    match edge.to {
                        Some(to) if known.insert((to, count)) => next.push((to, count)),
                        Some(_) => {}
                        None => reached.can_have_ended |= count == all,
                    }
                }
            }
            if !self.order_is_observable && !reached.corresponding.is_empty() {
                more = more.saturating_sub(next.len().max(1));
            }
            frontier = next;
        }
        if !self.order_is_observable {
            reached.corresponding.truncate(1);
        }
        reached.corresponding.sort_unstable();
        reached.states = known.into_iter().filter(|(_, count)| *count == all).map(|(state, _)| state).collect();
        reached.states.sort_unstable();
        Ok(reached)
    }

    /// Whether the specification can return to the normal form of a state by invisible steps.
    pub(super) fn can_diverge(
        &mut self,
        state: SpecState,
        alphabet: &mut Alphabet,
        check_budget: &mut dyn FnMut(&SpecLts<'m>) -> Result<(), Limit>,
    ) -> Result<bool, Limit> {
        let state = self.normal_form(state, alphabet)?;
        self.compute_edges(state, alphabet)?;
        let edges = self.edges[state as usize].as_deref().expect("its edges have just been computed");
        let next: Vec<SpecState> =
            edges.iter().filter(|edge| edge.actions.is_empty()).filter_map(|edge| edge.to).collect();
        for reached in self.weak_successors(&next, u128::MAX, &[], None, alphabet, check_budget)?.states {
            if self.normal_form(reached, alphabet)? == state {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The transitions of a state.
    pub(super) fn steps(&mut self, state: SpecState, alphabet: &mut Alphabet) -> Result<Vec<SpecStep>, Limit> {
        self.compute_edges(state, alphabet)?;
        let edges = self.edges[state as usize].as_deref().expect("its edges have just been computed");
        Ok(edges.iter().map(|edge| (edge.actions.clone(), edge.to)).collect())
    }

    /// Computes the transitions of a state.
    fn compute_edges(&mut self, state: SpecState, alphabet: &mut Alphabet) -> Result<(), Limit> {
        if self.edges[state as usize].is_some() {
            return Ok(());
        }
        let state_vector = self.states[state as usize].clone();
        self.generator.evict_if_large();
        self.generator.find_enabled(&state_vector);
        if let Some(limit) = self.generator.limit_reached {
            return Err(limit);
        }
        let from_hash = hash(&state_vector);
        let mut to = vec![0; state_vector.len()];
        let mut edges = Vec::new();
        for index in 0..self.generator.enabled.len() {
            let transition = self.generator.enabled[index];
            let (chosen, continues) = {
                let transition = self.generator.get(transition);
                (ResolvedStep::of(transition), matches!(transition.outcome, TransitionOutcome::Continues))
            };
            let target = continues.then(|| {
                self.generator.apply(transition, &state_vector, from_hash, &mut to);
                self.number(&to)
            });
            let actions = alphabet.actions_of_step(&mut self.generator, &state_vector, &chosen);
            self.bytes += size_of::<SpecEdge>() + size_of_val(&actions[..]);
            let is_local = matches!(chosen.step, Step::Local { .. });
            edges.push(SpecEdge {
                participants: participant_set(chosen.step),
                is_local,
                actions: actions.into(),
                to: target,
            });
        }
        self.edges[state as usize] = Some(edges.into());
        Ok(())
    }
}
