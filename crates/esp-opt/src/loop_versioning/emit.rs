//! Emits an unrolled version in front of its loop: range tests, all guards, then the stores, and a jump back to the
//! tests. If a test or guard fails nothing has been stored, and the original loop continues.

use super::UnrollRefusal;
use super::recurrences::{CodeBuilder, Tables};
use super::superwords::Superwords;
use super::unrolled::{RangeBound, Unrolled};
use quaject_esp_ir::cfg::edges_mut;
use quaject_esp_ir::ir::{
    BinaryOp, Block, BlockId, Body, Edge, Instruction, Location, Terminator, Type, TypeTable, Value, ValueData,
};
use quaject_esp_ir::visit::op_values;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// The parts of an unrolled version.
pub(super) struct UnrolledVersion<'a> {
    /// Its iterations.
    pub(super) unrolled: Unrolled<'a>,
    /// The header's parameters after them.
    pub(super) results: Vec<Value>,
    /// The constants that parameters have to equal before.
    pub(super) entry_constants: BTreeMap<usize, i128>,
    /// The tables that it uses.
    pub(super) tables: Vec<Tables>,
}

/// The blocks of an unrolled version. The first replaces the header as the target of its predecessors.
pub(super) struct VersionBlocks {
    blocks: Vec<Block>,
    values: Vec<ValueData>,
    header: BlockId,
}

impl VersionBlocks {
    /// Instructions and terminators.
    pub(super) fn size(&self) -> usize {
        self.blocks.iter().map(|block| block.instructions.len() + 1).sum()
    }

    /// Inserts them into the body; returns the new header.
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

/// Builds the blocks of an unrolled version.
pub(super) fn version_blocks(
    body: &Body,
    types: &TypeTable,
    header: usize,
    version: UnrolledVersion<'_>,
) -> Result<VersionBlocks, UnrollRefusal> {
    let UnrolledVersion { mut unrolled, results, entry_constants, tables } = version;
    let location = body.blocks[header].location;
    let mut chain = BlockChain {
        first: body.blocks.len() as u32,
        blocks: Vec::new(),
        general: Edge { to: BlockId(header as u32), arguments: unrolled.parameters.clone() },
        parameters: unrolled.parameters.clone(),
        location,
    };
    // Guards on the initial parameters are cheap and fail early.
    let (on_parameters, on_elements) = unrolled.guards();
    let mut superwords = Superwords::default();
    let on_elements = superwords.combine_guards(&mut unrolled, body, types, &on_elements);
    superwords.combine_stores(&mut unrolled, body, types);
    let mut code = CodeBuilder { values: &mut unrolled.values, instructions: Vec::new(), location };
    for (number, constant) in &entry_constants {
        let parameter = chain.general.arguments[*number];
        let ty = code.values[parameter.0 as usize].ty;
        let constant = code.constant(ty, *constant);
        let holds = code.binary(TypeTable::BOOL, BinaryOp::Equal, parameter, constant);
        chain.test(&mut code, holds);
    }
    for tables in &tables {
        chain.test(&mut code, tables.is_linear);
    }
    emit_range_tests(&mut chain, &mut code, types, &unrolled.ranges)?;
    for ((value, mask), (max_offset, _)) in &unrolled.windows {
        let ty = code.values[value.0 as usize].ty;
        let (bits, last) = (code.constant(ty, *mask), code.constant(ty, mask - max_offset));
        let first = code.binary(ty, BinaryOp::BitAnd, *value, bits);
        let holds = code.binary(TypeTable::BOOL, BinaryOp::LessEqual, first, last);
        chain.test(&mut code, holds);
    }
    let mut computed =
        DemandedCode { instructions: unrolled.computed.into_iter().map(Some).collect(), defined: unrolled.defined };
    for guards in [on_parameters, on_elements] {
        let Some((first, others)) = guards.split_first() else { continue };
        computed.emit_for(&guards, &mut code.instructions);
        let all = others.iter().fold(*first, |all, guard| code.binary(TypeTable::BOOL, BinaryOp::BitAnd, all, *guard));
        chain.test(&mut code, all);
    }
    let mut needed = results.clone();
    for instruction in &unrolled.stored {
        op_values(&instruction.op, &mut |value| needed.push(*value));
    }
    computed.emit_for(&needed, &mut code.instructions);
    code.instructions.extend(unrolled.stored);
    let again = Edge { to: BlockId(chain.first), arguments: results };
    let instructions = std::mem::take(&mut code.instructions);
    chain.push(instructions, Terminator::Jump(again));
    let BlockChain { blocks, general, .. } = chain;
    Ok(VersionBlocks { blocks, values: unrolled.values, header: general.to })
}

/// Emits the tests that each number is at least 0 and below its bounds, at its maximal offset.
fn emit_range_tests(
    chain: &mut BlockChain,
    code: &mut CodeBuilder<'_>,
    types: &TypeTable,
    ranges: &BTreeMap<(Value, RangeBound), i128>,
) -> Result<(), UnrollRefusal> {
    let mut non_negative = None;
    for ((value, bound), max_offset) in ranges {
        let ty = code.values[value.0 as usize].ty;
        if non_negative != Some(*value) && matches!(types.get(ty), Type::Int(int) if int.is_signed()) {
            let zero = code.constant(ty, 0);
            let holds = code.binary(TypeTable::BOOL, BinaryOp::GreaterEqual, *value, zero);
            chain.test(code, holds);
        }
        non_negative = Some(*value);
        let end = match bound {
            RangeBound::Value(end) => *end,
            RangeBound::Length(slot) => code.length(*slot),
            RangeBound::Number(number) if number - max_offset > 0 => code.constant(ty, *number),
            RangeBound::Number(_) => return Err(UnrollRefusal::Unsupported("fewer elements than an unrolled version")),
        };
        let max_offset = code.constant(ty, *max_offset);
        let is_long_enough = code.binary(TypeTable::BOOL, BinaryOp::Greater, end, max_offset);
        chain.test(code, is_long_enough);
        let end = code.binary(ty, BinaryOp::Subtract, end, max_offset);
        let holds = code.binary(TypeTable::BOOL, BinaryOp::Less, *value, end);
        chain.test(code, holds);
    }
    Ok(())
}

/// Consecutive blocks.
struct BlockChain {
    first: u32,
    blocks: Vec<Block>,
    /// The edge to the original loop, taken if a test fails.
    general: Edge,
    parameters: Vec<Value>,
    location: Location,
}

impl BlockChain {
    fn push(&mut self, instructions: Vec<Instruction>, terminator: Terminator) {
        let parameters = std::mem::take(&mut self.parameters);
        self.blocks.push(Block { parameters, instructions, terminator, location: self.location });
    }

    /// Ends the current block with a test; the next block runs only if it holds.
    fn test(&mut self, code: &mut CodeBuilder<'_>, condition: Value) {
        let next = BlockId(self.first + self.blocks.len() as u32 + 1);
        let then = Edge { to: next, arguments: Vec::new() };
        let otherwise = self.general.clone();
        let instructions = std::mem::take(&mut code.instructions);
        self.push(instructions, Terminator::Branch { condition, then, otherwise });
    }
}

/// Pure instructions that are emitted on demand.
struct DemandedCode {
    instructions: Vec<Option<Instruction>>,
    defined: FxHashMap<Value, usize>,
}

impl DemandedCode {
    /// Emits what these values need and has not been emitted yet, in order.
    fn emit_for(&mut self, values: &[Value], into: &mut Vec<Instruction>) {
        let mut worklist: Vec<Value> = values.to_vec();
        let mut wanted = vec![false; self.instructions.len()];
        while let Some(value) = worklist.pop() {
            let Some(index) = self.defined.get(&value).copied() else { continue };
            let Some(instruction) = &self.instructions[index] else { continue };
            if !std::mem::replace(&mut wanted[index], true) {
                op_values(&instruction.op, &mut |value| worklist.push(*value));
            }
        }
        into.extend(
            self.instructions
                .iter_mut()
                .zip(wanted)
                .filter_map(|(instruction, is_wanted)| if is_wanted { instruction.take() } else { None }),
        );
    }
}
