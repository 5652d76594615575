//! Deterministic simulation of programs on an impaired network, in virtual time, which advances only when all programs
//! are quiescent. Messages are lost, duplicated, delayed, reordered and cut off by seeded fault injection, as with the
//! faults of `qj run`. Each transfer completes with equal bytes, or reports an error.
//!
//! `cargo xtask simulate [PROGRAM] --hours 24` is the long run; a test run takes minutes of virtual time.

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

/// The virtual time that a simulation covers.
fn wanted_ns() -> i64 {
    let seconds = match wanted_number("QJ_HOURS") {
        Some(hours) => i64::try_from(hours).expect("fewer hours than that") * 3_600,
        None => Effort::wanted().pick(300, 1_800, 24 * 3_600),
    };
    seconds * SECOND_NS
}

/// A digest of all outputs of a program with their times.
#[derive(Default)]
struct Trace(DefaultHasher);

impl Trace {
    fn note(&mut self, now_ns: i64, channel: ChannelId, message: &[Datum]) {
        (now_ns, channel, message).hash(&mut self.0);
    }

    fn digest(&self) -> u64 {
        self.0.finish()
    }
}

/// The result of a simulation with connections.
#[derive(Debug)]
struct SimulationResult {
    trace: u64,
    impairment_counts: stream::ImpairmentCounts,
}
