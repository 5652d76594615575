//! The computation that scatters a distance over the fields of an instruction word, with few operations. Shared by the
//! printers of back-patching, independent of their language.

/// A part of the word, as an operation on the distance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Term {
    /// The sign bit, in place.
    Sign,
    /// `(distance & input) * factor & output`: several pieces in one product, whose shifted copies do not overlap.
    Product { input: u64, factor: u64, output: u64 },
    /// `(distance >> shift & mask) << low`.
    Piece { shift: u32, mask: u64, low: u32 },
}

/// The terms for a signed distance of `bits`, of which the low `scale` are zero, over pieces of a word from the most
/// significant one on. A part of a distance has no sign.
pub(crate) fn terms(pieces: &[(u32, u32)], bits: u32, scale: u32, whole: bool) -> Vec<Term> {
    let mut remaining: u32 = pieces.iter().map(|(high, low)| high - low + 1).sum();
    let mut terms = Vec::new();
    // Pieces that move left: source, mask, destination.
    let mut shifted: Vec<(u32, u64, u32)> = Vec::new();
    for (index, (high, low)) in pieces.iter().enumerate() {
        let width = high - low + 1;
        remaining -= width;
        let (shift, mask) = (scale + remaining, (1_u64 << width) - 1);
        if whole && index == 0 && width == 1 && *low == 31 {
            terms.push(Term::Sign);
        } else if *low > shift && whole && shifted.iter().all(|(from, _, to)| (to - from).abs_diff(low - shift) >= bits)
        {
            shifted.push((shift, mask, *low));
        } else {
            terms.push(Term::Piece { shift, mask, low: *low });
        }
    }
    match shifted[..] {
        [] => {}
        [(shift, mask, low)] => terms.push(Term::Piece { shift, mask, low }),
        [_, _, ..] => terms.push(Term::Product {
            input: (1 << bits) - 1,
            factor: shifted.iter().map(|(from, _, to)| 1 << (to - from)).sum(),
            output: shifted.iter().map(|(_, mask, to)| mask << to).sum(),
        }),
    }
    terms
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(term: Term, distance: i64) -> u32 {
        match term {
            Term::Sign => distance as u32 & 1 << 31,
            Term::Product { input, factor, output } => ((distance as u64 & input).wrapping_mul(factor) & output) as u32,
            Term::Piece { shift, mask, low } => (((distance >> shift) as u64 & mask) << low) as u32,
        }
    }

    #[test]
    fn every_bit_arrives() {
        let branch: &[(u32, u32)] = &[(31, 31), (7, 7), (30, 25), (11, 8)];
        let jump: &[(u32, u32)] = &[(31, 31), (19, 12), (20, 20), (30, 21)];
        for (pieces, bits, scale) in
            [(branch, 13, 1), (jump, 21, 1), (&[(25, 0)], 28, 2), (&[(21, 20), (13, 0)], 18, 2)]
        {
            for distance in [0, 2, 4, 6, -2, -4, 100, -100, 0x7fe, -0x800, 0xffc, -0x1000, 0x554, -0xaac] {
                let distance = distance >> scale << scale;
                let mut expected = 0_u32;
                let mut from = bits;
                for (high, low) in pieces {
                    let width = high - low + 1;
                    from -= width;
                    expected |= ((distance >> from) as u32 & ((1_u64 << width) - 1) as u32) << low;
                }
                let found =
                    terms(pieces, bits, scale, true).into_iter().fold(0, |word, term| word | value(term, distance));
                assert_eq!(found, expected, "{pieces:?} {distance}");
            }
        }
    }
}
