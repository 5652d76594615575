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

use crate::code::{BodyCode, BranchCode, Code, OperationCode, PayloadCode, Pc, WaitCode};
use crate::environment::Environment;
pub use crate::execute::Checks;
use crate::execute::{Frame, Scratch, Trap};
use crate::footprint::data_bytes;
use crate::matching::Capture;
use crate::native::{Cell, Native};
use crate::profile::PathCounters;
use crate::report::{FaultReport, Outcome};
use crate::speculate::clear_region;
use crate::store::{Pools, ValueRef};
pub use crate::trace::Step;
use quaject_esp_ir::ir::{Boundary, ChannelId, InstanceId, PoolId, ProcessId, Program};
use quaject_esp_ir::liveness::Dead;
use std::collections::VecDeque;

/// Everything a program's future depends on, but for the world. Equal states have equal futures; what a process will
/// never read again is 0, so that states do not differ by it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct State {
    pub(crate) instances: Vec<Instance>,
    pub(crate) pools: Pools,
    /// Per channel: whether the world has closed it.
    pub(crate) closed: Vec<bool>,
    /// Who was interrupted within its own code; nobody else may run.
    pub(crate) unfinished: Option<u32>,
    /// Free objects per pool when the step under way began; empty between steps.
    pub(crate) free_before: Vec<u32>,
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
    /// On a fast path of another instance, which it was taken along from this wait.
    CapturedByPath {
        /// Which of the process's waits.
        wait: u32,
    },
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
pub enum EnvironmentMode {
    /// Asked.
    Polled,
    /// Nothing is ready outside but what the trace says: `else` and lower branches of a `pri alt` do not look there,
    /// and an `after` may be taken at any time.
    AsTraced,
}

/// The program takes more memory than an engine here will give it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TooLarge {
    /// How much, in bytes.
    pub bytes: usize,
    /// How much it may need, in bytes.
    pub most: usize,
}

impl std::fmt::Display for TooLarge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "the program's data takes up to {} MB, and may take {}",
            self.bytes.div_ceil(1_000_000),
            self.most / 1_000_000
        )
    }
}

impl std::error::Error for TooLarge {}

const MAX_BYTES: usize = 1 << 32;

/// A program ready to take steps.
pub struct Machine<'p> {
    program: &'p Program,
    pub(crate) code: Code,
    checks: Checks,
    pub(crate) work: Workspace,
}

/// Memory that steps are tried and taken with; it says nothing about a state.
#[derive(Debug)]
pub(crate) struct Workspace {
    pub(crate) scratch: Scratch,
    /// The values of the message at hand, and the memory of one from outside.
    pub(crate) parts: Vec<ValueRef>,
    pub(crate) message_memory: Vec<u8>,
    /// What the patterns at hand keep of it.
    pub(crate) captures: Vec<Capture>,
    /// Waiting instances of which a guard has opened in the last step.
    pub(crate) reopened: VecDeque<u32>,
    /// Instances that a fast path took along in the last step, each with the wait it was at; and those that came back,
    /// in order.
    pub(crate) captured: Vec<(u32, u32)>,
    pub(crate) resumed: Vec<u32>,
    /// What has been done on fast paths so far.
    pub(crate) runs: PathTotals,
    /// The same of each fast path.
    pub(crate) path_runs: Vec<PathCounters>,
}

/// What has been done on fast paths.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PathTotals {
    /// How often one was entered.
    pub(crate) entries: u64,
    /// Fuel that was used on them.
    pub(crate) fuel: u64,
}

/// A program in one of its states, and the world around it: where steps are tried and taken.
pub(crate) struct StepContext<'a> {
    pub(crate) program: &'a Program,
    pub(crate) code: &'a Code,
    pub(crate) checks: Checks,
    pub(crate) state: &'a mut State,
    pub(crate) environment: &'a mut dyn Environment,
    pub(crate) work: &'a mut Workspace,
}

impl<'p> Machine<'p> {
    /// Prepares a verified program.
    pub fn new(program: &'p Program, checks: Checks) -> Result<Machine<'p>, TooLarge> {
        let bytes = data_bytes(program);
        if bytes > MAX_BYTES {
            return Err(TooLarge { bytes, most: MAX_BYTES });
        }
        let code = Code::new(program);
        let work = Workspace {
            scratch: Scratch::new(&code),
            parts: Vec::new(),
            message_memory: Vec::new(),
            captures: Vec::new(),
            reopened: VecDeque::new(),
            captured: Vec::new(),
            resumed: Vec::new(),
            runs: PathTotals::default(),
            path_runs: vec![PathCounters::default(); program.paths.len()],
        };
        Ok(Machine { program, code, checks, work })
    }

    /// The state in which all instances are at their first statement.
    pub fn start(&self) -> State {
        let instance = |process: &ProcessId| Instance {
            control: Control::Running { at: 0 },
            frame: Frame::new(&self.code.processes[process.0 as usize]),
            branches: Vec::new(),
        };
        State {
            instances: self.code.instances.iter().map(|(process, _)| instance(process)).collect(),
            pools: Pools::new(self.program, &self.code.layouts),
            closed: vec![false; self.program.channels.len()],
            unfinished: None,
            free_before: Vec::new(),
        }
    }

    /// Has machine code run local code from this state, which is the program's start.
    pub fn use_native(&mut self, state: &mut State, native: Box<dyn Native>) {
        for instance in &mut state.instances {
            let registers = instance.frame.registers.len();
            instance.frame.registers.resize(registers + Cell::COUNT, 0);
        }
        self.work.scratch.native = Some(native);
    }

    /// All steps possible now, in order.
    pub fn enabled(&mut self, state: &mut State, environment: &mut dyn Environment) -> Vec<Step> {
        self.context(state, environment).enabled()
    }

    /// Whether the program may take this step now. Any step may be asked for. The state is left as it was, but that
    /// a channel seen closed is closed.
    pub fn is_enabled(
        &mut self,
        step: Step,
        state: &mut State,
        environment: &mut dyn Environment,
        mode: EnvironmentMode,
    ) -> bool {
        self.context(state, environment).is_enabled(step, mode)
    }

    /// Takes a step that is possible. Local code stops when the fuel is used up.
    pub fn step(&mut self, step: Step, state: &mut State, environment: &mut dyn Environment, fuel: &mut u64) -> Effect {
        self.context(state, environment).step(step, fuel)
    }

    /// What a state without possible steps is: at rest, ended, or deadlocked.
    pub fn classify_quiescence(&mut self, state: &mut State, environment: &mut dyn Environment) -> Outcome {
        self.context(state, environment).classify_quiescence()
    }

    /// The program it was made for.
    pub fn program(&self) -> &'p Program {
        self.program
    }

    /// IR steps executed so far.
    pub fn executed(&self) -> u64 {
        self.work.scratch.executed
    }

    pub(crate) fn context<'a>(
        &'a mut self,
        state: &'a mut State,
        environment: &'a mut dyn Environment,
    ) -> StepContext<'a> {
        StepContext {
            program: self.program,
            code: &self.code,
            checks: self.checks,
            state,
            environment,
            work: &mut self.work,
        }
    }
}

impl<'a> StepContext<'a> {
    #[inline]
    pub(crate) fn body(&self, instance: u32) -> &'a BodyCode {
        &self.code.processes[self.code.instances[instance as usize].0.0 as usize]
    }

    #[inline]
    pub(crate) fn wait(&self, instance: u32) -> Option<&'a WaitCode> {
        let process = self.code.instances[instance as usize].0;
        match self.state.instances[instance as usize].control {
            Control::Waiting { wait } => Some(&self.code.processes[process.0 as usize].waits[wait as usize]),
            Control::Running { .. } | Control::CapturedByPath { .. } | Control::Ended => None,
        }
    }

    /// The wait and branch of a waiting instance, if the branch is there and open.
    #[inline]
    pub(crate) fn open(&self, instance: u32, branch: u32) -> Option<&'a BranchCode> {
        if instance as usize >= self.state.instances.len() {
            return None;
        }
        let wait = self.wait(instance)?;
        let open = self.state.instances[instance as usize].branches.get(branch as usize)?.open;
        if open { wait.branches.get(branch as usize) } else { None }
    }

    #[inline]
    pub(crate) fn branch(&self, instance: u32, branch: u32) -> &'a BranchCode {
        self.open(instance, branch).expect("only a possible step is taken")
    }

    #[inline]
    pub(crate) fn is_internal(&self, channel: ChannelId) -> bool {
        match self.program.channels[channel.0 as usize].boundary {
            Boundary::Internal => true,
            Boundary::ToEnvironment | Boundary::FromEnvironment => false,
        }
    }

    /// An instance leaves its operation through a branch.
    pub(crate) fn leave(&mut self, instance: u32, branch: &BranchCode) {
        match &branch.operation {
            OperationCode::Out { payload: PayloadCode::Region(region), .. } => {
                clear_region(region, &mut self.state.instances[instance as usize].frame);
            }
            OperationCode::Out { payload: PayloadCode::Ready(_), .. }
            | OperationCode::In { .. }
            | OperationCode::After { .. } => {}
        }
        self.resume_at(instance, branch.then, &branch.dead);
    }

    /// An instance leaves its operation.
    #[inline]
    pub(crate) fn resume_at(&mut self, instance: u32, at: Pc, dead: &Dead) {
        let instance = &mut self.state.instances[instance as usize];
        instance.control = Control::Running { at };
        instance.branches.clear();
        instance.frame.clear(dead);
    }
}

impl State {
    /// How many instances there are.
    pub fn instances(&self) -> u32 {
        self.instances.len() as u32
    }

    /// Where an instance stands.
    #[inline]
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

pub(crate) fn report(instance: u32, trap: Trap, channel: Option<ChannelId>) -> Box<FaultReport> {
    let location = trap.location.in_text();
    // Of a fused process the member is told, as if it ran by itself.
    let instance = trap.in_process().member.map_or(instance, InstanceId::number);
    Box::new(FaultReport { fault: trap.fault, instance, location, channel, name: trap.name, waits: Vec::new() })
}
