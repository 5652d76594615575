//! No run of a fast path is endless: where a loop of it begins, iterations are counted, and the path is left before one
//! too many ("Fast Paths in Concurrent Programs", section 4.4). One count serves all loops, so that it bounds each.

use crate::product::NodeEnd;
use quaject_esp_ir::graph::successors;
use quaject_esp_ir::ir::{
    BinaryOp, Block, BlockId, Body, Edge, Instruction, Op, Terminator, TypeId, TypeTable, Value, ValueData,
};

/// Where iterations are counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Cuts {
    /// Where loops begin.
    #[default]
    Loops,
    /// At every node, so that tests can have a path left anywhere.
    Everywhere,
}

/// Counts iterations in a path's code. The entry block's jump passes the bound on.
pub(super) fn bound(mut body: Body, ends: &[NodeEnd], bound: u32, cuts: Cuts) -> Body {
    let heads = match cuts {
        Cuts::Loops => loop_heads(&body, ends),
        Cuts::Everywhere => vec![true; body.blocks.len()],
    };
    for end in ends.iter().filter(|end| heads[end.block.0 as usize]) {
        let block = &mut body.blocks[end.block.0 as usize];
        let location = block.location;
        let rest = Block {
            parameters: Vec::new(),
            instructions: std::mem::take(&mut block.instructions),
            terminator: std::mem::replace(&mut block.terminator, Terminator::End),
            location,
        };
        // What was the parameter is what is left behind the test.
        let mut value = |ty: TypeId| {
            body.values.push(ValueData { ty, name: None });
            Value(body.values.len() as u32 - 1)
        };
        let (given, zero, one, is_over) =
            (value(TypeTable::U32), value(TypeTable::U32), value(TypeTable::U32), value(TypeTable::BOOL));
        let next = BlockId(body.blocks.len() as u32);
        let block = &mut body.blocks[end.block.0 as usize];
        let parameter = block.parameters.iter_mut().find(|parameter| **parameter == end.count);
        *parameter.expect("a node is given the count") = given;
        let op = |result: Value, op: Op| Instruction { result: Some(result), op, location };
        // Counted before the test, so that machines need one instruction for both.
        block.instructions = vec![
            op(one, Op::Constant(1)),
            op(end.count, Op::Binary(BinaryOp::Subtract, given, one)),
            op(zero, Op::Constant(0)),
            op(is_over, Op::Binary(BinaryOp::Equal, end.count, zero)),
        ];
        let to = |to: BlockId| Edge { to, arguments: Vec::new() };
        block.terminator = Terminator::Branch { condition: is_over, then: to(end.stub), otherwise: to(next) };
        body.blocks.push(rest);
    }
    // The count begins as a constant of the entry block.
    for instruction in &mut body.blocks[0].instructions {
        if let Op::Constant(value) = &mut instruction.op
            && ends.first().is_some_and(|end| Some(end.first_count) == instruction.result)
        {
            // One more, as the test comes after the count.
            *value = i128::from(bound.saturating_add(1));
        }
    }
    body
}

/// Blocks without which the code has no loops: of every set of blocks that reach each other, the one with most ways in
/// and out, then of what is left likewise.
fn loop_heads(body: &Body, ends: &[NodeEnd]) -> Vec<bool> {
    let count = body.blocks.len();
    let next: Vec<Vec<usize>> = body
        .blocks
        .iter()
        .map(|block| successors(&block.terminator).into_iter().map(|next| next.0 as usize).collect())
        .collect();
    let mut can_count = vec![false; count];
    ends.iter().for_each(|end| can_count[end.block.0 as usize] = true);
    let mut heads = vec![false; count];
    loop {
        let components = components(&next, &heads);
        let mut ways_in = vec![0usize; count];
        let mut ways_out = vec![0usize; count];
        for (block, targets) in next.iter().enumerate().filter(|(block, _)| !heads[*block]) {
            for to in targets.iter().filter(|to| !heads[**to] && components[**to] == components[block]) {
                ways_out[block] += 1;
                ways_in[*to] += 1;
            }
        }
        // The best block of each component that has a loop.
        let mut best: Vec<Option<usize>> = vec![None; count];
        let in_loop = |block: &usize| !heads[*block] && ways_in[*block] > 0 && ways_out[*block] > 0;
        for block in (0..count).filter(|block| can_count[*block]).filter(in_loop) {
            let known = &mut best[components[block]];
            let ways = |block: usize| ways_in[block] * ways_out[block];
            if known.is_none_or(|other| ways(other) < ways(block)) {
                *known = Some(block);
            }
        }
        let mut changed = false;
        for block in best.into_iter().flatten() {
            heads[block] = true;
            changed = true;
        }
        if !changed {
            return heads;
        }
    }
}

/// Strongly connected components without some blocks, by Kosaraju's algorithm: per block the component's first.
fn components(next: &[Vec<usize>], without: &[bool]) -> Vec<usize> {
    let count = next.len();
    let mut before: Vec<Vec<usize>> = vec![Vec::new(); count];
    for (block, targets) in next.iter().enumerate() {
        targets.iter().for_each(|to| before[*to].push(block));
    }
    let mut seen = without.to_vec();
    let mut order = Vec::new();
    for root in 0..count {
        if seen[root] {
            continue;
        }
        seen[root] = true;
        let mut stack = vec![(root, 0)];
        while let Some((block, edge)) = stack.pop() {
            match next[block].get(edge) {
                Some(to) => {
                    stack.push((block, edge + 1));
                    if !std::mem::replace(&mut seen[*to], true) {
                        stack.push((*to, 0));
                    }
                }
                None => order.push(block),
            }
        }
    }
    let mut component = vec![usize::MAX; count];
    for root in order.into_iter().rev() {
        let mut work = vec![root];
        while let Some(block) = work.pop() {
            if without[block] || component[block] != usize::MAX {
                continue;
            }
            component[block] = root;
            work.extend(&before[block]);
        }
    }
    component
}
