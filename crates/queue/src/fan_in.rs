//! Many producers, each with a queue of its own (a lane), and one consumer that polls them round robin. No producer
//! waits for another: one that is preempted or dies between two stores, or is malicious, delays its own lane only.
//! Order is kept per producer, not among producers. Uses a queue only through its consumer.

use core::ops::Deref;

use crate::ends::{Consumer, Queue};
use crate::slots::TryError;

/// Items taken from one lane before the next lane is polled.
const QUANTUM: u32 = 64;

/// The consumers of several queues as one consumer. `L` holds them: an array, a vector, a slice.
#[derive(Debug)]
pub struct FanIn<L> {
    lanes: L,
    lane: usize,
    left: u32,
}

/// A value and the number of the lane that produced it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FromLane<T> {
    /// The index among the lanes.
    pub lane: usize,
    /// An item, or why there is none.
    pub value: T,
}

impl<L> FanIn<L> {
    /// Polls the consumers in `lanes` round robin.
    pub fn new(lanes: L) -> Self {
        FanIn { lanes, lane: 0, left: QUANTUM }
    }

    /// The lanes, to add or remove some.
    pub fn lanes_mut(&mut self) -> &mut L {
        &mut self.lanes
    }

    /// The next item of any lane, and the number of the lane.
    ///
    /// # Errors
    /// When all lanes are empty: the error of the last lane that has one ([`TryError::Held`], [`TryError::Broken`],
    /// with its number), or that none is ready.
    #[inline]
    pub fn pop<R: Deref<Target: Queue>>(&mut self) -> Result<FromLane<<R::Target as Queue>::Item>, FromLane<TryError>>
    where
        L: AsMut<[Consumer<R>]>,
    {
        let lanes = self.lanes.as_mut();
        let mut outcome = FromLane { lane: 0, value: TryError::NotReady };
        for _ in 0..lanes.len() {
            if self.left == 0 || self.lane >= lanes.len() {
                (self.lane, self.left) = (next(self.lane, lanes.len()), QUANTUM);
            }
            match lanes[self.lane].pop() {
                Ok(item) => {
                    self.left -= 1;
                    return Ok(FromLane { lane: self.lane, value: item });
                }
                Err(TryError::NotReady) => {}
                Err(error @ (TryError::Held { .. } | TryError::Broken)) => {
                    outcome = FromLane { lane: self.lane, value: error };
                }
            }
            (self.lane, self.left) = (next(self.lane, lanes.len()), QUANTUM);
        }
        Err(outcome)
    }
}

fn next(lane: usize, lanes: usize) -> usize {
    if lane + 1 < lanes { lane + 1 } else { 0 }
}
