//! The doorbell: one side requests a wake-up, and the other side sends it after its next operation, by any means: a
//! futex, an eventfd, a waker, a software interrupt. Knows no queue and no operating system.
//!
//! ```text
//!   waiter                                    other side
//!   bell.arm()                                push or pop
//!   try once more; ready? then go on          bell.ring(|| wake the waiter)
//!   sleep until woken
//! ```
//!
//! "Threads in the Synthesis kernel", section 3.2: a synchronous queue blocks where an asynchronous one signals. Here
//! both consist of the same queue and this word.

use super::sync::{AtomicU32, BARRIER, HINT, MARK, OBSERVE, fence};

/// Whether a waiter sleeps, or is about to. May lie in shared memory; `quaject/ring.h` has the same word.
#[repr(transparent)]
#[derive(Debug)]
pub struct Bell(pub(crate) AtomicU32);

impl Bell {
    /// Requests a signal. The caller tries once more before it sleeps.
    #[inline]
    pub fn arm(&self) {
        self.0.store(1, HINT);
        // Pairs with the fence in `ring`: either it sees the bell armed, or our next try sees what was done before it.
        fence(BARRIER);
    }

    /// Whether a signal was requested and not yet sent.
    pub fn is_armed(&self) -> bool {
        // Pairs with MARK in `ring`.
        self.0.load(OBSERVE) != 0
    }

    /// Calls `signal` when a waiter has armed the bell since the last time. To be called after the operation that the
    /// waiter may wait for.
    #[inline]
    pub fn ring(&self, signal: impl FnOnce()) {
        // Pairs with the fence in `arm`.
        fence(BARRIER);
        if self.0.load(HINT) != 0 && self.0.swap(0, MARK) != 0 {
            signal();
        }
    }
}
