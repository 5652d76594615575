//! The arguments of `qj graph`.

use super::code_generation::Coding;
use super::project::ImportFolders;
use clap::{Args, ValueHint};
use std::path::PathBuf;

/// Draw processes and channels as SVG
///
/// Boxes are processes, pills are channels, yellow pills are external channels; an
/// arrow into a channel is an `out`, one out of it an `in`.
///
/// With --mode automata, fastpath or auto, the compiled forms of the processes: boxes
/// are the waiting states of a state machine or the entries of a fast path, white pills
/// the exits of fast paths, yellow pills their aborts.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    qj graph main.esp -o main.svg\n  \
    qj graph main.esp > main.svg\n  \
    qj graph main.esp --mode automata -o states.svg")]
pub(crate) struct Graph {
    /// The program; `-` is standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) imports: ImportFolders,
    /// The output file [default: standard output]
    #[arg(short, long, value_name = "FILE.svg", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) coding: Coding,
}
