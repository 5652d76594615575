//! Lowering of a program with a model: environments become processes, and processes outside the slice are replaced by
//! stand-ins that do whatever their ports allow.

use crate::abstraction::Abstractions;
use crate::clock::Clock;
use crate::{Context, Observed, lower_with};
use quaject_esp_ir::ir::{
    self, AltOrder, Block, BlockId, Blocking, Body, Boundary, Branch, ChannelId, Direction, ExternId, Guard,
    Instruction, Location, Op, Operand, Operation, Passed, Pattern, Payload, Place, Process, Program, Purity, Site,
    SiteId, Slot, SlotId, Terminator, TimeUnit, Transfer, Type, TypeTable, Value, ValueData, Wait,
};
use quaject_esp_ir::ir::{Base, Edge, ProcessId};
use quaject_esp_ir::model::{ModelProgram, Role, Scope, Values};
use quaject_esp_syntax::hir::{self, AbstractionKind, ExprKind, Influence, ModelPath, ModelScope, StmtKind};
use quaject_esp_syntax::span::SourceMap;
use smol_str::SmolStr;
use std::borrow::Cow;

/// Lowers a program with one of its models, or without a model. `scope` overrides the scope of the model.
pub fn lower_model(
    program: &hir::Program,
    model: Option<&hir::Model>,
    scope: Option<ModelScope>,
    sources: &SourceMap,
) -> ModelProgram {
    lower_observed(program, model, scope, sources, (observed_by(model), Detail::Abstract))
}

/// Likewise, without the model's abstractions: every run is a run of the program in the model's environment.
pub fn lower_concrete(
    program: &hir::Program,
    model: Option<&hir::Model>,
    scope: Option<ModelScope>,
    sources: &SourceMap,
) -> ModelProgram {
    lower_observed(program, model, scope, sources, (observed_by(model), Detail::Concrete))
}

fn observed_by(model: Option<&hir::Model>) -> Observed {
    Observed::Named(model.map(hir::Model::observed).unwrap_or_default())
}

/// Likewise, with every variable observed at every wait, for display.
pub fn lower_model_with_variables(
    program: &hir::Program,
    model: Option<&hir::Model>,
    scope: Option<ModelScope>,
    sources: &SourceMap,
) -> ModelProgram {
    lower_observed(program, model, scope, sources, (Observed::All, Detail::Abstract))
}

/// Whether the abstractions of the model are applied.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Detail {
    Abstract,
    Concrete,
}

fn lower_observed(
    program: &hir::Program,
    model: Option<&hir::Model>,
    scope: Option<ModelScope>,
    sources: &SourceMap,
    (observed, detail): (Observed, Detail),
) -> ModelProgram {
    let environment = model.map_or(&[][..], |model| &model.environment);
    let mut context = Context::new(program, sources, usize::MAX);
    context.observed = observed;
    context.clock = Clock::of_model(program);
    let first = program.externs.len() + context.clock.stand_ins();
    let abstracted = model.filter(|_| detail == Detail::Abstract);
    context.abstractions = abstracted.map(|model| Abstractions::of(program, model, first)).unwrap_or_default();
    let processes = program.processes.iter().chain(environment);
    let lowered = lower_with(&mut context, processes.map(|process| (process, Cow::Borrowed(&process.body[..]))));
    let mut abstractions = std::mem::take(&mut context.abstractions);
    let clock = std::mem::take(&mut context.clock);
    let scope = scope.or_else(|| model.map(|model| model.scope.clone())).unwrap_or(ModelScope::All);
    let scope = match scope {
        ModelScope::All => Scope::All,
        ModelScope::Process(process) => Scope::Process(process),
        ModelScope::Slice(processes) => Scope::Slice(processes),
    };
    let own = program.processes.len();
    let role = |process: usize| match &scope {
        _ if process >= own => Role::Environment,
        Scope::All => Role::Explored,
        Scope::Process(only) if only.0 as usize == process => Role::Explored,
        Scope::Slice(some) if some.iter().any(|some| some.0 as usize == process) => Role::Explored,
        Scope::Process(_) | Scope::Slice(_) => Role::Omitted,
    };
    let mut result = ModelProgram {
        name: model.map(|model| model.name.clone()),
        roles: (0..lowered.processes.len()).map(role).collect(),
        scope,
        channels: lowered.channels.len() as u32,
        externs: lowered.externs.len() as u32,
        bounds: vec![None; lowered.channels.len()],
        messages: program
            .channels
            .iter()
            .map(|channel| channel.influences.iter().map(values_to_try).collect())
            .collect(),
        results: program.externs.iter().map(|function| values_to_try(&function.influence)).collect(),
        abstractions: Vec::new(),
        properties: model.map(|model| model.properties.clone()).unwrap_or_default(),
        undecided_times: Vec::new(),
        initial_values: model.map(|model| initial_values(program, model)).unwrap_or_default(),
        program: lowered,
    };
    clock.add_to(&mut result);
    abstractions.add_functions(&mut result);
    let uses = Uses::of(&result);
    for channel in 0..result.channels {
        open_or_close(&mut result, ChannelId(channel), &uses);
    }
    if let Some(model) = abstracted {
        abstractions.list_in(&mut result, program, model);
    }
    if let Some(model) = model {
        restrict(&mut result, model);
    }
    for (process, role) in result.program.processes.iter_mut().zip(&result.roles) {
        match role {
            Role::Omitted => {
                process.body = Body { blocks: vec![block(Vec::new(), Terminator::End)], ..Body::default() };
                process.sites.clear();
                process.labels.clear();
            }
            Role::Environment | Role::OpenStub => allow_blocking_forever(&mut process.body),
            Role::Explored => {}
        }
    }
    result
}

/// The variables that properties name and whose first value in the text is a constant, each with this value.
fn initial_values(program: &hir::Program, model: &hir::Model) -> Vec<(ProcessId, SmolStr, i128)> {
    let mut values = Vec::new();
    for (name, variable) in model.observed() {
        let index = program.processes.iter().position(|process| process.name == name);
        let Some((index, process)) = index.map(|index| (index, &program.processes[index])) else { continue };
        let named = |local: &hir::LocalId| process.locals[local.0 as usize].name == variable;
        let first = process.body.iter().find_map(|stmt| match &stmt.kind {
            StmtKind::Assign(place, value) if named(&place.base) => Some(&value.kind),
            _ => None,
        });
        if let Some(ExprKind::Constant(value)) = first {
            values.push((ProcessId(index as u32), variable, *value));
        }
    }
    values
}

fn values_to_try(influence: &Influence) -> Values {
    match influence {
        Influence::Control => Values::All,
        Influence::DataOnly => Values::One,
    }
}

/// The processes that use each channel.
struct Uses {
    /// Per channel: receivers, senders.
    by: Vec<(Vec<usize>, Vec<usize>)>,
}

impl Uses {
    fn of(model: &ModelProgram) -> Uses {
        let mut by = vec![(Vec::new(), Vec::new()); model.program.channels.len()];
        for (index, process) in model.program.processes.iter().enumerate() {
            for site in &process.sites {
                let (readers, writers) = &mut by[site.channel.0 as usize];
                let users = match site.direction {
                    Direction::In => readers,
                    Direction::Out => writers,
                };
                if !users.contains(&index) {
                    users.push(index);
                }
            }
        }
        Uses { by }
    }
}

/// Decides which processes are at the ends of a channel in the model.
fn open_or_close(model: &mut ModelProgram, channel: ChannelId, uses: &Uses) {
    let (readers, writers) = &uses.by[channel.0 as usize];
    let omitted = |users: &[usize]| users.iter().any(|user| model.roles[*user] == Role::Omitted);
    let inside = |users: &[usize]| users.iter().any(|user| model.roles[*user] != Role::Omitted);
    let environment = readers.iter().chain(writers).any(|user| model.roles[*user] == Role::Environment);
    let boundary = &mut model.program.channels[channel.0 as usize].boundary;
    match *boundary {
        Boundary::ToEnvironment | Boundary::FromEnvironment => {
            if environment {
                *boundary = Boundary::Internal;
            }
        }
        Boundary::Internal => match (inside(readers), inside(writers)) {
            (true, false) if omitted(writers) => *boundary = Boundary::FromEnvironment,
            (false, true) if omitted(readers) => *boundary = Boundary::ToEnvironment,
            (true, true) => {
                let (read, write) = (omitted(readers), omitted(writers));
                let readers: Vec<usize> =
                    readers.iter().copied().filter(|user| model.roles[*user] == Role::Omitted).collect();
                if write {
                    let writer = writes_anything(&model.program, channel);
                    add_open_stub(model, writer, channel);
                }
                if read {
                    for reader in readers {
                        let patterns = static_patterns(&model.program, ProcessId(reader as u32), channel);
                        add_open_stub(model, (reads(channel, patterns), None), channel);
                    }
                }
            }
            (_, _) => {}
        },
    }
}

/// Appends a stand-in for the omitted processes.
fn add_open_stub(model: &mut ModelProgram, (process, result): (Process, Option<Vec<ir::TypeId>>), channel: ChannelId) {
    for (number, ty) in result.into_iter().flatten().enumerate() {
        model.program.externs.push(ir::Extern {
            name: format!("{}.{number}", model.program.channels[channel.0 as usize].name).into(),
            purity: Purity::Impure,
            parameters: Vec::new(),
            result: Some(ty),
        });
        model.results.push(Values::All);
    }
    model.program.processes.push(process);
    model.roles.push(Role::OpenStub);
}

/// `while { out(c, any()); }`
fn writes_anything(program: &Program, channel: ChannelId) -> (Process, Option<Vec<ir::TypeId>>) {
    let payload = program.channels[channel.0 as usize].payload.clone();
    let mut body = Body::default();
    let mut code = Vec::new();
    let mut passed = Vec::new();
    for (number, ty) in payload.iter().enumerate() {
        let function = ExternId((program.externs.len() + number) as u32);
        let in_memory = matches!(
            program.types.get(*ty),
            Type::Bytes { .. } | Type::Array { .. } | Type::Record(_) | Type::Union(_)
        );
        let (result, to, operand) = if in_memory {
            let slot = SlotId(body.slots.len() as u32);
            body.slots.push(Slot { ty: *ty, name: None });
            let place = Place { base: Base::Slot(slot), path: Vec::new() };
            (None, Some(place.clone()), Operand::Place(place))
        } else {
            let value = value(&mut body, *ty);
            (Some(value), None, Operand::Value(value))
        };
        let op = Op::CallExtern { function, arguments: Vec::new(), to };
        code.push(Instruction { result, op, location: Location::default() });
        passed.push(Passed { operand, transfer: Transfer::Move });
    }
    let operation = Operation::Out { site: SiteId(0), channel, payload: Payload::Ready(passed) };
    finish(body, code, operation, channel, Direction::Out, Some(payload))
}

/// `while { in(c, pattern) or .. }`
fn reads(channel: ChannelId, patterns: Vec<Vec<Pattern>>) -> Process {
    let operations = patterns.into_iter().enumerate().map(|(site, patterns)| Operation::In {
        site: SiteId(site as u32),
        channel,
        patterns,
        condition: None,
    });
    open_stub(Body::default(), Vec::new(), operations.collect(), channel, Direction::In)
}

fn finish(
    body: Body,
    code: Vec<Instruction>,
    operation: Operation,
    channel: ChannelId,
    direction: Direction,
    payload: Option<Vec<ir::TypeId>>,
) -> (Process, Option<Vec<ir::TypeId>>) {
    (open_stub(body, code, vec![operation], channel, direction), payload)
}

/// A process that repeats the operations forever, and may choose again at any time.
fn open_stub(
    mut body: Body,
    mut code: Vec<Instruction>,
    operations: Vec<Operation>,
    channel: ChannelId,
    direction: Direction,
) -> Process {
    let zero = value(&mut body, TypeTable::I32);
    code.push(Instruction { result: Some(zero), op: Op::Constant(0), location: Location::default() });
    let sites = operations.len();
    let again = Operation::After { amount: zero, unit: TimeUnit::Nanoseconds(1) };
    let branches = operations.into_iter().chain([again]).enumerate().map(|(number, operation)| Branch {
        guard: Guard::Open,
        operation,
        then: BlockId(number as u32 + 2),
        location: Location::default(),
    });
    let wait = Wait {
        order: AltOrder::Fair,
        blocking: Blocking::MayBlockForever,
        branches: branches.collect(),
        otherwise: None,
        observed: Vec::new(),
        members: Vec::new(),
    };
    let back = || Terminator::Jump(Edge { to: BlockId(1), arguments: Vec::new() });
    body.blocks = vec![block(Vec::new(), back()), block(code, Terminator::Wait(wait))];
    body.blocks.extend((0..=sites).map(|_| block(Vec::new(), back())));
    Process {
        name: "outside".into(),
        replicas: 1,
        replicated: false,
        operations: Vec::new(),
        labels: Vec::new(),
        sites: vec![Site { channel, direction, location: Location::default() }; sites],
        body,
        members: Vec::new(),
        location: Location::default(),
    }
}

fn value(body: &mut Body, ty: ir::TypeId) -> Value {
    body.values.push(ValueData { ty, name: None });
    Value(body.values.len() as u32 - 1)
}

fn block(instructions: Vec<Instruction>, terminator: Terminator) -> Block {
    Block { parameters: Vec::new(), instructions, terminator, location: Location::default() }
}

/// The patterns of a process on a channel that do not depend on its variables.
fn static_patterns(program: &Program, process: ProcessId, channel: ChannelId) -> Vec<Vec<Pattern>> {
    let mut found: Vec<Vec<Pattern>> = Vec::new();
    let first = program.first_instance(process);
    let process = &program.processes[process.0 as usize];
    let waits = process.body.blocks.iter().filter_map(|block| block.terminator.as_wait());
    for branch in waits.flat_map(|wait| &wait.branches) {
        match &branch.operation {
            Operation::In { channel: from, patterns, .. } if *from == channel => {
                for instance in first..first + process.replicas {
                    let patterns = patterns.iter().map(|pattern| static_part(pattern, instance)).collect();
                    if !found.contains(&patterns) {
                        found.push(patterns);
                    }
                }
            }
            Operation::In { .. } | Operation::Out { .. } | Operation::After { .. } => {}
        }
    }
    found
}

fn static_part(pattern: &Pattern, instance: u32) -> Pattern {
    let all = |parts: &[Pattern]| parts.iter().map(|part| static_part(part, instance)).collect();
    match pattern {
        Pattern::Any | Pattern::Bind(_) | Pattern::Equal(_) => Pattern::Any,
        Pattern::OwnId => Pattern::Constant(i128::from(instance)),
        Pattern::Constant(constant) => Pattern::Constant(*constant),
        Pattern::Bytes(bytes) => Pattern::Bytes(bytes.clone()),
        Pattern::Tag(tag, payload) => {
            Pattern::Tag(*tag, payload.as_ref().map(|part| Box::new(static_part(part, instance))))
        }
        Pattern::Record(parts) => Pattern::Record(all(parts)),
        Pattern::Array(parts) => Pattern::Array(all(parts)),
    }
}

/// An environment may block forever at any operation.
fn allow_blocking_forever(body: &mut Body) {
    for block in &mut body.blocks {
        if let Terminator::Wait(wait) = &mut block.terminator {
            wait.blocking = Blocking::MayBlockForever;
        }
    }
}

/// Applies the model's restrictions of messages and results of the environment.
fn restrict(result: &mut ModelProgram, model: &hir::Model) {
    for (channel, bound) in &model.bounds {
        result.bounds[channel.0 as usize] = Some(*bound);
    }
    for part in &model.abstractions {
        // Messages and results of the environment are already arbitrary where a decision depends on them.
        let AbstractionKind::Range(from, to) = part.kind else { continue };
        match part.path {
            ModelPath::Extern(id) => result.results[id.0 as usize] = Values::Range(from, to),
            ModelPath::Payload(channel, number) => match result.program.channels[channel.0 as usize].boundary {
                Boundary::FromEnvironment => {
                    result.messages[channel.0 as usize][number as usize] = Values::Range(from, to);
                }
                Boundary::ToEnvironment | Boundary::Internal => {}
            },
            ModelPath::Variable(..) => {}
        }
    }
}
