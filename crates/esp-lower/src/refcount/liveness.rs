//! Liveness of holders. A *holder*, or item, is an SSA value that refers to a boxed object, or a slot that has boxed
//! parts.

use super::{bound_slots, is_boxed};
use crate::Context;
use crate::builder::{Raw, RawBody, RawTerminator, RegionKind};
use crate::simplify::raw_successors;
use quaject_esp_ir::ir::{Base, Op, Operand, Operation, Place, SlotId, Terminator, Value};
use quaject_esp_ir::sets::Set;
use quaject_esp_ir::typing::known_place_type;
use quaject_esp_ir::visit::{op_slots, op_values, terminator_slots, terminator_values};

/// A holder of reference counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Item(u32);

/// A set of holders.
#[derive(Clone, Default, PartialEq)]
pub(super) struct ItemSet(Set);

impl ItemSet {
    pub(super) fn contains(&self, item: Item) -> bool {
        self.0.contains(item.0)
    }

    pub(super) fn insert(&mut self, item: Item) {
        self.0.insert(item.0);
    }

    fn remove(&mut self, item: Item) {
        self.0.remove(item.0);
    }

    fn add_all(&mut self, other: &ItemSet) {
        self.0.add_all(&other.0);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Item> {
        self.0.numbers().into_iter().map(Item)
    }
}

#[derive(Clone, Copy)]
enum Holder {
    Value(Value),
    Slot(SlotId),
}

/// The last uses in one block.
pub(super) struct Deaths {
    /// Per instruction, the holders that die there: last uses and unused results.
    pub(super) after: Vec<Vec<Item>>,
    /// The holders live before the first instruction.
    pub(super) live_at_start: ItemSet,
}

/// The holders of a body and their liveness.
pub(super) struct Liveness {
    holders: Vec<Holder>,
    values: Vec<Option<Item>>,
    slots: Vec<Option<Item>>,
    /// For a borrowed reference, one loaded from a holder and last used before the holder can change: that holder.
    roots: Vec<Option<Item>>,
    /// The region in which an item begins.
    regions: Vec<Option<usize>>,
    /// Whether the item has a count of its own: parameters of functions and of conditions have none.
    owned: Vec<bool>,
    live_in: Vec<ItemSet>,
    uses: Vec<Vec<Vec<Item>>>,
    terminator_uses: Vec<Vec<Item>>,
}

impl Liveness {
    /// Finds the holders and computes their liveness.
    pub(super) fn new(context: &mut Context<'_>, raw: &RawBody) -> Liveness {
        let mut liveness = Liveness {
            holders: Vec::new(),
            values: vec![None; raw.values.len()],
            slots: vec![None; raw.slots.len()],
            roots: vec![None; raw.values.len()],
            regions: Vec::new(),
            owned: Vec::new(),
            live_in: Vec::new(),
            uses: Vec::new(),
            terminator_uses: Vec::new(),
        };
        liveness.find_slots(context, raw);
        liveness.find_values(context, raw);
        if !liveness.is_empty() {
            liveness.live_in = vec![ItemSet::default(); raw.blocks.len()];
            liveness.find_uses(raw);
            liveness.solve(raw);
        }
        liveness
    }

    /// Whether there are no holders.
    pub(super) fn is_empty(&self) -> bool {
        self.holders.is_empty()
    }

    fn add(&mut self, holder: Holder, region: Option<usize>, owned: bool) -> Item {
        self.holders.push(holder);
        self.regions.push(region);
        self.owned.push(owned);
        Item(self.holders.len() as u32 - 1)
    }

    fn find_slots(&mut self, context: &mut Context<'_>, raw: &RawBody) {
        let mut regions = vec![None; raw.slots.len()];
        for block in raw.blocks.iter() {
            for code in &block.code {
                match code {
                    Raw::Begin(slot) => regions[slot.0 as usize] = block.region,
                    Raw::Plain(..) | Raw::Freeze { .. } => {}
                }
            }
        }
        for (index, slot) in raw.slots.iter().enumerate() {
            if context.counted(slot.ty) {
                let is_parameter = index < raw.parameter_slots as usize;
                let item = self.add(Holder::Slot(SlotId(index as u32)), regions[index], !is_parameter);
                self.slots[index] = Some(item);
            }
        }
    }

    fn find_values(&mut self, context: &mut Context<'_>, raw: &RawBody) {
        let uses = ReferenceUses::new(raw);
        for (index, block) in raw.blocks.iter().enumerate() {
            let borrowed = index == 0 || self.is_condition_entry(raw, index);
            for parameter in &block.parameters {
                self.add_value(context, raw, *parameter, block.region, !borrowed);
            }
            for (position, code) in block.code.iter().enumerate() {
                match code {
                    Raw::Begin(_) => {}
                    Raw::Freeze { result, from: _, location: _ } => {
                        self.add_value(context, raw, *result, block.region, true);
                    }
                    Raw::Plain(instruction, _) => {
                        let Some(result) = instruction.result else { continue };
                        match &instruction.op {
                            Op::Load(place) if uses.can_borrow(context, raw, result, index, position) => {
                                self.roots[result.0 as usize] = self.base_item(place);
                            }
                            _other => self.add_value(context, raw, result, block.region, true),
                        }
                    }
                }
            }
        }
    }

    fn is_condition_entry(&self, raw: &RawBody, block: usize) -> bool {
        raw.blocks[block].region.is_some_and(|region| {
            let region = &raw.regions[region];
            region.kind == RegionKind::Condition && region.entry.0 as usize == block
        })
    }

    fn add_value(&mut self, context: &Context<'_>, raw: &RawBody, value: Value, region: Option<usize>, owned: bool) {
        if is_boxed(&context.types, raw.values[value.0 as usize].ty) {
            let item = self.add(Holder::Value(value), region, owned);
            self.values[value.0 as usize] = Some(item);
        }
    }

    /// The holder of which a place is a part.
    pub(super) fn base_item(&self, place: &Place) -> Option<Item> {
        match place.base {
            Base::Slot(slot) => self.slots[slot.0 as usize],
            Base::Object(value) => self.values[value.0 as usize].or(self.roots[value.0 as usize]),
            Base::Constant(..) => None,
        }
    }

    /// The SSA value as a holder, if it has a count of its own.
    pub(super) fn value_item(&self, value: Value) -> Option<Item> {
        self.values.get(value.0 as usize).copied().flatten()
    }

    pub(super) fn slot_item(&self, slot: SlotId) -> Option<Item> {
        self.slots[slot.0 as usize]
    }

    /// The place as a holder, if it is an entire slot.
    pub(super) fn whole_slot(&self, place: &Place) -> Option<Item> {
        match place.base {
            Base::Slot(slot) if place.path.is_empty() => self.slot_item(slot),
            Base::Slot(_) | Base::Object(_) | Base::Constant(..) => None,
        }
    }

    pub(super) fn operand(&self, item: Item) -> Operand {
        match self.holders[item.0 as usize] {
            Holder::Value(value) => Operand::Value(value),
            Holder::Slot(slot) => Operand::Place(Place { base: Base::Slot(slot), path: Vec::new() }),
        }
    }

    /// Whether code of this region, or outside all regions, has to release the holder.
    pub(super) fn is_owned_in(&self, item: Item, region: Option<usize>) -> bool {
        self.owned[item.0 as usize] && self.regions[item.0 as usize] == region
    }

    /// Whether a block of a region is on every path through it.
    pub(super) fn always_runs(&self, raw: &RawBody, region: usize, block: usize) -> bool {
        let ends = |index: &usize| {
            raw.blocks[*index].region == Some(region)
                && match &raw.blocks[*index].terminator {
                    RawTerminator::Plain(Terminator::Result(_)) => true,
                    RawTerminator::Plain(_) | RawTerminator::Open | RawTerminator::Thaw { .. } => false,
                }
        };
        let mut results = (0..raw.blocks.len()).filter(ends);
        raw.regions[region].entry.0 as usize == block || (results.next() == Some(block) && results.next().is_none())
    }

    /// Whether a message of the region contains this holder.
    pub(super) fn is_passed(&self, raw: &RawBody, region: usize, holder: Item) -> bool {
        raw.blocks.iter().zip(&self.terminator_uses).all(|(block, uses)| match &block.terminator {
            RawTerminator::Plain(Terminator::Result(_)) if block.region == Some(region) => uses.contains(&holder),
            RawTerminator::Plain(_) | RawTerminator::Open | RawTerminator::Thaw { .. } => true,
        })
    }

    /// The holders live at a block's start, without its parameters.
    pub(super) fn live_in(&self, block: usize) -> &ItemSet {
        &self.live_in[block]
    }

    fn find_uses(&mut self, raw: &RawBody) {
        for block in raw.blocks.iter() {
            let mut uses = Vec::with_capacity(block.code.len());
            for code in &block.code {
                let mut items = Vec::new();
                match code {
                    Raw::Begin(_) => {}
                    Raw::Freeze { result: _, from, location: _ } => self.use_value(*from, &mut items),
                    Raw::Plain(instruction, _) => {
                        let op = &instruction.op;
                        op_values(op, &mut |value| self.use_value(*value, &mut items));
                        op_slots(op, &mut |slot| items.extend(self.slots[slot.0 as usize]));
                    }
                }
                uses.push(items);
            }
            let mut items = Vec::new();
            match &block.terminator {
                RawTerminator::Open => {}
                RawTerminator::Plain(terminator) => {
                    terminator_values(terminator, &mut |value| self.use_value(*value, &mut items));
                    terminator_slots(terminator, &mut |slot| items.extend(self.slots[slot.0 as usize]));
                    let bound = self.bound(terminator);
                    items.retain(|item| !bound.contains(*item));
                }
                RawTerminator::Thaw { value, moved: _, copied: _ } => self.use_value(*value, &mut items),
            }
            self.uses.push(uses);
            self.terminator_uses.push(items);
        }
    }

    fn use_value(&self, value: Value, items: &mut Vec<Item>) {
        items.extend(self.values[value.0 as usize].or(self.roots[value.0 as usize]));
    }

    /// The slots that a wait binds: they begin at its end.
    fn bound(&self, terminator: &Terminator) -> ItemSet {
        let mut bound = ItemSet::default();
        match terminator {
            Terminator::Wait(wait) => {
                for branch in &wait.branches {
                    match &branch.operation {
                        Operation::In { site: _, channel: _, patterns, condition: _ } => {
                            for pattern in patterns {
                                bound_slots(pattern, &mut |slot| {
                                    if let Some(item) = self.slot_item(slot) {
                                        bound.insert(item);
                                    }
                                });
                            }
                        }
                        Operation::Out { .. } | Operation::After { .. } => {}
                    }
                }
            }
            Terminator::Jump(_)
            | Terminator::Branch { .. }
            | Terminator::Switch { .. }
            | Terminator::Yield(_)
            | Terminator::Return(_)
            | Terminator::Result(_)
            | Terminator::Exit(_)
            | Terminator::End
            | Terminator::Fault(_)
            | Terminator::Enter(_)
            | Terminator::Leave(_) => {}
        }
        bound
    }

    fn solve(&mut self, raw: &RawBody) {
        let mut changed = true;
        while changed {
            changed = false;
            for index in (0..raw.blocks.len()).rev() {
                let at_end = self.before_terminator(raw, index);
                let mut live = self.deaths(raw, index, &at_end).live_at_start;
                for parameter in &raw.blocks[index].parameters {
                    if let Some(item) = self.value_item(*parameter) {
                        live.remove(item);
                    }
                }
                if live != self.live_in[index] {
                    self.live_in[index] = live;
                    changed = true;
                }
            }
        }
    }

    /// The holders live before a block's terminator: its uses, and those live at a successor.
    pub(super) fn before_terminator(&self, raw: &RawBody, block: usize) -> ItemSet {
        let mut live = ItemSet::default();
        for successor in raw_successors(&raw.blocks[block].terminator) {
            live.add_all(&self.live_in[successor.0 as usize]);
        }
        match &raw.blocks[block].terminator {
            RawTerminator::Plain(terminator) => self.bound(terminator).iter().for_each(|item| live.remove(item)),
            RawTerminator::Open | RawTerminator::Thaw { .. } => {}
        }
        self.terminator_uses[block].iter().for_each(|item| live.insert(*item));
        live
    }

    /// Applies the transfer functions of a block, backward from its terminator.
    pub(super) fn deaths(&self, raw: &RawBody, block: usize, at_end: &ItemSet) -> Deaths {
        let code = &raw.blocks[block].code;
        let mut live = at_end.clone();
        let mut after = vec![Vec::new(); code.len()];
        for (position, raw) in code.iter().enumerate().rev() {
            let begins = match raw {
                Raw::Begin(slot) => self.slot_item(*slot),
                Raw::Freeze { result, from: _, location: _ } => self.value_item(*result),
                Raw::Plain(instruction, _) => instruction.result.and_then(|result| self.value_item(result)),
            };
            if let Some(item) = begins {
                if !live.contains(item) {
                    after[position].push(item);
                }
                live.remove(item);
            }
            for item in &self.uses[block][position] {
                if !live.contains(*item) {
                    after[position].push(*item);
                    live.insert(*item);
                }
            }
        }
        Deaths { after, live_at_start: live }
    }
}

/// The uses of references, and whether a use passes them on.
struct ReferenceUses {
    /// Per value: block, position, and whether the use needs a count.
    uses: Vec<Vec<(usize, usize, Need)>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Need {
    Count,
    Read,
}

impl ReferenceUses {
    fn new(raw: &RawBody) -> ReferenceUses {
        let mut uses = vec![Vec::new(); raw.values.len()];
        for (index, block) in raw.blocks.iter().enumerate() {
            for (position, code) in block.code.iter().enumerate() {
                match code {
                    Raw::Begin(_) => {}
                    Raw::Freeze { result: _, from, location: _ } => {
                        uses[from.0 as usize].push((index, position, Need::Count));
                    }
                    Raw::Plain(instruction, _) => {
                        op_values(&instruction.op, &mut |value| {
                            uses[value.0 as usize].push((index, position, Need::Read))
                        });
                        match &instruction.op {
                            Op::Store(_, value) => uses[value.0 as usize].push((index, position, Need::Count)),
                            _other => {}
                        }
                    }
                }
            }
            let position = block.code.len();
            match &block.terminator {
                RawTerminator::Open => {}
                RawTerminator::Plain(terminator) => terminator_values(terminator, &mut |value| {
                    uses[value.0 as usize].push((index, position, Need::Count));
                }),
                RawTerminator::Thaw { value, moved: _, copied: _ } => {
                    uses[value.0 as usize].push((index, position, Need::Count));
                }
            }
        }
        ReferenceUses { uses }
    }

    /// Whether a reference that is loaded here needs no count (borrowing): all its uses read it, in this block, before
    /// any count can change.
    fn can_borrow(
        &self,
        context: &mut Context<'_>,
        raw: &RawBody,
        value: Value,
        block: usize,
        position: usize,
    ) -> bool {
        let uses = &self.uses[value.0 as usize];
        if !is_boxed(&context.types, raw.values[value.0 as usize].ty) || uses.is_empty() {
            return false;
        }
        let only_reads = uses.iter().all(|(used_in, _, need)| *used_in == block && *need == Need::Read);
        let last = uses.iter().map(|(_, position, _)| *position).max().expect("there are uses");
        only_reads
            && raw.blocks[block].code[position + 1..=last].iter().all(|code| preserves_counts(context, raw, code))
    }
}

/// Whether an instruction changes and reads no reference counts, and overwrites no reference.
fn preserves_counts(context: &mut Context<'_>, raw: &RawBody, code: &Raw) -> bool {
    let instruction = match code {
        Raw::Begin(slot) => return !context.counted(raw.slots[slot.0 as usize].ty),
        Raw::Freeze { .. } => return false,
        Raw::Plain(instruction, _) => instruction,
    };
    match &instruction.op {
        Op::Constant(_)
        | Op::Unary(..)
        | Op::Binary(..)
        | Op::Convert(_)
        | Op::Load(_)
        | Op::Tag(_)
        | Op::Length(_)
        | Op::LoadNumber { .. }
        | Op::LoadBits { .. }
        | Op::Equal(..)
        | Op::OwnId
        | Op::Deadline { .. }
        | Op::InstanceOf(..)
        | Op::ReplicaNumber(_)
        | Op::SetBytes(..)
        | Op::SetLength(..)
        | Op::CopySlice { .. }
        | Op::StoreSlice { .. }
        | Op::Append { .. }
        | Op::StoreNumber { .. }
        | Op::StoreBits { .. }
        | Op::Mark(_)
        | Op::Predicate(..) => true,
        Op::Store(_, value) => !is_boxed(&context.types, raw.values[value.0 as usize].ty),
        Op::Copy { to: _, from } => {
            let ty = known_place_type(&context.types, &raw.values, &raw.slots, from);
            !context.counted(ty)
        }
        Op::Fill(..)
        | Op::SetTag(..)
        | Op::CallFunction { .. }
        | Op::CallExtern { .. }
        | Op::Allocate(_)
        | Op::IsUnique(_)
        | Op::FreeObjects(_)
        | Op::Retain(_)
        | Op::Release(_) => false,
    }
}
