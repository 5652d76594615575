//! Dead load elimination: removes unused loads whose index is proved in range, and which therefore cannot fault. The
//! product of an encoder and a decoder leaves such loads. Without the ranges of values they remain for their fault.

use super::gvn::literal_bytes;
use crate::facts::Fact;
use quaject_esp_ir::intervals::intervals;
use quaject_esp_ir::ir::{Base, Body, Instruction, Op, Place, Projection, Terminator, Type, TypeTable, Value};
use quaject_esp_ir::typing::place_type;
use quaject_esp_ir::visit::{op_values, terminator_values};
use rustc_hash::FxHashMap;

/// Removes dead loads; whether there were any. Per parameter of the entry block, `entry_facts` hold of it.
pub(super) fn remove(body: &mut Body, types: &TypeTable, checked: bool, entry_facts: &[Option<Fact>]) -> bool {
    // The range analysis follows edges; the exit of a path that this body enters transfers values without one.
    if body.blocks.iter().any(|block| matches!(block.terminator, Terminator::Enter(_))) {
        return false;
    }
    let lengths = unused_loads(body, types);
    if lengths.is_empty() {
        return false;
    }
    let known = intervals(body, types, checked, entry_facts);
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

/// The unused loads of elements: the index, and the length it has to be below.
fn unused_loads(body: &Body, types: &TypeTable) -> FxHashMap<Value, (Value, i128)> {
    let literals = literal_bytes(body);
    let mut found = FxHashMap::default();
    for instruction in body.blocks.iter().flat_map(|block| &block.instructions) {
        let (Op::Load(place), Some(result)) = (&instruction.op, instruction.result) else { continue };
        let (Base::Slot(slot), [Projection::Element(index)]) = (place.base, &place.path[..]) else { continue };
        let array = Place { base: Base::Slot(slot), path: Vec::new() };
        let length = match place_type(types, body, &array).map(|ty| types.get(ty)) {
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
    use super::super::gvn::tests::cleaned;

    /// A loop that loads the bytes of a literal in turn and does not use them.
    fn unused_loads_of(mask: u32, literal: &str) -> String {
        cleaned(&format!(
            "block1(v0: int):\n  v1: int = constant 0\n  jump block2(v1, v1)\nblock2(v2: int, v3: int):\n  \
             v4: bool = less v2, v0\n  branch v4, block3, block4\nblock3:\n  set_bytes s0, {literal:?}\n  \
             v5: u8 = load s0[v3]\n  v6: int = constant 1\n  v7: int = add v3, v6\n  v8: int = constant {mask}\n  \
             v9: int = and v7, v8\n  v10: int = add v2, v6\n  jump block2(v10, v9)\nblock4:\n  wait fair\n    \
             out site1 o ready(keep v2, keep v0) -> block5 @0:2:1\nblock5:\n  end\n"
        ))
    }

    #[test]
    fn an_unused_load_in_range_is_removed_with_its_index() {
        let text = unused_loads_of(7, "12345678");
        assert!(!text.contains("load") && text.contains("block2(v2: int):"), "{text}");
    }

    #[test]
    fn an_unused_load_that_may_be_out_of_range_remains() {
        for text in [unused_loads_of(15, "12345678"), unused_loads_of(7, "1234567"), unused_loads_of(7, "")] {
            assert!(text.contains("load s0["), "{text}");
        }
    }

    #[test]
    fn a_used_load_remains() {
        let text = cleaned(
            "block1(v0: int):\n  v1: int = constant 3\n  v2: int = and v0, v1\n  set_bytes s0, \"1234\"\n  \
             v3: u8 = load s0[v2]\n  v4: int = convert v3\n  wait fair\n    \
             out site1 o ready(keep v4, keep v0) -> block2 @0:2:1\nblock2:\n  end\n",
        );
        assert!(text.contains("load s0["), "{text}");
    }
}
