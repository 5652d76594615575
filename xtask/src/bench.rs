//! `cargo xtask bench NAME`: runs one question of `bench/`, a workspace of its own, so that tests never build the peers
//! it compares with. Knows no question; each is a package `bench/NAME` with a `README.md` and a binary; a package
//! without a binary is what several questions share.

use std::ffi::OsString;
use std::fs;

use crate::run::{Failure, cargo, root, succeed};

/// The names of the benchmarks, sorted.
fn names() -> Result<Vec<String>, Failure> {
    let folder = root().join("bench");
    let entries = fs::read_dir(&folder).map_err(|error| Failure(format!("cannot read bench/: {error}")))?;
    let folders = entries.filter_map(Result::ok).filter(|entry| entry.path().join("src/main.rs").is_file());
    let mut names: Vec<String> = folders.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    Ok(names)
}

/// Prints the names, each with the first line of its manifest's description.
pub(crate) fn list() -> Result<(), Failure> {
    let names = names()?;
    if names.is_empty() {
        println!("there are no benchmarks yet");
    }
    for name in names {
        let manifest = fs::read_to_string(root().join("bench").join(&name).join("Cargo.toml"));
        let manifest = manifest.map_err(|error| Failure(format!("cannot read the manifest of {name}: {error}")))?;
        let description = manifest.lines().find_map(|line| line.strip_prefix("description = "));
        println!("{name:<16} {}", description.unwrap_or_default().trim_matches('"'));
    }
    Ok(())
}

/// Builds and runs one benchmark in release mode.
pub(crate) fn run(name: &str, arguments: &[OsString]) -> Result<(), Failure> {
    let names = names()?;
    if !names.iter().any(|known| known == name) {
        let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        return Err(Failure(format!("there is no benchmark `{name}`; there are: {known}")));
    }
    let mut command = cargo(&["run", "--release", "--manifest-path"]);
    command.arg(root().join("bench").join(name).join("Cargo.toml")).arg("--").args(arguments);
    // The binary starts in its own folder, where its data lies.
    succeed(command.current_dir(root().join("bench").join(name)))
}
