//! Drivers of channels that the environment writes: each has at most one message on offer.

use super::bytes::Shape;
use super::endpoints::{Directions, OpenEndpoints};
use super::hex::HexLines;
use super::stream::{Filled, Reader};
use crate::binding::Driver;
use crate::drivers::type_name;
use crate::error::{HostCode, HostError};
use quaject_esp_exec::datum::{self, Datum};
use quaject_esp_ir::ir::{Channel, Program, Type};
use rustix::fd::BorrowedFd;

/// The maximum length of a line of a `text` input: a file without line ends is not read into memory completely.
const MAX_LINE_BYTES: usize = 16 << 20;

/// The driver of one channel.
pub(crate) struct Input {
    source: MessageSource,
    message: Vec<Datum>,
    state: InputState,
    /// Whether the engine has polled for a message without success since the last sleep, so that one must wake it.
    pub(crate) wanted: bool,
}

/// The state of an input channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum InputState {
    /// A message.
    Offered,
    /// None now.
    Pending,
    /// None, and never again.
    Closed,
}

enum MessageSource {
    Text(Text),
    Bytes { reader: Reader, shape: Shape, end_sent: bool },
    Timer(Timer),
}

struct Text {
    reader: Reader,
    /// Lines read so far.
    line: u64,
    /// Pending bytes known to hold no line end.
    scanned: usize,
    form: LineForm,
}

/// How a line is read.
enum LineForm {
    /// The values of a message, as in ESP; their types, for errors: `` `int` `bool` ``.
    Values(String),
    /// Hexadecimal digits.
    Hex(HexLines),
}

struct Timer {
    period_ns: i64,
    /// Number of the last tick that was offered.
    tick: i64,
    limit: i64,
    /// The type of a tick's number.
    counter: Option<quaject_esp_ir::ir::IntType>,
}

impl Input {
    /// Opens what a driver reads for a channel.
    pub(crate) fn open(
        program: &Program,
        channel: &Channel,
        driver: &Driver,
        directions: Directions,
        endpoints: &mut OpenEndpoints,
    ) -> Result<Input, HostError> {
        let source = match driver {
            Driver::Text(endpoint) => {
                let types: Vec<String> =
                    channel.payload.iter().map(|ty| format!("`{}`", type_name(program, *ty))).collect();
                let expected = types.join(" ");
                let reader = Reader::open(endpoint, directions, endpoints)?;
                MessageSource::Text(Text { reader, line: 0, scanned: 0, form: LineForm::Values(expected) })
            }
            Driver::Hex(endpoint) => {
                let form = LineForm::Hex(HexLines::new(Shape::of(program, channel, "hex")?));
                let reader = Reader::open(endpoint, directions, endpoints)?;
                MessageSource::Text(Text { reader, line: 0, scanned: 0, form })
            }
            Driver::Bytes(endpoint) => {
                let shape = Shape::of(program, channel, "bytes")?;
                MessageSource::Bytes { reader: Reader::open(endpoint, directions, endpoints)?, shape, end_sent: false }
            }
            Driver::Timer { period, limit } => MessageSource::Timer(Timer {
                period_ns: period.as_nanos().min(i64::MAX as u128) as i64,
                tick: 0,
                limit: limit.map_or(i64::MAX, |limit| limit.min(i64::MAX as u64) as i64),
                counter: counter(program, channel)?,
            }),
            Driver::Device(_) => unreachable!("`Ports::open` opens devices"),
        };
        Ok(Input { source, message: Vec::new(), state: InputState::Pending, wanted: false })
    }

    /// Polls for a message.
    pub(crate) fn peek(&mut self, program: &Program, channel: &Channel, now_ns: i64) -> Result<InputState, HostError> {
        if self.state == InputState::Pending {
            self.state = match &mut self.source {
                MessageSource::Text(text) => text.next(program, channel, &mut self.message)?,
                MessageSource::Bytes { reader, shape, end_sent } => {
                    next_bytes(reader, *shape, end_sent, &mut self.message)?
                }
                MessageSource::Timer(timer) => timer.next(now_ns, &mut self.message),
            };
            self.wanted |= self.state == InputState::Pending;
        } else if let (InputState::Offered, MessageSource::Timer(timer)) = (self.state, &mut self.source)
            && timer.due_ns().is_some_and(|due| due <= now_ns)
        {
            // The last tick was not received: a later one replaces it.
            timer.next(now_ns, &mut self.message);
        }
        Ok(self.state)
    }

    /// Whether a message is on offer.
    pub(crate) fn is_offered(&self) -> bool {
        self.state == InputState::Offered
    }

    /// The message on offer.
    pub(crate) fn message(&self) -> &[Datum] {
        &self.message
    }

    /// The message on offer has been received.
    pub(crate) fn take(&mut self) {
        if self.state == InputState::Offered {
            self.state = InputState::Pending;
        }
    }

    /// The descriptor to poll for a message, if reading may block.
    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match &self.source {
            MessageSource::Text(text) => text.reader.descriptor(),
            MessageSource::Bytes { reader, .. } => reader.descriptor(),
            MessageSource::Timer(_) => None,
        }
    }

    /// Whether it is a timer, whose message on offer is replaced by a later one.
    pub(crate) fn is_timer(&self) -> bool {
        match &self.source {
            MessageSource::Text(_) | MessageSource::Bytes { .. } => false,
            MessageSource::Timer(_) => true,
        }
    }

    /// The time of the next message, if it is known.
    pub(crate) fn due_ns(&self) -> Option<i64> {
        match &self.source {
            MessageSource::Text(_) | MessageSource::Bytes { .. } => None,
            MessageSource::Timer(timer) => timer.due_ns(),
        }
    }
}

impl Text {
    fn next(
        &mut self,
        program: &Program,
        channel: &Channel,
        message: &mut Vec<Datum>,
    ) -> Result<InputState, HostError> {
        if let LineForm::Hex(lines) = &mut self.form
            && let Some(byte) = lines.next_byte()
        {
            *message = vec![byte];
            return Ok(InputState::Offered);
        }
        loop {
            let pending = self.reader.pending();
            let end = pending[self.scanned..].iter().position(|byte| *byte == b'\n').map(|at| self.scanned + at);
            let (line, taken) = match end {
                Some(end) => (&pending[..end], end + 1),
                None => {
                    self.scanned = pending.len();
                    if pending.len() > MAX_LINE_BYTES {
                        self.line += 1;
                        let error = self.error(1, format!("the line is longer than {MAX_LINE_BYTES} bytes"));
                        return Err(error.help("end each message with a line end, or read the data with `bytes:`"));
                    }
                    match self.reader.fill()? {
                        Filled::More => continue,
                        Filled::Pending => return Ok(InputState::Pending),
                        Filled::Ended => {}
                    }
                    // The last line may lack its end.
                    let pending = self.reader.pending();
                    if pending.is_empty() {
                        let end = match &mut self.form {
                            LineForm::Values(_) => None,
                            LineForm::Hex(lines) => lines.end(),
                        };
                        let Some(end) = end else { return Ok(InputState::Closed) };
                        *message = vec![end];
                        return Ok(InputState::Offered);
                    }
                    (pending, pending.len())
                }
            };
            self.line += 1;
            // As in a program, a byte order mark before the first line is ignored.
            let line = if self.line == 1 { line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line) } else { line };
            let found = text_of(line).and_then(|line| match &mut self.form {
                LineForm::Values(_) => read_values(program, channel, line),
                LineForm::Hex(lines) => Ok(lines.read(line)?.map(|value| vec![value])),
            });
            match found {
                Ok(found) => {
                    self.reader.consume(taken);
                    self.scanned = 0;
                    if let Some(found) = found {
                        *message = found;
                        return Ok(InputState::Offered);
                    }
                }
                Err((column, cause)) => {
                    let help = match &self.form {
                        LineForm::Values(expected) => {
                            let wanted = if expected.is_empty() { "nothing" } else { expected };
                            format!(
                                "a line is one message of channel `{}`: {wanted}; values are written as in ESP, \
                                 separated by blanks",
                                channel.name
                            )
                        }
                        LineForm::Hex(lines) => lines.help(&channel.name),
                    };
                    return Err(self.error(column, cause).help(help));
                }
            }
        }
    }

    fn error(&self, column: u32, cause: String) -> HostError {
        HostError::new(HostCode::Message, format!("{}:{}:{column}: {cause}", self.reader.name, self.line))
    }
}

/// The text of a line; an error is its column and cause.
fn text_of(line: &[u8]) -> Result<&str, (u32, String)> {
    std::str::from_utf8(line).map_err(|error| {
        let before = String::from_utf8_lossy(&line[..error.valid_up_to()]).chars().count();
        (before as u32 + 1, "the text is not UTF-8".to_string())
    })
}

/// The message of a line, if it has one: blank lines and comments are skipped, but a blank line is a message of a
/// channel without values. An error is its column and cause.
fn read_values(program: &Program, channel: &Channel, line: &str) -> Result<Option<Vec<Datum>>, (u32, String)> {
    let text = line.trim_ascii();
    if text.starts_with("//") || (text.is_empty() && !channel.payload.is_empty()) {
        return Ok(None);
    }
    match datum::parse_message(program, &channel.payload, line) {
        Ok(message) => Ok(Some(message)),
        Err(error) => Err((error.column, format!("expected {}, found {}", error.expected, error.found))),
    }
}

fn next_bytes(
    reader: &mut Reader,
    shape: Shape,
    end_sent: &mut bool,
    message: &mut Vec<Datum>,
) -> Result<InputState, HostError> {
    loop {
        let pending = reader.pending().len();
        // The bytes that have arrived become one chunk, even if it is not full.
        let filled = if pending < shape.wanted() { reader.fill()? } else { Filled::More };
        match filled {
            Filled::More if reader.pending().len() < shape.wanted() => continue,
            Filled::Pending if pending == 0 => return Ok(InputState::Pending),
            Filled::Ended if pending == 0 => {
                return Ok(match shape.end() {
                    Some(end) if !std::mem::replace(end_sent, true) => {
                        *message = vec![end];
                        InputState::Offered
                    }
                    Some(_) | None => InputState::Closed,
                });
            }
            Filled::More | Filled::Pending | Filled::Ended => {
                let taken = shape.message(reader.pending(), message);
                reader.consume(taken);
                return Ok(InputState::Offered);
            }
        }
    }
}

impl Timer {
    fn due_ns(&self) -> Option<i64> {
        (self.tick < self.limit).then(|| (self.tick + 1).saturating_mul(self.period_ns))
    }

    /// A program that is late receives one tick for all missed ones, with the number of the last one.
    fn next(&mut self, now_ns: i64, message: &mut Vec<Datum>) -> InputState {
        match self.due_ns() {
            None => InputState::Closed,
            Some(due) if now_ns < due => InputState::Pending,
            Some(_) => {
                self.tick = (now_ns / self.period_ns).min(self.limit);
                *message = self.counter.iter().map(|int| Datum::Int(int.wrap(i128::from(self.tick)))).collect();
                InputState::Offered
            }
        }
    }
}

/// The type of a tick's number; `None` if the channel has no values.
fn counter(program: &Program, channel: &Channel) -> Result<Option<quaject_esp_ir::ir::IntType>, HostError> {
    match channel.payload.as_slice() {
        [] => Ok(None),
        [ty] if let Type::Int(int) = program.types.get(*ty) => Ok(Some(*int)),
        _ => Err(HostError::usage(HostCode::Type, format!("driver `timer` cannot serve channel `{}`", channel.name))
            .help("a timer's channel carries nothing, `()`, or one integer, the number of the tick")),
    }
}
