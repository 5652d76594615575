//! pcap files, as libpcap reads them: times in microseconds or nanoseconds, either byte order, and the variants of old
//! systems.
//!
//! ```text
//! file    | magic:32 | major:16 | minor:16 | zone:32 | accuracy:32 | snapshot length:32 | link type:32 | records
//! record  | seconds:32 | fraction:32 | captured:32 | length:32 | data ..
//! ```

use super::input::{Fields, Input};
use super::{CaptureProblem, CapturedPacket, max_snapshot_length};
use crate::link::{ByteOrder, LinkLayer};
use std::io::Read;

/// The magic numbers of files with times in microseconds and in nanoseconds, and of a variant of Linux 2.2 whose
/// records have longer headers.
const MICROSECONDS: u32 = 0xa1b2_c3d4;
const NANOSECONDS: u32 = 0xa1b2_3c4d;
const MODIFIED: u32 = 0xa1b2_cd34;

/// Bytes of a header of the file after the magic number, and of a record.
const HEADER_BYTES: usize = 20;
const RECORD_BYTES: usize = 16;
const MODIFIED_RECORD_BYTES: usize = 24;

/// Whether the captured length comes before the length on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum LengthOrder {
    CapturedFirst,
    WireFirst,
    /// Version 2.3 was written in both ways: the smaller of the two is the captured one.
    SmallerIsCaptured,
}

/// How the records of a file are read.
pub(super) struct PcapFormat {
    link: LinkLayer,
    /// How many nanoseconds the unit of times has.
    unit_ns: u32,
    record_bytes: usize,
    lengths: LengthOrder,
    /// The most bytes of a packet; libpcap cuts longer ones.
    snapshot_length: u32,
}

/// The byte order of a file that begins with this magic number, and the number in it; none if it is no pcap file.
pub(super) fn recognize(first: [u8; 4]) -> Option<(ByteOrder, u32)> {
    let orders = [(ByteOrder::Little, u32::from_le_bytes(first)), (ByteOrder::Big, u32::from_be_bytes(first))];
    orders.into_iter().find(|(_, magic)| [MICROSECONDS, NANOSECONDS, MODIFIED].contains(magic))
}

impl PcapFormat {
    /// Reads the header of a file after its magic number.
    pub(super) fn read<R: Read>(
        (order, magic): (ByteOrder, u32),
        input: &mut Input<R>,
    ) -> Result<PcapFormat, CaptureProblem> {
        let mut header = Vec::new();
        input.append(HEADER_BYTES, &mut header)?;
        let mut fields = Fields::new(&header, order);
        let lengths = match (fields.half()?, fields.half()?) {
            (2, 0..=2) | (543, 0) => LengthOrder::WireFirst,
            (2, 3) => LengthOrder::SmallerIsCaptured,
            (2, 4) => LengthOrder::CapturedFirst,
            _ => return Err(CaptureProblem::UnsupportedVersion),
        };
        // The time zone and the accuracy, which all readers ignore.
        fields.bytes(8)?;
        let snapshot_length = fields.word()?;
        // The bits above hold the length of the frame check sequence.
        let link_type = (fields.word()? & 0x03ff_ffff) as i32;
        let mut snapshot_length = match snapshot_length {
            0 | 0x8000_0000.. => max_snapshot_length(link_type),
            length => length,
        };
        if magic == MODIFIED && link_type == 1 {
            // The capture may have put an Ethernet header in front of packets of the length that was asked for.
            snapshot_length = snapshot_length.saturating_add(14);
        }
        Ok(PcapFormat {
            link: LinkLayer { link_type, byte_order: order },
            unit_ns: if magic == NANOSECONDS { 1 } else { 1000 },
            record_bytes: if magic == MODIFIED { MODIFIED_RECORD_BYTES } else { RECORD_BYTES },
            lengths,
            snapshot_length,
        })
    }

    /// Reads the next packet, its data into `buffer`; none at the end of the file.
    pub(super) fn next<'b, R: Read>(
        &self,
        input: &mut Input<R>,
        number: u64,
        buffer: &'b mut Vec<u8>,
    ) -> Result<Option<CapturedPacket<'b>>, CaptureProblem> {
        if !input.begin(self.record_bytes, buffer)? {
            return Ok(None);
        }
        let mut fields = Fields::new(buffer, self.link.byte_order);
        let (seconds, fraction, first, second) = (fields.word()?, fields.word()?, fields.word()?, fields.word()?);
        let (captured, wire_length) = match self.lengths {
            LengthOrder::WireFirst => (second, first),
            LengthOrder::SmallerIsCaptured if first > second => (second, first),
            LengthOrder::SmallerIsCaptured | LengthOrder::CapturedFirst => (first, second),
        };
        if captured > max_snapshot_length(self.link.link_type) {
            return Err(CaptureProblem::Damaged);
        }
        buffer.clear();
        input.append(captured as usize, buffer)?;
        buffer.truncate(self.snapshot_length as usize);
        let nanoseconds = fraction.saturating_mul(self.unit_ns);
        Ok(Some(CapturedPacket { number, link: self.link, seconds, nanoseconds, wire_length, data: buffer }))
    }
}
