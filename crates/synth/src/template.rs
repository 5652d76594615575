//! Templates: routines of one shape differ in addresses only, so that the assembler writes the shape once, and each
//! routine is a copy of it with the addresses of its own objects ("Synthesis", factoring invariants).
//!
//! ```text
//! template   |mov $hole 0,%r11 . . . mov $hole 1,%rcx . . . jmp outside|   |fault|fix-up|count|
//!                    |                        |                   |           copied as they are: offsets
//! instance           address of an object     of another          distance
//! ```

use crate::arena::Arena;
use crate::error::Error;
use crate::gate::{Gate, JUMP};
use crate::routine::Routine;

/// The most holes of a template.
pub const MAX_HOLES: usize = 12;

/// The most jumps of a template to addresses outside of it.
pub const MAX_JUMPS: usize = 8;

/// An address in a routine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Address {
    /// The same in all instances.
    Known(usize),
    /// That with this number among those that [`Template::instantiate`] is given.
    Hole(u8),
}

impl From<usize> for Address {
    fn from(address: usize) -> Address {
        Address::Known(address)
    }
}

/// What stands in a hole of the template: needs all 64 bits.
pub(crate) fn placeholder(index: u8) -> i64 {
    0x5a5a_5a5a_5a5a_5a00 | i64::from(index)
}

/// Where an address belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hole {
    /// The offset of its eight bytes.
    pub(crate) offset: u32,
    pub(crate) index: u8,
}

/// What differs between the instances of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Places {
    pub(crate) holes: [Hole; MAX_HOLES],
    pub(crate) hole_count: usize,
    /// The offsets of the distances of jumps to other routines.
    pub(crate) jumps: [u32; MAX_JUMPS],
    pub(crate) jump_count: usize,
}

impl Places {
    pub(crate) const NONE: Places = Places {
        holes: [Hole { offset: 0, index: 0 }; MAX_HOLES],
        hole_count: 0,
        jumps: [0; MAX_JUMPS],
        jump_count: 0,
    };
}

/// The shape of routines.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a template that is dropped keeps its memory"]
pub struct Template {
    pub(crate) routine: Routine,
    pub(crate) places: Places,
    /// From the beginning to the last jump outside, which is the way to the slow path; none if the first instruction is
    /// too short.
    pub(crate) closing_jump: Option<[u8; JUMP]>,
}

impl Template {
    /// The routine that is copied. It must not be executed if it has holes.
    pub fn routine(&self) -> &Routine {
        &self.routine
    }

    /// The gate of an instance. Closed, it goes where the last [`Builder::jump_outside`](crate::Builder::jump_outside)
    /// of the template goes.
    ///
    /// # Errors
    /// [`Error::FirstInstruction`].
    pub fn gate<const N: usize>(&self, arena: &Arena<'_, N>, instance: &Routine) -> Result<Gate, Error> {
        let jump = self.closing_jump.ok_or(Error::FirstInstruction)?;
        debug_assert!(instance.length == self.routine.length, "the routine is an instance of the template");
        // SAFETY: an instance has the instructions of the template, and the jump stays inside of it.
        Ok(unsafe { Gate::with_jump(arena, instance, jump) })
    }

    /// Synthesises the routine with these addresses in its holes.
    ///
    /// # Errors
    /// [`Error::NoMemory`]; [`Error::Holes`] if there are too few addresses.
    pub fn instantiate<const N: usize>(&self, arena: &mut Arena<'_, N>, addresses: &[usize]) -> Result<Routine, Error> {
        let holes = &self.places.holes[..self.places.hole_count];
        if holes.iter().any(|hole| usize::from(hole.index) >= addresses.len()) {
            return Err(Error::Holes);
        }
        let memory = self.routine.memory();
        let block = arena.allocate(memory)?;
        let (from, to) = (arena.writable_routine(&self.routine), arena.writable(&block));
        let entry = arena.executable(&block);
        arena.note_routine(&block, self.routine.name, self.routine.length);
        // SAFETY: 1. Both blocks have so many bytes, are aligned, and are different. 2. Holes and jumps are inside, as
        // the builder has emitted them there. 3. Nothing executes the new block yet.
        unsafe {
            core::ptr::copy_nonoverlapping(from.cast::<u64>(), to.cast::<u64>(), memory / size_of::<u64>());
            for hole in holes {
                to.add(hole.offset as usize).cast::<usize>().write_unaligned(addresses[usize::from(hole.index)]);
            }
            let moved = self.routine.entry.wrapping_sub(entry) as u32;
            for jump in &self.places.jumps[..self.places.jump_count] {
                let distance = to.add(*jump as usize).cast::<u32>();
                distance.write_unaligned(distance.read_unaligned().wrapping_add(moved));
            }
        }
        Ok(Routine { block, name: self.routine.name, entry, length: self.routine.length })
    }
}
