//! The arguments of `qj profile` and `qj fastpath`.

use super::project::ImportFolders;
use super::run::RunOptions;
use clap::{Args, Subcommand, ValueHint};
use std::path::PathBuf;

/// Run a program and record its frequent sequences of communications
///
/// The program runs on the interpreter, with its drivers, as with `qj run`, and with
/// the same exit status. The profile is written as JSON: the count of each operation;
/// the operation that begins an iteration, which is a message from the environment if
/// these are frequent; the most frequent iterations among the first million
/// communications. `qj fastpath suggest` reads it.
#[derive(Args, Debug)]
#[command(
    args_override_self = true,
    after_help = "Examples:\n  \
    qj profile pairs.esp -o pairs.profile < numbers\n  \
    qj profile server.esp -o server.profile --bind linesC=text:requests.txt\n  \
    qj fastpath suggest pairs.esp --profile pairs.profile"
)]
pub(crate) struct Profile {
    /// The program; `-` is standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) imports: ImportFolders,
    /// The output file
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
    #[command(flatten)]
    pub(crate) options: RunOptions,
}

/// Find fast paths
#[derive(Args, Debug)]
#[command(
    disable_help_subcommand = true,
    after_help = "Examples:\n  \
    qj profile pairs.esp -o pairs.profile < numbers\n  \
    qj fastpath suggest pairs.esp --profile pairs.profile -o pairs.fp"
)]
pub(crate) struct Fastpath {
    #[command(subcommand)]
    pub(crate) command: FastpathCommand,
}

#[derive(Subcommand, Debug)]
pub(crate) enum FastpathCommand {
    Suggest(Suggest),
}

/// Write a fast path for the most frequent iteration of a program
///
/// The most frequent iteration of a profile becomes a fast path of at most ten lines,
/// one for each participating process, to be read and edited. Operations of fewer than
/// one in 64 iterations become side exits. While the compiler refuses the path, the
/// process that is farthest from the first one is removed from it.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    qj profile pairs.esp -o pairs.profile < numbers\n  \
    qj fastpath suggest pairs.esp --profile pairs.profile -o pairs.fp\n  \
    qj run pairs.esp --mode fastpath --fast-paths pairs.fp < numbers")]
pub(crate) struct Suggest {
    /// The program; `-` is standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) imports: ImportFolders,
    /// The output of `qj profile`
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) profile: PathBuf,
    /// The output file [default: standard output]
    #[arg(short, long, value_name = "FILE.fp", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// Write the suggestion as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}
