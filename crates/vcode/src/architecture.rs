//! The constants of a machine: registers, sizes, features, and how a branch is patched. The generated modules implement
//! them. No instruction is known here.

use crate::abi::Abi;
use crate::features::Features;
use crate::registers::{Register, RegisterFile};

/// The constants of a machine.
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
    /// The size bound of each instruction that all machines have, by its number: so many bytes are reserved before it
    /// is written.
    const MAX_BYTES: &'static [u8];
    /// Its integer registers.
    const INT: RegisterFile;
    /// Its floating registers.
    const FLOAT: RegisterFile;
    /// The stack pointer.
    const STACK: Self::Reg;
    /// A scratch register that any instruction may overwrite.
    const SCRATCH: Self::Reg;
    /// The scratch register for immediates that do not fit an instruction.
    const SECOND_SCRATCH: Self::Reg;
    /// A scratch register that any floating instruction may overwrite.
    const FLOAT_SCRATCH: Self::Float;
    /// The register in which functions return integers.
    const RESULT: Self::Reg;
    /// The register in which functions return floats and doubles.
    const FLOAT_RESULT: Self::Float;
    /// Whether calls leave the return address in a register (a link register) instead of pushing it.
    const HAS_LINK_REGISTER: bool;
    /// Whether instructions change registers besides those of the lists and the scratch registers: HI and LO of MIPS,
    /// the condition register of Power.
    const CLOBBERS_SPECIAL_REGISTERS: bool;
    /// The distance in bytes that every short branch reaches; `u32::MAX` if the machine has branches of one length
    /// only.
    const SHORT_BRANCH_RANGE: u32;

    /// Writes a distance into the instruction at `site`; false if the field is too small for it.
    fn patch(kind: u8, site: &mut [u8; 4], distance: i64) -> bool;
}
