//! From a state that was found back to the run that leads there: first the moves between the visited states, then each
//! single step with all that is said in it, taken once more by the flow IR's `step`.

use crate::counterexample::Traced;
use crate::learn::MOST_FUEL;
use crate::moves::{Move, MoveEnd, Mover};
use crate::search::Wrong;
use crate::space::{Space, Stepping};
use crate::store::{StateRef, Store, hash, signature};
use crate::surroundings::Surroundings;
use quaject_esp_exec::datum::Datum;
use quaject_esp_exec::explore::Offered;
use quaject_esp_exec::report::Outcome;
use quaject_esp_exec::step::{Effect, Machine, State, Step, TooLarge};
use quaject_esp_ir::ir::{ChannelId, Location};

/// A step and all that was chosen for it.
#[derive(Clone, Debug)]
pub(crate) struct Chosen {
    pub(crate) step: Step,
    pub(crate) message: Option<u32>,
    pub(crate) choices: Box<[u32]>,
}

impl Chosen {
    pub(crate) fn of(found: &Move) -> Chosen {
        Chosen { step: found.step, message: found.message, choices: found.choices.clone() }
    }

    pub(crate) fn local(instance: u32) -> Chosen {
        Chosen { step: Step::Local { instance }, message: None, choices: Box::default() }
    }

    /// The channel at which the world sends in this step, and which of its messages.
    pub(crate) fn sent_by_world(&self, machine: &Machine<'_>, state: &State) -> Option<(ChannelId, usize)> {
        let Step::FromWorld { instance, branch } = self.step else { return None };
        match machine.standing(state, instance).branches.get(branch as usize) {
            Some(Some(Offered::FromWorld(channel))) => Some((*channel, self.message? as usize)),
            Some(_) | None => None,
        }
    }

    /// Takes the step in a state, with the message that is sent in it. What it calls, the world knows then.
    pub(crate) fn take(
        &self,
        machine: &mut Machine<'_>,
        state: &mut State,
        world: &mut Surroundings,
    ) -> (Option<(ChannelId, Vec<Datum>)>, Effect) {
        world.choose(&self.choices);
        let message = match self.step {
            Step::Communicate { sender, sender_branch: branch, .. } | Step::ToWorld { instance: sender, branch } => {
                machine.message(state, world, sender, branch)
            }
            Step::FromWorld { .. } => self.sent_by_world(machine, state).map(|(channel, number)| {
                world.offer(Some((channel, number)));
                (channel, world.outside().messages[channel.0 as usize][number].clone())
            }),
            Step::Local { .. } | Step::After { .. } | Step::Else { .. } => None,
        };
        world.rewind();
        machine.be_patient(MOST_FUEL);
        let effect = machine.step(self.step, state, world, &mut { MOST_FUEL });
        world.offer(None);
        (message, effect)
    }
}

/// The steps from the start to a visited state, or where replicas may change places to one like it; with the numbers of
/// the state to which they lead.
pub(crate) fn way_to<'m>(
    space: &'m Space<'m>,
    store: &Store,
    state: StateRef,
) -> Result<(Vec<Chosen>, Mover<'m>, Vec<u32>), TooLarge> {
    let mut states = vec![state];
    loop {
        let last = states[states.len() - 1];
        let parent = store.parent(last);
        if parent == last {
            break;
        }
        states.push(parent);
    }
    states.reverse();
    let mut mover = Mover::new(space)?;
    let mut numbers = mover.start();
    let mut way = Vec::new();
    settle(&mut mover, &mut numbers, 0..space.instances as u32, &mut way);
    for wanted in &store.signatures(&states)[1..] {
        let is_wanted = |reached: &[u32]| signature(hash(reached)) == *wanted;
        let found = try_step_to(&mut mover, &mut numbers, &mut way, Goes::On, &is_wanted);
        assert!(found, "every visited state but the first is reached by a move from its parent");
    }
    Ok((way, mover, numbers))
}

/// What is wrong with a state in which replicas may have changed places since it was found to be wrong.
pub(crate) fn here(mover: &mut Mover<'_>, numbers: &[u32], wrong: &Wrong) -> Wrong {
    let wanted = match wrong {
        Wrong::Deadlock(_) => match mover.rest(numbers) {
            Outcome::Faulted(report) => return Wrong::Deadlock(report),
            Outcome::Ended(_) | Outcome::Resting(_) | Outcome::Budget => return wrong.clone(),
        },
        Wrong::Leak(_) => return wrong.clone(),
        Wrong::Move(wanted) => wanted,
    };
    mover.find(numbers);
    let is_like = |found: &&Move| match (&found.end, &wanted.end) {
        (MoveEnd::Fails(report), _) => wanted.is_like(report),
        (MoveEnd::Endless(_), MoveEnd::Endless(_)) => true,
        (_, _) => false,
    };
    let alike = || mover.found.iter().map(|found| mover.get(*found)).filter(is_like);
    let is_same =
        |found: &&Move| (found.step, found.message, &found.choices) == (wanted.step, wanted.message, &wanted.choices);
    Wrong::Move(alike().find(is_same).or_else(|| alike().next()).unwrap_or(wanted).clone())
}

/// Whether a run goes on after a move.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Goes {
    /// It does.
    On,
    /// The move ends it.
    Over,
}

/// Takes the move to the state that is wanted, if there is one.
pub(crate) fn try_step_to(
    mover: &mut Mover<'_>,
    numbers: &mut [u32],
    way: &mut Vec<Chosen>,
    goes: Goes,
    is_wanted: &dyn Fn(&[u32]) -> bool,
) -> bool {
    mover.find(numbers);
    let mut reached = vec![0; numbers.len()];
    let base = hash(numbers);
    for index in 0..mover.found.len() {
        let found = mover.found[index];
        let leads = if matches!(mover.get(found).end, MoveEnd::Goes) { Goes::On } else { Goes::Over };
        if leads != goes {
            continue;
        }
        mover.apply(found, numbers, base, &mut reached);
        let mut same = reached.clone();
        for group in &mover.space.groups {
            same[group.clone()].sort_unstable();
        }
        if !is_wanted(&same) {
            continue;
        }
        let found = mover.get(found).clone();
        way.push(Chosen::of(&found));
        for (slot, part) in &found.changes {
            numbers[*slot as usize] = *part;
        }
        if let Some(counter) = found.counter {
            numbers[counter as usize] += 1;
        }
        let slots: Vec<u32> = found.changes.iter().map(|(slot, _)| *slot).collect();
        settle(mover, numbers, slots.into_iter(), way);
        return true;
    }
    false
}

/// The own code that some run at once.
fn settle(mover: &mut Mover<'_>, numbers: &mut [u32], slots: impl Iterator<Item = u32>, way: &mut Vec<Chosen>) {
    if mover.space.stepping != Stepping::Settled {
        return;
    }
    for slot in slots.filter(|slot| (*slot as usize) < mover.space.instances) {
        let settled = mover.settled_part(slot, numbers[slot as usize]);
        if settled != numbers[slot as usize] {
            way.push(Chosen::local(slot));
            numbers[slot as usize] = settled;
        }
    }
}

/// Takes the steps once more and notes what happens.
pub(crate) fn narrate(space: &Space<'_>, way: &[Chosen]) -> Result<Vec<Traced>, TooLarge> {
    let mut mover = Mover::new(space)?;
    let numbers = mover.start();
    mover.load_all(&numbers);
    let (machine, state, world) = mover.scene();
    let mut traced = Vec::new();
    for chosen in way {
        let branch = |instance, branch| machine.branch_location(state, instance, branch);
        let locations: Vec<Location> = match chosen.step {
            Step::Local { instance } | Step::Else { instance } => vec![machine.location(state, instance)],
            Step::Communicate { sender, sender_branch, receiver, receiver_branch } => {
                vec![branch(sender, sender_branch), branch(receiver, receiver_branch)]
            }
            Step::FromWorld { instance, branch: number }
            | Step::ToWorld { instance, branch: number }
            | Step::After { instance, branch: number } => vec![branch(instance, number)],
        };
        let (message, effect) = chosen.take(machine, state, world);
        traced.push(Traced { step: chosen.step, message, calls: world.calls().to_vec(), locations });
        match effect {
            Effect::Done => {}
            Effect::Exited(_) | Effect::Faulted(_) | Effect::Unfinished => break,
        }
    }
    Ok(traced)
}

/// Where an instance stands after these steps.
pub(crate) fn standing_at(space: &Space<'_>, way: &[Chosen], instance: u32) -> Result<Location, TooLarge> {
    let mut mover = Mover::new(space)?;
    let numbers = mover.start();
    mover.load_all(&numbers);
    let (machine, state, world) = mover.scene();
    for chosen in way {
        chosen.take(machine, state, world);
    }
    Ok(machine.location(state, instance))
}
