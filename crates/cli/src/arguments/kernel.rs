//! The arguments of `qj kernel` and its subcommands.

use clap::{Args, Subcommand, ValueHint};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Run static Linux programs on a kernel of their own, in QEMU
#[derive(Args, Debug)]
#[command(
    disable_help_subcommand = true,
    after_help = "Examples:\n  \
    qj kernel run ./hello one two\n  \
    qj kernel count ./hello"
)]
pub(crate) struct Kernel {
    #[command(subcommand)]
    pub(crate) command: KernelCommand,
}

#[derive(Subcommand, Debug)]
pub(crate) enum KernelCommand {
    Run(KernelRun),
    Count(KernelCount),
}

/// Run a static Linux program on the kernel
///
/// PROGRAM is an ELF program for x86-64, linked with -static or -static-pie. It runs
/// alone on the kernel, as root, with the files /dev and /tmp, which are in memory.
/// Its standard output and standard error are those of `qj`, joined; its standard
/// input is empty. Reports of the kernel go to standard error.
///
/// The kernel's image is the FILE of --kernel, else that of the variable QJ_KERNEL,
/// else the installed one, else the one that `cargo xtask kernel` has built.
#[derive(Args, Debug)]
#[command(
    verbatim_doc_comment,
    after_help = "Exit status: that of the program; 128 + N if signal N ended it, and\n  \
    123  every thread of the program waits for another one\n  \
    124  the time limit was exceeded\n  \
    125  the kernel failed; its registers are reported\n  \
    126  the kernel refuses the program\n\n\
    Examples:\n  \
    gcc -static hello.c -o hello && qj kernel run ./hello\n  \
    qj kernel run --timeout 10 --trace ./hello one two\n  \
    qj kernel run --env LANG=C ./hello --its-own-option"
)]
pub(crate) struct KernelRun {
    #[command(flatten)]
    pub(crate) machine: MachineOptions,
    /// Report each system call
    #[arg(long)]
    pub(crate) trace: bool,
    #[command(flatten)]
    pub(crate) program: ProgramArguments,
}

/// Count the instructions of each system call of a program
///
/// PROGRAM runs as with `qj kernel run`, in a machine that counts instructions. A
/// table of its calls follows on standard error: how many ran to their end without
/// another thread in between, how many let one run, the instructions of the former
/// on average, and the least. The numbers are the same at each run and on each
/// computer. The entry from the program and the way back are not included.
#[derive(Args, Debug)]
#[command(
    verbatim_doc_comment,
    after_help = "Exit status: as of `qj kernel run`\n\n\
    Examples:\n  \
    qj kernel count ./hello\n  \
    qj kernel count --json ./hello one two"
)]
pub(crate) struct KernelCount {
    #[command(flatten)]
    pub(crate) machine: MachineOptions,
    /// Print the table as JSON, an object for each call
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) program: ProgramArguments,
}

/// The machine that a program runs in.
#[derive(Args, Debug)]
pub(crate) struct MachineOptions {
    /// The kernel's image
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) kernel: Option<PathBuf>,
    /// End the program after this time
    #[arg(long, value_name = "SECONDS")]
    pub(crate) timeout: Option<u64>,
    /// The memory of the machine
    #[arg(long, value_name = "MIB", default_value_t = 512, value_parser = clap::value_parser!(u32).range(24..=3072))]
    pub(crate) memory: u32,
    /// A variable of the program's environment, which is empty otherwise; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) env: Vec<OsString>,
}

/// A program and what it is started with.
#[derive(Args, Debug)]
pub(crate) struct ProgramArguments {
    /// The program, and its arguments, which may look like options
    #[arg(value_name = "PROGRAM", required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    #[arg(value_hint = ValueHint::CommandWithArguments)]
    pub(crate) words: Vec<OsString>,
}

impl ProgramArguments {
    /// The path of the program.
    pub(crate) fn path(&self) -> &Path {
        Path::new(self.words.first().expect("clap requires a word"))
    }
}
