//! Diagnostics: a stable code, a location, a cause and a help text, and their renderings as text with carets, JSON
//! lines and SARIF. Messages about no place in a text have the same renderings. Knows no language; each crate that
//! reads texts of users defines its own codes, and explains them.
//!
//! The renderings are in the feature `render`. Libraries that only report diagnostics do without it, and then depend on
//! no other crate.
//!
//! ```
//! # #[cfg(feature = "render")] {
//! use quaject_diagnostic::span::{SourceFile, SourceMap, Span};
//! use quaject_diagnostic::{Code, Color, Diagnostic, Severity, human};
//!
//! #[derive(Clone, Copy)]
//! struct UnknownStep;
//!
//! impl Code for UnknownStep {
//!     fn name(self) -> &'static str { "P0001" }
//!     fn severity(self) -> Severity { Severity::Error }
//! }
//!
//! let mut sources = SourceMap::default();
//! let file = sources.add(SourceFile::new("steps", "copy | chekcsum"));
//! let diagnostic =
//!     Diagnostic::new(UnknownStep, Span::new(file, 7, 15), "no step named `chekcsum`").help("`checksum`");
//! assert_eq!(human(&sources, &[diagnostic], Color::Never), "\
//! error[P0001]: no step named `chekcsum`
//!  --> steps:1:8
//!   |
//! 1 | copy | chekcsum
//!   |        ^^^^^^^^
//!   |
//!   = help: `checksum`
//!
//! ");
//! # }
//! ```
#![forbid(unsafe_code)]

/// The examples of the README are tests.
#[cfg(all(doctest, feature = "render"))]
#[doc = include_str!("../README.md")]
struct Readme;

mod excerpt;
mod explanations;
#[cfg(feature = "render")]
mod json;
mod message;
#[cfg(feature = "render")]
mod sarif;
pub mod span;
mod suggestion;
#[cfg(feature = "render")]
mod text;

pub use excerpt::excerpt;
pub use explanations::{Explanation, Explanations};
#[cfg(feature = "render")]
pub use json::{json, json_message, json_object};
pub use message::Message;
#[cfg(feature = "render")]
pub use sarif::SarifLog;
pub use suggestion::nearest;
#[cfg(feature = "render")]
pub use text::{Color, human, human_within};

use span::{FileId, SourceFile, Span};
use std::fmt;

/// How serious a diagnostic is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Severity {
    /// The input is rejected.
    Error,
    /// The input is accepted.
    Warning,
    /// A running program has stopped.
    Fault,
    /// Nothing is wrong: a report on what was done.
    Note,
}

impl Severity {
    /// The word in front of the message, in text and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Fault => "fault",
            Severity::Note => "note",
        }
    }
}

/// The kinds of diagnostics of one reader of texts.
pub trait Code: Copy {
    /// Stable, as printed: `E0405`.
    fn name(self) -> &'static str;

    /// How serious it is.
    fn severity(self) -> Severity;
}

/// One message about a text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic<C> {
    /// Its code.
    pub code: C,
    /// The primary location.
    pub span: Span,
    /// The cause: lower case, no full stop, names in backticks.
    pub message: String,
    /// Further locations, each with a few words.
    pub labels: Vec<(Span, String)>,
    /// How to correct the text, or what to try.
    pub help: Option<String>,
}

impl<C: Code> Diagnostic<C> {
    /// A diagnostic at a location.
    pub fn new(code: C, span: Span, message: impl Into<String>) -> Diagnostic<C> {
        Diagnostic { code, span, message: message.into(), labels: Vec::new(), help: None }
    }

    /// Adds another location.
    #[must_use]
    pub fn label(mut self, span: Span, text: impl Into<String>) -> Diagnostic<C> {
        self.labels.push((span, text.into()));
        self
    }

    /// Sets the help text.
    #[must_use]
    pub fn help(mut self, text: impl Into<String>) -> Diagnostic<C> {
        self.help = Some(text.into());
        self
    }

    /// The severity of the code.
    pub fn severity(&self) -> Severity {
        self.code.severity()
    }

    /// Moves all locations to another file of a source map. Readers of a single text report locations in the first
    /// file.
    #[must_use]
    pub fn in_file(mut self, file: FileId) -> Diagnostic<C> {
        self.span.file = file;
        self.labels.iter_mut().for_each(|(span, _)| span.file = file);
        self
    }

    /// The message with its location in `text`, on one line, for programs without a source map:
    /// ``line 1, column 8: no step named `chekcsum` ``.
    pub fn located_message(&self, text: &str) -> String {
        let start = SourceFile::new("", text).line_column(self.span.start);
        format!("line {}, column {}: {}", start.line, start.column, self.message)
    }
}

impl<C: Code> fmt::Display for Diagnostic<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code.name(), self.message)
    }
}

impl<C: Code + fmt::Debug> std::error::Error for Diagnostic<C> {}
