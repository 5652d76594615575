//! Members that will never go on again: they have ended, or wait for those who will not come. Where they are is data, which
//! only reports of deadlocks ask for, so that states that differ in it are one. Knows places, no instructions.
//!
//! Where nobody is ever lost, members that have ended stay what they are. Else the search begins anew with those gone, too:
//! what is left to do does not depend on which of the others ended and which is lost.

use super::super::group::Group;
use super::super::meet::Open;
use super::super::state::{At, Hope, Known, State};
use super::super::tell::{self, Told};
use super::{End, Explorer, too_large};
use crate::limits::LimitKind;
use crate::refusal::Refusal;
use quaject_esp_ir::ir::{BlockId, Blocking, ChannelId, Direction};
use std::collections::BTreeSet;

/// Most instances at one end of a channel: reports tell apart which of them have ended.
const MOST_PARTNERS: u32 = 3;

impl Explorer<'_, '_> {
    /// Takes members out of a state that will never go on again.
    pub(super) fn retire(&mut self, state: &mut State) {
        if self.course.is_some() {
            return;
        }
        let mut lost: Vec<bool> = (0..state.members.len()).map(|member| self.may_be_lost(state, member)).collect();
        loop {
            let found = |member: &usize| lost[*member] && self.has_partner(state, *member, &lost);
            let Some(member) = (0..lost.len()).find(found) else { break };
            lost[member] = false;
        }
        if !self.merges_ends && lost.contains(&true) {
            (self.merges_ends, self.begins_anew) = (true, true);
        }
        if !self.merges_ends {
            return;
        }
        let hopes = self.hopes_of(state, &lost);
        for (member, hope) in hopes.into_iter().enumerate() {
            let place = match state.members[member].at {
                At::Waiting(block) if lost[member] => self.rest(state, member, block),
                At::Ended if self.can_be_told[member] => tell::ENDED,
                At::Gone(_) => {
                    state.members[member].at = At::Gone(hope);
                    continue;
                }
                At::Ended | At::Waiting(_) | At::Running(_) | At::Yielding(..) => continue,
            };
            state.members[member].at = At::Gone(hope);
            state.members[member].rests_at = Some(Known::Constant(i128::from(place)));
            state.members[member].last.clear();
            state.prune(self.group, member);
            state.refuted.retain(|(writer, _, reader, _)| *writer != member && *reader != member);
        }
    }

    /// What each member may hope for that is lost or gone: a partner by its text, who is neither or has hopes itself.
    fn hopes_of(&mut self, state: &State, lost: &[bool]) -> Vec<Hope> {
        let wanted = |member: usize| match state.members[member].at {
            At::Gone(hope) => self.hopes[hope.0].clone(),
            At::Waiting(block) if lost[member] => self.wanted_at(member, &self.rest_of(state, member, block)),
            At::Waiting(_) | At::Running(_) | At::Yielding(..) | At::Ended => Vec::new(),
        };
        let wanted: Vec<Vec<(ChannelId, Direction)>> = (0..lost.len()).map(wanted).collect();
        let is_alive = |member: usize| match state.members[member].at {
            At::Waiting(_) => !lost[member],
            At::Running(_) | At::Yielding(..) => true,
            At::Ended | At::Gone(_) => false,
        };
        let mut has_hope: Vec<bool> = (0..lost.len()).map(is_alive).collect();
        let finds = |member: usize, has_hope: &[bool]| {
            wanted[member].iter().any(|(channel, direction)| {
                let mut partners = (0..lost.len()).filter(|partner| *partner != member && has_hope[*partner]);
                partners.any(|partner| self.has_site(partner, *channel, direction.other()))
            })
        };
        while let Some(member) = (0..lost.len()).find(|member| !has_hope[*member] && finds(*member, &has_hope)) {
            has_hope[member] = true;
        }
        let hopes = wanted.into_iter().zip(has_hope);
        hopes.map(|(wanted, has_hope)| if has_hope { self.hope(wanted) } else { Hope::NONE }).collect()
    }

    /// Notes where members may be gone, and refuses if it is too much to tell.
    pub(super) fn check_told(&mut self, start: &End) -> Result<(), Refusal> {
        let seen = || self.round.list.iter().map(|node| self.nodes[*node].seen());
        let mut reached = vec![BTreeSet::new(); self.group.members.len()];
        for end in seen().flat_map(|seen| &seen.ends).chain([start]) {
            for (member, state) in end.path.state.members.iter().enumerate() {
                if let Some(Known::Constant(place)) = state.rests_at {
                    reached[member].insert(place);
                }
            }
        }
        self.reached = reached;
        let told: Vec<&Told> =
            seen().flat_map(|seen| &seen.told).chain(self.vain.values().map(|(_, told)| told)).collect();
        let (most, left, mut size) = (self.limits.emitted, self.left(), self.round.size);
        let before = size;
        for told in told {
            size += self.size_of(told);
            if size > most {
                return Err(too_large(self.limits.size_kind, self.limits.instructions));
            }
            if size - before >= left {
                return Err(too_large(LimitKind::Fuel, self.limits.fuel));
            }
        }
        self.fuel -= size - before;
        Ok(())
    }

    /// The number of these operations.
    fn hope(&mut self, wanted: Vec<(ChannelId, Direction)>) -> Hope {
        let number = self.hopes.iter().position(|known| *known == wanted).unwrap_or_else(|| {
            self.hopes.push(wanted);
            self.hopes.len() - 1
        });
        Hope(number)
    }

    /// Whether a member has an operation on a channel in its text.
    pub(in super::super) fn has_site(&self, member: usize, on: ChannelId, direction: Direction) -> bool {
        let process = self.group.members[member].process;
        let mut sites = self.group.program.processes[process.0 as usize].sites.iter();
        sites.any(|site| site.channel == on && site.direction == direction)
    }

    /// The number of the place where a member waits.
    fn rest(&mut self, state: &State, member: usize, block: BlockId) -> u32 {
        let rest = self.rest_of(state, member, block);
        let known = &mut self.rests[member];
        let index = known.iter().position(|known| *known == rest).unwrap_or_else(|| {
            known.push(rest);
            known.len() - 1
        });
        index as u32 + 1
    }

    fn rest_of(&self, state: &State, member: usize, block: BlockId) -> tell::Rest {
        let branches = &self.group.wait(member, block).branches;
        let open = branches.iter().map(|branch| self.open_in(state, member, branch.guard) != Open::No).collect();
        tell::Rest { block, open }
    }

    /// The operations that a member waits for at a place, in order.
    pub(in super::super) fn wanted_at(&self, member: usize, rest: &tell::Rest) -> Vec<(ChannelId, Direction)> {
        let branches = self.group.wait(member, rest.block).branches.iter().zip(&rest.open);
        let open = branches.filter(|(_, open)| **open);
        let mut wanted: Vec<_> = open.filter_map(|(branch, _)| branch.operation.channel_end()).collect();
        wanted.sort_unstable_by_key(|(channel, direction)| (*channel, *direction == Direction::In));
        wanted.dedup();
        wanted
    }

    /// Whether a member waits for other members only, and not at an idle point.
    fn may_be_lost(&self, state: &State, member: usize) -> bool {
        let At::Waiting(block) = state.members[member].at else { return false };
        let wait = self.group.wait(member, block);
        let is_inside = |(channel, _): (ChannelId, Direction)| self.group.is_internal(channel);
        wait.otherwise.is_none()
            && wait.blocking == Blocking::Deadlock
            && wait.branches.iter().all(|branch| branch.operation.channel_end().is_some_and(is_inside))
            && wait.branches.iter().any(|branch| self.open_in(state, member, branch.guard) == Open::Yes)
            && self.can_be_told[member]
    }

    /// Whether somebody may still meet a member where it waits, if those who may be lost are.
    fn has_partner(&self, state: &State, member: usize, lost: &[bool]) -> bool {
        let At::Waiting(block) = state.members[member].at else { return false };
        let branches = self.group.wait(member, block).branches.iter();
        let open = branches.filter(|branch| self.open_in(state, member, branch.guard) != Open::No);
        open.filter_map(|branch| branch.operation.channel_end()).any(|(channel, direction)| {
            let wanted = (channel, direction.other());
            (0..lost.len()).filter(|partner| *partner != member).any(|partner| match state.members[partner].at {
                At::Waiting(at) if lost[partner] => {
                    let branches = &self.group.wait(partner, at).branches;
                    branches.iter().any(|branch| branch.operation.channel_end() == Some(wanted))
                }
                At::Running(at) | At::Yielding(at, _) | At::Waiting(at) => {
                    self.group.members[partner].ahead[at.0 as usize].contains(&wanted)
                }
                At::Ended | At::Gone(_) => false,
            })
        })
    }
}

/// Whether a member's channels have few enough users that a report tells apart which of them have ended.
pub(super) fn can_be_told(group: &Group<'_>, member: usize) -> bool {
    let process = group.members[member].process;
    let mut sites = group.program.processes[process.0 as usize].sites.iter();
    sites.all(|site| group.most_users(site.channel) <= MOST_PARTNERS)
}
