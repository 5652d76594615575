//! Parser of properties in Spin's LTL syntax; produces the automaton of the negation.
//!
//! ```text
//!   [] p, always p      <> p, eventually p      p U q, p until q      p V q, p release q      p W q, p weakuntil q
//!   ! p    p && q, p /\ q    p || q, p \/ q    p -> q    p <-> q      P@L1, P[2]@Lretry, true, false
//!   P:v == 3, P[1]:v != Q:w, P:v < 10 ...    P:v alone: it is not 0
//! ```

use crate::automaton::Automaton;
use crate::formula::{FormulaId, Formulas, Sign};
use crate::waits::waits;
use quaject_esp_ir::ir::{LabelId, Program, Wait};
use quaject_esp_ir::model::Role;
use quaject_esp_syntax::diagnostics::nearest;
use rustc_hash::FxHashMap;
use smol_str::SmolStr;

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

/// An atomic proposition.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Atom {
    /// Whether an instance has passed a label since its last operation.
    Passed { instance: u32, label: LabelId },
    /// A comparison of two numbers.
    Compares(Term, Comparison, Term),
}

/// A number in a property.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Term {
    Constant(i128),
    /// A variable with its value at the instance's last wait; 0 before the first.
    Variable {
        instance: u32,
        name: SmolStr,
    },
}

/// A comparison operator.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Comparison {
    pub(crate) fn holds(self, left: i128, right: i128) -> bool {
        match self {
            Comparison::Equal => left == right,
            Comparison::NotEqual => left != right,
            Comparison::Less => left < right,
            Comparison::LessOrEqual => left <= right,
            Comparison::Greater => left > right,
            Comparison::GreaterOrEqual => left >= right,
        }
    }
}

/// Parses a property; returns the automaton of its negation, with its atomic propositions. Processes that are omitted
/// have no propositions.
pub(crate) fn negated(
    program: &Program,
    roles: &[Role],
    number: usize,
    text: &str,
) -> Result<(Automaton, Vec<Atom>), BadProperty> {
    let mut parser = PropertyParser {
        program,
        roles,
        text,
        at: 0,
        atoms: Vec::new(),
        known: FxHashMap::default(),
        formulas: Formulas::new(),
        depth: 0,
    };
    let bad = |(message, help)| BadProperty { number, message, help };
    let formula = parser.implication().map_err(bad)?;
    parser.skip_blanks();
    if parser.at < text.len() {
        return Err(bad(parser.stray().unwrap_or_else(|| {
            let rest: String = text[parser.at..].chars().take(12).collect();
            (format!("expected an operator or the end of the property, found `{rest}`"), None)
        })));
    }
    let negation = parser.formulas.complement(formula);
    Ok((Automaton::new(parser.formulas, negation), parser.atoms))
}

type Failure = (String, Option<String>);

struct PropertyParser<'a> {
    program: &'a Program,
    roles: &'a [Role],
    text: &'a str,
    at: usize,
    atoms: Vec<Atom>,
    known: FxHashMap<Atom, FormulaId>,
    formulas: Formulas,
    depth: u32,
}

/// The maximum nesting of the text: parentheses, prefix operators, right-associative operators.
const MAX_DEPTH: u32 = 300;
/// The maximum height of the formula. Each `<->` contains its operands twice.
const MAX_HEIGHT: u32 = 400;
/// The maximum number of atomic propositions of a property.
pub(crate) const MAX_ATOMS: usize = 64;

impl PropertyParser<'_> {
    fn skip_blanks(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
    }

    /// Consumes one of these tokens if it comes next.
    fn take(&mut self, signs: &[&str]) -> bool {
        self.skip_blanks();
        let rest = &self.text[self.at..];
        let found = signs.iter().find(|sign| {
            let after = rest.strip_prefix(**sign);
            let is_word = sign.starts_with(|c: char| c.is_ascii_alphabetic());
            after.is_some_and(|after| !is_word || !after.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_'))
        });
        match found {
            Some(sign) => {
                self.at += sign.len();
                true
            }
            None => false,
        }
    }

    /// The error of an arithmetic operator: properties do not compute.
    fn stray(&mut self) -> Option<Failure> {
        self.skip_blanks();
        let sign = self.text[self.at..].chars().next().filter(|sign| "+-*/%[".contains(*sign))?;
        let help = "store its value in a variable of the process".to_string();
        Some((format!("a property compares variables and numbers and computes nothing: found `{sign}`"), Some(help)))
    }

    fn enter_nesting(&mut self) -> Result<(), Failure> {
        self.depth += 1;
        if self.depth > MAX_DEPTH { Err(too_deep()) } else { Ok(()) }
    }

    /// The formula, unless it is nested too deeply.
    fn check_height(&self, formula: FormulaId) -> Result<FormulaId, Failure> {
        if self.formulas.height(formula) > MAX_HEIGHT { Err(too_deep()) } else { Ok(formula) }
    }

    fn implication(&mut self) -> Result<FormulaId, Failure> {
        self.enter_nesting()?;
        let mut left = self.disjunction()?;
        loop {
            if self.take(&["->", "implies"]) {
                let right = self.implication()?;
                let not_left = self.formulas.complement(left);
                left = self.formulas.or(vec![not_left, right]);
            } else if self.take(&["<->", "equivalent"]) {
                let right = self.disjunction()?;
                let (not_left, not_right) = (self.formulas.complement(left), self.formulas.complement(right));
                let both = self.formulas.and(vec![left, right]);
                let neither = self.formulas.and(vec![not_left, not_right]);
                left = self.formulas.or(vec![both, neither]);
            } else {
                self.depth -= 1;
                return Ok(left);
            }
            left = self.check_height(left)?;
        }
    }

    fn disjunction(&mut self) -> Result<FormulaId, Failure> {
        let mut parts = vec![self.conjunction()?];
        while self.take(&["||", "\\/", "or"]) {
            parts.push(self.conjunction()?);
        }
        Ok(self.formulas.or(parts))
    }

    fn conjunction(&mut self) -> Result<FormulaId, Failure> {
        let mut parts = vec![self.temporal()?];
        while self.take(&["&&", "/\\", "and"]) {
            parts.push(self.temporal()?);
        }
        Ok(self.formulas.and(parts))
    }

    fn temporal(&mut self) -> Result<FormulaId, Failure> {
        self.enter_nesting()?;
        let left = self.unary()?;
        let formula = if self.take(&["U", "until", "stronguntil"]) {
            let right = self.temporal()?;
            self.formulas.until(left, right)
        } else if self.take(&["V", "R", "release"]) {
            let right = self.temporal()?;
            self.formulas.release(left, right)
        } else if self.take(&["W", "weakuntil"]) {
            // p W q is q V (p || q)
            let right = self.temporal()?;
            let either = self.formulas.or(vec![left, right]);
            self.formulas.release(right, either)
        } else {
            left
        };
        self.depth -= 1;
        self.check_height(formula)
    }

    fn unary(&mut self) -> Result<FormulaId, Failure> {
        self.enter_nesting()?;
        let formula = self.unary_unchecked()?;
        self.depth -= 1;
        self.check_height(formula)
    }

    fn unary_unchecked(&mut self) -> Result<FormulaId, Failure> {
        if self.take(&["[]", "always"]) {
            let inner = self.unary()?;
            return Ok(self.formulas.release(Formulas::FALSE, inner));
        }
        if self.take(&["<>", "eventually"]) {
            let inner = self.unary()?;
            return Ok(self.formulas.until(Formulas::TRUE, inner));
        }
        if self.take(&["!", "not"]) {
            let inner = self.unary()?;
            return Ok(self.formulas.complement(inner));
        }
        if self.take(&["("]) {
            let inner = self.implication()?;
            if self.take(&[")"]) {
                return Ok(inner);
            }
            return Err(self.stray().unwrap_or_else(|| ("a parenthesis is not closed".into(), None)));
        }
        if self.take(&["true"]) {
            return Ok(Formulas::TRUE);
        }
        if self.take(&["false"]) {
            return Ok(Formulas::FALSE);
        }
        if let Some(number) = self.number()? {
            return match (self.comparison(), number) {
                (None, 0) => Ok(Formulas::FALSE),
                (None, 1) => Ok(Formulas::TRUE),
                (None, _) => Err((format!("{number} alone is not a proposition"), example())),
                (Some(comparison), _) => {
                    let right = self.term()?;
                    self.literal(Atom::Compares(Term::Constant(number), comparison, right))
                }
            };
        }
        self.atom()
    }

    /// A number, if one comes next.
    fn number(&mut self) -> Result<Option<i128>, Failure> {
        self.skip_blanks();
        let rest = &self.text[self.at..];
        let sign = usize::from(rest.starts_with('-'));
        let digits = rest[sign..].bytes().take_while(u8::is_ascii_digit).count();
        if digits == 0 {
            return Ok(None);
        }
        let text = &rest[..sign + digits];
        self.at += text.len();
        let number = text.parse().map_err(|_| (format!("{text} is no value of any variable"), None))?;
        Ok(Some(number))
    }

    fn comparison(&mut self) -> Option<Comparison> {
        self.skip_blanks();
        let rest = &self.text[self.at..];
        // Other operators that begin like a comparison.
        if rest.starts_with("<>") || rest.starts_with("<->") {
            return None;
        }
        let signs = [
            ("==", Comparison::Equal),
            ("!=", Comparison::NotEqual),
            ("<=", Comparison::LessOrEqual),
            (">=", Comparison::GreaterOrEqual),
            ("<", Comparison::Less),
            (">", Comparison::Greater),
        ];
        let (sign, comparison) = signs.into_iter().find(|(sign, _)| rest.starts_with(sign))?;
        self.at += sign.len();
        Some(comparison)
    }

    /// The right side of a comparison.
    fn term(&mut self) -> Result<Term, Failure> {
        for (word, value) in [("true", 1), ("false", 0)] {
            if self.take(&[word]) {
                return Ok(Term::Constant(value));
            }
        }
        if let Some(number) = self.number()? {
            return Ok(Term::Constant(number));
        }
        let (index, instance) = self.instance()?;
        if !self.take(&[":"]) {
            return Err(("expected a number or a variable to compare with".into(), example()));
        }
        self.variable(index, instance)
    }

    fn literal(&mut self, atom: Atom) -> Result<FormulaId, Failure> {
        if let Some(known) = self.known.get(&atom) {
            return Ok(*known);
        }
        if self.atoms.len() == MAX_ATOMS {
            let help = "divide it into several properties".to_string();
            return Err((format!("the property has more than {MAX_ATOMS} propositions"), Some(help)));
        }
        let literal = self.formulas.literal(self.atoms.len(), Sign::Holds);
        self.known.insert(atom.clone(), literal);
        self.atoms.push(atom);
        Ok(literal)
    }

    fn word(&mut self) -> &str {
        let rest = &self.text[self.at..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    /// `P`, `P[2]`: the process and the instance.
    fn instance(&mut self) -> Result<(usize, u32), Failure> {
        self.skip_blanks();
        let name = self.word().to_string();
        if name.is_empty() {
            let rest: String = self.text[self.at..].chars().take(12).collect();
            let found = if rest.is_empty() { "the end".to_string() } else { format!("`{rest}`") };
            return Err((format!("expected a formula, found {found}"), example()));
        }
        let processes = &self.program.processes;
        let Some(index) = processes.iter().position(|process| process.name == name) else {
            if matches!(name.as_str(), "X" | "next") {
                let help = "the schedule decides which step is next: use `<>` or `U` for what must happen eventually"
                    .to_string();
                return Err(("a property cannot refer to the next step".to_string(), Some(help)));
            }
            let names: Vec<&str> = processes.iter().map(|process| process.name.as_str()).collect();
            return Err((format!("no process named `{name}`"), suggestion(&name, &names)));
        };
        if self.roles.get(index) == Some(&Role::Omitted) {
            let help = "it is omitted: add it to the `slice`, or state the property in a model of the whole program"
                .to_string();
            return Err((format!("`{name}` is not part of this model"), Some(help)));
        }
        let mut replica = 0;
        if self.take(&["["]) {
            self.skip_blanks();
            replica = self.word().parse().unwrap_or(u32::MAX);
            if !self.take(&["]"]) || replica >= processes[index].replicas {
                let count = processes[index].replicas;
                return Err((format!("`{name}` has no such replica"), Some(format!("they are numbered 0..{count}"))));
            }
        }
        let first = self.program.first_instance(quaject_esp_ir::ir::ProcessId(index as u32));
        Ok((index, first + replica))
    }

    /// `P@L1`, `P[2]@Lretry`, `P:v`, `P:v == 3`
    fn atom(&mut self) -> Result<FormulaId, Failure> {
        let (index, instance) = self.instance()?;
        let process = &self.program.processes[index];
        if self.take(&[":"]) {
            let left = self.variable(index, instance)?;
            let (comparison, right) = match self.comparison() {
                Some(comparison) => (comparison, self.term()?),
                None => (Comparison::NotEqual, Term::Constant(0)),
            };
            return self.literal(Atom::Compares(left, comparison, right));
        }
        if !self.take(&["@"]) {
            return Err((format!("`{}` alone is not a proposition", process.name), example()));
        }
        let written = self.word().to_string();
        let label = written.strip_prefix('L').unwrap_or(&written);
        let Some(found) = process.labels.iter().position(|known| known == label) else {
            let names: Vec<String> = process.labels.iter().map(|label| format!("L{label}")).collect();
            let names: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
            return Err((format!("`{}` has no label `#{label}`", process.name), suggestion(&written, &names)));
        };
        self.literal(Atom::Passed { instance, label: LabelId(found as u32) })
    }

    /// The variable after `P:`.
    fn variable(&mut self, index: usize, instance: u32) -> Result<Term, Failure> {
        self.skip_blanks();
        let name = SmolStr::from(self.word());
        let process = &self.program.processes[index];
        let waits: Vec<&Wait> = waits(process).collect();
        if waits.iter().any(|wait| wait.observed.iter().any(|(known, _)| *known == name)) {
            return Ok(Term::Variable { instance, name });
        }
        let values = process.body.values.iter().filter_map(|value| value.name.as_ref());
        let slots = process.body.slots.iter().filter_map(|slot| slot.name.as_ref());
        let mut known: Vec<&str> = values.chain(slots).map(|name| name.as_str()).collect();
        known.sort_unstable();
        known.dedup();
        if known.contains(&name.as_str()) {
            let message = format!("`{name}` of `{}` is not a number that a property can refer to", process.name);
            return Err((message, Some("only integers, `bool`s and ids under a name of their own can be".into())));
        }
        let message = format!("`{}` has no variable `{name}`", process.name);
        Err((message, suggestion(&name, &known)))
    }
}

fn too_deep() -> Failure {
    (
        "the property is nested too deeply".into(),
        Some("`a && b && ...` and `a || b || ...` may be of any length".into()),
    )
}

fn example() -> Option<String> {
    Some("a label is written `P@L1` for `#1` of process `P`, a variable `P:v`".to_string())
}

/// A suggestion: the nearest of the known names, or all of them.
fn suggestion(name: &str, known: &[&str]) -> Option<String> {
    match nearest(name, known.iter().copied()) {
        Some(near) => Some(format!("did you mean `{near}`?")),
        None if known.is_empty() => None,
        None => Some(format!("there is `{}`", known.join("`, `"))),
    }
}
