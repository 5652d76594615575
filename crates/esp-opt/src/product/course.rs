//! The course of a fast path ("Fast Paths in Concurrent Programs", sections 4.2 to 4.4): a specification made ready for a
//! group, and how far along it a path is. Following it is in `follow`.
//!
//! **Schedule.** One member runs until it cannot go on; after a communication the receiver goes on and the sender joins
//! the queue, unless `yield` names another. Of the queue, whoever is furthest downstream runs next. The paper takes the
//! first of the queue; then members upstream run ahead in more and more ways, and states multiply: seven filters in a row
//! have 1037 states in the paper's order.
//!
//! **Choice.** Of an alt only branches that the path can go on with are looked at, the first in text first. That is a
//! choice which the slow code makes fairly: it runs every now and then ([`Followed::has_choice`]).

use super::group::Group;
use super::word::{Reached, Words};
use crate::facts::Fact;
use crate::path_exit::PathExit;
use crate::path_spec::{MemberSpec, PathElement, PathSpec, ProgramPoint};
use crate::refusal::Refusal;
use quaject_esp_ir::cfg::{Regions, successors};
use quaject_esp_ir::ir::{AltOrder, Block, BlockId, Body, Guard, Location, Op, Operation, SiteId, Terminator, Value};
use std::collections::BTreeSet;

/// A specification made ready for a group.
pub(crate) struct Course {
    pub(super) parts: Vec<PartCourse>,
    /// The block of the trigger behind which the path begins.
    pub(crate) before: BlockId,
    /// Per member: how far downstream it is.
    pub(super) rank: Vec<usize>,
}

/// One member's part.
pub(super) struct PartCourse {
    pub(super) statements: Vec<ProgramPoint>,
    pub(super) start: PathElement,
    pub(super) exit: Vec<PathElement>,
    pub(super) words: Words,
    /// The first block on the path of the trigger; the block of the wait another member starts at, and the branch.
    pub(super) first: BlockId,
    pub(super) branch: u32,
    /// Blocks from which only jumps lead to the start.
    pub(super) near_start: Vec<bool>,
    /// Blocks from which all ways lead to the start, before any other wait; of the trigger, some way.
    pub(super) before_start: Vec<bool>,
}

/// Where a path is in its schedule and its words.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub(super) struct Progress {
    pub(super) running: Option<usize>,
    pub(super) queue: Vec<usize>,
    pub(super) members: Vec<Stage>,
}

/// Where a member is in its part.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub(super) struct Stage {
    pub(super) has_started: bool,
    pub(super) is_parked: bool,
    pub(super) word: Reached,
    /// Occurrences that its last operation may have been, if their predicates hold.
    pub(super) pending: Vec<u32>,
    pub(super) is_start_pending: bool,
    /// Predicates that have been computed before their statement.
    pub(super) tested: Vec<(u32, bool)>,
}

impl Course {
    /// Makes a specification ready. The group's members are the specification's, in its order.
    pub(crate) fn new(group: &Group<'_>, of: &PathSpec) -> Result<Course, Refusal> {
        let mut parts = Vec::new();
        for (number, part) in of.members.iter().enumerate() {
            parts.push(PartCourse::new(group, number, part)?);
        }
        let body = group.members[0].body;
        let Terminator::Wait(wait) = &body.blocks[parts[0].first.0 as usize].terminator else {
            unreachable!("a start is a wait")
        };
        let then = wait.branches[parts[0].branch as usize].then;
        let before = behind_start(body, then, parts[0].start.test);
        let Terminator::Jump(edge) = &body.blocks[before.0 as usize].terminator else {
            unreachable!("bodies are split behind the start of a path")
        };
        parts[0].first = edge.to;
        Ok(Course { parts, before, rank: group.downstream() })
    }

    /// The first block on the path of the trigger, or the block of the wait that another member starts at; its branch.
    pub(crate) fn start(&self, member: usize) -> (BlockId, u32) {
        (self.parts[member].first, self.parts[member].branch)
    }

    /// The statements of `follows` and `exit` that words neither went on with nor ended at.
    pub(super) fn unreached(
        &self,
        spelled: &BTreeSet<(usize, ProgramPoint)>,
        ended: &BTreeSet<(usize, ProgramPoint)>,
    ) -> Vec<(usize, ProgramPoint)> {
        let mut unreached = BTreeSet::new();
        for (member, part) in self.parts.iter().enumerate() {
            let steps = part.words.elements.iter().map(|element| (member, element.point));
            unreached.extend(steps.filter(|step| !spelled.contains(step) && !ended.contains(step)));
            let ends = part.exit.iter().map(|element| (member, element.point));
            unreached.extend(ends.filter(|end| !ended.contains(end)));
        }
        unreached.into_iter().collect()
    }

    /// The predicate of the trigger's start.
    pub(crate) fn trigger_test(&self) -> Option<u32> {
        self.parts[0].start.test
    }
}

impl PartCourse {
    fn new(group: &Group<'_>, number: usize, part: &MemberSpec) -> Result<PartCourse, Refusal> {
        let member = &group.members[number];
        let refuse = |what: &'static str, location: Location| {
            Err(Refusal::Unsupported { process: member.process, what, location })
        };
        let site = match part.start.point {
            ProgramPoint::Site(site) => site,
            ProgramPoint::Label(_) => {
                return refuse("a label as its start", group.program.processes[member.process.0 as usize].location);
            }
        };
        let Some((block, branch)) = wait_of(member.body, site) else {
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
            return refuse("a guard that asks `free` at its start", location);
        }
        let Some(words) = Words::new(part.follows.as_ref()) else { return refuse("too long a `follows`", location) };
        let near_start = near(member.body, block);
        let (statements, start, exit) = (part.statements.clone(), part.start.clone(), part.exit.clone());
        let before_start = before(member.body, block, if number == 0 { Ways::Some } else { Ways::All });
        Ok(PartCourse { statements, start, exit, words, first: block, branch, near_start, before_start })
    }

    pub(super) fn is_interesting(&self, point: ProgramPoint) -> bool {
        self.statements.contains(&point)
            || self.start.point == point
            || self.exit.iter().any(|exit| exit.point == point)
    }
}

/// The block that ends in the wait with this operation, and its branch.
pub(super) fn wait_of(body: &Body, wanted: SiteId) -> Option<(BlockId, u32)> {
    body.blocks.iter().enumerate().find_map(|(index, block)| {
        let Terminator::Wait(wait) = &block.terminator else { return None };
        let branch = wait.branches.iter().position(|branch| site(&branch.operation) == Some(wanted))?;
        Some((BlockId(index as u32), branch as u32))
    })
}

/// The block that ends behind the trigger's start and its predicate.
fn behind_start(body: &Body, then: BlockId, test: Option<u32>) -> BlockId {
    let Some(test) = test else { return then };
    let mut block = then;
    // The predicate is computed in a line of blocks, or in ways that join again.
    let mut seen = vec![false; body.blocks.len()];
    let mut work = vec![then];
    while let Some(next) = work.pop() {
        if std::mem::replace(&mut seen[next.0 as usize], true) {
            continue;
        }
        let Block { instructions, terminator, .. } = &body.blocks[next.0 as usize];
        if matches!(instructions.last().map(|last| &last.op), Some(Op::Test(other, _)) if *other == test) {
            block = next;
            break;
        }
        work.extend(successors(terminator, Regions::Include));
    }
    block
}

/// Per block: whether only jumps and marks lead from it to this one.
fn near(body: &Body, start: BlockId) -> Vec<bool> {
    let mut near = vec![false; body.blocks.len()];
    near[start.0 as usize] = true;
    loop {
        let mut changed = false;
        for (index, block) in body.blocks.iter().enumerate() {
            let Terminator::Jump(edge) = &block.terminator else { continue };
            let is_plain = block.instructions.iter().all(|instruction| matches!(instruction.op, Op::Mark(_)));
            if near[edge.to.0 as usize] && is_plain && !near[index] {
                near[index] = true;
                changed = true;
            }
        }
        if !changed {
            return near;
        }
    }
}

/// Which of the ways out of a block.
enum Ways {
    Some,
    All,
}

/// Per block: whether ways from it lead to this one, and to no wait before.
fn before(body: &Body, start: BlockId, ways: Ways) -> Vec<bool> {
    let mut before = vec![false; body.blocks.len()];
    before[start.0 as usize] = true;
    loop {
        let mut changed = false;
        for (index, block) in body.blocks.iter().enumerate().filter(|(_, block)| is_local(&block.terminator)) {
            let next = successors(&block.terminator, Regions::Include);
            let mut next = next.iter().map(|next| before[next.0 as usize]);
            let is_before = match ways {
                Ways::Some => next.any(|next| next),
                Ways::All => next.all(|next| next),
            };
            if is_before && !before[index] {
                before[index] = true;
                changed = true;
            }
        }
        if !changed {
            return before;
        }
    }
}

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

/// The operation in the text.
pub(super) fn site(operation: &Operation) -> Option<SiteId> {
    match operation {
        Operation::In { site, .. } | Operation::Out { site, .. } => Some(*site),
        Operation::After { .. } => None,
    }
}

impl Progress {
    /// Everybody at its start; the trigger runs.
    pub(super) fn new(members: usize) -> Progress {
        let mut progress = Progress { running: Some(0), queue: Vec::new(), members: vec![Stage::default(); members] };
        progress.members[0].has_started = true;
        progress
    }

    /// The queue is kept in order of members: who came first makes no difference.
    pub(super) fn wait_in_queue(&mut self, member: usize) {
        self.queue.push(member);
        self.queue.sort_unstable();
    }

    /// Who goes on first when the path is left: who runs, who is in the queue, the others.
    pub(super) fn order(&self, members: usize) -> Vec<usize> {
        let mut order: Vec<usize> = self.running.into_iter().chain(self.queue.iter().copied()).collect();
        let rest: Vec<usize> = (0..members).filter(|member| !order.contains(member)).collect();
        order.extend(rest);
        order
    }

    /// Who runs next, if anybody can: of the queue, who is furthest downstream.
    pub(super) fn next(&mut self, rank: &[usize]) -> Option<usize> {
        let last = (0..self.queue.len()).max_by_key(|position| rank[self.queue[*position]]);
        if let (None, Some(position)) = (self.running, last) {
            self.running = Some(self.queue.remove(position));
        }
        self.running
    }
}

/// What following a path gave.
pub(crate) struct Followed {
    /// Its code, as it was emitted.
    pub(crate) body: Body,
    /// What is always so of its entry block's parameters.
    pub(crate) given: Vec<Option<Fact>>,
    /// Nodes.
    pub(crate) nodes: usize,
    /// Per node: where it is, and how it is left.
    pub(crate) ends: Vec<NodeEnd>,
    /// Where it is left.
    pub(crate) exits: Vec<PathExit>,
    /// The blocks that leave it, but for those of `ends`.
    pub(crate) leaves: Vec<Leaving>,
    /// Where members stand at nodes and where they go on.
    pub(crate) states: Vec<Vec<Location>>,
    /// Whether it makes a choice.
    pub(crate) has_choice: bool,
    /// Statements of `follows` and `exit` that no run comes to on the path, by member.
    pub(crate) unreached: Vec<(usize, ProgramPoint)>,
}

/// A block that leaves a path.
#[derive(Clone, Debug)]
pub(crate) struct Leaving {
    pub(crate) block: BlockId,
    /// Iterations that are left there.
    pub(crate) count: Value,
    /// Where everybody is, and why.
    pub(crate) exit: PathExit,
}

/// A node, to be left there if it was reached too often.
#[derive(Clone, Debug)]
pub(crate) struct NodeEnd {
    /// Its block.
    pub(crate) block: BlockId,
    /// Its parameter that counts iterations.
    pub(crate) count: Value,
    /// The block that leaves the path there.
    pub(crate) stub: BlockId,
    /// The constant that the count begins with.
    pub(crate) first_count: Value,
    /// Where in the text everybody is there.
    pub(crate) at: Vec<Location>,
    /// How many members do not come to their start next.
    pub(crate) away: usize,
}
