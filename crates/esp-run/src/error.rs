//! Errors of the host: files, devices, tools and the command line, as opposed to faults of the program that runs. An
//! error has a cause, help, and a kind, from which a command derives its exit status.

use std::fmt;

/// An error of the host: lower case, no full stop, names in backticks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostError {
    /// The cause.
    pub cause: String,
    /// How to avoid it.
    pub help: Option<String>,
    /// What has to change.
    pub kind: ErrorKind,
    /// The stable code, if it has one.
    pub code: Option<&'static str>,
}

/// The code of a refusal because the operating system lacks what was asked for.
const UNSUPPORTED: &str = "R0101";

/// What has to change before the command can succeed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ErrorKind {
    /// The program or a file: it does not exist, cannot be read or written, or has the wrong content.
    Input,
    /// The command line.
    Usage,
}

impl HostError {
    /// An error of a file or program, without help.
    pub fn new(cause: impl Into<String>) -> HostError {
        HostError { cause: cause.into(), help: None, kind: ErrorKind::Input, code: None }
    }

    /// An error of the command line, without help.
    pub fn usage(cause: impl Into<String>) -> HostError {
        HostError { kind: ErrorKind::Usage, ..HostError::new(cause) }
    }

    /// A refusal of an option or a driver that this operating system does not have, without help. Its code is `R0101`.
    pub fn unsupported(cause: impl Into<String>) -> HostError {
        HostError { code: Some(UNSUPPORTED), ..HostError::usage(cause) }
    }

    /// Sets the help.
    pub fn help(mut self, help: impl Into<String>) -> HostError {
        self.help = Some(help.into());
        self
    }

    /// A failed operation on a file: `doing` is a verb such as `read`.
    pub fn file(doing: &str, path: impl fmt::Display, error: &std::io::Error) -> HostError {
        HostError::new(format!("cannot {doing} `{path}`: {}", reason(error)))
    }
}

impl fmt::Display for HostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.cause)?;
        match &self.help {
            Some(help) => write!(f, "\nhelp: {help}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for HostError {}

/// The message of the innermost error: that of a loader says only that it failed.
pub(crate) fn root_cause(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(|| error.to_string(), root_cause)
}

/// An operating system's reason in our style: `no such file or directory`.
pub(crate) fn reason(error: &std::io::Error) -> String {
    if error.kind() == std::io::ErrorKind::IsADirectory {
        // Also constructed by this crate, with another text.
        return "it is a directory".to_string();
    }
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or(&text);
    let mut characters = text.chars();
    match characters.next() {
        // Abbreviations such as `I/O error` stay as they are.
        Some(first) if characters.as_str().starts_with(|c: char| c.is_lowercase()) => {
            first.to_lowercase().chain(characters).collect()
        }
        Some(_) | None => text.to_string(),
    }
}
