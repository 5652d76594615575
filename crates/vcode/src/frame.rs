//! Functions: parameters, locals, prologue and epilogue.
//!
//! ```text
//! higher   incoming stack arguments
//!          ------------------------ stack pointer at entry
//!          locals
//!          callee-saved registers     slot k at BOTTOM + 8k: return address, integers, floats, transfer
//!          BOTTOM                     what the machine's convention keeps at the bottom of a frame
//! lower    ------------------------ stack pointer in the body
//! ```
//!
//! The paper (5.2): the save area has a fixed size so that locals have their offsets at once, and the prologue is
//! written when all is known. We differ in two ways. The prologue is written flush against the body, so no function
//! executes what it does not need; and a function without locals has a frame no larger than the slots it uses.

use core::marker::PhantomData;

use crate::abi::{Convention, Counters, Place, Scratch};
use crate::asm::{Asm, Code, Fixup, Function, Label, Region, Workspace};
use crate::cursor::{Cursor, SLACK};
use crate::error::Error;
use crate::machine::{Machine, Register};
use crate::registers::Class;
use crate::signature::{Signature, Type};

/// Whether a function calls others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It does not: parameters stay where they arrive, all registers are persistent, a call is an error.
    Leaf,
    /// It may: parameters are moved to registers that survive calls.
    Calls,
}

/// Where a parameter is.
#[derive(Debug, Clone, Copy)]
pub enum Param<M: Machine> {
    /// Nowhere yet.
    None,
    /// In an integer register.
    Reg(M::Reg),
    /// In a floating register.
    Float(M::Float),
}

impl<M: Machine> Param<M> {
    /// A value to fill the array that [`Asm::begin`] writes to.
    pub const NONE: Self = Param::None;

    /// The register of an integer or pointer parameter.
    ///
    /// # Panics
    /// If the signature says that the parameter is a float or double, or it has no such parameter.
    #[inline]
    pub fn reg(self) -> M::Reg {
        match self {
            Param::Reg(register) => register,
            Param::Float(_) | Param::None => panic!("this parameter is not in an integer register"),
        }
    }

    /// The register of a float or double parameter.
    ///
    /// # Panics
    /// If the signature says that the parameter is an integer or pointer, or it has no such parameter.
    #[inline]
    pub fn float(self) -> M::Float {
        match self {
            Param::Float(register) => register,
            Param::Reg(_) | Param::None => panic!("this parameter is not in a floating register"),
        }
    }
}

/// A variable on the stack: load it with `ldi_local` and the like, store it with `sti_local`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Local {
    pub(crate) offset: i32,
}

impl Local {
    /// The place `bytes` further up, inside what [`Asm::local_bytes`] made.
    #[must_use]
    pub const fn plus(self, bytes: i32) -> Local {
        Local { offset: self.offset.saturating_add(bytes) }
    }
}

/// The least room for instructions that a function begins with.
const LEAST_BODY: usize = 64;

/// The most bytes of locals in a frame.
const MOST_LOCALS: u32 = 1 << 20;

/// Room for the longest prologue or epilogue of any machine while it is put together.
const PROLOGUE_BUFFER: usize = 1024;

impl<'a, M: Machine> Asm<'a, M> {
    /// Begins a function. The registers of its parameters are written to `params`.
    ///
    /// # Errors
    /// [`Error::Signature`], [`Error::Arguments`] if `params` has not the length of the signature, [`Error::Overflow`]
    /// if the region cannot even hold a prologue, [`Error::Registers`] if there are more parameters than registers.
    #[inline(always)]
    pub fn begin<'s, const L: usize, const F: usize, const C: usize>(
        region: Region<'a>,
        workspace: &'a mut Workspace<M, L, F, C>,
        signature: impl Into<Signature<'s>>,
        params: &mut [Param<M>],
        kind: Kind,
    ) -> Result<Self, Error> {
        Self::begin_with(region, workspace, signature, params, kind, const { &M::CONVENTION })
    }

    /// Begins a function with a calling convention or register classes of the client's.
    ///
    /// # Errors
    /// Those of [`Asm::begin`].
    #[inline(always)]
    pub fn begin_with<'s, const L: usize, const F: usize, const C: usize>(
        region: Region<'a>,
        workspace: &'a mut Workspace<M, L, F, C>,
        signature: impl Into<Signature<'s>>,
        params: &mut [Param<M>],
        kind: Kind,
        convention: &'static Convention,
    ) -> Result<Self, Error> {
        if region.length < M::PROLOGUE + LEAST_BODY + SLACK {
            return Err(Error::Overflow);
        }
        let f = workspace.open(&region, convention);
        f.leaf = matches!(kind, Kind::Leaf);
        f.int.free = convention.int.all;
        f.float.free = convention.float.all;
        let cursor = Cursor { ip: f.start.wrapping_add(M::PROLOGUE) };
        // The check above promises this much; more is looked up when it is used.
        let mut asm = Asm { cursor, left: LEAST_BODY, last_return: Fixup::NONE, f, machine: PhantomData };
        asm.parameters(signature.into(), params)?;
        Ok(asm)
    }

    #[inline(always)]
    fn parameters(&mut self, signature: Signature<'_>, params: &mut [Param<M>]) -> Result<(), Error> {
        let mut arrivals = Arrivals { counters: Counters::default(), elsewhere: false };
        match signature {
            // A list known to the compiler is a loop that it unrolls, and then folds.
            Signature::Types(types) => {
                if types.len() != params.len() {
                    return Err(Error::Arguments);
                }
                for (ty, param) in types.iter().zip(params.iter_mut()) {
                    *param = self.parameter(*ty, &mut arrivals);
                }
            }
            Signature::Text(_) => {
                let mut room = params.iter_mut();
                for ty in signature.types() {
                    *room.next().ok_or(Error::Arguments)? = self.parameter(ty?, &mut arrivals);
                }
                if room.next().is_some() {
                    return Err(Error::Arguments);
                }
            }
        }
        if arrivals.elsewhere || !self.f.leaf {
            return self.move_parameters(signature, params);
        }
        Ok(())
    }

    /// Where a parameter arrives; nowhere if it has to be moved before it can be used.
    #[inline(always)]
    fn parameter(&mut self, ty: Type, arrivals: &mut Arrivals) -> Param<M> {
        let convention = self.f.convention;
        match (convention.place)(&convention.int, &convention.float, &mut arrivals.counters, ty) {
            Place::Int(number) if !ty.is_float() => {
                self.f.int.occupy(&convention.int, number);
                Param::Reg(M::Reg::from_number(number))
            }
            Place::Float(number) if ty.is_float() => {
                self.f.float.occupy(&convention.float, number);
                let register = M::Float::from_number(number);
                if M::SINGLE_SHIFT != 0 && ty == Type::F {
                    M::copy_single(self, register, M::Float::from_number(number + M::SINGLE_SHIFT));
                }
                Param::Float(register)
            }
            Place::Int(number) => {
                self.f.int.occupy(&convention.int, number);
                arrivals.elsewhere = true;
                Param::None
            }
            Place::Pair(first, second) => {
                self.f.int.occupy(&convention.int, first);
                self.f.int.occupy(&convention.int, second);
                arrivals.elsewhere = true;
                Param::None
            }
            Place::Float(_) | Place::Stack(_) => {
                arrivals.elsewhere = true;
                Param::None
            }
        }
    }

    /// Loads parameters that arrive on the stack or in the other register file, and in functions with calls moves all
    /// of them to persistent registers.
    #[cold]
    #[inline(never)]
    fn move_parameters(&mut self, signature: Signature<'_>, params: &mut [Param<M>]) -> Result<(), Error> {
        let convention = self.f.convention;
        let class = if self.f.leaf { Class::Temporary } else { Class::Persistent };
        // Registers first: they are free again for what arrives on the stack.
        let mut counters = Counters::default();
        for (ty, param) in signature.types().zip(params.iter_mut()) {
            let ty = ty?;
            let place = (convention.place)(&convention.int, &convention.float, &mut counters, ty);
            *param = match (place, *param) {
                (Place::Int(number), Param::None) => {
                    let from = M::Reg::from_number(number);
                    let to = self.getfloat(class)?;
                    let transfer = self.transfer();
                    M::save(self, from, transfer);
                    if ty == Type::F {
                        M::restore_single(self, to, transfer)
                    } else {
                        M::restore_float(self, to, transfer)
                    }
                    self.putreg(from);
                    Param::Float(to)
                }
                (Place::Pair(first, second), _) => {
                    let (first, second) = (M::Reg::from_number(first), M::Reg::from_number(second));
                    let to = self.getfloat(class)?;
                    let transfer = self.transfer();
                    M::save(self, first, transfer);
                    M::save(self, second, transfer + 4);
                    M::restore_float(self, to, transfer);
                    self.putreg(first);
                    self.putreg(second);
                    Param::Float(to)
                }
                (Place::Int(_), Param::Reg(from)) if class == Class::Persistent => {
                    let to = self.getreg(class)?;
                    M::copy(self, to, from);
                    self.putreg(from);
                    Param::Reg(to)
                }
                (Place::Float(_), Param::Float(from)) if class == Class::Persistent => {
                    let to = self.getfloat(class)?;
                    M::copy_float(self, to, from);
                    self.putfloat(from);
                    Param::Float(to)
                }
                (Place::Int(_) | Place::Float(_) | Place::Stack(_), param) => param,
            };
        }
        let mut counters = Counters::default();
        for (ty, param) in signature.types().zip(params.iter_mut()) {
            let ty = ty?;
            let place = (convention.place)(&convention.int, &convention.float, &mut counters, ty);
            let Place::Stack(at) = place else { continue };
            // The prologue leaves the stack pointer at entry in the scratch register.
            self.f.incoming = true;
            self.f.special = true;
            let at = (M::INCOMING + at) as i32;
            *param = match ty {
                Type::F => {
                    let to = self.getfloat(class)?;
                    M::load_float(self, to, M::SCRATCH, at + M::SINGLE_AT as i32);
                    Param::Float(to)
                }
                Type::D => {
                    let to = self.getfloat(class)?;
                    M::load_double(self, to, M::SCRATCH, at);
                    Param::Float(to)
                }
                Type::C | Type::Uc | Type::S | Type::Us | Type::I | Type::U | Type::L | Type::Ul | Type::P => {
                    let to = self.getreg(class)?;
                    M::load_long(self, to, M::SCRATCH, at);
                    Param::Reg(to)
                }
            };
        }
        Ok(())
    }

    /// Bytes of the save area: return address, callee-saved registers, one slot to move values between files.
    fn save_area(&self) -> u32 {
        let convention = self.f.convention;
        let scratch = if convention.scratch == Scratch::Preserved { 3 } else { 0 };
        8 * (2 + convention.int.saved.len() + convention.float.saved.len() + scratch) as u32
    }

    fn transfer_slot(&self) -> i32 {
        (M::BIAS + M::BOTTOM + self.save_area() - 8) as i32
    }

    /// The stack slot in which a call parks a value, or moves it between register files. It is the last of the save
    /// area, so the frame now needs all of that.
    pub(crate) fn transfer(&mut self) -> i32 {
        self.f.locals = self.f.locals.max(8);
        self.f.special = true;
        self.transfer_slot()
    }

    /// Makes a variable on the stack, aligned to its size.
    pub fn local(&mut self, ty: Type) -> Local {
        let size = ty.bytes(M::LONG_BITS);
        self.local_bytes(size, size)
    }

    /// Makes `bytes` of stack, aligned to `align`, a power of two up to sixteen.
    pub fn local_bytes(&mut self, bytes: u32, align: u32) -> Local {
        let base = M::BOTTOM + self.save_area();
        let align = align.clamp(1, 16).next_power_of_two();
        let at = (base + self.f.locals).next_multiple_of(align);
        if bytes > MOST_LOCALS || at + bytes > MOST_LOCALS {
            self.f.fail(Error::Frame);
            return Local { offset: (M::BIAS + base) as i32 };
        }
        self.f.locals = at + bytes - base;
        self.f.special = true;
        Local { offset: (M::BIAS + at) as i32 }
    }

    /// Puts the address of a variable on the stack into a register.
    pub fn local_address(&mut self, d: M::Reg, local: Local) {
        M::frame_address(self, d, i64::from(local.offset));
    }

    /// Where temporaries that stand in for callee-saved registers are kept during calls: eight bytes per register of
    /// each file, by number.
    #[cold]
    pub(crate) fn stand_in_area(&mut self) -> i32 {
        if let Some(area) = self.f.stand_in_area {
            return area;
        }
        let area = self.local_bytes(2 * 32 * 8, 8).offset;
        self.f.stand_in_area = Some(area);
        area
    }

    /// Ends the function: writes prologue and epilogue, resolves labels, places constants.
    ///
    /// # Errors
    /// The first error since [`Asm::begin`].
    #[inline(always)]
    pub fn end(mut self) -> Result<Code, Error> {
        // The common small function: no frame, no constants, one return, which is last.
        let f = &mut *self.f;
        let ip = f.at(self.cursor.ip);
        let ends_in_jump = self.last_return != Fixup::NONE && self.last_return.site() + 4 == ip && f.last_bound != ip;
        if ends_in_jump && !f.special && f.int.touched | f.float.touched == 0 {
            // Should a reference not be resolved here, the general path resolves all of them again.
            if self.f.resolve_plain::<M>() {
                self.cursor.ip = self.cursor.back(M::JUMP_BYTES);
                M::return_(&mut self);
                let f = &*self.f;
                let entry = M::PROLOGUE as u32;
                let length = f.at(self.cursor.ip).wrapping_sub(entry) as usize;
                let entry_address = f.execute.wrapping_add(entry as usize);
                synchronise(entry_address, length);
                return Ok(Code { entry: entry_address, offset: entry as usize, length, instructions: length });
            }
        }
        if self.last_return != Fixup::NONE {
            self.f.wait(self.last_return);
        }
        Self::end_in_general(self.f, self.cursor, self.left)
    }

    /// Whether the function needs a prologue and an epilogue.
    fn is_framed(&self) -> bool {
        let f = &*self.f;
        f.int.touched | f.float.touched != 0
            || f.calls
            || f.incoming
            || f.locals != 0
            || f.convention.scratch == Scratch::Preserved
    }

    /// Whether the last instruction is a jump to the epilogue, and nothing else comes to what follows it.
    #[inline(always)]
    fn ends_in_jump(&self, ip: u32) -> bool {
        let f = &*self.f;
        f.last_bound != ip
            && f.fixups.last().is_some_and(|last| last.label() == Label::EPILOGUE && last.site() + 4 == ip)
    }

    #[inline(never)]
    fn end_in_general(f: &mut Function, cursor: Cursor, left: usize) -> Result<Code, Error> {
        let mut asm = Asm::<M> { cursor, left, last_return: Fixup::NONE, f, machine: PhantomData };
        asm.finish()
    }

    fn finish(&mut self) -> Result<Code, Error> {
        let framed = self.is_framed();
        let ip = self.f.at(self.cursor.ip);
        // A jump to the epilogue right before the epilogue is no jump.
        if self.ends_in_jump(ip) {
            self.f.fixups.pop();
            self.cursor.ip = self.cursor.back(M::JUMP_BYTES);
        }
        let f = &mut *self.f;
        // Where a jump executes the instruction after it, a return that is last becomes the end of the function.
        let ends_in_return = M::DELAY_SLOTS
            && f.last_bound != ip
            && f.fixups.last().is_some_and(|last| last.label() == Label::EPILOGUE && last.site() + 8 == ip);
        let epilogue = f.at(self.cursor.ip);
        let entry = if framed {
            self.frame()
        } else {
            if !ends_in_return {
                M::return_(self);
                if M::DELAY_SLOTS {
                    M::nop(self);
                }
            }
            self.tail_epilogue(0);
            M::PROLOGUE as u32
        };
        let end = self.f.at(self.cursor.ip);
        if self.f.constants.len() | self.f.fixups.len() != 0 {
            self.resolve(framed, epilogue);
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

    /// Places the constants, and writes into every waiting instruction where its label is.
    #[inline(never)]
    fn resolve(&mut self, framed: bool, epilogue: u32) {
        if self.f.constants.len() != 0 {
            self.place_constants();
        }
        for index in 0..self.f.fixups.len() {
            let Some(fixup) = self.f.fixups.get(index) else { break };
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

    /// Without a frame, returning is one instruction: it replaces the jump to the epilogue.
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
            // Machines that have vectors store the least significant byte first.
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

    /// Writes the epilogue here and the prologue in front of the body; returns where the function starts.
    #[cold]
    #[inline(never)]
    fn frame(&mut self) -> u32 {
        let convention = self.f.convention;
        let mut used = 0_u32;
        let mut slots = SlotWalk { next: 0, used: &mut used };
        slots.take(self.f.calls && M::LINK.is_some());
        for &number in convention.int.saved {
            slots.take(self.f.int.touched & convention.int.bit(number) != 0);
        }
        for &number in convention.float.saved {
            slots.take(self.f.float.touched & convention.float.bit(number) != 0);
        }
        let interrupt = convention.scratch == Scratch::Preserved;
        let own = if self.f.locals != 0 || interrupt { self.save_area() + self.f.locals } else { 8 * used };
        let bare = M::BOTTOM + own;
        let framed = own != 0 || self.f.calls;
        let size = if framed { (bare + M::MISALIGNED).next_multiple_of(16) - M::MISALIGNED } else { 0 };

        self.each_saved(Asm::restore_slot);
        if size != 0 {
            M::leave(self, i64::from(size));
        }
        M::return_(self);
        if M::DELAY_SLOTS {
            M::nop(self);
        }
        self.tail_epilogue(size);

        // The prologue is put together elsewhere, to learn its length.
        let mut buffer = [0_u8; PROLOGUE_BUFFER];
        let (cursor, left) = (self.cursor, self.left);
        self.cursor.ip = buffer.as_mut_ptr();
        self.left = PROLOGUE_BUFFER - SLACK;
        if self.f.incoming {
            M::frame_address(self, M::SCRATCH, 0);
        }
        if size != 0 {
            M::enter(self, i64::from(size));
        }
        self.each_saved(Asm::save_slot);
        let length = self.cursor.ip as usize - buffer.as_ptr() as usize;
        (self.cursor, self.left) = (cursor, left);
        if length > M::PROLOGUE {
            self.f.fail(Error::Frame);
            return 0;
        }
        let body = M::PROLOGUE;
        // SAFETY: the region starts `M::PROLOGUE` bytes before the body, and `length` is at most that.
        unsafe {
            let entry = self.f.start.add(body - length);
            core::ptr::copy_nonoverlapping(buffer.as_ptr(), entry, length);
        }
        (body - length) as u32
    }

    /// The epilogue of tail calls, whose target is in the second scratch register, which no epilogue uses. It arrives in
    /// the first, as the target of every call: there functions of MIPS and Alpha look for their own address.
    fn tail_epilogue(&mut self, size: u32) {
        if self.f.tail.is_none() {
            return;
        }
        self.f.tail = Some(self.f.at(self.cursor.ip));
        if size != 0 {
            self.each_saved(Asm::restore_slot);
            M::leave(self, i64::from(size));
        }
        if M::SCRATCH != M::SECOND_SCRATCH {
            M::copy(self, M::SCRATCH, M::SECOND_SCRATCH);
        }
        M::jump_register(self, M::SCRATCH);
    }

    /// Visits every register that the frame preserves, with its slot.
    fn each_saved(&mut self, visit: fn(&mut Self, Saved<M>, i32)) {
        let convention = self.f.convention;
        let mut at = (M::BIAS + M::BOTTOM) as i32;
        if let Some(link) = M::LINK
            && self.f.calls
        {
            visit(self, Saved::Int(link), at);
        }
        at += 8;
        for &number in convention.int.saved {
            if self.f.int.touched & convention.int.bit(number) != 0 {
                visit(self, Saved::Int(M::Reg::from_number(number)), at);
            }
            at += 8;
        }
        for &number in convention.float.saved {
            if self.f.float.touched & convention.float.bit(number) != 0 {
                visit(self, Saved::Float(M::Float::from_number(number)), at);
            }
            at += 8;
        }
        if convention.scratch == Scratch::Preserved {
            visit(self, Saved::Int(M::SCRATCH), at);
            visit(self, Saved::Int(M::SECOND_SCRATCH), at + 8);
            visit(self, Saved::Float(M::FLOAT_SCRATCH), at + 16);
        }
    }

    fn save_slot(&mut self, saved: Saved<M>, at: i32) {
        match saved {
            Saved::Int(register) => M::save(self, register, at),
            Saved::Float(register) => M::save_float(self, register, at),
        }
    }

    fn restore_slot(&mut self, saved: Saved<M>, at: i32) {
        match saved {
            Saved::Int(register) => M::restore(self, register, at),
            Saved::Float(register) => M::restore_float(self, register, at),
        }
    }
}

/// The parameters so far, while a function begins.
struct Arrivals {
    counters: Counters,
    /// Whether some parameter is not in a register of its file.
    elsewhere: bool,
}

/// A register with a slot in the save area.
#[derive(Debug, Clone, Copy)]
enum Saved<M: Machine> {
    Int(M::Reg),
    Float(M::Float),
}

/// Counts slots up to the last one used.
struct SlotWalk<'a> {
    next: u32,
    used: &'a mut u32,
}

impl SlotWalk<'_> {
    fn take(&mut self, wanted: bool) {
        self.next += 1;
        if wanted {
            *self.used = self.next;
        }
    }
}

/// Makes the instruction fetch see what was written.
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
