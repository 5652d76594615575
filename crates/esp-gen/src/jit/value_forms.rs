//! The form that each value takes in machine code: computed to a location of its own, an immediate operand, an alias of
//! another value, or a comparison that is fused with its branch. Knows no machine.

use super::code_layout::{CodeLayout, op_uses, terminator_uses};
use quaject_esp_exec::native::{Width, width};
use quaject_esp_exec::step::Checks;
use quaject_esp_ir::facts::Fact;
use quaject_esp_ir::intervals::{Intervals, intervals_by_block};
use quaject_esp_ir::ir::{BinaryOp, BlockId, Op, Program, Terminator, Value};

/// The form of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ValueForm {
    /// An instruction computes it to a register or cell of its own.
    Computed,
    /// A constant, as a register holds it: an immediate operand.
    Constant(i64),
    /// The same bits as another value, which is kept live instead.
    Alias(Value),
    /// The low bits of another value. It is used only by stores of that width, which ignore the other bits.
    Truncated(Value),
    /// A comparison that the branch behind it makes.
    FusedCompare(BinaryOp, Value, Value),
}

/// All values of a body.
pub(super) struct ValueForms {
    pub(super) forms: Vec<ValueForm>,
    pub(super) widths: Vec<Width>,
    intervals: Intervals,
}

/// Lower and upper bound, both included.
pub(super) type Interval = (i128, i128);

/// How often a value is used.
#[derive(Clone, Copy, Default)]
struct Uses {
    all: u32,
    stored: u32,
}

impl ValueForms {
    pub(super) fn new(program: &Program, layout: &CodeLayout<'_>, checks: Checks) -> ValueForms {
        let body = layout.body;
        let widths = body.values.iter().map(|value| width(program, value.ty).expect("values are scalars"));
        let mut values = ValueForms {
            forms: vec![ValueForm::Computed; body.values.len()],
            widths: widths.collect(),
            intervals: intervals_by_block(body, &program.types, checks == Checks::On),
        };
        let uses = count_uses(layout);
        for block in &layout.order {
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
                    && after.map(|instruction| &instruction.op).all(never_exits)
                {
                    values.forms[condition.0 as usize] = ValueForm::FusedCompare(*op, *a, *b);
                }
            }
        }
        values
    }

    fn form(&self, op: &Op, result: Value, uses: Uses) -> ValueForm {
        let to = self.widths[result.0 as usize];
        match op {
            Op::Constant(value) => ValueForm::Constant(wrap(to, *value as i64)),
            Op::Convert(value) => {
                let from = self.widths[value.0 as usize];
                if self.keeps_bits(*value, from, to) {
                    ValueForm::Alias(*value)
                } else if !to.boolean && to.bits < 32 && from.bits <= 32 && uses.all == uses.stored {
                    ValueForm::Truncated(*value)
                } else {
                    ValueForm::Computed
                }
            }
            _ => ValueForm::Computed,
        }
    }

    /// Whether a register that holds the one type also holds the other: types of 32 bits or fewer are kept extended to
    /// 32, and higher bits do not count.
    fn keeps_bits(&self, value: Value, from: Width, to: Width) -> bool {
        let range = self.range(value);
        if to.boolean {
            return from.bits <= 32 && range.0 >= 0 && range.1 <= 1;
        }
        let is_small = from.bits <= 32 && to.bits == 32 || from.bits == 64 && to.bits == 64;
        let max = 1i128 << (to.bits - u32::from(to.signed));
        is_small || from.bits <= 32 && to.bits < 32 && range.1 < max && range.0 >= if to.signed { -max } else { 0 }
    }

    /// The value whose register holds this one's bits; none of constants and comparisons.
    pub(super) fn root(&self, value: Value) -> Option<Value> {
        match self.forms[value.0 as usize] {
            ValueForm::Computed => Some(value),
            ValueForm::Constant(_) | ValueForm::FusedCompare(..) => None,
            ValueForm::Alias(of) | ValueForm::Truncated(of) => self.root(of),
        }
    }

    /// The number that a value always is, as a register holds it.
    pub(super) fn constant(&self, value: Value) -> Option<i64> {
        match self.forms[value.0 as usize] {
            ValueForm::Constant(number) => Some(number),
            ValueForm::Alias(of) => self.constant(of).map(|number| wrap(self.widths[value.0 as usize], number)),
            ValueForm::Truncated(of) => self.constant(of).map(|number| wrap(self.widths[value.0 as usize], number)),
            ValueForm::Computed | ValueForm::FusedCompare(..) => None,
        }
    }

    pub(super) fn width(&self, value: Value) -> Width {
        self.widths[value.0 as usize]
    }

    /// The interval of a value in every block; that of its type if it is never computed.
    fn range(&self, value: Value) -> Interval {
        self.within_type(value, self.intervals.everywhere(value))
    }

    /// The interval of a value in a block.
    pub(super) fn range_in(&self, block: BlockId, value: Value) -> Interval {
        self.within_type(value, self.intervals.at(block.0 as usize, value))
    }

    /// The part of a fact that the register of a value can hold: facts about pids are wider.
    fn within_type(&self, value: Value, fact: Option<&Fact>) -> Interval {
        let Width { bits, signed, boolean, .. } = self.widths[value.0 as usize];
        let (low, high) = match (boolean, signed) {
            (true, _) => (0, 1),
            (false, true) => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
            (false, false) => (0, (1 << bits) - 1),
        };
        fact.map_or((low, high), |fact| (fact.low.max(low), fact.high.min(high)))
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

/// Whether its machine code never exits to the interpreter.
fn never_exits(op: &Op) -> bool {
    match op {
        Op::Constant(_) | Op::Mark(_) | Op::Predicate(..) | Op::Convert(_) => true,
        Op::Binary(op, ..) => op.is_comparison(),
        _ => false,
    }
}

fn count_uses(layout: &CodeLayout<'_>) -> Vec<Uses> {
    let body = layout.body;
    let mut uses = vec![Uses::default(); body.values.len()];
    for block in &layout.order {
        let code = &body.blocks[block.0 as usize];
        for instruction in &code.instructions {
            op_uses(&instruction.op).into_iter().for_each(|value| uses[value.0 as usize].all += 1);
            if let Op::Store(_, value) = &instruction.op {
                uses[value.0 as usize].stored += 1;
            }
        }
        terminator_uses(body, &code.terminator).into_iter().for_each(|value| uses[value.0 as usize].all += 1);
        for (_, arguments, _) in super::code_layout::weighted_edges(body, *block) {
            arguments.iter().for_each(|value| uses[value.0 as usize].all += 1);
        }
    }
    uses
}
