//! Tasks of the workspace: `cargo xtask test | bench NAME | corpus DIR | install --prefix DIR`. This file reads the
//! arguments; each task has a file of its own. Knows no crate of the product, so that it builds in a second.
#![forbid(unsafe_code)]

mod bench;
mod codegen;
mod compare_c;
mod corpus;
mod install;
mod kernel;
mod malformed;
mod pipes;
mod portable;
mod run;
mod simulate;
mod test;
mod tools;

use std::path::PathBuf;
use std::process::ExitCode;

use lexopt::prelude::{Long, Short, Value, ValueExt};

use crate::run::Failure;
use crate::test::Suite;

const HELP: &str = "\
Tasks of the Quaject workspace

cargo xtask test                   install what the tests need, then run every test
cargo xtask test --quick           likewise, with small sizes
cargo xtask bench                  list the benchmarks
cargo xtask bench NAME [ARG...]    run bench/NAME, with its peers built from the package registries
cargo xtask corpus DIR             compare packet filters with bpf_filter on DIR's captures and expressions
cargo xtask malformed [PROGRAM] [--packets N]
                                   send ten million, or N, malformed packets to each program of examples/, or to one
cargo xtask pipes [--parts N]      compare every composition of up to four steps with the reference, at every length up to
                                   300 and every pair of alignments, or at N 64ths of the pairs, each of which has every
                                   alignment of the source and of the target
cargo xtask portable               check that the packages which build on other systems do, for macOS and Windows
cargo xtask simulate [PROGRAM] [--hours N]
                                   run six programs of examples/, or one, on networks that fail, for a day of
                                   their clock, or N hours
cargo xtask compare-c OLD_QJ [NEW_QJ]
                                   compare the C that two builds of qj generate for every program of the repository in
                                   every mode, names and comments excepted; NEW_QJ defaults to a build of this tree
cargo xtask codegen                write the emitters that machines/*.spec generate
cargo xtask kernel                 build the kernel's image for `qj kernel run`, and say where it is
cargo xtask kernel --check         check the format and the lints of the kernel, and run the tests of its readers of files
cargo xtask install --prefix DIR [--libdir DIR] [--destdir DIR]
                                   build a release and install qj, man pages, completions, headers, C libraries, examples;
                                   --libdir is below the prefix unless absolute; --destdir, or DESTDIR, goes in front
cargo xtask tools                  install what the tests need, and no more

exit status: 0 done, 1 a task failed, 2 wrong usage
";

/// What the arguments ask for.
enum Task {
    Help,
    Tools,
    Test(Suite),
    Codegen,
    CompareC { old: PathBuf, new: Option<PathBuf> },
    Corpus { folder: PathBuf, arguments: Vec<std::ffi::OsString> },
    Malformed { program: Option<String>, packets: u64 },
    Pipes { parts: u64 },
    Portable,
    Simulate { program: Option<String>, hours: u64 },
    ListBenches,
    Bench { name: String, arguments: Vec<std::ffi::OsString> },
    Install(install::Layout),
    Kernel(kernel::Work),
}

fn main() -> ExitCode {
    let task = match read_arguments() {
        Ok(task) => task,
        Err(error) => {
            eprintln!("error: {error}\n\n{HELP}");
            return ExitCode::from(2);
        }
    };
    let outcome = match task {
        Task::Help => {
            print!("{HELP}");
            Ok(())
        }
        Task::Tools => tools::provide(),
        Task::Test(suite) => test::run(suite),
        Task::Codegen => codegen::run(),
        Task::CompareC { old, new } => compare_c::run(&old, new.as_deref()),
        Task::Corpus { folder, arguments } => corpus::run(&folder, &arguments),
        Task::Malformed { program, packets } => malformed::run(program.as_deref(), packets),
        Task::Pipes { parts } => pipes::run(parts),
        Task::Portable => portable::run(),
        Task::Simulate { program, hours } => simulate::run(program.as_deref(), hours),
        Task::ListBenches => bench::list(),
        Task::Bench { name, arguments } => bench::run(&name, &arguments),
        Task::Install(layout) => install::run(&layout),
        Task::Kernel(work) => kernel::run(work),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure(reason)) => {
            eprintln!("error: {reason}");
            ExitCode::FAILURE
        }
    }
}

fn read_arguments() -> Result<Task, lexopt::Error> {
    let mut parser = lexopt::Parser::from_env();
    let task = match parser.next()? {
        None | Some(Short('h') | Long("help")) => return Ok(Task::Help),
        Some(Value(task)) => task.string()?,
        Some(other) => return Err(other.unexpected()),
    };
    match task.as_str() {
        "tools" => no_more(&mut parser, Task::Tools),
        "test" => match parser.next()? {
            None => Ok(Task::Test(Suite::Full)),
            Some(Long("quick")) => no_more(&mut parser, Task::Test(Suite::Quick)),
            Some(other) => Err(other.unexpected()),
        },
        "codegen" => no_more(&mut parser, Task::Codegen),
        "compare-c" => {
            let builds: Vec<PathBuf> = parser.raw_args()?.map(PathBuf::from).collect();
            match builds.as_slice() {
                [old] => Ok(Task::CompareC { old: old.clone(), new: None }),
                [old, new] => Ok(Task::CompareC { old: old.clone(), new: Some(new.clone()) }),
                _ => Err("compare-c needs OLD_QJ, and may have NEW_QJ".into()),
            }
        }
        "corpus" => match parser.next()? {
            Some(Value(folder)) => Ok(Task::Corpus { folder: folder.into(), arguments: parser.raw_args()?.collect() }),
            Some(other) => Err(other.unexpected()),
            None => Err("corpus needs DIR, a folder with captures and expressions".into()),
        },
        "malformed" => {
            let (program, packets) = program_and_number(&mut parser, "packets")?;
            Ok(Task::Malformed { program, packets: packets.unwrap_or(malformed::PACKETS) })
        }
        "pipes" => match parser.next()? {
            None => Ok(Task::Pipes { parts: pipes::PARTS }),
            Some(Long("parts")) => {
                let parts = parser.value()?.parse()?;
                no_more(&mut parser, Task::Pipes { parts })
            }
            Some(other) => Err(other.unexpected()),
        },
        "portable" => no_more(&mut parser, Task::Portable),
        "simulate" => {
            let (program, hours) = program_and_number(&mut parser, "hours")?;
            Ok(Task::Simulate { program, hours: hours.unwrap_or(simulate::HOURS) })
        }
        "bench" => match parser.next()? {
            None => Ok(Task::ListBenches),
            Some(Value(name)) => Ok(Task::Bench { name: name.string()?, arguments: parser.raw_args()?.collect() }),
            Some(other) => Err(other.unexpected()),
        },
        "kernel" => match parser.next()? {
            None => Ok(Task::Kernel(kernel::Work::Build)),
            Some(Long("check")) => no_more(&mut parser, Task::Kernel(kernel::Work::Check)),
            Some(other) => Err(other.unexpected()),
        },
        "install" => install_layout(&mut parser).map(Task::Install),
        other => Err(format!("there is no task `{other}`").into()),
    }
}

/// `[PROGRAM] [--OPTION N]`
fn program_and_number(
    parser: &mut lexopt::Parser,
    option: &str,
) -> Result<(Option<String>, Option<u64>), lexopt::Error> {
    let (mut program, mut number) = (None, None);
    while let Some(argument) = parser.next()? {
        match argument {
            Value(name) if program.is_none() => program = Some(name.string()?),
            Long(name) if name == option => number = Some(parser.value()?.parse()?),
            other => return Err(other.unexpected()),
        }
    }
    Ok((program, number))
}

/// `--prefix DIR [--libdir DIR] [--destdir DIR]`
fn install_layout(parser: &mut lexopt::Parser) -> Result<install::Layout, lexopt::Error> {
    let (mut prefix, mut libdir, mut destdir) = (None, None, std::env::var_os("DESTDIR").map(PathBuf::from));
    while let Some(argument) = parser.next()? {
        match argument {
            Long("prefix") => prefix = Some(PathBuf::from(parser.value()?)),
            Long("libdir") => libdir = Some(PathBuf::from(parser.value()?)),
            Long("destdir") => destdir = Some(PathBuf::from(parser.value()?)),
            other => return Err(other.unexpected()),
        }
    }
    let prefix = prefix.ok_or("install needs --prefix DIR")?;
    install::Layout::new(&prefix, libdir.as_deref(), destdir.as_deref())
        .map_err(|error| format!("the working folder is not known: {error}").into())
}

fn no_more(parser: &mut lexopt::Parser, task: Task) -> Result<Task, lexopt::Error> {
    match parser.next()? {
        None => Ok(task),
        Some(other) => Err(other.unexpected()),
    }
}
