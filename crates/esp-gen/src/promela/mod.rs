//! The Promela back end: one `proctype` per process and rendezvous channels, for Spin as an independent second engine,
//! and to be read. Names are those of the program; source locations are comments. Emits text, executes nothing.
//!
//! ```text
//!   plan         names, channels, limits            path_plan        names and numbers of fast paths
//!   memory       values as numbers                  constants        constants, which are not in the state
//!   value_usage  which values are variables         statement        instructions
//!                                                   message          branches: ports, messages, patterns
//!   scope        names and places of one body       process          waits, branches, the whole `proctype`
//!   expression   ESP's arithmetic in C's `int`      property         LTL
//!   paths        members of fast paths              monitor          refinement: visible actions of a specification
//!   observable   names of visible actions           label_positions  labels on the paths to waits
//!   trail        a run of Spin as steps of the program
//!
//!   scope/symbolic           guards as one expression
//!   process/macro_step       code between two waits: one `atomic` sequence
//!   process/path_transitions entries and exits of fast paths
//! ```
//!
//! As in `step`, a state in which an instance is about to execute local code and one in which it waits are both states
//! of the model: Spin stores the states of the program.

mod constants;
mod expression;
mod label_positions;
mod lines;
mod memory;
mod message;
mod monitor;
mod names;
mod observable;
mod path_plan;
mod paths;
mod plan;
mod process;
mod property;
mod scope;
mod statement;
pub mod trail;
mod value_usage;

pub use lines::{Line, Mark};
pub use property::Property;

use crate::Checks;
use lines::Lines;
use plan::Plan;
use quaject_esp_exec::observer::Observer;
use quaject_esp_ir::ir::{Fault, Location, ProcessId, Program};
use quaject_esp_ir::model::{ModelProgram, Role, Scope, Values};
use quaject_esp_ir::text::location_text;
use quaject_esp_ir::text::type_name;
use quaject_esp_syntax::diagnostics::Code;
use trail::ControlStates;

/// A model for Spin.
#[derive(Clone, Debug)]
pub struct Model {
    /// Its text.
    pub text: String,
    /// The meaning of each line, the first line first.
    pub lines: Vec<Line>,
    /// Where the model can do more than the program.
    pub approximations: Vec<Approximation>,
    /// Properties, in order; each is an `ltl` block of the text.
    pub properties: Vec<Property>,
    /// Whether Spin's partial-order reduction is sound for it.
    pub reduction: Reduction,
}

/// Whether Spin's partial-order reduction is used for a model.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reduction {
    /// Used.
    On,
    /// Not used, because it is unsound or not wanted: the program can exit, has fast paths, or is compared with another
    /// program.
    Off,
}

/// A place at which the model can do more than the program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Approximation {
    /// The place.
    pub location: Location,
    /// What it does there.
    pub what: &'static str,
}

/// A part of a program that Promela cannot express.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// The code of the diagnostic: E0804, or E0802 for a property with an unknown name.
    pub code: Code,
    /// The place in the program.
    pub location: Location,
    /// The model's property it is about, by number, if it is about one.
    pub property: Option<usize>,
    /// What it is.
    pub message: String,
    /// What to do instead.
    pub help: String,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.message)
    }
}

impl std::error::Error for Refusal {}

/// A program as a model that is open to any environment.
pub fn open_model(program: &Program) -> ModelProgram {
    ModelProgram {
        name: None,
        scope: Scope::All,
        program: program.clone(),
        roles: vec![Role::Explored; program.processes.len()],
        channels: program.channels.len() as u32,
        externs: program.externs.len() as u32,
        bounds: vec![None; program.channels.len()],
        messages: program.channels.iter().map(|channel| vec![Values::All; channel.payload.len()]).collect(),
        results: vec![Values::All; program.externs.len()],
        abstractions: Vec::new(),
        properties: Vec::new(),
        undecided_times: Vec::new(),
        initial_values: Vec::new(),
    }
}

/// The largest number of variables for one value in Promela.
const MAX_LEAVES: usize = 4096;

/// Writes a model, or lists what Promela cannot express.
///
/// With a `specification`, assertions check that each visible action of the model is one of the specification.
///
/// # Errors
///
/// The parts of the program that Promela cannot express.
pub fn generate(model: &ModelProgram, checks: Checks, specification: Option<&Observer>) -> Result<Model, Vec<Refusal>> {
    write_model(model, checks, specification, &Exclusions::default())
}

/// Violations that a search leaves out, so that it finds others.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Exclusions {
    /// Faults, with their locations: a run ends there without a fault, as by `exit`.
    pub faults: Vec<(Fault, Location)>,
    /// The control states of deadlocks, in the model without these faults: its processes wait there forever without a
    /// violation.
    pub deadlocks: Vec<ControlStates>,
}

/// As [`generate`], without these violations.
///
/// # Errors
///
/// As [`generate`].
pub fn generate_without(model: &ModelProgram, checks: Checks, exclusions: &Exclusions) -> Result<Model, Vec<Refusal>> {
    write_model(model, checks, None, exclusions)
}

fn write_model(
    model: &ModelProgram,
    checks: Checks,
    specification: Option<&Observer>,
    exclusions: &Exclusions,
) -> Result<Model, Vec<Refusal>> {
    // Before the plan, which lists the leaves of each type.
    if let Some(ty) = memory::wider_than(&model.program.types, MAX_LEAVES) {
        let location = memory::first_user(&model.program, MAX_LEAVES);
        let message = format!("a `{}` would be more than {MAX_LEAVES} variables", type_name(&model.program, ty));
        let help = "shorten the type in the model: `abstract drop` what it carries".to_string();
        return Err(vec![Refusal { code: Code::E0804, location, property: None, message, help }]);
    }
    let mut plan = Plan::new(model, checks, &exclusions.faults);
    path_plan::plan_paths(&mut plan);
    plan.add_senders();
    plan.check_limits();
    if let Some(observer) = specification {
        plan.plan_monitor(observer);
    }
    let plan = plan;
    if !plan.refusals.borrow().is_empty() {
        return Err(plan.refusals.into_inner());
    }
    let written: Vec<process::ProcessText> =
        (0..plan.program.processes.len()).map(|index| process::write(&plan, ProcessId(index as u32))).collect();
    let properties = property::translate(&plan, &written);
    let mut body = Lines::default();
    globals(&plan, &written, &mut body);
    let mut processes = Lines::default();
    for process in written {
        processes.plain("");
        processes.append(process.lines);
    }
    monitor::declare(&plan, &processes, &mut body);
    let refusals = plan.refusals.borrow().clone();
    if !refusals.is_empty() {
        return Err(refusals);
    }
    body.append(processes);
    monitor::declare_quiescence(&plan, &mut body);
    if !properties.is_empty() {
        stutter_process(&mut body);
    }
    if !exclusions.deadlocks.is_empty() {
        excluded_deadlocks(&exclusions.deadlocks, &mut body);
    }
    property::write(&properties, &mut body);
    let mut lines = Lines::default();
    header(&plan, &mut lines);
    for text in body.macros() {
        text.lines().for_each(|line| lines.plain(line));
    }
    lines.append(body);
    // A column would say little more, and change from one statement to the next.
    let place = |location| match location_text(plan.program, Location { column: 0, ..location }) {
        text if text.is_empty() => text,
        text => text.trim_end_matches(":0").to_string(),
    };
    let text = lines.print(&place);
    let reduction = if plan.exits || !plan.program.paths.is_empty() || plan.monitor.is_some() {
        Reduction::Off
    } else {
        Reduction::On
    };
    let approximations = plan.approximations.into_inner();
    Ok(Model { text, lines: lines.lines, approximations, properties, reduction })
}

/// The macro, for `spin -D`, with which a finite run is extended by stuttering. Without it Spin finds no finite run in
/// a search for fair ones.
pub const STUTTER: &str = "STUTTER";

/// The variable that is true once the environment sends an instance nothing more; set only where finite runs are
/// extended by stuttering.
const INPUT_ENDED: &str = "input_ended";

fn stutter_process(lines: &mut Lines) {
    lines.plain("");
    for text in [
        format!("#ifdef {STUTTER}").as_str(),
        "active proctype stutter() {",
        "  do",
        "  :: timeout",
        "  od",
        "}",
        "#endif",
    ] {
        lines.plain(text);
    }
}

/// The macro, for `spin -D`, without which excluded deadlocks are violations: only a search for violations of safety
/// excludes them.
pub const EXCLUDE_DEADLOCKS: &str = "EXCLUDE_DEADLOCKS";

/// A process that moves, without effect, in the excluded deadlocks alone: they are not the ends of runs then.
fn excluded_deadlocks(deadlocks: &[ControlStates], lines: &mut Lines) {
    lines.plain("");
    lines.plain(format!("#ifdef {EXCLUDE_DEADLOCKS}"));
    lines.plain("active proctype excluded_deadlocks() {");
    lines.plain("end_excluded:");
    lines.plain("  do");
    for ControlStates(states) in deadlocks {
        let at = |(instance, state): (usize, &u32)| format!(" && pc_value({instance}) == {state}");
        lines.plain(format!("  :: timeout{}", states.iter().enumerate().map(at).collect::<String>()));
    }
    lines.plain("  od");
    lines.plain("}");
    lines.plain("#endif");
}

fn header(plan: &Plan<'_>, lines: &mut Lines) {
    let what = match &plan.model.scope {
        Scope::All => "all processes".to_string(),
        Scope::Process(process) => format!("process {}", plan.program.processes[process.0 as usize].name),
        Scope::Slice(processes) => {
            let names: Vec<&str> =
                processes.iter().map(|id| plan.program.processes[id.0 as usize].name.as_str()).collect();
            format!("slice {}", names.join(", "))
        }
    };
    let file = plan.program.files.first().map_or("a program", String::as_str);
    lines.plain(format!("/* {file}, {what}. Made by `qj build --emit promela`."));
    lines.plain("   spin -a THIS.pml && cc -O2 -fwrapv -o pan pan.c && ./pan */");
}

fn globals(plan: &Plan<'_>, written: &[process::ProcessText], lines: &mut Lines) {
    let used = |name: &str| written.iter().any(|process| process.lines.mentions(name));
    for (channel, data) in plan.channels.iter().zip(&plan.program.channels) {
        if !used(&channel.name) {
            continue;
        }
        let mut fields: Vec<&str> = channel.fields.iter().map(memory::Kind::declared).collect();
        if fields.is_empty() {
            fields.push("bool");
        }
        let three = if channel.guarded { "[3]" } else { "" };
        let text = format!("chan {}{three} = [0] of {{ {} }};", channel.name, fields.join(", "));
        lines.push(Mark::None, data.location, text);
    }
    for sent in plan.channels.iter().filter_map(|channel| channel.sent.as_ref()).filter(|sent| used(sent)) {
        lines.plain(format!("int {sent};"));
    }
    for (name, pool) in plan.pools.iter().zip(plan.program.types.pools()) {
        if !used(&format!("{name}_free")) && !used(&format!("{name}_count")) {
            continue;
        }
        lines.plain(format!("byte {name}_free = {};", pool.capacity));
        lines.plain(scope::declaration(&memory::Kind::Tag, &format!("{name}_count"), pool.capacity));
        for leaf in memory::leaves(&plan.program.types, pool.content) {
            let count = leaf.count.saturating_mul(pool.capacity);
            lines.plain(scope::declaration(&leaf.kind, &format!("{name}{}", leaf.suffix), count));
        }
    }
    for (constant, data) in plan.constants.iter().zip(&plan.program.constants) {
        for declaration in constant.declarations(&plan.program.types, data.ty) {
            if used(&declaration.name) {
                lines.plain(declaration.text);
            }
        }
    }
    captured(plan, written, lines);
    if plan.exits {
        lines.plain("byte over;");
    }
}

/// The locations of members of fast paths, and their variables.
fn captured(plan: &Plan<'_>, written: &[process::ProcessText], lines: &mut Lines) {
    let Some(declarations) = plan.paths.declarations(plan.program) else { return };
    declarations.into_iter().for_each(|declaration| lines.plain(declaration));
    for id in plan.paths.captured.keys() {
        let scope = plan.member_scope(*id).expect("it is captured");
        for (name, declaration) in scope::declarations(&scope) {
            if written.iter().any(|process| process.lines.mentions(&name)) {
                lines.plain(declaration);
            }
        }
    }
}
