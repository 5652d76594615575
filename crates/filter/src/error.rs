//! The errors of filters: each has a code, a cause, a help text, and a location if there is one.

use quaject_diagnostic::Explanations;
use std::fmt;

/// The explanation of each code of filters and rules, `F0001` to `F0108`.
pub const EXPLANATIONS: Explanations = Explanations::new(include_str!("explanations.md"));

/// Why a filter, or its insertion or removal, is an error.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Error {
    /// An instruction of a program is wrong.
    Bytecode {
        /// Its number, from zero.
        at: usize,
        /// The cause.
        why: &'static str,
    },
    /// A filter in text is wrong.
    Text {
        /// Its line, from one.
        line: usize,
        /// The column, in characters from one.
        column: usize,
        /// The cause.
        why: String,
    },
    /// A field is wider than four bytes, or has none.
    Width(u32),
    /// An expression has more alternatives, or more tests in them, than the limits allow.
    Alternatives(usize),
    /// There is no such filter.
    Unknown(u32),
    /// There are as many filters as there are numbers.
    Full,
    /// A number that moves a base is shifted by more than 31 bits.
    Shift(i8),
}

impl Error {
    /// The code of the error, such as `F0001`.
    pub fn code(&self) -> &'static str {
        match self {
            Error::Bytecode { .. } => "F0001",
            Error::Text { .. } => "F0002",
            Error::Width(_) => "F0003",
            Error::Alternatives(_) => "F0004",
            Error::Unknown(_) => "F0005",
            Error::Full => "F0006",
            Error::Shift(_) => "F0007",
        }
    }

    /// The help text.
    pub fn help(&self) -> &'static str {
        match self {
            Error::Bytecode { .. } => "programs that `tcpdump -ddd` prints are valid",
            Error::Text { .. } => "the grammar is in the book's chapter on filters",
            Error::Width(_) => "fields have 1, 2, 3 or 4 bytes; test longer ones in parts",
            Error::Alternatives(_) => "insert the alternatives as filters of their own",
            Error::Unknown(_) => "a filter can be removed once, by the number its insertion gave",
            Error::Full => "remove filters that are not needed any more",
            Error::Shift(_) => "shift by -31 to 31 bits; headers give their length in words of 4 or 8 bytes",
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.code())?;
        match self {
            Error::Bytecode { at, why } => write!(f, "instruction {at}: {why}"),
            Error::Text { line, column, why } => write!(f, "{line}:{column}: {why}"),
            Error::Width(bytes) => write!(f, "a field of {bytes} bytes"),
            Error::Alternatives(count) => {
                write!(f, "an expression of more than {count} alternatives, or with too many tests in them")
            }
            Error::Unknown(id) => write!(f, "there is no filter {id}"),
            Error::Full => write!(f, "there are as many filters as there are numbers"),
            Error::Shift(bits) => write!(f, "a shift by {bits} bits"),
        }
    }
}

impl std::error::Error for Error {}
