//! The stubs of `entry.s`, and the constants in them.

use super::block::{ENTRY_COUNT, ThreadBlock};
use super::frame::VECTOR_CALL;
use super::segments::{USER_CODE, USER_DATA};
use crate::counts::COUNTS;
use crate::memory::layout::CODE_EXECUTE;
use core::arch::global_asm;
use core::mem::offset_of;
use syscalls::Sysno;

global_asm!(
    include_str!("entry.s"),
    BLOCK_USER_STACK = const offset_of!(ThreadBlock, user_stack),
    BLOCK_KERNEL_STACK = const offset_of!(ThreadBlock, kernel_stack),
    BLOCK_ENTRIES = const offset_of!(ThreadBlock, entries),
    ENTRY_COUNT = const ENTRY_COUNT,
    USER_CODE = const USER_CODE,
    USER_DATA = const USER_DATA,
    VECTOR_CALL = const VECTOR_CALL,
    BLOCK_SLOTS = const offset_of!(ThreadBlock, slots),
    BLOCK_COUNTED = const offset_of!(ThreadBlock, counted),
    CODE_START = const CODE_EXECUTE as i64 as i32,
    COUNTS = sym COUNTS,
    READ = const Sysno::read as u32,
    WRITE = const Sysno::write as u32,
    SEEK = const Sysno::lseek as u32,
);

// SAFETY: as `entry.s` defines them.
unsafe extern "C" {
    /// Where SYSCALL leads. Not to be called.
    pub(crate) fn call_entry();
    /// The same while calls are counted, and where routines end then. Not to be called.
    pub(crate) fn counting_call_entry();
    pub(crate) fn counting_exit();
    /// The entry of every call that has no routine of its own. Not to be called.
    pub(crate) fn general_entry();
    /// The slow paths of routines that read, write and seek. Not to be called.
    pub(crate) fn general_read();
    pub(crate) fn general_write();
    pub(crate) fn general_seek();
    /// The stubs of faults of which a routine's instruction may be the cause. Not to be called.
    pub(crate) fn page_fault_entry();
    pub(crate) fn protection_fault_entry();
    /// Restores the frame that the stack pointer points to. Not to be called.
    pub(crate) fn return_to_program();
    /// 256 stubs, 16 bytes apart. Not to be called.
    pub(crate) static trap_stubs: [[u8; 16]; 256];
    /// Calls a function on another stack, for good.
    pub(crate) fn continue_on(stack: u64, function: extern "C" fn() -> !) -> !;
    /// Copies between kernel and program; returns the number of bytes at the end that are not copied.
    pub(crate) fn copy_across(to: *mut u8, from: *const u8, length: usize) -> usize;
    /// Writes zeros to a program's memory; returns the number of bytes at the end that are not written.
    pub(crate) fn fill_across(to: *mut u8, length: usize) -> usize;
    /// Reads an aligned word of a program at once; 0 if it could be read.
    pub(crate) fn read_word_across(from: *const u32, to: *mut u32) -> u64;
}

// SAFETY: link.ld defines the two ends of the table, and `entry.s` its contents.
unsafe extern "C" {
    static exception_table_start: [u64; 2];
    static exception_table_end: [u64; 2];
}

/// Where an instruction of the kernel that faulted on a program's memory continues.
pub(crate) fn fixup_of(instruction: u64) -> Option<u64> {
    let start = &raw const exception_table_start;
    let length = (&raw const exception_table_end as usize - start as usize) / size_of::<[u64; 2]>();
    // SAFETY: the linker places pairs of addresses from the start to the end; nothing writes to them.
    let table = unsafe { core::slice::from_raw_parts(start, length) };
    table.iter().find(|[faulting, _]| *faulting == instruction).map(|[_, landing]| *landing)
}
