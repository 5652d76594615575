//! Turns of a cycle, one after the other as straight code, with what is known of its values: constants, and values that
//! are another one plus a constant. Guards, and what is computed, come out apart from what is stored, so that all
//! guards can be asked before anything is stored. Emits no blocks.

use super::Reason;
use super::cycle::{Cycle, Way, edge};
use super::fill::Filled;
use crate::facts::{self, Fact};
use quaject_esp_ir::ir::{
    Base, BinaryOp, Body, ByteOrder, Instruction, Location, Op, Place, Projection, SlotId, Terminator, Type, TypeId,
    TypeTable, Value, ValueData,
};
use quaject_esp_ir::visit::op_values;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// Bytes of a word.
pub(super) const WORD: i128 = 8;
/// What a number must stay below.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Bound {
    /// A value that was there before.
    Value(Value),
    /// The length of `bytes`.
    Length(SlotId),
    /// A number.
    Number(i128),
}

/// Straight code of several turns.
pub(super) struct Unrolled<'a> {
    pub(super) body: &'a Body,
    pub(super) types: &'a TypeTable,
    /// The body's values, and after them those of the straight code.
    pub(super) values: Vec<ValueData>,
    pub(super) facts: FxHashMap<Value, Fact>,
    known: &'a [Option<Fact>],
    /// What stands for a value of the body at the present place.
    pub(super) now: FxHashMap<Value, Value>,
    /// What stands for the header's parameters before the first turn.
    pub(super) parameters: Vec<Value>,
    /// Values that are another one plus a constant.
    offsets: FxHashMap<Value, (Value, i128)>,
    sums: FxHashMap<(Value, i128), Value>,
    constants: FxHashMap<(TypeId, i128), Value>,
    /// Values of 64 bits for others.
    wide: FxHashMap<Value, Value>,
    /// By the index of a value's instruction.
    pub(super) defined: FxHashMap<Value, usize>,
    /// What is computed, in order; it faults nowhere if the tests hold.
    pub(super) computed: Vec<Instruction>,
    /// What is stored, in order.
    pub(super) stored: Vec<Instruction>,
    /// Conditions that all have to hold.
    pub(super) guards: Vec<Value>,
    /// The blocks whose conditions they are, and which way they are left.
    pub(super) asked: Vec<(usize, bool)>,
    /// Numbers that have to be at least 0, and by how much they have to be below a bound.
    pub(super) ranges: BTreeMap<(Value, Bound), i128>,
    /// Numbers of which only the bits of a mask count, by how much they grow without leaving the mask, and what their
    /// bits are at first.
    pub(super) windows: BTreeMap<(Value, i128), (i128, Value)>,
    /// Slots that the cycle writes.
    written: FxHashSet<SlotId>,
    /// What text is in a slot, and who has written it.
    texts: BTreeMap<SlotId, Instruction>,
    is_text_unknown: bool,
    /// What is filled, and how far.
    pub(super) filled: Option<Filled>,
    /// Elements that are read.
    pub(super) read: usize,
}

impl<'a> Unrolled<'a> {
    /// No turn yet. `at` are values of the header's parameters that are taken for granted, by number.
    pub(super) fn new(
        (body, types): (&'a Body, &'a TypeTable),
        known: &'a [Option<Fact>],
        cycle: &Cycle,
        at: &BTreeMap<usize, i128>,
    ) -> Unrolled<'a> {
        let mut unrolled = Unrolled {
            body,
            types,
            values: body.values.clone(),
            facts: FxHashMap::default(),
            known,
            now: FxHashMap::default(),
            parameters: Vec::new(),
            offsets: FxHashMap::default(),
            sums: FxHashMap::default(),
            constants: FxHashMap::default(),
            wide: FxHashMap::default(),
            defined: FxHashMap::default(),
            computed: Vec::new(),
            stored: Vec::new(),
            guards: Vec::new(),
            asked: Vec::new(),
            ranges: BTreeMap::new(),
            windows: BTreeMap::new(),
            written: written(body, cycle),
            texts: BTreeMap::new(),
            is_text_unknown: false,
            filled: None,
            read: 0,
        };
        let parameters = &body.blocks[cycle.blocks[0].0].parameters;
        for (number, parameter) in parameters.iter().enumerate() {
            let ty = body.values[parameter.0 as usize].ty;
            let before = unrolled.value(ty);
            unrolled.parameters.push(before);
            let fact = known.get(parameter.0 as usize).cloned().flatten();
            unrolled.facts.insert(before, fact.unwrap_or_else(|| Fact::of_type(types, ty)));
            let now = match at.get(&number) {
                Some(constant) => unrolled.constant(ty, *constant),
                None => before,
            };
            unrolled.now.insert(*parameter, now);
        }
        unrolled
    }

    /// A new value.
    pub(super) fn value(&mut self, ty: TypeId) -> Value {
        let value = Value(self.values.len() as u32);
        self.values.push(ValueData { ty, name: None });
        value
    }

    pub(super) fn at(&self, value: Value) -> Value {
        self.now.get(&value).copied().unwrap_or(value)
    }

    /// What stands for the header's parameters now.
    pub(super) fn results(&self, cycle: &Cycle) -> Vec<Value> {
        self.body.blocks[cycle.blocks[0].0].parameters.iter().map(|parameter| self.at(*parameter)).collect()
    }

    /// What is known of a value.
    pub(super) fn fact(&self, value: Value) -> Fact {
        let outside = || self.known.get(value.0 as usize).cloned().flatten();
        let found = self.facts.get(&value).cloned().or_else(outside);
        found.unwrap_or_else(|| Fact::of_type(self.types, self.values[value.0 as usize].ty))
    }

    /// The constant that a value is.
    pub(super) fn as_constant(&self, value: Value) -> Option<i128> {
        self.fact(value).as_constant()
    }

    /// The value that this one is, plus a constant.
    pub(super) fn offset(&self, value: Value) -> (Value, i128) {
        self.offsets.get(&value).copied().unwrap_or((value, 0))
    }

    /// What computes a value of the straight code.
    pub(super) fn op(&self, value: Value) -> Option<&Op> {
        Some(&self.computed[*self.defined.get(&value)?].op)
    }

    /// A type of a value.
    pub(super) fn ty(&self, value: Value) -> TypeId {
        self.values[value.0 as usize].ty
    }

    /// A constant.
    pub(super) fn constant(&mut self, ty: TypeId, constant: i128) -> Value {
        if let Some(value) = self.constants.get(&(ty, constant)) {
            return *value;
        }
        let value = self.compute(ty, Op::Constant(constant), Location::default());
        self.constants.insert((ty, constant), value);
        self.facts.insert(value, Fact::constant(constant));
        value
    }

    /// The result of an operation.
    pub(super) fn compute(&mut self, ty: TypeId, op: Op, location: Location) -> Value {
        let value = self.value(ty);
        self.defined.insert(value, self.computed.len());
        self.computed.push(Instruction { result: Some(value), op, location });
        value
    }

    /// One more turn.
    pub(super) fn turn(&mut self, cycle: &Cycle) -> Result<(), Reason> {
        let body = self.body;
        for (number, way) in &cycle.blocks {
            let block = &body.blocks[*number];
            let fill = cycle.fills.iter().find(|fill| fill.block == *number);
            if let Some(fill) = fill {
                self.fill(fill, block.location)?;
            }
            let is_store = |instruction: &&Instruction| fill.is_none() || instruction.result.is_some();
            for instruction in block.instructions.iter().filter(is_store) {
                self.instruction(instruction)?;
            }
            if fill.is_none()
                && let (Terminator::Branch { condition, .. }, Way::If(holds)) = (&block.terminator, *way)
            {
                let before = self.guards.len();
                self.guard(*condition, holds, block.location)?;
                self.asked.extend((self.guards.len() > before).then_some((*number, holds)));
            }
            let Some(edge) = edge(&block.terminator, *way) else { return Err(Reason::Unbatchable("an end")) };
            let arguments: Vec<Value> = edge.arguments.iter().map(|argument| self.at(*argument)).collect();
            let parameters = &body.blocks[edge.to.0 as usize].parameters;
            self.now.extend(parameters.iter().copied().zip(arguments));
        }
        Ok(())
    }

    /// The guards, those apart that compare what the first turn was left: the others are of rows of elements.
    pub(super) fn guards(&self) -> (Vec<Value>, Vec<Value>) {
        self.guards.iter().partition(|guard| self.is_left(**guard))
    }

    /// Whether a value depends on what the first turn was left.
    fn is_left(&self, value: Value) -> bool {
        let mut work = vec![value];
        let mut seen = FxHashSet::default();
        while let Some(value) = work.pop() {
            match self.op(value) {
                Some(Op::Load(_) | Op::Length(_)) => {}
                Some(op) => op_values(op, &mut |value| work.extend(seen.insert(*value).then_some(*value))),
                None if self.parameters.contains(&value) => return true,
                None => {}
            }
        }
        false
    }

    /// The guards of one turn more, so that whole rows of elements are compared. That more is asked than has to be does
    /// no harm.
    pub(super) fn look_ahead(&mut self, cycle: &Cycle) -> Result<(), Reason> {
        let (stored, texts, windows) = (self.stored.len(), self.texts.clone(), self.windows.clone());
        self.turn(cycle)?;
        self.stored.truncate(stored);
        (self.texts, self.windows) = (texts, windows);
        Ok(())
    }

    /// Whether the turns so far can be code; stores of texts are, once each.
    pub(super) fn finish(&mut self) -> Result<(), Reason> {
        if self.is_text_unknown {
            return Err(Reason::Unbatchable("a text read by an index that changes"));
        }
        self.stored.extend(self.texts.values().cloned());
        // What comes behind the last copy is as it was.
        if let Some(Filled { slot, at, .. }) = self.filled.clone() {
            let location = Location::default();
            for distance in [0, WORD] {
                let (offset, place) =
                    (self.sum(at, distance, location), Place { base: Base::Slot(slot), path: Vec::new() });
                let (bits, order) = (64, ByteOrder::Little);
                let op = Op::LoadNumber { from: place.clone(), offset, bits, order };
                let value = self.compute(TypeTable::U64, op, location);
                let op = Op::StoreNumber { to: place, offset, bits, order, value };
                self.stored.push(Instruction { result: None, op, location });
            }
        }
        Ok(())
    }

    pub(super) fn converted(&mut self, ty: TypeId, value: Value, location: Location) -> Value {
        match self.ty(value) == ty {
            true => value,
            false => {
                let fact = facts::convert(self.types, ty, &self.fact(value));
                self.result(ty, fact, Op::Convert(value), location)
            }
        }
    }

    fn instruction(&mut self, instruction: &Instruction) -> Result<(), Reason> {
        let location = instruction.location;
        let value = match (&instruction.op, instruction.result) {
            (Op::Constant(constant), Some(result)) => self.constant(self.ty(result), *constant),
            (Op::Unary(op, a), Some(result)) => {
                let (a, ty) = (self.at(*a), self.ty(result));
                let fact = facts::unary(self.types, ty, *op, &self.fact(a));
                self.result(ty, fact, Op::Unary(*op, a), location)
            }
            (Op::Binary(op, a, b), Some(result)) => {
                let (a, b) = (self.at(*a), self.at(*b));
                self.binary(*op, a, b, self.ty(result), location)?
            }
            (Op::Convert(a), Some(result)) => {
                let (a, ty) = (self.at(*a), self.ty(result));
                match self.ty(a) == ty {
                    true => a,
                    false => {
                        let fact = facts::convert(self.types, ty, &self.fact(a));
                        self.result(ty, fact, Op::Convert(a), location)
                    }
                }
            }
            (Op::Load(place), Some(result)) => self.load(place, self.ty(result), location)?,
            (Op::Length(place), Some(result)) => {
                let slot = whole(place).filter(|slot| !self.written.contains(slot));
                let Some(slot) = slot else { return Err(Reason::Unbatchable("a length that changes")) };
                let place = Place { base: Base::Slot(slot), path: Vec::new() };
                self.compute(self.ty(result), Op::Length(place), location)
            }
            (Op::Store(place, value), None) => {
                let is_apart = |slot: &SlotId| {
                    !self.texts.contains_key(slot) && self.filled.as_ref().is_none_or(|filled| filled.slot != *slot)
                };
                let slot_and_index = element(place).filter(|(slot, _)| is_apart(slot));
                let Some((slot, index)) = slot_and_index else { return Err(Reason::Unbatchable("a store")) };
                let (index, value) = (self.at(index), self.at(*value));
                let step = self.index(slot, index, location)?;
                let place = Place { base: Base::Slot(slot), path: vec![step] };
                self.stored.push(Instruction { result: None, op: Op::Store(place, value), location });
                return Ok(());
            }
            (Op::SetBytes(place, _), None) => {
                let Some(slot) = whole(place) else { return Err(Reason::Unbatchable("a text")) };
                self.texts.insert(slot, instruction.clone());
                return Ok(());
            }
            (op, _) => return Err(Reason::Unbatchable(what(op))),
        };
        if let Some(result) = instruction.result {
            self.now.insert(result, value);
        }
        Ok(())
    }

    /// An operation, or the constant that it is.
    fn result(&mut self, ty: TypeId, fact: Fact, op: Op, location: Location) -> Value {
        match fact.as_constant() {
            Some(constant) => self.constant(ty, constant),
            None => {
                let value = self.compute(ty, op, location);
                self.facts.insert(value, fact);
                value
            }
        }
    }

    fn binary(&mut self, op: BinaryOp, a: Value, b: Value, ty: TypeId, location: Location) -> Result<Value, Reason> {
        let (fact_a, fact_b) = (self.fact(a), self.fact(b));
        match op {
            BinaryOp::Divide | BinaryOp::Remainder if fact_b.admits(0) || fact_b.admits(-1) => {
                return Err(Reason::Unbatchable("a division"));
            }
            _ => {}
        }
        let fact = facts::binary(self.types, ty, op, self.ty(a), &fact_a, &fact_b);
        if fact.as_constant().is_none()
            && let Type::Int(_) = self.types.get(ty)
        {
            let sum = match (op, fact_a.as_constant(), fact_b.as_constant()) {
                (BinaryOp::Add, None, Some(constant)) => Some((a, constant)),
                (BinaryOp::Add, Some(constant), None) => Some((b, constant)),
                (BinaryOp::Subtract, None, Some(constant)) => Some((a, -constant)),
                _ => None,
            };
            if let Some((of, constant)) = sum {
                let (base, offset) = self.offset(of);
                return Ok(self.sum(base, offset + constant, location));
            }
        }
        Ok(self.result(ty, fact, Op::Binary(op, a, b), location))
    }

    /// A value plus a constant.
    pub(super) fn sum(&mut self, base: Value, offset: i128, location: Location) -> Value {
        if offset == 0 {
            return base;
        }
        if let Some(value) = self.sums.get(&(base, offset)) {
            return *value;
        }
        let ty = self.ty(base);
        let wrapped = match self.types.get(ty) {
            Type::Int(int) => int.wrap(offset),
            _ => offset,
        };
        let constant = self.constant(ty, wrapped);
        let value = self.compute(ty, Op::Binary(BinaryOp::Add, base, constant), location);
        let fact = facts::binary(self.types, ty, BinaryOp::Add, ty, &self.fact(base), &Fact::constant(wrapped));
        self.facts.insert(value, fact);
        self.offsets.insert(value, (base, offset));
        self.sums.insert((base, offset), value);
        value
    }

    fn load(&mut self, place: &Place, ty: TypeId, location: Location) -> Result<Value, Reason> {
        let Some((slot, index)) = element(place) else { return Err(Reason::Unbatchable("a load")) };
        let index = self.at(index);
        if let Some(Op::SetBytes(_, text)) = self.texts.get(&slot).map(|instruction| &instruction.op) {
            let byte = |at: i128| usize::try_from(at).ok().and_then(|at| text.get(at)).copied();
            return match self.as_constant(index).and_then(byte) {
                Some(byte) => Ok(self.constant(ty, i128::from(byte))),
                // Which bytes are meant may be known once constants are taken for granted.
                None => {
                    self.is_text_unknown = true;
                    Ok(self.value(ty))
                }
            };
        }
        if self.written.contains(&slot) {
            return Err(Reason::Unbatchable("a load of what it stores"));
        }
        let step = self.index(slot, index, location)?;
        self.read += 1;
        let place = Place { base: Base::Slot(slot), path: vec![step] };
        let value = self.compute(ty, Op::Load(place), location);
        self.facts.insert(value, Fact::of_type(self.types, ty));
        Ok(value)
    }

    /// An index that is inside, if the tests hold.
    fn index(&mut self, slot: SlotId, index: Value, location: Location) -> Result<Projection, Reason> {
        let bound = match self.types.get(self.body.slots[slot.0 as usize].ty) {
            Type::Array { length, .. } => Bound::Number(i128::from(*length)),
            Type::Bytes { .. } => Bound::Length(slot),
            _ => return Err(Reason::Unbatchable("an index")),
        };
        if let Bound::Number(length) = bound
            && length > 0
            && self.fact(index).implies(&Fact::between(0, length - 1))
        {
            return Ok(Projection::Inside(self.windowed(index, location).unwrap_or(index)));
        }
        let (base, offset) = self.offset(index);
        match offset >= 0 && self.is_before(base) && *self.types.get(self.ty(base)) == *self.types.get(TypeTable::I32) {
            true => {
                self.below(base, offset, bound);
                Ok(Projection::Inside(self.wide(base, offset, location)))
            }
            false => Err(Reason::Unbatchable("an index that may be outside")),
        }
    }

    /// The same index without its mask: what it is at first, plus a constant.
    fn windowed(&mut self, index: Value, location: Location) -> Option<Value> {
        let Op::Binary(BinaryOp::BitAnd, a, b) = *self.op(index)? else { return None };
        let (of, mask) = match (self.as_constant(a), self.as_constant(b)) {
            (None, Some(mask)) => (a, mask),
            (Some(mask), None) => (b, mask),
            _ => return None,
        };
        let (base, offset) = self.offset(of);
        if mask <= 0 || (mask + 1).count_ones() != 1 || !(0..=mask).contains(&offset) || !self.is_before(base) {
            return None;
        }
        let first = match self.windows.get(&(base, mask)) {
            Some((_, first)) => *first,
            None => {
                let ty = self.ty(base);
                let constant = self.constant(ty, mask);
                let first = self.compute(ty, Op::Binary(BinaryOp::BitAnd, base, constant), location);
                self.facts.insert(first, Fact::between(0, mask));
                first
            }
        };
        let most = self.windows.entry((base, mask)).or_insert((0, first));
        most.0 = most.0.max(offset);
        Some(self.wide(first, offset, location))
    }

    /// A value that is at least 0, plus a constant, of 64 bits: a compiler that sees that the sum does not wrap knows
    /// that elements are neighbours.
    pub(super) fn wide(&mut self, base: Value, offset: i128, location: Location) -> Value {
        let wide = match self.wide.get(&base) {
            Some(wide) => *wide,
            None => {
                let wide = match self.ty(base) == TypeTable::U64 {
                    true => base,
                    false => self.compute(TypeTable::U64, Op::Convert(base), location),
                };
                self.wide.insert(base, wide);
                wide
            }
        };
        self.sum(wide, offset, location)
    }

    /// Whether a value was there before the first turn.
    pub(super) fn is_before(&self, value: Value) -> bool {
        !self.defined.contains_key(&value)
    }

    /// From now on a value plus this has to be below a bound.
    fn below(&mut self, value: Value, offset: i128, bound: Bound) {
        let most = self.ranges.entry((value, bound)).or_insert(0);
        *most = (*most).max(offset);
    }

    fn guard(&mut self, condition: Value, holds: bool, location: Location) -> Result<(), Reason> {
        let condition = self.at(condition);
        if let Some(constant) = self.as_constant(condition) {
            return match (constant != 0) == holds {
                true => Ok(()),
                false => Err(Reason::Unbatchable("a way that is never taken")),
            };
        }
        if let Some(Op::Binary(op, a, b)) = self.op(condition) {
            let (op, a, b) = (*op, *a, *b);
            let less = match (op, holds) {
                (BinaryOp::Less, true) | (BinaryOp::GreaterEqual, false) => Some((a, b)),
                (BinaryOp::Greater, true) | (BinaryOp::LessEqual, false) => Some((b, a)),
                _ => None,
            };
            if let Some((a, b)) = less
                && let Type::Int(_) = self.types.get(self.ty(a))
            {
                let (base, offset) = self.offset(a);
                let bound = match self.as_constant(b) {
                    Some(constant) => Some(Bound::Number(constant)),
                    None => self.is_before(b).then_some(Bound::Value(b)),
                };
                if let Some(bound) = bound
                    && offset >= 0
                    && self.is_before(base)
                    && bound != Bound::Value(base)
                {
                    self.below(base, offset, bound);
                    return Ok(());
                }
            }
        }
        let ty = self.ty(condition);
        let guard = match holds {
            true => condition,
            false => {
                let no = self.constant(ty, 0);
                self.compute(ty, Op::Binary(BinaryOp::Equal, condition, no), location)
            }
        };
        self.guards.push(guard);
        Ok(())
    }
}

/// The slots that the blocks of a cycle write.
fn written(body: &Body, cycle: &Cycle) -> FxHashSet<SlotId> {
    let mut slots = FxHashSet::default();
    for (block, _) in &cycle.blocks {
        for instruction in &body.blocks[*block].instructions {
            if let Op::Store(place, _) | Op::SetBytes(place, _) = &instruction.op
                && let Base::Slot(slot) = place.base
            {
                slots.insert(slot);
            }
        }
    }
    slots
}

/// The slot that a place is.
fn whole(place: &Place) -> Option<SlotId> {
    match (place.base, &place.path[..]) {
        (Base::Slot(slot), []) => Some(slot),
        _ => None,
    }
}

/// The slot and the index of an element.
pub(super) fn element(place: &Place) -> Option<(SlotId, Value)> {
    match (place.base, &place.path[..]) {
        (Base::Slot(slot), [Projection::Element(index) | Projection::Inside(index)]) => Some((slot, *index)),
        _ => None,
    }
}

/// What an operation is that a batch does not have.
fn what(op: &Op) -> &'static str {
    match op {
        Op::Allocate(_) | Op::FreeObjects(_) | Op::Retain(_) | Op::Release(_) | Op::IsUnique(_) => "a boxed object",
        Op::CallFunction { .. } | Op::CallExtern { .. } => "a call",
        Op::Mark(_) | Op::Test(..) => "a label",
        _ => "an operation on whole values",
    }
}
