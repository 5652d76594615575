//! How parts of the emitters are spelt in C, as the printers of C share it.

use crate::emit::{Language, Print};
use crate::model::*;
use crate::portable::{self, Form, Parameter};

pub(crate) fn print<'a>(machine: &'a Machine, op: &'a PortableOp, row: &Row, cursor: &'a str) -> Print<'a> {
    Print { machine, op, ty: row.ty, language: Language::C, cursor, asm: "c", arguments: String::new() }
}

/// The C type of an immediate, which holds every integer that a caller may pass: C would convert a larger one to a
/// narrower parameter without a word.
pub(crate) fn immediate_type(machine: &Machine, ty: Type) -> &'static str {
    match ty {
        Type::Ul if machine.long == 64 => "unsigned long",
        Type::P if machine.long == 64 => "uintptr_t",
        Type::F => "float",
        Type::D => "double",
        Type::Ul | Type::P | Type::L | Type::U | Type::I | Type::V | Type::C | Type::Uc | Type::S | Type::Us => {
            "int64_t"
        }
    }
}

/// The number `i` of a row for an immediate that is called `value`.
pub(crate) fn immediate(machine: &Machine, op: &PortableOp, ty: Type) -> &'static str {
    match ty {
        // A count is checked by its range.
        _ if matches!(op.family, Family::Shift | Family::Vector(Shape::Shift)) => "(int64_t)value",
        Type::Ul | Type::P | Type::L if machine.long == 64 => "(int64_t)value",
        // The result depends on more than the low bits.
        Type::I | Type::L
            if op.family == Family::Branch || matches!(op.name.as_str(), "div" | "mod" | "mulhi" | "min" | "max") =>
        {
            "qjv_int(c, value)"
        }
        Type::I | Type::L if op.family == Family::Checked => "qjv_int(c, value)",
        Type::F
        | Type::D
        | Type::V
        | Type::C
        | Type::Uc
        | Type::S
        | Type::Us
        | Type::I
        | Type::L
        | Type::U
        | Type::Ul
        | Type::P => "qjv_int_bits(c, value)",
    }
}

/// The name of the paper for an emitter.
pub(crate) fn paper_name(op: &PortableOp, ty: Type, form: Form, name: &str) -> String {
    let arguments: Vec<String> = portable::parameters(op, ty, form).into_iter().map(argument_name).collect();
    let list = arguments.join(", ");
    let comma = if list.is_empty() { "" } else { ", " };
    // Most emitters ask for space first, and find out then that no function was begun.
    let asks_first = op.layer == Layer::Core
        && !matches!(op.name.as_str(), "jal" | "jalr")
        && !(op.family == Family::Set && ty.class() == Class::Float);
    let cursor = if asks_first { "&v_self" } else { "v_cursor()" };
    format!("#define v_{name}({list}) qjv_{name}({cursor}{comma}{list})\n")
}

pub(crate) fn argument_name(parameter: Parameter) -> String {
    match parameter {
        Parameter::Register(letter, _) => letter.to_string(),
        Parameter::Immediate(_) | Parameter::Offset => "value".into(),
        Parameter::Local => "local".into(),
        Parameter::Label => "label".into(),
    }
}
