//! Refinement checking of fast paths: whether the program with fast paths (implementation) has only behaviour of the
//! program without (specification). The check is a weak forward-backward simulation (Lynch and Vaandrager, "Forward and
//! Backward Simulations, Part I", 1995): it relates an implementation state to a set of specification states, which a
//! subset construction computes on the fly (Roscoe, "Model-checking CSP", 1994). It implies trace inclusion.
//!
//! ```text
//!   implementation   f ----------step-----------> f'      every step of the implementation ..
//!                    |                            |
//!   specification    S --steps, same actions ---> S'      .. is matched by steps with the same visible actions
//! ```
//!
//! `S` is a set of specification states. While no path is active, its states correspond to `f`: each instance is at the
//! corresponding location with the same live values, up to local steps of path members that are still to run and are
//! invisible. So a path must leave its members where their own code could have brought them (reference, section 10,
//! rule 9). While a path waits for the environment, `S` holds all states that its members can have reached. Only
//! participants of the step and members of their paths may move in a match.
//!
//! A match is a run of the specification, and the search continues from every state in which one was found. So the
//! choice of corresponding locations and live values decides which matches are found, not whether they are sound.
//!
//! Pure extern functions that conditions and messages call decide which operations are possible. They answer alike in
//! both programs and for a whole run, so the simulation is computed for one table of their answers after the other.
//!
//! Also compared are faults, termination and quiescence: a deadlock of the implementation is one of the specification.
//! A cycle of invisible steps that stutters at a specification state requires a cycle of invisible steps there
//! (divergence).

mod block_splits;
mod divergence;
mod location_map;
mod observer;
mod path_coverage;
mod report;
mod spec_lts;
mod visible;

pub use observer::{ObserverOutcome, build_observer};
pub use report::{Mismatch, PathCoverage, Refinement, RefinementCounterexample, RefinementVerdict};

use crate::Refusal;
use crate::answer_table::{AnswerTable, MAX_ANSWER_TABLES};
use crate::exploration_plan::{ExplorationPlan, SuccessorMode};
use crate::instance_set::{MAX_SET_INSTANCES, instance_bit, participant_set};
use crate::kept_answers::{AnswerScope, functions_in_operations};
use crate::options::{Limit, Limits, Progress, Symmetry};
use crate::reconstruct::{ResolvedStep, annotate};
use crate::report::restrictions;
use crate::search::BETWEEN_PROGRESS;
use crate::store::hash;
use crate::successors::{SuccessorGenerator, TransitionOutcome};
use crate::timer::Stopwatch;
use location_map::{LocationMap, location_map};
use path_coverage::path_coverage;
use quaject_esp_exec::coverage::Coverage;
use quaject_esp_exec::explore::live_projection::LivenessTable;
use quaject_esp_exec::footprint::data_bytes;
use quaject_esp_exec::report::Outcome;
use quaject_esp_exec::step::{Step, TooLarge};
use quaject_esp_ir::ir::{Location, Program};
use quaject_esp_ir::model::ModelProgram;
use rustc_hash::FxHashMap;
use spec_lts::{SpecLts, SpecState, WeakSuccessors};
use std::sync::Arc;
use visible::Alphabet;

/// The programs of a refinement check.
#[derive(Clone, Copy, Debug)]
pub struct RefinementInput<'p> {
    /// The program as lowered.
    pub specification: &'p ModelProgram,
    /// The same, with blocks split where paths can be left: a block has the same number as in `implementation`.
    pub split_specification: &'p Program,
    /// The program with fast paths.
    pub implementation: &'p Program,
}

/// Checks that the implementation refines the specification. Calls `progress` at intervals with the size of the search
/// so far.
///
/// # Errors
///
/// The program is too large, has too many instances, or lacks ranges.
pub fn refine(
    input: RefinementInput<'_>,
    limits: &Limits,
    progress: &mut dyn FnMut(Progress),
) -> Result<Refinement, Refusal> {
    let started = Stopwatch::start(limits.timer);
    let bytes = data_bytes(input.implementation).saturating_add(data_bytes(input.split_specification));
    if let Some(limit) = limits.bytes.map(|limit| limit as usize).filter(|limit| bytes > *limit) {
        return Err(Refusal::TooLarge(TooLarge { bytes, limit }));
    }
    let (interruptible, location_map) = location_map(input.split_specification, input.implementation);
    let of = |program: &Program| ModelProgram { program: program.clone(), ..input.specification.clone() };
    let (implementation, interruptible) = (of(input.implementation), of(&interruptible));
    let mut functions = functions_in_operations(&implementation);
    functions.extend(functions_in_operations(&interruptible));
    let table = Arc::new(AnswerTable::new(functions));
    let mut refinement = Refinement {
        verdict: RefinementVerdict::Holds,
        states: 0,
        spec_states: 0,
        transitions: 0,
        depth: 0,
        bytes: 0,
        elapsed: started.elapsed(),
        paths: Vec::new(),
        restrictions: restrictions(&implementation),
    };
    if !block_splits::is_block_split(&input.specification.program, input.split_specification) {
        let counterexample = RefinementCounterexample { mismatch: Mismatch::Code, steps: Vec::new() };
        refinement.verdict = RefinementVerdict::Violated(counterexample);
    }
    let mut coverage = None;
    let mut tables = 0;
    while refinement.verdict == RefinementVerdict::Holds {
        let answers = AnswerScope::Table(&table);
        let plan = ExplorationPlan::new(&implementation, SuccessorMode::Monolithic, Symmetry::Off, answers)
            .map_err(Refusal::Unbounded)?;
        let spec_plan = ExplorationPlan::new(&interruptible, SuccessorMode::SingleStep, Symmetry::Off, answers)
            .map_err(Refusal::Unbounded)?;
        if plan.instances > MAX_SET_INSTANCES {
            return Err(Refusal::TooMany(plan.instances as u32));
        }
        let used = refinement.states + refinement.spec_states;
        let limits = Limits { states: limits.states.map(|max| max.saturating_sub(used)), ..limits.clone() };
        let mut search = Search::new(&plan, &spec_plan, location_map.clone(), &limits, started)?;
        refinement.verdict = match search.run(progress) {
            Ok(None) => RefinementVerdict::Holds,
            Ok(Some((node, last, mismatch))) => {
                let run = search.run_to_node(node, last);
                let mut steps = annotate(&plan, &run, None)?;
                // An invisible local step belongs to the step before it.
                steps.truncate(run.len());
                RefinementVerdict::Violated(RefinementCounterexample { mismatch, steps })
            }
            Err(limit) => RefinementVerdict::Unfinished(limit),
        };
        search.add_statistics(&mut refinement, &mut coverage);
        tables += 1;
        if refinement.verdict != RefinementVerdict::Holds || !table.advance() {
            break;
        }
        if tables == MAX_ANSWER_TABLES {
            refinement.verdict = RefinementVerdict::Unfinished(Limit::Answers);
        }
    }
    refinement.elapsed = started.elapsed();
    refinement.paths = path_coverage(&implementation.program, coverage.as_ref());
    Ok(refinement)
}

/// A node of the simulation: an implementation state with its set of specification states.
struct SimulationNode {
    state: Box<[u32]>,
    /// The number of the set.
    spec_set: u32,
    /// The normal form of the corresponding specification state; while a path is active, the one before the path.
    base_spec_state: SpecState,
    /// Whether no path is active.
    is_off_path: bool,
    parent: u32,
    /// The step that leads here.
    chosen: Option<ResolvedStep>,
    depth: u32,
}

struct Search<'m> {
    generator: SuccessorGenerator<'m>,
    liveness_table: LivenessTable,
    location_map: LocationMap,
    spec: SpecLts<'m>,
    alphabet: Alphabet,
    nodes: Vec<SimulationNode>,
    known: FxHashMap<(Box<[u32]>, u32, SpecState), u32>,
    sets: Vec<Box<[SpecState]>>,
    numbers_of_sets: FxHashMap<Box<[SpecState]>, u32>,
    /// Invisible steps after which the specification can be in the same state.
    invisible_edges: Vec<(u32, u32)>,
    /// Per instance: itself and the members of its paths.
    path_participants: Vec<u128>,
    /// The instances that can be on a path.
    members: u128,
    limits: Limits,
    started: Stopwatch,
    transitions: u64,
    /// Approximate memory of nodes and sets in bytes.
    node_bytes: usize,
}

/// The mismatch with its node and, if there is one, the step that is not matched.
type LocatedMismatch = (u32, Option<ResolvedStep>, Mismatch);

impl<'m> Search<'m> {
    fn new(
        plan: &'m ExplorationPlan<'m>,
        spec_plan: &'m ExplorationPlan<'m>,
        location_map: LocationMap,
        limits: &Limits,
        started: Stopwatch,
    ) -> Result<Search<'m>, TooLarge> {
        let (mut generator, mut other) = (SuccessorGenerator::new(plan)?, SuccessorGenerator::new(spec_plan)?);
        generator.set_limits(limits, started);
        generator.environment.record_arguments();
        other.set_limits(limits, started);
        let liveness_table = generator.execution().0.liveness_table();
        let mut path_participants: Vec<u128> = (0..plan.instances).map(instance_bit).collect();
        let mut members = 0;
        for path in &plan.model.program.paths {
            let others = path.members.iter().fold(0, |all, member| all | instance_bit(member.instance as usize));
            path_participants[path.trigger as usize] |= others;
            members |= others | instance_bit(path.trigger as usize);
        }
        Ok(Search {
            generator,
            liveness_table,
            location_map,
            spec: SpecLts::new(other, members),
            alphabet: Alphabet::default(),
            nodes: Vec::new(),
            known: FxHashMap::default(),
            sets: Vec::new(),
            numbers_of_sets: FxHashMap::default(),
            invisible_edges: Vec::new(),
            path_participants,
            members,
            limits: limits.clone(),
            started,
            transitions: 0,
            node_bytes: 0,
        })
    }

    /// Explores the simulation; returns the first mismatch.
    fn run(&mut self, progress: &mut dyn FnMut(Progress)) -> Result<Option<LocatedMismatch>, Limit> {
        let start = self.generator.start();
        let first = self.spec.generator.start();
        let first = self.spec.number(&first);
        let base_spec_state = self.spec.normal_form(first, &mut self.alphabet)?;
        let Some(corresponding) = self.corresponding_state(&start)? else {
            return Ok(Some((0, None, Mismatch::InitialState)));
        };
        if self.spec.normal_form(corresponding, &mut self.alphabet)? != base_spec_state {
            return Ok(Some((0, None, Mismatch::InitialState)));
        }
        self.add(&start, &[first], base_spec_state, true, None);
        let (mut next, mut last_report) = (0, self.started);
        while next < self.nodes.len() {
            if let Some(mismatch) = self.expand(next as u32)? {
                return Ok(Some(mismatch));
            }
            next += 1;
            self.check_limits()?;
            if last_report.elapsed() > BETWEEN_PROGRESS {
                last_report.restart();
                progress(Progress {
                    states: self.nodes.len() as u64,
                    depth: self.nodes[next - 1].depth,
                    bytes: self.memory_bytes() as u64,
                    elapsed: self.started.elapsed(),
                });
            }
        }
        self.find_divergence()
    }

    /// Matches every step of a node.
    fn expand(&mut self, number: u32) -> Result<Option<LocatedMismatch>, Limit> {
        let SimulationNode { state, spec_set, base_spec_state, is_off_path, .. } = &self.nodes[number as usize];
        let (state, base_spec_state, is_off_path) = (state.clone(), *base_spec_state, *is_off_path);
        let spec_set = self.sets[*spec_set as usize].clone();
        self.generator.find_enabled(&state);
        if let Some(limit) = self.generator.limit_reached {
            return Err(limit);
        }
        if self.generator.is_quiescent()
            && let Some(mismatch) = self.quiescence_mismatch(&state, &spec_set, is_off_path)?
        {
            return Ok(Some((number, None, mismatch)));
        }
        self.generator.find_enabled(&state);
        let (first, count) = self.persistent_subset();
        let from_hash = hash(&state);
        let mut to = vec![0; state.len()];
        let transitions: Vec<(ResolvedStep, bool, Box<[u32]>)> = (first..first + count)
            .map(|index| {
                let transition = self.generator.enabled[index];
                let continues = matches!(self.generator.get(transition).outcome, TransitionOutcome::Continues);
                let chosen = ResolvedStep::of(self.generator.get(transition));
                to.copy_from_slice(&state);
                if continues {
                    self.generator.apply(transition, &state, from_hash, &mut to);
                }
                (chosen, continues, to.as_slice().into())
            })
            .collect();
        for (chosen, continues, to) in transitions {
            self.transitions += 1;
            let actions = self.alphabet.actions_of_step(&mut self.generator, &state, &chosen);
            let fault = self.alphabet.fault.take();
            let among = self.matching_instances(chosen.step);
            let wanted = if continues { self.corresponding_state(&to)? } else { None };
            let reached = self.weak_successors(&spec_set, among, &actions, wanted)?;
            let (set, next_base_spec_state) = match (continues, wanted) {
                (false, _) if reached.can_have_ended => continue,
                (true, Some(wanted)) if !reached.corresponding.is_empty() => {
                    (reached.corresponding, self.spec.normal_form(wanted, &mut self.alphabet)?)
                }
                (true, None) if !reached.states.is_empty() => (reached.states, base_spec_state),
                (_, _) => {
                    let mismatch =
                        if continues { self.mismatch(&to, wanted, reached)? } else { Mismatch::Termination { fault } };
                    return Ok(Some((number, Some(chosen), mismatch)));
                }
            };
            let next = self.add(&to, &set, next_base_spec_state, wanted.is_some(), Some((number, chosen)));
            if actions.is_empty() && next_base_spec_state == base_spec_state {
                self.invisible_edges.push((number, next));
            }
        }
        Ok(None)
    }

    /// The mismatch of a step without a match.
    fn mismatch(&mut self, to: &[u32], wanted: Option<SpecState>, reached: WeakSuccessors) -> Result<Mismatch, Limit> {
        let Some(wanted) = wanted.filter(|_| !reached.states.is_empty()) else { return Ok(Mismatch::VisibleAction) };
        let wanted = self.spec.normal_form(wanted, &mut self.alphabet)?;
        let instances = self.generator.plan.instances;
        let mut is_matched = vec![false; instances];
        for state in reached.states {
            let state = self.spec.normal_form(state, &mut self.alphabet)?;
            let components = self.spec.state(state).iter().zip(self.spec.state(wanted));
            is_matched
                .iter_mut()
                .zip(components)
                .for_each(|(is_matched, (component, wanted))| *is_matched |= component == wanted);
        }
        let never = (0..instances as u32).filter(|instance| !is_matched[*instance as usize]).collect();
        self.generator.load_all(to);
        let (machine, state, _) = self.generator.execution();
        let at: Vec<(u32, Location)> =
            (0..instances as u32).map(|instance| (instance, machine.location(state, instance))).collect();
        Ok(Mismatch::ExitState { at, never })
    }

    /// The mismatch of a quiescent state, unless the specification is quiescent in the same way.
    fn quiescence_mismatch(
        &mut self,
        state: &[u32],
        spec_set: &[SpecState],
        is_off_path: bool,
    ) -> Result<Option<Mismatch>, Limit> {
        let outcome = self.generator.quiescence(state);
        let Some(other) = spec_set.first().filter(|_| is_off_path) else { return Ok(Some(Mismatch::StuckOnPath)) };
        let other = self.spec.normal_form(*other, &mut self.alphabet)?;
        let waiting = |outcome: &Outcome| match outcome {
            Outcome::Faulted(report) => report.waits.iter().map(|wait| wait.instance).collect(),
            Outcome::Budget | Outcome::Quiescent(_) | Outcome::Ended(_) => Vec::new(),
        };
        let is_same = match (&outcome, self.spec.quiescence(other)?) {
            (Outcome::Faulted(_), Some(other @ Outcome::Faulted(_))) => waiting(&outcome) == waiting(&other),
            (Outcome::Ended(status), Some(Outcome::Ended(other))) => *status == other,
            (Outcome::Quiescent(_), Some(Outcome::Quiescent(_))) => true,
            (_, _) => false,
        };
        Ok((!is_same).then_some(Mismatch::Quiescence))
    }

    /// A persistent subset as a range of the enabled transitions: an independent local step of an instance that
    /// is on no path, or all. The cycle proviso holds: each reduced step turns a running instance into a blocked one,
    /// so no cycle consists of reduced steps only: every cycle contains a fully expanded state.
    fn persistent_subset(&mut self) -> (usize, usize) {
        for index in 0..self.generator.enabled.len() {
            let transition = self.generator.get(self.generator.enabled[index]);
            let (Step::Local { instance }, TransitionOutcome::Continues, true) =
                (transition.step, &transition.outcome, transition.is_deterministic())
            else {
                continue;
            };
            let [(component_index, component)] = transition.changes[..] else { continue };
            let is_independent =
                self.members & instance_bit(instance as usize) == 0 && self.generator.plan.is_independent(instance);
            if component_index == instance && is_independent && self.generator.is_blocked_in(instance, component) {
                return (index, 1);
            }
        }
        (0, self.generator.enabled.len())
    }

    /// The instances that may move to match a step.
    fn matching_instances(&self, step: Step) -> u128 {
        let own = participant_set(step);
        (0..self.path_participants.len())
            .filter(|instance| own & instance_bit(*instance) != 0)
            .fold(own, |all, instance| all | self.path_participants[instance])
    }

    /// The specification states that match a step with these visible actions.
    fn weak_successors(
        &mut self,
        from: &[SpecState],
        among: u128,
        actions: &[u32],
        wanted: Option<SpecState>,
    ) -> Result<WeakSuccessors, Limit> {
        let (limits, started, nodes) = (&self.limits, self.started, self.nodes.len());
        let node_bytes = self.node_bytes;
        let mut check_budget =
            |spec: &SpecLts<'_>| within(limits, started, nodes + spec.count(), node_bytes + spec.memory_bytes());
        self.spec.weak_successors(from, among, actions, wanted, &mut self.alphabet, &mut check_budget)
    }

    /// The specification state that corresponds to an implementation state; none while a path is active.
    fn corresponding_state(&mut self, state_vector: &[u32]) -> Result<Option<SpecState>, Limit> {
        self.generator.load_all(state_vector);
        let plan = self.generator.plan;
        let (machine, state, _) = self.generator.execution();
        let (other, spec_state, _) = self.spec.generator.execution();
        let mut is_projected = true;
        for instance in 0..plan.instances as u32 {
            let place = machine.program_point(state, instance, &self.liveness_table);
            let place = self.location_map.corresponding_point(plan.process(instance).0 as usize, place);
            is_projected &=
                place.is_some_and(|place| other.project(spec_state, state, instance, place, &self.spec.liveness_table));
        }
        if !is_projected {
            return Ok(None);
        }
        let mut corresponding = state_vector.to_vec();
        if plan.shared.is_some() {
            let mut bytes = Vec::new();
            state.save_shared(&mut bytes);
            other.load_shared(spec_state, &bytes);
        }
        for component_index in 0..plan.instances as u32 + u32::from(plan.shared.is_some()) {
            corresponding[component_index as usize] = self.spec.generator.save(component_index).ok_or(Limit::Memory)?;
        }
        Ok(Some(self.spec.number(&corresponding)))
    }

    /// The node of a state and a set, new or known.
    fn add(
        &mut self,
        state: &[u32],
        set: &[SpecState],
        base_spec_state: SpecState,
        is_off_path: bool,
        from: Option<(u32, ResolvedStep)>,
    ) -> u32 {
        let next = self.sets.len() as u32;
        let spec_set = *self.numbers_of_sets.entry(set.into()).or_insert(next);
        if spec_set == next {
            self.sets.push(set.into());
            self.node_bytes += 2 * size_of_val(set) + 64;
        }
        let number = self.nodes.len() as u32;
        let key = (state.into(), spec_set, base_spec_state);
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        self.known.insert(key, number);
        self.node_bytes += 2 * size_of_val(state) + size_of::<SimulationNode>() + 64;
        let (parent, chosen, depth) = match from {
            Some((parent, chosen)) => (parent, Some(chosen), self.nodes[parent as usize].depth + 1),
            None => (0, None, 0),
        };
        self.nodes.push(SimulationNode {
            state: state.into(),
            spec_set,
            base_spec_state,
            is_off_path,
            parent,
            chosen,
            depth,
        });
        number
    }

    /// The steps to a node, and one more.
    fn run_to_node(&self, node: u32, last: Option<ResolvedStep>) -> Vec<ResolvedStep> {
        let mut run: Vec<ResolvedStep> = last.into_iter().collect();
        let mut at = node;
        while let Some(SimulationNode { parent, chosen: Some(chosen), .. }) = self.nodes.get(at as usize) {
            run.push(chosen.clone());
            at = *parent;
        }
        run.reverse();
        run
    }

    /// Adds the size of this search, and the code that it has executed.
    fn add_statistics(&mut self, refinement: &mut Refinement, coverage: &mut Option<Coverage>) {
        refinement.states += self.nodes.len() as u64;
        refinement.spec_states += self.spec.count() as u64;
        refinement.transitions += self.transitions;
        refinement.depth = refinement.depth.max(self.nodes.last().map_or(0, |node| node.depth));
        refinement.bytes = refinement.bytes.max(self.memory_bytes() as u64);
        let executed = self.generator.coverage().expect("the successor generator records coverage");
        match coverage {
            Some(coverage) => coverage.add(&executed),
            None => *coverage = Some(executed),
        }
    }

    fn memory_bytes(&self) -> usize {
        self.node_bytes
            + self.generator.memory_bytes()
            + self.generator.plan.components.memory_bytes()
            + self.spec.memory_bytes()
    }

    fn check_limits(&self) -> Result<(), Limit> {
        within(&self.limits, self.started, self.nodes.len() + self.spec.count(), self.memory_bytes())
    }
}

/// Whether a limit is reached.
fn within(limits: &Limits, started: Stopwatch, states: usize, bytes: usize) -> Result<(), Limit> {
    let limit = if limits.states.is_some_and(|max| states as u64 > max) {
        Limit::States
    } else if limits.bytes.is_some_and(|max| bytes as u64 > max) {
        Limit::Memory
    } else if limits.time().is_some_and(|max| started.elapsed() > max) {
        Limit::Time
    } else if limits.is_interrupted() {
        Limit::Interrupted
    } else {
        return Ok(());
    };
    Err(limit)
}
