//! Code memory: pages of one file mapped twice, once writable and once executable, so that no page is ever both
//! through one mapping and making a function executable costs nothing.
//!
//! ```text
//! memory file   |######............|
//! write view    rw-                     where functions are written
//! execute view  r-x                     where they run
//! ```

use std::ffi::{c_char, c_int, c_long, c_void};
use std::ptr::null_mut;
use std::sync::Mutex;

use std::vec;
use std::vec::Vec;

use crate::asm::Region;
use crate::error::Error;

// SAFETY: the declarations of the C library's manual.
unsafe extern "C" {
    fn memfd_create(name: *const c_char, flags: u32) -> c_int;
    fn ftruncate(file: c_int, length: c_long) -> c_int;
    fn mmap(
        at: *mut c_void,
        length: usize,
        protection: c_int,
        flags: c_int,
        file: c_int,
        offset: c_long,
    ) -> *mut c_void;
    fn munmap(at: *mut c_void, length: usize) -> c_int;
    fn close(file: c_int) -> c_int;
}

const PROT_READ: c_int = 1;
const PROT_WRITE: c_int = 2;
const PROT_EXEC: c_int = 4;
const MAP_SHARED: c_int = 1;
const MFD_CLOEXEC: u32 = 1;
const PAGE: usize = 4096;
/// Functions start at multiples of this.
const ALIGN: usize = 16;

/// Memory that functions are written to and run from, packed one after the other, given back one by one.
///
/// Functions must not be called after their region was freed or the memory dropped.
#[derive(Debug)]
pub struct Memory {
    write: *mut u8,
    execute: *mut u8,
    length: usize,
    /// Free extents by offset, never adjacent.
    free: Mutex<Vec<(usize, usize)>>,
}

// SAFETY: the mappings belong to this value, and the free list is behind a lock.
unsafe impl Send for Memory {}
// SAFETY: regions handed out never overlap, so threads write to different bytes.
unsafe impl Sync for Memory {}

impl Memory {
    /// Maps at least `bytes`.
    ///
    /// # Errors
    /// [`Error::Memory`] if the operating system refuses.
    pub fn new(bytes: usize) -> Result<Memory, Error> {
        let length = bytes.max(1).checked_next_multiple_of(PAGE).ok_or(Error::Memory)?;
        // SAFETY: system calls that create new objects; their results are checked.
        unsafe {
            let file = memfd_create(c"quaject-code".as_ptr(), MFD_CLOEXEC);
            if file < 0 {
                return Err(Error::Memory);
            }
            let failed = ftruncate(file, length as c_long) != 0;
            let map = |protection| mmap(null_mut(), length, protection, MAP_SHARED, file, 0);
            let write = if failed { null_mut() } else { map(PROT_READ | PROT_WRITE) };
            let execute = if failed { null_mut() } else { map(PROT_READ | PROT_EXEC) };
            close(file);
            let refused = |view: *mut c_void| view.is_null() || view as isize == -1;
            if refused(write) || refused(execute) {
                for view in [write, execute] {
                    if !refused(view) {
                        munmap(view, length);
                    }
                }
                return Err(Error::Memory);
            }
            Ok(Memory { write: write.cast(), execute: execute.cast(), length, free: Mutex::new(vec![(0, length)]) })
        }
    }

    /// A free region of at least `bytes`. After the function is ended, give back what it did not use with
    /// [`Memory::keep`], or all of it with [`Memory::free`].
    ///
    /// # Errors
    /// [`Error::Memory`] when no free extent is that long.
    pub fn region(&self, bytes: usize) -> Result<Region<'_>, Error> {
        let bytes = bytes.max(1).checked_next_multiple_of(ALIGN).ok_or(Error::Memory)?;
        let mut free = self.extents();
        let index = free.iter().position(|(_, length)| *length >= bytes).ok_or(Error::Memory)?;
        let (offset, length) = free[index];
        if length == bytes {
            free.remove(index);
        } else {
            free[index] = (offset + bytes, length - bytes);
        }
        // SAFETY: the extent was free, so nobody else has it; it is inside the mappings, which live as long as `self`.
        Ok(unsafe { Region::from_raw(self.write.add(offset), bytes, self.execute as usize + offset) })
    }

    /// Gives back the part of a region that the function ended up not using, so that functions are packed. `region` is
    /// what [`Memory::region`] returned for: its executable address and length; `used` counts from its start.
    pub fn keep(&self, execute: usize, length: usize, used: usize) {
        let used = used.next_multiple_of(ALIGN).min(length);
        if let Some(offset) = execute.checked_sub(self.execute as usize)
            && used < length
        {
            self.release(offset + used, length - used);
        }
    }

    /// Frees a region; its functions must not be called any more.
    pub fn free(&self, execute: usize, length: usize) {
        if let Some(offset) = execute.checked_sub(self.execute as usize)
            && length > 0
        {
            self.release(offset, length.next_multiple_of(ALIGN));
        }
    }

    /// Bytes that are free, in all extents together.
    pub fn available(&self) -> usize {
        self.extents().iter().map(|(_, length)| length).sum()
    }

    fn extents(&self) -> std::sync::MutexGuard<'_, Vec<(usize, usize)>> {
        self.free.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn release(&self, offset: usize, length: usize) {
        let mut free = self.extents();
        if offset.checked_add(length).is_none_or(|end| end > self.length) {
            return;
        }
        let index = free.partition_point(|(own, _)| *own < offset);
        let overlaps_next = free.get(index).is_some_and(|(own, _)| *own < offset + length);
        let overlaps_last = index > 0 && free[index - 1].0 + free[index - 1].1 > offset;
        if overlaps_next || overlaps_last {
            return;
        }
        free.insert(index, (offset, length));
        if index + 1 < free.len() && free[index].0 + free[index].1 == free[index + 1].0 {
            free[index].1 += free[index + 1].1;
            free.remove(index + 1);
        }
        if index > 0 && free[index - 1].0 + free[index - 1].1 == free[index].0 {
            free[index - 1].1 += free[index].1;
            free.remove(index);
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: both views were mapped with this length and are not used after this.
        unsafe {
            munmap(self.write.cast(), self.length);
            munmap(self.execute.cast(), self.length);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn freed_extents_are_joined_and_used_again() {
        let memory = Memory::new(PAGE).expect("the system gives a page");
        let regions: Vec<(usize, usize)> = (0..4)
            .map(|_| memory.region(1000).map(|region| (region.execute, region.length)).expect("a page holds four"))
            .collect();
        assert!(memory.region(1000).is_err());
        for (execute, length) in [regions[1], regions[3], regions[2], regions[0]] {
            memory.free(execute, length);
        }
        assert_eq!(memory.available(), PAGE);
        assert!(memory.region(PAGE).is_ok());
    }

    #[test]
    fn freeing_twice_or_elsewhere_changes_nothing() {
        let memory = Memory::new(PAGE).expect("the system gives a page");
        let region = memory.region(64).expect("a page holds it");
        let (execute, length) = (region.execute, region.length);
        memory.free(execute, length);
        memory.free(execute, length);
        memory.free(execute + PAGE, 64);
        memory.free(0, 64);
        assert_eq!(memory.available(), PAGE);
    }
}
