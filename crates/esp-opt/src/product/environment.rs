//! Operations with the environment, and quiescence of the group. When no rendezvous between members is possible, the
//! product executes one wait with all operations that members await from the environment. If the environment can wake
//! no member, this is the end of the program or a deadlock (reference, section 8, quiescence).
//!
//! ```text
//!   step_environment, with no rendezvous possible
//!     a member has an `else`                      poll the environment, then take the `else`
//!     a member has yielded                        poll the environment, then continue that member
//!     guards of a wait are unknown, none is true  fork on one; a wait without an open branch is a fault
//!     inert members, not known whether blocked    fork on that, as a terminated member makes no deadlock
//!     no operation with the environment           end, or deadlock if members are blocked forever
//!     members are blocked forever, no other process    poll, then deadlock
//!     else                                        wait; at quiescence the wait reports blocked members
//! ```

use super::body_queries::operation_site;
use super::explorer::Explorer;
use super::rendezvous::GuardValue;
use super::state::{AwaitedSetId, BranchChoice, Control, MemberState, SinceYield, SymbolicState, SymbolicValue};
use crate::refusal::Refusal;
use quaject_esp_ir::ir::{
    AltOrder, BinaryOp, BlockId, Blocking, Branch, ChannelId, Direction, Fault, Guard, Location, Op, Operation, SlotId,
    Terminator, TypeTable, Value, Wait,
};
use quaject_esp_ir::visit::bound_slots;
use std::collections::BTreeSet;

/// What follows a poll or a test, in the state after it.
type Continuation<'c, 'g, 'p> = &'c mut dyn FnMut(&mut Explorer<'g, 'p>, SymbolicState) -> Result<(), Refusal>;

/// A branch of a wait for the environment, and the block of the residue in which it continues.
struct EmittedBranch {
    member: usize,
    branch: u32,
    then: BlockId,
    parameters: Vec<Value>,
}

impl<'g, 'p> Explorer<'g, 'p> {
    /// The branches of a waiting member that the environment can take, unless their guards are false.
    pub(super) fn environment_branches(&self, state: &SymbolicState, member: usize) -> Vec<(usize, u32)> {
        let Some((_, wait)) = self.current_wait(state, member) else { return Vec::new() };
        let branches = wait.branches.iter().enumerate();
        branches
            .filter(|(_, branch)| match &branch.operation {
                Operation::In { channel, .. } | Operation::Out { channel, .. } => !self.group.is_internal(*channel),
                // A fast path does not wait for times.
                Operation::After { .. } => self.schedule.is_none(),
            })
            .filter(|(_, branch)| self.guard_value(state, member, branch.guard) != GuardValue::False)
            .map(|(index, _)| (member, index as u32))
            .collect()
    }

    /// Continues from a state in which no rendezvous between members is possible.
    pub(super) fn step_environment(
        &mut self,
        mut state: SymbolicState,
        preferred: &BTreeSet<usize>,
    ) -> Result<(), Refusal> {
        let members = 0..self.group.members.len();
        let branches: Vec<(usize, u32)> =
            members.clone().flat_map(|member| self.environment_branches(&state, member)).collect();
        if let Some((member, block)) = self.select_else(&state, preferred) {
            return self
                .poll_environment(state, branches, &mut |explorer, state| explorer.take_else(state, member, block));
        }
        if let Some(member) = self.next_yielded(&state, SinceYield::NothingRan) {
            return self
                .poll_environment(state, branches, &mut |explorer, state| explorer.resume_yielded(state, member));
        }
        for member in members {
            let Some((block, wait)) = self.current_wait(&state, member) else { continue };
            let has_value = |branch: &&Branch, value| self.guard_value(&state, member, branch.guard) == value;
            let is_open = wait.branches.iter().any(|branch| has_value(&branch, GuardValue::True));
            let unknown = wait.branches.iter().find(|branch| has_value(branch, GuardValue::Unknown));
            if let (false, Some(Branch { guard: Guard::Value(guard), location, .. })) = (is_open, unknown) {
                let retry = &mut |explorer: &mut Explorer<'g, 'p>, state: SymbolicState, _| {
                    explorer.step_environment(state, preferred)
                };
                return self.fork_on(state, member, *guard, *location, retry);
            }
            if !is_open {
                let location = self.group.members[member].body.blocks[block.0 as usize].location;
                self.out.finish(state.block, Terminator::Fault(Fault::Alt), location);
                return Ok(());
            }
        }
        let (waiting, unwakeable): (Vec<usize>, Vec<usize>) = self
            .unwakeable_members(&state)
            .into_iter()
            .partition(|member| self.current_wait(&state, *member).is_some());
        if !waiting.is_empty() || !unwakeable.is_empty() {
            state.product.any_blocked = Some(true);
        }
        let has_inert = state.product.members.iter().any(|member| matches!(member.control, Control::Inert(_)));
        if has_inert && state.product.any_blocked.is_none() {
            return self.fork_on_blocked(state, &mut |explorer, state| explorer.step_environment(state, preferred));
        }
        let is_deadlock = state.product.any_blocked == Some(true);
        if branches.is_empty() {
            if is_deadlock {
                self.emit_deadlock(&state, &waiting, &unwakeable);
            } else {
                self.out.finish(state.block, Terminator::End, Location::default());
            }
            return Ok(());
        }
        if is_deadlock && !self.group.has_others {
            // Operations of the environment that are ready still happen before the deadlock.
            return self.poll_environment(state, branches, &mut |explorer, state| {
                explorer.emit_deadlock(&state, &waiting, &unwakeable);
                Ok(())
            });
        }
        state.product.has_waited = true;
        self.emit_environment_wait(state, branches, None)
    }

    /// The `else` that is taken, with its member: of a preferred member, or of the one furthest downstream.
    fn select_else(&mut self, state: &SymbolicState, preferred: &BTreeSet<usize>) -> Option<(usize, BlockId)> {
        let alternatives = (0..self.group.members.len()).filter_map(|member| {
            let (_, wait) = self.current_wait(state, member)?;
            wait.otherwise.map(|block| (member, block))
        });
        let alternatives: Vec<(usize, BlockId)> = alternatives.collect();
        self.note_enabled(alternatives.iter().map(|(member, _)| *member));
        alternatives.into_iter().max_by_key(|(member, _)| (preferred.contains(member), *member))
    }

    fn take_else(&mut self, mut state: SymbolicState, member: usize, block: BlockId) -> Result<(), Refusal> {
        state.product.progressed_members.insert(member);
        state.product.refuted.retain(|rendezvous| !rendezvous.involves(member));
        state.product.members[member].control = Control::Running(block);
        state.product.prune(self.group, member);
        self.mark_others_ran(&mut state);
        self.run_next_member(state)
    }

    /// Tests whether any inert member that is not wakeable is blocked; else all of them have terminated.
    fn fork_on_blocked(&mut self, mut state: SymbolicState, then: Continuation<'_, 'g, 'p>) -> Result<(), Refusal> {
        let inert =
            state.product.members.iter().filter(|member| member.control == Control::Inert(AwaitedSetId::NOT_WAKEABLE));
        let waits: Vec<SymbolicValue> = inert.filter_map(|member| member.blocked_wait).collect();
        if waits.iter().any(|wait| matches!(wait, SymbolicValue::Constant(id) if *id != 0)) {
            state.product.any_blocked = Some(true);
            return then(self, state);
        }
        let unknown = waits.into_iter().filter_map(|wait| match wait {
            SymbolicValue::Residual(id) => Some(id),
            SymbolicValue::Constant(_) => None,
        });
        let union = unknown.reduce(|a, b| {
            let union = self.out.create_value(TypeTable::U32, None);
            self.out.emit(state.block, Some(union), Op::Binary(BinaryOp::BitOr, a, b), Location::default());
            union
        });
        let Some(union) = union else {
            state.product.any_blocked = Some(false);
            return then(self, state);
        };
        let zero = self.materialize(&mut state, SymbolicValue::Constant(0), TypeTable::U32);
        let is_any = self.out.create_value(TypeTable::BOOL, None);
        self.out.emit(state.block, Some(is_any), Op::Binary(BinaryOp::NotEqual, union, zero), Location::default());
        self.fork_on_residual(state, is_any, Location::default(), &mut |explorer, mut state, holds| {
            state.product.any_blocked = Some(holds);
            then(explorer, state)
        })
    }

    /// The members, not at idle points, that no behaviour of the environment can wake: waiting ones, and inert ones
    /// with an awaited set. The wakeable members are the least set that contains the members that wait for the
    /// environment, and those that await an operation whose other end is in the code of a wakeable member.
    fn unwakeable_members(&self, state: &SymbolicState) -> Vec<usize> {
        let count = self.group.members.len();
        let mut wakeable: Vec<bool> =
            (0..count).map(|member| !self.environment_branches(state, member).is_empty()).collect();
        let has_operation = |member: usize, channel, direction: Direction| {
            state.product.members[member].control != Control::Terminated && self.has_site(member, channel, direction)
        };
        let has_partner = |member: usize, wakeable: &[bool], (channel, direction): (ChannelId, Direction)| {
            let mut others = (0..count).filter(|partner| *partner != member && wakeable[*partner]);
            self.group.is_internal(channel) && others.any(|partner| has_operation(partner, channel, direction.other()))
        };
        let is_wakeable = |member: usize, wakeable: &[bool]| match state.product.members[member].control {
            Control::Waiting(block) => {
                let branches = self.group.wait(member, block).branches.iter();
                let mut open =
                    branches.filter(|branch| self.guard_value(state, member, branch.guard) != GuardValue::False);
                open.any(|branch| match branch.operation.channel_end() {
                    Some(operation) => has_partner(member, wakeable, operation),
                    None => true,
                })
            }
            Control::Inert(awaited_set) => {
                self.awaited_sets[awaited_set.0].iter().any(|operation| has_partner(member, wakeable, *operation))
            }
            Control::Running(_) | Control::Yielded(..) | Control::Terminated => false,
        };
        let next = |wakeable: &[bool]| (0..count).find(|member| !wakeable[*member] && is_wakeable(*member, wakeable));
        while let Some(member) = next(&wakeable) {
            wakeable[member] = true;
        }
        let is_no_idle_point = |member: &usize| match state.product.members[*member].control {
            Control::Waiting(block) => self.group.wait(*member, block).blocking == Blocking::Deadlock,
            Control::Inert(awaited_set) => awaited_set != AwaitedSetId::NOT_WAKEABLE,
            Control::Running(_) | Control::Yielded(..) | Control::Terminated => false,
        };
        (0..count).filter(|member| !wakeable[*member]).filter(is_no_idle_point).collect()
    }

    /// Takes one of these branches if the environment is ready for it, else continues.
    pub(super) fn poll_environment(
        &mut self,
        mut state: SymbolicState,
        branches: Vec<(usize, u32)>,
        otherwise: Continuation<'_, 'g, 'p>,
    ) -> Result<(), Refusal> {
        if branches.is_empty() {
            return otherwise(self, state);
        }
        let waiting = state.clone();
        state.block = self.out.create_block(Vec::new());
        self.emit_environment_wait(waiting, branches.clone(), Some(state.block))?;
        state.product.polled.extend(branches.iter().map(|(member, _)| *member));
        // The state before the wait continues: constants that were materialized for the wait are not known in it.
        otherwise(self, state)
    }

    /// Waits for one of these branches, or polls if there is a block to continue in otherwise.
    fn emit_environment_wait(
        &mut self,
        mut state: SymbolicState,
        branches: Vec<(usize, u32)>,
        otherwise: Option<BlockId>,
    ) -> Result<(), Refusal> {
        let order = self.wait_order(&state, &branches)?;
        let is_idle = |(member, member_state): (usize, &MemberState)| match self.current_wait(&state, member) {
            Some((_, wait)) => wait.blocking == Blocking::MayBlockForever,
            None => match member_state.control {
                Control::Inert(awaited_set) => awaited_set == AwaitedSetId::NOT_WAKEABLE,
                Control::Running(_) | Control::Waiting(_) | Control::Yielded(..) | Control::Terminated => true,
            },
        };
        let all_idle = state.product.members.iter().enumerate().all(is_idle);
        let mut awaited = Vec::new();
        let mut emitted = Vec::new();
        for (member, branch) in branches {
            let (operation, continuation) = self.emit_branch(&mut state, member, branch);
            awaited.push(operation);
            emitted.push(continuation);
        }
        let location = awaited.last().map(|branch: &Branch| branch.location).unwrap_or_default();
        let blocking = if all_idle && state.product.any_blocked != Some(true) {
            Blocking::MayBlockForever
        } else {
            Blocking::Deadlock
        };
        let is_reported = |member: &usize| {
            self.current_wait(&state, *member).is_some_and(|(_, wait)| wait.blocking == Blocking::Deadlock)
        };
        let waiting: Vec<usize> = (0..self.group.members.len()).filter(is_reported).collect();
        let wait = Wait { order, blocking, branches: awaited, otherwise, observed: Vec::new(), members: Vec::new() };
        // A poll does not block, and a fast path exits before a deadlock.
        if otherwise.is_none() && self.schedule.is_none() {
            self.defer_deadlock_report(&state, wait, (&waiting, &[]), location);
        } else {
            self.out.finish(state.block, Terminator::Wait(wait), location);
        }
        for branch in emitted {
            self.continue_branch(&state, &branch)?;
        }
        Ok(())
    }

    /// A branch of a wait for the environment, and where it continues.
    fn emit_branch(&mut self, state: &mut SymbolicState, member: usize, number: u32) -> (Branch, EmittedBranch) {
        let (_, wait) = self.current_wait(state, member).expect("a member with an operation for the environment waits");
        let branch = &wait.branches[number as usize];
        state.product.polled.insert(member);
        let guard = match branch.guard {
            Guard::Open => Guard::Open,
            Guard::Value(value) => match self.symbolic_value(state, member, value) {
                SymbolicValue::Constant(_) => Guard::Open,
                SymbolicValue::Residual(value) => Guard::Value(value),
            },
            Guard::Region(_) => unreachable!("groups have no guards that ask `free`"),
        };
        let operation = self.residual_operation(state, member, &branch.operation);
        let body = self.group.members[member].body;
        let parameters = body.blocks[branch.then.0 as usize].parameters.iter().map(|parameter| {
            let data = &body.values[parameter.0 as usize];
            self.out.create_value(data.ty, data.name.clone())
        });
        let parameters: Vec<Value> = parameters.collect();
        let then = self.out.create_block(parameters.clone());
        let awaited = Branch { guard, operation, then, location: branch.location };
        (awaited, EmittedBranch { member, branch: number, then, parameters })
    }

    /// Continues in a branch that the environment has taken.
    fn continue_branch(&mut self, state: &SymbolicState, emitted: &EmittedBranch) -> Result<(), Refusal> {
        let EmittedBranch { member, branch: number, then, ref parameters } = *emitted;
        let mut state = state.clone();
        state.block = then;
        let (_, wait) =
            self.current_wait(&state, member).expect("a member with an operation for the environment waits");
        let branch = &wait.branches[number as usize];
        if let Operation::In { patterns, .. } = &branch.operation {
            let mut slots = Vec::new();
            patterns.iter().for_each(|pattern| bound_slots(pattern, &mut |slot| slots.push(slot)));
            for slot in slots {
                state.product.forget_tags(SlotId(slot.0 + self.group.members[member].first_slot), &[]);
            }
        }
        let bindings: Vec<_> = parameters
            .iter()
            .map(|value| (SymbolicValue::Residual(*value), self.out.body.values[value.0 as usize].ty))
            .collect();
        if let Guard::Value(value) = branch.guard
            && let SymbolicValue::Residual(guard) = self.symbolic_value(&state, member, value)
        {
            state.product.assume_condition(self.group, guard, true);
        }
        self.set_parameters(&mut state, member, branch.then, &bindings);
        if let (Some(_), Some(site)) = (self.schedule, operation_site(&branch.operation)) {
            self.advance_automaton(&mut state, member, site);
        }
        self.leave_wait(&mut state, member, BranchChoice::with_environment(number));
        self.run_next_member(state)
    }

    /// The order in which the environment chooses: a `pri alt` keeps its order if no other member waits.
    fn wait_order(&self, state: &SymbolicState, branches: &[(usize, u32)]) -> Result<AltOrder, Refusal> {
        let mut order = AltOrder::Fair;
        for (member, _) in branches {
            let (block, wait) =
                self.current_wait(state, *member).expect("a member with an operation for the environment waits");
            let own = branches.iter().filter(|(other, _)| other == member).count();
            if wait.order == AltOrder::Priority && own > 1 {
                if own < branches.len() {
                    let known = &self.group.members[*member];
                    return Err(Refusal::Unsupported {
                        process: known.process,
                        what: "a `pri alt` that waits for the environment together with other members",
                        location: known.body.blocks[block.0 as usize].location,
                    });
                }
                order = AltOrder::Priority;
            }
        }
        Ok(order)
    }
}
