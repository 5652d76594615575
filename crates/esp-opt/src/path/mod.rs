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
pub(crate) mod split;

use crate::facts::Fact;
use crate::fuse::{Bounds, Limits, Measure, Refusal};
use crate::messages::ranges_of_all;
use crate::passes;
use crate::product::{Course, Followed, Group, Leaving, NodeEnd, follow};
use quaject_esp_exec::profile::PathRuns;
use quaject_esp_ir::ir::{
    BlockId, Body, LabelId, Location, ProcessId, Program, SiteId, SlotId, Terminator, TypeTable, Value,
};
use quaject_esp_ir::text::location_text;
use smol_str::SmolStr;

pub use back_off::BackOff;
pub use bound::Cuts;
pub(crate) use insert::Placed;

/// A fast path as it is asked for.
#[derive(Clone, Debug)]
pub struct Specification {
    /// Its name.
    pub name: SmolStr,
    /// Most iterations of a run.
    pub bound: u32,
    /// Every how many tests a path with a choice is declined.
    pub decline: u32,
    /// Most attempts to get every member in place.
    pub settle: u32,
    /// Its members, the trigger first.
    pub members: Vec<Part>,
    /// The C function that is the path, if it is not to be made of the members' code.
    pub function: Option<SmolStr>,
    /// Where it is written.
    pub location: Location,
}

/// What a specification says of one instance.
#[derive(Clone, Debug)]
pub struct Part {
    /// The instance.
    pub instance: u32,
    /// Its interesting statements.
    pub statements: Vec<Point>,
    /// Where it starts.
    pub start: Element,
    /// The words in between; absent: the empty word.
    pub follows: Option<Regex>,
    /// Where it ends.
    pub exit: Vec<Element>,
}

/// A statement of a process.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Point {
    /// A channel operation.
    Site(SiteId),
    /// A label.
    Label(LabelId),
}

/// A statement and what has to hold there.
#[derive(Clone, Debug)]
pub struct Element {
    /// The statement.
    pub point: Point,
    /// The number of its predicate in the program.
    pub test: Option<u32>,
    /// The partner: index into [`Specification::members`] and its operation.
    pub peer: Option<(usize, SiteId)>,
    /// Who runs next: index into [`Specification::members`].
    pub yield_to: Option<usize>,
}

/// A regular expression over elements.
#[derive(Clone, Debug)]
pub enum Regex {
    /// One element.
    Element(Element),
    /// One after the other.
    Sequence(Vec<Regex>),
    /// One of them.
    Choice(Vec<Regex>),
    /// At least, at most (none: any number).
    Repeat(Box<Regex>, u64, Option<u64>),
}

/// How paths are made.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Whether overflow is a fault.
    pub checked: bool,
    /// How large the product of a path may become.
    pub limits: Limits,
    /// Where runs are counted.
    pub cuts: Cuts,
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

/// A place where a path is left: where everybody stands, and why.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Exit {
    /// Why; the normal exit, or what kind of abort.
    pub why: Why,
    /// Per member: where in the text it goes on.
    pub at: Vec<Location>,
}

/// Why a path is left.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Why {
    /// Everybody is at its end.
    Normal,
    /// An interesting statement of this member that the path does not go on with.
    Deviation(usize),
    /// A predicate of this member is false.
    Predicate(usize),
    /// The world is not ready for this member.
    World(usize),
    /// This member would fault, yield, end, or end the program.
    Stops(usize),
    /// Nobody can run.
    Stuck,
    /// It was asked for where this member goes on: [`Cuts::Forced`].
    Forced(usize),
    /// Values that would have stayed equal differ where the path begins.
    Unequal,
    /// It has gone as many iterations as it may.
    Bound,
}

impl Why {
    /// In words.
    pub fn text(self, names: &[String]) -> String {
        match self {
            Why::Normal => "exit".to_string(),
            Why::Deviation(member) => format!("abort: {} leaves the path", names[member]),
            Why::Predicate(member) => format!("abort: a predicate of {} is false", names[member]),
            Why::World(member) => format!("abort: the world is not ready for {}", names[member]),
            Why::Stops(member) => format!("abort: {} faults, yields or ends", names[member]),
            Why::Stuck => "abort: nobody can run".to_string(),
            Why::Forced(member) => format!("abort: asked for, at {}", names[member]),
            Why::Unequal => "abort: values differ that the path takes for equal".to_string(),
            Why::Bound => "abort: the bound is reached".to_string(),
        }
    }
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
    /// Where it is left, but for the bound: ways out are numbered as these and `bounds` behind them. Of a C function
    /// nothing is known, but that its ways out are numbered as what it returns.
    pub exits: Vec<Exit>,
    /// Where it is left because of the bound.
    pub bounds: Vec<Exit>,
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

impl Extraction {
    /// What is in vain in it, for people: one line for each statement that is never come to.
    pub fn in_vain(&self, program: &Program) -> Vec<String> {
        let Ok(Made { unreached, .. }) = &self.result else { return Vec::new() };
        let line = |(member, at): &(usize, Location)| {
            let (name, of) = (&self.name, &self.members[*member]);
            format!("fast path {name}: no run of it comes to the statement of {of} at {}", location_text(program, *at))
        };
        unreached.iter().map(line).collect()
    }

    /// What a run has done with it, for people: how often it was entered, and where it was left how often.
    pub fn told(&self, runs: &PathRuns) -> String {
        let PathRuns { entered, put_off, refused, left } = runs;
        let mut text = format!(
            "fast path {}: entered {entered} times, put off {put_off} times, refused {refused} times, as some process \
             was elsewhere",
            self.name
        );
        for (number, count) in left.iter().enumerate().filter(|(_, count)| **count > 0) {
            let exit = self.result.as_ref().ok().and_then(|made| made.exits.iter().chain(&made.bounds).nth(number));
            let way = match exit {
                Some(Exit { why, at }) => {
                    let lines: Vec<String> = at.iter().map(|at| at.line.to_string()).collect();
                    format!("{} ({})", why.text(&self.members), lines.join(", "))
                }
                None => format!("{number} returned"),
            };
            text += &format!("\n  left {count} times: {way}");
        }
        text
    }

    /// What became of it, for people.
    pub fn text(&self, program: &Program) -> String {
        let names = self.members.join(", ");
        match &self.result {
            Ok(Made { function: Some(function), .. }) => {
                format!("fast path {}: {names}: the C function `{function}`, of which nothing is known", self.name)
            }
            Ok(made) => {
                let Made { nodes, bound, instructions, .. } = made;
                let mut text =
                    format!("fast path {}: {names}: {nodes} states, {instructions} instructions\n", self.name);
                text += &format!("  a run ends after at most {bound} iterations of its loops");
                text += &format!(", {} steps\n", u64::from(*bound).saturating_mul(*instructions as u64));
                if let Some(decline) = made.decline {
                    text += &format!("  it makes a choice: every {decline}th entry is declined\n");
                }
                for (why, places) in made.ways_out() {
                    text += &format!("  {}: ({})\n", why.text(&self.members), places.join("), ("));
                }
                text.pop();
                text
            }
            Err(refusal) => format!("no fast path {}: {}", self.name, refusal.text(program)),
        }
    }
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
pub fn extract(program: &Program, specifications: &[Specification], options: Options) -> Extracted {
    let (specifications, mut extractions) = possible(program, specifications);
    let source = split::split(program, &specifications);
    let mut result = source.clone();
    let known = ranges_of_all(&source, options.checked);
    for specification in &specifications {
        let made = match result.paths.len() {
            MOST_PATHS.. => Err(Refusal::TooLarge { measure: Measure::Paths, limit: MOST_PATHS, costliest: None }),
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
pub fn refused(program: &Program, specifications: &[Specification], refusal: &Refusal) -> Vec<Extraction> {
    let (specifications, mut extractions) = possible(program, specifications);
    extractions.extend(specifications.iter().map(|specification| {
        let members = specification.members.iter().map(|part| program.instance_name(part.instance)).collect();
        Extraction { name: specification.name.clone(), members, result: Err(refusal.clone()) }
    }));
    extractions
}

/// The specifications of processes that are not parts of others, and what is said of the rest.
fn possible(program: &Program, specifications: &[Specification]) -> (Vec<Specification>, Vec<Extraction>) {
    let fused: Vec<ProcessId> = program.processes.iter().flat_map(|process| process.members.iter().copied()).collect();
    let (mut possible, mut refused) = (Vec::new(), Vec::new());
    for specification in specifications {
        let mut processes = specification.members.iter().map(|part| process_of(program, part.instance));
        match processes.find(|process| fused.contains(process)) {
            None => possible.push(specification.clone()),
            Some(process) => {
                let members = specification.members.iter().map(|part| program.instance_name(part.instance)).collect();
                let result = Err(Refusal::Fused { process });
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
    of: &Specification,
    known: &[Vec<Option<Fact>>],
    options: Options,
) -> Result<Made, Refusal> {
    let instances: Vec<u32> = of.members.iter().map(|part| part.instance).collect();
    let group = Group::of_instances(source, &instances, options.checked);
    let course = Course::new(&group, of)?;
    if let Some(function) = &of.function {
        return manual(source, result, &group, &course, of, function, options.manual);
    }
    let bounds = Bounds::new(&options.limits, usize::MAX);
    let mut followed = follow(&group, &course, bounds, options.cuts)?;
    // What is known of messages cuts code off behind the exploration, which would walk more states that differ.
    followed.given = given(&group, &course, known);
    let starts = starts(source, &group, &course);
    let compared =
        alike::compare(&followed.body, &followed.ends, &starts, &source.types, options.checked, &followed.given);
    // It is left where it begins then, which is not always possible.
    if let Some((body, end)) = compared
        && passed_by::passed_by(source, of, &body).is_ok()
    {
        let block = BlockId(followed.body.blocks.len() as u32);
        let exit = Exit { why: Why::Unequal, at: followed.ends[end].at.clone() };
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
        bounds: ways_out[followed.exits.len()..].to_vec(),
        states: followed.states.clone(),
        decline: followed.has_choice.then_some(of.decline),
        bound: of.bound,
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
    let (body, bound) = bound::bound(followed.body, &followed.ends, &result.types, of.bound, options.cuts);
    let body = clean(body, &result.types, options.checked, &followed.given);
    passed_by::passed_by(source, of, &body)?;
    let instructions = body.blocks.iter().map(|block| block.instructions.len() + 1).sum();
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
fn number(followed: &mut Followed) -> Vec<Exit> {
    let mut ways_out = followed.exits.clone();
    let bound = |end: &NodeEnd| Exit { why: Why::Bound, at: end.at.clone() };
    let bounds: Vec<(BlockId, Exit)> = followed.ends.iter().map(|end| (end.stub, bound(end))).collect();
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
    let of_member = |member: &Placed| {
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
    of: &Specification,
    function: &SmolStr,
    manual: Manual,
) -> Result<Made, Refusal> {
    match manual {
        Manual::Called => {}
        Manual::LeftOut => return Err(Refusal::Manual { function: function.clone() }),
    }
    let mut extended = result.clone();
    let body = manual::body(&mut extended, group, course, of, function)?;
    passed_by::passed_by(source, of, &body)?;
    *result = extended;
    let instructions = body.blocks.iter().map(|block| block.instructions.len() + 1).sum();
    insert::insert(result, group, course, of, body, insert::Refusals { has_choice: false, notes: None });
    let (exits, bounds, states, unreached) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let function = Some(function.clone());
    Ok(Made { nodes: 0, exits, bounds, states, decline: None, bound: 0, instructions, function, unreached })
}

/// Where a statement of a part stands; of a label, its process.
fn place(program: &Program, of: &Specification, member: usize, point: Point) -> Location {
    let process = &program.processes[process_of(program, of.members[member].instance).0 as usize];
    match point {
        Point::Site(site) => process.sites[site.0 as usize].location,
        Point::Label(_) => process.location,
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

impl Made {
    /// Why the path is left, and for each reason where: the lines at which the members stand, in their order.
    fn ways_out(&self) -> Vec<(Why, Vec<String>)> {
        let mut ways: Vec<(Why, Vec<String>)> = Vec::new();
        for exit in &self.exits {
            let lines: Vec<String> = exit.at.iter().map(|at| at.line.to_string()).collect();
            let lines = lines.join(", ");
            match ways.last_mut() {
                Some((why, places)) if *why == exit.why => places.push(lines),
                Some(_) | None => ways.push((exit.why, vec![lines])),
            }
        }
        ways
    }
}

/// The process of an instance.
fn process_of(program: &Program, instance: u32) -> ProcessId {
    program.process_of(instance).expect("a specification names instances").0
}
