//! What is always so of the values of one body, whoever its process meets: intervals, from constants upwards, narrowed
//! where a comparison has decided the way. So a path begins with more than types know. Knows one body at a time.

use crate::facts::{self, Fact};
use quaject_esp_ir::graph::successors;
use quaject_esp_ir::ir::{BinaryOp, Body, Edge, Op, Terminator, Type, TypeTable, UnaryOp, Value};
use quaject_esp_ir::typing::place_type;
use quaject_esp_ir::visit::edges_mut;

/// How often an interval may grow before its growing end is given up, and before all of it is.
const MOST_ROUNDS: [usize; 2] = [24, 48];

/// A comparison, and whether it holds.
type Condition = (BinaryOp, Value, Value, bool);

/// Per value: what is always so; none of values that are never computed.
pub(super) fn ranges(body: &Body, types: &TypeTable, checked: bool) -> Vec<Option<Fact>> {
    let mut known: Vec<Option<Fact>> = vec![None; body.values.len()];
    // Per block: what has been decided whenever it is run.
    let decided = decided(body);
    let edges: Vec<(usize, Edge)> = body
        .blocks
        .iter()
        .enumerate()
        .flat_map(|(from, block)| {
            let mut terminator = block.terminator.clone();
            let edges = edges_mut(&mut terminator).into_iter().map(|edge| (from, edge.clone()));
            edges.collect::<Vec<_>>()
        })
        .collect();
    let mut is_parameter_of_edge = vec![false; body.values.len()];
    for (_, edge) in &edges {
        let parameters = &body.blocks[edge.to.0 as usize].parameters;
        parameters.iter().for_each(|value| is_parameter_of_edge[value.0 as usize] = true);
    }
    for round in 0.. {
        let mut changed = false;
        let mut grow = |known: &mut Vec<Option<Fact>>, value: Value, fact: Option<Fact>| {
            let Some(fact) = fact else { return };
            let whole = Fact::of_type(types, body.values[value.0 as usize].ty);
            let joined = match &known[value.0 as usize] {
                None => Fact::between(fact.low, fact.high),
                Some(old) if fact.implies(old) => return,
                Some(_) if round > MOST_ROUNDS[1] => whole,
                Some(old) if round > MOST_ROUNDS[0] => Fact::between(
                    if fact.low < old.low { whole.low } else { old.low },
                    if fact.high > old.high { whole.high } else { old.high },
                ),
                Some(old) => Fact::between(old.low.min(fact.low), old.high.max(fact.high)),
            };
            known[value.0 as usize] = Some(joined);
            changed = true;
        };
        for (index, block) in body.blocks.iter().enumerate() {
            // What a message or a region brings can be anything.
            for parameter in block.parameters.iter().filter(|value| !is_parameter_of_edge[value.0 as usize]) {
                let whole = Fact::of_type(types, body.values[parameter.0 as usize].ty);
                grow(&mut known, *parameter, Some(whole));
            }
            for instruction in &block.instructions {
                let Some(result) = instruction.result else { continue };
                let fact = of(
                    body,
                    types,
                    checked,
                    &|value| narrowed(&known, &decided[index], value),
                    &instruction.op,
                    result,
                );
                grow(&mut known, result, fact);
            }
        }
        for (from, edge) in &edges {
            for (parameter, argument) in body.blocks[edge.to.0 as usize].parameters.iter().zip(&edge.arguments) {
                let fact = narrowed(&known, &decided[*from], *argument);
                grow(&mut known, *parameter, fact);
            }
        }
        if !changed {
            break;
        }
    }
    known
}

/// Per block: the comparisons on the only way that leads there.
fn decided(body: &Body) -> Vec<Vec<Condition>> {
    let mut from: Vec<Vec<usize>> = vec![Vec::new(); body.blocks.len()];
    for (index, block) in body.blocks.iter().enumerate() {
        successors(&block.terminator).into_iter().for_each(|next| from[next.0 as usize].push(index));
    }
    let mut comparisons: Vec<Option<(BinaryOp, Value, Value)>> = vec![None; body.values.len()];
    for instruction in body.blocks.iter().flat_map(|block| &block.instructions) {
        if let (Op::Binary(op, a, b), Some(result)) = (&instruction.op, instruction.result)
            && facts::is_comparison(*op)
        {
            comparisons[result.0 as usize] = Some((*op, *a, *b));
        }
    }
    let last = |block: usize, before: usize| -> Option<Condition> {
        let Terminator::Branch { condition, then, otherwise } = &body.blocks[before].terminator else { return None };
        let (op, a, b) = comparisons[condition.0 as usize]?;
        (then.to != otherwise.to).then_some((op, a, b, then.to.0 as usize == block))
    };
    (0..body.blocks.len())
        .map(|block| {
            let (mut decided, mut at) = (Vec::new(), block);
            // Ways without joins are no longer than the body.
            for _ in 0..body.blocks.len() {
                // The entry has another way in.
                let ([before], 1..) = (&from[at][..], at) else { break };
                let before = *before;
                decided.extend(last(at, before));
                at = before;
            }
            decided
        })
        .collect()
}

/// What is so of a value where these comparisons have been made.
fn narrowed(known: &[Option<Fact>], decided: &[Condition], value: Value) -> Option<Fact> {
    let mut fact = known[value.0 as usize].clone()?;
    for (op, a, b, holds) in decided.iter().filter(|(_, a, b, _)| *a == value || *b == value) {
        let of = |other: &Value| if *other == value { Some(fact.clone()) } else { known[other.0 as usize].clone() };
        // What contradicts what is known so far is not reached so far.
        let (fact_a, fact_b) = facts::refine(*op, *holds, &of(a)?, &of(b)?)?;
        fact = if *a == value { fact_a } else { fact_b };
    }
    Some(fact)
}

/// What is so of a result, if something is of what it is computed from.
fn of(
    body: &Body,
    types: &TypeTable,
    checked: bool,
    fact: &dyn Fn(Value) -> Option<Fact>,
    op: &Op,
    result: Value,
) -> Option<Fact> {
    let ty = body.values[result.0 as usize].ty;
    let whole = Fact::of_type(types, ty);
    let fact = |value: &Value| fact(*value);
    Some(match op {
        Op::Constant(constant) => Fact::constant(*constant),
        Op::Unary(op, a) => {
            let a = fact(a)?;
            if checked && *op == UnaryOp::Negate { whole } else { facts::unary(types, ty, *op, &a) }
        }
        Op::Binary(op, a, b) => {
            let of = body.values[a.0 as usize].ty;
            facts::binary(types, ty, *op, of, &fact(a)?, &fact(b)?)
        }
        Op::Convert(a) => facts::convert(types, ty, &fact(a)?),
        Op::Length(place) => match place_type(types, body, place).map(|ty| types.get(ty)) {
            Some(Type::Bytes { bound }) => Fact::between(0, i128::from(*bound)),
            Some(_) | None => Fact::between(0, whole.high),
        },
        _ => whole,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use quaject_esp_ir::ir::{BinaryOp, Block, BlockId, Edge, Instruction, Location, Terminator, ValueData};

    #[test]
    fn a_loop_up_to_an_argument() {
        let define = |value: u32, op: Op| Instruction { result: Some(Value(value)), op, location: Location::default() };
        let edge = |to: u32, arguments: Vec<Value>| Edge { to: BlockId(to), arguments };
        let block = |parameters: Vec<Value>, instructions: Vec<Instruction>, terminator: Terminator| Block {
            parameters,
            instructions,
            terminator,
            location: Location::default(),
        };
        let mut values: Vec<ValueData> = (0..6).map(|_| ValueData { ty: TypeTable::I32, name: None }).collect();
        values[3].ty = TypeTable::BOOL;
        let (then, otherwise) = (edge(2, Vec::new()), edge(3, Vec::new()));
        let body = Body {
            values,
            slots: Vec::new(),
            blocks: vec![
                block(vec![Value(0)], vec![define(1, Op::Constant(0))], Terminator::Jump(edge(1, vec![Value(1)]))),
                block(
                    vec![Value(2)],
                    vec![define(3, Op::Binary(BinaryOp::Less, Value(2), Value(0)))],
                    Terminator::Branch { condition: Value(3), then, otherwise },
                ),
                block(
                    Vec::new(),
                    vec![define(4, Op::Constant(1)), define(5, Op::Binary(BinaryOp::Add, Value(2), Value(4)))],
                    Terminator::Jump(edge(1, vec![Value(5)])),
                ),
                block(Vec::new(), Vec::new(), Terminator::End),
            ],
        };
        let known = ranges(&body, &TypeTable::new(), false);
        assert_eq!(known[2], Some(Fact::between(0, i128::from(i32::MAX))));
        assert_eq!(known[5], Some(Fact::between(1, i128::from(i32::MAX))));
    }

    #[test]
    fn a_counter_modulo_eight() {
        let define = |value: u32, op: Op| Instruction { result: Some(Value(value)), op, location: Location::default() };
        let jump = |value: u32| Terminator::Jump(Edge { to: BlockId(1), arguments: vec![Value(value)] });
        let block = |parameters: Vec<Value>, instructions: Vec<Instruction>, terminator: Terminator| Block {
            parameters,
            instructions,
            terminator,
            location: Location::default(),
        };
        let body = Body {
            values: (0..6).map(|_| ValueData { ty: TypeTable::I32, name: None }).collect(),
            slots: Vec::new(),
            blocks: vec![
                block(Vec::new(), vec![define(0, Op::Constant(0))], jump(0)),
                block(
                    vec![Value(1)],
                    vec![
                        define(2, Op::Constant(1)),
                        define(3, Op::Binary(BinaryOp::Add, Value(1), Value(2))),
                        define(4, Op::Constant(8)),
                        define(5, Op::Binary(BinaryOp::Remainder, Value(3), Value(4))),
                    ],
                    jump(5),
                ),
            ],
        };
        let known = ranges(&body, &TypeTable::new(), false);
        assert_eq!(known[1], Some(Fact::between(0, 7)));
        assert_eq!(known[3], Some(Fact::between(1, 8)));
    }
}
