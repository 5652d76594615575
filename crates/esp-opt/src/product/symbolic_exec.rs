//! Symbolic execution of one member from one channel operation to the next (King 1976). Does not choose rendezvous;
//! ends a path where a node begins.
//!
//! It is partial evaluation at the same time: an instruction whose result the current facts decide is computed here,
//! and any other is emitted into the residue, with the facts about its result.
//!
//! ```text
//!   instruction        facts decide the result     value of the member := constant
//!                      facts simplify it           value of the member := operand, or a cheaper instruction
//!                      else                        emit; value of the member := value of the residue
//!   branch, switch     facts decide it             continue on that edge
//!                      else                        emit; fork, and assume the condition in each state
//!   jump               to a join of the member     end of the path: a node of the product
//!                      else                        continue
//!   wait, yield, end   -                           run the next member
//! ```
//!
//! Each path of the execution is a [`SymbolicState`]. Paths join at nodes only, where states are abstracted.

use super::explorer::Explorer;
use super::residue::edge_to;
use super::simplify::{Simplification, simplify};
use super::state::{
    Condition, Control, MemberValue, ProductState, SinceYield, SymbolicOperand, SymbolicState, SymbolicValue, TagPlace,
    YieldTurn,
};
use crate::facts::{self, Fact};
use crate::path_exit::ExitReason;
use crate::refusal::Refusal;
use quaject_esp_ir::ir::{
    Base, BinaryOp, BlockId, Edge, Instruction, Location, Op, Operand, Passed, Place, Projection, SlotId, Terminator,
    Type, TypeId, TypeTable, UnaryOp, Value,
};
use quaject_esp_ir::visit::{op_slots_mut, op_values, op_values_mut};

/// The continuation of a region, called for each path through it with the results.
pub(super) type RegionContinuation<'c, 'g, 'p> =
    &'c mut dyn FnMut(&mut Explorer<'g, 'p>, SymbolicState, Vec<(SymbolicOperand, Passed)>) -> Result<(), Refusal>;

impl<'g, 'p> Explorer<'g, 'p> {
    /// Executes a member, beginning with a block.
    pub(super) fn run_member(
        &mut self,
        mut path: SymbolicState,
        member: usize,
        mut block: BlockId,
    ) -> Result<(), Refusal> {
        let body = self.group.members[member].body;
        path.state.progressed_members.insert(member);
        loop {
            self.check_size()?;
            if self.schedule.is_some() {
                match self.enter_block(path, member, block)? {
                    Some(next) => path = next,
                    None => return Ok(()),
                }
            }
            let source = &body.blocks[block.0 as usize];
            for instruction in &source.instructions {
                self.execute_instruction(&mut path, member, instruction);
            }
            if let (Some(_), Some(last), Terminator::Jump(edge)) =
                (self.schedule, source.instructions.last(), &source.terminator)
                && let Op::Predicate(predicate, holds) = last.op
            {
                return self.fork_on_predicate(
                    path,
                    member,
                    predicate,
                    holds,
                    last.location,
                    &mut |explorer, mut path, reason| {
                        explorer.bind_edge(&mut path, member, edge);
                        path.state.members[member].control = Control::Running(edge.to);
                        match reason {
                            Some(reason) => explorer.exit_path(path, reason),
                            None => explorer.run_member(path, member, edge.to),
                        }
                    },
                );
            }
            match &source.terminator {
                Terminator::Wait(_) if self.schedule.is_some() => return self.arrive_at_wait(path, member, block),
                Terminator::Jump(edge) => match self.take_edge(&mut path, member, edge) {
                    Some(next) => block = next,
                    None => return self.end_at_node(path),
                },
                Terminator::Branch { condition, then, otherwise } => {
                    return self.fork_on(
                        path,
                        member,
                        *condition,
                        source.location,
                        &mut |explorer, mut path, holds| match explorer.take_edge(
                            &mut path,
                            member,
                            if holds { then } else { otherwise },
                        ) {
                            Some(next) => explorer.run_member(path, member, next),
                            None => explorer.end_at_node(path),
                        },
                    );
                }
                Terminator::Switch { value, cases, default } => {
                    return self.switch(path, member, *value, cases, default, source.location);
                }
                Terminator::Wait(_)
                | Terminator::End
                | Terminator::Exit(_)
                | Terminator::Fault(_)
                | Terminator::Yield(_)
                | Terminator::Return(_)
                | Terminator::Result(_)
                | Terminator::Enter(_)
                | Terminator::Leave(_) => return self.stop_member(path, member, block),
            }
        }
    }

    /// Ends the execution of a member at a terminator at which it stops, and runs the next member.
    fn stop_member(&mut self, mut path: SymbolicState, member: usize, block: BlockId) -> Result<(), Refusal> {
        let source = &self.group.members[member].body.blocks[block.0 as usize];
        let control = match &source.terminator {
            Terminator::Wait(_) => Control::Waiting(block),
            Terminator::End => Control::Terminated,
            Terminator::Exit(value) => {
                let value = self.residual_value(&mut path, member, *value);
                self.out.finish(path.block, Terminator::Exit(value), source.location);
                return Ok(());
            }
            Terminator::Fault(fault) => {
                self.out.finish(path.block, Terminator::Fault(*fault), source.location);
                return Ok(());
            }
            Terminator::Yield(edge) => {
                self.bind_edge(&mut path, member, edge);
                let queue_position = path.state.yielding().count();
                Control::Yielded(edge.to, YieldTurn { since: SinceYield::NothingRan, queue_position })
            }
            Terminator::Jump(_) | Terminator::Branch { .. } | Terminator::Switch { .. } => {
                unreachable!("a member continues at a local terminator")
            }
            Terminator::Return(_) | Terminator::Result(_) | Terminator::Enter(_) | Terminator::Leave(_) => {
                unreachable!("groups have no fast paths, and processes no results")
            }
        };
        path.state.members[member].control = control;
        path.state.prune(self.group, member);
        self.run_next_member(path)
    }

    /// Binds the parameters of an edge and moves the member there. The block, if execution continues into it; none at a
    /// join, which begins a node.
    fn take_edge(&mut self, path: &mut SymbolicState, member: usize, edge: &Edge) -> Option<BlockId> {
        self.bind_edge(path, member, edge);
        path.state.members[member].control = Control::Running(edge.to);
        if !self.group.members[member].is_join[edge.to.0 as usize] {
            return Some(edge.to);
        }
        path.state.prune(self.group, member);
        None
    }

    fn bind_edge(&mut self, path: &mut SymbolicState, member: usize, edge: &Edge) {
        let to = &self.group.members[member];
        let live = &to.live[edge.to.0 as usize].values;
        let parameters = to.body.blocks[edge.to.0 as usize].parameters.iter().zip(&edge.arguments);
        let known: Vec<(MemberValue, SymbolicValue)> = parameters
            .filter(|(parameter, _)| live.contains(parameter))
            .map(|(parameter, argument)| ((member, *parameter), self.symbolic_value(path, member, *argument)))
            .collect();
        path.state.values.extend(known);
    }

    /// Forks on a condition of a member, or continues with the only value that it can have.
    pub(super) fn fork_on(
        &mut self,
        path: SymbolicState,
        member: usize,
        condition: Value,
        location: Location,
        then: &mut dyn FnMut(&mut Explorer<'g, 'p>, SymbolicState, bool) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        match self.symbolic_value(&path, member, condition) {
            SymbolicValue::Constant(value) => then(self, path, value != 0),
            SymbolicValue::Residual(value) => self.fork_on_residual(path, value, location, then),
        }
    }

    /// Forks on a `bool` of the residue, or continues with the only value that it can have.
    pub(super) fn fork_on_residual(
        &mut self,
        mut path: SymbolicState,
        condition: Value,
        location: Location,
        then: &mut dyn FnMut(&mut Explorer<'g, 'p>, SymbolicState, bool) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        let mut otherwise = path.clone();
        match (
            path.state.assume_condition(self.group, condition, true),
            otherwise.state.assume_condition(self.group, condition, false),
        ) {
            (true, false) => return then(self, path, true),
            (false, true) => return then(self, otherwise, false),
            (true, true) | (false, false) => {}
        }
        let from = path.block;
        path.block = self.out.create_block(Vec::new());
        otherwise.block = self.out.create_block(Vec::new());
        let branch = Terminator::Branch { condition, then: edge_to(path.block), otherwise: edge_to(otherwise.block) };
        self.out.finish(from, branch, location);
        then(self, path, true)?;
        then(self, otherwise, false)
    }

    fn switch(
        &mut self,
        path: SymbolicState,
        member: usize,
        value: Value,
        cases: &[(i128, Edge)],
        default: &Edge,
        location: Location,
    ) -> Result<(), Refusal> {
        let ty = self.group.members[member].body.values[value.0 as usize].ty;
        let mut targets: Vec<(Option<i128>, SymbolicState, &Edge)> = Vec::new();
        let known = match self.symbolic_value(&path, member, value) {
            SymbolicValue::Constant(constant) => {
                let edge = cases.iter().find(|(case, _)| *case == constant).map_or(default, |(_, edge)| edge);
                targets.push((None, path.clone(), edge));
                None
            }
            SymbolicValue::Residual(value) => {
                let mut rest = Some(path.state.fact(self.group, SymbolicValue::Residual(value), ty));
                for (case, edge) in cases {
                    let Some(fact) = rest.take() else { break };
                    if fact.admits(*case) {
                        let mut taken = path.clone();
                        if taken.state.assume_fact(value, Fact::constant(*case)) {
                            targets.push((Some(*case), taken, edge));
                        }
                    }
                    rest = fact.without(*case);
                }
                if let Some(fact) = rest {
                    let mut taken = path.clone();
                    if taken.state.assume_fact(value, fact) {
                        targets.push((None, taken, default));
                    }
                }
                Some(value)
            }
        };
        if let (Some(value), true) = (known, targets.len() > 1) {
            for (_, taken, _) in &mut targets {
                taken.block = self.out.create_block(Vec::new());
            }
            let (_, last, _) = targets.last().expect("there are several targets");
            let default = edge_to(last.block);
            let cases = targets[..targets.len() - 1]
                .iter()
                .map(|(case, taken, _)| (case.expect("only the last taken is the default"), edge_to(taken.block)))
                .collect();
            self.out.finish(path.block, Terminator::Switch { value, cases, default }, location);
        }
        for (_, mut taken, edge) in targets {
            match self.take_edge(&mut taken, member, edge) {
                Some(next) => self.run_member(taken, member, next)?,
                None => self.end_at_node(taken)?,
            }
        }
        Ok(())
    }

    /// Executes a region of a wait; each path through it continues with `then`. Joins within it are not nodes.
    pub(super) fn run_region(
        &mut self,
        mut path: SymbolicState,
        member: usize,
        block: BlockId,
        then: RegionContinuation<'_, 'g, 'p>,
    ) -> Result<(), Refusal> {
        self.check_size()?;
        let source = &self.group.members[member].body.blocks[block.0 as usize];
        for instruction in &source.instructions {
            self.execute_instruction(&mut path, member, instruction);
        }
        match &source.terminator {
            Terminator::Jump(edge) => {
                self.bind_edge(&mut path, member, edge);
                self.run_region(path, member, edge.to, then)
            }
            Terminator::Branch { condition, then: if_true, otherwise } => {
                self.fork_on(path, member, *condition, source.location, &mut |explorer, mut path, holds| {
                    let edge = if holds { if_true } else { otherwise };
                    explorer.bind_edge(&mut path, member, edge);
                    explorer.run_region(path, member, edge.to, then)
                })
            }
            Terminator::Switch { .. } => Err(Refusal::Unsupported {
                process: self.group.members[member].process,
                what: "a choice of several within an operation",
                location: source.location,
            }),
            Terminator::Result(passed) => {
                let results = passed
                    .iter()
                    .map(|passed| (self.symbolic_operand(&path, member, &passed.operand), passed.clone()))
                    .collect();
                then(self, path, results)
            }
            Terminator::Fault(_) if self.schedule.is_some() => self.exit_path(path, ExitReason::NotExecutable(member)),
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

    /// The symbolic operand for an operand of a member.
    pub(super) fn symbolic_operand(
        &mut self,
        path: &SymbolicState,
        member: usize,
        operand: &Operand,
    ) -> SymbolicOperand {
        let known = &self.group.members[member];
        match operand {
            Operand::Value(value) => SymbolicOperand::Value(
                self.symbolic_value(path, member, *value),
                known.body.values[value.0 as usize].ty,
            ),
            Operand::Place(place) => {
                let ty = quaject_esp_ir::typing::place_type(self.group.types(), known.body, place)
                    .expect("a verified place has a type");
                let mut path = path.clone();
                SymbolicOperand::Place(self.residual_place(&mut path, member, place), ty)
            }
        }
    }

    /// The symbolic value of a value of a member.
    pub(super) fn symbolic_value(&self, path: &SymbolicState, member: usize, value: Value) -> SymbolicValue {
        path.state.symbolic_value(member, value)
    }

    /// The value of the residue for a value of a member; a constant is materialized.
    pub(super) fn residual_value(&mut self, path: &mut SymbolicState, member: usize, value: Value) -> Value {
        let ty = self.group.members[member].body.values[value.0 as usize].ty;
        let known = self.symbolic_value(path, member, value);
        self.materialize(path, known, ty)
    }

    /// The value of the residue for a symbolic value: a constant is emitted once on a path.
    pub(super) fn materialize(&mut self, path: &mut SymbolicState, known: SymbolicValue, ty: TypeId) -> Value {
        match known {
            SymbolicValue::Residual(value) => value,
            SymbolicValue::Constant(constant) => {
                if let Some(value) = path.state.constants.get(&(ty, constant)) {
                    return *value;
                }
                let value = self.out.create_value(ty, None);
                self.out.emit(path.block, Some(value), Op::Constant(constant), Location::default());
                path.state.constants.insert((ty, constant), value);
                value
            }
        }
    }

    /// The place in the residue for a place of a member.
    pub(super) fn residual_place(&mut self, path: &mut SymbolicState, member: usize, place: &Place) -> Place {
        let base = match place.base {
            Base::Slot(slot) => Base::Slot(SlotId(slot.0 + self.group.members[member].first_slot)),
            Base::Object(value) => Base::Object(self.residual_value(path, member, value)),
        };
        let steps = place.path.iter().map(|step| match step {
            Projection::Element(value) => Projection::Element(self.residual_value(path, member, *value)),
            Projection::Inside(value) => Projection::Inside(self.residual_value(path, member, *value)),
            Projection::Field(_) | Projection::Payload(_) => *step,
        });
        Place { base, path: steps.collect() }
    }

    fn execute_instruction(&mut self, path: &mut SymbolicState, member: usize, instruction: &Instruction) {
        let group = self.group;
        let body = group.members[member].body;
        let ty_of = |value: Value| body.values[value.0 as usize].ty;
        let known = match (&instruction.op, instruction.result) {
            (Op::Mark(_) | Op::Predicate(..), _) => return,
            (Op::Constant(value), Some(_)) => Some(SymbolicValue::Constant(*value)),
            (Op::OwnId, Some(_)) => Some(SymbolicValue::Constant(i128::from(group.members[member].instance))),
            (Op::Unary(op, a), Some(result)) => {
                let fact = self.fact_of(path, member, *a);
                let least = Fact::of_type(group.types(), ty_of(*a)).low;
                let overflows = group.checked && *op == UnaryOp::Negate && fact.admits(least);
                let fact = facts::unary(group.types(), ty_of(result), *op, &fact);
                if overflows { None } else { fact.as_constant().map(SymbolicValue::Constant) }
            }
            (Op::Binary(op, a, b), Some(result)) => {
                let (ty, of) = (ty_of(result), ty_of(*a));
                let (fact_a, fact_b) = (self.fact_of(path, member, *a), self.fact_of(path, member, *b));
                let divides = matches!(op, BinaryOp::Divide | BinaryOp::Remainder) && fact_b.admits(0);
                let overflows = group.checked && facts::may_overflow(group.types(), ty, *op, &fact_a, &fact_b);
                let fact = facts::binary(group.types(), ty, *op, of, &fact_a, &fact_b);
                match (divides || overflows, fact.as_constant()) {
                    (true, _) => None,
                    (false, Some(constant)) => Some(SymbolicValue::Constant(constant)),
                    (false, None) => self.emit_simplified(path, member, instruction, simplify(*op, &fact_a, &fact_b)),
                }
            }
            (Op::Convert(a), Some(result)) => {
                let fact = self.fact_of(path, member, *a);
                let same = ty_of(*a) == ty_of(result);
                let known =
                    facts::convert(group.types(), ty_of(result), &fact).as_constant().map(SymbolicValue::Constant);
                known.or_else(|| same.then(|| self.symbolic_value(path, member, *a)))
            }
            (Op::ReplicaNumber(a), Some(_)) => match self.symbolic_value(path, member, *a) {
                SymbolicValue::Constant(instance) => group
                    .program
                    .process_of(instance as u32)
                    .map(|(_, replica)| SymbolicValue::Constant(i128::from(replica))),
                SymbolicValue::Residual(_) => None,
            },
            (Op::InstanceOf(process, a), Some(_)) => match self.symbolic_value(path, member, *a) {
                SymbolicValue::Constant(replica) => group
                    .program
                    .instance(*process, replica)
                    .map(|instance| SymbolicValue::Constant(i128::from(instance))),
                SymbolicValue::Residual(_) => None,
            },
            (Op::Length(place), Some(_)) => self.known_length(path, member, place).map(SymbolicValue::Constant),
            (Op::Tag(place), Some(_)) => {
                let tag = self.tag_place(member, place).and_then(|place| path.state.tags.get(&place));
                tag.and_then(Fact::as_constant).map(SymbolicValue::Constant)
            }
            _ => None,
        };
        let known = match known {
            Some(known) => known,
            None => match self.emit_residual(path, member, instruction) {
                Some(value) => SymbolicValue::Residual(value),
                None => return,
            },
        };
        if let Some(result) = instruction.result {
            path.state.values.insert((member, result), known);
        }
    }

    /// The result of an operation that facts simplify.
    fn emit_simplified(
        &mut self,
        path: &mut SymbolicState,
        member: usize,
        instruction: &Instruction,
        simpler: Option<Simplification>,
    ) -> Option<SymbolicValue> {
        let (Op::Binary(_, a, b), Some(result)) = (&instruction.op, instruction.result) else { return None };
        let data = &self.group.members[member].body.values[result.0 as usize];
        match simpler? {
            Simplification::First => Some(self.symbolic_value(path, member, *a)),
            Simplification::Second => Some(self.symbolic_value(path, member, *b)),
            Simplification::Apply(op, constant) => {
                let fact_a = self.fact_of(path, member, *a);
                let first = self.residual_value(path, member, *a);
                let second = self.materialize(path, SymbolicValue::Constant(constant), data.ty);
                let value = self.out.create_value(data.ty, data.name.clone());
                self.out.emit(path.block, Some(value), Op::Binary(op, first, second), instruction.location);
                let types = self.group.types();
                let fact = facts::binary(types, data.ty, op, data.ty, &fact_a, &Fact::constant(constant));
                path.state.facts.insert(value, fact);
                Some(SymbolicValue::Residual(value))
            }
        }
    }

    fn fact_of(&self, path: &SymbolicState, member: usize, value: Value) -> Fact {
        let ty = self.group.members[member].body.values[value.0 as usize].ty;
        path.state.fact(self.group, self.symbolic_value(path, member, value), ty)
    }

    /// Emits an instruction of a member, and records the facts about its result.
    fn emit_residual(&mut self, path: &mut SymbolicState, member: usize, instruction: &Instruction) -> Option<Value> {
        let body = self.group.members[member].body;
        let first_slot = self.group.members[member].first_slot;
        let mut op = instruction.op.clone();
        let mut operands = Vec::new();
        op_values(&op, &mut |value| operands.push(*value));
        let mut operands: Vec<Value> =
            operands.into_iter().map(|value| self.residual_value(path, member, value)).collect();
        operands.reverse();
        op_values_mut(&mut op, &mut |value| *value = operands.pop().expect("visited twice in the same order"));
        op_slots_mut(&mut op, &mut |slot| *slot = SlotId(slot.0 + first_slot));
        self.record_writes(path, &op);
        let result = instruction.result.map(|result| {
            let data = &body.values[result.0 as usize];
            self.out.create_value(data.ty, data.name.clone())
        });
        if let (Some(from), Some(to)) = (instruction.result, result) {
            self.record_result_facts(path, member, &instruction.op, body.values[from.0 as usize].ty, to);
        }
        self.out.emit(path.block, result, op, instruction.location);
        result
    }

    fn record_result_facts(&mut self, path: &mut SymbolicState, member: usize, op: &Op, ty: TypeId, result: Value) {
        let body = self.group.members[member].body;
        match op {
            Op::Unary(UnaryOp::Not, a) => {
                if let SymbolicValue::Residual(a) = self.symbolic_value(path, member, *a) {
                    path.state.conditions.insert(result, Condition::Not(a));
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
                // The operands of a comparison have one type; those of a shift may have two.
                if ty == TypeTable::BOOL && is_number(self.group.types(), of) {
                    let (a, b) = (self.symbolic_value(path, member, *a), self.symbolic_value(path, member, *b));
                    path.state.conditions.insert(result, Condition::Compare(*op, a, b, of));
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
                    path.state.tag_reads.insert(result, place);
                }
            }
            _ => {}
        }
    }

    /// Updates the facts about memory that an instruction writes.
    pub(super) fn record_writes(&mut self, path: &mut SymbolicState, op: &Op) {
        let state = &mut path.state;
        match op {
            Op::SetTag(place, tag) => {
                if let Some((slot, steps)) = forget_written(state, place) {
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
                if let Some((slot, steps)) = forget_written(state, to) {
                    for (rest, fact) in copied {
                        state.tags.insert((slot, [steps.as_slice(), &rest].concat()), fact);
                    }
                }
            }
            Op::SetBytes(place, bytes) => {
                forget_written(state, place);
                if let Place { base: Base::Slot(slot), path: steps } = place
                    && steps.is_empty()
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
            | Op::StoreBits { to: place, .. } => drop(forget_written(state, place)),
            Op::CallFunction { function: _, arguments: _, to } => {
                to.iter().for_each(|place| drop(forget_written(state, place)));
            }
            Op::CallExtern { function: _, arguments, to } => {
                to.iter().for_each(|place| drop(forget_written(state, place)));
                for argument in arguments {
                    if let Operand::Place(place) = argument {
                        forget_written(state, place);
                    }
                }
            }
            _ => {}
        }
    }

    /// The length of `bytes` of a member, if this path knows it.
    pub(super) fn known_length(&self, path: &SymbolicState, member: usize, place: &Place) -> Option<i128> {
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

/// The key of a place in the facts about tags, if the path into it has neither elements nor objects.
pub(super) fn tag_steps(place: &Place) -> Option<TagPlace> {
    let Base::Slot(slot) = place.base else { return None };
    let steps = place.path.iter().map(|step| match step {
        Projection::Field(field) => Some(2 * field),
        Projection::Payload(tag) => Some(2 * tag + 1),
        Projection::Element(_) | Projection::Inside(_) => None,
    });
    Some((slot, steps.collect::<Option<Vec<u32>>>()?))
}

/// Removes the facts about a place that is written. Its key, if there can be facts about its tags.
fn forget_written(state: &mut ProductState, place: &Place) -> Option<TagPlace> {
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
