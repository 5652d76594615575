//! The C text of values, slots, places and control-flow edges. Knows where the plan stores each value; knows nothing of
//! instructions, waiting and scheduling.

use super::helpers::{Depth, Helper};
use super::names::member;
use super::storage::ValueStorage;
use super::writer::{Scope, Writer, line};
use crate::Checks;
use crate::layout::{View, int_type};
use quaject_esp_ir::ir::*;

/// A piece of memory as a C lvalue.
pub(crate) struct Lvalue {
    pub(crate) text: String,
    pub(crate) ty: TypeId,
}

impl<'p> Writer<'p, '_> {
    pub(crate) fn value_type(&self, value: Value) -> TypeId {
        self.body().values[value.0 as usize].ty
    }

    /// Whether parameters and views hold values of this type, not their addresses.
    pub(crate) fn is_passed_by_value(&self, ty: TypeId) -> bool {
        self.types().is_scalar(ty) || matches!(self.types().get(ty), Type::Boxed(_))
    }

    pub(crate) fn c_type(&self, ty: TypeId) -> &'p str {
        &self.plan.types[ty.0 as usize]
    }

    fn own_id(&self) -> String {
        match self.scope() {
            Scope::Process(index) | Scope::Region(index) => self.plan.own_operand(index),
            Scope::Function(_) => "0u".to_string(),
        }
    }

    /// The amount of an `after` as a C expression of type `int64_t`.
    pub(crate) fn amount(&self, amount: Value) -> String {
        let wide = matches!(self.types().get(self.value_type(amount)), Type::Int(IntType::U64));
        let text = self.value(amount);
        if wide {
            format!("({text} > (uint64_t)INT64_MAX ? INT64_MAX : (int64_t){text})")
        } else {
            format!("(int64_t){text}")
        }
    }

    /// A value as a C expression. Unless it is a constant, the expression can be assigned to.
    pub(crate) fn value(&self, value: Value) -> String {
        let body = self.body();
        match (self.storage_of(value), self.scope()) {
            (ValueStorage::Local(class), Scope::Process(index)) => self.process_local(index, class),
            (ValueStorage::Local(_), Scope::Region(_)) => self.plan.version(body, value),
            (ValueStorage::Frame(class), Scope::Process(index) | Scope::Region(index)) => {
                if self.is_promoted(class) {
                    self.process_local(index, class)
                } else {
                    format!("{}{}", self.plan.frame(index), self.plan.version(body, class))
                }
            }
            (ValueStorage::Local(class) | ValueStorage::Frame(class), Scope::Function(_)) => {
                self.plan.version(body, class)
            }
            (ValueStorage::Constant(constant), _) => self.constant(constant, self.value_type(value)),
            (ValueStorage::OwnId, _) => self.own_id(),
        }
    }

    /// Whether the loop that is written holds this value of the frame in a local.
    fn is_promoted(&self, class: Value) -> bool {
        match (self.scope(), self.promoting_loop()) {
            (Scope::Process(_), Some(promoting_loop)) => self.storage().promotion.promotes(promoting_loop, class),
            (Scope::Process(_), None) | (Scope::Region(_) | Scope::Function(_), _) => false,
        }
    }

    /// The local of a process for a value, or for the value of its frame that a loop has promoted.
    pub(crate) fn process_local(&self, process: usize, class: Value) -> String {
        let body = &self.plan.program.processes[process].body;
        format!("{}_{}", self.plan.processes[process].name, self.plan.version(body, class))
    }

    fn storage_of(&self, value: Value) -> ValueStorage {
        self.storage().values[value.0 as usize]
    }

    /// The value's number if it is a constant.
    pub(crate) fn constant_of(&self, value: Value) -> Option<i128> {
        match self.storage_of(value) {
            ValueStorage::Constant(constant) => Some(constant),
            ValueStorage::Local(_) | ValueStorage::Frame(_) | ValueStorage::OwnId => None,
        }
    }

    /// Whether a value has a variable of its own, which must be declared.
    pub(crate) fn has_variable(&self, value: Value) -> bool {
        match self.storage_of(value) {
            ValueStorage::Local(_) | ValueStorage::Frame(_) => true,
            ValueStorage::Constant(_) | ValueStorage::OwnId => false,
        }
    }

    pub(crate) fn constant(&self, constant: i128, ty: TypeId) -> String {
        literal(self.types(), constant, ty)
    }

    /// Whether a place is in a slot that is stored as a constant.
    pub(crate) fn is_literal(&self, place: &Place) -> bool {
        match place.base {
            Base::Slot(slot) => self.storage().literals.contains_key(&slot),
            Base::Object(_) | Base::Constant(..) => false,
        }
    }

    /// A slot as a C lvalue.
    pub(crate) fn slot(&self, slot: SlotId) -> String {
        let body = self.body();
        let name = self.plan.slot_name(body, slot);
        match self.scope() {
            Scope::Process(index) | Scope::Region(index) => {
                let process = &self.plan.processes[index];
                if let Some(owner_slot) = process.captured.get(&slot) {
                    owner_slot.clone()
                } else if let Some(place) = process.storage.colouring.inside.get(&slot) {
                    self.static_place(place)
                } else if process.storage.is_framed(slot) {
                    format!("{}{}", self.plan.frame(index), self.plan.frame_member(index, slot))
                } else {
                    format!("{}_{}", process.name, name)
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

    /// A part of a slot whose address depends on no value.
    fn static_place(&self, place: &Place) -> String {
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

    /// Whether an instruction copies a slot to the memory that it occupies.
    pub(crate) fn is_noop_copy(&self, op: &Op) -> bool {
        self.storage().colouring.is_noop_copy(self.body(), op)
    }

    /// Code that raises a fault here.
    pub(crate) fn raise(&self, fault: Fault, location: Location) -> String {
        let number = self.faults.number(fault, location, self.channel_at(location));
        self.raise_number(&number.to_string())
    }

    /// The channel that faults of code at a location name.
    pub(crate) fn channel_at(&self, location: Location) -> Option<ChannelId> {
        let of_process = || match self.scope() {
            Scope::Process(index) => self.plan.program.channel_at(ProcessId(index as u32), location),
            Scope::Region(_) | Scope::Function(_) => None,
        };
        self.channel().or_else(of_process)
    }

    /// Code that raises a fault whose number an expression gives.
    pub(crate) fn raise_number(&self, number: &str) -> String {
        match self.scope() {
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
            Checks::On => true,
            Checks::Off => false,
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
            Base::Constant(id, ty) => (self.plan.constants[id.0 as usize].clone(), ty),
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
        let bad = format!("t->{}.count[{}] == 0u", self.plan.pools[pool.0 as usize], self.value(value));
        self.check(&bad, Fault::Memory, location);
    }

    /// An operand as an lvalue or expression.
    pub(crate) fn operand(&mut self, operand: &Operand, location: Location) -> Lvalue {
        match operand {
            Operand::Value(value) => Lvalue { text: self.value(*value), ty: self.value_type(*value) },
            Operand::Place(place) => self.place(place, location),
        }
    }

    /// Copies a value of one type, or `bytes` of any bound to any other.
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

    /// Whether two values of one type are equal by content; the left one may have the environment's form.
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
                    View::Environment => a.text.clone(),
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

    /// Copies an edge's arguments to the target's parameters, as one parallel assignment.
    pub(crate) fn edge(&mut self, edge: &Edge) {
        self.edge_between(edge, self.promoting_loop(), self.promoting_loop());
    }

    /// The same where one loop holds the arguments and another one, or none, the parameters.
    pub(crate) fn edge_between(&mut self, edge: &Edge, from: Option<usize>, to: Option<usize>) {
        let parameters = &self.body().blocks[edge.to.0 as usize].parameters;
        let targets: Vec<(String, TypeId)> = self
            .in_loop(to, |code| parameters.iter().map(|value| (code.value(*value), code.value_type(*value))).collect());
        let sources: Vec<String> =
            self.in_loop(from, |code| edge.arguments.iter().map(|value| code.value(*value)).collect());
        self.move_texts(targets.into_iter().zip(sources).map(|((to, ty), from)| (to, from, ty)).collect());
    }

    /// Assigns values in parallel; each pair is target and source.
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
