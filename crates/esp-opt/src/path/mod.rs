//! Fast paths ("Fast Paths in Concurrent Programs", section 4; reference, section 10): what several instances do along
//! a specified path becomes code of the first of them, entered by a test behind its start and left by exits and aborts
//! that give every instance its values back. The processes stay as they are, behind it, always.
//!
//! ```text
//!   specification, per process   statements, start, follows, exit
//!   split      blocks of the members end where a path may be left
//!   product    the members' code along the path, on the product explorer
//!   entry      what is known of values when it begins
//!   alike      values that stay equal if they are when it begins
//!   bound      no loop of it runs for ever
//!   back_off   whether it was left too early to pay, and what comes of that
//!   insert     the code, its entry test, and who is taken along
//! ```

mod alike;
mod back_off;
mod bound;
mod entry;
mod insert;
mod manual;
mod passed_by;
mod split;

use crate::facts::Fact;
use crate::limits::{LimitKind, Limits, ProductLimits, code_size};
use crate::messages::ranges_of_all;
use crate::passes;
use crate::path_exit::{ExitReason, IterationCountPlacement, PathExit};
use crate::path_spec::{PathSpec, ProgramPoint};
use crate::placement::MemberPlacement;
use crate::product::{Course, Followed, Group, Leaving, NodeEnd, follow};
use crate::refusal::Refusal;
use quaject_esp_ir::ir::{BlockId, Body, Location, ProcessId, Program, SlotId, Terminator, TypeTable, Value};
use smol_str::SmolStr;

pub use back_off::BackOff;

/// How paths are made.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Whether overflow is a fault.
    pub checked: bool,
    /// How large the product of a path may become.
    pub limits: Limits,
    /// Where runs are counted.
    pub iteration_counts: IterationCountPlacement,
    /// What becomes of paths that are C functions.
    pub manual: Manual,
    /// What comes of a path that is left early again and again.
    pub back_off: BackOff,
}

/// What becomes of paths that are C functions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Manual {
    /// The program calls them.
    #[default]
    Called,
    /// The general path runs: there are no C functions.
    LeftOut,
}

/// What became of a specification.
#[derive(Clone, Debug)]
pub struct Extraction {
    /// The path's name.
    pub name: SmolStr,
    /// Its members' names.
    pub members: Vec<String>,
    /// What was made, or why nothing was.
    pub result: Result<Made, Refusal>,
}

/// A path that was made.
#[derive(Clone, Debug)]
pub struct Made {
    /// Nodes of the product.
    pub nodes: usize,
    /// Where it is left, but for the bound: ways out are numbered as these and `limit_exits` behind them. Of a C function
    /// nothing is known, but that its ways out are numbered as what it returns.
    pub exits: Vec<PathExit>,
    /// Where it is left because of the bound.
    pub limit_exits: Vec<PathExit>,
    /// Where members stand when one goes on: every state that the paper's figure 6 draws is among them.
    pub states: Vec<Vec<Location>>,
    /// If there is a choice on the path: every how many entries it is declined.
    pub decline: Option<u32>,
    /// Most iterations of a run, and most instructions of one iteration: a run ends after their product.
    pub bound: u32,
    /// Instructions of the path.
    pub instructions: usize,
    /// The C function that is the path: nothing is known of what it does.
    pub function: Option<SmolStr>,
    /// Statements of `follows` and `exit` that no run comes to on the path: by member, with their places.
    pub unreached: Vec<(usize, Location)>,
}

/// What [`extract`] makes.
#[derive(Clone, Debug)]
pub struct Extracted {
    /// The program with its paths; as it was, if none was made.
    pub program: Program,
    /// The program without paths, its blocks cut as in `program`, where they come first and values, slots and sites
    /// have the same numbers: what the paths are to be compared with.
    pub without: Program,
    /// What became of each specification.
    pub extractions: Vec<Extraction>,
}

/// Paths of one program: each is code of its trigger, which whoever looks at the trigger walks for each of them.
const MOST_PATHS: usize = 32;

/// Makes every path that can be made, but no more than 32.
pub fn extract(program: &Program, specifications: &[PathSpec], options: Options) -> Extracted {
    let (specifications, mut extractions) = possible(program, specifications);
    let source = split::split(program, &specifications);
    let mut result = source.clone();
    let known = ranges_of_all(&source, options.checked);
    for specification in &specifications {
        let made = match result.paths.len() {
            MOST_PATHS.. => Err(Refusal::LimitExceeded { kind: LimitKind::Paths, limit: MOST_PATHS, costliest: None }),
            _ => one(&source, &mut result, specification, &known, options),
        };
        let members = specification.members.iter().map(|part| program.instance_name(part.instance)).collect();
        extractions.push(Extraction { name: specification.name.clone(), members, result: made });
    }
    if result.paths.is_empty() {
        return Extracted { program: program.clone(), without: program.clone(), extractions };
    }
    Extracted { program: result, without: source, extractions }
}

/// What is said of specifications of which none is made, for this reason or as their processes are fused.
pub fn refused(program: &Program, specifications: &[PathSpec], refusal: &Refusal) -> Vec<Extraction> {
    let (specifications, mut extractions) = possible(program, specifications);
    extractions.extend(specifications.iter().map(|specification| {
        let members = specification.members.iter().map(|part| program.instance_name(part.instance)).collect();
        Extraction { name: specification.name.clone(), members, result: Err(refusal.clone()) }
    }));
    extractions
}

/// The specifications of processes that are not parts of others, and what is said of the rest.
fn possible(program: &Program, specifications: &[PathSpec]) -> (Vec<PathSpec>, Vec<Extraction>) {
    let fused: Vec<ProcessId> = program.processes.iter().flat_map(|process| process.members.iter().copied()).collect();
    let (mut possible, mut refused) = (Vec::new(), Vec::new());
    for specification in specifications {
        let mut processes = specification.members.iter().map(|part| process_of(program, part.instance));
        match processes.find(|process| fused.contains(process)) {
            None => possible.push(specification.clone()),
            Some(process) => {
                let members = specification.members.iter().map(|part| program.instance_name(part.instance)).collect();
                let result = Err(Refusal::AlreadyFused { process });
                refused.push(Extraction { name: specification.name.clone(), members, result });
            }
        }
    }
    (possible, refused)
}

/// Makes one path; `known` is what is always so of the values of each process.
fn one(
    source: &Program,
    result: &mut Program,
    of: &PathSpec,
    known: &[Vec<Option<Fact>>],
    options: Options,
) -> Result<Made, Refusal> {
    let instances: Vec<u32> = of.members.iter().map(|part| part.instance).collect();
    let group = Group::of_instances(source, &instances, options.checked);
    let course = Course::new(&group, of)?;
    if let Some(function) = &of.function {
        return manual(source, result, &group, &course, of, function, options.manual);
    }
    let bounds = ProductLimits::new(&options.limits, usize::MAX);
    let mut followed = follow(&group, &course, bounds, options.iteration_counts)?;
    // What is known of messages removes code after the exploration; before, it would only multiply states.
    followed.given = given(&group, &course, known);
    let starts = starts(source, &group, &course);
    let compared =
        alike::compare(&followed.body, &followed.ends, &starts, &source.types, options.checked, &followed.given);
    // It is left where it begins then, which is not always possible.
    if let Some((body, end)) = compared
        && passed_by::passed_by(source, of, &body).is_ok()
    {
        let block = BlockId(followed.body.blocks.len() as u32);
        let exit = PathExit { reason: ExitReason::ValuesDiffer, at: followed.ends[end].at.clone() };
        followed.leaves.push(Leaving { block, count: followed.ends[end].first_count, exit: exit.clone() });
        followed.body = body;
        followed.exits.push(exit);
        followed.exits.sort();
    }
    let ways_out = number(&mut followed);
    entry::sharpen(&mut followed.body, &source.types, &followed.given, &lengths(source, &group, &course));
    let made = Made {
        nodes: followed.nodes,
        exits: followed.exits.clone(),
        limit_exits: ways_out[followed.exits.len()..].to_vec(),
        states: followed.states.clone(),
        decline: followed.has_choice.then_some(of.bypass_interval),
        bound: of.max_iterations,
        instructions: 0,
        function: None,
        unreached: followed
            .unreached
            .iter()
            .map(|(member, point)| (*member, place(source, of, *member, *point)))
            .collect(),
    };
    let has_choice = followed.has_choice;
    let notes = match options.back_off {
        BackOff::On => {
            let ty = result.types.intern(back_off::notes());
            Some(back_off::note(&mut followed.body, ty, &followed.leaves, &followed.ends))
        }
        BackOff::Off => None,
    };
    let (body, bound) =
        bound::bound(followed.body, &followed.ends, &result.types, of.max_iterations, options.iteration_counts);
    let body = clean(body, &result.types, options.checked, &followed.given);
    passed_by::passed_by(source, of, &body)?;
    let instructions = code_size(&body);
    insert::insert(
        result,
        &group,
        &course,
        of,
        body,
        insert::Refusals { has_choice, notes: notes.map(|slot| (slot, bound)) },
    );
    Ok(Made { instructions, ..made })
}

/// Numbers the ways out in the code of a path: those that are known, then the bound at each node.
fn number(followed: &mut Followed) -> Vec<PathExit> {
    let mut ways_out = followed.exits.clone();
    let bound = |end: &NodeEnd| PathExit { reason: ExitReason::IterationLimit, at: end.at.clone() };
    let bounds: Vec<(BlockId, PathExit)> = followed.ends.iter().map(|end| (end.stub, bound(end))).collect();
    let others = followed.leaves.iter().map(|leaving| (leaving.block, leaving.exit.clone()));
    for (block, exit) in others.chain(bounds) {
        let known = ways_out.iter().position(|known| *known == exit);
        let number = known.unwrap_or_else(|| {
            ways_out.push(exit);
            ways_out.len() - 1
        });
        if let Terminator::Leave(leave) = &mut followed.body.blocks[block.0 as usize].terminator {
            leave.exit = number as u32;
        }
    }
    ways_out
}

/// Per parameter of a path's entry block: what is always so of it in its process.
fn given(group: &Group<'_>, course: &Course, known: &[Vec<Option<Fact>>]) -> Vec<Option<Fact>> {
    let placed = group.placement(course);
    let of_member = |member: &MemberPlacement| {
        let process = member.process.0 as usize;
        member.values.iter().map(move |value| known[process][value.0 as usize].clone()).collect::<Vec<_>>()
    };
    placed.iter().flat_map(of_member).collect()
}

/// Per parameter of a path's entry block: the constants it begins with in its process.
fn starts(source: &Program, group: &Group<'_>, course: &Course) -> Vec<alike::Starts> {
    let mut starts = Vec::new();
    for member in group.placement(course) {
        let of_process = alike::starts(&source.processes[member.process.0 as usize].body);
        starts.extend(member.values.iter().map(|value| of_process.get(value).cloned().unwrap_or_default()));
    }
    starts
}

/// Per parameter of a path's entry block: the slot it is the length of, if it is one of some slot.
fn lengths(source: &Program, group: &Group<'_>, course: &Course) -> Vec<Option<SlotId>> {
    let mut lengths = Vec::new();
    for member in group.placement(course) {
        let body = &source.processes[member.process.0 as usize].body;
        let slot = |value: &Value| entry::length_of(body, *value, member.start.0);
        let here = |slot: SlotId| SlotId(slot.0 + member.first_slot);
        lengths.extend(member.values.iter().map(|value| slot(value).map(here)));
    }
    lengths
}

/// A path that is a C function.
fn manual(
    source: &Program,
    result: &mut Program,
    group: &Group<'_>,
    course: &Course,
    of: &PathSpec,
    function: &SmolStr,
    manual: Manual,
) -> Result<Made, Refusal> {
    match manual {
        Manual::Called => {}
        Manual::LeftOut => return Err(Refusal::ManualPath { function: function.clone() }),
    }
    let mut extended = result.clone();
    let body = manual::body(&mut extended, group, course, of, function)?;
    passed_by::passed_by(source, of, &body)?;
    *result = extended;
    let instructions = code_size(&body);
    insert::insert(result, group, course, of, body, insert::Refusals { has_choice: false, notes: None });
    let (exits, limit_exits, states, unreached) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let function = Some(function.clone());
    Ok(Made { nodes: 0, exits, limit_exits, states, decline: None, bound: 0, instructions, function, unreached })
}

/// Where a statement of a part stands; of a label, its process.
fn place(program: &Program, of: &PathSpec, member: usize, point: ProgramPoint) -> Location {
    let process = &program.processes[process_of(program, of.members[member].instance).0 as usize];
    match point {
        ProgramPoint::Site(site) => process.sites[site.0 as usize].location,
        ProgramPoint::Label(_) => process.location,
    }
}

/// Tidies a path's code; its slots keep their numbers.
fn clean(mut body: Body, types: &TypeTable, checked: bool, given: &[Option<Fact>]) -> Body {
    let names: Vec<Option<SmolStr>> = body.slots.iter().map(|slot| slot.name.clone()).collect();
    // Passes drop slots that have no name and are not used.
    body.slots.iter_mut().for_each(|slot| slot.name = Some(SmolStr::default()));
    let mut body = passes::clean_path(body, types, checked, given);
    for (slot, name) in body.slots.iter_mut().zip(names) {
        slot.name = name;
    }
    body
}

/// The process of an instance.
fn process_of(program: &Program, instance: u32) -> ProcessId {
    program.process_of(instance).expect("a specification names instances").0
}
