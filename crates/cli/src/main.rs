//! The command `qj`: arguments, files and terminals. The work of the commands is done by the libraries.
#![forbid(unsafe_code)]

mod arguments;
mod commands;
mod coverage;
mod project;
mod terminal;

use arguments::{Arguments, ColorChoice, Command, MessageForm};
use clap::{Parser, ValueEnum};
use quaject_diagnostic::Code;
use quaject_esp_run::HostCode;
use std::ffi::OsString;
use std::process::ExitCode;
use terminal::{CliError, Terminal};

/// The heap that is requested from the system at once, for many small allocations: most programs are compiled in less.
const HEAP_BYTES: usize = 32 << 20;

fn main() -> ExitCode {
    quaject_pages::heap_in_huge_pages(HEAP_BYTES);
    let Arguments { color, messages, command } = Arguments::try_parse().unwrap_or_else(|error| refuse(&error));
    let terminal = Terminal::new(color, messages);
    let outcome = match command {
        Command::Check(arguments) => commands::check::check(&terminal, arguments),
        Command::Run(arguments) => commands::run::run(&terminal, arguments),
        Command::Build(arguments) => commands::build::build(&terminal, arguments),
        Command::Fmt(arguments) => commands::fmt::fmt(&terminal, arguments),
        Command::Graph(arguments) => commands::graph::graph(&terminal, arguments),
        Command::Test(arguments) => commands::test::test(&terminal, arguments),
        Command::Explain(arguments) => commands::explain::explain(arguments),
        Command::Init(arguments) => commands::init::init(arguments),
        Command::Verify(arguments) => commands::verify::verify(&terminal, arguments),
        Command::Replay(arguments) => commands::replay::replay(&terminal, arguments),
        Command::Dap(arguments) => commands::dap::dap(&arguments),
        Command::Profile(arguments) => commands::profile::profile(&terminal, arguments),
        Command::Fastpath(arguments) => commands::profile::fastpath(&terminal, arguments),
        Command::Asm(arguments) => commands::asm::asm(&terminal, arguments),
        Command::Pipe(arguments) => commands::pipe::pipe(&terminal, arguments),
        Command::Filter(arguments) => commands::filter::filter(&terminal, arguments),
        Command::Tickc(arguments) => commands::tickc::tickc(&terminal, &arguments),
        Command::Kernel(arguments) => commands::kernel::kernel(&terminal, &arguments),
        Command::Lsp(arguments) => commands::lsp::lsp(arguments),
        Command::Completions(arguments) => commands::documents::completions(arguments),
        Command::Man(_) => commands::documents::man(),
    };
    let status = match outcome {
        Ok(status) => status,
        Err(CliError { status, error }) => {
            if let Some(error) = error {
                terminal.print(&error);
            }
            status
        }
    };
    terminal.finish();
    status.into()
}

/// Prints an error of the command line, or the help or version that it asks for, and ends the process.
fn refuse(error: &clap::Error) -> ! {
    let text = error.render().to_string();
    // Help and version are no errors; nor has the help that a lone `qj` prints a title.
    let Some(text) = text.strip_prefix("error: ") else { error.exit() };
    let (cause, rest) = text.split_once('\n').unwrap_or((text, ""));
    let terminal = Terminal::new(ColorChoice::Auto, requested_form(std::env::args_os()));
    terminal.print_refusal(HostCode::CommandLine.name(), cause, rest);
    terminal.finish();
    std::process::exit(error.exit_code())
}

/// The form of messages that a command line asks for which has an error elsewhere.
fn requested_form(words: impl Iterator<Item = OsString>) -> MessageForm {
    let mut is_value = false;
    for word in words.map(|word| word.to_string_lossy().into_owned()) {
        let value = if is_value { Some(&word[..]) } else { word.strip_prefix("--messages=") };
        if let Some(form) = value.and_then(|value| MessageForm::from_str(value, false).ok()) {
            return form;
        }
        is_value = word == "--messages";
    }
    MessageForm::Human
}
