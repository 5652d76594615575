//! A run that another engine has found, taken once more by the flow IR's `step`: whether it is one of the program, and
//! what goes wrong at its end. The other engine says the steps; what the world sends in them is tried here.

use crate::counterexample::{Counterexample, Problem};
use crate::liveness::{self, Endless, Goal, Guide};
use crate::moves::{MoveEnd, Mover};
use crate::options::Limits;
use crate::retrace::{Chosen, narrate};
use crate::space::{Space, Stepping};
use crate::store::hash;
use crate::{Refusal, negations, watching};
use quaject_esp_exec::report::Outcome;
use quaject_esp_exec::step::Step;
use quaject_esp_ir::model::ModelProgram;
use std::time::Instant;

/// More moves than this are not tried, or states visited.
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
    let space = Space::new(model, Stepping::Plain, false).map_err(Refusal::Unbounded)?;
    let mut mover = Mover::new(&space)?;
    mover.limit(limits, Instant::now());
    let start = mover.start();
    let mut search = Follower { mover, steps, way: Vec::new(), patience: PATIENCE };
    Ok(match search.go_on(&start) {
        Some(problem) => {
            let steps = narrate(&space, &search.way)?;
            Followed::To(Counterexample { problem, steps, cycle: None })
        }
        // At a limit, moves may have been left out.
        None if search.patience == 0 || search.mover.cut.is_some() => Followed::Unknown,
        None => Followed::Nowhere,
    })
}

/// A run with these steps, those from `cycle` on again and again, on which the model's property of this number does not
/// hold. Without a cycle it is the steps that contradict the property, and what comes after them does not matter.
pub fn follow_property(
    model: &ModelProgram,
    number: usize,
    steps: &[Step],
    cycle: Option<usize>,
    limits: &Limits,
) -> Result<Followed<Counterexample>, Refusal> {
    let mut negations = negations(model)?;
    let (automaton, atoms) = negations.swap_remove(number);
    let space = watching(model, number, atoms)?;
    let guide = Guide { steps, cycle };
    let limits = Limits { states: Some(limits.states.unwrap_or(u64::from(PATIENCE))), ..limits.clone() };
    Ok(match liveness::search(&space, Goal::Accepted(automaton), guide, &limits, &mut |_| {})? {
        Endless::None => Followed::Nowhere,
        Endless::Unfinished(_) => Followed::Unknown,
        Endless::Found(mut lasso) => {
            if cycle.is_none() {
                lasso.steps.truncate(steps.len());
            }
            let steps = narrate(&space, &lasso.steps)?;
            let problem = Problem::Property { property: model.properties[number].clone() };
            Followed::To(Counterexample { problem, steps, cycle: cycle.map(|_| lasso.cycle) })
        }
    })
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
