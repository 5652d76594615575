//! Random expressions of a wanted type.

use super::{Body, string};
use crate::generate::shared::{Context, Function, Shared};
use crate::generate::types::{INTS, Ty, int_value};
use fastrand::Rng;
use quaject_esp_syntax::types::IntType;

impl Body {
    /// An expression of the type.
    pub fn expr(&self, rng: &mut Rng, shared: &Shared, ty: &Ty, depth: u32, context: Context) -> String {
        if depth > 0 && rng.u32(0..10) == 0 {
            let condition = self.expr(rng, shared, &Ty::Bool, depth - 1, Context::Bare);
            let yes = self.expr(rng, shared, ty, depth - 1, context);
            let no = self.expr(rng, shared, ty, depth - 1, context);
            if context == Context::Typed {
                return format!("({condition} ? {yes} : {no})");
            }
        }
        if depth > 0 && rng.u32(0..8) == 0 {
            let fitting: Vec<&Function> = shared.functions.iter().filter(|f| f.result == *ty).collect();
            if !fitting.is_empty() {
                let function = fitting[rng.usize(0..fitting.len())];
                let arguments: Vec<String> = function
                    .parameters
                    .iter()
                    .map(|parameter| self.expr(rng, shared, parameter, depth - 1, Context::Typed))
                    .collect();
                return format!("{}({})", shared.types.local(&function.name), arguments.join(", "));
            }
        }
        if rng.u32(0..5) < 3
            && let Some(text) = self.readable(rng, shared, ty)
        {
            return text;
        }
        match ty {
            Ty::Int(int) => self.int(rng, shared, *int, depth, context),
            Ty::Bool => self.bool(rng, shared, depth),
            Ty::Duration => self.duration(rng, shared, depth),
            Ty::Enumeration(id) => self.case(rng, shared, *id, depth),
            Ty::Bytes(bound) => self.bytes(rng, shared, *bound, depth),
            Ty::Array(length, element) => {
                if *length > 3 || rng.u32(0..4) == 0 {
                    format!("[{}; {length}]", self.expr(rng, shared, element, depth.saturating_sub(1), Context::Typed))
                } else {
                    let elements: Vec<String> = (0..*length)
                        .map(|_| self.expr(rng, shared, element, depth.saturating_sub(1), Context::Typed))
                        .collect();
                    format!("[{}]", elements.join(", "))
                }
            }
            Ty::Record(id) => {
                let named = rng.u32(0..4) == 0;
                let fields: Vec<String> = shared.types.records[*id]
                    .iter()
                    .enumerate()
                    .map(|(index, field)| {
                        let value = self.expr(rng, shared, field, depth.saturating_sub(1), Context::Typed);
                        if named { format!("f{index}: {value}") } else { value }
                    })
                    .collect();
                format!("{{{}}}", fields.join(", "))
            }
            Ty::Union(id) => {
                let tag = rng.usize(0..shared.types.unions[*id].len());
                match &shared.types.unions[*id][tag] {
                    Some(payload) => {
                        let value = self.expr(rng, shared, payload, depth.saturating_sub(1), Context::Typed);
                        format!("(t{tag} |> {value})")
                    }
                    None => format!("(t{tag} |> {{}})"),
                }
            }
            Ty::Boxed(id) => self.expr(rng, shared, &shared.types.boxed[*id].content, depth, Context::Typed),
        }
    }

    fn literal(&self, rng: &mut Rng, shared: &Shared, int: IntType) -> String {
        if !shared.limits.is_empty() && rng.u32(0..5) == 0 {
            return shared.types.local(&shared.limits[rng.usize(0..shared.limits.len())].0).to_string();
        }
        let value = int_value(rng, int);
        if value < 0 { format!("({value})") } else { value.to_string() }
    }

    /// An integer that is no constant expression, if there is one.
    pub(super) fn variable_int(
        &self,
        rng: &mut Rng,
        shared: &Shared,
        int: IntType,
        context: Context,
    ) -> Option<String> {
        let mut paths = self.paths(rng, shared);
        paths.retain(|(_, ty)| matches!(ty, Ty::Int(_) | Ty::Duration | Ty::Enumeration(_)));
        if paths.is_empty() {
            return None;
        }
        let (path, ty) = paths.swap_remove(rng.usize(0..paths.len()));
        Some(match ty {
            Ty::Int(other) if other == int => path,
            Ty::Int(other) if context == Context::Typed && other.widens_to(int) && rng.bool() => path,
            Ty::Duration => format!("{}({path} / ({} us))", int.name(), rng.u32(1..400)),
            _other => format!("{}({path})", int.name()),
        })
    }

    fn int(&self, rng: &mut Rng, shared: &Shared, int: IntType, depth: u32, context: Context) -> String {
        let left = self.variable_int(rng, shared, int, context);
        let Some(left) = left.filter(|_| depth > 0) else { return self.literal(rng, shared, int) };
        let ty = Ty::Int(int);
        let below = depth - 1;
        match rng.u32(0..14) {
            0 => self.literal(rng, shared, int),
            1 => left,
            2..=6 => {
                let right = self.expr(rng, shared, &ty, below, context);
                let operator = ["+", "-", "*", "&", "|", "^"][rng.usize(0..6)];
                format!("({left} {operator} {right})")
            }
            7 => {
                let right = self.variable_int(rng, shared, int, context).unwrap_or_else(|| "1".into());
                let operator = ["/", "%"][rng.usize(0..2)];
                if rng.u32(0..20) == 0 {
                    format!("({left} {operator} {right})")
                } else {
                    format!("({left} {operator} ({right} | 1))")
                }
            }
            8 => {
                let width = Ty::Int(INTS[rng.usize(0..8)]);
                let count = self.expr(rng, shared, &width, below, Context::Bare);
                format!("({left} {} {count})", ["<<", ">>"][rng.usize(0..2)])
            }
            9 => format!("({}{left})", ["-", "~"][rng.usize(0..2)]),
            10 | 11 => {
                let other = INTS[rng.usize(0..8)];
                match self.variable_int(rng, shared, other, Context::Bare) {
                    Some(_) => {
                        let inner = self.expr(rng, shared, &Ty::Int(other), below, Context::Bare);
                        format!("{}({inner})", int.name())
                    }
                    None => left,
                }
            }
            12 => {
                let inner = self.expr(rng, shared, &Ty::Bool, below, Context::Bare);
                match inner.as_str() {
                    "true" | "false" => left,
                    _other if int == IntType::I32 => format!("int({inner})"),
                    _other => format!("{}(int({inner}))", int.name()),
                }
            }
            _ => {
                let mut paths = self.paths(rng, shared);
                paths.retain(|(path, ty)| matches!(ty, Ty::Bytes(_)) && !path.starts_with("freeze"));
                if paths.is_empty() {
                    return left;
                }
                let path = paths.swap_remove(rng.usize(0..paths.len())).0;
                match rng.u32(0..12) {
                    0 => format!("{}({path}.be16[{}])", int.name(), rng.u32(0..2)),
                    1 => format!("{}({path}.le32[0])", int.name()),
                    2 => format!("{}({path}[0])", int.name()),
                    3 if !shared.layouts.is_empty() => {
                        let layout = rng.usize(0..shared.layouts.len());
                        let field = rng.usize(0..shared.layouts[layout].len());
                        format!("{}({path}.l{layout}[0].g{field})", int.name())
                    }
                    _ => format!("{}({path}.len)", int.name()),
                }
            }
        }
    }

    /// A duration.
    fn duration(&self, rng: &mut Rng, shared: &Shared, depth: u32) -> String {
        let unit = ["ns", "us", "ms", "s"][rng.usize(0..4)];
        if depth > 0 && rng.bool() {
            let left = self.expr(rng, shared, &Ty::Duration, depth - 1, Context::Typed);
            return match rng.u32(0..4) {
                0 => {
                    let count = self.expr(rng, shared, &Ty::Int(IntType::I32), depth - 1, Context::Typed);
                    format!("({count} {unit})")
                }
                1 => format!("({left} * {})", rng.i32(-3..4)),
                2 => format!("({left} / {})", rng.i32(1..4)),
                _ => {
                    let right = self.expr(rng, shared, &Ty::Duration, depth - 1, Context::Typed);
                    format!("({left} {} {right})", ["+", "-"][rng.usize(0..2)])
                }
            };
        }
        format!("({} {unit})", rng.i32(-2..300))
    }

    /// A case of an enumeration, by its name or, if each code has one, by a code.
    fn case(&self, rng: &mut Rng, shared: &Shared, id: usize, depth: u32) -> String {
        let enumeration = &shared.types.enumerations[id];
        let printed = shared.types.print(&Ty::Enumeration(id));
        if enumeration.other.is_some() && depth > 0 && rng.bool() {
            let code = self.expr(rng, shared, &Ty::Int(enumeration.int), depth - 1, Context::Typed);
            return format!("{printed}({code})");
        }
        format!("{printed}.{}", enumeration.cases[rng.usize(0..enumeration.cases.len())].0)
    }

    fn bool(&self, rng: &mut Rng, shared: &Shared, depth: u32) -> String {
        if depth == 0 {
            return ["true", "false"][rng.usize(0..2)].to_string();
        }
        let below = depth - 1;
        if shared.adds(rng, 12) {
            let [left, right] = [0, 1].map(|_| self.expr(rng, shared, &Ty::Duration, below, Context::Typed));
            return format!("({left} {} {right})", ["==", "!=", "<", "<=", ">", ">="][rng.usize(0..6)]);
        }
        match rng.u32(0..9) {
            0..=4 => {
                let int = INTS[rng.usize(0..8)];
                let Some(left) = self.variable_int(rng, shared, int, Context::Bare) else { return "true".into() };
                let right = self.expr(rng, shared, &Ty::Int(int), below, Context::Bare);
                let operator = ["==", "!=", "<", "<=", ">", ">="][rng.usize(0..6)];
                format!("({left} {operator} {right})")
            }
            5 | 6 => {
                let left = self.expr(rng, shared, &Ty::Bool, below, Context::Bare);
                let right = self.expr(rng, shared, &Ty::Bool, below, Context::Bare);
                format!("({left} {} {right})", ["&&", "||"][rng.usize(0..2)])
            }
            7 => format!("(!{})", self.expr(rng, shared, &Ty::Bool, below, Context::Bare)),
            _ => {
                let paths = self.paths(rng, shared);
                if paths.is_empty() {
                    return "false".into();
                }
                let (left, ty) = paths[rng.usize(0..paths.len())].clone();
                let right = self.readable(rng, shared, &ty).unwrap_or_else(|| left.clone());
                format!("({left} {} {right})", ["==", "!="][rng.usize(0..2)])
            }
        }
    }

    /// The text of a number.
    fn number_text(&self, rng: &mut Rng, shared: &Shared, format: &str, bound: u32, depth: u32) -> String {
        let argument = |rng: &mut Rng, int| self.expr(rng, shared, &Ty::Int(int), depth, Context::Typed);
        let (text, longest) = match rng.u32(0..6) {
            0 => (format!("{format}.decimal({})", argument(rng, IntType::I32)), 11),
            1 => (format!("{format}.unsigned({})", argument(rng, IntType::U32)), 10),
            2 => (format!("{format}.decimal64({})", argument(rng, IntType::I64)), 20),
            3 => (format!("{format}.unsigned64({})", argument(rng, IntType::U64)), 20),
            4 => (format!("{format}.hexadecimal({}, {})", argument(rng, IntType::U64), rng.u32(1..17)), 16),
            _ => {
                let number = argument(rng, IntType::I32);
                (format!("{format}.right({format}.decimal({number}), {}, '0')", rng.u32(0..33)), 32)
            }
        };
        if bound + 1 >= longest { text } else { format!("{text}[..{}]", rng.u32(0..2)) }
    }

    fn bytes(&self, rng: &mut Rng, shared: &Shared, bound: u32, depth: u32) -> String {
        if depth > 0
            && let Some(format) = &shared.format
            && rng.u32(0..4) == 0
        {
            return self.number_text(rng, shared, format, bound, depth - 1);
        }
        if depth > 0 {
            let mut paths = self.paths(rng, shared);
            paths.retain(|(_, ty)| matches!(ty, Ty::Bytes(other) if *other <= bound || rng.u32(0..8) == 0));
            if !paths.is_empty() {
                let path = paths.swap_remove(rng.usize(0..paths.len())).0;
                match rng.u32(0..5) {
                    0 => return format!("{path}[{}..]", rng.u32(0..2)),
                    1 => return format!("{path}[..{}]", rng.u32(0..2)),
                    2 if rng.u32(0..4) == 0 => return format!("({path} + \"z\")"),
                    _ => return path,
                }
            }
        }
        string(rng, bound + 1)
    }
}
