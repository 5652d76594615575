//! Properties of a model as automata: a property's syntax tree becomes a hash-consed formula over numbered atomic
//! propositions, and that the automaton of the negation.

use crate::automaton::Automaton;
use crate::formula::{FormulaId, Formulas, Sign};
use crate::waits::waits;
use quaject_esp_ir::ir::{ProcessId, Program, Wait};
use quaject_esp_ir::ltl::{Binary, Formula, Junction, LtlError, Prefix, Proposition, Term, parse, suggestion};
use quaject_esp_ir::model::Role;
use rustc_hash::FxHashMap;

/// The error of a malformed property.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadProperty {
    /// The index of the property in its model.
    pub number: usize,
    /// The message.
    pub message: String,
    /// How to correct it.
    pub help: Option<String>,
}

impl std::fmt::Display for BadProperty {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.message)
    }
}

impl std::error::Error for BadProperty {}

/// The maximum height of the formula. Each `<->` contains its operands twice.
const MAX_HEIGHT: u32 = 400;
/// The maximum number of atomic propositions of a property.
pub(crate) const MAX_ATOMS: usize = 64;

/// Parses a property; returns the automaton of its negation, with its atomic propositions. Processes that are omitted
/// have no propositions.
pub(crate) fn negated(
    program: &Program,
    roles: &[Role],
    number: usize,
    text: &str,
) -> Result<(Automaton, Vec<Proposition>), BadProperty> {
    let mut builder =
        FormulaBuilder { program, roles, atoms: Vec::new(), known: FxHashMap::default(), formulas: Formulas::new() };
    let formula = parse(program, text).and_then(|property| builder.formula(&property));
    let formula = formula.map_err(|error| BadProperty { number, message: error.message, help: error.help })?;
    let negation = builder.formulas.complement(formula);
    Ok((Automaton::new(builder.formulas, negation), builder.atoms))
}

struct FormulaBuilder<'a> {
    program: &'a Program,
    roles: &'a [Role],
    atoms: Vec<Proposition>,
    known: FxHashMap<Proposition, FormulaId>,
    formulas: Formulas,
}

impl FormulaBuilder<'_> {
    fn formula(&mut self, property: &Formula) -> Result<FormulaId, LtlError> {
        let formula = match property {
            Formula::Constant(true) => Formulas::TRUE,
            Formula::Constant(false) => Formulas::FALSE,
            Formula::Proposition(atom) => self.literal(atom)?,
            Formula::Prefix(operator, inner) => {
                let inner = self.formula(inner)?;
                match operator {
                    Prefix::Not => self.formulas.complement(inner),
                    Prefix::Always => self.formulas.release(Formulas::FALSE, inner),
                    Prefix::Eventually => self.formulas.until(Formulas::TRUE, inner),
                }
            }
            Formula::Binary(operator, left, right) => {
                let (left, right) = (self.formula(left)?, self.formula(right)?);
                self.binary(*operator, left, right)
            }
            Formula::Junction(junction, parts) => {
                let parts = parts.iter().map(|part| self.formula(part)).collect::<Result<Vec<_>, _>>()?;
                match junction {
                    Junction::And => self.formulas.and(parts),
                    Junction::Or => self.formulas.or(parts),
                }
            }
        };
        if self.formulas.height(formula) > MAX_HEIGHT { Err(LtlError::too_deep()) } else { Ok(formula) }
    }

    fn binary(&mut self, operator: Binary, left: FormulaId, right: FormulaId) -> FormulaId {
        let formulas = &mut self.formulas;
        match operator {
            Binary::Implies => {
                let not_left = formulas.complement(left);
                formulas.or(vec![not_left, right])
            }
            Binary::Equivalent => {
                let (not_left, not_right) = (formulas.complement(left), formulas.complement(right));
                let both = formulas.and(vec![left, right]);
                let neither = formulas.and(vec![not_left, not_right]);
                formulas.or(vec![both, neither])
            }
            Binary::Until => formulas.until(left, right),
            Binary::Release => formulas.release(left, right),
            // p W q is q V (p || q)
            Binary::WeakUntil => {
                let either = formulas.or(vec![left, right]);
                formulas.release(right, either)
            }
        }
    }

    fn literal(&mut self, atom: &Proposition) -> Result<FormulaId, LtlError> {
        if let Some(known) = self.known.get(atom) {
            return Ok(*known);
        }
        match atom {
            Proposition::Passed { process, .. } => self.check_role(*process)?,
            Proposition::Compares(left, _, right) => {
                self.check_term(left)?;
                self.check_term(right)?;
            }
        }
        if self.atoms.len() == MAX_ATOMS {
            let message = format!("the property has more than {MAX_ATOMS} propositions");
            return Err(LtlError { message, help: Some("divide it into several properties".into()) });
        }
        let literal = self.formulas.literal(self.atoms.len(), Sign::Holds);
        self.known.insert(atom.clone(), literal);
        self.atoms.push(atom.clone());
        Ok(literal)
    }

    /// An omitted process has no propositions.
    fn check_role(&self, process: ProcessId) -> Result<(), LtlError> {
        if self.roles.get(process.0 as usize) != Some(&Role::Omitted) {
            return Ok(());
        }
        let message = format!("`{}` is not part of this model", self.program.processes[process.0 as usize].name);
        let help = "it is omitted: add it to the `slice`, or state the property in a model of the whole program";
        Err(LtlError { message, help: Some(help.into()) })
    }

    /// A variable has to be one whose value the program's waits record.
    fn check_term(&self, term: &Term) -> Result<(), LtlError> {
        let Term::Variable { process: id, name, .. } = term else { return Ok(()) };
        self.check_role(*id)?;
        let process = &self.program.processes[id.0 as usize];
        let waits: Vec<&Wait> = waits(process).collect();
        if waits.iter().any(|wait| wait.observed.iter().any(|(known, _)| known == name)) {
            return Ok(());
        }
        let values = process.body.values.iter().filter_map(|value| value.name.as_ref());
        let slots = process.body.slots.iter().filter_map(|slot| slot.name.as_ref());
        let mut known: Vec<&str> = values.chain(slots).map(|name| name.as_str()).collect();
        known.sort_unstable();
        known.dedup();
        let mut named = process.body.values.iter().filter(|value| value.name.as_ref() == Some(name));
        if named.any(|value| self.program.types.is_scalar(value.ty)) {
            let message = format!("`{}` has several variables `{name}`", process.name);
            let help = "give the one that the property refers to a name that no other variable of the process has";
            return Err(LtlError { message, help: Some(help.into()) });
        }
        if known.contains(&name.as_str()) {
            let message = format!("`{name}` of `{}` is not a number that a property can refer to", process.name);
            let help = "only integers, `bool`s and ids can be";
            return Err(LtlError { message, help: Some(help.into()) });
        }
        let message = format!("`{}` has no variable `{name}`", process.name);
        Err(LtlError { message, help: suggestion(name, &known) })
    }
}
