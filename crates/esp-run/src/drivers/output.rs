//! Drivers of channels that the environment reads: messages become text or bytes in a writer, which channels may share.

use super::bytes::{Outcome, Shape};
use super::endpoints::{Directions, OpenEndpoints};
use super::hex;
use super::stream::Writer;
use crate::binding::{Driver, StreamEndpoint};
use crate::error::{HostCode, HostError};
use quaject_esp_exec::datum::{self, Datum};
use quaject_esp_ir::ir::{Channel, Program};

/// The driver of one channel.
pub(crate) struct Output {
    /// The index of its writer.
    pub(crate) writer: usize,
    format: Format,
}

enum Format {
    Text,
    Bytes { shape: Shape, ended: bool, form: ByteForm },
}

/// How bytes are written.
#[derive(Clone, Copy)]
enum ByteForm {
    /// As they are.
    Raw,
    /// A line of hexadecimal digits for each message.
    Hex,
}

impl ByteForm {
    fn driver(self) -> &'static str {
        match self {
            ByteForm::Raw => "bytes",
            ByteForm::Hex => "hex",
        }
    }
}

impl Output {
    /// Opens the endpoint of a channel, or shares the writer of another channel to it, so that messages of both are
    /// written in the order in which they were sent.
    pub(crate) fn open(
        program: &Program,
        channel: &Channel,
        driver: &Driver,
        directions: Directions,
        endpoints: &mut OpenEndpoints,
        writers: &mut Vec<Writer>,
    ) -> Result<Output, HostError> {
        let (endpoint, format) = match driver {
            Driver::Text(endpoint) => (endpoint, Format::Text),
            Driver::Bytes(endpoint) => {
                let shape = Shape::of(program, channel, "bytes")?;
                (endpoint, Format::Bytes { shape, ended: false, form: ByteForm::Raw })
            }
            Driver::Hex(endpoint) => {
                let shape = Shape::of(program, channel, "hex")?;
                (endpoint, Format::Bytes { shape, ended: false, form: ByteForm::Hex })
            }
            Driver::Timer { .. } => unreachable!("`binding::resolve` refuses timers here"),
            Driver::Device(_) => unreachable!("`Ports::open` opens devices"),
        };
        let writer = match writers.iter().position(|writer| same(&writer.endpoint, endpoint)) {
            Some(writer) => writer,
            None => {
                writers.push(Writer::open(endpoint, directions, endpoints)?);
                writers.len() - 1
            }
        };
        Ok(Output { writer, format })
    }

    /// Adds a message to what will be written.
    pub(crate) fn put(
        &mut self,
        program: &Program,
        channel: &Channel,
        message: &[Datum],
        writer: &mut Writer,
    ) -> Result<(), HostError> {
        match &mut self.format {
            Format::Text => {
                let mut line = String::new();
                for (index, (ty, value)) in channel.payload.iter().zip(message).enumerate() {
                    if index > 0 {
                        line.push(' ');
                    }
                    datum::print(program, *ty, value, &mut line);
                }
                line.push('\n');
                writer.buffer().extend_from_slice(line.as_bytes());
                Ok(())
            }
            Format::Bytes { shape, ended, form } => {
                let outcome = match form {
                    _ if *ended => Outcome::NotBytes,
                    ByteForm::Raw => shape.write(message, writer.buffer()),
                    ByteForm::Hex => {
                        let mut bytes = Vec::new();
                        let outcome = shape.write(message, &mut bytes);
                        if outcome == Outcome::Written {
                            hex::write_line(&bytes, writer.buffer());
                        }
                        outcome
                    }
                };
                match outcome {
                    Outcome::Written => Ok(()),
                    Outcome::End => {
                        *ended = true;
                        Ok(())
                    }
                    Outcome::NotBytes => {
                        let text = datum::print_message(program, &channel.payload, message);
                        let cause = if *ended { "comes after the end of its bytes" } else { "is not a byte" };
                        Err(HostError::new(
                            HostCode::Message,
                            format!("`{text}` on channel `{}` {cause}", channel.name),
                        )
                        .help(format!(
                            "the `{}` driver writes 0 to 255, then once -1 or `eos`, as it reads them; \
                             `text:` writes any message",
                            form.driver()
                        )))
                    }
                }
            }
        }
    }
}

/// Whether two endpoints are one file.
fn same(one: &StreamEndpoint, other: &StreamEndpoint) -> bool {
    match (one, other) {
        (StreamEndpoint::Standard, StreamEndpoint::Standard) => true,
        (StreamEndpoint::Path(one), StreamEndpoint::Path(other)) => {
            one == other
                || match (one.canonicalize(), other.canonicalize()) {
                    (Ok(one), Ok(other)) => one == other,
                    (Ok(_) | Err(_), Err(_)) | (Err(_), Ok(_)) => false,
                }
        }
        (StreamEndpoint::Standard, StreamEndpoint::Path(path))
        | (StreamEndpoint::Path(path), StreamEndpoint::Standard) => {
            path.as_os_str() == "/dev/stdout" || path.as_os_str() == "/dev/fd/1"
        }
        (StreamEndpoint::Command(_) | StreamEndpoint::Serial(..) | StreamEndpoint::Pty(_), _)
        | (_, StreamEndpoint::Command(_) | StreamEndpoint::Serial(..) | StreamEndpoint::Pty(_)) => one == other,
    }
}
