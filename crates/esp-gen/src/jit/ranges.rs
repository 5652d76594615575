//! Interval analysis of the values of a body (Cousot and Cousot, 1977), with widening to powers of two. It shows that
//! an index is in bounds and that a sum does not overflow. Knows no machine.

use super::branch_facts::BranchFacts;
use super::code_layout::{CodeLayout, edges};
use super::interval::Interval;
use quaject_esp_exec::native::width;
use quaject_esp_ir::ir::{BinaryOp, BlockId, Op, Place, Program, Type, TypeId, UnaryOp, Value};
use quaject_esp_ir::typing::place_type;

/// The number of rounds after which a parameter that still grows is widened.
const ROUNDS: usize = 4;

/// Per value: its interval; that of its type if it is never computed.
pub(super) fn ranges(program: &Program, layout: &CodeLayout<'_>, guards: &BranchFacts) -> Vec<Interval> {
    let mut finder = IntervalSolver { program, layout, guards, known: vec![None; layout.body.values.len()] };
    let mut round = 0;
    while finder.round(round >= ROUNDS) {
        round += 1;
    }
    let all = |(index, range): (usize, Option<Interval>)| {
        range.unwrap_or_else(|| type_interval(program, layout.body.values[index].ty))
    };
    finder.known.clone().into_iter().enumerate().map(all).collect()
}

/// The interval of a type.
fn type_interval(program: &Program, ty: TypeId) -> Interval {
    match width(program, ty) {
        Some(width) if width.boolean => (0, 1),
        Some(width) if width.signed => (-(1 << (width.bits - 1)), (1 << (width.bits - 1)) - 1),
        Some(width) => (0, (1 << width.bits) - 1),
        None => (0, 0),
    }
}

struct IntervalSolver<'f, 'a> {
    program: &'f Program,
    layout: &'f CodeLayout<'a>,
    guards: &'f BranchFacts,
    known: Vec<Option<Interval>>,
}

impl IntervalSolver<'_, '_> {
    /// Visits all blocks once; whether an interval has grown.
    fn round(&mut self, is_late: bool) -> bool {
        let mut grown = false;
        for block in self.layout.order.clone() {
            if self.layout.is_entry[block.0 as usize] {
                for parameter in &self.layout.body.blocks[block.0 as usize].parameters {
                    grown |= self.widen(*parameter, type_interval(self.program, self.ty(*parameter)), false);
                }
            }
            for instruction in &self.layout.body.blocks[block.0 as usize].instructions {
                if let Some(result) = instruction.result
                    && let Some(range) = self.result(&instruction.op, result, block)
                {
                    grown |= self.widen(result, range, false);
                }
            }
            grown |= self.propagate_edges(block, is_late);
        }
        grown
    }

    fn propagate_edges(&mut self, block: BlockId, is_late: bool) -> bool {
        let body = self.layout.body;
        let mut grown = false;
        for (to, arguments, _) in edges(body, block) {
            for (argument, parameter) in arguments.iter().zip(&body.blocks[to.0 as usize].parameters) {
                if let Some(range) = self.refined(block, *argument) {
                    grown |= self.widen(*parameter, range, is_late);
                }
            }
        }
        grown
    }

    fn refined(&self, block: BlockId, value: Value) -> Option<Interval> {
        self.guards.refine(block, value, &|value| self.known[value.0 as usize])
    }

    fn ty(&self, value: Value) -> TypeId {
        self.layout.body.values[value.0 as usize].ty
    }

    fn widen(&mut self, value: Value, range: Interval, is_late: bool) -> bool {
        let all = type_interval(self.program, self.ty(value));
        let range = if range.0 < all.0 || range.1 > all.1 { all } else { range };
        let joined = match self.known[value.0 as usize] {
            None => range,
            Some(known) if known.0 <= range.0 && range.1 <= known.1 => return false,
            Some(known) if is_late => {
                let wide = widened((known.0.min(range.0), known.1.max(range.1)));
                (wide.0.max(all.0), wide.1.min(all.1))
            }
            Some(known) => (known.0.min(range.0), known.1.max(range.1)),
        };
        self.known[value.0 as usize] = Some(joined);
        true
    }

    /// The interval of the result of an instruction; none while an operand has none.
    fn result(&self, op: &Op, result: Value, block: BlockId) -> Option<Interval> {
        let known = |value: &Value| self.refined(block, *value);
        let all = type_interval(self.program, self.ty(result));
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
        match place_type(&self.program.types, self.layout.body, place).map(|ty| self.program.types.get(ty)) {
            Some(Type::Bytes { bound }) => i128::from(*bound),
            Some(_) | None => i128::from(u32::MAX),
        }
    }
}

/// The smallest interval around this one from 0 or a negated power of two to a power of two less one.
fn widened(range: Interval) -> Interval {
    const BITS: [u32; 9] = [3, 5, 8, 15, 16, 31, 32, 63, 64];
    let reach = |number: i128| BITS.iter().map(|bits| 1i128 << bits).find(|power| number < *power).unwrap_or(i128::MAX);
    let first = if range.0 >= 0 { 0 } else { -reach(-range.0 - 1) };
    (first, if range.1 < 0 { -1 } else { reach(range.1) - 1 })
}

fn binary(op: BinaryOp, a: Interval, b: Interval, all: Interval) -> Interval {
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
