//! Frames: the registers and slots of an instance or call, and the addresses of places in them.

use crate::code::{BaseCode, BodyCode, IndexCode, PlaceCode, RegionCode};
use crate::layout::word;
use crate::pools::{Address, MemorySpace, Pools};
use quaject_esp_ir::ir::Fault;
use quaject_esp_ir::liveness::Dead;

/// The registers and slots of an instance or call.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Frame {
    pub(crate) registers: Vec<i64>,
    pub(crate) memory: Vec<u8>,
}

impl Frame {
    /// Zeroes dead registers and slots.
    #[inline]
    pub(crate) fn clear(&mut self, dead: &Dead) {
        for register in &dead.registers {
            self.registers[*register as usize] = 0;
        }
        for (offset, size) in &dead.slots {
            self.memory[*offset..*offset + *size].fill(0);
        }
    }

    pub(crate) fn new(body: &BodyCode) -> Frame {
        Frame { registers: vec![0; body.registers], memory: vec![0; body.memory] }
    }

    /// Clears the registers and slots of a region.
    pub(crate) fn clear_region(&mut self, region: &RegionCode) {
        for register in &region.registers {
            self.registers[*register as usize] = 0;
        }
        for (offset, size) in &region.slots {
            self.memory[*offset..*offset + *size].fill(0);
        }
    }
}

/// The address of a place.
#[inline]
pub(crate) fn resolve(pools: &Pools, place: &PlaceCode, frame: &Frame) -> Result<Address, Fault> {
    let (space, base) = match place.base {
        BaseCode::Frame(offset) => (MemorySpace::Frame, offset),
        BaseCode::Constant(offset) => (MemorySpace::Constants, offset),
        BaseCode::Object(register, pool) => {
            (MemorySpace::Pool(pool), pools.content(pool, frame.registers[register as usize] as u32)?)
        }
    };
    let mut at = base + place.offset;
    for index in &place.indices {
        match *index {
            IndexCode::Element { index, length, stride, then } => {
                let index = frame.registers[index as usize] as u64;
                if index >= length {
                    return Err(Fault::Bounds);
                }
                at += index as usize * stride + then;
            }
            IndexCode::Byte { index } => {
                let index = frame.registers[index as usize] as u64;
                if index >= u64::from(word(pools.memory(space, &frame.memory), at)) {
                    return Err(Fault::Bounds);
                }
                at += 4 + index as usize;
            }
        }
    }
    Ok(Address { space, at })
}
