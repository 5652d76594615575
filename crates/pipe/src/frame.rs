//! The block of memory that generated code and its driver share: the parameters and the accumulators of the steps.
//! Generated code has the offsets in its instructions, for every machine.
//!
//! ```text
//!   0  tables of CRC-32C (and three slots of padding)
//!  32  key streams (4)
//!  64  accumulators (16): what steps add up; remainders and totals from piece to piece, sums from zero in each
//! 192  repeated keys (8), in memory order
//! 256  seed: one vector that is zero but for its first word
//! 320  spill: vectors on their way to accumulators (4 of 64 bytes)
//! 576  shuffles: where bytes of swapped elements come from, of 2, 4 and 8 bytes (3 of 64 bytes)
//! ```
//!
//! All but keys, spill and shuffles are slots of eight bytes. A machine whose registers have 32 bits uses the low half
//! of a slot.

use crate::step::{MAX_STEPS, MAX_STREAMS};

pub(crate) const TABLES: usize = 0;
pub(crate) const STREAMS: usize = 4;
pub(crate) const ACCUMULATORS: usize = STREAMS + MAX_STREAMS;
/// A step takes two at most.
pub(crate) const MAX_ACCUMULATORS: usize = 2 * MAX_STEPS;
pub(crate) const KEYS: usize = ACCUMULATORS + MAX_ACCUMULATORS;
/// Bytes from the start.
pub(crate) const SEED: usize = 8 * (KEYS + MAX_STEPS);
/// Bytes from the start.
pub(crate) const SPILL: usize = SEED + 64;
/// Bytes from the start.
const SHUFFLES: usize = SPILL + SPILL_BYTES;
/// Bytes of all.
pub(crate) const BYTES: usize = SHUFFLES + 3 * SHUFFLE_BYTES;
const SHUFFLE_BYTES: usize = 64;
pub(crate) const SPILL_BYTES: usize = 256;

/// The block, for the machine this program runs on.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) slots: [u64; KEYS],
    pub(crate) keys: [[u8; 8]; MAX_STEPS],
    pub(crate) seed: [u64; 8],
    spill: [u8; SPILL_BYTES],
    shuffles: [[u8; SHUFFLE_BYTES]; 3],
}

/// The offset of the shuffle that swaps elements of `bytes` bytes.
pub(crate) fn shuffle_offset(bytes: usize) -> usize {
    SHUFFLES + SHUFFLE_BYTES * (bytes.ilog2() as usize - 1)
}

/// All shuffles: the source of each byte among sixteen.
pub(crate) const fn shuffle_masks() -> [[u8; SHUFFLE_BYTES]; 3] {
    let mut shuffles = [[0; SHUFFLE_BYTES]; 3];
    let mut at = 0;
    while at < 3 * SHUFFLE_BYTES {
        let (kind, byte) = (at / SHUFFLE_BYTES, at % SHUFFLE_BYTES);
        shuffles[kind][byte] = ((byte % 16) ^ ((2 << kind) - 1)) as u8;
        at += 1;
    }
    shuffles
}

impl Frame {
    pub(crate) const fn new() -> Frame {
        Frame {
            slots: [0; KEYS],
            keys: [[0; 8]; MAX_STEPS],
            seed: [0; 8],
            spill: [0; SPILL_BYTES],
            shuffles: shuffle_masks(),
        }
    }
}

const _: () = assert!(size_of::<Frame>() == BYTES && SEED.is_multiple_of(64));
