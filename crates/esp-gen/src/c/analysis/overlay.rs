//! Which slots of a frame share memory: those that never hold anything at the same time, those of which one is a copy of
//! the other for as long as both do, and those that are copied to or from parts of others. Interference as register allocators know it (Chaitin 1981, copies excepted), then
//! colours, largest slots first. Knows liveness and regions from its parent; nothing of frames and C.
//!
//! ```text
//!   in(c, $late)  ..  out(d, late)         late   ####
//!   in(c, $reply) ..  answer = reply       reply       ####        one union holds `late` and `answer`,
//!                     out(e, answer)       answer         ####     another one `reply`
//! ```

mod parts;

use super::{Analysis, Set, Unit};
use crate::layout::{Layouts, View};
use parts::{Part, Parts, is_static, overlap};
use quaject_esp_ir::access::{Access, touched};
use quaject_esp_ir::cfg::{Regions, region_blocks, successors};
use quaject_esp_ir::ir::*;
use quaject_esp_ir::visit::bound_slots;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// How the slots of a frame share memory.
#[derive(Default)]
pub(crate) struct Overlay {
    /// Slots that begin at the same place, two at least in each group, in ascending order.
    pub(crate) shared: Vec<Vec<SlotId>>,
    /// Slots that are a part of another one: fields and payloads.
    pub(crate) inside: BTreeMap<SlotId, Place>,
}

impl Overlay {
    /// Which group of slots this one belongs to.
    pub(crate) fn group(&self, slot: SlotId) -> Option<usize> {
        self.shared.iter().position(|group| group.binary_search(&slot).is_ok())
    }

    /// Whether an instruction copies something to where it is.
    pub(crate) fn stays_in_place(&self, body: &Body, op: &Op) -> bool {
        let Op::Copy { to, from } = op else { return false };
        if !is_static(to) || !is_static(from) {
            return false;
        }
        if let Some((to, from)) = copied_slots(body, op)
            && let Some(group) = self.group(to)
            && self.shared[group].binary_search(&from).is_ok()
        {
            return true;
        }
        self.resolve(to) == self.resolve(from)
    }

    /// The place in a slot that is no part of another.
    fn resolve(&self, place: &Place) -> Place {
        let Base::Slot(slot) = place.base else { return place.clone() };
        let Some(whole) = self.inside.get(&slot) else { return place.clone() };
        Place { base: whole.base, path: whole.path.iter().chain(&place.path).copied().collect() }
    }
}

/// How those slots of a body that may do so share memory.
pub(super) fn overlay(analysis: &Analysis<'_>, layouts: &Layouts, main: &[BlockId], may_share: &[bool]) -> Overlay {
    if may_share.iter().filter(|may| **may).count() < 2 {
        return Overlay::default();
    }
    let mut flow = Flow { analysis, may_share, in_main: BTreeSet::new() };
    flow.in_main = flow.slots_of_main(main);
    let live_in = flow.solve(main);
    let mut parts = Parts::find(analysis, main, may_share);
    let (conflicts, copies) = flow.conflicts(main, &live_in, &mut parts);
    let bytes = |slot: SlotId| layouts.extent(analysis.body.slots[slot.0 as usize].ty, View::Program).size;
    let mut classes = Classes::new(&conflicts, may_share);
    classes.join_copies(&copies, &bytes);
    let inside = classes.join_parts(&conflicts, &copies, parts.accepted(), &bytes);
    Overlay { shared: colour(classes, &inside, &bytes), inside }
}

/// Whether an instruction copies a whole slot into another one of its type.
fn copied_slots(body: &Body, op: &Op) -> Option<(SlotId, SlotId)> {
    let Op::Copy { to, from } = op else { return None };
    let (Base::Slot(to_slot), Base::Slot(from_slot)) = (to.base, from.base) else { return None };
    let is_whole = to.path.is_empty() && from.path.is_empty();
    let same_type = body.slots[to_slot.0 as usize].ty == body.slots[from_slot.0 as usize].ty;
    (is_whole && same_type).then_some((to_slot, from_slot))
}

/// The slots that a wait's branch fills when it is taken.
pub(super) fn bound(branch: &Branch) -> Vec<SlotId> {
    let mut slots = Vec::new();
    match &branch.operation {
        Operation::In { patterns, .. } => {
            patterns.iter().for_each(|pattern| bound_slots(pattern, &mut |slot| slots.push(slot)))
        }
        Operation::Out { .. } | Operation::After { .. } => {}
    }
    slots
}

/// The regions of a branch, each with the slots that hold the message's parts when it begins.
fn regions_of(branch: &Branch) -> Vec<(BlockId, Vec<SlotId>)> {
    let mut regions = Vec::new();
    match branch.guard {
        Guard::Region(entry) => regions.push((entry, Vec::new())),
        Guard::Open | Guard::Value(_) => {}
    }
    match &branch.operation {
        Operation::In { condition, .. } => regions.extend(condition.map(|entry| (entry, bound(branch)))),
        Operation::Out { payload: Payload::Region(entry), .. } => regions.push((*entry, Vec::new())),
        Operation::Out { payload: Payload::Ready(_), .. } | Operation::After { .. } => {}
    }
    regions
}

/// For each slot: the others whose contents are needed when it is written, or the other way round.
struct Conflicts(Vec<BTreeSet<u32>>);

impl Conflicts {
    fn add(&mut self, a: SlotId, b: SlotId) {
        if a != b {
            self.0[a.0 as usize].insert(b.0);
            self.0[b.0 as usize].insert(a.0);
        }
    }

    fn has(&self, a: SlotId, b: SlotId) -> bool {
        self.0[a.0 as usize].contains(&b.0)
    }
}

struct Flow<'a> {
    analysis: &'a Analysis<'a>,
    may_share: &'a [bool],
    /// Slots that blocks outside of regions use.
    in_main: BTreeSet<SlotId>,
}

impl Flow<'_> {
    fn slots_of_main(&self, main: &[BlockId]) -> BTreeSet<SlotId> {
        let (mut values, mut slots) = (BTreeSet::new(), BTreeSet::new());
        for id in main {
            touched(self.analysis.body, *id, &mut values, &mut slots);
            if let Terminator::Wait(wait) = &self.analysis.body.blocks[id.0 as usize].terminator {
                wait.branches.iter().for_each(|branch| slots.extend(bound(branch)));
            }
        }
        slots
    }

    fn may_share(&self, slot: SlotId) -> bool {
        self.may_share[slot.0 as usize]
    }

    fn units(&self, slot: SlotId) -> impl Iterator<Item = Unit> + use<> {
        (0..self.analysis.units(slot)).map(move |unit| Unit::Slot(slot, unit))
    }

    /// The slot of a place, if that may share its memory.
    fn slot(&self, place: &Place) -> Option<SlotId> {
        match place.base {
            Base::Slot(slot) => self.may_share(slot).then_some(slot),
            Base::Object(_) => None,
        }
    }

    fn read(&self, places: &[&Place], live: &mut Set) {
        for place in places.iter().filter(|place| self.slot(place).is_some()) {
            live.extend(self.analysis.place_units(place));
        }
    }

    /// The slots that a region may write or read.
    fn region_slots(&self, entry: BlockId) -> BTreeSet<SlotId> {
        let (mut values, mut slots) = (BTreeSet::new(), BTreeSet::new());
        let body = self.analysis.body;
        region_blocks(body, entry).iter().for_each(|block| touched(body, *block, &mut values, &mut slots));
        slots.retain(|slot| self.may_share(*slot));
        slots
    }

    /// What is alive at the end of a block.
    fn at_end(&self, terminator: &Terminator, live_in: &[Set]) -> Set {
        let Terminator::Wait(wait) = terminator else {
            let mut live = Set::new();
            for next in successors(terminator, Regions::Skip) {
                live.extend(&live_in[next.0 as usize]);
            }
            if let Terminator::Leave(leave) = terminator {
                live.extend(&live_in[leave.trigger.to.0 as usize]);
            }
            let mut access = Access::default();
            access.terminator(terminator);
            self.read(&access.reads, &mut live);
            return live;
        };
        let mut live = Set::new();
        for branch in &wait.branches {
            let bound = bound(branch);
            let there = live_in[branch.then.0 as usize].iter();
            live.extend(there.filter(|unit| !matches!(unit, Unit::Slot(slot, _) if bound.contains(slot))));
            for (entry, given) in regions_of(branch) {
                let needed = self.region_slots(entry);
                // What only regions use is theirs alone: each begins anew.
                let needed = needed.iter().filter(|slot| self.in_main.contains(slot) && !given.contains(slot));
                live.extend(needed.flat_map(|slot| self.units(*slot)));
            }
        }
        wait.otherwise.iter().for_each(|block| live.extend(&live_in[block.0 as usize]));
        let mut access = Access::default();
        access.terminator(terminator);
        self.read(&access.reads, &mut live);
        live
    }

    /// Goes back over one instruction.
    fn before(&self, op: &Op, access: &Access<'_>, live: &mut Set) {
        for place in access.writes.iter().filter(|place| self.analysis.covers(place, op)) {
            for unit in self.analysis.place_units(place) {
                live.remove(&unit);
            }
        }
        self.read(&access.reads, live);
    }

    fn solve(&self, blocks: &[BlockId]) -> Vec<Set> {
        let body = self.analysis.body;
        let mut live_in = vec![Set::new(); body.blocks.len()];
        let mut changed = true;
        while changed {
            changed = false;
            for id in blocks.iter().rev() {
                let block = &body.blocks[id.0 as usize];
                let mut live = self.at_end(&block.terminator, &live_in);
                for instruction in block.instructions.iter().rev() {
                    let mut access = Access::default();
                    access.op(&instruction.op);
                    self.before(&instruction.op, &access, &mut live);
                }
                if live != live_in[id.0 as usize] {
                    live_in[id.0 as usize] = live;
                    changed = true;
                }
            }
        }
        live_in
    }

    /// Who must not share with whom, and the pairs of which one is copied into the other.
    fn conflicts(
        &self,
        main: &[BlockId],
        live_in: &[Set],
        parts: &mut Parts,
    ) -> (Conflicts, BTreeSet<(SlotId, SlotId)>) {
        let body = self.analysis.body;
        let mut conflicts = Conflicts(vec![BTreeSet::new(); body.slots.len()]);
        let mut copies = BTreeSet::new();
        // What is read before it is written has had its contents from the beginning.
        let first = slots(&live_in[0]);
        first.iter().for_each(|slot| first.iter().for_each(|other| conflicts.add(*slot, *other)));
        parts.at_entry(&live_in[0]);
        for id in main {
            let block = &body.blocks[id.0 as usize];
            let mut live = self.at_end(&block.terminator, live_in);
            if let Some(wait) = block.terminator.as_wait() {
                self.at_wait(wait, live_in, &live, &mut conflicts, parts);
            }
            for instruction in block.instructions.iter().rev() {
                let op = &instruction.op;
                let mut access = Access::default();
                access.op(op);
                let copied = copied_slots(body, op).filter(|(to, from)| self.may_share(*to) && self.may_share(*from));
                copies.extend(copied);
                let written = access.writes.iter().filter_map(|place| self.slot(place));
                let mut written: BTreeSet<SlotId> = written.collect();
                let read: BTreeSet<SlotId> = access.reads.iter().filter_map(|place| self.slot(place)).collect();
                if let Op::CallExtern { .. } = op {
                    // C writes mutable arguments.
                    written.extend(&read);
                }
                if !written.is_empty() {
                    // What is read is still needed while the result is written; of a copy, both are the same.
                    let needed: BTreeSet<SlotId> = slots(&live).union(&read).copied().collect();
                    for slot in &written {
                        let except = copied.filter(|(to, _)| to == slot).map(|(_, from)| from);
                        let needed = needed.iter().chain(&written).filter(|other| Some(**other) != except);
                        needed.for_each(|other| conflicts.add(*slot, *other));
                    }
                }
                parts.at_instruction(op, &access, &live);
                self.before(op, &access, &mut live);
            }
        }
        (conflicts, copies)
    }

    fn at_wait(&self, wait: &Wait, live_in: &[Set], live: &Set, conflicts: &mut Conflicts, parts: &mut Parts) {
        let mut tried = BTreeSet::new();
        for branch in &wait.branches {
            let bound: Vec<SlotId> = bound(branch).into_iter().filter(|slot| self.may_share(*slot)).collect();
            let live = &live_in[branch.then.0 as usize];
            parts.at_branch(&bound, live);
            let needed = slots(live);
            for slot in &bound {
                needed.iter().chain(&bound).for_each(|other| conflicts.add(*slot, *other));
            }
            for (entry, given) in regions_of(branch) {
                tried.extend(self.region_slots(entry));
                tried.extend(given.into_iter().filter(|slot| self.may_share(*slot)));
            }
        }
        // Regions run while the instance waits, as often as others look for it, whatever becomes of them.
        let needed: BTreeSet<SlotId> = slots(live).union(&tried).copied().collect();
        tried.iter().for_each(|slot| needed.iter().for_each(|other| conflicts.add(*slot, *other)));
        parts.at_regions(&tried);
    }
}

/// The slots of which some part is alive.
fn slots(live: &Set) -> BTreeSet<SlotId> {
    live.iter()
        .filter_map(|unit| match unit {
            Unit::Slot(slot, _) => Some(*slot),
            Unit::Value(_) => None,
        })
        .collect()
}

/// Slots that are to be together, and those that must not be there.
struct Class {
    slots: Vec<SlotId>,
    conflicts: BTreeSet<u32>,
}

impl Class {
    fn clashes(&self, other: &Class) -> bool {
        self.slots.iter().any(|slot| other.conflicts.contains(&slot.0))
    }

    fn add(&mut self, other: Class) {
        self.slots.extend(other.slots);
        self.conflicts.extend(other.conflicts);
    }
}

struct Classes {
    /// None for those that have become part of others.
    all: Vec<Option<Class>>,
    /// By slot.
    of: Vec<usize>,
}

impl Classes {
    fn new(conflicts: &Conflicts, may_share: &[bool]) -> Classes {
        let slots = conflicts.0.iter().zip(may_share).enumerate();
        let class = |(slot, (conflicts, may_share)): (usize, (&BTreeSet<u32>, &bool))| {
            may_share.then(|| Class { slots: vec![SlotId(slot as u32)], conflicts: conflicts.clone() })
        };
        let all: Vec<Option<Class>> = slots.map(class).collect();
        Classes { of: (0..all.len()).collect(), all }
    }

    fn class(&self, slot: SlotId) -> (usize, Option<&Class>) {
        let index = self.of[slot.0 as usize];
        (index, self.all[index].as_ref())
    }

    fn join(&mut self, into: usize, from: usize) {
        let moved = self.all[from].take().expect("a class is joined once");
        moved.slots.iter().for_each(|slot| self.of[slot.0 as usize] = into);
        self.all[into].as_mut().expect("a class is joined with one that is there").add(moved);
    }

    /// Joins slots that are copied into each other, the largest first, as long as no two of a class conflict.
    fn join_copies(&mut self, copies: &BTreeSet<(SlotId, SlotId)>, bytes: &dyn Fn(SlotId) -> u64) {
        let mut copies: Vec<_> = copies.iter().copied().collect();
        copies.sort_by_key(|(to, from)| (Reverse(bytes(*to)), *to, *from));
        for (to, from) in copies {
            if let ((into, Some(a)), (from, Some(b))) = (self.class(to), self.class(from))
                && into != from
                && !a.clashes(b)
            {
                self.join(into, from);
            }
        }
    }

    /// Puts slots into others of which they can be a part, the largest first.
    fn join_parts(
        &mut self,
        conflicts: &Conflicts,
        copies: &BTreeSet<(SlotId, SlotId)>,
        mut parts: Vec<Part>,
        bytes: &dyn Fn(SlotId) -> u64,
    ) -> BTreeMap<SlotId, Place> {
        let mut inside: BTreeMap<SlotId, Place> = BTreeMap::new();
        parts.sort_by_key(|part| (Reverse(bytes(part.slot)), part.slot));
        for Part { slot, whole, place, .. } in parts {
            // A copy of it begins elsewhere now.
            let partner = |(to, from): &(SlotId, SlotId)| match (*to == slot, *from == slot) {
                (true, false) => Some(*from),
                (false, true) => Some(*to),
                (true, true) | (false, false) => None,
            };
            let partners: BTreeSet<SlotId> = copies.iter().filter_map(partner).collect();
            let is_host = inside.values().any(|place| place.base == Base::Slot(slot));
            let ((from, Some(own)), (into, Some(others))) = (self.class(slot), self.class(whole)) else { continue };
            let is_beside = |other: SlotId| {
                let beside = |there: &Place| there.base == place.base && !overlap(&there.path, &place.path);
                other == whole || inside.get(&other).is_some_and(beside)
            };
            let fits = |other: SlotId| is_beside(other) || !conflicts.has(slot, other) && !partners.contains(&other);
            let is_part = inside.contains_key(&slot) || inside.contains_key(&whole);
            if is_part || is_host || own.slots.len() > 1 || !others.slots.iter().all(|other| fits(*other)) {
                continue;
            }
            self.join(into, from);
            for partner in partners {
                let index = self.of[partner.0 as usize];
                self.all[index].iter_mut().for_each(|class| class.conflicts.extend([slot.0]));
                self.all[into].iter_mut().for_each(|class| class.conflicts.extend([partner.0]));
            }
            inside.insert(slot, place);
        }
        inside
    }
}

/// Puts each class, the largest first, into the first group that it does not conflict with.
fn colour(classes: Classes, inside: &BTreeMap<SlotId, Place>, bytes: &dyn Fn(SlotId) -> u64) -> Vec<Vec<SlotId>> {
    let size = |class: &Class| class.slots.iter().map(|slot| bytes(*slot)).max();
    let mut classes: Vec<Class> = classes.all.into_iter().flatten().collect();
    classes.sort_by_key(|class| (Reverse(size(class)), class.slots.iter().min().copied()));
    let mut groups: Vec<Class> = Vec::new();
    for class in classes {
        match groups.iter_mut().find(|group| !group.clashes(&class)) {
            Some(group) => group.add(class),
            None => groups.push(class),
        }
    }
    let groups = groups.into_iter().map(|group| {
        let mut slots = group.slots;
        slots.retain(|slot| !inside.contains_key(slot));
        slots.sort();
        slots
    });
    let mut groups: Vec<Vec<SlotId>> = groups.filter(|group| group.len() > 1).collect();
    groups.sort();
    groups
}
