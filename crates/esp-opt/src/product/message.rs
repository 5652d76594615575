//! The message of a rendezvous: it is matched with the patterns of the receiver, and its parts are bound. Tests that
//! the facts decide are not emitted. Knows one receiver, no schedule.

use super::body_queries::holds_boxed;
use super::explorer::Explorer;
use super::state::{Condition, SymbolicOperand, SymbolicState, SymbolicValue};
use super::symbolic_exec::tag_steps;
use crate::refusal::Refusal;
use quaject_esp_ir::ir::{
    Base, BinaryOp, Bind, BlockId, Location, Op, Operand, Passed, Pattern, Place, Projection, SlotId, Type, TypeId,
    TypeTable,
};

impl<'g, 'p> Explorer<'g, 'p> {
    /// Matches the patterns that are still unmatched, the last first, and continues with whether all match.
    pub(super) fn match_patterns(
        &mut self,
        mut state: SymbolicState,
        receiver: usize,
        location: Location,
        mut unmatched: Vec<(&'p Pattern, SymbolicOperand)>,
        then: &mut dyn FnMut(&mut Explorer<'g, 'p>, SymbolicState, bool) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        while let Some((pattern, operand)) = unmatched.pop() {
            let test = match pattern {
                Pattern::Any | Pattern::Bind(_) => continue,
                Pattern::Constant(value) => self.equals_constant(&mut state, &operand, *value, location),
                Pattern::OwnId => {
                    let instance = i128::from(self.group.members[receiver].instance);
                    self.equals_constant(&mut state, &operand, instance, location)
                }
                Pattern::Bytes(bytes) => self.equals_bytes(&mut state, &operand, bytes, location),
                Pattern::Equal(expected) => {
                    let expected = self.symbolic_operand(&state, receiver, expected);
                    self.equals_operand(&mut state, &operand, &expected, location)
                }
                Pattern::Tag(tag, part) => {
                    let (place, ty) = self.content_place(&mut state, &operand, location);
                    let test = self.has_tag(&mut state, &place, *tag, location);
                    if let Some(part) = part {
                        let part_operand = self.component(place, ty, Projection::Payload(*tag));
                        unmatched.push((part, part_operand));
                    }
                    test
                }
                Pattern::Record(parts) => {
                    let (place, ty) = self.content_place(&mut state, &operand, location);
                    for (field, part) in parts.iter().enumerate().rev() {
                        let operand = self.component(place.clone(), ty, Projection::Field(field as u32));
                        unmatched.push((part, operand));
                    }
                    continue;
                }
                Pattern::Array(parts) => {
                    let (place, ty) = self.content_place(&mut state, &operand, location);
                    for (index, part) in parts.iter().enumerate().rev() {
                        let index =
                            self.materialize(&mut state, SymbolicValue::Constant(index as i128), TypeTable::I32);
                        let operand = self.component(place.clone(), ty, Projection::Element(index));
                        unmatched.push((part, operand));
                    }
                    continue;
                }
            };
            match test {
                SymbolicValue::Constant(0) => return then(self, state, false),
                SymbolicValue::Constant(_) => {}
                SymbolicValue::Residual(test) => {
                    return self.fork_on_residual(state, test, location, &mut |explorer, state, holds| {
                        if holds {
                            explorer.match_patterns(state, receiver, location, unmatched.clone(), then)
                        } else {
                            then(explorer, state, false)
                        }
                    });
                }
            }
        }
        then(self, state, true)
    }

    fn equals_bytes(
        &mut self,
        state: &mut SymbolicState,
        operand: &SymbolicOperand,
        bytes: &[u8],
        location: Location,
    ) -> SymbolicValue {
        let (place, ty) = self.content_place(state, operand, location);
        let slot = self.out.create_slot(ty);
        let literal = Place { base: Base::Slot(slot), path: Vec::new() };
        self.out.emit(state.block, None, Op::SetBytes(literal.clone(), bytes.to_vec()), location);
        self.emit_test(state, Op::Equal(Operand::Place(place), Operand::Place(literal)), location)
    }

    fn equals_operand(
        &mut self,
        state: &mut SymbolicState,
        operand: &SymbolicOperand,
        expected: &SymbolicOperand,
        location: Location,
    ) -> SymbolicValue {
        match (operand, expected) {
            (SymbolicOperand::Value(_, ty), SymbolicOperand::Value(expected, _))
                if !holds_boxed(self.group.types(), *ty) =>
            {
                let scalar = self.load_scalar(state, operand, location);
                self.compare(state, scalar, *expected, *ty, location)
            }
            (
                SymbolicOperand::Value(..) | SymbolicOperand::Place(..),
                SymbolicOperand::Value(..) | SymbolicOperand::Place(..),
            ) => {
                let a = self.residual_operand(state, operand);
                let b = self.residual_operand(state, expected);
                self.emit_test(state, Op::Equal(a, b), location)
            }
        }
    }

    fn equals_constant(
        &mut self,
        state: &mut SymbolicState,
        operand: &SymbolicOperand,
        value: i128,
        location: Location,
    ) -> SymbolicValue {
        let ty = operand.ty();
        let scalar = self.load_scalar(state, operand, location);
        self.compare(state, scalar, SymbolicValue::Constant(value), ty, location)
    }

    fn compare(
        &mut self,
        state: &mut SymbolicState,
        a: SymbolicValue,
        b: SymbolicValue,
        ty: TypeId,
        location: Location,
    ) -> SymbolicValue {
        let (fact_a, fact_b) = (state.product.fact(self.group, a, ty), state.product.fact(self.group, b, ty));
        let fact = crate::facts::binary(self.group.types(), TypeTable::BOOL, BinaryOp::Equal, ty, &fact_a, &fact_b);
        if let Some(truth) = fact.as_constant() {
            return SymbolicValue::Constant(truth);
        }
        let left = self.materialize(state, a, ty);
        let right = self.materialize(state, b, ty);
        let result = self.emit_test(state, Op::Binary(BinaryOp::Equal, left, right), location);
        if let SymbolicValue::Residual(value) = result {
            state.product.conditions.insert(value, Condition::Compare(BinaryOp::Equal, a, b, ty));
        }
        result
    }

    fn has_tag(&mut self, state: &mut SymbolicState, place: &Place, tag: u32, location: Location) -> SymbolicValue {
        let steps = tag_steps(place);
        if let Some(fact) = steps.as_ref().and_then(|steps| state.product.tags.get(steps)) {
            if !fact.admits(i128::from(tag)) {
                return SymbolicValue::Constant(0);
            }
            if fact.as_constant().is_some() {
                return SymbolicValue::Constant(1);
            }
        }
        let read = self.out.create_value(TypeTable::U32, None);
        self.out.emit(state.block, Some(read), Op::Tag(place.clone()), location);
        if let Some(steps) = steps {
            if let Some(fact) = state.product.tags.get(&steps) {
                state.product.facts.insert(read, fact.clone());
            }
            state.product.tag_reads.insert(read, steps);
        }
        self.compare(
            state,
            SymbolicValue::Residual(read),
            SymbolicValue::Constant(i128::from(tag)),
            TypeTable::U32,
            location,
        )
    }

    fn emit_test(&mut self, state: &mut SymbolicState, op: Op, location: Location) -> SymbolicValue {
        let value = self.out.create_value(TypeTable::BOOL, None);
        self.out.emit(state.block, Some(value), op, location);
        SymbolicValue::Residual(value)
    }

    /// The scalar or reference that an operand is; a place is loaded.
    fn load_scalar(
        &mut self,
        state: &mut SymbolicState,
        operand: &SymbolicOperand,
        location: Location,
    ) -> SymbolicValue {
        match operand {
            SymbolicOperand::Value(known, _) => *known,
            SymbolicOperand::Place(place, ty) => {
                let value = self.out.create_value(*ty, None);
                self.out.emit(state.block, Some(value), Op::Load(place.clone()), location);
                SymbolicValue::Residual(value)
            }
        }
    }

    /// The memory that a pattern destructures: that of the operand, or the content of the object that it refers to.
    fn content_place(
        &mut self,
        state: &mut SymbolicState,
        operand: &SymbolicOperand,
        location: Location,
    ) -> (Place, TypeId) {
        let ty = operand.ty();
        match self.group.types().get(ty) {
            Type::Boxed(pool) => {
                let reference = self.load_scalar(state, operand, location);
                let reference = self.materialize(state, reference, ty);
                let content = self.group.types().pool(*pool).content;
                (Place { base: Base::Object(reference), path: Vec::new() }, content)
            }
            _ => match operand {
                SymbolicOperand::Place(place, ty) => (place.clone(), *ty),
                SymbolicOperand::Value(..) => unreachable!("patterns destructure memory only"),
            },
        }
    }

    fn component(&self, mut place: Place, ty: TypeId, step: Projection) -> SymbolicOperand {
        let types = self.group.types();
        let part = match (step, types.get(ty)) {
            (Projection::Field(part) | Projection::Payload(part), Type::Record(id) | Type::Union(id)) => {
                types.aggregate(*id).parts[part as usize].1.expect("only parts that have a type are reached")
            }
            (Projection::Element(_) | Projection::Inside(_), Type::Array { length: _, element }) => *element,
            (step, other) => unreachable!("{step:?} does not lead into {other:?}"),
        };
        place.path.push(step);
        SymbolicOperand::Place(place, part)
    }

    /// The operand of the residue for a symbolic one.
    pub(super) fn residual_operand(&mut self, state: &mut SymbolicState, operand: &SymbolicOperand) -> Operand {
        match operand {
            SymbolicOperand::Value(known, ty) => Operand::Value(self.materialize(state, *known, *ty)),
            SymbolicOperand::Place(place, _) => Operand::Place(place.clone()),
        }
    }

    /// Binds the variables of patterns: slots are written, the values of parameters are returned in order.
    pub(super) fn bind_patterns(
        &mut self,
        state: &mut SymbolicState,
        receiver: usize,
        patterns: &'p [Pattern],
        message: &[(SymbolicOperand, Passed)],
        location: Location,
    ) -> Vec<(SymbolicValue, TypeId)> {
        let mut bindings = Vec::new();
        let mut unmatched: Vec<(&Pattern, SymbolicOperand)> =
            patterns.iter().zip(message).rev().map(|(pattern, (operand, _))| (pattern, operand.clone())).collect();
        while let Some((pattern, operand)) = unmatched.pop() {
            match pattern {
                Pattern::Any
                | Pattern::Constant(_)
                | Pattern::Bytes(_)
                | Pattern::OwnId
                | Pattern::Equal(_)
                | Pattern::Tag(_, None) => {}
                Pattern::Bind(Bind::Parameter(number)) => {
                    let ty = operand.ty();
                    let known = self.load_scalar(state, &operand, location);
                    bindings.push((*number, known, ty));
                }
                Pattern::Bind(Bind::Slot(slot)) => {
                    let SymbolicOperand::Place(from, _) = operand else {
                        unreachable!("slots hold what lies in memory")
                    };
                    let slot = SlotId(slot.0 + self.group.members[receiver].first_slot);
                    let op = Op::Copy { to: Place { base: Base::Slot(slot), path: Vec::new() }, from };
                    self.record_writes(state, &op);
                    self.out.emit(state.block, None, op, location);
                }
                Pattern::Tag(tag, Some(part)) => {
                    let (place, ty) = self.content_place(state, &operand, location);
                    let operand = self.component(place, ty, Projection::Payload(*tag));
                    unmatched.push((part, operand));
                }
                Pattern::Record(parts) => {
                    let (place, ty) = self.content_place(state, &operand, location);
                    for (field, part) in parts.iter().enumerate() {
                        let operand = self.component(place.clone(), ty, Projection::Field(field as u32));
                        unmatched.push((part, operand));
                    }
                }
                Pattern::Array(parts) => {
                    let (place, ty) = self.content_place(state, &operand, location);
                    for (index, part) in parts.iter().enumerate() {
                        let index = self.materialize(state, SymbolicValue::Constant(index as i128), TypeTable::I32);
                        let operand = self.component(place.clone(), ty, Projection::Element(index));
                        unmatched.push((part, operand));
                    }
                }
            }
        }
        bindings.sort_by_key(|(number, _, _)| *number);
        bindings.into_iter().map(|(_, value, ty)| (value, ty)).collect()
    }

    /// Binds the parameters of a block of a member.
    pub(super) fn set_parameters(
        &self,
        state: &mut SymbolicState,
        member: usize,
        block: BlockId,
        bindings: &[(SymbolicValue, TypeId)],
    ) {
        let parameters = &self.group.members[member].body.blocks[block.0 as usize].parameters;
        for (parameter, (value, _)) in parameters.iter().zip(bindings) {
            state.product.values.insert((member, *parameter), *value);
        }
    }
}
