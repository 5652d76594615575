//! Gauges: counts of events, such as the bytes that pass through a queue, from which the scheduler computes rates.

use core::sync::atomic::{AtomicU64, Ordering};

/// A count of events. Synthesised code can increment it at its address, too.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Gauge(AtomicU64);

impl Gauge {
    /// No events.
    pub const fn new() -> Gauge {
        Gauge(AtomicU64::new(0))
    }

    /// Counts events.
    pub fn add(&self, events: u64) {
        // A statistic: nothing else is published by it.
        self.0.fetch_add(events, Ordering::Relaxed);
    }

    /// The events since the last call.
    pub fn take(&self) -> u64 {
        self.0.swap(0, Ordering::Relaxed)
    }

    /// The events since the last [`Gauge::take`].
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Where the count is, for `add64_to_i` and the like.
    pub fn address(&self) -> usize {
        self.0.as_ptr() as usize
    }
}

/// A rate that follows the counts of a gauge, an interval at a time: a low-pass filter of first order, which halves the
/// weight of what was after about `SHIFT` times 0.7 intervals to the power of two.
///
/// Kept with eight binary digits after the point.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rate(u64);

/// The weight of the last interval is two to the power of minus this.
const SHIFT: u32 = 2;
/// The binary digits after the point.
const FRACTION: u32 = 8;
/// Counts of an interval above this are taken for it.
const MAX_EVENTS: u64 = 1 << 40;

impl Rate {
    /// The rate after another interval with so many events.
    #[must_use]
    pub fn after(self, events: u64) -> Rate {
        let events = events.min(MAX_EVENTS) << FRACTION;
        // Rounds towards the events, so that a constant count is reached.
        if events >= self.0 {
            Rate(self.0 + (events - self.0).div_ceil(1 << SHIFT))
        } else {
            Rate(self.0 - (self.0 - events).div_ceil(1 << SHIFT))
        }
    }

    /// Events per interval, rounded down.
    pub fn events(self) -> u64 {
        self.0 >> FRACTION
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gauge_counts_since_the_last_reading() {
        let gauge = Gauge::new();
        gauge.add(3);
        gauge.add(4);
        assert_eq!((gauge.count(), gauge.take(), gauge.take()), (7, 7, 0));
        // SAFETY: the address is that of the count, and no thread uses it meanwhile.
        unsafe { *(gauge.address() as *mut u64) += 2 };
        assert_eq!(gauge.take(), 2);
    }

    #[test]
    fn a_rate_reaches_a_constant_count_from_both_sides() {
        for (start, events) in [(0, 1000), (1_000_000, 1000), (5, 0), (0, u64::MAX)] {
            let mut rate = Rate(start << FRACTION);
            let target = events.min(MAX_EVENTS);
            let mut distance = u64::MAX;
            for _ in 0..400 {
                rate = rate.after(events);
                let now = rate.0.abs_diff(target << FRACTION);
                assert!(now < distance || now == 0, "it comes closer in every interval");
                distance = now;
            }
            assert_eq!(rate.events(), target);
        }
    }

    #[test]
    fn a_rate_is_slower_than_its_events() {
        let mut rate = Rate::default();
        rate = rate.after(800);
        assert_eq!(rate.events(), 200);
        rate = rate.after(0);
        assert_eq!(rate.events(), 150);
    }
}
