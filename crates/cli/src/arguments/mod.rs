//! The command line of `qj`: the global options and the list of commands. The arguments of each command are in a file
//! of their own. Does no work of a command.

mod asm;
mod build;
mod check;
mod code_generation;
mod dap;
mod dependencies;
mod documents;
mod explain;
mod filter;
mod fmt;
mod graph;
mod init;
mod kernel;
mod lsp;
mod pipe;
mod profile;
mod project;
mod replay;
mod run;
mod test;
mod tickc;
mod verify;

pub(crate) use asm::Asm;
pub(crate) use build::{Build, EmitForm, StyleChoice};
pub(crate) use check::Check;
pub(crate) use code_generation::{Coding, ModeChoice, UnrollChoice};
pub(crate) use dap::Dap;
pub(crate) use dependencies::DependencyOutputs;
pub(crate) use documents::{Completions, Man};
pub(crate) use explain::Explain;
pub(crate) use filter::{Emit, Filter, FilterCommand, FilterCorpus, FilterFuzz};
pub(crate) use fmt::Fmt;
pub(crate) use graph::Graph;
pub(crate) use init::Init;
pub(crate) use kernel::{Kernel, KernelCommand, KernelCount, KernelRun, MachineOptions, ProgramArguments};
pub(crate) use lsp::Lsp;
pub(crate) use pipe::{Pipe, StoreChoice};
pub(crate) use profile::{Fastpath, FastpathCommand, Profile, Suggest};
pub(crate) use project::{ImportFolders, ProjectChoice};
pub(crate) use replay::Replay;
pub(crate) use run::{DebugTool, Engine, Run, RunOptions};
pub(crate) use test::Test;
pub(crate) use tickc::{Tickc, TickcForm};
pub(crate) use verify::{Verify, VerifyEngine};

use clap::{Parser, Subcommand, ValueEnum};

/// Checks, runs and compiles programs in ESP, the language of processes and
/// channels for systems code.
#[derive(Parser, Debug)]
#[command(
    name = "qj",
    version,
    max_term_width = 100,
    propagate_version = true,
    after_help = "Exit status:\n  \
                  0  done\n  \
                  1  an error in the program, or a file that cannot be read or written\n  \
                  2  an error in the command line\n  \
                  3  a fault at run time, or an I/O error of the running program\n  \
                  4  `qj verify` ended at a limit\n  \
                  5  `qj verify` found spurious violations only\n\
                  `qj verify` ends with 1 at a violation, and with 2 at an error in its input.\n\
                  `exit(e)` in a program ends `qj run` with status e; `qj kernel run` ends with the\n\
                  status of its program. At SIGINT and SIGTERM qj writes pending output and dies of\n\
                  the signal: a shell sees status 130 or 143.\n\n\
                  Try:\n  \
                  qj init hello && cd hello && qj run < hello.in\n  \
                  qj COMMAND --help            examples are at the end of each command's help"
)]
pub(crate) struct Arguments {
    /// When to colour messages
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", help_heading = "Messages")]
    pub(crate) color: ColorChoice,
    /// The format of messages on standard error
    #[arg(long, global = true, value_name = "FORM", default_value = "human", help_heading = "Messages")]
    pub(crate) messages: MessageForm,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum ColorChoice {
    /// If standard error is a terminal and NO_COLOR is not set
    Auto,
    Always,
    Never,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum MessageForm {
    /// Text with the source lines and carets
    Human,
    /// One JSON object per line
    Json,
    /// One SARIF 2.1.0 log, at the end, for code hosts and editors
    Sarif,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    Check(Check),
    Run(Run),
    Build(Build),
    Fmt(Fmt),
    Graph(Graph),
    Test(Test),
    Explain(Explain),
    Init(Init),
    Verify(Verify),
    Replay(Replay),
    Dap(Dap),
    Profile(Profile),
    Fastpath(Fastpath),
    Asm(Asm),
    Pipe(Pipe),
    Filter(Filter),
    Tickc(Tickc),
    Kernel(Kernel),
    Lsp(Lsp),
    Completions(Completions),
    Man(Man),
}
