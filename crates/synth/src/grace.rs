//! The grace period of freed code: when no thread can be inside of it any more (quiescent-state-based reclamation,
//! McKenney and Slingwine 1998).
//!
//! A participant is a thread or a processor that executes routines. It passes a quiescent point where it is certainly
//! in none, such as the return to user mode or its idle loop. A block that is freed in era `e` is free again when every
//! participant has passed a quiescent point in a later era.

use core::sync::atomic::{AtomicU64, Ordering};

/// The era of a place that no participant has.
const ABSENT: u64 = u64::MAX;

/// Up to `N` participants, and the era.
#[derive(Debug)]
pub struct Grace<const N: usize> {
    era: AtomicU64,
    seen: [AtomicU64; N],
}

/// A registered participant.
#[derive(Debug, PartialEq, Eq)]
pub struct Participant(usize);

impl<const N: usize> Default for Grace<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize> Grace<N> {
    /// No participants.
    pub const fn new() -> Self {
        Grace { era: AtomicU64::new(1), seen: [const { AtomicU64::new(ABSENT) }; N] }
    }

    /// Registers a participant; none if there are `N`.
    pub fn register(&self) -> Option<Participant> {
        // Pairs with the loads of `elapsed`: a routine that the participant finds is not reclaimed before it passes a
        // quiescent point.
        let era = self.era.load(Ordering::SeqCst);
        let free = |place: &AtomicU64| place.compare_exchange(ABSENT, era, Ordering::SeqCst, Ordering::SeqCst).is_ok();
        self.seen.iter().position(free).map(Participant)
    }

    /// The participant is in no routine, and will enter none.
    pub fn leave(&self, participant: Participant) {
        self.seen[participant.0].store(ABSENT, Ordering::SeqCst);
    }

    /// The participant is in no routine now.
    pub fn quiescent(&self, participant: &Participant) {
        let era = self.era.load(Ordering::SeqCst);
        // Pairs with the loads of `elapsed`: the participant has left every routine before.
        self.seen[participant.0].store(era, Ordering::SeqCst);
    }

    /// Ends an era, in which something was freed; returns its number.
    pub(crate) fn advance(&self) -> u64 {
        self.era.fetch_add(1, Ordering::SeqCst)
    }

    /// The last era that all participants have left.
    pub(crate) fn elapsed(&self) -> u64 {
        let now = self.era.load(Ordering::SeqCst);
        self.seen.iter().map(|seen| seen.load(Ordering::SeqCst)).fold(now, u64::min) - 1
    }
}
