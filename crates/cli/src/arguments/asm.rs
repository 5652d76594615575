//! The arguments of `qj asm`.

use clap::{Args, ValueHint};
use std::path::PathBuf;

/// Show portable instructions with the machine code generated for them
///
/// FILE holds functions in the portable instructions of vcode:
///
///   function plus1 %i leaf      parameters are a0, a1 ...
///     addii a0, a0, 1
///     reti a0
///
/// `reg x, y` and `float z` declare variables in registers, `local v l` a variable of
/// a type on the stack, `again:` a label; `#` begins a comment. The instructions are
/// those of docs/vcode-instructions.md.
#[derive(Args, Debug)]
#[command(
    verbatim_doc_comment,
    after_help = "Examples:\n  \
    qj asm plus1.vcode\n  \
    qj asm plus1.vcode --machine riscv64 --machine mips --hex\n  \
    qj asm plus1.vcode --machine all\n  \
    qj asm plus1.vcode --step 41            one instruction at a time, with values by name\n  \
    qj asm dot.vcode --step i[1,2] i[3,4] 2  pointers to two ints each; `[1,2]` are longs"
)]
pub(crate) struct Asm {
    /// The functions
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// The machine, or `all`; may be repeated [default: the machine that `qj` runs on]
    #[arg(long, value_name = "NAME")]
    pub(crate) machine: Vec<String>,
    /// Also show the bytes
    #[arg(long)]
    pub(crate) hex: bool,
    /// Call the first function with these arguments and show the effect of each instruction
    #[arg(long, value_name = "ARGUMENT", num_args = 0.., allow_hyphen_values = true)]
    pub(crate) step: Option<Vec<String>>,
}
