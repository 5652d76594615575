//! The bytes of a regular file. Synthesised routines read and extend them in place, so that what the kernel's own code
//! knows of their length and of the time of the last change lies where the routines find it.

use crate::arch::time;
use alloc::vec::Vec;
use core::cell::UnsafeCell;
use core::mem::ManuallyDrop;
use quaject_synth::stream::Content;

/// The bytes of a file. They are accessed by one function at a time: routines do not run while the kernel's code does.
pub(crate) struct Contents(UnsafeCell<Content>);

impl Contents {
    pub(crate) fn new(bytes: Vec<u8>) -> Contents {
        let contents =
            Contents(UnsafeCell::new(Content { data: 0, size: 0, capacity: 0, modified: time::coarse_ns() }));
        contents.put(bytes);
        contents
    }

    fn put(&self, bytes: Vec<u8>) {
        let mut bytes = ManuallyDrop::new(bytes);
        // SAFETY: no reference to the value exists.
        let content = unsafe { &mut *self.0.get() };
        content.data = bytes.as_mut_ptr() as usize;
        content.size = bytes.len() as u64;
        content.capacity = bytes.capacity() as u64;
    }

    fn content(&self) -> Content {
        // SAFETY: no mutable reference to the value exists.
        let Content { data, size, capacity, modified } = unsafe { &*self.0.get() };
        Content { data: *data, size: *size, capacity: *capacity, modified: *modified }
    }

    pub(crate) fn size(&self) -> u64 {
        self.content().size
    }

    /// Nanoseconds since 1970.
    pub(crate) fn modified_ns(&self) -> u64 {
        self.content().modified
    }

    /// Notes that they have been changed now.
    pub(crate) fn touch(&self) {
        // SAFETY: no reference to the value exists.
        unsafe { (*self.0.get()).modified = time::coarse_ns() }
    }

    /// Gives the bytes to `work`, which does not use the same file.
    pub(crate) fn with<R>(&self, work: impl FnOnce(&[u8]) -> R) -> R {
        let content = self.content();
        // SAFETY: `put` has taken them from a vector, and routines write the bytes before they extend the size.
        work(unsafe { core::slice::from_raw_parts(content.data as *const u8, content.size as usize) })
    }

    /// Lets `work` change the bytes; it does not use the same file.
    pub(crate) fn change<R>(&self, work: impl FnOnce(&mut Vec<u8>) -> R) -> R {
        let Content { data, size, capacity, .. } = self.content();
        // SAFETY: as above; the vector is put back, and no panic unwinds.
        let mut bytes = unsafe { Vec::from_raw_parts(data as *mut u8, size as usize, capacity as usize) };
        let result = work(&mut bytes);
        self.put(bytes);
        result
    }

    /// Where the routines find what they know of the bytes.
    pub(crate) fn address(&self) -> usize {
        self.0.get() as usize
    }
}

impl Drop for Contents {
    fn drop(&mut self) {
        self.change(|bytes| drop(core::mem::take(bytes)));
    }
}
