//! Lowering of the checked program to the flow IR. Evaluation order, conversions and control flow become explicit;
//! reference counts of boxed objects are inserted by liveness (reference, section 6). Does not optimise.
//!
//! ```text
//!   statement, choice, communicate, expression     source constructs, one file each
//!   clock                                          arithmetic on times and durations, and what a model knows of them
//!   builder                                        blocks and SSA values under construction
//!   model                                          a program with its environment, for exploration
//!   abstraction                                    abstractions of a model
//!   simplify                                       unreachable blocks, trivial block parameters
//!   predicates                                     predicates of fast paths
//!   refcount                                       reference-count insertion
//! ```
#![forbid(unsafe_code)]

/// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod abstraction;
mod alternatives;
mod builder;
mod choice;
mod chunked_vec;
mod clock;
mod communicate;
mod constant;
mod expression;
mod model;
mod operator;
mod predicates;
mod refcount;
mod simplify;
mod statement;

use builder::Builder;
pub use model::{lower_concrete, lower_model, lower_model_with_variables};
pub use predicates::{Predicate, elements, predicates};
use quaject_esp_ir::ir::{self, Bind, Body, Fault, Location, Pattern, Terminator, Type, TypeId, TypeTable};
use quaject_esp_ir::simplify_cfg;
use quaject_esp_syntax::hir::{self, ExprKind, Local, PatternKind, Stmt};
use quaject_esp_syntax::span::{SourceMap, Span};
use quaject_esp_syntax::types::Aggregate;
use rustc_hash::FxHashMap;
use smol_str::SmolStr;
use std::borrow::Cow;
use std::mem;

/// Lowers a program that analysis found free of errors.
pub fn lower(program: &hir::Program, sources: &SourceMap) -> ir::Program {
    let mut context = Context::new(program, sources, usize::MAX);
    let processes = program.processes.iter().map(|process| (process, Cow::Borrowed(&process.body[..])));
    lower_with(&mut context, processes)
}

/// Likewise, but returns none for a program with more instructions than the limit: they can take a hundred times the
/// memory of the text. The syntax of a process is freed once it is lowered, before the next one.
pub fn lower_within(mut program: hir::Program, sources: &SourceMap, max_instructions: usize) -> Option<ir::Program> {
    let bodies: Vec<Vec<Stmt>> = program.processes.iter_mut().map(|process| mem::take(&mut process.body)).collect();
    let mut context = Context::new(&program, sources, max_instructions);
    context.compute_predicates();
    let processes = program.processes.iter().zip(bodies.into_iter().map(Cow::Owned));
    let lowered = lower_with(&mut context, processes);
    if context.is_too_large { None } else { Some(lowered) }
}

/// Lowers the program with these processes, each with its statements.
fn lower_with<'p>(
    context: &mut Context<'p>,
    processes: impl Iterator<Item = (&'p hir::Process, Cow<'p, [Stmt]>)>,
) -> ir::Program {
    let Context { program, sources, .. } = *context;
    let functions = program.functions.iter().map(|function| lower_function(context, function)).collect();
    let processes = processes.map(|(process, body)| lower_process(context, process, body)).collect();
    let channels = program.channels.iter().map(|channel| lower_channel(context, channel)).collect();
    let externs = program.externs.iter().map(|function| ir::Extern {
        name: function.name.clone(),
        purity: function.purity,
        parameters: function.parameters.iter().map(|(_, ty, mutability)| (*ty, *mutability)).collect(),
        result: function.result,
    });
    let written = sources.files().iter();
    let expanded = sources.expansions().iter().map(|expansion| sources.file(expansion.text.file));
    let calls = sources.expansions().iter().map(|expansion| ir::Call {
        callee: expansion.callee.as_str().into(),
        location: context.location(expansion.call),
    });
    let messages = program.assert_messages.iter().map(|(span, text)| (context.location(*span), text.clone()));
    ir::Program {
        files: written.chain(expanded).map(|file| file.name.clone()).collect(),
        calls: calls.collect(),
        constants: context.constants.clone(),
        memory: program.memory,
        channels,
        interfaces: program.interfaces.iter().map(lower_interface).collect(),
        externs: externs.collect(),
        functions,
        processes,
        paths: Vec::new(),
        hand_off: ir::HandOff::default(),
        assert_messages: messages.collect(),
        types: context.types.clone(),
    }
}

/// Variables to be observed.
enum Observed {
    /// All variables.
    All,
    /// These, by process and name.
    Named(Vec<(SmolStr, SmolStr)>),
}

/// The state that is shared by all bodies.
struct Context<'p> {
    program: &'p hir::Program,
    sources: &'p SourceMap,
    /// The number of instructions that may still be made.
    instructions_left: usize,
    /// Whether the limit was exceeded. The result is then incomplete and must be discarded.
    is_too_large: bool,
    types: TypeTable,
    /// Those of the program, and array literals that are copied from one.
    constants: Vec<ir::Constant>,
    counted: FxHashMap<TypeId, bool>,
    optional: FxHashMap<TypeId, TypeId>,
    /// Pure functions that evaluate `free(T)`, directly or through calls.
    free_functions: Vec<bool>,
    /// Variables to be observed at every wait, and the names of those of the current process.
    observed: Observed,
    observed_here: Vec<SmolStr>,
    /// Predicates of fast paths, and the current process.
    predicates: Vec<predicates::Predicate<'p>>,
    process: Option<usize>,
    /// The abstractions of the model.
    abstractions: abstraction::Abstractions,
    /// The meaning of times, and where it cannot be applied.
    clock: clock::Clock,
    /// Whether a pure function is being lowered.
    is_in_function: bool,
}

impl<'p> Context<'p> {
    fn new(program: &'p hir::Program, sources: &'p SourceMap, max_instructions: usize) -> Context<'p> {
        Context {
            program,
            sources,
            instructions_left: max_instructions,
            is_too_large: false,
            types: program.types.clone(),
            constants: constant::constants(program),
            counted: FxHashMap::default(),
            optional: FxHashMap::default(),
            free_functions: functions_with_free(program),
            observed: Observed::Named(Vec::new()),
            observed_here: Vec::new(),
            predicates: Vec::new(),
            process: None,
            abstractions: abstraction::Abstractions::default(),
            clock: clock::Clock::default(),
            is_in_function: false,
        }
    }

    /// Whether one more instruction may be made.
    fn has_room(&mut self) -> bool {
        match self.instructions_left.checked_sub(1) {
            Some(left) => self.instructions_left = left,
            None => self.is_too_large = true,
        }
        !self.is_too_large
    }

    fn location(&self, span: Span) -> Location {
        if span == Span::default() {
            return Location::default();
        }
        let start = self.sources.start(span);
        Location { file: span.file.0, line: start.line, column: start.column, member: None }
    }

    /// Whether values of this type are, or hold, references to boxed objects.
    fn counted(&mut self, ty: TypeId) -> bool {
        if let Some(known) = self.counted.get(&ty) {
            return *known;
        }
        let counted = match self.types.get(ty).clone() {
            Type::Boxed(_) => true,
            Type::Error | Type::Int(_) | Type::Bool | Type::Bytes { .. } | Type::Pid(_) => false,
            Type::Array { length: _, element } => self.counted(element),
            Type::Record(id) | Type::Union(id) => {
                let parts = self.types.aggregate(id).parts.clone();
                parts.into_iter().any(|(_, ty)| ty.is_some_and(|ty| self.counted(ty)))
            }
        };
        self.counted.insert(ty, counted);
        counted
    }

    /// A union of nothing and a value of this type.
    fn optional(&mut self, ty: TypeId) -> TypeId {
        if let Some(known) = self.optional.get(&ty) {
            return *known;
        }
        let parts = vec![("none".into(), None), ("some".into(), Some(ty))];
        let id = self.types.add_aggregate(Aggregate { name: None, parts });
        let optional = self.types.intern(Type::Union(id));
        self.optional.insert(ty, optional);
        optional
    }
}

fn lower_channel(context: &Context<'_>, channel: &hir::Channel) -> ir::Channel {
    ir::Channel {
        name: channel.name.clone(),
        payload: channel.payload.clone(),
        value_names: channel.value_names.clone(),
        boundary: channel.boundary,
        sharing: channel.sharing,
        policy: channel.policy,
        driver: channel.driver.clone(),
        location: context.location(channel.span),
    }
}

fn lower_function(context: &mut Context<'_>, function: &hir::Function) -> ir::Function {
    let parameters = &function.locals[..function.parameters as usize];
    context.is_in_function = true;
    let lowered = ir::Function {
        name: function.name.clone(),
        parameters: parameters.iter().map(|parameter| parameter.ty).collect(),
        result: function.result,
        body: lower_body(
            context,
            &function.locals,
            function.parameters,
            Cow::Borrowed(&function.body),
            BodyKind::Function,
        ),
        location: context.location(function.span),
    };
    context.is_in_function = false;
    lowered
}

fn lower_process(context: &mut Context<'_>, process: &hir::Process, body: Cow<'_, [Stmt]>) -> ir::Process {
    context.observed_here = match &context.observed {
        Observed::All => process.locals.iter().map(|local| local.name.clone()).collect(),
        Observed::Named(named) => {
            let wanted = named.iter().filter(|(name, _)| *name == process.name);
            wanted.map(|(_, variable)| variable.clone()).collect()
        }
    };
    context.process = context.program.processes.iter().position(|other| std::ptr::eq(other, process));
    let sites = process.sites.iter().map(|site| ir::Site {
        channel: site.channel,
        direction: site.direction,
        location: context.location(site.span),
    });
    ir::Process {
        name: process.name.clone(),
        replicas: process.replicas,
        replicated: process.replicated,
        operations: Vec::new(),
        labels: process.labels.iter().map(|(name, _)| name.clone()).collect(),
        sites: sites.collect(),
        body: lower_body(context, &process.locals, 0, body, BodyKind::Process),
        members: Vec::new(),
        location: context.location(process.span),
    }
}

/// The kind of a body, which decides what its end means.
#[derive(Clone, Copy)]
enum BodyKind {
    Process,
    Function,
}

fn lower_body(
    context: &mut Context<'_>,
    locals: &[Local],
    parameters: u32,
    statements: Cow<'_, [Stmt]>,
    kind: BodyKind,
) -> Body {
    let mut builder = Builder::new(context, locals, parameters);
    builder.statements(&statements);
    if builder.is_reachable() {
        let end = match kind {
            BodyKind::Process => builder.end_of_process(),
            // Analysis proved that every path returns.
            BodyKind::Function => Terminator::Fault(Fault::Assert),
        };
        builder.end(end, Span::default());
    }
    let mut raw = builder.body;
    drop(statements);
    if context.is_too_large {
        return Body::default();
    }
    simplify::drop_unreachable(&mut raw);
    simplify::drop_trivial_parameters(&mut raw);
    let body = refcount::insert_reference_counts(context, raw);
    simplify_cfg::merge_and_number(body)
}

fn lower_interface(interface: &hir::Interface) -> ir::Interface {
    let entries = interface.entries.iter().map(|entry| ir::InterfaceEntry {
        name: entry.name.clone(),
        parameters: entry.locals.iter().map(|local| (local.name.clone(), local.ty)).collect(),
        patterns: entry.patterns.iter().map(interface_pattern).collect(),
    });
    ir::Interface { name: interface.name.clone(), channel: interface.channel, entries: entries.collect() }
}

fn interface_pattern(pattern: &hir::Pattern) -> Pattern {
    match &pattern.kind {
        PatternKind::Declare(local) => Pattern::Bind(Bind::Parameter(local.0)),
        PatternKind::Constant(constant) => Pattern::Constant(*constant),
        PatternKind::Bytes(bytes) => Pattern::Bytes(bytes.clone()),
        PatternKind::Tag(tag, payload) => {
            Pattern::Tag(*tag, payload.as_ref().map(|payload| Box::new(interface_pattern(payload))))
        }
        PatternKind::Record(parts) => Pattern::Record(parts.iter().map(interface_pattern).collect()),
        PatternKind::Array(parts) => Pattern::Array(parts.iter().map(interface_pattern).collect()),
        // The environment has neither variables nor an id.
        PatternKind::Any
        | PatternKind::Assign(_)
        | PatternKind::OwnId
        | PatternKind::Among(_)
        | PatternKind::Either(_)
        | PatternKind::Equal(_) => Pattern::Any,
    }
}

/// For each pure function, whether it or one it calls evaluates `free(T)`.
fn functions_with_free(program: &hir::Program) -> Vec<bool> {
    let mut facts: Vec<(bool, Vec<usize>)> = Vec::new();
    for function in &program.functions {
        let mut asks = false;
        let mut calls = Vec::new();
        for_each_expression(&function.body, &mut |expr| {
            expression::any(expr, &mut |part| {
                match &part.kind {
                    ExprKind::FreeObjects(_) => asks = true,
                    ExprKind::CallFn(callee, _) => calls.push(callee.0 as usize),
                    _other => {}
                }
                false
            });
        });
        facts.push((asks, calls));
    }
    let mut result: Vec<bool> = facts.iter().map(|(asks, _)| *asks).collect();
    loop {
        let next: Vec<bool> =
            facts.iter().map(|(asks, calls)| *asks || calls.iter().any(|callee| result[*callee])).collect();
        if next == result {
            return result;
        }
        result = next;
    }
}

/// Calls `visit` on the outermost expressions of the statements a pure function may hold.
fn for_each_expression(statements: &[Stmt], visit: &mut dyn FnMut(&hir::Expr)) {
    use hir::StmtKind;
    for statement in statements {
        match &statement.kind {
            StmtKind::Label(_)
            | StmtKind::Declare(_)
            | StmtKind::Break(_)
            | StmtKind::Continue(_)
            | StmtKind::Leave
            | StmtKind::Yield
            | StmtKind::Communicate(_)
            | StmtKind::Call(..)
            | StmtKind::Link(_)
            | StmtKind::Unlink(_) => {}
            StmtKind::Block(inner) | StmtKind::Inline(inner) => for_each_expression(inner, visit),
            StmtKind::If(condition, yes, no) => {
                visit(condition);
                for_each_expression(yes, visit);
                for_each_expression(no, visit);
            }
            StmtKind::While(condition, inner) => {
                condition.iter().for_each(&mut *visit);
                for_each_expression(inner, visit);
            }
            StmtKind::For(_, start, end, inner) => {
                visit(start);
                visit(end);
                for_each_expression(inner, visit);
            }
            StmtKind::Match(scrutinee, arms) => {
                visit(scrutinee);
                for (pattern, inner) in arms {
                    pattern.condition.iter().for_each(|condition| visit(condition));
                    for_each_expression(inner, visit);
                }
            }
            StmtKind::Return(value) | StmtKind::Exit(value) | StmtKind::Assert(value) => visit(value),
            StmtKind::CallFn(callee, arguments) => {
                arguments.iter().for_each(&mut *visit);
                let call = ExprKind::CallFn(*callee, Vec::new());
                visit(&hir::Expr { kind: call, ty: TypeTable::ERROR, span: statement.span });
            }
            StmtKind::Assign(_, value) | StmtKind::Update { place: _, operator: _, value, ty: _ } => visit(value),
        }
    }
}
