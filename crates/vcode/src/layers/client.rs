//! What layers need of a function under construction besides its instructions, be it written with machine registers or
//! with virtual ones.

use crate::asm::Asm;
use crate::generated::core::Core;
use crate::layers::virtual_registers::{Virtual, VirtualReg};
use crate::machine::Machine;
use crate::registers::Class;

/// A function under construction that a layer may ask for registers.
pub trait Client: Core<Reg: PartialEq> {
    /// Bits of the type long.
    const LONG_BITS: u32;
    /// How many shifted terms are added or subtracted before a multiplication is quicker.
    const MAX_TERMS: u32;
    /// A temporary register, if one is free.
    fn get_temporary(&mut self) -> Option<Self::Reg>;
    /// Gives it back.
    fn put_temporary(&mut self, register: Self::Reg);
}

impl<M: Machine> Client for Asm<'_, M>
where
    for<'x> Asm<'x, M>: Core<Reg = M::Reg, Float = M::Float>,
{
    const LONG_BITS: u32 = M::LONG_BITS;
    // x86-64 multiplies in three cycles and has two operands; the others take longer or have three.
    const MAX_TERMS: u32 = if M::SITE_BACK != 0 { 2 } else { 3 };

    fn get_temporary(&mut self) -> Option<M::Reg> {
        self.getreg(Class::Temporary).ok()
    }

    fn put_temporary(&mut self, register: M::Reg) {
        self.putreg(register);
    }
}

impl<M: Machine> Client for Virtual<'_, '_, M>
where
    for<'x> Asm<'x, M>: Core<Reg = M::Reg, Float = M::Float>,
{
    const LONG_BITS: u32 = M::LONG_BITS;
    const MAX_TERMS: u32 = <Asm<'_, M> as Client>::MAX_TERMS;

    fn get_temporary(&mut self) -> Option<VirtualReg<M::Reg>> {
        Some(self.reg(Class::Temporary))
    }

    fn put_temporary(&mut self, register: VirtualReg<M::Reg>) {
        self.release(register);
    }
}
