//! The peephole window on every machine: random functions that give it much to do, written through it and without it,
//! against the reference interpreter.

use quaject_test_support::Random;
use quaject_vcode::layers::peephole::Peephole;
use quaject_vcode::{Asm, Class, Core, Extension, Kind, Label, Local, Machine, Param, Workspace};

use crate::harness::{Batch, Family, Instruction, Operands, Type, emit_any};
use crate::instructions::{EXTENSIONS, INSTRUCTIONS};
use crate::interpreter;

/// The types of the variables: few of each, so that they are overwritten soon.
const VARIABLES: [Type; 13] = [
    Type::I,
    Type::I,
    Type::I,
    Type::U,
    Type::U,
    Type::L,
    Type::L,
    Type::L,
    Type::Ul,
    Type::F,
    Type::F,
    Type::D,
    Type::D,
];
/// Bytes of memory that programs load from and store to: two places for integers, one for floats, one for doubles, so
/// that bits of integers are not computed with as floats.
const MEMORY: usize = 32;

/// Where a value of this type may be in memory.
fn place(random: &mut Random, ty: Type) -> usize {
    match ty {
        Type::F => 16,
        Type::D => 24,
        _ => 8 * random.index(2),
    }
}

/// How memory is addressed.
#[derive(Debug, Clone, Copy)]
enum Address {
    Local,
    Offset,
    /// A register that was made from the base, this much before the place.
    Moved(i64),
    Index,
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Plain {
        index: usize,
        d: usize,
        s: usize,
        t: usize,
        immediate: i64,
    },
    Branch {
        index: usize,
        s: usize,
        t: usize,
        immediate: i64,
        over: usize,
    },
    Load {
        ty: Type,
        to: usize,
        at: usize,
        address: Address,
    },
    Store {
        ty: Type,
        from: usize,
        at: usize,
        address: Address,
    },
    /// The variable is given back: nothing reads it until it is written again.
    Give {
        variable: usize,
    },
}

/// A random program.
struct Program {
    long: u32,
    little: bool,
    initial: Vec<u64>,
    steps: Vec<Step>,
}

/// The instruction with this index in the list of the core, or after it in that of the extensions.
fn instruction(index: usize) -> &'static Instruction {
    INSTRUCTIONS.iter().chain(EXTENSIONS).nth(index).expect("the index is below the length")
}

fn held(ty: Type) -> Type {
    match ty {
        Type::C | Type::Uc | Type::S | Type::Us => Type::I,
        Type::P => Type::Ul,
        Type::V | Type::I | Type::U | Type::L | Type::Ul | Type::F | Type::D => ty,
    }
}

fn mask(value: u64, bits: u32) -> u64 {
    value << (64 - bits) >> (64 - bits)
}

/// An immediate as its type holds it.
fn of_type(value: i64, ty: Type, long: u32) -> i64 {
    match (ty, long) {
        (Type::I, _) | (Type::L, 32) => i64::from(value as i32),
        (Type::U, _) | (Type::Ul | Type::P, 32) => i64::from(value as u32),
        (_, _) => value,
    }
}

/// A constant: one on which there are identities, a small one, or any.
fn number(random: &mut Random) -> i64 {
    match random.index(3) {
        0 => random.pick(&[0, 0, 1, 1, 2, -1]),
        1 => random.index(300) as i64 - 150,
        _ => (random.index(1 << 30) as i64 - (1 << 29)) << random.pick(&[0, 0, 20]),
    }
}

impl Program {
    fn random(number: u64, long: u32, little: bool) -> Program {
        let mut random = Random((number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let initial = VARIABLES.map(|ty| {
            let value = random.index(40) as i64 - 20;
            match ty {
                Type::F => u64::from((value as f32).to_bits()),
                Type::D => (value as f64).to_bits(),
                _ => mask(value as u64, ty.bits(long)),
            }
        });
        let mut live = [true; VARIABLES.len()];
        // Where branches go, with what is live there.
        let mut joins: Vec<(usize, [bool; VARIABLES.len()])> = Vec::new();
        let mut steps: Vec<Step> = Vec::new();
        let length = 3 + number as usize % 40;
        while steps.len() < length {
            let here = steps.len();
            for (_, there) in joins.iter().filter(|(join, _)| *join == here) {
                live.iter_mut().zip(there).for_each(|(live, there)| *live &= there);
            }
            joins.retain(|(join, _)| *join > here);
            let Some(step) = Program::step(&mut random, &live, long) else { continue };
            match step {
                Step::Plain { index, d, .. } => live[d] |= instruction(index).family != Family::Select,
                Step::Load { to, .. } => live[to] = true,
                Step::Branch { over, .. } => joins.push((here + 1 + over, live)),
                Step::Give { variable } => live[variable] = false,
                Step::Store { .. } => {}
            }
            steps.push(step);
        }
        // What is dead on some way to the end is set, so that the sum is of all; no branch passes that by.
        for (position, step) in steps.iter_mut().enumerate() {
            if let Step::Branch { over, .. } = step {
                *over = (*over).min(length - 1 - position);
            }
        }
        joins.iter().for_each(|(_, there)| live.iter_mut().zip(there).for_each(|(live, there)| *live &= there));
        for (d, ty) in VARIABLES.iter().enumerate().filter(|(d, _)| !live[*d]) {
            let index = INSTRUCTIONS.iter().position(|other| other.family == Family::Set && other.ty == *ty);
            steps.push(Step::Plain { index: index.expect("every type is set"), d, s: 0, t: 0, immediate: 1 });
        }
        Program { long, little, initial: initial.to_vec(), steps }
    }

    /// A step that may come where these variables are live, if there is one of the chosen kind.
    fn step(random: &mut Random, live: &[bool], long: u32) -> Option<Step> {
        let pick = |random: &mut Random, ty: Type, must_live: bool| {
            let fit: Vec<usize> = (0..VARIABLES.len())
                .filter(|index| VARIABLES[*index] == held(ty) && (live[*index] || !must_live))
                .collect();
            (!fit.is_empty()).then(|| random.pick(&fit))
        };
        let memory = [Type::I, Type::I, Type::L, Type::L, Type::U, Type::Ul, Type::F, Type::D, Type::C, Type::Us];
        let address = |random: &mut Random| match random.index(5) {
            0 => Address::Local,
            1 => Address::Moved(random.pick(&[4, 8, -8, 120])),
            2 => Address::Index,
            _ => Address::Offset,
        };
        match random.index(12) {
            0 => {
                let variable = random.index(VARIABLES.len());
                return live[variable].then_some(Step::Give { variable });
            }
            1 | 2 => {
                let ty = random.pick(&memory);
                let at = place(random, ty);
                return Some(Step::Load { ty, to: pick(random, ty, false)?, at, address: address(random) });
            }
            3 | 4 => {
                let ty = random.pick(&memory);
                let at = place(random, ty);
                return Some(Step::Store { ty, from: pick(random, ty, true)?, at, address: address(random) });
            }
            _ => {}
        }
        // Copies and constants are a quarter of all.
        let index = match random.index(4) {
            0 => {
                let simple = |instruction: &&Instruction| ["mov", "set"].contains(&instruction.op);
                let name = random.pick(&INSTRUCTIONS.iter().filter(simple).map(|found| found.name).collect::<Vec<_>>());
                INSTRUCTIONS.iter().position(|found| found.name == name)?
            }
            _ => random.index(INSTRUCTIONS.len() + EXTENSIONS.len()),
        };
        let instruction = instruction(index);
        let (ty, bits) = (instruction.ty, instruction.ty.bits(long));
        let mut immediate = of_type(number(random), ty, long);
        let mut t = 0;
        match instruction.family {
            Family::Binary if ["div", "mod", "crc32c"].contains(&instruction.op) => return None,
            Family::Binary if ty.is_float() && ["mul", "div", "min", "max"].contains(&instruction.op) => return None,
            Family::Unary if ["sqrt", "bswap"].contains(&instruction.op) => return None,
            Family::Shift if !instruction.immediate => return None,
            Family::Convert if instruction.source.is_float() != ty.is_float() => return None,
            Family::Shift => immediate = random.index(bits as usize) as i64,
            Family::Set if ty == Type::F => immediate = i64::from((random.index(9) as f32).to_bits()),
            Family::Set if ty == Type::D => immediate = (random.index(9) as f64).to_bits() as i64,
            Family::Binary | Family::Branch | Family::Select if !instruction.immediate => t = pick(random, ty, true)?,
            Family::Binary | Family::Branch | Family::Unary | Family::Set | Family::Convert | Family::Select => {}
            Family::Load
            | Family::Store
            | Family::Return
            | Family::Label
            | Family::Register
            | Family::Nullary
            | Family::Checked
            | Family::Exchange
            | Family::IndexedLoad
            | Family::IndexedStore
            | Family::Hint => return None,
        }
        let s = if instruction.family == Family::Set { 0 } else { pick(random, instruction.source, true)? };
        if instruction.family == Family::Branch {
            return Some(Step::Branch { index, s, t, immediate, over: random.index(4) });
        }
        // A destination that is a source now and then.
        let same = random.index(2) == 0 && VARIABLES[s] == held(ty) && instruction.family != Family::Set;
        let d = if same { s } else { pick(random, ty, instruction.family == Family::Select)? };
        Some(Step::Plain { index, d, s, t, immediate })
    }

    fn write<A: Extension>(&self, asm: &mut A, v: &Variables<A::Reg, A::Float>, client: &mut impl Client<A>) {
        asm.seti(v.int(0), 0);
        for at in 0..MEMORY as i32 / 4 {
            asm.sti_local(v.int(0), v.memory.plus(4 * at));
        }
        let nowhere = client.label(asm);
        for (place, (ty, value)) in VARIABLES.iter().zip(&self.initial).enumerate() {
            let value = *value;
            match ty {
                Type::F => asm.setf(v.float(place), f32::from_bits(value as u32)),
                Type::D => asm.setd(v.float(place), f64::from_bits(value)),
                Type::I => asm.seti(v.int(place), value as i32),
                Type::U => asm.setu(v.int(place), value as u32),
                Type::L => asm.setl(v.int(place), of_type(value as i64, Type::L, self.long)),
                _ => asm.setul(v.int(place), value),
            }
        }
        let mut joins: Vec<(usize, Label)> = Vec::new();
        for (position, step) in self.steps.iter().enumerate() {
            joins.retain(|(join, label)| {
                if *join == position {
                    client.bind(asm, *label);
                }
                *join != position
            });
            match *step {
                Step::Plain { index, d, s, t, immediate } => {
                    emit_any(asm, index, &v.operands(d, s, t, immediate), nowhere);
                }
                Step::Branch { index, s, t, immediate, over } => {
                    let label = client.label(asm);
                    emit_any(asm, index, &v.operands(0, s, t, immediate), label);
                    joins.push((position + 1 + over, label));
                }
                Step::Load { ty, to, at, address } => load(asm, v, ty, to, at, address),
                Step::Store { ty, from, at, address } => store(asm, v, ty, from, at, address),
                Step::Give { variable } if VARIABLES[variable].is_float() => client.give_float(asm, v.float(variable)),
                Step::Give { variable } => client.give(asm, v.int(variable)),
            }
        }
        for (_, label) in joins {
            client.bind(asm, label);
        }
        // The sum of all is made in the register of the base.
        for (place, ty) in VARIABLES.iter().enumerate() {
            match ty {
                Type::F => asm.stf_local(v.float(place), v.memory.plus(MEMORY as i32)),
                Type::D => asm.std_local(v.float(place), v.memory.plus(MEMORY as i32)),
                Type::I => asm.cvi2l(v.other, v.int(place)),
                Type::U => asm.cvu2l(v.other, v.int(place)),
                _ => asm.movl(v.other, v.int(place)),
            }
            if ty.is_float() {
                asm.ldi_local(v.other, v.memory.plus(MEMORY as i32));
                asm.cvi2l(v.other, v.other);
            }
            if place == 0 {
                asm.setl(v.base, 0);
            }
            asm.mulli(v.base, v.base, 31);
            asm.addl(v.base, v.base, v.other);
            if *ty == Type::D {
                asm.ldi_local(v.other, v.memory.plus(MEMORY as i32 + 4));
                asm.cvi2l(v.other, v.other);
                asm.addl(v.base, v.base, v.other);
            }
        }
        for at in 0..MEMORY as i32 / 4 {
            asm.ldi_local(v.other, v.memory.plus(4 * at));
            asm.cvi2l(v.other, v.other);
            asm.mulli(v.base, v.base, 31);
            asm.addl(v.base, v.base, v.other);
        }
        asm.retl(v.base);
    }

    /// What the function must return.
    fn result(&self) -> i64 {
        let long = self.long;
        let mut values = self.initial.clone();
        let mut memory = [0_u8; MEMORY];
        let mut position = 0;
        while let Some(step) = self.steps.get(position) {
            position += 1;
            match *step {
                Step::Plain { index, d, s, t, immediate } => {
                    let instruction = instruction(index);
                    let (op, ty, source) = (instruction.op, instruction.ty, instruction.source);
                    let (bits, left) = (ty.bits(long), values[s]);
                    let right = if instruction.immediate { immediate as u64 } else { values[t] };
                    values[d] = match instruction.family {
                        Family::Binary if ty.is_float() => interpreter::binary_float(op, ty, left, right),
                        Family::Binary | Family::Shift => {
                            interpreter::binary(op, ty, bits, left, right).expect("defined")
                        }
                        Family::Unary => interpreter::unary(op, ty, bits, left),
                        Family::Set => mask(immediate as u64, bits),
                        Family::Select if (mask(left, bits) == 0) == (op == "movz") => right,
                        Family::Select => values[d],
                        _ => interpreter::convert(source, source.bits(long), ty, bits, left).expect("defined"),
                    };
                }
                Step::Branch { index, s, t, immediate, over } => {
                    let instruction = instruction(index);
                    let right = if instruction.immediate { immediate as u64 } else { values[t] };
                    let bits = instruction.ty.bits(long);
                    if interpreter::branch(instruction.op, instruction.ty, bits, values[s], right) {
                        position = (position + over).min(self.steps.len());
                    }
                }
                Step::Load { ty, to, at, .. } => {
                    let bytes = &memory[at..at + ty.bits(long) as usize / 8];
                    let join = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
                    let value = if self.little { bytes.iter().rev().fold(0, join) } else { bytes.iter().fold(0, join) };
                    values[to] = interpreter::load(ty, ty.bits(long), value);
                }
                Step::Store { ty, from, at, .. } => {
                    let count = ty.bits(long) as usize / 8;
                    for index in 0..count {
                        let place = if self.little { index } else { count - 1 - index };
                        memory[at + place] = (values[from] >> (8 * index)) as u8;
                    }
                }
                Step::Give { .. } => {}
            }
        }
        let mut sum = 0_i64;
        for (ty, value) in VARIABLES.iter().zip(&values) {
            sum = sum.wrapping_mul(31).wrapping_add(match ty {
                Type::F | Type::I => i64::from(*value as i32),
                Type::D => i64::from(*value as i32).wrapping_add(i64::from((*value >> 32) as i32)),
                Type::U => i64::from(*value as u32),
                _ => *value as i64,
            });
        }
        for word in memory.chunks(4) {
            let word: [u8; 4] = word.try_into().expect("chunks of four");
            let word = if self.little { i32::from_le_bytes(word) } else { i32::from_be_bytes(word) };
            sum = sum.wrapping_mul(31).wrapping_add(i64::from(word));
        }
        if long == 32 { i64::from(sum as i32) } else { sum }
    }
}

/// The registers of a program.
struct Variables<R, F> {
    ints: Vec<R>,
    floats: Vec<F>,
    base: R,
    other: R,
    memory: Local,
}

impl<R: Copy, F: Copy> Variables<R, F> {
    fn int(&self, place: usize) -> R {
        self.ints[place]
    }

    fn float(&self, place: usize) -> F {
        self.floats[place - self.ints.len()]
    }

    fn operands(&self, d: usize, s: usize, t: usize, immediate: i64) -> Operands<R, F> {
        let int = |place: usize| self.ints[place.min(self.ints.len() - 1)];
        let float = |place: usize| self.floats[place.saturating_sub(self.ints.len())];
        Operands { d: int(d), s: int(s), t: int(t), fd: float(d), fs: float(s), ft: float(t), immediate }
    }
}

/// One access, by the names of its forms.
macro_rules! access {
    ($asm:ident, $v:ident, $value:expr, $at:ident, $address:ident, $local:ident, $offset:ident, $index:ident) => {{
        let at = $at as i32;
        match $address {
            Address::Local => $asm.$local($value, $v.memory.plus(at)),
            Address::Offset => $asm.$offset($value, $v.base, at),
            Address::Moved(by) if by < 0 => {
                $asm.subpi($v.other, $v.base, by.unsigned_abs());
                $asm.$offset($value, $v.other, at - by as i32);
            }
            Address::Moved(by) => {
                $asm.addpi($v.other, $v.base, by.unsigned_abs());
                $asm.$offset($value, $v.other, at - by as i32);
            }
            Address::Index => {
                $asm.setl($v.other, i64::from(at));
                $asm.$index($value, $v.base, $v.other);
            }
        }
    }};
}

fn load<A: Extension>(asm: &mut A, v: &Variables<A::Reg, A::Float>, ty: Type, to: usize, at: usize, address: Address) {
    match ty {
        Type::C => access!(asm, v, v.int(to), at, address, ldc_local, ldci, ldc),
        Type::Uc => access!(asm, v, v.int(to), at, address, lduc_local, lduci, lduc),
        Type::S => access!(asm, v, v.int(to), at, address, lds_local, ldsi, lds),
        Type::Us => access!(asm, v, v.int(to), at, address, ldus_local, ldusi, ldus),
        Type::I | Type::V => access!(asm, v, v.int(to), at, address, ldi_local, ldii, ldi),
        Type::U => access!(asm, v, v.int(to), at, address, ldu_local, ldui, ldu),
        Type::L => access!(asm, v, v.int(to), at, address, ldl_local, ldli, ldl),
        Type::Ul | Type::P => access!(asm, v, v.int(to), at, address, ldul_local, lduli, ldul),
        Type::F => access!(asm, v, v.float(to), at, address, ldf_local, ldfi, ldf),
        Type::D => access!(asm, v, v.float(to), at, address, ldd_local, lddi, ldd),
    }
}

fn store<A: Extension>(
    asm: &mut A,
    v: &Variables<A::Reg, A::Float>,
    ty: Type,
    from: usize,
    at: usize,
    address: Address,
) {
    match ty {
        Type::C | Type::Uc => access!(asm, v, v.int(from), at, address, stc_local, stci, stc),
        Type::S | Type::Us => access!(asm, v, v.int(from), at, address, stus_local, stusi, stus),
        Type::I | Type::V => access!(asm, v, v.int(from), at, address, sti_local, stii, sti),
        Type::U => access!(asm, v, v.int(from), at, address, stu_local, stui, stu),
        Type::L => access!(asm, v, v.int(from), at, address, stl_local, stli, stl),
        Type::Ul | Type::P => access!(asm, v, v.int(from), at, address, stul_local, stuli, stul),
        Type::F => access!(asm, v, v.float(from), at, address, stf_local, stfi, stf),
        Type::D => access!(asm, v, v.float(from), at, address, std_local, stdi, std),
    }
}

/// What a program wants besides instructions.
trait Client<A: Core> {
    fn label(&mut self, asm: &mut A) -> Label;
    fn bind(&mut self, asm: &mut A, label: Label);
    fn give(&mut self, asm: &mut A, register: A::Reg);
    fn give_float(&mut self, asm: &mut A, register: A::Float);
}

macro_rules! client {
    ($client:ident, $function:ident) => {
        struct $client;

        impl<M: Machine> Client<$function<'_, M>> for $client
        where
            for<'a> Asm<'a, M>: Extension + Core<Reg = M::Reg, Float = M::Float>,
        {
            fn label(&mut self, asm: &mut $function<'_, M>) -> Label {
                asm.label()
            }

            fn bind(&mut self, asm: &mut $function<'_, M>, label: Label) {
                asm.bind(label);
            }

            fn give(&mut self, asm: &mut $function<'_, M>, register: M::Reg) {
                asm.putreg(register);
            }

            fn give_float(&mut self, asm: &mut $function<'_, M>, register: M::Float) {
                asm.putfloat(register);
            }
        }
    };
}

client!(Plain, Asm);
client!(Windowed, Peephole);

/// The registers and the memory of a program.
fn variables<M: Machine>(asm: &mut Asm<'_, M>) -> Variables<M::Reg, M::Float>
where
    for<'a> Asm<'a, M>: Core<Reg = M::Reg, Float = M::Float>,
{
    let floats = VARIABLES.iter().filter(|ty| ty.is_float()).count();
    let mut int = || asm.getreg(Class::Temporary).expect("there are so many on every machine");
    let ints = (floats..VARIABLES.len()).map(|_| int()).collect();
    let (base, other) = (int(), int());
    let mut float = || asm.getfloat(Class::Temporary).expect("there are so many on every machine");
    let floats = (0..floats).map(|_| float()).collect();
    let memory = asm.local_bytes(MEMORY as u32 + 8, 8);
    asm.local_address(base, memory);
    Variables { ints, floats, base, other, memory }
}

/// Random functions with much to improve, through the window and without it.
pub fn add<M: Machine>(batch: &mut Batch<'_>, programs: u64)
where
    for<'a> Asm<'a, M>: Extension + Core<Reg = M::Reg, Float = M::Float>,
{
    let (mut plain, mut windowed) = (0, 0);
    for number in 0..programs {
        let program = Program::random(number, M::LONG_BITS, M::LITTLE_ENDIAN);
        let result = program.result();
        let mut lengths = [0; 2];
        batch.add_built::<M>(&format!("random program {number} without a window"), result, |region, _| {
            let mut workspace = Workspace::<M, 128, 256, 128>::with_room();
            let mut asm = Asm::<M>::begin(region, &mut workspace, "%p", &mut [Param::NONE], Kind::Leaf).expect("room");
            let variables = variables(&mut asm);
            program.write(&mut asm, &variables, &mut Plain);
            let code = asm.end().unwrap_or_else(|error| panic!("{} program {number}: {error}", M::NAME));
            lengths[0] = code.instructions;
            code
        });
        batch.add_built::<M>(&format!("random program {number} through the window"), result, |region, _| {
            let mut workspace = Workspace::<M, 128, 256, 128>::with_room();
            let mut asm = Asm::<M>::begin(region, &mut workspace, "%p", &mut [Param::NONE], Kind::Leaf).expect("room");
            let variables = variables(&mut asm);
            let mut asm = Peephole::new(asm);
            program.write(&mut asm, &variables, &mut Windowed);
            let code = asm.end().unwrap_or_else(|error| panic!("{} program {number}: {error}", M::NAME));
            lengths[1] = code.instructions;
            code
        });
        assert!(lengths[1] <= lengths[0], "{} program {number} is longer: {lengths:?}\n{:?}", M::NAME, program.steps);
        plain += lengths[0];
        windowed += lengths[1];
    }
    assert!(windowed * 20 < plain * 19, "{}: {windowed} of {plain} bytes: the window does little", M::NAME);
}
