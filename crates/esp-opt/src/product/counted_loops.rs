//! Counted loops: loops that repeat while a counter is below an invariant bound, and increment it by one in each
//! iteration. The number of iterations is therefore finite. Knows one body, no states.

use quaject_esp_ir::cfg::edges;
use quaject_esp_ir::dominators::Dominators;
use quaject_esp_ir::ir::{BinaryOp, Block, BlockId, Body, Op, Terminator, Value};
use quaject_esp_ir::loops::{Loop, loops};
use std::collections::{BTreeMap, BTreeSet};

/// A loop that repeats while a counter is below a bound, and adds one to the counter in each iteration.
#[derive(Clone)]
pub(super) struct CountedLoop {
    /// The block that tests the counter.
    pub(super) header: BlockId,
    /// All blocks of the loop, with the header.
    pub(super) blocks: BTreeSet<BlockId>,
    /// The counter at the test, a parameter of the header.
    pub(super) counter: Value,
    /// The loop-invariant bound of the counter.
    pub(super) bound: LoopBound,
}

/// The bound of a counter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LoopBound {
    Constant(i128),
    /// A value that is defined before the loop.
    Value(Value),
}

/// The counted loops of a body.
pub(super) fn counted_loops(body: &Body) -> Vec<CountedLoop> {
    let mut ops: BTreeMap<Value, (usize, &Op)> = BTreeMap::new();
    for (index, block) in body.blocks.iter().enumerate() {
        let defined = block.instructions.iter().filter_map(|instruction| Some((instruction.result?, &instruction.op)));
        ops.extend(defined.map(|(value, op)| (value, (index, op))));
    }
    let counted = loops(body, &Dominators::new(body)).into_iter().filter_map(|Loop { header, back, inside }| {
        let Terminator::Branch { condition, then, otherwise } = &body.blocks[header].terminator else { return None };
        let (_, Op::Binary(BinaryOp::Less, counter, bound)) = *ops.get(condition)? else { return None };
        let position = body.blocks[header].parameters.iter().position(|parameter| parameter == counter)?;
        let adds_one = |value: &Value| match ops.get(value) {
            Some((_, Op::Binary(BinaryOp::Add, a, b))) => {
                a == counter && matches!(ops.get(b), Some((_, Op::Constant(1))))
            }
            Some(_) | None => false,
        };
        let counts = |block: &usize| {
            let edges = edges(&body.blocks[*block].terminator);
            let mut back = edges.iter().filter(|edge| edge.to.0 as usize == header).peekable();
            back.peek().is_some() && back.all(|edge| adds_one(&edge.arguments[position]))
        };
        let is_inside = |block: BlockId| inside[block.0 as usize];
        let is_parameter = |(inside, block): (&bool, &Block)| *inside && block.parameters.contains(bound);
        let bound = match ops.get(bound) {
            Some((_, Op::Constant(constant))) => LoopBound::Constant(*constant),
            Some((block, _)) if !inside[*block] => LoopBound::Value(*bound),
            None if !inside.iter().zip(&body.blocks).any(is_parameter) => LoopBound::Value(*bound),
            Some(_) | None => return None,
        };
        let ends = is_inside(then.to) && !is_inside(otherwise.to);
        (ends && back.iter().all(counts)).then(|| CountedLoop {
            header: BlockId(header as u32),
            blocks: (0..inside.len()).filter(|block| inside[*block]).map(|block| BlockId(block as u32)).collect(),
            counter: *counter,
            bound,
        })
    });
    counted.collect()
}
