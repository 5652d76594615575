//! Vectors: their width, their registers, and vector constants in the constant pool. No instruction is known here.
//!
//! A function selects the width of its vectors, and may select another later; every vector instruction is of the
//! selected width. So one generator writes code for processors of all widths.

use crate::asm::{Asm, Label};
use crate::error::Error;
use crate::features::Features;
use crate::machine::Machine;
use crate::registers::{Class, Register};

/// A machine with vectors.
#[doc(hidden)]
pub trait VectorMachine: Machine {
    /// A register for vectors.
    type Vector: Register;
    /// Widths in bits, the feature bit that represents the width, and the features that it requires.
    const WIDTHS: &'static [(u32, u64, u64)];
}

impl<M: VectorMachine> Asm<'_, M> {
    pub(crate) fn choose_width(&mut self, bits: u32) -> Result<(), Error> {
        let all = M::WIDTHS.iter().fold(0, |all, (_, own, _)| all | own);
        let features = self.f.features.bits();
        let found = M::WIDTHS.iter().find(|(width, _, needs)| *width == bits && features & needs == *needs);
        let (_, own, _) = found.ok_or(Error::Feature)?;
        self.f.features = Features::from_bits(features & !all | own);
        Ok(())
    }

    pub(crate) fn width_bytes(&self) -> u32 {
        let features = self.f.features.bits();
        M::WIDTHS.iter().find(|(_, own, _)| features & own != 0).map_or(0, |(bits, _, _)| bits / 8)
    }

    /// Whether a width was selected; without one a vector instruction is an error.
    pub(crate) fn has_width(&mut self) -> bool {
        let chosen = self.width_bytes() != 0;
        if !chosen {
            self.f.fail(Error::Feature);
        }
        chosen
    }

    /// Vectors are in the registers of the floating file. Calling conventions preserve at most the low half of such a
    /// register, which is what prologues save.
    pub(crate) fn take_vector(&mut self) -> Result<M::Vector, Error> {
        self.getfloat(Class::Temporary).map(|register| M::Vector::from_number(register.number()))
    }

    pub(crate) fn give_vector(&mut self, register: M::Vector) {
        self.putfloat(M::Float::from_number(register.number()));
    }

    /// The label of a pool constant of sixteen bytes, repeated to the width of a vector. Equal constants share an
    /// entry.
    pub(crate) fn vector_constant(&mut self, high: u64, bits: u64) -> Label {
        self.pool_constant(high, bits, self.width_bytes())
    }
}
