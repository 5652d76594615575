//! Tests on a fast path before an instruction that may fault: an index out of bounds, a divisor of 0, a length or
//! number that exceeds its bound, an empty pool. If a test fails the path exits before the instruction, and the general
//! code faults: these are the guards of a tracing compiler, with deoptimization at the exit. Knows no schedule.

use super::explorer::Explorer;
use super::residue::edge_to;
use super::state::{Condition, SymbolicState, SymbolicValue};
use crate::facts::{self, Fact};
use crate::path_exit::ExitReason;
use crate::places::{bytes_bound, indexed_places};
use crate::refusal::Refusal;
use quaject_esp_ir::ir::{
    BinaryOp, Instruction, Location, Op, Place, Projection, Terminator, Type, TypeId, TypeTable, Value,
};
use quaject_esp_ir::typing::place_type;

impl<'g, 'p> Explorer<'g, 'p> {
    /// Emits the tests before an instruction of a member. The state in which they hold; none if they cannot.
    pub(super) fn check_faults(
        &mut self,
        state: SymbolicState,
        member: usize,
        next: &Instruction,
    ) -> Result<Option<SymbolicState>, Refusal> {
        let mut state = state;
        if let Op::Binary(BinaryOp::Divide | BinaryOp::Remainder, _, by) = next.op {
            let value = self.symbolic_value(&state, member, by);
            let ty = self.group.members[member].body.values[by.0 as usize].ty;
            match self.require_comparison(
                state,
                member,
                (BinaryOp::NotEqual, value, SymbolicValue::Constant(0), ty),
                next.location,
            )? {
                Some(passed) => state = passed,
                None => return Ok(None),
            }
        }
        for place in indexed_places(&next.op) {
            for position in 0..place.path.len() {
                let Projection::Element(index) = place.path[position] else { continue };
                let holder = Place { base: place.base, path: place.path[..position].to_vec() };
                match self.check_index(state, member, &holder, index, next.location)? {
                    Some(passed) => state = passed,
                    None => return Ok(None),
                }
            }
        }
        self.check_capacity(state, member, next)
    }

    /// Tests that an index is in bounds. It is the comparison that generated C makes before the instruction, so that
    /// the C compiler removes the latter.
    fn check_index(
        &mut self,
        mut state: SymbolicState,
        member: usize,
        holder: &Place,
        index: Value,
        location: Location,
    ) -> Result<Option<SymbolicState>, Refusal> {
        let body = self.group.members[member].body;
        let ty = body.values[index.0 as usize].ty;
        let types = self.group.types();
        let (length, lengths) = match place_type(types, body, holder).map(|holder| types.get(holder)) {
            Some(Type::Array { length, element: _ }) => {
                (SymbolicValue::Constant(i128::from(*length)), Fact::constant(i128::from(*length)))
            }
            Some(Type::Bytes { .. }) => match self.known_length(&state, member, holder) {
                Some(length) => (SymbolicValue::Constant(length), Fact::constant(length)),
                None => {
                    let from = self.residual_place(&mut state, member, holder);
                    let length = self.out.create_value(TypeTable::I32, None);
                    self.out.emit(state.block, Some(length), Op::Length(from), location);
                    // Its bound need not be a threshold of the group; the bound of `int` always is.
                    (SymbolicValue::Residual(length), Fact::between(0, i128::from(i32::MAX)))
                }
            },
            Some(_) | None => return Ok(Some(state)),
        };
        let value = self.symbolic_value(&state, member, index);
        let fact = state.product.fact(self.group, value, ty);
        if fact.low >= 0 && fact.high < lengths.low {
            return Ok(Some(state));
        }
        let Some(inside) = fact.within(0, lengths.high - 1) else {
            return self.exit_path(state, ExitReason::NotExecutable(member)).map(|()| None);
        };
        let is_wide = matches!(types.get(ty), Type::Int(int) if int.bits() == 64);
        let unsigned = if is_wide { TypeTable::U64 } else { TypeTable::U32 };
        let left = self.as_unsigned(&mut state, value, ty, unsigned, location);
        let right = self.as_unsigned(&mut state, length, TypeTable::I32, unsigned, location);
        let holds = self.out.create_value(TypeTable::BOOL, None);
        self.out.emit(state.block, Some(holds), Op::Binary(BinaryOp::Less, left, right), location);
        let mut fails = state.clone();
        state.product.assume_fact(holds, Fact::constant(1));
        if let SymbolicValue::Residual(index) = value {
            state.product.assume_fact(index, inside);
        }
        fails.product.assume_fact(holds, Fact::constant(0));
        self.branch_or_exit(state, fails, member, holds, location).map(Some)
    }

    /// A number as an unsigned one; a negative number is greater than any length.
    fn as_unsigned(
        &mut self,
        state: &mut SymbolicState,
        value: SymbolicValue,
        ty: TypeId,
        wanted: TypeId,
        location: Location,
    ) -> Value {
        match value {
            SymbolicValue::Constant(constant) if constant >= 0 => self.materialize(state, value, wanted),
            SymbolicValue::Constant(_) | SymbolicValue::Residual(_) => {
                let value = self.materialize(state, value, ty);
                if ty == wanted {
                    return value;
                }
                let converted = self.out.create_value(wanted, None);
                self.out.emit(state.block, Some(converted), Op::Convert(value), location);
                converted
            }
        }
    }

    /// Continues if a comparison holds, else exits.
    fn require_comparison(
        &mut self,
        mut state: SymbolicState,
        member: usize,
        (op, a, b, ty): (BinaryOp, SymbolicValue, SymbolicValue, TypeId),
        location: Location,
    ) -> Result<Option<SymbolicState>, Refusal> {
        let types = self.group.types();
        let (fact_a, fact_b) = (state.product.fact(self.group, a, ty), state.product.fact(self.group, b, ty));
        match facts::binary(types, TypeTable::BOOL, op, ty, &fact_a, &fact_b).as_constant() {
            Some(0) => return self.exit_path(state, ExitReason::NotExecutable(member)).map(|()| None),
            Some(_) => return Ok(Some(state)),
            None => {}
        }
        let left = self.materialize(&mut state, a, ty);
        let right = self.materialize(&mut state, b, ty);
        let holds = self.out.create_value(TypeTable::BOOL, None);
        self.out.emit(state.block, Some(holds), Op::Binary(op, left, right), location);
        state.product.conditions.insert(holds, Condition::Compare(op, a, b, ty));
        let mut fails = state.clone();
        state.product.assume_condition(self.group, holds, true);
        fails.product.assume_condition(self.group, holds, false);
        self.branch_or_exit(state, fails, member, holds, location).map(Some)
    }

    /// Branches on a condition; the path exits where it is false.
    fn branch_or_exit(
        &mut self,
        mut state: SymbolicState,
        mut fails: SymbolicState,
        member: usize,
        holds: Value,
        location: Location,
    ) -> Result<SymbolicState, Refusal> {
        let from = state.block;
        state.block = self.out.create_block(Vec::new());
        fails.block = self.out.create_block(Vec::new());
        let branch =
            Terminator::Branch { condition: holds, then: edge_to(state.block), otherwise: edge_to(fails.block) };
        self.out.finish(from, branch, location);
        self.exit_path(fails, ExitReason::NotExecutable(member))?;
        Ok(state)
    }

    /// Tests before an instruction of a member that pools, lengths and ranges suffice for it. The state in which the
    /// tests hold; none if they cannot.
    fn check_capacity(
        &mut self,
        mut state: SymbolicState,
        member: usize,
        next: &Instruction,
    ) -> Result<Option<SymbolicState>, Refusal> {
        let location = next.location;
        let at = (member, location);
        match &next.op {
            Op::Allocate(pool) => {
                let free = self.out.create_value(TypeTable::I32, None);
                self.out.emit(state.block, Some(free), Op::FreeObjects(*pool), location);
                let none = self.materialize(&mut state, SymbolicValue::Constant(0), TypeTable::I32);
                self.require(state, at, (BinaryOp::NotEqual, free, none))
            }
            Op::InstanceOf(process, replica) => {
                let replicas = self.group.program.processes[process.0 as usize].replicas;
                let ty = self.group.members[member].body.values[replica.0 as usize].ty;
                let fact = state.product.fact(self.group, self.symbolic_value(&state, member, *replica), ty);
                if fact.low >= 0 && fact.high < i128::from(replicas) {
                    return Ok(Some(state));
                }
                let (replica, replicas) =
                    (self.as_u64(&mut state, at, *replica), self.constant_u64(&mut state, replicas));
                self.require(state, at, (BinaryOp::Less, replica, replicas))
            }
            Op::SetLength(place, length) => {
                let (length, max_length) = (self.as_u64(&mut state, at, *length), self.bytes_bound(member, place));
                let max_length = self.constant_u64(&mut state, max_length);
                self.require(state, at, (BinaryOp::LessEqual, length, max_length))
            }
            Op::Copy { to, from } => {
                if self.bytes_bound(member, from) <= self.bytes_bound(member, to) {
                    return Ok(Some(state));
                }
                let (length, max_length) = (self.length_u64(&mut state, at, from), self.bytes_bound(member, to));
                let max_length = self.constant_u64(&mut state, max_length);
                self.require(state, at, (BinaryOp::LessEqual, length, max_length))
            }
            Op::Append { to, from } => {
                let (old, more) = (self.length_u64(&mut state, at, to), self.length_u64(&mut state, at, from));
                let (sum, max_length) =
                    (self.emit_binary(&state, at, (BinaryOp::Add, old, more)), self.bytes_bound(member, to));
                let max_length = self.constant_u64(&mut state, max_length);
                self.require(state, at, (BinaryOp::LessEqual, sum, max_length))
            }
            Op::CopySlice { to, from, start, end } => {
                let Some((mut state, width)) = self.check_slice(state, at, from, (*start, *end))? else {
                    return Ok(None);
                };
                if self.bytes_bound(member, from) <= self.bytes_bound(member, to) {
                    return Ok(Some(state));
                }
                let max_length = self.bytes_bound(member, to);
                let max_length = self.constant_u64(&mut state, max_length);
                self.require(state, at, (BinaryOp::LessEqual, width, max_length))
            }
            Op::StoreSlice { to, start, end, from } => {
                let Some((mut state, width)) = self.check_slice(state, at, to, (*start, *end))? else {
                    return Ok(None);
                };
                let length = self.length_u64(&mut state, at, from);
                self.require(state, at, (BinaryOp::Equal, width, length))
            }
            Op::LoadNumber { from: bytes, offset, bits, .. } | Op::StoreNumber { to: bytes, offset, bits, .. } => {
                self.check_range(state, at, bytes, (*offset, *bits / 8))
            }
            Op::LoadBits { from: bytes, offset, field } | Op::StoreBits { to: bytes, offset, field, .. } => {
                self.check_range(state, at, bytes, (*offset, field.layout_bytes))
            }
            _ => Ok(Some(state)),
        }
    }

    /// Tests that `size` bytes from `offset` on are inside `bytes`.
    fn check_range(
        &mut self,
        mut state: SymbolicState,
        at: (usize, Location),
        bytes: &Place,
        (offset, size): (Value, u32),
    ) -> Result<Option<SymbolicState>, Refusal> {
        let (length, size) = (self.length_u64(&mut state, at, bytes), self.constant_u64(&mut state, size));
        let Some(mut state) = self.require(state, at, (BinaryOp::LessEqual, size, length))? else { return Ok(None) };
        let (offset, last) =
            (self.as_u64(&mut state, at, offset), self.emit_binary(&state, at, (BinaryOp::Subtract, length, size)));
        self.require(state, at, (BinaryOp::LessEqual, offset, last))
    }

    /// Tests that a slice is inside `bytes`; the state in which it is, and the length of the slice.
    fn check_slice(
        &mut self,
        mut state: SymbolicState,
        at: (usize, Location),
        bytes: &Place,
        (start, end): (Option<Value>, Option<Value>),
    ) -> Result<Option<(SymbolicState, Value)>, Refusal> {
        let mut width = self.length_u64(&mut state, at, bytes);
        if let Some(end) = end {
            let end = self.as_u64(&mut state, at, end);
            let Some(passed) = self.require(state, at, (BinaryOp::LessEqual, end, width))? else { return Ok(None) };
            (state, width) = (passed, end);
        }
        if let Some(start) = start {
            let start = self.as_u64(&mut state, at, start);
            let Some(passed) = self.require(state, at, (BinaryOp::LessEqual, start, width))? else { return Ok(None) };
            state = passed;
            width = self.emit_binary(&state, at, (BinaryOp::Subtract, width, start));
        }
        Ok(Some((state, width)))
    }

    /// A number of a member as an unsigned one of 64 bits; a negative number is greater than any length.
    fn as_u64(&mut self, state: &mut SymbolicState, (member, location): (usize, Location), value: Value) -> Value {
        let ty = self.group.members[member].body.values[value.0 as usize].ty;
        let value = self.symbolic_value(state, member, value);
        self.as_unsigned(state, value, ty, TypeTable::U64, location)
    }

    /// The present length of `bytes`, as an unsigned number of 64 bits.
    fn length_u64(&mut self, state: &mut SymbolicState, (member, location): (usize, Location), bytes: &Place) -> Value {
        let value = match self.known_length(state, member, bytes) {
            Some(length) => SymbolicValue::Constant(length),
            None => {
                let from = self.residual_place(state, member, bytes);
                let length = self.out.create_value(TypeTable::I32, None);
                self.out.emit(state.block, Some(length), Op::Length(from), location);
                SymbolicValue::Residual(length)
            }
        };
        self.as_unsigned(state, value, TypeTable::I32, TypeTable::U64, location)
    }

    fn bytes_bound(&self, member: usize, place: &Place) -> u32 {
        bytes_bound(self.group.types(), self.group.members[member].body, place)
    }

    fn constant_u64(&mut self, state: &mut SymbolicState, number: u32) -> Value {
        self.materialize(state, SymbolicValue::Constant(i128::from(number)), TypeTable::U64)
    }

    fn emit_binary(
        &mut self,
        state: &SymbolicState,
        at: (usize, Location),
        (op, a, b): (BinaryOp, Value, Value),
    ) -> Value {
        let result = self.out.create_value(TypeTable::U64, None);
        self.out.emit(state.block, Some(result), Op::Binary(op, a, b), at.1);
        result
    }

    /// As [`Explorer::require_comparison`], of values of the residue. Records no fact about them: they have no other
    /// use.
    fn require(
        &mut self,
        state: SymbolicState,
        (member, location): (usize, Location),
        (op, a, b): (BinaryOp, Value, Value),
    ) -> Result<Option<SymbolicState>, Refusal> {
        let holds = self.out.create_value(TypeTable::BOOL, None);
        self.out.emit(state.block, Some(holds), Op::Binary(op, a, b), location);
        let (mut state, mut fails) = (state.clone(), state);
        state.product.assume_fact(holds, Fact::constant(1));
        fails.product.assume_fact(holds, Fact::constant(0));
        self.branch_or_exit(state, fails, member, holds, location).map(Some)
    }
}
