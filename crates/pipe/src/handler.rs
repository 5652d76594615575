//! Message handlers ("VCODE" 4.3, ASHs): small programs that run when a message arrives, pass its parts through pipes
//! to buffers, and may reply.
//!
//! The paper downloads handlers into a kernel and isolates them by sandboxing their code. We interpret a language whose
//! programs cannot access anything but their message and buffers, and charge for every instruction and every byte: the
//! work per byte, which takes most of the time, is done by pipes, which are machine code.

use crate::error::Error;
use crate::ir::{Instruction, Operand, Program, REGISTERS, VerifyError, verify_handler};
use crate::pipe::{Options, Pipe};
use crate::report::{Outcome, Report};

/// Bytes, delivered or replied, that cost as much fuel as an instruction.
const BYTES_PER_FUEL: u64 = 64;

/// The outcome of a handler for a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It was accepted. A reply, if it is not empty, is to be sent.
    Accepted,
    /// It was dropped.
    Dropped,
    /// This instruction refers to a part that is not in the message or does not fit a buffer.
    Rejected {
        /// Which instruction, from 0.
        instruction: usize,
    },
    /// The handler had not ended when its fuel had been used up.
    OutOfFuel,
}

/// A checked handler with the pipes it may use.
#[derive(Debug)]
pub struct Handler {
    program: Program,
    pipes: Vec<Pipe>,
    buffers: usize,
}

impl Handler {
    /// Verifies a handler with `pipes` and this number of buffers.
    ///
    /// # Errors
    /// A [`VerifyError`]: an instruction that is for steps, a pipe or buffer that there is not, an end without `accept`
    /// or `drop`, a pipe that wants a key stream.
    pub fn new(program: Program, pipes: Vec<Pipe>, buffers: usize) -> Result<Handler, VerifyError> {
        verify_handler(&program, pipes.len(), buffers)?;
        if let Some(pipe) = pipes.iter().position(|pipe| pipe.streams() > 0) {
            let message = format!("pipe {pipe} wants a key stream, which a handler has not");
            return Err(VerifyError { instruction: None, message, help: "use a repeated key".into() });
        }
        Ok(Handler { program, pipes, buffers })
    }

    /// Runs on a message, with this amount of fuel. The reply is appended to `reply`; `r0` starts as the length of the
    /// message. Unless the verdict is [`Verdict::Accepted`], `reply` is unchanged; delivered bytes stay delivered.
    ///
    /// # Errors
    /// [`Error::Buffers`] if there are not as many buffers as the handler was checked for; [`Error::Code`] if there is
    /// no room for a pipe's code.
    pub fn run(
        &self,
        message: &[u8],
        buffers: &mut [&mut [u8]],
        reply: &mut Vec<u8>,
        fuel: u64,
    ) -> Result<Verdict, Error> {
        if buffers.len() != self.buffers {
            return Err(Error::Buffers { wanted: self.buffers, given: buffers.len() });
        }
        let before = reply.len();
        let verdict = self.interpret(message, buffers, reply, fuel);
        if !matches!(verdict, Ok(Verdict::Accepted)) {
            reply.truncate(before);
        }
        verdict
    }

    fn interpret(
        &self,
        message: &[u8],
        buffers: &mut [&mut [u8]],
        reply: &mut Vec<u8>,
        mut fuel: u64,
    ) -> Result<Verdict, Error> {
        let mut registers = [0_u64; REGISTERS];
        registers[0] = message.len() as u64;
        let mut last: Option<Report> = None;
        let mut at = 0;
        // The verifier has checked that control cannot run off the end of a program.
        while let Some(instruction) = self.program.instructions.get(at) {
            let value = |operand: Operand| match operand {
                Operand::Register(register) => registers[usize::from(register.0) % REGISTERS],
                Operand::Constant(value) => value,
            };
            let rejected = Ok(Verdict::Rejected { instruction: at });
            let moved = match instruction {
                Instruction::Deliver { length, .. } | Instruction::Reply { length, .. } => {
                    value(*length) / BYTES_PER_FUEL
                }
                _ => 0,
            };
            match moved.checked_add(1).and_then(|cost| fuel.checked_sub(cost)) {
                Some(left) => fuel = left,
                None => return Ok(Verdict::OutOfFuel),
            }
            at += 1;
            match *instruction {
                Instruction::Set { d, value: from } => registers[usize::from(d.0)] = value(from),
                Instruction::Compute { operation, d, s, t } => {
                    registers[usize::from(d.0)] = operation.apply(value(Operand::Register(s)), value(t));
                }
                Instruction::FloatBinary { operation, format, d, s, t } => {
                    registers[usize::from(d.0)] = operation.apply(format, value(Operand::Register(s)), value(t));
                }
                Instruction::FloatUnary { function, format, d, s } => {
                    registers[usize::from(d.0)] = function.apply(format, value(Operand::Register(s)));
                }
                Instruction::Convert { conversion, d, s } => {
                    registers[usize::from(d.0)] = conversion.apply(value(Operand::Register(s)));
                }
                Instruction::Load { element, d, at } => {
                    let Some(bytes) = part(message, value(at), element.bytes as u64) else { return rejected };
                    registers[usize::from(d.0)] = element.read(bytes);
                }
                Instruction::If { condition, s, t, to } => {
                    if condition.holds(value(Operand::Register(s)), value(t)) {
                        at = to;
                    }
                }
                Instruction::Goto { to } => at = to,
                Instruction::Deliver { pipe, at, length, buffer, offset } => {
                    let (Some(pipe), Some(buffer)) = (self.pipes.get(pipe), buffers.get_mut(buffer)) else {
                        return rejected;
                    };
                    let length = value(length);
                    let Some(source) = part(message, value(at), length) else { return rejected };
                    let wanted = if pipe.writes() { length } else { 0 };
                    let Some(range) = range(buffer.len(), value(offset), wanted) else { return rejected };
                    last = Some(pipe.run_with(source, &mut buffer[range], Options::default())?);
                }
                Instruction::StepResult { d, step } => {
                    let outcome = last.as_ref().and_then(|report| report.outcomes().nth(step));
                    registers[usize::from(d.0)] = match outcome {
                        Some(Outcome::Checksum(sum)) => sum.into(),
                        Some(Outcome::Crc32c(crc)) => crc.into(),
                        Some(Outcome::Count(number) | Outcome::Total(number)) => number,
                        Some(Outcome::Nothing) | None => 0,
                    };
                }
                Instruction::Reply { at, length } => {
                    let Some(bytes) = part(message, value(at), value(length)) else { return rejected };
                    reply.extend(bytes);
                }
                Instruction::Send { element, value: from } => {
                    reply.extend(&element.write(value(from))[..element.bytes]);
                }
                Instruction::Accept => return Ok(Verdict::Accepted),
                Instruction::Drop => return Ok(Verdict::Dropped),
                Instruction::Total { .. } => unreachable!("`verify::handler` rejects totals"),
            }
        }
        Ok(Verdict::Dropped)
    }
}

/// The range of `length` bytes at an offset, if it is inside.
fn range(bytes: usize, offset: u64, length: u64) -> Option<std::ops::Range<usize>> {
    let end = offset.checked_add(length).filter(|end| *end <= bytes as u64)?;
    Some(offset as usize..end as usize)
}

fn part(message: &[u8], offset: u64, length: u64) -> Option<&[u8]> {
    range(message.len(), offset, length).map(|range| &message[range])
}
