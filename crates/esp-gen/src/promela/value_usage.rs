//! The placement of values: written out where they are used (rematerialised), or in a variable, which values that do
//! not interfere share; and liveness of variables and slots. Knows the flow IR; knows no Promela.

use quaject_esp_ir::access::{Access, WriteEffect};
use quaject_esp_ir::cfg::{Regions, edges, region_blocks, region_entries, successors};
use quaject_esp_ir::dataflow::{all_blocks, solve_backward};
use quaject_esp_ir::ir::*;
use quaject_esp_ir::visit::bound_slots;
use std::collections::{BTreeMap, BTreeSet};

/// The placement of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Placement {
    /// In a variable, named after this value.
    Variable(Value),
    /// Written out at its uses: the instruction at this block and position.
    Inline(BlockId, usize),
}

/// An element of the liveness sets.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Unit {
    /// A variable, named after this value.
    Variable(Value),
    /// A slot, as a whole.
    Slot(SlotId),
}

pub(super) type Set = BTreeSet<Unit>;

/// The placement of the values of one body, and its liveness.
pub(super) struct Usage {
    placements: Vec<Placement>,
    /// Per block: what is live at its start, parameters included.
    live_in: Vec<Set>,
}

/// Where an instruction may be rematerialised.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Motion {
    /// At any use.
    Free,
    /// At its only use, within its block, if no memory is written before that.
    Reads,
    /// At its only use, within its block.
    Pure,
    /// Nowhere: its result is in a variable.
    Fixed,
}

fn motion(op: &Op, inlinable_call: &dyn Fn(FnId) -> bool) -> Motion {
    match op {
        Op::Constant(_) | Op::OwnId => Motion::Free,
        Op::Unary(..) | Op::Binary(..) | Op::Convert(_) | Op::ReplicaNumber(_) | Op::InstanceOf(..) => Motion::Pure,
        Op::Load(_) | Op::Tag(_) | Op::Length(_) | Op::FreeObjects(_) | Op::IsUnique(_) => Motion::Reads,
        Op::CallFunction { function, arguments, to: None, .. }
            if arguments.iter().all(|argument| matches!(argument, Operand::Value(_))) && inlinable_call(*function) =>
        {
            Motion::Pure
        }
        Op::Deadline { .. }
        | Op::LoadNumber { .. }
        | Op::LoadBits { .. }
        | Op::Equal(..)
        | Op::CallFunction { .. }
        | Op::CallExtern { .. }
        | Op::Allocate(_)
        | Op::Store(..)
        | Op::Copy { .. }
        | Op::SetBytes(..)
        | Op::Fill(..)
        | Op::SetTag(..)
        | Op::SetLength(..)
        | Op::CopySlice { .. }
        | Op::StoreSlice { .. }
        | Op::Append { .. }
        | Op::StoreNumber { .. }
        | Op::StoreBits { .. }
        | Op::Retain(_)
        | Op::Release(_)
        | Op::Mark(_)
        | Op::Predicate(..) => Motion::Fixed,
    }
}

/// Whether an instruction changes memory that another may read.
fn writes(op: &Op) -> bool {
    let mut access = Access::default();
    access.op(op);
    let pools = matches!(op, Op::Allocate(_) | Op::Retain(_) | Op::Release(_));
    pools || !access.writes.is_empty() || matches!(op, Op::CallExtern { .. } | Op::CallFunction { to: Some(_), .. })
}

impl Usage {
    /// `inlinable_call` says whether a call of a function can be written as an expression.
    pub(super) fn new(body: &Body, inlinable_call: &dyn Fn(FnId) -> bool) -> Usage {
        let placements = placements(body, inlinable_call);
        let mut usage = Usage { placements, live_in: vec![Set::new(); body.blocks.len()] };
        usage.solve(body);
        usage.coalesce(body);
        usage.live_in = vec![Set::new(); body.blocks.len()];
        usage.solve(body);
        usage
    }

    pub(super) fn placement(&self, value: Value) -> Placement {
        self.placements[value.0 as usize]
    }

    pub(super) fn live_in(&self, block: BlockId) -> &Set {
        &self.live_in[block.0 as usize]
    }

    /// Every variable, each once, in order.
    pub(super) fn variables(&self) -> BTreeSet<Value> {
        let variable = |placement: &Placement| match placement {
            Placement::Variable(value) => Some(*value),
            Placement::Inline(..) => None,
        };
        self.placements.iter().filter_map(variable).collect()
    }

    /// Adds the variables that a value, written out, consists of.
    pub(super) fn leaves(&self, body: &Body, value: Value, live: &mut Set) {
        match self.placement(value) {
            Placement::Variable(variable) => {
                live.insert(Unit::Variable(variable));
            }
            Placement::Inline(block, position) => {
                let mut access = Access::default();
                access.op(&body.blocks[block.0 as usize].instructions[position].op);
                self.apply(body, &access, live);
            }
        }
    }

    fn apply(&self, body: &Body, access: &Access<'_>, live: &mut Set) {
        access.values.iter().for_each(|value| self.leaves(body, *value, live));
        for place in &access.reads {
            if let Base::Slot(slot) = place.base {
                live.insert(Unit::Slot(slot));
            }
        }
    }

    /// What is live while an instance waits here, because its branches read it.
    pub(super) fn waiting(&self, body: &Body, wait: &Wait) -> Set {
        let mut live = Set::new();
        let mut access = Access::default();
        let terminator = Terminator::Wait(wait.clone());
        access.terminator(&terminator);
        self.apply(body, &access, &mut live);
        for entry in region_entries(wait) {
            for block in region_blocks(body, entry) {
                let block = &body.blocks[block.0 as usize];
                let mut access = Access::default();
                block.instructions.iter().for_each(|instruction| access.op(&instruction.op));
                access.terminator(&block.terminator);
                self.apply(body, &access, &mut live);
                for place in access.writes {
                    if let Base::Slot(slot) = place.base {
                        live.insert(Unit::Slot(slot));
                    }
                }
            }
        }
        live
    }

    /// What is live at the end of a block, without the uses of its terminator; at a wait, what is live while the
    /// instance waits.
    pub(super) fn live_at_end(&self, body: &Body, terminator: &Terminator) -> Set {
        let mut live = Set::new();
        for next in successors(terminator, Regions::Skip) {
            let mut needed = self.live_in(next).clone();
            for parameter in &body.blocks[next.0 as usize].parameters {
                if let Placement::Variable(variable) = self.placement(*parameter) {
                    needed.remove(&Unit::Variable(variable));
                }
            }
            if let Terminator::Wait(wait) = terminator {
                received_slots(wait, next).into_iter().for_each(|slot| {
                    needed.remove(&Unit::Slot(slot));
                });
            }
            live.extend(needed);
        }
        match terminator {
            Terminator::Wait(wait) => live.extend(self.waiting(body, wait)),
            // Values are set there; slots are not.
            Terminator::Leave(leave) => {
                let there = self.live_in(leave.trigger.to).iter();
                live.extend(there.filter(|unit| matches!(unit, Unit::Slot(_))));
            }
            _ => {}
        }
        live
    }

    fn solve(&mut self, body: &Body) {
        solve_backward(body, &all_blocks(body), |block| {
            let mut live = Set::new();
            self.walk(body, block, &mut live, &mut |_, _| {});
            let has_changed = live != self.live_in[block.0 as usize];
            self.live_in[block.0 as usize] = live;
            has_changed
        });
    }

    /// Walks a block backwards. `define` gets each defined variable and what is live behind the definition.
    fn walk(&self, body: &Body, id: BlockId, live: &mut Set, define: &mut dyn FnMut(Value, &Set)) {
        let block = &body.blocks[id.0 as usize];
        live.extend(self.live_at_end(body, &block.terminator));
        let mut access = Access::default();
        access.terminator(&block.terminator);
        self.apply(body, &access, live);
        for (position, instruction) in block.instructions.iter().enumerate().rev() {
            if let Some(result) = instruction.result {
                match self.placement(result) {
                    Placement::Variable(variable) => {
                        live.remove(&Unit::Variable(variable));
                        define(variable, live);
                    }
                    // Its operands are live wherever it is written out; its faults are asserted here.
                    Placement::Inline(at, here) => debug_assert_eq!((at, here), (id, position)),
                }
            }
            let mut access = Access::default();
            access.op(&instruction.op);
            for place in &access.writes {
                if let (Base::Slot(slot), true) = (place.base, place.path.is_empty())
                    && WriteEffect::of(&instruction.op) == WriteEffect::Replaces
                {
                    live.remove(&Unit::Slot(slot));
                }
            }
            self.apply(body, &access, live);
        }
        for parameter in &block.parameters {
            if let Placement::Variable(variable) = self.placement(*parameter) {
                // Parameters are written together.
                define(variable, live);
            }
        }
    }

    fn coalesce(&mut self, body: &Body) {
        let mut conflicts: BTreeSet<(Value, Value)> = BTreeSet::new();
        for index in 0..body.blocks.len() {
            let id = BlockId(index as u32);
            let mut live = Set::new();
            self.walk(body, id, &mut live, &mut |variable, live| {
                for unit in live {
                    if let Unit::Variable(other) = unit
                        && *other != variable
                    {
                        conflicts.insert((variable.min(*other), variable.max(*other)));
                    }
                }
            });
            let parameters = &body.blocks[index].parameters;
            for (position, a) in parameters.iter().enumerate() {
                parameters[position + 1..].iter().for_each(|b| {
                    conflicts.insert(((*a).min(*b), (*a).max(*b)));
                });
            }
        }
        let mut members: BTreeMap<Value, Vec<Value>> = self.variables().into_iter().map(|v| (v, vec![v])).collect();
        let mut pairs = Vec::new();
        for block in &body.blocks {
            for edge in edges(&block.terminator) {
                let parameters = &body.blocks[edge.to.0 as usize].parameters;
                pairs.extend(parameters.iter().copied().zip(edge.arguments.iter().copied()));
            }
        }
        // Arguments and parameters of edges first, then versions of one source variable.
        let named: Vec<(Value, Value)> = self.same_name(body);
        for (a, b) in pairs.into_iter().chain(named) {
            let (Placement::Variable(a), Placement::Variable(b)) = (self.placement(a), self.placement(b)) else {
                continue;
            };
            let same_type = body.values[a.0 as usize].ty == body.values[b.0 as usize].ty;
            let clash = |x: &Value, y: &Value| conflicts.contains(&((*x).min(*y), (*x).max(*y)));
            if a == b || !same_type || members[&a].iter().any(|x| members[&b].iter().any(|y| clash(x, y))) {
                continue;
            }
            let (keep, drop) = (a.min(b), a.max(b));
            let moved = members.remove(&drop).expect("every variable has members");
            for value in &moved {
                self.placements[value.0 as usize] = Placement::Variable(keep);
            }
            members.get_mut(&keep).expect("every variable has members").extend(moved);
        }
    }

    fn same_name(&self, body: &Body) -> Vec<(Value, Value)> {
        let mut first: BTreeMap<(Option<&str>, TypeId), Vec<Value>> = BTreeMap::new();
        for value in self.variables() {
            let data = &body.values[value.0 as usize];
            first.entry((data.name.as_deref(), data.ty)).or_default().push(value);
        }
        let mut pairs = Vec::new();
        for group in first.values() {
            for (index, a) in group.iter().enumerate() {
                pairs.extend(group[index + 1..].iter().take(64).map(|b| (*a, *b)));
            }
        }
        pairs
    }
}

/// The slots that the branch with this target binds to parts of its message.
pub(super) fn received_slots(wait: &Wait, then: BlockId) -> Vec<SlotId> {
    let mut slots = Vec::new();
    for branch in wait.branches.iter().filter(|branch| branch.then == then) {
        if let Operation::In { patterns, .. } = &branch.operation {
            patterns.iter().for_each(|pattern| bound_slots(pattern, &mut |slot| slots.push(slot)));
        }
    }
    slots
}

/// Where each value is used: block, and position of the instruction, the terminator after all of them.
fn uses(body: &Body) -> Vec<Vec<(BlockId, usize)>> {
    let mut uses = vec![Vec::new(); body.values.len()];
    for (index, block) in body.blocks.iter().enumerate() {
        let mut at = |access: Access<'_>, position| {
            for value in access.values {
                uses[value.0 as usize].push((BlockId(index as u32), position));
            }
        };
        for (position, instruction) in block.instructions.iter().enumerate() {
            let mut access = Access::default();
            access.op(&instruction.op);
            at(access, position);
        }
        let mut access = Access::default();
        access.terminator(&block.terminator);
        at(access, block.instructions.len());
    }
    uses
}

fn placements(body: &Body, inlinable_call: &dyn Fn(FnId) -> bool) -> Vec<Placement> {
    let uses = uses(body);
    let mut placements: Vec<Placement> =
        (0..body.values.len() as u32).map(|index| Placement::Variable(Value(index))).collect();
    // Per inlined value: the position at which it is evaluated, by its user or by the one that the user is inlined in.
    // A value that reads memory requires that memory does not change until then.
    let mut last: Vec<Option<(BlockId, usize)>> = vec![None; body.values.len()];
    for (index, block) in body.blocks.iter().enumerate() {
        let here = BlockId(index as u32);
        for (position, instruction) in block.instructions.iter().enumerate().rev() {
            let Some(result) = instruction.result else { continue };
            let uses = &uses[result.0 as usize];
            let motion = motion(&instruction.op, inlinable_call);
            match motion {
                Motion::Free => {
                    placements[result.0 as usize] = Placement::Inline(here, position);
                    continue;
                }
                Motion::Fixed => continue,
                Motion::Reads | Motion::Pure => {}
            }
            let [(block_of_use, use_position)] = uses[..] else { continue };
            if block_of_use != here {
                continue;
            }
            let mut end = use_position;
            if let Some(user) = block.instructions.get(use_position).and_then(|user| user.result)
                && let Placement::Inline(..) = placements[user.0 as usize]
            {
                end = last[user.0 as usize].map_or(use_position, |(_, position)| position);
            }
            let between = &block.instructions[position + 1..end.min(block.instructions.len())];
            let disturbed = motion == Motion::Reads && between.iter().any(|instruction| writes(&instruction.op));
            // Other instances may change objects while this one waits.
            let shared = end >= block.instructions.len()
                && matches!(block.terminator, Terminator::Wait(_))
                && match &instruction.op {
                    Op::Load(place) | Op::Tag(place) | Op::Length(place) => matches!(place.base, Base::Object(_)),
                    Op::FreeObjects(_) | Op::IsUnique(_) => true,
                    _ => false,
                };
            if disturbed || shared {
                continue;
            }
            placements[result.0 as usize] = Placement::Inline(here, position);
            last[result.0 as usize] = Some((here, end));
        }
    }
    placements
}
