//! Whether what goes wrong in a model that does more than its program (a part whose surroundings may do anything,
//! abstractions) goes wrong in the program itself: the run is taken there step by step, and if that fails the program
//! is explored for the same problem.

use crate::counterexample::{Counterexample, Problem};
use crate::follow::{Followed, follow};
use crate::liveness::{Endless, Goal, Guide};
use crate::moves::MoveEnd;
use crate::options::{Limit, Limits, Options, Reduction};
use crate::search::Wrong;
use crate::space::{Space, Stepping};
use crate::store::Store;
use crate::{Refusal, liveness, ltl, search};
use quaject_esp_exec::report::FaultReport;
use quaject_esp_exec::step::Step;
use quaject_esp_ir::ir::Fault;
use quaject_esp_ir::model::{ModelProgram, Scope};

/// What the program itself has to do with a run of a model that does more.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Label {
    /// Whether the program goes wrong in the same way.
    pub confirmation: Confirmation,
    /// The abstractions that the run depends on, as the model writes them.
    pub causes: Vec<String>,
    /// Whether the model is of a part of the program.
    pub of_part: bool,
}

/// Whether a program goes wrong as a model of it does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Confirmation {
    /// It goes wrong in the same way.
    Real,
    /// No run of it does: the run is spurious.
    Spurious,
    /// It has no such run; whether another one goes wrong in the same way is beyond the limit.
    SpuriousRun(Limit),
    /// It is larger than the limit.
    Unknown(Limit),
    /// It cannot be looked for there.
    NotAsked,
}

impl Confirmation {
    /// A word for it, for programs.
    pub fn name(self) -> &'static str {
        match self {
            Confirmation::Real => "real",
            Confirmation::Spurious => "spurious",
            Confirmation::SpuriousRun(_) => "spurious run",
            Confirmation::Unknown(_) => "unknown",
            Confirmation::NotAsked => "not asked",
        }
    }
}

impl Label {
    /// Nothing is known.
    pub fn not_asked(model: &ModelProgram, found: &Counterexample) -> Label {
        Label { confirmation: Confirmation::NotAsked, causes: causes(model, found), of_part: model.scope != Scope::All }
    }

    /// What is real is due to nothing but the program.
    fn confirm(&mut self, confirmation: Confirmation) {
        self.confirmation = confirmation;
        if confirmation == Confirmation::Real {
            self.causes.clear();
        }
    }

    /// A line that says so, without its end.
    pub fn text(&self) -> String {
        let program = if self.of_part { "the whole program" } else { "the program itself" };
        let mut causes: Vec<String> = self.causes.iter().map(|cause| format!("`{cause}`")).collect();
        if self.of_part {
            causes.push("what surrounds the part".to_string());
        }
        let because = match &causes[..] {
            [one] => format!("{one} does more here"),
            many => format!("{} do more here", many.join(", ")),
        };
        match self.confirmation {
            Confirmation::Real => format!("{program} goes wrong in the same way"),
            Confirmation::Spurious => format!("SPURIOUS: no run of {program} goes wrong in this way; {because}"),
            Confirmation::SpuriousRun(_) => format!(
                "SPURIOUS: {program} has no such run; {because}; whether another run goes wrong in this way is not \
                 known, as it is larger than was looked at"
            ),
            Confirmation::Unknown(_) => format!("{program} may do so or not: it is larger than was looked at"),
            Confirmation::NotAsked => format!("{program} was not asked"),
        }
    }
}

/// The abstractions without which a run would be another one.
fn causes(model: &ModelProgram, found: &Counterexample) -> Vec<String> {
    let calls = || found.steps.iter().flat_map(|step| &step.calls);
    let is_cause = |part: &&quaject_esp_ir::model::Abstracted| {
        let called = part.stand_in.is_some_and(|function| calls().any(|(called, _)| *called == function));
        let left = match &found.problem {
            Problem::Fault(report) => report.fault == Fault::Range && part.limits.contains(&report.location),
            Problem::Endless { .. } | Problem::Property { .. } | Problem::Starvation { .. } | Problem::Leak { .. } => {
                false
            }
        };
        called || left
    };
    model.abstractions.iter().filter(is_cause).map(ToString::to_string).collect()
}

/// Asks the program itself for the problem of a run of a model of it.
pub fn confirm(
    whole: &ModelProgram,
    model: &ModelProgram,
    found: &Counterexample,
    limits: &Limits,
) -> Result<Label, Refusal> {
    let mut label = Label::not_asked(model, found);
    // Steps of all processes mean the same in the program itself; those of a part do not.
    let steps: Vec<Step> = found.steps.iter().map(|traced| traced.step).collect();
    let mut has_such_a_run = true;
    if let (Problem::Fault(report), false) = (&found.problem, label.of_part) {
        match follow(whole, &steps, limits)? {
            Followed::To(Counterexample { problem: Problem::Fault(other), .. }) if is_same(report, &other) => {
                label.confirm(Confirmation::Real);
                return Ok(label);
            }
            Followed::To(_) | Followed::Unknown => {}
            Followed::Nowhere => has_such_a_run = false,
        }
    }
    let confirmation = match &found.problem {
        Problem::Fault(_) | Problem::Endless { .. } | Problem::Leak { .. } => explored(whole, found, limits)?,
        Problem::Property { property } => checked(whole, property, limits)?,
        Problem::Starvation { instance, .. } => starved(whole, *instance, limits)?,
    };
    label.confirm(match confirmation {
        Confirmation::Unknown(limit) if !has_such_a_run => Confirmation::SpuriousRun(limit),
        confirmation => confirmation,
    });
    Ok(label)
}

/// Explores the program for the problem.
fn explored(whole: &ModelProgram, found: &Counterexample, limits: &Limits) -> Result<Confirmation, Refusal> {
    let space = Space::new(whole, Stepping::Settled, false).map_err(Refusal::Unbounded)?;
    // With reduction, another problem that ends a run could stand for this one.
    let reduction = Reduction::Communications;
    let options = Options { reduction, limits: limits.clone(), ..Options::default() };
    let store = Store::new(space.width, options.compaction, options.threads).limited(options.limits.bytes);
    let searched = search::search(&space, &store, &options, &|wrong| is_it(whole, &found.problem, wrong), &mut |_| {})?;
    Ok(match (searched.finding, searched.limit) {
        (Some(_), _) => Confirmation::Real,
        (None, Some(limit)) => Confirmation::Unknown(limit),
        (None, None) => Confirmation::Spurious,
    })
}

/// Looks for a run of the program that contradicts a property.
fn checked(whole: &ModelProgram, property: &str, limits: &Limits) -> Result<Confirmation, Refusal> {
    let (automaton, atoms) = ltl::negated(&whole.program, &whole.roles, 0, property).map_err(Refusal::Property)?;
    let mut space = Space::new(whole, Stepping::Plain, false).map_err(Refusal::Unbounded)?;
    if !space.watch(atoms) {
        return Ok(Confirmation::NotAsked);
    }
    endless(&space, Goal::Accepted(automaton), limits)
}

/// Looks for a run of the program on which the same instance waits for ever.
fn starved(whole: &ModelProgram, instance: u32, limits: &Limits) -> Result<Confirmation, Refusal> {
    let space = Space::new(whole, Stepping::Plain, false).map_err(Refusal::Unbounded)?;
    endless(&space, Goal::Starved(instance..instance + 1), limits)
}

fn endless(space: &Space<'_>, goal: Goal, limits: &Limits) -> Result<Confirmation, Refusal> {
    if space.instances > crate::MOST_FAIR {
        return Ok(Confirmation::NotAsked);
    }
    Ok(match liveness::search(space, goal, Guide::NONE, limits, &mut |_| {})? {
        Endless::Found(_) => Confirmation::Real,
        Endless::None => Confirmation::Spurious,
        Endless::Unfinished(limit) => Confirmation::Unknown(limit),
    })
}

fn is_it(whole: &ModelProgram, problem: &Problem, wrong: &Wrong) -> bool {
    match (problem, wrong) {
        (Problem::Fault(report), Wrong::Deadlock(other)) => is_same(report, other),
        (Problem::Fault(report), Wrong::Move(found)) => match &found.end {
            MoveEnd::Fails(other) => is_same(report, other),
            MoveEnd::Goes | MoveEnd::Exits | MoveEnd::Endless(_) => false,
        },
        (Problem::Endless { instance, .. }, Wrong::Move(found)) => match &found.end {
            MoveEnd::Endless(other) => instance == other,
            MoveEnd::Goes | MoveEnd::Exits | MoveEnd::Fails(_) => false,
        },
        (Problem::Leak { pool, .. }, Wrong::Leak(other)) => *whole.program.types.pool(*other).name == *pool,
        (Problem::Endless { .. } | Problem::Property { .. } | Problem::Starvation { .. } | Problem::Leak { .. }, _)
        | (Problem::Fault(_), Wrong::Leak(_)) => false,
    }
}

/// The same fault at the same place; a deadlock in which at least the same ones wait.
fn is_same(part: &FaultReport, whole: &FaultReport) -> bool {
    let waits = |instance: u32| whole.waits.iter().any(|wait| wait.instance == instance);
    match (part.fault, whole.fault) {
        (Fault::Deadlock, Fault::Deadlock) => part.waits.iter().all(|wait| waits(wait.instance)),
        (fault, other) => fault == other && (part.instance, part.location) == (whole.instance, whole.location),
    }
}
