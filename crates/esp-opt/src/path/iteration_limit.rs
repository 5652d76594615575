//! Bounds every run of a fast path: iterations are counted at counting blocks, and the path takes a side exit at the
//! limit ("Fast Paths in Concurrent Programs", section 4.4). One counter serves all loops, and so bounds each. The
//! counting blocks are a feedback vertex set of the control-flow graph, chosen greedily. An inner loop whose trip count
//! is known before it starts is counted once, in its preheader.

use crate::path_exit::IterationCountPlacement;
use crate::product::LimitExit;
use quaject_esp_ir::cfg::{Regions, edges, edges_mut, successors};
use quaject_esp_ir::graph::components;
use quaject_esp_ir::ir::{
    BinaryOp, Block, BlockId, Body, Edge, Instruction, Op, Terminator, Type, TypeId, TypeTable, Value, ValueData,
};
use quaject_esp_ir::visit::{op_values_mut, terminator_values_mut};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// The reciprocal of the fraction of iterations that is reserved for inner loops that have started when no other
/// iterations remain: an exit at the counting block of the outer loop is preferable, because the members are close to
/// their starts there and the path can be entered again at once.
const RESERVE_DIVISOR: u32 = 16;

/// A block at which a loop is counted.
struct CountingBlock {
    block: usize,
    /// Of an inner loop: its blocks. The outer loop counts the entry to it.
    inside: Option<Vec<usize>>,
}

/// Makes a path's code count its iterations down from at most `limit`. Also returns the initial count, which is lower
/// if iterations are reserved for inner loops.
pub(super) fn limit_iterations(
    mut body: Body,
    limit_exits: &[LimitExit],
    types: &TypeTable,
    limit: u32,
    iteration_counts: IterationCountPlacement,
) -> (Body, u32) {
    let counting_blocks = match iteration_counts {
        IterationCountPlacement::FeedbackVertices | IterationCountPlacement::Forced(_) => {
            feedback_vertices(&body, limit_exits, types)
        }
        IterationCountPlacement::EveryNode => {
            limit_exits.iter().map(|exit| CountingBlock { block: exit.block.0 as usize, inside: None }).collect()
        }
    };
    let reserved = limit / RESERVE_DIVISOR;
    let mut initial = limit;
    for counting in &counting_blocks {
        let exit = limit_exits
            .iter()
            .find(|exit| exit.block.0 as usize == counting.block)
            .expect("loops are counted at nodes");
        match &counting.inside {
            None => count_at_block(&mut body, exit),
            Some(inside) => match TripCount::of(&body, types, exit.block, inside) {
                Some(trip_count) => {
                    count_in_preheader(&mut body, exit, inside, trip_count, reserved);
                    initial = limit - reserved;
                }
                None => count_on_back_edges(&mut body, exit, inside),
            },
        }
    }
    // The count is initialised by a constant of the entry block.
    for instruction in &mut body.blocks[0].instructions {
        if let Op::Constant(value) = &mut instruction.op
            && limit_exits.first().is_some_and(|exit| Some(exit.initial_count) == instruction.result)
        {
            // One more, as the test follows the decrement.
            *value = i128::from(initial.saturating_add(1));
        }
    }
    (body, initial)
}

/// Counts at a counting block.
fn count_at_block(body: &mut Body, exit: &LimitExit) {
    let block = &mut body.blocks[exit.block.0 as usize];
    let location = block.location;
    let rest = Block {
        parameters: Vec::new(),
        instructions: std::mem::take(&mut block.instructions),
        terminator: std::mem::replace(&mut block.terminator, Terminator::End),
        location,
    };
    // The former parameter is the decremented count.
    let received = create_value(body, TypeTable::U32);
    let parameters = &mut body.blocks[exit.block.0 as usize].parameters;
    let parameter = parameters.iter_mut().find(|parameter| **parameter == exit.iteration_count);
    *parameter.expect("every node has a count parameter") = received;
    let next = Edge { to: BlockId(body.blocks.len() as u32), arguments: Vec::new() };
    body.blocks.push(rest);
    emit_count(body, exit, exit.block, (received, exit.iteration_count), next);
}

/// Counts on the back edges to a counting block.
fn count_on_back_edges(body: &mut Body, exit: &LimitExit, inside: &[usize]) {
    let before = InterposedBlock::new(body, exit, |from| inside.contains(&from));
    let remaining = create_value(body, TypeTable::U32);
    let next = before.to_node(Some(remaining));
    emit_count(body, exit, before.block, (before.count, remaining), next);
}

/// Emits the decrement of the received count and the test at the start of a block that is still empty.
fn emit_count(body: &mut Body, exit: &LimitExit, at: BlockId, (received, remaining): (Value, Value), next: Edge) {
    let location = body.blocks[at.0 as usize].location;
    let (zero, one, is_exhausted) =
        (create_value(body, TypeTable::U32), create_value(body, TypeTable::U32), create_value(body, TypeTable::BOOL));
    let op = |result: Value, op: Op| Instruction { result: Some(result), op, location };
    let block = &mut body.blocks[at.0 as usize];
    // The decrement precedes the test, so that machines need one instruction for both.
    block.instructions = vec![
        op(one, Op::Constant(1)),
        op(remaining, Op::Binary(BinaryOp::Subtract, received, one)),
        op(zero, Op::Constant(0)),
        op(is_exhausted, Op::Binary(BinaryOp::Equal, remaining, zero)),
    ];
    block.terminator = Terminator::Branch { condition: is_exhausted, then: edge_to(exit.stub), otherwise: next };
}

/// A block interposed on some of the edges to a node.
struct InterposedBlock {
    block: BlockId,
    node: BlockId,
    /// Its parameters, and those of the node that they are passed as.
    own: Vec<Value>,
    of_node: Vec<Value>,
    /// Its parameter with the count.
    count: Value,
}

impl InterposedBlock {
    /// Interposes an empty block on the edges from some blocks. The exit at the limit is then taken there, not at the
    /// node.
    fn new(body: &mut Body, exit: &LimitExit, is_redirected: impl Fn(usize) -> bool) -> InterposedBlock {
        let node = &body.blocks[exit.block.0 as usize];
        let (of_node, location) = (node.parameters.clone(), node.location);
        let own: Vec<Value> =
            of_node.iter().map(|parameter| create_value(body, body.values[parameter.0 as usize].ty)).collect();
        let block = BlockId(body.blocks.len() as u32);
        for (_, from) in body.blocks.iter_mut().enumerate().filter(|(from, _)| is_redirected(*from)) {
            let edges = edges_mut(&mut from.terminator);
            edges.into_iter().filter(|edge| edge.to == exit.block).for_each(|edge| edge.to = block);
        }
        body.blocks.push(Block {
            parameters: own.clone(),
            instructions: Vec::new(),
            terminator: Terminator::End,
            location,
        });
        let mut before = InterposedBlock { block, node: exit.block, own, of_node, count: exit.iteration_count };
        before.count = before.own_value(exit.iteration_count);
        let stub = &mut body.blocks[exit.stub.0 as usize];
        let mut replace = |value: &mut Value| *value = before.own_value(*value);
        stub.instructions.iter_mut().for_each(|instruction| op_values_mut(&mut instruction.op, &mut replace));
        terminator_values_mut(&mut stub.terminator, &mut replace);
        before
    }

    /// The own parameter for a parameter of the node.
    fn own_value(&self, value: Value) -> Value {
        self.of_node.iter().position(|of_node| *of_node == value).map_or(value, |position| self.own[position])
    }

    /// The edge to the node, with another count.
    fn to_node(&self, count: Option<Value>) -> Edge {
        let count = count.unwrap_or(self.count);
        let arguments = self.own.iter().map(|own| if *own == self.count { count } else { *own }).collect();
        Edge { to: self.node, arguments }
    }
}

/// The trip count of a loop that ends only at its bound: from one number to another, by steps of one. Both are
/// parameters of its node, or constants.
struct TripCount {
    from: Value,
    until: InvariantBound,
}

/// The loop-invariant bound of a counter.
enum InvariantBound {
    Parameter(Value),
    Constant(i128),
}

impl TripCount {
    /// The trip count of a loop whose head tests whether to continue.
    fn of(body: &Body, types: &TypeTable, node: BlockId, inside: &[usize]) -> Option<TripCount> {
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
        let copy_of = copies_of_parameters(body, node, inside)?;
        let is_next = |value: Value, at: usize| match definition(value, at) {
            Some(Op::Binary(BinaryOp::Add, a, b)) => {
                copy_of.get(a) == Some(from) && matches!(definition(*b, at), Some(Op::Constant(1)))
            }
            _ => false,
        };
        let position = |value: &Value| block.parameters.iter().position(|parameter| parameter == value);
        // Whether a predicate holds on all back edges.
        let on_back_edges = |holds: &dyn Fn(usize, &Edge) -> bool| {
            let edges = inside.iter().flat_map(|from| {
                let edges = edges(&body.blocks[*from].terminator);
                edges.into_iter().map(move |edge| (*from, edge))
            });
            edges.filter(|(_, edge)| edge.to == node).all(|(from, edge)| holds(from, edge))
        };
        let counts = position(from)?;
        if !is_number || !on_back_edges(&|from, edge| is_next(edge.arguments[counts], from)) {
            return None;
        }
        let until = match (position(until), definition(*until, node.0 as usize)) {
            (Some(position), _) => {
                let is_invariant = on_back_edges(&|_, edge| copy_of.get(&edge.arguments[position]) == Some(until));
                is_invariant.then_some(InvariantBound::Parameter(*until))?
            }
            (None, Some(Op::Constant(constant))) => InvariantBound::Constant(*constant),
            (None, _) => return None,
        };
        Some(TripCount { from: *from, until })
    }
}

/// The values of a loop's blocks that are copies of parameters of its node, with the parameter. None if the loop
/// contains another loop.
fn copies_of_parameters(body: &Body, node: BlockId, inside: &[usize]) -> Option<FxHashMap<Value, Value>> {
    let mut copy_of: FxHashMap<Value, Option<Value>> =
        body.blocks[node.0 as usize].parameters.iter().map(|parameter| (*parameter, Some(*parameter))).collect();
    let next = |block: usize| {
        let edges = edges(&body.blocks[block].terminator);
        edges.into_iter().filter(|edge| edge.to != node && inside.contains(&(edge.to.0 as usize))).collect::<Vec<_>>()
    };
    let mut pending_edges: FxHashMap<usize, usize> = FxHashMap::default();
    inside
        .iter()
        .flat_map(|block| next(*block))
        .for_each(|edge| *pending_edges.entry(edge.to.0 as usize).or_default() += 1);
    let mut worklist = vec![node.0 as usize];
    let mut visited = 0;
    while let Some(block) = worklist.pop() {
        visited += 1;
        for edge in next(block) {
            let to = edge.to.0 as usize;
            for (parameter, argument) in body.blocks[to].parameters.iter().zip(&edge.arguments) {
                let original = copy_of.get(argument).copied().flatten();
                let known = copy_of.entry(*parameter).or_insert(original);
                if *known != original {
                    *known = None;
                }
            }
            let pending = pending_edges.get_mut(&to).expect("all edges were counted");
            *pending -= 1;
            if *pending == 0 {
                worklist.push(to);
            }
        }
    }
    let copy_of =
        copy_of.into_iter().filter_map(|(value, original)| original.map(|original| (value, original))).collect();
    (visited == inside.len()).then_some(copy_of)
}

/// Counts all iterations of an inner loop in its preheader. If fewer remain, but no more are needed than are reserved,
/// the loop runs nevertheless, and the path exits at the counting block of the outer loop.
fn count_in_preheader(body: &mut Body, exit: &LimitExit, inside: &[usize], trip_count: TripCount, reserved: u32) {
    let before = InterposedBlock::new(body, exit, |from| !inside.contains(&from));
    let location = body.blocks[before.block.0 as usize].location;
    let [wide_from, wide_until, count, remaining, max, one] = [TypeTable::U32; 6].map(|ty| create_value(body, ty));
    let [is_entered, is_below, is_reserved] = [TypeTable::BOOL; 3].map(|ty| create_value(body, ty));
    let op = |result: Value, op: Op| Instruction { result: Some(result), op, location };
    let from = before.own_value(trip_count.from);
    let ty = body.values[from.0 as usize].ty;
    let mut first = Vec::new();
    let until = match trip_count.until {
        InvariantBound::Parameter(until) => before.own_value(until),
        InvariantBound::Constant(constant) => {
            let until = create_value(body, ty);
            first.push(op(until, Op::Constant(constant)));
            until
        }
    };
    first.push(op(is_entered, Op::Binary(BinaryOp::Less, from, until)));
    let mut block = |instructions: Vec<Instruction>, terminator: Terminator| {
        body.blocks.push(Block { parameters: Vec::new(), instructions, terminator, location });
        edge_to(BlockId(body.blocks.len() as u32 - 1))
    };
    let last = block(vec![op(one, Op::Constant(1))], Terminator::Jump(before.to_node(Some(one))));
    let few = block(
        vec![op(max, Op::Constant(i128::from(reserved))), op(is_reserved, Op::Binary(BinaryOp::LessEqual, count, max))],
        Terminator::Branch { condition: is_reserved, then: last, otherwise: edge_to(exit.stub) },
    );
    let enough = block(
        vec![op(remaining, Op::Binary(BinaryOp::Subtract, before.count, count))],
        Terminator::Jump(before.to_node(Some(remaining))),
    );
    let counted = block(
        vec![
            op(wide_from, Op::Convert(from)),
            op(wide_until, Op::Convert(until)),
            op(count, Op::Binary(BinaryOp::Subtract, wide_until, wide_from)),
            op(is_below, Op::Binary(BinaryOp::Less, count, before.count)),
        ],
        Terminator::Branch { condition: is_below, then: enough, otherwise: few },
    );
    let block = &mut body.blocks[before.block.0 as usize];
    block.instructions = first;
    block.terminator = Terminator::Branch { condition: is_entered, then: counted, otherwise: before.to_node(None) };
}

fn edge_to(block: BlockId) -> Edge {
    Edge { to: block, arguments: Vec::new() }
}

fn create_value(body: &mut Body, ty: TypeId) -> Value {
    body.values.push(ValueData { ty, name: None });
    Value(body.values.len() as u32 - 1)
}

/// The control-flow graph of a path, without the blocks that are removed from it.
struct PathGraph {
    next: Vec<Vec<usize>>,
    removed: Vec<bool>,
}

impl PathGraph {
    /// Per block: its strongly connected component, by the first block in it.
    fn component_of(&self) -> Vec<usize> {
        let is_kept = |block: &usize| !self.removed[*block];
        let kept = |block: usize| if self.removed[block] { &[][..] } else { &self.next[block] };
        let next: Vec<Vec<usize>> =
            (0..self.next.len()).map(|block| kept(block).iter().copied().filter(is_kept).collect()).collect();
        let mut component_of = vec![0; next.len()];
        for component in components(&next) {
            let first = component.first().copied().unwrap_or_default();
            component.iter().for_each(|block| component_of[*block] = first);
        }
        component_of
    }

    /// Per block on a cycle: its strongly connected component, and the product of its degrees within that.
    fn loops(&self) -> Vec<Option<(usize, usize)>> {
        let component_of = self.component_of();
        let mut degrees = vec![(0usize, 0usize); self.next.len()];
        for (block, targets) in self.next.iter().enumerate().filter(|(block, _)| !self.removed[*block]) {
            for to in targets.iter().filter(|to| !self.removed[**to] && component_of[**to] == component_of[block]) {
                degrees[block].1 += 1;
                degrees[*to].0 += 1;
            }
        }
        let loops = degrees.iter().enumerate().map(|(block, (into, out))| {
            let is_in_loop = !self.removed[block] && *into > 0 && *out > 0;
            is_in_loop.then_some((component_of[block], into * out))
        });
        loops.collect()
    }

    /// Per cyclic component: the block with the largest product of degrees, and the component.
    fn greedy_choice(&self, can_count: &[bool]) -> Vec<(usize, usize)> {
        let mut best: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
        for (block, of) in self.loops().into_iter().enumerate() {
            let Some((component, degree)) = of.filter(|_| can_count[block]) else { continue };
            let known = best.entry(component).or_insert((block, degree));
            if known.1 < degree {
                *known = (block, degree);
            }
        }
        best.into_iter().map(|(component, (block, _))| (block, component)).collect()
    }

    /// How many more blocks the greedy choice removes until the graph is acyclic.
    fn remaining_choices(&mut self, can_count: &[bool]) -> usize {
        let before = self.removed.clone();
        let mut removals = 0;
        loop {
            let best = self.greedy_choice(can_count);
            if best.is_empty() {
                self.removed = before;
                return removals;
            }
            removals += best.len();
            best.iter().for_each(|(block, _)| self.removed[*block] = true);
        }
    }
}

/// Alternatives to the greedy choice that are tried.
const MAX_ALTERNATIVES: usize = 32;

/// A feedback vertex set: of every cyclic component the block with the largest product of degrees, then of the
/// remaining components likewise. If the first choice is in an inner loop, a block of the outer loop at which
/// the members are closer to their starts is better.
fn feedback_vertices(body: &Body, limit_exits: &[LimitExit], types: &TypeTable) -> Vec<CountingBlock> {
    let count = body.blocks.len();
    let next = body
        .blocks
        .iter()
        .map(|block| successors(&block.terminator, Regions::Include).into_iter().map(|next| next.0 as usize).collect())
        .collect();
    let mut graph = PathGraph { next, removed: vec![false; count] };
    let mut can_count = vec![false; count];
    limit_exits.iter().for_each(|exit| can_count[exit.block.0 as usize] = true);
    let mut counting_blocks: Vec<CountingBlock> = Vec::new();
    // The blocks of the outermost loops.
    let outer = graph.loops();
    for (block, component) in graph.greedy_choice(&can_count) {
        let distance = |block: usize| {
            limit_exits.iter().find(|exit| exit.block.0 as usize == block).map_or(0, |exit| exit.distance)
        };
        let of_component = |block: usize| outer[block].map_or(usize::MAX, |(of, _)| of);
        let is_better = |other: &usize| distance(*other) < distance(block) && of_component(*other) == component;
        let mut better: Vec<usize> = (0..count).filter(|other| can_count[*other]).filter(is_better).collect();
        better.sort_by_key(|other| distance(*other));
        better.truncate(MAX_ALTERNATIVES);
        let mut without = |other: usize| {
            graph.removed[other] = true;
            let removals = graph.remaining_choices(&can_count);
            let rest = graph.loops();
            graph.removed[other] = false;
            let size = (0..count).filter(|block| rest[*block].is_some() && of_component(*block) == component).count();
            (removals, size, rest[block].is_some())
        };
        let max_removals = if better.is_empty() { 0 } else { without(block).0 + 1 };
        let size = (0..count).filter(|block| of_component(*block) == component).count();
        let tried = better.into_iter().map(|other| (without(other), other));
        // The remaining cycles are small then, and the greedy choice is in an inner loop.
        let tried =
            tried.filter(|((removals, rest, is_inner), _)| *removals <= max_removals && 2 * rest <= size && *is_inner);
        let block =
            tried.min_by_key(|((_, rest, _), other)| (distance(*other), *rest)).map_or(block, |(_, other)| other);
        counting_blocks.push(CountingBlock { block, inside: None });
    }
    counting_blocks.iter().for_each(|counting| graph.removed[counting.block] = true);
    loop {
        let best = graph.greedy_choice(&can_count);
        if best.is_empty() {
            return counting_blocks;
        }
        let loops = graph.loops();
        for (block, component) in best {
            let inside: Vec<usize> =
                (0..count).filter(|other| loops[*other].is_some_and(|(of, _)| of == component)).collect();
            // A block whose trip count is known is best.
            let mut nodes = inside.iter().copied().filter(|other| can_count[*other]);
            let has_trip_count = |other: &usize| TripCount::of(body, types, BlockId(*other as u32), &inside).is_some();
            let block = nodes.find(has_trip_count).unwrap_or(block);
            counting_blocks.push(CountingBlock { block, inside: Some(inside) });
            graph.removed[block] = true;
        }
    }
}
