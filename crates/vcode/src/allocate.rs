//! Register allocation by the client ("VCODE" 3.2): of a register of a class, or of a particular register.

use crate::asm::Asm;
use crate::error::Error;
use crate::kind::Kind;
use crate::machine::Machine;
use crate::registers::{Class, Register};

impl<M: Machine> Asm<'_, M> {
    /// Allocates a register, in order of the convention's lists; temporaries first for [`Class::Temporary`].
    ///
    /// # Errors
    /// [`Error::Registers`] when all are in use. This error is not recorded: the client may keep the value in a local.
    #[inline(always)]
    pub fn getreg(&mut self, class: Class) -> Result<M::Reg, Error> {
        let f = &mut *self.f;
        let convention = f.convention;
        let surviving = || convention.surviving(&convention.int, &M::INT);
        let taken = f
            .int
            .allocate(&convention.int, class, f.kind != Kind::Calls, M::RESULT.number(), surviving)
            .ok_or(Error::Registers)?;
        if taken.saved_around_calls {
            self.caller_save_area();
        }
        Ok(M::Reg::from_number(taken.number))
    }

    /// Allocates a floating register, like [`Asm::getreg`].
    ///
    /// # Errors
    /// [`Error::Registers`] when all are in use; it is not recorded.
    #[inline]
    pub fn getfloat(&mut self, class: Class) -> Result<M::Float, Error> {
        let f = &mut *self.f;
        let convention = f.convention;
        let surviving = || convention.surviving(&convention.float, &M::FLOAT);
        let result = M::FLOAT_RESULT.number();
        let taken = f
            .float
            .allocate(&convention.float, class, f.kind != Kind::Calls, result, surviving)
            .ok_or(Error::Registers)?;
        if taken.saved_around_calls {
            self.caller_save_area();
        }
        Ok(M::Float::from_number(taken.number))
    }

    /// Allocates a particular register, such as a hard-coded one, so that the function preserves it if it has to.
    ///
    /// # Errors
    /// [`Error::RegisterTaken`] if it is in use or not allocatable; it is not recorded.
    #[inline]
    pub fn claim(&mut self, register: M::Reg) -> Result<(), Error> {
        let f = &mut *self.f;
        if f.int.claim(&f.convention.int, register.number()) { Ok(()) } else { Err(Error::RegisterTaken) }
    }

    /// Allocates a particular floating register.
    ///
    /// # Errors
    /// [`Error::RegisterTaken`] if it is in use or not allocatable; it is not recorded.
    #[inline]
    pub fn claim_float(&mut self, register: M::Float) -> Result<(), Error> {
        let f = &mut *self.f;
        if f.float.claim(&f.convention.float, register.number()) { Ok(()) } else { Err(Error::RegisterTaken) }
    }

    /// Frees a register.
    #[inline]
    pub fn putreg(&mut self, register: M::Reg) {
        self.f.int.free(&self.f.convention.int, register.number());
    }

    /// Frees a floating register.
    #[inline]
    pub fn putfloat(&mut self, register: M::Float) {
        self.f.float.free(&self.f.convention.float, register.number());
    }
}
