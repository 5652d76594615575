//! Reads functions from text. Reports all errors of a text, and never panics.

use std::borrow::ToOwned;
use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

use super::{Bank, Function, Mistake, Operand, StackVariable, Statement, Variable};
use crate::frame::Kind;
use crate::instruction::{self, Instruction};
use crate::signature::{Signature, Type};

/// Reads every function of a text. What cannot be read is left out and reported.
pub fn read(text: &str) -> (Vec<Function>, Vec<Mistake>) {
    let mut reader = Reader { functions: Vec::new(), mistakes: Vec::new(), open: None };
    for (index, line) in text.lines().enumerate() {
        reader.line(Words::of(line, index + 1));
    }
    reader.close();
    reader.mistakes.sort_by_key(|mistake| (mistake.line, mistake.column));
    (reader.functions, reader.mistakes)
}

/// The rest of a line, and where it is.
#[derive(Debug, Clone, Copy)]
struct Words<'t> {
    line: usize,
    whole: &'t str,
    rest: &'t str,
}

impl<'t> Words<'t> {
    fn of(text: &'t str, line: usize) -> Words<'t> {
        let code = text.split('#').next().unwrap_or_default().trim_end();
        Words { line, whole: text, rest: code.trim_start() }
    }

    fn column_of(&self, part: &str) -> usize {
        // `part` is a piece of the line, so the difference is its place in it.
        let bytes = (part.as_ptr() as usize).saturating_sub(self.whole.as_ptr() as usize);
        self.whole.get(..bytes).map_or(1, |before| before.chars().count() + 1)
    }

    /// The next word, up to a blank.
    fn word(&mut self) -> &'t str {
        let end = self.rest.find(char::is_whitespace).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest.trim_start();
        word
    }

    /// What commas separate.
    fn list(&self) -> Vec<&'t str> {
        if self.rest.is_empty() { Vec::new() } else { self.rest.split(',').map(str::trim).collect() }
    }
}

/// An operand, or the name of a label that may be defined later.
enum Pending {
    Done(Operand),
    Label { name: String, column: usize },
}

struct Unlinked {
    instruction: &'static Instruction,
    operands: Vec<Pending>,
    line: usize,
    text: String,
}

/// A function that is being read.
struct Open {
    function: Function,
    labels: Vec<(String, usize)>,
    statements: Vec<Unlinked>,
}

struct Reader {
    functions: Vec<Function>,
    mistakes: Vec<Mistake>,
    open: Option<Open>,
}

impl Reader {
    fn mistake(&mut self, line: usize, column: usize, message: String, help: Option<String>) {
        self.mistakes.push(Mistake { line, column, message, help });
    }

    fn line(&mut self, mut words: Words<'_>) {
        let start = words.rest;
        if start.is_empty() {
            return;
        }
        if let Some(name) = start.strip_suffix(':').map(str::trim) {
            return self.label(words, name);
        }
        let first = words.word();
        let column = words.column_of(first);
        if first == "function" {
            self.close();
            return self.function(words, column);
        }
        let Some(open) = &mut self.open else {
            let help = Some("begin with `function NAME %i leaf`".to_owned());
            return self.mistake(words.line, column, format!("`{first}` stands before the first function"), help);
        };
        match first {
            "reg" | "float" => {
                let bank = if first == "reg" { Bank::Int } else { Bank::Float };
                for name in words.list() {
                    let taken = open.is_taken(name);
                    if let Some(problem) = name_problem(name, taken) {
                        let column = words.column_of(name);
                        self.mistakes.push(Mistake { line: words.line, column, message: problem, help: None });
                    } else {
                        open.function.variables.push(Variable { name: name.to_owned(), bank });
                    }
                }
            }
            "local" => {
                let name = words.word();
                let ty = type_of(words.rest);
                let taken = open.is_taken(name);
                match (name_problem(name, taken), ty) {
                    (Some(problem), _) => self.mistake(words.line, words.column_of(name), problem, None),
                    (None, None) => {
                        let help = Some("the types are c uc s us i u l ul p f d".to_owned());
                        let message = format!("`{}` is no type", words.rest);
                        self.mistake(words.line, words.column_of(words.rest), message, help);
                    }
                    (None, Some(ty)) => open.function.locals.push(StackVariable { name: name.to_owned(), ty }),
                }
            }
            _ => self.statement(words, first, start),
        }
    }

    fn function(&mut self, mut words: Words<'_>, column: usize) {
        let line = words.line;
        let name = words.word();
        if name.is_empty() || name.starts_with('%') {
            let help = Some("for example `function plus1 %i leaf`".to_owned());
            self.mistake(line, column, "the function has no name".to_owned(), help);
        }
        let mut parameters = Vec::new();
        let mut kind = Kind::Leaf;
        while !words.rest.is_empty() {
            let word = words.word();
            let column = words.column_of(word);
            match word {
                "leaf" => kind = Kind::Leaf,
                "calls" => kind = Kind::Calls,
                _ if word.starts_with('%') => {
                    for ty in Signature::from(word).types() {
                        match ty {
                            Ok(ty) => parameters.push(ty),
                            Err(error) => self.mistake(line, column, format!("{error}: `{word}`"), None),
                        }
                    }
                }
                _ => {
                    let help = Some("a function has a signature such as `%i%p`, and is `leaf` or `calls`".to_owned());
                    self.mistake(line, column, format!("`{word}` says nothing of a function"), help);
                }
            }
        }
        let variables = parameters
            .iter()
            .enumerate()
            .map(|(index, ty)| Variable {
                name: format!("a{index}"),
                bank: if ty.is_float() { Bank::Float } else { Bank::Int },
            })
            .collect();
        self.open = Some(Open {
            function: Function {
                name: name.to_owned(),
                parameters,
                kind,
                variables,
                locals: Vec::new(),
                labels: Vec::new(),
                statements: Vec::new(),
                line,
            },
            labels: Vec::new(),
            statements: Vec::new(),
        });
    }

    fn label(&mut self, words: Words<'_>, name: &str) {
        let column = words.column_of(name);
        let Some(open) = &mut self.open else {
            return self.mistake(words.line, column, "a label stands before the first function".to_owned(), None);
        };
        let taken = open.labels.iter().any(|(own, _)| own == name);
        match name_problem(name, taken) {
            Some(problem) => self.mistake(words.line, column, problem, None),
            None => open.labels.push((name.to_owned(), open.statements.len())),
        }
    }

    fn statement(&mut self, words: Words<'_>, name: &str, text: &str) {
        let (line, column) = (words.line, words.column_of(name));
        let Some(instruction) = Instruction::named(name) else {
            let help = nearest(name).map(|near| format!("did you mean `{near}`?"));
            return self.mistake(line, column, format!("no instruction named `{name}`"), help);
        };
        let list = words.list();
        if list.len() != instruction.operands.len() {
            let wanted: Vec<&str> = instruction.operands.iter().map(|operand| describe(*operand)).collect();
            let help =
                if wanted.is_empty() { "it takes none".to_owned() } else { format!("it takes {}", wanted.join(", ")) };
            let message = format!("`{name}` has {} operands", list.len());
            return self.mistake(line, column, message, Some(help));
        }
        let Some(open) = &mut self.open else { return };
        let mut operands = Vec::new();
        for (text, operand) in list.iter().zip(instruction.operands) {
            let column = words.column_of(text);
            match open.operand(*operand, text, column) {
                Ok(pending) => operands.push(pending),
                Err((message, help)) => self.mistakes.push(Mistake { line, column, message, help }),
            }
        }
        if operands.len() == list.len() {
            open.statements.push(Unlinked { instruction, operands, line, text: text.to_owned() });
        }
    }

    /// Finishes the function that is open: labels may be used before they are bound.
    fn close(&mut self) {
        let Some(Open { mut function, labels, statements }) = self.open.take() else { return };
        for Unlinked { instruction, operands, line, text } in statements {
            let mut linked = Vec::new();
            for pending in operands {
                match pending {
                    Pending::Done(operand) => linked.push(operand),
                    Pending::Label { name, column } => match labels.iter().position(|(own, _)| *own == name) {
                        Some(index) => linked.push(Operand::Label(index)),
                        None => {
                            let help = Some(format!("bind it with a line `{name}:`"));
                            self.mistake(line, column, format!("no label named `{name}`"), help);
                        }
                    },
                }
            }
            if linked.len() == instruction.operands.len() {
                function.statements.push(Statement { instruction, operands: linked, line, text });
            }
        }
        function.labels = labels.into_iter().map(|(_, statement)| statement).collect();
        self.functions.push(function);
    }
}

impl Open {
    fn is_taken(&self, name: &str) -> bool {
        self.function.variables.iter().any(|variable| variable.name == name)
            || self.function.locals.iter().any(|local| local.name == name)
    }

    fn operand(
        &self,
        wanted: instruction::OperandKind,
        text: &str,
        column: usize,
    ) -> Result<Pending, (String, Option<String>)> {
        let variable = |bank: Bank| {
            let known = self.function.variables.iter().position(|variable| variable.name == text);
            match known.map(|index| (index, self.function.variables[index].bank)) {
                Some((index, own)) if own == bank => Ok(Pending::Done(Operand::Variable(index))),
                Some(_) => Err((format!("`{text}` is not {}", describe(wanted)), None)),
                None => {
                    let word = if bank == Bank::Int { "reg" } else { "float" };
                    Err((format!("no variable named `{text}`"), Some(format!("declare it with `{word} {text}`"))))
                }
            }
        };
        match wanted {
            instruction::OperandKind::Reg(_) => variable(Bank::Int),
            instruction::OperandKind::Float(_) => variable(Bank::Float),
            instruction::OperandKind::Immediate(ty) => match immediate(ty, text) {
                Some(value) => Ok(Pending::Done(Operand::Immediate(value))),
                None => Err((format!("`{text}` is no constant of the type {}", letters(ty)), None)),
            },
            instruction::OperandKind::Offset => match integer(text).and_then(|value| i32::try_from(value).ok()) {
                Some(value) => Ok(Pending::Done(Operand::Immediate(i64::from(value)))),
                None => Err((format!("`{text}` is no offset of 32 bits"), None)),
            },
            instruction::OperandKind::Local => match self.function.locals.iter().position(|local| local.name == text) {
                Some(index) => Ok(Pending::Done(Operand::Local(index))),
                None => Err((format!("no local named `{text}`"), Some(format!("declare it with `local {text} l`")))),
            },
            instruction::OperandKind::Label => Ok(Pending::Label { name: text.to_owned(), column }),
        }
    }
}

fn name_problem(name: &str, taken: bool) -> Option<String> {
    let mut letters = name.chars();
    let starts = letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_');
    if !starts || !letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_') {
        return Some(format!("`{name}` is no name"));
    }
    taken.then(|| format!("`{name}` is declared twice"))
}

fn describe(operand: instruction::OperandKind) -> &'static str {
    match operand {
        instruction::OperandKind::Reg(_) => "a variable for integers",
        instruction::OperandKind::Float(_) => "a variable for floats",
        instruction::OperandKind::Immediate(_) => "a constant",
        instruction::OperandKind::Offset => "an offset",
        instruction::OperandKind::Local => "a local",
        instruction::OperandKind::Label => "a label",
    }
}

const TYPES: [(&str, Type); 11] = [
    ("c", Type::C),
    ("uc", Type::Uc),
    ("s", Type::S),
    ("us", Type::Us),
    ("i", Type::I),
    ("u", Type::U),
    ("l", Type::L),
    ("ul", Type::Ul),
    ("p", Type::P),
    ("f", Type::F),
    ("d", Type::D),
];

fn type_of(text: &str) -> Option<Type> {
    TYPES.iter().find(|(letters, _)| *letters == text).map(|(_, ty)| *ty)
}

fn letters(ty: Type) -> &'static str {
    TYPES.iter().find(|(_, own)| *own == ty).map_or("?", |(letters, _)| letters)
}

fn integer(text: &str) -> Option<i128> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    if digits.starts_with(['+', '-']) {
        return None;
    }
    let value = match digits.strip_prefix("0x") {
        Some(digits) if !digits.starts_with(['+', '-']) => i128::from_str_radix(digits, 16).ok()?,
        Some(_) => return None,
        None => digits.parse::<i128>().ok()?,
    };
    Some(if negative { -value } else { value })
}

/// A constant of a type, as instructions want it: the bits of floats, unsigned longs as signed ones.
fn immediate(ty: Type, text: &str) -> Option<i64> {
    match ty {
        Type::F => text.parse::<f32>().ok().map(|value| i64::from(value.to_bits())),
        Type::D => text.parse::<f64>().ok().map(|value| value.to_bits() as i64),
        Type::Ul | Type::P => integer(text).and_then(|value| u64::try_from(value).ok()).map(|value| value as i64),
        Type::C | Type::Uc | Type::S | Type::Us | Type::I | Type::U | Type::L => {
            let value = i64::try_from(integer(text)?).ok()?;
            instruction::fits(ty, value).then_some(value)
        }
    }
}

/// The instruction whose name is most like this one, if one is.
fn nearest(name: &str) -> Option<&'static str> {
    let name: String = name.chars().take(16).collect();
    Instruction::all()
        .iter()
        .map(|instruction| (distance(&name, instruction.name), instruction.name))
        .min()
        .filter(|(distance, _)| *distance <= 2)
        .map(|(_, near)| near)
}

fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (index, own) in left.to_string().chars().enumerate() {
        let mut before = row[0];
        row[0] = index + 1;
        for (column, other) in right.iter().enumerate() {
            let change = before + usize::from(own != *other);
            before = row[column + 1];
            row[column + 1] = change.min(row[column] + 1).min(before + 1);
        }
    }
    row[right.len()]
}
