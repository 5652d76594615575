//! Code memory of forked processes: a child has a copy of its own, at the same addresses, with all functions that were
//! finished before `fork`. Parent and child install, change and free functions independently, and neither can write
//! what the other executes.
//!
//! The views of code memory are shared mappings, which `fork` alone would leave shared with the child. Handlers of
//! `pthread_atfork` replace them:
//!
//! ```text
//! parent, before   lock out changes of code memory; copy each memory to a new memory file (its snapshot)
//! child            map the snapshots over both views; release the lock
//! parent, after    close the snapshots; release the lock
//! ```
//!
//! The copy takes time in proportion to the code in use. `vfork`, `posix_spawn` and, by them, most uses of
//! [`std::process::Command`] run no handlers and need none: the child executes another program. A child of a raw
//! `clone` or of `_Fork` has no handlers run either; it has no write view (`MADV_DONTFORK`), so that an attempt to
//! install a function ends it.
//!
//! If the system gives no memory file for a snapshot (too many open files), the child has no code memory: a call of a
//! generated function ends it with a fault, and [`Memory`](crate::Memory) refuses new ones.

#[cfg(target_os = "linux")]
mod handlers;

#[cfg(target_os = "linux")]
pub use handlers::{ForkState, register};

use core::marker::PhantomData;
use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

/// While it is held, a fork by another thread waits: a lock that is taken and released within is free in the child (as
/// `syscall.ForkLock` of Go). It can be held several times by one thread, and does not exclude other holders.
///
/// The libraries on top of code memory hold it whenever they change what is shared by threads.
#[derive(Debug)]
pub struct ForkLock {
    /// The number of holders is counted per thread.
    not_send: PhantomData<*const ()>,
}

/// Set in [`HOLDERS`] while a thread forks.
const FORKING: u32 = 1 << 31;

/// The number of threads that hold a [`ForkLock`], and [`FORKING`].
static HOLDERS: AtomicU32 = AtomicU32::new(0);

std::thread_local! {
    /// The number of times this thread holds a [`ForkLock`].
    static OWN: Cell<u32> = const { Cell::new(0) };
}

impl ForkLock {
    /// Holds the lock; waits if another thread is forking.
    pub fn hold() -> ForkLock {
        // A thread whose variables are destroyed counts as an ordinary holder.
        if OWN.try_with(|own| own.replace(own.get() + 1)).unwrap_or(0) == 0 {
            wait_until(|| {
                let holders = HOLDERS.load(Ordering::Relaxed);
                holders & FORKING == 0
                    && HOLDERS.compare_exchange_weak(holders, holders + 1, Ordering::Acquire, Ordering::Relaxed).is_ok()
            });
        }
        ForkLock { not_send: PhantomData }
    }
}

impl Drop for ForkLock {
    fn drop(&mut self) {
        if OWN.try_with(|own| own.replace(own.get() - 1)).unwrap_or(1) == 1 {
            HOLDERS.fetch_sub(1, Ordering::Release);
        }
    }
}

/// Yields until the condition holds. Holders and forks take microseconds to milliseconds and are rare; a lock of the
/// system could itself be held by a thread that the child does not have.
fn wait_until(mut condition: impl FnMut() -> bool) {
    while !condition() {
        thread::yield_now();
    }
}
