//! pcapng files: sections of blocks, each section with a byte order and interfaces of its own. What libpcap refuses is
//! refused, with one exception: interfaces may differ in link type, and sections in byte order.
//!
//! ```text
//! block      | type:32 | length:32 | content, in words of 4 bytes .. | length:32 |
//! section    | 0x1a2b3c4d:32 | major:16 | minor:16 | length of the section:64 | options ..
//! interface  | link type:16 | 0:16 | snapshot length:32 | options ..
//! packet     | interface:32 | time:32, 32 | captured:32 | length:32 | data .. | options ..
//! simple     | length:32 | data ..
//! obsolete   | interface:16 | drops:16 | time:32, 32 | captured:32 | length:32 | data .. | options ..
//! option     | code:16 | length:16 | value, in words of 4 bytes ..
//! ```

use super::input::{Fields, Input};
use super::{CaptureProblem, CapturedPacket, max_snapshot_length};
use crate::link::{ByteOrder, LinkLayer};
use std::io::Read;

/// The type of section headers: the same in either byte order.
pub(super) const SECTION: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
const INTERFACE_TYPE: u32 = 1;
const OBSOLETE_PACKET_TYPE: u32 = 2;
const SIMPLE_PACKET_TYPE: u32 = 3;
const PACKET_TYPE: u32 = 6;
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;

/// Bytes of a block in front of its content, and after it.
const BLOCK_HEADER_BYTES: usize = 8;
const TRAILER_BYTES: usize = 4;
/// The limit on the length of a block: above the longest packet that libpcap reads.
const MAX_BLOCK_BYTES: usize = 1 << 28;

/// Options of interfaces.
const END_OF_OPTIONS: u16 = 0;
const TIME_RESOLUTION: u16 = 9;
const TIME_OFFSET: u16 = 14;

/// The state that a section header and descriptions of interfaces set for the packets after them.
pub(super) struct CaptureSection {
    order: ByteOrder,
    interfaces: Vec<CaptureInterface>,
}

/// An interface of a section.
struct CaptureInterface {
    link: LinkLayer,
    snapshot_length: u32,
    /// How many units a second has.
    resolution: u64,
    /// Seconds to add.
    offset: i64,
}

/// The place of a packet in its block.
struct Record {
    interface: usize,
    time: u64,
    captured: u32,
    wire_length: u32,
}

impl CaptureSection {
    /// Reads the first block of a file after its type.
    pub(super) fn read<R: Read>(input: &mut Input<R>) -> Result<CaptureSection, CaptureProblem> {
        let mut section = CaptureSection { order: ByteOrder::Little, interfaces: Vec::new() };
        let mut block = SECTION.to_vec();
        section.read_header(input, &mut block)?;
        Ok(section)
    }

    /// Reads the next packet, its block into `buffer`; none at the end of the file.
    pub(super) fn next<'b, R: Read>(
        &mut self,
        input: &mut Input<R>,
        number: u64,
        buffer: &'b mut Vec<u8>,
    ) -> Result<Option<CapturedPacket<'b>>, CaptureProblem> {
        while input.begin(4, buffer)? {
            if buffer[..] == SECTION {
                self.read_header(input, buffer)?;
                continue;
            }
            let kind = Fields::new(buffer, self.order).word()?;
            read_block(self.order, input, buffer)?;
            let length = buffer.len() - TRAILER_BYTES;
            let mut content = Fields::new(&buffer[BLOCK_HEADER_BYTES..length], self.order);
            let record = match kind {
                INTERFACE_TYPE => {
                    self.interfaces.push(CaptureInterface::read(&mut content, self.order)?);
                    continue;
                }
                PACKET_TYPE => Record::read(content.word()? as usize, &mut content)?,
                OBSOLETE_PACKET_TYPE => {
                    let interface = usize::from(content.half()?);
                    content.half()?;
                    Record::read(interface, &mut content)?
                }
                SIMPLE_PACKET_TYPE => {
                    let wire_length = content.word()?;
                    let captured = wire_length.min(self.interface(0)?.snapshot_length);
                    Record { interface: 0, time: 0, captured, wire_length }
                }
                // Statistics, names, secrets: no packets.
                _ => continue,
            };
            // The borrow of `buffer` ends with `content`: the data is found again by its length.
            let rest = content.bytes(record.captured as usize)?.len();
            let head = match kind {
                SIMPLE_PACKET_TYPE => 4,
                _ => 20,
            };
            let data = &buffer[BLOCK_HEADER_BYTES + head..][..rest];
            return self.packet(number, &record, data).map(Some);
        }
        Ok(None)
    }

    /// Reads a section header after its type: what was there of other sections is no more.
    fn read_header<R: Read>(&mut self, input: &mut Input<R>, block: &mut Vec<u8>) -> Result<(), CaptureProblem> {
        // The length is in a byte order that the word after it determines.
        input.append(8, block)?;
        let magic = [block[8], block[9], block[10], block[11]];
        let orders = [ByteOrder::Little, ByteOrder::Big];
        let order = orders.into_iter().find(|order| order.bytes(BYTE_ORDER_MAGIC) == magic);
        self.order = order.ok_or(CaptureProblem::Damaged)?;
        self.interfaces.clear();
        complete_block(self.order, input, block)?;
        let mut content = Fields::new(&block[BLOCK_HEADER_BYTES..block.len() - TRAILER_BYTES], self.order);
        content.word()?;
        match (content.half()?, content.half()?, content.long()) {
            (1, _, Ok(_)) => Ok(()),
            (1, _, Err(problem)) => Err(problem),
            _ => Err(CaptureProblem::UnsupportedVersion),
        }
    }

    fn interface(&self, number: usize) -> Result<&CaptureInterface, CaptureProblem> {
        self.interfaces.get(number).ok_or(CaptureProblem::UndescribedInterface)
    }

    fn packet<'b>(&self, number: u64, record: &Record, data: &'b [u8]) -> Result<CapturedPacket<'b>, CaptureProblem> {
        let interface = self.interface(record.interface)?;
        if record.captured > interface.snapshot_length {
            return Err(CaptureProblem::Damaged);
        }
        let (seconds, nanoseconds) = interface.time(record.time);
        Ok(CapturedPacket { number, link: interface.link, seconds, nanoseconds, wire_length: record.wire_length, data })
    }
}

/// Reads the rest of a block whose type is in `block`.
fn read_block<R: Read>(order: ByteOrder, input: &mut Input<R>, block: &mut Vec<u8>) -> Result<(), CaptureProblem> {
    input.append(4, block)?;
    complete_block(order, input, block)
}

/// Reads the rest of a block whose type and length, or more, are in `block`.
fn complete_block<R: Read>(order: ByteOrder, input: &mut Input<R>, block: &mut Vec<u8>) -> Result<(), CaptureProblem> {
    let length = Fields::new(&block[4..8], order).word()? as usize;
    if length > MAX_BLOCK_BYTES {
        return Err(CaptureProblem::OversizedBlock);
    }
    let missing = length.checked_sub(block.len()).ok_or(CaptureProblem::Damaged)?;
    if length < BLOCK_HEADER_BYTES + TRAILER_BYTES || !length.is_multiple_of(4) {
        return Err(CaptureProblem::Damaged);
    }
    input.append(missing, block)?;
    match Fields::new(&block[length - TRAILER_BYTES..], order).word()? as usize == length {
        true => Ok(()),
        false => Err(CaptureProblem::Damaged),
    }
}

impl Record {
    /// Reads the fields that follow the number of the interface.
    fn read(interface: usize, content: &mut Fields<'_>) -> Result<Record, CaptureProblem> {
        let (high, low) = (content.word()?, content.word()?);
        let time = u64::from(high) << 32 | u64::from(low);
        Ok(Record { interface, time, captured: content.word()?, wire_length: content.word()? })
    }
}

impl CaptureInterface {
    fn read(content: &mut Fields<'_>, byte_order: ByteOrder) -> Result<CaptureInterface, CaptureProblem> {
        let link = LinkLayer { link_type: content.half()?.into(), byte_order };
        content.half()?;
        let snapshot_length = match content.word()? {
            0 | 0x8000_0000.. => max_snapshot_length(link.link_type),
            length => length,
        };
        let (mut resolution, mut offset) = (None, None);
        while !content.is_empty() {
            let (code, length) = (content.half()?, usize::from(content.half()?));
            let value = content.bytes(length.next_multiple_of(4))?;
            match (code, length) {
                (END_OF_OPTIONS, 0) => break,
                (TIME_RESOLUTION, 1) if resolution.is_none() => resolution = Some(units_per_second(value[0])?),
                (TIME_OFFSET, 8) if offset.is_none() => offset = Some(Fields::new(value, byte_order).long()? as i64),
                (END_OF_OPTIONS | TIME_RESOLUTION | TIME_OFFSET, _) => return Err(CaptureProblem::Damaged),
                _ => {}
            }
        }
        Ok(CaptureInterface {
            link,
            snapshot_length,
            resolution: resolution.unwrap_or(1_000_000),
            offset: offset.unwrap_or(0),
        })
    }

    /// Seconds and nanoseconds of a time in units of the interface.
    fn time(&self, time: u64) -> (u32, u32) {
        let (seconds, fraction) = (time / self.resolution, time % self.resolution);
        let nanoseconds = u128::from(fraction) * 1_000_000_000 / u128::from(self.resolution);
        ((seconds as i64).wrapping_add(self.offset) as u32, nanoseconds as u32)
    }
}

/// The value of an option: a power of ten, or of two if the upper bit is set.
fn units_per_second(option: u8) -> Result<u64, CaptureProblem> {
    let exponent = u32::from(option & 0x7f);
    let units = if option & 0x80 == 0 { 10_u64.checked_pow(exponent) } else { 1_u64.checked_shl(exponent) };
    units.ok_or(CaptureProblem::Damaged)
}
