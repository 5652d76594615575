//! The blocks of fast paths in the body of their trigger.

use quaject_esp_ir::cfg::{Regions, reachable_from, successors};
use quaject_esp_ir::ir::*;

/// Per block: whether it is code of a fast path of this body.
pub(crate) fn on_path(body: &Body) -> Vec<bool> {
    let mut on_path = vec![false; body.blocks.len()];
    let entries = body.blocks.iter().filter_map(|block| match &block.terminator {
        Terminator::Enter(enter) => Some(enter.then),
        _ => None,
    });
    for block in reachable_from(body, entries, Regions::Skip) {
        on_path[block.0 as usize] = true;
    }
    on_path
}

/// Whether the blocks of a body's fast paths contain a cycle: topological sorting (Kahn 1962) does not remove all of
/// them.
pub(crate) fn has_cycle_on_path(body: &Body) -> bool {
    let on_path = on_path(body);
    let mut predecessors = vec![0usize; body.blocks.len()];
    let next = |block: usize| successors(&body.blocks[block].terminator, Regions::Skip);
    let blocks: Vec<usize> = (0..body.blocks.len()).filter(|block| on_path[*block]).collect();
    blocks.iter().flat_map(|block| next(*block)).for_each(|to| predecessors[to.0 as usize] += 1);
    let mut work: Vec<usize> = blocks.iter().copied().filter(|block| predecessors[*block] == 0).collect();
    let mut removed = 0;
    while let Some(block) = work.pop() {
        removed += 1;
        for to in next(block) {
            predecessors[to.0 as usize] -= 1;
            if predecessors[to.0 as usize] == 0 {
                work.push(to.0 as usize);
            }
        }
    }
    removed < blocks.len()
}
