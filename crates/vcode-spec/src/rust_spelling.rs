//! How parts of the emitters are spelt in Rust, as the printers of Rust share it.

use std::fmt::Write as _;

use crate::emit::{Language, Print};
use crate::model::*;
use crate::portable::{self, Form, Parameter};

pub(crate) fn rust_type(ty: Type) -> &'static str {
    match ty {
        Type::I => "i32",
        Type::U => "u32",
        Type::L => "i64",
        Type::Ul | Type::P => "u64",
        Type::F => "f32",
        Type::D => "f64",
        Type::V | Type::C | Type::Uc | Type::S | Type::Us => "i32",
    }
}

pub(crate) fn signature(op: &PortableOp, ty: Type, form: Form, name: &str, owner: &str) -> String {
    let mut text = format!("fn {name}(&mut self");
    for parameter in portable::parameters(op, ty, form) {
        let _ = match parameter {
            Parameter::Register(letter, Class::Int) => write!(text, ", {letter}: {owner}Reg"),
            Parameter::Register(letter, Class::Float) => write!(text, ", {letter}: {owner}Float"),
            Parameter::Register(letter, Class::Vector) => write!(text, ", {letter}: {owner}Vector"),
            Parameter::Immediate(ty) => write!(text, ", i: {}", rust_type(ty)),
            Parameter::Offset => write!(text, ", i: i32"),
            Parameter::Local => write!(text, ", local: Local"),
            Parameter::Label => write!(text, ", b: Label"),
        };
    }
    text.push(')');
    text
}

/// The name of the type that represents a machine.
pub(crate) fn marker(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().collect::<String>() + letters.as_str())
}

/// The conversions of the immediate of an emitter to the number `i` of its row.
pub(crate) fn conversions(
    out: &mut String,
    machine: &Machine,
    op: &PortableOp,
    ty: Type,
    parameters: &[Parameter],
    bits: bool,
) {
    let from_bits = bits;
    for parameter in parameters {
        let line = match parameter {
            Parameter::Immediate(ty) => match ty {
                Type::F if from_bits => "let i = i64::from(i.to_bits());",
                Type::D if from_bits => "let i = i.to_bits() as i64;",
                Type::F => "let b = c.constant(u64::from(i.to_bits()), 4);",
                Type::D => "let b = c.constant(i.to_bits(), 8);",
                Type::I | Type::V | Type::C | Type::Uc | Type::S | Type::Us => "let i = i64::from(i);",
                Type::U => "let i = i64::from(i as i32);",
                Type::L if machine.long == 32 => "let i = c.long32(i);",
                Type::Ul | Type::P if machine.long == 32 => "let i = c.unsigned32(i);",
                Type::L => "",
                Type::Ul | Type::P => "let i = i as i64;",
            },
            Parameter::Offset => "let i = i64::from(i);",
            Parameter::Local => "let i = i64::from(local.offset);",
            Parameter::Register(..) | Parameter::Label => "",
        };
        if !line.is_empty() {
            let _ = writeln!(out, "        {line}");
        }
        if matches!(op.family, Family::Shift | Family::Vector(Shape::Shift))
            && matches!(parameter, Parameter::Immediate(_))
        {
            let _ = writeln!(out, "        let i = c.count(i, {});", ty.bits(machine.long));
        }
    }
}

pub(crate) fn print<'a>(
    machine: &'a Machine,
    op: &'a PortableOp,
    row: &Row,
    cursor: &'a str,
    asm: &'a str,
) -> Print<'a> {
    Print { machine, op, ty: row.ty, language: Language::Rust, cursor, asm, arguments: String::new() }
}
