//! Program files and their imports, read from disk for the compiler. Does not know their content.

use crate::error::HostError;
use crate::files::read_bytes;
use crate::system::{FileIdentity, file_identity};
use quaject_esp::{File, Loader, Source};
use quaject_esp_syntax::span::FileId;
use std::collections::{HashMap, HashSet};
use std::path::{Component, Path, PathBuf};

/// Reads imports relative to the file that names them, else in the import folders.
pub struct Disk {
    /// Where imports are searched that are not found relative to the importing file, in order.
    import_folders: Vec<PathBuf>,
    /// The folder of each file, by its id: the first ones, then the others in the order they were loaded.
    folders: Vec<PathBuf>,
    /// Names the compiler has seen.
    known: HashSet<String>,
    /// The name by which each file was read first: links are names of the same file.
    files: HashMap<FileIdentity, String>,
    /// The paths that were read, in order.
    read: Vec<PathBuf>,
    /// The source of the bytes.
    origin: Origin,
}

enum Origin {
    Disk,
    /// By name.
    Recording(HashMap<String, String>),
}

/// Reads a program's root file and its separate fast paths, and makes the loader for their imports. A root `-` is
/// standard input.
pub fn open_program(root: &Path, fast_paths: &[PathBuf]) -> Result<(Source, Disk), HostError> {
    let mut disk = Disk::new(Origin::Disk);
    let root = disk.open(root)?;
    let fast_paths = fast_paths.iter().map(|path| disk.open(path)).collect::<Result<_, _>>()?;
    Ok((Source { root, fast_paths }, disk))
}

/// A program of a recording, by its files, the root first.
pub fn open_recorded(files: &[(String, String)]) -> Option<(Source, Disk)> {
    let (name, text) = files.first()?;
    let origin = Origin::Recording(files.iter().cloned().collect());
    let mut disk = Disk::new(origin);
    disk.known.insert(name.clone());
    disk.folders.push(Path::new(name).parent().map(Path::to_path_buf).unwrap_or_default());
    let root = File { name: name.clone(), bytes: text.clone().into_bytes() };
    Some((Source { root, fast_paths: Vec::new() }, disk))
}

impl Disk {
    fn new(origin: Origin) -> Disk {
        let (folders, import_folders, read) = (Vec::new(), Vec::new(), Vec::new());
        Disk { import_folders, folders, known: HashSet::new(), files: HashMap::new(), read, origin }
    }

    /// Adds folders in which imports are searched that are not found relative to the importing file.
    pub fn search_imports_in(&mut self, folders: &[PathBuf]) {
        self.import_folders.extend_from_slice(folders);
    }

    /// The place of an import: that relative to the importing file if there is a file, else the first one in an import
    /// folder, else the former again, which the error then names. A recording does not know the folders of its run, but
    /// the names of the files in them end as the import does.
    fn place(&self, path: &str, importer: FileId) -> PathBuf {
        let folder = self.folders.get(importer.0 as usize).cloned().unwrap_or_default();
        // An import is a file, never standard input.
        let named = |path: PathBuf| if path.as_os_str() == "-" { PathBuf::from("./-") } else { path };
        let near = named(normal(&folder.join(path)));
        let found = match &self.origin {
            Origin::Disk if near.exists() => None,
            Origin::Disk => {
                let mut in_folders = self.import_folders.iter().map(|folder| named(normal(&folder.join(path))));
                in_folders.find(|path| path.exists())
            }
            Origin::Recording(files) if files.contains_key(&near.display().to_string()) => None,
            Origin::Recording(files) => {
                let names = files.keys().map(PathBuf::from);
                names.filter(|name| name.ends_with(normal(Path::new(path)))).min()
            }
        };
        found.unwrap_or(near)
    }

    /// The paths of the files that were read, each once, the root first; without standard input.
    pub fn paths_read(&self) -> Vec<PathBuf> {
        let mut seen = HashSet::new();
        self.read.iter().filter(|path| seen.insert(*path)).cloned().collect()
    }

    fn open(&mut self, path: &Path) -> Result<File, HostError> {
        let bytes = read_bytes(path)?;
        let path = normal(path);
        if path.as_os_str() != "-" {
            self.read.push(path.clone());
        }
        let name = self.record(&path);
        if let Some(identity) = file_identity(&path) {
            self.files.entry(identity).or_insert_with(|| name.clone());
        }
        Ok(File { name, bytes })
    }

    /// Records the folder of a file at its first use; returns the name of the file.
    fn record(&mut self, path: &Path) -> String {
        let name = if path.as_os_str() == "-" { "<stdin>".to_string() } else { path.display().to_string() };
        if self.known.insert(name.clone()) {
            self.folders.push(path.parent().map(Path::to_path_buf).unwrap_or_default());
        }
        name
    }
}

impl Loader for Disk {
    fn load(&mut self, path: &str, importer: FileId) -> Result<(String, Vec<u8>), String> {
        let path = self.place(path, importer);
        let bytes = match &self.origin {
            // An import is read repeatedly, which a pipe or device does not allow.
            Origin::Disk if path.metadata().is_ok_and(|data| !data.is_file() && !data.is_dir()) => {
                return Err("it is not a regular file".to_string());
            }
            Origin::Disk => read_bytes(&path).map_err(|error| match error.cause.split_once("`: ") {
                // The compiler names the file itself.
                Some((_, reason)) => reason.to_string(),
                None => error.cause,
            })?,
            Origin::Recording(files) => match files.get(&path.display().to_string()) {
                Some(text) => text.clone().into_bytes(),
                None => return Err("it is not in the recording".to_string()),
            },
        };
        let identity = match &self.origin {
            Origin::Disk => {
                self.read.push(path.clone());
                file_identity(&path)
            }
            Origin::Recording(_) => None,
        };
        match identity.as_ref().and_then(|identity| self.files.get(identity)) {
            Some(name) => Ok((name.clone(), bytes)),
            None => {
                let name = self.record(&path);
                self.files.extend(identity.map(|identity| (identity, name.clone())));
                Ok((name, bytes))
            }
        }
    }
}

/// A path without `.` and `x/..`, so that a file has one name on every import path.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => match normal.components().next_back() {
                Some(Component::Normal(_)) => {
                    normal.pop();
                }
                Some(Component::RootDir) => {}
                Some(Component::ParentDir | Component::CurDir | Component::Prefix(_)) | None => normal.push(".."),
            },
            Component::Normal(_) | Component::RootDir | Component::Prefix(_) => normal.push(component),
        }
    }
    normal
}

#[cfg(test)]
mod tests {
    use super::normal;
    use std::path::Path;

    #[test]
    fn a_file_has_one_name_however_it_is_reached() {
        for (written, name) in [
            ("a.esp", "a.esp"),
            ("./a.esp", "a.esp"),
            ("x/../a.esp", "a.esp"),
            ("x/./y/../../a.esp", "a.esp"),
            ("../a.esp", "../a.esp"),
            ("../../x/../a.esp", "../../a.esp"),
            ("/../a.esp", "/a.esp"),
        ] {
            assert_eq!(normal(Path::new(written)), Path::new(name), "{written}");
        }
    }
}
