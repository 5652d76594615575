//! The workload on quaject-vcode: a thousand operations with constant registers, with registers read from memory at each
//! use, and from a table; `plus1` and `dot`, begin to end. Every function returns the bytes it wrote.

use std::hint::black_box;

use quaject_vcode::{Asm, Class, Core, Kind as FunctionKind, Machine, Param, Region, Workspace, signature};

use crate::{Kind, OPERATIONS};

/// The variants of one machine.
macro_rules! machine {
    ($module:ident, $marker:ident) => {
        pub mod $module {
            use super::*;
            use quaject_vcode::$module::{Reg, S0, T0, T1, T2, T3, T4, T5, T6, T7, $marker};

            const REGISTERS: [Reg; 8] = [T0, T1, T2, T3, T4, T5, T6, T7];

            fn begin<'a>(
                bytes: &'a mut [u8],
                workspace: &'a mut Workspace<$marker>,
                params: &mut [Param<$marker>],
            ) -> Asm<'a, $marker> {
                Asm::begin(Region::from(bytes), workspace, &[][..0], params, FunctionKind::Leaf).expect("there is room")
            }

            #[inline(never)]
            pub fn constant(bytes: &mut [u8]) -> usize {
                let mut workspace = Workspace::new();
                let mut asm = begin(bytes, &mut workspace, &mut []);
                asm.reserve(20_000).expect("there is room");
                macro_rules! constant_register {
                    ($n:expr) => {
                        const { REGISTERS[$n] }
                    };
                }
                sites!(asm, constant_register, S0);
                asm.retv();
                asm.end().expect("the workload is valid").length
            }

            #[inline(never)]
            pub fn run_time(bytes: &mut [u8]) -> usize {
                // The compiler cannot know that what is written does not change these.
                let registers = std::cell::UnsafeCell::new((REGISTERS, S0));
                let registers = black_box(registers.get());
                let (length, write) = (bytes.len(), black_box(bytes.as_mut_ptr()));
                let mut workspace = Workspace::new();
                // SAFETY: these are the bytes that the caller lends.
                let region = unsafe { Region::from_raw(write, length, write as usize) };
                let mut asm = Asm::<$marker>::begin(region, &mut workspace, &[][..0], &mut [], FunctionKind::Leaf)
                    .expect("there is room");
                asm.reserve(20_000).expect("there is room");
                macro_rules! read_register {
                    ($n:expr) => {
                        // SAFETY: it is a local variable, and nobody writes to it.
                        unsafe { (*registers).0[$n] }
                    };
                }
                sites!(asm, read_register, {
                    // SAFETY: it is a local variable, and nobody writes to it.
                    unsafe { (*registers).1 }
                });
                asm.retv();
                asm.end().expect("the workload is valid").length
            }

            #[inline(never)]
            pub fn table(bytes: &mut [u8]) -> usize {
                let registers = black_box(REGISTERS);
                let mut workspace = Workspace::new();
                let mut asm = begin(bytes, &mut workspace, &mut []);
                for operation in black_box(&OPERATIONS) {
                    let (d, s) = (registers[operation.d as usize & 7], registers[operation.s as usize & 7]);
                    match operation.kind {
                        Kind::Add => asm.addi(d, d, s),
                        Kind::Sub => asm.subi(d, d, s),
                        Kind::Xor => asm.xori(d, d, s),
                        Kind::Load => asm.ldii(d, S0, operation.displacement),
                        Kind::Store => asm.stii(d, S0, operation.displacement),
                    }
                }
                asm.retv();
                asm.end().expect("the workload is valid").length
            }

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
                    Region::from(bytes),
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
        }
    };
}

/// `int dot(int *a, int *b, long n)`.
#[inline(always)]
fn dot<M: Machine>(asm: &mut Asm<'_, M>, params: &[Param<M>; 3])
where
    for<'a> Asm<'a, M>: Core<Reg = M::Reg, Float = M::Float>,
{
    let (a, b, n) = (params[0].reg(), params[1].reg(), params[2].reg());
    let sum = asm.getreg(Class::Temporary).expect("a register is free");
    let left = asm.getreg(Class::Temporary).expect("a register is free");
    let right = asm.getreg(Class::Temporary).expect("a register is free");
    let (again, done) = (asm.label(), asm.label());
    asm.seti(sum, 0);
    asm.bleli(n, 0, done);
    asm.bind(again);
    asm.ldii(left, a, 0);
    asm.ldii(right, b, 0);
    asm.muli(left, left, right);
    asm.addi(sum, sum, left);
    asm.addpi(a, a, 4);
    asm.addpi(b, b, 4);
    asm.subli(n, n, 1);
    asm.bgtli(n, 0, again);
    asm.bind(done);
    asm.reti(sum);
}

machine!(x86_64, X86_64);
machine!(aarch64, Aarch64);
machine!(riscv64, Riscv64);
