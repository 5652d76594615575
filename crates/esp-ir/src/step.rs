//! What a program does: the states it can be in and the steps it can take from each (reference, section 8). The one
//! definition of the semantics; schedules, the replayer and the checker only choose among these steps.
//!
//! ```text
//!   Running(pc) --local--> Waiting(wait) --communicate, from/to world, after, else--> Running(pc)
//!        \---local: exit, fault: the program is over;   end: Ended;   yield: Running(pc)
//! ```
//!
//! From one operation to the next is one step, as nothing another instance does can be seen in between. While an
//! instance waits, what its regions would compute is tried and taken back without a trace.

use crate::code::{
    BranchCode, Code, GuardCode, Inst, OperationCode, PassedCode, PayloadCode, Pc, RegionCode, WaitCode,
};
use crate::datum::{Datum, conforms};
pub use crate::execute::Checks;
use crate::execute::{Context, Frame, Scratch, Stop, Trap};
use crate::ir::{AltOrder, Boundary, ChannelId, Fault, Location, MemoryMode, PoolId, Program, Transfer};
use crate::matching::{Capture, Matcher, bind, captured_objects, message_parts, references, release_all};
use crate::report::FaultReport;
use crate::store::{Part, Pools, Space, Spot, View, objects_needed, write_datum};
pub use crate::trace::Step;
use crate::world::{Offer, Readiness, World};
use std::sync::Arc;

/// Everything a program's future depends on, but for the world. Equal states have equal futures.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct State {
    pub(crate) instances: Vec<Instance>,
    pub(crate) pools: Pools,
    /// Per channel: whether the world has closed it.
    pub(crate) closed: Vec<bool>,
    /// Who was interrupted within its own code; nobody else may run.
    pub(crate) unfinished: Option<u32>,
    /// Free objects per pool when the step under way began; empty between steps.
    free_before: Vec<u32>,
}

/// One running process.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Instance {
    pub(crate) control: Control,
    pub(crate) frame: Frame,
    /// While waiting: one per branch.
    pub(crate) branches: Vec<BranchState>,
}

/// Where an instance stands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Control {
    /// It can run its own code.
    Running {
        /// Where, in an order of its own for each process.
        at: u32,
    },
    /// At an operation.
    Waiting {
        /// Which of the process's waits, by order of blocks.
        wait: u32,
    },
    /// At the end of its text.
    Ended,
}

/// One branch of the operation an instance waits at.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct BranchState {
    pub(crate) open: bool,
    /// Of an `after`: when its time has passed.
    pub(crate) deadline_ns: i64,
}

/// What a step has led to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Effect {
    /// The program goes on.
    Done,
    /// The fuel was used up within the step; the same step goes on with it.
    Unfinished,
    /// The program has ended.
    Exited(u8),
    /// The program has been stopped.
    Faulted(Box<FaultReport>),
}

/// Whether the world and the clock are asked, or taken to be as a recorded trace says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outside {
    /// Asked.
    Asked,
    /// Nothing is ready outside but what the trace says: `else` and lower branches of a `pri alt` do not look there,
    /// and an `after` may be taken at any time.
    AsTraced,
}

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

/// The program takes more memory than an engine here will give it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TooLarge {
    /// How much, in bytes.
    pub bytes: usize,
}

impl std::fmt::Display for TooLarge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the program needs {} bytes of memory, more than {MOST_BYTES}", self.bytes)
    }
}

impl std::error::Error for TooLarge {}

const MOST_BYTES: usize = 1 << 32;

/// A program ready to take steps.
pub struct Machine<'p> {
    pub(crate) program: &'p Program,
    pub(crate) code: Arc<Code>,
    checks: Checks,
    scratch: Scratch,
    /// The values of the message at hand, and the memory of one from outside.
    parts: Vec<Part>,
    outside: Vec<u8>,
    captures: Vec<Capture>,
    /// Waiting instances of which a guard has opened since they were last asked for.
    pub(crate) reopened: Vec<u32>,
}

impl<'p> Machine<'p> {
    /// Prepares a verified program.
    pub fn new(program: &'p Program, checks: Checks) -> Result<Machine<'p>, TooLarge> {
        let code = Code::new(program);
        let bytes = code.state_bytes(program);
        if bytes > MOST_BYTES {
            return Err(TooLarge { bytes });
        }
        Ok(Machine {
            program,
            scratch: Scratch::new(&code),
            code: Arc::new(code),
            checks,
            parts: Vec::new(),
            outside: Vec::new(),
            captures: Vec::new(),
            reopened: Vec::new(),
        })
    }

    /// The state in which all instances are at their first statement.
    pub fn start(&self) -> State {
        let instance = |process: &crate::ir::ProcessId| Instance {
            control: Control::Running { at: 0 },
            frame: Frame::new(&self.code.processes[process.0 as usize]),
            branches: Vec::new(),
        };
        State {
            instances: self.code.instances.iter().map(|(process, _)| instance(process)).collect(),
            pools: Pools::new(&self.program.types, &self.code.layouts),
            closed: vec![false; self.program.channels.len()],
            unfinished: None,
            free_before: Vec::new(),
        }
    }

    /// IR steps executed so far.
    pub fn executed(&self) -> u64 {
        self.scratch.executed
    }

    pub(crate) fn wait<'c>(&self, code: &'c Code, state: &State, instance: u32) -> Option<&'c WaitCode> {
        let process = code.instances[instance as usize].0;
        match state.instances[instance as usize].control {
            Control::Waiting { wait } => Some(&code.processes[process.0 as usize].waits[wait as usize]),
            Control::Running { .. } | Control::Ended => None,
        }
    }

    /// The wait and branch of a waiting instance, if the branch is there and open.
    fn open<'c>(&self, code: &'c Code, state: &State, instance: u32, branch: u32) -> Option<&'c BranchCode> {
        if instance as usize >= state.instances.len() {
            return None;
        }
        let wait = self.wait(code, state, instance)?;
        let open = state.instances[instance as usize].branches.get(branch as usize)?.open;
        if open { wait.branches.get(branch as usize) } else { None }
    }

    /// All steps possible now, in order.
    pub fn enabled(&mut self, state: &mut State, world: &mut dyn World) -> Vec<Step> {
        let code = Arc::clone(&self.code);
        if let Some(instance) = state.unfinished {
            return vec![Step::Local { instance }];
        }
        let mut candidates = Vec::new();
        for instance in 0..state.instances.len() as u32 {
            if let Control::Running { .. } = state.instances[instance as usize].control {
                candidates.push(Step::Local { instance });
            }
            let Some(wait) = self.wait(&code, state, instance) else { continue };
            for (branch, branch_code) in wait.branches.iter().enumerate() {
                let branch = branch as u32;
                match &branch_code.operation {
                    OperationCode::In { channel, .. } if self.is_internal(*channel) => {}
                    OperationCode::In { .. } => candidates.push(Step::FromWorld { instance, branch }),
                    OperationCode::Out { channel, .. } if self.is_internal(*channel) => {
                        for receiver in 0..state.instances.len() as u32 {
                            let Some(wait) = self.wait(&code, state, receiver) else { continue };
                            candidates.extend((0..wait.branches.len() as u32).map(|receiver_branch| {
                                Step::Communicate { sender: instance, sender_branch: branch, receiver, receiver_branch }
                            }));
                        }
                    }
                    OperationCode::Out { .. } => candidates.push(Step::ToWorld { instance, branch }),
                    OperationCode::After { .. } => candidates.push(Step::After { instance, branch }),
                }
            }
            if wait.otherwise.is_some() {
                candidates.push(Step::Else { instance });
            }
        }
        candidates.retain(|step| self.is_possible(*step, state, world, Outside::Asked));
        candidates
    }

    pub(crate) fn is_internal(&self, channel: ChannelId) -> bool {
        match self.program.channels[channel.0 as usize].boundary {
            Boundary::Internal => true,
            Boundary::ToWorld | Boundary::FromWorld => false,
        }
    }

    /// Whether the program may take this step now. Any step may be asked for. The state is left as it was, but that
    /// a channel seen closed is closed.
    pub fn is_possible(&mut self, step: Step, state: &mut State, world: &mut dyn World, outside: Outside) -> bool {
        match step {
            Step::Local { instance } => {
                let running = match state.instances.get(instance as usize).map(|instance| instance.control) {
                    Some(Control::Running { .. }) => true,
                    Some(Control::Waiting { .. } | Control::Ended) | None => false,
                };
                running && state.unfinished.is_none_or(|unfinished| unfinished == instance)
            }
            _ if state.unfinished.is_some() => false,
            Step::Communicate { sender, sender_branch, receiver, receiver_branch } => {
                let (from, to) = ((sender, sender_branch), (receiver, receiver_branch));
                self.can_meet(state, world, from, to)
                    && self.is_first(state, world, outside, sender, sender_branch)
                    && self.is_first(state, world, outside, receiver, receiver_branch)
            }
            Step::FromWorld { instance, branch } | Step::ToWorld { instance, branch } => {
                self.can_commit_outside(state, world, Outside::Asked, instance, branch)
                    && step == self.outside_step(instance, branch, state)
                    && self.is_first(state, world, outside, instance, branch)
            }
            Step::After { instance, branch } => {
                let code = Arc::clone(&self.code);
                let due = match self.open(&code, state, instance, branch).map(|branch| &branch.operation) {
                    Some(OperationCode::After { .. }) => match outside {
                        Outside::Asked => self.can_commit_outside(state, world, outside, instance, branch),
                        Outside::AsTraced => true,
                    },
                    Some(OperationCode::In { .. } | OperationCode::Out { .. }) | None => false,
                };
                due && self.is_first(state, world, outside, instance, branch)
            }
            Step::Else { instance } => {
                let code = Arc::clone(&self.code);
                let wait = state.instances.get(instance as usize).and_then(|_| self.wait(&code, state, instance));
                wait.is_some_and(|wait| {
                    wait.otherwise.is_some()
                        && (0..wait.branches.len() as u32)
                            .all(|branch| !self.can_commit(state, world, outside, instance, branch))
                })
            }
        }
    }

    /// The step that an open branch on an external channel or a time takes.
    pub(crate) fn outside_step(&self, instance: u32, branch: u32, state: &State) -> Step {
        match self.open(&self.code, state, instance, branch).map(|branch| &branch.operation) {
            Some(OperationCode::In { .. }) => Step::FromWorld { instance, branch },
            Some(OperationCode::Out { .. }) => Step::ToWorld { instance, branch },
            Some(OperationCode::After { .. }) | None => Step::After { instance, branch },
        }
    }

    /// Whether no earlier branch of a `pri alt` can commit.
    pub(crate) fn is_first(
        &mut self,
        state: &mut State,
        world: &mut dyn World,
        outside: Outside,
        instance: u32,
        branch: u32,
    ) -> bool {
        let code = Arc::clone(&self.code);
        match self.wait(&code, state, instance).map(|wait| wait.order) {
            Some(AltOrder::Priority) => {
                (0..branch).all(|earlier| !self.can_commit(state, world, outside, instance, earlier))
            }
            Some(AltOrder::Fair) | None => true,
        }
    }

    /// Whether a branch is open and what it waits for is there.
    fn can_commit(
        &mut self,
        state: &mut State,
        world: &mut dyn World,
        outside: Outside,
        instance: u32,
        branch: u32,
    ) -> bool {
        let code = Arc::clone(&self.code);
        let Some(branch_code) = self.open(&code, state, instance, branch) else { return false };
        let (channel, sends) = match &branch_code.operation {
            OperationCode::In { channel, .. } => (*channel, false),
            OperationCode::Out { channel, .. } => (*channel, true),
            OperationCode::After { .. } => return self.can_commit_outside(state, world, outside, instance, branch),
        };
        if !self.is_internal(channel) {
            return self.can_commit_outside(state, world, outside, instance, branch);
        }
        for partner in 0..state.instances.len() as u32 {
            let branches = self.wait(&code, state, partner).map_or(0, |wait| wait.branches.len() as u32);
            for other in 0..branches {
                let (own, other) = ((instance, branch), (partner, other));
                let (from, to) = if sends { (own, other) } else { (other, own) };
                if self.can_meet(state, world, from, to) {
                    return true;
                }
            }
        }
        false
    }

    /// Whether an open branch on an external channel or a time can commit.
    pub(crate) fn can_commit_outside(
        &mut self,
        state: &mut State,
        world: &mut dyn World,
        outside: Outside,
        instance: u32,
        branch: u32,
    ) -> bool {
        let code = Arc::clone(&self.code);
        let Some(branch_code) = self.open(&code, state, instance, branch) else { return false };
        if outside == Outside::AsTraced {
            return false;
        }
        match &branch_code.operation {
            OperationCode::In { channel, .. } if !self.is_internal(*channel) => {
                self.supply(state, world, instance, branch) == Supply::Matching
            }
            OperationCode::Out { channel, .. } if !self.is_internal(*channel) => {
                if state.closed[channel.0 as usize] {
                    return false;
                }
                match world.readiness(*channel) {
                    Readiness::Ready => true,
                    Readiness::Busy => false,
                    Readiness::Closed => {
                        state.closed[channel.0 as usize] = true;
                        false
                    }
                }
            }
            OperationCode::After { .. } => {
                let deadline_ns = state.instances[instance as usize].branches[branch as usize].deadline_ns;
                world.now_ns() >= deadline_ns
            }
            OperationCode::In { .. } | OperationCode::Out { .. } => false,
        }
    }

    /// Whether a sender's and a receiver's branch, both open, can meet: same channel, message and pattern match. A
    /// payload or condition that would fault matches; the fault is raised when the step is taken.
    pub(crate) fn can_meet(
        &mut self,
        state: &mut State,
        world: &mut dyn World,
        (sender, sender_branch): (u32, u32),
        (receiver, receiver_branch): (u32, u32),
    ) -> bool {
        let code = Arc::clone(&self.code);
        if sender == receiver {
            return false;
        }
        let Some(out) = self.open(&code, state, sender, sender_branch) else { return false };
        let Some(input) = self.open(&code, state, receiver, receiver_branch) else { return false };
        let payload = match (&out.operation, &input.operation) {
            (OperationCode::Out { channel: to, payload }, OperationCode::In { channel: from, .. })
                if to == from && self.is_internal(*to) =>
            {
                payload
            }
            (OperationCode::Out { .. } | OperationCode::In { .. } | OperationCode::After { .. }, _) => return false,
        };
        let region = match payload {
            PayloadCode::Ready(_) => None,
            PayloadCode::Region(region) => Some(region),
        };
        let before = region.filter(|region| region.changes_pools).map(|_| state.pools.clone());
        let matches = match self.evaluate(&code, state, world, sender, out) {
            Err(_) => true,
            Ok(_) => {
                let mut frame = std::mem::take(&mut state.instances[sender as usize].frame);
                let matches = self.try_match(&code, state, world, &frame.memory, receiver, input);
                std::mem::swap(&mut state.instances[sender as usize].frame, &mut frame);
                matches
            }
        };
        if let Some(region) = region {
            wipe(region, &mut state.instances[sender as usize].frame);
        }
        if let Some(pools) = before {
            state.pools = pools;
        }
        matches
    }

    /// Evaluates the message of an `out`; its values are then in `self.parts`.
    fn evaluate<'c>(
        &mut self,
        code: &'c Code,
        state: &mut State,
        world: &mut dyn World,
        sender: u32,
        branch: &'c BranchCode,
    ) -> Result<&'c [PassedCode], Box<Trap>> {
        let body = &code.processes[code.instances[sender as usize].0.0 as usize];
        let passed: &'c [PassedCode] = match &branch.operation {
            OperationCode::Out { payload: PayloadCode::Ready(passed), .. } => passed,
            OperationCode::Out { payload: PayloadCode::Region(region), .. } => {
                let pc = self.run_region(code, state, world, sender, region)?;
                match &body.instructions[pc as usize] {
                    Inst::Result(passed) => passed,
                    _ => unreachable!("regions end in results"),
                }
            }
            OperationCode::In { .. } | OperationCode::After { .. } => unreachable!("only an `out` has a message"),
        };
        let frame = &state.instances[sender as usize].frame;
        let trap = |fault| Box::new(Trap { fault, location: branch.location, name: None });
        self.parts.clear();
        let view = View { program: self.program, layouts: &code.layouts, pools: &state.pools };
        for value in passed {
            let part = match &value.value.operand {
                crate::code::OperandCode::Register(register) => Part::Scalar(frame.registers[*register as usize]),
                crate::code::OperandCode::Place(place) => {
                    Part::Memory(crate::execute::resolve(&state.pools, place, frame).map_err(trap)?)
                }
            };
            if self.program.memory == MemoryMode::Manual {
                let mut objects = Vec::new();
                references(view, value.value.ty, part, &frame.memory, &mut objects);
                if objects.iter().any(|(pool, object)| state.pools.count(*pool, *object) == 0) {
                    return Err(trap(Fault::Memory));
                }
            }
            self.parts.push(part);
        }
        Ok(passed)
    }

    /// Runs a region to its result's position.
    fn run_region(
        &mut self,
        code: &Code,
        state: &mut State,
        world: &mut dyn World,
        instance: u32,
        region: &RegionCode,
    ) -> Result<Pc, Box<Trap>> {
        let body = &code.processes[code.instances[instance as usize].0.0 as usize];
        let mut context = Context {
            program: self.program,
            code,
            checks: self.checks,
            pools: &mut state.pools,
            scratch: &mut self.scratch,
            world,
            own: instance,
        };
        let mut fuel = u64::MAX;
        match context.run(body, &mut state.instances[instance as usize].frame, region.entry, &mut fuel) {
            Stop::Value(pc) => Ok(pc),
            Stop::Trap(trap) => Err(trap),
            Stop::Wait(_) | Stop::Yield(_) | Stop::End | Stop::Exit(_) | Stop::Fuel(_) => {
                unreachable!("regions end in results or faults")
            }
        }
    }

    /// The `bool` of a region.
    fn decide(
        &mut self,
        code: &Code,
        state: &mut State,
        world: &mut dyn World,
        instance: u32,
        region: &RegionCode,
    ) -> Result<bool, Box<Trap>> {
        let pc = self.run_region(code, state, world, instance, region);
        let body = &code.processes[code.instances[instance as usize].0.0 as usize];
        let frame = &mut state.instances[instance as usize].frame;
        let result = pc.map(|pc| match &body.instructions[pc as usize] {
            Inst::Result(passed) => match passed.first().map(|passed| &passed.value.operand) {
                Some(crate::code::OperandCode::Register(register)) => frame.registers[*register as usize] != 0,
                Some(crate::code::OperandCode::Place(_)) | None => unreachable!("conditions are `bool` values"),
            },
            _ => unreachable!("regions end in results"),
        });
        wipe(region, frame);
        result
    }

    /// Whether the message in `self.parts` matches an `in`, conditions included. Faults count as a match.
    fn try_match(
        &mut self,
        code: &Code,
        state: &mut State,
        world: &mut dyn World,
        source: &[u8],
        receiver: u32,
        branch: &BranchCode,
    ) -> bool {
        match self.capture(code, state, source, receiver, branch) {
            Ok(true) => {}
            Ok(false) => return false,
            Err(_) => return true,
        }
        let OperationCode::In { condition: Some(region), .. } = &branch.operation else { return true };
        let view = View { program: self.program, layouts: &code.layouts, pools: &state.pools };
        let frame = &mut state.instances[receiver as usize].frame;
        bind(view, &self.captures, source, frame, &region.parameters);
        self.decide(code, state, world, receiver, region).unwrap_or(true)
    }

    /// Matches the message in `self.parts` against an `in`'s patterns; what they keep is then in `self.captures`.
    fn capture(
        &mut self,
        code: &Code,
        state: &State,
        source: &[u8],
        receiver: u32,
        branch: &BranchCode,
    ) -> Result<bool, Fault> {
        let OperationCode::In { channel, patterns, .. } = &branch.operation else {
            unreachable!("only an `in` has patterns")
        };
        let view = View { program: self.program, layouts: &code.layouts, pools: &state.pools };
        let receiver_frame = &state.instances[receiver as usize].frame;
        let matcher = Matcher { view, source, receiver: receiver_frame, own: receiver };
        let types = &self.program.channels[channel.0 as usize].payload;
        self.captures.clear();
        for ((pattern, ty), part) in patterns.iter().zip(types).zip(&self.parts) {
            if !matcher.matches(pattern, *ty, *part, &mut self.captures)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// What the world offers to a branch that reads from it.
    pub(crate) fn supply(&mut self, state: &mut State, world: &mut dyn World, instance: u32, branch: u32) -> Supply {
        let code = Arc::clone(&self.code);
        let Some(branch_code) = self.open(&code, state, instance, branch) else { return Supply::Pending };
        let OperationCode::In { channel, .. } = &branch_code.operation else { return Supply::Pending };
        if state.closed[channel.0 as usize] {
            return Supply::Closed;
        }
        let message = match world.peek(*channel) {
            Offer::Message(message) => message,
            Offer::Pending => return Supply::Pending,
            Offer::Closed => {
                state.closed[channel.0 as usize] = true;
                return Supply::Closed;
            }
        };
        match self.lay_out(&code, state, *channel, message) {
            Ok(true) => {}
            Ok(false) => return Supply::Starved,
            // Not a message of this channel: it is taken, and the fault raised then.
            Err(_) => return Supply::Matching,
        }
        let outside = std::mem::take(&mut self.outside);
        let matches = self.try_match(&code, state, world, &outside, instance, branch_code);
        self.outside = outside;
        self.give_back(&code, state, *channel).expect("the objects of a message are held by it alone");
        if matches { Supply::Matching } else { Supply::Refused }
    }

    /// Lays a message from outside out in memory, taking objects for its boxed parts; false if a pool has too few.
    fn lay_out(
        &mut self,
        code: &Code,
        state: &mut State,
        channel: ChannelId,
        message: &[Datum],
    ) -> Result<bool, Fault> {
        let types = &self.program.channels[channel.0 as usize].payload;
        let fits = types.len() == message.len()
            && types.iter().zip(message).all(|(ty, datum)| conforms(self.program, *ty, datum));
        if !fits {
            return Err(Fault::Range);
        }
        if !state.pools.pools.is_empty() {
            let mut needed = vec![0; state.pools.pools.len()];
            types.iter().zip(message).for_each(|(ty, datum)| objects_needed(self.program, *ty, datum, &mut needed));
            if needed.iter().zip(&state.pools.pools).any(|(needed, pool)| *needed > pool.free) {
                return Ok(false);
            }
        }
        let view = View { program: self.program, layouts: &code.layouts, pools: &state.pools };
        self.parts.clear();
        let size = message_parts(view, types, &mut self.parts);
        self.outside.clear();
        self.outside.resize(size, 0);
        let mut at = 0;
        for (ty, datum) in types.iter().zip(message) {
            let spot = Spot { space: Space::Frame, at };
            write_datum(self.program, &code.layouts, &mut state.pools, &mut self.outside, *ty, spot, datum)?;
            at += code.layouts.size(*ty);
        }
        Ok(true)
    }

    /// Releases the message that was laid out last.
    fn give_back(&mut self, code: &Code, state: &mut State, channel: ChannelId) -> Result<(), Fault> {
        let view = View { program: self.program, layouts: &code.layouts, pools: &state.pools };
        let mut objects: Vec<(PoolId, u32)> = Vec::new();
        for (ty, part) in self.program.channels[channel.0 as usize].payload.iter().zip(&self.parts) {
            references(view, *ty, *part, &self.outside, &mut objects);
        }
        release_all(self.program, &code.layouts, &mut state.pools, &objects)
    }

    /// Takes a step that is possible. Local code stops when the fuel is used up.
    pub fn step(&mut self, step: Step, state: &mut State, world: &mut dyn World, fuel: &mut u64) -> Effect {
        let code = Arc::clone(&self.code);
        if state.unfinished.is_none() {
            state.free_before.extend(state.pools.pools.iter().map(|pool| pool.free));
        }
        let result = match step {
            Step::Local { instance } => match self.local(&code, state, world, instance, fuel) {
                Ok(None) => Ok(()),
                Ok(Some(effect)) => return effect,
                Err(report) => Err(report),
            },
            Step::Communicate { sender, sender_branch, receiver, receiver_branch } => {
                self.communicate(&code, state, world, (sender, sender_branch), (receiver, receiver_branch))
            }
            Step::FromWorld { instance, branch } => self.take_from_world(&code, state, world, instance, branch),
            Step::ToWorld { instance, branch } => self.give_to_world(&code, state, world, instance, branch),
            Step::After { instance, branch } => {
                let then = self.branch(&code, state, instance, branch).then;
                go_on(state, instance, then);
                Ok(())
            }
            Step::Else { instance } => {
                let wait = self.wait(&code, state, instance).expect("an `else` is taken while waiting");
                go_on(state, instance, wait.otherwise.expect("only a wait with an `else` takes it"));
                Ok(())
            }
        };
        let result = result.and_then(|()| self.reopen(&code, state, world));
        match result {
            Ok(()) => Effect::Done,
            Err(report) => Effect::Faulted(report),
        }
    }

    fn branch<'c>(&self, code: &'c Code, state: &State, instance: u32, branch: u32) -> &'c BranchCode {
        self.open(code, state, instance, branch).expect("only a possible step is taken")
    }

    /// Runs local code; an effect other than `Done`, or nothing.
    fn local(
        &mut self,
        code: &Code,
        state: &mut State,
        world: &mut dyn World,
        instance: u32,
        fuel: &mut u64,
    ) -> Result<Option<Effect>, Box<FaultReport>> {
        let Control::Running { at } = state.instances[instance as usize].control else {
            unreachable!("only a possible step is taken")
        };
        let body = &code.processes[code.instances[instance as usize].0.0 as usize];
        let mut context = Context {
            program: self.program,
            code,
            checks: self.checks,
            pools: &mut state.pools,
            scratch: &mut self.scratch,
            world,
            own: instance,
        };
        let stop = context.run(body, &mut state.instances[instance as usize].frame, at, fuel);
        state.unfinished = None;
        let control = &mut state.instances[instance as usize].control;
        match stop {
            Stop::Wait(wait) => {
                *control = Control::Waiting { wait };
                self.arrive(code, state, world, instance)?;
            }
            Stop::Yield(at) => *control = Control::Running { at },
            Stop::End => {
                *control = Control::Ended;
                // Nothing of an ended instance matters any more.
                let frame = &mut state.instances[instance as usize].frame;
                frame.registers.fill(0);
                frame.memory.fill(0);
            }
            Stop::Exit(status) => return Ok(Some(Effect::Exited(status))),
            Stop::Trap(trap) => return Err(report(instance, *trap, None)),
            Stop::Fuel(at) => {
                *control = Control::Running { at };
                state.unfinished = Some(instance);
                return Ok(Some(Effect::Unfinished));
            }
            Stop::Value(_) => unreachable!("processes hold results only in regions"),
        }
        Ok(None)
    }

    /// Evaluates the guards and times of an operation just reached, and the message of a plain `out`.
    fn arrive(
        &mut self,
        code: &Code,
        state: &mut State,
        world: &mut dyn World,
        instance: u32,
    ) -> Result<(), Box<FaultReport>> {
        let wait = self.wait(code, state, instance).expect("it has just arrived");
        let mut branches = std::mem::take(&mut state.instances[instance as usize].branches);
        branches.clear();
        for branch in &wait.branches {
            wipe_regions(branch, &mut state.instances[instance as usize].frame);
            let channel = channel_of(branch);
            let open = match &branch.guard {
                GuardCode::Open => true,
                GuardCode::Register(register) => {
                    state.instances[instance as usize].frame.registers[*register as usize] != 0
                }
                GuardCode::Region(region) => self
                    .decide(code, state, world, instance, region)
                    .map_err(|trap| report(instance, *trap, channel))?,
            };
            let deadline_ns = match &branch.operation {
                OperationCode::After { amount, kind, unit_ns } => {
                    let amount = kind.number(state.instances[instance as usize].frame.registers[*amount as usize]);
                    let duration = amount.saturating_mul(i128::from(*unit_ns)).clamp(0, i128::from(i64::MAX));
                    world.now_ns().saturating_add(duration as i64)
                }
                OperationCode::Out { payload: PayloadCode::Ready(_), .. } => {
                    self.evaluate(code, state, world, instance, branch)
                        .map_err(|trap| report(instance, *trap, channel))?;
                    0
                }
                OperationCode::In { .. } | OperationCode::Out { .. } => 0,
            };
            branches.push(BranchState { open, deadline_ns });
        }
        let stuck = wait.otherwise.is_none() && !wait.retries && branches.iter().all(|branch| !branch.open);
        state.instances[instance as usize].branches = branches;
        if stuck {
            let trap = Trap { fault: Fault::Alt, location: wait.location, name: None };
            return Err(report(instance, trap, None));
        }
        Ok(())
    }

    /// Evaluates guards that ask for free objects again if their number has changed.
    fn reopen(&mut self, code: &Code, state: &mut State, world: &mut dyn World) -> Result<(), Box<FaultReport>> {
        let unchanged = state.free_before.iter().zip(&state.pools.pools).all(|(before, pool)| *before == pool.free);
        state.free_before.clear();
        if unchanged {
            return Ok(());
        }
        for instance in 0..state.instances.len() as u32 {
            let Some(wait) = self.wait(code, state, instance).filter(|wait| wait.retries) else { continue };
            let mut opened = false;
            for (number, branch) in wait.branches.iter().enumerate() {
                let GuardCode::Region(region) = &branch.guard else { continue };
                let open = self
                    .decide(code, state, world, instance, region)
                    .map_err(|trap| report(instance, *trap, channel_of(branch)))?;
                let known = &mut state.instances[instance as usize].branches[number].open;
                opened |= open && !*known;
                *known = open;
            }
            if opened {
                self.reopened.push(instance);
            }
        }
        Ok(())
    }

    fn communicate(
        &mut self,
        code: &Code,
        state: &mut State,
        world: &mut dyn World,
        (sender, sender_branch): (u32, u32),
        (receiver, receiver_branch): (u32, u32),
    ) -> Result<(), Box<FaultReport>> {
        let out = self.branch(code, state, sender, sender_branch);
        let input = self.branch(code, state, receiver, receiver_branch);
        let channel = channel_of(out);
        let passed = self.evaluate(code, state, world, sender, out).map_err(|trap| report(sender, *trap, channel))?;
        let frame = std::mem::take(&mut state.instances[sender as usize].frame);
        let received = self.receive(code, state, world, &frame.memory, receiver, input);
        state.instances[sender as usize].frame = frame;
        received?;
        self.give(code, state, sender, passed, out)?;
        go_on(state, sender, out.then);
        go_on(state, receiver, input.then);
        Ok(())
    }

    /// Binds the message in `self.parts` in the receiver, whose binds get counts of their own.
    fn receive(
        &mut self,
        code: &Code,
        state: &mut State,
        world: &mut dyn World,
        source: &[u8],
        receiver: u32,
        branch: &BranchCode,
    ) -> Result<(), Box<FaultReport>> {
        let channel = channel_of(branch);
        let trap = |fault| report(receiver, Trap { fault, location: branch.location, name: None }, channel);
        self.capture(code, state, source, receiver, branch).map_err(trap)?;
        let OperationCode::In { condition, .. } = &branch.operation else { unreachable!("only an `in` receives") };
        if let Some(region) = condition {
            let view = View { program: self.program, layouts: &code.layouts, pools: &state.pools };
            let frame = &mut state.instances[receiver as usize].frame;
            bind(view, &self.captures, source, frame, &region.parameters);
            self.decide(code, state, world, receiver, region).map_err(|trap| report(receiver, *trap, channel))?;
        }
        let view = View { program: self.program, layouts: &code.layouts, pools: &state.pools };
        let objects =
            if state.pools.pools.is_empty() { Vec::new() } else { captured_objects(view, &self.captures, source) };
        bind(view, &self.captures, source, &mut state.instances[receiver as usize].frame, &branch.parameters);
        objects.into_iter().try_for_each(|(pool, object)| state.pools.retain(pool, object)).map_err(trap)
    }

    /// Releases the counts that the giver of a message held for the last time.
    fn give(
        &mut self,
        code: &Code,
        state: &mut State,
        sender: u32,
        passed: &[PassedCode],
        branch: &BranchCode,
    ) -> Result<(), Box<FaultReport>> {
        if state.pools.pools.is_empty() {
            return Ok(());
        }
        let view = View { program: self.program, layouts: &code.layouts, pools: &state.pools };
        let memory = &state.instances[sender as usize].frame.memory;
        let mut objects = Vec::new();
        for (value, part) in passed.iter().zip(&self.parts) {
            match value.transfer {
                Transfer::Keep => {}
                Transfer::Move => references(view, value.value.ty, *part, memory, &mut objects),
            }
        }
        release_all(self.program, &code.layouts, &mut state.pools, &objects)
            .map_err(|fault| report(sender, Trap { fault, location: branch.location, name: None }, channel_of(branch)))
    }

    fn take_from_world(
        &mut self,
        code: &Code,
        state: &mut State,
        world: &mut dyn World,
        instance: u32,
        branch: u32,
    ) -> Result<(), Box<FaultReport>> {
        let branch = self.branch(code, state, instance, branch);
        let channel = channel_of(branch).expect("a message comes on a channel");
        let trap = |fault| report(instance, Trap { fault, location: branch.location, name: None }, Some(channel));
        let Offer::Message(message) = world.peek(channel) else {
            unreachable!("the message stays on offer until it is taken")
        };
        self.lay_out(code, state, channel, message).map_err(trap)?;
        let outside = std::mem::take(&mut self.outside);
        let received = self.receive(code, state, world, &outside, instance, branch);
        self.outside = outside;
        received?;
        self.give_back(code, state, channel).map_err(trap)?;
        world.take(channel);
        go_on(state, instance, branch.then);
        Ok(())
    }

    fn give_to_world(
        &mut self,
        code: &Code,
        state: &mut State,
        world: &mut dyn World,
        instance: u32,
        branch: u32,
    ) -> Result<(), Box<FaultReport>> {
        let branch = self.branch(code, state, instance, branch);
        let channel = channel_of(branch).expect("a message goes on a channel");
        let passed = self
            .evaluate(code, state, world, instance, branch)
            .map_err(|trap| report(instance, *trap, Some(channel)))?;
        let view = View { program: self.program, layouts: &code.layouts, pools: &state.pools };
        let memory = &state.instances[instance as usize].frame.memory;
        let types = &self.program.channels[channel.0 as usize].payload;
        let message: Result<Vec<Datum>, Fault> =
            types.iter().zip(&self.parts).map(|(ty, part)| view.datum(*ty, *part, memory)).collect();
        let message = message
            .map_err(|fault| report(instance, Trap { fault, location: branch.location, name: None }, Some(channel)))?;
        self.give(code, state, instance, passed, branch)?;
        world.put(channel, &message);
        go_on(state, instance, branch.then);
        Ok(())
    }
}

impl State {
    /// How many instances there are.
    pub fn instances(&self) -> u32 {
        self.instances.len() as u32
    }

    /// Where an instance stands.
    pub fn control(&self, instance: u32) -> Control {
        self.instances[instance as usize].control
    }

    /// Free objects of a pool.
    pub fn free_objects(&self, pool: PoolId) -> u32 {
        self.pools.get(pool).free
    }
}

/// The channel of a branch that is an `in` or `out`.
pub(crate) fn channel_of(branch: &BranchCode) -> Option<ChannelId> {
    match &branch.operation {
        OperationCode::In { channel, .. } | OperationCode::Out { channel, .. } => Some(*channel),
        OperationCode::After { .. } => None,
    }
}

fn go_on(state: &mut State, instance: u32, at: Pc) {
    let instance = &mut state.instances[instance as usize];
    instance.control = Control::Running { at };
    instance.branches.clear();
}

/// Takes back everything a region has computed in its frame.
fn wipe(region: &RegionCode, frame: &mut Frame) {
    for register in &region.registers {
        frame.registers[*register as usize] = 0;
    }
    for (offset, size) in &region.slots {
        frame.memory[*offset..*offset + *size].fill(0);
    }
}

fn wipe_regions(branch: &BranchCode, frame: &mut Frame) {
    match &branch.guard {
        GuardCode::Region(region) => wipe(region, frame),
        GuardCode::Open | GuardCode::Register(_) => {}
    }
    match &branch.operation {
        OperationCode::In { condition: Some(region), .. } => wipe(region, frame),
        OperationCode::Out { payload: PayloadCode::Region(region), .. } => wipe(region, frame),
        OperationCode::In { condition: None, .. }
        | OperationCode::Out { payload: PayloadCode::Ready(_), .. }
        | OperationCode::After { .. } => {}
    }
}

fn report(instance: u32, trap: Trap, channel: Option<ChannelId>) -> Box<FaultReport> {
    let location: Location = trap.location;
    Box::new(FaultReport { fault: trap.fault, instance, location, channel, name: trap.name, waits: Vec::new() })
}
