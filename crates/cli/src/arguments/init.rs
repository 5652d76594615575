//! The arguments of `qj init`.

use clap::{Args, ValueHint};
use std::path::PathBuf;

/// Create a project with a program that runs
///
/// Writes qj.toml, NAME.esp, NAME.in and NAME.out to the folder, which may exist. Files
/// are never overwritten.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    qj init echo && cd echo && qj run < echo.in\n  \
    qj check && qj test && qj build")]
pub(crate) struct Init {
    /// The folder, which also names the program
    #[arg(value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    pub(crate) folder: PathBuf,
}
