//! Which extern functions, and which values of messages, influence control: those that can reach a condition, a
//! pattern, an index or arithmetic that can fault (for E0801, and for the values that the checker enumerates). A value
//! that only goes out to the environment does not. Backward reachability in a data-flow graph of the whole program, as
//! for a cone of influence; insensitive to control flow and to the parts of a variable.

use super::names::Checker;
use super::walk;
use crate::hir::{
    self, Argument, BinaryOperator, ChannelId, Expr, ExprKind, ExternId, FnId, LocalId, Operation, Pattern,
    PatternKind, Place, ProcessId, Stmt, StmtKind, UnaryOperator,
};
use crate::hir::{Influence, ModelPath, PlaceStep};
use crate::types::{Type, TypeId, TypeTable};
use rustc_hash::FxHashSet;

/// A node of the data-flow graph.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Holder {
    Variable(ProcessId, LocalId),
    Payload(ChannelId, u32),
    Result(ExternId),
    /// The quotients of unknown durations.
    Quotient,
    /// The moments at which an `after` or `until` happens. In models any moment is possible.
    Moment,
    /// Control: the target of the analysis.
    Control,
}

/// The data-flow graph.
struct Flows<'t> {
    types: &'t TypeTable,
    /// Target and source of each edge; one list, because programs have many.
    edges: Vec<(Holder, Holder)>,
    externs: Vec<ExternId>,
    /// The functions that are called.
    functions: Vec<FnId>,
}

/// The holders of values that influence control.
pub(super) struct ControlInfluence {
    /// Extern functions that are called, by their result, in order of declaration.
    pub(super) externs: Vec<ExternId>,
    /// Values of messages.
    pub(super) payloads: FxHashSet<(ChannelId, u32)>,
    variables: FxHashSet<(ProcessId, LocalId)>,
    /// What quotients of durations influence.
    pub(super) quotient: Influence,
}

impl ControlInfluence {
    /// Whether a part influences control.
    pub(super) fn influence_of(&self, path: &ModelPath) -> Influence {
        let is_control = match path {
            ModelPath::Extern(id) => self.externs.contains(id),
            ModelPath::Variable(process, local) => self.variables.contains(&(*process, *local)),
            ModelPath::Payload(channel, number) => self.payloads.contains(&(*channel, *number)),
        };
        if is_control { Influence::Control } else { Influence::DataOnly }
    }
}

/// The influence on control in these processes and in the environments of models. The `observed` variables of
/// properties count as control.
pub(super) fn control_influence(
    checker: &Checker,
    scope: &[ProcessId],
    environments: &[&[hir::Process]],
    observed: &[(ProcessId, LocalId)],
) -> ControlInfluence {
    let mut flows = Flows { types: &checker.types, edges: Vec::new(), externs: Vec::new(), functions: Vec::new() };
    for (process, local) in observed {
        flows.add(Holder::Variable(*process, *local), Holder::Control);
    }
    for process in scope {
        if let Some(hir) = &checker.processes[process.0 as usize].hir {
            walk::statements(&hir.body, &mut |stmt| flows.statement(*process, stmt));
        }
    }
    // Environments have variables of their own, under numbers that no process has.
    let first = checker.processes.len() as u32;
    for (number, environment) in environments.iter().copied().flatten().enumerate() {
        let process = ProcessId(first + number as u32);
        walk::statements(&environment.body, &mut |stmt| flows.statement(process, stmt));
    }
    // So have functions. What a function returns influences control, because its call can fault.
    let first = first + environments.iter().copied().flatten().count() as u32;
    let mut walked = FxHashSet::default();
    while let Some(function) = flows.functions.pop() {
        if let (true, Some(hir)) = (walked.insert(function), &checker.functions[function.0 as usize].hir) {
            let process = ProcessId(first + function.0);
            walk::statements(&hir.body, &mut |stmt| flows.statement(process, stmt));
        }
    }
    flows.externs.sort();
    flows.externs.dedup();
    let backward = flows.reaching();
    flows.externs.retain(|id| backward.contains(&Holder::Result(*id)));
    let payloads = backward.iter().filter_map(|holder| match holder {
        Holder::Payload(channel, number) => Some((*channel, *number)),
        Holder::Variable(..) | Holder::Result(_) | Holder::Quotient | Holder::Moment | Holder::Control => None,
    });
    let variables = backward.iter().filter_map(|holder| match holder {
        Holder::Variable(process, local) => Some((*process, *local)),
        Holder::Payload(..) | Holder::Result(_) | Holder::Quotient | Holder::Moment | Holder::Control => None,
    });
    ControlInfluence {
        payloads: payloads.collect(),
        variables: variables.collect(),
        externs: flows.externs,
        quotient: if backward.contains(&Holder::Quotient) { Influence::Control } else { Influence::DataOnly },
    }
}

impl Flows<'_> {
    /// Every holder whose value can reach control.
    fn reaching(&mut self) -> FxHashSet<Holder> {
        self.edges.sort_unstable();
        self.edges.dedup();
        let mut reached = FxHashSet::default();
        let mut open = vec![Holder::Control];
        while let Some(holder) = open.pop() {
            if reached.insert(holder) {
                let first = self.edges.partition_point(|(to, _)| *to < holder);
                let sources = self.edges[first..].iter().take_while(|(to, _)| *to == holder);
                open.extend(sources.map(|(_, from)| *from));
            }
        }
        reached
    }

    /// Everything an expression's value depends on goes to a holder; its indices influence control.
    fn expr(&mut self, process: ProcessId, expr: &Expr, target: Holder) {
        self.value(process, expr, target, false);
    }

    /// Likewise; with `is_control`, the value flows to [`Holder::Control`] as well. Each part is visited once: operands
    /// of arithmetic that can fault flow to both.
    fn value(&mut self, process: ProcessId, expr: &Expr, target: Holder, is_control: bool) {
        let is_control = is_control || (can_fault(self.types, expr) && !is_quotient(expr));
        let from = |flows: &mut Self, source: Holder| {
            flows.add(source, target);
            if is_control && target != Holder::Control {
                flows.add(source, Holder::Control);
            }
        };
        match &expr.kind {
            ExprKind::Local(local) => from(self, Holder::Variable(process, *local)),
            ExprKind::CallExtern(id, arguments) => {
                self.externs.push(*id);
                from(self, Holder::Result(*id));
                self.arguments(process, *id, arguments);
            }
            // The quotient of durations. It faults for a zero divisor only, which is unknown unless it is constant.
            ExprKind::Binary(BinaryOperator::Divide, left, right) if is_count(left) || is_count(right) => {
                from(self, Holder::Quotient);
                self.expr(process, left, Holder::Quotient);
                let divisor = if is_nonzero(right) { Holder::Quotient } else { Holder::Control };
                self.expr(process, right, divisor);
            }
            ExprKind::CallFn(function, arguments) => {
                self.functions.push(*function);
                arguments.iter().for_each(|argument| self.value(process, argument, target, is_control));
            }
            ExprKind::Index(base, index) => {
                self.value(process, base, target, is_control);
                self.expr(process, index, Holder::Control);
            }
            ExprKind::Conditional(condition, left, right) => {
                self.expr(process, condition, Holder::Control);
                self.value(process, left, target, is_control);
                self.value(process, right, target, is_control);
            }
            _ => walk::operands(expr, &mut |operand| self.value(process, operand, target, is_control)),
        }
    }

    fn arguments(&mut self, process: ProcessId, id: ExternId, arguments: &[Argument]) {
        for argument in arguments {
            match argument {
                // An argument of a C function influences only its result.
                Argument::Value(value) => self.expr(process, value, Holder::Result(id)),
                Argument::Mutable(place) => self.place(process, Holder::Result(id), place),
            }
        }
    }

    fn add(&mut self, source: Holder, target: Holder) {
        self.edges.push((target, source));
    }

    fn place(&mut self, process: ProcessId, source: Holder, place: &Place) {
        self.add(source, Holder::Variable(process, place.base));
        walk::place_expressions(place, &mut |index| self.expr(process, index, Holder::Control));
    }

    fn pattern(&mut self, process: ProcessId, source: Holder, pattern: &Pattern) {
        match &pattern.kind {
            PatternKind::Any => {}
            PatternKind::Declare(local) => self.add(source, Holder::Variable(process, *local)),
            PatternKind::Assign(place) => self.place(process, source, place),
            PatternKind::Constant(_)
            | PatternKind::Bytes(_)
            | PatternKind::OwnId
            | PatternKind::Among(_)
            | PatternKind::Either(_) => self.add(source, Holder::Control),
            PatternKind::Equal(expr) => {
                self.add(source, Holder::Control);
                self.expr(process, expr, Holder::Control);
            }
            PatternKind::Tag(_, payload) => {
                self.add(source, Holder::Control);
                payload.iter().for_each(|payload| self.pattern(process, source, payload));
            }
            PatternKind::Record(parts) | PatternKind::Array(parts) => {
                parts.iter().for_each(|part| self.pattern(process, source, part));
            }
        }
        pattern.condition.iter().for_each(|condition| self.expr(process, condition, Holder::Control));
    }

    fn statement(&mut self, process: ProcessId, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::Update { place, operator, value, ty } => {
                self.expr(process, value, Holder::Variable(process, place.base));
                if operator_can_fault(self.types, *operator, *ty) || can_lose_bits(place) {
                    self.expr(process, value, Holder::Control);
                    self.add(Holder::Variable(process, place.base), Holder::Control);
                }
                walk::place_expressions(place, &mut |index| self.expr(process, index, Holder::Control));
            }
            StmtKind::Assign(place, value) => {
                self.expr(process, value, Holder::Variable(process, place.base));
                if can_lose_bits(place) {
                    self.expr(process, value, Holder::Control);
                }
                walk::place_expressions(place, &mut |index| self.expr(process, index, Holder::Control));
            }
            StmtKind::Call(id, arguments) => {
                self.externs.push(*id);
                self.arguments(process, *id, arguments);
            }
            StmtKind::CallFn(function, arguments) => {
                self.functions.push(*function);
                arguments.iter().for_each(|argument| self.expr(process, argument, Holder::Control));
            }
            StmtKind::Match(value, arms) => {
                self.expr(process, value, Holder::Control);
                // Matched parts go on to what the arms bind.
                let mut sources = Vec::new();
                walk::nested(value, &mut |expr| match &expr.kind {
                    ExprKind::Local(local) => sources.push(Holder::Variable(process, *local)),
                    ExprKind::CallExtern(id, _) => sources.push(Holder::Result(*id)),
                    _ => {}
                });
                for (pattern, _) in arms {
                    sources.iter().for_each(|source| self.pattern(process, *source, pattern));
                }
            }
            StmtKind::Communicate(communicate) => {
                for branch in &communicate.branches {
                    branch.guard.iter().for_each(|guard| self.expr(process, guard, Holder::Control));
                    match &branch.operation {
                        Operation::In(_, channel, patterns) => {
                            for (index, pattern) in patterns.iter().enumerate() {
                                self.pattern(process, Holder::Payload(*channel, index as u32), pattern);
                            }
                        }
                        Operation::Out(_, channel, values) => {
                            for (index, value) in values.iter().enumerate() {
                                let payload = Holder::Payload(*channel, index as u32);
                                self.expr(process, value, payload);
                            }
                        }
                        Operation::After(moment, _) | Operation::Until(moment) => {
                            self.expr(process, moment, Holder::Moment);
                        }
                    }
                }
            }
            _ => walk::expressions(stmt, &mut |expr| self.expr(process, expr, Holder::Control)),
        }
    }
}

/// Whether an expression is the number of nanoseconds of a duration that is not constant.
fn is_count(expr: &Expr) -> bool {
    matches!(&expr.kind, ExprKind::Convert(inner) if inner.ty == TypeTable::DURATION)
}

fn is_nonzero(expr: &Expr) -> bool {
    matches!(expr.kind, ExprKind::Constant(value) if value != 0)
}

/// Whether an expression is a quotient of durations that cannot fault.
fn is_quotient(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Binary(BinaryOperator::Divide, left, right) => is_count(left) && is_nonzero(right),
        _ => false,
    }
}

/// Whether storing to a place faults if bits are lost: to a field of a layout.
fn can_lose_bits(place: &Place) -> bool {
    matches!(place.path.last(), Some(PlaceStep::LayoutField { .. }))
}

/// Whether an operator can fault on values of a type. Unsigned arithmetic wraps, that of times saturates.
fn operator_can_fault(types: &TypeTable, operator: BinaryOperator, ty: TypeId) -> bool {
    match operator {
        BinaryOperator::Multiply | BinaryOperator::Add | BinaryOperator::Subtract => match types.get(ty) {
            Type::Int(int) => int.is_signed() && !int.is_clock(),
            Type::Error
            | Type::Bool
            | Type::Pid(_)
            | Type::Bytes { .. }
            | Type::Array { .. }
            | Type::Record(_)
            | Type::Union(_)
            | Type::Boxed(_) => true,
        },
        BinaryOperator::Divide
        | BinaryOperator::Remainder
        | BinaryOperator::ShiftLeft
        | BinaryOperator::ShiftRight
        // The left side decides whether the right one is computed.
        | BinaryOperator::And
        | BinaryOperator::Or => true,
        BinaryOperator::BitAnd
        | BinaryOperator::BitXor
        | BinaryOperator::BitOr
        | BinaryOperator::Equal
        | BinaryOperator::NotEqual
        | BinaryOperator::Less
        | BinaryOperator::LessEqual
        | BinaryOperator::Greater
        | BinaryOperator::GreaterEqual => false,
    }
}

/// Whether computing it can be a fault that depends on its operands, overflow included.
fn can_fault(types: &TypeTable, expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Binary(operator, ..) => operator_can_fault(types, *operator, expr.ty),
        // Only a division by zero faults.
        ExprKind::Saturating(operator, ..) => *operator == BinaryOperator::Divide,
        ExprKind::Unary(operator, _) => match operator {
            UnaryOperator::Negate => true,
            UnaryOperator::Not | UnaryOperator::Complement => false,
        },
        ExprKind::Slice(..)
        | ExprKind::Concatenate(..)
        | ExprKind::Fit(_)
        | ExprKind::Number { .. }
        | ExprKind::LayoutField { .. }
        | ExprKind::CallFn(..)
        | ExprKind::InstanceOf(..) => true,
        ExprKind::Constant(_)
        | ExprKind::Bytes(_)
        | ExprKind::Stored(_)
        | ExprKind::Local(_)
        | ExprKind::Record(_)
        | ExprKind::Array(_)
        | ExprKind::Repeat(_)
        | ExprKind::Union(..)
        | ExprKind::Content(_)
        | ExprKind::Box(_)
        | ExprKind::Field(..)
        | ExprKind::Index(..)
        | ExprKind::Length(_)
        | ExprKind::Convert(_)
        | ExprKind::WidenPid(_)
        | ExprKind::Test(_)
        | ExprKind::Conditional(..)
        | ExprKind::CallExtern(..)
        | ExprKind::Freeze(_)
        | ExprKind::Thaw(_)
        | ExprKind::OwnId
        | ExprKind::Now
        | ExprKind::ReplicaNumber(_)
        | ExprKind::FreeObjects(_) => false,
    }
}
