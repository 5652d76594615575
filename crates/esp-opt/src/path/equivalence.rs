//! Specialisation on equal values, a form of loop versioning: the path compares two values once, at its entry, takes a
//! side exit if they differ, and uses one value for both behind the comparison. The equality itself, as that of the
//! counters of a sender that enciphers and a receiver that deciphers, cannot be derived from the code of the members.
//!
//! Candidates are pairs of values that start with the same constants in their processes. A pair is worth the comparison
//! if value numbering (`passes::gvn`), under the assumption that they are equal at the entry, leaves fewer distinct
//! values at block entries; and if the path then becomes shorter.

use crate::facts::Fact;
use crate::limits::code_size;
use crate::passes::{ValueNumber, clean_with, value_numbers};
use crate::product::LimitExit;
use quaject_esp_ir::cfg::edges;
use quaject_esp_ir::ir::{
    BinaryOp, Block, BlockId, Body, Edge, Instruction, MemoryMode, Op, Terminator, TypeId, TypeTable, Value, ValueData,
};
use quaject_esp_ir::visit::{op_values_mut, terminator_values_mut};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// Pairs of values that are tried.
const MAX_PAIRS: usize = 64;
/// The reciprocal of the fraction of the path by which a comparison has to shorten it.
const MIN_GAIN_DIVISOR: usize = 16;

/// The constants that a value is initialised with in its process.
pub(super) type InitialConstants = BTreeSet<i128>;

/// The constants that arrive at each value of a process along edges.
pub(super) fn initial_constants(body: &Body) -> FxHashMap<Value, InitialConstants> {
    let mut constants: FxHashMap<Value, i128> = FxHashMap::default();
    for instruction in body.blocks.iter().flat_map(|block| &block.instructions) {
        if let (Some(result), Op::Constant(constant)) = (instruction.result, &instruction.op) {
            constants.insert(result, *constant);
        }
    }
    let mut initial: FxHashMap<Value, InitialConstants> = FxHashMap::default();
    for block in &body.blocks {
        for edge in edges(&block.terminator) {
            for (parameter, argument) in body.blocks[edge.to.0 as usize].parameters.iter().zip(&edge.arguments) {
                if let Some(constant) = constants.get(argument) {
                    initial.entry(*parameter).or_default().insert(*constant);
                }
            }
        }
    }
    initial
}

/// The path with a comparison at its entry, if that pays, and the index in `limit_exits` of the node at which it exits
/// when values differ. `body` is as emitted; per parameter of its entry block, `constants` are its initial values in
/// its process and `facts` what always holds of it.
pub(super) fn specialise(
    body: &Body,
    limit_exits: &[LimitExit],
    constants: &[InitialConstants],
    types: &TypeTable,
    checked: bool,
    memory: MemoryMode,
    facts: &[Option<Fact>],
) -> Option<(Body, usize)> {
    let Terminator::Jump(first) = &body.blocks[0].terminator else { return None };
    let exit = limit_exits.iter().position(|exit| exit.block == first.to)?;
    let general = clean_with(body.clone(), types, checked, memory, facts);
    let leaders = congruence_leaders(&general, constants)?;
    let compared = with_comparison(body, &limit_exits[exit], &leaders);
    let cleaned = clean_with(compared.clone(), types, checked, memory, facts);
    (code_size(&cleaned) + code_size(&general) / MIN_GAIN_DIVISOR <= code_size(&general)).then_some((compared, exit))
}

/// Per parameter of the entry block: the earlier one it is congruent to if they are equal there, or itself. None if no
/// parameter has another leader.
fn congruence_leaders(body: &Body, constants: &[InitialConstants]) -> Option<Vec<usize>> {
    let parameters = &body.blocks[0].parameters;
    let ty = |position: usize| body.values[parameters[position].0 as usize].ty;
    let is_candidate =
        |(a, b): &(usize, usize)| !constants[*a].is_empty() && constants[*a] == constants[*b] && ty(*a) == ty(*b);
    let pairs = (0..parameters.len()).flat_map(|b| (0..b).map(move |a| (a, b)));
    let without = distinct_values(body, &FxHashMap::default())?;
    let mut leaders: Vec<usize> = (0..parameters.len()).collect();
    for (a, b) in pairs.filter(is_candidate).take(MAX_PAIRS) {
        let pair = [(parameters[b], parameters[a])].into_iter().collect();
        if leaders[b] == b && distinct_values(body, &pair)? < without {
            leaders[b] = leaders[a];
        }
    }
    leaders.iter().enumerate().any(|(position, leader)| position != *leader).then_some(leaders)
}

/// The number of distinct values among the parameters of blocks, if each key is equal to its value in `assumed_equal`.
fn distinct_values(body: &Body, assumed_equal: &FxHashMap<Value, Value>) -> Option<usize> {
    let numbers = value_numbers(body, assumed_equal)?;
    let parameters = body.blocks.iter().skip(1).flat_map(|block| &block.parameters);
    let unequal = parameters
        .map(|parameter| numbers[parameter.0 as usize])
        .filter(|number| !assumed_equal.contains_key(&Value(*number)));
    Some(unequal.collect::<BTreeSet<ValueNumber>>().len())
}

/// Puts the comparison behind the entry block; if values differ the path exits as at its first node.
fn with_comparison(body: &Body, exit: &LimitExit, leaders: &[usize]) -> Body {
    let mut body = body.clone();
    let parameters = body.blocks[0].parameters.clone();
    let location = body.blocks[exit.block.0 as usize].location;
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
    let Terminator::Jump(Edge { to, arguments }) = &first else { unreachable!("the caller has matched the jump") };
    // A copy of the first node's exit stub, with the values that are passed to the node.
    let mut substitution: FxHashMap<Value, Value> =
        body.blocks[to.0 as usize].parameters.iter().copied().zip(arguments.iter().copied()).collect();
    let mut stub = body.blocks[exit.stub.0 as usize].clone();
    for instruction in &mut stub.instructions {
        op_values_mut(&mut instruction.op, &mut |value| *value = *substitution.get(value).unwrap_or(value));
        if let Some(result) = &mut instruction.result {
            let ty = body.values[result.0 as usize].ty;
            substitution.insert(*result, value(&mut body, ty));
            *result = substitution[result];
        }
    }
    terminator_values_mut(&mut stub.terminator, &mut |value| *value = *substitution.get(value).unwrap_or(value));
    let leave = BlockId(body.blocks.len() as u32);
    body.blocks.push(stub);
    // Behind the comparison the leader replaces the other value.
    let leader_of: FxHashMap<Value, Value> = pairs.iter().copied().collect();
    let mut replace = |value: &mut Value| *value = *leader_of.get(value).unwrap_or(value);
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
