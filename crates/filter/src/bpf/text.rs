//! Programs as text: the listing of `tcpdump -d`, and the numbers of `tcpdump -ddd`, which can be read again.

use super::{Arithmetic, Condition, Instruction, Operand, Operation, Program, Size};
use crate::error::Error;
use std::fmt;

/// Prints a program as `tcpdump -d` does.
#[derive(Clone, Copy, Debug)]
pub struct Disassembly<'p>(pub &'p Program);

fn suffix(size: Size) -> &'static str {
    match size {
        Size::Byte => "b",
        Size::Half => "h",
        Size::Word => "",
    }
}

impl fmt::Display for Disassembly<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, operation) in self.0.operations().iter().enumerate() {
            let (name, operand, jumps) = parts(*operation, at);
            match jumps {
                Some((jt, jf)) => writeln!(f, "({at:03}) {name:<8} {operand:<16} jt {jt}\tjf {jf}")?,
                None => writeln!(f, "({at:03}) {name:<8} {operand}")?,
            }
        }
        Ok(())
    }
}

/// Name, operand, and where a branch leads.
fn parts(operation: Operation, at: usize) -> (String, String, Option<(usize, usize)>) {
    let operand = |operand: Operand| match operand {
        Operand::Constant(k) => format!("#{k:#x}"),
        Operand::Index => "x".to_owned(),
    };
    let (name, argument) = match operation {
        Operation::LoadConstant(k) => ("ld".to_owned(), format!("#{k:#x}")),
        Operation::LoadAbsolute(size, k) => (format!("ld{}", suffix(size)), format!("[{k}]")),
        Operation::LoadIndirect(size, k) => (format!("ld{}", suffix(size)), format!("[x + {k}]")),
        Operation::LoadLength => ("ld".to_owned(), "#pktlen".to_owned()),
        Operation::LoadMemory(k) => ("ld".to_owned(), format!("M[{k}]")),
        Operation::IndexConstant(k) => ("ldx".to_owned(), format!("#{k:#x}")),
        Operation::IndexLength => ("ldx".to_owned(), "#pktlen".to_owned()),
        Operation::IndexMemory(k) => ("ldx".to_owned(), format!("M[{k}]")),
        Operation::IndexHeader(k) => ("ldxb".to_owned(), format!("4*([{k}]&0xf)")),
        Operation::Store(k) => ("st".to_owned(), format!("M[{k}]")),
        Operation::StoreIndex(k) => ("stx".to_owned(), format!("M[{k}]")),
        Operation::Negate => ("neg".to_owned(), String::new()),
        Operation::Arithmetic(arithmetic, with) => {
            let name = match arithmetic {
                Arithmetic::Add => "add",
                Arithmetic::Sub => "sub",
                Arithmetic::Mul => "mul",
                Arithmetic::Div => "div",
                Arithmetic::Mod => "mod",
                Arithmetic::And => "and",
                Arithmetic::Or => "or",
                Arithmetic::Xor => "xor",
                Arithmetic::Lsh => "lsh",
                Arithmetic::Rsh => "rsh",
            };
            (name.to_owned(), operand(with))
        }
        Operation::Jump(by) => ("ja".to_owned(), (at + 1).wrapping_add_signed(by as isize).to_string()),
        Operation::Branch(condition, with, jt, jf) => {
            let name = match condition {
                Condition::Equal => "jeq",
                Condition::Greater => "jgt",
                Condition::GreaterEqual => "jge",
                Condition::Set => "jset",
            };
            let to = |by: u8| at + 1 + usize::from(by);
            return (name.to_owned(), operand(with), Some((to(jt), to(jf))));
        }
        Operation::Return(k) => ("ret".to_owned(), format!("#{k}")),
        Operation::ReturnAccumulator => ("ret".to_owned(), "a".to_owned()),
        Operation::Tax => ("tax".to_owned(), String::new()),
        Operation::Txa => ("txa".to_owned(), String::new()),
    };
    (name, argument, None)
}

/// Reads what `tcpdump -ddd` prints: the number of instructions, then `code jt jf k` of each, in decimal; new lines or
/// commas between them.
///
/// # Errors
/// [`Error::Text`] where the text is not of that form, [`Error::Bytecode`] where the program is not valid.
pub fn assemble(text: &str) -> Result<Program, Error> {
    let mut rows = Vec::new();
    for (line, row) in text.lines().enumerate() {
        let mut column = 1;
        for part in row.split(',') {
            let indent = part.chars().take_while(|character| character.is_whitespace()).count();
            if !part.trim().is_empty() {
                rows.push((line + 1, column + indent, part.trim()));
            }
            column += part.chars().count() + 1;
        }
    }
    let wrong = |line: usize, column: usize, why: String| Error::Text { line, column, why };
    let Some(&(line, column, first)) = rows.first() else {
        return Err(wrong(1, 1, "no number of instructions".to_owned()));
    };
    let count: usize =
        first.parse().map_err(|_| wrong(line, column, format!("`{first}` is not a number of instructions")))?;
    let mut instructions = Vec::new();
    for &(line, column, row) in &rows[1..] {
        let numbers: Vec<u32> = row
            .split_whitespace()
            .map(|word| word.parse().map_err(|_| wrong(line, column, format!("`{word}` is not a number"))))
            .collect::<Result<_, _>>()?;
        let instruction = match numbers[..] {
            [code, jt, jf, k] => {
                let (code, jt, jf) = (u16::try_from(code), u8::try_from(jt), u8::try_from(jf));
                code.ok().zip(jt.ok()).zip(jf.ok()).map(|((code, jt), jf)| Instruction { code, jt, jf, k })
            }
            _ => None,
        };
        let why = || wrong(line, column, "an instruction is four numbers: code, jt, jf, k".to_owned());
        instructions.push(instruction.ok_or_else(why)?);
    }
    if instructions.len() != count {
        let why = format!("{count} instructions were promised, {} are there", instructions.len());
        return Err(wrong(line, column, why));
    }
    Program::new(&instructions)
}
