//! The views of code memory on systems on which it is not implemented: there are none, so that no memory can be made.

use super::Sharing;
use crate::error::Error;
use std::sync::Arc;

/// Both views; a value does not exist.
#[derive(Debug)]
pub(super) enum Views {}

impl Views {
    /// Refuses.
    pub(super) fn map(_length: usize, _sharing: Sharing) -> Result<Arc<Views>, Error> {
        Err(Error::NoCodeMemory)
    }

    /// The first byte of the write view.
    pub(super) fn writable(&self) -> *mut u8 {
        match *self {}
    }

    /// The address of the execute view.
    pub(super) fn execute(&self) -> usize {
        match *self {}
    }

    /// Bytes up to `end` are used from now on. False if they cannot be.
    pub(super) fn use_until(&self, _end: usize) -> bool {
        match *self {}
    }

    /// Discards the private copies of pages that a debugger has written.
    pub(super) fn discard_copies(&self, _offset: usize, _bytes: usize) {
        match *self {}
    }
}

#[cfg(test)]
mod tests {
    use super::super::Memory;
    use crate::error::Error;

    #[test]
    fn there_is_no_code_memory() {
        assert_eq!(Memory::new(1).map(drop), Err(Error::NoCodeMemory));
        assert_eq!(Memory::debuggable(1).map(drop), Err(Error::NoCodeMemory));
    }
}
