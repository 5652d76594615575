//! The arguments of `qj test`.

use super::project::ProjectChoice;
use super::run::Engine;
use clap::{Args, ValueHint};
use std::path::PathBuf;

/// Run programs on given input and compare their output with the expected output
///
/// NAME.esp is a test if its folder has a NAME.out or a NAME.status. It is run with
///
///   NAME.in           as standard input (empty if the file is missing)
///   NAME.args         more arguments of `qj run`, one per line, paths relative to
///                     the folder
///   NAME.CHANNEL.in   as the input of the channel, by the driver that its
///                     declaration names, else text
///
/// and must produce
///
///   NAME.out          on standard output (empty if the file is missing)
///   NAME.err          on standard error (not compared if the file is missing)
///   NAME.status       as exit status (0 if the file is missing)
///   NAME.CHANNEL.out  on the channel
///
/// The import folders and the extern files of the project hold for its tests, its
/// bindings do not. Overflow is a fault (`--checked`) and time is virtual (`--clock virtual`).
#[derive(Args, Debug)]
#[command(
    verbatim_doc_comment,
    after_help = "Examples:\n  \
    qj test                       every test of the project, or in this folder and its subfolders\n  \
    qj test examples sieve.esp\n  \
    qj test --engine interp --engine c\n  \
    qj test --filter crc --times\n  \
    qj test --junit report.xml --coverage lines.info   for a build server\n  \
    qj test --bless               write the output of the programs as the expected output"
)]
pub(crate) struct Test {
    /// Programs, and folders to search for them [default: the folder of the project and its programs, else the current
    /// folder]
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub(crate) paths: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) project: ProjectChoice,
    /// What executes the programs; may be repeated
    #[arg(long, value_name = "ENGINE", default_value = "interp")]
    pub(crate) engine: Vec<Engine>,
    /// Run the tests whose path contains TEXT; may be repeated, for those with any of the texts
    #[arg(long, value_name = "TEXT")]
    pub(crate) filter: Vec<String>,
    /// Print the time of each test
    #[arg(long)]
    pub(crate) times: bool,
    /// Print the results as lines of JSON instead of text
    #[arg(long, conflicts_with = "times")]
    pub(crate) json: bool,
    /// Write the results to FILE, as JUnit does
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) junit: Option<PathBuf>,
    /// Count how many tests execute each line of the programs; written to FILE in the format of lcov (engine interp)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) coverage: Option<PathBuf>,
    /// Replace the expected output by the actual output
    #[arg(long)]
    pub(crate) bless: bool,
    /// The time limit of each program
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub(crate) timeout: u64,
}
