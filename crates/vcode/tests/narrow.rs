//! Values of 8 and 16 bits between generated code and Rust, and calls of variadic functions of C.
#![allow(missing_docs, reason = "a test program")]
#![cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]

use quaject_vcode::{Argument, Asm, Core, Error, Kind, Memory, Native, Param, Signature, Target, Type, Workspace};

const VALUES: [i32; 14] = [0, 1, -1, 127, 128, -128, 250, 256, 300, 32767, 32768, 65000, 0x1234_5678, i32::MIN];

/// Writes a function of one parameter; its address.
fn written(
    memory: &Memory,
    signature: &str,
    kind: Kind,
    build: impl FnOnce(&mut Asm<'_, Native>, Param<Native>),
) -> usize {
    let mut workspace = Workspace::<Native>::new();
    let mut params = [Param::NONE];
    let region = memory.region(4096).expect("there is room");
    let mut asm = Asm::begin(region, &mut workspace, signature, &mut params, kind).expect("there is room");
    build(&mut asm, params[0]);
    asm.end().expect("the function is right").entry
}

macro_rules! check {
    ($memory:expr, $ty:ty, $signature:literal, $ret:ident, $convert:ident) => {{
        extern "C" fn taken(value: $ty) -> i64 {
            i64::from(std::hint::black_box(value))
        }
        extern "C" fn narrowed(value: i32) -> $ty {
            std::hint::black_box(value) as $ty
        }
        for kind in [Kind::Leaf, Kind::Calls] {
            let entry = written($memory, $signature, kind, |asm, param| {
                let x = param.reg();
                asm.cvi2l(x, x);
                asm.retl(x);
            });
            // SAFETY: the code takes and returns these types, and the memory outlives the call.
            let parameter: extern "C" fn($ty) -> i64 = unsafe { std::mem::transmute(entry) };
            for value in VALUES {
                assert_eq!(parameter(value as $ty), i64::from(value as $ty), "parameter {} {kind:?}", $signature);
            }
        }
        let entry = written($memory, "%i", Kind::Leaf, |asm, param| asm.$ret(param.reg()));
        // SAFETY: as above.
        let result: extern "C" fn(i32) -> $ty = unsafe { std::mem::transmute(entry) };
        let entry = written($memory, "%i", Kind::Calls, |asm, param| {
            let target = Target::Address(taken as *const () as usize);
            asm.call($signature, target, &[Argument::Reg(param.reg())]).expect("it matches");
            asm.retl(asm.result());
        });
        // SAFETY: as above.
        let argument: extern "C" fn(i32) -> i64 = unsafe { std::mem::transmute(entry) };
        let entry = written($memory, "%i", Kind::Calls, |asm, param| {
            let target = Target::Address(narrowed as *const () as usize);
            asm.call("%i", target, &[Argument::Reg(param.reg())]).expect("it matches");
            asm.$convert(asm.result(), asm.result());
            asm.reti(asm.result());
        });
        // SAFETY: as above.
        let result_of_call: extern "C" fn(i32) -> i32 = unsafe { std::mem::transmute(entry) };
        for value in VALUES {
            assert_eq!(result(value), value as $ty, "result {}", $signature);
            assert_eq!(argument(value), i64::from(value as $ty), "argument {}", $signature);
            assert_eq!(result_of_call(value), i32::from(value as $ty), "result of a call {}", $signature);
        }
    }};
}

#[test]
fn values_narrower_than_an_int_are_what_rust_has() {
    let memory = Memory::new(1 << 18).expect("the system gives memory");
    check!(&memory, i8, "%c", retc, cvi2c);
    check!(&memory, u8, "%uc", retuc, cvi2uc);
    check!(&memory, i16, "%s", rets, cvi2s);
    check!(&memory, u16, "%us", retus, cvi2us);
}

#[test]
fn constants_of_calls_are_never_cut() {
    let memory = Memory::new(1 << 20).expect("the system gives memory");
    let refused = |ty: &str, constant: i64| {
        let mut result = Ok(());
        written(&memory, "%p", Kind::Calls, |asm, _| {
            result = asm.call(ty, Target::Address(1), &[Argument::Constant(constant)]);
            asm.retv();
        });
        result == Err(Error::Immediate)
    };
    for (ty, minimum, maximum) in [
        ("%c", -128, 255),
        ("%uc", -128, 255),
        ("%s", -32768, 65535),
        ("%us", -32768, 65535),
        ("%i", i64::from(i32::MIN), i64::from(u32::MAX)),
        ("%u", i64::from(i32::MIN), i64::from(u32::MAX)),
    ] {
        assert!(!refused(ty, minimum) && !refused(ty, maximum), "{ty}");
        assert!(refused(ty, minimum - 1) && refused(ty, maximum + 1), "{ty}");
    }
}

// SAFETY: the declaration of the C library.
unsafe extern "C" {
    fn snprintf(to: *mut u8, room: usize, format: *const u8, ...) -> i32;
}

#[test]
fn variadic_functions_get_what_their_format_names() {
    let memory = Memory::new(1 << 16).expect("the system gives memory");
    let format = b"%d %.2f %ld %.2f %s %.1f %.1f %.1f %.1f %.1f %.1f %.1f %u\0";
    let word = b"word\0";
    let rest = [
        Type::I,
        Type::D,
        Type::L,
        Type::D,
        Type::P,
        Type::D,
        Type::D,
        Type::D,
        Type::D,
        Type::D,
        Type::D,
        Type::D,
        Type::U,
    ];
    for signature in [
        Signature::Text("%p%ul%p...%i%d%l%d%p %d%d%d%d%d%d%d%u"),
        Signature::Variadic { fixed: &[Type::P, Type::Ul, Type::P], rest: &rest },
    ] {
        let entry = written(&memory, "%p", Kind::Calls, |asm, param| {
            let float = asm.getfloat(quaject_vcode::Class::Temporary).expect("one is free");
            asm.setd(float, 2.5);
            let mut arguments =
                vec![Argument::Reg(param.reg()), Argument::Constant(200), Argument::Constant(format.as_ptr() as i64)];
            arguments.extend(rest.iter().map(|ty| match ty {
                Type::D => Argument::Float(float),
                Type::P => Argument::Constant(word.as_ptr() as i64),
                _ => Argument::Constant(-3),
            }));
            asm.call(signature, Target::Address(snprintf as *const () as usize), &arguments).expect("it matches");
            asm.reti(asm.result());
        });
        let mut text = [0_u8; 200];
        // SAFETY: the code takes a pointer to 200 bytes and returns an int, and its memory is alive.
        let function: extern "C" fn(*mut u8) -> i32 = unsafe { std::mem::transmute(entry) };
        let length = function(text.as_mut_ptr()) as usize;
        let wanted = "-3 2.50 -3 2.50 word 2.5 2.5 2.5 2.5 2.5 2.5 2.5 4294967293";
        assert_eq!(std::str::from_utf8(&text[..length]), Ok(wanted));
    }
}

#[test]
fn malformed_signatures_of_variadic_functions_are_refused() {
    let memory = Memory::new(1 << 16).expect("the system gives memory");
    let mut workspace = Workspace::<Native>::new();
    let mut params = [Param::NONE];
    let region = memory.region(4096).expect("there is room");
    let begun = Asm::begin(region, &mut workspace, "%p...", &mut params, Kind::Leaf);
    assert_eq!(begun.err(), Some(Error::Signature));
    written(&memory, "%p", Kind::Calls, |asm, _| {
        let float = Argument::Float(asm.float_result());
        for text in ["...%f", "%d...%d...%d", "%d..%d"] {
            let arguments = [float; 3];
            let count = text.matches('%').count();
            let refused = asm.call(text, Target::Address(1), &arguments[..count]);
            assert_eq!(refused, Err(Error::Signature), "{text}");
        }
        let signature = Signature::Variadic { fixed: &[Type::D], rest: &[Type::F] };
        assert_eq!(asm.call(signature, Target::Address(1), &[float; 2]), Err(Error::Signature));
        asm.retv();
    });
}
