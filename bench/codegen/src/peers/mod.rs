//! The peers, on the same workload: each function writes code into `bytes` and returns the address of its first
//! instruction, or writes it into memory of its own.

use std::ffi::{CString, c_char};

pub mod cranelift;
pub mod dynasm;

use crate::OPERATIONS;

/// Builds for AsmJit's table what its C++ reads.
#[repr(C)]
struct Entry {
    kind: u8,
    d: u8,
    s: u8,
    displacement: i32,
}

// SAFETY: the signatures are those of `asmjit.cpp` and `tcc.c`.
unsafe extern "C" {
    fn asmjit_constant(bytes: *mut u8, length: usize) -> usize;
    fn asmjit_table(bytes: *mut u8, length: usize, entries: *const Entry, count: usize) -> usize;
    fn asmjit_plus1(bytes: *mut u8, length: usize) -> usize;
    fn asmjit_dot(bytes: *mut u8, length: usize) -> usize;
    fn tcc_function(text: *const c_char, name: *const c_char) -> usize;
}

/// AsmJit's `x86::Assembler`.
pub mod asmjit {
    use super::*;

    pub fn constant(bytes: &mut [u8]) -> usize {
        // SAFETY: the memory is ours, and as long as it is told.
        unsafe { asmjit_constant(bytes.as_mut_ptr(), bytes.len()) }
    }

    /// A client that walks over a table.
    pub fn table() -> impl FnMut(&mut [u8]) -> usize {
        let entries: Vec<Entry> = OPERATIONS
            .iter()
            .map(|o| Entry { kind: o.kind as u8, d: o.d, s: o.s, displacement: o.displacement })
            .collect();
        // SAFETY: both memories are ours, and as long as it is told.
        move |bytes| unsafe { asmjit_table(bytes.as_mut_ptr(), bytes.len(), entries.as_ptr(), entries.len()) }
    }

    pub fn plus1(bytes: &mut [u8]) -> usize {
        // SAFETY: the memory is ours, and as long as it is told.
        unsafe { asmjit_plus1(bytes.as_mut_ptr(), bytes.len()) }
    }

    pub fn dot(bytes: &mut [u8]) -> usize {
        // SAFETY: the memory is ours, and as long as it is told.
        unsafe { asmjit_dot(bytes.as_mut_ptr(), bytes.len()) }
    }
}

/// libtcc, which compiles C text.
pub mod tcc {
    use super::*;

    fn compiler(text: &str, name: &str) -> impl FnMut(&mut [u8]) -> usize {
        let text = CString::new(text).expect("no zero is in it");
        let name = CString::new(name).expect("no zero is in it");
        // SAFETY: both are strings that end with a zero.
        move |_| unsafe { tcc_function(text.as_ptr(), name.as_ptr()) }
    }

    pub fn table() -> impl FnMut(&mut [u8]) -> usize {
        compiler(include_str!(concat!(env!("OUT_DIR"), "/thousand.c")), "thousand")
    }

    pub fn plus1() -> impl FnMut(&mut [u8]) -> usize {
        compiler("int plus1(int x) { return x + 1; }", "plus1")
    }

    pub fn dot() -> impl FnMut(&mut [u8]) -> usize {
        compiler(
            "int dot(int *a, int *b, long n) { int s = 0; for (long i = 0; i < n; i++) s += a[i] * b[i]; return s; }",
            "dot",
        )
    }
}
