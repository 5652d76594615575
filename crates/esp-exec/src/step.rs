//! The transition system of a program: its states and the steps possible in each (reference, section 8). This is the
//! one definition of the semantics. Schedules, the replayer and the checker only choose among these steps.
//!
//! ```text
//!   Running(pc) --local--> Waiting(wait) --communicate, from/to environment, after, else--> Running(pc)
//!        \---local: exit, fault: the program is over;   end: Ended;   yield: Running(pc)
//! ```
//!
//! The local code between two operations is one step, because other instances cannot observe its intermediate states.
//! While an instance waits, its regions are evaluated speculatively and rolled back.

use crate::code::{BodyCode, BranchCode, Code, OperationCode, PayloadCode, Pc, WaitCode};
use crate::environment::Environment;
pub use crate::execute::Checks;
use crate::state::Instance;
pub use crate::state::{Control, State};

use crate::execute::{Scratch, Trap};
use crate::footprint::data_bytes;
use crate::frame::Frame;
use crate::matching::Capture;
use crate::native::{Cell, Native};
use crate::path_counters::PathCounters;
use crate::pools::Pools;
use crate::report::{FaultReport, Outcome};
pub use crate::trace::Step;
use crate::values::ValueRef;
use quaject_esp_ir::ir::{Boundary, ChannelId, InstanceId, ProcessId, Program, TypeId};
use quaject_esp_ir::liveness::Dead;
use smol_str::SmolStr;
use std::collections::VecDeque;

/// The result of a step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Effect {
    /// The program continues.
    Done,
    /// The fuel was used up within the step. The next step has to continue it.
    Unfinished,
    /// The program has ended.
    Exited(u8),
    /// The program has been stopped.
    Faulted(Box<FaultReport>),
}

/// Whether the environment and the clock are polled, or behave as a recorded trace says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EnvironmentMode {
    /// Polled.
    Polled,
    /// Only what the trace takes is ready: `else` and lower branches of a `pri alt` assume that the environment is not
    /// ready, and an `after` is possible at any time.
    AsTraced,
}

/// The program needs more memory than the limit of this crate.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TooLarge {
    /// The memory it needs, in bytes.
    pub bytes: usize,
    /// The limit, in bytes.
    pub limit: usize,
}

impl std::fmt::Display for TooLarge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "the program's data takes up to {} MB, and may take {}",
            self.bytes.div_ceil(1_000_000),
            self.limit / 1_000_000
        )
    }
}

impl std::error::Error for TooLarge {}

/// Four gibibytes, or the whole address space where it is that small.
const MAX_BYTES: usize = if usize::BITS > 32 { (1u64 << 32) as usize } else { usize::MAX };

/// A program ready to take steps.
pub struct Machine<'p> {
    program: &'p Program,
    pub(crate) code: Code,
    checks: Checks,
    pub(crate) work: Workspace,
}

/// Buffers that are reused from step to step. They are not part of a state.
#[derive(Debug)]
pub(crate) struct Workspace {
    pub(crate) scratch: Scratch,
    /// The values of the current message, and the memory of a message from the environment.
    pub(crate) parts: Vec<ValueRef>,
    pub(crate) message_memory: Vec<u8>,
    /// What the current patterns capture of it.
    pub(crate) captures: Vec<Capture>,
    /// Waiting instances with a guard that opened in the last step.
    pub(crate) reopened: VecDeque<u32>,
    /// Instances that a fast path captured in the last step, each with its wait, and instances that were resumed, in
    /// order.
    pub(crate) captured: Vec<(u32, u32)>,
    pub(crate) resumed: Vec<u32>,
    /// Observed variables that instances have received in the last step: instance, name, value and type.
    pub(crate) received: Vec<(u32, SmolStr, i64, TypeId)>,
    /// Totals of all fast paths so far.
    pub(crate) runs: PathTotals,
    /// Counters of each fast path.
    pub(crate) path_runs: Vec<PathCounters>,
}

/// Totals over all fast paths.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PathTotals {
    /// The number of entries.
    pub(crate) entries: u64,
    /// The fuel used on paths.
    pub(crate) fuel: u64,
}

/// The context of a step: the program, one of its states, the environment and the buffers.
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
            return Err(TooLarge { bytes, limit: MAX_BYTES });
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
            received: Vec::new(),
            runs: PathTotals::default(),
            path_runs: vec![PathCounters::default(); program.paths.len()],
        };
        Ok(Machine { program, code, checks, work })
    }

    /// The initial state: all instances are at their first statement.
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

    /// Executes local code by machine code from now on. `state` is the initial state.
    pub fn use_native(&mut self, state: &mut State, native: Box<dyn Native>) {
        for instance in &mut state.instances {
            let registers = instance.frame.registers.len();
            instance.frame.registers.resize(registers + Cell::COUNT, 0);
        }
        self.work.scratch.native = Some(native);
    }

    /// All enabled steps, in order.
    pub fn enabled(&mut self, state: &mut State, environment: &mut dyn Environment) -> Vec<Step> {
        self.context(state, environment).enabled()
    }

    /// Whether a step is enabled; any step may be passed. The state does not change, except that a channel that the
    /// environment has closed is recorded as closed.
    pub fn is_enabled(
        &mut self,
        step: Step,
        state: &mut State,
        environment: &mut dyn Environment,
        mode: EnvironmentMode,
    ) -> bool {
        self.context(state, environment).is_enabled(step, mode)
    }

    /// Takes an enabled step. Local code stops when the fuel is used up.
    pub fn step(&mut self, step: Step, state: &mut State, environment: &mut dyn Environment, fuel: &mut u64) -> Effect {
        self.context(state, environment).step(step, fuel)
    }

    /// Classifies a state without enabled steps: quiescent, terminated, or deadlocked.
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

    /// A branch of the operation at which an instance waits, if it exists and is open.
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
        self.open(instance, branch).expect("only an enabled step is taken")
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
                self.state.instances[instance as usize].frame.clear_region(region);
            }
            OperationCode::Out { payload: PayloadCode::Ready(_), .. }
            | OperationCode::In { .. }
            | OperationCode::After { .. } => {}
        }
        // Those that are not read are zeroed.
        for (name, register, ty) in &branch.received {
            let value = self.state.instances[instance as usize].frame.registers[*register as usize];
            self.work.received.push((instance, name.clone(), value, *ty));
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

/// The channel of a branch that is an `in` or `out`.
pub(crate) fn channel_of(branch: &BranchCode) -> Option<ChannelId> {
    match &branch.operation {
        OperationCode::In { channel, .. } | OperationCode::Out { channel, .. } => Some(*channel),
        OperationCode::After { .. } => None,
    }
}

pub(crate) fn report(instance: u32, trap: Trap, channel: Option<ChannelId>) -> Box<FaultReport> {
    let location = trap.location.in_text();
    // A fault in a fused process is reported as the fault of the member whose code it is.
    let instance = trap.in_process().member.map_or(instance, InstanceId::number);
    Box::new(FaultReport { fault: trap.fault, instance, location, channel, name: trap.name, waits: Vec::new() })
}
