//! Functions: parameters, locals, prologue and epilogue.
//!
//! ```text
//! higher   incoming stack arguments
//!          ------------------------ stack pointer at entry
//!          locals
//!          callee-saved registers     slot k at BOTTOM + 8k: return address, integers, floats; in handlers also
//!                                     scratch and special registers; transfer
//!          BOTTOM                     what the machine's convention keeps at the bottom of a frame
//! lower    ------------------------ stack pointer in the body
//! ```
//!
//! As in "VCODE" 5.2, the save area has a fixed size, so that offsets of locals are known at once, and the prologue is
//! written at the end. There are two differences: the prologue is placed directly before the body, so that a function
//! executes only the instructions that it needs; and a function without locals has a frame of the size of its used
//! slots.

use core::marker::PhantomData;

use crate::abi::{Convention, Counters, Place, Places, Scratch};
use crate::asm::{Asm, Fixup, Region, Tables, Workspace};
use crate::cursor::{Cursor, SLACK};
use crate::error::Error;
use crate::kind::Kind;
use crate::machine::Machine;
use crate::registers::{Class, Register};
use crate::signature::{Signature, Type};

/// Where a parameter is.
#[derive(Debug, Clone, Copy)]
pub enum Param<M: Machine> {
    /// Not assigned yet.
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
    /// The address `bytes` higher, within a block of [`Asm::local_bytes`].
    #[must_use]
    pub const fn plus(self, bytes: i32) -> Local {
        Local { offset: self.offset.saturating_add(bytes) }
    }
}

/// The minimum space for instructions after the prologue.
const MIN_BODY: usize = 64;

/// The size of the save area of special registers.
pub(crate) const SPECIAL_REGISTER_BYTES: u32 = 32;

/// Bytes reserved in front of the body for the prologue. Functions that preserve more registers than the machine's own
/// convention, such as interrupt handlers, need more: the longest store of a register is ten bytes.
#[inline(always)]
pub(crate) fn prologue_room<M: Machine>(convention: &Convention) -> usize {
    let (ints, floats) = (convention.int.saved.len(), convention.float.saved.len());
    match convention.scratch {
        Scratch::Free if ints <= M::INT.saved.len() && floats <= M::FLOAT.saved.len() => M::PROLOGUE,
        Scratch::Free | Scratch::Preserved => (M::PROLOGUE + 80 + 10 * (ints + floats)).next_multiple_of(16),
    }
}

/// The most bytes of locals in a frame.
const MAX_LOCALS: u32 = 1 << 20;

impl<'a, M: Machine> Asm<'a, M> {
    /// Begins a function. The registers of its parameters are written to `params`.
    ///
    /// # Errors
    /// [`Error::Signature`], also if it is variadic; [`Error::Arguments`] if `params` has not the length of the
    /// signature, [`Error::Overflow`] if the region cannot even hold a prologue, [`Error::Registers`] if there are more
    /// parameters than registers.
    #[inline(always)]
    pub fn begin<'s, const L: usize, const F: usize, const C: usize>(
        region: Region<'a>,
        workspace: &'a mut Workspace<M, L, F, C>,
        signature: impl Into<Signature<'s>>,
        params: &mut [Param<M>],
        kind: Kind,
    ) -> Result<Self, Error> {
        Self::begin_in(region, workspace.tables(), signature, params, kind, const { &M::CONVENTION })
    }

    /// Begins a function with a calling convention or register classes of the client's. It calls others by the same
    /// one, an interrupt handler functions of C; registers that it must preserve and C functions may destroy are then
    /// always saved.
    ///
    /// # Errors
    /// Those of [`Asm::begin`], and [`Error::RegisterTaken`] if the convention names a register twice, or one that the
    /// machine's own does not hand out, such as the stack pointer; [`Error::ResultPreserved`] if it preserves the
    /// register of results and is not for handlers; [`Error::Place`] if it assigns a parameter an invalid location.
    #[inline(always)]
    pub fn begin_with<'s, const L: usize, const F: usize, const C: usize>(
        region: Region<'a>,
        workspace: &'a mut Workspace<M, L, F, C>,
        signature: impl Into<Signature<'s>>,
        params: &mut [Param<M>],
        kind: Kind,
        convention: &'static Convention,
    ) -> Result<Self, Error> {
        let signature = signature.into();
        let places = convention.check::<M>().and_then(|()| convention.places::<M>(signature))?;
        let mut asm = Self::begin_in(region, workspace.tables(), signature, params, kind, convention)?;
        // The client may change its parameters.
        asm.touch(&places);
        Ok(asm)
    }

    /// Begins a function in tables of any origin.
    #[inline(always)]
    pub(crate) fn begin_in<'s>(
        region: Region<'a>,
        tables: Tables<'a>,
        signature: impl Into<Signature<'s>>,
        params: &mut [Param<M>],
        kind: Kind,
        convention: &'static Convention,
    ) -> Result<Self, Error> {
        let prologue = match kind {
            Kind::Naked => 0,
            Kind::Leaf | Kind::Calls => prologue_room::<M>(convention),
        };
        // Too short, or longer than memory is.
        if region.length.wrapping_sub(prologue + MIN_BODY + SLACK) > isize::MAX as usize {
            return Err(Error::Overflow);
        }
        let small = region.length - SLACK < M::SHORT_BRANCH_RANGE as usize;
        let f = tables.open(&region, convention);
        f.kind = kind;
        f.int.free = convention.int.all;
        f.float.free = convention.float.all;
        f.needs_general_path |= prologue != M::PROLOGUE;
        let cursor = Cursor { ip: f.start.wrapping_add(prologue) };
        // The check above guarantees this much; further space is checked at its use.
        let mut asm = Asm {
            cursor,
            left: MIN_BODY,
            start: f.start,
            small,
            last_return: Fixup::NONE,
            forward: Fixup::NONE,
            f,
            machine: PhantomData,
        };
        asm.parameters(signature.into(), params)?;
        Ok(asm)
    }

    /// Marks the registers in which arguments are passed as changed, so that callee-saved ones are saved.
    pub(crate) fn touch(&mut self, places: &Places) {
        let (int, float) = (&self.f.convention.int, &self.f.convention.float);
        if int.preserved != int.surviving {
            self.f.int.touched |= int.set_of_numbers(places.int) & int.preserved;
        }
        if float.preserved != float.surviving {
            self.f.float.touched |= float.set_of_numbers(places.float) & float.preserved;
        }
    }

    #[inline(always)]
    fn parameters(&mut self, signature: Signature<'_>, params: &mut [Param<M>]) -> Result<(), Error> {
        let mut arrivals = Arrivals { counters: Counters::default(), elsewhere: false };
        match signature {
            // The compiler unrolls and folds this loop for a constant list.
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
                let mut types = signature.types();
                for ty in types.by_ref() {
                    *room.next().ok_or(Error::Arguments)? = self.parameter(ty?, &mut arrivals);
                }
                // The definition of a variadic function: its parameters would have no registers.
                if types.is_rest() {
                    return Err(Error::Signature);
                }
                if room.next().is_some() {
                    return Err(Error::Arguments);
                }
            }
            Signature::Variadic { .. } => return Err(Error::Signature),
        }
        if arrivals.elsewhere || self.f.kind == Kind::Calls {
            return self.move_parameters(signature, params);
        }
        Ok(())
    }

    /// The register in which a parameter arrives; none if it has to be moved before its use.
    #[inline(always)]
    fn parameter(&mut self, ty: Type, arrivals: &mut Arrivals) -> Param<M> {
        let convention = self.f.convention;
        match (convention.place)(&convention.int, &convention.float, &mut arrivals.counters, ty) {
            Place::Int(number) if !ty.is_float() => {
                self.f.int.occupy(&convention.int, number);
                let register = M::Reg::from_number(number);
                if M::EXTENDS_PARAMETERS {
                    self.extend_narrow(ty, register, register);
                }
                Param::Reg(register)
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
        let class = match self.f.kind {
            Kind::Leaf | Kind::Naked => Class::Temporary,
            Kind::Calls => Class::Persistent,
        };
        // Registers first: they are then free for parameters that arrive on the stack.
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
            self.f.needs_general_path = true;
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
                    if M::EXTENDS_PARAMETERS {
                        self.extend_narrow(ty, to, to);
                    }
                    Param::Reg(to)
                }
            };
        }
        Ok(())
    }

    /// Bytes of the save area: return address, callee-saved registers, what interrupt handlers preserve besides, one
    /// slot to move values between files.
    pub(crate) fn save_area(&self) -> u32 {
        let convention = self.f.convention;
        let scratch = match convention.scratch {
            Scratch::Preserved if M::CLOBBERS_SPECIAL_REGISTERS => 3 * 8 + SPECIAL_REGISTER_BYTES,
            Scratch::Preserved => 3 * 8,
            Scratch::Free => 0,
        };
        8 * (2 + convention.int.saved.len() + convention.float.saved.len()) as u32 + scratch
    }

    fn transfer_slot(&self) -> i32 {
        (M::BIAS + M::BOTTOM + self.save_area() - 8) as i32
    }

    /// The stack slot in which a call parks a value, or through which it moves one between register files. It is the
    /// last slot of the save area, so that the frame needs the complete area.
    pub(crate) fn transfer(&mut self) -> i32 {
        self.f.locals = self.f.locals.max(8);
        self.f.needs_general_path = true;
        self.transfer_slot()
    }

    /// Allocates a variable on the stack, aligned to its size.
    pub fn local(&mut self, ty: Type) -> Local {
        let size = ty.bytes(M::LONG_BITS);
        self.local_bytes(size, size)
    }

    /// Allocates `bytes` of stack, aligned to `align`, a power of two up to sixteen.
    pub fn local_bytes(&mut self, bytes: u32, align: u32) -> Local {
        let base = M::BOTTOM + self.save_area();
        let align = align.clamp(1, 16).next_power_of_two();
        let at = (base + self.f.locals).next_multiple_of(align);
        if bytes > MAX_LOCALS || at + bytes > MAX_LOCALS {
            self.f.fail(Error::Frame);
            return Local { offset: (M::BIAS + base) as i32 };
        }
        self.f.locals = at + bytes - base;
        self.f.needs_general_path = true;
        Local { offset: (M::BIAS + at) as i32 }
    }

    /// Puts the address of a variable on the stack into a register.
    pub fn local_address(&mut self, d: M::Reg, local: Local) {
        M::frame_address(self, d, i64::from(local.offset));
    }

    /// The area where temporaries of [`Class::Persistent`] are saved around calls: eight bytes per register of each
    /// file, by number.
    #[cold]
    pub(crate) fn caller_save_area(&mut self) -> i32 {
        if let Some(area) = self.f.caller_save_area {
            return area;
        }
        let area = self.local_bytes(2 * 32 * 8, 8).offset;
        self.f.caller_save_area = Some(area);
        area
    }
}

/// The parameters so far, while a function begins.
struct Arrivals {
    counters: Counters,
    /// Whether some parameter is not in a register of its file.
    elsewhere: bool,
}
