//! Checks of the repository itself: what ARCHITECTURE.md and CONTRIBUTING.md promise and no compiler enforces.
//! Each file holds one group of checks, as functions from text to complaints, and the tests that apply them, first to
//! a small counter-example (so that a check that cannot fail is noticed), then to the repository.
#![forbid(unsafe_code)]

pub mod codes;
pub mod documents;
pub mod editors;
pub mod imports;
pub mod layers;
pub mod names;
pub mod packages;
pub mod prose;
pub mod repository;
pub mod sources;
pub mod tokens;

/// Fails a test with one complaint a line.
///
/// # Panics
/// When there are complaints.
pub fn assert_none(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}
