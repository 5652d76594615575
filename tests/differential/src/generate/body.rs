//! Random code of one process or function: variables in scope, expressions of a wanted type, statements.

use super::types::{INTS, Ty, Types, int_value};
use fastrand::Rng;
use quaject_esp_syntax::types::IntType;

/// A variable in scope.
#[derive(Clone, Debug)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: Ty,
    /// How it can be used.
    pub kind: Kind,
    /// The number of loops around its declaration.
    pub level: u32,
}

/// How a variable can be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// It can be replaced as a whole.
    Plain,
    /// Declared with `#`: its parts can be assigned.
    Mutable,
    /// A parameter or a loop's counter.
    Constant,
    /// A number that is always below this one, so that it can be an index of arrays that are as long.
    Index(u32),
    /// Its object has been released: it is not used.
    Unusable,
}

/// A pure function.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Its parameters' types.
    pub parameters: Vec<Ty>,
    /// Its result's type.
    pub result: Ty,
}

/// A function with effects, which processes call.
#[derive(Clone, Debug)]
pub struct Procedure {
    /// Its name.
    pub name: String,
    /// Its parameters' types.
    pub parameters: Vec<(Ty, Access)>,
    /// Its result's type, if it has one.
    pub result: Option<Ty>,
}

/// How a procedure uses an argument.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// Reads it.
    Reads,
    /// Changes it: it is a mutable variable.
    Writes,
}

/// The memory mode: the compiler or the program counts references to objects.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Memory {
    /// The compiler.
    #[default]
    Automatic,
    /// The program.
    Manual,
}

/// What bodies of one program share.
#[derive(Default, Debug)]
pub struct Shared {
    /// Named types.
    pub types: Types,
    /// Functions declared so far.
    pub functions: Vec<Function>,
    /// Constant arrays: name, length, type of the elements.
    pub constants: Vec<(String, u32, Ty)>,
    /// Layouts: names and sizes in bytes, and widths of fields.
    pub layouts: Vec<Vec<u32>>,
    /// Extern functions with effects.
    pub procedures: Vec<Procedure>,
    /// The memory mode.
    pub memory: Memory,
}

/// Whether the context of an expression determines its type.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Context {
    /// It does: narrower integers widen.
    Typed,
    /// It does not.
    Bare,
}

/// The effects that are allowed in a body.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Anything.
    Process,
    /// None: a pure function.
    Function,
}

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
    next: u32,
    loops: u32,
    labels: u32,
}

impl Body {
    /// An empty body.
    pub fn new(place: Place) -> Body {
        Body { text: String::new(), scope: Vec::new(), place, level: 0, next: 0, loops: 0, labels: 0 }
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

    // ---- expressions -------------------------------------------------------------------------------------------

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
                let path = format!("{name}[{}]", index.name);
                paths.extend(self.parts(rng, shared, &path, element));
                paths.push((path, element.clone()));
            }
        }
        paths
    }

    fn parts(&self, rng: &mut Rng, shared: &Shared, path: &str, ty: &Ty) -> Vec<(String, Ty)> {
        match ty {
            Ty::Int(_) | Ty::Bool | Ty::Union(_) => Vec::new(),
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
                return format!("{}({})", function.name, arguments.join(", "));
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

    fn literal(&self, rng: &mut Rng, int: IntType) -> String {
        let value = int_value(rng, int);
        if value < 0 { format!("({value})") } else { value.to_string() }
    }

    /// An integer that is no constant expression, if there is one.
    fn variable_int(&self, rng: &mut Rng, shared: &Shared, int: IntType, context: Context) -> Option<String> {
        let mut paths = self.paths(rng, shared);
        paths.retain(|(_, ty)| match ty {
            Ty::Int(_) => true,
            Ty::Bool | Ty::Bytes(_) | Ty::Array(..) | Ty::Record(_) | Ty::Union(_) | Ty::Boxed(_) => false,
        });
        if paths.is_empty() {
            return None;
        }
        let (path, ty) = paths.swap_remove(rng.usize(0..paths.len()));
        Some(match ty {
            Ty::Int(other) if other == int => path,
            Ty::Int(other) if context == Context::Typed && other.widens_to(int) && rng.bool() => path,
            _other => format!("{}({path})", int.name()),
        })
    }

    fn int(&self, rng: &mut Rng, shared: &Shared, int: IntType, depth: u32, context: Context) -> String {
        let left = self.variable_int(rng, shared, int, context);
        let Some(left) = left.filter(|_| depth > 0) else { return self.literal(rng, int) };
        let ty = Ty::Int(int);
        let below = depth - 1;
        match rng.u32(0..14) {
            0 => self.literal(rng, int),
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
                paths.retain(|(path, ty)| match ty {
                    Ty::Bytes(_) => !path.starts_with("freeze"),
                    Ty::Int(_) | Ty::Bool | Ty::Array(..) | Ty::Record(_) | Ty::Union(_) | Ty::Boxed(_) => false,
                });
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

    fn bool(&self, rng: &mut Rng, shared: &Shared, depth: u32) -> String {
        if depth == 0 {
            return ["true", "false"][rng.usize(0..2)].to_string();
        }
        let below = depth - 1;
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

    fn bytes(&self, rng: &mut Rng, shared: &Shared, bound: u32, depth: u32) -> String {
        if depth > 0 {
            let mut paths = self.paths(rng, shared);
            paths.retain(|(_, ty)| match ty {
                Ty::Bytes(other) => *other <= bound || rng.u32(0..8) == 0,
                Ty::Int(_) | Ty::Bool | Ty::Array(..) | Ty::Record(_) | Ty::Union(_) | Ty::Boxed(_) => false,
            });
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

    // ---- statements --------------------------------------------------------------------------------------------

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
            Ty::Int(_) | Ty::Bool | Ty::Union(_) => false,
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
    fn mutable(&self, rng: &mut Rng, shared: &Shared, ty: &Ty) -> String {
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
            Ty::Int(_) | Ty::Bool | Ty::Union(_) => unreachable!("only aggregates are declared mutable"),
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
            13 if depth > 0 && self.loops < 2 => self.looping(rng, shared, depth),
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

    /// Calls an extern function with effects.
    fn procedure(&mut self, rng: &mut Rng, shared: &Shared) {
        let procedure = &shared.procedures[rng.usize(0..shared.procedures.len())];
        let mut arguments = Vec::new();
        for (ty, access) in &procedure.parameters {
            arguments.push(match access {
                Access::Reads => self.expr(rng, shared, ty, 1, Context::Typed),
                Access::Writes => {
                    let name = self.fresh();
                    let value = self.mutable(rng, shared, ty);
                    self.line(&format!("var {name}: #{} = {value};", shared.types.print(ty)));
                    self.push(name.clone(), ty.clone(), Kind::Mutable);
                    name
                }
            });
        }
        let call = format!("{}({})", procedure.name, arguments.join(", "));
        match &procedure.result {
            Some(ty) if rng.bool() => {
                let name = self.fresh();
                self.line(&format!("var {name}: {} = {call};", shared.types.print(ty)));
                self.push(name, ty.clone(), Kind::Plain);
            }
            Some(_) | None => self.line(&format!("{call};")),
        }
    }

    /// `link` and `unlink`: mostly balanced, sometimes one too many or too few.
    fn links(&mut self, rng: &mut Rng, shared: &Shared, depth: u32) {
        let is_held = |variable: &Variable| match (&variable.ty, variable.kind) {
            (Ty::Boxed(_), Kind::Plain | Kind::Mutable) => true,
            (Ty::Boxed(_), Kind::Constant | Kind::Index(_) | Kind::Unusable) => false,
            (Ty::Int(_) | Ty::Bool | Ty::Bytes(_) | Ty::Array(..) | Ty::Record(_) | Ty::Union(_), _) => false,
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
        targets.retain(|(_, ty)| match ty {
            Ty::Int(_) => true,
            Ty::Bool | Ty::Bytes(_) | Ty::Array(..) | Ty::Record(_) | Ty::Union(_) | Ty::Boxed(_) => false,
        });
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
                    .filter(|(_, ty)| match ty {
                        Ty::Boxed(_) => step == 0,
                        Ty::Int(_) | Ty::Bool | Ty::Bytes(_) | Ty::Array(..) | Ty::Record(_) | Ty::Union(_) => true,
                    })
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

    fn looping(&mut self, rng: &mut Rng, shared: &Shared, depth: u32) {
        self.loops += 1;
        let name = self.fresh();
        let rounds = rng.u32(0..4);
        if rng.bool() {
            self.line(&format!("for {name} in 0..{rounds} {{"));
            self.scoped(|body| {
                body.push(name.clone(), Ty::Int(IntType::I32), Kind::Index(rounds));
                body.inside_loop(rng, shared, depth);
            });
        } else {
            self.line(&format!("var {name} = 0;"));
            self.push(name.clone(), Ty::Int(IntType::I32), Kind::Constant);
            self.line(&format!("while ({name} < {rounds}) {{"));
            self.line(&format!("{name} += 1;"));
            self.scoped(|body| body.inside_loop(rng, shared, depth));
        }
        self.line("}");
        self.loops -= 1;
    }

    fn inside_loop(&mut self, rng: &mut Rng, shared: &Shared, depth: u32) {
        self.level += 1;
        self.statements(rng, shared, 2, depth - 1);
        if rng.u32(0..3) == 0 {
            let condition = self.expr(rng, shared, &Ty::Bool, 1, Context::Bare);
            self.line(&format!("if ({condition}) {};", ["break", "continue"][rng.usize(0..2)]));
            self.statements(rng, shared, 1, depth - 1);
        }
        self.level -= 1;
    }

    fn matching(&mut self, rng: &mut Rng, shared: &Shared, depth: u32) {
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
        match &ty {
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
        }
        self.line("}");
    }

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

    // ---- patterns ----------------------------------------------------------------------------------------------

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
            let known = Body {
                text: String::new(),
                scope: self.scope[..targets].to_vec(),
                place: self.place,
                level: 0,
                next: 0,
                loops: 0,
                labels: 0,
            };
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
                Ty::Array(..) | Ty::Record(_) | Ty::Boxed(_) => {}
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
}

/// Whether a pattern may refuse a value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// It takes every value.
    Never,
    /// By constants and tags.
    Static,
    /// Also by values computed at run time.
    Dynamic,
}

/// The type a layout field of this width is read as.
pub fn field_type(width: u32) -> IntType {
    match width {
        0..=8 => IntType::U8,
        9..=16 => IntType::U16,
        17..=32 => IntType::U32,
        _ => IntType::U64,
    }
}

fn string(rng: &mut Rng, longest: u32) -> String {
    let length = rng.u32(0..=longest);
    let text: String = (0..length).map(|_| ["a", "b", "c", "\\n", "\\x80", "\\0"][rng.usize(0..6)]).collect();
    format!("\"{text}\"")
}
