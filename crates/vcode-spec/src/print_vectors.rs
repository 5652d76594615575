//! Prints the vector instructions: a trait for the machines that have them, its methods, and a C header of their own.

use std::fmt::Write as _;

use crate::SpecError;
use crate::c_spelling::{self, argument_name, immediate, immediate_type, paper_name};
use crate::emit;
use crate::model::*;
use crate::portable::{self, Form, Parameter, sentence};
use crate::rust_spelling::{self, conversions, marker, signature};

/// Every vector instruction: operation, type, form, name.
fn instructions(ops: &[PortableOp]) -> Vec<(&PortableOp, Type, Form, String)> {
    let mut all = Vec::new();
    for op in ops.iter().filter(|op| op.layer == Layer::Vector) {
        for &ty in &op.types {
            for (form, suffix) in portable::forms(op, ty) {
                all.push((op, ty, form, portable::instruction_name(op, ty, suffix)));
            }
        }
    }
    all
}

/// The trait of machines that have vectors.
pub(crate) fn rust_trait(ops: &[PortableOp]) -> String {
    let mut out = String::from(
        "/// Instructions on vectors of as many bits as [`Vectors::vector_width`] said last. What the processor that code is\n\
         /// written for lacks is [`Error::Feature`](crate::Error::Feature).\npub trait Vectors: Core {\n\
         \x20   /// A register for vectors. Calls destroy it.\n    type Vector: Copy;\n\
         \x20   /// Makes vectors this wide from here on, in bits.\n    ///\n    /// # Errors\n\
         \x20   /// [`Error::Feature`](crate::Error::Feature) if the features in use have no such vectors; it does not stick.\n\
         \x20   fn vector_width(&mut self, bits: u32) -> Result<(), crate::Error>;\n\
         \x20   /// How wide vectors are, in bytes; 0 before a width was chosen.\n    fn vector_bytes(&self) -> u32;\n\
         \x20   /// Takes a register for vectors, from those of the floating file.\n    ///\n    /// # Errors\n\
         \x20   /// [`Error::Registers`](crate::Error::Registers) when all are taken; it does not stick.\n\
         \x20   fn getvector(&mut self) -> Result<Self::Vector, crate::Error>;\n\
         \x20   /// Gives a register for vectors back.\n    fn putvector(&mut self, register: Self::Vector);\n",
    );
    for (op, ty, form, name) in instructions(ops) {
        let _ = writeln!(out, "    /// {}", sentence(op, ty, form));
        let _ = writeln!(out, "    {};", signature(op, ty, form, &name, "Self::"));
    }
    out.push_str("}\n");
    out
}

/// The methods of a machine. They are out of line: code for vectors is written seldom, and three widths take room.
pub(crate) fn rust(ops: &[PortableOp], machine: &Machine) -> Result<String, SpecError> {
    if machine.widths.is_empty() {
        return Ok(String::new());
    }
    let marker = marker(&machine.name);
    let mut out = format!("\nimpl VectorMachine for {marker} {{\n    type Vector = Vector;\n");
    let list: Vec<String> = machine.vector_widths().iter().map(|width| format!("{width:?}")).collect();
    let _ = writeln!(out, "    const WIDTHS: &'static [(u32, u64, u64)] = &[{}];\n}}\n", list.join(", "));
    let _ = writeln!(
        out,
        "impl Vectors for Asm<'_, {marker}> {{\n    type Vector = Vector;\n\n\
         \x20   fn vector_width(&mut self, bits: u32) -> Result<(), Error> {{\n        self.choose_width(bits)\n    }}\n\n\
         \x20   fn vector_bytes(&self) -> u32 {{\n        self.width_bytes()\n    }}\n\n\
         \x20   fn getvector(&mut self) -> Result<Vector, Error> {{\n        self.take_vector()\n    }}\n\n\
         \x20   fn putvector(&mut self, register: Vector) {{\n        self.give_vector(register);\n    }}\n"
    );
    for (op, ty, form, name) in instructions(ops) {
        let declaration = signature(op, ty, form, &name, "");
        let parameters = portable::parameters(op, ty, form);
        let names: Vec<String> = parameters
            .iter()
            .map(|parameter| match parameter {
                Parameter::Register(letter, _) => letter.to_string(),
                Parameter::Label => "b".into(),
                Parameter::Immediate(_) | Parameter::Offset | Parameter::Local => "i".into(),
            })
            .collect();
        let names = names.join(", ");
        let Some(row) = machine.row(&op.name, ty) else {
            let _ = writeln!(
                out,
                "    fn {name}{} {{\n        let _ = ({names});\n        self.fail(Error::Feature);\n    }}\n",
                declaration.trim_start_matches(&format!("fn {name}"))
            );
            continue;
        };
        let body = emit::body(machine, row, form)?;
        let inner =
            declaration.replacen(&format!("fn {name}(&mut self"), &format!("fn write(c: &mut Asm<'_, {marker}>"), 1);
        let _ = writeln!(out, "    {declaration} {{\n        #[inline(never)]\n        {inner} {{");
        out.push_str("            if !c.has_width() {\n                return;\n            }\n");
        conversions(&mut out, machine, op, ty, &parameters, false);
        let _ = writeln!(out, "            c.space({});", body.max_bytes);
        if body.uses_label {
            out.push_str("            let at = c.target(b);\n");
        }
        out.push_str(&rust_spelling::print(machine, op, row, "c.cursor", "c").body(&body, 3));
        let comma = if names.is_empty() { "" } else { ", " };
        let _ = writeln!(out, "        }}\n        self.out_of_line(|c| write(c{comma}{names}));\n    }}\n");
    }
    out.push_str("}\n");
    Ok(out)
}

/// The header of a machine.
pub(crate) fn c(ops: &[PortableOp], machine: &Machine) -> Result<String, SpecError> {
    let name = &machine.name;
    let guard = format!("QUAJECT_VCODE_VECTORS_{}_H", name.to_uppercase());
    let mut out = format!(
        "/* Generated by `cargo xtask codegen` from machines/vectors/{name}.spec; do not edit. Vectors of {name}. */\n#ifndef {guard}\n#define {guard}\n\n"
    );
    let mut names = String::new();
    for (op, ty, form, name) in instructions(ops) {
        let parameters = portable::parameters(op, ty, form);
        let mut declaration = String::new();
        let mut conversions = String::new();
        for parameter in &parameters {
            match parameter {
                Parameter::Register(letter, _) => {
                    let _ = write!(declaration, ", v_reg {letter}");
                    let _ = writeln!(conversions, "    (void){letter};");
                }
                Parameter::Immediate(ty) => {
                    let _ = write!(declaration, ", {} value", immediate_type(machine, *ty));
                    let _ = writeln!(conversions, "    int64_t i = {};", immediate(machine, op, *ty));
                }
                Parameter::Label => {
                    declaration.push_str(", v_label b");
                    conversions.push_str("    (void)b;\n");
                }
                Parameter::Offset | Parameter::Local => {
                    declaration.push_str(", int64_t value");
                    conversions.push_str("    int64_t i = qjv_int(c, value);\n");
                }
            }
        }
        if op.family == Family::Vector(Shape::Shift) {
            let _ = writeln!(conversions, "    i = qjv_count(c, i, {});", ty.bits(machine.long));
        }
        let _ = writeln!(out, "/* {} */", sentence(op, ty, form));
        let _ = writeln!(
            out,
            "QJV_OUTLINE void qjv_{name}_outlined(qjv_asm *c{declaration}) {{\n{conversions}    if (!qjv_has_width(c)) return;"
        );
        match machine.row(&op.name, ty) {
            Some(row) => {
                let body = emit::body(machine, row, form)?;
                let _ = writeln!(out, "    qjv_space(c, {});", body.max_bytes);
                if body.uses_label {
                    out.push_str("    uint32_t at = qjv_label_at(c, b);\n");
                }
                out.push_str(&c_spelling::print(machine, op, row, "c->ip").body(&body, 1));
            }
            None => {
                if parameters.iter().any(|parameter| matches!(parameter, Parameter::Immediate(_) | Parameter::Offset)) {
                    out.push_str("    (void)i;\n");
                }
                out.push_str("    qjv_fail(c, QJV_ERROR_FEATURE);\n");
            }
        }
        let arguments: Vec<String> = parameters
            .iter()
            .map(|parameter| if *parameter == Parameter::Label { "b".into() } else { argument_name(*parameter) })
            .collect();
        let arguments = arguments.join(", ");
        let comma = if arguments.is_empty() { "" } else { ", " };
        let _ = writeln!(
            out,
            "}}\n\nQJV_INLINE void qjv_{name}(qjv_asm *c{declaration}) {{\n    qjv_asm copy = *c;\n\
             \x20   qjv_{name}_outlined(&copy{comma}{arguments});\n    *c = copy;\n}}\n"
        );
        names.push_str(&paper_name(op, ty, form, &name));
    }
    out.push_str("/* The names of the paper. */\n");
    out.push_str(&names);
    out.push_str("\n#endif\n");
    Ok(out)
}
