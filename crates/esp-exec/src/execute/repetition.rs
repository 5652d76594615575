//! Proof that local code can run for ever: it reaches one position twice with the same frame and the same pools.
//! Brent's algorithm compares samples of the state with an earlier one; it needs memory for one state.
//!
//! R. P. Brent, "An improved Monte Carlo factorization algorithm", BIT 20 (1980), section 2.

use crate::code::{BodyCode, Pc};
use crate::coverage::ExecutionHook;
use crate::execute::{LocalContext, StopReason};
use crate::frame::Frame;
use crate::pools::Pools;

/// The instructions between two samples.
const SAMPLE_INTERVAL: u32 = 1024;

/// Stops before every so many instructions.
struct Sampling<'w, W> {
    hook: &'w mut W,
    left: u32,
}

impl<W: ExecutionHook> ExecutionHook for Sampling<'_, W> {
    #[inline]
    fn reach(&mut self, at: usize) {
        self.hook.reach(at);
    }

    #[inline]
    fn stops_at(&mut self, at: usize) -> bool {
        if self.left == 0 {
            return true;
        }
        self.left -= 1;
        self.hook.stops_at(at)
    }
}

/// An earlier state of local code.
struct Sample {
    at: Pc,
    frame: Frame,
    pools: Pools,
}

impl<'a> LocalContext<'a> {
    /// Runs `body` until it stops, `fuel` is used up or its state repeats. Counts a repetition as used fuel and records
    /// it. The hook stops nowhere.
    ///
    /// What an environment returns is no part of the state: it may return the same again.
    pub(super) fn run_until_repetition<W: ExecutionHook>(
        &mut self,
        body: &'a BodyCode,
        frame: &mut Frame,
        pc: Pc,
        fuel: &mut u64,
        hook: &mut W,
    ) -> StopReason {
        let mut at = pc;
        let mut earlier: Option<Sample> = None;
        let (mut samples, mut next_copy) = (0_u64, 1_u64);
        loop {
            let mut sampling = Sampling { hook: &mut *hook, left: SAMPLE_INTERVAL };
            match self.run_steps(body, frame, at, fuel, &mut sampling) {
                StopReason::Native(next) => at = next,
                stop => return stop,
            }
            let repeats = |sample: &Sample| sample.at == at && sample.frame == *frame && sample.pools == *self.pools;
            if earlier.as_ref().is_some_and(repeats) {
                self.scratch.has_repetition = true;
                *fuel = 0;
                return StopReason::Fuel(at);
            }
            samples += 1;
            if samples == next_copy {
                next_copy *= 2;
                earlier = Some(Sample { at, frame: frame.clone(), pools: self.pools.clone() });
            }
        }
    }
}
