//! Reference-count insertion for boxed objects (reference, section 6). A count is released after its last use, found by
//! liveness on the graph before optimisation. A last use that passes the object on moves its count instead of adding
//! one.
//!
//! ```text
//!   holder                     begins with one count                 released
//!   reference value            allocated, loaded, received, returned  after its last use, or on the edge where it dies
//!   slot with boxed parts      `Begin`, then built part by part       the same
//!   parameters of functions    the caller holds it
//!   parts of a boxed object    stored                                 when the object is freed
//! ```
//!
//! A region never releases counts that the instance holds: they are released at the head of the branch's `then` block,
//! or move into the message. In manual memory only the parts of boxed objects are counted here; the program counts the
//! others.

mod liveness;

use crate::Context;
use crate::builder::{Raw, RawBlock, RawBody, RawTerminator, RegionKind, Write, object};
use liveness::{Item, ItemSet, Liveness};
use quaject_esp_ir::cfg::edges_mut;
use quaject_esp_ir::ir::{
    Base, Block, BlockId, Body, Branch, Edge, Instruction, Location, MemoryMode, Op, Operand, Operation, Passed,
    Payload, Place, Terminator, Transfer, Type, TypeTable, Value, ValueData, Wait,
};
use quaject_esp_ir::simplify_cfg::Replacements;
use quaject_esp_ir::typing::known_place_type;
use quaject_esp_ir::visit::{bound_slots, op_values_mut, terminator_values_mut};

/// Makes a raw body into a body with reference counts.
pub(super) fn insert_reference_counts(context: &mut Context<'_>, mut raw: RawBody) -> Body {
    let mode = context.program.memory;
    let liveness = Liveness::new(context, &raw);
    if liveness.is_empty() {
        let mut blocks = Vec::with_capacity(raw.blocks.len());
        blocks.extend(raw.blocks.into_items().map(uncounted_block));
        return Body { values: raw.values, slots: raw.slots, blocks };
    }
    let mut blocks: Vec<Block> = Vec::with_capacity(raw.blocks.len());
    for block in raw.blocks.iter() {
        blocks.push(Block {
            parameters: block.parameters.clone(),
            instructions: Vec::new(),
            terminator: Terminator::End,
            location: block.location,
        });
    }
    // Regions first: what they move into a message is not released in the `then` block.
    let (regions, others): (Vec<usize>, Vec<usize>) =
        (0..raw.blocks.len()).partition(|index| raw.blocks[*index].region.is_some());
    let values = std::mem::take(&mut raw.values);
    let mut inserter = Inserter {
        context,
        mode,
        replacements: Replacements::new(values.len()),
        raw_values: values.len(),
        values,
        heads: vec![Vec::new(); raw.blocks.len()],
        consumed: vec![Vec::new(); raw.blocks.len()],
        freezes: Vec::new(),
        liveness,
        only_faults: raw.blocks.iter().map(only_faults).collect(),
        raw,
        blocks,
    };
    for index in regions.into_iter().chain(others) {
        inserter.block(index);
    }
    inserter.finish()
}

/// Whether a block consists of a fault only.
fn only_faults(block: &RawBlock) -> bool {
    block.code.is_empty()
        && match &block.terminator {
            RawTerminator::Plain(Terminator::Fault(_)) => true,
            RawTerminator::Plain(_) | RawTerminator::Thaw { .. } | RawTerminator::Open => false,
        }
}

/// A block of a body without boxed objects.
fn uncounted_block(raw: RawBlock) -> Block {
    let terminator = match raw.terminator {
        RawTerminator::Open => Terminator::End,
        RawTerminator::Plain(terminator) => terminator,
        RawTerminator::Thaw { .. } => unreachable!("it would thaw a boxed object"),
    };
    Block { parameters: raw.parameters, instructions: uncounted(raw.code), terminator, location: raw.location }
}

/// Its instructions, collected in place, so that a large block is not in memory twice.
fn uncounted(code: Vec<Raw>) -> Vec<Instruction> {
    let plain = code.into_iter().filter_map(|raw| match raw {
        Raw::Plain(instruction, _) => Some(instruction),
        Raw::Begin(_) => None,
        Raw::Freeze { .. } => unreachable!("its result would hold a boxed object"),
    });
    plain.collect()
}

struct Inserter<'a, 'p> {
    context: &'a mut Context<'p>,
    mode: MemoryMode,
    values: Vec<ValueData>,
    /// The number of values of the raw body.
    raw_values: usize,
    /// The raw body, without its values. Code is moved out of it as counts are inserted.
    raw: RawBody,
    only_faults: Vec<bool>,
    liveness: Liveness,
    blocks: Vec<Block>,
    /// The holders released at the head of each block.
    heads: Vec<Vec<Instruction>>,
    /// Per `then` block: the holders that its payload region has moved into the message.
    consumed: Vec<Vec<Item>>,
    /// Values of freezes that move.
    freezes: Vec<(Value, Value)>,
    replacements: Replacements,
}

/// The transfer of a holder's count at a use that passes the object on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CountTransfer {
    Moves,
    Copies,
}

/// The receiver of a count.
#[derive(Clone, Copy)]
enum Receiver {
    Message,
    /// A value or slot, if it is a holder.
    Holder(Option<Item>),
}

impl Inserter<'_, '_> {
    fn block(&mut self, index: usize) {
        let at_end = self.liveness.before_terminator(&self.raw, index);
        let deaths = self.liveness.deaths(&self.raw, index, &at_end);
        let raw = &self.raw.blocks[index];
        for parameter in &raw.parameters {
            if let Some(item) = self.liveness.value_item(*parameter)
                && !deaths.live_at_start.contains(item)
                && self.owns(item, index)
            {
                let release = self.release(Operand::Value(*parameter), raw.location);
                self.heads[index].push(release);
            }
        }
        let code = std::mem::take(&mut self.raw.blocks[index].code);
        for (raw, dying) in code.into_iter().zip(&deaths.after) {
            self.instruction(index, raw, dying);
        }
        self.terminator(index, &at_end);
    }

    /// Whether this code owns the holder's count and has to release it.
    fn owns(&self, item: Item, block: usize) -> bool {
        self.mode == MemoryMode::Automatic && self.liveness.is_owned_in(item, self.raw.blocks[block].region)
    }

    /// Whether a last use in this block may move the holder. A region may move only what leaves it again.
    fn may_move(&self, item: Item, block: usize, receiver: Receiver) -> bool {
        if self.liveness.is_owned_in(item, self.raw.blocks[block].region) {
            return true;
        }
        let Some(region) = self.raw.blocks[block].region else { return false };
        let data = &self.raw.regions[region];
        let Some(then) = data.then else { return false };
        let leaves = match receiver {
            Receiver::Message => true,
            Receiver::Holder(Some(holder)) => self.liveness.is_passed(&self.raw, region, holder),
            Receiver::Holder(None) => false,
        };
        leaves
            && data.kind == RegionKind::Payload
            && self.liveness.is_owned_in(item, None)
            && !self.liveness.live_in(then.0 as usize).contains(item)
            && self.liveness.always_runs(&self.raw, region, block)
    }

    /// Decides whether the last use of a holder moves its count, and records moves in regions.
    fn transfer_count(&mut self, item: Item, block: usize, receiver: Receiver) -> CountTransfer {
        if !self.may_move(item, block, receiver) {
            return CountTransfer::Copies;
        }
        if !self.liveness.is_owned_in(item, self.raw.blocks[block].region)
            && let Some(region) = self.raw.blocks[block].region
            && let Some(then) = self.raw.regions[region].then
        {
            self.consumed[then.0 as usize].push(item);
        }
        CountTransfer::Moves
    }

    fn emit(&mut self, block: usize, op: Op, location: Location) {
        self.blocks[block].instructions.push(Instruction { result: None, op, location });
    }

    fn release(&self, operand: Operand, location: Location) -> Instruction {
        Instruction { result: None, op: Op::Release(operand), location }
    }

    fn counted_place(&mut self, place: &Place) -> bool {
        let ty = known_place_type(&self.context.types, &self.values, &self.raw.slots, place);
        self.context.counted(ty)
    }

    /// Whether a store to this place is counted by this pass.
    fn holds_counts(&self, place: &Place) -> bool {
        match (self.mode, place.base) {
            (MemoryMode::Automatic, _) | (MemoryMode::Manual, Base::Object(_)) => true,
            (MemoryMode::Manual, Base::Slot(_) | Base::Constant(..)) => false,
        }
    }

    fn instruction(&mut self, block: usize, raw: Raw, dying: &[Item]) {
        let mut moved = Vec::new();
        let location = match raw {
            Raw::Begin(_) => return,
            Raw::Freeze { result, from, location } => {
                let item = self.liveness.value_item(from);
                let receiver = Receiver::Holder(self.liveness.value_item(result));
                match item {
                    Some(item)
                        if dying.contains(&item)
                            && self.transfer_count(item, block, receiver) == CountTransfer::Moves =>
                    {
                        self.freezes.push((result, from));
                        moved.push(item);
                    }
                    Some(_) | None => self.copy_object(block, result, from, location),
                }
                location
            }
            Raw::Plain(instruction, write) => {
                let location = instruction.location;
                self.plain(block, instruction, write, dying, &mut moved);
                location
            }
        };
        for item in dying {
            if !moved.contains(item) && self.owns(*item, block) {
                let release = self.release(self.liveness.operand(*item), location);
                self.blocks[block].instructions.push(release);
            }
        }
    }

    fn plain(&mut self, block: usize, instruction: Instruction, write: Write, dying: &[Item], moved: &mut Vec<Item>) {
        let location = instruction.location;
        match &instruction.op {
            Op::Store(place, value) if self.context.boxed(self.values[value.0 as usize].ty).is_some() => {
                if self.holds_counts(place) {
                    let item = self.liveness.value_item(*value);
                    self.transfer_to_holder(
                        block,
                        item,
                        Operand::Value(*value),
                        (place, write),
                        location,
                        dying,
                        moved,
                    );
                }
                self.blocks[block].instructions.push(instruction);
            }
            Op::Copy { to, from } if self.counted_place(from) => {
                if self.holds_counts(to) {
                    let item = self.liveness.whole_slot(from);
                    self.transfer_to_holder(
                        block,
                        item,
                        Operand::Place(from.clone()),
                        (to, write),
                        location,
                        dying,
                        moved,
                    );
                }
                self.blocks[block].instructions.push(instruction);
            }
            Op::Fill(place, _) => {
                let counted = self.holds_counts(place) && self.counted_place(place);
                let retain = counted.then(|| Op::Retain(Operand::Place(place.clone())));
                self.blocks[block].instructions.push(instruction);
                if let Some(retain) = retain {
                    self.emit(block, retain, location);
                }
            }
            Op::Load(_) => {
                let result = instruction.result;
                self.blocks[block].instructions.push(instruction);
                if let Some(item) = result.and_then(|result| self.liveness.value_item(result))
                    && self.mode == MemoryMode::Automatic
                {
                    if dying.contains(&item) {
                        moved.push(item);
                    } else {
                        self.emit(block, Op::Retain(self.liveness.operand(item)), location);
                    }
                }
            }
            Op::Constant(_)
            | Op::Unary(..)
            | Op::Binary(..)
            | Op::Convert(_)
            | Op::Store(..)
            | Op::Copy { .. }
            | Op::SetBytes(..)
            | Op::SetTag(..)
            | Op::Tag(_)
            | Op::Length(_)
            | Op::SetLength(..)
            | Op::CopySlice { .. }
            | Op::StoreSlice { .. }
            | Op::Append { .. }
            | Op::LoadNumber { .. }
            | Op::StoreNumber { .. }
            | Op::LoadBits { .. }
            | Op::StoreBits { .. }
            | Op::Equal(..)
            | Op::CallFunction { .. }
            | Op::CallExtern { .. }
            | Op::OwnId
            | Op::Deadline { .. }
            | Op::InstanceOf(..)
            | Op::ReplicaNumber(_)
            | Op::Allocate(_)
            | Op::IsUnique(_)
            | Op::FreeObjects(_)
            | Op::Retain(_)
            | Op::Release(_)
            | Op::Mark(_)
            | Op::Predicate(..) => self.blocks[block].instructions.push(instruction),
        }
    }

    /// Counts the reference that a write gives to a holder of counts: moved if the source dies here, retained
    /// otherwise. An update releases what the holder held before.
    #[expect(clippy::too_many_arguments, reason = "the state of one instruction")]
    fn transfer_to_holder(
        &mut self,
        block: usize,
        item: Option<Item>,
        source: Operand,
        (to, write): (&Place, Write),
        location: Location,
        dying: &[Item],
        moved: &mut Vec<Item>,
    ) {
        let last = item.filter(|item| dying.contains(item) && self.mode == MemoryMode::Automatic);
        let receiver = Receiver::Holder(self.liveness.base_item(to));
        match last.map(|item| (item, self.transfer_count(item, block, receiver))) {
            Some((item, CountTransfer::Moves)) => moved.push(item),
            Some((_, CountTransfer::Copies)) | None => self.emit(block, Op::Retain(source), location),
        }
        if write == Write::Update {
            self.emit(block, Op::Release(Operand::Place(to.clone())), location);
        }
    }

    /// `freeze` of an object that stays live.
    fn copy_object(&mut self, block: usize, result: Value, from: Value, location: Location) {
        let ty = self.values[from.0 as usize].ty;
        let (pool, content) = self.context.boxed(ty).expect("only boxed objects are frozen so");
        let allocate = Instruction { result: Some(result), op: Op::Allocate(pool), location };
        self.blocks[block].instructions.push(allocate);
        if self.context.in_register(content) {
            let value = self.new_value(content);
            let load = Instruction { result: Some(value), op: Op::Load(object(from)), location };
            self.blocks[block].instructions.push(load);
            self.emit(block, Op::Store(object(result), value), location);
        } else {
            self.emit(block, Op::Copy { to: object(result), from: object(from) }, location);
        }
        if self.context.counted(content) {
            self.emit(block, Op::Retain(Operand::Place(object(result))), location);
        }
    }

    fn new_value(&mut self, ty: quaject_esp_ir::ir::TypeId) -> Value {
        self.values.push(ValueData { ty, name: None });
        Value(self.values.len() as u32 - 1)
    }

    fn terminator(&mut self, index: usize, at_end: &ItemSet) {
        let location = self.raw.blocks[index].location;
        let terminator = match &self.raw.blocks[index].terminator {
            RawTerminator::Open => Terminator::End,
            RawTerminator::Thaw { value, moved, copied } => {
                let (value, moved) = (*value, moved.clone());
                let copied = Edge { to: *copied, arguments: Vec::new() };
                let lives_on = self.liveness.value_item(value).is_none_or(|item| {
                    self.liveness.live_in(moved.to.0 as usize).contains(item)
                        || !self.may_move(item, index, Receiver::Holder(None))
                });
                if lives_on {
                    Terminator::Jump(self.edge(index, copied, at_end, location))
                } else {
                    let unique = self.new_value(TypeTable::BOOL);
                    let test = Instruction { result: Some(unique), op: Op::IsUnique(value), location };
                    self.blocks[index].instructions.push(test);
                    let then = self.edge(index, moved, at_end, location);
                    let otherwise = self.edge(index, copied, at_end, location);
                    Terminator::Branch { condition: unique, then, otherwise }
                }
            }
            RawTerminator::Plain(terminator) => {
                let mut terminator = terminator.clone();
                for edge in edges_mut(&mut terminator) {
                    *edge = self.edge(index, edge.clone(), at_end, location);
                }
                match &mut terminator {
                    Terminator::Wait(wait) => self.wait(index, wait, at_end, location),
                    Terminator::Return(operand) => self.returned(index, operand, location),
                    Terminator::Result(passed) => self.message(index, passed, None),
                    Terminator::Jump(_)
                    | Terminator::Branch { .. }
                    | Terminator::Switch { .. }
                    | Terminator::Yield(_)
                    | Terminator::Exit(_)
                    | Terminator::End
                    | Terminator::Fault(_)
                    | Terminator::Enter(_)
                    | Terminator::Leave(_) => {}
                }
                terminator
            }
        };
        self.blocks[index].terminator = terminator;
    }

    /// The code of an edge: a count for each argument, and releases of the holders that die on it.
    fn edge(&mut self, from: usize, edge: Edge, at_end: &ItemSet, location: Location) -> Edge {
        let target = edge.to.0 as usize;
        let mut code = Vec::new();
        let mut live = self.liveness.live_in(target).clone();
        if self.mode == MemoryMode::Manual {
            return edge;
        }
        for argument in &edge.arguments {
            let ty = self.values[argument.0 as usize].ty;
            if self.context.boxed(ty).is_none() {
                continue;
            }
            let item = self.liveness.value_item(*argument);
            match item {
                // The first argument takes the count of a dead value.
                Some(item) if !live.contains(item) && self.owns(item, from) => live.insert(item),
                Some(_) | None => {
                    code.push(Instruction { result: None, op: Op::Retain(Operand::Value(*argument)), location })
                }
            }
        }
        if !self.only_faults[target] {
            for item in at_end.iter() {
                if !live.contains(item) && self.owns(item, from) {
                    code.push(self.release(self.liveness.operand(item), location));
                }
            }
        }
        if code.is_empty() {
            return edge;
        }
        let is_only_way = match &self.raw.blocks[from].terminator {
            RawTerminator::Plain(Terminator::Jump(_) | Terminator::Yield(_)) => true,
            RawTerminator::Plain(_) | RawTerminator::Thaw { .. } | RawTerminator::Open => false,
        };
        if is_only_way {
            self.blocks[from].instructions.extend(code);
            return edge;
        }
        if edge.arguments.is_empty() && self.raw.blocks[target].predecessors.len() == 1 {
            self.heads[target].extend(code);
            return edge;
        }
        self.blocks.push(Block {
            parameters: Vec::new(),
            instructions: code,
            terminator: Terminator::Jump(edge),
            location,
        });
        self.heads.push(Vec::new());
        Edge { to: BlockId(self.blocks.len() as u32 - 1), arguments: Vec::new() }
    }

    fn wait(&mut self, index: usize, wait: &mut Wait, at_end: &ItemSet, location: Location) {
        if self.mode == MemoryMode::Manual {
            return;
        }
        for branch in &mut wait.branches {
            let then = branch.then;
            if let Operation::Out { site: _, channel: _, payload: Payload::Ready(passed) } = &mut branch.operation {
                self.message(index, passed, Some(then));
            }
            self.release_at_branch_head(index, then, branch, at_end);
        }
        if let Some(otherwise) = wait.otherwise {
            self.release_dead_at_head(index, otherwise, at_end, location, &ItemSet::default());
        }
    }

    /// Releases at the head of a branch's `then` block the holders that are dead there, bound ones included.
    fn release_at_branch_head(&mut self, wait: usize, then: BlockId, branch: &mut Branch, at_end: &ItemSet) {
        let mut bound = ItemSet::default();
        match &mut branch.operation {
            Operation::In { site: _, channel: _, patterns, condition: _ } => {
                for pattern in patterns {
                    bound_slots(pattern, &mut |slot| {
                        if let Some(item) = self.liveness.slot_item(slot) {
                            bound.insert(item);
                        }
                    });
                }
            }
            Operation::Out { .. } | Operation::After { .. } => {}
        }
        self.release_dead_at_head(wait, then, at_end, branch.location, &bound);
        for item in bound.iter() {
            if !self.liveness.live_in(then.0 as usize).contains(item) {
                let release = self.release(self.liveness.operand(item), branch.location);
                self.heads[then.0 as usize].push(release);
            }
        }
    }

    /// Releases at the head of a target of a wait the holders that are live at the wait, but not there.
    fn release_dead_at_head(
        &mut self,
        wait: usize,
        then: BlockId,
        at_end: &ItemSet,
        location: Location,
        bound: &ItemSet,
    ) {
        for item in at_end.iter() {
            let is_done = self.liveness.live_in(then.0 as usize).contains(item)
                || bound.contains(item)
                || self.consumed[then.0 as usize].contains(&item);
            if !is_done && self.owns(item, wait) {
                let release = self.release(self.liveness.operand(item), location);
                self.heads[then.0 as usize].push(release);
            }
        }
    }

    /// Decides which values of a message move the sender's counts. `then` is the target of a plain `out`.
    fn message(&mut self, block: usize, passed: &mut [Passed], then: Option<BlockId>) {
        if self.mode == MemoryMode::Manual {
            return;
        }
        let mut moved: Vec<Item> = Vec::new();
        for passed in passed.iter_mut().rev() {
            let item = match &passed.operand {
                Operand::Value(value) => self.liveness.value_item(*value),
                Operand::Place(place) => self.liveness.whole_slot(place),
            };
            let Some(item) = item else { continue };
            let lives_on = then.is_some_and(|then| self.liveness.live_in(then.0 as usize).contains(item));
            if lives_on
                || moved.contains(&item)
                || self.transfer_count(item, block, Receiver::Message) == CountTransfer::Copies
            {
                continue;
            }
            moved.push(item);
            passed.transfer = Transfer::Move;
        }
        if let Some(then) = then {
            self.consumed[then.0 as usize].extend(moved);
        }
    }

    fn returned(&mut self, block: usize, operand: &Operand, location: Location) {
        let item = match operand {
            Operand::Value(value) => self.liveness.value_item(*value),
            Operand::Place(place) => self.liveness.whole_slot(place),
        };
        let is_counted = match operand {
            Operand::Value(value) => self.context.boxed(self.values[value.0 as usize].ty).is_some(),
            Operand::Place(place) => self.counted_place(place),
        };
        let moves = item.is_some_and(|item| self.owns(item, block));
        if is_counted && !moves && self.mode == MemoryMode::Automatic {
            self.emit(block, Op::Retain(operand.clone()), location);
        }
    }

    fn finish(mut self) -> Body {
        for (block, head) in self.blocks.iter_mut().zip(&mut self.heads) {
            if !head.is_empty() {
                head.append(&mut block.instructions);
                block.instructions = std::mem::take(head);
            }
        }
        for (result, from) in std::mem::take(&mut self.freezes) {
            self.replacements.replace(result, from);
        }
        let known = self.raw_values as u32;
        let mut replace = |value: &mut Value| {
            if value.0 < known {
                *value = self.replacements.find(*value);
            }
        };
        for block in &mut self.blocks {
            block.instructions.iter_mut().for_each(|instruction| op_values_mut(&mut instruction.op, &mut replace));
            terminator_values_mut(&mut block.terminator, &mut replace);
        }
        Body { values: self.values, slots: self.raw.slots, blocks: self.blocks }
    }
}

/// Whether values of a type are references to boxed objects.
fn is_boxed(types: &TypeTable, ty: quaject_esp_ir::ir::TypeId) -> bool {
    match types.get(ty) {
        Type::Boxed(_) => true,
        Type::Error
        | Type::Int(_)
        | Type::Bool
        | Type::Bytes { .. }
        | Type::Pid(_)
        | Type::Array { .. }
        | Type::Record(_)
        | Type::Union(_) => false,
    }
}
