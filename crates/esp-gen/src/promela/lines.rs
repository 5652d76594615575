//! The text of a model, line by line, each with the step of the program that it stands for. Knows nothing of programs.

use super::expression::MACROS;
use quaject_esp_ir::ir::{Fault, Location};

/// The step of the program that Spin makes when it executes a line of the model.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mark {
    /// No step of the program.
    None,
    /// Local code of an instance.
    Local,
    /// An instance ends its quantum and can run on.
    Yield,
    /// A branch of a wait on an internal channel: half of a rendezvous.
    Rendezvous {
        /// Which, from 0.
        branch: u32,
        /// Whether it is the sender's half.
        sends: bool,
    },
    /// A branch that receives a message from the environment.
    FromEnvironment {
        /// Which, from 0.
        branch: u32,
    },
    /// A branch that sends a message to the environment.
    ToEnvironment {
        /// Which, from 0.
        branch: u32,
    },
    /// A branch whose time has passed.
    After {
        /// Which, from 0.
        branch: u32,
    },
    /// An instance enters a fast path and captures its members: local code.
    Enter {
        /// Which path, from 0.
        path: u32,
    },
    /// No branch can be taken.
    Else,
    /// An assertion that fails if the program has this fault.
    Fault(Fault),
    /// Likewise, as part of a rendezvous.
    FaultInRendezvous(Fault),
}

/// One line of a model.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Line {
    pub(super) indent: usize,
    pub(super) text: String,
    /// Its step.
    pub mark: Mark,
    /// The source location that it is generated from.
    pub location: Location,
}

/// Lines under construction.
#[derive(Default)]
pub(super) struct Lines {
    pub(super) lines: Vec<Line>,
    indent: usize,
}

impl Lines {
    pub(super) fn push(&mut self, mark: Mark, location: Location, text: impl Into<String>) {
        self.lines.push(Line { indent: self.indent, text: text.into(), mark, location });
    }

    pub(super) fn plain(&mut self, text: impl Into<String>) {
        self.push(Mark::None, Location::default(), text);
    }

    pub(super) fn indent(&mut self) {
        self.indent += 1;
    }

    pub(super) fn dedent(&mut self) {
        self.indent -= 1;
    }

    pub(super) fn append(&mut self, other: Lines) {
        let indent = self.indent;
        self.lines.extend(other.lines.into_iter().map(|line| Line { indent: line.indent + indent, ..line }));
    }

    /// Whether any line contains a name.
    pub(super) fn mentions(&self, name: &str) -> bool {
        self.lines.iter().any(|line| mentions(&line.text, name))
    }

    /// The macros that the lines use.
    pub(super) fn macros(&self) -> Vec<&'static str> {
        let mut wanted: Vec<&(&str, &str)> = MACROS.iter().filter(|(name, _)| self.mentions(name)).collect();
        if wanted.iter().any(|(name, _)| *name == "divide_u32") && !wanted.iter().any(|(name, _)| *name == "below_u32")
        {
            wanted.extend(MACROS.iter().filter(|(name, _)| *name == "below_u32"));
        }
        wanted.into_iter().map(|(_, text)| *text).collect()
    }

    /// The text, with the source locations of the lines as comments.
    pub(super) fn print(&self, place: &dyn Fn(Location) -> String) -> String {
        let mut text = String::new();
        let mut shown = String::new();
        for line in &self.lines {
            text.push_str(&"  ".repeat(line.indent));
            text.push_str(&line.text);
            let here = place(line.location);
            if !here.is_empty() && here != shown {
                let width = line.indent * 2 + line.text.chars().count();
                text.push_str(&" ".repeat(60usize.saturating_sub(width).max(2)));
                text.push_str(&format!("/* {here} */"));
                shown = here;
            }
            text.push('\n');
        }
        text
    }
}

fn mentions(text: &str, name: &str) -> bool {
    let word = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
    text.match_indices(name)
        .any(|(at, _)| !word(text[..at].chars().next_back()) && !word(text[at + name.len()..].chars().next()))
}
