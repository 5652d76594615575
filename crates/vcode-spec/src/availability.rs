//! The forms of portable instructions that each machine has, and the numbering of those that all machines have.

use crate::model::*;
use crate::portable::{self, Form};

/// Whether `machine` can emit this form.
pub(crate) fn has(machine: &Machine, op: &PortableOp, ty: Type, form: Form) -> bool {
    has_own(machine, op, ty, form) || machine.portable_row(&op.name, ty).is_some_and(|row| !row.form(form).is_empty())
}

/// Whether `machine` has a row of its own for this form.
pub(crate) fn has_own(machine: &Machine, op: &PortableOp, ty: Type, form: Form) -> bool {
    let derived = match op.family {
        // An immediate that does not fit is loaded into a register; a local is an offset.
        Family::Binary | Family::Checked | Family::Load | Family::Store | Family::Branch => true,
        Family::Shift
        | Family::Unary
        | Family::Set
        | Family::Convert
        | Family::Return
        | Family::Label
        | Family::Register
        | Family::Nullary
        | Family::Select
        | Family::Exchange
        | Family::IndexedLoad
        | Family::IndexedStore
        | Family::Hint
        | Family::Vector(_)
        | Family::Frame => false,
    };
    machine.row(&op.name, ty).is_some_and(|row| match form {
        Form::Register if op.family == Family::Set => true,
        Form::Register => !row.register.is_empty(),
        Form::Immediate | Form::Local => !row.immediate.is_empty() || derived && !row.register.is_empty(),
    })
}

/// An instruction of the portable set that all machines have.
pub(crate) struct Instruction<'a> {
    pub(crate) op: &'a PortableOp,
    pub(crate) ty: Type,
    pub(crate) form: Form,
    pub(crate) name: String,
}

/// The instructions that all machines have, in order of their numbers.
pub(crate) fn common<'a>(ops: &'a [PortableOp], machines: &[Machine]) -> Vec<Instruction<'a>> {
    let mut all = Vec::new();
    for op in ops.iter().filter(|op| op.layer != Layer::Vector) {
        for &ty in &op.types {
            for (form, suffix) in portable::forms(op, ty) {
                if machines.iter().all(|machine| has(machine, op, ty, form)) {
                    all.push(Instruction { op, ty, form, name: portable::instruction_name(op, ty, suffix) });
                }
            }
        }
    }
    all
}
