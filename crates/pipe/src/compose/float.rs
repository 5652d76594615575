//! Code of operations on floating-point numbers in user-defined steps, for one element.
//!
//! Numbers pass between integer and floating registers through the frame, because the portable instructions have no
//! other way. Every operation leaves the bits of its result in the integer register `a`; it may use `b`.

use quaject_vcode::{Asm, Core, Extension, Label, Machine};

use super::scalar::{FloatRegisters, Scalar};
use crate::frame;
use crate::ir::{
    Condition, Conversion, FloatFormat, FloatFunction, FloatOperation, IntegerFormat, Operand, Register, Sign, mask,
};

impl<M: Machine> Scalar<'_, M>
where
    for<'a> Asm<'a, M>: Extension + Core<Reg = M::Reg, Float = M::Float>,
{
    /// An operation on a register of the step and an operand.
    pub(super) fn float_binary(
        &self,
        asm: &mut Asm<'_, M>,
        operation: FloatOperation,
        format: FloatFormat,
        s: Register,
        t: Operand,
    ) {
        let FloatRegisters { x, y } = self.floats();
        self.load_float(asm, format, x, Operand::Register(s));
        self.load_float(asm, format, y, t);
        match (operation, format) {
            (FloatOperation::Add, FloatFormat::F32) => asm.addf(x, x, y),
            (FloatOperation::Add, FloatFormat::F64) => asm.addd(x, x, y),
            (FloatOperation::Sub, FloatFormat::F32) => asm.subf(x, x, y),
            (FloatOperation::Sub, FloatFormat::F64) => asm.subd(x, x, y),
            (FloatOperation::Mul, FloatFormat::F32) => asm.mulf(x, x, y),
            (FloatOperation::Mul, FloatFormat::F64) => asm.muld(x, x, y),
            (FloatOperation::Div, FloatFormat::F32) => asm.divf(x, x, y),
            (FloatOperation::Div, FloatFormat::F64) => asm.divd(x, x, y),
            (FloatOperation::Min, _) => return self.select(asm, Condition::Lt, format, s, t),
            (FloatOperation::Max, _) => return self.select(asm, Condition::Gt, format, s, t),
            (FloatOperation::Compare(condition), _) => return self.compare(asm, condition, format),
        }
        self.take_result(asm, format);
    }

    /// A function of a register of the step.
    pub(super) fn float_unary(&self, asm: &mut Asm<'_, M>, function: FloatFunction, format: FloatFormat, s: Register) {
        let sign = format.sign_bit();
        match function {
            FloatFunction::Neg => {
                self.load_bits(asm, format, Operand::Register(s));
                asm.setul(self.b, sign);
                asm.xorul(self.a, self.a, self.b);
            }
            FloatFunction::Abs => {
                self.load_bits(asm, format, Operand::Register(s));
                asm.setul(self.b, mask(format.bytes()) ^ sign);
                asm.andul(self.a, self.a, self.b);
            }
            FloatFunction::Sqrt => {
                let FloatRegisters { x, .. } = self.floats();
                self.load_float(asm, format, x, Operand::Register(s));
                match format {
                    FloatFormat::F32 => asm.sqrtf(x, x),
                    FloatFormat::F64 => asm.sqrtd(x, x),
                }
                self.take_result(asm, format);
            }
        }
    }

    /// A conversion of a register of the step.
    pub(super) fn convert(&self, asm: &mut Asm<'_, M>, conversion: Conversion, s: Register) {
        let FloatRegisters { x, .. } = self.floats();
        match conversion {
            Conversion::FromInteger(from, to) => self.convert_integer(asm, from, to, s),
            Conversion::ToInteger(from, to) => self.convert_to_integer(asm, from, to, s),
            Conversion::Widen => {
                self.load_float(asm, FloatFormat::F32, x, Operand::Register(s));
                asm.cvf2d(x, x);
                self.take_result(asm, FloatFormat::F64);
            }
            Conversion::Narrow => {
                self.load_float(asm, FloatFormat::F64, x, Operand::Register(s));
                asm.cvd2f(x, x);
                self.take_result(asm, FloatFormat::F32);
            }
        }
    }

    /// Adds the number whose bits `a` has to that in `sum`.
    pub(super) fn add_float(&self, asm: &mut Asm<'_, M>, format: FloatFormat, sum: M::Reg) {
        let FloatRegisters { x, y } = self.floats();
        self.move_to_float(asm, format, y, self.a);
        self.move_to_float(asm, format, x, sum);
        match format {
            FloatFormat::F32 => asm.addf(x, x, y),
            FloatFormat::F64 => asm.addd(x, x, y),
        }
        self.take_result(asm, format);
        asm.movul(sum, self.a);
    }

    fn convert_integer(&self, asm: &mut Asm<'_, M>, from: IntegerFormat, to: FloatFormat, s: Register) {
        let FloatRegisters { x, .. } = self.floats();
        asm.lduli(self.a, self.frame, Self::own(s));
        let unused = 8 * (Self::WORD - from.bytes) as u64;
        if unused > 0 {
            asm.lshuli(self.a, self.a, unused);
            match from.sign {
                Sign::Signed => asm.rshli(self.a, self.a, unused as i64),
                Sign::Unsigned => asm.rshuli(self.a, self.a, unused),
            }
        }
        // What is narrower than a register fits a signed one.
        match (from.sign, to) {
            (Sign::Unsigned, FloatFormat::F32) if unused == 0 => asm.cvul2f(x, self.a),
            (Sign::Unsigned, FloatFormat::F64) if unused == 0 => asm.cvul2d(x, self.a),
            (Sign::Unsigned | Sign::Signed, FloatFormat::F32) => asm.cvl2f(x, self.a),
            (Sign::Unsigned | Sign::Signed, FloatFormat::F64) => asm.cvl2d(x, self.a),
        }
        self.take_result(asm, to);
    }

    /// Machines differ in the conversion of what is out of range, so only what is in range is converted.
    fn convert_to_integer(&self, asm: &mut Asm<'_, M>, from: FloatFormat, to: IntegerFormat, s: Register) {
        let FloatRegisters { x, y } = self.floats();
        let (least, greatest) = to.range();
        let bits = 8 * to.bytes as i32;
        let (end, below) = match to.sign {
            Sign::Signed => (from.power_of_two(bits - 1), from.power_of_two(bits - 1) | from.sign_bit()),
            // What is between 0 and 1 becomes 0 too.
            Sign::Unsigned => (from.power_of_two(bits), from.power_of_two(0)),
        };
        let done = asm.label();
        self.load_float(asm, from, x, Operand::Register(s));
        self.move_constant(asm, from, y, end);
        asm.setul(self.a, to.write(greatest));
        self.branch(asm, Condition::Ge, from, done);
        self.move_constant(asm, from, y, below);
        asm.setul(self.a, to.write(least));
        self.branch(asm, Condition::Lt, from, done);
        asm.setul(self.a, 0);
        match from {
            FloatFormat::F32 => asm.bnef(x, x, done),
            FloatFormat::F64 => asm.bned(x, x, done),
        }
        match (to.sign, from) {
            (Sign::Unsigned, FloatFormat::F32) if to.bytes == Self::WORD => asm.cvf2ul(self.a, x),
            (Sign::Unsigned, FloatFormat::F64) if to.bytes == Self::WORD => asm.cvd2ul(self.a, x),
            (Sign::Unsigned | Sign::Signed, FloatFormat::F32) => asm.cvf2l(self.a, x),
            (Sign::Unsigned | Sign::Signed, FloatFormat::F64) => asm.cvd2l(self.a, x),
        }
        self.cut(asm, self.a, to.bytes);
        asm.bind(done);
    }

    /// `a` becomes 1 if the comparison of `x` and `y` holds, otherwise 0.
    fn compare(&self, asm: &mut Asm<'_, M>, condition: Condition, format: FloatFormat) {
        let done = asm.label();
        asm.setul(self.a, 1);
        self.branch(asm, condition, format, done);
        asm.setul(self.a, 0);
        asm.bind(done);
    }

    /// `a` becomes `s` if the comparison of `x` and `y`, which have `s` and `t`, holds, otherwise `t`.
    fn select(&self, asm: &mut Asm<'_, M>, condition: Condition, format: FloatFormat, s: Register, t: Operand) {
        let done = asm.label();
        self.load_bits(asm, format, Operand::Register(s));
        self.branch(asm, condition, format, done);
        self.load_bits(asm, format, t);
        asm.bind(done);
    }

    /// Branches if the comparison of `x` and `y` holds.
    fn branch(&self, asm: &mut Asm<'_, M>, condition: Condition, format: FloatFormat, to: Label) {
        let FloatRegisters { x, y } = self.floats();
        match (condition, format) {
            (Condition::Eq, FloatFormat::F32) => asm.beqf(x, y, to),
            (Condition::Eq, FloatFormat::F64) => asm.beqd(x, y, to),
            (Condition::Ne, FloatFormat::F32) => asm.bnef(x, y, to),
            (Condition::Ne, FloatFormat::F64) => asm.bned(x, y, to),
            (Condition::Lt, FloatFormat::F32) => asm.bltf(x, y, to),
            (Condition::Lt, FloatFormat::F64) => asm.bltd(x, y, to),
            (Condition::Le, FloatFormat::F32) => asm.blef(x, y, to),
            (Condition::Le, FloatFormat::F64) => asm.bled(x, y, to),
            (Condition::Gt, FloatFormat::F32) => asm.bgtf(x, y, to),
            (Condition::Gt, FloatFormat::F64) => asm.bgtd(x, y, to),
            (Condition::Ge, FloatFormat::F32) => asm.bgef(x, y, to),
            (Condition::Ge, FloatFormat::F64) => asm.bged(x, y, to),
        }
    }

    fn floats(&self) -> FloatRegisters<M::Float> {
        self.float_registers.expect("`open` took them for steps that compute with floating-point numbers")
    }

    /// The offset of a number within the place of a register.
    fn low(format: FloatFormat) -> i32 {
        if M::LITTLE_ENDIAN { 0 } else { (Self::WORD - format.bytes()) as i32 }
    }

    fn load_float(&self, asm: &mut Asm<'_, M>, format: FloatFormat, d: M::Float, operand: Operand) {
        match operand {
            Operand::Register(register) => self.load_float_at(asm, format, d, Self::own(register)),
            Operand::Constant(bits) => self.move_constant(asm, format, d, bits),
        }
    }

    fn load_float_at(&self, asm: &mut Asm<'_, M>, format: FloatFormat, d: M::Float, place: i32) {
        match format {
            FloatFormat::F32 => asm.ldfi(d, self.frame, place + Self::low(format)),
            FloatFormat::F64 => asm.lddi(d, self.frame, place + Self::low(format)),
        }
    }

    fn move_constant(&self, asm: &mut Asm<'_, M>, format: FloatFormat, d: M::Float, bits: u64) {
        asm.setul(self.b, bits);
        self.move_to_float(asm, format, d, self.b);
    }

    fn move_to_float(&self, asm: &mut Asm<'_, M>, format: FloatFormat, d: M::Float, s: M::Reg) {
        asm.stuli(s, self.frame, frame::EXCHANGE as i32);
        self.load_float_at(asm, format, d, frame::EXCHANGE as i32);
    }

    /// `a` becomes the bits of an operand.
    fn load_bits(&self, asm: &mut Asm<'_, M>, format: FloatFormat, operand: Operand) {
        match operand {
            Operand::Register(register) => self.load_bits_at(asm, format, Self::own(register)),
            Operand::Constant(bits) => asm.setul(self.a, bits),
        }
    }

    fn load_bits_at(&self, asm: &mut Asm<'_, M>, format: FloatFormat, place: i32) {
        match format {
            FloatFormat::F32 => {
                asm.ldui(self.a, self.frame, place + Self::low(format));
                asm.cvu2ul(self.a, self.a);
            }
            FloatFormat::F64 => asm.lduli(self.a, self.frame, place),
        }
    }

    /// `a` becomes the bits of `x`, those of the canonical NaN if it is any NaN.
    fn take_result(&self, asm: &mut Asm<'_, M>, format: FloatFormat) {
        let FloatRegisters { x, .. } = self.floats();
        let place = frame::EXCHANGE as i32;
        match format {
            FloatFormat::F32 => asm.stfi(x, self.frame, place + Self::low(format)),
            FloatFormat::F64 => asm.stdi(x, self.frame, place + Self::low(format)),
        }
        self.load_bits_at(asm, format, place);
        let is_number = asm.label();
        match format {
            FloatFormat::F32 => asm.beqf(x, x, is_number),
            FloatFormat::F64 => asm.beqd(x, x, is_number),
        }
        asm.setul(self.a, format.canonical_nan());
        asm.bind(is_number);
    }
}
