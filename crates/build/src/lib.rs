//! Compiles ESP programs in the build script of a Cargo project: to C, which the C compiler builds, and to a Rust
//! module that owns the program's state and calls it. No sequence of calls of that module's safe functions has
//! undefined behaviour; see the README for its interface.
#![forbid(unsafe_code)]

/// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod build;
mod directives;
mod error;
mod files;
mod wrapper;

pub use build::Build;
pub use error::Error;
pub use quaject_esp::Mode;

use std::path::Path;

/// Compiles a program with the default options: [`Build::compile`].
///
/// # Errors
/// As [`Build::compile`].
pub fn compile(program: impl AsRef<Path>) -> Result<(), Error> {
    Build::new().compile(program)
}
