//! Memory that Linux processes share: an anonymous file (memfd), mapped. Knows nothing of rings.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::shared::Bytes;

/// A mapped anonymous file. The descriptor can be handed to another process, which maps it with [`Mapping::of`].
#[derive(Debug)]
pub struct Mapping {
    start: *mut u8,
    size: usize,
    file: OwnedFd,
}

impl Mapping {
    /// New memory, all zero, whose size is sealed: if a peer could shrink it, the next access would raise SIGBUS.
    ///
    /// # Errors
    /// Those of `memfd_create`, `ftruncate`, `fcntl` and `mmap`.
    pub fn new(size: usize) -> io::Result<Mapping> {
        let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
        // SAFETY: the name is a C string.
        let number = unsafe { libc::memfd_create(c"quaject".as_ptr(), flags) };
        if number < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and ours.
        let file = unsafe { OwnedFd::from_raw_fd(number) };
        let length = libc::off_t::try_from(size).map_err(|_| io::ErrorKind::InvalidInput)?;
        // SAFETY: a descriptor and numbers.
        if unsafe { libc::ftruncate(number, length) } < 0 {
            return Err(io::Error::last_os_error());
        }
        let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
        // SAFETY: a descriptor and numbers.
        if unsafe { libc::fcntl(number, libc::F_ADD_SEALS, seals) } < 0 {
            return Err(io::Error::last_os_error());
        }
        Mapping::of(file)
    }

    /// Maps memory that another process has made with [`Mapping::new`].
    ///
    /// # Errors
    /// When the file is not sealed against shrinking, and those of `fstat` and `mmap`.
    pub fn of(file: OwnedFd) -> io::Result<Mapping> {
        let number = file.as_raw_fd();
        // SAFETY: a descriptor and a number.
        let seals = unsafe { libc::fcntl(number, libc::F_GET_SEALS) };
        if seals < 0 || seals & libc::F_SEAL_SHRINK == 0 {
            let reason = "the file is not sealed against shrinking, so its memory could vanish";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
        }
        // SAFETY: `stat` is a plain C structure for which all zeros is a value.
        let mut status: libc::stat = unsafe { std::mem::zeroed() };
        // SAFETY: a descriptor and a live structure.
        if unsafe { libc::fstat(number, &mut status) } < 0 {
            return Err(io::Error::last_os_error());
        }
        let size = usize::try_from(status.st_size).map_err(|_| io::ErrorKind::InvalidInput)?;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), size, access, libc::MAP_SHARED, number, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Mapping { start: start.cast(), size, file })
    }
}

impl AsFd for Mapping {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

// SAFETY: the mapping lives until `drop`, at one address, cannot shrink, and only rings use it.
unsafe impl Bytes for Mapping {
    fn start(&self) -> *mut u8 {
        self.start
    }
    fn size(&self) -> usize {
        self.size
    }
}

// SAFETY: the memory is reached through atomics only.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `of`, and every user borrowed or owned `self`.
        unsafe { libc::munmap(self.start.cast(), self.size) };
    }
}
