//! The control-flow graph of a body: edges, successors, predecessors, reachable blocks, regions, and orders of blocks.
//!
//! A region is code that a wait runs while the instance waits. Control does not flow into it, but an analysis of all
//! code that may run includes it. So each function that walks the graph takes [`Regions`]. Knows no instructions.

use crate::ir::{BlockId, Body, Branch, Edge, Guard, Operation, Payload, Terminator, Wait};

/// Whether the regions of a wait count as its successors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Regions {
    /// They do: the blocks whose code may run.
    Include,
    /// They do not: the blocks at which an instance may go on.
    Skip,
}

/// The edges of a terminator. The targets of a wait, and the first block of a fast path, are on no [`Edge`].
pub fn edges(terminator: &Terminator) -> Vec<&Edge> {
    match terminator {
        Terminator::Jump(edge) | Terminator::Yield(edge) => vec![edge],
        Terminator::Enter(enter) => vec![&enter.later, &enter.otherwise],
        Terminator::Branch { condition: _, then, otherwise } => vec![then, otherwise],
        Terminator::Switch { value: _, cases, default } => {
            cases.iter().map(|(_, edge)| edge).chain([default]).collect()
        }
        Terminator::Wait(_)
        | Terminator::Leave(_)
        | Terminator::Return(_)
        | Terminator::Result(_)
        | Terminator::Exit(_)
        | Terminator::End
        | Terminator::Fault(_) => Vec::new(),
    }
}

/// The edges of a terminator, to change them.
pub fn edges_mut(terminator: &mut Terminator) -> Vec<&mut Edge> {
    match terminator {
        Terminator::Jump(edge) | Terminator::Yield(edge) => vec![edge],
        Terminator::Enter(enter) => vec![&mut enter.later, &mut enter.otherwise],
        Terminator::Branch { condition: _, then, otherwise } => vec![then, otherwise],
        Terminator::Switch { value: _, cases, default } => {
            cases.iter_mut().map(|(_, edge)| edge).chain([default]).collect()
        }
        Terminator::Wait(_)
        | Terminator::Leave(_)
        | Terminator::Return(_)
        | Terminator::Result(_)
        | Terminator::Exit(_)
        | Terminator::End
        | Terminator::Fault(_) => Vec::new(),
    }
}

/// Every block that a terminator leads to, in order of text; a block twice if two edges lead there.
pub fn successors(terminator: &Terminator, regions: Regions) -> Vec<BlockId> {
    match terminator {
        Terminator::Wait(wait) => {
            let mut targets = Vec::with_capacity(wait.branches.len() + 1);
            for branch in &wait.branches {
                match regions {
                    Regions::Include => targets.extend(branch_regions(branch)),
                    Regions::Skip => {}
                }
                targets.push(branch.then);
            }
            targets.extend(wait.otherwise);
            targets
        }
        Terminator::Enter(enter) => vec![enter.then, enter.later.to, enter.otherwise.to],
        Terminator::Jump(edge) | Terminator::Yield(edge) => vec![edge.to],
        Terminator::Branch { condition: _, then, otherwise } => vec![then.to, otherwise.to],
        Terminator::Switch { value: _, cases, default } => {
            cases.iter().map(|(_, edge)| edge.to).chain([default.to]).collect()
        }
        Terminator::Leave(_)
        | Terminator::Return(_)
        | Terminator::Result(_)
        | Terminator::Exit(_)
        | Terminator::End
        | Terminator::Fault(_) => Vec::new(),
    }
}

/// Every block that a wait names, to change it: regions, the blocks behind branches, and `else`.
pub fn wait_targets_mut(wait: &mut Wait) -> Vec<&mut BlockId> {
    let mut targets = Vec::new();
    for Branch { guard, operation, then, location: _ } in &mut wait.branches {
        match guard {
            Guard::Region(block) => targets.push(block),
            Guard::Open | Guard::Value(_) => {}
        }
        match operation {
            Operation::In { site: _, channel: _, patterns: _, condition } => targets.extend(condition.as_mut()),
            Operation::Out { site: _, channel: _, payload: Payload::Region(block) } => targets.push(block),
            Operation::Out { site: _, channel: _, payload: Payload::Ready(_) }
            | Operation::After { amount: _, unit: _ } => {}
        }
        targets.push(then);
    }
    targets.extend(wait.otherwise.as_mut());
    targets
}

/// The first block of each region of a wait.
pub fn region_entries(wait: &Wait) -> Vec<BlockId> {
    wait.branches.iter().flat_map(branch_regions).collect()
}

fn branch_regions(branch: &Branch) -> impl Iterator<Item = BlockId> {
    let guard = match branch.guard {
        Guard::Region(block) => Some(block),
        Guard::Open | Guard::Value(_) => None,
    };
    let operation = match &branch.operation {
        Operation::In { condition, .. } => *condition,
        Operation::Out { payload: Payload::Region(block), .. } => Some(*block),
        Operation::Out { payload: Payload::Ready(_), .. } | Operation::After { .. } => None,
    };
    guard.into_iter().chain(operation)
}

/// The blocks of the region that begins here, in ascending order. A region does not wait.
pub fn region_blocks(body: &Body, entry: BlockId) -> Vec<BlockId> {
    closure(body, [entry], |terminator, work| work.extend(edges(terminator).into_iter().map(|edge| edge.to)))
}

/// The blocks that control reaches from `entry`, itself among them, in ascending order.
pub fn reachable(body: &Body, entry: BlockId, regions: Regions) -> Vec<BlockId> {
    reachable_from(body, [entry], regions)
}

/// The blocks that control reaches from any of `entries`, themselves among them, in ascending order.
pub fn reachable_from(body: &Body, entries: impl IntoIterator<Item = BlockId>, regions: Regions) -> Vec<BlockId> {
    closure(body, entries, |terminator, work| work.extend(successors(terminator, regions)))
}

fn closure(
    body: &Body,
    entries: impl IntoIterator<Item = BlockId>,
    next: impl Fn(&Terminator, &mut Vec<BlockId>),
) -> Vec<BlockId> {
    let mut seen = vec![false; body.blocks.len()];
    let mut work: Vec<BlockId> = entries.into_iter().collect();
    while let Some(block) = work.pop() {
        if !std::mem::replace(&mut seen[block.0 as usize], true) {
            next(&body.blocks[block.0 as usize].terminator, &mut work);
        }
    }
    (0..).map(BlockId).zip(seen).filter(|(_, seen)| *seen).map(|(block, _)| block).collect()
}

/// Per block, the blocks of `from` that lead to it, in their order; a block twice if two of its edges do.
pub fn predecessors(body: &Body, from: impl IntoIterator<Item = usize>, regions: Regions) -> Vec<Vec<usize>> {
    let mut predecessors = vec![Vec::new(); body.blocks.len()];
    for block in from {
        for next in successors(&body.blocks[block].terminator, regions) {
            predecessors[next.0 as usize].push(block);
        }
    }
    predecessors
}

/// The blocks that are reachable from the entry, in reverse postorder: each before its successors, but for back edges.
pub fn reverse_postorder(body: &Body, regions: Regions) -> Vec<usize> {
    let count = body.blocks.len();
    let mut postorder = Vec::with_capacity(count);
    let mut seen = vec![false; count];
    seen[0] = true;
    let open = |block: usize| (block, successors(&body.blocks[block].terminator, regions).into_iter());
    let mut stack = vec![open(0)];
    while let Some((block, rest)) = stack.last_mut() {
        match rest.next() {
            Some(next) if !std::mem::replace(&mut seen[next.0 as usize], true) => stack.push(open(next.0 as usize)),
            Some(_) => {}
            None => {
                postorder.push(*block);
                stack.pop();
            }
        }
    }
    postorder.reverse();
    postorder
}
