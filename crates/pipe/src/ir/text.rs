//! The text form of steps and handlers. The parser continues after an error, so that all are reported at once.
//!
//! ```text
//! step bump u32be              # adds 1 to every word, and keeps the largest
//!   add r0, r0, 1
//!   total max r0
//! end
//!
//! handler echo                 # r0 is the length of the message
//!   if lt r0, 8, short
//!   reply 0, r0
//!   accept
//! short:
//!   drop
//! end
//!
//! step gain u16le              # signed samples: times 1.25, at most 1000
//!   cvt.f32.i16 r0, r0
//!   mul.f32 r0, r0, 1.25
//!   min.f32 r0, r0, 1000
//!   cvt.i16.f32 r0, r0
//! end
//! ```

use super::{
    Condition, Conversion, Element, FloatFormat, FloatFunction, FloatOperation, Instruction, IntegerFormat, Operand,
    Operation, Order, Program, Register, Sign, Total, UserStep,
};
use crate::error::{TextCode, TextDiagnostic};
use crate::text::is_built_in;
use quaject_diagnostic::Diagnostic;
use quaject_diagnostic::span::Span;

/// What a text holds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Definitions {
    /// Steps, checked.
    pub steps: Vec<UserStep>,
    /// Handlers, to be checked together with what they are given.
    pub handlers: Vec<Program>,
}

impl Definitions {
    /// Reads definitions. Malformed ones are omitted and reported.
    pub fn read(text: &str) -> (Definitions, Vec<TextDiagnostic>) {
        let mut reader = Parser { text, found: Definitions::default(), diagnostics: Vec::new(), open: None };
        for line in text.lines() {
            let code = line.split('#').next().unwrap_or_default();
            if !code.trim().is_empty()
                && let Err(diagnostic) = reader.read_line(code)
            {
                reader.diagnostics.push(diagnostic);
            }
        }
        if let Some(open) = reader.open.take() {
            let diagnostic = reader.at(open.header, "this definition has no `end`", "write `end` below its last line");
            reader.diagnostics.push(diagnostic);
        }
        reader.diagnostics.sort_by_key(|diagnostic| diagnostic.span.start);
        (reader.found, reader.diagnostics)
    }
}

/// A definition that is being read.
struct OpenDefinition<'t> {
    header: &'t str,
    name: String,
    /// `None` for a handler.
    element: Option<Element>,
    instructions: Vec<Instruction>,
    /// The text of each instruction.
    places: Vec<&'t str>,
    labels: Vec<(&'t str, usize)>,
    /// Jumps to labels that may be defined later: the instruction, the label.
    jumps: Vec<(usize, &'t str)>,
    is_malformed: bool,
}

struct Parser<'t> {
    text: &'t str,
    found: Definitions,
    diagnostics: Vec<TextDiagnostic>,
    open: Option<OpenDefinition<'t>>,
}

const OPERATIONS: [(&str, Operation); 10] = [
    ("add", Operation::Add),
    ("sub", Operation::Sub),
    ("mul", Operation::Mul),
    ("and", Operation::And),
    ("or", Operation::Or),
    ("xor", Operation::Xor),
    ("min", Operation::Min),
    ("max", Operation::Max),
    ("shl", Operation::Shl),
    ("shr", Operation::Shr),
];

const FLOAT_OPERATIONS: [(&str, FloatOperation); 12] = [
    ("add", FloatOperation::Add),
    ("sub", FloatOperation::Sub),
    ("mul", FloatOperation::Mul),
    ("div", FloatOperation::Div),
    ("min", FloatOperation::Min),
    ("max", FloatOperation::Max),
    ("eq", FloatOperation::Compare(Condition::Eq)),
    ("ne", FloatOperation::Compare(Condition::Ne)),
    ("lt", FloatOperation::Compare(Condition::Lt)),
    ("le", FloatOperation::Compare(Condition::Le)),
    ("gt", FloatOperation::Compare(Condition::Gt)),
    ("ge", FloatOperation::Compare(Condition::Ge)),
];

const FLOAT_FUNCTIONS: [(&str, FloatFunction); 3] =
    [("neg", FloatFunction::Neg), ("abs", FloatFunction::Abs), ("sqrt", FloatFunction::Sqrt)];

const FLOAT_FORMATS: [(&str, FloatFormat); 2] = [("f32", FloatFormat::F32), ("f64", FloatFormat::F64)];

const INTEGER_FORMATS: [(&str, IntegerFormat); 8] = [
    ("i8", IntegerFormat { bytes: 1, sign: Sign::Signed }),
    ("u8", IntegerFormat { bytes: 1, sign: Sign::Unsigned }),
    ("i16", IntegerFormat { bytes: 2, sign: Sign::Signed }),
    ("u16", IntegerFormat { bytes: 2, sign: Sign::Unsigned }),
    ("i32", IntegerFormat { bytes: 4, sign: Sign::Signed }),
    ("u32", IntegerFormat { bytes: 4, sign: Sign::Unsigned }),
    ("i64", IntegerFormat { bytes: 8, sign: Sign::Signed }),
    ("u64", IntegerFormat { bytes: 8, sign: Sign::Unsigned }),
];

const TOTALS: [(&str, Total); 8] = [
    ("add", Total::Add),
    ("xor", Total::Xor),
    ("and", Total::And),
    ("or", Total::Or),
    ("min", Total::Min),
    ("max", Total::Max),
    ("add.f32", Total::AddFloat(FloatFormat::F32)),
    ("add.f64", Total::AddFloat(FloatFormat::F64)),
];

const CONDITIONS: [(&str, Condition); 6] = [
    ("eq", Condition::Eq),
    ("ne", Condition::Ne),
    ("lt", Condition::Lt),
    ("le", Condition::Le),
    ("gt", Condition::Gt),
    ("ge", Condition::Ge),
];

const ELEMENTS: &str = "u8, u16le, u16be, u32le, u32be, u64le or u64be";

fn of_table<T: Copy>(table: &[(&str, T)], word: &str) -> Option<T> {
    table.iter().find(|(name, _)| *name == word).map(|(_, value)| *value)
}

impl<'t> Parser<'t> {
    /// A diagnostic about a part of the text.
    fn at(&self, part: &str, message: impl Into<String>, help: impl Into<String>) -> TextDiagnostic {
        Diagnostic::new(TextCode::Definition, Span::of_slice(self.text, part), message).help(help)
    }

    fn read_line(&mut self, code: &'t str) -> Result<(), TextDiagnostic> {
        let code = code.trim();
        let (word, rest) = code.split_once(char::is_whitespace).unwrap_or((code, &code[code.len()..]));
        match (word, &self.open) {
            ("step" | "handler", Some(open)) => {
                let message = format!("`{}` has no `end`", open.name);
                let diagnostic = self.at(word, message, "definitions do not nest");
                self.open = None;
                self.diagnostics.push(diagnostic);
                self.begin(word, rest)
            }
            ("step" | "handler", None) => self.begin(word, rest),
            ("end", Some(_)) => self.end(),
            (_, None) => {
                Err(self.at(word, "this is outside of a definition", "begin one: `step NAME u32be` or `handler NAME`"))
            }
            (_, Some(_)) => {
                let outcome = self.instruction(code, word, rest);
                if let (Err(_), Some(open)) = (&outcome, &mut self.open) {
                    open.is_malformed = true;
                }
                outcome
            }
        }
    }

    fn begin(&mut self, word: &'t str, rest: &'t str) -> Result<(), TextDiagnostic> {
        let mut words = rest.split_whitespace();
        let Some(name) = words.next() else {
            return Err(self.at(word, format!("a {word} without a name"), format!("write `{word} NAME`")));
        };
        // A definition with a malformed header is read, so that its lines are not reported too.
        let mut open = OpenDefinition {
            header: word,
            name: name.into(),
            element: None,
            instructions: Vec::new(),
            places: Vec::new(),
            labels: Vec::new(),
            jumps: Vec::new(),
            is_malformed: false,
        };
        let mut outcome = Ok(());
        let is_taken = match word {
            "step" => self.found.steps.iter().any(|own| own.name() == name),
            _ => self.found.handlers.iter().any(|own| own.name == name),
        };
        if is_taken {
            outcome = Err(self.at(name, format!("a second {word} `{name}`"), "give it another name"));
        } else if word == "step" && is_built_in(name) {
            outcome = Err(self.at(name, format!("`{name}` is a built-in step"), "give it another name"));
        } else if !is_name(name) {
            outcome =
                Err(self.at(name, format!("`{name}` is not a name"), "a name is a letter, then letters, digits and _"));
        } else if word == "step" {
            let element = words.next();
            open.element = element.and_then(read_element);
            if open.element.is_none() {
                let message =
                    element.map_or("a step without an element".into(), |element| format!("no element `{element}`"));
                outcome = Err(self.at(element.unwrap_or(name), message, format!("an element is {ELEMENTS}")));
                open.element = Some(Element { bytes: 8, order: Order::Big });
            }
        }
        if let (Ok(()), Some(more)) = (&outcome, words.next()) {
            outcome = Err(self.at(more, format!("unexpected `{more}`"), "write each instruction on a line of its own"));
        }
        open.is_malformed = outcome.is_err();
        self.open = Some(open);
        outcome
    }

    fn end(&mut self) -> Result<(), TextDiagnostic> {
        let Some(mut open) = self.open.take() else { return Ok(()) };
        for (instruction, label) in std::mem::take(&mut open.jumps) {
            match open.labels.iter().find(|(name, _)| *name == label) {
                Some((_, to)) => match &mut open.instructions[instruction] {
                    Instruction::If { to: place, .. } | Instruction::Goto { to: place } => *place = *to,
                    _ => {}
                },
                None => {
                    let help = format!("write `{label}:` before the target of the jump");
                    self.diagnostics.push(self.at(label, format!("no label `{label}`"), help));
                    open.is_malformed = true;
                }
            }
        }
        if open.is_malformed {
            return Ok(());
        }
        let program = Program { name: open.name, instructions: open.instructions };
        match open.element {
            None => self.found.handlers.push(program),
            Some(element) => match UserStep::new(program, element) {
                Ok(step) => self.found.steps.push(step),
                Err(flaw) => {
                    let part = flaw.instruction.map_or(open.header, |number| open.places[number]);
                    let span = Span::of_slice(self.text, part);
                    return Err(Diagnostic::new(TextCode::Verification, span, flaw.message).help(flaw.help));
                }
            },
        }
        Ok(())
    }

    fn instruction(&mut self, code: &'t str, word: &'t str, rest: &'t str) -> Result<(), TextDiagnostic> {
        if let Some(label) = code.strip_suffix(':') {
            if !is_name(label) {
                return Err(self.at(
                    label,
                    format!("`{label}` is not a label"),
                    "a label is a letter, then letters, digits and _",
                ));
            }
            let Some(open) = &mut self.open else { return Ok(()) };
            if open.labels.iter().any(|(name, _)| *name == label) {
                return Err(self.at(label, format!("a second label `{label}`"), "give it another name"));
            }
            let to = open.instructions.len();
            open.labels.push((label, to));
            return Ok(());
        }
        let operands = Operands { reader: self, word, rest, list: split(rest) };
        let (instruction, jump) = operands.read()?;
        if let Some(open) = &mut self.open {
            if let Some(label) = jump {
                open.jumps.push((open.instructions.len(), label));
            }
            open.places.push(code);
            open.instructions.push(instruction);
        }
        Ok(())
    }
}

fn is_name(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_alphabetic())
        && word.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

fn read_element(word: &str) -> Option<Element> {
    let element = |bytes, order| Some(Element { bytes, order });
    match word {
        "u8" => element(1, Order::Little),
        "u16le" => element(2, Order::Little),
        "u16be" => element(2, Order::Big),
        "u32le" => element(4, Order::Little),
        "u32be" => element(4, Order::Big),
        "u64le" => element(8, Order::Little),
        "u64be" => element(8, Order::Big),
        _ => None,
    }
}

/// Words between commas and blanks: `lt r0, 8, short`.
fn split(rest: &str) -> Vec<&str> {
    rest.split([',', ' ', '\t']).filter(|word| !word.is_empty()).collect()
}

/// A number: decimal, or hexadecimal after `0x`.
pub(crate) fn read_number(word: &str) -> Option<u64> {
    match word.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+')),
        None => word.parse().ok().filter(|_| !word.starts_with('+')),
    }
}

/// The bits of a floating-point number: decimal as `-2.5e-3`, `inf`, or the bits themselves after `0x`. `None` for what
/// is too large.
fn read_float(word: &str, format: FloatFormat) -> Option<u64> {
    if word.starts_with("0x") {
        return read_number(word);
    }
    let magnitude = word.strip_prefix('-').unwrap_or(word);
    let is_infinite = magnitude == "inf";
    if !is_infinite && !magnitude.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    match format {
        FloatFormat::F32 => {
            let number: f32 = word.parse().ok()?;
            (number.is_infinite() == is_infinite).then_some(number.to_bits().into())
        }
        FloatFormat::F64 => {
            let number: f64 = word.parse().ok()?;
            (number.is_infinite() == is_infinite).then_some(number.to_bits())
        }
    }
}

/// What follows the name of an instruction.
struct Operands<'r, 't> {
    reader: &'r Parser<'t>,
    word: &'t str,
    rest: &'t str,
    list: Vec<&'t str>,
}

impl<'t> Operands<'_, 't> {
    fn read(self) -> Result<(Instruction, Option<&'t str>), TextDiagnostic> {
        let plain = |instruction| Ok((instruction, None));
        if let Some(operation) = of_table(&OPERATIONS, self.word) {
            self.count(3, "add r0, r1, 7")?;
            return plain(Instruction::Compute {
                operation,
                d: self.register(0)?,
                s: self.register(1)?,
                t: self.operand(2)?,
            });
        }
        if let Some((operation, formats)) = self.word.split_once('.') {
            return plain(self.read_typed(operation, formats)?);
        }
        match self.word {
            "set" => {
                self.count(2, "set r1, 7")?;
                plain(Instruction::Set { d: self.register(0)?, value: self.operand(1)? })
            }
            "total" => {
                self.count(2, "total add r0")?;
                let Some(total) = of_table(&TOTALS, self.list[0]) else {
                    return Err(self.wrong(0, "total", "add, xor, and, or, min, max, add.f32 or add.f64"));
                };
                plain(Instruction::Total { total, s: self.register(1)? })
            }
            "load" => {
                self.count(3, "load u16be r1, 12")?;
                plain(Instruction::Load { element: self.element(0)?, d: self.register(1)?, at: self.operand(2)? })
            }
            "if" => {
                self.count(4, "if lt r0, 8, label")?;
                let Some(condition) = of_table(&CONDITIONS, self.list[0]) else {
                    return Err(self.wrong(0, "comparison", "eq, ne, lt, le, gt or ge"));
                };
                let instruction = Instruction::If { condition, s: self.register(1)?, t: self.operand(2)?, to: 0 };
                Ok((instruction, Some(self.list[3])))
            }
            "goto" => {
                self.count(1, "goto label")?;
                Ok((Instruction::Goto { to: 0 }, Some(self.list[0])))
            }
            "deliver" => {
                self.count(5, "deliver 0, r1, r2, 0, 0")?;
                plain(Instruction::Deliver {
                    pipe: self.index(0)?,
                    at: self.operand(1)?,
                    length: self.operand(2)?,
                    buffer: self.index(3)?,
                    offset: self.operand(4)?,
                })
            }
            // `found` is the former name.
            "result" | "found" => {
                self.count(2, "result r1, 0")?;
                plain(Instruction::StepResult { d: self.register(0)?, step: self.index(1)? })
            }
            "reply" => {
                self.count(2, "reply 0, r0")?;
                plain(Instruction::Reply { at: self.operand(0)?, length: self.operand(1)? })
            }
            "send" => {
                self.count(2, "send u16be r1")?;
                plain(Instruction::Send { element: self.element(0)?, value: self.operand(1)? })
            }
            "accept" => {
                self.count(0, "accept")?;
                plain(Instruction::Accept)
            }
            "drop" => {
                self.count(0, "drop")?;
                plain(Instruction::Drop)
            }
            other => Err(self.reader.at(
                other,
                format!("no instruction `{other}`"),
                "set add sub mul and or xor min max shl shr, total in steps; load if goto deliver result reply send accept \
                 drop in handlers; on floating-point numbers add.f32 and others",
            )),
        }
    }

    /// An instruction on floating-point numbers, whose name has their formats as suffixes.
    fn read_typed(&self, operation: &str, formats: &str) -> Result<Instruction, TextDiagnostic> {
        if operation == "cvt" {
            let Some(conversion) = read_conversion(formats) else {
                return Err(self.reader.at(
                    self.word,
                    format!("no conversion `{}`", self.word),
                    "write the new format first: cvt.f32.i16; formats are f32, f64, i8 to i64 and u8 to u64, and one is f32 or f64",
                ));
            };
            self.count(2, "cvt.f32.i16 r0, r0")?;
            return Ok(Instruction::Convert { conversion, d: self.register(0)?, s: self.register(1)? });
        }
        let format = of_table(&FLOAT_FORMATS, formats);
        if let (Some(format), Some(operation)) = (format, of_table(&FLOAT_OPERATIONS, operation)) {
            self.count(3, "add.f32 r0, r1, 0.5")?;
            let (d, s, t) = (self.register(0)?, self.register(1)?, self.float_operand(2, format)?);
            return Ok(Instruction::FloatBinary { operation, format, d, s, t });
        }
        if let (Some(format), Some(function)) = (format, of_table(&FLOAT_FUNCTIONS, operation)) {
            self.count(2, "sqrt.f32 r0, r0")?;
            return Ok(Instruction::FloatUnary { function, format, d: self.register(0)?, s: self.register(1)? });
        }
        if let (Some(format), "set") = (format, operation) {
            self.count(2, "set.f32 r1, 0.5")?;
            return Ok(Instruction::Set { d: self.register(0)?, value: self.float_operand(1, format)? });
        }
        Err(self.reader.at(
            self.word,
            format!("no instruction `{}`", self.word),
            "set add sub mul div min max eq ne lt le gt ge neg abs sqrt with .f32 or .f64; cvt.f32.i16 and other conversions",
        ))
    }

    fn count(&self, wanted: usize, example: &str) -> Result<(), TextDiagnostic> {
        if self.list.len() == wanted {
            return Ok(());
        }
        let part = if self.list.is_empty() { self.word } else { self.rest.trim() };
        let message = format!("{} operands; `{}` has {wanted}", self.list.len(), self.word);
        Err(self.reader.at(part, message, format!("for example `{example}`")))
    }

    fn wrong(&self, index: usize, what: &str, help: &str) -> TextDiagnostic {
        let part = self.list[index];
        self.reader.at(part, format!("`{part}` is not a {what}"), format!("a {what} is {help}"))
    }

    fn register(&self, index: usize) -> Result<Register, TextDiagnostic> {
        register(self.list[index]).ok_or_else(|| self.wrong(index, "register", "r0 to r7"))
    }

    fn operand(&self, index: usize) -> Result<Operand, TextDiagnostic> {
        let word = self.list[index];
        let constant = || read_number(word).map(Operand::Constant);
        register(word).map(Operand::Register).or_else(constant).ok_or_else(|| {
            self.wrong(index, "register or number", "r0 to r7, decimal, or hexadecimal after 0x, below 2 to the 64")
        })
    }

    fn float_operand(&self, index: usize, format: FloatFormat) -> Result<Operand, TextDiagnostic> {
        let word = self.list[index];
        let constant = || read_float(word, format).map(Operand::Constant);
        register(word).map(Operand::Register).or_else(constant).ok_or_else(|| {
            self.wrong(
                index,
                "register or number",
                "r0 to r7, decimal as 2.5e-3, inf, or the bits in hexadecimal after 0x",
            )
        })
    }

    fn index(&self, index: usize) -> Result<usize, TextDiagnostic> {
        let number = read_number(self.list[index]).and_then(|number| usize::try_from(number).ok());
        number.ok_or_else(|| self.wrong(index, "number", "counted from 0"))
    }

    fn element(&self, index: usize) -> Result<Element, TextDiagnostic> {
        read_element(self.list[index]).ok_or_else(|| self.wrong(index, "element", ELEMENTS))
    }
}

/// A conversion: the new format, a point, the old one.
fn read_conversion(formats: &str) -> Option<Conversion> {
    let (to, from) = formats.split_once('.')?;
    let (to_float, from_float) = (of_table(&FLOAT_FORMATS, to), of_table(&FLOAT_FORMATS, from));
    match (to_float, from_float) {
        (Some(to), None) => Some(Conversion::FromInteger(of_table(&INTEGER_FORMATS, from)?, to)),
        (None, Some(from)) => Some(Conversion::ToInteger(from, of_table(&INTEGER_FORMATS, to)?)),
        (Some(FloatFormat::F64), Some(FloatFormat::F32)) => Some(Conversion::Widen),
        (Some(FloatFormat::F32), Some(FloatFormat::F64)) => Some(Conversion::Narrow),
        (None, None)
        | (Some(FloatFormat::F32), Some(FloatFormat::F32))
        | (Some(FloatFormat::F64), Some(FloatFormat::F64)) => None,
    }
}

fn register(word: &str) -> Option<Register> {
    let digits = word.strip_prefix('r').filter(|digits| digits.len() == 1)?;
    digits.parse().ok().filter(|number| usize::from(*number) < super::REGISTERS).map(Register)
}
