//! `ring:`: messages of bytes, from one process to another over a queue in shared memory. The streams are those of the
//! C header `quaject/ring_stream.h`.
//!
//! A stream has one writer and one reader, which connect by a name (`link`). `frames` defines the content of the ring's
//! slots. The shared memory carries the messages; the socket by which the two have connected carries wake-ups, one byte
//! each, and the kernel closes it when its process ends. The event loop polls it like any other descriptor, which a
//! futex is not, so that no thread is needed.
//!
//! As with a pipe, the first side waits for the other one, a full ring takes no messages, and the messages that a
//! writer has sent before it exits can be read. The peer is not trusted: memory that can shrink, a ring of another size
//! and invalid frames are errors.

mod frames;
mod link;
mod reader;
mod writer;

pub(super) use reader::RingReader;
pub(super) use writer::RingWriter;

use super::{Device, Ends};
use crate::binding::Ring as RingEndpoint;
use crate::drivers::bytes::Shape;
use crate::error::{HostCode, HostError};
use quaject_esp_ir::ir::Program;

/// Opens the program's end of a stream.
pub(super) fn open(program: &Program, name: &RingEndpoint, ends: Ends<'_>) -> Result<Box<dyn Device>, HostError> {
    match (ends.input, ends.output) {
        (Some(input), None) => {
            Ok(Box::new(RingReader::open(name, &input.name, Shape::of(program, input, "ring")?)?) as Box<dyn Device>)
        }
        (None, Some(output)) => {
            Ok(Box::new(RingWriter::open(name, &output.name, Shape::of(program, output, "ring")?)?))
        }
        (Some(input), Some(output)) => Err(HostError::usage(
            HostCode::Binding,
            format!("channels `{}` and `{}` share one ring, which has one direction", input.name, output.name),
        )
        .help("name a ring for each direction")),
        (None, None) => unreachable!("a device is opened for a channel"),
    }
}

/// The error for content that violates the protocol.
fn broken(path: &str) -> HostError {
    HostError::new(HostCode::Device, format!("ring `{path}` holds what no peer writes"))
        .help("its other side must be a driver `ring:` or keep to `quaject/ring_stream.h`")
}
