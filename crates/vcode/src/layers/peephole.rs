//! Peephole optimisation (McKeeman 1965) in a window over the last few instructions, which are held back before they
//! are written. "VCODE" 6.2 names the lack of one as a weakness of the system.
//!
//! ```text
//!   client ──> simplified ──> [ older ... newer ] ──> written by the core
//!                             dead code is removed
//! ```
//!
//! A new instruction is simplified by copy propagation, constant folding, algebraic identities, reassociation of
//! constant addends, store-to-load forwarding and redundant load elimination. A held instruction is removed (dead code,
//! dead store) if its result is overwritten, or freed with [`Peephole::putreg`], before it is read. A constant with one
//! reader becomes the reader's immediate, and a result that is only copied is computed into the destination of the copy
//! (coalescing). Labels, branches, calls, returns and every use of [`Peephole::asm`] end the window: the held
//! instructions are written first, in order.
//!
//! Assumptions:
//!
//! - A register that was freed is not read before it is written again.
//! - A register is read with the type with which it was written: an `int` is not read as a `long`.
//! - Memory is not volatile. Between accesses to device registers, or to memory that other threads write, call
//!   [`Peephole::flush`]. The first access to an address always stays, and so does its fault.
//!
//! Nothing is reordered. Nothing is allocated: the window is part of the value.

mod constants;
mod rules;
mod window;

use crate::asm::{Asm, Code, Label};
use crate::error::Error;
use crate::frame::Local;
use crate::generated::core::{Core, Extension};
use crate::generated::peephole::{Op, write};
use crate::instruction::Family;
use crate::layers::temporary_allocator::TemporaryAllocator;
use crate::machine::Machine;
use crate::registers::{Class, Register};
use crate::signature::Type;
use window::{Pushed, Window};

/// The form of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// The last operand is a register, or there is only one form.
    Register,
    /// The last operand is a constant.
    Immediate,
    /// The base is the stack pointer.
    Local,
}

/// The description of an instruction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) op: Op,
    pub(crate) family: Family,
    pub(crate) ty: Option<Type>,
    pub(crate) source: Option<Type>,
    pub(crate) form: Form,
}

/// An instruction that is held back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Held {
    /// Its immediate, its offset, that of its local, or the bits of its floating constant.
    pub(crate) constant: i64,
    pub(crate) label: u32,
    pub(crate) number: u16,
    /// The register it writes.
    pub(crate) to: u8,
    /// The registers it reads, in the order of its operands.
    pub(crate) from: [u8; 3],
}

/// No register.
pub(crate) const NONE: u8 = 0xff;
/// Added to the number of a floating register.
pub(crate) const FLOAT: u8 = 0x80;

/// The integer register with this held number.
#[inline(always)]
pub(crate) fn int<M: Machine>(number: u8) -> M::Reg {
    M::Reg::from_number(number)
}

/// The floating register with this held number.
#[inline(always)]
pub(crate) fn float<M: Machine>(number: u8) -> M::Float {
    M::Float::from_number(number & !FLOAT)
}

/// A function under construction through a window. The instructions are the methods of [`Core`] and [`Extension`].
///
/// ```
/// # use quaject_vcode::{Asm, Class, Core, Error, Kind, Param, Region, Workspace, layers::peephole::Peephole};
/// # use quaject_vcode::riscv64::Riscv64;
/// # let (mut bytes, mut workspace, mut params) = ([0_u8; 512], Workspace::<Riscv64>::new(), [Param::NONE]);
/// # let asm = Asm::begin(Region::from(&mut bytes[..]), &mut workspace, "%l", &mut params, Kind::Leaf)?;
/// let mut asm = Peephole::new(asm);
/// let (x, t) = (params[0].reg(), asm.getreg(Class::Temporary)?);
/// asm.setl(t, 5);
/// asm.addl(t, x, t);
/// asm.movl(x, t);
/// asm.putreg(t);
/// asm.retl(x);
/// assert_eq!(asm.end()?.instructions, 8, "x + 5, and the return");
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
pub struct Peephole<'a, M: Machine> {
    asm: Asm<'a, M>,
    window: Window,
}

impl<'a, M: Machine> Peephole<'a, M>
where
    for<'x> Asm<'x, M>: Extension + Core<Reg = M::Reg, Float = M::Float>,
{
    /// Wraps a function under construction.
    pub fn new(asm: Asm<'a, M>) -> Self {
        Peephole { asm, window: Window::new(M::LONG_BITS) }
    }

    /// Writes the held instructions.
    #[inline(never)]
    pub fn flush(&mut self) {
        for held in self.window.held() {
            write(&mut self.asm, held);
        }
        self.window.clear();
    }

    /// The function itself, for operations that this layer does not offer; the held instructions are written first.
    pub fn asm(&mut self) -> &mut Asm<'a, M> {
        self.flush();
        &mut self.asm
    }

    /// Allocates a register, as [`Asm::getreg`].
    ///
    /// # Errors
    /// [`Error::Registers`] when all are taken; it does not stick.
    pub fn getreg(&mut self, class: Class) -> Result<M::Reg, Error> {
        self.asm.getreg(class)
    }

    /// Allocates a floating register, as [`Asm::getfloat`].
    ///
    /// # Errors
    /// [`Error::Registers`] when all are taken; it does not stick.
    pub fn getfloat(&mut self, class: Class) -> Result<M::Float, Error> {
        self.asm.getfloat(class)
    }

    /// Allocates a particular register, as [`Asm::claim`].
    ///
    /// # Errors
    /// [`Error::RegisterTaken`] if it is in use or not allocatable; it is not recorded.
    pub fn claim(&mut self, register: M::Reg) -> Result<(), Error> {
        self.asm.claim(register)
    }

    /// Frees a register: its live range ends.
    pub fn putreg(&mut self, register: M::Reg) {
        self.asm.putreg(register);
        self.window.end_live_range(register.number());
    }

    /// Frees a floating register: its live range ends.
    pub fn putfloat(&mut self, register: M::Float) {
        self.asm.putfloat(register);
        self.window.end_live_range(FLOAT | register.number());
    }

    /// Makes a label, as [`Asm::label`].
    pub fn label(&mut self) -> Label {
        self.asm.label()
    }

    /// Binds a label to the next instruction, as [`Asm::bind`].
    pub fn bind(&mut self, label: Label) {
        self.asm().bind(label);
    }

    /// Begins a local procedure, as [`Asm::procedure`].
    pub fn procedure(&mut self, label: Label, link: M::Reg) {
        self.asm().procedure(label, link);
    }

    /// Allocates a variable on the stack, as [`Asm::local`].
    pub fn local(&mut self, ty: Type) -> Local {
        self.asm.local(ty)
    }

    /// Allocates `bytes` of stack, as [`Asm::local_bytes`].
    pub fn local_bytes(&mut self, bytes: u32, align: u32) -> Local {
        self.asm.local_bytes(bytes, align)
    }

    /// The first error so far, as [`Asm::error`].
    pub fn error(&self) -> Option<Error> {
        self.asm.error()
    }

    /// Ends the function, as [`Asm::end`].
    ///
    /// # Errors
    /// The first error since the function was begun.
    pub fn end(mut self) -> Result<Code, Error> {
        self.flush();
        self.asm.end()
    }

    /// Adds the next instruction. A branch to an unbound label is held too, as the last one, because the registers that
    /// it reads are often freed right after it.
    #[inline(never)]
    pub(crate) fn push(&mut self, new: Held) {
        if self.window.ends_in_branch() {
            self.flush();
        }
        match self.window.push(new) {
            Pushed::Held => {}
            Pushed::Full(oldest) => write(&mut self.asm, &oldest),
            Pushed::Branch if self.asm.is_ahead(Label(new.label)) => {}
            Pushed::Branch | Pushed::End => self.flush(),
        }
    }
}

impl<M: Machine> TemporaryAllocator for Peephole<'_, M>
where
    for<'x> Asm<'x, M>: Extension + Core<Reg = M::Reg, Float = M::Float>,
{
    const LONG_BITS: u32 = M::LONG_BITS;
    const MAX_TERMS: u32 = <Asm<'_, M> as TemporaryAllocator>::MAX_TERMS;

    fn get_temporary(&mut self) -> Option<M::Reg> {
        self.getreg(Class::Temporary).ok()
    }

    fn put_temporary(&mut self, register: M::Reg) {
        self.putreg(register);
    }

    fn refuse(&mut self, error: Error) {
        self.asm.fail(error);
    }
}
