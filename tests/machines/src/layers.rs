//! The layers above the core on every machine: patch points, virtual registers.

use quaject_test_support::Random;
use quaject_vcode::layers::schedule;
use quaject_vcode::layers::strength::{self, Integer};
use quaject_vcode::layers::virtual_registers::{Virtual, VirtualArgument, VirtualReg, VirtualTarget};
use quaject_vcode::patch::Placed;
use quaject_vcode::{Asm, Class, Core, Extension, Kind, Label, Machine, Param, Type, Workspace};

use crate::functions::Example;
use crate::harness::Batch;
use crate::programs::{Flow, PER_TYPE, Program, SCRATCH_BYTES, Variables};

/// Functions that are changed after they were finished.
pub fn add_patches<M: Machine>(batch: &mut Batch<'_>)
where
    for<'a> Asm<'a, M>: Extension + Core<Reg = M::Reg, Float = M::Float>,
{
    for (turns, expected) in [(0, 1), (1, 11), (2, 11), (3, 2)] {
        batch.add_built::<M>("a patched jump", expected, |region, write| {
            let mut workspace = Workspace::<M>::new();
            let mut asm =
                Asm::<M>::begin(region, &mut workspace, "%p", &mut [Param::NONE], Kind::Leaf).expect("there is room");
            let value = asm.getreg(Class::Temporary).expect("one is free");
            let (ten, out) = (asm.label(), asm.label());
            asm.setl(value, 1);
            asm.nop();
            let point = asm.patch_point();
            let jump = asm.patch_jump(out);
            asm.addli(value, value, 1);
            asm.j(out);
            asm.bind(ten);
            asm.addli(value, value, 10);
            let back = asm.patch_point();
            asm.bind(out);
            asm.retl(value);
            let (ten, out) = (asm.label_offset(ten).unwrap(), asm.label_offset(out).unwrap());
            let code = asm.end().expect("the function is right");
            // SAFETY: the code is where it was written, and does not run yet.
            unsafe {
                let place = Placed::from_raw(&code, code.entry, write.add(code.offset));
                if turns == 1 {
                    point.retarget_to_label::<M>(&place, ten).unwrap();
                    back.retarget_to_label::<M>(&place, out).unwrap();
                    back.fall_through::<M>(&place).unwrap();
                    jump.fall_through::<M>(&place).unwrap();
                    let far = back.retarget::<M>(&place, code.entry.wrapping_add(1 << 40));
                    assert!(far.is_err(), "no branch reaches that far");
                    // Ten more, then out.
                    let after = code.entry - code.offset + out;
                    back.retarget::<M>(&place, after).unwrap();
                    point.fall_through::<M>(&place).unwrap();
                    jump.retarget_to_label::<M>(&place, ten).unwrap();
                    point.retarget_to_label::<M>(&place, ten).unwrap();
                    point.fall_through::<M>(&place).unwrap();
                }
                if turns == 2 {
                    jump.retarget_to_label::<M>(&place, ten).unwrap();
                }
                if turns == 3 {
                    jump.fall_through::<M>(&place).unwrap();
                }
            }
            code
        });
    }
    for value in [0, 1, -1, 0x1234_5678, -0x1234_5679, i64::MAX, i64::MIN, 0x1234_5678_9abc_def0] {
        let value = if M::LONG_BITS == 32 { i64::from(value as i32) } else { value };
        let bits = if M::LONG_BITS == 32 { u64::from(value as u32) } else { value as u64 };
        for initial in [bits, 77] {
            batch.add_built::<M>("a patched constant", value, |region, write| {
                let mut workspace = Workspace::<M>::new();
                let mut asm = Asm::<M>::begin(region, &mut workspace, "%p", &mut [Param::NONE], Kind::Leaf)
                    .expect("there is room");
                let register = asm.getreg(Class::Temporary).expect("one is free");
                asm.nop();
                let constant = asm.patch_constant(register, initial);
                asm.retl(register);
                let code = asm.end().expect("the function is right");
                // SAFETY: the code is where it was written, and does not run yet.
                unsafe {
                    let place = Placed::from_raw(&code, code.entry, write.add(code.offset));
                    constant.set::<M>(&place, bits).expect("every long fits");
                }
                code
            });
        }
    }
}

/// Labels of a function with virtual registers.
struct VirtualFlow;

impl<M: Machine> Flow<Virtual<'_, '_, M>> for VirtualFlow
where
    for<'a> Asm<'a, M>: Extension + Core<Reg = M::Reg, Float = M::Float>,
{
    fn label(&mut self, asm: &mut Virtual<'_, '_, M>) -> Label {
        asm.label()
    }

    fn bind(&mut self, asm: &mut Virtual<'_, '_, M>, label: Label) {
        asm.bind(label);
    }
}

/// Random programs on virtual registers, many more than there are registers; and calls whose arguments are anywhere.
pub fn add_virtual<M: Machine>(batch: &mut Batch<'_>, programs: u64, examples: &[Example], symbol: impl Fn(&str) -> u64)
where
    for<'a> Asm<'a, M>: Extension + Core<Reg = M::Reg, Float = M::Float>,
{
    for number in 0..programs {
        let program = Program::random(number, M::LONG_BITS, 8 + number as usize % 60);
        batch.add_built::<M>(
            &format!("random program {number} on virtual registers"),
            program.result(),
            |region, _| {
                let mut workspace = Workspace::<M, 512, 1024, 128>::with_room();
                let mut params = [Param::NONE];
                let asm =
                    Asm::<M>::begin(region, &mut workspace, "%p", &mut params, Kind::Leaf).expect("there is room");
                let mut slots = [0; 4];
                let mut asm = Virtual::new(asm, &mut slots);
                // Some are released at once, so that places are used again.
                for round in 0..number % 3 {
                    let released: Vec<VirtualReg<M::Reg>> = (0..40).map(|_| asm.reg(Class::Persistent)).collect();
                    let floats: Vec<VirtualReg<M::Float>> = (0..40).map(|_| asm.float(Class::Temporary)).collect();
                    released.into_iter().skip(round as usize).for_each(|v| asm.release(v));
                    floats.into_iter().for_each(|v| asm.release_float(v));
                }
                let variables = Variables {
                    ints: (0..4 * PER_TYPE).map(|_| asm.reg(Class::Temporary)).collect(),
                    floats: (0..2 * PER_TYPE).map(|_| asm.float(Class::Temporary)).collect(),
                    base: asm.reg(Class::Temporary),
                    index: asm.cold_reg(),
                    turn: asm.reg(Class::Temporary),
                    scratch: asm.local_bytes(SCRATCH_BYTES, 8),
                };
                asm.local_address(variables.base, variables.scratch);
                let sum = asm.reg(Class::Temporary);
                program.write(&mut asm, &variables, &mut VirtualFlow, sum);
                asm.retl(sum);
                asm.end().unwrap_or_else(|error| panic!("{} program {number}: {error}", M::NAME))
            },
        );
    }
    for (index, example) in examples.iter().enumerate() {
        let types = example.types();
        let callee = symbol(&format!("callee_{index}")) as usize;
        let expected = example.result(M::LONG_BITS).wrapping_mul(2).wrapping_add(example.values().iter().sum::<i64>());
        let expected = if M::LONG_BITS == 32 { i64::from(expected as i32) } else { expected };
        let name = format!("call of signature {index} {types:?} with virtual registers");
        batch.add_built::<M>(&name, expected, |region, _| {
            let mut workspace = Workspace::<M>::new();
            let asm = Asm::<M>::begin(region, &mut workspace, "%p", &mut [Param::NONE], Kind::Calls).expect("room");
            let mut asm = Virtual::new(asm, &mut []);
            let arguments = virtual_arguments::<M>(&mut asm, &types, example.values());
            let (sum, term) = (asm.reg(Class::Persistent), asm.reg(Class::Persistent));
            let target = asm.cold_reg();
            asm.setp(target, callee as u64);
            asm.call(&types[..], VirtualTarget::Address(callee), &arguments).expect("they match");
            asm.take_result(sum);
            asm.call(&types[..], VirtualTarget::Reg(target), &arguments).expect("they match");
            asm.take_result(term);
            asm.addl(sum, sum, term);
            // Arguments are what they were.
            for (argument, ty) in arguments.iter().zip(&types) {
                match (*argument, ty) {
                    (VirtualArgument::Reg(v), Type::I) => asm.cvi2l(term, v),
                    (VirtualArgument::Reg(v), Type::U) => asm.cvu2l(term, v),
                    (VirtualArgument::Reg(v), _) => asm.movl(term, v),
                    (VirtualArgument::Float(v), Type::F) => asm.cvf2l(term, v),
                    (VirtualArgument::Float(v), _) => asm.cvd2l(term, v),
                    (VirtualArgument::Constant(value), _) => asm.setl(term, value),
                }
                asm.addl(sum, sum, term);
            }
            asm.retl(sum);
            asm.end().unwrap_or_else(|error| panic!("{} {name}: {error}", M::NAME))
        });
    }
}

/// Values in persistent registers, of which every other one is on the stack from the start.
fn virtual_arguments<M: Machine>(
    asm: &mut Virtual<'_, '_, M>,
    types: &[Type],
    values: &[i64],
) -> Vec<VirtualArgument<M>>
where
    for<'a> Asm<'a, M>: Extension + Core<Reg = M::Reg, Float = M::Float>,
{
    let mut arguments = Vec::new();
    for (position, (ty, value)) in types.iter().zip(values).enumerate() {
        arguments.push(match ty {
            Type::F | Type::D => {
                let v = if position % 2 == 0 { asm.float(Class::Persistent) } else { asm.cold_float() };
                if *ty == Type::F {
                    asm.setf(v, *value as f32)
                } else {
                    asm.setd(v, *value as f64)
                }
                VirtualArgument::Float(v)
            }
            _ if position % 5 == 4 => VirtualArgument::Constant(*value),
            _ => {
                let v = if position % 2 == 0 { asm.reg(Class::Persistent) } else { asm.cold_reg() };
                match ty {
                    Type::I => asm.seti(v, *value as i32),
                    Type::U => asm.setu(v, *value as u32),
                    _ => asm.setl(v, *value),
                }
                VirtualArgument::Reg(v)
            }
        });
    }
    arguments
}

/// Constants whose multiplications and divisions are tried.
pub fn constants(random: usize) -> Vec<i64> {
    let mut all: Vec<i64> = (1..=17).chain([25, 60, 100, 125, 625, 641, 1000, 6_700_417, 1_000_000_007]).collect();
    for place in 5..64 {
        all.extend([-1, 0, 1].map(|near| (1_i64 << place).wrapping_add(near)));
    }
    let mut numbers = Random(5);
    for index in 0..random {
        all.push(numbers.next() as i64 >> (index % 60));
    }
    all.extend(all.clone().into_iter().map(i64::wrapping_neg));
    all
}

/// What `op` gives on values of `ty` of a machine whose long has `long` bits; values are held as in a register of 64.
pub fn compute(op: &str, ty: Integer, long: u32, left: i64, constant: i64) -> Option<i64> {
    let narrow = long == 32 || matches!(ty, Integer::I | Integer::U);
    let (signed, bits) = match ty {
        Integer::I | Integer::L => (true, if narrow { 32 } else { 64 }),
        Integer::U | Integer::Ul => (false, if narrow { 32 } else { 64 }),
    };
    let hold = |value: i128| match (signed, bits) {
        (true, 32) => i64::from(value as i32),
        (false, 32) => i64::from(value as u32),
        _ => value as i64,
    };
    let wide = |value: i64| {
        if signed { i128::from(hold(i128::from(value))) } else { i128::from(hold(i128::from(value)) as u64) }
    };
    let (a, b) = (wide(left), wide(constant));
    let overflows = signed && b == -1 && a == -(1_i128 << (bits - 1));
    Some(hold(match op {
        "multiply" => a.wrapping_mul(b),
        "divide" | "modulo" if b == 0 || overflows => return None,
        "divide" => a / b,
        _ => a % b,
    }))
}

/// Multiplications and divisions by constants, several to a function: their results are hashed.
pub fn add_strength<M: Machine>(batch: &mut Batch<'_>, random: usize)
where
    for<'a> Asm<'a, M>: Extension + Core<Reg = M::Reg, Float = M::Float>,
{
    let lefts = [0, 1, -1, 7, -8, 0x7fff_ffff, -0x8000_0000, 0x1234_5678_9abc_def0, i64::MAX, i64::MIN, -1_000_001];
    let every = if random < 100 { 5 } else { 1 };
    let pairs: Vec<(i64, i64)> = constants(random)
        .into_iter()
        .step_by(every)
        .enumerate()
        .flat_map(|(index, constant)| {
            let near = constant.wrapping_mul(3).wrapping_sub(1);
            [lefts[index % lefts.len()], lefts[(index * 7 + 3) % lefts.len()], near].map(|left| (left, constant))
        })
        .collect();
    for ty in [Integer::I, Integer::U, Integer::L, Integer::Ul] {
        for chunk in pairs.chunks(16) {
            let mut expected = 0_i64;
            for (left, constant) in chunk {
                for op in ["multiply", "divide", "modulo"] {
                    if let Some(value) = compute(op, ty, M::LONG_BITS, *left, *constant) {
                        expected = expected.wrapping_mul(31).wrapping_add(value);
                    }
                }
            }
            let expected = if M::LONG_BITS == 32 { i64::from(expected as i32) } else { expected };
            batch.add_built::<M>(&format!("by constants {ty:?} {chunk:?}"), expected, |region, _| {
                let mut workspace = Workspace::<M>::new();
                let mut asm =
                    Asm::<M>::begin(region, &mut workspace, "%p", &mut [Param::NONE], Kind::Leaf).expect("room");
                let [sum, s, d] = [0; 3].map(|_| asm.getreg(Class::Temporary).expect("one is free"));
                asm.setl(sum, 0);
                for (index, (left, constant)) in chunk.iter().enumerate() {
                    for op in ["multiply", "divide", "modulo"] {
                        if compute(op, ty, M::LONG_BITS, *left, *constant).is_none() {
                            continue;
                        }
                        let d = if index % 3 == 0 { s } else { d };
                        match ty {
                            Integer::I => asm.seti(s, *left as i32),
                            Integer::U => asm.setu(s, *left as u32),
                            Integer::L | Integer::Ul if M::LONG_BITS == 32 => asm.setl(s, i64::from(*left as i32)),
                            Integer::L | Integer::Ul => asm.setl(s, *left),
                        }
                        // As the type has it: a constant of more bits is an error.
                        let constant = match (ty, M::LONG_BITS) {
                            (Integer::I, _) | (Integer::L, 32) => i64::from(*constant as i32),
                            (Integer::U, _) | (Integer::Ul, 32) => i64::from(*constant as u32),
                            (Integer::L | Integer::Ul, _) => *constant,
                        };
                        match op {
                            "multiply" => strength::multiply(&mut asm, ty, d, s, constant),
                            "divide" => strength::divide(&mut asm, ty, d, s, constant),
                            _ => strength::modulo(&mut asm, ty, d, s, constant),
                        }
                        match ty {
                            Integer::I => asm.cvi2l(d, d),
                            Integer::U => asm.cvu2l(d, d),
                            Integer::L | Integer::Ul => {}
                        }
                        asm.mulli(sum, sum, 31);
                        asm.addl(sum, sum, d);
                    }
                }
                asm.retl(sum);
                asm.end().unwrap_or_else(|error| panic!("{} {chunk:?}: {error}", M::NAME))
            });
        }
    }
}

/// Loops whose branch takes an instruction along: what they compute is the same everywhere, and where there are delay
/// slots they are a word shorter.
pub fn add_scheduled<M: Machine>(batch: &mut Batch<'_>)
where
    for<'a> Asm<'a, M>: Core<Reg = M::Reg, Float = M::Float>,
{
    /// What goes along with the branch.
    #[derive(Debug, Clone, Copy, PartialEq)]
    enum Along {
        OneWord,
        ManyWords,
        Constant,
        Return,
    }
    for along in [Along::OneWord, Along::ManyWords, Along::Constant, Along::Return] {
        for forward in [false, true] {
            let mut lengths = Vec::new();
            for scheduled in [false, true] {
                let name = format!("a branch with {along:?}, forward: {forward}, scheduled: {scheduled}");
                let expected = if along == Along::OneWord || along == Along::Return { 30 } else { 20 };
                batch.add_built::<M>(&name, expected, |region, _| {
                    let mut workspace = Workspace::<M>::new();
                    let mut params = [Param::NONE];
                    let mut asm = Asm::<M>::begin(region, &mut workspace, "%p", &mut params, Kind::Leaf).expect("room");
                    let [sum, count, other] = [0; 3].map(|_| asm.getreg(Class::Temporary).expect("one is free"));
                    let float = asm.getfloat(Class::Temporary).expect("one is free");
                    let (again, out) = (asm.label(), asm.label());
                    asm.setl(sum, 0);
                    asm.setl(count, 10);
                    asm.bind(again);
                    asm.subli(count, count, 1);
                    let instruction = |asm: &mut Asm<'_, M>| match along {
                        Along::OneWord | Along::Return => asm.addli(sum, sum, 3),
                        Along::ManyWords => asm.setl(other, 0x1234_5678),
                        Along::Constant => asm.setd(float, 2.5),
                    };
                    let branch = |asm: &mut Asm<'_, M>| match forward {
                        true => asm.bleli(count, 0, out),
                        false => asm.bgtli(count, 0, again),
                    };
                    if scheduled {
                        schedule::delay(&mut asm, branch, instruction);
                    } else {
                        instruction(&mut asm);
                        branch(&mut asm);
                    }
                    if forward {
                        asm.j(again);
                    }
                    asm.bind(out);
                    if along != Along::OneWord && along != Along::Return {
                        asm.addli(sum, sum, 20);
                    }
                    if along == Along::Return && scheduled {
                        // The slot of a return with a value is taken.
                        schedule::delay(&mut asm, |asm| asm.retl(sum), |asm| asm.addli(other, other, 1));
                    } else {
                        asm.retl(sum);
                    }
                    schedule::load(&mut asm, 0, |asm| asm.ldli(other, sum, 0));
                    let code = asm.end().unwrap_or_else(|error| panic!("{name}: {error}"));
                    lengths.push(code.instructions);
                    code
                });
            }
            let saved = i64::try_from(lengths[0]).expect("short") - i64::try_from(lengths[1]).expect("short");
            match along {
                Along::OneWord => assert_eq!(saved, if M::DELAY_SLOTS { 4 } else { 0 }, "{along:?}"),
                Along::ManyWords | Along::Constant => assert_eq!(saved, 0, "{along:?}"),
                Along::Return => assert!(saved <= 0, "the value's instruction stays where it is"),
            }
        }
    }
}
