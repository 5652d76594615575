//! Linear recurrences through a table: `s' = T[(s ^ x) & mask] ^ (s >> bits)`, as table-driven checksums and feedback
//! shift registers of any width compute. Each step depends on the load of the previous one. If the table is linear over
//! GF(2), T[a ^ b] = T[a] ^ T[b], then so is the step without x, A(s) = T[s & mask] ^ (s >> bits), and n steps are
//! A^n(s) ^ A^(n-1)(T[x1]) ^ ... ^ T[xn]: independent lookups in tables of T, A(T), A(A(T)), ... ("slicing", Kounavis
//! and Berry, "Novel Table Lookup-Based Algorithms for High-Performance CRC Generation", for CRCs). The generated code
//! tests the linearity of the table's contents at run time; no polynomial is known here.

use super::unrolled::Unrolled;
use crate::places::slot_element;
use quaject_esp_ir::cfg::{Regions, successors};
use quaject_esp_ir::dominators::Dominators;
use quaject_esp_ir::ir::{
    Base, BinaryOp, Block, BlockId, Body, Edge, Instruction, IntType, Location, Op, Place, Projection, Slot, SlotId,
    Terminator, Type, TypeId, TypeTable, Value, ValueData,
};
use quaject_esp_ir::visit::{op_slots, op_values, terminator_slots};
use rustc_hash::FxHashMap;

/// The maximal number of steps that are combined, and of tables.
const MAX_STEPS: usize = 8;

/// Consecutive steps below which nothing is gained.
const MIN_STEPS: usize = 4;

/// Elements of the largest table, so that several fit into a cache.
const MAX_TABLE_LENGTH: u32 = 256;

/// A table, and how steps use it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Table {
    /// Its slot.
    pub(super) slot: SlotId,
    /// The bits of an index, by which the state is shifted.
    bits: u32,
    /// The type of the state, and of the table's elements.
    ty: TypeId,
    /// Bits of the state.
    width: u32,
}

/// The tables of an unrolled version that combines several steps.
pub(super) struct Tables {
    /// The original table.
    pub(super) table: Table,
    /// The original table and those derived from it; the n-th is n more steps of it.
    pub(super) slots: Vec<SlotId>,
    /// Whether the original is linear: a `bool` that is available at every unrolled version.
    pub(super) is_linear: Value,
}

/// One step, matched from its result: the state before it, and its input.
struct RecurrenceStep {
    table: Table,
    state: Value,
    input: Value,
    /// The only values for which the state may be used.
    users: [Value; 2],
}

/// The steps by which a value derives from another one: their table, and the inputs in order.
fn recurrence(
    unrolled: &Unrolled<'_>,
    types: &TypeTable,
    body: &Body,
    last: Value,
    first: Value,
) -> Option<Recurrence> {
    let mut steps = Vec::new();
    let mut value = last;
    while value != first {
        let step = match_step(unrolled, types, body, value)?;
        if steps.last().is_some_and(|after: &RecurrenceStep| after.table != step.table) {
            return None;
        }
        value = step.state;
        steps.push(step);
    }
    steps.reverse();
    let uses = uses(unrolled);
    let is_private = |step: &RecurrenceStep| {
        let used = uses.get(&step.state).map_or(&[][..], Vec::as_slice);
        used.iter().all(|user| user.is_some_and(|user| step.users.contains(&user)))
    };
    if steps.len() < MIN_STEPS || uses.contains_key(&last) || !steps.iter().skip(1).all(is_private) {
        return None;
    }
    Some(Recurrence { table: steps[0].table, inputs: steps.iter().map(|step| step.input).collect() })
}

/// Consecutive steps.
pub(super) struct Recurrence {
    pub(super) table: Table,
    inputs: Vec<Value>,
}

/// The users of each value, by their result; none for stores and guards.
fn uses(unrolled: &Unrolled<'_>) -> FxHashMap<Value, Vec<Option<Value>>> {
    let mut uses: FxHashMap<Value, Vec<Option<Value>>> = FxHashMap::default();
    for instruction in unrolled.computed.iter().chain(&unrolled.stored) {
        let mut record = |value: &Value| uses.entry(*value).or_default().push(instruction.result);
        op_values(&instruction.op, &mut record);
    }
    for guard in &unrolled.guards {
        uses.entry(*guard).or_default().push(None);
    }
    uses
}

fn match_step(unrolled: &Unrolled<'_>, types: &TypeTable, body: &Body, value: Value) -> Option<RecurrenceStep> {
    let ty = unrolled.ty(value);
    let Type::Int(int) = types.get(ty) else { return None };
    let Op::Binary(BinaryOp::BitXor, a, b) = *unrolled.op(value)? else { return None };
    let shifted = |value: Value| match unrolled.op(value) {
        Some(Op::Binary(BinaryOp::ShiftRight, state, count)) => Some((*state, unrolled.as_constant(*count)?)),
        _ => None,
    };
    let (looked_up, shift, (state, count)) = match (shifted(a), shifted(b)) {
        (None, Some(found)) => (a, b, found),
        (Some(found), None) => (b, a, found),
        _ => return None,
    };
    let bits = u32::try_from(count).ok().filter(|bits| (1..int.bits()).contains(bits))?;
    let Op::Load(place) = unrolled.op(looked_up)? else { return None };
    let (slot, index) = slot_element(place)?;
    let &Type::Array { length, element } = types.get(body.slots[slot.0 as usize].ty) else { return None };
    if element != ty || int.is_signed() || int.bits() % bits != 0 || length > MAX_TABLE_LENGTH || length != 1 << bits {
        return None;
    }
    let mixed = match unrolled.op(index)? {
        Op::Binary(BinaryOp::BitAnd, mixed, mask) if unrolled.as_constant(*mask) == Some(i128::from(length) - 1) => {
            *mixed
        }
        Op::Convert(mixed) if matches!(types.get(unrolled.ty(index)), Type::Int(to) if to.bits() == bits) => *mixed,
        _ => return None,
    };
    let Op::Binary(BinaryOp::BitXor, a, b) = *unrolled.op(mixed)? else { return None };
    let input = match (a == state, b == state) {
        (true, false) => b,
        (false, true) => a,
        _ => return None,
    };
    let table = Table { slot, bits, ty, width: int.bits() };
    Some(RecurrenceStep { table, state, input, users: [mixed, shift] })
}

/// The recurrences of the path's results, by number of the parameter.
pub(super) fn recurrences(
    unrolled: &Unrolled<'_>,
    types: &TypeTable,
    body: &Body,
    results: &[Value],
) -> Vec<(usize, Recurrence)> {
    let pairs = unrolled.parameters.iter().zip(results).enumerate();
    pairs
        .filter_map(|(number, (first, last))| Some((number, recurrence(unrolled, types, body, *last, *first)?)))
        .collect()
}

/// Computes a recurrence by table lookups; returns the last state.
pub(super) fn emit_lookups(
    unrolled: &mut Unrolled<'_>,
    recurrence: &Recurrence,
    tables: &Tables,
    first: Value,
) -> Value {
    let Table { bits, ty, width, .. } = recurrence.table;
    let mask = (1i128 << bits) - 1;
    let location = Location::default();
    let mut state = first;
    for inputs in recurrence.inputs.chunks(tables.slots.len()) {
        let mut terms = Vec::new();
        let binary = |unrolled: &mut Unrolled<'_>, op, a, b| unrolled.compute(ty, Op::Binary(op, a, b), location);
        let shifted = |unrolled: &mut Unrolled<'_>, by: u32| match by {
            0 => state,
            _ => {
                let by = unrolled.constant(ty, i128::from(by));
                binary(unrolled, BinaryOp::ShiftRight, state, by)
            }
        };
        for (number, input) in inputs.iter().enumerate() {
            let used = bits * number as u32;
            let mixed = match used < width {
                true => {
                    let part = shifted(unrolled, used);
                    binary(unrolled, BinaryOp::BitXor, part, *input)
                }
                false => *input,
            };
            let mask = unrolled.constant(ty, mask);
            let index = binary(unrolled, BinaryOp::BitAnd, mixed, mask);
            let base = Base::Slot(tables.slots[inputs.len() - 1 - number]);
            let place = Place { base, path: vec![Projection::Inside(index)] };
            terms.push(unrolled.compute(ty, Op::Load(place), location));
        }
        let used = bits * inputs.len() as u32;
        if used < width {
            terms.push(shifted(unrolled, used));
        }
        // As a tree, for a short dependency chain.
        while terms.len() > 1 {
            let pairs = terms.chunks(2).map(|pair| match *pair {
                [a, b] => binary(unrolled, BinaryOp::BitXor, a, b),
                _ => pair[0],
            });
            terms = pairs.collect();
        }
        state = terms[0];
    }
    state
}

/// The number of tables of a recurrence.
pub(super) fn table_count(recurrence: &Recurrence) -> usize {
    recurrence.inputs.len().min(MAX_STEPS)
}

/// Where a table has its final contents: the first block that dominates the loop, runs once, and from which no write of
/// the table is reachable.
pub(super) fn final_definition(body: &Body, dominators: &Dominators, table: SlotId, header: usize) -> Option<usize> {
    let count = body.blocks.len();
    let writes: Vec<bool> = body.blocks.iter().map(|block| may_write(block, table)).collect();
    let dominators_of_header =
        (1..count).filter(|block| dominators.is_reachable(*block) && dominators.dominates(*block, header));
    let mut dominators_of_header: Vec<usize> = dominators_of_header.collect();
    dominators_of_header.sort_by_key(|block| dominator_count(dominators, *block, count));
    dominators_of_header.into_iter().find(|block| {
        let mut reached = vec![false; count];
        let mut worklist = vec![*block];
        let mut is_repeated = false;
        while let Some(at) = worklist.pop() {
            for next in successors(&body.blocks[at].terminator, Regions::Include) {
                is_repeated |= next.0 as usize == *block;
                if !std::mem::replace(&mut reached[next.0 as usize], true) {
                    worklist.push(next.0 as usize);
                }
            }
        }
        reached[*block] = true;
        !is_repeated && !reached.iter().zip(&writes).any(|(reached, writes)| *reached && *writes)
    })
}

fn dominator_count(dominators: &Dominators, block: usize, count: usize) -> usize {
    (0..count).filter(|other| dominators.is_reachable(*other) && dominators.dominates(*other, block)).count()
}

/// Whether a block does more with a slot than load its elements.
fn may_write(block: &Block, slot: SlotId) -> bool {
    let mut is_used = false;
    for instruction in &block.instructions {
        match &instruction.op {
            Op::Load(place) if slot_element(place).is_some() => {}
            op => op_slots(op, &mut |used| is_used |= *used == slot),
        }
    }
    terminator_slots(&block.terminator, &mut |used| is_used |= *used == slot);
    is_used
}

/// Inserts code in front of a block that derives the tables and tests the linearity of the original.
pub(super) fn derive_tables(body: &mut Body, table: Table, count: usize, at: usize) -> Tables {
    let slot_type = body.slots[table.slot.0 as usize].ty;
    let mut slots = vec![table.slot];
    for _ in 1..count {
        slots.push(SlotId(body.slots.len() as u32));
        body.slots.push(Slot { ty: slot_type, name: None });
    }
    let location = body.blocks[at].location;
    let next = BlockId(body.blocks.len() as u32);
    let (header, inside) = (BlockId(next.0 + 1), BlockId(next.0 + 2));
    let mut code = CodeBuilder { values: &mut body.values, instructions: Vec::new(), location };
    let ty = table.ty;
    let zero = code.constant(ty, 0);
    let linear_so_far = code.constant(TypeTable::BOOL, 1);
    let start = std::mem::take(&mut code.instructions);
    let number = code.value(ty);
    let is_linear = code.value(TypeTable::BOOL);
    let length = code.constant(ty, 1 << table.bits);
    let is_less = code.binary(TypeTable::BOOL, BinaryOp::Less, number, length);
    let test = std::mem::take(&mut code.instructions);
    // T[n] is T of n without its lowest bit and T of that bit, for every n, so that T is linear; T[0] = T[0] ^ T[0].
    let one = code.constant(ty, 1);
    let before = code.binary(ty, BinaryOp::Subtract, number, one);
    let rest = code.binary(ty, BinaryOp::BitAnd, number, before);
    let lowest = code.binary(ty, BinaryOp::BitXor, number, rest);
    let mut entry = code.load(ty, table.slot, number);
    let (of_rest, of_lowest) = (code.load(ty, table.slot, rest), code.load(ty, table.slot, lowest));
    let sum = code.binary(ty, BinaryOp::BitXor, of_rest, of_lowest);
    let same = code.binary(TypeTable::BOOL, BinaryOp::Equal, entry, sum);
    let still_linear = code.binary(TypeTable::BOOL, BinaryOp::BitAnd, is_linear, same);
    let mask = code.constant(ty, (1 << table.bits) - 1);
    let bits = code.constant(ty, i128::from(table.bits));
    for slot in &slots[1..] {
        let index = code.binary(ty, BinaryOp::BitAnd, entry, mask);
        let looked_up = code.load(ty, table.slot, index);
        let shifted = code.binary(ty, BinaryOp::ShiftRight, entry, bits);
        entry = code.binary(ty, BinaryOp::BitXor, looked_up, shifted);
        let place = Place { base: Base::Slot(*slot), path: vec![Projection::Inside(number)] };
        code.instructions.push(Instruction { result: None, op: Op::Store(place, entry), location });
    }
    let one_more = code.binary(ty, BinaryOp::Add, number, one);
    let instructions = std::mem::take(&mut code.instructions);
    let edge = |to: BlockId, arguments: Vec<Value>| Edge { to, arguments };
    let block = &mut body.blocks[at];
    let moved = Block {
        parameters: Vec::new(),
        instructions: std::mem::replace(&mut block.instructions, start),
        terminator: std::mem::replace(&mut block.terminator, Terminator::Jump(edge(header, vec![zero, linear_so_far]))),
        location,
    };
    body.blocks.push(moved);
    let (then, otherwise) = (edge(inside, Vec::new()), edge(next, Vec::new()));
    body.blocks.push(Block {
        parameters: vec![number, is_linear],
        instructions: test,
        terminator: Terminator::Branch { condition: is_less, then, otherwise },
        location,
    });
    let terminator = Terminator::Jump(edge(header, vec![one_more, still_linear]));
    body.blocks.push(Block { parameters: Vec::new(), instructions, terminator, location });
    Tables { table, slots, is_linear }
}

/// Whether the indices of the table, and its length, are in the range of the state's type.
pub(super) fn has_index_type(types: &TypeTable, table: &Table) -> bool {
    matches!(types.get(table.ty), Type::Int(int) if IntType::max(*int) >= 1 << table.bits)
}

/// A sequence of instructions under construction.
pub(super) struct CodeBuilder<'a> {
    pub(super) values: &'a mut Vec<ValueData>,
    pub(super) instructions: Vec<Instruction>,
    pub(super) location: Location,
}

impl CodeBuilder<'_> {
    pub(super) fn value(&mut self, ty: TypeId) -> Value {
        self.values.push(ValueData { ty, name: None });
        Value(self.values.len() as u32 - 1)
    }

    fn op(&mut self, ty: TypeId, op: Op) -> Value {
        let result = self.value(ty);
        self.instructions.push(Instruction { result: Some(result), op, location: self.location });
        result
    }

    pub(super) fn constant(&mut self, ty: TypeId, constant: i128) -> Value {
        self.op(ty, Op::Constant(constant))
    }

    pub(super) fn binary(&mut self, ty: TypeId, op: BinaryOp, a: Value, b: Value) -> Value {
        self.op(ty, Op::Binary(op, a, b))
    }

    pub(super) fn length(&mut self, slot: SlotId) -> Value {
        self.op(TypeTable::I32, Op::Length(Place { base: Base::Slot(slot), path: Vec::new() }))
    }

    fn load(&mut self, ty: TypeId, slot: SlotId, index: Value) -> Value {
        self.op(ty, Op::Load(Place { base: Base::Slot(slot), path: vec![Projection::Inside(index)] }))
    }
}
