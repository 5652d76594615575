//! Comparison of two programs up to split blocks.

use quaject_esp_ir::ir::{Body, Program, Terminator};

/// Whether `split` is `program` with blocks split: each block continues as the block of the same number.
pub(super) fn is_block_split(program: &Program, split: &Program) -> bool {
    program.processes.len() == split.processes.len()
        && program.processes.iter().zip(&split.processes).all(|(process, split)| {
            (process.replicas, format!("{:?}", process.sites)) == (split.replicas, format!("{:?}", split.sites))
                && is_split_body(&process.body, &split.body)
        })
}

fn is_split_body(body: &Body, split: &Body) -> bool {
    let of = |body: &Body| format!("{:?} {:?}", body.values, body.slots);
    of(body) == of(split)
        && body.blocks.iter().enumerate().all(|(index, block)| {
            let mut piece = &split.blocks[index];
            let mut rest = &block.instructions[..];
            if format!("{:?}", block.parameters) != format!("{:?}", piece.parameters) {
                return false;
            }
            for _ in 0..=split.blocks.len() {
                let (here, after) = rest.split_at(rest.len().min(piece.instructions.len()));
                if format!("{here:?}") != format!("{:?}", piece.instructions) {
                    return false;
                }
                rest = after;
                match &piece.terminator {
                    // New blocks are numbered after all original ones.
                    Terminator::Jump(edge) if edge.to.0 as usize >= body.blocks.len() && edge.arguments.is_empty() => {
                        piece = &split.blocks[edge.to.0 as usize];
                        if !piece.parameters.is_empty() {
                            return false;
                        }
                    }
                    terminator => {
                        return rest.is_empty() && format!("{terminator:?}") == format!("{:?}", block.terminator);
                    }
                }
            }
            false
        })
}
