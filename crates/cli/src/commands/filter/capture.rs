//! Packets of pcap and pcapng files, and pcap files of packets. Knows no filter.

use pcap_parser::{Block, PcapBlockOwned, PcapError, create_reader};
use quaject_esp_run::HostError;
use quaject_esp_run::files::NewFile;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

/// The least that is read at once; a packet that is longer makes it more.
const CAPACITY: usize = 1 << 20;
/// The most: what pcap files allow for a packet, and some.
const MAX_BUFFER_BYTES: usize = 1 << 28;

/// A packet and what its file says of it.
pub(crate) struct Recorded<'p> {
    /// Numbered from one.
    pub(crate) number: u64,
    /// The number of the link type in captures.
    pub(crate) link_type: i32,
    pub(crate) seconds: u32,
    pub(crate) nanoseconds: u32,
    pub(crate) wire_length: u32,
    pub(crate) data: &'p [u8],
}

/// An interface of a pcapng file.
struct Interface {
    link_type: i32,
    snapshot_length: u32,
    /// Units of time in a second, and seconds to add.
    resolution: u64,
    offset: i64,
}

impl Interface {
    /// Seconds and nanoseconds of a time in its units.
    fn time(&self, high: u32, low: u32) -> (u32, u32) {
        let time = u64::from(high) << 32 | u64::from(low);
        let (whole, part) = (time / self.resolution, time % self.resolution);
        let part = u128::from(part) * 1_000_000_000 / u128::from(self.resolution);
        ((whole as i64).wrapping_add(self.offset) as u32, part as u32)
    }
}

/// The type of the block that packets were in before there were enhanced packet blocks.
const OLD_PACKET: u32 = 2;

/// The fields of such a block, in the section's order of bytes.
///
/// ```text
/// | interface:16 | drops:16 | time:32, 32 | captured:32 | length:32 | data ..
/// ```
struct OldPacket<'p> {
    interface: u16,
    time: (u32, u32),
    wire_length: u32,
    data: &'p [u8],
}

impl<'p> OldPacket<'p> {
    fn read(block: &'p [u8], big_endian: bool) -> Option<OldPacket<'p>> {
        let (head, data) = block.split_at_checked(20)?;
        let word = |at: usize| {
            let bytes = [head[at], head[at + 1], head[at + 2], head[at + 3]];
            if big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
        };
        let interface = if big_endian { word(0) >> 16 } else { word(0) } as u16;
        let data = data.get(..word(12) as usize)?;
        Some(OldPacket { interface, time: (word(4), word(8)), wire_length: word(16), data })
    }
}

/// Gives every packet of a capture to `take`. A capture that is cut short gives what there is, and then a error.
pub(crate) fn each(path: &Path, mut take: impl FnMut(Recorded<'_>) -> Result<(), HostError>) -> Result<(), HostError> {
    let name = if path.as_os_str() == "-" { "standard input".to_owned() } else { path.display().to_string() };
    let file: Box<dyn Read + Send> = if path.as_os_str() == "-" {
        Box::new(io::stdin())
    } else {
        let opened = File::open(path).and_then(|file| {
            if file.metadata()?.is_dir() { Err(io::Error::from(io::ErrorKind::IsADirectory)) } else { Ok(file) }
        });
        Box::new(opened.map_err(|error| HostError::file("read", &name, &error))?)
    };
    let strange = || {
        HostError::new(format!("`{name}` is no capture: it does not begin as pcap and pcapng files do"))
            .help("`tcpdump -w FILE` and Wireshark write such files")
    };
    let mut reader = create_reader(CAPACITY, file).map_err(|_| strange())?;
    let mut capacity = CAPACITY;
    let mut number = 0;
    let mut link_type = 1;
    let mut nanoseconds = false;
    let mut interfaces: Vec<Interface> = Vec::new();
    let mut big_endian = false;
    loop {
        let broken = |why: &str| {
            HostError::new(format!("`{name}` {why} after packet {number}"))
                .help("the packets before were read; `editcap` and `pcapfix` repair captures")
        };
        let undescribed = || broken("has a packet of an interface that it does not describe");
        let timed = |interface: &Interface, (high, low): (u32, u32), wire_length, data| {
            let (seconds, nanoseconds) = interface.time(high, low);
            let (number, link_type) = (number + 1, interface.link_type);
            Some(Recorded { number, link_type, seconds, nanoseconds, wire_length, data })
        };
        match reader.next() {
            Ok((used, block)) => {
                let recorded = match block {
                    PcapBlockOwned::LegacyHeader(header) => {
                        // The bits above tell how long checksums behind frames are.
                        link_type = header.network.0 & 0x03ff_ffff;
                        nanoseconds = header.is_nanosecond_precision();
                        None
                    }
                    PcapBlockOwned::Legacy(packet) => Some(Recorded {
                        number: number + 1,
                        link_type,
                        seconds: packet.ts_sec,
                        nanoseconds: packet.ts_usec.saturating_mul(if nanoseconds { 1 } else { 1000 }),
                        wire_length: packet.origlen,
                        data: packet.data.get(..packet.caplen as usize).unwrap_or(packet.data),
                    }),
                    PcapBlockOwned::NG(Block::SectionHeader(section)) => {
                        interfaces.clear();
                        big_endian = section.big_endian();
                        None
                    }
                    PcapBlockOwned::NG(Block::InterfaceDescription(own)) => {
                        interfaces.push(Interface {
                            link_type: own.linktype.0,
                            snapshot_length: own.snaplen,
                            resolution: own.ts_resolution().unwrap_or(1_000_000).max(1),
                            offset: own.if_tsoffset,
                        });
                        None
                    }
                    PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
                        let interface = interfaces.get(packet.if_id as usize).ok_or_else(undescribed)?;
                        let data = packet.data.get(..packet.caplen as usize).unwrap_or(packet.data);
                        timed(interface, (packet.ts_high, packet.ts_low), packet.origlen, data)
                    }
                    PcapBlockOwned::NG(Block::SimplePacket(packet)) => {
                        let interface = interfaces.first().ok_or_else(undescribed)?;
                        let most = match interface.snapshot_length {
                            0 => u32::MAX,
                            length => length,
                        };
                        let length = packet.origlen.min(most) as usize;
                        Some(Recorded {
                            number: number + 1,
                            link_type: interface.link_type,
                            seconds: 0,
                            nanoseconds: 0,
                            wire_length: packet.origlen,
                            data: packet.data.get(..length).unwrap_or(packet.data),
                        })
                    }
                    // The type is given as if the least significant byte came first.
                    PcapBlockOwned::NG(Block::Unknown(block))
                        if block.block_type == if big_endian { OLD_PACKET.swap_bytes() } else { OLD_PACKET } =>
                    {
                        let packet = OldPacket::read(block.data, big_endian).ok_or_else(|| broken("is damaged"))?;
                        let interface = interfaces.get(usize::from(packet.interface)).ok_or_else(undescribed)?;
                        timed(interface, packet.time, packet.wire_length, packet.data)
                    }
                    // Statistics, names and the like.
                    PcapBlockOwned::NG(_) => None,
                };
                if let Some(recorded) = recorded {
                    number += 1;
                    take(recorded)?;
                }
                reader.consume(used);
            }
            Err(PcapError::Eof) => return Ok(()),
            Err(PcapError::Incomplete(_)) => {
                if reader.reader_exhausted() {
                    return Err(broken("is cut short"));
                }
                reader.refill().map_err(|_| broken("cannot be read on"))?;
            }
            Err(PcapError::BufferTooSmall) if capacity < MAX_BUFFER_BYTES => {
                capacity *= 4;
                if !reader.grow(capacity) {
                    return Err(broken("has a block that is too long"));
                }
                reader.refill().map_err(|_| broken("cannot be read on"))?;
            }
            Err(PcapError::BufferTooSmall) => return Err(broken("has a block that is too long")),
            Err(PcapError::UnexpectedEof) => return Err(broken("is cut short")),
            Err(PcapError::HeaderNotRecognized) => return Err(strange()),
            Err(PcapError::ReadError) => return Err(broken("cannot be read on")),
            Err(PcapError::NomError(..) | PcapError::OwnedNomError(..)) => return Err(broken("is damaged")),
        }
    }
}

/// The number libpcap knows a link type by: the same but for a few old ones.
pub(crate) fn data_link(link_type: i32) -> i32 {
    match link_type {
        100 => 11,
        101 => 12,
        other => other,
    }
}

/// The number of the link type in captures of what libpcap knows by this number.
pub(crate) fn link_type(data_link: i32) -> i32 {
    match data_link {
        11 => 100,
        12 => 101,
        other => other,
    }
}

/// A pcap file that is being written, with times in nanoseconds.
pub(crate) struct Writer {
    file: NewFile,
    pub(crate) link_type: i32,
    pub(crate) packets: u64,
}

impl Writer {
    /// Begins a file; it has its name once it is finished.
    pub(crate) fn create(path: &Path, link_type: i32) -> Result<Writer, HostError> {
        let mut file = NewFile::create(path)?;
        let mut header = Vec::new();
        for word in [0xa1b2_3c4d_u32, 4 << 16 | 2, 0, 0, 262_144, link_type as u32] {
            header.extend(word.to_le_bytes());
        }
        file.write_all(&header).map_err(|error| HostError::file("write", path.display(), &error))?;
        Ok(Writer { file, link_type, packets: 0 })
    }

    /// Adds a packet.
    pub(crate) fn write(&mut self, packet: &Recorded<'_>) -> Result<(), HostError> {
        let words = [packet.seconds, packet.nanoseconds, packet.data.len() as u32, packet.wire_length];
        let mut outcome = Ok(());
        for word in words {
            outcome = outcome.and_then(|()| self.file.write_all(&word.to_le_bytes()));
        }
        outcome = outcome.and_then(|()| self.file.write_all(packet.data));
        self.packets += 1;
        outcome.map_err(|error| HostError::file("write", self.file.path().display(), &error))
    }

    /// Writes what has not been written yet.
    pub(crate) fn flush(&mut self) -> Result<(), HostError> {
        self.file.flush().map_err(|error| HostError::file("write", self.file.path().display(), &error))
    }

    /// Gives the file its name.
    pub(crate) fn finish(self) -> Result<(), HostError> {
        self.file.finish()
    }
}
