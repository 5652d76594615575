//! Builds batches of small functions for a machine, runs them (natively or under qemu-user) and compares what they
//! leave in memory with what the reference interpreter says.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use quaject_vcode::{Asm, Core, Extension, Features, Kind, Label, Machine, Param, Region, Register, Workspace};

use crate::instructions::{EXTENSIONS, INSTRUCTIONS, emit, emit_extension};
use crate::interpreter;

/// The operands of an instruction, as in the specifications.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    Binary,
    Shift,
    Unary,
    Set,
    Convert,
    Load,
    Store,
    Return,
    Branch,
    Label,
    Register,
    Nullary,
    Select,
    Checked,
    Exchange,
    Hint,
}

/// A type of the instruction set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    V,
    C,
    Uc,
    S,
    Us,
    I,
    U,
    L,
    Ul,
    P,
    F,
    D,
}

impl Type {
    pub fn bits(self, long: u32) -> u32 {
        match self {
            Type::V => 0,
            Type::C | Type::Uc => 8,
            Type::S | Type::Us => 16,
            Type::I | Type::U | Type::F => 32,
            Type::L | Type::Ul | Type::P => long,
            Type::D => 64,
        }
    }

    pub fn is_float(self) -> bool {
        matches!(self, Type::F | Type::D)
    }

    /// The type of a register that holds it: narrow values are held as ints.
    fn held(self) -> Type {
        match self {
            Type::C | Type::Uc | Type::S | Type::Us => Type::I,
            Type::V | Type::I | Type::U | Type::L | Type::Ul | Type::P | Type::F | Type::D => self,
        }
    }
}

/// An instruction of the generated list.
#[derive(Debug)]
pub struct Instruction {
    pub name: &'static str,
    pub op: &'static str,
    pub family: Family,
    pub ty: Type,
    pub source: Type,
    pub immediate: bool,
}

/// Registers and immediate to call an emitter with.
pub struct Operands<R, F> {
    pub d: R,
    pub s: R,
    pub t: R,
    pub fd: F,
    pub fs: F,
    pub ft: F,
    pub immediate: i64,
}

/// How a machine is assembled for and run.
pub struct Tools {
    pub prefix: &'static str,
    pub qemu: Option<&'static str>,
    pub sysroot: Option<&'static str>,
    pub assembler: &'static [&'static str],
    pub prelude: &'static str,
    pub little: bool,
    pub table: &'static quaject_vcode::decode::Table,
}

/// Where batches are mapped when they run.
const CODE_ADDRESS: usize = 0x2000_0000;
/// Memory of a test, in bytes; the function gets the address of its ninth word.
const TEST_BYTES: usize = 256;
const HEADER_BYTES: usize = 64;
/// What of it the function works on.
pub const MEMORY_BYTES: usize = TEST_BYTES - HEADER_BYTES;

const SLOT_S: usize = 0;
const SLOT_T: usize = 1;
const SLOT_RESULT: usize = 3;
const SLOT_S_AFTER: usize = 4;
const SLOT_T_AFTER: usize = 5;
const SLOT_BYSTANDERS: usize = 6;
const MOST_BYSTANDERS: usize = 8;
const SLOT_DATA: usize = 16;
/// In the header: what the function returns.
const RETURN_OFFSET: usize = 16;

struct Expected {
    offset: usize,
    bits: u32,
    value: u64,
    ty: Type,
    what: &'static str,
}

struct Case {
    name: String,
    entry: u64,
    returns: u64,
    memory: [u8; TEST_BYTES],
    expected: Vec<Expected>,
}

/// A batch under construction.
pub struct Batch<'t> {
    tools: &'t Tools,
    long: u32,
    code: Vec<u8>,
    cases: Vec<Case>,
    spans: Vec<(usize, usize)>,
    random: u64,
    folder: Option<PathBuf>,
    features: Features,
}

fn slot(index: usize) -> i32 {
    (8 * index) as i32
}

impl<'t> Batch<'t> {
    pub fn new<M: Machine>(tools: &'t Tools) -> Self {
        Batch {
            tools,
            long: M::LONG_BITS,
            code: Vec::new(),
            cases: Vec::new(),
            spans: Vec::new(),
            folder: None,
            features: Features::NONE,
            random: 0x9e37_79b9_7f4a_7c15,
        }
    }

    fn random(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.random() as usize % from.len()]
    }

    fn bytes_of(&self, value: u64, bits: u32) -> Vec<u8> {
        let count = (bits / 8) as usize;
        if self.tools.little {
            value.to_le_bytes()[..count].to_vec()
        } else {
            value.to_be_bytes()[8 - count..].to_vec()
        }
    }

    fn value_at(&self, memory: &[u8], offset: usize, bits: u32) -> u64 {
        let bytes = &memory[offset..offset + (bits / 8) as usize];
        let fold = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
        if self.tools.little { bytes.iter().rev().fold(0, fold) } else { bytes.iter().fold(0, fold) }
    }

    fn put(&self, memory: &mut [u8], offset: usize, bits: u32, value: u64) {
        let bytes = self.bytes_of(value, bits);
        memory[offset..offset + bytes.len()].copy_from_slice(&bytes);
    }

    /// Adds tests of every instruction of the generated list: every pattern of equal and different registers, `rounds`
    /// choices of operands each; those of the extensions again as processors with these features have them.
    pub fn add_instructions<M: Machine>(&mut self, rounds: usize, features: Features)
    where
        for<'a> Asm<'a, M>: Extension + Core<Reg = M::Reg, Float = M::Float>,
    {
        self.add_from::<M>(0, rounds);
        self.features = features;
        self.add_from::<M>(INSTRUCTIONS.len(), rounds);
        self.features = Features::NONE;
    }

    /// Adds tests of the instructions from this one on.
    fn add_from<M: Machine>(&mut self, first: usize, rounds: usize)
    where
        for<'a> Asm<'a, M>: Extension + Core<Reg = M::Reg, Float = M::Float>,
    {
        // Destination, first, second: which of three registers.
        const PATTERNS: [[usize; 3]; 5] = [[0, 1, 2], [0, 0, 1], [0, 1, 0], [0, 1, 1], [0, 0, 0]];
        for (index, instruction) in INSTRUCTIONS.iter().chain(EXTENSIONS).enumerate().skip(first) {
            for pattern in PATTERNS {
                // Base and index differ, and so do remainder and data, which are of different types.
                let apart = matches!(instruction.family, Family::Load | Family::Store) || instruction.op == "crc32c";
                if apart && pattern[1] == pattern[2] {
                    continue;
                }
                // The three of an exchange are different registers.
                if instruction.family == Family::Exchange && pattern != [0, 1, 2] {
                    continue;
                }
                let value_is_base = pattern[0] == pattern[1] || pattern[0] == pattern[2];
                if instruction.family == Family::Store && value_is_base && !instruction.ty.is_float() {
                    continue;
                }
                for _ in 0..rounds {
                    self.add_instruction::<M>(index, instruction, pattern);
                }
            }
        }
    }

    fn value(&mut self, ty: Type) -> u64 {
        const INTEGERS: [i64; 24] = [
            0,
            1,
            -1,
            2,
            7,
            -8,
            127,
            128,
            255,
            -129,
            32767,
            32768,
            65535,
            -32769,
            0x7fff_ffff,
            -0x8000_0000,
            0x8000_0000,
            0xffff_ffff,
            0x1234_5678,
            0x1_0000_0000,
            i64::MAX,
            i64::MIN,
            0x0123_4567_89ab_cdef,
            -0x0123_4567_89ab_cdef,
        ];
        const DOUBLES: [f64; 14] =
            [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, -2.5, 3.25e9, -1e10, 1e-5, 123_456.789, f64::INFINITY, -7.0, f64::NAN];
        match ty {
            Type::F => u64::from((self.pick(&DOUBLES) as f32).to_bits()),
            Type::D => self.pick(&DOUBLES).to_bits(),
            _ => {
                let value = if self.random().is_multiple_of(4) { self.random() } else { self.pick(&INTEGERS) as u64 };
                let bits = ty.bits(self.long);
                if bits == 0 { 0 } else { value << (64 - bits) >> (64 - bits) }
            }
        }
    }

    fn immediate(&mut self, ty: Type) -> i64 {
        const EDGES: [i64; 26] = [
            0,
            1,
            -1,
            7,
            8,
            127,
            128,
            -128,
            -129,
            255,
            256,
            2047,
            2048,
            -2048,
            -2049,
            4095,
            4096,
            -4095,
            -4096,
            32767,
            32768,
            -32768,
            -32769,
            65535,
            65536,
            0x7fff_f7ff,
        ];
        let value = match self.random() % 3 {
            0 => self.value(ty) as i64,
            _ => self.pick(&EDGES),
        };
        let bits = ty.bits(self.long);
        if bits == 0 { 0 } else { value << (64 - bits) >> (64 - bits) }
    }

    fn add_instruction<M: Machine>(&mut self, index: usize, instruction: &'static Instruction, pattern: [usize; 3])
    where
        for<'a> Asm<'a, M>: Extension + Core<Reg = M::Reg, Float = M::Float>,
    {
        let ty = instruction.ty;
        // A remainder is an unsigned, whatever the data.
        let source = if instruction.op == "crc32c" { Type::U } else { instruction.source };
        let bits = ty.bits(self.long);
        match instruction.family {
            // Tested with functions: they need a place to go to.
            Family::Label | Family::Register => return,
            Family::Exchange => return self.add_exchange::<M>(index, instruction),
            Family::Hint
            | Family::Binary
            | Family::Shift
            | Family::Unary
            | Family::Set
            | Family::Convert
            | Family::Load
            | Family::Store
            | Family::Return
            | Family::Branch
            | Family::Nullary
            | Family::Select
            | Family::Checked => {}
        }
        // Choose operands until the instruction is defined on them.
        let (mut left, mut right, mut immediate) = (0, 0, 0);
        let mut defined = None;
        // What is in the destination before a selection; whether a checked instruction overflows.
        let (mut previous, mut overflow) = (0, false);
        for _ in 0..100 {
            left = self.value(source);
            right = self.value(ty);
            if instruction.family == Family::Select && self.random().is_multiple_of(3) {
                left = 0;
            }
            if pattern[1] == pattern[2] {
                right = left;
            }
            previous = match pattern {
                [d, s, _] if d == s => left,
                [d, _, t] if d == t => right,
                _ => self.value(ty),
            };
            immediate = self.immediate(ty.held());
            if instruction.family == Family::Shift {
                immediate = (self.random() % u64::from(bits)) as i64;
                if pattern[1] != pattern[2] {
                    right = self.random() % u64::from(bits);
                }
            }
            if self.long == 32 && matches!(ty, Type::Ul | Type::P) {
                immediate &= 0xffff_ffff;
            }
            let second = if instruction.immediate { immediate as u64 } else { right };
            defined = match instruction.family {
                Family::Binary | Family::Shift if ty.is_float() => {
                    interpreter::extended_float(instruction.op, ty, left, right)
                }
                Family::Binary if instruction.op == "crc32c" => Some(interpreter::crc32c(left, second, bits)),
                Family::Select => Some(if (left == 0) == (instruction.op == "movz") { right } else { previous }),
                Family::Checked => {
                    let (value, overflows) = interpreter::checked(instruction.op, ty, bits, left, second);
                    overflow = overflows;
                    Some(value)
                }
                Family::Hint => Some(0),
                Family::Exchange => None,
                Family::Binary | Family::Shift => interpreter::binary(instruction.op, ty, bits, left, second),
                Family::Unary => Some(interpreter::unary(instruction.op, ty, bits, left)),
                Family::Convert => interpreter::convert(source, source.bits(self.long), ty, bits, left),
                Family::Branch => Some(u64::from(interpreter::branch(instruction.op, ty, bits, left, second))),
                Family::Set if ty.is_float() => {
                    immediate = left as i64;
                    Some(left)
                }
                Family::Set => Some((immediate as u64) << (64 - bits) >> (64 - bits)),
                Family::Load | Family::Store | Family::Return | Family::Nullary => Some(left),
                Family::Label | Family::Register => None,
            };
            if defined.is_some() {
                break;
            }
        }
        let Some(result) = defined else { return };
        let unaligned = matches!(instruction.op, "uld" | "ust");
        let misaligned = if unaligned { self.random() as usize % 8 } else { 0 };

        // Choose registers. The base of the test's memory is in the first callee-saved one.
        let pool: Vec<u8> = M::INT.temp.to_vec();
        let float_pool: Vec<u8> = M::FLOAT.temp.to_vec();
        let first = self.random() as usize;
        let step = 1 + self.random() as usize % ((pool.len() - 1) / 2);
        let int = |which: usize| M::Reg::from_number(pool[(first + which * step) % pool.len()]);
        let float = |which: usize| M::Float::from_number(float_pool[(first + which) % float_pool.len()]);
        let memory_access = matches!(instruction.family, Family::Load | Family::Store);
        let operands = Operands {
            d: int(pattern[0]),
            s: int(pattern[1]),
            t: int(pattern[2]),
            fd: float(pattern[0]),
            fs: float(pattern[1]),
            ft: float(pattern[2]),
            immediate: if memory_access { self.offset() } else { immediate },
        };
        let bystanders: Vec<M::Reg> = pool
            .iter()
            .map(|number| M::Reg::from_number(*number))
            .filter(|register| *register != operands.d && *register != operands.s && *register != operands.t)
            .take(MOST_BYSTANDERS)
            .collect();

        let mut region = vec![0_u8; 4096];
        let mut workspace = Workspace::<M>::new();
        let mut params = [Param::NONE];
        let at = CODE_ADDRESS + self.code.len();
        let region_ref = Region::from(&mut region[..]).executed_at(at);
        let mut asm = Asm::<M>::begin(region_ref, &mut workspace, "%p", &mut params, Kind::Leaf)
            .expect("the region is large enough");
        asm.use_features(self.features);
        let base = M::Reg::from_number(M::INT.saved[0]);
        asm.claim(base).expect("the first callee-saved register is free");
        asm.movp(base, params[0].reg());
        for (index, register) in bystanders.iter().enumerate() {
            asm.seti(*register, 0x5a00 + index as i32);
        }
        let held = source.held();
        if memory_access {
            let data = i64::from(slot(SLOT_DATA)) + misaligned as i64;
            let displacement = if instruction.immediate { operands.immediate } else { immediate >> 40 };
            asm.addpi(operands.s, base, (data - displacement) as u64 & self.pointer_mask());
            if !instruction.immediate {
                asm.setl(operands.t, displacement);
            }
            if instruction.family == Family::Store {
                load(&mut asm, held, operands.d, operands.fd, base, SLOT_S);
            }
        } else {
            load(&mut asm, held, operands.s, operands.fs, base, SLOT_S);
            if instruction.family == Family::Hint {
                asm.movp(operands.s, base);
            }
            if instruction.family == Family::Select && pattern[0] != pattern[1] && pattern[0] != pattern[2] {
                load(&mut asm, ty, operands.d, operands.fd, base, SLOT_DATA);
            }
            let two = matches!(
                instruction.family,
                Family::Binary | Family::Shift | Family::Branch | Family::Select | Family::Checked
            );
            if two && !instruction.immediate && pattern[1] != pattern[2] {
                load(&mut asm, ty, operands.t, operands.ft, base, SLOT_T);
            }
        }
        let taken = asm.label();
        let done = asm.label();
        emit_any(&mut asm, index, &operands, taken);
        match instruction.family {
            Family::Branch => {
                let flag = bystanders[0];
                asm.seti(flag, 0);
                asm.j(done);
                asm.bind(taken);
                asm.seti(flag, 1);
                asm.bind(done);
                asm.stii(flag, base, slot(SLOT_RESULT));
                asm.seti(flag, 0x5a00);
            }
            Family::Checked => {
                // Whether it overflowed goes where the first operand would be looked at afterwards.
                let flag = bystanders[0];
                asm.seti(flag, 0);
                asm.j(done);
                asm.bind(taken);
                asm.seti(flag, 1);
                asm.bind(done);
                asm.stii(flag, base, slot(SLOT_DATA));
                asm.seti(flag, 0x5a00);
                store(&mut asm, ty.held(), operands.d, operands.fd, base, SLOT_RESULT);
            }
            Family::Store | Family::Return | Family::Nullary | Family::Hint => {}
            Family::Binary if instruction.op == "crc32c" => {
                store(&mut asm, Type::U, operands.d, operands.fd, base, SLOT_RESULT);
            }
            _ => store(&mut asm, ty.held(), operands.d, operands.fd, base, SLOT_RESULT),
        }
        let mut expected = Vec::new();
        let mut expect = |slot: usize, bits: u32, value: u64, ty: Type, what: &'static str| {
            let misaligned = if slot == SLOT_DATA { misaligned } else { 0 };
            expected.push(Expected { offset: HEADER_BYTES + 8 * slot + misaligned, bits, value, ty, what });
        };
        let mut returns = 0;
        let held_bits = ty.held().bits(self.long);
        match instruction.family {
            Family::Branch => expect(SLOT_RESULT, 32, result, Type::I, "taken"),
            Family::Store if instruction.op == "bst" => {
                expect(SLOT_DATA, bits, result.swap_bytes() >> (64 - bits), ty, "memory");
            }
            Family::Store => expect(SLOT_DATA, bits, result << (64 - bits) >> (64 - bits), ty, "memory"),
            Family::Load if instruction.op == "bld" => {
                expect(SLOT_RESULT, held_bits, result.swap_bytes() >> (64 - bits), ty, "result");
            }
            Family::Load => expect(SLOT_RESULT, held_bits, interpreter::load(ty, bits, result), ty, "result"),
            Family::Return if ty == Type::V => {}
            Family::Return => {
                returns = match ty {
                    Type::F => 1,
                    Type::D => 2,
                    _ => 0,
                };
                // An int is returned in a long; only its own bits are defined.
                let skip = if self.tools.little || ty.is_float() { 0 } else { (self.long - bits) as usize / 8 };
                expected.push(Expected {
                    offset: RETURN_OFFSET + skip,
                    bits,
                    value: result,
                    ty,
                    what: "returned value",
                });
            }
            Family::Nullary | Family::Hint => {}
            Family::Checked => {
                expect(SLOT_DATA, 32, u64::from(overflow), Type::I, "overflow");
                expect(SLOT_RESULT, held_bits, result, ty, "result");
            }
            Family::Binary if instruction.op == "crc32c" => expect(SLOT_RESULT, 32, result, Type::I, "result"),
            _ => expect(SLOT_RESULT, held_bits, result, ty, "result"),
        }
        if instruction.family != Family::Return {
            for (index, register) in bystanders.iter().enumerate() {
                asm.stii(*register, base, slot(SLOT_BYSTANDERS + index));
                expected.push(Expected {
                    offset: HEADER_BYTES + 8 * (SLOT_BYSTANDERS + index),
                    bits: 32,
                    value: 0x5a00 + index as u64,
                    ty: Type::I,
                    what: "bystander",
                });
            }
            let reads_source = matches!(
                instruction.family,
                Family::Binary
                    | Family::Shift
                    | Family::Unary
                    | Family::Convert
                    | Family::Branch
                    | Family::Select
                    | Family::Checked
            );
            let writes = instruction.family != Family::Branch;
            let same_file = source.is_float() == ty.is_float();
            if reads_source && !(writes && same_file && pattern[0] == pattern[1]) {
                store(&mut asm, held, operands.s, operands.fs, base, SLOT_S_AFTER);
                expected.push(Expected {
                    offset: HEADER_BYTES + 8 * SLOT_S_AFTER,
                    bits: held.bits(self.long),
                    value: left,
                    ty: source,
                    what: "first operand afterwards",
                });
            }
            let reads_second = matches!(
                instruction.family,
                Family::Binary | Family::Shift | Family::Branch | Family::Select | Family::Checked
            );
            if reads_second && !instruction.immediate && !(writes && pattern[0] == pattern[2]) {
                store(&mut asm, ty, operands.t, operands.ft, base, SLOT_T_AFTER);
                expected.push(Expected {
                    offset: HEADER_BYTES + 8 * SLOT_T_AFTER,
                    bits: ty.held().bits(self.long),
                    value: right,
                    ty,
                    what: "second operand afterwards",
                });
            }
            asm.retv();
        }
        let mut memory = [0_u8; TEST_BYTES];
        let data_bits = if memory_access { bits } else { held.bits(self.long) };
        let source_slot = if instruction.family == Family::Load { SLOT_DATA } else { SLOT_S };
        let source_bits = if instruction.family == Family::Store { held.bits(self.long) } else { data_bits };
        if source_bits > 0 {
            let misaligned = if source_slot == SLOT_DATA { misaligned } else { 0 };
            self.put(&mut memory, HEADER_BYTES + 8 * source_slot + misaligned, source_bits, left);
        }
        if bits > 0 && source_slot != SLOT_DATA {
            self.put(&mut memory, HEADER_BYTES + 8 * SLOT_T, ty.held().bits(self.long), right);
        }
        if instruction.family == Family::Select {
            self.put(&mut memory, HEADER_BYTES + 8 * SLOT_DATA, bits, previous);
        }
        let name = format!(
            "{} {}: d={:?} s={:?} t={:?} left={left:#x} right={right:#x} immediate={:#x}",
            M::NAME,
            instruction.name,
            operands.d,
            operands.s,
            operands.t,
            operands.immediate
        );
        let code = asm.end().unwrap_or_else(|error| panic!("{name}: {error}"));
        self.finish(name, &region, code, returns, memory, expected);
    }

    /// A compare-and-exchange that succeeds or fails.
    fn add_exchange<M: Machine>(&mut self, index: usize, instruction: &'static Instruction)
    where
        for<'a> Asm<'a, M>: Extension + Core<Reg = M::Reg, Float = M::Float>,
    {
        let (ty, bits) = (instruction.ty, instruction.ty.bits(self.long));
        let (there, new) = (self.value(ty), self.value(ty));
        let expected = if self.random().is_multiple_of(2) { there } else { self.value(ty) };
        let pool = M::INT.temp;
        let first = self.random() as usize;
        let int = |which: usize| M::Reg::from_number(pool[(first + which) % pool.len()]);
        let operands = Operands {
            d: int(0),
            s: int(1),
            t: int(2),
            fd: M::FLOAT_RESULT,
            fs: M::FLOAT_RESULT,
            ft: M::FLOAT_RESULT,
            immediate: 0,
        };
        let mut region = vec![0_u8; 4096];
        let mut workspace = Workspace::<M>::new();
        let mut params = [Param::NONE];
        let at = CODE_ADDRESS + self.code.len();
        let region_ref = Region::from(&mut region[..]).executed_at(at);
        let mut asm = Asm::<M>::begin(region_ref, &mut workspace, "%p", &mut params, Kind::Leaf)
            .expect("the region is large enough");
        asm.use_features(self.features);
        let base = M::Reg::from_number(M::INT.saved[0]);
        asm.claim(base).expect("the first callee-saved register is free");
        asm.movp(base, params[0].reg());
        load(&mut asm, ty, operands.d, operands.fd, base, SLOT_S);
        load(&mut asm, ty, operands.t, operands.ft, base, SLOT_T);
        asm.addpi(operands.s, base, 8 * SLOT_DATA as u64);
        let label = asm.label();
        asm.bind(label);
        emit_any(&mut asm, index, &operands, label);
        store(&mut asm, ty, operands.d, operands.fd, base, SLOT_RESULT);
        store(&mut asm, ty, operands.t, operands.ft, base, SLOT_T_AFTER);
        asm.retv();
        let mut memory = [0_u8; TEST_BYTES];
        let mut wanted = Vec::new();
        for (slot, value) in [(SLOT_S, expected), (SLOT_T, new), (SLOT_DATA, there)] {
            self.put(&mut memory, HEADER_BYTES + 8 * slot, bits, value);
        }
        let left = if expected == there { new } else { there };
        for (slot, value, what) in [
            (SLOT_RESULT, there, "what was there"),
            (SLOT_DATA, left, "what is there"),
            (SLOT_T_AFTER, new, "the new value afterwards"),
        ] {
            wanted.push(Expected { offset: HEADER_BYTES + 8 * slot, bits, value, ty, what });
        }
        let name = format!("{} {}: {:?} {:?} {:?}", M::NAME, instruction.name, operands.d, operands.s, operands.t);
        let code = asm.end().unwrap_or_else(|error| panic!("{name}: {error}"));
        self.finish(name, &region, code, 0, memory, wanted);
    }

    fn pointer_mask(&self) -> u64 {
        if self.long == 32 { 0xffff_ffff } else { u64::MAX }
    }

    fn offset(&mut self) -> i64 {
        const OFFSETS: [i64; 20] = [
            0, 8, 16, -8, -16, 120, 128, -128, -136, 248, 256, 2040, 2048, -2048, 4088, 4096, 32760, 32768, 65536,
            0x12_3450,
        ];
        self.pick(&OFFSETS)
    }

    fn finish(
        &mut self,
        name: String,
        region: &[u8],
        code: quaject_vcode::Code,
        returns: u64,
        memory: [u8; TEST_BYTES],
        expected: Vec<Expected>,
    ) {
        let start = self.code.len();
        // Keep the region's layout: its code may hold addresses.
        self.code.extend_from_slice(&region[..code.offset + code.length]);
        self.code.resize(self.code.len().next_multiple_of(16), 0);
        self.spans.push((start + code.offset, code.instructions));
        self.cases.push(Case { name, entry: code.entry as u64, returns, memory, expected });
    }

    /// Adds a function built by `build`, which returns `long` and must return `value`.
    pub fn add_function<M: Machine>(
        &mut self,
        name: &str,
        kind: Kind,
        value: i64,
        build: impl FnOnce(&mut Asm<'_, M>, M::Reg),
    ) {
        let mut region = vec![0_u8; 16384];
        let mut workspace = Workspace::<M>::new();
        let mut params = [Param::NONE];
        let at = CODE_ADDRESS + self.code.len();
        let region_ref = Region::from(&mut region[..]).executed_at(at);
        let mut asm = Asm::<M>::begin(region_ref, &mut workspace, "%p", &mut params, kind).expect("there is room");
        build(&mut asm, params[0].reg());
        let code = asm.end().unwrap_or_else(|error| panic!("{name}: {error}"));
        let expected = vec![Expected {
            offset: RETURN_OFFSET,
            bits: self.long,
            value: value as u64,
            ty: Type::L,
            what: "returned value",
        }];
        self.finish(format!("{} {name}", M::NAME), &region, code, 0, [0; TEST_BYTES], expected);
    }

    /// Adds a function that `build` writes, of the address of some memory: what is there afterwards, and perhaps the low
    /// bits of what it returns.
    pub fn add_memory<M: Machine>(
        &mut self,
        name: String,
        before: &[u8; MEMORY_BYTES],
        after: &[u8; MEMORY_BYTES],
        returns: Option<(u32, u64)>,
        build: impl FnOnce(&mut Asm<'_, M>, M::Reg),
    ) {
        let mut region = vec![0_u8; 4096];
        let mut workspace = Workspace::<M>::new();
        let mut params = [Param::NONE];
        let at = CODE_ADDRESS + self.code.len();
        let region_ref = Region::from(&mut region[..]).executed_at(at);
        let mut asm =
            Asm::<M>::begin(region_ref, &mut workspace, "%p", &mut params, Kind::Leaf).expect("there is room");
        build(&mut asm, params[0].reg());
        let code = asm.end().unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut memory = [0; TEST_BYTES];
        memory[HEADER_BYTES..].copy_from_slice(before);
        let words = after.chunks(8).enumerate().map(|(index, word)| Expected {
            offset: HEADER_BYTES + 8 * index,
            bits: 64,
            value: self.value_at(word, 0, 64),
            ty: Type::Ul,
            what: ["d", "s", "t"][index / 8],
        });
        let mut expected: Vec<Expected> = words.collect();
        if let Some((bits, value)) = returns {
            expected.push(Expected { offset: RETURN_OFFSET, bits, value, ty: Type::Ul, what: "returned value" });
        }
        self.finish(name, &region, code, 0, memory, expected);
    }

    /// Adds a function that `build` writes, ends and perhaps changes; it returns `long` and must return `value`.
    pub fn add_built<M: Machine>(
        &mut self,
        name: &str,
        value: i64,
        build: impl FnOnce(Region<'_>, *mut u8) -> quaject_vcode::Code,
    ) {
        let mut region = vec![0_u8; 16384];
        let write = region.as_mut_ptr();
        let at = CODE_ADDRESS + self.code.len();
        let code = build(Region::from(&mut region[..]).executed_at(at), write);
        let expected = vec![Expected {
            offset: RETURN_OFFSET,
            bits: self.long,
            value: value as u64,
            ty: Type::L,
            what: "returned value",
        }];
        self.finish(format!("{} {name}", M::NAME), &region, code, 0, [0; TEST_BYTES], expected);
    }

    /// Adds a function with a convention of its own, which is called by the others; returns its address.
    pub fn add_handler<M: Machine>(
        &mut self,
        name: &str,
        convention: &'static quaject_vcode::Convention,
        build: impl FnOnce(&mut Asm<'_, M>),
    ) -> usize
    where
        for<'a> Asm<'a, M>: Core<Reg = M::Reg, Float = M::Float>,
    {
        let mut region = vec![0_u8; 4096];
        let mut workspace = Workspace::<M>::new();
        let at = CODE_ADDRESS + self.code.len();
        let region_ref = Region::from(&mut region[..]).executed_at(at);
        let mut asm = Asm::<M>::begin_with(region_ref, &mut workspace, &[][..], &mut [], Kind::Leaf, convention)
            .expect("the region is large enough");
        build(&mut asm);
        asm.retv();
        let code = asm.end().unwrap_or_else(|error| panic!("{} {name}: {error}", M::NAME));
        self.finish(format!("{} {name}", M::NAME), &region, code, 0, [0; TEST_BYTES], Vec::new());
        code.entry
    }

    /// Adds a function of any signature, which `caller`, a C function that gets the address in the first word of
    /// memory, calls; the sum that comes back must be `value`.
    #[allow(clippy::too_many_arguments, reason = "one call site")]
    pub fn add_callee<M: Machine>(
        &mut self,
        name: &str,
        types: &[quaject_vcode::Type],
        params: &mut [Param<M>],
        kind: Kind,
        caller: u64,
        value: i64,
        build: impl FnOnce(&mut Asm<'_, M>, &[Param<M>]),
    ) {
        let mut region = vec![0_u8; 8192];
        let mut workspace = Workspace::<M>::new();
        let at = CODE_ADDRESS + self.code.len();
        let region_ref = Region::from(&mut region[..]).executed_at(at);
        let mut asm = Asm::<M>::begin(region_ref, &mut workspace, types, params, kind)
            .unwrap_or_else(|error| panic!("{} {name}: {error}", M::NAME));
        build(&mut asm, params);
        let code = asm.end().unwrap_or_else(|error| panic!("{} {name}: {error}", M::NAME));
        let expected =
            vec![Expected { offset: RETURN_OFFSET, bits: self.long, value: value as u64, ty: Type::L, what: "sum" }];
        let mut memory = [0; TEST_BYTES];
        self.put(&mut memory, HEADER_BYTES, 64, code.entry as u64);
        self.finish(format!("{} {name}", M::NAME), &region, code, 0, memory, expected);
        self.cases.last_mut().expect("one was just added").entry = caller;
    }

    /// Compiles the program that runs the batch together with `c`, and returns its folder.
    pub fn compile(&mut self, c: &str) {
        let folder = scratch_folder(self.tools.prefix, "run");
        build_runner(self.tools, &folder, c);
        self.folder = Some(folder);
    }

    /// The addresses of the C functions in the program.
    pub fn symbols(&self) -> std::collections::HashMap<String, u64> {
        let folder = self.folder.as_ref().expect("compile() was called");
        let output =
            Command::new(format!("{}nm", self.tools.prefix)).arg(folder.join("runner")).output().expect("nm starts");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.lines()
            .filter_map(|line| {
                let mut words = line.split_whitespace();
                let address = u64::from_str_radix(words.next()?, 16).ok()?;
                Some((words.nth(1)?.to_string(), address))
            })
            .collect()
    }

    /// Runs the batch and compares.
    pub fn run(&self) {
        let folder = self.folder.clone().expect("compile() was called");
        let runner = folder.join("runner");
        let (code, tests, out) = (folder.join("code"), folder.join("tests"), folder.join("out"));
        let mut words = Vec::new();
        for case in &self.cases {
            let mut memory = case.memory;
            self.put(&mut memory, 0, 64, case.entry);
            self.put(&mut memory, 8, 64, case.returns);
            words.extend_from_slice(&memory);
        }
        write(&code, &self.code);
        write(&tests, &words);
        let mut command = match self.tools.qemu {
            Some(qemu) => {
                let mut command = Command::new(qemu);
                if let Some(sysroot) = self.tools.sysroot {
                    command.env("QEMU_LD_PREFIX", sysroot);
                }
                command.arg(&runner);
                command
            }
            None => Command::new(&runner),
        };
        let status = command.arg(&code).arg(&tests).arg(&out).status().expect("the runner starts");
        assert!(status.success(), "{} runner: {status}; files in {}", self.tools.prefix, folder.display());
        let after = std::fs::read(&out).expect("the runner wrote its output");
        let mut wrong = Vec::new();
        for (case, after) in self.cases.iter().zip(after.chunks(TEST_BYTES)) {
            for expected in &case.expected {
                let found = self.value_at(after, expected.offset, expected.bits);
                let nan = match expected.ty {
                    Type::F => f32::from_bits(expected.value as u32).is_nan() && f32::from_bits(found as u32).is_nan(),
                    Type::D => f64::from_bits(expected.value).is_nan() && f64::from_bits(found).is_nan(),
                    _ => false,
                };
                let mask = if expected.bits == 64 { u64::MAX } else { (1 << expected.bits) - 1 };
                if found != expected.value & mask && !nan {
                    wrong.push(format!(
                        "{}: {} is {found:#x}, expected {:#x}",
                        case.name,
                        expected.what,
                        expected.value & mask
                    ));
                }
            }
        }
        let count = wrong.len();
        wrong.truncate(20);
        assert!(count == 0, "{count} of {} cases differ:\n{}", self.cases.len(), wrong.join("\n"));
        std::fs::remove_dir_all(&folder).expect("the folder is ours");
    }

    /// Decodes every different instruction of the batch, assembles the text with binutils, and compares: bytes where
    /// the machine has one encoding for a text, otherwise how binutils' disassembler reads both.
    pub fn check_encodings(&self) {
        let mut distinct: BTreeSet<Vec<u8>> = BTreeSet::new();
        for (start, length) in &self.spans {
            let mut at = *start;
            let end = start + length;
            while at < end {
                let Some(decoded) = self.tools.table.decode(&self.code[at..end]) else {
                    panic!("undecodable at {at:#x}: {:02x?}", &self.code[at..end.min(at + 16)]);
                };
                distinct.insert(self.code[at..at + decoded.length].to_vec());
                at += decoded.length;
            }
        }
        let mut text = String::from(self.tools.prelude);
        let mut bytes = Vec::new();
        let mut lines = Vec::new();
        for insn in &distinct {
            let decoded = self.tools.table.decode(insn).expect("it was decoded above");
            lines.push(decoded.to_string());
            text.push_str(&decoded.to_string());
            text.push('\n');
            bytes.extend_from_slice(insn);
        }
        let folder = scratch_folder(self.tools.prefix, "as");
        let mut assembled = assemble(self.tools, &folder, &text);
        // Some assemblers fill the last sixteen bytes of a section.
        if assembled.len().saturating_sub(bytes.len()) < 16 {
            assembled.truncate(bytes.len());
        }
        let ours = folder.join("ours.bin");
        write(&ours, &bytes);
        if self.tools.table.is_words() {
            // Some assemblers pad a section.
            let lengths = [bytes.len(), bytes.len().next_multiple_of(16)];
            assert!(
                lengths.contains(&assembled.len()),
                "{}: binutils makes another number of words",
                self.tools.prefix
            );
            for (line, (ours, theirs)) in lines.iter().zip(bytes.chunks(4).zip(assembled.chunks(4))) {
                assert_eq!(ours, theirs, "{}: `{line}`", self.tools.prefix);
            }
        } else {
            let theirs = folder.join("theirs.bin");
            write(&theirs, &assembled);
            let (ours, theirs) = (disassemble(self.tools, &ours), disassemble(self.tools, &theirs));
            assert_eq!(ours.len(), theirs.len(), "{}: another number of instructions", self.tools.prefix);
            assert_eq!(ours.len(), lines.len(), "{}: binutils sees other instructions", self.tools.prefix);
            for (line, (ours, theirs)) in lines.iter().zip(ours.iter().zip(&theirs)) {
                assert_eq!(ours, theirs, "{}: `{line}`", self.tools.prefix);
            }
        }
        std::fs::remove_dir_all(&folder).expect("the folder is ours");
    }

    /// How many functions the batch has.
    pub fn len(&self) -> usize {
        self.cases.len()
    }
}

/// Emits the instruction with this index in the list of the core, or after it in that of the extensions.
pub fn emit_any<A: Extension>(asm: &mut A, index: usize, operands: &Operands<A::Reg, A::Float>, label: Label) {
    match index.checked_sub(INSTRUCTIONS.len()) {
        None => emit(asm, index, operands, label),
        Some(index) => emit_extension(asm, index, operands, label),
    }
}

fn load<A: Core>(asm: &mut A, ty: Type, r: A::Reg, f: A::Float, base: A::Reg, index: usize) {
    match ty {
        Type::F => asm.ldfi(f, base, slot(index)),
        Type::D => asm.lddi(f, base, slot(index)),
        Type::I | Type::C | Type::Uc | Type::S | Type::Us => asm.ldii(r, base, slot(index)),
        Type::U => asm.ldui(r, base, slot(index)),
        Type::L | Type::Ul | Type::P => asm.ldli(r, base, slot(index)),
        Type::V => {}
    }
}

fn store<A: Core>(asm: &mut A, ty: Type, r: A::Reg, f: A::Float, base: A::Reg, index: usize) {
    match ty {
        Type::F => asm.stfi(f, base, slot(index)),
        Type::D => asm.stdi(f, base, slot(index)),
        Type::I | Type::U | Type::C | Type::Uc | Type::S | Type::Us => asm.stii(r, base, slot(index)),
        Type::L | Type::Ul | Type::P => asm.stli(r, base, slot(index)),
        Type::V => {}
    }
}

/// Whether the tools are there. Missing tools fail the test where they are promised (`CI=true`), and skip it elsewhere.
pub fn available(tools: &Tools) -> bool {
    let compiler = compiler(tools);
    let missing: Vec<&str> = [Some(compiler.as_str()), tools.qemu]
        .into_iter()
        .flatten()
        .filter(|tool| Command::new(tool).arg("--version").output().is_err())
        .collect();
    if missing.is_empty() {
        return true;
    }
    assert!(std::env::var("CI").as_deref() != Ok("true"), "missing: {}", missing.join(", "));
    eprintln!("skipped: missing {}", missing.join(", "));
    false
}

/// The C compiler for a machine. Debian's unversioned cross compilers cannot be installed beside `gcc-multilib`, the
/// versioned ones can.
pub fn compiler(tools: &Tools) -> String {
    let plain = format!("{}gcc", tools.prefix);
    let versions = (12..=16).map(|version| format!("{plain}-{version}"));
    let present = |name: &String| Command::new(name).arg("--version").output().is_ok();
    std::iter::once(plain.clone()).chain(versions).find(present).unwrap_or(plain)
}

pub fn scratch_folder(prefix: &str, purpose: &str) -> PathBuf {
    // Tests of one program run at the same time, some for the same machine.
    static FOLDERS: AtomicUsize = AtomicUsize::new(0);
    let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
    let prefix = if prefix.is_empty() { "native-" } else { prefix };
    let name = format!("machines-{prefix}{purpose}-{}-{number}", std::process::id());
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).expect("the folder for test files can be made");
    folder
}

fn write(path: &Path, bytes: &[u8]) {
    std::fs::write(path, bytes).expect("test files can be written");
}

fn build_runner(tools: &Tools, folder: &Path, c: &str) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/machines/runner.c");
    let runner = folder.join("runner");
    let extra = folder.join("extra.c");
    write(&extra, c.as_bytes());
    let mut command = Command::new(compiler(tools));
    command.args(["-O1", "-no-pie", "-o"]).arg(&runner).arg(&source).arg(&extra);
    if tools.sysroot.is_none() {
        command.arg("-static");
    }
    let output = command.output().expect("the compiler starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn assemble(tools: &Tools, folder: &Path, text: &str) -> Vec<u8> {
    let (source, object, binary) = (folder.join("text.s"), folder.join("text.o"), folder.join("text.bin"));
    write(&source, text.as_bytes());
    let output = Command::new(format!("{}as", tools.prefix))
        .args(tools.assembler)
        .arg("-o")
        .arg(&object)
        .arg(&source)
        .output()
        .expect("the assembler starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let status = Command::new(format!("{}objcopy", tools.prefix))
        .args(["-O", "binary", "-j", ".text"])
        .arg(&object)
        .arg(&binary)
        .status()
        .expect("objcopy starts");
    assert!(status.success(), "objcopy: {status}");
    std::fs::read(&binary).expect("objcopy wrote its output")
}

/// The instructions of a file as binutils prints them, without REX prefixes that change nothing, each with its distance
/// instead of its target.
fn disassemble(tools: &Tools, path: &Path) -> Vec<String> {
    let output = Command::new(format!("{}objdump", tools.prefix))
        .args(["-D", "-b", "binary", "-m", "i386:x86-64", "--no-show-raw-insn", "-w"])
        .arg(path)
        .output()
        .expect("objdump starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let mut lines: Vec<(i64, String)> = Vec::new();
    for line in text.lines() {
        let Some((address, insn)) = line.trim().split_once(":\t") else { continue };
        let Ok(address) = i64::from_str_radix(address.trim(), 16) else { continue };
        let insn = insn
            .trim()
            .trim_start_matches("rex.W ")
            .trim_start_matches("rex ")
            .replace("lock rex ", "lock ")
            .replace(" 0x0(", " (")
            .replace(",0x0(", ",(");
        lines.push((address, insn.to_string()));
    }
    let mut out = Vec::new();
    for (address, insn) in &lines {
        let words: Vec<&str> = insn.split_whitespace().collect();
        let relative = words.last().and_then(|target| target.strip_prefix("0x")).and_then(|target| {
            let jump = words.len() == 2 && (words[0].starts_with('j') || words[0].starts_with("call"));
            jump.then(|| u64::from_str_radix(target, 16).ok()).flatten().map(|target| target as i64)
        });
        match relative {
            Some(target) => out.push(format!("{} .{:+}", words[0], target.wrapping_sub(*address))),
            // Shifts by one have an encoding, and a spelling, of their own.
            None if words.len() == 2
                && ["shl", "shr", "sar", "rol", "ror"].contains(&words[0])
                && !words[1].contains(',') =>
            {
                out.push(format!("{} $0x1,{}", words[0], words[1]));
            }
            // Distances count from the end of an instruction, whose length may differ.
            None if insn.contains("(%rip)") => {
                let target = insn.split(" # 0x").nth(1).and_then(|target| i64::from_str_radix(target, 16).ok());
                let rest = insn.split("(%rip)").nth(1).and_then(|rest| rest.split_whitespace().next());
                let distance = target.map(|target| target.wrapping_sub(*address));
                out.push(format!("{} .{distance:?}{rest:?}", words[0]));
            }
            // Which of two exchanged registers comes first is a matter of taste.
            None if words[0] == "xchg" => {
                let mut registers: Vec<&str> = words[1].split(',').collect();
                registers.sort_unstable();
                out.push(format!("xchg {}", registers.join(",")));
            }
            None => out.push(words.join(" ").split(" # ").next().unwrap_or_default().to_string()),
        }
    }
    out
}
