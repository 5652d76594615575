//! Exponential back-off from a path that does not pay (Metcalfe, Boggs 1976), the reverse of a tracing compiler's
//! warm-up counter. Entering and exiting a path costs about as much as two iterations save; input that repeatedly
//! causes a side exit before that would run slower with the path than without. A side exit therefore records the
//! progress of the run, and entry tests after it bypass the path: 2 times at first, then 4, 8, 16, 32 and finally 64
//! times between two attempts. A run that takes the normal exit, reaches the iteration limit, or makes enough progress
//! resets the interval.
//!
//! ```text
//!   entry test: skip > 0:               skip -= 1 ───────────────────────────────────> bypass
//!               else remaining = 0: ────────────────────────────────────────────────> enter
//!                    else remaining <= limit - 2: remaining, interval = 0 ───────────> enter
//!                         else remaining = 0; interval, skip = (2 interval + 1) & 63 > bypass
//! ```

use crate::path_exit::ExitReason;
use crate::product::{ExitBlock, LimitExit};
use quaject_esp_ir::ir::{
    Base, BinaryOp, Block, BlockId, Body, Edge, Instruction, Location, Op, Place, Projection, Slot, SlotId, Terminator,
    Type, TypeId, TypeTable, Value, ValueData,
};

/// Whether a path that repeatedly exits early is bypassed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum BackOff {
    /// It is bypassed for a while.
    #[default]
    On,
    /// It is entered every time.
    Off,
}

/// The number of iterations whose savings equal the cost of an entry.
const BREAK_EVEN_ITERATIONS: u32 = 2;
/// The maximal interval between two attempts, less one: a power of two less one.
const MAX_SKIPPED: i128 = 63;

/// The elements of the state: the iterations that remained at an early exit, 0 if there was none or it has been
/// handled; the entry tests to skip after it, less one; those of them still to skip.
const REMAINING: i128 = 0;
const INTERVAL: i128 = 1;
const SKIP: i128 = 2;

/// The type of the slot with the back-off state.
pub(super) fn state_type() -> Type {
    Type::Array { length: 3, element: TypeTable::U32 }
}

/// Makes a path's exits record the progress of the run, in a slot of this type.
pub(super) fn record_progress(
    body: &mut Body,
    ty: TypeId,
    exit_blocks: &[ExitBlock],
    at_limit: &[LimitExit],
) -> SlotId {
    body.slots.push(Slot { ty, name: None });
    let slot = SlotId(body.slots.len() as u32 - 1);
    let limit_exits = at_limit.iter().map(|exit| (exit.stub, None));
    let others = exit_blocks.iter().map(|exit_block| {
        let count = match exit_block.exit.reason {
            ExitReason::Normal | ExitReason::IterationLimit => None,
            // The path is resumed as soon as possible, so that one iteration pays.
            ExitReason::EnvironmentNotReady(_) | ExitReason::NoneRunnable => {
                Some((exit_block.iteration_count, BREAK_EVEN_ITERATIONS - 1))
            }
            ExitReason::Deviation(_)
            | ExitReason::PredicateFalse(_)
            | ExitReason::NotExecutable(_)
            | ExitReason::ValuesDiffer
            | ExitReason::Forced(_) => Some((exit_block.iteration_count, 0)),
        };
        (exit_block.block, count)
    });
    for (block, count) in limit_exits.chain(others) {
        let location = body.blocks[block.0 as usize].location;
        let mut code = BlockBuilder { body, slot, location, instructions: Vec::new() };
        match count {
            None => code.reset(),
            Some((count, 0)) => code.store(REMAINING, count),
            Some((count, credit)) => {
                let credit = code.constant(i128::from(credit));
                let count = code.binary(BinaryOp::Subtract, count, credit);
                code.store(REMAINING, count);
            }
        }
        let instructions = code.instructions;
        body.blocks[block.0 as usize].instructions.extend(instructions);
    }
    slot
}

/// Emits the back-off test in front of the entry test at `enter`; returns its first block.
pub(super) fn emit_back_off_test(
    body: &mut Body,
    slot: SlotId,
    limit: u32,
    enter: BlockId,
    bypass: &Edge,
    location: Location,
) -> BlockId {
    let mut code = BlockBuilder { body, slot, location, instructions: Vec::new() };
    let edge_to = |to: BlockId| Edge { to, arguments: Vec::new() };
    let (interval, mask, one) = (code.load(INTERVAL), code.constant(MAX_SKIPPED), code.constant(1));
    let twice = code.binary(BinaryOp::Add, interval, interval);
    let more = code.binary(BinaryOp::Add, twice, one);
    let next = code.binary(BinaryOp::BitAnd, more, mask);
    let zero = code.constant(0);
    code.store(REMAINING, zero);
    code.store(INTERVAL, next);
    code.store(SKIP, next);
    let back_off = code.block(Terminator::Jump(bypass.clone()));

    code.reset();
    let reset = code.block(Terminator::Jump(edge_to(enter)));

    // The count is one more than the remaining iterations, and at counting blocks it is decremented before the first.
    let (remaining, enough) =
        (code.load(REMAINING), code.constant(i128::from(limit.saturating_sub(BREAK_EVEN_ITERATIONS))));
    let condition = code.comparison(BinaryOp::Less, enough, remaining);
    let test_progress =
        code.block(Terminator::Branch { condition, then: edge_to(back_off), otherwise: edge_to(reset) });

    let (remaining, zero) = (code.load(REMAINING), code.constant(0));
    let condition = code.comparison(BinaryOp::Equal, remaining, zero);
    let test_exit =
        code.block(Terminator::Branch { condition, then: edge_to(enter), otherwise: edge_to(test_progress) });

    let (skip, one) = (code.load(SKIP), code.constant(1));
    let fewer = code.binary(BinaryOp::Subtract, skip, one);
    code.store(SKIP, fewer);
    let skipped = code.block(Terminator::Jump(bypass.clone()));

    let (skip, zero) = (code.load(SKIP), code.constant(0));
    let condition = code.comparison(BinaryOp::Equal, skip, zero);
    code.block(Terminator::Branch { condition, then: edge_to(test_exit), otherwise: edge_to(skipped) })
}

/// Instructions of the block under construction.
struct BlockBuilder<'b> {
    body: &'b mut Body,
    slot: SlotId,
    location: Location,
    instructions: Vec<Instruction>,
}

impl BlockBuilder<'_> {
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

    fn comparison(&mut self, op: BinaryOp, a: Value, b: Value) -> Value {
        self.define(TypeTable::BOOL, Op::Binary(op, a, b))
    }

    fn place(&mut self, element: i128) -> Place {
        let index = self.constant(element);
        Place { base: Base::Slot(self.slot), path: vec![Projection::Element(index)] }
    }

    fn load(&mut self, element: i128) -> Value {
        let place = self.place(element);
        self.define(TypeTable::U32, Op::Load(place))
    }

    fn store(&mut self, element: i128, value: Value) {
        let place = self.place(element);
        self.instructions.push(Instruction { result: None, op: Op::Store(place, value), location: self.location });
    }

    /// Resets the interval: the next entry test enters the path.
    fn reset(&mut self) {
        let zero = self.constant(0);
        self.store(REMAINING, zero);
        self.store(INTERVAL, zero);
    }

    fn block(&mut self, terminator: Terminator) -> BlockId {
        let instructions = std::mem::take(&mut self.instructions);
        self.body.blocks.push(Block { parameters: Vec::new(), instructions, terminator, location: self.location });
        BlockId(self.body.blocks.len() as u32 - 1)
    }
}
