//! The schedule of a fast path ("Fast Paths in Concurrent Programs", sections 4.2 to 4.4): a specification prepared for
//! a group, and the progress of a path along it. `trace_path` constructs the product along it.
//!
//! **Trigger.** The trigger is the first member: the path is entered when it has passed its start. All other members
//! wait at their starts then.
//!
//! **Run queue.** One member runs until it cannot proceed. After a communication the receiver runs and the sender joins
//! the queue, unless a `yield` of the specification names another member. The member of the queue furthest downstream
//! runs next. The paper takes the first of the queue instead: members upstream then run ahead in many orders, and the
//! number of states explodes. A chain of seven filters has 1037 states in the paper's order.
//!
//! **Choice.** Of an `alt` only branches with which the path can continue are tried, in source order. The general code
//! makes this choice fairly, so the path is bypassed at intervals ([`PathProduct::has_choice`]).

use super::body_queries::wait_of_site;
use super::group::Group;
use super::path_automaton::{NfaStates, PositionAutomaton};
use crate::facts::Fact;
use crate::path_exit::PathExit;
use crate::path_spec::{MemberSpec, PathElement, PathSpec, PathStatement};
use crate::placement::MemberPlacement;
use crate::refusal::Refusal;
use quaject_esp_ir::cfg::{Regions, successors};
use quaject_esp_ir::ir::{AltOrder, Block, BlockId, Body, Guard, Location, Op, Operation, Terminator, Value};
use std::collections::BTreeSet;

/// A specification prepared for a group.
pub(crate) struct PathSchedule {
    pub(super) members: Vec<MemberSchedule>,
    /// The block of the trigger behind which the path begins.
    pub(crate) trigger_block: BlockId,
    /// Per member: its position in the pipeline, greater downstream.
    pub(super) ranks: Vec<usize>,
}

/// The part of one member.
pub(super) struct MemberSchedule {
    pub(super) statements: Vec<PathStatement>,
    pub(super) start: PathElement,
    pub(super) exit: Vec<PathElement>,
    pub(super) automaton: PositionAutomaton,
    /// Of the trigger the first block on the path, of another member the block of the wait at which it starts; and the
    /// branch of the start.
    pub(super) first: BlockId,
    pub(super) branch: u32,
    /// Per block: whether control falls through from it to the start.
    pub(super) falls_through_to_start: Vec<bool>,
    /// Per block: whether all paths from it (of the trigger: any path) lead to the start before any other wait.
    pub(super) reaches_start: Vec<bool>,
}

/// The progress of a path: its run queue, and the progress of its members.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub(super) struct PathProgress {
    pub(super) running: Option<usize>,
    pub(super) queue: Vec<usize>,
    pub(super) members: Vec<MemberProgress>,
}

/// The progress of a member in its part.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub(super) struct MemberProgress {
    pub(super) has_started: bool,
    pub(super) is_parked: bool,
    /// The states of its automaton.
    pub(super) positions: NfaStates,
    /// Positions that its last operation reaches if their predicates hold, which are evaluated behind it.
    pub(super) pending_positions: Vec<u32>,
    /// Whether the predicate of its start has not been evaluated yet.
    pub(super) is_start_pending: bool,
    /// Predicates that have been evaluated before their statement, with their values.
    pub(super) evaluated_predicates: Vec<(u32, bool)>,
}

impl PathSchedule {
    /// Prepares a specification. The members of the group are those of the specification, in its order.
    pub(crate) fn new(group: &Group<'_>, spec: &PathSpec) -> Result<PathSchedule, Refusal> {
        let mut members = Vec::new();
        for (number, member) in spec.members.iter().enumerate() {
            members.push(MemberSchedule::new(group, number, member)?);
        }
        let body = group.members[0].body;
        let Terminator::Wait(wait) = &body.blocks[members[0].first.0 as usize].terminator else {
            unreachable!("a start is a wait")
        };
        let then = wait.branches[members[0].branch as usize].then;
        let trigger_block = block_after_start(body, then, members[0].start.predicate);
        let Terminator::Jump(edge) = &body.blocks[trigger_block.0 as usize].terminator else {
            unreachable!("bodies are split after the start of a path")
        };
        members[0].first = edge.to;
        Ok(PathSchedule { members, trigger_block, ranks: group.pipeline_ranks() })
    }

    /// The first block of the trigger on the path, or the block of the wait at which another member starts; its branch.
    pub(crate) fn start(&self, member: usize) -> (BlockId, u32) {
        (self.members[member].first, self.members[member].branch)
    }

    /// The statements of `follows` and `exit` that the automata neither accepted nor ended at.
    pub(super) fn unreached(
        &self,
        accepted: &BTreeSet<(usize, PathStatement)>,
        ended: &BTreeSet<(usize, PathStatement)>,
    ) -> Vec<(usize, PathStatement)> {
        let mut unreached = BTreeSet::new();
        for (member, schedule) in self.members.iter().enumerate() {
            let steps = schedule.automaton.elements.iter().map(|element| (member, element.statement));
            unreached.extend(steps.filter(|step| !accepted.contains(step) && !ended.contains(step)));
            let ends = schedule.exit.iter().map(|element| (member, element.statement));
            unreached.extend(ends.filter(|end| !ended.contains(end)));
        }
        unreached.into_iter().collect()
    }

    /// Per member: where the path captures it, and what it takes of its state.
    pub(crate) fn placement(&self, group: &Group<'_>) -> Vec<MemberPlacement> {
        let members = group.members.iter().enumerate().map(|(number, member)| {
            let start = self.start(number);
            MemberPlacement {
                instance: member.instance,
                process: member.process,
                start,
                values: member.live[start.0.0 as usize].values.iter().copied().collect(),
                first_slot: member.first_slot,
                slots: member.body.slots.len() as u32,
                first_site: member.first_site,
            }
        });
        members.collect()
    }

    /// The predicate of the trigger's start.
    pub(crate) fn trigger_predicate(&self) -> Option<u32> {
        self.members[0].start.predicate
    }
}

impl MemberSchedule {
    fn new(group: &Group<'_>, number: usize, spec: &MemberSpec) -> Result<MemberSchedule, Refusal> {
        let member = &group.members[number];
        let refuse = |what: &'static str, location: Location| {
            Err(Refusal::Unsupported { process: member.process, what, location })
        };
        let site = match spec.start.statement {
            PathStatement::Site(site) => site,
            PathStatement::Label(_) => {
                return refuse("a label as its start", group.program.processes[member.process.0 as usize].location);
            }
        };
        let Some((block, branch)) = wait_of_site(member.body, site) else {
            let location = group.program.processes[member.process.0 as usize].sites[site.0 as usize].location;
            return refuse("a start that is never reached", location);
        };
        let wait = group.wait(number, block);
        let location = wait.branches[branch as usize].location;
        if wait.order == AltOrder::Priority && wait.branches.len() > 1 {
            return refuse("a `pri alt` at its start", location);
        }
        if number > 0 && wait.branches.iter().any(|branch| matches!(branch.operation, Operation::After { .. })) {
            return refuse("an `after` at its start", location);
        }
        if number > 0 && wait.branches.iter().any(|branch| matches!(branch.guard, Guard::Region(_))) {
            return refuse("a guard that reads `free` at its start", location);
        }
        let Some(automaton) = PositionAutomaton::new(spec.follows.as_ref()) else {
            return refuse("a `follows` that is too long", location);
        };
        let quantifier = if number == 0 { PathQuantifier::Exists } else { PathQuantifier::ForAll };
        Ok(MemberSchedule {
            statements: spec.statements.clone(),
            start: spec.start.clone(),
            exit: spec.exit.clone(),
            automaton,
            first: block,
            branch,
            falls_through_to_start: falls_through(member.body, block),
            reaches_start: reaches_before_wait(member.body, block, quantifier),
        })
    }

    /// Whether a statement is in the alphabet of the member: a listed statement, its start or an exit.
    pub(super) fn is_in_alphabet(&self, statement: PathStatement) -> bool {
        self.statements.contains(&statement)
            || self.start.statement == statement
            || self.exit.iter().any(|exit| exit.statement == statement)
    }
}

/// The block that ends after the start of the trigger and its predicate.
fn block_after_start(body: &Body, then: BlockId, predicate: Option<u32>) -> BlockId {
    let Some(predicate) = predicate else { return then };
    let mut block = then;
    // The predicate is computed in blocks that join again before its evaluation.
    let mut reached = vec![false; body.blocks.len()];
    let mut worklist = vec![then];
    while let Some(next) = worklist.pop() {
        if std::mem::replace(&mut reached[next.0 as usize], true) {
            continue;
        }
        let Block { instructions, terminator, .. } = &body.blocks[next.0 as usize];
        if matches!(instructions.last().map(|last| &last.op), Some(Op::Predicate(other, _)) if *other == predicate) {
            block = next;
            break;
        }
        worklist.extend(successors(terminator, Regions::Include));
    }
    block
}

/// Per block: whether control falls through from it to `start`, by jumps and labels alone.
fn falls_through(body: &Body, start: BlockId) -> Vec<bool> {
    let mut falls_through = vec![false; body.blocks.len()];
    falls_through[start.0 as usize] = true;
    loop {
        let mut changed = false;
        for (index, block) in body.blocks.iter().enumerate() {
            let Terminator::Jump(edge) = &block.terminator else { continue };
            let is_plain = block.instructions.iter().all(|instruction| matches!(instruction.op, Op::Mark(_)));
            if falls_through[edge.to.0 as usize] && is_plain && !falls_through[index] {
                falls_through[index] = true;
                changed = true;
            }
        }
        if !changed {
            return falls_through;
        }
    }
}

/// Which of the paths from a block, as in CTL.
enum PathQuantifier {
    Exists,
    ForAll,
}

/// Per block: whether paths from it lead to `start` before any wait.
fn reaches_before_wait(body: &Body, start: BlockId, quantifier: PathQuantifier) -> Vec<bool> {
    let mut reaches = vec![false; body.blocks.len()];
    reaches[start.0 as usize] = true;
    loop {
        let mut changed = false;
        for (index, block) in body.blocks.iter().enumerate().filter(|(_, block)| is_local(&block.terminator)) {
            let next = successors(&block.terminator, Regions::Include);
            let mut next = next.iter().map(|next| reaches[next.0 as usize]);
            let is_reaching = match quantifier {
                PathQuantifier::Exists => next.any(|next| next),
                PathQuantifier::ForAll => next.all(|next| next),
            };
            if is_reaching && !reaches[index] {
                reaches[index] = true;
                changed = true;
            }
        }
        if !changed {
            return reaches;
        }
    }
}

/// Whether control stays in the process after a block.
fn is_local(terminator: &Terminator) -> bool {
    match terminator {
        Terminator::Jump(_) | Terminator::Branch { .. } | Terminator::Switch { .. } => true,
        Terminator::Wait(_)
        | Terminator::Yield(_)
        | Terminator::Return(_)
        | Terminator::Result(_)
        | Terminator::Exit(_)
        | Terminator::End
        | Terminator::Fault(_)
        | Terminator::Enter(_)
        | Terminator::Leave(_) => false,
    }
}

impl PathProgress {
    /// The progress at the entry: all members are at their starts, and the trigger runs.
    pub(super) fn new(members: usize) -> PathProgress {
        let mut progress =
            PathProgress { running: Some(0), queue: Vec::new(), members: vec![MemberProgress::default(); members] };
        progress.members[0].has_started = true;
        progress
    }

    /// Adds a member to the queue, which is kept sorted: the order of arrival is irrelevant, and states that differ
    /// only in it are merged.
    pub(super) fn enqueue(&mut self, member: usize) {
        self.queue.push(member);
        self.queue.sort_unstable();
    }

    /// The order in which members resume at an exit: the running member, the queue, the others.
    pub(super) fn resume_order(&self, members: usize) -> Vec<usize> {
        let mut order: Vec<usize> = self.running.into_iter().chain(self.queue.iter().copied()).collect();
        let rest: Vec<usize> = (0..members).filter(|member| !order.contains(member)).collect();
        order.extend(rest);
        order
    }

    /// Schedules the member that runs next, if any can: the running one, or of the queue the one furthest downstream.
    pub(super) fn schedule_next(&mut self, ranks: &[usize]) -> Option<usize> {
        let furthest = (0..self.queue.len()).max_by_key(|position| ranks[self.queue[*position]]);
        if let (None, Some(position)) = (self.running, furthest) {
            self.running = Some(self.queue.remove(position));
        }
        self.running
    }
}

/// The product along a fast path.
pub(crate) struct PathProduct {
    /// Its code, as it was emitted.
    pub(crate) body: Body,
    /// Facts that always hold of the parameters of its entry block.
    pub(crate) entry_facts: Vec<Option<Fact>>,
    /// The number of its nodes.
    pub(crate) nodes: usize,
    /// Per node: how the path exits there when the iteration limit is reached.
    pub(crate) limit_exits: Vec<LimitExit>,
    /// Its exits.
    pub(crate) exits: Vec<PathExit>,
    /// The blocks that exit, except those of `limit_exits`.
    pub(crate) exit_blocks: Vec<ExitBlock>,
    /// The locations of the members wherever a member is scheduled (which includes every node) and at every exit.
    pub(crate) locations: Vec<Vec<Location>>,
    /// Whether it makes a choice that the general code makes fairly.
    pub(crate) has_choice: bool,
    /// By member: statements of `follows` and `exit` that no run reaches on the path.
    pub(crate) unreached: Vec<(usize, PathStatement)>,
}

/// A block that exits a path.
#[derive(Clone, Debug)]
pub(crate) struct ExitBlock {
    pub(crate) block: BlockId,
    /// The iteration count there, which counts down from the iteration limit (`path::iteration_limit`).
    pub(crate) iteration_count: Value,
    /// The reason, and the locations at which the members resume.
    pub(crate) exit: PathExit,
}

/// The exit at a node that is taken when the iteration limit is reached there.
#[derive(Clone, Debug)]
pub(crate) struct LimitExit {
    /// The block of the node.
    pub(crate) block: BlockId,
    /// The parameter of the node that holds the iteration count.
    pub(crate) iteration_count: Value,
    /// The block that exits the path.
    pub(crate) stub: BlockId,
    /// The constant that the count starts from: 0 until `path::iteration_limit` sets it.
    pub(crate) initial_count: Value,
    /// Where the members resume.
    pub(crate) at: Vec<Location>,
    /// The distance of the members from their starts: the sum of 0 for a member at its start, 1 for one that only has
    /// to run to it, and the number of members for any other.
    pub(crate) distance: usize,
}
