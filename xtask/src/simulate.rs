//! `cargo xtask simulate [PROGRAM] [--hours N]`: programs of examples/ on a simulated network that loses, doubles,
//! delays and cuts off, for hours of their clock. The tests of `tests/simulation` with a number of hours.

use crate::run::{Failure, cargo, succeed};

/// A day.
pub(crate) const HOURS: u64 = 24;

/// The programs that have a simulation.
const PROGRAMS: [&str; 6] = ["tftp", "tcpip", "nat", "uds", "mqtt", "usb"];

/// Builds a release, and runs one program for so many hours, or each.
pub(crate) fn run(program: Option<&str>, hours: u64) -> Result<(), Failure> {
    if program.is_some_and(|program| !PROGRAMS.contains(&program)) {
        return Err(Failure(format!("there is no such program; there are {}", PROGRAMS.join(", "))));
    }
    let mut command = cargo(&["test", "--release", "--quiet", "--package", "quaject-test-simulation", "--"]);
    command.args(["--nocapture", "--test-threads", "1"]).args(program.map(|program| format!("{program}::")));
    succeed(command.env("QJ_HOURS", hours.to_string()))
}
