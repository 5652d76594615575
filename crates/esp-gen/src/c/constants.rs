//! Constants of a program as constant C objects, which are read in place: in flash where the machine has some.

use super::names::member;
use super::plan::Plan;
use super::values::literal;
use quaject_esp_ir::ir::{Base, Body, ConstantId, Literal, Program, Type, TypeId, TypeTable};
use quaject_esp_ir::visit::{Use, op_uses, terminator_uses};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// The width at which the lines of an initialiser end.
const MAX_COLUMNS: usize = 100;

/// The constants that some code reads.
pub(crate) fn used_constants(program: &Program) -> BTreeSet<ConstantId> {
    let mut used = BTreeSet::new();
    if program.constants.is_empty() {
        return used;
    }
    let mut add = |part: Use<'_>| {
        if let Use::Place(place) = part
            && let Base::Constant(id, _) = place.base
        {
            used.insert(id);
        }
    };
    let functions = program.functions.iter().map(|function| &function.body);
    let bodies = functions.chain(program.processes.iter().map(|process| &process.body));
    for block in bodies.flat_map(|body: &Body| &body.blocks) {
        block.instructions.iter().for_each(|instruction| op_uses(&instruction.op, &mut add));
        terminator_uses(&block.terminator, &mut add);
    }
    used
}

/// The definitions of all constants that are read.
pub(crate) fn constants(plan: &Plan<'_>) -> String {
    let mut text = String::new();
    for id in used_constants(plan.program) {
        let constant = &plan.program.constants[id.0 as usize];
        let (ty, name) = (&plan.types[constant.ty.0 as usize], &plan.constants[id.0 as usize]);
        let mut initialiser = Initialiser { plan, text: String::new(), column: 0 };
        initialiser.value(constant.ty, &constant.content);
        writeln!(text, "static const {ty} {name} =\n{};\n", initialiser.text)
            .expect("writing to a string does not fail");
    }
    text
}

/// An initialiser, broken into lines.
struct Initialiser<'p, 'a> {
    plan: &'p Plan<'a>,
    text: String,
    column: usize,
}

impl Initialiser<'_, '_> {
    fn push(&mut self, token: &str) {
        if self.column + token.len() > MAX_COLUMNS {
            self.text.push('\n');
            self.column = 0;
        } else if self.column > 0 {
            self.text.push(' ');
            self.column += 1;
        }
        self.text.push_str(token);
        self.column += token.len();
    }

    fn value(&mut self, ty: TypeId, of: &Literal) {
        let types = &self.plan.program.types;
        match (types.get(ty), of) {
            (_, Literal::Scalar(number)) => {
                let number = literal(types, *number, ty);
                self.push(&number);
            }
            (_, Literal::Bytes(bytes)) => {
                self.push(&format!("{{ {}, {{", bytes.len()));
                self.separated(bytes.len().max(1), |own, index| {
                    let byte = bytes.get(index).copied().unwrap_or(0).to_string();
                    own.push(&byte);
                });
                self.push("} }");
            }
            (Type::Array { element, .. }, Literal::Repeat(part)) if is_zero(types, *element, part) => {
                self.push("{ { 0 } }")
            }
            (Type::Array { length, element }, Literal::Repeat(part)) => {
                self.push("{ {");
                self.separated(*length as usize, |own, _| own.value(*element, part));
                self.push("} }");
            }
            (Type::Array { element, .. }, Literal::Parts(parts)) => {
                self.push("{ {");
                self.separated(parts.len(), |own, index| own.value(*element, &parts[index]));
                self.push("} }");
            }
            (Type::Record(id), Literal::Parts(parts)) => {
                let fields = &types.aggregate(*id).parts;
                self.push("{");
                if parts.is_empty() {
                    self.push("0");
                }
                self.separated(parts.len(), |own, index| {
                    let (_, ty) = &fields[index];
                    own.value(ty.expect("fields have types"), &parts[index]);
                });
                self.push("}");
            }
            (Type::Union(id), Literal::Tagged(tag, payload)) => {
                let (case, ty) = &types.aggregate(*id).parts[*tag as usize];
                match (ty, payload) {
                    (Some(ty), Some(payload)) => {
                        self.push(&format!("{{ {tag}, {{ .{} =", member(case)));
                        self.value(*ty, payload);
                        self.push("} }");
                    }
                    (Some(_) | None, _) => self.push(&format!("{{ .tag = {tag} }}")),
                }
            }
            (_, Literal::Parts(_) | Literal::Repeat(_) | Literal::Tagged(..)) => {
                unreachable!("the verifier requires literals of their types")
            }
        }
    }

    fn separated(&mut self, count: usize, mut each: impl FnMut(&mut Self, usize)) {
        for index in 0..count {
            each(self, index);
            if index + 1 < count {
                self.text.push(',');
                self.column += 1;
            }
        }
    }
}

/// Whether a literal is a scalar that is 0.
fn is_zero(types: &TypeTable, ty: TypeId, literal: &Literal) -> bool {
    types.is_scalar(ty) && *literal == Literal::Scalar(0)
}
