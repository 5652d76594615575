//! Emission of deadlock reports. A report lists each blocked instance by its own name, with the location at which it
//! waits, the operation, and the instances that have the other end: the edges of the wait-for graph. Knows no nodes.
//!
//! The wait at which an inert member is blocked is a run-time value (`explore/inert_members`), so the member's entry
//! depends on it. The wait that reports a deadlock has one branch for each possible one: its guard is true if the
//! member is blocked there, and its operation is never ready. The report of a wait (`Wait::members`) lists the entries
//! of the branches whose guards are true:
//!
//! ```text
//!   wait  if wait_P == 1 : in(never)       "P waits at 3:13 for Q"
//!         if wait_P == 2 : in(never)       "P waits at 7:9 for R"
//! ```
//!
//! Which waits are possible is known at the end of the search only: until then the report is a [`PendingReport`].

use super::body_queries::operation_site;
use super::explorer::Explorer;
use super::pending_report::{BlockedWait, BlockedWaitId, MemberFate, PendingReport};
use super::rendezvous::GuardValue;
use super::state::{AwaitedSetId, Control, MemberState, ProductState, SymbolicState, SymbolicValue};
use quaject_esp_ir::ir::{
    AltOrder, BinaryOp, Blocking, Branch, ChannelId, Direction, Edge, Fault, Guard, Location, Op, Operation, Pattern,
    SiteId, Terminator, TypeTable, Value, Wait, WaitForEdge,
};

/// An entry of a report: one operation that a member waits for, and the condition under which it is listed.
struct ReportEntry {
    wait: WaitForEdge,
    /// Of an inert member: the value that holds where it is blocked, and the wait at which the entry applies.
    at: Option<(SymbolicValue, BlockedWaitId)>,
    /// The partners that are inert, with the values that hold where they are blocked: those that are
    /// blocked are listed, too.
    inert_partners: Vec<(u32, SymbolicValue)>,
    /// Of a member that waits here: its operation.
    site: Option<SiteId>,
}

/// A condition on the wait at which an inert member is blocked: that it is this one, or another.
struct BlockedWaitTest {
    blocked_wait: SymbolicValue,
    id: BlockedWaitId,
    is_equal: bool,
}

impl ReportEntry {
    /// An estimate of the instructions and branches of the entry, which has one branch for each set of inert partners.
    fn size(&self) -> usize {
        (1 + 2 * (self.inert_partners.len() + usize::from(self.at.is_some()))) << self.inert_partners.len()
    }
}

impl<'g, 'p> Explorer<'g, 'p> {
    /// Ends a block in a deadlock of the members that wait and of the inert ones. Of the inert members with an awaited
    /// set only those in `unwakeable` are reported. States without waiting members share one block per vector of fates.
    pub(super) fn emit_deadlock(&mut self, state: &SymbolicState, waiting: &[usize], unwakeable: &[usize]) {
        let first = waiting.first().and_then(|member| self.current_wait(state, *member));
        let location = first.and_then(|(_, wait)| Some(wait.branches.first()?.location)).unwrap_or_default();
        let wait = Wait {
            order: AltOrder::Fair,
            blocking: Blocking::Deadlock,
            branches: Vec::new(),
            otherwise: None,
            observed: Vec::new(),
            members: Vec::new(),
        };
        let is_wakeable = |(number, member): &(usize, &MemberState)| {
            matches!(member.control, Control::Inert(awaited_set) if awaited_set != AwaitedSetId::NOT_WAKEABLE)
                && !unwakeable.contains(number)
        };
        let members = state.product.members.iter().enumerate();
        let wakeable: Vec<usize> = members.filter(is_wakeable).map(|(number, _)| number).collect();
        if !waiting.is_empty() {
            return self.defer_deadlock_report(state, wait, (waiting, &wakeable), location);
        }
        let fates = state.product.members.iter().enumerate().map(|(number, member)| match member.control {
            Control::Inert(_) if wakeable.contains(&number) => MemberFate::InertUnreported,
            Control::Inert(_) => MemberFate::Inert,
            Control::Terminated => MemberFate::Terminated,
            Control::Running(_) | Control::Waiting(_) | Control::Yielded(..) => MemberFate::WaitingUnreported,
        });
        let fates: Vec<MemberFate> = fates.collect();
        let to = match self.deadlock_blocks.get(&fates) {
            Some((block, _)) => *block,
            None => {
                let state = self.new_deadlock_block(&state.product.members);
                let block = state.block;
                let report = PendingReport { state, wait, waiting: Vec::new(), wakeable, location };
                self.deadlock_blocks.insert(fates, (block, report));
                block
            }
        };
        let mut state = state.clone();
        let waits: Vec<SymbolicValue> = state.product.members.iter().filter_map(|member| member.blocked_wait).collect();
        let arguments =
            waits.into_iter().map(|blocked_wait| self.materialize(&mut state, blocked_wait, TypeTable::U32)).collect();
        self.out.finish(state.block, Terminator::Jump(Edge { to, arguments }), location);
    }

    /// A block with the numbers of the waits at which the inert members are blocked as parameters.
    fn new_deadlock_block(&mut self, members: &[MemberState]) -> SymbolicState {
        let mut members = members.to_vec();
        let mut parameters = Vec::new();
        for blocked_wait in members.iter_mut().filter_map(|member| member.blocked_wait.as_mut()) {
            let parameter = self.out.create_value(TypeTable::U32, None);
            parameters.push(parameter);
            *blocked_wait = SymbolicValue::Residual(parameter);
        }
        for member in &mut members {
            if let Control::Inert(awaited_set) = &mut member.control {
                *awaited_set = AwaitedSetId::NOT_WAKEABLE;
            }
        }
        SymbolicState { block: self.out.create_block(parameters), product: ProductState::new(members) }
    }

    /// Ends a block in a wait that reports the members in `waiting` and the inert members, except those in
    /// `wakeable`. With inert members the report stays pending until the possible waits are known.
    pub(super) fn defer_deadlock_report(
        &mut self,
        state: &SymbolicState,
        wait: Wait,
        (waiting, wakeable): (&[usize], &[usize]),
        location: Location,
    ) {
        let mut state = state.clone();
        if state.product.any_blocked == Some(false) {
            let inert = Control::Inert(AwaitedSetId::NOT_WAKEABLE);
            for member in state.product.members.iter_mut().filter(|member| member.control == inert) {
                member.blocked_wait = Some(BlockedWaitId::TERMINATED.as_constant());
            }
        }
        let has_inert = state.product.members.iter().any(|member| matches!(member.control, Control::Inert(_)));
        let (waiting, wakeable) = (waiting.to_vec(), wakeable.to_vec());
        let report = PendingReport { state, wait, waiting, wakeable, location };
        if has_inert {
            self.effects.reports.push(report);
        } else {
            self.emit_deadlock_report(report);
        }
    }

    /// An estimate of the instructions and branches of a report.
    pub(super) fn report_size(&self, report: &PendingReport) -> usize {
        self.report_entries(report).iter().map(ReportEntry::size).sum()
    }

    /// Emits the wait of a report, with the waits of inert members that are known to be possible now.
    pub(super) fn emit_deadlock_report(&mut self, report: PendingReport) {
        let entries = self.report_entries(&report);
        let PendingReport { mut state, mut wait, location, .. } = report;
        let own_branches = wait.branches.len();
        // A wait whose operations are all guarded gets an open branch, as there is an open operation between members.
        if own_branches > 0
            && wait.branches.iter().all(|branch| branch.guard != Guard::Open)
            && let Some(operation) = self.never_ready_receive(None)
        {
            let then = self.out.create_block(Vec::new());
            wait.branches.push(Branch { guard: Guard::Open, operation, then, location });
        }
        for entry in entries {
            let is_own = |branch: &Branch| entry.site.is_some() && operation_site(&branch.operation) == entry.site;
            let own = wait.branches[..own_branches].iter().position(is_own);
            if let Some(own) = own.filter(|own| wait.branches[*own].guard != Guard::Open) {
                wait.members.push((own as u32, entry.wait));
                continue;
            }
            for terminated in 0..1u32 << entry.inert_partners.len() {
                let mut waits = entry.wait.clone();
                let at = entry.at.iter().map(|(blocked_wait, id)| BlockedWaitTest {
                    blocked_wait: *blocked_wait,
                    id: *id,
                    is_equal: true,
                });
                let mut tests: Vec<BlockedWaitTest> = at.collect();
                for (number, (instance, blocked_wait)) in entry.inert_partners.iter().enumerate() {
                    let has_terminated = terminated >> number & 1 == 1;
                    let (blocked_wait, id) = (*blocked_wait, BlockedWaitId::TERMINATED);
                    tests.push(BlockedWaitTest { blocked_wait, id, is_equal: has_terminated });
                    waits.partners.extend((!has_terminated).then_some(*instance));
                }
                waits.partners.sort_unstable();
                let Some(guard) = self.blocked_wait_guard(&mut state, &tests) else { continue };
                let open = wait.branches.iter().position(|branch| branch.guard == Guard::Open);
                let open = open.or((own_branches > 0).then_some(0));
                let branch = match (guard, open) {
                    (Guard::Open, Some(open)) => open,
                    (Guard::Open | Guard::Value(_) | Guard::Region(_), _) => {
                        let Some(operation) = self.never_ready_receive(waits.operation.map(|(channel, _)| channel))
                        else {
                            return self.out.finish(state.block, Terminator::Fault(Fault::Deadlock), waits.location);
                        };
                        let then = self.out.create_block(Vec::new());
                        wait.branches.push(Branch { guard, operation, then, location: waits.location });
                        wait.branches.len() - 1
                    }
                };
                wait.members.push((branch as u32, waits));
            }
        }
        // Without branches no wait is possible, and the block is unreachable.
        let end = if wait.branches.is_empty() { Terminator::Fault(Fault::Deadlock) } else { Terminator::Wait(wait) };
        self.out.finish(state.block, end, location);
    }

    /// The guard that is true if all tests hold; none if they cannot.
    fn blocked_wait_guard(&mut self, state: &mut SymbolicState, tests: &[BlockedWaitTest]) -> Option<Guard> {
        let mut guard: Option<Value> = None;
        for BlockedWaitTest { blocked_wait, id, is_equal } in tests {
            let actual = match blocked_wait {
                SymbolicValue::Constant(actual) if (*actual == i128::from(id.0)) == *is_equal => continue,
                SymbolicValue::Constant(_) => return None,
                SymbolicValue::Residual(actual) => *actual,
            };
            let id = self.materialize(state, id.as_constant(), TypeTable::U32);
            let op = if *is_equal { BinaryOp::Equal } else { BinaryOp::NotEqual };
            let holds = self.emit_bool(state, Op::Binary(op, actual, id));
            guard = Some(match guard {
                Some(others) => self.emit_bool(state, Op::Binary(BinaryOp::BitAnd, others, holds)),
                None => holds,
            });
        }
        Some(guard.map_or(Guard::Open, Guard::Value))
    }

    fn emit_bool(&mut self, state: &SymbolicState, op: Op) -> Value {
        let result = self.out.create_value(TypeTable::BOOL, None);
        self.out.emit(state.block, Some(result), op, Location::default());
        result
    }

    /// A receive that is never ready, from this channel between members, or from another one: in a deadlock no
    /// process sends on it any more.
    fn never_ready_receive(&self, channel: Option<ChannelId>) -> Option<Operation> {
        let sites = self.group.sites();
        let receive_from = |is_wanted: &dyn Fn(ChannelId) -> bool| {
            sites.iter().position(|site| site.direction == Direction::In && is_wanted(site.channel))
        };
        let site = receive_from(&|from| Some(from) == channel && self.group.is_internal(from))
            .or_else(|| receive_from(&|from| self.group.is_internal(from)))?;
        let channel = sites[site].channel;
        let patterns = self.group.program.channels[channel.0 as usize].payload.iter().map(|_| Pattern::Any).collect();
        Some(Operation::In { site: SiteId(site as u32), channel, patterns, condition: None })
    }

    /// The entries of a report, in order of instances.
    fn report_entries(&self, report: &PendingReport) -> Vec<ReportEntry> {
        let state = &report.state;
        let mut entries = Vec::new();
        for member in &report.waiting {
            let Some((block, wait)) = self.current_wait(state, *member) else { continue };
            let is_open = |guard| self.guard_value(state, *member, guard) != GuardValue::False;
            let open = wait.branches.iter().map(|branch| is_open(branch.guard)).collect();
            self.add_report_entries(state, *member, &BlockedWait { block, open }, None, &mut entries);
        }
        for (member, member_state) in state.product.members.iter().enumerate() {
            let (Some(blocked_wait), Control::Inert(awaited_set)) = (member_state.blocked_wait, member_state.control)
            else {
                continue;
            };
            if report.wakeable.contains(&member) {
                continue;
            }
            for (index, at) in self.blocked_waits[member].iter().enumerate() {
                if !self.reached_blocked_waits[member].contains(&BlockedWaitId::of_index(index)) {
                    continue;
                }
                if awaited_set != AwaitedSetId::NOT_WAKEABLE
                    && self.awaited_sets[awaited_set.0] != self.awaited_operations(member, at)
                {
                    continue;
                }
                self.add_report_entries(
                    state,
                    member,
                    at,
                    Some((blocked_wait, BlockedWaitId::of_index(index))),
                    &mut entries,
                );
            }
        }
        entries.sort_by_key(|entry| entry.wait.instance);
        entries
    }

    /// Adds an entry for each operation that a member waits for where it is blocked.
    fn add_report_entries(
        &self,
        state: &SymbolicState,
        member: usize,
        blocked: &BlockedWait,
        at: Option<(SymbolicValue, BlockedWaitId)>,
        entries: &mut Vec<ReportEntry>,
    ) {
        let instance = self.group.members[member].instance;
        let first = entries.len();
        let branches = self.group.wait(member, blocked.block).branches.iter().zip(&blocked.open);
        for (branch, _) in branches.filter(|(_, open)| **open) {
            let Some((channel, direction)) = branch.operation.channel_end() else { continue };
            let (partners, inert_partners) = self.possible_partners(state, member, channel, direction);
            let operation = Some((channel, direction));
            let wait = WaitForEdge { instance, location: branch.location, operation, partners };
            let first_site = self.group.members[member].first_site;
            let site = operation_site(&branch.operation).filter(|_| at.is_none());
            let site = site.map(|site| SiteId(site.0 + first_site));
            entries.push(ReportEntry { wait, at, inert_partners, site });
        }
        if entries.len() == first {
            let location = self.group.members[member].body.blocks[blocked.block.0 as usize].location;
            let wait = WaitForEdge { instance, location, operation: None, partners: Vec::new() };
            entries.push(ReportEntry { wait, at, inert_partners: Vec::new(), site: None });
        }
    }

    /// The instances that have the other end of a member's operation: those outside of the group and the members that
    /// are neither terminated nor inert; and the inert members among them, with the values that hold
    /// where they are blocked.
    fn possible_partners(
        &self,
        state: &SymbolicState,
        member: usize,
        channel: ChannelId,
        direction: Direction,
    ) -> (Vec<u32>, Vec<(u32, SymbolicValue)>) {
        let program = self.group.program;
        let users = self.group.users.get(&channel).into_iter().flatten();
        let instances = users.filter(|(_, end)| *end == direction.other()).flat_map(|(process, _)| {
            let first = program.first_instance(*process);
            first..first + program.processes[process.0 as usize].replicas
        });
        let (mut active, mut inert) = (Vec::new(), Vec::new());
        for instance in instances {
            let number = self.group.members.iter().position(|other| other.instance == instance);
            let partner = number.map(|other| &state.product.members[other]);
            match partner.and_then(|partner| partner.blocked_wait) {
                _ if number == Some(member) => {}
                Some(blocked_wait) if number.is_some_and(|other| !self.blocked_waits[other].is_empty()) => {
                    inert.push((instance, blocked_wait));
                }
                Some(_) => {}
                None => {
                    let is_active = partner.is_none_or(|partner| partner.control != Control::Terminated);
                    active.extend(is_active.then_some(instance));
                }
            }
        }
        (active, inert)
    }
}
