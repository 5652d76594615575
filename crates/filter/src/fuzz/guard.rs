//! Memory that ends at a guard page.

use crate::packet::Packet;
use std::io;
use std::ptr::{self, NonNull};

const PAGE: usize = 4096;
/// The longest packet: what libpcap captures of one.
const ROOM: usize = 64 * PAGE;

/// Pages with a guard page after them.
#[derive(Debug)]
pub struct Guard {
    start: NonNull<u8>,
}

impl Guard {
    /// The bytes of the longest packet there is room for.
    pub const ROOM: usize = ROOM;

    /// Maps the pages.
    ///
    /// # Errors
    /// What the system says if it refuses.
    pub fn new() -> io::Result<Guard> {
        // SAFETY: a new mapping, whose result is checked; the last page of it is made unreadable.
        unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let at = libc::mmap(ptr::null_mut(), ROOM + PAGE, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
            if at == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            let guard = Guard { start: NonNull::new(at.cast()).ok_or(io::ErrorKind::OutOfMemory)? };
            if libc::mprotect(at.cast::<u8>().add(ROOM).cast(), PAGE, libc::PROT_NONE) != 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(guard)
        }
    }

    /// A packet of these bytes that ends at the guard page, truncated to [`Guard::ROOM`].
    pub fn packet(&mut self, bytes: &[u8], wire_length: u32) -> Packet<'_> {
        let bytes = &bytes[..bytes.len().min(ROOM)];
        // SAFETY: the bytes are inside the mapping, which lives as long as the packet; nothing else uses them
        // meanwhile.
        let own = unsafe {
            let at = self.start.as_ptr().add(ROOM - bytes.len());
            at.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            std::slice::from_raw_parts(at, bytes.len())
        };
        Packet::captured(own, wire_length)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and no packet in it is left.
        unsafe { libc::munmap(self.start.as_ptr().cast(), ROOM + PAGE) };
    }
}
