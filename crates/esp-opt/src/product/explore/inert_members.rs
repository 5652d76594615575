//! Inert members: those that have terminated, and those that are blocked forever: no active member can reach the other
//! end of an operation that they wait for, so they never proceed. Knows locations, no instructions.
//!
//! The reference (section 8) reports an instance only if it is not *wakeable*, and defines wakeable by the text: an
//! instance is wakeable if a wakeable one has the other end of an awaited operation anywhere in its code. An inert
//! member can be wakeable in this sense although it never proceeds. It is then not reported.
//!
//! An inert member is dropped from the product state. Only the report of a deadlock needs its location, which becomes a
//! run-time value ([`MemberState::blocked_wait`](super::super::state::MemberState::blocked_wait)); states that differ
//! only in it are merged.
//!
//! ```text
//!   blocked      the greatest set of members that wait only for members, not at an idle point, such that the other end
//!                of no awaited operation is at the wait of another member of the set, or reachable from one outside
//!   wakeable     the least set of members that are active, or that are blocked or inert and the other end of an
//!                awaited operation is in the *code* of another member of this set, reachable or not
//! ```
//!
//! While no member is blocked forever, terminated members keep their location. When the first blocked member is found,
//! the search restarts and treats terminated members as inert, too: the rest of the program does not depend on which
//! members have terminated and which are blocked.

use super::super::explorer::{Explorer, Transition, limit_exceeded};
use super::super::group::Group;
use super::super::pending_report::{BlockedWait, BlockedWaitId, PendingReport};
use super::super::rendezvous::GuardValue;
use super::super::state::{AwaitedSetId, Control, ProductState, SymbolicValue};
use crate::limits::LimitKind;
use crate::refusal::Refusal;
use quaject_esp_ir::ir::{BlockId, Blocking, ChannelId, Direction};
use std::collections::BTreeSet;

/// The maximal instances at one end of a channel for which a report distinguishes which of them have terminated.
const MAX_PARTNERS: u32 = 3;

impl Explorer<'_, '_> {
    /// Drops from a state the members that can never proceed again.
    pub(super) fn drop_inert_members(&mut self, state: &mut ProductState) {
        if self.schedule.is_some() {
            return;
        }
        let mut blocked: Vec<bool> =
            (0..state.members.len()).map(|member| self.awaits_members_only(state, member)).collect();
        loop {
            let has_partner = |member: &usize| blocked[*member] && self.has_live_partner(state, *member, &blocked);
            let Some(member) = (0..blocked.len()).find(has_partner) else { break };
            blocked[member] = false;
        }
        if !self.merges_inert_states && blocked.contains(&true) {
            (self.merges_inert_states, self.needs_restart) = (true, true);
        }
        if !self.merges_inert_states {
            return;
        }
        let awaited_sets = self.wakeable_sets(state, &blocked);
        for (member, awaited_set) in awaited_sets.into_iter().enumerate() {
            let blocked_wait = match state.members[member].control {
                Control::Waiting(block) if blocked[member] => self.intern_blocked_wait(state, member, block),
                Control::Terminated if self.is_reportable[member] => BlockedWaitId::TERMINATED,
                Control::Inert(_) => {
                    state.members[member].control = Control::Inert(awaited_set);
                    continue;
                }
                Control::Terminated | Control::Waiting(_) | Control::Running(_) | Control::Yielded(..) => continue,
            };
            state.members[member].control = Control::Inert(awaited_set);
            state.members[member].blocked_wait = Some(blocked_wait.as_constant());
            state.members[member].last_choice.clear();
            state.prune(self.group, member);
            state.refuted.retain(|rendezvous| !rendezvous.involves(member));
        }
    }

    /// Per member: the set of operations that it waits for, if it is blocked or inert, and wakeable.
    fn wakeable_sets(&mut self, state: &ProductState, blocked: &[bool]) -> Vec<AwaitedSetId> {
        let awaited = |member: usize| match state.members[member].control {
            Control::Inert(awaited_set) => self.awaited_sets[awaited_set.0].clone(),
            Control::Waiting(block) if blocked[member] => {
                self.awaited_operations(member, &self.blocked_wait(state, member, block))
            }
            Control::Waiting(_) | Control::Running(_) | Control::Yielded(..) | Control::Terminated => Vec::new(),
        };
        let awaited: Vec<Vec<(ChannelId, Direction)>> = (0..blocked.len()).map(awaited).collect();
        let is_active = |member: usize| match state.members[member].control {
            Control::Waiting(_) => !blocked[member],
            Control::Running(_) | Control::Yielded(..) => true,
            Control::Terminated | Control::Inert(_) => false,
        };
        let mut wakeable: Vec<bool> = (0..blocked.len()).map(is_active).collect();
        let is_wakeable = |member: usize, wakeable: &[bool]| {
            awaited[member].iter().any(|(channel, direction)| {
                let mut partners = (0..blocked.len()).filter(|partner| *partner != member && wakeable[*partner]);
                partners.any(|partner| self.has_site(partner, *channel, direction.other()))
            })
        };
        let next =
            |wakeable: &[bool]| (0..blocked.len()).find(|member| !wakeable[*member] && is_wakeable(*member, wakeable));
        while let Some(member) = next(&wakeable) {
            wakeable[member] = true;
        }
        let set_id = |(awaited, is_wakeable)| {
            if is_wakeable { self.intern_awaited(awaited) } else { AwaitedSetId::NOT_WAKEABLE }
        };
        awaited.into_iter().zip(wakeable).map(set_id).collect()
    }

    /// Records the waits at which members may be blocked, and refuses a product whose reports are too large.
    pub(super) fn check_report_size(&mut self, start: &Transition) -> Result<(), Refusal> {
        let effects = || self.round.reached.iter().map(|node| self.nodes[*node].effects());
        let mut reached = vec![BTreeSet::new(); self.group.members.len()];
        for transition in effects().flat_map(|effects| &effects.transitions).chain([start]) {
            for (member, member_state) in transition.state.product.members.iter().enumerate() {
                if let Some(SymbolicValue::Constant(id)) = member_state.blocked_wait {
                    reached[member].insert(BlockedWaitId(id as u32));
                }
            }
        }
        self.reached_blocked_waits = reached;
        let shared = self.deadlock_blocks.values().map(|(_, report)| report);
        let reports: Vec<&PendingReport> = effects().flat_map(|effects| &effects.reports).chain(shared).collect();
        let (remaining, before) = (self.remaining_fuel(), self.round.size);
        let mut size = before;
        for report in reports {
            size += self.report_size(report);
            if size > self.limits.emitted_before_cleanup {
                return Err(limit_exceeded(self.limits.size_kind, self.limits.instructions));
            }
            if size - before >= remaining {
                return Err(limit_exceeded(LimitKind::Fuel, self.limits.fuel));
            }
        }
        self.fuel -= size - before;
        Ok(())
    }

    /// Interns a set of awaited operations.
    fn intern_awaited(&mut self, awaited: Vec<(ChannelId, Direction)>) -> AwaitedSetId {
        let number = self.awaited_sets.iter().position(|set| *set == awaited).unwrap_or_else(|| {
            self.awaited_sets.push(awaited);
            self.awaited_sets.len() - 1
        });
        AwaitedSetId(number)
    }

    /// Whether the code of a member has an operation on a channel, reachable or not.
    pub(in super::super) fn has_site(&self, member: usize, on: ChannelId, direction: Direction) -> bool {
        let process = self.group.members[member].process;
        let mut sites = self.group.program.processes[process.0 as usize].sites.iter();
        sites.any(|site| site.channel == on && site.direction == direction)
    }

    /// The number of the wait at which a member is blocked.
    fn intern_blocked_wait(&mut self, state: &ProductState, member: usize, block: BlockId) -> BlockedWaitId {
        let blocked_wait = self.blocked_wait(state, member, block);
        let waits = &mut self.blocked_waits[member];
        let index = waits.iter().position(|known| *known == blocked_wait).unwrap_or_else(|| {
            waits.push(blocked_wait);
            waits.len() - 1
        });
        BlockedWaitId::of_index(index)
    }

    fn blocked_wait(&self, state: &ProductState, member: usize, block: BlockId) -> BlockedWait {
        let branches = &self.group.wait(member, block).branches;
        let is_open = |guard| self.guard_in(state, member, guard) != GuardValue::False;
        BlockedWait { block, open: branches.iter().map(|branch| is_open(branch.guard)).collect() }
    }

    /// The operations that a member waits for where it is blocked, sorted.
    pub(in super::super) fn awaited_operations(&self, member: usize, at: &BlockedWait) -> Vec<(ChannelId, Direction)> {
        let branches = self.group.wait(member, at.block).branches.iter().zip(&at.open);
        let open = branches.filter(|(_, open)| **open);
        let mut awaited: Vec<_> = open.filter_map(|(branch, _)| branch.operation.channel_end()).collect();
        awaited.sort_unstable_by_key(|(channel, direction)| (*channel, *direction == Direction::In));
        awaited.dedup();
        awaited
    }

    /// Whether a member waits only for other members, and not at an idle point.
    fn awaits_members_only(&self, state: &ProductState, member: usize) -> bool {
        let Control::Waiting(block) = state.members[member].control else { return false };
        let wait = self.group.wait(member, block);
        let is_inside = |(channel, _): (ChannelId, Direction)| self.group.is_internal(channel);
        wait.otherwise.is_none()
            && wait.blocking == Blocking::Deadlock
            && wait.branches.iter().all(|branch| branch.operation.channel_end().is_some_and(is_inside))
            && wait.branches.iter().any(|branch| self.guard_in(state, member, branch.guard) == GuardValue::True)
            && self.is_reportable[member]
    }

    /// Whether another member can still reach the other end of an operation that a member waits for, if the members in
    /// `blocked` never proceed.
    fn has_live_partner(&self, state: &ProductState, member: usize, blocked: &[bool]) -> bool {
        let Control::Waiting(block) = state.members[member].control else { return false };
        let branches = self.group.wait(member, block).branches.iter();
        let open = branches.filter(|branch| self.guard_in(state, member, branch.guard) != GuardValue::False);
        open.filter_map(|branch| branch.operation.channel_end()).any(|(channel, direction)| {
            let other_end = (channel, direction.other());
            let mut partners = (0..blocked.len()).filter(|partner| *partner != member);
            partners.any(|partner| match state.members[partner].control {
                Control::Waiting(at) if blocked[partner] => {
                    let branches = &self.group.wait(partner, at).branches;
                    branches.iter().any(|branch| branch.operation.channel_end() == Some(other_end))
                }
                Control::Running(at) | Control::Yielded(at, _) | Control::Waiting(at) => {
                    self.group.members[partner].ahead[at.0 as usize].contains(&other_end)
                }
                Control::Terminated | Control::Inert(_) => false,
            })
        })
    }
}

/// Whether the channels of a member have few enough users that a report can distinguish which of them have terminated.
pub(super) fn is_reportable(group: &Group<'_>, member: usize) -> bool {
    let process = group.members[member].process;
    let mut sites = group.program.processes[process.0 as usize].sites.iter();
    sites.all(|site| group.max_endpoint_instances(site.channel) <= MAX_PARTNERS)
}
