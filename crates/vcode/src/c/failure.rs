//! Errors for C: the codes of `enum qjl_status`, their texts, and the ways out in terms of the header.

use std::ffi::CStr;
use std::format;
use std::string::{String, ToString};

use crate::error::Error;

/// A code of `enum qjl_status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub(super) enum Status {
    Ok = 0,
    Overflow = 1,
    Labels = 2,
    Fixups = 3,
    Constants = 4,
    UnboundLabel = 5,
    BoundTwice = 6,
    BranchRange = 7,
    Immediate = 8,
    CallInLeaf = 9,
    Registers = 10,
    Signature = 11,
    Frame = 12,
    Feature = 13,
    Arguments = 14,
    RegisterTaken = 15,
    ResultPreserved = 16,
    Place = 17,
    Procedure = 18,
    Memory = 32,
    NoCodeMemory = 33,
    Option = 34,
    Instruction = 35,
    Operands = 36,
    RegisterClass = 37,
    Register = 38,
    Label = 39,
    Variable = 40,
    Ended = 41,
    NotEnded = 42,
    OtherMachine = 43,
    NotInstalled = 44,
    NoFrames = 45,
    Null = 46,
    Internal = 47,
}

impl Status {
    const ALL: [Status; 35] = [
        Status::Ok,
        Status::Overflow,
        Status::Labels,
        Status::Fixups,
        Status::Constants,
        Status::UnboundLabel,
        Status::BoundTwice,
        Status::BranchRange,
        Status::Immediate,
        Status::CallInLeaf,
        Status::Registers,
        Status::Signature,
        Status::Frame,
        Status::Feature,
        Status::Arguments,
        Status::RegisterTaken,
        Status::ResultPreserved,
        Status::Place,
        Status::Procedure,
        Status::Memory,
        Status::NoCodeMemory,
        Status::Option,
        Status::Instruction,
        Status::Operands,
        Status::RegisterClass,
        Status::Register,
        Status::Label,
        Status::Variable,
        Status::Ended,
        Status::NotEnded,
        Status::OtherMachine,
        Status::NotInstalled,
        Status::NoFrames,
        Status::Null,
        Status::Internal,
    ];

    /// The status with this code.
    pub(super) fn of_code(code: i32) -> Option<Status> {
        Status::ALL.into_iter().find(|status| *status as i32 == code)
    }

    /// The cause, a colon, and the way out.
    pub(super) fn text(self) -> &'static CStr {
        match self {
            Status::Ok => c"no error",
            Status::Overflow => c"the function is longer than its memory: set `bytes` of the options higher",
            Status::Labels => c"there are too many labels: set `labels` of the options higher",
            Status::Fixups => c"too many references wait for their labels: set `references` of the options higher",
            Status::Constants => c"there are too many floating constants: set `constants` of the options higher",
            Status::UnboundLabel => c"a label was used and never bound: bind it with qjl_bind",
            Status::BoundTwice => c"a label was bound twice: use one label for each place",
            Status::BranchRange => {
                c"a label is further away than a branch of this machine reaches: divide the function"
            }
            Status::Immediate => c"a constant does not fit its type: load a wider one with qjl_setl",
            Status::CallInLeaf => c"a leaf function contains a call: begin it with the kind QJL_CALLS",
            Status::Registers => c"all registers of this class are taken: give some back, or use the layer QJL_VIRTUAL",
            Status::Signature => c"the type string is malformed: it consists of % and a type, and `...` in calls",
            Status::Frame => c"the frame is too large: its variables and spilled registers take at most a megabyte",
            Status::Feature => c"the processor lacks the instruction: allow its features with qjl_use_features",
            Status::Arguments => c"the arguments differ from the type string, or do not fit a tail call",
            Status::RegisterTaken => c"a register is taken or not available: use another one",
            Status::ResultPreserved => c"a convention preserves the register of results",
            Status::Place => c"a convention assigns an argument a location that it cannot have",
            Status::Procedure => c"qjl_jal calls a label that is no procedure: bind it with qjl_procedure",
            Status::Memory => c"there is no memory for this: free what is not used, or ask for less",
            Status::NoCodeMemory => c"there is no code memory on this system: copy the bytes of the function elsewhere",
            Status::Option => c"an option has an impossible value: see `struct qjl_options`",
            Status::Instruction => c"there is no such instruction: use the functions of the header",
            Status::Operands => c"the operands are not of the number and kind that the instruction takes",
            Status::RegisterClass => {
                c"an integer register stands where a floating one is wanted, or the reverse: make another register"
            }
            Status::Register => c"a register is not of this function, or was given back: make one with qjl_getreg",
            Status::Label => c"a label is not of this function: make one with qjl_label",
            Status::Variable => c"a variable is not of this function, or an access leaves it: see qjl_local_bytes",
            Status::Ended => c"the function has ended: begin another one",
            Status::NotEnded => c"the function has not ended: call qjl_end first",
            Status::OtherMachine => c"the function is for another machine: copy its bytes there",
            Status::NotInstalled => c"the address is not that of a function in this memory: give what qjl_install gave",
            Status::NoFrames => {
                c"no unwind information on this system: make it on Linux, on x86-64, AArch64 or RISC-V 64"
            }
            Status::Null => c"a pointer is null: look at the status of the function that was to set it",
            Status::Internal => c"an internal error: please report it with the program",
        }
    }
}

/// An error: its code, and more about the case if there is something to say.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) status: Status,
    detail: String,
}

impl Failure {
    pub(super) fn new(status: Status, detail: impl ToString) -> Failure {
        Failure { status, detail: detail.to_string() }
    }

    /// What happened, and what to do about it.
    pub(super) fn text(&self) -> String {
        let general = self.status.text().to_string_lossy();
        if self.detail.is_empty() { general.into_owned() } else { format!("{}: {general}", self.detail) }
    }
}

impl From<Status> for Failure {
    fn from(status: Status) -> Failure {
        Failure { status, detail: String::new() }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let status = match error {
            Error::Overflow => Status::Overflow,
            Error::Labels => Status::Labels,
            Error::Fixups => Status::Fixups,
            Error::Constants => Status::Constants,
            Error::UnboundLabel => Status::UnboundLabel,
            Error::BoundTwice => Status::BoundTwice,
            Error::BranchRange => Status::BranchRange,
            Error::Immediate => Status::Immediate,
            Error::CallInLeaf => Status::CallInLeaf,
            Error::Registers => Status::Registers,
            Error::RegisterTaken => Status::RegisterTaken,
            Error::Signature => Status::Signature,
            Error::ResultPreserved => Status::ResultPreserved,
            Error::Place => Status::Place,
            Error::Procedure => Status::Procedure,
            Error::Arguments => Status::Arguments,
            // Naked routines are for clients in Rust.
            Error::Frame | Error::Naked => Status::Frame,
            Error::Feature => Status::Feature,
            Error::Memory => Status::Memory,
            Error::NoCodeMemory => Status::NoCodeMemory,
        };
        status.into()
    }
}
