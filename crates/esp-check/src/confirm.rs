//! Whether what goes wrong in a part of a program, whose surroundings may do anything, goes wrong in the whole of it:
//! the whole program is explored for the same problem.

use crate::counterexample::{Counterexample, Problem};
use crate::moves::MoveEnd;
use crate::options::{Limit, Limits, Options, Reduction};
use crate::search::Wrong;
use crate::space::{Space, Stepping};
use crate::store::Store;
use crate::{Refusal, search};
use quaject_esp_ir::ir::Fault;
use quaject_esp_ir::model::ModelProgram;
use quaject_esp_ir::report::FaultReport;

/// What the whole program has to do with a run of a part of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Confirmation {
    /// It goes wrong in the same way.
    Real,
    /// No run of it does: the run is spurious.
    Spurious,
    /// It is larger than the limit.
    Unknown(Limit),
    /// The problem is of a kind that is not looked for.
    NotAsked,
}

impl Confirmation {
    /// A line that says so, without its end.
    pub fn text(self) -> &'static str {
        match self {
            Confirmation::Real => "the whole program goes wrong in the same way",
            Confirmation::Spurious => {
                "SPURIOUS: no run of the whole program goes wrong in this way; what surrounds the part does more here"
            }
            Confirmation::Unknown(_) => "the whole program may do so or not: it is larger than was looked at",
            Confirmation::NotAsked => "the whole program was not asked",
        }
    }
}

/// Explores the whole program for the problem of a run of a part of it.
pub fn confirm(whole: &ModelProgram, found: &Counterexample, limits: &Limits) -> Result<Confirmation, Refusal> {
    let asked = match &found.problem {
        Problem::Fault(_) | Problem::Endless { .. } | Problem::Leak { .. } => true,
        Problem::Property { .. } | Problem::Starvation { .. } => false,
    };
    if !asked {
        return Ok(Confirmation::NotAsked);
    }
    let space = Space::new(whole, Stepping::Settled, false).map_err(Refusal::Unbounded)?;
    // With reduction, another problem that ends a run could stand for this one.
    let reduction = Reduction::Communications;
    let options = Options { reduction, limits: limits.clone(), ..Options::default() };
    let store = Store::new(space.width, options.compaction);
    let searched = search::search(&space, &store, &options, &|wrong| is_it(whole, &found.problem, wrong), &mut |_| {})?;
    Ok(match (searched.finding, searched.limit) {
        (Some(_), _) => Confirmation::Real,
        (None, Some(limit)) => Confirmation::Unknown(limit),
        (None, None) => Confirmation::Spurious,
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
