//! The constants of a machine: its registers, sizes, features, and how a branch is patched. Implemented by the generated
//! modules. Knows no instruction.

use crate::abi::Abi;
use crate::features::Features;
use crate::registers::{Lists, Register};

/// What a machine is made of.
#[doc(hidden)]
pub trait Architecture: Abi + Sized + Copy + 'static {
    /// A register for integers and pointers.
    type Reg: Register;
    /// A register for floats and doubles.
    type Float: Register;
    /// The name of its specification.
    const NAME: &'static str;
    /// Bits of the type long.
    const LONG_BITS: u32;
    /// Every feature that a processor of the machine may have.
    const FEATURES: Features;
    /// Bytes each instruction that all machines have asks for before it writes, by number.
    const MAX_BYTES: &'static [u8];
    /// Its integer registers.
    const INT: Lists;
    /// Its floating registers.
    const FLOAT: Lists;
    /// The stack pointer.
    const STACK: Self::Reg;
    /// Free for use inside one instruction.
    const SCRATCH: Self::Reg;
    /// Free for immediates that do not fit.
    const SECOND_SCRATCH: Self::Reg;
    /// Free for use inside one floating instruction.
    const FLOAT_SCRATCH: Self::Float;
    /// Where functions return integers.
    const RESULT: Self::Reg;
    /// Where functions return floats and doubles.
    const FLOAT_RESULT: Self::Float;
    /// Whether calls leave the return address anywhere but on the stack.
    const HAS_LINK_REGISTER: bool;
    /// Whether its instructions change more than the registers of the lists and the scratch registers.
    const CLOBBERS_SPECIAL_REGISTERS: bool;
    /// How far, in bytes, its short branches certainly reach; the largest number if it has no others.
    const SHORT_BRANCH_RANGE: u32;

    /// Writes a distance into the instruction at `site`; false if it does not reach.
    fn patch(kind: u8, site: &mut [u8; 4], distance: i64) -> bool;
}
