//! AsmJit's `x86::Assembler`, see `asmjit.cpp`.

use crate::OPERATIONS;

/// An operation of the table, as C++ reads it.
#[repr(C)]
struct Entry {
    kind: u8,
    d: u8,
    s: u8,
    displacement: i32,
}

// SAFETY: the signatures are those of `asmjit.cpp`.
unsafe extern "C" {
    fn asmjit_constant(bytes: *mut u8, length: usize) -> usize;
    fn asmjit_table(bytes: *mut u8, length: usize, entries: *const Entry, count: usize) -> usize;
    fn asmjit_plus1(bytes: *mut u8, length: usize) -> usize;
    fn asmjit_dot(bytes: *mut u8, length: usize) -> usize;
}

pub fn constant(bytes: &mut [u8]) -> usize {
    // SAFETY: the memory is ours, and as long as the given length.
    unsafe { asmjit_constant(bytes.as_mut_ptr(), bytes.len()) }
}

/// A client that walks over a table.
pub fn table() -> impl FnMut(&mut [u8]) -> usize {
    let entries: Vec<Entry> =
        OPERATIONS.iter().map(|o| Entry { kind: o.kind as u8, d: o.d, s: o.s, displacement: o.displacement }).collect();
    // SAFETY: both memories are ours, and as long as the given length.
    move |bytes| unsafe { asmjit_table(bytes.as_mut_ptr(), bytes.len(), entries.as_ptr(), entries.len()) }
}

pub fn plus1(bytes: &mut [u8]) -> usize {
    // SAFETY: the memory is ours, and as long as the given length.
    unsafe { asmjit_plus1(bytes.as_mut_ptr(), bytes.len()) }
}

pub fn dot(bytes: &mut [u8]) -> usize {
    // SAFETY: the memory is ours, and as long as the given length.
    unsafe { asmjit_dot(bytes.as_mut_ptr(), bytes.len()) }
}
