//! The options of code generation that `run`, `build` and `graph` share.

use clap::{Args, ValueEnum, ValueHint};
use std::path::PathBuf;

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum ModeChoice {
    /// Each separately, scheduled at run time
    Process,
    /// As `process`, with direct transfer of control from a receiver that blocks to its sender, on channels with one
    /// sender and one receiver (in C; other engines treat it as `process`)
    Direct,
    /// As `process`, except for fast paths, which run as code of one process
    Fastpath,
    /// Processes that channels connect are fused into one state machine, where possible
    Automata,
    /// The fastest form with the same output within the limits: state machines, else fast paths, else separate
    /// processes
    Auto,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum UnrollChoice {
    /// Never
    Off,
    /// Where possible within a limit on code size; `--report` lists the loops, with a reason for each that is not
    /// unrolled
    Auto,
}

/// How processes become code.
#[derive(Args, Clone, Debug)]
pub(crate) struct Coding {
    /// How processes become code
    ///
    /// [default: auto; fastpath with --fast-paths; process with options that concern the processes as written: --engine
    /// interp, --seed, --record, --adaptive, --emit ir, --emit promela, pictures]
    #[arg(long, value_name = "MODE")]
    pub(crate) mode: Option<ModeChoice>,
    /// The limit of code growth by fusion, as a multiple of the code of the separate processes (for --mode automata,
    /// auto); twice that where processes can be blocked forever; processes beyond the limit are not fused
    ///
    /// [default: 8 for automata; for auto, 1.5 by an estimate, or 3 while that is less than 8 KB]
    #[arg(long, value_name = "TIMES")]
    pub(crate) growth: Option<usize>,
    /// A file of fast paths for the program (for --mode fastpath, which is the default with it, and auto)
    #[arg(long, value_name = "FILE.fp", value_hint = ValueHint::FilePath)]
    pub(crate) fast_paths: Vec<PathBuf>,
}
