//! Reads functions from text. Reports all errors of a text, and accepts any text without panicking.

use std::borrow::ToOwned;
use std::format;
use std::string::String;
use std::vec::Vec;

use quaject_diagnostic::span::Span;
use quaject_diagnostic::{Diagnostic, nearest};

use super::{Bank, Function, Operand, StackVariable, Statement, TextCode, TextDiagnostic, Variable};
use crate::instruction::{self, Instruction};
use crate::kind::Kind;
use crate::signature::{Signature, Type};

/// Reads every function of a text. Malformed parts are omitted and reported.
pub fn read(text: &str) -> (Vec<Function>, Vec<TextDiagnostic>) {
    let mut reader = Reader { text, functions: Vec::new(), diagnostics: Vec::new(), open: None };
    for (index, line) in text.lines().enumerate() {
        reader.line(Words::of(line, index + 1));
    }
    reader.close();
    reader.diagnostics.sort_by_key(|diagnostic| diagnostic.span.start);
    (reader.functions, reader.diagnostics)
}

/// The unread rest of a line.
#[derive(Debug, Clone, Copy)]
struct Words<'t> {
    line: usize,
    rest: &'t str,
}

impl<'t> Words<'t> {
    fn of(text: &'t str, line: usize) -> Words<'t> {
        let code = text.split('#').next().unwrap_or_default().trim_end();
        Words { line, rest: code.trim_start() }
    }

    /// The next word, up to a blank.
    fn word(&mut self) -> &'t str {
        let end = self.rest.find(char::is_whitespace).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest.trim_start();
        word
    }

    /// The operands, which commas separate.
    fn list(&self) -> Vec<&'t str> {
        if self.rest.is_empty() { Vec::new() } else { self.rest.split(',').map(str::trim).collect() }
    }
}

/// An operand; a label by its name until all labels of the function are known.
enum Pending<'t> {
    Resolved(Operand),
    Label(&'t str),
}

struct Unlinked<'t> {
    instruction: &'static Instruction,
    operands: Vec<Pending<'t>>,
    line: usize,
    text: &'t str,
}

/// A function that is being read.
struct Open<'t> {
    function: Function,
    labels: Vec<(&'t str, usize)>,
    statements: Vec<Unlinked<'t>>,
}

/// Why a name or an operand is rejected.
struct Problem {
    code: TextCode,
    message: String,
    help: Option<String>,
}

impl Problem {
    fn new(code: TextCode, message: String) -> Problem {
        Problem { code, message, help: None }
    }

    fn help(self, help: impl Into<String>) -> Problem {
        Problem { help: Some(help.into()), ..self }
    }
}

struct Reader<'t> {
    text: &'t str,
    functions: Vec<Function>,
    diagnostics: Vec<TextDiagnostic>,
    open: Option<Open<'t>>,
}

impl<'t> Reader<'t> {
    fn report(&mut self, part: &str, problem: Problem) {
        let diagnostic = Diagnostic::new(problem.code, Span::of_slice(self.text, part), problem.message);
        self.diagnostics.push(Diagnostic { help: problem.help, ..diagnostic });
    }

    fn line(&mut self, mut words: Words<'t>) {
        let start = words.rest;
        if start.is_empty() {
            return;
        }
        if let Some(name) = start.strip_suffix(':').map(str::trim) {
            return self.label(name);
        }
        let first = words.word();
        if first == "function" {
            self.close();
            return self.function(words, first);
        }
        let Some(open) = &mut self.open else {
            let problem = Problem::new(TextCode::Syntax, format!("`{first}` is outside of a function"));
            return self.report(first, problem.help("begin with `function NAME %i leaf`"));
        };
        match first {
            "reg" | "float" => {
                let bank = if first == "reg" { Bank::Int } else { Bank::Float };
                let mut problems = Vec::new();
                for name in words.list() {
                    match name_problem(name, open.is_declared(name)) {
                        Some(problem) => problems.push((name, problem)),
                        None => open.function.variables.push(Variable { name: name.to_owned(), bank }),
                    }
                }
                problems.into_iter().for_each(|(name, problem)| self.report(name, problem));
            }
            "local" => {
                let name = words.word();
                let ty = type_of(words.rest);
                match (name_problem(name, open.is_declared(name)), ty) {
                    (Some(problem), _) => self.report(name, problem),
                    (None, None) => {
                        let problem = Problem::new(TextCode::Unknown, format!("`{}` is not a type", words.rest));
                        self.report(words.rest, problem.help("the types are c uc s us i u l ul p f d"));
                    }
                    (None, Some(ty)) => open.function.locals.push(StackVariable { name: name.to_owned(), ty }),
                }
            }
            "procedure" => self.procedure(words, first),
            _ => self.statement(words, first, start),
        }
    }

    /// A label that begins a local procedure, and the variable for its return address.
    fn procedure(&mut self, mut words: Words<'t>, keyword: &'t str) {
        let name = words.word();
        let link = words.rest;
        if link.is_empty() {
            let problem =
                Problem::new(TextCode::Syntax, "the procedure has no variable for its return address".to_owned());
            return self.report(
                if name.is_empty() { keyword } else { name },
                problem.help("for example `procedure ten_more link`"),
            );
        }
        self.label(name);
        let Some(open) = &mut self.open else { return };
        match open.operand(instruction::OperandKind::Reg(instruction::Access::Written), link) {
            Ok(Pending::Resolved(Operand::Variable(variable))) => {
                if let Some(label) = open.labels.iter().position(|(own, _)| *own == name) {
                    open.function.procedures.push((label, variable));
                }
            }
            Ok(_) => {}
            Err(problem) => self.report(link, problem),
        }
    }

    fn function(&mut self, mut words: Words<'t>, keyword: &str) {
        let line = words.line;
        let name = words.word();
        if name.is_empty() || name.starts_with('%') {
            let problem = Problem::new(TextCode::Syntax, "the function has no name".to_owned());
            self.report(keyword, problem.help("for example `function plus1 %i leaf`"));
        }
        let mut parameters = Vec::new();
        let mut kind = Kind::Leaf;
        while !words.rest.is_empty() {
            let word = words.word();
            match word {
                "leaf" => kind = Kind::Leaf,
                "calls" => kind = Kind::Calls,
                "naked" => kind = Kind::Naked,
                _ if word.contains("...") => {
                    let message = format!("a variadic function cannot be written: `{word}`");
                    self.report(word, Problem::new(TextCode::Syntax, message));
                }
                _ if word.starts_with('%') => {
                    for ty in Signature::from(word).types() {
                        match ty {
                            Ok(ty) => parameters.push(ty),
                            Err(error) => {
                                self.report(word, Problem::new(TextCode::Syntax, format!("{error}: `{word}`")));
                            }
                        }
                    }
                }
                _ => {
                    let problem = Problem::new(TextCode::Syntax, format!("unexpected `{word}`"));
                    self.report(
                        word,
                        problem.help("a function has a signature such as `%i%p`, and is `leaf`, `calls` or `naked`"),
                    );
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
                procedures: Vec::new(),
                statements: Vec::new(),
                line,
            },
            labels: Vec::new(),
            statements: Vec::new(),
        });
    }

    fn label(&mut self, name: &'t str) {
        let Some(open) = &mut self.open else {
            let message = "a label is outside of a function".to_owned();
            return self.report(name, Problem::new(TextCode::Syntax, message));
        };
        match name_problem(name, open.labels.iter().any(|(own, _)| *own == name)) {
            Some(problem) => self.report(name, problem),
            None => open.labels.push((name, open.statements.len())),
        }
    }

    fn statement(&mut self, words: Words<'t>, name: &'t str, text: &'t str) {
        let Some(instruction) = Instruction::named(name) else {
            let problem = Problem::new(TextCode::Unknown, format!("no instruction named `{name}`"));
            let names = Instruction::all().iter().map(|instruction| instruction.name);
            let help = nearest(name, names).map(|near| format!("did you mean `{near}`?"));
            return self.report(name, Problem { help, ..problem });
        };
        let list = words.list();
        if list.len() != instruction.operands.len() {
            let wanted: Vec<&str> = instruction.operands.iter().map(|operand| describe(*operand)).collect();
            let help =
                if wanted.is_empty() { "it takes none".to_owned() } else { format!("it takes {}", wanted.join(", ")) };
            let problem = Problem::new(TextCode::Operands, format!("`{name}` has {} operands", list.len()));
            return self.report(name, problem.help(help));
        }
        let Some(open) = &mut self.open else { return };
        let (mut operands, mut problems) = (Vec::new(), Vec::new());
        for (text, operand) in list.iter().zip(instruction.operands) {
            match open.operand(*operand, text) {
                Ok(pending) => operands.push(pending),
                Err(problem) => problems.push((*text, problem)),
            }
        }
        if problems.is_empty() {
            open.statements.push(Unlinked { instruction, operands, line: words.line, text });
        }
        problems.into_iter().for_each(|(part, problem)| self.report(part, problem));
    }

    /// Ends the open function and resolves its labels, which may be used before they are bound.
    fn close(&mut self) {
        let Some(Open { mut function, labels, statements }) = self.open.take() else { return };
        for Unlinked { instruction, operands, line, text } in statements {
            let mut linked = Vec::new();
            for pending in operands {
                match pending {
                    Pending::Resolved(operand) => linked.push(operand),
                    Pending::Label(name) => match labels.iter().position(|(own, _)| *own == name) {
                        Some(index)
                            if instruction.name == "jal"
                                && !function.procedures.iter().any(|(label, _)| *label == index) =>
                        {
                            let problem = Problem::new(TextCode::Operands, format!("`{name}` is no procedure"));
                            self.report(name, problem.help(format!("begin it with `procedure {name} LINK`")));
                        }
                        Some(index) => linked.push(Operand::Label(index)),
                        None => {
                            let problem = Problem::new(TextCode::Unknown, format!("no label named `{name}`"));
                            self.report(name, problem.help(format!("bind it with a line `{name}:`")));
                        }
                    },
                }
            }
            if linked.len() == instruction.operands.len() {
                function.statements.push(Statement { instruction, operands: linked, line, text: text.to_owned() });
            }
        }
        function.labels = labels.into_iter().map(|(_, statement)| statement).collect();
        self.functions.push(function);
    }
}

impl<'t> Open<'t> {
    fn is_declared(&self, name: &str) -> bool {
        self.function.variables.iter().any(|variable| variable.name == name)
            || self.function.locals.iter().any(|local| local.name == name)
    }

    fn operand(&self, wanted: instruction::OperandKind, text: &'t str) -> Result<Pending<'t>, Problem> {
        let mismatch = |message: String| Err(Problem::new(TextCode::Operands, message));
        let unknown = |message: String, help: String| Err(Problem::new(TextCode::Unknown, message).help(help));
        let variable = |bank: Bank| {
            let known = self.function.variables.iter().position(|variable| variable.name == text);
            match known.map(|index| (index, self.function.variables[index].bank)) {
                Some((index, own)) if own == bank => Ok(Pending::Resolved(Operand::Variable(index))),
                Some(_) => mismatch(format!("`{text}` is not {}", describe(wanted))),
                None => {
                    let word = if bank == Bank::Int { "reg" } else { "float" };
                    unknown(format!("no variable named `{text}`"), format!("declare it with `{word} {text}`"))
                }
            }
        };
        match wanted {
            instruction::OperandKind::Reg(_) => variable(Bank::Int),
            instruction::OperandKind::Float(_) => variable(Bank::Float),
            instruction::OperandKind::Immediate(ty) => match immediate(ty, text) {
                Some(value) => Ok(Pending::Resolved(Operand::Immediate(value))),
                None => mismatch(format!("`{text}` is not a constant of the type {}", letters(ty))),
            },
            instruction::OperandKind::Offset => match integer(text).and_then(|value| i32::try_from(value).ok()) {
                Some(value) => Ok(Pending::Resolved(Operand::Immediate(i64::from(value)))),
                None => mismatch(format!("`{text}` is not an offset of 32 bits")),
            },
            instruction::OperandKind::Local => match self.function.locals.iter().position(|local| local.name == text) {
                Some(index) => Ok(Pending::Resolved(Operand::Local(index))),
                None => unknown(format!("no local named `{text}`"), format!("declare it with `local {text} l`")),
            },
            instruction::OperandKind::Label => Ok(Pending::Label(text)),
        }
    }
}

fn name_problem(name: &str, is_declared: bool) -> Option<Problem> {
    let mut letters = name.chars();
    let starts = letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_');
    if !starts || !letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_') {
        return Some(Problem::new(TextCode::Syntax, format!("`{name}` is not a name")));
    }
    is_declared.then(|| Problem::new(TextCode::Duplicate, format!("`{name}` is declared twice")))
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

/// A constant of a type in the form that instructions take: the bits of floats, unsigned longs as signed ones.
fn immediate(ty: Type, text: &str) -> Option<i64> {
    match ty {
        Type::F => text.parse::<f32>().ok().map(|value| i64::from(value.to_bits())),
        Type::D => text.parse::<f64>().ok().map(|value| value.to_bits() as i64),
        Type::Ul | Type::P => integer(text).and_then(|value| u64::try_from(value).ok()).map(|value| value as i64),
        Type::C | Type::Uc | Type::S | Type::Us | Type::I | Type::U | Type::L => {
            let value = i64::try_from(integer(text)?).ok()?;
            instruction::immediate_fits(ty, value).then_some(value)
        }
    }
}
