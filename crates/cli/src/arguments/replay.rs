//! The arguments of `qj replay`.

use clap::{Args, ValueHint};
use std::path::PathBuf;

/// Repeat a recorded run, or a run that `qj verify` found
///
/// The recording holds the program and all of its input, so no other file, clock or
/// C function is needed. Every message that the program sends is compared with the
/// recorded one and printed with the name of its channel. The exit status is that of
/// the recorded run, or 1 if the run differs. A run that a signal or an I/O error
/// stopped is replayed up to that point and ends with status 0.
///
/// A run that `qj verify` found is stepped through in a terminal, forwards and
/// backwards: locations of the processes, what each waits for, values of variables.
/// Without a terminal it is printed. The exit status is 3.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    qj run server.esp --record run.qjr\n  \
    qj replay run.qjr\n  \
    qj verify server.esp --trace wrong.qjt; qj replay wrong.qjt")]
pub(crate) struct Replay {
    /// The output of `qj run --record` or `qj verify --trace`
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
}
