//! The product along a fast path: which member runs, with which statements the path continues, and where it exits.
//! `schedule` holds the schedule, `symbolic_exec` executes members, `rendezvous` their communication.
//!
//! The exploration is that of `explore`; it differs in how a node is executed. As a trace of a tracing compiler (Gal et
//! al. 2009), a path contains the frequent case only, and exits to the general code wherever a member does anything
//! else:
//!
//! ```text
//!   run_scheduled          the running member, or the next of the queue; none: exit
//!     enter_block            label in the alphabet: the member's automaton advances, ends (park the member), or exit
//!                            instruction that may fault: test and exit (`fault_checks`); `yield`, end, fault: exit
//!     arrive_at_wait         end of the member's part: park it
//!       try_branches         branches with which the automaton can advance, in source order:
//!                              the environment is ready, or a member waits with the other end; else the queue runs
//!         schedule_after_rendezvous   the receiver runs, the sender joins the queue
//! ```

use super::body_queries::operation_site;
use super::explorer::{Explorer, NodeEffects, Transition};
use super::group::Group;
use super::rendezvous::GuardValue;
use super::schedule::{ExitBlock, LimitExit, MemberProgress, MemberSchedule, PathProduct, PathSchedule, Progress};
use super::state::{Control, MemberState, ProductState, Rendezvous, SymbolicState, SymbolicValue};
use crate::facts::Fact;
use crate::limits::ProductLimits;
use crate::path_exit::{ExitReason, IterationCountPlacement, PathExit};
use crate::path_spec::{PathElement, ProgramPoint};
use crate::refusal::Refusal;
use quaject_esp_ir::intervals::intervals;
use quaject_esp_ir::ir::{
    AltOrder, BlockId, Direction, Guard, Leave, Location, Op, Operation, PathId, Resume, SiteId, Terminator, TypeTable,
    Value, Wait,
};
use quaject_esp_ir::small_map::SmallMap;
use std::collections::BTreeSet;

/// The continuation of a predicate's evaluation: the path continues, or exits for this reason.
type PredicateContinuation<'c, 'g, 'p> =
    &'c mut dyn FnMut(&mut Explorer<'g, 'p>, SymbolicState, Option<ExitReason>) -> Result<(), Refusal>;

/// The effect of a statement on the automaton of a member.
enum StatementEffect {
    /// It advances, or the statement is not in its alphabet.
    Continue,
    /// The part of the member ends.
    End,
    /// The automaton does not accept the statement.
    Deviate,
}

/// Constructs the product of a group along a fast path, within the fuel of the limits.
pub(crate) fn trace_path(
    group: &Group<'_>,
    schedule: &PathSchedule,
    limits: ProductLimits,
    placement: IterationCountPlacement,
) -> Result<PathProduct, Refusal> {
    let mut explorer = Explorer::new(group, Some(schedule), limits, limits.fuel);
    explorer.decisions_until_forced_exit = match placement {
        IterationCountPlacement::LoopHeads | IterationCountPlacement::EveryNode => None,
        IterationCountPlacement::Forced(decision) => Some(decision),
    };
    explorer.check_size()?;
    let PathEntry { mut start, initial_count, entry_facts } = explorer.path_entry(schedule);
    explorer.run_to_fixpoint(&mut start)?;
    let nodes = explorer.round.reached.clone();
    let limit_exits = nodes.iter().map(|node| explorer.limit_exit(*node, initial_count)).collect();
    let mut all = NodeEffects::default();
    for node in &nodes {
        let effects = explorer.nodes[*node].effects();
        all.exits.extend(effects.exits.iter().cloned());
        all.exit_blocks.extend(effects.exit_blocks.iter().cloned());
        all.locations.extend(effects.locations.iter().cloned());
        all.has_choice |= effects.has_choice;
        all.accepted.extend(&effects.accepted);
        all.ended.extend(&effects.ended);
    }
    let unreached = schedule.unreached(&all.accepted, &all.ended);
    explorer.link_nodes(start, &BTreeSet::new());
    Ok(PathProduct {
        body: explorer.out.body,
        entry_facts,
        nodes: nodes.len(),
        limit_exits,
        exits: all.exits.into_iter().collect(),
        exit_blocks: all.exit_blocks,
        locations: all.locations.into_iter().collect(),
        has_choice: all.has_choice,
        unreached,
    })
}

/// The entry of a path.
struct PathEntry {
    /// The transition from the entry block, whose parameters are the values of the members, in order.
    start: Transition,
    /// The constant in the entry block that the iteration count starts from.
    initial_count: Value,
    /// Facts that always hold of the parameters.
    entry_facts: Vec<Option<Fact>>,
}

impl<'g, 'p> Explorer<'g, 'p> {
    fn path_entry(&mut self, schedule: &PathSchedule) -> PathEntry {
        let (mut members, mut parameters) = (Vec::new(), Vec::new());
        let (mut values, mut facts) = (SmallMap::new(), SmallMap::new());
        for (number, member) in self.group.members.iter().enumerate() {
            let (block, _) = schedule.start(number);
            let control = if number == 0 { Control::Running(block) } else { Control::Waiting(block) };
            let ranges = intervals(member.body, self.group.types(), self.group.checked, &[]);
            for value in &member.live[block.0 as usize].values {
                let data = &member.body.values[value.0 as usize];
                let parameter = self.out.value(data.ty, data.name.clone());
                parameters.push(parameter);
                // Excluded values would keep nodes apart.
                let interval = ranges[value.0 as usize].as_ref().map(|fact| Fact::between(fact.low, fact.high));
                facts.extend(interval.map(|fact| (parameter, fact)));
                values.insert((number, *value), SymbolicValue::Residual(parameter));
            }
            members.push(MemberState { control, last_choice: SmallMap::new(), dead_site: None });
        }
        let entry_facts = parameters.iter().map(|parameter| facts.get(parameter).cloned()).collect();
        let entry = self.out.block(parameters);
        let initial_count = self.out.value(TypeTable::U32, None);
        self.out.emit(entry, Some(initial_count), Op::Constant(0), Location::default());
        let state = ProductState {
            progress: Progress::new(members.len()),
            values,
            facts,
            iteration_count: Some(initial_count),
            ..ProductState::new(members)
        };
        let start = self.transition(SymbolicState { block: entry, state });
        PathEntry { start, initial_count, entry_facts }
    }

    /// The exit at a node that is taken when the iteration limit is reached there.
    fn limit_exit(&mut self, node: usize, initial_count: Value) -> LimitExit {
        let mut exec = self.entry_state(node);
        exec.block = self.out.block(Vec::new());
        let order: Vec<usize> = exec.state.progress.resume_order(self.group.members.len());
        let at = self.locations(&exec);
        let distance = self.distance_to_start(&exec);
        let terminator = self.exit_terminator(&mut exec, &order);
        self.out.finish(exec.block, terminator, Location::default());
        let node = &self.nodes[node];
        LimitExit {
            block: node.block,
            iteration_count: node.iteration_count.expect("nodes of a path count iterations"),
            stub: exec.block,
            initial_count,
            at,
            distance,
        }
    }

    fn member_schedule(&self, member: usize) -> &'g MemberSchedule {
        let schedule: &'g PathSchedule = self.schedule.expect("a path has a schedule");
        &schedule.members[member]
    }

    /// Continues along the path: the running member proceeds, or the next one of the queue. If there is none the path
    /// exits.
    pub(super) fn run_scheduled(&mut self, mut exec: SymbolicState) -> Result<(), Refusal> {
        self.check_size()?;
        self.effects.locations.insert(self.locations(&exec));
        let ranks = &self.schedule.expect("a path has a schedule").ranks;
        let Some(member) = exec.state.progress.schedule_next(ranks) else {
            let has_ended = |(number, progress): (usize, &MemberProgress)| {
                let control = exec.state.members[number].control;
                progress.is_parked || !progress.has_started || control == Control::Terminated
            };
            let have_all_ended = exec.state.progress.members.iter().enumerate().all(has_ended);
            let reason = if have_all_ended { ExitReason::Normal } else { ExitReason::NoneRunnable };
            return self.exit_path(exec, reason);
        };
        match exec.state.members[member].control {
            Control::Running(block) => self.run_member(exec, member, block),
            Control::Waiting(block) => self.arrive_at_wait(exec, member, block),
            Control::Yielded(..) => unreachable!("a path exits before a `yield`"),
            Control::Terminated | Control::Dead(_) => {
                exec.state.progress.running = None;
                self.run_scheduled(exec)
            }
        }
    }

    /// Decides before a block of the running member whether the path continues into it. None if the path exits here, or
    /// another member has continued it. An instruction that may fault, and each label in the alphabet, begins a block
    /// (`path::split`), so that the first instruction decides.
    pub(super) fn enter_block(
        &mut self,
        mut exec: SymbolicState,
        member: usize,
        block: BlockId,
    ) -> Result<Option<SymbolicState>, Refusal> {
        exec.state.members[member].control = Control::Running(block);
        if self.is_forced() {
            return self.exit_path(exec, ExitReason::Forced(member)).map(|()| None);
        }
        let source = &self.group.members[member].body.blocks[block.0 as usize];
        if let Some(first) = source.instructions.first() {
            if let Op::Mark(label) = first.op {
                let point = ProgramPoint::Label(label);
                match self.advance_at_label(&mut exec, member, point) {
                    StatementEffect::Continue => {}
                    StatementEffect::Deviate => {
                        return self.exit_path(exec, ExitReason::Deviation(member)).map(|()| None);
                    }
                    StatementEffect::End
                        if member > 0 && self.member_schedule(member).falls_through_to_start[block.0 as usize] =>
                    {
                        exec.state.progress.members[member] = MemberProgress::default();
                    }
                    StatementEffect::End => {
                        exec.state.progress.members[member].is_parked = true;
                        exec.state.progress.running = None;
                        return self.run_scheduled(exec).map(|()| None);
                    }
                }
            }
            return self.check_faults(exec, member, first);
        }
        match &source.terminator {
            Terminator::Yield(_) | Terminator::Exit(_) | Terminator::End | Terminator::Fault(_) => {
                self.exit_path(exec, ExitReason::Stops(member)).map(|()| None)
            }
            Terminator::Jump(_)
            | Terminator::Branch { .. }
            | Terminator::Switch { .. }
            | Terminator::Wait(_)
            | Terminator::Return(_)
            | Terminator::Result(_)
            | Terminator::Enter(_)
            | Terminator::Leave(_) => Ok(Some(exec)),
        }
    }

    /// Whether this is the decision at which a test forces an exit.
    fn is_forced(&mut self) -> bool {
        let Some(decisions) = &mut self.decisions_until_forced_exit else { return false };
        match decisions.checked_sub(1) {
            Some(remaining) => *decisions = remaining,
            None => self.decisions_until_forced_exit = None,
        }
        self.decisions_until_forced_exit.is_none()
    }

    /// Advances the automaton of a member at a label, if it can.
    fn advance_at_label(&mut self, exec: &mut SymbolicState, member: usize, point: ProgramPoint) -> StatementEffect {
        let schedule = self.member_schedule(member);
        let progress = &mut exec.state.progress.members[member];
        let evaluated = std::mem::take(&mut progress.evaluated_tests);
        if !schedule.is_in_alphabet(point) {
            progress.evaluated_tests = evaluated;
            return StatementEffect::Continue;
        }
        let holds = |test: Option<u32>| test.is_none_or(|test| evaluated.contains(&(test, true)));
        if schedule.exit.iter().any(|exit| exit.point == point && holds(exit.test)) {
            self.effects.ended.insert((member, point));
            return StatementEffect::End;
        }
        let next = schedule.automaton.next(&progress.positions, point);
        let holds_at = |position: &u32| holds(schedule.automaton.elements[*position as usize].test);
        progress.positions = next.into_iter().filter(holds_at).collect();
        if progress.positions.is_empty() {
            return StatementEffect::Deviate;
        }
        self.effects.accepted.insert((member, point));
        StatementEffect::Continue
    }

    /// Whether the path of a member can continue with an operation, with this partner if it has one.
    fn is_allowed(&self, exec: &SymbolicState, member: usize, site: SiteId, partner: Option<(usize, SiteId)>) -> bool {
        let schedule = self.member_schedule(member);
        let progress = &exec.state.progress.members[member];
        let admits = |element: &PathElement| {
            let peer = match (element.peer, partner) {
                (Some(wanted), Some(partner)) => wanted == partner,
                (Some(_), None) | (None, _) => true,
            };
            element.point == ProgramPoint::Site(site)
                && peer
                && element.test.is_none_or(|test| !progress.evaluated_tests.contains(&(test, false)))
        };
        if !progress.has_started {
            return admits(&schedule.start);
        }
        if !schedule.is_in_alphabet(ProgramPoint::Site(site)) {
            return true;
        }
        let next = schedule.automaton.next(&progress.positions, ProgramPoint::Site(site));
        next.iter().any(|position| admits(&schedule.automaton.elements[*position as usize]))
    }

    /// Advances the automaton of a member past an operation. Returns the member that runs next, if the specification
    /// names one.
    pub(super) fn advance_automaton(&mut self, exec: &mut SymbolicState, member: usize, site: SiteId) -> Option<usize> {
        let schedule = self.member_schedule(member);
        let progress = &mut exec.state.progress.members[member];
        let evaluated = std::mem::take(&mut progress.evaluated_tests);
        if !progress.has_started {
            progress.has_started = true;
            progress.positions.clear();
            progress.is_start_pending = schedule.start.test.is_some_and(|test| !evaluated.contains(&(test, true)));
            return schedule.start.yield_to;
        }
        if !schedule.is_in_alphabet(ProgramPoint::Site(site)) {
            return None;
        }
        let mut yield_to = None;
        let mut positions = Vec::new();
        for position in schedule.automaton.next(&progress.positions, ProgramPoint::Site(site)) {
            let element = &schedule.automaton.elements[position as usize];
            match element.test {
                Some(test) if evaluated.contains(&(test, false)) => continue,
                Some(test) if !evaluated.contains(&(test, true)) => progress.pending_positions.push(position),
                Some(_) | None => positions.push(position),
            }
            yield_to = yield_to.or(element.yield_to);
        }
        if !positions.is_empty() || !progress.pending_positions.is_empty() {
            self.effects.accepted.insert((member, ProgramPoint::Site(site)));
        }
        progress.positions = positions;
        yield_to
    }

    /// Forks on a predicate of a member that has been computed, if the path depends on it.
    pub(super) fn fork_on_predicate(
        &mut self,
        exec: SymbolicState,
        member: usize,
        test: u32,
        holds: Value,
        location: Location,
        then: PredicateContinuation<'_, 'g, 'p>,
    ) -> Result<(), Refusal> {
        let schedule = self.member_schedule(member);
        let is_relevant = schedule.start.test == Some(test) && member > 0
            || schedule.exit.iter().chain(&schedule.automaton.elements).any(|element| element.test == Some(test));
        if !is_relevant {
            return then(self, exec, None);
        }
        self.fork_on(exec, member, holds, location, &mut |explorer, mut exec, holds| {
            let schedule = explorer.member_schedule(member);
            let progress = &mut exec.state.progress.members[member];
            if schedule.start.test == Some(test) && progress.is_start_pending {
                progress.is_start_pending = false;
                return then(explorer, exec, (!holds).then_some(ExitReason::PredicateFalse(member)));
            }
            let has_test = |position: &u32| schedule.automaton.elements[*position as usize].test == Some(test);
            if progress.pending_positions.iter().any(has_test) {
                let (decided, pending): (Vec<u32>, Vec<u32>) =
                    progress.pending_positions.iter().partition(|position| has_test(position));
                progress.pending_positions = pending;
                if holds {
                    progress.positions.extend(decided);
                    progress.positions.sort_unstable();
                }
                let is_false = progress.positions.is_empty() && progress.pending_positions.is_empty();
                return then(explorer, exec, is_false.then_some(ExitReason::PredicateFalse(member)));
            }
            progress.evaluated_tests.push((test, holds));
            then(explorer, exec, None)
        })
    }

    /// Decides what a member does at a wait: its part ends there, it communicates with a member or the environment, or
    /// the next member of the queue runs.
    pub(super) fn arrive_at_wait(
        &mut self,
        mut exec: SymbolicState,
        member: usize,
        block: BlockId,
    ) -> Result<(), Refusal> {
        exec.state.members[member].control = Control::Waiting(block);
        exec.state.prune(self.group, member);
        if self.is_forced() {
            return self.exit_path(exec, ExitReason::Forced(member));
        }
        let wait = self.group.wait(member, block);
        let schedule = self.member_schedule(member);
        if exec.state.progress.members[member].has_started {
            let sites = || wait.branches.iter().filter_map(|branch| operation_site(&branch.operation));
            let evaluated = &exec.state.progress.members[member].evaluated_tests;
            let ends = |exit: &PathElement| {
                exit.test.is_none_or(|test| evaluated.contains(&(test, true)))
                    && sites().any(|site| exit.point == ProgramPoint::Site(site))
            };
            let ended: Vec<ProgramPoint> =
                schedule.exit.iter().filter(|exit| ends(exit)).map(|exit| exit.point).collect();
            if !ended.is_empty() {
                self.effects.ended.extend(ended.into_iter().map(|point| (member, point)));
                if member > 0 && block == schedule.first {
                    exec.state.progress.members[member] = MemberProgress::default();
                } else {
                    exec.state.progress.members[member].is_parked = true;
                    exec.state.progress.running = None;
                    return self.run_scheduled(exec);
                }
            }
        }
        if wait.order == AltOrder::Priority && wait.branches.len() > 1 || wait.otherwise.is_some() {
            return self.exit_path(exec, ExitReason::Stops(member));
        }
        let branches: Vec<u32> =
            (0..wait.branches.len() as u32).filter(|branch| self.may_take_branch(&exec, member, *branch)).collect();
        self.effects.has_choice |= branches.len() > 1;
        if branches.is_empty() {
            return self.exit_path(exec, ExitReason::Deviation(member));
        }
        self.try_branches(exec, member, wait, branches)
    }

    /// Whether the path can continue with a branch: its guard may hold, and the automaton advances.
    fn may_take_branch(&self, exec: &SymbolicState, member: usize, branch: u32) -> bool {
        let Some((_, wait)) = self.current_wait(exec, member) else { return false };
        let Some(site) = operation_site(&wait.branches[branch as usize].operation) else { return false };
        let guard = wait.branches[branch as usize].guard;
        !matches!(guard, Guard::Region(_))
            && self.guard_value(exec, member, guard) != GuardValue::False
            && self.is_allowed(exec, member, site, None)
    }

    /// Tries the branches of a member's wait, in source order.
    fn try_branches(
        &mut self,
        mut exec: SymbolicState,
        member: usize,
        wait: &'p Wait,
        branches: Vec<u32>,
    ) -> Result<(), Refusal> {
        self.check_size()?;
        let mut waits_for_members = false;
        for (position, number) in branches.iter().enumerate() {
            let branch = &wait.branches[*number as usize];
            if let (GuardValue::Unknown, Guard::Value(guard)) =
                (self.guard_value(&exec, member, branch.guard), branch.guard)
            {
                let rest = branches[position..].to_vec();
                return self.fork_on(exec, member, guard, branch.location, &mut |explorer, exec, holds| {
                    let rest = if holds { rest.clone() } else { rest[1..].to_vec() };
                    explorer.try_branches(exec, member, wait, rest)
                });
            }
            let (channel, direction) = match &branch.operation {
                Operation::In { channel, .. } => (*channel, Direction::In),
                Operation::Out { channel, .. } => (*channel, Direction::Out),
                Operation::After { .. } => continue,
            };
            if !self.group.is_internal(channel) {
                let rest = branches[position + 1..].to_vec();
                let is_last = rest.is_empty() && !waits_for_members;
                return self.poll_environment(exec, vec![(member, *number)], &mut |explorer, exec| {
                    if is_last {
                        return explorer.exit_path(exec, ExitReason::EnvironmentNotReady(member));
                    }
                    explorer.try_branches(exec, member, wait, rest.clone())
                });
            }
            waits_for_members = true;
            if let Some(rendezvous) = self.find_partner(&exec, member, *number, direction) {
                return self.attempt_rendezvous(exec, rendezvous);
            }
        }
        exec.state.progress.running = None;
        self.run_scheduled(exec)
    }

    /// The first rendezvous of a branch with a member that waits, with which both can continue.
    fn find_partner(
        &mut self,
        exec: &SymbolicState,
        member: usize,
        number: u32,
        direction: Direction,
    ) -> Option<Rendezvous> {
        let (_, wait) = self.current_wait(exec, member)?;
        let own = operation_site(&wait.branches[number as usize].operation)?;
        let mut found = Vec::new();
        for other in (0..self.group.members.len()).filter(|other| *other != member) {
            if exec.state.progress.members[other].is_parked || exec.state.progress.queue.contains(&other) {
                continue;
            }
            let Some((_, wait)) = self.current_wait(exec, other) else { continue };
            for branch in 0..wait.branches.len() as u32 {
                let Some(theirs) = operation_site(&wait.branches[branch as usize].operation) else { continue };
                let (own_end, other_end) = ((member, number), (other, branch));
                let ((sender, sender_branch), (receiver, receiver_branch)) = match direction {
                    Direction::In => (other_end, own_end),
                    Direction::Out => (own_end, other_end),
                };
                let rendezvous = Rendezvous { sender, sender_branch, receiver, receiver_branch };
                let is_start = !exec.state.progress.members[other].has_started;
                if self.is_possible(exec, rendezvous)
                    && (is_start || self.may_take_branch(exec, other, branch))
                    && self.is_allowed(exec, other, theirs, Some((member, own)))
                    && self.is_allowed(exec, member, own, Some((other, theirs)))
                {
                    found.push(rendezvous);
                }
            }
        }
        self.effects.has_choice |= found.len() > 1;
        found.first().copied()
    }

    /// Schedules after a rendezvous: the receiver runs and the sender joins the queue, unless the specification yields
    /// to another member.
    pub(super) fn schedule_after_rendezvous(
        &mut self,
        mut exec: SymbolicState,
        rendezvous: Rendezvous,
        sites: (Option<SiteId>, Option<SiteId>),
    ) -> Result<(), Refusal> {
        let mut yield_to = None;
        let Rendezvous { sender, receiver, .. } = rendezvous;
        for (member, site) in [(sender, sites.0), (receiver, sites.1)] {
            if let Some(site) = site {
                yield_to = self.advance_automaton(&mut exec, member, site).map(|to| (member, to)).or(yield_to);
            }
        }
        let progress = &mut exec.state.progress;
        progress.enqueue(sender);
        progress.running = Some(receiver);
        if let Some((_, to)) = yield_to.filter(|(_, to)| *to != receiver) {
            match progress.queue.iter().position(|member| *member == to) {
                Some(position) => {
                    progress.queue.remove(position);
                    progress.enqueue(receiver);
                    progress.running = Some(to);
                }
                None => return self.exit_path(exec, ExitReason::NoneRunnable),
            }
        }
        self.run_scheduled(exec)
    }

    /// Ends the path in an exit, which restores the state of the members.
    pub(super) fn exit_path(&mut self, mut exec: SymbolicState, reason: ExitReason) -> Result<(), Refusal> {
        let order = exec.state.progress.resume_order(self.group.members.len());
        let at = self.locations(&exec);
        self.effects.locations.insert(at.clone());
        let exit = PathExit { reason, at };
        self.effects.exits.insert(exit.clone());
        let iteration_count = exec.state.iteration_count.expect("a path counts iterations");
        self.effects.exit_blocks.push(ExitBlock { block: exec.block, iteration_count, exit });
        let terminator = self.exit_terminator(&mut exec, &order);
        self.out.finish(exec.block, terminator, Location::default());
        Ok(())
    }

    /// The terminator of an exit: each member resumes at its location, with the current symbolic values of its live
    /// values.
    pub(super) fn exit_terminator(&mut self, exec: &mut SymbolicState, order: &[usize]) -> Terminator {
        let mut trigger = None;
        let mut members = Vec::new();
        for member in order {
            let block = match exec.state.members[*member].control {
                Control::Running(block) | Control::Waiting(block) => block,
                Control::Yielded(..) | Control::Terminated | Control::Dead(_) => {
                    unreachable!("a path exits before a `yield` and an end")
                }
            };
            let live: Vec<Value> = self.group.members[*member].live[block.0 as usize].values.iter().copied().collect();
            let values = live.into_iter().map(|value| (value, self.residual_value(exec, *member, value))).collect();
            let resume = Resume { to: block, values };
            match member.checked_sub(1) {
                None => trigger = Some(resume),
                Some(number) => members.push((number as u32, resume)),
            }
        }
        // The path's number in the program is set where it is inserted, that of the exit when all exits are known.
        let trigger = trigger.expect("the trigger is a member");
        Terminator::Leave(Leave { path: PathId(0), exit: 0, trigger, members })
    }

    /// How far the members are from their starts. A member that does not reach its start next counts more than all
    /// members that only have to run to it.
    pub(super) fn distance_to_start(&self, exec: &SymbolicState) -> usize {
        let count = self.group.members.len();
        let distance = |member: usize| match exec.state.members[member].control {
            Control::Waiting(block) | Control::Running(block) if block == self.member_schedule(member).first => 0,
            Control::Waiting(block) | Control::Running(block)
                if self.member_schedule(member).reaches_start[block.0 as usize] =>
            {
                1
            }
            Control::Waiting(_)
            | Control::Running(_)
            | Control::Yielded(..)
            | Control::Terminated
            | Control::Dead(_) => count,
        };
        (0..count).map(distance).sum()
    }

    /// The source locations of the members.
    pub(super) fn locations(&self, exec: &SymbolicState) -> Vec<Location> {
        (0..self.group.members.len()).map(|member| self.location_of(exec, member)).collect()
    }

    /// The source location of a member.
    fn location_of(&self, exec: &SymbolicState, member: usize) -> Location {
        let body = self.group.members[member].body;
        let mut block = match exec.state.members[member].control {
            Control::Running(block) | Control::Waiting(block) => block,
            Control::Yielded(..) | Control::Terminated | Control::Dead(_) => return Location::default(),
        };
        // Labels and jumps have the location of what follows them.
        for _ in 0..body.blocks.len() {
            let source = &body.blocks[block.0 as usize];
            if let Some(first) = source.instructions.iter().find(|instruction| instruction.location.line != 0) {
                return first.location;
            }
            match &source.terminator {
                Terminator::Jump(edge) if source.instructions.is_empty() => block = edge.to,
                _ => return source.location,
            }
        }
        Location::default()
    }
}
