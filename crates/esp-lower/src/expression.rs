//! Lowering of expressions: scalars and references to SSA values, everything else into memory. Evaluation is from left
//! to right. Knows no statements.

use crate::builder::{Builder, Storage, Write, object};
use crate::constant::is_literal;
use crate::operator::binary_op;
use quaject_esp_ir::ir::{
    Base, BinaryOp, BitField, Op, Operand, Place, Projection, Type, TypeId, TypeTable, UnaryOp, Value,
};
use quaject_esp_syntax::hir::{self, Argument, BinaryOperator, Expr, ExprKind, LayoutId, PlaceStep, UnaryOperator};
use quaject_esp_syntax::span::Span;

/// The maximal number of elements of an array literal that are written one by one. A longer one without variables is
/// copied from a constant, so that the size of the code does not depend on its length.
const MAX_BUILT_ELEMENTS: usize = 64;

/// The target of an assignment, with its indices evaluated.
pub(super) enum Target {
    Variable(hir::LocalId),
    /// A part of a variable that the model forgets.
    Forgotten(hir::LocalId, Vec<Projection>),
    Memory(Place),
    Length(Place),
    Slice(Place, Option<Value>, Option<Value>),
    Number(Place, Value, u32, hir::ByteOrder),
    Bits(Place, Value, BitField),
}

impl Builder<'_, '_, '_> {
    /// Evaluates a scalar or a reference.
    pub(super) fn value(&mut self, expr: &Expr) -> Value {
        let (ty, span) = (expr.ty, expr.span);
        match &expr.kind {
            ExprKind::Constant(_) if self.context.is_abstract(ty) => self.define(ty, Op::Constant(0), span),
            ExprKind::Constant(constant) => self.define(ty, Op::Constant(*constant), span),
            ExprKind::Local(local) => match self.storage(*local) {
                Storage::Ssa => self.read_or_any(*local, span),
                Storage::Slot(_) => unreachable!("variables in slots are no scalars"),
            },
            ExprKind::Content(_) | ExprKind::Field(..) | ExprKind::Index(..) => {
                let place = self.place(expr);
                self.define(ty, Op::Load(place), span)
            }
            ExprKind::Length(base) => self.length(base, ty, span),
            ExprKind::Number { base, order, bits, offset } => {
                let from = self.place(base);
                let offset = self.value(offset);
                self.define(ty, Op::LoadNumber { from, offset, bits: *bits, order: *order }, span)
            }
            ExprKind::LayoutField { base, layout, field, offset } => {
                let from = self.place(base);
                let offset = self.value(offset);
                let field = self.context.bit_field(*layout, *field);
                self.define(ty, Op::LoadBits { from, offset, field }, span)
            }
            ExprKind::Convert(inner) | ExprKind::WidenPid(inner) | ExprKind::Test(inner) => {
                let value = self.value(inner);
                self.convert(value, ty, span)
            }
            ExprKind::Unary(operator, operand) => {
                let value = self.value(operand);
                let operator = match operator {
                    UnaryOperator::Not => UnaryOp::Not,
                    UnaryOperator::Complement => UnaryOp::Complement,
                    UnaryOperator::Negate => UnaryOp::Negate,
                };
                self.define(ty, Op::Unary(operator, value), span)
            }
            ExprKind::Binary(operator, left, right) => self.binary(expr, *operator, left, right),
            ExprKind::Saturating(operator, left, right) => {
                let left = self.value(left);
                let right = self.value(right);
                self.saturating(*operator, left, right, ty, span)
            }
            ExprKind::Now => self.now(span),
            ExprKind::Conditional(condition, yes, no) => self.conditional_value(condition, [yes, no], ty, span),
            ExprKind::CallFn(function, arguments) => {
                let arguments = self.arguments(arguments, ty);
                self.define(ty, Op::CallFunction { function: *function, arguments, to: None }, span)
            }
            ExprKind::CallExtern(function, arguments) => {
                let (arguments, after) = self.extern_arguments(arguments);
                let call = Op::CallExtern { function: *function, arguments, to: None };
                let result = self.define(ty, call, span);
                self.write_back(after, span);
                result
            }
            ExprKind::Freeze(inner) => {
                let value = self.value(inner);
                if self.context.boxed(ty).is_some() { self.freeze(value, span) } else { value }
            }
            ExprKind::Thaw(inner) => {
                let value = self.value(inner);
                if self.context.boxed(ty).is_some() { self.thaw(value, span) } else { value }
            }
            ExprKind::Box(content) => {
                let (pool, _) = self.context.boxed(ty).expect("only boxed types are allocated");
                let result = self.define(ty, Op::Allocate(pool), span);
                self.build(content, object(result));
                result
            }
            ExprKind::OwnId => self.define(ty, Op::OwnId, span),
            ExprKind::InstanceOf(process, index) => {
                let index = self.value(index);
                self.define(ty, Op::InstanceOf(*process, index), span)
            }
            ExprKind::ReplicaNumber(pid) => {
                let pid = self.value(pid);
                self.define(ty, Op::ReplicaNumber(pid), span)
            }
            ExprKind::FreeObjects(pool) => self.define(ty, Op::FreeObjects(*pool), span),
            ExprKind::Bytes(_)
            | ExprKind::Stored(_)
            | ExprKind::Record(_)
            | ExprKind::Array(_)
            | ExprKind::Repeat(_)
            | ExprKind::Union(..)
            | ExprKind::Slice(..)
            | ExprKind::Concatenate(..)
            | ExprKind::Fit(_) => unreachable!("flat aggregates are built in memory"),
        }
    }

    /// The length of bytes or of an array.
    fn length(&mut self, base: &Expr, ty: TypeId, span: Span) -> Value {
        let place = self.place(base);
        match self.context.types.get(base.ty) {
            Type::Array { length, element: _ } => {
                let length = i128::from(*length);
                self.define(ty, Op::Constant(length), span)
            }
            Type::Error
            | Type::Int(_)
            | Type::Bool
            | Type::Bytes { .. }
            | Type::Pid(_)
            | Type::Record(_)
            | Type::Union(_)
            | Type::Boxed(_) => self.define(ty, Op::Length(place), span),
        }
    }

    /// A conditional expression in a register: the parameter of the block at which its arms join.
    fn conditional_value(&mut self, condition: &Expr, arms: [&Expr; 2], ty: TypeId, span: Span) -> Value {
        let (then, otherwise, join) = (self.block(), self.block(), self.block());
        let result = self.parameter(join, ty);
        self.test(condition, then, otherwise);
        for (block, arm) in [then, otherwise].into_iter().zip(arms) {
            self.enter(block);
            let value = self.value(arm);
            self.jump_with(join, vec![value], span);
        }
        self.enter(join);
        result
    }

    /// The current value of a variable that lives in SSA form, or any if it is forgotten.
    fn read_or_any(&mut self, local: hir::LocalId, span: Span) -> Value {
        match self.forgotten_value(local, span) {
            Some(Operand::Value(value)) => value,
            Some(Operand::Place(_)) | None => self.read(local),
        }
    }

    /// The value in another scalar type, with the same low bits.
    pub(super) fn convert(&mut self, value: Value, ty: TypeId, span: Span) -> Value {
        if self.body.values[value.0 as usize].ty == ty {
            return value;
        }
        self.define(ty, Op::Convert(value), span)
    }

    fn binary(&mut self, expr: &Expr, operator: BinaryOperator, left: &Expr, right: &Expr) -> Value {
        let (ty, span) = (expr.ty, expr.span);
        if operator == BinaryOperator::Divide && self.context.is_unknown_quotient(left, right) {
            return self.unknown_quotient(left, right, span);
        }
        match operator {
            BinaryOperator::And | BinaryOperator::Or => {
                let (then, otherwise, join) = (self.block(), self.block(), self.block());
                let result = self.parameter(join, ty);
                self.test(expr, then, otherwise);
                for (block, outcome) in [(then, 1), (otherwise, 0)] {
                    self.enter(block);
                    let value = self.define(ty, Op::Constant(outcome), span);
                    self.jump_with(join, vec![value], span);
                }
                self.enter(join);
                result
            }
            BinaryOperator::Equal | BinaryOperator::NotEqual if !self.context.types.is_scalar(left.ty) => {
                let holds_time = self.context.holds_abstract(left.ty);
                let left = self.operand_before(left, right);
                let right = self.operand(right);
                let equal = self.define(ty, Op::Equal(left, right), span);
                let equal = if holds_time { self.either_if(equal, span) } else { equal };
                if operator == BinaryOperator::Equal {
                    return equal;
                }
                self.define(ty, Op::Unary(UnaryOp::Not, equal), span)
            }
            BinaryOperator::Multiply
            | BinaryOperator::Divide
            | BinaryOperator::Remainder
            | BinaryOperator::Add
            | BinaryOperator::Subtract
            | BinaryOperator::ShiftLeft
            | BinaryOperator::ShiftRight
            | BinaryOperator::BitAnd
            | BinaryOperator::BitXor
            | BinaryOperator::BitOr
            | BinaryOperator::Equal
            | BinaryOperator::NotEqual
            | BinaryOperator::Less
            | BinaryOperator::LessEqual
            | BinaryOperator::Greater
            | BinaryOperator::GreaterEqual => {
                let is_time = self.context.is_abstract(left.ty);
                let left = self.value(left);
                let right = self.value(right);
                if is_time {
                    return self.either(span);
                }
                self.define(ty, Op::Binary(binary_op(operator), left, right), span)
            }
        }
    }

    /// Ends the block with a branch to `then` if the condition holds, else to `otherwise`. They are different blocks.
    pub(super) fn test(
        &mut self,
        condition: &Expr,
        then: quaject_esp_ir::ir::BlockId,
        otherwise: quaject_esp_ir::ir::BlockId,
    ) {
        match &condition.kind {
            ExprKind::Binary(BinaryOperator::And, left, right) => {
                let second = self.block();
                self.test(left, second, otherwise);
                self.enter(second);
                self.test(right, then, otherwise);
            }
            ExprKind::Binary(BinaryOperator::Or, left, right) => {
                let second = self.block();
                self.test(left, then, second);
                self.enter(second);
                self.test(right, then, otherwise);
            }
            ExprKind::Unary(UnaryOperator::Not, inner) if inner.ty == TypeTable::BOOL => {
                self.test(inner, otherwise, then);
            }
            _other => {
                let value = self.value(condition);
                self.branch(value, then, otherwise, condition.span);
            }
        }
    }

    /// Evaluates anything: a flat aggregate stays where it is.
    pub(super) fn operand(&mut self, expr: &Expr) -> Operand {
        if self.context.in_register(expr.ty) {
            Operand::Value(self.value(expr))
        } else {
            Operand::Place(self.place(expr))
        }
    }

    /// Like `operand`, for a value that is used only after `later` was evaluated.
    fn operand_before(&mut self, expr: &Expr, later: &Expr) -> Operand {
        if !self.context.in_register(expr.ty) && writes(later) {
            return Operand::Place(self.copied(expr));
        }
        self.operand(expr)
    }

    /// Where a value in memory can be read: its own place, or a temporary built now.
    pub(super) fn place(&mut self, expr: &Expr) -> Place {
        match &expr.kind {
            ExprKind::Local(local) => match self.storage(*local) {
                Storage::Slot(slot) => match self.forgotten_value(*local, expr.span) {
                    Some(Operand::Place(place)) => place,
                    Some(Operand::Value(_)) | None => Place { base: Base::Slot(slot), path: Vec::new() },
                },
                Storage::Ssa => unreachable!("variables in SSA form have no place"),
            },
            ExprKind::Stored(id) => Place { base: Base::Constant(*id, expr.ty), path: Vec::new() },
            ExprKind::Content(inner) => {
                let reference = self.value(inner);
                object(reference)
            }
            ExprKind::Field(base, field) => {
                let mut place = self.place(base);
                place.path.push(Projection::Field(*field));
                place
            }
            ExprKind::Index(base, index) => {
                let mut place = if writes(index) { self.copied(base) } else { self.place(base) };
                let index = self.value(index);
                place.path.push(Projection::Element(index));
                place
            }
            // What is only read here needs no copy of its own.
            ExprKind::Freeze(inner) | ExprKind::Thaw(inner) => self.place(inner),
            _other => self.copied(expr),
        }
    }

    /// A temporary that holds the value as it is now.
    pub(super) fn copied(&mut self, expr: &Expr) -> Place {
        let place = self.temporary(expr.ty);
        self.build(expr, place.clone());
        place
    }

    /// Evaluates an expression into new memory that it does not read.
    pub(super) fn build(&mut self, expr: &Expr, to: Place) {
        let span = expr.span;
        if self.context.in_register(expr.ty) {
            let value = self.value(expr);
            self.effect(Op::Store(to, value), Write::Initial, span);
            return;
        }
        match &expr.kind {
            ExprKind::Bytes(bytes) => self.effect(Op::SetBytes(to, bytes.clone()), Write::Initial, span),
            ExprKind::Record(fields) => {
                for (field, value) in fields {
                    self.build(value, step(&to, Projection::Field(*field)));
                }
            }
            ExprKind::Array(elements) if elements.len() > MAX_BUILT_ELEMENTS && is_literal(expr) => {
                let from = self.context.store_literal(expr);
                self.effect(Op::Copy { to, from }, Write::Initial, span);
            }
            ExprKind::Array(elements) => self.build_array(elements, &to),
            ExprKind::Repeat(element) => {
                let operand = self.operand(element);
                self.effect(Op::Fill(to, operand), Write::Initial, span);
            }
            ExprKind::Union(tag, payload) => {
                self.effect(Op::SetTag(to.clone(), *tag), Write::Initial, span);
                if let Some(payload) = payload {
                    self.build(payload, step(&to, Projection::Payload(*tag)));
                }
            }
            ExprKind::Slice(base, start, end) => {
                let from = self.place(base);
                let start = start.as_ref().map(|start| self.value(start));
                let end = end.as_ref().map(|end| self.value(end));
                self.effect(Op::CopySlice { to, from, start, end }, Write::Initial, span);
            }
            ExprKind::Concatenate(left, right) => {
                self.build_longer(left, to.clone());
                let from = self.place(right);
                self.effect(Op::Append { to, from }, Write::Initial, span);
            }
            // The slice instruction checks the length.
            ExprKind::Fit(inner) if let ExprKind::Slice(..) = inner.kind => self.build(inner, to),
            ExprKind::Fit(inner) => {
                let from = self.place(inner);
                self.effect(Op::Copy { to, from }, Write::Initial, span);
            }
            ExprKind::Conditional(condition, yes, no) => self.build_conditional(condition, [yes, no], &to, span),
            ExprKind::CallFn(function, arguments) => {
                let arguments = self.arguments(arguments, expr.ty);
                let call = Op::CallFunction { function: *function, arguments, to: Some(to) };
                self.effect(call, Write::Initial, span);
            }
            ExprKind::CallExtern(function, arguments) => {
                let (arguments, after) = self.extern_arguments(arguments);
                let call = Op::CallExtern { function: *function, arguments, to: Some(to) };
                self.effect(call, Write::Initial, span);
                self.write_back(after, span);
            }
            ExprKind::Freeze(inner) | ExprKind::Thaw(inner) => self.build(inner, to),
            ExprKind::Local(_)
            | ExprKind::Stored(_)
            | ExprKind::Content(_)
            | ExprKind::Field(..)
            | ExprKind::Index(..) => {
                let from = self.place(expr);
                self.effect(Op::Copy { to, from }, Write::Initial, span);
            }
            ExprKind::Constant(_)
            | ExprKind::Box(_)
            | ExprKind::Length(_)
            | ExprKind::Number { .. }
            | ExprKind::LayoutField { .. }
            | ExprKind::Convert(_)
            | ExprKind::WidenPid(_)
            | ExprKind::Test(_)
            | ExprKind::Unary(..)
            | ExprKind::Binary(..)
            | ExprKind::Saturating(..)
            | ExprKind::Now
            | ExprKind::OwnId
            | ExprKind::InstanceOf(..)
            | ExprKind::ReplicaNumber(_)
            | ExprKind::FreeObjects(_) => unreachable!("scalars and references are held in SSA form"),
        }
    }

    /// The elements of an array into new memory.
    fn build_array(&mut self, elements: &[Expr], to: &Place) {
        for (index, element) in elements.iter().enumerate() {
            if self.context.is_too_large {
                return;
            }
            let index = self.define(TypeTable::I32, Op::Constant(index as i128), element.span);
            self.build(element, step(to, Projection::Element(index)));
        }
    }

    /// A conditional expression into new memory.
    fn build_conditional(&mut self, condition: &Expr, arms: [&Expr; 2], to: &Place, span: Span) {
        let (then, otherwise, join) = (self.block(), self.block(), self.block());
        self.test(condition, then, otherwise);
        for (block, arm) in [then, otherwise].into_iter().zip(arms) {
            self.enter(block);
            self.build(arm, to.clone());
            self.jump(join, span);
        }
        self.enter(join);
    }

    /// Bytes into new memory with at least their own bound.
    fn build_longer(&mut self, expr: &Expr, to: Place) {
        match &expr.kind {
            ExprKind::Bytes(_) | ExprKind::Slice(..) | ExprKind::Concatenate(..) => self.build(expr, to),
            _other => {
                let from = self.place(expr);
                self.effect(Op::Copy { to, from }, Write::Initial, expr.span);
            }
        }
    }

    /// Arguments of a pure function, which may return one of them as it is.
    pub(super) fn arguments(&mut self, arguments: &[Expr], result: TypeId) -> Vec<Operand> {
        let mut operands = Vec::with_capacity(arguments.len());
        for (index, argument) in arguments.iter().enumerate() {
            let operand = match &argument.kind {
                // The result must not share an object that can still be updated.
                ExprKind::Local(local) if self.is_mutable_object(*local) && self.may_hold(result, argument.ty) => {
                    let value = self.value(argument);
                    Operand::Value(self.freeze(value, argument.span))
                }
                _other if !self.context.in_register(argument.ty) && arguments[index + 1..].iter().any(writes) => {
                    Operand::Place(self.copied(argument))
                }
                _other => self.operand(argument),
            };
            operands.push(operand);
        }
        operands
    }

    /// Whether a variable is a reference to an object that is updated in place.
    pub(super) fn is_mutable_object(&self, local: hir::LocalId) -> bool {
        let local = self.local(local);
        local.mutability == hir::Mutability::Mutable && self.context.boxed(local.ty).is_some()
    }

    fn may_hold(&self, ty: TypeId, part: TypeId) -> bool {
        ty == part
            || match self.context.types.get(ty) {
                Type::Error | Type::Int(_) | Type::Bool | Type::Bytes { .. } | Type::Pid(_) => false,
                Type::Array { length: _, element } => self.may_hold(*element, part),
                Type::Record(id) | Type::Union(id) => {
                    let parts = &self.context.types.aggregate(*id).parts;
                    parts.iter().any(|(_, ty)| ty.is_some_and(|ty| self.may_hold(ty, part)))
                }
                Type::Boxed(pool) => self.may_hold(self.context.types.pool(*pool).content, part),
            }
    }

    /// Arguments of an extern function, and the scalar variables to be read back after the call.
    pub(super) fn extern_arguments(&mut self, arguments: &[Argument]) -> (Vec<Operand>, Vec<(hir::LocalId, Place)>) {
        let mut after = Vec::new();
        let mut operands = Vec::with_capacity(arguments.len());
        for argument in arguments {
            operands.push(match argument {
                Argument::Value(expr) => self.operand(expr),
                Argument::Mutable(place) => match self.target(place) {
                    Target::Memory(place) => Operand::Place(place),
                    Target::Forgotten(local, path) => Operand::Place(self.forgotten_part(local, &path, place.span)),
                    Target::Variable(local) => self.variable_place(local, place.span, &mut after),
                    Target::Length(_) | Target::Slice(..) | Target::Number(..) | Target::Bits(..) => {
                        unreachable!("only variables and their parts are passed to be written")
                    }
                },
            });
        }
        (operands, after)
    }

    fn variable_place(&mut self, local: hir::LocalId, span: Span, after: &mut Vec<(hir::LocalId, Place)>) -> Operand {
        let ty = self.local(local).ty;
        match self.storage(local) {
            Storage::Slot(_) if self.context.is_forgotten(local) => {
                Operand::Place(self.forgotten_part(local, &[], span))
            }
            Storage::Slot(slot) => Operand::Place(Place { base: Base::Slot(slot), path: Vec::new() }),
            Storage::Ssa if self.context.boxed(ty).is_some() => Operand::Place(object(self.read(local))),
            Storage::Ssa => {
                let array = self.context.types.intern(Type::Array { length: 1, element: ty });
                let cell = self.temporary(array);
                let zero = self.define(TypeTable::I32, Op::Constant(0), span);
                let place = step(&cell, Projection::Element(zero));
                let value = self.read_or_any(local, span);
                self.effect(Op::Store(place.clone(), value), Write::Initial, span);
                after.push((local, place.clone()));
                Operand::Place(place)
            }
        }
    }

    /// Gives scalar variables the values an extern function left in their cells.
    pub(super) fn write_back(&mut self, cells: Vec<(hir::LocalId, Place)>, span: Span) {
        for (local, place) in cells {
            let value = self.define(self.local(local).ty, Op::Load(place), span);
            self.check_variable_range(local, value, span);
            self.write(local, value);
        }
    }

    /// Evaluates the indices of the target of an assignment.
    pub(super) fn target(&mut self, place: &hir::Place) -> Target {
        let mut memory = match self.storage(place.base) {
            Storage::Slot(slot) => Place { base: Base::Slot(slot), path: Vec::new() },
            Storage::Ssa if place.path.is_empty() => return Target::Variable(place.base),
            Storage::Ssa => object(self.read(place.base)),
        };
        if place.path.is_empty() {
            return Target::Variable(place.base);
        }
        let is_forgotten = self.context.is_forgotten(place.base);
        for part in &place.path {
            match part {
                PlaceStep::Content => {}
                PlaceStep::Field(field) => memory.path.push(Projection::Field(*field)),
                PlaceStep::Index(index) => {
                    let index = self.value(index);
                    memory.path.push(Projection::Element(index));
                }
                PlaceStep::Length => return Target::Length(memory),
                PlaceStep::Slice(start, end) => {
                    let start = start.as_ref().map(|start| self.value(start));
                    let end = end.as_ref().map(|end| self.value(end));
                    return Target::Slice(memory, start, end);
                }
                PlaceStep::Number { order, bits, offset } => {
                    let offset = self.value(offset);
                    return Target::Number(memory, offset, *bits, *order);
                }
                PlaceStep::LayoutField { layout, field, offset } => {
                    let offset = self.value(offset);
                    return Target::Bits(memory, offset, self.context.bit_field(*layout, *field));
                }
            }
        }
        if is_forgotten { Target::Forgotten(place.base, memory.path) } else { Target::Memory(memory) }
    }

    /// Reads the target of an update.
    pub(super) fn load(&mut self, target: &Target, ty: TypeId, span: Span) -> Value {
        let op = match target {
            Target::Variable(local) => return self.read_or_any(*local, span),
            Target::Memory(place) => Op::Load(place.clone()),
            Target::Forgotten(local, path) => Op::Load(self.forgotten_part(*local, path, span)),
            Target::Length(place) => Op::Length(place.clone()),
            Target::Number(place, offset, bits, order) => {
                Op::LoadNumber { from: place.clone(), offset: *offset, bits: *bits, order: *order }
            }
            Target::Bits(place, offset, field) => Op::LoadBits { from: place.clone(), offset: *offset, field: *field },
            Target::Slice(..) => unreachable!("slices are not scalars"),
        };
        self.define(ty, op, span)
    }

    /// Assigns a value of the target's type.
    pub(super) fn store(&mut self, target: Target, operand: Operand, span: Span) {
        let op = match (target, operand) {
            (Target::Forgotten(local, path), _) => return self.check_indices(local, &path, span),
            (Target::Variable(local), Operand::Place(_)) if self.context.is_forgotten(local) => return,
            (Target::Variable(local), Operand::Value(value)) => {
                self.check_variable_range(local, value, span);
                return self.write(local, value);
            }
            (Target::Variable(local), Operand::Place(from)) => match self.storage(local) {
                Storage::Slot(slot) => {
                    let to = Place { base: Base::Slot(slot), path: Vec::new() };
                    if from == to {
                        return;
                    }
                    self.begin(slot);
                    return self.effect(Op::Copy { to, from }, Write::Initial, span);
                }
                Storage::Ssa => unreachable!("flat aggregates live in slots"),
            },
            (Target::Memory(to), Operand::Value(value)) => Op::Store(to, value),
            (Target::Memory(to), Operand::Place(from)) => Op::Copy { to, from },
            (Target::Length(place), Operand::Value(value)) => Op::SetLength(place, value),
            (Target::Slice(to, start, end), Operand::Place(from)) => Op::StoreSlice { to, start, end, from },
            (Target::Number(to, offset, bits, order), Operand::Value(value)) => {
                Op::StoreNumber { to, offset, bits, order, value }
            }
            (Target::Bits(to, offset, field), Operand::Value(value)) => Op::StoreBits { to, offset, field, value },
            (Target::Length(_) | Target::Number(..) | Target::Bits(..), Operand::Place(_))
            | (Target::Slice(..), Operand::Value(_)) => unreachable!("analysis made the types agree"),
        };
        self.effect(op, Write::Update, span);
    }

    /// An operand that neither refers to other memory nor changes its content while the instance waits: itself, or a
    /// copy.
    pub(super) fn stable_while_waiting(&mut self, operand: Operand, ty: TypeId, span: Span) -> Operand {
        let place = match operand {
            Operand::Value(value) => return Operand::Value(value),
            Operand::Place(place) => place,
        };
        let is_indexed = is_indexed(&place);
        if self.is_in_region() {
            return Operand::Place(self.place_with_own_counts(place, ty, span));
        }
        let is_part = match place.base {
            Base::Object(_) => true,
            Base::Slot(_) => !place.path.is_empty(),
            Base::Constant(..) => false,
        };
        if is_indexed || (is_part && self.context.counted(ty)) {
            return Operand::Place(self.copy_of(place, ty, span));
        }
        Operand::Place(place)
    }

    /// A place that holds its own reference counts, if any: a copy, if it is a part of another holder.
    pub(super) fn place_with_own_counts(&mut self, place: Place, ty: TypeId, span: Span) -> Place {
        let holder = match place.base {
            Base::Object(_) => true,
            Base::Constant(..) => false,
            Base::Slot(slot) => !place.path.is_empty() && self.context.counted(self.body.slots[slot.0 as usize].ty),
        };
        if holder || is_indexed(&place) { self.copy_of(place, ty, span) } else { place }
    }

    fn copy_of(&mut self, from: Place, ty: TypeId, span: Span) -> Place {
        let to = self.temporary(ty);
        self.effect(Op::Copy { to: to.clone(), from }, Write::Initial, span);
        to
    }

    /// A `bool` that says whether two scalars or memories are equal.
    pub(super) fn equal(&mut self, left: Operand, right: Operand, ty: TypeId, span: Span) -> Value {
        let op = match (left, right) {
            (Operand::Value(left), Operand::Value(right)) if self.context.types.is_scalar(ty) => {
                Op::Binary(BinaryOp::Equal, left, right)
            }
            (left, right) => Op::Equal(left, right),
        };
        let equal = self.define(TypeTable::BOOL, op, span);
        if self.context.holds_abstract(ty) { self.either_if(equal, span) } else { equal }
    }
}

/// Whether finding a place takes an index, which can be out of bounds.
fn is_indexed(place: &Place) -> bool {
    place.path.iter().any(|step| match step {
        Projection::Element(_) => true,
        Projection::Field(_) | Projection::Payload(_) | Projection::Inside(_) => false,
    })
}

/// A place with one more projection.
pub(super) fn step(place: &Place, step: Projection) -> Place {
    let mut place = place.clone();
    place.path.push(step);
    place
}

impl super::Context<'_> {
    fn bit_field(&self, layout: LayoutId, field: u32) -> BitField {
        let layout = &self.program.layouts[layout.0 as usize];
        let field = &layout.fields[field as usize];
        BitField {
            layout_bytes: layout.bytes,
            offset_bits: field.offset_bits,
            width_bits: field.width_bits,
            order: field.order,
        }
    }
}

/// Whether an expression can write a variable: it hands one to an extern function.
fn writes(expr: &Expr) -> bool {
    any(expr, &mut |part| match &part.kind {
        ExprKind::CallExtern(_, arguments) => arguments.iter().any(|argument| match argument {
            Argument::Value(_) => false,
            Argument::Mutable(_) => true,
        }),
        _other => false,
    })
}

/// Whether an expression reads or writes a variable.
pub(super) fn mentions(expr: &Expr, local: hir::LocalId) -> bool {
    any(expr, &mut |part| match &part.kind {
        ExprKind::Local(other) => *other == local,
        ExprKind::CallExtern(_, arguments) => arguments.iter().any(|argument| match argument {
            Argument::Value(_) => false,
            Argument::Mutable(place) => place.base == local,
        }),
        _other => false,
    })
}

/// Whether `test` holds for an expression or a part of it.
pub(super) fn any(expr: &Expr, test: &mut dyn FnMut(&Expr) -> bool) -> bool {
    if test(expr) {
        return true;
    }
    match &expr.kind {
        ExprKind::Constant(_)
        | ExprKind::Bytes(_)
        | ExprKind::Stored(_)
        | ExprKind::Local(_)
        | ExprKind::OwnId
        | ExprKind::Now
        | ExprKind::FreeObjects(_) => false,
        ExprKind::Record(fields) => fields.iter().any(|(_, value)| any(value, test)),
        ExprKind::Array(parts) | ExprKind::CallFn(_, parts) => parts.iter().any(|part| any(part, test)),
        ExprKind::Union(_, payload) => payload.as_ref().is_some_and(|payload| any(payload, test)),
        ExprKind::Repeat(inner)
        | ExprKind::Content(inner)
        | ExprKind::Box(inner)
        | ExprKind::Field(inner, _)
        | ExprKind::Length(inner)
        | ExprKind::Fit(inner)
        | ExprKind::Convert(inner)
        | ExprKind::WidenPid(inner)
        | ExprKind::Test(inner)
        | ExprKind::Unary(_, inner)
        | ExprKind::Freeze(inner)
        | ExprKind::Thaw(inner)
        | ExprKind::InstanceOf(_, inner)
        | ExprKind::ReplicaNumber(inner) => any(inner, test),
        ExprKind::Index(left, right)
        | ExprKind::Concatenate(left, right)
        | ExprKind::Binary(_, left, right)
        | ExprKind::Saturating(_, left, right) => any(left, test) || any(right, test),
        ExprKind::Number { base, order: _, bits: _, offset } => any(base, test) || any(offset, test),
        ExprKind::LayoutField { base, layout: _, field: _, offset } => any(base, test) || any(offset, test),
        ExprKind::Slice(base, start, end) => {
            any(base, test) || [start, end].into_iter().flatten().any(|bound| any(bound, test))
        }
        ExprKind::Conditional(condition, yes, no) => any(condition, test) || any(yes, test) || any(no, test),
        ExprKind::CallExtern(_, arguments) => arguments.iter().any(|argument| match argument {
            Argument::Value(value) => any(value, test),
            Argument::Mutable(place) => place.path.iter().any(|step| match step {
                PlaceStep::Content | PlaceStep::Field(_) | PlaceStep::Length => false,
                PlaceStep::Index(index) => any(index, test),
                PlaceStep::Slice(start, end) => [start, end].into_iter().flatten().any(|bound| any(bound, test)),
                PlaceStep::Number { order: _, bits: _, offset }
                | PlaceStep::LayoutField { layout: _, field: _, offset } => any(offset, test),
            }),
        }),
    }
}
