//! Patch points: jumps of a finished function that can be retargeted while threads execute it, and constants that can
//! be replaced (on x86-64 also meanwhile; Pu, Massalin, Ioannidis, "The Synthesis Kernel", 1988, executable data
//! structures).
//!
//! ```text
//! x86-64   |nop nop|jmp rel32 . . .|      the eight bytes at a multiple of eight are stored at once
//!          |nop|mov r, |imm64 ......|     only the immediate, at a multiple of eight, is stored
//! others   |j label|(nop)|                the word is stored at once, then the instruction cache is synchronised
//! ```
//!
//! On x86-64 both are atomic with respect to threads that execute the code: a thread executes the old instruction or
//! the new one. AMD's manual guarantees it for aligned quadwords (volume 2, 7.6.1). Intel's does not: for
//! cross-modifying code it requires a serialising instruction on the processor that executes it (volume 3, "Handling
//! Self- and Cross-Modifying Code"); its processors are only observed to behave the same. On the other machines a jump
//! is one aligned word, stored atomically; other processors may execute the old one until they next synchronise their
//! instruction fetch (AArch64 `isb`, RISC-V `fence.i`). A constant is several words there, so no thread may be inside
//! the function while it is changed.
//!
//! No encoding is known here: the machine's emitter writes the instruction, and its bytes are inspected.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::asm::{Asm, Code, Fixup, Label, Region, Workspace};
use crate::cursor::SLACK;
use crate::epilogue::synchronise;
use crate::error::Error;
use crate::generated::core::Core;
use crate::machine::Machine;
use crate::registers::Register;

/// Patch points lie at multiples of this.
const UNIT: usize = 8;

/// The most bytes of a constant on any machine.
const CONSTANT_BYTES: usize = 64;

/// A jump whose target can be changed.
#[derive(Debug, Clone, Copy)]
pub struct PatchJump {
    /// The offset of the instruction, from the start of the region.
    at: u32,
    /// The offset of its label field.
    site: u32,
    kind: u8,
    /// The offset behind it, delay slot included.
    next: u32,
}

/// A constant in a register that can be changed.
#[derive(Debug, Clone, Copy)]
pub struct PatchConstant {
    at: u32,
    length: u32,
    register: u8,
}

/// The executable and the writable address of a finished function.
#[derive(Debug, Clone, Copy)]
pub struct Placed {
    entry: usize,
    write: *mut u8,
    offset: usize,
}

impl Placed {
    /// A function at `entry` whose first byte is writable at `write`.
    ///
    /// # Safety
    /// `write` must be valid for reads and writes of the function's length as long as this value is used.
    pub unsafe fn from_raw(code: &Code, entry: usize, write: *mut u8) -> Placed {
        Placed { entry, write, offset: code.offset }
    }

    /// The writable address of the byte at `offset` of the region that the function was generated in.
    fn writable(&self, offset: u32) -> *mut u8 {
        self.write.wrapping_add(offset as usize).wrapping_sub(self.offset)
    }

    fn executable(&self, offset: u32) -> usize {
        self.entry.wrapping_add(offset as usize).wrapping_sub(self.offset)
    }
}

impl<M: Machine> Asm<'_, M>
where
    for<'b> Asm<'b, M>: Core<Reg = M::Reg, Float = M::Float>,
{
    /// A jump to `label` whose target can be changed when the function is finished.
    pub fn patch_jump(&mut self, label: Label) -> PatchJump {
        let jump = self.blank_jump();
        let site = self.f.start.wrapping_add(jump.site as usize);
        let target = self.target(label);
        self.refer(site, jump.kind, label, target);
        jump
    }

    /// A jump to the next instruction, until its target is changed.
    pub fn patch_point(&mut self) -> PatchJump {
        let jump = self.blank_jump();
        self.f.patch::<M>(jump.site, jump.kind, jump.next);
        jump
    }

    fn blank_jump(&mut self) -> PatchJump {
        while !self.executed_here().is_multiple_of(UNIT) {
            self.nop();
        }
        let at = self.f.at(self.cursor.ip);
        let label = self.label();
        self.j(label);
        let next = self.f.at(self.cursor.ip);
        // The reference and the label were only needed to emit the jump.
        let fixup = core::mem::replace(&mut self.forward, Fixup::NONE);
        if fixup.label() != label {
            self.fail(Error::Labels);
            return PatchJump { at, site: at, kind: 0, next };
        }
        self.f.labels.pop();
        if M::SITE_BACK != 0 {
            // The rest of the eight bytes is stored with the jump, so that it must belong to the function.
            while !self.executed_here().is_multiple_of(UNIT) {
                self.nop();
            }
        }
        PatchJump { at, site: fixup.site(), kind: fixup.kind(), next }
    }

    /// Loads a constant that can be changed when the function is finished.
    pub fn patch_constant(&mut self, d: M::Reg, value: u64) -> PatchConstant {
        let mut buffer = [0_u8; CONSTANT_BYTES + SLACK];
        let length = constant_bytes::<M>(d, PLACEHOLDER, &mut buffer);
        // If the immediate is contiguous, it is aligned.
        let aligned = if has_whole(&buffer[..length]) { UNIT } else { 4 };
        while !(self.executed_here() + length).is_multiple_of(aligned) {
            self.nop();
        }
        let at = self.f.at(self.cursor.ip);
        let start = self.cursor.ip;
        self.space(CONSTANT_BYTES);
        if let Err(error) = fill_constant::<M>(d, value, &mut buffer, length) {
            self.fail(error);
        }
        if self.f.error.is_none() {
            // SAFETY: space for that many bytes was reserved above.
            unsafe { start.copy_from_nonoverlapping(buffer.as_ptr(), length) };
            self.cursor.ip = start.wrapping_add(length);
        }
        PatchConstant { at, length: length as u32, register: d.number() }
    }

    fn executed_here(&self) -> usize {
        self.f.execute.wrapping_add(self.f.at(self.cursor.ip) as usize)
    }

    /// The offset of a bound label in the region; `offset - code.offset` is its distance from `code.entry`.
    pub fn label_offset(&self, label: Label) -> Option<usize> {
        Some(self.address(label)?.wrapping_sub(self.f.execute))
    }
}

impl PatchJump {
    /// Changes the target to the instruction at the executable address `to`.
    ///
    /// # Errors
    /// [`Error::BranchRange`] if it does not reach; nothing is changed.
    ///
    /// # Safety
    /// The function must be at `place`, code for `M`, and `to` an instruction that may follow.
    pub unsafe fn retarget<M: Machine>(self, place: &Placed, to: usize) -> Result<(), Error> {
        // SAFETY: the caller's promise: the function, and in it this instruction, is there.
        unsafe { self.write::<M>(place, to.wrapping_sub(place.executable(self.site)) as i64) }
    }

    /// Changes the target to the instruction after the jump.
    ///
    /// # Errors
    /// None that a function without errors can cause.
    ///
    /// # Safety
    /// The function must be at `place`, code for `M`.
    pub unsafe fn fall_through<M: Machine>(self, place: &Placed) -> Result<(), Error> {
        // SAFETY: the caller's promise: the function, and in it this instruction, is there.
        unsafe { self.write::<M>(place, i64::from(self.next) - i64::from(self.site)) }
    }

    /// Changes the target to a label of the same function, given by its [`Asm::label_offset`].
    ///
    /// # Errors
    /// [`Error::BranchRange`] if it does not reach; nothing is changed.
    ///
    /// # Safety
    /// The function must be at `place`, code for `M`.
    pub unsafe fn retarget_to_label<M: Machine>(self, place: &Placed, label_offset: usize) -> Result<(), Error> {
        // SAFETY: the caller's promise: the function, and in it this instruction, is there.
        unsafe { self.write::<M>(place, label_offset as i64 - i64::from(self.site)) }
    }

    /// # Safety
    /// The function must be at `place`, code for `M`.
    unsafe fn write<M: Machine>(self, place: &Placed, distance: i64) -> Result<(), Error> {
        let within = (self.site - self.at) as usize;
        let start = place.writable(self.at);
        if M::SITE_BACK == 0 {
            // SAFETY: the word is in the function; instructions of word machines are aligned.
            let word = unsafe { AtomicU32::from_ptr(start.cast()) };
            let mut bytes = word.load(Ordering::Relaxed).to_ne_bytes();
            if !M::patch(self.kind, &mut bytes, distance) {
                return Err(Error::BranchRange);
            }
            // Pairs with the instruction fetch of threads that run the code.
            word.store(u32::from_ne_bytes(bytes), Ordering::Release);
        } else {
            // SAFETY: the eight bytes are in the function, and `blank_jump` aligned them.
            let unit = unsafe { AtomicU64::from_ptr(start.cast()) };
            let mut bytes = unit.load(Ordering::Relaxed).to_ne_bytes();
            let field = bytes.get_mut(within..within + 4).and_then(|field| <&mut [u8; 4]>::try_from(field).ok());
            if !field.is_some_and(|field| M::patch(self.kind, field, distance)) {
                return Err(Error::BranchRange);
            }
            // Pairs with the instruction fetch of threads that run the code.
            unit.store(u64::from_ne_bytes(bytes), Ordering::Release);
        }
        synchronise(start as usize, UNIT);
        synchronise(place.executable(self.at), UNIT);
        Ok(())
    }
}

impl PatchConstant {
    /// Changes the constant.
    ///
    /// # Errors
    /// [`Error::Immediate`] if it does not fit a long of the machine.
    ///
    /// # Safety
    /// The function must be at `place`, code for `M`. Except on x86-64 no thread may be running it.
    pub unsafe fn set<M: Machine>(self, place: &Placed, value: u64) -> Result<(), Error> {
        let length = self.length as usize;
        let start = place.writable(self.at);
        let register = M::Reg::from_number(self.register);
        let mut buffer = [0_u8; CONSTANT_BYTES + SLACK];
        let whole = constant_bytes::<M>(register, PLACEHOLDER, &mut buffer);
        if has_whole(&buffer[..whole]) {
            // SAFETY: the immediate is the end of the instruction, which `patch_constant` aligned.
            let unit = unsafe { AtomicU64::from_ptr(start.add(length - UNIT).cast()) };
            // Pairs with the instruction fetch of threads that run the code.
            unit.store(value.to_le(), Ordering::Release);
        } else {
            fill_constant::<M>(register, value, &mut buffer, length)?;
            // SAFETY: the instructions are in the function, and the caller keeps threads out of it.
            unsafe { start.copy_from_nonoverlapping(buffer.as_ptr(), length) };
        }
        synchronise(start as usize, length);
        synchronise(place.executable(self.at), length);
        Ok(())
    }
}

/// A constant whose load has the longest form on every machine.
const PLACEHOLDER: u64 = 0x9234_5678_9abc_def1;

/// Whether these instructions end with the placeholder as a 64-bit immediate.
fn has_whole(bytes: &[u8]) -> bool {
    bytes.ends_with(&PLACEHOLDER.to_le_bytes())
}

/// Writes the instructions that load `value`; returns their length.
fn constant_bytes<M: Machine>(d: M::Reg, value: u64, buffer: &mut [u8; CONSTANT_BYTES + SLACK]) -> usize {
    let value = if M::LONG_BITS == 32 { i64::from(value as i32) } else { value as i64 };
    write_to_buffer::<M>(buffer, |asm| M::constant(asm, d, value))
}

/// Writes the instructions that load `value`, padded with `nop`s to `length`, the length of the placeholder; if only
/// the immediate will be changed, uses the form of the placeholder.
fn fill_constant<M: Machine>(
    d: M::Reg,
    value: u64,
    buffer: &mut [u8; CONSTANT_BYTES + SLACK],
    length: usize,
) -> Result<(), Error> {
    if M::LONG_BITS == 32 && value > u64::from(u32::MAX) {
        return Err(Error::Immediate);
    }
    constant_bytes::<M>(d, PLACEHOLDER, buffer);
    if has_whole(&buffer[..length]) {
        buffer[length - UNIT..length].copy_from_slice(&value.to_le_bytes());
        return Ok(());
    }
    let value = if M::LONG_BITS == 32 { i64::from(value as i32) } else { value as i64 };
    let written = write_to_buffer::<M>(buffer, |asm| {
        M::constant(asm, d, value);
        while asm.position() < length {
            M::nop(asm);
        }
    });
    if written == length { Ok(()) } else { Err(Error::Immediate) }
}

/// Runs `emit` on an assembler whose region is `buffer`; returns the number of bytes written.
fn write_to_buffer<M: Machine>(buffer: &mut [u8; CONSTANT_BYTES + SLACK], emit: impl FnOnce(&mut Asm<'_, M>)) -> usize {
    let mut workspace = Workspace::<M, 1, 1, 1>::with_room();
    let region = Region::from(&mut buffer[..]);
    let f = workspace.open(&region, const { &M::CONVENTION });
    let mut asm = Asm {
        cursor: crate::cursor::Cursor { ip: f.start },
        left: CONSTANT_BYTES,
        start: f.start,
        small: true,
        last_return: Fixup::NONE,
        forward: Fixup::NONE,
        f,
        machine: core::marker::PhantomData,
    };
    emit(&mut asm);
    asm.position()
}
