//! The workload on quaject-vcode: a thousand operations with constant registers, with registers read from memory at
//! each use, and from a table; `plus1` and `dot`, begin to end. Every function returns the address of what it wrote.

use std::hint::black_box;

use quaject_vcode::{Asm, Class, Core, Kind as FunctionKind, Machine, Param, Region, Workspace, signature};

use crate::{Kind, OPERATIONS};

/// Whole functions for one machine.
macro_rules! functions {
    ($marker:ident) => {
        #[inline(never)]
        pub fn plus1(bytes: &mut [u8], workspace: &mut Workspace<$marker>) -> usize {
            let mut params = [Param::NONE];
            let mut asm = Asm::<$marker>::begin(
                Region::from(bytes),
                workspace,
                signature!("%i"),
                &mut params,
                FunctionKind::Leaf,
            )
            .expect("there is room");
            let x = params[0].reg();
            asm.addii(x, x, 1);
            asm.reti(x);
            asm.end().expect("plus1 is valid").entry
        }

        #[inline(never)]
        pub fn dot(bytes: &mut [u8], workspace: &mut Workspace<$marker>) -> usize {
            let mut params = [Param::NONE; 3];
            let mut asm = Asm::<$marker>::begin(
                Region::from(&mut bytes[..1024]),
                workspace,
                signature!("%p%p%l"),
                &mut params,
                FunctionKind::Leaf,
            )
            .expect("there is room");
            asm.reserve(600).expect("there is room");
            super::dot::<$marker>(&mut asm, &params);
            asm.end().expect("dot is valid").entry
        }
    };
}

/// The variants of one machine.
macro_rules! machine {
    ($module:ident, $marker:ident, $base:ident) => {
        pub mod $module {
            use super::*;
            use quaject_vcode::$module::{Reg, T0, T1, T2, T3, T4, T5, T6, T7, $base, $marker};

            const REGISTERS: [Reg; 8] = [T0, T1, T2, T3, T4, T5, T6, T7];

            fn begin<'a>(bytes: &'a mut [u8], workspace: &'a mut Workspace<$marker>) -> Asm<'a, $marker> {
                let mut params = [Param::NONE];
                let region = Region::from(bytes);
                let mut asm = Asm::begin(region, workspace, signature!("%p"), &mut params, FunctionKind::Leaf)
                    .expect("there is room");
                // Where the parameter comes in it, nothing is to be done.
                if params[0].reg() != $base {
                    asm.claim($base).expect("it is free");
                    asm.movp($base, params[0].reg());
                }
                asm
            }

            #[inline(never)]
            pub fn constant(bytes: &mut [u8]) -> usize {
                let mut workspace = Workspace::new();
                let mut asm = begin(bytes, &mut workspace);
                asm.reserve(20_000).expect("there is room");
                macro_rules! constant_register {
                    ($n:expr) => {
                        const { REGISTERS[$n] }
                    };
                }
                sites!(asm, constant_register, $base);
                asm.retv();
                asm.end().expect("the workload is valid").entry
            }

            #[inline(never)]
            pub fn run_time(bytes: &mut [u8]) -> usize {
                // The compiler cannot know that what is written does not change these.
                let registers = std::cell::UnsafeCell::new((REGISTERS, $base));
                let registers = black_box(registers.get());
                let mut workspace = Workspace::new();
                let mut asm = begin(bytes, &mut workspace);
                asm.reserve(20_000).expect("there is room");
                macro_rules! read_register {
                    ($n:expr) => {
                        // SAFETY: it is a local variable, and it is not written.
                        unsafe { (*registers).0[$n] }
                    };
                }
                macro_rules! read_base {
                    () => {
                        // SAFETY: it is a local variable, and it is not written.
                        unsafe { (*registers).1 }
                    };
                }
                sites!(asm, read_register, read_base!());
                asm.retv();
                asm.end().expect("the workload is valid").entry
            }

            #[inline(never)]
            pub fn table(bytes: &mut [u8]) -> usize {
                let registers = black_box(REGISTERS);
                let mut workspace = Workspace::new();
                let mut asm = begin(bytes, &mut workspace);
                for (index, register) in (0..).zip(registers) {
                    asm.ldii(register, $base, 4 * index);
                }
                for operation in black_box(&OPERATIONS) {
                    let (d, s) = (registers[operation.d as usize & 7], registers[operation.s as usize & 7]);
                    match operation.kind {
                        Kind::Add => asm.addi(d, d, s),
                        Kind::Sub => asm.subi(d, d, s),
                        Kind::Xor => asm.xori(d, d, s),
                        Kind::Load => asm.ldii(d, $base, operation.displacement),
                        Kind::Store => asm.stii(d, $base, operation.displacement),
                    }
                }
                for (index, register) in (0..).zip(registers) {
                    asm.stii(register, $base, 4 * index);
                }
                asm.retv();
                asm.end().expect("the workload is valid").entry
            }

            functions!($marker);
        }
    };
}

/// `int dot(int *a, int *b, long n)`, with the loads that take an index: one counter serves both arrays.
#[inline(always)]
fn dot<M: Machine>(asm: &mut Asm<'_, M>, params: &[Param<M>; 3])
where
    for<'a> Asm<'a, M>: Core<Reg = M::Reg, Float = M::Float>,
{
    let (a, b, end) = (params[0].reg(), params[1].reg(), params[2].reg());
    let sum = asm.getreg(Class::Temporary).expect("a register is free");
    let left = asm.getreg(Class::Temporary).expect("a register is free");
    let right = asm.getreg(Class::Temporary).expect("a register is free");
    let at = asm.getreg(Class::Temporary).expect("a register is free");
    let (again, done) = (asm.label(), asm.label());
    asm.seti(sum, 0);
    asm.bleli(end, 0, done);
    asm.lshli(end, end, 2);
    asm.setl(at, 0);
    asm.bind(again);
    asm.ldi(left, a, at);
    asm.ldi(right, b, at);
    asm.muli(left, left, right);
    asm.addi(sum, sum, left);
    asm.addli(at, at, 4);
    asm.bltl(at, end, again);
    asm.bind(done);
    asm.reti(sum);
}

machine!(x86_64, X86_64, S0);
machine!(aarch64, Aarch64, T8);
machine!(riscv64, Riscv64, T8);
machine!(mips, Mips, T8);
machine!(sparc64, Sparc64, T8);
machine!(alpha, Alpha, T8);
machine!(ppc64le, Ppc64le, S0);
