//! Construction of a body: blocks, SSA values of variables, slots, regions. The result is *raw*: reference counts of
//! boxed objects are not inserted yet. Knows no statements and no expressions.

use crate::chunked_vec::ChunkedVec;
use crate::{Context, Observed};
use quaject_esp_ir::cfg::edges_mut;
use quaject_esp_ir::ir::{
    AltOrder, Base, BlockId, Blocking, Edge, Instruction, Location, Op, Place, Slot, SlotId, Terminator, Type, TypeId,
    Value, ValueData, Wait,
};
use quaject_esp_syntax::hir::{Local, LocalId};
use quaject_esp_syntax::span::Span;
use rustc_hash::FxHashMap;
use smol_str::SmolStr;

/// A body without reference counts.
#[derive(Default)]
pub(super) struct RawBody {
    pub(super) values: Vec<ValueData>,
    pub(super) slots: Vec<Slot>,
    pub(super) blocks: ChunkedVec<RawBlock>,
    pub(super) regions: Vec<Region>,
    /// Slots of parameters, whose counts the caller holds.
    pub(super) parameter_slots: u32,
}

/// A block without reference counts.
pub(super) struct RawBlock {
    pub(super) parameters: Vec<Value>,
    pub(super) code: Vec<Raw>,
    pub(super) terminator: RawTerminator,
    pub(super) location: Location,
    /// For a region's entry and a `then` block, the block that waits.
    pub(super) predecessors: Vec<BlockId>,
    /// Index into [`RawBody::regions`], for the blocks of a region.
    pub(super) region: Option<usize>,
    sealed: bool,
}

/// A region and where it belongs.
pub(super) struct Region {
    pub(super) kind: RegionKind,
    pub(super) entry: BlockId,
    /// The target of its branch; none until the wait is complete.
    pub(super) then: Option<BlockId>,
}

/// The purpose of a region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RegionKind {
    Guard,
    Condition,
    Payload,
}

/// An instruction before reference counts are inserted.
pub(super) enum Raw {
    /// An instruction that writes new memory or replaces a value.
    Plain(Instruction, Write),
    /// A new value of a slot, which the following instructions build part by part.
    Begin(SlotId),
    /// `freeze` of a boxed object: the object itself at its last use, else a copy.
    Freeze { result: Value, from: Value, location: Location },
}

/// Whether a write replaces an old value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Write {
    Initial,
    Update,
}

/// A terminator before reference counts are inserted.
pub(super) enum RawTerminator {
    /// Not yet known.
    Open,
    Plain(Terminator),
    /// `thaw` of a boxed object: at its last use, and if its count is 1, goes along `moved`; else to `copied`.
    Thaw {
        value: Value,
        moved: Edge,
        copied: BlockId,
    },
}

/// The storage of a variable.
#[derive(Clone, Copy)]
pub(super) enum Storage {
    Ssa,
    Slot(SlotId),
}

/// The targets of `break` and `continue`.
pub(super) struct Loop {
    pub(super) next: BlockId,
    pub(super) exit: BlockId,
}

/// A body under construction.
pub(super) struct Builder<'c, 'x, 'p> {
    pub(super) context: &'c mut Context<'x>,
    pub(super) locals: &'p [Local],
    pub(super) body: RawBody,
    pub(super) loops: Vec<Loop>,
    /// Where control goes on behind each of the expansions around.
    pub(super) expansions: Vec<BlockId>,
    storage: Vec<Storage>,
    definitions: FxHashMap<(BlockId, LocalId), Value>,
    incomplete: FxHashMap<BlockId, Vec<(LocalId, Value)>>,
    current: Option<BlockId>,
    region: Option<usize>,
}

impl<'c, 'x, 'p> Builder<'c, 'x, 'p> {
    /// A body with an entry block and a place for every variable; the first `parameters` of them come from a caller.
    pub(super) fn new(context: &'c mut Context<'x>, locals: &'p [Local], parameters: u32) -> Builder<'c, 'x, 'p> {
        let mut builder = Builder {
            context,
            locals,
            body: RawBody::default(),
            loops: Vec::new(),
            expansions: Vec::new(),
            storage: Vec::new(),
            definitions: FxHashMap::default(),
            incomplete: FxHashMap::default(),
            current: None,
            region: None,
        };
        let entry = builder.block();
        builder.enter(entry);
        for (index, local) in locals.iter().enumerate() {
            let is_parameter = index < parameters as usize;
            if builder.context.in_register(local.ty) {
                builder.storage.push(Storage::Ssa);
                if is_parameter {
                    let value = builder.parameter(entry, local.ty);
                    builder.write(LocalId(index as u32), value);
                }
            } else {
                let slot = builder.slot(local.ty, Some(local.name.clone()));
                builder.storage.push(Storage::Slot(slot));
                builder.body.parameter_slots += u32::from(is_parameter);
            }
        }
        builder
    }

    /// Whether the code being built can be reached.
    pub(super) fn is_reachable(&self) -> bool {
        self.current.is_some()
    }

    /// The block being built.
    pub(super) fn here(&self) -> BlockId {
        self.current.expect("expressions are lowered in reachable code only")
    }

    /// A new block of the region being built, not sealed.
    pub(super) fn block(&mut self) -> BlockId {
        // Its terminator counts as an instruction. The block is made even beyond the limit, as a target.
        let _ = self.context.has_room();
        self.body.blocks.push(RawBlock {
            parameters: Vec::new(),
            code: Vec::new(),
            terminator: RawTerminator::Open,
            location: Location::default(),
            predecessors: Vec::new(),
            region: self.region,
            sealed: false,
        });
        BlockId(self.body.blocks.len() as u32 - 1)
    }

    /// A new block reached only from the block being built, by a wait or a test set later.
    pub(super) fn follower(&mut self, of: BlockId) -> BlockId {
        let block = self.block();
        self.block_mut(block).predecessors.push(of);
        self.seal(block);
        block
    }

    pub(super) fn block_mut(&mut self, block: BlockId) -> &mut RawBlock {
        &mut self.body.blocks[block.0 as usize]
    }

    /// Continues in `block`, all of whose predecessors are known. Without predecessors the code is unreachable.
    pub(super) fn enter(&mut self, block: BlockId) {
        self.seal(block);
        self.enter_open(block);
    }

    /// Continues in a block that will get more predecessors.
    pub(super) fn enter_open(&mut self, block: BlockId) {
        let reachable = block == BlockId(0) || !self.body.blocks[block.0 as usize].predecessors.is_empty();
        self.current = reachable.then_some(block);
    }

    /// Declares that `block` gets no more predecessors.
    pub(super) fn seal(&mut self, block: BlockId) {
        if self.body.blocks[block.0 as usize].sealed {
            return;
        }
        self.block_mut(block).sealed = true;
        let waiting = self.incomplete.remove(&block).unwrap_or_default();
        let mut work: Vec<_> = waiting.into_iter().map(|(local, value)| (block, local, value)).collect();
        self.complete(&mut work);
    }

    /// Runs `build` in a region that belongs to the block being built, then continues in that block.
    pub(super) fn in_region(&mut self, kind: RegionKind, build: impl FnOnce(&mut Self, BlockId)) -> BlockId {
        let outside = self.here();
        assert!(self.region.is_none(), "regions hold expressions only, so they do not nest");
        self.region = Some(self.body.regions.len());
        let entry = self.follower(outside);
        self.body.regions.push(Region { kind, entry, then: None });
        self.current = Some(entry);
        build(self, entry);
        self.region = None;
        self.current = Some(outside);
        entry
    }

    /// Whether a region is being built.
    pub(super) fn is_in_region(&self) -> bool {
        self.region.is_some()
    }

    /// A new parameter of `block`. Explicit ones come before any that variables need.
    pub(super) fn parameter(&mut self, block: BlockId, ty: TypeId) -> Value {
        let value = self.new_value(ty);
        self.block_mut(block).parameters.push(value);
        value
    }

    pub(super) fn new_value(&mut self, ty: TypeId) -> Value {
        self.body.values.push(ValueData { ty, name: None });
        Value(self.body.values.len() as u32 - 1)
    }

    pub(super) fn slot(&mut self, ty: TypeId, name: Option<SmolStr>) -> SlotId {
        self.body.slots.push(Slot { ty, name });
        SlotId(self.body.slots.len() as u32 - 1)
    }

    /// A slot for an intermediate result, about to be built.
    pub(super) fn temporary(&mut self, ty: TypeId) -> Place {
        let slot = self.slot(ty, None);
        self.begin(slot);
        Place { base: Base::Slot(slot), path: Vec::new() }
    }

    /// Begins a new value of a slot.
    pub(super) fn begin(&mut self, slot: SlotId) {
        let here = self.here();
        self.block_mut(here).code.push(Raw::Begin(slot));
    }

    pub(super) fn storage(&self, local: LocalId) -> Storage {
        self.storage[local.0 as usize]
    }

    pub(super) fn local(&self, local: LocalId) -> &'p Local {
        &self.locals[local.0 as usize]
    }

    /// Adds an instruction that defines a value.
    pub(super) fn define(&mut self, ty: TypeId, op: Op, span: Span) -> Value {
        let result = self.new_value(ty);
        self.instruction(Some(result), op, Write::Initial, span);
        result
    }

    /// Adds an instruction that defines no value.
    pub(super) fn effect(&mut self, op: Op, write: Write, span: Span) {
        self.instruction(None, op, write, span);
    }

    fn instruction(&mut self, result: Option<Value>, op: Op, write: Write, span: Span) {
        if !self.context.has_room() {
            return;
        }
        let location = self.context.location(span);
        let here = self.here();
        self.block_mut(here).code.push(Raw::Plain(Instruction { result, op, location }, write));
    }

    /// Adds `freeze` of a boxed object.
    pub(super) fn freeze(&mut self, from: Value, span: Span) -> Value {
        let result = self.new_value(self.body.values[from.0 as usize].ty);
        let location = self.context.location(span);
        let here = self.here();
        self.block_mut(here).code.push(Raw::Freeze { result, from, location });
        result
    }

    /// Ends the block with `thaw` of a boxed object and continues in the block of its result.
    pub(super) fn thaw(&mut self, from: Value, span: Span) -> Value {
        let ty = self.body.values[from.0 as usize].ty;
        let test = self.here();
        let copied = self.follower(test);
        let join = self.block();
        let result = self.parameter(join, ty);
        let moved = Edge { to: join, arguments: vec![from] };
        self.block_mut(join).predecessors.push(test);
        self.end_with(RawTerminator::Thaw { value: from, moved, copied }, span);
        self.current = Some(copied);
        let copy = self.copy_object(from, span);
        self.jump_with(join, vec![copy], span);
        self.enter(join);
        result
    }

    /// A new object with the same content.
    pub(super) fn copy_object(&mut self, from: Value, span: Span) -> Value {
        let ty = self.body.values[from.0 as usize].ty;
        let (pool, content) = self.context.boxed(ty).expect("only boxed objects are copied");
        let copy = self.define(ty, Op::Allocate(pool), span);
        let to = object(copy);
        if self.context.in_register(content) {
            let value = self.define(content, Op::Load(object(from)), span);
            self.effect(Op::Store(to, value), Write::Initial, span);
        } else {
            self.effect(Op::Copy { to, from: object(from) }, Write::Initial, span);
        }
        copy
    }

    fn end_with(&mut self, terminator: RawTerminator, span: Span) {
        let location = self.context.location(span);
        let here = self.here();
        let block = self.block_mut(here);
        block.terminator = terminator;
        block.location = location;
        // Most blocks are short, and a list that has grown has room for four.
        block.code.shrink_to_fit();
        self.current = None;
    }

    /// Ends the block with a terminator that has no edges, or edges already known to their targets.
    pub(super) fn end(&mut self, terminator: Terminator, span: Span) {
        self.end_with(RawTerminator::Plain(terminator), span);
    }

    /// Ends the block with a jump.
    pub(super) fn jump(&mut self, to: BlockId, span: Span) {
        self.jump_with(to, Vec::new(), span);
    }

    /// Ends the block with a jump that carries values for the explicit parameters of `to`.
    pub(super) fn jump_with(&mut self, to: BlockId, arguments: Vec<Value>, span: Span) {
        let here = self.here();
        self.block_mut(to).predecessors.push(here);
        self.end(Terminator::Jump(Edge { to, arguments }), span);
    }

    /// Ends the block with a test. The two targets are different blocks.
    pub(super) fn branch(&mut self, condition: Value, then: BlockId, otherwise: BlockId, span: Span) {
        let then = self.edge_to(then);
        let otherwise = self.edge_to(otherwise);
        self.end(Terminator::Branch { condition, then, otherwise }, span);
    }

    /// An edge from the block being built, without explicit arguments.
    pub(super) fn edge_to(&mut self, to: BlockId) -> Edge {
        let here = self.here();
        self.block_mut(to).predecessors.push(here);
        Edge { to, arguments: Vec::new() }
    }

    /// Gives a variable that lives in SSA form a new value.
    pub(super) fn write(&mut self, local: LocalId, value: Value) {
        let name = self.local(local).name.clone();
        self.body.values[value.0 as usize].name.get_or_insert(name);
        let here = self.here();
        self.definitions.insert((here, local), value);
    }

    // On-the-fly SSA after Braun et al., "Simple and Efficient Construction of Static Single Assignment Form".
    // We keep the parameters that turn out trivial until the body is complete, and use a work list for recursion.
    /// The present value of a variable that lives in SSA form.
    pub(super) fn read(&mut self, local: LocalId) -> Value {
        let mut work = Vec::new();
        let here = self.here();
        let value = self.read_in(here, local, &mut work);
        self.complete(&mut work);
        value
    }

    fn read_in(&mut self, start: BlockId, local: LocalId, work: &mut Vec<(BlockId, LocalId, Value)>) -> Value {
        let mut passed = Vec::new();
        let mut block = start;
        let value = loop {
            if let Some(value) = self.definitions.get(&(block, local)) {
                break *value;
            }
            passed.push(block);
            let data = &self.body.blocks[block.0 as usize];
            match (data.sealed, data.predecessors.as_slice()) {
                (true, [only]) => block = *only,
                (true, []) => break self.undefined(local),
                (sealed, _) => {
                    let value = self.parameter(block, self.local(local).ty);
                    self.body.values[value.0 as usize].name = Some(self.local(local).name.clone());
                    if sealed {
                        work.push((block, local, value));
                    } else {
                        self.incomplete.entry(block).or_default().push((local, value));
                    }
                    break value;
                }
            }
        };
        for block in passed {
            self.definitions.insert((block, local), value);
        }
        value
    }

    /// Gives every new block parameter its arguments, in the order the parameters were made.
    fn complete(&mut self, work: &mut Vec<(BlockId, LocalId, Value)>) {
        let mut next = 0;
        while let Some((block, local, parameter)) = work.get(next).copied() {
            next += 1;
            let position = self.body.blocks[block.0 as usize]
                .parameters
                .iter()
                .position(|p| *p == parameter)
                .expect("the parameter was added to this block");
            for predecessor in self.body.blocks[block.0 as usize].predecessors.clone() {
                let argument = self.read_in(predecessor, local, work);
                let edge = self.edge_mut(predecessor, block);
                // Parameters of one block can be completed in another order than they were made.
                while edge.arguments.len() <= position {
                    edge.arguments.push(argument);
                }
                edge.arguments[position] = argument;
            }
        }
        work.clear();
    }

    fn edge_mut(&mut self, from: BlockId, to: BlockId) -> &mut Edge {
        match &mut self.block_mut(from).terminator {
            RawTerminator::Plain(terminator) => edges_mut(terminator)
                .into_iter()
                .find(|edge| edge.to == to)
                .expect("blocks with several predecessors are reached along edges"),
            RawTerminator::Thaw { value: _, moved, copied: _ } => moved,
            RawTerminator::Open => unreachable!("a block is sealed after its predecessors are complete"),
        }
    }

    /// The end of a process; where properties name its variables, a wait for nothing that records them.
    pub(super) fn end_of_process(&mut self) -> Terminator {
        let observed = match self.context.observed {
            Observed::Named(_) => self.observed(),
            Observed::All => Vec::new(),
        };
        if observed.is_empty() {
            return Terminator::End;
        }
        Terminator::Wait(Wait {
            order: AltOrder::Fair,
            blocking: Blocking::MayBlockForever,
            branches: Vec::new(),
            otherwise: None,
            observed,
            members: Vec::new(),
        })
    }

    /// The current values of the observed variables: integers, `bool`s and ids with a name that is unique in the
    /// process.
    pub(super) fn observed(&mut self) -> Vec<(SmolStr, Value)> {
        let mut observed = Vec::new();
        for name in self.context.observed_here.clone() {
            let mut locals = self.locals.iter().enumerate().filter(|(_, local)| local.name == name);
            let (Some((index, local)), None) = (locals.next(), locals.next()) else { continue };
            if self.context.types.is_scalar(local.ty) && !observed.iter().any(|(known, _)| *known == name) {
                let value = self.read(LocalId(index as u32));
                observed.push((name, value));
            }
        }
        observed
    }

    fn undefined(&mut self, local: LocalId) -> Value {
        let value = self.new_value(self.local(local).ty);
        let instruction = Instruction { result: Some(value), op: Op::Constant(0), location: Location::default() };
        self.block_mut(BlockId(0)).code.insert(0, Raw::Plain(instruction, Write::Initial));
        value
    }
}

/// The content of a boxed object.
pub(super) fn object(value: Value) -> Place {
    Place { base: Base::Object(value), path: Vec::new() }
}

impl Context<'_> {
    /// Whether values of this type are held in SSA form: scalars and references to boxed objects.
    pub(super) fn in_register(&self, ty: TypeId) -> bool {
        self.types.is_scalar(ty) || self.boxed(ty).is_some()
    }

    /// Pool and content type of a boxed type.
    pub(super) fn boxed(&self, ty: TypeId) -> Option<(quaject_esp_ir::ir::PoolId, TypeId)> {
        match self.types.get(ty) {
            Type::Boxed(pool) => Some((*pool, self.types.pool(*pool).content)),
            Type::Error
            | Type::Int(_)
            | Type::Bool
            | Type::Bytes { .. }
            | Type::Pid(_)
            | Type::Array { .. }
            | Type::Record(_)
            | Type::Union(_) => None,
        }
    }
}
