//! Communication with the environment: whether a branch on an external channel or a time can commit, and the transfer
//! of messages in both directions. Knows no drivers.

use crate::code::{Code, OperationCode};
use crate::datum::{Datum, conforms};
use crate::environment::{Offer, Readiness};
use crate::execute::Trap;
use crate::matching::{message_parts, references, release_all};
use crate::pools::{Address, MemorySpace, Pools};
use crate::report::FaultReport;
use crate::speculate::condition_changes_pools;
use crate::step::{EnvironmentMode, StepContext, Workspace, channel_of, report};
use crate::values::{DataView, objects_needed, write_datum};
use quaject_esp_ir::ir::{ChannelId, Fault, PoolId, Program};

/// What a channel from the environment offers to one branch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Input {
    /// A message that matches.
    Matching,
    /// A message that does not match.
    NoMatch,
    /// A message that needs an object of an empty pool.
    PoolExhausted,
    Pending,
    Closed,
}

impl<'a> StepContext<'a> {
    /// Whether an open branch on an external channel or a time can commit.
    pub(crate) fn environment_ready(&mut self, mode: EnvironmentMode, instance: u32, branch: u32) -> bool {
        let Some(branch_code) = self.open(instance, branch) else { return false };
        if mode == EnvironmentMode::AsTraced {
            return false;
        }
        match &branch_code.operation {
            OperationCode::In { channel, .. } if !self.is_internal(*channel) => {
                self.input_for(instance, branch) == Input::Matching
            }
            OperationCode::Out { channel, .. } if !self.is_internal(*channel) => {
                if self.state.closed[channel.0 as usize] {
                    return false;
                }
                match self.environment.readiness(*channel) {
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
                self.environment.now_ns() >= deadline_ns
            }
            OperationCode::In { .. } | OperationCode::Out { .. } => false,
        }
    }

    /// What the environment offers to a branch that receives from it.
    pub(crate) fn input_for(&mut self, instance: u32, branch: u32) -> Input {
        let Some(branch_code) = self.open(instance, branch) else { return Input::Pending };
        let OperationCode::In { channel, .. } = &branch_code.operation else { return Input::Pending };
        if self.state.closed[channel.0 as usize] {
            return Input::Closed;
        }
        let message = match self.environment.peek(*channel) {
            Offer::Message(message) => message,
            Offer::Pending => return Input::Pending,
            Offer::Closed => {
                self.state.closed[channel.0 as usize] = true;
                return Input::Closed;
            }
        };
        let before = condition_changes_pools(branch_code).then(|| self.state.pools.clone());
        match self.work.lay_out_message(self.program, self.code, &mut self.state.pools, *channel, message) {
            Ok(true) => {}
            Ok(false) => return Input::PoolExhausted,
            // A message of the wrong type: the step is enabled, and taking it raises the fault.
            Err(_) => return Input::Matching,
        }
        let message_memory = std::mem::take(&mut self.work.message_memory);
        let matches = self.try_match(&message_memory, instance, branch_code);
        self.work.message_memory = message_memory;
        match before {
            Some(pools) => self.state.pools = pools,
            None => self.release_laid_out(*channel).expect("the objects of a message are held by it alone"),
        }
        if matches { Input::Matching } else { Input::NoMatch }
    }

    /// Releases the message that was laid out last.
    fn release_laid_out(&mut self, channel: ChannelId) -> Result<(), Fault> {
        let view = DataView { program: self.program, layouts: &self.code.layouts, pools: &self.state.pools };
        let mut objects: Vec<(PoolId, u32)> = Vec::new();
        for (ty, part) in self.program.channels[channel.0 as usize].payload.iter().zip(&self.work.parts) {
            references(view, *ty, *part, &self.work.message_memory, &mut objects);
        }
        release_all(self.program, &self.code.layouts, &mut self.state.pools, &objects)
    }

    pub(crate) fn receive_from_environment(&mut self, instance: u32, branch: u32) -> Result<(), Box<FaultReport>> {
        let branch = self.branch(instance, branch);
        let channel = channel_of(branch).expect("a message comes on a channel");
        let trap = |fault| report(instance, Trap::at(fault, branch.location), Some(channel));
        let Offer::Message(message) = self.environment.peek(channel) else {
            unreachable!("the message stays on offer until it is taken")
        };
        self.work.lay_out_message(self.program, self.code, &mut self.state.pools, channel, message).map_err(trap)?;
        let message_memory = std::mem::take(&mut self.work.message_memory);
        let received = self.receive(&message_memory, instance, branch);
        self.work.message_memory = message_memory;
        received?;
        self.release_laid_out(channel).map_err(trap)?;
        self.environment.take(channel);
        self.leave(instance, branch);
        Ok(())
    }

    /// The message in `parts`, as data of the environment.
    pub(crate) fn datums(&self, sender: u32, channel: ChannelId) -> Result<Vec<Datum>, Fault> {
        let view = DataView { program: self.program, layouts: &self.code.layouts, pools: &self.state.pools };
        let memory = &self.state.instances[sender as usize].frame.memory;
        let types = &self.program.channels[channel.0 as usize].payload;
        types.iter().zip(&self.work.parts).map(|(ty, part)| view.datum(*ty, *part, memory)).collect()
    }

    pub(crate) fn send_to_environment(&mut self, instance: u32, branch: u32) -> Result<(), Box<FaultReport>> {
        let branch = self.branch(instance, branch);
        let channel = channel_of(branch).expect("a message goes on a channel");
        let passed = self.evaluate_message(instance, branch).map_err(|trap| report(instance, *trap, Some(channel)))?;
        let message = self.datums(instance, channel);
        let message = message.map_err(|fault| report(instance, Trap::at(fault, branch.location), Some(channel)))?;
        self.release_moved(instance, passed, branch)?;
        self.environment.put(channel, &message);
        self.leave(instance, branch);
        Ok(())
    }
}

impl Workspace {
    /// Writes a message of the environment into memory and allocates its boxed parts; false if a pool has too few
    /// free objects.
    fn lay_out_message(
        &mut self,
        program: &Program,
        code: &Code,
        pools: &mut Pools,
        channel: ChannelId,
        message: &[Datum],
    ) -> Result<bool, Fault> {
        let types = &program.channels[channel.0 as usize].payload;
        let conforms_all =
            types.len() == message.len() && types.iter().zip(message).all(|(ty, datum)| conforms(program, *ty, datum));
        if !conforms_all {
            return Err(Fault::Range);
        }
        if !pools.pools.is_empty() {
            let mut needed = vec![0; pools.pools.len()];
            types.iter().zip(message).for_each(|(ty, datum)| objects_needed(program, *ty, datum, &mut needed));
            if needed.iter().zip(&pools.pools).any(|(needed, pool)| *needed > pool.free) {
                return Ok(false);
            }
        }
        let view = DataView { program, layouts: &code.layouts, pools };
        self.parts.clear();
        let size = message_parts(view, types, &mut self.parts);
        self.message_memory.clear();
        self.message_memory.resize(size, 0);
        let mut at = 0;
        for (ty, datum) in types.iter().zip(message) {
            let address = Address { space: MemorySpace::Frame, at };
            write_datum(program, &code.layouts, pools, &mut self.message_memory, *ty, address, datum)?;
            at += code.layouts.size(*ty);
        }
        Ok(true)
    }
}
