//! Code of user-defined steps: in integer registers element by element, in vectors all elements at once.
//!
//! In integer registers the step's own registers lie in the frame: this path serves machines without vectors and the
//! tail, and it has no free register.

use quaject_vcode::{Asm, Core, Extension, Machine, VectorMachine, Vectors};

use super::scalar::{Scalar, StorageClass};
use crate::frame;
use crate::ir::{
    Checked, Element, Instruction, Operand, Operation, Order, REGISTERS, Register, Total, TotalOperation, mask,
};

/// The minimum size of the elements of a step with floating-point numbers whose code is repeated for each element of a
/// register. That code is long; for smaller elements it is a loop.
const MIN_UNROLLED_FLOAT_BYTES: usize = 4;

impl<M: Machine> Scalar<'_, M>
where
    for<'a> Asm<'a, M>: Extension + Core<Reg = M::Reg, Float = M::Float>,
{
    /// Applies a step to every element of a register that holds `bytes` bytes, a multiple of the element size.
    pub(super) fn user(&self, asm: &mut Asm<'_, M>, user: &Checked, total: Option<usize>, x: M::Reg, bytes: usize) {
        let size = user.element.bytes;
        if user.has_floats() && size < MIN_UNROLLED_FLOAT_BYTES && size < bytes {
            return self.user_loop(asm, user, total, x, bytes);
        }
        for index in 0..bytes / size {
            let first = if M::LITTLE_ENDIAN { index * size } else { bytes - (index + 1) * size };
            let shift = 8 * first as u64;
            // The element, alone, as a number.
            asm.movul(self.a, x);
            if shift > 0 {
                asm.rshuli(self.a, self.a, shift);
            }
            self.element(asm, user, total);
            if user.writes {
                self.load_changed(asm, user);
                if size < Self::WORD {
                    if shift > 0 {
                        asm.lshuli(self.a, self.a, shift);
                    }
                    asm.anduli(x, x, !(mask(size) << shift) & Self::word_mask());
                    asm.orul(x, x, self.a);
                } else {
                    asm.movul(x, self.a);
                }
            }
        }
    }

    /// The same in a loop: each element is removed at one end of the register, and what becomes of it added at the
    /// other.
    fn user_loop(&self, asm: &mut Asm<'_, M>, user: &Checked, total: Option<usize>, x: M::Reg, bytes: usize) {
        let size = user.element.bytes;
        let (width, rest) = (8 * size as u64, 8 * (bytes - size) as u64);
        let left = frame::ELEMENTS_LEFT as i32;
        asm.setul(self.a, (bytes / size) as u64);
        asm.stuli(self.a, self.frame, left);
        let again = asm.label();
        asm.bind(again);
        if M::LITTLE_ENDIAN {
            asm.movul(self.a, x);
            asm.rshuli(x, x, width);
        } else {
            asm.rshuli(self.a, x, rest);
            asm.lshuli(x, x, width);
            self.cut(asm, x, bytes);
        }
        self.element(asm, user, total);
        self.load_changed(asm, user);
        if M::LITTLE_ENDIAN {
            asm.lshuli(self.a, self.a, rest);
        }
        asm.orul(x, x, self.a);
        asm.lduli(self.a, self.frame, left);
        asm.subuli(self.a, self.a, 1);
        asm.stuli(self.a, self.frame, left);
        asm.bneuli(self.a, 0, again);
    }

    /// Applies a step to the element in the low bits of `a`. What it becomes is then in the place of `r0`.
    fn element(&self, asm: &mut Asm<'_, M>, user: &Checked, total: Option<usize>) {
        self.cut(asm, self.a, user.element.bytes);
        self.order(asm, user.element, self.a);
        asm.stuli(self.a, self.frame, Self::own(Register(0)));
        for instruction in &user.program.instructions {
            match *instruction {
                Instruction::Set { value, .. } => self.value(asm, value, self.a),
                Instruction::Compute { operation, s, t, .. } => {
                    asm.lduli(self.a, self.frame, Self::own(s));
                    self.compute(asm, operation, t);
                    self.cut(asm, self.a, user.register_bytes);
                }
                Instruction::FloatBinary { operation, format, s, t, .. } => {
                    self.float_binary(asm, operation, format, s, t);
                }
                Instruction::FloatUnary { function, format, s, .. } => self.float_unary(asm, function, format, s),
                Instruction::Convert { conversion, s, .. } => self.convert(asm, conversion, s),
                Instruction::Total { total: how, s } => {
                    if let Some(at) = total {
                        asm.lduli(self.a, self.frame, Self::own(s));
                        self.total(asm, how.operation(), at);
                    }
                }
                // Steps have no others.
                _ => {}
            }
            if let Some(d) = instruction.destination() {
                asm.stuli(self.a, self.frame, Self::own(d));
            }
        }
    }

    /// `a` becomes what the step has made of its element, in the byte order of the data.
    fn load_changed(&self, asm: &mut Asm<'_, M>, user: &Checked) {
        asm.lduli(self.a, self.frame, Self::own(Register(0)));
        if user.register_bytes > user.element.bytes {
            self.cut(asm, self.a, user.element.bytes);
        }
        self.order(asm, user.element, self.a);
    }

    /// Adds `a` to the total in an accumulator. In a register the total may have excess high bits; they are removed at
    /// the end, but comparisons must not see them.
    pub(super) fn total(&self, asm: &mut Asm<'_, M>, operation: TotalOperation, at: usize) {
        let slot = self.slot(frame::ACCUMULATORS + at);
        let register = match self.accumulators[at] {
            Some(StorageClass::Register(register)) => register,
            Some(StorageClass::Frame) | None => {
                asm.lduli(self.b, self.frame, slot);
                self.b
            }
        };
        match operation {
            TotalOperation::Integer(operation) => self.operate(asm, operation, register, register, self.a),
            TotalOperation::FloatSum(format) => self.add_float(asm, format, register),
        }
        if let Some(StorageClass::Frame) | None = self.accumulators[at] {
            asm.stuli(register, self.frame, slot);
        }
    }

    /// Where a register of the step is.
    pub(super) fn own(register: Register) -> i32 {
        (frame::SPILL + 8 * (usize::from(register.0) % REGISTERS)) as i32
    }

    /// Truncates a number to `bytes` bytes.
    pub(super) fn cut(&self, asm: &mut Asm<'_, M>, register: M::Reg, bytes: usize) {
        if bytes < Self::WORD {
            let bits = 8 * (Self::WORD - bytes) as u64;
            asm.lshuli(register, register, bits);
            asm.rshuli(register, register, bits);
        }
    }

    /// Converts between the byte order of the machine and of the element.
    fn order(&self, asm: &mut Asm<'_, M>, element: Element, x: M::Reg) {
        let native = if M::LITTLE_ENDIAN { Order::Little } else { Order::Big };
        if element.order == native {
            return;
        }
        match element.bytes {
            8 => asm.bswapul(x, x),
            4 => {
                asm.cvul2u(x, x);
                asm.bswapu(x, x);
                asm.cvu2ul(x, x);
            }
            2 => asm.bswapus(x, x),
            _ => {}
        }
    }

    fn value(&self, asm: &mut Asm<'_, M>, operand: Operand, d: M::Reg) {
        match operand {
            Operand::Register(register) => asm.lduli(d, self.frame, Self::own(register)),
            Operand::Constant(value) => asm.setul(d, value),
        }
    }

    /// `a` becomes the result of an operation on `a` and an operand.
    fn compute(&self, asm: &mut Asm<'_, M>, operation: Operation, t: Operand) {
        match (operation, t) {
            (Operation::Shl, Operand::Constant(count)) => asm.lshuli(self.a, self.a, count),
            (Operation::Shr, Operand::Constant(count)) => asm.rshuli(self.a, self.a, count),
            (_, t) => {
                self.value(asm, t, self.b);
                self.operate(asm, operation, self.a, self.a, self.b);
            }
        }
    }

    fn operate(&self, asm: &mut Asm<'_, M>, operation: Operation, d: M::Reg, s: M::Reg, t: M::Reg) {
        match operation {
            Operation::Add => asm.addul(d, s, t),
            Operation::Sub => asm.subul(d, s, t),
            Operation::Mul => asm.mulul(d, s, t),
            Operation::And => asm.andul(d, s, t),
            Operation::Or => asm.orul(d, s, t),
            Operation::Xor => asm.xorul(d, s, t),
            Operation::Min => asm.minul(d, s, t),
            Operation::Max => asm.maxul(d, s, t),
            // Shifts are by constants, see `compute`.
            Operation::Shl | Operation::Shr => {}
        }
    }
}

/// Whether vector instructions exist for all operations of a step. There are none for floating-point numbers.
pub(super) fn has_vectors(user: &Checked) -> bool {
    let bytes = user.element.bytes;
    let has = |operation| match operation {
        Operation::Add | Operation::Sub | Operation::And | Operation::Or | Operation::Xor => true,
        Operation::Mul => matches!(bytes, 2 | 4),
        Operation::Min | Operation::Max => bytes < 8,
        Operation::Shl | Operation::Shr => bytes > 1,
    };
    let has_total = match user.total.map(Total::operation) {
        Some(TotalOperation::Integer(operation)) => has(operation),
        Some(TotalOperation::FloatSum(_)) => false,
        None => true,
    };
    has_total
        && !user.has_floats()
        && user.program.instructions.iter().all(|instruction| match instruction {
            Instruction::Compute { operation, .. } => has(*operation),
            _ => true,
        })
}

/// The vectors of a step: its registers but `r0`, its constants.
#[derive(Debug, Clone, Copy)]
pub(super) struct UserVectors<V> {
    pub(super) registers: [Option<V>; REGISTERS],
    /// Each with its value.
    pub(super) constants: [Option<(u64, V)>; MAX_CONSTANTS],
    pub(super) total: Option<V>,
}

/// The most constants of a step that have vectors.
pub(super) const MAX_CONSTANTS: usize = 6;

impl<V: Copy> UserVectors<V> {
    fn get(&self, operand: Operand, x: V) -> V {
        let found = match operand {
            Operand::Register(Register(0)) => Some(x),
            Operand::Register(register) => self.registers[usize::from(register.0) % REGISTERS],
            Operand::Constant(value) => {
                self.constants.iter().flatten().find(|(own, _)| *own == value).map(|(_, vector)| *vector)
            }
        };
        found.expect("there is a vector for every register and constant of the step")
    }
}

/// Applies a step to every element of `x`.
pub(super) fn write<M: VectorMachine>(
    asm: &mut Asm<'_, M>,
    user: &Checked,
    vectors: &UserVectors<M::Vector>,
    x: M::Vector,
) where
    for<'a> Asm<'a, M>: Vectors<Vector = M::Vector>,
{
    let bytes = user.element.bytes;
    reorder(asm, user.element, x);
    for instruction in &user.program.instructions {
        match *instruction {
            Instruction::Set { d, value } => {
                let (d, value) = (vectors.get(Operand::Register(d), x), vectors.get(value, x));
                asm.vmov(d, value);
            }
            Instruction::Compute { operation, d, s, t } => {
                let (d, s) = (vectors.get(Operand::Register(d), x), vectors.get(Operand::Register(s), x));
                match (operation, t, bytes) {
                    (Operation::Shl, Operand::Constant(count), 2) => asm.vlshusi(d, s, count as u32),
                    (Operation::Shl, Operand::Constant(count), 4) => asm.vlshui(d, s, count as u32),
                    (Operation::Shl, Operand::Constant(count), _) => asm.vlshuli(d, s, count as u32),
                    (Operation::Shr, Operand::Constant(count), 2) => asm.vrshusi(d, s, count as u32),
                    (Operation::Shr, Operand::Constant(count), 4) => asm.vrshui(d, s, count as u32),
                    (Operation::Shr, Operand::Constant(count), _) => asm.vrshuli(d, s, count as u32),
                    (operation, t, _) => operate(asm, operation, bytes, d, s, vectors.get(t, x)),
                }
            }
            Instruction::Total { total, s } => {
                let sum = vectors.total.expect("the step has a total");
                if let TotalOperation::Integer(operation) = total.operation() {
                    operate(asm, operation, bytes, sum, sum, vectors.get(Operand::Register(s), x));
                }
            }
            // Steps have no others.
            _ => {}
        }
    }
    reorder(asm, user.element, x);
}

/// Machines with vectors are little-endian.
fn reorder<M: VectorMachine>(asm: &mut Asm<'_, M>, element: Element, x: M::Vector)
where
    for<'a> Asm<'a, M>: Vectors<Vector = M::Vector>,
{
    match (element.order, element.bytes) {
        (Order::Big, 2) => asm.vbswapus(x, x),
        (Order::Big, 4) => asm.vbswapu(x, x),
        (Order::Big, 8) => asm.vbswapul(x, x),
        (Order::Big | Order::Little, _) => {}
    }
}

fn operate<M: VectorMachine>(
    asm: &mut Asm<'_, M>,
    operation: Operation,
    bytes: usize,
    d: M::Vector,
    s: M::Vector,
    t: M::Vector,
) where
    for<'a> Asm<'a, M>: Vectors<Vector = M::Vector>,
{
    match (operation, bytes) {
        (Operation::Add, 1) => asm.vadduc(d, s, t),
        (Operation::Add, 2) => asm.vaddus(d, s, t),
        (Operation::Add, 4) => asm.vaddu(d, s, t),
        (Operation::Add, _) => asm.vaddul(d, s, t),
        (Operation::Sub, 1) => asm.vsubuc(d, s, t),
        (Operation::Sub, 2) => asm.vsubus(d, s, t),
        (Operation::Sub, 4) => asm.vsubu(d, s, t),
        (Operation::Sub, _) => asm.vsubul(d, s, t),
        (Operation::Mul, 2) => asm.vmulus(d, s, t),
        (Operation::Mul, _) => asm.vmulu(d, s, t),
        (Operation::And, _) => asm.vand(d, s, t),
        (Operation::Or, _) => asm.vor(d, s, t),
        (Operation::Xor, _) => asm.vxor(d, s, t),
        (Operation::Min, 1) => asm.vminuc(d, s, t),
        (Operation::Min, 2) => asm.vminus(d, s, t),
        (Operation::Min, _) => asm.vminu(d, s, t),
        (Operation::Max, 1) => asm.vmaxuc(d, s, t),
        (Operation::Max, 2) => asm.vmaxus(d, s, t),
        (Operation::Max, _) => asm.vmaxu(d, s, t),
        // Shifts are by constants, see `write`.
        (Operation::Shl | Operation::Shr, _) => {}
    }
}
