//! The abstractions of a model, applied to the code of its processes (reference, section 11). They over-approximate:
//! every run of the program is a run of the model, unless a value outside a range ends it.
//!
//! ```text
//!   forget P.n         n + 1            P.n() + 1        an extern function that returns any value
//!   forget c.1         out(c, e, f)     out(c, e, c.1()) after f is computed, because that may fault
//!   range P.n 0..4     n = e            n = e            fault `range` unless it is in 0..4
//! ```
//!
//! The values that a wait reads have to stay the same while the instance waits. They are chosen on arrival. What is
//! assigned to a forgotten variable is computed, because that may fault, and not kept.

use crate::Context;
use crate::builder::{Builder, Storage, Write};
use crate::expression::any;
use quaject_esp_ir::ir::{
    self, Base, BinaryOp, Boundary, ChannelId, ExternId, Fault, IntType, Location, Op, Operand, Place, Projection,
    Purity, Terminator, Type, TypeId, TypeTable, Value,
};
use quaject_esp_ir::model::{Abstracted, Abstraction, ModelProgram, Role, Values};
use quaject_esp_syntax::hir::{self, AbstractionKind, Expr, Influence, LocalId, ModelPath, PatternKind};
use quaject_esp_syntax::span::Span;
use rustc_hash::FxHashMap;
use smol_str::SmolStr;

/// A part that can be abstracted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum AbstractedPart {
    /// Of a process, by number.
    Variable(usize, LocalId),
    Payload(ChannelId, u32),
}

/// The abstractions of a model.
#[derive(Default)]
pub(super) struct Abstractions {
    forgotten: FxHashMap<AbstractedPart, ExternId>,
    ranges: FxHashMap<AbstractedPart, Range>,
    /// The functions that return the values of forgotten parts. They follow those of the program.
    stand_ins: Vec<(ir::Extern, Values)>,
}

struct Range {
    from: i128,
    to: i128,
    /// The locations where a value is checked against it.
    limits: Vec<Location>,
}

fn abstracted_part(path: &ModelPath) -> Option<AbstractedPart> {
    match path {
        ModelPath::Variable(process, local) => Some(AbstractedPart::Variable(process.0 as usize, *local)),
        ModelPath::Payload(channel, number) => Some(AbstractedPart::Payload(*channel, *number)),
        ModelPath::Extern(_) => None,
    }
}

fn described(program: &hir::Program, subject: AbstractedPart) -> (SmolStr, TypeId) {
    match subject {
        AbstractedPart::Variable(process, local) => {
            let process = &program.processes[process];
            let local = &process.locals[local.0 as usize];
            (format!("{}.{}", process.name, local.name).into(), local.ty)
        }
        AbstractedPart::Payload(channel, number) => {
            let channel = &program.channels[channel.0 as usize];
            (format!("{}.{number}", channel.name).into(), channel.payload[number as usize])
        }
    }
}

impl Abstractions {
    /// The abstractions of a model of a program.
    /// `first` is the number of the first function that the model adds.
    pub(super) fn of(program: &hir::Program, model: &hir::Model, first: usize) -> Abstractions {
        let mut found = Abstractions::default();
        let parts = || model.abstractions.iter().filter_map(|part| Some((abstracted_part(&part.path)?, part)));
        for (subject, part) in parts() {
            let (_, ty) = described(program, subject);
            if let (AbstractionKind::Range(from, to), Type::Int(_)) = (part.kind, program.types.get(ty)) {
                found.ranges.insert(subject, Range { from, to, limits: Vec::new() });
            }
        }
        for (subject, part) in parts() {
            match part.kind {
                AbstractionKind::Drop | AbstractionKind::Forget => {}
                // A checker that stores each part of a state once keeps a hash of it, and loses nothing.
                AbstractionKind::Hash | AbstractionKind::Range(..) => continue,
            }
            if found.forgotten.contains_key(&subject) {
                continue;
            }
            let values = match (found.ranges.get(&subject), part.influence) {
                (Some(range), _) => Values::Range(range.from, range.to),
                (None, Influence::Control) => Values::All,
                (None, Influence::DataOnly) => Values::One,
            };
            let (name, ty) = described(program, subject);
            // Objects are never forgotten, because their number decides which are free.
            if program.types.holds_objects(ty) {
                continue;
            }
            let number = first + found.stand_ins.len();
            found.forgotten.insert(subject, ExternId(number as u32));
            let function = ir::Extern { name, purity: Purity::Impure, parameters: Vec::new(), result: Some(ty) };
            found.stand_ins.push((function, values));
        }
        found
    }

    /// Adds the functions to the model.
    pub(super) fn add_functions(&mut self, result: &mut ModelProgram) {
        for (function, values) in self.stand_ins.drain(..) {
            result.program.externs.push(function);
            result.results.push(values);
        }
    }

    /// Lists the abstractions that can cause spurious counterexamples, once the ends of channels are known.
    pub(super) fn list_in(&self, result: &mut ModelProgram, program: &hir::Program, model: &hir::Model) {
        for part in &model.abstractions {
            let Some(subject) = abstracted_part(&part.path) else { continue };
            let stand_in = self.forgotten.get(&subject).copied();
            let applies = match subject {
                AbstractedPart::Variable(process, _) => result.roles[process] == Role::Explored,
                AbstractedPart::Payload(channel, _) => match result.program.channels[channel.0 as usize].boundary {
                    Boundary::Internal => true,
                    Boundary::FromEnvironment => false,
                    Boundary::ToEnvironment => {
                        // No process of the model reads it.
                        stand_in.iter().for_each(|function| result.results[function.0 as usize] = Values::One);
                        true
                    }
                },
            };
            let kind = match part.kind {
                AbstractionKind::Hash => continue,
                _ if !applies => continue,
                AbstractionKind::Drop => Abstraction::Drop,
                AbstractionKind::Forget => Abstraction::Forget,
                AbstractionKind::Range(from, to) => Abstraction::Range(from, to),
            };
            let (stand_in, limits) = match kind {
                Abstraction::Drop | Abstraction::Forget => (stand_in, Vec::new()),
                Abstraction::Range(..) => {
                    (None, self.ranges.get(&subject).map(|range| range.limits.clone()).unwrap_or_default())
                }
            };
            let (name, _) = described(program, subject);
            result.abstractions.push(Abstracted { kind, name, stand_in, limits });
        }
    }
}

impl Context<'_> {
    fn forgotten(&self, local: LocalId) -> Option<ExternId> {
        self.abstractions.forgotten.get(&AbstractedPart::Variable(self.process?, local)).copied()
    }

    /// Whether the model forgets a variable.
    pub(super) fn is_forgotten(&self, local: LocalId) -> bool {
        self.forgotten(local).is_some()
    }

    fn forgotten_payload(&self, channel: ChannelId, number: usize) -> Option<ExternId> {
        self.abstractions.forgotten.get(&AbstractedPart::Payload(channel, number as u32)).copied()
    }
}

impl<'p> Builder<'_, '_, 'p> {
    /// An arbitrary value for a forgotten variable that is not read by a wait.
    pub(super) fn forgotten_value(&mut self, local: LocalId, span: Span) -> Option<Operand> {
        if self.is_in_region() {
            return None;
        }
        let function = self.context.forgotten(local)?;
        Some(self.any_value(function, self.local(local).ty, span))
    }

    fn any_value(&mut self, function: ExternId, ty: TypeId, span: Span) -> Operand {
        let call = |to| Op::CallExtern { function, arguments: Vec::new(), to };
        if self.context.in_register(ty) {
            return Operand::Value(self.define(ty, call(None), span));
        }
        let place = self.temporary(ty);
        self.effect(call(Some(place.clone())), Write::Initial, span);
        Operand::Place(place)
    }

    /// An arbitrary value for a part of a forgotten variable in memory.
    pub(super) fn forgotten_part(&mut self, local: LocalId, path: &[Projection], span: Span) -> Place {
        match self.forgotten_value(local, span) {
            Some(Operand::Place(place)) => Place { base: place.base, path: path.to_vec() },
            Some(Operand::Value(_)) | None => unreachable!("aggregates in memory are assigned outside of regions"),
        }
    }

    /// Emits the checks of the indices with which a part of a forgotten variable is assigned.
    pub(super) fn check_indices(&mut self, local: LocalId, path: &[Projection], span: Span) {
        let mut ty = self.local(local).ty;
        for step in path {
            match (step, self.context.types.get(ty)) {
                (Projection::Element(index), Type::Array { length, element }) => {
                    let (length, element) = (i128::from(*length), *element);
                    self.check_limits(*index, (0, length), Fault::Bounds, span);
                    ty = element;
                }
                (Projection::Field(field), Type::Record(id)) => {
                    let (_, part) = self.context.types.aggregate(*id).parts[*field as usize];
                    ty = part.expect("fields have a type");
                }
                _ => unreachable!("only arrays and records are assigned in part"),
            }
        }
    }

    /// Chooses values for the forgotten variables that a wait reads.
    pub(super) fn choose_before_waiting(&mut self, communicate: &'p hir::Communicate, span: Span) {
        let mut read: Vec<LocalId> = Vec::new();
        let context = &*self.context;
        let mut look = |expr: &Expr| {
            any(expr, &mut |part| {
                if let hir::ExprKind::Local(local) = &part.kind
                    && context.forgotten(*local).is_some()
                    && !read.contains(local)
                {
                    read.push(*local);
                }
                false
            });
        };
        for branch in &communicate.branches {
            branch.guard.iter().filter(|guard| context.has_free(guard)).for_each(&mut look);
            match &branch.operation {
                hir::Operation::In(_, _, patterns) => {
                    patterns.iter().for_each(|pattern| conditions(pattern, &mut look));
                }
                hir::Operation::Out(_, _, message) => match communicate.form {
                    hir::CommunicateForm::Plain => {}
                    hir::CommunicateForm::Alt | hir::CommunicateForm::PriAlt => message.iter().for_each(&mut look),
                },
                hir::Operation::After(..) | hir::Operation::Until(_) => {}
            }
        }
        for local in read {
            let chosen = self.forgotten_value(local, span);
            match (chosen, self.storage(local)) {
                (Some(Operand::Value(value)), _) => self.write(local, value),
                (Some(Operand::Place(from)), Storage::Slot(slot)) => {
                    self.begin(slot);
                    let to = Place { base: Base::Slot(slot), path: Vec::new() };
                    self.effect(Op::Copy { to, from }, Write::Initial, span);
                }
                (Some(Operand::Place(_)), Storage::Ssa) | (None, _) => {}
            }
        }
    }

    /// Values for the forgotten parts of a message, in order.
    pub(super) fn forgotten_payloads(&mut self, channel: ChannelId, message: &[Expr]) -> Vec<Operand> {
        let mut chosen = Vec::new();
        for (number, expr) in message.iter().enumerate() {
            if let Some(function) = self.context.forgotten_payload(channel, number) {
                chosen.push(self.any_value(function, expr.ty, expr.span));
            }
        }
        chosen
    }

    /// Replaces the computed values by them.
    pub(super) fn forget_payloads(&self, channel: ChannelId, operands: &mut [Operand], chosen: Vec<Operand>) {
        let mut chosen = chosen.into_iter();
        for (number, operand) in operands.iter_mut().enumerate() {
            if self.context.forgotten_payload(channel, number).is_some()
                && let Some(other) = chosen.next()
            {
                *operand = other;
            }
        }
    }

    /// Emits the check of an assigned value against the range of its variable, if it has one.
    pub(super) fn check_variable_range(&mut self, local: LocalId, value: Value, span: Span) {
        if let Some(process) = self.context.process {
            self.check_range(AbstractedPart::Variable(process, local), value, span);
        }
    }

    /// Emits the check of a part of a message against its range, if it has one.
    pub(super) fn check_payload_range(&mut self, channel: ChannelId, number: usize, operand: &Operand, span: Span) {
        if let Operand::Value(value) = operand {
            self.check_range(AbstractedPart::Payload(channel, number as u32), *value, span);
        }
    }

    fn check_range(&mut self, subject: AbstractedPart, value: Value, span: Span) {
        if !self.context.abstractions.ranges.contains_key(&subject) {
            return;
        }
        let location = self.context.location(span);
        let Some(range) = self.context.abstractions.ranges.get_mut(&subject) else { return };
        if !range.limits.contains(&location) {
            range.limits.push(location);
        }
        let limits = (range.from, range.to);
        self.check_limits(value, limits, Fault::Range, span);
    }

    /// Emits a fault for integers below the first limit, and from the second on.
    fn check_limits(&mut self, value: Value, (from, to): (i128, i128), fault: Fault, span: Span) {
        let Type::Int(int) = *self.context.types.get(self.body.values[value.0 as usize].ty) else { return };
        if from > int.min() {
            self.fault_unless((value, int), (BinaryOp::GreaterEqual, from), fault, span);
        }
        if to <= int.max() {
            self.fault_unless((value, int), (BinaryOp::Less, to), fault, span);
        }
    }

    fn fault_unless(
        &mut self,
        (value, int): (Value, IntType),
        (operator, bound): (BinaryOp, i128),
        fault: Fault,
        span: Span,
    ) {
        let ty = self.body.values[value.0 as usize].ty;
        let holds = if (int.min()..=int.max()).contains(&bound) {
            let bound = self.define(ty, Op::Constant(bound), span);
            self.define(TypeTable::BOOL, Op::Binary(operator, value, bound), span)
        } else {
            // No value of the type is outside the range.
            self.define(TypeTable::BOOL, Op::Constant(0), span)
        };
        let (within, beyond) = (self.block(), self.block());
        self.branch(holds, within, beyond, span);
        self.enter(beyond);
        self.end(Terminator::Fault(fault), span);
        self.enter(within);
    }
}

/// The conditions of a pattern.
fn conditions(pattern: &hir::Pattern, visit: &mut impl FnMut(&Expr)) {
    match &pattern.kind {
        PatternKind::Tag(_, payload) => payload.iter().for_each(|payload| conditions(payload, visit)),
        PatternKind::Record(parts) | PatternKind::Array(parts) => {
            parts.iter().for_each(|part| conditions(part, visit));
        }
        PatternKind::Any
        | PatternKind::Declare(_)
        | PatternKind::Assign(_)
        | PatternKind::Constant(_)
        | PatternKind::Bytes(_)
        | PatternKind::OwnId
        | PatternKind::Among(_)
        | PatternKind::Either(_)
        | PatternKind::Equal(_) => {}
    }
    if let Some(condition) = &pattern.condition {
        visit(condition);
    }
}
