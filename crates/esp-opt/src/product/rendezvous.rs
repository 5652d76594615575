//! Rendezvous between members that all wait: which one happens, and its steps. Matching and binding of the message are
//! in `message`, operations with the environment in `environment`.
//!
//! ```text
//!   step_all_waiting       poll the environment for preferred members
//!     perform_rendezvous   a member that has yielded, if others have run since
//!       select_rendezvous    else the first possible rendezvous: priority of `pri alt`; preferred members; receiver
//!                              furthest downstream; the round-robin order of both fair waits
//!       attempt_rendezvous     fork on unknown guards; poll operations with the environment that precede it
//!         make_message           evaluate the payload
//!           match_message          fork on unknown matches and on the condition
//!             commit_rendezvous      bind, adjust reference counts, both members proceed
//!             refute                 exclude this rendezvous until a participant proceeds, and try the others
//!     step_environment     else wait for the environment
//! ```

use super::body_queries::{has_effects, holds_boxed, operation_site};
use super::explorer::Explorer;
use super::group::Member;
use super::state::{
    BranchChoice, Control, ProductState, Rendezvous, SinceYield, SymbolicOperand, SymbolicState, SymbolicValue,
};
use super::symbolic_exec::tag_steps;
use crate::path_exit::ExitReason;
use crate::refusal::Refusal;
use quaject_esp_exec::priority::{is_allowed, participants};
use quaject_esp_exec::trace;
use quaject_esp_ir::ir::{
    AltOrder, Base, BlockId, Branch, ChannelId, Direction, Guard, Op, Operand, Operation, Passed, Pattern, Payload,
    Place, SlotId, Terminator, Transfer, TypeId, Wait,
};
use quaject_esp_ir::visit::bound_slots;
use std::collections::BTreeSet;

/// The value of a guard under the current facts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum GuardValue {
    True,
    False,
    Unknown,
}

impl<'g, 'p> Explorer<'g, 'p> {
    /// Continues from a state in which all members wait.
    pub(super) fn step_all_waiting(&mut self, state: SymbolicState) -> Result<(), Refusal> {
        if self.schedule.is_some() {
            return self.run_scheduled(state);
        }
        let preferred = self.preferred(&state.product);
        let polling = preferred.iter().filter(|member| !state.product.polled.contains(member));
        let first: Vec<(usize, u32)> = polling.flat_map(|member| self.environment_branches(&state, *member)).collect();
        self.poll_environment(state, first, &mut |explorer, state| explorer.perform_rendezvous(state, &preferred))
    }

    fn perform_rendezvous(&mut self, state: SymbolicState, preferred: &BTreeSet<usize>) -> Result<(), Refusal> {
        self.check_size()?;
        let possible = self.possible_rendezvous(&state);
        self.note_enabled(possible.iter().flat_map(|rendezvous| [rendezvous.sender, rendezvous.receiver]));
        self.note_enabled(state.product.yielding().map(|(member, _)| member));
        if let Some(member) = self.next_yielded(&state, SinceYield::OthersRan) {
            return self.resume_yielded(state, member);
        }
        match self.select_rendezvous(&state, &possible, preferred) {
            Some(rendezvous) => self.attempt_rendezvous(state, rendezvous),
            None => self.step_environment(state, preferred),
        }
    }

    /// The wait of a member that waits, and the block that ends in it.
    pub(super) fn current_wait(&self, state: &SymbolicState, member: usize) -> Option<(BlockId, &'p Wait)> {
        match state.product.members[member].control {
            Control::Waiting(block) => Some((block, self.group.wait(member, block))),
            Control::Running(_) | Control::Yielded(..) | Control::Terminated | Control::Inert(_) => None,
        }
    }

    pub(super) fn guard_value(&self, state: &SymbolicState, member: usize, guard: Guard) -> GuardValue {
        self.guard_in(&state.product, member, guard)
    }

    pub(super) fn guard_in(&self, state: &ProductState, member: usize, guard: Guard) -> GuardValue {
        match guard {
            Guard::Open => GuardValue::True,
            Guard::Value(value) => match state.symbolic_value(member, value) {
                SymbolicValue::Constant(0) => GuardValue::False,
                SymbolicValue::Constant(_) => GuardValue::True,
                SymbolicValue::Residual(_) => GuardValue::Unknown,
            },
            Guard::Region(_) => unreachable!("groups have no guards that ask `free`"),
        }
    }

    /// Every rendezvous that the facts do not exclude.
    fn possible_rendezvous(&mut self, state: &SymbolicState) -> Vec<Rendezvous> {
        let members = 0..self.group.members.len();
        let sends: Vec<_> = members.clone().flat_map(|sender| self.open_sends(state, sender)).collect();
        let mut possible = Vec::new();
        for receiver in members {
            let Some((_, wait)) = self.current_wait(state, receiver) else { continue };
            for (receiver_branch, branch) in wait.branches.iter().enumerate() {
                let Operation::In { channel, patterns, .. } = &branch.operation else { continue };
                if !self.group.is_internal(*channel)
                    || self.guard_value(state, receiver, branch.guard) == GuardValue::False
                {
                    continue;
                }
                for (sender, sender_branch, on, branch) in &sends {
                    let (sender, sender_branch) = (*sender, *sender_branch);
                    let receiver_branch = receiver_branch as u32;
                    let rendezvous = Rendezvous { sender, sender_branch, receiver, receiver_branch };
                    if on == channel
                        && sender != receiver
                        && !state.product.refuted.contains(&rendezvous)
                        && !self.cannot_match(state, sender, branch, receiver, patterns)
                    {
                        possible.push(rendezvous);
                    }
                }
            }
        }
        possible
    }

    /// Whether the facts do not exclude a rendezvous.
    pub(super) fn is_possible(&mut self, state: &SymbolicState, rendezvous: Rendezvous) -> bool {
        let (out, branch) = (self.sender_branch(state, rendezvous), self.receiver_branch(state, rendezvous));
        let (Operation::Out { channel: from, .. }, Operation::In { channel: to, patterns, .. }) =
            (&out.operation, &branch.operation)
        else {
            return false;
        };
        from == to
            && !state.product.refuted.contains(&rendezvous)
            && !self.cannot_match(state, rendezvous.sender, out, rendezvous.receiver, patterns)
    }

    /// The send branches of a member that waits, with their channels, unless their guards are false.
    fn open_sends(
        &self,
        state: &SymbolicState,
        sender: usize,
    ) -> impl Iterator<Item = (usize, u32, ChannelId, &'p Branch)> {
        let branches =
            self.current_wait(state, sender).into_iter().flat_map(|(_, wait)| wait.branches.iter().enumerate());
        branches.filter_map(move |(index, branch)| match &branch.operation {
            Operation::Out { channel, .. } if self.guard_value(state, sender, branch.guard) != GuardValue::False => {
                Some((sender, index as u32, *channel, branch))
            }
            Operation::Out { .. } | Operation::In { .. } | Operation::After { .. } => None,
        })
    }

    /// Whether the facts exclude that a message matches.
    fn cannot_match(
        &mut self,
        state: &SymbolicState,
        sender: usize,
        out: &Branch,
        receiver: usize,
        patterns: &[Pattern],
    ) -> bool {
        let Operation::Out { payload: Payload::Ready(passed), .. } = &out.operation else { return false };
        let group = self.group;
        let instance = i128::from(group.members[receiver].instance);
        passed.iter().zip(patterns).any(|(passed, pattern)| {
            let wanted = match pattern {
                Pattern::Constant(value) => *value,
                Pattern::OwnId => instance,
                Pattern::Tag(tag, _) => {
                    let Operand::Place(place) = &passed.operand else { return false };
                    let Some((slot, steps)) = tag_steps(place) else { return false };
                    let place = (SlotId(slot.0 + group.members[sender].first_slot), steps);
                    return state.product.tags.get(&place).is_some_and(|fact| !fact.admits(i128::from(*tag)));
                }
                Pattern::Any
                | Pattern::Bind(_)
                | Pattern::Bytes(_)
                | Pattern::Equal(_)
                | Pattern::Record(_)
                | Pattern::Array(_) => return false,
            };
            match &passed.operand {
                Operand::Value(value) => {
                    let ty = group.members[sender].body.values[value.0 as usize].ty;
                    !state.product.fact(group, self.symbolic_value(state, sender, *value), ty).admits(wanted)
                }
                Operand::Place(_) => false,
            }
        })
    }

    /// The rendezvous that happens, of those that are possible.
    fn select_rendezvous(
        &self,
        state: &SymbolicState,
        possible: &[Rendezvous],
        preferred: &BTreeSet<usize>,
    ) -> Option<Rendezvous> {
        let [_, _, ..] = possible else { return possible.first().copied() };
        let step = |rendezvous: &Rendezvous| trace::Step::Communicate {
            sender: rendezvous.sender as u32,
            sender_branch: rendezvous.sender_branch,
            receiver: rendezvous.receiver as u32,
            receiver_branch: rendezvous.receiver_branch,
        };
        let steps: Vec<trace::Step> = possible.iter().map(step).collect();
        let is_priority = |member: u32| {
            let (_, wait) = self.current_wait(state, member as usize).expect("participants wait");
            wait.order == AltOrder::Priority
        };
        let has_priority = steps.iter().flat_map(|step| participants(*step)).any(|(member, _)| is_priority(member));
        let is_allowed = |rendezvous: &&Rendezvous| !has_priority || is_allowed(step(rendezvous), &steps, &is_priority);
        let rank = |rendezvous: &&Rendezvous| {
            let Rendezvous { sender, receiver, .. } = **rendezvous;
            (
                !preferred.contains(&receiver) && !preferred.contains(&sender),
                std::cmp::Reverse(receiver),
                self.round_robin_rank(state, receiver, rendezvous.receiver_choice()),
                self.round_robin_rank(state, sender, rendezvous.sender_choice()),
            )
        };
        possible.iter().filter(is_allowed).min_by_key(rank).copied()
    }

    /// The rank of a choice in the order in which a wait tries them: a fair wait begins after its last choice.
    fn round_robin_rank(&self, state: &SymbolicState, member: usize, choice: BranchChoice) -> (bool, BranchChoice) {
        let Some((block, wait)) = self.current_wait(state, member) else { return (false, choice) };
        match (wait.order, state.product.members[member].last_choice.get(&block)) {
            (AltOrder::Fair, Some(last)) => (choice <= *last, choice),
            (AltOrder::Fair, None) | (AltOrder::Priority, _) => (false, choice),
        }
    }

    /// Whether the last choice of a wait is recorded: it is fair and has several choices.
    fn records_choice(&self, wait: &Wait) -> bool {
        let senders = |channel: ChannelId| {
            let sends = |member: &&Member<'_>| {
                self.group.program.processes[member.process.0 as usize]
                    .sites
                    .iter()
                    .any(|site| site.channel == channel && site.direction == Direction::Out)
            };
            self.group.members.iter().filter(sends).count()
        };
        wait.order == AltOrder::Fair
            && (wait.branches.len() > 1
                || wait.branches.iter().any(|branch| match &branch.operation {
                    Operation::In { channel, .. } => self.group.is_internal(*channel) && senders(*channel) > 1,
                    Operation::Out { .. } | Operation::After { .. } => false,
                }))
    }

    /// The member that continues next, of those that have yielded and since when this has happened.
    pub(super) fn next_yielded(&self, state: &SymbolicState, wanted: SinceYield) -> Option<usize> {
        let members = state.product.yielding().filter(|(_, turn)| turn.since == wanted);
        members.min_by_key(|(_, turn)| turn.queue_position).map(|(member, _)| member)
    }

    /// Continues a member that has yielded, after a `yield` of the product to other processes.
    pub(super) fn resume_yielded(&mut self, mut state: SymbolicState, member: usize) -> Result<(), Refusal> {
        let Control::Yielded(block, own) = state.product.members[member].control else {
            unreachable!("the member has yielded")
        };
        let next = self.out.create_block(Vec::new());
        let location = self.group.members[member].body.blocks[block.0 as usize].location;
        self.out.finish(state.block, Terminator::Yield(super::residue::edge_to(next)), location);
        state.block = next;
        state.product.has_waited = true;
        state.product.progressed_members.insert(member);
        state.product.members[member].control = Control::Running(block);
        for member in &mut state.product.members {
            if let Control::Yielded(_, turn) = &mut member.control {
                turn.queue_position -= usize::from(turn.queue_position > own.queue_position);
            }
        }
        self.run_next_member(state)
    }

    /// Records that a waiting member has proceeded, for those that have yielded.
    pub(super) fn mark_others_ran(&self, state: &mut SymbolicState) {
        for member in &mut state.product.members {
            if let Control::Yielded(_, turn) = &mut member.control {
                turn.since = SinceYield::OthersRan;
            }
        }
    }

    /// Moves a member past its wait.
    pub(super) fn leave_wait(&self, state: &mut SymbolicState, member: usize, choice: BranchChoice) {
        let (block, wait) = self.current_wait(state, member).expect("the member waits");
        if self.schedule.is_none() && self.records_choice(wait) {
            state.product.members[member].last_choice.insert(block, choice);
        }
        state.product.progressed_members.insert(member);
        state.product.refuted.retain(|rendezvous| !rendezvous.involves(member));
        let then = wait.branches[choice.branch as usize].then;
        state.product.members[member].control = Control::Running(then);
        state.product.prune(self.group, member);
        self.mark_others_ran(state);
    }

    fn branch(&self, state: &SymbolicState, member: usize, branch: u32) -> &'p Branch {
        let (_, wait) = self.current_wait(state, member).expect("participants wait");
        &wait.branches[branch as usize]
    }

    fn sender_branch(&self, state: &SymbolicState, rendezvous: Rendezvous) -> &'p Branch {
        self.branch(state, rendezvous.sender, rendezvous.sender_branch)
    }

    fn receiver_branch(&self, state: &SymbolicState, rendezvous: Rendezvous) -> &'p Branch {
        self.branch(state, rendezvous.receiver, rendezvous.receiver_branch)
    }

    /// Attempts a rendezvous: what the facts do not decide is tested at run time.
    pub(super) fn attempt_rendezvous(&mut self, state: SymbolicState, rendezvous: Rendezvous) -> Result<(), Refusal> {
        let Rendezvous { sender, sender_branch, receiver, receiver_branch } = rendezvous;
        for (member, branch) in [(sender, sender_branch), (receiver, receiver_branch)] {
            let branch = self.branch(&state, member, branch);
            if let (GuardValue::Unknown, Guard::Value(guard)) =
                (self.guard_value(&state, member, branch.guard), branch.guard)
            {
                let retry =
                    &mut |explorer: &mut Explorer<'g, 'p>, state: SymbolicState, _| explorer.step_all_waiting(state);
                return self.fork_on(state, member, guard, branch.location, retry);
            }
        }
        if self.schedule.is_some() {
            return self.make_message(state, rendezvous);
        }
        let earlier = [(sender, rendezvous.sender_choice()), (receiver, rendezvous.receiver_choice())]
            .into_iter()
            .flat_map(|(member, choice)| self.environment_branches_before(&state, member, choice))
            .collect();
        self.poll_environment(state, earlier, &mut |explorer, state| explorer.make_message(state, rendezvous))
    }

    /// The branches to the environment that a member tries before a choice.
    fn environment_branches_before(
        &self,
        state: &SymbolicState,
        member: usize,
        choice: BranchChoice,
    ) -> Vec<(usize, u32)> {
        let (_, wait) = self.current_wait(state, member).expect("participants wait");
        let rank = self.round_robin_rank(state, member, choice);
        let is_before = |branch: u32| match wait.order {
            AltOrder::Priority => branch < choice.branch,
            // A time that is certainly after the arrival has not passed whenever the member arrives.
            AltOrder::Fair => {
                self.round_robin_rank(state, member, BranchChoice::with_environment(branch)) < rank
                    && !self.group.is_future_deadline(member, wait, branch)
            }
        };
        self.environment_branches(state, member).into_iter().filter(|(_, branch)| is_before(*branch)).collect()
    }

    /// Evaluates the payload of the sender.
    fn make_message(&mut self, state: SymbolicState, rendezvous: Rendezvous) -> Result<(), Refusal> {
        let sender = rendezvous.sender;
        let out = self.sender_branch(&state, rendezvous);
        let Operation::Out { payload, .. } = &out.operation else { unreachable!("a sender sends") };
        match payload {
            Payload::Ready(passed) => {
                let message = passed
                    .iter()
                    .map(|passed| (self.symbolic_operand(&state, sender, &passed.operand), passed.clone()))
                    .collect();
                self.match_message(state, rendezvous, message)
            }
            Payload::Region(entry) => {
                let branch = self.receiver_branch(&state, rendezvous);
                let Operation::In { patterns, condition, .. } = &branch.operation else {
                    unreachable!("a receiver receives")
                };
                let matches_any =
                    condition.is_none() && patterns.iter().all(|p| matches!(p, Pattern::Any | Pattern::Bind(_)));
                if self.schedule.is_some() && has_effects(self.group.members[sender].body, *entry) {
                    return self.exit_path(state, ExitReason::NotExecutable(sender));
                }
                if !matches_any && has_effects(self.group.members[sender].body, *entry) {
                    return Err(Refusal::Unsupported {
                        process: self.group.members[sender].process,
                        what: "an object made for a message that may not match",
                        location: out.location,
                    });
                }
                self.run_region(state, sender, *entry, &mut |explorer, state, message| {
                    explorer.match_message(state, rendezvous, message)
                })
            }
        }
    }

    /// Matches a message with the patterns and the condition of the receiver.
    fn match_message(
        &mut self,
        state: SymbolicState,
        rendezvous: Rendezvous,
        message: Vec<(SymbolicOperand, Passed)>,
    ) -> Result<(), Refusal> {
        let receiver = rendezvous.receiver;
        let branch = self.receiver_branch(&state, rendezvous);
        let Operation::In { patterns, condition, .. } = &branch.operation else { unreachable!("a receiver receives") };
        let unmatched =
            patterns.iter().zip(&message).rev().map(|(pattern, (part, _))| (pattern, part.clone())).collect();
        self.match_patterns(state, receiver, branch.location, unmatched, &mut |explorer, mut state, matches| {
            if !matches {
                return explorer.refute(state, rendezvous);
            }
            let bindings = explorer.bind_patterns(&mut state, receiver, patterns, &message, branch.location);
            let Some(entry) = condition else {
                return explorer.commit_rendezvous(state, rendezvous, &bindings, &message);
            };
            explorer.set_parameters(&mut state, receiver, *entry, &bindings);
            explorer.run_region(state, receiver, *entry, &mut |explorer, state, result| {
                let Some((SymbolicOperand::Value(holds, _), _)) = result.first() else {
                    unreachable!("a condition's result is a `bool`")
                };
                let decide = &mut |explorer: &mut Explorer<'g, 'p>, state: SymbolicState, holds: bool| {
                    if holds {
                        return explorer.commit_rendezvous(state, rendezvous, &bindings, &message);
                    }
                    explorer.refute(state, rendezvous)
                };
                match holds {
                    SymbolicValue::Constant(holds) => decide(explorer, state, *holds != 0),
                    SymbolicValue::Residual(holds) => explorer.fork_on_residual(state, *holds, branch.location, decide),
                }
            })
        })
    }

    /// Excludes a rendezvous whose message does not match, prunes dead values, and selects another rendezvous.
    fn refute(&mut self, mut state: SymbolicState, rendezvous: Rendezvous) -> Result<(), Refusal> {
        state.product.refuted.insert(rendezvous);
        (0..self.group.members.len()).for_each(|member| state.product.prune(self.group, member));
        self.step_all_waiting(state)
    }

    /// Completes a rendezvous: reference counts are adjusted, and both members proceed.
    fn commit_rendezvous(
        &mut self,
        mut state: SymbolicState,
        rendezvous: Rendezvous,
        bindings: &[(SymbolicValue, TypeId)],
        message: &[(SymbolicOperand, Passed)],
    ) -> Result<(), Refusal> {
        let (out, branch) = (self.sender_branch(&state, rendezvous), self.receiver_branch(&state, rendezvous));
        let Operation::In { patterns, .. } = &branch.operation else { unreachable!("a receiver receives") };
        let receiver = rendezvous.receiver;
        let mut retained = self.retained_operands(&mut state, receiver, patterns, bindings);
        let mut released = Vec::new();
        for (part, passed) in message {
            if passed.transfer == Transfer::Move && holds_boxed(self.group.types(), part.ty()) {
                let operand = self.residual_operand(&mut state, part);
                // An increment and a decrement of one count cancel.
                match retained.iter().position(|retained| *retained == operand) {
                    Some(position) => drop(retained.remove(position)),
                    None => released.push(operand),
                }
            }
        }
        for operand in retained {
            self.out.emit(state.block, None, Op::Retain(operand), out.location);
        }
        for operand in released {
            self.out.emit(state.block, None, Op::Release(operand), out.location);
        }
        let sites = (operation_site(&out.operation), operation_site(&branch.operation));
        self.set_parameters(&mut state, receiver, branch.then, bindings);
        self.leave_wait(&mut state, receiver, rendezvous.receiver_choice());
        self.leave_wait(&mut state, rendezvous.sender, rendezvous.sender_choice());
        if self.schedule.is_some() {
            return self.schedule_after_rendezvous(state, rendezvous, sites);
        }
        self.run_next_member(state)
    }

    /// The bound operands that refer to objects, whose reference counts the receiver increments.
    fn retained_operands(
        &mut self,
        state: &mut SymbolicState,
        receiver: usize,
        patterns: &[Pattern],
        bindings: &[(SymbolicValue, TypeId)],
    ) -> Vec<Operand> {
        let types = self.group.types();
        let mut retained: Vec<Operand> = Vec::new();
        for (value, ty) in bindings {
            if holds_boxed(types, *ty) {
                retained.push(Operand::Value(self.materialize(state, *value, *ty)));
            }
        }
        let mut slots = Vec::new();
        patterns.iter().for_each(|pattern| bound_slots(pattern, &mut |slot| slots.push(slot)));
        for slot in slots {
            if holds_boxed(types, self.group.members[receiver].body.slots[slot.0 as usize].ty) {
                let slot = SlotId(slot.0 + self.group.members[receiver].first_slot);
                retained.push(Operand::Place(Place { base: Base::Slot(slot), path: Vec::new() }));
            }
        }
        retained
    }
}
