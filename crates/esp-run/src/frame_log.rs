//! A capture of the frames that a program's interfaces and buses carry, for `qj run --pcap`: pcap with nanoseconds, a
//! frame per write, so that it can be followed while the program runs. Knows no driver.

use crate::error::HostError;
use quaject_filter::capture::{CapturedPacket, write_header, write_packet};
use quaject_filter::link::LinkLayer;
use std::cell::RefCell;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::SystemTime;

/// The link types of the frames of drivers (pcap-linktype(7)).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FrameKind {
    /// Of `tap:` and `packet:`.
    Ethernet,
    /// Of `can:`: `struct can_frame`, its identifier in network byte order.
    Can,
}

impl FrameKind {
    fn link(self) -> LinkLayer {
        LinkLayer::native(match self {
            FrameKind::Ethernet => 1,
            FrameKind::Can => 227,
        })
    }
}

/// A capture that is written. Clones write to one file.
#[derive(Clone)]
pub(crate) struct FrameLog(Rc<RefCell<CaptureFile>>);

struct CaptureFile {
    path: PathBuf,
    file: File,
    kind: FrameKind,
    frames: u64,
}

impl FrameLog {
    /// Creates the capture, or replaces the file.
    pub(crate) fn create(path: &Path, kind: FrameKind) -> Result<FrameLog, HostError> {
        let failed = |error| HostError::file("write", path.display(), &error);
        let mut header = Vec::new();
        write_header(&mut header, kind.link()).map_err(failed)?;
        let mut file = File::create(path).map_err(failed)?;
        file.write_all(&header).map_err(failed)?;
        Ok(FrameLog(Rc::new(RefCell::new(CaptureFile { path: path.to_path_buf(), file, kind, frames: 0 }))))
    }

    /// Adds a frame, with the time of day.
    ///
    /// # Errors
    /// The file cannot be written (H0201).
    pub(crate) fn add(&self, frame: &[u8]) -> Result<(), HostError> {
        let capture = &mut *self.0.borrow_mut();
        let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        capture.frames += 1;
        let packet = CapturedPacket {
            number: capture.frames,
            link: capture.kind.link(),
            seconds: time.as_secs() as u32,
            nanoseconds: time.subsec_nanos(),
            wire_length: frame.len() as u32,
            data: frame,
        };
        let mut record = Vec::with_capacity(16 + frame.len());
        write_packet(&mut record, &packet)
            .and_then(|()| capture.file.write_all(&record))
            .map_err(|error| HostError::file("write", capture.path.display(), &error))
    }
}

impl std::fmt::Debug for FrameLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FrameLog").field("path", &self.0.borrow().path).finish_non_exhaustive()
    }
}
