//! Symbolic evaluation of the iterations of a path: straight-line code in which constants are folded and values are
//! tracked as a base plus an offset. Guards and pure computations are kept apart from stores, so that all guards can be
//! evaluated before any store. Emits no blocks.

use super::UnrollRefusal;
use super::loop_paths::{EdgeChoice, LoopPath, chosen_edge};
use crate::facts::{self, Fact};
use crate::places::{slot_element, whole_slot};
use quaject_esp_ir::ir::{
    Base, BinaryOp, Body, ByteOrder, Instruction, Location, Op, Place, Projection, SlotId, Terminator, Type, TypeId,
    TypeTable, Value, ValueData,
};
use quaject_esp_ir::visit::op_values;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// Bytes of a word.
pub(super) const WORD: i128 = 8;

/// An exclusive upper bound.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum RangeBound {
    /// A value defined before the loop version.
    Value(Value),
    /// The length of `bytes`.
    Length(SlotId),
    /// A constant.
    Number(i128),
}

/// An array that is filled from an unknown index on.
#[derive(Clone)]
pub(super) struct FilledArray {
    pub(super) slot: SlotId,
    /// The index before the first iteration, and the mask of its significant bits.
    pub(super) base: Value,
    pub(super) mask: i128,
    /// The current index, and its 64-bit position in the array.
    pub(super) index: Value,
    pub(super) at: Value,
    /// The number of fills so far.
    pub(super) fills: i128,
}

/// The straight-line code of several iterations.
pub(super) struct Unrolled<'a> {
    pub(super) body: &'a Body,
    pub(super) types: &'a TypeTable,
    /// The body's values, followed by those of the straight-line code.
    pub(super) values: Vec<ValueData>,
    pub(super) facts: FxHashMap<Value, Fact>,
    known: &'a [Option<Fact>],
    /// The current value of the straight-line code for each value of the body.
    pub(super) current: FxHashMap<Value, Value>,
    /// The header's parameters before the first iteration.
    pub(super) parameters: Vec<Value>,
    /// Values that are a base plus a constant.
    offsets: FxHashMap<Value, (Value, i128)>,
    sums: FxHashMap<(Value, i128), Value>,
    constants: FxHashMap<(TypeId, i128), Value>,
    /// The 64-bit conversion of a value.
    wide: FxHashMap<Value, Value>,
    /// The index of a value's instruction.
    pub(super) defined: FxHashMap<Value, usize>,
    /// The pure computations in order; they cannot fault if the tests hold.
    pub(super) computed: Vec<Instruction>,
    /// The stores in order.
    pub(super) stored: Vec<Instruction>,
    /// The guards: conditions that all have to hold.
    pub(super) guards: Vec<Value>,
    /// The blocks whose conditions they are, and the edge taken.
    pub(super) guarded_branches: Vec<(usize, bool)>,
    /// Numbers that have to be at least 0: by upper bound, the maximal offset at which they have to be below it.
    pub(super) ranges: BTreeMap<(Value, RangeBound), i128>,
    /// Masked indices, by unmasked value and mask: the maximal offset that must not wrap, and the masked value before
    /// the first iteration.
    pub(super) windows: BTreeMap<(Value, i128), (i128, Value)>,
    /// The slots that the path writes.
    written: FxHashSet<SlotId>,
    /// The literal in a slot, and the instruction that wrote it.
    literals: BTreeMap<SlotId, Instruction>,
    is_literal_unknown: bool,
    /// The array that memset loops fill.
    pub(super) filled: Option<FilledArray>,
    /// Element loads.
    pub(super) read: usize,
}

impl<'a> Unrolled<'a> {
    /// No iteration yet. `entry_constants` are the assumed constants of the header's parameters, by number.
    pub(super) fn new(
        (body, types): (&'a Body, &'a TypeTable),
        known: &'a [Option<Fact>],
        path: &LoopPath,
        entry_constants: &BTreeMap<usize, i128>,
    ) -> Unrolled<'a> {
        let mut unrolled = Unrolled {
            body,
            types,
            values: body.values.clone(),
            facts: FxHashMap::default(),
            known,
            current: FxHashMap::default(),
            parameters: Vec::new(),
            offsets: FxHashMap::default(),
            sums: FxHashMap::default(),
            constants: FxHashMap::default(),
            wide: FxHashMap::default(),
            defined: FxHashMap::default(),
            computed: Vec::new(),
            stored: Vec::new(),
            guards: Vec::new(),
            guarded_branches: Vec::new(),
            ranges: BTreeMap::new(),
            windows: BTreeMap::new(),
            written: written(body, path),
            literals: BTreeMap::new(),
            is_literal_unknown: false,
            filled: None,
            read: 0,
        };
        let parameters = &body.blocks[path.blocks[0].0].parameters;
        for (number, parameter) in parameters.iter().enumerate() {
            let ty = body.values[parameter.0 as usize].ty;
            let before = unrolled.value(ty);
            unrolled.parameters.push(before);
            let fact = known.get(parameter.0 as usize).cloned().flatten();
            unrolled.facts.insert(before, fact.unwrap_or_else(|| Fact::of_type(types, ty)));
            let current = match entry_constants.get(&number) {
                Some(constant) => unrolled.constant(ty, *constant),
                None => before,
            };
            unrolled.current.insert(*parameter, current);
        }
        unrolled
    }

    /// A new value.
    pub(super) fn value(&mut self, ty: TypeId) -> Value {
        let value = Value(self.values.len() as u32);
        self.values.push(ValueData { ty, name: None });
        value
    }

    /// The value of the straight-line code for one of the body.
    pub(super) fn current_value(&self, value: Value) -> Value {
        self.current.get(&value).copied().unwrap_or(value)
    }

    /// The current values of the header's parameters.
    pub(super) fn results(&self, path: &LoopPath) -> Vec<Value> {
        self.body.blocks[path.blocks[0].0].parameters.iter().map(|parameter| self.current_value(*parameter)).collect()
    }

    /// The fact on a value.
    pub(super) fn fact(&self, value: Value) -> Fact {
        let outside = || self.known.get(value.0 as usize).cloned().flatten();
        let found = self.facts.get(&value).cloned().or_else(outside);
        found.unwrap_or_else(|| Fact::of_type(self.types, self.values[value.0 as usize].ty))
    }

    /// The constant that a value is.
    pub(super) fn as_constant(&self, value: Value) -> Option<i128> {
        self.fact(value).as_constant()
    }

    /// A value as a base plus a constant.
    pub(super) fn offset(&self, value: Value) -> (Value, i128) {
        self.offsets.get(&value).copied().unwrap_or((value, 0))
    }

    /// The operation that defines a value of the straight-line code.
    pub(super) fn op(&self, value: Value) -> Option<&Op> {
        Some(&self.computed[*self.defined.get(&value)?].op)
    }

    /// The type of a value.
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

    /// Adds one iteration.
    pub(super) fn iteration(&mut self, path: &LoopPath) -> Result<(), UnrollRefusal> {
        let body = self.body;
        for (number, choice) in &path.blocks {
            let block = &body.blocks[*number];
            let memset = path.memset_loops.iter().find(|memset| memset.block == *number);
            if let Some(memset) = memset {
                self.emit_memset(memset, block.location)?;
            }
            let is_store = |instruction: &&Instruction| memset.is_none() || instruction.result.is_some();
            for instruction in block.instructions.iter().filter(is_store) {
                self.instruction(instruction)?;
            }
            if memset.is_none()
                && let (Terminator::Branch { condition, .. }, EdgeChoice::If(holds)) = (&block.terminator, *choice)
            {
                let before = self.guards.len();
                self.guard(*condition, holds, block.location)?;
                self.guarded_branches.extend((self.guards.len() > before).then_some((*number, holds)));
            }
            let Some(edge) = chosen_edge(&block.terminator, *choice) else {
                return Err(UnrollRefusal::Unsupported("an end"));
            };
            let arguments: Vec<Value> = edge.arguments.iter().map(|argument| self.current_value(*argument)).collect();
            let parameters = &body.blocks[edge.to.0 as usize].parameters;
            self.current.extend(parameters.iter().copied().zip(arguments));
        }
        Ok(())
    }

    /// The guards that depend on the initial parameters, and the others, which compare elements.
    pub(super) fn guards(&self) -> (Vec<Value>, Vec<Value>) {
        self.guards.iter().partition(|guard| self.depends_on_parameters(**guard))
    }

    /// Whether a value depends on the parameters before the first iteration.
    fn depends_on_parameters(&self, value: Value) -> bool {
        let mut worklist = vec![value];
        let mut visited = FxHashSet::default();
        while let Some(value) = worklist.pop() {
            match self.op(value) {
                Some(Op::Load(_) | Op::Length(_)) => {}
                Some(op) => op_values(op, &mut |value| worklist.extend(visited.insert(*value).then_some(*value))),
                None if self.parameters.contains(&value) => return true,
                None => {}
            }
        }
        false
    }

    /// Adds the guards of one more iteration, so that full words of elements are compared. Additional guards are safe.
    pub(super) fn look_ahead(&mut self, path: &LoopPath) -> Result<(), UnrollRefusal> {
        let (stored, literals, windows) = (self.stored.len(), self.literals.clone(), self.windows.clone());
        self.iteration(path)?;
        self.stored.truncate(stored);
        (self.literals, self.windows) = (literals, windows);
        Ok(())
    }

    /// Checks that the iterations so far can be emitted, and adds each literal store once.
    pub(super) fn finish(&mut self) -> Result<(), UnrollRefusal> {
        if self.is_literal_unknown {
            return Err(UnrollRefusal::Unsupported("a literal indexed by a variable"));
        }
        self.stored.extend(self.literals.values().cloned());
        // The bytes beyond the last copy are restored.
        if let Some(FilledArray { slot, at, .. }) = self.filled.clone() {
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

    fn instruction(&mut self, instruction: &Instruction) -> Result<(), UnrollRefusal> {
        let location = instruction.location;
        let value = match (&instruction.op, instruction.result) {
            (Op::Constant(constant), Some(result)) => self.constant(self.ty(result), *constant),
            (Op::Unary(op, a), Some(result)) => {
                let (a, ty) = (self.current_value(*a), self.ty(result));
                let fact = facts::unary(self.types, ty, *op, &self.fact(a));
                self.result(ty, fact, Op::Unary(*op, a), location)
            }
            (Op::Binary(op, a, b), Some(result)) => {
                let (a, b) = (self.current_value(*a), self.current_value(*b));
                self.binary(*op, a, b, self.ty(result), location)?
            }
            (Op::Convert(a), Some(result)) => {
                let (a, ty) = (self.current_value(*a), self.ty(result));
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
                let slot = whole_slot(place).filter(|slot| !self.written.contains(slot));
                let Some(slot) = slot else { return Err(UnrollRefusal::Unsupported("a length that changes")) };
                let place = Place { base: Base::Slot(slot), path: Vec::new() };
                self.compute(self.ty(result), Op::Length(place), location)
            }
            (Op::Store(place, value), None) => {
                let is_apart = |slot: &SlotId| {
                    !self.literals.contains_key(slot) && self.filled.as_ref().is_none_or(|filled| filled.slot != *slot)
                };
                let slot_and_index = slot_element(place).filter(|(slot, _)| is_apart(slot));
                let Some((slot, index)) = slot_and_index else { return Err(UnrollRefusal::Unsupported("a store")) };
                let (index, value) = (self.current_value(index), self.current_value(*value));
                let step = self.index(slot, index, location)?;
                let place = Place { base: Base::Slot(slot), path: vec![step] };
                self.stored.push(Instruction { result: None, op: Op::Store(place, value), location });
                return Ok(());
            }
            (Op::SetBytes(place, _), None) => {
                let Some(slot) = whole_slot(place) else { return Err(UnrollRefusal::Unsupported("a literal")) };
                self.literals.insert(slot, instruction.clone());
                return Ok(());
            }
            (op, _) => return Err(UnrollRefusal::Unsupported(unsupported_construct(op))),
        };
        if let Some(result) = instruction.result {
            self.current.insert(result, value);
        }
        Ok(())
    }

    /// The result of an operation, folded if it is constant.
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

    fn binary(
        &mut self,
        op: BinaryOp,
        a: Value,
        b: Value,
        ty: TypeId,
        location: Location,
    ) -> Result<Value, UnrollRefusal> {
        let (fact_a, fact_b) = (self.fact(a), self.fact(b));
        match op {
            BinaryOp::Divide | BinaryOp::Remainder if fact_b.admits(0) || fact_b.admits(-1) => {
                return Err(UnrollRefusal::Unsupported("a division"));
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

    fn load(&mut self, place: &Place, ty: TypeId, location: Location) -> Result<Value, UnrollRefusal> {
        let Some((slot, index)) = slot_element(place) else { return Err(UnrollRefusal::Unsupported("a load")) };
        let index = self.current_value(index);
        if let Some(Op::SetBytes(_, literal)) = self.literals.get(&slot).map(|instruction| &instruction.op) {
            let byte = |at: i128| usize::try_from(at).ok().and_then(|at| literal.get(at)).copied();
            return match self.as_constant(index).and_then(byte) {
                Some(byte) => Ok(self.constant(ty, i128::from(byte))),
                // The index may be constant once parameters are assumed constant.
                None => {
                    self.is_literal_unknown = true;
                    Ok(self.value(ty))
                }
            };
        }
        if self.written.contains(&slot) {
            return Err(UnrollRefusal::Unsupported("a load of what it stores"));
        }
        let step = self.index(slot, index, location)?;
        self.read += 1;
        let place = Place { base: Base::Slot(slot), path: vec![step] };
        let value = self.compute(ty, Op::Load(place), location);
        self.facts.insert(value, Fact::of_type(self.types, ty));
        Ok(value)
    }

    /// An index that is in range if the tests hold.
    fn index(&mut self, slot: SlotId, index: Value, location: Location) -> Result<Projection, UnrollRefusal> {
        let bound = match self.types.get(self.body.slots[slot.0 as usize].ty) {
            Type::Array { length, .. } => RangeBound::Number(i128::from(*length)),
            Type::Bytes { .. } => RangeBound::Length(slot),
            _ => return Err(UnrollRefusal::Unsupported("an index")),
        };
        if let RangeBound::Number(length) = bound
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
            false => Err(UnrollRefusal::Unsupported("an index that may be out of range")),
        }
    }

    /// A masked index as its initial masked value plus a constant.
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
        let (max_offset, _) = self.windows.entry((base, mask)).or_insert((0, first));
        *max_offset = (*max_offset).max(offset);
        Some(self.wide(first, offset, location))
    }

    /// A non-negative value plus a constant, in 64 bits: as the sum does not wrap, a C compiler knows that elements are
    /// adjacent.
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

    /// Whether a value is defined before the first iteration.
    pub(super) fn is_before(&self, value: Value) -> bool {
        !self.defined.contains_key(&value)
    }

    /// Requires that a value plus an offset is below a bound.
    fn below(&mut self, value: Value, offset: i128, bound: RangeBound) {
        let max_offset = self.ranges.entry((value, bound)).or_insert(0);
        *max_offset = (*max_offset).max(offset);
    }

    fn guard(&mut self, condition: Value, holds: bool, location: Location) -> Result<(), UnrollRefusal> {
        let condition = self.current_value(condition);
        if let Some(constant) = self.as_constant(condition) {
            return match (constant != 0) == holds {
                true => Ok(()),
                false => Err(UnrollRefusal::Unsupported("a branch that is never taken")),
            };
        }
        if let Some(Op::Binary(op, a, b)) = self.op(condition) {
            let less = match if holds { Some(*op) } else { op.inverted() } {
                Some(BinaryOp::Less) => Some((*a, *b)),
                Some(BinaryOp::Greater) => Some((*b, *a)),
                _ => None,
            };
            if let Some((a, b)) = less
                && let Type::Int(_) = self.types.get(self.ty(a))
            {
                let (base, offset) = self.offset(a);
                let bound = match self.as_constant(b) {
                    Some(constant) => Some(RangeBound::Number(constant)),
                    None => self.is_before(b).then_some(RangeBound::Value(b)),
                };
                if let Some(bound) = bound
                    && offset >= 0
                    && self.is_before(base)
                    && bound != RangeBound::Value(base)
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
                let zero = self.constant(ty, 0);
                self.compute(ty, Op::Binary(BinaryOp::Equal, condition, zero), location)
            }
        };
        self.guards.push(guard);
        Ok(())
    }
}

/// The slots that the blocks of a path write.
fn written(body: &Body, path: &LoopPath) -> FxHashSet<SlotId> {
    let mut slots = FxHashSet::default();
    for (block, _) in &path.blocks {
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

/// The construct, as a noun, of an operation that an unrolled version cannot express.
fn unsupported_construct(op: &Op) -> &'static str {
    match op {
        Op::Allocate(_) | Op::FreeObjects(_) | Op::Retain(_) | Op::Release(_) | Op::IsUnique(_) => "a boxed object",
        Op::CallFunction { .. } | Op::CallExtern { .. } => "a call",
        Op::Mark(_) | Op::Predicate(..) => "a label",
        _ => "an operation on aggregates",
    }
}
