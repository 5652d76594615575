//! Whether everybody who can go on does, and whether others get their turn: cycles of the product, and what happens on
//! them. Knows nodes and ways, not what they mean.

use super::super::counted::Bound;
use super::super::state::{At, State};
use super::Explorer;
use quaject_esp_ir::graph::components;
use std::collections::BTreeSet;

/// So many rounds of a loop may pass before somebody else is asked.
const MOST_COUNTED: i128 = 4096;

impl Explorer<'_, '_> {
    /// Per node of the round, by its place in the list: the places of the nodes that its ways of some kind lead to.
    fn ways(&self, counts: &dyn Fn(&State, usize) -> bool) -> Vec<Vec<usize>> {
        let ways = |node: &usize| {
            let targets = self.targets(*node).filter(|(state, to)| counts(state, *to));
            targets.map(|(_, to)| to).collect()
        };
        self.round.list.iter().map(ways).collect()
    }

    /// The ways of a node: what has happened on them, and the place of the node that they lead to.
    fn targets(&self, node: usize) -> impl Iterator<Item = (&State, usize)> {
        self.nodes[node].seen().ends.iter().map(|end| {
            let (to, _) = end.to.expect("every way of a round leads to a node");
            (&end.path.state, self.nodes[to].position)
        })
    }

    /// Whether everybody waits at a node of the round, by its place in the list.
    fn is_settled(&self, position: usize) -> bool {
        let place = self.nodes[self.round.list[position]].key.place;
        self.versions[place].place.members.iter().all(|(at, _)| !matches!(at, At::Running(_)))
    }

    /// The nodes at which other processes get their turn, too: a cycle that never waits for the world has a place where
    /// it yields, as members did whenever they met.
    pub(super) fn yields(&self) -> BTreeSet<usize> {
        let mut yields: BTreeSet<usize> = BTreeSet::new();
        loop {
            let ways = self.ways(&|state, to| !state.has_rested && !yields.contains(&to));
            let mut found: Vec<usize> = Vec::new();
            for component in components(&ways) {
                let is_cycle = component.iter().any(|node| ways[*node].iter().any(|to| component.contains(to)));
                // Within one quantum everybody else waits, as in the program.
                let first = component.iter().copied().find(|node| self.is_settled(*node));
                found.extend(first.filter(|_| is_cycle));
            }
            if found.is_empty() {
                return yields.into_iter().map(|position| self.round.list[position]).collect();
            }
            yields.extend(found);
        }
    }

    /// Where members that nobody runs beside yield: on a cycle that is never left, by the world or otherwise. What was shown
    /// before it can be written out, and a signal noticed, as if they met one by one.
    pub(super) fn yields_for_ever(&self) -> BTreeSet<usize> {
        let mut yields = BTreeSet::new();
        for component in components(&self.ways(&|_, _| true)) {
            let mut ways = component.iter().flat_map(|position| self.targets(self.round.list[*position])).peekable();
            let is_endless =
                ways.peek().is_some() && ways.all(|(state, to)| !state.has_rested && component.contains(&to));
            let first = component.iter().copied().find(|position| self.is_settled(*position));
            yields.extend(first.filter(|_| is_endless).map(|position| self.round.list[position]));
        }
        yields
    }

    /// Who could go on but never does: the order of rendezvous is fixed, so a cycle of others could pass by for ever.
    /// With each, a place on that cycle.
    pub(super) fn starving(&self) -> BTreeSet<(usize, usize)> {
        let mut starving = BTreeSet::new();
        for component in components(&self.ways(&|_, _| true)) {
            // Within one quantum everybody else waits, as in the program.
            if component.iter().all(|node| !self.is_settled(*node)) {
                continue;
            }
            let nodes = || component.iter().map(|position| self.round.list[*position]);
            let ways = || nodes().flat_map(|node| self.targets(node)).filter(|(_, to)| component.contains(to));
            if ways().next().is_none() || self.is_finite(&component) {
                continue;
            }
            let served: BTreeSet<usize> =
                ways().flat_map(|(state, _)| state.moved.iter().chain(&state.polled)).copied().collect();
            for member in (0..self.group.members.len()).filter(|member| !served.contains(member)) {
                let waits = |node: &usize| {
                    let seen = self.nodes[*node].seen();
                    seen.enabled.contains(&member) || seen.outside.contains(&member)
                };
                if let Some(node) = nodes().find(waits) {
                    starving.insert((self.nodes[node].key.place, member));
                }
            }
        }
        starving
    }

    /// Whether a component of the nodes is left after so few rounds that nobody has to be asked before: every cycle of
    /// it goes through the head of a loop in which one member counts to a bound, and which it does not leave before.
    fn is_finite(&self, component: &BTreeSet<usize>) -> bool {
        let node = |position: &usize| &self.nodes[self.round.list[*position]];
        let at = |position: &usize, member: usize| self.versions[node(position).key.place].place.members[member].0;
        let block = |position: &usize, member: usize| match at(position, member) {
            At::Running(block) | At::Yielding(block, _) | At::Waiting(block) => Some(block),
            At::Ended | At::Gone(_) => None,
        };
        let members = self.group.members.iter().enumerate();
        let mut loops = members.flat_map(|(member, known)| known.counted.iter().map(move |counted| (member, counted)));
        loops.any(|(member, counted)| {
            let stays = |position| block(position, member).is_some_and(|block| counted.blocks.contains(&block));
            if !component.iter().all(stays) {
                return false;
            }
            let is_head = |position: &usize| at(position, member) == At::Running(counted.header);
            let is_short = |position: &usize| {
                let known = |value| {
                    let known = node(position).key.facts.get(&(member, value)).cloned();
                    known.unwrap_or_else(|| self.group.whole((member, value)))
                };
                let end = match counted.bound {
                    Bound::Constant(bound) => bound,
                    Bound::Value(bound) => known(bound).high,
                };
                end - known(counted.counter).low <= MOST_COUNTED
            };
            let mut heads = component.iter().filter(|position| is_head(position)).peekable();
            let rest: BTreeSet<usize> = component.iter().copied().filter(|position| !is_head(position)).collect();
            heads.peek().is_some() && heads.all(is_short) && self.is_acyclic(&rest)
        })
    }

    fn is_acyclic(&self, positions: &BTreeSet<usize>) -> bool {
        let order: Vec<usize> = positions.iter().copied().collect();
        let ways = |position: &usize| -> Vec<usize> {
            let targets = self.targets(self.round.list[*position]).map(|(_, to)| to);
            targets.filter_map(|to| order.binary_search(&to).ok()).collect()
        };
        let ways: Vec<Vec<usize>> = order.iter().map(ways).collect();
        components(&ways)
            .iter()
            .all(|component| component.iter().all(|position| !ways[*position].iter().any(|to| component.contains(to))))
    }
}
