//! Whether the order in which processes run can be seen. Processes that only read and write, each channel by one instance
//! at each end, send the same messages in whatever order they run (Kahn's networks); if no more than one of the program
//! shows anything to the world or may fault, all that is told is in the same order, too. Elsewhere another order is as good
//! by the language (reference, section 8), but a program may show something else than it did. Changes nothing.

use crate::passes;
use crate::ranges::ranges_by_place;
use crate::refusal::Refusal;
use crate::within::Within;
use quaject_esp_ir::dominators::Dominators;
use quaject_esp_ir::ir::{
    AltOrder, BinaryOp, Body, Boundary, ChannelId, Direction, FnId, Function, Guard, Location, MemoryMode, Op,
    Operation, Place, ProcessId, Program, Projection, Purity, Terminator, UnaryOp, Value, Wait,
};
use quaject_esp_ir::visit::op_places;
use std::cell::OnceCell;

/// Where the order in which the processes of a program run may be seen.
#[derive(Clone, Debug)]
pub struct Order {
    /// By what the program shows; none if not.
    told: Option<Refusal>,
    /// Per process: by what it does.
    chosen: Vec<Option<Refusal>>,
}

impl Order {
    /// Looks at all of a program. With `checked`, overflow is a fault.
    pub fn of(program: &Program, checked: bool) -> Order {
        let all = (0..program.processes.len() as u32).map(ProcessId);
        let chosen: Vec<Option<Refusal>> = all.map(|process| chooses(program, process)).collect();
        let told = several_show(program).or_else(|| frees(program)).or_else(|| takes(program));
        // What may fault takes longest to find.
        let is_settled = told.is_some() || chosen.iter().all(Option::is_some) || is_one(program);
        Order { told: told.or_else(|| if is_settled { None } else { several_tell(program, checked) }), chosen }
    }

    /// Why the order in which these processes run may be seen; none if it cannot.
    pub(crate) fn seen(&self, processes: &[ProcessId]) -> Option<Refusal> {
        let chosen = || processes.iter().find_map(|process| self.chosen[process.0 as usize].clone());
        self.told.clone().or_else(chosen)
    }

    /// Whether the order in which the processes run cannot be seen.
    pub fn is_unseen(&self) -> bool {
        self.seen_by_any().is_none()
    }

    /// Why the order in which any processes of the program run may be seen; none if it cannot.
    pub fn seen_by_any(&self) -> Option<Refusal> {
        let chosen = || self.chosen.iter().flatten().next().cloned();
        self.told.clone().or_else(chosen)
    }
}

/// Whether there is nobody but one instance.
fn is_one(program: &Program) -> bool {
    program.processes.iter().map(|process| process.replicas).sum::<u32>() <= 1
}

fn refuse(process: ProcessId, what: &'static str, location: Location) -> Option<Refusal> {
    Some(Refusal::ScheduleDependent { process, what, location })
}

/// Whoever shows something to the world beside another instance that does.
fn several_show(program: &Program) -> Option<Refusal> {
    let mut shown = 0;
    for (index, process) in program.processes.iter().enumerate() {
        let Some(location) = shows(program, index) else { continue };
        let what = if process.replicas > 1 {
            "several instances, each of which shows something to the world,"
        } else {
            "something that is shown to the world, as others show something, too,"
        };
        shown += process.replicas;
        if shown > 1 {
            return refuse(ProcessId(index as u32), what, location);
        }
    }
    None
}

/// Whoever may fault beside another instance that may, or that shows something: a fault ends what others show.
fn several_tell(program: &Program, checked: bool) -> Option<Refusal> {
    let mut telling = 0;
    let mut faulting = None;
    let functions = OnceCell::new();
    for (index, process) in program.processes.iter().enumerate() {
        let faults =
            |function: FnId| functions.get_or_init(|| functions_that_may(program, checked))[function.0 as usize];
        let fault = may_fault(program, &process.body, checked, &faults);
        if let Some(location) = fault {
            faulting = Some((ProcessId(index as u32), location));
        }
        if fault.is_some() || shows(program, index).is_some() {
            telling += process.replicas;
        }
        if let (true, Some((process, location))) = (telling > 1, faulting) {
            return refuse(process, "what may fault, as others show something or may fault, too,", location);
        }
    }
    None
}

/// Per function, whether it may fault: by itself, or in what it calls. Each is looked at once, however often it is called.
fn functions_that_may(program: &Program, checked: bool) -> Vec<bool> {
    let by_itself = |function: &Function| may_fault(program, &function.body, checked, &|_| false).is_some();
    let mut may: Vec<bool> = program.functions.iter().map(by_itself).collect();
    let mut callers = vec![Vec::new(); may.len()];
    for (caller, function) in program.functions.iter().enumerate() {
        for instruction in function.body.blocks.iter().flat_map(|block| &block.instructions) {
            if let Op::CallFunction { function: callee, .. } = instruction.op {
                callers[callee.0 as usize].push(caller);
            }
        }
    }
    let mut left: Vec<usize> = (0..may.len()).filter(|function| may[*function]).collect();
    while let Some(function) = left.pop() {
        for caller in &callers[function] {
            if !may[*caller] {
                may[*caller] = true;
                left.push(*caller);
            }
        }
    }
    may
}

/// The first place where code may fault, by itself or in a function that `function_faults` says may.
fn may_fault(
    program: &Program,
    body: &Body,
    checked: bool,
    function_faults: &dyn Fn(FnId) -> bool,
) -> Option<Location> {
    let body = passes::proven(body, program, checked);
    let mut constants: Vec<Option<i128>> = vec![None; body.values.len()];
    for instruction in body.blocks.iter().flat_map(|block| &block.instructions) {
        if let (Op::Constant(constant), Some(result)) = (&instruction.op, instruction.result) {
            constants[result.0 as usize] = Some(*constant);
        }
    }
    let constant = |value: &Value| constants[value.0 as usize];
    // Ranges are asked for only if bounds are left.
    let known = OnceCell::new();
    let within = |place: &Place, block: usize| {
        let (known, dominators) =
            known.get_or_init(|| (ranges_by_place(&body, &program.types, checked), Dominators::new(&body)));
        Within { body: &body, known, dominators }.is_inside(place, block)
    };
    let faults = |block: usize, op: &Op| {
        let mut outside = false;
        op_places(op, &mut |place| {
            outside |= place.path.iter().any(|step| matches!(step, Projection::Element(_))) && !within(place, block);
        });
        let by_itself = match op {
            Op::Unary(UnaryOp::Negate, _) => checked,
            Op::Binary(BinaryOp::Divide | BinaryOp::Remainder, _, divisor) => {
                checked || constant(divisor).is_none_or(|value| value == 0)
            }
            Op::Binary(op, _, _) => op.may_fault(checked),
            Op::InstanceOf(process, replica) => constant(replica).is_none_or(|replica| {
                !(0..i128::from(program.processes[process.0 as usize].replicas)).contains(&replica)
            }),
            Op::CallFunction { function, .. } => function_faults(*function),
            // Between bounds, outside of bytes, no object left, no such function.
            Op::Copy { .. }
            | Op::SetLength(..)
            | Op::CopySlice { .. }
            | Op::StoreSlice { .. }
            | Op::Append { .. }
            | Op::LoadNumber { .. }
            | Op::StoreNumber { .. }
            | Op::LoadBits { .. }
            | Op::StoreBits { .. }
            | Op::CallExtern { .. }
            | Op::Allocate(_) => true,
            Op::Constant(_)
            | Op::Unary(UnaryOp::Not | UnaryOp::Complement, _)
            | Op::Convert(_)
            | Op::Load(_)
            | Op::Store(..)
            | Op::SetBytes(..)
            | Op::Fill(..)
            | Op::SetTag(..)
            | Op::Tag(_)
            | Op::Length(_)
            | Op::Equal(..)
            | Op::OwnId
            | Op::ReplicaNumber(_)
            | Op::FreeObjects(_)
            | Op::IsUnique(_)
            | Op::Retain(_)
            | Op::Release(_)
            | Op::Deadline { .. }
            | Op::Mark(_)
            | Op::Test(..) => false,
        };
        outside || by_itself
    };
    body.blocks.iter().enumerate().find_map(|(number, block)| {
        let instruction = block.instructions.iter().find(|instruction| faults(number, &instruction.op));
        match (instruction, &block.terminator) {
            (Some(instruction), _) => Some(instruction.location),
            (None, Terminator::Fault(_)) => Some(block.location),
            // It faults if no branch is open.
            (None, Terminator::Wait(wait)) => {
                let may_close = wait.otherwise.is_none() && wait.branches.iter().all(|of| of.guard != Guard::Open);
                may_close.then_some(block.location)
            }
            (None, _) => None,
        }
    })
}

/// Where a process shows something: sends to the world, calls a function with effects, or ends the program.
fn shows(program: &Program, process: usize) -> Option<Location> {
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

/// Whose objects could be used after they were freed: that is told where it is noticed, which may be elsewhere.
fn frees(program: &Program) -> Option<Refusal> {
    let is_manual = program.memory == MemoryMode::Manual && !program.types.pools().is_empty();
    let first = program.processes.first().filter(|_| is_manual)?;
    refuse(ProcessId(0), "objects that are freed by hand", first.location)
}

/// Who takes an object of a pool while objects travel: whether one is left depends on who has given back his.
fn takes(program: &Program) -> Option<Refusal> {
    let travel = program.channels.iter().any(|channel| {
        channel.boundary == Boundary::Internal && channel.payload.iter().any(|ty| program.types.holds_objects(*ty))
    });
    let mut all = program.processes.iter().enumerate().filter(|_| travel);
    all.find_map(|(index, process)| {
        let mut instructions = process.body.blocks.iter().flat_map(|block| &block.instructions);
        let takes = instructions.find(|instruction| matches!(instruction.op, Op::Allocate(_)))?;
        refuse(ProcessId(index as u32), "an object that is taken while others may have some,", takes.location)
    })
}

/// Where a process does something by who is there first, or when.
fn chooses(program: &Program, process: ProcessId) -> Option<Refusal> {
    let source = &program.processes[process.0 as usize];
    for site in &source.sites {
        if users(program, site.channel, site.direction) > 1 {
            return refuse(process, "a channel that others use in the same direction", site.location);
        }
    }
    for block in &source.body.blocks {
        let asks = block.instructions.iter().find(|instruction| matches!(instruction.op, Op::FreeObjects(_)));
        if let Some(asks) = asks {
            return refuse(process, "a question for `free`", asks.location);
        }
        if let Terminator::Wait(wait) = &block.terminator
            && let Some(what) = choice(wait)
        {
            return refuse(process, what, block.location);
        }
    }
    None
}

/// What a wait decides by who is there first, or when.
fn choice(wait: &Wait) -> Option<&'static str> {
    match (&wait.branches[..], wait.otherwise, wait.order) {
        (_, Some(_), _) => Some("an `else`"),
        ([branch], None, AltOrder::Fair | AltOrder::Priority) => match (&branch.operation, branch.guard) {
            (Operation::After { .. }, _) => Some("an `after`"),
            (_, Guard::Region(_)) => Some("a guard that asks `free`"),
            (Operation::In { .. } | Operation::Out { .. }, Guard::Open | Guard::Value(_)) => None,
        },
        (_, None, _) => Some("a choice"),
    }
}

/// How many instances use a channel in a direction.
fn users(program: &Program, channel: ChannelId, direction: Direction) -> u32 {
    let uses = |process: &&quaject_esp_ir::ir::Process| {
        process.sites.iter().any(|site| site.channel == channel && site.direction == direction)
    };
    program.processes.iter().filter(uses).map(|process| process.replicas).sum()
}
