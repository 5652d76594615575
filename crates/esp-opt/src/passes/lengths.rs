//! Eliminates bounds checks on `bytes` in a fast path: a dominating comparison of an index with the length shows that it is
//! in range if the length has not changed since. Applies to bodies that no other process interleaves with.

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
        let proof = Proof { conditions, known, types };
        any |= proof.decide(body, &dominators);
        any |= proof.mark(body, &mut lengths, &dominators);
    }
    any
}

/// The lattice element of a slot's length.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Held {
    /// Not reached yet (top).
    Unseen,
    /// It is this value.
    Is(Value),
    Unknown,
}

/// Which values are the lengths of slots, at block entries.
struct Lengths {
    slots: Vec<SlotId>,
    /// Per block and slot.
    begins: Vec<Vec<Held>>,
}

impl Lengths {
    fn new(body: &Body, dominators: &Dominators) -> Lengths {
        let asked = body.blocks.iter().flat_map(|block| &block.instructions).filter_map(|one| length(&one.op));
        let mut slots: Vec<SlotId> = asked.collect();
        slots.sort_unstable();
        slots.dedup();
        let mut lengths = Lengths { begins: vec![vec![Held::Unseen; slots.len()]; body.blocks.len()], slots };
        if lengths.slots.is_empty() {
            return lengths;
        }
        lengths.begins[0].fill(Held::Unknown);
        let mut before: Vec<Vec<(usize, Vec<Value>)>> = vec![Vec::new(); body.blocks.len()];
        for from in dominators.order() {
            let terminator = &body.blocks[*from].terminator;
            for edge in edges(terminator) {
                before[edge.to.0 as usize].push((*from, edge.arguments.clone()));
            }
            // Whoever comes out of a wait knows nothing.
            let plain: Vec<usize> = edges(terminator).iter().map(|edge| edge.to.0 as usize).collect();
            for to in quaject_esp_ir::cfg::successors(terminator, Regions::Include) {
                if !plain.contains(&(to.0 as usize)) {
                    lengths.begins[to.0 as usize].fill(Held::Unknown);
                }
            }
        }
        let mut ends = lengths.begins.clone();
        for _ in 0..MAX_ROUNDS {
            let mut changed = false;
            for index in dominators.order().iter().copied() {
                for slot in 0..lengths.slots.len() {
                    if lengths.begins[index][slot] != Held::Unknown {
                        lengths.begins[index][slot] =
                            lengths.met(&body.blocks[index].parameters, &before[index], &ends, slot);
                    }
                    let mut held = lengths.begins[index][slot];
                    let block = &body.blocks[index];
                    block.instructions.iter().for_each(|one| lengths.step(slot, one, &mut held));
                    let mut touches = false;
                    terminator_slots(&block.terminator, &mut |other| {
                        touches |= *other == lengths.slots[slot];
                    });
                    if touches {
                        held = Held::Unknown;
                    }
                    changed |= std::mem::replace(&mut ends[index][slot], held) != held;
                }
            }
            if !changed {
                return lengths;
            }
        }
        lengths.begins.iter_mut().flatten().for_each(|held| *held = Held::Unknown);
        lengths
    }

    /// The meet at a join: the value that all edges know or pass.
    fn met(&self, parameters: &[Value], before: &[(usize, Vec<Value>)], ends: &[Vec<Held>], slot: usize) -> Held {
        let mut known = before.iter().map(|(from, _)| ends[*from][slot]).filter(|held| *held != Held::Unseen);
        let Some(first) = known.next() else { return Held::Unseen };
        if known.all(|held| held == first) {
            return first;
        }
        let is_handed = |position: usize| {
            before.iter().all(|(from, arguments)| match ends[*from][slot] {
                Held::Unseen => true,
                Held::Is(value) => value == arguments[position],
                Held::Unknown => false,
            })
        };
        (0..parameters.len()).find(|position| is_handed(*position)).map_or(Held::Unknown, |at| Held::Is(parameters[at]))
    }

    /// The transfer function of an instruction.
    fn step(&self, slot: usize, instruction: &Instruction, held: &mut Held) {
        let wanted = self.slots[slot];
        if length(&instruction.op) == Some(wanted) {
            if let (Held::Unknown | Held::Unseen, Some(result)) = (*held, instruction.result) {
                *held = Held::Is(result);
            }
            return;
        }
        if matches!(instruction.op, Op::Load(_) | Op::Length(_) | Op::Tag(_)) {
            return;
        }
        let mut touches = false;
        op_slots(&instruction.op, &mut |other| touches |= *other == wanted);
        if touches {
            *held = Held::Unknown;
        }
    }

    /// Replaces repeated loads of a length.
    fn unify(&mut self, body: &mut Body, dominators: &Dominators) -> bool {
        let mut replacements = Replacements::new(body.values.len());
        let mut any = false;
        for index in dominators.order() {
            let mut held = self.begins[*index].clone();
            for instruction in &body.blocks[*index].instructions {
                for (slot, held) in held.iter_mut().enumerate() {
                    if let (true, Held::Is(value), Some(result)) =
                        (length(&instruction.op) == Some(self.slots[slot]), *held, instruction.result)
                        && body.values[value.0 as usize].ty == body.values[result.0 as usize].ty
                    {
                        replacements.replace(result, value);
                        any |= result != value;
                    }
                    self.step(slot, instruction, held);
                }
            }
        }
        if any {
            for block in &mut body.blocks {
                let mut visit = |value: &mut Value| *value = replacements.find(*value);
                block.instructions.iter_mut().for_each(|instruction| op_values_mut(&mut instruction.op, &mut visit));
                terminator_values_mut(&mut block.terminator, &mut visit);
            }
            let find = |held: &mut Held| {
                if let Held::Is(value) = held {
                    *value = replacements.find(*value);
                }
            };
            self.begins.iter_mut().flatten().for_each(find);
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
        let mut ways = vec![0usize; body.blocks.len()];
        for from in dominators.order() {
            for to in quaject_esp_ir::cfg::successors(&body.blocks[*from].terminator, Regions::Include) {
                ways[to.0 as usize] += 1;
            }
        }
        let mut of = vec![None; body.blocks.len()];
        for from in dominators.order() {
            let Terminator::Branch { condition, then, otherwise } = &body.blocks[*from].terminator else { continue };
            for (edge, holds) in [(then, true), (otherwise, false)] {
                if ways[edge.to.0 as usize] == 1 {
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

    /// Finds what holds in a block.
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

    /// Whether the first is known to be less than the second.
    fn is_less(&self, dominators: &Dominators, block: usize, a: Value, b: Value) -> bool {
        let says = |condition: Value, holds: bool| match (self.comparisons.get(&condition), holds) {
            (Some((BinaryOp::Less, p, q)), true) | (Some((BinaryOp::GreaterEqual, p, q)), false) => {
                (*p == a && *q == b).then_some(())
            }
            (Some((BinaryOp::Greater, p, q)), true) | (Some((BinaryOp::LessEqual, p, q)), false) => {
                (*p == b && *q == a).then_some(())
            }
            _ => None,
        };
        self.find(dominators, block, says).is_some()
    }
}

/// What follows from conditions and ranges.
struct Proof<'t> {
    conditions: Conditions,
    known: Vec<Option<Fact>>,
    types: &'t TypeTable,
}

impl Proof<'_> {
    fn is_positive(&self, value: Value) -> bool {
        self.known[value.0 as usize].as_ref().is_some_and(|fact| fact.low >= 0)
    }

    /// The value of a condition in a block, if an earlier one decides it.
    fn decided(&self, body: &Body, dominators: &Dominators, block: usize, condition: Value) -> Option<bool> {
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
            && self.is_positive(*a)
            && self.conditions.is_less(dominators, block, *a, *b))
        .then_some(true)
    }

    fn bits(&self, body: &Body, value: Value) -> u32 {
        match self.types.get(body.values[value.0 as usize].ty) {
            Type::Int(kind) => kind.bits(),
            _ => u32::MAX,
        }
    }

    /// Folds branches on decided conditions.
    fn decide(&self, body: &mut Body, dominators: &Dominators) -> bool {
        let mut any = false;
        for index in dominators.order() {
            let Terminator::Branch { condition, then, otherwise } = &body.blocks[*index].terminator else { continue };
            if let Some(holds) = self.decided(body, dominators, *index, *condition) {
                let edge = if holds { then.clone() } else { otherwise.clone() };
                body.blocks[*index].terminator = Terminator::Jump(edge);
                any = true;
            }
        }
        any
    }

    /// Marks indices that are in range.
    fn mark(&self, body: &mut Body, lengths: &mut Lengths, dominators: &Dominators) -> bool {
        let mut any = false;
        for index in dominators.order() {
            let mut held = lengths.begins[*index].clone();
            for position in 0..body.blocks[*index].instructions.len() {
                let mut instruction = body.blocks[*index].instructions[position].clone();
                op_places_mut(&mut instruction.op, &mut |place| {
                    let (Base::Slot(slot), [Projection::Element(at)]) = (place.base, &place.path[..]) else { return };
                    let at = *at;
                    let Some(number) = lengths.slots.iter().position(|other| *other == slot) else { return };
                    let Held::Is(length) = held[number] else { return };
                    if self.is_positive(at) && self.conditions.is_less(dominators, *index, at, length) {
                        place.path[0] = Projection::Inside(at);
                        any = true;
                    }
                });
                (0..lengths.slots.len()).for_each(|slot| lengths.step(slot, &instruction, &mut held[slot]));
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

    /// A loop up to the length of `s0` that checks its index again and sums the elements.
    fn adds_up(first: i32, before_test: &str, condition: &str) -> String {
        let blocks = format!(
            "block1(v0: int):\n  v1: int = length s0\n  v2: int = constant {first}\n  v3: int = constant 0\n  \
             jump block2(v2, v3)\nblock2(v4: int, v5: int):\n  v6: bool = {condition}\n  \
             branch v6, block3, block6\nblock3:\n{before_test}  v7: int = length s0\n  v8: u32 = convert v4\n  \
             v9: u32 = convert v7\n  v10: bool = less v8, v9\n  branch v10, block4, block5\nblock4:\n  \
             v11: u8 = load s0[v4]\n  v12: int = convert v11\n  v13: int = add v5, v12\n  v14: int = constant 1\n  \
             v15: int = add v4, v14\n  jump block2(v15, v13)\nblock5:\n  jump block6\nblock6:\n  wait fair\n    \
             out site1 o ready(keep v5, keep v0) -> block7 @0:2:1\nblock7:\n  end\n"
        );
        cleaned_by(&blocks, &|body, types, checked| clean_path(body, types, checked, &[]))
    }

    #[test]
    fn a_place_below_a_length_is_inside() {
        let text = adds_up(0, "", "less v4, v1");
        assert!(text.contains("load s0[inside ") && text.matches("length").count() == 1, "{text}");
        assert_eq!(text.matches("branch").count(), 1, "{text}");
    }

    #[test]
    fn a_place_that_may_be_outside_is_tested() {
        let changed = "  set_bytes s0, \"12\"\n";
        for text in [
            adds_up(-3, "", "less v4, v1"),
            adds_up(0, changed, "less v4, v1"),
            adds_up(0, "", "less v4, v0"),
            adds_up(0, "", "less_equal v4, v1"),
        ] {
            assert_eq!(text.matches("branch").count(), 2, "{text}");
        }
    }
}
