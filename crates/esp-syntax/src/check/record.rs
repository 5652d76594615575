//! Records which names mean what, for tools, where the checker resolves them. The compiler has no recorder, and then
//! nothing is recorded. Changes no check.

use super::constants::Constant;
use super::load::Loaded;
use super::names::{Checker, Entity};
use super::uses::{DefinitionKind, Names, Rank, Recorder};
use crate::ast;
use crate::hir::Mutability;
use crate::span::Span;
use crate::types::{AggregateId, TypeId};
use smol_str::SmolStr;
use std::cell::RefCell;

impl Entity {
    fn kind(self) -> DefinitionKind {
        match self {
            Entity::Type(_) => DefinitionKind::Type,
            Entity::Const(_) => DefinitionKind::Constant,
            Entity::Channel(_) => DefinitionKind::Channel,
            Entity::Interface => DefinitionKind::Interface,
            Entity::Extern(_) => DefinitionKind::Extern,
            Entity::Function(_) => DefinitionKind::Function,
            Entity::Layout(_) => DefinitionKind::Layout,
            Entity::Process(_) | Entity::AbsentProcess => DefinitionKind::Process,
            Entity::Template(_) => DefinitionKind::Template,
            Entity::Procedure(_) => DefinitionKind::Procedure,
            Entity::FastPath => DefinitionKind::FastPath,
            Entity::Model => DefinitionKind::Model,
        }
    }
}

impl Checker<'_> {
    /// Takes the names that were recorded.
    pub(super) fn take_names(&self, recorder: &RefCell<Recorder>, loaded: &Loaded) -> Names {
        for (given, parameter) in &loaded.given {
            self.record_use(*given, Rank::Part, *parameter);
        }
        loaded.scopes.module_names().for_each(|name| self.record_definition(name, DefinitionKind::Module));
        for entry in &self.consts {
            if let Some(Constant::Typed(value)) = &entry.value {
                self.record_type(entry.item.name.span, value.ty, Mutability::Immutable);
            }
        }
        let mut names = recorder.take().names(self.sources);
        names.imports.clone_from(&loaded.imports);
        for name in loaded.files.iter().flat_map(|file| &file.public) {
            if let Some(number) = names.definition(self.sources.origin(*name)) {
                names.definitions[number].is_public = true;
            }
        }
        names
    }

    /// Records a declaration.
    #[inline]
    pub(super) fn record_definition(&self, span: Span, kind: DefinitionKind) {
        if let Some(recorder) = self.recorder {
            recorder.borrow_mut().definitions.push((span, kind));
        }
    }

    /// Records the declaration of an item.
    pub(super) fn record_item(&self, span: Span, entity: Entity) {
        self.record_definition(span, entity.kind());
    }

    /// Records the names that an item declares for its parts, as far as the types of the program do not have them.
    pub(super) fn record_members(&self, item: &ast::Item) {
        let names: Vec<(Span, DefinitionKind)> = match item {
            ast::Item::Layout(item) => {
                item.fields.iter().map(|field| (field.name.span, DefinitionKind::LayoutField)).collect()
            }
            ast::Item::Extern(item) => {
                let named = item.parameters.iter().filter_map(|(name, _)| name.as_ref());
                named.map(|name| (name.span, DefinitionKind::Parameter)).collect()
            }
            ast::Item::Channel(item) => {
                item.value_names.iter().flatten().map(|name| (name.span, DefinitionKind::Field)).collect()
            }
            ast::Item::Interface(item) => {
                item.entries.iter().map(|entry| (entry.name.span, DefinitionKind::Interface)).collect()
            }
            _ => return,
        };
        names.into_iter().for_each(|(span, kind)| self.record_definition(span, kind));
    }

    /// Records that the text at a location names what is declared at another.
    #[inline]
    pub(super) fn record_use(&self, span: Span, rank: Rank, declared: Span) {
        if let Some(recorder) = self.recorder {
            recorder.borrow_mut().uses.push((span, rank, declared));
        }
    }

    /// Records the type of a variable or constant.
    pub(super) fn record_type(&self, span: Span, ty: TypeId, mutability: Mutability) {
        if let Some(recorder) = self.recorder {
            let text = self.value_type_name(ty, mutability);
            recorder.borrow_mut().types.push((span, ty, text.into()));
        }
    }

    /// Records the fields of a record or the cases of a union, in order.
    pub(super) fn record_parts(&self, id: AggregateId, kind: DefinitionKind, spans: impl Iterator<Item = Span>) {
        let Some(recorder) = self.recorder else { return };
        let spans: Vec<Span> = spans.collect();
        for (span, (_, ty)) in spans.iter().zip(&self.types.aggregate(id).parts) {
            self.record_definition(*span, kind);
            if let Some(ty) = ty {
                self.record_type(*span, *ty, Mutability::Immutable);
            }
        }
        recorder.borrow_mut().parts.insert(id, spans);
    }

    /// Records the use of a field or case by its number.
    pub(super) fn record_part(&self, span: Span, id: AggregateId, part: u32) {
        let Some(recorder) = self.recorder else { return };
        let declared = recorder.borrow().parts.get(&id).and_then(|parts| parts.get(part as usize)).copied();
        declared.into_iter().for_each(|declared| self.record_use(span, Rank::Part, declared));
    }

    /// Records the cases of an enumeration.
    pub(super) fn record_cases(&self, ty: TypeId, cases: impl Iterator<Item = (SmolStr, Span)>) {
        let Some(recorder) = self.recorder else { return };
        let cases: Vec<(SmolStr, Span)> = cases.collect();
        for (_, span) in &cases {
            self.record_definition(*span, DefinitionKind::Case);
            self.record_type(*span, ty, Mutability::Immutable);
        }
        recorder.borrow_mut().cases.insert(ty, cases);
    }

    /// Records the use of a case of an enumeration.
    pub(super) fn record_case(&self, ty: TypeId, name: &SmolStr, span: Span) {
        let Some(recorder) = self.recorder else { return };
        let find = |cases: &Vec<(SmolStr, Span)>| cases.iter().find(|(case, _)| case == name).map(|(_, span)| *span);
        let declared = recorder.borrow().cases.get(&ty).and_then(find);
        declared.into_iter().for_each(|declared| self.record_use(span, Rank::Part, declared));
    }
}
