//! What a fast path tests before an instruction that may fault: an index outside, a divisor that is 0. Then it is left
//! before the instruction, and the slow code faults. Knows no schedule.

use super::explore::Explorer;
use super::path::Path;
use super::residue::to;
use super::state::{Known, Test};
use crate::facts::{self, Fact};
use crate::fuse::Refusal;
use crate::path::Why;
use crate::path::split::indexed_places;
use quaject_esp_ir::ir::{
    BinaryOp, Instruction, Location, Op, Place, Step, Terminator, Type, TypeId, TypeTable, Value,
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
                let Step::Element(index) = place.path[position] else { continue };
                let holder = Place { base: place.base, path: place.path[..position].to_vec() };
                match self.within(path, member, &holder, index, next.location)? {
                    Some(passed) => path = passed,
                    None => return Ok(None),
                }
            }
        }
        Ok(Some(path))
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
            return self.leave_course(path, Why::Stops(member)).map(|()| None);
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
            Some(0) => return self.leave_course(path, Why::Stops(member)).map(|()| None),
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
        self.leave_course(fails, Why::Stops(member))?;
        Ok(path)
    }
}
