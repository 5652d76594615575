//! `cargo xtask portable`: type checks, for systems other than Linux, the packages that build there. Installs the
//! standard libraries of those systems itself; no linker is needed.

use crate::run::{Failure, cargo, succeed};
use crate::tools::provide_targets;

/// One of each family of systems on which a user may embed or run Quaject.
const TARGETS: &[&str] = &["x86_64-apple-darwin", "x86_64-pc-windows-gnu"];

/// The packages that build on every target.
const PACKAGES: &[&str] = &["quaject-esp", "quaject-esp-check", "quaject-esp-run", "quaject-queue", "quaject-filter"];

/// Checks every package for every target.
pub(crate) fn run() -> Result<(), Failure> {
    provide_targets(TARGETS.iter().copied())?;
    for target in TARGETS {
        let mut check = cargo(&["check", "--target", target]);
        check.args(PACKAGES.iter().flat_map(|package| ["-p", package]));
        succeed(&mut check)?;
    }
    Ok(())
}
