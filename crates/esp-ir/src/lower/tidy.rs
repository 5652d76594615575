//! Keeps the graph small: drops blocks that cannot be reached and block parameters that always have one value, joins
//! chains of jumps, and numbers everything in order of text. Changes nothing of what the program does.

use super::builder::{Raw, RawBody, RawTerminator};
use super::visit::{edges_mut, op_values, terminator_values, wait_targets};
use crate::ir::{
    Base, Bind, Block, BlockId, Body, Edge, Op, Operand, Operation, Pattern, Place, SlotId, Terminator, Value,
};

/// Empties blocks that no path from the entry reaches, and forgets the edges from them.
pub(super) fn drop_unreachable(body: &mut RawBody) {
    let mut reached = vec![false; body.blocks.len()];
    let mut work = vec![BlockId(0)];
    while let Some(block) = work.pop() {
        if std::mem::replace(&mut reached[block.0 as usize], true) {
            continue;
        }
        work.extend(raw_successors(&body.blocks[block.0 as usize].terminator));
    }
    for (index, block) in body.blocks.iter_mut().enumerate() {
        block.predecessors.retain(|predecessor| reached[predecessor.0 as usize]);
        if !reached[index] {
            block.parameters.clear();
            block.code.clear();
            block.terminator = RawTerminator::Open;
        }
    }
}

/// Every block a raw terminator leads to, regions included.
pub(super) fn raw_successors(terminator: &RawTerminator) -> Vec<BlockId> {
    match terminator {
        RawTerminator::Open => Vec::new(),
        RawTerminator::Plain(terminator) => successors(terminator),
        RawTerminator::Thaw { value: _, moved, copied } => vec![moved.to, *copied],
    }
}

fn successors(terminator: &Terminator) -> Vec<BlockId> {
    match terminator {
        Terminator::Wait(wait) => wait_targets(&mut wait.clone()).into_iter().map(|target| *target).collect(),
        Terminator::Jump(edge) | Terminator::Yield(edge) => vec![edge.to],
        Terminator::Branch { condition: _, then, otherwise } => vec![then.to, otherwise.to],
        Terminator::Switch { value: _, cases, default } => {
            cases.iter().map(|(_, edge)| edge.to).chain(std::iter::once(default.to)).collect()
        }
        Terminator::Return(_)
        | Terminator::Result(_)
        | Terminator::Exit(_)
        | Terminator::End
        | Terminator::Fault(_) => Vec::new(),
    }
}

fn raw_edges(terminator: &mut RawTerminator) -> Vec<&mut Edge> {
    match terminator {
        RawTerminator::Open => Vec::new(),
        RawTerminator::Plain(terminator) => edges_mut(terminator),
        RawTerminator::Thaw { value: _, moved, copied: _ } => vec![moved],
    }
}

/// Which value stands for which, followed to the end.
pub(super) struct Replacements(Vec<Value>);

impl Replacements {
    pub(super) fn new(values: usize) -> Replacements {
        Replacements((0..values as u32).map(Value).collect())
    }

    pub(super) fn replace(&mut self, value: Value, by: Value) {
        self.0[value.0 as usize] = by;
    }

    pub(super) fn find(&mut self, value: Value) -> Value {
        let mut root = value;
        while self.0[root.0 as usize] != root {
            root = self.0[root.0 as usize];
        }
        let mut next = value;
        while next != root {
            next = std::mem::replace(&mut self.0[next.0 as usize], root);
        }
        root
    }
}

/// Replaces parameters whose arguments are all the same value, or the parameter itself, by that value.
pub(super) fn drop_trivial_parameters(body: &mut RawBody) {
    let mut replacements = Replacements::new(body.values.len());
    // Per block and parameter: the arguments along every edge.
    let mut arguments: Vec<Vec<Vec<Value>>> =
        body.blocks.iter().map(|block| vec![Vec::new(); block.parameters.len()]).collect();
    for block in &mut body.blocks {
        for edge in raw_edges(&mut block.terminator) {
            for (position, argument) in edge.arguments.iter().enumerate() {
                arguments[edge.to.0 as usize][position].push(*argument);
            }
        }
    }
    let mut dropped: Vec<Vec<bool>> = body.blocks.iter().map(|block| vec![false; block.parameters.len()]).collect();
    loop {
        let mut changed = false;
        for (index, block) in body.blocks.iter().enumerate() {
            for (position, parameter) in block.parameters.iter().enumerate() {
                if dropped[index][position] || arguments[index][position].is_empty() {
                    continue;
                }
                let mut only = None;
                let is_trivial = arguments[index][position].iter().all(|argument| {
                    let argument = replacements.find(*argument);
                    argument == *parameter || *only.get_or_insert(argument) == argument
                });
                if let (true, Some(only)) = (is_trivial, only) {
                    replacements.replace(*parameter, only);
                    dropped[index][position] = true;
                    changed = true;
                }
            }
        }
        if !changed {
            break;
        }
    }
    for block in &mut body.blocks {
        for edge in raw_edges(&mut block.terminator) {
            let dropped = &dropped[edge.to.0 as usize];
            let mut position = 0;
            edge.arguments.retain(|_| {
                position += 1;
                !dropped[position - 1]
            });
        }
    }
    for (block, dropped) in body.blocks.iter_mut().zip(&dropped) {
        let mut position = 0;
        block.parameters.retain(|_| {
            position += 1;
            !dropped[position - 1]
        });
        let mut visit = |value: &mut Value| *value = replacements.find(*value);
        for raw in &mut block.code {
            match raw {
                Raw::Plain(instruction, _) => op_values(&mut instruction.op, &mut visit),
                Raw::Begin(_) => {}
                Raw::Freeze { result: _, from, location: _ } => visit(from),
            }
        }
        match &mut block.terminator {
            RawTerminator::Open => {}
            RawTerminator::Plain(terminator) => terminator_values(terminator, &mut visit),
            RawTerminator::Thaw { value, moved, copied: _ } => {
                visit(value);
                moved.arguments.iter_mut().for_each(visit);
            }
        }
    }
}

/// Joins every block with the one it alone jumps to, then numbers blocks, values and slots in order.
pub(super) fn merge_and_number(mut body: Body) -> Body {
    merge(&mut body);
    number(body)
}

fn merge(body: &mut Body) {
    let mut incoming = vec![0u32; body.blocks.len()];
    incoming[0] = 1;
    for index in reachable(body) {
        for successor in successors(&body.blocks[index].terminator) {
            incoming[successor.0 as usize] += 1;
        }
    }
    let mut replacements = Replacements::new(body.values.len());
    for index in reachable(body) {
        while let Terminator::Jump(edge) = &body.blocks[index].terminator {
            let next = edge.to.0 as usize;
            if incoming[next] != 1 || next == index {
                break;
            }
            let target = std::mem::replace(
                &mut body.blocks[next],
                Block {
                    parameters: Vec::new(),
                    instructions: Vec::new(),
                    terminator: Terminator::End,
                    location: Default::default(),
                },
            );
            let Terminator::Jump(edge) = std::mem::replace(&mut body.blocks[index].terminator, target.terminator)
            else {
                unreachable!("the loop saw a jump")
            };
            for (parameter, argument) in target.parameters.iter().zip(&edge.arguments) {
                let argument = replacements.find(*argument);
                replacements.replace(*parameter, argument);
                let name = body.values[parameter.0 as usize].name.clone();
                let data = &mut body.values[argument.0 as usize];
                data.name = data.name.take().or(name);
            }
            body.blocks[index].instructions.extend(target.instructions);
            body.blocks[index].location = target.location;
            incoming[next] = 0;
        }
    }
    for block in &mut body.blocks {
        let mut visit = |value: &mut Value| *value = replacements.find(*value);
        block.instructions.iter_mut().for_each(|instruction| op_values(&mut instruction.op, &mut visit));
        terminator_values(&mut block.terminator, &mut visit);
    }
}

/// Blocks in an order in which every block comes after one that leads to it, near the order of text.
fn reachable(body: &Body) -> Vec<usize> {
    let mut seen = vec![false; body.blocks.len()];
    let mut work = vec![0];
    let mut order = Vec::new();
    while let Some(index) = work.pop() {
        if std::mem::replace(&mut seen[index], true) {
            continue;
        }
        order.push(index);
        work.extend(successors(&body.blocks[index].terminator).iter().rev().map(|block| block.0 as usize));
    }
    order
}

fn number(mut body: Body) -> Body {
    let order = reachable(&body);
    let mut blocks = vec![None; body.blocks.len()];
    let mut values: Vec<Option<Value>> = vec![None; body.values.len()];
    let mut slots: Vec<Option<SlotId>> = vec![None; body.slots.len()];
    let mut result = Body::default();
    for (position, index) in order.iter().enumerate() {
        blocks[*index] = Some(BlockId(position as u32));
        let block = &body.blocks[*index];
        let defined = block.parameters.iter().chain(block.instructions.iter().filter_map(|i| i.result.as_ref()));
        for value in defined {
            values[value.0 as usize] = Some(Value(result.values.len() as u32));
            result.values.push(body.values[value.0 as usize].clone());
        }
    }
    // Slots keep their order, since those of parameters come first; unused ones of temporaries are dropped.
    let mut used = vec![false; body.slots.len()];
    for index in &order {
        block_slots(&mut body.blocks[*index], &mut |slot| used[slot.0 as usize] = true);
    }
    for (index, slot) in body.slots.iter().enumerate() {
        if used[index] || slot.name.is_some() {
            slots[index] = Some(SlotId(result.slots.len() as u32));
            result.slots.push(slot.clone());
        }
    }
    for index in order {
        let mut block = body.blocks[index].clone();
        let value_of = |value: &mut Value| *value = values[value.0 as usize].expect("values are defined before use");
        block.parameters.iter_mut().for_each(value_of);
        for instruction in &mut block.instructions {
            instruction.result.iter_mut().for_each(value_of);
            op_values(&mut instruction.op, &mut { value_of });
        }
        terminator_values(&mut block.terminator, &mut { value_of });
        let block_of = |block: &mut BlockId| *block = blocks[block.0 as usize].expect("targets are reachable");
        edges_mut(&mut block.terminator).into_iter().for_each(|edge| block_of(&mut edge.to));
        match &mut block.terminator {
            Terminator::Wait(wait) => wait_targets(wait).into_iter().for_each(block_of),
            Terminator::Jump(_)
            | Terminator::Branch { .. }
            | Terminator::Switch { .. }
            | Terminator::Yield(_)
            | Terminator::Return(_)
            | Terminator::Result(_)
            | Terminator::Exit(_)
            | Terminator::End
            | Terminator::Fault(_) => {}
        }
        block_slots(&mut block, &mut |slot| *slot = slots[slot.0 as usize].expect("used slots are kept"));
        result.blocks.push(block);
    }
    result
}

/// Calls `visit` on every slot a block names.
fn block_slots(block: &mut Block, visit: &mut dyn FnMut(&mut SlotId)) {
    for instruction in &mut block.instructions {
        op_slots(&mut instruction.op, visit);
    }
    terminator_slots(&mut block.terminator, visit);
}

/// Calls `visit` on every slot a terminator names.
pub(super) fn terminator_slots(terminator: &mut Terminator, visit: &mut dyn FnMut(&mut SlotId)) {
    match terminator {
        Terminator::Wait(wait) => {
            for branch in &mut wait.branches {
                match &mut branch.operation {
                    Operation::In { site: _, channel: _, patterns, condition: _ } => {
                        patterns.iter_mut().for_each(|pattern| pattern_slots(pattern, visit));
                    }
                    Operation::Out { site: _, channel: _, payload } => match payload {
                        crate::ir::Payload::Ready(passed) => {
                            passed.iter_mut().for_each(|passed| operand_slots(&mut passed.operand, visit));
                        }
                        crate::ir::Payload::Region(_) => {}
                    },
                    Operation::After { amount: _, unit_ns: _ } => {}
                }
            }
        }
        Terminator::Return(operand) => operand_slots(operand, visit),
        Terminator::Result(passed) => {
            passed.iter_mut().for_each(|passed| operand_slots(&mut passed.operand, visit));
        }
        Terminator::Jump(_)
        | Terminator::Branch { .. }
        | Terminator::Switch { .. }
        | Terminator::Yield(_)
        | Terminator::Exit(_)
        | Terminator::End
        | Terminator::Fault(_) => {}
    }
}

fn pattern_slots(pattern: &mut Pattern, visit: &mut dyn FnMut(&mut SlotId)) {
    match pattern {
        Pattern::Any | Pattern::Constant(_) | Pattern::Bytes(_) | Pattern::OwnId => {}
        Pattern::Bind(Bind::Parameter(_)) => {}
        Pattern::Bind(Bind::Slot(slot)) => visit(slot),
        Pattern::Equal(operand) => operand_slots(operand, visit),
        Pattern::Tag(_, payload) => payload.iter_mut().for_each(|payload| pattern_slots(payload, visit)),
        Pattern::Record(parts) | Pattern::Array(parts) => {
            parts.iter_mut().for_each(|part| pattern_slots(part, visit));
        }
    }
}

fn place_slots(place: &mut Place, visit: &mut dyn FnMut(&mut SlotId)) {
    match &mut place.base {
        Base::Slot(slot) => visit(slot),
        Base::Object(_) => {}
    }
}

fn operand_slots(operand: &mut Operand, visit: &mut dyn FnMut(&mut SlotId)) {
    match operand {
        Operand::Value(_) => {}
        Operand::Place(place) => place_slots(place, visit),
    }
}

/// Calls `visit` on every slot an instruction names.
pub(super) fn op_slots(op: &mut Op, visit: &mut dyn FnMut(&mut SlotId)) {
    match op {
        Op::Constant(_)
        | Op::Unary(..)
        | Op::Binary(..)
        | Op::Convert(_)
        | Op::OwnId
        | Op::InstanceOf(..)
        | Op::ReplicaNumber(_)
        | Op::Allocate(_)
        | Op::IsUnique(_)
        | Op::FreeObjects(_)
        | Op::Mark(_) => {}
        Op::Load(place)
        | Op::Store(place, _)
        | Op::SetBytes(place, _)
        | Op::SetTag(place, _)
        | Op::Tag(place)
        | Op::Length(place)
        | Op::SetLength(place, _)
        | Op::LoadNumber { from: place, .. }
        | Op::LoadBits { from: place, .. }
        | Op::StoreNumber { to: place, .. }
        | Op::StoreBits { to: place, .. } => place_slots(place, visit),
        Op::Copy { to, from }
        | Op::Append { to, from }
        | Op::CopySlice { to, from, start: _, end: _ }
        | Op::StoreSlice { to, from, start: _, end: _ } => {
            place_slots(to, visit);
            place_slots(from, visit);
        }
        Op::Fill(place, operand) => {
            place_slots(place, visit);
            operand_slots(operand, visit);
        }
        Op::Equal(left, right) => {
            operand_slots(left, visit);
            operand_slots(right, visit);
        }
        Op::CallFunction { function: _, arguments, to } | Op::CallExtern { function: _, arguments, to } => {
            arguments.iter_mut().for_each(|argument| operand_slots(argument, visit));
            to.iter_mut().for_each(|place| place_slots(place, visit));
        }
        Op::Retain(operand) | Op::Release(operand) => operand_slots(operand, visit),
    }
}
