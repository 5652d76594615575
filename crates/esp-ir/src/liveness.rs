//! Liveness of registers and slots, and the storage of a process that is dead at its observable points: at a wait,
//! after a branch of one, after a `yield`. Dead storage is zeroed there, so that states with equal futures are equal.
//!
//! Liveness is a backward data-flow analysis. A forward analysis finds the storage that may differ from zero, so that
//! only that is zeroed. A slot is one unit: only a write of the whole slot kills it.

use crate::access::WriteEffect;
use crate::cfg::{Regions, edges, reverse_postorder};
use crate::dataflow::{all_blocks, solve_backward};
use crate::ir::{
    Base, Bind, BlockId, Body, Enter, Guard, Op, Operation, Pattern, Payload, Place, Projection, Terminator, Wait,
};
use crate::sets::Set;
use crate::visit::{Use, op_uses, operand_uses, passed_uses, terminator_uses, written_place};
use std::collections::BTreeSet;

/// The dead storage at a point of a body.
#[derive(Clone, Debug, Default)]
pub struct Dead {
    /// Registers: values by their numbers.
    pub registers: Box<[u32]>,
    /// Offset and size of slots.
    pub slots: Box<[(usize, usize)]>,
}

/// The constraints of fast paths on a body.
#[derive(Clone, Debug, Default)]
pub struct OnPaths {
    /// Slots that replace slots of captured instances on a path.
    pub captured: Vec<u32>,
    /// Whether a path may capture an instance at a wait and resume it there. Its guards are then live at the wait.
    pub keeps_guards: bool,
}

/// The dead storage at a terminator that other instances can observe.
#[derive(Clone, Debug, Default)]
pub struct DeadAt {
    /// At the wait, once its guards are evaluated; or after the `yield`.
    pub here: Dead,
    /// After each branch of the wait.
    pub branches: Vec<Dead>,
    /// After its `else`.
    pub otherwise: Dead,
}

/// The dead storage at the terminator of each block. `slots` are the offsets and sizes of the body's slots.
pub fn dead_at(body: &Body, slots: &[(usize, usize)], on_paths: &OnPaths) -> Vec<DeadAt> {
    let is_seen = |terminator: &Terminator| matches!(terminator, Terminator::Wait(_) | Terminator::Yield(_));
    if !body.blocks.iter().any(|block| is_seen(&block.terminator)) {
        return vec![DeadAt::default(); body.blocks.len()];
    }
    let flow = Flow::new(body, slots, on_paths);
    flow.find_dead()
}

/// The live storage at each wait of a body, in order of blocks: values by their numbers, then slots.
pub fn live_at_waits(body: &Body, slots: &[(usize, usize)], on_paths: &OnPaths) -> Vec<Set> {
    let flow = Flow::new(body, slots, on_paths);
    let waits = body.blocks.iter().filter_map(|block| Some(flow.live_at_wait(block.terminator.as_wait()?)));
    waits.collect()
}

/// The live values at the start of each block, including its parameters.
pub fn live_values(body: &Body) -> Vec<Vec<u32>> {
    let on_paths = OnPaths::default();
    let flow = Flow::new(body, &[], &on_paths);
    let values = body.values.len() as u32;
    let of = |live: &Set| live.numbers().into_iter().filter(|number| *number < values).collect();
    flow.live.iter().map(of).collect()
}

/// The live storage at the start of each block: values by their numbers, then slots.
pub fn live_everywhere(body: &Body, slots: &[(usize, usize)], on_paths: &OnPaths) -> Vec<Set> {
    let flow = Flow::new(body, slots, on_paths);
    flow.live
}

/// The dead stores to slots: instructions by block and position, in order. Other effects, such as faults, are not
/// considered. Not for bodies with fast paths, whose slots are read through other names.
pub fn dead_stores(body: &Body) -> Vec<(usize, usize)> {
    let on_paths = OnPaths::default();
    let flow = Flow::new(body, &[], &on_paths);
    let mut unread = Vec::new();
    for (index, block) in body.blocks.iter().enumerate() {
        let mut live = flow.live_at_end(&block.terminator);
        let first = unread.len();
        for (position, instruction) in block.instructions.iter().enumerate().rev() {
            let mut written = None;
            written_place(&instruction.op, &mut |place| written = Some(place));
            if let Some(Place { base: Base::Slot(slot), .. }) = written
                && !live.contains(flow.slot(slot.0))
            {
                unread.push((index, position));
            }
            if let Some(value) = instruction.result {
                live.remove(value.0);
            }
            flow.before(&instruction.op, &mut live);
        }
        unread[first..].reverse();
    }
    unread
}

struct Flow<'a> {
    body: &'a Body,
    slots: &'a [(usize, usize)],
    on_paths: &'a OnPaths,
    /// Per block: what is live at its start, parameters included. Values by their numbers, then slots.
    live: Vec<Set>,
}

impl Flow<'_> {
    fn slot(&self, slot: u32) -> u32 {
        self.body.values.len() as u32 + slot
    }

    fn new<'a>(body: &'a Body, slots: &'a [(usize, usize)], on_paths: &'a OnPaths) -> Flow<'a> {
        let mut flow = Flow { body, slots, on_paths, live: vec![Set::default(); body.blocks.len()] };
        solve_backward(body, &all_blocks(body), |block| {
            let live = flow.live_at_start(block);
            let has_changed = flow.live[block.0 as usize] != live;
            flow.live[block.0 as usize] = live;
            has_changed
        });
        flow
    }

    fn live_at_start(&self, block: BlockId) -> Set {
        let block = &self.body.blocks[block.0 as usize];
        let mut live = self.live_at_end(&block.terminator);
        for instruction in block.instructions.iter().rev() {
            if let Some(value) = instruction.result {
                live.remove(value.0);
            }
            self.before(&instruction.op, &mut live);
        }
        live
    }

    fn live_at_end(&self, terminator: &Terminator) -> Set {
        let mut live = match terminator {
            Terminator::Wait(wait) => self.live_at_wait(wait),
            Terminator::Enter(enter) => {
                let mut live = Set::default();
                self.join(&mut live, enter.then, &[]);
                self.on_paths.captured.iter().for_each(|slot| live.remove(self.slot(*slot)));
                live
            }
            // The trigger's values are all set. Its slots stay live, as do those copied back to the members.
            Terminator::Leave(leave) => {
                let mut live = self.live[leave.trigger.to.0 as usize].clone();
                (0..self.body.values.len() as u32).for_each(|value| live.remove(value));
                self.on_paths.captured.iter().for_each(|slot| live.insert(self.slot(*slot)));
                live
            }
            Terminator::Jump(_)
            | Terminator::Branch { .. }
            | Terminator::Switch { .. }
            | Terminator::Yield(_)
            | Terminator::Return(_)
            | Terminator::Result(_)
            | Terminator::Exit(_)
            | Terminator::End
            | Terminator::Fault(_) => Set::default(),
        };
        for edge in edges(terminator) {
            self.join(&mut live, edge.to, &[]);
            let parameters = &self.body.blocks[edge.to.0 as usize].parameters;
            for (argument, parameter) in edge.arguments.iter().zip(parameters) {
                if self.live[edge.to.0 as usize].contains(parameter.0) {
                    live.insert(argument.0);
                }
            }
        }
        match terminator {
            Terminator::Jump(_) | Terminator::Yield(_) | Terminator::Enter(_) => {}
            Terminator::Branch { condition: value, .. } | Terminator::Switch { value, .. } => {
                live.insert(value.0);
            }
            Terminator::Wait(_)
            | Terminator::Leave(_)
            | Terminator::Return(_)
            | Terminator::Result(_)
            | Terminator::Exit(_)
            | Terminator::End
            | Terminator::Fault(_) => terminator_uses(terminator, &mut |used| match used {
                Use::Value(value) => live.insert(value.0),
                Use::Place(place) => self.read(place, &mut live),
                Use::Block(_) | Use::Slot(_) => {}
            }),
        }
        live
    }

    /// The live storage at a wait once its guards and times are evaluated.
    fn live_at_wait(&self, wait: &Wait) -> Set {
        let mut live = Set::default();
        wait.observed.iter().for_each(|(_, value)| live.insert(value.0));
        for branch in &wait.branches {
            match branch.guard {
                Guard::Region(entry) => self.join(&mut live, entry, &[]),
                Guard::Value(value) if self.on_paths.keeps_guards => live.insert(value.0),
                Guard::Open | Guard::Value(_) => {}
            }
            let mut read = |used: Use<'_>| match used {
                Use::Value(value) => live.insert(value.0),
                Use::Place(place) => self.read(place, &mut live),
                Use::Block(_) | Use::Slot(_) => {}
            };
            let mut bound = Vec::new();
            match &branch.operation {
                Operation::In { patterns, condition, .. } => {
                    patterns.iter().for_each(|pattern| pattern_parts(pattern, &mut bound, &mut read));
                    condition.iter().for_each(|entry| self.join(&mut live, *entry, &bound));
                }
                Operation::Out { payload: Payload::Ready(values), .. } => passed_uses(values, &mut read),
                Operation::Out { payload: Payload::Region(entry), .. } => self.join(&mut live, *entry, &[]),
                Operation::After { .. } => {}
            }
            self.join(&mut live, branch.then, &bound);
        }
        wait.otherwise.iter().for_each(|block| self.join(&mut live, *block, &[]));
        live
    }

    /// Adds the live storage at a block's start, without its parameters and the slots bound on the edge.
    fn join(&self, live: &mut Set, block: BlockId, bound: &[u32]) {
        let parameters = &self.body.blocks[block.0 as usize].parameters;
        let mut there = self.live[block.0 as usize].clone();
        parameters.iter().for_each(|parameter| there.remove(parameter.0));
        bound.iter().for_each(|slot| there.remove(self.slot(*slot)));
        live.add_all(&there);
    }

    /// The transfer function of an instruction.
    fn before(&self, op: &Op, live: &mut Set) {
        let mut written = None;
        written_place(op, &mut |place| written = Some(place));
        let overwrites = WriteEffect::of(op) == WriteEffect::Replaces;
        if let (true, Some(Place { base: Base::Slot(slot), path })) = (overwrites, written)
            && path.is_empty()
        {
            live.remove(self.slot(slot.0));
        }
        op_uses(op, &mut |used| match used {
            Use::Value(value) => live.insert(value.0),
            Use::Place(place) => {
                let is_target = written.is_some_and(|written| std::ptr::eq(written, place));
                // An index is checked against a length, which may lie in the slot.
                let indexed = place.path.iter().any(|step| matches!(step, Projection::Element(_)));
                match place.base {
                    Base::Slot(_) if is_target && overwrites && !indexed => indices(place, live),
                    Base::Slot(_) | Base::Object(_) | Base::Constant(..) => self.read(place, live),
                }
            }
            Use::Block(_) | Use::Slot(_) => {}
        });
    }

    fn read(&self, place: &Place, live: &mut Set) {
        match place.base {
            Base::Slot(slot) => live.insert(self.slot(slot.0)),
            Base::Object(value) => live.insert(value.0),
            Base::Constant(..) => {}
        }
        indices(place, live);
    }

    fn find_dead(&self) -> Vec<DeadAt> {
        let body = self.body;
        let mut dirty: Vec<Option<Set>> = vec![None; body.blocks.len()];
        let mut dead = vec![DeadAt::default(); body.blocks.len()];
        dirty[0] = Some(Set::default());
        // In reverse postorder, so that a block follows its predecessors, back edges excepted.
        let order = reverse_postorder(body, Regions::Include);
        let mut position = vec![usize::MAX; body.blocks.len()];
        order.iter().enumerate().for_each(|(at, block)| position[*block] = at);
        let mut work = BTreeSet::from([(position[0], 0)]);
        while let Some((_, index)) = work.pop_first() {
            let mut set = dirty[index].clone().expect("a block is visited once it is reached");
            self.write(&body.blocks[index].instructions, &mut set);
            let mut flow = |to: BlockId, set: &Set| {
                let known = &mut dirty[to.0 as usize];
                let mut joined = known.clone().unwrap_or_default();
                joined.add_all(set);
                if known.as_ref() != Some(&joined) {
                    *known = Some(joined);
                    work.insert((position[to.0 as usize], to.0 as usize));
                }
            };
            match &body.blocks[index].terminator {
                Terminator::Wait(wait) => dead[index] = self.dead_at_wait(wait, set, &mut flow),
                Terminator::Enter(enter) => self.flow_into_path(enter, set, &mut flow),
                Terminator::Leave(leave) => {
                    leave.trigger.values.iter().for_each(|(value, _)| set.insert(value.0));
                    self.on_paths.captured.iter().for_each(|slot| set.remove(self.slot(*slot)));
                    flow(leave.trigger.to, &set);
                }
                Terminator::Yield(edge) => {
                    let here = self.enter(edge.to, &mut set);
                    flow(edge.to, &set);
                    dead[index] = DeadAt { here, ..DeadAt::default() };
                }
                terminator => edges(terminator).into_iter().for_each(|edge| self.flow_along(edge.to, &set, &mut flow)),
            }
        }
        dead
    }

    /// The dead storage at a wait and after each of its branches. The live part flows on.
    fn dead_at_wait(&self, wait: &Wait, mut set: Set, flow: &mut dyn FnMut(BlockId, &Set)) -> DeadAt {
        let here = self.split(&mut set, &self.live_at_wait(wait));
        let mut branches = Vec::with_capacity(wait.branches.len());
        for branch in &wait.branches {
            let mut set = set.clone();
            let mut bound = Vec::new();
            match &branch.operation {
                Operation::In { patterns, .. } => {
                    patterns.iter().for_each(|pattern| pattern_parts(pattern, &mut bound, &mut |_| {}));
                }
                Operation::Out { .. } | Operation::After { .. } => {}
            }
            bound.iter().for_each(|slot| set.insert(self.slot(*slot)));
            branches.push(self.enter(branch.then, &mut set));
            flow(branch.then, &set);
        }
        let otherwise = wait.otherwise.map(|block| {
            let mut set = set.clone();
            let dead = self.enter(block, &mut set);
            flow(block, &set);
            dead
        });
        DeadAt { here, branches, otherwise: otherwise.unwrap_or_default() }
    }

    /// The storage that may differ from zero on a fast path and where it is declined.
    fn flow_into_path(&self, enter: &Enter, mut set: Set, flow: &mut dyn FnMut(BlockId, &Set)) {
        for edge in [&enter.later, &enter.otherwise] {
            self.flow_along(edge.to, &set, flow);
        }
        self.on_paths.captured.iter().for_each(|slot| set.insert(self.slot(*slot)));
        self.flow_along(enter.then, &set, flow);
    }

    /// Passes the storage that may differ from zero to a block, whose parameters are set.
    fn flow_along(&self, to: BlockId, set: &Set, flow: &mut dyn FnMut(BlockId, &Set)) {
        let mut set = set.clone();
        self.body.blocks[to.0 as usize].parameters.iter().for_each(|value| set.insert(value.0));
        flow(to, &set);
    }

    /// The dead storage at a block's start, with its parameters set; the live part stays in the set.
    fn enter(&self, block: BlockId, set: &mut Set) -> Dead {
        self.body.blocks[block.0 as usize].parameters.iter().for_each(|value| set.insert(value.0));
        self.split(set, &self.live[block.0 as usize])
    }

    /// Removes the storage that is not live from the set.
    fn split(&self, set: &mut Set, live: &Set) -> Dead {
        let dead = set.without(live);
        *set = set.without(&dead);
        let dead = dead.numbers();
        let values = self.body.values.len() as u32;
        let (registers, slots) = dead.split_at(dead.partition_point(|number| *number < values));
        Dead {
            registers: registers.into(),
            slots: slots.iter().map(|number| self.slots[(*number - values) as usize]).collect(),
        }
    }

    fn write(&self, instructions: &[crate::ir::Instruction], set: &mut Set) {
        for instruction in instructions {
            if let Some(value) = instruction.result {
                set.insert(value.0);
            }
            let mut touch = |place: &Place| match place.base {
                Base::Slot(slot) => set.insert(self.slot(slot.0)),
                Base::Object(_) | Base::Constant(..) => {}
            };
            written_place(&instruction.op, &mut touch);
            // An extern function may write its arguments.
            if let Op::CallExtern { arguments, .. } = &instruction.op {
                arguments.iter().for_each(|argument| {
                    operand_uses(argument, &mut |used| match used {
                        Use::Place(place) => touch(place),
                        Use::Value(_) | Use::Block(_) | Use::Slot(_) => {}
                    });
                });
            }
        }
    }
}

/// The index values of a place.
fn indices(place: &Place, live: &mut Set) {
    for step in &place.path {
        match step {
            Projection::Element(value) | Projection::Inside(value) => live.insert(value.0),
            Projection::Field(_) | Projection::Payload(_) => {}
        }
    }
}

/// The slots that a pattern binds, and its operands.
fn pattern_parts<'a>(pattern: &'a Pattern, bound: &mut Vec<u32>, read: &mut dyn FnMut(Use<'a>)) {
    match pattern {
        Pattern::Bind(Bind::Slot(slot)) => bound.push(slot.0),
        Pattern::Equal(value) => operand_uses(value, read),
        Pattern::Tag(_, Some(payload)) => pattern_parts(payload, bound, read),
        Pattern::Record(parts) | Pattern::Array(parts) => {
            parts.iter().for_each(|part| pattern_parts(part, bound, read));
        }
        Pattern::Any
        | Pattern::Bind(Bind::Parameter(_))
        | Pattern::Constant(_)
        | Pattern::Bytes(_)
        | Pattern::OwnId
        | Pattern::Tag(_, None) => {}
    }
}
