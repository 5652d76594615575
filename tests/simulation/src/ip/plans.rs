//! Random exchanges of hosts: pages and echo of all sizes, at any pace, closed by either side or aborted.

use super::packets::{Packets, Protocol};
use super::service;
use super::stream::{Close, Pace, Stream};
use crate::SECOND_NS;
use quaject_test_support::random::Random;

/// Around the sizes of segments and of the programs' buffers.
const SIZES: [usize; 14] = [0, 1, 2, 3, 559, 560, 561, 1_459, 1_460, 1_461, 2_920, 11_680, 23_361, 65_536];

pub(crate) fn pick<T: Copy>(random: &mut Random, among: &[T]) -> T {
    among[random.below(among.len() as u64) as usize]
}

pub(crate) fn bytes(random: &mut Random, count: usize) -> Vec<u8> {
    (0..count).map(|_| random.byte()).collect()
}

pub(crate) fn any_size(random: &mut Random) -> usize {
    let any = [4_000, 100_000].map(|max| random.below(max) as usize);
    let near = [pick(random, &SIZES), pick(random, &SIZES)];
    pick(random, &[near[0], near[1], any[0], any[1]])
}

/// A connection without limits of pace.
pub(crate) fn stream(sends: Vec<u8>, expects: Vec<u8>) -> Stream {
    let timeout_ns = 400 * SECOND_NS;
    Stream {
        sends: sends.into(),
        expects: expects.into(),
        close: Close::Last,
        pace: Pace::Unlimited,
        buffer: 8_192,
        pause: None,
        timeout_ns,
    }
}

pub(crate) fn page(random: &mut Random, size: usize) -> Stream {
    let name = format!("{size}-{}", random.below(1 << 40));
    stream(service::request(&name), service::answer(&name))
}

pub(crate) fn echo(random: &mut Random, size: usize) -> Stream {
    let content = bytes(random, size);
    Stream { close: Close::First, ..stream(content.clone(), content) }
}

/// A random variation of a connection.
pub(crate) fn varied(random: &mut Random, stream: Stream) -> Stream {
    let size = stream.expects.len();
    let buffer = pick(random, &[512, 1_460, 3_000, 8_192, 30_000, 70_000]);
    let timeout_ns = pick(random, &[70, 150, 400]) * SECOND_NS;
    let pace = match random.below(6) {
        0 => Pace::Slow(size / 40 + 1),
        _ => Pace::Unlimited,
    };
    let pause_ns = pick(random, &[SECOND_NS, 20 * SECOND_NS, 25 * SECOND_NS]);
    let pause = (random.below(8) == 0).then(|| (random.below(stream.sends.len() as u64 + 1) as usize, pause_ns));
    let close = match random.below(10) {
        0 => Close::Broken(random.below(size as u64 + 1) as usize),
        1..4 => Close::First,
        _ => stream.close,
    };
    Stream { buffer, timeout_ns, pace, pause, close, ..stream }
}

/// One request of this content.
pub(crate) fn packets(protocol: Protocol, content: Vec<u8>) -> Packets {
    Packets { protocol, content, pauses: Vec::new(), late: None }
}

/// Each of this many kinds in the first turns, then a random one.
pub(crate) fn kind(random: &mut Random, turn: u64, kinds: u64) -> u64 {
    if turn < kinds { turn } else { random.below(kinds) }
}
