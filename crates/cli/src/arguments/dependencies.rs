//! Options of commands that Make or Ninja runs.

use clap::{Args, ValueHint};
use std::path::PathBuf;

/// What a command writes for the tool that runs it, beyond its output.
#[derive(Args, Clone, Debug)]
pub(crate) struct DependencyOutputs {
    /// Write to FILE which files the output depends on, as a rule of Make; Ninja reads it too
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) depfile: Option<PathBuf>,
    /// The target of that rule; may be repeated
    ///
    /// [default: the file of --stamp, else the first output]
    #[arg(long, value_name = "NAME", requires = "depfile", value_hint = ValueHint::FilePath)]
    pub(crate) depfile_target: Vec<PathBuf>,
    /// Write an empty FILE after success; its time is that of the last run, even if the output stays as it is
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) stamp: Option<PathBuf>,
}
