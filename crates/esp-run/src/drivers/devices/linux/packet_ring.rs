//! The receive ring of a `packet:` socket (packet(7), `PACKET_RX_RING`, `TPACKET_V2`): the kernel writes frames to
//! memory of this process, so that receiving one needs no system call.
//!
//! ```text
//! block   | slot | slot | .. |      slot   | header | address | .. | frame, or how it begins |
//! header  status: owned by the kernel or by us; the frame's length, its offset, its VLAN tag, which the kernel has
//!         removed
//! ```
//!
//! A frame that does not fit a slot is also in the queue of the socket, complete, and is read from there. If the queue
//! had no room, it is lost and counted.

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::ffi::c_void;
use std::fs::File;
use std::io::{Error, ErrorKind, Read};
use std::mem::offset_of;
use std::os::fd::{AsFd, AsRawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// A slot holds an Ethernet frame with its header.
const SLOT: usize = 2048;
const BLOCK: usize = 64 * 1024;
const BLOCKS: usize = 32;
const SLOTS: usize = BLOCKS * BLOCK / SLOT;
const STATUS_AT: usize = offset_of!(libc::tpacket2_hdr, tp_status);
/// The offset of a VLAN tag in a frame: behind the two addresses.
const TAG_AT: usize = 12;
/// The default protocol of a tag (IEEE 802.1Q).
const TAG_PROTOCOL: u16 = 0x8100;

/// The ring of a socket.
pub(super) struct PacketRing {
    memory: NonNull<u8>,
    /// The next slot.
    next: usize,
    /// Frames that were truncated.
    cut: u64,
}

impl PacketRing {
    /// Makes the ring of a socket that is not bound yet.
    pub(super) fn open(socket: &impl AsFd) -> Result<PacketRing, Error> {
        set(socket, libc::PACKET_VERSION, libc::tpacket_versions::TPACKET_V2 as libc::c_int)?;
        // Any value but zero makes the kernel queue frames that are too long for a slot.
        set(socket, libc::PACKET_COPY_THRESH, 1)?;
        let request = libc::tpacket_req {
            tp_block_size: BLOCK as u32,
            tp_block_nr: BLOCKS as u32,
            tp_frame_size: SLOT as u32,
            tp_frame_nr: SLOTS as u32,
        };
        set(socket, libc::PACKET_RX_RING, request)?;
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: The kernel chooses the address, so that no existing mapping is replaced.
        let memory = unsafe { mmap(std::ptr::null_mut(), BLOCKS * BLOCK, protection, flags, socket, 0) }?;
        let memory = NonNull::new(memory.cast()).ok_or_else(|| Error::other("there is no ring at address 0"))?;
        Ok(PacketRing { memory, next: 0, cut: 0 })
    }

    /// Frames that were too long for the ring and for which the queue had no room.
    pub(super) fn cut(&self) -> u64 {
        self.cut
    }

    /// Copies the next frame to `buffer` and returns its length; `None` if there is none now. The buffer has room for
    /// the largest frame and a tag.
    pub(super) fn take(&mut self, socket: &mut File, buffer: &mut [u8]) -> Result<Option<usize>, Error> {
        loop {
            // SAFETY: `next` is below SLOTS, and the memory has as many slots.
            let slot = unsafe { self.memory.add(self.next * SLOT) };
            // SAFETY: 1. The status is a `u32` in the slot, aligned as its header is. 2. Both sides access it as one
            // word, and the memory is mapped for as long as `self` lives.
            let status = unsafe { AtomicU32::from_ptr(slot.add(STATUS_AT).cast().as_ptr()) };
            // Pairs with the system's write of the status, which comes after the slot is filled.
            let said = status.load(Ordering::Acquire);
            if said & libc::TP_STATUS_USER == 0 {
                return Ok(None);
            }
            // SAFETY: the slot begins with a header, aligned for it, which is ours by its status.
            let header = unsafe { slot.cast::<libc::tpacket2_hdr>().read() };
            let found = if said & libc::TP_STATUS_COPY != 0 {
                read_frame(socket, buffer)
            } else if header.tp_snaplen < header.tp_len {
                self.cut += 1;
                Ok(None)
            } else {
                let (from, length) = (usize::from(header.tp_mac), header.tp_snaplen as usize);
                let inside = from.checked_add(length).is_some_and(|end| end <= SLOT) && length <= buffer.len();
                if inside {
                    // SAFETY: 1. The bytes are inside the slot and of the buffer, see above. 2. The slot is ours by its
                    // status.
                    unsafe { slot.add(from).copy_to_nonoverlapping(NonNull::from(&mut *buffer).cast(), length) };
                }
                if inside { Ok(Some(length)) } else { Err(Error::other("the ring is damaged")) }
            };
            // Pairs with the system's read of the status: the slot is its own again when everything was read.
            status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
            self.next = (self.next + 1) % SLOTS;
            let Some(length) = found? else { continue };
            if said & libc::TP_STATUS_VLAN_VALID == 0 {
                return Ok(Some(length));
            }
            let known = said & libc::TP_STATUS_VLAN_TPID_VALID != 0;
            let protocol = if known { header.tp_vlan_tpid } else { TAG_PROTOCOL };
            return Ok(Some(put_tag_back(buffer, length, protocol, header.tp_vlan_tci)));
        }
    }
}

impl Drop for PacketRing {
    fn drop(&mut self) {
        // SAFETY: the memory was mapped by `open`, and no reference to it is left.
        let outcome = unsafe { munmap(self.memory.cast::<c_void>().as_ptr(), BLOCKS * BLOCK) };
        debug_assert!(outcome.is_ok());
    }
}

/// Reads a frame from an interface; `None` if there is none now. An interface that is down is no error: it may come up
/// again.
pub(super) fn read_frame(file: &mut File, buffer: &mut [u8]) -> Result<Option<usize>, Error> {
    loop {
        match file.read(buffer) {
            Ok(length) => return Ok(Some(length)),
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock => return Ok(None),
                ErrorKind::Interrupted | ErrorKind::NetworkDown => {}
                _ => return Err(error),
            },
        }
    }
}

/// Restores a VLAN tag in a frame of this length; returns the new length.
fn put_tag_back(buffer: &mut [u8], length: usize, protocol: u16, control: u16) -> usize {
    const TAG: usize = 4;
    if length < TAG_AT || buffer.len() < length + TAG {
        return length;
    }
    buffer.copy_within(TAG_AT..length, TAG_AT + TAG);
    buffer[TAG_AT..TAG_AT + 2].copy_from_slice(&protocol.to_be_bytes());
    buffer[TAG_AT + 2..TAG_AT + TAG].copy_from_slice(&control.to_be_bytes());
    length + TAG
}

/// Sets an option of a packet socket.
fn set<T>(socket: &impl AsFd, option: libc::c_int, value: T) -> Result<(), Error> {
    // SAFETY: The value has the size that is passed, and outlives the call.
    let status = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_PACKET,
            option,
            (&raw const value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    if status < 0 { Err(Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::put_tag_back;

    #[test]
    fn a_tag_goes_behind_the_addresses() {
        let mut buffer = [0; 20];
        for (at, byte) in buffer.iter_mut().enumerate() {
            *byte = at as u8;
        }
        assert_eq!(put_tag_back(&mut buffer, 14, 0x8100, 0x2003), 18);
        assert_eq!(buffer[..18], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0x81, 0, 0x20, 3, 12, 13]);
        // No room, or no frame that could have had one.
        assert_eq!(put_tag_back(&mut buffer, 17, 0x8100, 1), 17);
        assert_eq!(put_tag_back(&mut buffer, 11, 0x8100, 1), 11);
    }
}
