//! The state of a slot, one word: its lap, and whether it is free, full or held by an end.
//! Knows neither memory nor order.
//!
//! ```text
//!    63            16 15      8 7      3 2     0
//!   | lap             | owner  | span-1 | phase |        all zero: free, lap 0
//! ```
//!
//! A position counts items from 0. It lives in slot `position % capacity`, in lap `position / capacity`. A slot that is
//! given back is free in the next lap. `include/quaject/ring.h` has the same word.

/// Insertions into shared memory hold at most this many messages.
pub(crate) const SPAN_MAX: u64 = 32;

const LAP_SHIFT: u32 = 16;

/// The lowest bits of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Phase {
    /// Empty; the producer of this lap may write.
    Free = 0,
    /// Holds an item; the consumer of this lap may read.
    Full = 1,
    /// The producer `owner` has claimed this slot and the `span - 1` behind it.
    Busy = 2,
    /// The consumer `owner` is reading.
    Taken = 3,
    /// A producer died before it published; the consumer skips.
    Void = 4,
}

/// A slot's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word(pub(crate) u64);

impl Word {
    /// The state of a slot that no end holds.
    #[inline(always)]
    pub(crate) fn idle(lap: u64, phase: Phase) -> Word {
        Word((lap << LAP_SHIFT) | phase as u64)
    }

    /// The state of a slot that an end holds.
    #[inline(always)]
    pub(crate) fn held(lap: u64, owner: u8, span: u64, phase: Phase) -> Word {
        Word((lap << LAP_SHIFT) | (u64::from(owner) << 8) | ((span - 1) << 3) | phase as u64)
    }

    /// The phase, unless no correct peer writes such a word.
    #[inline(always)]
    pub(crate) fn phase(self) -> Option<Phase> {
        match self.0 & 7 {
            0 => Some(Phase::Free),
            1 => Some(Phase::Full),
            2 => Some(Phase::Busy),
            3 => Some(Phase::Taken),
            4 => Some(Phase::Void),
            5..=7 => None,
            8.. => unreachable!("masked to three bits"),
        }
    }

    /// The number of slots that the claim of a busy slot covers.
    #[inline(always)]
    pub(crate) fn span(self) -> u64 {
        ((self.0 >> 3) & 31) + 1
    }

    #[inline(always)]
    pub(crate) fn owner(self) -> u8 {
        (self.0 >> 8) as u8
    }

    #[inline(always)]
    pub(crate) fn lap(self) -> u64 {
        self.0 >> LAP_SHIFT
    }

    /// How many laps this word is ahead of `lap`; negative when it is behind.
    #[inline(always)]
    pub(crate) fn ahead_of(self, lap: u64) -> i64 {
        (self.0 & !0xffff).wrapping_sub(lap << LAP_SHIFT) as i64 >> LAP_SHIFT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_decodes_to_its_fields() {
        let word = Word::held(5, 200, 32, Phase::Busy);
        assert_eq!((word.lap(), word.owner(), word.span(), word.phase()), (5, 200, 32, Some(Phase::Busy)));
        assert_eq!((word.ahead_of(4), word.ahead_of(5), word.ahead_of(7)), (1, 0, -2));
        assert_eq!(Word::idle(0, Phase::Free), Word(0));
        assert_eq!(Word(7).phase(), None);
    }

    #[test]
    fn laps_wrap_around() {
        assert_eq!(Word::idle(0, Phase::Free).ahead_of((1 << 48) - 1), 1);
    }
}
