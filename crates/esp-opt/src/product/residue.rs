//! The residue: the body that is being emitted, which is what remains of the code of the members after partial
//! evaluation (Jones, Gomard, Sestoft 1993). Knows blocks and values, no members.

use quaject_esp_ir::ir::{
    Block, BlockId, Body, Edge, Instruction, Location, Op, Slot, SlotId, Terminator, TypeId, Value, ValueData,
};
use smol_str::SmolStr;

/// A body under construction.
#[derive(Default)]
pub(super) struct Residue {
    pub(super) body: Body,
    /// Instructions and ends of blocks emitted so far.
    pub(super) size: usize,
    /// The units that a wait counts ([`ProductLimits::wait_cost`](crate::limits::ProductLimits)).
    wait_cost: usize,
}

impl Residue {
    pub(super) fn new(slots: Vec<Slot>, wait_cost: usize) -> Residue {
        Residue { body: Body { values: Vec::new(), slots, blocks: Vec::new() }, size: 0, wait_cost }
    }

    pub(super) fn create_value(&mut self, ty: TypeId, name: Option<SmolStr>) -> Value {
        self.body.values.push(ValueData { ty, name });
        Value(self.body.values.len() as u32 - 1)
    }

    pub(super) fn create_slot(&mut self, ty: TypeId) -> SlotId {
        self.body.slots.push(Slot { ty, name: None });
        SlotId(self.body.slots.len() as u32 - 1)
    }

    /// A block without code. It has a placeholder terminator until it is finished.
    pub(super) fn create_block(&mut self, parameters: Vec<Value>) -> BlockId {
        self.body.blocks.push(Block {
            parameters,
            instructions: Vec::new(),
            terminator: Terminator::End,
            location: Location::default(),
        });
        BlockId(self.body.blocks.len() as u32 - 1)
    }

    pub(super) fn emit(&mut self, block: BlockId, result: Option<Value>, op: Op, location: Location) {
        self.size += 1;
        self.body.blocks[block.0 as usize].instructions.push(Instruction { result, op, location });
    }

    pub(super) fn finish(&mut self, block: BlockId, terminator: Terminator, location: Location) {
        self.size += if matches!(terminator, Terminator::Wait(_)) { self.wait_cost } else { 1 };
        let block = &mut self.body.blocks[block.0 as usize];
        block.terminator = terminator;
        block.location = location;
    }
}

/// An edge without arguments.
pub(super) fn edge_to(block: BlockId) -> Edge {
    Edge { to: block, arguments: Vec::new() }
}
