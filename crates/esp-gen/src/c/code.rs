//! C text under construction, and the text of values, places and edges in it. Knows nothing of instructions, waiting
//! and scheduling.

use super::LineMarks;
use super::analysis::Home;
use super::faults::Faults;
use super::helpers::{Depth, Helper, Helpers};
use super::names::member;
use super::plan::{Plan, is_framed};
use crate::Checks;
use crate::layout::{View, int_type};
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
    /// The loop of the process that is being written, if it holds values of the frame in locals.
    pub(crate) in_loop: Option<usize>,
    /// The path whose function this is, if it is one.
    pub(crate) path: Option<usize>,
    marked: Location,
}

/// What the end of a region gives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Results {
    /// A guard's or condition's `bool`.
    Truth,
    /// The values of a message, sent here.
    Message(Location),
}

/// Whose code a line of the C file is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Owner {
    /// A process, by its number in order of text.
    Process(usize),
    /// A pure function, likewise.
    Function(usize),
    /// The scheduler, the ways in and out, and what several processes share.
    Scheduler,
}

/// A line that says whose the following ones are; not part of the file.
const OWNER_LINE: &str = "#owner ";

/// The line that says so.
pub(crate) fn owner_line(owner: Owner) -> String {
    match owner {
        Owner::Process(index) => format!("{OWNER_LINE}process {index}\n"),
        Owner::Function(index) => format!("{OWNER_LINE}function {index}\n"),
        Owner::Scheduler => format!("{OWNER_LINE}scheduler\n"),
    }
}

/// What such a line says.
pub(crate) fn owner_of_line(line: &str) -> Option<Owner> {
    let words = line.strip_prefix(OWNER_LINE)?;
    let (kind, number) = words.split_once(' ').unwrap_or((words, "0"));
    let number = number.parse().unwrap_or(0);
    Some(match kind {
        "process" => Owner::Process(number),
        "function" => Owner::Function(number),
        _ => Owner::Scheduler,
    })
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
            in_loop: None,
            path: None,
            marked: Location::default(),
        }
    }

    pub(crate) fn line(&mut self, text: &str) {
        if !text.starts_with('#') && !text.is_empty() {
            let depth =
                if text.ends_with(':') && !text.starts_with("case ") && text != "default:" { 0 } else { self.indent };
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

    /// How many units of time, as a C expression of type `int64_t`.
    pub(crate) fn amount(&self, amount: Value) -> String {
        let wide = matches!(self.types().get(self.value_type(amount)), Type::Int(IntType::U64));
        let text = self.value(amount);
        if wide {
            format!("({text} > (uint64_t)INT64_MAX ? INT64_MAX : (int64_t){text})")
        } else {
            format!("(int64_t){text}")
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
                    Home::Frame(class) if self.is_held(class) => self.held_name(index, class),
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

    /// Whether the loop that is being written holds this value of the frame in a local.
    fn is_held(&self, class: Value) -> bool {
        match (self.scope, self.in_loop) {
            (Scope::Process(index), Some(loop_)) => self.plan.processes[index].homes.held.holds(loop_, class),
            (Scope::Process(_), None) | (Scope::Region(_) | Scope::Function(_), _) => false,
        }
    }

    /// The local that holds a value of the frame.
    pub(crate) fn held_name(&self, process: usize, class: Value) -> String {
        let plan = &self.plan.processes[process];
        format!("{}_{}", plan.name, self.plan.version(&self.plan.program.processes[process].body, class))
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

    /// Whether a place is in a slot that is a constant.
    pub(crate) fn is_literal(&self, place: &Place) -> bool {
        match (self.scope, place.base) {
            (Scope::Process(index) | Scope::Region(index), Base::Slot(slot)) => {
                self.plan.processes[index].homes.literals.contains_key(&slot)
            }
            (Scope::Function(_), _) | (_, Base::Object(_)) => false,
        }
    }

    /// A slot as a C lvalue.
    pub(crate) fn slot(&self, slot: SlotId) -> String {
        let body = self.body();
        let name = self.plan.slot_name(body, slot);
        match self.scope {
            Scope::Process(index) | Scope::Region(index) => {
                let plan = &self.plan.processes[index];
                if let Some(lender) = plan.lent.get(&slot) {
                    lender.clone()
                } else if let Some(place) = plan.homes.overlay.inside.get(&slot) {
                    self.part(place)
                } else if is_framed(&plan.homes, slot) {
                    format!("{}{}", self.plan.frame(index), self.plan.frame_member(index, slot))
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

    /// A part of a slot that is found without looking at values.
    fn part(&self, place: &Place) -> String {
        let Base::Slot(slot) = place.base else { unreachable!("slots are parts of slots") };
        let (mut text, mut ty) = (self.slot(slot), self.body().slots[slot.0 as usize].ty);
        for step in &place.path {
            (text, ty) = self.step(&text, ty, *step);
        }
        text
    }

    /// A field or payload.
    fn step(&self, text: &str, ty: TypeId, step: Projection) -> (String, TypeId) {
        match (step, self.types().get(ty)) {
            (Projection::Field(field), Type::Record(id)) => {
                let (name, part) = &self.types().aggregate(*id).parts[field as usize];
                (format!("{text}.{}", member(name)), part.expect("fields have types"))
            }
            (Projection::Payload(tag), Type::Union(id)) => {
                let (name, part) = &self.types().aggregate(*id).parts[tag as usize];
                (format!("{text}.as.{}", member(name)), part.expect("a tag whose payload is used has one"))
            }
            (Projection::Field(_) | Projection::Payload(_) | Projection::Element(_) | Projection::Inside(_), _) => {
                unreachable!("the verifier has checked that paths fit their types")
            }
        }
    }

    /// Whether an instruction copies a slot to where it is already.
    pub(crate) fn stays_in_place(&self, op: &Op) -> bool {
        match self.scope {
            Scope::Process(index) | Scope::Region(index) => {
                self.plan.processes[index].homes.overlay.stays_in_place(self.body(), op)
            }
            Scope::Function(index) => self.plan.functions[index].1.overlay.stays_in_place(self.body(), op),
        }
    }

    /// Code that raises a fault here.
    pub(crate) fn raise(&self, fault: Fault, location: Location) -> String {
        let number = self.faults.number(fault, location, self.channel_at(location));
        self.raise_number(&number.to_string())
    }

    /// The channel that faults of code at a place name.
    pub(crate) fn channel_at(&self, location: Location) -> Option<ChannelId> {
        let own = || match self.scope {
            Scope::Process(index) => self.plan.program.channel_at(ProcessId(index as u32), location),
            Scope::Region(_) | Scope::Function(_) => None,
        };
        self.channel.or_else(own)
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

    pub(crate) fn checked(&self) -> bool {
        match self.plan.options.checks {
            Checks::Overflow => true,
            Checks::None => false,
        }
    }

    pub(crate) fn manual(&self) -> bool {
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
                (Projection::Element(index), Type::Array { length, element }) => {
                    if !self.is_below(*index, *length) {
                        let bad = format!("{} >= {length}u", self.index(*index));
                        self.check(&bad, Fault::Bounds, location);
                    }
                    (format!("{text}.at[{}]", self.subscript(*index)), *element)
                }
                (Projection::Inside(index), Type::Array { element, .. }) => {
                    (format!("{text}.at[{}]", self.subscript(*index)), *element)
                }
                (Projection::Inside(index), Type::Bytes { .. }) => {
                    (format!("{text}.data[{}]", self.subscript(*index)), TypeTable::U8)
                }
                (Projection::Element(index), Type::Bytes { .. }) => {
                    let bad = format!("{} >= {text}.length", self.index(*index));
                    self.check(&bad, Fault::Bounds, location);
                    (format!("{text}.data[{}]", self.subscript(*index)), TypeTable::U8)
                }
                (Projection::Field(_) | Projection::Payload(_) | Projection::Element(_) | Projection::Inside(_), _) => {
                    self.step(&text, ty, *step)
                }
            };
        }
        Lvalue { text, ty }
    }

    /// Whether an index is surely at least 0 and below the limit.
    pub(crate) fn is_below(&self, index: Value, limit: u32) -> bool {
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

    pub(crate) fn count_check(&mut self, value: Value, pool: PoolId, location: Location) {
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
                if (*bound).max(*longest) <= 65535 {
                    line!(self, "ESP_COPY_BYTES({}, {});", to.text, from.text);
                } else {
                    line!(self, "{}.length = {}.length;", to.text, from.text);
                    line!(self, "esp_copy({}.data, {}.data, {}.length);", to.text, from.text, to.text);
                }
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
        let left = if self.plan.layouts.has_boxes(a.ty) { left } else { View::Program };
        match self.types().get(a.ty) {
            Type::Boxed(pool) => {
                let content = self.types().pool(*pool).content;
                let a = match left {
                    View::Program => self.object(*pool, &a.text),
                    View::World => a.text.clone(),
                };
                let left = if self.plan.layouts.has_boxes(content) { left } else { View::Program };
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

    /// In manual memory: whether some object a value refers to has no count left, if it refers to any.
    pub(crate) fn dead(&self, values: &[Lvalue], depth: Depth) -> Option<String> {
        if !self.manual() {
            return None;
        }
        let boxed = values.iter().filter(|value| self.plan.layouts.has_boxes(value.ty));
        let tests: Vec<String> = boxed
            .map(|value| {
                let name = self.helpers.want(self.plan, Helper::Alive(depth), value.ty);
                let address = if matches!(self.types().get(value.ty), Type::Boxed(_)) { "" } else { "&" };
                format!("!{name}(t, {address}{})", value.text)
            })
            .collect();
        (!tests.is_empty()).then(|| tests.join(" || "))
    }

    /// Adds or removes one count on everything boxed in a value.
    pub(crate) fn count(&mut self, helper: Helper, value: &Lvalue) {
        if !self.plan.layouts.has_boxes(value.ty) {
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

    /// Copies an edge's arguments to the target's parameters, all at once.
    pub(crate) fn edge(&mut self, edge: &Edge) {
        self.edge_between(edge, self.in_loop, self.in_loop);
    }

    /// The same where arguments are where one loop holds them, parameters where another does.
    pub(crate) fn edge_between(&mut self, edge: &Edge, from: Option<usize>, to: Option<usize>) {
        let before = self.in_loop;
        let parameters = &self.body().blocks[edge.to.0 as usize].parameters;
        self.in_loop = to;
        let targets: Vec<(String, TypeId)> =
            parameters.iter().map(|value| (self.value(*value), self.value_type(*value))).collect();
        self.in_loop = from;
        let sources = edge.arguments.iter().map(|value| self.value(*value));
        let moves = targets.into_iter().zip(sources).map(|((to, ty), from)| (to, from, ty)).collect();
        self.in_loop = before;
        self.move_texts(moves);
    }

    /// Sets values all at once: to, from.
    pub(crate) fn moves(&mut self, moves: &[(Value, Value)]) {
        let moves = moves.iter().map(|(to, from)| (self.value(*to), self.value(*from), self.value_type(*to)));
        self.move_texts(moves.collect());
    }

    fn move_texts(&mut self, mut moves: Vec<(String, String, TypeId)>) {
        moves.retain(|(to, from, _)| to != from);
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
