//! Waits whose tries may end differently later, though nobody has offered them anything new: a payload or a condition
//! that takes an object from a pool was tried while one was free, and none is free now. That is a fault, which counts
//! as a match (reference, section 8), so a schedule that remembers who cannot meet whom asks them again at rest.

use crate::cfg::region_blocks;
use crate::ir::{BlockId, Body, Boundary, ChannelId, Op, Operation, Pattern, Payload, Program, Terminator, Wait};

/// What decides of a wait whether it is asked again: the same for every schedule.
pub struct PoolRecheck {
    has_pools: bool,
    /// Per channel: whether a message may be refused by a reader who waits for one.
    refuses: Vec<bool>,
}

impl PoolRecheck {
    /// Looks at all readers of a program.
    pub fn new(program: &Program) -> PoolRecheck {
        let mut refuses = vec![false; program.channels.len()];
        for block in program.processes.iter().flat_map(|process| &process.body.blocks) {
            let Terminator::Wait(wait) = &block.terminator else { continue };
            for branch in &wait.branches {
                if let Operation::In { channel, patterns, condition, .. } = &branch.operation {
                    refuses[channel.0 as usize] |= condition.is_some() || patterns.iter().any(is_choosy);
                }
            }
        }
        let internal = program.channels.iter().map(|channel| channel.boundary == Boundary::Internal);
        let refuses = refuses.into_iter().zip(internal).map(|(refuses, internal)| refuses && internal).collect();
        PoolRecheck { has_pools: !program.types.pools().is_empty(), refuses }
    }

    /// Whether an instance that waits here is asked again when everything rests.
    pub fn retries_at_quiescence(&self, body: &Body, wait: &Wait) -> bool {
        let refuses = |channel: &ChannelId| self.refuses[channel.0 as usize];
        self.has_pools
            && wait.branches.iter().any(|branch| match &branch.operation {
                Operation::Out { channel, payload: Payload::Region(entry), .. } => {
                    refuses(channel) && takes_objects(body, *entry)
                }
                Operation::In { channel, condition: Some(entry), .. } => {
                    refuses(channel) && takes_objects(body, *entry)
                }
                Operation::Out { .. } | Operation::In { .. } | Operation::After { .. } => false,
            })
    }
}

/// Whether a value of the pattern's type may not match it.
fn is_choosy(pattern: &Pattern) -> bool {
    match pattern {
        Pattern::Any | Pattern::Bind(_) => false,
        Pattern::Record(parts) | Pattern::Array(parts) => parts.iter().any(is_choosy),
        Pattern::Constant(_) | Pattern::Bytes(_) | Pattern::OwnId | Pattern::Equal(_) | Pattern::Tag(..) => true,
    }
}

fn takes_objects(body: &Body, entry: BlockId) -> bool {
    region_blocks(body, entry).into_iter().any(|block| {
        body.blocks[block.0 as usize].instructions.iter().any(|instruction| {
            matches!(instruction.op, Op::Allocate(_) | Op::CallFunction { .. } | Op::CallExtern { .. })
        })
    })
}
