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

    /// An index of a member lies in what it indexes.
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
        let length = match place_type(types, body, holder).map(|holder| types.get(holder)) {
            Some(Type::Array { length, element: _ }) => Known::Constant(i128::from(*length)),
            Some(Type::Bytes { .. }) if self.length(&path, member, holder).is_some() => {
                Known::Constant(self.length(&path, member, holder).unwrap_or_default())
            }
            Some(Type::Bytes { .. }) => {
                let from = self.place(&mut path, member, holder);
                let length = self.out.value(TypeTable::I32, None);
                self.out.emit(path.block, Some(length), Op::Length(from), location);
                Known::Value(length)
            }
            Some(_) | None => return Ok(Some(path)),
        };
        let known = self.known(&path, member, index);
        let Some(path) =
            self.insist(path, member, (BinaryOp::GreaterEqual, known, Known::Constant(0), ty), location)?
        else {
            return Ok(None);
        };
        self.insist(path, member, (BinaryOp::Less, known, length, ty), location)
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
        let whole = Fact::of_type(types, ty);
        if let Known::Constant(limit) = b
            && op == BinaryOp::Less
            && limit > whole.high
        {
            return Ok(Some(path));
        }
        let (fact_a, fact_b) = (path.state.fact(self.group, a, ty), path.state.fact(self.group, b, ty));
        match facts::binary(types, TypeTable::BOOL, op, ty, &fact_a, &fact_b).as_constant() {
            Some(0) => return self.leave_course(path, Why::Stops(member)).map(|()| None),
            Some(_) => return Ok(Some(path)),
            None => {}
        }
        let mut left = self.materialize(&mut path, a, ty);
        let mut right = self.materialize(&mut path, b, ty);
        // Lengths are `int`: a narrow index is widened to it, a wide one compared as what it is.
        if matches!(b, Known::Value(_)) && ty != TypeTable::I32 {
            let (narrow, wide) =
                if whole.high < i128::from(i32::MAX) { (&mut left, TypeTable::I32) } else { (&mut right, ty) };
            let widened = self.out.value(wide, None);
            self.out.emit(path.block, Some(widened), Op::Convert(*narrow), location);
            *narrow = widened;
        }
        let holds = self.out.value(TypeTable::BOOL, None);
        self.out.emit(path.block, Some(holds), Op::Binary(op, left, right), location);
        path.state.tests.insert(holds, Test::Compare(op, a, b, ty));
        let mut fails = path.clone();
        path.state.assume(self.group, holds, true);
        fails.state.assume(self.group, holds, false);
        let from = path.block;
        path.block = self.out.block(Vec::new());
        fails.block = self.out.block(Vec::new());
        let branch = Terminator::Branch { condition: holds, then: to(path.block), otherwise: to(fails.block) };
        self.out.finish(from, branch, location);
        self.leave_course(fails, Why::Stops(member))?;
        Ok(Some(path))
    }
}
