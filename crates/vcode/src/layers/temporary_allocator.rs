//! The interface through which a layer allocates registers of a function under construction, with machine registers or
//! virtual ones.

use crate::asm::Asm;
use crate::error::Error;
use crate::generated::core::Core;
use crate::layers::virtual_registers::{Virtual, VirtualReg};
use crate::machine::Machine;
use crate::registers::Class;

/// A function under construction of which a layer may allocate registers.
pub trait TemporaryAllocator: Core<Reg: PartialEq> {
    /// Bits of the type long.
    const LONG_BITS: u32;
    /// The maximum number of shifted terms of a product; with more, a multiplication is faster.
    const MAX_TERMS: u32;
    /// A temporary register, if one is free.
    fn get_temporary(&mut self) -> Option<Self::Reg>;
    /// Frees a register of [`TemporaryAllocator::get_temporary`].
    fn put_temporary(&mut self, register: Self::Reg);
    /// Records an error, which the end of the function reports.
    fn refuse(&mut self, error: Error);
}

impl<M: Machine> TemporaryAllocator for Asm<'_, M>
where
    for<'x> Asm<'x, M>: Core<Reg = M::Reg, Float = M::Float>,
{
    const LONG_BITS: u32 = M::LONG_BITS;
    // x86-64 multiplies in three cycles and has two operands; the others take longer or have three.
    const MAX_TERMS: u32 = if M::TWO_OPERAND { 2 } else { 3 };

    fn get_temporary(&mut self) -> Option<M::Reg> {
        self.getreg(Class::Temporary).ok()
    }

    fn put_temporary(&mut self, register: M::Reg) {
        self.putreg(register);
    }

    fn refuse(&mut self, error: Error) {
        self.fail(error);
    }
}

impl<M: Machine> TemporaryAllocator for Virtual<'_, '_, M>
where
    for<'x> Asm<'x, M>: Core<Reg = M::Reg, Float = M::Float>,
{
    const LONG_BITS: u32 = M::LONG_BITS;
    const MAX_TERMS: u32 = <Asm<'_, M> as TemporaryAllocator>::MAX_TERMS;

    fn get_temporary(&mut self) -> Option<VirtualReg<M::Reg>> {
        Some(self.reg(Class::Temporary))
    }

    fn put_temporary(&mut self, register: VirtualReg<M::Reg>) {
        self.release(register);
    }

    fn refuse(&mut self, error: Error) {
        self.asm.fail(error);
    }
}
