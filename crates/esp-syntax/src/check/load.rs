//! Reads and parses the root file and everything it imports, each file once. Knows nothing of what the items mean.

use super::modules::{self, Arranged, Scopes};
use super::uses::ImportedFile;
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
    /// The files in the order they were first read, then the copies of those that are imported with arguments.
    pub(super) files: Vec<ast::File>,
    /// Items in order of text, an import counting at its first occurrence: file and item number.
    pub(super) order: Vec<(usize, usize)>,
    pub(super) scopes: Scopes,
    /// The imports whose file was found.
    pub(super) imports: Vec<ImportedFile>,
    /// The names in the arguments of imports, and the parameters that they name.
    pub(super) given: Vec<(Span, Span)>,
    pub(super) integrity: Integrity,
    pub(super) diagnostics: Vec<Diagnostic>,
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
    let mut loaded = Loaded {
        files: Vec::new(),
        order: Vec::new(),
        scopes: Scopes::default(),
        imports: Vec::new(),
        given: Vec::new(),
        integrity: Integrity::Whole,
        diagnostics: Vec::new(),
    };
    let mut reader = FileReader {
        loaded: &mut loaded,
        sources,
        loader,
        known: FxHashMap::default(),
        ids: Vec::new(),
        is_followed: Vec::new(),
        targets: FxHashMap::default(),
        loader_numbers: FxHashMap::default(),
    };
    let first = || std::iter::once(root).chain(fast_path_files.iter().copied());
    first().for_each(|id| reader.count(id));
    let mut roots = Vec::new();
    for id in first() {
        let name = reader.sources.file(id).name.clone();
        if reader.known.contains_key(&name) {
            continue;
        }
        reader.known.insert(name, reader.ids.len());
        let kind = if id == root { FileKind::Program } else { FileKind::FastPaths };
        let number = reader.add(id, kind);
        let number = if id == root { reader.program_of(number) } else { number };
        reader.follow_imports(number);
        roots.push(number);
    }
    reader.check_part(roots[0]);
    let FileReader { ids, targets, .. } = reader;
    loaded.imports = targets
        .iter()
        .filter_map(|((file, item), target)| match &loaded.files[*file].items[*item] {
            ast::Item::Import(import) => {
                let name = import.name.as_ref().map(|name| name.span);
                Some(ImportedFile { path: import.span, file: ids[*target], name })
            }
            _ => None,
        })
        .collect();
    loaded.imports.sort_by_key(|import| import.path);
    let Arranged { order, scopes, given, diagnostics } =
        modules::arrange(&mut loaded.files, &ids, &roots, &targets, sources);
    (loaded.order, loaded.scopes, loaded.given) = (order, scopes, given);
    loaded.diagnostics.extend(diagnostics);
    loaded
}

/// What reads the files of a program.
struct FileReader<'r> {
    loaded: &'r mut Loaded,
    sources: &'r mut SourceMap,
    loader: &'r mut dyn Loader,
    /// The numbers of files by name.
    known: FxHashMap<String, usize>,
    /// The id of each file.
    ids: Vec<FileId>,
    /// Whether the imports of each file have been followed.
    is_followed: Vec<bool>,
    /// The files that imports name, by file and item.
    targets: FxHashMap<(usize, usize), usize>,
    /// The number of each file as the loader counts them; none for standard modules.
    loader_numbers: FxHashMap<FileId, FileId>,
}

impl FileReader<'_> {
    /// Parses a file; returns its number.
    fn add(&mut self, id: FileId, kind: FileKind) -> usize {
        let text = &self.sources.file(id).text;
        let parsed = match kind {
            FileKind::Program => parser::parse(id, text),
            FileKind::FastPaths => parser::parse_fast_paths(id, text),
        };
        let file = parsed.ast();
        let diagnostics = parsed.into_diagnostics();
        if diagnostics.iter().any(|diagnostic| diagnostic.severity() == Severity::Error)
            && self.loaded.integrity == Integrity::Whole
        {
            self.loaded.integrity = Integrity::Damaged;
        }
        self.loaded.diagnostics.extend(diagnostics);
        self.loaded.files.push(file);
        self.ids.push(id);
        self.is_followed.push(false);
        self.ids.len() - 1
    }

    /// Walks the items of a file in order, descending into an import at its first occurrence. Iterative: a chain of
    /// imports may be long.
    fn follow_imports(&mut self, first: usize) {
        let mut stack = vec![(first, 0usize)];
        self.is_followed[first] = true;
        while let Some((file, item)) = stack.pop() {
            let Some(entry) = self.loaded.files[file].items.get(item) else { continue };
            stack.push((file, item + 1));
            let ast::Item::Import(import) = entry else { continue };
            let (path, span) = (String::from_utf8_lossy(&import.path).into_owned(), import.span);
            let Some(target) = self.file(&path, span) else { continue };
            self.targets.insert((file, item), target);
            if !self.is_followed[target] {
                self.is_followed[target] = true;
                stack.push((target, 0));
            }
        }
    }

    /// The number of the file of this name, which is read if it is new. None after an error.
    fn file(&mut self, path: &str, span: Span) -> Option<usize> {
        if self.ids.len() >= MAX_FILES {
            self.fail(span, path, "a program has at most 65535 files", None);
            return None;
        }
        let (found, is_standard) = match (path.strip_prefix(standard::PREFIX), self.loader_numbers.get(&span.file)) {
            (Some(module), _) => (standard_module(module), true),
            (None, Some(importer)) => (self.loader.load(path, *importer).map_err(|reason| (reason, None)), false),
            (None, None) => (Err(("a standard module imports standard modules only".to_string(), None)), false),
        };
        let (name, bytes) = match found {
            Ok(found) => found,
            Err((reason, help)) => {
                self.fail(span, path, &reason, help);
                return None;
            }
        };
        if let Some(number) = self.known.get(&name) {
            return Some(*number);
        }
        self.known.insert(name.clone(), self.ids.len());
        let (id, fault) = decode(self.sources, name, bytes);
        if !is_standard {
            self.count(id);
        }
        if let Some(fault) = fault {
            self.loaded.integrity = Integrity::Missing;
            self.loaded.diagnostics.push(fault);
        }
        Some(self.add(id, FileKind::Program))
    }

    /// The root file of the program that a file says it is a part of, or the file itself.
    fn program_of(&mut self, file: usize) -> usize {
        let Some((path, span)) = self.part_of(file) else { return file };
        self.file(&path, span).unwrap_or(file)
    }

    fn part_of(&self, file: usize) -> Option<(String, Span)> {
        self.loaded.files[file].items.iter().find_map(|item| match item {
            ast::Item::PartOf(part) => Some((String::from_utf8_lossy(&part.path).into_owned(), part.span)),
            _ => None,
        })
    }

    /// E0211: the file that was given, the first one, is not among those of the program that it names.
    fn check_part(&mut self, root: usize) {
        let Some((path, span)) = self.part_of(0).filter(|_| root != 0 && !self.is_followed[0]) else { return };
        let message = format!("`{path}` does not import this file");
        let help = "name the program that imports it, or leave out `part of`";
        self.loaded.diagnostics.push(Diagnostic::new(Code::E0211, span, message).help(help));
    }

    /// Gives a file the loader's next number.
    fn count(&mut self, id: FileId) {
        let number = FileId(self.loader_numbers.len() as u16);
        self.loader_numbers.entry(id).or_insert(number);
    }

    fn fail(&mut self, span: Span, path: &str, reason: &str, help: Option<String>) {
        self.loaded.integrity = Integrity::Missing;
        let diagnostic = Diagnostic::new(Code::E0209, span, format!("cannot read `{path}`: {reason}"));
        self.loaded.diagnostics.push(match help {
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
