//! The process that contributes most nodes to a product. Knows abstract states, not how they are reached.

use super::super::explorer::Explorer;
use quaject_esp_ir::ir::{ProcessId, SlotId};
use rustc_hash::{FxHashSet, FxHasher};
use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};

impl Explorer<'_, '_> {
    /// The process whose removal from the abstract states leaves the fewest distinct nodes, if the group has several
    /// processes.
    pub(super) fn costliest(&self) -> Option<ProcessId> {
        let members = &self.group.members;
        let processes: BTreeSet<ProcessId> = members.iter().map(|member| member.process).collect();
        let distinct_without = |process: &ProcessId| {
            let is_other = |member: usize| members[member].process != *process;
            let owner = |slot: SlotId| members.partition_point(|member| member.first_slot <= slot.0).checked_sub(1);
            let projection = |node: &usize| {
                let state = &self.nodes[*node].state;
                let mut hasher = FxHasher::default();
                let locations = self.partitions[state.partition].vector.members.iter().enumerate();
                locations.filter(|(member, _)| is_other(*member)).for_each(|location| location.hash(&mut hasher));
                let facts = state.facts.iter().filter(|((member, _), _)| is_other(*member));
                facts.for_each(|fact| fact.hash(&mut hasher));
                let tags = state.tags.iter().filter(|((slot, _), _)| owner(*slot).is_some_and(is_other));
                tags.for_each(|tag| tag.hash(&mut hasher));
                let refuted = state.refuted.iter();
                let refuted = refuted.filter(|refuted| is_other(refuted.sender) && is_other(refuted.receiver));
                refuted.for_each(|rendezvous| rendezvous.hash(&mut hasher));
                hasher.finish()
            };
            self.round.reached.iter().map(projection).collect::<FxHashSet<u64>>().len()
        };
        let costliest = processes.iter().min_by_key(|process| distinct_without(process)).copied();
        costliest.filter(|_| processes.len() > 1)
    }
}
