//! Verifies programs before they run: a verified program accesses its own memory only, and steps terminate. Knows
//! neither text nor code.

use std::fmt;

use super::{
    Checked, Conversion, Element, FloatFormat, Instruction, MAX_HANDLER_INSTRUCTIONS, MAX_STEP_INSTRUCTIONS, Operand,
    Operation, Program, REGISTERS, Register, mask,
};

/// Why a program was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifyError {
    /// Which instruction, from 0; `None` if it is the program as a whole.
    pub instruction: Option<usize>,
    /// What is wrong.
    pub message: String,
    /// The help text.
    pub help: String,
}

impl fmt::Display for VerifyError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.instruction {
            Some(number) => write!(out, "instruction {number}: {}", self.message),
            None => write!(out, "{}", self.message),
        }
    }
}

impl std::error::Error for VerifyError {}

/// The state of verification at an instruction.
struct Checker {
    at: usize,
    /// Bytes of a register.
    bytes: usize,
    written: [bool; REGISTERS],
}

impl Checker {
    fn error<T>(&self, message: impl Into<String>, help: impl Into<String>) -> Result<T, VerifyError> {
        Err(VerifyError { instruction: Some(self.at), message: message.into(), help: help.into() })
    }

    fn exists(&self, register: Register) -> Result<usize, VerifyError> {
        let number = usize::from(register.0);
        if number < REGISTERS {
            return Ok(number);
        }
        self.error(format!("there is no register r{number}"), format!("the last is r{}", REGISTERS - 1))
    }

    fn reads(&self, register: Register) -> Result<(), VerifyError> {
        if self.written[self.exists(register)?] {
            return Ok(());
        }
        self.error(
            format!("r{} is read and was never written", register.0),
            format!("begin with `set r{}, 0`", register.0),
        )
    }

    fn reads_operand(&self, operand: Operand) -> Result<(), VerifyError> {
        match operand {
            Operand::Register(register) => self.reads(register),
            Operand::Constant(value) if value > mask(self.bytes) => self.error(
                format!("{value} does not fit a register of {} bits", 8 * self.bytes),
                "use wider elements, or a smaller number",
            ),
            Operand::Constant(_) => Ok(()),
        }
    }

    fn element(&self, element: Element) -> Result<(), VerifyError> {
        if is_element(element) {
            return Ok(());
        }
        self.error(format!("an element of {} bytes", element.bytes), ELEMENT_HELP)
    }

    fn writes(&mut self, register: Register) -> Result<(), VerifyError> {
        let number = self.exists(register)?;
        self.written[number] = true;
        Ok(())
    }

    /// The checks that steps and handlers share.
    fn computes(&mut self, operation: Operation, d: Register, s: Register, t: Operand) -> Result<(), VerifyError> {
        self.reads(s)?;
        self.reads_operand(t)?;
        if matches!(operation, Operation::Shl | Operation::Shr) {
            let width = 8 * self.bytes as u64;
            match t {
                Operand::Constant(count) if count < width => {}
                Operand::Constant(count) => {
                    return self
                        .error(format!("a shift by {count} of {width} bits"), format!("shift by 0 to {}", width - 1));
                }
                Operand::Register(_) => {
                    return self.error("a shift by a register", "shift by a constant");
                }
            }
        }
        self.writes(d)
    }

    fn computes_float(&mut self, format: FloatFormat, d: Register, s: Register, t: Operand) -> Result<(), VerifyError> {
        self.reads(s)?;
        match t {
            Operand::Register(register) => self.reads(register)?,
            Operand::Constant(bits) if bits > mask(format.bytes()) => {
                return self.error(
                    format!("{bits:#x} are not the bits of a number of {} bits", 8 * format.bytes()),
                    "write a decimal number, or fewer digits",
                );
            }
            Operand::Constant(_) => {}
        }
        self.writes(d)
    }

    fn converts(&mut self, conversion: Conversion, d: Register, s: Register) -> Result<(), VerifyError> {
        if let Conversion::FromInteger(integer, _) | Conversion::ToInteger(_, integer) = conversion
            && !matches!(integer.bytes, 1 | 2 | 4 | 8)
        {
            return self.error(format!("an integer of {} bytes", integer.bytes), "an integer has 1, 2, 4 or 8 bytes");
        }
        self.reads(s)?;
        self.writes(d)
    }
}

/// Verifies a step and collects the properties that code generation needs.
pub(super) fn step(program: Program, element: Element) -> Result<Checked, VerifyError> {
    // Wrong formats of integers are reported below.
    let floats = program.instructions.iter().filter_map(Instruction::float_bytes).map(|bytes| bytes.min(8));
    let register_bytes = floats.fold(element.bytes, usize::max);
    let mut checker = Checker { at: 0, bytes: register_bytes, written: [false; REGISTERS] };
    checker.written[0] = true;
    if !is_element(element) {
        let message = format!("elements of {} bytes", element.bytes);
        return Err(VerifyError { instruction: None, message, help: ELEMENT_HELP.into() });
    }
    too_long(&program, MAX_STEP_INSTRUCTIONS)?;
    let (mut totals, mut writes) = (None, false);
    let (mut registers, mut constants) = (Vec::new(), Vec::new());
    let mut note = |operand: Operand| match operand {
        Operand::Constant(value) if !constants.contains(&value) => constants.push(value),
        Operand::Constant(_) | Operand::Register(_) => {}
    };
    for (at, instruction) in program.instructions.iter().enumerate() {
        checker.at = at;
        match *instruction {
            Instruction::Set { d, value } => {
                checker.reads_operand(value)?;
                checker.writes(d)?;
                note(value);
            }
            Instruction::Compute { operation, d, s, t } => {
                checker.computes(operation, d, s, t)?;
                if !matches!(operation, Operation::Shl | Operation::Shr) {
                    note(t);
                }
            }
            Instruction::FloatBinary { format, d, s, t, operation: _ } => checker.computes_float(format, d, s, t)?,
            Instruction::FloatUnary { d, s, function: _, format: _ } => {
                checker.reads(s)?;
                checker.writes(d)?;
            }
            Instruction::Convert { conversion, d, s } => checker.converts(conversion, d, s)?,
            Instruction::Total { total, s } => {
                checker.reads(s)?;
                if totals.replace(total).is_some() {
                    return checker.error("a second total", "write two steps, each with a total of its own");
                }
            }
            Instruction::Load { .. }
            | Instruction::If { .. }
            | Instruction::Goto { .. }
            | Instruction::Deliver { .. }
            | Instruction::StepResult { .. }
            | Instruction::Reply { .. }
            | Instruction::Send { .. }
            | Instruction::Accept
            | Instruction::Drop => {
                return checker
                    .error("this instruction is for handlers", "steps only compute, on one element at a time");
            }
        }
        if let Some(d) = instruction.destination() {
            writes |= d.0 == 0;
            if d.0 != 0 && !registers.contains(&d) {
                registers.push(d);
            }
        }
    }
    Ok(Checked { program, element, register_bytes, writes, total: totals, registers, constants })
}

/// Verifies a handler with these numbers of pipes and buffers. All registers but `r0` start as zero.
pub(crate) fn handler(program: &Program, pipes: usize, buffers: usize) -> Result<(), VerifyError> {
    too_long(program, MAX_HANDLER_INSTRUCTIONS)?;
    let count = program.instructions.len();
    let mut checker = Checker { at: 0, bytes: 8, written: [true; REGISTERS] };
    for (at, instruction) in program.instructions.iter().enumerate() {
        checker.at = at;
        let below = |number: usize, limit: usize, what: &str| {
            if number < limit {
                return Ok(());
            }
            checker
                .error(format!("there is no {what} {number}"), format!("the handler is given {limit}, counted from 0"))
        };
        match *instruction {
            Instruction::Set { d, value } => {
                checker.reads_operand(value)?;
                checker.writes(d)?;
            }
            Instruction::Compute { operation, d, s, t } => checker.computes(operation, d, s, t)?,
            Instruction::FloatBinary { format, d, s, t, operation: _ } => checker.computes_float(format, d, s, t)?,
            Instruction::FloatUnary { d, s, function: _, format: _ } => {
                checker.reads(s)?;
                checker.writes(d)?;
            }
            Instruction::Convert { conversion, d, s } => checker.converts(conversion, d, s)?,
            Instruction::Total { .. } => {
                return checker.error("a total is for steps", "add up in a register");
            }
            Instruction::Load { d, at, element } => {
                checker.element(element)?;
                checker.reads_operand(at)?;
                checker.writes(d)?;
            }
            Instruction::If { s, t, to, condition: _ } => {
                below(to, count, "instruction")?;
                checker.reads(s)?;
                checker.reads_operand(t)?;
            }
            Instruction::Goto { to } => below(to, count, "instruction")?,
            Instruction::Deliver { pipe, at, length, buffer, offset } => {
                below(pipe, pipes, "pipe")?;
                below(buffer, buffers, "buffer")?;
                [at, length, offset].into_iter().try_for_each(|operand| checker.reads_operand(operand))?;
            }
            Instruction::StepResult { d, step } => {
                below(step, crate::MAX_STEPS, "step")?;
                checker.writes(d)?;
            }
            Instruction::Reply { at, length } => {
                [at, length].into_iter().try_for_each(|operand| checker.reads_operand(operand))?;
            }
            Instruction::Send { value, element } => {
                checker.element(element)?;
                checker.reads_operand(value)?;
            }
            Instruction::Accept | Instruction::Drop => {}
        }
    }
    match program.instructions.last() {
        Some(Instruction::Accept | Instruction::Drop | Instruction::Goto { .. }) => Ok(()),
        Some(_) | None => Err(VerifyError {
            instruction: count.checked_sub(1),
            message: format!("`{}` goes on after its last instruction", program.name),
            help: "end with `accept` or `drop`".into(),
        }),
    }
}

const ELEMENT_HELP: &str = "an element has 1, 2, 4 or 8 bytes";

fn is_element(element: Element) -> bool {
    matches!(element.bytes, 1 | 2 | 4 | 8)
}

fn too_long(program: &Program, maximum: usize) -> Result<(), VerifyError> {
    let count = program.instructions.len();
    if count <= maximum {
        return Ok(());
    }
    let message = format!("`{}` has {count} instructions; the maximum is {maximum}", program.name);
    Err(VerifyError { instruction: Some(maximum), message, help: "divide it".into() })
}
