//! Big-endian memory from address 0 on. Knows no device.

use crate::processor::{AccessError, Bus, Flow, Width};

/// Bytes without devices around them: all that a program needs that only computes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    /// A multiple of four bytes.
    bytes: Vec<u8>,
}

impl Memory {
    /// Memory of zeros. The size is rounded up to a multiple of four bytes.
    pub fn new(size_bytes: usize) -> Memory {
        Memory { bytes: vec![0; size_bytes.next_multiple_of(4)] }
    }

    /// All bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// All bytes, to be written.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// The bytes of a transfer, unless some of them are not in memory.
    pub(crate) fn range(&self, address: u32, length: u32) -> Option<std::ops::Range<usize>> {
        range_within(self.bytes.len(), address, length)
    }

    #[inline]
    fn start_of(&self, address: u32, width: Width) -> Result<usize, AccessError> {
        if address & (width.bytes() - 1) != 0 {
            return Err(AccessError::Unaligned);
        }
        // The size is a multiple of four: an aligned access is in memory if its first byte is.
        let start = address as usize;
        if start < self.bytes.len() { Ok(start) } else { Err(AccessError::OutOfRange) }
    }
}

/// The `length` bytes from `address` on, in memory of `size` bytes.
pub(crate) fn range_within(size: usize, address: u32, length: u32) -> Option<std::ops::Range<usize>> {
    let end = (address as usize).checked_add(length as usize)?;
    (end <= size).then_some(address as usize..end)
}

impl Bus for Memory {
    #[inline]
    fn fetch(&self, address: u32) -> Result<u32, AccessError> {
        let start = self.start_of(address, Width::Word)?;
        Ok(u32::from_be_bytes([self.bytes[start], self.bytes[start + 1], self.bytes[start + 2], self.bytes[start + 3]]))
    }

    #[inline]
    fn load(&mut self, address: u32, width: Width, _now: u64) -> Result<u32, AccessError> {
        let start = self.start_of(address, width)?;
        match width {
            Width::Byte => Ok(u32::from(self.bytes[start])),
            Width::Half => Ok(u32::from(u16::from_be_bytes([self.bytes[start], self.bytes[start + 1]]))),
            Width::Word => self.fetch(address),
        }
    }

    #[inline]
    fn store(&mut self, address: u32, width: Width, value: u32, _now: u64) -> Result<Flow, AccessError> {
        let start = self.start_of(address, width)?;
        match width {
            Width::Byte => self.bytes[start] = value as u8,
            Width::Half => self.bytes[start..start + 2].copy_from_slice(&(value as u16).to_be_bytes()),
            Width::Word => self.bytes[start..start + 4].copy_from_slice(&value.to_be_bytes()),
        }
        Ok(Flow::Continue)
    }
}
