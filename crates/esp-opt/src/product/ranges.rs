//! What is always so of the values of one body, whoever its process meets: intervals, from constants upwards, without a
//! look at branches. So a path begins with more than types know. Knows one body at a time.

use crate::facts::{self, Fact};
use quaject_esp_ir::ir::{Body, Op, TypeTable, UnaryOp, Value};
use quaject_esp_ir::visit::edges_mut;

/// How often an interval may grow before it is given up.
const MOST_ROUNDS: usize = 24;

/// Per value: what is always so; none of values that are never computed.
pub(super) fn ranges(body: &Body, types: &TypeTable, checked: bool) -> Vec<Option<Fact>> {
    let mut known: Vec<Option<Fact>> = vec![None; body.values.len()];
    let edges: Vec<(Vec<Value>, Vec<Value>)> = body
        .blocks
        .iter()
        .flat_map(|block| {
            let mut terminator = block.terminator.clone();
            let edges = edges_mut(&mut terminator);
            let all = edges
                .into_iter()
                .map(|edge| (body.blocks[edge.to.0 as usize].parameters.clone(), edge.arguments.clone()));
            all.collect::<Vec<_>>()
        })
        .collect();
    let mut is_parameter_of_edge = vec![false; body.values.len()];
    edges.iter().flat_map(|(parameters, _)| parameters).for_each(|value| is_parameter_of_edge[value.0 as usize] = true);
    for round in 0.. {
        let mut changed = false;
        let mut grow = |known: &mut Vec<Option<Fact>>, value: Value, fact: Option<Fact>| {
            let Some(fact) = fact else { return };
            let whole = Fact::of_type(types, body.values[value.0 as usize].ty);
            let joined = match &known[value.0 as usize] {
                None => Fact::between(fact.low, fact.high),
                Some(old) if fact.implies(old) => return,
                Some(_) if round > MOST_ROUNDS => whole,
                Some(old) => Fact::between(old.low.min(fact.low), old.high.max(fact.high)),
            };
            known[value.0 as usize] = Some(joined);
            changed = true;
        };
        for block in &body.blocks {
            // What a message or a region brings can be anything.
            for parameter in block.parameters.iter().filter(|value| !is_parameter_of_edge[value.0 as usize]) {
                let whole = Fact::of_type(types, body.values[parameter.0 as usize].ty);
                grow(&mut known, *parameter, Some(whole));
            }
            for instruction in &block.instructions {
                let Some(result) = instruction.result else { continue };
                let fact = of(body, types, checked, &known, &instruction.op, result);
                grow(&mut known, result, fact);
            }
        }
        for (parameters, arguments) in &edges {
            for (parameter, argument) in parameters.iter().zip(arguments) {
                let fact = known[argument.0 as usize].clone();
                grow(&mut known, *parameter, fact);
            }
        }
        if !changed {
            break;
        }
    }
    known
}

/// What is so of a result, if something is of what it is computed from.
fn of(body: &Body, types: &TypeTable, checked: bool, known: &[Option<Fact>], op: &Op, result: Value) -> Option<Fact> {
    let ty = body.values[result.0 as usize].ty;
    let whole = Fact::of_type(types, ty);
    let fact = |value: &Value| known[value.0 as usize].clone();
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
        _ => whole,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use quaject_esp_ir::ir::{BinaryOp, Block, BlockId, Edge, Instruction, Location, Terminator, ValueData};

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
