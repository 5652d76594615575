//! Visitors of checked statements and expressions: a pass over all nodes of one kind is independent of the other forms.

use crate::hir::{
    Argument, Branch, Communicate, Expr, ExprKind, Operation, Pattern, PatternKind, Place, PlaceStep, Stmt, StmtKind,
};

/// The statements directly inside a statement, block by block.
pub(super) fn blocks(stmt: &Stmt) -> Vec<&[Stmt]> {
    match &stmt.kind {
        StmtKind::Block(body) | StmtKind::Inline(body) | StmtKind::While(_, body) | StmtKind::For(_, _, _, body) => {
            vec![body]
        }
        StmtKind::If(_, then, otherwise) => vec![then, otherwise],
        StmtKind::Match(_, arms) => arms.iter().map(|(_, body)| body.as_slice()).collect(),
        StmtKind::Communicate(communicate) => {
            let bodies = communicate.branches.iter().map(|branch| branch.body.as_slice());
            bodies.chain(communicate.otherwise.as_deref()).collect()
        }
        StmtKind::Label(_)
        | StmtKind::Declare(_)
        | StmtKind::Break(_)
        | StmtKind::Continue(_)
        | StmtKind::Leave
        | StmtKind::Yield
        | StmtKind::Return(_)
        | StmtKind::Exit(_)
        | StmtKind::Assert(_)
        | StmtKind::Call(..)
        | StmtKind::CallFn(..)
        | StmtKind::Link(_)
        | StmtKind::Unlink(_)
        | StmtKind::Assign(..)
        | StmtKind::Update { .. } => Vec::new(),
    }
}

/// Every statement, each before what is inside it.
pub(super) fn statements<'s>(body: &'s [Stmt], visit: &mut impl FnMut(&'s Stmt)) {
    for stmt in body {
        visit(stmt);
        for block in blocks(stmt) {
            statements(block, visit);
        }
    }
}

/// Every channel operation and `alt`.
pub(super) fn communications<'s>(body: &'s [Stmt], visit: &mut impl FnMut(&'s Communicate)) {
    statements(body, &mut |stmt| {
        if let StmtKind::Communicate(communicate) = &stmt.kind {
            visit(communicate);
        }
    });
}

/// The expressions of a statement itself, in order of evaluation as far as there is one.
pub(super) fn expressions<'s>(stmt: &'s Stmt, visit: &mut impl FnMut(&'s Expr)) {
    match &stmt.kind {
        StmtKind::If(expr, ..)
        | StmtKind::While(Some(expr), _)
        | StmtKind::Return(expr)
        | StmtKind::Exit(expr)
        | StmtKind::Assert(expr) => visit(expr),
        StmtKind::For(_, from, to, _) => {
            visit(from);
            visit(to);
        }
        StmtKind::Match(value, arms) => {
            visit(value);
            arms.iter().for_each(|(pattern, _)| pattern_expressions(pattern, visit));
        }
        StmtKind::Communicate(communicate) => {
            communicate.branches.iter().for_each(|branch| branch_expressions(branch, visit));
        }
        StmtKind::Call(_, arguments) => arguments.iter().for_each(|argument| argument_expressions(argument, visit)),
        StmtKind::CallFn(_, arguments) => arguments.iter().for_each(visit),
        StmtKind::Assign(place, value) => {
            visit(value);
            place_expressions(place, visit);
        }
        StmtKind::Update { place, value, .. } => {
            visit(value);
            place_expressions(place, visit);
        }
        StmtKind::Label(_)
        | StmtKind::Declare(_)
        | StmtKind::Block(_)
        | StmtKind::Inline(_)
        | StmtKind::Leave
        | StmtKind::While(None, _)
        | StmtKind::Break(_)
        | StmtKind::Continue(_)
        | StmtKind::Yield
        | StmtKind::Link(_)
        | StmtKind::Unlink(_) => {}
    }
}

/// The expressions of a branch without its body.
pub(super) fn branch_expressions<'s>(branch: &'s Branch, visit: &mut impl FnMut(&'s Expr)) {
    branch.guard.iter().for_each(&mut *visit);
    match &branch.operation {
        Operation::In(_, _, patterns) => patterns.iter().for_each(|pattern| pattern_expressions(pattern, visit)),
        Operation::Out(_, _, values) => values.iter().for_each(visit),
        Operation::After(duration, _) => visit(duration),
        Operation::Until(time) => visit(time),
    }
}

/// The expressions of a pattern.
pub(super) fn pattern_expressions<'s>(pattern: &'s Pattern, visit: &mut impl FnMut(&'s Expr)) {
    match &pattern.kind {
        PatternKind::Equal(expr) => visit(expr),
        PatternKind::Assign(place) => place_expressions(place, visit),
        PatternKind::Tag(_, payload) => payload.iter().for_each(|payload| pattern_expressions(payload, visit)),
        PatternKind::Record(parts) | PatternKind::Array(parts) => {
            parts.iter().for_each(|part| pattern_expressions(part, visit));
        }
        PatternKind::Any
        | PatternKind::Declare(_)
        | PatternKind::Constant(_)
        | PatternKind::Bytes(_)
        | PatternKind::OwnId
        | PatternKind::Among(_)
        | PatternKind::Either(_) => {}
    }
    pattern.condition.iter().for_each(|condition| visit(condition));
}

/// The indices of a place.
pub(super) fn place_expressions<'s>(place: &'s Place, visit: &mut impl FnMut(&'s Expr)) {
    for step in &place.path {
        match step {
            PlaceStep::Index(expr)
            | PlaceStep::Number { offset: expr, .. }
            | PlaceStep::LayoutField { offset: expr, .. } => visit(expr),
            PlaceStep::Slice(from, to) => from.iter().chain(to).for_each(|end| visit(end)),
            PlaceStep::Content | PlaceStep::Field(_) | PlaceStep::Length => {}
        }
    }
}

fn argument_expressions<'s>(argument: &'s Argument, visit: &mut impl FnMut(&'s Expr)) {
    match argument {
        Argument::Value(expr) => visit(expr),
        Argument::Mutable(place) => place_expressions(place, visit),
    }
}

/// The operands of an expression.
pub(super) fn operands<'s>(expr: &'s Expr, visit: &mut impl FnMut(&'s Expr)) {
    match &expr.kind {
        ExprKind::Constant(_)
        | ExprKind::Bytes(_)
        | ExprKind::Stored(_)
        | ExprKind::Local(_)
        | ExprKind::OwnId
        | ExprKind::Now
        | ExprKind::FreeObjects(_) => {}
        ExprKind::Record(fields) => fields.iter().for_each(|(_, value)| visit(value)),
        ExprKind::Array(elements) => elements.iter().for_each(visit),
        ExprKind::Union(_, payload) => payload.iter().for_each(|payload| visit(payload)),
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
        | ExprKind::ReplicaNumber(inner) => visit(inner),
        ExprKind::Index(left, right)
        | ExprKind::Concatenate(left, right)
        | ExprKind::Binary(_, left, right)
        | ExprKind::Saturating(_, left, right) => {
            visit(left);
            visit(right);
        }
        ExprKind::Number { base, offset, .. } | ExprKind::LayoutField { base, offset, .. } => {
            visit(base);
            visit(offset);
        }
        ExprKind::Slice(base, from, to) => {
            visit(base);
            from.iter().chain(to).for_each(|end| visit(end));
        }
        ExprKind::Conditional(condition, left, right) => {
            visit(condition);
            visit(left);
            visit(right);
        }
        ExprKind::CallFn(_, arguments) => arguments.iter().for_each(visit),
        ExprKind::CallExtern(_, arguments) => {
            arguments.iter().for_each(|argument| argument_expressions(argument, visit));
        }
    }
}

/// An expression and everything in it, outermost first.
pub(super) fn nested<'s>(expr: &'s Expr, visit: &mut dyn FnMut(&'s Expr)) {
    visit(expr);
    operands(expr, &mut |operand| nested(operand, visit));
}
