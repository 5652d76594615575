//! What members' values are when a path begins is known to them, not to the compiler: that two of them count alike, as
//! those that encipher and decipher do, cannot be told from their code. So values that begin with the same constant in
//! their processes, and stay equal on the whole path if they are when it begins, are compared there, once; where they
//! differ the path is left again and its trigger goes on without. What follows from equal values is found by the passes.
//! A pair is worth trying if fewer different values meet where blocks of the path begin.

use crate::facts::Fact;
use crate::passes::{Number, clean_with, numbers_if};
use crate::product::NodeEnd;
use quaject_esp_ir::cfg::edges;
use quaject_esp_ir::ir::{
    BinaryOp, Block, BlockId, Body, Edge, Instruction, Op, Terminator, TypeId, TypeTable, Value, ValueData,
};
use quaject_esp_ir::visit::{op_values_mut, terminator_values_mut};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// How many pairs of values are tried.
const MOST_PAIRS: usize = 64;
/// Comparing is worth it if the path has this part fewer instructions.
const LEAST_GAIN: usize = 16;

/// Constants that a value begins with in its process.
pub(super) type Starts = BTreeSet<i128>;

/// The constants that arrive at each value of a process along edges.
pub(super) fn starts(body: &Body) -> FxHashMap<Value, Starts> {
    let mut constants: FxHashMap<Value, i128> = FxHashMap::default();
    for instruction in body.blocks.iter().flat_map(|block| &block.instructions) {
        if let (Some(result), Op::Constant(constant)) = (instruction.result, &instruction.op) {
            constants.insert(result, *constant);
        }
    }
    let mut starts: FxHashMap<Value, Starts> = FxHashMap::default();
    for block in &body.blocks {
        for edge in edges(&block.terminator) {
            for (parameter, argument) in body.blocks[edge.to.0 as usize].parameters.iter().zip(&edge.arguments) {
                if let Some(constant) = constants.get(argument) {
                    starts.entry(*parameter).or_default().insert(*constant);
                }
            }
        }
    }
    starts
}

/// The path with a comparison where it begins, if that is worth it, and where it is left when values differ. Of `body`,
/// as it was emitted, the entry block's parameters begin with `starts` in their processes, and are always `given`.
pub(super) fn compare(
    body: &Body,
    ends: &[NodeEnd],
    starts: &[Starts],
    types: &TypeTable,
    checked: bool,
    given: &[Option<Fact>],
) -> Option<(Body, usize)> {
    let Terminator::Jump(first) = &body.blocks[0].terminator else { return None };
    let end = ends.iter().position(|end| end.block == first.to)?;
    let plain = clean_with(body.clone(), types, checked, given);
    let leaders = alike(&plain, starts)?;
    let compared = with_comparison(body, &ends[end], &leaders);
    let size = |body: &Body| crate::limits::code_size(body);
    let tidied = clean_with(compared.clone(), types, checked, given);
    (size(&tidied) + size(&plain) / LEAST_GAIN <= size(&plain)).then_some((compared, end))
}

/// Per parameter of the entry block: the earlier one that it stays equal to, if they are equal there. None if there is
/// none.
fn alike(body: &Body, starts: &[Starts]) -> Option<Vec<usize>> {
    let parameters = &body.blocks[0].parameters;
    let ty = |position: usize| body.values[parameters[position].0 as usize].ty;
    let is_candidate = |(a, b): &(usize, usize)| !starts[*a].is_empty() && starts[*a] == starts[*b] && ty(*a) == ty(*b);
    let pairs = (0..parameters.len()).flat_map(|b| (0..b).map(move |a| (a, b)));
    let as_they_are = distinct(body, &FxHashMap::default())?;
    let mut leaders: Vec<usize> = (0..parameters.len()).collect();
    for (a, b) in pairs.filter(is_candidate).take(MOST_PAIRS) {
        let pair = [(parameters[b], parameters[a])].into_iter().collect();
        if leaders[b] == b && distinct(body, &pair)? < as_they_are {
            leaders[b] = leaders[a];
        }
    }
    leaders.iter().enumerate().any(|(position, leader)| position != *leader).then_some(leaders)
}

/// How many different values meet where blocks begin, if values are equal to those beside them.
fn distinct(body: &Body, alike: &FxHashMap<Value, Value>) -> Option<usize> {
    let numbers = numbers_if(body, alike)?;
    let parameters = body.blocks.iter().skip(1).flat_map(|block| &block.parameters);
    let own =
        parameters.map(|parameter| numbers[parameter.0 as usize]).filter(|number| !alike.contains_key(&Value(*number)));
    Some(own.collect::<BTreeSet<Number>>().len())
}

/// Puts the comparison behind the entry block; where values differ the path is left as its first node is.
fn with_comparison(body: &Body, end: &NodeEnd, leaders: &[usize]) -> Body {
    let mut body = body.clone();
    let parameters = body.blocks[0].parameters.clone();
    let location = body.blocks[end.block.0 as usize].location;
    let value = |body: &mut Body, ty: TypeId| {
        body.values.push(ValueData { ty, name: None });
        Value(body.values.len() as u32 - 1)
    };
    let pairs: Vec<(Value, Value)> = leaders
        .iter()
        .enumerate()
        .filter(|(position, leader)| position != *leader)
        .map(|(position, leader)| (parameters[position], parameters[*leader]))
        .collect();
    let first = std::mem::replace(&mut body.blocks[0].terminator, Terminator::End);
    let Terminator::Jump(Edge { to, arguments }) = &first else { unreachable!("it was looked at before") };
    // What is left of the first node, for the values that are handed to it.
    let mut stands: FxHashMap<Value, Value> =
        body.blocks[to.0 as usize].parameters.iter().copied().zip(arguments.iter().copied()).collect();
    let mut stub = body.blocks[end.stub.0 as usize].clone();
    for instruction in &mut stub.instructions {
        op_values_mut(&mut instruction.op, &mut |value| *value = *stands.get(value).unwrap_or(value));
        if let Some(result) = &mut instruction.result {
            let ty = body.values[result.0 as usize].ty;
            stands.insert(*result, value(&mut body, ty));
            *result = stands[result];
        }
    }
    terminator_values_mut(&mut stub.terminator, &mut |value| *value = *stands.get(value).unwrap_or(value));
    let leave = BlockId(body.blocks.len() as u32);
    body.blocks.push(stub);
    // From here on the one stands for the other.
    let equal: FxHashMap<Value, Value> = pairs.iter().copied().collect();
    let mut replace = |value: &mut Value| *value = *equal.get(value).unwrap_or(value);
    for block in &mut body.blocks[1..leave.0 as usize] {
        block.instructions.iter_mut().for_each(|instruction| op_values_mut(&mut instruction.op, &mut replace));
        terminator_values_mut(&mut block.terminator, &mut replace);
    }
    let mut rest = first;
    terminator_values_mut(&mut rest, &mut replace);
    let mut from = BlockId(0);
    for (a, b) in pairs {
        let next = BlockId(body.blocks.len() as u32);
        body.blocks.push(Block {
            parameters: Vec::new(),
            instructions: Vec::new(),
            terminator: Terminator::End,
            location,
        });
        let condition = value(&mut body, TypeTable::BOOL);
        let op = Op::Binary(BinaryOp::Equal, a, b);
        let edge = |to: BlockId| Edge { to, arguments: Vec::new() };
        let block = &mut body.blocks[from.0 as usize];
        block.instructions.push(Instruction { result: Some(condition), op, location });
        block.terminator = Terminator::Branch { condition, then: edge(next), otherwise: edge(leave) };
        from = next;
    }
    body.blocks[from.0 as usize].terminator = rest;
    body
}
