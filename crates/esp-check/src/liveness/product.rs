//! The product of the state graph with the automaton, built breadth first, with stutter extension.

use super::budget::{ProductSize, SearchBudget};
use super::deadline_events::{DeadlineEventTable, DeadlineEvents};
use super::fairness::{FairnessScope, WaitCache};
use super::{ForcedPrefix, Goal};
use crate::automaton::AutomatonStep;
use crate::exploration_plan::SuccessorMode;
use crate::instance_set::participant_set;
use crate::options::{Limit, Reduction};
use crate::store::{Insertion, PackedStates, StateRef, Store, hash, signature};
use crate::successors::{SuccessorGenerator, TransitionOutcome};
use quaject_esp_exec::step::Step;
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::rc::Rc;

/// A node of the product: a state of the program and one of the automaton.
pub(super) struct ProductNode {
    pub(super) state: StateRef,
    /// The instances with an enabled transition to which weak fairness applies; the instances that wait but must not
    /// wait forever.
    pub(super) fair_enabled: u128,
    pub(super) waiting: u128,
    pub(super) edges: Range<u32>,
}

pub(super) struct Edge {
    pub(super) to: u32,
    pub(super) participants: u128,
    /// The set of eventualities that the automaton postpones.
    pub(super) postponed_set: u32,
    /// The set of its events, as a position in [`Graph::deadline_events`].
    pub(super) deadline_events: u32,
}

/// The part of an edge that its step determines.
#[derive(Clone, Copy)]
struct StepLabel {
    participants: u128,
    deadline_events: u32,
}

pub(super) struct Graph {
    /// The program's initial state, before eager steps.
    pub(super) start: Vec<u32>,
    pub(super) nodes: Vec<ProductNode>,
    pub(super) edges: Vec<Edge>,
    /// The sets of events of edges; the first one is empty.
    pub(super) deadline_events: Vec<DeadlineEvents>,
    pub(super) parents: Vec<u32>,
    /// The first node at which every continuation of the run is accepted; the product ends there.
    pub(super) accepting_prefix: Option<u32>,
}

/// The participants of a stuttering step: every instance.
pub(super) const STUTTER: u128 = u128::MAX;

/// The length of a product state's vector beyond that of the program's state.
pub(super) const PRODUCT_EXTRA_WORDS: usize = 2;

/// The part of a product state that is not the program's state: the end of its vector in the store.
#[derive(Clone, Copy)]
pub(super) struct ProductLocation {
    /// The automaton's state.
    pub(super) automaton: u32,
    /// Whether the program has ended.
    pub(super) has_ended: bool,
    /// The position in the forced prefix.
    pub(super) at: u32,
}

impl ProductLocation {
    pub(super) fn write(self, state_vector: &mut [u32]) {
        state_vector.copy_from_slice(&[self.automaton << 1 | u32::from(self.has_ended), self.at]);
    }

    pub(super) fn of(state_vector: &[u32]) -> ProductLocation {
        ProductLocation { automaton: state_vector[0] >> 1, has_ended: state_vector[0] & 1 == 1, at: state_vector[1] }
    }
}

/// Builds the product step by step.
pub(super) struct ProductBuilder<'b, 'm> {
    pub(super) generator: SuccessorGenerator<'m>,
    pub(super) store: &'b Store,
    pub(super) goal: Goal,
    prefix: ForcedPrefix<'b>,
    pub(super) fairness: FairnessScope,
    /// The instances whose local steps are eager.
    pub(super) eager: u128,
    /// Whether partial-order reduction is applied.
    is_reduced: bool,
    pub(super) graph: Graph,
    /// The nodes before this one have been expanded.
    pub(super) expanded: u32,
    node_of: FxHashMap<StateRef, u32>,
    /// Scratch memory of an insertion.
    batch: PackedStates,
    wait_cache: WaitCache,
    pub(super) event_table: DeadlineEventTable,
    /// The state of the node that is expanded, and the state of a successor.
    pub(super) state_vector: Vec<u32>,
    pub(super) successor: Vec<u32>,
    /// The steps of a goal without an automaton.
    unchanged: Rc<[AutomatonStep]>,
}

impl<'b, 'm> ProductBuilder<'b, 'm> {
    /// The product with its initial node.
    pub(super) fn new(
        mut generator: SuccessorGenerator<'m>,
        store: &'b Store,
        goal: Goal,
        prefix: ForcedPrefix<'b>,
        reduction: Reduction,
    ) -> Result<ProductBuilder<'b, 'm>, Limit> {
        let width = generator.plan.width;
        let fairness = match goal {
            Goal::Accepted(_) => FairnessScope::except_environment(generator.plan),
            Goal::Starved(_) => FairnessScope::AllInstances,
        };
        let mut start = generator.start();
        let initial = start.clone();
        generator.run_eager_steps(&mut start);
        start.resize(width + PRODUCT_EXTRA_WORDS, 0);
        let mut builder = ProductBuilder {
            store,
            // Starvation depends on the steps of every instance.
            is_reduced: reduction == Reduction::On && matches!(goal, Goal::Accepted(_)),
            goal,
            prefix,
            fairness,
            eager: generator.plan.eager_instances(),
            generator,
            graph: Graph {
                start: initial,
                nodes: Vec::new(),
                edges: Vec::new(),
                deadline_events: vec![DeadlineEvents::default()],
                parents: Vec::new(),
                accepting_prefix: None,
            },
            expanded: 0,
            node_of: FxHashMap::default(),
            batch: PackedStates::default(),
            wait_cache: WaitCache::default(),
            event_table: DeadlineEventTable::default(),
            state_vector: vec![0; width + PRODUCT_EXTRA_WORDS],
            successor: start,
            unchanged: Rc::new([AutomatonStep { to: 0, postponed_set: 0 }]),
        };
        builder.intern_successor(None)?;
        Ok(builder)
    }

    /// Expands nodes, breadth first, up to one at which every continuation is accepted, and no more than `max_nodes`
    /// in all. Whether nodes remain.
    pub(super) fn expand_up_to(&mut self, max_nodes: u32, budget: &mut SearchBudget<'_>) -> Result<bool, Limit> {
        while self.expanded < self.graph.nodes.len() as u32 && self.graph.accepting_prefix.is_none() {
            if self.expanded == max_nodes {
                return Ok(true);
            }
            self.expand(self.expanded, budget)?;
            self.expanded += 1;
        }
        Ok(false)
    }

    /// The instances that have an enabled transition in a node to which fairness applies, and which has no participant
    /// in `without`.
    pub(super) fn fair_enabled_in(&mut self, node: u32, without: u128) -> u128 {
        let width = self.generator.plan.width;
        self.store.read(self.graph.nodes[node as usize].state, &mut self.state_vector);
        if ProductLocation::of(&self.state_vector[width..]).has_ended {
            return 0;
        }
        self.generator.find_enabled(&self.state_vector[..width]);
        self.fairness.fair_enabled(&self.generator, without)
    }

    /// Adds the edges of a node, and its successors.
    fn expand(&mut self, node: u32, budget: &mut SearchBudget<'_>) -> Result<(), Limit> {
        let width = self.generator.plan.width;
        self.store.read(self.graph.nodes[node as usize].state, &mut self.state_vector);
        let here = ProductLocation::of(&self.state_vector[width..]);
        let automaton_steps = self.automaton_steps(node, here, budget)?;
        if let Goal::Accepted(automaton) = &self.goal
            && automaton_steps.iter().any(|step| automaton.accepts_all(step.to))
            && self.prefix.is_complete(here.at)
        {
            self.graph.accepting_prefix = Some(node);
            return Ok(());
        }
        if !here.has_ended {
            self.generator.find_enabled(&self.state_vector[..width]);
        }
        let fair_enabled = if here.has_ended { 0 } else { self.fairness.fair_enabled(&self.generator, 0) };
        if let Some(limit) = self.generator.limit_reached {
            return Err(limit);
        }
        let first_edge = self.graph.edges.len() as u32;
        if !here.has_ended {
            self.add_transitions(node, here, &automaton_steps)?;
        }
        // Stutter extension.
        if fair_enabled == 0 && (here.has_ended || self.prefix.may_stutter(here.at)) {
            self.successor.copy_from_slice(&self.state_vector);
            self.add_edges(node, here, StepLabel { participants: STUTTER, deadline_events: 0 }, &automaton_steps)?;
        }
        let waiting = match &self.goal {
            Goal::Starved(instances) if !here.has_ended => {
                self.wait_cache.among(&mut self.generator, instances, &self.state_vector)
            }
            Goal::Starved(_) | Goal::Accepted(_) => 0,
        };
        let edges = first_edge..self.graph.edges.len() as u32;
        let node = &mut self.graph.nodes[node as usize];
        (node.fair_enabled, node.waiting, node.edges) = (fair_enabled, waiting, edges);
        Ok(())
    }

    /// The steps of the automaton in the valuation of the current state.
    fn automaton_steps(
        &mut self,
        node: u32,
        here: ProductLocation,
        budget: &mut SearchBudget<'_>,
    ) -> Result<Rc<[AutomatonStep]>, Limit> {
        let width = self.generator.plan.width;
        match &mut self.goal {
            Goal::Accepted(automaton) => {
                budget.check_node(self.graph.size(automaton.memory_bytes()), node, &|| self.graph.depth(node))?;
                let atoms = self.generator.valuation(&self.state_vector[..width]);
                let bytes = self.graph.memory_bytes();
                automaton.steps(here.automaton, atoms, &mut |own| budget.check(bytes + own))
            }
            Goal::Starved(_) => {
                budget.check_node(self.graph.size(0), node, &|| self.graph.depth(node))?;
                Ok(Rc::clone(&self.unchanged))
            }
        }
    }

    /// Adds the edges of the enabled transitions that the prefix allows, or of a persistent subset.
    ///
    /// The reduction preserves stutter-equivalent runs (Peled, "Combining Partial Order Reductions with On-the-fly
    /// Model-Checking", 1994): the subset is invisible, because it consists of steps of instances that the property
    /// does not observe, and cycles have a fully expanded node, because a subset is sufficient only if all of its
    /// successors are new. Under fairness a run does not omit a step of the subset forever; whether a run is fair
    /// depends on the instances that act and on the states of those that are not eager, which commuting steps do not
    /// change.
    fn add_transitions(
        &mut self,
        node: u32,
        here: ProductLocation,
        automaton_steps: &[AutomatonStep],
    ) -> Result<(), Limit> {
        let width = self.generator.plan.width;
        let all = self.generator.enabled.len();
        let subset = if self.is_reduced {
            let (fairness, plan) = (self.fairness, self.generator.plan);
            let invisible = match plan.successor_mode {
                SuccessorMode::Monolithic => plan.unobserved_instances(),
                SuccessorMode::SingleStep | SuccessorMode::EagerLocal => self.eager,
            };
            let is_eligible = |step: Step| fairness.is_own_step_of(step, invisible);
            self.generator.persistent_subset_of(&self.state_vector[..width], &is_eligible)
        } else {
            all
        };
        let known = self.graph.nodes.len() as u32;
        let first_edge = self.graph.edges.len();
        self.add_range(node, here, automaton_steps, 0..subset)?;
        if self.graph.edges[first_edge..].iter().any(|edge| edge.to < known) {
            self.add_range(node, here, automaton_steps, subset..all)?;
        }
        Ok(())
    }

    /// Adds the edges of a range of the enabled transitions.
    fn add_range(
        &mut self,
        node: u32,
        here: ProductLocation,
        automaton_steps: &[AutomatonStep],
        range: Range<usize>,
    ) -> Result<(), Limit> {
        let width = self.generator.plan.width;
        let from_hash = hash(&self.state_vector[..width]);
        for index in range {
            let id = self.generator.enabled[index];
            let transition = self.generator.get(id);
            if !self.prefix.allows(here.at, transition.step) {
                continue;
            }
            // The end of the program is a node of its own: a run that continues from this state has not ended.
            let has_ended = !matches!(transition.outcome, TransitionOutcome::Continues);
            let step = transition.step;
            self.generator.apply(id, &self.state_vector[..width], from_hash, &mut self.successor[..width]);
            let deadline_events = if has_ended { 0 } else { self.deadline_events(step) };
            let next = ProductLocation { has_ended, at: self.prefix.after(here.at), ..here };
            let label = StepLabel { participants: participant_set(step), deadline_events };
            self.add_edges(node, next, label, automaton_steps)?;
        }
        Ok(())
    }

    /// Adds an edge for each step of the automaton, to the program's state in `successor`.
    fn add_edges(
        &mut self,
        node: u32,
        next: ProductLocation,
        label: StepLabel,
        automaton_steps: &[AutomatonStep],
    ) -> Result<(), Limit> {
        let StepLabel { participants, deadline_events } = label;
        let width = self.generator.plan.width;
        for step in automaton_steps {
            ProductLocation { automaton: step.to, ..next }.write(&mut self.successor[width..]);
            let to = self.intern_successor(Some(node))?;
            self.graph.edges.push(Edge { to, participants, postponed_set: step.postponed_set, deadline_events });
        }
        Ok(())
    }

    /// The node of the state in `successor`, new or known.
    fn intern_successor(&mut self, from: Option<u32>) -> Result<u32, Limit> {
        let parent = from.map(|from| self.graph.nodes[from as usize].state);
        let signature = signature(hash(&self.successor));
        match self.store.insert(&mut self.batch, parent, &self.successor, signature) {
            Insertion::New(state) => {
                let node = self.graph.nodes.len() as u32;
                self.node_of.insert(state, node);
                self.graph.nodes.push(ProductNode { state, fair_enabled: 0, waiting: 0, edges: 0..0 });
                self.graph.parents.push(from.unwrap_or(node));
                Ok(node)
            }
            Insertion::Known(state) => Ok(self.node_of[&state]),
            Insertion::Full => Err(Limit::Memory),
        }
    }
}

impl Graph {
    /// Approximate memory of the graph and its states.
    pub(super) fn memory_bytes(&self) -> u64 {
        (self.nodes.len() * 100 + self.edges.len() * size_of::<Edge>()) as u64
    }

    /// The size of the product, with the memory of the automaton.
    fn size(&self, automaton_bytes: u64) -> ProductSize {
        ProductSize { nodes: self.nodes.len() as u64, bytes: self.memory_bytes() + automaton_bytes }
    }

    /// Steps from the initial state to a node, along parents.
    pub(super) fn depth(&self, node: u32) -> u32 {
        let (mut at, mut depth) = (node, 0);
        while self.parents[at as usize] != at {
            at = self.parents[at as usize];
            depth += 1;
        }
        depth
    }

    pub(super) fn edges_of(&self, node: u32) -> &[Edge] {
        let range = &self.nodes[node as usize].edges;
        &self.edges[range.start as usize..range.end as usize]
    }
}
