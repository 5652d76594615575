//! Interval analysis: facts about the values of one body that hold in every execution, whatever its process receives
//! (Cousot and Cousot, "Abstract Interpretation", 1977). Facts are refined where a comparison has decided a branch, and
//! widened to the constants of the body. Knows one body at a time.

use crate::cfg::{Regions, edges, reverse_postorder, successors};
use crate::facts::{self, Fact};
use crate::ir::{BinaryOp, BlockId, Body, Edge, Op, Terminator, Type, TypeTable, UnaryOp, Value};
use crate::small_map::SmallMap;
use crate::typing::place_type;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::rc::Rc;

/// Rounds after which a growing bound is widened to the body's next constant, and after which to the type's.
const WIDENING_ROUNDS: [usize; 2] = [6, 64];
/// The number of narrowing rounds, in which all facts are recomputed from the widened ones.
const NARROWING_ROUNDS: usize = 2;
/// The largest number of values with refined facts in one block.
const MAX_REFINED: usize = 64;

/// Facts that hold in one block only, in order of values.
#[derive(Clone, Default)]
struct Refined(SmallMap<Value, Fact>);

impl Refined {
    fn get(&self, value: Value) -> Option<&Fact> {
        self.0.get(&value)
    }

    /// Adds a fact, unless there are [`MAX_REFINED`] already.
    fn insert(&mut self, value: Value, fact: Fact) {
        if self.0.len() < MAX_REFINED || self.0.get(&value).is_some() {
            self.0.insert(value, fact);
        }
    }
}

/// The facts on one edge of a block: those of the block, and those that its condition refines.
struct AtEdge<'n> {
    here: &'n Rc<Refined>,
    refinement: Option<[(Value, Fact); 2]>,
}

impl AtEdge<'_> {
    fn get(&self, value: Value) -> Option<&Fact> {
        self.refinement(value).or_else(|| self.here.get(value))
    }

    fn refinement(&self, value: Value) -> Option<&Fact> {
        self.refinement.iter().flatten().rev().find(|(other, _)| *other == value).map(|(_, fact)| fact)
    }

    /// Both merged, as the facts of a block.
    fn merged(&self) -> Rc<Refined> {
        let mut whole = self.here.clone();
        for (value, fact) in self.refinement.iter().flatten() {
            Rc::make_mut(&mut whole).insert(*value, fact.clone());
        }
        whole
    }
}

/// Facts about the values of a body, everywhere and in single blocks.
pub struct Intervals {
    known: Vec<Option<Fact>>,
    /// Per block: the refined facts in it; none if it is unreachable.
    at: Vec<Option<Rc<Refined>>>,
}

impl Intervals {
    /// The fact about a value in a block; none if the block is unreachable.
    pub fn at(&self, block: usize, value: Value) -> Option<&Fact> {
        self.at[block].as_ref()?.get(value).or(self.known[value.0 as usize].as_ref())
    }

    /// Whether a block may be reached, by these facts.
    pub fn is_reachable(&self, block: usize) -> bool {
        self.at[block].is_some()
    }

    /// The fact about a value that holds in every block; none if it is never computed.
    pub fn everywhere(&self, value: Value) -> Option<&Fact> {
        self.known[value.0 as usize].as_ref()
    }

    /// Per value: the fact that holds everywhere; none if it is never computed.
    pub fn into_facts(self) -> Vec<Option<Fact>> {
        self.known
    }
}

/// As [`intervals`], with the refined facts of each block.
pub fn intervals_by_block(body: &Body, types: &TypeTable, checked: bool) -> Intervals {
    intervals_of_receiver(body, types, checked, &FxHashMap::default())
}

/// Likewise; `received` holds facts about values that messages bring, none where no message is ever sent.
pub fn intervals_of_receiver(
    body: &Body,
    types: &TypeTable,
    checked: bool,
    received: &FxHashMap<Value, Option<Fact>>,
) -> Intervals {
    let Solver { known, at, .. } = solve(body, types, checked, &[], received);
    Intervals { known, at }
}

/// Per value: the fact that holds everywhere; none if it is never computed. `entry_facts` are those of the entry
/// block's parameters, as far as there are any.
pub fn intervals(body: &Body, types: &TypeTable, checked: bool, entry_facts: &[Option<Fact>]) -> Vec<Option<Fact>> {
    solve(body, types, checked, entry_facts, &FxHashMap::default()).known
}

fn solve<'a>(
    body: &'a Body,
    types: &'a TypeTable,
    checked: bool,
    entry_facts: &'a [Option<Fact>],
    received: &'a FxHashMap<Value, Option<Fact>>,
) -> Solver<'a> {
    let mut solver = Solver::new(body, types, checked, entry_facts, received);
    while solver.has_changed {
        solver.has_changed = false;
        for block in solver.order.clone() {
            if std::mem::take(&mut solver.is_due[block.0 as usize]) {
                solver.block(block);
            }
        }
        solver.round += 1;
    }
    for _ in 0..NARROWING_ROUNDS {
        solver.narrowing = Some(vec![None; body.values.len()]);
        for block in solver.order.clone() {
            solver.block(block);
        }
        solver.take_narrowed();
    }
    solver
}

struct Solver<'a> {
    body: &'a Body,
    types: &'a TypeTable,
    checked: bool,
    entry_facts: &'a [Option<Fact>],
    received: &'a FxHashMap<Value, Option<Fact>>,
    /// The reachable blocks, in reverse postorder.
    order: Vec<BlockId>,
    /// Per block: its edges, and its successors that are on no edge.
    edges: Vec<Vec<&'a Edge>>,
    others: Vec<Vec<BlockId>>,
    /// Per value: the blocks that compute with it or pass it along an edge.
    users: Vec<Vec<BlockId>>,
    /// Per block: whether a fact that it reads has changed.
    is_due: Vec<bool>,
    /// Per value: the comparison that it is the result of.
    comparisons: Vec<Option<(BinaryOp, Value, Value)>>,
    /// Per value: whether it is a parameter that edges set.
    is_set_by_edges: Vec<bool>,
    /// The body's constants and their neighbours.
    landmarks: BTreeSet<i128>,
    known: Vec<Option<Fact>>,
    /// Per block: the refined facts at its start; none until it is reached.
    at: Vec<Option<Rc<Refined>>>,
    round: usize,
    has_changed: bool,
    /// While narrowing: the facts that are computed anew.
    narrowing: Option<Vec<Option<Fact>>>,
}

impl<'a> Solver<'a> {
    fn new(
        body: &'a Body,
        types: &'a TypeTable,
        checked: bool,
        entry_facts: &'a [Option<Fact>],
        received: &'a FxHashMap<Value, Option<Fact>>,
    ) -> Solver<'a> {
        let mut comparisons = vec![None; body.values.len()];
        let mut landmarks = BTreeSet::new();
        let mut is_set_by_edges = vec![false; body.values.len()];
        let mut all_edges = Vec::new();
        let mut others = Vec::new();
        for block in &body.blocks {
            for instruction in &block.instructions {
                match (&instruction.op, instruction.result) {
                    (Op::Binary(op, a, b), Some(result)) if op.is_comparison() => {
                        comparisons[result.0 as usize] = Some((*op, *a, *b));
                    }
                    (Op::Constant(constant), _) => landmarks.extend([constant - 1, *constant, constant + 1]),
                    _ => {}
                }
            }
            let edges = edges(&block.terminator);
            for edge in &edges {
                let parameters = &body.blocks[edge.to.0 as usize].parameters;
                parameters.iter().for_each(|value| is_set_by_edges[value.0 as usize] = true);
            }
            let mut without = successors(&block.terminator, Regions::Include);
            without.retain(|to| edges.iter().all(|edge| edge.to != *to));
            all_edges.push(edges);
            others.push(without);
        }
        let mut at = vec![None; body.blocks.len()];
        at[0] = Some(Rc::default());
        Solver {
            body,
            types,
            checked,
            entry_facts,
            received,
            order: reverse_postorder(body, Regions::Include).into_iter().map(|block| BlockId(block as u32)).collect(),
            users: users(body, &all_edges, &comparisons),
            is_due: vec![true; body.blocks.len()],
            edges: all_edges,
            others,
            comparisons,
            is_set_by_edges,
            landmarks,
            known: vec![None; body.values.len()],
            at,
            round: 0,
            has_changed: true,
            narrowing: None,
        }
    }

    fn type_fact(&self, value: Value) -> Fact {
        Fact::of_type(self.types, self.body.values[value.0 as usize].ty)
    }

    /// The fact about a value with this refinement.
    fn fact<'f>(&'f self, refined: Option<&'f Fact>, value: Value) -> Option<&'f Fact> {
        refined.or(self.known[value.0 as usize].as_ref())
    }

    /// Joins a fact into that of a value, with widening; nothing if the fact is not computed yet.
    fn grow(&mut self, value: Value, fact: Option<Fact>) {
        let Some(fact) = fact else { return };
        if let Some(narrowing) = &mut self.narrowing {
            let known = &mut narrowing[value.0 as usize];
            *known = Some(known.as_ref().map_or(fact.clone(), |known| joined(known, &fact)));
            return;
        }
        let type_fact = || self.type_fact(value);
        let lower = |low: i128| {
            self.landmarks.range(..=low).next_back().map_or(type_fact().low, |end| type_fact().low.max(*end))
        };
        let higher =
            |high: i128| self.landmarks.range(high..).next().map_or(type_fact().high, |end| type_fact().high.min(*end));
        let grown = match &self.known[value.0 as usize] {
            None => fact,
            Some(old) if fact.implies(old) => return,
            Some(_) if self.round > WIDENING_ROUNDS[1] => type_fact(),
            Some(old) if self.round > WIDENING_ROUNDS[0] => old.or(
                &fact,
                if fact.low < old.low { lower(fact.low) } else { old.low },
                if fact.high > old.high { higher(fact.high) } else { old.high },
            ),
            Some(old) => joined(old, &fact),
        };
        self.known[value.0 as usize] = Some(grown);
        self.users[value.0 as usize].iter().for_each(|block| self.is_due[block.0 as usize] = true);
        self.has_changed = true;
    }

    fn block(&mut self, id: BlockId) {
        let Some(here) = self.at[id.0 as usize].clone() else { return };
        let body = self.body;
        let block = &body.blocks[id.0 as usize];
        // Without a fact, a message or a region may bring any value of the type.
        for (position, parameter) in block.parameters.iter().enumerate() {
            if !self.is_set_by_edges[parameter.0 as usize] {
                let entry_facts =
                    if id == BlockId(0) { self.entry_facts.get(position).cloned().flatten() } else { None };
                let received = self.received.get(parameter).cloned();
                let whole = || Some(entry_facts.unwrap_or_else(|| self.type_fact(*parameter)));
                self.grow(*parameter, received.unwrap_or_else(whole));
            }
        }
        for instruction in &block.instructions {
            let Some(result) = instruction.result else { continue };
            let known = |value| self.fact(here.get(value), value);
            let fact = of(body, self.types, self.checked, &known, &instruction.op, result);
            self.grow(result, fact);
        }
        match &block.terminator {
            Terminator::Branch { condition, then, otherwise } => {
                for (edge, holds) in [(then, true), (otherwise, false)] {
                    if let Some(there) = self.refined(&here, *condition, holds) {
                        self.propagate(edge, &there);
                    }
                }
            }
            _ => {
                let there = AtEdge { here: &here, refinement: None };
                let (edges, others) =
                    (std::mem::take(&mut self.edges[id.0 as usize]), std::mem::take(&mut self.others[id.0 as usize]));
                edges.iter().for_each(|edge| self.propagate(edge, &there));
                others.iter().for_each(|to| self.join_into(*to, &there));
                (self.edges[id.0 as usize], self.others[id.0 as usize]) = (edges, others);
            }
        }
    }

    /// The facts on the edge that a condition decides; none if the edge cannot be taken.
    fn refined<'n>(&self, here: &'n Rc<Refined>, condition: Value, holds: bool) -> Option<AtEdge<'n>> {
        let Some((op, a, b)) = self.comparisons[condition.0 as usize] else {
            return Some(AtEdge { here, refinement: None });
        };
        let known = |value| self.fact(here.get(value), value);
        let (fact_a, fact_b) = facts::refine(op, holds, known(a)?, known(b)?)?;
        Some(AtEdge { here, refinement: Some([(a, fact_a), (b, fact_b)]) })
    }

    /// Propagates the arguments of an edge, then the facts at its target.
    fn propagate(&mut self, edge: &Edge, there: &AtEdge<'_>) {
        for (parameter, argument) in self.body.blocks[edge.to.0 as usize].parameters.iter().zip(&edge.arguments) {
            let fact = self.fact(there.get(*argument), *argument).cloned();
            self.grow(*parameter, fact);
        }
        self.join_into(edge.to, there);
    }

    /// Joins facts into those at the start of a block, which hold on every path to it.
    fn join_into(&mut self, to: BlockId, there: &AtEdge<'_>) {
        if self.narrowing.is_some() {
            return;
        }
        match &mut self.at[to.0 as usize] {
            here @ None => {
                // Facts about values that the block itself defines are those of the previous iteration.
                let block = &self.body.blocks[to.0 as usize];
                let results = block.instructions.iter().filter_map(|instruction| instruction.result);
                let mut first = there.merged();
                for value in block.parameters.iter().copied().chain(results) {
                    if first.get(value).is_some() {
                        Rc::make_mut(&mut first).0.remove(&value);
                    }
                }
                *here = Some(first);
            }
            Some(here) => {
                // Both are in order of values.
                let mut left = there.here.0.iter();
                let says = |(value, old): (&Value, &Fact)| {
                    let found = left.find(|(other, _)| *other >= value).filter(|(other, _)| *other == value);
                    let fact = there.refinement(*value).or(found.map(|(_, fact)| fact));
                    fact.is_some_and(|fact| fact.implies(old))
                };
                if here.0.iter().all(says) {
                    return;
                }
                let is_late = self.round > WIDENING_ROUNDS[1];
                let mut left = there.here.0.iter().peekable();
                Rc::make_mut(here).0.retain(|value, old| {
                    while left.next_if(|(other, _)| *other < value).is_some() {}
                    let found = left.next_if(|(other, _)| *other == value).map(|(_, fact)| fact);
                    match there.refinement(*value).or(found) {
                        Some(fact) if fact.implies(old) => true,
                        Some(fact) if !is_late => {
                            *old = joined(old, fact);
                            true
                        }
                        Some(_) | None => false,
                    }
                });
            }
        }
        self.has_changed = true;
        self.is_due[to.0 as usize] = true;
    }

    /// Takes the facts that narrowing has found where they are stronger.
    fn take_narrowed(&mut self) {
        let narrowing = self.narrowing.take().into_iter().flatten();
        for (known, fact) in self.known.iter_mut().zip(narrowing) {
            if let (Some(known), Some(fact)) = (known, fact)
                && fact.implies(known)
            {
                *known = fact;
            }
        }
    }
}

/// The join of two facts.
fn joined(a: &Fact, b: &Fact) -> Fact {
    a.or(b, a.low.min(b.low), a.high.max(b.high))
}

/// Per value: the blocks that compute with it, compare it, or pass it along an edge.
fn users(body: &Body, edges: &[Vec<&Edge>], comparisons: &[Option<(BinaryOp, Value, Value)>]) -> Vec<Vec<BlockId>> {
    let mut users: Vec<Vec<BlockId>> = vec![Vec::new(); body.values.len()];
    for (index, block) in body.blocks.iter().enumerate() {
        let mut uses = |value: Value| {
            let users = &mut users[value.0 as usize];
            if users.last() != Some(&BlockId(index as u32)) {
                users.push(BlockId(index as u32));
            }
        };
        for instruction in &block.instructions {
            match &instruction.op {
                Op::Unary(_, a) | Op::Convert(a) => uses(*a),
                Op::Binary(_, a, b) => [*a, *b].into_iter().for_each(&mut uses),
                _ => {}
            }
        }
        edges[index].iter().flat_map(|edge| &edge.arguments).for_each(|argument| uses(*argument));
        if let Terminator::Branch { condition, .. } = &block.terminator
            && let Some((_, a, b)) = comparisons[condition.0 as usize]
        {
            [a, b].into_iter().for_each(&mut uses);
        }
    }
    users
}

/// The fact about a result, once there are facts about its operands.
fn of<'f>(
    body: &Body,
    types: &TypeTable,
    checked: bool,
    fact: &dyn Fn(Value) -> Option<&'f Fact>,
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
            if checked && *op == UnaryOp::Negate { whole } else { facts::unary(types, ty, *op, a) }
        }
        Op::Binary(op, a, b) => {
            let of = body.values[a.0 as usize].ty;
            facts::binary(types, ty, *op, of, fact(a)?, fact(b)?)
        }
        Op::Convert(a) => facts::convert(types, ty, fact(a)?),
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
    use crate::ir::{BinaryOp, Block, BlockId, Edge, Instruction, Location, Terminator, ValueData};

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
        let known = intervals(&body, &TypeTable::new(), false, &[]);
        assert_eq!(known[2], Some(Fact::between(0, i128::from(i32::MAX))));
        assert_eq!(known[5], Some(Fact::between(1, i128::from(i32::MAX))));
    }

    /// `if (count > 0 && count == 255) count = 0; count += 1;` in a loop.
    #[test]
    fn a_counter_that_is_reset() {
        let define = |value: u32, op: Op| Instruction { result: Some(Value(value)), op, location: Location::default() };
        let edge = |to: u32, arguments: Vec<u32>| Edge {
            to: BlockId(to),
            arguments: arguments.into_iter().map(Value).collect(),
        };
        let branch = |condition: u32, then: Edge, otherwise: Edge| Terminator::Branch {
            condition: Value(condition),
            then,
            otherwise,
        };
        let block = |parameters: Vec<u32>, instructions: Vec<Instruction>, terminator: Terminator| Block {
            parameters: parameters.into_iter().map(Value).collect(),
            instructions,
            terminator,
            location: Location::default(),
        };
        let constants = vec![define(0, Op::Constant(0)), define(1, Op::Constant(1)), define(2, Op::Constant(255))];
        let mut values: Vec<ValueData> = (0..8).map(|_| ValueData { ty: TypeTable::I32, name: None }).collect();
        (values[4].ty, values[5].ty) = (TypeTable::BOOL, TypeTable::BOOL);
        let body = Body {
            values,
            slots: Vec::new(),
            blocks: vec![
                block(Vec::new(), constants, Terminator::Jump(edge(1, vec![0]))),
                block(
                    vec![3],
                    vec![define(4, Op::Binary(BinaryOp::Greater, Value(3), Value(0)))],
                    branch(4, edge(2, Vec::new()), edge(3, vec![3])),
                ),
                block(
                    Vec::new(),
                    vec![define(5, Op::Binary(BinaryOp::Equal, Value(3), Value(2)))],
                    branch(5, edge(3, vec![0]), edge(3, vec![3])),
                ),
                block(
                    vec![6],
                    vec![define(7, Op::Binary(BinaryOp::Add, Value(6), Value(1)))],
                    Terminator::Jump(edge(1, vec![7])),
                ),
            ],
        };
        let known = intervals(&body, &TypeTable::new(), false, &[]);
        assert_eq!(known[3], Some(Fact::between(0, 255)));
        assert_eq!(known[7], Some(Fact::between(1, 255)));
    }

    /// `while (last != 192) { last = byte; if (byte == 192) break; }`: no iteration begins with 192.
    #[test]
    fn a_value_that_ends_a_loop_does_not_begin_an_iteration() {
        let define = |value: u32, op: Op| Instruction { result: Some(Value(value)), op, location: Location::default() };
        let edge = |to: u32, arguments: Vec<u32>| Edge {
            to: BlockId(to),
            arguments: arguments.into_iter().map(Value).collect(),
        };
        let block = |parameters: Vec<u32>, instructions: Vec<Instruction>, terminator: Terminator| Block {
            parameters: parameters.into_iter().map(Value).collect(),
            instructions,
            terminator,
            location: Location::default(),
        };
        let mut values: Vec<ValueData> = (0..6).map(|_| ValueData { ty: TypeTable::I32, name: None }).collect();
        (values[4].ty, values[5].ty) = (TypeTable::BOOL, TypeTable::BOOL);
        let is_end = |result: u32, value: u32| define(result, Op::Binary(BinaryOp::Equal, Value(value), Value(1)));
        let known = |first: i128| {
            let body = Body {
                values: values.clone(),
                slots: Vec::new(),
                blocks: vec![
                    block(
                        vec![0],
                        vec![define(1, Op::Constant(192)), define(2, Op::Constant(first))],
                        Terminator::Jump(edge(1, vec![2])),
                    ),
                    block(
                        vec![3],
                        vec![is_end(4, 3), is_end(5, 0)],
                        Terminator::Branch {
                            condition: Value(5),
                            then: edge(2, Vec::new()),
                            otherwise: edge(1, vec![0]),
                        },
                    ),
                    block(Vec::new(), Vec::new(), Terminator::End),
                ],
            };
            intervals(&body, &TypeTable::new(), false, &[])
        };
        assert_eq!(known(0)[4], Some(Fact::constant(0)));
        assert_eq!(known(192)[4], Some(Fact::between(0, 1)));
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
        let known = intervals(&body, &TypeTable::new(), false, &[]);
        assert_eq!(known[1], Some(Fact::between(0, 7)));
        assert_eq!(known[3], Some(Fact::between(1, 8)));
    }
}
