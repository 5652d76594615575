//! Programs: channels, interfaces, functions and processes.

use crate::ir::body::Body;
use crate::ir::fast_path::FastPath;
use crate::ir::ids::Location;
use crate::ir::wait::Pattern;
use quaject_esp_syntax::hir::{Boundary, ChannelId, Direction, MemoryMode, Mutability, Policy, Purity, Sharing};
use quaject_esp_syntax::standard;
use quaject_esp_syntax::types::{ProcessId, TypeId, TypeTable};
use rustc_hash::FxHashMap;
use smol_str::SmolStr;

/// A program.
#[derive(Clone, Debug)]
pub struct Program {
    /// Names of the source files. Those of the texts of expanded calls follow, a name for each call.
    pub files: Vec<String>,
    /// The expanded calls: those of the last files.
    pub calls: Vec<Call>,
    /// Every type, and the pools.
    pub types: TypeTable,
    /// How reference counts are released. With `Manual`, the use of an object with count 0 faults `memory`.
    pub memory: MemoryMode,
    /// Constants that are stored once and read in place, by id.
    pub constants: Vec<Constant>,
    /// Channels.
    pub channels: Vec<Channel>,
    /// C interfaces.
    pub interfaces: Vec<Interface>,
    /// Extern functions.
    pub externs: Vec<Extern>,
    /// Pure functions.
    pub functions: Vec<Function>,
    /// Processes, in order of text.
    pub processes: Vec<Process>,
    /// Fast paths, whose code is part of their first process.
    pub paths: Vec<FastPath>,
    /// Which instance runs next when a receiver that a rendezvous has resumed blocks again.
    pub hand_off: HandOff,
    /// The messages of assertions, by their location.
    pub assert_messages: Vec<(Location, SmolStr)>,
}

impl Program {
    /// The message of the assertion at a location.
    pub fn assert_message(&self, location: Location) -> Option<&str> {
        let place = |location: Location| (location.file, location.line, location.column);
        let found = self.assert_messages.iter().find(|(other, _)| place(*other) == place(location));
        found.map(|(_, message)| message.as_str())
    }

    /// The call by whose expansion the code at a location came to be.
    pub fn call_of(&self, location: Location) -> Option<&Call> {
        let written = self.files.len().checked_sub(self.calls.len())?;
        self.calls.get(usize::from(location.file).checked_sub(written)?)
    }

    /// By the number of a file or an expansion: that of the first file with the same text. None for a standard module,
    /// of which a program uses a part: its lines are not counted.
    pub fn files_of_lines(&self) -> Vec<Option<u16>> {
        let mut numbers: FxHashMap<&str, u16> = FxHashMap::default();
        let files = self.files.iter().enumerate().map(|(number, name)| {
            let first = *numbers.entry(name.as_str()).or_insert(number as u16);
            (!name.starts_with(standard::PREFIX)).then_some(first)
        });
        files.collect()
    }

    /// Names of the source files, each once.
    pub fn written_files(&self) -> &[String] {
        &self.files[..self.files.len().saturating_sub(self.calls.len())]
    }
}

/// An expanded call of a procedure, or the instantiation of a template.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Call {
    /// What is called.
    pub callee: SmolStr,
    /// Where.
    pub location: Location,
}

/// Which instance runs next when a receiver that a rendezvous has resumed blocks again. The semantics allow any order;
/// back ends may fall back to the queue.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum HandOff {
    /// The first instance of the ready list, to which the sender was appended: the order of the reference.
    #[default]
    Queued,
    /// The sender, as if it had called the receiver as a function.
    Direct,
}

/// A constant that is stored once and read in place.
#[derive(Clone, Debug)]
pub struct Constant {
    /// Its name; two constants of different scopes may share one.
    pub name: SmolStr,
    /// Its type, flat and without references.
    pub ty: TypeId,
    /// Its value.
    pub content: Literal,
}

/// A value of a type without references.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Literal {
    /// An integer, `bool` (0, 1) or `pid` (instance number).
    Scalar(i128),
    /// `bytes` of this length.
    Bytes(Vec<u8>),
    /// All fields of a record, or all elements of an array, in order.
    Parts(Vec<Literal>),
    /// As many copies as the array's length.
    Repeat(Box<Literal>),
    /// A union's tag and payload.
    Tagged(u32, Option<Box<Literal>>),
}

/// A channel.
#[derive(Clone, Debug)]
pub struct Channel {
    /// Its name.
    pub name: SmolStr,
    /// Types of the values of one message.
    pub payload: Vec<TypeId>,
    /// The name of each of them, if it has one.
    pub value_names: Vec<Option<SmolStr>>,
    /// Whether the environment is at one end.
    pub boundary: Boundary,
    /// Whether a value determines its receiver.
    pub sharing: Sharing,
    /// Which partner continues after a rendezvous.
    pub policy: Policy,
    /// The default driver's text.
    pub driver: Option<String>,
    /// Its declaration.
    pub location: Location,
}

/// A C interface of an external channel; its patterns bind only parameters (`Bind::Parameter`, `Bind::Slot` into
/// `slots`), which become the C parameters in order.
#[derive(Clone, Debug)]
pub struct Interface {
    /// C prefix.
    pub name: SmolStr,
    /// The channel.
    pub channel: ChannelId,
    /// One C function each.
    pub entries: Vec<InterfaceEntry>,
}

/// One entry of a C interface.
#[derive(Clone, Debug)]
pub struct InterfaceEntry {
    /// C suffix.
    pub name: SmolStr,
    /// Name and type of the C parameters, in order of text.
    pub parameters: Vec<(SmolStr, TypeId)>,
    /// One pattern per value of the channel; `Bind::Parameter(k)` is parameter k, whatever its type.
    pub patterns: Vec<Pattern>,
}

/// An extern function.
#[derive(Clone, Debug)]
pub struct Extern {
    /// Its C name.
    pub name: SmolStr,
    /// Whether it has effects, which are then visible.
    pub purity: Purity,
    /// Parameter types; a mutable one may be written by the function.
    pub parameters: Vec<(TypeId, Mutability)>,
    /// Result; none for a procedure.
    pub result: Option<TypeId>,
}

/// A pure function.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its name.
    pub name: SmolStr,
    /// How its parameters arrive, in order: scalars and references as values (the entry block's parameters, in
    /// order), flat aggregates in slots (the first slots, in order).
    pub parameters: Vec<TypeId>,
    /// The result's type.
    pub result: TypeId,
    /// Its code; every path ends in `Terminator::Return` or a fault.
    pub body: Body,
    /// Its declaration.
    pub location: Location,
}

/// A process.
#[derive(Clone, Debug)]
pub struct Process {
    /// Its name.
    pub name: SmolStr,
    /// The number of instances.
    pub replicas: u32,
    /// Whether replicas were written, so that instances are named `P[k]`.
    pub replicated: bool,
    /// Its labels, without `#`.
    pub labels: Vec<SmolStr>,
    /// Its channel operations, in order of text.
    pub sites: Vec<Site>,
    /// Its code; the entry block has no parameters.
    pub body: Body,
    /// Of a fused process: the processes that it replaces.
    pub members: Vec<ProcessId>,
    /// Of a fused process: the locations of its members' operations, payloads, patterns and conditions, in order, each
    /// with the channel that a report of a fault there names.
    pub operations: Vec<(Location, ChannelId)>,
    /// Its declaration.
    pub location: Location,
}

/// A channel operation in a process's text.
#[derive(Clone, Debug)]
pub struct Site {
    /// The channel.
    pub channel: ChannelId,
    /// `in` or `out`.
    pub direction: Direction,
    /// Its place.
    pub location: Location,
}
