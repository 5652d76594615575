//! A run that another engine has found, taken once more by the flow IR's `step`: whether it is one of the program, and
//! what goes wrong at its end. The other engine says the steps; what the world sends in them is tried here.

use crate::Refusal;
use crate::counterexample::{Counterexample, Problem, Traced};
use crate::moves::{MoveEnd, Mover};
use crate::options::Limits;
use crate::retrace::{Chosen, narrate};
use crate::space::{Space, Stepping};
use crate::store::hash;
use crate::surroundings::Outside;
use quaject_esp_ir::model::ModelProgram;
use quaject_esp_ir::report::Outcome;
use quaject_esp_ir::step::Step;
use std::time::Instant;

/// More moves than this are not tried.
const PATIENCE: u32 = 1 << 20;

/// Where the steps of a run lead.
#[derive(Clone, Debug)]
pub enum Followed<T> {
    /// There.
    To(T),
    /// The program has no such run.
    Nowhere,
    /// There was too much to try.
    Unknown,
}

/// What goes wrong at the end of a run, with all that is said in it.
pub fn follow(model: &ModelProgram, steps: &[Step], limits: &Limits) -> Result<Followed<Counterexample>, Refusal> {
    follow_to(model, steps, Wanted::Problem, limits, |problem, steps, _, _| {
        problem.map(|problem| Counterexample { problem, steps, cycle: None })
    })
}

/// What is said in the steps of a run; unknown if that depends on what the world sends or functions return, which the
/// steps do not tell.
pub fn narrated(model: &ModelProgram, steps: &[Step], limits: &Limits) -> Result<Followed<Vec<Traced>>, Refusal> {
    follow_to(model, steps, Wanted::Run, limits, |_, steps, way, outside| {
        // Where the world has only one message, it is known.
        let known = |traced: &Traced| {
            traced.message.as_ref().is_some_and(|(channel, _)| outside.messages[channel.0 as usize].len() == 1)
        };
        let is_free = |(chosen, traced): (&Chosen, &Traced)| {
            (chosen.message.is_none() || known(traced)) && chosen.choices.is_empty()
        };
        (way.len() == steps.len() && way.iter().zip(&steps).all(is_free)).then_some(steps)
    })
}

/// What a run must come to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Wanted {
    /// A problem at its end.
    Problem,
    /// Its end.
    Run,
}

fn follow_to<T>(
    model: &ModelProgram,
    steps: &[Step],
    wanted: Wanted,
    limits: &Limits,
    make: impl FnOnce(Option<Problem>, Vec<Traced>, &[Chosen], &Outside) -> Option<T>,
) -> Result<Followed<T>, Refusal> {
    let space = Space::new(model, Stepping::Plain, false).map_err(Refusal::Unbounded)?;
    let mut mover = Mover::new(&space)?;
    mover.limit(limits, Instant::now());
    let start = mover.start();
    let mut search = Follower { mover, steps, wanted, way: Vec::new(), patience: PATIENCE };
    Ok(match search.go_on(&start) {
        Some(problem) => {
            let steps = narrate(&space, &search.way)?;
            make(problem, steps, &search.way, search.mover.world.outside()).map_or(Followed::Unknown, Followed::To)
        }
        // At a limit, moves may have been left out.
        None if search.patience == 0 || search.mover.cut.is_some() => Followed::Unknown,
        None => Followed::Nowhere,
    })
}

struct Follower<'m, 's> {
    mover: Mover<'m>,
    steps: &'s [Step],
    wanted: Wanted,
    way: Vec<Chosen>,
    patience: u32,
}

/// A state on the way: its numbers, and the moves from it that take the next step and are still to be tried.
struct Level {
    numbers: Vec<u32>,
    untried: Vec<usize>,
}

impl Follower<'_, '_> {
    /// The problem at the end, if one is wanted, the choices made on the way in `way`.
    fn go_on(&mut self, start: &[u32]) -> Option<Option<Problem>> {
        let mut levels = vec![self.level(start.to_vec(), 0)];
        while let Some(level) = levels.last_mut() {
            let Some(index) = level.untried.pop() else {
                levels.pop();
                self.way.pop();
                continue;
            };
            if self.mover.is_cut(0) {
                return None;
            }
            self.patience = self.patience.checked_sub(1)?;
            let numbers = level.numbers.clone();
            self.mover.find(&numbers);
            let found = self.mover.found[index];
            let taken = self.mover.get(found).clone();
            self.way.push(Chosen::of(&taken));
            match &taken.end {
                MoveEnd::Fails(report) => return Some(Some(Problem::Fault(report.clone()))),
                MoveEnd::Exits | MoveEnd::Endless(_) => {
                    self.way.pop();
                    continue;
                }
                MoveEnd::Goes => {}
            }
            let mut next = vec![0; numbers.len()];
            self.mover.apply(found, &numbers, hash(&numbers), &mut next);
            let done = self.way.len();
            if done == self.steps.len() {
                if self.wanted == Wanted::Run {
                    return Some(None);
                }
                self.mover.find(&next);
                if self.mover.rests()
                    && let Outcome::Faulted(report) = self.mover.rest(&next)
                {
                    return Some(Some(Problem::Fault(report)));
                }
                self.way.pop();
                continue;
            }
            let level = self.level(next, done);
            levels.push(level);
        }
        None
    }

    fn level(&mut self, numbers: Vec<u32>, done: usize) -> Level {
        self.mover.find(&numbers);
        let wanted = self.steps.get(done);
        let untried = (0..self.mover.found.len())
            .rev()
            .filter(|index| Some(&self.mover.get(self.mover.found[*index]).step) == wanted)
            .collect();
        Level { numbers, untried }
    }
}
