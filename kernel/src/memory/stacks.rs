//! Kernel stacks: each ends at an unmapped page, so that an overflow is a double fault and not a damaged neighbour.

use super::frames::OutOfMemory;
use super::kernel_space::map_fresh;
use super::layout::STACKS;
use crate::cell::Global;
use alloc::vec::Vec;

/// The distance from one stack to the next.
const SLOT_BYTES: u64 = 64 << 10;
/// What is mapped, at the end of the slot.
const STACK_BYTES: u64 = 32 << 10;

struct Slots {
    /// The ends of stacks that are mapped and not in use.
    free: Vec<u64>,
    made: u64,
}

static SLOTS: Global<Slots> = Global::new(Slots { free: Vec::new(), made: 0 });

/// A kernel stack; it is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct KernelStack {
    /// The address behind the last byte, where the stack starts.
    pub(crate) end: u64,
}

impl KernelStack {
    pub(crate) fn new() -> Result<KernelStack, OutOfMemory> {
        if let Some(end) = SLOTS.with(|slots| slots.free.pop()) {
            return Ok(KernelStack { end });
        }
        let number = SLOTS.with(|slots| {
            // Every stack that exists can be given back.
            slots.free.try_reserve(slots.made as usize + 1).map_err(|_| OutOfMemory)?;
            Ok(slots.made)
        })?;
        let end = STACKS + (number + 1) * SLOT_BYTES;
        map_fresh(end - STACK_BYTES, end)?;
        SLOTS.with(|slots| slots.made += 1);
        Ok(KernelStack { end })
    }
}

impl Drop for KernelStack {
    fn drop(&mut self) {
        SLOTS.with(|slots| slots.free.push(self.end));
    }
}
