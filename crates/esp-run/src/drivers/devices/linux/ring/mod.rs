//! `ring:`: messages of bytes, each whole, from one process to another over a queue in shared memory. The same streams as
//! those of the C header `quaject/ring_stream.h`.
//!
//! A stream has one writer and one reader, which meet at a name (`link`). What travels in the slots of the ring is in
//! `frames`. The memory carries every message; the socket at which the two have met carries what makes them wait well:
//! a byte wakes whoever sleeps, and the kernel closes it however its process ends. The event loop polls it like any
//! other descriptor, which a futex is not, so an idle program sleeps and needs no thread for it.
//!
//! As with a pipe, whoever comes first waits for the other, a full ring takes nothing, and what was written before the
//! writer has gone is there to be read. The other side is not believed: memory that could shrink, a ring of another
//! size and what no peer writes are refused by name.

mod frames;
mod link;
mod reader;
mod writer;

pub(super) use reader::Reader;
pub(super) use writer::Writer;

use super::{Device, Ends};
use crate::binding::Ring as Name;
use crate::drivers::bytes::Shape;
use crate::error::HostError;
use quaject_esp_ir::ir::Program;

/// Opens the end of a stream that a program has.
pub(super) fn open(program: &Program, name: &Name, ends: Ends<'_>) -> Result<Box<dyn Device>, HostError> {
    match (ends.input, ends.output) {
        (Some(input), None) => {
            Ok(Box::new(Reader::open(name, &input.name, Shape::of(program, input, "ring")?)?) as Box<dyn Device>)
        }
        (None, Some(output)) => Ok(Box::new(Writer::open(name, &output.name, Shape::of(program, output, "ring")?)?)),
        (Some(input), Some(output)) => Err(HostError::usage(format!(
            "channels `{}` and `{}` share one ring, which has one direction",
            input.name, output.name
        ))
        .help("name a ring for each direction")),
        (None, None) => unreachable!("a device is opened for a channel"),
    }
}

/// What was found is the work of no peer that keeps to the rules.
fn broken(path: &str) -> HostError {
    HostError::new(format!("ring `{path}` holds what no peer writes"))
        .help("its other side must be a driver `ring:` or keep to `quaject/ring_stream.h`")
}
