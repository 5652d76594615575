//! `cargo xtask kernel`: builds the kernel's image, or checks the kernel's workspace, which is built for a machine
//! without an operating system.

use std::path::PathBuf;

use crate::run::{Failure, cargo, root, succeed};
use crate::tools::provide_targets;

/// The machine of the kernel.
const TARGET: &str = "x86_64-unknown-none";
/// The machine of the tests that need no kernel.
const HOST: &str = "x86_64-unknown-linux-gnu";
/// Below the workspace's target folder.
const BUILDS: &str = "target/kernel";

/// What to do with the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// Build the image and say where it is.
    Build,
    /// Format, lints, and the tests of its readers of files.
    Check,
}

pub(crate) fn run(work: Work) -> Result<(), Failure> {
    match work {
        Work::Build => {
            println!("{}", build()?.display());
            Ok(())
        }
        Work::Check => check(),
    }
}

/// Builds the image; its path.
pub(crate) fn build() -> Result<PathBuf, Failure> {
    provide_targets([TARGET])?;
    in_kernel(&["build", "--release"])?;
    Ok(root().join(BUILDS).join(TARGET).join("release/quaject-kernel"))
}

/// Checks what the checks of the product's workspace do not see.
pub(crate) fn check() -> Result<(), Failure> {
    provide_targets([TARGET])?;
    succeed(cargo(&["fmt", "--all", "--check"]).current_dir(root().join("kernel")))?;
    in_kernel(&["clippy", "--", "-D", "warnings"])?;
    let formats = ["--package", "quaject-image-formats", "--target", HOST];
    in_kernel(&[&["clippy", "--all-targets"], &formats[..], &["--", "-D", "warnings"]].concat())?;
    in_kernel(&[&["test", "--quiet"], &formats[..]].concat())
}

/// Runs Cargo in the kernel's workspace, whose configuration has the flags of the linker.
fn in_kernel(arguments: &[&str]) -> Result<(), Failure> {
    let mut command = cargo(arguments);
    command.current_dir(root().join("kernel")).env("CARGO_TARGET_DIR", root().join(BUILDS));
    // Flags from outside would replace those of the configuration.
    succeed(command.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS"))
}
