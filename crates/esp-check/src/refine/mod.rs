//! Whether a program with fast paths does no more than the program without: the two are explored side by side.
//!
//! ```text
//!   with     f ---------step--------> f'         every step of the program with paths ..
//!            |                        |
//!   without  S --steps, same seen---> S'         .. is some steps of the program without, of which others see the same
//! ```
//!
//! `S` holds the states that the program without can be in. Where no path is under way they are all the same as `f` but
//! for own code of members that still has to run and of which nothing is seen: everybody stands at the same place, and
//! what matters has the same values. So a path must leave everybody where their own code could have brought them
//! (reference, section 10, rule 9). While a path waits for the world, `S` holds all states that its members can have come
//! to. Only those who take part in a step, and the members of their paths, may move in its answer.
//!
//! An answer is a run of the program without, step by step, and every state in which one was found is gone on from. So
//! what is taken for the same place or for what matters decides which answers are found, not whether they are right.
//!
//! Also compared: faults, ends, and rest. A deadlock is then one of the program without; and no path goes on and on
//! without a step of it.

mod cut;
mod observer;
mod places;
mod plain;
mod report;
mod seen;
mod turns;

pub use observer::{Observed, observe};
pub use report::{Difference, Odd, PathUse, Refinement, Refines};

use crate::Refusal;
use crate::moves::{MoveEnd, Mover};
use crate::options::{Limit, Limits, Progress};
use crate::reduce::actors;
use crate::report::restrictions;
use crate::retrace::{Chosen, narrate};
use crate::search::BETWEEN_PROGRESS;
use crate::space::{MOST_IN_SETS, Space, Stepping, bit};
use crate::store::hash;
use places::{Places, places};
use plain::{Plain, PlainId, Reached};
use quaject_esp_exec::adopt::Matters;
use quaject_esp_exec::footprint::data_bytes;
use quaject_esp_exec::report::Outcome;
use quaject_esp_exec::step::{Step, TooLarge};
use quaject_esp_ir::ir::{Location, Program};
use quaject_esp_ir::model::ModelProgram;
use rustc_hash::FxHashMap;
use seen::Sights;
use std::time::Instant;

/// A model's program in the forms that are compared.
#[derive(Clone, Copy, Debug)]
pub struct Forms<'p> {
    /// The program as it is lowered.
    pub plain: &'p ModelProgram,
    /// The same, its blocks cut where paths may be left: block b of `fast` is block b here.
    pub cut: &'p Program,
    /// The program with fast paths.
    pub fast: &'p Program,
}

/// Explores a program with fast paths beside the program without. `progress` is told from time to time how far it is.
///
/// # Errors
///
/// The program is too large, has too many instances, or lacks ranges.
pub fn refine(forms: Forms<'_>, limits: &Limits, progress: &mut dyn FnMut(Progress)) -> Result<Refinement, Refusal> {
    let started = Instant::now();
    let bytes = data_bytes(forms.fast).saturating_add(data_bytes(forms.cut));
    if let Some(most) = limits.bytes.map(|most| most as usize).filter(|most| bytes > *most) {
        return Err(Refusal::TooLarge(TooLarge { bytes, most }));
    }
    let (without, places) = places(forms.cut, forms.fast);
    let of = |program: &Program| ModelProgram { program: program.clone(), ..forms.plain.clone() };
    let (fast, without) = (of(forms.fast), of(&without));
    let space = Space::new(&fast, Stepping::Whole, false).map_err(Refusal::Unbounded)?;
    let beside = Space::new(&without, Stepping::Plain, false).map_err(Refusal::Unbounded)?;
    if space.instances > MOST_IN_SETS {
        return Err(Refusal::TooMany(space.instances as u32));
    }
    let mut search = Search::new(&space, &beside, places, limits, started)?;
    let refines = match cut::is_cut(&forms.plain.program, forms.cut) {
        false => Refines::Differs(Difference { odd: Odd::Text, steps: Vec::new() }),
        true => match search.run(progress) {
            Ok(None) => Refines::Holds,
            Ok(Some((node, last, odd))) => {
                let way = search.way(node, last);
                let mut steps = narrate(&space, &way)?;
                // Own code of which nothing is seen belongs to the step before it.
                steps.truncate(way.len());
                Refines::Differs(Difference { odd, steps })
            }
            Err(limit) => Refines::Unfinished(limit),
        },
    };
    Ok(Refinement {
        refines,
        states: search.nodes.len() as u64,
        plain_states: search.plain.count() as u64,
        transitions: search.transitions,
        depth: search.nodes.last().map_or(0, |node| node.depth),
        bytes: search.bytes() as u64,
        elapsed: started.elapsed(),
        paths: search.uses(),
        restrictions: restrictions(&fast),
    })
}

/// A state of the program with paths, and what the one without can be in.
struct Node {
    state: Box<[u32]>,
    /// A set of states, by number.
    beside: u32,
    /// Where the program without settles when no path is under way; while one is, where it did before.
    base: PlainId,
    /// Whether no path is under way.
    is_settled: bool,
    parent: u32,
    /// The step that led here.
    chosen: Option<Chosen>,
    depth: u32,
}

struct Search<'m> {
    mover: Mover<'m>,
    matters: Matters,
    places: Places,
    plain: Plain<'m>,
    sights: Sights,
    nodes: Vec<Node>,
    known: FxHashMap<(Box<[u32]>, u32, PlainId), u32>,
    sets: Vec<Box<[PlainId]>>,
    numbers_of_sets: FxHashMap<Box<[PlainId]>, u32>,
    /// Steps of which nothing is seen, and after which the program without may still be where it was.
    idle: Vec<(u32, u32)>,
    /// Per instance: it and the members of its paths, if it has any.
    companies: Vec<u128>,
    /// Those who can be on a path.
    members: u128,
    limits: Limits,
    started: Instant,
    transitions: u64,
    held: usize,
}

/// Where the search ends: at a node, perhaps with one more step, and why.
type Found = (u32, Option<Chosen>, Odd);

impl<'m> Search<'m> {
    fn new(
        space: &'m Space<'m>,
        beside: &'m Space<'m>,
        places: Places,
        limits: &Limits,
        started: Instant,
    ) -> Result<Search<'m>, TooLarge> {
        let (mut mover, mut other) = (Mover::new(space)?, Mover::new(beside)?);
        mover.limit(limits, started);
        mover.world.listen();
        other.limit(limits, started);
        let matters = mover.scene().0.matters();
        let mut companies: Vec<u128> = (0..space.instances).map(bit).collect();
        let mut members = 0;
        for path in &space.model.program.paths {
            let others = path.members.iter().fold(0, |all, member| all | bit(member.instance as usize));
            companies[path.trigger as usize] |= others;
            members |= others | bit(path.trigger as usize);
        }
        Ok(Search {
            mover,
            matters,
            places,
            plain: Plain::new(other, members),
            sights: Sights::default(),
            nodes: Vec::new(),
            known: FxHashMap::default(),
            sets: Vec::new(),
            numbers_of_sets: FxHashMap::default(),
            idle: Vec::new(),
            companies,
            members,
            limits: limits.clone(),
            started,
            transitions: 0,
            held: 0,
        })
    }

    /// Explores everything; what is odd, if something is.
    fn run(&mut self, progress: &mut dyn FnMut(Progress)) -> Result<Option<Found>, Limit> {
        let start = self.mover.start();
        let first = self.plain.mover.start();
        let first = self.plain.number(&first);
        let base = self.plain.settled(first, &mut self.sights)?;
        let Some(same) = self.without(&start) else { return Ok(Some((0, None, Odd::Start))) };
        if self.plain.settled(same, &mut self.sights)? != base {
            return Ok(Some((0, None, Odd::Start)));
        }
        self.add(&start, &[first], base, true, None);
        let (mut next, mut told) = (0, Instant::now());
        while next < self.nodes.len() {
            if let Some(found) = self.expand(next as u32)? {
                return Ok(Some(found));
            }
            next += 1;
            self.check_limits()?;
            if told.elapsed() > BETWEEN_PROGRESS {
                told = Instant::now();
                progress(Progress {
                    states: self.nodes.len() as u64,
                    depth: self.nodes[next - 1].depth,
                    bytes: self.bytes() as u64,
                    elapsed: self.started.elapsed(),
                });
            }
        }
        self.find_turn()
    }

    /// Takes every step of a node.
    fn expand(&mut self, number: u32) -> Result<Option<Found>, Limit> {
        let Node { state, beside, base, is_settled, .. } = &self.nodes[number as usize];
        let (state, base, is_settled) = (state.clone(), *base, *is_settled);
        let beside = self.sets[*beside as usize].clone();
        self.mover.find(&state);
        if let Some(limit) = self.mover.cut {
            return Err(limit);
        }
        if self.mover.rests()
            && let Some(odd) = self.rests_otherwise(&state, &beside, is_settled)?
        {
            return Ok(Some((number, None, odd)));
        }
        self.mover.find(&state);
        let (first, count) = self.enough();
        let base_hash = hash(&state);
        let mut to = vec![0; state.len()];
        let moves: Vec<(Chosen, bool, Box<[u32]>)> = (first..first + count)
            .map(|index| {
                let found = self.mover.found[index];
                let goes = matches!(self.mover.get(found).end, MoveEnd::Goes);
                let chosen = Chosen::of(self.mover.get(found));
                to.copy_from_slice(&state);
                if goes {
                    self.mover.apply(found, &state, base_hash, &mut to);
                }
                (chosen, goes, to.as_slice().into())
            })
            .collect();
        for (chosen, goes, to) in moves {
            self.transitions += 1;
            let seen = self.sights.of_step(&mut self.mover, &state, &chosen);
            let fault = self.sights.fault.take();
            let among = self.company(chosen.step);
            let wanted = if goes { self.without(&to) } else { None };
            let reached = self.after(&beside, among, &seen, wanted)?;
            let (set, next_base) = match (goes, wanted) {
                (false, _) if reached.is_over => continue,
                (true, Some(wanted)) if !reached.found.is_empty() => {
                    (reached.found, self.plain.settled(wanted, &mut self.sights)?)
                }
                (true, None) if !reached.states.is_empty() => (reached.states, base),
                (_, _) => {
                    let odd = if goes { self.odd(&to, wanted, reached)? } else { Odd::End { fault } };
                    return Ok(Some((number, Some(chosen), odd)));
                }
            };
            let next = self.add(&to, &set, next_base, wanted.is_some(), Some((number, chosen)));
            if seen.is_empty() && next_base == base {
                self.idle.push((number, next));
            }
        }
        Ok(None)
    }

    /// What is odd about a step that has no answer.
    fn odd(&mut self, to: &[u32], wanted: Option<PlainId>, reached: Reached) -> Result<Odd, Limit> {
        let Some(wanted) = wanted.filter(|_| !reached.states.is_empty()) else { return Ok(Odd::Seen) };
        let wanted = self.plain.settled(wanted, &mut self.sights)?;
        let instances = self.mover.space.instances;
        let mut is_possible = vec![false; instances];
        for state in reached.states {
            let state = self.plain.settled(state, &mut self.sights)?;
            let parts = self.plain.state(state).iter().zip(self.plain.state(wanted));
            is_possible.iter_mut().zip(parts).for_each(|(is_possible, (part, wanted))| *is_possible |= part == wanted);
        }
        let never = (0..instances as u32).filter(|instance| !is_possible[*instance as usize]).collect();
        self.mover.load_all(to);
        let (machine, state, _) = self.mover.scene();
        let at: Vec<(u32, Location)> =
            (0..instances as u32).map(|instance| (instance, machine.location(state, instance))).collect();
        Ok(Odd::Left { at, never })
    }

    /// Whether one rests and the other does not, or otherwise.
    fn rests_otherwise(&mut self, state: &[u32], beside: &[PlainId], is_settled: bool) -> Result<Option<Odd>, Limit> {
        let outcome = self.mover.rest(state);
        let Some(other) = beside.first().filter(|_| is_settled) else { return Ok(Some(Odd::Stuck)) };
        let other = self.plain.settled(*other, &mut self.sights)?;
        let waiting = |outcome: &Outcome| match outcome {
            Outcome::Faulted(report) => report.waits.iter().map(|wait| wait.instance).collect(),
            Outcome::Budget | Outcome::Resting(_) | Outcome::Ended(_) => Vec::new(),
        };
        let is_same = match (&outcome, self.plain.rest(other)) {
            (Outcome::Faulted(_), Some(other @ Outcome::Faulted(_))) => waiting(&outcome) == waiting(&other),
            (Outcome::Ended(status), Some(Outcome::Ended(other))) => *status == other,
            (Outcome::Resting(_), Some(Outcome::Resting(_))) => true,
            (_, _) => false,
        };
        Ok((!is_same).then_some(Odd::Rest))
    }

    /// The moves that are enough: own code of somebody on no path, which nobody can tell from other orders; else all.
    fn enough(&mut self) -> (usize, usize) {
        for index in 0..self.mover.found.len() {
            let found = self.mover.get(self.mover.found[index]);
            let (Step::Local { instance }, MoveEnd::Goes, []) = (found.step, &found.end, &found.choices[..]) else {
                continue;
            };
            let [(slot, part)] = found.changes[..] else { continue };
            let is_apart = self.members & bit(instance as usize) == 0 && self.mover.space.is_alone(instance);
            if slot == instance && is_apart && self.mover.comes_to_rest(slot, part) {
                return (index, 1);
            }
        }
        (0, self.mover.found.len())
    }

    /// Who may move to answer a step.
    fn company(&self, step: Step) -> u128 {
        let own = actors(step);
        (0..self.companies.len()).filter(|one| own & bit(*one) != 0).fold(own, |all, one| all | self.companies[one])
    }

    fn after(
        &mut self,
        from: &[PlainId],
        among: u128,
        seen: &[u32],
        wanted: Option<PlainId>,
    ) -> Result<Reached, Limit> {
        let (limits, started, nodes) = (&self.limits, self.started, self.nodes.len());
        let held = self.held;
        let mut may_go_on = |plain: &Plain<'_>| within(limits, started, nodes + plain.count(), held + plain.bytes());
        self.plain.after(from, among, seen, wanted, &mut self.sights, &mut may_go_on)
    }

    /// The state of the program without paths that is the same; nothing if a path is under way.
    fn without(&mut self, numbers: &[u32]) -> Option<PlainId> {
        self.mover.load_all(numbers);
        let space = self.mover.space;
        let (machine, state, _) = self.mover.scene();
        let (other, beside, _) = self.plain.mover.scene();
        let mut is_adopted = true;
        for instance in 0..space.instances as u32 {
            let place = machine.place(state, instance, &self.matters);
            let place = self.places.without(space.process(instance).0 as usize, place);
            is_adopted &= place.is_some_and(|place| other.adopt(beside, state, instance, place, &self.plain.matters));
        }
        if !is_adopted {
            return None;
        }
        let mut same = numbers.to_vec();
        if space.shared.is_some() {
            let mut bytes = Vec::new();
            state.save_shared(&mut bytes);
            other.load_shared(beside, &bytes);
        }
        for slot in 0..space.instances as u32 + u32::from(space.shared.is_some()) {
            same[slot as usize] = self.plain.mover.save(slot);
        }
        Some(self.plain.number(&same))
    }

    /// The node of a state and a set, new or known.
    fn add(
        &mut self,
        state: &[u32],
        set: &[PlainId],
        base: PlainId,
        is_settled: bool,
        from: Option<(u32, Chosen)>,
    ) -> u32 {
        let next = self.sets.len() as u32;
        let beside = *self.numbers_of_sets.entry(set.into()).or_insert(next);
        if beside == next {
            self.sets.push(set.into());
            self.held += 2 * size_of_val(set) + 64;
        }
        let number = self.nodes.len() as u32;
        let key = (state.into(), beside, base);
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        self.known.insert(key, number);
        self.held += 2 * size_of_val(state) + size_of::<Node>() + 64;
        let (parent, chosen, depth) = match from {
            Some((parent, chosen)) => (parent, Some(chosen), self.nodes[parent as usize].depth + 1),
            None => (0, None, 0),
        };
        self.nodes.push(Node { state: state.into(), beside, base, is_settled, parent, chosen, depth });
        number
    }

    /// The steps that lead to a node, and one more.
    fn way(&self, node: u32, last: Option<Chosen>) -> Vec<Chosen> {
        let mut way: Vec<Chosen> = last.into_iter().collect();
        let mut at = node;
        while let Some(Node { parent, chosen: Some(chosen), .. }) = self.nodes.get(at as usize) {
            way.push(chosen.clone());
            at = *parent;
        }
        way.reverse();
        way
    }

    fn bytes(&self) -> usize {
        self.held + self.mover.bytes() + self.mover.space.parts.bytes() + self.plain.bytes()
    }

    fn check_limits(&self) -> Result<(), Limit> {
        within(&self.limits, self.started, self.nodes.len() + self.plain.count(), self.bytes())
    }
}

/// Whether a search may go on.
fn within(limits: &Limits, started: Instant, states: usize, bytes: usize) -> Result<(), Limit> {
    let limit = if limits.states.is_some_and(|most| states as u64 > most) {
        Limit::States
    } else if limits.bytes.is_some_and(|most| bytes as u64 > most) {
        Limit::Memory
    } else if limits.time.is_some_and(|most| started.elapsed() > most) {
        Limit::Time
    } else if limits.is_interrupted() {
        Limit::Interrupted
    } else {
        return Ok(());
    };
    Err(limit)
}
