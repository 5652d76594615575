//! The thread block: what stubs and routines reach through gs while a thread runs. It is the paper's thread table entry
//! ("Threads and Input/Output in the Synthesis Kernel" 3.1): each thread has a vector table of its own, so that a
//! specialised routine takes the place of the general one by a store to one entry.

use super::processor::VectorRegisters;
use core::arch::asm;
use core::mem::offset_of;

/// The number of entries; calls with larger numbers take the general path.
pub(crate) const ENTRY_COUNT: usize = 416;

/// The part of a thread that stubs and routines know.
#[repr(C, align(64))]
pub(crate) struct ThreadBlock {
    /// The address of this block, for code that has nothing but gs.
    pub(crate) address: u64,
    /// The program's stack pointer, while the general path enters.
    pub(crate) user_stack: u64,
    /// The end of the thread's kernel stack: where frames are saved.
    pub(crate) kernel_stack: u64,
    /// Registers of the program while a routine uses them (`quaject_synth::entry::Sysret`).
    pub(crate) slots: [u64; 4],
    /// While calls are counted: the number of this one, and the counter at its start.
    pub(crate) counted: [u64; 2],
    /// The stack pointer, and the program's fs and gs, while another thread runs.
    pub(crate) saved_stack: u64,
    pub(crate) user_fs: u64,
    pub(crate) user_gs: u64,
    /// The addresses of what the layers above know of the thread; 0 for the idle thread.
    pub(crate) thread: u64,
    pub(crate) task: u64,
    /// What `gettid` returns.
    pub(crate) thread_id: u64,
    /// Where the entries were copied from.
    entries_from: u64,
    /// The vector registers while another thread runs, or until the first use.
    pub(crate) vectors: VectorRegisters,
    /// Where the call of each number is handled; `entry.s` states what holds there.
    pub(crate) entries: [u64; ENTRY_COUNT],
}

impl ThreadBlock {
    /// Makes these the entries. A block that has them from an earlier thread of the process keeps them.
    pub(crate) fn take_entries(&mut self, entries: &[u64; ENTRY_COUNT]) {
        let from = (&raw const *entries) as u64;
        if self.entries_from != from {
            self.entries = *entries;
            self.entries_from = from;
        }
    }
}

/// A word of the block of the thread that runs; 0 while the machine starts.
macro_rules! word_of_current {
    ($field:ident) => {{
        let value: u64;
        // SAFETY: while the kernel runs, gs leads to a block, or to zeros (`initialize`).
        unsafe {
            asm!(
                "mov {value}, gs:[{offset}]",
                value = out(reg) value,
                offset = const offset_of!(ThreadBlock, $field),
                options(nostack, readonly, preserves_flags)
            );
        }
        value
    }};
}

/// The address of the thread that runs, as the scheduler has stored it.
pub(crate) fn current_thread() -> *const () {
    word_of_current!(thread) as *const ()
}

/// The address of the task of the thread that runs.
pub(crate) fn current_task() -> *const () {
    word_of_current!(task) as *const ()
}

/// What gs leads to until the first thread runs.
static START: [u64; 16] = [0; 16];

/// Lets gs lead to zeros.
pub(crate) fn initialize() {
    const { assert!(offset_of!(ThreadBlock, vectors) <= size_of::<[u64; 16]>()) }
    super::processor::set_thread_block((&raw const START) as u64);
}
