//! Pipes: a ring of bytes between descriptors. Each end has a routine; this is the general path, which transfers what
//! the routines leave to it, and blocks.

use crate::interruption::interrupted;
use crate::memory::user;
use crate::schedule::queue::WaitQueue;
use crate::schedule::thread::WakeReason;
use crate::synthesis::PIPE_BITS;
use crate::synthesis::stream::{Direction, StreamEntries, StreamRoutines};
use alloc::alloc::{alloc, dealloc};
use alloc::rc::Rc;
use core::alloc::Layout;
use core::cell::{Cell, RefCell};
use core::ptr::NonNull;
use quaject_synth::stream::Pipe as Indices;
use syscalls::Errno;

/// What a pipe holds, as on Linux.
const CAPACITY: usize = 1 << PIPE_BITS;
/// Writes up to this size are not mixed with others.
const ATOMIC_BYTES: usize = 4096;
/// What is copied as a whole or not at all, aligned in the ring: the pages of Linux's pipes.
const CHUNK_BYTES: usize = 4096;

/// The indices and the bytes of a pipe, as routines know them (`quaject_synth::stream::Pipe`).
#[repr(C)]
struct RingMemory {
    indices: Indices,
    bytes: [u8; CAPACITY],
}

/// A ring of bytes that routines use, too.
struct Ring(NonNull<RingMemory>);

impl Ring {
    fn new() -> Result<Ring, Errno> {
        let layout = Layout::new::<RingMemory>();
        // SAFETY: the layout has a size. The bytes are written before they are read, and the indices here.
        unsafe {
            let memory = NonNull::new(alloc(layout).cast::<RingMemory>()).ok_or(Errno::ENOMEM)?;
            (&raw mut (*memory.as_ptr()).indices).write(Indices::default());
            Ok(Ring(memory))
        }
    }

    fn address(&self) -> usize {
        self.0.as_ptr() as usize
    }

    /// The bytes written and the bytes read, ever.
    fn indices(&self) -> (u64, u64) {
        // SAFETY: no routine runs while the kernel's code does, and no mutable reference exists.
        let Indices { head, tail } = unsafe { &(*self.0.as_ptr()).indices };
        (*head, *tail)
    }

    /// How many bytes it holds.
    fn length(&self) -> usize {
        let (head, tail) = self.indices();
        head.wrapping_sub(tail) as usize
    }

    /// The part of the bytes that begins where an index leads.
    ///
    /// # Safety
    /// What is read has been written, and no other reference to these bytes exists.
    #[allow(clippy::mut_from_ref, reason = "routines write the bytes, too; the contract keeps references apart")]
    unsafe fn part(&self, index: u64, length: usize) -> &mut [u8] {
        let first = index as usize % CAPACITY;
        // SAFETY: the callers stay within a chunk, and so within the ring; by the contract.
        unsafe {
            let bytes = (&raw mut (*self.0.as_ptr()).bytes).cast::<u8>();
            core::slice::from_raw_parts_mut(bytes.add(first), length)
        }
    }

    /// Copies to the program what there is, up to `length` bytes; returns how many. A chunk that cannot be copied as a
    /// whole stays.
    fn take(&self, address: u64, length: usize) -> usize {
        let mut taken = 0;
        while taken < length && self.length() > 0 {
            let (_, tail) = self.indices();
            let part = (length - taken).min(self.length()).min(CHUNK_BYTES - tail as usize % CHUNK_BYTES);
            // SAFETY: the bytes between the indices have been written.
            if user::copy_out(address + taken as u64, unsafe { self.part(tail, part) }) < part {
                break;
            }
            // SAFETY: no reference to the indices exists.
            unsafe { (*self.0.as_ptr()).indices.tail = tail.wrapping_add(part as u64) }
            taken += part;
        }
        taken
    }

    /// Copies from the program what there is room for, up to `length` bytes; returns how many. A chunk that cannot be
    /// copied as a whole is not put.
    fn put(&self, address: u64, length: usize) -> usize {
        let mut put = 0;
        while put < length && self.length() < CAPACITY {
            let (head, _) = self.indices();
            let room = CAPACITY - self.length();
            let part = (length - put).min(room).min(CHUNK_BYTES - head as usize % CHUNK_BYTES);
            // SAFETY: the bytes are only written.
            if user::copy_in(address + put as u64, unsafe { self.part(head, part) }) < part {
                break;
            }
            // SAFETY: no reference to the indices exists.
            unsafe { (*self.0.as_ptr()).indices.head = head.wrapping_add(part as u64) }
            put += part;
        }
        put
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: `new` has allocated it so, and the routines are freed before (`Pipe`).
        unsafe { dealloc(self.0.as_ptr().cast(), Layout::new::<RingMemory>()) }
    }
}

/// A pipe.
pub(crate) struct Pipe {
    /// The routines of the end from which programs read, and of the other.
    read_routines: RefCell<StreamRoutines>,
    write_routines: RefCell<StreamRoutines>,
    ring: Ring,
    readers: Cell<usize>,
    writers: Cell<usize>,
    /// Threads that wait for bytes, and those that wait for room.
    for_bytes: WaitQueue,
    for_room: WaitQueue,
}

/// Makes a pipe: its two ends.
pub(crate) fn new_pipe() -> Result<(ReadEnd, WriteEnd), Errno> {
    let ring = Ring::new()?;
    let address = ring.address();
    let pipe = Rc::new(Pipe {
        read_routines: RefCell::new(StreamRoutines::of_pipe(Direction::Read, address)),
        write_routines: RefCell::new(StreamRoutines::of_pipe(Direction::Write, address)),
        ring,
        readers: Cell::new(1),
        writers: Cell::new(1),
        for_bytes: WaitQueue::default(),
        for_room: WaitQueue::default(),
    });
    Ok((ReadEnd(pipe.clone()), WriteEnd(pipe)))
}

/// Whether a call may block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Blocking {
    Allowed,
    Never,
}

impl Pipe {
    fn read(&self, address: u64, length: usize, blocking: Blocking) -> Result<usize, Errno> {
        if length == 0 {
            return Ok(0);
        }
        loop {
            if self.ring.length() > 0 {
                let taken = self.ring.take(address, length);
                if taken == 0 {
                    return Err(Errno::EFAULT);
                }
                self.for_room.wake_all();
                return Ok(taken);
            }
            if self.writers.get() == 0 {
                return Ok(0);
            }
            wait(&self.for_bytes, &self.write_routines, blocking)?;
        }
    }

    fn write(&self, address: u64, length: usize, blocking: Blocking) -> Result<usize, Errno> {
        let mut written = 0;
        while written < length {
            let partial = |error| if written > 0 { Ok(written) } else { Err(error) };
            if self.readers.get() == 0 {
                return partial(Errno::EPIPE);
            }
            let room = CAPACITY - self.ring.length();
            let wanted = length - written;
            if room >= wanted || (length > ATOMIC_BYTES && room > 0) {
                let put = self.ring.put(address + written as u64, wanted);
                if put == 0 {
                    return partial(Errno::EFAULT);
                }
                self.for_bytes.wake_all();
                written += put;
                if put < wanted.min(room) {
                    return Ok(written);
                }
            } else if let Err(error) = wait(&self.for_room, &self.read_routines, blocking) {
                return partial(error);
            }
        }
        Ok(written)
    }
}

/// Waits for what the other end does; its routine, which wakes nothing, takes the general path meanwhile.
fn wait(queue: &WaitQueue, other_end: &RefCell<StreamRoutines>, blocking: Blocking) -> Result<(), Errno> {
    match blocking {
        Blocking::Never => Err(Errno::EAGAIN),
        Blocking::Allowed => {
            other_end.borrow_mut().begin_wait();
            let reason = queue.wait(None);
            other_end.borrow_mut().end_wait();
            match reason {
                WakeReason::Interrupted => Err(interrupted()),
                WakeReason::Woken | WakeReason::TimedOut => Ok(()),
            }
        }
    }
}

/// The end of a pipe from which programs read.
pub(crate) struct ReadEnd(Rc<Pipe>);

impl ReadEnd {
    pub(crate) fn read(&self, address: u64, length: usize, blocking: Blocking) -> Result<usize, Errno> {
        self.0.read(address, length, blocking)
    }

    pub(crate) fn entries(&self) -> StreamEntries {
        self.0.read_routines.borrow().entries()
    }
}

impl Drop for ReadEnd {
    fn drop(&mut self) {
        self.0.readers.set(self.0.readers.get() - 1);
        *self.0.read_routines.borrow_mut() = StreamRoutines::none();
        // From now on a write is an error, which the general path knows; nothing ends this wait.
        if self.0.writers.get() > 0 {
            self.0.write_routines.borrow_mut().begin_wait();
        }
        self.0.for_room.wake_all();
    }
}

/// The end of a pipe to which programs write.
pub(crate) struct WriteEnd(Rc<Pipe>);

impl WriteEnd {
    pub(crate) fn write(&self, address: u64, length: usize, blocking: Blocking) -> Result<usize, Errno> {
        self.0.write(address, length, blocking)
    }

    pub(crate) fn entries(&self) -> StreamEntries {
        self.0.write_routines.borrow().entries()
    }
}

impl Drop for WriteEnd {
    fn drop(&mut self) {
        self.0.writers.set(self.0.writers.get() - 1);
        *self.0.write_routines.borrow_mut() = StreamRoutines::none();
        self.0.for_bytes.wake_all();
    }
}
