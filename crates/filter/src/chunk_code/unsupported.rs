//! Code on machines for which no code is generated: there is none.

use crate::packet::Packet;
use crate::types::ClassifyMany;

/// The code of a chunk; a value does not exist.
#[derive(Debug)]
pub(crate) enum ChunkCode {}

impl ChunkCode {
    /// The best rank of a packet, given the best so far.
    ///
    /// # Safety
    /// None.
    pub(crate) unsafe fn classify(&self, _packet: Packet<'_>, _best: u64) -> u64 {
        match *self {}
    }

    /// The function that [`ChunkCode::classify`] calls.
    pub(crate) fn entry(&self) -> *mut () {
        match *self {}
    }

    /// The function for arrays of packets.
    pub(crate) fn batch(&self) -> Option<ClassifyMany> {
        match *self {}
    }

    /// Bytes of all functions.
    pub(crate) fn length(&self) -> usize {
        match *self {}
    }

    /// Writes the instructions.
    pub(crate) fn write_listing(&self, _text: &mut String) {
        match *self {}
    }
}
