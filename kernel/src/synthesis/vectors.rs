//! The vectors of a process: for each descriptor, the addresses of the routines that read it, write it and move its
//! position. The routines of the calls have the addresses of these arrays in them.

use super::code::with_code;
use super::stream::StreamEntries;
use crate::arch::entry::{general_read, general_seek, general_write};
use crate::fs::limits::MAX_DESCRIPTORS;
use alloc::boxed::Box;
use core::cell::UnsafeCell;

/// Addresses by descriptor. Routines read them, so that they do not move and are changed through cells only.
type Addresses = Box<[UnsafeCell<u64>; MAX_DESCRIPTORS]>;

/// The vectors of a process: read, write, seek.
pub(crate) struct Vectors([Addresses; 3]);

/// Where the routines of a descriptor lead that does not exist.
pub(super) fn no_descriptor() -> StreamEntries {
    with_code(|code| StreamEntries([code.shapes.bad_descriptor.entry() as u64; 3]))
        .unwrap_or(StreamEntries([general_read, general_write, general_seek].map(|slow| slow as *const () as u64)))
}

impl Vectors {
    /// No descriptor exists.
    pub(crate) fn new() -> Vectors {
        let StreamEntries(none) = no_descriptor();
        Vectors(
            none.map(|address| {
                Box::new([const { UnsafeCell::new(0) }; MAX_DESCRIPTORS].map(|_| UnsafeCell::new(address)))
            }),
        )
    }

    /// Lets a descriptor lead to these routines.
    pub(crate) fn set(&self, number: usize, entries: StreamEntries) {
        for (addresses, entry) in self.0.iter().zip(entries.0) {
            // SAFETY: no routine runs while the kernel's own code does, and no reference to the cell exists.
            unsafe { *addresses[number].get() = entry }
        }
    }

    /// The descriptor exists no more.
    pub(crate) fn clear(&self, number: usize) {
        self.set(number, no_descriptor());
    }

    /// Where the arrays begin: read, write, seek.
    pub(super) fn addresses(&self) -> [usize; 3] {
        self.0.each_ref().map(|addresses| (&raw const **addresses) as usize)
    }
}
