//! Random patterns and their conditions.

use super::{Body, string};
use crate::generate::shared::{Context, Kind, Memory, Refusal, Shared, Variable};
use crate::generate::types::{Ty, int_value};
use fastrand::Rng;
use quaject_esp_syntax::types::IntType;

impl Body {
    /// ` if e`, sometimes.
    pub fn condition(&self, rng: &mut Rng, shared: &Shared) -> String {
        // A condition cannot read what its pattern assigns; patterns with assignments have none.
        if rng.u32(0..3) > 0 || self.text.ends_with('~') {
            return String::new();
        }
        format!(" if {}", self.expr(rng, shared, &Ty::Bool, 2, Context::Bare))
    }

    /// The same for a pattern of an operation. In manual memory it takes no objects (E0602).
    pub fn tried_condition(&self, rng: &mut Rng, shared: &Shared) -> String {
        if shared.memory == Memory::Automatic || shared.types.boxed.is_empty() {
            return self.condition(rng, shared);
        }
        if rng.u32(0..3) > 0 || self.text.ends_with('~') {
            return String::new();
        }
        let mut side = || self.variable_int(rng, shared, IntType::I64, Context::Bare).unwrap_or_else(|| "1".into());
        let (left, right) = (side(), side());
        format!(" if ({left} {} {right})", ["<", "<=", "==", "!="][rng.usize(0..4)])
    }

    /// A pattern for a union's tag, its payload not refused.
    pub fn tag_pattern(
        &mut self,
        rng: &mut Rng,
        shared: &Shared,
        tag: usize,
        payload: Option<&Ty>,
        targets: usize,
    ) -> String {
        match payload {
            Some(payload) => {
                format!("t{tag} |> {}", self.pattern(rng, shared, payload, Refusal::Never, targets))
            }
            None => format!("t{tag} |> {}", ["_", "{}"][rng.usize(0..2)]),
        }
    }

    /// A pattern; its `$` names come into scope. Only the first `targets` variables may be compared with.
    pub fn pattern(&mut self, rng: &mut Rng, shared: &Shared, ty: &Ty, refusal: Refusal, targets: usize) -> String {
        if refusal != Refusal::Never && rng.u32(0..3) == 0 {
            if shared.adds(rng, 2) {
                return self.alternatives(rng, shared, ty);
            }
            let known = Body { scope: self.scope[..targets].to_vec(), ..Body::new(self.place) };
            match ty {
                Ty::Int(int) => {
                    if refusal == Refusal::Dynamic && rng.bool() {
                        return format!("=={}", known.expr(rng, shared, ty, 1, Context::Typed));
                    }
                    return int_value(rng, *int).to_string();
                }
                Ty::Bool => return ["true", "false"][rng.usize(0..2)].to_string(),
                Ty::Bytes(bound) => return string(rng, *bound),
                Ty::Union(id) => {
                    let tag = rng.usize(0..shared.types.unions[*id].len());
                    return match &shared.types.unions[*id][tag] {
                        Some(payload) => {
                            format!("t{tag} |> {}", self.pattern(rng, shared, payload, refusal, targets))
                        }
                        None => format!("t{tag} |> {{}}"),
                    };
                }
                Ty::Enumeration(_) => return self.fixed(rng, shared, ty),
                Ty::Duration | Ty::Array(..) | Ty::Record(_) | Ty::Boxed(_) => {}
            }
            if refusal == Refusal::Dynamic
                && let Some(path) = known.readable(rng, shared, ty)
            {
                return format!("=={path}");
            }
        }
        match (ty, rng.u32(0..6)) {
            (_, 0) => "_".to_string(),
            (Ty::Record(id), 1..=3) => {
                let fields: Vec<String> = shared.types.records[*id]
                    .clone()
                    .iter()
                    .map(|field| self.pattern(rng, shared, field, refusal, targets))
                    .collect();
                format!("{{{}}}", fields.join(", "))
            }
            (Ty::Array(length, element), 1 | 2) if *length < 4 => {
                let elements: Vec<String> =
                    (0..*length).map(|_| self.pattern(rng, shared, element, refusal, targets)).collect();
                format!("[{}]", elements.join(", "))
            }
            _ => {
                let name = self.fresh();
                self.push(name.clone(), ty.clone(), Kind::Plain);
                format!("${name}")
            }
        }
    }

    /// A target of the type for a pattern to assign: a variable, not yet used by the same operation.
    pub fn target(&self, rng: &mut Rng, ty: &Ty, used: &[String]) -> Option<String> {
        let fitting: Vec<&Variable> =
            self.scope.iter().filter(|v| v.kind == Kind::Plain && v.ty == *ty && !used.contains(&v.name)).collect();
        if fitting.is_empty() { None } else { Some(fitting[rng.usize(0..fitting.len())].name.clone()) }
    }

    /// Patterns that take every message, and may assign variables.
    pub fn message(&mut self, rng: &mut Rng, shared: &Shared, payload: &[Ty]) -> String {
        let targets = self.scope.len();
        let mut used = Vec::new();
        let mut text = String::new();
        for ty in payload {
            let target = if rng.u32(0..4) == 0 { self.target(rng, ty, &used) } else { None };
            text += ", ";
            match target {
                Some(name) => {
                    text += &name;
                    used.push(name);
                }
                None => text += &self.pattern(rng, shared, ty, Refusal::Never, targets),
            }
        }
        text
    }
}
