//! The end of a function: prologue and epilogue, unresolved label references, the constant pool. The layout of frames
//! is drawn in `frame.rs`.

use core::marker::PhantomData;
use core::mem::MaybeUninit;

use crate::abi::Scratch;
use crate::asm::{Asm, Code, Fixup, FunctionState, Label};
use crate::cursor::{Cursor, SLACK};
use crate::error::Error;
use crate::frame::{SPECIAL_REGISTER_BYTES, prologue_room};
use crate::kind::Kind;
use crate::machine::Machine;
use crate::registers::{Register, Set};

/// A buffer for the longest prologue of any machine: every saved register reserves the longest form of a store, which
/// on RISC-V is forty bytes.
const PROLOGUE_BUFFER: usize = 2048;

impl<M: Machine> Asm<'_, M> {
    /// Ends the function: writes prologue and epilogue, resolves labels, places constants.
    ///
    /// # Errors
    /// The first error since [`Asm::begin`].
    #[inline(always)]
    pub fn end(mut self) -> Result<Code, Error> {
        self.record_forward();
        // The common small function: no frame, no constants, one return, which is last.
        let ip = self.at(self.cursor.ip);
        let f = &mut *self.f;
        // On machines with delay slots, the instruction in the slot stays in its place.
        let slot = if M::DELAY_SLOTS { 4 } else { 0 };
        let ends_in_jump =
            self.last_return != Fixup::NONE && self.last_return.site() + 4 + slot == ip && f.last_bound != ip;
        if ends_in_jump && !f.needs_general_path && f.int.touched | f.float.touched == 0 {
            // If a reference cannot be resolved here, the general path resolves all of them again.
            if self.f.resolve_plain::<M>() {
                self.cursor.ip = self.cursor.back(M::JUMP_BYTES + slot as usize);
                M::return_(&mut self);
                self.cursor.ip = self.cursor.ip.wrapping_add(slot as usize);
                let entry = M::PROLOGUE as u32;
                let length = self.at(self.cursor.ip).wrapping_sub(entry) as usize;
                let entry_address = self.f.execute.wrapping_add(entry as usize);
                synchronise(entry_address, length);
                return Ok(Code { entry: entry_address, offset: entry as usize, length, instructions: length });
            }
        }
        if self.last_return != Fixup::NONE {
            self.f.add_fixup(self.last_return);
        }
        Self::end_in_general(self.f, self.cursor, self.left)
    }

    /// Whether the function needs a prologue and an epilogue.
    fn is_framed(&mut self) -> bool {
        let f = &mut *self.f;
        let on_stack = f.incoming || f.locals != 0 || f.convention.scratch == Scratch::Preserved;
        if f.kind == Kind::Naked {
            if on_stack {
                f.fail(Error::Naked);
            }
            return false;
        }
        f.int.touched | f.float.touched != 0 || f.calls || on_stack
    }

    /// Whether the last instruction is a jump to the epilogue, and no label is bound after it.
    #[inline(always)]
    fn ends_in_jump(&self, ip: u32) -> bool {
        let f = &*self.f;
        f.last_bound != ip
            && f.fixups.last().is_some_and(|last| last.label() == Label::EPILOGUE && last.site() + 4 == ip)
    }

    #[inline(never)]
    fn end_in_general(f: &mut FunctionState, cursor: Cursor, left: usize) -> Result<Code, Error> {
        let mut asm = Asm::<M> {
            cursor,
            left,
            start: f.start,
            small: false,
            last_return: Fixup::NONE,
            forward: Fixup::NONE,
            f,
            machine: PhantomData,
        };
        asm.finish()
    }

    fn finish(&mut self) -> Result<Code, Error> {
        let framed = self.is_framed();
        let ip = self.f.at(self.cursor.ip);
        // A jump to the epilogue right before the epilogue is redundant.
        let ends_in_jump = self.ends_in_jump(ip);
        if ends_in_jump {
            self.f.fixups.pop();
            self.cursor.ip = self.cursor.back(M::JUMP_BYTES);
        }
        // On machines with delay slots, a return that is last becomes the end of the function.
        let ends_in_return = M::DELAY_SLOTS
            && self.f.last_bound != ip
            && self.f.fixups.last().is_some_and(|last| last.label() == Label::EPILOGUE && last.site() + 8 == ip);
        if framed && ends_in_return {
            self.f.fixups.pop();
            self.drop_jump_before_slot();
        }
        let epilogue = self.f.at(self.cursor.ip);
        let entry = if framed {
            self.frame()
        } else {
            let naked = self.f.kind == Kind::Naked;
            if !ends_in_return && (ends_in_jump || !naked) {
                M::return_(self);
                if M::DELAY_SLOTS {
                    M::nop(self);
                }
            }
            self.tail_epilogue(0);
            if naked { 0 } else { prologue_room::<M>(self.f.convention) as u32 }
        };
        let end = self.f.at(self.cursor.ip);
        if self.f.constants.len() | self.f.fixups.len() != 0 {
            self.resolve(framed, epilogue, entry);
        }
        let f = &mut *self.f;
        if let Some(error) = f.error {
            return Err(error);
        }
        let length = f.at(self.cursor.ip).wrapping_sub(entry);
        let entry_address = f.execute.wrapping_add(entry as usize);
        synchronise(entry_address, length as usize);
        Ok(Code {
            entry: entry_address,
            offset: entry as usize,
            length: length as usize,
            instructions: (end - entry) as usize,
        })
    }

    /// Removes the jump that is the last word but one, and the word in its delay slot if that is a `nop`; otherwise the
    /// slot's instruction moves before the epilogue.
    fn drop_jump_before_slot(&mut self) {
        let after = (self.cursor, self.left);
        M::nop(self);
        if self.f.error.is_some() {
            return;
        }
        (self.cursor, self.left) = after;
        let jump = self.cursor.back(8).cast::<[u8; 4]>();
        // SAFETY: the jump, its slot and the `nop` after them were stored in the region.
        let (slot, nop) = unsafe { (jump.add(1).read(), jump.add(2).read()) };
        self.cursor.ip = jump.cast();
        if slot != nop {
            // SAFETY: as above.
            unsafe { jump.write(slot) };
            self.cursor.ip = self.cursor.ip.wrapping_add(4);
        }
    }

    /// Places the constants and resolves all label references.
    #[inline(never)]
    fn resolve(&mut self, framed: bool, epilogue: u32, entry: u32) {
        if self.f.constants.len() != 0 {
            self.place_constants();
        }
        for index in 0..self.f.fixups.len() {
            let Some(fixup) = self.f.fixups.get(index) else { break };
            match fixup.kind() {
                Fixup::PROCEDURE => continue,
                Fixup::CALLED_PROCEDURE => {
                    if !self.f.is_procedure(fixup.label()) {
                        self.f.fail(Error::Procedure);
                    }
                    continue;
                }
                _ => {}
            }
            if fixup.label() == Label::ENTRY {
                self.f.patch::<M>(fixup.site(), fixup.kind(), entry);
                continue;
            }
            if fixup.label() == Label::EPILOGUE {
                if framed {
                    self.f.patch::<M>(fixup.site(), fixup.kind(), epilogue);
                } else {
                    self.return_at(fixup.site() as usize - M::SITE_BACK);
                }
                continue;
            }
            if let (Label::TAIL, Some(tail)) = (fixup.label(), self.f.tail) {
                self.f.patch::<M>(fixup.site(), fixup.kind(), tail);
                continue;
            }
            match self.f.labels.get(fixup.label().0) {
                Some(u32::MAX) | None => self.f.fail(Error::UnboundLabel),
                Some(target) => self.f.patch::<M>(fixup.site(), fixup.kind(), target),
            }
        }
    }

    /// Replaces a jump to the epilogue by a return, in a function without a frame.
    #[cold]
    #[inline(never)]
    fn return_at(&mut self, at: usize) {
        let mut buffer = [0_u8; 32 + SLACK];
        let (cursor, left) = (self.cursor, self.left);
        self.cursor.ip = buffer.as_mut_ptr();
        self.left = 32;
        M::return_(self);
        while self.cursor.ip.addr() - buffer.as_ptr().addr() < M::JUMP_BYTES {
            M::nop(self);
        }
        (self.cursor, self.left) = (cursor, left);
        // SAFETY: a jump of that length was stored there.
        unsafe {
            core::ptr::copy_nonoverlapping(buffer.as_ptr(), self.f.start.add(at), M::JUMP_BYTES);
        }
    }

    #[cold]
    #[inline(never)]
    fn place_constants(&mut self) {
        for index in 0..self.f.constants.len() {
            let Some(constant) = self.f.constants.get(index) else { break };
            self.space(2 * constant.size as usize);
            while !(self.f.execute + self.f.at(self.cursor.ip) as usize).is_multiple_of(constant.size as usize) {
                self.cursor.bytes(0, 1);
            }
            let at = self.f.at(self.cursor.ip);
            if let Some(target) = self.f.labels.get_mut(constant.label) {
                *target = at;
            }
            // All machines with vectors are little-endian.
            if constant.size > 8 {
                for half in 0..constant.size / 8 {
                    self.cursor.bytes(if half % 2 == 0 { constant.bits } else { constant.high }, 8);
                }
                continue;
            }
            let little = M::LITTLE_ENDIAN;
            let bits = match (constant.size, little) {
                (8, true) | (4, true) => constant.bits.to_le(),
                (8, false) => constant.bits.to_be(),
                (_, _) => u64::from((constant.bits as u32).swap_bytes()).to_le(),
            };
            self.cursor.bytes(bits.to_le(), constant.size as usize);
        }
    }

    /// Writes the epilogue here and the prologue before the body; returns the offset of the function's entry.
    #[cold]
    #[inline(never)]
    fn frame(&mut self) -> u32 {
        let convention = self.f.convention;
        let used = self.used_slots();
        let interrupt = convention.scratch == Scratch::Preserved;
        let own = if self.f.locals != 0 || interrupt { self.save_area() + self.f.locals } else { 8 * used };
        let bare = M::BOTTOM + own;
        let framed = own != 0 || self.f.calls;
        // Interrupted code may have no frame and use its red zone.
        let above = bare + M::MISALIGNED + if interrupt { M::RED_ZONE } else { 0 };
        let size = if framed { above.next_multiple_of(16) - M::MISALIGNED } else { 0 };

        let special_area = i64::from(M::BIAS + M::BOTTOM + self.save_area()) - 8 - i64::from(SPECIAL_REGISTER_BYTES);
        self.link(Asm::restore_slot);
        if interrupt && M::CLOBBERS_SPECIAL_REGISTERS {
            M::restore_special(self, special_area);
        }
        self.each_saved(Asm::restore_slot);
        if size != 0 {
            M::leave(self, i64::from(size));
        }
        M::return_(self);
        if M::DELAY_SLOTS {
            M::nop(self);
        }
        self.tail_epilogue(size);

        // The prologue is generated in a buffer first, because its length determines its address.
        let mut buffer = MaybeUninit::<[u8; PROLOGUE_BUFFER]>::uninit();
        let start = buffer.as_mut_ptr().cast::<u8>();
        let (cursor, left) = (self.cursor, self.left);
        self.cursor.ip = start;
        self.left = PROLOGUE_BUFFER - SLACK;
        if size != 0 {
            M::enter(self, i64::from(size));
        }
        if !interrupt {
            self.link(Asm::save_slot);
        }
        self.each_saved(Asm::save_slot);
        if interrupt {
            if M::CLOBBERS_SPECIAL_REGISTERS {
                M::save_special(self, special_area);
            }
            // On Power it goes through a special register, which has to be saved before.
            self.link(Asm::save_slot);
        }
        // Last: entering a large frame uses the scratch register.
        if self.f.incoming {
            M::frame_address(self, M::SCRATCH, i64::from(size));
        }
        let length = self.cursor.ip.addr() - start.addr();
        (self.cursor, self.left) = (cursor, left);
        let body = prologue_room::<M>(convention);
        if length > body {
            self.f.fail(Error::Frame);
            return 0;
        }
        // SAFETY: 1. the region starts that many bytes before the body, and `length` is at most that. 2. Of the buffer
        // so many bytes were stored.
        unsafe {
            let entry = self.f.start.add(body - length);
            core::ptr::copy_nonoverlapping(start, entry, length);
        }
        (body - length) as u32
    }

    /// The epilogue of tail calls. Their target is in the second scratch register, which no epilogue uses, and is
    /// copied to the first, in which functions of MIPS and Alpha expect their own address.
    fn tail_epilogue(&mut self, size: u32) {
        if self.f.tail.is_none() {
            return;
        }
        self.f.tail = Some(self.f.at(self.cursor.ip));
        if size != 0 {
            self.link(Asm::restore_slot);
            self.each_saved(Asm::restore_slot);
            M::leave(self, i64::from(size));
        }
        if M::SCRATCH != M::SECOND_SCRATCH {
            M::copy(self, M::SCRATCH, M::SECOND_SCRATCH);
        }
        M::jump_register(self, M::SCRATCH);
    }

    /// The number of slots up to the last used one.
    fn used_slots(&self) -> u32 {
        let f = &*self.f;
        let (int, float) = (&f.convention.int, &f.convention.float);
        let ints = 1 + int.saved.len() as u32;
        if let Some(last) = f.float.touched.checked_ilog2() {
            ints + last - float.temp.len() as u32 + 1
        } else if let Some(last) = f.int.touched.checked_ilog2() {
            1 + last - int.temp.len() as u32 + 1
        } else {
            u32::from(f.calls && M::HAS_LINK_REGISTER)
        }
    }

    /// Visits the link register, if the frame preserves it, with its slot.
    fn link(&mut self, visit: fn(&mut Self, Saved<M>, i32)) {
        if M::HAS_LINK_REGISTER && self.f.calls {
            visit(self, Saved::Link, (M::BIAS + M::BOTTOM) as i32);
        }
    }

    /// Visits every other register that the frame preserves, with its slot.
    fn each_saved(&mut self, visit: fn(&mut Self, Saved<M>, i32)) {
        let convention = self.f.convention;
        let link = (M::BIAS + M::BOTTOM) as i32;
        // `touched` is a set by position: first the temporaries, then the callee-saved registers, which have a slot
        // each.
        let ints = link + 8;
        for position in positions(self.f.int.touched) {
            let slot = position as i32 - convention.int.temp.len() as i32;
            visit(self, Saved::Int(M::Reg::from_number(convention.int.at(position))), ints + 8 * slot);
        }
        let floats = ints + 8 * convention.int.saved.len() as i32;
        for position in positions(self.f.float.touched) {
            let slot = position as i32 - convention.float.temp.len() as i32;
            visit(self, Saved::Float(M::Float::from_number(convention.float.at(position))), floats + 8 * slot);
        }
        if convention.scratch == Scratch::Preserved {
            let at = floats + 8 * convention.float.saved.len() as i32;
            visit(self, Saved::Int(M::SCRATCH), at);
            if M::SCRATCH != M::SECOND_SCRATCH {
                visit(self, Saved::Int(M::SECOND_SCRATCH), at + 8);
            }
            // A load of eight bytes clears the upper part of a vector register, so a function without floats does not
            // reload it.
            if M::DIVIDES_IN_FLOATS || self.f.float.touched != 0 {
                visit(self, Saved::Float(M::FLOAT_SCRATCH), at + 16);
            }
        }
    }

    fn save_slot(&mut self, saved: Saved<M>, at: i32) {
        match saved {
            Saved::Link => M::save_link(self, i64::from(at)),
            Saved::Int(register) => M::save(self, register, at),
            Saved::Float(register) => M::save_float(self, register, at),
        }
    }

    fn restore_slot(&mut self, saved: Saved<M>, at: i32) {
        match saved {
            Saved::Link => M::restore_link(self, i64::from(at)),
            Saved::Int(register) => M::restore(self, register, at),
            Saved::Float(register) => M::restore_float(self, register, at),
        }
    }
}

/// A value with a slot in the save area.
#[derive(Debug, Clone, Copy)]
enum Saved<M: Machine> {
    /// The return address.
    Link,
    Int(M::Reg),
    Float(M::Float),
}

/// The positions in a set, in order.
fn positions(mut set: Set) -> impl Iterator<Item = u32> {
    core::iter::from_fn(move || {
        let position = set.trailing_zeros();
        set &= set.wrapping_sub(1);
        (position < Set::BITS).then_some(position)
    })
}

/// Makes written code visible to instruction fetch.
#[inline(always)]
pub(crate) fn synchronise(address: usize, length: usize) {
    // x86-64 keeps its instruction cache coherent with stores, whatever address they went through.
    #[cfg(target_arch = "x86_64")]
    let _ = (address, length);
    #[cfg(not(target_arch = "x86_64"))]
    {
        // SAFETY: the declaration of the compiler's run-time library.
        unsafe extern "C" {
            fn __clear_cache(start: *mut core::ffi::c_void, end: *mut core::ffi::c_void);
        }
        // SAFETY: the compiler's run-time library provides this function; it reads no memory of ours.
        unsafe { __clear_cache(address as *mut _, (address + length) as *mut _) };
    }
}
