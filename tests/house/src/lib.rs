//! Checks of the repository itself: what ARCHITECTURE.md and CONTRIBUTING.md promise and no compiler enforces.
//! Each file holds one group of checks, as functions from text to complaints, and the tests that apply them, first to
//! a small counter-example (so that a check that cannot fail is noticed), then to the repository.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;

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

/// The same for a rule that older code does not keep yet: `remaining` says of each crate how many complaints it may have.
/// The numbers only fall.
///
/// # Panics
/// When a crate has more complaints than that; all of the crate are listed.
pub fn assert_remaining(complaints: &[String], remaining: &[(&str, usize)]) {
    let mut by_folder: BTreeMap<String, Vec<&String>> = BTreeMap::new();
    for complaint in complaints {
        let folder: Vec<&str> = complaint.split('/').take(2).collect();
        by_folder.entry(folder.join("/")).or_default().push(complaint);
    }
    for (folder, complaints) in by_folder {
        let allowed = remaining.iter().find(|(known, _)| *known == folder).map_or(0, |(_, count)| *count);
        let lines: Vec<&str> = complaints.iter().map(|complaint| complaint.as_str()).collect();
        assert!(lines.len() <= allowed, "{folder}: {} instead of {allowed}\n{}\n", lines.len(), lines.join("\n"));
    }
}
