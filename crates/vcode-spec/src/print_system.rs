//! Prints the system layer of a machine: an emitter per name in `machines/system/*.spec`, the list its test works from,
//! and its page. The emitters hold what the specification says of an instruction; how bytes are packed is in `pack.rs`
//! of `quaject-vcode`.

use std::fmt::Write as _;

use crate::emit::insn_bytes;
use crate::model::*;
use crate::rust_spelling::marker;

/// An emitter: its name, and the instructions among which its immediate chooses, shortest first.
struct Emitter<'a> {
    name: &'a str,
    variants: Vec<&'a Insn>,
}

/// A parameter of an emitter.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EmitterParameter {
    /// Any register.
    AnyRegister(char),
    /// A register that can be an index.
    Index(char),
    /// A displacement.
    Displacement,
    /// A number of so many bits.
    Value { signed: bool, bits: u32 },
    /// A label.
    Label,
}

impl EmitterParameter {
    /// How it is declared in Rust.
    fn declaration(self) -> String {
        match self {
            EmitterParameter::AnyRegister(letter) => format!("{letter}: impl Into<AnyRegister>"),
            EmitterParameter::Index(letter) => format!("{letter}: Reg"),
            EmitterParameter::Displacement => "i: i32".into(),
            EmitterParameter::Value { signed, bits } => format!("value: {}{bits}", if signed { 'i' } else { 'u' }),
            EmitterParameter::Label => "b: Label".into(),
        }
    }

    /// The argument that the test passes.
    fn of_test(self) -> String {
        match self {
            EmitterParameter::AnyRegister(letter) | EmitterParameter::Index(letter) => format!("o.{letter}"),
            EmitterParameter::Displacement => "o.i".into(),
            // A value is an `i64`.
            EmitterParameter::Value { signed: true, bits: 64 } => "o.value".into(),
            EmitterParameter::Value { signed, bits } => format!("o.value as {}{bits}", if signed { 'i' } else { 'u' }),
            EmitterParameter::Label => "o.label".into(),
        }
    }
}

fn emitters_of(machine: &Machine) -> Vec<Emitter<'_>> {
    let mut all: Vec<Emitter<'_>> = Vec::new();
    for insn in machine.system() {
        let name = insn.name.split('.').next().unwrap_or(&insn.name);
        match all.iter_mut().find(|own| own.name == name) {
            Some(own) => own.variants.push(insn),
            None => all.push(Emitter { name, variants: vec![insn] }),
        }
    }
    all
}

/// The parts of a byte encoding.
fn tokens(insn: &Insn) -> &[Token] {
    match &insn.encoding {
        Encoding::Bytes(tokens) => tokens,
        Encoding::Word(_) => &[],
    }
}

impl Emitter<'_> {
    /// The instruction for any immediate.
    fn widest(&self) -> &Insn {
        self.variants.last().expect("an emitter begins with an instruction")
    }

    /// Destination, sources, displacement, immediate, label.
    fn parameters(&self) -> Vec<EmitterParameter> {
        let insn = self.widest();
        let index = tokens(insn).iter().find_map(|token| match token {
            Token::ModRm { rm: Rm::Index { index, .. } | Rm::Scaled(index, _), .. } => Some(*index),
            _ => None,
        });
        let mut letters: Vec<(usize, char)> = insn.letters.iter().copied().enumerate().collect();
        letters.sort_by_key(|(_, letter)| "dstijkb".find(*letter));
        let parameter = |(operand, letter): (usize, char)| match insn.operands[operand].kind {
            Kind::Register(_) if Some(operand) == index => EmitterParameter::Index(letter),
            Kind::Register(_) => EmitterParameter::AnyRegister(letter),
            Kind::Relative { .. } => EmitterParameter::Label,
            Kind::Signed { .. } if letter == 'i' => EmitterParameter::Displacement,
            Kind::Signed { bits, .. } => EmitterParameter::Value { signed: true, bits },
            Kind::Unsigned { bits, .. } | Kind::Down { bits } => EmitterParameter::Value { signed: false, bits },
        };
        letters.into_iter().map(parameter).collect()
    }

    fn declaration(&self) -> String {
        let parameters: String = self.parameters().iter().map(|own| format!(", {}", own.declaration())).collect();
        format!("pub fn {}(&mut self{parameters})", self.name)
    }
}

/// The assembler's text, with letters for the operands.
fn text(insn: &Insn) -> String {
    let mut text = insn.mnemonic.clone();
    for (index, segment) in insn.text.iter().enumerate() {
        if index == 0 {
            text.push(' ');
        }
        match segment {
            Segment::Text(part) => text.push_str(part),
            Segment::Operand { operand, .. } => match (insn.letters[*operand], insn.operands[*operand].kind) {
                ('j' | 'k', _) => text.push_str("value"),
                (letter, Kind::Register(_)) => {
                    text.push('%');
                    text.push(letter);
                }
                (letter, _) => text.push(letter),
            },
        }
    }
    text
}

/// The module of emitters.
pub(crate) fn emitters(machine: &Machine) -> String {
    let (name, marker) = (&machine.name, marker(&machine.name));
    let mut out = format!(
        "//! Generated by `cargo xtask codegen` from machines/system/{name}.spec; do not edit. The system layer of {name}.\n\n\
         #![allow(clippy::all, reason = \"generated\")]\n\n\
         use crate::asm::{{Asm, Label}};\nuse crate::cursor::{{fits_signed, fits_unsigned}};\n\
         use crate::generated::{name}::{{Reg, {marker}}};\nuse crate::pack::{{AnyRegister, Pack}};\n\n"
    );
    for (number, register) in machine.names(Class::Int).iter().enumerate() {
        let number = number as u32;
        let (name, kind) = (register.to_uppercase(), register_type(machine, number));
        let _ = writeln!(out, "/// The register `{register}`.\npub const {name}: {kind} = {kind}::new({number});");
    }
    let _ = writeln!(out, "\n/// Machine instructions that nothing portable stands for.\nimpl Asm<'_, {marker}> {{");
    for emitter in emitters_of(machine) {
        emitter_method(&mut out, machine, &emitter);
    }
    out.push_str("}\n");
    out
}

/// Registers that the portable instructions do not hand out cannot be passed to them: some are their scratch, some they
/// cannot address memory with.
fn register_type(machine: &Machine, number: u32) -> &'static str {
    if machine.temp.contains(&number) || machine.saved.contains(&number) { "Reg" } else { "AnyRegister" }
}

fn emitter_method(out: &mut String, machine: &Machine, emitter: &Emitter<'_>) {
    let texts: Vec<String> = emitter.variants.iter().map(|insn| format!("`{}`", text(insn))).collect();
    let mut shown = texts.clone();
    shown.dedup();
    let _ = writeln!(out, "    /// {}.\n    #[inline(always)]\n    {} {{", shown.join(" or "), emitter.declaration());
    let parameters = emitter.parameters();
    for parameter in &parameters {
        if let EmitterParameter::AnyRegister(letter) = parameter {
            let _ = writeln!(out, "        let {letter} = {letter}.into();");
        }
    }
    let bytes = emitter.variants.iter().map(|insn| insn_bytes(insn)).max().unwrap_or(0);
    let _ = writeln!(out, "        self.space({bytes});");
    let is_label = parameters.contains(&EmitterParameter::Label);
    if is_label {
        out.push_str("        let at = self.target(b);\n");
    }
    let packed: Vec<String> = emitter.variants.iter().map(|insn| pack(insn)).collect();
    let last = packed.len() - 1;
    out.push_str("        let bytes = ");
    for (insn, packed) in emitter.variants.iter().zip(&packed).take(last) {
        let _ = write!(out, "if {} {{ {packed} }} else ", immediate_test(insn));
    }
    let _ = if last == 0 { write!(out, "{}", packed[last]) } else { write!(out, "{{ {} }}", packed[last]) };
    out.push_str(";\n        self.cursor.pack(bytes);\n");
    if is_label {
        let kind = label_kind(machine, emitter.widest());
        let _ = writeln!(out, "        self.refer(self.cursor.back(4), {kind}, b, at);");
    }
    out.push_str("    }\n\n");
}

/// The number of the kind of reference of an instruction.
fn label_kind(machine: &Machine, insn: &Insn) -> usize {
    let kinds = machine.relative_kinds();
    let of =
        |operand: &Operand| kinds.iter().position(|(kind, pieces)| *kind == operand.kind && *pieces == operand.pieces);
    insn.operands.iter().find_map(of).expect("relative_kinds lists every label field")
}

/// Whether the immediate fits this instruction.
fn immediate_test(insn: &Insn) -> String {
    let kinds = insn.operands.iter().zip(&insn.letters).filter(|(_, letter)| matches!(letter, 'j' | 'k'));
    let tests: Vec<String> = kinds
        .map(|(operand, _)| match operand.kind {
            Kind::Unsigned { bits, .. } => format!("fits_unsigned(i64::from(value), {bits}, 0)"),
            Kind::Signed { bits, .. } => format!("fits_signed(i64::from(value), {bits}, 0)"),
            Kind::Register(_) | Kind::Down { .. } | Kind::Relative { .. } => unreachable!("immediates are numbers"),
        })
        .collect();
    tests.join(" && ")
}

/// The expression of the bytes of an instruction.
fn pack(insn: &Insn) -> String {
    let mut out = String::from("Pack::new()");
    for token in tokens(insn) {
        let _ = match *token {
            Token::Byte(byte) => write!(out, ".byte(0x{byte:02x})"),
            Token::Rex { wide } => write!(out, ".rex(0x{:02x}, {})", if wide { 0x48 } else { 0x40 }, high_bits(insn)),
            Token::ShortRex => write!(out, ".short_rex({})", high_bits(insn)),
            Token::Plus { opcode, register } => write!(out, ".plus(0x{opcode:02x}, {}.b)", insn.letters[register]),
            Token::ModRm { reg, rm, .. } => {
                let reg = match reg {
                    RegField::Digit(digit) => format!("{digit} << 19"),
                    RegField::Operand(operand) => format!("{}.r", insn.letters[operand]),
                };
                address(&mut out, insn, &reg, rm)
            }
            Token::Immediate { bytes, operand } => match insn.operands[operand].kind {
                Kind::Relative { .. } => write!(out, ".immediate(0, {bytes})"),
                _ => write!(out, ".immediate(value as u64, {bytes})"),
            },
            Token::Vex { .. } => unreachable!("vectors have rows"),
        };
    }
    out
}

fn address(out: &mut String, insn: &Insn, reg: &str, rm: Rm) -> std::fmt::Result {
    let letter = |operand: usize| insn.letters[operand];
    match rm {
        Rm::Register(operand) => write!(out, ".registers({reg}, {}.b)", letter(operand)),
        Rm::AnyBase(base, _) => write!(out, ".any_base({reg}, {}.b, i)", letter(base)),
        Rm::Absolute(_) => write!(out, ".absolute({reg}, i)"),
        Rm::Scaled(index, _) => write!(out, ".scaled({reg}, {}.r, i)", letter(index)),
        Rm::Index { base, index, scale, .. } => {
            write!(out, ".indexed({reg}, {}.b, {}.r, {scale}, i)", letter(base), letter(index))
        }
        Rm::Label(_) => write!(out, ".label({reg})"),
        Rm::Offset(..) | Rm::Digit(_) => unreachable!("the system layer writes `m[s+i]`, and whole bytes"),
    }
}

/// The bits of register numbers that go into a REX prefix.
fn high_bits(insn: &Insn) -> String {
    let mut parts = Vec::new();
    let letter = |operand: usize| insn.letters[operand];
    for token in tokens(insn) {
        match *token {
            Token::Plus { register, .. } => parts.push(format!("{}.b", letter(register))),
            Token::ModRm { reg, rm, .. } => {
                if let RegField::Operand(operand) = reg {
                    parts.push(format!("{}.r", letter(operand)));
                }
                match rm {
                    Rm::Register(base) | Rm::AnyBase(base, _) | Rm::Offset(base, _) => {
                        parts.push(format!("{}.b", letter(base)));
                    }
                    Rm::Index { base, index, .. } => {
                        parts.push(format!("{}.b | {}.r >> 1 & 2", letter(base), letter(index)));
                    }
                    Rm::Scaled(index, _) => parts.push(format!("{}.r >> 1 & 2", letter(index))),
                    Rm::Digit(_) | Rm::Label(_) | Rm::Absolute(_) => {}
                }
            }
            Token::Byte(_) | Token::Rex { .. } | Token::ShortRex | Token::Immediate { .. } | Token::Vex { .. } => {}
        }
    }
    if parts.is_empty() { "0".into() } else { parts.join(" | ") }
}

/// The list of emitters, as a Rust module of the tests.
pub(crate) fn list(machine: &Machine) -> String {
    let mut out = format!(
        "//! Generated by `cargo xtask codegen` from machines/system/{}.spec; do not edit. Every emitter, callable by number.\n\n\
         use crate::{{Emitter, Parameter}};\n\n/// Every emitter of the system layer.\n#[rustfmt::skip]\npub const EMITTERS: &[Emitter] = &[\n",
        machine.name
    );
    for emitter in emitters_of(machine) {
        let parameters = emitter.parameters();
        let arguments: Vec<String> = parameters.iter().map(|parameter| parameter.of_test()).collect();
        let kinds: Vec<&str> = parameters
            .iter()
            .map(|parameter| match parameter {
                EmitterParameter::AnyRegister('d') => "Parameter::Destination",
                EmitterParameter::AnyRegister(_) => "Parameter::Base",
                EmitterParameter::Index(_) => "Parameter::Index",
                EmitterParameter::Displacement => "Parameter::Displacement",
                EmitterParameter::Value { .. } => "Parameter::Value",
                EmitterParameter::Label => "Parameter::Label",
            })
            .collect();
        let o = if arguments.is_empty() { "_" } else { "o" };
        let _ = writeln!(
            out,
            "    Emitter {{ name: {:?}, parameters: &[{}], emit: |asm, {o}| asm.{}({}) }},",
            emitter.name,
            kinds.join(", "),
            emitter.name,
            arguments.join(", ")
        );
    }
    out.push_str("];\n");
    out
}

/// The page, in Markdown.
pub(crate) fn page(machine: &Machine) -> String {
    let name = &machine.name;
    let mut out = format!(
        "# The system layer of {name}\n\nGenerated by `cargo xtask codegen` from `machines/system/{name}.spec`; do not edit.\n\n\
         | emitter | instruction |\n|---|---|\n"
    );
    for emitter in emitters_of(machine) {
        let names: Vec<&str> = emitter
            .parameters()
            .iter()
            .map(|parameter| match parameter {
                EmitterParameter::AnyRegister('d') => "d",
                EmitterParameter::AnyRegister(_) => "s",
                EmitterParameter::Index(_) => "t",
                EmitterParameter::Displacement => "i",
                EmitterParameter::Value { .. } => "value",
                EmitterParameter::Label => "b",
            })
            .collect();
        let _ = writeln!(out, "| `{}({})` | `{}` |", emitter.name, names.join(", "), text(emitter.widest()));
    }
    out
}
