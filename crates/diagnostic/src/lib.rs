//! Diagnostics: a stable code, a location, a cause and a way out, and their renderings as text with carets, JSON lines
//! and SARIF. Knows no language; each crate that reads texts of users has codes of its own.
//!
//! ```
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
//! let diagnostic = Diagnostic::new(UnknownStep, Span::new(file, 7, 15), "no step named `chekcsum`").help("`checksum`");
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
//! ```
#![forbid(unsafe_code)]

/// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod json;
mod sarif;
pub mod span;
mod text;

pub use json::{json, json_object};
pub use sarif::sarif;
pub use text::{Color, human};

use span::Span;

/// How serious a diagnostic is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Severity {
    /// The input is rejected.
    Error,
    /// The input is accepted.
    Warning,
    /// A running program has stopped.
    Fault,
}

impl Severity {
    /// The word in front of the message, in text and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Fault => "fault",
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
    /// The way out.
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

    /// Sets the way out.
    #[must_use]
    pub fn help(mut self, text: impl Into<String>) -> Diagnostic<C> {
        self.help = Some(text.into());
        self
    }

    /// That of the code.
    pub fn severity(&self) -> Severity {
        self.code.severity()
    }
}
