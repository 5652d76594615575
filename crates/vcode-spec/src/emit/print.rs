//! Prints the decision tree of an emitter, in Rust or in C.

mod bytes;

use std::fmt::Write as _;

use super::{Body, Cond, Language, Node};
use crate::expr::{BinaryOp, Expr};
use crate::model::*;

/// Prints `body` as statements; `cursor` is the expression of the write cursor, `asm` that of the assembler around it.
pub struct Print<'a> {
    /// The machine.
    pub machine: &'a Machine,
    /// The operation, to know the files of its operands.
    pub op: &'a PortableOp,
    /// Its type.
    pub ty: Type,
    /// The language.
    pub language: Language,
    /// The expression of the cursor.
    pub cursor: &'a str,
    /// The expression of the assembler.
    pub asm: &'a str,
    /// The call of the portable row of this instruction, without a prefix.
    pub arguments: String,
}

impl Print<'_> {
    /// The statements of an emitter.
    pub fn body(&self, body: &Body, indent: usize) -> String {
        let mut out = String::new();
        self.nodes(&body.nodes, indent, &mut out);
        out
    }

    fn rust(&self) -> bool {
        self.language == Language::Rust
    }

    fn nodes(&self, nodes: &[Node], indent: usize, out: &mut String) {
        let pad = "    ".repeat(indent);
        for node in nodes {
            match node {
                Node::Choice { cases, otherwise } => {
                    for (index, (conds, nodes)) in cases.iter().enumerate() {
                        let conds: Vec<String> = conds.iter().map(|cond| self.cond(cond)).collect();
                        let cond = conds.join(" && ");
                        let cond = if self.rust() { cond } else { format!("({cond})") };
                        let lead = if index == 0 { pad.clone() } else { " else ".to_string() };
                        let _ = writeln!(out, "{lead}if {cond} {{");
                        self.nodes(nodes, indent + 1, out);
                        let _ = write!(out, "{pad}}}");
                    }
                    if !otherwise.is_empty() {
                        let _ = writeln!(out, " else {{");
                        self.nodes(otherwise, indent + 1, out);
                        let _ = write!(out, "{pad}}}");
                    }
                    out.push('\n');
                }
                Node::Emit { insn, args } => self.emit(&self.machine.insns[*insn], args, &pad, out),
                Node::SetLong { register, value } => {
                    let value = self.expr(value);
                    let cursor = self.cursor;
                    let _ = if self.rust() {
                        writeln!(out, "{pad}{cursor} = set_long({cursor}, Reg::new({register}), {value});")
                    } else {
                        writeln!(out, "{pad}{cursor} = qjv_set_long({cursor}, qjv_reg({register}), {value});")
                    };
                }
                Node::Portable => {
                    let asm = self.asm;
                    let arguments = &self.arguments;
                    let _ = if self.rust() {
                        writeln!(out, "{pad}{asm}.portable_{arguments};")
                    } else {
                        writeln!(out, "{pad}qjv_portable_{arguments};")
                    };
                }
                Node::Lacks => {
                    let asm = self.asm;
                    let _ = if self.rust() {
                        writeln!(out, "{pad}{asm}.fail(Error::Feature);")
                    } else {
                        writeln!(out, "{pad}qjv_fail({asm}, QJV_ERROR_FEATURE);")
                    };
                }
                Node::Fail => {
                    let asm = self.asm;
                    let _ = if self.rust() {
                        writeln!(out, "{pad}{asm}.fail(Error::Immediate);")
                    } else {
                        writeln!(out, "{pad}qjv_fail({asm}, QJV_ERROR_IMMEDIATE);")
                    };
                }
            }
        }
    }

    fn cond(&self, cond: &Cond) -> String {
        match cond {
            Cond::Test(expr) => self.test(expr),
            Cond::Fits { value, signed, bits, scale } => {
                let name = if *signed { "fits_signed" } else { "fits_unsigned" };
                let value = self.expr(value);
                if self.rust() {
                    format!("{name}({value}, {bits}, {scale})")
                } else {
                    format!("qjv_{name}({value}, {bits}, {scale})")
                }
            }
        }
    }

    pub(crate) fn test(&self, expr: &Expr) -> String {
        match expr {
            Expr::Near => {
                let asm = self.asm;
                if self.rust() { format!("{asm}.near(at)") } else { format!("qjv_near({asm}, at)") }
            }
            Expr::Has(name) => {
                let bit = self.machine.feature(name).expect("the reader checked the names of features");
                let asm = self.asm;
                if self.rust() { format!("{asm}.has({bit})") } else { format!("qjv_has({asm}, {bit})") }
            }
            Expr::Binary(BinaryOp::And, left, right) => format!("{} && {}", self.test(left), self.test(right)),
            Expr::Binary(op @ (BinaryOp::Equal | BinaryOp::NotEqual), left, right) => {
                let sign = if *op == BinaryOp::Equal { "==" } else { "!=" };
                match (self.register_name(left), self.register_name(right)) {
                    (Some(left), Some(right)) => {
                        let part = if self.machine.code == Code::Bytes { "b" } else { "n" };
                        format!("{left}.{part} {sign} {right}.{part}")
                    }
                    _ => format!("{} {sign} {}", self.operand(left), self.operand(right)),
                }
            }
            Expr::Binary(BinaryOp::GreaterOrEqual, left, right) => {
                format!("{} >= {}", self.operand(left), self.operand(right))
            }
            Expr::Binary(
                BinaryOp::Add | BinaryOp::Subtract | BinaryOp::Xor | BinaryOp::ShiftRight | BinaryOp::ShiftLeft,
                _,
                _,
            )
            | Expr::Number(_)
            | Expr::Name(_)
            | Expr::Negate(_)
            | Expr::Complement(_) => format!("{} != 0", self.expr(expr)),
        }
    }

    /// The spelling of a register in a comparison; `None` if the expression is a number.
    fn register_name(&self, expr: &Expr) -> Option<String> {
        let Expr::Name(name) = expr else { return None };
        if matches!(name.as_str(), "d" | "s" | "t") {
            return Some(name.clone());
        }
        let (number, class) = self.machine.register(name)?;
        Some(self.fixed(number, class))
    }

    pub(crate) fn fixed(&self, number: u32, class: Class) -> String {
        match (self.language, class) {
            (Language::Rust, Class::Int) => format!("Reg::new({number})"),
            (Language::Rust, Class::Float) => format!("Float::new({number})"),
            (Language::Rust, Class::Vector) => format!("Vector::new({number})"),
            (Language::C, Class::Int | Class::Float | Class::Vector) => format!("qjv_reg({number})"),
        }
    }

    /// A 64-bit number.
    pub(crate) fn expr(&self, expr: &Expr) -> String {
        if let Some(number) = expr.constant() {
            return if number == i64::MIN {
                if self.rust() { "i64::MIN".into() } else { "INT64_MIN".into() }
            } else if self.rust() || (-0x7fff_ffff..=0x7fff_ffff).contains(&number) {
                number.to_string()
            } else {
                format!("INT64_C({number})")
            };
        }
        match expr {
            Expr::Number(_) => unreachable!("numbers are constant"),
            Expr::Name(name) => name.clone(),
            Expr::Near | Expr::Has(_) => unreachable!("`near` and `has` are only used as tests"),
            Expr::Negate(inner) => match self.language {
                Language::Rust => format!("{}.wrapping_neg()", self.operand(inner)),
                Language::C => format!("(int64_t)(0 - (uint64_t){})", self.operand(inner)),
            },
            Expr::Complement(inner) => match self.language {
                Language::Rust => format!("!{}", self.operand(inner)),
                Language::C => format!("~{}", self.operand(inner)),
            },
            Expr::Binary(op, left, right) => {
                let (left, right) = (self.operand(left), self.operand(right));
                match (op, self.language) {
                    (BinaryOp::Add, Language::Rust) => format!("{left}.wrapping_add({right})"),
                    (BinaryOp::Subtract, Language::Rust) => format!("{left}.wrapping_sub({right})"),
                    (BinaryOp::Add, Language::C) => format!("(int64_t)((uint64_t){left} + (uint64_t){right})"),
                    (BinaryOp::Subtract, Language::C) => format!("(int64_t)((uint64_t){left} - (uint64_t){right})"),
                    (BinaryOp::ShiftLeft, Language::C) => format!("(int64_t)((uint64_t){left} << {right})"),
                    (BinaryOp::ShiftLeft, Language::Rust) => format!("{left} << {right}"),
                    (BinaryOp::And, _) => format!("{left} & {right}"),
                    (BinaryOp::Xor, _) => format!("{left} ^ {right}"),
                    (BinaryOp::ShiftRight, _) => format!("{left} >> {right}"),
                    (BinaryOp::Equal | BinaryOp::NotEqual | BinaryOp::GreaterOrEqual, _) => {
                        unreachable!("comparisons are only used as tests")
                    }
                }
            }
        }
    }

    fn operand(&self, expr: &Expr) -> String {
        let text = self.expr(expr);
        if self.rust() && expr.constant().is_some_and(|number| number != i64::MIN) {
            return format!("{text}_i64");
        }
        let plain = text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if plain { text } else { format!("({text})") }
    }

    fn emit(&self, insn: &Insn, args: &[Arg], pad: &str, out: &mut String) {
        match &insn.encoding {
            Encoding::Word(bits) => self.emit_word(*bits, insn, args, pad, out),
            Encoding::Bytes(tokens) => self.emit_bytes(tokens, insn, args, pad, out),
        }
        for (operand, arg) in insn.operands.iter().zip(args) {
            match (arg, operand.kind) {
                (Arg::Label, Kind::Relative { .. }) => self.refer(operand, pad, ("b", "at"), out),
                (Arg::Data(high, low), Kind::Relative { .. }) => {
                    let asm = self.asm;
                    let _ = if self.rust() {
                        writeln!(out, "{pad}let data = {asm}.vector_constant(0x{high:x}, 0x{low:x});")
                    } else {
                        writeln!(
                            out,
                            "{pad}v_label data = qjv_vector_constant({asm}, UINT64_C(0x{high:x}), UINT64_C(0x{low:x}));"
                        )
                    };
                    let target = if self.rust() { "c.target(data)" } else { "qjv_label_at(c, data)" };
                    self.refer(operand, pad, ("data", target), out);
                }
                _ => {}
            }
        }
    }

    /// Prints the recording of a reference to a label; `label` and `target` are expressions.
    fn refer(&self, operand: &Operand, pad: &str, (label, target): (&str, &str), out: &mut String) {
        let kinds = self.machine.relative_kinds();
        let kind = kinds
            .iter()
            .position(|(kind, pieces)| *kind == operand.kind && *pieces == operand.pieces)
            .expect("relative_kinds lists every label field");
        // The site is the word, or the four-byte distance itself, which is always last.
        let back = 4;
        let (cursor, asm) = (self.cursor, self.asm);
        let _ = if self.rust() {
            writeln!(out, "{pad}{asm}.refer({cursor}.back({back}), {kind}, {label}, {target});")
        } else {
            writeln!(out, "{pad}qjv_refer({asm}, {cursor} - {back}, {kind}, {label}, {target});")
        };
    }

    fn emit_word(&self, bits: u32, insn: &Insn, args: &[Arg], pad: &str, out: &mut String) {
        let mut word = bits;
        let mut registers = Vec::new();
        let mut terms = Vec::new();
        for (operand, arg) in insn.operands.iter().zip(args) {
            match arg {
                Arg::Register(RegArg::Fixed(number)) => {
                    word |= operand.pieces.iter().fold(0, |word, (_, low)| word | number << low);
                }
                Arg::Register(RegArg::Operand(letter)) => {
                    let mask = mask_of(&operand.pieces);
                    registers.push((*letter, format!("({letter}.n & 0x{mask:x})")));
                }
                Arg::Value(value) => {
                    let value = match operand.kind {
                        Kind::Relative { origin, .. } => {
                            Expr::Number(value.constant().expect("literal distances are numbers") - i64::from(origin))
                        }
                        Kind::Down { .. } => Expr::Negate(Box::new(value.clone())),
                        Kind::Register(_) | Kind::Signed { .. } | Kind::Unsigned { .. } => value.clone(),
                    };
                    self.immediate(&value, operand, &mut word, &mut terms);
                }
                Arg::Label | Arg::Data(..) => {}
            }
        }
        // Destination and first operand are often the same register: side by side, their masks become one.
        registers.sort();
        terms.splice(0..0, registers.into_iter().map(|(_, text)| text));
        terms.push(if self.rust() { format!("0x{word:08x}") } else { format!("0x{word:08x}u") });
        let cursor = self.cursor;
        let terms = terms.join(" | ");
        let little = matches!(self.machine.code, Code::Word { little: true });
        let _ = match (self.language, little) {
            (Language::Rust, true) => writeln!(out, "{pad}{cursor}.word({terms});"),
            (Language::Rust, false) => writeln!(out, "{pad}{cursor}.word_big({terms});"),
            (Language::C, true) => writeln!(out, "{pad}{cursor} = qjv_word({cursor}, {terms});"),
            (Language::C, false) => writeln!(out, "{pad}{cursor} = qjv_word_big({cursor}, {terms});"),
        };
    }

    fn immediate(&self, value: &Expr, operand: &Operand, word: &mut u32, terms: &mut Vec<String>) {
        let scale = match operand.kind {
            Kind::Signed { scale, .. } | Kind::Unsigned { scale, .. } | Kind::Relative { scale, .. } => scale,
            Kind::Register(_) | Kind::Down { .. } => 0,
        };
        let mut remaining: u32 = operand.pieces.iter().map(|(high, low)| high - low + 1).sum();
        for (high, low) in &operand.pieces {
            let width = high - low + 1;
            remaining -= width;
            let mask = ((1_u64 << width) - 1) as u32;
            let shift = scale + remaining;
            if let Some(number) = value.constant() {
                *word |= (((number >> shift) as u32) & mask) << low;
                continue;
            }
            let text = self.operand(value);
            let shifted = if shift == 0 { text } else { format!("({text} >> {shift})") };
            let cast = match self.language {
                Language::Rust => format!("({shifted} as u32 & 0x{mask:x})"),
                Language::C => format!("((uint32_t){shifted} & 0x{mask:x}u)"),
            };
            terms.push(if *low == 0 { cast } else { format!("({cast} << {low})") });
        }
    }
}
