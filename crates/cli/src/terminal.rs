//! Output, messages and exit status of `qj`. Knows no command.

use crate::arguments::{ColorChoice, MessageForm};
use quaject_diagnostic::span::SourceMap;
use quaject_diagnostic::{self as render, Code, Color, Diagnostic, Severity};
use quaject_esp_run::files::write_file;
use quaject_esp_run::{ErrorKind, HostError};
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

/// The outcome of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Status {
    /// The command has succeeded.
    Done,
    /// The program, or a file that the command needs, has an error.
    Failed,
    /// The command line has an error.
    Usage,
    /// A fault at run time.
    Fault,
    /// A limit was reached before the result was known.
    Unfinished,
    /// The exit status of the program that `qj` ran.
    Exit(u8),
}

impl From<Status> for ExitCode {
    fn from(status: Status) -> ExitCode {
        ExitCode::from(match status {
            Status::Done => 0,
            Status::Failed => 1,
            Status::Usage => 2,
            Status::Fault => 3,
            Status::Unfinished => 4,
            Status::Exit(status) => status,
        })
    }
}

/// The error that ends a command. Errors of files, programs and the command line convert to it by `?`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct CliError {
    pub(crate) status: Status,
    /// The stable code of the error, if its library defines one.
    pub(crate) code: Option<&'static str>,
    /// The error to print; none if it has been printed.
    pub(crate) error: Option<HostError>,
}

impl CliError {
    /// An error that has been printed.
    pub(crate) fn reported(status: Status) -> CliError {
        CliError { status, code: None, error: None }
    }

    /// Adds the code of the error.
    pub(crate) fn code(self, code: &'static str) -> CliError {
        CliError { code: Some(code), ..self }
    }
}

impl From<HostError> for CliError {
    fn from(error: HostError) -> CliError {
        let status = match error.kind {
            ErrorKind::Input => Status::Failed,
            ErrorKind::Usage => Status::Usage,
        };
        CliError { status, code: error.code, error: Some(error) }
    }
}

/// The form of messages on standard error.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terminal {
    pub(crate) color: Color,
    form: MessageForm,
}

impl Terminal {
    pub(crate) fn new(color: ColorChoice, form: MessageForm) -> Terminal {
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let color = match color {
            ColorChoice::Always => Color::Always,
            ColorChoice::Never => Color::Never,
            ColorChoice::Auto => {
                let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
                if set("NO_COLOR") {
                    Color::Never
                } else if set("CLICOLOR_FORCE") || (io::stderr().is_terminal() && !dumb) {
                    Color::Always
                } else {
                    Color::Never
                }
            }
        };
        Terminal { color, form }
    }

    /// Prints diagnostics about texts; the number of errors.
    pub(crate) fn diagnostics<C: Code>(&self, sources: &SourceMap, diagnostics: &[Diagnostic<C>]) -> usize {
        let errors = diagnostics.iter().filter(|diagnostic| diagnostic.severity() == Severity::Error).count();
        match self.form {
            MessageForm::Json => print_message(&render::json(sources, diagnostics)),
            MessageForm::Sarif => print_message(&render::sarif(sources, diagnostics, "qj", env!("CARGO_PKG_VERSION"))),
            MessageForm::Human => {
                print_message(&render::human(sources, diagnostics, self.color));
                let warnings = diagnostics.len() - errors;
                if errors > 0 {
                    let also = match warnings {
                        0 => String::new(),
                        1 => " and 1 warning".to_string(),
                        count => format!(" and {count} warnings"),
                    };
                    let errors = if errors == 1 { "1 error".to_string() } else { format!("{errors} errors") };
                    let first = diagnostics.iter().find(|diagnostic| diagnostic.severity() == Severity::Error);
                    let explained = first.map(|first| first.code).filter(|code| code.is_explained());
                    let help = explained.map_or(String::new(), |code| format!("; see `qj explain {}`", code.name()));
                    print_message(&format!("{errors}{also}{help}\n"));
                }
            }
        }
        errors
    }

    /// Prints an error without a location, with its code and help.
    pub(crate) fn print_error(&self, error: &HostError) {
        self.print_coded_error(error.code, error);
    }

    /// Prints an error without a location, with its code.
    pub(crate) fn print_coded_error(&self, code: Option<&str>, error: &HostError) {
        self.print(Severity::Error, code, &error.cause, error.help.as_deref());
    }

    /// Prints a warning without a location, and its help.
    pub(crate) fn print_warning(&self, message: &str, help: Option<&str>) {
        self.print(Severity::Warning, None, message, help);
    }

    fn print(&self, severity: Severity, code: Option<&str>, message: &str, help: Option<&str>) {
        match self.form {
            MessageForm::Human => {
                let title = format!("{}{}", severity.name(), code.map_or(String::new(), |code| format!("[{code}]")));
                let title = match severity {
                    Severity::Error | Severity::Fault => self.bold_red(&title),
                    Severity::Warning => title,
                };
                let help = help.map_or(String::new(), |help| format!("help: {help}\n"));
                print_message(&format!("{title}: {message}\n{help}"));
            }
            MessageForm::Json | MessageForm::Sarif => {
                let mut object = serde_json::json!({ "severity": severity.name(), "message": message, "help": help });
                if let Some(code) = code {
                    object["code"] = code.into();
                }
                print_message(&format!("{object}\n"));
            }
        }
    }

    /// The title of an error in its color.
    pub(crate) fn bold_red(&self, word: &str) -> String {
        match self.color {
            Color::Always => format!("\x1b[1;31m{word}\x1b[0m"),
            Color::Never => word.to_string(),
        }
    }

    /// A line of a unified difference in its color.
    pub(crate) fn difference(&self, line: &str) -> String {
        match (self.color, line.chars().next()) {
            (Color::Always, Some('-')) => format!("\x1b[31m{line}\x1b[0m"),
            (Color::Always, Some('+')) => format!("\x1b[32m{line}\x1b[0m"),
            (Color::Always | Color::Never, _) => line.to_string(),
        }
    }
}

/// Prints to standard error. A failure is ignored: there is no other place to report it.
pub(crate) fn print_message(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Prints to standard output. A closed pipe, as in `qj graph x.esp | head -1`, ends the command without an error.
pub(crate) fn print(bytes: &[u8]) -> Result<(), CliError> {
    let mut output = io::stdout().lock();
    match output.write_all(bytes).and_then(|()| output.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(CliError::reported(Status::Done)),
        Err(error) => Err(CliError::from(HostError::file("write", "standard output", &error))),
    }
}

/// Writes a text to a file; without a file, or for `-`, to standard output.
pub(crate) fn write_output(output: Option<&Path>, text: &str) -> Result<(), CliError> {
    match output.filter(|path| *path != Path::new("-")) {
        Some(path) => write_file(path, text.as_bytes()).map_err(CliError::from),
        None => print(text.as_bytes()),
    }
}

/// Prints a verdict. A closed pipe does not end the command, because its exit status is a result too.
pub(crate) fn print_verdict(bytes: &[u8]) -> Result<(), CliError> {
    print(bytes).or_else(|stop| if stop.error.is_none() { Ok(()) } else { Err(stop) })
}
