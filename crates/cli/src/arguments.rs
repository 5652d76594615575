//! What can be written after `qj`, with its help. Knows no command's work.

use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;
use std::path::PathBuf;

/// Checks, runs and compiles programs in ESP, the language of processes and channels for systems code.
#[derive(Parser, Debug)]
#[command(
    name = "qj",
    version,
    max_term_width = 100,
    propagate_version = true,
    disable_help_subcommand = true,
    after_help = "Exit status: 0 done, 1 the program is wrong, 2 wrong usage.\n\
                  Each command's help, `qj COMMAND --help`, ends with examples."
)]
pub(crate) struct Arguments {
    /// When to colour messages
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", help_heading = "Messages")]
    pub(crate) color: ColorChoice,
    /// How to write the compiler's messages on standard error: for people, or one JSON object per line
    #[arg(long, global = true, value_name = "FORM", default_value = "human", help_heading = "Messages")]
    pub(crate) messages: MessageForm,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum ColorChoice {
    /// If standard error is a terminal and NO_COLOR is not set
    Auto,
    Always,
    Never,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum MessageForm {
    Human,
    Json,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    Check(Check),
    Fmt(Fmt),
    Graph(Graph),
    Explain(Explain),
    Completions(Completions),
    Man(Man),
}

/// Find every mistake in programs, without running them
///
/// Checks syntax, names, types, definite assignment, purity, that every message has exactly one reader, and more.
/// Each message has a code that `qj explain` explains.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    qj check main.esp\n  \
    qj check examples/*.esp\n  \
    qj check sender.esp --fast-paths sender.fp\n  \
    qj check --messages json main.esp 2>&1 | jq .code\n  \
    qj explain E0405")]
pub(crate) struct Check {
    /// Programs; `-` is standard input
    #[arg(required = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,
    /// A separate file of fast paths for the program
    #[arg(long, value_name = "FILE.fp", value_hint = ValueHint::FilePath)]
    pub(crate) fast_paths: Vec<PathBuf>,
}

/// Lay programs out in the standard way
///
/// Files are rewritten in place; standard input is rewritten to standard output. A program with syntax errors is left
/// as it is.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    qj fmt main.esp parts/*.esp\n  \
    qj fmt --check *.esp          for continuous integration\n  \
    qj fmt < main.esp             from an editor")]
pub(crate) struct Fmt {
    /// Programs; none, or `-`, is standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,
    /// Change nothing; list the files that would change and end with status 1 if there are any
    #[arg(long)]
    pub(crate) check: bool,
}

/// Draw processes and channels as SVG
///
/// Boxes are processes, pills are channels, yellow pills are external channels; an arrow into a channel is an `out`,
/// one out of it an `in`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    qj graph main.esp -o main.svg\n  \
    qj graph main.esp > main.svg")]
pub(crate) struct Graph {
    /// The program; `-` is standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// Where to write the picture, instead of standard output
    #[arg(short, long, value_name = "FILE.svg", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
}

/// Explain a message's code
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    qj explain E0405\n  \
    qj explain             lists all codes")]
pub(crate) struct Explain {
    /// The code, such as E0405
    #[arg(value_name = "CODE")]
    pub(crate) code: Option<String>,
}

/// Print the completions of a shell
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    qj completions bash > ~/.local/share/bash-completion/completions/qj\n  \
    qj completions zsh > ~/.zfunc/_qj\n  \
    qj completions fish > ~/.config/fish/completions/qj.fish")]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub(crate) shell: Shell,
}

/// Print the manual page
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    qj man | man -l -\n  \
    qj man > ~/.local/share/man/man1/qj.1")]
pub(crate) struct Man {}
