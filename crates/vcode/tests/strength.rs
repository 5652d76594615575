//! Multiplication and division by constants on this machine: many constants, many operands, against Rust's own.
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

use quaject_vcode::layers::strength::{self, Integer};
use quaject_vcode::{Asm, Class, Core, Kind, Memory, Native, Param, Workspace};

#[derive(Debug, Clone, Copy)]
enum Op {
    Multiply,
    Divide,
    Modulo,
}

/// Whether registers are free for intermediate values.
#[derive(Debug, Clone, Copy)]
enum Supply {
    Plenty,
    None,
}

fn build(memory: &Memory, op: Op, ty: Integer, constant: i64, supply: Supply) -> extern "C" fn(u64) -> u64 {
    let mut buffer = [0_u8; 1024];
    let mut workspace = Workspace::<Native>::new();
    let mut params = [Param::NONE];
    let mut asm =
        Asm::<Native>::begin((&mut buffer[..]).into(), &mut workspace, "%ul", &mut params, Kind::Leaf).expect("room");
    let x = params[0].reg();
    if matches!(supply, Supply::None) {
        while asm.getreg(Class::Temporary).is_ok() {}
    }
    match op {
        Op::Multiply => strength::multiply(&mut asm, ty, x, x, constant),
        Op::Divide => strength::divide(&mut asm, ty, x, x, constant),
        Op::Modulo => strength::modulo(&mut asm, ty, x, x, constant),
    }
    asm.retul(x);
    let code = asm.end().expect("the function is right");
    let installed = memory.install(&buffer, &code).expect("the memory is large");
    // SAFETY: the code takes and returns an unsigned long; the memory outlives the test.
    unsafe { std::mem::transmute(installed.entry) }
}

fn expected(op: Op, ty: Integer, left: u64, constant: i64) -> Option<u64> {
    macro_rules! compute {
        ($ty:ty) => {{
            let (a, b) = (left as $ty, constant as $ty);
            match op {
                Op::Multiply => Some(a.wrapping_mul(b) as u64),
                Op::Divide => a.checked_div(b).map(|value| value as u64),
                Op::Modulo => a.checked_rem(b).map(|value| value as u64),
            }
        }};
    }
    match ty {
        Integer::I => compute!(i32),
        Integer::U => compute!(u32),
        Integer::L => compute!(i64),
        Integer::Ul => compute!(u64),
    }
}

#[test]
fn constants_give_what_the_processor_gives() {
    let quick = std::env::var("QJ_TEST").as_deref() == Ok("quick");
    let mut state = 9_u64;
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state ^ state >> 29
    };
    let mut constants: Vec<i64> = (-130..=130).filter(|constant| *constant != 0).collect();
    constants.extend((5..64).flat_map(|place| [-1, 0, 1].map(|near| (1_i64 << place).wrapping_add(near))));
    constants.extend((0..if quick { 100 } else { 3000 }).map(|index| random() as i64 >> (index % 64)));
    let operands: Vec<u64> = constants
        .iter()
        .take(300)
        .map(|value| *value as u64)
        .chain((0..100).map(|index| random() >> (index % 60)))
        .collect();
    let memory = Memory::new(1 << 26).expect("the system gives memory");
    for constant in constants {
        for (ty, constant) in [
            (Integer::I, i64::from(constant as i32)),
            (Integer::U, i64::from(constant as u32)),
            (Integer::L, constant),
            (Integer::Ul, constant),
        ] {
            for op in [Op::Multiply, Op::Divide, Op::Modulo] {
                for supply in [Supply::Plenty, Supply::None] {
                    if expected(op, ty, 1, constant).is_none() {
                        continue; // zero in that type
                    }
                    let function = build(&memory, op, ty, constant, supply);
                    let near = operands.iter().map(|n| n.wrapping_mul(constant as u64).wrapping_sub(1));
                    for left in operands.iter().copied().chain(near) {
                        let Some(wanted) = expected(op, ty, left, constant) else { continue };
                        let got = function(left);
                        let got = match ty {
                            Integer::I => got as i32 as u64,
                            Integer::U => u64::from(got as u32),
                            Integer::L | Integer::Ul => got,
                        };
                        assert_eq!(got, wanted, "{op:?} {ty:?} {left:#x} by {constant} ({supply:?})");
                    }
                }
            }
        }
    }
}
