//! The deadlines of a process: its `until` branches that another branch of the same `alt` can be taken instead of, each
//! with the code that may move its time.
//!
//! Infinitely many steps take infinitely long. So a time that is no longer moved comes, and from then on its branch can
//! be taken at each execution of its `alt`, unless a guard closes it. A fair `alt` takes such a branch eventually
//! (section 9 of the reference); a `pri alt` never takes a later branch in its place (section 8).
//!
//! All times are one value in a model, so that states do not show whether a time has moved. It may have when an
//! instruction is executed, or a message received, that gives a new time to a variable from which the branch's time may
//! come. Times are copied without becoming new ones.

use crate::waits::waits;
use quaject_esp_ir::access::Access;
use quaject_esp_ir::cfg::edges;
use quaject_esp_ir::ir::{
    AltOrder, Base, Body, Guard, Op, Operand, Operation, Place, Process, SlotId, Terminator, TimeUnit, TypeTable,
    Value, Wait,
};
use quaject_esp_ir::visit::bound_slots;
use rustc_hash::FxHashSet;

/// The maximum number of deadlines of a process: their set is one word. Further ones may be passed over forever.
const MAX_DEADLINES: usize = 64;

/// An `until` branch.
pub(crate) struct Deadline {
    /// The number of its wait in the process, and of the branch in the wait.
    pub(crate) wait: u32,
    pub(crate) branch: u32,
    /// The positions of the instructions that may move its time.
    pub(crate) movers: Vec<usize>,
    /// The branches, by wait and number, whose message may move its time.
    pub(crate) receipts: Vec<(u32, u32)>,
}

impl Deadline {
    /// The deadlines of a process.
    pub(crate) fn of_process(process: &Process) -> Vec<Deadline> {
        let body = &process.body;
        // A fast path moves values between instances.
        let is_member =
            body.blocks.iter().any(|block| matches!(block.terminator, Terminator::Enter(_) | Terminator::Leave(_)));
        if is_member {
            return Vec::new();
        }
        let mut deadlines = Vec::new();
        for (number, wait) in waits(process).enumerate() {
            let times = wait.branches.iter().enumerate().filter_map(|(branch, candidate)| match candidate.operation {
                Operation::After { amount, unit: TimeUnit::Absolute } => Some((branch, amount)),
                Operation::After { unit: TimeUnit::Nanoseconds(_), .. }
                | Operation::In { .. }
                | Operation::Out { .. } => None,
            });
            for (branch, amount) in times.filter(|(branch, _)| can_be_passed_over(wait, *branch)) {
                let mut origins = Origins::new(body);
                origins.follow(Origin::Value(amount));
                let Origins { movers, receipts, .. } = origins;
                deadlines.push(Deadline { wait: number as u32, branch: branch as u32, movers, receipts });
            }
        }
        deadlines.truncate(MAX_DEADLINES);
        deadlines
    }
}

/// Whether another branch can be taken although the time of this one has come, and whether it is open depends on the
/// instance alone.
fn can_be_passed_over(wait: &Wait, branch: usize) -> bool {
    let has_alternative = match wait.order {
        AltOrder::Fair => wait.branches.len() > 1,
        AltOrder::Priority => branch + 1 < wait.branches.len(),
    };
    has_alternative
        && match wait.branches[branch].guard {
            Guard::Open | Guard::Value(_) => true,
            Guard::Region(_) => false,
        }
}

/// A holder of times.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Origin {
    Value(Value),
    Slot(SlotId),
}

/// The backward closure of a time under copies.
struct Origins<'b> {
    body: &'b Body,
    seen: FxHashSet<Origin>,
    open: Vec<Origin>,
    movers: Vec<usize>,
    receipts: Vec<(u32, u32)>,
}

impl<'b> Origins<'b> {
    fn new(body: &'b Body) -> Origins<'b> {
        Origins { body, seen: FxHashSet::default(), open: Vec::new(), movers: Vec::new(), receipts: Vec::new() }
    }

    fn follow(&mut self, origin: Origin) {
        self.add(origin);
        while let Some(origin) = self.open.pop() {
            match origin {
                Origin::Value(value) => self.definitions(value),
                Origin::Slot(slot) => self.writes(slot),
            }
        }
    }

    fn add(&mut self, origin: Origin) {
        if self.seen.insert(origin) {
            self.open.push(origin);
        }
    }

    /// The instruction that defines a value, or the arguments of the parameter that it is.
    fn definitions(&mut self, value: Value) {
        let body = self.body;
        let mut at = 0;
        for block in &body.blocks {
            for instruction in &block.instructions {
                if instruction.result == Some(value) {
                    match &instruction.op {
                        Op::Load(place) => self.read(place, at),
                        // In a model a new time is a constant, as are all times.
                        _ => self.movers.push(at),
                    }
                }
                at += 1;
            }
            at += 1;
        }
        for (index, block) in body.blocks.iter().enumerate() {
            let Some(position) = block.parameters.iter().position(|parameter| *parameter == value) else { continue };
            let mut wait_number = 0;
            for from in &body.blocks {
                for edge in edges(&from.terminator).into_iter().filter(|edge| edge.to.0 as usize == index) {
                    self.add(Origin::Value(edge.arguments[position]));
                }
                if let Terminator::Wait(wait) = &from.terminator {
                    for (branch, _) in wait.branches.iter().enumerate().filter(|(_, b)| b.then.0 as usize == index) {
                        self.receipts.push((wait_number, branch as u32));
                    }
                    wait_number += 1;
                }
            }
        }
    }

    /// What may write a time to a slot.
    fn writes(&mut self, slot: SlotId) {
        let body = self.body;
        let is_slot = |place: &Place| place.base == Base::Slot(slot);
        let (mut at, mut wait_number) = (0, 0);
        for block in &body.blocks {
            for instruction in &block.instructions {
                let mut access = Access::default();
                access.op(&instruction.op);
                let is_passed = |argument: &Operand| matches!(argument, Operand::Place(place) if is_slot(place));
                let is_written = access.writes.iter().any(|place| is_slot(place))
                    || matches!(&instruction.op, Op::CallExtern { arguments, .. } if arguments.iter().any(is_passed));
                if is_written {
                    self.written(&instruction.op, at);
                }
                at += 1;
            }
            at += 1;
            if let Terminator::Wait(wait) = &block.terminator {
                for (branch, candidate) in wait.branches.iter().enumerate() {
                    if let Operation::In { patterns, .. } = &candidate.operation {
                        let mut binds = false;
                        patterns.iter().for_each(|pattern| bound_slots(pattern, &mut |bound| binds |= bound == slot));
                        if binds {
                            self.receipts.push((wait_number, branch as u32));
                        }
                    }
                }
                wait_number += 1;
            }
        }
    }

    /// The instruction at this position writes to a slot.
    fn written(&mut self, op: &Op, at: usize) {
        match op {
            Op::Store(_, value) | Op::Fill(_, Operand::Value(value)) => {
                if self.body.values[value.0 as usize].ty == TypeTable::TIME {
                    self.add(Origin::Value(*value));
                }
            }
            Op::Copy { from, .. } | Op::Fill(_, Operand::Place(from)) => self.read(from, at),
            // These write tags and `bytes`.
            Op::SetTag(..)
            | Op::SetBytes(..)
            | Op::SetLength(..)
            | Op::CopySlice { .. }
            | Op::StoreSlice { .. }
            | Op::Append { .. }
            | Op::StoreNumber { .. }
            | Op::StoreBits { .. } => {}
            _ => self.movers.push(at),
        }
    }

    /// The instruction at this position reads a time from a place.
    fn read(&mut self, place: &Place, at: usize) {
        match place.base {
            Base::Slot(slot) => self.add(Origin::Slot(slot)),
            Base::Object(_) => self.movers.push(at),
            Base::Constant(..) => {}
        }
    }
}
