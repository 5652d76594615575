//! The order of blocks in machine code, and the properties of it that the other analyses use: points, estimated
//! frequencies, loop headers, entries, operands. Frequencies are estimated from static branch probabilities (Wu and
//! Larus, "Static Branch Frequency and Program Profile Analysis", 1994). Knows no machine.

use quaject_esp_exec::native::positions;
use quaject_esp_ir::cfg::{region_blocks, region_entries};
use quaject_esp_ir::ir::{BinaryOp, BlockId, Body, Edge, Op, Terminator, Value, Wait};
use quaject_esp_ir::visit::{op_values, terminator_values};

/// The index of an instruction or terminator in the order of emission.
pub(super) type Point = usize;

/// A body in the order in which it is emitted.
pub(super) struct CodeLayout<'a> {
    pub(super) body: &'a Body,
    /// Blocks in order of emission, likely paths in line; without those that only regions reach.
    pub(super) order: Vec<BlockId>,
    /// Per block: its first point, if it is compiled.
    pub(super) start: Vec<Option<Point>>,
    /// Per point: its block, and its position for the interpreter.
    pub(super) points: Vec<(BlockId, u32)>,
    /// Per block: how often it runs, the entry once.
    pub(super) frequency: Vec<f32>,
    /// Per block: whether a back edge leads to it. Fuel is consumed there.
    pub(super) is_loop_header: Vec<bool>,
    /// Per block: whether it is entered from the interpreter, after an operation or a `yield`.
    pub(super) is_entry: Vec<bool>,
}

/// Frequencies are cut off here.
const MAX_FREQUENCY: f32 = 1e6;
/// How often frequencies are propagated along edges; they converge geometrically.
const ROUNDS: usize = 40;

impl<'a> CodeLayout<'a> {
    pub(super) fn new(body: &'a Body) -> CodeLayout<'a> {
        let count = body.blocks.len();
        let (visited, is_loop_header) = visit(body);
        let mut layout = CodeLayout {
            body,
            order: Vec::new(),
            start: vec![None; count],
            points: Vec::new(),
            frequency: vec![0.0; count],
            is_loop_header,
            is_entry: vec![false; count],
        };
        layout.is_entry[0] = true;
        for block in &visited {
            let entered = match &body.blocks[block.0 as usize].terminator {
                Terminator::Wait(wait) => wait_targets(wait).collect(),
                Terminator::Yield(edge) => vec![edge.to],
                Terminator::Enter(enter) => vec![enter.then, enter.later.to, enter.otherwise.to],
                Terminator::Leave(leave) => vec![leave.trigger.to],
                _ => Vec::new(),
            };
            entered.into_iter().for_each(|block| layout.is_entry[block.0 as usize] = true);
        }
        layout.guess_frequencies(&visited);
        layout.lay_out(&visited);
        layout
    }

    fn guess_frequencies(&mut self, visited: &[BlockId]) {
        let edges: Vec<_> = visited.iter().map(|block| (*block, weighted_edges(self.body, *block))).collect();
        for _ in 0..ROUNDS {
            let mut next = vec![0.0; self.frequency.len()];
            next[0] = 1.0;
            for (block, edges) in &edges {
                for (to, _, chance) in edges {
                    next[to.0 as usize] += self.frequency[block.0 as usize] * chance;
                }
            }
            next.iter_mut().for_each(|frequency: &mut f32| *frequency = frequency.min(MAX_FREQUENCY));
            self.frequency = next;
        }
    }

    /// Orders blocks along their likeliest edges.
    fn lay_out(&mut self, visited: &[BlockId]) {
        let starts = positions(self.body);
        let mut rest: Vec<BlockId> = visited.to_vec();
        rest.sort_by(|a, b| self.frequency[b.0 as usize].total_cmp(&self.frequency[a.0 as usize]));
        for seed in [BlockId(0)].into_iter().chain(rest) {
            let mut next = Some(seed);
            while let Some(block) = next.filter(|block| self.start[block.0 as usize].is_none()) {
                self.start[block.0 as usize] = Some(self.points.len());
                self.order.push(block);
                let first = starts[block.0 as usize];
                let instructions = self.body.blocks[block.0 as usize].instructions.len() as u32;
                self.points.extend((first..=first + instructions).map(|position| (block, position)));
                let open = weighted_edges(self.body, block)
                    .into_iter()
                    .filter(|(to, _, _)| self.start[to.0 as usize].is_none());
                next = open.max_by(|a, b| a.2.total_cmp(&b.2)).map(|(to, _, _)| to);
            }
        }
    }

    /// The points of a block: its instructions, then its terminator.
    pub(super) fn points_of(&self, block: BlockId) -> std::ops::Range<Point> {
        let start = self.start[block.0 as usize].expect("only compiled blocks are asked about");
        start..start + self.body.blocks[block.0 as usize].instructions.len() + 1
    }
}

/// The reachable blocks in reverse postorder, and per block whether a back edge of the depth-first search leads to it.
fn visit(body: &Body) -> (Vec<BlockId>, Vec<bool>) {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        New,
        Open,
        Done,
    }
    let mut marks = vec![Mark::New; body.blocks.len()];
    let mut is_loop_header = vec![false; body.blocks.len()];
    let mut order = Vec::new();
    let targets =
        |block: BlockId| weighted_edges(body, block).into_iter().map(|(to, _, _)| to).collect::<Vec<_>>().into_iter();
    let mut stack = vec![(BlockId(0), targets(BlockId(0)))];
    marks[0] = Mark::Open;
    while let Some((block, open)) = stack.last_mut() {
        match open.next() {
            Some(to) => match marks[to.0 as usize] {
                Mark::New => {
                    marks[to.0 as usize] = Mark::Open;
                    stack.push((to, targets(to)));
                }
                Mark::Open => is_loop_header[to.0 as usize] = true,
                Mark::Done => {}
            },
            None => {
                marks[block.0 as usize] = Mark::Done;
                order.push(*block);
                stack.pop();
            }
        }
    }
    order.reverse();
    (order, is_loop_header)
}

/// The successors of a block in machine code: target, arguments, probability.
pub(super) fn weighted_edges(body: &Body, block: BlockId) -> Vec<(BlockId, &[Value], f32)> {
    fn successor(edge: &Edge, chance: f32) -> (BlockId, &[Value], f32) {
        (edge.to, edge.arguments.as_slice(), chance)
    }
    match &body.blocks[block.0 as usize].terminator {
        Terminator::Jump(edge) | Terminator::Yield(edge) => vec![successor(edge, 1.0)],
        Terminator::Branch { condition, then, otherwise } => {
            let chance = chance(body, block, *condition);
            vec![successor(then, chance), successor(otherwise, 1.0 - chance)]
        }
        Terminator::Switch { cases, default, .. } => {
            let chance = 1.0 / (cases.len() + 1) as f32;
            cases.iter().map(|(_, edge)| edge).chain([default]).map(|edge| successor(edge, chance)).collect()
        }
        Terminator::Wait(wait) => {
            let targets: Vec<BlockId> = wait_targets(wait).collect();
            let chance = 1.0 / targets.len().max(1) as f32;
            targets.into_iter().map(|to| (to, [].as_slice(), chance)).collect()
        }
        // The parameters of the first block of a fast path come from other instances.
        Terminator::Enter(enter) => {
            vec![(enter.then, [].as_slice(), 0.9), successor(&enter.later, 0.05), successor(&enter.otherwise, 0.05)]
        }
        Terminator::Leave(_)
        | Terminator::Return(_)
        | Terminator::Result(_)
        | Terminator::Exit(_)
        | Terminator::End
        | Terminator::Fault(_) => Vec::new(),
    }
}

/// The probability of a condition: loops continue, and values are rarely equal.
pub(super) fn chance(body: &Body, block: BlockId, condition: Value) -> f32 {
    let instructions = &body.blocks[block.0 as usize].instructions;
    match instructions.iter().rev().find(|instruction| instruction.result == Some(condition)).map(|i| &i.op) {
        Some(Op::Binary(BinaryOp::Less | BinaryOp::LessEqual | BinaryOp::NotEqual, ..)) => 0.9,
        Some(Op::Binary(BinaryOp::Equal, ..)) => 0.1,
        Some(_) | None => 0.5,
    }
}

fn wait_targets(wait: &Wait) -> impl Iterator<Item = BlockId> {
    wait.branches.iter().map(|branch| branch.then).chain(wait.otherwise)
}

/// The values an instruction reads.
pub(super) fn op_uses(op: &Op) -> Vec<Value> {
    let mut uses = Vec::new();
    op_values(op, &mut |value| uses.push(*value));
    uses
}

/// The values that a terminator reads itself, and those that regions of its wait read from outside; not arguments of
/// edges.
pub(super) fn terminator_uses(body: &Body, terminator: &Terminator) -> Vec<Value> {
    let mut uses = Vec::new();
    match terminator {
        Terminator::Jump(_) | Terminator::Yield(_) | Terminator::End | Terminator::Fault(_) | Terminator::Enter(_) => {}
        Terminator::Branch { condition: value, .. } | Terminator::Switch { value, .. } => uses.push(*value),
        Terminator::Wait(wait) => {
            terminator_values(terminator, &mut |value| uses.push(*value));
            for region in region_entries(wait) {
                region_uses(body, region, &mut uses);
            }
        }
        Terminator::Return(_) | Terminator::Result(_) | Terminator::Exit(_) | Terminator::Leave(_) => {
            terminator_values(terminator, &mut |value| uses.push(*value));
        }
    }
    uses
}

/// The values that a region reads and does not define.
fn region_uses(body: &Body, entry: BlockId, uses: &mut Vec<Value>) {
    let (mut read, mut defined) = (Vec::new(), Vec::new());
    for block in region_blocks(body, entry) {
        let block = &body.blocks[block.0 as usize];
        defined.extend(&block.parameters);
        for instruction in &block.instructions {
            read.extend(op_uses(&instruction.op));
            defined.extend(instruction.result);
        }
        terminator_values(&block.terminator, &mut |value| read.push(*value));
    }
    uses.extend(read.into_iter().filter(|value| !defined.contains(value)));
}
