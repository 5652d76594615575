//! The memory of the thread's stacks: giving it back, in part and in whole.

use crate::future::is_driving;
use crate::sys;

/// Gives the memory of the thread's free stacks back to the system, except for the first 16 KiB of `keep` of them;
/// their address space is kept. Returns the number of stacks given back, 0 while a task waits for a stack.
///
/// While timers or other threads are waited for, the library itself gives back what was free for a second or so, except
/// for 64 stacks.
pub fn trim(keep: usize) -> usize {
    // SAFETY: the function has no preconditions.
    unsafe { sys::qj_ac_trim(keep) }
}

/// Frees everything the library holds for the thread: stacks, timers, descriptors. The next scope begins anew. The end
/// of a thread does the same.
///
/// # Panics
/// In a scope, and in a future that [`block_on`](crate::block_on) drives.
pub fn stop() {
    // SAFETY: the function has no preconditions.
    let idle = unsafe { sys::qj_ac_ffi_is_idle() } != 0;
    assert!(idle && !is_driving(), "the tasks of a thread are stopped while a scope is open or a future is driven");
    // SAFETY: no block of the thread is open, and no waker refers to its tasks.
    unsafe { sys::qj_ac_stop() };
}
