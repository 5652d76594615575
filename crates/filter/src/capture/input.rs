//! Reads the parts of a capture in order: exactly so many bytes, or the reason why they are not there.

use super::CaptureProblem;
use crate::link::ByteOrder;
use std::io::{BufReader, Read};

/// The size of the read buffer, in bytes.
const BUFFER_BYTES: usize = 1 << 16;

/// The source of a capture.
pub(super) struct Input<R> {
    source: BufReader<R>,
}

impl<R: Read> Input<R> {
    pub(super) fn new(source: R) -> Input<R> {
        Input { source: BufReader::with_capacity(BUFFER_BYTES, source) }
    }

    /// Appends exactly `count` bytes to `to`, which grows with the bytes that are there: a length that a damaged
    /// capture claims allocates nothing.
    pub(super) fn append(&mut self, count: usize, to: &mut Vec<u8>) -> Result<(), CaptureProblem> {
        match self.append_some(count, to)? {
            missing if missing > 0 => Err(CaptureProblem::Truncated),
            _ => Ok(()),
        }
    }

    /// Replaces `to` by the next `count` bytes. False where the capture ends before the first of them.
    pub(super) fn begin(&mut self, count: usize, to: &mut Vec<u8>) -> Result<bool, CaptureProblem> {
        to.clear();
        match self.append_some(count, to)? {
            0 => Ok(true),
            missing if missing == count => Ok(false),
            _ => Err(CaptureProblem::Truncated),
        }
    }

    /// Appends up to `count` bytes; how many are missing.
    pub(super) fn append_some(&mut self, count: usize, to: &mut Vec<u8>) -> Result<usize, CaptureProblem> {
        let read = self.source.by_ref().take(count as u64).read_to_end(to);
        read.map(|read| count - read).map_err(|_| CaptureProblem::Unreadable)
    }
}

/// The fields of a header, in order.
pub(super) struct Fields<'b> {
    rest: &'b [u8],
    order: ByteOrder,
}

impl<'b> Fields<'b> {
    pub(super) fn new(bytes: &'b [u8], order: ByteOrder) -> Fields<'b> {
        Fields { rest: bytes, order }
    }

    /// The next `count` bytes.
    pub(super) fn bytes(&mut self, count: usize) -> Result<&'b [u8], CaptureProblem> {
        let (bytes, rest) = self.rest.split_at_checked(count).ok_or(CaptureProblem::Damaged)?;
        self.rest = rest;
        Ok(bytes)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(super) fn half(&mut self) -> Result<u16, CaptureProblem> {
        Ok(self.number(2)? as u16)
    }

    pub(super) fn word(&mut self) -> Result<u32, CaptureProblem> {
        Ok(self.number(4)? as u32)
    }

    pub(super) fn long(&mut self) -> Result<u64, CaptureProblem> {
        self.number(8)
    }

    fn number(&mut self, width: usize) -> Result<u64, CaptureProblem> {
        let bytes = self.bytes(width)?;
        let append = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
        Ok(match self.order {
            ByteOrder::Big => bytes.iter().fold(0, append),
            ByteOrder::Little => bytes.iter().rev().fold(0, append),
        })
    }
}
