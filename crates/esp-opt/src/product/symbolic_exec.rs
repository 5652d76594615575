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
        mut state: SymbolicState,
        member: usize,
        mut block: BlockId,
    ) -> Result<(), Refusal> {
        let body = self.group.members[member].body;
        state.product.progressed_members.insert(member);
        loop {
            self.check_size()?;
            if self.schedule.is_some() {
                match self.enter_block(state, member, block)? {
                    Some(next) => state = next,
                    None => return Ok(()),
                }
            }
            let source = &body.blocks[block.0 as usize];
            for instruction in &source.instructions {
                self.execute_instruction(&mut state, member, instruction);
            }
            if let (Some(_), Some(last), Terminator::Jump(edge)) =
                (self.schedule, source.instructions.last(), &source.terminator)
                && let Op::Predicate(predicate, holds) = last.op
            {
                return self.fork_on_predicate(
                    state,
                    member,
                    predicate,
                    holds,
                    last.location,
                    &mut |explorer, mut state, reason| {
                        explorer.bind_edge(&mut state, member, edge);
                        state.product.members[member].control = Control::Running(edge.to);
                        match reason {
                            Some(reason) => explorer.exit_path(state, reason),
                            None => explorer.run_member(state, member, edge.to),
                        }
                    },
                );
            }
            match &source.terminator {
                Terminator::Wait(_) if self.schedule.is_some() => return self.arrive_at_wait(state, member, block),
                Terminator::Jump(edge) => match self.take_edge(&mut state, member, edge) {
                    Some(next) => block = next,
                    None => return self.end_at_node(state),
                },
                Terminator::Branch { condition, then, otherwise } => {
                    return self.fork_on(
                        state,
                        member,
                        *condition,
                        source.location,
                        &mut |explorer, mut state, holds| match explorer.take_edge(
                            &mut state,
                            member,
                            if holds { then } else { otherwise },
                        ) {
                            Some(next) => explorer.run_member(state, member, next),
                            None => explorer.end_at_node(state),
                        },
                    );
                }
                Terminator::Switch { value, cases, default } => {
                    return self.switch(state, member, *value, cases, default, source.location);
                }
                Terminator::Wait(_)
                | Terminator::End
                | Terminator::Exit(_)
                | Terminator::Fault(_)
                | Terminator::Yield(_)
                | Terminator::Return(_)
                | Terminator::Result(_)
                | Terminator::Enter(_)
                | Terminator::Leave(_) => return self.stop_member(state, member, block),
            }
        }
    }

    /// Ends the execution of a member at a terminator at which it stops, and runs the next member.
    fn stop_member(&mut self, mut state: SymbolicState, member: usize, block: BlockId) -> Result<(), Refusal> {
        let source = &self.group.members[member].body.blocks[block.0 as usize];
        let control = match &source.terminator {
            Terminator::Wait(_) => Control::Waiting(block),
            Terminator::End => Control::Terminated,
            Terminator::Exit(value) => {
                let value = self.residual_value(&mut state, member, *value);
                self.out.finish(state.block, Terminator::Exit(value), source.location);
                return Ok(());
            }
            Terminator::Fault(fault) => {
                self.out.finish(state.block, Terminator::Fault(*fault), source.location);
                return Ok(());
            }
            Terminator::Yield(edge) => {
                self.bind_edge(&mut state, member, edge);
                let queue_position = state.product.yielding().count();
                Control::Yielded(edge.to, YieldTurn { since: SinceYield::NothingRan, queue_position })
            }
            Terminator::Jump(_) | Terminator::Branch { .. } | Terminator::Switch { .. } => {
                unreachable!("a member continues at a local terminator")
            }
            Terminator::Return(_) | Terminator::Result(_) | Terminator::Enter(_) | Terminator::Leave(_) => {
                unreachable!("groups have no fast paths, and processes no results")
            }
        };
        state.product.members[member].control = control;
        state.product.prune(self.group, member);
        self.run_next_member(state)
    }

    /// Binds the parameters of an edge and moves the member there. The block, if execution continues into it; none at a
    /// join, which begins a node.
    fn take_edge(&mut self, state: &mut SymbolicState, member: usize, edge: &Edge) -> Option<BlockId> {
        self.bind_edge(state, member, edge);
        state.product.members[member].control = Control::Running(edge.to);
        if !self.group.members[member].is_join[edge.to.0 as usize] {
            return Some(edge.to);
        }
        state.product.prune(self.group, member);
        None
    }

    fn bind_edge(&mut self, state: &mut SymbolicState, member: usize, edge: &Edge) {
        let to = &self.group.members[member];
        let live = &to.live[edge.to.0 as usize].values;
        let parameters = to.body.blocks[edge.to.0 as usize].parameters.iter().zip(&edge.arguments);
        let known: Vec<(MemberValue, SymbolicValue)> = parameters
            .filter(|(parameter, _)| live.contains(parameter))
            .map(|(parameter, argument)| ((member, *parameter), self.symbolic_value(state, member, *argument)))
            .collect();
        state.product.values.extend(known);
    }

    /// Forks on a condition of a member, or continues with the only value that it can have.
    pub(super) fn fork_on(
        &mut self,
        state: SymbolicState,
        member: usize,
        condition: Value,
        location: Location,
        then: &mut dyn FnMut(&mut Explorer<'g, 'p>, SymbolicState, bool) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        match self.symbolic_value(&state, member, condition) {
            SymbolicValue::Constant(value) => then(self, state, value != 0),
            SymbolicValue::Residual(value) => self.fork_on_residual(state, value, location, then),
        }
    }

    /// Forks on a `bool` of the residue, or continues with the only value that it can have.
    pub(super) fn fork_on_residual(
        &mut self,
        mut state: SymbolicState,
        condition: Value,
        location: Location,
        then: &mut dyn FnMut(&mut Explorer<'g, 'p>, SymbolicState, bool) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        let mut otherwise = state.clone();
        match (
            state.product.assume_condition(self.group, condition, true),
            otherwise.product.assume_condition(self.group, condition, false),
        ) {
            (true, false) => return then(self, state, true),
            (false, true) => return then(self, otherwise, false),
            (true, true) | (false, false) => {}
        }
        let from = state.block;
        state.block = self.out.create_block(Vec::new());
        otherwise.block = self.out.create_block(Vec::new());
        let branch = Terminator::Branch { condition, then: edge_to(state.block), otherwise: edge_to(otherwise.block) };
        self.out.finish(from, branch, location);
        then(self, state, true)?;
        then(self, otherwise, false)
    }

    fn switch(
        &mut self,
        state: SymbolicState,
        member: usize,
        value: Value,
        cases: &[(i128, Edge)],
        default: &Edge,
        location: Location,
    ) -> Result<(), Refusal> {
        let ty = self.group.members[member].body.values[value.0 as usize].ty;
        let mut targets: Vec<(Option<i128>, SymbolicState, &Edge)> = Vec::new();
        let known = match self.symbolic_value(&state, member, value) {
            SymbolicValue::Constant(constant) => {
                let edge = cases.iter().find(|(case, _)| *case == constant).map_or(default, |(_, edge)| edge);
                targets.push((None, state.clone(), edge));
                None
            }
            SymbolicValue::Residual(value) => {
                let mut rest = Some(state.product.fact(self.group, SymbolicValue::Residual(value), ty));
                for (case, edge) in cases {
                    let Some(fact) = rest.take() else { break };
                    if fact.admits(*case) {
                        let mut taken = state.clone();
                        if taken.product.assume_fact(value, Fact::constant(*case)) {
                            targets.push((Some(*case), taken, edge));
                        }
                    }
                    rest = fact.without(*case);
                }
                if let Some(fact) = rest {
                    let mut taken = state.clone();
                    if taken.product.assume_fact(value, fact) {
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
            self.out.finish(state.block, Terminator::Switch { value, cases, default }, location);
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
        mut state: SymbolicState,
        member: usize,
        block: BlockId,
        then: RegionContinuation<'_, 'g, 'p>,
    ) -> Result<(), Refusal> {
        self.check_size()?;
        let source = &self.group.members[member].body.blocks[block.0 as usize];
        for instruction in &source.instructions {
            self.execute_instruction(&mut state, member, instruction);
        }
        match &source.terminator {
            Terminator::Jump(edge) => {
                self.bind_edge(&mut state, member, edge);
                self.run_region(state, member, edge.to, then)
            }
            Terminator::Branch { condition, then: if_true, otherwise } => {
                self.fork_on(state, member, *condition, source.location, &mut |explorer, mut state, holds| {
                    let edge = if holds { if_true } else { otherwise };
                    explorer.bind_edge(&mut state, member, edge);
                    explorer.run_region(state, member, edge.to, then)
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
                    .map(|passed| (self.symbolic_operand(&state, member, &passed.operand), passed.clone()))
                    .collect();
                then(self, state, results)
            }
            Terminator::Fault(_) if self.schedule.is_some() => self.exit_path(state, ExitReason::NotExecutable(member)),
            Terminator::Fault(fault) => {
                self.out.finish(state.block, Terminator::Fault(*fault), source.location);
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
        state: &SymbolicState,
        member: usize,
        operand: &Operand,
    ) -> SymbolicOperand {
        let known = &self.group.members[member];
        match operand {
            Operand::Value(value) => SymbolicOperand::Value(
                self.symbolic_value(state, member, *value),
                known.body.values[value.0 as usize].ty,
            ),
            Operand::Place(place) => {
                let ty = quaject_esp_ir::typing::place_type(self.group.types(), known.body, place)
                    .expect("a verified place has a type");
                let mut state = state.clone();
                SymbolicOperand::Place(self.residual_place(&mut state, member, place), ty)
            }
        }
    }

    /// The symbolic value of a value of a member.
    pub(super) fn symbolic_value(&self, state: &SymbolicState, member: usize, value: Value) -> SymbolicValue {
        state.product.symbolic_value(member, value)
    }

    /// The value of the residue for a value of a member; a constant is materialized.
    pub(super) fn residual_value(&mut self, state: &mut SymbolicState, member: usize, value: Value) -> Value {
        let ty = self.group.members[member].body.values[value.0 as usize].ty;
        let known = self.symbolic_value(state, member, value);
        self.materialize(state, known, ty)
    }

    /// The value of the residue for a symbolic value: a constant is emitted once on a path.
    pub(super) fn materialize(&mut self, state: &mut SymbolicState, known: SymbolicValue, ty: TypeId) -> Value {
        match known {
            SymbolicValue::Residual(value) => value,
            SymbolicValue::Constant(constant) => {
                if let Some(value) = state.product.constants.get(&(ty, constant)) {
                    return *value;
                }
                let value = self.out.create_value(ty, None);
                self.out.emit(state.block, Some(value), Op::Constant(constant), Location::default());
                state.product.constants.insert((ty, constant), value);
                value
            }
        }
    }

    /// The place in the residue for a place of a member.
    pub(super) fn residual_place(&mut self, state: &mut SymbolicState, member: usize, place: &Place) -> Place {
        let base = match place.base {
            Base::Slot(slot) => Base::Slot(SlotId(slot.0 + self.group.members[member].first_slot)),
            Base::Object(value) => Base::Object(self.residual_value(state, member, value)),
            Base::Constant(..) => place.base,
        };
        let steps = place.path.iter().map(|step| match step {
            Projection::Element(value) => Projection::Element(self.residual_value(state, member, *value)),
            Projection::Inside(value) => Projection::Inside(self.residual_value(state, member, *value)),
            Projection::Field(_) | Projection::Payload(_) => *step,
        });
        Place { base, path: steps.collect() }
    }

    fn execute_instruction(&mut self, state: &mut SymbolicState, member: usize, instruction: &Instruction) {
        let group = self.group;
        let body = group.members[member].body;
        let ty_of = |value: Value| body.values[value.0 as usize].ty;
        let known = match (&instruction.op, instruction.result) {
            (Op::Mark(_) | Op::Predicate(..), _) => return,
            (Op::Constant(value), Some(_)) => Some(SymbolicValue::Constant(*value)),
            (Op::OwnId, Some(_)) => Some(SymbolicValue::Constant(i128::from(group.members[member].instance))),
            (Op::Unary(op, a), Some(result)) => {
                let fact = self.fact_of(state, member, *a);
                let least = Fact::of_type(group.types(), ty_of(*a)).low;
                let overflows = group.checked && *op == UnaryOp::Negate && fact.admits(least);
                let fact = facts::unary(group.types(), ty_of(result), *op, &fact);
                if overflows { None } else { fact.as_constant().map(SymbolicValue::Constant) }
            }
            (Op::Binary(op, a, b), Some(result)) => {
                let (ty, of) = (ty_of(result), ty_of(*a));
                let (fact_a, fact_b) = (self.fact_of(state, member, *a), self.fact_of(state, member, *b));
                let divides = matches!(op, BinaryOp::Divide | BinaryOp::Remainder) && fact_b.admits(0);
                let overflows = group.checked && facts::may_overflow(group.types(), ty, *op, &fact_a, &fact_b);
                let fact = facts::binary(group.types(), ty, *op, of, &fact_a, &fact_b);
                match (divides || overflows, fact.as_constant()) {
                    (true, _) => None,
                    (false, Some(constant)) => Some(SymbolicValue::Constant(constant)),
                    (false, None) => self.emit_simplified(state, member, instruction, simplify(*op, &fact_a, &fact_b)),
                }
            }
            (Op::Convert(a), Some(result)) => {
                let fact = self.fact_of(state, member, *a);
                let same = ty_of(*a) == ty_of(result);
                let known =
                    facts::convert(group.types(), ty_of(result), &fact).as_constant().map(SymbolicValue::Constant);
                known.or_else(|| same.then(|| self.symbolic_value(state, member, *a)))
            }
            (Op::ReplicaNumber(a), Some(_)) => match self.symbolic_value(state, member, *a) {
                SymbolicValue::Constant(instance) => group
                    .program
                    .process_of(instance as u32)
                    .map(|(_, replica)| SymbolicValue::Constant(i128::from(replica))),
                SymbolicValue::Residual(_) => None,
            },
            (Op::InstanceOf(process, a), Some(_)) => match self.symbolic_value(state, member, *a) {
                SymbolicValue::Constant(replica) => group
                    .program
                    .instance(*process, replica)
                    .map(|instance| SymbolicValue::Constant(i128::from(instance))),
                SymbolicValue::Residual(_) => None,
            },
            (Op::Length(place), Some(_)) => self.known_length(state, member, place).map(SymbolicValue::Constant),
            (Op::Tag(place), Some(_)) => {
                let tag = self.tag_place(member, place).and_then(|place| state.product.tags.get(&place));
                tag.and_then(Fact::as_constant).map(SymbolicValue::Constant)
            }
            _ => None,
        };
        let known = match known {
            Some(known) => known,
            None => match self.emit_residual(state, member, instruction) {
                Some(value) => SymbolicValue::Residual(value),
                None => return,
            },
        };
        if let Some(result) = instruction.result {
            state.product.values.insert((member, result), known);
        }
    }

    /// The result of an operation that facts simplify.
    fn emit_simplified(
        &mut self,
        state: &mut SymbolicState,
        member: usize,
        instruction: &Instruction,
        simpler: Option<Simplification>,
    ) -> Option<SymbolicValue> {
        let (Op::Binary(_, a, b), Some(result)) = (&instruction.op, instruction.result) else { return None };
        let data = &self.group.members[member].body.values[result.0 as usize];
        match simpler? {
            Simplification::First => Some(self.symbolic_value(state, member, *a)),
            Simplification::Second => Some(self.symbolic_value(state, member, *b)),
            Simplification::Apply(op, constant) => {
                let fact_a = self.fact_of(state, member, *a);
                let first = self.residual_value(state, member, *a);
                let second = self.materialize(state, SymbolicValue::Constant(constant), data.ty);
                let value = self.out.create_value(data.ty, data.name.clone());
                self.out.emit(state.block, Some(value), Op::Binary(op, first, second), instruction.location);
                let types = self.group.types();
                let fact = facts::binary(types, data.ty, op, data.ty, &fact_a, &Fact::constant(constant));
                state.product.facts.insert(value, fact);
                Some(SymbolicValue::Residual(value))
            }
        }
    }

    fn fact_of(&self, state: &SymbolicState, member: usize, value: Value) -> Fact {
        let ty = self.group.members[member].body.values[value.0 as usize].ty;
        state.product.fact(self.group, self.symbolic_value(state, member, value), ty)
    }

    /// Emits an instruction of a member, and records the facts about its result.
    fn emit_residual(&mut self, state: &mut SymbolicState, member: usize, instruction: &Instruction) -> Option<Value> {
        let body = self.group.members[member].body;
        let first_slot = self.group.members[member].first_slot;
        let mut op = instruction.op.clone();
        let mut operands = Vec::new();
        op_values(&op, &mut |value| operands.push(*value));
        let mut operands: Vec<Value> =
            operands.into_iter().map(|value| self.residual_value(state, member, value)).collect();
        operands.reverse();
        op_values_mut(&mut op, &mut |value| *value = operands.pop().expect("visited twice in the same order"));
        op_slots_mut(&mut op, &mut |slot| *slot = SlotId(slot.0 + first_slot));
        self.record_writes(state, &op);
        let result = instruction.result.map(|result| {
            let data = &body.values[result.0 as usize];
            self.out.create_value(data.ty, data.name.clone())
        });
        if let (Some(from), Some(to)) = (instruction.result, result) {
            self.record_result_facts(state, member, &instruction.op, body.values[from.0 as usize].ty, to);
        }
        self.out.emit(state.block, result, op, instruction.location);
        result
    }

    fn record_result_facts(&mut self, state: &mut SymbolicState, member: usize, op: &Op, ty: TypeId, result: Value) {
        let body = self.group.members[member].body;
        match op {
            Op::Unary(UnaryOp::Not, a) => {
                if let SymbolicValue::Residual(a) = self.symbolic_value(state, member, *a) {
                    state.product.conditions.insert(result, Condition::Not(a));
                }
            }
            Op::Unary(op, a) => {
                let fact = facts::unary(self.group.types(), ty, *op, &self.fact_of(state, member, *a));
                state.product.facts.insert(result, fact);
            }
            Op::Binary(op, a, b) => {
                let of = body.values[a.0 as usize].ty;
                let (fact_a, fact_b) = (self.fact_of(state, member, *a), self.fact_of(state, member, *b));
                let fact = facts::binary(self.group.types(), ty, *op, of, &fact_a, &fact_b);
                // The operands of a comparison have one type; those of a shift may have two.
                if ty == TypeTable::BOOL && is_number(self.group.types(), of) {
                    let (a, b) = (self.symbolic_value(state, member, *a), self.symbolic_value(state, member, *b));
                    state.product.conditions.insert(result, Condition::Compare(*op, a, b, of));
                }
                if fact.as_constant().is_none() {
                    state.product.facts.insert(result, fact);
                }
            }
            Op::Convert(a) => {
                let fact = facts::convert(self.group.types(), ty, &self.fact_of(state, member, *a));
                state.product.facts.insert(result, fact);
            }
            Op::Tag(place) => {
                if let Some(place) = self.tag_place(member, place) {
                    if let Some(fact) = state.product.tags.get(&place) {
                        state.product.facts.insert(result, fact.clone());
                    }
                    state.product.tag_reads.insert(result, place);
                }
            }
            _ => {}
        }
    }

    /// Updates the facts about memory that an instruction writes.
    pub(super) fn record_writes(&mut self, state: &mut SymbolicState, op: &Op) {
        let product = &mut state.product;
        match op {
            Op::SetTag(place, tag) => {
                if let Some((slot, steps)) = forget_written(product, place) {
                    product.tags.insert((slot, steps), Fact::constant(i128::from(*tag)));
                }
            }
            Op::Copy { to, from } => {
                let source = tag_steps(from);
                let copied: Vec<(Vec<u32>, Fact)> = match &source {
                    Some((slot, steps)) => product
                        .tags
                        .iter()
                        .filter(|((other, known), _)| other == slot && known.starts_with(steps))
                        .map(|((_, known), fact)| (known[steps.len()..].to_vec(), fact.clone()))
                        .collect(),
                    None => Vec::new(),
                };
                if let Some((slot, steps)) = forget_written(product, to) {
                    for (rest, fact) in copied {
                        product.tags.insert((slot, [steps.as_slice(), &rest].concat()), fact);
                    }
                }
            }
            Op::SetBytes(place, bytes) => {
                forget_written(product, place);
                if let Place { base: Base::Slot(slot), path: steps } = place
                    && steps.is_empty()
                {
                    product.lengths.insert(*slot, bytes.len() as i128);
                }
            }
            Op::Store(place, _)
            | Op::Fill(place, _)
            | Op::SetLength(place, _)
            | Op::CopySlice { to: place, .. }
            | Op::StoreSlice { to: place, .. }
            | Op::Append { to: place, .. }
            | Op::StoreNumber { to: place, .. }
            | Op::StoreBits { to: place, .. } => drop(forget_written(product, place)),
            Op::CallFunction { function: _, arguments: _, to } => {
                to.iter().for_each(|place| drop(forget_written(product, place)));
            }
            Op::CallExtern { function: _, arguments, to } => {
                to.iter().for_each(|place| drop(forget_written(product, place)));
                for argument in arguments {
                    if let Operand::Place(place) = argument {
                        forget_written(product, place);
                    }
                }
            }
            _ => {}
        }
    }

    /// The length of `bytes` of a member, if this path knows it.
    pub(super) fn known_length(&self, state: &SymbolicState, member: usize, place: &Place) -> Option<i128> {
        match place {
            Place { base: Base::Slot(slot), path: steps } if steps.is_empty() => {
                let here = SlotId(slot.0 + self.group.members[member].first_slot);
                state.product.lengths.get(&here).copied()
            }
            Place { base: Base::Slot(_) | Base::Object(_) | Base::Constant(..), path: _ } => None,
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
fn forget_written(product: &mut ProductState, place: &Place) -> Option<TagPlace> {
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
    product.forget_tags(slot, &known);
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
