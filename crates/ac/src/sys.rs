//! Declarations of the C library; the functions are documented in `include/quaject/ac`.

use std::ffi::{c_int, c_void};

/// `struct qj_ac_task`; only pointers to it exist here.
#[repr(C)]
pub(crate) struct RawTask {
    _opaque: [u8; 0],
}

/// `struct qj_ac_finish`, by size and alignment.
#[repr(C)]
pub(crate) struct RawBlock {
    words: [u64; 14],
}

impl RawBlock {
    /// Memory for a block; `qj_ac_ffi_finish_begin` makes it one.
    pub(crate) const fn closed() -> RawBlock {
        RawBlock { words: [0; 14] }
    }
}

// SAFETY: the declarations repeat those of include/quaject/ac and src/c/ffi.c. `qj_ac_ffi_async_in` is `C-unwind`
// because a task that has not waited passes a panic on.
unsafe extern "C-unwind" {
    pub(crate) fn qj_ac_ffi_async_in(
        block: *mut RawBlock,
        function: extern "C-unwind" fn(*mut c_void),
        argument: *mut c_void,
    );
    pub(crate) fn qj_ac_ffi_finish_end(block: *mut RawBlock);
    pub(crate) fn qj_ac_ffi_yield() -> c_int;
    pub(crate) fn qj_ac_ffi_suspend();
    pub(crate) fn qj_ac_ffi_wait_remote();
    pub(crate) fn qj_ac_ffi_wait_remote_x() -> c_int;
    pub(crate) fn qj_ac_sleep(ns: u64) -> c_int;
}

// SAFETY: as above; none of these waits or calls back into Rust.
unsafe extern "C" {
    pub(crate) fn qj_ac_ffi_finish_begin(block: *mut RawBlock);
    pub(crate) fn qj_ac_ffi_finish_begin_shielded(block: *mut RawBlock);
    pub(crate) fn qj_ac_ffi_is_canceled() -> c_int;
    pub(crate) fn qj_ac_ffi_current() -> *mut RawTask;
    pub(crate) fn qj_ac_ffi_expired(block: *const RawBlock) -> c_int;
    pub(crate) fn qj_ac_ffi_wake(task: *mut RawTask);
    pub(crate) fn qj_ac_schedule_back(task: *mut RawTask);
    pub(crate) fn qj_ac_cancel(block: *mut RawBlock);
    pub(crate) fn qj_ac_deadline(block: *mut RawBlock, after_ns: u64);
    pub(crate) fn qj_ac_trim(keep: usize) -> usize;
    pub(crate) fn qj_ac_ffi_is_idle() -> c_int;
    pub(crate) fn qj_ac_stop();
}

#[cfg(test)]
mod tests {
    use super::*;

    // SAFETY: declared in src/c/ffi.c.
    unsafe extern "C" {
        fn qj_ac_ffi_finish_bytes() -> usize;
    }

    #[test]
    fn a_block_has_the_size_c_gives_it() {
        // SAFETY: the function has no preconditions.
        assert_eq!(size_of::<RawBlock>(), unsafe { qj_ac_ffi_finish_bytes() });
        assert_eq!(RawBlock::closed().words.len() * 8, size_of::<RawBlock>());
    }
}
