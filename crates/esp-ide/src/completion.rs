//! What may stand at the cursor: names that are visible there, fields and cases behind a dot, channels in an operation,
//! labels, and reserved words. From the tokens before the cursor and the last analysis of the text.

use crate::program::Program;
use crate::scopes::previous;
use crate::workspace::Workspace;
use quaject_esp_syntax::check::{Definition, DefinitionKind};
use quaject_esp_syntax::hir::{Boundary, Direction};
use quaject_esp_syntax::span::FileId;
use quaject_esp_syntax::tree::{SyntaxKind, SyntaxToken};
use quaject_esp_syntax::types::{Type, TypeId};
use std::collections::BTreeSet;

/// What is offered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CompletionKind {
    /// A declared name.
    Name(DefinitionKind),
    /// A reserved word.
    Keyword,
    /// What the language gives: a part of `bytes`, a function.
    Predeclared,
}

/// A text that is offered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Completion {
    /// The text.
    pub label: String,
    #[allow(missing_docs)]
    pub kind: CompletionKind,
    /// A type, if there is one.
    pub detail: String,
    /// The part of the text that it replaces: first byte and one past the last.
    pub range: (u32, u32),
}

/// What the language gives to each value of `bytes`.
const PARTS_OF_BYTES: [&str; 7] = ["len", "be16", "be32", "be64", "le16", "le32", "le64"];
/// Functions and values of the language.
const PREDECLARED: [&str; 7] = ["freeze", "thaw", "free", "link", "unlink", "sizeof", "now"];

/// The place of a completion.
struct Place<'w> {
    program: &'w Program,
    file: FileId,
    range: (u32, u32),
}

impl Workspace {
    /// What may stand at a place, the likely first.
    pub fn completions(&self, path: &str, offset: u32) -> Vec<Completion> {
        let Some((program, file)) = self.programs_with(path).next() else { return Vec::new() };
        let Some(parse) = self.parse(path) else { return Vec::new() };
        let tree = parse.tree();
        if offset > u32::from(tree.text_range().end()) {
            return Vec::new();
        }
        let Some(at) = tree.token_at_offset(offset.into()).left_biased() else {
            return self.names(&Place { program, file, range: (offset, offset) }, &[]);
        };
        let is_word = is_word(&at) && u32::from(at.text_range().start()) < offset;
        let range =
            if is_word { (at.text_range().start().into(), at.text_range().end().into()) } else { (offset, offset) };
        let is_inside = u32::from(at.text_range().end()) > offset;
        match at.kind() {
            SyntaxKind::LineComment => return Vec::new(),
            SyntaxKind::BlockComment | SyntaxKind::String | SyntaxKind::Char if is_inside => return Vec::new(),
            _ => {}
        }
        let before = if is_word || at.kind().is_trivia() { previous(&at) } else { Some(at) };
        let place = Place { program, file, range };
        let Some(before) = before else { return self.names(&place, &[]) };
        let outer = previous(&before).map(|token| token.kind());
        match (before.kind(), outer) {
            (SyntaxKind::Dot, _) => self.parts(&place, &before),
            (SyntaxKind::LeftParen, Some(SyntaxKind::InKeyword)) => self.channels(&place, Direction::In),
            (SyntaxKind::LeftParen, Some(SyntaxKind::OutKeyword)) => self.channels(&place, Direction::Out),
            (SyntaxKind::Hash, Some(SyntaxKind::BreakKeyword | SyntaxKind::ContinueKeyword)) => {
                let kinds = [DefinitionKind::Label];
                let here = |known: &&Definition| known.span.file == file && kinds.contains(&known.kind);
                let labels = program.inspection.names.definitions.iter().filter(here);
                sorted(labels.map(|known| place.offer(known)).collect())
            }
            (SyntaxKind::At, _) => self.names(&place, &[DefinitionKind::Process]),
            (SyntaxKind::Colon | SyntaxKind::OfWord | SyntaxKind::ThinArrow, _) => {
                self.names(&place, &[DefinitionKind::Type, DefinitionKind::Layout])
            }
            // A name is declared.
            (
                SyntaxKind::Dollar
                | SyntaxKind::VarKeyword
                | SyntaxKind::ConstKeyword
                | SyntaxKind::ChannelKeyword
                | SyntaxKind::ProcessKeyword
                | SyntaxKind::TypeKeyword
                | SyntaxKind::FnKeyword
                | SyntaxKind::LayoutWord
                | SyntaxKind::ProcedureWord
                | SyntaxKind::ModelWord,
                _,
            ) => Vec::new(),
            _ => self.names(&place, &[]),
        }
    }

    /// The visible names, those of some kinds first, and reserved words.
    fn names(&self, place: &Place, first: &[DefinitionKind]) -> Vec<Completion> {
        let definitions = &place.program.inspection.names.definitions;
        let visible = self.visible(place.program, place.file, place.range.0);
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        let mut offered: Vec<(usize, &Definition)> = Vec::new();
        // The innermost declaration of a name is last.
        for known in visible.into_iter().rev().map(|number| &definitions[number]) {
            if seen.insert(&known.name) {
                let rank = match known.kind {
                    kind if first.contains(&kind) => 0,
                    kind if kind.is_local() => 1,
                    DefinitionKind::Constant | DefinitionKind::Function | DefinitionKind::Channel => 2,
                    _ => 3,
                };
                offered.push((rank, known));
            }
        }
        offered.sort_by(|left, right| (left.0, &left.1.name).cmp(&(right.0, &right.1.name)));
        let mut all: Vec<Completion> = offered.into_iter().map(|(_, known)| place.offer(known)).collect();
        let words = SyntaxKind::RESERVED_WORDS.iter().filter(|word| **word != "_");
        all.extend(words.map(|word| place.give(word, CompletionKind::Keyword)));
        all.extend(PREDECLARED.iter().map(|word| place.give(word, CompletionKind::Predeclared)));
        all
    }

    /// The channels on which a process can do an operation.
    fn channels(&self, place: &Place, direction: Direction) -> Vec<Completion> {
        let names = &place.program.inspection.names;
        let refused = match direction {
            Direction::In => Boundary::ToEnvironment,
            Direction::Out => Boundary::FromEnvironment,
        };
        let channels = &place.program.inspection.program.channels;
        let of = |known: &Definition| channels.iter().find(|c| place.program.sources.origin(c.span) == known.span);
        let visible = self.visible(place.program, place.file, place.range.0);
        let offered = visible.into_iter().map(|number| &names.definitions[number]).filter(|known| match known.kind {
            DefinitionKind::Channel => of(known).is_none_or(|channel| channel.boundary != refused),
            DefinitionKind::Parameter | DefinitionKind::Module => true,
            _ => false,
        });
        sorted(offered.map(|known| place.offer(known)).collect())
    }

    /// What may stand behind a dot.
    fn parts(&self, place: &Place, dot: &SyntaxToken) -> Vec<Completion> {
        let Some(base) = base_of(dot) else { return Vec::new() };
        let names = &place.program.inspection.names;
        let path = &place.program.sources.file(place.file).name;
        let Some(symbol) = self.symbol(path, base.name.text_range().start().into()) else { return Vec::new() };
        let definition = symbol.definition();
        if definition.kind == DefinitionKind::Module {
            let import = names.imports.iter().find(|import| import.name == Some(definition.span));
            let public = names.definitions.iter().filter(|known| known.is_public);
            let of_module = public.filter(|known| import.is_some_and(|import| known.span.file == import.file));
            return sorted(of_module.map(|known| place.offer(known)).collect());
        }
        let types = &symbol.program.inspection.program.types;
        let cases = |ty: TypeId| {
            let of_type = names.definitions.iter().filter(|known| known.kind == DefinitionKind::Case);
            of_type.filter(|known| known.ty == Some(ty)).map(|known| place.offer(known)).collect()
        };
        if definition.kind == DefinitionKind::Type {
            let enumerations = (0..types.types().len()).map(|number| TypeId(number as u32));
            let mut own =
                enumerations.filter(|ty| types.enumeration(*ty).is_some_and(|e| e.name.ends_with(&*definition.name)));
            return own.next().map_or_else(Vec::new, cases);
        }
        let Some(mut ty) = definition.ty else { return Vec::new() };
        for _ in 0..base.indices {
            if let Type::Array { element, .. } = types.get(content(symbol.program, ty)) {
                ty = *element;
            }
        }
        let give = |label: &str, ty: Option<TypeId>, kind| Completion {
            label: label.to_string(),
            kind,
            detail: ty.map_or_else(String::new, |ty| type_text(symbol.program, ty)),
            range: place.range,
        };
        match types.get(content(symbol.program, ty)) {
            Type::Record(id) => {
                let parts = types.aggregate(*id).parts.iter();
                parts.map(|(name, ty)| give(name, *ty, CompletionKind::Name(DefinitionKind::Field))).collect()
            }
            Type::Bytes { .. } => {
                let mut all: Vec<Completion> =
                    PARTS_OF_BYTES.iter().map(|part| place.give(part, CompletionKind::Predeclared)).collect();
                let layouts = names.definitions.iter().filter(|known| known.kind == DefinitionKind::Layout);
                all.extend(sorted(layouts.map(|known| place.offer(known)).collect()));
                all
            }
            Type::Array { .. } => vec![place.give("len", CompletionKind::Predeclared)],
            Type::Error | Type::Int(_) | Type::Bool | Type::Pid(_) | Type::Union(_) | Type::Boxed(_) => Vec::new(),
        }
    }
}

impl Place<'_> {
    fn offer(&self, known: &Definition) -> Completion {
        let detail =
            if known.type_text.is_empty() { known.kind.noun().to_string() } else { known.type_text.to_string() };
        Completion { label: known.name.to_string(), kind: CompletionKind::Name(known.kind), detail, range: self.range }
    }

    fn give(&self, word: &str, kind: CompletionKind) -> Completion {
        Completion { label: word.to_string(), kind, detail: String::new(), range: self.range }
    }
}

fn sorted(mut all: Vec<Completion>) -> Vec<Completion> {
    all.sort_by(|left, right| left.label.cmp(&right.label));
    all.dedup_by(|left, right| left.label == right.label);
    all
}

/// The last name before a dot, and the number of indices behind it.
struct Base {
    name: SyntaxToken,
    indices: u32,
}

fn base_of(dot: &SyntaxToken) -> Option<Base> {
    let mut token = previous(dot)?;
    let mut indices = 0;
    while token.kind() == SyntaxKind::RightBracket {
        let mut depth = 0;
        loop {
            match token.kind() {
                SyntaxKind::RightBracket => depth += 1,
                SyntaxKind::LeftBracket => depth -= 1,
                _ => {}
            }
            token = previous(&token)?;
            if depth == 0 {
                break;
            }
        }
        indices += 1;
    }
    (token.kind() == SyntaxKind::Ident).then_some(Base { name: token, indices })
}

fn is_word(token: &SyntaxToken) -> bool {
    token.text().starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

/// The type of what a boxed object holds.
fn content(program: &Program, ty: TypeId) -> TypeId {
    let types = &program.inspection.program.types;
    match types.get(ty) {
        Type::Boxed(pool) => types.pool(*pool).content,
        _ => ty,
    }
}

/// The name of a type, if some declaration has one of this type.
fn type_text(program: &Program, ty: TypeId) -> String {
    let definitions = &program.inspection.names.definitions;
    definitions.iter().find(|known| known.ty == Some(ty)).map_or_else(String::new, |known| known.type_text.to_string())
}
