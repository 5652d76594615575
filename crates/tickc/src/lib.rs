//! 'C ("tick C"): C with expressions and statements that generate code at run time. Translates preprocessed 'C to C
//! with
//! GNU extensions, which calls the run-time library through `quaject/tickc.h`. A function from text to text and
//! diagnostics; starts no compiler and opens no file.
//!
//! ```
//! let source = "int cspec one(void) { return `1; }\n";
//! let translation = quaject_tickc::translate(source);
//! assert!(translation.diagnostics.is_empty());
//! assert!(translation.text.contains("int (* one(void))(qjt_c) {"));
//! ```
//!
//! Static code is copied byte for byte: only declarations are understood, as far as the meaning of names in ticks
//! depends on them (`declare`, `island`). Ticks are parsed whole (`tick::parse`), and become code that builds a tree
//! when the tick is evaluated (`tick::emit`). Types are not computed: the C compiler infers them from expressions
//! that it
//! never evaluates. `compile()` walks the tree and writes machine code through vcode (`runtime`).
#![forbid(unsafe_code)]

mod compiler_messages;
mod declare;
mod diagnostics;
mod island;
mod lex;
mod parser;
mod report;
mod scope;
mod source_range;
mod special;
mod tick;

pub use compiler_messages::{CompilerMessage, compiler_messages};
pub use diagnostics::{Code, EXPLANATIONS, RUNTIME_EXPLANATIONS, RuntimeCode};
pub use lex::{Lines, Location};
pub use report::{Event, Remark};
pub use source_range::source_range;

use parser::Parser;
use quaject_diagnostic::Diagnostic;

/// The header that translations include as `quaject/tickc.h`.
pub const RUNTIME_HEADER: &str = include_str!("../include/quaject/tickc.h");

/// The run-time library as an archive for the machine and system that this crate was compiled for, to be linked with
/// compiled translations; empty where there is none.
pub const RUNTIME_LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libquaject-tickc.a"));

/// The result of a translation.
#[derive(Clone, Debug)]
pub struct Translation {
    /// C, to be compiled with the header `quaject/tickc.h`.
    pub text: String,
    /// What is wrong, at places of the source text.
    pub diagnostics: Vec<Diagnostic<Code>>,
    /// What was done to each tick.
    pub remarks: Vec<Remark>,
    /// The lines that places of the source text come from.
    pub lines: Lines,
}

/// Choices for a translation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// The iterations up to which a loop is unrolled whose counter no operand of `$` depends on, if its bounds are
    /// known when its tick is evaluated; one of more iterations, or of more than 16 KB, stays a loop. Other loops with
    /// known bounds are unrolled in any case.
    ///
    /// 0 by default: a loop that stays one takes less time to generate, and rarely more to run.
    pub unroll_limit: u32,
}

/// Translates preprocessed 'C. A text without ticks, `cspec` and `vspec` is returned as it is.
pub fn translate(source: &str) -> Translation {
    translate_with(source, Options::default())
}

/// The same with other choices.
pub fn translate_with(source: &str, options: Options) -> Translation {
    let (tokens, lines) = lex::lex(source);
    let mut parser = Parser::new(source, tokens, lines, options);
    parser.translation_unit();
    let text = parser.output();
    Translation { text, diagnostics: parser.diagnostics, remarks: parser.remarks, lines: parser.lines }
}
