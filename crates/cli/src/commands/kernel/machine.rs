//! A machine in QEMU: its command, its output, and its end. Two serial ports lead out of it: the console of the
//! program, and the kernel's log.

use super::{counts, outcome};
use crate::arguments::{MachineOptions, ProgramArguments};
use quaject_esp_run::{HostCode, HostError, Signals};
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// The emulator.
const EMULATOR: &str = "qemu-system-x86_64";
/// The kernel's limit is above it.
const MAX_COMMAND_LINE: usize = 60_000;
/// How often signals and the time limit are looked at.
const POLL: Duration = Duration::from_millis(20);

/// What is started.
pub(super) struct Machine<'p> {
    pub(super) image: PathBuf,
    pub(super) ramdisk: &'p Path,
    pub(super) memory_mib: u32,
    pub(super) command_line: String,
    pub(super) report: Report,
    pub(super) timeout: Option<Duration>,
}

/// What the kernel reports in addition to its failures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Report {
    Nothing,
    /// Each call.
    Calls,
    /// What each call costs; the machine counts instructions.
    Counts,
}

/// What the log of a machine says at its end.
#[derive(Default, Debug)]
pub(super) struct Ended {
    /// Lines of counts, behind their prefix.
    pub(super) counts: Vec<String>,
    /// The outcome, behind its prefix; empty if there is none.
    pub(super) outcome: String,
}

/// How a machine has ended.
pub(super) enum Ending {
    /// By itself.
    Ended(Ended),
    TimeLimit,
    /// A signal to `qj`.
    Signal(i32),
}

/// What the threads that read the machine's output report.
enum Event {
    /// The console is at its end, or standard output takes no more.
    Console(io::Result<()>),
    /// The log is at its end.
    Log(Ended),
}

/// The kernel's command line (`kernel/src/options.rs`).
pub(super) fn command_line(
    options: &MachineOptions,
    program: &ProgramArguments,
    report: Report,
) -> Result<String, HostError> {
    let mut words: Vec<String> = program.words.iter().map(|argument| word("arg", argument)).collect();
    words.extend(options.env.iter().map(|variable| word("env", variable)));
    match report {
        Report::Nothing => {}
        Report::Calls => words.push("trace".to_owned()),
        Report::Counts => words.push("count".to_owned()),
    }
    let line = words.join(" ");
    if line.len() > MAX_COMMAND_LINE {
        let cause = format!("the arguments and the environment have more than {MAX_COMMAND_LINE} bytes");
        return Err(HostError::usage(HostCode::Size, cause).help("put them into a file of an archive"));
    }
    Ok(line)
}

fn word(name: &str, value: &OsStr) -> String {
    let mut word = format!("{name}=");
    for byte in value.as_encoded_bytes() {
        if byte.is_ascii_alphanumeric() || b"-_./:=,+@".contains(byte) {
            word.push(char::from(*byte));
        } else {
            write!(word, "%{byte:02x}").expect("a string takes everything");
        }
    }
    word
}

impl Machine<'_> {
    fn command(&self) -> Command {
        let mut command = Command::new(EMULATOR);
        command.args(["-accel", "tcg", "-cpu", "max,-erms,-fsrm", "-display", "none", "-nodefaults", "-no-reboot"]);
        command.args(["-m", &self.memory_mib.to_string(), "-serial", "stdio"]);
        // A pipe: QEMU opens it anew, and nothing is cut.
        command.args(["-chardev", "file,id=log,path=/dev/stderr", "-serial", "chardev:log"]);
        command.args(["-device", "isa-debug-exit,iobase=0xf4,iosize=0x04", "-append", &self.command_line]);
        command.arg("-kernel").arg(&self.image).arg("-initrd").arg(self.ramdisk);
        match self.report {
            Report::Nothing | Report::Calls => {}
            // A nanosecond of the machine's time for each instruction.
            Report::Counts => drop(command.args(["-icount", "shift=0,sleep=off"])),
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs the machine to its end; its console becomes standard output, its log standard error.
    pub(super) fn run(&self, signals: &Signals) -> Result<Ending, HostError> {
        let mut child = self.command().spawn().map_err(|error| {
            HostError::new(HostCode::Tool, format!("cannot run `{EMULATOR}`: {}", error.kind()))
                .help("install QEMU: `sudo apt-get install qemu-system-x86 seabios` on Debian")
        })?;
        let console = child.stdout.take().expect("standard output is piped");
        let log = child.stderr.take().expect("standard error is piped");
        let (events, received) = channel();
        forward(console, events.clone(), |console| Event::Console(copy_console(console)));
        forward(log, events, |log| Event::Log(copy_log(log)));
        let start = Instant::now();
        let (mut ended, mut is_console_at_end) = (None, false);
        while ended.is_none() || !is_console_at_end {
            match received.recv_timeout(POLL) {
                Ok(Event::Console(Ok(()))) => is_console_at_end = true,
                Ok(Event::Console(Err(error))) => {
                    end(&mut child);
                    return Err(HostError::file("write", "standard output", &error));
                }
                Ok(Event::Log(last)) => ended = Some(last),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => unreachable!("each reader sends its event before it ends"),
            }
            if let Some(signal) = signals.pending() {
                end(&mut child);
                return Ok(Ending::Signal(signal));
            }
            if self.timeout.is_some_and(|limit| start.elapsed() >= limit) {
                end(&mut child);
                return Ok(Ending::TimeLimit);
            }
        }
        let _ = child.wait();
        Ok(Ending::Ended(ended.expect("the loop ends with it")))
    }
}

/// Ends the machine. It may have ended by itself; either way nothing of it is left.
fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

fn forward<R: Read + Send + 'static>(from: R, events: Sender<Event>, work: impl FnOnce(R) -> Event + Send + 'static) {
    thread::spawn(move || {
        // The receiver has ended if the machine has been ended.
        let _ = events.send(work(from));
    });
}

/// Copies what the program writes to standard output, at once.
fn copy_console(mut console: impl Read) -> io::Result<()> {
    let mut buffer = [0; 4096];
    loop {
        // A pipe from a child: an error means that there is no more.
        let length = console.read(&mut buffer).unwrap_or(0);
        if length == 0 {
            return Ok(());
        }
        let mut output = io::stdout();
        output.write_all(&buffer[..length])?;
        output.flush()?;
    }
}

/// Copies the log to standard error, except for counts and the last line, which are returned.
fn copy_log(log: impl Read) -> Ended {
    let mut ended = Ended::default();
    for line in BufReader::new(log).split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line);
        if let Some(last) = line.strip_prefix(outcome::PREFIX) {
            last.clone_into(&mut ended.outcome);
        } else if let Some(count) = line.strip_prefix(counts::PREFIX) {
            ended.counts.push(count.to_owned());
        } else {
            // QEMU's own lines say whose they are.
            let source = if line.starts_with("qemu") { "" } else { "kernel: " };
            // A report that cannot be shown does not change the outcome.
            let _ = writeln!(io::stderr(), "{source}{line}");
        }
    }
    ended
}
