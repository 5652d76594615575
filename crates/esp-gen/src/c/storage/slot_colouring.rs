//! Slot colouring: which slots of a frame share memory. Slots whose live ranges interfere do not; a slot and its copy
//! do not interfere (Chaitin 1981). Copies are coalesced first, then slots that are copied to or from parts of others
//! are placed inside them ([`subslots`]), then the interference graph is coloured greedily, largest slots first. Knows
//! liveness and regions; nothing of frames and C.
//!
//! ```text
//!   in(c, $late)  ..  out(d, late)         late   ####
//!   in(c, $reply) ..  answer = reply       reply       ####        one union holds `late` and `answer`,
//!                     out(e, answer)       answer         ####     another one `reply`
//! ```

mod subslots;

use super::liveness::{LiveSet, LiveUnit, Liveness};
use crate::layout::{Layouts, View};
use quaject_esp_ir::access::{Access, touched};
use quaject_esp_ir::cfg::{Regions, region_blocks, successors};
use quaject_esp_ir::dataflow::solve_backward;
use quaject_esp_ir::ir::*;
use quaject_esp_ir::visit::bound_slots;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use subslots::{Subslot, Subslots, is_static, overlap};

/// How the slots of a frame share memory.
#[derive(Default)]
pub(crate) struct SlotColouring {
    /// Slots with the same address: at least two in each group, in ascending order.
    pub(crate) shared: Vec<Vec<SlotId>>,
    /// Slots that are a part of another one: fields and payloads.
    pub(crate) inside: BTreeMap<SlotId, Place>,
}

impl SlotColouring {
    /// Which group of slots this one belongs to.
    pub(crate) fn group(&self, slot: SlotId) -> Option<usize> {
        self.shared.iter().position(|group| group.binary_search(&slot).is_ok())
    }

    /// Whether an instruction copies something to the memory that it occupies.
    pub(crate) fn is_noop_copy(&self, body: &Body, op: &Op) -> bool {
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

    /// The same place, based on a slot that is not inside another one.
    fn resolve(&self, place: &Place) -> Place {
        let Base::Slot(slot) = place.base else { return place.clone() };
        let Some(host) = self.inside.get(&slot) else { return place.clone() };
        Place { base: host.base, path: host.path.iter().chain(&place.path).copied().collect() }
    }
}

/// Assigns memory to the slots of a body that may share it.
pub(super) fn colour_slots(
    liveness: &Liveness<'_>,
    layouts: &Layouts,
    main: &[BlockId],
    may_share: &[bool],
) -> SlotColouring {
    if may_share.iter().filter(|may| **may).count() < 2 {
        return SlotColouring::default();
    }
    let mut slot_liveness = SlotLiveness { liveness, may_share, in_main: BTreeSet::new() };
    slot_liveness.in_main = slot_liveness.slots_of_main(main);
    let live_in = slot_liveness.solve(main);
    let mut subslots = Subslots::find(liveness, main, may_share);
    let (interference, copies) = slot_liveness.interference(main, &live_in, &mut subslots);
    let bytes = |slot: SlotId| layouts.extent(liveness.body.slots[slot.0 as usize].ty, View::Program).size;
    let mut classes = SlotClasses::new(&interference, may_share);
    classes.join_copies(&copies, &bytes);
    let inside = classes.join_subslots(&interference, &copies, subslots.accepted(), &bytes);
    SlotColouring { shared: colour(classes, &inside, &bytes), inside }
}

/// Whether an instruction copies a slot into another one of its type.
fn copied_slots(body: &Body, op: &Op) -> Option<(SlotId, SlotId)> {
    let Op::Copy { to, from } = op else { return None };
    let (Base::Slot(to_slot), Base::Slot(from_slot)) = (to.base, from.base) else { return None };
    let is_whole = to.path.is_empty() && from.path.is_empty();
    let same_type = body.slots[to_slot.0 as usize].ty == body.slots[from_slot.0 as usize].ty;
    (is_whole && same_type).then_some((to_slot, from_slot))
}

/// The slots that the patterns of a branch bind.
pub(super) fn slots_bound_by(branch: &Branch) -> Vec<SlotId> {
    let mut slots = Vec::new();
    match &branch.operation {
        Operation::In { patterns, .. } => {
            patterns.iter().for_each(|pattern| bound_slots(pattern, &mut |slot| slots.push(slot)))
        }
        Operation::Out { .. } | Operation::After { .. } => {}
    }
    slots
}

/// The regions of a branch, each with the slots that are bound before it runs.
fn regions_of(branch: &Branch) -> Vec<(BlockId, Vec<SlotId>)> {
    let mut regions = Vec::new();
    match branch.guard {
        Guard::Region(entry) => regions.push((entry, Vec::new())),
        Guard::Open | Guard::Value(_) => {}
    }
    match &branch.operation {
        Operation::In { condition, .. } => regions.extend(condition.map(|entry| (entry, slots_bound_by(branch)))),
        Operation::Out { payload: Payload::Region(entry), .. } => regions.push((*entry, Vec::new())),
        Operation::Out { payload: Payload::Ready(_), .. } | Operation::After { .. } => {}
    }
    regions
}

/// The interference graph: per slot, those that are live where it is written, and those at whose writes it is live.
struct Interference(Vec<BTreeSet<u32>>);

impl Interference {
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

/// Liveness of the slots that may share memory. It differs from that of storage assignment: a slot is live while a wait
/// binds it only behind the branch that does.
struct SlotLiveness<'a> {
    liveness: &'a Liveness<'a>,
    may_share: &'a [bool],
    /// Slots that blocks outside of regions use.
    in_main: BTreeSet<SlotId>,
}

impl SlotLiveness<'_> {
    fn slots_of_main(&self, main: &[BlockId]) -> BTreeSet<SlotId> {
        let (mut values, mut slots) = (BTreeSet::new(), BTreeSet::new());
        for id in main {
            touched(self.liveness.body, *id, &mut values, &mut slots);
            if let Terminator::Wait(wait) = &self.liveness.body.blocks[id.0 as usize].terminator {
                wait.branches.iter().for_each(|branch| slots.extend(slots_bound_by(branch)));
            }
        }
        slots
    }

    fn may_share(&self, slot: SlotId) -> bool {
        self.may_share[slot.0 as usize]
    }

    fn all_units(&self, slot: SlotId) -> impl Iterator<Item = LiveUnit> + use<> {
        (0..self.liveness.unit_count(slot)).map(move |unit| LiveUnit::Slot(slot, unit))
    }

    /// The slot of a place, if that may share its memory.
    fn slot(&self, place: &Place) -> Option<SlotId> {
        match place.base {
            Base::Slot(slot) => self.may_share(slot).then_some(slot),
            Base::Object(_) | Base::Constant(..) => None,
        }
    }

    fn read(&self, places: &[&Place], live: &mut LiveSet) {
        for place in places.iter().filter(|place| self.slot(place).is_some()) {
            live.extend(self.liveness.place_units(place));
        }
    }

    /// The slots that a region may write or read.
    fn region_slots(&self, entry: BlockId) -> BTreeSet<SlotId> {
        let (mut values, mut slots) = (BTreeSet::new(), BTreeSet::new());
        let body = self.liveness.body;
        region_blocks(body, entry).iter().for_each(|block| touched(body, *block, &mut values, &mut slots));
        slots.retain(|slot| self.may_share(*slot));
        slots
    }

    /// What is live at the end of a block, including what its terminator reads.
    fn at_end(&self, terminator: &Terminator, live_in: &[LiveSet]) -> LiveSet {
        let Terminator::Wait(wait) = terminator else {
            let mut live = LiveSet::new();
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
        let mut live = LiveSet::new();
        for branch in &wait.branches {
            let bound = slots_bound_by(branch);
            let there = live_in[branch.then.0 as usize].iter();
            live.extend(there.filter(|unit| !matches!(unit, LiveUnit::Slot(slot, _) if bound.contains(slot))));
            for (entry, bound) in regions_of(branch) {
                let needed = self.region_slots(entry);
                // A slot that only regions use holds nothing from one evaluation to the next.
                let needed = needed.iter().filter(|slot| self.in_main.contains(slot) && !bound.contains(slot));
                live.extend(needed.flat_map(|slot| self.all_units(*slot)));
            }
        }
        wait.otherwise.iter().for_each(|block| live.extend(&live_in[block.0 as usize]));
        let mut access = Access::default();
        access.terminator(terminator);
        self.read(&access.reads, &mut live);
        live
    }

    /// Steps backward over one instruction.
    fn before(&self, op: &Op, access: &Access<'_>, live: &mut LiveSet) {
        for place in access.writes.iter().filter(|place| self.liveness.covers(place, op)) {
            for unit in self.liveness.place_units(place) {
                live.remove(&unit);
            }
        }
        self.read(&access.reads, live);
    }

    fn solve(&self, blocks: &[BlockId]) -> Vec<LiveSet> {
        let body = self.liveness.body;
        let mut live_in = vec![LiveSet::new(); body.blocks.len()];
        solve_backward(body, blocks, |id| {
            let block = &body.blocks[id.0 as usize];
            let mut live = self.at_end(&block.terminator, &live_in);
            for instruction in block.instructions.iter().rev() {
                let mut access = Access::default();
                access.op(&instruction.op);
                self.before(&instruction.op, &access, &mut live);
            }
            let before = &mut live_in[id.0 as usize];
            let has_changed = *before != live;
            *before = live;
            has_changed
        });
        live_in
    }

    /// The interference graph, and the pairs of which one is copied into the other.
    fn interference(
        &self,
        main: &[BlockId],
        live_in: &[LiveSet],
        subslots: &mut Subslots,
    ) -> (Interference, BTreeSet<(SlotId, SlotId)>) {
        let body = self.liveness.body;
        let mut interference = Interference(vec![BTreeSet::new(); body.slots.len()]);
        let mut copies = BTreeSet::new();
        // Slots that are live at the entry hold their contents from the start of the body.
        let first = slots(&live_in[0]);
        first.iter().for_each(|slot| first.iter().for_each(|other| interference.add(*slot, *other)));
        subslots.at_entry(&live_in[0]);
        for id in main {
            let block = &body.blocks[id.0 as usize];
            let mut live = self.at_end(&block.terminator, live_in);
            if let Some(wait) = block.terminator.as_wait() {
                self.at_wait(wait, live_in, &live, &mut interference, subslots);
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
                    // Operands are live while the result is written; source and target of a copy hold the same.
                    let live_slots: BTreeSet<SlotId> = slots(&live).union(&read).copied().collect();
                    for slot in &written {
                        let except = copied.filter(|(to, _)| to == slot).map(|(_, from)| from);
                        let others = live_slots.iter().chain(&written).filter(|other| Some(**other) != except);
                        others.for_each(|other| interference.add(*slot, *other));
                    }
                }
                subslots.at_instruction(op, &access, &live);
                self.before(op, &access, &mut live);
            }
        }
        (interference, copies)
    }

    fn at_wait(
        &self,
        wait: &Wait,
        live_in: &[LiveSet],
        live: &LiveSet,
        interference: &mut Interference,
        subslots: &mut Subslots,
    ) {
        let mut used_by_regions = BTreeSet::new();
        for branch in &wait.branches {
            let bound: Vec<SlotId> = slots_bound_by(branch).into_iter().filter(|slot| self.may_share(*slot)).collect();
            let live = &live_in[branch.then.0 as usize];
            subslots.at_branch(&bound, live);
            let live_slots = slots(live);
            for slot in &bound {
                live_slots.iter().chain(&bound).for_each(|other| interference.add(*slot, *other));
            }
            for (entry, bound) in regions_of(branch) {
                used_by_regions.extend(self.region_slots(entry));
                used_by_regions.extend(bound.into_iter().filter(|slot| self.may_share(*slot)));
            }
        }
        // Regions are evaluated while the instance waits, each time that a partner searches.
        let live_slots: BTreeSet<SlotId> = slots(live).union(&used_by_regions).copied().collect();
        used_by_regions.iter().for_each(|slot| live_slots.iter().for_each(|other| interference.add(*slot, *other)));
        subslots.at_regions(&used_by_regions);
    }
}

/// The slots of which some part is live.
fn slots(live: &LiveSet) -> BTreeSet<SlotId> {
    live.iter().filter_map(LiveUnit::slot).collect()
}

/// Slots with one address, and the slots that interfere with one of them.
struct SlotClass {
    slots: Vec<SlotId>,
    interference: BTreeSet<u32>,
}

impl SlotClass {
    fn interferes(&self, other: &SlotClass) -> bool {
        self.slots.iter().any(|slot| other.interference.contains(&slot.0))
    }

    fn add(&mut self, other: SlotClass) {
        self.slots.extend(other.slots);
        self.interference.extend(other.interference);
    }
}

/// A partition of the slots that may share memory.
struct SlotClasses {
    /// None for classes that were merged into others.
    all: Vec<Option<SlotClass>>,
    /// By slot.
    of: Vec<usize>,
}

impl SlotClasses {
    fn new(interference: &Interference, may_share: &[bool]) -> SlotClasses {
        let slots = interference.0.iter().zip(may_share).enumerate();
        let class = |(slot, (interference, may_share)): (usize, (&BTreeSet<u32>, &bool))| {
            may_share.then(|| SlotClass { slots: vec![SlotId(slot as u32)], interference: interference.clone() })
        };
        let all: Vec<Option<SlotClass>> = slots.map(class).collect();
        SlotClasses { of: (0..all.len()).collect(), all }
    }

    fn class(&self, slot: SlotId) -> (usize, Option<&SlotClass>) {
        let index = self.of[slot.0 as usize];
        (index, self.all[index].as_ref())
    }

    fn join(&mut self, into: usize, from: usize) {
        let moved = self.all[from].take().expect("a class is joined once");
        moved.slots.iter().for_each(|slot| self.of[slot.0 as usize] = into);
        self.all[into].as_mut().expect("a class is joined with one that exists").add(moved);
    }

    /// Coalesces slots that are copied into each other, the largest first, unless their classes interfere.
    fn join_copies(&mut self, copies: &BTreeSet<(SlotId, SlotId)>, bytes: &dyn Fn(SlotId) -> u64) {
        let mut copies: Vec<_> = copies.iter().copied().collect();
        copies.sort_by_key(|(to, from)| (Reverse(bytes(*to)), *to, *from));
        for (to, from) in copies {
            if let ((into, Some(a)), (from, Some(b))) = (self.class(to), self.class(from))
                && into != from
                && !a.interferes(b)
            {
                self.join(into, from);
            }
        }
    }

    /// Puts slots inside their hosts where nothing of the host's class conflicts, the largest first. Returns their
    /// places.
    fn join_subslots(
        &mut self,
        interference: &Interference,
        copies: &BTreeSet<(SlotId, SlotId)>,
        mut subslots: Vec<Subslot>,
        bytes: &dyn Fn(SlotId) -> u64,
    ) -> BTreeMap<SlotId, Place> {
        let mut inside: BTreeMap<SlotId, Place> = BTreeMap::new();
        subslots.sort_by_key(|subslot| (Reverse(bytes(subslot.slot)), subslot.slot));
        for Subslot { slot, host, place, .. } in subslots {
            // Once the slot is inside its host, its copies have other addresses.
            let partner = |(to, from): &(SlotId, SlotId)| match (*to == slot, *from == slot) {
                (true, false) => Some(*from),
                (false, true) => Some(*to),
                (true, true) | (false, false) => None,
            };
            let partners: BTreeSet<SlotId> = copies.iter().filter_map(partner).collect();
            let is_host = inside.values().any(|place| place.base == Base::Slot(slot));
            let ((from, Some(own)), (into, Some(others))) = (self.class(slot), self.class(host)) else { continue };
            let is_disjoint = |other: SlotId| {
                let is_sibling = |there: &Place| there.base == place.base && !overlap(&there.path, &place.path);
                other == host || inside.get(&other).is_some_and(is_sibling)
            };
            let is_compatible =
                |other: SlotId| is_disjoint(other) || !interference.has(slot, other) && !partners.contains(&other);
            let is_inside = inside.contains_key(&slot) || inside.contains_key(&host);
            if is_inside || is_host || own.slots.len() > 1 || !others.slots.iter().all(|other| is_compatible(*other)) {
                continue;
            }
            self.join(into, from);
            for partner in partners {
                let index = self.of[partner.0 as usize];
                self.all[index].iter_mut().for_each(|class| class.interference.extend([slot.0]));
                self.all[into].iter_mut().for_each(|class| class.interference.extend([partner.0]));
            }
            inside.insert(slot, place);
        }
        inside
    }
}

/// Greedy colouring: puts each class, the largest first, into the first group that it does not interfere with.
fn colour(classes: SlotClasses, inside: &BTreeMap<SlotId, Place>, bytes: &dyn Fn(SlotId) -> u64) -> Vec<Vec<SlotId>> {
    let size = |class: &SlotClass| class.slots.iter().map(|slot| bytes(*slot)).max();
    let mut classes: Vec<SlotClass> = classes.all.into_iter().flatten().collect();
    classes.sort_by_key(|class| (Reverse(size(class)), class.slots.iter().min().copied()));
    let mut groups: Vec<SlotClass> = Vec::new();
    for class in classes {
        match groups.iter_mut().find(|group| !group.interferes(&class)) {
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
