//! Program files and their imports, read from disk for the compiler, and outputs that are written if they differ.

use crate::error::Error;
use quaject_esp::{File, Loader, Source};
use quaject_esp_syntax::span::FileId;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Reads imports relative to the file that names them, else in the import folders.
pub(crate) struct SourceFiles {
    import_folders: Vec<PathBuf>,
    /// The folder of each file, by its id: the first ones, then the others in the order they were loaded.
    folders: Vec<PathBuf>,
    /// The name by which each file was read first: links are names of the same file.
    names: HashMap<PathBuf, String>,
    /// Every path that was read or looked for, in order; a file that appears at one of them changes the program.
    pub(crate) dependencies: Vec<PathBuf>,
}

impl SourceFiles {
    /// Reads a program's root file and its separate fast paths.
    pub(crate) fn open(
        root: &Path,
        fast_paths: &[PathBuf],
        import_folders: &[PathBuf],
    ) -> Result<(Source, SourceFiles), Error> {
        let import_folders = import_folders.to_vec();
        let mut files =
            SourceFiles { import_folders, folders: Vec::new(), names: HashMap::new(), dependencies: Vec::new() };
        let root = files.read(root)?;
        let fast_paths = fast_paths.iter().map(|path| files.read(path)).collect::<Result<_, _>>()?;
        Ok((Source { root, fast_paths }, files))
    }

    fn read(&mut self, path: &Path) -> Result<File, Error> {
        self.dependencies.push(path.to_path_buf());
        let bytes = fs::read(path).map_err(|reason| Error::File { verb: "read", path: path.to_path_buf(), reason })?;
        Ok(File { name: self.name_of(path), bytes })
    }

    /// The name of a file, which is that of its first use.
    fn name_of(&mut self, path: &Path) -> String {
        let identity = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        if let Some(name) = self.names.get(&identity) {
            return name.clone();
        }
        let name = path.display().to_string();
        self.folders.push(path.parent().map(Path::to_path_buf).unwrap_or_default());
        self.names.insert(identity, name.clone());
        name
    }
}

impl Loader for SourceFiles {
    fn load(&mut self, path: &str, importer: FileId) -> Result<(String, Vec<u8>), String> {
        let near = self.folders.get(importer.0 as usize).cloned().unwrap_or_default().join(path);
        let far = self.import_folders.iter().map(|folder| folder.join(path));
        let candidates: Vec<PathBuf> = std::iter::once(near.clone()).chain(far).collect();
        let found = candidates.iter().position(|path| path.exists());
        let looked_for = found.map_or(candidates.len(), |index| index + 1);
        self.dependencies.extend_from_slice(&candidates[..looked_for]);
        let path = found.map_or(&near, |index| &candidates[index]);
        let bytes = fs::read(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => "no such file".to_string(),
            _ => error.to_string(),
        })?;
        Ok((self.name_of(path), bytes))
    }
}

/// Writes a file unless it has this content already, so that what is made of it stays up to date.
pub(crate) fn update_file(path: &Path, content: &str) -> Result<(), Error> {
    if fs::read(path).is_ok_and(|present| present == content.as_bytes()) {
        return Ok(());
    }
    let folder = path.parent().map_or(Ok(()), fs::create_dir_all);
    let written = folder.and_then(|()| fs::write(path, content));
    written.map_err(|reason| Error::File { verb: "write", path: path.to_path_buf(), reason })
}
