//! Prints the emission of an x86 instruction: constant bytes are collected in one word, register numbers are or-ed into
//! it, and up to eight bytes are stored at once. Addresses, whose length depends on their operands, are stored by
//! functions of the assembler.

use std::fmt::Write as _;

use super::Print;
use crate::emit::Language;
use crate::model::*;

impl Print<'_> {
    pub(super) fn emit_bytes(&self, tokens: &[Token], insn: &Insn, args: &[Arg], pad: &str, out: &mut String) {
        let mut printer = BytePrinter {
            print: self,
            insn,
            args,
            pad,
            out,
            constant: 0,
            length: 0,
            rex: 0,
            prefix: None,
            terms: Vec::new(),
        };
        for token in tokens {
            printer.token(*token);
        }
        printer.flush();
    }
}

/// The bytes of one instruction that are collected and not yet stored.
struct BytePrinter<'a> {
    print: &'a Print<'a>,
    insn: &'a Insn,
    args: &'a [Arg],
    pad: &'a str,
    out: &'a mut String,
    /// The constant bits, least significant byte first.
    constant: u64,
    /// The number of collected bytes.
    length: u32,
    /// The index of the REX prefix among them.
    rex: u32,
    /// The prefix that holds registers instead of REX.
    prefix: Option<Prefix>,
    /// Expressions that are or-ed to the constant.
    terms: Vec<String>,
}

impl BytePrinter<'_> {
    fn token(&mut self, token: Token) {
        match token {
            Token::Byte(byte) => {
                self.add(u64::from(byte));
                self.length += 1;
            }
            Token::Vex { bytes, prefix } => {
                self.prefix = Some(prefix);
                self.constant |= u64::from(u32::from_le_bytes(bytes));
                self.length += if prefix == Prefix::Vex { 3 } else { 4 };
            }
            Token::Rex { wide } => {
                self.rex = self.length;
                self.add(if wide { 0x48 } else { 0x40 });
                self.length += 1;
            }
            Token::Plus { opcode, register } => {
                self.add(u64::from(opcode));
                let bits = self.register(register, 'b');
                let term = self.spread(&bits);
                self.terms.push(term);
                self.length += 1;
            }
            Token::ShortRex => unreachable!("read() refuses it in rows"),
            Token::ModRm { reg, second, rm } => self.modrm(reg, second, rm),
            Token::Immediate { bytes, operand } => self.immediate(bytes, operand),
        }
    }

    /// Adds constant bits at the next byte.
    fn add(&mut self, bits: u64) {
        self.constant |= bits << (8 * self.length);
    }

    /// Prints the store of the collected bytes.
    fn flush(&mut self) {
        if self.length == 0 {
            return;
        }
        self.terms.insert(0, self.hex(self.constant));
        let value = std::mem::take(&mut self.terms).join(" | ");
        self.call("bytes", &format!("{value}, {}", self.length));
        self.reset();
    }

    fn reset(&mut self) {
        (self.constant, self.length) = (0, 0);
    }

    /// Calls a function on the cursor.
    fn call(&mut self, function: &str, arguments: &str) {
        let (pad, cursor) = (self.pad, self.print.cursor);
        let _ = match self.print.language {
            Language::Rust => writeln!(self.out, "{pad}{cursor}.{function}({arguments});"),
            Language::C => writeln!(self.out, "{pad}{cursor} = qjv_{function}({cursor}, {arguments});"),
        };
    }

    fn hex(&self, value: u64) -> String {
        match self.print.language {
            Language::Rust => format!("0x{value:x}"),
            Language::C => format!("UINT64_C(0x{value:x})"),
        }
    }

    /// A part of a register operand: `r` for the register field of ModRM, `b` for its r/m field.
    fn register(&self, operand: usize, part: char) -> String {
        let class = match self.insn.operands[operand].kind {
            Kind::Register(set) => self.print.machine.sets[set].class,
            Kind::Signed { .. } | Kind::Unsigned { .. } | Kind::Down { .. } | Kind::Relative { .. } => Class::Int,
        };
        match &self.args[operand] {
            Arg::Register(RegArg::Operand(letter)) => format!("{letter}.{part}"),
            Arg::Register(RegArg::Fixed(number)) => format!("{}.{part}", self.print.fixed(*number, class)),
            Arg::Value(_) | Arg::Label | Arg::Data(..) => {
                unreachable!("read() checked that this operand is a register")
            }
        }
    }

    /// The expression that puts the bits of registers into a REX prefix and into the next byte.
    fn spread(&self, bits: &str) -> String {
        match (self.print.language, self.rex, self.length) {
            (Language::Rust, 0, 2) => format!("u64::from({bits})"),
            (Language::Rust, rex, modrm) => format!("spread({bits}, {rex}, {modrm})"),
            (Language::C, 0, 2) => format!("(uint64_t)({bits})"),
            (Language::C, rex, modrm) => format!("qjv_spread({bits}, {rex}, {modrm})"),
        }
    }

    /// The same for a ModRM byte: into a REX prefix, or inverted into one of the newer.
    fn spread_modrm(&self, bits: &str, second: &str) -> String {
        let modrm = self.length;
        match (self.prefix, self.print.language) {
            (None, _) => self.spread(bits),
            (Some(_), Language::Rust) => format!("vex({bits}, {second}, {modrm})"),
            (Some(_), Language::C) => format!("qjv_vex({bits}, {second}, {modrm})"),
        }
    }

    fn modrm(&mut self, reg: RegField, second: Option<usize>, rm: Rm) {
        let second = second.map_or("0".into(), |operand| self.register(operand, 'b'));
        let reg = match reg {
            RegField::Digit(digit) => {
                self.add(u64::from(digit) << 3);
                None
            }
            RegField::Operand(operand) => Some(self.register(operand, 'r')),
        };
        match rm {
            Rm::Register(operand) => {
                self.add(0xc0);
                let b = self.register(operand, 'b');
                let bits = reg.map_or(b.clone(), |r| format!("{r} | {b}"));
                let term = self.spread_modrm(&bits, &second);
                self.terms.push(term);
                self.length += 1;
            }
            Rm::Digit(digit) => {
                self.add(u64::from(0xc0 | digit));
                let term = self.spread_modrm(reg.as_deref().unwrap_or("0"), &second);
                self.terms.push(term);
                self.length += 1;
            }
            Rm::Label(label) => self.label(reg, &second, label),
            Rm::Offset(base, offset) => self.offset(reg, &second, base, offset),
            Rm::AnyBase(..) | Rm::Absolute(_) | Rm::Scaled(..) => unreachable!("read() refuses them in rows"),
            Rm::Index { base, index, scale, offset } => self.index(reg, [base, index], scale, offset),
        }
    }

    /// An address relative to the instruction pointer; its four bytes are patched when the label is bound.
    fn label(&mut self, reg: Option<String>, second: &str, label: usize) {
        self.add(0x05);
        if let Some(r) = reg {
            let term = self.spread_modrm(&r, second);
            self.terms.push(term);
        }
        self.length += 1;
        self.flush();
        if let Arg::Value(value) = &self.args[label] {
            let distance = value.constant().expect("literal distances are numbers");
            self.constant = u64::from(distance as u32);
        }
        self.length = 4;
        self.flush();
    }

    /// A base and a displacement of one or four bytes.
    fn offset(&mut self, reg: Option<String>, second: &str, base: usize, offset: usize) {
        let reg = reg.unwrap_or_else(|| "0".into());
        let stack = RegArg::Fixed(self.print.machine.special.stack);
        let base_is_stack = matches!(&self.args[base], Arg::Register(own) if *own == stack);
        let base = self.register(base, 'b');
        let (constant, offset, length, rex) = (self.hex(self.constant), self.value(offset), self.length, self.rex);
        match self.prefix {
            Some(prefix) => {
                let scale = if prefix == Prefix::Vex { 0 } else { 6 };
                let list = format!("{constant}, {length}, {reg} | {base}, {second}, {offset}, {scale}");
                self.call("vex_offset", &list);
            }
            None => {
                let function = if base_is_stack { "stack_offset" } else { "offset" };
                self.call(function, &format!("{constant}, {rex}, {length}, {reg}, {base}, {offset}"));
            }
        }
        self.reset();
    }

    /// A base and a scaled index, with or without a displacement.
    fn index(&mut self, reg: Option<String>, [base, index]: [usize; 2], scale: u32, offset: Option<usize>) {
        let reg = reg.unwrap_or_else(|| "0".into());
        let (base, index) = (self.register(base, 'b'), self.register(index, 'r'));
        let (constant, rex, length) = (self.hex(self.constant), self.rex, self.length);
        let list = format!("{constant}, {rex}, {length}, {reg}, {base}, {index}, {scale}");
        match offset {
            None => self.call("index", &list),
            Some(offset) => self.call("index_offset", &format!("{list}, {}", self.value(offset))),
        }
        self.reset();
    }

    /// The expression of a displacement.
    fn value(&self, operand: usize) -> String {
        let Arg::Value(value) = &self.args[operand] else { unreachable!("offsets are numbers") };
        self.print.expr(value)
    }

    fn immediate(&mut self, bytes: u32, operand: usize) {
        if self.length + bytes > 8 {
            self.flush();
        }
        let mask = if bytes == 8 { u64::MAX } else { (1 << (8 * bytes)) - 1 };
        if let Arg::Value(value) = &self.args[operand] {
            match value.constant() {
                // A literal distance counts from the end of the instruction, as assemblers print it.
                Some(number) => self.add(number as u64 & mask),
                None => {
                    let value = self.print.operand(value);
                    let value = match (self.print.language, bytes) {
                        (Language::Rust, 8) => format!("{value} as u64"),
                        (Language::Rust, _) => format!("({value} as u64 & 0x{mask:x})"),
                        (Language::C, 8) => format!("(uint64_t){value}"),
                        (Language::C, _) => format!("((uint64_t){value} & {})", self.hex(mask)),
                    };
                    let shift = 8 * self.length;
                    self.terms.push(if shift == 0 { value } else { format!("({value} << {shift})") });
                }
            }
        }
        self.length += bytes;
    }
}
