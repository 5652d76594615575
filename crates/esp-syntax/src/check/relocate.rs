//! Copies of syntax at another place: all locations of a copy name the expansion that it was made for, so that whatever
//! is found in it is found at a line of the text and at a call. Changes nothing but locations.

use crate::ast::{
    Block, BlockItem, Branch, Channel, Communicate, ConditionalItems, Const, Enumeration, Expr, ExprKind, Extern, Fn,
    Import, ImportArgument, ImportValue, Instantiation, Interface, InterfaceEntry, Item, Label, Layout, LayoutField,
    Memory, Name, Operation, Parameter, ParameterKind, PartOf, Pattern, PatternKind, Place, PlaceStep, Pool, Procedure,
    Process, RangeEnd, Stmt, StmtKind, Template, Type, TypeItem, TypeKind, ValueType, Var,
};
use crate::span::{FileId, Span};

/// A part of the syntax with locations.
pub(super) trait Relocate {
    /// Moves all locations to an expansion.
    fn relocate(&mut self, file: FileId);
}

impl<T: Relocate> Relocate for Vec<T> {
    fn relocate(&mut self, file: FileId) {
        self.iter_mut().for_each(|part| part.relocate(file));
    }
}

impl<T: Relocate> Relocate for Option<T> {
    fn relocate(&mut self, file: FileId) {
        self.iter_mut().for_each(|part| part.relocate(file));
    }
}

impl<T: Relocate> Relocate for Box<T> {
    fn relocate(&mut self, file: FileId) {
        (**self).relocate(file);
    }
}

impl<A: Relocate, B: Relocate> Relocate for (A, B) {
    fn relocate(&mut self, file: FileId) {
        self.0.relocate(file);
        self.1.relocate(file);
    }
}

/// Parts that consist of these fields.
macro_rules! fields {
    ($($type:ident { $($field:ident),* })*) => {
        $(impl Relocate for $type {
            fn relocate(&mut self, file: FileId) {
                $(self.$field.relocate(file);)*
            }
        })*
    };
}

fields! {
    Name { span }
    Label { span }
    Import { span, arguments, name }
    ImportArgument { name, value }
    PartOf { span }
    TypeItem { name, ty }
    Interface { name, channel, entries, span }
    InterfaceEntry { name, patterns, span }
    Extern { name, parameters, result }
    Fn { name, parameters, result, body }
    Layout { name, fields, span }
    LayoutField { name, width }
    Process { name, replicas, body }
    Instantiation { name, replicas, template, arguments, span }
    ConditionalItems { condition, then, otherwise }
    Pool { ty, capacity }
    Memory { span }
    Procedure { name, parameters, result, body }
    Template { name, parameters, body }
    Parameter { name, kind, span }
    Type { kind, span }
    Enumeration { cases, other }
    ValueType { ty }
    Block { items, span }
    Var { name, ty, value }
    Const { name, ty, value }
    Stmt { kind, span }
    Communicate { idle, branches, otherwise }
    Branch { guard, operation, body, span }
    Place { base, path, span }
    Pattern { kind, condition, span }
    Expr { kind, span }
}

impl Relocate for Span {
    fn relocate(&mut self, file: FileId) {
        self.file = file;
    }
}

impl Relocate for Item {
    fn relocate(&mut self, file: FileId) {
        match self {
            Item::Import(item) => item.relocate(file),
            Item::PartOf(item) => item.relocate(file),
            Item::Type(item) => item.relocate(file),
            Item::Const(item) => item.relocate(file),
            Item::Channel(item) => item.relocate(file),
            Item::Interface(item) => item.relocate(file),
            Item::Extern(item) => item.relocate(file),
            Item::Fn(item) => item.relocate(file),
            Item::Layout(item) => item.relocate(file),
            Item::Process(item) => item.relocate(file),
            Item::Procedure(item) => item.relocate(file),
            Item::Template(item) => item.relocate(file),
            Item::Instance(item) => item.relocate(file),
            Item::Conditional(item) => item.relocate(file),
            Item::Assert(item) => item.condition.relocate(file),
            Item::Pool(item) => item.relocate(file),
            Item::Memory(item) => item.relocate(file),
            // Copies of files have none.
            Item::FastPath(_) | Item::Model(_) => {}
        }
    }
}

impl Relocate for Channel {
    fn relocate(&mut self, file: FileId) {
        self.name.relocate(file);
        self.types.relocate(file);
        self.value_names.iter_mut().flatten().for_each(|name| name.relocate(file));
        self.attributes.iter_mut().for_each(|(_, span)| span.relocate(file));
        self.driver.iter_mut().for_each(|(_, span)| span.relocate(file));
        self.span.relocate(file);
    }
}

impl Relocate for ImportValue {
    fn relocate(&mut self, file: FileId) {
        match self {
            ImportValue::Type(ty) => ty.relocate(file),
            ImportValue::Value(value) => value.relocate(file),
        }
    }
}

impl Relocate for ParameterKind {
    fn relocate(&mut self, file: FileId) {
        match self {
            ParameterKind::Value(ty) => ty.relocate(file),
            ParameterKind::Channel(_, types) => types.relocate(file),
        }
    }
}

impl Relocate for TypeKind {
    fn relocate(&mut self, file: FileId) {
        match self {
            TypeKind::Error | TypeKind::Int(_) | TypeKind::Bool => {}
            TypeKind::Bytes(bound) => bound.relocate(file),
            TypeKind::Pid(names) => names.relocate(file),
            TypeKind::Named(name) => name.relocate(file),
            TypeKind::Array(length, element) => {
                length.relocate(file);
                element.relocate(file);
            }
            TypeKind::Record(fields) => fields.relocate(file),
            TypeKind::Union(tags) => tags.relocate(file),
            TypeKind::Enum(enumeration) => enumeration.relocate(file),
        }
    }
}

impl Relocate for BlockItem {
    fn relocate(&mut self, file: FileId) {
        match self {
            BlockItem::Label(label) => label.relocate(file),
            BlockItem::Var(var) => var.relocate(file),
            BlockItem::Const(item) => item.relocate(file),
            BlockItem::Stmt(stmt) => stmt.relocate(file),
        }
    }
}

impl Relocate for StmtKind {
    fn relocate(&mut self, file: FileId) {
        match self {
            StmtKind::Error | StmtKind::Yield => {}
            StmtKind::Break(label) | StmtKind::Continue(label) => label.relocate(file),
            StmtKind::Block(block) => block.relocate(file),
            StmtKind::If(condition, then, otherwise) => {
                condition.relocate(file);
                then.relocate(file);
                otherwise.relocate(file);
            }
            StmtKind::While(condition, body) => {
                condition.relocate(file);
                body.relocate(file);
            }
            StmtKind::For(counter, from, to, body) => {
                counter.relocate(file);
                from.relocate(file);
                to.relocate(file);
                body.relocate(file);
            }
            StmtKind::Match(value, arms) => {
                value.relocate(file);
                arms.relocate(file);
            }
            StmtKind::Return(value) => value.relocate(file),
            StmtKind::Exit(value) | StmtKind::Assert(value, _) => value.relocate(file),
            StmtKind::Communicate(communicate) => communicate.relocate(file),
            StmtKind::Call(name, arguments) => {
                name.relocate(file);
                arguments.relocate(file);
            }
            StmtKind::Assign(place, _, value) => {
                place.relocate(file);
                value.relocate(file);
            }
        }
    }
}

impl Relocate for Operation {
    fn relocate(&mut self, file: FileId) {
        match self {
            Operation::In(channel, patterns) => {
                channel.relocate(file);
                patterns.relocate(file);
            }
            Operation::Out(channel, values) => {
                channel.relocate(file);
                values.relocate(file);
            }
            Operation::After(duration, _) | Operation::Until(duration) => duration.relocate(file),
        }
    }
}

impl Relocate for PlaceStep {
    fn relocate(&mut self, file: FileId) {
        match self {
            PlaceStep::Field(name) => name.relocate(file),
            PlaceStep::Index(index) => index.relocate(file),
            PlaceStep::Slice(from, to) => {
                from.relocate(file);
                to.relocate(file);
            }
        }
    }
}

impl Relocate for PatternKind {
    fn relocate(&mut self, file: FileId) {
        match self {
            PatternKind::Error
            | PatternKind::Any
            | PatternKind::OwnId
            | PatternKind::Int(_)
            | PatternKind::Bytes(_)
            | PatternKind::Bool(_) => {}
            PatternKind::Declare(name) => name.relocate(file),
            PatternKind::Equal(value) => value.relocate(file),
            PatternKind::Tag(tag, payload) => {
                tag.relocate(file);
                payload.relocate(file);
            }
            PatternKind::Place(place) => place.relocate(file),
            PatternKind::Record(fields) => fields.relocate(file),
            PatternKind::Array(elements) | PatternKind::Alternatives(elements) => elements.relocate(file),
            PatternKind::Range(from, to) => {
                from.relocate(file);
                to.relocate(file);
            }
        }
    }
}

impl Relocate for RangeEnd {
    fn relocate(&mut self, file: FileId) {
        match self {
            RangeEnd::Error | RangeEnd::Int(_) => {}
            RangeEnd::Name(constant) => constant.relocate(file),
        }
    }
}

impl Relocate for ExprKind {
    fn relocate(&mut self, file: FileId) {
        match self {
            ExprKind::Error
            | ExprKind::Int(_)
            | ExprKind::Char(_)
            | ExprKind::Bool(_)
            | ExprKind::Bytes(..)
            | ExprKind::OwnId => {}
            ExprKind::Record(_, fields) => fields.relocate(file),
            ExprKind::Array(_, elements) => elements.relocate(file),
            ExprKind::Name(name) => name.relocate(file),
            ExprKind::Call(name, arguments) => {
                name.relocate(file);
                arguments.relocate(file);
            }
            ExprKind::Convert(_, inner) | ExprKind::Duration(inner, _) | ExprKind::Unary(_, inner) => {
                inner.relocate(file);
            }
            ExprKind::Tag(name, inner) | ExprKind::Field(inner, name) => {
                name.relocate(file);
                inner.relocate(file);
            }
            ExprKind::Repeat(_, left, right) | ExprKind::Binary(_, left, right) | ExprKind::Index(left, right) => {
                left.relocate(file);
                right.relocate(file);
            }
            ExprKind::Conditional(condition, left, right) => {
                condition.relocate(file);
                left.relocate(file);
                right.relocate(file);
            }
            ExprKind::Slice(base, from, to) => {
                base.relocate(file);
                from.relocate(file);
                to.relocate(file);
            }
            ExprKind::ProcessId(name, index) => {
                name.relocate(file);
                index.relocate(file);
            }
        }
    }
}
