//! `hex:`: bytes as hexadecimal digits, one message per line, as in `7e 01 0a`. Digits are written in pairs; between
//! them may be blanks and colons. Blank lines, and what follows `//`, are ignored. A channel of one byte receives the
//! bytes of a line one by one.

use super::bytes::{Payload, Shape};
use quaject_esp_exec::datum::Datum;
use std::collections::VecDeque;
use std::fmt::Write;

/// The lines of an input.
pub(crate) struct HexLines {
    shape: Shape,
    /// The rest of a line, for a channel of one byte.
    rest: VecDeque<u8>,
    end_sent: bool,
}

impl HexLines {
    pub(crate) fn new(shape: Shape) -> HexLines {
        HexLines { shape, rest: VecDeque::new(), end_sent: false }
    }

    /// The next byte of the last line, for a channel of one byte.
    pub(crate) fn next_byte(&mut self) -> Option<Datum> {
        let byte = self.rest.pop_front()?;
        Some(self.message(&[byte]))
    }

    /// The message of a line, if it has one; an error is its column and cause.
    pub(crate) fn read(&mut self, line: &str) -> Result<Option<Datum>, (u32, String)> {
        let bytes = parse(line)?;
        let max = match self.shape {
            Shape::Int(_) | Shape::Case { payload: Payload::Int, .. } => {
                self.rest.extend(bytes);
                return Ok(self.next_byte());
            }
            Shape::Chunk(bound) | Shape::Case { payload: Payload::Chunk(bound), .. } => bound,
        };
        if bytes.len() > max {
            return Err((1, format!("the line has {} bytes, a message at most {max}", bytes.len())));
        }
        Ok((!bytes.is_empty()).then(|| self.message(&bytes)))
    }

    /// The message that ends the stream, once.
    pub(crate) fn end(&mut self) -> Option<Datum> {
        self.shape.end().filter(|_| !std::mem::replace(&mut self.end_sent, true))
    }

    /// What a line is, for an error of a channel.
    pub(crate) fn help(&self, channel: &str) -> String {
        format!("a line is one message of channel `{channel}`, bytes of two hexadecimal digits: `7e 01 0a`")
    }

    fn message(&self, bytes: &[u8]) -> Datum {
        let mut message = Vec::new();
        self.shape.message(bytes, &mut message);
        message.pop().expect("a message of this shape is one value")
    }
}

/// The bytes of a line; an error is its column and cause.
fn parse(line: &str) -> Result<Vec<u8>, (u32, String)> {
    let line = line.split("//").next().unwrap_or_default();
    let (mut bytes, mut first) = (Vec::new(), None);
    for (column, c) in (1..).zip(line.chars()) {
        match (c.to_digit(16), first.take()) {
            (Some(digit), None) => first = Some(digit as u8),
            (Some(digit), Some(high)) => bytes.push(high << 4 | digit as u8),
            (None, None) if c.is_ascii_whitespace() || c == ':' => {}
            (None, None) => return Err((column, format!("expected two hexadecimal digits, found `{c}`"))),
            (None, Some(_)) => return Err((column - 1, "a byte has two hexadecimal digits".to_string())),
        }
    }
    match first {
        Some(_) => Err((line.trim_end().chars().count() as u32, "a byte has two hexadecimal digits".to_string())),
        None => Ok(bytes),
    }
}

/// Writes bytes as a line.
pub(crate) fn write_line(bytes: &[u8], out: &mut Vec<u8>) {
    let mut line = String::with_capacity(3 * bytes.len() + 1);
    for (index, byte) in bytes.iter().enumerate() {
        let blank = if index > 0 { " " } else { "" };
        // Writing to a string does not fail.
        let _ = write!(line, "{blank}{byte:02x}");
    }
    line.push('\n');
    out.extend_from_slice(line.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::{parse, write_line};

    #[test]
    fn digits_are_read_in_pairs() {
        for (line, bytes) in [
            ("", &[][..]),
            (" // 00", &[]),
            ("7e", &[0x7e]),
            ("7E 01:0a // three", &[0x7e, 1, 10]),
            ("\t00ff 10\r", &[0, 255, 16]),
        ] {
            assert_eq!(parse(line), Ok(bytes.to_vec()), "{line}");
            let mut again = Vec::new();
            write_line(bytes, &mut again);
            assert_eq!(parse(std::str::from_utf8(&again).expect("text")), Ok(bytes.to_vec()), "{line}");
        }
        for (line, column) in [("7", 1), ("7e 1", 4), ("7 e", 1), ("0x12", 1), ("7e -", 4), ("7e 1 // x", 4)] {
            assert_eq!(parse(line).map_err(|(column, _)| column), Err(column), "{line}");
        }
    }
}
