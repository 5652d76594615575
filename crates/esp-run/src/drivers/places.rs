//! Opens what channels read and write: files, and what has two directions at once: commands, serial lines, terminals of
//! one's own. Those are opened once, for the channels of both directions.

use crate::binding::{Driver, Place};
use crate::files::are_one;
use crate::trouble::Trouble;
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
const MERCY: Duration = Duration::from_millis(100);

/// Which directions of a place channels use.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Use {
    pub(crate) reads: bool,
    pub(crate) writes: bool,
}

/// Refuses to write a file that is read, or that the program was read from: a file that is written is emptied at once.
pub(crate) fn keep_apart(program: &Program, drivers: &[Option<Driver>]) -> Result<(), Trouble> {
    let file = |driver: &Option<Driver>| match driver.as_ref().and_then(Driver::place) {
        Some(Place::Path(path)) => Some(path.clone()),
        Some(Place::Standard | Place::Command(_) | Place::Serial(..) | Place::Pty(_)) | None => None,
    };
    let at = |boundary| {
        let channels = program.channels.iter().zip(drivers).filter(move |(channel, _)| channel.boundary == boundary);
        channels.filter_map(|(channel, driver)| Some((&channel.name, file(driver)?)))
    };
    for (written, output) in at(Boundary::ToEnvironment) {
        let reader = at(Boundary::FromEnvironment).find(|(_, input)| are_one(&output, input));
        let cause = if let Some((read, _)) = reader {
            format!("channel `{written}` would overwrite `{}`, which channel `{read}` reads", output.display())
        } else if program.files.iter().any(|source| are_one(&output, Path::new(source))) {
            format!("channel `{written}` would overwrite `{}`, which is the program", output.display())
        } else {
            continue;
        };
        return Err(Trouble::usage(cause).help(format!("bind it to another file with `--bind {written}=DRIVER`")));
    }
    Ok(())
}

/// Everything that was opened for a program and must be put away behind it.
#[derive(Default)]
pub(crate) struct Places {
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
    used: Use,
}

struct Opened {
    place: Place,
    read: Option<File>,
    write: Option<File>,
}

impl Places {
    /// The way to read a place, and what messages call it.
    pub(crate) fn reader(&mut self, place: &Place, used: Use) -> Result<(File, String), Trouble> {
        let name = name_of(place, "standard input");
        let failed = |error: io::Error| Trouble::file("read", &name, &error);
        let file = match place {
            Place::Standard => io::stdin().as_fd().try_clone_to_owned().map(File::from),
            Place::Path(path) => File::open(path),
            Place::Command(_) | Place::Serial(..) | Place::Pty(_) => {
                self.once(place, used).and_then(|opened| opened.read.take().ok_or_else(taken))
            }
        };
        Ok((file.map_err(failed)?, name))
    }

    /// The way to write a place; a file is made anew.
    pub(crate) fn writer(&mut self, place: &Place, used: Use) -> Result<(File, String), Trouble> {
        let name = name_of(place, "standard output");
        let failed = |error: io::Error| Trouble::file("write", &name, &error);
        let file = match place {
            Place::Standard => io::stdout().as_fd().try_clone_to_owned().map(File::from),
            Place::Path(path) => File::create(path),
            Place::Command(_) | Place::Serial(..) | Place::Pty(_) => {
                self.once(place, used).and_then(|opened| opened.write.take().ok_or_else(taken))
            }
        };
        Ok((file.map_err(failed)?, name))
    }

    fn once(&mut self, place: &Place, used: Use) -> io::Result<&mut Opened> {
        let at = match self.opened.iter().position(|opened| opened.place == *place) {
            Some(at) => at,
            None => {
                let (read, write) = match place {
                    Place::Command(command) => self.start(command, used)?,
                    Place::Serial(path, speed) => both(serial(path, *speed)?)?,
                    Place::Pty(name) => both(self.terminal(name)?)?,
                    Place::Standard | Place::Path(_) => (None, None),
                };
                self.opened.push(Opened { place: place.clone(), read, write });
                self.opened.len() - 1
            }
        };
        Ok(&mut self.opened[at])
    }

    /// Starts a command. What no channel reads of it goes where the program's own output goes.
    fn start(&mut self, command: &str, used: Use) -> io::Result<(Option<File>, Option<File>)> {
        let mut child = Command::new("sh")
            .args(["-c", command])
            .stdin(if used.writes { Stdio::piped() } else { Stdio::null() })
            .stdout(if used.reads { Stdio::piped() } else { Stdio::inherit() })
            // A group of its own, so that whoever the shell starts can be ended with it.
            .process_group(0)
            .spawn()?;
        let read = child.stdout.take().map(|pipe| File::from(OwnedFd::from(pipe)));
        let write = child.stdin.take().map(|pipe| File::from(OwnedFd::from(pipe)));
        self.commands.push(Started { command: command.to_string(), child, used });
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

    /// Ends what still runs, after its pipes have been closed: `patiently` waits for commands that the program wrote to,
    /// which see the end of their input. One that was only read has nobody left to write to.
    /// Tells of those that failed.
    pub(crate) fn put_away(&mut self, patiently: bool) -> Vec<String> {
        self.opened.clear();
        let mut notes = Vec::new();
        for Started { command, mut child, used } in self.commands.drain(..) {
            match wait(&mut child, patiently && used.writes) {
                Ok(Some(status)) if patiently && !status.success() => {
                    notes.push(format!("command `{command}` ended with {status}"));
                }
                Ok(_) => {}
                Err(error) => notes.push(format!("cannot wait for command `{command}`: {error}")),
            }
        }
        notes
    }
}

impl Drop for Places {
    fn drop(&mut self) {
        for link in &self.links {
            // Somebody else may have removed it.
            let _ = std::fs::remove_file(link);
        }
    }
}

/// How a command ends, if it does by itself. One that has closed its pipe, and ends next, is given the time to do so.
fn wait(child: &mut Child, patiently: bool) -> io::Result<Option<ExitStatus>> {
    if patiently {
        return child.wait().map(Some);
    }
    let started = Instant::now();
    while started.elapsed() < MERCY {
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

fn name_of(place: &Place, standard: &str) -> String {
    match place {
        Place::Standard => standard.to_string(),
        Place::Path(path) | Place::Serial(path, _) | Place::Pty(path) => path.display().to_string(),
        Place::Command(command) => command.clone(),
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
