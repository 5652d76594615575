//! Whether the schedule is observable. Processes that only communicate, each channel with one instance at each end,
//! form a Kahn process network (Kahn, "The Semantics of a Simple Language for Parallel Programming", 1974): every
//! channel carries the same messages under every schedule. If at most one instance of the program produces output or
//! may fault, the program's output is schedule-independent as well. Elsewhere the language allows every schedule
//! (reference, section 8), but fusion, which fixes one, may change what the program prints. An analysis: it changes no
//! program.

use crate::possible_faults::{FaultCause, PossibleFault, faulting_functions, first_possible_fault};
use crate::refusal::Refusal;
use quaject_esp_ir::ir::{
    AltOrder, Boundary, ChannelId, Direction, FnId, Guard, Location, MemoryMode, Op, Operation, Process, ProcessId,
    Program, Purity, Terminator, Wait,
};
use std::cell::OnceCell;

/// Which parts of a program are independent of the schedule.
#[derive(Clone, Debug)]
pub struct ScheduleIndependence {
    /// Why the program is not, by output, faults or allocations of several processes.
    program: Option<Refusal>,
    /// Per process: why it is not, by its own choices.
    processes: Vec<Option<Refusal>>,
}

impl ScheduleIndependence {
    /// Analyses a program. With `checked`, overflow is a fault.
    pub fn analyze(program: &Program, checked: bool) -> ScheduleIndependence {
        let all = (0..program.processes.len() as u32).map(ProcessId);
        let processes: Vec<Option<Refusal>> = all.map(|process| schedule_dependent_choice(program, process)).collect();
        let of_program =
            several_outputs(program).or_else(|| manual_deallocation(program)).or_else(|| contended_allocation(program));
        // The search for faults takes longest.
        let is_decided = of_program.is_some() || processes.iter().all(Option::is_some) || has_single_instance(program);
        let faults = || if is_decided { None } else { concurrent_faults(program, checked) };
        ScheduleIndependence { program: of_program.or_else(faults), processes }
    }

    /// Why the output may depend on the schedule of these processes; none if it does not.
    pub(crate) fn violation_by(&self, processes: &[ProcessId]) -> Option<Refusal> {
        let by_choice = || processes.iter().find_map(|process| self.processes[process.0 as usize].clone());
        self.program.clone().or_else(by_choice)
    }

    /// Whether the output is the same under every schedule.
    pub fn holds(&self) -> bool {
        self.violation().is_none()
    }

    /// Why the output may depend on the schedule of any processes; none if it does not.
    pub fn violation(&self) -> Option<Refusal> {
        let by_choice = || self.processes.iter().flatten().next().cloned();
        self.program.clone().or_else(by_choice)
    }
}

fn has_single_instance(program: &Program) -> bool {
    program.processes.iter().map(|process| process.replicas).sum::<u32>() <= 1
}

fn schedule_dependent(process: ProcessId, what: &'static str, location: Location) -> Option<Refusal> {
    Some(Refusal::ScheduleDependent { process, what, location })
}

/// A process with output while another instance has output, too.
fn several_outputs(program: &Program) -> Option<Refusal> {
    let mut instances = 0;
    for (index, process) in program.processes.iter().enumerate() {
        let Some(location) = output_location(program, index) else { continue };
        let what = if process.replicas > 1 {
            "has several instances that act on the environment"
        } else {
            "acts on the environment, as another process does,"
        };
        instances += process.replicas;
        if instances > 1 {
            return schedule_dependent(ProcessId(index as u32), what, location);
        }
    }
    None
}

/// A process that may fault while another instance has output or may fault: a fault ends the output of others.
fn concurrent_faults(program: &Program, checked: bool) -> Option<Refusal> {
    let mut observable_instances = 0;
    let mut faulting = None;
    let functions = OnceCell::new();
    for (index, process) in program.processes.iter().enumerate() {
        let faults =
            |function: FnId| functions.get_or_init(|| faulting_functions(program, checked))[function.0 as usize];
        let fault = first_possible_fault(program, &process.body, checked, &faults);
        if let Some(fault) = fault {
            faulting = Some((ProcessId(index as u32), fault));
        }
        if fault.is_some() || output_location(program, index).is_some() {
            observable_instances += process.replicas;
        }
        if let (true, Some((process, PossibleFault { cause, location }))) = (observable_instances > 1, faulting) {
            return schedule_dependent(process, effect_of_fault(cause), location);
        }
    }
    None
}

macro_rules! may_fault {
    ($cause:literal) => {
        concat!("may fault, as ", $cause, ", while another process acts on the environment or may fault")
    };
}

/// What a process does that may fault while another one is observable.
fn effect_of_fault(cause: FaultCause) -> &'static str {
    match cause {
        FaultCause::Index => may_fault!("an index is not proved to be in bounds"),
        FaultCause::Slice => may_fault!("a slice is not proved to be in bounds"),
        FaultCause::SliceLength => may_fault!("bytes are not proved to be as long as the slice that they replace"),
        FaultCause::Length => may_fault!("a length is not proved to be within the bound of its type"),
        FaultCause::Divisor => may_fault!("a divisor may be 0"),
        FaultCause::Overflow => may_fault!("arithmetic is not proved to fit in its type"),
        FaultCause::Replica => may_fault!("a replica number is not proved to be in range"),
        FaultCause::Pool => may_fault!("a pool may be empty"),
        FaultCause::Extern => may_fault!("an extern function may be missing"),
        FaultCause::Function => may_fault!("a function that it calls may"),
        FaultCause::Guards => may_fault!("all guards may be false"),
        FaultCause::Assertion => may_fault!("an assertion may fail"),
        FaultCause::Statement => may_fault!("a statement does"),
    }
}

/// Where a process produces output: it sends to the environment, calls an impure function, or ends the program.
fn output_location(program: &Program, process: usize) -> Option<Location> {
    let process = &program.processes[process];
    let is_outside = |channel: ChannelId| program.channels[channel.0 as usize].boundary != Boundary::Internal;
    let sends = process.sites.iter().find(|site| site.direction == Direction::Out && is_outside(site.channel));
    let calls = || {
        process.body.blocks.iter().find_map(|block| {
            let has_effects = |op: &Op| match op {
                Op::CallExtern { function, .. } => program.externs[function.0 as usize].purity == Purity::Impure,
                _ => false,
            };
            let call = block.instructions.iter().find(|instruction| has_effects(&instruction.op));
            match (call, &block.terminator) {
                (Some(call), _) => Some(call.location),
                (None, Terminator::Exit(_)) => Some(block.location),
                (None, _) => None,
            }
        })
    };
    sends.map(|site| site.location).or_else(calls)
}

/// Manual memory: a use after free faults where it is detected, which depends on the schedule.
fn manual_deallocation(program: &Program) -> Option<Refusal> {
    let is_manual = program.memory == MemoryMode::Manual && !program.types.pools().is_empty();
    let first = program.processes.first().filter(|_| is_manual)?;
    schedule_dependent(ProcessId(0), "frees objects by hand", first.location)
}

/// A process that allocates from a pool while channels carry objects: whether the pool is exhausted depends on how far
/// the other processes have run.
fn contended_allocation(program: &Program) -> Option<Refusal> {
    let sends_objects = program.channels.iter().any(|channel| {
        channel.boundary == Boundary::Internal && channel.payload.iter().any(|ty| program.types.holds_objects(*ty))
    });
    let mut all = program.processes.iter().enumerate().filter(|_| sends_objects);
    all.find_map(|(index, process)| {
        let mut instructions = process.body.blocks.iter().flat_map(|block| &block.instructions);
        let allocation = instructions.find(|instruction| matches!(instruction.op, Op::Allocate(_)))?;
        let what = "allocates from a pool of which other processes may hold objects";
        schedule_dependent(ProcessId(index as u32), what, allocation.location)
    })
}

/// Where the behaviour of a process depends on which partner is ready first, or when.
fn schedule_dependent_choice(program: &Program, process: ProcessId) -> Option<Refusal> {
    let source = &program.processes[process.0 as usize];
    for site in &source.sites {
        if user_count(program, site.channel, site.direction) > 1 {
            return schedule_dependent(process, "uses a channel that others use in the same direction", site.location);
        }
    }
    for block in &source.body.blocks {
        let test = block.instructions.iter().find(|instruction| matches!(instruction.op, Op::FreeObjects(_)));
        if let Some(test) = test {
            return schedule_dependent(process, "tests `free`", test.location);
        }
        if let Terminator::Wait(wait) = &block.terminator
            && let Some(what) = choice_in_wait(wait)
        {
            return schedule_dependent(process, what, block.location);
        }
    }
    None
}

/// What a wait decides by the readiness of its partners, or by time.
fn choice_in_wait(wait: &Wait) -> Option<&'static str> {
    match (&wait.branches[..], wait.otherwise, wait.order) {
        (_, Some(_), _) => Some("has an `else`"),
        ([branch], None, AltOrder::Fair | AltOrder::Priority) => match (&branch.operation, branch.guard) {
            (Operation::After { .. }, _) => Some("has an `after`"),
            (_, Guard::Region(_)) => Some("has a guard that reads `free`"),
            (Operation::In { .. } | Operation::Out { .. }, Guard::Open | Guard::Value(_)) => None,
        },
        (_, None, _) => Some("takes whichever comes first"),
    }
}

/// How many instances use a channel in a direction.
fn user_count(program: &Program, channel: ChannelId, direction: Direction) -> u32 {
    let uses =
        |process: &&Process| process.sites.iter().any(|site| site.channel == channel && site.direction == direction);
    program.processes.iter().filter(uses).map(|process| process.replicas).sum()
}
