//! The uses of names, for tools: which text names which declaration, and what each declaration is. Knows no check;
//! `record` fills the recorder.

use crate::span::{FileId, SourceMap, Span};
use crate::types::{AggregateId, TypeId};
use rustc_hash::FxHashMap;
use smol_str::SmolStr;

/// What a declaration declares.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum DefinitionKind {
    Type,
    Constant,
    Channel,
    Interface,
    Extern,
    Function,
    Layout,
    Process,
    Template,
    Procedure,
    FastPath,
    Model,
    /// The name that an import gives to a module.
    Module,
    Variable,
    Parameter,
    /// Of a record.
    Field,
    /// Of a union or an enumeration.
    Case,
    /// Of a layout.
    LayoutField,
    Label,
    /// The other name of a statement of a fast path.
    Alias,
}

impl DefinitionKind {
    /// The kind, as messages call it.
    pub fn noun(self) -> &'static str {
        match self {
            DefinitionKind::Type => "type",
            DefinitionKind::Constant => "constant",
            DefinitionKind::Channel => "channel",
            DefinitionKind::Interface => "interface",
            DefinitionKind::Extern => "extern function",
            DefinitionKind::Function => "function",
            DefinitionKind::Layout => "layout",
            DefinitionKind::Process => "process",
            DefinitionKind::Template => "template",
            DefinitionKind::Procedure => "procedure",
            DefinitionKind::FastPath => "fast path",
            DefinitionKind::Model => "model",
            DefinitionKind::Module => "module",
            DefinitionKind::Variable => "variable",
            DefinitionKind::Parameter => "parameter",
            DefinitionKind::Field | DefinitionKind::LayoutField => "field",
            DefinitionKind::Case => "case",
            DefinitionKind::Label => "label",
            DefinitionKind::Alias => "alias",
        }
    }

    /// Whether the scope of the name is a body, not the program or a type.
    pub fn is_local(self) -> bool {
        matches!(self, DefinitionKind::Variable | DefinitionKind::Parameter)
    }
}

/// A declared name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Definition {
    /// The name as written.
    pub name: SmolStr,
    /// The location of the name in the text; a label has none of its `#`.
    pub span: Span,
    /// What it declares.
    pub kind: DefinitionKind,
    /// Whether it begins with `pub`.
    pub is_public: bool,
    /// The type of a variable, constant or field, if it is known.
    pub ty: Option<TypeId>,
    /// That type as messages print it, `#` included; empty if it is not known.
    pub type_text: SmolStr,
}

/// A name that refers to a declaration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NameUse {
    /// Its location in the text.
    pub span: Span,
    /// The number of the declaration in [`Names::definitions`].
    pub definition: usize,
}

/// An import.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ImportedFile {
    /// The location of the path.
    pub path: Span,
    /// The file.
    pub file: FileId,
    /// The location of the name of the module; none if its items join the importer's.
    pub name: Option<Span>,
}

/// The names of a program. Locations are in the texts of its files, expansions of calls aside.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// In order of location.
    pub definitions: Vec<Definition>,
    /// In order of location, without the declarations themselves.
    pub uses: Vec<NameUse>,
    /// The imports whose file was found, in order of location.
    pub imports: Vec<ImportedFile>,
}

impl Names {
    /// The declaration that the text at an offset names, its number, and the location of that name. The offset may be
    /// directly behind the name.
    pub fn at(&self, file: FileId, offset: u32) -> Option<(usize, Span)> {
        let behind = self.uses.partition_point(|used| (used.span.file, used.span.start) <= (file, offset));
        let used = self.uses[..behind].last().filter(|used| holds(used.span, file, offset));
        let used = used.map(|used| (used.definition, used.span));
        let behind = self.definitions.partition_point(|known| (known.span.file, known.span.start) <= (file, offset));
        let own = behind.checked_sub(1).map(|number| (number, self.definitions[number].span));
        let own = own.filter(|(_, span)| holds(*span, file, offset));
        // Of two names that touch, the one that begins at the offset.
        [used, own].into_iter().flatten().max_by_key(|(_, span)| span.start)
    }

    /// The number of the declaration whose name is at this location.
    pub fn definition(&self, span: Span) -> Option<usize> {
        self.definitions.binary_search_by_key(&span, |known| known.span).ok()
    }

    /// The locations at which a declaration is used.
    pub fn uses_of(&self, definition: usize) -> impl Iterator<Item = Span> {
        self.uses.iter().filter(move |used| used.definition == definition).map(|used| used.span)
    }
}

fn holds(span: Span, file: FileId, offset: u32) -> bool {
    span.file == file && (span.start..=span.end).contains(&offset)
}

/// Which of several declarations a use at one location means: the last.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Rank {
    Item,
    /// Hides an item.
    Local,
    /// Stands behind a dot or in a type's own list.
    Part,
}

/// Collects names. Locations may be in expansions.
#[derive(Default)]
pub(super) struct Recorder {
    pub(super) definitions: Vec<(Span, DefinitionKind)>,
    /// The location of each use, and that of the declaration.
    pub(super) uses: Vec<(Span, Rank, Span)>,
    /// The types of variables, constants and fields, by the locations of their names.
    pub(super) types: Vec<(Span, TypeId, SmolStr)>,
    /// The names of fields and cases, in order.
    pub(super) parts: FxHashMap<AggregateId, Vec<Span>>,
    /// The cases of enumerations.
    pub(super) cases: FxHashMap<TypeId, Vec<(SmolStr, Span)>>,
}

impl Recorder {
    /// The names of the program, at places of the text.
    pub(super) fn names(self, sources: &SourceMap) -> Names {
        let text = |span: Span| sources.get(span.file)?.text.get(span.start as usize..span.end as usize);
        let mut definitions: Vec<Definition> = Vec::with_capacity(self.definitions.len());
        for (span, kind) in self.definitions {
            let span = sources.origin(span);
            let Some(name) = text(span).filter(|name| !name.is_empty()).map(SmolStr::new) else { continue };
            let (ty, type_text) = (None, SmolStr::default());
            definitions.push(Definition { name, span, kind, is_public: false, ty, type_text });
        }
        definitions.sort_by_key(|known| known.span);
        definitions.dedup_by_key(|known| known.span);
        let mut names = Names { definitions, ..Names::default() };
        for (span, ty, type_text) in self.types {
            if let Some(number) = names.definition(sources.origin(span)) {
                let known = &mut names.definitions[number];
                if known.ty.is_none() {
                    (known.ty, known.type_text) = (Some(ty), type_text);
                }
            }
        }
        let mut uses: Vec<(Span, Rank, Span)> = self.uses;
        for (span, _, declared) in &mut uses {
            (*span, *declared) = (sources.origin(*span), sources.origin(*declared));
        }
        // The highest rank first.
        uses.sort_by(|left, right| (left.0, right.1, left.2).cmp(&(right.0, left.1, right.2)));
        uses.dedup_by_key(|(span, ..)| *span);
        for (span, _, declared) in uses {
            if let Some(definition) = names.definition(declared)
                && names.definition(span).is_none()
                && text(span) == Some(names.definitions[definition].name.as_str())
            {
                names.uses.push(NameUse { span, definition });
            }
        }
        names
    }
}

/// The location of a label's text, without `#`.
pub(super) fn label_text(label: Span, text: &str) -> Span {
    Span { start: label.end - text.len() as u32, ..label }
}
