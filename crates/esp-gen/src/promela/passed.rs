//! At which operations an instance has passed a label when it gets there. Knows the flow IR; knows no Promela.

use quaject_esp_ir::cfg::{Regions, successors};
use quaject_esp_ir::ir::*;
use std::collections::BTreeMap;

/// What can be said of a label by where an instance stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Passed {
    /// It is passed on every way to these operations, and on the way to nowhere else.
    At(Vec<BlockId>),
    /// On some ways to this operation it is passed, on others it is not.
    Sometimes(BlockId),
    /// It is passed on a way that ends, or that yields before the next operation.
    Elsewhere,
}

/// Which ways lead to a block: some that do not pass the label since the last operation, some that do.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Ways {
    without: bool,
    with: bool,
}

/// Where an instance has passed a label.
pub(super) fn passed(body: &Body, label: LabelId) -> Passed {
    let mut ways: BTreeMap<BlockId, Ways> = BTreeMap::new();
    let mut waits: BTreeMap<BlockId, Ways> = BTreeMap::new();
    let mut elsewhere = false;
    let anew = Ways { without: true, with: false };
    let mut work = vec![(BlockId(0), anew)];
    while let Some((id, arriving)) = work.pop() {
        let known = ways.entry(id).or_default();
        let all = Ways { without: known.without || arriving.without, with: known.with || arriving.with };
        if std::mem::replace(known, all) == all {
            continue;
        }
        let block = &body.blocks[id.0 as usize];
        let marks =
            block.instructions.iter().any(|instruction| matches!(instruction.op, Op::Mark(other) if other == label));
        let mut leaving = if marks { Ways { without: false, with: true } } else { all };
        match &block.terminator {
            Terminator::Wait(_) => {
                waits.insert(id, leaving);
                leaving = anew;
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
    let sometimes = waits.iter().find(|(_, ways)| ways.with && ways.without);
    match sometimes {
        Some((wait, _)) => Passed::Sometimes(*wait),
        None if elsewhere => Passed::Elsewhere,
        None => Passed::At(waits.into_iter().filter(|(_, ways)| ways.with).map(|(wait, _)| wait).collect()),
    }
}
