//! Random statements that compute, declare and call, but do not communicate.

use super::{Body, string};
use crate::generate::shared::{Context, Kind, Memory, Place, Shared, Variable};
use crate::generate::types::Ty;
use fastrand::Rng;
use quaject_esp_syntax::types::IntType;

impl Body {
    /// Declares a variable of the type.
    pub fn declare(&mut self, rng: &mut Rng, shared: &Shared, ty: &Ty) {
        if let Ty::Array(length, _) = ty
            && rng.bool()
        {
            self.declare_index(rng, shared, *length);
        }
        let name = self.fresh();
        let printed = shared.types.print(ty);
        let can_be_mutable = match ty {
            Ty::Bytes(_) | Ty::Array(..) | Ty::Record(_) | Ty::Boxed(_) => true,
            Ty::Int(_) | Ty::Bool | Ty::Duration | Ty::Enumeration(_) | Ty::Union(_) => false,
        };
        if can_be_mutable && rng.u32(0..5) < 2 {
            let value = self.mutable(rng, shared, ty);
            self.line(&format!("var {name}: #{printed} = {value};"));
            self.push(name, ty.clone(), Kind::Mutable);
        } else {
            let value = self.expr(rng, shared, ty, 2, Context::Typed);
            self.line(&format!("var {name}: {printed} = {value};"));
            self.push(name, ty.clone(), Kind::Plain);
        }
    }

    /// A number below this one that is not constant.
    fn declare_index(&mut self, rng: &mut Rng, shared: &Shared, length: u32) {
        let name = self.fresh();
        let condition = self.expr(rng, shared, &Ty::Bool, 2, Context::Bare);
        self.line(&format!("var {name} = {};", rng.u32(0..length)));
        self.line(&format!("if ({condition}) {name} = {};", rng.u32(0..length)));
        self.push(name, Ty::Int(IntType::I32), Kind::Index(length));
    }

    /// A value for a mutable variable.
    pub(super) fn mutable(&self, rng: &mut Rng, shared: &Shared, ty: &Ty) -> String {
        if rng.u32(0..3) == 0
            && let Some(text) = self.readable(rng, shared, ty)
            && !text.starts_with("freeze")
        {
            return format!("thaw({text})");
        }
        match ty {
            Ty::Bytes(bound) => format!("#{}", string(rng, bound + 1)),
            Ty::Array(length, element) => {
                format!("#[{}; {length}]", self.expr(rng, shared, element, 1, Context::Typed))
            }
            Ty::Record(id) => {
                let fields: Vec<String> = shared.types.records[*id]
                    .iter()
                    .map(|field| self.expr(rng, shared, field, 1, Context::Typed))
                    .collect();
                format!("#{{{}}}", fields.join(", "))
            }
            Ty::Boxed(id) => self.mutable_content(rng, shared, &shared.types.boxed[*id].content),
            Ty::Int(_) | Ty::Bool | Ty::Duration | Ty::Enumeration(_) | Ty::Union(_) => {
                unreachable!("only aggregates are declared mutable")
            }
        }
    }

    fn mutable_content(&self, rng: &mut Rng, shared: &Shared, content: &Ty) -> String {
        loop {
            let text = self.mutable(rng, shared, content);
            if text.starts_with('#') {
                return text;
            }
        }
    }

    /// Some statements that only compute.
    pub fn statements(&mut self, rng: &mut Rng, shared: &Shared, count: u32, depth: u32) {
        for _ in 0..count {
            self.statement(rng, shared, depth);
        }
    }

    /// One statement that only computes.
    pub fn statement(&mut self, rng: &mut Rng, shared: &Shared, depth: u32) {
        if self.place == Place::Process {
            if !shared.procedures.is_empty() && rng.u32(0..7) == 0 {
                return self.procedure(rng, shared);
            }
            if shared.memory == Memory::Manual && rng.u32(0..5) == 0 {
                return self.links(rng, shared, depth);
            }
        }
        if shared.adds(rng, 4) {
            return self.addition(rng, shared, depth);
        }
        match rng.u32(0..20) {
            0..=3 => {
                let ty = shared.types.any(rng, 1);
                self.declare(rng, shared, &ty);
            }
            4..=7 => self.assign(rng, shared),
            8..=10 => self.update(rng, shared),
            11 | 12 if depth > 0 => {
                let condition = self.expr(rng, shared, &Ty::Bool, 2, Context::Bare);
                self.line(&format!("if ({condition}) {{"));
                self.scoped(|body| body.statements(rng, shared, 2, depth - 1));
                if rng.bool() {
                    self.line("} else {");
                    self.scoped(|body| body.statements(rng, shared, 2, depth - 1));
                }
                self.line("}");
            }
            13 if depth > 0 && self.loops.len() < 2 => self.looping(rng, shared, depth, None),
            14 | 15 if depth > 0 => self.matching(rng, shared, depth),
            16 => {
                let condition = self.expr(rng, shared, &Ty::Bool, 1, Context::Bare);
                let or = if rng.u32(0..30) == 0 { "" } else { " || true" };
                self.line(&format!("assert({condition}{or});"));
            }
            17 if self.place == Place::Process => {
                self.labels += 1;
                self.line(&format!("#{}", self.labels));
                self.line("yield;");
            }
            18 => self.durations(rng, shared),
            _ => self.part(rng, shared),
        }
    }

    /// Arithmetic on durations, and in a process the clock, of which only the order is known.
    fn durations(&mut self, rng: &mut Rng, shared: &Shared) {
        let (a, b, count) = (self.fresh(), self.fresh(), self.fresh());
        let i64 = Ty::Int(IntType::I64);
        let unit = |rng: &mut Rng| ["ns", "us", "ms", "s"][rng.usize(0..4)];
        let (first, second) = (
            self.expr(rng, shared, &i64, 1, Context::Typed),
            if rng.u32(0..3) == 0 { "9223372036854775807".into() } else { rng.u32(0..4).to_string() },
        );
        self.line(&format!("var {a}: duration = ({first} {}), {b} = ({second} {});", unit(rng), unit(rng)));
        for _ in 0..rng.u32(0..4) {
            let line = match rng.u32(0..7) {
                0 => format!("{a} = {a} + {b};"),
                1 => format!("{a} -= {b};"),
                2 => format!("{a} = {b} - {a};"),
                // No type is handed down, so that a literal would be an `int` next to another one.
                3 => {
                    // An update hands no type down to its operand.
                    let factor = self.fresh();
                    let value = self.expr(rng, shared, &i64, 1, Context::Typed);
                    format!("var {factor}: i64 = {value}; {a} *= {factor};")
                }
                4 => format!("{a} /= {};", rng.i32(-3..0)),
                5 => format!("{b} = {a} / ({} | 1);", self.expr(rng, shared, &i64, 1, Context::Bare)),
                _ => format!("if ({a} < {b}) {b} = {} * {a};", rng.i32(-3..3)),
            };
            self.line(&line);
        }
        self.line(&format!("var {count}: i64 = {a} / ({b} == (0 s) ? (3 us) : {b});"));
        if self.place == Place::Process {
            let start = self.fresh();
            self.line(&format!("var {start} = now; assert(now >= {start} && now - {start} >= (0 s));"));
        }
        self.push(count, i64, Kind::Plain);
    }

    /// `link` and `unlink`: mostly balanced, sometimes one too many or too few.
    fn links(&mut self, rng: &mut Rng, shared: &Shared, depth: u32) {
        let is_held = |variable: &Variable| {
            matches!(variable.ty, Ty::Boxed(_)) && matches!(variable.kind, Kind::Plain | Kind::Mutable)
        };
        let held: Vec<usize> = (0..self.scope.len()).filter(|index| is_held(&self.scope[*index])).collect();
        if held.is_empty() {
            return;
        }
        let index = held[rng.usize(0..held.len())];
        let name = self.scope[index].name.clone();
        match rng.u32(0..20) {
            0 | 1 => self.line(&format!("unlink({name});")),
            2..=4 => self.line(&format!("link({name});")),
            5..=10 if depth > 0 => {
                self.line(&format!("link({name});"));
                self.scoped(|body| {
                    body.line("{");
                    body.statements(rng, shared, 1, depth - 1);
                    body.line("}");
                });
                self.line(&format!("unlink({name});"));
            }
            _ if self.scope[index].level == self.level => {
                self.line(&format!("unlink({name});"));
                self.scope[index].kind = Kind::Unusable;
            }
            _ => {}
        }
    }

    fn assign(&mut self, rng: &mut Rng, shared: &Shared) {
        let targets: Vec<Variable> =
            self.scope.iter().filter(|v| v.kind == Kind::Plain || v.kind == Kind::Mutable).cloned().collect();
        if targets.is_empty() {
            return;
        }
        let target = &targets[rng.usize(0..targets.len())];
        let value = if target.kind == Kind::Mutable {
            self.mutable(rng, shared, &target.ty)
        } else {
            self.expr(rng, shared, &target.ty, 2, Context::Typed)
        };
        self.line(&format!("{} = {value};", target.name));
    }

    fn update(&mut self, rng: &mut Rng, shared: &Shared) {
        let mut targets: Vec<(String, Ty)> = self.targets(rng, shared);
        targets.extend(self.scope.iter().filter(|v| v.kind == Kind::Plain).map(|v| (v.name.clone(), v.ty.clone())));
        targets.retain(|(_, ty)| matches!(ty, Ty::Int(_)));
        if targets.is_empty() {
            return;
        }
        let (path, ty) = targets.swap_remove(rng.usize(0..targets.len()));
        let shifts = rng.u32(0..5) == 0;
        // `x op= e` means `x = T(x op e)`: the place does not determine the operand's type.
        let context = if rng.u32(0..11) == 0 { Context::Typed } else { Context::Bare };
        let value = self.expr(rng, shared, &ty, 1, context);
        let line = match rng.u32(0..9) {
            _ if shifts => format!("{path} {} {value};", ["<<=", ">>="][rng.usize(0..2)]),
            index @ 0..=5 => {
                let operator = ["+=", "-=", "*=", "&=", "|=", "^="][index as usize];
                format!("{path} {operator} {value};")
            }
            6 => format!("{path} /= ({value} | 1);"),
            7 => format!("{path} %= ({value} | 1);"),
            _ => format!("{path} = {value};"),
        };
        let line = if context == Context::Typed { format!("{path} = {value};") } else { line };
        self.line(&line);
    }

    /// Parts of mutable variables.
    fn targets(&self, rng: &mut Rng, shared: &Shared) -> Vec<(String, Ty)> {
        let mut targets = Vec::new();
        for variable in self.scope.iter().filter(|v| v.kind == Kind::Mutable) {
            let mut level = vec![(variable.name.clone(), variable.ty.clone())];
            for step in 0..2 {
                level = level
                    .iter()
                    .filter(|(_, ty)| step == 0 || !matches!(ty, Ty::Boxed(_)))
                    .flat_map(|(path, ty)| self.parts(rng, shared, path, ty))
                    .filter(|(path, _)| !path.ends_with(".len"))
                    .collect();
                targets.extend(level.iter().cloned());
            }
        }
        targets
    }

    /// Writes a part of a mutable variable.
    fn part(&mut self, rng: &mut Rng, shared: &Shared) {
        let mutable: Vec<Variable> = self.scope.iter().filter(|v| v.kind == Kind::Mutable).cloned().collect();
        if mutable.is_empty() {
            return;
        }
        let variable = mutable[rng.usize(0..mutable.len())].clone();
        let content = match &variable.ty {
            Ty::Boxed(id) => shared.types.boxed[*id].content.clone(),
            other => other.clone(),
        };
        let name = &variable.name;
        let line = match content {
            Ty::Bytes(bound) => match rng.u32(0..9) {
                0 => format!("{name}.len = {};", rng.u32(0..=bound + 1)),
                1 => format!("{name} += \"q\";"),
                2 => format!("{name}[0] = {};", self.expr(rng, shared, &Ty::Int(IntType::U8), 1, Context::Typed)),
                3 => format!("{name} += {name};"),
                4 if bound > 0 => format!("if ({name}.len > 1) {name}[0..2] = \"ab\";"),
                5 => {
                    let value = self.expr(rng, shared, &Ty::Int(IntType::U16), 1, Context::Typed);
                    format!("if ({name}.len >= 2) {name}.{}[0] = {value};", ["be16", "le16"][rng.usize(0..2)])
                }
                6 if !shared.layouts.is_empty() => {
                    let layout = rng.usize(0..shared.layouts.len());
                    let widths = &shared.layouts[layout];
                    let field = rng.usize(0..widths.len());
                    let value = self.expr(rng, shared, &Ty::Int(field_type(widths[field])), 1, Context::Typed);
                    format!("if ({name}.len >= sizeof(l{layout})) {name}.l{layout}[0].g{field} = {value};")
                }
                4 | 7 => format!("if ({name}.len > 0) {name}[{name}.len - 1] += 1;"),
                _ => format!("if ({name}.len > 2) {name}[1..2] = {name}[0..1];"),
            },
            _other => {
                let mut targets = self.targets(rng, shared);
                targets
                    .retain(|(path, _)| path.starts_with(&format!("{name}.")) || path.starts_with(&format!("{name}[")));
                if targets.is_empty() {
                    return;
                }
                let (path, ty) = targets.swap_remove(rng.usize(0..targets.len()));
                format!("{path} = {};", self.expr(rng, shared, &ty, 2, Context::Typed))
            }
        };
        self.line(&line);
    }

    /// A loop of a few rounds.
    pub(super) fn looping(&mut self, rng: &mut Rng, shared: &Shared, depth: u32, label: Option<String>) {
        let name = self.fresh();
        let rounds = rng.u32(0..4);
        let counts_itself = rng.bool();
        if !counts_itself {
            self.line(&format!("var {name} = 0;"));
            self.push(name.clone(), Ty::Int(IntType::I32), Kind::Constant);
        }
        if let Some(label) = &label {
            self.line(&format!("#{label}"));
        }
        self.loops.push(label);
        if counts_itself {
            self.line(&format!("for {name} in 0..{rounds} {{"));
            self.scoped(|body| {
                body.push(name.clone(), Ty::Int(IntType::I32), Kind::Index(rounds));
                body.inside_loop(rng, shared, depth);
            });
        } else {
            self.line(&format!("while ({name} < {rounds}) {{"));
            self.line(&format!("{name} += 1;"));
            self.scoped(|body| body.inside_loop(rng, shared, depth));
        }
        self.line("}");
        self.loops.pop();
    }

    fn inside_loop(&mut self, rng: &mut Rng, shared: &Shared, depth: u32) {
        self.level += 1;
        self.statements(rng, shared, 2, depth - 1);
        if rng.u32(0..3) == 0 {
            let condition = self.expr(rng, shared, &Ty::Bool, 1, Context::Bare);
            let label = match self.loops.iter().flatten().last() {
                Some(label) if rng.u32(0..4) > 0 => format!(" {label}"),
                Some(_) | None => String::new(),
            };
            self.line(&format!("if ({condition}) {}{label};", ["break", "continue"][rng.usize(0..2)]));
            self.statements(rng, shared, 1, depth - 1);
        }
        self.level -= 1;
    }
}

/// The type a layout field of this width is read as.
fn field_type(width: u32) -> IntType {
    match width {
        0..=8 => IntType::U8,
        9..=16 => IntType::U16,
        17..=32 => IntType::U32,
        _ => IntType::U64,
    }
}
