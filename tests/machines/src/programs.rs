//! Random programs on more variables than any machine has registers: straight line, branches, a loop, memory. What they
//! compute is compared with the reference interpreter.

use quaject_test_support::Random;
use quaject_vcode::{Extension, Label, Local};

use crate::harness::{Family, Instruction, Operands, Type, emit_any};
use crate::instructions::{EXTENSIONS, INSTRUCTIONS};
use crate::interpreter;

/// Types of variables, and how many variables each has.
const TYPES: [Type; 6] = [Type::I, Type::U, Type::L, Type::Ul, Type::F, Type::D];
pub const PER_TYPE: usize = 6;
/// How often the body runs.
const TURNS: i64 = 2;
/// Bytes of stack that a program uses for its loads and stores.
pub const SCRATCH_BYTES: u32 = 64;

/// How an address is made.
#[derive(Debug, Clone, Copy)]
enum Address {
    Local,
    Offset,
    Index,
}

#[derive(Debug, Clone, Copy)]
enum Step {
    /// The instruction with this index; destination and sources by variable of their type.
    Plain { index: usize, d: usize, s: usize, t: usize, immediate: i64 },
    /// A branch over the next `over` steps, perhaps of an instruction that computes something too.
    Branch { index: usize, d: usize, s: usize, t: usize, immediate: i64, over: usize },
    /// A store and a load of one type.
    Memory { ty: Type, from: usize, to: usize, at: u32, address: Address },
}

/// A random program.
pub struct Program {
    long: u32,
    initial: Vec<u64>,
    steps: Vec<Step>,
}

/// The variables of a program as a client of the core sees them.
pub struct Variables<R, F> {
    pub ints: Vec<R>,
    pub floats: Vec<F>,
    pub base: R,
    pub index: R,
    pub turn: R,
    pub scratch: Local,
}

/// The instruction with this index in the list of the core, or after it in that of the extensions.
fn instruction(index: usize) -> &'static Instruction {
    INSTRUCTIONS.iter().chain(EXTENSIONS).nth(index).expect("the index is below the length")
}

/// Numbers of variables of this type: integers and floats are numbered apart.
fn variable(ty: Type, index: usize) -> usize {
    let place = TYPES.iter().position(|own| *own == held(ty)).expect("every type is held in one of these");
    let place = if ty.is_float() { place - 4 } else { place };
    place * PER_TYPE + index
}

fn held(ty: Type) -> Type {
    match ty {
        Type::C | Type::Uc | Type::S | Type::Us => Type::I,
        Type::P => Type::Ul,
        Type::V | Type::I | Type::U | Type::L | Type::Ul | Type::F | Type::D => ty,
    }
}

impl Program {
    /// The program with this number for a machine whose long has `long` bits.
    pub fn random(number: u64, long: u32, length: usize) -> Program {
        let mut random = Random(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let mut initial = Vec::new();
        for ty in TYPES {
            for _ in 0..PER_TYPE {
                let small = random.index(2000) as i64 - 1000;
                let any = (small as u64).wrapping_mul(0x0123_4567_89ab_cdef);
                initial.push(match ty {
                    Type::F => u64::from((small as f32).to_bits()),
                    Type::D => (small as f64).to_bits(),
                    _ => mask(if random.index(2) == 0 { any } else { small as u64 }, ty.bits(long)),
                });
            }
        }
        let mut steps = Vec::new();
        while steps.len() < length {
            if random.index(8) == 0 {
                let types =
                    [Type::C, Type::Uc, Type::S, Type::Us, Type::I, Type::U, Type::L, Type::Ul, Type::F, Type::D];
                let address = [Address::Local, Address::Offset, Address::Index][random.index(3)];
                let (from, to) = (random.index(PER_TYPE), random.index(PER_TYPE));
                let at = 8 * random.index(8) as u32;
                steps.push(Step::Memory { ty: types[random.index(types.len())], from, to, at, address });
                continue;
            }
            let index = random.index(INSTRUCTIONS.len() + EXTENSIONS.len());
            let instruction = instruction(index);
            let bits = instruction.ty.bits(long);
            let pick = |random: &mut Random| random.index(PER_TYPE);
            let (d, s, t) = (pick(&mut random), pick(&mut random), pick(&mut random));
            let mut immediate =
                mask_signed(random.index(1 << 20) as i64 - (1 << 19), bits.max(1), instruction.ty, long);
            match instruction.family {
                // Division is undefined on some operands, products of floats grow, shifts need small counts.
                Family::Binary if ["div", "mod"].contains(&instruction.op) => continue,
                Family::Binary if instruction.ty.is_float() && ["mul", "min", "max"].contains(&instruction.op) => {
                    continue;
                }
                // Of two types, and undefined on some operands.
                Family::Binary | Family::Unary if ["crc32c", "sqrt"].contains(&instruction.op) => continue,
                Family::Shift if !instruction.immediate => continue,
                Family::Convert if instruction.source.is_float() != instruction.ty.is_float() => continue,
                Family::Shift => immediate = random.index(bits as usize) as i64,
                Family::Binary | Family::Unary | Family::Set | Family::Convert | Family::Select => {
                    if instruction.family == Family::Set && instruction.ty.is_float() {
                        immediate = match instruction.ty {
                            Type::F => i64::from((immediate as f32).to_bits()),
                            _ => (immediate as f64).to_bits() as i64,
                        };
                    }
                }
                Family::Branch | Family::Checked => {
                    let over = 1 + random.index(4);
                    steps.push(Step::Branch { index, d, s, t, immediate, over });
                    continue;
                }
                Family::Load
                | Family::Store
                | Family::Return
                | Family::Label
                | Family::Register
                | Family::Nullary
                | Family::Exchange
                | Family::IndexedLoad
                | Family::IndexedStore
                | Family::Hint => continue,
            }
            steps.push(Step::Plain { index, d, s, t, immediate });
        }
        Program { long, initial, steps }
    }

    /// Writes the program; `sum` is left with a hash of all variables.
    pub fn write<A: Extension>(
        &self,
        asm: &mut A,
        v: &Variables<A::Reg, A::Float>,
        flow: &mut impl Flow<A>,
        sum: A::Reg,
    ) {
        for (place, value) in self.initial.iter().enumerate() {
            match TYPES[place / PER_TYPE] {
                Type::F => asm.setf(v.floats[place - 4 * PER_TYPE], f32::from_bits(*value as u32)),
                Type::D => asm.setd(v.floats[place - 4 * PER_TYPE], f64::from_bits(*value)),
                Type::I => asm.seti(v.ints[place], *value as i32),
                Type::U => asm.setu(v.ints[place], *value as u32),
                _ if self.long == 32 => asm.setl(v.ints[place], i64::from(*value as i32)),
                _ => asm.setl(v.ints[place], *value as i64),
            }
        }
        asm.setl(v.turn, TURNS);
        let again = flow.label(asm);
        flow.bind(asm, again);
        let mut open: Vec<(usize, Label)> = Vec::new();
        for (position, step) in self.steps.iter().enumerate() {
            open.retain(|(end, label)| {
                if *end == position {
                    flow.bind(asm, *label);
                }
                *end != position
            });
            match *step {
                Step::Plain { index, d, s, t, immediate } => {
                    let operands = self.operands(v, index, d, s, t, immediate);
                    let nowhere = again;
                    emit_any(asm, index, &operands, nowhere);
                }
                Step::Branch { index, d, s, t, immediate, over } => {
                    let label = flow.label(asm);
                    let operands = self.operands(v, index, d, s, t, immediate);
                    emit_any(asm, index, &operands, label);
                    open.push((position + 1 + over, label));
                }
                Step::Memory { ty, from, to, at, address } => memory(asm, v, ty, from, to, at, address),
            }
        }
        for (_, label) in open {
            flow.bind(asm, label);
        }
        asm.subli(v.turn, v.turn, 1);
        asm.bgtli(v.turn, 0, again);
        asm.setl(sum, 0);
        for place in 0..self.initial.len() {
            asm.mulli(sum, sum, 31);
            match TYPES[place / PER_TYPE] {
                Type::F => {
                    asm.stf_local(v.floats[place - 4 * PER_TYPE], v.scratch);
                    asm.ldi_local(v.turn, v.scratch);
                    asm.cvi2l(v.turn, v.turn);
                }
                Type::D => {
                    asm.std_local(v.floats[place - 4 * PER_TYPE], v.scratch);
                    asm.ldi_local(v.turn, v.scratch);
                    asm.cvi2l(v.turn, v.turn);
                    asm.addl(sum, sum, v.turn);
                    asm.ldi_local(v.turn, v.scratch.plus(4));
                    asm.cvi2l(v.turn, v.turn);
                }
                Type::I => asm.cvi2l(v.turn, v.ints[place]),
                Type::U => asm.cvu2l(v.turn, v.ints[place]),
                _ => asm.movl(v.turn, v.ints[place]),
            }
            asm.addl(sum, sum, v.turn);
        }
    }

    fn operands<R: Copy, F: Copy>(
        &self,
        v: &Variables<R, F>,
        index: usize,
        d: usize,
        s: usize,
        t: usize,
        immediate: i64,
    ) -> Operands<R, F> {
        let instruction = instruction(index);
        let int = |ty: Type, which: usize| v.ints[if ty.is_float() { 0 } else { variable(ty, which) }];
        let float = |ty: Type, which: usize| v.floats[if ty.is_float() { variable(ty, which) } else { 0 }];
        Operands {
            d: int(instruction.ty, d),
            s: int(instruction.source, s),
            t: int(instruction.ty, t),
            fd: float(instruction.ty, d),
            fs: float(instruction.source, s),
            ft: float(instruction.ty, t),
            immediate,
        }
    }

    /// What `sum` must be.
    pub fn result(&self) -> i64 {
        let long = self.long;
        let mut values = self.initial.clone();
        let place = |ty: Type, which: usize| variable(ty, which) + if ty.is_float() { 4 * PER_TYPE } else { 0 };
        for _ in 0..TURNS {
            let mut position = 0;
            while let Some(step) = self.steps.get(position) {
                position += 1;
                match *step {
                    Step::Plain { index, d, s, t, immediate } => {
                        let instruction = instruction(index);
                        let bits = instruction.ty.bits(long);
                        let left = values[place(instruction.source, s)];
                        let right =
                            if instruction.immediate { immediate as u64 } else { values[place(instruction.ty, t)] };
                        let (op, ty, source) = (instruction.op, instruction.ty, instruction.source);
                        let value = match instruction.family {
                            Family::Binary if ty.is_float() => interpreter::binary_float(op, ty, left, right),
                            Family::Binary | Family::Shift => {
                                interpreter::binary(op, ty, bits, left, right).expect("it is defined")
                            }
                            Family::Unary => interpreter::unary(op, ty, bits, left),
                            Family::Set => mask(immediate as u64, bits),
                            Family::Select if (mask(left, bits) == 0) == (op == "movz") => right,
                            Family::Select => values[place(ty, d)],
                            _ => {
                                interpreter::convert(source, source.bits(long), ty, bits, left).expect("it is defined")
                            }
                        };
                        values[place(ty, d)] = value;
                    }
                    Step::Branch { index, d, s, t, immediate, over } => {
                        let instruction = instruction(index);
                        let ty = instruction.ty;
                        let right = if instruction.immediate { immediate as u64 } else { values[place(ty, t)] };
                        let (bits, left) = (ty.bits(long), values[place(ty, s)]);
                        let taken = if instruction.family == Family::Checked {
                            let (value, overflows) = interpreter::checked(instruction.op, ty, bits, left, right);
                            values[place(ty, d)] = value;
                            overflows
                        } else {
                            interpreter::branch(instruction.op, ty, bits, left, right)
                        };
                        if taken {
                            position = (position + over).min(self.steps.len());
                        }
                    }
                    Step::Memory { ty, from, to, .. } => {
                        let stored = mask(values[place(ty, from)], ty.bits(long));
                        values[place(ty, to)] = interpreter::load(ty, ty.bits(long), stored);
                    }
                }
            }
        }
        let mut sum = 0_i64;
        for (index, value) in values.iter().enumerate() {
            sum = sum.wrapping_mul(31);
            sum = sum.wrapping_add(match TYPES[index / PER_TYPE] {
                Type::F | Type::I => i64::from(*value as i32),
                Type::D => i64::from(*value as i32).wrapping_add(i64::from((*value >> 32) as i32)),
                Type::U => i64::from(*value as u32),
                _ => *value as i64,
            });
        }
        if long == 32 { i64::from(sum as i32) } else { sum }
    }
}

/// Labels, which are not instructions.
pub trait Flow<A> {
    fn label(&mut self, asm: &mut A) -> Label;
    fn bind(&mut self, asm: &mut A, label: Label);
}

fn mask(value: u64, bits: u32) -> u64 {
    value << (64 - bits) >> (64 - bits)
}

fn mask_signed(value: i64, bits: u32, ty: Type, long: u32) -> i64 {
    match ty {
        Type::U => i64::from(value as u32),
        Type::Ul | Type::P if long == 32 => i64::from(value as u32),
        _ if bits < 32 => value << (64 - bits) >> (64 - bits),
        _ => value,
    }
}

fn memory<A: Extension>(
    asm: &mut A,
    v: &Variables<A::Reg, A::Float>,
    ty: Type,
    from: usize,
    to: usize,
    at: u32,
    address: Address,
) {
    macro_rules! forms {
        ($registers:ident, $st_local:ident, $ld_local:ident, $st_offset:ident, $ld_offset:ident, $st:ident, $ld:ident) => {{
            let (from, to) = (v.$registers[variable(ty, from)], v.$registers[variable(ty, to)]);
            match address {
                Address::Local => {
                    asm.$st_local(from, v.scratch.plus(at as i32));
                    asm.$ld_local(to, v.scratch.plus(at as i32));
                }
                Address::Offset => {
                    asm.$st_offset(from, v.base, at as i32);
                    asm.$ld_offset(to, v.base, at as i32);
                }
                Address::Index => {
                    asm.setl(v.index, i64::from(at));
                    asm.$st(from, v.base, v.index);
                    asm.$ld(to, v.base, v.index);
                }
            }
        }};
    }
    match ty {
        Type::C => forms!(ints, stc_local, ldc_local, stci, ldci, stc, ldc),
        Type::Uc => forms!(ints, stuc_local, lduc_local, stuci, lduci, stuc, lduc),
        Type::S => forms!(ints, sts_local, lds_local, stsi, ldsi, sts, lds),
        Type::Us => forms!(ints, stus_local, ldus_local, stusi, ldusi, stus, ldus),
        Type::I | Type::V => forms!(ints, sti_local, ldi_local, stii, ldii, sti, ldi),
        Type::U => forms!(ints, stu_local, ldu_local, stui, ldui, stu, ldu),
        Type::L => forms!(ints, stl_local, ldl_local, stli, ldli, stl, ldl),
        Type::Ul | Type::P => forms!(ints, stul_local, ldul_local, stuli, lduli, stul, ldul),
        Type::F => forms!(floats, stf_local, ldf_local, stfi, ldfi, stf, ldf),
        Type::D => forms!(floats, std_local, ldd_local, stdi, lddi, std, ldd),
    }
}
