//! The recheck of waits at quiescence. A payload or condition that allocates may fault when its pool is exhausted, and
//! a fault counts as a match (reference, section 8). Its match may thus change without a new offer of a partner: it was
//! evaluated while an object was free, and none is free now. A schedule that remembers failed matches evaluates such
//! waits again at quiescence.

use crate::cfg::region_blocks;
use crate::ir::{BlockId, Body, Boundary, ChannelId, Op, Operation, Pattern, Payload, Program, Terminator, Wait};

/// Decides which waits are rechecked. The decision is the same for every schedule.
pub struct PoolRecheck {
    has_pools: bool,
    /// Per channel: whether a waiting receiver may refuse a message.
    refuses: Vec<bool>,
}

impl PoolRecheck {
    /// Analyses the receivers of a program.
    pub fn new(program: &Program) -> PoolRecheck {
        let mut refuses = vec![false; program.channels.len()];
        for block in program.processes.iter().flat_map(|process| &process.body.blocks) {
            let Terminator::Wait(wait) = &block.terminator else { continue };
            for branch in &wait.branches {
                if let Operation::In { channel, patterns, condition, .. } = &branch.operation {
                    refuses[channel.0 as usize] |= condition.is_some() || patterns.iter().any(is_refutable);
                }
            }
        }
        let internal = program.channels.iter().map(|channel| channel.boundary == Boundary::Internal);
        let refuses = refuses.into_iter().zip(internal).map(|(refuses, internal)| refuses && internal).collect();
        PoolRecheck { has_pools: !program.types.pools().is_empty(), refuses }
    }

    /// Whether an instance that waits here is rechecked at quiescence.
    pub fn retries_at_quiescence(&self, body: &Body, wait: &Wait) -> bool {
        let refuses = |channel: &ChannelId| self.refuses[channel.0 as usize];
        self.has_pools
            && wait.branches.iter().any(|branch| match &branch.operation {
                Operation::Out { channel, payload: Payload::Region(entry), .. } => {
                    refuses(channel) && allocates(body, *entry)
                }
                Operation::In { channel, condition: Some(entry), .. } => refuses(channel) && allocates(body, *entry),
                Operation::Out { .. } | Operation::In { .. } | Operation::After { .. } => false,
            })
    }
}

/// Whether a value of the pattern's type may fail to match it.
fn is_refutable(pattern: &Pattern) -> bool {
    match pattern {
        Pattern::Any | Pattern::Bind(_) => false,
        Pattern::Record(parts) | Pattern::Array(parts) => parts.iter().any(is_refutable),
        Pattern::Constant(_) | Pattern::Bytes(_) | Pattern::OwnId | Pattern::Equal(_) | Pattern::Tag(..) => true,
    }
}

fn allocates(body: &Body, entry: BlockId) -> bool {
    region_blocks(body, entry).into_iter().any(|block| {
        body.blocks[block.0 as usize].instructions.iter().any(|instruction| {
            matches!(instruction.op, Op::Allocate(_) | Op::CallFunction { .. } | Op::CallExtern { .. })
        })
    })
}
