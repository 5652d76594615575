//! Fairness of a product: which members starve on its cycles, and where it yields to processes outside of the group.
//! Works on strongly connected components of the nodes. Reads of a transition which members it served and whether it
//! waited.
//!
//! The product fixes the order of rendezvous. A member *starves* in a strongly connected component if it is enabled at
//! some node of it, or waits for the environment there, and no transition of the component serves it (strong fairness,
//! checked per component: which cycle inside it is taken depends on data). The step semantics is fair to instances, so
//! such a product is wrong; the search then serves that member first at a location vector of the component.

use super::super::counted_loops::LoopBound;
use super::super::explorer::{Explorer, Node};
use super::super::state::{Control, ProductState};
use quaject_esp_ir::graph::components;
use quaject_esp_ir::ir::BlockId;
use std::collections::BTreeSet;

/// The maximal iterations of a counted loop that members may have to wait for.
const MAX_COUNTED_ITERATIONS: i128 = 4096;

impl Explorer<'_, '_> {
    /// Per node of the round, by position: the positions of its successors by transitions that satisfy a predicate.
    fn successor_graph(&self, includes: &dyn Fn(&ProductState, usize) -> bool) -> Vec<Vec<usize>> {
        let successors = |node: &usize| {
            let successors = self.successors(*node).filter(|(state, to)| includes(state, *to));
            successors.map(|(_, to)| to).collect()
        };
        self.round.reached.iter().map(successors).collect()
    }

    /// The transitions of a node: the state at the end of each, and the position of the node that it leads to.
    fn successors(&self, node: usize) -> impl Iterator<Item = (&ProductState, usize)> {
        self.nodes[node].effects().transitions.iter().map(|transition| {
            let (to, _) = transition.target.expect("every transition of a round has been resolved");
            (&transition.state.product, self.nodes[to].position)
        })
    }

    /// The node at a position of the round.
    fn node_at(&self, position: usize) -> &Node {
        &self.nodes[self.round.reached[position]]
    }

    /// The control location of a member at a position of the round.
    fn control_at(&self, position: usize, member: usize) -> Control {
        self.partitions[self.node_at(position).state.partition].vector.members[member].0
    }

    /// Whether no member runs at a position of the round: other processes may run there, as quanta do not
    /// overlap.
    fn is_between_quanta(&self, position: usize) -> bool {
        let members = 0..self.group.members.len();
        members.into_iter().all(|member| !matches!(self.control_at(position, member), Control::Running(_)))
    }

    /// Nodes at which the product yields so that other processes proceed: one in each cycle on which it never waits for
    /// the environment. Before fusion, the members ended a quantum at each rendezvous.
    pub(super) fn yield_points(&self) -> BTreeSet<usize> {
        let mut yield_points: BTreeSet<usize> = BTreeSet::new();
        loop {
            let graph = self.successor_graph(&|state, to| !state.has_waited && !yield_points.contains(&to));
            let mut found: Vec<usize> = Vec::new();
            for component in components(&graph) {
                let is_cycle = component.iter().any(|node| graph[*node].iter().any(|to| component.contains(to)));
                let first = component.iter().copied().find(|node| self.is_between_quanta(*node));
                found.extend(first.filter(|_| is_cycle));
            }
            if found.is_empty() {
                return yield_points.into_iter().map(|position| self.round.reached[position]).collect();
            }
            yield_points.extend(found);
        }
    }

    /// Nodes at which a product without other processes yields: one in each divergence, a strongly connected component
    /// that has no successors outside and never waits for the environment. The yield lets the runtime write earlier
    /// output and handle signals, as it does between rendezvous.
    pub(super) fn divergence_yield_points(&self) -> BTreeSet<usize> {
        let mut yield_points = BTreeSet::new();
        for component in components(&self.successor_graph(&|_, _| true)) {
            let successors = component.iter().flat_map(|position| self.successors(self.round.reached[*position]));
            let mut successors = successors.peekable();
            let is_divergence = successors.peek().is_some()
                && successors.all(|(state, to)| !state.has_waited && component.contains(&to));
            let first = component.iter().copied().find(|position| self.is_between_quanta(*position));
            yield_points.extend(first.filter(|_| is_divergence).map(|position| self.round.reached[position]));
        }
        yield_points
    }

    /// The members that starve, each with a partition of the component in which it does.
    pub(super) fn starving_members(&self) -> BTreeSet<(usize, usize)> {
        let mut starving = BTreeSet::new();
        for component in components(&self.successor_graph(&|_, _| true)) {
            // Within a quantum all other members wait in the unfused program, too.
            if component.iter().all(|node| !self.is_between_quanta(*node)) {
                continue;
            }
            let nodes = || component.iter().map(|position| self.round.reached[*position]);
            let inner = || nodes().flat_map(|node| self.successors(node)).filter(|(_, to)| component.contains(to));
            if inner().next().is_none() || self.is_bounded(&component) {
                continue;
            }
            let served: BTreeSet<usize> =
                inner().flat_map(|(state, _)| state.progressed_members.iter().chain(&state.polled)).copied().collect();
            for member in (0..self.group.members.len()).filter(|member| !served.contains(member)) {
                let is_ready = |node: &usize| {
                    let effects = self.nodes[*node].effects();
                    effects.enabled.contains(&member) || effects.environment_waiters.contains(&member)
                };
                if let Some(node) = nodes().find(is_ready) {
                    starving.insert((self.nodes[node].state.partition, member));
                }
            }
        }
        starving
    }

    /// Whether a component is left after a bounded number of iterations, so that no member has to be served within it:
    /// one counted loop of a member contains the member's location at each node, and each cycle passes its header.
    fn is_bounded(&self, component: &BTreeSet<usize>) -> bool {
        let block = |position: usize, member: usize| -> Option<BlockId> {
            match self.control_at(position, member) {
                Control::Running(block) | Control::Yielded(block, _) | Control::Waiting(block) => Some(block),
                Control::Terminated | Control::Inert(_) => None,
            }
        };
        let members = self.group.members.iter().enumerate();
        let mut loops = members.flat_map(|(member, known)| known.counted.iter().map(move |counted| (member, counted)));
        loops.any(|(member, counted)| {
            let stays =
                |position: &usize| block(*position, member).is_some_and(|block| counted.blocks.contains(&block));
            if !component.iter().all(stays) {
                return false;
            }
            let is_header = |position: &usize| self.control_at(*position, member) == Control::Running(counted.header);
            let is_short = |position: &usize| {
                let fact = |value| {
                    let fact = self.node_at(*position).state.facts.get(&(member, value)).cloned();
                    fact.unwrap_or_else(|| self.group.top((member, value)))
                };
                let end = match counted.bound {
                    LoopBound::Constant(bound) => bound,
                    LoopBound::Value(bound) => fact(bound).high,
                };
                end - fact(counted.counter).low <= MAX_COUNTED_ITERATIONS
            };
            let mut headers = component.iter().filter(|position| is_header(position)).peekable();
            let rest: BTreeSet<usize> = component.iter().copied().filter(|position| !is_header(position)).collect();
            headers.peek().is_some() && headers.all(is_short) && self.is_acyclic(&rest)
        })
    }

    fn is_acyclic(&self, positions: &BTreeSet<usize>) -> bool {
        let order: Vec<usize> = positions.iter().copied().collect();
        let successors = |position: &usize| -> Vec<usize> {
            let successors = self.successors(self.round.reached[*position]).map(|(_, to)| to);
            successors.filter_map(|to| order.binary_search(&to).ok()).collect()
        };
        let graph: Vec<Vec<usize>> = order.iter().map(successors).collect();
        let is_cyclic = |component: &BTreeSet<usize>| {
            component.iter().any(|position| graph[*position].iter().any(|to| component.contains(to)))
        };
        !components(&graph).iter().any(is_cyclic)
    }
}
