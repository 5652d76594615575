//! Text of instructions: straight-line C of a process, a region or a pure function. Knows nothing of waiting and
//! scheduling.

use super::helpers::Helper;
use super::names::c_string;
use super::values::Lvalue;
use super::writer::{Writer, line};
use crate::layout::View;
use quaject_esp_ir::ir::*;
use std::fmt::Write as _;

impl Writer<'_, '_> {
    /// Writes one instruction.
    pub(crate) fn instruction(&mut self, instruction: &Instruction) {
        let at = instruction.location;
        let result = instruction.result;
        match &instruction.op {
            Op::Constant(_) | Op::OwnId | Op::Mark(_) | Op::Predicate(..) => return,
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
            | Op::Deadline { .. }
            | Op::Retain(_)
            | Op::Release(_) => self.mark(at),
        }
        let define = |code: &mut Self, text: &str| {
            let target = code.value(result.expect("the verifier has checked that this defines a value"));
            line!(code, "{target} = {text};");
        };
        match &instruction.op {
            Op::Constant(_) | Op::OwnId | Op::Mark(_) | Op::Predicate(..) => {}
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
                    format!("{} != {}", self.value(*a), self.constant(0, self.value_type(*a)))
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
            Op::Copy { .. } if self.is_noop_copy(&instruction.op) => {}
            Op::Copy { to, from } => {
                let from = self.place(from, at);
                let to = self.place(to, at);
                self.copy(&to, &from, at);
            }
            Op::SetBytes(place, _) if self.is_literal(place) => {}
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
                self.block("{", |code| {
                    code.line("uint32_t n_;");
                    code.block(&format!("for (n_ = 0; n_ < {length}u; n_++) {{"), |code| {
                        let each = Lvalue { text: format!("{}.at[n_]", to.text), ty: *element };
                        code.copy(&each, &from, at);
                    });
                });
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
                let part = self.check_number_range(&from, *offset, bits / 8, at);
                let text = format!(
                    "(uint{bits}_t)esp_load_{}({}.{part} + {}, {})",
                    order_name(*order),
                    from.text,
                    self.index(*offset),
                    bits / 8
                );
                define(self, &text);
            }
            Op::StoreNumber { to, offset, bits, order, value } => {
                let to = self.place(to, at);
                let part = self.check_number_range(&to, *offset, bits / 8, at);
                line!(
                    self,
                    "esp_store_{}({}.{part} + {}, {}, {});",
                    order_name(*order),
                    to.text,
                    self.index(*offset),
                    bits / 8,
                    self.value(*value)
                );
            }
            Op::LoadBits { from, offset, field } => {
                let from = self.place(from, at);
                self.check_bytes_range(&from, *offset, field.layout_bytes, at);
                let result = result.expect("a load defines a value");
                let text =
                    format!("({}){}", self.c_type(self.value_type(result)), self.bits(&from, *offset, *field, None));
                define(self, &text);
            }
            Op::StoreBits { to, offset, field, value } => {
                let to = self.place(to, at);
                self.check_bytes_range(&to, *offset, field.layout_bytes, at);
                if self.checked() && field.width_bits < 64 {
                    let bad = format!("(uint64_t){} >> {} != 0u", self.value(*value), field.width_bits);
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
                let text = format!("t->{}.count[{}] == 1u", self.plan.pools[pool.0 as usize], self.value(*value));
                define(self, &text);
            }
            Op::FreeObjects(pool) => {
                define(self, &format!("(int32_t)t->{}.free", self.plan.pools[pool.0 as usize]));
            }
            Op::Deadline { amount, unit_ns } => {
                let amount = self.amount(*amount);
                define(self, &format!("esp_deadline(now, {amount}, INT64_C({unit_ns}))"));
            }
            Op::Retain(operand) => {
                let value = self.operand(operand, at);
                self.check_counted(operand, at);
                self.count(Helper::Retain, &value);
            }
            Op::Release(operand) => {
                let value = self.operand(operand, at);
                self.check_counted(operand, at);
                self.count(Helper::Release, &value);
            }
        }
    }

    /// In manual memory, checks that an object has a count before one is added or removed.
    fn check_counted(&mut self, operand: &Operand, location: Location) {
        if let (true, Operand::Value(value)) = (self.manual(), operand)
            && let Type::Boxed(pool) = self.types().get(self.value_type(*value))
        {
            self.count_check(*value, *pool, location);
        }
    }

    /// Takes an object with count 1.
    pub(crate) fn allocate(&mut self, pool: PoolId, target: &str, location: Location) {
        let name = &self.plan.pools[pool.0 as usize];
        let bad = format!("t->{name}.free == 0u");
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

    /// Checks that this many bytes from the offset on are inside `bytes` or an array of them; returns the C name of the
    /// data.
    fn check_number_range(&mut self, of: &Lvalue, offset: Value, bytes: u32, at: Location) -> &'static str {
        match self.types().get(of.ty) {
            Type::Array { length, .. } => {
                let length = *length;
                let bad = match length.checked_sub(bytes) {
                    Some(last) => format!("{} > {last}u", self.index(offset)),
                    None => "1".to_string(),
                };
                self.check(&bad, Fault::Bounds, at);
                "at"
            }
            _ => {
                self.check_bytes_range(of, offset, bytes, at);
                "data"
            }
        }
    }

    /// Checks that this many bytes from the offset on are inside `bytes`.
    fn check_bytes_range(&mut self, of: &Lvalue, offset: Value, bytes: u32, at: Location) {
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
        let is_aligned = field.offset_bits.is_multiple_of(8) && [8, 16, 32, 64].contains(&field.width_bits);
        let base = format!("{}.data + {}", of.text, self.index(offset));
        let verb = if value.is_some() { "store" } else { "load" };
        let tail = value.map(|value| format!(", {value}")).unwrap_or_default();
        if is_aligned {
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
            let address = if self.is_passed_by_value(value.ty) { "" } else { "&" };
            write!(list, ", {address}{}", value.text).expect("writing to a string does not fail");
        }
        let name = &self.plan.functions[function.0 as usize].name;
        let result_type = self.plan.program.functions[function.0 as usize].result;
        // The function does not know for which member and for which channel it is called.
        let channel = self.channel_at(at);
        let call = match (at.member, channel) {
            (Some(member), _) => Some(self.plan.channels.len() + 1 + self.faults.call(member, channel)),
            (None, Some(channel)) => Some(channel.0 as usize + 1),
            (None, None) => None,
        };
        let raise = match call {
            Some(call) => self.raise_number(&format!("fault_ | UINT32_C({call}) << FAULT_CALL")),
            None => self.raise_number("fault_"),
        };
        self.open("{");
        match to {
            Some(place) => {
                let to = self.place(place, at);
                line!(self, "uint32_t fault_ = {name}({list}, &{});", to.text);
                line!(self, "if (ESP_UNLIKELY(fault_ != 0u)) {raise}");
            }
            None => {
                line!(self, "{} result_;", self.c_type(result_type));
                line!(self, "uint32_t fault_ = {name}({list}, &result_);");
                line!(self, "if (ESP_UNLIKELY(fault_ != 0u)) {raise}");
                match result {
                    Some(result) => line!(self, "{} = result_;", self.value(result)),
                    None => line!(self, "(void)result_;"),
                }
            }
        }
        self.close("}");
    }
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
