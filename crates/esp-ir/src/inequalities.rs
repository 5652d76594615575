//! Inequalities between values of a body, proved on demand: `a <= b + offset`, as bounds checks are. The proof searches
//! backward from `a` and `b` through the operations that compute them, the comparisons that have decided the branches
//! above, and the joins of loops, by induction (Bodik, Gupta and Sarkar, "ABCD: Eliminating Array Bounds Checks on
//! Demand", 2000). Intervals decide what remains. We search the original graph instead of extended SSA form: a
//! comparison holds in all that its branch dominates. Changes nothing.

use crate::cfg::{Regions, edges, predecessors};
use crate::dominators::Dominators;
use crate::facts::{self, Fact};
use crate::intervals::Intervals;
use crate::ir::{BinaryOp, Body, Op, Terminator, Type, TypeTable, UnaryOp, Value};

/// The largest number of steps of one proof.
const MAX_STEPS: usize = 256;
/// The largest numbers of steps between the inequality and a fact, in the order in which they are tried.
const DEPTHS: [usize; 2] = [4, 16];
/// The largest number of comparisons of one value that a step tries, the nearest first.
const MAX_COMPARISONS: usize = 16;

/// One side of an inequality.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// A value of the body.
    Value(Value),
    /// A number.
    Constant(i128),
}

/// An inequality to prove: `a - b <= offset`.
#[derive(Clone, Copy, Debug)]
struct Goal {
    a: Side,
    b: Side,
    offset: i128,
}

impl Goal {
    /// What is left to prove if `a` is at most this value plus the difference.
    fn with_upper(self, value: Value, difference: i128) -> Goal {
        Goal { a: Side::Value(value), b: self.b, offset: self.offset - difference }
    }

    /// What is left to prove if `b` is at least this value plus the difference.
    fn with_lower(self, value: Value, difference: i128) -> Goal {
        Goal { a: self.a, b: Side::Value(value), offset: self.offset + difference }
    }
}

/// The analyses of a body from which inequalities follow.
pub struct Inequalities<'a> {
    body: &'a Body,
    types: &'a TypeTable,
    intervals: &'a Intervals,
    dominators: &'a Dominators,
    predecessors: Vec<Vec<usize>>,
    /// Per value: how it is computed.
    definitions: Vec<Definition>,
    comparisons: Comparisons,
}

/// How a value is computed.
#[derive(Clone, Copy)]
enum Definition {
    /// In a block that is not reached.
    None,
    Parameter {
        block: usize,
        position: usize,
    },
    Operation {
        block: usize,
        position: usize,
    },
}

/// `left - right <= offset`, which holds in a block and all that it dominates.
#[derive(Clone, Copy)]
struct Difference {
    block: usize,
    left: Value,
    right: Value,
    offset: i128,
}

/// The comparisons that branches have decided.
#[derive(Default)]
struct Comparisons {
    differences: Vec<Difference>,
    /// Per value: the differences with it on the left, and on the right, in preorder of their blocks.
    of_left: Vec<Vec<Nested>>,
    of_right: Vec<Vec<Nested>>,
}

/// A difference in a list.
#[derive(Clone, Copy)]
struct Nested {
    difference: usize,
    /// The position in the list of the nearest one whose block dominates this one's.
    outer: Option<usize>,
}

/// A point of the body: the end of a block, or an edge from there with what its condition has decided.
#[derive(Clone, Copy)]
struct Point<'p> {
    block: usize,
    decided: &'p [(BinaryOp, Value, Value)],
}

/// A proof in progress.
struct Proof {
    steps: usize,
    /// What is to be proved of parameters, which is assumed of their previous values.
    hypotheses: Vec<Goal>,
}

impl<'a> Inequalities<'a> {
    /// The analyses of a body, with its intervals and dominators.
    pub fn new(
        body: &'a Body,
        types: &'a TypeTable,
        intervals: &'a Intervals,
        dominators: &'a Dominators,
    ) -> Inequalities<'a> {
        let mut definitions = vec![Definition::None; body.values.len()];
        for block in dominators.order().iter().copied() {
            for (position, parameter) in body.blocks[block].parameters.iter().enumerate() {
                definitions[parameter.0 as usize] = Definition::Parameter { block, position };
            }
            for (position, instruction) in body.blocks[block].instructions.iter().enumerate() {
                if let Some(result) = instruction.result {
                    definitions[result.0 as usize] = Definition::Operation { block, position };
                }
            }
        }
        let mut inequalities = Inequalities {
            body,
            types,
            intervals,
            dominators,
            predecessors: predecessors(body, dominators.order().iter().copied(), Regions::Include),
            definitions,
            comparisons: Comparisons::default(),
        };
        inequalities.comparisons = inequalities.decided_comparisons();
        inequalities
    }

    /// Whether `a <= b + offset` always holds in a block in which both are computed; so it does if the block is never
    /// reached.
    pub fn is_bounded_by(&self, block: usize, a: Side, b: Side, offset: i128) -> bool {
        let is_proved = |depth: usize| {
            let mut proof = Proof { steps: MAX_STEPS, hypotheses: Vec::new() };
            self.prove(&mut proof, Point { block, decided: &[] }, Goal { a, b, offset }, depth)
        };
        !self.intervals.is_reachable(block) || DEPTHS.into_iter().any(is_proved)
    }

    /// The fact about a value in a block.
    pub fn fact(&self, block: usize, value: Value) -> Fact {
        self.fact_at(Point { block, decided: &[] }, value)
    }

    /// The comparisons that hold in blocks with one predecessor, a branch.
    fn decided_comparisons(&self) -> Comparisons {
        let none = vec![Vec::new(); self.body.values.len()];
        let mut comparisons = Comparisons { differences: Vec::new(), of_left: none.clone(), of_right: none };
        let mut preorder = self.dominators.order().to_vec();
        preorder.sort_unstable_by_key(|block| self.dominators.preorder(*block));
        // The entry block has an entry besides its predecessor.
        for block in preorder.into_iter().filter(|block| *block != 0) {
            let [from] = self.predecessors[block][..] else { continue };
            for (op, left, right) in self.decided_on_edge(from, block) {
                for (left, right, offset) in differences(op, left, right).into_iter().flatten() {
                    let (left, right) = (self.unconverted(left), self.unconverted(right));
                    comparisons.add(self.dominators, Difference { block, left, right, offset });
                }
            }
        }
        comparisons
    }

    /// The comparisons that hold on the only edge from a block to another one.
    fn decided_on_edge(&self, from: usize, to: usize) -> Vec<(BinaryOp, Value, Value)> {
        match &self.body.blocks[from].terminator {
            Terminator::Branch { condition, then, otherwise } if then.to != otherwise.to => {
                self.implied(*condition, then.to.0 as usize == to)
            }
            _ => Vec::new(),
        }
    }

    /// The comparisons that follow from the outcome of a condition.
    fn implied(&self, condition: Value, holds: bool) -> Vec<(BinaryOp, Value, Value)> {
        let mut implied = Vec::new();
        let mut work = vec![(condition, holds)];
        while let Some((condition, holds)) = work.pop() {
            match (self.operation(condition), holds) {
                (Some(Op::Binary(op, left, right)), _) if op.is_comparison() => {
                    implied.extend(if holds { Some(*op) } else { op.inverted() }.map(|op| (op, *left, *right)));
                }
                (Some(Op::Binary(BinaryOp::BitAnd, left, right)), true)
                | (Some(Op::Binary(BinaryOp::BitOr, left, right)), false) => {
                    work.extend([(*left, holds), (*right, holds)]);
                }
                (Some(Op::Unary(UnaryOp::Not, operand)), _) => work.push((*operand, !holds)),
                _ => {}
            }
            if implied.len() + work.len() > MAX_COMPARISONS {
                break;
            }
        }
        implied
    }

    fn operation(&self, value: Value) -> Option<&'a Op> {
        match self.definitions[value.0 as usize] {
            Definition::Operation { block, position } => Some(&self.body.blocks[block].instructions[position].op),
            Definition::Parameter { .. } | Definition::None => None,
        }
    }

    /// The value that a value is a conversion of, if they are always equal.
    fn unconverted(&self, mut value: Value) -> Value {
        while let Some(Op::Convert(from)) = self.operation(value)
            && let Some(fact) = self.intervals.everywhere(*from)
            && fact.implies(&self.type_fact(value))
            && self.is_integer(*from)
            && self.is_integer(value)
        {
            value = *from;
        }
        value
    }

    fn simplified(&self, side: Side) -> Side {
        let Side::Value(value) = side else { return side };
        let value = self.unconverted(value);
        match self.operation(value) {
            Some(Op::Constant(constant)) => Side::Constant(*constant),
            Some(_) | None => Side::Value(value),
        }
    }

    fn is_integer(&self, value: Value) -> bool {
        matches!(self.types.get(self.body.values[value.0 as usize].ty), Type::Int(_))
    }

    fn type_fact(&self, value: Value) -> Fact {
        Fact::of_type(self.types, self.body.values[value.0 as usize].ty)
    }

    fn fact_at(&self, point: Point<'_>, value: Value) -> Fact {
        let here =
            |value: Value| self.intervals.at(point.block, value).cloned().unwrap_or_else(|| self.type_fact(value));
        let mut fact = here(value);
        for (op, left, right) in point.decided {
            // An edge with a contradiction is never taken; any fact holds there.
            if *left == value {
                fact = facts::refine(*op, true, &fact, &here(*right)).map_or(fact, |(refined, _)| refined);
            } else if *right == value {
                fact = facts::refine(*op, true, &here(*left), &fact).map_or(fact, |(_, refined)| refined);
            }
        }
        fact
    }

    fn side_fact(&self, point: Point<'_>, side: Side) -> Fact {
        match side {
            Side::Value(value) => self.fact_at(point, value),
            Side::Constant(constant) => Fact::constant(constant),
        }
    }

    /// Whether intervals alone imply an inequality.
    fn is_implied_by_intervals(&self, point: Point<'_>, goal: Goal) -> bool {
        self.side_fact(point, goal.a).high - self.side_fact(point, goal.b).low <= goal.offset
    }

    /// Whether an inequality follows at a point.
    fn prove(&self, proof: &mut Proof, point: Point<'_>, goal: Goal, depth: usize) -> bool {
        if self.is_implied_by_intervals(point, goal) {
            return true;
        }
        let goal = Goal { a: self.simplified(goal.a), b: self.simplified(goal.b), offset: goal.offset };
        if goal.a == goal.b {
            return goal.offset >= 0;
        }
        if self.is_implied_by_intervals(point, goal) {
            return true;
        }
        if depth == 0 || proof.steps == 0 {
            return false;
        }
        proof.steps -= 1;
        let is_same = |other: &&Goal| (other.a, other.b) == (goal.a, goal.b);
        if let Some(hypothesis) = proof.hypotheses.iter().find(is_same) {
            return hypothesis.offset <= goal.offset;
        }
        self.prove_by_operations(proof, point, goal, depth - 1)
            || self.prove_by_comparisons(proof, point, goal, depth - 1)
            || self.prove_by_sum(proof, point, goal, depth - 1)
            || self.prove_by_joins(proof, goal, depth - 1)
    }

    /// By the operations that compute both sides.
    fn prove_by_operations(&self, proof: &mut Proof, point: Point<'_>, goal: Goal, depth: usize) -> bool {
        if let Side::Value(value) = goal.a {
            for (operand, difference) in self.upper_operands(point, value).into_iter().flatten() {
                if self.prove(proof, point, goal.with_upper(operand, difference), depth) {
                    return true;
                }
            }
        }
        if let Side::Value(value) = goal.b {
            for (operand, difference) in self.lower_operands(point, value).into_iter().flatten() {
                if self.prove(proof, point, goal.with_lower(operand, difference), depth) {
                    return true;
                }
            }
        }
        false
    }

    /// The operands that a value exceeds by at most the given difference.
    fn upper_operands(&self, point: Point<'_>, value: Value) -> [Option<(Value, i128)>; 2] {
        let Some(Op::Binary(op, x, y)) = self.operation(value) else { return [None, None] };
        let (fact_x, fact_y) = (self.fact_at(point, *x), self.fact_at(point, *y));
        match op {
            BinaryOp::Add if self.is_exact(value, *op, &fact_x, &fact_y) => {
                [Some((*x, fact_y.high)), Some((*y, fact_x.high))]
            }
            BinaryOp::Subtract if self.is_exact(value, *op, &fact_x, &fact_y) => [Some((*x, -fact_y.low)), None],
            BinaryOp::Divide if fact_x.low >= 1 && fact_y.low >= 2 => [Some((*x, -1)), None],
            BinaryOp::Divide if fact_x.low >= 0 && fact_y.low >= 1 => [Some((*x, 0)), None],
            BinaryOp::Remainder if fact_x.low >= 0 => [Some((*x, 0)), (fact_y.low >= 1).then_some((*y, -1))],
            BinaryOp::ShiftRight if fact_x.low >= 0 => [Some((*x, 0)), None],
            BinaryOp::BitAnd if self.is_integer(value) => {
                [(fact_x.low >= 0).then_some((*x, 0)), (fact_y.low >= 0).then_some((*y, 0))]
            }
            _ => [None, None],
        }
    }

    /// The operands that a value exceeds by at least the given difference.
    fn lower_operands(&self, point: Point<'_>, value: Value) -> [Option<(Value, i128)>; 2] {
        let Some(Op::Binary(op, x, y)) = self.operation(value) else { return [None, None] };
        let (fact_x, fact_y) = (self.fact_at(point, *x), self.fact_at(point, *y));
        match op {
            BinaryOp::Add if self.is_exact(value, *op, &fact_x, &fact_y) => {
                [Some((*x, fact_y.low)), Some((*y, fact_x.low))]
            }
            BinaryOp::Subtract if self.is_exact(value, *op, &fact_x, &fact_y) => [Some((*x, -fact_y.high)), None],
            _ => [None, None],
        }
    }

    /// Whether an operation on such operands neither wraps nor faults.
    fn is_exact(&self, result: Value, op: BinaryOp, x: &Fact, y: &Fact) -> bool {
        let ty = self.body.values[result.0 as usize].ty;
        self.is_integer(result) && !facts::may_overflow(self.types, ty, op, x, y)
    }

    /// By the comparisons that branches have decided.
    fn prove_by_comparisons(&self, proof: &mut Proof, point: Point<'_>, goal: Goal, depth: usize) -> bool {
        let on_edge = point.decided.iter().flat_map(|(op, left, right)| differences(*op, *left, *right)).flatten();
        let on_edge: Vec<(Value, Value, i128)> = on_edge
            .map(|(left, right, difference)| (self.unconverted(left), self.unconverted(right), difference))
            .collect();
        if let Side::Value(value) = goal.a {
            let above = self.comparisons.with(self.dominators, &self.comparisons.of_left, value, point.block);
            let here = on_edge.iter().copied().filter(|(left, _, _)| *left == value);
            for (_, right, difference) in here.chain(above) {
                if self.prove(proof, point, goal.with_upper(right, difference), depth) {
                    return true;
                }
            }
        }
        if let Side::Value(value) = goal.b {
            let above = self.comparisons.with(self.dominators, &self.comparisons.of_right, value, point.block);
            let here = on_edge.iter().copied().filter(|(_, right, _)| *right == value);
            for (left, _, difference) in here.chain(above) {
                if self.prove(proof, point, goal.with_lower(left, -difference), depth) {
                    return true;
                }
            }
        }
        false
    }

    /// `x + y` is at most `z` if `y` has been compared with `z - x`.
    fn prove_by_sum(&self, proof: &mut Proof, point: Point<'_>, goal: Goal, depth: usize) -> bool {
        let Side::Value(sum) = goal.a else { return false };
        let Some(Op::Binary(op @ BinaryOp::Add, x, y)) = self.operation(sum) else { return false };
        if !self.is_exact(sum, *op, &self.fact_at(point, *x), &self.fact_at(point, *y)) {
            return false;
        }
        let (x, y) = (self.unconverted(*x), self.unconverted(*y));
        for (x, y) in [(x, y), (y, x)] {
            let above = self.comparisons.with(self.dominators, &self.comparisons.of_left, y, point.block);
            for (_, rest, difference) in above {
                let Some(Op::Binary(op @ BinaryOp::Subtract, z, subtrahend)) = self.operation(rest) else { continue };
                let facts = (self.fact_at(point, *z), self.fact_at(point, *subtrahend));
                if self.unconverted(*subtrahend) == x
                    && self.is_exact(rest, *op, &facts.0, &facts.1)
                    && self.prove(proof, point, goal.with_upper(*z, difference), depth)
                {
                    return true;
                }
            }
        }
        false
    }

    /// By induction: it holds of a parameter if it holds of each argument, supposing that it held of the parameter's
    /// previous value. The other side must be the same throughout, as it is if its block strictly dominates the
    /// parameter's.
    fn prove_by_joins(&self, proof: &mut Proof, goal: Goal, depth: usize) -> bool {
        let with_a = |argument: Value| goal.with_upper(argument, 0);
        let with_b = |argument: Value| goal.with_lower(argument, 0);
        self.prove_by_join(proof, goal, (goal.a, goal.b), &with_a, depth)
            || self.prove_by_join(proof, goal, (goal.b, goal.a), &with_b, depth)
    }

    fn prove_by_join(
        &self,
        proof: &mut Proof,
        goal: Goal,
        (joined, other): (Side, Side),
        with: &dyn Fn(Value) -> Goal,
        depth: usize,
    ) -> bool {
        let Side::Value(parameter) = joined else { return false };
        let Definition::Parameter { block, position } = self.definitions[parameter.0 as usize] else { return false };
        // The entry block has an entry besides its edges.
        if block == 0 || !self.is_invariant(other, block) {
            return false;
        }
        proof.hypotheses.push(goal);
        let holds = self.predecessors[block].iter().all(|from| {
            let edges = edges(&self.body.blocks[*from].terminator);
            let mut along = edges.iter().filter(|edge| edge.to.0 as usize == block).peekable();
            // A value that a message brings is on no edge.
            if along.peek().is_none() {
                return false;
            }
            let decided = self.decided_on_edge(*from, block);
            let mut holds_on = |argument: &Value| {
                !self.intervals.is_reachable(*from)
                    || self.prove(proof, Point { block: *from, decided: &decided }, with(*argument), depth)
            };
            along.all(|edge| edge.arguments.get(position).is_some_and(&mut holds_on))
        });
        proof.hypotheses.pop();
        holds
    }

    /// Whether a side is computed before a block, and not again until the block is entered again from outside.
    fn is_invariant(&self, side: Side, block: usize) -> bool {
        let Side::Value(value) = side else { return true };
        match self.definitions[value.0 as usize] {
            Definition::Parameter { block: at, .. } | Definition::Operation { block: at, .. } => {
                at != block && self.dominators.dominates(at, block)
            }
            Definition::None => false,
        }
    }
}

impl Comparisons {
    fn add(&mut self, dominators: &Dominators, difference: Difference) {
        let number = self.differences.len();
        let differences = &self.differences;
        let nested = |list: &[Nested]| {
            let mut outer = list.len().checked_sub(1);
            while let Some(position) = outer
                && !dominators.dominates(differences[list[position].difference].block, difference.block)
            {
                outer = list[position].outer;
            }
            Nested { difference: number, outer }
        };
        for list in [&mut self.of_left[difference.left.0 as usize], &mut self.of_right[difference.right.0 as usize]] {
            let entry = nested(list);
            list.push(entry);
        }
        self.differences.push(difference);
    }

    /// The differences of a value that hold in a block, the nearest first.
    fn with<'c>(
        &'c self,
        dominators: &'c Dominators,
        lists: &'c [Vec<Nested>],
        value: Value,
        block: usize,
    ) -> impl Iterator<Item = (Value, Value, i128)> + use<'c> {
        let list = &lists[value.0 as usize];
        let block_of = |nested: &Nested| self.differences[nested.difference].block;
        let here = dominators.preorder(block);
        // A block that dominates this one also dominates every block between them in preorder.
        let last = list.partition_point(|nested| dominators.preorder(block_of(nested)) <= here).checked_sub(1);
        let chain = std::iter::successors(last, |position| list[*position].outer).take(MAX_COMPARISONS);
        let holding = chain.map(|position| &self.differences[list[position].difference]);
        holding
            .filter(move |difference| dominators.dominates(difference.block, block))
            .map(|difference| (difference.left, difference.right, difference.offset))
    }
}

/// A comparison as differences: `left - right <= offset`.
fn differences(op: BinaryOp, left: Value, right: Value) -> [Option<(Value, Value, i128)>; 2] {
    match op {
        BinaryOp::Less => [Some((left, right, -1)), None],
        BinaryOp::LessEqual => [Some((left, right, 0)), None],
        BinaryOp::Greater => [Some((right, left, -1)), None],
        BinaryOp::GreaterEqual => [Some((right, left, 0)), None],
        BinaryOp::Equal => [Some((left, right, 0)), Some((right, left, 0))],
        _ => [None, None],
    }
}
