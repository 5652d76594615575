//! Opens and creates captures by name, with errors that name them. The formats are in `quaject_filter::capture`.

use quaject_esp_run::files::NewFile;
use quaject_esp_run::{HostCode, HostError, Signals};
use quaject_filter::capture::{
    CaptureError, CaptureProblem, CapturedPacket, VisitError, each_packet, write_header, write_packet,
};
use quaject_filter::link::LinkLayer;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

/// When the reading of a capture ends.
#[derive(Clone, Copy)]
pub(crate) enum ReadUntil<'s> {
    /// At its end; signals have their default action.
    End,
    /// At its end, or when a signal arrives.
    Signal(&'s Signals),
}

/// Passes every packet of a capture to `take`. A truncated capture yields its complete packets, then an error, as does
/// one that a signal interrupts.
pub(crate) fn read_capture(
    path: &Path,
    until: ReadUntil<'_>,
    take: impl FnMut(CapturedPacket<'_>) -> Result<(), HostError>,
) -> Result<(), HostError> {
    let name = if path.as_os_str() == "-" { "standard input".to_owned() } else { path.display().to_string() };
    let source = if path.as_os_str() == "-" {
        CaptureSource::StandardInput(io::stdin())
    } else {
        let opened = File::open(path).and_then(|file| {
            if file.metadata()?.is_dir() { Err(io::Error::from(io::ErrorKind::IsADirectory)) } else { Ok(file) }
        });
        CaptureSource::File(opened.map_err(|error| HostError::file("read", &name, &error))?)
    };
    match (each_packet(Interruptible { source, until }, take), until) {
        (
            Err(VisitError::Capture(CaptureError { problem: CaptureProblem::Unreadable, packets })),
            ReadUntil::Signal(own),
        ) if own.pending().is_some() => Err(HostError::new(
            HostCode::Content,
            format!("`{name}` was read up to packet {packets}: a signal arrived"),
        )
        .help("the packets before were processed")),
        (outcome, _) => outcome.map_err(|error| match error {
            VisitError::Capture(error) => described(&name, &error),
            VisitError::Visitor(error) => error,
        }),
    }
}

/// What a capture is read from.
enum CaptureSource {
    StandardInput(io::Stdin),
    File(File),
}

/// A source that ends with an error when a signal arrives: a pipe may stay open, and silent, for ever.
struct Interruptible<'s> {
    source: CaptureSource,
    until: ReadUntil<'s>,
}

impl Read for Interruptible<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let ReadUntil::Signal(signals) = self.until {
            wait_for_input(&self.source, signals)?;
            if signals.pending().is_some() {
                return Err(io::Error::other("a signal"));
            }
        }
        match &mut self.source {
            CaptureSource::StandardInput(input) => input.read(buffer),
            CaptureSource::File(file) => file.read(buffer),
        }
    }
}

/// Waits until a source can be read, or a signal arrives. Nothing is left in a buffer of the source: captures are read
/// in larger pieces than standard input.
#[cfg(unix)]
fn wait_for_input(source: &CaptureSource, signals: &Signals) -> io::Result<()> {
    use rustix::event::{PollFd, PollFlags, poll};
    use std::os::fd::AsFd;
    let source = match source {
        CaptureSource::StandardInput(input) => input.as_fd(),
        CaptureSource::File(file) => file.as_fd(),
    };
    let mut ready = [
        PollFd::from_borrowed_fd(source, PollFlags::IN),
        PollFd::from_borrowed_fd(signals.descriptor(), PollFlags::IN),
    ];
    match poll(&mut ready, None) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Not waited for on this system: a signal is noticed when there is input.
#[cfg(not(unix))]
fn wait_for_input(_: &CaptureSource, _: &Signals) -> io::Result<()> {
    Ok(())
}

fn described(name: &str, error: &CaptureError) -> HostError {
    match error.problem {
        CaptureProblem::UnknownFormat => HostError::new(
            HostCode::Content,
            format!("`{name}` is no capture: it does not begin as pcap and pcapng files do"),
        )
        .help("`tcpdump -w FILE` and Wireshark write such files"),
        CaptureProblem::UnsupportedVersion
        | CaptureProblem::UndescribedInterface
        | CaptureProblem::Damaged
        | CaptureProblem::Truncated
        | CaptureProblem::OversizedBlock
        | CaptureProblem::Unreadable => HostError::new(HostCode::Content, format!("`{name}` {error}"))
            .help("the packets before were read; `editcap` and `pcapfix` repair captures"),
    }
}

/// A pcap file that is being written, with times in nanoseconds.
pub(crate) struct CaptureFile {
    file: NewFile,
    pub(crate) packets: u64,
}

impl CaptureFile {
    /// Creates a temporary file, which `finish` renames to its name.
    pub(crate) fn create(path: &Path, link: LinkLayer) -> Result<CaptureFile, HostError> {
        let mut file = NewFile::create(path)?;
        write_header(&mut file, link).map_err(|error| HostError::file("write", path.display(), &error))?;
        Ok(CaptureFile { file, packets: 0 })
    }

    /// Adds a packet.
    pub(crate) fn write(&mut self, packet: &CapturedPacket<'_>) -> Result<(), HostError> {
        self.packets += 1;
        let written = write_packet(&mut self.file, packet);
        written.map_err(|error| HostError::file("write", self.file.path().display(), &error))
    }

    /// Writes what has not been written yet.
    pub(crate) fn flush(&mut self) -> Result<(), HostError> {
        self.file.flush().map_err(|error| HostError::file("write", self.file.path().display(), &error))
    }

    /// Renames the file to its name.
    pub(crate) fn finish(self) -> Result<(), HostError> {
        self.file.finish()
    }
}
