//! Prints portable rows in Rust and C.

use std::fmt::Write as _;

use crate::emit::{Language, Print};
use crate::extension::{Argument, Guard, PortableAlternative, PortableRow, PortableStep, Register};
use crate::model::*;
use crate::portable::{Form, Parameter};
use crate::rust_spelling::marker;

/// Prints the statements of a portable row. `operands` are the registers that must not be borrowed.
pub(crate) fn body(print: &Print<'_>, row: &PortableRow, form: Form, parameters: &[Parameter]) -> String {
    let little = match print.machine.code {
        Code::Word { little } => little,
        Code::Bytes => true,
    };
    let chosen: Vec<&PortableAlternative> = row
        .form(form)
        .iter()
        .filter(|alternative| match alternative.guard {
            Some(Guard::Little) => little,
            Some(Guard::Big) => !little,
            Some(Guard::Test(_)) | None => true,
        })
        .collect();
    let mut out = String::new();
    for (index, alternative) in chosen.iter().enumerate() {
        let test = match &alternative.guard {
            Some(Guard::Test(test)) => Some(print.test(test)),
            Some(Guard::Little | Guard::Big) | None => None,
        };
        let lead = if index == 0 { "    " } else { " else " };
        let _ = match (test, print.language) {
            (Some(test), Language::Rust) => writeln!(out, "{lead}if {test} {{"),
            (Some(test), Language::C) => writeln!(out, "{lead}if ({test}) {{"),
            (None, _) => writeln!(out, "{lead}{{"),
        };
        steps(&mut out, print, alternative, parameters);
        out.push_str("    }");
    }
    out.push('\n');
    out
}

fn steps(out: &mut String, print: &Print<'_>, alternative: &PortableAlternative, parameters: &[Parameter]) {
    let rust = print.language == Language::Rust;
    for label in alternative.labels() {
        let name = label.to_lowercase();
        let _ = if rust {
            writeln!(out, "        let label_{name} = c.label();")
        } else {
            writeln!(out, "        v_label label_{name} = qjv_label(c);")
        };
    }
    let borrowed = alternative.borrowed();
    let operands: Vec<String> = parameters
        .iter()
        .filter_map(|parameter| match parameter {
            Parameter::Register(letter, Class::Int) => Some(letter.to_string()),
            Parameter::Register(_, Class::Float | Class::Vector)
            | Parameter::Immediate(_)
            | Parameter::Offset
            | Parameter::Local
            | Parameter::Label => None,
        })
        .collect();
    if !borrowed.is_empty() {
        let names: Vec<String> = borrowed.iter().map(|letter| format!("borrowed_{letter}")).collect();
        let (names, operands) = (names.join(", "), operands.join(", "));
        let _ = if rust {
            writeln!(out, "        let [{names}] = c.borrow_registers([{operands}]);")
        } else {
            writeln!(
                out,
                "        const v_reg taken[] = {{{operands}}};\n        v_reg borrowed[{count}], {names};\n\
                 \x20       qjv_borrow_registers(c, taken, sizeof taken / sizeof *taken, borrowed, {count});\n        {assign}",
                count = borrowed.len(),
                assign = borrowed
                    .iter()
                    .enumerate()
                    .map(|(index, name)| format!("borrowed_{name} = borrowed[{index}];"))
                    .collect::<Vec<_>>()
                    .join(" ")
            )
        };
    }
    for step in &alternative.steps {
        self::step(out, print, step);
    }
    if !borrowed.is_empty() {
        let _ = if rust {
            let names: Vec<String> = borrowed.iter().map(|letter| format!("borrowed_{letter}")).collect();
            writeln!(out, "        c.return_registers([{}]);", names.join(", "))
        } else {
            writeln!(out, "        qjv_return_registers(c, borrowed, {});", borrowed.len())
        };
    }
    for step in &alternative.after {
        self::step(out, print, step);
    }
}

fn step(out: &mut String, print: &Print<'_>, step: &PortableStep) {
    let rust = print.language == Language::Rust;
    match step {
        PortableStep::Bind(label) => {
            let name = label.to_lowercase();
            let _ = if rust {
                writeln!(out, "        c.bind(label_{name});")
            } else {
                writeln!(out, "        qjv_bind(c, label_{name});")
            };
        }
        PortableStep::LocalAddress { to, borrowed } => {
            let to = self::register(to);
            let lowered = match (*borrowed, rust) {
                (0, _) => String::new(),
                (count, true) => format!(" + c.borrowed_bytes({count})"),
                (count, false) => format!(" + qjv_borrowed_bytes({count})"),
            };
            let _ = if rust {
                writeln!(out, "        {}::frame_address(c, {to}, i{lowered});", marker(&print.machine.name))
            } else {
                writeln!(out, "        qjv_frame_address(c, {to}, i{lowered});")
            };
        }
        PortableStep::Emit { name, arguments } => {
            let arguments: Vec<String> = arguments.iter().map(|argument| self::argument(print, argument)).collect();
            let list = arguments.join(", ");
            let comma = if list.is_empty() { "" } else { ", " };
            let _ = if rust {
                writeln!(out, "        c.{name}({list});")
            } else {
                writeln!(out, "        qjv_{name}(c{comma}{list});")
            };
        }
    }
}

/// A register, by letter: an operand or a borrowed one.
fn register(letter: &str) -> String {
    if matches!(letter, "d" | "s" | "t") { letter.into() } else { format!("borrowed_{letter}") }
}

fn argument(print: &Print<'_>, argument: &Argument) -> String {
    let rust = print.language == Language::Rust;
    match argument {
        Argument::Register(Register::Letter(letter)) => register(letter),
        Argument::Register(Register::Scratch) => print.fixed(print.machine.special.x, Class::Int),
        Argument::Label(label) if label == "b" => "b".into(),
        Argument::Label(label) => format!("label_{}", label.to_lowercase()),
        Argument::Number(value, ty) => {
            let value = print.expr(value);
            match (ty, rust) {
                (Type::U, true) => format!("({value}) as i64 as u32"),
                (Type::L, true) => format!("({value}) as i64"),
                (Type::Ul | Type::P, true) => format!("({value}) as i64 as u64"),
                (_, true) => format!("({value}) as i64 as i32"),
                (Type::U, false) => format!("(uint32_t)({value})"),
                (Type::L, false) => format!("(long)({value})"),
                (Type::Ul, false) => format!("(unsigned long)({value})"),
                (Type::P, false) => format!("(uintptr_t)({value})"),
                (_, false) => format!("(int32_t)({value})"),
            }
        }
    }
}
