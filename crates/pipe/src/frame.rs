//! The block of memory that generated code and its driver share: the parameters and the accumulators of the steps.
//! Generated code has the offsets in its instructions, for every machine.
//!
//! ```text
//!   0  tables of CRC-32C (and three slots of padding)
//!  32  key streams (4)
//!  64  accumulators (16): what steps add up; remainders and totals from piece to piece, sums from zero in each
//! 192  repeated keys (8), in memory order
//! 256  first word: a vector whose first word has all bits set, and no other
//! 320  lanes: the constants that advance a CRC from each sixteen bytes of a vector to the last sixteen
//! 384  spill: vectors on their way to accumulators (4 of 64 bytes); in integer registers instead of them the registers
//!      of a user's step (8), a number between integer and floating registers, the elements left of a unit
//! 640  shuffles: where bytes of swapped elements come from, of 2, 4 and 8 bytes (3 of 64 bytes)
//! ```
//!
//! All but keys, spill and constants are slots of eight bytes. A machine whose registers have 32 bits uses the low half
//! of a slot.

use crate::crc32c;
use crate::step::{MAX_STEPS, MAX_STREAMS};

pub(crate) const TABLES: usize = 0;
pub(crate) const STREAMS: usize = 4;
pub(crate) const ACCUMULATORS: usize = STREAMS + MAX_STREAMS;
/// A step takes two at most.
pub(crate) const MAX_ACCUMULATORS: usize = 2 * MAX_STEPS;
pub(crate) const KEYS: usize = ACCUMULATORS + MAX_ACCUMULATORS;
/// Bytes from the start.
pub(crate) const FIRST_WORD: usize = 8 * (KEYS + MAX_STEPS);
/// Bytes from the start.
const LANES: usize = FIRST_WORD + VECTOR_BYTES;
/// Bytes from the start.
pub(crate) const SPILL: usize = LANES + VECTOR_BYTES;
/// The slot of a number on its way between integer and floating registers, in bytes from the start.
pub(crate) const EXCHANGE: usize = SPILL + 64;
/// The slot of the number of elements that are left of a unit, in bytes from the start.
pub(crate) const ELEMENTS_LEFT: usize = EXCHANGE + 8;
/// Bytes from the start.
const SHUFFLES: usize = SPILL + SPILL_BYTES;
/// Bytes of all.
pub(crate) const BYTES: usize = SHUFFLES + 3 * VECTOR_BYTES;
/// Bytes of the widest vector.
const VECTOR_BYTES: usize = 64;
pub(crate) const SPILL_BYTES: usize = 256;

/// The block, for the machine this program runs on.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) slots: [u64; KEYS],
    pub(crate) keys: [[u8; 8]; MAX_STEPS],
    first_word: [u8; VECTOR_BYTES],
    lanes: [u8; VECTOR_BYTES],
    spill: [u8; SPILL_BYTES],
    shuffles: [[u8; VECTOR_BYTES]; 3],
}

/// The offset of the constants for the lanes of vectors of `width` bytes: narrower ones have the last of them.
pub(crate) fn lanes_offset(width: usize) -> usize {
    LANES + VECTOR_BYTES - width
}

/// A vector whose first word has all bits set, and no other.
pub(crate) const fn first_word() -> [u8; VECTOR_BYTES] {
    let mut bytes = [0; VECTOR_BYTES];
    let mut at = 0;
    while at < 4 {
        bytes[at] = 0xff;
        at += 1;
    }
    bytes
}

/// The constants by which sixteen bytes are multiplied to advance them to the end of a vector. The last sixteen bytes
/// are there, and their constants are zero.
pub(crate) const fn lanes() -> [u8; VECTOR_BYTES] {
    let mut bytes = [0; VECTOR_BYTES];
    let mut lane = 0;
    while lane < VECTOR_BYTES / 16 - 1 {
        let (low, high) = crc32c::fold((VECTOR_BYTES - 16 * (lane + 1)) as u32);
        let (low, high) = (low.to_le_bytes(), high.to_le_bytes());
        let mut byte = 0;
        while byte < 8 {
            bytes[16 * lane + byte] = low[byte];
            bytes[16 * lane + 8 + byte] = high[byte];
            byte += 1;
        }
        lane += 1;
    }
    bytes
}

/// The offset of the shuffle that swaps elements of `bytes` bytes.
pub(crate) fn shuffle_offset(bytes: usize) -> usize {
    SHUFFLES + VECTOR_BYTES * (bytes.ilog2() as usize - 1)
}

/// All shuffles: the source of each byte among sixteen.
pub(crate) const fn shuffle_masks() -> [[u8; VECTOR_BYTES]; 3] {
    let mut shuffles = [[0; VECTOR_BYTES]; 3];
    let mut at = 0;
    while at < 3 * VECTOR_BYTES {
        let (kind, byte) = (at / VECTOR_BYTES, at % VECTOR_BYTES);
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
            first_word: first_word(),
            lanes: lanes(),
            spill: [0; SPILL_BYTES],
            shuffles: shuffle_masks(),
        }
    }
}

const _: () = assert!(size_of::<Frame>() == BYTES && FIRST_WORD.is_multiple_of(VECTOR_BYTES));
