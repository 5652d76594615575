//! Programs on a simulated network for hours of a clock that moves only when they rest: messages are lost, doubled, delayed,
//! overtaken and cut off, by the same faults as those of `--fault` and the same ones in every run. Whatever happens, each
//! transfer completes with equal bytes, or reports an error.
//!
//! `cargo xtask simulate [PROGRAM] --hours 24` is the long run; a test run takes minutes of that clock.

mod ip;
mod mqtt;
mod node;
mod stream;
mod tftp;
mod uds;
mod usb;

use quaject_esp_exec::datum::Datum;
use quaject_esp_ir::ir::ChannelId;
use quaject_test_support::{Effort, wanted_number};
use std::hash::{DefaultHasher, Hash, Hasher};

const MILLISECOND_NS: i64 = 1_000_000;
const SECOND_NS: i64 = 1_000_000_000;

/// How long the clock of the programs shall go on.
fn wanted_ns() -> i64 {
    let seconds = match wanted_number("QJ_HOURS") {
        Some(hours) => i64::try_from(hours).expect("fewer hours than that") * 3_600,
        None => Effort::wanted().pick(300, 1_800, 24 * 3_600),
    };
    seconds * SECOND_NS
}

/// All that a program says and when, as one number.
#[derive(Default)]
struct Trace(DefaultHasher);

impl Trace {
    fn note(&mut self, now_ns: i64, channel: ChannelId, message: &[Datum]) {
        (now_ns, channel, message).hash(&mut self.0);
    }

    fn end(&self) -> u64 {
        self.0.finish()
    }
}

/// How a simulation with connections has ended.
#[derive(Debug)]
struct Ending {
    trace: u64,
    sufferings: stream::Sufferings,
}
