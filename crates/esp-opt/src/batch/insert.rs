//! The code of a batch in front of its loop: tests, all guards, then what is stored, and back to the tests. Where a
//! test or guard does not hold nothing has been stored, and the loop goes on as it was.

use super::Reason;
use super::linear::{Code, Tables};
use super::rows::Rows;
use super::unroll::{Bound, Unrolled};
use quaject_esp_ir::cfg::edges_mut;
use quaject_esp_ir::ir::{
    BinaryOp, Block, BlockId, Body, Edge, Instruction, Location, Terminator, Type, TypeTable, Value, ValueData,
};
use quaject_esp_ir::visit::op_values;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// What a batch is made of.
pub(super) struct Batch<'a> {
    /// Its turns.
    pub(super) unrolled: Unrolled<'a>,
    /// What the header's parameters are after them.
    pub(super) results: Vec<Value>,
    /// What they have to be before.
    pub(super) at: BTreeMap<usize, i128>,
    /// Tables that it uses.
    pub(super) tables: Vec<Tables>,
}

/// The blocks of a batch in front of a loop's header. The first takes the header's place.
pub(super) struct Blocks {
    blocks: Vec<Block>,
    values: Vec<ValueData>,
    header: BlockId,
}

impl Blocks {
    /// Instructions and ends.
    pub(super) fn size(&self) -> usize {
        self.blocks.iter().map(|block| block.instructions.len() + 1).sum()
    }

    /// Puts them into the body; the block that is the header from now on.
    pub(super) fn insert(self, body: &mut Body) -> usize {
        let first = BlockId(body.blocks.len() as u32);
        for block in &mut body.blocks {
            for edge in edges_mut(&mut block.terminator) {
                if edge.to == self.header {
                    edge.to = first;
                }
            }
        }
        body.values = self.values;
        body.blocks.extend(self.blocks);
        first.0 as usize
    }
}

/// Makes the blocks of a batch.
pub(super) fn blocks(body: &Body, types: &TypeTable, header: usize, batch: Batch<'_>) -> Result<Blocks, Reason> {
    let Batch { mut unrolled, results, at, tables } = batch;
    let location = body.blocks[header].location;
    let mut maker = Maker {
        first: body.blocks.len() as u32,
        blocks: Vec::new(),
        general: Edge { to: BlockId(header as u32), arguments: unrolled.parameters.clone() },
        parameters: unrolled.parameters.clone(),
        location,
    };
    // Little is lost where the first turn goes another way already.
    let (soon, later) = unrolled.guards();
    let mut rows = Rows::default();
    let later = rows.guards(&mut unrolled, body, types, &later);
    rows.stores(&mut unrolled, body, types);
    let mut code = Code { values: &mut unrolled.values, instructions: Vec::new(), location };
    for (number, constant) in &at {
        let parameter = maker.general.arguments[*number];
        let ty = code.values[parameter.0 as usize].ty;
        let constant = code.constant(ty, *constant);
        let is_so = code.binary(TypeTable::BOOL, BinaryOp::Equal, parameter, constant);
        maker.test(&mut code, is_so);
    }
    for tables in &tables {
        maker.test(&mut code, tables.is_linear);
    }
    let mut is_natural = None;
    for ((value, bound), most) in &unrolled.ranges {
        let ty = code.values[value.0 as usize].ty;
        if is_natural != Some(*value) && matches!(types.get(ty), Type::Int(int) if int.is_signed()) {
            let zero = code.constant(ty, 0);
            let is_so = code.binary(TypeTable::BOOL, BinaryOp::GreaterEqual, *value, zero);
            maker.test(&mut code, is_so);
        }
        is_natural = Some(*value);
        let end = match bound {
            Bound::Value(end) => *end,
            Bound::Length(slot) => code.length(*slot),
            Bound::Number(number) if number - most > 0 => code.constant(ty, *number),
            Bound::Number(_) => return Err(Reason::Unbatchable("fewer elements than a batch")),
        };
        let most = code.constant(ty, *most);
        let is_long = code.binary(TypeTable::BOOL, BinaryOp::Greater, end, most);
        maker.test(&mut code, is_long);
        let end = code.binary(ty, BinaryOp::Subtract, end, most);
        let is_so = code.binary(TypeTable::BOOL, BinaryOp::Less, *value, end);
        maker.test(&mut code, is_so);
    }
    for ((value, mask), (most, _)) in &unrolled.windows {
        let ty = code.values[value.0 as usize].ty;
        let (bits, last) = (code.constant(ty, *mask), code.constant(ty, mask - most));
        let first = code.binary(ty, BinaryOp::BitAnd, *value, bits);
        let is_so = code.binary(TypeTable::BOOL, BinaryOp::LessEqual, first, last);
        maker.test(&mut code, is_so);
    }
    let mut computed =
        Computed { instructions: unrolled.computed.into_iter().map(Some).collect(), defined: unrolled.defined };
    for guards in [soon, later] {
        let Some((one, others)) = guards.split_first() else { continue };
        computed.take(&guards, &mut code.instructions);
        let all = others.iter().fold(*one, |all, guard| code.binary(TypeTable::BOOL, BinaryOp::BitAnd, all, *guard));
        maker.test(&mut code, all);
    }
    let mut needed = results.clone();
    for instruction in &unrolled.stored {
        op_values(&instruction.op, &mut |value| needed.push(*value));
    }
    computed.take(&needed, &mut code.instructions);
    code.instructions.extend(unrolled.stored);
    let again = Edge { to: BlockId(maker.first), arguments: results };
    let instructions = std::mem::take(&mut code.instructions);
    maker.push(instructions, Terminator::Jump(again));
    let Maker { blocks, general, .. } = maker;
    Ok(Blocks { blocks, values: unrolled.values, header: general.to })
}

/// Blocks, one behind the other.
struct Maker {
    first: u32,
    blocks: Vec<Block>,
    /// Where it goes on if a test does not hold.
    general: Edge,
    parameters: Vec<Value>,
    location: Location,
}

impl Maker {
    fn push(&mut self, instructions: Vec<Instruction>, terminator: Terminator) {
        let parameters = std::mem::take(&mut self.parameters);
        self.blocks.push(Block { parameters, instructions, terminator, location: self.location });
    }

    /// Ends the block of what has been computed: only if this is so it goes on with the next one.
    fn test(&mut self, code: &mut Code<'_>, condition: Value) {
        let next = BlockId(self.first + self.blocks.len() as u32 + 1);
        let then = Edge { to: next, arguments: Vec::new() };
        let otherwise = self.general.clone();
        let instructions = std::mem::take(&mut code.instructions);
        self.push(instructions, Terminator::Branch { condition, then, otherwise });
    }
}

/// Instructions that are taken when they are needed.
struct Computed {
    instructions: Vec<Option<Instruction>>,
    defined: FxHashMap<Value, usize>,
}

impl Computed {
    /// Moves what these values need, and has not been taken yet, in order.
    fn take(&mut self, values: &[Value], into: &mut Vec<Instruction>) {
        let mut work: Vec<Value> = values.to_vec();
        let mut wanted = vec![false; self.instructions.len()];
        while let Some(value) = work.pop() {
            let Some(index) = self.defined.get(&value).copied() else { continue };
            let Some(instruction) = &self.instructions[index] else { continue };
            if !std::mem::replace(&mut wanted[index], true) {
                op_values(&instruction.op, &mut |value| work.push(*value));
            }
        }
        into.extend(
            self.instructions
                .iter_mut()
                .zip(wanted)
                .filter_map(|(instruction, is)| if is { instruction.take() } else { None }),
        );
    }
}
