//! Inserts a fast path's code into its trigger, behind the entry test, and records which members it captures.
//!
//! ```text
//!   start: .. predicate ──false──────────────────────────────┐
//!            │true                                           │
//!          bypassed for a while by back-off (`back_off`) ────┤
//!          every `bypass_interval`-th time, if it chooses ───┤
//!            │                                               v
//!          enter ──in position──> the path's code        general code
//!            │  └──not in position──────────────────────────^
//!          members about to run: yield and retry, at most `retry_limit` times
//! ```

use super::back_off;
use crate::path_spec::PathSpec;
use crate::placement::MemberPlacement;
use crate::product::{Group, PathSchedule};
use quaject_esp_ir::cfg::{edges_mut, wait_targets_mut};
use quaject_esp_ir::ir::{
    Base, BinaryOp, Block, BlockId, Body, Edge, Enter, FastPath, Instruction, Location, Op, Operand, Operation, PathId,
    PathMember, Place, ProcessId, Program, Projection, Site, SiteId, Slot, SlotId, Terminator, Type, TypeId, TypeTable,
    Value, ValueData,
};
use quaject_esp_ir::visit::{block_slots, block_slots_mut, op_values_mut, region_slots, terminator_values_mut};
use std::collections::{BTreeMap, BTreeSet};

/// Why a path may be bypassed although every member is in position.
pub(super) struct EntryGuards {
    /// It makes a choice of an `alt`: at intervals the general code makes it, fairly.
    pub(super) has_choice: bool,
    /// The slot with the back-off state, and the initial iteration count.
    pub(super) back_off: Option<(SlotId, u32)>,
}

/// Inserts the code of a path. The entry block of `path` takes the members' values in order.
pub(super) fn insert(
    program: &mut Program,
    group: &Group<'_>,
    schedule: &PathSchedule,
    spec: &PathSpec,
    path: Body,
    guards: EntryGuards,
) {
    let id = PathId(program.paths.len() as u32);
    let members = schedule.placement(group);
    let counter = guards.has_choice.then(|| program.types.intern(Type::Array { length: 1, element: TypeTable::U32 }));
    let trigger = members[0].process;
    let own_values = &members[0].values;
    let mut sites = Vec::new();
    let process = &mut program.processes[trigger.0 as usize];
    let first_new = process.sites.len() as u32;
    let splice = Splice::new(&mut process.body, &members, &live_slots(group, &members, &path), &path);
    let mut captured: Vec<PathMember> = Vec::new();
    for (number, member) in members.iter().enumerate().skip(1) {
        let slots = splice.shadow_slots(number);
        captured.push(PathMember {
            instance: member.instance,
            start: member.start,
            values: member.values.clone(),
            slots,
        });
    }
    let entry = splice.append_blocks(&mut process.body, path, id, &mut |site| {
        let first = members.iter().rev().find(|member| member.first_site <= site.0).expect("a site is a member's");
        if first.first_site == 0 {
            return site;
        }
        sites.push((first.process, SiteId(site.0 - first.first_site)));
        SiteId(first_new + sites.len() as u32 - 1)
    });
    // Operations of other members become operations of the trigger.
    let added: Vec<Site> = sites
        .iter()
        .map(|(process, site): &(ProcessId, SiteId)| {
            program.processes[process.0 as usize].sites[site.0 as usize].clone()
        })
        .collect();
    let process = &mut program.processes[trigger.0 as usize];
    process.sites.extend(added);
    let back_off = guards.back_off.map(|(slot, initial_count)| (splice.slots[&slot.0], initial_count));
    let test =
        EntryTest { spec, id, before: schedule.trigger_block, entry, values: own_values.clone(), counter, back_off };
    test.insert(&mut process.body, schedule.trigger_predicate());
    program.paths.push(FastPath { name: spec.name.clone(), trigger: members[0].instance, members: captured });
}

/// The renumbering of a path's values, blocks and slots in the trigger's body.
struct Splice {
    first_value: u32,
    first_block: u32,
    /// Slot of the path to slot of the trigger.
    slots: BTreeMap<u32, SlotId>,
    /// Per member: its slots and the trigger's slots that shadow them.
    shadow_slots: Vec<Vec<(SlotId, SlotId)>>,
}

/// Per member: its slots that are live at the entry or at an exit of the path.
fn live_slots(group: &Group<'_>, members: &[MemberPlacement], path: &Body) -> Vec<BTreeSet<SlotId>> {
    let mut live: Vec<BTreeSet<SlotId>> =
        members.iter().enumerate().map(|(number, member)| group.live_slots(number, member.start.0)).collect();
    for block in &path.blocks {
        let Terminator::Leave(leave) = &block.terminator else { continue };
        live[0].extend(group.live_slots(0, leave.trigger.to));
        for (number, resume) in &leave.members {
            let member = *number as usize + 1;
            live[member].extend(group.live_slots(member, resume.to));
        }
    }
    for (live, body) in live.iter_mut().zip(group.bodies()) {
        let of_regions = region_slots(body);
        live.retain(|slot| !of_regions.contains(slot));
    }
    live
}

impl Splice {
    fn new(body: &mut Body, members: &[MemberPlacement], live: &[BTreeSet<SlotId>], path: &Body) -> Splice {
        let mut splice = Splice {
            first_value: body.values.len() as u32,
            first_block: body.blocks.len() as u32,
            slots: BTreeMap::new(),
            shadow_slots: vec![Vec::new(); members.len()],
        };
        body.values.extend(path.values.iter().cloned());
        let mut used = vec![false; path.slots.len()];
        for block in &path.blocks {
            block_slots(block, &mut |slot| used[slot.0 as usize] = true);
        }
        for (index, slot) in path.slots.iter().enumerate().filter(|(index, _)| used[*index]) {
            let index = index as u32;
            let owner = members.iter().position(|member| member.has_slot(index));
            // A slot that is dead outside of the path needs no owner.
            let owner = owner.filter(|owner| live[*owner].contains(&SlotId(index - members[*owner].first_slot)));
            let trigger_slot = match owner {
                Some(0) => SlotId(index),
                Some(_) | None => {
                    body.slots.push(Slot { ty: slot.ty, name: slot.name.clone() });
                    SlotId(body.slots.len() as u32 - 1)
                }
            };
            if let Some(owner @ 1..) = owner {
                splice.shadow_slots[owner].push((SlotId(index - members[owner].first_slot), trigger_slot));
            }
            splice.slots.insert(index, trigger_slot);
        }
        splice
    }

    fn shadow_slots(&self, member: usize) -> Vec<(SlotId, SlotId)> {
        self.shadow_slots[member].clone()
    }

    /// Appends the path's blocks; returns its entry.
    fn append_blocks(
        &self,
        body: &mut Body,
        path: Body,
        id: PathId,
        site: &mut dyn FnMut(SiteId) -> SiteId,
    ) -> BlockId {
        for mut block in path.blocks {
            let mut value = |value: &mut Value| value.0 += self.first_value;
            block.parameters.iter_mut().for_each(&mut value);
            for instruction in &mut block.instructions {
                instruction.result.iter_mut().for_each(&mut value);
                op_values_mut(&mut instruction.op, &mut value);
            }
            terminator_values_mut(&mut block.terminator, &mut value);
            block_slots_mut(&mut block, &mut |slot| *slot = self.slots[&slot.0]);
            edges_mut(&mut block.terminator).into_iter().for_each(|edge| edge.to.0 += self.first_block);
            match &mut block.terminator {
                Terminator::Wait(wait) => {
                    wait_targets_mut(wait).into_iter().for_each(|target| target.0 += self.first_block);
                    for branch in &mut wait.branches {
                        match &mut branch.operation {
                            Operation::In { site: own, .. } | Operation::Out { site: own, .. } => *own = site(*own),
                            Operation::After { .. } => {}
                        }
                    }
                }
                Terminator::Leave(leave) => leave.path = id,
                Terminator::Jump(_)
                | Terminator::Branch { .. }
                | Terminator::Switch { .. }
                | Terminator::Yield(_)
                | Terminator::Return(_)
                | Terminator::Result(_)
                | Terminator::Exit(_)
                | Terminator::End
                | Terminator::Fault(_)
                | Terminator::Enter(_) => {}
            }
            body.blocks.push(block);
        }
        BlockId(self.first_block)
    }
}

/// The entry test.
struct EntryTest<'s> {
    spec: &'s PathSpec,
    id: PathId,
    /// The block after which the path starts.
    before: BlockId,
    /// The path's entry, and the trigger's values that it takes first.
    entry: BlockId,
    values: Vec<Value>,
    /// The type of the slot that counts tests, if the path is bypassed at intervals.
    counter: Option<TypeId>,
    /// The slot with the back-off state, and the initial iteration count.
    back_off: Option<(SlotId, u32)>,
}

impl EntryTest<'_> {
    /// Puts the test at the end of `before`; its former terminator continues the general code.
    fn insert(&self, body: &mut Body, predicate: Option<u32>) {
        let (location, before) = (self.spec.location, self.before);
        // The general code: the former terminator.
        let general =
            create_block(body, Vec::new(), Vec::new(), body.blocks[before.0 as usize].terminator.clone(), location);
        let bypass = Edge { to: general, arguments: Vec::new() };
        // enter(n); retried if members are about to run.
        let retries = create_value(body, TypeTable::U32);
        let test = create_block(body, vec![retries], Vec::new(), Terminator::End, location);
        let (limit, fewer) = (create_value(body, TypeTable::U32), create_value(body, TypeTable::BOOL));
        let (one, next) = (create_value(body, TypeTable::U32), create_value(body, TypeTable::U32));
        let retry = create_block(
            body,
            Vec::new(),
            vec![
                definition(one, Op::Constant(1), location),
                definition(next, Op::Binary(BinaryOp::Add, retries, one), location),
            ],
            Terminator::Yield(Edge { to: test, arguments: vec![next] }),
            location,
        );
        let check_limit = create_block(
            body,
            Vec::new(),
            vec![
                definition(limit, Op::Constant(i128::from(self.spec.retry_limit)), location),
                definition(fewer, Op::Binary(BinaryOp::Less, retries, limit), location),
            ],
            Terminator::Branch { condition: fewer, then: edge_to(retry), otherwise: bypass.clone() },
            location,
        );
        let entry_parameters = body.blocks[self.entry.0 as usize].parameters.clone();
        let (_, others) = entry_parameters.split_at(self.values.len());
        let received: Vec<Value> = others
            .iter()
            .map(|parameter| {
                let data = body.values[parameter.0 as usize].clone();
                body.values.push(data);
                Value(body.values.len() as u32 - 1)
            })
            .collect();
        let arguments = self.values.iter().chain(&received).copied().collect();
        let then =
            create_block(body, received, Vec::new(), Terminator::Jump(Edge { to: self.entry, arguments }), location);
        let enter = Enter { path: self.id, then, later: edge_to(check_limit), otherwise: bypass.clone() };
        body.blocks[test.0 as usize].terminator = Terminator::Enter(enter);
        let zero = create_value(body, TypeTable::U32);
        let first = create_block(
            body,
            Vec::new(),
            vec![definition(zero, Op::Constant(0), location)],
            Terminator::Jump(Edge { to: test, arguments: vec![zero] }),
            location,
        );
        let first = match self.counter {
            Some(ty) => self.bypass_at_intervals(body, ty, first, &bypass),
            None => first,
        };
        let first = match self.back_off {
            Some((slot, initial_count)) => {
                zero_initialise(body, slot, location);
                back_off::emit_back_off_test(body, slot, initial_count, first, &bypass, location)
            }
            None => first,
        };
        let holds = predicate.and_then(|wanted| {
            body.blocks[before.0 as usize].instructions.iter().rev().find_map(|instruction| match instruction.op {
                Op::Predicate(number, holds) if number == wanted => Some(holds),
                _ => None,
            })
        });
        body.blocks[before.0 as usize].terminator = match holds {
            Some(condition) => Terminator::Branch { condition, then: edge_to(first), otherwise: bypass },
            None => Terminator::Jump(edge_to(first)),
        };
    }

    /// Bypasses the path at every `bypass_interval`-th test.
    fn bypass_at_intervals(&self, body: &mut Body, ty: TypeId, first: BlockId, bypass: &Edge) -> BlockId {
        let location = self.spec.location;
        body.slots.push(Slot { ty, name: None });
        let slot = SlotId(body.slots.len() as u32 - 1);
        let [index, old, one, count, interval, rest, zero, is_due] = [
            TypeTable::U32,
            TypeTable::U32,
            TypeTable::U32,
            TypeTable::U32,
            TypeTable::U32,
            TypeTable::U32,
            TypeTable::U32,
            TypeTable::BOOL,
        ]
        .map(|ty| create_value(body, ty));
        let place = Place { base: Base::Slot(slot), path: vec![Projection::Element(index)] };
        let code = vec![
            definition(index, Op::Constant(0), location),
            definition(old, Op::Load(place.clone()), location),
            definition(one, Op::Constant(1), location),
            definition(count, Op::Binary(BinaryOp::Add, old, one), location),
            definition(interval, Op::Constant(i128::from(self.spec.bypass_interval)), location),
            definition(rest, Op::Binary(BinaryOp::Remainder, count, interval), location),
            Instruction { result: None, op: Op::Store(place, rest), location },
            definition(zero, Op::Constant(0), location),
            definition(is_due, Op::Binary(BinaryOp::Equal, rest, zero), location),
        ];
        zero_initialise(body, slot, location);
        create_block(
            body,
            Vec::new(),
            code,
            Terminator::Branch { condition: is_due, then: bypass.clone(), otherwise: edge_to(first) },
            location,
        )
    }
}

/// Zeroes a slot at the start of the process.
fn zero_initialise(body: &mut Body, slot: SlotId, location: Location) {
    let start = create_value(body, TypeTable::U32);
    let place = Place { base: Base::Slot(slot), path: Vec::new() };
    body.blocks[0].instructions.splice(
        0..0,
        [
            definition(start, Op::Constant(0), location),
            Instruction { result: None, op: Op::Fill(place, Operand::Value(start)), location },
        ],
    );
}

fn edge_to(block: BlockId) -> Edge {
    Edge { to: block, arguments: Vec::new() }
}

fn create_value(body: &mut Body, ty: TypeId) -> Value {
    body.values.push(ValueData { ty, name: None });
    Value(body.values.len() as u32 - 1)
}

fn definition(result: Value, op: Op, location: Location) -> Instruction {
    Instruction { result: Some(result), op, location }
}

fn create_block(
    body: &mut Body,
    parameters: Vec<Value>,
    instructions: Vec<Instruction>,
    terminator: Terminator,
    location: Location,
) -> BlockId {
    body.blocks.push(Block { parameters, instructions, terminator, location });
    BlockId(body.blocks.len() as u32 - 1)
}
