//! Lengths as values: a copy of a body in which the length of `bytes` in slots is in SSA form, as scalars are. Each
//! write that changes a length defines a value, joins have parameters for lengths, and a load of a length is the value
//! that reaches it. So an analysis of values also finds what is known of lengths, and a fact about a length ends where
//! the bytes are written. Built with pruned SSA construction (Cytron, Ferrante, Rosen, Wegman and Zadeck, "Efficiently
//! Computing Static Single Assignment Form and the Control Dependence Graph", 1991; Choi, Cytron and Ferrante,
//! "Automatic Construction of Sparse Data LengthFlow Evaluation Graphs", 1991). The copy is for analyses only.

use crate::cfg::{Regions, edges_mut, predecessors, reachable_from, region_entries, successors};
use crate::dominators::Dominators;
use crate::ir::{
    Base, BinaryOp, Body, Constant, Instruction, Literal, Location, Op, Operand, Operation, Place, Projection, SlotId,
    Terminator, Type, TypeTable, Value, ValueData,
};
use crate::typing::place_type;
use crate::visit::{bound_slots, op_places, op_values_mut, terminator_values_mut};
use rustc_hash::{FxHashMap, FxHashSet};

/// Per block of the body, how many blocks the search for the live lengths may visit: beyond that, the remaining lengths
/// are unknown, so that the time is linear in the size of the body.
const VISITS_PER_BLOCK: usize = 64;

/// A body with its lengths as values.
pub struct LengthSsa {
    /// The copy. A block has the parameters and instructions of the original one, and those that define lengths; loads
    /// of known lengths are absent.
    pub body: Body,
    /// Per value of the original body: the value that it is in the copy.
    renamed: Vec<Value>,
    variables: Variables,
    /// By block and position in the original body: the lengths before an instruction, and the one that it computes.
    lengths: FxHashMap<(usize, usize), InstructionLengths>,
}

/// The lengths at an instruction.
#[derive(Default)]
struct InstructionLengths {
    /// Of the places that it names, before it.
    before: Vec<(usize, Value)>,
    /// The length of a slice, or of what bytes become by appending to them.
    computed: Option<Value>,
}

impl LengthSsa {
    /// Of a body into which no fast path exits, with these constants of its program.
    pub fn new(body: &Body, types: &TypeTable, constants: &[Constant], dominators: &Dominators) -> LengthSsa {
        let mut variables = Variables::of(body, types);
        let joins = Joins::new(body, dominators, &mut variables);
        Renaming::new(body, constants, dominators, variables, joins).run()
    }

    /// The value in the copy that a value of the original body is.
    pub fn value(&self, value: Value) -> Value {
        self.renamed[value.0 as usize]
    }

    /// The length of the bytes at a place that an instruction names, before the instruction; none if it is unknown.
    pub fn length(&self, block: usize, position: usize, place: &Place) -> Option<Value> {
        let variable = self.variables.at(place.base, &place.path)?;
        let before = &self.lengths.get(&(block, position))?.before;
        before.iter().find(|(other, _)| *other == variable).map(|(_, value)| *value)
    }

    /// The number of bytes that an instruction copies from or to a slice, or the length of the bytes that it appends to
    /// afterwards.
    pub fn computed(&self, block: usize, position: usize) -> Option<Value> {
        self.lengths.get(&(block, position))?.computed
    }
}

/// The places in slots whose lengths are variables: `bytes`, by themselves or as parts of records and unions.
struct Variables {
    places: Vec<Place>,
    by_slot: FxHashMap<SlotId, Vec<usize>>,
    /// Per variable: whether it is in SSA form. Else its length is unknown everywhere.
    is_tracked: Vec<bool>,
}

impl Variables {
    /// Those whose lengths the body reads.
    fn of(body: &Body, types: &TypeTable) -> Variables {
        let mut variables = Variables { places: Vec::new(), by_slot: FxHashMap::default(), is_tracked: Vec::new() };
        for instruction in body.blocks.iter().flat_map(|block| &block.instructions) {
            read_lengths(&instruction.op, &mut |base, path| {
                let place = Place { base, path: path.to_vec() };
                let is_bytes =
                    || place_type(types, body, &place).is_some_and(|ty| matches!(types.get(ty), Type::Bytes { .. }));
                if let Base::Slot(slot) = base
                    && variables.at(base, path).is_none()
                    && is_bytes()
                {
                    variables.by_slot.entry(slot).or_default().push(variables.places.len());
                    variables.places.push(place);
                }
            });
        }
        variables.is_tracked = vec![true; variables.places.len()];
        variables
    }

    fn of_base(&self, base: Base) -> &[usize] {
        match base {
            Base::Slot(slot) => self.by_slot.get(&slot).map_or(&[], Vec::as_slice),
            Base::Object(_) | Base::Constant(..) => &[],
        }
    }

    /// The variable that is the length of the bytes at a path.
    fn at(&self, base: Base, path: &[Projection]) -> Option<usize> {
        self.of_base(base).iter().copied().find(|variable| self.places[*variable].path == path)
    }

    /// The variables of bytes at a place and inside it, each with its path from there.
    fn inside<'v>(&'v self, place: &'v Place) -> impl Iterator<Item = (usize, &'v [Projection])> + 'v {
        let here = self.of_base(place.base).iter();
        here.filter_map(|variable| Some((*variable, self.places[*variable].path.strip_prefix(&place.path[..])?)))
    }

    /// The variables that an operation reads.
    fn read(&self, op: &Op) -> Vec<usize> {
        let mut read = Vec::new();
        let mut add = |variable: usize| {
            if self.is_tracked[variable] && !read.contains(&variable) {
                read.push(variable);
            }
        };
        read_lengths(op, &mut |base, path| self.at(base, path).into_iter().for_each(&mut add));
        if let Op::Copy { to: _, from } = op {
            self.inside(from).for_each(|(variable, _)| add(variable));
        }
        read
    }

    /// Calls `visit` with the variables that an operation changes, and their new lengths.
    fn written(&self, op: &Op, visit: &mut dyn FnMut(usize, NewLength)) {
        let mut change = |place: &Place, length: &dyn Fn(&[Projection]) -> NewLength| {
            for (variable, path) in self.inside(place).filter(|(variable, _)| self.is_tracked[*variable]) {
                visit(variable, length(path));
            }
        };
        let unknown = |_: &[Projection]| NewLength::Unknown;
        match op {
            // Bytes keep their length when a part of them is written.
            Op::StoreSlice { .. } | Op::StoreNumber { .. } | Op::StoreBits { .. } => {}
            Op::SetLength(to, length) => change(to, &|_| NewLength::Is(*length)),
            Op::SetBytes(to, bytes) => change(to, &|_| NewLength::Constant(bytes.len() as i128)),
            Op::Copy { to, from } => {
                change(to, &|path| NewLength::Of(Place { base: from.base, path: [&from.path[..], path].concat() }));
            }
            Op::CopySlice { to, .. } | Op::Append { to, .. } => change(to, &|_| NewLength::Computed),
            Op::CallExtern { function: _, arguments, to } => {
                to.iter().for_each(|place| change(place, &unknown));
                for argument in arguments {
                    match argument {
                        Operand::Place(place) => change(place, &unknown),
                        Operand::Value(_) => {}
                    }
                }
            }
            Op::Store(to, _) | Op::Fill(to, _) | Op::SetTag(to, _) => change(to, &unknown),
            Op::CallFunction { function: _, arguments: _, to } => {
                to.iter().for_each(|place| change(place, &unknown));
            }
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
            | Op::InstanceOf(..)
            | Op::ReplicaNumber(_)
            | Op::Allocate(_)
            | Op::IsUnique(_)
            | Op::FreeObjects(_)
            | Op::Deadline { .. }
            | Op::Retain(_)
            | Op::Release(_)
            | Op::Mark(_)
            | Op::Predicate(..) => {}
        }
    }
}

/// Calls `visit` with the places of bytes whose lengths an operation reads. Some are arrays.
fn read_lengths(op: &Op, visit: &mut dyn FnMut(Base, &[Projection])) {
    op_places(op, &mut |place| {
        let element = place.path.iter().position(|step| matches!(step, Projection::Element(_)));
        element.iter().for_each(|position| visit(place.base, &place.path[..*position]));
    });
    let mut whole = |place: &Place| visit(place.base, &place.path);
    match op {
        Op::Length(place)
        | Op::Copy { to: _, from: place }
        | Op::CopySlice { to: _, from: place, .. }
        | Op::LoadNumber { from: place, .. }
        | Op::LoadBits { from: place, .. }
        | Op::StoreNumber { to: place, .. }
        | Op::StoreBits { to: place, .. } => whole(place),
        Op::StoreSlice { to, from, .. } | Op::Append { to, from } => [to, from].into_iter().for_each(whole),
        _ => {}
    }
}

/// The length of bytes after a write.
enum NewLength {
    /// Any length.
    Unknown,
    /// This one.
    Constant(i128),
    /// A value of the original body.
    Is(Value),
    /// The length of the bytes at another place, before the write.
    Of(Place),
    /// What the operation computes: the length of a slice, or a sum.
    Computed,
}

/// Where lengths that reach a block along several edges become one value.
struct Joins {
    /// Per block: the variables that have a new value at its start.
    at: Vec<Vec<usize>>,
    /// Per block: whether it is entered otherwise than along edges, so that its parameters cannot be lengths.
    has_other_entries: Vec<bool>,
}

impl Joins {
    fn new(body: &Body, dominators: &Dominators, variables: &mut Variables) -> Joins {
        let count = body.blocks.len();
        let mut has_other_entries = vec![false; count];
        has_other_entries[0] = true;
        for block in dominators.order() {
            match &body.blocks[*block].terminator {
                terminator @ Terminator::Wait(_) => {
                    let targets = successors(terminator, Regions::Include);
                    targets.iter().for_each(|to| has_other_entries[to.0 as usize] = true);
                }
                Terminator::Enter(enter) => has_other_entries[enter.then.0 as usize] = true,
                _ => {}
            }
        }
        let mut joins = Joins { at: vec![Vec::new(); count], has_other_entries };
        if variables.places.is_empty() {
            return joins;
        }
        let flow = LengthFlow::new(body, dominators, variables);
        let mut budget = VISITS_PER_BLOCK * count;
        for variable in 0..variables.places.len() {
            match flow.joins_of(variable, &mut budget) {
                Some(blocks) => blocks.into_iter().for_each(|block| joins.at[block].push(variable)),
                None => variables.is_tracked[variable] = false,
            }
        }
        joins
    }
}

/// The reads and writes of lengths in the blocks of a body.
struct LengthFlow {
    predecessors: Vec<Vec<usize>>,
    /// Per block: the joins in its dominance frontier.
    frontiers: Vec<Vec<usize>>,
    /// Per variable: the blocks that read it before they write it.
    read_first: Vec<Vec<usize>>,
    /// Per variable: the blocks that write it.
    writers: Vec<Vec<usize>>,
    /// The blocks behind waits or a fast path, and the variables that may have changed there.
    changed: FxHashSet<(usize, usize)>,
    changed_by_all: Vec<bool>,
    /// Per block: whether a wait or a fast path leads there.
    is_behind_wait: Vec<bool>,
    is_behind_path: Vec<bool>,
}

impl LengthFlow {
    fn new(body: &Body, dominators: &Dominators, variables: &Variables) -> LengthFlow {
        let count = body.blocks.len();
        let predecessors = predecessors(body, dominators.order().iter().copied(), Regions::Include);
        let of_variables = vec![Vec::new(); variables.places.len()];
        let mut flow = LengthFlow {
            frontiers: frontiers(&predecessors, dominators),
            predecessors,
            read_first: of_variables.clone(),
            writers: of_variables,
            changed: FxHashSet::default(),
            changed_by_all: changed_by_regions(body, variables),
            is_behind_wait: vec![false; count],
            is_behind_path: vec![false; count],
        };
        flow.is_behind_path[0] = true;
        for block in dominators.order().iter().copied() {
            for instruction in &body.blocks[block].instructions {
                for variable in variables.read(&instruction.op) {
                    let is_known = flow.writers[variable].last() == Some(&block);
                    if !is_known && flow.read_first[variable].last() != Some(&block) {
                        flow.read_first[variable].push(block);
                    }
                }
                variables.written(&instruction.op, &mut |variable, _| {
                    if flow.writers[variable].last() != Some(&block) {
                        flow.writers[variable].push(block);
                    }
                });
            }
            flow.terminator(&body.blocks[block].terminator, variables);
        }
        flow
    }

    fn terminator(&mut self, terminator: &Terminator, variables: &Variables) {
        let targets = || successors(terminator, Regions::Include).into_iter().map(|to| to.0 as usize);
        match terminator {
            Terminator::Wait(wait) => {
                targets().for_each(|to| self.is_behind_wait[to] = true);
                for branch in &wait.branches {
                    let Operation::In { patterns, .. } = &branch.operation else { continue };
                    for pattern in patterns {
                        bound_slots(pattern, &mut |slot| {
                            for variable in variables.of_base(Base::Slot(slot)) {
                                self.changed.extend(targets().map(|to| (to, *variable)));
                            }
                        });
                    }
                }
            }
            Terminator::Enter(_) => targets().for_each(|to| self.is_behind_path[to] = true),
            _ => {}
        }
    }

    /// Whether a variable has an unknown value at the start of a block.
    fn is_unknown_at(&self, block: usize, variable: usize) -> bool {
        self.is_behind_path[block]
            || self.is_behind_wait[block] && self.changed_by_all[variable]
            || self.changed.contains(&(block, variable))
    }

    /// The blocks at whose start a variable has a new value; none if the budget of blocks to visit is exceeded.
    fn joins_of(&self, variable: usize, budget: &mut usize) -> Option<Vec<usize>> {
        let writers: FxHashSet<usize> = self.writers[variable].iter().copied().collect();
        let mut live: FxHashSet<usize> = FxHashSet::default();
        let mut joins = Vec::new();
        let mut work = self.read_first[variable].clone();
        while let Some(block) = work.pop() {
            if !live.insert(block) {
                continue;
            }
            *budget = budget.checked_sub(1)?;
            if self.is_unknown_at(block, variable) {
                joins.push(block);
            } else {
                work.extend(self.predecessors[block].iter().filter(|from| !writers.contains(from)));
            }
        }
        // The iterated dominance frontier of all definitions.
        let mut is_join: FxHashSet<usize> = joins.iter().copied().collect();
        let mut work: Vec<usize> = self.writers[variable].iter().chain(&joins).copied().collect();
        while let Some(block) = work.pop() {
            for join in &self.frontiers[block] {
                *budget = budget.checked_sub(1)?;
                if live.contains(join) && is_join.insert(*join) {
                    joins.push(*join);
                    work.push(*join);
                }
            }
        }
        joins.sort_unstable();
        Some(joins)
    }
}

/// Per variable: whether a region writes it, which runs while its wait waits.
fn changed_by_regions(body: &Body, variables: &Variables) -> Vec<bool> {
    let waits = body.blocks.iter().filter_map(|block| block.terminator.as_wait());
    let entries: Vec<_> = waits.flat_map(region_entries).collect();
    let mut changed = vec![false; variables.places.len()];
    if entries.is_empty() {
        return changed;
    }
    for block in reachable_from(body, entries, Regions::Include) {
        for instruction in &body.blocks[block.0 as usize].instructions {
            variables.written(&instruction.op, &mut |variable, _| changed[variable] = true);
        }
    }
    changed
}

/// The dominance frontier of each reachable block (Cooper, Harvey and Kennedy).
fn frontiers(predecessors: &[Vec<usize>], dominators: &Dominators) -> Vec<Vec<usize>> {
    let mut frontiers: Vec<Vec<usize>> = vec![Vec::new(); predecessors.len()];
    for join in dominators.order().iter().copied().filter(|block| predecessors[*block].len() > 1 || *block == 0) {
        for from in &predecessors[join] {
            let mut next = Some(*from);
            while let Some(block) = next.filter(|block| dominators.immediate(join) != Some(*block)) {
                if frontiers[block].last() == Some(&join) {
                    break;
                }
                frontiers[block].push(join);
                next = dominators.immediate(block);
            }
        }
    }
    frontiers
}

/// The construction of the copy, in preorder of the dominator tree.
struct Renaming<'a> {
    original: &'a Body,
    constants: &'a [Constant],
    dominators: &'a Dominators,
    joins: Joins,
    result: LengthSsa,
    /// Per variable: its value at the present point.
    current: Vec<Option<Value>>,
    /// What `current` was before each change, to return to the dominator.
    undo: Vec<(usize, Option<Value>)>,
    /// Sums and differences of values of type `int`, and the blocks that compute them.
    computed: FxHashMap<(BinaryOp, Value, Value), (usize, Value)>,
}

impl<'a> Renaming<'a> {
    fn new(
        original: &'a Body,
        constants: &'a [Constant],
        dominators: &'a Dominators,
        variables: Variables,
        joins: Joins,
    ) -> Renaming<'a> {
        let renamed = (0..original.values.len() as u32).map(Value).collect();
        Renaming {
            original,
            constants,
            dominators,
            joins,
            current: vec![None; variables.places.len()],
            result: LengthSsa { body: original.clone(), renamed, variables, lengths: FxHashMap::default() },
            undo: Vec::new(),
            computed: FxHashMap::default(),
        }
    }

    fn run(mut self) -> LengthSsa {
        enum Step {
            Enter(usize),
            Leave(usize),
        }
        let mut children = vec![Vec::new(); self.original.blocks.len()];
        for block in self.dominators.order().iter().rev() {
            self.dominators.immediate(*block).into_iter().for_each(|above| children[above].push(*block));
        }
        let mut work = vec![Step::Enter(0)];
        while let Some(step) = work.pop() {
            match step {
                Step::Enter(block) => {
                    work.push(Step::Leave(self.undo.len()));
                    self.block(block);
                    work.extend(children[block].iter().map(|child| Step::Enter(*child)));
                }
                Step::Leave(mark) => {
                    for (variable, before) in self.undo.drain(mark..).rev() {
                        self.current[variable] = before;
                    }
                }
            }
        }
        self.result
    }

    fn set(&mut self, variable: usize, value: Value) {
        let before = self.current[variable].replace(value);
        self.undo.push((variable, before));
    }

    fn block(&mut self, block: usize) {
        let instructions = std::mem::take(&mut self.result.body.blocks[block].instructions);
        for variable in self.joins.at[block].clone() {
            let value = if self.joins.has_other_entries[block] {
                self.unknown(block, variable)
            } else {
                let parameter = self.create_value();
                self.result.body.blocks[block].parameters.push(parameter);
                parameter
            };
            self.set(variable, value);
        }
        for (position, instruction) in instructions.into_iter().enumerate() {
            self.instruction(block, position, instruction);
        }
        let Renaming { joins, result, current, .. } = self;
        let terminator = &mut result.body.blocks[block].terminator;
        terminator_values_mut(terminator, &mut |value| *value = result.renamed[value.0 as usize]);
        for edge in edges_mut(terminator) {
            let to = edge.to.0 as usize;
            if !joins.has_other_entries[to] {
                let reaching = joins.at[to].iter().map(|variable| current[*variable]);
                edge.arguments.extend(reaching.map(|value| value.expect("a definition reaches where it is live")));
            }
        }
    }

    fn instruction(&mut self, block: usize, position: usize, mut instruction: Instruction) {
        let original = &self.original.blocks[block].instructions[position].op;
        let renamed = &self.result.renamed;
        op_values_mut(&mut instruction.op, &mut |value| *value = renamed[value.0 as usize]);
        if let (Op::Length(place), Some(result)) = (&instruction.op, instruction.result)
            && let Some(length) = self.reaching(place)
            && self.result.body.values[result.0 as usize].ty == TypeTable::I32
        {
            self.result.renamed[result.0 as usize] = length;
            return;
        }
        let read = self.result.variables.read(original);
        let before: Vec<(usize, Value)> =
            read.into_iter().filter_map(|variable| Some((variable, self.current[variable]?))).collect();
        let computed = self.computed_length(block, &instruction.op);
        let mut changes = Vec::new();
        self.result.variables.written(&instruction.op, &mut |variable, length| changes.push((variable, length)));
        let mut known = Vec::with_capacity(changes.len());
        for (variable, length) in changes {
            let value = match length {
                NewLength::Unknown => None,
                NewLength::Constant(length) => Some(self.define(block, Op::Constant(length))),
                NewLength::Is(value) => Some(self.as_int(block, value)),
                NewLength::Of(place) => Some(self.length(block, &place)),
                NewLength::Computed => computed,
            };
            known.push((variable, value));
        }
        if let (Op::Binary(op @ (BinaryOp::Add | BinaryOp::Subtract), a, b), Some(result)) =
            (&instruction.op, instruction.result)
            && [*a, *b, result].iter().all(|value| self.result.body.values[value.0 as usize].ty == TypeTable::I32)
        {
            self.computed.insert(key(*op, *a, *b), (block, result));
        }
        self.result.body.blocks[block].instructions.push(instruction);
        for (variable, value) in known {
            let value = value.unwrap_or_else(|| self.unknown(block, variable));
            self.set(variable, value);
        }
        if !before.is_empty() || computed.is_some() {
            self.result.lengths.insert((block, position), InstructionLengths { before, computed });
        }
    }
    /// The length that an operation computes: see [`LengthSsa::computed`].
    fn computed_length(&mut self, block: usize, op: &Op) -> Option<Value> {
        match op {
            Op::Append { to, from } => {
                let (old, more) = (self.length(block, to), self.length(block, from));
                Some(self.combine(block, BinaryOp::Add, old, more))
            }
            Op::CopySlice { to: _, from: of, start, end } | Op::StoreSlice { to: of, from: _, start, end } => {
                let end = match end {
                    Some(end) => self.as_int(block, *end),
                    None => self.length(block, of),
                };
                Some(match start {
                    Some(start) => {
                        let start = self.as_int(block, *start);
                        self.combine(block, BinaryOp::Subtract, end, start)
                    }
                    None => end,
                })
            }
            _ => None,
        }
    }

    /// The present length of the bytes at a place.
    fn length(&mut self, block: usize, place: &Place) -> Value {
        if let Some(length) = self.reaching(place) {
            return length;
        }
        let op = match literal_length(self.constants, place) {
            Some(length) => Op::Constant(length as i128),
            None => Op::Length(place.clone()),
        };
        self.define(block, op)
    }

    /// The value that is the length of the bytes at a place, if they are a variable.
    fn reaching(&self, place: &Place) -> Option<Value> {
        let variables = &self.result.variables;
        let variable = variables.at(place.base, &place.path)?;
        self.current[variable].filter(|_| variables.is_tracked[variable])
    }

    /// A number as an `int`, which it fits in if it is a length.
    fn as_int(&mut self, block: usize, value: Value) -> Value {
        if self.result.body.values[value.0 as usize].ty == TypeTable::I32 {
            return value;
        }
        self.define(block, Op::Convert(value))
    }

    /// The sum or difference of two values, one that is computed already if there is one.
    fn combine(&mut self, block: usize, op: BinaryOp, a: Value, b: Value) -> Value {
        match self.computed.get(&key(op, a, b)) {
            Some((above, value)) if self.dominators.dominates(*above, block) => *value,
            Some(_) | None => {
                let value = self.define(block, Op::Binary(op, a, b));
                self.computed.insert(key(op, a, b), (block, value));
                value
            }
        }
    }

    /// A new value for the length of a variable that is not known.
    fn unknown(&mut self, block: usize, variable: usize) -> Value {
        let place = self.result.variables.places[variable].clone();
        self.define(block, Op::Length(place))
    }

    fn define(&mut self, block: usize, op: Op) -> Value {
        let value = self.create_value();
        let instruction = Instruction { result: Some(value), op, location: Location::default() };
        self.result.body.blocks[block].instructions.push(instruction);
        value
    }

    fn create_value(&mut self) -> Value {
        let values = &mut self.result.body.values;
        values.push(ValueData { ty: TypeTable::I32, name: None });
        Value(values.len() as u32 - 1)
    }
}

/// The key of a sum or difference; the operands of a sum commute.
fn key(op: BinaryOp, a: Value, b: Value) -> (BinaryOp, Value, Value) {
    if op.commutes() { (op, a.min(b), a.max(b)) } else { (op, a, b) }
}

/// The length of bytes in a constant of the program.
fn literal_length(constants: &[Constant], place: &Place) -> Option<usize> {
    let Base::Constant(id, _) = place.base else { return None };
    let mut literal = &constants.get(id.0 as usize)?.content;
    for step in &place.path {
        literal = match (step, literal) {
            (Projection::Field(field), Literal::Parts(parts)) => parts.get(*field as usize)?,
            _ => return None,
        };
    }
    match literal {
        Literal::Bytes(bytes) => Some(bytes.len()),
        Literal::Scalar(_) | Literal::Parts(_) | Literal::Repeat(_) | Literal::Tagged(..) => None,
    }
}
