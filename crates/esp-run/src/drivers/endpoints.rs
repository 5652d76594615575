//! Opens what channels read and write: files, and what has two directions at once: commands, serial lines, terminals of
//! one's own. Those are opened once, for the channels of both directions.

use crate::binding::{Driver, StreamEndpoint};
use crate::error::HostError;
use crate::files::is_same_file;
use quaject_esp_ir::ir::{Boundary, Program};
use rustix::fs::OFlags;
use rustix::process::{Pid, Signal, kill_process_group};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How long a command to whom nobody listens may take to end by itself.
const CHILD_GRACE: Duration = Duration::from_millis(100);

/// Which directions of a endpoint channels use.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Directions {
    pub(crate) reads: bool,
    pub(crate) writes: bool,
}

/// Refuses to write a file that is read, or that the program was read from: a file that is written is emptied at once.
pub(crate) fn reject_aliased_files(program: &Program, drivers: &[Option<Driver>]) -> Result<(), HostError> {
    let file = |driver: &Option<Driver>| match driver.as_ref().and_then(Driver::endpoint) {
        Some(StreamEndpoint::Path(path)) => Some(path.clone()),
        Some(
            StreamEndpoint::Standard | StreamEndpoint::Command(_) | StreamEndpoint::Serial(..) | StreamEndpoint::Pty(_),
        )
        | None => None,
    };
    let at = |boundary| {
        let channels = program.channels.iter().zip(drivers).filter(move |(channel, _)| channel.boundary == boundary);
        channels.filter_map(|(channel, driver)| Some((&channel.name, file(driver)?)))
    };
    for (written, output) in at(Boundary::ToEnvironment) {
        let reader = at(Boundary::FromEnvironment).find(|(_, input)| is_same_file(&output, input));
        let cause = if let Some((read, _)) = reader {
            format!("channel `{written}` would overwrite `{}`, which channel `{read}` reads", output.display())
        } else if program.files.iter().any(|source| is_same_file(&output, Path::new(source))) {
            format!("channel `{written}` would overwrite `{}`, which is the program", output.display())
        } else {
            continue;
        };
        return Err(HostError::usage(cause).help(format!("bind it to another file with `--bind {written}=DRIVER`")));
    }
    Ok(())
}

/// Everything that was opened for a program and must be put away behind it.
#[derive(Default)]
pub(crate) struct OpenEndpoints {
    opened: Vec<Opened>,
    commands: Vec<Started>,
    /// Names made for terminals.
    links: Vec<PathBuf>,
    /// Other ends of terminals, held open: without any, reading this end would fail.
    ends: Vec<OwnedFd>,
}

/// A command that runs.
struct Started {
    command: String,
    child: Child,
    directions: Directions,
}

struct Opened {
    endpoint: StreamEndpoint,
    read: Option<File>,
    write: Option<File>,
}

impl OpenEndpoints {
    /// The way to read a endpoint, and what messages call it.
    pub(crate) fn reader(
        &mut self,
        endpoint: &StreamEndpoint,
        directions: Directions,
    ) -> Result<(File, String), HostError> {
        let name = name_of(endpoint, "standard input");
        let failed = |error: io::Error| HostError::file("read", &name, &error);
        let file = match endpoint {
            StreamEndpoint::Standard => io::stdin().as_fd().try_clone_to_owned().map(File::from),
            StreamEndpoint::Path(path) => File::open(path),
            StreamEndpoint::Command(_) | StreamEndpoint::Serial(..) | StreamEndpoint::Pty(_) => {
                self.open_once(endpoint, directions).and_then(|opened| opened.read.take().ok_or_else(taken))
            }
        };
        Ok((file.map_err(failed)?, name))
    }

    /// The way to write a endpoint; a file is made anew.
    pub(crate) fn writer(
        &mut self,
        endpoint: &StreamEndpoint,
        directions: Directions,
    ) -> Result<(File, String), HostError> {
        let name = name_of(endpoint, "standard output");
        let failed = |error: io::Error| HostError::file("write", &name, &error);
        let file = match endpoint {
            StreamEndpoint::Standard => io::stdout().as_fd().try_clone_to_owned().map(File::from),
            StreamEndpoint::Path(path) => File::create(path),
            StreamEndpoint::Command(_) | StreamEndpoint::Serial(..) | StreamEndpoint::Pty(_) => {
                self.open_once(endpoint, directions).and_then(|opened| opened.write.take().ok_or_else(taken))
            }
        };
        Ok((file.map_err(failed)?, name))
    }

    fn open_once(&mut self, endpoint: &StreamEndpoint, directions: Directions) -> io::Result<&mut Opened> {
        let at = match self.opened.iter().position(|opened| opened.endpoint == *endpoint) {
            Some(at) => at,
            None => {
                let (read, write) = match endpoint {
                    StreamEndpoint::Command(command) => self.start(command, directions)?,
                    StreamEndpoint::Serial(path, speed) => both(serial(path, *speed)?)?,
                    StreamEndpoint::Pty(name) => both(self.terminal(name)?)?,
                    StreamEndpoint::Standard | StreamEndpoint::Path(_) => (None, None),
                };
                self.opened.push(Opened { endpoint: endpoint.clone(), read, write });
                self.opened.len() - 1
            }
        };
        Ok(&mut self.opened[at])
    }

    /// Starts a command. What no channel reads of it goes where the program's own output goes.
    fn start(&mut self, command: &str, directions: Directions) -> io::Result<(Option<File>, Option<File>)> {
        let mut child = Command::new("sh")
            .args(["-c", command])
            .stdin(if directions.writes { Stdio::piped() } else { Stdio::null() })
            .stdout(if directions.reads { Stdio::piped() } else { Stdio::inherit() })
            // A group of its own, so that whoever the shell starts can be ended with it.
            .process_group(0)
            .spawn()?;
        let read = child.stdout.take().map(|pipe| File::from(OwnedFd::from(pipe)));
        let write = child.stdin.take().map(|pipe| File::from(OwnedFd::from(pipe)));
        self.commands.push(Started { command: command.to_string(), child, directions });
        for file in read.iter().chain(&write) {
            unblock(file)?;
        }
        Ok((read, write))
    }

    /// Makes a terminal whose other end has the name.
    fn terminal(&mut self, name: &Path) -> io::Result<File> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let control = openpt(flags)?;
        grantpt(&control)?;
        unlockpt(&control)?;
        let path = ptsname(&control, Vec::new())?;
        let path = Path::new(std::ffi::OsStr::from_bytes(path.as_bytes()));
        let end = serial(path, None)?;
        std::os::unix::fs::symlink(path, name)?;
        self.links.push(name.to_path_buf());
        self.ends.push(OwnedFd::from(end));
        let control = File::from(control);
        unblock(&control)?;
        Ok(control)
    }

    /// Ends what still runs, after its pipes have been closed: `graceful` waits for commands that the program wrote to,
    /// which see the end of their input. One that was only read has nobody left to write to.
    /// Tells of those that failed.
    pub(crate) fn close(&mut self, graceful: bool) -> Vec<String> {
        self.opened.clear();
        let mut notes = Vec::new();
        for Started { command, mut child, directions } in self.commands.drain(..) {
            match wait(&mut child, graceful && directions.writes) {
                Ok(Some(status)) if graceful && !status.success() => {
                    notes.push(format!("command `{command}` ended with {status}"));
                }
                Ok(_) => {}
                Err(error) => notes.push(format!("cannot wait for command `{command}`: {error}")),
            }
        }
        notes
    }
}

impl Drop for OpenEndpoints {
    fn drop(&mut self) {
        for link in &self.links {
            // Somebody else may have removed it.
            let _ = std::fs::remove_file(link);
        }
    }
}

/// How a command ends, if it does by itself. One that has closed its pipe, and ends next, is given the time to do so.
fn wait(child: &mut Child, graceful: bool) -> io::Result<Option<ExitStatus>> {
    if graceful {
        return child.wait().map(Some);
    }
    let started = Instant::now();
    while started.elapsed() < CHILD_GRACE {
        let ended = child.try_wait()?;
        if ended.is_some() {
            return Ok(ended);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    // It may have ended just now.
    let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
    child.wait().map(|_| None)
}

fn taken() -> io::Error {
    io::Error::other("two channels would share it")
}

fn name_of(endpoint: &StreamEndpoint, standard: &str) -> String {
    match endpoint {
        StreamEndpoint::Standard => standard.to_string(),
        StreamEndpoint::Path(path) | StreamEndpoint::Serial(path, _) | StreamEndpoint::Pty(path) => {
            path.display().to_string()
        }
        StreamEndpoint::Command(command) => command.clone(),
    }
}

/// Opens a serial line, or a terminal as one: no echo, no line editing, eight bits.
fn serial(path: &Path, speed: Option<u32>) -> io::Result<File> {
    let flags = (OFlags::NOCTTY | OFlags::NONBLOCK).bits() as i32;
    let file = OpenOptions::new().read(true).write(true).custom_flags(flags).open(path)?;
    let mut settings = tcgetattr(&file)?;
    settings.make_raw();
    if let Some(speed) = speed {
        settings.set_speed(speed)?;
    }
    tcsetattr(&file, OptionalActions::Now, &settings)?;
    Ok(file)
}

fn both(file: File) -> io::Result<(Option<File>, Option<File>)> {
    let other = file.try_clone()?;
    Ok((Some(file), Some(other)))
}

/// Nobody else has these descriptors, so their flags may be changed.
fn unblock(file: &File) -> io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(file)?;
    rustix::fs::fcntl_setfl(file, flags | OFlags::NONBLOCK)?;
    Ok(())
}
