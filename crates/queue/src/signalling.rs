//! Ends that ring a bell after each operation. Does not know how the signal is sent.

use core::ops::Deref;

use crate::bell::Bell;
use crate::ends::{Consumer, Producer, Queue, TryPushError};
use crate::slots::TryError;
use crate::sync::AtomicU32;

impl Bell {
    /// A bell that is not armed.
    pub const fn new() -> Bell {
        Bell(AtomicU32::new(0))
    }
}

impl Default for Bell {
    fn default() -> Self {
        Bell::new()
    }
}

/// An end that rings after each of its operations that succeeds, and after it was dropped, so that a wait of the other
/// side ends. `E` is a [`Producer`] or a [`Consumer`], `B` refers to
/// the bell at which the other side waits, `F` sends the signal.
#[derive(Debug)]
pub struct Signalling<E, B: Deref<Target = Bell>, F: FnMut()> {
    // Dropped in this order: a waiter that the bell wakes finds the end dropped.
    end: E,
    ringer: Ringer<B, F>,
}

/// A bell and its signal. Rings once more when it is dropped.
#[derive(Debug)]
struct Ringer<B: Deref<Target = Bell>, F: FnMut()> {
    bell: B,
    signal: F,
}

impl<B: Deref<Target = Bell>, F: FnMut()> Ringer<B, F> {
    #[inline]
    fn ring(&mut self) {
        self.bell.ring(&mut self.signal);
    }
}

impl<B: Deref<Target = Bell>, F: FnMut()> Drop for Ringer<B, F> {
    fn drop(&mut self) {
        self.ring();
    }
}

impl<E, B: Deref<Target = Bell>, F: FnMut()> Signalling<E, B, F> {
    /// Adds a bell to an end.
    pub fn new(end: E, bell: B, signal: F) -> Self {
        Signalling { end, ringer: Ringer { bell, signal } }
    }

    /// Any operation on the end, then the bell.
    pub fn after<T>(&mut self, operation: impl FnOnce(&mut E) -> T) -> T {
        let result = operation(&mut self.end);
        self.ringer.ring();
        result
    }

    /// The end without its bell, which is rung a last time.
    pub fn into_end(self) -> E {
        self.end
    }
}

impl<R: Deref<Target: Queue>, B: Deref<Target = Bell>, F: FnMut()> Signalling<Producer<R>, B, F> {
    /// [`Producer::push`], then the bell.
    #[inline]
    pub fn push(&mut self, item: <R::Target as Queue>::Item) -> Result<(), TryPushError<<R::Target as Queue>::Item>> {
        self.end.push(item)?;
        self.ringer.ring();
        Ok(())
    }
}

impl<R: Deref<Target: Queue>, B: Deref<Target = Bell>, F: FnMut()> Signalling<Consumer<R>, B, F> {
    /// [`Consumer::pop`], then the bell.
    #[inline]
    pub fn pop(&mut self) -> Result<<R::Target as Queue>::Item, TryError> {
        let item = self.end.pop()?;
        self.ringer.ring();
        Ok(item)
    }
}
