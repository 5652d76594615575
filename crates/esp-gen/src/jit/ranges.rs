//! Which numbers each value of a body can be: intervals, found forwards over the blocks until nothing grows. They show
//! that an index is inside, that a sum does not overflow. Knows no machine.

use super::flow::{Flow, edges};
use super::guards::Guards;
use quaject_esp_exec::native::width;
use quaject_esp_ir::ir::{BinaryOp, BlockId, Op, Place, Program, Type, TypeId, UnaryOp, Value};
use quaject_esp_ir::typing::place_type;

/// From, to, both included.
pub(super) type Range = (i128, i128);

/// After so many rounds a parameter that still grows does so by leaps.
const ROUNDS: usize = 4;

/// Per value: its range; what no path computes has an empty one.
pub(super) fn ranges(program: &Program, flow: &Flow<'_>, guards: &Guards) -> Vec<Range> {
    let mut finder = Finder { program, flow, guards, known: vec![None; flow.body.values.len()] };
    let mut round = 0;
    while finder.round(round >= ROUNDS) {
        round += 1;
    }
    let all =
        |(index, range): (usize, Option<Range>)| range.unwrap_or_else(|| whole(program, flow.body.values[index].ty));
    finder.known.clone().into_iter().enumerate().map(all).collect()
}

/// Every number that a register for this type holds.
fn whole(program: &Program, ty: TypeId) -> Range {
    match width(program, ty) {
        Some(width) if width.boolean => (0, 1),
        Some(width) if width.signed => (-(1 << (width.bits - 1)), (1 << (width.bits - 1)) - 1),
        Some(width) => (0, (1 << width.bits) - 1),
        None => (0, 0),
    }
}

struct Finder<'f, 'a> {
    program: &'f Program,
    flow: &'f Flow<'a>,
    guards: &'f Guards,
    known: Vec<Option<Range>>,
}

impl Finder<'_, '_> {
    /// Goes over all blocks once; whether a range has grown.
    fn round(&mut self, is_late: bool) -> bool {
        let mut grown = false;
        for block in self.flow.order.clone() {
            if self.flow.resumed[block.0 as usize] {
                for parameter in &self.flow.body.blocks[block.0 as usize].parameters {
                    grown |= self.widen(*parameter, whole(self.program, self.ty(*parameter)), false);
                }
            }
            for instruction in &self.flow.body.blocks[block.0 as usize].instructions {
                if let Some(result) = instruction.result
                    && let Some(range) = self.result(&instruction.op, result, block)
                {
                    grown |= self.widen(result, range, false);
                }
            }
            grown |= self.pass_on(block, is_late);
        }
        grown
    }

    fn pass_on(&mut self, block: BlockId, is_late: bool) -> bool {
        let body = self.flow.body;
        let mut grown = false;
        for (to, arguments, _) in edges(body, block) {
            for (argument, parameter) in arguments.iter().zip(&body.blocks[to.0 as usize].parameters) {
                if let Some(range) = self.narrowed(block, *argument) {
                    grown |= self.widen(*parameter, range, is_late);
                }
            }
        }
        grown
    }

    fn narrowed(&self, block: BlockId, value: Value) -> Option<Range> {
        self.guards.narrow(block, value, &|value| self.known[value.0 as usize])
    }

    fn ty(&self, value: Value) -> TypeId {
        self.flow.body.values[value.0 as usize].ty
    }

    fn widen(&mut self, value: Value, range: Range, is_late: bool) -> bool {
        let whole = whole(self.program, self.ty(value));
        let range = if range.0 < whole.0 || range.1 > whole.1 { whole } else { range };
        let joined = match self.known[value.0 as usize] {
            None => range,
            Some(known) if known.0 <= range.0 && range.1 <= known.1 => return false,
            Some(known) if is_late => {
                let far = far((known.0.min(range.0), known.1.max(range.1)));
                (far.0.max(whole.0), far.1.min(whole.1))
            }
            Some(known) => (known.0.min(range.0), known.1.max(range.1)),
        };
        self.known[value.0 as usize] = Some(joined);
        true
    }

    /// The range of what an instruction computes; none while an operand has none.
    fn result(&self, op: &Op, result: Value, block: BlockId) -> Option<Range> {
        let known = |value: &Value| self.narrowed(block, *value);
        let all = whole(self.program, self.ty(result));
        Some(match op {
            Op::Constant(value) => {
                if all.0 <= *value && *value <= all.1 {
                    (*value, *value)
                } else {
                    all
                }
            }
            Op::Unary(UnaryOp::Not, _) => (0, 1),
            Op::Unary(UnaryOp::Negate, value) => {
                let range = known(value)?;
                (-range.1, -range.0)
            }
            Op::Unary(UnaryOp::Complement, _) => all,
            Op::Binary(op, a, b) => binary(*op, known(a)?, known(b)?, all),
            Op::Convert(value) => {
                let range = known(value)?;
                if all.0 <= range.0 && range.1 <= all.1 { range } else { all }
            }
            Op::Length(place) => (0, self.bound(place)),
            _ => all,
        })
    }

    fn bound(&self, place: &Place) -> i128 {
        match place_type(&self.program.types, self.flow.body, place).map(|ty| self.program.types.get(ty)) {
            Some(Type::Bytes { bound }) => i128::from(*bound),
            Some(_) | None => i128::from(u32::MAX),
        }
    }
}

/// The next range at least as large whose ends are powers of two.
fn far(range: Range) -> Range {
    const BITS: [u32; 9] = [3, 5, 8, 15, 16, 31, 32, 63, 64];
    let reach = |number: i128| BITS.iter().map(|bits| 1i128 << bits).find(|power| number < *power).unwrap_or(i128::MAX);
    let first = if range.0 >= 0 { 0 } else { -reach(-range.0 - 1) };
    (first, if range.1 < 0 { -1 } else { reach(range.1) - 1 })
}

fn binary(op: BinaryOp, a: Range, b: Range, all: Range) -> Range {
    let corners = |f: fn(i128, i128) -> i128| {
        let values = [f(a.0, b.0), f(a.0, b.1), f(a.1, b.0), f(a.1, b.1)];
        let least = values.iter().copied().fold(i128::MAX, i128::min);
        (least, values.iter().copied().fold(i128::MIN, i128::max))
    };
    let is_natural = a.0 >= 0 && b.0 >= 0;
    match op {
        BinaryOp::Add => (a.0 + b.0, a.1 + b.1),
        BinaryOp::Subtract => (a.0 - b.1, a.1 - b.0),
        BinaryOp::Multiply => corners(i128::saturating_mul),
        BinaryOp::BitAnd if is_natural => (0, a.1.min(b.1)),
        BinaryOp::BitAnd if a.0 >= 0 => (0, a.1),
        BinaryOp::BitAnd if b.0 >= 0 => (0, b.1),
        BinaryOp::BitOr | BinaryOp::BitXor if is_natural => {
            (0, (a.1.max(b.1) as u128 + 1).next_power_of_two() as i128 - 1)
        }
        BinaryOp::Remainder if is_natural && b.0 > 0 => (0, (b.1 - 1).min(a.1)),
        BinaryOp::Divide if is_natural && b.0 > 0 => (a.0 / b.1, a.1 / b.0),
        // A count below every width is not taken modulo it.
        BinaryOp::ShiftRight if is_natural && b.0 == b.1 && b.1 < 8 => (a.0 >> b.0, a.1 >> b.0),
        BinaryOp::ShiftRight if a.0 >= 0 => (0, a.1),
        BinaryOp::Equal
        | BinaryOp::NotEqual
        | BinaryOp::Less
        | BinaryOp::LessEqual
        | BinaryOp::Greater
        | BinaryOp::GreaterEqual => (0, 1),
        BinaryOp::BitAnd
        | BinaryOp::BitOr
        | BinaryOp::BitXor
        | BinaryOp::Remainder
        | BinaryOp::Divide
        | BinaryOp::ShiftLeft
        | BinaryOp::ShiftRight => all,
    }
}
