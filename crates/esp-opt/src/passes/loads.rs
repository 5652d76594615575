//! Loads that nobody needs and that cannot fail, as their index is always inside: what one process decodes and another
//! has encoded leaves such loads behind. Without the ranges of values they have to stay, for the sake of their fault.

use super::numbering::literal_bytes;
use crate::facts::Fact;
use crate::ranges::ranges;
use quaject_esp_ir::ir::{Base, Body, Instruction, Op, Place, Projection, Terminator, Type, TypeTable, Value};
use quaject_esp_ir::typing::place_type;
use quaject_esp_ir::visit::{op_values, terminator_values};
use rustc_hash::FxHashMap;

/// Removes them; whether there were any. `given` is what is so of the entry block's parameters.
pub(super) fn remove(body: &mut Body, types: &TypeTable, checked: bool, given: &[Option<Fact>]) -> bool {
    // Ranges follow edges; where a path is left that this body enters, values go along that are on none.
    if body.blocks.iter().any(|block| matches!(block.terminator, Terminator::Enter(_))) {
        return false;
    }
    let lengths = unused(body, types);
    if lengths.is_empty() {
        return false;
    }
    let known = ranges(body, types, checked, given);
    let is_inside = |instruction: &Instruction| {
        let Some((index, length)) = instruction.result.and_then(|result| lengths.get(&result)) else { return false };
        let fact = known[index.0 as usize].as_ref();
        fact.is_some_and(|fact| fact.implies(&Fact::between(0, length - 1)))
    };
    let mut any = false;
    for block in &mut body.blocks {
        let before = block.instructions.len();
        block.instructions.retain(|instruction| !is_inside(instruction));
        any |= block.instructions.len() != before;
    }
    any
}

/// The loads by an index of which nobody reads the result: what the index is, and what it has to be below.
fn unused(body: &Body, types: &TypeTable) -> FxHashMap<Value, (Value, i128)> {
    let literals = literal_bytes(body);
    let mut found = FxHashMap::default();
    for instruction in body.blocks.iter().flat_map(|block| &block.instructions) {
        let (Op::Load(place), Some(result)) = (&instruction.op, instruction.result) else { continue };
        let (Base::Slot(slot), [Projection::Element(index)]) = (place.base, &place.path[..]) else { continue };
        let whole = Place { base: Base::Slot(slot), path: Vec::new() };
        let length = match place_type(types, body, &whole).map(|ty| types.get(ty)) {
            Some(Type::Array { length, .. }) => i128::from(*length),
            _ => match literals.get(&result) {
                Some(literal) => literal.len() as i128,
                None => continue,
            },
        };
        if length > 0 {
            found.insert(result, (*index, length));
        }
    }
    let mut used = |value: &Value| {
        found.remove(value);
    };
    for block in &body.blocks {
        block.instructions.iter().for_each(|instruction| op_values(&instruction.op, &mut used));
        terminator_values(&block.terminator, &mut used);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::numbering::tests::tidied;

    /// A loop that looks at the bytes of a literal in turn, and does nothing with them.
    fn looks(mask: u32, literal: &str) -> String {
        tidied(&format!(
            "block1(v0: int):\n  v1: int = constant 0\n  jump block2(v1, v1)\nblock2(v2: int, v3: int):\n  \
             v4: bool = less v2, v0\n  branch v4, block3, block4\nblock3:\n  set_bytes s0, {literal:?}\n  \
             v5: u8 = load s0[v3]\n  v6: int = constant 1\n  v7: int = add v3, v6\n  v8: int = constant {mask}\n  \
             v9: int = and v7, v8\n  v10: int = add v2, v6\n  jump block2(v10, v9)\nblock4:\n  wait fair\n    \
             out site1 o ready(keep v2, keep v0) -> block5 @0:2:1\nblock5:\n  end\n"
        ))
    }

    #[test]
    fn a_load_that_is_always_inside_is_removed_with_its_index() {
        let text = looks(7, "12345678");
        assert!(!text.contains("load") && text.contains("block2(v2: int):"), "{text}");
    }

    #[test]
    fn a_load_that_may_be_outside_stays() {
        for text in [looks(15, "12345678"), looks(7, "1234567"), looks(7, "")] {
            assert!(text.contains("load s0["), "{text}");
        }
    }

    #[test]
    fn a_load_that_is_read_stays() {
        let text = tidied(
            "block1(v0: int):\n  v1: int = constant 3\n  v2: int = and v0, v1\n  set_bytes s0, \"1234\"\n  \
             v3: u8 = load s0[v2]\n  v4: int = convert v3\n  wait fair\n    \
             out site1 o ready(keep v4, keep v0) -> block2 @0:2:1\nblock2:\n  end\n",
        );
        assert!(text.contains("load s0["), "{text}");
    }
}
