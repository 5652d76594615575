//! What `qj` prints and with which status it ends. Knows no command.

use crate::arguments::{ColorChoice, MessageForm};
use quaject_diagnostic::{self as render, Color};
use quaject_esp_run::files::write_file;
use quaject_esp_run::{ErrorKind, HostError};
use quaject_esp_syntax::diagnostics::{Diagnostic, Severity};
use quaject_esp_syntax::span::SourceMap;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

/// How `qj` ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Status {
    /// Everything was done.
    Done,
    /// The program, or a file it needs, is wrong.
    Failed,
    /// The command line is wrong.
    Usage,
    /// A fault while running.
    Fault,
    /// A limit was reached before there was an answer.
    Unfinished,
    /// The exit status of the program that ran.
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

/// Why a command ends early. Errors of files, programs and the command line become one by `?`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct CliError {
    pub(crate) status: Status,
    /// The error to print; none if it has been printed.
    pub(crate) error: Option<HostError>,
}

impl CliError {
    /// An error that has been printed.
    pub(crate) fn reported(status: Status) -> CliError {
        CliError { status, error: None }
    }
}

impl From<HostError> for CliError {
    fn from(error: HostError) -> CliError {
        let status = match error.kind {
            ErrorKind::Input => Status::Failed,
            ErrorKind::Usage => Status::Usage,
        };
        CliError { status, error: Some(error) }
    }
}

/// Where messages go and how they look.
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

    /// Prints the compiler's messages and counts the errors.
    pub(crate) fn diagnostics(&self, sources: &SourceMap, diagnostics: &[Diagnostic]) -> usize {
        let errors = diagnostics.iter().filter(|diagnostic| diagnostic.severity() == Severity::Error).count();
        match self.form {
            MessageForm::Json => say(&render::json(sources, diagnostics)),
            MessageForm::Sarif => say(&render::sarif(sources, diagnostics, "qj", env!("CARGO_PKG_VERSION"))),
            MessageForm::Human => {
                say(&render::human(sources, diagnostics, self.color));
                let warnings = diagnostics.len() - errors;
                if errors > 0 {
                    let also = match warnings {
                        0 => String::new(),
                        1 => " and 1 warning".to_string(),
                        count => format!(" and {count} warnings"),
                    };
                    let errors = if errors == 1 { "1 error".to_string() } else { format!("{errors} errors") };
                    let first = diagnostics.iter().find(|diagnostic| diagnostic.severity() == Severity::Error);
                    let code = first.map_or("CODE", |diagnostic| diagnostic.code.name());
                    say(&format!("{errors}{also}; `qj explain {code}` tells more\n"));
                }
            }
        }
        errors
    }

    /// Prints an error and its help.
    pub(crate) fn print_error(&self, error: &HostError) {
        match self.form {
            MessageForm::Human => {
                let mut text = format!("{}: {}\n", self.bold_red("error"), error.cause);
                if let Some(help) = &error.help {
                    text.push_str(&format!("help: {help}\n"));
                }
                say(&text);
            }
            MessageForm::Json | MessageForm::Sarif => {
                let object = serde_json::json!({
                    "severity": "error", "message": error.cause, "help": error.help,
                });
                say(&format!("{object}\n"));
            }
        }
    }

    /// A word that begins an error.
    pub(crate) fn bold_red(&self, word: &str) -> String {
        match self.color {
            Color::Always => format!("\x1b[1;31m{word}\x1b[0m"),
            Color::Never => word.to_string(),
        }
    }

    /// A line of a comparison: what is too much, or what is missing.
    pub(crate) fn difference(&self, line: &str) -> String {
        match (self.color, line.chars().next()) {
            (Color::Always, Some('-')) => format!("\x1b[31m{line}\x1b[0m"),
            (Color::Always, Some('+')) => format!("\x1b[32m{line}\x1b[0m"),
            (Color::Always | Color::Never, _) => line.to_string(),
        }
    }
}

/// Prints to standard error. If nobody listens there, nothing can be done about it.
pub(crate) fn say(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Prints to standard output. A reader that has gone away, as in `qj graph x.esp | head -1`, ends `qj` in peace.
pub(crate) fn print(bytes: &[u8]) -> Result<(), CliError> {
    let mut output = io::stdout().lock();
    match output.write_all(bytes).and_then(|()| output.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(CliError::reported(Status::Done)),
        Err(error) => Err(CliError::from(HostError::file("write", "standard output", &error))),
    }
}

/// Writes one text to a file, or prints it: where none is named, or `-`.
pub(crate) fn deliver(output: Option<&Path>, text: &str) -> Result<(), CliError> {
    match output.filter(|path| *path != Path::new("-")) {
        Some(path) => write_file(path, text.as_bytes()).map_err(CliError::from),
        None => print(text.as_bytes()),
    }
}

/// Prints a verdict. That its reader leaves early changes nothing: the command goes on, and its status tells the rest.
pub(crate) fn print_verdict(bytes: &[u8]) -> Result<(), CliError> {
    print(bytes).or_else(|stop| if stop.error.is_none() { Ok(()) } else { Err(stop) })
}
