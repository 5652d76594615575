//! Demanded bits (LLVM's analysis of that name): sinks masks from the definitions of values to the uses that demand
//! them. A loop-carried index into a ring whose length is a power of two is then masked where it is used, not in each
//! iteration. Not applicable where overflow is a fault.

use quaject_esp_ir::cfg::{Regions, edges, edges_mut};
use quaject_esp_ir::ir::{BinaryOp, Body, Instruction, Op, Terminator, Type, TypeTable, Value, ValueData};
use quaject_esp_ir::visit::{op_values, own_values, terminator_values};
use rustc_hash::FxHashMap;

/// Rounds in which masks are sunk from one join of control flow to the next.
const MAX_ROUNDS: usize = 8;

/// Sinks masks towards their uses; whether there were any.
pub(super) fn sink_masks(body: &mut Body, types: &TypeTable) -> bool {
    let rounds = (0..MAX_ROUNDS).take_while(|_| sink_through_joins(body, types)).count();
    if rounds > 0 {
        bypass_masks(body, types);
    }
    rounds > 0
}

/// The results that are other values masked to their low bits: the value and the mask.
fn masked_values(body: &Body) -> FxHashMap<Value, (Value, i128)> {
    let mut constants: FxHashMap<Value, i128> = FxHashMap::default();
    let mut masked = FxHashMap::default();
    let all = || body.blocks.iter().flat_map(|block| &block.instructions);
    for instruction in all() {
        if let (Op::Constant(constant), Some(result)) = (&instruction.op, instruction.result) {
            constants.insert(result, *constant);
        }
    }
    for instruction in all() {
        let (Op::Binary(BinaryOp::BitAnd, a, b), Some(result)) = (&instruction.op, instruction.result) else {
            continue;
        };
        let mask = constants.get(b).map(|mask| (*a, *mask)).or(constants.get(a).map(|mask| (*b, *mask)));
        if let Some((of, mask)) = mask.filter(|(_, mask)| *mask > 0 && mask & (mask + 1) == 0) {
            masked.insert(result, (of, mask));
        }
    }
    masked
}

/// Where all arguments of a block parameter have the same mask, masks the parameter instead.
fn sink_through_joins(body: &mut Body, types: &TypeTable) -> bool {
    let masked = masked_values(body);
    let mut arriving: FxHashMap<Value, Vec<Value>> = FxHashMap::default();
    let mut has_other_source: Vec<bool> = vec![false; body.values.len()];
    for block in &body.blocks {
        let by_edges =
            matches!(block.terminator, Terminator::Jump(_) | Terminator::Branch { .. } | Terminator::Switch { .. });
        for edge in edges(&block.terminator) {
            for (parameter, argument) in body.blocks[edge.to.0 as usize].parameters.iter().zip(&edge.arguments) {
                arriving.entry(*parameter).or_default().push(*argument);
                has_other_source[parameter.0 as usize] |= !by_edges;
            }
        }
    }
    let mask_of = |parameter: &Value| -> Option<i128> {
        let arguments = arriving.get(parameter).filter(|arguments| arguments.len() > 1)?;
        let mut masks = arguments.iter().filter(|argument| *argument != parameter).map(|argument| masked.get(argument));
        let (_, first) = masks.next()??;
        masks.all(|mask| mask.is_some_and(|(_, mask)| mask == first)).then_some(*first)
    };
    let mut any = false;
    let mut masked_parameters: FxHashMap<Value, Value> = FxHashMap::default();
    for index in 1..body.blocks.len() {
        let location = body.blocks[index].location;
        for position in (0..body.blocks[index].parameters.len()).rev() {
            let parameter = body.blocks[index].parameters[position];
            let ty = body.values[parameter.0 as usize].ty;
            if has_other_source[parameter.0 as usize] || !matches!(types.get(ty), Type::Int(_)) {
                continue;
            }
            let Some(mask) = mask_of(&parameter).filter(|_| is_only_counted(body, index, parameter)) else { continue };
            body.values.extend([ValueData { ty, name: None }, ValueData { ty, name: None }]);
            let unmasked = Value(body.values.len() as u32 - 2);
            let bits = Value(body.values.len() as u32 - 1);
            let block = &mut body.blocks[index];
            block.parameters[position] = unmasked;
            let op = |result: Value, op: Op| Instruction { result: Some(result), op, location };
            let code = [op(bits, Op::Constant(mask)), op(parameter, Op::Binary(BinaryOp::BitAnd, unmasked, bits))];
            block.instructions.splice(0..0, code);
            masked_parameters.insert(unmasked, parameter);
            any = true;
        }
    }
    // The arguments are passed unmasked.
    for index in 0..body.blocks.len() {
        let mut terminator = std::mem::replace(&mut body.blocks[index].terminator, Terminator::End);
        for edge in edges_mut(&mut terminator) {
            let parameters = &body.blocks[edge.to.0 as usize].parameters;
            for (parameter, argument) in parameters.iter().zip(&mut edge.arguments) {
                if let (Some(masked_value), Some((of, _))) = (masked_parameters.get(parameter), masked.get(argument)) {
                    *argument = if argument == masked_value { *argument } else { *of };
                }
            }
        }
        body.blocks[index].terminator = terminator;
    }
    any
}

/// Whether the loops around a parameter's block only increment, decrement or mask it: then it is masked outside of
/// them.
fn is_only_counted(body: &Body, defining_block: usize, parameter: Value) -> bool {
    let mut predecessors: Vec<Vec<usize>> = vec![Vec::new(); body.blocks.len()];
    for (index, block) in body.blocks.iter().enumerate() {
        quaject_esp_ir::cfg::successors(&block.terminator, Regions::Include)
            .iter()
            .for_each(|to| predecessors[to.0 as usize].push(index));
    }
    let mut is_in_loop = vec![false; body.blocks.len()];
    let mut worklist = vec![defining_block];
    while let Some(block) = worklist.pop() {
        if !std::mem::replace(&mut is_in_loop[block], true) {
            worklist.extend(&predecessors[block]);
        }
    }
    let counts = |op: &Op| matches!(op, Op::Binary(BinaryOp::Add | BinaryOp::Subtract | BinaryOp::BitAnd, ..));
    // Values derived from it by such operations.
    let mut derived = vec![false; body.values.len()];
    derived[parameter.0 as usize] = true;
    loop {
        let mut changed = false;
        for (block, _) in body.blocks.iter().zip(&is_in_loop).filter(|(_, is_in_loop)| **is_in_loop) {
            for instruction in &block.instructions {
                let mut uses = false;
                op_values(&instruction.op, &mut |value| uses |= derived[value.0 as usize]);
                match instruction.result.filter(|_| uses) {
                    Some(result) if counts(&instruction.op) => {
                        changed |= !std::mem::replace(&mut derived[result.0 as usize], true);
                    }
                    Some(_) => return false,
                    None if uses => return false,
                    None => {}
                }
            }
            for edge in edges(&block.terminator) {
                for (to, argument) in body.blocks[edge.to.0 as usize].parameters.iter().zip(&edge.arguments) {
                    if derived[argument.0 as usize] {
                        changed |= !std::mem::replace(&mut derived[to.0 as usize], true);
                    }
                }
            }
        }
        if !changed {
            return true;
        }
    }
}

/// Lets a use that demands only bits below the mask take the unmasked value.
fn bypass_masks(body: &mut Body, types: &TypeTable) {
    let masked = masked_values(body);
    let demanded = demanded_bits(body, types, &masked);
    let unmasked = |value: &mut Value, bits: u128| {
        while let Some((of, _)) = masked.get(value).filter(|(_, mask)| bits & !(*mask as u128) == 0) {
            *value = *of;
        }
    };
    for index in 0..body.blocks.len() {
        for position in 0..body.blocks[index].instructions.len() {
            let result = body.blocks[index].instructions[position].result;
            let Some(result) = result.filter(|result| is_number(body, types, *result)) else { continue };
            let bits = demanded[result.0 as usize];
            match (&mut body.blocks[index].instructions[position].op, masked.get(&result)) {
                (Op::Binary(BinaryOp::BitAnd, a, b), Some((_, mask))) => {
                    [a, b].into_iter().for_each(|operand| unmasked(operand, bits & *mask as u128));
                }
                (Op::Binary(BinaryOp::Add | BinaryOp::Subtract, a, b), None) => {
                    [a, b].into_iter().for_each(|operand| unmasked(operand, up_to_highest(bits)));
                }
                _ => {}
            }
        }
        let mut terminator = std::mem::replace(&mut body.blocks[index].terminator, Terminator::End);
        if let Terminator::Jump(_) | Terminator::Branch { .. } | Terminator::Switch { .. } = &terminator {
            for edge in edges_mut(&mut terminator) {
                let parameters = &body.blocks[edge.to.0 as usize].parameters;
                for (parameter, argument) in parameters.iter().zip(&mut edge.arguments) {
                    unmasked(argument, demanded[parameter.0 as usize]);
                }
            }
        }
        body.blocks[index].terminator = terminator;
    }
}

fn is_number(body: &Body, types: &TypeTable, value: Value) -> bool {
    matches!(types.get(body.values[value.0 as usize].ty), Type::Int(_))
}

/// Per value: the demanded bits.
fn demanded_bits(body: &Body, types: &TypeTable, masked: &FxHashMap<Value, (Value, i128)>) -> Vec<u128> {
    let mut demanded = vec![0u128; body.values.len()];
    loop {
        let before = demanded.clone();
        let mut demand = |value: Value, bits: u128| demanded[value.0 as usize] |= bits;
        for block in &body.blocks {
            for instruction in &block.instructions {
                let of_result = instruction.result.map_or(u128::MAX, |result| before[result.0 as usize]);
                let is_number = instruction.result.is_some_and(|result| is_number(body, types, result));
                match (&instruction.op, instruction.result.and_then(|result| masked.get(&result))) {
                    (_, Some((of, mask))) => demand(*of, of_result & *mask as u128),
                    // The low bits of the result depend on the low bits of the operands only.
                    (Op::Binary(BinaryOp::Add | BinaryOp::Subtract, a, b), None) if is_number => {
                        let low = up_to_highest(of_result);
                        demand(*a, low);
                        demand(*b, low);
                    }
                    (op, None) => op_values(op, &mut |value| demand(*value, u128::MAX)),
                }
            }
            match &block.terminator {
                terminator @ (Terminator::Jump(_) | Terminator::Branch { .. } | Terminator::Switch { .. }) => {
                    for edge in edges(terminator) {
                        let parameters = &body.blocks[edge.to.0 as usize].parameters;
                        for (parameter, argument) in parameters.iter().zip(&edge.arguments) {
                            demand(*argument, before[parameter.0 as usize]);
                        }
                    }
                    own_values(terminator, &mut |value| demand(*value, u128::MAX));
                }
                other => terminator_values(other, &mut |value| demand(*value, u128::MAX)),
            }
        }
        if demanded == before {
            return demanded;
        }
    }
}

/// All bits up to the highest one set.
fn up_to_highest(bits: u128) -> u128 {
    match bits.leading_zeros() {
        128 => 0,
        zeros => u128::MAX >> zeros,
    }
}

#[cfg(test)]
mod tests {
    use super::super::clean_path;
    use super::super::gvn::tests::cleaned_by;
    use quaject_esp_ir::ir::MemoryMode;

    /// A loop with a number that is incremented modulo a power of two, masked on each of two edges.
    fn masked_counter(masks: [u32; 2], use_in_loop: &str, sends: &str, checked: bool) -> String {
        let blocks = format!(
            "block1(v0: int):\n  v1: int = constant 0\n  v2: int = constant 7\n  v3: int = constant 1\n  \
             v4: int = and v0, v2\n  jump block2(v1, v4)\nblock2(v5: int, v6: int):\n  v7: bool = less v5, v0\n  \
             branch v7, block3, block6\nblock3:\n{use_in_loop}  v8: int = add v5, v3\n  v9: int = add v6, v3\n  \
             v10: bool = less v8, v3\n  branch v10, block4, block5\nblock4:\n  v11: int = constant {}\n  \
             v12: int = and v9, v11\n  jump block2(v8, v12)\nblock5:\n  v13: int = constant {}\n  \
             v14: int = and v9, v13\n  jump block2(v8, v14)\nblock6:\n  wait fair\n    \
             out site1 o ready(keep {sends}, keep v0) -> block7 @0:2:1\nblock7:\n  end\n",
            masks[0], masks[1]
        );
        cleaned_by(&blocks, &|body, types, _| clean_path(body, types, checked, MemoryMode::Automatic, &[]))
    }

    #[test]
    fn a_value_that_is_only_counted_is_masked_once() {
        let text = masked_counter([7, 7], "", "v6", false);
        assert_eq!(text.matches("= and").count(), 1, "{text}");
    }

    #[test]
    fn a_value_that_is_used_in_the_loop_stays_masked() {
        let use_in_loop =
            "  set_bytes s0, \"12345678\"\n  v15: u8 = load s0[v6]\n  v16: int = convert v15\n  store s1[v0], v15\n";
        for text in [
            masked_counter([7, 3], "", "v6", false),
            masked_counter([7, 5], "", "v6", false),
            masked_counter([7, 7], "", "v6", true),
            masked_counter([7, 7], use_in_loop, "v6", false),
        ] {
            assert!(text.matches("= and").count() > 1, "{text}");
        }
    }
}
