//! The types of the instruction set.

/// A type of the instruction set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    V,
    C,
    Uc,
    S,
    Us,
    I,
    U,
    L,
    Ul,
    P,
    F,
    D,
}

impl Type {
    pub fn bits(self, long: u32) -> u32 {
        match self {
            Type::V => 0,
            Type::C | Type::Uc => 8,
            Type::S | Type::Us => 16,
            Type::I | Type::U | Type::F => 32,
            Type::L | Type::Ul | Type::P => long,
            Type::D => 64,
        }
    }

    pub fn is_float(self) -> bool {
        matches!(self, Type::F | Type::D)
    }

    /// The type of a register that holds it: narrow values are held as ints.
    pub fn held(self) -> Type {
        match self {
            Type::C | Type::Uc | Type::S | Type::Us => Type::I,
            Type::V | Type::I | Type::U | Type::L | Type::Ul | Type::P | Type::F | Type::D => self,
        }
    }
}
