//! What hosts may be about, made up at random: pages and echo of all sizes, at any pace, ended by either side or in
//! the middle.

use super::packets::{Packets, Protocol};
use super::service;
use super::stream::{Closes, Pace, Stream};
use crate::SECOND_NS;
use quaject_test_support::random::Random;

/// Around those of segments and of the programs' buffers.
const SIZES: [usize; 14] = [0, 1, 2, 3, 559, 560, 561, 1_459, 1_460, 1_461, 2_920, 11_680, 23_361, 65_536];

pub(crate) fn pick<T: Copy>(random: &mut Random, among: &[T]) -> T {
    among[random.below(among.len() as u64) as usize]
}

pub(crate) fn bytes(random: &mut Random, count: usize) -> Vec<u8> {
    (0..count).map(|_| random.byte()).collect()
}

pub(crate) fn any_size(random: &mut Random) -> usize {
    let any = [4_000, 100_000].map(|most| random.below(most) as usize);
    let near = [pick(random, &SIZES), pick(random, &SIZES)];
    pick(random, &[near[0], near[1], any[0], any[1]])
}

/// A connection that says this and hears that, as it comes.
pub(crate) fn stream(says: Vec<u8>, hears: Vec<u8>) -> Stream {
    let patience_ns = 400 * SECOND_NS;
    Stream {
        says: says.into(),
        hears: hears.into(),
        closes: Closes::Last,
        pace: Pace::AsItComes,
        buffer: 8_192,
        rests: None,
        patience_ns,
    }
}

pub(crate) fn page(random: &mut Random, size: usize) -> Stream {
    let name = format!("{size}-{}", random.below(1 << 40));
    stream(service::request(&name), service::answer(&name))
}

pub(crate) fn echo(random: &mut Random, size: usize) -> Stream {
    let content = bytes(random, size);
    Stream { closes: Closes::First, ..stream(content.clone(), content) }
}

/// Makes a connection one of many.
pub(crate) fn varied(random: &mut Random, stream: Stream) -> Stream {
    let size = stream.hears.len();
    let buffer = pick(random, &[512, 1_460, 3_000, 8_192, 30_000, 70_000]);
    let patience_ns = pick(random, &[70, 150, 400]) * SECOND_NS;
    let pace = match random.below(6) {
        0 => Pace::Slow(size / 40 + 1),
        _ => Pace::AsItComes,
    };
    let rest_ns = pick(random, &[SECOND_NS, 20 * SECOND_NS, 25 * SECOND_NS]);
    let rests = (random.below(8) == 0).then(|| (random.below(stream.says.len() as u64 + 1) as usize, rest_ns));
    let closes = match random.below(10) {
        0 => Closes::Broken(random.below(size as u64 + 1) as usize),
        1..4 => Closes::First,
        _ => stream.closes,
    };
    Stream { buffer, patience_ns, pace, rests, closes, ..stream }
}

/// Packets of this content whose answer is wanted once.
pub(crate) fn packets(protocol: Protocol, content: Vec<u8>) -> Packets {
    Packets { protocol, content, pauses: Vec::new(), late: None }
}

/// Each of so many kinds in the first turns, then any.
pub(crate) fn kind(random: &mut Random, turn: u64, kinds: u64) -> u64 {
    if turn < kinds { turn } else { random.below(kinds) }
}
