//! CRC-32C (Castagnoli): tables and constants for generated code. Knows no machine.
//!
//! Everything is bit-reflected, as RFC 3720 has it: the first bit of a message is the lowest of its first byte, and in
//! a 32-bit word bit 31 stands for x^0.

/// The polynomial without x^32.
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// `TABLES[k][b]` is the remainder of byte `b` followed by `k` zero bytes.
pub(crate) static TABLES: [[u32; 256]; 8] = tables();

const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut remainder = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            remainder = times_x(remainder);
            bit += 1;
        }
        tables[0][byte] = remainder;
        byte += 1;
    }
    let mut zeros = 1;
    while zeros < 8 {
        let mut byte = 0;
        while byte < 256 {
            let shorter = tables[zeros - 1][byte];
            tables[zeros][byte] = shorter >> 8 ^ tables[0][(shorter & 0xff) as usize];
            byte += 1;
        }
        zeros += 1;
    }
    tables
}

const fn times_x(value: u32) -> u32 {
    value >> 1 ^ (if value & 1 == 1 { POLYNOMIAL } else { 0 })
}

/// The remainder after `bytes`, from the remainder before them; the CRC of a message is the complement of the remainder
/// that starts with all ones.
pub(crate) fn update(remainder: u32, bytes: &[u8]) -> u32 {
    bytes.iter().fold(remainder, |r, byte| r >> 8 ^ TABLES[0][((r ^ u32::from(*byte)) & 0xff) as usize])
}

/// x to the `power` modulo the polynomial.
const fn x_to(power: u32) -> u32 {
    let mut value = 0x8000_0000;
    let mut done = 0;
    while done < power {
        value = times_x(value);
        done += 1;
    }
    value
}

/// The constants by which the lower and the higher eight bytes of sixteen are multiplied, without carries, to advance
/// them by `bytes` in the message: the exclusive or of the products is congruent to the sixteen bytes.
///
/// A product of reflected factors is one bit short of being reflected itself, hence the shift.
pub(crate) const fn fold(bytes: u32) -> (u64, u64) {
    ((x_to(8 * bytes + 32) as u64) << 1, (x_to(8 * bytes - 32) as u64) << 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vectors_of_rfc_3720_come_out() {
        let ascending: Vec<u8> = (0..32).collect();
        let descending: Vec<u8> = (0..32).rev().collect();
        for (bytes, crc) in [
            (&[0; 32][..], 0x8a91_36aa_u32),
            (&[0xff; 32], 0x62a8_ab43),
            (&ascending, 0x46dd_794e),
            (&descending, 0x113f_db5c),
            (b"123456789", 0xe306_9283),
        ] {
            assert_eq!(!update(u32::MAX, bytes), crc);
        }
    }

    #[test]
    fn the_constants_for_64_bytes_are_the_published_ones() {
        assert_eq!(fold(64), (0x740e_ef02, 0x9e4a_ddf8));
    }
}
