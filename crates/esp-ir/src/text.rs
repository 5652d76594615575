//! The text form of the flow IR. It is complete: `read` of the printed program is the same program. The program need
//! not be well-formed.
//!
//! ```text
//!   constant c0 table: array[2] of int = [1, 2]
//!   channel c(int) @0:1:9
//!   process p @0:2:9 {
//!     site0 out c @0:3:3
//!     slot s0 buf: bytes[<=4]
//!   block0:
//!     v0: int = constant 1
//!     jump block1(v0)
//!   block1(v1 n: int):
//!     wait fair
//!       when v2 out site0 c ready(keep v1) -> block2 @0:3:3
//!       observe "n" v1                       a variable of a property
//!   }
//!   process p_q {
//!     members(p, q)                          of a fused process
//!     operation c @0:3:3
//!   block0:
//!     wait fair
//!       in site0 d(p0) -> block1 @0:7:5#1
//!       member 0 at 0 out c(1) @0:3:3        if branch 0 blocks forever, instance 0 waits for instance 1
//!   }
//! ```
//!
//! A location is `@file:line:column`, followed by `#instance` for code of a member of a fused process; generated code
//! has none. Places: `s0.1` is a field, `s0[v1]` an element, `s0[inside v1]` an element whose index is proved in
//! bounds, `s0|2` the payload of tag 2, `*v3.0` a field of the object that v3 refers to, `c0[v1]` an element of a
//! constant. `;` begins a comment.

use crate::ir::*;
use std::collections::HashMap;
use std::fmt::Write as _;

macro_rules! put {
    ($text:expr, $($argument:tt)*) => {
        write!($text, $($argument)*).expect("writing to a string does not fail")
    };
}

/// The program as text.
pub fn print(program: &Program) -> String {
    let mut text = String::from("esp-ir 1\n");
    let printer = Printer { program, aggregates: aggregate_names(&program.types) };
    printer.items(&mut text);
    text
}

/// A type as the text form writes it.
pub fn type_name(program: &Program, ty: TypeId) -> String {
    Printer { program, aggregates: aggregate_names(&program.types) }.ty(ty)
}

/// Names of records and unions: their own where that is unique, else with their number.
fn aggregate_names(types: &TypeTable) -> Vec<String> {
    let mut uses: HashMap<&str, u32> = HashMap::new();
    for aggregate in types.aggregates() {
        *uses.entry(aggregate.name.as_deref().unwrap_or("_")).or_default() += 1;
    }
    let name = |(index, aggregate): (usize, &quaject_esp_syntax::types::Aggregate)| match &aggregate.name {
        Some(name) if uses[name.as_str()] == 1 => name.to_string(),
        Some(name) => format!("{name}.{index}"),
        None => format!("_.{index}"),
    };
    types.aggregates().iter().enumerate().map(name).collect()
}

/// The name of a fault in messages.
pub fn fault_name(fault: Fault) -> &'static str {
    match fault {
        Fault::Assert => "assert",
        Fault::Bounds => "bounds",
        Fault::Div => "div",
        Fault::Overflow => "overflow",
        Fault::Pool => "pool",
        Fault::Range => "range",
        Fault::Memory => "memory",
        Fault::Alt => "alt",
        Fault::Deadlock => "deadlock",
        Fault::Extern => "extern",
    }
}

/// A number with its noun in the singular or plural: `1 state`, `2 processes`.
pub fn counted(count: u64, noun: &str) -> String {
    let ending = match (count, noun.ends_with('s')) {
        (1, _) => "",
        (_, true) => "es",
        (_, false) => "s",
    };
    format!("{count} {noun}{ending}")
}

/// `file:line:column`, or nothing for generated code. For the code of an expanded call, the calls follow, the innermost
/// first.
pub fn location_text(program: &Program, location: Location) -> String {
    let place = |location: Location| match program.files.get(location.file as usize) {
        Some(file) if location.line > 0 => format!("{file}:{}:{}", location.line, location.column),
        Some(_) | None => String::new(),
    };
    let mut text = place(location);
    let mut call = program.call_of(location);
    while let Some(Call { callee, location }) = call {
        text.push_str(&format!(", in `{callee}`, called at {}", place(*location)));
        call = program.call_of(*location);
    }
    text
}

/// Appends a byte string literal: UTF-8 as it is, everything else that is not printable as an escape.
pub fn print_bytes(bytes: &[u8], text: &mut String) {
    text.push('"');
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\n' => text.push_str("\\n"),
                '\r' => text.push_str("\\r"),
                '\t' => text.push_str("\\t"),
                '\0' => text.push_str("\\0"),
                '\\' => text.push_str("\\\\"),
                '"' => text.push_str("\\\""),
                c if c.is_control() => {
                    let mut buffer = [0; 4];
                    for byte in c.encode_utf8(&mut buffer).bytes() {
                        write!(text, "\\x{byte:02x}").expect("writing to a string does not fail");
                    }
                }
                c => text.push(c),
            }
        }
        for byte in chunk.invalid() {
            write!(text, "\\x{byte:02x}").expect("writing to a string does not fail");
        }
    }
    text.push('"');
}

/// The mnemonics of operators.
pub(crate) const BINARY_OPS: [(&str, BinaryOp); 19] = [
    ("add", BinaryOp::Add),
    ("subtract", BinaryOp::Subtract),
    ("multiply", BinaryOp::Multiply),
    ("divide", BinaryOp::Divide),
    ("remainder", BinaryOp::Remainder),
    ("shift_left", BinaryOp::ShiftLeft),
    ("shift_right", BinaryOp::ShiftRight),
    ("and", BinaryOp::BitAnd),
    ("or", BinaryOp::BitOr),
    ("xor", BinaryOp::BitXor),
    ("saturating_add", BinaryOp::SaturatingAdd),
    ("saturating_subtract", BinaryOp::SaturatingSubtract),
    ("saturating_multiply", BinaryOp::SaturatingMultiply),
    ("equal", BinaryOp::Equal),
    ("not_equal", BinaryOp::NotEqual),
    ("less", BinaryOp::Less),
    ("less_equal", BinaryOp::LessEqual),
    ("greater", BinaryOp::Greater),
    ("greater_equal", BinaryOp::GreaterEqual),
];

pub(crate) const UNARY_OPS: [(&str, UnaryOp); 3] =
    [("not", UnaryOp::Not), ("complement", UnaryOp::Complement), ("negate", UnaryOp::Negate)];

pub(crate) const FAULTS: [Fault; 10] = [
    Fault::Assert,
    Fault::Bounds,
    Fault::Div,
    Fault::Overflow,
    Fault::Pool,
    Fault::Range,
    Fault::Memory,
    Fault::Alt,
    Fault::Deadlock,
    Fault::Extern,
];

fn mnemonic<T: PartialEq>(table: &[(&'static str, T)], op: &T) -> &'static str {
    table.iter().find(|(_, other)| other == op).map(|(word, _)| *word).expect("every operator has a mnemonic")
}

struct Printer<'a> {
    program: &'a Program,
    aggregates: Vec<String>,
}

fn quoted(text: &str) -> String {
    let mut out = String::new();
    print_bytes(text.as_bytes(), &mut out);
    out
}

fn location(location: Location) -> String {
    if location == Location::default() {
        return String::new();
    }
    let Location { file, line, column, member } = location;
    let member = member.map(|member| format!("#{}", member.number())).unwrap_or_default();
    format!(" @{file}:{line}:{column}{member}")
}

fn direction(direction: Direction) -> &'static str {
    match direction {
        Direction::In => "in",
        Direction::Out => "out",
    }
}

fn list<T>(items: &[T], each: impl Fn(&T) -> String) -> String {
    items.iter().map(each).collect::<Vec<_>>().join(", ")
}

fn order(order: ByteOrder) -> &'static str {
    match order {
        ByteOrder::Big => "be",
        ByteOrder::Little => "le",
    }
}

fn field(field: BitField) -> String {
    let BitField { layout_bytes, offset_bits, width_bits, order: byte_order } = field;
    format!("{}({layout_bytes}, {offset_bits}, {width_bits})", order(byte_order))
}

fn value(value: &Value) -> String {
    format!("v{}", value.0)
}

fn optional(value: &Option<Value>) -> String {
    value.map_or("_".to_string(), |value| format!("v{}", value.0))
}

fn place(place: &Place) -> String {
    let mut text = match place.base {
        Base::Slot(slot) => format!("s{}", slot.0),
        Base::Object(value) => format!("*v{}", value.0),
        Base::Constant(constant, _) => format!("c{}", constant.0),
    };
    for step in &place.path {
        match step {
            Projection::Field(field) => put!(text, ".{field}"),
            Projection::Element(index) => put!(text, "[v{}]", index.0),
            Projection::Inside(index) => put!(text, "[inside v{}]", index.0),
            Projection::Payload(tag) => put!(text, "|{tag}"),
        }
    }
    text
}

fn operand(operand: &Operand) -> String {
    match operand {
        Operand::Value(value) => format!("v{}", value.0),
        Operand::Place(at) => place(at),
    }
}

fn literal(of: &Literal) -> String {
    match of {
        Literal::Scalar(number) => number.to_string(),
        Literal::Bytes(bytes) => {
            let mut text = String::new();
            print_bytes(bytes, &mut text);
            text
        }
        Literal::Parts(parts) => format!("[{}]", list(parts, literal)),
        Literal::Repeat(part) => format!("fill {}", literal(part)),
        Literal::Tagged(tag, None) => format!("tag {tag}"),
        Literal::Tagged(tag, Some(payload)) => format!("tag {tag} => {}", literal(payload)),
    }
}

fn passed(passed: &Passed) -> String {
    let transfer = match passed.transfer {
        Transfer::Keep => "keep",
        Transfer::Move => "move",
    };
    format!("{transfer} {}", operand(&passed.operand))
}

fn edge(edge: &Edge) -> String {
    if edge.arguments.is_empty() {
        return format!("block{}", edge.to.0);
    }
    format!("block{}({})", edge.to.0, list(&edge.arguments, value))
}

fn resume(resume: &Resume) -> String {
    let values = list(&resume.values, |(own, becomes)| format!("v{} = v{}", own.0, becomes.0));
    format!("block{}({values})", resume.to.0)
}

fn pattern(of: &Pattern) -> String {
    match of {
        Pattern::Any => "_".to_string(),
        Pattern::Bind(Bind::Parameter(number)) => format!("p{number}"),
        Pattern::Bind(Bind::Slot(slot)) => format!("s{}", slot.0),
        Pattern::Constant(value) => value.to_string(),
        Pattern::Bytes(bytes) => {
            let mut text = String::new();
            print_bytes(bytes, &mut text);
            text
        }
        Pattern::OwnId => "@".to_string(),
        Pattern::Equal(value) => format!("== {}", operand(value)),
        Pattern::Tag(tag, None) => format!("tag {tag}"),
        Pattern::Tag(tag, Some(payload)) => format!("tag {tag} => {}", pattern(payload)),
        Pattern::Record(fields) => format!("{{{}}}", list(fields, pattern)),
        Pattern::Array(items) => format!("[{}]", list(items, pattern)),
    }
}

impl Printer<'_> {
    fn ty(&self, ty: TypeId) -> String {
        match self.program.types.get(ty) {
            Type::Error => "error".to_string(),
            Type::Int(int) => int.name().to_string(),
            Type::Bool => "bool".to_string(),
            Type::Bytes { bound } => format!("bytes[<={bound}]"),
            Type::Pid(processes) => {
                format!("pid({})", list(processes, |id| self.program.processes[id.0 as usize].name.to_string()))
            }
            Type::Array { length, element } => format!("array[{length}] of {}", self.ty(*element)),
            Type::Record(id) | Type::Union(id) => self.aggregates[id.0 as usize].clone(),
            Type::Boxed(pool) => self.pool(*pool),
        }
    }

    fn pool(&self, pool: PoolId) -> String {
        format!("^{}", self.program.types.pool(pool).name)
    }

    fn channel(&self, channel: ChannelId) -> &str {
        &self.program.channels[channel.0 as usize].name
    }

    fn items(&self, text: &mut String) {
        let program = self.program;
        put!(
            text,
            "memory {}\n",
            match program.memory {
                MemoryMode::Automatic => "auto",
                MemoryMode::Manual => "manual",
            }
        );
        match program.hand_off {
            HandOff::Queued => {}
            HandOff::Direct => put!(text, "hand_off direct\n"),
        }
        for file in program.written_files() {
            put!(text, "file {}\n", quoted(file));
        }
        for (file, call) in program.files[program.written_files().len()..].iter().zip(&program.calls) {
            put!(text, "call {} of {}{}\n", quoted(file), quoted(&call.callee), location(call.location));
        }
        for (at, message) in &program.assert_messages {
            put!(text, "assert {}{}\n", quoted(message), location(*at));
        }
        let records: Vec<bool> = self.are_records();
        for (index, aggregate) in program.types.aggregates().iter().enumerate() {
            let parts = list(&aggregate.parts, |(name, ty)| match ty {
                Some(ty) => format!("{name}: {}", self.ty(*ty)),
                None => name.to_string(),
            });
            let kind = if records[index] { "record" } else { "union" };
            put!(text, "{kind} {} {{ {parts} }}\n", self.aggregates[index]);
        }
        for (index, pool) in program.types.pools().iter().enumerate() {
            let name = self.pool(PoolId(index as u32));
            put!(text, "pool {name} {} of {}\n", pool.capacity, self.ty(pool.content));
        }
        for (index, Constant { name, ty, content }) in program.constants.iter().enumerate() {
            put!(text, "constant c{index} {name}: {} = {}\n", self.ty(*ty), literal(content));
        }
        program.channels.iter().for_each(|channel| self.channel_item(channel, text));
        program.interfaces.iter().for_each(|interface| self.interface(interface, text));
        program.externs.iter().for_each(|function| self.external(function, text));
        for function in &program.functions {
            let parameters = list(&function.parameters, |ty| self.ty(*ty));
            put!(text, "function {}({parameters}) -> {}", function.name, self.ty(function.result));
            put!(text, "{} {{\n", location(function.location));
            self.body(&function.body, &[], text);
            text.push_str("}\n");
        }
        program.processes.iter().for_each(|process| self.process(process, text));
        for path in &program.paths {
            put!(text, "path {} {} {{\n", path.name, path.trigger);
            for member in &path.members {
                let PathMember { instance, start: (block, branch), values, slots } = member;
                let slots = list(slots, |(own, here)| format!("s{} => s{}", own.0, here.0));
                let values = list(values, value);
                put!(text, "  member {instance} at block{} {branch} values({values}) slots({slots})\n", block.0);
            }
            text.push_str("}\n");
        }
    }

    fn channel_item(&self, channel: &Channel, text: &mut String) {
        put!(text, "channel {}({})", channel.name, list(&channel.payload, |ty| self.ty(*ty)));
        if channel.value_names.iter().any(Option::is_some) {
            put!(text, " names({})", list(&channel.value_names, |name| name.as_deref().unwrap_or("_").to_string()));
        }
        text.push_str(match channel.boundary {
            Boundary::Internal => "",
            Boundary::ToEnvironment => " to_environment",
            Boundary::FromEnvironment => " from_environment",
        });
        text.push_str(match channel.sharing {
            Sharing::Ports => "",
            Sharing::Shared => " shared",
        });
        text.push_str(match channel.policy {
            Policy::Receiver => "",
            Policy::Sender => " policy sender",
            Policy::Queue => " policy queue",
        });
        if let Some(driver) = &channel.driver {
            put!(text, " = {}", quoted(driver));
        }
        put!(text, "{}\n", location(channel.location));
    }

    fn interface(&self, interface: &Interface, text: &mut String) {
        put!(text, "interface {}({}) {{\n", interface.name, self.channel(interface.channel));
        for entry in &interface.entries {
            let parameters = list(&entry.parameters, |(name, ty)| format!("{name}: {}", self.ty(*ty)));
            put!(text, "  {}({parameters}) ({})\n", entry.name, list(&entry.patterns, pattern));
        }
        text.push_str("}\n");
    }

    fn external(&self, function: &Extern, text: &mut String) {
        let purity = match function.purity {
            Purity::Pure => "pure ",
            Purity::Impure => "",
        };
        let parameters = list(&function.parameters, |(ty, mutability)| match mutability {
            Mutability::Mutable => format!("#{}", self.ty(*ty)),
            Mutability::Immutable => self.ty(*ty),
        });
        put!(text, "extern {purity}{}({parameters})", function.name);
        if let Some(ty) = function.result {
            put!(text, " -> {}", self.ty(ty));
        }
        text.push('\n');
    }

    fn process(&self, process: &Process, text: &mut String) {
        let Process { name, replicas, replicated, labels, sites, body, members, operations, location: at } = process;
        put!(text, "process {name}");
        if *replicated {
            put!(text, "[{replicas}]");
        }
        put!(text, "{} {{\n", location(*at));
        for label in labels {
            put!(text, "  label #{label}\n");
        }
        for (index, Site { channel, direction: end, location: at }) in sites.iter().enumerate() {
            put!(text, "  site{index} {} {}{}\n", direction(*end), self.channel(*channel), location(*at));
        }
        if !members.is_empty() {
            let name = |id: &ProcessId| self.program.processes[id.0 as usize].name.to_string();
            put!(text, "  members({})\n", list(members, name));
        }
        for (at, channel) in operations {
            put!(text, "  operation {}{}\n", self.channel(*channel), location(*at));
        }
        self.body(body, labels, text);
        text.push_str("}\n");
    }

    /// Which aggregates are records; one that no type is made of counts as a record.
    fn are_records(&self) -> Vec<bool> {
        let mut records = vec![true; self.program.types.aggregates().len()];
        for ty in self.program.types.types() {
            match ty {
                Type::Union(id) => records[id.0 as usize] = false,
                Type::Error
                | Type::Int(_)
                | Type::Bool
                | Type::Bytes { .. }
                | Type::Pid(_)
                | Type::Array { .. }
                | Type::Record(_)
                | Type::Boxed(_) => {}
            }
        }
        records
    }

    fn body(&self, body: &Body, labels: &[smol_str::SmolStr], text: &mut String) {
        for (index, slot) in body.slots.iter().enumerate() {
            let name = slot.name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
            put!(text, "  slot s{index}{name}: {}\n", self.ty(slot.ty));
        }
        let mut defined = vec![false; body.values.len()];
        for block in &body.blocks {
            let results = block.instructions.iter().filter_map(|instruction| instruction.result);
            for value in block.parameters.iter().copied().chain(results) {
                if let Some(defined) = defined.get_mut(value.0 as usize) {
                    *defined = true;
                }
            }
        }
        for (index, _) in defined.iter().enumerate().filter(|(_, defined)| !**defined) {
            put!(text, "  value {}\n", self.definition(body, Value(index as u32)));
        }
        for (index, block) in body.blocks.iter().enumerate() {
            put!(text, "block{index}");
            if !block.parameters.is_empty() {
                put!(text, "({})", list(&block.parameters, |value| self.definition(body, *value)));
            }
            text.push_str(":\n");
            for instruction in &block.instructions {
                text.push_str("  ");
                if let Some(result) = instruction.result {
                    put!(text, "{} = ", self.definition(body, result));
                }
                self.op(&instruction.op, labels, text);
                put!(text, "{}\n", location(instruction.location));
            }
            text.push_str("  ");
            self.terminator(&block.terminator, block.location, text);
        }
    }

    fn definition(&self, body: &Body, value: Value) -> String {
        let Some(data) = body.values.get(value.0 as usize) else { return format!("v{}: error", value.0) };
        let name = data.name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
        format!("v{}{name}: {}", value.0, self.ty(data.ty))
    }

    fn op(&self, op: &Op, labels: &[smol_str::SmolStr], text: &mut String) {
        let to_place = |to: &Option<Place>| to.as_ref().map(|to| format!(" to {}", place(to))).unwrap_or_default();
        match op {
            Op::Constant(constant) => put!(text, "constant {constant}"),
            Op::Unary(op, a) => put!(text, "{} v{}", mnemonic(&UNARY_OPS, op), a.0),
            Op::Binary(op, a, b) => put!(text, "{} v{}, v{}", mnemonic(&BINARY_OPS, op), a.0, b.0),
            Op::Convert(a) => put!(text, "convert v{}", a.0),
            Op::Load(from) => put!(text, "load {}", place(from)),
            Op::Store(to, a) => put!(text, "store {}, v{}", place(to), a.0),
            Op::Copy { to, from } => put!(text, "copy {}, {}", place(to), place(from)),
            Op::SetBytes(to, bytes) => {
                put!(text, "set_bytes {}, ", place(to));
                print_bytes(bytes, text);
            }
            Op::Fill(to, with) => put!(text, "fill {}, {}", place(to), operand(with)),
            Op::SetTag(to, tag) => put!(text, "set_tag {}, {tag}", place(to)),
            Op::Tag(from) => put!(text, "tag {}", place(from)),
            Op::Length(from) => put!(text, "length {}", place(from)),
            Op::SetLength(to, length) => put!(text, "set_length {}, v{}", place(to), length.0),
            Op::CopySlice { to, from, start, end } => {
                put!(text, "copy_slice {}, {}, {}, {}", place(to), place(from), optional(start), optional(end));
            }
            Op::StoreSlice { to, start, end, from } => {
                put!(text, "store_slice {}, {}, {}, {}", place(to), optional(start), optional(end), place(from));
            }
            Op::Append { to, from } => put!(text, "append {}, {}", place(to), place(from)),
            Op::LoadNumber { from, offset, bits, order: byte_order } => {
                put!(text, "load_number {}({bits}) {}, v{}", order(*byte_order), place(from), offset.0);
            }
            Op::StoreNumber { to, offset, bits, order: byte_order, value } => {
                let byte_order = order(*byte_order);
                put!(text, "store_number {byte_order}({bits}) {}, v{}, v{}", place(to), offset.0, value.0);
            }
            Op::LoadBits { from, offset, field: bits } => {
                put!(text, "load_bits {} {}, v{}", field(*bits), place(from), offset.0);
            }
            Op::StoreBits { to, offset, field: bits, value } => {
                put!(text, "store_bits {} {}, v{}, v{}", field(*bits), place(to), offset.0, value.0);
            }
            Op::Equal(a, b) => put!(text, "same {}, {}", operand(a), operand(b)),
            Op::CallFunction { function, arguments, to } => {
                let name = &self.program.functions[function.0 as usize].name;
                put!(text, "call {name}({}){}", list(arguments, operand), to_place(to));
            }
            Op::CallExtern { function, arguments, to } => {
                let name = &self.program.externs[function.0 as usize].name;
                put!(text, "call_extern {name}({}){}", list(arguments, operand), to_place(to));
            }
            Op::OwnId => text.push_str("own_id"),
            Op::InstanceOf(process, replica) => {
                put!(text, "instance {}, v{}", self.program.processes[process.0 as usize].name, replica.0);
            }
            Op::ReplicaNumber(a) => put!(text, "replica v{}", a.0),
            Op::Allocate(pool) => put!(text, "allocate {}", self.pool(*pool)),
            Op::IsUnique(a) => put!(text, "is_unique v{}", a.0),
            Op::FreeObjects(pool) => put!(text, "free {}", self.pool(*pool)),
            Op::Deadline { amount, unit_ns } => put!(text, "deadline v{} * {unit_ns}", amount.0),
            Op::Retain(a) => put!(text, "retain {}", operand(a)),
            Op::Release(a) => put!(text, "release {}", operand(a)),
            Op::Mark(label) => put!(text, "mark #{}", labels[label.0 as usize]),
            Op::Predicate(number, holds) => put!(text, "test {number}, v{}", holds.0),
        }
    }

    fn terminator(&self, terminator: &Terminator, at: Location, text: &mut String) {
        match terminator {
            Terminator::Jump(to) => put!(text, "jump {}", edge(to)),
            Terminator::Branch { condition, then, otherwise } => {
                put!(text, "branch v{}, {}, {}", condition.0, edge(then), edge(otherwise));
            }
            Terminator::Switch { value, cases, default } => {
                put!(text, "switch v{}", value.0);
                for (case, to) in cases {
                    put!(text, ", {case} => {}", edge(to));
                }
                put!(text, ", else {}", edge(default));
            }
            Terminator::Wait(wait) => {
                self.wait(wait, at, text);
                return;
            }
            Terminator::Yield(to) => put!(text, "yield {}", edge(to)),
            Terminator::Return(value) => put!(text, "return {}", operand(value)),
            Terminator::Result(values) => put!(text, "result({})", list(values, passed)),
            Terminator::Exit(status) => put!(text, "exit v{}", status.0),
            Terminator::End => text.push_str("end"),
            Terminator::Fault(fault) => put!(text, "fault {}", fault_name(*fault)),
            Terminator::Enter(enter) => {
                let (later, otherwise) = (edge(&enter.later), edge(&enter.otherwise));
                put!(text, "enter path{} -> block{}, {later}, {otherwise}", enter.path.0, enter.then.0);
            }
            Terminator::Leave(leave) => {
                put!(text, "leave path{} exit{} {}", leave.path.0, leave.exit, resume(&leave.trigger));
                for (member, at) in &leave.members {
                    put!(text, ", member {member} {}", resume(at));
                }
            }
        }
        put!(text, "{}\n", location(at));
    }

    fn wait(&self, wait: &Wait, at: Location, text: &mut String) {
        let Wait { order, blocking, branches, otherwise, observed, members } = wait;
        text.push_str(match order {
            AltOrder::Fair => "wait fair",
            AltOrder::Priority => "wait priority",
        });
        text.push_str(match blocking {
            Blocking::Deadlock => "",
            Blocking::MayBlockForever => " idle",
        });
        put!(text, "{}\n", location(at));
        for branch in branches {
            text.push_str("    ");
            match branch.guard {
                Guard::Open => {}
                Guard::Value(guard) => put!(text, "when v{} ", guard.0),
                Guard::Region(region) => put!(text, "when block{} ", region.0),
            }
            match &branch.operation {
                Operation::In { site, channel, patterns, condition } => {
                    let channel = self.channel(*channel);
                    put!(text, "in site{} {channel}({})", site.0, list(patterns, pattern));
                    if let Some(region) = condition {
                        put!(text, " if block{}", region.0);
                    }
                }
                Operation::Out { site, channel, payload } => {
                    put!(text, "out site{} {} ", site.0, self.channel(*channel));
                    match payload {
                        Payload::Ready(values) => put!(text, "ready({})", list(values, passed)),
                        Payload::Region(region) => put!(text, "block{}", region.0),
                    }
                }
                Operation::After { amount, unit: TimeUnit::Nanoseconds(unit_ns) } => {
                    put!(text, "after v{} * {unit_ns}", amount.0)
                }
                Operation::After { amount, unit: TimeUnit::Absolute } => put!(text, "until v{}", amount.0),
            }
            put!(text, " -> block{}{}\n", branch.then.0, location(branch.location));
        }
        if let Some(otherwise) = otherwise {
            put!(text, "    else -> block{}\n", otherwise.0);
        }
        for (name, value) in observed {
            put!(text, "    observe {} v{}\n", quoted(name), value.0);
        }
        for (branch, WaitForEdge { instance, location: at, operation, partners }) in members {
            put!(text, "    member {instance} at {branch}");
            if let Some((channel, end)) = operation {
                put!(text, " {} {}", direction(*end), self.channel(*channel));
            }
            put!(text, "({}){}\n", list(partners, u32::to_string), location(*at));
        }
    }
}
