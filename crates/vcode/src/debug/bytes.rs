//! Numbers as DWARF and ELF write them.

use std::vec::Vec;

/// Adds four bytes.
pub(super) fn put_u32(out: &mut Vec<u8>, value: u32) {
    out.extend(value.to_le_bytes());
}

/// Adds a number in groups of seven bits.
pub(super) fn put_uleb(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
