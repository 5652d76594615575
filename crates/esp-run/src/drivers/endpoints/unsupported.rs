//! Endpoints with two directions on a system that is not Unix: refused.

use super::Directions;
use crate::binding::StreamEndpoint;
use crate::system::{ByteInput, ByteOutput};
use std::io;

/// No endpoint.
#[derive(Default)]
pub(super) struct Bidirectional;

impl Bidirectional {
    /// Refuses the endpoint.
    pub(super) fn reader(&mut self, endpoint: &StreamEndpoint, _directions: Directions) -> io::Result<ByteInput> {
        Err(unsupported(endpoint))
    }

    /// Refuses the endpoint.
    pub(super) fn writer(&mut self, endpoint: &StreamEndpoint, _directions: Directions) -> io::Result<ByteOutput> {
        Err(unsupported(endpoint))
    }

    /// Has nothing to close.
    pub(super) fn close(&mut self, _graceful: bool) -> Vec<String> {
        Vec::new()
    }
}

fn unsupported(endpoint: &StreamEndpoint) -> io::Error {
    let endpoint = match endpoint {
        StreamEndpoint::Standard | StreamEndpoint::Path(_) => "it has one direction",
        StreamEndpoint::Command(_) => "a command as a driver needs Unix",
        StreamEndpoint::Serial(..) => "a serial line as a driver needs Unix",
        StreamEndpoint::Pty(_) => "a terminal as a driver needs Unix",
    };
    io::Error::new(io::ErrorKind::Unsupported, endpoint)
}
