//! Opens the endpoints of byte streams: standard input and output, files, and endpoints with two directions, which are
//! opened once for both channels (a command, a serial line, a pseudo-terminal) and need Unix.

#[cfg(unix)]
mod bidirectional;
#[cfg(not(unix))]
mod unsupported;

use crate::binding::{Driver, StreamEndpoint};
use crate::error::{HostCode, HostError};
use crate::files::is_same_file;
use crate::system::{ByteInput, ByteOutput};
use quaject_esp_ir::ir::{Boundary, Program};
use std::fs::File;
use std::path::Path;

#[cfg(unix)]
use bidirectional::Bidirectional;
#[cfg(not(unix))]
use unsupported::Bidirectional;

/// The directions in which channels use an endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Directions {
    pub(crate) reads: bool,
    pub(crate) writes: bool,
}

/// Refuses to write a file that is read, or that the program was read from: a file that is written is truncated when it
/// is opened.
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
        } else if program.written_files().iter().any(|source| is_same_file(&output, Path::new(source))) {
            format!("channel `{written}` would overwrite `{}`, which is the program", output.display())
        } else {
            continue;
        };
        return Err(HostError::usage(HostCode::Binding, cause)
            .help(format!("bind it to another file with `--bind {written}=DRIVER`")));
    }
    Ok(())
}

/// The endpoints that are open for a program.
#[derive(Default)]
pub(crate) struct OpenEndpoints {
    bidirectional: Bidirectional,
}

impl OpenEndpoints {
    /// Opens an endpoint for reading; also returns its name in messages.
    pub(crate) fn reader(
        &mut self,
        endpoint: &StreamEndpoint,
        directions: Directions,
    ) -> Result<(ByteInput, String), HostError> {
        let name = name_of(endpoint, "standard input");
        let input = match endpoint {
            StreamEndpoint::Standard => ByteInput::standard(),
            StreamEndpoint::Path(path) => File::open(path).and_then(ByteInput::of),
            StreamEndpoint::Command(_) | StreamEndpoint::Serial(..) | StreamEndpoint::Pty(_) => {
                self.bidirectional.reader(endpoint, directions)
            }
        };
        Ok((input.map_err(|error| HostError::file("read", &name, &error))?, name))
    }

    /// Opens an endpoint for writing, which empties or creates a file; also returns its name in messages.
    pub(crate) fn writer(
        &mut self,
        endpoint: &StreamEndpoint,
        directions: Directions,
    ) -> Result<(ByteOutput, String), HostError> {
        let name = name_of(endpoint, "standard output");
        let output = match endpoint {
            StreamEndpoint::Standard => ByteOutput::standard(),
            StreamEndpoint::Path(path) => File::create(path).and_then(ByteOutput::of),
            StreamEndpoint::Command(_) | StreamEndpoint::Serial(..) | StreamEndpoint::Pty(_) => {
                self.bidirectional.writer(endpoint, directions)
            }
        };
        Ok((output.map_err(|error| HostError::file("write", &name, &error))?, name))
    }

    /// Ends the commands that still run, after their pipes have been closed: `graceful` waits for those that the
    /// program wrote to, which read the end of their input. Returns a note for each that failed.
    pub(crate) fn close(&mut self, graceful: bool) -> Vec<String> {
        self.bidirectional.close(graceful)
    }
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
