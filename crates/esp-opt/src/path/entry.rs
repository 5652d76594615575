//! What is always so of members' values where a path begins, as its code says it: passes and compilers look at one path,
//! not at the processes that make it so. Numbers are cut to the bits they have; lengths are asked for again, which are
//! then the same as those that the path asks for.

use crate::facts::Fact;
use quaject_esp_ir::cfg::{Regions, successors};
use quaject_esp_ir::ir::{
    Base, BinaryOp, Block, BlockId, Body, Instruction, Op, Place, SlotId, Type, TypeTable, Value, ValueData,
};
use quaject_esp_ir::visit::{op_slots, op_values_mut, region_slots, terminator_slots, terminator_values_mut};
use rustc_hash::FxHashMap;

/// Says it at the beginning of the entry block; of its parameters are known what is `given`, and of which slots some are
/// the lengths.
pub(super) fn sharpen(body: &mut Body, types: &TypeTable, given: &[Option<Fact>], lengths: &[Option<SlotId>]) {
    let location = body.blocks[0].location;
    let mut code = Vec::new();
    let mut sharper: FxHashMap<Value, Value> = FxHashMap::default();
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
            sharper.insert(parameter, define(Op::Length(Place { base: Base::Slot(slot), path: Vec::new() })));
        } else if let Some(mask) = given[position].as_ref().and_then(|fact| mask(fact, &Fact::of_type(types, ty)))
            && matches!(types.get(ty), Type::Int(_))
        {
            let mask = define(Op::Constant(mask));
            sharper.insert(parameter, define(Op::Binary(BinaryOp::BitAnd, parameter, mask)));
        }
    }
    let mut replace = |value: &mut Value| *value = *sharper.get(value).unwrap_or(value);
    for block in &mut body.blocks {
        block.instructions.iter_mut().for_each(|instruction| op_values_mut(&mut instruction.op, &mut replace));
        terminator_values_mut(&mut block.terminator, &mut replace);
    }
    body.blocks[0].instructions.splice(0..0, code);
}

/// The bits that a number has, if they are fewer than those of its type.
fn mask(fact: &Fact, whole: &Fact) -> Option<i128> {
    let bits = u128::try_from(fact.high).ok().filter(|_| fact.low >= 0)?;
    let mask = (bits + 1).next_power_of_two() - 1;
    i128::try_from(mask).ok().filter(|mask| *mask < whole.high || whole.low < 0)
}

/// The slot of which a value is the length wherever a block begins, if it is one of some slot.
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
    // Whoever writes the slot afterwards must not come there without asking for the length again.
    let next = |block: usize| {
        let targets = successors(&body.blocks[block].terminator, Regions::Include).into_iter().map(|to| to.0 as usize);
        targets.filter(move |to| *to != defined).collect::<Vec<_>>()
    };
    let reached = |from: Vec<usize>| {
        let mut seen = vec![false; body.blocks.len()];
        let mut work = from;
        while let Some(block) = work.pop() {
            if !std::mem::replace(&mut seen[block], true) {
                work.extend(next(block));
            }
        }
        seen
    };
    let behind = reached(next(defined));
    let writers = (0..body.blocks.len()).filter(|block| behind[*block] && writes(&body.blocks[*block], slot));
    let changed = reached(writers.collect());
    (at.0 as usize != defined && !changed[at.0 as usize] && !writes(&rest, slot)).then_some(slot)
}

/// Whether a block does more with a slot than look into it.
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
