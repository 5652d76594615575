//! How parts of the emitters are spelt in C, as the printers of C share it.

use crate::emit::{Language, Print};
use crate::model::*;
use crate::portable::{self, Form, Parameter};

pub(crate) fn print<'a>(machine: &'a Machine, op: &'a PortableOp, row: &Row, cursor: &'a str) -> Print<'a> {
    Print { machine, op, ty: row.ty, language: Language::C, cursor, asm: "c", arguments: String::new() }
}

/// The C type of an immediate.
pub(crate) fn immediate_type(ty: Type) -> &'static str {
    match ty {
        Type::U => "uint32_t",
        Type::L => "long",
        Type::Ul => "unsigned long",
        Type::P => "uintptr_t",
        Type::F => "float",
        Type::D => "double",
        Type::I | Type::V | Type::C | Type::Uc | Type::S | Type::Us => "int32_t",
    }
}

/// The name of the paper for an emitter.
pub(crate) fn paper_name(op: &PortableOp, ty: Type, form: Form, name: &str) -> String {
    let arguments: Vec<String> = portable::parameters(op, ty, form).into_iter().map(argument_name).collect();
    let list = arguments.join(", ");
    let comma = if list.is_empty() { "" } else { ", " };
    format!("#define v_{name}({list}) qjv_{name}(&v_self{comma}{list})\n")
}

pub(crate) fn argument_name(parameter: Parameter) -> String {
    match parameter {
        Parameter::Register(letter, _) => letter.to_string(),
        Parameter::Immediate(_) | Parameter::Offset => "value".into(),
        Parameter::Local => "local".into(),
        Parameter::Label => "label".into(),
    }
}
