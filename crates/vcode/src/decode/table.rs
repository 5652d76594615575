//! The table-driven disassembler: decodes one instruction at a time into the text that an assembler accepts. The tables
//! are generated; no machine is named here.

use core::fmt;

/// A part of the assembler text of an instruction.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Segment {
    /// A literal text.
    Text(&'static str),
    /// An operand, spelled by a name set if it is a register.
    Operand { operand: usize, set: usize },
}

/// The kind of an operand.
#[derive(Debug, Clone, Copy)]
pub(crate) enum FieldKind {
    Register,
    Signed { scale: u32 },
    Unsigned { scale: u32 },
    Down { bits: u32 },
    Relative { scale: u32, origin: i32 },
}

/// An operand: its kind, and its bits in a word.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Field {
    pub(crate) kind: FieldKind,
    pub(crate) pieces: &'static [(u32, u32)],
}

/// The register field of a ModRM byte.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RegField {
    Digit(u8),
    Operand(usize),
}

/// The other side of a ModRM byte; numbers are operands.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Rm {
    Register(usize),
    Digit(u8),
    Offset(usize, usize),
    Index(usize, usize, u32),
    IndexOffset(usize, usize, u32, usize),
    AnyBase(usize, usize),
    Absolute(usize),
    Scaled(usize, usize),
    Label(usize),
}

/// A prefix that holds registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Prefix {
    Vex,
    Evex,
}

/// A part of a byte encoding.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Token {
    Byte(u8),
    Rex(u8),
    ShortRex,
    Vex { bytes: [u8; 4], prefix: Prefix },
    Plus { opcode: u8, register: usize },
    ModRm { reg: RegField, second: Option<usize>, rm: Rm },
    Immediate { bytes: u32, operand: usize },
}

/// The layout of an instruction.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Pattern {
    Word { bits: u32, mask: u32 },
    Bytes(&'static [Token]),
}

/// A machine instruction.
#[derive(Debug)]
pub(crate) struct Insn {
    pub(crate) mnemonic: &'static str,
    pub(crate) text: &'static [Segment],
    pub(crate) operands: &'static [Field],
    pub(crate) pattern: Pattern,
}

/// How code is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    WordLittle,
    WordBig,
    Bytes,
}

/// The instructions of a machine.
#[derive(Debug)]
pub struct Table {
    pub(crate) layout: Layout,
    pub(crate) prefix: &'static str,
    pub(crate) names: &'static [&'static [&'static str]],
    pub(crate) insns: &'static [Insn],
}

/// The most operands of an instruction.
const MAX_OPERANDS: usize = 6;

/// A decoded instruction. Displays as assembler text; distances to labels are relative to the instruction: `.+8`.
#[derive(Debug, Clone, Copy)]
pub struct Decoded {
    table: &'static Table,
    insn: &'static Insn,
    values: [i64; MAX_OPERANDS],
    /// Bytes it takes.
    pub length: usize,
}

impl Table {
    /// Whether instructions are words of four bytes.
    pub fn is_words(&self) -> bool {
        self.layout != Layout::Bytes
    }

    /// Decodes the instruction at the start of `code`; `None` if it is not an instruction that this crate emits.
    pub fn decode(&'static self, code: &[u8]) -> Option<Decoded> {
        match self.layout {
            Layout::Bytes => self.insns.iter().find_map(|insn| self.bytes(insn, code)),
            Layout::WordLittle | Layout::WordBig => {
                let bytes: [u8; 4] = code.get(..4)?.try_into().ok()?;
                let word = if self.layout == Layout::WordLittle {
                    u32::from_le_bytes(bytes)
                } else {
                    u32::from_be_bytes(bytes)
                };
                self.insns.iter().find_map(|insn| self.word(insn, word))
            }
        }
    }

    fn word(&'static self, insn: &'static Insn, word: u32) -> Option<Decoded> {
        let Pattern::Word { bits, mask } = insn.pattern else { return None };
        if word & mask != bits {
            return None;
        }
        let mut values = [0; MAX_OPERANDS];
        for (field, value) in insn.operands.iter().zip(&mut values) {
            // A register in several fields has the same number in all of them.
            if let (FieldKind::Register, [(_, first), rest @ ..]) = (field.kind, field.pieces) {
                let number = |low: u32| word >> low & 31;
                if rest.iter().any(|(_, low)| number(*low) != number(*first)) {
                    return None;
                }
                *value = i64::from(number(*first));
                continue;
            }
            let mut raw = 0_i64;
            let mut width = 0;
            for (high, low) in field.pieces {
                let piece = high - low + 1;
                raw = raw << piece | i64::from(word >> low) & ((1 << piece) - 1);
                width += piece;
            }
            *value = match field.kind {
                FieldKind::Register => raw,
                FieldKind::Unsigned { scale } => raw << scale,
                FieldKind::Down { bits } => (1 << bits) - raw,
                FieldKind::Signed { scale } => sign_extend(raw, width) << scale,
                FieldKind::Relative { scale, origin } => (sign_extend(raw, width) << scale) + i64::from(origin),
            };
        }
        self.checked(insn, values, 4)
    }

    fn bytes(&'static self, insn: &'static Insn, code: &[u8]) -> Option<Decoded> {
        let Pattern::Bytes(tokens) = insn.pattern else { return None };
        let mut reader = ByteReader { code, at: 0, rex: 0, second: 0, scale: 0, values: [0; MAX_OPERANDS] };
        for token in tokens {
            reader.token(*token)?;
        }
        let ByteReader { at, mut values, .. } = reader;
        for (field, value) in insn.operands.iter().zip(&mut values) {
            match field.kind {
                FieldKind::Relative { .. } => *value += at as i64,
                FieldKind::Unsigned { .. } => {
                    let bits = tokens.iter().find_map(|token| match token {
                        Token::Immediate { bytes, .. } => Some(8 * bytes),
                        Token::Byte(_)
                        | Token::Rex(_)
                        | Token::ShortRex
                        | Token::Vex { .. }
                        | Token::Plus { .. }
                        | Token::ModRm { .. } => None,
                    });
                    *value &= (1 << bits.unwrap_or(32)) - 1;
                }
                FieldKind::Register | FieldKind::Signed { .. } | FieldKind::Down { .. } => {}
            }
        }
        self.checked(insn, values, at)
    }

    /// Rejects register numbers that the name set does not have.
    fn checked(&'static self, insn: &'static Insn, values: [i64; MAX_OPERANDS], length: usize) -> Option<Decoded> {
        for segment in insn.text {
            if let Segment::Operand { operand, set } = *segment
                && matches!(insn.operands[operand].kind, FieldKind::Register)
            {
                self.names[set].get(values[operand] as usize)?;
            }
        }
        Some(Decoded { table: self, insn, values, length })
    }
}

/// Reads an x86 instruction byte by byte, along the tokens of its pattern. `None` if a byte differs from the pattern.
struct ByteReader<'c> {
    code: &'c [u8],
    /// The next byte.
    at: usize,
    /// The REX prefix, or the bits of a VEX or EVEX prefix that correspond to it.
    rex: u8,
    /// The second source register, of a VEX or EVEX prefix.
    second: u8,
    /// The logarithm of the unit of short displacements.
    scale: u32,
    values: [i64; MAX_OPERANDS],
}

impl<'c> ByteReader<'c> {
    fn take(&mut self, count: usize) -> Option<&'c [u8]> {
        let bytes = self.code.get(self.at..self.at + count)?;
        self.at += count;
        Some(bytes)
    }

    fn byte(&mut self) -> Option<u8> {
        Some(self.take(1)?[0])
    }

    fn token(&mut self, token: Token) -> Option<()> {
        match token {
            Token::Byte(byte) => (self.byte()? == byte).then_some(()),
            Token::Rex(fixed) => {
                self.rex = self.byte()?;
                (self.rex & 0xf8 == fixed).then_some(())
            }
            Token::ShortRex => {
                let next = *self.code.get(self.at)?;
                let present = next & 0xf8 == 0x40;
                self.rex = if present { next } else { 0x40 };
                self.at += usize::from(present);
                Some(())
            }
            Token::Vex { bytes, prefix } => {
                let found = self.take(if prefix == Prefix::Vex { 3 } else { 4 })?;
                // Without the registers, which are inverted.
                let masks = [0xff, 0x1f, 0x87, 0xff];
                if found.iter().zip(bytes).zip(masks).any(|((found, byte), mask)| found & mask != byte) {
                    return None;
                }
                self.rex = !found[1] >> 5 & 7;
                self.second = !found[2] >> 3 & 15;
                self.scale = if prefix == Prefix::Vex { 0 } else { 6 };
                Some(())
            }
            Token::Plus { opcode, register } => {
                let byte = self.byte()?;
                self.values[register] = self.base(byte & 7);
                (byte & 0xf8 == opcode).then_some(())
            }
            Token::ModRm { reg, second, rm } => self.modrm(reg, second, rm),
            Token::Immediate { bytes, operand } => {
                self.values[operand] = little(self.take(bytes as usize)?);
                Some(())
            }
        }
    }

    /// The number of a register in the r/m field, in the base of a SIB byte or in an opcode.
    fn base(&self, low: u8) -> i64 {
        i64::from(low | (self.rex & 1) << 3)
    }

    fn modrm(&mut self, reg: RegField, second: Option<usize>, rm: Rm) -> Option<()> {
        match second {
            Some(operand) => self.values[operand] = i64::from(self.second),
            None if self.second != 0 => return None,
            None => {}
        }
        let byte = self.byte()?;
        let (mode, middle, low) = (byte >> 6, byte >> 3 & 7, byte & 7);
        match reg {
            RegField::Digit(digit) if digit != middle => return None,
            RegField::Digit(_) => {}
            RegField::Operand(operand) => self.values[operand] = i64::from(middle | (self.rex & 4) << 1),
        }
        match rm {
            Rm::Register(operand) if mode == 3 => self.values[operand] = self.base(low),
            Rm::Digit(digit) if mode == 3 && low == digit => {}
            Rm::Label(operand) if mode == 0 && low == 5 => self.values[operand] = little(self.take(4)?),
            Rm::Offset(base, offset) if mode == 1 || mode == 2 => {
                let low = if low == 4 { sib(self.byte()?, self.rex, None)?.0 } else { low };
                self.values[base] = self.base(low);
                self.values[offset] = match mode {
                    1 => little(self.take(1)?) << self.scale,
                    _ => little(self.take(4)?),
                };
            }
            Rm::Index(base, index, scale) if mode == 1 && low == 4 => {
                self.scaled_index(base, index, scale)?;
                if self.byte()? != 0 {
                    return None;
                }
            }
            Rm::IndexOffset(base, index, scale, offset) if (mode == 1 || mode == 2) && low == 4 => {
                self.scaled_index(base, index, scale)?;
                self.values[offset] = little(self.take(if mode == 1 { 1 } else { 4 })?);
            }
            // Base 5 without a displacement is none.
            Rm::AnyBase(base, offset) if mode != 3 && (mode != 0 || low != 5) => {
                let low = if low == 4 { sib(self.byte()?, self.rex, None)?.0 } else { low };
                if mode == 0 && low == 5 {
                    return None;
                }
                self.values[base] = self.base(low);
                self.values[offset] = match mode {
                    0 => 0,
                    1 => little(self.take(1)?),
                    _ => little(self.take(4)?),
                };
            }
            Rm::Absolute(offset) if mode == 0 && low == 4 => {
                if sib(self.byte()?, self.rex, None)?.0 != 5 {
                    return None;
                }
                self.values[offset] = little(self.take(4)?);
            }
            Rm::Scaled(index, offset) if mode == 0 && low == 4 => {
                let (base, number) = sib(self.byte()?, self.rex, Some(3))?;
                if base != 5 {
                    return None;
                }
                self.values[index] = i64::from(number);
                self.values[offset] = little(self.take(4)?);
            }
            Rm::Register(_)
            | Rm::Digit(_)
            | Rm::Label(_)
            | Rm::Offset(..)
            | Rm::Index(..)
            | Rm::IndexOffset(..)
            | Rm::AnyBase(..)
            | Rm::Absolute(_)
            | Rm::Scaled(..) => return None,
        }
        Some(())
    }

    fn scaled_index(&mut self, base: usize, index: usize, scale: u32) -> Option<()> {
        let (base_number, index_number) = sib(self.byte()?, self.rex, Some(scale))?;
        self.values[base] = self.base(base_number);
        self.values[index] = i64::from(index_number);
        Some(())
    }
}

/// Base and index of a SIB byte, the index being shifted by `scale`; without an index the byte must say so.
fn sib(byte: u8, rex: u8, scale: Option<u32>) -> Option<(u8, u8)> {
    let number = byte >> 3 & 7 | (rex & 2) << 2;
    let valid = u32::from(byte >> 6) == scale.unwrap_or(0) && (number == 4) == scale.is_none();
    valid.then_some((byte & 7, number))
}

fn little(bytes: &[u8]) -> i64 {
    let raw = bytes.iter().rev().fold(0_u64, |value, byte| value << 8 | u64::from(*byte));
    sign_extend(raw as i64, 8 * bytes.len() as u32)
}

fn sign_extend(value: i64, bits: u32) -> i64 {
    let shift = 64 - bits;
    value << shift >> shift
}

impl Decoded {
    /// The distance from the instruction to the label that it refers to.
    pub(crate) fn distance(&self) -> Option<i64> {
        let operands = self.insn.operands.iter().zip(self.values);
        operands.into_iter().find_map(|(field, value)| match field.kind {
            FieldKind::Relative { .. } => Some(value),
            FieldKind::Register | FieldKind::Signed { .. } | FieldKind::Unsigned { .. } | FieldKind::Down { .. } => {
                None
            }
        })
    }
}

impl fmt::Display for Decoded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.insn.mnemonic)?;
        if !self.insn.text.is_empty() {
            f.write_str(" ")?;
        }
        for segment in self.insn.text {
            match *segment {
                Segment::Text(text) => f.write_str(text)?,
                Segment::Operand { operand, set } => {
                    let value = self.values[operand];
                    match self.insn.operands[operand].kind {
                        FieldKind::Register => {
                            let name = self.table.names[set].get(value as usize).copied().unwrap_or("?");
                            write!(f, "{}{name}", self.table.prefix)?;
                        }
                        FieldKind::Signed { .. } | FieldKind::Unsigned { .. } | FieldKind::Down { .. } => {
                            write!(f, "{value}")?
                        }
                        FieldKind::Relative { .. } => write!(f, ".{value:+}")?,
                    }
                }
            }
        }
        Ok(())
    }
}
