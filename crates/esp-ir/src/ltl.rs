//! Properties in linear temporal logic: the syntax tree, and its parser for the syntax of Spin's `ltl` blocks.
//!
//! ```text
//!   [] p, always p      <> p, eventually p      p U q, p until q      p V q, p release q      p W q, p weakuntil q
//!   ! p    p && q, p /\ q    p || q, p \/ q    p -> q    p <-> q      P@L1, P[2]@Lretry, true, false
//!   P:v == 3, P[1]:v != Q:w, P:v < 10 ...    P:v alone: it is not 0
//! ```
//!
//! Operators group as in Spin 6: prefix operators bind closest, then `U`, `V` and `W`, then `&&`, then `||`, then `->`
//! and `<->`. Binary operators of one level group to the left: `p -> q -> r` is `(p -> q) -> r`, `p U q U r` is
//! `(p U q) U r`. A comparison is one proposition; after `!` it needs parentheses, because Spin reads `! P:v == 3` as
//! `(! P:v) == 3`.

use crate::ir::{LabelId, ProcessId, Program};
use quaject_esp_syntax::diagnostics::nearest;
use smol_str::SmolStr;
use std::fmt;

/// A formula, or a part of one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Formula {
    /// `true`, `false`, `1`, `0`.
    Constant(bool),
    /// An atomic proposition.
    Proposition(Proposition),
    /// A prefix operator.
    Prefix(Prefix, Box<Formula>),
    /// A binary operator.
    Binary(Binary, Box<Formula>, Box<Formula>),
    /// Two or more formulas joined by `&&` or `||`.
    Junction(Junction, Vec<Formula>),
}

/// A prefix operator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Prefix {
    /// `! p`
    Not,
    /// `[] p`
    Always,
    /// `<> p`
    Eventually,
}

/// A binary operator whose operands differ in meaning, or that is rarely repeated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Binary {
    /// `p -> q`
    Implies,
    /// `p <-> q`
    Equivalent,
    /// `p U q`: `q` eventually, and `p` until then.
    Until,
    /// `p V q`: `q` up to and including the moment of the first `p`, if there is one, or else always.
    Release,
    /// `p W q`: `p U q` or `[] p`.
    WeakUntil,
}

/// An associative operator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Junction {
    /// `p && q`
    And,
    /// `p || q`
    Or,
}

/// An atomic proposition.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Proposition {
    /// `P[2]@L1`: an instance has passed a label since its last operation.
    Passed {
        /// The process.
        process: ProcessId,
        /// The number of the instance in the program.
        instance: u32,
        /// The label of the process.
        label: LabelId,
    },
    /// A comparison of two numbers.
    Compares(Term, Comparison, Term),
}

/// A number in a proposition.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Term {
    /// A constant; of `bool`s, 1 and 0.
    Constant(i128),
    /// `P[2]:v`: a variable with its value at the instance's last wait; 0 before the first.
    Variable {
        /// The process.
        process: ProcessId,
        /// The number of the instance in the program.
        instance: u32,
        /// The variable's name; the parser does not look for it.
        name: SmolStr,
    },
}

/// A comparison operator.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Comparison {
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

impl Comparison {
    /// Its operator.
    pub fn sign(self) -> &'static str {
        match self {
            Comparison::Equal => "==",
            Comparison::NotEqual => "!=",
            Comparison::Less => "<",
            Comparison::LessOrEqual => "<=",
            Comparison::Greater => ">",
            Comparison::GreaterOrEqual => ">=",
        }
    }

    /// Whether it is true of two numbers.
    pub fn holds(self, left: i128, right: i128) -> bool {
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

impl Prefix {
    /// Its operator.
    pub fn sign(self) -> &'static str {
        match self {
            Prefix::Not => "!",
            Prefix::Always => "[]",
            Prefix::Eventually => "<>",
        }
    }
}

impl Binary {
    /// Its operator.
    pub fn sign(self) -> &'static str {
        match self {
            Binary::Implies => "->",
            Binary::Equivalent => "<->",
            Binary::Until => "U",
            Binary::Release => "V",
            Binary::WeakUntil => "W",
        }
    }
}

impl Junction {
    /// Its operator.
    pub fn sign(self) -> &'static str {
        match self {
            Junction::And => "&&",
            Junction::Or => "||",
        }
    }
}

/// Why a text is no property of a program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LtlError {
    /// The cause.
    pub message: String,
    /// How to correct it.
    pub help: Option<String>,
}

impl LtlError {
    fn new(message: impl Into<String>, help: Option<String>) -> LtlError {
        LtlError { message: message.into(), help }
    }
}

impl fmt::Display for LtlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for LtlError {}

/// The maximum nesting of a property: parentheses, prefix operators, and binary operators other than `&&` and `||`.
const MAX_DEPTH: u32 = 200;

/// Parses a property of a program. Processes, instances and labels are resolved; variables are not.
///
/// # Errors
///
/// The text is no formula, is nested more than 200 deep, or names a process, an instance or a label that the program
/// does not have.
pub fn parse(program: &Program, text: &str) -> Result<Formula, LtlError> {
    let mut parser = Parser { program, text, at: 0, depth: 0 };
    let formula = parser.implication()?;
    parser.skip_blanks();
    if parser.at < text.len() {
        return Err(parser.arithmetic().unwrap_or_else(|| {
            let rest: String = text[parser.at..].chars().take(12).collect();
            LtlError::new(format!("expected an operator or the end of the property, found `{rest}`"), None)
        }));
    }
    Ok(formula)
}

struct Parser<'a> {
    program: &'a Program,
    text: &'a str,
    at: usize,
    depth: u32,
}

impl Parser<'_> {
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
        self.at += found.map_or(0, |sign| sign.len());
        found.is_some()
    }

    /// Consumes the operator that comes next, if it is one of these.
    fn take_operator<T: Copy>(&mut self, operators: &[(&[&str], T)]) -> Option<T> {
        operators.iter().find(|(signs, _)| self.take(signs)).map(|(_, operator)| *operator)
    }

    /// The error of an arithmetic operator: properties do not compute.
    fn arithmetic(&mut self) -> Option<LtlError> {
        self.skip_blanks();
        let sign = self.text[self.at..].chars().next().filter(|sign| "+-*/%[".contains(*sign))?;
        let message = format!("a property compares variables and numbers and computes nothing: found `{sign}`");
        Some(LtlError::new(message, Some("store its value in a variable of the process".into())))
    }

    /// Runs a part of the parser one level deeper.
    fn nested<T>(&mut self, part: impl FnOnce(&mut Self) -> Result<T, LtlError>) -> Result<T, LtlError> {
        if self.depth == MAX_DEPTH {
            return Err(LtlError::too_deep());
        }
        self.depth += 1;
        let result = part(self);
        self.depth -= 1;
        result
    }

    /// Operands joined by operators of one level, which group to the left.
    fn left_associative(
        &mut self,
        operand: fn(&mut Self) -> Result<Formula, LtlError>,
        operators: &[(&[&str], Binary)],
    ) -> Result<Formula, LtlError> {
        let mut left = operand(self)?;
        let mut height = 0;
        while let Some(operator) = self.take_operator(operators) {
            height += 1;
            if self.depth + height > MAX_DEPTH {
                return Err(LtlError::too_deep());
            }
            left = Formula::Binary(operator, Box::new(left), Box::new(operand(self)?));
        }
        Ok(left)
    }

    fn implication(&mut self) -> Result<Formula, LtlError> {
        self.left_associative(
            Self::disjunction,
            &[(&["->", "implies"], Binary::Implies), (&["<->", "equivalent"], Binary::Equivalent)],
        )
    }

    /// Operands joined by an associative operator.
    fn junction(
        &mut self,
        operand: fn(&mut Self) -> Result<Formula, LtlError>,
        signs: &[&str],
        junction: Junction,
    ) -> Result<Formula, LtlError> {
        let first = operand(self)?;
        let mut parts = vec![first];
        while self.take(signs) {
            parts.push(operand(self)?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Formula::Junction(junction, parts) })
    }

    fn disjunction(&mut self) -> Result<Formula, LtlError> {
        self.junction(Self::conjunction, &["||", "\\/", "or"], Junction::Or)
    }

    fn conjunction(&mut self) -> Result<Formula, LtlError> {
        self.junction(Self::temporal, &["&&", "/\\", "and"], Junction::And)
    }

    fn temporal(&mut self) -> Result<Formula, LtlError> {
        self.left_associative(
            Self::prefixed,
            &[
                (&["U", "until", "stronguntil"], Binary::Until),
                (&["V", "R", "release"], Binary::Release),
                (&["W", "weakuntil"], Binary::WeakUntil),
            ],
        )
    }

    fn prefixed(&mut self) -> Result<Formula, LtlError> {
        let operator = self.take_operator(&[
            (&["[]", "always"], Prefix::Always),
            (&["<>", "eventually"], Prefix::Eventually),
            (&["!", "not"], Prefix::Not),
        ]);
        let Some(operator) = operator else { return self.primary() };
        let start = self.at;
        let inner = self.nested(Self::prefixed)?;
        let has_parentheses = self.text[start..].trim_start().starts_with('(');
        match (operator, &inner) {
            // Spin compares the negated number, as C does.
            (Prefix::Not, Formula::Proposition(Proposition::Compares(_, comparison, _)))
                if !has_parentheses && self.text[start..self.at].contains(comparison.sign()) =>
            {
                let message = format!("`!` before `{}` can negate the number or the comparison", comparison.sign());
                Err(LtlError::new(message, Some("put the comparison into parentheses".into())))
            }
            _ => Ok(Formula::Prefix(operator, Box::new(inner))),
        }
    }

    fn primary(&mut self) -> Result<Formula, LtlError> {
        if self.take(&["("]) {
            let inner = self.nested(Self::implication)?;
            if self.take(&[")"]) {
                return Ok(inner);
            }
            return Err(self.arithmetic().unwrap_or_else(|| LtlError::new("a parenthesis is not closed", None)));
        }
        if let Some(value) = self.take_operator(&[(&["true"], true), (&["false"], false)]) {
            return Ok(Formula::Constant(value));
        }
        let Some(number) = self.number()? else { return self.atom() };
        match (self.comparison(), number) {
            (None, 0 | 1) => Ok(Formula::Constant(number == 1)),
            (None, _) => Err(LtlError::new(format!("{number} alone is not a proposition"), example())),
            (Some(comparison), _) => Ok(compares(Term::Constant(number), comparison, self.term()?)),
        }
    }

    /// A number, if one comes next.
    fn number(&mut self) -> Result<Option<i128>, LtlError> {
        self.skip_blanks();
        let rest = &self.text[self.at..];
        let sign = usize::from(rest.starts_with('-'));
        let digits = rest[sign..].bytes().take_while(u8::is_ascii_digit).count();
        if digits == 0 {
            return Ok(None);
        }
        let text = &rest[..sign + digits];
        self.at += text.len();
        let number = text.parse().map_err(|_| LtlError::new(format!("{text} is no value of any variable"), None))?;
        Ok(Some(number))
    }

    fn comparison(&mut self) -> Option<Comparison> {
        self.skip_blanks();
        let rest = &self.text[self.at..];
        // Other operators that begin like a comparison.
        if rest.starts_with("<>") || rest.starts_with("<->") {
            return None;
        }
        // A sign comes before its prefixes.
        self.take_operator(&[
            (&["=="], Comparison::Equal),
            (&["!="], Comparison::NotEqual),
            (&["<="], Comparison::LessOrEqual),
            (&[">="], Comparison::GreaterOrEqual),
            (&["<"], Comparison::Less),
            (&[">"], Comparison::Greater),
        ])
    }

    /// The right side of a comparison.
    fn term(&mut self) -> Result<Term, LtlError> {
        if let Some(value) = self.take_operator(&[(&["true"], 1), (&["false"], 0)]) {
            return Ok(Term::Constant(value));
        }
        if let Some(number) = self.number()? {
            return Ok(Term::Constant(number));
        }
        let (process, instance) = self.instance()?;
        if !self.take(&[":"]) {
            return Err(LtlError::new("expected a number or a variable to compare with", example()));
        }
        Ok(self.variable(process, instance))
    }

    fn variable(&mut self, process: ProcessId, instance: u32) -> Term {
        self.skip_blanks();
        Term::Variable { process, instance, name: self.word().into() }
    }

    fn word(&mut self) -> &str {
        let rest = &self.text[self.at..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    /// `P`, `P[2]`: the process and the instance.
    fn instance(&mut self) -> Result<(ProcessId, u32), LtlError> {
        self.skip_blanks();
        let name = self.word().to_string();
        if name.is_empty() {
            let rest: String = self.text[self.at..].chars().take(12).collect();
            let found = if rest.is_empty() { "the end".to_string() } else { format!("`{rest}`") };
            return Err(LtlError::new(format!("expected a formula, found {found}"), example()));
        }
        let processes = &self.program.processes;
        let Some(index) = processes.iter().position(|process| process.name == name) else {
            if matches!(name.as_str(), "X" | "next") {
                let help = "the schedule decides which step is next: use `<>` or `U` for what must happen eventually";
                return Err(LtlError::new("a property cannot refer to the next step", Some(help.into())));
            }
            let names: Vec<&str> = processes.iter().map(|process| process.name.as_str()).collect();
            return Err(LtlError::new(format!("no process named `{name}`"), suggestion(&name, &names)));
        };
        let mut replica = 0;
        if self.take(&["["]) {
            self.skip_blanks();
            replica = self.word().parse().unwrap_or(u32::MAX);
            if !self.take(&["]"]) || replica >= processes[index].replicas {
                let help = format!("they are numbered 0..{}", processes[index].replicas);
                return Err(LtlError::new(format!("`{name}` has no such replica"), Some(help)));
            }
        }
        let process = ProcessId(index as u32);
        Ok((process, self.program.first_instance(process) + replica))
    }

    /// `P@L1`, `P[2]@Lretry`, `P:v`, `P:v == 3`
    fn atom(&mut self) -> Result<Formula, LtlError> {
        let (id, instance) = self.instance()?;
        if self.take(&[":"]) {
            let left = self.variable(id, instance);
            return Ok(match self.comparison() {
                Some(comparison) => compares(left, comparison, self.term()?),
                None => compares(left, Comparison::NotEqual, Term::Constant(0)),
            });
        }
        let process = &self.program.processes[id.0 as usize];
        if !self.take(&["@"]) {
            return Err(LtlError::new(format!("`{}` alone is not a proposition", process.name), example()));
        }
        let written = self.word().to_string();
        // `#1` is written `L1`, `#retry` is `Lretry`.
        let label = written.strip_prefix('L').unwrap_or(&written);
        // Each expansion of a procedure has a label of this name.
        let same_name = process.labels.iter().enumerate().filter(|(_, known)| *known == label);
        let passed = |(number, _)| {
            let label = LabelId(number as u32);
            Formula::Proposition(Proposition::Passed { process: id, instance, label })
        };
        let mut positions: Vec<Formula> = same_name.map(passed).collect();
        let Some(last) = positions.pop() else {
            let names: Vec<String> = process.labels.iter().map(|label| format!("L{label}")).collect();
            let names: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
            let message = format!("`{}` has no label `#{label}`", process.name);
            return Err(LtlError::new(message, suggestion(&written, &names)));
        };
        if positions.is_empty() {
            return Ok(last);
        }
        positions.push(last);
        Ok(Formula::Junction(Junction::Or, positions))
    }
}

fn compares(left: Term, comparison: Comparison, right: Term) -> Formula {
    Formula::Proposition(Proposition::Compares(left, comparison, right))
}

impl LtlError {
    /// The error of a formula that is nested too deeply.
    pub fn too_deep() -> LtlError {
        let help = "`a && b && ...` and `a || b || ...` may be of any length";
        LtlError::new("the property is nested too deeply", Some(help.into()))
    }
}

fn example() -> Option<String> {
    Some("a label is written `P@L1` for `#1` of process `P`, a variable `P:v`".to_string())
}

/// A suggestion for an unknown name: the nearest of the known names, or all of them.
pub fn suggestion(name: &str, known: &[&str]) -> Option<String> {
    match nearest(name, known.iter().copied()) {
        Some(near) => Some(format!("did you mean `{near}`?")),
        None if known.is_empty() => None,
        None => Some(format!("there is `{}`", known.join("`, `"))),
    }
}
