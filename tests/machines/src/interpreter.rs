//! The reference interpreter of the portable instructions: what each computes, written down a second time, in Rust.

use crate::types::Type;

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
        "rotl" => x << count? | x.checked_shr(bits - count? as u32).unwrap_or(0),
        "rotr" => x >> count? | x.checked_shl(bits - count? as u32).unwrap_or(0),
        "mulhi" if is_signed => ((i128::from(a) * i128::from(b)) >> bits) as u64,
        "mulhi" => ((u128::from(x) * u128::from(y)) >> bits) as u64,
        "min" if is_signed => a.min(b) as u64,
        "min" => x.min(y),
        "max" if is_signed => a.max(b) as u64,
        "max" => x.max(y),
        "rsh" if is_signed => (a >> count?) as u64,
        "rsh" => x >> count?,
        other => unreachable!("no binary operation `{other}`"),
    };
    Some(unsigned(value, bits))
}

/// A step of CRC-32C, bit by bit.
pub fn crc32c(remainder: u64, data: u64, bits: u32) -> u64 {
    let step = |crc: u64, bit: u32| {
        let odd = (crc ^ data >> bit) & 1;
        crc >> 1 ^ if odd == 1 { 0x82f6_3b78 } else { 0 }
    };
    (0..bits).fold(remainder & 0xffff_ffff, step)
}

/// Result of a checked instruction, and whether it overflows.
pub fn checked(op: &str, ty: Type, bits: u32, left: u64, right: u64) -> (u64, bool) {
    let is_signed = matches!(ty, Type::I | Type::L);
    let wide = |value: u64| {
        if is_signed { i128::from(signed(value, bits)) } else { i128::from(unsigned(value, bits)) }
    };
    let (a, b) = (wide(left), wide(right));
    // 64-bit unsigned products need all 128 bits.
    let result = match op {
        "addo" => Some(a + b),
        "subo" => Some(a - b),
        "mulo" => a.checked_mul(b),
        other => unreachable!("no checked operation `{other}`"),
    };
    let low = match op {
        "mulo" => unsigned(left.wrapping_mul(right), bits),
        _ => unsigned(result.expect("sums are small") as u64, bits),
    };
    (low, result != Some(wide(low)))
}

/// Result of a binary instruction on floats or doubles; `None` where it is undefined.
pub fn extended_float(op: &str, ty: Type, left: u64, right: u64) -> Option<u64> {
    let (a, b) = match ty {
        Type::F => (f64::from(f32::from_bits(left as u32)), f64::from(f32::from_bits(right as u32))),
        _ => (f64::from_bits(left), f64::from_bits(right)),
    };
    match op {
        "min" | "max" if a.is_nan() || b.is_nan() || a == 0.0 && b == 0.0 => None,
        "min" => Some(if a < b { left } else { right }),
        "max" => Some(if a > b { left } else { right }),
        _ => Some(binary_float(op, ty, left, right)),
    }
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
        ("bswap", _) => unsigned(value, bits).swap_bytes() >> (64 - bits),
        ("popcount", _) => u64::from(unsigned(value, bits).count_ones()),
        ("clz", _) => u64::from(unsigned(value, bits).leading_zeros() - (64 - bits)),
        ("ctz", _) => u64::from(unsigned(value, bits).trailing_zeros().min(bits)),
        ("sqrt", Type::F) => u64::from(f32::from_bits(value as u32).sqrt().to_bits()),
        ("sqrt", _) => f64::from_bits(value).sqrt().to_bits(),
        ("not", _) => u64::from(unsigned(value, bits) == 0),
        (other, _) => unreachable!("no unary operation `{other}`"),
    };
    unsigned(value, bits)
}

/// Result of a conversion, as a register holds it; `None` where it is undefined.
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
            let is_signed = matches!(to, Type::I | Type::L);
            let limit = 2_f64.powi(to_bits as i32 - i32::from(is_signed));
            let least = if is_signed { -limit } else { 0.0 };
            if !(truncated >= least && truncated < limit) {
                return None;
            }
            unsigned(if is_signed { truncated as i64 as u64 } else { truncated as u64 }, to_bits)
        }
        (None, Type::F) if from_signed => u64::from((signed(value, from_bits) as f32).to_bits()),
        (None, Type::F) => u64::from((unsigned(value, from_bits) as f32).to_bits()),
        (None, Type::D) if from_signed => (signed(value, from_bits) as f64).to_bits(),
        (None, Type::D) => (unsigned(value, from_bits) as f64).to_bits(),
        (None, Type::C | Type::Uc | Type::S | Type::Us) => load(to, to_bits, value),
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
