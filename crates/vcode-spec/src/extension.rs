//! Extension layers: rows couched in terms of portable instructions, for the machines that have no better. Knows no
//! machine; registers beyond the operands are borrowed from the function around, and given back.
//!
//! ```text
//! unary absl l   absolute value   := rshli a,s,63; xorl b,s,a; subl d,b,a
//! binary min i   the smaller one  := d==s ? blei s,t,L; movi d,t; L: | ...
//! checked addo i ...              := addi a,s,t; ...; movi d,a; movi x,b ;; bltii x,0,b
//! ```
//!
//! `a b c e f g` are borrowed, `L` and `K` are labels, `x` is the scratch register of rows. What follows `;;` comes
//! after the borrowed registers are given back. A part after `||` is the form with an immediate. `%` stands for the
//! letters of the type.

use crate::emit::{self, Form, Parameter};
use crate::expr::{self, Defs, Expr};
use crate::model::{Class, PortableOp, Type};

/// Registers that a row may borrow.
const BORROWED: [&str; 6] = ["a", "b", "c", "e", "f", "g"];

/// A register of a portable row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Register {
    /// An operand or a borrowed register, by letter.
    Letter(String),
    /// The scratch register of rows.
    Scratch,
}

/// An argument of a portable instruction.
#[derive(Debug, Clone)]
pub enum Argument {
    /// A register.
    Register(Register),
    /// A number, and the type it is passed as.
    Number(Expr, Type),
    /// A label of the row, by letter, or `b`, the label of the instruction.
    Label(String),
}

/// A step of a portable row.
#[derive(Debug, Clone)]
pub enum PortableStep {
    /// Emit an instruction.
    Emit {
        /// Its name.
        name: String,
        /// What it is called with.
        arguments: Vec<Argument>,
    },
    /// Bind a label of the row.
    Bind(String),
}

/// When an alternative applies.
#[derive(Debug, Clone)]
pub enum Guard {
    /// Where words are stored least significant byte first.
    Little,
    /// Where they are stored most significant byte first.
    Big,
    /// When a comparison of operands holds.
    Test(Expr),
}

/// One way to do a portable row.
#[derive(Debug, Clone)]
pub struct PortableAlternative {
    /// When it applies.
    pub guard: Option<Guard>,
    /// What it does.
    pub steps: Vec<PortableStep>,
    /// What it does when borrowed registers are given back.
    pub after: Vec<PortableStep>,
}

/// A row in terms of portable instructions.
#[derive(Debug, Clone)]
pub struct PortableRow {
    /// Name of its operation.
    pub op: String,
    /// Its type.
    pub ty: Type,
    /// The form with registers.
    pub register: Vec<PortableAlternative>,
    /// The form with an immediate; empty if there is none.
    pub immediate: Vec<PortableAlternative>,
}

impl PortableRow {
    /// The alternatives of a form.
    pub fn form(&self, form: Form) -> &[PortableAlternative] {
        match form {
            Form::Register => &self.register,
            Form::Immediate => &self.immediate,
            Form::Local => &[],
        }
    }
}

impl PortableAlternative {
    /// The borrowed registers it uses.
    pub fn borrowed(&self) -> Vec<&'static str> {
        let uses = |letter: &str| {
            self.steps.iter().any(|step| match step {
                PortableStep::Emit { arguments, .. } => arguments
                    .iter()
                    .any(|argument| matches!(argument, Argument::Register(Register::Letter(own)) if own == letter)),
                PortableStep::Bind(_) => false,
            })
        };
        BORROWED.into_iter().filter(|letter| uses(letter)).collect()
    }

    /// The labels it binds.
    pub fn labels(&self) -> Vec<&str> {
        let steps = self.steps.iter().chain(&self.after);
        steps
            .filter_map(|step| match step {
                PortableStep::Bind(label) => Some(label.as_str()),
                PortableStep::Emit { .. } => None,
            })
            .collect()
    }
}

/// Reads the part of a line after `:=`, for one type.
pub(crate) fn row(text: &str, op: &PortableOp, ty: Type, ops: &[PortableOp]) -> Result<PortableRow, String> {
    let text = text.replace('%', ty.letters());
    let (register, immediate) = match text.split_once("||") {
        Some((register, immediate)) => (register.to_string(), immediate.to_string()),
        None => (text, String::new()),
    };
    let alternatives = |text: &str| -> Result<Vec<PortableAlternative>, String> {
        if text.trim().is_empty() {
            return Ok(Vec::new());
        }
        text.split(" | ").map(|text| alternative(text.trim(), ops)).collect()
    };
    Ok(PortableRow {
        op: op.name.clone(),
        ty,
        register: alternatives(&register)?,
        immediate: alternatives(&immediate)?,
    })
}

fn alternative(text: &str, ops: &[PortableOp]) -> Result<PortableAlternative, String> {
    let (guard, text) = match text.split_once('?') {
        None => (None, text),
        Some((guard, steps)) => {
            let guard = match guard.trim() {
                "little" => Guard::Little,
                "big" => Guard::Big,
                test => Guard::Test(expr::parse(test, &Defs::new())?),
            };
            (Some(guard), steps)
        }
    };
    let (before, after) = text.split_once(";;").unwrap_or((text, ""));
    let steps = |text: &str| -> Result<Vec<PortableStep>, String> {
        let texts = text.split(';').map(str::trim).filter(|text| !text.is_empty());
        let mut steps = Vec::new();
        for text in texts {
            let mut text = text;
            while let Some((label, rest)) = text.split_once(':') {
                steps.push(PortableStep::Bind(label.trim().to_string()));
                text = rest.trim();
            }
            if !text.is_empty() {
                steps.push(step(text, ops)?);
            }
        }
        Ok(steps)
    };
    Ok(PortableAlternative { guard, steps: steps(before)?, after: steps(after)? })
}

fn step(text: &str, ops: &[PortableOp]) -> Result<PortableStep, String> {
    let (name, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let parameters = find(name, ops).ok_or_else(|| format!("no portable instruction `{name}` above this line"))?;
    let texts: Vec<&str> = rest.split(',').map(str::trim).filter(|text| !text.is_empty()).collect();
    if texts.len() != parameters.len() {
        return Err(format!("`{name}` has {} operands, {} are given", parameters.len(), texts.len()));
    }
    let argument = |(parameter, text): (Parameter, &str)| match parameter {
        Parameter::Register(_, class) => match text {
            "x" if class == Class::Int => Ok(Argument::Register(Register::Scratch)),
            "d" | "s" | "t" => Ok(Argument::Register(Register::Letter(text.into()))),
            _ if class == Class::Int && BORROWED.contains(&text) => {
                Ok(Argument::Register(Register::Letter(text.into())))
            }
            _ => Err(format!("`{text}` is no register of a portable row")),
        },
        Parameter::Immediate(ty) => expr::parse(text, &Defs::new()).map(|value| Argument::Number(value, ty)),
        Parameter::Offset => expr::parse(text, &Defs::new()).map(|value| Argument::Number(value, Type::I)),
        Parameter::Label => Ok(Argument::Label(text.into())),
        Parameter::Local => Err(format!("`{name}` takes a local, which a row has not")),
    };
    let arguments = parameters.into_iter().zip(texts).map(argument).collect::<Result<Vec<_>, String>>()?;
    Ok(PortableStep::Emit { name: name.into(), arguments })
}

/// The parameters of the instruction with this name.
fn find(name: &str, ops: &[PortableOp]) -> Option<Vec<Parameter>> {
    for op in ops.iter().filter(|op| name.starts_with(&op.name)) {
        for &ty in &op.types {
            for (form, suffix) in emit::forms(op, ty) {
                if emit::instruction_name(op, ty, suffix) == name {
                    return Some(emit::parameters(op, ty, form));
                }
            }
        }
    }
    None
}
