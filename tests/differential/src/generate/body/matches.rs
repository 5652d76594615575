//! Random matches: arms that can refuse a value, then arms that together take every one.

use super::{Body, string};
use crate::generate::shared::{Refusal, Shared};
use crate::generate::types::{Ty, int_value};
use fastrand::Rng;
use quaject_esp_syntax::types::IntType;

impl Body {
    /// A `match` of a variable or part.
    pub(super) fn matching(&mut self, rng: &mut Rng, shared: &Shared, depth: u32) {
        let paths = self.paths(rng, shared);
        if paths.is_empty() {
            return;
        }
        let (path, ty) = paths[rng.usize(0..paths.len())].clone();
        self.line(&format!("match {path} {{"));
        let targets = self.scope.len();
        for _ in 0..rng.u32(0..3) {
            self.scoped(|body| {
                let pattern = body.pattern(rng, shared, &ty, Refusal::Static, targets);
                let condition = body.condition(rng, shared);
                body.line(&format!("{pattern}{condition} => {{"));
                body.statements(rng, shared, 1, depth - 1);
                body.line("}");
            });
        }
        let covering = if shared.adds(rng, 2) { self.covering(rng, shared, &ty) } else { None };
        match covering {
            Some(patterns) => {
                for pattern in patterns {
                    self.arm(rng, shared, &pattern, depth);
                }
            }
            None => match &ty {
                Ty::Union(id) if rng.bool() => {
                    for (tag, payload) in shared.types.unions[*id].clone().into_iter().enumerate() {
                        self.scoped(|body| {
                            let pattern = body.tag_pattern(rng, shared, tag, payload.as_ref(), targets);
                            body.line(&format!("{pattern} => {{"));
                            body.statements(rng, shared, 1, depth - 1);
                            body.line("}");
                        });
                    }
                }
                _other => {
                    self.scoped(|body| {
                        let pattern = body.pattern(rng, shared, &ty, Refusal::Never, targets);
                        body.line(&format!("{pattern} => {{"));
                        body.statements(rng, shared, 1, depth - 1);
                        body.line("}");
                    });
                }
            },
        }
        self.line("}");
    }

    fn arm(&mut self, rng: &mut Rng, shared: &Shared, pattern: &str, depth: u32) {
        self.scoped(|body| {
            body.line(&format!("{pattern} => {{"));
            body.statements(rng, shared, 1, depth - 1);
            body.line("}");
        });
    }

    /// Patterns of alternatives and ranges that bind nothing, of which exactly one takes each value; none for a type
    /// that has no such patterns.
    pub fn covering(&self, rng: &mut Rng, shared: &Shared, ty: &Ty) -> Option<Vec<String>> {
        let parts: Vec<String> = match ty {
            Ty::Bool => vec!["false".into(), "true".into()],
            // The end of the range of the last values of a `u64` has no literal.
            Ty::Int(IntType::U64) => return None,
            Ty::Int(int) => {
                let int = *int;
                let mut bounds = vec![int.min(), int.max() + 1];
                bounds.extend((0..rng.usize(1..4)).map(|_| i128::from(rng.u32(1..100))));
                bounds.sort_unstable();
                bounds.dedup();
                bounds.windows(2).map(|range| format!("{}..{}", range[0], range[1])).collect()
            }
            Ty::Enumeration(id) => {
                let printed = shared.types.print(ty);
                shared.types.enumerations[*id].names().iter().map(|name| format!("{printed}.{name}")).collect()
            }
            Ty::Union(id) => (0..shared.types.unions[*id].len()).map(|tag| format!("t{tag} |> _")).collect(),
            Ty::Duration | Ty::Bytes(_) | Ty::Array(..) | Ty::Record(_) | Ty::Boxed(_) => return None,
        };
        let mut groups: Vec<Vec<String>> = vec![Vec::new(); rng.usize(1..4)];
        for part in parts {
            let group = rng.usize(0..groups.len());
            groups[group].push(part);
        }
        groups.retain(|group| !group.is_empty());
        Some(groups.iter().map(|group| group.join(" | ")).collect())
    }

    /// Some alternatives that bind nothing.
    pub(super) fn alternatives(&self, rng: &mut Rng, shared: &Shared, ty: &Ty) -> String {
        let parts: Vec<String> = (0..rng.usize(1..4)).map(|_| self.fixed(rng, shared, ty)).collect();
        format!("({})", parts.join(" | "))
    }

    /// A pattern without names: of constants, ranges and tags.
    pub(super) fn fixed(&self, rng: &mut Rng, shared: &Shared, ty: &Ty) -> String {
        match ty {
            Ty::Int(int) => {
                if rng.u32(0..3) > 0
                    && let Some((low, high)) = shared.range(rng)
                {
                    return format!("{low}..{high}");
                }
                let mut ends = [0, 1].map(|_| int_value(rng, *int));
                ends.sort_unstable();
                if ends[0] < ends[1] && rng.bool() { format!("{}..{}", ends[0], ends[1]) } else { ends[0].to_string() }
            }
            Ty::Bool => ["true", "false"][rng.usize(0..2)].into(),
            Ty::Bytes(bound) => string(rng, *bound),
            Ty::Enumeration(id) => {
                let names = shared.types.enumerations[*id].names();
                format!("{}.{}", shared.types.print(ty), names[rng.usize(0..names.len())])
            }
            Ty::Union(id) => {
                let tags = &shared.types.unions[*id];
                let tag = rng.usize(0..tags.len());
                match &tags[tag] {
                    Some(payload) if rng.bool() => {
                        format!("t{tag} |> {}", self.alternatives(rng, shared, payload))
                    }
                    Some(_) | None => format!("t{tag} |> _"),
                }
            }
            Ty::Record(id) => {
                let fields = shared.types.records[*id].iter().map(|field| self.sometimes_fixed(rng, shared, field));
                format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
            }
            Ty::Array(length, element) if *length < 4 => {
                let elements = (0..*length).map(|_| self.sometimes_fixed(rng, shared, element));
                format!("[{}]", elements.collect::<Vec<_>>().join(", "))
            }
            Ty::Duration | Ty::Array(..) | Ty::Boxed(_) => "_".into(),
        }
    }

    fn sometimes_fixed(&self, rng: &mut Rng, shared: &Shared, ty: &Ty) -> String {
        if rng.bool() { "_".into() } else { self.fixed(rng, shared, ty) }
    }
}
