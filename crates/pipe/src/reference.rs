//! The reference implementation: every step by itself, byte by byte, in Rust. It defines the semantics of a pipe;
//! generated code is correct if its results equal those of this reference.

use crate::crc32c;
use crate::report::{OutcomeKind, Report};
use crate::step::{Key, Step};

/// Runs `steps` over `data`, in place. `streams` are the keys of the steps that want a key stream, in order, each at
/// least as long as the data.
pub fn run(steps: &[Step], data: &mut [u8], streams: &[&[u8]]) -> Report {
    let mut streams = streams.iter();
    let mut report = Report::new();
    for step in steps {
        let (finding, number) = match step {
            Step::Copy => NOTHING,
            Step::Checksum => (OutcomeKind::Checksum, internet_sum(data).into()),
            Step::Crc32c => (OutcomeKind::Crc32c, (!crc32c::update(u32::MAX, data)).into()),
            Step::Swap16 => swap(data, 2),
            Step::Swap32 => swap(data, 4),
            Step::Swap64 => swap(data, 8),
            Step::Xor(Key::Repeat(key)) => xor(data, key.iter().cycle()),
            Step::Xor(Key::Stream) => xor(data, streams.next().expect("one for each step that wants one").iter()),
            Step::Count => (OutcomeKind::Count, data.len() as u64),
            Step::User(step) => {
                let total = step.apply(data);
                if step.inner.total.is_some() { (OutcomeKind::Total, total) } else { NOTHING }
            }
        };
        report.add(finding, number);
    }
    report
}

const NOTHING: (OutcomeKind, u64) = (OutcomeKind::Nothing, 0);

/// The sum of RFC 1071 over big-endian words; an odd last byte is the high byte of its word. Not complemented.
fn internet_sum(data: &[u8]) -> u16 {
    let words = data.chunks(2).map(|pair| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u32::from(*low)));
    words.fold(0, |sum, word| {
        let sum = u32::from(sum) + word;
        ((sum & 0xffff) + (sum >> 16)) as u16
    })
}

fn swap(data: &mut [u8], size: usize) -> (OutcomeKind, u64) {
    data.chunks_exact_mut(size).for_each(<[u8]>::reverse);
    NOTHING
}

fn xor<'a>(data: &mut [u8], key: impl Iterator<Item = &'a u8>) -> (OutcomeKind, u64) {
    data.iter_mut().zip(key).for_each(|(byte, key)| *byte ^= key);
    NOTHING
}
