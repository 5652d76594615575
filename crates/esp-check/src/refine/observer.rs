//! The observer: the visible behaviour of the specification as a deterministic automaton, by subset construction over
//! invisible steps. Another engine runs it in product with the implementation.

use super::RefinementInput;
use super::location_map::location_map;
use super::spec_lts::{SpecLts, SpecState};
use super::visible::{Alphabet, VisibleAction};
use crate::Refusal;
use crate::answer_table::AnswerTable;
use crate::exploration_plan::{ExplorationPlan, SuccessorMode};
use crate::kept_answers::{AnswerScope, functions_in_operations};
use crate::options::{Limit, Limits, Symmetry};
use crate::successors::SuccessorGenerator;
use crate::timer::Stopwatch;
use quaject_esp_exec::observer::{Event, Observer};
use quaject_esp_ir::ir::{Boundary, ChannelId, ExternId, Program};
use quaject_esp_ir::model::{ModelProgram, Role};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The maximum number of states and edges of the automaton before it is minimized.
const MAX_SIZE: usize = 1 << 20;

/// The observer, or why there is none.
#[derive(Clone, Debug)]
pub enum ObserverOutcome {
    /// The automaton.
    Automaton(Observer),
    /// A limit was reached.
    Unfinished(Limit),
    /// The program can end, fault, or fail to terminate; the observer does not represent that.
    MayTerminate,
    /// The program communicates on this channel both with its environment and internally.
    SharedChannel(ChannelId),
    /// A condition or a message of an operation depends on the answers of this pure function.
    OpenFunction(ExternId),
}

/// A position of the specification: a state, or a step of which this many actions have been observed.
type Position = (SpecState, u32, u32);

/// No step.
const NONE: u32 = u32::MAX;

/// Computes the observer of the specification. Local code can be interrupted where paths are left.
///
/// # Errors
///
/// The program is too large, has too many instances, or lacks ranges.
pub fn build_observer(input: RefinementInput<'_>, limits: &Limits) -> Result<ObserverOutcome, Refusal> {
    let started = Stopwatch::start(limits.timer);
    let (interruptible, _) = location_map(input.split_specification, input.implementation);
    let model = ModelProgram { program: interruptible, ..input.specification.clone() };
    let channels = match observed_channels(&model) {
        Ok(channels) => channels,
        Err(shared) => return Ok(ObserverOutcome::SharedChannel(shared)),
    };
    let functions = functions_in_operations(&model);
    let table = Arc::new(AnswerTable::new(functions.clone()));
    let plan = ExplorationPlan::new(&model, SuccessorMode::SingleStep, Symmetry::Off, AnswerScope::Table(&table))
        .map_err(Refusal::Unbounded)?;
    let has_choice = |function: &ExternId| plan.environment_values.results[function.0 as usize].len() > 1;
    if let Some(function) = functions.into_iter().find(has_choice) {
        return Ok(ObserverOutcome::OpenFunction(function));
    }
    let mut generator = SuccessorGenerator::new(&plan)?;
    generator.set_limits(limits, started);
    let mut alphabet = Alphabet::default();
    alphabet.process_channels.clone_from(&channels);
    let graph = ObserverBuilder { spec: SpecLts::new(generator, 0), limits, started }.run(&mut alphabet);
    Ok(match graph {
        Err(limit) => ObserverOutcome::Unfinished(limit),
        Ok(None) => ObserverOutcome::MayTerminate,
        Ok(Some(graph)) => {
            let event = |action: &VisibleAction| match action {
                VisibleAction::Message(channel, message) => Event::Message(*channel, message.clone()),
                VisibleAction::Call(function, arguments, result) => {
                    Event::Call(*function, arguments.clone(), result.clone())
                }
                VisibleAction::Exited(_) | VisibleAction::Faulted(..) | VisibleAction::NonTermination(_) => {
                    unreachable!("a specification that can end has no observer")
                }
            };
            let events = alphabet.all().iter().map(event).collect();
            let (edges, can_be_quiescent) = minimized(graph);
            ObserverOutcome::Automaton(Observer {
                channels: channels.into_iter().collect(),
                events,
                edges,
                quiescent: can_be_quiescent,
            })
        }
    })
}

/// The channels between the program and its environment.
fn observed_channels(model: &ModelProgram) -> Result<BTreeSet<ChannelId>, ChannelId> {
    let program = &model.program;
    let users = |channel: ChannelId, wanted: &dyn Fn(Role) -> bool| {
        let processes = program.processes.iter().zip(&model.roles).filter(|(_, role)| wanted(**role));
        let sites = processes.flat_map(|(process, _)| &process.sites).filter(|site| site.channel == channel);
        sites.map(|site| site.direction).collect::<Vec<_>>()
    };
    let mut observed_channels = BTreeSet::new();
    for channel in (0..program.channels.len() as u32).map(ChannelId) {
        let environment = users(channel, &|role| matches!(role, Role::Environment | Role::OpenStub));
        if is_internal(program, channel) && environment.is_empty() {
            continue;
        }
        let explored = users(channel, &|role| role == Role::Explored);
        if explored.iter().any(|direction| *direction != explored[0]) {
            return Err(channel);
        }
        observed_channels.insert(channel);
    }
    Ok(observed_channels)
}

fn is_internal(program: &Program, channel: ChannelId) -> bool {
    program.channels[channel.0 as usize].boundary == Boundary::Internal
}

/// Edges by state, and whether the state can be quiescent.
type ObserverGraph = (Vec<Vec<(u32, u32)>>, Vec<bool>);

struct ObserverBuilder<'m, 'l> {
    spec: SpecLts<'m>,
    limits: &'l Limits,
    started: Stopwatch,
}

impl ObserverBuilder<'_, '_> {
    /// Subset construction: the sets of positions by the actions observed so far; none if the program can end.
    fn run(mut self, alphabet: &mut Alphabet) -> Result<Option<ObserverGraph>, Limit> {
        let start = self.spec.generator.start();
        let start = self.spec.number(&start);
        let (mut numbers, mut sets) = (FxHashMap::default(), Vec::new());
        let Some(first) = self.tau_closure(vec![(start, NONE, 0)], alphabet)? else { return Ok(None) };
        numbers.insert(first.clone(), 0_u32);
        sets.push(first);
        let (mut edges, mut can_be_quiescent, mut total) = (Vec::new(), Vec::new(), 0);
        while edges.len() < sets.len() {
            let set = sets[edges.len()].clone();
            let mut next: FxHashMap<u32, Vec<Position>> = FxHashMap::default();
            let mut is_quiescent = false;
            for (state, step, count) in set {
                let all = self.spec.steps(state, alphabet)?;
                is_quiescent |= all.is_empty();
                for (number, (actions, to)) in all.iter().enumerate() {
                    let number = number as u32;
                    if step != NONE && step != number {
                        continue;
                    }
                    let count = if step == NONE { 0 } else { count };
                    let Some(action) = actions.get(count as usize) else { continue };
                    let Some(to) = to else { return Ok(None) };
                    let is_last = count as usize + 1 == actions.len();
                    let item = if is_last { (*to, NONE, 0) } else { (state, number, count + 1) };
                    next.entry(*action).or_default().push(item);
                }
            }
            let mut next: Vec<(u32, Vec<Position>)> = next.into_iter().collect();
            next.sort_unstable();
            let mut own = Vec::new();
            for (action, items) in next {
                let Some(set) = self.tau_closure(items, alphabet)? else { return Ok(None) };
                let number = *numbers.entry(set.clone()).or_insert_with(|| {
                    sets.push(set);
                    sets.len() as u32 - 1
                });
                own.push((action, number));
            }
            total += own.len() + sets[edges.len()].len();
            edges.push(own);
            can_be_quiescent.push(is_quiescent);
            self.check_limits(total)?;
        }
        Ok(Some((edges, can_be_quiescent)))
    }

    /// The closure under invisible steps; none if the program can end.
    fn tau_closure(&mut self, items: Vec<Position>, alphabet: &mut Alphabet) -> Result<Option<Vec<Position>>, Limit> {
        let mut all: BTreeSet<Position> = items.iter().copied().collect();
        let mut work = items;
        while let Some((state, step, _)) = work.pop() {
            if step != NONE {
                continue;
            }
            for (actions, to) in self.spec.steps(state, alphabet)? {
                let Some(to) = to else { return Ok(None) };
                if actions.is_empty() && all.insert((to, NONE, 0)) {
                    work.push((to, NONE, 0));
                }
            }
            self.check_limits(all.len())?;
        }
        Ok(Some(all.into_iter().collect()))
    }

    fn check_limits(&self, size: usize) -> Result<(), Limit> {
        if self.limits.is_interrupted() {
            return Err(Limit::Interrupted);
        }
        if self.limits.time().is_some_and(|time| self.started.elapsed() >= time) {
            return Err(Limit::Time);
        }
        if size > MAX_SIZE || self.limits.bytes.is_some_and(|max| self.spec.memory_bytes() as u64 > max) {
            return Err(Limit::Memory);
        }
        match self.limits.states {
            Some(max) if self.spec.count() as u64 > max => Err(Limit::States),
            Some(_) | None => Ok(()),
        }
    }
}

/// The minimal equivalent automaton (Moore's algorithm).
fn minimized((edges, can_be_quiescent): ObserverGraph) -> ObserverGraph {
    let mut class: Vec<u32> = can_be_quiescent.iter().map(|can_be_quiescent| u32::from(*can_be_quiescent)).collect();
    let mut count = 0;
    loop {
        let mut numbers: FxHashMap<(u32, Vec<(u32, u32)>), u32> = FxHashMap::default();
        let next: Vec<u32> = edges
            .iter()
            .zip(&class)
            .map(|(edges, own)| {
                let edges = edges.iter().map(|(action, to)| (*action, class[*to as usize])).collect();
                let number = numbers.len() as u32;
                *numbers.entry((*own, edges)).or_insert(number)
            })
            .collect();
        let classes = numbers.len();
        class = next;
        if classes == count {
            break;
        }
        count = classes;
    }
    // Classes are numbered by their first state, so that state 0 is in class 0.
    let mut small = (vec![Vec::new(); count], vec![false; count]);
    for (state, own) in class.iter().enumerate() {
        small.0[*own as usize] =
            edges[state].iter().map(|(action, to)| (*action, class[*to as usize])).collect::<Vec<_>>();
        small.1[*own as usize] = can_be_quiescent[state];
    }
    small
}
