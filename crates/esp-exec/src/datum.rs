//! Values of any type outside a running program: messages at external channels, arguments of extern functions.
//! They are printed and parsed in ESP's own literal syntax, the values of one message separated by blanks:
//!
//! ```text
//!   3 -7        "GET\r\n"        true        {1, 2}        send |> {7, 4096}        [1, 2]        @P[1]        eos
//! ```
//!
//! A boxed value is written as its content. Knows nothing of how programs run.

use quaject_esp_ir::ir::{IntType, Program, Type, TypeId};
use quaject_esp_ir::text::print_bytes;
use std::fmt;
use std::fmt::Write as _;
use std::num::IntErrorKind;

/// A value of any type.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Datum {
    /// Of any integer type.
    Int(i128),
    /// A truth value.
    Bool(bool),
    /// An instance, by its number.
    Pid(u32),
    /// Bytes with their length.
    Bytes(Vec<u8>),
    /// The fields, in order of declaration.
    Record(Vec<Datum>),
    /// Tag number and payload, absent for a tag without payload.
    Union(u32, Option<Box<Datum>>),
    /// All elements.
    Array(Vec<Datum>),
}

/// Why a text is not a value of the expected type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParseError {
    /// Where, in characters from 1.
    pub column: u32,
    /// What the type requires there.
    pub expected: String,
    /// What was found.
    pub found: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "column {}: expected {}, found {}", self.column, self.expected, self.found)
    }
}

impl std::error::Error for ParseError {}

/// Whether the datum is a value of the type: integers in range, lengths within bounds, tags and instances that exist.
pub fn conforms(program: &Program, ty: TypeId, datum: &Datum) -> bool {
    match (program.types.get(ty), datum) {
        (Type::Boxed(pool), datum) => conforms(program, program.types.pool(*pool).content, datum),
        (Type::Int(int), Datum::Int(value)) => is_in_range(*int, *value),
        (Type::Bool, Datum::Bool(_)) => true,
        (Type::Pid(processes), Datum::Pid(instance)) => {
            program.process_of(*instance).is_some_and(|(process, _)| processes.contains(&process))
        }
        (Type::Bytes { bound }, Datum::Bytes(bytes)) => bytes.len() <= *bound as usize,
        (Type::Array { length, element }, Datum::Array(items)) => {
            items.len() == *length as usize && items.iter().all(|item| conforms(program, *element, item))
        }
        (Type::Record(id), Datum::Record(fields)) => {
            let parts = &program.types.aggregate(*id).parts;
            parts.len() == fields.len()
                && parts.iter().zip(fields).all(|((_, ty), field)| ty.is_some_and(|ty| conforms(program, ty, field)))
        }
        (Type::Union(id), Datum::Union(tag, payload)) => {
            match (program.types.aggregate(*id).parts.get(*tag as usize), payload) {
                (Some((_, Some(ty))), Some(payload)) => conforms(program, *ty, payload),
                (Some((_, None)), None) => true,
                (Some((_, Some(_))), None) | (Some((_, None)), Some(_)) | (None, _) => false,
            }
        }
        (
            Type::Int(_)
            | Type::Bool
            | Type::Pid(_)
            | Type::Bytes { .. }
            | Type::Array { .. }
            | Type::Record(_)
            | Type::Union(_)
            | Type::Error,
            _,
        ) => false,
    }
}

fn is_in_range(int: IntType, value: i128) -> bool {
    IntType::min(int) <= value && value <= IntType::max(int)
}

/// The values of one message as text, without a line end.
pub fn print_message(program: &Program, types: &[TypeId], message: &[Datum]) -> String {
    let mut text = String::new();
    for (index, (ty, datum)) in types.iter().zip(message).enumerate() {
        if index > 0 {
            text.push(' ');
        }
        print(program, *ty, datum, &mut text);
    }
    text
}

/// Appends one value as text. A datum of another type is printed too; parts without a name of the type get a number.
pub fn print(program: &Program, ty: TypeId, datum: &Datum, text: &mut String) {
    let ty = match program.types.get(ty) {
        Type::Boxed(pool) => program.types.get(program.types.pool(*pool).content),
        flat => flat,
    };
    let part = |number: usize| match ty {
        Type::Record(id) | Type::Union(id) => program.types.aggregate(*id).parts.get(number),
        Type::Error
        | Type::Int(_)
        | Type::Bool
        | Type::Bytes { .. }
        | Type::Pid(_)
        | Type::Array { .. }
        | Type::Boxed(_) => None,
    };
    match datum {
        Datum::Int(value) => write!(text, "{value}").expect("writing to a string does not fail"),
        Datum::Bool(value) => text.push_str(if *value { "true" } else { "false" }),
        Datum::Pid(instance) => {
            text.push('@');
            text.push_str(&program.instance_name(*instance));
        }
        Datum::Bytes(bytes) => print_bytes(bytes, text),
        Datum::Record(fields) => {
            text.push('{');
            for (index, field) in fields.iter().enumerate() {
                text.push_str(if index > 0 { ", " } else { "" });
                let ty = part(index).and_then(|(_, ty)| *ty);
                print(program, ty.unwrap_or(quaject_esp_ir::ir::TypeTable::ERROR), field, text);
            }
            text.push('}');
        }
        Datum::Union(tag, payload) => {
            match part(*tag as usize) {
                Some((name, _)) => text.push_str(name),
                None => write!(text, "tag{tag}").expect("writing to a string does not fail"),
            }
            if let Some(payload) = payload {
                text.push_str(" |> ");
                let ty = part(*tag as usize).and_then(|(_, ty)| *ty);
                print(program, ty.unwrap_or(quaject_esp_ir::ir::TypeTable::ERROR), payload, text);
            }
        }
        Datum::Array(items) => {
            let element = match ty {
                Type::Array { element, .. } => *element,
                Type::Error
                | Type::Int(_)
                | Type::Bool
                | Type::Bytes { .. }
                | Type::Pid(_)
                | Type::Record(_)
                | Type::Union(_)
                | Type::Boxed(_) => quaject_esp_ir::ir::TypeTable::ERROR,
            };
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                text.push_str(if index > 0 { ", " } else { "" });
                print(program, element, item, text);
            }
            text.push(']');
        }
    }
}

/// The text of a byte string literal at the beginning of a line, if it is UTF-8, and the rest of the line.
pub fn parse_string(text: &str) -> Option<(String, &str)> {
    let body = text.strip_prefix('"')?;
    let mut bytes = Vec::new();
    let mut characters = body.char_indices();
    while let Some((at, c)) = characters.next() {
        match c {
            '"' => return Some((String::from_utf8(bytes).ok()?, &body[at + 1..])),
            '\\' => match characters.next()?.1 {
                'n' => bytes.push(b'\n'),
                'r' => bytes.push(b'\r'),
                't' => bytes.push(b'\t'),
                '0' => bytes.push(0),
                'x' => {
                    let high = characters.next()?.1.to_digit(16)?;
                    let low = characters.next()?.1.to_digit(16)?;
                    bytes.push((high * 16 + low) as u8);
                }
                other => bytes.extend_from_slice(other.encode_utf8(&mut [0; 4]).as_bytes()),
            },
            c => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    None
}

/// The values of one message: one per type, separated by blanks, and nothing else.
pub fn parse_message(program: &Program, types: &[TypeId], text: &str) -> Result<Vec<Datum>, ParseError> {
    let mut parser = Parser { program, text, at: 0 };
    let mut message = Vec::with_capacity(types.len());
    for (index, ty) in types.iter().enumerate() {
        let before = parser.at;
        parser.skip_blanks();
        if index > 0 && parser.at == before && parser.at < text.len() {
            return Err(parser.expected("a blank between values"));
        }
        message.push(parser.value(*ty)?);
    }
    parser.skip_blanks();
    if parser.at < text.len() { Err(parser.expected("the end of the line")) } else { Ok(message) }
}

struct Parser<'a> {
    program: &'a Program,
    text: &'a str,
    at: usize,
}

impl Parser<'_> {
    /// The text that is not yet parsed.
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn skip_blanks(&mut self) {
        self.at = self.text.len() - self.rest().trim_start_matches([' ', '\t', '\r', '\n']).len();
    }

    /// The length of the word, number or single character at the current position.
    fn token_len(&self) -> usize {
        let rest = self.rest();
        let signed = rest.strip_prefix('-').unwrap_or(rest);
        let sign = rest.len() - signed.len();
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || !c.is_ascii();
        let word = signed.find(|c| !is_word(c)).unwrap_or(signed.len());
        match (word, rest.chars().next()) {
            (0, Some(c)) => c.len_utf8(),
            (0, None) => 0,
            (word, _) => sign + word,
        }
    }

    fn error_at(&self, at: usize, expected: &str, found: String) -> ParseError {
        let column = self.text[..at].chars().count() as u32 + 1;
        ParseError { column, expected: expected.to_string(), found }
    }

    fn expected(&self, expected: &str) -> ParseError {
        let token = &self.rest()[..self.token_len()];
        let found = match token.chars().count() {
            0 => "the end of the line".to_string(),
            1..=24 => format!("`{token}`"),
            _ => format!("`{}...`", token.chars().take(20).collect::<String>()),
        };
        self.error_at(self.at, expected, found)
    }

    /// Skips blanks, then takes the sign if it is next.
    fn eat(&mut self, sign: &str) -> bool {
        let before = self.at;
        self.skip_blanks();
        if self.rest().starts_with(sign) {
            self.at += sign.len();
            return true;
        }
        self.at = before;
        false
    }

    fn expect(&mut self, sign: &str) -> Result<(), ParseError> {
        if self.eat(sign) {
            return Ok(());
        }
        self.skip_blanks();
        Err(self.expected(&format!("`{sign}`")))
    }

    fn word(&self) -> &str {
        let rest = self.rest();
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
        if rest.starts_with(|c: char| c.is_ascii_digit()) { "" } else { &rest[..end] }
    }

    fn value(&mut self, ty: TypeId) -> Result<Datum, ParseError> {
        self.skip_blanks();
        let program = self.program;
        match program.types.get(ty) {
            Type::Error => Err(self.expected("nothing: the type is unknown")),
            Type::Int(int) => {
                let name = int.name();
                let value = self.integer(name)?;
                if !is_in_range(*int, value.1) {
                    self.at = value.0;
                    let (min, max) = (IntType::min(*int), IntType::max(*int));
                    return Err(self.expected(&format!("`{name}`, {min} to {max}")));
                }
                Ok(Datum::Int(value.1))
            }
            Type::Bool => {
                let (value, length) = match self.word() {
                    "true" => (true, 4),
                    "false" => (false, 5),
                    _ => return Err(self.expected("`true` or `false`")),
                };
                self.at += length;
                Ok(Datum::Bool(value))
            }
            Type::Pid(processes) => self.pid(processes),
            Type::Bytes { bound } => {
                let start = self.at;
                let bytes = self.bytes()?;
                if bytes.len() > *bound as usize {
                    let found = format!("{} bytes", bytes.len());
                    return Err(self.error_at(start, &format!("at most {bound} bytes"), found));
                }
                Ok(Datum::Bytes(bytes))
            }
            Type::Array { length, element } => self.array(*length, *element),
            Type::Record(id) => self.record(&program.types.aggregate(*id).parts),
            Type::Union(id) => self.union(&program.types.aggregate(*id).parts),
            Type::Boxed(pool) => self.value(program.types.pool(*pool).content),
        }
    }

    /// Where an integer starts, and the integer: ESP's literals with a sign, and characters.
    fn integer(&mut self, type_name: &str) -> Result<(usize, i128), ParseError> {
        let start = self.at;
        let wanted = format!("`{type_name}`");
        if self.rest().starts_with('\'') {
            self.at += 1;
            let byte = self.character('\'')?.filter(|bytes| bytes.len() == 1);
            let Some(byte) = byte else {
                self.at = start;
                return Err(self.expected("one byte between `'`"));
            };
            self.expect("'")?;
            return Ok((start, i128::from(byte[0])));
        }
        let token = &self.rest()[..self.token_len()];
        let digits = token.strip_prefix('-').unwrap_or(token);
        let (radix, body) = match digits.get(..2) {
            Some("0x" | "0X") => (16, &digits[2..]),
            Some("0b" | "0B") => (2, &digits[2..]),
            Some("0o" | "0O") => (8, &digits[2..]),
            Some(_) | None => (10, digits),
        };
        if radix == 10 && body.len() > 1 && body.starts_with('0') && body.bytes().all(|b| b.is_ascii_digit()) {
            return Err(self.expected(&format!("{wanted} (a decimal number does not start with 0)")));
        }
        let plain: String = body.chars().filter(|c| *c != '_').collect();
        if body.starts_with('_') || !plain.bytes().all(|b| b.is_ascii_alphanumeric()) || plain.is_empty() {
            return Err(self.expected(&wanted));
        }
        let magnitude = match i128::from_str_radix(&plain, radix) {
            Ok(magnitude) => magnitude,
            Err(error) if *error.kind() == IntErrorKind::PosOverflow => i128::MAX,
            Err(_) => return Err(self.expected(&wanted)),
        };
        let value = if token.starts_with('-') { -magnitude } else { magnitude };
        self.at += token.len();
        Ok((start, value))
    }

    /// The bytes of one character or escape; none at the closing quote.
    fn character(&mut self, quote: char) -> Result<Option<Vec<u8>>, ParseError> {
        let rest = self.rest();
        let Some(c) = rest.chars().next() else {
            return Err(self.expected(&format!("`{quote}`")));
        };
        if c == quote {
            return Ok(None);
        }
        if c != '\\' {
            let mut buffer = [0; 4];
            let bytes = c.encode_utf8(&mut buffer).as_bytes().to_vec();
            self.at += bytes.len();
            return Ok(Some(bytes));
        }
        let (byte, length) = match rest[1..].chars().next() {
            Some('n') => (b'\n', 2),
            Some('r') => (b'\r', 2),
            Some('t') => (b'\t', 2),
            Some('0') => (0, 2),
            Some('\\') => (b'\\', 2),
            Some('\'') => (b'\'', 2),
            Some('"') => (b'"', 2),
            Some('x') => {
                let digits = rest.get(2..4).filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
                match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
                    Some(byte) => (byte, 4),
                    None => return Err(self.expected("two hexadecimal digits after `\\x`")),
                }
            }
            Some(_) | None => return Err(self.expected("an escape: one of `\\n \\r \\t \\0 \\\\ \\' \\\" \\xHH`")),
        };
        self.at += length;
        Ok(Some(vec![byte]))
    }

    fn bytes(&mut self) -> Result<Vec<u8>, ParseError> {
        if !self.rest().starts_with('"') {
            return Err(self.expected("`bytes` in double quotes"));
        }
        self.at += 1;
        let mut bytes = Vec::new();
        while let Some(next) = self.character('"')? {
            bytes.extend_from_slice(&next);
        }
        self.at += 1;
        Ok(bytes)
    }

    fn pid(&mut self, processes: &[quaject_esp_ir::ir::ProcessId]) -> Result<Datum, ParseError> {
        let start = self.at;
        let names: Vec<_> =
            processes.iter().map(|id| format!("`@{}`", self.program.processes[id.0 as usize].name)).collect();
        let wanted = names.join(" or ");
        if !self.rest().starts_with('@') {
            return Err(self.expected(&wanted));
        }
        self.at += 1;
        let word = self.word();
        let found = processes.iter().find(|id| self.program.processes[id.0 as usize].name == word);
        let Some(process) = found else {
            return Err(self.expected(&wanted.replace('@', "")));
        };
        self.at += word.len();
        let mut replica = 0;
        if self.rest().starts_with('[') {
            self.at += 1;
            replica = self.integer("int")?.1;
            self.expect("]")?;
        }
        match self.program.instance(*process, replica) {
            Some(instance) => Ok(Datum::Pid(instance)),
            None => {
                let replicas = self.program.processes[process.0 as usize].replicas;
                let found = format!("number {replica}");
                Err(self.error_at(start, &format!("a replica number below {replicas}"), found))
            }
        }
    }

    fn array(&mut self, length: u32, element: TypeId) -> Result<Datum, ParseError> {
        let start = self.at;
        self.expect("[")?;
        let mut items = Vec::new();
        while !self.eat("]") {
            if items.len() == length as usize {
                self.skip_blanks();
                return Err(self.expected(&format!("`]` after {length} elements")));
            }
            items.push(self.value(element)?);
            if items.len() == 1 && self.eat(";") {
                self.skip_blanks();
                let (at, count) = self.integer("int")?;
                if count != i128::from(length) {
                    self.at = at;
                    return Err(self.expected(&format!("`{length}` elements")));
                }
                let item = items[0].clone();
                items.resize(length as usize, item);
                self.expect("]")?;
                break;
            }
            if !self.eat(",") {
                self.expect("]")?;
                break;
            }
        }
        if items.len() < length as usize {
            return Err(self.error_at(start, &format!("{length} elements"), items.len().to_string()));
        }
        Ok(Datum::Array(items))
    }

    fn record(&mut self, parts: &[(smol_str::SmolStr, Option<TypeId>)]) -> Result<Datum, ParseError> {
        let start = self.at;
        self.expect("{")?;
        let mut fields: Vec<Option<Datum>> = vec![None; parts.len()];
        let mut count = 0;
        while !self.eat("}") {
            self.skip_blanks();
            if count == parts.len() {
                return Err(self.expected(&format!("`}}` after {count} fields")));
            }
            let mut index = count;
            let word = self.word().to_string();
            if self.rest()[word.len()..].trim_start().starts_with(':') && !word.is_empty() {
                let named = parts.iter().position(|(name, _)| *name == word);
                let Some(named) = named.filter(|index| fields[*index].is_none()) else {
                    let missing: Vec<_> = parts.iter().zip(&fields).filter(|(_, field)| field.is_none()).collect();
                    let names: Vec<_> = missing.iter().map(|((name, _), _)| format!("`{name}:`")).collect();
                    return Err(self.expected(&names.join(" or ")));
                };
                index = named;
                self.at += word.len();
                self.expect(":")?;
            } else if fields[index].is_some() {
                return Err(self.expected("a field name, as before"));
            }
            let ty = parts[index].1.expect("every field of a record has a type");
            fields[index] = Some(self.value(ty)?);
            count += 1;
            if !self.eat(",") {
                self.expect("}")?;
                break;
            }
        }
        let wanted = parts.len();
        match fields.into_iter().collect::<Option<Vec<_>>>() {
            Some(fields) => Ok(Datum::Record(fields)),
            None => Err(self.error_at(start, &format!("{wanted} fields"), count.to_string())),
        }
    }

    fn union(&mut self, parts: &[(smol_str::SmolStr, Option<TypeId>)]) -> Result<Datum, ParseError> {
        let word = self.word();
        let Some(tag) = parts.iter().position(|(name, _)| name == word) else {
            let names: Vec<_> = parts.iter().map(|(name, _)| format!("`{name}`")).collect();
            return Err(self.expected(&names.join(" or ")));
        };
        self.at += word.len();
        let payload = match parts[tag].1 {
            Some(ty) => {
                self.expect("|>")?;
                Some(Box::new(self.value(ty)?))
            }
            None => {
                if self.eat("|>") {
                    self.expect("{")?;
                    self.expect("}")?;
                }
                None
            }
        };
        Ok(Datum::Union(tag as u32, payload))
    }
}
