//! The reference implementation: every step by itself, byte by byte, in Rust. It defines the semantics of a pipe;
//! generated code is correct if its results equal those of this reference. Pipes run by it on systems without code
//! memory.

use crate::crc32c;
use crate::report::{OutcomeKind, Report};
use crate::step::{Key, Step};

/// Runs `steps` over `data`, in place. `streams` are the keys of the steps that want a key stream, in order, each at
/// least as long as the data.
pub fn run(steps: &[Step], data: &mut [u8], streams: &[&[u8]]) -> Report {
    let mut report = begin(steps);
    run_piece(steps, data, streams, &mut report);
    report
}

/// The report of a run before its first byte.
pub(crate) fn begin(steps: &[Step]) -> Report {
    let mut report = Report::new();
    for step in steps {
        let (kind, number) = match step {
            Step::Copy | Step::Swap16 | Step::Swap32 | Step::Swap64 | Step::Xor(_) => (OutcomeKind::Nothing, 0),
            Step::Checksum => (OutcomeKind::Checksum, 0),
            Step::Crc32c => (OutcomeKind::Crc32c, 0),
            Step::Count => (OutcomeKind::Count, 0),
            Step::User(step) if step.inner.total.is_some() => (OutcomeKind::Total, step.initial_total()),
            Step::User(_) => (OutcomeKind::Nothing, 0),
        };
        report.add(kind, number);
    }
    report
}

/// Continues a run, whose report so far is `report`, with the next piece of its data. All pieces but the last are
/// multiples of eight bytes; streams begin where this piece does.
pub(crate) fn run_piece(steps: &[Step], data: &mut [u8], streams: &[&[u8]], report: &mut Report) {
    let mut streams = streams.iter();
    for (index, step) in steps.iter().enumerate() {
        let number = report.number(index);
        match step {
            Step::Copy => {}
            Step::Checksum => *number = internet_sum(*number as u16, data).into(),
            Step::Crc32c => *number = (!crc32c::update(!(*number as u32), data)).into(),
            Step::Swap16 => swap(data, 2),
            Step::Swap32 => swap(data, 4),
            Step::Swap64 => swap(data, 8),
            Step::Xor(Key::Repeat(key)) => xor(data, key.iter().cycle()),
            Step::Xor(Key::Stream) => xor(data, streams.next().expect("one for each step that wants one").iter()),
            Step::Count => *number += data.len() as u64,
            Step::User(step) => *number = step.apply(data, *number),
        }
    }
}

/// The sum of RFC 1071 over big-endian words, which is `before` without them; an odd last byte is the high byte of its
/// word. Not complemented.
fn internet_sum(before: u16, data: &[u8]) -> u16 {
    let words = data.chunks(2).map(|pair| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u32::from(*low)));
    words.fold(before, |sum, word| {
        let sum = u32::from(sum) + word;
        ((sum & 0xffff) + (sum >> 16)) as u16
    })
}

fn swap(data: &mut [u8], size: usize) {
    data.chunks_exact_mut(size).for_each(<[u8]>::reverse);
}

fn xor<'a>(data: &mut [u8], key: impl Iterator<Item = &'a u8>) {
    data.iter_mut().zip(key).for_each(|(byte, key)| *byte ^= key);
}
