//! Global value numbering by the RPO algorithm (Simpson, "Value-Driven Redundancy Elimination", 1996, section 4.2):
//! congruent values get one number, and a dominating one of them replaces the others. The algorithm is optimistic:
//! loop-carried values, such as the indices of two processes into equal arrays, are congruent until a round shows a
//! difference. Operations that cancel an earlier one are removed as well, also across a join of control flow.

use quaject_esp_ir::cfg::{Regions, edges, edges_mut, successors};
use quaject_esp_ir::dominators::Dominators;
use quaject_esp_ir::ir::{
    Base, BinaryOp, Body, Instruction, Op, Projection, SlotId, Terminator, TypeId, UnaryOp, Value, ValueData,
};
use quaject_esp_ir::simplify_cfg::Replacements;
use quaject_esp_ir::visit::{op_slots, op_values_mut, terminator_values_mut};
use rustc_hash::{FxBuildHasher, FxHashMap};

/// Rounds after which the pass gives up: nested loops take a few.
const MAX_ROUNDS: usize = 64;
/// The depth of expressions that are evaluated on the edges to a join.
const MAX_DEPTH: usize = 4;

/// Congruent values have equal numbers: the index of one of them.
pub(crate) type ValueNumber = u32;
/// The number of a value that has not been visited: congruent to any (the lattice's top).
const TOP: ValueNumber = ValueNumber::MAX;

/// The expression that computes a value, over value numbers.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Expression<'b> {
    Constant(TypeId, i128),
    OwnId,
    Unary(UnaryOp, ValueNumber),
    Binary(BinaryOp, ValueNumber, ValueNumber),
    Convert(TypeId, ValueNumber),
    Replica(ValueNumber),
    /// A byte of a literal.
    Byte(&'b [u8], ValueNumber),
    /// A parameter of a block, by the arguments of its edges.
    Parameter(usize, Vec<ValueNumber>),
}

/// Replaces values by congruent ones that were computed before; whether there were any.
pub(super) fn unify(body: &mut Body) -> bool {
    let dominators = Dominators::new(body);
    let Some(Numbering { numbers, constants, mut merged }) = number_values(body, &dominators, &FxHashMap::default())
    else {
        return false;
    };
    let epochs = epochs(body, &dominators);
    let mut leaders = Leaders { by_number: FxHashMap::default(), epochs: &epochs, dominators: &dominators };
    let mut replacements = Replacements::new(body.values.len());
    let mut parameters = Vec::new();
    let mut any = false;
    for index in dominators.order() {
        let block = &mut body.blocks[*index];
        let mut replaces = |leaders: &mut Leaders<'_>, value: Value| {
            let leader = leaders.find_or_insert(numbers[value.0 as usize], *index, value);
            replacements.replace(value, leader);
            leader != value
        };
        for parameter in &block.parameters {
            any |= replaces(&mut leaders, *parameter);
        }
        block.instructions.retain_mut(|instruction| {
            // A constant is free at its use.
            let (Some(result), false) = (instruction.result, matches!(instruction.op, Op::Constant(_))) else {
                return true;
            };
            if let Some(constant) = constants.get(&numbers[result.0 as usize]) {
                instruction.op = Op::Constant(*constant);
                any = true;
                return true;
            }
            let replaced = replaces(&mut leaders, result);
            let merges = merged.remove(&result).filter(|_| !replaced).and_then(|(join, merged)| {
                let arguments = merged.into_iter().map(|(from, number)| match constants.get(&number) {
                    Some(constant) => Some((from, Argument::Constant(*constant))),
                    None => leaders.find(number, from).map(|value| (from, Argument::Value(value))),
                });
                Some((join, result, arguments.collect::<Option<Vec<_>>>()?))
            });
            let is_parameter = merges.is_some();
            parameters.extend(merges);
            any |= replaced || is_parameter;
            !replaced && !is_parameter
        });
    }
    for block in &mut body.blocks {
        let mut visit = |value: &mut Value| *value = replacements.find(*value);
        block.instructions.iter_mut().for_each(|instruction| op_values_mut(&mut instruction.op, &mut visit));
        terminator_values_mut(&mut block.terminator, &mut visit);
    }
    for (block, result, arguments) in parameters {
        become_parameter(body, block, result, arguments);
    }
    any
}

/// The numbers of a body's values, under the assumption that each key of `assumed_equal` equals its value. None if the
/// analysis takes too many rounds.
pub(crate) fn value_numbers(body: &Body, assumed_equal: &FxHashMap<Value, Value>) -> Option<Vec<ValueNumber>> {
    number_values(body, &Dominators::new(body), assumed_equal).map(|numbering| numbering.numbers)
}

/// An argument of an edge.
enum Argument {
    Value(Value),
    Constant(i128),
}

/// Makes a value a parameter of its block, with an argument from each predecessor, in their order.
fn become_parameter(body: &mut Body, block: usize, value: Value, arguments: Vec<(usize, Argument)>) {
    body.blocks[block].parameters.push(value);
    let ValueData { ty, .. } = body.values[value.0 as usize];
    for (position, (from, argument)) in arguments.iter().enumerate() {
        let argument = match argument {
            Argument::Value(value) => *value,
            Argument::Constant(constant) => {
                body.values.push(ValueData { ty, name: None });
                let value = Value(body.values.len() as u32 - 1);
                let location = body.blocks[*from].location;
                let (result, op) = (Some(value), Op::Constant(*constant));
                body.blocks[*from].instructions.push(Instruction { result, op, location });
                value
            }
        };
        // A block may lead to the same one along several edges.
        let earlier = arguments[..position].iter().filter(|(other, _)| other == from).count();
        let mut edges = edges_mut(&mut body.blocks[*from].terminator);
        edges.retain(|edge| edge.to.0 as usize == block);
        edges[earlier].arguments.push(argument);
    }
}

/// Per number: its leaders, values that no other replaces, and their blocks.
struct Leaders<'b> {
    by_number: FxHashMap<ValueNumber, Vec<(usize, Value)>>,
    epochs: &'b [usize],
    dominators: &'b Dominators,
}

impl Leaders<'_> {
    /// A value of this number that is available at the end of a block.
    fn find(&self, number: ValueNumber, block: usize) -> Option<Value> {
        let leads = |(other, _): &&(usize, Value)| {
            self.epochs[*other] == self.epochs[block] && self.dominators.dominates(*other, block)
        };
        self.by_number.get(&number)?.iter().find(leads).map(|(_, value)| *value)
    }

    /// The value that replaces this one; itself, from now on, if there is none.
    fn find_or_insert(&mut self, number: ValueNumber, block: usize, value: Value) -> Value {
        if let Some(leader) = self.find(number, block) {
            return leader;
        }
        self.by_number.entry(number).or_default().push((block, value));
        value
    }
}

/// Per block: its epoch, the part of the body, delimited by waits, that it belongs to. A value that is live across a
/// wait is kept in memory, so that recomputing it is cheaper: leaders replace values of their epoch only.
fn epochs(body: &Body, dominators: &Dominators) -> Vec<usize> {
    let mut starts_epoch = vec![false; body.blocks.len()];
    let mut from: Vec<Option<usize>> = vec![None; body.blocks.len()];
    for index in dominators.order() {
        let terminator = &body.blocks[*index].terminator;
        match terminator {
            Terminator::Wait(_) => {
                let targets = successors(terminator, Regions::Include);
                targets.iter().for_each(|target| starts_epoch[target.0 as usize] = true);
            }
            Terminator::Yield(edge) => starts_epoch[edge.to.0 as usize] = true,
            Terminator::Enter(enter) => starts_epoch[enter.then.0 as usize] = true,
            _ => {}
        }
        for edge in edges(terminator) {
            from[edge.to.0 as usize].get_or_insert(*index);
        }
    }
    let mut epochs: Vec<usize> = (0..body.blocks.len()).collect();
    for index in dominators.order() {
        if let (false, Some(from)) = (starts_epoch[*index], from[*index]) {
            epochs[*index] = epochs[from];
        }
    }
    epochs
}

/// The result of value numbering.
struct Numbering {
    numbers: Vec<ValueNumber>,
    /// The numbers of constants.
    constants: FxHashMap<ValueNumber, i128>,
    /// The results that can become parameters: of which block, and the argument from each predecessor.
    merged: FxHashMap<Value, (usize, Vec<(usize, ValueNumber)>)>,
}

/// Numbers every value, unless that takes too many rounds. Parameters without arguments may be assumed equal to others.
fn number_values(body: &Body, dominators: &Dominators, assumed_equal: &FxHashMap<Value, Value>) -> Option<Numbering> {
    let bytes = literal_bytes(body);
    let mut incoming: Vec<Vec<(usize, Vec<Value>)>> = vec![Vec::new(); body.blocks.len()];
    let mut defined = vec![0; body.values.len()];
    for index in dominators.order() {
        let block = &body.blocks[*index];
        for edge in edges(&block.terminator) {
            incoming[edge.to.0 as usize].push((*index, edge.arguments.clone()));
        }
        let results = block.instructions.iter().filter_map(|instruction| instruction.result.as_ref());
        block.parameters.iter().chain(results).for_each(|value| defined[value.0 as usize] = *index);
    }
    let joins = joins(body, dominators, &incoming);
    let mut numbers = vec![TOP; body.values.len()];
    let (mut previous, mut had_changed) = (FxHashMap::default(), true);
    for _ in 0..MAX_ROUNDS {
        let expression_numbers = FxHashMap::with_capacity_and_hasher(body.values.len(), FxBuildHasher);
        let expressions = vec![None; body.values.len()];
        let mut round = NumberingRound {
            body,
            dominators,
            defined: &defined,
            assumed_equal,
            expression_numbers,
            previous,
            expressions,
        };
        let mut changed = false;
        for index in dominators.order() {
            let edges = incoming[joins[*index]].len();
            let (block, incoming) = (&body.blocks[*index], &incoming[*index]);
            for (position, parameter) in block.parameters.iter().enumerate() {
                let arguments = incoming.iter().map(|(_, arguments)| numbers[arguments[position].0 as usize]).collect();
                let number = round.parameter(*index, *parameter, arguments);
                changed |= std::mem::replace(&mut numbers[parameter.0 as usize], number) != number;
            }
            for instruction in &block.instructions {
                let Some(result) = instruction.result else { continue };
                let literal = bytes.get(&result).copied();
                let context = JoinContext { numbers: &numbers, block: joins[*index], edges };
                let number = round.result(context, result, &instruction.op, literal);
                changed |= std::mem::replace(&mut numbers[result.0 as usize], number) != number;
            }
        }
        // The expressions of the previous round belong to these numbers only if that round changed none either.
        if !changed && !had_changed {
            let (mut constants, mut merged) = (FxHashMap::default(), FxHashMap::default());
            for (index, expression) in round.expressions.into_iter().enumerate() {
                match expression {
                    Some(Expression::Constant(_, constant)) => {
                        constants.insert(index as ValueNumber, constant);
                    }
                    Some(Expression::Parameter(block, arguments)) => {
                        let from = incoming[block].iter().map(|(from, _)| *from).zip(arguments);
                        merged.insert(Value(index as u32), (block, from.collect()));
                    }
                    _ => {}
                }
            }
            return Some(Numbering { numbers, constants, merged });
        }
        (previous, had_changed) = (round.expression_numbers, changed);
    }
    None
}

/// Per block: itself, or the join of control flow that dominates it without another join in between.
fn joins(body: &Body, dominators: &Dominators, incoming: &[Vec<(usize, Vec<Value>)>]) -> Vec<usize> {
    let epochs = epochs(body, dominators);
    let mut joins: Vec<usize> = (0..body.blocks.len()).collect();
    for index in dominators.order() {
        if let [(from, _)] = &incoming[*index][..]
            && epochs[*index] == epochs[*from]
            && incoming[joins[*from]].len() > 1
        {
            joins[*index] = joins[*from];
        }
    }
    joins
}

/// The join whose edges an operation may be evaluated on.
#[derive(Clone, Copy)]
struct JoinContext<'n> {
    /// The numbers of all values so far.
    numbers: &'n [ValueNumber],
    /// The nearest join.
    block: usize,
    /// The number of its edges.
    edges: usize,
}

/// One round over all values, in an order in which dominators come first.
struct NumberingRound<'b> {
    body: &'b Body,
    dominators: &'b Dominators,
    /// The block of each value.
    defined: &'b [usize],
    /// Parameters that are assumed equal to another value.
    assumed_equal: &'b FxHashMap<Value, Value>,
    expression_numbers: FxHashMap<Expression<'b>, ValueNumber>,
    /// The expressions of the previous round. Along back edges, whose sources this round has not visited, only these
    /// are known.
    previous: FxHashMap<Expression<'b>, ValueNumber>,
    /// The expression of each number.
    expressions: Vec<Option<Expression<'b>>>,
}

impl<'b> NumberingRound<'b> {
    /// The number of an expression that a value computes: that of an earlier value with the same expression, or its
    /// own.
    fn number_of(&mut self, value: Value, expression: Expression<'b>) -> ValueNumber {
        let number = *self.expression_numbers.entry(expression.clone()).or_insert(value.0);
        if number == value.0 {
            self.expressions[number as usize] = Some(expression);
        }
        number
    }

    /// The number of a parameter with these arguments.
    fn parameter(&mut self, block: usize, parameter: Value, arguments: Vec<ValueNumber>) -> ValueNumber {
        let mut visited = arguments.iter().copied().filter(|number| *number != TOP);
        match visited.next() {
            // The environment binds it.
            None => self.assumed_equal.get(&parameter).unwrap_or(&parameter).0,
            Some(first) if visited.all(|number| number == first) => first,
            Some(_) => self.number_of(parameter, Expression::Parameter(block, arguments)),
        }
    }

    /// The number of an instruction's result; `literal` is the literal that it loads a byte of.
    fn result(
        &mut self,
        context: JoinContext<'_>,
        result: Value,
        op: &'b Op,
        literal: Option<&'b [u8]>,
    ) -> ValueNumber {
        let number = |value: &Value| context.numbers[value.0 as usize];
        let ty = self.body.values[result.0 as usize].ty;
        let expression = match op {
            Op::Constant(constant) => Expression::Constant(ty, *constant),
            Op::OwnId => Expression::OwnId,
            Op::Unary(op, a) => Expression::Unary(*op, number(a)),
            Op::Convert(a) => Expression::Convert(ty, number(a)),
            Op::ReplicaNumber(a) => Expression::Replica(number(a)),
            Op::Binary(op, a, b) => {
                let (mut a, mut b) = (number(a), number(b));
                if let Some(cancelled) = self.cancelled(*op, a, b) {
                    return cancelled;
                }
                if let Some(cancelled) = self.cancelled_on_all_edges(*op, context, a, b) {
                    return self.number_of(result, Expression::Parameter(context.block, cancelled));
                }
                if let Some(number) = self.computed_on_all_edges(*op, context, a, b) {
                    return number;
                }
                if op.commutes() && b < a {
                    (a, b) = (b, a);
                }
                Expression::Binary(*op, a, b)
            }
            Op::Load(place) => match (literal, &place.path[..]) {
                (Some(literal), [Projection::Element(at) | Projection::Inside(at)]) => {
                    Expression::Byte(literal, number(at))
                }
                _ => return result.0,
            },
            _ => return result.0,
        };
        self.number_of(result, expression)
    }

    /// The first operand of an operation that this one cancels.
    fn cancelled(&self, op: BinaryOp, a: ValueNumber, b: ValueNumber) -> Option<ValueNumber> {
        let inner = |number: ValueNumber| match self.expressions[number as usize] {
            Some(Expression::Binary(op, p, q)) => Some((op, p, q)),
            _ => None,
        };
        match (op, inner(a), inner(b)) {
            (BinaryOp::BitXor, Some((BinaryOp::BitXor, p, q)), _) if q == b => Some(p),
            (BinaryOp::BitXor, Some((BinaryOp::BitXor, p, q)), _) if p == b => Some(q),
            (BinaryOp::BitXor, _, Some((BinaryOp::BitXor, p, q))) if q == a => Some(p),
            (BinaryOp::BitXor, _, Some((BinaryOp::BitXor, p, q))) if p == a => Some(q),
            (BinaryOp::Subtract, Some((BinaryOp::Add, p, q)), _) if q == b => Some(p),
            (BinaryOp::Subtract, Some((BinaryOp::Add, p, q)), _) if p == b => Some(q),
            (BinaryOp::Add, Some((BinaryOp::Subtract, p, q)), _) if q == b => Some(p),
            (BinaryOp::Add, _, Some((BinaryOp::Subtract, p, q))) if q == a => Some(p),
            _ => None,
        }
    }

    /// Per edge of a join: the number of the result, if the operation cancels another on each edge.
    fn cancelled_on_all_edges(
        &self,
        op: BinaryOp,
        context: JoinContext<'_>,
        a: ValueNumber,
        b: ValueNumber,
    ) -> Option<Vec<ValueNumber>> {
        if context.edges < 2 || ![BinaryOp::BitXor, BinaryOp::Add, BinaryOp::Subtract].contains(&op) {
            return None;
        }
        let on_edge = |edge| {
            self.cancelled(op, self.number_on_edge(a, context, edge, 0)?, self.number_on_edge(b, context, edge, 0)?)
        };
        (0..context.edges).map(on_edge).collect()
    }

    /// The parameter of a join whose argument on each edge is what this operation would compute there.
    fn computed_on_all_edges(
        &self,
        op: BinaryOp,
        context: JoinContext<'_>,
        a: ValueNumber,
        b: ValueNumber,
    ) -> Option<ValueNumber> {
        if context.edges < 2 {
            return None;
        }
        let on_edge = |edge| self.computed_before(op, a, b, context, edge, 0);
        let arguments: Vec<ValueNumber> = (0..context.edges).map(on_edge).collect::<Option<_>>()?;
        self.expression_numbers.get(&Expression::Parameter(context.block, arguments)).copied()
    }

    /// The number of an operation as evaluated on an edge.
    fn computed_before(
        &self,
        op: BinaryOp,
        a: ValueNumber,
        b: ValueNumber,
        context: JoinContext<'_>,
        edge: usize,
        depth: usize,
    ) -> Option<ValueNumber> {
        let (mut a, mut b) =
            (self.number_on_edge(a, context, edge, depth)?, self.number_on_edge(b, context, edge, depth)?);
        if op.commutes() && b < a {
            (a, b) = (b, a);
        }
        let expression = Expression::Binary(op, a, b);
        self.expression_numbers.get(&expression).or_else(|| self.previous.get(&expression)).copied()
    }

    /// A number as evaluated on an edge.
    fn number_on_edge(
        &self,
        number: ValueNumber,
        context: JoinContext<'_>,
        edge: usize,
        depth: usize,
    ) -> Option<ValueNumber> {
        let JoinContext { numbers, block, .. } = context;
        match &self.expressions[number as usize] {
            Some(Expression::Parameter(other, arguments)) if *other == block => {
                return Some(arguments[edge]).filter(|number| *number != TOP);
            }
            Some(Expression::Byte(literal, at)) => {
                let at = self.number_on_edge(*at, context, edge, depth)?;
                return self.expression_numbers.get(&Expression::Byte(literal, at)).copied();
            }
            Some(Expression::Convert(ty, a)) => {
                let a = self.number_on_edge(*a, context, edge, depth)?;
                return self.expression_numbers.get(&Expression::Convert(*ty, a)).copied();
            }
            Some(Expression::Binary(op, a, b)) if self.defined[number as usize] == block && depth < MAX_DEPTH => {
                return self.computed_before(*op, *a, *b, context, edge, depth + 1);
            }
            // It does not depend on the edge.
            Some(Expression::Constant(..)) => return Some(number),
            _ => {}
        }
        // A value that is computed in the block itself may differ on the edge.
        let defined = self.defined[number as usize];
        let is_outside = defined != block && self.dominators.dominates(defined, block);
        let arrives = || {
            let mut parameters = self.body.blocks[block].parameters.iter();
            parameters.any(|parameter| numbers[parameter.0 as usize] == number)
        };
        (is_outside || arrives()).then_some(number)
    }
}

/// The loads from slots that hold a literal there, written in the same block: what they load a byte of.
pub(super) fn literal_bytes(body: &Body) -> FxHashMap<Value, &[u8]> {
    let mut loads = FxHashMap::default();
    for block in &body.blocks {
        let mut held: FxHashMap<SlotId, &[u8]> = FxHashMap::default();
        for instruction in &block.instructions {
            match (&instruction.op, instruction.result) {
                (Op::SetBytes(place, bytes), _) if place.path.is_empty() => {
                    if let Base::Slot(slot) = place.base {
                        held.insert(slot, bytes);
                    }
                }
                (Op::Load(place), Some(result)) => {
                    if let (Base::Slot(slot), [Projection::Element(_) | Projection::Inside(_)]) =
                        (place.base, &place.path[..])
                        && let Some(literal) = held.get(&slot)
                    {
                        loads.insert(result, *literal);
                    }
                }
                (op, _) => op_slots(op, &mut |slot| {
                    held.remove(slot);
                }),
            }
        }
    }
    loads
}

#[cfg(test)]
pub(super) mod tests;
