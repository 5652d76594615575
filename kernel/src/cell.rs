//! Globals of a kernel that runs on one processor and is not preempted: interrupts are off in the kernel, except while
//! it is idle. So a global needs no lock; it refuses a second use during the first.

use core::cell::{Cell, UnsafeCell};

/// A global that is used by one function at a time.
pub(crate) struct Global<T> {
    in_use: Cell<bool>,
    value: UnsafeCell<T>,
}

// SAFETY: there is one processor, and interrupt handlers do not run while the kernel does, so no two uses overlap
// except nested ones, which `with` refuses.
unsafe impl<T> Sync for Global<T> {}

impl<T> Global<T> {
    pub(crate) const fn new(value: T) -> Global<T> {
        Global { in_use: Cell::new(false), value: UnsafeCell::new(value) }
    }

    /// Gives the value to `work`.
    ///
    /// # Panics
    /// When it is in use: `work` may not block or use the same global.
    pub(crate) fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        assert!(!self.in_use.replace(true), "a global is in use already");
        // SAFETY: the flag says that this is the only reference.
        let result = work(unsafe { &mut *self.value.get() });
        self.in_use.set(false);
        result
    }

    /// Where the value lies, for the processor.
    pub(crate) fn address(&self) -> *mut T {
        self.value.get()
    }
}
