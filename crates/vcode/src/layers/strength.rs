//! Multiplication, division and remainder by constants, as shifts, additions and multiplications: exact for every
//! constant of both signs ("VCODE", 5.4).
//!
//! If too few registers are free for the intermediate values, the machine's own instruction is written, so that these
//! functions never fail. Division by zero has the behaviour of the machine.

use crate::error::Error;
use crate::layers::division::{Digit, Signed, Unsigned, digits, signed, unsigned};
use crate::layers::temporary_allocator::TemporaryAllocator;

/// The types that can be multiplied and divided here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Integer {
    /// `int`.
    I,
    /// `unsigned`.
    U,
    /// `long`.
    L,
    /// `unsigned long`.
    Ul,
}

impl Integer {
    fn is_signed(self) -> bool {
        match self {
            Integer::I | Integer::L => true,
            Integer::U | Integer::Ul => false,
        }
    }

    fn bits(self, long: u32) -> u32 {
        match self {
            Integer::I | Integer::U => 32,
            Integer::L | Integer::Ul => long,
        }
    }
}

/// Instructions by type: one line per operation.
macro_rules! by_type {
    ($($name:ident($($operand:ident: $kind:ty),*) $i:ident $u:ident $l:ident $ul:ident;)*) => {
        $(fn $name<A: TemporaryAllocator>(asm: &mut A, ty: Integer, $($operand: $kind),*) {
            match ty {
                Integer::I => asm.$i($($operand),*),
                Integer::U => asm.$u($($operand),*),
                Integer::L => asm.$l($($operand),*),
                Integer::Ul => asm.$ul($($operand),*),
            }
        })*
    };
}

by_type! {
    add(d: A::Reg, s: A::Reg, t: A::Reg) addi addu addl addul;
    sub(d: A::Reg, s: A::Reg, t: A::Reg) subi subu subl subul;
    negate(d: A::Reg, s: A::Reg) negi negu negl negul;
    copy(d: A::Reg, s: A::Reg) movi movu movl movul;
}

/// Instructions with an immediate, whose type differs.
macro_rules! by_type_immediate {
    ($($name:ident $i:ident $u:ident $l:ident $ul:ident;)*) => {
        $(fn $name<A: TemporaryAllocator>(asm: &mut A, ty: Integer, d: A::Reg, s: A::Reg, i: i64) {
            match ty {
                Integer::I => asm.$i(d, s, i as i32),
                Integer::U => asm.$u(d, s, i as u32),
                Integer::L => asm.$l(d, s, i),
                Integer::Ul => asm.$ul(d, s, i as u64),
            }
        })*
    };
}

by_type_immediate! {
    and_constant andii andui andli anduli;
    shift_left lshii lshui lshli lshuli;
    shift_right rshii rshui rshli rshuli;
    plain_multiply mulii mului mulli mululi;
    plain_divide divii divui divli divuli;
    plain_modulo modii modui modli moduli;
}

/// A constant as the type holds it on the machine; `None` if it is of more than 32 bits and the type is not.
fn held<A: TemporaryAllocator>(ty: Integer, constant: i64) -> Option<i64> {
    if ty.bits(A::LONG_BITS) == 64 {
        return Some(constant);
    }
    (-1 << 31..1 << 32).contains(&constant).then(|| match ty {
        Integer::I | Integer::L => i64::from(constant as i32),
        Integer::U | Integer::Ul => i64::from(constant as u32),
    })
}

/// A divisor as the type holds it on the machine, whose sign matters.
fn held_divisor<A: TemporaryAllocator>(ty: Integer, constant: i64) -> Option<i64> {
    held::<A>(ty, constant).filter(|held| !ty.is_signed() || *held == constant)
}

/// `d = s * constant`, the low half. A constant of more bits than the type is [`Error::Immediate`] at the end of the
/// function.
pub fn multiply<A: TemporaryAllocator>(asm: &mut A, ty: Integer, d: A::Reg, s: A::Reg, constant: i64) {
    let Some(constant) = held::<A>(ty, constant) else { return asm.refuse(Error::Immediate) };
    let bits = ty.bits(A::LONG_BITS);
    // Modulo 2^width, a large multiplier is a small negative one.
    let value = if bits == 32 { i64::from(constant as i32) } else { constant };
    let magnitude = value.unsigned_abs();
    let (digits, count) = digits(magnitude);
    let digits = &digits[..count];
    match digits {
        [] => set(asm, ty, d, 0),
        [only] => {
            if only.place() == 0 {
                copy(asm, ty, d, s);
            } else {
                shift_left(asm, ty, d, s, i64::from(only.place()));
            }
            if value < 0 {
                negate(asm, ty, d, d);
            }
        }
        [lower @ .., highest] if count as u32 <= A::MAX_TERMS => {
            // Horner: the multiplicand is needed to the end, so it must not be the destination.
            let borrowed = if d == s { asm.get_temporary() } else { None };
            if d == s && borrowed.is_none() {
                return plain_multiply(asm, ty, d, s, constant);
            }
            let sum = borrowed.unwrap_or(d);
            let mut from = s;
            let mut place = highest.place();
            for digit in lower.iter().rev() {
                shift_left(asm, ty, sum, from, i64::from(place - digit.place()));
                from = sum;
                place = digit.place();
                match digit {
                    Digit::Plus(_) => add(asm, ty, sum, sum, s),
                    Digit::Minus(_) => sub(asm, ty, sum, sum, s),
                }
            }
            let last = if place > 0 {
                shift_left(asm, ty, d, sum, i64::from(place));
                d
            } else {
                sum
            };
            if value < 0 {
                negate(asm, ty, d, last);
            } else if last != d {
                copy(asm, ty, d, last);
            }
            if let Some(register) = borrowed {
                asm.put_temporary(register);
            }
        }
        [_, ..] => plain_multiply(asm, ty, d, s, constant),
    }
}

/// `d = s / constant`, truncating. A constant that does not fit the type is [`Error::Immediate`] at the end of the
/// function.
pub fn divide<A: TemporaryAllocator>(asm: &mut A, ty: Integer, d: A::Reg, s: A::Reg, constant: i64) {
    let Some(constant) = held_divisor::<A>(ty, constant) else { return asm.refuse(Error::Immediate) };
    if constant == 0 || !quotient(asm, ty, d, s, constant) {
        plain_divide(asm, ty, d, s, constant);
    }
}

/// `d = s % constant`, with the sign of the dividend. A constant that does not fit the type is [`Error::Immediate`] at
/// the end of the function.
pub fn modulo<A: TemporaryAllocator>(asm: &mut A, ty: Integer, d: A::Reg, s: A::Reg, constant: i64) {
    let Some(constant) = held_divisor::<A>(ty, constant) else { return asm.refuse(Error::Immediate) };
    if !ty.is_signed() && constant_bits(ty, constant).is_power_of_two() {
        return and_constant(asm, ty, d, s, constant.wrapping_sub(1));
    }
    let Some(product) = asm.get_temporary() else { return plain_modulo(asm, ty, d, s, constant) };
    if constant != 0 && quotient(asm, ty, product, s, constant) {
        multiply(asm, ty, product, product, constant);
        sub(asm, ty, d, s, product);
    } else {
        plain_modulo(asm, ty, d, s, constant);
    }
    asm.put_temporary(product);
}

/// The bits of an unsigned constant.
fn constant_bits(ty: Integer, constant: i64) -> u64 {
    match ty {
        Integer::I | Integer::U => u64::from(constant as u32),
        Integer::L | Integer::Ul => constant as u64,
    }
}

fn set<A: TemporaryAllocator>(asm: &mut A, ty: Integer, d: A::Reg, value: i64) {
    match ty {
        Integer::I => asm.seti(d, value as i32),
        Integer::U => asm.setu(d, value as u32),
        Integer::L => asm.setl(d, value),
        Integer::Ul => asm.setul(d, value as u64),
    }
}

/// Writes the quotient by a constant that is not zero; if registers are missing, writes nothing and returns false.
fn quotient<A: TemporaryAllocator>(asm: &mut A, ty: Integer, d: A::Reg, s: A::Reg, constant: i64) -> bool {
    let bits = ty.bits(A::LONG_BITS);
    if ty.is_signed() {
        let plan = signed(bits, constant.unsigned_abs());
        let written = match plan {
            Signed::Same => {
                copy(asm, ty, d, s);
                true
            }
            Signed::Shift(shift) => signed_shift(asm, ty, d, s, shift, bits),
            Signed::Multiply { multiplier, after } if bits < A::LONG_BITS => {
                narrow_signed(asm, d, s, multiplier, after)
            }
            Signed::Multiply { multiplier, after } => wide_signed(asm, d, s, multiplier, after),
        };
        if written && constant < 0 {
            negate(asm, ty, d, d);
        }
        return written;
    }
    match unsigned(bits, constant_bits(ty, constant)) {
        Unsigned::Shift(0) => copy(asm, ty, d, s),
        Unsigned::Shift(shift) => shift_right(asm, ty, d, s, i64::from(shift)),
        Unsigned::Multiply { before, multiplier, after } if bits < A::LONG_BITS => {
            let Some(n) = asm.get_temporary() else { return false };
            asm.cvu2ul(n, s);
            if before > 0 {
                asm.rshuli(n, n, u64::from(before));
            }
            asm.mululi(n, n, multiplier);
            asm.rshuli(n, n, u64::from(32 + after));
            asm.cvul2u(d, n);
            asm.put_temporary(n);
        }
        Unsigned::MultiplyAdd { multiplier, after } if bits < A::LONG_BITS => {
            let Some([n, t]) = get_temporaries(asm) else { return false };
            // In twice the width the sum has room for its carry.
            asm.cvu2ul(n, s);
            asm.mululi(t, n, multiplier);
            asm.rshuli(t, t, 32);
            asm.addul(t, t, n);
            asm.rshuli(t, t, u64::from(after + 1));
            asm.cvul2u(d, t);
            put_temporaries(asm, [n, t]);
        }
        Unsigned::Multiply { before, multiplier, after } => {
            let Some([high, n, x, y, z]) = get_temporaries(asm) else { return false };
            asm.movul(n, s);
            if before > 0 {
                asm.rshuli(n, n, u64::from(before));
            }
            multiply_high(asm, high, n, multiplier, [x, y, z]);
            asm.rshuli(d, high, u64::from(after));
            put_temporaries(asm, [high, n, x, y, z]);
        }
        Unsigned::MultiplyAdd { multiplier, after } => {
            let Some([high, n, x, y, z]) = get_temporaries(asm) else { return false };
            asm.movul(n, s);
            multiply_high(asm, high, n, multiplier, [x, y, z]);
            asm.subul(n, n, high);
            asm.rshuli(n, n, 1);
            asm.addul(n, n, high);
            asm.rshuli(d, n, u64::from(after));
            put_temporaries(asm, [high, n, x, y, z]);
        }
    }
    true
}

fn signed_shift<A: TemporaryAllocator>(asm: &mut A, ty: Integer, d: A::Reg, s: A::Reg, shift: u32, bits: u32) -> bool {
    let Some(t) = asm.get_temporary() else { return false };
    let logical = match ty {
        Integer::I | Integer::U => Integer::U,
        Integer::L | Integer::Ul => Integer::Ul,
    };
    let from = if shift > 1 {
        shift_right(asm, ty, t, s, i64::from(shift - 1));
        t
    } else {
        s
    };
    shift_right(asm, logical, t, from, i64::from(bits - shift));
    add(asm, ty, t, t, s);
    shift_right(asm, ty, d, t, i64::from(shift));
    asm.put_temporary(t);
    true
}

/// Thirty-two bits where a long has sixty-four: the product fits.
fn narrow_signed<A: TemporaryAllocator>(asm: &mut A, d: A::Reg, s: A::Reg, multiplier: u64, after: u32) -> bool {
    let Some([n, t]) = get_temporaries(asm) else { return false };
    asm.cvi2l(n, s);
    asm.mulli(t, n, multiplier as i64);
    asm.rshli(t, t, i64::from(32 + after));
    asm.rshli(n, n, 63);
    asm.subl(t, t, n);
    asm.cvl2i(d, t);
    put_temporaries(asm, [n, t]);
    true
}

fn wide_signed<A: TemporaryAllocator>(asm: &mut A, d: A::Reg, s: A::Reg, multiplier: u64, after: u32) -> bool {
    let Some([high, n, x, y, z]) = get_temporaries(asm) else { return false };
    let last = i64::from(A::LONG_BITS - 1);
    asm.movl(n, s);
    multiply_high(asm, high, n, multiplier, [x, y, z]);
    asm.rshli(n, n, last);
    asm.anduli(x, n, multiplier);
    asm.subl(high, high, x);
    if after > 0 {
        asm.rshli(high, high, i64::from(after));
    }
    asm.subl(d, high, n);
    put_temporaries(asm, [high, n, x, y, z]);
    true
}

/// The high half of an unsigned product of longs, by halves.
///
/// ```text
///            n1 n0  x  m1 m0         t = n0 m0 >> half
///   u = n1 m0 + t                    v = n0 m1 + low half of u
///   high = n1 m1 + (u >> half) + (v >> half)
/// ```
fn multiply_high<A: TemporaryAllocator>(asm: &mut A, high: A::Reg, n: A::Reg, multiplier: u64, scratch: [A::Reg; 3]) {
    let half = A::LONG_BITS / 2;
    let mask = (1_u64 << half) - 1;
    let (m0, m1) = (multiplier & mask, multiplier >> half);
    let [low, upper, t] = scratch;
    let half = u64::from(half);
    asm.rshuli(upper, n, half);
    asm.lshuli(low, n, half);
    asm.rshuli(low, low, half);
    asm.mululi(t, low, m0);
    asm.rshuli(t, t, half);
    asm.mululi(high, upper, m0);
    asm.addul(t, t, high);
    // `t` is u. Its low half goes on to v, its high half to the result.
    asm.mululi(low, low, m1);
    asm.mululi(high, upper, m1);
    asm.rshuli(upper, t, half);
    asm.addul(high, high, upper);
    asm.lshuli(t, t, half);
    asm.rshuli(t, t, half);
    asm.addul(low, low, t);
    asm.rshuli(low, low, half);
    asm.addul(high, high, low);
}

/// All the registers, or none.
fn get_temporaries<A: TemporaryAllocator, const N: usize>(asm: &mut A) -> Option<[A::Reg; N]> {
    let mut taken = [None; N];
    for index in 0..N {
        taken[index] = asm.get_temporary();
        if taken[index].is_none() {
            taken.into_iter().flatten().for_each(|register| asm.put_temporary(register));
            return None;
        }
    }
    Some(taken.map(|register| register.expect("none was refused")))
}

fn put_temporaries<A: TemporaryAllocator, const N: usize>(asm: &mut A, registers: [A::Reg; N]) {
    registers.into_iter().for_each(|register| asm.put_temporary(register));
}
