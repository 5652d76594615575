//! Properties in Spin's syntax: read, and brought into the form that automata are made of.
//!
//! ```text
//!   [] p, always p      <> p, eventually p      p U q, p until q      p V q, p release q      p W q, p weakuntil q
//!   ! p    p && q, p /\ q    p || q, p \/ q    p -> q    p <-> q      P@L1, P[2]@Lretry, true, false
//! ```

use quaject_esp_ir::ir::{LabelId, Program};

/// Why a property cannot be checked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadProperty {
    /// Which of the model's properties.
    pub number: usize,
    /// What is wrong.
    pub message: String,
    /// What would be right.
    pub help: Option<String>,
}

/// What a property asks of a state: whether an instance has passed a label on its way to where it stands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Atom {
    pub(crate) instance: u32,
    pub(crate) label: LabelId,
}

/// A formula in which only atoms are negated.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) enum Formula {
    True,
    False,
    /// An atom by number, as it is or negated.
    Literal(usize, Sign),
    And(Box<Formula>, Box<Formula>),
    Or(Box<Formula>, Box<Formula>),
    Until(Box<Formula>, Box<Formula>),
    Release(Box<Formula>, Box<Formula>),
}

/// Whether an atom stands as it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) enum Sign {
    Holds,
    Fails,
}

/// A formula as it is written.
#[derive(Clone, Debug)]
enum Written {
    Constant(Sign),
    Atom(usize),
    Not(Box<Written>),
    And(Box<Written>, Box<Written>),
    Or(Box<Written>, Box<Written>),
    Until(Box<Written>, Box<Written>),
    Release(Box<Written>, Box<Written>),
}

/// Reads a property and returns its negation, which a run that contradicts it fulfils; atoms are added to `atoms`.
pub(crate) fn negated(
    program: &Program,
    number: usize,
    text: &str,
    atoms: &mut Vec<Atom>,
) -> Result<Formula, BadProperty> {
    let mut reader = Reader { program, text, at: 0, atoms, depth: 0 };
    let bad = |(message, help)| BadProperty { number, message, help };
    let written = reader.implication().map_err(bad)?;
    reader.blanks();
    if reader.at < text.len() {
        let rest: String = text[reader.at..].chars().take(12).collect();
        return Err(bad((format!("expected an operator or the end of the property, found `{rest}`"), None)));
    }
    Ok(normal(&written, Sign::Fails))
}

fn normal(written: &Written, sign: Sign) -> Formula {
    let both = |a: &Written, b: &Written| (Box::new(normal(a, sign)), Box::new(normal(b, sign)));
    match (written, sign) {
        (Written::Constant(constant), _) if *constant == sign => Formula::True,
        (Written::Constant(_), _) => Formula::False,
        (Written::Atom(atom), sign) => Formula::Literal(*atom, sign),
        (Written::Not(inner), Sign::Holds) => normal(inner, Sign::Fails),
        (Written::Not(inner), Sign::Fails) => normal(inner, Sign::Holds),
        (Written::And(a, b), Sign::Holds) | (Written::Or(a, b), Sign::Fails) => {
            let (a, b) = both(a, b);
            Formula::And(a, b)
        }
        (Written::Or(a, b), Sign::Holds) | (Written::And(a, b), Sign::Fails) => {
            let (a, b) = both(a, b);
            Formula::Or(a, b)
        }
        (Written::Until(a, b), Sign::Holds) | (Written::Release(a, b), Sign::Fails) => {
            let (a, b) = both(a, b);
            Formula::Until(a, b)
        }
        (Written::Release(a, b), Sign::Holds) | (Written::Until(a, b), Sign::Fails) => {
            let (a, b) = both(a, b);
            Formula::Release(a, b)
        }
    }
}

type Failure = (String, Option<String>);

struct Reader<'a> {
    program: &'a Program,
    text: &'a str,
    at: usize,
    atoms: &'a mut Vec<Atom>,
    depth: u32,
}

/// Deeper nesting than anybody writes.
const MOST_DEPTH: u32 = 200;

impl Reader<'_> {
    fn blanks(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
    }

    /// Takes one of these signs or words if it comes next.
    fn take(&mut self, signs: &[&str]) -> bool {
        self.blanks();
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

    fn implication(&mut self) -> Result<Written, Failure> {
        self.depth += 1;
        if self.depth > MOST_DEPTH {
            return Err(("the property is nested too deeply".into(), None));
        }
        let mut left = self.alternative()?;
        loop {
            if self.take(&["->", "implies"]) {
                left = Written::Or(Box::new(Written::Not(Box::new(left))), Box::new(self.implication()?));
            } else if self.take(&["<->", "equivalent"]) {
                let right = self.alternative()?;
                let not = |written: &Written| Box::new(Written::Not(Box::new(written.clone())));
                let neither = Written::And(not(&left), not(&right));
                left = Written::Or(Box::new(Written::And(Box::new(left), Box::new(right))), Box::new(neither));
            } else {
                self.depth -= 1;
                return Ok(left);
            }
        }
    }

    fn alternative(&mut self) -> Result<Written, Failure> {
        let mut left = self.conjunction()?;
        while self.take(&["||", "\\/", "or"]) {
            left = Written::Or(Box::new(left), Box::new(self.conjunction()?));
        }
        Ok(left)
    }

    fn conjunction(&mut self) -> Result<Written, Failure> {
        let mut left = self.temporal()?;
        while self.take(&["&&", "/\\", "and"]) {
            left = Written::And(Box::new(left), Box::new(self.temporal()?));
        }
        Ok(left)
    }

    fn temporal(&mut self) -> Result<Written, Failure> {
        let left = self.single()?;
        if self.take(&["U", "until", "stronguntil"]) {
            return Ok(Written::Until(Box::new(left), Box::new(self.temporal()?)));
        }
        if self.take(&["V", "R", "release"]) {
            return Ok(Written::Release(Box::new(left), Box::new(self.temporal()?)));
        }
        if self.take(&["W", "weakuntil"]) {
            // p W q is q V (p || q)
            let right = self.temporal()?;
            let either = Written::Or(Box::new(left), Box::new(right.clone()));
            return Ok(Written::Release(Box::new(right), Box::new(either)));
        }
        Ok(left)
    }

    fn single(&mut self) -> Result<Written, Failure> {
        self.depth += 1;
        if self.depth > MOST_DEPTH {
            return Err(("the property is nested too deeply".into(), None));
        }
        let result = self.single_within();
        self.depth -= 1;
        result
    }

    fn single_within(&mut self) -> Result<Written, Failure> {
        if self.take(&["[]", "always"]) {
            return Ok(Written::Release(Box::new(Written::Constant(Sign::Fails)), Box::new(self.single()?)));
        }
        if self.take(&["<>", "eventually"]) {
            return Ok(Written::Until(Box::new(Written::Constant(Sign::Holds)), Box::new(self.single()?)));
        }
        if self.take(&["!", "not"]) {
            return Ok(Written::Not(Box::new(self.single()?)));
        }
        if self.take(&["("]) {
            let inner = self.implication()?;
            return if self.take(&[")"]) { Ok(inner) } else { Err(("a parenthesis is not closed".into(), None)) };
        }
        if self.take(&["true", "1"]) {
            return Ok(Written::Constant(Sign::Holds));
        }
        if self.take(&["false", "0"]) {
            return Ok(Written::Constant(Sign::Fails));
        }
        self.atom()
    }

    fn word(&mut self) -> &str {
        let rest = &self.text[self.at..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    /// `P@L1`, `P[2]@Lretry`
    fn atom(&mut self) -> Result<Written, Failure> {
        self.blanks();
        let example = || Some("a label is written `P@L1` for `#1` of process `P`".to_string());
        let name = self.word().to_string();
        if name.is_empty() {
            let rest: String = self.text[self.at..].chars().take(12).collect();
            let found = if rest.is_empty() { "the end".to_string() } else { format!("`{rest}`") };
            return Err((format!("expected a formula, found {found}"), example()));
        }
        let processes = &self.program.processes;
        let Some(index) = processes.iter().position(|process| process.name == name) else {
            let names: Vec<&str> = processes.iter().map(|process| process.name.as_str()).collect();
            return Err((format!("no process named `{name}`"), nearest(&name, &names)));
        };
        let mut replica = 0;
        if self.take(&["["]) {
            self.blanks();
            replica = self.word().parse().unwrap_or(u32::MAX);
            if !self.take(&["]"]) || replica >= processes[index].replicas {
                let count = processes[index].replicas;
                return Err((format!("`{name}` has no such replica"), Some(format!("they are numbered 0..{count}"))));
            }
        }
        if self.take(&[":"]) {
            let message = "variables are not known to the built-in checker".to_string();
            return Err((message, Some("put a label where the variable has the value".into())));
        }
        if !self.take(&["@"]) {
            return Err((format!("`{name}` alone says nothing"), example()));
        }
        let written = self.word().to_string();
        let label = written.strip_prefix('L').unwrap_or(&written);
        let labels = &processes[index].labels;
        let Some(found) = labels.iter().position(|known| known == label) else {
            let names: Vec<String> = labels.iter().map(|label| format!("L{label}")).collect();
            let names: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
            return Err((format!("`{name}` has no label `#{label}`"), nearest(&written, &names)));
        };
        let first = self.program.first_instance(quaject_esp_ir::ir::ProcessId(index as u32));
        let atom = Atom { instance: first + replica, label: LabelId(found as u32) };
        let number = self.atoms.iter().position(|known| *known == atom).unwrap_or(self.atoms.len());
        if number == self.atoms.len() {
            self.atoms.push(atom);
        }
        Ok(Written::Atom(number))
    }
}

/// A suggestion: the known name that differs least, else all there are.
fn nearest(name: &str, known: &[&str]) -> Option<String> {
    let distance = |other: &str| {
        let (a, b): (Vec<char>, Vec<char>) = (name.chars().collect(), other.chars().collect());
        let mut row: Vec<usize> = (0..=b.len()).collect();
        for (i, left) in a.iter().enumerate() {
            let mut corner = row[0];
            row[0] = i + 1;
            for (j, right) in b.iter().enumerate() {
                let change = corner + usize::from(!left.eq_ignore_ascii_case(right));
                corner = row[j + 1];
                row[j + 1] = change.min(row[j] + 1).min(corner + 1);
            }
        }
        row[b.len()]
    };
    let best = known.iter().min_by_key(|known| distance(known))?;
    if distance(best) <= 2 {
        return Some(format!("did you mean `{best}`?"));
    }
    Some(format!("there is `{}`", known.join("`, `")))
}
