//! Waiting that costs the others nothing: while a thread waits for what a routine does, such as a reader for the write
//! to an empty pipe, the first instruction of the routine is a jump to the slow path, which wakes the thread. At other
//! times the routine does not even ask whether a thread waits.
//!
//! ```text
//! open     |first instruction, five bytes or more | ...
//! closed   |jump to the slow path|its other bytes | ...        the eight bytes are stored at once
//! ```
//!
//! A thread that is in the routine, after the first instruction, does not notice the change. The replacement is atomic
//! for threads that execute the code as described in `quaject_vcode::patch`.

use core::sync::atomic::{AtomicU64, Ordering};

use quaject_vcode::decode;
use quaject_vcode::x86_64::X86_64;
use quaject_vcode::{Asm, Kind, Param, Region, Workspace};

use crate::arena::Arena;
use crate::error::Error;
use crate::routine::Routine;

/// The bytes of a jump.
pub(crate) const JUMP: usize = 5;

/// The jump from the beginning of a routine to `slow`; an error if the first instruction is shorter.
pub(crate) fn closing_jump<const N: usize>(
    arena: &Arena<'_, N>,
    routine: &Routine,
    slow: usize,
) -> Result<[u8; JUMP], Error> {
    let code = arena.routine_at(routine.entry()).map_or(&[][..], |found| found.code);
    if decode::X86_64.decode(code).is_none_or(|first| first.length < JUMP) {
        return Err(Error::FirstInstruction);
    }
    let mut buffer = [0_u8; 128];
    let mut workspace = Workspace::<X86_64, 1, 1, 1>::with_room();
    let region = Region::from(&mut buffer[..]).executed_at(routine.entry());
    let mut asm = Asm::begin(region, &mut workspace, "", &mut [Param::NONE; 0], Kind::Naked)?;
    asm.jump_to(slow);
    asm.end()?;
    let mut jump = [0; JUMP];
    jump.copy_from_slice(&buffer[..JUMP]);
    Ok(jump)
}

/// A routine that can be closed. It must not be used after the routine was freed.
#[derive(Debug)]
pub struct Gate {
    start: *mut u64,
    open: u64,
    closed: u64,
    waiting: u32,
}

// SAFETY: what is behind `start` is only changed by one atomic store.
unsafe impl Send for Gate {}

impl Gate {
    /// The gate of a routine, open; `slow` is where the routine goes while it is closed.
    ///
    /// # Errors
    /// [`Error::FirstInstruction`]; [`Error::Code`] if `slow` is too far away.
    pub fn new<const N: usize>(arena: &Arena<'_, N>, routine: &Routine, slow: usize) -> Result<Gate, Error> {
        let jump = closing_jump(arena, routine, slow)?;
        // SAFETY: the jump replaces the first instruction.
        Ok(unsafe { Gate::with_jump(arena, routine, jump) })
    }

    /// The gate of a routine whose first instruction a jump can replace.
    ///
    /// # Safety
    /// The first instruction is as long as the jump, or longer.
    pub(crate) unsafe fn with_jump<const N: usize>(arena: &Arena<'_, N>, routine: &Routine, jump: [u8; JUMP]) -> Gate {
        let start = arena.writable_routine(routine).cast::<u64>();
        // SAFETY: blocks have at least one unit, and begin at a multiple of it.
        let mut bytes = unsafe { start.read() }.to_le_bytes();
        let open = u64::from_le_bytes(bytes);
        bytes[..JUMP].copy_from_slice(&jump);
        Gate { start, open, closed: u64::from_le_bytes(bytes), waiting: 0 }
    }

    /// A thread begins to wait: the routine goes to the slow path from now on.
    ///
    /// # Safety
    /// The routine has not been freed.
    pub unsafe fn begin_wait(&mut self) {
        self.waiting += 1;
        // SAFETY: the caller's promise.
        unsafe { self.store(self.closed) };
    }

    /// A thread has ended its wait. After the last one the routine is what it was.
    ///
    /// # Safety
    /// The routine has not been freed.
    pub unsafe fn end_wait(&mut self) {
        self.waiting = self.waiting.saturating_sub(1);
        if self.waiting == 0 {
            // SAFETY: the caller's promise.
            unsafe { self.store(self.open) };
        }
    }

    /// How many threads wait.
    pub fn waiting(&self) -> u32 {
        self.waiting
    }

    /// # Safety
    /// The routine has not been freed.
    unsafe fn store(&self, bytes: u64) {
        // SAFETY: the eight bytes are the beginning of the routine, which is aligned, by the caller's promise.
        let start = unsafe { AtomicU64::from_ptr(self.start) };
        // Pairs with the instruction fetch of threads that run the code.
        start.store(bytes.to_le(), Ordering::Release);
    }
}
