//! Priority arbitration: when a requester may take a waiting `pri alt`, its owner, at a branch that is not its first.
//! The reference promises that an earlier branch goes first if it can commit. The owner does not run while it waits, so
//! the requester arbitrates on its behalf:
//!
//! ```text
//!   term       an earlier branch of the owner ..                      the requester ..
//!   preempt    is on the environment or the clock, and can commit     commits it for the owner, and searches again
//!   defer      may have become possible, as a guard at one of its     queues behind the instance whose guard opened,
//!              ends depends on free objects and has opened            and searches again when it is dispatched
//!   bypass     could be met by the requester as well                  skips this owner, to meet it there or another
//! ```
//!
//! A fair `alt` always bypasses; a `pri alt` bypasses only if another partner may wait on the channel, and takes the
//! first owner after all if it has bypassed all of them. What is decided here is where each may happen, by branches;
//! the functions that decide it at run time are written by the emitter of the same name.

use super::waits::{branch_channel, has_free_object_guard};
use super::{End, Plan};
use quaject_esp_ir::ir::{AltOrder, Branch, Direction};
use std::collections::BTreeSet;

impl Plan<'_> {
    /// Decides where preempting, deferring and bypassing may happen.
    pub(super) fn plan_priorities(&mut self) {
        for (process, wait) in self.waits().collect::<Vec<_>>() {
            for end in self.ends(process, wait) {
                let preempted = self.is_preceded(end, |branch| !self.is_internal(branch));
                let deferred = self.is_preceded(end, |branch| self.may_open_while_waiting(branch));
                let branch = &mut self.processes[process].waits[wait].branches[end.branch];
                (branch.may_be_preempted, branch.may_be_deferred_to) = (preempted, deferred);
            }
        }
        for (process, wait) in self.waits().collect::<Vec<_>>() {
            let partners: Vec<End> = self.partners(process, wait).collect();
            let may_defer = partners.iter().any(|end| self.branch_plan(*end).may_be_deferred_to);
            let may_bypass = partners.iter().any(|end| self.is_bypassed_by(*end, (process, wait)));
            let plan = &mut self.processes[process].waits[wait];
            (plan.may_defer, plan.may_bypass) = (may_defer, may_bypass);
        }
        self.preference_queries = self.find_preference_queries();
    }

    /// Numbers restarts: a wait whose partner may be preempted to send a message gets a program counter for its search.
    pub(super) fn plan_restarts(&mut self, mut pc: u32) -> u32 {
        if !self.sans_io() {
            return pc;
        }
        for (process, wait) in self.waits().collect::<Vec<_>>() {
            if self.partners(process, wait).any(|end| self.branch_plan(end).may_be_preempted) {
                self.processes[process].waits[wait].retry_pc = Some(pc);
                pc += 1;
            }
        }
        pc
    }

    /// The ends that a wait may meet.
    fn partners(&self, process: usize, wait: usize) -> impl Iterator<Item = End> {
        let branches = self.wait(process, wait).branches.iter();
        branches.flat_map(|branch| self.opposite(branch)).copied()
    }

    /// Whether a branch belongs to a `pri alt` in which an earlier branch has this property.
    fn is_preceded(&self, end: End, property: impl Fn(&Branch) -> bool) -> bool {
        let wait = self.wait(end.process, end.wait);
        match wait.order {
            AltOrder::Priority => wait.branches[..end.branch].iter().any(property),
            AltOrder::Fair => false,
        }
    }

    /// Whether a guard at one end of an internal branch depends on free objects.
    fn may_open_while_waiting(&self, branch: &Branch) -> bool {
        let partner_may_open = |partner: &End| has_free_object_guard(self.branch(*partner));
        self.is_internal(branch)
            && (has_free_object_guard(branch) || self.opposite(branch).iter().any(partner_may_open))
    }

    /// Whether a requester at a wait may bypass a branch of a waiting `pri alt`.
    pub(crate) fn is_bypassed_by(&self, end: End, requester: (usize, usize)) -> bool {
        let has_alternatives = match branch_channel(self.branch(end)) {
            Some((channel, Direction::In)) => self.channels[channel.0 as usize].reader_words() > 0,
            Some((channel, Direction::Out)) => self.channels[channel.0 as usize].writer_words() > 0,
            None => false,
        };
        let bypasses = match (self.wait(end.process, end.wait).order, self.wait(requester.0, requester.1).order) {
            (AltOrder::Priority, AltOrder::Fair) => true,
            (AltOrder::Priority, AltOrder::Priority) => has_alternatives,
            (AltOrder::Fair, _) => false,
        };
        bypasses && self.preferred_pairs(end, requester).next().is_some()
    }

    /// The pairs of ends at which a `pri alt` and a requester could meet before a branch: the owner's end first.
    fn preferred_pairs(&self, end: End, requester: (usize, usize)) -> impl Iterator<Item = (End, End)> {
        let branches = self.wait(end.process, end.wait).branches[..end.branch].iter().enumerate();
        branches.flat_map(move |(branch, data)| {
            let theirs = self.opposite(data).iter().filter(move |other| (other.process, other.wait) == requester);
            theirs.map(move |other| (End { branch, ..end }, *other))
        })
    }

    /// Whether some requester may bypass this branch.
    pub(super) fn may_be_bypassed(&self, end: End) -> bool {
        let requesters = self.opposite(self.branch(end)).iter();
        requesters.map(|other| (other.process, other.wait)).any(|requester| self.is_bypassed_by(end, requester))
    }

    fn find_preference_queries(&self) -> BTreeSet<(End, End)> {
        let mut queries = BTreeSet::new();
        for (process, wait) in self.waits() {
            for end in self.ends(process, wait) {
                for other in self.opposite(self.branch(end)) {
                    let requester = (other.process, other.wait);
                    if self.is_bypassed_by(end, requester) {
                        queries.extend(self.preferred_pairs(end, requester));
                    }
                }
            }
        }
        queries
    }

    /// Whether one of these ends takes part in a preference query.
    pub(crate) fn is_queried(&self, ends: &[End]) -> bool {
        self.preference_queries.iter().any(|(owner, requester)| ends.contains(owner) || ends.contains(requester))
    }
}
