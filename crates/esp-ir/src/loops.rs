//! Natural loops: a header that dominates the source of a back edge to it, and all blocks between them (Aho, Lam, Sethi
//! and Ullman, "Compilers", 9.6). Knows the control-flow graph only.

use crate::cfg::{Regions, successors};
use crate::dominators::Dominators;
use crate::ir::Body;

/// A loop.
pub struct Loop {
    /// The block by which it is entered.
    pub header: usize,
    /// The sources of its back edges.
    pub back: Vec<usize>,
    /// Per block of the body: whether it is part of the loop.
    pub inside: Vec<bool>,
}

/// The loops of a body, in order of text. Regions count as successors of their wait.
pub fn loops(body: &Body, dominators: &Dominators) -> Vec<Loop> {
    let count = body.blocks.len();
    let mut predecessors = vec![Vec::new(); count];
    for block in dominators.order() {
        for next in successors(&body.blocks[*block].terminator, Regions::Include) {
            predecessors[next.0 as usize].push(*block);
        }
    }
    let loops = (0..count).filter(|header| dominators.is_reachable(*header)).filter_map(|header| {
        let back = predecessors[header].iter().copied().filter(|block| dominators.dominates(header, *block));
        let back: Vec<usize> = back.collect();
        let mut inside = vec![false; count];
        inside[header] = true;
        let mut work = back.clone();
        while let Some(block) = work.pop() {
            if !std::mem::replace(&mut inside[block], true) {
                work.extend(&predecessors[block]);
            }
        }
        (!back.is_empty()).then_some(Loop { header, back, inside })
    });
    loops.collect()
}
