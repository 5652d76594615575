//! Backing off from a path that does not pay. Being entered and left costs about as much as what a path saves in two
//! iterations; input that has it left before that, again and again, would be slower with the path than without it. So
//! where it is left it notes how far it came, and the entry test, when it comes the next time, declines it for a while:
//! 2 times at first, then 4, 8, 16, 32 and from then on 64 times between two tries. A run that ends as specified, or that
//! only the bound ends, has it tried at once again, and so has one that came far enough.
//!
//! ```text
//!   entry test: skip > 0:             skip -= 1 ───────────────────────────────────> decline
//!               else left = 0: ────────────────────────────────────────────────────> enter
//!                    else left <= bound - 2: left, span = 0 ───────────────────────> enter
//!                         else left = 0, span, skip = (2 span + 1) & 63 ───────────> decline
//! ```

use super::ExitReason;
use crate::product::{Leaving, NodeEnd};
use quaject_esp_ir::ir::{
    Base, BinaryOp, Block, BlockId, Body, Edge, Instruction, Location, Op, Place, Projection, SlotId, Terminator, Type,
    TypeId, TypeTable, Value, ValueData,
};

/// What comes of a path that is left early again and again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum BackOff {
    /// It is declined for a while.
    #[default]
    On,
    /// It is entered again and again.
    Off,
}

/// Iterations that pay for an entry.
const PAID: u32 = 2;
/// The most times that it is declined once more between two tries: a power of two less one.
const MOST_SKIPPED: i128 = 63;

/// Where things are noted: how many iterations were left when the path was left early, nought if it was not or if that is
/// dealt with; how often it was declined once more then; how often it still is.
const LEFT: i128 = 0;
const SPAN: i128 = 1;
const SKIP: i128 = 2;

/// The type of the slot where things are noted.
pub(super) fn notes() -> Type {
    Type::Array { length: 3, element: TypeTable::U32 }
}

/// Has a path's code note how far it came, in a slot of this type.
pub(super) fn note(body: &mut Body, ty: TypeId, leaves: &[Leaving], ends: &[NodeEnd]) -> SlotId {
    body.slots.push(super::insert::slot(ty));
    let slot = SlotId(body.slots.len() as u32 - 1);
    let bounds = ends.iter().map(|end| (end.stub, None));
    let others = leaves.iter().map(|leaving| {
        let count = match leaving.exit.reason {
            ExitReason::Normal | ExitReason::IterationLimit => None,
            // The path goes on as soon as it can, so that one iteration is enough.
            ExitReason::EnvironmentNotReady(_) | ExitReason::NoneRunnable => Some((leaving.count, PAID - 1)),
            ExitReason::Deviation(_)
            | ExitReason::PredicateFalse(_)
            | ExitReason::Stops(_)
            | ExitReason::ValuesDiffer
            | ExitReason::Forced(_) => Some((leaving.count, 0)),
        };
        (leaving.block, count)
    });
    for (block, count) in bounds.chain(others) {
        let location = body.blocks[block.0 as usize].location;
        let mut code = Code { body, slot, location, instructions: Vec::new() };
        match count {
            None => code.paid(),
            Some((count, 0)) => code.store(LEFT, count),
            Some((count, less)) => {
                let less = code.constant(i128::from(less));
                let count = code.binary(BinaryOp::Subtract, count, less);
                code.store(LEFT, count);
            }
        }
        let instructions = code.instructions;
        body.blocks[block.0 as usize].instructions.extend(instructions);
    }
    slot
}

/// The test before the entry test at `enter`: where it begins.
pub(super) fn test(
    body: &mut Body,
    slot: SlotId,
    bound: u32,
    enter: BlockId,
    declined: &Edge,
    location: Location,
) -> BlockId {
    let mut code = Code { body, slot, location, instructions: Vec::new() };
    let to = |to: BlockId| Edge { to, arguments: Vec::new() };
    let (span, most, one) = (code.load(SPAN), code.constant(MOST_SKIPPED), code.constant(1));
    let twice = code.binary(BinaryOp::Add, span, span);
    let more = code.binary(BinaryOp::Add, twice, one);
    let next = code.binary(BinaryOp::BitAnd, more, most);
    let zero = code.constant(0);
    code.store(LEFT, zero);
    code.store(SPAN, next);
    code.store(SKIP, next);
    let early = code.block(Terminator::Jump(declined.clone()));

    code.paid();
    let paid = code.block(Terminator::Jump(to(enter)));

    // The count is one more than the iterations that are left, and where loops begin it is counted before the first.
    let (left, enough) = (code.load(LEFT), code.constant(i128::from(bound.saturating_sub(PAID))));
    let condition = code.truth(BinaryOp::Less, enough, left);
    let aborted = code.block(Terminator::Branch { condition, then: to(early), otherwise: to(paid) });

    let (left, zero) = (code.load(LEFT), code.constant(0));
    let condition = code.truth(BinaryOp::Equal, left, zero);
    let may_enter = code.block(Terminator::Branch { condition, then: to(enter), otherwise: to(aborted) });

    let (skip, one) = (code.load(SKIP), code.constant(1));
    let fewer = code.binary(BinaryOp::Subtract, skip, one);
    code.store(SKIP, fewer);
    let skipped = code.block(Terminator::Jump(declined.clone()));

    let (skip, zero) = (code.load(SKIP), code.constant(0));
    let condition = code.truth(BinaryOp::Equal, skip, zero);
    code.block(Terminator::Branch { condition, then: to(may_enter), otherwise: to(skipped) })
}

/// Instructions that are about to become a block.
struct Code<'b> {
    body: &'b mut Body,
    slot: SlotId,
    location: Location,
    instructions: Vec<Instruction>,
}

impl Code<'_> {
    fn define(&mut self, ty: TypeId, op: Op) -> Value {
        self.body.values.push(ValueData { ty, name: None });
        let result = Value(self.body.values.len() as u32 - 1);
        self.instructions.push(Instruction { result: Some(result), op, location: self.location });
        result
    }

    fn constant(&mut self, constant: i128) -> Value {
        self.define(TypeTable::U32, Op::Constant(constant))
    }

    fn binary(&mut self, op: BinaryOp, a: Value, b: Value) -> Value {
        self.define(TypeTable::U32, Op::Binary(op, a, b))
    }

    fn truth(&mut self, op: BinaryOp, a: Value, b: Value) -> Value {
        self.define(TypeTable::BOOL, Op::Binary(op, a, b))
    }

    fn place(&mut self, of: i128) -> Place {
        let index = self.constant(of);
        Place { base: Base::Slot(self.slot), path: vec![Projection::Element(index)] }
    }

    fn load(&mut self, of: i128) -> Value {
        let place = self.place(of);
        self.define(TypeTable::U32, Op::Load(place))
    }

    fn store(&mut self, of: i128, value: Value) {
        let place = self.place(of);
        self.instructions.push(Instruction { result: None, op: Op::Store(place, value), location: self.location });
    }

    /// It has paid: the next time it is tried at once.
    fn paid(&mut self) {
        let zero = self.constant(0);
        self.store(LEFT, zero);
        self.store(SPAN, zero);
    }

    fn block(&mut self, terminator: Terminator) -> BlockId {
        let instructions = std::mem::take(&mut self.instructions);
        self.body.blocks.push(Block { parameters: Vec::new(), instructions, terminator, location: self.location });
        BlockId(self.body.blocks.len() as u32 - 1)
    }
}
