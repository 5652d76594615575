//! Lowering of statements, except communication (`communicate`) and `match` (`choice`).

use crate::builder::{Builder, Loop, Storage, Write};
use crate::expression::{Target, mentions, step};
use crate::operator::binary_op;
use quaject_esp_ir::ir::{Base, BinaryOp, Fault, Op, Operand, Place, Projection, Terminator, TypeId, TypeTable};
use quaject_esp_syntax::hir::{self, Argument, BinaryOperator, ControlPoint, Expr, ExprKind, LocalId, Stmt, StmtKind};
use quaject_esp_syntax::span::Span;

impl<'p> Builder<'_, '_, 'p> {
    /// Lowers statements in order, up to the first that cannot be reached.
    pub(super) fn statements(&mut self, statements: &'p [Stmt]) {
        for statement in statements {
            if !self.is_reachable() || self.context.is_too_large {
                return;
            }
            self.statement(statement);
        }
    }

    fn statement(&mut self, statement: &'p Stmt) {
        let span = statement.span;
        match &statement.kind {
            StmtKind::Label(label) => {
                self.predicates(ControlPoint::Label(*label));
                self.effect(Op::Mark(*label), Write::Initial, span);
            }
            StmtKind::Declare(_) => {}
            StmtKind::Block(statements) => self.statements(statements),
            StmtKind::Inline(statements) => {
                let exit = self.block();
                self.expansions.push(exit);
                self.statements(statements);
                self.expansions.pop();
                self.jump_to_join(exit, statements, span);
                self.enter(exit);
            }
            StmtKind::Leave => {
                let exit = *self.expansions.last().expect("`return` is in an expansion");
                self.jump(exit, span);
            }
            StmtKind::If(condition, yes, no) => {
                let (then, otherwise, join) = (self.block(), self.block(), self.block());
                self.test(condition, then, otherwise);
                for (block, statements) in [(then, yes), (otherwise, no)] {
                    self.enter(block);
                    self.statements(statements);
                    self.jump_to_join(join, statements, span);
                }
                self.enter(join);
            }
            StmtKind::While(condition, body) => self.while_loop(condition.as_ref(), body, span),
            StmtKind::For(local, start, end, body) => self.for_loop(*local, start, end, body, span),
            StmtKind::Match(scrutinee, arms) => self.choose(scrutinee, arms, span),
            StmtKind::Break(between) => {
                let exit = self.loops.iter().nth_back(*between as usize).expect("`break` is in this loop").exit;
                self.jump(exit, span);
            }
            StmtKind::Continue(between) => {
                let next = self.loops.iter().nth_back(*between as usize).expect("`continue` is in this loop").next;
                self.jump(next, span);
            }
            StmtKind::Yield => {
                let next = self.block();
                let edge = self.edge_to(next);
                self.end(Terminator::Yield(edge), span);
                self.enter(next);
            }
            StmtKind::Return(value) => {
                let operand = match self.operand(value) {
                    Operand::Value(value) => Operand::Value(value),
                    Operand::Place(place) => Operand::Place(self.place_with_own_counts(place, value.ty, span)),
                };
                self.end(Terminator::Return(operand), span);
            }
            StmtKind::Exit(status) => {
                let status = self.value(status);
                self.end(Terminator::Exit(status), span);
            }
            StmtKind::Assert(condition) => {
                let (holds, fails) = (self.block(), self.block());
                self.test(condition, holds, fails);
                self.enter(fails);
                if self.is_reachable() {
                    self.end(Terminator::Fault(Fault::Assert), span);
                }
                self.enter(holds);
            }
            StmtKind::Communicate(communicate) => self.communicate(communicate, span),
            StmtKind::Call(function, arguments) => self.call_extern(*function, arguments, span),
            StmtKind::CallFn(function, arguments) => self.call_function(*function, arguments, span),
            StmtKind::Link(local) => {
                let value = self.read(*local);
                self.effect(Op::Retain(Operand::Value(value)), Write::Initial, span);
            }
            StmtKind::Unlink(local) => {
                let value = self.read(*local);
                self.effect(Op::Release(Operand::Value(value)), Write::Initial, span);
            }
            StmtKind::Assign(place, value) => self.assign(place, value, span),
            StmtKind::Update { place, operator, value, ty } => self.update(place, *operator, value, *ty, span),
        }
    }

    /// Calls an extern function and drops its result.
    fn call_extern(&mut self, function: hir::ExternId, arguments: &[Argument], span: Span) {
        let (arguments, after) = self.extern_arguments(arguments);
        match self.context.program.externs[function.0 as usize].result {
            None => self.effect(Op::CallExtern { function, arguments, to: None }, Write::Initial, span),
            Some(ty) if self.context.in_register(ty) => {
                self.define(ty, Op::CallExtern { function, arguments, to: None }, span);
            }
            Some(ty) => {
                let to = Some(self.temporary(ty));
                self.effect(Op::CallExtern { function, arguments, to }, Write::Initial, span);
            }
        }
        self.write_back(after, span);
    }

    /// Calls a function of the program and drops its result.
    fn call_function(&mut self, function: hir::FnId, arguments: &[Expr], span: Span) {
        let ty = self.context.program.functions[function.0 as usize].result;
        let arguments = self.arguments(arguments, ty);
        if self.context.in_register(ty) {
            self.define(ty, Op::CallFunction { function, arguments, to: None }, span);
        } else {
            let to = Some(self.temporary(ty));
            self.effect(Op::CallFunction { function, arguments, to }, Write::Initial, span);
        }
    }

    /// Jumps to the join of several paths if this one is reachable. The jump has the location of its last statement.
    pub(super) fn jump_to_join(&mut self, join: quaject_esp_ir::ir::BlockId, statements: &[Stmt], span: Span) {
        if self.is_reachable() {
            self.jump(join, statements.last().map_or(span, |last| last.span));
        }
    }

    fn while_loop(&mut self, condition: Option<&Expr>, body: &'p [Stmt], span: Span) {
        let (header, exit) = (self.block(), self.block());
        self.jump(header, span);
        self.enter_open(header);
        match condition {
            Some(condition) if !is_true(condition) => {
                let inside = self.block();
                self.test(condition, inside, exit);
                self.enter(inside);
            }
            Some(_) | None => {}
        }
        self.loops.push(Loop { next: header, exit });
        self.statements(body);
        self.loops.pop();
        self.jump_to_join(header, body, span);
        self.seal(header);
        self.enter(exit);
    }

    fn for_loop(&mut self, local: LocalId, start: &Expr, end: &Expr, body: &'p [Stmt], span: Span) {
        let ty = self.local(local).ty;
        let start = self.value(start);
        let end = self.value(end);
        let (header, inside, next, exit) = (self.block(), self.block(), self.block(), self.block());
        let counter = self.parameter(header, ty);
        self.jump_with(header, vec![start], span);
        self.enter_open(header);
        self.write(local, counter);
        let goes_on = self.define(TypeTable::BOOL, Op::Binary(BinaryOp::Less, counter, end), span);
        self.branch(goes_on, inside, exit, span);
        self.enter(inside);
        self.check_variable_range(local, counter, span);
        self.loops.push(Loop { next, exit });
        self.statements(body);
        self.loops.pop();
        self.jump_to_join(next, body, span);
        self.enter(next);
        if self.is_reachable() {
            let one = self.define(ty, Op::Constant(1), span);
            let following = self.define(ty, Op::Binary(BinaryOp::Add, counter, one), span);
            self.jump_with(header, vec![following], span);
        }
        self.seal(header);
        self.enter(exit);
    }

    fn assign(&mut self, place: &'p hir::Place, value: &'p Expr, span: Span) {
        if place.path.is_empty() {
            match self.storage(place.base) {
                Storage::Ssa => {
                    let chosen = self.forgotten_quotient(place.base, value);
                    let mut result = chosen.unwrap_or_else(|| self.value(value));
                    if self.is_mutable_object(place.base) && !is_fresh(value) {
                        result = self.thaw(result, span);
                    }
                    self.check_variable_range(place.base, result, span);
                    self.write(place.base, result);
                }
                Storage::Slot(_) if is_local(value, place.base) => {}
                Storage::Slot(_) if self.context.is_forgotten(place.base) => {
                    self.operand(value);
                }
                Storage::Slot(slot) => {
                    let to = Place { base: Base::Slot(slot), path: Vec::new() };
                    if mentions(value, place.base) {
                        let from = self.copied(value);
                        self.begin(slot);
                        self.effect(Op::Copy { to, from }, Write::Initial, span);
                    } else {
                        self.begin(slot);
                        self.build(value, to);
                    }
                }
            }
            return;
        }
        let operand = self.operand(value);
        let target = self.target(place);
        self.store(target, operand, place.span);
    }

    fn update(&mut self, place: &hir::Place, operator: BinaryOperator, value: &Expr, ty: TypeId, span: Span) {
        if !self.context.types.is_scalar(place.ty) {
            let from =
                if self.context.types.is_scalar(value.ty) { self.byte(value, ty, span) } else { self.place(value) };
            let to = match self.target(place) {
                Target::Variable(local) => match self.storage(local) {
                    Storage::Slot(slot) => Place { base: Base::Slot(slot), path: Vec::new() },
                    Storage::Ssa => super::builder::object(self.read(local)),
                },
                Target::Memory(to) => to,
                Target::Forgotten(..)
                | Target::Length(_)
                | Target::Slice(..)
                | Target::Number(..)
                | Target::Bits(..) => {
                    unreachable!("only whole bytes are appended to, which are not forgotten")
                }
            };
            self.effect(Op::Append { to, from }, Write::Update, span);
            return;
        }
        let value = self.value(value);
        let target = self.target(place);
        let old = self.load(&target, place.ty, place.span);
        let old = self.convert(old, ty, span);
        let new = if self.context.is_clock(ty) {
            self.saturating(operator, old, value, ty, span)
        } else {
            self.define(ty, Op::Binary(binary_op(operator), old, value), span)
        };
        let new = self.convert(new, place.ty, span);
        self.store(target, Operand::Value(new), place.span);
    }

    /// A byte as `bytes` of one, of type `ty`.
    fn byte(&mut self, value: &Expr, ty: TypeId, span: Span) -> Place {
        let place = self.temporary(ty);
        if let ExprKind::Constant(byte) = value.kind {
            self.effect(Op::SetBytes(place.clone(), vec![byte as u8]), Write::Initial, span);
            return place;
        }
        let byte = self.value(value);
        self.effect(Op::SetBytes(place.clone(), vec![0]), Write::Initial, span);
        let first = self.define(TypeTable::I32, Op::Constant(0), span);
        self.effect(Op::Store(step(&place, Projection::Element(first)), byte), Write::Update, span);
        place
    }
}

fn is_true(condition: &Expr) -> bool {
    match &condition.kind {
        ExprKind::Constant(constant) => *constant != 0,
        ExprKind::Test(inner) => is_true(inner),
        _other => false,
    }
}

fn is_local(expr: &Expr, local: LocalId) -> bool {
    match &expr.kind {
        ExprKind::Local(other) => *other == local,
        _other => false,
    }
}

/// Whether a boxed value is a new object without other references.
fn is_fresh(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Box(_) | ExprKind::Thaw(_) | ExprKind::CallExtern(..) => true,
        _other => false,
    }
}
