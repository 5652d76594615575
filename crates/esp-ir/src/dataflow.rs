//! Solver of backward data-flow problems: the round-robin worklist of Kildall ("A Unified Approach to Global Program
//! Optimization", 1973). An analysis keeps a state per block start and says how to compute it from the states of the
//! successors; if that is monotone and the states have finite height, the result is the least fixed point, whatever the
//! order. Knows the control-flow graph only.

use crate::cfg::{Regions, successors};
use crate::ir::{BlockId, Body, Terminator};

/// Recomputes the states of these blocks until none changes, last block first. `update` computes the state of a block
/// anew and says whether it has changed; it may read the states of all blocks the terminator names, regions included.
pub fn solve_backward(body: &Body, blocks: &[BlockId], mut update: impl FnMut(BlockId) -> bool) {
    let mut dependents: Vec<Vec<BlockId>> = vec![Vec::new(); body.blocks.len()];
    for block in blocks {
        for next in dependencies(&body.blocks[block.0 as usize].terminator) {
            dependents[next.0 as usize].push(*block);
        }
    }
    let mut is_due = vec![true; body.blocks.len()];
    let mut has_changed = true;
    while has_changed {
        has_changed = false;
        for block in blocks.iter().rev() {
            if std::mem::take(&mut is_due[block.0 as usize]) && update(*block) {
                dependents[block.0 as usize].iter().for_each(|other| is_due[other.0 as usize] = true);
                has_changed = true;
            }
        }
    }
}

/// Every block of a body, in order of text.
pub fn all_blocks(body: &Body) -> Vec<BlockId> {
    (0..body.blocks.len() as u32).map(BlockId).collect()
}

/// The blocks whose states the state of a block may be computed from.
fn dependencies(terminator: &Terminator) -> Vec<BlockId> {
    let mut blocks = successors(terminator, Regions::Include);
    if let Terminator::Leave(leave) = terminator {
        blocks.push(leave.trigger.to);
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::{all_blocks, solve_backward};
    use crate::ir::{Block, BlockId, Body, Edge, Fault, Location, Terminator};

    /// `block0` jumps to a loop of two blocks, which is left to one that faults.
    #[test]
    fn a_state_goes_round_a_loop() {
        let edge = |to: u32| Edge { to: BlockId(to), arguments: Vec::new() };
        let value = crate::ir::Value(0);
        let terminators = [
            Terminator::Jump(edge(1)),
            Terminator::Branch { condition: value, then: edge(2), otherwise: edge(3) },
            Terminator::Jump(edge(1)),
            Terminator::Fault(Fault::Assert),
            Terminator::End,
        ];
        let block = |terminator: Terminator| Block {
            parameters: Vec::new(),
            instructions: Vec::new(),
            terminator,
            location: Location::default(),
        };
        let body = Body { blocks: terminators.into_iter().map(block).collect(), ..Body::default() };
        // Whether a block may lead to a fault.
        let mut may_fault = vec![false; body.blocks.len()];
        let mut updates = 0;
        solve_backward(&body, &all_blocks(&body), |block| {
            updates += 1;
            let now = match &body.blocks[block.0 as usize].terminator {
                Terminator::Fault(_) => true,
                terminator => crate::cfg::edges(terminator).iter().any(|edge| may_fault[edge.to.0 as usize]),
            };
            std::mem::replace(&mut may_fault[block.0 as usize], now) != now
        });
        assert_eq!(may_fault, [true, true, true, true, false]);
        assert_eq!(updates, 7, "only what a change concerns is computed again");
    }
}
