//! `cargo xtask pipes [--parts N]`: every composition of up to four steps, at every length up to 300 and every
//! alignment, as every kind of code of this processor. The test of `crates/pipe/tests/pipes/every.rs` with a number of
//! parts.

use crate::run::{Failure, cargo, succeed};

/// All pairs of alignments.
pub(crate) const PARTS: u64 = 64;

/// Builds a release, and runs so many parts.
pub(crate) fn run(parts: u64) -> Result<(), Failure> {
    if !(1..=PARTS).contains(&parts) {
        return Err(Failure(format!("there are {PARTS} parts, and not {parts}")));
    }
    let mut command = cargo(&["test", "--release", "--quiet", "--package", "quaject-pipe", "--test", "pipes", "--"]);
    command.args(["--exact", "--nocapture", "every::every_composition_of_up_to_four_steps_does_what_its_steps_do"]);
    succeed(command.env("QJ_PARTS", parts.to_string()))
}
