//! Register allocation by the client: by class, or of particular registers.

use crate::asm::Asm;
use crate::error::Error;
use crate::machine::Machine;
use crate::registers::{Class, Register};

impl<M: Machine> Asm<'_, M> {
    /// Takes a register; in order of the convention's lists, temporaries first for [`Class::Temporary`].
    ///
    /// # Errors
    /// [`Error::Registers`] when all are taken. This error does not stick: the client may keep the value in a local.
    #[inline(always)]
    pub fn getreg(&mut self, class: Class) -> Result<M::Reg, Error> {
        let f = &mut *self.f;
        let convention = f.convention;
        let surviving = || convention.surviving(&convention.int, &M::INT);
        let taken =
            f.int.allocate(&convention.int, class, f.leaf, M::RESULT.number(), surviving).ok_or(Error::Registers)?;
        if taken.saved_around_calls {
            self.caller_save_area();
        }
        Ok(M::Reg::from_number(taken.number))
    }

    /// Takes a floating register, like [`Asm::getreg`].
    ///
    /// # Errors
    /// [`Error::Registers`] when all are taken; it does not stick.
    #[inline]
    pub fn getfloat(&mut self, class: Class) -> Result<M::Float, Error> {
        let f = &mut *self.f;
        let convention = f.convention;
        let surviving = || convention.surviving(&convention.float, &M::FLOAT);
        let result = M::FLOAT_RESULT.number();
        let taken = f.float.allocate(&convention.float, class, f.leaf, result, surviving).ok_or(Error::Registers)?;
        if taken.saved_around_calls {
            self.caller_save_area();
        }
        Ok(M::Float::from_number(taken.number))
    }

    /// Takes a particular register, such as a hard-coded one, so that it is preserved if it has to be.
    ///
    /// # Errors
    /// [`Error::RegisterTaken`] if it is taken or not available to functions; it does not stick.
    #[inline]
    pub fn claim(&mut self, register: M::Reg) -> Result<(), Error> {
        let f = &mut *self.f;
        if f.int.claim(&f.convention.int, register.number()) { Ok(()) } else { Err(Error::RegisterTaken) }
    }

    /// Takes a particular floating register.
    ///
    /// # Errors
    /// [`Error::RegisterTaken`] if it is taken or not available to functions; it does not stick.
    #[inline]
    pub fn claim_float(&mut self, register: M::Float) -> Result<(), Error> {
        let f = &mut *self.f;
        if f.float.claim(&f.convention.float, register.number()) { Ok(()) } else { Err(Error::RegisterTaken) }
    }

    /// Gives a register back.
    #[inline]
    pub fn putreg(&mut self, register: M::Reg) {
        self.f.int.free(&self.f.convention.int, register.number());
    }

    /// Gives a floating register back.
    #[inline]
    pub fn putfloat(&mut self, register: M::Float) {
        self.f.float.free(&self.f.convention.float, register.number());
    }
}
