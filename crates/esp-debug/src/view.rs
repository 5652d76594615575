//! What a client shows at a stop: threads, stack frames, scopes and variables.

use crate::debugged_run::DebuggedRun;
use quaject_esp_check::ViolationKind;
use quaject_esp_exec::step::Control;
use quaject_esp_ir::ir::{Call, Location};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The largest number of threads that are shown: clients read all of them at every stop.
const MAX_THREADS: usize = 256;

/// Frames of one instance have consecutive numbers.
const FRAMES_PER_INSTANCE: i64 = 1 << 8;

/// The thread of an instance. A thread is never 0.
pub(crate) fn thread_of(instance: u32) -> i64 {
    i64::from(instance) + 1
}

/// The instance of a thread, if there is one.
pub(crate) fn instance_of(run: &DebuggedRun, thread: i64) -> Option<u32> {
    let instance = u32::try_from(thread.checked_sub(1)?).ok()?;
    run.instances().find(|other| *other == instance)
}

/// The instance of a stack frame, if there is one.
pub(crate) fn instance_of_frame(run: &DebuggedRun, frame: i64) -> Option<u32> {
    instance_of(run, frame / FRAMES_PER_INSTANCE)
}

/// The groups of variables of a stack frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Scope {
    Variables,
    WaitsFor,
    Run,
}

impl Scope {
    const ALL: [Scope; 3] = [Scope::Variables, Scope::WaitsFor, Scope::Run];

    fn name(self) -> &'static str {
        match self {
            Scope::Variables => "Variables",
            Scope::WaitsFor => "Waits for",
            Scope::Run => "Run",
        }
    }
}

/// The threads. If there are too many, those that take part in the run come first.
pub(crate) fn threads(run: &DebuggedRun, at: usize) -> Value {
    let acting: BTreeSet<u32> = run.stops.iter().flat_map(|stop| stop.actors.iter().copied()).collect();
    let (first, others): (Vec<u32>, Vec<u32>) = run.instances().partition(|instance| acting.contains(instance));
    let mut shown: Vec<u32> = first.into_iter().chain(others).take(MAX_THREADS).collect();
    shown.sort_unstable();
    let thread = |instance: &u32| {
        let name = run.program().instance_name(*instance);
        let status = run.status(at, *instance).map_or_else(String::new, |status| match status.control {
            Control::Ended => " (ended)".to_string(),
            Control::Waiting { .. } => {
                let waits = status.awaited_texts(run.program());
                if waits.is_empty() { String::new() } else { format!(" waits for {}", waits.join("; ")) }
            }
            Control::Running { .. } | Control::CapturedByPath { .. } => String::new(),
        });
        json!({ "id": thread_of(*instance), "name": format!("{name}{status}") })
    };
    json!({ "threads": shown.iter().map(thread).collect::<Vec<_>>() })
}

/// The stack of an instance: where it waits, and below the calls of the expanded procedures there.
pub(crate) fn stack(run: &DebuggedRun, at: usize, instance: u32) -> Value {
    let program = run.program();
    let location = run.status(at, instance).map_or_else(Location::default, |status| status.location);
    let mut places = vec![location];
    let mut callees = Vec::new();
    let mut call = program.call_of(location);
    while let Some(Call { callee, location }) = call {
        callees.push(callee.to_string());
        places.push(*location);
        call = program.call_of(*location);
    }
    callees.push(program.instance_name(instance));
    let first = thread_of(instance) * FRAMES_PER_INSTANCE;
    let frames: Vec<Value> = (first..)
        .zip(callees.iter().zip(&places))
        .take(FRAMES_PER_INSTANCE as usize)
        .map(|(id, (name, place))| frame(run, id, name, *place))
        .collect();
    json!({ "totalFrames": frames.len(), "stackFrames": frames })
}

fn frame(run: &DebuggedRun, id: i64, name: &str, place: Location) -> Value {
    match run.source_line(place) {
        Some((number, line)) => json!({
            "id": id,
            "name": name,
            "source": source(run, number),
            "line": line,
            "column": place.column,
        }),
        None => json!({ "id": id, "name": name, "line": 0, "column": 0, "presentationHint": "subtle" }),
    }
}

/// A source as a client sees it: the file on disk, or the text of the run if the file has changed.
pub(crate) fn source(run: &DebuggedRun, number: usize) -> Value {
    let source = &run.sources[number];
    match &source.path {
        Some(path) => json!({ "name": source.name, "path": path }),
        None => json!({
            "name": source.name,
            "sourceReference": number + 1,
            "origin": "as it was when the run was found",
        }),
    }
}

/// The scopes of an instance.
pub(crate) fn scopes(instance: u32) -> Value {
    let scope = |(reference, scope): (i64, &Scope)| json!({ "name": scope.name(), "variablesReference": reference, "expensive": false });
    let first = thread_of(instance) * Scope::ALL.len() as i64;
    json!({ "scopes": (first..).zip(&Scope::ALL).map(scope).collect::<Vec<_>>() })
}

/// The variables of a scope; none if there is no such scope.
pub(crate) fn variables(run: &DebuggedRun, at: usize, reference: i64) -> Option<Value> {
    let count = Scope::ALL.len() as i64;
    let instance = instance_of(run, reference.checked_div(count)?)?;
    let scope = Scope::ALL.get(usize::try_from(reference % count).ok()?)?;
    let rows = match scope {
        Scope::Variables => run.status(at, instance)?.variables.clone(),
        Scope::WaitsFor => {
            let texts = run.status(at, instance)?.awaited_texts(run.program());
            texts.into_iter().enumerate().map(|(number, text)| ((number + 1).to_string(), text)).collect()
        }
        Scope::Run => run_rows(run, at),
    };
    let row = |(name, value): (String, String)| json!({ "name": name, "value": value, "variablesReference": 0 });
    Some(json!({ "variables": rows.into_iter().map(row).collect::<Vec<_>>() }))
}

fn run_rows(run: &DebuggedRun, at: usize) -> Vec<(String, String)> {
    let mut rows = vec![("stop".to_string(), format!("{at} of {}", run.last()))];
    if at > 0 {
        rows.push(("last step".to_string(), run.stops[at].text.clone()));
    }
    if let Some(cycle) = run.cycle() {
        rows.push(("cycle".to_string(), format!("stops {cycle} to {} repeat forever", run.last())));
    }
    if at == run.last() {
        rows.push(("violation".to_string(), run.found.violation.text(run.program())));
        if let ViolationKind::Property { values, .. } = &run.found.violation {
            rows.extend(values.iter().cloned());
        }
    }
    rows
}

/// The value of a variable: `v` of an instance, or `p:v` of any.
pub(crate) fn evaluate(
    run: &DebuggedRun,
    at: usize,
    instance: Option<u32>,
    expression: &str,
) -> Result<String, String> {
    let expression = expression.trim();
    let (instance, name) = match expression.rsplit_once(':') {
        Some((process, name)) => {
            let named = run.instances().find(|other| run.program().instance_name(*other) == process);
            (Some(named.ok_or_else(|| format!("there is no instance `{process}`"))?), name)
        }
        None => (instance, expression),
    };
    let instance = instance.ok_or("a variable is `PROCESS:NAME`, or `NAME` in a stack frame")?;
    let status = run.status(at, instance).ok_or("the instance has no configuration here")?;
    let found = status.variables.iter().find(|(other, _)| other == name);
    found.map(|(_, value)| value.clone()).ok_or_else(|| {
        let known: Vec<&str> = status.variables.iter().map(|(name, _)| name.as_str()).collect();
        let process = run.program().instance_name(instance);
        match &known[..] {
            [] => format!("`{process}` has no variables here"),
            known => format!("`{process}` has no variable `{name}` here; it has `{}`", known.join("`, `")),
        }
    })
}
