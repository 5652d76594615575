//! Which values of the frame a loop that never waits holds in locals while it runs: they are read where the loop is
//! entered, and those that it has changed and somebody still needs are written back where it is left. Memory is written
//! as bytes, too, which C lets be any other object, so that no compiler would keep them in registers by itself. Knows the
//! flow IR and liveness; knows no C.

use super::{Home, Set, Unit};
use quaject_esp_ir::access::Access;
use quaject_esp_ir::cfg::{Regions, edges, successors};
use quaject_esp_ir::graph::components;
use quaject_esp_ir::ir::*;
use std::collections::BTreeSet;

/// Values of the frame, each named after its class.
type Classes = BTreeSet<Value>;

/// The loops that hold values.
#[derive(Default)]
pub(crate) struct Held {
    loops: Vec<Classes>,
    /// Per block: the loop it is part of.
    of: Vec<Option<usize>>,
    /// Per block: what of it is needed when it begins, but for its parameters, and those.
    needed: Vec<Classes>,
    parameters: Vec<Classes>,
    /// Per block: what may differ from the frame when it ends.
    changed: Vec<Classes>,
    /// Blocks of loops that are entered from elsewhere.
    entered: BTreeSet<BlockId>,
}

impl Held {
    /// The loop that a block is part of, if that holds anything.
    pub(crate) fn loop_of(&self, block: BlockId) -> Option<usize> {
        self.of.get(block.0 as usize).copied().flatten().filter(|loop_| !self.loops[*loop_].is_empty())
    }

    /// Whether a loop goes on along an edge between these blocks. Nothing is said where no loop holds anything.
    pub(crate) fn goes_on(&self, from: BlockId, to: BlockId) -> bool {
        let of = |block: BlockId| self.of.get(block.0 as usize).copied().flatten();
        self.loops.iter().any(|held| !held.is_empty()) && of(from).is_some() && of(from) == of(to)
    }

    /// Whether a loop holds the values of a class.
    pub(crate) fn holds(&self, loop_: usize, class: Value) -> bool {
        self.loops[loop_].contains(&class)
    }

    /// Everything that some loop holds.
    pub(crate) fn all(&self) -> Classes {
        self.loops.iter().flatten().copied().collect()
    }

    /// Blocks of loops that hold something to which something leads from elsewhere, in ascending order.
    pub(crate) fn entered(&self) -> impl Iterator<Item = BlockId> + '_ {
        self.entered.iter().copied().filter(|block| self.loop_of(*block).is_some())
    }

    /// What is read where a loop is entered at this block of it.
    pub(crate) fn read_at(&self, block: BlockId) -> Vec<Value> {
        let Some(loop_) = self.loop_of(block) else { return Vec::new() };
        let needed = self.needed[block.0 as usize].union(&self.parameters[block.0 as usize]);
        needed.filter(|class| self.loops[loop_].contains(class)).copied().collect()
    }

    /// What is written back where a loop is left from this block of it to one outside.
    pub(crate) fn written_between(&self, from: BlockId, to: BlockId) -> Vec<Value> {
        self.needed[to.0 as usize].intersection(&self.changed[from.0 as usize]).copied().collect()
    }
}

/// Finds the loops of a body and what each holds. Where fast paths begin or end nothing is held: they know the frame.
pub(super) fn held(body: &Body, main: &[BlockId], live_in: &[Set], homes: &[Home]) -> Held {
    let block = |id: BlockId| &body.blocks[id.0 as usize];
    if main.iter().any(|id| matches!(block(*id).terminator, Terminator::Enter(_) | Terminator::Leave(_))) {
        return Held::default();
    }
    let framed = |value: Value| match homes[value.0 as usize] {
        Home::Frame(class) => Some(class),
        Home::Local(_) | Home::Constant(_) | Home::OwnId => None,
    };
    let of = loops(body, main);
    let count = of.iter().flatten().max().map_or(0, |last| last + 1);
    let mut loops = vec![Classes::new(); count];
    let mut defined = vec![Classes::new(); body.blocks.len()];
    for id in main {
        let Some(loop_) = of[id.0 as usize] else { continue };
        let mut access = Access::default();
        let terminator = &block(*id).terminator;
        block(*id).instructions.iter().for_each(|instruction| access.op(&instruction.op));
        match terminator {
            Terminator::Branch { condition: value, .. } | Terminator::Switch { value, .. } => {
                access.values.push(*value)
            }
            _ => {}
        }
        // What is only handed out need not be held.
        let inner = edges(terminator).into_iter().filter(|edge| of[edge.to.0 as usize] == Some(loop_));
        access.values.extend(inner.flat_map(|edge| edge.arguments.iter().copied()));
        let results = block(*id).instructions.iter().filter_map(|instruction| instruction.result);
        defined[id.0 as usize] =
            block(*id).parameters.iter().copied().chain(results).filter_map(framed).collect::<Classes>();
        loops[loop_].extend(access.values.into_iter().filter_map(framed));
        loops[loop_].extend(&defined[id.0 as usize]);
    }
    let all: Classes = loops.iter().flatten().copied().collect();
    let mut needed = vec![Classes::new(); body.blocks.len()];
    let mut parameters = needed.clone();
    for id in main {
        let live = live_in[id.0 as usize].iter().filter_map(|unit| match unit {
            Unit::Value(value) => Some(*value),
            Unit::Slot(..) => None,
        });
        let held = |class: &Value| all.contains(class);
        needed[id.0 as usize] = live.filter_map(framed).filter(held).collect();
        parameters[id.0 as usize] = block(*id).parameters.iter().copied().filter_map(framed).filter(held).collect();
    }
    let mut entered = BTreeSet::new();
    let mut changed = defined;
    let mut is_growing = true;
    while is_growing {
        is_growing = false;
        for id in main {
            let from = of[id.0 as usize];
            for to in successors(&block(*id).terminator, Regions::Skip) {
                let Some(loop_) = of[to.0 as usize] else { continue };
                if from != Some(loop_) {
                    entered.insert(to);
                    continue;
                }
                let more: Vec<Value> = changed[id.0 as usize].difference(&changed[to.0 as usize]).copied().collect();
                is_growing |= !more.is_empty();
                changed[to.0 as usize].extend(more);
            }
        }
    }
    if of[0].is_some() {
        entered.insert(BlockId(0));
    }
    Held { loops, of, needed, parameters, changed, entered }
}

/// Per block: the number of the loop it is part of, if it can be reached from itself without waiting.
fn loops(body: &Body, main: &[BlockId]) -> Vec<Option<usize>> {
    let mut next = vec![Vec::new(); body.blocks.len()];
    for id in main {
        let terminator = &body.blocks[id.0 as usize].terminator;
        if !matches!(terminator, Terminator::Wait(_) | Terminator::Yield(_)) {
            next[id.0 as usize] =
                successors(terminator, Regions::Skip).into_iter().map(|block| block.0 as usize).collect();
        }
    }
    let mut of = vec![None; body.blocks.len()];
    let goes_round = |component: &BTreeSet<usize>| {
        component.iter().any(|block| next[*block].iter().any(|to| component.contains(to)))
    };
    for (number, blocks) in components(&next).into_iter().filter(goes_round).enumerate() {
        blocks.into_iter().for_each(|block| of[block] = Some(number));
    }
    of
}
