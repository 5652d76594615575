//! The reference interpreter of the portable instructions: what each computes, written down a second time, in Rust.

use crate::harness::Type;

fn signed(value: u64, bits: u32) -> i64 {
    let shift = 64 - bits;
    (value as i64) << shift >> shift
}

fn unsigned(value: u64, bits: u32) -> u64 {
    let shift = 64 - bits;
    value << shift >> shift
}

/// Result of a binary or shift instruction on integers; `None` where the instruction set leaves it undefined.
pub fn binary(op: &str, ty: Type, bits: u32, left: u64, right: u64) -> Option<u64> {
    let is_signed = matches!(ty, Type::I | Type::L);
    let (a, b) = (signed(left, bits), signed(right, bits));
    let (x, y) = (unsigned(left, bits), unsigned(right, bits));
    let overflow = is_signed && b == -1 && a == signed(1 << (bits - 1), bits);
    let divides = y != 0 && !overflow;
    let count = (y < u64::from(bits)).then_some(y);
    let value = match op {
        "add" => x.wrapping_add(y),
        "sub" => x.wrapping_sub(y),
        "mul" => x.wrapping_mul(y),
        "div" if is_signed => divides.then(|| a.wrapping_div(b))? as u64,
        "div" => divides.then(|| x / y)?,
        "mod" if is_signed => divides.then(|| a.wrapping_rem(b))? as u64,
        "mod" => divides.then(|| x % y)?,
        "and" => x & y,
        "or" => x | y,
        "xor" => x ^ y,
        "lsh" => x << count?,
        "rsh" if is_signed => (a >> count?) as u64,
        "rsh" => x >> count?,
        other => unreachable!("no binary operation `{other}`"),
    };
    Some(unsigned(value, bits))
}

/// Result of a binary instruction on floats or doubles.
pub fn binary_float(op: &str, ty: Type, left: u64, right: u64) -> u64 {
    fn apply<T>(op: &str, a: T, b: T) -> T
    where
        T: std::ops::Add<Output = T>
            + std::ops::Sub<Output = T>
            + std::ops::Mul<Output = T>
            + std::ops::Div<Output = T>,
    {
        match op {
            "add" => a + b,
            "sub" => a - b,
            "mul" => a * b,
            "div" => a / b,
            other => unreachable!("no floating operation `{other}`"),
        }
    }
    match ty {
        Type::F => u64::from(apply(op, f32::from_bits(left as u32), f32::from_bits(right as u32)).to_bits()),
        _ => apply(op, f64::from_bits(left), f64::from_bits(right)).to_bits(),
    }
}

/// Result of a unary instruction.
pub fn unary(op: &str, ty: Type, bits: u32, value: u64) -> u64 {
    let value = match (op, ty) {
        ("mov", _) => value,
        ("neg", Type::F) => value ^ 1 << 31,
        ("neg", Type::D) => value ^ 1 << 63,
        ("neg", _) => value.wrapping_neg(),
        ("com", _) => !value,
        ("not", _) => u64::from(unsigned(value, bits) == 0),
        (other, _) => unreachable!("no unary operation `{other}`"),
    };
    unsigned(value, bits)
}

/// Result of a conversion; `None` where it is undefined.
pub fn convert(from: Type, from_bits: u32, to: Type, to_bits: u32, value: u64) -> Option<u64> {
    let floating = match from {
        Type::F => Some(f64::from(f32::from_bits(value as u32))),
        Type::D => Some(f64::from_bits(value)),
        _ => None,
    };
    let from_signed = matches!(from, Type::I | Type::L);
    Some(match (floating, to) {
        (Some(value), Type::F) => u64::from((value as f32).to_bits()),
        (Some(value), Type::D) => value.to_bits(),
        (Some(value), _) => {
            let truncated = value.trunc();
            let limit = 2_f64.powi(to_bits as i32 - 1);
            if !(truncated >= -limit && truncated < limit) {
                return None;
            }
            unsigned(truncated as i64 as u64, to_bits)
        }
        (None, Type::F) if from_signed => u64::from((signed(value, from_bits) as f32).to_bits()),
        (None, Type::F) => u64::from((unsigned(value, from_bits) as f32).to_bits()),
        (None, Type::D) if from_signed => (signed(value, from_bits) as f64).to_bits(),
        (None, Type::D) => (unsigned(value, from_bits) as f64).to_bits(),
        (None, _) if from_signed => unsigned(signed(value, from_bits) as u64, to_bits),
        (None, _) => unsigned(unsigned(value, from_bits), to_bits),
    })
}

/// Whether a branch is taken.
pub fn branch(op: &str, ty: Type, bits: u32, left: u64, right: u64) -> bool {
    fn compare<T: PartialOrd>(op: &str, a: T, b: T) -> bool {
        match op {
            "blt" => a < b,
            "ble" => a <= b,
            "bgt" => a > b,
            "bge" => a >= b,
            "beq" => a == b,
            "bne" => a != b,
            other => unreachable!("no branch `{other}`"),
        }
    }
    match ty {
        Type::F => compare(op, f32::from_bits(left as u32), f32::from_bits(right as u32)),
        Type::D => compare(op, f64::from_bits(left), f64::from_bits(right)),
        Type::I | Type::L => compare(op, signed(left, bits), signed(right, bits)),
        _ => compare(op, unsigned(left, bits), unsigned(right, bits)),
    }
}

/// What a load of `bytes` (least significant first) leaves in a register, as 64 bits.
pub fn load(ty: Type, bits: u32, value: u64) -> u64 {
    match ty {
        Type::C | Type::S => signed(value, bits) as u64 & 0xffff_ffff,
        _ => unsigned(value, bits),
    }
}
