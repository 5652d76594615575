//! Rules of SSA form: ids exist, each value is defined once, and every use is dominated by its definition. Knows
//! nothing of types.

use super::Verifier;
use crate::dominators::Dominators;
use crate::ir::{Base, BlockId, ConstantId, TypeId, Value};
use crate::visit::{Use, op_uses, terminator_uses, values_of_place};

impl Verifier<'_> {
    /// Every id exists, and each value has one definition if it is used.
    pub(super) fn ids(&mut self) {
        let body = self.body;
        let mut definitions = vec![0u32; body.values.len()];
        for (index, block) in body.blocks.iter().enumerate() {
            self.block = Some(BlockId(index as u32));
            let results = block.instructions.iter().filter_map(|instruction| instruction.result);
            for value in block.parameters.iter().copied().chain(results) {
                match definitions.get_mut(value.0 as usize) {
                    Some(count) => *count += 1,
                    None => self.error(format!("v{} does not exist", value.0)),
                }
            }
        }
        self.block = None;
        for (index, count) in definitions.iter().enumerate().filter(|(_, count)| **count > 1) {
            self.error(format!("v{index} is defined {count} times"));
        }
        for (index, block) in body.blocks.iter().enumerate() {
            self.block = Some(BlockId(index as u32));
            for instruction in &block.instructions {
                self.location = instruction.location;
                op_uses(&instruction.op, &mut |used| self.exists(&used, &definitions));
            }
            self.location = block.location;
            terminator_uses(&block.terminator, &mut |used| self.exists(&used, &definitions));
        }
        self.block = None;
        self.location = Default::default();
    }

    fn exists(&mut self, used: &Use<'_>, definitions: &[u32]) {
        let mut value_exists = |value: Value| {
            if definitions.get(value.0 as usize).copied().unwrap_or(0) == 0 {
                self.error(format!("v{} is used and never defined", value.0));
            }
        };
        let slot = match used {
            Use::Value(value) => return value_exists(*value),
            Use::Place(place) => {
                values_of_place(place).for_each(&mut value_exists);
                match place.base {
                    Base::Slot(slot) => slot.0,
                    Base::Object(_) => return,
                    Base::Constant(id, ty) => return self.constant_exists(id, ty),
                }
            }
            Use::Block(block) => {
                if block.0 as usize >= self.body.blocks.len() {
                    self.error(format!("block{} does not exist", block.0));
                }
                return;
            }
            Use::Slot(slot) => *slot,
        };
        if slot as usize >= self.body.slots.len() {
            self.error(format!("s{slot} does not exist"));
        }
    }

    fn constant_exists(&mut self, id: ConstantId, ty: TypeId) {
        if self.program.constants.get(id.0 as usize).is_none_or(|constant| constant.ty != ty) {
            self.error(format!("c{} of this type does not exist", id.0));
        }
    }

    /// Every use in a reachable block is dominated by its definition.
    pub(super) fn flow(&mut self) {
        let body = self.body;
        let dominators = Dominators::new(body);
        // Block and position of each definition; parameters precede instruction 0.
        let mut defined = vec![(0usize, 0usize); body.values.len()];
        for (index, block) in body.blocks.iter().enumerate() {
            block.parameters.iter().for_each(|value| defined[value.0 as usize] = (index, 0));
            for (position, instruction) in block.instructions.iter().enumerate() {
                if let Some(value) = instruction.result {
                    defined[value.0 as usize] = (index, position + 1);
                }
            }
        }
        for (index, block) in body.blocks.iter().enumerate().filter(|(index, _)| dominators.is_reachable(*index)) {
            self.block = Some(BlockId(index as u32));
            let check = |verifier: &mut Self, used: Use<'_>, position: usize| {
                let mut value_reaches = |value: Value| {
                    let (definition, at) = defined[value.0 as usize];
                    let reaches =
                        if definition == index { at <= position } else { dominators.dominates(definition, index) };
                    if !reaches {
                        verifier.error(format!("v{} is used where its definition does not reach", value.0));
                    }
                };
                match used {
                    Use::Value(value) => value_reaches(value),
                    Use::Place(place) => values_of_place(place).for_each(value_reaches),
                    Use::Block(_) | Use::Slot(_) => {}
                }
            };
            for (position, instruction) in block.instructions.iter().enumerate() {
                self.location = instruction.location;
                op_uses(&instruction.op, &mut |used| check(self, used, position));
            }
            self.location = block.location;
            let end = block.instructions.len();
            terminator_uses(&block.terminator, &mut |used| check(self, used, end));
        }
        self.block = None;
    }
}
