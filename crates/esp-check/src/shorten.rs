//! Leaves out of a run what has nothing to do with what goes wrong at its end. The reduced search takes the moves of one
//! set of processes before those of another, so that a shortest way through what it visits may hold steps that somebody
//! else takes meanwhile. Parts of the run are left out, halves first and single steps last (delta debugging: Zeller and
//! Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", 2002), while the rest is still a run that goes wrong
//! in the same way.

use crate::learn::MOST_FUEL;
use crate::moves::{Move, MoveEnd, Mover};
use crate::reduce::is_of_the_world;
use crate::retrace::Chosen;
use crate::search::Wrong;
use crate::space::Space;
use quaject_esp_exec::report::{FaultReport, Outcome};
use quaject_esp_exec::step::{Control, Effect, Outside, Step, TooLarge};

/// Most steps that are taken for it: of longer runs not all is left out that could be.
const MOST_STEPS: usize = 1 << 20;

/// A run and what is wrong at its end.
type Run = (Vec<Chosen>, Wrong);

/// A shorter run that goes wrong in the same way, or this one. To find out that a run does not end takes its time: such
/// a run is not tried again.
pub(crate) fn shorten(space: &Space<'_>, way: Vec<Chosen>, wrong: Wrong) -> Result<Run, TooLarge> {
    if matches!(&wrong, Wrong::Move(found) if matches!(found.end, MoveEnd::Endless(_))) {
        return Ok((way, wrong));
    }
    let mut mover = Mover::new(space)?;
    let start = mover.start();
    let mut player = Player { mover, start, wrong: &wrong, left: MOST_STEPS.max(way.len()) };
    let Some(mut best) = player.play(way.iter()) else {
        debug_assert!(false, "what is found goes wrong");
        return Ok((way, wrong));
    };
    let mut size = best.0.len().div_ceil(2);
    while size > 0 {
        let before = best.0.len();
        let mut end = before;
        while end > 0 {
            let start = end.saturating_sub(size);
            if let Some(shorter) = player.play(best.0[..start].iter().chain(&best.0[end..])) {
                best = shorter;
            }
            end = start.min(best.0.len());
        }
        // What is left out now may have been the reason for something that came before it.
        if size > 1 || best.0.len() == before {
            size /= 2;
        }
    }
    Ok(best)
}

struct Player<'m, 'w> {
    mover: Mover<'m>,
    start: Vec<u32>,
    wrong: &'w Wrong,
    /// How many more steps may be taken.
    left: usize,
}

impl Player<'_, '_> {
    /// Takes these steps, but for own code of those who have none to run; nothing if that is no run that goes wrong as
    /// wanted.
    fn play<'c>(&mut self, way: impl Iterator<Item = &'c Chosen>) -> Option<Run> {
        self.mover.load_all(&self.start);
        let mut taken = Vec::new();
        for chosen in way {
            self.left = self.left.checked_sub(1)?;
            let (machine, state, world) = self.mover.scene();
            if let Step::Local { instance } = chosen.step
                && !matches!(state.control(instance), Control::Running { .. })
            {
                continue;
            }
            world.offer(chosen.sent_by_world(machine, state));
            world.choose(&chosen.choices);
            let is_possible = machine.is_possible(chosen.step, state, world, Outside::AsTraced);
            world.rewind();
            let effect = is_possible.then(|| machine.step(chosen.step, state, world, &mut { MOST_FUEL }));
            world.offer(None);
            taken.push(chosen.clone());
            match (effect?, self.wrong) {
                (Effect::Done, _) => {}
                (Effect::Faulted(report), Wrong::Move(found)) if found.is_like(&report) => {
                    return Some((taken, Wrong::Move(Move { end: MoveEnd::Fails(report), ..found.clone() })));
                }
                (Effect::Faulted(_) | Effect::Exited(_) | Effect::Unfinished, _) => return None,
            }
        }
        match self.wrong {
            Wrong::Deadlock(_) => self.deadlock().map(|report| (taken, Wrong::Deadlock(report))),
            Wrong::Leak(pool) => (self.mover.leak_at_hand()? == *pool).then_some((taken, Wrong::Leak(*pool))),
            Wrong::Move(_) => None,
        }
    }

    /// The deadlock in which the program rests, if it does.
    fn deadlock(&mut self) -> Option<Box<FaultReport>> {
        let (machine, state, world) = self.mover.scene();
        world.choose(&[]);
        if !machine.conceivable(state, world).into_iter().all(is_of_the_world) {
            return None;
        }
        match self.mover.rest_at_hand() {
            Outcome::Faulted(report) => Some(report),
            Outcome::Ended(_) | Outcome::Resting(_) | Outcome::Budget => None,
        }
    }
}
