//! What the checks read: the files of the repository and the manifests of its packages. Judges nothing.

use std::fs;
use std::path::{Path, PathBuf};

/// The folder that holds the workspace's `Cargo.toml`.
///
/// # Panics
/// When the house has been moved without its path being corrected here.
pub fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().expect("the house lies two folders below the root")
}

/// A text file of the repository; `path` is relative to the root.
pub struct SourceFile {
    /// Relative to the root, with `/` between folders.
    pub path: String,
    /// The whole text.
    pub text: String,
}

/// Every text file of the repository, build results and version control left out.
pub fn text_files() -> Vec<SourceFile> {
    let root = root();
    let mut files = Vec::new();
    walk(&root, &root, &mut files);
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}

fn walk(root: &Path, folder: &Path, files: &mut Vec<SourceFile>) {
    for entry in fs::read_dir(folder).expect("a folder of the repository is readable") {
        let path = entry.expect("a folder of the repository is readable").path();
        let name = path.file_name().and_then(|name| name.to_str()).expect("file names are UTF-8").to_owned();
        if path.is_dir() {
            if !matches!(name.as_str(), "target" | ".git" | "node_modules") {
                walk(root, &path, files);
            }
        } else if name != ".git"
            && let Ok(text) = fs::read_to_string(&path)
        {
            let relative = path.strip_prefix(root).expect("the walk starts at the root");
            files.push(SourceFile { path: relative.to_str().expect("file names are UTF-8").replace('\\', "/"), text });
        }
    }
}

/// One package of the workspace.
pub struct Package {
    /// `quaject-esp-syntax`, `xtask`.
    pub name: String,
    /// The folder of its manifest, relative to the root.
    pub folder: String,
    /// The manifest itself.
    pub manifest: toml::Table,
}

/// Every package of the workspace, the tools outside of `crates/` included.
///
/// # Panics
/// When a manifest does not parse; Cargo would not have come this far.
pub fn packages() -> Vec<Package> {
    let others = ["bench/", "examples/", "kernel/"];
    packages_where(|path| others.iter().all(|folder| !path.starts_with(folder)))
}

/// The packages of the kernel's workspace.
///
/// # Panics
/// As [`packages`].
pub fn kernel_packages() -> Vec<Package> {
    packages_where(|path| path.starts_with("kernel/"))
}

fn packages_where(is_wanted: impl Fn(&str) -> bool) -> Vec<Package> {
    let manifests = text_files().into_iter().filter(|file| file.path.ends_with("/Cargo.toml") && is_wanted(&file.path));
    manifests
        .filter_map(|file| {
            let manifest: toml::Table = file.text.parse().expect("Cargo has read this manifest");
            let name = manifest.get("package")?.get("name")?.as_str()?.to_owned();
            let folder = file.path.strip_suffix("/Cargo.toml").expect("filtered above").to_owned();
            Some(Package { name, folder, manifest })
        })
        .collect()
}
