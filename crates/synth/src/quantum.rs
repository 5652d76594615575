//! Fine-grain scheduling: the time slice of a thread follows from the rate of its input and output (Massalin and Pu,
//! "Fine-Grain Adaptive Scheduling using Feedback", 1990). A thread that moves much data per slice gets a longer one,
//! so that it is switched less often per byte; a thread whose input fills up faster than it reads gets more, too. The
//! bounds keep the time until every other thread has had its turn.

use crate::gauge::Rate;

/// The time slices of a system, in microseconds or any other unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slices {
    /// That of a thread without input and output.
    pub shortest: u32,
    /// No thread gets more.
    pub longest: u32,
    /// The rate, in events per slice, at which a thread gets half of what is between them.
    pub half_rate: u32,
}

/// What the gauges of a thread say about its last slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flow {
    /// The rate of what it reads and writes.
    pub moved: Rate,
    /// The rate at which its input arrives.
    pub arrived: Rate,
    /// The rate at which it takes its input.
    pub taken: Rate,
}

impl Slices {
    /// The next time slice of a thread.
    ///
    /// Grows with the rate, first linearly, towards the longest; input that arrives faster than it is taken counts
    /// twice.
    pub fn quantum(&self, flow: Flow) -> u32 {
        let behind = flow.arrived.events().saturating_sub(flow.taken.events());
        let rate = u128::from(flow.moved.events()) + 2 * u128::from(behind);
        let room = u128::from(self.longest.saturating_sub(self.shortest));
        let half = u128::from(self.half_rate.max(1));
        let extra = room * rate / (rate + half);
        // At most `room`, which is a difference of two of these numbers.
        self.shortest.saturating_add(extra as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLICES: Slices = Slices { shortest: 100, longest: 1100, half_rate: 4000 };

    fn rate(events: u64) -> Rate {
        (0..400).fold(Rate::default(), |rate, _| rate.after(events))
    }

    fn flow(moved: u64, arrived: u64, taken: u64) -> Flow {
        Flow { moved: rate(moved), arrived: rate(arrived), taken: rate(taken) }
    }

    #[test]
    fn the_slice_grows_with_the_rate_between_its_bounds() {
        assert_eq!(SLICES.quantum(flow(0, 0, 0)), 100);
        assert_eq!(SLICES.quantum(flow(4000, 0, 0)), 600);
        assert_eq!(SLICES.quantum(flow(12_000, 0, 0)), 850);
        let slices: [u32; 6] = [0, 10, 1000, 100_000, 1 << 30, u64::MAX].map(|moved| SLICES.quantum(flow(moved, 0, 0)));
        assert!(slices.is_sorted() && slices[5] <= 1100, "{slices:?}");
    }

    #[test]
    fn a_thread_that_is_behind_gets_more() {
        let even = SLICES.quantum(flow(1000, 500, 500));
        assert!(SLICES.quantum(flow(1000, 900, 500)) > even);
        assert_eq!(SLICES.quantum(flow(1000, 400, 500)), even, "one that is ahead does not get less");
    }

    #[test]
    fn odd_bounds_do_no_harm() {
        let odd = Slices { shortest: 500, longest: 100, half_rate: 0 };
        assert_eq!(odd.quantum(flow(1000, 0, 0)), 500);
        let wide = Slices { shortest: 0, longest: u32::MAX, half_rate: 1 };
        assert!(wide.quantum(flow(u64::MAX, u64::MAX, 0)) > u32::MAX / 2);
    }
}
