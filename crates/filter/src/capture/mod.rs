//! Reads the packets of pcap and pcapng captures from any `Read`, and writes pcap captures to any `Write`. Opens no
//! file and knows no filter. The formats are those of draft-ietf-opsawg-pcap and draft-ietf-opsawg-pcapng.

mod input;
mod pcap_file;
mod pcapng;

use crate::link::{ByteOrder, LinkLayer};
use input::Input;
use pcap_file::PcapFormat;
use pcapng::CaptureSection;
use std::fmt;
use std::io::{self, Read, Write};

/// The length in the header of written captures: the longest packet that readers have to expect.
const SNAPSHOT_BYTES: u32 = 262_144;

/// A captured packet with its record.
pub struct CapturedPacket<'p> {
    /// Its position in the capture, from one.
    pub number: u64,
    /// Its link layer.
    pub link: LinkLayer,
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
    /// It has a version of its format that is not supported.
    UnsupportedVersion,
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
            CaptureProblem::UnsupportedVersion => "has a version of its format that is not supported",
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

/// Whether a file that begins with these bytes is a capture.
pub fn is_capture(first: &[u8]) -> bool {
    first.first_chunk().is_some_and(|magic| *magic == pcapng::SECTION || pcap_file::recognize(*magic).is_some())
}

/// The most bytes of a packet that libpcap considers sane for a link type: D-Bus, EBHSCR, USBPcap, others.
fn max_snapshot_length(link_type: i32) -> u32 {
    match link_type {
        231 => 128 << 20,
        279 => 8 << 20,
        249 => 1 << 20,
        _ => SNAPSHOT_BYTES,
    }
}

/// The format of a capture.
enum Format {
    Pcap(PcapFormat),
    Pcapng(CaptureSection),
}

impl Format {
    /// Reads the beginning of a capture.
    fn read<R: Read>(input: &mut Input<R>) -> Result<Format, CaptureProblem> {
        let mut magic = Vec::new();
        input.append_some(4, &mut magic)?;
        let magic: [u8; 4] = magic.try_into().map_err(|_| CaptureProblem::UnknownFormat)?;
        if magic == pcapng::SECTION {
            return CaptureSection::read(input).map(Format::Pcapng);
        }
        let recognized = pcap_file::recognize(magic).ok_or(CaptureProblem::UnknownFormat)?;
        PcapFormat::read(recognized, input).map(Format::Pcap)
    }
}

/// Visits the packets of a capture in order.
///
/// # Errors
///
/// [`VisitError::Capture`] after the last readable packet of a capture that is truncated or damaged;
/// [`VisitError::Visitor`] when the visitor fails.
pub fn each_packet<E>(
    source: impl Read,
    mut visit: impl FnMut(CapturedPacket<'_>) -> Result<(), E>,
) -> Result<(), VisitError<E>> {
    let mut packets = 0;
    let failed = |problem, packets| VisitError::Capture(CaptureError { problem, packets });
    let mut input = Input::new(source);
    let mut format = Format::read(&mut input).map_err(|problem| failed(problem, packets))?;
    let mut buffer = Vec::new();
    loop {
        let packet = match &mut format {
            Format::Pcap(format) => format.next(&mut input, packets + 1, &mut buffer),
            Format::Pcapng(section) => section.next(&mut input, packets + 1, &mut buffer),
        };
        match packet.map_err(|problem| failed(problem, packets))? {
            Some(packet) => visit(packet).map_err(VisitError::Visitor)?,
            None => return Ok(()),
        }
        packets += 1;
    }
}

/// Writes the header of a pcap file whose times are in nanoseconds, in the byte order of the link layer: packets may
/// have numbers in it.
pub fn write_header(to: &mut impl Write, link: LinkLayer) -> io::Result<()> {
    let order = link.byte_order;
    let version = match order {
        ByteOrder::Little => 4 << 16 | 2,
        ByteOrder::Big => 2 << 16 | 4,
    };
    let snapshot_length = SNAPSHOT_BYTES.max(max_snapshot_length(link.link_type));
    for word in [0xa1b2_3c4d, version, 0, 0, snapshot_length, link.link_type as u32] {
        to.write_all(&order.bytes(word))?;
    }
    Ok(())
}

/// Writes a packet after the header and other packets; its link layer is the header's.
pub fn write_packet(to: &mut impl Write, packet: &CapturedPacket<'_>) -> io::Result<()> {
    for word in [packet.seconds, packet.nanoseconds, packet.data.len() as u32, packet.wire_length] {
        to.write_all(&packet.link.byte_order.bytes(word))?;
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
        write_header(&mut capture, LinkLayer::native(1)).expect("memory can be written");
        for number in 0..2 {
            let data: &[u8] = &[7; 20];
            let packet = CapturedPacket {
                number,
                link: LinkLayer::native(1),
                seconds: 5,
                nanoseconds: 999_999_999,
                wire_length: 60,
                data,
            };
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
