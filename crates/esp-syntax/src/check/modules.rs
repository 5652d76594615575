//! Modules: which items are visible under which names. The files of a program that import each other without a name
//! are one module; a file that is imported with a name begins another, and one for each import that has arguments.
//! Knows nothing of what items mean.
//!
//! ```text
//! main.esp ── import "parts.esp"; ──────────── one scope: `x`
//!     └────── import "ring.esp" as ring; ───── its own:   `ring.x` for `pub` items of ring.esp
//! ```
//!
//! An item `x` of the module `ring` has the key `ring.x` in the checker's table of names, and the name `ring_x` in all
//! that is made from the program. The items of the first module keep their names.

use super::relocate::Relocate;
use crate::ast::{self, ImportValue, Item};
use crate::diagnostics::{Code, Diagnostic, nearest};
use crate::span::{Expansion, FileId, SourceMap, Span};
use rustc_hash::{FxHashMap, FxHashSet};
use smol_str::{SmolStr, format_smolstr};

/// The maximum number of modules with arguments inside of each other.
const MAX_DEPTH: usize = 16;
/// The maximum number of bytes of text that all modules with arguments repeat.
const MAX_BYTES: usize = 4 << 20;

/// A name that an import gives.
#[derive(Clone, Debug)]
pub(super) struct NamedImport {
    /// The location of the name.
    pub(super) span: Span,
    /// The number of the module.
    pub(super) module: usize,
}

/// A module: the files that share a scope.
#[derive(Clone, Debug)]
pub(super) struct Module {
    /// What begins the keys of its items; empty for the first module.
    prefix: SmolStr,
    /// The name of its first file.
    pub(super) file: String,
    /// Files of other modules that it imports without a name.
    opens: Vec<FileId>,
}

/// Which items are visible where. Without a named import all names are visible everywhere.
#[derive(Clone, Debug, Default)]
pub(super) struct Scopes {
    modules: Vec<Module>,
    /// The module of each file, and of each copy of a file for arguments.
    homes: FxHashMap<FileId, usize>,
    imports: FxHashMap<(FileId, SmolStr), NamedImport>,
    /// The names of items that begin with `pub`.
    public: FxHashSet<Span>,
    /// Copies of files for arguments.
    copies: FxHashSet<FileId>,
    /// The keys of the items of named modules, by the names that they have in what is made from the program.
    keys: FxHashMap<SmolStr, SmolStr>,
}

impl Scopes {
    /// Whether all names are visible everywhere.
    pub(super) fn is_single(&self) -> bool {
        self.modules.is_empty()
    }

    /// An item's name in what is made from the program, as it is written in the program: `ring.put` of `ring_put`.
    pub(super) fn as_written<'s>(&'s self, name: &'s SmolStr) -> &'s SmolStr {
        self.keys.get(name).unwrap_or(name)
    }

    /// Whether locations of this file are in a copy of it for arguments.
    pub(super) fn is_copy(&self, file: FileId) -> bool {
        self.copies.contains(&file)
    }

    /// The file, or copy of one, in which a text stands that may be repeated by calls.
    pub(super) fn text_file(&self, sources: &SourceMap, mut file: FileId) -> FileId {
        while !self.homes.contains_key(&file) {
            match sources.expansion(file) {
                Some(expansion) => file = expansion.text.file,
                None => break,
            }
        }
        file
    }

    /// The number of the module of a file or copy.
    pub(super) fn home(&self, file: FileId) -> usize {
        self.homes.get(&file).copied().unwrap_or(0)
    }

    /// A module.
    pub(super) fn module(&self, number: usize) -> &Module {
        &self.modules[number]
    }

    /// The import of this name in a file.
    pub(super) fn import(&self, file: FileId, name: &str) -> Option<&NamedImport> {
        if self.imports.is_empty() { None } else { self.imports.get(&(file, name.into())) }
    }

    /// The names of the imports of a file.
    pub(super) fn import_names(&self, file: FileId) -> Vec<SmolStr> {
        let of_file = self.imports.keys().filter(|(importer, _)| *importer == file);
        let mut names: Vec<SmolStr> = of_file.map(|(_, name)| name.clone()).collect();
        names.sort();
        names
    }

    /// The locations of the names that imports give.
    pub(super) fn module_names(&self) -> impl Iterator<Item = Span> {
        self.imports.values().map(|import| import.span)
    }

    /// The key of an item of a module.
    pub(super) fn key(&self, module: usize, name: &str) -> SmolStr {
        match self.modules.get(module).map(|module| module.prefix.as_str()) {
            None | Some("") => name.into(),
            Some(prefix) => format_smolstr!("{prefix}.{name}"),
        }
    }

    /// The name that the key of an item of this module stands for in it.
    pub(super) fn name_of_key<'k>(&self, module: usize, key: &'k str) -> Option<&'k str> {
        let name = match self.modules.get(module).map(|module| module.prefix.as_str()) {
            None | Some("") => key,
            Some(prefix) => key.strip_prefix(prefix)?.strip_prefix('.')?,
        };
        (!name.contains('.')).then_some(name)
    }

    /// The files of other modules whose items are visible in a module, with their modules.
    pub(super) fn opened(&self, module: usize) -> impl Iterator<Item = (FileId, usize)> {
        let opens = self.modules.get(module).map_or(&[][..], |module| &module.opens);
        opens.iter().map(|file| (*file, self.home(*file)))
    }

    /// Whether the item of this name, at its declaration, begins with `pub`.
    pub(super) fn is_public(&self, name: Span) -> bool {
        self.public.contains(&name)
    }
}

/// The items of a program in order, and where they are visible.
pub(super) struct Arranged {
    /// File and item number of each item.
    pub(super) order: Vec<(usize, usize)>,
    pub(super) scopes: Scopes,
    /// The names in the arguments of imports, and the parameters that they name.
    pub(super) given: Vec<(Span, Span)>,
    pub(super) diagnostics: Vec<Diagnostic>,
}

/// A file, or a copy of one for arguments.
struct Unit {
    /// By which locations in it are known.
    file: FileId,
    /// The file that it is or that it is a copy of.
    origin: usize,
    /// The number of copies that it is inside of.
    depth: usize,
    is_visited: bool,
    imports: Vec<Imported>,
}

/// An import that was followed.
struct Imported {
    unit: usize,
    /// The name of the module and its location.
    name: Option<ast::Name>,
}

/// Puts the items of a program in order: an import counts at its first occurrence. Appends the copies of files that
/// are imported with arguments to the files.
///
/// `files` are all files by number, `ids` their ids, `roots` those that no import names, `targets` the files of
/// imports by file and item.
pub(super) fn arrange(
    files: &mut Vec<ast::File>,
    ids: &[FileId],
    roots: &[usize],
    targets: &FxHashMap<(usize, usize), usize>,
    sources: &mut SourceMap,
) -> Arranged {
    let unit = |(origin, file): (usize, &FileId)| Unit {
        file: *file,
        origin,
        depth: 0,
        is_visited: false,
        imports: Vec::new(),
    };
    let units = ids.iter().enumerate().map(unit).collect();
    let mut arranger = Arranger {
        files,
        targets,
        sources,
        units,
        order: Vec::new(),
        named: Vec::new(),
        given: Vec::new(),
        diagnostics: Vec::new(),
    };
    roots.iter().for_each(|root| arranger.visit(*root));
    let mut scopes = Scopes::default();
    if !arranger.named.is_empty() {
        arranger.divide(roots, &mut scopes);
        arranger.rename(&mut scopes);
    }
    Arranged { order: arranger.order, scopes, given: arranger.given, diagnostics: arranger.diagnostics }
}

struct Arranger<'s> {
    files: &'s mut Vec<ast::File>,
    targets: &'s FxHashMap<(usize, usize), usize>,
    sources: &'s mut SourceMap,
    units: Vec<Unit>,
    order: Vec<(usize, usize)>,
    /// The units that an import gives a name, in order.
    named: Vec<usize>,
    given: Vec<(Span, Span)>,
    diagnostics: Vec<Diagnostic>,
}

impl Arranger<'_> {
    /// Walks the items of a unit in order, descending into an import at its first occurrence. Iterative: a chain of
    /// imports may be long.
    fn visit(&mut self, first: usize) {
        let mut stack = vec![(first, 0usize)];
        self.units[first].is_visited = true;
        while let Some((unit, item)) = stack.pop() {
            let Some(entry) = self.files[unit].items.get(item) else { continue };
            stack.push((unit, item + 1));
            let Item::Import(import) = entry else {
                self.order.push((unit, item));
                continue;
            };
            let Some(target) = self.targets.get(&(self.units[unit].origin, item)).copied() else { continue };
            let name = import.name.clone();
            let target = if import.arguments.is_empty() {
                target
            } else {
                let import = import.clone();
                let Some(copy) = self.copy(target, unit, &import) else { continue };
                copy
            };
            if name.is_some() {
                self.named.push(target);
            }
            self.units[unit].imports.push(Imported { unit: target, name });
            if !self.units[target].is_visited {
                self.units[target].is_visited = true;
                stack.push((target, 0));
            }
        }
    }

    /// A copy of a file in which the arguments of an import stand for its parameters.
    fn copy(&mut self, target: usize, importer: usize, import: &ast::Import) -> Option<usize> {
        let depth = self.units[importer].depth + 1;
        let original = self.units[target].file;
        let length = self.sources.file(original).text.len();
        let call = import.name.as_ref().map_or(import.span, |name| import.span.to(name.span));
        let callee = import.name.as_ref().map_or_else(String::new, |name| name.text.to_string());
        let expansion = Expansion { text: Span::new(original, 0, length as u32), callee, call };
        let is_possible = depth <= MAX_DEPTH && self.sources.expanded_bytes() + length <= MAX_BYTES;
        let Some(file) = (if is_possible { self.sources.expand(expansion) } else { None }) else {
            let message = "this import makes the program too large: each import with arguments repeats its file";
            let help = "at most 16 of them are inside of each other, and all repeat at most 4 MiB of text";
            self.diagnostics.push(Diagnostic::new(Code::E0509, import.span, message).help(help));
            return None;
        };
        let mut copy = self.files[target].clone();
        copy.items.relocate(file);
        copy.public.relocate(file);
        copy.parameters.relocate(file);
        self.give(&mut copy, import);
        self.files.push(copy);
        self.units.push(Unit { file, origin: target, depth, is_visited: false, imports: Vec::new() });
        Some(self.units.len() - 1)
    }

    /// Puts arguments in the place of parameters.
    fn give(&mut self, file: &mut ast::File, import: &ast::Import) {
        let mut given: FxHashMap<SmolStr, Span> = FxHashMap::default();
        let parameters: FxHashSet<Span> = file.parameters.iter().copied().collect();
        let mut places: FxHashMap<SmolStr, usize> = FxHashMap::default();
        for (number, item) in file.items.iter().enumerate() {
            if let Some(name) = item.name().filter(|name| parameters.contains(&name.span)) {
                places.insert(name.text.clone(), number);
            }
        }
        for argument in &import.arguments {
            let name = &argument.name;
            if let Some(first) = given.insert(name.text.clone(), name.span) {
                let message = format!("`{}` is given twice", name.text);
                self.diagnostics
                    .push(Diagnostic::new(Code::E0204, name.span, message).label(first, "first given here"));
                continue;
            }
            let Some(place) = places.get(&name.text) else {
                self.unknown_parameter(name, import, places.keys());
                continue;
            };
            self.given.extend(file.items[*place].name().map(|parameter| (name.span, parameter.span)));
            let message = match (&mut file.items[*place], &argument.value) {
                (Item::Type(item), ImportValue::Type(ty)) => {
                    item.ty = ty.clone();
                    continue;
                }
                (Item::Type(item), ImportValue::Value(ast::Expr { kind: ast::ExprKind::Name(ty), span })) => {
                    item.ty = ast::Type { kind: ast::TypeKind::Named(ty.clone()), span: *span };
                    continue;
                }
                (Item::Type(item), ImportValue::Value(ast::Expr { kind: ast::ExprKind::Error, span })) => {
                    item.ty = ast::Type { kind: ast::TypeKind::Error, span: *span };
                    continue;
                }
                (Item::Const(item), ImportValue::Value(value)) => {
                    *item.value = value.clone();
                    continue;
                }
                (Item::Type(_), ImportValue::Value(_)) => format!("`{}` is a type, and a value is given", name.text),
                _ => format!("`{}` is a constant, and a type is given", name.text),
            };
            self.diagnostics.push(Diagnostic::new(Code::E0212, name.span, message));
        }
    }

    fn unknown_parameter<'n>(
        &mut self,
        name: &ast::Name,
        import: &ast::Import,
        parameters: impl Iterator<Item = &'n SmolStr>,
    ) {
        if name.text.is_empty() {
            return;
        }
        let mut names: Vec<&str> = parameters.map(SmolStr::as_str).collect();
        names.sort_unstable();
        let path = String::from_utf8_lossy(&import.path);
        let message = format!("`{path}` has no parameter `{}`", name.text);
        let help = match nearest(&name.text, names.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if names.is_empty() => {
                "a parameter is declared by `param const N = 64;` or `param type T = u8;`".into()
            }
            None => format!("its parameters are `{}`", names.join("`, `")),
        };
        self.diagnostics.push(Diagnostic::new(Code::E0212, name.span, message).help(help));
    }

    /// Divides the units among modules.
    fn divide(&mut self, roots: &[usize], scopes: &mut Scopes) {
        let mut module_of: Vec<Option<usize>> = vec![None; self.units.len()];
        let mut firsts = vec![roots[0]];
        module_of[roots[0]] = Some(0);
        for unit in &self.named {
            if module_of[*unit].is_none() {
                module_of[*unit] = Some(firsts.len());
                firsts.push(*unit);
            }
        }
        for (module, first) in firsts.iter().enumerate() {
            let file = self.sources.file(self.units[*first].file).name.clone();
            scopes.modules.push(Module { prefix: SmolStr::default(), file, opens: Vec::new() });
            let mut seen: FxHashSet<usize> = FxHashSet::default();
            let mut stack = vec![*first];
            if module == 0 {
                stack.extend(roots);
            }
            while let Some(unit) = stack.pop() {
                if !seen.insert(unit) {
                    continue;
                }
                let home = *module_of[unit].get_or_insert(module);
                if home != module {
                    scopes.modules[module].opens.push(self.units[unit].file);
                }
                let plain = self.units[unit].imports.iter().filter(|import| import.name.is_none());
                stack.extend(plain.map(|import| import.unit).rev());
            }
        }
        for (unit, home) in self.units.iter().zip(&module_of) {
            scopes.homes.insert(unit.file, home.unwrap_or(0));
        }
        for file in self.files.iter() {
            scopes.public.extend(&file.public);
        }
        scopes.copies = self.units[self.targets_len()..].iter().map(|unit| unit.file).collect();
        self.name_modules(&module_of, scopes);
    }

    /// The number of files that are no copies.
    fn targets_len(&self) -> usize {
        self.units.iter().take_while(|unit| unit.depth == 0).count()
    }

    /// Enters the names of imports, and finds a prefix for each module: its first name, with that of its importer in
    /// front if it is taken, or else a number behind.
    fn name_modules(&mut self, module_of: &[Option<usize>], scopes: &mut Scopes) {
        // Each prefix with the number to try next.
        let mut taken: FxHashMap<SmolStr, u32> = FxHashMap::default();
        for importer in 0..self.units.len() {
            for import in &self.units[importer].imports {
                let (Some(name), Some(module)) = (&import.name, module_of[import.unit]) else { continue };
                let file = self.units[importer].file;
                let named = NamedImport { span: name.span, module };
                match scopes.imports.get(&(file, name.text.clone())) {
                    Some(first) if first.module != module => {
                        let message = format!("`{}` is declared twice", name.text);
                        let diagnostic =
                            Diagnostic::new(Code::E0204, name.span, message).label(first.span, "first declared here");
                        self.diagnostics.push(diagnostic);
                    }
                    Some(_) => {}
                    None => drop(scopes.imports.insert((file, name.text.clone()), named)),
                }
                if module == 0 || !scopes.modules[module].prefix.is_empty() {
                    continue;
                }
                let outer = module_of[importer].map_or("", |home| scopes.modules[home].prefix.as_str());
                let long = format_smolstr!("{outer}_{}", name.text);
                let first = if outer.is_empty() || !taken.contains_key(&name.text) { name.text.clone() } else { long };
                let mut prefix = first.clone();
                let mut number = taken.get(&first).copied().unwrap_or(2);
                while taken.contains_key(&prefix) {
                    prefix = format_smolstr!("{first}{number}");
                    number += 1;
                }
                taken.insert(first, number);
                taken.entry(prefix.clone()).or_insert(2);
                scopes.modules[module].prefix = prefix;
            }
        }
    }

    /// Gives the items of named modules the names that they have in what is made from the program. Models and fast
    /// paths of such a module are for its file alone.
    fn rename(&mut self, scopes: &mut Scopes) {
        let (files, units) = (&mut *self.files, &self.units);
        self.order.retain(|(unit, item)| {
            scopes.home(units[*unit].file) == 0
                || !matches!(files[*unit].items[*item], Item::Model(_) | Item::FastPath(_))
        });
        for (unit, item) in &self.order {
            let prefix = &scopes.modules[scopes.home(units[*unit].file)].prefix;
            if !prefix.is_empty() {
                rename(&mut files[*unit].items[*item], prefix, &mut scopes.keys);
            }
        }
    }
}

fn rename(item: &mut Item, prefix: &str, keys: &mut FxHashMap<SmolStr, SmolStr>) {
    match item {
        // The name of a C function is C's.
        Item::Extern(_) => {}
        Item::Conditional(conditional) => {
            conditional.then.iter_mut().chain(&mut conditional.otherwise).for_each(|item| {
                rename(item, prefix, keys);
            });
        }
        _ => {
            if let Some(name) = item.name_mut().filter(|name| !name.text.is_empty()) {
                let key = format_smolstr!("{prefix}.{}", name.text);
                name.text = format_smolstr!("{prefix}_{}", name.text);
                keys.insert(name.text.clone(), key);
            }
        }
    }
}
