//! Explores every state that a program can reach, on the flow IR's own `step`, and shows a shortest run that goes
//! wrong. Knows no back end, reads and writes nothing.
//!
//! ```text
//!   surroundings, domain     what the world may do
//!   space                    who can have to do with whom, by their text
//!   parts, moves             states as numbers; what steps do to them, worked out once
//!   reduce                   which moves are enough
//!   store, search            visited states; level after level
//!   retrace, counterexample  the run that leads to what was found
//! ```
#![forbid(unsafe_code)]

mod counterexample;
mod domain;
mod moves;
mod options;
mod parts;
mod reduce;
mod report;
mod retrace;
mod search;
mod space;
mod store;
mod surroundings;

pub use counterexample::{Counterexample, Problem, Traced};
pub use domain::{MOST_VALUES, Unbounded};
pub use options::{Limit, Limits, Options, Progress, Reduction, Storage, Symmetry};
pub use report::{Report, Verdict};

use moves::MoveEnd;
use quaject_esp_ir::ir::Location;
use quaject_esp_ir::model::ModelProgram;
use quaject_esp_ir::step::TooLarge;
use retrace::Chosen;
use search::{Finding, Wrong};
use space::{Space, Stepping};
use std::time::Instant;
use store::Store;

/// Why a program cannot be explored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// It is larger than any engine takes.
    TooLarge(TooLarge),
    /// These would need ranges.
    Unbounded(Vec<Unbounded>),
}

impl From<TooLarge> for Refusal {
    fn from(error: TooLarge) -> Refusal {
        Refusal::TooLarge(error)
    }
}

/// Explores a program. `progress` is told from time to time how far it is.
pub fn check(model: &ModelProgram, options: &Options, progress: &mut dyn FnMut(Progress)) -> Result<Report, Refusal> {
    let started = Instant::now();
    let stepping = match options.reduction {
        Reduction::On => Stepping::Settled,
        Reduction::Off => Stepping::Plain,
    };
    let space = Space::new(model, stepping, options.symmetry == Symmetry::On).map_err(Refusal::Unbounded)?;
    let store = Store::new(space.width);
    let searched = search::search(&space, &store, options, progress)?;
    let verdict = match (&searched.finding, searched.limit) {
        (Some(finding), _) => Verdict::Violated(show(&space, &store, finding)?),
        (None, Some(limit)) => Verdict::Unfinished(limit),
        (None, None) => Verdict::Holds,
    };
    let unreached = match verdict {
        Verdict::Holds => report::unreached(model, &searched.coverage),
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
        missed: 0.0,
        properties: Vec::new(),
    })
}

/// The run that leads to what was found.
fn show(space: &Space<'_>, store: &Store, finding: &Finding) -> Result<Counterexample, TooLarge> {
    let mut way = retrace::way_to(space, store, finding.state)?;
    let problem = match &finding.what {
        Wrong::Deadlock(report) => Problem::Fault(report.clone()),
        Wrong::Move(found) => {
            way.push(Chosen::of(found));
            match &found.end {
                MoveEnd::Fails(report) => Problem::Fault(report.clone()),
                MoveEnd::Endless(instance) => Problem::Endless { instance: *instance, location: Location::default() },
                MoveEnd::Goes | MoveEnd::Exits => unreachable!("such a move is not wrong"),
            }
        }
    };
    let steps = retrace::narrate(space, &way)?;
    let problem = match problem {
        Problem::Endless { instance, .. } => {
            let last = steps.last().and_then(|step| step.locations.first());
            Problem::Endless { instance, location: last.copied().unwrap_or_default() }
        }
        other => other,
    };
    Ok(Counterexample { problem, steps, cycle: None })
}
