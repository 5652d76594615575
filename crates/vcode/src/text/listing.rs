//! Assembles functions for a machine, and records the bytes of each portable instruction.

use std::boxed::Box;
use std::string::String;
use std::string::ToString;
use std::vec;
use std::vec::Vec;

use super::{Bank, Function, Operand};
use crate::asm::{Asm, Code, Region, Workspace};
use crate::decode::{self, Table};
use crate::error::Error;
use crate::frame::{Local, Param};
use crate::generated::core::{Core, Extension};
use crate::instruction::Value;
use crate::kind::Kind;
use crate::layers::virtual_registers::{Virtual, VirtualReg};
use crate::machine::Machine;
use crate::registers::Class;

/// A machine that text can be assembled for.
#[derive(Debug)]
pub struct TargetMachine {
    /// The name of its specification.
    pub name: &'static str,
    /// Its decoder table.
    pub table: &'static Table,
    /// Assembles a function for it.
    pub assemble: fn(&Function) -> Result<Listing, Error>,
}

/// Every machine.
pub const MACHINES: [TargetMachine; 7] = [
    TargetMachine { name: "x86_64", table: &decode::X86_64, assemble: assemble::<crate::x86_64::X86_64> },
    TargetMachine { name: "aarch64", table: &decode::AARCH64, assemble: assemble::<crate::aarch64::Aarch64> },
    TargetMachine { name: "riscv64", table: &decode::RISCV64, assemble: assemble::<crate::riscv64::Riscv64> },
    TargetMachine { name: "mips", table: &decode::MIPS, assemble: assemble::<crate::mips::Mips> },
    TargetMachine { name: "sparc64", table: &decode::SPARC64, assemble: assemble::<crate::sparc64::Sparc64> },
    TargetMachine { name: "alpha", table: &decode::ALPHA, assemble: assemble::<crate::alpha::Alpha> },
    TargetMachine { name: "ppc64le", table: &decode::PPC64LE, assemble: assemble::<crate::ppc64le::Ppc64le> },
];

/// The origin of a part of a function's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The prologue.
    Prologue,
    /// The statement with this number.
    Statement(usize),
    /// The epilogue.
    Epilogue,
    /// Floating constants.
    Constants,
}

/// A range of bytes of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Their origin.
    pub part: Part,
    /// The first, from the function's entry.
    pub start: usize,
    /// Behind the last.
    pub end: usize,
}

/// A function for a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Their origins, in order and without gaps.
    pub entries: Vec<Entry>,
    /// Bytes of instructions; constants follow.
    pub instructions: usize,
}

impl Listing {
    /// The function, one row per machine instruction. `?` stands for bytes that are no instruction of the machine.
    pub fn rows(&self, table: &'static Table) -> Vec<Row<'_>> {
        let mut rows = Vec::new();
        let mut at = 0;
        for entry in &self.entries {
            // An instruction belongs to the part in which it begins.
            while at < entry.end {
                let rest = self.bytes.get(at..self.instructions).unwrap_or_default();
                let (length, text) = match table.decode(rest) {
                    Some(decoded) => (decoded.length, decoded.to_string()),
                    None if entry.part == Part::Constants => (entry.end - at, "(data)".to_string()),
                    None => (1, "?".to_string()),
                };
                let bytes = self.bytes.get(at..at + length).unwrap_or_default();
                rows.push(Row { part: entry.part, at, bytes, text });
                at += length;
            }
        }
        rows
    }
}

/// A machine instruction of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row<'l> {
    /// The part it belongs to.
    pub part: Part,
    /// Its offset from the function's entry.
    pub at: usize,
    /// Its bytes.
    pub bytes: &'l [u8],
    /// Its assembler text.
    pub text: String,
}

/// Room for one portable instruction with its operands on the stack, on any machine.
const MAX_BYTES: usize = 1024;

/// The registers of a function's variables.
enum VariableRegister<M: Machine> {
    Int(VirtualReg<M::Reg>),
    Float(VirtualReg<M::Float>),
}

/// Assembles a function for machine `M`, as if it were to be executed at address zero.
///
/// # Errors
/// What [`Asm::end`] reports; [`Error::Registers`] for more parameters than registers.
pub fn assemble<M: Machine>(function: &Function) -> Result<Listing, Error>
where
    for<'x> Asm<'x, M>: Extension + Core<Reg = M::Reg, Float = M::Float>,
{
    let mut buffer = vec![0_u8; 4096 + MAX_BYTES * (function.statements.len() + function.variables.len())];
    let (code, marks) = write::<M>(function, Region::from(&mut buffer[..]).executed_at(0))?;
    let body = match function.kind {
        Kind::Naked => 0,
        Kind::Leaf | Kind::Calls => M::PROLOGUE,
    };
    Ok(list(&buffer, &code, &marks, body))
}

/// Writes a function to a region; returns where each statement began, and where the last ended.
///
/// # Errors
/// Those of [`assemble`].
pub(crate) fn write<M: Machine>(function: &Function, region: Region<'_>) -> Result<(Code, Vec<usize>), Error>
where
    for<'x> Asm<'x, M>: Extension + Core<Reg = M::Reg, Float = M::Float>,
{
    let mut workspace = Box::new(Workspace::<M, 1024, 4096, 1024>::with_room());
    let mut params = vec![Param::NONE; function.parameters.len()];
    let asm = Asm::<M>::begin(region, &mut workspace, &function.parameters[..], &mut params, function.kind)?;
    let mut asm = Virtual::new(asm, &mut []);
    let mut places: Vec<VariableRegister<M>> = Vec::new();
    for (index, variable) in function.variables.iter().enumerate() {
        places.push(match (params.get(index), variable.bank) {
            (Some(param), Bank::Int) => VariableRegister::Int(asm.param(*param)),
            (Some(param), Bank::Float) => VariableRegister::Float(asm.float_param(*param)),
            (None, Bank::Int) => VariableRegister::Int(asm.reg(Class::Persistent)),
            (None, Bank::Float) => VariableRegister::Float(asm.float(Class::Persistent)),
        });
    }
    let locals: Vec<Local> = function.locals.iter().map(|local| asm.local(local.ty)).collect();
    let labels: Vec<_> = function.labels.iter().map(|_| asm.label()).collect();
    let mut marks = Vec::new();
    for index in 0..=function.statements.len() {
        for (number, (label, at)) in labels.iter().zip(&function.labels).enumerate() {
            if *at != index {
                continue;
            }
            let link = function.procedures.iter().find(|(label, _)| *label == number).map(|(_, link)| &places[*link]);
            match link {
                Some(VariableRegister::Int(link)) => asm.procedure(*label, *link),
                Some(VariableRegister::Float(_)) | None => asm.bind(*label),
            }
        }
        marks.push(asm.asm().position());
        let Some(statement) = function.statements.get(index) else { break };
        let values: Vec<_> = statement
            .operands
            .iter()
            .map(|operand| match *operand {
                Operand::Variable(index) => match &places[index] {
                    VariableRegister::Int(register) => Value::Reg(*register),
                    VariableRegister::Float(register) => Value::Float(*register),
                },
                Operand::Immediate(value) => Value::Immediate(value),
                Operand::Local(index) => Value::Local(locals[index]),
                Operand::Label(index) => Value::Label(labels[index]),
            })
            .collect();
        if !statement.instruction.emit(&mut asm, &values) {
            return Err(Error::Immediate);
        }
    }
    Ok((asm.end()?, marks))
}

fn list(buffer: &[u8], code: &Code, marks: &[usize], body: usize) -> Listing {
    let bytes = buffer.get(code.offset..code.offset + code.length).unwrap_or_default().to_vec();
    let mut entries = Vec::new();
    let mut add = |part, start: usize, end: usize| {
        if start < end {
            entries.push(Entry { part, start, end });
        }
    };
    // A last jump that `end` has removed belongs to the epilogue.
    let within = |at: usize| at.saturating_sub(code.offset).min(code.instructions);
    add(Part::Prologue, 0, within(body));
    let first = marks.first().copied().unwrap_or(body);
    add(Part::Prologue, within(body), within(first));
    for (index, pair) in marks.windows(2).enumerate() {
        add(Part::Statement(index), within(pair[0]), within(pair[1]));
    }
    let last = marks.last().copied().unwrap_or(body);
    add(Part::Epilogue, within(last), code.instructions);
    add(Part::Constants, code.instructions, code.length);
    Listing { bytes, entries, instructions: code.instructions }
}
