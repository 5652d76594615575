//! Encodes entry facts, which always hold of the members' values at the entry of a path, in its code: passes and back
//! ends see the path, not the processes that establish the facts. A number is masked to the bits it can have; a value
//! that is the length of a slot is loaded again, so that it is the same value as the lengths that the path loads.

use crate::facts::Fact;
use quaject_esp_ir::cfg::{Regions, successors};
use quaject_esp_ir::ir::{
    Base, BinaryOp, Block, BlockId, Body, Instruction, Op, Place, SlotId, Type, TypeTable, Value, ValueData,
};
use quaject_esp_ir::visit::{op_slots, op_values_mut, region_slots, terminator_slots, terminator_values_mut};
use rustc_hash::FxHashMap;

/// Prepends the refined definitions to the entry block. Per parameter: `facts` always hold of it, `lengths` is the slot
/// whose length it is.
pub(super) fn refine_entry_facts(
    body: &mut Body,
    types: &TypeTable,
    facts: &[Option<Fact>],
    lengths: &[Option<SlotId>],
) {
    let location = body.blocks[0].location;
    let mut code = Vec::new();
    let mut refined: FxHashMap<Value, Value> = FxHashMap::default();
    for (position, parameter) in body.blocks[0].parameters.clone().into_iter().enumerate() {
        let ty = body.values[parameter.0 as usize].ty;
        let mut define = |op: Op| {
            let name = body.values[parameter.0 as usize].name.clone();
            body.values.push(ValueData { ty, name });
            let result = Value(body.values.len() as u32 - 1);
            code.push(Instruction { result: Some(result), op, location });
            result
        };
        if let Some(slot) = lengths[position] {
            refined.insert(parameter, define(Op::Length(Place { base: Base::Slot(slot), path: Vec::new() })));
        } else if let Some(mask) = facts[position].as_ref().and_then(|fact| mask(fact, &Fact::of_type(types, ty)))
            && matches!(types.get(ty), Type::Int(_))
        {
            let mask = define(Op::Constant(mask));
            refined.insert(parameter, define(Op::Binary(BinaryOp::BitAnd, parameter, mask)));
        }
    }
    let mut replace = |value: &mut Value| *value = *refined.get(value).unwrap_or(value);
    for block in &mut body.blocks {
        block.instructions.iter_mut().for_each(|instruction| op_values_mut(&mut instruction.op, &mut replace));
        terminator_values_mut(&mut block.terminator, &mut replace);
    }
    body.blocks[0].instructions.splice(0..0, code);
}

/// The mask of the bits that a number can have, if they are fewer than those of its type.
fn mask(fact: &Fact, of_type: &Fact) -> Option<i128> {
    let bits = u128::try_from(fact.high).ok().filter(|_| fact.low >= 0)?;
    let mask = (bits + 1).next_power_of_two() - 1;
    i128::try_from(mask).ok().filter(|mask| *mask < of_type.high || of_type.low < 0)
}

/// The slot whose length a value is at the start of block `at`, if any.
pub(super) fn length_of(body: &Body, value: Value, at: BlockId) -> Option<SlotId> {
    let (defined, position, slot) = body.blocks.iter().enumerate().find_map(|(index, block)| {
        block.instructions.iter().enumerate().find_map(|(position, instruction)| match &instruction.op {
            Op::Length(Place { base: Base::Slot(slot), path })
                if path.is_empty() && instruction.result == Some(value) =>
            {
                Some((index, position, *slot))
            }
            _ => None,
        })
    })?;
    if region_slots(body).contains(&slot) {
        return None;
    }
    let code = &body.blocks[defined];
    let rest = Block {
        parameters: Vec::new(),
        instructions: code.instructions[position..].to_vec(),
        terminator: code.terminator.clone(),
        location: code.location,
    };
    // No write to the slot may reach `at` without passing the definition of the length again.
    let next = |block: usize| {
        let targets = successors(&body.blocks[block].terminator, Regions::Include).into_iter().map(|to| to.0 as usize);
        targets.filter(move |to| *to != defined).collect::<Vec<_>>()
    };
    let reachable_from = |from: Vec<usize>| {
        let mut reached = vec![false; body.blocks.len()];
        let mut worklist = from;
        while let Some(block) = worklist.pop() {
            if !std::mem::replace(&mut reached[block], true) {
                worklist.extend(next(block));
            }
        }
        reached
    };
    let after = reachable_from(next(defined));
    let writers = (0..body.blocks.len()).filter(|block| after[*block] && writes(&body.blocks[*block], slot));
    let changed = reachable_from(writers.collect());
    (at.0 as usize != defined && !changed[at.0 as usize] && !writes(&rest, slot)).then_some(slot)
}

/// Whether a block may write a slot.
fn writes(block: &Block, slot: SlotId) -> bool {
    let mut found = false;
    let mut visit = |other: &SlotId| found |= *other == slot;
    for instruction in &block.instructions {
        if !matches!(instruction.op, Op::Load(_) | Op::Length(_) | Op::Tag(_)) {
            op_slots(&instruction.op, &mut visit);
        }
    }
    terminator_slots(&block.terminator, &mut visit);
    found
}
