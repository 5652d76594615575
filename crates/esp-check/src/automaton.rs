//! Translation of an LTL formula into a transition-based generalised Büchi automaton, on the fly (Gastin, Oddoux: Fast
//! LTL to Büchi automata translation, 2001; Couvreur: On-the-fly verification of linear temporal logic, 1999).
//!
//! A state is a set of `Until`s and `Release`s that the rest of the run has to fulfil. A step reads a valuation of the
//! atomic propositions, chooses an expansion of each formula, and records the `Until`s whose eventuality (right side)
//! it postpones. A run is accepted if it postpones no eventuality forever (transition-based generalised Büchi
//! acceptance). As the valuation is known when a step is computed, propositions about a single moment need no states.

use crate::formula::{Formula, FormulaId, Formulas, Sign};
use crate::options::Limit;
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// The automaton as computed so far. Its initial state is 0.
#[derive(Clone, Debug)]
pub(crate) struct Automaton {
    formulas: Formulas,
    states: FormulaSets,
    /// Sets of `Until`s that a step postpones; number 0 is the empty set.
    postponed_sets: FormulaSets,
    steps: FxHashMap<(u32, u64), Rc<[AutomatonStep]>>,
    bytes: u64,
}

/// A step of the automaton.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct AutomatonStep {
    /// The next state.
    pub(crate) to: u32,
    /// The eventualities that it postpones: see [`Automaton::postponed`].
    pub(crate) postponed_set: u32,
}

/// Sets of formulas by number.
#[derive(Clone, Default, Debug)]
struct FormulaSets {
    sets: Vec<Rc<[FormulaId]>>,
    numbers: FxHashMap<Rc<[FormulaId]>, u32>,
}

impl FormulaSets {
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

/// Called at intervals with the approximate memory of the automaton; an error ends the computation.
pub(crate) type LimitCheck<'p> = &'p mut dyn FnMut(u64) -> Result<(), Limit>;

impl Automaton {
    /// The automaton of a formula over at most 64 atomic propositions.
    pub(crate) fn new(formulas: Formulas, formula: FormulaId) -> Automaton {
        let (mut states, mut postponed_sets) = (FormulaSets::default(), FormulaSets::default());
        states.number(&[formula]);
        postponed_sets.number(&[]);
        Automaton { formulas, states, postponed_sets, steps: FxHashMap::default(), bytes: 0 }
    }

    /// The `Until`s that a step postpones, sorted.
    pub(crate) fn postponed(&self, postponed_set: u32) -> &[FormulaId] {
        &self.postponed_sets.sets[postponed_set as usize]
    }

    /// Whether every continuation of a run is accepted from this state on: no obligation remains.
    pub(crate) fn accepts_all(&self, state: u32) -> bool {
        self.states.sets[state as usize].is_empty()
    }

    /// Approximate memory.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.bytes
    }

    /// The steps from a state under this valuation. Without steps no continuation of the run fulfils the formula.
    pub(crate) fn steps(
        &mut self,
        state: u32,
        atoms: u64,
        limit_check: LimitCheck<'_>,
    ) -> Result<Rc<[AutomatonStep]>, Limit> {
        if let Some(known) = self.steps.get(&(state, atoms)) {
            return Ok(Rc::clone(known));
        }
        let mut work = WorkBudget { bytes: self.bytes, since_check: 0, limit_check };
        let set = Rc::clone(&self.states.sets[state as usize]);
        let mut expansion = StepExpansion { formulas: &self.formulas, atoms, known: FxHashMap::default() };
        let found = expansion.expand_all(&set, &mut work)?;
        let mut alternatives = Vec::new();
        for mut obligations in found.iter().cloned() {
            obligations.remove_implied(&self.formulas);
            add(&mut alternatives, obligations, &mut work)?;
        }
        let number = |obligations: &Obligations| AutomatonStep {
            to: self.states.number(&obligations.next),
            postponed_set: self.postponed_sets.number(&obligations.postponed),
        };
        let steps: Rc<[AutomatonStep]> = alternatives.iter().map(number).collect();
        self.bytes += 100 + alternatives.iter().map(Obligations::memory_bytes).sum::<u64>();
        self.steps.insert((state, atoms), Rc::clone(&steps));
        Ok(steps)
    }
}

/// One expansion of formulas in a step: the obligations of the rest of the run, and the postponed eventualities. Both
/// sets are sorted.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Obligations {
    next: Vec<FormulaId>,
    postponed: Vec<FormulaId>,
}

impl Obligations {
    /// No obligation remains.
    fn done() -> Obligations {
        Obligations { next: Vec::new(), postponed: Vec::new() }
    }

    fn memory_bytes(&self) -> u64 {
        (size_of::<Obligations>() + 4 * (self.next.len() + self.postponed.len())) as u64
    }

    /// Whether it accepts every run that the other one accepts.
    fn covers(&self, other: &Obligations) -> bool {
        is_subset(&self.next, &other.next) && is_subset(&self.postponed, &other.postponed)
    }

    fn with(&self, other: &Obligations) -> Obligations {
        Obligations { next: union(&self.next, &other.next), postponed: union(&self.postponed, &other.postponed) }
    }

    /// Removes obligations that a release in `next` implies: it expands to them again in the next step.
    fn remove_implied(&mut self, formulas: &Formulas) {
        let implied: Vec<FormulaId> = self.next.iter().flat_map(|id| formulas.implied(*id)).copied().collect();
        if !implied.is_empty() {
            self.next.retain(|id| !implied.contains(id));
        }
    }
}

fn is_subset(small: &[FormulaId], large: &[FormulaId]) -> bool {
    small.len() <= large.len() && {
        let mut rest = large.iter();
        small.iter().all(|member| rest.any(|other| member == other))
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

/// The work spent on the steps of a state.
struct WorkBudget<'p> {
    bytes: u64,
    /// Units of work since the limits were last checked.
    since_check: usize,
    limit_check: LimitCheck<'p>,
}

/// Units of work between two checks of the limits.
const WORK_BETWEEN_CHECKS: usize = 4096;

impl WorkBudget<'_> {
    fn spend(&mut self, effort: usize, bytes: u64) -> Result<(), Limit> {
        self.bytes += bytes;
        self.since_check += effort;
        if self.since_check < WORK_BETWEEN_CHECKS {
            return Ok(());
        }
        self.since_check = 0;
        (self.limit_check)(self.bytes)
    }
}

/// Adds an alternative, unless another one covers it.
fn add(alternatives: &mut Vec<Obligations>, obligations: Obligations, work: &mut WorkBudget<'_>) -> Result<(), Limit> {
    work.spend(
        1 + alternatives.len() + obligations.next.len() + obligations.postponed.len(),
        obligations.memory_bytes(),
    )?;
    if !alternatives.iter().any(|known| known.covers(&obligations)) {
        alternatives.retain(|known| !obligations.covers(known));
        alternatives.push(obligations);
    }
    Ok(())
}

/// The expansion of formulas under one valuation.
struct StepExpansion<'f> {
    formulas: &'f Formulas,
    atoms: u64,
    known: FxHashMap<FormulaId, Rc<[Obligations]>>,
}

impl StepExpansion<'_> {
    /// The expansions of a conjunction.
    fn expand_all(&mut self, formulas: &[FormulaId], work: &mut WorkBudget<'_>) -> Result<Rc<[Obligations]>, Limit> {
        let mut alternatives: Rc<[Obligations]> = Rc::new([Obligations::done()]);
        for formula in formulas {
            let own = self.expand_one(*formula, work)?;
            alternatives = conjunction(&alternatives, &own, work)?;
            if alternatives.is_empty() {
                break;
            }
        }
        Ok(alternatives)
    }

    /// The expansions of one formula. The recursion is as deep as the formula, which [`Formulas::height`] bounds.
    fn expand_one(&mut self, id: FormulaId, work: &mut WorkBudget<'_>) -> Result<Rc<[Obligations]>, Limit> {
        if let Some(known) = self.known.get(&id) {
            return Ok(Rc::clone(known));
        }
        let formulas = self.formulas;
        let here = |holds: bool| if holds { Rc::new([Obligations::done()]) as Rc<[Obligations]> } else { Rc::new([]) };
        let alternatives = match formulas.get(id) {
            Formula::True => here(true),
            Formula::False => here(false),
            Formula::Literal(atom, sign) => here((self.atoms >> atom & 1 == 1) == (*sign == Sign::Holds)),
            Formula::And(parts) => self.expand_all(parts, work)?,
            Formula::Or(parts) => {
                let mut alternatives = Vec::new();
                for part in parts {
                    for obligations in self.expand_one(*part, work)?.iter() {
                        add(&mut alternatives, obligations.clone(), work)?;
                    }
                }
                alternatives.into()
            }
            Formula::Until(a, b) => {
                let (eventuality, run) = (self.expand_one(*b, work)?, self.expand_one(*a, work)?);
                let later = conjunction(&run, &[Obligations { next: vec![id], postponed: vec![id] }], work)?;
                disjunction(&eventuality, &later, work)?
            }
            Formula::Release(a, b) => {
                let (kept, end) = (self.expand_one(*b, work)?, self.expand_one(*a, work)?);
                let end = disjunction(&end, &[Obligations { next: vec![id], postponed: Vec::new() }], work)?;
                conjunction(&kept, &end, work)?
            }
        };
        self.known.insert(id, Rc::clone(&alternatives));
        Ok(alternatives)
    }
}

fn disjunction(a: &[Obligations], b: &[Obligations], work: &mut WorkBudget<'_>) -> Result<Rc<[Obligations]>, Limit> {
    let mut alternatives = Vec::new();
    for obligations in a.iter().chain(b) {
        add(&mut alternatives, obligations.clone(), work)?;
    }
    Ok(alternatives.into())
}

fn conjunction(a: &[Obligations], b: &[Obligations], work: &mut WorkBudget<'_>) -> Result<Rc<[Obligations]>, Limit> {
    let mut alternatives = Vec::new();
    for left in a {
        for right in b {
            add(&mut alternatives, left.with(right), work)?;
        }
    }
    Ok(alternatives.into())
}

#[cfg(test)]
mod tests;
