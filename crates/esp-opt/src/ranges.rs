//! What is always so of the values of one body, whoever its process meets: intervals, from constants upwards, narrowed
//! where comparisons have decided the way (Cousot and Cousot 1977, with the body's own constants as the ends that growing
//! intervals are put to). So a path begins with more than types know. Knows one body at a time.

use crate::facts::{self, Fact};
use crate::map::Map;
use quaject_esp_ir::cfg::{Regions, edges, reverse_postorder, successors};
use quaject_esp_ir::ir::{BinaryOp, BlockId, Body, Edge, Op, Terminator, Type, TypeTable, UnaryOp, Value};
use quaject_esp_ir::typing::place_type;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::rc::Rc;

/// How often an interval may grow before its growing end is put to the body's next constant, and before it is given up.
const MOST_ROUNDS: [usize; 2] = [6, 64];
/// How often all is computed once more from what was found, as some intervals have grown too far.
const ROUNDS_BACK: usize = 2;
/// How many values are narrowed in one place.
const MOST_NARROWED: usize = 64;

/// What is so in one place of values of which it is not so everywhere: a few, in order of values.
#[derive(Clone, Default)]
struct Narrowed(Map<Value, Fact>);

impl Narrowed {
    fn get(&self, value: Value) -> Option<&Fact> {
        self.0.get(&value)
    }

    /// Says it of a value, if there is room.
    fn insert(&mut self, value: Value, fact: Fact) {
        if self.0.len() < MOST_NARROWED || self.0.get(&value).is_some() {
            self.0.insert(value, fact);
        }
    }
}

/// What is so where a block is left on one way: what is so in it, but for what its condition has narrowed.
struct Leaving<'n> {
    here: &'n Rc<Narrowed>,
    narrower: Option<[(Value, Fact); 2]>,
}

impl Leaving<'_> {
    fn get(&self, value: Value) -> Option<&Fact> {
        self.narrower(value).or_else(|| self.here.get(value))
    }

    fn narrower(&self, value: Value) -> Option<&Fact> {
        self.narrower.iter().flatten().rev().find(|(other, _)| *other == value).map(|(_, fact)| fact)
    }

    /// The same in one piece.
    fn whole(&self) -> Rc<Narrowed> {
        let mut whole = self.here.clone();
        for (value, fact) in self.narrower.iter().flatten() {
            Rc::make_mut(&mut whole).insert(*value, fact.clone());
        }
        whole
    }
}

/// What is known of values, everywhere and in one place.
pub(crate) struct Ranges {
    known: Vec<Option<Fact>>,
    /// Per block: what is narrower in it.
    at: Vec<Option<Rc<Narrowed>>>,
}

impl Ranges {
    /// What is so of a value in a block; none if nobody comes there, as far as is known.
    pub(crate) fn at(&self, block: usize, value: Value) -> Option<&Fact> {
        self.at[block].as_ref()?.get(value).or(self.known[value.0 as usize].as_ref())
    }

    /// Per value: what is so of it in every place.
    pub(crate) fn everywhere(self) -> Vec<Option<Fact>> {
        self.known
    }
}

/// The same as [`ranges`], with what is so in one place only.
pub(crate) fn ranges_by_place(body: &Body, types: &TypeTable, checked: bool) -> Ranges {
    ranges_of_receiver(body, types, checked, &FxHashMap::default())
}

/// Likewise; `received` is what is so of values that messages bring, none if nobody sends them.
pub(crate) fn ranges_of_receiver(
    body: &Body,
    types: &TypeTable,
    checked: bool,
    received: &FxHashMap<Value, Option<Fact>>,
) -> Ranges {
    let Search { known, at, .. } = searched(body, types, checked, &[], received);
    Ranges { known, at }
}

/// Per value: what is always so; none of values that are never computed. `given` is what is so of the entry block's
/// parameters, as far as something is.
pub(crate) fn ranges(body: &Body, types: &TypeTable, checked: bool, given: &[Option<Fact>]) -> Vec<Option<Fact>> {
    searched(body, types, checked, given, &FxHashMap::default()).known
}

fn searched<'a>(
    body: &'a Body,
    types: &'a TypeTable,
    checked: bool,
    given: &'a [Option<Fact>],
    received: &'a FxHashMap<Value, Option<Fact>>,
) -> Search<'a> {
    let mut search = Search::new(body, types, checked, given, received);
    while search.has_changed {
        search.has_changed = false;
        for block in search.order.clone() {
            // Where nothing has changed nothing would.
            if std::mem::take(&mut search.is_due[block.0 as usize]) {
                search.block(block);
            }
        }
        search.round += 1;
    }
    for _ in 0..ROUNDS_BACK {
        search.back = Some(vec![None; body.values.len()]);
        for block in search.order.clone() {
            search.block(block);
        }
        search.take_back();
    }
    search
}

struct Search<'a> {
    body: &'a Body,
    types: &'a TypeTable,
    checked: bool,
    given: &'a [Option<Fact>],
    received: &'a FxHashMap<Value, Option<Fact>>,
    /// The blocks that are reached, each after one that leads to it.
    order: Vec<BlockId>,
    /// Per block: where it leads to, with arguments and without.
    edges: Vec<Vec<&'a Edge>>,
    others: Vec<Vec<BlockId>>,
    /// Per value: the blocks that compute something from it, or hand it on.
    users: Vec<Vec<BlockId>>,
    /// Per block: whether something has changed that it asks for.
    is_due: Vec<bool>,
    /// Per value: the comparison that it is the result of.
    comparisons: Vec<Option<(BinaryOp, Value, Value)>>,
    /// Per value: whether it is a parameter that edges set.
    is_set_by_edges: Vec<bool>,
    /// The body's constants and their neighbours.
    landmarks: BTreeSet<i128>,
    known: Vec<Option<Fact>>,
    /// Per block: what is narrower when it begins; none as long as nothing leads there.
    at: Vec<Option<Rc<Narrowed>>>,
    round: usize,
    has_changed: bool,
    /// On the way back: what has been computed anew, from what was known.
    back: Option<Vec<Option<Fact>>>,
}

impl<'a> Search<'a> {
    fn new(
        body: &'a Body,
        types: &'a TypeTable,
        checked: bool,
        given: &'a [Option<Fact>],
        received: &'a FxHashMap<Value, Option<Fact>>,
    ) -> Search<'a> {
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
        Search {
            body,
            types,
            checked,
            given,
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
            back: None,
        }
    }

    fn whole(&self, value: Value) -> Fact {
        Fact::of_type(self.types, self.body.values[value.0 as usize].ty)
    }

    /// What is so of a value where it is narrowed to this.
    fn fact<'f>(&'f self, narrowed: Option<&'f Fact>, value: Value) -> Option<&'f Fact> {
        narrowed.or(self.known[value.0 as usize].as_ref())
    }

    /// Notes that a value may be what a fact admits, beside what it may be anyway; none, if it is not computed yet.
    fn grow(&mut self, value: Value, fact: Option<Fact>) {
        let Some(fact) = fact else { return };
        if let Some(back) = &mut self.back {
            let known = &mut back[value.0 as usize];
            *known = Some(known.as_ref().map_or(fact.clone(), |known| joined(known, &fact)));
            return;
        }
        let whole = || self.whole(value);
        let lower =
            |low: i128| self.landmarks.range(..=low).next_back().map_or(whole().low, |end| whole().low.max(*end));
        let higher =
            |high: i128| self.landmarks.range(high..).next().map_or(whole().high, |end| whole().high.min(*end));
        let grown = match &self.known[value.0 as usize] {
            None => fact,
            Some(old) if fact.implies(old) => return,
            Some(_) if self.round > MOST_ROUNDS[1] => whole(),
            Some(old) if self.round > MOST_ROUNDS[0] => old.or(
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
        // What a message or a region brings can be anything that is not said.
        for (position, parameter) in block.parameters.iter().enumerate() {
            if !self.is_set_by_edges[parameter.0 as usize] {
                let given = if id == BlockId(0) { self.given.get(position).cloned().flatten() } else { None };
                let received = self.received.get(parameter).cloned();
                let whole = || Some(given.unwrap_or_else(|| self.whole(*parameter)));
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
                    if let Some(there) = self.narrowed(&here, *condition, holds) {
                        self.follow(edge, &there);
                    }
                }
            }
            _ => {
                let there = Leaving { here: &here, narrower: None };
                let (edges, others) =
                    (std::mem::take(&mut self.edges[id.0 as usize]), std::mem::take(&mut self.others[id.0 as usize]));
                edges.iter().for_each(|edge| self.follow(edge, &there));
                others.iter().for_each(|to| self.reach(*to, &there));
                (self.edges[id.0 as usize], self.others[id.0 as usize]) = (edges, others);
            }
        }
    }

    /// What is so where a condition has decided the way; none if nobody goes there, as far as is known.
    fn narrowed<'n>(&self, here: &'n Rc<Narrowed>, condition: Value, holds: bool) -> Option<Leaving<'n>> {
        let Some((op, a, b)) = self.comparisons[condition.0 as usize] else {
            return Some(Leaving { here, narrower: None });
        };
        let known = |value| self.fact(here.get(value), value);
        let (fact_a, fact_b) = facts::refine(op, holds, known(a)?, known(b)?)?;
        Some(Leaving { here, narrower: Some([(a, fact_a), (b, fact_b)]) })
    }

    /// Goes along an edge.
    fn follow(&mut self, edge: &Edge, there: &Leaving<'_>) {
        for (parameter, argument) in self.body.blocks[edge.to.0 as usize].parameters.iter().zip(&edge.arguments) {
            let fact = self.fact(there.get(*argument), *argument).cloned();
            self.grow(*parameter, fact);
        }
        self.reach(edge.to, there);
    }

    /// Comes to a block: what is so there is so on every way.
    fn reach(&mut self, to: BlockId, there: &Leaving<'_>) {
        if self.back.is_some() {
            return;
        }
        match &mut self.at[to.0 as usize] {
            here @ None => {
                // What the block computes is not what it was the last time round.
                let block = &self.body.blocks[to.0 as usize];
                let results = block.instructions.iter().filter_map(|instruction| instruction.result);
                let mut first = there.whole();
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
                    let fact = there.narrower(*value).or(found.map(|(_, fact)| fact));
                    fact.is_some_and(|fact| fact.implies(old))
                };
                if here.0.iter().all(says) {
                    return;
                }
                let is_late = self.round > MOST_ROUNDS[1];
                let mut left = there.here.0.iter().peekable();
                Rc::make_mut(here).0.retain(|value, old| {
                    while left.next_if(|(other, _)| *other < value).is_some() {}
                    let found = left.next_if(|(other, _)| *other == value).map(|(_, fact)| fact);
                    match there.narrower(*value).or(found) {
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

    /// Takes what has been computed anew where it says more.
    fn take_back(&mut self) {
        let back = self.back.take().into_iter().flatten();
        for (known, fact) in self.known.iter_mut().zip(back) {
            if let (Some(known), Some(fact)) = (known, fact)
                && fact.implies(known)
            {
                *known = fact;
            }
        }
    }
}

/// What is so where one of two things is.
fn joined(a: &Fact, b: &Fact) -> Fact {
    a.or(b, a.low.min(b.low), a.high.max(b.high))
}

/// Per value: the blocks that compute something from it, compare it, or hand it on.
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

/// What is so of a result, if something is of what it is computed from.
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
        let known = ranges(&body, &TypeTable::new(), false, &[]);
        assert_eq!(known[2], Some(Fact::between(0, i128::from(i32::MAX))));
        assert_eq!(known[5], Some(Fact::between(1, i128::from(i32::MAX))));
    }

    /// `if (count > 0 && count == 255) count = 0; count += 1;` in a loop.
    #[test]
    fn a_counter_that_begins_anew() {
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
        let known = ranges(&body, &TypeTable::new(), false, &[]);
        assert_eq!(known[3], Some(Fact::between(0, 255)));
        assert_eq!(known[7], Some(Fact::between(1, 255)));
    }

    /// `while (last != 192) { last = byte; if (byte == 192) break; }`: what goes round is never 192.
    #[test]
    fn what_a_loop_goes_round_with_is_not_what_has_ended_it() {
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
            ranges(&body, &TypeTable::new(), false, &[])
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
        let known = ranges(&body, &TypeTable::new(), false, &[]);
        assert_eq!(known[1], Some(Fact::between(0, 7)));
        assert_eq!(known[3], Some(Fact::between(1, 8)));
    }
}
