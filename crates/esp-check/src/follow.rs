//! A run that another engine has found, taken once more by the flow IR's `step`: whether it is one of the program, and
//! what goes wrong at its end. The other engine says the steps; what the world sends in them is tried here.

use crate::Refusal;
use crate::counterexample::{Counterexample, Problem, Traced};
use crate::moves::{MoveEnd, Mover};
use crate::retrace::{Chosen, narrate};
use crate::space::{Space, Stepping};
use crate::store::hash;
use quaject_esp_ir::model::ModelProgram;
use quaject_esp_ir::report::Outcome;
use quaject_esp_ir::step::Step;

/// More moves than this are not tried.
const PATIENCE: u32 = 1 << 20;

/// What goes wrong at the end of a run, with all that is said in it; nothing if the program has no such run, or
/// nothing goes wrong in it.
pub fn follow(model: &ModelProgram, steps: &[Step]) -> Result<Option<Counterexample>, Refusal> {
    Ok(match follow_to(model, steps)? {
        Followed::Goes(problem, steps) => Some(Counterexample { problem, steps, cycle: None }),
        Followed::Nowhere | Followed::Unknown => None,
    })
}

/// Where the steps of a run lead.
pub(crate) enum Followed {
    /// To this problem, with all that is said on the way.
    Goes(Problem, Vec<Traced>),
    /// The program has no such run, or nothing goes wrong in it.
    Nowhere,
    /// There was too much to try.
    Unknown,
}

pub(crate) fn follow_to(model: &ModelProgram, steps: &[Step]) -> Result<Followed, Refusal> {
    let space = Space::new(model, Stepping::Plain, false).map_err(Refusal::Unbounded)?;
    let mut mover = Mover::new(&space)?;
    let start = mover.start();
    let mut search = Follower { mover, steps, way: Vec::new(), patience: PATIENCE };
    Ok(match search.go_on(&start) {
        Some(problem) => Followed::Goes(problem, narrate(&space, &search.way)?),
        None if search.patience == 0 => Followed::Unknown,
        None => Followed::Nowhere,
    })
}

/// What is said in the steps of a run without choices of the world.
pub fn narrated(model: &ModelProgram, steps: &[Step]) -> Result<Vec<Traced>, Refusal> {
    let space = Space::new(model, Stepping::Plain, false).map_err(Refusal::Unbounded)?;
    let chosen = |step: &Step| Chosen { step: *step, message: None, choices: Box::default() };
    let way: Vec<Chosen> = steps.iter().map(chosen).collect();
    Ok(narrate(&space, &way)?)
}

struct Follower<'m, 's> {
    mover: Mover<'m>,
    steps: &'s [Step],
    way: Vec<Chosen>,
    patience: u32,
}

/// A state on the way: its numbers, and the moves from it that take the next step and are still to be tried.
struct Level {
    numbers: Vec<u32>,
    untried: Vec<usize>,
}

impl Follower<'_, '_> {
    /// The problem at the end, the choices made on the way in `way`.
    fn go_on(&mut self, start: &[u32]) -> Option<Problem> {
        let mut levels = vec![self.level(start.to_vec(), 0)];
        while let Some(level) = levels.last_mut() {
            let Some(index) = level.untried.pop() else {
                levels.pop();
                self.way.pop();
                continue;
            };
            self.patience = self.patience.checked_sub(1)?;
            let numbers = level.numbers.clone();
            self.mover.find(&numbers);
            let found = self.mover.found[index];
            let taken = self.mover.get(found).clone();
            self.way.push(Chosen::of(&taken));
            match &taken.end {
                MoveEnd::Fails(report) => return Some(Problem::Fault(report.clone())),
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
                self.mover.find(&next);
                if self.mover.rests()
                    && let Outcome::Faulted(report) = self.mover.rest(&next)
                {
                    return Some(Problem::Fault(report));
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
