//! Liveness checking under weak fairness: emptiness check of the product of the state graph with a generalised Büchi
//! automaton, by strongly connected components (Lichtenstein and Pnueli, "Checking that Finite State Concurrent
//! Programs Satisfy their Linear Specification", 1985).
//!
//! A run violates a property if it ends in a component that is accepting and fair: each instance takes a step in it, or
//! is disabled in one of its states; and it does not pass over forever an `until` whose time has come. An instance
//! starves if there is a fair component in which it always waits and never takes part. A finite run is extended by
//! stuttering (Holzmann's stutter extension): in a state in which no fair transition is enabled, and after the program
//! has ended.
//!
//! Properties are without "next", so that they do not distinguish runs that differ by invisible steps. Local steps that
//! the property does not observe are eager, and partial-order reduction applies to the steps of such instances. The
//! product is searched while it is built.

mod budget;
mod deadline_events;
mod deadlines;
mod fairness;
mod lasso;
mod product;
mod scc;

use crate::automaton::Automaton;
use crate::exploration_plan::ExplorationPlan;
use crate::formula::FormulaId;
use crate::instance_set::{MAX_SET_INSTANCES, first_instances, instance_bit};
use crate::options::{Compaction, Limit, Limits, Progress, Reduction};
use crate::reconstruct::ResolvedStep;
use crate::store::Store;
use crate::successors::SuccessorGenerator;
use crate::timer::Stopwatch;
use budget::SearchBudget;
use product::{Edge, PRODUCT_EXTRA_WORDS, ProductBuilder, STUTTER};
use quaject_esp_exec::step::{Step, TooLarge};

/// The kind of run that is searched.
#[derive(Clone)]
pub(crate) enum Goal {
    /// A run that the automaton accepts.
    Accepted(Automaton),
    /// A run on which one of these instances waits forever at an operation that is not `idle`.
    Starved(Vec<u32>),
}

impl Goal {
    /// The eventualities that an edge postpones.
    fn postponed(&self, edge: &Edge) -> &[FormulaId] {
        match self {
            Goal::Accepted(automaton) => automaton.postponed(edge.postponed_set),
            Goal::Starved(_) => &[],
        }
    }
}

/// A run that the goal describes.
pub(crate) struct Lasso {
    pub(crate) steps: Vec<ResolvedStep>,
    /// The first step of the cycle; none if every continuation of the run is accepted (a bad prefix of the property;
    /// Kupferman and Vardi, "Model Checking of Safety Properties", 2001).
    pub(crate) cycle: Option<usize>,
    /// The instance that starves.
    pub(crate) starved: Option<u32>,
    /// Without a cycle: the propositions' labels and variables at the end of the run.
    pub(crate) values: Vec<(String, String)>,
}

/// The result of a search for a lasso.
pub(crate) enum LassoOutcome {
    None,
    Found(Lasso),
    Unfinished(Limit),
}

/// The size of the products of a check.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ProductStatistics {
    /// States, each of the program and of a property's automaton; of all products together.
    pub states: u64,
    /// Transitions of all products.
    pub transitions: u64,
    /// Memory of the largest, in bytes.
    pub bytes: u64,
}

impl ProductStatistics {
    /// Adds another product.
    pub(crate) fn add(&mut self, other: ProductStatistics) {
        self.states += other.states;
        self.transitions += other.transitions;
        self.bytes = self.bytes.max(other.bytes);
    }
}

/// The steps that a run has to take: those from `cycle` on repeat forever; without a cycle, any steps may follow.
#[derive(Clone, Copy)]
pub(crate) struct ForcedPrefix<'g> {
    pub(crate) steps: &'g [Step],
    pub(crate) cycle: Option<usize>,
}

impl ForcedPrefix<'_> {
    /// No step is prescribed.
    pub(crate) const NONE: ForcedPrefix<'static> = ForcedPrefix { steps: &[], cycle: None };

    /// The position in the prefix after the step at this position.
    fn after(self, at: u32) -> u32 {
        match self.cycle {
            _ if at as usize >= self.steps.len() => at,
            Some(cycle) if at as usize + 1 == self.steps.len() => cycle as u32,
            Some(_) | None => at + 1,
        }
    }

    fn allows(self, at: u32, step: Step) -> bool {
        match self.steps.get(at as usize) {
            Some(wanted) => *wanted == step,
            None => self.cycle.is_none(),
        }
    }

    /// Whether any steps may follow at this position.
    fn is_complete(self, at: u32) -> bool {
        self.cycle.is_none() && at as usize >= self.steps.len()
    }

    /// Whether the run may stutter forever at this position.
    fn may_stutter(self, at: u32) -> bool {
        at as usize >= self.steps.len()
    }
}

/// The number of expanded nodes at which a product is first searched for a lasso, before it is complete. It is searched
/// again whenever their number has doubled.
const FIRST_SEARCH_NODES: u32 = 512;

/// Searches for a lasso, up to one in the part of the product that has been built. Calls `progress` at intervals with
/// the size of the search so far.
pub(crate) fn search(
    plan: &ExplorationPlan<'_>,
    goal: Goal,
    prefix: ForcedPrefix<'_>,
    reduction: Reduction,
    limits: &Limits,
    progress: &mut dyn FnMut(Progress),
) -> Result<(LassoOutcome, ProductStatistics), TooLarge> {
    let mut generator = SuccessorGenerator::new(plan)?;
    let started = Stopwatch::start(limits.timer);
    generator.set_limits(limits, started);
    let store = Store::new(plan.width + PRODUCT_EXTRA_WORDS, Compaction::Off, 1);
    let mut budget = SearchBudget { limits, started, last_report: started, progress };
    let mut builder = match ProductBuilder::new(generator, &store, goal, prefix, reduction) {
        Ok(builder) => builder,
        Err(limit) => return Ok((LassoOutcome::Unfinished(limit), ProductStatistics::default())),
    };
    let mut max_nodes = FIRST_SEARCH_NODES;
    let outcome = loop {
        let is_partial = match builder.expand_up_to(max_nodes, &mut budget) {
            Ok(is_partial) => is_partial,
            Err(limit) => break LassoOutcome::Unfinished(limit),
        };
        // The limits do not apply to a single state, nor to the presentation of a result.
        builder.generator.set_limits(&Limits::default(), started);
        match builder.find_lasso(is_partial, &budget) {
            LassoOutcome::None if is_partial => {}
            outcome => break outcome,
        }
        builder.generator.set_limits(limits, started);
        max_nodes = max_nodes.saturating_mul(2);
    };
    let (graph, generator) = (&builder.graph, &builder.generator);
    let size = ProductStatistics {
        states: graph.nodes.len() as u64,
        transitions: graph.edges.len() as u64,
        bytes: graph.memory_bytes() + store.memory_bytes() as u64 + generator.memory_bytes() as u64,
    };
    Ok((outcome, size))
}

impl ProductBuilder<'_, '_> {
    /// A lasso in the product. In a partial one, a strongly connected component is one of the whole product or a part
    /// of one, and what makes a part fair and accepting is in the whole one too.
    fn find_lasso(&mut self, is_partial: bool, budget: &SearchBudget<'_>) -> LassoOutcome {
        // A set of instances has this many bits.
        debug_assert!(self.generator.plan.instances <= MAX_SET_INSTANCES);
        let all = |_: &Edge| true;
        if let Some(node) = self.graph.accepting_prefix {
            return LassoOutcome::Found(self.graph.prefix(&mut self.generator, self.store, node));
        }
        let instances = match &self.goal {
            Goal::Accepted(_) => {
                let components = self.graph.strongly_connected_components(&all);
                let found = components.into_iter().find_map(|scc| self.lasso_in(&scc, &all, None));
                return found.map_or(LassoOutcome::None, LassoOutcome::Found);
            }
            Goal::Starved(_) if is_partial => return LassoOutcome::None,
            Goal::Starved(instances) => instances.clone(),
        };
        for instance in instances {
            if self.graph.nodes.iter().all(|node| node.waiting & instance_bit(instance as usize) == 0) {
                continue;
            }
            if let Err(limit) = budget.check(self.graph.memory_bytes()) {
                return LassoOutcome::Unfinished(limit);
            }
            let without = |edge: &Edge| edge.participants & instance_bit(instance as usize) == 0;
            let components = self.graph.strongly_connected_components(&without);
            let found = components.into_iter().find_map(|scc| self.lasso_in(&scc, &without, Some(instance)));
            if let Some(lasso) = found {
                return LassoOutcome::Found(lasso);
            }
        }
        LassoOutcome::None
    }

    /// A lasso whose cycle is in an SCC of the edges to keep. A cycle that ignores no deadline either excuses each one
    /// that the SCC passes over, or lacks the edges that pass over the others: it is in an SCC of what remains without
    /// these (Emerson and Lei, "Modalities for Model Checking: Branching Time Logic Strikes Back", 1987).
    fn lasso_in(&mut self, scc: &[u32], keep: &dyn Fn(&Edge) -> bool, starved: Option<u32>) -> Option<Lasso> {
        let all_instances = first_instances(self.generator.plan.instances);
        if !self.has_goal(scc, keep, starved) {
            return None;
        }
        let fairness = self.cycle_fairness(scc, keep, all_instances)?;
        let ignored = self.graph.ignored_deadlines(scc, keep);
        if ignored == 0 {
            let ProductBuilder { generator, graph, store, goal, .. } = self;
            let postponed = |edge: &Edge| goal.postponed(edge);
            let lasso = graph.lasso(generator, store, scc, keep, &postponed, (&fairness, all_instances));
            return Some(Lasso { starved, ..lasso });
        }
        let events = self.graph.deadline_events.clone();
        let rest = |edge: &Edge| keep(edge) && events[edge.deadline_events as usize].passed_over & ignored == 0;
        let parts = self.graph.components_within(scc, &rest);
        parts.into_iter().find_map(|part| self.lasso_in(&part, &rest, starved))
    }

    /// Whether a run through all of an SCC is one that the goal describes, fairness aside. If not, neither is one
    /// through a part of it.
    fn has_goal(&self, scc: &[u32], keep: &dyn Fn(&Edge) -> bool, starved: Option<u32>) -> bool {
        let Some(instance) = starved else {
            return self.graph.is_accepted(scc, keep, &|edge: &Edge| self.goal.postponed(edge));
        };
        let waits = |node: &u32| self.graph.nodes[*node as usize].waiting & instance_bit(instance as usize) != 0;
        // A run that only stutters has ended.
        scc.iter().all(waits) && self.graph.inner(scc, keep).any(|edge| edge.participants != STUTTER)
    }
}
