//! Symbolic execution of one member from one operation to the next. What is known is computed here; what is not is
//! emitted. Knows no rendezvous and no nodes.

use super::explore::Explorer;
use super::residue::to;
use super::simplify::{Simpler, simpler};
use super::state::{At, Known, Origin, Since, State, TagPlace, Test, Turn};
use crate::facts::{self, Fact};
use crate::path_exit::ExitReason;
use crate::refusal::Refusal;
use quaject_esp_ir::ir::{
    Base, BinaryOp, BlockId, Edge, Instruction, Location, Op, Operand, Passed, Place, Projection, SlotId, Terminator,
    Type, TypeId, TypeTable, UnaryOp, Value,
};
use quaject_esp_ir::visit::{op_slots_mut, op_values, op_values_mut};

/// A block that is being emitted, and the state it is in.
#[derive(Clone)]
pub(super) struct Path {
    pub(super) block: BlockId,
    pub(super) state: State,
}

/// A value of a message: of a scalar or reference, or the place it lies at in the residue.
#[derive(Clone, Debug)]
pub(super) enum Given {
    Value(Known, TypeId),
    Place(Place, TypeId),
}

/// What happens after a region, once for every way through it.
pub(super) type Then<'c, 'g, 'p> =
    &'c mut dyn FnMut(&mut Explorer<'g, 'p>, Path, Vec<(Given, Passed)>) -> Result<(), Refusal>;

impl<'g, 'p> Explorer<'g, 'p> {
    /// Runs a member from a block on.
    pub(super) fn run(&mut self, mut path: Path, member: usize, mut block: BlockId) -> Result<(), Refusal> {
        let body = self.group.members[member].body;
        path.state.moved.insert(member);
        loop {
            self.check_size()?;
            if self.course.is_some() {
                match self.before_block(path, member, block)? {
                    Some(next) => path = next,
                    None => return Ok(()),
                }
            }
            let source = &body.blocks[block.0 as usize];
            for instruction in &source.instructions {
                self.execute(&mut path, member, instruction);
            }
            if let (Some(_), Some(last), Terminator::Jump(edge)) =
                (self.course, source.instructions.last(), &source.terminator)
                && let Op::Test(test, holds) = last.op
            {
                return self.predicate(path, member, test, holds, last.location, &mut |explorer, mut path, reason| {
                    explorer.bind_edge(&mut path, member, edge);
                    path.state.members[member].at = At::Running(edge.to);
                    match reason {
                        Some(reason) => explorer.leave_course(path, reason),
                        None => explorer.run(path, member, edge.to),
                    }
                });
            }
            match &source.terminator {
                Terminator::Wait(_) if self.course.is_some() => return self.arrive(path, member, block),
                Terminator::Jump(edge) => match self.follow(&mut path, member, edge) {
                    Some(next) => block = next,
                    None => return self.go_to_node(path),
                },
                Terminator::Branch { condition, then, otherwise } => {
                    return self.fork(path, member, *condition, source.location, &mut |explorer, mut path, holds| {
                        match explorer.follow(&mut path, member, if holds { then } else { otherwise }) {
                            Some(next) => explorer.run(path, member, next),
                            None => explorer.go_to_node(path),
                        }
                    });
                }
                Terminator::Switch { value, cases, default } => {
                    return self.switch(path, member, *value, cases, default, source.location);
                }
                Terminator::Wait(_) => {
                    path.state.members[member].at = At::Waiting(block);
                    path.state.prune(self.group, member);
                    return self.go_on(path);
                }
                Terminator::End => {
                    path.state.members[member].at = At::Ended;
                    path.state.prune(self.group, member);
                    return self.go_on(path);
                }
                Terminator::Exit(value) => {
                    let value = self.value(&mut path, member, *value);
                    self.out.finish(path.block, Terminator::Exit(value), source.location);
                    return Ok(());
                }
                Terminator::Fault(fault) => {
                    self.out.finish(path.block, Terminator::Fault(*fault), source.location);
                    return Ok(());
                }
                Terminator::Yield(edge) => {
                    self.bind_edge(&mut path, member, edge);
                    let turn = Turn { since: Since::Nothing, behind: path.state.yielding().count() };
                    path.state.members[member].at = At::Yielding(edge.to, turn);
                    path.state.prune(self.group, member);
                    return self.go_on(path);
                }
                Terminator::Return(_) | Terminator::Result(_) | Terminator::Enter(_) | Terminator::Leave(_) => {
                    unreachable!("groups have no fast paths, and processes no results")
                }
            }
        }
    }

    /// Binds the parameters of an edge. The block it leads to, unless several edges do: that is a node.
    fn follow(&mut self, path: &mut Path, member: usize, edge: &Edge) -> Option<BlockId> {
        self.bind_edge(path, member, edge);
        path.state.members[member].at = At::Running(edge.to);
        if !self.group.members[member].joins[edge.to.0 as usize] {
            return Some(edge.to);
        }
        path.state.prune(self.group, member);
        None
    }

    fn bind_edge(&mut self, path: &mut Path, member: usize, edge: &Edge) {
        let to = &self.group.members[member];
        let live = &to.live[edge.to.0 as usize].values;
        let parameters = to.body.blocks[edge.to.0 as usize].parameters.iter().zip(&edge.arguments);
        let known: Vec<(Origin, Known)> = parameters
            .filter(|(parameter, _)| live.contains(parameter))
            .map(|(parameter, argument)| ((member, *parameter), self.known(path, member, *argument)))
            .collect();
        path.state.values.extend(known);
    }

    /// Goes both ways of a member's condition, or the only one there is.
    pub(super) fn fork(
        &mut self,
        path: Path,
        member: usize,
        condition: Value,
        location: Location,
        then: &mut dyn FnMut(&mut Explorer<'g, 'p>, Path, bool) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        match self.known(&path, member, condition) {
            Known::Constant(value) => then(self, path, value != 0),
            Known::Value(value) => self.fork_at(path, value, location, then),
        }
    }

    /// Goes both ways of a `bool` of the residue, or the only one there is.
    pub(super) fn fork_at(
        &mut self,
        mut path: Path,
        condition: Value,
        location: Location,
        then: &mut dyn FnMut(&mut Explorer<'g, 'p>, Path, bool) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        let mut otherwise = path.clone();
        match (path.state.assume(self.group, condition, true), otherwise.state.assume(self.group, condition, false)) {
            (true, false) => return then(self, path, true),
            (false, true) => return then(self, otherwise, false),
            (true, true) | (false, false) => {}
        }
        let from = path.block;
        path.block = self.out.block(Vec::new());
        otherwise.block = self.out.block(Vec::new());
        let branch = Terminator::Branch { condition, then: to(path.block), otherwise: to(otherwise.block) };
        self.out.finish(from, branch, location);
        then(self, path, true)?;
        then(self, otherwise, false)
    }

    fn switch(
        &mut self,
        path: Path,
        member: usize,
        value: Value,
        cases: &[(i128, Edge)],
        default: &Edge,
        location: Location,
    ) -> Result<(), Refusal> {
        let ty = self.group.members[member].body.values[value.0 as usize].ty;
        let mut ways: Vec<(Option<i128>, Path, &Edge)> = Vec::new();
        let known = match self.known(&path, member, value) {
            Known::Constant(constant) => {
                let edge = cases.iter().find(|(case, _)| *case == constant).map_or(default, |(_, edge)| edge);
                ways.push((None, path.clone(), edge));
                None
            }
            Known::Value(value) => {
                let mut rest = Some(path.state.fact(self.group, Known::Value(value), ty));
                for (case, edge) in cases {
                    let Some(fact) = rest.take() else { break };
                    if fact.admits(*case) {
                        let mut way = path.clone();
                        if way.state.learn(value, Fact::constant(*case)) {
                            ways.push((Some(*case), way, edge));
                        }
                    }
                    rest = fact.without(*case);
                }
                if let Some(fact) = rest {
                    let mut way = path.clone();
                    if way.state.learn(value, fact) {
                        ways.push((None, way, default));
                    }
                }
                Some(value)
            }
        };
        if let (Some(value), true) = (known, ways.len() > 1) {
            for (_, way, _) in &mut ways {
                way.block = self.out.block(Vec::new());
            }
            let (_, last, _) = ways.last().expect("there are several ways");
            let default = to(last.block);
            let cases = ways[..ways.len() - 1]
                .iter()
                .map(|(case, way, _)| (case.expect("only the last way is the default"), to(way.block)))
                .collect();
            self.out.finish(path.block, Terminator::Switch { value, cases, default }, location);
        }
        for (_, mut way, edge) in ways {
            match self.follow(&mut way, member, edge) {
                Some(next) => self.run(way, member, next)?,
                None => self.go_to_node(way)?,
            }
        }
        Ok(())
    }

    /// Runs a region of a wait: each way through it ends in `then`. Joins within it are not nodes.
    pub(super) fn region(
        &mut self,
        mut path: Path,
        member: usize,
        block: BlockId,
        then: Then<'_, 'g, 'p>,
    ) -> Result<(), Refusal> {
        self.check_size()?;
        let source = &self.group.members[member].body.blocks[block.0 as usize];
        for instruction in &source.instructions {
            self.execute(&mut path, member, instruction);
        }
        match &source.terminator {
            Terminator::Jump(edge) => {
                self.bind_edge(&mut path, member, edge);
                self.region(path, member, edge.to, then)
            }
            Terminator::Branch { condition, then: yes, otherwise } => {
                self.fork(path, member, *condition, source.location, &mut |explorer, mut path, holds| {
                    let edge = if holds { yes } else { otherwise };
                    explorer.bind_edge(&mut path, member, edge);
                    explorer.region(path, member, edge.to, then)
                })
            }
            Terminator::Switch { .. } => Err(Refusal::Unsupported {
                process: self.group.members[member].process,
                what: "a choice of several within an operation",
                location: source.location,
            }),
            Terminator::Result(passed) => {
                let given = passed.iter().map(|one| (self.given(&path, member, &one.operand), one.clone())).collect();
                then(self, path, given)
            }
            Terminator::Fault(_) if self.course.is_some() => self.leave_course(path, ExitReason::Stops(member)),
            Terminator::Fault(fault) => {
                self.out.finish(path.block, Terminator::Fault(*fault), source.location);
                Ok(())
            }
            Terminator::Enter(_)
            | Terminator::Leave(_)
            | Terminator::Wait(_)
            | Terminator::Yield(_)
            | Terminator::Return(_)
            | Terminator::Exit(_)
            | Terminator::End => unreachable!("a region ends in a result"),
        }
    }

    /// What an operand of a member is in the residue.
    pub(super) fn given(&mut self, path: &Path, member: usize, operand: &Operand) -> Given {
        let known = &self.group.members[member];
        match operand {
            Operand::Value(value) => {
                Given::Value(self.known(path, member, *value), known.body.values[value.0 as usize].ty)
            }
            Operand::Place(place) => {
                let ty = quaject_esp_ir::typing::place_type(self.group.types(), known.body, place)
                    .expect("a verified place has a type");
                let mut path = path.clone();
                Given::Place(self.place(&mut path, member, place), ty)
            }
        }
    }

    /// What a value of a member is known as.
    pub(super) fn known(&self, path: &Path, member: usize, value: Value) -> Known {
        path.state.known(member, value)
    }

    /// A value of the residue for one of a member.
    pub(super) fn value(&mut self, path: &mut Path, member: usize, value: Value) -> Value {
        let ty = self.group.members[member].body.values[value.0 as usize].ty;
        let known = self.known(path, member, value);
        self.materialize(path, known, ty)
    }

    pub(super) fn materialize(&mut self, path: &mut Path, known: Known, ty: TypeId) -> Value {
        match known {
            Known::Value(value) => value,
            Known::Constant(constant) => {
                if let Some(value) = path.state.constants.get(&(ty, constant)) {
                    return *value;
                }
                let value = self.out.value(ty, None);
                self.out.emit(path.block, Some(value), Op::Constant(constant), Location::default());
                path.state.constants.insert((ty, constant), value);
                value
            }
        }
    }

    /// A place of a member in the residue.
    pub(super) fn place(&mut self, path: &mut Path, member: usize, place: &Place) -> Place {
        let base = match place.base {
            Base::Slot(slot) => Base::Slot(SlotId(slot.0 + self.group.members[member].first_slot)),
            Base::Object(value) => Base::Object(self.value(path, member, value)),
        };
        let steps = place.path.iter().map(|step| match step {
            Projection::Element(value) => Projection::Element(self.value(path, member, *value)),
            Projection::Inside(value) => Projection::Inside(self.value(path, member, *value)),
            Projection::Field(_) | Projection::Payload(_) => *step,
        });
        Place { base, path: steps.collect() }
    }

    fn execute(&mut self, path: &mut Path, member: usize, instruction: &Instruction) {
        let group = self.group;
        let body = group.members[member].body;
        let ty_of = |value: Value| body.values[value.0 as usize].ty;
        let known = match (&instruction.op, instruction.result) {
            (Op::Mark(_) | Op::Test(..), _) => return,
            (Op::Constant(value), Some(_)) => Some(Known::Constant(*value)),
            (Op::OwnId, Some(_)) => Some(Known::Constant(i128::from(group.members[member].instance))),
            (Op::Unary(op, a), Some(result)) => {
                let fact = self.fact_of(path, member, *a);
                let least = Fact::of_type(group.types(), ty_of(*a)).low;
                let overflows = group.checked && *op == UnaryOp::Negate && fact.admits(least);
                let fact = facts::unary(group.types(), ty_of(result), *op, &fact);
                if overflows { None } else { fact.as_constant().map(Known::Constant) }
            }
            (Op::Binary(op, a, b), Some(result)) => {
                let (ty, of) = (ty_of(result), ty_of(*a));
                let (fact_a, fact_b) = (self.fact_of(path, member, *a), self.fact_of(path, member, *b));
                let divides = matches!(op, BinaryOp::Divide | BinaryOp::Remainder) && fact_b.admits(0);
                let overflows = group.checked && facts::may_overflow(group.types(), ty, *op, &fact_a, &fact_b);
                let fact = facts::binary(group.types(), ty, *op, of, &fact_a, &fact_b);
                match (divides || overflows, fact.as_constant()) {
                    (true, _) => None,
                    (false, Some(constant)) => Some(Known::Constant(constant)),
                    (false, None) => self.simplified(path, member, instruction, simpler(*op, &fact_a, &fact_b)),
                }
            }
            (Op::Convert(a), Some(result)) => {
                let fact = self.fact_of(path, member, *a);
                let same = ty_of(*a) == ty_of(result);
                let known = facts::convert(group.types(), ty_of(result), &fact).as_constant().map(Known::Constant);
                known.or_else(|| same.then(|| self.known(path, member, *a)))
            }
            (Op::ReplicaNumber(a), Some(_)) => match self.known(path, member, *a) {
                Known::Constant(instance) => {
                    group.program.process_of(instance as u32).map(|(_, replica)| Known::Constant(i128::from(replica)))
                }
                Known::Value(_) => None,
            },
            (Op::InstanceOf(process, a), Some(_)) => match self.known(path, member, *a) {
                Known::Constant(replica) => {
                    group.program.instance(*process, replica).map(|instance| Known::Constant(i128::from(instance)))
                }
                Known::Value(_) => None,
            },
            (Op::Length(place), Some(_)) => self.length(path, member, place).map(Known::Constant),
            (Op::Tag(place), Some(_)) => {
                let tag = self.tag_place(member, place).and_then(|place| path.state.tags.get(&place));
                tag.and_then(Fact::as_constant).map(Known::Constant)
            }
            _ => None,
        };
        let known = match known {
            Some(known) => known,
            None => match self.emit(path, member, instruction) {
                Some(value) => Known::Value(value),
                None => return,
            },
        };
        if let Some(result) = instruction.result {
            path.state.values.insert((member, result), known);
        }
    }

    /// The result of an operation that can be had in a simpler way.
    fn simplified(
        &mut self,
        path: &mut Path,
        member: usize,
        instruction: &Instruction,
        simpler: Option<Simpler>,
    ) -> Option<Known> {
        let (Op::Binary(_, a, b), Some(result)) = (&instruction.op, instruction.result) else { return None };
        let data = &self.group.members[member].body.values[result.0 as usize];
        match simpler? {
            Simpler::First => Some(self.known(path, member, *a)),
            Simpler::Second => Some(self.known(path, member, *b)),
            Simpler::With(op, constant) => {
                let fact_a = self.fact_of(path, member, *a);
                let first = self.value(path, member, *a);
                let second = self.materialize(path, Known::Constant(constant), data.ty);
                let value = self.out.value(data.ty, data.name.clone());
                self.out.emit(path.block, Some(value), Op::Binary(op, first, second), instruction.location);
                let types = self.group.types();
                let fact = facts::binary(types, data.ty, op, data.ty, &fact_a, &Fact::constant(constant));
                path.state.facts.insert(value, fact);
                Some(Known::Value(value))
            }
        }
    }

    fn fact_of(&self, path: &Path, member: usize, value: Value) -> Fact {
        let ty = self.group.members[member].body.values[value.0 as usize].ty;
        path.state.fact(self.group, self.known(path, member, value), ty)
    }

    /// Emits an instruction of a member and notes what is known of its result.
    fn emit(&mut self, path: &mut Path, member: usize, instruction: &Instruction) -> Option<Value> {
        let body = self.group.members[member].body;
        let first_slot = self.group.members[member].first_slot;
        let mut op = instruction.op.clone();
        let mut operands = Vec::new();
        op_values(&op, &mut |value| operands.push(*value));
        let mut operands: Vec<Value> = operands.into_iter().map(|value| self.value(path, member, value)).collect();
        operands.reverse();
        op_values_mut(&mut op, &mut |value| *value = operands.pop().expect("visited twice in the same order"));
        op_slots_mut(&mut op, &mut |slot| *slot = SlotId(slot.0 + first_slot));
        self.note_writes(path, &op);
        let result = instruction.result.map(|result| {
            let data = &body.values[result.0 as usize];
            self.out.value(data.ty, data.name.clone())
        });
        if let (Some(from), Some(to)) = (instruction.result, result) {
            self.note_result(path, member, &instruction.op, body.values[from.0 as usize].ty, to);
        }
        self.out.emit(path.block, result, op, instruction.location);
        result
    }

    fn note_result(&mut self, path: &mut Path, member: usize, op: &Op, ty: TypeId, result: Value) {
        let body = self.group.members[member].body;
        match op {
            Op::Unary(UnaryOp::Not, a) => {
                if let Known::Value(a) = self.known(path, member, *a) {
                    path.state.tests.insert(result, Test::Not(a));
                }
            }
            Op::Unary(op, a) => {
                let fact = facts::unary(self.group.types(), ty, *op, &self.fact_of(path, member, *a));
                path.state.facts.insert(result, fact);
            }
            Op::Binary(op, a, b) => {
                let of = body.values[a.0 as usize].ty;
                let (fact_a, fact_b) = (self.fact_of(path, member, *a), self.fact_of(path, member, *b));
                let fact = facts::binary(self.group.types(), ty, *op, of, &fact_a, &fact_b);
                // A shift's count may have another type, but then it is no comparison.
                if ty == TypeTable::BOOL && is_number(self.group.types(), of) {
                    let (a, b) = (self.known(path, member, *a), self.known(path, member, *b));
                    path.state.tests.insert(result, Test::Compare(*op, a, b, of));
                }
                if fact.as_constant().is_none() {
                    path.state.facts.insert(result, fact);
                }
            }
            Op::Convert(a) => {
                let fact = facts::convert(self.group.types(), ty, &self.fact_of(path, member, *a));
                path.state.facts.insert(result, fact);
            }
            Op::Tag(place) => {
                if let Some(place) = self.tag_place(member, place) {
                    if let Some(fact) = path.state.tags.get(&place) {
                        path.state.facts.insert(result, fact.clone());
                    }
                    path.state.reads.insert(result, place);
                }
            }
            _ => {}
        }
    }

    /// Keeps what is known of tags true when memory is written.
    pub(super) fn note_writes(&mut self, path: &mut Path, op: &Op) {
        let state = &mut path.state;
        match op {
            Op::SetTag(place, tag) => {
                if let Some((slot, steps)) = forget(state, place) {
                    state.tags.insert((slot, steps), Fact::constant(i128::from(*tag)));
                }
            }
            Op::Copy { to, from } => {
                let source = tag_steps(from);
                let copied: Vec<(Vec<u32>, Fact)> = match &source {
                    Some((slot, steps)) => state
                        .tags
                        .iter()
                        .filter(|((other, known), _)| other == slot && known.starts_with(steps))
                        .map(|((_, known), fact)| (known[steps.len()..].to_vec(), fact.clone()))
                        .collect(),
                    None => Vec::new(),
                };
                if let Some((slot, steps)) = forget(state, to) {
                    for (rest, fact) in copied {
                        state.tags.insert((slot, [steps.as_slice(), &rest].concat()), fact);
                    }
                }
            }
            Op::SetBytes(place, bytes) => {
                forget(state, place);
                if let Place { base: Base::Slot(slot), path } = place
                    && path.is_empty()
                {
                    state.lengths.insert(*slot, bytes.len() as i128);
                }
            }
            Op::Store(place, _)
            | Op::Fill(place, _)
            | Op::SetLength(place, _)
            | Op::CopySlice { to: place, .. }
            | Op::StoreSlice { to: place, .. }
            | Op::Append { to: place, .. }
            | Op::StoreNumber { to: place, .. }
            | Op::StoreBits { to: place, .. } => drop(forget(state, place)),
            Op::CallFunction { function: _, arguments: _, to } => {
                to.iter().for_each(|place| drop(forget(state, place)));
            }
            Op::CallExtern { function: _, arguments, to } => {
                to.iter().for_each(|place| drop(forget(state, place)));
                for argument in arguments {
                    if let Operand::Place(place) = argument {
                        forget(state, place);
                    }
                }
            }
            _ => {}
        }
    }

    /// The length of `bytes` of a member, if it is known.
    pub(super) fn length(&self, path: &Path, member: usize, place: &Place) -> Option<i128> {
        match place {
            Place { base: Base::Slot(slot), path: steps } if steps.is_empty() => {
                let here = SlotId(slot.0 + self.group.members[member].first_slot);
                path.state.lengths.get(&here).copied()
            }
            Place { base: Base::Slot(_) | Base::Object(_), path: _ } => None,
        }
    }

    fn tag_place(&self, member: usize, place: &Place) -> Option<TagPlace> {
        let (slot, steps) = tag_steps(place)?;
        Some((SlotId(slot.0 + self.group.members[member].first_slot), steps))
    }
}

/// A place without elements and objects, as tags are known by.
pub(super) fn tag_steps(place: &Place) -> Option<TagPlace> {
    let Base::Slot(slot) = place.base else { return None };
    let steps = place.path.iter().map(|step| match step {
        Projection::Field(field) => Some(2 * field),
        Projection::Payload(tag) => Some(2 * tag + 1),
        Projection::Element(_) | Projection::Inside(_) => None,
    });
    Some((slot, steps.collect::<Option<Vec<u32>>>()?))
}

/// Forgets what is known of a place that is written; the place, if tags can be known of it.
fn forget(state: &mut State, place: &Place) -> Option<TagPlace> {
    let Base::Slot(slot) = place.base else { return None };
    let known: Vec<u32> = place
        .path
        .iter()
        .map_while(|step| match step {
            Projection::Field(field) => Some(2 * field),
            Projection::Payload(tag) => Some(2 * tag + 1),
            Projection::Element(_) | Projection::Inside(_) => None,
        })
        .collect();
    state.forget_tags(slot, &known);
    tag_steps(place)
}

fn is_number(types: &TypeTable, ty: TypeId) -> bool {
    match types.get(ty) {
        Type::Int(_) | Type::Bool | Type::Pid(_) => true,
        Type::Error | Type::Bytes { .. } | Type::Array { .. } | Type::Record(_) | Type::Union(_) | Type::Boxed(_) => {
            false
        }
    }
}
