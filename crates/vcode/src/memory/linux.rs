//! The views of code memory on Linux: a memory file that is mapped twice.
//!
//! The execute view is mapped below the program, as near as there is room. Branch target buffers store near targets in
//! fewer bits; at the distant address that the system chooses, a call takes 3 cycles longer (AMD Zen 4).

use super::{PAGE, Sharing};
use crate::error::Error;
use crate::fork::{self, ForkState};
use std::boxed::Box;
use std::ffi::{c_char, c_int, c_long, c_void};
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, FromRawFd};
use std::ptr::null_mut;
use std::slice;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

// SAFETY: the declarations of the C library's manual.
unsafe extern "C" {
    fn memfd_create(name: *const c_char, flags: u32) -> c_int;
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
}

pub(crate) const PROT_READ: c_int = 1;
const PROT_NONE: c_int = 0;
const PROT_WRITE: c_int = 2;
pub(crate) const PROT_EXEC: c_int = 4;
const MAP_SHARED: c_int = 1;
pub(crate) const MAP_PRIVATE: c_int = 2;
const MAP_FIXED: c_int = 0x10;
const MAP_ANONYMOUS: c_int = if cfg!(any(target_arch = "mips64", target_arch = "mips")) { 0x800 } else { 0x20 };
const MAP_FIXED_NOREPLACE: c_int = 0x10_0000;
const MADV_DONTNEED: c_int = 4;
const MADV_DONTFORK: c_int = 10;
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
    /// How the execute view shares pages with the memory file.
    sharing: c_int,
    /// The end of the part that was ever used.
    used: AtomicUsize,
    /// Whether this is a child that could not be given its own memory: the views must not be accessed.
    is_lost: AtomicBool,
}

// SAFETY: the mappings belong to this value.
unsafe impl Send for Views {}
// SAFETY: this value does not access the mappings, and regions that are handed out never overlap.
unsafe impl Sync for Views {}

impl Views {
    /// Maps `length` bytes, a multiple of a page.
    pub(super) fn map(length: usize, sharing: Sharing) -> Result<Arc<Views>, Error> {
        let sharing = match sharing {
            Sharing::Shared => MAP_SHARED,
            Sharing::Private => MAP_PRIVATE,
        };
        let file = memory_file(length).ok_or(Error::Memory)?;
        // SAFETY: system calls that create new objects; their results are checked.
        let views = unsafe {
            let write = mmap(null_mut(), length, PROT_READ | PROT_WRITE, MAP_SHARED, file.as_raw_fd(), 0);
            let execute = map_near(length, sharing, file.as_raw_fd());
            if is_refused(write) || is_refused(execute) {
                for view in [write, execute] {
                    if !is_refused(view) {
                        munmap(view, length);
                    }
                }
                return Err(Error::Memory);
            }
            madvise(write, length, MADV_DONTFORK);
            let (used, is_lost) = (AtomicUsize::new(0), AtomicBool::new(false));
            Arc::new(Views { write: write.cast(), execute: execute.cast(), length, sharing, used, is_lost })
        };
        let state: Weak<Views> = Arc::downgrade(&views);
        fork::register(state)?;
        Ok(views)
    }

    /// Bytes up to `end` are used from now on, so that a child needs a copy. False if they cannot be.
    pub(super) fn use_until(&self, end: usize) -> bool {
        self.used.fetch_max(end, Ordering::Relaxed);
        !self.is_lost.load(Ordering::Relaxed)
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
        // SAFETY: both views were mapped with this length and are not used after this. Without a write view, its
        // addresses may be used by another mapping.
        unsafe {
            if !*self.is_lost.get_mut() {
                munmap(self.write.cast(), self.length);
            }
            munmap(self.execute.cast(), self.length);
        }
    }
}

impl ForkState for Views {
    fn prepare(self: Arc<Views>) -> Box<dyn FnOnce() + Send> {
        let used = self.used.load(Ordering::Relaxed);
        // SAFETY: the execute view is readable. A function that another thread is writing is incomplete in the copy;
        // no thread of the child can call it.
        let code = unsafe { slice::from_raw_parts(self.execute, used) };
        let snapshot = memory_file(self.length).and_then(|mut file| file.write_all(code).is_ok().then_some(file));
        Box::new(move || self.adopt(snapshot))
    }
}

impl Views {
    /// In a child: maps both views to the snapshot, which the parent does not have.
    fn adopt(&self, snapshot: Option<File>) {
        let file = snapshot.as_ref().map_or(-1, AsRawFd::as_raw_fd);
        let (rights, flags) = match snapshot {
            Some(_) => (PROT_READ | PROT_EXEC, self.sharing),
            None => (PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS),
        };
        // SAFETY: replaces the execute view, which is this value's, and maps the write view where it was; no other
        // mapping is replaced. The only thread of the process is in this function.
        unsafe {
            let execute = mmap(self.execute.cast(), self.length, rights, flags | MAP_FIXED, file, 0);
            // The handlers of other libraries may have used the addresses.
            let flags = MAP_SHARED | MAP_FIXED_NOREPLACE;
            let write = mmap(self.write.cast(), self.length, PROT_READ | PROT_WRITE, flags, file, 0);
            if write.cast() == self.write && !is_refused(execute) {
                madvise(write, self.length, MADV_DONTFORK);
                return;
            }
            if !is_refused(write) {
                munmap(write, self.length);
            }
            // What the parent executes must not be shared in any case.
            mmap(self.execute.cast(), self.length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        }
        self.is_lost.store(true, Ordering::Relaxed);
    }
}

/// A new memory file of this length, all zero.
fn memory_file(length: usize) -> Option<File> {
    // SAFETY: a system call that creates a new file, which the returned value owns.
    let file = unsafe {
        let file = memfd_create(c"quaject-code".as_ptr(), MFD_CLOEXEC);
        (file >= 0).then(|| File::from_raw_fd(file))?
    };
    file.set_len(length as u64).ok().map(|()| file)
}

/// Whether a mapping was refused.
fn is_refused(view: *mut c_void) -> bool {
    view.is_null() || view as isize == -1
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
