//! Text of values, places and instructions: straight-line C of a process, a region or a pure function.
//! Knows nothing of waiting and scheduling.

use super::analysis::Home;
use super::faults::Faults;
use super::helpers::{Helper, Helpers};
use super::names::member;
use super::plan::{Plan, is_framed};
use super::{Checks, LineMarks};
use crate::layout::{View, has_boxes, int_type};
use quaject_esp_ir::ir::*;
use std::fmt::Write as _;

/// Whose code is being written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Scope {
    /// A process, inside the one function that holds all processes.
    Process(usize),
    /// A region of a process, a function of its own.
    Region(usize),
    /// A pure function.
    Function(usize),
}

/// C text under construction.
pub(crate) struct Code<'p, 'a> {
    pub(crate) plan: &'p Plan<'a>,
    pub(crate) faults: &'p Faults,
    pub(crate) helpers: &'p Helpers,
    pub(crate) scope: Scope,
    pub(crate) text: String,
    pub(crate) indent: usize,
    pub(crate) results: Results,
    /// The channel that faults of this code name.
    pub(crate) channel: Option<ChannelId>,
    marked: Location,
}

/// What the end of a region gives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Results {
    /// A guard's or condition's `bool`.
    Truth,
    /// The values of a message.
    Message,
}

/// Marks where a `#line` directive must lead back to the generated file.
pub(crate) const OWN_LINE: &str = "#line @\n";

/// A piece of memory as a C lvalue.
pub(crate) struct Lvalue {
    pub(crate) text: String,
    pub(crate) ty: TypeId,
}

macro_rules! line {
    ($code:expr, $($arg:tt)*) => { $code.line(&format!($($arg)*)) };
}
pub(crate) use line;

impl<'p, 'a> Code<'p, 'a> {
    pub(crate) fn new(plan: &'p Plan<'a>, faults: &'p Faults, helpers: &'p Helpers, scope: Scope) -> Code<'p, 'a> {
        Code {
            plan,
            faults,
            helpers,
            scope,
            text: String::new(),
            indent: 1,
            results: Results::Truth,
            channel: None,
            marked: Location::default(),
        }
    }

    pub(crate) fn line(&mut self, text: &str) {
        if !text.starts_with('#') && !text.is_empty() {
            let depth = if text.ends_with(':') && !text.starts_with("case") && !text.starts_with("default") {
                0
            } else {
                self.indent
            };
            for _ in 0..depth {
                self.text.push_str("    ");
            }
        }
        self.text.push_str(text);
        self.text.push('\n');
    }

    pub(crate) fn open(&mut self, text: &str) {
        self.line(text);
        self.indent += 1;
    }

    pub(crate) fn close(&mut self, text: &str) {
        self.indent -= 1;
        self.line(text);
    }

    /// Says that what follows comes from this place of the source.
    pub(crate) fn mark(&mut self, location: Location) {
        match self.plan.options.lines {
            LineMarks::Source => {}
            LineMarks::None => return,
        }
        if location.line == 0 || (location.file, location.line) == (self.marked.file, self.marked.line) {
            return;
        }
        self.marked = location;
        let file = self.plan.program.files.get(usize::from(location.file)).map_or("?", String::as_str);
        let text = format!("#line {} {}", location.line, c_string(file.as_bytes()));
        self.line(&text);
    }

    /// Says that what follows is no one's text.
    pub(crate) fn unmark(&mut self) {
        if self.marked != Location::default() {
            self.marked = Location::default();
            self.text.push_str(OWN_LINE);
        }
    }

    pub(crate) fn body(&self) -> &'a Body {
        match self.scope {
            Scope::Process(index) | Scope::Region(index) => &self.plan.program.processes[index].body,
            Scope::Function(index) => &self.plan.program.functions[index].body,
        }
    }

    pub(crate) fn types(&self) -> &'a TypeTable {
        &self.plan.program.types
    }

    pub(crate) fn value_type(&self, value: Value) -> TypeId {
        self.body().values[value.0 as usize].ty
    }

    pub(crate) fn c_type(&self, ty: TypeId) -> &'p str {
        &self.plan.types[ty.0 as usize]
    }

    fn own_id(&self) -> String {
        match self.scope {
            Scope::Process(index) => self.plan.own_id(index),
            Scope::Region(index) => self.plan.own_id(index),
            Scope::Function(_) => "0u".to_string(),
        }
    }

    /// A value as a C expression; as the target of an assignment, too, unless it is a constant.
    pub(crate) fn value(&self, value: Value) -> String {
        let body = self.body();
        match self.scope {
            Scope::Process(index) | Scope::Region(index) => {
                let plan = &self.plan.processes[index];
                match plan.homes.values[value.0 as usize] {
                    Home::Local(class) => match self.scope {
                        Scope::Process(_) => format!("{}_{}", plan.name, self.plan.version(body, class)),
                        Scope::Region(_) | Scope::Function(_) => self.plan.version(body, value),
                    },
                    Home::Frame(class) => format!("{}{}", self.plan.frame(index), self.plan.version(body, class)),
                    Home::Constant(constant) => self.constant(constant, self.value_type(value)),
                    Home::OwnId => self.own_id(),
                }
            }
            Scope::Function(index) => match self.plan.functions[index].1.values[value.0 as usize] {
                Home::Local(class) | Home::Frame(class) => self.plan.version(body, class),
                Home::Constant(constant) => self.constant(constant, self.value_type(value)),
                Home::OwnId => self.own_id(),
            },
        }
    }

    pub(crate) fn constant_of(&self, value: Value) -> Option<i128> {
        match self.home(value) {
            Home::Constant(constant) => Some(constant),
            Home::Local(_) | Home::Frame(_) | Home::OwnId => None,
        }
    }

    /// Whether a value has a variable of its own, which must be declared.
    pub(crate) fn has_variable(&self, value: Value) -> bool {
        match self.home(value) {
            Home::Local(_) | Home::Frame(_) => true,
            Home::Constant(_) | Home::OwnId => false,
        }
    }

    fn home(&self, value: Value) -> Home {
        match self.scope {
            Scope::Process(index) | Scope::Region(index) => self.plan.processes[index].homes.values[value.0 as usize],
            Scope::Function(index) => self.plan.functions[index].1.values[value.0 as usize],
        }
    }

    pub(crate) fn constant(&self, constant: i128, ty: TypeId) -> String {
        literal(self.types(), constant, ty)
    }

    /// A slot as a C lvalue.
    pub(crate) fn slot(&self, slot: SlotId) -> String {
        let body = self.body();
        let name = self.plan.slot_name(body, slot);
        match self.scope {
            Scope::Process(index) | Scope::Region(index) => {
                let plan = &self.plan.processes[index];
                if is_framed(&plan.homes, slot) {
                    format!("{}{}", self.plan.frame(index), name)
                } else {
                    format!("{}_{}", plan.name, name)
                }
            }
            Scope::Function(index) => {
                let types = self.types();
                let aggregates = self.plan.program.functions[index]
                    .parameters
                    .iter()
                    .filter(|ty| !types.is_scalar(**ty) && !matches!(types.get(**ty), Type::Boxed(_)))
                    .count();
                if (slot.0 as usize) < aggregates { format!("(*{name})") } else { name }
            }
        }
    }

    /// Code that raises a fault here.
    pub(crate) fn raise(&self, fault: Fault, location: Location) -> String {
        let number = self.faults.number(fault, location, self.channel);
        self.raise_number(&number.to_string())
    }

    /// Code that raises a fault whose number an expression gives.
    pub(crate) fn raise_number(&self, number: &str) -> String {
        match self.scope {
            Scope::Process(index) => {
                format!("{{ where = {number}; goto {}_fault; }}", self.plan.processes[index].name)
            }
            Scope::Region(_) | Scope::Function(_) => format!("return {number};"),
        }
    }

    pub(crate) fn check(&mut self, bad: &str, fault: Fault, location: Location) {
        let raise = self.raise(fault, location);
        line!(self, "if (ESP_UNLIKELY({bad})) {raise}");
    }

    fn checked(&self) -> bool {
        match self.plan.options.checks {
            Checks::Overflow => true,
            Checks::None => false,
        }
    }

    fn manual(&self) -> bool {
        match self.plan.program.memory {
            MemoryMode::Manual => true,
            MemoryMode::Automatic => false,
        }
    }

    /// An index or offset as an unsigned expression that no negative value passes.
    pub(crate) fn index(&self, value: Value) -> String {
        let text = self.value(value);
        match int_type(self.types(), self.value_type(value)) {
            Some(int) if int.bits() == 64 => format!("(uint64_t){text}"),
            Some(_) | None => format!("(uint32_t){text}"),
        }
    }

    /// Writes the checks a path needs, and gives the place as an lvalue.
    pub(crate) fn place(&mut self, place: &Place, location: Location) -> Lvalue {
        let (mut text, mut ty) = match place.base {
            Base::Slot(slot) => (self.slot(slot), self.body().slots[slot.0 as usize].ty),
            Base::Object(value) => {
                let pool = self.pool_of(self.value_type(value));
                if self.manual() {
                    self.count_check(value, pool, location);
                }
                (self.object(pool, &self.value(value)), self.types().pool(pool).content)
            }
        };
        for step in &place.path {
            (text, ty) = match (step, self.types().get(ty)) {
                (Step::Field(field), Type::Record(id)) => {
                    let (name, part) = &self.types().aggregate(*id).parts[*field as usize];
                    (format!("{text}.{}", member(name)), part.expect("fields have types"))
                }
                (Step::Payload(tag), Type::Union(id)) => {
                    let (name, part) = &self.types().aggregate(*id).parts[*tag as usize];
                    (format!("{text}.as.{}", member(name)), part.expect("a tag whose payload is used has one"))
                }
                (Step::Element(index), Type::Array { length, element }) => {
                    if !self.is_below(*index, *length) {
                        let bad = format!("{} >= {length}u", self.index(*index));
                        self.check(&bad, Fault::Bounds, location);
                    }
                    (format!("{text}.at[{}]", self.value(*index)), *element)
                }
                (Step::Element(index), Type::Bytes { .. }) => {
                    let bad = format!("{} >= {text}.length", self.index(*index));
                    self.check(&bad, Fault::Bounds, location);
                    (format!("{text}.data[{}]", self.value(*index)), TypeTable::U8)
                }
                (Step::Field(_) | Step::Payload(_) | Step::Element(_), _) => {
                    unreachable!("the verifier has checked that paths fit their types")
                }
            };
        }
        Lvalue { text, ty }
    }

    /// Whether an index is surely at least 0 and below the limit.
    fn is_below(&self, index: Value, limit: u32) -> bool {
        match (self.constant_of(index), int_type(self.types(), self.value_type(index))) {
            (Some(constant), _) => (0..i128::from(limit)).contains(&constant),
            (None, Some(int)) => !int.is_signed() && int.max() < i128::from(limit),
            (None, None) => false,
        }
    }

    pub(crate) fn pool_of(&self, ty: TypeId) -> PoolId {
        match self.types().get(ty) {
            Type::Boxed(pool) => *pool,
            Type::Error
            | Type::Int(_)
            | Type::Bool
            | Type::Bytes { .. }
            | Type::Pid(_)
            | Type::Array { .. }
            | Type::Record(_)
            | Type::Union(_) => unreachable!("the verifier has checked that this is a reference"),
        }
    }

    /// The content of an object.
    pub(crate) fn object(&self, pool: PoolId, reference: &str) -> String {
        format!("t->{}.content[{reference}]", self.plan.pools[pool.0 as usize])
    }

    fn count_check(&mut self, value: Value, pool: PoolId, location: Location) {
        let bad = format!("t->{}.count[{}] == 0", self.plan.pools[pool.0 as usize], self.value(value));
        self.check(&bad, Fault::Memory, location);
    }

    /// An operand as an lvalue or expression.
    pub(crate) fn operand(&mut self, operand: &Operand, location: Location) -> Lvalue {
        match operand {
            Operand::Value(value) => Lvalue { text: self.value(*value), ty: self.value_type(*value) },
            Operand::Place(place) => self.place(place, location),
        }
    }

    /// Copies a whole value of one type, or `bytes` of any bound to any other.
    pub(crate) fn copy(&mut self, to: &Lvalue, from: &Lvalue, location: Location) {
        match (self.types().get(to.ty), self.types().get(from.ty)) {
            (Type::Bytes { bound }, Type::Bytes { bound: longest }) => {
                if longest > bound {
                    let bad = format!("{}.length > {bound}u", from.text);
                    self.check(&bad, Fault::Range, location);
                }
                line!(self, "{}.length = {}.length;", to.text, from.text);
                line!(self, "esp_copy({}.data, {}.data, {}.length);", to.text, from.text, to.text);
            }
            _ => line!(self, "{} = {};", to.text, from.text),
        }
    }

    /// Whether two values of one type are equal by content; the left one may have the world's form.
    pub(crate) fn equal(&self, a: &Lvalue, b: &Lvalue, left: View) -> String {
        if a.text == b.text {
            return "true".to_string();
        }
        if self.types().is_scalar(a.ty) {
            return format!("{} == {}", a.text, b.text);
        }
        let left = if has_boxes(self.types(), a.ty) { left } else { View::Program };
        match self.types().get(a.ty) {
            Type::Boxed(pool) => {
                let content = self.types().pool(*pool).content;
                let a = match left {
                    View::Program => self.object(*pool, &a.text),
                    View::World => a.text.clone(),
                };
                let left = if has_boxes(self.types(), content) { left } else { View::Program };
                let b = self.object(*pool, &b.text);
                let (a, b) = (Lvalue { text: a, ty: content }, Lvalue { text: b, ty: content });
                self.equal(&a, &b, left)
            }
            Type::Bytes { .. } => {
                format!(
                    "({a}.length == {b}.length && esp_same({a}.data, {b}.data, {a}.length))",
                    a = a.text,
                    b = b.text
                )
            }
            Type::Error
            | Type::Int(_)
            | Type::Bool
            | Type::Pid(_)
            | Type::Array { .. }
            | Type::Record(_)
            | Type::Union(_) => {
                let name = self.helpers.want(self.plan, Helper::Equal(left), a.ty);
                format!("{name}(t, &{}, &{})", a.text, b.text)
            }
        }
    }

    /// Adds or removes one count on everything boxed in a value.
    pub(crate) fn count(&mut self, helper: Helper, value: &Lvalue) {
        if !has_boxes(self.types(), value.ty) {
            return;
        }
        let name = self.helpers.want(self.plan, helper, value.ty);
        match self.types().get(value.ty) {
            Type::Boxed(_) => line!(self, "{name}(t, {});", value.text),
            Type::Error
            | Type::Int(_)
            | Type::Bool
            | Type::Bytes { .. }
            | Type::Pid(_)
            | Type::Array { .. }
            | Type::Record(_)
            | Type::Union(_) => line!(self, "{name}(t, &{});", value.text),
        }
    }

    /// Writes one instruction.
    pub(crate) fn instruction(&mut self, instruction: &Instruction) {
        let at = instruction.location;
        let result = instruction.result;
        match &instruction.op {
            Op::Constant(_) | Op::OwnId | Op::Mark(_) => return,
            Op::Unary(..)
            | Op::Binary(..)
            | Op::Convert(_)
            | Op::Load(_)
            | Op::Store(..)
            | Op::Copy { .. }
            | Op::SetBytes(..)
            | Op::Fill(..)
            | Op::SetTag(..)
            | Op::Tag(_)
            | Op::Length(_)
            | Op::SetLength(..)
            | Op::CopySlice { .. }
            | Op::StoreSlice { .. }
            | Op::Append { .. }
            | Op::LoadNumber { .. }
            | Op::StoreNumber { .. }
            | Op::LoadBits { .. }
            | Op::StoreBits { .. }
            | Op::Equal(..)
            | Op::CallFunction { .. }
            | Op::CallExtern { .. }
            | Op::InstanceOf(..)
            | Op::ReplicaNumber(_)
            | Op::Allocate(_)
            | Op::IsUnique(_)
            | Op::FreeObjects(_)
            | Op::Retain(_)
            | Op::Release(_) => self.mark(at),
        }
        let define = |code: &mut Self, text: &str| {
            let target = code.value(result.expect("the verifier has checked that this defines a value"));
            line!(code, "{target} = {text};");
        };
        match &instruction.op {
            Op::Constant(_) | Op::OwnId | Op::Mark(_) => {}
            Op::Unary(op, a) => {
                let text = self.unary(*op, *a, at);
                define(self, &text);
            }
            Op::Binary(op, a, b) => {
                let ty = result.map(|result| self.value_type(result)).unwrap_or(TypeTable::BOOL);
                let text = self.binary(*op, *a, *b, ty, at);
                define(self, &text);
            }
            Op::Convert(a) => {
                let to = self.value_type(result.expect("a conversion defines a value"));
                let text = if to == TypeTable::BOOL {
                    format!("{} != 0", self.value(*a))
                } else {
                    format!("({}){}", self.c_type(to), self.value(*a))
                };
                define(self, &text);
            }
            Op::Load(place) => {
                let from = self.place(place, at);
                define(self, &from.text);
            }
            Op::Store(place, value) => {
                let to = self.place(place, at);
                line!(self, "{} = {};", to.text, self.value(*value));
            }
            Op::Copy { to, from } => {
                let from = self.place(from, at);
                let to = self.place(to, at);
                self.copy(&to, &from, at);
            }
            Op::SetBytes(place, bytes) => {
                let to = self.place(place, at);
                line!(self, "{}.length = {}u;", to.text, bytes.len());
                if !bytes.is_empty() {
                    line!(self, "esp_copy({}.data, {}, {}u);", to.text, c_string(bytes), bytes.len());
                }
            }
            Op::Fill(place, operand) => {
                let to = self.place(place, at);
                let from = self.operand(operand, at);
                let Type::Array { length, element } = self.types().get(to.ty) else {
                    unreachable!("the verifier has checked that an array is filled")
                };
                self.open("{");
                self.line("uint32_t n_;");
                self.open(&format!("for (n_ = 0; n_ < {length}u; n_++) {{"));
                let each = Lvalue { text: format!("{}.at[n_]", to.text), ty: *element };
                self.copy(&each, &from, at);
                self.close("}");
                self.close("}");
            }
            Op::SetTag(place, tag) => {
                let to = self.place(place, at);
                line!(self, "{}.tag = {tag}u;", to.text);
            }
            Op::Tag(place) => {
                let from = self.place(place, at);
                define(self, &format!("{}.tag", from.text));
            }
            Op::Length(place) => {
                let from = self.place(place, at);
                let text = match self.types().get(from.ty) {
                    Type::Array { length, .. } => length.to_string(),
                    Type::Error
                    | Type::Int(_)
                    | Type::Bool
                    | Type::Bytes { .. }
                    | Type::Pid(_)
                    | Type::Record(_)
                    | Type::Union(_)
                    | Type::Boxed(_) => format!("(int32_t){}.length", from.text),
                };
                define(self, &text);
            }
            Op::SetLength(place, value) => {
                let to = self.place(place, at);
                let (bound, index) = (self.bound(to.ty), self.index(*value));
                if !self.is_below(*value, bound.saturating_add(1)) {
                    self.check(&format!("{index} > {bound}u"), Fault::Range, at);
                }
                if self.constant_of(*value) != Some(0) {
                    line!(
                        self,
                        "if ({index} > {0}.length) esp_zero({0}.data + {0}.length, {index} - {0}.length);",
                        to.text
                    );
                }
                line!(self, "{}.length = ({}){};", to.text, length_type(bound), self.value(*value));
            }
            Op::CopySlice { to, from, start, end } => {
                let from = self.place(from, at);
                let to = self.place(to, at);
                let (start, end) = self.slice(&from, *start, *end, at);
                self.open("{");
                line!(self, "uint32_t a_ = {start}, n_ = {end} - a_;");
                let bound = self.bound(to.ty);
                if self.bound(from.ty) > bound {
                    self.check(&format!("n_ > {bound}u"), Fault::Range, at);
                }
                line!(self, "{}.length = ({})n_;", to.text, length_type(bound));
                line!(self, "esp_copy({}.data, {}.data + a_, n_);", to.text, from.text);
                self.close("}");
            }
            Op::StoreSlice { to, start, end, from } => {
                let from = self.place(from, at);
                let to = self.place(to, at);
                let (start, end) = self.slice(&to, *start, *end, at);
                self.open("{");
                line!(self, "uint32_t a_ = {start}, n_ = {end} - a_;");
                self.check(&format!("n_ != {}.length", from.text), Fault::Range, at);
                line!(self, "esp_copy({}.data + a_, {}.data, n_);", to.text, from.text);
                self.close("}");
            }
            Op::Append { to, from } => {
                let from = self.place(from, at);
                let to = self.place(to, at);
                let bound = self.bound(to.ty);
                self.open("{");
                line!(self, "uint32_t n_ = {}.length;", from.text);
                self.check(&format!("n_ > {bound}u - {}.length", to.text), Fault::Range, at);
                line!(self, "esp_copy({0}.data + {0}.length, {1}.data, n_);", to.text, from.text);
                line!(self, "{0}.length = ({1})({0}.length + n_);", to.text, length_type(bound));
                self.close("}");
            }
            Op::LoadNumber { from, offset, bits, order } => {
                let from = self.place(from, at);
                self.window(&from, *offset, bits / 8, at);
                let text = format!(
                    "(uint{bits}_t)esp_load_{}({}.data + {}, {})",
                    order_name(*order),
                    from.text,
                    self.index(*offset),
                    bits / 8
                );
                define(self, &text);
            }
            Op::StoreNumber { to, offset, bits, order, value } => {
                let to = self.place(to, at);
                self.window(&to, *offset, bits / 8, at);
                line!(
                    self,
                    "esp_store_{}({}.data + {}, {}, {});",
                    order_name(*order),
                    to.text,
                    self.index(*offset),
                    bits / 8,
                    self.value(*value)
                );
            }
            Op::LoadBits { from, offset, field } => {
                let from = self.place(from, at);
                self.window(&from, *offset, field.layout_bytes, at);
                let result = result.expect("a load defines a value");
                let text =
                    format!("({}){}", self.c_type(self.value_type(result)), self.bits(&from, *offset, *field, None));
                define(self, &text);
            }
            Op::StoreBits { to, offset, field, value } => {
                let to = self.place(to, at);
                self.window(&to, *offset, field.layout_bytes, at);
                if self.checked() && field.width_bits < 64 {
                    let bad = format!("(uint64_t){} >> {} != 0", self.value(*value), field.width_bits);
                    self.check(&bad, Fault::Overflow, at);
                }
                let value = self.value(*value);
                let text = self.bits(&to, *offset, *field, Some(&value));
                line!(self, "{text};");
            }
            Op::Equal(a, b) => {
                let a = self.operand(a, at);
                let b = self.operand(b, at);
                let text = self.equal(&a, &b, View::Program);
                define(self, &text);
            }
            Op::CallFunction { function, arguments, to } => {
                self.call_function(*function, arguments, to.as_ref(), result, at);
            }
            Op::CallExtern { function, arguments, to } => {
                self.call_extern(*function, arguments, to.as_ref(), result, at);
            }
            Op::InstanceOf(process, replica) => {
                let plan = &self.plan.processes[process.0 as usize];
                let (base, replicas) = (plan.base, plan.replicas);
                let index = self.index(*replica);
                self.check(&format!("{index} >= {replicas}u"), Fault::Range, at);
                define(self, &format!("{base}u + (esp_pid){index}"));
            }
            Op::ReplicaNumber(pid) => {
                let text = self.replica_number(*pid);
                define(self, &text);
            }
            Op::Allocate(pool) => {
                let target = self.value(result.expect("an allocation defines a value"));
                self.allocate(*pool, &target, at);
            }
            Op::IsUnique(value) => {
                let pool = self.pool_of(self.value_type(*value));
                let text = format!("t->{}.count[{}] == 1", self.plan.pools[pool.0 as usize], self.value(*value));
                define(self, &text);
            }
            Op::FreeObjects(pool) => {
                define(self, &format!("(int32_t)t->{}.free", self.plan.pools[pool.0 as usize]));
            }
            Op::Retain(operand) => {
                let value = self.operand(operand, at);
                self.counted(operand, at);
                self.count(Helper::Retain, &value);
            }
            Op::Release(operand) => {
                let value = self.operand(operand, at);
                self.counted(operand, at);
                self.count(Helper::Release, &value);
            }
        }
    }

    /// In manual memory, a count is added or removed only where there is one.
    fn counted(&mut self, operand: &Operand, location: Location) {
        if let (true, Operand::Value(value)) = (self.manual(), operand)
            && let Type::Boxed(pool) = self.types().get(self.value_type(*value))
        {
            self.count_check(*value, *pool, location);
        }
    }

    /// Takes an object with count 1.
    pub(crate) fn allocate(&mut self, pool: PoolId, target: &str, location: Location) {
        let name = &self.plan.pools[pool.0 as usize];
        let bad = format!("t->{name}.free == 0");
        self.check(&bad, Fault::Pool, location);
        line!(self, "{target} = {}_take(t);", name);
        self.helpers.want_pool(pool);
    }

    /// A `pid`'s replica number: the instance's number less that of its process's first replica.
    fn replica_number(&self, pid: Value) -> String {
        let value = self.value(pid);
        let Type::Pid(processes) = self.types().get(self.value_type(pid)) else { return format!("(int32_t){value}") };
        let mut text = String::new();
        for (index, process) in processes.iter().enumerate() {
            let plan = &self.plan.processes[process.0 as usize];
            let number =
                if plan.replicas > 1 { format!("(int32_t)({value} - {}u)", plan.base) } else { "0".to_string() };
            if index + 1 == processes.len() {
                text.push_str(&number);
            } else {
                write!(text, "{value} < {}u ? {number} : ", plan.base + plan.replicas)
                    .expect("writing to a string does not fail");
            }
        }
        text
    }

    fn bound(&self, ty: TypeId) -> u32 {
        match self.types().get(ty) {
            Type::Bytes { bound } => *bound,
            Type::Error
            | Type::Int(_)
            | Type::Bool
            | Type::Pid(_)
            | Type::Array { .. }
            | Type::Record(_)
            | Type::Union(_)
            | Type::Boxed(_) => unreachable!("the verifier has checked that this is `bytes`"),
        }
    }

    /// Checks `0 <= start <= end <= length` and gives both as expressions.
    fn slice(&mut self, of: &Lvalue, start: Option<Value>, end: Option<Value>, at: Location) -> (String, String) {
        let last = match end {
            Some(end) => {
                let index = self.index(end);
                self.check(&format!("{index} > {}.length", of.text), Fault::Bounds, at);
                format!("(uint32_t){}", self.value(end))
            }
            None => format!("(uint32_t){}.length", of.text),
        };
        let first = match start {
            Some(start) => {
                let index = self.index(start);
                self.check(&format!("{index} > {last}"), Fault::Bounds, at);
                format!("(uint32_t){}", self.value(start))
            }
            None => "0u".to_string(),
        };
        (first, last)
    }

    /// Checks that so many bytes lie inside from the offset on.
    fn window(&mut self, of: &Lvalue, offset: Value, bytes: u32, at: Location) {
        let index = self.index(offset);
        let short = format!("{}.length < {bytes}u", of.text);
        let bad = match self.constant_of(offset) {
            Some(0) => short,
            Some(_) | None => format!("{short} || {index} > (uint32_t){}.length - {bytes}u", of.text),
        };
        self.check(&bad, Fault::Bounds, at);
    }

    /// Reads a layout's field, or writes it.
    fn bits(&self, of: &Lvalue, offset: Value, field: BitField, value: Option<&str>) -> String {
        let whole = field.offset_bits.is_multiple_of(8) && [8, 16, 32, 64].contains(&field.width_bits);
        let base = format!("{}.data + {}", of.text, self.index(offset));
        let verb = if value.is_some() { "store" } else { "load" };
        let tail = value.map(|value| format!(", {value}")).unwrap_or_default();
        if whole {
            let (byte, bytes) = (field.offset_bits / 8, field.width_bits / 8);
            format!("esp_{verb}_{}({base} + {byte}, {bytes}{tail})", order_name(field.order))
        } else {
            format!("esp_{verb}_bits({base}, {}, {}{tail})", field.offset_bits, field.width_bits)
        }
    }

    fn call_function(
        &mut self,
        function: FnId,
        arguments: &[Operand],
        to: Option<&Place>,
        result: Option<Value>,
        at: Location,
    ) {
        let mut list = String::from("t");
        for argument in arguments {
            let value = self.operand(argument, at);
            let by_value = self.types().is_scalar(value.ty) || matches!(self.types().get(value.ty), Type::Boxed(_));
            write!(list, ", {}{}", if by_value { "" } else { "&" }, value.text)
                .expect("writing to a string does not fail");
        }
        let name = &self.plan.functions[function.0 as usize].0;
        let result_type = self.plan.program.functions[function.0 as usize].result;
        // The function does not know for which channel it is called.
        let raise = match self.channel {
            Some(channel) => self.raise_number(&format!("fault_ | {}u << FAULT_CHANNEL", channel.0 + 1)),
            None => self.raise_number("fault_"),
        };
        self.open("{");
        match to {
            Some(place) => {
                let to = self.place(place, at);
                line!(self, "uint32_t fault_ = {name}({list}, &{});", to.text);
                line!(self, "if (ESP_UNLIKELY(fault_)) {raise}");
            }
            None => {
                line!(self, "{} result_;", self.c_type(result_type));
                line!(self, "uint32_t fault_ = {name}({list}, &result_);");
                line!(self, "if (ESP_UNLIKELY(fault_)) {raise}");
                match result {
                    Some(result) => line!(self, "{} = result_;", self.value(result)),
                    None => line!(self, "(void)result_;"),
                }
            }
        }
        self.close("}");
    }

    fn call_extern(
        &mut self,
        function: ExternId,
        arguments: &[Operand],
        to: Option<&Place>,
        result: Option<Value>,
        at: Location,
    ) {
        let data = &self.plan.program.externs[function.0 as usize];
        self.open("{");
        let mut list = Vec::new();
        let mut copies = Vec::new();
        for (index, (argument, (parameter, _))) in arguments.iter().zip(&data.parameters).enumerate() {
            let value = self.operand(argument, at);
            if self.types().is_scalar(*parameter) {
                list.push(value.text);
                continue;
            }
            let (content, lvalue) = match self.types().get(value.ty) {
                Type::Boxed(pool) => (self.types().pool(*pool).content, self.object(*pool, &value.text)),
                Type::Error
                | Type::Int(_)
                | Type::Bool
                | Type::Bytes { .. }
                | Type::Pid(_)
                | Type::Array { .. }
                | Type::Record(_)
                | Type::Union(_) => (value.ty, value.text),
            };
            if has_boxes(self.types(), content) {
                let name = self.helpers.want(self.plan, Helper::ToWorld, content);
                line!(self, "{} a{index}_;", self.plan.world_type(content));
                copies.push(format!("{name}(t, &a{index}_, &{lvalue});"));
                list.push(format!("&a{index}_"));
            } else {
                list.push(format!("&{lvalue}"));
            }
        }
        let raise = self.raise(Fault::Extern, at);
        for copy in copies {
            self.line(&copy);
        }
        line!(self, "if (ESP_MISSING({})) {raise}", data.name);
        let call = |list: &[String]| format!("{}({})", data.name, list.join(", "));
        match data.result {
            None => line!(self, "{};", call(&list)),
            Some(ty) if self.types().is_scalar(ty) => match result {
                Some(result) => line!(self, "{} = {};", self.value(result), call(&list)),
                None => line!(self, "(void){};", call(&list)),
            },
            Some(ty) => {
                let (content, boxed) = match self.types().get(ty) {
                    Type::Boxed(pool) => (self.types().pool(*pool).content, Some(*pool)),
                    Type::Error
                    | Type::Int(_)
                    | Type::Bool
                    | Type::Bytes { .. }
                    | Type::Pid(_)
                    | Type::Array { .. }
                    | Type::Record(_)
                    | Type::Union(_) => (ty, None),
                };
                line!(self, "{} r_;", self.plan.world_type(content));
                list.push("&r_".to_string());
                line!(self, "{};", call(&list));
                let to = match (boxed, to, result) {
                    (Some(pool), None, Some(result)) => {
                        let target = self.value(result);
                        self.allocate(pool, &target, at);
                        Lvalue { text: self.object(pool, &target), ty: content }
                    }
                    (_, Some(to), _) => self.place(to, at),
                    (None, None, _) | (Some(_), None, None) => {
                        unreachable!("the verifier has checked that a call's result has a place")
                    }
                };
                let fits = self.take_from_world(&to, "r_", at);
                line!(self, "{fits}");
            }
        }
        self.close("}");
    }

    /// A statement that copies a value of the world's form into the program's, taking objects for its boxed parts.
    fn take_from_world(&mut self, to: &Lvalue, from: &str, at: Location) -> String {
        if !has_boxes(self.types(), to.ty) {
            return format!("{} = {from};", to.text);
        }
        let fits = self.helpers.want(self.plan, Helper::Fits, to.ty);
        let raise = self.raise(Fault::Pool, at);
        line!(self, "if (ESP_UNLIKELY(!{fits}(t, &{from}))) {raise}");
        let name = self.helpers.want(self.plan, Helper::FromWorld, to.ty);
        format!("{name}(t, &{}, &{from});", to.text)
    }

    fn unary(&mut self, op: UnaryOp, a: Value, at: Location) -> String {
        let text = self.value(a);
        let ty = self.value_type(a);
        let c = self.c_type(ty);
        match op {
            UnaryOp::Not => format!("!{text}"),
            UnaryOp::Complement => format!("({c})~{text}"),
            UnaryOp::Negate => match int_type(self.types(), ty) {
                Some(int) => {
                    if self.checked() && int.is_signed() {
                        let min = literal(self.types(), int.min(), ty);
                        self.check(&format!("{text} == {min}"), Fault::Overflow, at);
                    }
                    format!("({c})(0u - ({}){text})", unsigned(int))
                }
                None => format!("-{text}"),
            },
        }
    }

    /// Comparisons that are always the same, of which C compilers warn.
    fn known_comparison(&self, op: BinaryOp, a: Value, b: Value) -> Option<bool> {
        if a == b {
            return match op {
                BinaryOp::Equal | BinaryOp::LessEqual | BinaryOp::GreaterEqual => Some(true),
                BinaryOp::NotEqual | BinaryOp::Less | BinaryOp::Greater => Some(false),
                BinaryOp::Add
                | BinaryOp::Subtract
                | BinaryOp::Multiply
                | BinaryOp::Divide
                | BinaryOp::Remainder
                | BinaryOp::ShiftLeft
                | BinaryOp::ShiftRight
                | BinaryOp::BitAnd
                | BinaryOp::BitOr
                | BinaryOp::BitXor => None,
            };
        }
        let int = int_type(self.types(), self.value_type(a))?;
        let lowest = |value: Value| self.constant_of(value) == Some(int.min());
        let highest = |value: Value| self.constant_of(value) == Some(int.max());
        match op {
            BinaryOp::Less if lowest(b) || highest(a) => Some(false),
            BinaryOp::Greater if highest(b) || lowest(a) => Some(false),
            BinaryOp::LessEqual if highest(b) || lowest(a) => Some(true),
            BinaryOp::GreaterEqual if lowest(b) || highest(a) => Some(true),
            _ => None,
        }
    }

    fn binary(&mut self, op: BinaryOp, a: Value, b: Value, ty: TypeId, at: Location) -> String {
        let (x, y) = (self.value(a), self.value(b));
        if let Some(known) = self.known_comparison(op, a, b) {
            return known.to_string();
        }
        let compare = |sign: &str| format!("{x} {sign} {y}");
        match op {
            BinaryOp::Equal => return compare("=="),
            BinaryOp::NotEqual => return compare("!="),
            BinaryOp::Less => return compare("<"),
            BinaryOp::LessEqual => return compare("<="),
            BinaryOp::Greater => return compare(">"),
            BinaryOp::GreaterEqual => return compare(">="),
            BinaryOp::Add
            | BinaryOp::Subtract
            | BinaryOp::Multiply
            | BinaryOp::Divide
            | BinaryOp::Remainder
            | BinaryOp::ShiftLeft
            | BinaryOp::ShiftRight
            | BinaryOp::BitAnd
            | BinaryOp::BitOr
            | BinaryOp::BitXor => {}
        }
        let c = self.c_type(ty);
        let int = int_type(self.types(), ty).unwrap_or(IntType::U8);
        let u = unsigned(int);
        let signed_check = self.checked() && int.is_signed();
        let (min, max) = (literal(self.types(), int.min(), ty), literal(self.types(), int.max(), ty));
        let overflow = |name: &str| format!("esp_{name}_overflows({x}, {y}, {min}, {max})");
        let constant = self.constant_of(b);
        match op {
            BinaryOp::Add | BinaryOp::Subtract | BinaryOp::Multiply => {
                let (sign, name) = match op {
                    BinaryOp::Add => ("+", "add"),
                    BinaryOp::Subtract => ("-", "subtract"),
                    _ => ("*", "multiply"),
                };
                if signed_check {
                    let bad = overflow(name);
                    self.check(&bad, Fault::Overflow, at);
                }
                format!("({c})(({u}){x} {sign} ({u}){y})")
            }
            BinaryOp::Divide | BinaryOp::Remainder => {
                if constant.is_none_or(|constant| constant == 0) {
                    self.check(&format!("{y} == 0"), Fault::Div, at);
                }
                let sign = if op == BinaryOp::Divide { "/" } else { "%" };
                if !int.is_signed() || constant.is_some_and(|constant| constant != -1) {
                    return match constant {
                        Some(0) => "0".to_string(),
                        Some(_) | None => format!("({c})({x} {sign} {y})"),
                    };
                }
                if signed_check {
                    self.check(&format!("{y} == -1 && {x} == {min}"), Fault::Overflow, at);
                }
                let special = if op == BinaryOp::Divide { format!("({c})(0u - ({u}){x})") } else { "0".to_string() };
                format!("{y} == -1 ? {special} : ({c})({x} {sign} {y})")
            }
            BinaryOp::ShiftLeft | BinaryOp::ShiftRight => {
                let bits = int.bits();
                if self.checked() && constant.is_none_or(|constant| !(0..i128::from(bits)).contains(&constant)) {
                    let bad = format!("{} >= {bits}u", self.index(b));
                    self.check(&bad, Fault::Overflow, at);
                }
                let count = match constant {
                    Some(constant) => constant.rem_euclid(i128::from(bits)).to_string(),
                    None => format!("((uint32_t){y} & {}u)", bits - 1),
                };
                if op == BinaryOp::ShiftLeft {
                    format!("({c})(({u}){x} << {count})")
                } else {
                    format!("({c})({x} >> {count})")
                }
            }
            BinaryOp::BitAnd => format!("({c})({x} & {y})"),
            BinaryOp::BitOr => format!("({c})({x} | {y})"),
            BinaryOp::BitXor => format!("({c})({x} ^ {y})"),
            BinaryOp::Equal
            | BinaryOp::NotEqual
            | BinaryOp::Less
            | BinaryOp::LessEqual
            | BinaryOp::Greater
            | BinaryOp::GreaterEqual => unreachable!("comparisons have returned"),
        }
    }

    /// Copies an edge's arguments to the target's parameters, all at once.
    pub(crate) fn edge(&mut self, edge: &Edge) {
        let parameters = self.body().blocks[edge.to.0 as usize].parameters.clone();
        let moves: Vec<(String, String, TypeId)> = parameters
            .iter()
            .zip(&edge.arguments)
            .map(|(parameter, argument)| (self.value(*parameter), self.value(*argument), self.value_type(*parameter)))
            .filter(|(to, from, _)| to != from)
            .collect();
        let clash = moves
            .iter()
            .enumerate()
            .any(|(index, (to, _, _))| moves.iter().skip(index + 1).any(|(_, from, _)| from == to));
        if !clash {
            for (to, from, _) in &moves {
                line!(self, "{to} = {from};");
            }
            return;
        }
        self.open("{");
        for (index, (_, from, ty)) in moves.iter().enumerate() {
            line!(self, "{} m{index}_ = {from};", self.c_type(*ty));
        }
        for (index, (to, _, _)) in moves.iter().enumerate() {
            line!(self, "{to} = m{index}_;");
        }
        self.close("}");
    }
}

fn unsigned(int: IntType) -> &'static str {
    if int.bits() == 64 { "uint64_t" } else { "uint32_t" }
}

fn order_name(order: ByteOrder) -> &'static str {
    match order {
        ByteOrder::Big => "be",
        ByteOrder::Little => "le",
    }
}

fn length_type(bound: u32) -> &'static str {
    if bound <= 65535 { "uint16_t" } else { "uint32_t" }
}

/// A constant of a scalar type.
pub(crate) fn literal(types: &TypeTable, constant: i128, ty: TypeId) -> String {
    match types.get(ty) {
        Type::Bool => if constant == 0 { "false" } else { "true" }.to_string(),
        Type::Int(int) => match (int.is_signed(), int.bits()) {
            (true, 64) if constant == (*int).min() => "(-INT64_C(9223372036854775807) - 1)".to_string(),
            (true, 64) if constant < 0 => format!("(-INT64_C({}))", -constant),
            (true, 64) => format!("INT64_C({constant})"),
            (true, 32) if constant == (*int).min() => "(-2147483647 - 1)".to_string(),
            (true, _) if constant < 0 => format!("({constant})"),
            (true, _) => constant.to_string(),
            (false, 64) => format!("UINT64_C({constant})"),
            (false, _) => format!("{constant}u"),
        },
        Type::Pid(_) => format!("{constant}u"),
        Type::Error | Type::Bytes { .. } | Type::Array { .. } | Type::Record(_) | Type::Union(_) | Type::Boxed(_) => {
            constant.to_string()
        }
    }
}

/// A C string literal with these bytes.
pub(crate) fn c_string(bytes: &[u8]) -> String {
    let mut text = String::from("\"");
    for byte in bytes {
        match byte {
            b'"' => text.push_str("\\\""),
            b'\\' => text.push_str("\\\\"),
            b'?' => text.push_str("\\?"),
            0x20..=0x7e => text.push(char::from(*byte)),
            0..=0x1f | 0x7f..=0xff => {
                write!(text, "\\{byte:03o}").expect("writing to a string does not fail");
            }
        }
    }
    text.push('"');
    text
}
