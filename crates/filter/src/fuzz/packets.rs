//! Random packets: most resemble Ethernet with IPv4 or IPv6 inside, with addresses and ports that filters ask about;
//! some are noise. And lengths around the bounds of what filters read.

use super::random::Random;

/// Values that fields of filters and packets share, so that they are often equal.
pub(super) const VALUES: [u32; 10] = [0, 1, 2, 5, 6, 17, 80, 0x45, 0x0800, 0x86dd];

/// A value for a field of a width.
pub(super) fn value(random: &mut Random, width: u32) -> u32 {
    let all = u32::MAX >> (32 - 8 * width);
    let value = match random.below(4) {
        0 => random.next() as u32,
        1 => *random.pick(&VALUES) << (8 * (width - 1)),
        2 => 0x0a00_0000 | random.below(4) as u32,
        _ => *random.pick(&VALUES),
    };
    value & all
}

/// The bytes of a packet.
pub(super) fn packet(random: &mut Random) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..random.below(40) + 60).map(|_| *random.pick(&[0, 0, 0, 1, 5, 10])).collect();
    if random.chance(1, 8) {
        bytes.fill_with(|| random.next() as u8);
        return bytes;
    }
    let six = random.chance(1, 4);
    bytes[12..14].copy_from_slice(if six { &[0x86, 0xdd] } else { &[8, 0] });
    bytes[14] = if six { 0x60 } else { 0x40 | *random.pick(&[5, 5, 5, 5, 5, 6, 7, 15, 0, 4]) };
    for at in [16, 18, 20] {
        put(&mut bytes, at, 2, if random.chance(1, 8) { random.next() as u32 } else { 0 });
    }
    bytes[if six { 20 } else { 23 }] = *random.pick(&[6, 6, 17, 1, 58]);
    let addresses = if six { vec![22, 26, 30, 34, 38, 42, 46, 50] } else { vec![26, 30] };
    for at in addresses {
        let address = value(random, 4);
        put(&mut bytes, at, 4, address);
    }
    let header = 14 + if six { 40 } else { 4 * usize::from(bytes[14] & 15) };
    for at in [header, header + 2] {
        if at + 2 <= bytes.len() {
            let port = value(random, 2);
            put(&mut bytes, at, 2, port);
        }
    }
    for _ in 0..random.below(3) {
        let at = random.below(bytes.len());
        bytes[at] = random.next() as u8;
    }
    bytes
}

fn put(bytes: &mut [u8], at: usize, width: usize, value: u32) {
    bytes[at..at + width].copy_from_slice(&value.to_be_bytes()[4 - width..]);
}

/// Lengths to cut a packet to: all of it, and some around where fields end.
pub(super) fn lengths(random: &mut Random, full: usize) -> Vec<usize> {
    let mut lengths = vec![full];
    for _ in 0..random.below(3) {
        let around = *random.pick(&[0, 12, 14, 16, 20, 24, 26, 30, 34, 36, 38, 40, 54, 58]);
        lengths.push((around + random.below(3)).saturating_sub(1).min(full));
    }
    lengths
}
