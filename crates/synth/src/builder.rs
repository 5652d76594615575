//! Routines under construction: the assembler, the instructions that may fault, and what differs between the instances
//! of a template.

use core::ops::{Deref, DerefMut};

use quaject_vcode::system::AnyRegister;
use quaject_vcode::x86_64::X86_64;
use quaject_vcode::{Asm, Kind, Label, Param, Region, Workspace};

use crate::arena::{Arena, Block};
use crate::error::Error;
use crate::gate::closing_jump;
use crate::routine::{COUNT, PAIR, Routine};
use crate::template::{Address, Hole, MAX_HOLES, MAX_JUMPS, Places, Template, placeholder};

/// The most instructions of a routine that may fault.
const MAX_EXCEPTIONS: usize = 16;

/// What the assembler keeps free at the end of a block, and some more.
const RESERVED_LESS: usize = 64;

/// A routine under construction: an assembler for naked code.
#[derive(Debug)]
#[must_use = "a routine that is dropped half-way keeps its memory; end or abandon it"]
pub struct Builder<'b> {
    asm: Asm<'b, X86_64>,
    name: &'static str,
    block: Block,
    exceptions: [(u32, Option<Label>); MAX_EXCEPTIONS],
    count: usize,
    places: Places,
}

impl<'b> Deref for Builder<'b> {
    type Target = Asm<'b, X86_64>;

    #[inline(always)]
    fn deref(&self) -> &Self::Target {
        &self.asm
    }
}

impl DerefMut for Builder<'_> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.asm
    }
}

impl<'b> Builder<'b> {
    /// Begins a routine of at most `bytes` bytes. It must be ended or abandoned with the same arena.
    ///
    /// # Errors
    /// [`Error::NoMemory`], and [`Error::Code`] if `bytes` is too little for any code.
    #[inline(always)]
    pub fn begin<const N: usize, const L: usize, const F: usize, const C: usize>(
        arena: &mut Arena<'_, N>,
        workspace: &'b mut Workspace<X86_64, L, F, C>,
        name: &'static str,
        bytes: usize,
    ) -> Result<Self, Error> {
        let block = arena.allocate_to_shrink(bytes)?;
        let (write, execute) = (arena.writable(&block), arena.executable(&block));
        // SAFETY: the block is allocated, so that nothing else writes to it until the routine is ended or abandoned.
        let region = unsafe { Region::from_raw(write, block.length(), execute) };
        match Asm::begin(region, workspace, "", &mut [Param::NONE; 0], Kind::Naked) {
            Ok(mut asm) => {
                // Once, so that the compiler eliminates the checks of most instructions.
                let reserved = asm.reserve(bytes.saturating_sub(RESERVED_LESS));
                debug_assert!(reserved.is_ok(), "the block has as many bytes");
                Ok(Builder {
                    asm,
                    name,
                    block,
                    exceptions: [(0, None); MAX_EXCEPTIONS],
                    count: 0,
                    places: Places::NONE,
                })
            }
            Err(error) => {
                arena.discard(block);
                Err(error.into())
            }
        }
    }

    /// The next instruction may fault; execution goes on at `fix_up` then.
    #[inline(always)]
    pub fn may_fault(&mut self, fix_up: Label) {
        // One too many is counted, for `end` to report.
        if let Some(entry) = self.exceptions.get_mut(self.count) {
            *entry = (self.asm.position() as u32, Some(fix_up));
        }
        self.count += 1;
    }

    /// Loads an address, which may be one that only the instances of a template know.
    #[inline(always)]
    pub fn load_address(&mut self, register: impl Into<AnyRegister>, address: Address) {
        match address {
            Address::Known(address) => self.asm.mov64_i(register, address as i64),
            Address::Hole(index) => {
                // The placeholder has 64 bits, so that the instruction ends with them.
                self.asm.mov64_i(register, placeholder(index));
                let offset = (self.asm.position() - size_of::<u64>()) as u32;
                if let Some(hole) = self.places.holes.get_mut(self.places.hole_count) {
                    *hole = Hole { offset, index };
                }
                self.places.hole_count += 1;
            }
        }
    }

    /// Jumps to an address outside of the routine, within 2 GiB of the arena.
    #[inline(always)]
    pub fn jump_outside(&mut self, address: usize) {
        self.asm.jump_to(address);
        // The instruction ends with the distance.
        let offset = (self.asm.position() - size_of::<u32>()) as u32;
        if let Some(jump) = self.places.jumps.get_mut(self.places.jump_count) {
            *jump = offset;
        }
        self.places.jump_count += 1;
    }

    /// Ends the routine as the template of others.
    ///
    /// # Errors
    /// As [`Builder::end`].
    pub fn end_template<const N: usize>(self, arena: &mut Arena<'_, N>) -> Result<Template, Error> {
        let places = self.places;
        let is_full = places.hole_count > MAX_HOLES || places.jump_count > MAX_JUMPS;
        let routine = self.end_any(arena)?;
        if is_full {
            arena.free_routine(routine);
            return Err(Error::Holes);
        }
        let last = places.jump_count.checked_sub(1).map(|last| places.jumps[last] as usize);
        // The opcode is before the distance.
        let slow = last.map(|distance| routine.entry + distance - 1);
        let closing_jump = slow.and_then(|slow| closing_jump(arena, &routine, slow).ok());
        Ok(Template { routine, places, closing_jump })
    }

    /// Gives the memory back.
    pub fn abandon<const N: usize>(self, arena: &mut Arena<'_, N>) {
        arena.discard(self.block);
    }

    /// Ends the routine. Its memory is as long as its code from then on.
    ///
    /// # Errors
    /// [`Error::Code`] with the first error of the assembler, [`Error::Exceptions`], [`Error::Holes`] if an address is
    /// missing. The memory is free again then.
    #[inline(always)]
    pub fn end<const N: usize>(self, arena: &mut Arena<'_, N>) -> Result<Routine, Error> {
        if self.places.hole_count != 0 {
            self.abandon(arena);
            return Err(Error::Holes);
        }
        self.end_any(arena)
    }

    #[inline(always)]
    fn end_any<const N: usize>(self, arena: &mut Arena<'_, N>) -> Result<Routine, Error> {
        let Builder { asm, name, mut block, exceptions, count, .. } = self;
        let mut pairs = [(0_u32, 0_u32); MAX_EXCEPTIONS];
        let mut unbound = false;
        for ((fault, label), pair) in exceptions.iter().zip(&mut pairs).take(count) {
            let fix_up = label.and_then(|label| asm.label_offset(label));
            unbound |= fix_up.is_none();
            *pair = (*fault, fix_up.unwrap_or(0) as u32);
        }
        let ended = match asm.end() {
            Err(error) => Err(Error::Code(error)),
            Ok(_) if count > MAX_EXCEPTIONS => Err(Error::Exceptions),
            Ok(_) if unbound => Err(Error::Code(quaject_vcode::Error::UnboundLabel)),
            Ok(code) => Ok(code),
        };
        let needed = ended.map(|code| code.length + PAIR * count + COUNT);
        let (code, needed) = match ended.and_then(|code| Ok((code, needed?))) {
            Ok((code, needed)) if needed <= block.length() => (code, needed),
            Ok(_) => {
                arena.discard(block);
                return Err(Error::Code(quaject_vcode::Error::Overflow));
            }
            Err(error) => {
                arena.discard(block);
                return Err(error);
            }
        };
        arena.shrink(&mut block, needed);
        let mut at = arena.writable(&block).wrapping_add(block.length() - COUNT);
        // SAFETY: the count and the pairs are inside the block, after the code, as `needed` says.
        unsafe {
            at.cast::<u32>().write_unaligned(count as u32);
            for (fault, fix_up) in pairs.iter().take(count) {
                at = at.wrapping_sub(PAIR);
                at.cast::<[u32; 2]>().write_unaligned([*fault, *fix_up]);
            }
        }
        arena.note_routine(&block, name, code.length);
        Ok(Routine { block, name, entry: code.entry, length: code.length })
    }
}
