//! Random code of one process, procedure or function: its text, the variables in scope, and what of them can be read.

mod additions;
mod calls;
mod expressions;
mod matches;
mod patterns;
mod statements;

use super::shared::{Kind, Place, Return, Shared, Variable};
use super::types::Ty;
use fastrand::Rng;
use quaject_esp_syntax::types::IntType;

/// The text of one body during its generation.
pub struct Body {
    /// The text so far.
    pub text: String,
    /// Variables in scope.
    pub scope: Vec<Variable>,
    /// Its allowed effects.
    pub place: Place,
    /// The number of loops around the current statement.
    pub level: u32,
    /// What a `return` needs.
    pub returns: Return,
    next: u32,
    /// The loops of this body around the current statement: their labels, if they have one.
    loops: Vec<Option<String>>,
    labels: u32,
}

impl Body {
    /// An empty body.
    pub fn new(place: Place) -> Body {
        Body {
            text: String::new(),
            scope: Vec::new(),
            place,
            level: 0,
            returns: Return::Never,
            next: 0,
            loops: Vec::new(),
            labels: 0,
        }
    }

    /// A name not used before in this body.
    pub fn fresh(&mut self) -> String {
        self.next += 1;
        format!("v{}", self.next - 1)
    }

    /// Brings a variable into scope.
    pub fn push(&mut self, name: String, ty: Ty, kind: Kind) {
        self.scope.push(Variable { name, ty, kind, level: self.level });
    }

    /// Appends a line.
    pub fn line(&mut self, line: &str) {
        self.text += line;
        self.text.push('\n');
    }

    /// Runs `inside` in a nested scope of variables.
    pub fn scoped(&mut self, inside: impl FnOnce(&mut Body)) {
        let before = self.scope.len();
        inside(self);
        self.scope.truncate(before);
    }

    /// Every variable and part of one, with its type, down to two steps into aggregates.
    fn paths(&self, rng: &mut Rng, shared: &Shared) -> Vec<(String, Ty)> {
        let mut paths = Vec::new();
        for variable in self.scope.iter().filter(|variable| variable.kind != Kind::Unusable) {
            let whole = (variable.name.clone(), variable.ty.clone());
            let mut level = vec![whole.clone()];
            if variable.kind == Kind::Mutable {
                paths.push((format!("freeze({})", variable.name), variable.ty.clone()));
            } else {
                paths.push(whole);
            }
            for _ in 0..2 {
                level = level.iter().flat_map(|(path, ty)| self.parts(rng, shared, path, ty)).collect();
                paths.extend(level.iter().cloned());
            }
        }
        paths.extend(self.constant_elements(rng, shared));
        paths
    }

    /// Elements of constant arrays at indices that are not constant: the compiler computes with those that are, and
    /// reports what would fault.
    fn constant_elements(&self, rng: &mut Rng, shared: &Shared) -> Vec<(String, Ty)> {
        let mut paths = Vec::new();
        for (name, length, element) in &shared.constants {
            let is_inside = |variable: &&Variable| matches!(variable.kind, Kind::Index(below) if below <= *length);
            for index in self.scope.iter().filter(is_inside) {
                let path = format!("{}[{}]", shared.types.local(name), index.name);
                paths.extend(self.parts(rng, shared, &path, element));
                paths.push((path, element.clone()));
            }
        }
        paths
    }

    fn parts(&self, rng: &mut Rng, shared: &Shared, path: &str, ty: &Ty) -> Vec<(String, Ty)> {
        match ty {
            Ty::Int(_) | Ty::Bool | Ty::Duration | Ty::Enumeration(_) | Ty::Union(_) => Vec::new(),
            Ty::Bytes(_) => vec![(format!("{path}.len"), Ty::Int(IntType::I32))],
            Ty::Array(length, element) => {
                vec![(format!("{path}[{}]", self.index(rng, *length)), (**element).clone())]
            }
            Ty::Record(id) => shared.types.records[*id]
                .iter()
                .enumerate()
                .map(|(index, field)| (format!("{path}.f{index}"), field.clone()))
                .collect(),
            Ty::Boxed(id) => self.parts(rng, shared, path, &shared.types.boxed[*id].content),
        }
    }

    /// An index into an array of this length.
    fn index(&self, rng: &mut Rng, length: u32) -> String {
        let is_inside = |variable: &&Variable| matches!(variable.kind, Kind::Index(below) if below <= length);
        let known: Vec<&Variable> = self.scope.iter().filter(is_inside).collect();
        if known.is_empty() || rng.u32(0..3) == 0 {
            return rng.u32(0..length).to_string();
        }
        known[rng.usize(0..known.len())].name.clone()
    }

    /// A variable or part of this type.
    fn readable(&self, rng: &mut Rng, shared: &Shared, ty: &Ty) -> Option<String> {
        let mut paths = self.paths(rng, shared);
        paths.retain(|(_, other)| other == ty);
        if paths.is_empty() { None } else { Some(paths.swap_remove(rng.usize(0..paths.len())).0) }
    }
}

fn string(rng: &mut Rng, longest: u32) -> String {
    let length = rng.u32(0..=longest);
    let text: String = (0..length).map(|_| ["a", "b", "c", "\\n", "\\x80", "\\0"][rng.usize(0..6)]).collect();
    format!("\"{text}\"")
}
