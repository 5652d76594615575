//! `cargo xtask portable`: type checks, for systems other than Linux, the packages that build there; a warning is an
//! error. Installs the standard libraries of those systems itself; no linker is needed.

use crate::run::{Failure, cargo, succeed};
use crate::tools::provide_targets;

/// One of each family of systems on which a user may embed or run Quaject.
const TARGETS: &[&str] = &["x86_64-apple-darwin", "x86_64-pc-windows-gnu"];

/// The packages that build on every target: the command, the libraries that are used alone, and what these depend on.
const PACKAGES: &[&str] = &[
    "quaject-cli",
    "quaject-esp",
    "quaject-esp-check",
    "quaject-esp-run",
    "quaject-filter",
    "quaject-pages",
    "quaject-pipe",
    "quaject-queue",
    "quaject-synth",
    "quaject-vcode",
];

/// Checks every package for every target, by one command: what runs during the build is then built once.
pub(crate) fn run() -> Result<(), Failure> {
    provide_targets(TARGETS.iter().copied())?;
    let mut check = cargo(&["check"]);
    check.args(TARGETS.iter().flat_map(|target| ["--target", target]));
    check.args(PACKAGES.iter().flat_map(|package| ["-p", package]));
    succeed(check.env("RUSTFLAGS", "-D warnings"))
}
