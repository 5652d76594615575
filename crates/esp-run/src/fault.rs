//! The report of a fault: the process, the location, the cause, and for a deadlock the wait-for graph. Knows the
//! program, not the engine that ran it.

use quaject_diagnostic::span::{FileId, LineColumn, SourceMap, Span};
use quaject_diagnostic::{Diagnostic, excerpt};
use quaject_esp_exec::report::FaultReport;
use quaject_esp_exec::report::edges_by_member;
use quaject_esp_gen::layout::branches;
use quaject_esp_ir::ir::WaitForEdge;
use quaject_esp_ir::ir::{
    Boundary, Call, ChannelId, Direction, Fault, Location, Op, Operation, Process, ProcessId, Program, Terminator,
    Type, TypeId, TypeTable,
};
use quaject_esp_ir::text::{fault_name, location_text};
use smol_str::SmolStr;
use std::fmt::Write;
use std::ops::Range;

/// The maximum number of names in a list.
const MAX_NAMES: usize = 6;

/// A fault as a message. `line_of` gives a line of a source file, to be shown with a caret; `error` styles the word
/// `fault`.
pub fn render(
    report: &FaultReport,
    program: &Program,
    line_of: &dyn Fn(Location) -> Option<String>,
    error: &dyn Fn(&str) -> String,
) -> String {
    let title = error(&format!("fault[{}]", fault_name(report.fault)));
    let mut text = format!("{title}: {}\n", message(report, program));
    place(&mut text, program, report.place().0, line_of);
    waits(&mut text, program, &report.waits);
    if let Some(help) = help(report.fault) {
        let _ = writeln!(text, "help: {help}");
    }
    text
}

/// A fault as a diagnostic, with a label for each wait of a deadlock. A fault outside of the text, such as a pool that
/// is too small for a message of the environment, has an empty location at the start of the program.
pub fn diagnostic(report: &FaultReport, program: &Program, sources: &SourceMap) -> Diagnostic<Fault> {
    let span = |location: Location| {
        let is_in_text = location.line > 0 && sources.get(FileId(location.file)).is_some();
        let place = LineColumn { line: location.line, column: location.column };
        if is_in_text { sources.origin(sources.word_at(FileId(location.file), place)) } else { Span::default() }
    };
    let mut diagnostic = Diagnostic::new(report.fault, span(report.place().0), message(report, program));
    let mut call = program.call_of(report.place().0);
    while let Some(Call { callee, location }) = call {
        diagnostic = diagnostic.label(span(*location), format!("in `{callee}`, called here"));
        call = program.call_of(*location);
    }
    for wait in &report.waits {
        let name = program.instance_name(wait.instance);
        diagnostic = diagnostic.label(span(wait.location), format!("`{name}` waits for {}", awaited(program, wait)));
    }
    match help(report.fault) {
        Some(help) => diagnostic.help(help),
        None => diagnostic,
    }
}

/// The cause of a fault with the process and the channel, on one line.
fn message(report: &FaultReport, program: &Program) -> String {
    let message = match report.fault {
        Fault::Assert => program.assert_message(report.place().0),
        _ => report.name.as_deref(),
    };
    let mut text = cause(report.fault, message);
    if report.fault == Fault::Deadlock {
        text.push_str(&blocked_text(program, report));
    } else {
        let _ = write!(text, ", in process `{}`", program.instance_name(report.instance));
    }
    if let (_, Some(channel)) = report.place() {
        let _ = write!(text, ", channel `{}`", program.channels[channel.0 as usize].name);
    }
    text
}

/// The cause of a fault, with the name of what is missing or the message of the assertion.
pub(crate) fn cause(fault: Fault, name: Option<&str>) -> String {
    match (fault, name) {
        (Fault::Extern, Some(name)) => format!("nothing supplies the extern function `{name}`"),
        (Fault::Extern, None) => "nothing supplies the extern function".to_string(),
        (Fault::Pool, Some(name)) => format!("no free object of `{name}`"),
        (Fault::Pool, None) => "no free object in the pool".to_string(),
        (Fault::Assert, Some(message)) => format!("the assertion is false: {message}"),
        (Fault::Assert, None) => "the assertion is false".to_string(),
        (Fault::Bounds, _) => "outside of the bytes or array".to_string(),
        (Fault::Div, _) => "division by zero".to_string(),
        (Fault::Overflow, _) => "arithmetic overflow".to_string(),
        (Fault::Range, _) => "a length or number does not fit its place".to_string(),
        (Fault::Memory, _) => "use of an object whose count is 0".to_string(),
        (Fault::Alt, _) => "no branch of this `alt` can ever be open".to_string(),
        // The blocked instances follow.
        (Fault::Deadlock, _) => String::new(),
    }
}

/// How to avoid a fault.
pub(crate) fn help(fault: Fault) -> Option<&'static str> {
    match fault {
        Fault::Extern => Some("give its C source or library: `--extern FILE.c`"),
        Fault::Pool => Some("guard the allocation with `when (free(T) > 0)`, or enlarge the pool"),
        Fault::Alt => Some("let the guards cover every case, or add an `else`"),
        Fault::Deadlock => Some("where a process may rest forever, write `idle in(..)` or `idle alt { .. }`"),
        Fault::Assert | Fault::Bounds | Fault::Div | Fault::Overflow | Fault::Range | Fault::Memory => None,
    }
}

/// The blocked instances, a few of them by name.
fn blocked_text(program: &Program, report: &FaultReport) -> String {
    let mut instances: Vec<u32> = report.waits.iter().map(|wait| wait.instance).collect();
    instances.dedup();
    if instances.is_empty() {
        instances.push(report.instance);
    }
    let shown: Vec<String> =
        instances.iter().take(MAX_NAMES).map(|instance| format!("`{}`", program.instance_name(*instance))).collect();
    let names = match instances.len() - shown.len() {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    };
    let verb = if instances.len() == 1 { "is" } else { "are" };
    format!("{names} {verb} blocked forever")
}

/// `file:line:column` with the line itself and a caret.
fn place(text: &mut String, program: &Program, location: Location, line_of: &dyn Fn(Location) -> Option<String>) {
    if location.line == 0 {
        return;
    }
    let margin = " ".repeat(location.line.to_string().len());
    let _ = writeln!(text, "{margin}--> {}", location_text(program, location));
    if let Some(line) = line_of(location) {
        text.push_str(&excerpt(location.line, &line, location.column));
    }
}

/// The wait-for graph: each blocked instance, the location of its wait, and its partners.
fn waits(text: &mut String, program: &Program, waits: &[WaitForEdge]) {
    let mut last = None;
    for wait in waits {
        let name = program.instance_name(wait.instance);
        if last != Some((wait.instance, wait.location)) {
            let _ = writeln!(text, "  `{name}` waits at {}", location_text(program, wait.location));
            last = Some((wait.instance, wait.location));
        }
        let _ = writeln!(text, "      for {}", awaited(program, wait));
    }
}

/// What an instance waits for.
fn awaited(program: &Program, wait: &WaitForEdge) -> String {
    let Some((channel, direction)) = wait.operation else { return "a guard that stays false".to_string() };
    if let Some(words) = waits_for_environment(program, channel, direction) {
        return words;
    }
    let verb = match direction {
        Direction::In => "write",
        Direction::Out => "read",
    };
    let channel = &program.channels[channel.0 as usize].name;
    let partners = wait.partners.iter().take(MAX_NAMES);
    let partners: Vec<String> = partners.map(|partner| format!("`{}`", program.instance_name(*partner))).collect();
    let partners = match (partners.as_slice(), wait.partners.len() - partners.len()) {
        ([], _) => return format!("a process to {verb} `{channel}`, and none can"),
        (names, 0) => names.join(" or "),
        (names, more) => format!("{} or one of {more} more", names.join(", ")),
    };
    format!("{partners} to {verb} `{channel}`")
}

/// The description of the wait of an instance that is blocked at an external channel. An open one is part of a deadlock
/// only if no object is free to hold its messages.
pub(crate) fn waits_for_environment(program: &Program, channel: ChannelId, direction: Direction) -> Option<String> {
    let channel = &program.channels[channel.0 as usize];
    match channel.boundary {
        Boundary::Internal => None,
        Boundary::ToEnvironment | Boundary::FromEnvironment => {
            let needs_object = channel.payload.iter().any(|ty| needs_object(&program.types, *ty));
            let name = &channel.name;
            Some(match (direction, needs_object) {
                (Direction::In, true) => {
                    format!("`{name}`, which the environment has closed, or for a free object to hold its messages")
                }
                (Direction::In, false) | (Direction::Out, _) => format!("`{name}`, which the environment has closed"),
            })
        }
    }
}

/// Whether values of the type may be or hold objects of a pool.
fn needs_object(types: &TypeTable, ty: TypeId) -> bool {
    match types.get(ty) {
        Type::Boxed(_) => true,
        Type::Array { element, .. } => needs_object(types, *element),
        Type::Record(id) | Type::Union(id) => {
            let parts = &types.aggregate(*id).parts;
            parts.iter().any(|(_, part)| part.is_some_and(|part| needs_object(types, part)))
        }
        Type::Error | Type::Int(_) | Type::Bool | Type::Bytes { .. } | Type::Pid(_) => false,
    }
}

/// The edges of the wait-for graph of blocked instances. `open` says whether an instance waits at an open branch, by
/// the numbers of [`branches`]; `ended` whether an instance has terminated and is no partner. An instance without an
/// open branch waits for a guard, at the location of its wait.
pub(crate) fn waits_of(
    program: &Program,
    stuck: &[(u32, Location)],
    open: &dyn Fn(u32, u32) -> bool,
    ended: &dyn Fn(u32) -> bool,
) -> Vec<WaitForEdge> {
    let mut waits: Vec<WaitForEdge> = Vec::new();
    let mut fused: Vec<(u32, &WaitForEdge)> = Vec::new();
    for (instance, place) in stuck.iter().copied() {
        let Some((process, _)) = program.process_of(instance) else { continue };
        let of_members = members(&program.processes[process.0 as usize]);
        fused.extend(of_members.filter(|(branch, _)| open(instance, *branch)).map(|(_, wait)| (instance, wait)));
        let first = waits.len();
        for (number, location, channel, direction) in operations(&program.processes[process.0 as usize]) {
            if open(instance, number) {
                let ranges = possible_partners(program, channel, direction);
                let partners = ranges.into_iter().flatten().filter(|partner| *partner != instance && !ended(*partner));
                let (operation, partners) = (Some((channel, direction)), partners.collect());
                waits.push(WaitForEdge { instance, location, operation, partners });
            }
        }
        if waits.len() == first {
            waits.push(WaitForEdge { instance, location: place, operation: None, partners: Vec::new() });
        }
    }
    edges_by_member(waits, &fused)
}

/// The waits of the members of a fused process, each with the number of the branch at which the process waits then.
pub(crate) fn members(process: &Process) -> impl Iterator<Item = (u32, &WaitForEdge)> {
    let mut next = 0;
    process.body.blocks.iter().flat_map(move |block| {
        let first = next;
        let mut members: &[(u32, WaitForEdge)] = &[];
        if let Terminator::Wait(wait) = &block.terminator {
            next += wait.branches.len() as u32;
            members = &wait.members;
        }
        members.iter().map(move |(branch, wait)| (first + branch, wait))
    })
}

/// The operations at which a process can wait: the number of the branch, its location, channel and direction.
pub(crate) fn operations(process: &Process) -> impl Iterator<Item = (u32, Location, ChannelId, Direction)> {
    let branches = branches(process).into_iter().zip(0..);
    branches.filter_map(|((_, branch), number)| match &branch.operation {
        Operation::In { channel, .. } => Some((number, branch.location, *channel, Direction::In)),
        Operation::Out { channel, .. } => Some((number, branch.location, *channel, Direction::Out)),
        Operation::After { .. } => None,
    })
}

/// The instances whose text has an operation of the other direction, process by process.
pub(crate) fn possible_partners(program: &Program, channel: ChannelId, direction: Direction) -> Vec<Range<u32>> {
    let other = match direction {
        Direction::In => Direction::Out,
        Direction::Out => Direction::In,
    };
    let processes = program.processes.iter().enumerate();
    let partners = processes
        .filter(|(_, process)| process.sites.iter().any(|site| site.channel == channel && site.direction == other));
    partners
        .map(|(index, process)| {
            let first = program.first_instance(ProcessId(index as u32));
            first..first + process.replicas
        })
        .collect()
}

/// The extern function that is called, or the pool that is allocated from, at a location.
pub(crate) fn name_at(program: &Program, fault: Fault, location: Location) -> Option<SmolStr> {
    names(program).find(|(other, place, _)| (*other, place.in_text()) == (fault, location)).map(|(_, _, name)| name)
}

/// Every possible fault of an extern function or pool, its location and the name; every assertion with a message.
pub(crate) fn names(program: &Program) -> impl Iterator<Item = (Fault, Location, SmolStr)> {
    let processes = program.processes.iter().map(|process| &process.body);
    let bodies = processes.chain(program.functions.iter().map(|function| &function.body));
    let instructions = bodies.flat_map(|body| &body.blocks).flat_map(|block| &block.instructions);
    let named = instructions.filter_map(|instruction| match &instruction.op {
        Op::CallExtern { function, .. } => {
            Some((Fault::Extern, instruction.location, program.externs[function.0 as usize].name.clone()))
        }
        Op::Allocate(pool) => Some((Fault::Pool, instruction.location, program.types.pool(*pool).name.clone())),
        _ => None,
    });
    let asserted = program.assert_messages.iter();
    named.chain(asserted.map(|(location, message)| (Fault::Assert, *location, message.clone())))
}
