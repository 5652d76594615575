//! One program as analysed: its root, the files in it, and what the front end found. Reads files through [`Files`].

use crate::paths::{normal, relative_to};
use quaject_esp_syntax::check::{Inspection, Loader, decode, inspect};
use quaject_esp_syntax::span::{FileId, SourceMap, Span};
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;

/// The files under the open texts.
pub trait Files {
    /// The bytes of a file, or why it cannot be read, such as `no such file`.
    fn read(&self, path: &str) -> Result<Vec<u8>, String>;
}

/// A part of a file.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Location {
    /// The file. A standard module is named as imports name it, as in `std:format`.
    pub path: String,
    /// First byte and one past the last.
    pub range: (u32, u32),
}

/// Where texts come from: the editor, else the files.
#[derive(Clone, Copy)]
pub(crate) struct Texts<'w> {
    pub(crate) files: &'w dyn Files,
    pub(crate) open: &'w BTreeMap<String, String>,
    pub(crate) import_folders: &'w [String],
}

impl Texts<'_> {
    pub(crate) fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        match self.open.get(path) {
            Some(text) => Ok(text.clone().into_bytes()),
            None => self.files.read(path),
        }
    }

    /// The paths that an import can mean, in order.
    pub(crate) fn candidates(&self, importer: &str, path: &str) -> Vec<String> {
        let folders = self.import_folders.iter().map(|folder| normal(&format!("{folder}/{path}")));
        std::iter::once(relative_to(importer, path)).chain(folders).collect()
    }
}

/// A program.
pub(crate) struct Program {
    pub(crate) root: String,
    pub(crate) sources: SourceMap,
    pub(crate) inspection: Inspection,
    /// The paths of its files, and those at which there was none.
    pub(crate) paths: FxHashSet<String>,
}

impl Program {
    /// Reads and checks a program; none if its root cannot be read.
    pub(crate) fn new(texts: Texts, root: &str) -> Option<Program> {
        let bytes = texts.read(root).ok()?;
        let mut sources = SourceMap::default();
        let (file, fault) = decode(&mut sources, root.to_string(), bytes);
        let mut imports = ImportLoader { texts, importers: vec![root.to_string()], paths: FxHashSet::default() };
        let mut inspection = inspect(&mut sources, file, &mut imports);
        inspection.diagnostics.extend(fault);
        let mut paths = imports.paths;
        paths.insert(root.to_string());
        Some(Program { root: root.to_string(), sources, inspection, paths })
    }

    /// The file of a path.
    pub(crate) fn file(&self, path: &str) -> Option<FileId> {
        let number = self.sources.files().iter().position(|file| file.name == path)?;
        Some(FileId(number as u16))
    }

    /// The place of a span, without the calls that lead there.
    pub(crate) fn location(&self, span: Span) -> Location {
        let span = self.sources.origin(span);
        Location { path: self.sources.file(span.file).name.clone(), range: (span.start, span.end) }
    }

    /// The span of a place.
    pub(crate) fn span(&self, location: &Location) -> Option<Span> {
        Some(Span::new(self.file(&location.path)?, location.range.0, location.range.1))
    }
}

struct ImportLoader<'w> {
    texts: Texts<'w>,
    /// The root and the files that were given, in order.
    importers: Vec<String>,
    paths: FxHashSet<String>,
}

impl Loader for ImportLoader<'_> {
    fn load(&mut self, path: &str, importer: FileId) -> Result<(String, Vec<u8>), String> {
        let importer = self.importers.get(importer.0 as usize).cloned().unwrap_or_default();
        let mut reason = None;
        for candidate in self.texts.candidates(&importer, path) {
            self.paths.insert(candidate.clone());
            match self.texts.read(&candidate) {
                Ok(bytes) => {
                    if !self.importers.contains(&candidate) {
                        self.importers.push(candidate.clone());
                    }
                    return Ok((candidate, bytes));
                }
                Err(why) => drop(reason.get_or_insert(why)),
            }
        }
        Err(reason.unwrap_or_default())
    }
}
