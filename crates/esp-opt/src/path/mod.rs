//! Fast paths ("Fast Paths in Concurrent Programs", section 4; reference, section 10). A fast path is the code that
//! several instances, its members, execute along a specified path, merged into code of the first of them, the trigger.
//! An entry test behind the trigger's start enters it. Exits restore the state of every member, as deoptimization does,
//! and continue with the general code of the members, which remains.
//!
//! ```text
//!   path_spec            per process: statements of interest, start, path expression, exits
//!   split                splits the members' blocks at the places where a path may exit
//!   product              the members' code along the path, by the product explorer
//!   entry_facts          facts on values at the entry
//!   equivalence          specialisation on values that remain equal if they are equal at the entry
//!   iteration_limit      bounds every loop of the path
//!   back_off             bypasses a path that exits too early to pay
//!   insert               the code, its entry test, and the capture of the members
//!   manual               paths that are C functions
//!   observes_absence     refuses paths whose side exits a `pri alt` or `else` could observe
//! ```

mod back_off;
mod entry_facts;
mod equivalence;
mod insert;
mod iteration_limit;
mod manual;
mod observes_absence;
mod split;

use crate::channel_ranges::ranges_of_processes;
use crate::facts::Fact;
use crate::limits::{LimitKind, Limits, ProductLimits, code_size};
use crate::passes;
use crate::path_exit::{ExitReason, IterationCountPlacement, PathExit};
use crate::path_spec::{PathSpec, PathStatement};
use crate::placement::MemberPlacement;
use crate::product::{ExitBlock, Group, LimitExit, PathProduct, PathSchedule, trace_path};
use crate::refusal::Refusal;
use equivalence::InitialConstants;
use insert::EntryGuards;
use quaject_esp_ir::ir::{BlockId, Body, Location, ProcessId, Program, SlotId, Terminator, Value};
use smol_str::SmolStr;

pub use back_off::BackOff;

/// Options of path formation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Whether overflow is a fault.
    pub checked: bool,
    /// The limits on the product of a path.
    pub limits: Limits,
    /// Where iterations are counted.
    pub iteration_counts: IterationCountPlacement,
    /// The treatment of paths that are C functions.
    pub manual: ManualPaths,
    /// Whether a path that exits early is bypassed for a while.
    pub back_off: BackOff,
}

/// The treatment of paths that are C functions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ManualPaths {
    /// The program calls them.
    #[default]
    Call,
    /// The general code runs instead: C functions are not available.
    Omit,
}

/// The result for one specification.
#[derive(Clone, Debug)]
pub struct PathAttempt {
    /// The path's name.
    pub name: SmolStr,
    /// Its members' names.
    pub members: Vec<String>,
    /// The path, or why there is none.
    pub result: Result<FormedPath, Refusal>,
}

/// A path that was formed.
#[derive(Clone, Debug)]
pub struct FormedPath {
    /// Nodes of the product.
    pub nodes: usize,
    /// Its exits but for the iteration limit; exits are numbered as these and then `limit_exits`. Those of a C function
    /// are unknown, and numbered by its return values.
    pub exits: Vec<PathExit>,
    /// Its exits at the iteration limit.
    pub limit_exits: Vec<PathExit>,
    /// The locations of the members wherever a member is scheduled (which includes every node) and at every exit. All
    /// states of the paper's figure 6 are among them.
    pub locations: Vec<Vec<Location>>,
    /// If there is a choice on the path: the interval, in entry tests, at which it is bypassed.
    pub bypass_interval: Option<u32>,
    /// The maximal iterations of a run; a run executes at most this many times `instructions`.
    pub max_iterations: u32,
    /// Instructions of the path.
    pub instructions: usize,
    /// The C function that implements the path.
    pub function: Option<SmolStr>,
    /// Statements of `follows` and `exit` that no run reaches on the path: by member, with their locations.
    pub unreachable: Vec<(usize, Location)>,
}

/// The result of [`form_paths`].
#[derive(Clone, Debug)]
pub struct PathProgram {
    /// The program with its paths; unchanged if none was formed.
    pub program: Program,
    /// The program without paths, its blocks split as in `program`, where its blocks precede those of the paths, and
    /// its values, slots and sites have the numbers that they have here. A refinement check compares the two.
    pub without: Program,
    /// The result for each specification.
    pub path_attempts: Vec<PathAttempt>,
}

/// Paths of one program. Each is code of its trigger, which every analysis of that process traverses.
const MAX_PATHS: usize = 32;

/// Forms every path that can be formed, up to 32.
pub fn form_paths(program: &Program, specifications: &[PathSpec], options: Options) -> PathProgram {
    let (specifications, mut path_attempts) = separate_fused(program, specifications);
    let source = split::split(program, &specifications);
    let mut result = source.clone();
    let ranges = ranges_of_processes(&source, options.checked);
    for spec in &specifications {
        let formed = match result.paths.len() {
            MAX_PATHS.. => Err(Refusal::LimitExceeded { kind: LimitKind::Paths, limit: MAX_PATHS, costliest: None }),
            _ => form_path(&source, &mut result, spec, &ranges, options),
        };
        path_attempts.push(path_attempt(program, spec, formed));
    }
    if result.paths.is_empty() {
        return PathProgram { program: program.clone(), without: program.clone(), path_attempts };
    }
    PathProgram { program: result, without: source, path_attempts }
}

/// The results if no path is formed, for this reason or because its processes are fused.
pub fn refuse_all(program: &Program, specifications: &[PathSpec], refusal: &Refusal) -> Vec<PathAttempt> {
    let (specifications, mut path_attempts) = separate_fused(program, specifications);
    path_attempts.extend(specifications.iter().map(|spec| path_attempt(program, spec, Err(refusal.clone()))));
    path_attempts
}

fn path_attempt(program: &Program, spec: &PathSpec, result: Result<FormedPath, Refusal>) -> PathAttempt {
    let members = spec.members.iter().map(|member| program.instance_name(member.instance)).collect();
    PathAttempt { name: spec.name.clone(), members, result }
}

/// The specifications of processes that are not members of fused ones, and the refusals of the rest.
fn separate_fused(program: &Program, specifications: &[PathSpec]) -> (Vec<PathSpec>, Vec<PathAttempt>) {
    let fused: Vec<ProcessId> = program.processes.iter().flat_map(|process| process.members.iter().copied()).collect();
    let (mut possible, mut refused) = (Vec::new(), Vec::new());
    for spec in specifications {
        let mut processes = spec.members.iter().map(|member| process_of(program, member.instance));
        match processes.find(|process| fused.contains(process)) {
            None => possible.push(spec.clone()),
            Some(process) => refused.push(path_attempt(program, spec, Err(Refusal::AlreadyFused { process }))),
        }
    }
    (possible, refused)
}

/// Forms one path and inserts it. `ranges`: per process, the facts that always hold of its values.
fn form_path(
    source: &Program,
    result: &mut Program,
    spec: &PathSpec,
    ranges: &[Vec<Option<Fact>>],
    options: Options,
) -> Result<FormedPath, Refusal> {
    let instances: Vec<u32> = spec.members.iter().map(|member| member.instance).collect();
    let group = Group::of_instances(source, &instances, options.checked);
    let schedule = PathSchedule::new(&group, spec)?;
    if let Some(function) = &spec.function {
        return form_manual_path(source, result, &group, &schedule, spec, function, options.manual);
    }
    let limits = ProductLimits::new(&options.limits, usize::MAX);
    let mut product = trace_path(&group, &schedule, limits, options.iteration_counts)?;
    // Facts from messages remove code after the exploration; in it, they would only multiply states.
    product.entry_facts = entry_facts_of(&group, &schedule, ranges);
    let constants = initial_constants(source, &group, &schedule);
    specialise_on_equality(source, spec, &mut product, &constants, options.checked);
    let exits = number_exits(&mut product);
    let lengths = length_slots(source, &group, &schedule);
    entry_facts::refine_entry_facts(&mut product.body, &source.types, &product.entry_facts, &lengths);
    let unreachable = product.unreached.iter();
    let unreachable = unreachable.map(|(member, statement)| (*member, location_of(source, spec, *member, *statement)));
    let formed = FormedPath {
        nodes: product.nodes,
        exits: product.exits.clone(),
        limit_exits: exits[product.exits.len()..].to_vec(),
        locations: product.locations.clone(),
        bypass_interval: product.has_choice.then_some(spec.bypass_interval),
        max_iterations: spec.max_iterations,
        instructions: 0,
        function: None,
        unreachable: unreachable.collect(),
    };
    let has_choice = product.has_choice;
    let back_off_slot = match options.back_off {
        BackOff::On => {
            let ty = result.types.intern(back_off::state_type());
            Some(back_off::record_progress(&mut product.body, ty, &product.exit_blocks, &product.limit_exits))
        }
        BackOff::Off => None,
    };
    let (body, initial_count) = iteration_limit::limit_iterations(
        product.body,
        &product.limit_exits,
        &result.types,
        spec.max_iterations,
        options.iteration_counts,
    );
    let body = clean_path_body(body, result, options.checked, &product.entry_facts);
    observes_absence::refuse_observers(source, spec, &body)?;
    let instructions = code_size(&body);
    let guards = EntryGuards { has_choice, back_off: back_off_slot.map(|slot| (slot, initial_count)) };
    insert::insert(result, &group, &schedule, spec, body, guards);
    Ok(FormedPath { instructions, ..formed })
}

/// Specialises the path on values that remain equal if they are equal at its entry, if that is worth a comparison. The
/// path then has a side exit at its entry, which is refused in some programs.
fn specialise_on_equality(
    source: &Program,
    spec: &PathSpec,
    product: &mut PathProduct,
    constants: &[InitialConstants],
    checked: bool,
) {
    let specialised = equivalence::specialise(
        &product.body,
        &product.limit_exits,
        constants,
        &source.types,
        checked,
        source.memory,
        &product.entry_facts,
    );
    if let Some((body, entry)) = specialised
        && observes_absence::refuse_observers(source, spec, &body).is_ok()
    {
        let block = BlockId(product.body.blocks.len() as u32);
        let exit = PathExit { reason: ExitReason::ValuesDiffer, at: product.limit_exits[entry].at.clone() };
        product.exit_blocks.push(ExitBlock {
            block,
            iteration_count: product.limit_exits[entry].initial_count,
            exit: exit.clone(),
        });
        product.body = body;
        product.exits.push(exit);
        product.exits.sort();
    }
}

/// Numbers the exits in the code of a path: first those of `product.exits`, then the iteration limit at each node.
fn number_exits(product: &mut PathProduct) -> Vec<PathExit> {
    let mut exits = product.exits.clone();
    let at_limit = |exit: &LimitExit| PathExit { reason: ExitReason::IterationLimit, at: exit.at.clone() };
    let limits: Vec<(BlockId, PathExit)> = product.limit_exits.iter().map(|exit| (exit.stub, at_limit(exit))).collect();
    let side_exits = product.exit_blocks.iter().map(|exit_block| (exit_block.block, exit_block.exit.clone()));
    for (block, exit) in side_exits.chain(limits) {
        let known = exits.iter().position(|known| *known == exit);
        let number = known.unwrap_or_else(|| {
            exits.push(exit);
            exits.len() - 1
        });
        if let Terminator::Leave(leave) = &mut product.body.blocks[block.0 as usize].terminator {
            leave.exit = number as u32;
        }
    }
    exits
}

/// Per parameter of a path's entry block: the fact that always holds of it in its process.
fn entry_facts_of(group: &Group<'_>, schedule: &PathSchedule, ranges: &[Vec<Option<Fact>>]) -> Vec<Option<Fact>> {
    let placements = schedule.placement(group);
    let of_member = |member: &MemberPlacement| {
        let process = member.process.0 as usize;
        member.values.iter().map(move |value| ranges[process][value.0 as usize].clone()).collect::<Vec<_>>()
    };
    placements.iter().flat_map(of_member).collect()
}

/// Per parameter of a path's entry block: the constants it is initialised with in its process.
fn initial_constants(source: &Program, group: &Group<'_>, schedule: &PathSchedule) -> Vec<InitialConstants> {
    let mut constants = Vec::new();
    for member in schedule.placement(group) {
        let of_process = equivalence::initial_constants(&source.processes[member.process.0 as usize].body);
        constants.extend(member.values.iter().map(|value| of_process.get(value).cloned().unwrap_or_default()));
    }
    constants
}

/// Per parameter of a path's entry block: the slot whose length it is, if any.
fn length_slots(source: &Program, group: &Group<'_>, schedule: &PathSchedule) -> Vec<Option<SlotId>> {
    let mut lengths = Vec::new();
    for member in schedule.placement(group) {
        let body = &source.processes[member.process.0 as usize].body;
        let slot = |value: &Value| entry_facts::length_of(body, *value, member.start.0);
        let on_path = |slot: SlotId| SlotId(slot.0 + member.first_slot);
        lengths.extend(member.values.iter().map(|value| slot(value).map(on_path)));
    }
    lengths
}

/// Inserts a path that is a C function.
fn form_manual_path(
    source: &Program,
    result: &mut Program,
    group: &Group<'_>,
    schedule: &PathSchedule,
    spec: &PathSpec,
    function: &SmolStr,
    manual: ManualPaths,
) -> Result<FormedPath, Refusal> {
    match manual {
        ManualPaths::Call => {}
        ManualPaths::Omit => return Err(Refusal::ManualPath { function: function.clone() }),
    }
    let mut extended = result.clone();
    let body = manual::body(&mut extended, group, schedule, spec, function)?;
    observes_absence::refuse_observers(source, spec, &body)?;
    *result = extended;
    let instructions = code_size(&body);
    insert::insert(result, group, schedule, spec, body, EntryGuards { has_choice: false, back_off: None });
    Ok(FormedPath {
        nodes: 0,
        exits: Vec::new(),
        limit_exits: Vec::new(),
        locations: Vec::new(),
        bypass_interval: None,
        max_iterations: 0,
        instructions,
        function: Some(function.clone()),
        unreachable: Vec::new(),
    })
}

/// The location of a member's statement; for a label, that of its process.
fn location_of(program: &Program, spec: &PathSpec, member: usize, statement: PathStatement) -> Location {
    let process = &program.processes[process_of(program, spec.members[member].instance).0 as usize];
    match statement {
        PathStatement::Site(site) => process.sites[site.0 as usize].location,
        PathStatement::Label(_) => process.location,
    }
}

/// Cleans up a path's code; its slots keep their numbers.
fn clean_path_body(mut body: Body, program: &Program, checked: bool, entry_facts: &[Option<Fact>]) -> Body {
    let names: Vec<Option<SmolStr>> = body.slots.iter().map(|slot| slot.name.clone()).collect();
    // Passes drop unused slots without a name.
    body.slots.iter_mut().for_each(|slot| slot.name = Some(SmolStr::default()));
    let mut body = passes::clean_path(body, &program.types, checked, program.memory, entry_facts);
    for (slot, name) in body.slots.iter_mut().zip(names) {
        slot.name = name;
    }
    body
}

/// The process of an instance.
fn process_of(program: &Program, instance: u32) -> ProcessId {
    program.process_of(instance).expect("a specification names instances").0
}
