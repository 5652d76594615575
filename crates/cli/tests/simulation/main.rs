//! Programs on a simulated network for hours of a clock that moves only when they rest: messages are lost, doubled, delayed,
//! overtaken and cut off, by the same faults as those of `--fault` and the same ones in every run. Whatever happens, each
//! transfer completes with equal bytes, or reports an error.
//!
//! `cargo xtask simulate [PROGRAM] --hours 24` is the long run; a test run takes minutes of that clock.

mod node;
mod tftp;

use quaject_test_support::{Effort, wanted_number};

const SECOND_NS: i64 = 1_000_000_000;

/// How long the clock of the programs shall go on.
fn wanted_ns() -> i64 {
    let seconds = match wanted_number("QJ_HOURS") {
        Some(hours) => i64::try_from(hours).expect("fewer hours than that") * 3_600,
        None => Effort::wanted().pick(300, 1_800, 24 * 3_600),
    };
    seconds * SECOND_NS
}

/// A small deterministic source of test data (xorshift64*, Vigna 2016).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `bound`.
    fn below(&mut self, bound: u64) -> u64 {
        (self.next() >> 11) % bound
    }
}
