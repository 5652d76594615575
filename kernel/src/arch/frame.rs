//! The registers of an interrupted program, as the stubs of `entry.s` save them.

use core::fmt;

/// ```text
/// low addresses                                              high addresses
/// r15 .. rbx rbp | r11 .. rdi | vector error | rip cs rflags rsp ss
///  saved by the stubs                          saved by the processor (or, at a call, by the stub)
/// ```
#[repr(C)]
#[derive(Clone, Default, Debug)]
#[allow(missing_docs, reason = "the fields are the registers")]
pub(crate) struct Frame {
    pub(crate) r15: u64,
    pub(crate) r14: u64,
    pub(crate) r13: u64,
    pub(crate) r12: u64,
    pub(crate) rbp: u64,
    pub(crate) rbx: u64,
    pub(crate) r11: u64,
    pub(crate) r10: u64,
    pub(crate) r9: u64,
    pub(crate) r8: u64,
    pub(crate) rax: u64,
    pub(crate) rcx: u64,
    pub(crate) rdx: u64,
    pub(crate) rsi: u64,
    pub(crate) rdi: u64,
    /// The vector of the exception or interrupt, or [`VECTOR_CALL`].
    pub(crate) vector: u64,
    /// The error code of the exception, or the number of the call.
    pub(crate) error: u64,
    pub(crate) rip: u64,
    pub(crate) cs: u64,
    pub(crate) rflags: u64,
    pub(crate) rsp: u64,
    pub(crate) ss: u64,
}

/// The vector in frames of system calls; no exception has it.
pub(crate) const VECTOR_CALL: u64 = 256;

impl Frame {
    /// Whether the registers are those of a program: its privilege level is 3.
    pub(crate) fn is_of_program(&self) -> bool {
        self.cs & 3 == 3
    }
}

impl fmt::Display for Frame {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "rip {:016x}  cs  {:016x}  rflags {:016x}", self.rip, self.cs, self.rflags)?;
        writeln!(out, "rsp {:016x}  ss  {:016x}  error  {:016x}", self.rsp, self.ss, self.error)?;
        writeln!(out, "rax {:016x}  rbx {:016x}  rcx {:016x}  rdx {:016x}", self.rax, self.rbx, self.rcx, self.rdx)?;
        writeln!(out, "rsi {:016x}  rdi {:016x}  rbp {:016x}  r8  {:016x}", self.rsi, self.rdi, self.rbp, self.r8)?;
        writeln!(out, "r9  {:016x}  r10 {:016x}  r11 {:016x}  r12 {:016x}", self.r9, self.r10, self.r11, self.r12)?;
        write!(out, "r13 {:016x}  r14 {:016x}  r15 {:016x}", self.r13, self.r14, self.r15)
    }
}
