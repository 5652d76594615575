//! What the bodies of one random program share: variables in scope, functions, procedures, constants. Makes no text.

use super::types::{Additions, Ty, Types};
use fastrand::Rng;

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
    /// Replaces it as a whole: it is a variable.
    Replaces,
    /// Assigns it before it reads it: it is a variable, perhaps one without a value or a type.
    Assigns,
}

/// The direction in which a procedure or a template uses a channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// It sends.
    Out,
    /// It receives.
    In,
}

/// A procedure of the program that communicates: once on each of its channels, in this order.
#[derive(Clone, Debug)]
pub struct Called {
    /// Its name, its other parameters and its result.
    pub procedure: Procedure,
    /// Its channels, which are its first parameters.
    pub channels: Vec<(Direction, Vec<Ty>)>,
    /// Whether what it does depends on the time.
    pub timing: Timing,
}

/// Whether the time is observable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Timing {
    /// It is not.
    Independent,
    /// It can be.
    Observed,
}

/// A process with parameters: it answers each message of its first channel on its second one.
#[derive(Clone, Debug)]
pub struct Template {
    /// Its name.
    pub name: String,
    /// The type of a question.
    pub question: Ty,
    /// The type of an answer.
    pub answer: Ty,
    /// The types of its values.
    pub values: Vec<Ty>,
}

/// A process of a module that answers on its channels.
#[derive(Clone, Debug)]
pub struct Service {
    /// The channel of questions.
    pub ask: String,
    /// The channel of answers.
    pub reply: String,
    /// The type of a question.
    pub question: Ty,
    /// The type of an answer.
    pub answer: Ty,
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
    /// Constant integers between 1 and 9: name, value.
    pub limits: Vec<(String, i128)>,
    /// Layouts: widths of fields.
    pub layouts: Vec<Vec<u32>>,
    /// Extern functions with effects, and procedures that do not communicate.
    pub procedures: Vec<Procedure>,
    /// Procedures that communicate.
    pub called: Vec<Called>,
    /// Processes with parameters.
    pub templates: Vec<Template>,
    /// Processes of modules that nothing uses yet.
    pub services: Vec<Service>,
    /// The name of the module `std:format`, if it is imported.
    pub format: Option<String>,
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

/// What a `return` in a body needs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Return {
    /// There is none: a process.
    Never,
    /// Nothing: a procedure without a result.
    Empty,
    /// A value of the type.
    Value(Ty),
}

/// The effects that are allowed in a body.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Anything.
    Process,
    /// None: a pure function.
    Function,
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

impl Shared {
    /// Whether an addition comes next: one of `rate` times, if the program has them.
    pub fn adds(&self, rng: &mut Rng, rate: u32) -> bool {
        self.types.additions == Additions::On && rng.u32(0..rate) == 0
    }

    /// The names of two constants of increasing values, sometimes.
    pub fn range(&self, rng: &mut Rng) -> Option<(&str, &str)> {
        let pairs = self.limits.iter().flat_map(|low| self.limits.iter().map(move |high| (low, high)));
        let increasing: Vec<_> = pairs.filter(|(low, high)| low.1 < high.1).collect();
        let (low, high) = rng.choice(increasing)?;
        Some((self.types.local(&low.0), self.types.local(&high.0)))
    }
}
