//! Operations of a member in the residue: sites, slots and values are renumbered, regions are copied. Knows no
//! schedule.

use super::explorer::Explorer;
use super::state::SymbolicState;
use quaject_esp_ir::cfg::{Regions, edges_mut, successors};
use quaject_esp_ir::ir::{
    Base, Bind, BlockId, Op, Operand, Operation, Passed, Pattern, Payload, SiteId, SlotId, Terminator, Value,
};
use quaject_esp_ir::visit::{op_slots_mut, op_values_mut, pattern_operands_mut, terminator_values_mut};
use rustc_hash::FxHashMap;

impl<'g, 'p> Explorer<'g, 'p> {
    /// The operation of the residue for one of a member.
    pub(super) fn residual_operation(
        &mut self,
        state: &mut SymbolicState,
        member: usize,
        operation: &Operation,
    ) -> Operation {
        let first_site = self.group.members[member].first_site;
        match operation {
            Operation::In { site, channel, patterns, condition } => Operation::In {
                site: SiteId(site.0 + first_site),
                channel: *channel,
                patterns: patterns.iter().map(|pattern| self.residual_pattern(state, member, pattern)).collect(),
                condition: condition.map(|entry| self.copy_region(state, member, entry)),
            },
            Operation::Out { site, channel, payload } => Operation::Out {
                site: SiteId(site.0 + first_site),
                channel: *channel,
                payload: match payload {
                    Payload::Ready(passed) => Payload::Ready(self.residual_message(state, member, passed)),
                    Payload::Region(entry) => Payload::Region(self.copy_region(state, member, *entry)),
                },
            },
            Operation::After { amount, unit } => {
                Operation::After { amount: self.residual_value(state, member, *amount), unit: *unit }
            }
        }
    }

    fn residual_message(&mut self, state: &mut SymbolicState, member: usize, passed: &[Passed]) -> Vec<Passed> {
        let renumbered = passed.iter().map(|Passed { operand, transfer }| {
            let operand = self.symbolic_operand(state, member, operand);
            Passed { operand: self.residual_operand(state, &operand), transfer: *transfer }
        });
        renumbered.collect()
    }

    fn residual_pattern(&mut self, state: &mut SymbolicState, member: usize, pattern: &Pattern) -> Pattern {
        let mut renumbered = pattern.clone();
        pattern_operands_mut(&mut renumbered, &mut |operand| {
            let symbolic = self.symbolic_operand(state, member, operand);
            *operand = self.residual_operand(state, &symbolic);
        });
        let first_slot = self.group.members[member].first_slot;
        renumber_bindings(&mut renumbered, first_slot, i128::from(self.group.members[member].instance));
        renumbered
    }

    /// Copies a region into the residue; values of the member outside of it are those of the present state.
    fn copy_region(&mut self, state: &mut SymbolicState, member: usize, entry: BlockId) -> BlockId {
        let body = self.group.members[member].body;
        let first_slot = self.group.members[member].first_slot;
        let mut blocks: FxHashMap<BlockId, BlockId> = FxHashMap::default();
        let mut values: FxHashMap<Value, Value> = FxHashMap::default();
        let mut worklist = vec![entry];
        while let Some(block) = worklist.pop() {
            if blocks.contains_key(&block) {
                continue;
            }
            let copy = self.out.create_block(Vec::new());
            blocks.insert(block, copy);
            let source = &body.blocks[block.0 as usize];
            let results = source.instructions.iter().filter_map(|instruction| instruction.result);
            for value in source.parameters.iter().copied().chain(results) {
                let data = &body.values[value.0 as usize];
                values.insert(value, self.out.create_value(data.ty, data.name.clone()));
            }
            worklist.extend(successors(&source.terminator, Regions::Include));
        }
        let mut order: Vec<BlockId> = blocks.keys().copied().collect();
        order.sort_unstable();
        for block in order {
            let source = &body.blocks[block.0 as usize];
            let copy = blocks[&block];
            self.out.body.blocks[copy.0 as usize].parameters =
                source.parameters.iter().map(|parameter| values[parameter]).collect();
            let mut renumber = |explorer: &mut Self, value: &mut Value| {
                *value = match values.get(value) {
                    Some(copy) => *copy,
                    None => explorer.residual_value(state, member, *value),
                };
            };
            for instruction in &source.instructions {
                let mut op = instruction.op.clone();
                if let Op::OwnId = op {
                    op = Op::Constant(i128::from(self.group.members[member].instance));
                }
                op_values_mut(&mut op, &mut |value| renumber(self, value));
                op_slots_mut(&mut op, &mut |slot| *slot = SlotId(slot.0 + first_slot));
                let result = instruction.result.map(|result| values[&result]);
                self.out.emit(copy, result, op, instruction.location);
            }
            let mut terminator = source.terminator.clone();
            terminator_values_mut(&mut terminator, &mut |value| renumber(self, value));
            if let Terminator::Result(passed) = &mut terminator {
                for Passed { operand, .. } in passed {
                    renumber_slot(operand, first_slot);
                }
            }
            edges_mut(&mut terminator).into_iter().for_each(|edge| edge.to = blocks[&edge.to]);
            self.out.finish(copy, terminator, source.location);
        }
        blocks[&entry]
    }
}

fn renumber_slot(operand: &mut Operand, first_slot: u32) {
    if let Operand::Place(place) = operand
        && let Base::Slot(slot) = &mut place.base
    {
        slot.0 += first_slot;
    }
}

fn renumber_bindings(pattern: &mut Pattern, first_slot: u32, instance: i128) {
    match pattern {
        Pattern::Bind(Bind::Slot(slot)) => slot.0 += first_slot,
        Pattern::OwnId => *pattern = Pattern::Constant(instance),
        Pattern::Tag(_, Some(part)) => renumber_bindings(part, first_slot, instance),
        Pattern::Record(parts) | Pattern::Array(parts) => {
            parts.iter_mut().for_each(|part| renumber_bindings(part, first_slot, instance));
        }
        Pattern::Any
        | Pattern::Bind(Bind::Parameter(_))
        | Pattern::Constant(_)
        | Pattern::Bytes(_)
        | Pattern::Equal(_)
        | Pattern::Tag(_, None) => {}
    }
}
