//! What can go wrong around a program, as opposed to in it: a cause and a way out. Knows no exit status.

use std::fmt;

/// Something the outside of a program did not allow: lower case, no full stop, names in backticks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trouble {
    /// The cause.
    pub cause: String,
    /// The way out.
    pub help: Option<String>,
    /// What has to change.
    pub blame: Blame,
}

/// What has to change before it can go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Blame {
    /// The program, or a file: it is not there, cannot be read or written, does not hold what it should.
    Files,
    /// The command line: it asks for what there is not.
    Command,
}

impl Trouble {
    /// A trouble of a file or program, whose way out is plain from its cause.
    pub fn new(cause: impl Into<String>) -> Trouble {
        Trouble { cause: cause.into(), help: None, blame: Blame::Files }
    }

    /// A trouble of the command line, whose way out is plain from its cause.
    pub fn usage(cause: impl Into<String>) -> Trouble {
        Trouble { blame: Blame::Command, ..Trouble::new(cause) }
    }

    /// Sets the way out.
    pub fn help(mut self, help: impl Into<String>) -> Trouble {
        self.help = Some(help.into());
        self
    }

    /// A failed operation on a file: `doing` is a verb such as `read`.
    pub fn file(doing: &str, path: impl fmt::Display, error: &std::io::Error) -> Trouble {
        Trouble::new(format!("cannot {doing} `{path}`: {}", reason(error)))
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.cause)?;
        match &self.help {
            Some(help) => write!(f, "\nhelp: {help}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Trouble {}

/// What went wrong at the bottom: what a loader says itself is only that it failed.
pub(crate) fn why(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(|| error.to_string(), why)
}

/// An operating system's reason in our style: `no such file or directory`.
pub(crate) fn reason(error: &std::io::Error) -> String {
    if error.kind() == std::io::ErrorKind::IsADirectory {
        // Made by us too, and worded differently then.
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
