//! The arguments of `qj fmt`.

use super::project::ProjectChoice;
use clap::{Args, ValueHint};
use std::path::PathBuf;

/// Format programs in the standard layout
///
/// Files are rewritten in place; standard input is written to standard output. A
/// program with syntax errors is not changed.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    qj fmt main.esp parts/*.esp\n  \
    qj fmt --check                for continuous integration\n  \
    qj fmt < main.esp             from an editor")]
pub(crate) struct Fmt {
    /// Programs; `-` is standard input [default: standard input if it is a file or pipe that is not empty or there is
    /// no project, else the files of the project's programs in its folder]
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) project: ProjectChoice,
    /// Change nothing; list the files that would change, and exit with status 1 if there are any
    #[arg(long)]
    pub(crate) check: bool,
}
