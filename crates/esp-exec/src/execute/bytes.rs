//! Slices of `bytes`, windows of bytes for numbers and bit fields, and array fills.

use crate::code::{PlaceCode, Register, TypedOperand};
use crate::execute::LocalContext;
use crate::frame::Frame;
use crate::layout::{ScalarKind, set_word, store, word};
use crate::pools::Address;
use crate::values::ValueRef;
use quaject_esp_ir::ir::{Fault, Type};

impl LocalContext<'_> {
    pub(super) fn fill(
        &mut self,
        to: &PlaceCode,
        value: &TypedOperand,
        length: u32,
        frame: &mut Frame,
    ) -> Result<(), Fault> {
        let size = to.size / length as usize;
        let from = self.part(&value.operand, frame)?;
        let address = self.resolve(to, frame)?;
        for index in 0..length as usize {
            let element = Address { at: address.at + index * size, ..address };
            match from {
                ValueRef::Scalar(value_bits) => {
                    let kind = ScalarKind::of(&self.program.types, value.ty);
                    store(self.pools.memory_mut(element.space, &mut frame.memory), element.at, kind, value_bits);
                }
                ValueRef::Memory(from) => self.pools.copy(&mut frame.memory, from, element, size),
            }
        }
        Ok(())
    }

    /// `pair.0 = pair.1[start..end]`
    pub(super) fn copy_slice(
        &mut self,
        pair: &(PlaceCode, PlaceCode),
        frame: &mut Frame,
        start: Option<Register>,
        end: Option<Register>,
    ) -> Result<(), Fault> {
        let from = self.resolve(&pair.1, frame)?;
        let to = self.resolve(&pair.0, frame)?;
        let length = word(self.pools.memory(from.space, &frame.memory), from.at);
        let (start, end) = slice_bounds(frame, length, start, end)?;
        let length = end - start;
        let bound = pair.0.size - 4;
        if length > bound {
            return Err(Fault::Range);
        }
        let source = Address { at: from.at + 4 + start, ..from };
        self.pools.copy(&mut frame.memory, source, Address { at: to.at + 4, ..to }, length);
        let memory = self.pools.memory_mut(to.space, &mut frame.memory);
        set_word(memory, to.at, length as u32);
        memory[to.at + 4 + length..to.at + pair.0.size].fill(0);
        Ok(())
    }

    /// `pair.0[start..end] = pair.1`
    pub(super) fn store_slice(
        &mut self,
        pair: &(PlaceCode, PlaceCode),
        frame: &mut Frame,
        start: Option<Register>,
        end: Option<Register>,
    ) -> Result<(), Fault> {
        let from = self.resolve(&pair.1, frame)?;
        let to = self.resolve(&pair.0, frame)?;
        let length = word(self.pools.memory(to.space, &frame.memory), to.at);
        let (start, end) = slice_bounds(frame, length, start, end)?;
        let source_length = word(self.pools.memory(from.space, &frame.memory), from.at) as usize;
        if source_length != end - start {
            return Err(Fault::Range);
        }
        let (from, to) = (Address { at: from.at + 4, ..from }, Address { at: to.at + 4 + start, ..to });
        self.pools.copy(&mut frame.memory, from, to, source_length);
        Ok(())
    }

    pub(super) fn append(&mut self, pair: &(PlaceCode, PlaceCode), frame: &mut Frame) -> Result<(), Fault> {
        let from = self.resolve(&pair.1, frame)?;
        let to = self.resolve(&pair.0, frame)?;
        let length = word(self.pools.memory(to.space, &frame.memory), to.at) as usize;
        let added = word(self.pools.memory(from.space, &frame.memory), from.at) as usize;
        if length + added > pair.0.size - 4 {
            return Err(Fault::Range);
        }
        let (from, end) = (Address { at: from.at + 4, ..from }, Address { at: to.at + 4 + length, ..to });
        self.pools.copy(&mut frame.memory, from, end, added);
        set_word(self.pools.memory_mut(to.space, &mut frame.memory), to.at, (length + added) as u32);
        Ok(())
    }

    pub(super) fn window_mut<'b>(
        &'b mut self,
        place: &PlaceCode,
        offset: u64,
        length: u32,
        frame: &'b mut Frame,
    ) -> Result<&'b mut [u8], Fault> {
        let address = self.resolve(place, frame)?;
        let memory = self.pools.memory_mut(address.space, &mut frame.memory);
        let (first, present) = match self.program.types.get(place.ty) {
            Type::Array { length, .. } => (address.at, *length as usize),
            _ => (address.at + 4, word(memory, address.at) as usize),
        };
        byte_window(&memory[first..first + present], offset, length)?;
        let start = first + offset as usize;
        Ok(&mut memory[start..start + length as usize])
    }
}

pub(super) fn slice_bounds(
    frame: &Frame,
    length: u32,
    start: Option<Register>,
    end: Option<Register>,
) -> Result<(usize, usize), Fault> {
    let start = start.map_or(0, |register| frame.registers[register as usize] as u64);
    let end = end.map_or(u64::from(length), |register| frame.registers[register as usize] as u64);
    if start <= end && end <= u64::from(length) { Ok((start as usize, end as usize)) } else { Err(Fault::Bounds) }
}

/// The `length` bytes at `offset`.
pub(super) fn byte_window(bytes: &[u8], offset: u64, length: u32) -> Result<&[u8], Fault> {
    let start = usize::try_from(offset).map_err(|_| Fault::Bounds)?;
    let end = start.checked_add(length as usize).ok_or(Fault::Bounds)?;
    bytes.get(start..end).ok_or(Fault::Bounds)
}
