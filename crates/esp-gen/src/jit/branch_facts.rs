//! Facts that branches establish: in the block behind `if i < n`, `i` is below `n`.

use super::code_layout::{CodeLayout, weighted_edges};
use quaject_esp_ir::ir::{BinaryOp, BlockId, Op, Terminator, Value};

/// A comparison that holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct BranchFact {
    pub(super) op: BinaryOp,
    pub(super) a: Value,
    pub(super) b: Value,
}

/// Per block with one predecessor: that block, and the comparison that holds on the edge.
pub(super) struct BranchFacts {
    above: Vec<Option<(BlockId, Option<BranchFact>)>>,
}

/// How many predecessors are searched.
const DEPTH: usize = 8;

impl BranchFacts {
    pub(super) fn new(layout: &CodeLayout<'_>) -> BranchFacts {
        let count = layout.body.blocks.len();
        let (mut above, mut edges_into) = (vec![None; count], vec![0; count]);
        for block in &layout.order {
            for (index, (to, _, _)) in weighted_edges(layout.body, *block).into_iter().enumerate() {
                edges_into[to.0 as usize] += 1;
                above[to.0 as usize] = Some((*block, guard(layout, *block, index == 0)));
            }
        }
        for (index, above) in above.iter_mut().enumerate() {
            if edges_into[index] != 1 || layout.is_entry[index] {
                *above = None;
            }
        }
        BranchFacts { above }
    }

    /// The comparisons that hold in a block, nearest first.
    pub(super) fn of(&self, block: BlockId) -> impl Iterator<Item = BranchFact> + '_ {
        let mut next = Some(block);
        let step = move || {
            let (above, guard) = self.above[next?.0 as usize]?;
            next = Some(above);
            Some(guard)
        };
        std::iter::from_fn(step).take(DEPTH).flatten()
    }
}

/// The comparison that holds on one of the edges of a branch.
fn guard(layout: &CodeLayout<'_>, block: BlockId, is_then: bool) -> Option<BranchFact> {
    let code = &layout.body.blocks[block.0 as usize];
    let Terminator::Branch { condition, .. } = &code.terminator else { return None };
    let defined = code.instructions.iter().rev().find(|instruction| instruction.result == Some(*condition))?;
    match defined.op {
        Op::Binary(op, a, b) => {
            let inverted = op.inverted()?;
            Some(BranchFact { op: if is_then { op } else { inverted }, a, b })
        }
        _ => None,
    }
}
