//! Lowering of `in`, `out` and `alt`: what is computed on arrival, the regions evaluated while the instance waits, and
//! the binds of a branch. The assignments of a pattern are ordinary code at the head of its `then` block.

use crate::alternatives::{self, Integers, Ways};
use crate::builder::{Builder, RegionKind, Storage, Write};
use crate::expression::{any, step};
use crate::operator::passed;
use quaject_esp_ir::ir::{
    AltOrder, Base, Bind, BlockId, Blocking, Branch, ChannelId, Guard, Op, Operand, Operation, Passed, Pattern,
    Payload, Place, Projection, SlotId, Terminator, TimeUnit, TypeId, TypeTable, Wait,
};
use quaject_esp_ir::model::UndecidedKind;
use quaject_esp_syntax::hir::{self, CommunicateForm, ControlPoint, Expr, ExprKind, LocalId, PatternKind};
use quaject_esp_syntax::span::Span;

/// The binds of a pattern, in order of text.
struct Bound<'p> {
    bind: Bind,
    ty: TypeId,
    target: BoundTarget<'p>,
    span: Span,
}

enum BoundTarget<'p> {
    Declare(LocalId),
    Assign(&'p hir::Place),
    /// A value that only the condition reads.
    Test,
}

/// What has to hold of the values bound.
enum Condition<'p> {
    /// `if e`
    Expr(&'p Expr),
    /// The value bound by this number is in one of the ranges.
    Among(usize, &'p [(i128, i128)]),
}

/// What a branch of a wait leads to: its target, and what is bound there.
type Continuation<'p> = (BlockId, Vec<Bound<'p>>);

/// The values computed on arrival, per branch.
struct Arrival {
    guard: Option<Guard>,
    operands: Vec<Operand>,
}

impl<'p> Builder<'_, '_, 'p> {
    /// `in`, `out`, `alt`, `pri alt`
    pub(super) fn communicate(&mut self, communicate: &'p hir::Communicate, span: Span) {
        for branch in &communicate.branches {
            match &branch.operation {
                hir::Operation::Out(site, ..) => self.predicates(ControlPoint::Site(*site)),
                hir::Operation::In(..) | hir::Operation::After(..) | hir::Operation::Until(_) => {}
            }
        }
        self.choose_before_waiting(communicate, span);
        let arrivals: Vec<Arrival> =
            communicate.branches.iter().map(|branch| self.arrive(communicate.form, branch)).collect();
        let waiting = self.here();
        let mut branches = Vec::with_capacity(communicate.branches.len());
        let mut bodies = Vec::new();
        for (branch, arrival) in communicate.branches.iter().zip(arrivals) {
            let Ways { ways, integers } = match &branch.operation {
                hir::Operation::In(_, _, patterns) => alternatives::ways(patterns),
                hir::Operation::Out(..) | hir::Operation::After(..) | hir::Operation::Until(_) => {
                    Ways { ways: vec![Vec::new()], integers: Integers::Tested }
                }
            };
            let location = self.context.location(branch.span);
            let mut targets: Vec<Continuation> = Vec::with_capacity(ways.len());
            for way in ways {
                let then = self.follower(waiting);
                let guard = match (arrival.guard, &branch.guard) {
                    (Some(guard), _) => guard,
                    (None, Some(guard)) => Guard::Region(self.guard_region(guard)),
                    (None, None) => Guard::Open,
                };
                let operands = arrival.operands.clone();
                let (operation, bound) = self.operation(communicate.form, branch, operands, then, (way, integers));
                branches.push(Branch { guard, operation, then, location });
                targets.push((then, bound));
            }
            bodies.push((targets, branch));
        }
        let otherwise = communicate.otherwise.as_ref().map(|_| self.follower(waiting));
        let order = match communicate.form {
            CommunicateForm::Plain | CommunicateForm::Alt => AltOrder::Fair,
            CommunicateForm::PriAlt => AltOrder::Priority,
        };
        let blocking = if communicate.idle { Blocking::MayBlockForever } else { Blocking::Deadlock };
        let observed = self.observed();
        self.end(Terminator::Wait(Wait { order, blocking, branches, otherwise, observed, members: Vec::new() }), span);
        // A single continuation needs no join.
        let join = (bodies.len() + usize::from(otherwise.is_some()) > 1).then(|| self.block());
        for (targets, branch) in bodies {
            self.take_any(targets, branch.span);
            match &branch.operation {
                hir::Operation::In(site, ..) => self.predicates(ControlPoint::Site(*site)),
                hir::Operation::Out(..) | hir::Operation::After(..) | hir::Operation::Until(_) => {}
            }
            self.statements(&branch.body);
            join.iter().for_each(|join| self.jump_to_join(*join, &branch.body, branch.span));
        }
        if let (Some(block), Some(statements)) = (otherwise, &communicate.otherwise) {
            self.enter(block);
            self.statements(statements);
            join.iter().for_each(|join| self.jump_to_join(*join, statements, span));
        }
        join.iter().for_each(|join| self.enter(*join));
    }

    /// Guard, then, if the branch is open, the operands of `==`, a duration, or a plain message.
    fn arrive(&mut self, form: CommunicateForm, branch: &'p hir::Branch) -> Arrival {
        let guard = match &branch.guard {
            None => Some(Guard::Open),
            Some(guard) if self.context.has_free(guard) => None,
            Some(guard) => Some(Guard::Value(self.value(guard))),
        };
        let wanted: Vec<&'p Expr> = match &branch.operation {
            hir::Operation::In(_, _, patterns) => {
                let mut wanted = Vec::new();
                patterns.iter().for_each(|pattern| equal_operands(pattern, &mut wanted));
                wanted
            }
            hir::Operation::Out(_, channel, message) => {
                if form != CommunicateForm::Plain {
                    return Arrival { guard, operands: self.forgotten_payloads(*channel, message) };
                }
                let mut operands = self.message(*channel, message);
                let chosen = self.forgotten_payloads(*channel, message);
                self.forget_payloads(*channel, &mut operands, chosen);
                return Arrival { guard, operands };
            }
            hir::Operation::After(amount, _) | hir::Operation::Until(amount) => vec![amount],
        };
        let operands = match guard {
            Some(Guard::Value(condition)) if !wanted.iter().all(|expr| is_simple(expr)) => {
                self.if_open(condition, &wanted, branch.span)
            }
            // A guard with `free` can open later, when operands can no longer be evaluated.
            Some(Guard::Value(_) | Guard::Open | Guard::Region(_)) | None => {
                wanted.into_iter().map(|expr| self.stable_operand(expr)).collect()
            }
        };
        Arrival { guard, operands }
    }

    /// An operand that does not change while the instance waits.
    fn stable_operand(&mut self, expr: &Expr) -> Operand {
        let operand = self.operand(expr);
        self.stable_while_waiting(operand, expr.ty, expr.span)
    }

    /// Evaluates operands only if a guard holds. They are not read otherwise, but counted ones need a defined value.
    fn if_open(&mut self, condition: quaject_esp_ir::ir::Value, wanted: &[&'p Expr], span: Span) -> Vec<Operand> {
        let (open, closed, join) = (self.block(), self.block(), self.block());
        let mut operands = Vec::new();
        let mut parameters = Vec::new();
        self.branch(condition, open, closed, span);
        self.enter(open);
        for expr in wanted {
            if self.context.types.is_scalar(expr.ty) {
                let value = self.value(expr);
                parameters.push((value, expr));
                operands.push(Operand::Value(self.parameter(join, expr.ty)));
            } else {
                let holder_type = self.context.optional(expr.ty);
                let holder = self.temporary(holder_type);
                self.effect(Op::SetTag(holder.clone(), 1), Write::Initial, span);
                let place = step(&holder, Projection::Payload(1));
                self.build(expr, place.clone());
                operands.push(Operand::Place(place));
            }
        }
        self.jump_with(join, parameters.iter().map(|(value, _)| *value).collect(), span);
        self.enter(closed);
        for operand in &operands {
            match operand {
                Operand::Value(_) => {}
                Operand::Place(place) => match place.base {
                    Base::Slot(slot) => {
                        self.begin(slot);
                        let holder = Place { base: Base::Slot(slot), path: Vec::new() };
                        self.effect(Op::SetTag(holder, 0), Write::Initial, span);
                    }
                    Base::Object(_) | Base::Constant(..) => unreachable!("holders are slots"),
                },
            }
        }
        let unused = parameters.iter().map(|(_, expr)| self.define(expr.ty, Op::Constant(0), span)).collect();
        self.jump_with(join, unused, span);
        self.enter(join);
        operands
    }

    fn guard_region(&mut self, guard: &'p Expr) -> BlockId {
        self.in_region(RegionKind::Guard, |builder, _| {
            let value = builder.value(guard);
            builder.end(Terminator::Result(vec![passed(Operand::Value(value))]), guard.span);
        })
    }

    fn operation(
        &mut self,
        form: CommunicateForm,
        branch: &'p hir::Branch,
        operands: Vec<Operand>,
        then: BlockId,
        (way, integers): (Vec<u32>, Integers),
    ) -> (Operation, Vec<Bound<'p>>) {
        match &branch.operation {
            hir::Operation::In(site, channel, patterns) => {
                let mut reader = PatternReader {
                    operands: operands.into_iter(),
                    bound: Vec::new(),
                    tests: Vec::new(),
                    conditions: Vec::new(),
                    parameters: 0,
                    way: way.into_iter(),
                    integers,
                };
                let patterns = patterns.iter().map(|pattern| self.wait_pattern(pattern, &mut reader)).collect();
                let PatternReader { operands: _, bound, tests, conditions, parameters: _, way: _, integers: _ } =
                    reader;
                let conditions: Vec<Condition> = tests.into_iter().chain(conditions).collect();
                let condition = (!conditions.is_empty()).then(|| self.condition_region(&bound, &conditions));
                if let Some(region) = condition {
                    self.set_then(region, then);
                }
                (Operation::In { site: *site, channel: *channel, patterns, condition }, bound)
            }
            hir::Operation::Out(site, channel, message) => {
                let payload = if form == CommunicateForm::Plain {
                    Payload::Ready(operands.into_iter().map(passed).collect())
                } else {
                    let region = self.in_region(RegionKind::Payload, |builder, _| {
                        let mut values = builder.message(*channel, message);
                        builder.forget_payloads(*channel, &mut values, operands);
                        let values: Vec<Passed> = values.into_iter().map(passed).collect();
                        builder.end(Terminator::Result(values), branch.span);
                    });
                    self.set_then(region, then);
                    Payload::Region(region)
                };
                (Operation::Out { site: *site, channel: *channel, payload }, Vec::new())
            }
            hir::Operation::After(..) | hir::Operation::Until(_) => {
                let amount = match operands.first() {
                    Some(Operand::Value(value)) => *value,
                    Some(Operand::Place(_)) | None => unreachable!("times and durations are scalars"),
                };
                let unit = match &branch.operation {
                    hir::Operation::After(_, unit) => TimeUnit::Nanoseconds(unit.nanoseconds()),
                    _ => TimeUnit::Absolute,
                };
                (Operation::After { amount, unit }, Vec::new())
            }
        }
    }

    fn set_then(&mut self, entry: BlockId, then: BlockId) {
        let region = self.body.blocks[entry.0 as usize].region.expect("a region's entry lies in it");
        self.body.regions[region].then = Some(then);
    }

    /// Evaluates a message. It is read while the instance waits, so variables need no copy.
    fn message(&mut self, channel: ChannelId, message: &'p [Expr]) -> Vec<Operand> {
        let mut operands = self.arguments(message, TypeTable::ERROR);
        for (number, (operand, expr)) in operands.iter_mut().zip(message).enumerate() {
            self.check_payload_range(channel, number, operand, expr.span);
            *operand = self.stable_while_waiting(operand.clone(), expr.ty, expr.span);
        }
        operands
    }

    fn condition_region(&mut self, bound: &[Bound<'p>], conditions: &[Condition<'p>]) -> BlockId {
        self.in_region(RegionKind::Condition, |builder, entry| {
            let values = builder.bind_parameters(entry, bound);
            let (last, first) = conditions.split_last().expect("there is a condition");
            let fails = builder.block();
            for condition in first {
                let holds = builder.block();
                builder.test_condition(condition, bound, &values, holds, fails);
                builder.enter(holds);
            }
            let span = match last {
                Condition::Expr(last) => {
                    let value = builder.value(last);
                    builder.end(Terminator::Result(vec![passed(Operand::Value(value))]), last.span);
                    last.span
                }
                Condition::Among(number, _) => {
                    let (holds, span) = (builder.block(), bound[*number].span);
                    builder.test_condition(last, bound, &values, holds, fails);
                    builder.enter(holds);
                    let value = builder.define(TypeTable::BOOL, Op::Constant(1), span);
                    builder.end(Terminator::Result(vec![passed(Operand::Value(value))]), span);
                    span
                }
            };
            builder.enter(fails);
            if builder.is_reachable() {
                let value = builder.define(TypeTable::BOOL, Op::Constant(0), span);
                builder.end(Terminator::Result(vec![passed(Operand::Value(value))]), span);
            }
        })
    }

    fn test_condition(
        &mut self,
        condition: &Condition<'p>,
        bound: &[Bound<'p>],
        values: &[Operand],
        holds: BlockId,
        fails: BlockId,
    ) {
        match condition {
            Condition::Expr(expr) => self.test(expr, holds, fails),
            Condition::Among(number, ranges) => {
                let Bound { ty, span, .. } = bound[*number];
                let Operand::Value(value) = values[*number] else { unreachable!("integers are held in registers") };
                self.test_ranges((value, ty), ranges, holds, fails, span);
            }
        }
    }

    /// The block's parameters for what is bound; `$` names get their values.
    fn bind_parameters(&mut self, block: BlockId, bound: &[Bound<'p>]) -> Vec<Operand> {
        let mut values = Vec::new();
        for Bound { bind, ty, target, span: _ } in bound {
            let operand = match bind {
                Bind::Parameter(_) => Operand::Value(self.parameter(block, *ty)),
                Bind::Slot(slot) => Operand::Place(slot_place(*slot)),
            };
            match (target, &operand) {
                (BoundTarget::Declare(local), Operand::Value(value)) => self.write(*local, *value),
                (BoundTarget::Declare(_), Operand::Place(_)) | (BoundTarget::Assign(_) | BoundTarget::Test, _) => {}
            }
            values.push(operand);
        }
        values
    }

    /// At the head of `then`: what was bound arrives, then assignments are made from left to right.
    fn take(&mut self, then: BlockId, bound: Vec<Bound<'p>>) {
        let values = self.bind_parameters(then, &bound);
        for (Bound { bind: _, ty, target, span }, value) in bound.into_iter().zip(values) {
            match target {
                BoundTarget::Declare(local) => {
                    if let Operand::Value(value) = value {
                        self.check_variable_range(local, value, span);
                    }
                }
                BoundTarget::Assign(place) => {
                    let value = self.coerce(value, ty, place.ty, span);
                    let target = self.target(place);
                    self.store(target, value, span);
                }
                BoundTarget::Test => {}
            }
        }
    }

    /// Continues with what follows an operation, whichever of its alternatives was taken.
    fn take_any(&mut self, mut targets: Vec<Continuation<'p>>, span: Span) {
        let joined = (targets.len() > 1).then(|| self.block());
        for (then, bound) in targets.drain(..) {
            self.enter(then);
            self.take(then, bound);
            joined.iter().for_each(|joined| self.jump(*joined, span));
        }
        joined.iter().for_each(|joined| self.enter(*joined));
    }

    fn wait_pattern(&mut self, pattern: &'p hir::Pattern, reader: &mut PatternReader<'p>) -> Pattern {
        let result = match &pattern.kind {
            PatternKind::Any => Pattern::Any,
            PatternKind::Declare(local) => {
                let slot = match self.storage(*local) {
                    Storage::Ssa => None,
                    Storage::Slot(slot) => Some(slot),
                };
                reader.bind(BoundTarget::Declare(*local), slot, pattern)
            }
            PatternKind::Assign(place) => {
                let slot = if self.context.in_register(pattern.ty) { None } else { Some(self.slot(pattern.ty, None)) };
                reader.bind(BoundTarget::Assign(place), slot, pattern)
            }
            PatternKind::Constant(constant) => Pattern::Constant(*constant),
            PatternKind::Among(ranges) => match reader.integers {
                Integers::Listed => {
                    let chosen = reader.choose();
                    let value = alternatives::values(ranges).nth(chosen);
                    Pattern::Constant(value.expect("a way numbers the values of the ranges"))
                }
                Integers::Tested => {
                    // What is static decides before any condition, which could fault.
                    reader.tests.push(Condition::Among(reader.bound.len(), ranges));
                    reader.bind(BoundTarget::Test, None, pattern)
                }
            },
            PatternKind::Either(alternatives) => {
                let chosen = reader.choose();
                self.wait_pattern(&alternatives[chosen], reader)
            }
            PatternKind::Bytes(bytes) => Pattern::Bytes(bytes.clone()),
            PatternKind::OwnId => Pattern::OwnId,
            PatternKind::Equal(_) => {
                if self.context.holds_abstract(pattern.ty) {
                    self.leave_undecided(UndecidedKind::Matching, pattern.span);
                }
                Pattern::Equal(reader.operands.next().expect("every `==` was evaluated on arrival"))
            }
            PatternKind::Tag(tag, payload) => {
                let payload = payload.as_ref().map(|payload| Box::new(self.wait_pattern(payload, reader)));
                Pattern::Tag(*tag, payload)
            }
            PatternKind::Record(parts) => {
                Pattern::Record(parts.iter().map(|part| self.wait_pattern(part, reader)).collect())
            }
            PatternKind::Array(parts) => {
                Pattern::Array(parts.iter().map(|part| self.wait_pattern(part, reader)).collect())
            }
        };
        reader.conditions.extend(pattern.condition.as_deref().map(Condition::Expr));
        result
    }
}

/// The state of a traversal of the patterns of an `in`.
struct PatternReader<'p> {
    operands: std::vec::IntoIter<Operand>,
    bound: Vec<Bound<'p>>,
    tests: Vec<Condition<'p>>,
    conditions: Vec<Condition<'p>>,
    parameters: u32,
    way: std::vec::IntoIter<u32>,
    integers: Integers,
}

impl<'p> PatternReader<'p> {
    /// The number of the alternative that this branch has at the next choice.
    fn choose(&mut self) -> usize {
        self.way.next().expect("a way has a number for each choice") as usize
    }

    fn bind(&mut self, target: BoundTarget<'p>, slot: Option<SlotId>, pattern: &hir::Pattern) -> Pattern {
        let bind = match slot {
            Some(slot) => Bind::Slot(slot),
            None => {
                self.parameters += 1;
                Bind::Parameter(self.parameters - 1)
            }
        };
        self.bound.push(Bound { bind, ty: pattern.ty, target, span: pattern.span });
        Pattern::Bind(bind)
    }
}

fn slot_place(slot: SlotId) -> Place {
    Place { base: Base::Slot(slot), path: Vec::new() }
}

/// The expressions after `==`, in order of text.
fn equal_operands<'p>(pattern: &'p hir::Pattern, wanted: &mut Vec<&'p Expr>) {
    match &pattern.kind {
        PatternKind::Any
        | PatternKind::Declare(_)
        | PatternKind::Assign(_)
        | PatternKind::Constant(_)
        | PatternKind::Bytes(_)
        | PatternKind::Among(_)
        | PatternKind::Either(_)
        | PatternKind::OwnId => {}
        PatternKind::Equal(expr) => wanted.push(expr),
        PatternKind::Tag(_, payload) => payload.iter().for_each(|payload| equal_operands(payload, wanted)),
        PatternKind::Record(parts) | PatternKind::Array(parts) => {
            parts.iter().for_each(|part| equal_operands(part, wanted));
        }
    }
}

/// Whether evaluation cannot fault, so that it is safe even if a guard is false.
fn is_simple(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Constant(_) | ExprKind::Local(_) | ExprKind::OwnId => true,
        ExprKind::Convert(inner) | ExprKind::WidenPid(inner) | ExprKind::Test(inner) | ExprKind::Length(inner) => {
            is_simple(inner)
        }
        _other => false,
    }
}

impl super::Context<'_> {
    /// Whether an expression evaluates `free(T)`, directly or in a function it calls.
    pub(super) fn has_free(&self, expr: &Expr) -> bool {
        any(expr, &mut |part| match &part.kind {
            ExprKind::FreeObjects(_) => true,
            ExprKind::CallFn(function, _) => self.free_functions[function.0 as usize],
            _other => false,
        })
    }
}
