//! Bounds-check elimination on `bytes`, whose length varies: an index is in range if a dominating comparison shows that
//! it is less than the length, and the length has not changed since. A forward data-flow analysis finds, per slot, the
//! value that is its length. Applies to bodies that no other process interleaves with: fast paths.

use crate::facts::Fact;
use quaject_esp_ir::cfg::{Regions, edges};
use quaject_esp_ir::dominators::Dominators;
use quaject_esp_ir::intervals::intervals;
use quaject_esp_ir::ir::{
    Base, BinaryOp, Body, Instruction, Op, Place, Projection, SlotId, Terminator, Type, TypeTable, Value,
};
use quaject_esp_ir::simplify_cfg::Replacements;
use quaject_esp_ir::visit::{op_places_mut, op_slots, op_values_mut, terminator_slots, terminator_values_mut};
use rustc_hash::FxHashMap;

/// Rounds after which the analysis gives up: nested loops take a few.
const MAX_ROUNDS: usize = 64;

/// Replaces repeated loads of a length by the first one; whether there were any.
pub(super) fn unify(body: &mut Body) -> bool {
    let dominators = Dominators::new(body);
    Lengths::new(body, &dominators).unify(body, &dominators)
}

/// Replaces repeated loads of a length by the first one, conditions that an earlier one decides by constants, and marks
/// indices that are in range; whether there were any. Per parameter of the entry block, `entry_facts` hold of it.
pub(super) fn eliminate_checks(
    body: &mut Body,
    types: &TypeTable,
    checked: bool,
    entry_facts: &[Option<Fact>],
) -> bool {
    let dominators = Dominators::new(body);
    let mut lengths = Lengths::new(body, &dominators);
    let mut any = lengths.unify(body, &dominators);
    let conditions = Conditions::new(body, &dominators);
    if conditions.any {
        let known = intervals(body, types, checked, entry_facts);
        let proof = CheckProof { conditions, known, types };
        any |= proof.fold_branches(body, &dominators);
        any |= proof.mark_inside(body, &mut lengths, &dominators);
    }
    any
}

/// What is known of the length of a slot: an element of the lattice of constant propagation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum KnownLength {
    /// Not reached yet (top).
    Unreached,
    /// It is this value.
    Is(Value),
    /// Any length (bottom).
    Unknown,
}

/// Which values are the lengths of slots, at block entries.
struct Lengths {
    slots: Vec<SlotId>,
    /// Per block and slot.
    at_entry: Vec<Vec<KnownLength>>,
}

impl Lengths {
    fn new(body: &Body, dominators: &Dominators) -> Lengths {
        let instructions = body.blocks.iter().flat_map(|block| &block.instructions);
        let mut slots: Vec<SlotId> = instructions.filter_map(|instruction| length(&instruction.op)).collect();
        slots.sort_unstable();
        slots.dedup();
        let mut lengths =
            Lengths { at_entry: vec![vec![KnownLength::Unreached; slots.len()]; body.blocks.len()], slots };
        if lengths.slots.is_empty() {
            return lengths;
        }
        lengths.at_entry[0].fill(KnownLength::Unknown);
        let mut incoming: Vec<Vec<(usize, Vec<Value>)>> = vec![Vec::new(); body.blocks.len()];
        for from in dominators.order() {
            let terminator = &body.blocks[*from].terminator;
            for edge in edges(terminator) {
                incoming[edge.to.0 as usize].push((*from, edge.arguments.clone()));
            }
            // Other processes may run while this one waits: behind a wait no length is known.
            let along_edges: Vec<usize> = edges(terminator).iter().map(|edge| edge.to.0 as usize).collect();
            for to in quaject_esp_ir::cfg::successors(terminator, Regions::Include) {
                if !along_edges.contains(&(to.0 as usize)) {
                    lengths.at_entry[to.0 as usize].fill(KnownLength::Unknown);
                }
            }
        }
        let mut at_exit = lengths.at_entry.clone();
        for _ in 0..MAX_ROUNDS {
            let mut changed = false;
            for index in dominators.order().iter().copied() {
                for slot in 0..lengths.slots.len() {
                    if lengths.at_entry[index][slot] != KnownLength::Unknown {
                        lengths.at_entry[index][slot] =
                            lengths.meet(&body.blocks[index].parameters, &incoming[index], &at_exit, slot);
                    }
                    let mut known = lengths.at_entry[index][slot];
                    let block = &body.blocks[index];
                    block.instructions.iter().for_each(|instruction| lengths.transfer(slot, instruction, &mut known));
                    let mut is_accessed = false;
                    terminator_slots(&block.terminator, &mut |other| {
                        is_accessed |= *other == lengths.slots[slot];
                    });
                    if is_accessed {
                        known = KnownLength::Unknown;
                    }
                    changed |= std::mem::replace(&mut at_exit[index][slot], known) != known;
                }
            }
            if !changed {
                return lengths;
            }
        }
        lengths.at_entry.iter_mut().flatten().for_each(|known| *known = KnownLength::Unknown);
        lengths
    }

    /// The meet at a join: the length that is known on all incoming edges, or the parameter that it is passed as on
    /// each.
    fn meet(
        &self,
        parameters: &[Value],
        incoming: &[(usize, Vec<Value>)],
        at_exit: &[Vec<KnownLength>],
        slot: usize,
    ) -> KnownLength {
        let mut known =
            incoming.iter().map(|(from, _)| at_exit[*from][slot]).filter(|known| *known != KnownLength::Unreached);
        let Some(first) = known.next() else { return KnownLength::Unreached };
        if known.all(|known| known == first) {
            return first;
        }
        let is_passed = |position: usize| {
            incoming.iter().all(|(from, arguments)| match at_exit[*from][slot] {
                KnownLength::Unreached => true,
                KnownLength::Is(value) => value == arguments[position],
                KnownLength::Unknown => false,
            })
        };
        (0..parameters.len())
            .find(|position| is_passed(*position))
            .map_or(KnownLength::Unknown, |at| KnownLength::Is(parameters[at]))
    }

    /// The transfer function of an instruction.
    fn transfer(&self, slot: usize, instruction: &Instruction, known: &mut KnownLength) {
        let wanted = self.slots[slot];
        if length(&instruction.op) == Some(wanted) {
            if let (KnownLength::Unknown | KnownLength::Unreached, Some(result)) = (*known, instruction.result) {
                *known = KnownLength::Is(result);
            }
            return;
        }
        if matches!(instruction.op, Op::Load(_) | Op::Length(_) | Op::Tag(_)) {
            return;
        }
        let mut is_accessed = false;
        op_slots(&instruction.op, &mut |other| is_accessed |= *other == wanted);
        if is_accessed {
            *known = KnownLength::Unknown;
        }
    }

    /// Replaces repeated loads of a length.
    fn unify(&mut self, body: &mut Body, dominators: &Dominators) -> bool {
        let mut replacements = Replacements::new(body.values.len());
        let mut any = false;
        for index in dominators.order() {
            let mut known = self.at_entry[*index].clone();
            for instruction in &body.blocks[*index].instructions {
                for (slot, known) in known.iter_mut().enumerate() {
                    if let (true, KnownLength::Is(value), Some(result)) =
                        (length(&instruction.op) == Some(self.slots[slot]), *known, instruction.result)
                        && body.values[value.0 as usize].ty == body.values[result.0 as usize].ty
                    {
                        replacements.replace(result, value);
                        any |= result != value;
                    }
                    self.transfer(slot, instruction, known);
                }
            }
        }
        if any {
            for block in &mut body.blocks {
                let mut visit = |value: &mut Value| *value = replacements.find(*value);
                block.instructions.iter_mut().for_each(|instruction| op_values_mut(&mut instruction.op, &mut visit));
                terminator_values_mut(&mut block.terminator, &mut visit);
            }
            let find = |known: &mut KnownLength| {
                if let KnownLength::Is(value) = known {
                    *value = replacements.find(*value);
                }
            };
            self.at_entry.iter_mut().flatten().for_each(find);
        }
        any
    }
}

/// The slot whose length an operation loads.
fn length(op: &Op) -> Option<SlotId> {
    match op {
        Op::Length(Place { base: Base::Slot(slot), path }) if path.is_empty() => Some(*slot),
        _ => None,
    }
}

/// The conditions that hold in each block.
struct Conditions {
    /// Per block: the condition that holds from its entry on, or its negation.
    of: Vec<Option<(Value, bool)>>,
    comparisons: FxHashMap<Value, (BinaryOp, Value, Value)>,
    converted: FxHashMap<Value, Value>,
    any: bool,
}

impl Conditions {
    fn new(body: &Body, dominators: &Dominators) -> Conditions {
        let mut edge_counts = vec![0usize; body.blocks.len()];
        for from in dominators.order() {
            for to in quaject_esp_ir::cfg::successors(&body.blocks[*from].terminator, Regions::Include) {
                edge_counts[to.0 as usize] += 1;
            }
        }
        let mut of = vec![None; body.blocks.len()];
        for from in dominators.order() {
            let Terminator::Branch { condition, then, otherwise } = &body.blocks[*from].terminator else { continue };
            for (edge, holds) in [(then, true), (otherwise, false)] {
                if edge_counts[edge.to.0 as usize] == 1 {
                    of[edge.to.0 as usize] = Some((*condition, holds));
                }
            }
        }
        let (mut comparisons, mut converted) = (FxHashMap::default(), FxHashMap::default());
        for instruction in body.blocks.iter().flat_map(|block| &block.instructions) {
            match (&instruction.op, instruction.result) {
                (Op::Binary(op, a, b), Some(result)) if op.is_comparison() => {
                    comparisons.insert(result, (*op, *a, *b));
                }
                (Op::Convert(a), Some(result)) => {
                    converted.insert(result, *a);
                }
                _ => {}
            }
        }
        let any = !comparisons.is_empty();
        Conditions { of, comparisons, converted, any }
    }

    /// The first result of `wanted` for the conditions that hold in a block, the nearest first.
    fn find<T>(&self, dominators: &Dominators, block: usize, wanted: impl Fn(Value, bool) -> Option<T>) -> Option<T> {
        let mut at = Some(block);
        while let Some(block) = at {
            if let Some(found) = self.of[block].and_then(|(condition, holds)| wanted(condition, holds)) {
                return Some(found);
            }
            at = dominators.immediate(block);
        }
        None
    }

    /// Whether the conditions that hold in a block imply that the first value is less than the second.
    fn is_less(&self, dominators: &Dominators, block: usize, a: Value, b: Value) -> bool {
        let implies_less = |condition: Value, holds: bool| {
            let (op, p, q) = *self.comparisons.get(&condition)?;
            let is_implied = match if holds { Some(op) } else { op.inverted() } {
                Some(BinaryOp::Less) => (p, q) == (a, b),
                Some(BinaryOp::Greater) => (q, p) == (a, b),
                _ => false,
            };
            is_implied.then_some(())
        };
        self.find(dominators, block, implies_less).is_some()
    }
}

/// The facts from which checks are proved redundant: conditions and intervals.
struct CheckProof<'t> {
    conditions: Conditions,
    known: Vec<Option<Fact>>,
    types: &'t TypeTable,
}

impl CheckProof<'_> {
    fn is_non_negative(&self, value: Value) -> bool {
        self.known[value.0 as usize].as_ref().is_some_and(|fact| fact.low >= 0)
    }

    /// The value of a condition in a block, if conditions that hold there imply it.
    fn implied_value(&self, body: &Body, dominators: &Dominators, block: usize, condition: Value) -> Option<bool> {
        let same = |other: Value, holds: bool| (other == condition).then_some(holds);
        if let Some(holds) = self.conditions.find(dominators, block, same) {
            return Some(holds);
        }
        // Numbers that are not negative compare alike, signed and unsigned.
        let (BinaryOp::Less, a, b) = self.conditions.comparisons.get(&condition)? else { return None };
        let (a, b) = (self.conditions.converted.get(a)?, self.conditions.converted.get(b)?);
        let keeps = |wide: &Value, from: &Value| self.bits(body, *wide) >= self.bits(body, *from);
        let (BinaryOp::Less, wide_a, wide_b) = self.conditions.comparisons[&condition] else { return None };
        (keeps(&wide_a, a)
            && keeps(&wide_b, b)
            && self.is_non_negative(*a)
            && self.conditions.is_less(dominators, block, *a, *b))
        .then_some(true)
    }

    fn bits(&self, body: &Body, value: Value) -> u32 {
        match self.types.get(body.values[value.0 as usize].ty) {
            Type::Int(kind) => kind.bits(),
            _ => u32::MAX,
        }
    }

    /// Folds branches on conditions whose value is implied.
    fn fold_branches(&self, body: &mut Body, dominators: &Dominators) -> bool {
        let mut any = false;
        for index in dominators.order() {
            let Terminator::Branch { condition, then, otherwise } = &body.blocks[*index].terminator else { continue };
            if let Some(holds) = self.implied_value(body, dominators, *index, *condition) {
                let edge = if holds { then.clone() } else { otherwise.clone() };
                body.blocks[*index].terminator = Terminator::Jump(edge);
                any = true;
            }
        }
        any
    }

    /// Marks indices that are in range.
    fn mark_inside(&self, body: &mut Body, lengths: &mut Lengths, dominators: &Dominators) -> bool {
        let mut any = false;
        for index in dominators.order() {
            let mut known = lengths.at_entry[*index].clone();
            for position in 0..body.blocks[*index].instructions.len() {
                let mut instruction = body.blocks[*index].instructions[position].clone();
                op_places_mut(&mut instruction.op, &mut |place| {
                    let (Base::Slot(slot), [Projection::Element(at)]) = (place.base, &place.path[..]) else { return };
                    let at = *at;
                    let Some(number) = lengths.slots.iter().position(|other| *other == slot) else { return };
                    let KnownLength::Is(length) = known[number] else { return };
                    if self.is_non_negative(at) && self.conditions.is_less(dominators, *index, at, length) {
                        place.path[0] = Projection::Inside(at);
                        any = true;
                    }
                });
                (0..lengths.slots.len()).for_each(|slot| lengths.transfer(slot, &instruction, &mut known[slot]));
                body.blocks[*index].instructions[position] = instruction;
            }
        }
        any
    }
}

#[cfg(test)]
mod tests {
    use super::super::clean_path;
    use super::super::gvn::tests::cleaned_by;
    use quaject_esp_ir::ir::MemoryMode;

    /// A loop up to the length of `s0` that checks its index again and sums the elements.
    fn sum_loop(first: i32, before_test: &str, condition: &str) -> String {
        let blocks = format!(
            "block1(v0: int):\n  v1: int = length s0\n  v2: int = constant {first}\n  v3: int = constant 0\n  \
             jump block2(v2, v3)\nblock2(v4: int, v5: int):\n  v6: bool = {condition}\n  \
             branch v6, block3, block6\nblock3:\n{before_test}  v7: int = length s0\n  v8: u32 = convert v4\n  \
             v9: u32 = convert v7\n  v10: bool = less v8, v9\n  branch v10, block4, block5\nblock4:\n  \
             v11: u8 = load s0[v4]\n  v12: int = convert v11\n  v13: int = add v5, v12\n  v14: int = constant 1\n  \
             v15: int = add v4, v14\n  jump block2(v15, v13)\nblock5:\n  jump block6\nblock6:\n  wait fair\n    \
             out site1 o ready(keep v5, keep v0) -> block7 @0:2:1\nblock7:\n  end\n"
        );
        cleaned_by(&blocks, &|body, types, checked| clean_path(body, types, checked, MemoryMode::Automatic, &[]))
    }

    #[test]
    fn an_index_below_the_length_needs_no_check() {
        let text = sum_loop(0, "", "less v4, v1");
        assert!(text.contains("load s0[inside ") && text.matches("length").count() == 1, "{text}");
        assert_eq!(text.matches("branch").count(), 1, "{text}");
    }

    #[test]
    fn an_index_that_may_be_out_of_range_is_checked() {
        let changed = "  set_bytes s0, \"12\"\n";
        for text in [
            sum_loop(-3, "", "less v4, v1"),
            sum_loop(0, changed, "less v4, v1"),
            sum_loop(0, "", "less v4, v0"),
            sum_loop(0, "", "less_equal v4, v1"),
        ] {
            assert_eq!(text.matches("branch").count(), 2, "{text}");
        }
    }
}
