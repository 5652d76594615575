//! Values that are always the same as another one: the other takes their place. Finds more than equal expressions:
//! values that go round loops beside each other, as the places at which two processes are in equal keys, are taken for
//! equal until something shows that they are not (Simpson, "Value-Driven Redundancy Elimination", 1996, section 4.2).
//! And what one operation does and the next undoes: then both are left out, also where several ways meet in between.

use quaject_esp_ir::cfg::{Regions, edges, edges_mut, successors};
use quaject_esp_ir::dominators::Dominators;
use quaject_esp_ir::ir::{
    Base, BinaryOp, Body, Instruction, Op, Projection, SlotId, Terminator, TypeId, UnaryOp, Value, ValueData,
};
use quaject_esp_ir::simplify_cfg::Replacements;
use quaject_esp_ir::visit::{op_slots, op_values_mut, terminator_values_mut};
use rustc_hash::{FxBuildHasher, FxHashMap};

/// Rounds after which a body is left as it is: loops in loops take a few.
const MOST_ROUNDS: usize = 64;
/// How many operations above each other are looked at on every way to a block.
const MOST_DEEP: usize = 4;

/// Equal values have equal numbers: that of one of them, as an index.
pub(crate) type Number = u32;
/// Of a value that has not been looked at yet: equal to any.
const ANY: Number = Number::MAX;

/// What a value is computed from.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Key<'b> {
    Constant(TypeId, i128),
    OwnId,
    Unary(UnaryOp, Number),
    Binary(BinaryOp, Number, Number),
    Convert(TypeId, Number),
    Replica(Number),
    /// A byte of a literal.
    Byte(&'b [u8], Number),
    /// A parameter of a block, by what arrives along its edges.
    Parameter(usize, Vec<Number>),
}

/// Replaces values by equal ones that were computed before; whether there were any.
pub(super) fn unify(body: &mut Body) -> bool {
    let dominators = Dominators::new(body);
    let Some(Numbered { numbers, constants, mut merged }) = number(body, &dominators, &FxHashMap::default()) else {
        return false;
    };
    let epochs = epochs(body, &dominators);
    let mut leaders = Leaders { of: FxHashMap::default(), epochs: &epochs, dominators: &dominators };
    let mut replacements = Replacements::new(body.values.len());
    let mut parameters = Vec::new();
    let mut any = false;
    for index in dominators.order() {
        let block = &mut body.blocks[*index];
        let mut replaces = |leaders: &mut Leaders<'_>, value: Value| {
            let leader = leaders.find_or_be(numbers[value.0 as usize], *index, value);
            replacements.replace(value, leader);
            leader != value
        };
        for parameter in &block.parameters {
            any |= replaces(&mut leaders, *parameter);
        }
        block.instructions.retain_mut(|instruction| {
            // A constant costs nothing where it is used.
            let (Some(result), false) = (instruction.result, matches!(instruction.op, Op::Constant(_))) else {
                return true;
            };
            if let Some(constant) = constants.get(&numbers[result.0 as usize]) {
                instruction.op = Op::Constant(*constant);
                any = true;
                return true;
            }
            let replaced = replaces(&mut leaders, result);
            let merges = merged.remove(&result).filter(|_| !replaced).and_then(|(meeting, merged)| {
                let arriving = merged.into_iter().map(|(from, number)| match constants.get(&number) {
                    Some(constant) => Some((from, Arriving::Constant(*constant))),
                    None => leaders.find(number, from).map(|value| (from, Arriving::Value(value))),
                });
                Some((meeting, result, arriving.collect::<Option<Vec<_>>>()?))
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
    for (block, result, arriving) in parameters {
        become_parameter(body, block, result, arriving);
    }
    any
}

/// Numbers of a body's values, if each of these values were the one beside it: equal values have equal numbers. None if
/// it takes too many rounds.
pub(crate) fn numbers_if(body: &Body, alike: &FxHashMap<Value, Value>) -> Option<Vec<Number>> {
    number(body, &Dominators::new(body), alike).map(|numbered| numbered.numbers)
}

/// What arrives along an edge.
enum Arriving {
    Value(Value),
    Constant(i128),
}

/// Makes a value a parameter of its block, to which this arrives from the blocks before, in their order.
fn become_parameter(body: &mut Body, block: usize, value: Value, arriving: Vec<(usize, Arriving)>) {
    body.blocks[block].parameters.push(value);
    let ValueData { ty, .. } = body.values[value.0 as usize];
    for (position, (from, arriving_here)) in arriving.iter().enumerate() {
        let argument = match arriving_here {
            Arriving::Value(argument) => *argument,
            Arriving::Constant(constant) => {
                body.values.push(ValueData { ty, name: None });
                let argument = Value(body.values.len() as u32 - 1);
                let location = body.blocks[*from].location;
                let (result, op) = (Some(argument), Op::Constant(*constant));
                body.blocks[*from].instructions.push(Instruction { result, op, location });
                argument
            }
        };
        // A block may lead to the same one along several edges.
        let earlier = arriving[..position].iter().filter(|(other, _)| other == from).count();
        let mut edges = edges_mut(&mut body.blocks[*from].terminator);
        edges.retain(|edge| edge.to.0 as usize == block);
        edges[earlier].arguments.push(argument);
    }
}

/// Per number: its values that nothing stands for, and their blocks.
struct Leaders<'b> {
    of: FxHashMap<Number, Vec<(usize, Value)>>,
    epochs: &'b [usize],
    dominators: &'b Dominators,
}

impl Leaders<'_> {
    /// A value of this number that is there at the end of a block.
    fn find(&self, number: Number, block: usize) -> Option<Value> {
        let leads = |(other, _): &&(usize, Value)| {
            self.epochs[*other] == self.epochs[block] && self.dominators.dominates(*other, block)
        };
        self.of.get(&number)?.iter().find(leads).map(|(_, value)| *value)
    }

    /// The value that stands for this one; from now on itself, if there is none.
    fn find_or_be(&mut self, number: Number, block: usize, value: Value) -> Value {
        if let Some(leader) = self.find(number, block) {
            return leader;
        }
        self.of.entry(number).or_default().push((block, value));
        value
    }
}

/// By block: within which part of the body it is of those between which a process may wait. What lives over a wait is
/// kept in memory, so that it is cheaper to compute it anew.
fn epochs(body: &Body, dominators: &Dominators) -> Vec<usize> {
    let mut begins = vec![false; body.blocks.len()];
    let mut from: Vec<Option<usize>> = vec![None; body.blocks.len()];
    for index in dominators.order() {
        let terminator = &body.blocks[*index].terminator;
        match terminator {
            Terminator::Wait(_) => {
                let targets = successors(terminator, Regions::Include);
                targets.iter().for_each(|target| begins[target.0 as usize] = true);
            }
            Terminator::Yield(edge) => begins[edge.to.0 as usize] = true,
            Terminator::Enter(enter) => begins[enter.then.0 as usize] = true,
            _ => {}
        }
        for edge in edges(terminator) {
            from[edge.to.0 as usize].get_or_insert(*index);
        }
    }
    let mut epochs: Vec<usize> = (0..body.blocks.len()).collect();
    for index in dominators.order() {
        if let (false, Some(from)) = (begins[*index], from[*index]) {
            epochs[*index] = epochs[from];
        }
    }
    epochs
}

/// What is known of values.
struct Numbered {
    numbers: Vec<Number>,
    /// The numbers of constants.
    constants: FxHashMap<Number, i128>,
    /// The results that would be parameters: of which block, the blocks before, and what would arrive from each.
    merged: FxHashMap<Value, (usize, Vec<(usize, Number)>)>,
}

/// Numbers every value, unless it takes too many rounds. Of values that nothing arrives at, some are taken for others.
fn number(body: &Body, dominators: &Dominators, alike: &FxHashMap<Value, Value>) -> Option<Numbered> {
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
    let meetings = meetings(body, dominators, &incoming);
    let mut numbers = vec![ANY; body.values.len()];
    let (mut known_before, mut had_changed) = (FxHashMap::default(), true);
    for _ in 0..MOST_ROUNDS {
        let known = FxHashMap::with_capacity_and_hasher(body.values.len(), FxBuildHasher);
        let keys = vec![None; body.values.len()];
        let mut round = Round { body, dominators, defined: &defined, alike, known, known_before, keys };
        let mut changed = false;
        for index in dominators.order() {
            let edges = incoming[meetings[*index]].len();
            let (block, incoming) = (&body.blocks[*index], &incoming[*index]);
            for (position, parameter) in block.parameters.iter().enumerate() {
                let arriving = incoming.iter().map(|(_, arguments)| numbers[arguments[position].0 as usize]).collect();
                let number = round.parameter(*index, *parameter, arriving);
                changed |= std::mem::replace(&mut numbers[parameter.0 as usize], number) != number;
            }
            for instruction in &block.instructions {
                let Some(result) = instruction.result else { continue };
                let literal = bytes.get(&result).copied();
                let standing = Standing { numbers: &numbers, block: meetings[*index], edges };
                let number = round.result(standing, result, &instruction.op, literal);
                changed |= std::mem::replace(&mut numbers[result.0 as usize], number) != number;
            }
        }
        // What the round before knew was so of these numbers only if that did not change any either.
        if !changed && !had_changed {
            let (mut constants, mut merged) = (FxHashMap::default(), FxHashMap::default());
            for (index, key) in round.keys.into_iter().enumerate() {
                match key {
                    Some(Key::Constant(_, constant)) => {
                        constants.insert(index as Number, constant);
                    }
                    Some(Key::Parameter(block, arriving)) => {
                        let from = incoming[block].iter().map(|(from, _)| *from).zip(arriving);
                        merged.insert(Value(index as u32), (block, from.collect()));
                    }
                    _ => {}
                }
            }
            return Some(Numbered { numbers, constants, merged });
        }
        (known_before, had_changed) = (round.known, changed);
    }
    None
}

/// Per block: itself, or the block before it in which several ways have met, if since then ways have only parted.
fn meetings(body: &Body, dominators: &Dominators, incoming: &[Vec<(usize, Vec<Value>)>]) -> Vec<usize> {
    let epochs = epochs(body, dominators);
    let mut meetings: Vec<usize> = (0..body.blocks.len()).collect();
    for index in dominators.order() {
        if let [(from, _)] = &incoming[*index][..]
            && epochs[*index] == epochs[*from]
            && incoming[meetings[*from]].len() > 1
        {
            meetings[*index] = meetings[*from];
        }
    }
    meetings
}

/// Where an instruction stands.
#[derive(Clone, Copy)]
struct Standing<'n> {
    /// Of all values, as far as they are known.
    numbers: &'n [Number],
    /// Where several ways have met last.
    block: usize,
    /// How many edges lead there.
    edges: usize,
}

/// One look at every value, in an order in which it comes after what dominates it.
struct Round<'b> {
    body: &'b Body,
    dominators: &'b Dominators,
    /// The block of each value.
    defined: &'b [usize],
    /// What is taken for another value.
    alike: &'b FxHashMap<Value, Value>,
    known: FxHashMap<Key<'b>, Number>,
    /// What the round before knew, which is all that is known of blocks that come later and lead back.
    known_before: FxHashMap<Key<'b>, Number>,
    /// What the value of a number is computed from.
    keys: Vec<Option<Key<'b>>>,
}

impl<'b> Round<'b> {
    fn of(&mut self, value: Value, key: Key<'b>) -> Number {
        let number = *self.known.entry(key.clone()).or_insert(value.0);
        if number == value.0 {
            self.keys[number as usize] = Some(key);
        }
        number
    }

    /// The number of a parameter to which these values arrive.
    fn parameter(&mut self, block: usize, parameter: Value, arriving: Vec<Number>) -> Number {
        let mut known = arriving.iter().copied().filter(|number| *number != ANY);
        match known.next() {
            // The world gives it its value.
            None => self.alike.get(&parameter).unwrap_or(&parameter).0,
            Some(first) if known.all(|number| number == first) => first,
            Some(_) => self.of(parameter, Key::Parameter(block, arriving)),
        }
    }

    /// The number of an instruction's result; `literal` is what it loads a byte of.
    fn result(&mut self, standing: Standing<'_>, result: Value, op: &'b Op, literal: Option<&'b [u8]>) -> Number {
        let number = |value: &Value| standing.numbers[value.0 as usize];
        let ty = self.body.values[result.0 as usize].ty;
        let key = match op {
            Op::Constant(constant) => Key::Constant(ty, *constant),
            Op::OwnId => Key::OwnId,
            Op::Unary(op, a) => Key::Unary(*op, number(a)),
            Op::Convert(a) => Key::Convert(ty, number(a)),
            Op::ReplicaNumber(a) => Key::Replica(number(a)),
            Op::Binary(op, a, b) => {
                let (mut a, mut b) = (number(a), number(b));
                if let Some(undone) = self.undone(*op, a, b) {
                    return undone;
                }
                if let Some(undone) = self.undone_on_all_ways(*op, standing, a, b) {
                    return self.of(result, Key::Parameter(standing.block, undone));
                }
                if let Some(number) = self.computed_on_all_ways(*op, standing, a, b) {
                    return number;
                }
                if op.commutes() && b < a {
                    (a, b) = (b, a);
                }
                Key::Binary(*op, a, b)
            }
            Op::Load(place) => match (literal, &place.path[..]) {
                (Some(literal), [Projection::Element(at) | Projection::Inside(at)]) => Key::Byte(literal, number(at)),
                _ => return result.0,
            },
            _ => return result.0,
        };
        self.of(result, key)
    }

    /// The first operand of an operation that this one undoes.
    fn undone(&self, op: BinaryOp, a: Number, b: Number) -> Option<Number> {
        let inner = |number: Number| match self.keys[number as usize] {
            Some(Key::Binary(op, p, q)) => Some((op, p, q)),
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

    /// The same where several ways meet, and on each of them this operation undoes another one.
    fn undone_on_all_ways(&self, op: BinaryOp, standing: Standing<'_>, a: Number, b: Number) -> Option<Vec<Number>> {
        if standing.edges < 2 || ![BinaryOp::BitXor, BinaryOp::Add, BinaryOp::Subtract].contains(&op) {
            return None;
        }
        let on_way = |edge| self.undone(op, self.before(a, standing, edge, 0)?, self.before(b, standing, edge, 0)?);
        (0..standing.edges).map(on_way).collect()
    }

    /// What meets where several ways do, if on each of them it is what this operation would give there.
    fn computed_on_all_ways(&self, op: BinaryOp, standing: Standing<'_>, a: Number, b: Number) -> Option<Number> {
        if standing.edges < 2 {
            return None;
        }
        let on_way = |edge| self.computed_before(op, a, b, standing, edge, 0);
        let ways: Vec<Number> = (0..standing.edges).map(on_way).collect::<Option<_>>()?;
        self.known.get(&Key::Parameter(standing.block, ways)).copied()
    }

    /// What an operation would have given on an edge that leads to a block.
    fn computed_before(
        &self,
        op: BinaryOp,
        a: Number,
        b: Number,
        standing: Standing<'_>,
        edge: usize,
        depth: usize,
    ) -> Option<Number> {
        let (mut a, mut b) = (self.before(a, standing, edge, depth)?, self.before(b, standing, edge, depth)?);
        if op.commutes() && b < a {
            (a, b) = (b, a);
        }
        let key = Key::Binary(op, a, b);
        self.known.get(&key).or_else(|| self.known_before.get(&key)).copied()
    }

    /// What a number of a block was on an edge that leads there.
    fn before(&self, number: Number, standing: Standing<'_>, edge: usize, depth: usize) -> Option<Number> {
        let Standing { numbers, block, .. } = standing;
        match &self.keys[number as usize] {
            Some(Key::Parameter(other, arriving)) if *other == block => {
                return Some(arriving[edge]).filter(|number| *number != ANY);
            }
            Some(Key::Byte(literal, at)) => {
                let at = self.before(*at, standing, edge, depth)?;
                return self.known.get(&Key::Byte(literal, at)).copied();
            }
            Some(Key::Convert(ty, a)) => {
                let a = self.before(*a, standing, edge, depth)?;
                return self.known.get(&Key::Convert(*ty, a)).copied();
            }
            Some(Key::Binary(op, a, b)) if self.defined[number as usize] == block && depth < MOST_DEEP => {
                return self.computed_before(*op, *a, *b, standing, edge, depth + 1);
            }
            // It is the same everywhere.
            Some(Key::Constant(..)) => return Some(number),
            _ => {}
        }
        // What is computed in the block itself may have been another value on the way there.
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
