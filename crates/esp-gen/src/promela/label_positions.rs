//! The positions of a label: the waits that an instance reaches after it has passed the label since its last wait. A
//! forward data-flow problem on paths with and without the label. Knows the flow IR; knows no Promela.

use quaject_esp_ir::cfg::{Regions, successors};
use quaject_esp_ir::ir::*;
use std::collections::BTreeMap;

/// How the location of an instance determines whether it has passed a label.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum LabelPositions {
    /// Every path to one of these waits passes it, and no path to another.
    Waits(Vec<BlockId>),
    /// Some paths to this wait pass it and others do not.
    Ambiguous(BlockId),
    /// A path that passes it ends or yields before the next wait.
    Elsewhere,
}

/// Which paths from the last wait reach a block: some without the label, some with it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct LabelReach {
    without: bool,
    with: bool,
}

/// Finds the positions of a label.
pub(super) fn label_positions(body: &Body, label: LabelId) -> LabelPositions {
    let mut paths: BTreeMap<BlockId, LabelReach> = BTreeMap::new();
    let mut waits: BTreeMap<BlockId, LabelReach> = BTreeMap::new();
    let mut elsewhere = false;
    let after_wait = LabelReach { without: true, with: false };
    let mut work = vec![(BlockId(0), after_wait)];
    while let Some((id, arriving)) = work.pop() {
        let known = paths.entry(id).or_default();
        let all = LabelReach { without: known.without || arriving.without, with: known.with || arriving.with };
        if std::mem::replace(known, all) == all {
            continue;
        }
        let block = &body.blocks[id.0 as usize];
        let marks =
            block.instructions.iter().any(|instruction| matches!(instruction.op, Op::Mark(other) if other == label));
        let mut leaving = if marks { LabelReach { without: false, with: true } } else { all };
        match &block.terminator {
            Terminator::Wait(_) => {
                waits.insert(id, leaving);
                leaving = after_wait;
            }
            Terminator::Yield(_) | Terminator::Exit(_) | Terminator::End => elsewhere |= leaving.with,
            Terminator::Jump(_)
            | Terminator::Branch { .. }
            | Terminator::Switch { .. }
            | Terminator::Fault(_)
            | Terminator::Return(_)
            | Terminator::Result(_)
            | Terminator::Enter(_)
            | Terminator::Leave(_) => {}
        }
        work.extend(successors(&block.terminator, Regions::Skip).into_iter().map(|next| (next, leaving)));
    }
    let ambiguous = waits.iter().find(|(_, paths)| paths.with && paths.without);
    match ambiguous {
        Some((wait, _)) => LabelPositions::Ambiguous(*wait),
        None if elsewhere => LabelPositions::Elsewhere,
        None => {
            LabelPositions::Waits(waits.into_iter().filter(|(_, paths)| paths.with).map(|(wait, _)| wait).collect())
        }
    }
}
