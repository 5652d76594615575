//! Messages about no place in a text: about a file, a device, the command line or a run.

use crate::Severity;

/// A message without a location.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message {
    /// How serious it is.
    pub severity: Severity,
    /// Its stable code. Notes have none.
    pub code: Option<&'static str>,
    /// The cause: lower case, no full stop, names in backticks.
    pub text: String,
    /// What to do, or what to try.
    pub help: Option<String>,
}

impl Message {
    /// A message without code and help.
    pub fn new(severity: Severity, text: impl Into<String>) -> Message {
        Message { severity, code: None, text: text.into(), help: None }
    }

    /// Sets the code.
    #[must_use]
    pub fn code(mut self, code: &'static str) -> Message {
        self.code = Some(code);
        self
    }

    /// Sets the help text.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Message {
        self.help = Some(help.into());
        self
    }

    /// The word in front of the text, with the code: `error[H0201]`.
    pub fn title(&self) -> String {
        let severity = self.severity.name();
        self.code.map_or_else(|| severity.to_string(), |code| format!("{severity}[{code}]"))
    }
}
