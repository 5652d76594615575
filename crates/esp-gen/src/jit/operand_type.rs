//! The operand types of machine instructions: VCODE's `i`, `u`, `l` and `ul`.

use quaject_esp_exec::native::Width;

/// The operand type of a machine instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Type {
    I,
    U,
    L,
    UL,
}

impl Type {
    pub(super) fn of(width: Width) -> Type {
        match (width.bits, width.signed) {
            (64, true) => Type::L,
            (64, false) => Type::UL,
            (_, true) => Type::I,
            (_, false) => Type::U,
        }
    }

    pub(super) fn is_long(self) -> bool {
        match self {
            Type::I | Type::U => false,
            Type::L | Type::UL => true,
        }
    }
}
