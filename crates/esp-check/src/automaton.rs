//! From a formula to an automaton on infinite runs that accepts those which fulfil it, made while it is used.
//!
//! A state is a set of `Until`s and `Release`s that the rest of the run must fulfil. A step reads which atoms hold; it
//! chooses how each formula is kept, and notes the `Until`s whose goal it puts off. A run is accepted if none is put
//! off for ever (generalised, on the steps: Gastin, Oddoux: Fast LTL to Büchi automata translation, 2001; Couvreur:
//! On-the-fly verification of linear temporal logic, 1999). As the atoms are known when a step is worked out, what a
//! formula says of one moment costs no states.

use crate::formula::{Formula, FormulaId, Formulas, Sign};
use crate::options::Limit;
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// The automaton, as far as it is known. It starts in state 0.
#[derive(Debug)]
pub(crate) struct Automaton {
    formulas: Formulas,
    states: Table,
    /// Sets of `Until`s that a step puts off; number 0 is none.
    delays: Table,
    steps: FxHashMap<(u32, u64), Rc<[AutomatonStep]>>,
    bytes: u64,
}

/// A step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct AutomatonStep {
    /// The next state.
    pub(crate) to: u32,
    /// What it puts off: see [`Automaton::delayed`].
    pub(crate) delay: u32,
}

/// Sets of formulas, by number.
#[derive(Default, Debug)]
struct Table {
    sets: Vec<Rc<[FormulaId]>>,
    numbers: FxHashMap<Rc<[FormulaId]>, u32>,
}

impl Table {
    fn number(&mut self, set: &[FormulaId]) -> u32 {
        if let Some(known) = self.numbers.get(set) {
            return *known;
        }
        let number = self.sets.len() as u32;
        let set: Rc<[FormulaId]> = set.into();
        self.sets.push(Rc::clone(&set));
        self.numbers.insert(set, number);
        number
    }
}

/// Asked from time to time whether to go on, with about how many bytes the automaton takes.
pub(crate) type Patience<'p> = &'p mut dyn FnMut(u64) -> Result<(), Limit>;

impl Automaton {
    /// The automaton of a formula over at most 64 atoms.
    pub(crate) fn new(formulas: Formulas, formula: FormulaId) -> Automaton {
        let (mut states, mut delays) = (Table::default(), Table::default());
        states.number(&[formula]);
        delays.number(&[]);
        Automaton { formulas, states, delays, steps: FxHashMap::default(), bytes: 0 }
    }

    /// The `Until`s that a step puts off, in order.
    pub(crate) fn delayed(&self, delay: u32) -> &[FormulaId] {
        &self.delays.sets[delay as usize]
    }

    /// About how much memory it takes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The steps from a state where these atoms hold. None: no run that goes on from here fulfils the formula.
    pub(crate) fn steps(
        &mut self,
        state: u32,
        atoms: u64,
        patience: Patience<'_>,
    ) -> Result<Rc<[AutomatonStep]>, Limit> {
        if let Some(known) = self.steps.get(&(state, atoms)) {
            return Ok(Rc::clone(known));
        }
        let mut work = Work { bytes: self.bytes, since: 0, patience };
        let set = Rc::clone(&self.states.sets[state as usize]);
        let mut moment = Moment { formulas: &self.formulas, atoms, known: FxHashMap::default() };
        let found = moment.all(&set, &mut work)?;
        let mut choices = Vec::new();
        for mut choice in found.iter().cloned() {
            choice.forget_held(&self.formulas);
            add(&mut choices, choice, &mut work)?;
        }
        let number = |choice: &Choice| AutomatonStep {
            to: self.states.number(&choice.next),
            delay: self.delays.number(&choice.delayed),
        };
        let steps: Rc<[AutomatonStep]> = choices.iter().map(number).collect();
        self.bytes += 100 + choices.iter().map(Choice::bytes).sum::<u64>();
        self.steps.insert((state, atoms), Rc::clone(&steps));
        Ok(steps)
    }
}

/// A way to keep formulas in a step. Both sets are in order.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Choice {
    next: Vec<FormulaId>,
    delayed: Vec<FormulaId>,
}

impl Choice {
    /// Nothing remains to be done.
    fn done() -> Choice {
        Choice { next: Vec::new(), delayed: Vec::new() }
    }

    fn bytes(&self) -> u64 {
        (size_of::<Choice>() + 4 * (self.next.len() + self.delayed.len())) as u64
    }

    /// Whether every run that the other choice accepts, this one accepts.
    fn covers(&self, other: &Choice) -> bool {
        is_subset(&self.next, &other.next) && is_subset(&self.delayed, &other.delayed)
    }

    fn with(&self, other: &Choice) -> Choice {
        Choice { next: union(&self.next, &other.next), delayed: union(&self.delayed, &other.delayed) }
    }

    /// Leaves out what others keep anyway: the steps are the same without it.
    fn forget_held(&mut self, formulas: &Formulas) {
        let held: Vec<FormulaId> = self.next.iter().flat_map(|id| formulas.held(*id)).copied().collect();
        if !held.is_empty() {
            self.next.retain(|id| !held.contains(id));
        }
    }
}

fn is_subset(small: &[FormulaId], large: &[FormulaId]) -> bool {
    small.len() <= large.len() && {
        let mut rest = large.iter();
        small.iter().all(|one| rest.any(|other| one == other))
    }
}

fn union(a: &[FormulaId], b: &[FormulaId]) -> Vec<FormulaId> {
    match (a, b) {
        ([], _) => return b.to_vec(),
        (_, []) => return a.to_vec(),
        _ => {}
    }
    let mut all = [a, b].concat();
    all.sort_unstable();
    all.dedup();
    all
}

/// What has been spent on the steps of a state.
struct Work<'p> {
    bytes: u64,
    since: usize,
    patience: Patience<'p>,
}

/// So much is done between two looks at the limits.
const BETWEEN_LOOKS: usize = 4096;

impl Work<'_> {
    fn spend(&mut self, effort: usize, bytes: u64) -> Result<(), Limit> {
        self.bytes += bytes;
        self.since += effort;
        if self.since < BETWEEN_LOOKS {
            return Ok(());
        }
        self.since = 0;
        (self.patience)(self.bytes)
    }
}

/// Adds a choice, unless another one does for it.
fn add(choices: &mut Vec<Choice>, choice: Choice, work: &mut Work<'_>) -> Result<(), Limit> {
    work.spend(1 + choices.len() + choice.next.len() + choice.delayed.len(), choice.bytes())?;
    if !choices.iter().any(|known| known.covers(&choice)) {
        choices.retain(|known| !choice.covers(known));
        choices.push(choice);
    }
    Ok(())
}

/// What formulas ask for where it is known which atoms hold.
struct Moment<'f> {
    formulas: &'f Formulas,
    atoms: u64,
    known: FxHashMap<FormulaId, Rc<[Choice]>>,
}

impl Moment<'_> {
    /// The ways to keep all of them.
    fn all(&mut self, formulas: &[FormulaId], work: &mut Work<'_>) -> Result<Rc<[Choice]>, Limit> {
        let mut choices: Rc<[Choice]> = Rc::new([Choice::done()]);
        for formula in formulas {
            let own = self.one(*formula, work)?;
            choices = both(&choices, &own, work)?;
            if choices.is_empty() {
                break;
            }
        }
        Ok(choices)
    }

    /// The ways to keep one. As deep as the formula is, which [`Formulas::height`] bounds.
    fn one(&mut self, id: FormulaId, work: &mut Work<'_>) -> Result<Rc<[Choice]>, Limit> {
        if let Some(known) = self.known.get(&id) {
            return Ok(Rc::clone(known));
        }
        let formulas = self.formulas;
        let here = |holds: bool| if holds { Rc::new([Choice::done()]) as Rc<[Choice]> } else { Rc::new([]) };
        let choices = match formulas.get(id) {
            Formula::True => here(true),
            Formula::False => here(false),
            Formula::Literal(atom, sign) => here((self.atoms >> atom & 1 == 1) == (*sign == Sign::Holds)),
            Formula::And(parts) => self.all(parts, work)?,
            Formula::Or(parts) => {
                let mut choices = Vec::new();
                for part in parts {
                    for choice in self.one(*part, work)?.iter() {
                        add(&mut choices, choice.clone(), work)?;
                    }
                }
                choices.into()
            }
            Formula::Until(a, b) => {
                let (goal, way) = (self.one(*b, work)?, self.one(*a, work)?);
                let later = both(&way, &[Choice { next: vec![id], delayed: vec![id] }], work)?;
                either(&goal, &later, work)?
            }
            Formula::Release(a, b) => {
                let (kept, end) = (self.one(*b, work)?, self.one(*a, work)?);
                let end = either(&end, &[Choice { next: vec![id], delayed: Vec::new() }], work)?;
                both(&kept, &end, work)?
            }
        };
        self.known.insert(id, Rc::clone(&choices));
        Ok(choices)
    }
}

fn either(a: &[Choice], b: &[Choice], work: &mut Work<'_>) -> Result<Rc<[Choice]>, Limit> {
    let mut choices = Vec::new();
    for choice in a.iter().chain(b) {
        add(&mut choices, choice.clone(), work)?;
    }
    Ok(choices.into())
}

fn both(a: &[Choice], b: &[Choice], work: &mut Work<'_>) -> Result<Rc<[Choice]>, Limit> {
    let mut choices = Vec::new();
    for one in a {
        for other in b {
            add(&mut choices, one.with(other), work)?;
        }
    }
    Ok(choices.into())
}

#[cfg(test)]
mod tests;
