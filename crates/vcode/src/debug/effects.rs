//! The effect of each machine's instructions on the frame of a function, by their text without the prefix of
//! registers: what moves the stack pointer, stores a register, returns. Of DWARF it knows only the numbers of
//! registers.

use crate::decode::{self, Table};

/// The properties of a machine that unwinding needs, and the effect of its instructions on the stack.
pub(super) struct Frames {
    pub(super) table: &'static Table,
    /// The DWARF number of the stack pointer.
    pub(super) stack: u64,
    /// The DWARF number of the return address: that of the link register, or a separate one.
    pub(super) return_address: u8,
    /// The number of bytes that a call pushes: the return address, unless it is in a register.
    pub(super) pushed: u64,
    /// The number of bytes by which the stack pointer is below the stack.
    pub(super) bias: u64,
    /// The effect of an instruction on the frame. The number is the value of the scratch register, by which a large
    /// frame is entered.
    pub(super) effect: fn(&str, u64) -> Option<Effect>,
}

/// The effect of an instruction on the frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// The stack pointer is lowered by so many bytes, or raised by the complement.
    Lower(u64),
    /// A register, by its DWARF number, is stored at this offset from the stack.
    Store(u8, u64),
    /// Two registers of 32 bits are stored as one number: the second at this offset, the first, with this DWARF
    /// number, four bytes above.
    StorePair(u8, u64),
    /// The scratch register is set to this value.
    Scratch(u64),
    /// The function returns.
    Return,
}

impl Frames {
    /// Those of a machine, by its name; none for other names.
    pub(super) fn of(machine: &str) -> Option<Frames> {
        let (table, stack, return_address, effect): (_, _, _, fn(&str, u64) -> Option<Effect>) = match machine {
            "x86_64" => (&decode::X86_64, 7, 16, effect_x86_64),
            "aarch64" => (&decode::AARCH64, 31, 30, effect_aarch64),
            "riscv64" => (&decode::RISCV64, 2, 1, effect_riscv64),
            "mips" => (&decode::MIPS, 29, 31, effect_mips),
            "sparc64" => (&decode::SPARC64, 14, 15, effect_sparc64),
            "alpha" => (&decode::ALPHA, 30, 26, effect_alpha),
            "ppc64le" => (&decode::PPC64LE, 1, PPC64LE_LINK, effect_ppc64le),
            _ => return None,
        };
        let pushed = if machine == "x86_64" { 8 } else { 0 };
        let bias = if machine == "sparc64" { SPARC64_BIAS } else { 0 };
        Some(Frames { table, stack, return_address, pushed, bias, effect })
    }
}

/// A number, negative ones as their complement.
fn number(text: &str) -> Option<u64> {
    text.parse::<i64>().ok().map(|number| number as u64)
}

/// A register and its place as `register,offset(base)`, by its position in a set of names and the DWARF number of the
/// first one.
fn stored(names: &[&str], first: u8, operands: &str, base: &str) -> Option<(u8, u64)> {
    let (register, place) = operands.split_once(',')?;
    let (offset, found) = place.strip_suffix(')')?.split_once('(')?;
    let position = names.iter().position(|name| *name == register)? as u8;
    (found == base).then_some((position + first, number(offset)?))
}

/// The effect of such a store.
fn store(names: &[&str], first: u8, operands: &str, base: &str) -> Option<Effect> {
    stored(names, first, operands, base).map(|(register, above)| Effect::Store(register, above))
}

/// The names of a set of a machine; none if there is no such set.
fn names(table: &Table, set: usize) -> &'static [&'static str] {
    table.names.get(set).copied().unwrap_or_default()
}

/// The register by its place in the list of DWARF.
fn effect_x86_64(text: &str, _: u64) -> Option<Effect> {
    const REGISTERS: [&str; 16] =
        ["rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"];
    let (operation, operands) = text.split_once(' ').unwrap_or((text, ""));
    let moved = || operands.strip_prefix('$')?.strip_suffix(",rsp")?.parse::<u64>().ok();
    match operation {
        "subq" => Some(Effect::Lower(moved()?)),
        "ret" => Some(Effect::Return),
        "addq" => Some(Effect::Lower(moved()?.wrapping_neg())),
        "movq" => {
            let (register, place) = operands.split_once(',')?;
            let number = REGISTERS.iter().position(|name| *name == register)?;
            Some(Effect::Store(number as u8, place.strip_suffix("(rsp)")?.parse().ok()?))
        }
        _ => None,
    }
}

/// `x` registers have their numbers, `d` registers those from 64.
fn effect_aarch64(text: &str, scratch: u64) -> Option<Effect> {
    let (operation, operands) = text.split_once(' ').unwrap_or((text, ""));
    let moved = || match operands.strip_prefix("sp,sp,")? {
        "x16" => Some(scratch),
        bytes => bytes.parse::<u64>().ok(),
    };
    let part = |register: &str| {
        let (bits, shift) = operands.strip_prefix(register)?.split_once(",lsl ")?;
        Some(bits.parse::<u64>().ok()? << shift.parse::<u32>().ok().filter(|shift| *shift < 64)?)
    };
    match operation {
        "sub" => Some(Effect::Lower(moved()?)),
        "add" => Some(Effect::Lower(moved()?.wrapping_neg())),
        "ret" => Some(Effect::Return),
        "movz" => Some(Effect::Scratch(part("w16,")?)),
        "movk" => Some(Effect::Scratch(scratch | part("x16,")?)),
        "str" => {
            let (register, place) = operands.split_once(",[sp,")?;
            let number = match register.split_at_checked(1)? {
                ("x", number) => number.parse().ok()?,
                ("d", number) => number.parse::<u8>().ok()?.checked_add(64)?,
                _ => return None,
            };
            Some(Effect::Store(number, place.strip_suffix(']')?.parse().ok()?))
        }
        _ => None,
    }
}

/// Integer registers have their numbers, floating ones those from 32.
fn effect_riscv64(text: &str, scratch: u64) -> Option<Effect> {
    let (operation, operands) = text.split_once(' ')?;
    match operation {
        "addi" => Some(Effect::Lower(number(operands.strip_prefix("sp,sp,")?)?.wrapping_neg())),
        "add" => (operands == "sp,sp,t5").then(|| Effect::Lower(scratch.wrapping_neg())),
        "jalr" => (operands == "zero,0(ra)").then_some(Effect::Return),
        "lui" => Some(Effect::Scratch((number(operands.strip_prefix("t5,")?)? << 12) as i32 as u64)),
        "addiw" => Some(Effect::Scratch(scratch.wrapping_add(number(operands.strip_prefix("t5,t5,")?)?) as i32 as u64)),
        "sd" => store(names(&decode::RISCV64, 0), 0, operands, "sp"),
        "fsd" => store(names(&decode::RISCV64, 1), 32, operands, "sp"),
        _ => None,
    }
}

/// Integer registers have their numbers, floating ones those from 32: each has 32 bits, and a double is in two.
fn effect_mips(text: &str, scratch: u64) -> Option<Effect> {
    let (operation, operands) = text.split_once(' ')?;
    match operation {
        "addiu" => Some(Effect::Lower(number(operands.strip_prefix("sp,sp,")?)?.wrapping_neg())),
        "addu" => (operands == "sp,sp,t9").then(|| Effect::Lower(scratch.wrapping_neg())),
        "jr" => (operands == "ra").then_some(Effect::Return),
        "lui" => Some(Effect::Scratch((number(operands.strip_prefix("t9,")?)? << 16) as i32 as u64)),
        "ori" => match operands.strip_prefix("t9,t9,") {
            Some(low) => Some(Effect::Scratch(scratch | number(low)?)),
            None => Some(Effect::Scratch(number(operands.strip_prefix("t9,zero,")?)?)),
        },
        "sw" => store(names(&decode::MIPS, 0), 0, operands, "sp"),
        "sdc1" => stored(names(&decode::MIPS, 1), 32, operands, "sp")
            .map(|(register, above)| Effect::StorePair(register, above)),
        _ => None,
    }
}

/// The number of bytes from the stack pointer of SPARC V9 to the stack.
const SPARC64_BIAS: u64 = 2047;

/// Registers have their numbers, and no floating one survives calls.
fn effect_sparc64(text: &str, scratch: u64) -> Option<Effect> {
    let (operation, operands) = text.split_once(' ')?;
    match operation {
        "add" => match operands.strip_prefix("sp,")?.strip_suffix(",sp")? {
            "g1" => Some(Effect::Lower(scratch.wrapping_neg())),
            bytes => Some(Effect::Lower(number(bytes)?.wrapping_neg())),
        },
        "jmpl" => (operands == "o7+8,g0").then_some(Effect::Return),
        "sethi" => Some(Effect::Scratch(number(operands.strip_suffix(",g1")?)? << 10)),
        "or" => Some(Effect::Scratch(scratch | number(operands.strip_prefix("g1,")?.strip_suffix(",g1")?)?)),
        "xor" => Some(Effect::Scratch(scratch ^ number(operands.strip_prefix("g1,")?.strip_suffix(",g1")?)?)),
        "stx" => {
            let (name, place) = operands.split_once(",[sp+")?;
            let above = number(place.strip_suffix(']')?)?.wrapping_sub(SPARC64_BIAS);
            let number = names(&decode::SPARC64, 0).iter().position(|register| *register == name)? as u8;
            Some(Effect::Store(number, above))
        }
        _ => None,
    }
}

/// Integer registers have their numbers, which are their names, floating ones those from 32. The stack pointer is 30,
/// the return address in 26, the scratch register 27.
fn effect_alpha(text: &str, scratch: u64) -> Option<Effect> {
    let (operation, operands) = text.split_once(' ')?;
    let between = |before: &str, after: &str| number(operands.strip_prefix(before)?.strip_suffix(after)?);
    match operation {
        "lda" => match between("30,", "(30)") {
            Some(bytes) => Some(Effect::Lower(bytes.wrapping_neg())),
            None => Some(Effect::Scratch(scratch.wrapping_add(between("27,", "(27)")?))),
        },
        "ldah" => Some(Effect::Scratch(between("27,", "(31)")? << 16)),
        "addq" => (operands == "30,27,30").then(|| Effect::Lower(scratch.wrapping_neg())),
        "ret" => (operands == "31,(26),1").then_some(Effect::Return),
        "stq" => store(names(&decode::ALPHA, 1), 0, operands, "30"),
        "stt" => store(names(&decode::ALPHA, 2), 32, operands, "30"),
        _ => None,
    }
}

/// The DWARF number of the link register of Power.
const PPC64LE_LINK: u8 = 65;

/// Integer registers have their numbers, floating ones those from 32. The link register goes through r0, whose value
/// then is that of the scratch register.
fn effect_ppc64le(text: &str, scratch: u64) -> Option<Effect> {
    /// No frame has this size.
    const LINK_VALUE: u64 = u64::MAX;
    let (operation, operands) = text.split_once(' ').unwrap_or((text, ""));
    let between = |before: &str, after: &str| number(operands.strip_prefix(before)?.strip_suffix(after)?);
    match operation {
        "stdu" => Some(Effect::Lower(between("r1,", "(r1)")?.wrapping_neg())),
        "addi" => Some(Effect::Lower(between("r1,r1,", "")?.wrapping_neg())),
        "stdux" | "add" => (operands == "r1,r1,r12").then(|| Effect::Lower(scratch.wrapping_neg())),
        "lis" => Some(Effect::Scratch((between("r12,", "")? << 16) as i32 as u64)),
        "ori" => Some(Effect::Scratch(scratch | between("r12,r12,", "")?)),
        "mflr" => (operands == "r0").then_some(Effect::Scratch(LINK_VALUE)),
        "blr" => Some(Effect::Return),
        "std" => match stored(names(&decode::PPC64LE, 0), 0, operands, "r1")? {
            (0, above) => (scratch == LINK_VALUE).then_some(Effect::Store(PPC64LE_LINK, above)),
            (register, above) => Some(Effect::Store(register, above)),
        },
        "stfd" => store(names(&decode::PPC64LE, 1), 32, operands, "r1"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_moves_the_stack_pointer_is_seen() {
        for (text, expected) in [
            ("subq $72,rsp", Some(Effect::Lower(72))),
            ("addq $72,rsp", Some(Effect::Lower(72_u64.wrapping_neg()))),
            ("subq $72,rax", None),
            ("movq rbx,16(rsp)", Some(Effect::Store(3, 16))),
            ("movq 16(rsp),rbx", None),
            ("ret", Some(Effect::Return)),
        ] {
            assert_eq!(effect_x86_64(text, 0), expected, "{text}");
        }
        for (text, expected) in [
            ("sub sp,sp,32", Some(Effect::Lower(32))),
            ("add sp,sp,x16", Some(Effect::Lower(0x12345_u64.wrapping_neg()))),
            ("add x1,sp,32", None),
            ("movz w16,18,lsl 16", Some(Effect::Scratch(0x12_0000))),
            ("movk x16,1,lsl 16", Some(Effect::Scratch(0x12345))),
            ("str x30,[sp,0]", Some(Effect::Store(30, 0))),
            ("str d8,[sp,40]", Some(Effect::Store(72, 40))),
            ("str w8,[sp,40]", None),
            ("ret x30", Some(Effect::Return)),
        ] {
            assert_eq!(effect_aarch64(text, 0x12345), expected, "{text}");
        }
        for (text, expected) in [
            ("addi sp,sp,-32", Some(Effect::Lower(32))),
            ("add sp,sp,t5", Some(Effect::Lower(4096))),
            ("addi t5,sp,32", None),
            ("lui t5,1048575", Some(Effect::Scratch(4096_u64.wrapping_neg()))),
            ("addiw t5,t5,-16", Some(Effect::Scratch(4112_u64.wrapping_neg()))),
            ("sd ra,0(sp)", Some(Effect::Store(1, 0))),
            ("fsd fs0,40(sp)", Some(Effect::Store(40, 40))),
            ("sd s0,8(t0)", None),
            ("jalr zero,0(ra)", Some(Effect::Return)),
            ("jalr zero,0(t5)", None),
        ] {
            assert_eq!(effect_riscv64(text, 4096_u64.wrapping_neg()), expected, "{text}");
        }
        for (text, expected) in [
            ("addiu sp,sp,-32", Some(Effect::Lower(32))),
            ("addu sp,sp,t9", Some(Effect::Lower(0x4_0000))),
            ("addiu t9,sp,32", None),
            ("lui t9,65531", Some(Effect::Scratch(0x5_0000_u64.wrapping_neg()))),
            ("ori t9,t9,16", Some(Effect::Scratch(0x3_fff0_u64.wrapping_neg()))),
            ("ori t9,zero,40000", Some(Effect::Scratch(40_000))),
            ("sw ra,16(sp)", Some(Effect::Store(31, 16))),
            ("sw ra,16(t9)", None),
            ("sdc1 f20,40(sp)", Some(Effect::StorePair(52, 40))),
            ("jr ra", Some(Effect::Return)),
            ("jr t9", None),
        ] {
            assert_eq!(effect_mips(text, 0x4_0000_u64.wrapping_neg()), expected, "{text}");
        }
        for (text, expected) in [
            ("add sp,-176,sp", Some(Effect::Lower(176))),
            ("add sp,g1,sp", Some(Effect::Lower(1024))),
            ("add sp,176,g1", None),
            ("sethi 68,g1", Some(Effect::Scratch(68 << 10))),
            ("xor g1,-24,g1", Some(Effect::Scratch(1000))),
            ("or g1,24,g1", Some(Effect::Scratch(1000_u64.wrapping_neg()))),
            ("stx o7,[sp+2175]", Some(Effect::Store(15, 128))),
            ("stx l0,[g1+2183]", None),
            ("jmpl o7+8,g0", Some(Effect::Return)),
            ("jmpl g1+0,o7", None),
        ] {
            assert_eq!(effect_sparc64(text, 1024_u64.wrapping_neg()), expected, "{text}");
        }
        for (text, expected) in [
            ("lda 30,-32(30)", Some(Effect::Lower(32))),
            ("addq 30,27,30", Some(Effect::Lower(0x2_0000))),
            ("lda 1,32(30)", None),
            ("ldah 27,-2(31)", Some(Effect::Scratch(0x2_0000_u64.wrapping_neg()))),
            ("lda 27,-16(27)", Some(Effect::Scratch(0x2_0010_u64.wrapping_neg()))),
            ("stq 26,16(30)", Some(Effect::Store(26, 16))),
            ("stt f2,40(30)", Some(Effect::Store(34, 40))),
            ("stq 9,16(1)", None),
            ("ret 31,(26),1", Some(Effect::Return)),
        ] {
            assert_eq!(effect_alpha(text, 0x2_0000_u64.wrapping_neg()), expected, "{text}");
        }
        for (text, expected) in [
            ("stdu r1,-64(r1)", Some(Effect::Lower(64))),
            ("stdux r1,r1,r12", Some(Effect::Lower(0x2_0000))),
            ("addi r1,r1,64", Some(Effect::Lower(64_u64.wrapping_neg()))),
            ("add r1,r1,r12", Some(Effect::Lower(0x2_0000))),
            ("addi r12,r1,64", None),
            ("lis r12,65534", Some(Effect::Scratch(0x2_0000_u64.wrapping_neg()))),
            ("ori r12,r12,16", Some(Effect::Scratch(0x1_fff0_u64.wrapping_neg()))),
            ("std r0,32(r1)", None),
            ("std r31,40(r1)", Some(Effect::Store(31, 40))),
            ("stfd f14,48(r1)", Some(Effect::Store(46, 48))),
            ("blr", Some(Effect::Return)),
        ] {
            assert_eq!(effect_ppc64le(text, 0x2_0000_u64.wrapping_neg()), expected, "{text}");
        }
        let Some(Effect::Scratch(link)) = effect_ppc64le("mflr r0", 0) else { panic!("the link register is read") };
        assert_eq!(effect_ppc64le("std r0,32(r1)", link), Some(Effect::Store(65, 32)));
    }
}
