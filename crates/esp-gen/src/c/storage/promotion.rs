//! Register promotion of the frame: values of the frame that a loop without waits uses are locals while it runs. They
//! are loaded where the loop is entered. Those that it has changed and that are live behind it are stored where it is
//! left. C compilers do not promote them, because generated code also writes memory as bytes, which may alias any
//! object. Knows the flow IR and liveness; knows no C.

use super::ValueStorage;
use super::liveness::{LiveSet, LiveUnit};
use quaject_esp_ir::access::Access;
use quaject_esp_ir::cfg::{Regions, edges, successors};
use quaject_esp_ir::graph::components;
use quaject_esp_ir::ir::*;
use std::collections::BTreeSet;

/// Values of the frame, each named after its class.
type ValueSet = BTreeSet<Value>;

/// The loops of a body that promote values, and where they load and store them.
#[derive(Default)]
pub(crate) struct Promotion {
    loops: Vec<ValueSet>,
    /// Per block: the loop it is part of.
    of: Vec<Option<usize>>,
    /// Per block: promoted values that are live at its beginning, without its parameters; its promoted parameters.
    live: Vec<ValueSet>,
    parameters: Vec<ValueSet>,
    /// Per block: promoted values that may differ from the frame at its end.
    changed: Vec<ValueSet>,
    /// Blocks of loops with a predecessor outside of their loop.
    entries: BTreeSet<BlockId>,
}

impl Promotion {
    /// The loop that a block is part of, if it promotes anything.
    pub(crate) fn loop_of(&self, block: BlockId) -> Option<usize> {
        self.of.get(block.0 as usize).copied().flatten().filter(|number| !self.loops[*number].is_empty())
    }

    /// Whether an edge between these blocks stays inside a loop; false if no loop of the body promotes anything.
    pub(crate) fn stays_inside(&self, from: BlockId, to: BlockId) -> bool {
        let of = |block: BlockId| self.of.get(block.0 as usize).copied().flatten();
        self.loops.iter().any(|promoted| !promoted.is_empty()) && of(from).is_some() && of(from) == of(to)
    }

    /// Whether a loop promotes the values of a class.
    pub(crate) fn promotes(&self, number: usize, class: Value) -> bool {
        self.loops[number].contains(&class)
    }

    /// All promoted values.
    pub(crate) fn all(&self) -> ValueSet {
        self.loops.iter().flatten().copied().collect()
    }

    /// Blocks at which promoting loops are entered, in ascending order.
    pub(crate) fn entries(&self) -> impl Iterator<Item = BlockId> + '_ {
        self.entries.iter().copied().filter(|block| self.loop_of(*block).is_some())
    }

    /// What is loaded from the frame where a loop is entered at this block.
    pub(crate) fn loads_at(&self, block: BlockId) -> Vec<Value> {
        let Some(number) = self.loop_of(block) else { return Vec::new() };
        let live = self.live[block.0 as usize].union(&self.parameters[block.0 as usize]);
        live.filter(|class| self.loops[number].contains(class)).copied().collect()
    }

    /// What is stored to the frame where a loop is left along this edge.
    pub(crate) fn stores_between(&self, from: BlockId, to: BlockId) -> Vec<Value> {
        self.live[to.0 as usize].intersection(&self.changed[from.0 as usize]).copied().collect()
    }
}

/// Finds the loops of a body and what each promotes. A body that enters or leaves fast paths promotes nothing, as paths
/// access the frame.
pub(super) fn promote(body: &Body, main: &[BlockId], live_in: &[LiveSet], values: &[ValueStorage]) -> Promotion {
    let block = |id: BlockId| &body.blocks[id.0 as usize];
    if main.iter().any(|id| matches!(block(*id).terminator, Terminator::Enter(_) | Terminator::Leave(_))) {
        return Promotion::default();
    }
    let framed = |value: Value| match values[value.0 as usize] {
        ValueStorage::Frame(class) => Some(class),
        ValueStorage::Local(_) | ValueStorage::Constant(_) | ValueStorage::OwnId => None,
    };
    let of = loops(body, main);
    let count = of.iter().flatten().max().map_or(0, |last| last + 1);
    let mut loops = vec![ValueSet::new(); count];
    let mut defined = vec![ValueSet::new(); body.blocks.len()];
    for id in main {
        let Some(number) = of[id.0 as usize] else { continue };
        let mut access = Access::default();
        let terminator = &block(*id).terminator;
        block(*id).instructions.iter().for_each(|instruction| access.op(&instruction.op));
        match terminator {
            Terminator::Branch { condition: value, .. } | Terminator::Switch { value, .. } => {
                access.values.push(*value)
            }
            _ => {}
        }
        // A value that is only an argument of an edge out of the loop is not promoted.
        let inner = edges(terminator).into_iter().filter(|edge| of[edge.to.0 as usize] == Some(number));
        access.values.extend(inner.flat_map(|edge| edge.arguments.iter().copied()));
        let results = block(*id).instructions.iter().filter_map(|instruction| instruction.result);
        defined[id.0 as usize] =
            block(*id).parameters.iter().copied().chain(results).filter_map(framed).collect::<ValueSet>();
        loops[number].extend(access.values.into_iter().filter_map(framed));
        loops[number].extend(&defined[id.0 as usize]);
    }
    let all: ValueSet = loops.iter().flatten().copied().collect();
    let mut live = vec![ValueSet::new(); body.blocks.len()];
    let mut parameters = live.clone();
    for id in main {
        let live_here = live_in[id.0 as usize].iter().filter_map(|unit| match unit {
            LiveUnit::Value(value) => Some(*value),
            LiveUnit::Slot(..) => None,
        });
        let promoted = |class: &Value| all.contains(class);
        live[id.0 as usize] = live_here.filter_map(framed).filter(promoted).collect();
        parameters[id.0 as usize] = block(*id).parameters.iter().copied().filter_map(framed).filter(promoted).collect();
    }
    let mut entries = BTreeSet::new();
    let mut changed = defined;
    let mut is_growing = true;
    while is_growing {
        is_growing = false;
        for id in main {
            let from = of[id.0 as usize];
            for to in successors(&block(*id).terminator, Regions::Skip) {
                let Some(number) = of[to.0 as usize] else { continue };
                if from != Some(number) {
                    entries.insert(to);
                    continue;
                }
                let more: Vec<Value> = changed[id.0 as usize].difference(&changed[to.0 as usize]).copied().collect();
                is_growing |= !more.is_empty();
                changed[to.0 as usize].extend(more);
            }
        }
    }
    if of[0].is_some() {
        entries.insert(BlockId(0));
    }
    Promotion { loops, of, live, parameters, changed, entries }
}

/// Per block: the number of its loop, a strongly connected component of the blocks without waits and yields.
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
    let is_cyclic = |component: &BTreeSet<usize>| {
        component.iter().any(|block| next[*block].iter().any(|to| component.contains(to)))
    };
    for (number, blocks) in components(&next).into_iter().filter(is_cyclic).enumerate() {
        blocks.into_iter().for_each(|block| of[block] = Some(number));
    }
    of
}
