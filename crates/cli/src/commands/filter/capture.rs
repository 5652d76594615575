//! Opens and creates captures by name, with errors that name them. The formats are in `quaject_filter::capture`.

use quaject_esp_run::files::NewFile;
use quaject_esp_run::{HostCode, HostError};
use quaject_filter::capture::{
    CaptureError, CaptureProblem, CapturedPacket, VisitError, each_packet, write_header, write_packet,
};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

/// Passes every packet of a capture to `take`. A truncated capture yields its complete packets, then an error.
pub(crate) fn read_capture(
    path: &Path,
    take: impl FnMut(CapturedPacket<'_>) -> Result<(), HostError>,
) -> Result<(), HostError> {
    let name = if path.as_os_str() == "-" { "standard input".to_owned() } else { path.display().to_string() };
    let source: Box<dyn Read + Send> = if path.as_os_str() == "-" {
        Box::new(io::stdin())
    } else {
        let opened = File::open(path).and_then(|file| {
            if file.metadata()?.is_dir() { Err(io::Error::from(io::ErrorKind::IsADirectory)) } else { Ok(file) }
        });
        Box::new(opened.map_err(|error| HostError::file("read", &name, &error))?)
    };
    each_packet(source, take).map_err(|error| match error {
        VisitError::Capture(error) => described(&name, &error),
        VisitError::Visitor(error) => error,
    })
}

fn described(name: &str, error: &CaptureError) -> HostError {
    match error.problem {
        CaptureProblem::UnknownFormat => HostError::new(
            HostCode::Content,
            format!("`{name}` is no capture: it does not begin as pcap and pcapng files do"),
        )
        .help("`tcpdump -w FILE` and Wireshark write such files"),
        CaptureProblem::UndescribedInterface
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
    pub(crate) link_type: i32,
    pub(crate) packets: u64,
}

impl CaptureFile {
    /// Creates a temporary file, which `finish` renames to its name.
    pub(crate) fn create(path: &Path, link_type: i32) -> Result<CaptureFile, HostError> {
        let mut file = NewFile::create(path)?;
        write_header(&mut file, link_type).map_err(|error| HostError::file("write", path.display(), &error))?;
        Ok(CaptureFile { file, link_type, packets: 0 })
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
