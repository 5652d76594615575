//! Division by a constant as multiplication and shifts: computes the multiplier and the shift counts. Arithmetic only,
//! for any width, so that small widths can be tested exhaustively.
//!
//! Granlund and Montgomery, "Division by invariant integers using multiplication" (1994); the search for the least
//! shift is Warren's, "Hacker's Delight", chapter 10.

/// A plan for the division of unsigned numbers of some width by a constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unsigned {
    /// `n >> shift`.
    Shift(u32),
    /// `high(multiplier * (n >> before)) >> after`.
    Multiply { before: u32, multiplier: u64, after: u32 },
    /// `t = high(multiplier * n); (((n - t) >> 1) + t) >> after`: the multiplier has one bit more than the width.
    MultiplyAdd { multiplier: u64, after: u32 },
}

/// A plan for the division of signed numbers of some width by the magnitude of a constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signed {
    /// `n`.
    Same,
    /// `(n + ((n >> (shift - 1)) >>> (width - shift))) >> shift`.
    Shift(u32),
    /// `t = high(multiplier * n) - (multiplier if n is negative)`, both unsigned; `(t >> after) - (n >> (width - 1))`.
    Multiply { multiplier: u64, after: u32 },
}

fn ceiling(numerator: u128, denominator: u128) -> u128 {
    numerator.div_ceil(denominator)
}

/// The plan for an unsigned divisor that is not zero.
pub(crate) fn unsigned(width: u32, divisor: u64) -> Unsigned {
    if divisor.is_power_of_two() {
        return Unsigned::Shift(divisor.trailing_zeros());
    }
    let fits = |multiplier: u128| multiplier >> width == 0;
    // For dividends below 2^(width - before), a multiplier for the odd part of the divisor.
    let search = |odd: u128, before: u32| {
        (0..=width).find_map(|after| {
            let scale = 1_u128.checked_shl(width + after).filter(|_| width + after < 128)?;
            let multiplier = ceiling(scale, odd);
            let error = multiplier * odd - scale;
            (fits(multiplier) && error <= 1 << (after + before)).then_some((multiplier as u64, after))
        })
    };
    let divisor = u128::from(divisor);
    if let Some((multiplier, after)) = search(divisor, 0) {
        return Unsigned::Multiply { before: 0, multiplier, after };
    }
    let before = divisor.trailing_zeros();
    if before > 0
        && let Some((multiplier, after)) = search(divisor >> before, before)
    {
        return Unsigned::Multiply { before, multiplier, after };
    }
    let bits = 128 - (divisor - 1).leading_zeros();
    let high = (((1_u128 << bits) - divisor) << width) / divisor + 1;
    Unsigned::MultiplyAdd { multiplier: high as u64, after: bits - 1 }
}

/// The plan for the magnitude of a signed divisor that is not zero.
pub(crate) fn signed(width: u32, magnitude: u64) -> Signed {
    if magnitude == 1 {
        return Signed::Same;
    }
    if magnitude.is_power_of_two() {
        return Signed::Shift(magnitude.trailing_zeros());
    }
    let divisor = u128::from(magnitude);
    // The largest dividend magnitude that leaves divisor - 1.
    let half = 1_u128 << (width - 1);
    let max_dividend = half - 1 - half % divisor;
    let power = (width..2 * width)
        .find(|power| {
            let scale = 1_u128 << power;
            scale > max_dividend * (divisor - scale % divisor)
        })
        .unwrap_or(2 * width - 1);
    let scale = 1_u128 << power;
    Signed::Multiply { multiplier: ((scale + divisor - scale % divisor) / divisor) as u64, after: power - width }
}

/// A digit of a multiplier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Digit {
    /// Adds the multiplicand times two to this.
    Plus(u32),
    /// Subtracts it.
    Minus(u32),
}

impl Digit {
    pub(crate) fn place(self) -> u32 {
        match self {
            Digit::Plus(place) | Digit::Minus(place) => place,
        }
    }
}

/// The most digits of a multiplier of 64 bits.
pub(crate) const MAX_DIGITS: usize = 33;

/// The non-adjacent form of a multiplier (Reitwiesner 1960), which has the minimum number of non-zero digits, lowest
/// first; and their number.
pub(crate) fn digits(multiplier: u64) -> ([Digit; MAX_DIGITS], usize) {
    let mut digits = [Digit::Plus(0); MAX_DIGITS];
    let mut count = 0;
    let mut rest = u128::from(multiplier);
    let mut place = 0;
    while rest != 0 {
        if rest & 1 == 1 {
            let negative = rest & 3 == 3;
            digits[count] = if negative { Digit::Minus(place) } else { Digit::Plus(place) };
            count += 1;
            rest = if negative { rest + 1 } else { rest - 1 };
        }
        rest >>= 1;
        place += 1;
    }
    (digits, count)
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use super::*;

    fn mask(width: u32) -> u64 {
        u64::MAX >> (64 - width)
    }

    fn high(width: u32, left: u64, right: u64) -> u64 {
        ((u128::from(left) * u128::from(right)) >> width) as u64
    }

    fn run_unsigned(width: u32, plan: Unsigned, n: u64) -> u64 {
        match plan {
            Unsigned::Shift(shift) => n >> shift,
            Unsigned::Multiply { before, multiplier, after } => high(width, multiplier, n >> before) >> after,
            Unsigned::MultiplyAdd { multiplier, after } => {
                let t = high(width, multiplier, n);
                (((n.wrapping_sub(t) & mask(width)) >> 1).wrapping_add(t) & mask(width)) >> after
            }
        }
    }

    fn extend(width: u32, value: u64) -> i64 {
        (value << (64 - width)) as i64 >> (64 - width)
    }

    fn run_signed(width: u32, plan: Signed, n: i64) -> i64 {
        let bits = n as u64 & mask(width);
        match plan {
            Signed::Same => n,
            Signed::Shift(shift) => {
                let bias = ((n >> (shift - 1)) as u64 & mask(width)) >> (width - shift);
                extend(width, bits.wrapping_add(bias)) >> shift
            }
            Signed::Multiply { multiplier, after } => {
                let part = if n < 0 { multiplier } else { 0 };
                let t = extend(width, high(width, multiplier, bits).wrapping_sub(part));
                extend(width, ((t >> after) - (n >> (width - 1))) as u64)
            }
        }
    }

    #[test]
    fn every_dividend_by_every_divisor_of_small_widths() {
        for width in 2..=11 {
            for divisor in 1..=mask(width) {
                let plan = unsigned(width, divisor);
                if let Unsigned::Multiply { multiplier, .. } = plan {
                    assert_eq!(multiplier & !mask(width), 0);
                }
                for n in 0..=mask(width) {
                    assert_eq!(run_unsigned(width, plan, n), n / divisor, "{n} / {divisor} in {width} bits: {plan:?}");
                }
            }
            for magnitude in 1..=1 << (width - 1) {
                let plan = signed(width, magnitude);
                if let Signed::Multiply { multiplier, .. } = plan {
                    assert_eq!(multiplier & !mask(width), 0);
                }
                for n in -(1_i64 << (width - 1))..1 << (width - 1) {
                    let quotient = n / magnitude as i64;
                    assert_eq!(run_signed(width, plan, n), quotient, "{n} / {magnitude} in {width} bits: {plan:?}");
                }
            }
        }
    }

    #[test]
    fn edges_and_random_numbers_of_large_widths() {
        let mut state = 1_u64;
        let mut random = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state ^ state >> 29
        };
        for width in [32, 64] {
            let mut numbers: Vec<u64> =
                (0..width).flat_map(|k| [-1_i64, 0, 1].map(|e| (1_u64 << k).wrapping_add_signed(e))).collect();
            numbers.extend([3, 5, 6, 7, 10, 25, 100, 125, 625, 641, 1000, 1_000_000_007, u64::MAX, u64::MAX / 3]);
            numbers.extend((0..200).map(|k| random() >> (k % 60)));
            for divisor in numbers.iter().map(|d| d & mask(width)).filter(|d| *d != 0) {
                let (plain, magnitude) = (unsigned(width, divisor), extend(width, divisor).unsigned_abs());
                let plan = signed(width, magnitude);
                // Multiples of the divisor and their neighbours are where a multiplier that is too small is wrong.
                let near = (0..40).flat_map(|_| {
                    let multiple = (random() & mask(width)) / divisor * divisor;
                    [multiple, multiple.wrapping_sub(1), multiple.wrapping_add(divisor - 1)]
                });
                for n in near.chain(numbers.iter().copied()).map(|n| n & mask(width)) {
                    assert_eq!(run_unsigned(width, plain, n), n / divisor, "{n} / {divisor}: {plain:?}");
                    let n = extend(width, n);
                    let quotient = (i128::from(n) / i128::from(magnitude)) as u64 & mask(width);
                    assert_eq!(run_signed(width, plan, n), extend(width, quotient), "{n} / {magnitude}: {plan:?}");
                }
            }
        }
    }

    #[test]
    fn digits_add_up_and_are_few() {
        for multiplier in (0..70_000).chain([u64::MAX, u64::MAX / 3, 1 << 63, (1 << 63) - 1, 0xaaaa_aaaa_aaaa_aaaa]) {
            let (digits, count) = digits(multiplier);
            let sum = digits[..count].iter().fold(0_i128, |sum, digit| match digit {
                Digit::Plus(place) => sum + (1 << place),
                Digit::Minus(place) => sum - (1 << place),
            });
            assert_eq!(sum, i128::from(multiplier));
            assert!(count as u32 <= multiplier.count_ones());
        }
    }
}
