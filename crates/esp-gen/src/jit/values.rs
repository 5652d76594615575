//! What becomes of each value: a constant in the instructions that use it, another name of a value, a comparison that a
//! branch makes itself, or a register. Knows no machine.

use super::flow::{Flow, op_uses, terminator_uses};
use super::guards::Guards;
use super::ranges::{Range, ranges};
use quaject_esp_exec::native::{Width, width};
use quaject_esp_ir::ir::{BinaryOp, Op, Program, Terminator, Value};

/// What becomes of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Form {
    /// It is computed to a register or cell of its own.
    Own,
    /// This number, as a register holds it.
    Constant(i64),
    /// The same bits as another value, which is kept as long.
    Same(Value),
    /// The low bits of another value; only memory that has no room for more receives it.
    Low(Value),
    /// The branch behind it compares.
    Compared(BinaryOp, Value, Value),
}

/// All values of a body.
pub(super) struct Values {
    pub(super) forms: Vec<Form>,
    pub(super) widths: Vec<Width>,
    pub(super) ranges: Vec<Range>,
}

/// Who uses a value.
#[derive(Clone, Copy, Default)]
struct Uses {
    all: u32,
    stored: u32,
}

impl Values {
    pub(super) fn new(program: &Program, flow: &Flow<'_>, guards: &Guards) -> Values {
        let body = flow.body;
        let widths = body.values.iter().map(|value| width(program, value.ty).expect("values are scalars"));
        let mut values = Values {
            forms: vec![Form::Own; body.values.len()],
            widths: widths.collect(),
            ranges: ranges(program, flow, guards),
        };
        let uses = count_uses(flow);
        for block in &flow.order {
            let block = &body.blocks[block.0 as usize];
            for instruction in &block.instructions {
                if let Some(result) = instruction.result {
                    values.forms[result.0 as usize] = values.form(&instruction.op, result, uses[result.0 as usize]);
                }
            }
            if let Terminator::Branch { condition, .. } = &block.terminator
                && uses[condition.0 as usize].all == 1
            {
                let after = block.instructions.iter().rev().take_while(|i| i.result != Some(*condition));
                let defined = block.instructions.iter().rev().find(|i| i.result == Some(*condition));
                if let Some(Op::Binary(op, a, b)) = defined.map(|instruction| &instruction.op)
                    && op.is_comparison()
                    && after.map(|instruction| &instruction.op).all(never_leaves)
                {
                    values.forms[condition.0 as usize] = Form::Compared(*op, *a, *b);
                }
            }
        }
        values
    }

    fn form(&self, op: &Op, result: Value, uses: Uses) -> Form {
        let to = self.widths[result.0 as usize];
        match op {
            Op::Constant(value) => Form::Constant(wrap(to, *value as i64)),
            Op::Convert(value) => {
                let from = self.widths[value.0 as usize];
                if self.keeps_bits(*value, from, to) {
                    Form::Same(*value)
                } else if !to.boolean && to.bits < 32 && from.bits <= 32 && uses.all == uses.stored {
                    Form::Low(*value)
                } else {
                    Form::Own
                }
            }
            _ => Form::Own,
        }
    }

    /// Whether a register for the one type holds the other's bits too: 32 bits or less are extended to 32, and what is
    /// above is not looked at.
    fn keeps_bits(&self, value: Value, from: Width, to: Width) -> bool {
        let range = self.ranges[value.0 as usize];
        if to.boolean {
            return from.bits <= 32 && range.0 >= 0 && range.1 <= 1;
        }
        let is_small = from.bits <= 32 && to.bits == 32 || from.bits == 64 && to.bits == 64;
        let most = 1i128 << (to.bits - u32::from(to.signed));
        is_small || from.bits <= 32 && to.bits < 32 && range.1 < most && range.0 >= if to.signed { -most } else { 0 }
    }

    /// The value whose register holds this one's bits; none of constants and comparisons.
    pub(super) fn root(&self, value: Value) -> Option<Value> {
        match self.forms[value.0 as usize] {
            Form::Own => Some(value),
            Form::Constant(_) | Form::Compared(..) => None,
            Form::Same(of) | Form::Low(of) => self.root(of),
        }
    }

    /// The number that a value always is, as a register holds it.
    pub(super) fn constant(&self, value: Value) -> Option<i64> {
        match self.forms[value.0 as usize] {
            Form::Constant(number) => Some(number),
            Form::Same(of) => self.constant(of).map(|number| wrap(self.widths[value.0 as usize], number)),
            Form::Low(of) => self.constant(of).map(|number| wrap(self.widths[value.0 as usize], number)),
            Form::Own | Form::Compared(..) => None,
        }
    }

    pub(super) fn width(&self, value: Value) -> Width {
        self.widths[value.0 as usize]
    }

    pub(super) fn range(&self, value: Value) -> Range {
        self.ranges[value.0 as usize]
    }
}

/// The number with the same low bits that a register of this width holds.
pub(super) fn wrap(width: Width, value: i64) -> i64 {
    if width.boolean {
        return i64::from(value != 0);
    }
    let shift = 64 - width.bits;
    if width.signed { (value << shift) >> shift } else { (((value as u64) << shift) >> shift) as i64 }
}

/// Whether machine code for it never goes back to the interpreter.
fn never_leaves(op: &Op) -> bool {
    match op {
        Op::Constant(_) | Op::Mark(_) | Op::Test(..) | Op::Convert(_) => true,
        Op::Binary(op, ..) => op.is_comparison(),
        _ => false,
    }
}

fn count_uses(flow: &Flow<'_>) -> Vec<Uses> {
    let body = flow.body;
    let mut uses = vec![Uses::default(); body.values.len()];
    for block in &flow.order {
        let code = &body.blocks[block.0 as usize];
        for instruction in &code.instructions {
            op_uses(&instruction.op).into_iter().for_each(|value| uses[value.0 as usize].all += 1);
            if let Op::Store(_, value) = &instruction.op {
                uses[value.0 as usize].stored += 1;
            }
        }
        terminator_uses(body, &code.terminator).into_iter().for_each(|value| uses[value.0 as usize].all += 1);
        for (_, arguments, _) in super::flow::edges(body, *block) {
            arguments.iter().for_each(|value| uses[value.0 as usize].all += 1);
        }
    }
    uses
}
