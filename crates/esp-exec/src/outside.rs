//! The program and the world: what a branch on an external channel, or one that waits for a time, finds there, and how
//! messages come in and go out. Knows no drivers.

use crate::code::{Code, OperationCode};
use crate::datum::{Datum, conforms};
use crate::execute::Trap;
use crate::matching::{message_parts, references, release_all};
use crate::report::FaultReport;
use crate::step::{Outside, Scene, Workspace, channel_of, report};
use crate::store::{Pools, Space, Spot, View, objects_needed, write_datum};
use crate::trial::condition_changes_pools;
use crate::world::{Offer, Readiness};
use quaject_esp_ir::ir::{ChannelId, Fault, PoolId, Program};

/// What a channel that the world writes offers to one branch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Supply {
    /// A message that matches.
    Matching,
    /// A message that does not match.
    Refused,
    /// A message that needs an object of an empty pool.
    Starved,
    Pending,
    Closed,
}

impl<'a> Scene<'a> {
    /// Whether an open branch on an external channel or a time can commit.
    pub(crate) fn can_commit_outside(&mut self, outside: Outside, instance: u32, branch: u32) -> bool {
        let Some(branch_code) = self.open(instance, branch) else { return false };
        if outside == Outside::AsTraced {
            return false;
        }
        match &branch_code.operation {
            OperationCode::In { channel, .. } if !self.is_internal(*channel) => {
                self.supply(instance, branch) == Supply::Matching
            }
            OperationCode::Out { channel, .. } if !self.is_internal(*channel) => {
                if self.state.closed[channel.0 as usize] {
                    return false;
                }
                match self.world.readiness(*channel) {
                    Readiness::Ready => true,
                    Readiness::Busy => false,
                    Readiness::Closed => {
                        self.state.closed[channel.0 as usize] = true;
                        false
                    }
                }
            }
            OperationCode::After { .. } => {
                let deadline_ns = self.state.instances[instance as usize].branches[branch as usize].deadline_ns;
                self.world.now_ns() >= deadline_ns
            }
            OperationCode::In { .. } | OperationCode::Out { .. } => false,
        }
    }

    /// What the world offers to a branch that reads from it.
    pub(crate) fn supply(&mut self, instance: u32, branch: u32) -> Supply {
        let Some(branch_code) = self.open(instance, branch) else { return Supply::Pending };
        let OperationCode::In { channel, .. } = &branch_code.operation else { return Supply::Pending };
        if self.state.closed[channel.0 as usize] {
            return Supply::Closed;
        }
        let message = match self.world.peek(*channel) {
            Offer::Message(message) => message,
            Offer::Pending => return Supply::Pending,
            Offer::Closed => {
                self.state.closed[channel.0 as usize] = true;
                return Supply::Closed;
            }
        };
        let before = condition_changes_pools(branch_code).then(|| self.state.pools.clone());
        match self.work.lay_out(self.program, self.code, &mut self.state.pools, *channel, message) {
            Ok(true) => {}
            Ok(false) => return Supply::Starved,
            // Not a message of this channel: it is taken, and the fault raised then.
            Err(_) => return Supply::Matching,
        }
        let outside = std::mem::take(&mut self.work.outside);
        let matches = self.try_match(&outside, instance, branch_code);
        self.work.outside = outside;
        match before {
            Some(pools) => self.state.pools = pools,
            None => self.give_back(*channel).expect("the objects of a message are held by it alone"),
        }
        if matches { Supply::Matching } else { Supply::Refused }
    }

    /// Releases the message that was laid out last.
    fn give_back(&mut self, channel: ChannelId) -> Result<(), Fault> {
        let view = View { program: self.program, layouts: &self.code.layouts, pools: &self.state.pools };
        let mut objects: Vec<(PoolId, u32)> = Vec::new();
        for (ty, part) in self.program.channels[channel.0 as usize].payload.iter().zip(&self.work.parts) {
            references(view, *ty, *part, &self.work.outside, &mut objects);
        }
        release_all(self.program, &self.code.layouts, &mut self.state.pools, &objects)
    }

    pub(crate) fn take_from_world(&mut self, instance: u32, branch: u32) -> Result<(), Box<FaultReport>> {
        let branch = self.branch(instance, branch);
        let channel = channel_of(branch).expect("a message comes on a channel");
        let trap = |fault| report(instance, Trap::at(fault, branch.location), Some(channel));
        let Offer::Message(message) = self.world.peek(channel) else {
            unreachable!("the message stays on offer until it is taken")
        };
        self.work.lay_out(self.program, self.code, &mut self.state.pools, channel, message).map_err(trap)?;
        let outside = std::mem::take(&mut self.work.outside);
        let received = self.receive(&outside, instance, branch);
        self.work.outside = outside;
        received?;
        self.give_back(channel).map_err(trap)?;
        self.world.take(channel);
        self.leave(instance, branch);
        Ok(())
    }

    /// The message in `parts` as the world sees it.
    pub(crate) fn datums(&self, sender: u32, channel: ChannelId) -> Result<Vec<Datum>, Fault> {
        let view = View { program: self.program, layouts: &self.code.layouts, pools: &self.state.pools };
        let memory = &self.state.instances[sender as usize].frame.memory;
        let types = &self.program.channels[channel.0 as usize].payload;
        types.iter().zip(&self.work.parts).map(|(ty, part)| view.datum(*ty, *part, memory)).collect()
    }

    pub(crate) fn give_to_world(&mut self, instance: u32, branch: u32) -> Result<(), Box<FaultReport>> {
        let branch = self.branch(instance, branch);
        let channel = channel_of(branch).expect("a message goes on a channel");
        let passed = self.evaluate(instance, branch).map_err(|trap| report(instance, *trap, Some(channel)))?;
        let message = self.datums(instance, channel);
        let message = message.map_err(|fault| report(instance, Trap::at(fault, branch.location), Some(channel)))?;
        self.give(instance, passed, branch)?;
        self.world.put(channel, &message);
        self.leave(instance, branch);
        Ok(())
    }
}

impl Workspace {
    /// Lays a message from outside out in memory, taking objects for its boxed parts; false if a pool has too few.
    fn lay_out(
        &mut self,
        program: &Program,
        code: &Code,
        pools: &mut Pools,
        channel: ChannelId,
        message: &[Datum],
    ) -> Result<bool, Fault> {
        let types = &program.channels[channel.0 as usize].payload;
        let fits =
            types.len() == message.len() && types.iter().zip(message).all(|(ty, datum)| conforms(program, *ty, datum));
        if !fits {
            return Err(Fault::Range);
        }
        if !pools.pools.is_empty() {
            let mut needed = vec![0; pools.pools.len()];
            types.iter().zip(message).for_each(|(ty, datum)| objects_needed(program, *ty, datum, &mut needed));
            if needed.iter().zip(&pools.pools).any(|(needed, pool)| *needed > pool.free) {
                return Ok(false);
            }
        }
        let view = View { program, layouts: &code.layouts, pools };
        self.parts.clear();
        let size = message_parts(view, types, &mut self.parts);
        self.outside.clear();
        self.outside.resize(size, 0);
        let mut at = 0;
        for (ty, datum) in types.iter().zip(message) {
            let spot = Spot { space: Space::Frame, at };
            write_datum(program, &code.layouts, pools, &mut self.outside, *ty, spot, datum)?;
            at += code.layouts.size(*ty);
        }
        Ok(true)
    }
}
