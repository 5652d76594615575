//! The items of a program and the one name space they share. Collects and finds them; knows nothing of what is inside.

use super::body::BodyFacts;
use super::conditional::Presence;
use super::constants::Constant;
use super::copies::Copies;
use super::expand::ProcedureEntry;
use super::load::Integrity;
use super::modules::Scopes;
use super::templates::{self, Bindings, PendingInstance};
use super::types::Measures;
use super::uses::{Rank, Recorder};
use crate::ast;
use crate::diagnostics::{Code, Diagnostic, Severity, nearest};
use crate::foreign;
use crate::hir::{self, ChannelId, ExternId, FnId, LayoutId, ProcessId};
use crate::span::{SourceMap, Span};
use crate::types::{PoolId, TypeId, TypeTable};
use rustc_hash::{FxHashMap, FxHashSet};
use smol_str::SmolStr;
use std::cell::RefCell;

/// What an item's name refers to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Entity {
    Type(usize),
    Const(usize),
    Channel(ChannelId),
    Interface,
    Extern(ExternId),
    Function(FnId),
    Layout(LayoutId),
    Process(ProcessId),
    /// A process with 0 replicas.
    AbsentProcess,
    Template(usize),
    Procedure(usize),
    FastPath,
    Model,
}

impl Entity {
    /// The kind of item, as messages call it.
    pub(super) fn noun(self) -> &'static str {
        match self {
            Entity::Type(_) => "type",
            Entity::Const(_) => "constant",
            Entity::Channel(_) => "channel",
            Entity::Interface => "interface",
            Entity::Extern(_) => "extern function",
            Entity::Function(_) => "function",
            Entity::Layout(_) => "layout",
            Entity::Process(_) => "process",
            Entity::AbsentProcess => "process without an instance",
            Entity::Template(_) => "template",
            Entity::Procedure(_) => "procedure",
            Entity::FastPath => "fast path",
            Entity::Model => "model",
        }
    }

    /// With its article.
    pub(super) fn a_noun(self) -> String {
        match self {
            Entity::Extern(_) | Entity::Interface => format!("an {}", self.noun()),
            _ => format!("a {}", self.noun()),
        }
    }
}

/// A declared name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Named {
    pub(super) entity: Entity,
    pub(super) span: Span,
}

/// Why a name of the form `ring.put` means nothing.
enum Unqualified {
    NoImport,
    NoItem,
    Private(Span),
}

/// A `type` item.
pub(super) struct TypeEntry<'a> {
    pub(super) item: &'a ast::TypeItem,
    /// The pool that makes it boxed.
    pub(super) pool: Option<&'a ast::Pool>,
    pub(super) resolved: Option<TypeId>,
}

/// A `const`, of the program or of a process.
pub(super) struct ConstEntry<'a> {
    pub(super) item: &'a ast::Const,
    pub(super) value: Option<Constant>,
}

/// A channel.
pub(super) struct ChannelEntry<'a> {
    pub(super) item: &'a ast::Channel,
    pub(super) hir: hir::Channel,
    /// An error in its declaration or in an operation on it was reported: its ports are not checked.
    pub(super) tainted: bool,
}

/// An extern function.
pub(super) struct ExternEntry<'a> {
    pub(super) item: &'a ast::Extern,
    pub(super) hir: hir::Extern,
    /// Whether the types of its parameters and result are known.
    pub(super) is_resolved: bool,
}

/// How much of a function has been checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum FunctionProgress {
    Declared,
    /// The types of its parameters and result are known.
    Signature,
    /// Its body is being checked, or has been.
    Body,
}

/// A pure function.
pub(super) struct FunctionEntry<'a> {
    pub(super) item: &'a ast::Fn,
    pub(super) parameters: Vec<TypeId>,
    pub(super) result: TypeId,
    /// Functions it calls, with the location of the call.
    pub(super) calls: Vec<(FnId, Span)>,
    pub(super) hir: Option<hir::Function>,
    pub(super) facts: BodyFacts,
    pub(super) progress: FunctionProgress,
    /// Whether its body has an error, which has been reported.
    pub(super) is_faulty: bool,
}

/// A process template.
pub(super) struct TemplateEntry<'a> {
    pub(super) item: &'a ast::Template,
    /// How many instances there are.
    pub(super) uses: u32,
}

/// A process.
pub(super) struct ProcessEntry<'a> {
    /// The process as written, or the instance of a template in the form of a process.
    pub(super) item: &'a ast::Process,
    /// For an instance of a template: its parameters and what they stand for.
    pub(super) bindings: Option<Bindings<'a>>,
    pub(super) replicas: u32,
    /// Instance number of replica 0: instances are numbered in order of processes.
    pub(super) first_instance: u32,
    pub(super) hir: Option<hir::Process>,
    pub(super) facts: BodyFacts,
}

/// Everything known about the program while it is checked.
pub(super) struct Checker<'a> {
    pub(super) sources: &'a mut SourceMap,
    /// Where the copies of syntax live.
    pub(super) copies: &'a Copies,
    pub(super) scopes: &'a Scopes,
    /// Collects the names, for tools.
    pub(super) recorder: Option<&'a RefCell<Recorder>>,
    pub(super) integrity: Integrity,
    pub(super) diagnostics: Vec<Diagnostic>,
    /// How many of the diagnostics are errors.
    pub(super) errors: usize,
    warnings: usize,
    /// All items, by the keys that [`Scopes`] gives them.
    names: FxHashMap<SmolStr, Named>,
    /// The names of items in what is made from a program with several modules.
    outside: FxHashMap<SmolStr, Span>,
    pub(super) types: TypeTable,
    pub(super) measures: Measures,
    pub(super) type_entries: Vec<TypeEntry<'a>>,
    pub(super) pools: Vec<&'a ast::Pool>,
    pub(super) consts: Vec<ConstEntry<'a>>,
    /// The constants that are stored once, of the program and of bodies.
    pub(super) stored: Vec<hir::Constant>,
    /// The number of scalars and bytes in each of them.
    pub(super) stored_parts: Vec<usize>,
    /// How many more they may have.
    pub(super) stored_budget: usize,
    pub(super) layouts: Vec<(&'a ast::Layout, Option<hir::Layout>)>,
    pub(super) channels: Vec<ChannelEntry<'a>>,
    pub(super) externs: Vec<ExternEntry<'a>>,
    pub(super) functions: Vec<FunctionEntry<'a>>,
    pub(super) processes: Vec<ProcessEntry<'a>>,
    /// Processes with 0 replicas.
    pub(super) absent: Vec<ProcessEntry<'a>>,
    /// While the texts are checked that no process uses: the first of the processes that stand in for them.
    pub(super) unused_from: Option<usize>,
    pub(super) templates: Vec<TemplateEntry<'a>>,
    pub(super) procedures: Vec<ProcedureEntry<'a>>,
    /// Codes and places of the text of what was reported in expansions.
    reported: FxHashSet<(Code, Span)>,
    pub(super) interface_items: Vec<&'a ast::Interface>,
    pub(super) interfaces: Vec<hir::Interface>,
    pub(super) fast_path_items: Vec<&'a ast::FastPath>,
    pub(super) fast_paths: Vec<hir::FastPath>,
    pub(super) model_items: Vec<&'a ast::Model>,
    pub(super) models: Vec<hir::Model>,
    pub(super) memory: hir::MemoryMode,
    pub(super) clock: hir::ClockUse,
    /// Local names visible where a type is resolved inside a body: constants with their value, variables without.
    pub(super) outer_names: FxHashMap<SmolStr, Option<Constant>>,
    /// Whether an operation names a channel that is not there: its readers and writers are not known then.
    pub(super) unknown_channels: bool,
    pub(super) static_assertions: Vec<&'a ast::StaticAssertion>,
    /// The messages of assertions, by their statement.
    pub(super) assert_messages: Vec<(Span, SmolStr)>,
    /// Calls of functions that there are not, by name: each is reported once.
    pub(super) unknown_functions: FxHashSet<SmolStr>,
    /// How many more bytes constants may be copied to.
    pub(super) constant_budget: usize,
    /// How many more pattern rows may be compared.
    pub(super) coverage_budget: usize,
    /// How many more of them for warnings, which must not take from what errors need.
    pub(super) superfluous_budget: usize,
    suggestions_left: u32,
}

/// The number of errors, and of warnings, that are kept: no user reads more, and a malformed file has millions.
pub(super) const MAX_REPORTED: usize = 500;

/// The number of calls around a place that are shown with a diagnostic.
const MAX_CALLS_SHOWN: u32 = 4;

/// The number of names of a module that a message lists.
const MAX_OFFERED: usize = 12;

/// Functions that the language gives, unless the program declares one of this name (reference, section 1).
pub(super) const PREDECLARED: [&str; 6] = ["freeze", "thaw", "free", "link", "unlink", "sizeof"];

impl<'a> Checker<'a> {
    pub(super) fn new(
        sources: &'a mut SourceMap,
        copies: &'a Copies,
        scopes: &'a Scopes,
        integrity: Integrity,
        diagnostics: Vec<Diagnostic>,
    ) -> Checker<'a> {
        Checker {
            sources,
            copies,
            scopes,
            recorder: None,
            integrity,
            diagnostics,
            errors: 0,
            warnings: 0,
            names: FxHashMap::default(),
            outside: FxHashMap::default(),
            types: TypeTable::new(),
            measures: Measures::default(),
            type_entries: Vec::new(),
            pools: Vec::new(),
            consts: Vec::new(),
            stored: Vec::new(),
            stored_parts: Vec::new(),
            stored_budget: super::constants::MAX_STORED_PARTS,
            layouts: Vec::new(),
            channels: Vec::new(),
            externs: Vec::new(),
            functions: Vec::new(),
            processes: Vec::new(),
            absent: Vec::new(),
            unused_from: None,
            templates: Vec::new(),
            procedures: Vec::new(),
            reported: FxHashSet::default(),
            interface_items: Vec::new(),
            interfaces: Vec::new(),
            fast_path_items: Vec::new(),
            fast_paths: Vec::new(),
            model_items: Vec::new(),
            models: Vec::new(),
            memory: hir::MemoryMode::default(),
            clock: hir::ClockUse {
                is_used: false,
                durations: hir::Durations::Exact,
                quotient: hir::Influence::DataOnly,
            },
            outer_names: FxHashMap::default(),
            unknown_channels: false,
            static_assertions: Vec::new(),
            assert_messages: Vec::new(),
            unknown_functions: FxHashSet::default(),
            constant_budget: 32 << 20,
            coverage_budget: 4 << 20,
            superfluous_budget: 1 << 20,
            suggestions_left: 200,
        }
    }

    pub(super) fn report(&mut self, diagnostic: Diagnostic) {
        let reported = match diagnostic.severity() {
            Severity::Error | Severity::Fault => &mut self.errors,
            Severity::Warning | Severity::Note => &mut self.warnings,
        };
        *reported += 1;
        if *reported <= MAX_REPORTED {
            let diagnostic = self.in_text(diagnostic);
            self.diagnostics.extend(diagnostic);
        }
    }

    /// The diagnostic at places of the text, with the calls that lead there. What is found at one place by several
    /// expansions is reported once.
    fn in_text(&mut self, mut diagnostic: Diagnostic) -> Option<Diagnostic> {
        if self.sources.expansions().is_empty() {
            return Some(diagnostic);
        }
        let mut labels = Vec::new();
        let (mut place, mut calls) = (diagnostic.span, 0);
        while let Some(expansion) = self.sources.expansion(place.file) {
            if calls < MAX_CALLS_SHOWN {
                let verb = if self.scopes.is_copy(place.file) { "imported" } else { "called" };
                let text = format!("in `{}`, {verb} here", expansion.callee);
                labels.push((self.sources.origin(expansion.call), text));
            }
            calls += 1;
            place = expansion.call;
        }
        diagnostic.span = self.sources.origin(diagnostic.span);
        if calls > 0 && !self.reported.insert((diagnostic.code, diagnostic.span)) {
            return None;
        }
        diagnostic.labels.iter_mut().for_each(|(span, _)| *span = self.sources.origin(*span));
        diagnostic.labels.extend(labels);
        Some(diagnostic)
    }

    /// Whether so many errors were found that further ones would not be kept: then further checks are useless,
    /// and what is not printed takes no memory.
    pub(super) fn has_reached_error_limit(&self) -> bool {
        self.errors >= MAX_REPORTED
    }

    /// How many errors have been reported.
    pub(super) fn error_count(&self) -> usize {
        self.errors
    }

    /// Reports an error without labels or help.
    pub(super) fn error(&mut self, code: Code, span: Span, message: impl Into<String>) {
        self.report(Diagnostic::new(code, span, message));
    }

    /// The text at a location if it is short enough to repeat in a message, else `e`.
    pub(super) fn text(&self, span: Span) -> &str {
        let text = self.sources.file(span.file).text.get(span.start as usize..span.end as usize).unwrap_or("");
        if text.is_empty() || text.len() > 30 || text.contains('\n') { "e" } else { text }
    }

    /// The item that a name means where it stands, which is a use of it.
    pub(super) fn find(&self, name: &ast::Name) -> Option<Named> {
        let found = self.lookup(name);
        if let Some(named) = found
            && self.recorder.is_some()
        {
            self.record_named(name, named.span);
        }
        found
    }

    fn record_named(&self, name: &ast::Name, declared: Span) {
        let Some((import, item)) = name.text.split_once('.') else {
            self.record_use(name.span, Rank::Item, declared);
            return;
        };
        let file = self.scopes.text_file(self.sources, name.span.file);
        if let Some(module) = self.scopes.import(file, import) {
            let end = name.span.start + import.len() as u32;
            self.record_use(Span { end, ..name.span }, Rank::Part, module.span);
        }
        self.record_use(Span { start: name.span.end - item.len() as u32, ..name.span }, Rank::Part, declared);
    }

    /// The item that a name means where it stands, if it is the name of an item there.
    pub(super) fn lookup(&self, name: &ast::Name) -> Option<Named> {
        if self.scopes.is_single() {
            return self.names.get(&name.text).copied();
        }
        match name.text.split_once('.') {
            Some((import, item)) => self.qualified(name.span, import, item).ok(),
            None => self.find_in(self.module_at(name.span), &name.text),
        }
    }

    /// The number of the module in whose text a location is.
    fn module_at(&self, span: Span) -> usize {
        self.scopes.home(self.scopes.text_file(self.sources, span.file))
    }

    fn find_in(&self, module: usize, name: &str) -> Option<Named> {
        let own = self.names.get(&self.scopes.key(module, name));
        let opened = || {
            self.scopes.opened(module).find_map(|(file, home)| {
                let named = self.names.get(&self.scopes.key(home, name))?;
                (self.scopes.text_file(self.sources, named.span.file) == file).then_some(named)
            })
        };
        own.or_else(opened).copied()
    }

    fn qualified(&self, span: Span, import: &str, item: &str) -> Result<Named, Unqualified> {
        let file = self.scopes.text_file(self.sources, span.file);
        let import = self.scopes.import(file, import).ok_or(Unqualified::NoImport)?;
        let named = self.find_in(import.module, item).ok_or(Unqualified::NoItem)?;
        if self.scopes.is_public(named.span) { Ok(named) } else { Err(Unqualified::Private(named.span)) }
    }

    /// Reports why there is no item of a name with a dot.
    fn unknown_qualified(&mut self, noun: &str, name: &ast::Name, import: &str, item: &str) {
        let file = self.scopes.text_file(self.sources, name.span.file);
        let diagnostic = match self.qualified(name.span, import, item) {
            Ok(named) => Diagnostic::new(Code::E0208, name.span, format!("no {noun} named `{}`", name.text))
                .label(named.span, format!("`{item}` is {}", named.entity.a_noun())),
            Err(Unqualified::NoImport) => {
                let message = format!("no import of this file is named `{import}`");
                let diagnostic = Diagnostic::new(Code::E0208, name.span, message);
                let names = self.scopes.import_names(file);
                diagnostic.help(match nearest(import, names.iter().map(SmolStr::as_str)) {
                    Some(near) => format!("did you mean `{near}.{item}`?"),
                    None => format!("a module has a name if it is imported with one: `import \"..\" as {import};`"),
                })
            }
            Err(Unqualified::NoItem) => {
                let module = self.scopes.import(file, import).map_or(0, |import| import.module);
                let path = &self.scopes.module(module).file;
                let diagnostic =
                    Diagnostic::new(Code::E0208, name.span, format!("`{import}` (`{path}`) has no `{item}`"));
                let public = self.names.iter().filter(|(_, named)| self.scopes.is_public(named.span));
                let mut offered: Vec<&str> =
                    public.filter_map(|(key, _)| self.scopes.name_of_key(module, key)).collect();
                offered.sort_unstable();
                match nearest(item, offered.iter().copied()) {
                    Some(near) => diagnostic.help(format!("did you mean `{import}.{near}`?")),
                    None if offered.is_empty() => {
                        diagnostic.help("it offers nothing yet: write `pub` before what other modules may use")
                    }
                    None if offered.len() <= MAX_OFFERED => {
                        diagnostic.help(format!("it offers `{}`", offered.join("`, `")))
                    }
                    None => diagnostic,
                }
            }
            Err(Unqualified::Private(declared)) => {
                let message = format!("`{item}` is private to the module `{import}`");
                Diagnostic::new(Code::E0210, name.span, message)
                    .label(declared, "declared here")
                    .help("write `pub` before its declaration to offer it to other modules")
            }
        };
        self.report(diagnostic);
    }

    /// The names of items of some kind that are visible without an import's name at a location, in order.
    pub(super) fn visible_items(&self, span: Span, wanted: impl Fn(Entity) -> bool) -> Vec<SmolStr> {
        let module = self.module_at(span);
        let items = self.names.iter().filter(|(_, named)| wanted(named.entity));
        let mut names: Vec<SmolStr> =
            items.filter_map(|(key, _)| self.scopes.name_of_key(module, key)).map(SmolStr::new).collect();
        names.sort();
        names
    }

    /// E0205: a local name that is also the name of an import of the file; `ring.x` means an item of the module.
    pub(super) fn reject_import_name(&mut self, name: &ast::Name) -> bool {
        if self.scopes.is_single() {
            return false;
        }
        let file = self.scopes.text_file(self.sources, name.span.file);
        let Some(import) = self.scopes.import(file, &name.text) else { return false };
        let diagnostic = Diagnostic::new(Code::E0205, name.span, format!("`{}` hides the import", name.text))
            .label(import.span, "imported here")
            .help("choose another name for one of them");
        self.report(diagnostic);
        true
    }

    /// Reports that there is no `noun` of this name, unless that is likely to follow from an earlier error.
    pub(super) fn unknown<'n>(&mut self, noun: &str, name: &ast::Name, candidates: impl Iterator<Item = &'n str>) {
        if name.text.is_empty() || (self.integrity == Integrity::Missing && self.find(name).is_none()) {
            return;
        }
        if let Some((import, item)) = name.text.split_once('.') {
            self.unknown_qualified(noun, name, import, item);
            return;
        }
        let mut diagnostic =
            Diagnostic::new(Code::E0208, name.span, format!("no {noun} named `{name}`", name = name.text));
        if let Some(named) = self.find(name) {
            diagnostic = diagnostic.label(named.span, format!("`{}` is {}", name.text, named.entity.a_noun()));
        }
        if self.suggestions_left > 0 {
            self.suggestions_left -= 1;
            let foreign = match noun {
                "field or layout" if foreign::is_length(&name.text) => Some("the length of `a` is `a.len`"),
                "type" => foreign::instead_of_type(&name.text),
                "variable" => foreign::instead_of_value(&name.text),
                _ => None,
            };
            if let Some(help) = foreign {
                diagnostic = diagnostic.help(help);
            } else if let ("variable", Some(Named { entity: Entity::Process(id), .. })) = (noun, self.find(name)) {
                let index = if self.processes[id.0 as usize].item.replicas.is_some() { "[k]" } else { "" };
                diagnostic = diagnostic.help(format!("its id is `@{}{index}`", name.text));
            } else if let ("variable", Some(payload)) = (noun, self.payload_of_case(&name.text)) {
                diagnostic = diagnostic.help(format!("the case of a union is written `{} |> {payload}`", name.text));
            } else if let ("variable", Some(enumeration)) = (noun, self.enumeration_with(&name.text)) {
                diagnostic =
                    diagnostic.help(format!("the case of an enumeration is written `{enumeration}.{}`", name.text));
            } else if let Some(near) = nearest(&name.text, candidates) {
                diagnostic = diagnostic.help(format!("did you mean `{near}`?"));
            } else if noun == "template" {
                let help = "a template is a process with parameters, as in `process p(n: int) { .. }`";
                diagnostic = diagnostic.help(help);
            }
        }
        self.report(diagnostic);
    }

    /// Whether some union has a case of this name with a payload.
    pub(super) fn case_with_payload(&self, name: &str) -> bool {
        let mut parts = self.type_entries.iter().filter_map(|entry| match self.types.get(entry.resolved?) {
            crate::types::Type::Union(id) => Some(&self.types.aggregate(*id).parts),
            _ => None,
        });
        parts.any(|parts| parts.iter().any(|(case, payload)| case == name && payload.is_some()))
    }

    /// The enumeration that has a case of this name.
    fn enumeration_with(&self, name: &str) -> Option<&SmolStr> {
        let mut entries = self.type_entries.iter().filter_map(|entry| self.types.enumeration(entry.resolved?));
        let found = entries.find(|enumeration| enumeration.cases.iter().any(|(case, _)| case == name));
        found.map(|enumeration| &enumeration.name)
    }

    /// What follows the arrow after a case of this name in some union that has one without payload.
    fn payload_of_case(&self, name: &str) -> Option<&'static str> {
        // Only unions have parts without a type.
        let aggregates = self.types.aggregates().iter();
        let mut unions = aggregates.filter(|aggregate| aggregate.parts.iter().any(|(_, payload)| payload.is_none()));
        let (_, payload) = unions.find_map(|union| union.parts.iter().find(|(case, _)| case == name))?;
        Some(if payload.is_some() { ".." } else { "{}" })
    }

    /// Reports that there is no item of this kind and name.
    pub(super) fn unknown_item(&mut self, noun: &str, name: &ast::Name, wanted: fn(Entity) -> bool) {
        let mut candidates: Vec<SmolStr> = Vec::new();
        if self.suggestions_left > 0 {
            candidates = self.visible_items(name.span, wanted);
        }
        self.unknown(noun, name, candidates.iter().map(SmolStr::as_str));
    }

    pub(super) fn channel(&mut self, name: &ast::Name) -> Option<ChannelId> {
        if let Some(Named { entity: Entity::Channel(id), .. }) = self.find(name) {
            return Some(id);
        }
        self.unknown_item("channel", name, |entity| matches!(entity, Entity::Channel(_)));
        None
    }

    pub(super) fn process(&mut self, name: &ast::Name) -> Option<ProcessId> {
        if let Some(Named { entity: Entity::Process(id), .. }) = self.find(name) {
            return Some(id);
        }
        self.unknown_item("process", name, |entity| matches!(entity, Entity::Process(_)));
        None
    }

    pub(super) fn layout(&mut self, name: &ast::Name) -> Option<LayoutId> {
        if let Some(Named { entity: Entity::Layout(id), .. }) = self.find(name) {
            return Some(id);
        }
        self.unknown_item("layout", name, |entity| matches!(entity, Entity::Layout(_)));
        None
    }

    /// The pool of a type's name.
    pub(super) fn pool(&mut self, name: &ast::Name) -> Option<PoolId> {
        let Some(Named { entity: Entity::Type(entry), .. }) = self.find(name) else {
            self.unknown_item("type", name, |entity| matches!(entity, Entity::Type(_)));
            return None;
        };
        let ty = self.type_entries[entry].resolved.unwrap_or(TypeTable::ERROR);
        match self.types.get(ty) {
            crate::types::Type::Boxed(pool) => Some(*pool),
            crate::types::Type::Error => None,
            _ => {
                let message = format!("type `{}` has no pool", name.text);
                let help = format!("declare one, as in `pool {} 16;`", name.text);
                self.report(Diagnostic::new(Code::E0208, name.span, message).help(help));
                None
            }
        }
    }

    /// Which process an instance number belongs to, and its replica.
    pub(super) fn instance(&self, number: i128) -> Option<(ProcessId, u32)> {
        let number = u32::try_from(number).ok()?;
        let next = self.processes.partition_point(|process| process.first_instance <= number);
        let process = next.checked_sub(1)?;
        let replica = number - self.processes[process].first_instance;
        (replica < self.processes[process].replicas).then_some((ProcessId(process as u32), replica))
    }

    fn declare(&mut self, name: &ast::Name, entity: Entity) {
        if name.text.is_empty() {
            return;
        }
        self.record_item(name.span, entity);
        let key = match self.scopes.is_single() {
            true => name.text.clone(),
            false => match self.key_of_declared(name) {
                Some(key) => key,
                None => return,
            },
        };
        if let Some(first) = self.names.get(&key) {
            let diagnostic = Diagnostic::new(Code::E0204, name.span, format!("`{}` is declared twice", name.text))
                .label(first.span, "first declared here");
            self.report(diagnostic);
            return;
        }
        self.names.insert(key, Named { entity, span: name.span });
    }

    /// The key of an item of a program with several modules; none if its name is that of an import of the file or, in
    /// what is made from the program, that of another item.
    fn key_of_declared(&mut self, name: &ast::Name) -> Option<SmolStr> {
        let file = self.scopes.text_file(self.sources, name.span.file);
        let text = &self.sources.file(file).text;
        let written = SmolStr::new(&text[name.span.start as usize..name.span.end as usize]);
        let key = self.scopes.key(self.scopes.home(file), &written);
        if let Some(import) = self.scopes.import(file, &written) {
            let diagnostic = Diagnostic::new(Code::E0204, name.span, format!("`{written}` is declared twice"))
                .label(import.span, "first declared here, as the name of a module");
            self.report(diagnostic);
            return None;
        }
        let first = *self.outside.entry(name.text.clone()).or_insert(name.span);
        if first != name.span && !self.names.contains_key(&key) {
            let message = format!("`{}` is declared twice: two modules have an item of this name in C", name.text);
            let diagnostic = Diagnostic::new(Code::E0204, name.span, message)
                .label(first, "first declared here")
                .help("rename one; a C function is declared in one module, which others import");
            self.report(diagnostic);
            return None;
        }
        Some(key)
    }

    /// The finished program.
    pub(super) fn into_program(self) -> hir::Program {
        hir::Program {
            types: self.types,
            memory: self.memory,
            constants: self.stored,
            channels: self.channels.into_iter().map(|entry| entry.hir).collect(),
            interfaces: self.interfaces,
            externs: self.externs.into_iter().map(|entry| entry.hir).collect(),
            functions: self.functions.into_iter().filter_map(|entry| entry.hir).collect(),
            layouts: self.layouts.into_iter().filter_map(|(_, layout)| layout).collect(),
            processes: self.processes.into_iter().filter_map(|entry| entry.hir).collect(),
            fast_paths: self.fast_paths,
            models: self.models,
            clock: self.clock,
            assert_messages: self.assert_messages,
        }
    }
}

/// Enters every item into the name space.
pub(super) fn declare<'a>(checker: &mut Checker<'a>, items: &[Presence<'a>]) {
    let mut memory: Option<&ast::Memory> = None;
    let mut pending = Vec::new();
    for Presence { item, absent } in items {
        if checker.recorder.is_some() {
            checker.record_members(item);
        }
        match *item {
            ast::Item::Import(_) | ast::Item::PartOf(_) | ast::Item::Conditional(_) => {}
            ast::Item::Assert(item) => checker.static_assertions.push(item),
            ast::Item::Type(item) => {
                checker.declare(&item.name, Entity::Type(checker.type_entries.len()));
                checker.type_entries.push(TypeEntry { item, pool: None, resolved: None });
            }
            ast::Item::Const(item) => {
                checker.declare(&item.name, Entity::Const(checker.consts.len()));
                checker.consts.push(ConstEntry { item, value: None });
            }
            ast::Item::Channel(item) => {
                checker.declare(&item.name, Entity::Channel(ChannelId(checker.channels.len() as u32)));
                checker.channels.push(ChannelEntry { item, hir: channel(item), tainted: false });
            }
            ast::Item::Interface(item) => {
                checker.declare(&item.name, Entity::Interface);
                checker.interface_items.push(item);
            }
            ast::Item::Extern(item) => {
                checker.declare(&item.name, Entity::Extern(ExternId(checker.externs.len() as u32)));
                let hir = hir::Extern {
                    name: item.name.text.clone(),
                    purity: item.purity,
                    parameters: Vec::new(),
                    result: None,
                    influence: hir::Influence::DataOnly,
                    span: item.name.span,
                };
                checker.externs.push(ExternEntry { item, hir, is_resolved: false });
            }
            ast::Item::Fn(item) => {
                checker.declare(&item.name, Entity::Function(FnId(checker.functions.len() as u32)));
                checker.functions.push(FunctionEntry {
                    item,
                    parameters: Vec::new(),
                    result: TypeTable::ERROR,
                    calls: Vec::new(),
                    hir: None,
                    facts: BodyFacts::default(),
                    progress: FunctionProgress::Declared,
                    is_faulty: false,
                });
            }
            ast::Item::Layout(item) => {
                checker.declare(&item.name, Entity::Layout(LayoutId(checker.layouts.len() as u32)));
                checker.layouts.push((item, None));
            }
            ast::Item::Process(item) => checker.declare_process(item, *absent),
            ast::Item::Instance(written) => {
                let entries = if *absent { &checker.absent } else { &checker.processes };
                pending.push(PendingInstance { written, absent: *absent, index: entries.len() });
                let item = templates::placeholder(checker, written);
                checker.declare_process(item, *absent);
            }
            ast::Item::Template(item) => {
                checker.declare(&item.name, Entity::Template(checker.templates.len()));
                checker.templates.push(TemplateEntry { item, uses: 0 });
            }
            ast::Item::Procedure(item) => {
                checker.declare(&item.name, Entity::Procedure(checker.procedures.len()));
                checker.procedures.push(ProcedureEntry::new(item));
            }
            ast::Item::FastPath(item) => {
                checker.declare(&item.name, Entity::FastPath);
                checker.fast_path_items.push(item);
            }
            ast::Item::Model(item) => {
                checker.declare(&item.name, Entity::Model);
                checker.model_items.push(item);
            }
            ast::Item::Pool(item) => checker.pools.push(item),
            ast::Item::Memory(item) => set_memory(checker, memory.get_or_insert(item), item),
        }
    }
    attach_pools(checker);
    templates::instantiate(checker, &pending);
}

impl<'a> Checker<'a> {
    fn declare_process(&mut self, item: &'a ast::Process, absent: bool) {
        let entity =
            if absent { Entity::AbsentProcess } else { Entity::Process(ProcessId(self.processes.len() as u32)) };
        self.declare(&item.name, entity);
        let (hir, facts) = (None, BodyFacts::default());
        let entry = ProcessEntry { item, bindings: None, replicas: 1, first_instance: 0, hir, facts };
        if absent { self.absent.push(entry) } else { self.processes.push(entry) }
    }
}

/// Sets the memory mode; a later declaration has to agree with the first.
fn set_memory(checker: &mut Checker, first: &ast::Memory, item: &ast::Memory) {
    if first.mode == item.mode {
        checker.memory = item.mode;
    } else {
        let diagnostic = Diagnostic::new(Code::E0204, item.span, "`memory` is set twice, and differently")
            .label(first.span, "first set here");
        checker.report(diagnostic);
    }
}

/// Finds the types that have pools.
fn attach_pools(checker: &mut Checker) {
    for pool in checker.pools.clone() {
        let Some(Named { entity: Entity::Type(entry), .. }) = checker.find(&pool.ty) else {
            checker.unknown_item("type", &pool.ty, |entity| matches!(entity, Entity::Type(_)));
            continue;
        };
        if let Some(first) = checker.type_entries[entry].pool {
            let message = format!("the pool of `{}` is declared twice", pool.ty.text);
            let diagnostic =
                Diagnostic::new(Code::E0204, pool.ty.span, message).label(first.ty.span, "first declared here");
            checker.report(diagnostic);
            continue;
        }
        checker.type_entries[entry].pool = Some(pool);
    }
}

/// A channel, from its attributes alone.
fn channel(item: &ast::Channel) -> hir::Channel {
    let mut channel = hir::Channel {
        name: item.name.text.clone(),
        payload: Vec::new(),
        value_names: item.value_names.iter().map(|name| Some(name.as_ref()?.text.clone())).collect(),
        influences: Vec::new(),
        boundary: hir::Boundary::Internal,
        sharing: hir::Sharing::Ports,
        policy: hir::Policy::default(),
        driver: item.driver.as_ref().map(|(text, _)| String::from_utf8_lossy(text).into_owned()),
        span: item.name.span,
    };
    for (attribute, _) in &item.attributes {
        match attribute {
            ast::ChannelAttribute::ExternalIn => channel.boundary = hir::Boundary::ToEnvironment,
            ast::ChannelAttribute::ExternalOut => channel.boundary = hir::Boundary::FromEnvironment,
            ast::ChannelAttribute::Shared => channel.sharing = hir::Sharing::Shared,
            ast::ChannelAttribute::Policy(policy) => channel.policy = *policy,
        }
    }
    channel
}
