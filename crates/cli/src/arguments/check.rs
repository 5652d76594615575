//! The arguments of `qj check`.

use super::project::{ImportFolders, ProjectChoice};
use clap::{Args, ValueHint};
use std::path::PathBuf;

/// Report every error in programs, without running them
///
/// Checks syntax, names, types, definite assignment, purity, that every message
/// has exactly one reader, and more. `qj explain` explains the code of a message.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    qj check main.esp\n  \
    qj check                      every program of the project, see `qj explain H0601`\n  \
    qj check examples/*.esp\n  \
    qj check sender.esp --fast-paths sender.fp\n  \
    qj check --messages json main.esp 2>&1 | jq .code\n  \
    qj check main.esp --verify    also search for failing runs, for 100 ms\n  \
    qj explain E0405")]
pub(crate) struct Check {
    /// Programs; `-` is standard input [default: those of the project]
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) project: ProjectChoice,
    #[command(flatten)]
    pub(crate) imports: ImportFolders,
    /// A separate file of fast paths for the program
    #[arg(long, value_name = "FILE.fp", value_hint = ValueHint::FilePath)]
    pub(crate) fast_paths: Vec<PathBuf>,
    /// Also explore the program's models, or else the whole program, for at most 100 ms, and report failing runs
    #[arg(long)]
    pub(crate) verify: bool,
}
