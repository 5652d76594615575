//! Queries about bodies, operations and types, for several files of the product. Knows no members.

use quaject_esp_ir::cfg::{Regions, successors};
use quaject_esp_ir::ir::{BlockId, Body, Op, Operation, SiteId, Terminator, Type, TypeId, TypeTable};
use std::collections::BTreeSet;

/// The site of a channel operation.
pub(super) fn operation_site(operation: &Operation) -> Option<SiteId> {
    match operation {
        Operation::In { site, .. } | Operation::Out { site, .. } => Some(*site),
        Operation::After { .. } => None,
    }
}

/// The block that ends in the wait with the operation of a site, and its branch.
pub(super) fn wait_of_site(body: &Body, wanted: SiteId) -> Option<(BlockId, u32)> {
    body.blocks.iter().enumerate().find_map(|(index, block)| {
        let Terminator::Wait(wait) = &block.terminator else { return None };
        let branch = wait.branches.iter().position(|branch| operation_site(&branch.operation) == Some(wanted))?;
        Some((BlockId(index as u32), branch as u32))
    })
}

/// Whether values of the type are, or hold, references to boxed objects.
pub(super) fn holds_boxed(types: &TypeTable, ty: TypeId) -> bool {
    match types.get(ty) {
        Type::Boxed(_) => true,
        Type::Array { length: _, element } => holds_boxed(types, *element),
        Type::Record(id) | Type::Union(id) => {
            types.aggregate(*id).parts.iter().filter_map(|(_, part)| *part).any(|part| holds_boxed(types, part))
        }
        Type::Error | Type::Int(_) | Type::Bool | Type::Bytes { .. } | Type::Pid(_) => false,
    }
}

/// Whether any block of a region changes counts of objects.
pub(super) fn has_effects(body: &Body, entry: BlockId) -> bool {
    let mut reached = BTreeSet::new();
    let mut worklist = vec![entry];
    while let Some(block) = worklist.pop() {
        if !reached.insert(block) {
            continue;
        }
        let block = &body.blocks[block.0 as usize];
        if block.instructions.iter().any(|i| matches!(i.op, Op::Allocate(_) | Op::Retain(_) | Op::Release(_))) {
            return true;
        }
        worklist.extend(successors(&block.terminator, Regions::Include));
    }
    false
}
