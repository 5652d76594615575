//! The workspace of an editor: the open texts, the programs that they belong to, and the analysis of each program that
//! an edit concerns. Answers questions in its submodules' themes; reads files through [`Files`] only.

use crate::problems::{self, Problem};
use crate::program::{Files, Program, Texts};
use quaject_esp_syntax::ast;
use quaject_esp_syntax::parser::{self, Parse};
use quaject_esp_syntax::span::FileId;
use quaject_esp_syntax::standard;
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// The root files of programs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Roots {
    /// Those that project files name.
    pub named: Vec<String>,
    /// Files without a project file: each that no other one imports is a root.
    pub found: Vec<String>,
}

/// The texts and programs of an editor.
pub struct Workspace {
    files: Box<dyn Files>,
    open: BTreeMap<String, String>,
    roots: Roots,
    import_folders: Vec<String>,
    /// The programs by their root files.
    programs: BTreeMap<String, Program>,
    /// Files whose text has changed since the programs were analysed.
    changed: BTreeSet<String>,
    /// The files that each file imports, and whether it is a part of another program.
    imports: FxHashMap<String, ImportList>,
    /// The problems of each file that were returned last, if there were any.
    reported: BTreeMap<String, Vec<Problem>>,
    parses: RefCell<FxHashMap<String, Rc<Parse>>>,
}

#[derive(Clone, Default)]
struct ImportList {
    /// Each import has its candidates.
    targets: Vec<Vec<String>>,
    is_part: bool,
}

impl Workspace {
    /// A workspace without open texts.
    pub fn new(files: Box<dyn Files>, roots: Roots) -> Workspace {
        Workspace {
            files,
            open: BTreeMap::new(),
            roots,
            import_folders: Vec::new(),
            programs: BTreeMap::new(),
            changed: BTreeSet::new(),
            imports: FxHashMap::default(),
            reported: BTreeMap::new(),
            parses: RefCell::default(),
        }
    }

    /// Replaces the roots, and the folders in which imports are searched that are not found relative to the importing
    /// file.
    pub fn set_roots(&mut self, roots: Roots, import_folders: Vec<String>) {
        (self.roots, self.import_folders) = (roots, import_folders);
        self.programs.clear();
        self.imports.clear();
    }

    /// Opens a file in the editor, or replaces its text.
    pub fn set_text(&mut self, path: &str, text: impl Into<String>) {
        self.open.insert(path.to_string(), text.into());
        self.note_change(path);
    }

    /// The text of an open file.
    pub fn open_text(&self, path: &str) -> Option<&str> {
        self.open.get(path).map(String::as_str)
    }

    /// Closes a file in the editor: its text is that of the file again.
    pub fn close(&mut self, path: &str) {
        self.open.remove(path);
        self.note_change(path);
    }

    /// A file was written, created or deleted outside of the editor.
    pub fn note_change(&mut self, path: &str) {
        self.changed.insert(path.to_string());
        self.imports.remove(path);
        self.parses.borrow_mut().remove(path);
    }

    /// Analyses the programs that changes concern. Returns the files whose problems are others than before, with all
    /// their problems.
    pub fn refresh(&mut self) -> Vec<(String, Vec<Problem>)> {
        let changed = std::mem::take(&mut self.changed);
        self.programs.retain(|_, program| changed.iter().all(|path| !program.paths.contains(path)));
        let roots = self.current_roots();
        for root in &roots {
            self.analyse(root);
        }
        // Texts that belong to no program are programs of their own.
        let mut of_roots = BTreeSet::new();
        for program in self.programs.values().filter(|program| roots.contains(&program.root)) {
            of_roots.extend(program.sources.files().iter().map(|file| file.name.as_str()));
        }
        let single: Vec<String> = self.open.keys().filter(|path| !of_roots.contains(path.as_str())).cloned().collect();
        self.programs.retain(|root, _| roots.contains(root) || single.contains(root));
        for path in &single {
            if self.programs.values().all(|program| program.file(path).is_none()) {
                self.analyse(path);
            }
        }
        let present = problems::by_file(self.programs.values());
        let without = self.reported.keys().filter(|path| !present.contains_key(*path));
        let mut news: Vec<(String, Vec<Problem>)> = without.map(|path| (path.clone(), Vec::new())).collect();
        for (path, problems) in &present {
            if self.reported.get(path) != Some(problems) {
                news.push((path.clone(), problems.clone()));
            }
        }
        self.reported = present;
        news
    }

    /// Whether a file is the root of a program.
    pub fn is_root(&self, path: &str) -> bool {
        self.programs.contains_key(path)
    }

    /// All problems of a file, as last returned.
    pub fn problems(&self, path: &str) -> &[Problem] {
        self.reported.get(path).map_or(&[], Vec::as_slice)
    }

    fn analyse(&mut self, root: &str) {
        if !self.programs.contains_key(root)
            && let Some(program) = Program::new(self.texts(), root)
        {
            self.programs.insert(root.to_string(), program);
        }
    }

    /// The programs as they would be with other texts: those that have one of the files.
    pub(crate) fn with_texts(&self, texts: &BTreeMap<String, String>) -> Vec<(&Program, Program)> {
        let mut open = self.open.clone();
        open.extend(texts.iter().map(|(path, text)| (path.clone(), text.clone())));
        let texts_then = Texts { open: &open, ..self.texts() };
        let concerned = self.programs.values().filter(|program| texts.keys().any(|path| program.paths.contains(path)));
        concerned.filter_map(|program| Some((program, Program::new(texts_then, &program.root)?))).collect()
    }

    fn texts(&self) -> Texts<'_> {
        Texts { files: &*self.files, open: &self.open, import_folders: &self.import_folders }
    }

    /// The programs that have a file, and the file in each.
    pub(crate) fn programs_with<'w>(&'w self, path: &'w str) -> impl Iterator<Item = (&'w Program, FileId)> {
        self.programs.values().filter_map(move |program| Some((program, program.file(path)?)))
    }

    pub(crate) fn programs(&self) -> impl Iterator<Item = &Program> {
        self.programs.values()
    }

    /// The text of a file, open or not, or of a standard module.
    pub fn text(&self, path: &str) -> Option<String> {
        if let Some(text) = path.strip_prefix(standard::PREFIX).and_then(standard::text) {
            return Some(text.to_string());
        }
        match self.open.get(path) {
            Some(text) => Some(text.clone()),
            None => self.files.read(path).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
        }
    }

    /// The syntax of a file.
    pub(crate) fn parse(&self, path: &str) -> Option<Rc<Parse>> {
        if let Some(parse) = self.parses.borrow().get(path) {
            return Some(parse.clone());
        }
        let parse = Rc::new(parser::parse(FileId(0), &self.text(path)?));
        self.parses.borrow_mut().insert(path.to_string(), parse.clone());
        Some(parse)
    }

    fn current_roots(&mut self) -> BTreeSet<String> {
        let files: BTreeSet<String> = self.roots.found.iter().cloned().collect();
        for path in &files {
            if !self.imports.contains_key(path) {
                let imports = self.imports_of(path);
                self.imports.insert(path.clone(), imports);
            }
        }
        let targets = |path: &String| {
            let imports = self.imports.get(path).into_iter().flat_map(|imports| &imports.targets);
            imports.filter_map(|candidates| candidates.iter().find(|path| self.imports.contains_key(*path)))
        };
        let imported: BTreeSet<&String> = files.iter().flat_map(targets).collect();
        let is_root = |path: &&String| !imported.contains(path) && !self.imports[*path].is_part;
        let mut roots: BTreeSet<String> = files.iter().filter(is_root).cloned().collect();
        // Files that import each other in a circle belong to the first of them if no root leads there.
        let mut reached: BTreeSet<&String> = BTreeSet::new();
        let mut open: Vec<&String> = roots.iter().filter_map(|root| files.iter().find(|path| *path == root)).collect();
        let mut rest = files.iter().filter(|path| !self.imports[*path].is_part);
        loop {
            while let Some(path) = open.pop() {
                if reached.insert(path) {
                    open.extend(targets(path));
                }
            }
            match rest.find(|path| !reached.contains(path)) {
                Some(path) => {
                    roots.insert(path.clone());
                    open.push(path);
                }
                None => {
                    roots.extend(self.roots.named.iter().cloned());
                    return roots;
                }
            }
        }
    }

    fn imports_of(&self, path: &str) -> ImportList {
        let Some(parse) = self.parse(path) else { return ImportList::default() };
        let mut imports = ImportList::default();
        for item in parse.ast().items {
            match item {
                ast::Item::Import(import) => {
                    let target = String::from_utf8_lossy(&import.path).into_owned();
                    if !target.starts_with(standard::PREFIX) {
                        imports.targets.push(self.texts().candidates(path, &target));
                    }
                }
                ast::Item::PartOf(_) => imports.is_part = true,
                _ => {}
            }
        }
        imports
    }
}
