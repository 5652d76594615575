//! Numbers that go round a loop of which only some bits matter, as the place in a key of which the length is a power of
//! two: they are cut where somebody asks for them, not each time round. Where overflow is a fault they stay as they are.

use quaject_esp_ir::cfg::{Regions, edges, edges_mut};
use quaject_esp_ir::ir::{BinaryOp, Body, Instruction, Op, Terminator, Type, TypeTable, Value, ValueData};
use quaject_esp_ir::visit::{op_values, own_values, terminator_values};
use rustc_hash::FxHashMap;

/// How far what is cut is followed from one meeting to the next.
const MOST_ROUNDS: usize = 8;

/// Cuts later what can be cut later; whether there was any.
pub(super) fn sink(body: &mut Body, types: &TypeTable) -> bool {
    let rounds = (0..MOST_ROUNDS).take_while(|_| behind_meetings(body, types)).count();
    if rounds > 0 {
        pass_by(body, types);
    }
    rounds > 0
}

/// The results that are other values cut to their low bits: of which, and the bits.
fn masked(body: &Body) -> FxHashMap<Value, (Value, i128)> {
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

/// Where only values meet that have just been cut alike, what meets is cut.
fn behind_meetings(body: &mut Body, types: &TypeTable) -> bool {
    let masked = masked(body);
    let mut arriving: FxHashMap<Value, Vec<Value>> = FxHashMap::default();
    let mut is_set_otherwise: Vec<bool> = vec![false; body.values.len()];
    for block in &body.blocks {
        let by_edges =
            matches!(block.terminator, Terminator::Jump(_) | Terminator::Branch { .. } | Terminator::Switch { .. });
        for edge in edges(&block.terminator) {
            for (parameter, argument) in body.blocks[edge.to.0 as usize].parameters.iter().zip(&edge.arguments) {
                arriving.entry(*parameter).or_default().push(*argument);
                is_set_otherwise[parameter.0 as usize] |= !by_edges;
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
    let mut whole: FxHashMap<Value, Value> = FxHashMap::default();
    for index in 1..body.blocks.len() {
        let location = body.blocks[index].location;
        for position in (0..body.blocks[index].parameters.len()).rev() {
            let parameter = body.blocks[index].parameters[position];
            let ty = body.values[parameter.0 as usize].ty;
            if is_set_otherwise[parameter.0 as usize] || !matches!(types.get(ty), Type::Int(_)) {
                continue;
            }
            let Some(mask) = mask_of(&parameter).filter(|_| is_only_counted(body, index, parameter)) else { continue };
            body.values.extend([ValueData { ty, name: None }, ValueData { ty, name: None }]);
            let uncut = Value(body.values.len() as u32 - 2);
            let bits = Value(body.values.len() as u32 - 1);
            let block = &mut body.blocks[index];
            block.parameters[position] = uncut;
            let op = |result: Value, op: Op| Instruction { result: Some(result), op, location };
            let code = [op(bits, Op::Constant(mask)), op(parameter, Op::Binary(BinaryOp::BitAnd, uncut, bits))];
            block.instructions.splice(0..0, code);
            whole.insert(uncut, parameter);
            any = true;
        }
    }
    // What arrives there is not cut before.
    for index in 0..body.blocks.len() {
        let mut terminator = std::mem::replace(&mut body.blocks[index].terminator, Terminator::End);
        for edge in edges_mut(&mut terminator) {
            let parameters = &body.blocks[edge.to.0 as usize].parameters;
            for (parameter, argument) in parameters.iter().zip(&mut edge.arguments) {
                if let (Some(cut), Some((of, _))) = (whole.get(parameter), masked.get(argument)) {
                    *argument = if argument == cut { *argument } else { *of };
                }
            }
        }
        body.blocks[index].terminator = terminator;
    }
    any
}

/// Whether in the loops of a parameter's block it is only added to, and not looked at: then it is cut on the ways out.
fn is_only_counted(body: &Body, home: usize, parameter: Value) -> bool {
    let mut before: Vec<Vec<usize>> = vec![Vec::new(); body.blocks.len()];
    for (index, block) in body.blocks.iter().enumerate() {
        quaject_esp_ir::cfg::successors(&block.terminator, Regions::Include)
            .iter()
            .for_each(|to| before[to.0 as usize].push(index));
    }
    let mut comes_back = vec![false; body.blocks.len()];
    let mut work = vec![home];
    while let Some(block) = work.pop() {
        if !std::mem::replace(&mut comes_back[block], true) {
            work.extend(&before[block]);
        }
    }
    let counts = |op: &Op| matches!(op, Op::Binary(BinaryOp::Add | BinaryOp::Subtract | BinaryOp::BitAnd, ..));
    // What is made of it by counting, too.
    let mut made = vec![false; body.values.len()];
    made[parameter.0 as usize] = true;
    loop {
        let mut changed = false;
        for (block, _) in body.blocks.iter().zip(&comes_back).filter(|(_, comes_back)| **comes_back) {
            for instruction in &block.instructions {
                let mut uses = false;
                op_values(&instruction.op, &mut |value| uses |= made[value.0 as usize]);
                match instruction.result.filter(|_| uses) {
                    Some(result) if counts(&instruction.op) => {
                        changed |= !std::mem::replace(&mut made[result.0 as usize], true);
                    }
                    Some(_) => return false,
                    None if uses => return false,
                    None => {}
                }
            }
            for edge in edges(&block.terminator) {
                for (to, argument) in body.blocks[edge.to.0 as usize].parameters.iter().zip(&edge.arguments) {
                    if made[argument.0 as usize] {
                        changed |= !std::mem::replace(&mut made[to.0 as usize], true);
                    }
                }
            }
        }
        if !changed {
            return true;
        }
    }
}

/// Who only looks at bits that a cut leaves as they are takes what has not been cut.
fn pass_by(body: &mut Body, types: &TypeTable) {
    let masked = masked(body);
    let needed = needed(body, types, &masked);
    let uncut = |value: &mut Value, bits: u128| {
        while let Some((of, _)) = masked.get(value).filter(|(_, mask)| bits & !(*mask as u128) == 0) {
            *value = *of;
        }
    };
    for index in 0..body.blocks.len() {
        for position in 0..body.blocks[index].instructions.len() {
            let result = body.blocks[index].instructions[position].result;
            let Some(result) = result.filter(|result| is_number(body, types, *result)) else { continue };
            let bits = needed[result.0 as usize];
            match (&mut body.blocks[index].instructions[position].op, masked.get(&result)) {
                (Op::Binary(BinaryOp::BitAnd, a, b), Some((_, mask))) => {
                    [a, b].into_iter().for_each(|operand| uncut(operand, bits & *mask as u128));
                }
                (Op::Binary(BinaryOp::Add | BinaryOp::Subtract, a, b), None) => {
                    [a, b].into_iter().for_each(|operand| uncut(operand, below(bits)));
                }
                _ => {}
            }
        }
        let mut terminator = std::mem::replace(&mut body.blocks[index].terminator, Terminator::End);
        if let Terminator::Jump(_) | Terminator::Branch { .. } | Terminator::Switch { .. } = &terminator {
            for edge in edges_mut(&mut terminator) {
                let parameters = &body.blocks[edge.to.0 as usize].parameters;
                for (parameter, argument) in parameters.iter().zip(&mut edge.arguments) {
                    uncut(argument, needed[parameter.0 as usize]);
                }
            }
        }
        body.blocks[index].terminator = terminator;
    }
}

fn is_number(body: &Body, types: &TypeTable, value: Value) -> bool {
    matches!(types.get(body.values[value.0 as usize].ty), Type::Int(_))
}

/// Per value: the bits that somebody looks at.
fn needed(body: &Body, types: &TypeTable, masked: &FxHashMap<Value, (Value, i128)>) -> Vec<u128> {
    let mut needed = vec![0u128; body.values.len()];
    loop {
        let before = needed.clone();
        let mut need = |value: Value, bits: u128| needed[value.0 as usize] |= bits;
        for block in &body.blocks {
            for instruction in &block.instructions {
                let of_result = instruction.result.map_or(u128::MAX, |result| before[result.0 as usize]);
                let is_number = instruction.result.is_some_and(|result| is_number(body, types, result));
                match (&instruction.op, instruction.result.and_then(|result| masked.get(&result))) {
                    (_, Some((of, mask))) => need(*of, of_result & *mask as u128),
                    // The low bits of the result are made of the low bits of the operands.
                    (Op::Binary(BinaryOp::Add | BinaryOp::Subtract, a, b), None) if is_number => {
                        let low = below(of_result);
                        need(*a, low);
                        need(*b, low);
                    }
                    (op, None) => op_values(op, &mut |value| need(*value, u128::MAX)),
                }
            }
            match &block.terminator {
                terminator @ (Terminator::Jump(_) | Terminator::Branch { .. } | Terminator::Switch { .. }) => {
                    for edge in edges(terminator) {
                        let parameters = &body.blocks[edge.to.0 as usize].parameters;
                        for (parameter, argument) in parameters.iter().zip(&edge.arguments) {
                            need(*argument, before[parameter.0 as usize]);
                        }
                    }
                    own_values(terminator, &mut |value| need(*value, u128::MAX));
                }
                other => terminator_values(other, &mut |value| need(*value, u128::MAX)),
            }
        }
        if needed == before {
            return needed;
        }
    }
}

/// All bits up to the highest one.
fn below(bits: u128) -> u128 {
    match bits.leading_zeros() {
        128 => 0,
        zeros => u128::MAX >> zeros,
    }
}

#[cfg(test)]
mod tests {
    use super::super::clean_path;
    use super::super::numbering::tests::tidied_by;

    /// A loop with a number that is advanced by one modulo a power of two, in one of two ways.
    fn advances(masks: [u32; 2], looks: &str, sends: &str, checked: bool) -> String {
        let blocks = format!(
            "block1(v0: int):\n  v1: int = constant 0\n  v2: int = constant 7\n  v3: int = constant 1\n  \
             v4: int = and v0, v2\n  jump block2(v1, v4)\nblock2(v5: int, v6: int):\n  v7: bool = less v5, v0\n  \
             branch v7, block3, block6\nblock3:\n{looks}  v8: int = add v5, v3\n  v9: int = add v6, v3\n  \
             v10: bool = less v8, v3\n  branch v10, block4, block5\nblock4:\n  v11: int = constant {}\n  \
             v12: int = and v9, v11\n  jump block2(v8, v12)\nblock5:\n  v13: int = constant {}\n  \
             v14: int = and v9, v13\n  jump block2(v8, v14)\nblock6:\n  wait fair\n    \
             out site1 o ready(keep {sends}, keep v0) -> block7 @0:2:1\nblock7:\n  end\n",
            masks[0], masks[1]
        );
        tidied_by(&blocks, &|body, types, _| clean_path(body, types, checked, &[]))
    }

    #[test]
    fn what_is_only_counted_is_cut_once() {
        let text = advances([7, 7], "", "v6", false);
        assert_eq!(text.matches("= and").count(), 1, "{text}");
    }

    #[test]
    fn what_is_looked_at_stays_cut() {
        let looks =
            "  set_bytes s0, \"12345678\"\n  v15: u8 = load s0[v6]\n  v16: int = convert v15\n  store s1[v0], v15\n";
        for text in [
            advances([7, 3], "", "v6", false),
            advances([7, 5], "", "v6", false),
            advances([7, 7], "", "v6", true),
            advances([7, 7], looks, "v6", false),
        ] {
            assert!(text.matches("= and").count() > 1, "{text}");
        }
    }
}
