//! The workload on dynasm-rs: templates of bytes made at compile time, stored to a vector and copied from there.
#![allow(clippy::useless_conversion, reason = "the macro's own, which takes any integer for a register")]

use dynasmrt::x64::X64Relocation;
use dynasmrt::{DynasmApi, DynasmLabelApi, VecAssembler, dynasm};

use crate::{Kind, OPERATIONS};

/// The numbers of the registers `T0` to `T7`.
const REGISTERS: [u8; 8] = [10, 0, 9, 8, 1, 2, 6, 7];

fn function(bytes: &mut [u8], write: impl FnOnce(&mut VecAssembler<X64Relocation>)) -> usize {
    let mut asm = VecAssembler::new(bytes.as_ptr() as usize);
    write(&mut asm);
    let code = asm.finalize().expect("all labels are bound");
    bytes[..code.len()].copy_from_slice(&code);
    bytes.as_ptr() as usize
}

fn open(asm: &mut VecAssembler<X64Relocation>) {
    dynasm!(asm ; .arch x64 ; push rbx ; mov rbx, rdi);
    for (index, register) in (0..).zip(REGISTERS) {
        dynasm!(asm ; .arch x64 ; mov Rd(register), [rbx + 4 * index]);
    }
}

fn close(asm: &mut VecAssembler<X64Relocation>) {
    for (index, register) in (0..).zip(REGISTERS) {
        dynasm!(asm ; .arch x64 ; mov [rbx + 4 * index], Rd(register));
    }
    dynasm!(asm ; .arch x64 ; pop rbx ; ret);
}

#[inline(never)]
pub fn constant(bytes: &mut [u8]) -> usize {
    function(bytes, |asm| {
        dynasm!(asm ; .arch x64 ; push rbx ; mov rbx, rdi);
        include!(concat!(env!("OUT_DIR"), "/dynasm_sites.rs"));
        dynasm!(asm ; .arch x64 ; pop rbx ; ret);
    })
}

#[inline(never)]
pub fn table(bytes: &mut [u8]) -> usize {
    let registers = std::hint::black_box(REGISTERS);
    function(bytes, |asm| {
        open(asm);
        for operation in std::hint::black_box(&OPERATIONS) {
            let (d, s) = (registers[operation.d as usize & 7], registers[operation.s as usize & 7]);
            let at = operation.displacement;
            match operation.kind {
                Kind::Add => dynasm!(asm ; .arch x64 ; add Rd(d), Rd(s)),
                Kind::Sub => dynasm!(asm ; .arch x64 ; sub Rd(d), Rd(s)),
                Kind::Xor => dynasm!(asm ; .arch x64 ; xor Rd(d), Rd(s)),
                Kind::Load => dynasm!(asm ; .arch x64 ; mov Rd(d), [rbx + at]),
                Kind::Store => dynasm!(asm ; .arch x64 ; mov [rbx + at], Rd(d)),
            }
        }
        close(asm);
    })
}

#[inline(never)]
pub fn plus1(bytes: &mut [u8]) -> usize {
    function(bytes, |asm| {
        dynasm!(asm ; .arch x64 ; lea eax, [rdi + 1] ; ret);
    })
}

#[inline(never)]
pub fn dot(bytes: &mut [u8]) -> usize {
    function(bytes, |asm| {
        dynasm!(asm
            ; .arch x64
            ; xor eax, eax
            ; test rdx, rdx
            ; jle >done
            ; xor ecx, ecx
            ; again:
            ; mov r8d, [rdi + rcx * 4]
            ; imul r8d, [rsi + rcx * 4]
            ; add eax, r8d
            ; add rcx, 1
            ; cmp rcx, rdx
            ; jl <again
            ; done:
            ; ret);
    })
}
