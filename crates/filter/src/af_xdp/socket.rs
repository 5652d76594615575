//! An AF_XDP socket: memory in chunks (the UMEM), and two rings by which chunks pass between the kernel and this
//! process.
//!
//! ```text
//!            fill: numbers of free chunks ──>
//! this side                                    kernel
//!         <── receive: where frames lie
//!
//! chunk | what the kernel keeps free | frame or a part of one | ..      4096 bytes
//! ```
//!
//! The kernel owns a chunk from its push to `fill` until its pop from `receive`; otherwise this process does.

use super::{AfXdpError, Step, owned, set_option};
use std::fmt;
use std::marker::PhantomData;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::slice;
use std::sync::atomic::{AtomicU32, Ordering};

/// Bytes of a chunk: a page, which every kernel and driver takes.
const CHUNK: u64 = 4096;

/// Whether frames may consist of several chunks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Segments {
    /// Frames longer than a chunk are lost.
    One,
    Many,
}

/// Memory shared with the kernel, until this is dropped.
struct Mapped {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: it is memory of the process and belongs to no thread.
unsafe impl Send for Mapped {}

impl Mapped {
    /// Maps a descriptor at an offset, or anonymous memory.
    fn new(length: usize, of: Option<(&OwnedFd, i64)>) -> Result<Mapped, AfXdpError> {
        let (flags, descriptor, offset) = match of {
            Some((socket, offset)) => (libc::MAP_SHARED | libc::MAP_POPULATE, socket.as_raw_fd(), offset),
            None => (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0),
        };
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address that the kernel chooses touches no memory that is in use.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), length, access, flags, descriptor, offset) };
        if start == libc::MAP_FAILED {
            return Err(AfXdpError::last(Step::Memory));
        }
        Ok(Mapped { start: NonNull::new(start.cast()).expect("a mapping is not at zero"), length })
    }

    /// The address of an object in it.
    fn at<T>(&self, offset: u64, count: u32) -> NonNull<T> {
        let end = offset as usize + size_of::<T>() * count as usize;
        assert!(
            end <= self.length && offset.is_multiple_of(align_of::<T>() as u64),
            "the kernel says where its rings are"
        );
        // SAFETY: it is inside of the mapping, as was just asserted.
        unsafe { self.start.byte_add(offset as usize) }.cast()
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and nothing that points into it outlives it.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

/// A single-producer, single-consumer ring of entries. This process is the producer of `fill` and the consumer of
/// `receive`.
struct Ring<T> {
    memory: Mapped,
    producer: u64,
    consumer: u64,
    entries: u64,
    /// A power of two of them.
    size: u32,
    kind: PhantomData<T>,
}

impl<T: Copy> Ring<T> {
    /// Creates a ring of `count` entries for a socket and maps it.
    fn new(
        socket: &OwnedFd,
        option: libc::c_int,
        page: u64,
        size: u32,
        offsets: impl Fn(&libc::xdp_mmap_offsets) -> libc::xdp_ring_offset,
    ) -> Result<Ring<T>, AfXdpError> {
        set_option(Step::Memory, socket, libc::SOL_XDP, option, &size)?;
        let all: libc::xdp_mmap_offsets = get_option(socket, libc::XDP_MMAP_OFFSETS)?;
        let own = offsets(&all);
        let length = own.desc as usize + size_of::<T>() * size as usize;
        let memory = Mapped::new(length, Some((socket, page as i64)))?;
        Ok(Ring { memory, producer: own.producer, consumer: own.consumer, entries: own.desc, size, kind: PhantomData })
    }

    fn counter(&self, offset: u64) -> &AtomicU32 {
        // SAFETY: 1. It lies in the mapping, aligned. 2. The kernel changes it by whole words only.
        unsafe { self.memory.at::<AtomicU32>(offset, 1).as_ref() }
    }

    fn entry(&self, counter: u32) -> NonNull<T> {
        let all: NonNull<T> = self.memory.at(self.entries, self.size);
        // SAFETY: it is below the size.
        unsafe { all.add((counter & (self.size - 1)) as usize) }
    }

    /// Adds an entry. There are never more entries than the ring holds.
    fn push(&mut self, value: T) {
        let producer = self.counter(self.producer).load(Ordering::Relaxed);
        // SAFETY: this process owns the entry: at most `size` chunks exist, so that the kernel has consumed the old
        // one.
        unsafe { self.entry(producer).write(value) };
        // Pairs with the kernel's acquire of the same counter: the entry is written before.
        self.counter(self.producer).store(producer.wrapping_add(1), Ordering::Release);
    }

    /// Takes an entry, if there is one.
    fn pop(&mut self) -> Option<T> {
        let consumer = self.counter(self.consumer).load(Ordering::Relaxed);
        // Pairs with the kernel's release of the same counter: the entry, and the frame, are written before.
        if self.counter(self.producer).load(Ordering::Acquire) == consumer {
            return None;
        }
        // SAFETY: this process owns the entry until it advances the counter.
        let value = unsafe { self.entry(consumer).read() };
        // Pairs with the kernel's acquire of the same counter: the entry is read before it is overwritten.
        self.counter(self.consumer).store(consumer.wrapping_add(1), Ordering::Release);
        Some(value)
    }
}

/// The location of the current frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Current {
    Nowhere,
    /// In a chunk, which is returned by the next `advance`.
    Chunk {
        address: u64,
        length: u32,
    },
    /// Assembled from several chunks.
    Joined,
}

/// The receive side of one queue of an interface.
pub(super) struct Queue {
    // Closed first: afterwards the kernel writes no more.
    socket: OwnedFd,
    fill: Ring<u64>,
    receive: Ring<libc::xdp_desc>,
    chunks: Mapped,
    current: Current,
    joined: Vec<u8>,
    /// Whether `joined` continues in the next chunk.
    is_joining: bool,
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("socket", &self.socket).finish_non_exhaustive()
    }
}

impl Queue {
    /// A socket for a queue of an interface, with `count` chunks, a power of two, all of them in the fill ring.
    pub(super) fn open(interface: u32, queue: u32, count: u32, segments: Segments) -> Result<Queue, AfXdpError> {
        // SAFETY: no pointers are passed.
        let socket =
            owned(Step::Socket, unsafe { libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) })?;
        let chunks = Mapped::new(CHUNK as usize * count as usize, None)?;
        let memory = libc::xdp_umem_reg {
            addr: chunks.start.as_ptr() as u64,
            len: chunks.length as u64,
            chunk_size: CHUNK as u32,
            headroom: 0,
            flags: 0,
            tx_metadata_len: 0,
        };
        set_option(Step::Memory, &socket, libc::SOL_XDP, libc::XDP_UMEM_REG, &memory)?;
        let mut fill =
            Ring::new(&socket, libc::XDP_UMEM_FILL_RING, libc::XDP_UMEM_PGOFF_FILL_RING, count, |all| all.fr)?;
        // Nothing is transmitted, but a UMEM needs a completion ring.
        set_option(Step::Memory, &socket, libc::SOL_XDP, libc::XDP_UMEM_COMPLETION_RING, &2_u32)?;
        let receive = Ring::new(&socket, libc::XDP_RX_RING, libc::XDP_PGOFF_RX_RING as u64, count, |all| all.rx)?;
        for chunk in 0..u64::from(count) {
            fill.push(chunk * CHUNK);
        }
        let address = libc::sockaddr_xdp {
            sxdp_family: libc::AF_XDP as u16,
            sxdp_flags: match segments {
                Segments::One => 0,
                Segments::Many => libc::XDP_USE_SG,
            },
            sxdp_ifindex: interface,
            sxdp_queue_id: queue,
            sxdp_shared_umem_fd: 0,
        };
        let length = size_of_val(&address) as libc::socklen_t;
        // SAFETY: the address is one of `length` bytes and outlives the call.
        if unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) } != 0 {
            return Err(AfXdpError::last(Step::Bind));
        }
        Ok(Queue { socket, fill, receive, chunks, current: Current::Nowhere, joined: Vec::new(), is_joining: false })
    }

    pub(super) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Advances to the next frame, which invalidates the one before. Returns whether there is one.
    pub(super) fn advance(&mut self) -> bool {
        if let Current::Chunk { address, .. } = std::mem::replace(&mut self.current, Current::Nowhere) {
            self.fill.push(address & !(CHUNK - 1));
        }
        while let Some(found) = self.receive.pop() {
            let continues = found.options & libc::XDP_PKT_CONTD != 0;
            if !continues && !self.is_joining {
                self.current = Current::Chunk { address: found.addr, length: found.len };
                return true;
            }
            if !self.is_joining {
                self.joined.clear();
            }
            // SAFETY: the chunk has just been taken from `receive`, and goes back below.
            let part = unsafe { bytes(&self.chunks, found.addr, found.len) };
            self.joined.extend_from_slice(part);
            self.fill.push(found.addr & !(CHUNK - 1));
            self.is_joining = continues;
            if !continues {
                self.current = Current::Joined;
                return true;
            }
        }
        false
    }

    /// The current frame.
    pub(super) fn frame(&self) -> &[u8] {
        match self.current {
            Current::Nowhere => &[],
            // SAFETY: the chunk is given back by `advance`, which takes `self` anew.
            Current::Chunk { address, length } => unsafe { bytes(&self.chunks, address, length) },
            Current::Joined => &self.joined,
        }
    }

    /// The number of frames that the kernel dropped: no chunk was free, none was large enough, or the ring was full.
    pub(super) fn lost(&self) -> u64 {
        match get_option::<libc::xdp_statistics>(&self.socket, libc::XDP_STATISTICS) {
            Ok(counted) => counted.rx_dropped + counted.rx_ring_full,
            Err(_) => 0,
        }
    }
}

/// Bytes of a chunk.
///
/// # Safety
/// This process owns the chunk as long as the bytes are used.
unsafe fn bytes(chunks: &Mapped, address: u64, length: u32) -> &[u8] {
    let start: NonNull<u8> = chunks.at(address, length);
    // SAFETY: 1. They are inside of the mapping. 2. The kernel does not write to a chunk that it does not own.
    unsafe { slice::from_raw_parts(start.as_ptr(), length as usize) }
}

/// Reads a socket option into a structure; older kernels leave its end zero.
fn get_option<T>(socket: &OwnedFd, option: libc::c_int) -> Result<T, AfXdpError> {
    // SAFETY: both structures this is used for are plain numbers, for which zeros are a value.
    let mut value: T = unsafe { std::mem::zeroed() };
    let mut length = size_of::<T>() as libc::socklen_t;
    // SAFETY: there is room for `length` bytes.
    let status = unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_XDP, option, (&raw mut value).cast(), &raw mut length)
    };
    if status == 0 { Ok(value) } else { Err(AfXdpError::last(Step::Memory)) }
}
