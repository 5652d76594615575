//! What `qj` prints and with which status it ends. Knows no command.

use crate::arguments::{ColorChoice, MessageForm};
use quaject_diagnostic::{self as render, Color};
use quaject_esp_run::files::write_file;
use quaject_esp_run::{Blame, Trouble};
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
    Wrong,
    /// The command line is wrong.
    Usage,
    /// A fault while running.
    Fault,
    /// A limit was reached before there was an answer.
    Unfinished,
    /// What the program itself said.
    Said(u8),
}

impl From<Status> for ExitCode {
    fn from(status: Status) -> ExitCode {
        ExitCode::from(match status {
            Status::Done => 0,
            Status::Wrong => 1,
            Status::Usage => 2,
            Status::Fault => 3,
            Status::Unfinished => 4,
            Status::Said(status) => status,
        })
    }
}

/// Why a command could not go on, with everything said already or to be said.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Stop {
    pub(crate) status: Status,
    pub(crate) trouble: Option<Trouble>,
}

impl Stop {
    /// Everything has been said.
    pub(crate) fn silent(status: Status) -> Stop {
        Stop { status, trouble: None }
    }

    /// Something is in the way: a file or program, or the command line.
    pub(crate) fn at(trouble: Trouble) -> Stop {
        let status = match trouble.blame {
            Blame::Files => Status::Wrong,
            Blame::Command => Status::Usage,
        };
        Stop { status, trouble: Some(trouble) }
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

    /// Prints what is in the way and how to get around it.
    pub(crate) fn trouble(&self, trouble: &Trouble) {
        match self.form {
            MessageForm::Human => {
                let mut text = format!("{}: {}\n", self.bold_red("error"), trouble.cause);
                if let Some(help) = &trouble.help {
                    text.push_str(&format!("help: {help}\n"));
                }
                say(&text);
            }
            MessageForm::Json | MessageForm::Sarif => {
                let object = serde_json::json!({
                    "severity": "error", "message": trouble.cause, "help": trouble.help,
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
pub(crate) fn print(bytes: &[u8]) -> Result<(), Stop> {
    let mut output = io::stdout().lock();
    match output.write_all(bytes).and_then(|()| output.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(Stop::silent(Status::Done)),
        Err(error) => Err(Stop::at(Trouble::file("write", "standard output", &error))),
    }
}

/// Writes one text to a file, or prints it: where none is named, or `-`.
pub(crate) fn deliver(output: Option<&Path>, text: &str) -> Result<(), Stop> {
    match output.filter(|path| *path != Path::new("-")) {
        Some(path) => write_file(path, text.as_bytes()).map_err(Stop::at),
        None => print(text.as_bytes()),
    }
}

/// Prints a verdict. That its reader leaves early changes nothing: the command goes on, and its status tells the rest.
pub(crate) fn print_verdict(bytes: &[u8]) -> Result<(), Stop> {
    print(bytes).or_else(|stop| if stop.trouble.is_none() { Ok(()) } else { Err(stop) })
}
