//! `cargo xtask corpus DIR`: `qj filter corpus` on any tree of captures and expressions, such as the test suites of
//! libpcap and tcpdump. Built as the tests are, with debug assertions and overflow checks.

use std::ffi::OsString;
use std::path::Path;

use crate::run::{Failure, cargo, succeed};

/// Builds `qj` and runs the comparison.
pub(crate) fn run(folder: &Path, arguments: &[OsString]) -> Result<(), Failure> {
    // Cargo starts in the repository, the user perhaps elsewhere.
    let folder =
        std::path::absolute(folder).map_err(|error| Failure(format!("cannot find {}: {error}", folder.display())))?;
    let mut command = cargo(&["run", "--quiet", "--package", "quaject-cli", "--", "filter", "corpus"]);
    succeed(command.arg(folder).args(arguments))
}
