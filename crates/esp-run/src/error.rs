//! Errors of the host: files, devices, tools and the command line, as opposed to faults of the program that runs. An
//! error has a code, a cause, help, and a kind, from which a command derives its exit status.

use quaject_diagnostic::{Code, Explanations, Message, Severity};
use std::fmt;

/// The explanation of each [`HostCode`].
pub const EXPLANATIONS: Explanations = Explanations::new(include_str!("error.md"));

/// The kinds of errors of the host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HostCode {
    /// The command line has an unknown word, lacks one, or has a value that an option does not take.
    CommandLine,
    /// An argument is malformed.
    Argument,
    /// Options contradict each other, or one has no effect.
    Conflict,
    /// A name on the command line names nothing.
    UnknownName,
    /// An output would overwrite a file that is needed.
    Overwrite,
    /// The command line leaves a choice open.
    Choice,
    /// A file cannot be read or written.
    File,
    /// A file has the wrong content.
    Content,
    /// A program is not formatted.
    Format,
    /// There is nothing to work on.
    Empty,
    /// A replay differs from its recording.
    Replay,
    /// A limit on size or time is exceeded.
    Size,
    /// The text of a driver is malformed.
    Driver,
    /// A driver cannot serve a channel, or these channels together.
    Binding,
    /// The type of a channel is not one of its driver.
    Type,
    /// The system or machine lacks what is asked for.
    Platform,
    /// A device, socket or ring cannot be used.
    Device,
    /// A message from or to the environment is malformed.
    Message,
    /// A tool or library is missing.
    Tool,
    /// A tool rejects its input.
    ToolFailure,
    /// Extern functions cannot be loaded.
    Extern,
    /// The system refuses a resource.
    System,
    /// Portable instructions cannot be assembled or executed.
    Assembly,
    /// Every thread of a program in the kernel waits for ever.
    Deadlock,
    /// A project file is malformed.
    ProjectFile,
    /// A project file has an unknown key.
    ProjectKey,
    /// A command needs a program or a project, and there is none.
    NoProject,
    /// A defect of this product.
    Defect,
}

impl Code for HostCode {
    fn name(self) -> &'static str {
        match self {
            HostCode::CommandLine => "H0101",
            HostCode::Argument => "H0102",
            HostCode::Conflict => "H0103",
            HostCode::UnknownName => "H0104",
            HostCode::Overwrite => "H0105",
            HostCode::Choice => "H0106",
            HostCode::File => "H0201",
            HostCode::Content => "H0202",
            HostCode::Format => "H0203",
            HostCode::Empty => "H0204",
            HostCode::Replay => "H0205",
            HostCode::Size => "H0301",
            HostCode::Driver => "H0401",
            HostCode::Binding => "H0402",
            HostCode::Type => "H0403",
            HostCode::Platform => "H0404",
            HostCode::Device => "H0405",
            HostCode::Message => "H0406",
            HostCode::Tool => "H0501",
            HostCode::ToolFailure => "H0502",
            HostCode::Extern => "H0503",
            HostCode::System => "H0504",
            HostCode::Assembly => "H0505",
            HostCode::Deadlock => "H0506",
            HostCode::ProjectFile => "H0601",
            HostCode::ProjectKey => "H0602",
            HostCode::NoProject => "H0603",
            HostCode::Defect => "H0901",
        }
    }

    fn severity(self) -> Severity {
        Severity::Error
    }
}

/// An error of the host: lower case, no full stop, names in backticks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostError {
    /// The code.
    pub code: HostCode,
    /// The cause.
    pub cause: String,
    /// How to avoid it.
    pub help: Option<String>,
    /// What has to change.
    pub kind: ErrorKind,
}

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
    pub fn new(code: HostCode, cause: impl Into<String>) -> HostError {
        HostError { code, cause: cause.into(), help: None, kind: ErrorKind::Input }
    }

    /// An error of the command line, without help.
    pub fn usage(code: HostCode, cause: impl Into<String>) -> HostError {
        HostError { kind: ErrorKind::Usage, ..HostError::new(code, cause) }
    }

    /// A refusal of an option or a driver that this operating system does not have, without help.
    pub fn unsupported(cause: impl Into<String>) -> HostError {
        HostError::usage(HostCode::Platform, cause)
    }

    /// Sets the help.
    pub fn help(mut self, help: impl Into<String>) -> HostError {
        self.help = Some(help.into());
        self
    }

    /// A failed operation on a file: `doing` is a verb such as `read`.
    pub fn file(doing: &str, path: impl fmt::Display, error: &std::io::Error) -> HostError {
        HostError::new(HostCode::File, format!("cannot {doing} `{path}`: {}", reason(error)))
    }

    /// The error as a message without a location.
    pub fn message(&self) -> Message {
        let message = Message::new(Severity::Error, self.cause.as_str()).code(self.code.name());
        match &self.help {
            Some(help) => message.help(help.as_str()),
            None => message,
        }
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
