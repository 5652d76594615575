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
use super::path_automaton::NfaStates;
use super::rendezvous::GuardValue;
use super::schedule::{ExitBlock, LimitExit, MemberProgress, MemberSchedule, PathProduct, PathProgress, PathSchedule};
use super::state::{Control, MemberState, ProductState, Rendezvous, SymbolicState, SymbolicValue};
use crate::facts::Fact;
use crate::limits::ProductLimits;
use crate::path_exit::{ExitReason, IterationCountPlacement, PathExit};
use crate::path_spec::{PathElement, PathStatement};
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
        IterationCountPlacement::FeedbackVertices | IterationCountPlacement::EveryNode => None,
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
                let parameter = self.out.create_value(data.ty, data.name.clone());
                parameters.push(parameter);
                // Excluded values would keep nodes apart.
                let interval = ranges[value.0 as usize].as_ref().map(|fact| Fact::between(fact.low, fact.high));
                facts.extend(interval.map(|fact| (parameter, fact)));
                values.insert((number, *value), SymbolicValue::Residual(parameter));
            }
            members.push(MemberState { control, last_choice: SmallMap::new(), blocked_wait: None });
        }
        let entry_facts = parameters.iter().map(|parameter| facts.get(parameter).cloned()).collect();
        let entry = self.out.create_block(parameters);
        let initial_count = self.out.create_value(TypeTable::U32, None);
        self.out.emit(entry, Some(initial_count), Op::Constant(0), Location::default());
        let product = ProductState {
            path_progress: PathProgress::new(members.len()),
            values,
            facts,
            iteration_count: Some(initial_count),
            ..ProductState::new(members)
        };
        let start = self.transition(SymbolicState { block: entry, product });
        PathEntry { start, initial_count, entry_facts }
    }

    /// The exit at a node that is taken when the iteration limit is reached there.
    fn limit_exit(&mut self, node: usize, initial_count: Value) -> LimitExit {
        let mut state = self.entry_state(node);
        state.block = self.out.create_block(Vec::new());
        let order: Vec<usize> = state.product.path_progress.resume_order(self.group.members.len());
        let at = self.locations(&state);
        let distance = self.distance_to_start(&state);
        let terminator = self.exit_terminator(&mut state, &order);
        self.out.finish(state.block, terminator, Location::default());
        let node = &self.nodes[node];
        LimitExit {
            block: node.block,
            iteration_count: node.iteration_count.expect("nodes of a path count iterations"),
            stub: state.block,
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
    pub(super) fn run_scheduled(&mut self, mut state: SymbolicState) -> Result<(), Refusal> {
        self.check_size()?;
        self.effects.locations.insert(self.locations(&state));
        let ranks = &self.schedule.expect("a path has a schedule").ranks;
        let Some(member) = state.product.path_progress.schedule_next(ranks) else {
            let has_ended = |(number, progress): (usize, &MemberProgress)| {
                let control = state.product.members[number].control;
                progress.is_parked || !progress.has_started || control == Control::Terminated
            };
            let have_all_ended = state.product.path_progress.members.iter().enumerate().all(has_ended);
            let reason = if have_all_ended { ExitReason::Normal } else { ExitReason::NoneRunnable };
            return self.exit_path(state, reason);
        };
        match state.product.members[member].control {
            Control::Running(block) => self.run_member(state, member, block),
            Control::Waiting(block) => self.arrive_at_wait(state, member, block),
            Control::Yielded(..) => unreachable!("a path exits before a `yield`"),
            Control::Terminated | Control::Inert(_) => {
                state.product.path_progress.running = None;
                self.run_scheduled(state)
            }
        }
    }

    /// Decides before a block of the running member whether the path continues into it. None if the path exits here, or
    /// another member has continued it. An instruction that may fault, and each label in the alphabet, begins a block
    /// (`path::split`), so that the first instruction decides.
    pub(super) fn enter_block(
        &mut self,
        mut state: SymbolicState,
        member: usize,
        block: BlockId,
    ) -> Result<Option<SymbolicState>, Refusal> {
        state.product.members[member].control = Control::Running(block);
        if self.is_forced() {
            return self.exit_path(state, ExitReason::Forced(member)).map(|()| None);
        }
        let source = &self.group.members[member].body.blocks[block.0 as usize];
        if let Some(first) = source.instructions.first() {
            if let Op::Mark(label) = first.op {
                let statement = PathStatement::Label(label);
                match self.advance_at_label(&mut state, member, statement) {
                    StatementEffect::Continue => {}
                    StatementEffect::Deviate => {
                        return self.exit_path(state, ExitReason::Deviation(member)).map(|()| None);
                    }
                    StatementEffect::End
                        if member > 0 && self.member_schedule(member).falls_through_to_start[block.0 as usize] =>
                    {
                        state.product.path_progress.members[member] = MemberProgress::default();
                    }
                    StatementEffect::End => {
                        state.product.path_progress.members[member].is_parked = true;
                        state.product.path_progress.running = None;
                        return self.run_scheduled(state).map(|()| None);
                    }
                }
            }
            return self.check_faults(state, member, first);
        }
        match &source.terminator {
            Terminator::Yield(_) | Terminator::Exit(_) | Terminator::End | Terminator::Fault(_) => {
                self.exit_path(state, ExitReason::NotExecutable(member)).map(|()| None)
            }
            Terminator::Jump(_)
            | Terminator::Branch { .. }
            | Terminator::Switch { .. }
            | Terminator::Wait(_)
            | Terminator::Return(_)
            | Terminator::Result(_)
            | Terminator::Enter(_)
            | Terminator::Leave(_) => Ok(Some(state)),
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
    fn advance_at_label(
        &mut self,
        state: &mut SymbolicState,
        member: usize,
        statement: PathStatement,
    ) -> StatementEffect {
        let schedule = self.member_schedule(member);
        let progress = &mut state.product.path_progress.members[member];
        let evaluated = std::mem::take(&mut progress.evaluated_predicates);
        if !schedule.is_in_alphabet(statement) {
            progress.evaluated_predicates = evaluated;
            return StatementEffect::Continue;
        }
        let holds = |predicate: Option<u32>| predicate.is_none_or(|predicate| evaluated.contains(&(predicate, true)));
        if schedule.exit.iter().any(|exit| exit.statement == statement && holds(exit.predicate)) {
            self.effects.ended.insert((member, statement));
            return StatementEffect::End;
        }
        let next = schedule.automaton.next(&progress.positions, statement);
        let holds_at = |position: &u32| holds(schedule.automaton.elements[*position as usize].predicate);
        progress.positions = NfaStates::After(next.into_iter().filter(holds_at).collect());
        if progress.positions.is_rejected() {
            return StatementEffect::Deviate;
        }
        self.effects.accepted.insert((member, statement));
        StatementEffect::Continue
    }

    /// Whether the path of a member can continue with an operation, with this partner if it has one.
    fn is_allowed(&self, state: &SymbolicState, member: usize, site: SiteId, partner: Option<(usize, SiteId)>) -> bool {
        let schedule = self.member_schedule(member);
        let progress = &state.product.path_progress.members[member];
        let admits = |element: &PathElement| {
            let peer = match (element.peer, partner) {
                (Some(wanted), Some(partner)) => wanted == partner,
                (Some(_), None) | (None, _) => true,
            };
            element.statement == PathStatement::Site(site)
                && peer
                && element
                    .predicate
                    .is_none_or(|predicate| !progress.evaluated_predicates.contains(&(predicate, false)))
        };
        if !progress.has_started {
            return admits(&schedule.start);
        }
        if !schedule.is_in_alphabet(PathStatement::Site(site)) {
            return true;
        }
        let next = schedule.automaton.next(&progress.positions, PathStatement::Site(site));
        next.iter().any(|position| admits(&schedule.automaton.elements[*position as usize]))
    }

    /// Advances the automaton of a member past an operation. Returns the member that runs next, if the specification
    /// names one.
    pub(super) fn advance_automaton(
        &mut self,
        state: &mut SymbolicState,
        member: usize,
        site: SiteId,
    ) -> Option<usize> {
        let schedule = self.member_schedule(member);
        let progress = &mut state.product.path_progress.members[member];
        let evaluated = std::mem::take(&mut progress.evaluated_predicates);
        if !progress.has_started {
            progress.has_started = true;
            progress.positions = NfaStates::Initial;
            progress.is_start_pending =
                schedule.start.predicate.is_some_and(|predicate| !evaluated.contains(&(predicate, true)));
            return schedule.start.yield_to;
        }
        if !schedule.is_in_alphabet(PathStatement::Site(site)) {
            return None;
        }
        let mut yield_to = None;
        let mut positions = Vec::new();
        for position in schedule.automaton.next(&progress.positions, PathStatement::Site(site)) {
            let element = &schedule.automaton.elements[position as usize];
            match element.predicate {
                Some(predicate) if evaluated.contains(&(predicate, false)) => continue,
                Some(predicate) if !evaluated.contains(&(predicate, true)) => progress.pending_positions.push(position),
                Some(_) | None => positions.push(position),
            }
            yield_to = yield_to.or(element.yield_to);
        }
        if !positions.is_empty() || !progress.pending_positions.is_empty() {
            self.effects.accepted.insert((member, PathStatement::Site(site)));
        }
        progress.positions = NfaStates::After(positions);
        yield_to
    }

    /// Forks on a predicate of a member that has been computed, if the path depends on it.
    pub(super) fn fork_on_predicate(
        &mut self,
        state: SymbolicState,
        member: usize,
        predicate: u32,
        holds: Value,
        location: Location,
        then: PredicateContinuation<'_, 'g, 'p>,
    ) -> Result<(), Refusal> {
        let schedule = self.member_schedule(member);
        let is_relevant = schedule.start.predicate == Some(predicate) && member > 0
            || schedule
                .exit
                .iter()
                .chain(&schedule.automaton.elements)
                .any(|element| element.predicate == Some(predicate));
        if !is_relevant {
            return then(self, state, None);
        }
        self.fork_on(state, member, holds, location, &mut |explorer, mut state, holds| {
            let schedule = explorer.member_schedule(member);
            let progress = &mut state.product.path_progress.members[member];
            if schedule.start.predicate == Some(predicate) && progress.is_start_pending {
                progress.is_start_pending = false;
                return then(explorer, state, (!holds).then_some(ExitReason::PredicateFalse(member)));
            }
            let has_predicate =
                |position: &u32| schedule.automaton.elements[*position as usize].predicate == Some(predicate);
            if progress.pending_positions.iter().any(has_predicate) {
                let (decided, pending): (Vec<u32>, Vec<u32>) =
                    progress.pending_positions.iter().partition(|position| has_predicate(position));
                progress.pending_positions = pending;
                if holds {
                    progress.positions.extend(decided);
                }
                let is_false = progress.positions.is_rejected() && progress.pending_positions.is_empty();
                return then(explorer, state, is_false.then_some(ExitReason::PredicateFalse(member)));
            }
            progress.evaluated_predicates.push((predicate, holds));
            then(explorer, state, None)
        })
    }

    /// Decides what a member does at a wait: its part ends there, it communicates with a member or the environment, or
    /// the next member of the queue runs.
    pub(super) fn arrive_at_wait(
        &mut self,
        mut state: SymbolicState,
        member: usize,
        block: BlockId,
    ) -> Result<(), Refusal> {
        state.product.members[member].control = Control::Waiting(block);
        state.product.prune(self.group, member);
        if self.is_forced() {
            return self.exit_path(state, ExitReason::Forced(member));
        }
        let wait = self.group.wait(member, block);
        let schedule = self.member_schedule(member);
        if state.product.path_progress.members[member].has_started {
            let sites = || wait.branches.iter().filter_map(|branch| operation_site(&branch.operation));
            let evaluated = &state.product.path_progress.members[member].evaluated_predicates;
            let ends = |exit: &PathElement| {
                exit.predicate.is_none_or(|predicate| evaluated.contains(&(predicate, true)))
                    && sites().any(|site| exit.statement == PathStatement::Site(site))
            };
            let ended: Vec<PathStatement> =
                schedule.exit.iter().filter(|exit| ends(exit)).map(|exit| exit.statement).collect();
            if !ended.is_empty() {
                self.effects.ended.extend(ended.into_iter().map(|statement| (member, statement)));
                if member > 0 && block == schedule.first {
                    state.product.path_progress.members[member] = MemberProgress::default();
                } else {
                    state.product.path_progress.members[member].is_parked = true;
                    state.product.path_progress.running = None;
                    return self.run_scheduled(state);
                }
            }
        }
        if wait.order == AltOrder::Priority && wait.branches.len() > 1 || wait.otherwise.is_some() {
            return self.exit_path(state, ExitReason::NotExecutable(member));
        }
        let branches: Vec<u32> =
            (0..wait.branches.len() as u32).filter(|branch| self.may_take_branch(&state, member, *branch)).collect();
        self.effects.has_choice |= branches.len() > 1;
        if branches.is_empty() {
            return self.exit_path(state, ExitReason::Deviation(member));
        }
        self.try_branches(state, member, wait, branches)
    }

    /// Whether the path can continue with a branch: its guard may hold, and the automaton advances.
    fn may_take_branch(&self, state: &SymbolicState, member: usize, branch: u32) -> bool {
        let Some((_, wait)) = self.current_wait(state, member) else { return false };
        let Some(site) = operation_site(&wait.branches[branch as usize].operation) else { return false };
        let guard = wait.branches[branch as usize].guard;
        !matches!(guard, Guard::Region(_))
            && self.guard_value(state, member, guard) != GuardValue::False
            && self.is_allowed(state, member, site, None)
    }

    /// Tries the branches of a member's wait, in source order.
    fn try_branches(
        &mut self,
        mut state: SymbolicState,
        member: usize,
        wait: &'p Wait,
        branches: Vec<u32>,
    ) -> Result<(), Refusal> {
        self.check_size()?;
        let mut waits_for_members = false;
        for (position, number) in branches.iter().enumerate() {
            let branch = &wait.branches[*number as usize];
            if let (GuardValue::Unknown, Guard::Value(guard)) =
                (self.guard_value(&state, member, branch.guard), branch.guard)
            {
                let rest = branches[position..].to_vec();
                return self.fork_on(state, member, guard, branch.location, &mut |explorer, state, holds| {
                    let rest = if holds { rest.clone() } else { rest[1..].to_vec() };
                    explorer.try_branches(state, member, wait, rest)
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
                return self.poll_environment(state, vec![(member, *number)], &mut |explorer, state| {
                    if is_last {
                        return explorer.exit_path(state, ExitReason::EnvironmentNotReady(member));
                    }
                    explorer.try_branches(state, member, wait, rest.clone())
                });
            }
            waits_for_members = true;
            if let Some(rendezvous) = self.find_partner(&state, member, *number, direction) {
                return self.attempt_rendezvous(state, rendezvous);
            }
        }
        state.product.path_progress.running = None;
        self.run_scheduled(state)
    }

    /// The first rendezvous of a branch with a member that waits, with which both can continue.
    fn find_partner(
        &mut self,
        state: &SymbolicState,
        member: usize,
        number: u32,
        direction: Direction,
    ) -> Option<Rendezvous> {
        let (_, wait) = self.current_wait(state, member)?;
        let own = operation_site(&wait.branches[number as usize].operation)?;
        let mut found = Vec::new();
        for other in (0..self.group.members.len()).filter(|other| *other != member) {
            if state.product.path_progress.members[other].is_parked
                || state.product.path_progress.queue.contains(&other)
            {
                continue;
            }
            let Some((_, wait)) = self.current_wait(state, other) else { continue };
            for branch in 0..wait.branches.len() as u32 {
                let Some(theirs) = operation_site(&wait.branches[branch as usize].operation) else { continue };
                let (own_end, other_end) = ((member, number), (other, branch));
                let ((sender, sender_branch), (receiver, receiver_branch)) = match direction {
                    Direction::In => (other_end, own_end),
                    Direction::Out => (own_end, other_end),
                };
                let rendezvous = Rendezvous { sender, sender_branch, receiver, receiver_branch };
                let is_start = !state.product.path_progress.members[other].has_started;
                if self.is_possible(state, rendezvous)
                    && (is_start || self.may_take_branch(state, other, branch))
                    && self.is_allowed(state, other, theirs, Some((member, own)))
                    && self.is_allowed(state, member, own, Some((other, theirs)))
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
        mut state: SymbolicState,
        rendezvous: Rendezvous,
        sites: (Option<SiteId>, Option<SiteId>),
    ) -> Result<(), Refusal> {
        let mut yield_to = None;
        let Rendezvous { sender, receiver, .. } = rendezvous;
        for (member, site) in [(sender, sites.0), (receiver, sites.1)] {
            if let Some(site) = site {
                yield_to = self.advance_automaton(&mut state, member, site).map(|to| (member, to)).or(yield_to);
            }
        }
        let progress = &mut state.product.path_progress;
        progress.enqueue(sender);
        progress.running = Some(receiver);
        if let Some((_, to)) = yield_to.filter(|(_, to)| *to != receiver) {
            match progress.queue.iter().position(|member| *member == to) {
                Some(position) => {
                    progress.queue.remove(position);
                    progress.enqueue(receiver);
                    progress.running = Some(to);
                }
                None => return self.exit_path(state, ExitReason::NoneRunnable),
            }
        }
        self.run_scheduled(state)
    }

    /// Ends the path in an exit, which restores the state of the members.
    pub(super) fn exit_path(&mut self, mut state: SymbolicState, reason: ExitReason) -> Result<(), Refusal> {
        let order = state.product.path_progress.resume_order(self.group.members.len());
        let at = self.locations(&state);
        self.effects.locations.insert(at.clone());
        let exit = PathExit { reason, at };
        self.effects.exits.insert(exit.clone());
        let iteration_count = state.product.iteration_count.expect("a path counts iterations");
        self.effects.exit_blocks.push(ExitBlock { block: state.block, iteration_count, exit });
        let terminator = self.exit_terminator(&mut state, &order);
        self.out.finish(state.block, terminator, Location::default());
        Ok(())
    }

    /// The terminator of an exit: each member resumes at its location, with the current symbolic values of its live
    /// values.
    pub(super) fn exit_terminator(&mut self, state: &mut SymbolicState, order: &[usize]) -> Terminator {
        let mut trigger = None;
        let mut members = Vec::new();
        for member in order {
            let block = match state.product.members[*member].control {
                Control::Running(block) | Control::Waiting(block) => block,
                Control::Yielded(..) | Control::Terminated | Control::Inert(_) => {
                    unreachable!("a path exits before a `yield` and an end")
                }
            };
            let live: Vec<Value> = self.group.members[*member].live[block.0 as usize].values.iter().copied().collect();
            let values = live.into_iter().map(|value| (value, self.residual_value(state, *member, value))).collect();
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
    pub(super) fn distance_to_start(&self, state: &SymbolicState) -> usize {
        let count = self.group.members.len();
        let distance = |member: usize| match state.product.members[member].control {
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
            | Control::Inert(_) => count,
        };
        (0..count).map(distance).sum()
    }

    /// The source locations of the members.
    pub(super) fn locations(&self, state: &SymbolicState) -> Vec<Location> {
        (0..self.group.members.len()).map(|member| self.location_of(state, member)).collect()
    }

    /// The source location of a member.
    fn location_of(&self, state: &SymbolicState, member: usize) -> Location {
        let body = self.group.members[member].body;
        let mut block = match state.product.members[member].control {
            Control::Running(block) | Control::Waiting(block) => block,
            Control::Yielded(..) | Control::Terminated | Control::Inert(_) => return Location::default(),
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
