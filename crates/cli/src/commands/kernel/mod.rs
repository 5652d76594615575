//! `qj kernel`: runs static Linux programs on the kernel of this repository, in QEMU.

mod counts;
mod image;
mod machine;
mod outcome;

use crate::arguments::{Kernel, KernelCommand, KernelCount, KernelRun, MachineOptions, ProgramArguments};
use crate::terminal::{CliError, Status, Terminal};
use counts::CallCount;
use machine::{Ended, Ending, Machine, Report};
use outcome::MachineOutcome;
use quaject_esp_run::{HostCode, HostError, Signals};
use std::fs::File;
use std::path::Path;
use std::time::Duration;

/// The statuses of ends that are not the program's.
const DEADLOCK: Status = Status::Exit(123);
const TIME_LIMIT: Status = Status::Exit(124);
const KERNEL_FAULT: Status = Status::Exit(125);
const REFUSED: Status = Status::Exit(126);

pub(crate) fn kernel(terminal: &Terminal, arguments: &Kernel) -> Result<Status, CliError> {
    match &arguments.command {
        KernelCommand::Run(arguments) => run(terminal, arguments),
        KernelCommand::Count(arguments) => count(terminal, arguments),
    }
}

fn run(terminal: &Terminal, arguments: &KernelRun) -> Result<Status, CliError> {
    let report = if arguments.trace { Report::Calls } else { Report::Nothing };
    let ended = start(terminal, &arguments.machine, &arguments.program, report)?;
    end(&ended, arguments.program.path())
}

fn count(terminal: &Terminal, arguments: &KernelCount) -> Result<Status, CliError> {
    let ended = start(terminal, &arguments.machine, &arguments.program, Report::Counts)?;
    let counts: Vec<CallCount> = ended.counts.iter().filter_map(|line| CallCount::read(line)).collect();
    if arguments.json {
        counts.iter().for_each(|count| eprintln!("{}", count.json()));
    } else {
        eprint!("{}", counts::table(&counts));
    }
    end(&ended, arguments.program.path())
}

/// Runs a program to its end; an error if the machine had to be ended.
fn start(
    terminal: &Terminal,
    options: &MachineOptions,
    program: &ProgramArguments,
    report: Report,
) -> Result<Ended, CliError> {
    // QEMU would report a missing program in words of its own.
    File::open(program.path()).map_err(|error| HostError::file("read", program.path().display(), &error))?;
    let machine = Machine {
        image: image::find(options.kernel.as_deref())?,
        ramdisk: program.path(),
        memory_mib: options.memory,
        command_line: machine::command_line(options, program, report)?,
        report,
        timeout: options.timeout.map(Duration::from_secs),
    };
    let signals = Signals::listen()?;
    match machine.run(&signals)? {
        Ending::Signal(signal) => terminal.die_of(signal),
        Ending::TimeLimit => {
            let limit = options.timeout.unwrap_or_default();
            let error = HostError::new(HostCode::Size, format!("the program runs for more than {limit} s"));
            Err(with_status(TIME_LIMIT, error.help("set another limit with `--timeout`")))
        }
        Ending::Ended(ended) => Ok(ended),
    }
}

/// The status of the command, from the last line of the kernel's log.
fn end(ended: &Ended, program: &Path) -> Result<Status, CliError> {
    let program = program.display();
    match MachineOutcome::read(&ended.outcome) {
        Some(MachineOutcome::Exited(status)) => Ok(Status::Exit(status)),
        Some(MachineOutcome::Killed(signal)) => Ok(Status::Exit(128 + signal)),
        Some(MachineOutcome::Refused) => {
            let error = HostError::new(HostCode::Content, format!("the kernel refuses `{program}`"));
            Err(with_status(REFUSED, error.help("the kernel's reason is above")))
        }
        Some(MachineOutcome::Deadlock) => {
            let error = HostError::new(
                HostCode::Deadlock,
                format!("every thread of `{program}` waits for another one, or for input that never comes"),
            );
            Err(with_status(DEADLOCK, error.help("`--trace` reports the calls that block")))
        }
        Some(MachineOutcome::KernelFault) => {
            let error = HostError::new(HostCode::Defect, format!("the kernel failed while it ran `{program}`"));
            Err(with_status(KERNEL_FAULT, error.help("report it with the program and the registers above")))
        }
        None => {
            let error = HostError::new(HostCode::ToolFailure, "QEMU ended before the kernel did");
            Err(with_status(KERNEL_FAULT, error.help("what QEMU reports is above; is the image the kernel's?")))
        }
    }
}

fn with_status(status: Status, error: HostError) -> CliError {
    CliError { status, error: Some(error.message()) }
}
