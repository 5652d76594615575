//! The asynchronous face: one side asks to be woken, the other finds out at its next operation and sends the signal,
//! whatever that is: a futex, an eventfd, a waker, a software interrupt. Knows no queue and no operating system.
//!
//! ```text
//!   waiter                                    other side
//!   bell.arm()                                push or pop
//!   try once more; ready? then go on          bell.ring(|| wake the waiter)
//!   sleep until woken
//! ```
//!
//! "Threads in the Synthesis kernel", section 3.2: a synchronous queue blocks where an asynchronous one signals. Here
//! both are made of the same queue and this one word.

use core::ops::Deref;

use crate::ends::{Consumer, Producer, Queue, Refused};
use crate::slots::Refusal;
use crate::sync::{AtomicU32, HINT, MARK, Ordering, fence};

/// Whether somebody sleeps, or is about to. May lie in shared memory; `quaject/ring.h` has the same word.
#[repr(transparent)]
#[derive(Debug)]
pub struct Bell(AtomicU32);

impl Bell {
    /// A bell nobody waits at.
    pub const fn new() -> Bell {
        Bell(AtomicU32::new(0))
    }

    /// Asks for a signal. The caller tries once more before it sleeps.
    #[inline]
    pub fn arm(&self) {
        self.0.store(1, HINT);
        // Pairs with the fence in `ring`: either it sees the bell armed, or our next try sees what was done before it.
        fence(Ordering::SeqCst);
    }

    /// Whether a signal was asked for and not yet sent.
    pub fn is_armed(&self) -> bool {
        // Pairs with MARK in `ring`.
        self.0.load(Ordering::Acquire) != 0
    }

    /// Calls `signal` when somebody has asked for it since the last time. To be called after the operation that might
    /// be of interest.
    #[inline]
    pub fn ring(&self, signal: impl FnOnce()) {
        // Pairs with the fence in `arm`.
        fence(Ordering::SeqCst);
        if self.0.load(HINT) != 0 && self.0.swap(0, MARK) != 0 {
            signal();
        }
    }

    #[cfg(all(feature = "std", target_os = "linux"))]
    pub(crate) fn word(&self) -> &AtomicU32 {
        &self.0
    }
}

impl Default for Bell {
    fn default() -> Self {
        Bell::new()
    }
}

/// An end that rings after each of its operations that succeeds. `E` is a [`Producer`] or a [`Consumer`], `B` refers to
/// the bell at which the other side waits, `F` sends the signal.
#[derive(Debug)]
pub struct Signalling<E, B, F> {
    end: E,
    bell: B,
    signal: F,
}

impl<E, B: Deref<Target = Bell>, F: FnMut()> Signalling<E, B, F> {
    /// Adds a bell to an end.
    pub fn new(end: E, bell: B, signal: F) -> Self {
        Signalling { end, bell, signal }
    }

    /// Any operation on the end, then the bell.
    pub fn after<T>(&mut self, operation: impl FnOnce(&mut E) -> T) -> T {
        let result = operation(&mut self.end);
        self.bell.ring(&mut self.signal);
        result
    }

    /// The end without its bell.
    pub fn into_end(self) -> E {
        self.end
    }
}

impl<R: Deref<Target: Queue>, B: Deref<Target = Bell>, F: FnMut()> Signalling<Producer<R>, B, F> {
    /// [`Producer::push`], then the bell.
    #[inline]
    pub fn push(&mut self, item: <R::Target as Queue>::Item) -> Result<(), Refused<<R::Target as Queue>::Item>> {
        self.end.push(item)?;
        self.bell.ring(&mut self.signal);
        Ok(())
    }
}

impl<R: Deref<Target: Queue>, B: Deref<Target = Bell>, F: FnMut()> Signalling<Consumer<R>, B, F> {
    /// [`Consumer::pop`], then the bell.
    #[inline]
    pub fn pop(&mut self) -> Result<<R::Target as Queue>::Item, Refusal> {
        let item = self.end.pop()?;
        self.bell.ring(&mut self.signal);
        Ok(item)
    }
}
