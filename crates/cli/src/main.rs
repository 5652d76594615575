//! The command `qj`: arguments, files and terminals. The work of the commands is done by the libraries.
#![forbid(unsafe_code)]

mod arguments;
mod commands;
mod terminal;

use arguments::{Arguments, Command};
use clap::Parser;
use std::process::ExitCode;
use terminal::{CliError, Terminal};

/// The heap that is requested from the system at once, for many small allocations: most programs are compiled in less.
const HEAP_BYTES: usize = 32 << 20;

fn main() -> ExitCode {
    quaject_pages::heap_in_huge_pages(HEAP_BYTES);
    let Arguments { color, messages, command } = Arguments::parse();
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
        Command::Profile(arguments) => commands::profile::profile(&terminal, arguments),
        Command::Fastpath(arguments) => commands::profile::fastpath(&terminal, arguments),
        Command::Asm(arguments) => commands::asm::asm(&terminal, arguments),
        Command::Pipe(arguments) => commands::pipe::pipe(&terminal, arguments),
        Command::Filter(arguments) => commands::filter::filter(&terminal, arguments),
        Command::Completions(arguments) => commands::documents::completions(arguments),
        Command::Man(_) => commands::documents::man(),
    };
    let status = match outcome {
        Ok(status) => status,
        Err(CliError { status, code, error }) => {
            if let Some(error) = error {
                terminal.print_coded_error(code, &error);
            }
            status
        }
    };
    status.into()
}
