//! What a fast path tests before an instruction that may fault: an index outside, a divisor that is 0, a length or number
//! that does not fit, a pool that has no object left. Then it is left before the instruction, and the slow code faults.
//! Knows no schedule.

use super::explore::Explorer;
use super::path::Path;
use super::residue::to;
use super::state::{Known, Test};
use crate::facts::{self, Fact};
use crate::path_exit::ExitReason;
use crate::places::{bytes_bound, indexed_places};
use crate::refusal::Refusal;
use quaject_esp_ir::ir::{
    BinaryOp, Instruction, Location, Op, Place, Projection, Terminator, Type, TypeId, TypeTable, Value,
};
use quaject_esp_ir::typing::place_type;

impl<'g, 'p> Explorer<'g, 'p> {
    /// Goes on to an instruction of a member if it will not fault; none if it is known to.
    pub(super) fn guarded(&mut self, path: Path, member: usize, next: &Instruction) -> Result<Option<Path>, Refusal> {
        let mut path = path;
        if let Op::Binary(BinaryOp::Divide | BinaryOp::Remainder, _, by) = next.op {
            let known = self.known(&path, member, by);
            let ty = self.group.members[member].body.values[by.0 as usize].ty;
            match self.insist(path, member, (BinaryOp::NotEqual, known, Known::Constant(0), ty), next.location)? {
                Some(passed) => path = passed,
                None => return Ok(None),
            }
        }
        for place in indexed_places(&next.op) {
            for position in 0..place.path.len() {
                let Projection::Element(index) = place.path[position] else { continue };
                let holder = Place { base: place.base, path: place.path[..position].to_vec() };
                match self.within(path, member, &holder, index, next.location)? {
                    Some(passed) => path = passed,
                    None => return Ok(None),
                }
            }
        }
        self.fits(path, member, next)
    }

    /// An index of a member lies in what it indexes: one comparison, as C makes it before the instruction itself, so
    /// that its compiler finds that made.
    fn within(
        &mut self,
        mut path: Path,
        member: usize,
        holder: &Place,
        index: Value,
        location: Location,
    ) -> Result<Option<Path>, Refusal> {
        let body = self.group.members[member].body;
        let ty = body.values[index.0 as usize].ty;
        let types = self.group.types();
        let (length, lengths) = match place_type(types, body, holder).map(|holder| types.get(holder)) {
            Some(Type::Array { length, element: _ }) => {
                (Known::Constant(i128::from(*length)), Fact::constant(i128::from(*length)))
            }
            Some(Type::Bytes { .. }) => match self.length(&path, member, holder) {
                Some(length) => (Known::Constant(length), Fact::constant(length)),
                None => {
                    let from = self.place(&mut path, member, holder);
                    let length = self.out.value(TypeTable::I32, None);
                    self.out.emit(path.block, Some(length), Op::Length(from), location);
                    // Bounds would be ends of intervals that the keys of nodes do not have.
                    (Known::Value(length), Fact::between(0, i128::from(i32::MAX)))
                }
            },
            Some(_) | None => return Ok(Some(path)),
        };
        let known = self.known(&path, member, index);
        let fact = path.state.fact(self.group, known, ty);
        if fact.low >= 0 && fact.high < lengths.low {
            return Ok(Some(path));
        }
        let Some(inside) = fact.within(0, lengths.high - 1) else {
            return self.leave_course(path, ExitReason::Stops(member)).map(|()| None);
        };
        let is_wide = matches!(types.get(ty), Type::Int(int) if int.bits() == 64);
        let unsigned = if is_wide { TypeTable::U64 } else { TypeTable::U32 };
        let left = self.unsigned(&mut path, known, ty, unsigned, location);
        let right = self.unsigned(&mut path, length, TypeTable::I32, unsigned, location);
        let holds = self.out.value(TypeTable::BOOL, None);
        self.out.emit(path.block, Some(holds), Op::Binary(BinaryOp::Less, left, right), location);
        let mut fails = path.clone();
        path.state.learn(holds, Fact::constant(1));
        if let Known::Value(index) = known {
            path.state.learn(index, inside);
        }
        fails.state.learn(holds, Fact::constant(0));
        self.part_ways(path, fails, member, holds, location).map(Some)
    }

    /// A number as one without a sign, negative ones as more than any length.
    fn unsigned(&mut self, path: &mut Path, known: Known, ty: TypeId, wanted: TypeId, location: Location) -> Value {
        match known {
            Known::Constant(constant) if constant >= 0 => self.materialize(path, known, wanted),
            Known::Constant(_) | Known::Value(_) => {
                let value = self.materialize(path, known, ty);
                if ty == wanted {
                    return value;
                }
                let converted = self.out.value(wanted, None);
                self.out.emit(path.block, Some(converted), Op::Convert(value), location);
                converted
            }
        }
    }

    /// Goes on if a comparison holds, else leaves the path.
    fn insist(
        &mut self,
        mut path: Path,
        member: usize,
        (op, a, b, ty): (BinaryOp, Known, Known, TypeId),
        location: Location,
    ) -> Result<Option<Path>, Refusal> {
        let types = self.group.types();
        let (fact_a, fact_b) = (path.state.fact(self.group, a, ty), path.state.fact(self.group, b, ty));
        match facts::binary(types, TypeTable::BOOL, op, ty, &fact_a, &fact_b).as_constant() {
            Some(0) => return self.leave_course(path, ExitReason::Stops(member)).map(|()| None),
            Some(_) => return Ok(Some(path)),
            None => {}
        }
        let left = self.materialize(&mut path, a, ty);
        let right = self.materialize(&mut path, b, ty);
        let holds = self.out.value(TypeTable::BOOL, None);
        self.out.emit(path.block, Some(holds), Op::Binary(op, left, right), location);
        path.state.tests.insert(holds, Test::Compare(op, a, b, ty));
        let mut fails = path.clone();
        path.state.assume(self.group, holds, true);
        fails.state.assume(self.group, holds, false);
        self.part_ways(path, fails, member, holds, location).map(Some)
    }

    /// Goes on where a condition holds; where it fails the path is left.
    fn part_ways(
        &mut self,
        mut path: Path,
        mut fails: Path,
        member: usize,
        holds: Value,
        location: Location,
    ) -> Result<Path, Refusal> {
        let from = path.block;
        path.block = self.out.block(Vec::new());
        fails.block = self.out.block(Vec::new());
        let branch = Terminator::Branch { condition: holds, then: to(path.block), otherwise: to(fails.block) };
        self.out.finish(from, branch, location);
        self.leave_course(fails, ExitReason::Stops(member))?;
        Ok(path)
    }

    /// Goes on to an instruction of a member if there is room for what it makes; none if it is known that there is not.
    fn fits(&mut self, mut path: Path, member: usize, next: &Instruction) -> Result<Option<Path>, Refusal> {
        let location = next.location;
        let at = (member, location);
        match &next.op {
            Op::Allocate(pool) => {
                let free = self.out.value(TypeTable::I32, None);
                self.out.emit(path.block, Some(free), Op::FreeObjects(*pool), location);
                let none = self.materialize(&mut path, Known::Constant(0), TypeTable::I32);
                self.ask(path, at, (BinaryOp::NotEqual, free, none))
            }
            Op::InstanceOf(process, replica) => {
                let replicas = self.group.program.processes[process.0 as usize].replicas;
                let ty = self.group.members[member].body.values[replica.0 as usize].ty;
                let fact = path.state.fact(self.group, self.known(&path, member, *replica), ty);
                if fact.low >= 0 && fact.high < i128::from(replicas) {
                    return Ok(Some(path));
                }
                let (replica, replicas) = (self.wide(&mut path, at, *replica), self.number(&mut path, replicas));
                self.ask(path, at, (BinaryOp::Less, replica, replicas))
            }
            Op::SetLength(place, length) => {
                let (length, bound) = (self.wide(&mut path, at, *length), self.bytes_bound(member, place));
                let bound = self.number(&mut path, bound);
                self.ask(path, at, (BinaryOp::LessEqual, length, bound))
            }
            Op::Copy { to, from } => {
                if self.bytes_bound(member, from) <= self.bytes_bound(member, to) {
                    return Ok(Some(path));
                }
                let (length, bound) = (self.length_of(&mut path, at, from), self.bytes_bound(member, to));
                let bound = self.number(&mut path, bound);
                self.ask(path, at, (BinaryOp::LessEqual, length, bound))
            }
            Op::Append { to, from } => {
                let (old, more) = (self.length_of(&mut path, at, to), self.length_of(&mut path, at, from));
                let (sum, bound) = (self.compute(&path, at, (BinaryOp::Add, old, more)), self.bytes_bound(member, to));
                let bound = self.number(&mut path, bound);
                self.ask(path, at, (BinaryOp::LessEqual, sum, bound))
            }
            Op::CopySlice { to, from, start, end } => {
                let Some((mut path, width)) = self.slice(path, at, from, (*start, *end))? else { return Ok(None) };
                if self.bytes_bound(member, from) <= self.bytes_bound(member, to) {
                    return Ok(Some(path));
                }
                let bound = self.bytes_bound(member, to);
                let bound = self.number(&mut path, bound);
                self.ask(path, at, (BinaryOp::LessEqual, width, bound))
            }
            Op::StoreSlice { to, start, end, from } => {
                let Some((mut path, width)) = self.slice(path, at, to, (*start, *end))? else { return Ok(None) };
                let length = self.length_of(&mut path, at, from);
                self.ask(path, at, (BinaryOp::Equal, width, length))
            }
            Op::LoadNumber { from: bytes, offset, bits, .. } | Op::StoreNumber { to: bytes, offset, bits, .. } => {
                self.holds(path, at, bytes, (*offset, *bits / 8))
            }
            Op::LoadBits { from: bytes, offset, field } | Op::StoreBits { to: bytes, offset, field, .. } => {
                self.holds(path, at, bytes, (*offset, field.layout_bytes))
            }
            _ => Ok(Some(path)),
        }
    }

    /// From an offset on there are so many bytes.
    fn holds(
        &mut self,
        mut path: Path,
        at: (usize, Location),
        bytes: &Place,
        (offset, size): (Value, u32),
    ) -> Result<Option<Path>, Refusal> {
        let (length, size) = (self.length_of(&mut path, at, bytes), self.number(&mut path, size));
        let Some(mut path) = self.ask(path, at, (BinaryOp::LessEqual, size, length))? else { return Ok(None) };
        let (offset, last) =
            (self.wide(&mut path, at, offset), self.compute(&path, at, (BinaryOp::Subtract, length, size)));
        self.ask(path, at, (BinaryOp::LessEqual, offset, last))
    }

    /// A slice lies in its bytes; how long it is.
    fn slice(
        &mut self,
        mut path: Path,
        at: (usize, Location),
        bytes: &Place,
        (start, end): (Option<Value>, Option<Value>),
    ) -> Result<Option<(Path, Value)>, Refusal> {
        let mut width = self.length_of(&mut path, at, bytes);
        if let Some(end) = end {
            let end = self.wide(&mut path, at, end);
            let Some(passed) = self.ask(path, at, (BinaryOp::LessEqual, end, width))? else { return Ok(None) };
            (path, width) = (passed, end);
        }
        if let Some(start) = start {
            let start = self.wide(&mut path, at, start);
            let Some(passed) = self.ask(path, at, (BinaryOp::LessEqual, start, width))? else { return Ok(None) };
            path = passed;
            width = self.compute(&path, at, (BinaryOp::Subtract, width, start));
        }
        Ok(Some((path, width)))
    }

    /// A number of a member as 64 bits without a sign, negative ones as more than any length.
    fn wide(&mut self, path: &mut Path, (member, location): (usize, Location), value: Value) -> Value {
        let known = self.known(path, member, value);
        let ty = self.group.members[member].body.values[value.0 as usize].ty;
        self.unsigned(path, known, ty, TypeTable::U64, location)
    }

    /// The present length of `bytes`, as 64 bits without a sign.
    fn length_of(&mut self, path: &mut Path, (member, location): (usize, Location), bytes: &Place) -> Value {
        let known = match self.length(path, member, bytes) {
            Some(length) => Known::Constant(length),
            None => {
                let from = self.place(path, member, bytes);
                let length = self.out.value(TypeTable::I32, None);
                self.out.emit(path.block, Some(length), Op::Length(from), location);
                Known::Value(length)
            }
        };
        self.unsigned(path, known, TypeTable::I32, TypeTable::U64, location)
    }

    fn bytes_bound(&self, member: usize, place: &Place) -> u32 {
        bytes_bound(self.group.types(), self.group.members[member].body, place)
    }

    fn number(&mut self, path: &mut Path, number: u32) -> Value {
        self.materialize(path, Known::Constant(i128::from(number)), TypeTable::U64)
    }

    fn compute(&mut self, path: &Path, at: (usize, Location), (op, a, b): (BinaryOp, Value, Value)) -> Value {
        let result = self.out.value(TypeTable::U64, None);
        self.out.emit(path.block, Some(result), Op::Binary(op, a, b), at.1);
        result
    }

    /// Goes on if a comparison holds, else leaves the path. Nothing is learned of the numbers, which nobody else uses.
    fn ask(
        &mut self,
        path: Path,
        (member, location): (usize, Location),
        (op, a, b): (BinaryOp, Value, Value),
    ) -> Result<Option<Path>, Refusal> {
        let holds = self.out.value(TypeTable::BOOL, None);
        self.out.emit(path.block, Some(holds), Op::Binary(op, a, b), location);
        let (mut path, mut fails) = (path.clone(), path);
        path.state.learn(holds, Fact::constant(1));
        fails.state.learn(holds, Fact::constant(0));
        self.part_ways(path, fails, member, holds, location).map(Some)
    }
}
