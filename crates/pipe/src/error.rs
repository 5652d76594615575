//! The errors of composing and running pipes, and the codes of diagnostics about pipes in text form. Each has a code
//! and a help text.

use quaject_diagnostic::{Code, Diagnostic, Explanations, Severity};
use std::fmt;

/// The explanation of each code of pipes, `P0001` to `P0301`.
pub const EXPLANATIONS: Explanations = Explanations::new(include_str!("explanations.md"));

/// Why a pipe cannot be composed or run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// More steps than [`MAX_STEPS`](crate::MAX_STEPS).
    TooManySteps(usize),
    /// A repeated key whose length in bytes is not 1, 2, 4 or 8.
    KeyLength(usize),
    /// More steps with a key stream than [`MAX_STREAMS`](crate::MAX_STREAMS).
    TooManyStreams(usize),
    /// Users' steps have more instructions together than [`MAX_PIPE_INSTRUCTIONS`](crate::ir::MAX_PIPE_INSTRUCTIONS).
    TooManyInstructions(usize),
    /// A user's step has elements or numbers of 64 bits; the registers of the machine have 32.
    WideElement,
    /// The target is not as long as the source.
    Target {
        /// Bytes of the source.
        source: usize,
        /// Bytes of the target.
        target: usize,
    },
    /// Source and target overlap without being equal.
    Overlap,
    /// The number of key streams differs from the number of steps that need one.
    Streams {
        /// Steps that need a key stream.
        wanted: usize,
        /// Key streams passed.
        given: usize,
    },
    /// A key stream is shorter than the data.
    StreamLength {
        /// Its index, from 0.
        stream: usize,
        /// Its bytes.
        length: usize,
        /// Bytes of data.
        data: usize,
    },
    /// A piece follows one whose length is no multiple of eight.
    Piece {
        /// Bytes of all pieces before.
        before: u64,
    },
    /// The number of buffers differs from the number that the handler was verified for.
    Buffers {
        /// Buffers that it was verified for.
        wanted: usize,
        /// Buffers passed.
        given: usize,
    },
    /// Generated code could not be written.
    Code(quaject_vcode::Error),
}

/// The kinds of diagnostics about pipes and definitions of steps and handlers in text form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextCode {
    /// A pipe has a step that is unknown or malformed.
    Pipe,
    /// A definition, or an instruction in it, is malformed.
    Definition,
    /// A definition is well-formed, but the verifier rejects it.
    Verification,
}

impl Code for TextCode {
    fn name(self) -> &'static str {
        match self {
            TextCode::Pipe => "P0001",
            TextCode::Definition => "P0002",
            TextCode::Verification => "P0003",
        }
    }

    fn severity(self) -> Severity {
        match self {
            TextCode::Pipe | TextCode::Definition | TextCode::Verification => Severity::Error,
        }
    }
}

/// A diagnostic about a text. Its locations are in the first file of a source map.
pub type TextDiagnostic = Diagnostic<TextCode>;

impl Error {
    /// The code of this kind of error, as `P0101`.
    pub fn code(&self) -> &'static str {
        match self {
            Error::TooManySteps(_) => "P0101",
            Error::KeyLength(_) => "P0102",
            Error::TooManyStreams(_) => "P0103",
            Error::WideElement => "P0104",
            Error::TooManyInstructions(_) => "P0105",
            Error::Target { .. } => "P0201",
            Error::Overlap => "P0202",
            Error::Streams { .. } => "P0203",
            Error::StreamLength { .. } => "P0204",
            Error::Buffers { .. } => "P0205",
            Error::Piece { .. } => "P0206",
            Error::Code(_) => "P0301",
        }
    }

    /// The help text.
    pub fn help(&self) -> String {
        match self {
            Error::TooManySteps(_) | Error::TooManyInstructions(_) => "run two pipes, one after the other".into(),
            Error::KeyLength(_) => {
                "use a key of 1, 2, 4 or 8 bytes, or a key stream as long as the data (`xor stream`)".into()
            }
            Error::TooManyStreams(_) => "combine the key streams into one first".into(),
            Error::WideElement => "write the step for elements and numbers of 32 bits".into(),
            Error::Target { source, .. } => format!("give a target of {source} bytes"),
            Error::Overlap => "give two buffers that share nothing, or one buffer with `run_in_place`".into(),
            Error::Streams { wanted, .. } => format!("give {wanted}, one for each step `xor stream`, in order"),
            Error::StreamLength { data, .. } => format!("give at least {data} bytes of key"),
            Error::Piece { .. } => "give pieces of a multiple of 8 bytes, but for the last".into(),
            Error::Buffers { wanted, .. } => format!("give {wanted} buffers"),
            Error::Code(quaject_vcode::Error::NoCodeMemory) => {
                "only Linux has code memory; elsewhere pipes run without machine code, with the same results".into()
            }
            Error::Code(_) => "a new `Composer` has fresh code memory; drop pipes that are no longer used".into(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::TooManySteps(count) => {
                write!(out, "a pipe of {count} steps; the maximum is {}", crate::MAX_STEPS)
            }
            Error::KeyLength(length) => write!(out, "a repeated key of {length} bytes"),
            Error::TooManyStreams(count) => {
                write!(out, "{count} steps want a key stream; the maximum is {}", crate::MAX_STREAMS)
            }
            Error::TooManyInstructions(count) => {
                let maximum = crate::ir::MAX_PIPE_INSTRUCTIONS;
                write!(out, "steps of {count} instructions together; the maximum is {maximum}")
            }
            Error::WideElement => write!(out, "elements or numbers of 64 bits on a machine of 32 bits"),
            Error::Target { source, target } => {
                write!(out, "the target has {target} bytes, the source {source}")
            }
            Error::Overlap => write!(out, "source and target overlap"),
            Error::Streams { wanted, given } => write!(out, "{given} key streams for {wanted} steps that want one"),
            Error::StreamLength { stream, length, data } => {
                write!(out, "key stream {stream} has {length} bytes for {data} bytes of data")
            }
            Error::Piece { before } => write!(out, "a piece of data after {before} bytes, which are no multiple of 8"),
            Error::Buffers { wanted, given } => write!(out, "{given} buffers for a handler of {wanted}"),
            Error::Code(error) => write!(out, "generated code: {error}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<quaject_vcode::Error> for Error {
    fn from(error: quaject_vcode::Error) -> Self {
        Error::Code(error)
    }
}
