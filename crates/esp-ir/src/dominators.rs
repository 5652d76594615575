//! Dominators, by the iterative algorithm of Cooper, Harvey and Kennedy ("A Simple, Fast Dominance Algorithm"). A block
//! dominates another one if every path from the entry to that one passes it. Knows the control-flow graph only.

use crate::cfg::{Regions, reverse_postorder, successors};
use crate::ir::Body;

/// Immediate dominators, by block. Regions count as successors of their wait.
pub struct Dominators {
    immediate: Vec<Option<usize>>,
    /// Reachable blocks in reverse postorder.
    order: Vec<usize>,
    /// Per block: its number in a preorder of the dominator tree, and the number after all that it dominates. Both are
    /// 0 if it is unreachable.
    subtree: Vec<(usize, usize)>,
}

impl Dominators {
    /// Those of a body.
    pub fn new(body: &Body) -> Dominators {
        let count = body.blocks.len();
        let successors: Vec<Vec<usize>> = body
            .blocks
            .iter()
            .map(|block| successors(&block.terminator, Regions::Include).iter().map(|block| block.0 as usize).collect())
            .collect();
        let order = reverse_postorder(body, Regions::Include);
        let mut position = vec![usize::MAX; count];
        for (at, block) in order.iter().enumerate() {
            position[*block] = at;
        }
        let mut predecessors = vec![Vec::new(); count];
        for block in &order {
            successors[*block].iter().for_each(|successor| predecessors[*successor].push(*block));
        }
        let mut immediate: Vec<Option<usize>> = vec![None; count];
        immediate[0] = Some(0);
        let mut changed = true;
        while changed {
            changed = false;
            for block in order.iter().copied().filter(|block| *block != 0) {
                let known = predecessors[block].iter().copied().filter(|block| immediate[*block].is_some());
                let new = known.reduce(|mut a, mut b| {
                    while a != b {
                        while position[a] > position[b] {
                            a = immediate[a].expect("a processed block has a dominator");
                        }
                        while position[b] > position[a] {
                            b = immediate[b].expect("a processed block has a dominator");
                        }
                    }
                    a
                });
                if immediate[block] != new {
                    immediate[block] = new;
                    changed = true;
                }
            }
        }
        let subtree = subtrees(&immediate, &order);
        Dominators { immediate, order, subtree }
    }

    /// Reachable blocks, each after its dominators.
    pub fn order(&self) -> &[usize] {
        &self.order
    }

    /// The immediate dominator of a block; none of the entry and of unreachable blocks.
    pub fn immediate(&self, block: usize) -> Option<usize> {
        self.immediate[block].filter(|above| *above != block)
    }

    /// Whether a block is reachable.
    pub fn is_reachable(&self, block: usize) -> bool {
        self.immediate[block].is_some()
    }

    /// The number of a block in a preorder of the dominator tree: it is greater than those of its dominators.
    pub fn preorder(&self, block: usize) -> usize {
        self.subtree[block].0
    }

    /// Whether `above` dominates a reachable block; each block dominates itself.
    pub fn dominates(&self, above: usize, block: usize) -> bool {
        let (first, end) = self.subtree[above];
        (first..end).contains(&self.subtree[block].0) && self.is_reachable(block)
    }
}

/// Per block, the first number of its subtree of the dominator tree, and the number after the last.
fn subtrees(immediate: &[Option<usize>], order: &[usize]) -> Vec<(usize, usize)> {
    // In reverse postorder a block comes after its dominators, so that its subtree is complete before theirs are.
    let mut sizes = vec![1; immediate.len()];
    let above = |block: usize| immediate[block].filter(|above| *above != block);
    for block in order.iter().rev() {
        above(*block).into_iter().for_each(|above| sizes[above] += sizes[*block]);
    }
    let mut subtree = vec![(0, 0); immediate.len()];
    let mut next = vec![0; immediate.len()];
    for block in order.iter().copied() {
        let first = match above(block) {
            Some(above) => {
                next[above] += sizes[block];
                next[above] - sizes[block]
            }
            None => 0,
        };
        subtree[block] = (first, first + sizes[block]);
        next[block] = first + 1;
    }
    subtree
}
