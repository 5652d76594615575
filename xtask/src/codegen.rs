//! `cargo xtask codegen`: writes the emitters, headers and pages that `machines/*.spec` generate.

use crate::run::{Failure, cargo, succeed};

/// Runs the generator on this repository.
pub(crate) fn run() -> Result<(), Failure> {
    succeed(&mut cargo(&["run", "--quiet", "--package", "quaject-vcode-spec", "--bin", "vcode-codegen", "--", "."]))
}
