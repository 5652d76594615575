//! Which declaration a place of a text means, and which declarations are visible there. Where errors keep the checker
//! from resolving a name, the nearest visible declaration of that name is meant.

use crate::program::{Location, Program};
use crate::workspace::Workspace;
use quaject_esp_syntax::check::{Definition, DefinitionKind};
use quaject_esp_syntax::span::{FileId, Span};
use quaject_esp_syntax::tree::{SyntaxKind, SyntaxNode, SyntaxToken};
use rustc_hash::FxHashSet;

/// A declaration in one program.
#[derive(Clone, Copy)]
pub(crate) struct Resolution<'w> {
    pub(crate) program: &'w Program,
    /// Its number among the definitions.
    pub(crate) number: usize,
    /// The name at which it was asked for.
    pub(crate) span: Span,
}

impl<'w> Resolution<'w> {
    pub(crate) fn definition(&self) -> &'w Definition {
        &self.program.inspection.names.definitions[self.number]
    }

    pub(crate) fn declared(&self) -> Location {
        self.program.location(self.definition().span)
    }
}

impl Workspace {
    /// The declaration that a place names.
    pub(crate) fn symbol<'w>(&'w self, path: &'w str, offset: u32) -> Option<Resolution<'w>> {
        self.resolved(path, offset).or_else(|| self.nearest_of_name(path, offset))
    }

    /// The declaration that the checker found at a place.
    pub(crate) fn resolved<'w>(&'w self, path: &'w str, offset: u32) -> Option<Resolution<'w>> {
        self.programs_with(path).find_map(|(program, file)| {
            let (number, span) = program.inspection.names.at(file, offset)?;
            Some(Resolution { program, number, span })
        })
    }

    fn nearest_of_name<'w>(&'w self, path: &'w str, offset: u32) -> Option<Resolution<'w>> {
        let token = name_at(&self.parse(path)?.tree(), offset)?;
        let range = token.text_range();
        let is_field = previous(&token).is_some_and(|before| before.kind() == SyntaxKind::Dot);
        let names = |definition: &Definition| definition.name == token.text() && is_part(definition) == is_field;
        self.programs_with(path).find_map(|(program, file)| {
            let span = Span::new(file, range.start().into(), range.end().into());
            let visible = self.visible(program, file, range.start().into());
            let all = || 0..program.inspection.names.definitions.len();
            let definitions = &program.inspection.names.definitions;
            let nearest = visible.into_iter().rev().find(|number| names(&definitions[*number]));
            let number = nearest.or_else(|| all().find(|number| names(&definitions[*number])))?;
            Some(Resolution { program, number, span })
        })
    }

    /// The numbers of the declarations whose name alone means them at a place: items, then locals in order of text.
    pub(crate) fn visible(&self, program: &Program, file: FileId, offset: u32) -> Vec<usize> {
        let definitions = &program.inspection.names.definitions;
        let files = files_of_module(program, file);
        let tree = self.parse(&program.sources.file(file).name).map(|parse| parse.tree());
        let items: Vec<SyntaxNode> = tree.iter().flat_map(SyntaxNode::children).collect();
        let item_at = |offset: u32| {
            let next = items.partition_point(|item| u32::from(item.text_range().start()) <= offset);
            next.checked_sub(1).map(|number| &items[number])
        };
        let here = item_at(offset);
        let mut visible = Vec::new();
        let mut locals = Vec::new();
        for (number, definition) in definitions.iter().enumerate() {
            let is_here = definition.span.file == file;
            let scope = match item_at(definition.span.start).filter(|_| is_here) {
                Some(item) if Some(item) == here || may_be_constant(item.kind()) => scope(item, definition),
                // What is declared inside of another item is not visible.
                Some(_) if is_in_body(definition.kind) => continue,
                Some(_) | None => None,
            };
            match (definition.kind, scope) {
                (DefinitionKind::Field | DefinitionKind::LayoutField | DefinitionKind::Label, _) => {}
                (DefinitionKind::Module, _) if !is_here => {}
                (DefinitionKind::Case, _) => {
                    let is_enumerator =
                        definition.ty.is_some_and(|ty| program.inspection.program.types.enumeration(ty).is_some());
                    if !is_enumerator && files.contains(&definition.span.file) {
                        visible.push(number);
                    }
                }
                (_, Some((start, end))) => {
                    if definition.span.end <= offset && start <= offset && offset <= end {
                        locals.push(number);
                    }
                }
                (kind, None) if kind.is_local() => {}
                (_, None) => {
                    if files.contains(&definition.span.file) {
                        visible.push(number);
                    }
                }
            }
        }
        visible.extend(locals);
        visible
    }
}

/// Whether a declaration is named behind a dot.
fn is_part(definition: &Definition) -> bool {
    matches!(definition.kind, DefinitionKind::Field | DefinitionKind::LayoutField)
}

/// The files whose items are visible in a file by their names alone: those connected by imports without a name.
fn files_of_module(program: &Program, file: FileId) -> FxHashSet<FileId> {
    let plain: Vec<(FileId, FileId)> = program
        .inspection
        .names
        .imports
        .iter()
        .filter(|import| import.name.is_none())
        .map(|import| (import.path.file, import.file))
        .collect();
    let mut files = FxHashSet::from_iter([file]);
    let mut open = vec![file];
    while let Some(from) = open.pop() {
        for (one, other) in &plain {
            for next in [(*one == from).then_some(*other), (*other == from).then_some(*one)].into_iter().flatten() {
                if files.insert(next) {
                    open.push(next);
                }
            }
        }
    }
    files
}

fn is_in_body(kind: DefinitionKind) -> bool {
    matches!(kind, DefinitionKind::Variable | DefinitionKind::Parameter | DefinitionKind::Constant)
}

/// Whether an item of this kind can be a constant, or several items with one.
fn may_be_constant(kind: SyntaxKind) -> bool {
    matches!(kind, SyntaxKind::Const | SyntaxKind::ModifiedItem | SyntaxKind::ConditionalItems)
}

/// The range in which the name of a declaration inside of an item means it; none for what is an item.
fn scope(item: &SyntaxNode, definition: &Definition) -> Option<(u32, u32)> {
    if !is_in_body(definition.kind) {
        return None;
    }
    let token = name_at(item, definition.span.start)?;
    let node = token.parent_ancestors().find(|node| is_scope(node.kind()))?;
    Some((node.text_range().start().into(), node.text_range().end().into()))
}

fn is_scope(kind: SyntaxKind) -> bool {
    matches!(
        kind,
        SyntaxKind::Block
            | SyntaxKind::ForStmt
            | SyntaxKind::MatchArm
            | SyntaxKind::Branch
            | SyntaxKind::InterfaceEntry
            | SyntaxKind::Fn
            | SyntaxKind::Procedure
            | SyntaxKind::Template
            | SyntaxKind::Process
    )
}

/// The name that an offset is in, or directly behind.
pub(crate) fn name_at(tree: &SyntaxNode, offset: u32) -> Option<SyntaxToken> {
    if !tree.text_range().contains_inclusive(offset.into()) {
        return None;
    }
    let tokens = tree.token_at_offset(offset.into());
    let names = |token: &SyntaxToken| token.kind() == SyntaxKind::Ident;
    tokens.clone().right_biased().filter(names).or_else(|| tokens.left_biased().filter(names))
}

/// The token before, white space and comments aside.
pub(crate) fn previous(token: &SyntaxToken) -> Option<SyntaxToken> {
    std::iter::successors(token.prev_token(), SyntaxToken::prev_token).find(|token| !token.kind().is_trivia())
}

/// Whether nodes of this kind are items.
pub(crate) fn is_item(kind: SyntaxKind) -> bool {
    matches!(
        kind,
        SyntaxKind::TypeItem
            | SyntaxKind::Const
            | SyntaxKind::Channel
            | SyntaxKind::Interface
            | SyntaxKind::Extern
            | SyntaxKind::Fn
            | SyntaxKind::Layout
            | SyntaxKind::Process
            | SyntaxKind::Procedure
            | SyntaxKind::Template
            | SyntaxKind::Instance
            | SyntaxKind::FastPath
            | SyntaxKind::Model
            | SyntaxKind::Import
            | SyntaxKind::Pool
    )
}
