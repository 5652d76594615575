//! The codes of diagnostics about ticks, `T0001` to `T0012`, and their explanations.

use quaject_diagnostic::{Explanations, Severity};

/// The explanation of each code.
pub const EXPLANATIONS: Explanations = Explanations::new(include_str!("explanations.md"));

/// The explanations of the errors of the run-time library, whose messages begin with a place and a code.
pub const RUNTIME_EXPLANATIONS: Explanations = Explanations::new(include_str!("runtime/explanations.md"));

/// What is wrong with the code that a program generates. The run-time library reports it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum RuntimeCode {
    /// A jump to a label without a place.
    UnplacedLabel,
    /// A label in two places.
    PlacedTwice,
    /// A variable of a function that has returned.
    DeadFrame,
    /// The system gives no memory for code.
    NoCodeMemory,
    /// A function is too long.
    TooLong,
    /// A vspec of another function.
    ForeignVspec,
    /// Parameters that do not fit together.
    Parameters,
    /// A label, argument list or code where another of them is needed.
    WrongKind,
    /// `free_code` of what is no generated function.
    NotGenerated,
    /// `return` without a value.
    NoResult,
    /// More arguments or nested nodes than the generator takes.
    Limit,
}

impl RuntimeCode {
    /// All codes, in the order of their names.
    pub const ALL: [RuntimeCode; 11] = [
        RuntimeCode::UnplacedLabel,
        RuntimeCode::PlacedTwice,
        RuntimeCode::DeadFrame,
        RuntimeCode::NoCodeMemory,
        RuntimeCode::TooLong,
        RuntimeCode::ForeignVspec,
        RuntimeCode::Parameters,
        RuntimeCode::WrongKind,
        RuntimeCode::NotGenerated,
        RuntimeCode::NoResult,
        RuntimeCode::Limit,
    ];

    /// The name, as messages have it.
    pub fn name(self) -> &'static str {
        match self {
            RuntimeCode::UnplacedLabel => "T0101",
            RuntimeCode::PlacedTwice => "T0102",
            RuntimeCode::DeadFrame => "T0103",
            RuntimeCode::NoCodeMemory => "T0104",
            RuntimeCode::TooLong => "T0105",
            RuntimeCode::ForeignVspec => "T0106",
            RuntimeCode::Parameters => "T0107",
            RuntimeCode::WrongKind => "T0108",
            RuntimeCode::NotGenerated => "T0109",
            RuntimeCode::NoResult => "T0110",
            RuntimeCode::Limit => "T0111",
        }
    }
}

/// What is wrong with a tick.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Code {
    /// `$`, `@` or a special function of ticks is outside of a tick expression.
    Outside,
    /// A tick expression is within another one.
    NestedTick,
    /// `$` of a variable that has a value only when the generated code runs.
    DynamicConstant,
    /// A construct of C that ticks do not support.
    Unsupported,
    /// A tick that is no C.
    Syntax,
    /// `break` or `continue` outside of a loop or `switch` of the tick.
    NoLoop,
    /// The value of a vspec is used in static code.
    VspecValue,
    /// A special function with wrong arguments.
    Special,
    /// A bit-field in a tick.
    BitField,
    /// Constructs are nested too deeply.
    TooDeep,
    /// The C compiler refuses the program: most often, a type error.
    CompilerError,
    /// A warning of the C compiler.
    CompilerWarning,
}

impl quaject_diagnostic::Code for Code {
    fn name(self) -> &'static str {
        match self {
            Code::Outside => "T0001",
            Code::NestedTick => "T0002",
            Code::DynamicConstant => "T0003",
            Code::Unsupported => "T0004",
            Code::Syntax => "T0005",
            Code::NoLoop => "T0006",
            Code::VspecValue => "T0007",
            Code::Special => "T0008",
            Code::BitField => "T0009",
            Code::TooDeep => "T0010",
            Code::CompilerError => "T0011",
            Code::CompilerWarning => "T0012",
        }
    }

    fn severity(self) -> Severity {
        match self {
            Code::CompilerWarning => Severity::Warning,
            Code::Outside
            | Code::NestedTick
            | Code::DynamicConstant
            | Code::Unsupported
            | Code::Syntax
            | Code::NoLoop
            | Code::VspecValue
            | Code::Special
            | Code::BitField
            | Code::TooDeep
            | Code::CompilerError => Severity::Error,
        }
    }
}
