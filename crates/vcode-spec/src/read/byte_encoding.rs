//! Reads the encoding of an x86 instruction as the Intel manual writes it: `W 03 /d,t = d, t`. Left of `=` are
//! prefixes, opcode bytes, ModRM and immediates; right of it is the operand text for the assembler.

use super::{push_text, tokens};
use crate::model::*;

/// The parts of an instruction of [`Code::Bytes`].
type ByteInsn = (Encoding, Vec<Operand>, Vec<Segment>, Vec<char>);

/// Signed displacements and immediates of 32 bits.
const SIGNED_32: Kind = Kind::Signed { bits: 32, scale: 0 };
/// The distance to a label, which counts from the end of its four bytes.
const LABEL: Kind = Kind::Relative { bits: 32, scale: 0, origin: 4, part: Part::Whole };

/// Reads `rest` of an `insn` line of a machine whose registers have the names of `sets`.
pub(super) fn byte_insn(sets: &[NameSet], rest: &str) -> Result<ByteInsn, String> {
    let (encoding, operand_text) = rest.split_once('=').unwrap_or((rest, ""));
    let set_of = |class| sets.iter().position(|set| set.class == class).ok_or("no names yet");
    let mut reader = ByteReader {
        int: set_of(Class::Int)?,
        float: set_of(Class::Float)?,
        letters: Vec::new(),
        operands: Vec::new(),
    };
    let encoding = encoding
        .split_whitespace()
        .map(|word| reader.token(word).ok_or_else(|| format!("`{word}` is not a part of an encoding")))
        .collect::<Result<Vec<Token>, String>>()?;
    let text = reader.text(sets, operand_text.trim())?;
    Ok((Encoding::Bytes(encoding), reader.operands, text, reader.letters))
}

/// The operands of one instruction, numbered as the encoding mentions them.
struct ByteReader {
    /// The first name sets of the two register files.
    int: usize,
    float: usize,
    /// The letters of the operands, for the operand text.
    letters: Vec<char>,
    operands: Vec<Operand>,
}

impl ByteReader {
    fn operand(&mut self, letter: char, kind: Kind) -> usize {
        self.letters.push(letter);
        self.operands.push(Operand { kind, pieces: Vec::new() });
        self.operands.len() - 1
    }

    /// A register by its letter; a capital stands for one of the floating file.
    fn register(&mut self, text: &str) -> Option<usize> {
        let letter = text.chars().next().filter(|_| text.len() == 1)?;
        let set = if letter.is_ascii_uppercase() { self.float } else { self.int };
        Some(self.operand(letter, Kind::Register(set)))
    }

    fn immediate(&mut self, bytes: u32, letter: char, kind: Kind) -> Token {
        Token::Immediate { bytes, operand: self.operand(letter, kind) }
    }

    /// One word of an encoding.
    fn token(&mut self, word: &str) -> Option<Token> {
        Some(match word {
            "R" => Token::Rex { wide: false },
            "W" => Token::Rex { wide: true },
            "r" => Token::ShortRex,
            "j8" => self.immediate(1, 'j', Kind::Signed { bits: 8, scale: 0 }),
            "j16" => self.immediate(2, 'j', Kind::Signed { bits: 16, scale: 0 }),
            "j32" => self.immediate(4, 'j', SIGNED_32),
            "j64" => self.immediate(8, 'j', Kind::Signed { bits: 64, scale: 0 }),
            "k8" => self.immediate(1, 'k', Kind::Unsigned { bits: 8, scale: 0 }),
            "k32" => self.immediate(4, 'k', Kind::Unsigned { bits: 32, scale: 0 }),
            "i8" => self.immediate(1, 'i', Kind::Signed { bits: 8, scale: 0 }),
            "u8" => self.immediate(1, 'i', Kind::Unsigned { bits: 8, scale: 0 }),
            "i32" => self.immediate(4, 'i', SIGNED_32),
            "u32" => self.immediate(4, 'i', Kind::Unsigned { bits: 32, scale: 0 }),
            "i64" => self.immediate(8, 'i', Kind::Signed { bits: 64, scale: 0 }),
            "b32" => self.immediate(4, 'b', LABEL),
            _ if word.contains("VEX.") => vex(word)?,
            _ if word.starts_with('/') => self.modrm(&word[1..])?,
            _ => match word.split_once('+') {
                Some((opcode, letter)) => {
                    let opcode = u8::from_str_radix(opcode, 16).ok()?;
                    Token::Plus { opcode, register: self.register(letter)? }
                }
                None => Token::Byte(u8::from_str_radix(word, 16).ok()?),
            },
        })
    }

    /// A ModRM byte: `reg,rm`, or `reg,vvvv,rm` after a VEX prefix.
    fn modrm(&mut self, text: &str) -> Option<Token> {
        let (reg, rm) = text.split_once(',')?;
        let (second, rm) = match rm.split_once(',') {
            Some((second, rm)) => (Some(second), rm),
            None => (None, rm),
        };
        let reg = match reg.parse::<u8>() {
            Ok(digit) => RegField::Digit(digit),
            Err(_) => RegField::Operand(self.register(reg)?),
        };
        let second = match second {
            Some(second) => Some(self.register(second)?),
            None => None,
        };
        Some(Token::ModRm { reg, second, rm: self.rm(rm)? })
    }

    /// The register-or-memory side: a register, a digit, `[rip+b]`, `[s+i]`, or `[s+t*SCALE]` with or without `+i`; in
    /// the system layer also `m[s+i]`, `[i]` and `[t*8+i]`.
    fn rm(&mut self, text: &str) -> Option<Rm> {
        if text == "m[s+i]" {
            return Some(Rm::AnyBase(self.register("s")?, self.operand('i', SIGNED_32)));
        }
        let Some(address) = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) else {
            return match text.parse::<u8>() {
                Ok(digit) => Some(Rm::Digit(digit)),
                Err(_) => Some(Rm::Register(self.register(text)?)),
            };
        };
        match address {
            "rip+b" => return Some(Rm::Label(self.operand('b', LABEL))),
            "i" => return Some(Rm::Absolute(self.operand('i', SIGNED_32))),
            "t*8+i" => return Some(Rm::Scaled(self.register("t")?, self.operand('i', SIGNED_32))),
            "s+i" => return Some(Rm::Offset(self.register("s")?, self.operand('i', SIGNED_32))),
            _ => {}
        }
        let rest = address.strip_prefix("s+t")?;
        let (scaled, has_offset) = match rest.strip_suffix("+i") {
            Some(scaled) => (scaled, true),
            None => (rest, false),
        };
        let scale =
            ["", "*2", "*4", "*8"].iter().position(|own| *own == scaled || scaled == "*1" && own.is_empty())? as u32;
        let (base, index) = (self.register("s")?, self.register("t")?);
        let offset = has_offset.then(|| self.operand('i', SIGNED_32));
        Some(Rm::Index { base, index, scale, offset })
    }

    /// The operand text; `SET.LETTER` spells a register as this name set does.
    fn text(&self, sets: &[NameSet], operand_text: &str) -> Result<Vec<Segment>, String> {
        let mut text = Vec::new();
        for token in tokens(operand_text) {
            let (set, letter) = match token.split_once('.') {
                Some((set, letter)) => (Some(set), letter),
                None => (None, token.as_str()),
            };
            let position = self.letters.iter().position(|own| letter.len() == 1 && letter.starts_with(*own));
            let Some(operand) = position else {
                push_text(&mut text, &token);
                continue;
            };
            let set = match set {
                None => 0,
                Some(set) => sets.iter().position(|own| own.name == set).ok_or_else(|| format!("no names `{set}`"))?,
            };
            text.push(Segment::Operand { operand, set });
        }
        Ok(text)
    }
}

/// A prefix in the notation of the manuals: `VEX.256.66.0f38.W1`, and `.k1` or `.k1z` for a masked operation.
fn vex(word: &str) -> Option<Token> {
    let parts: Vec<&str> = word.split('.').collect();
    let (["VEX" | "EVEX", length, pp, map, w], mask) = parts.split_at_checked(5)? else { return None };
    let length = ["128", "256", "512"].iter().position(|own| own == length)? as u8;
    let pp = ["", "66", "f3", "f2"].iter().position(|own| own == pp)? as u8;
    let map = ["", "0f", "0f38", "0f3a"].iter().position(|own| own == map)? as u8;
    let w = ["W0", "W1"].iter().position(|own| own == w)? as u8;
    let mask = match mask {
        [] => 0,
        ["k1"] => 1,
        ["k1z"] => 0x81,
        _ => return None,
    };
    // The inverted register bits are added by the emitter; registers 16 to 31 are never used.
    Some(match parts[0] {
        "VEX" => Token::Vex { bytes: [0xc4, map, w << 7 | length << 2 | pp, 0], prefix: Prefix::Vex },
        _ => Token::Vex { bytes: [0x62, 0x10 | map, w << 7 | 4 | pp, mask | length << 5 | 8], prefix: Prefix::Evex },
    })
}
