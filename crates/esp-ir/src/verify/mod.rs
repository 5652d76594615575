//! The verifier of the flow IR. Its rules: ids exist, values are defined once and before they are used, operands and
//! places have the types that their instruction requires, waits and regions are closed. The engines execute a verified
//! program without panics. Finds every violation, not only the first.

mod flow;
mod paths;
mod types;
mod waits;

use crate::ir::{
    BlockId, Body, Constant, Function, IntType, Literal, Location, Process, ProcessId, Program, Type, TypeId, Value,
};
use crate::text::location_text;
use crate::text::type_name;
use crate::typing::is_value;
use std::collections::HashMap;
use std::fmt;

/// A rule that a program breaks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VerifyError {
    /// The process or function; none for the program's items.
    pub body: Option<String>,
    /// The block.
    pub block: Option<BlockId>,
    /// The source location, if the code has one.
    pub location: Location,
    /// The message.
    pub message: String,
}

impl VerifyError {
    /// The error as one line.
    pub fn text(&self, program: &Program) -> String {
        let mut text = String::new();
        if let Some(body) = &self.body {
            text.push_str(body);
        }
        if let Some(block) = self.block {
            text.push_str(&format!(", block{}", block.0));
        }
        let location = location_text(program, self.location);
        if !location.is_empty() {
            text.push_str(&format!(" ({location})"));
        }
        if text.is_empty() { self.message.clone() } else { format!("{text}: {}", self.message) }
    }
}

/// The error without the names of files, which are the program's: [`VerifyError::text`] has them.
impl fmt::Display for VerifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(body) = &self.body {
            write!(f, "{body}")?;
        }
        if let Some(block) = self.block {
            write!(f, ", block{}", block.0)?;
        }
        if self.body.is_some() || self.block.is_some() {
            write!(f, ": ")?;
        }
        write!(f, "{}", self.message)
    }
}

impl std::error::Error for VerifyError {}

/// Every violated rule; none if the program is well-formed.
pub fn verify(program: &Program) -> Vec<VerifyError> {
    let mut errors = Vec::new();
    items(program, &mut errors);
    if errors.is_empty() {
        paths::paths(program, &mut errors);
    }
    if !errors.is_empty() {
        return errors;
    }
    for function in &program.functions {
        Verifier::new(program, Owner::Function(function), &function.body, &mut errors).run();
    }
    for process in &program.processes {
        Verifier::new(program, Owner::Process(process), &process.body, &mut errors).run();
    }
    errors
}

/// Items refer only to items that exist.
fn items(program: &Program, errors: &mut Vec<VerifyError>) {
    let mut error = |message: String| {
        errors.push(VerifyError { body: None, block: None, location: Location::default(), message });
    };
    let known = |ty: TypeId| (ty.0 as usize) < program.types.types().len();
    for (index, Constant { name, ty, content }) in program.constants.iter().enumerate() {
        if !known(*ty) || !is_value_of(program, *ty, content) {
            error(format!("the value of c{index} (`{name}`) is not of its type"));
        }
    }
    for channel in &program.channels {
        if !channel.payload.iter().all(|ty| known(*ty)) {
            error(format!("channel `{}` carries a type that does not exist", channel.name));
        }
    }
    for interface in &program.interfaces {
        if interface.channel.0 as usize >= program.channels.len() {
            error(format!("interface `{}` is of a channel that does not exist", interface.name));
        }
    }
    for pool in program.types.pools() {
        if !known(pool.content) || pool.capacity == 0 {
            error(format!("pool `{}` has no objects", pool.name));
        }
    }
    for process in &program.processes {
        let sites = process.sites.iter().filter(|site| site.channel.0 as usize >= program.channels.len());
        for _ in sites {
            error(format!("`{}` uses a channel that does not exist", process.name));
        }
        if !process.operations.is_sorted_by(|(earlier, _), (later, _)| earlier < later) {
            error(format!("the operations of `{}` are not in order of text", process.name));
        }
        if process.replicas == 0 || (!process.replicated && process.replicas != 1) {
            error(format!("`{}` has {} instances", process.name, process.replicas));
        }
    }
}

/// Whether a literal is a value of a type, one without references.
fn is_value_of(program: &Program, ty: TypeId, literal: &Literal) -> bool {
    match (program.types.get(ty), literal) {
        (Type::Int(int), Literal::Scalar(number)) => (IntType::min(*int)..=IntType::max(*int)).contains(number),
        (Type::Bool, Literal::Scalar(number)) => (0..=1).contains(number),
        (Type::Pid(_), Literal::Scalar(number)) => (0..i128::from(program.instance_count())).contains(number),
        (Type::Bytes { bound }, Literal::Bytes(bytes)) => bytes.len() <= *bound as usize,
        (Type::Array { length, element }, Literal::Parts(parts)) => {
            parts.len() == *length as usize && parts.iter().all(|part| is_value_of(program, *element, part))
        }
        (Type::Array { element, .. }, Literal::Repeat(part)) => is_value_of(program, *element, part),
        (Type::Record(id), Literal::Parts(values)) => {
            let parts = &program.types.aggregate(*id).parts;
            parts.len() == values.len()
                && parts.iter().zip(values).all(|((_, ty), value)| ty.is_some_and(|ty| is_value_of(program, ty, value)))
        }
        (Type::Union(id), Literal::Tagged(tag, payload)) => {
            match (program.types.aggregate(*id).parts.get(*tag as usize), payload) {
                (Some((_, Some(ty))), Some(payload)) => is_value_of(program, *ty, payload),
                (Some((_, None)), None) => true,
                (Some(_) | None, Some(_) | None) => false,
            }
        }
        (
            Type::Error
            | Type::Int(_)
            | Type::Bool
            | Type::Bytes { .. }
            | Type::Pid(_)
            | Type::Array { .. }
            | Type::Record(_)
            | Type::Union(_)
            | Type::Boxed(_),
            _,
        ) => false,
    }
}

/// The owner of a body.
#[derive(Clone, Copy)]
enum Owner<'a> {
    Function(&'a Function),
    Process(&'a Process),
}

struct Verifier<'a> {
    program: &'a Program,
    owner: Owner<'a>,
    body: &'a Body,
    errors: &'a mut Vec<VerifyError>,
    /// The current position.
    block: Option<BlockId>,
    location: Location,
    /// The live values at the start of each block, of processes that fast paths resume.
    live: HashMap<ProcessId, Vec<Vec<u32>>>,
}

impl<'a> Verifier<'a> {
    fn new(program: &'a Program, owner: Owner<'a>, body: &'a Body, errors: &'a mut Vec<VerifyError>) -> Verifier<'a> {
        let (block, location, live) = (None, Location::default(), HashMap::new());
        Verifier { program, owner, body, errors, block, location, live }
    }

    fn run(mut self) {
        if self.body.blocks.is_empty() {
            return self.error("there is no entry block");
        }
        let before = self.errors.len();
        self.ids();
        // Later checks follow ids, so that all of them have to exist.
        if self.errors.len() > before {
            return;
        }
        self.entry();
        self.types();
        self.waits();
        if self.errors.len() == before {
            self.flow();
        }
    }

    fn error(&mut self, message: impl Into<String>) {
        let body = match self.owner {
            Owner::Function(function) => format!("function `{}`", function.name),
            Owner::Process(process) => format!("process `{}`", process.name),
        };
        self.errors.push(VerifyError {
            body: Some(body),
            block: self.block,
            location: self.location,
            message: message.into(),
        });
    }

    fn ty(&self, value: Value) -> TypeId {
        self.body.values[value.0 as usize].ty
    }

    fn name(&self, ty: TypeId) -> String {
        format!("`{}`", type_name(self.program, ty))
    }

    /// The entry block takes what a function's callers pass in values, and a process's nothing.
    fn entry(&mut self) {
        self.block = Some(BlockId(0));
        let types = &self.program.types;
        let parameters = &self.body.blocks[0].parameters;
        let wanted: Vec<TypeId> = match self.owner {
            Owner::Function(function) => {
                function.parameters.iter().copied().filter(|ty| is_value(types, *ty)).collect()
            }
            Owner::Process(_) => Vec::new(),
        };
        let given: Vec<TypeId> = parameters.iter().map(|value| self.ty(*value)).collect();
        if given != wanted {
            self.error(format!("the entry block has {} parameters of other types", given.len()));
        }
        if let Owner::Function(function) = self.owner {
            let flat: Vec<TypeId> = function.parameters.iter().copied().filter(|ty| !is_value(types, *ty)).collect();
            let slots: Vec<TypeId> = self.body.slots.iter().map(|slot| slot.ty).take(flat.len()).collect();
            if slots != flat {
                self.error("the first slots are not the aggregate parameters");
            }
        }
        self.block = None;
    }

    /// Whether a value of type `from` is assignable to type `to`: the types are equal, or `from` is a `pid` of fewer
    /// processes.
    fn is_assignable(&self, from: TypeId, to: TypeId) -> bool {
        match (self.program.types.get(from), self.program.types.get(to)) {
            (Type::Pid(from), Type::Pid(to)) => from.iter().all(|process| to.contains(process)),
            (
                Type::Error
                | Type::Int(_)
                | Type::Bool
                | Type::Bytes { .. }
                | Type::Pid(_)
                | Type::Array { .. }
                | Type::Record(_)
                | Type::Union(_)
                | Type::Boxed(_),
                _,
            ) => from == to,
        }
    }
}
