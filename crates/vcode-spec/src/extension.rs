//! Portable rows: instructions of the extension layers expressed in other portable instructions, for machines without a
//! row of their own. Registers besides the operands are borrowed from the enclosing function (spilled and reloaded).
//!
//! ```text
//! unary absl l   absolute value   := rshli a,s,63; xorl b,s,a; subl d,b,a
//! binary min i   the smaller one  := d==s ? blei s,t,L; movi d,t; L: | ...
//! checked addo i ...              := addi a,s,t; ...; movi d,a; movi x,b ;; bltii x,0,b
//! ```
//!
//! `a b c e f g` are borrowed registers, `L` and `K` are labels, `x` is the scratch register of rows. The steps after
//! `;;` come after the borrowed registers are reloaded. The part after `||` is the form with an immediate; without it,
//! an operation with two operands loads the immediate and uses the form with registers. A variable on the stack is
//! accessed by its address. `%` is replaced by the letters of the type.

use crate::expr::{self, Defs, Expr};
use crate::portable::{self, Class, Family, Form, Parameter, PortableOp, Type};

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
    /// A number and its parameter type.
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
        /// Its arguments.
        arguments: Vec<Argument>,
    },
    /// Bind a label of the row.
    Bind(String),
    /// Put the address of the variable on the stack into a register.
    LocalAddress {
        /// The register, by letter.
        to: &'static str,
        /// The number of borrowed registers, for which the stack pointer is lowered.
        borrowed: usize,
    },
}

/// The condition of an alternative.
#[derive(Debug, Clone)]
pub enum Guard {
    /// On little-endian machines.
    Little,
    /// On big-endian machines.
    Big,
    /// When a comparison of operands holds.
    Test(Expr),
}

/// One alternative of a portable row.
#[derive(Debug, Clone)]
pub struct PortableAlternative {
    /// Its condition.
    pub guard: Option<Guard>,
    /// Its steps.
    pub steps: Vec<PortableStep>,
    /// Its steps after the borrowed registers are reloaded.
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
    /// The form with a variable on the stack; empty if there is none.
    pub local: Vec<PortableAlternative>,
}

impl PortableRow {
    /// The alternatives of a form.
    pub fn form(&self, form: Form) -> &[PortableAlternative] {
        match form {
            Form::Register => &self.register,
            Form::Immediate => &self.immediate,
            Form::Local => &self.local,
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
                PortableStep::LocalAddress { to, .. } => *to == letter,
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
                PortableStep::Emit { .. } | PortableStep::LocalAddress { .. } => None,
            })
            .collect()
    }
}

/// Reads the part of a line after `:=`, for one type.
pub(crate) fn row(text: &str, op: &PortableOp, ty: Type, ops: &[PortableOp]) -> Result<PortableRow, String> {
    let text = text.replace('%', ty.letters());
    let (register, immediate) = match text.split_once("||") {
        Some((register, immediate)) => (register.to_string(), immediate.to_string()),
        None => (text, loaded_immediate(op, ty)),
    };
    let alternatives = |text: &str| -> Result<Vec<PortableAlternative>, String> {
        if text.trim().is_empty() {
            return Ok(Vec::new());
        }
        text.split(" | ").map(|text| alternative(text.trim(), ops)).collect()
    };
    let immediate = alternatives(&immediate)?;
    let has_local = matches!(op.family, Family::Load | Family::Store) && !immediate.is_empty();
    Ok(PortableRow {
        op: op.name.clone(),
        ty,
        register: alternatives(&register)?,
        immediate,
        local: if has_local { vec![from_stack_pointer(op, ty)] } else { Vec::new() },
    })
}

/// The form with an immediate of an operation of two operands that has a row for registers alone: the immediate is
/// loaded. Data of eight and sixteen bits are in a register like an unsigned.
fn loaded_immediate(op: &PortableOp, ty: Type) -> String {
    if op.family != Family::Binary || ty.class() == Class::Float {
        return String::new();
    }
    let set = match ty {
        Type::C | Type::Uc | Type::S | Type::Us => Type::U.letters(),
        Type::I | Type::U | Type::L | Type::Ul | Type::P | Type::F | Type::D | Type::V => ty.letters(),
    };
    format!("set{set} a,i; {}{} d,s,a", op.name, ty.letters())
}

/// The form for a variable on the stack, expressed by the form with an offset. That form may lower the stack pointer to
/// borrow registers, so the address is passed in another register: for a load in its destination, for a store in a
/// borrowed one.
fn from_stack_pointer(op: &PortableOp, ty: Type) -> PortableAlternative {
    let (to, borrowed) = if op.family == Family::Load { ("d", 0) } else { ("a", 1) };
    let letter = |letter: &str| Argument::Register(Register::Letter(letter.into()));
    let access = PortableStep::Emit {
        name: portable::instruction_name(op, ty, "i"),
        arguments: vec![letter("d"), letter(to), Argument::Number(Expr::Number(0), Type::I)],
    };
    PortableAlternative {
        guard: None,
        steps: vec![PortableStep::LocalAddress { to, borrowed }, access],
        after: Vec::new(),
    }
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
            for (form, suffix) in portable::forms(op, ty) {
                if portable::instruction_name(op, ty, suffix) == name {
                    return Some(portable::parameters(op, ty, form));
                }
            }
        }
    }
    None
}
