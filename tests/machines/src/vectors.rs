//! Vector instructions at every width: what each computes is written down a second time here, on bytes.

use std::fmt::Write as _;

use quaject_test_support::Random;
use quaject_vcode::{Asm, Core, Error, Features, Kind, Param, Region, Register, VectorMachine, Vectors, Workspace};

use crate::c_header::{self, ADDRESS, LENGTH};
use crate::harness::{Batch, MEMORY_BYTES, Tools, Type};
use crate::instructions::{VECTORS, emit_vector};

/// The operands of a vector instruction, as in the specifications.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    Binary,
    Accumulate,
    Unary,
    Widen,
    Shift,
    Clear,
    Load,
    Store,
    MaskedLoad,
    MaskedStore,
    Splat,
    Reduce,
    Branch,
}

/// A vector instruction of the generated list; without a shape if it has no operands.
#[derive(Debug)]
pub struct VectorInstruction {
    pub name: &'static str,
    pub op: &'static str,
    pub shape: Option<Shape>,
    pub ty: Type,
}

/// Registers and immediate to call an emitter with.
pub struct VectorOperands<V, R> {
    pub d: V,
    pub s: V,
    pub t: V,
    pub base: R,
    pub register: R,
    pub immediate: i32,
}

/// Where the three vectors are in the memory of a test, at most this far apart.
const APART: usize = 64;

/// The elements of a vector, without their signs.
fn elements(bytes: &[u8], size: usize) -> Vec<u64> {
    bytes.chunks(size).map(|chunk| chunk.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))).collect()
}

fn bytes_of(elements: impl IntoIterator<Item = u64>, size: usize) -> Vec<u8> {
    elements.into_iter().flat_map(|element| element.to_le_bytes().into_iter().take(size).collect::<Vec<_>>()).collect()
}

fn signed(value: u64, size: usize) -> i64 {
    let shift = 64 - 8 * size as u32;
    (value << shift) as i64 >> shift
}

/// Elements of twice the width, each the sum of two neighbours, added to those of `d`.
fn widened(d: &[u8], s: &[u8], size: usize) -> Vec<u8> {
    let sums = elements(s, size).chunks(2).map(|pair| pair[0].wrapping_add(pair[1])).collect::<Vec<_>>();
    bytes_of(elements(d, 2 * size).into_iter().zip(sums).map(|(d, sum)| d.wrapping_add(sum)), 2 * size)
}

/// What `d` is after an instruction on vectors; all have the same length.
fn vector(op: &str, ty: Type, [d, s, t]: [&[u8]; 3], count: u32) -> Vec<u8> {
    let size = (ty.bits(64) / 8).max(1) as usize;
    let is_signed = matches!(ty, Type::C | Type::S | Type::I | Type::L);
    let bytes = |f: &dyn Fn(u8, u8, u8) -> u8| -> Vec<u8> { (0..d.len()).map(|at| f(d[at], s[at], t[at])).collect() };
    let pairs = |f: &dyn Fn(u64, u64) -> u64| {
        bytes_of(elements(s, size).into_iter().zip(elements(t, size)).map(|(s, t)| f(s, t)), size)
    };
    let mask = |holds: bool| if holds { u64::MAX } else { 0 };
    let less = |a: u64, b: u64| if is_signed { signed(a, size) < signed(b, size) } else { a < b };
    let interleaved = |first: usize| -> Vec<u8> {
        let halves = s.chunks(16).zip(t.chunks(16)).flat_map(|(s, t)| {
            let (s, t) = (elements(&s[first..first + 8], size), elements(&t[first..first + 8], size));
            s.into_iter().zip(t).flat_map(|(s, t)| [s, t]).collect::<Vec<_>>()
        });
        bytes_of(halves, size)
    };
    match op {
        "vmov" => s.to_vec(),
        "vcom" => bytes(&|_, s, _| !s),
        "vzero" => vec![0; d.len()],
        "vbswap" => s.chunks(size).flat_map(|chunk| chunk.iter().rev().copied().collect::<Vec<_>>()).collect(),
        "vand" => bytes(&|_, s, t| s & t),
        "vor" => bytes(&|_, s, t| s | t),
        "vxor" => bytes(&|_, s, t| s ^ t),
        "vandn" => bytes(&|_, s, t| s & !t),
        "vsel" => bytes(&|d, s, t| d & s | !d & t),
        "vadd" => pairs(&|s, t| s.wrapping_add(t)),
        "vsub" => pairs(&|s, t| s.wrapping_sub(t)),
        "vmul" => pairs(&|s, t| s.wrapping_mul(t)),
        "vmin" => pairs(&|s, t| if less(s, t) { s } else { t }),
        "vmax" => pairs(&|s, t| if less(s, t) { t } else { s }),
        "vavg" => pairs(&|s, t| (s + t).div_ceil(2)),
        "vceq" => pairs(&|s, t| mask(s == t)),
        "vcgt" => pairs(&|s, t| mask(less(t, s))),
        "vcge" => pairs(&|s, t| mask(!less(s, t))),
        "vlsh" => pairs(&|s, _| s << count),
        "vrsh" if is_signed => pairs(&|s, _| (signed(s, size) >> count) as u64),
        "vrsh" => pairs(&|s, _| s >> count),
        "vzipl" => interleaved(0),
        "vziph" => interleaved(8),
        "vshuf" => (0..d.len()).map(|at| if t[at] >= 128 { 0 } else { s[at & !15 | usize::from(t[at])] }).collect(),
        "vmadd" => {
            let products = elements(s, 2).into_iter().zip(elements(t, 2)).map(|(s, t)| signed(s, 2) * signed(t, 2));
            let products: Vec<i64> = products.collect();
            bytes_of(products.chunks(2).map(|pair| (pair[0] + pair[1]) as u64), 4)
        }
        "vsad" => {
            let differences: Vec<u64> = s.iter().zip(t).map(|(s, t)| u64::from(s.abs_diff(*t))).collect();
            bytes_of(differences.chunks(8).map(|eight| eight.iter().sum()), 8)
        }
        "vdot" => {
            let products: Vec<u64> = s.iter().zip(t).map(|(s, t)| u64::from(*s) * u64::from(*t)).collect();
            let sums = products.chunks(4).map(|four| four.iter().sum::<u64>());
            bytes_of(elements(d, 4).into_iter().zip(sums).map(|(d, sum)| d.wrapping_add(sum)), 4)
        }
        "vclml" | "vclmh" => {
            let products = s.chunks(16).zip(t.chunks(16)).flat_map(|(s, t)| {
                let half = if op == "vclml" { 0..8 } else { 8..16 };
                let (s, t) = (elements(&s[half.clone()], 8)[0], elements(&t[half], 8)[0]);
                let terms = (0..64).filter(|bit| t >> bit & 1 == 1).map(|bit| u128::from(s) << bit);
                terms.fold(0, |product, term| product ^ term).to_le_bytes()
            });
            products.collect()
        }
        "vpadal" => widened(d, s, size),
        other => unreachable!("no vector operation `{other}`"),
    }
}

/// What a register holds after an instruction that makes it of a vector.
fn reduced(op: &str, ty: Type, s: &[u8]) -> u64 {
    let all = elements(s, (ty.bits(64) / 8).max(1) as usize);
    match op {
        "vget" => all[0],
        "vsum" => all.iter().fold(0, |sum, element| sum.wrapping_add(*element)),
        "vany" => u64::from(all.iter().any(|element| *element != 0)),
        other => unreachable!("no reduction `{other}`"),
    }
}

/// Bytes with edges among them.
fn data(random: &mut Random) -> [u8; MEMORY_BYTES] {
    let mut bytes = [0; MEMORY_BYTES];
    for byte in &mut bytes {
        const EDGES: [u8; 6] = [0, 1, 0x7f, 0x80, 0xfe, 0xff];
        *byte = if random.index(3) == 0 { EDGES[random.index(6)] } else { random.next() as u8 };
    }
    // Some of the second and third vector are equal.
    for block in 0..8 {
        if random.index(3) == 0 {
            bytes.copy_within(APART + 8 * block..APART + 8 * block + 8, 2 * APART + 8 * block);
        }
    }
    bytes
}

/// Adds tests of every vector instruction at every width that the features have, `rounds` for each pattern of equal
/// registers.
pub fn add<M: VectorMachine>(batch: &mut Batch<'_>, features: Features, lacks: &[&str], rounds: usize)
where
    for<'a> Asm<'a, M>: Vectors<Reg = M::Reg, Float = M::Float, Vector = M::Vector>,
{
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for (bits, _, needs) in M::WIDTHS {
        if features.bits() & needs != *needs {
            continue;
        }
        for (index, instruction) in VECTORS.iter().enumerate() {
            let masked = matches!(instruction.shape, Some(Shape::MaskedLoad | Shape::MaskedStore));
            let narrow = matches!(instruction.ty, Type::Uc | Type::Us);
            if lacks.contains(&instruction.op) || masked && (*bits < 256 || narrow && *bits < 512) {
                continue;
            }
            for pattern in [[0, 1, 2], [0, 0, 1], [0, 1, 0], [0, 1, 1], [0, 0, 0]] {
                let apart = instruction.op == "vdot" || instruction.shape == Some(Shape::Widen);
                if apart && (pattern[0] == pattern[1] || pattern[0] == pattern[2]) {
                    continue;
                }
                for _ in 0..rounds {
                    let trial = Trial::random(&mut random, *bits, index, pattern);
                    add_one::<M>(batch, &mut random, features, &trial);
                }
            }
        }
    }
}

/// An instruction, the memory of its test, and the operands that are not registers.
struct Trial {
    index: usize,
    bits: u32,
    /// Which of three registers the destination, the first and the second operand are.
    pattern: [usize; 3],
    before: [u8; MEMORY_BYTES],
    count: i32,
    offset: i32,
    misaligned: usize,
}

/// What an instruction changes.
struct Effects {
    /// The destination, if it is a vector.
    result: Option<Vec<u8>>,
    after: [u8; MEMORY_BYTES],
    /// The width and the value of a general register.
    returns: Option<(u32, u64)>,
}

impl Trial {
    fn random(random: &mut Random, bits: u32, index: usize, pattern: [usize; 3]) -> Trial {
        const OFFSETS: [i32; 10] = [0, 16, 64, -64, 240, -272, 4080, 65520, 0x12_3450, 12345];
        let instruction = &VECTORS[index];
        let size = (instruction.ty.bits(64) / 8).max(1) as usize;
        let before = inputs(random, instruction.op, size);
        let count = match instruction.shape {
            Some(Shape::Shift) => random.index(8 * size) as i32,
            _ => 0,
        };
        let offset = random.pick(&OFFSETS);
        let misaligned = if matches!(instruction.op, "vld" | "vst") { random.index(64) } else { 0 };
        Trial { index, bits, pattern, before, count, offset, misaligned }
    }

    fn instruction(&self) -> &'static VectorInstruction {
        &VECTORS[self.index]
    }

    /// Bytes of a vector.
    fn width(&self) -> usize {
        self.bits as usize / 8
    }

    /// Where the operand of a load or store is in memory.
    fn target(&self) -> usize {
        APART + self.misaligned
    }

    /// The value of an operand. Equal registers hold what is loaded last: the third vector, then the second.
    fn input(&self, operand: usize) -> &[u8] {
        let is_it = |own: &usize| *own == self.pattern[operand];
        let place = APART * self.pattern.iter().rposition(is_it).expect("it is in the pattern");
        &self.before[place..place + self.width()]
    }

    /// Whether all operands are registers: their values are stored after the instruction.
    fn has_only_registers(&self) -> bool {
        matches!(
            self.instruction().shape,
            Some(
                Shape::Binary
                    | Shape::Accumulate
                    | Shape::Unary
                    | Shape::Widen
                    | Shape::Shift
                    | Shape::Reduce
                    | Shape::Branch
            )
        )
    }

    fn effects(&self) -> Effects {
        let VectorInstruction { op, ty, shape, .. } = *self.instruction();
        let (width, size, target) = (self.width(), (ty.bits(64) / 8).max(1) as usize, self.target());
        let masks = elements(&self.before[2 * APART..2 * APART + width], size);
        let inputs = [self.input(0), self.input(1), self.input(2)];
        let (mut after, mut returns) = (self.before, None);
        let result = match shape {
            None => None,
            Some(Shape::Load) => Some(self.before[target..target + width].to_vec()),
            Some(Shape::MaskedLoad) => {
                let loaded = elements(&self.before[APART..APART + width], size);
                Some(bytes_of(loaded.into_iter().zip(&masks).map(|(element, mask)| element & mask), size))
            }
            Some(Shape::Store) => {
                after[target..target + width].copy_from_slice(inputs[0]);
                None
            }
            Some(Shape::MaskedStore) => {
                for (at, _) in masks.iter().enumerate().filter(|(_, mask)| **mask != 0) {
                    let bytes = at * size..(at + 1) * size;
                    after[APART + bytes.start..APART + bytes.end].copy_from_slice(&inputs[0][bytes]);
                }
                None
            }
            Some(Shape::Splat) => {
                let scalar = elements(&self.before[APART..APART + 8], 8)[0];
                Some(bytes_of(std::iter::repeat_n(scalar, width / size), size))
            }
            Some(Shape::Reduce) => {
                returns = Some((if ty == Type::Ul { 64 } else { 32 }, reduced(op, ty, inputs[1])));
                None
            }
            Some(Shape::Branch) => {
                let taken = inputs[1].iter().zip(inputs[2]).any(|(s, t)| s & t != 0);
                returns = Some((32, u64::from(taken)));
                None
            }
            Some(Shape::Binary | Shape::Accumulate | Shape::Unary | Shape::Widen | Shape::Shift | Shape::Clear) => {
                Some(vector(op, ty, inputs, self.count as u32))
            }
        };
        Effects { result, after, returns }
    }

    /// What memory must be afterwards, and the returned value with its width. The three vectors are stored back where
    /// all operands are registers, the destination last.
    fn expected(&self) -> ([u8; MEMORY_BYTES], Option<(u32, u64)>) {
        let Effects { result, mut after, returns } = self.effects();
        let width = self.width();
        if self.has_only_registers() {
            for operand in [1, 2] {
                let is_destination = self.pattern[operand] == self.pattern[0];
                let value = result.as_deref().filter(|_| is_destination).unwrap_or(self.input(operand));
                after[APART * operand..APART * operand + width].copy_from_slice(value);
            }
            after[..width].copy_from_slice(self.input(0));
        }
        if let Some(result) = &result {
            after[..width].copy_from_slice(result);
        }
        (after, returns)
    }

    /// Random registers.
    fn operands<M: VectorMachine>(&self, random: &mut Random) -> VectorOperands<M::Vector, M::Reg> {
        let pool = M::FLOAT.temp;
        let (first, step) = (random.index(64), 1 + random.index((pool.len() - 1) / 2));
        let own = |which: usize| M::Vector::from_number(pool[(first + which * step) % pool.len()]);
        let ints = M::INT.temp;
        let first_int = random.index(64);
        let int = |which: usize| M::Reg::from_number(ints[(first_int + which) % ints.len()]);
        VectorOperands {
            d: own(self.pattern[0]),
            s: own(self.pattern[1]),
            t: own(self.pattern[2]),
            base: int(0),
            register: int(1),
            immediate: if self.instruction().shape == Some(Shape::Shift) { self.count } else { self.offset },
        }
    }

    /// Loads the operands, executes the instruction, and stores the results.
    fn emit<M: VectorMachine>(&self, asm: &mut Asm<'_, M>, base: M::Reg, operands: &VectorOperands<M::Vector, M::Reg>)
    where
        for<'a> Asm<'a, M>: Vectors<Reg = M::Reg, Float = M::Float, Vector = M::Vector>,
    {
        let shape = self.instruction().shape;
        for (position, register) in [operands.d, operands.s, operands.t].into_iter().enumerate() {
            asm.vld(register, base, (APART * position) as i32);
        }
        match shape {
            Some(Shape::Splat) => asm.lduli(operands.base, base, APART as i32),
            _ => {
                let accesses_memory = matches!(shape, Some(Shape::Load | Shape::Store));
                let displacement = if accesses_memory { i64::from(self.offset) } else { 0 };
                asm.addpi(operands.base, base, (self.target() as i64 - displacement) as u64);
            }
        }
        let label = asm.label();
        emit_vector(asm, self.index, operands, label);
        if shape == Some(Shape::Branch) {
            // The register is 1 if the branch is taken.
            let join = asm.label();
            asm.setu(operands.register, 0);
            asm.j(join);
            asm.bind(label);
            asm.setu(operands.register, 1);
            asm.bind(join);
        }
        let registers_only = self.has_only_registers();
        if registers_only {
            asm.vst(operands.t, base, 2 * APART as i32);
            asm.vst(operands.s, base, APART as i32);
        }
        if registers_only || matches!(shape, Some(Shape::Load | Shape::MaskedLoad | Shape::Splat | Shape::Clear)) {
            asm.vst(operands.d, base, 0);
        }
        asm.vend();
        asm.retul(operands.register);
    }
}

/// The memory before an instruction: three vectors on which it has all of its cases.
fn inputs(random: &mut Random, op: &str, size: usize) -> [u8; MEMORY_BYTES] {
    let mut before = data(random);
    match op {
        "vshuf" => before[2 * APART..]
            .iter_mut()
            .for_each(|byte| *byte = if *byte % 3 == 0 { 255 - *byte / 2 } else { *byte % 16 }),
        "vdot" => before[2 * APART..].iter_mut().for_each(|byte| *byte %= 65),
        "vany" if random.index(2) == 0 => before[APART..2 * APART].fill(0),
        "vbany" if random.index(2) == 0 => {
            // One bit, or none, is in both.
            for at in 0..APART {
                before[2 * APART + at] = !before[APART + at];
            }
            let (at, bit) = (random.index(2 * APART), 1 << random.index(8));
            if at < APART {
                before[APART + at] |= bit;
                before[2 * APART + at] |= bit;
            }
        }
        "vldm" | "vstm" => {
            let masks: Vec<u64> = (0..APART / size).map(|_| if random.index(2) == 0 { 0 } else { u64::MAX }).collect();
            before[2 * APART..].copy_from_slice(&bytes_of(masks, size));
        }
        _ => {}
    }
    before
}

fn add_one<M: VectorMachine>(batch: &mut Batch<'_>, random: &mut Random, features: Features, trial: &Trial)
where
    for<'a> Asm<'a, M>: Vectors<Reg = M::Reg, Float = M::Float, Vector = M::Vector>,
{
    let operands = trial.operands::<M>(random);
    let name = format!(
        "{} {} of {} bits: {:?} {:?} {:?} immediate={}",
        M::NAME,
        trial.instruction().name,
        trial.bits,
        operands.d,
        operands.s,
        operands.t,
        operands.immediate
    );
    let (after, returns) = trial.expected();
    batch.add_memory::<M>(name, &trial.before, &after, returns, |asm, memory| {
        let base = M::Reg::from_number(M::INT.saved[0]);
        asm.claim(base).expect("the first callee-saved register is free");
        asm.movp(base, memory);
        asm.use_features(features);
        asm.vector_width(trial.bits).expect("the features have it");
        assert_eq!(asm.vector_bytes() as usize, trial.width());
        trial.emit(asm, base, &operands);
    });
}

/// Writes every vector instruction a few times in both languages and compares the bytes.
pub fn compare<M: VectorMachine>(tools: &Tools)
where
    for<'a> Asm<'a, M>: Vectors<Reg = M::Reg, Float = M::Float, Vector = M::Vector>,
{
    let mut region = vec![0_u8; LENGTH];
    let mut workspace = Workspace::<M, 1024, 4096, 64>::with_room();
    let mut params = [Param::NONE];
    let place = Region::from(&mut region[..]).executed_at(ADDRESS);
    let mut asm = Asm::begin(place, &mut workspace, "%p", &mut params, Kind::Calls).expect("there is room");
    let label = asm.label();
    let mut calls = String::new();
    let (ints, floats) = (M::INT.temp, M::FLOAT.temp);
    let mut turn = 0;
    for (bits, _, needs) in M::WIDTHS {
        for instruction in 0..2 * VECTORS.len() {
            let (index, features) = (instruction / 2, if instruction % 2 == 0 { M::FEATURES.bits() } else { *needs });
            turn += 1;
            let vector = |which: usize| M::Vector::from_number(floats[(turn * 5 + which) % floats.len()]);
            let int = |which: usize| M::Reg::from_number(ints[(turn * 7 + which) % ints.len()]);
            let VectorInstruction { name, op, shape, ty } = &VECTORS[index];
            let masked = matches!(shape, Some(Shape::MaskedLoad | Shape::MaskedStore));
            let narrow = matches!(ty, Type::Uc | Type::Us);
            if masked && (*bits < 256 || narrow && *bits < 512)
                || *op == "vdot" && instruction % 2 == 1 && M::NAME == "aarch64"
                || matches!(*op, "vclml" | "vclmh") && instruction % 2 == 1
            {
                continue;
            }
            let immediate = [0, 1, 7, 15, 5][turn % 5] * if *shape == Some(Shape::Shift) { 1 } else { -48 };
            let o = VectorOperands {
                d: vector(0),
                s: vector(turn % 2),
                t: vector(turn % 3),
                base: int(0),
                register: int(1),
                immediate,
            };
            asm.use_features(Features::of::<M>(features));
            asm.vector_width(*bits).expect("the features have it");
            emit_vector(&mut asm, index, &o, label);
            let v = |register: M::Vector| format!("qjv_reg({})", register.number());
            let r = |register: M::Reg| format!("qjv_reg({})", register.number());
            let list = match shape {
                None => String::new(),
                Some(Shape::Binary | Shape::Accumulate) => format!(", {}, {}, {}", v(o.d), v(o.s), v(o.t)),
                Some(Shape::Unary | Shape::Widen) => format!(", {}, {}", v(o.d), v(o.s)),
                Some(Shape::Shift) => format!(", {}, {}, {immediate}", v(o.d), v(o.s)),
                Some(Shape::Clear) => format!(", {}", v(o.d)),
                Some(Shape::Load | Shape::Store) => format!(", {}, {}, {immediate}", v(o.d), r(o.base)),
                Some(Shape::MaskedLoad | Shape::MaskedStore) => format!(", {}, {}, {}", v(o.d), r(o.base), v(o.t)),
                Some(Shape::Splat) => format!(", {}, {}", v(o.d), r(o.base)),
                Some(Shape::Reduce) => format!(", {}, {}", r(o.register), v(o.s)),
                Some(Shape::Branch) => format!(", {}, {}, label", v(o.s), v(o.t)),
            };
            let _ = writeln!(
                calls,
                "    qjv_use_features(&a, {features}u); qjv_vector_width(&a, {bits}); qjv_{name}(&a{list});"
            );
        }
    }
    asm.bind(label);
    asm.retv();
    let code = asm.end().expect("the corpus is valid");
    let rust = &region[code.offset..code.offset + code.length];
    c_header::same(tools, M::NAME, "vcode/vectors.h", "", &calls, rust);
}

/// What a processor lacks is an error, not code.
pub fn check_lacking<M: VectorMachine>()
where
    for<'a> Asm<'a, M>: Vectors<Reg = M::Reg, Float = M::Float, Vector = M::Vector>,
{
    let mut buffer = [0_u8; 4096];
    let mut workspace = Workspace::<M>::new();
    let mut asm =
        Asm::<M>::begin(Region::from(&mut buffer[..]), &mut workspace, "", &mut [], Kind::Leaf).expect("there is room");
    assert_eq!(asm.vector_width(2048), Err(Error::Feature), "no processor has such vectors");
    let register = asm.getvector().expect("one is free");
    // No width was chosen.
    asm.vzero(register);
    asm.retv();
    assert_eq!(asm.end(), Err(Error::Feature));
    let mut asm =
        Asm::<M>::begin(Region::from(&mut buffer[..]), &mut workspace, "", &mut [], Kind::Leaf).expect("there is room");
    asm.use_features(M::FEATURES);
    asm.vector_width(128).expect("every processor with vectors has these");
    let registers: Vec<M::Vector> = std::iter::from_fn(|| asm.getvector().ok()).collect();
    assert!(registers.len() >= 15, "{} vectors", registers.len());
    asm.putvector(registers[3]);
    assert_eq!(asm.getvector(), Ok(registers[3]));
    // Nothing of that width is masked by the byte.
    asm.vldmuc(registers[0], M::RESULT, registers[1]);
    asm.retv();
    assert_eq!(asm.end(), Err(Error::Feature));
}
