//! The block of memory that generated code and its driver share: what the steps need, what they have added up. Offsets
//! are those generated code has in its instructions, for every machine.
//!
//! ```text
//!   0  tables of CRC-32C (and three slots of nothing, for what follows to be aligned)
//!  32  key streams (4)
//!  64  accumulators (16): what steps add up; remainders and totals from piece to piece, sums from zero in each
//! 192  repeated keys (8), in memory order
//! 256  seed: one vector that is zero but for its first word
//! 320  spill: vectors on their way to accumulators (4 of 64 bytes)
//! ```
//!
//! All but keys and spill are slots of eight bytes. A machine whose registers have 32 bits uses the low half of a slot.

use crate::step::{MOST_STEPS, MOST_STREAMS};

pub(crate) const TABLES: usize = 0;
pub(crate) const STREAMS: usize = 4;
pub(crate) const ACCUMULATORS: usize = STREAMS + MOST_STREAMS;
/// A step takes two at most.
pub(crate) const MOST_ACCUMULATORS: usize = 2 * MOST_STEPS;
pub(crate) const KEYS: usize = ACCUMULATORS + MOST_ACCUMULATORS;
/// Bytes from the start.
pub(crate) const SEED: usize = 8 * (KEYS + MOST_STEPS);
/// Bytes from the start.
pub(crate) const SPILL: usize = SEED + 64;
/// Bytes of all.
pub(crate) const BYTES: usize = SPILL + SPILL_BYTES;
pub(crate) const SPILL_BYTES: usize = 256;

/// The block, for the machine this program runs on.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) slots: [u64; KEYS],
    pub(crate) keys: [[u8; 8]; MOST_STEPS],
    pub(crate) seed: [u64; 8],
    spill: [u8; SPILL_BYTES],
}

impl Frame {
    pub(crate) const fn new() -> Frame {
        Frame { slots: [0; KEYS], keys: [[0; 8]; MOST_STEPS], seed: [0; 8], spill: [0; SPILL_BYTES] }
    }
}

const _: () = assert!(size_of::<Frame>() == BYTES && SEED.is_multiple_of(64));
