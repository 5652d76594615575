//! No run of a fast path is endless: where a loop of it begins, iterations are counted, and the path is left before one
//! too many ("Fast Paths in Concurrent Programs", section 4.4). One count serves all loops, so that it bounds each.

use crate::path_exit::IterationCountPlacement;
use crate::product::NodeEnd;
use quaject_esp_ir::cfg::{Regions, edges, edges_mut, successors};
use quaject_esp_ir::ir::{
    BinaryOp, Block, BlockId, Body, Edge, Instruction, Op, Terminator, Type, TypeId, TypeTable, Value, ValueData,
};
use quaject_esp_ir::visit::{op_values_mut, terminator_values_mut};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Of this many iterations one is kept for loops within others that have begun when no more are left: it is better to leave
/// where the loop around them begins, as there everybody is near its start, and the next run can begin at once.
const KEPT: u32 = 16;

/// Where a loop is counted.
struct Head {
    block: usize,
    /// If it is within another: the blocks of it. Whoever comes to it the first time has been counted.
    inside: Option<Vec<usize>>,
}

/// Counts iterations in a path's code, at most so many. The entry block's jump passes the bound on. What it begins with
/// as well: some iterations may be kept for loops within others.
pub(super) fn bound(
    mut body: Body,
    ends: &[NodeEnd],
    types: &TypeTable,
    bound: u32,
    iteration_counts: IterationCountPlacement,
) -> (Body, u32) {
    let heads = match iteration_counts {
        IterationCountPlacement::LoopHeads | IterationCountPlacement::Forced(_) => loop_heads(&body, ends, types),
        IterationCountPlacement::EveryNode => {
            ends.iter().map(|end| Head { block: end.block.0 as usize, inside: None }).collect()
        }
    };
    let kept = bound / KEPT;
    let mut most = bound;
    for head in &heads {
        let end = ends.iter().find(|end| end.block.0 as usize == head.block).expect("loops are counted at nodes");
        match &head.inside {
            None => count_there(&mut body, end),
            Some(inside) => match Turns::of(&body, types, end.block, inside) {
                Some(turns) => {
                    count_at_once(&mut body, end, inside, turns, kept);
                    most = bound - kept;
                }
                None => count_on_the_way_back(&mut body, end, inside),
            },
        }
    }
    // The count begins as a constant of the entry block.
    for instruction in &mut body.blocks[0].instructions {
        if let Op::Constant(value) = &mut instruction.op
            && ends.first().is_some_and(|end| Some(end.first_count) == instruction.result)
        {
            // One more, as the test comes after the count.
            *value = i128::from(most.saturating_add(1));
        }
    }
    (body, most)
}

/// Counts at a node.
fn count_there(body: &mut Body, end: &NodeEnd) {
    let block = &mut body.blocks[end.block.0 as usize];
    let location = block.location;
    let rest = Block {
        parameters: Vec::new(),
        instructions: std::mem::take(&mut block.instructions),
        terminator: std::mem::replace(&mut block.terminator, Terminator::End),
        location,
    };
    // What was the parameter is what is left behind the test.
    let given = value(body, TypeTable::U32);
    let parameters = &mut body.blocks[end.block.0 as usize].parameters;
    let parameter = parameters.iter_mut().find(|parameter| **parameter == end.count);
    *parameter.expect("a node is given the count") = given;
    let next = Edge { to: BlockId(body.blocks.len() as u32), arguments: Vec::new() };
    body.blocks.push(rest);
    count(body, end, end.block, (given, end.count), next);
}

/// Counts on the ways back to a node.
fn count_on_the_way_back(body: &mut Body, end: &NodeEnd, inside: &[usize]) {
    let before = Before::new(body, end, |from| inside.contains(&from));
    let left = value(body, TypeTable::U32);
    let next = before.to_node(Some(left));
    count(body, end, before.block, (before.count, left), next);
}

/// Counts at the beginning of a block, before there is anything else in it: what is left of what was given.
fn count(body: &mut Body, end: &NodeEnd, at: BlockId, (given, left): (Value, Value), next: Edge) {
    let location = body.blocks[at.0 as usize].location;
    let (zero, one, is_over) = (value(body, TypeTable::U32), value(body, TypeTable::U32), value(body, TypeTable::BOOL));
    let op = |result: Value, op: Op| Instruction { result: Some(result), op, location };
    let block = &mut body.blocks[at.0 as usize];
    // Counted before the test, so that machines need one instruction for both.
    block.instructions = vec![
        op(one, Op::Constant(1)),
        op(left, Op::Binary(BinaryOp::Subtract, given, one)),
        op(zero, Op::Constant(0)),
        op(is_over, Op::Binary(BinaryOp::Equal, left, zero)),
    ];
    block.terminator = Terminator::Branch { condition: is_over, then: to(end.stub), otherwise: next };
}

/// A block through which some ways go to a node.
struct Before {
    block: BlockId,
    node: BlockId,
    /// What it is given, and how that is called at the node.
    own: Vec<Value>,
    of_node: Vec<Value>,
    /// The count that it is given.
    count: Value,
}

impl Before {
    /// A block without code, through which the ways from some blocks go from now on. The path is left there then, not at
    /// the node.
    fn new(body: &mut Body, end: &NodeEnd, goes_through: impl Fn(usize) -> bool) -> Before {
        let node = &body.blocks[end.block.0 as usize];
        let (of_node, location) = (node.parameters.clone(), node.location);
        let own: Vec<Value> =
            of_node.iter().map(|parameter| value(body, body.values[parameter.0 as usize].ty)).collect();
        let block = BlockId(body.blocks.len() as u32);
        for (_, from) in body.blocks.iter_mut().enumerate().filter(|(from, _)| goes_through(*from)) {
            let edges = edges_mut(&mut from.terminator);
            edges.into_iter().filter(|edge| edge.to == end.block).for_each(|edge| edge.to = block);
        }
        body.blocks.push(Block {
            parameters: own.clone(),
            instructions: Vec::new(),
            terminator: Terminator::End,
            location,
        });
        let mut before = Before { block, node: end.block, own, of_node, count: end.count };
        before.count = before.stands_for(end.count);
        let stub = &mut body.blocks[end.stub.0 as usize];
        let mut replace = |value: &mut Value| *value = before.stands_for(*value);
        stub.instructions.iter_mut().for_each(|instruction| op_values_mut(&mut instruction.op, &mut replace));
        terminator_values_mut(&mut stub.terminator, &mut replace);
        before
    }

    /// What a value of the node is here.
    fn stands_for(&self, value: Value) -> Value {
        self.of_node.iter().position(|of_node| *of_node == value).map_or(value, |position| self.own[position])
    }

    /// The way to the node, with another count.
    fn to_node(&self, count: Option<Value>) -> Edge {
        let count = count.unwrap_or(self.count);
        let arguments = self.own.iter().map(|own| if *own == self.count { count } else { *own }).collect();
        Edge { to: self.node, arguments }
    }
}

/// How often a loop goes round if it is not left before: from one number to another, one at a time. Parameters of its
/// node, or constants.
struct Turns {
    from: Value,
    until: Bound,
}

/// A number that does not change in a loop.
enum Bound {
    Parameter(Value),
    Constant(i128),
}

impl Turns {
    /// Of a loop that begins with a test whether to go on.
    fn of(body: &Body, types: &TypeTable, node: BlockId, inside: &[usize]) -> Option<Turns> {
        let block = &body.blocks[node.0 as usize];
        let Terminator::Branch { condition, then, otherwise } = &block.terminator else { return None };
        let is_inside = |edge: &Edge| inside.contains(&(edge.to.0 as usize));
        if !is_inside(then) || is_inside(otherwise) {
            return None;
        }
        let definition = |value: Value, at: usize| {
            let found = body.blocks[at].instructions.iter().find(|instruction| instruction.result == Some(value));
            found.map(|instruction| &instruction.op)
        };
        let Op::Binary(BinaryOp::Less, from, until) = definition(*condition, node.0 as usize)? else { return None };
        let is_number = match types.get(body.values[from.0 as usize].ty) {
            Type::Int(kind) => kind.bits() <= 32,
            _ => false,
        };
        let same = same_values(body, node, inside)?;
        let is_next = |value: Value, at: usize| match definition(value, at) {
            Some(Op::Binary(BinaryOp::Add, a, b)) => {
                same.get(a) == Some(from) && matches!(definition(*b, at), Some(Op::Constant(1)))
            }
            _ => false,
        };
        let position = |value: &Value| block.parameters.iter().position(|parameter| parameter == value);
        // On all ways back.
        let back = |holds: &dyn Fn(usize, &Edge) -> bool| {
            let edges = inside.iter().flat_map(|from| {
                let edges = edges(&body.blocks[*from].terminator);
                edges.into_iter().map(move |edge| (*from, edge))
            });
            edges.filter(|(_, edge)| edge.to == node).all(|(from, edge)| holds(from, edge))
        };
        let counts = position(from)?;
        if !is_number || !back(&|from, edge| is_next(edge.arguments[counts], from)) {
            return None;
        }
        let until = match (position(until), definition(*until, node.0 as usize)) {
            (Some(position), _) => {
                let stays = back(&|_, edge| same.get(&edge.arguments[position]) == Some(until));
                stays.then_some(Bound::Parameter(*until))?
            }
            (None, Some(Op::Constant(constant))) => Bound::Constant(*constant),
            (None, _) => return None,
        };
        Some(Turns { from: *from, until })
    }
}

/// What values of a loop's blocks are, if they are parameters of its node that were handed on. None if there is another
/// loop within it.
fn same_values(body: &Body, node: BlockId, inside: &[usize]) -> Option<FxHashMap<Value, Value>> {
    let mut same: FxHashMap<Value, Option<Value>> =
        body.blocks[node.0 as usize].parameters.iter().map(|parameter| (*parameter, Some(*parameter))).collect();
    let next = |block: usize| {
        let edges = edges(&body.blocks[block].terminator);
        edges.into_iter().filter(|edge| edge.to != node && inside.contains(&(edge.to.0 as usize))).collect::<Vec<_>>()
    };
    let mut ways: FxHashMap<usize, usize> = FxHashMap::default();
    inside.iter().flat_map(|block| next(*block)).for_each(|edge| *ways.entry(edge.to.0 as usize).or_default() += 1);
    let mut work = vec![node.0 as usize];
    let mut done = 0;
    while let Some(block) = work.pop() {
        done += 1;
        for edge in next(block) {
            let to = edge.to.0 as usize;
            for (parameter, argument) in body.blocks[to].parameters.iter().zip(&edge.arguments) {
                let what = same.get(argument).copied().flatten();
                let known = same.entry(*parameter).or_insert(what);
                if *known != what {
                    *known = None;
                }
            }
            let ways = ways.get_mut(&to).expect("ways were counted");
            *ways -= 1;
            if *ways == 0 {
                work.push(to);
            }
        }
    }
    let same = same.into_iter().filter_map(|(value, what)| what.map(|what| (value, what))).collect();
    (done == inside.len()).then_some(same)
}

/// Counts all turns of a loop before it. If fewer iterations are left, and no more turns are to come than are kept, it
/// is done all the same, and the path is left where the loop around it begins.
fn count_at_once(body: &mut Body, end: &NodeEnd, inside: &[usize], turns: Turns, kept: u32) {
    let before = Before::new(body, end, |from| !inside.contains(&from));
    let location = body.blocks[before.block.0 as usize].location;
    let [wide_from, wide_until, count, left, most, one] = [TypeTable::U32; 6].map(|ty| value(body, ty));
    let [goes_round, fits, is_kept] = [TypeTable::BOOL; 3].map(|ty| value(body, ty));
    let op = |result: Value, op: Op| Instruction { result: Some(result), op, location };
    let from = before.stands_for(turns.from);
    let ty = body.values[from.0 as usize].ty;
    let mut first = Vec::new();
    let until = match turns.until {
        Bound::Parameter(until) => before.stands_for(until),
        Bound::Constant(constant) => {
            let until = value(body, ty);
            first.push(op(until, Op::Constant(constant)));
            until
        }
    };
    first.push(op(goes_round, Op::Binary(BinaryOp::Less, from, until)));
    let mut block = |instructions: Vec<Instruction>, terminator: Terminator| {
        body.blocks.push(Block { parameters: Vec::new(), instructions, terminator, location });
        to(BlockId(body.blocks.len() as u32 - 1))
    };
    let last = block(vec![op(one, Op::Constant(1))], Terminator::Jump(before.to_node(Some(one))));
    let few = block(
        vec![op(most, Op::Constant(i128::from(kept))), op(is_kept, Op::Binary(BinaryOp::LessEqual, count, most))],
        Terminator::Branch { condition: is_kept, then: last, otherwise: to(end.stub) },
    );
    let enough = block(
        vec![op(left, Op::Binary(BinaryOp::Subtract, before.count, count))],
        Terminator::Jump(before.to_node(Some(left))),
    );
    let counted = block(
        vec![
            op(wide_from, Op::Convert(from)),
            op(wide_until, Op::Convert(until)),
            op(count, Op::Binary(BinaryOp::Subtract, wide_until, wide_from)),
            op(fits, Op::Binary(BinaryOp::Less, count, before.count)),
        ],
        Terminator::Branch { condition: fits, then: enough, otherwise: few },
    );
    let block = &mut body.blocks[before.block.0 as usize];
    block.instructions = first;
    block.terminator = Terminator::Branch { condition: goes_round, then: counted, otherwise: before.to_node(None) };
}

fn to(block: BlockId) -> Edge {
    Edge { to: block, arguments: Vec::new() }
}

fn value(body: &mut Body, ty: TypeId) -> Value {
    body.values.push(ValueData { ty, name: None });
    Value(body.values.len() as u32 - 1)
}

/// The graph of a path's code, of which some blocks are cut out.
struct Graph {
    next: Vec<Vec<usize>>,
    cut: Vec<bool>,
}

impl Graph {
    /// Per block that some loop goes through: which blocks it is in one component with, and ways into it from there times
    /// ways out of it to there.
    fn loops(&self) -> Vec<Option<(usize, usize)>> {
        let components = components(&self.next, &self.cut);
        let mut ways = vec![(0usize, 0usize); self.next.len()];
        for (block, targets) in self.next.iter().enumerate().filter(|(block, _)| !self.cut[*block]) {
            for to in targets.iter().filter(|to| !self.cut[**to] && components[**to] == components[block]) {
                ways[block].1 += 1;
                ways[*to].0 += 1;
            }
        }
        let loops = ways.iter().enumerate().map(|(block, (into, out))| {
            let is_in_loop = !self.cut[block] && *into > 0 && *out > 0;
            is_in_loop.then_some((components[block], into * out))
        });
        loops.collect()
    }

    /// Of every component that has a loop the block with most ways in and out; their component.
    fn best(&self, can_count: &[bool]) -> Vec<(usize, usize)> {
        let mut best: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
        for (block, of) in self.loops().into_iter().enumerate() {
            let Some((component, ways)) = of.filter(|_| can_count[block]) else { continue };
            let known = best.entry(component).or_insert((block, ways));
            if known.1 < ways {
                *known = (block, ways);
            }
        }
        best.into_iter().map(|(component, (block, _))| (block, component)).collect()
    }

    /// How many blocks more have to be cut out until there is no loop.
    fn more(&mut self, can_count: &[bool]) -> usize {
        let before = self.cut.clone();
        let mut more = 0;
        loop {
            let best = self.best(can_count);
            if best.is_empty() {
                self.cut = before;
                return more;
            }
            more += best.len();
            best.iter().for_each(|(block, _)| self.cut[*block] = true);
        }
    }
}

/// How many blocks are tried instead of the one with most ways.
const MOST_TRIED: usize = 32;

/// Blocks without which the code has no loops: of every set of blocks that reach each other, the one with most ways in
/// and out, then of what is left likewise. If the first one is where an inner loop begins, one of the loop around it is
/// better where members are closer to their starts.
fn loop_heads(body: &Body, ends: &[NodeEnd], types: &TypeTable) -> Vec<Head> {
    let count = body.blocks.len();
    let next = body
        .blocks
        .iter()
        .map(|block| successors(&block.terminator, Regions::Include).into_iter().map(|next| next.0 as usize).collect())
        .collect();
    let mut graph = Graph { next, cut: vec![false; count] };
    let mut can_count = vec![false; count];
    ends.iter().for_each(|end| can_count[end.block.0 as usize] = true);
    let mut heads: Vec<Head> = Vec::new();
    // Outermost loops: which blocks they are made of.
    let outer = graph.loops();
    for (block, component) in graph.best(&can_count) {
        let away = |block: usize| ends.iter().find(|end| end.block.0 as usize == block).map_or(0, |end| end.away);
        let of_component = |block: usize| outer[block].map_or(usize::MAX, |(of, _)| of);
        let is_better = |other: &usize| away(*other) < away(block) && of_component(*other) == component;
        let mut better: Vec<usize> = (0..count).filter(|other| can_count[*other]).filter(is_better).collect();
        better.sort_by_key(|other| away(*other));
        better.truncate(MOST_TRIED);
        let mut without = |other: usize| {
            graph.cut[other] = true;
            let needs = graph.more(&can_count);
            let rest = graph.loops();
            graph.cut[other] = false;
            let size = (0..count).filter(|block| rest[*block].is_some() && of_component(*block) == component).count();
            (needs, size, rest[block].is_some())
        };
        let most = if better.is_empty() { 0 } else { without(block).0 + 1 };
        let size = (0..count).filter(|block| of_component(*block) == component).count();
        let tried = better.into_iter().map(|other| (without(other), other));
        // What is left of the loops is small then, and the other one is in an inner loop.
        let tried = tried.filter(|((needs, rest, is_inner), _)| *needs <= most && 2 * rest <= size && *is_inner);
        let block = tried.min_by_key(|((_, rest, _), other)| (away(*other), *rest)).map_or(block, |(_, other)| other);
        heads.push(Head { block, inside: None });
    }
    heads.iter().for_each(|head| graph.cut[head.block] = true);
    loop {
        let best = graph.best(&can_count);
        if best.is_empty() {
            return heads;
        }
        let loops = graph.loops();
        for (block, component) in best {
            let inside: Vec<usize> =
                (0..count).filter(|other| loops[*other].is_some_and(|(of, _)| of == component)).collect();
            // Best is where it is known how often the whole of it goes round.
            let mut nodes = inside.iter().copied().filter(|other| can_count[*other]);
            let knows = |other: &usize| Turns::of(body, types, BlockId(*other as u32), &inside).is_some();
            let block = nodes.find(knows).unwrap_or(block);
            heads.push(Head { block, inside: Some(inside) });
            graph.cut[block] = true;
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
