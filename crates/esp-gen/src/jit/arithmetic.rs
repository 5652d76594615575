//! Arithmetic, comparisons and conversions. A number of fewer than 32 bits is kept extended to 32 in its register; bits
//! above 32 of a shorter number are undefined, but a number that is known not to be negative is also one of 64 bits.

use super::comparison::mirrored;
use super::emit::{Emitter, Written, at};
use super::operand_type::Type;
use super::value_forms::{ValueForm, wrap};
use crate::Checks;
use quaject_esp_exec::native::{Cell, Width};
use quaject_esp_ir::ir::{BinaryOp, Instruction, Op, Operand, UnaryOp, Value};
use quaject_esp_ir::typing::{is_boxed, operand_type};
use quaject_vcode::{Asm, Core, Extension, Label, Machine};

/// Emits the form of an instruction for the operand type.
macro_rules! by_type {
    ($emitter:expr, $ty:expr, [$i:ident $u:ident $l:ident $ul:ident], $($operand:expr),*) => {
        match $ty {
            Type::I => $emitter.asm.$i($($operand),*),
            Type::U => $emitter.asm.$u($($operand),*),
            Type::L => $emitter.asm.$l($($operand),*),
            Type::UL => $emitter.asm.$ul($($operand),*),
        }
    };
}

/// Emits the immediate form of an instruction for the operand type.
macro_rules! by_type_constant {
    ($emitter:expr, $ty:expr, [$i:ident $u:ident $l:ident $ul:ident], $d:expr, $s:expr, $number:expr) => {
        match $ty {
            Type::I => $emitter.asm.$i($d, $s, $number as i32),
            Type::U => $emitter.asm.$u($d, $s, $number as u32),
            Type::L => $emitter.asm.$l($d, $s, $number),
            Type::UL => $emitter.asm.$ul($d, $s, $number as u64),
        }
    };
}

/// Emits a branch that compares with an immediate operand.
macro_rules! branch_constant {
    ($emitter:expr, $ty:expr, [$i:ident $u:ident $l:ident $ul:ident], $s:expr, $number:expr, $label:expr) => {
        match $ty {
            Type::I => $emitter.asm.$i($s, $number as i32, $label),
            Type::U => $emitter.asm.$u($s, $number as u32, $label),
            Type::L => $emitter.asm.$l($s, $number, $label),
            Type::UL => $emitter.asm.$ul($s, $number as u64, $label),
        }
    };
}

impl<M: Machine> Emitter<'_, '_, M>
where
    for<'x> Asm<'x, M>: Core<Reg = M::Reg, Float = M::Float> + Extension,
{
    /// Emits one instruction.
    pub(super) fn instruction(&mut self, instruction: &Instruction) -> Written {
        let result = instruction.result;
        if let Some(result) = result {
            match self.analyses.values.forms[result.0 as usize] {
                ValueForm::Computed => {}
                ValueForm::Constant(_)
                | ValueForm::Alias(_)
                | ValueForm::Truncated(_)
                | ValueForm::FusedCompare(..) => return Written::All,
            }
        }
        match (&instruction.op, result) {
            (Op::Unary(op, value), Some(result)) => self.unary(*op, result, *value),
            (Op::Binary(op @ (BinaryOp::ShiftLeft | BinaryOp::ShiftRight), a, count), Some(result)) => {
                self.shift(*op, result, *a, *count)
            }
            (Op::Binary(op @ (BinaryOp::Divide | BinaryOp::Remainder), a, b), Some(result)) => {
                self.divide(*op, result, *a, *b)
            }
            // Rare, and in the interpreter as fast as the clock that the operands come from.
            (
                Op::Binary(BinaryOp::SaturatingAdd | BinaryOp::SaturatingSubtract | BinaryOp::SaturatingMultiply, ..),
                _,
            ) => Written::Nothing,
            (Op::Binary(op, a, b), Some(result)) => self.binary(*op, result, *a, *b),
            (Op::Convert(value), Some(result)) => self.convert(result, *value),
            (Op::OwnId, Some(result)) => {
                let register = self.result_register(result);
                let count = self.analyses.layout.body.values.len();
                self.asm.ldui(register, self.frame, at(Cell::Own.index(count)));
                self.store_result(result, register);
                Written::All
            }
            (Op::Equal(Operand::Value(a), Operand::Value(b)), Some(result)) => {
                let types = &self.analyses.program.types;
                let ty = operand_type(types, self.analyses.layout.body, &Operand::Value(*a));
                // Objects are compared by content.
                if ty.is_none_or(|ty| is_boxed(types, ty)) {
                    return Written::Nothing;
                }
                self.binary(BinaryOp::Equal, result, *a, *b)
            }
            (Op::Mark(_) | Op::Predicate(..), _) => Written::All,
            (op, result) => self.memory_instruction(op, result),
        }
    }

    pub(super) fn set(&mut self, ty: Type, register: M::Reg, number: i64) {
        match ty {
            Type::I => self.asm.seti(register, number as i32),
            Type::U => self.asm.setu(register, number as u32),
            Type::L | Type::UL => self.asm.setl(register, number),
        }
    }

    /// Keeps the low bits of a number of at most 32.
    pub(super) fn truncate(&mut self, width: Width, d: M::Reg, s: M::Reg) {
        match (width.bits, width.signed) {
            (8 | 16, false) => self.asm.andui(d, s, (1 << width.bits) - 1),
            (8 | 16, true) => {
                let shift = 32 - width.bits as i32;
                self.asm.lshii(d, s, shift);
                self.asm.rshii(d, d, shift);
            }
            _ if d != s => self.asm.movl(d, s),
            _ => {}
        }
    }

    fn unary(&mut self, op: UnaryOp, result: Value, value: Value) -> Written {
        let width = self.analyses.values.width(result);
        let ty = Type::of(width);
        let fits = self.is_exact(result, (-self.range(value).1, -self.range(value).0));
        if op == UnaryOp::Negate && width.signed && self.analyses.checks == Checks::On && !fits {
            return Written::Nothing;
        }
        let s = self.operand_register(value);
        let d = self.result_register(result);
        match op {
            UnaryOp::Not => self.asm.noti(d, s),
            UnaryOp::Complement => by_type!(self, ty, [comi comu coml comul], d, s),
            UnaryOp::Negate => by_type!(self, ty, [negi negu negl negul], d, s),
        }
        match op {
            UnaryOp::Not => {}
            UnaryOp::Complement | UnaryOp::Negate => self.truncate(width, d, d),
        }
        self.store_result(result, d);
        Written::All
    }

    /// Whether every number of this range is one of the value's type.
    fn is_exact(&self, value: Value, range: (i128, i128)) -> bool {
        let width = self.analyses.values.width(value);
        let max = 1i128 << (width.bits - u32::from(width.signed));
        range.1 < max && range.0 >= if width.signed { -max } else { 0 }
    }

    fn binary(&mut self, op: BinaryOp, result: Value, a: Value, b: Value) -> Written {
        let values = self.analyses.values;
        let width = values.width(a);
        let ty = Type::of(width);
        if op.is_comparison() {
            return self.compare(op, result, a, b);
        }
        let (x, y) = (self.range(a), self.range(b));
        let corners =
            [x.0.saturating_mul(y.0), x.0.saturating_mul(y.1), x.1.saturating_mul(y.0), x.1.saturating_mul(y.1)];
        let exact = match op {
            BinaryOp::Add => (x.0 + y.0, x.1 + y.1),
            BinaryOp::Subtract => (x.0 - y.1, x.1 - y.0),
            BinaryOp::Multiply => {
                (corners.iter().copied().fold(i128::MAX, i128::min), corners.iter().copied().fold(i128::MIN, i128::max))
            }
            // No bit appears that is not in an operand, extended as they are.
            _ => (0, 0),
        };
        let fits = self.is_exact(result, exact);
        if !fits && width.signed && self.analyses.checks == Checks::On {
            return if ty.is_long() { Written::Nothing } else { self.overflow_checked(op, result, a, b) };
        }
        let (a, b) = match (values.constant(a), op) {
            (Some(_), BinaryOp::Subtract) => (a, b),
            (Some(_), _) => (b, a),
            (None, _) => (a, b),
        };
        let s = self.operand_register(a);
        match values.constant(b) {
            Some(number) => {
                let d = self.result_register(result);
                self.with_constant(op, ty, d, s, number);
                self.truncate_unless(fits, width, d);
                self.store_result(result, d);
            }
            None => {
                let t = self.operand_register(b);
                let d = self.result_register(result);
                match op {
                    BinaryOp::Add => by_type!(self, ty, [addi addu addl addul], d, s, t),
                    BinaryOp::Subtract => by_type!(self, ty, [subi subu subl subul], d, s, t),
                    BinaryOp::Multiply => by_type!(self, ty, [muli mulu mull mulul], d, s, t),
                    BinaryOp::BitAnd => by_type!(self, ty, [andi andu andl andul], d, s, t),
                    BinaryOp::BitOr => by_type!(self, ty, [ori oru orl orul], d, s, t),
                    _ => by_type!(self, ty, [xori xoru xorl xorul], d, s, t),
                }
                self.truncate_unless(fits, width, d);
                self.store_result(result, d);
            }
        }
        Written::All
    }

    fn truncate_unless(&mut self, fits: bool, width: Width, d: M::Reg) {
        if !fits && !width.boolean {
            self.truncate(width, d, d);
        }
    }

    fn with_constant(&mut self, op: BinaryOp, ty: Type, d: M::Reg, s: M::Reg, number: i64) {
        match op {
            BinaryOp::Add => by_type_constant!(self, ty, [addii addui addli adduli], d, s, number),
            BinaryOp::Subtract => by_type_constant!(self, ty, [subii subui subli subuli], d, s, number),
            BinaryOp::Multiply => by_type_constant!(self, ty, [mulii mului mulli mululi], d, s, number),
            BinaryOp::BitAnd => by_type_constant!(self, ty, [andii andui andli anduli], d, s, number),
            BinaryOp::BitOr => by_type_constant!(self, ty, [orii orui orli oruli], d, s, number),
            _ => by_type_constant!(self, ty, [xorii xorui xorli xoruli], d, s, number),
        }
    }

    /// Signed arithmetic of at most 32 bits, done in 64; on overflow the code exits to the interpreter, which reports
    /// it.
    fn overflow_checked(&mut self, op: BinaryOp, result: Value, a: Value, b: Value) -> Written {
        let shift = i64::from(64 - self.analyses.values.width(result).bits);
        let out = self.exit_label();
        let (s, t) = (self.operand_register(a), self.operand_register(b));
        let (exact, other) = (self.temporary(), self.temporary());
        self.asm.cvi2l(exact, s);
        self.asm.cvi2l(other, t);
        match op {
            BinaryOp::Add => self.asm.addl(exact, exact, other),
            BinaryOp::Subtract => self.asm.subl(exact, exact, other),
            _ => self.asm.mull(exact, exact, other),
        }
        self.asm.lshli(other, exact, shift);
        self.asm.rshli(other, other, shift);
        self.asm.bnel(exact, other, out);
        let d = self.result_register(result);
        self.asm.movl(d, exact);
        self.store_result(result, d);
        Written::All
    }

    fn compare(&mut self, op: BinaryOp, result: Value, a: Value, b: Value) -> Written {
        let (yes, done) = (self.asm.label(), self.asm.label());
        self.branch(op, a, b, yes);
        let d = self.result_register(result);
        self.asm.setu(d, 0);
        self.asm.j(done);
        self.asm.bind(yes);
        self.asm.setu(d, 1);
        self.asm.bind(done);
        self.store_result(result, d);
        Written::All
    }

    /// Branches if the comparison holds.
    pub(super) fn branch(&mut self, op: BinaryOp, a: Value, b: Value, label: Label) {
        let values = self.analyses.values;
        let ty = Type::of(values.width(a));
        let (op, a, b) = if values.constant(a).is_some() { (mirrored(op), b, a) } else { (op, a, b) };
        let s = self.operand_register(a);
        match values.constant(b) {
            Some(number) => self.branch_constant(op, ty, s, number, label),
            None => {
                let t = self.operand_register(b);
                match op {
                    BinaryOp::Equal => by_type!(self, ty, [beqi bequ beql bequl], s, t, label),
                    BinaryOp::NotEqual => by_type!(self, ty, [bnei bneu bnel bneul], s, t, label),
                    BinaryOp::Less => by_type!(self, ty, [blti bltu bltl bltul], s, t, label),
                    BinaryOp::LessEqual => by_type!(self, ty, [blei bleu blel bleul], s, t, label),
                    BinaryOp::Greater => by_type!(self, ty, [bgti bgtu bgtl bgtul], s, t, label),
                    _ => by_type!(self, ty, [bgei bgeu bgel bgeul], s, t, label),
                }
            }
        }
    }

    pub(super) fn branch_constant(&mut self, op: BinaryOp, ty: Type, s: M::Reg, number: i64, label: Label) {
        match op {
            BinaryOp::Equal => branch_constant!(self, ty, [beqii bequi beqli bequli], s, number, label),
            BinaryOp::NotEqual => branch_constant!(self, ty, [bneii bneui bneli bneuli], s, number, label),
            BinaryOp::Less => branch_constant!(self, ty, [bltii bltui bltli bltuli], s, number, label),
            BinaryOp::LessEqual => branch_constant!(self, ty, [bleii bleui bleli bleuli], s, number, label),
            BinaryOp::Greater => branch_constant!(self, ty, [bgtii bgtui bgtli bgtuli], s, number, label),
            _ => branch_constant!(self, ty, [bgeii bgeui bgeli bgeuli], s, number, label),
        }
    }

    /// Division. The interpreter divides by zero, which faults, and by minus one, which may overflow.
    fn divide(&mut self, op: BinaryOp, result: Value, a: Value, b: Value) -> Written {
        let values = self.analyses.values;
        let width = values.width(a);
        let ty = Type::of(width);
        let divisor = values.constant(b);
        match divisor {
            Some(0 | -1) => return Written::Nothing,
            Some(number) if number > 0 && number & (number - 1) == 0 && self.range(a).0 >= 0 => {
                let s = self.operand_register(a);
                let d = self.result_register(result);
                if op == BinaryOp::Divide {
                    let shift = i64::from(number.trailing_zeros());
                    by_type_constant!(self, ty, [rshii rshui rshli rshuli], d, s, shift);
                } else {
                    self.with_constant(BinaryOp::BitAnd, ty, d, s, number - 1);
                }
                self.store_result(result, d);
                return Written::All;
            }
            Some(_) => {}
            None => {
                let out = self.exit_label();
                let t = self.operand_register(b);
                self.branch_constant(BinaryOp::Equal, ty, t, 0, out);
                if width.signed {
                    self.branch_constant(BinaryOp::Equal, ty, t, -1, out);
                }
                self.busy = 0;
            }
        }
        let (s, t) = (self.operand_register(a), self.operand_register(b));
        let d = self.result_register(result);
        if op == BinaryOp::Divide {
            by_type!(self, ty, [divi divu divl divul], d, s, t);
        } else {
            by_type!(self, ty, [modi modu modl modul], d, s, t);
        }
        self.store_result(result, d);
        Written::All
    }

    fn shift(&mut self, op: BinaryOp, result: Value, a: Value, count: Value) -> Written {
        let values = self.analyses.values;
        let width = values.width(result);
        let ty = Type::of(width);
        let max = i64::from(width.bits - 1);
        let is_inside = self.range(count).0 >= 0 && self.range(count).1 <= i128::from(max);
        if let Some(number) = values.constant(count) {
            if !is_inside && self.analyses.checks == Checks::On {
                return Written::Nothing;
            }
            let number = number & max;
            let s = self.operand_register(a);
            let d = self.result_register(result);
            if op == BinaryOp::ShiftLeft {
                by_type_constant!(self, ty, [lshii lshui lshli lshuli], d, s, number);
                self.truncate(width, d, d);
            } else {
                by_type_constant!(self, ty, [rshii rshui rshli rshuli], d, s, number);
            }
            self.store_result(result, d);
            return Written::All;
        }
        let mut t = self.operand_register(count);
        if !is_inside {
            match (self.analyses.checks, values.width(count).bits) {
                (Checks::On, 64) => {
                    let out = self.exit_label();
                    self.asm.bgtuli(t, max as u64, out);
                }
                (Checks::On, _) => {
                    let out = self.exit_label();
                    self.asm.bgtui(t, max as u32, out);
                }
                (Checks::Off, _) => {
                    let low = self.temporary();
                    self.asm.andui(low, t, max as u32);
                    t = low;
                }
            }
        }
        let s = self.operand_register(a);
        let d = self.result_register(result);
        if op == BinaryOp::ShiftLeft {
            by_type!(self, ty, [lshi lshu lshl lshul], d, s, t);
            self.truncate(width, d, d);
        } else {
            by_type!(self, ty, [rshi rshu rshl rshul], d, s, t);
        }
        self.store_result(result, d);
        Written::All
    }

    fn convert(&mut self, result: Value, value: Value) -> Written {
        let (from, to) = (self.analyses.values.width(value), self.analyses.values.width(result));
        if let Some(number) = self.analyses.values.constant(value) {
            let d = self.result_register(result);
            self.set(Type::of(to), d, wrap(to, number));
            self.store_result(result, d);
            return Written::All;
        }
        let s = self.operand_register(value);
        let d = self.result_register(result);
        match (Type::of(from), Type::of(to)) {
            (Type::L | Type::UL, _) if to.boolean => {
                self.asm.notl(d, s);
                self.asm.noti(d, d);
            }
            (_, _) if to.boolean => {
                self.asm.noti(d, s);
                self.asm.noti(d, d);
            }
            (Type::L | Type::UL, Type::L | Type::UL) => self.asm.movl(d, s),
            (Type::L | Type::UL, Type::I | Type::U) => {
                self.asm.cvl2i(d, s);
                self.truncate(to, d, d);
            }
            (Type::I, Type::L | Type::UL) => self.asm.cvi2l(d, s),
            (Type::U, Type::L | Type::UL) => self.asm.cvu2ul(d, s),
            (_, _) => self.truncate(to, d, s),
        }
        self.store_result(result, d);
        Written::All
    }
}
