//! One direction of an Ethernet link between the program and a host, with fault injection. Does not interpret frames.

use quaject_esp_exec::datum::Datum;
use quaject_esp_run::{FaultCounts, FaultInjector, FaultPlan};

/// The unimpaired link, with the delay of a local network.
const GOOD: &str = "tap:delay=2ms";

pub(crate) struct Wire {
    faulty: FaultInjector,
    good: FaultInjector,
    is_unimpaired: bool,
    /// The number of frames that have entered, and the latest that has left.
    number: i128,
    latest: i128,
    overtaken: u64,
}

/// Statistics of the frames of some links.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Carried {
    pub(crate) frames: u64,
    pub(crate) overtaken: u64,
    pub(crate) faults: FaultCounts,
}

impl Wire {
    pub(crate) fn new(faults: &FaultPlan, name: &str) -> Wire {
        let good: FaultPlan = GOOD.parse().expect("it is a fault");
        let (faulty, good) = (FaultInjector::new(faults, name), FaultInjector::new(&good, name));
        Wire { faulty, good, is_unimpaired: false, number: 0, latest: 0, overtaken: 0 }
    }

    /// Switches faults off or on.
    pub(crate) fn set_unimpaired(&mut self, is_unimpaired: bool) {
        self.is_unimpaired = is_unimpaired;
    }

    pub(crate) fn enter(&mut self, frame: Vec<u8>, now_ns: i64) {
        self.number += 1;
        let medium = if self.is_unimpaired { &mut self.good } else { &mut self.faulty };
        medium.enter(vec![Datum::Int(self.number), Datum::Bytes(frame)], now_ns);
    }

    /// The next frame that has arrived.
    pub(crate) fn leave(&mut self, now_ns: i64) -> Option<Vec<u8>> {
        let message = self.faulty.leave(now_ns).or_else(|| self.good.leave(now_ns))?;
        let [Datum::Int(number), Datum::Bytes(frame)] = &message[..] else { panic!("{message:?}") };
        self.overtaken += u64::from(*number < self.latest);
        self.latest = self.latest.max(*number);
        Some(frame.clone())
    }

    /// When the next frame arrives.
    pub(crate) fn due_ns(&self) -> Option<i64> {
        self.faulty.due_ns().into_iter().chain(self.good.due_ns()).min()
    }

    pub(crate) fn count(&self, carried: &mut Carried) {
        let faults = self.faulty.counts();
        carried.frames += self.number as u64;
        carried.overtaken += self.overtaken;
        carried.faults.lost += faults.lost;
        carried.faults.doubled += faults.doubled;
        carried.faults.delayed += faults.delayed;
    }
}
