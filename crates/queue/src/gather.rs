//! Many producers, each with a lane of its own, and one consumer that goes round. No producer ever waits for another:
//! one that is preempted or dies between two stores, or lies, holds up its own lane alone. Order is kept per producer,
//! not among producers. Knows no queue but through its consumers.

use core::ops::Deref;

use crate::ends::{Consumer, Queue};
use crate::slots::Refusal;

/// Items taken from one lane before the next gets its turn.
const TURN: u32 = 64;

/// The consumers of some queues as one. `L` holds them: an array, a vector, a slice.
#[derive(Debug)]
pub struct Gather<L> {
    lanes: L,
    lane: usize,
    left: u32,
}

/// Something and the number of the lane it came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FromLane<T> {
    /// The index among the lanes.
    pub lane: usize,
    /// An item, or why there is none.
    pub what: T,
}

impl<L> Gather<L> {
    /// Goes round the consumers in `lanes`.
    pub fn new(lanes: L) -> Self {
        Gather { lanes, lane: 0, left: TURN }
    }

    /// The lanes, to add or remove some.
    pub fn lanes_mut(&mut self) -> &mut L {
        &mut self.lanes
    }

    /// The next item of any lane, and the number of the lane.
    ///
    /// # Errors
    /// When all lanes are empty: what the last lane in trouble said ([`Refusal::Held`], [`Refusal::Broken`], with its
    /// number), or that none is ready.
    #[inline]
    pub fn pop<R: Deref<Target: Queue>>(&mut self) -> Result<FromLane<<R::Target as Queue>::Item>, FromLane<Refusal>>
    where
        L: AsMut<[Consumer<R>]>,
    {
        let lanes = self.lanes.as_mut();
        let mut why = FromLane { lane: 0, what: Refusal::NotReady };
        for _ in 0..lanes.len() {
            if self.left == 0 || self.lane >= lanes.len() {
                (self.lane, self.left) = (next(self.lane, lanes.len()), TURN);
            }
            match lanes[self.lane].pop() {
                Ok(item) => {
                    self.left -= 1;
                    return Ok(FromLane { lane: self.lane, what: item });
                }
                Err(Refusal::NotReady) => {}
                Err(trouble @ (Refusal::Held { .. } | Refusal::Broken)) => {
                    why = FromLane { lane: self.lane, what: trouble };
                }
            }
            (self.lane, self.left) = (next(self.lane, lanes.len()), TURN);
        }
        Err(why)
    }
}

fn next(lane: usize, lanes: usize) -> usize {
    if lane + 1 < lanes { lane + 1 } else { 0 }
}
