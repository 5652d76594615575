//! Which process a product has most of its nodes from. Knows keys of nodes, not how they were found.

use super::{Explorer, ProcessId};
use quaject_esp_ir::ir::SlotId;
use rustc_hash::{FxHashSet, FxHasher};
use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};

impl Explorer<'_, '_> {
    /// The process without which fewest of the nodes would differ, if there are several.
    pub(super) fn costliest(&self) -> Option<ProcessId> {
        let members = &self.group.members;
        let processes: BTreeSet<ProcessId> = members.iter().map(|member| member.process).collect();
        let left = |process: &ProcessId| {
            let is_other = |member: usize| members[member].process != *process;
            let owner = |slot: SlotId| members.partition_point(|member| member.first_slot <= slot.0).checked_sub(1);
            let parts = |node: &usize| {
                let key = &self.nodes[*node].key;
                let mut hasher = FxHasher::default();
                let places = self.versions[key.place].place.members.iter().enumerate();
                places.filter(|(member, _)| is_other(*member)).for_each(|place| place.hash(&mut hasher));
                let facts = key.facts.iter().filter(|((member, _), _)| is_other(*member));
                facts.for_each(|fact| fact.hash(&mut hasher));
                let tags = key.tags.iter().filter(|((slot, _), _)| owner(*slot).is_some_and(is_other));
                tags.for_each(|tag| tag.hash(&mut hasher));
                let refuted = key.refuted.iter();
                let refuted = refuted.filter(|(writer, _, reader, _)| is_other(*writer) && is_other(*reader));
                refuted.for_each(|meeting| meeting.hash(&mut hasher));
                hasher.finish()
            };
            self.round.list.iter().map(parts).collect::<FxHashSet<u64>>().len()
        };
        let costliest = processes.iter().min_by_key(|process| left(process)).copied();
        costliest.filter(|_| processes.len() > 1)
    }
}
