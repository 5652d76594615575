//! Reads the packets of pcap and pcapng captures from any `Read`, and writes pcap captures to any `Write`. Opens no
//! file and knows no filter. The formats are those of draft-ietf-opsawg-pcap and draft-ietf-opsawg-pcapng.

use pcap_parser::traits::PcapReaderIterator;
use pcap_parser::{Block, PcapBlockOwned, PcapError, create_reader};
use std::fmt;
use std::io::{self, Read, Write};

/// The initial size of the read buffer; a longer packet enlarges it.
const BUFFER_BYTES: usize = 1 << 20;
/// The limit of the read buffer: above the longest packet that pcap files allow.
const MAX_BUFFER_BYTES: usize = 1 << 28;
/// The length in the header of written captures: the longest packet that readers have to expect.
const SNAPSHOT_BYTES: u32 = 262_144;

/// A captured packet with its record.
pub struct CapturedPacket<'p> {
    /// Its position in the capture, from one.
    pub number: u64,
    /// The link type, in the numbering of captures (`LINKTYPE_`).
    pub link_type: i32,
    /// The time of the capture: seconds since 1970.
    pub seconds: u32,
    /// The time of the capture: nanoseconds of the second.
    pub nanoseconds: u32,
    /// The length of the packet on the wire; the captured bytes may be fewer.
    pub wire_length: u32,
    /// The captured bytes.
    pub data: &'p [u8],
}

/// What is wrong with a capture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CaptureProblem {
    /// It begins as neither pcap nor pcapng files do.
    UnknownFormat,
    /// A packet belongs to an interface that no block describes.
    UndescribedInterface,
    /// A block contradicts itself.
    Damaged,
    /// It ends inside a block.
    Truncated,
    /// A block is longer than any packet.
    OversizedBlock,
    /// The source cannot be read.
    Unreadable,
}

/// Why the packets of a capture cannot be read, or not all of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CaptureError {
    /// What is wrong.
    pub problem: CaptureProblem,
    /// How many packets were read before it.
    pub packets: u64,
}

impl fmt::Display for CaptureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let problem = match self.problem {
            CaptureProblem::UnknownFormat => return f.write_str("begins as neither pcap nor pcapng files do"),
            CaptureProblem::UndescribedInterface => "has a packet of an interface that it does not describe",
            CaptureProblem::Damaged => "is damaged",
            CaptureProblem::Truncated => "is cut short",
            CaptureProblem::OversizedBlock => "has a block that is too long",
            CaptureProblem::Unreadable => "cannot be read on",
        };
        write!(f, "{problem} after packet {}", self.packets)
    }
}

impl std::error::Error for CaptureError {}

/// What ends a visit of packets early.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum VisitError<E> {
    /// The capture; the packets before were visited.
    Capture(CaptureError),
    /// The visitor.
    Visitor(E),
}

impl<E: fmt::Display> fmt::Display for VisitError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            VisitError::Capture(error) => write!(f, "the capture {error}"),
            VisitError::Visitor(error) => error.fmt(f),
        }
    }
}

impl<E: std::error::Error> std::error::Error for VisitError<E> {}

/// The first bytes of pcap files, with times in microseconds and in nanoseconds and in either byte order, and of pcapng
/// files.
const MAGIC: [[u8; 4]; 5] = [
    [0xa1, 0xb2, 0xc3, 0xd4],
    [0xd4, 0xc3, 0xb2, 0xa1],
    [0xa1, 0xb2, 0x3c, 0x4d],
    [0x4d, 0x3c, 0xb2, 0xa1],
    [0x0a, 0x0d, 0x0d, 0x0a],
];

/// Whether a file that begins with these bytes is a capture.
pub fn is_capture(first: &[u8]) -> bool {
    MAGIC.iter().any(|magic| first.starts_with(magic))
}

/// Visits the packets of a capture in order.
///
/// # Errors
///
/// [`VisitError::Capture`] after the last readable packet of a capture that is truncated or damaged;
/// [`VisitError::Visitor`] when the visitor fails.
pub fn each_packet<E>(
    source: impl Read + Send + 'static,
    mut visit: impl FnMut(CapturedPacket<'_>) -> Result<(), E>,
) -> Result<(), VisitError<E>> {
    let mut packets = 0;
    let failed = |problem, packets| VisitError::Capture(CaptureError { problem, packets });
    let mut reader = create_reader(BUFFER_BYTES, source).map_err(|_| failed(CaptureProblem::UnknownFormat, packets))?;
    let mut capacity = BUFFER_BYTES;
    let mut section = CaptureSection::default();
    loop {
        match reader.next() {
            Ok((used, block)) => {
                let packet = section.packet(&block, packets + 1).map_err(|problem| failed(problem, packets))?;
                if let Some(packet) = packet {
                    packets += 1;
                    visit(packet).map_err(VisitError::Visitor)?;
                }
                reader.consume(used);
            }
            Err(PcapError::Eof) => return Ok(()),
            Err(error) => {
                let need = ParserNeed::of(&error).map_err(|problem| failed(problem, packets))?;
                need.satisfy(&mut *reader, &mut capacity).map_err(|problem| failed(problem, packets))?;
            }
        }
    }
}

/// What the parser needs to complete a block.
enum ParserNeed {
    MoreInput,
    LargerBuffer,
}

impl ParserNeed {
    fn of<B>(error: &PcapError<B>) -> Result<ParserNeed, CaptureProblem> {
        match error {
            PcapError::Incomplete(_) => Ok(ParserNeed::MoreInput),
            PcapError::BufferTooSmall => Ok(ParserNeed::LargerBuffer),
            PcapError::Eof | PcapError::UnexpectedEof => Err(CaptureProblem::Truncated),
            PcapError::HeaderNotRecognized => Err(CaptureProblem::UnknownFormat),
            PcapError::ReadError => Err(CaptureProblem::Unreadable),
            PcapError::NomError(..) | PcapError::OwnedNomError(..) => Err(CaptureProblem::Damaged),
        }
    }

    fn satisfy(self, reader: &mut dyn PcapReaderIterator, capacity: &mut usize) -> Result<(), CaptureProblem> {
        match self {
            ParserNeed::MoreInput if reader.reader_exhausted() => return Err(CaptureProblem::Truncated),
            ParserNeed::MoreInput => {}
            ParserNeed::LargerBuffer if *capacity >= MAX_BUFFER_BYTES => return Err(CaptureProblem::OversizedBlock),
            ParserNeed::LargerBuffer => {
                *capacity *= 4;
                if !reader.grow(*capacity) {
                    return Err(CaptureProblem::OversizedBlock);
                }
            }
        }
        reader.refill().map_err(|_| CaptureProblem::Unreadable)
    }
}

/// The state that headers set for the packets after them: of a pcap file, or of a section of a pcapng file.
#[derive(Default)]
struct CaptureSection {
    /// Of a pcap file.
    link_type: i32,
    /// Whether times of a pcap file are in nanoseconds.
    nanoseconds: bool,
    interfaces: Vec<CaptureInterface>,
    big_endian: bool,
}

impl CaptureSection {
    /// The packet in a block, if it holds one.
    fn packet<'b>(
        &mut self,
        block: &'b PcapBlockOwned<'b>,
        number: u64,
    ) -> Result<Option<CapturedPacket<'b>>, CaptureProblem> {
        Ok(match block {
            PcapBlockOwned::LegacyHeader(header) => {
                // The bits above hold the length of the frame check sequence.
                self.link_type = header.network.0 & 0x03ff_ffff;
                self.nanoseconds = header.is_nanosecond_precision();
                None
            }
            PcapBlockOwned::Legacy(packet) => Some(CapturedPacket {
                number,
                link_type: self.link_type,
                seconds: packet.ts_sec,
                nanoseconds: packet.ts_usec.saturating_mul(if self.nanoseconds { 1 } else { 1000 }),
                wire_length: packet.origlen,
                data: packet.data.get(..packet.caplen as usize).unwrap_or(packet.data),
            }),
            PcapBlockOwned::NG(Block::SectionHeader(section)) => {
                self.interfaces.clear();
                self.big_endian = section.big_endian();
                None
            }
            PcapBlockOwned::NG(Block::InterfaceDescription(described)) => {
                self.interfaces.push(CaptureInterface {
                    link_type: described.linktype.0,
                    snapshot_length: described.snaplen,
                    resolution: described.ts_resolution().unwrap_or(1_000_000).max(1),
                    offset: described.if_tsoffset,
                });
                None
            }
            PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
                let data = packet.data.get(..packet.caplen as usize).unwrap_or(packet.data);
                let interface = self.interface(packet.if_id as usize)?;
                Some(interface.packet(number, (packet.ts_high, packet.ts_low), packet.origlen, data))
            }
            PcapBlockOwned::NG(Block::SimplePacket(packet)) => {
                let interface = self.interface(0)?;
                let captured = match interface.snapshot_length {
                    0 => packet.origlen,
                    limit => packet.origlen.min(limit),
                };
                let data = packet.data.get(..captured as usize).unwrap_or(packet.data);
                let wire_length = packet.origlen;
                let link_type = interface.link_type;
                Some(CapturedPacket { number, link_type, seconds: 0, nanoseconds: 0, wire_length, data })
            }
            PcapBlockOwned::NG(Block::Unknown(block)) if block.block_type == self.obsolete_packet_type() => {
                let packet = ObsoletePacket::read(block.data, self.big_endian).ok_or(CaptureProblem::Damaged)?;
                let interface = self.interface(usize::from(packet.interface))?;
                Some(interface.packet(number, packet.time, packet.wire_length, packet.data))
            }
            // Statistics, names, secrets: no packets.
            PcapBlockOwned::NG(_) => None,
        })
    }

    fn interface(&self, number: usize) -> Result<&CaptureInterface, CaptureProblem> {
        self.interfaces.get(number).ok_or(CaptureProblem::UndescribedInterface)
    }

    /// The type of obsolete packet blocks as the parser gives it: always read as little-endian.
    fn obsolete_packet_type(&self) -> u32 {
        if self.big_endian { OBSOLETE_PACKET.swap_bytes() } else { OBSOLETE_PACKET }
    }
}

/// An interface of a pcapng section.
struct CaptureInterface {
    link_type: i32,
    snapshot_length: u32,
    /// Units of time in a second, and seconds to add.
    resolution: u64,
    offset: i64,
}

impl CaptureInterface {
    fn packet<'p>(&self, number: u64, time: (u32, u32), wire_length: u32, data: &'p [u8]) -> CapturedPacket<'p> {
        let (seconds, nanoseconds) = self.time(time);
        CapturedPacket { number, link_type: self.link_type, seconds, nanoseconds, wire_length, data }
    }

    /// Seconds and nanoseconds of a time in units of the interface: its upper and its lower half.
    fn time(&self, (high, low): (u32, u32)) -> (u32, u32) {
        let time = u64::from(high) << 32 | u64::from(low);
        let (seconds, fraction) = (time / self.resolution, time % self.resolution);
        let nanoseconds = u128::from(fraction) * 1_000_000_000 / u128::from(self.resolution);
        ((seconds as i64).wrapping_add(self.offset) as u32, nanoseconds as u32)
    }
}

/// The type of the packet block that enhanced packet blocks have replaced.
const OBSOLETE_PACKET: u32 = 2;

/// The fields of an obsolete packet block, in the byte order of the section.
///
/// ```text
/// | interface:16 | drops:16 | time:32, 32 | captured:32 | length:32 | data ..
/// ```
struct ObsoletePacket<'p> {
    interface: u16,
    time: (u32, u32),
    wire_length: u32,
    data: &'p [u8],
}

impl<'p> ObsoletePacket<'p> {
    fn read(block: &'p [u8], big_endian: bool) -> Option<ObsoletePacket<'p>> {
        let (head, data) = block.split_at_checked(20)?;
        let word = |at: usize| {
            let bytes = [head[at], head[at + 1], head[at + 2], head[at + 3]];
            if big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
        };
        let interface = if big_endian { word(0) >> 16 } else { word(0) } as u16;
        let data = data.get(..word(12) as usize)?;
        Some(ObsoletePacket { interface, time: (word(4), word(8)), wire_length: word(16), data })
    }
}

/// The number by which libpcap knows a link type of captures (`DLT_`): they differ for two historical ones.
pub fn data_link(link_type: i32) -> i32 {
    match link_type {
        100 => 11,
        101 => 12,
        other => other,
    }
}

/// The link type of captures for a number of libpcap's: the inverse of [`data_link`].
pub fn link_type(data_link: i32) -> i32 {
    match data_link {
        11 => 100,
        12 => 101,
        other => other,
    }
}

/// Writes the header of a pcap file whose times are in nanoseconds.
pub fn write_header(to: &mut impl Write, link_type: i32) -> io::Result<()> {
    for word in [0xa1b2_3c4d, 4 << 16 | 2, 0, 0, SNAPSHOT_BYTES, link_type as u32] {
        to.write_all(&u32::to_le_bytes(word))?;
    }
    Ok(())
}

/// Writes a packet after the header and other packets; the link type is the header's.
pub fn write_packet(to: &mut impl Write, packet: &CapturedPacket<'_>) -> io::Result<()> {
    for word in [packet.seconds, packet.nanoseconds, packet.data.len() as u32, packet.wire_length] {
        to.write_all(&word.to_le_bytes())?;
    }
    to.write_all(packet.data)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seconds, nanoseconds and data of a packet.
    type Stamped = (u32, u32, Vec<u8>);

    fn packets(capture: Vec<u8>) -> Result<Vec<Stamped>, VisitError<()>> {
        let mut packets = Vec::new();
        each_packet(io::Cursor::new(capture), |packet| {
            packets.push((packet.seconds, packet.nanoseconds, packet.data.to_vec()));
            Ok(())
        })?;
        Ok(packets)
    }

    fn written() -> Vec<u8> {
        let mut capture = Vec::new();
        write_header(&mut capture, 1).expect("memory can be written");
        for number in 0..2 {
            let data: &[u8] = &[7; 20];
            let packet =
                CapturedPacket { number, link_type: 1, seconds: 5, nanoseconds: 999_999_999, wire_length: 60, data };
            write_packet(&mut capture, &packet).expect("memory can be written");
        }
        capture
    }

    #[test]
    fn a_written_capture_is_read_back() {
        assert_eq!(packets(written()), Ok(vec![(5, 999_999_999, vec![7; 20]); 2]));
    }

    #[test]
    fn a_truncated_capture_gives_its_whole_packets() {
        let mut capture = written();
        capture.pop();
        let mut count = 0;
        let visited = each_packet(io::Cursor::new(capture), |_| {
            count += 1;
            Ok::<(), ()>(())
        });
        let error = CaptureError { problem: CaptureProblem::Truncated, packets: 1 };
        assert_eq!((visited, count), (Err(VisitError::Capture(error)), 1));
    }

    #[test]
    fn other_files_are_refused() {
        let error = CaptureError { problem: CaptureProblem::UnknownFormat, packets: 0 };
        assert_eq!(packets(b"#!/bin/sh\n".repeat(10)), Err(VisitError::Capture(error)));
    }

    #[test]
    fn a_visitor_that_fails_ends_the_visit() {
        assert_eq!(each_packet(io::Cursor::new(written()), |_| Err("full")), Err(VisitError::Visitor("full")));
    }
}
