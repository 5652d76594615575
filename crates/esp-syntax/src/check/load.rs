//! Reads and parses the root file and everything it imports, each file once. Knows nothing of what the items mean.

use crate::ast;
use crate::diagnostics::{Code, Diagnostic, Severity, nearest};
use crate::parser;
use crate::span::{FileId, SourceFile, SourceMap, Span};
use crate::standard;
use rustc_hash::FxHashMap;

/// Where imported files come from. The analysis does no I/O of its own.
pub trait Loader {
    /// The file named `path` in an `import` of `importer`: its canonical name, which identifies the file, and its
    /// bytes; or why it cannot be read, such as `no such file`. `importer` counts the root, the files of fast paths and
    /// those that the loader gave, in this order; standard modules do not come from a loader and are not counted.
    fn load(&mut self, path: &str, importer: FileId) -> Result<(String, Vec<u8>), String>;
}

/// The maximum number of files of one program; [`FileId`] has room for one more.
const MAX_FILES: usize = 65_535;

/// Whether every item of the program is known. If not, unknown names are likely to be follow-ups of the first error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Integrity {
    /// All files were read and parsed without an error.
    Whole,
    /// All files were read, but some text could not be parsed.
    Damaged,
    /// Some file is missing.
    Missing,
}

/// What a file may hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum FileKind {
    Program,
    /// Fast paths and imports only.
    FastPaths,
}

/// All files of a program.
pub(super) struct Loaded {
    /// The files in the order they were first read.
    pub(super) files: Vec<ast::File>,
    /// Items in order of text, an import counting at its first occurrence: file and item number.
    pub(super) order: Vec<(usize, usize)>,
    pub(super) integrity: Integrity,
    pub(super) diagnostics: Vec<Diagnostic>,
    /// The number of each file as the loader counts them; none for standard modules.
    loader_numbers: FxHashMap<FileId, FileId>,
}

/// Decodes a source file's bytes. The first byte that is not UTF-8 is reported and ends the text.
pub fn decode(sources: &mut SourceMap, name: String, bytes: Vec<u8>) -> (FileId, Option<Diagnostic>) {
    match String::from_utf8(bytes) {
        Ok(text) => (sources.add(SourceFile::new(name, text)), None),
        Err(error) => {
            let valid = error.utf8_error().valid_up_to();
            let bytes = error.into_bytes();
            let text = String::from_utf8_lossy(&bytes[..valid]).into_owned();
            let file = sources.add(SourceFile::new(name, text));
            let at = Span::new(file, valid as u32, valid as u32);
            let message = format!("byte 0x{:02x} is not UTF-8", bytes[valid]);
            (file, Some(Diagnostic::new(Code::E0101, at, message).help("save the file as UTF-8")))
        }
    }
}

/// Reads `root`, the separate fast-path files and all imports.
pub(super) fn load(
    sources: &mut SourceMap,
    root: FileId,
    fast_path_files: &[FileId],
    loader: &mut dyn Loader,
) -> Loaded {
    let mut known: FxHashMap<String, usize> = FxHashMap::default();
    let mut loaded = Loaded {
        files: Vec::new(),
        order: Vec::new(),
        integrity: Integrity::Whole,
        diagnostics: Vec::new(),
        loader_numbers: FxHashMap::default(),
    };
    let first = || std::iter::once(root).chain(fast_path_files.iter().copied());
    first().for_each(|id| loaded.count(id));
    for id in first() {
        let name = sources.file(id).name.clone();
        if known.contains_key(&name) {
            continue;
        }
        known.insert(name, loaded.files.len());
        let first = loaded.add(sources, id, if id == root { FileKind::Program } else { FileKind::FastPaths });
        loaded.follow_imports(first, sources, loader, &mut known);
    }
    loaded
}

impl Loaded {
    /// Parses a file; returns its number.
    fn add(&mut self, sources: &SourceMap, id: FileId, kind: FileKind) -> usize {
        let text = &sources.file(id).text;
        let parsed = match kind {
            FileKind::Program => parser::parse(id, text),
            FileKind::FastPaths => parser::parse_fast_paths(id, text),
        };
        let file = parsed.ast();
        let diagnostics = parsed.into_diagnostics();
        if diagnostics.iter().any(|diagnostic| diagnostic.severity() == Severity::Error)
            && self.integrity == Integrity::Whole
        {
            self.integrity = Integrity::Damaged;
        }
        self.diagnostics.extend(diagnostics);
        self.files.push(file);
        self.files.len() - 1
    }

    /// Walks the items of a file in order, descending into an import at its first occurrence. Iterative: a chain of
    /// imports may be long.
    fn follow_imports(
        &mut self,
        first: usize,
        sources: &mut SourceMap,
        loader: &mut dyn Loader,
        known: &mut FxHashMap<String, usize>,
    ) {
        let mut stack = vec![(first, 0usize)];
        while let Some((file, item)) = stack.pop() {
            let Some(entry) = self.files[file].items.get(item) else { continue };
            stack.push((file, item + 1));
            let ast::Item::Import(import) = entry else {
                self.order.push((file, item));
                continue;
            };
            let (path, span) = (String::from_utf8_lossy(&import.path).into_owned(), import.span);
            if self.files.len() >= MAX_FILES {
                self.fail(span, &path, "a program has at most 65535 files", None);
                continue;
            }
            let (found, is_standard) = match (path.strip_prefix(standard::PREFIX), self.loader_numbers.get(&span.file))
            {
                (Some(module), _) => (standard_module(module), true),
                (None, Some(importer)) => (loader.load(&path, *importer).map_err(|reason| (reason, None)), false),
                (None, None) => (Err(("a standard module imports standard modules only".to_string(), None)), false),
            };
            match found {
                Err((reason, help)) => self.fail(span, &path, &reason, help),
                Ok((name, _)) if known.contains_key(&name) => {}
                Ok((name, bytes)) => {
                    known.insert(name.clone(), self.files.len());
                    let (id, fault) = decode(sources, name, bytes);
                    if !is_standard {
                        self.count(id);
                    }
                    if let Some(fault) = fault {
                        self.integrity = Integrity::Missing;
                        self.diagnostics.push(fault);
                    }
                    let number = self.add(sources, id, FileKind::Program);
                    stack.push((number, 0));
                }
            }
        }
    }

    /// Gives a file the loader's next number.
    fn count(&mut self, id: FileId) {
        let number = FileId(self.loader_numbers.len() as u16);
        self.loader_numbers.entry(id).or_insert(number);
    }

    fn fail(&mut self, span: Span, path: &str, reason: &str, help: Option<String>) {
        self.integrity = Integrity::Missing;
        let diagnostic = Diagnostic::new(Code::E0209, span, format!("cannot read `{path}`: {reason}"));
        self.diagnostics.push(match help {
            Some(help) => diagnostic.help(help),
            None => diagnostic,
        });
    }
}

/// Name and text of a standard module, or the reason why there is none and the way out.
fn standard_module(name: &str) -> Result<(String, Vec<u8>), (String, Option<String>)> {
    match standard::text(name) {
        Some(text) => Ok((format!("{}{name}", standard::PREFIX), text.as_bytes().to_vec())),
        None => {
            let names = || standard::MODULES.iter().map(|(name, _)| *name);
            let help = match nearest(name, names()) {
                Some(near) => format!("did you mean `{}{near}`?", standard::PREFIX),
                None => format!("the standard modules are `{}`", names().collect::<Vec<_>>().join("`, `")),
            };
            Err(("no such standard module".to_string(), Some(help)))
        }
    }
}
