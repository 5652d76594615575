//! Errors of code generation. The first error is recorded and reported by `end`; after an error nothing is written
//! outside of the region.

use core::fmt;

/// Why a function could not be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The region is too small for the code.
    Overflow,
    /// The workspace has no room for another label.
    Labels,
    /// The workspace has no room for another unresolved reference to a label.
    Fixups,
    /// The workspace has no room for another floating constant.
    Constants,
    /// A label was used and never bound.
    UnboundLabel,
    /// A label was bound twice.
    BoundTwice,
    /// A label is further away than a branch of this machine reaches.
    BranchRange,
    /// An immediate does not fit the type of the instruction.
    Immediate,
    /// A leaf function or a naked routine contains a call.
    CallInLeaf,
    /// The registers of this class are all taken.
    Registers,
    /// A register was claimed that is taken or not available.
    RegisterTaken,
    /// A type string or typed signature is malformed.
    Signature,
    /// A convention preserves the register in which functions return.
    ResultPreserved,
    /// A convention places an argument where it cannot travel.
    Place,
    /// A label that `jal` calls is not bound by [`Asm::procedure`](crate::Asm::procedure).
    Procedure,
    /// The number or kind of arguments differs from the signature.
    Arguments,
    /// The frame is too large.
    Frame,
    /// A naked routine needs a frame: for a variable or a parameter on the stack, or because its convention preserves
    /// scratch registers.
    Naked,
    /// The processor that the function is written for lacks this instruction.
    Feature,
    /// The operating system refused memory.
    Memory,
    /// Code memory is not implemented for this operating system.
    NoCodeMemory,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Error::Overflow => "the region is too small for the code",
            Error::Labels => "the workspace has no room for another label",
            Error::Fixups => "the workspace has no room for another unresolved reference to a label",
            Error::Constants => "the workspace has no room for another floating constant",
            Error::UnboundLabel => "a label was used and never bound",
            Error::BoundTwice => "a label was bound twice",
            Error::BranchRange => "a label is further away than a branch of this machine reaches",
            Error::Immediate => "an immediate does not fit the type of the instruction",
            Error::CallInLeaf => "a leaf function or a naked routine contains a call",
            Error::Registers => "the registers of this class are all taken",
            Error::RegisterTaken => "a register was claimed that is taken or not available",
            Error::Signature => "the signature is malformed",
            Error::ResultPreserved => {
                "`saved` of the convention has the register of results, so callers would not see them; put it into `temp`"
            }
            Error::Place => {
                "`place` of the convention names a register that is not in `args`, is of the wrong file or size or carries \
                 another argument, or stack that it has not counted"
            }
            Error::Procedure => "a label that `jal` calls is not bound by `procedure`",
            Error::Arguments => "the arguments differ from the signature",
            Error::Frame => "the frame is too large",
            Error::Naked => {
                "a naked routine has no frame: keep variables in registers, pass parameters in registers, or choose another kind"
            }
            Error::Feature => "the processor lacks this instruction",
            Error::Memory => "the operating system refused memory",
            Error::NoCodeMemory => "no code memory on this system",
        })
    }
}

impl core::error::Error for Error {}
