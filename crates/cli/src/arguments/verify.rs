//! The arguments of `qj verify`.

use super::project::{ImportFolders, ProjectChoice};
use clap::{Args, ValueEnum, ValueHint};
use std::path::PathBuf;
use std::time::Duration;

/// Search the interleavings of a program and show a short failing run
///
/// Searches for deadlocks, violated assertions, and every other fault: bounds,
/// division, overflow, ranges, empty pools, use of released memory. Also lists the
/// lines that no run reaches. Each `model` of the program is explored with its
/// environment; without models, the whole program. An external channel without an
/// `env` carries any message that its type and range allow, at any time.
///
/// A search that ends at a limit verifies nothing; it exits with status 4.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    qj verify main.esp\n  \
    qj verify main.esp --model send --threads 2\n  \
    qj verify main.esp --process table       one process with all behaviours of its ports\n  \
    qj verify main.esp --engine spin         a second opinion\n  \
    qj verify main.esp --max-time 60 --max-memory 4000\n  \
    qj verify main.esp --fastpath            refinement: fast paths add no behaviour\n  \
    qj verify main.esp --fastpath --engine spin\n  \
    qj verify main.esp --trace run.qjt --chart run.svg && qj replay run.qjt")]
pub(crate) struct Verify {
    /// The program; `-` is standard input [default: those of the project]
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) project: ProjectChoice,
    #[command(flatten)]
    pub(crate) imports: ImportFolders,
    /// Explore this model only
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// Explore one process alone: `--process P` is `--slice P`
    #[arg(long, value_name = "NAME", conflicts_with = "slice")]
    pub(crate) process: Option<String>,
    /// Explore these processes in an environment with all behaviours that their ports allow
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) slice: Vec<String>,
    /// The model checker: the built-in one, or Spin, which needs `spin` and a C compiler
    #[arg(long, value_name = "ENGINE", default_value = "builtin")]
    pub(crate) engine: VerifyEngine,
    /// Check refinement: every behaviour of the program with fast paths is one of the program without
    #[arg(long, conflicts_with_all = ["process", "slice"])]
    pub(crate) fastpath: bool,
    /// A file of fast paths for the program (for --fastpath)
    #[arg(long, value_name = "FILE.fp", value_hint = ValueHint::FilePath, requires = "fastpath")]
    pub(crate) fast_paths: Vec<PathBuf>,
    /// The number of threads of the search
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=64))]
    pub(crate) threads: u8,
    /// Explore every order of communications, without partial-order reduction; the first failing run is a shortest one
    #[arg(long)]
    pub(crate) no_reduction: bool,
    /// Check for starvation: processes that can wait forever while others continue (weak fairness)
    #[arg(long, alias = "progress")]
    pub(crate) starvation: bool,
    /// Hash compaction: keep 64 bits of each state; takes less memory, with an omission probability in the verdict
    #[arg(long)]
    pub(crate) compact: bool,
    /// Symmetry reduction: replicas that no value names are interchangeable
    #[arg(long)]
    pub(crate) symmetry: bool,
    /// The limit on the number of states
    #[arg(long, value_name = "N")]
    pub(crate) max_states: Option<u64>,
    /// The memory limit of the search, in megabytes
    #[arg(long, value_name = "MB", default_value_t = 2048)]
    pub(crate) max_memory: u64,
    /// The time limit of the search, in seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) max_time: Option<Duration>,
    /// Write the counterexample to FILE, for `qj replay`
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) trace: Option<PathBuf>,
    /// Draw the counterexample as a message-sequence chart
    #[arg(long, value_name = "FILE.svg", value_hint = ValueHint::FilePath)]
    pub(crate) chart: Option<PathBuf>,
    /// Write the verdict as one JSON object per model
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum VerifyEngine {
    Builtin,
    Spin,
}

/// Parses a number of seconds, with a fraction.
fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "it is no number of seconds".to_string())?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(time) => Ok(time),
        // A time beyond the range of the clock is no limit.
        Err(_) if seconds > 0.0 => Ok(Duration::MAX),
        Err(_) => Err("it is no number of seconds".to_string()),
    }
}
