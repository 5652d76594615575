//! Explores every state that a program can reach, on the flow IR's own `step`, and shows a short run that goes
//! wrong. Knows no back end, reads and writes nothing.
//!
//! ```text
//!   surroundings, domain     what the world may do
//!   space                    who can have to do with whom, by their text
//!   parts, learn, moves      states as numbers; what steps do to them, worked out once; `whole`: each time anew
//!   dispatch, reduce         whom a message can be for; which moves are enough
//!   store, level, search     visited states; level after level; `meeting`: where threads wait for each other
//!   ltl, formula, automaton   properties, simplified, as automata; `watch`: what they ask of states
//!   liveness                 runs that go on for ever
//!   retrace, counterexample  the run that leads to what was found; `shorten`: without what does not matter
//!   script, chart            that run as a text to take again, and as a picture
//!   scene                    everybody at one moment of a run
//!   confirm                  whether a run of a model that does more is one of the program itself
//!   refine                   whether a program with fast paths does no more than the one without
//! ```
#![forbid(unsafe_code)]

mod automaton;
mod chart;
mod confirm;
mod counterexample;
mod dispatch;
mod domain;
mod follow;
mod formula;
mod learn;
mod level;
mod liveness;
mod ltl;
mod meeting;
mod moves;
mod options;
mod parts;
mod reduce;
mod refine;
mod report;
mod retrace;
mod scene;
pub mod script;
mod search;
mod shorten;
mod space;
mod store;
mod surroundings;
mod unreached;
mod watch;
mod whole;

pub use chart::chart;
pub use confirm::{Confirmation, Label, confirm};
pub use counterexample::{Counterexample, Problem, Traced};
pub use domain::{MOST_VALUES, Unbounded};
pub use follow::{Followed, follow, follow_property};
pub use ltl::BadProperty;
pub use options::{
    Compaction, Interrupt, Limit, Limits, Liveness, Options, Progress, Reduction, Symmetry, omission_bound,
};
pub use refine::{Difference, Forms, Observed, Odd, PathUse, Refinement, Refines, observe, refine};
pub use report::{Answer, Deadlocks, Leaks, Report, Verdict, place_text, restrictions, subject};
pub use scene::{Awaited, Scene, Stood};

use automaton::Automaton;
use liveness::{Endless, Goal, Guide};
use ltl::Atom;
use moves::MoveEnd;
use quaject_esp_exec::footprint::data_bytes;
use quaject_esp_exec::step::{Step, TooLarge};
use quaject_esp_ir::model::ModelProgram;
use retrace::Chosen;
use search::{Finding, Wrong};
use space::{MOST_IN_SETS, Space, Stepping};
use std::time::Instant;
use store::Store;

/// Why a program cannot be explored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// It is larger than any engine takes.
    TooLarge(TooLarge),
    /// These would need ranges.
    Unbounded(Vec<Unbounded>),
    /// A property does not say anything.
    Property(BadProperty),
    /// It has so many instances: more than runs that go on for ever are looked for with.
    TooMany(u32),
}

/// Most instances of programs of which runs that go on for ever are looked for.
pub const MOST_FAIR: usize = MOST_IN_SETS;

impl From<TooLarge> for Refusal {
    fn from(error: TooLarge) -> Refusal {
        Refusal::TooLarge(error)
    }
}

/// Explores a program. `progress` is told from time to time how far it is.
pub fn check(model: &ModelProgram, options: &Options, progress: &mut dyn FnMut(Progress)) -> Result<Report, Refusal> {
    let started = Instant::now();
    let bytes = data_bytes(&model.program);
    if let Some(most) = options.limits.bytes.map(|most| most as usize).filter(|most| bytes > *most) {
        return Err(Refusal::TooLarge(TooLarge { bytes, most }));
    }
    let negations = negations(model)?;
    let stepping = match options.reduction {
        Reduction::On | Reduction::Communications => Stepping::Settled,
        Reduction::Off => Stepping::Plain,
    };
    let space = Space::new(model, stepping, options.symmetry == Symmetry::On).map_err(Refusal::Unbounded)?;
    let store = Store::new(space.width, options.compaction, options.threads).limited(options.limits.bytes);
    let searched = search::search(&space, &store, options, &|_| true, progress)?;
    let mut verdict = match (&searched.finding, searched.limit) {
        (Some(finding), _) => Verdict::Violated(show(&space, &store, finding)?),
        (None, Some(limit)) => Verdict::Unfinished(limit),
        (None, None) => Verdict::Holds,
    };
    let mut properties: Vec<(String, Answer)> =
        model.properties.iter().map(|text| (text.clone(), Answer::Open)).collect();
    if verdict == Verdict::Holds {
        verdict = check_properties(model, options, started, negations, &mut properties, progress)?;
    }
    let mut starves = (options.liveness == Liveness::Progress).then_some(Answer::Open);
    if let (Verdict::Holds, Some(answer)) = (&verdict, &mut starves) {
        let space = Space::new(model, Stepping::Plain, false).map_err(Refusal::Unbounded)?;
        let goal = Goal::Starved(0..space.instances as u32);
        verdict = endless(&space, goal, &options.limits.after(started.elapsed()), "", progress)?;
        *answer = Answer::from(&verdict);
    }
    let unreached = match verdict {
        Verdict::Holds => unreached::unreached(model, &searched.coverage),
        Verdict::Violated(_) | Verdict::Unfinished(_) => Vec::new(),
    };
    Ok(Report {
        verdict,
        states: store.count() as u64,
        transitions: searched.transitions,
        depth: searched.depth,
        bytes: searched.bytes as u64,
        elapsed: started.elapsed(),
        unreached,
        restrictions: report::restrictions(model),
        properties,
        progress: starves,
        deadlocks: Deadlocks::All,
        leaks: Leaks::All,
    })
}

/// For each of a model's properties, the automaton of what contradicts it, with its atoms.
type Negations = Vec<(Automaton, Vec<Atom>)>;

fn negations(model: &ModelProgram) -> Result<Negations, Refusal> {
    let one = |(number, text): (usize, &String)| {
        ltl::negated(&model.program, &model.roles, number, text).map_err(Refusal::Property)
    };
    model.properties.iter().enumerate().map(one).collect()
}

/// Looks for a run that contradicts a property, one after the other, up to the first that does not hold; `answers` is
/// what is known of each then.
fn check_properties(
    model: &ModelProgram,
    options: &Options,
    started: Instant,
    negations: Negations,
    answers: &mut [(String, Answer)],
    progress: &mut dyn FnMut(Progress),
) -> Result<Verdict, Refusal> {
    for (number, (automaton, atoms)) in negations.into_iter().enumerate() {
        let space = watching(model, number, atoms)?;
        let limits = options.limits.after(started.elapsed());
        let (text, answer) = &mut answers[number];
        let verdict = endless(&space, Goal::Accepted(automaton), &limits, text, progress)?;
        *answer = Answer::from(&verdict);
        if verdict != Verdict::Holds {
            return Ok(verdict);
        }
    }
    Ok(Verdict::Holds)
}

/// The states of a model together with what its property of this number asks for.
fn watching(model: &ModelProgram, number: usize, atoms: Vec<Atom>) -> Result<Space<'_>, Refusal> {
    let mut space = Space::new(model, Stepping::Plain, false).map_err(Refusal::Unbounded)?;
    if space.watch(atoms) {
        return Ok(space);
    }
    let message = "the property names more than 8 labels of one process".to_string();
    Err(Refusal::Property(BadProperty { number, message, help: None }))
}

fn endless(
    space: &Space<'_>,
    goal: Goal,
    limits: &Limits,
    property: &str,
    progress: &mut dyn FnMut(Progress),
) -> Result<Verdict, Refusal> {
    if space.instances > MOST_FAIR {
        return Err(Refusal::TooMany(space.instances as u32));
    }
    let lasso = match liveness::search(space, goal, Guide::NONE, limits, progress)? {
        Endless::None => return Ok(Verdict::Holds),
        Endless::Unfinished(limit) => return Ok(Verdict::Unfinished(limit)),
        Endless::Found(lasso) => lasso,
    };
    let steps = retrace::narrate(space, &lasso.steps)?;
    let problem = match lasso.starved {
        Some(instance) => {
            Problem::Starvation { instance, location: retrace::standing_at(space, &lasso.steps, instance)? }
        }
        None => Problem::Property { property: property.to_string() },
    };
    Ok(Verdict::Violated(Counterexample { problem, cycle: Some(lasso.cycle), steps }))
}

/// Who lost an object in the last step of a run: whoever took that step, but for those who have got nothing so far.
fn last_holder(way: &[Chosen]) -> u32 {
    let actor = |step: Step| match step {
        Step::Communicate { receiver, .. } => receiver,
        Step::Local { instance }
        | Step::FromWorld { instance, .. }
        | Step::ToWorld { instance, .. }
        | Step::After { instance, .. }
        | Step::Else { instance } => instance,
    };
    let is_local = |step: Step| matches!(step, Step::Local { .. });
    let got = |before: &[Chosen], instance: u32| {
        before
            .iter()
            .any(|chosen| !is_local(chosen.step) && reduce::actors(chosen.step) & space::bit(instance as usize) != 0)
    };
    let mut steps = (0..way.len()).rev().map(|index| (index, actor(way[index].step)));
    let last = steps.find(|(index, instance)| !is_local(way[*index].step) || got(&way[..*index], *instance));
    last.map_or(0, |(_, instance)| instance)
}

/// The run that leads to what was found.
fn show(space: &Space<'_>, store: &Store, finding: &Finding) -> Result<Counterexample, TooLarge> {
    let (mut way, mut mover, numbers) = retrace::way_to(space, store, finding.state)?;
    let wrong = retrace::here(&mut mover, &numbers, &finding.what);
    if let Wrong::Move(found) = &wrong {
        way.push(Chosen::of(found));
    }
    let (way, wrong) = shorten::shorten(space, way, wrong)?;
    let steps = retrace::narrate(space, &way)?;
    let problem = match wrong {
        Wrong::Deadlock(report) => Problem::Fault(report),
        Wrong::Leak(pool) => {
            let pool = space.model.program.types.pool(pool).name.to_string();
            Problem::Leak { pool, instance: last_holder(&way) }
        }
        Wrong::Move(found) => match found.end {
            MoveEnd::Fails(report) => Problem::Fault(report),
            MoveEnd::Endless(instance) => {
                let last = steps.last().and_then(|step| step.locations.first());
                Problem::Endless { instance, location: last.copied().unwrap_or_default() }
            }
            MoveEnd::Goes | MoveEnd::Exits => unreachable!("such a move is not wrong"),
        },
    };
    Ok(Counterexample { problem, steps, cycle: None })
}
