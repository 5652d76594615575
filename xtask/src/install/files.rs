//! Files of an installation, written so that no reader sees half of one.

use std::fs;
use std::path::{Path, PathBuf};

use crate::run::{Failure, root};

/// Where Cargo puts what it builds.
pub(super) fn target_folder() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// The paths in a folder, sorted.
pub(super) fn entries(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let entries = fs::read_dir(folder).map_err(|error| failure("read", folder, &error))?;
    let paths: Result<Vec<PathBuf>, _> = entries.map(|entry| entry.map(|entry| entry.path())).collect();
    let mut paths = paths.map_err(|error| failure("read", folder, &error))?;
    paths.sort();
    Ok(paths)
}

/// Copies all files below a folder.
pub(super) fn copy_folder(from: &Path, to: &Path) -> Result<(), Failure> {
    for entry in entries(from)? {
        let name = entry.file_name().expect("entries of a folder have names");
        if entry.is_dir() {
            copy_folder(&entry, &to.join(name))?;
        } else {
            copy(&entry, &to.join(name))?;
        }
    }
    Ok(())
}

/// Copies to a temporary name and renames: a running `qj` keeps its file, and no reader sees half of one.
pub(super) fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    make_room(to)?;
    let temporary = temporary_name(to);
    fs::copy(from, &temporary).map_err(|error| failure("copy", from, &error))?;
    fs::rename(&temporary, to).map_err(|error| failure("write", to, &error))
}

/// Writes a file, as [`copy`] does.
pub(super) fn write(to: &Path, bytes: &[u8]) -> Result<(), Failure> {
    make_room(to)?;
    let temporary = temporary_name(to);
    fs::write(&temporary, bytes).map_err(|error| failure("write", &temporary, &error))?;
    fs::rename(&temporary, to).map_err(|error| failure("write", to, &error))
}

fn temporary_name(path: &Path) -> PathBuf {
    let mut name = path.file_name().expect("installed files have names").to_owned();
    name.push(".new");
    path.with_file_name(name)
}

/// A link with a relative target, which replaces one that is there.
pub(super) fn link(target: &str, name: &Path) -> Result<(), Failure> {
    make_room(name)?;
    if name.is_symlink() {
        fs::remove_file(name).map_err(|error| failure("replace", name, &error))?;
    }
    std::os::unix::fs::symlink(target, name).map_err(|error| failure("link", name, &error))
}

fn make_room(path: &Path) -> Result<(), Failure> {
    let folder = path.parent().expect("installed files lie in folders");
    fs::create_dir_all(folder).map_err(|error| failure("create", folder, &error))
}

fn failure(verb: &str, path: &Path, error: &std::io::Error) -> Failure {
    Failure(format!("cannot {verb} {}: {error}", path.display()))
}
