//! Vectors: how wide they are, their registers, and the constants that rows keep after the code. Knows no instruction.
//!
//! A function chooses the width of its vectors, and may change it on the way; every vector instruction is then of that
//! width. So one generator writes for processors of all widths, and asks for the best that there is.

use crate::asm::{Asm, Constant, Label};
use crate::error::Error;
use crate::features::Features;
use crate::machine::Machine;
use crate::registers::{Class, Register};

/// A machine with vectors.
#[doc(hidden)]
pub trait VectorMachine: Machine {
    /// A register for vectors.
    type Vector: Register;
    /// Widths in bits, the feature that stands for the width, and the features it needs.
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

    /// Whether a width was chosen; otherwise an instruction on vectors is an error.
    pub(crate) fn has_width(&mut self) -> bool {
        let chosen = self.width_bytes() != 0;
        if !chosen {
            self.f.fail(Error::Feature);
        }
        chosen
    }

    /// A vector fills a register of the floating file. What a function must preserve of such a register is at most its
    /// low half, which is what its prologue saves.
    pub(crate) fn take_vector(&mut self) -> Result<M::Vector, Error> {
        self.getfloat(Class::Temporary).map(|register| M::Vector::from_number(register.number()))
    }

    pub(crate) fn give_vector(&mut self, register: M::Vector) {
        self.putfloat(M::Float::from_number(register.number()));
    }

    /// A label for sixteen bytes, repeated over the width of a vector, after the code. Equal ones share their place.
    pub(crate) fn vector_constant(&mut self, high: u64, bits: u64) -> Label {
        let size = self.width_bytes();
        for index in 0..self.f.constants.len() {
            if let Some(known) = self.f.constants.get(index)
                && (known.bits, known.high, known.size) == (bits, high, size)
            {
                return Label(known.label);
            }
        }
        let label = self.label();
        self.f.special = true;
        if self.f.constants.push(Constant { bits, high, label: label.0, size }).is_none() {
            self.f.fail(Error::Constants);
        }
        label
    }
}
