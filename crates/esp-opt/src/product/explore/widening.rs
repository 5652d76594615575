//! Widening, which bounds the number of abstract states of a partition: intervals that grow are widened, and precision
//! falls where there are too many states. Knows abstract states, not how they are reached.
//!
//! ```text
//!   new node n of a partition                            effect on the partition
//!     an older node o differs only in narrower           widened := join of widened and n's; nodes with the
//!       intervals, none of them a compared constant        narrower intervals are no longer reached
//!     more nodes than the precision allows               precision falls; the facts that no longer keep nodes
//!                                                          apart are joined over all nodes; widened := the join
//!     a joined fact of n does not imply the widened one  widened := join of both
//! ```
//!
//! Each of these raises the partition's revision and invalidates the round from where the partition was first reached.
//! The widened fact about a value in one partition is also the first that it gets in the next one (`widest_facts`): a
//! counter that has climbed constant by constant in one partition is not counted up again in each partition that
//! follows.

use super::super::explorer::{Explorer, Facts};
use super::super::state::{AbstractState, MemberValue, Precision};
use crate::facts::Fact;

/// The maximal number of nodes of a partition with precision `Full`, and with `Flags`.
const MAX_FULL_STATES: usize = 8;
const MAX_FLAG_STATES: usize = 32;

impl Explorer<'_, '_> {
    /// Adds a node to its partition, and changes the partition where the node requires it.
    pub(super) fn add_to_partition(&mut self, node: usize) {
        self.widen(node);
        let number = self.nodes[node].state.partition;
        let partition = &mut self.partitions[number];
        partition.nodes.push(node);
        partition.precision = match partition.precision {
            Precision::Full if partition.nodes.len() > MAX_FULL_STATES => Precision::Flags,
            Precision::Flags if partition.nodes.len() > MAX_FLAG_STATES => Precision::NoFacts,
            Precision::Full | Precision::Flags | Precision::NoFacts => return,
        };
        partition.revision += 1;
        self.round.invalidated = Some(number);
        self.join_partition(node, number);
    }

    /// Widens the facts of an abstract state to those of its partition.
    pub(super) fn apply_widening(&self, state: &mut AbstractState) {
        for (origin, widened) in &self.partitions[state.partition].widened_facts {
            if let Some(fact) = state.facts.get(origin)
                && fact.implies(widened)
                && !self.group.separates_states(*origin, fact)
            {
                set_fact(state, *origin, widened.clone(), &self.group.top(*origin));
            }
        }
    }

    /// Whether all nodes of a partition have the same fact about a value.
    pub(super) fn is_joined(&self, partition: usize, origin: MemberValue) -> bool {
        match self.partitions[partition].precision {
            Precision::Full => false,
            Precision::Flags => !self.group.is_flag(origin),
            Precision::NoFacts => true,
        }
    }

    /// Joins the facts about these values with those of the other nodes of the partition, which may widen its facts.
    pub(super) fn join_into_widened(&mut self, state: &mut AbstractState, origins: Vec<MemberValue>) {
        let partition = &mut self.partitions[state.partition];
        let mut has_changed = false;
        for origin in origins {
            let top = self.group.top(origin);
            let fact = state.facts.get(&origin).unwrap_or(&top);
            let widened = partition.widened_facts.entry(origin).or_insert_with(|| fact.clone());
            if !fact.implies(widened) {
                *widened = self.group.join(widened, fact);
                partition.revision += 1;
                has_changed = true;
            }
            set_fact(state, origin, widened.clone(), &top);
        }
        if has_changed && !partition.nodes.is_empty() {
            self.round.invalidated = Some(state.partition);
        }
    }

    /// Joins the facts that no longer keep the nodes of a partition apart. `node` has the values that are live there.
    fn join_partition(&mut self, node: usize, partition: usize) {
        let origins = self.nodes[node].values.keys().copied().filter(|origin| self.is_joined(partition, *origin));
        let joined: Vec<_> = origins
            .map(|origin| {
                let top = self.group.top(origin);
                let facts = self.partitions[partition].nodes.iter().map(|other| &self.nodes[*other].state.facts);
                let facts = facts.map(|facts| facts.get(&origin).unwrap_or(&top));
                let join = facts.cloned().reduce(|a, b| self.group.join(&a, &b)).unwrap_or(top);
                (origin, join)
            })
            .collect();
        self.partitions[partition].widened_facts.extend(joined);
    }

    /// The facts that are wider in the new state than in the old one; none if the states differ otherwise.
    fn wider_facts(&self, old: &AbstractState, new: &AbstractState) -> Option<Vec<(MemberValue, Fact)>> {
        let mut wider = Vec::new();
        let mut facts = new.facts.iter().peekable();
        for (origin, fact) in old.facts.iter() {
            let wide = match facts.next_if(|(other, _)| *other == origin) {
                Some((_, wide)) if wide == fact => continue,
                Some((_, wide)) => wide.clone(),
                None => self.group.top(*origin),
            };
            if !fact.implies(&wide) || self.group.separates_states(*origin, fact) {
                return None;
            }
            wider.push((*origin, wide));
        }
        // A remaining fact is one that the old state does not have.
        let differs_in_facts_only = facts.next().is_none() && old.tags == new.tags && old.refuted == new.refuted;
        differs_in_facts_only.then_some(wider)
    }

    /// Widens the facts of a partition if a new node differs from an older one only in wider intervals.
    fn widen(&mut self, node: usize) {
        let state = self.nodes[node].state.clone();
        let mut wider = Facts::new();
        let mut compared = Vec::new();
        let older = self.partitions[state.partition].nodes.iter();
        for other in older.filter(|other| !self.nodes[node].widening_checked.contains(other)) {
            let old = &self.nodes[*other].state;
            wider.extend(self.wider_facts(old, &state).into_iter().flatten());
            compared.push(*other);
        }
        if wider.is_empty() {
            self.nodes[node].widening_checked.extend(compared);
            return;
        }
        self.round.invalidated = Some(state.partition);
        let partition = &mut self.partitions[state.partition];
        partition.revision += 1;
        for (origin, fact) in wider {
            let widened = partition.widened_facts.entry(origin).or_insert_with(|| fact.clone());
            widen_fact(widened, &fact);
            let global = self.widest_facts.entry(origin).or_insert_with(|| widened.clone());
            if widened.implies(global) {
                widened.clone_from(global);
            } else {
                widen_fact(global, widened);
            }
        }
    }
}

/// Widens a fact so that another one implies it.
fn widen_fact(widened: &mut Fact, fact: &Fact) {
    if widened.implies(fact) {
        widened.clone_from(fact);
    } else if !fact.implies(widened) {
        // Two incomparable facts need a common upper bound: alternating between them, the search would not terminate.
        *widened = Fact::between(widened.low.min(fact.low), widened.high.max(fact.high));
    }
}

/// Sets a fact of an abstract state; the top element is omitted.
fn set_fact(state: &mut AbstractState, origin: MemberValue, fact: Fact, top: &Fact) {
    if fact == *top {
        state.facts.remove(&origin);
    } else {
        state.facts.insert(origin, fact);
    }
}
