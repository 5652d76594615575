//! Value numbering of bodies, checked on their text after clean-up: congruent values are unified, others are not.

use super::super::clean;
use quaject_esp_ir::ir::{Body, MemoryMode, TypeTable};
use quaject_esp_ir::read::read;
use quaject_esp_ir::text::print;
use quaject_esp_ir::verify::verify;

/// The text, from `block1` on, of a process after clean-up: it receives `v0` and executes these blocks.
pub(in crate::passes) fn cleaned(blocks: &str) -> String {
    cleaned_by(blocks, &|body, types, checked| clean(body, types, checked, MemoryMode::Automatic))
}

/// As [`cleaned`], with another clean-up.
pub(in crate::passes) fn cleaned_by(blocks: &str, clean: &dyn Fn(Body, &TypeTable, bool) -> Body) -> String {
    let text = format!(
        "esp-ir 1\nfile \"p.esp\"\nchannel i(int) from_environment\nchannel o(int, int) to_environment\nprocess p {{\n  \
         site0 in i @0:1:1\n  site1 out o @0:2:1\n  slot s0 key: bytes[<=8]\n  slot s1 more: bytes[<=8]\nblock0:\n  \
         wait fair\n    in site0 i(p0) -> block1 @0:1:1\n{blocks}}}\n"
    );
    let mut program = read(&text).unwrap_or_else(|error| panic!("{error:?}\n{text}"));
    let errors = verify(&program);
    assert!(errors.is_empty(), "{:?}\n{text}", errors.iter().map(|error| error.text(&program)).collect::<Vec<_>>());
    let process = program.processes.last_mut().expect("there is one");
    process.body = clean(std::mem::take(&mut process.body), &program.types, false);
    let errors = verify(&program);
    let text = print(&program);
    assert!(errors.is_empty(), "{:?}\n{text}", errors.iter().map(|error| error.text(&program)).collect::<Vec<_>>());
    text[text.find("block1(").expect("it receives")..].to_string()
}

/// A loop with two loop-carried numbers.
fn two_counters(starts: &str, steps: &str) -> String {
    cleaned(&format!(
        "block1(v0: int):\n  v1: int = constant 0\n  v2: int = constant 1\n  jump block2({starts})\n\
         block2(v3: int, v4: int):\n  v5: bool = less v3, v0\n  branch v5, block3, block4\n\
         block3:\n  v6: int = add v3, v2\n  v7: int = add v4, v2\n  v8: int = add v4, v0\n  jump block2({steps})\n\
         block4:\n  wait fair\n    out site1 o ready(keep v3, keep v4) -> block5 @0:2:1\nblock5:\n  end\n"
    ))
}

#[test]
fn parallel_loop_counters_are_unified() {
    assert!(two_counters("v1, v1", "v6, v7").contains("block2(v3: int):"));
}

#[test]
fn loop_counters_with_different_starts_or_steps_are_not_unified() {
    for (starts, steps) in [("v1, v2", "v6, v7"), ("v1, v1", "v6, v8"), ("v1, v2", "v7, v6"), ("v1, v1", "v7, v8")] {
        let text = two_counters(starts, steps);
        assert!(text.contains("block2(v3: int, v4: int):"), "{starts}, {steps}: {text}");
    }
}

/// `v0` combined with a byte of `s0` on two edges, and again with the same byte of `s1` at their join.
fn combined_twice(second: &str, at_join: &str) -> String {
    let set = |slot: &str| format!("  set_bytes {slot}, \"key\"\n");
    let (first_literal, second_literal) = (set("s0"), set("s1"));
    cleaned(&format!(
        "block1(v0: int):\n  v1: int = constant 1\n  v2: bool = less v1, v0\n{first_literal}  v3: u8 = load s0[v1]\n  \
         v4: int = convert v3\n  branch v2, block2, block3\nblock2:\n  v5: int = xor v0, v4\n  jump block4(v5)\n\
         block3:\n  v6: int = constant 255\n  v7: int = {second} v6, v4\n  jump block4(v7)\n\
         block4(v8: int):\n{second_literal}  v9: u8 = load s1[v1]\n  v10: int = convert v9\n  v11: int = {at_join} v8, v10\n  \
         wait fair\n    out site1 o ready(keep v11, keep v0) -> block5 @0:2:1\nblock5:\n  end\n"
    ))
}

#[test]
fn operations_cancelled_on_all_edges_are_removed() {
    let text = combined_twice("xor", "xor");
    assert!(!text.contains("xor"), "{text}");
    assert!(text.contains("constant 255"), "{text}");
}

#[test]
fn operations_cancelled_on_one_edge_remain() {
    for (second, at_join) in [("or", "xor"), ("xor", "add"), ("add", "xor")] {
        let text = combined_twice(second, at_join);
        assert!(text.contains(&format!("{at_join} v8")) || text.contains("= xor"), "{second}, {at_join}: {text}");
    }
}

/// As [`combined_twice`], with another branch between the join and the cancelling operation.
fn behind_a_branch(second: &str) -> String {
    cleaned(&format!(
        "block1(v0: int):\n  v1: int = constant 1\n  v2: bool = less v1, v0\n  set_bytes s0, \"key\"\n  \
         v3: u8 = load s0[v1]\n  v4: int = convert v3\n  branch v2, block2, block3\nblock2:\n  \
         v5: int = xor v0, v4\n  jump block4(v5)\nblock3:\n  v6: int = constant 255\n  \
         v7: int = {second} v6, v4\n  jump block4(v7)\nblock4(v8: int):\n  v9: int = constant 192\n  \
         v10: bool = equal v8, v9\n  branch v10, block7, block5\nblock5:\n  set_bytes s1, \"key\"\n  v11: u8 = load s1[v1]\n  \
         v12: int = convert v11\n  v13: int = xor v8, v12\n  wait fair\n    \
         out site1 o ready(keep v13, keep v0) -> block6 @0:2:1\nblock6:\n  end\nblock7:\n  end\n"
    ))
}

#[test]
fn operations_cancelled_on_all_edges_are_removed_behind_a_branch() {
    let text = behind_a_branch("xor");
    // The comparison uses the result that the later operation cancels: it remains for that.
    assert!(text.contains("constant 255") && text.matches("xor").count() == 2, "{text}");
    assert!(text.contains("jump block3(v5, v0)"), "{text}");
}

#[test]
fn operations_cancelled_on_one_edge_remain_behind_a_branch() {
    let text = behind_a_branch("or");
    assert!(text.contains("= xor v6"), "{text}");
}

/// A byte of one iteration is not that of the iteration before.
#[test]
fn operations_of_another_iteration_are_not_cancelled() {
    let text = cleaned(
        "block1(v0: int):\n  v1: int = constant 0\n  v2: int = constant 1\n  jump block2(v1, v0)\n\
         block2(v3: int, v4: int):\n  set_bytes s0, \"key\"\n  v5: u8 = load s0[v3]\n  v6: int = convert v5\n  \
         v7: int = xor v4, v6\n  v8: int = add v3, v2\n  v9: bool = less v8, v0\n  branch v9, block3, block4\n\
         block3:\n  v10: int = xor v7, v8\n  jump block2(v8, v10)\n\
         block4:\n  wait fair\n    out site1 o ready(keep v7, keep v8) -> block5 @0:2:1\nblock5:\n  end\n",
    );
    assert_eq!(text.matches("xor").count(), 2, "{text}");
}

/// A value that would have to be kept in memory during a wait is computed again.
#[test]
fn values_are_not_unified_across_a_wait() {
    let text = cleaned(
        "block1(v0: int):\n  v1: int = add v0, v0\n  v2: int = add v0, v0\n  wait fair\n    \
         out site1 o ready(keep v1, keep v2) -> block2 @0:2:1\n\
         block2:\n  v3: int = add v0, v0\n  wait fair\n    out site1 o ready(keep v3, keep v0) -> block3 @0:2:1\n\
         block3:\n  end\n",
    );
    assert_eq!(text.matches("= add").count(), 2, "{text}");
    assert!(text.contains("keep v1, keep v1"), "{text}");
}

/// A number is incremented on two edges, and again at their join.
fn counted(first: u32, second: u32, at_join: u32) -> String {
    cleaned(&format!(
        "block1(v0: int):\n  v1: int = constant {first}\n  v2: int = constant {second}\n  \
         v3: int = constant {at_join}\n  v4: int = constant 7\n  v5: bool = less v1, v0\n  branch v5, block2, block3\n\
         block2:\n  v6: int = add v0, v1\n  v7: int = and v6, v4\n  jump block4(v0, v7)\n\
         block3:\n  v8: int = or v0, v4\n  v9: int = add v8, v2\n  v10: int = and v9, v4\n  jump block4(v8, v10)\n\
         block4(v11: int, v12: int):\n  v13: int = add v11, v3\n  v14: int = and v13, v4\n  wait fair\n    \
         out site1 o ready(keep v12, keep v14) -> block5 @0:2:1\nblock5:\n  end\n"
    ))
}

#[test]
fn operations_computed_on_all_edges_are_not_recomputed() {
    let text = counted(1, 1, 1);
    assert_eq!(text.matches("= and").count(), 2, "{text}");
}

#[test]
fn operations_computed_on_one_edge_are_recomputed() {
    for (first, second, at_join) in [(1, 2, 1), (2, 1, 1), (1, 1, 2)] {
        let text = counted(first, second, at_join);
        assert_eq!(text.matches("= and").count(), 3, "{first}, {second}, {at_join}: {text}");
    }
}
