//! Speculative evaluation of a communication before any instance commits to it: the message of an `out`, the match of
//! an `in`. Regions run here, and their registers and slots are cleared afterwards. Only the code of a region changes
//! reference counts.

use crate::code::{BranchCode, Inst, OperandCode, OperationCode, PassedCode, PayloadCode, Pc, RegionCode};
use crate::datum::Datum;
use crate::execute::{LocalContext, StopReason, Trap};
use crate::frame::resolve;
use crate::matching::{Matcher, bind, references};
use crate::step::{StepContext, channel_of};
use crate::values::{DataView, ValueRef};
use quaject_esp_ir::ir::{ChannelId, Fault, MemoryMode};

impl<'a> StepContext<'a> {
    /// The message of a sender's open branch, as data of the environment; none if its evaluation faults. The state is
    /// as before.
    pub(crate) fn message(&mut self, sender: u32, branch: u32) -> Option<(ChannelId, Vec<Datum>)> {
        let code = self.open(sender, branch)?;
        let channel = channel_of(code)?;
        let before = self.state.clone();
        let message = self.evaluate_message(sender, code).ok().and_then(|_| self.datums(sender, channel).ok());
        *self.state = before;
        Some((channel, message?))
    }

    /// Evaluates the message of an `out`; its values are then in `parts`.
    pub(crate) fn evaluate_message(
        &mut self,
        sender: u32,
        branch: &'a BranchCode,
    ) -> Result<&'a [PassedCode], Box<Trap>> {
        let body = self.body(sender);
        let passed: &'a [PassedCode] = match &branch.operation {
            OperationCode::Out { payload: PayloadCode::Ready(passed), .. } => passed,
            OperationCode::Out { payload: PayloadCode::Region(region), .. } => {
                let pc = self.run_region(sender, region)?;
                match &body.instructions[pc as usize] {
                    Inst::Result(passed) => passed,
                    _ => unreachable!("regions end in results"),
                }
            }
            OperationCode::In { .. } | OperationCode::After { .. } => unreachable!("only an `out` has a message"),
        };
        let frame = &self.state.instances[sender as usize].frame;
        let trap = |fault| Box::new(Trap::at(fault, branch.location));
        self.work.parts.clear();
        let view = DataView { program: self.program, layouts: &self.code.layouts, pools: &self.state.pools };
        for value in passed {
            let part = match &value.value.operand {
                OperandCode::Register(register) => ValueRef::Scalar(frame.registers[*register as usize]),
                OperandCode::Place(place) => ValueRef::Memory(resolve(&self.state.pools, place, frame).map_err(trap)?),
            };
            if self.program.memory == MemoryMode::Manual {
                let mut objects = Vec::new();
                references(view, value.value.ty, part, &frame.memory, &mut objects);
                if objects.iter().any(|(pool, object)| self.state.pools.count(*pool, *object) == 0) {
                    return Err(trap(Fault::Memory));
                }
            }
            self.work.parts.push(part);
        }
        Ok(passed)
    }

    /// Runs a region. Returns the position of its `Result`.
    fn run_region(&mut self, instance: u32, region: &RegionCode) -> Result<Pc, Box<Trap>> {
        let body = self.body(instance);
        let mut context = LocalContext {
            program: self.program,
            code: self.code,
            checks: self.checks,
            pools: &mut self.state.pools,
            scratch: &mut self.work.scratch,
            environment: &mut *self.environment,
            own: instance,
        };
        let mut fuel = context.scratch.region_fuel_limit;
        match context.run(body, &mut self.state.instances[instance as usize].frame, region.entry, &mut fuel) {
            StopReason::Value(pc) => Ok(pc),
            StopReason::Trap(trap) => Err(trap),
            StopReason::Fuel(at) => {
                // Counts as a match, as a fault does. The engine that set the limit checks `fuel_exhausted`.
                self.work.scratch.region_fuel_exhausted = true;
                Err(Box::new(Trap::at(Fault::Overflow, body.locations[at as usize])))
            }
            StopReason::Wait(_)
            | StopReason::Yield(_)
            | StopReason::End
            | StopReason::Exit(_)
            | StopReason::Native(_)
            | StopReason::Enter(_)
            | StopReason::Leave(_) => {
                unreachable!("regions end in results or faults")
            }
        }
    }

    /// Evaluates a guard or condition.
    pub(crate) fn evaluate_condition(&mut self, instance: u32, region: &RegionCode) -> Result<bool, Box<Trap>> {
        let pc = self.run_region(instance, region);
        let body = self.body(instance);
        let frame = &mut self.state.instances[instance as usize].frame;
        let result = pc.map(|pc| match &body.instructions[pc as usize] {
            Inst::Result(passed) => match passed.first().map(|passed| &passed.value.operand) {
                Some(OperandCode::Register(register)) => frame.registers[*register as usize] != 0,
                Some(OperandCode::Place(_)) | None => unreachable!("conditions are `bool` values"),
            },
            _ => unreachable!("regions end in results"),
        });
        frame.clear_region(region);
        result
    }

    /// Whether the message in `parts` matches an `in`, conditions included. Faults count as a match.
    pub(crate) fn try_match(&mut self, source: &[u8], receiver: u32, branch: &BranchCode) -> bool {
        match self.capture(source, receiver, branch) {
            Ok(true) => {}
            Ok(false) => return false,
            Err(_) => return true,
        }
        let OperationCode::In { condition: Some(region), .. } = &branch.operation else { return true };
        let view = DataView { program: self.program, layouts: &self.code.layouts, pools: &self.state.pools };
        let frame = &mut self.state.instances[receiver as usize].frame;
        bind(view, &self.work.captures, source, frame, &region.parameters);
        self.evaluate_condition(receiver, region).unwrap_or(true)
    }

    /// Matches the message in `parts` against the patterns of an `in`. What they bind is then in `captures`.
    pub(crate) fn capture(&mut self, source: &[u8], receiver: u32, branch: &BranchCode) -> Result<bool, Fault> {
        let OperationCode::In { channel, patterns, .. } = &branch.operation else {
            unreachable!("only an `in` has patterns")
        };
        let view = DataView { program: self.program, layouts: &self.code.layouts, pools: &self.state.pools };
        let receiver_frame = &self.state.instances[receiver as usize].frame;
        let matcher = Matcher { view, source, receiver: receiver_frame, own: receiver };
        let types = &self.program.channels[channel.0 as usize].payload;
        self.work.captures.clear();
        for ((pattern, ty), part) in patterns.iter().zip(types).zip(&self.work.parts) {
            if !matcher.matches(pattern, *ty, *part, &mut self.work.captures)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Whether an `in` has a condition that allocates; the objects stay allocated if the condition faults.
pub(crate) fn condition_changes_pools(branch: &BranchCode) -> bool {
    match &branch.operation {
        OperationCode::In { condition: Some(region), .. } => region.changes_pools,
        OperationCode::In { condition: None, .. } | OperationCode::Out { .. } | OperationCode::After { .. } => false,
    }
}
