//! The kernel's command line: words separated by blanks, `NAME` or `NAME=VALUE`. A byte of a value that is no letter,
//! digit or one of `-_./:=,+@` is written `%XX`.
//!
//! ```text
//! arg=PROGRAM arg=ARGUMENT ...   the program's arguments, its name first
//! env=NAME%3DVALUE ...           its environment
//! trace                          report every call
//! count                          count the ticks of each call
//! check                          run the self-tests and end
//! measure                        report what synthesis costs, and end
//! provoke=FAULT                  fail on purpose (`checks.rs`)
//! ```

use crate::trace::Trace;
use alloc::string::String;
use alloc::vec::Vec;

/// What the command line asks for.
#[derive(Default, Debug)]
pub(crate) struct Options {
    pub(crate) arguments: Vec<Vec<u8>>,
    pub(crate) environment: Vec<Vec<u8>>,
    pub(crate) trace: Trace,
    pub(crate) count: bool,
    pub(crate) check: bool,
    pub(crate) measure: bool,
    pub(crate) provoke: Option<String>,
    /// Words that mean nothing.
    pub(crate) unknown: Vec<String>,
}

impl Options {
    pub(crate) fn read(line: &[u8]) -> Options {
        let mut options = Options::default();
        for word in line.split(|byte| *byte == b' ').filter(|word| !word.is_empty()) {
            let at = word.iter().position(|byte| *byte == b'=');
            let (name, value) = at.map_or((word, None), |at| (&word[..at], Some(decode(&word[at + 1..]))));
            match (name, value) {
                (b"arg", Some(value)) => options.arguments.push(value),
                (b"env", Some(value)) => options.environment.push(value),
                (b"trace", None) => options.trace = Trace::On,
                (b"count", None) => options.count = true,
                (b"measure", None) => options.measure = true,
                (b"check", None) => options.check = true,
                (b"provoke", Some(value)) => options.provoke = Some(String::from_utf8_lossy(&value).into_owned()),
                _ => options.unknown.push(String::from_utf8_lossy(word).into_owned()),
            }
        }
        options
    }
}

/// Replaces `%XX` by the byte; a `%` without two digits stays.
fn decode(text: &[u8]) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, after @ ..] = rest {
        rest = after;
        match (first, after) {
            (b'%', [high, low, after @ ..]) if digit(*high).is_some() && digit(*low).is_some() => {
                decoded.extend(digit(*high).zip(digit(*low)).map(|(high, low)| high << 4 | low));
                rest = after;
            }
            _ => decoded.push(*first),
        }
    }
    decoded
}
