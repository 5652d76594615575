//! The views of code memory on Linux: a memory file that is mapped twice.
//!
//! The execute view is mapped below the program, as near as there is room. Branch target buffers store near targets in
//! fewer bits; at the distant address that the system chooses, a call takes 3 cycles longer (AMD Zen 4).

use super::{PAGE, Sharing};
use crate::error::Error;
use std::ffi::{c_char, c_int, c_long, c_void};
use std::ptr::null_mut;

// SAFETY: the declarations of the C library's manual.
unsafe extern "C" {
    fn memfd_create(name: *const c_char, flags: u32) -> c_int;
    fn ftruncate(file: c_int, length: c_long) -> c_int;
    pub(crate) fn mmap(
        at: *mut c_void,
        length: usize,
        protection: c_int,
        flags: c_int,
        file: c_int,
        offset: c_long,
    ) -> *mut c_void;
    pub(crate) fn munmap(at: *mut c_void, length: usize) -> c_int;
    fn madvise(at: *mut c_void, length: usize, advice: c_int) -> c_int;
    fn close(file: c_int) -> c_int;
}

pub(crate) const PROT_READ: c_int = 1;
const PROT_WRITE: c_int = 2;
pub(crate) const PROT_EXEC: c_int = 4;
const MAP_SHARED: c_int = 1;
pub(crate) const MAP_PRIVATE: c_int = 2;
const MAP_FIXED_NOREPLACE: c_int = 0x10_0000;
const MADV_DONTNEED: c_int = 4;
const MFD_CLOEXEC: u32 = 1;
/// The distance between the program and the execute view, and the alignment of the latter.
const GAP: usize = 1 << 26;
/// The number of addresses that are tried for an execute view, each below the one before.
const PLACES: usize = 64;
/// The lowest address of an execute view.
const LOWEST: usize = 1 << 28;

/// Both views.
#[derive(Debug)]
pub(super) struct Views {
    write: *mut u8,
    execute: *mut u8,
    length: usize,
}

// SAFETY: the mappings belong to this value.
unsafe impl Send for Views {}
// SAFETY: this value does not access the mappings, and regions that are handed out never overlap.
unsafe impl Sync for Views {}

impl Views {
    /// Maps `length` bytes, a multiple of a page.
    pub(super) fn map(length: usize, sharing: Sharing) -> Result<Views, Error> {
        let sharing = match sharing {
            Sharing::Shared => MAP_SHARED,
            Sharing::Private => MAP_PRIVATE,
        };
        // SAFETY: system calls that create new objects; their results are checked.
        unsafe {
            let file = memfd_create(c"quaject-code".as_ptr(), MFD_CLOEXEC);
            if file < 0 {
                return Err(Error::Memory);
            }
            let failed = ftruncate(file, length as c_long) != 0;
            let map = |protection, sharing| mmap(null_mut(), length, protection, sharing, file, 0);
            let write = if failed { null_mut() } else { map(PROT_READ | PROT_WRITE, MAP_SHARED) };
            let execute = if failed { null_mut() } else { map_near(length, sharing, file) };
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
            Ok(Views { write: write.cast(), execute: execute.cast(), length })
        }
    }

    /// The first byte of the write view.
    pub(super) fn writable(&self) -> *mut u8 {
        self.write
    }

    /// The address of the execute view.
    pub(super) fn execute(&self) -> usize {
        self.execute as usize
    }

    /// Discards the private copies of pages that a debugger has written; the execute view shows the file there again.
    /// The pages are free.
    pub(super) fn discard_copies(&self, offset: usize, bytes: usize) {
        debug_assert!(offset.is_multiple_of(PAGE) && offset + bytes <= self.length, "the extent is of whole pages");
        // SAFETY: free pages of the execute view, which belongs to this value.
        unsafe { madvise(self.execute.add(offset).cast(), bytes, MADV_DONTNEED) };
    }
}

impl Drop for Views {
    fn drop(&mut self) {
        // SAFETY: both views were mapped with this length and are not used after this.
        unsafe {
            munmap(self.write.cast(), self.length);
            munmap(self.execute.cast(), self.length);
        }
    }
}

/// Maps an execute view near the program, or where the system wants if no place there is free. Null or -1 if it
/// refuses.
///
/// # Safety
/// The file must be open and have this length.
unsafe fn map_near(length: usize, sharing: c_int, file: c_int) -> *mut c_void {
    let program = map_near as *const () as usize;
    let step = length.next_multiple_of(1 << 21);
    let places = (1..=PLACES).map_while(|place| {
        let below = place.checked_mul(step)?.checked_add(GAP)?;
        (program - program % GAP).checked_sub(below).filter(|at| *at >= LOWEST)
    });
    for place in places {
        // SAFETY: no existing mapping is replaced; old systems ignore the flag and may map elsewhere, which is then
        // unmapped.
        unsafe {
            let at = mmap(place as *mut c_void, length, PROT_READ | PROT_EXEC, sharing | MAP_FIXED_NOREPLACE, file, 0);
            if at as usize == place {
                return at;
            }
            if at as isize != -1 {
                munmap(at, length);
            }
        }
    }
    // SAFETY: a new mapping of the caller's file.
    unsafe { mmap(null_mut(), length, PROT_READ | PROT_EXEC, sharing, file, 0) }
}
