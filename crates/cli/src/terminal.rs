//! Output, messages and exit status of `qj`. Knows no command.

use crate::arguments::{ColorChoice, MessageForm};
use quaject_diagnostic::span::SourceMap;
use quaject_diagnostic::{self as render, Code, Color, Diagnostic, Message, SarifLog, Severity};
use quaject_esp_run::files::{update_file, write_file};
use quaject_esp_run::{ErrorKind, HostError, die_of};
use std::cell::RefCell;
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
    /// The model has a violation that its program does not have.
    Spurious,
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
            Status::Spurious => 5,
            Status::Exit(status) => status,
        })
    }
}

/// The error that ends a command. Errors of files, programs and the command line convert to it by `?`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct CliError {
    pub(crate) status: Status,
    /// The error to print; none if it has been printed.
    pub(crate) error: Option<Message>,
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
        CliError { status, error: Some(error.message()) }
    }
}

/// The sink of all messages of a command: text and JSON are written to standard error at once, SARIF as one log at the
/// end.
#[derive(Debug)]
pub(crate) struct Terminal {
    pub(crate) color: Color,
    /// The width of the terminal that shows standard error.
    columns: Option<usize>,
    form: MessageForm,
    log: RefCell<SarifLog>,
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
        let size = if io::stderr().is_terminal() { crossterm::terminal::size().ok() } else { None };
        let columns = size.map(|(columns, _)| usize::from(columns)).filter(|columns| *columns > 0);
        Terminal { color, columns, form, log: RefCell::default() }
    }

    /// Ends the messages of the command.
    pub(crate) fn finish(&self) {
        match self.form {
            MessageForm::Human | MessageForm::Json => {}
            MessageForm::Sarif => write_stderr(&self.log.take().document("qj", env!("CARGO_PKG_VERSION"))),
        }
    }

    /// Ends the messages and the process by a signal, so that a shell sees what ended it.
    pub(crate) fn die_of(&self, signal: i32) -> ! {
        self.finish();
        die_of(signal)
    }

    /// Prints diagnostics about texts; the number of errors.
    pub(crate) fn print_diagnostics<C: Code>(&self, sources: &SourceMap, diagnostics: &[Diagnostic<C>]) -> usize {
        let errors = diagnostics.iter().filter(|diagnostic| diagnostic.severity() == Severity::Error).count();
        match self.form {
            MessageForm::Json => write_stderr(&render::json(sources, diagnostics)),
            MessageForm::Sarif => self.log.borrow_mut().add(sources, diagnostics),
            MessageForm::Human => {
                write_stderr(&match self.columns {
                    Some(columns) => render::human_within(sources, diagnostics, self.color, columns),
                    None => render::human(sources, diagnostics, self.color),
                });
                let warnings = diagnostics.len() - errors;
                if let Some(first) = diagnostics.iter().find(|diagnostic| diagnostic.severity() == Severity::Error) {
                    let also = match warnings {
                        0 => String::new(),
                        1 => " and 1 warning".to_string(),
                        count => format!(" and {count} warnings"),
                    };
                    let errors = if errors == 1 { "1 error".to_string() } else { format!("{errors} errors") };
                    write_stderr(&format!("{errors}{also}; see `qj explain {}`\n", first.code.name()));
                }
            }
        }
        errors
    }

    /// Prints the diagnostic of a running program, which in text has a form of its own: generated executables print it
    /// too.
    pub(crate) fn print_fault<C: Code>(&self, sources: &SourceMap, diagnostic: &Diagnostic<C>, text: &str) {
        match self.form {
            MessageForm::Human => write_stderr(text),
            MessageForm::Json | MessageForm::Sarif => {
                self.print_diagnostics(sources, std::slice::from_ref(diagnostic));
            }
        }
    }

    /// Prints an error of the host.
    pub(crate) fn print_error(&self, error: &HostError) {
        self.print(&error.message());
    }

    /// Prints a warning without a location.
    pub(crate) fn print_warning(&self, text: impl Into<String>) {
        self.print(&Message::new(Severity::Warning, text));
    }

    /// Prints a note.
    pub(crate) fn print_note(&self, text: impl Into<String>) {
        self.print(&Message::new(Severity::Note, text));
    }

    /// Prints a line, or a few that belong together, about what the command does: a note, and in text without the word.
    pub(crate) fn print_status(&self, text: impl Into<String>) {
        let text = text.into();
        match self.form {
            MessageForm::Human => write_stderr(&format!("{text}\n")),
            MessageForm::Json | MessageForm::Sarif => self.print_note(text),
        }
    }

    /// Prints an error of the command line; in text, the rest follows as it is.
    pub(crate) fn print_refusal(&self, code: &'static str, cause: &str, rest: &str) {
        let error = Message::new(Severity::Error, cause).code(code);
        match self.form {
            MessageForm::Human => {
                self.print(&error);
                write_stderr(rest);
            }
            MessageForm::Json | MessageForm::Sarif => match rest.trim() {
                "" => self.print(&error),
                help => self.print(&error.help(help.strip_prefix("help: ").unwrap_or(help))),
            },
        }
    }

    /// Prints a message without a location.
    pub(crate) fn print(&self, message: &Message) {
        match self.form {
            MessageForm::Human => {
                let title = match message.severity {
                    Severity::Error | Severity::Fault => self.bold_red(&message.title()),
                    Severity::Warning | Severity::Note => message.title(),
                };
                let help = message.help.as_ref().map_or_else(String::new, |help| format!("help: {help}\n"));
                write_stderr(&format!("{title}: {}\n{help}", message.text));
            }
            MessageForm::Json => write_stderr(&format!("{}\n", render::json_message(message))),
            MessageForm::Sarif => self.log.borrow_mut().add_message(message),
        }
    }

    /// Whether a line of progress may be shown and overwritten: for the eyes, so neither in a file nor among messages
    /// for programs.
    pub(crate) fn shows_progress(&self) -> bool {
        self.form == MessageForm::Human && io::stderr().is_terminal()
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

/// Replaces the line of progress on the terminal; an empty one removes it.
pub(crate) fn show_progress(line: &str) {
    write_stderr(&format!("\r{line}\x1b[K"));
}

/// Writes to standard error. A failure is ignored: there is no other place to report it.
fn write_stderr(text: &str) {
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

/// Writes a text to a file as [`write_output`] does, but does not touch a file that has this content already.
pub(crate) fn update_output(output: Option<&Path>, text: &str) -> Result<(), CliError> {
    match output.filter(|path| *path != Path::new("-")) {
        Some(path) => update_file(path, text.as_bytes()).map_err(CliError::from),
        None => print(text.as_bytes()),
    }
}

/// Prints a verdict. A closed pipe does not end the command, because its exit status is a result too.
pub(crate) fn print_verdict(bytes: &[u8]) -> Result<(), CliError> {
    print(bytes).or_else(|stop| if stop.error.is_none() { Ok(()) } else { Err(stop) })
}
