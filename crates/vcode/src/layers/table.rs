//! Jump tables: one indirect jump among many labels. The table is a row of jumps in the code itself, one per label, so
//! its entries are relative, patched like any other reference to a label, and need no memory of their own.

use crate::asm::Label;
use crate::generated::core::Extension;

/// The treatment of an index without a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableDefault {
    /// The client guarantees that there is none: the index is not checked.
    Unreachable,
    /// It branches to this label.
    Label(Label),
}

/// Jumps to the label that the unsigned long in `index` counts from zero. Works on machine registers and virtual ones;
/// each label takes an unresolved reference until it is bound, and has the reach of `j`.
pub fn jump_table<A: Extension>(asm: &mut A, index: A::Reg, labels: &[Label], default: TableDefault) {
    match default {
        TableDefault::Unreachable => {}
        TableDefault::Label(label) => asm.bgeuli(index, labels.len() as u64, label),
    }
    asm.jtab(index);
    for label in labels {
        asm.j(*label);
    }
}
