//! Misuse by a client, on every machine: `end` reports an error, and nothing is written outside of the region.
//! Functions whose generation is interleaved are independent.
#![allow(missing_docs, reason = "a test program")]

use quaject_vcode::layers::strength::{self, Integer};
use quaject_vcode::{
    Argument, Asm, Class, Code, Core, Error, Extension, Kind, Label, Machine, Param, Region, Register, Target, Type,
    Workspace,
};

/// Part of a function.
type Part<'t, M> = &'t dyn Fn(&mut Asm<'_, M>);
/// Part of a function that refers to a label.
type Reference<'t, M> = &'t dyn Fn(&mut Asm<'_, M>, Label);
/// Part of a function with a shift by so many.
type Shift<'t, M> = &'t dyn Fn(&mut Asm<'_, M>, u64);

/// An operation with a constant of a type.
type Layer<'t, M> = &'t dyn Fn(&mut Asm<'_, M>, Integer, i64);

/// Ends a function that `build` writes; 32 labels, 128 references and 16 constants fit.
fn written<M: Machine>(kind: Kind, length: usize, build: impl FnOnce(&mut Asm<'_, M>)) -> Result<Code, Error>
where
    for<'a> Asm<'a, M>: Core<Reg = M::Reg, Float = M::Float>,
{
    let mut bytes = vec![0_u8; length];
    let mut workspace = Workspace::<M>::new();
    let mut asm = Asm::<M>::begin(Region::from(&mut bytes[..]), &mut workspace, "", &mut [], kind)?;
    build(&mut asm);
    asm.retv();
    asm.end()
}

fn errors_of_labels<M: Machine>()
where
    for<'a> Asm<'a, M>: Extension + Core<Reg = M::Reg, Float = M::Float>,
{
    let leaf = |build: Part<'_, M>| written::<M>(Kind::Leaf, 1 << 14, build).err();
    let [r, s] = [0, 1].map(|index| M::Reg::from_number(M::INT.temp[index]));
    let float = M::Float::from_number(M::FLOAT.temp[0]);
    let name = M::NAME;
    assert_eq!(leaf(&|_| {}), None, "{name}");
    let forgotten: [Reference<'_, M>; 4] = [
        &|asm, label| asm.j(label),
        &|asm, label| asm.bltii(r, 1, label),
        &|asm, label| asm.beqd(float, float, label),
        &|asm, label| asm.addoi(r, r, s, label),
    ];
    for refer in forgotten {
        let never = leaf(&|asm| {
            let label = asm.label();
            refer(asm, label);
        });
        assert_eq!(never, Some(Error::UnboundLabel), "{name}");
    }
    let one_of_two = leaf(&|asm| {
        let (bound, unbound) = (asm.label(), asm.label());
        asm.j(unbound);
        asm.j(bound);
        asm.bind(bound);
    });
    assert_eq!(one_of_two, Some(Error::UnboundLabel), "{name}");
    let unused = leaf(&|asm| {
        asm.label();
    });
    assert_eq!(unused, None, "{name}: a label that nothing refers to need not be bound");
    let twice = leaf(&|asm| {
        let label = asm.label();
        asm.bind(label);
        asm.nop();
        asm.bind(label);
    });
    assert_eq!(twice, Some(Error::BoundTwice), "{name}");
    for (count, expected) in [(32, None), (33, Some(Error::Labels))] {
        let labels = leaf(&|asm| (0..count).for_each(|_| _ = asm.label()));
        assert_eq!(labels, expected, "{name}: {count} labels");
    }
    // One more reference waits outside of the table.
    for (count, expected) in [(128, None), (140, Some(Error::Fixups))] {
        let references = leaf(&|asm| {
            let label = asm.label();
            (0..count).for_each(|_| asm.bltii(r, 1, label));
            asm.bind(label);
            asm.nop();
        });
        assert_eq!(references, expected, "{name}: {count} references");
    }
}

/// Calls of every kind are errors in a leaf only.
fn calls_in_leaves<M: Machine>()
where
    for<'a> Asm<'a, M>: Extension + Core<Reg = M::Reg, Float = M::Float>,
{
    let error = |kind, build: Part<'_, M>| written::<M>(kind, 1 << 14, build).err();
    let [r, s] = [0, 1].map(|index| M::Reg::from_number(M::INT.temp[index]));
    let name = M::NAME;
    let calls: [Part<'_, M>; 5] = [
        &|asm| asm.call("", Target::Address(0x1000), &[]).expect("it takes nothing"),
        &|asm| asm.call("%i", Target::Reg(r), &[Argument::Reg(s)]).expect("it takes an int"),
        &|asm| asm.jalr(r),
        &|asm| {
            let label = asm.label();
            asm.procedure(label, s);
            asm.jal(label);
        },
        &|asm| asm.call("", Target::Itself, &[]).expect("it takes nothing"),
    ];
    for (index, call) in calls.iter().enumerate() {
        assert_eq!(error(Kind::Leaf, call), Some(Error::CallInLeaf), "{name}: call {index}");
        assert_eq!(error(Kind::Calls, call), None, "{name}: call {index}");
    }
    // A label that is no procedure would not know where to return.
    let no_procedures: [Reference<'_, M>; 3] = [
        &|asm, label| {
            asm.bind(label);
            asm.jal(label);
        },
        &|asm, label| {
            asm.jal(label);
            asm.bind(label);
        },
        &|asm, label| asm.jal(label),
    ];
    for (index, call) in no_procedures.iter().enumerate() {
        let called = error(Kind::Calls, &|asm| {
            let label = asm.label();
            call(asm, label);
        });
        assert_eq!(called, Some(Error::Procedure), "{name}: call {index}");
    }
}

/// Shift counts at their limits, and long immediates on machines whose long has 32 bits.
fn errors_of_immediates<M: Machine>()
where
    for<'a> Asm<'a, M>: Extension + Core<Reg = M::Reg, Float = M::Float>,
{
    let leaf = |build: Part<'_, M>| written::<M>(Kind::Leaf, 1 << 14, build).err();
    let [r, s] = [0, 1].map(|index| M::Reg::from_number(M::INT.temp[index]));
    let float = M::Float::from_number(M::FLOAT.temp[0]);
    let name = M::NAME;
    let long = u64::from(M::LONG_BITS);
    let shifts: [(u64, Shift<'_, M>); 6] = [
        (32, &|asm, count| asm.lshii(r, s, count as i32)),
        (32, &|asm, count| asm.rshui(r, s, count as u32)),
        (long, &|asm, count| asm.rshli(r, s, count as i64)),
        (long, &|asm, count| asm.lshuli(r, s, count)),
        (32, &|asm, count| asm.rotlui(r, s, count as u32)),
        (long, &|asm, count| asm.rotruli(r, s, count)),
    ];
    for (index, (width, shift)) in shifts.iter().enumerate() {
        for count in [0, 1, width - 1] {
            assert_eq!(leaf(&|asm| shift(asm, count)), None, "{name}: shift {index} by {count}");
        }
        for count in [*width, width + 1, 255, u64::MAX] {
            let wrong = leaf(&|asm| shift(asm, count));
            assert_eq!(wrong, Some(Error::Immediate), "{name}: shift {index} by {count}");
        }
    }
    let wide = (M::LONG_BITS == 32).then_some(Error::Immediate);
    for value in [1_i64 << 31, -(1 << 31) - 1, i64::MAX, i64::MIN] {
        assert_eq!(leaf(&|asm| asm.setl(r, value)), wide, "{name}: {value:#x}");
        assert_eq!(leaf(&|asm| asm.addli(r, s, value)), wide, "{name}: {value:#x}");
        assert_eq!(leaf(&|asm| asm.mulhili(r, s, value)), wide, "{name}: {value:#x}");
    }
    for value in [1_u64 << 32, u64::MAX] {
        assert_eq!(leaf(&|asm| asm.setp(r, value)), wide, "{name}: {value:#x}");
        assert_eq!(leaf(&|asm| asm.minuli(r, s, value)), wide, "{name}: {value:#x}");
    }
    for offset in [i32::MIN, -0x8001, 0x8000, 0x7fff_ffff] {
        let loads = leaf(&|asm| {
            asm.ldii(r, s, offset);
            asm.stdi(float, s, offset);
        });
        assert_eq!(loads, None, "{name}: offset {offset:#x}");
    }
}

fn frames_that_are_too_large<M: Machine>()
where
    for<'a> Asm<'a, M>: Extension + Core<Reg = M::Reg, Float = M::Float>,
{
    let leaf = |build: Part<'_, M>| written::<M>(Kind::Leaf, 1 << 14, build).err();
    let name = M::NAME;
    assert_eq!(leaf(&|asm| _ = asm.local_bytes(1 << 19, 16)), None, "{name}");
    for bytes in [1 << 20, u32::MAX] {
        assert_eq!(leaf(&|asm| _ = asm.local_bytes(bytes, 16)), Some(Error::Frame), "{name}: {bytes:#x}");
    }
    let many = leaf(&|asm| (0..1 << 18).for_each(|_| _ = asm.local(Type::D)));
    assert_eq!(many, Some(Error::Frame), "{name}");
}

/// `end` reports the first error; errors of register allocation are returned and not recorded.
fn recorded_errors<M: Machine>()
where
    for<'a> Asm<'a, M>: Extension + Core<Reg = M::Reg, Float = M::Float>,
{
    let leaf = |build: Part<'_, M>| written::<M>(Kind::Leaf, 1 << 14, build).err();
    let [r, s] = [0, 1].map(|index| M::Reg::from_number(M::INT.temp[index]));
    let name = M::NAME;
    let two = leaf(&|asm| {
        asm.lshii(r, s, 32);
        let label = asm.label();
        asm.bind(label);
        asm.bind(label);
    });
    assert_eq!(two, Some(Error::Immediate), "{name}");

    // The client can continue after these errors.
    let goes_on = leaf(&|asm| {
        while asm.getreg(Class::Temporary).is_ok() {}
        assert_eq!(asm.claim(r), Err(Error::RegisterTaken), "{name}");
        assert_eq!(asm.claim(M::STACK), Err(Error::RegisterTaken), "{name}");
        assert_eq!(asm.error(), None, "{name}");
    });
    assert_eq!(goes_on, None, "{name}");
}

fn signatures_that_do_not_match<M: Machine>()
where
    for<'a> Asm<'a, M>: Extension + Core<Reg = M::Reg, Float = M::Float>,
{
    let name = M::NAME;
    let mut bytes = vec![0_u8; 1 << 12];
    let mut workspace = Workspace::<M>::new();
    for (text, count, expected) in [
        ("%i", 0, Error::Arguments),
        ("%i", 2, Error::Arguments),
        ("%i%", 1, Error::Signature),
        ("i", 1, Error::Signature),
    ] {
        let mut params = vec![Param::NONE; count];
        let region = Region::from(&mut bytes[..]);
        let begun = Asm::<M>::begin(region, &mut workspace, text, &mut params, Kind::Leaf).map(|_| ());
        assert_eq!(begun, Err(expected), "{name}: {text} for {count}");
    }
}

/// A branch over so much code that it reaches on no machine, or on those with longer forms.
fn far<M: Machine>(words: usize) -> Result<Code, Error>
where
    for<'a> Asm<'a, M>: Core<Reg = M::Reg, Float = M::Float>,
{
    written::<M>(Kind::Leaf, 8 * words + 4096, |asm| {
        let label = asm.label();
        asm.j(label);
        (0..words).for_each(|_| asm.nop());
        asm.bind(label);
        asm.nop();
    })
}

/// Constants of the layer that replaces divisions.
fn divisors_that_do_not_fit<M: Machine>()
where
    for<'a> Asm<'a, M>: Core<Reg = M::Reg, Float = M::Float>,
{
    let [d, s] = [0, 1].map(|index| M::Reg::from_number(M::INT.temp[index]));
    let layers: [(&str, Layer<'_, M>); 3] = [
        ("multiply", &|asm, ty, constant| strength::multiply(asm, ty, d, s, constant)),
        ("divide", &|asm, ty, constant| strength::divide(asm, ty, d, s, constant)),
        ("modulo", &|asm, ty, constant| strength::modulo(asm, ty, d, s, constant)),
    ];
    for (name, layer) in layers {
        for (ty, is_signed, bits) in [
            (Integer::I, true, 32),
            (Integer::U, false, 32),
            (Integer::L, true, M::LONG_BITS),
            (Integer::Ul, false, M::LONG_BITS),
        ] {
            let result = |constant: i64| written::<M>(Kind::Leaf, 1 << 14, |asm| layer(asm, ty, constant)).err();
            let maximum = if name == "multiply" || !is_signed { u32::MAX.into() } else { i64::from(i32::MAX) };
            let refused = if bits == 32 { Some(Error::Immediate) } else { None };
            for constant in [i64::from(i32::MIN), maximum, 7, -7] {
                assert_eq!(result(constant), None, "{} {name} {ty:?} {constant}", M::NAME);
            }
            for constant in [i64::from(i32::MIN) - 1, maximum + 1, 0x1_0000_0005, i64::MAX] {
                assert_eq!(result(constant), refused, "{} {name} {ty:?} {constant}", M::NAME);
            }
        }
    }
}

/// Equal constants share a place after the code; the workspace has sixteen.
fn equal_constants_are_shared<M: Machine>()
where
    for<'a> Asm<'a, M>: Core<Reg = M::Reg, Float = M::Float>,
{
    let float = M::Float::from_number(M::FLOAT.temp[0]);
    let length = |count: usize, different: usize| {
        let result = written::<M>(Kind::Leaf, 1 << 14, |asm| {
            for index in 0..count {
                asm.setd(float, 0.5 + (index % different) as f64);
            }
        });
        result.map(|code| code.length - code.instructions)
    };
    // Some machines have no constants after the code.
    let Ok(one) = length(1, 1) else { panic!("{}: a constant", M::NAME) };
    if one > 0 {
        assert!(length(50, 1).is_ok_and(|bytes| bytes < 16), "{}: equal constants share a place", M::NAME);
        assert!(length(50, 16).is_ok_and(|bytes| bytes < 17 * 8), "{}: so do sixteen", M::NAME);
        assert_eq!(length(50, 17), Err(Error::Constants), "{}", M::NAME);
    }
}

/// A region that would end past the end of memory has no room.
fn regions_past_the_end<M: Machine>()
where
    for<'a> Asm<'a, M>: Core<Reg = M::Reg, Float = M::Float>,
{
    let mut bytes = [0_u8; 4096];
    let mut workspace = Workspace::<M>::new();
    // SAFETY: `begin` refuses the region, so that nothing is written.
    let region = unsafe { Region::from_raw(bytes.as_mut_ptr(), usize::MAX, 0) };
    let begun = Asm::<M>::begin(region, &mut workspace, "", &mut [], Kind::Leaf);
    assert_eq!(begun.err(), Some(Error::Overflow), "{}", M::NAME);
}

/// Three functions, generated one instruction of each in turn, equal those generated one after the other.
fn interleaved<M: Machine>()
where
    for<'a> Asm<'a, M>: Core<Reg = M::Reg, Float = M::Float>,
{
    const FUNCTIONS: usize = 3;
    const STEPS: usize = 40;
    const LENGTH: usize = 1 << 13;
    let at = |function: usize| 0x6000_0000 + LENGTH * function;
    let step = |asm: &mut Asm<'_, M>, label: Label, function: usize, step: usize| {
        let r = M::Reg::from_number(M::INT.temp[function]);
        let float = M::Float::from_number(M::FLOAT.temp[function]);
        match (step + function) % 5 {
            0 => asm.addii(r, r, (step * 1000) as i32),
            1 => asm.bltii(r, step as i32, label),
            2 if step < 2 * FUNCTIONS => asm.setd(float, step as f64),
            3 => {
                let local = asm.local(Type::L);
                asm.stl_local(r, local);
            }
            _ => asm.mulli(r, r, 7),
        }
        if step == STEPS / 2 + function {
            asm.bind(label);
        }
    };
    let alone: Vec<(Vec<u8>, Code)> = (0..FUNCTIONS)
        .map(|function| {
            let mut bytes = vec![0_u8; LENGTH];
            let mut workspace = Workspace::<M>::new();
            let region = Region::from(&mut bytes[..]).executed_at(at(function));
            let mut asm = Asm::<M>::begin(region, &mut workspace, "", &mut [], Kind::Calls).expect("there is room");
            let label = asm.label();
            (0..STEPS).for_each(|number| step(&mut asm, label, function, number));
            asm.retv();
            let code = asm.end().expect("the function is right");
            (bytes, code)
        })
        .collect();
    let mut regions = vec![vec![0_u8; LENGTH]; FUNCTIONS];
    let mut workspaces: Vec<Workspace<M>> = (0..FUNCTIONS).map(|_| Workspace::new()).collect();
    let mut functions: Vec<(Asm<'_, M>, Label)> = regions
        .iter_mut()
        .zip(&mut workspaces)
        .enumerate()
        .map(|(function, (bytes, workspace))| {
            let region = Region::from(&mut bytes[..]).executed_at(at(function));
            let mut asm = Asm::<M>::begin(region, workspace, "", &mut [], Kind::Calls).expect("there is room");
            let label = asm.label();
            (asm, label)
        })
        .collect();
    for number in 0..STEPS {
        for (function, (asm, label)) in functions.iter_mut().enumerate() {
            step(asm, *label, function, number);
        }
    }
    let codes: Vec<Code> = functions
        .into_iter()
        .rev()
        .map(|(mut asm, _)| {
            asm.retv();
            asm.end().expect("the function is right")
        })
        .collect();
    for (function, ((bytes, code), in_turns)) in alone.iter().zip(codes.iter().rev()).enumerate() {
        assert_eq!(code, in_turns, "{}: function {function}", M::NAME);
        let range = code.offset..code.offset + code.length;
        assert!(bytes[range.clone()] == regions[function][range], "{}: the code of {function} differs", M::NAME);
    }
}

/// Runs a test for every machine.
macro_rules! on_every_machine {
    ($test:ident) => {
        $test::<quaject_vcode::x86_64::X86_64>();
        $test::<quaject_vcode::aarch64::Aarch64>();
        $test::<quaject_vcode::riscv64::Riscv64>();
        $test::<quaject_vcode::mips::Mips>();
        $test::<quaject_vcode::sparc64::Sparc64>();
        $test::<quaject_vcode::alpha::Alpha>();
        $test::<quaject_vcode::ppc64le::Ppc64le>();
    };
}

#[test]
fn every_misuse_is_an_error() {
    on_every_machine!(errors_of_labels);
    on_every_machine!(calls_in_leaves);
    on_every_machine!(errors_of_immediates);
    on_every_machine!(divisors_that_do_not_fit);
    on_every_machine!(frames_that_are_too_large);
    on_every_machine!(regions_past_the_end);
    on_every_machine!(equal_constants_are_shared);
    on_every_machine!(recorded_errors);
    on_every_machine!(signatures_that_do_not_match);
}

#[test]
fn functions_with_interleaved_generation_are_independent() {
    on_every_machine!(interleaved);
}

#[test]
fn jumps_that_do_not_reach_are_errors() {
    assert_eq!(far::<quaject_vcode::mips::Mips>(32_000).err(), None);
    assert_eq!(far::<quaject_vcode::mips::Mips>(33_000).err(), Some(Error::BranchRange));
    assert_eq!(far::<quaject_vcode::sparc64::Sparc64>(262_000).err(), None);
    assert_eq!(far::<quaject_vcode::sparc64::Sparc64>(263_000).err(), Some(Error::BranchRange));
    assert_eq!(far::<quaject_vcode::alpha::Alpha>(1_048_000).err(), None);
    assert_eq!(far::<quaject_vcode::alpha::Alpha>(1_049_000).err(), Some(Error::BranchRange));
    assert_eq!(far::<quaject_vcode::riscv64::Riscv64>(262_000).err(), None);
    assert_eq!(far::<quaject_vcode::riscv64::Riscv64>(263_000).err(), Some(Error::BranchRange));
    assert_eq!(far::<quaject_vcode::x86_64::X86_64>(1 << 20).err(), None);
    assert_eq!(far::<quaject_vcode::aarch64::Aarch64>(1 << 20).err(), None);
}
