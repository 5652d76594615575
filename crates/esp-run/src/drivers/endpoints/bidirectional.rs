//! Endpoints with two directions: commands, serial lines, pseudo-terminals. Each is opened once, for the channels of
//! both directions.

use super::Directions;
use crate::binding::StreamEndpoint;
use crate::system::{ByteInput, ByteOutput};
use rustix::fs::OFlags;
use rustix::process::{Pid, Signal, kill_process_group};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The time in which a command may end by itself after its output is no longer read.
const CHILD_GRACE: Duration = Duration::from_millis(100);

/// How the controlling end of a pseudo-terminal is opened.
#[cfg(target_os = "linux")]
const PTY_FLAGS: OpenptFlags = OpenptFlags::RDWR.union(OpenptFlags::NOCTTY).union(OpenptFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
const PTY_FLAGS: OpenptFlags = OpenptFlags::RDWR.union(OpenptFlags::NOCTTY);

/// The endpoints with two directions that are open.
#[derive(Default)]
pub(super) struct Bidirectional {
    opened: Vec<Opened>,
    commands: Vec<RunningCommand>,
    /// Symbolic links to terminals, removed at the end.
    links: Vec<PathBuf>,
    /// The other ends of terminals, held open: reading the controlling end fails while no process has the other one
    /// open.
    terminal_ends: Vec<OwnedFd>,
}

struct RunningCommand {
    command: String,
    child: Child,
    directions: Directions,
}

struct Opened {
    endpoint: StreamEndpoint,
    read: Option<File>,
    write: Option<File>,
}

impl Bidirectional {
    /// The side that is read.
    pub(super) fn reader(&mut self, endpoint: &StreamEndpoint, directions: Directions) -> io::Result<ByteInput> {
        let file = self.open_once(endpoint, directions)?.read.take().ok_or_else(already_taken)?;
        ByteInput::of(file)
    }

    /// The side that is written.
    pub(super) fn writer(&mut self, endpoint: &StreamEndpoint, directions: Directions) -> io::Result<ByteOutput> {
        let file = self.open_once(endpoint, directions)?.write.take().ok_or_else(already_taken)?;
        ByteOutput::of(file)
    }

    fn open_once(&mut self, endpoint: &StreamEndpoint, directions: Directions) -> io::Result<&mut Opened> {
        let at = match self.opened.iter().position(|opened| opened.endpoint == *endpoint) {
            Some(at) => at,
            None => {
                let (read, write) = match endpoint {
                    StreamEndpoint::Command(command) => self.start_command(command, directions)?,
                    StreamEndpoint::Serial(path, speed) => both_directions(open_serial(path, *speed)?)?,
                    StreamEndpoint::Pty(name) => both_directions(self.open_terminal(name)?)?,
                    StreamEndpoint::Standard | StreamEndpoint::Path(_) => (None, None),
                };
                self.opened.push(Opened { endpoint: endpoint.clone(), read, write });
                self.opened.len() - 1
            }
        };
        Ok(&mut self.opened[at])
    }

    /// Starts a command. Its output, if no channel reads it, goes to the standard output of this process.
    fn start_command(&mut self, command: &str, directions: Directions) -> io::Result<(Option<File>, Option<File>)> {
        let mut child = Command::new("sh")
            .args(["-c", command])
            .stdin(if directions.writes { Stdio::piped() } else { Stdio::null() })
            .stdout(if directions.reads { Stdio::piped() } else { Stdio::inherit() })
            // A process group of its own, so that the processes that the shell starts end with it.
            .process_group(0)
            .spawn()?;
        let read = child.stdout.take().map(|pipe| File::from(OwnedFd::from(pipe)));
        let write = child.stdin.take().map(|pipe| File::from(OwnedFd::from(pipe)));
        self.commands.push(RunningCommand { command: command.to_string(), child, directions });
        for file in read.iter().chain(&write) {
            set_nonblocking(file)?;
        }
        Ok((read, write))
    }

    /// Makes a terminal and a symbolic link to its other end.
    fn open_terminal(&mut self, link: &Path) -> io::Result<File> {
        let control = openpt(PTY_FLAGS)?;
        grantpt(&control)?;
        unlockpt(&control)?;
        let path = ptsname(&control, Vec::new())?;
        let path = Path::new(std::ffi::OsStr::from_bytes(path.as_bytes()));
        let end = open_serial(path, None)?;
        std::os::unix::fs::symlink(path, link)?;
        self.links.push(link.to_path_buf());
        self.terminal_ends.push(OwnedFd::from(end));
        let control = File::from(control);
        set_nonblocking(&control)?;
        Ok(control)
    }

    /// See [`super::OpenEndpoints::close`].
    pub(super) fn close(&mut self, graceful: bool) -> Vec<String> {
        self.opened.clear();
        let mut notes = Vec::new();
        for RunningCommand { command, mut child, directions } in self.commands.drain(..) {
            // A command that was only read has no reader any more, so that it is not waited for.
            match wait_for_end(&mut child, graceful && directions.writes) {
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

impl Drop for Bidirectional {
    fn drop(&mut self) {
        for link in &self.links {
            // Another program may have removed it.
            let _ = std::fs::remove_file(link);
        }
    }
}

/// The exit status of a command, if it ends by itself: within [`CHILD_GRACE`] unless `graceful`, else it is killed.
fn wait_for_end(child: &mut Child, graceful: bool) -> io::Result<Option<ExitStatus>> {
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
    // It may have ended meanwhile.
    let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
    child.wait().map(|_| None)
}

fn already_taken() -> io::Error {
    io::Error::other("two channels would share it")
}

/// Opens a serial line, or a terminal as one: no echo, no line editing, eight bits.
fn open_serial(path: &Path, speed: Option<u32>) -> io::Result<File> {
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

fn both_directions(file: File) -> io::Result<(Option<File>, Option<File>)> {
    let other = file.try_clone()?;
    Ok((Some(file), Some(other)))
}

/// Makes a descriptor non-blocking; only for one that no other program shares.
fn set_nonblocking(file: &File) -> io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(file)?;
    rustix::fs::fcntl_setfl(file, flags | OFlags::NONBLOCK)?;
    Ok(())
}
