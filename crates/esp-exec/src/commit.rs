//! Takes an enabled step: executes local code, transfers a message, or leaves an operation by a branch. Whether the
//! step is enabled is decided in `enabled`.

use crate::code::{AfterCode, BranchCode, GuardCode, Inst, OperationCode, PassedCode, PayloadCode, Pc};
use crate::execute::{LocalContext, StopReason, Trap};
use crate::fast_path::EntryResult;
use crate::frame::Frame;
use crate::matching::{bind, captured_objects, references, release_all};
use crate::report::FaultReport;
use crate::state::{BranchState, Control};
use crate::step::{Effect, StepContext, channel_of, report};
use crate::trace::Step;
use crate::values::DataView;
use quaject_esp_ir::ir::{Fault, Transfer};

impl<'a> StepContext<'a> {
    /// Takes an enabled step. Local code stops when the fuel is used up.
    pub(crate) fn step(&mut self, step: Step, fuel: &mut u64) -> Effect {
        if self.state.unfinished.is_none() {
            self.state.free_before.extend(self.state.pools.pools.iter().map(|pool| pool.free));
        }
        self.work.reopened.clear();
        self.work.received.clear();
        let result = match step {
            Step::Local { instance } => match self.local(instance, fuel) {
                Ok(None) => Ok(()),
                Ok(Some(effect)) => return effect,
                Err(report) => Err(report),
            },
            Step::Communicate { sender, sender_branch, receiver, receiver_branch } => {
                self.communicate((sender, sender_branch), (receiver, receiver_branch))
            }
            Step::FromEnvironment { instance, branch } => self.receive_from_environment(instance, branch),
            Step::ToEnvironment { instance, branch } => self.send_to_environment(instance, branch),
            Step::After { instance, branch } => {
                self.leave(instance, self.branch(instance, branch));
                Ok(())
            }
            Step::Else { instance } => {
                let wait = self.wait(instance).expect("an `else` is taken while waiting");
                let (at, dead) = wait.otherwise.as_ref().expect("only a wait with an `else` takes it");
                self.resume_at(instance, *at, dead);
                Ok(())
            }
        };
        let result = result.and_then(|()| self.reevaluate_guards());
        match result {
            Ok(()) => {
                self.clear_dangling();
                Effect::Done
            }
            Err(report) => Effect::Faulted(report),
        }
    }

    /// Runs local code. Returns an effect other than `Done`, or none.
    fn local(&mut self, instance: u32, fuel: &mut u64) -> Result<Option<Effect>, Box<FaultReport>> {
        let Control::Running { at } = self.state.instances[instance as usize].control else {
            unreachable!("only an enabled step is taken")
        };
        let stop = self.run_local(instance, at, fuel);
        self.state.unfinished = None;
        let control = &mut self.state.instances[instance as usize].control;
        match stop {
            StopReason::Wait(wait) => {
                *control = Control::Waiting { wait };
                self.evaluate_wait(instance)?;
            }
            StopReason::Yield(at) => *control = Control::Running { at },
            StopReason::End => {
                *control = Control::Ended;
                // All storage of a terminated instance is dead.
                let frame = &mut self.state.instances[instance as usize].frame;
                frame.registers.fill(0);
                frame.memory.fill(0);
            }
            StopReason::Exit(status) => return Ok(Some(Effect::Exited(status))),
            StopReason::Trap(trap) => {
                let process = self.code.instances[instance as usize].0;
                let channel = self.program.channel_at(process, trap.in_process());
                return Err(report(instance, *trap, channel));
            }
            StopReason::Fuel(at) => {
                *control = Control::Running { at };
                self.state.unfinished = Some(instance);
                return Ok(Some(Effect::Unfinished));
            }
            StopReason::Enter(_) | StopReason::Leave(_) => unreachable!("the loop above continues from these"),
            StopReason::Value(_) | StopReason::Native(_) => unreachable!("processes hold results only in regions"),
        }
        Ok(None)
    }

    /// Runs the local code of an instance from a position, with the entries and exits of fast paths in it.
    fn run_local(&mut self, instance: u32, mut at: Pc, fuel: &mut u64) -> StopReason {
        let body = self.body(instance);
        let mut on_path = self.is_on_path(instance).then_some(*fuel);
        let stop = loop {
            let mut context = LocalContext {
                program: self.program,
                code: self.code,
                checks: self.checks,
                pools: &mut self.state.pools,
                scratch: &mut self.work.scratch,
                environment: &mut *self.environment,
                own: instance,
            };
            let frame = &mut self.state.instances[instance as usize].frame;
            match context.run(body, frame, at, fuel) {
                StopReason::Enter(stopped) => {
                    let Inst::Enter(enter) = &body.instructions[stopped as usize] else {
                        unreachable!("execution stopped at this instruction")
                    };
                    let entry = self.enter_path(instance, enter);
                    let runs = &mut self.work.path_runs[enter.path.0 as usize];
                    let edge = match entry {
                        EntryResult::Entered => {
                            runs.entered += 1;
                            self.work.runs.entries += 1;
                            on_path = Some(*fuel);
                            None
                        }
                        EntryResult::Retry => {
                            runs.retried += 1;
                            Some(&enter.later)
                        }
                        EntryResult::Bypassed => {
                            runs.bypassed += 1;
                            Some(&enter.otherwise)
                        }
                    };
                    let frame = &mut self.state.instances[instance as usize].frame;
                    at = edge.map_or(enter.then, |edge| self.work.scratch.follow(edge, frame));
                }
                StopReason::Leave(stopped) => {
                    let Inst::Leave(leave) = &body.instructions[stopped as usize] else {
                        unreachable!("execution stopped at this instruction")
                    };
                    at = self.leave_path(instance, leave);
                    self.work.path_runs[leave.path.0 as usize].leave(leave.exit);
                    self.work.runs.fuel += on_path.take().map_or(0, |before| before.saturating_sub(*fuel));
                }
                stop => break stop,
            }
            if *fuel == 0 {
                break StopReason::Fuel(at);
            }
        };
        self.work.runs.fuel += on_path.map_or(0, |before| before.saturating_sub(*fuel));
        stop
    }

    /// Evaluates the guards and times of an operation on arrival, and the message of a plain `out`.
    fn evaluate_wait(&mut self, instance: u32) -> Result<(), Box<FaultReport>> {
        let wait = self.wait(instance).expect("the instance has just arrived at it");
        let mut branches = std::mem::take(&mut self.state.instances[instance as usize].branches);
        branches.clear();
        for branch in &wait.branches {
            clear_regions(branch, &mut self.state.instances[instance as usize].frame);
            let channel = channel_of(branch);
            let open = match &branch.guard {
                GuardCode::Open => true,
                GuardCode::Register(register) => {
                    self.state.instances[instance as usize].frame.registers[*register as usize] != 0
                }
                GuardCode::Region(region) => {
                    self.evaluate_condition(instance, region).map_err(|trap| report(instance, *trap, channel))?
                }
            };
            let deadline_ns = match &branch.operation {
                OperationCode::After(AfterCode::Time(time)) => {
                    time.after(self.environment.now_ns(), &self.state.instances[instance as usize].frame.registers)
                }
                OperationCode::After(AfterCode::Absolute(time)) => {
                    self.state.instances[instance as usize].frame.registers[*time as usize]
                }
                OperationCode::Out { payload: PayloadCode::Ready(_), .. } => {
                    self.evaluate_message(instance, branch).map_err(|trap| report(instance, *trap, channel))?;
                    0
                }
                OperationCode::In { .. } | OperationCode::Out { .. } => 0,
            };
            branches.push(BranchState { open, deadline_ns });
        }
        // A wait without branches is the end of the process.
        let stuck = wait.otherwise.is_none()
            && !wait.has_pool_guards
            && !branches.is_empty()
            && branches.iter().all(|branch| !branch.open);
        let state = &mut self.state.instances[instance as usize];
        state.branches = branches;
        state.frame.clear(&wait.dead);
        if stuck {
            let trap = Trap::at(Fault::Alt, wait.location);
            return Err(report(instance, trap, None));
        }
        Ok(())
    }

    /// Evaluates guards with `free(T)` again if a number of free objects has changed.
    fn reevaluate_guards(&mut self) -> Result<(), Box<FaultReport>> {
        let unchanged =
            self.state.free_before.iter().zip(&self.state.pools.pools).all(|(before, pool)| *before == pool.free);
        self.state.free_before.clear();
        if unchanged {
            return Ok(());
        }
        for instance in 0..self.state.instances.len() as u32 {
            let Some(wait) = self.wait(instance).filter(|wait| wait.has_pool_guards) else { continue };
            let mut opened = false;
            for (number, branch) in wait.branches.iter().enumerate() {
                let GuardCode::Region(region) = &branch.guard else { continue };
                let open = self
                    .evaluate_condition(instance, region)
                    .map_err(|trap| report(instance, *trap, channel_of(branch)))?;
                let known = &mut self.state.instances[instance as usize].branches[number].open;
                opened |= open && !*known;
                *known = open;
            }
            if opened {
                self.work.reopened.push_back(instance);
            }
        }
        Ok(())
    }

    fn communicate(
        &mut self,
        (sender, sender_branch): (u32, u32),
        (receiver, receiver_branch): (u32, u32),
    ) -> Result<(), Box<FaultReport>> {
        let out = self.branch(sender, sender_branch);
        let input = self.branch(receiver, receiver_branch);
        let channel = channel_of(out);
        let passed = self.evaluate_message(sender, out).map_err(|trap| report(sender, *trap, channel))?;
        let memory = std::mem::take(&mut self.state.instances[sender as usize].frame.memory);
        let received = self.receive(&memory, receiver, input);
        self.state.instances[sender as usize].frame.memory = memory;
        received?;
        self.release_moved(sender, passed, out)?;
        self.leave(sender, out);
        self.leave(receiver, input);
        Ok(())
    }

    /// Binds the message in `parts` in the receiver and retains the objects it binds.
    pub(crate) fn receive(
        &mut self,
        source: &[u8],
        receiver: u32,
        branch: &BranchCode,
    ) -> Result<(), Box<FaultReport>> {
        let channel = channel_of(branch);
        let trap = |fault| report(receiver, Trap::at(fault, branch.location), channel);
        self.capture(source, receiver, branch).map_err(trap)?;
        let OperationCode::In { condition, .. } = &branch.operation else { unreachable!("only an `in` receives") };
        if let Some(region) = condition {
            let view = DataView { program: self.program, layouts: &self.code.layouts, pools: &self.state.pools };
            let frame = &mut self.state.instances[receiver as usize].frame;
            bind(view, &self.work.captures, source, frame, &region.parameters);
            self.evaluate_condition(receiver, region).map_err(|trap| report(receiver, *trap, channel))?;
        }
        let view = DataView { program: self.program, layouts: &self.code.layouts, pools: &self.state.pools };
        let objects = if self.state.pools.pools.is_empty() {
            Vec::new()
        } else {
            captured_objects(view, &self.work.captures, source)
        };
        bind(view, &self.work.captures, source, &mut self.state.instances[receiver as usize].frame, &branch.parameters);
        objects.into_iter().try_for_each(|(pool, object)| self.state.pools.retain(pool, object)).map_err(trap)
    }

    /// Releases the counts of the values that the sender has moved into the message.
    pub(crate) fn release_moved(
        &mut self,
        sender: u32,
        passed: &[PassedCode],
        branch: &BranchCode,
    ) -> Result<(), Box<FaultReport>> {
        if self.state.pools.pools.is_empty() {
            return Ok(());
        }
        let view = DataView { program: self.program, layouts: &self.code.layouts, pools: &self.state.pools };
        let memory = &self.state.instances[sender as usize].frame.memory;
        let mut objects = Vec::new();
        for (value, part) in passed.iter().zip(&self.work.parts) {
            match value.transfer {
                Transfer::Keep => {}
                Transfer::Move => references(view, value.value.ty, *part, memory, &mut objects),
            }
        }
        release_all(self.program, &self.code.layouts, &mut self.state.pools, &objects)
            .map_err(|fault| report(sender, Trap::at(fault, branch.location), channel_of(branch)))
    }
}

fn clear_regions(branch: &BranchCode, frame: &mut Frame) {
    match &branch.guard {
        GuardCode::Region(region) => frame.clear_region(region),
        GuardCode::Open | GuardCode::Register(_) => {}
    }
    match &branch.operation {
        OperationCode::In { condition: Some(region), .. } => frame.clear_region(region),
        OperationCode::Out { payload: PayloadCode::Region(region), .. } => frame.clear_region(region),
        OperationCode::In { condition: None, .. }
        | OperationCode::Out { payload: PayloadCode::Ready(_), .. }
        | OperationCode::After { .. } => {}
    }
}
