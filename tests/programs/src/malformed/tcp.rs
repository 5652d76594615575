//! Peers of the TCP/IP host that drive their connections through all states, with the host's sequence numbers, and send
//! invalid segments in between: with valid checksums, at the limits of what is allowed. They close their connections,
//! because a desynchronised connection would occupy the host for minutes.

use crate::tcpip::{ACK, FIN, RST, SYN, ip, with_sum};
use quaject_test_support::random::Random;
use std::fmt;

/// The peers: for each service as many as it has connections, one more, and one at a closed port.
const PEERS: usize = 14;
const LOCAL: [u16; PEERS] = [80, 80, 80, 80, 80, 80, 80, 80, 7, 7, 7, 7, 80, 81];
/// The header without options.
const HEADER: usize = 20;

/// The state of a peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// It has no connection.
    Idle,
    /// The number of its requests for a connection.
    Asking(u32),
    /// It has one, for this many more segments.
    Open(u64),
    /// The number of its attempts to end it.
    Leaving(u32),
}

/// All of them.
pub(super) fn all() -> Vec<Peer> {
    (0..PEERS).map(Peer::number).collect()
}

/// The peer of the next turn; rarely one of the last two.
pub(super) fn turn(random: &mut Random) -> usize {
    let peers = if random.below(16) == 0 { PEERS } else { PEERS - 2 };
    random.below(peers as u64) as usize
}

/// A segment of the host.
pub(super) struct Said {
    address: [u8; 4],
    port: u16,
    local: u16,
    flags: u8,
    seq: u32,
    ack: u32,
    length: u32,
}

/// A peer of the host.
pub(super) struct Peer {
    pub(super) address: [u8; 4],
    port: u16,
    local: u16,
    phase: Phase,
    /// The next sequence number that the host expects of this peer.
    ours: u32,
    /// The next sequence number that this peer expects of the host.
    theirs: u32,
}

/// A segment before it is written.
#[derive(Clone)]
struct Segment {
    seq: u32,
    ack: u32,
    flags: u8,
    window: u16,
    /// Overridden words of the header.
    words: Option<u8>,
    options: Vec<u8>,
    data: Vec<u8>,
}

impl Peer {
    fn number(n: usize) -> Peer {
        let address = [10, 77, 0, [1, 3, 9][n % 3]];
        Peer { address, port: 1_000 + n as u16, local: LOCAL[n], phase: Phase::Idle, ours: 0, theirs: 0 }
    }

    /// Whether the host has a connection for it.
    pub(super) fn is_inside(&self) -> bool {
        match self.phase {
            Phase::Idle | Phase::Asking(_) => false,
            Phase::Open(_) | Phase::Leaving(_) => true,
        }
    }

    /// Whether a segment is addressed to it.
    pub(super) fn is(&self, said: &Said) -> bool {
        (self.address, self.port, self.local) == (said.address, said.port, said.local)
    }

    /// Handles a segment of the host.
    pub(super) fn hear(&mut self, said: &Said) {
        if said.flags & RST != 0 {
            self.phase = match self.phase {
                // Before the first acknowledgement a connection survives invalid segments: it is reset.
                Phase::Open(_) => Phase::Leaving(0),
                Phase::Leaving(times) if times >= 4 => Phase::Idle,
                Phase::Idle | Phase::Asking(_) | Phase::Leaving(_) => self.phase,
            };
            return;
        }
        if said.flags & ACK == 0 {
            return;
        }
        match self.phase {
            Phase::Idle => {}
            Phase::Asking(_) if said.flags & SYN != 0 => {
                (self.ours, self.theirs) = (said.ack, said.seq.wrapping_add(1));
                self.phase = Phase::Open(4 + u64::from(said.seq % 60));
            }
            Phase::Asking(_) => {}
            Phase::Open(_) | Phase::Leaving(_) => {
                self.ours = said.ack;
                let end = said.seq.wrapping_add(said.length + u32::from(said.flags & FIN));
                if end.wrapping_sub(self.theirs) < 1 << 30 {
                    self.theirs = end;
                }
            }
        }
    }

    fn segment(&self, flags: u8, data: &[u8]) -> Segment {
        Segment {
            seq: self.ours,
            ack: self.theirs,
            flags,
            window: u16::MAX,
            words: None,
            options: Vec::new(),
            data: data.to_vec(),
        }
    }

    /// Its next segment.
    pub(super) fn frame(&mut self, random: &mut Random) -> Vec<u8> {
        let segment = match self.phase {
            Phase::Idle => {
                // Rarely a port that the host still has in TIME-WAIT.
                if random.below(8) > 0 {
                    self.port = 1_000 + random.below(60_000) as u16;
                }
                (self.ours, self.theirs, self.phase) = (random.next() as u32, 0, Phase::Asking(1));
                self.asking(random)
            }
            // While all connections are in use the host does not answer.
            Phase::Asking(times) => {
                self.phase = if times < 200 { Phase::Asking(times + 1) } else { Phase::Idle };
                self.asking(random)
            }
            Phase::Open(0) => {
                self.phase = Phase::Leaving(0);
                self.segment(ACK | [FIN, FIN, 0][random.below(3) as usize], b"")
            }
            Phase::Open(left) => {
                self.phase = Phase::Open(left - 1);
                self.open(random)
            }
            // First a segment outside of the window, which is answered with the right numbers.
            Phase::Leaving(times) if times % 2 == 0 => {
                self.phase = Phase::Leaving(times + 1);
                Segment { seq: self.ours.wrapping_sub(1), ..self.segment(ACK, b"") }
            }
            Phase::Leaving(times) => {
                self.phase = if times < 20 { Phase::Leaving(times + 1) } else { Phase::Idle };
                self.segment(RST, b"")
            }
        };
        let spoiled = match self.phase {
            Phase::Open(_) => random.below(3) == 0,
            Phase::Idle | Phase::Asking(_) => random.below(12) == 0,
            Phase::Leaving(_) => false,
        };
        let segment = if spoiled { spoiled_segment(random, segment) } else { segment };
        self.written(random, &segment)
    }

    fn asking(&self, random: &mut Random) -> Segment {
        let known: [&[u8]; 6] =
            [&[], &[2, 4, 5, 180], &[1, 3, 0, 0], &[2, 2, 255, 255], &[8, 200, 0, 0], &[2, 4, 0, 0, 1, 1, 1, 0]];
        Segment { options: known[random.below(6) as usize].to_vec(), ack: 0, ..self.segment(SYN, b"") }
    }

    /// A valid segment of an open connection.
    fn open(&self, random: &mut Random) -> Segment {
        let request: &[u8] =
            [&b"GET /f HTTP/1.0\r\n\r\n"[..], b"GET /f HTTP/1.0\r\n", b"\r\n", b"HEAD /f HTTP/1.0\r\n\r\n", b"no\n\n"]
                [random.below(16).saturating_sub(11) as usize];
        let noise = vec![random.byte(); random.below(1_461) as usize];
        let data = if self.local == 80 { request } else { &noise };
        match random.below(20) {
            0..=4 => self.segment(ACK, b""),
            5..=10 => self.segment(ACK, data),
            // Early, late, and some of both.
            11 => Segment { seq: self.ours.wrapping_add(1 + random.below(1_500) as u32), ..self.segment(ACK, data) },
            12 => Segment { seq: self.ours.wrapping_sub(1 + random.below(40) as u32), ..self.segment(ACK, &noise) },
            13 => Segment { window: [0, 1, 63, 500, 1_460][random.below(5) as usize], ..self.segment(ACK, b"") },
            // A duplicate acknowledgement; three of them signal a loss.
            14..=16 => {
                Segment { ack: self.theirs.wrapping_sub(random.below(3) as u32 * 536), ..self.segment(ACK, b"") }
            }
            17 => self.segment(ACK | FIN, [b"", data][random.below(2) as usize]),
            18 => Segment { seq: self.ours.wrapping_add(random.below(5_000) as u32), ..self.segment(ACK | FIN, data) },
            _ => Segment { options: vec![1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2], ..self.segment(ACK, data) },
        }
    }

    fn written(&self, random: &mut Random, segment: &Segment) -> Vec<u8> {
        let mut options = segment.options.clone();
        options.resize(options.len().next_multiple_of(4), 0);
        let words = segment.words.unwrap_or(((HEADER + options.len()) / 4) as u8);
        let bytes = [
            &self.port.to_be_bytes()[..],
            &self.local.to_be_bytes(),
            &segment.seq.to_be_bytes(),
            &segment.ack.to_be_bytes(),
            &[words << 4, segment.flags],
            &segment.window.to_be_bytes(),
            &[0, 0, 0, 0],
            &options,
            &segment.data,
        ]
        .concat();
        ip(random, self.address, 6, &with_sum(self.address, 6, bytes, 16))
    }
}

/// Replaces one or two of its fields by random or limit values.
fn spoiled_segment(random: &mut Random, mut segment: Segment) -> Segment {
    for _ in 0..=random.below(2) {
        let edges = [1, 2, 1_459, 1_460, 11_679, 11_680, 11_681, 23_360, 65_535, 65_536, 1 << 30, 1 << 31];
        let edge = edges[random.below(edges.len() as u64) as usize];
        let far = [edge, 0_u32.wrapping_sub(edge), random.next() as u32][random.below(3) as usize];
        match random.below(9) {
            0 => segment.seq = segment.seq.wrapping_add(far),
            1 => segment.ack = segment.ack.wrapping_add(far),
            2 => segment.flags = random.byte(),
            3 => segment.flags ^= 1 << random.below(6),
            4 => segment.window = [0, 1, 2, 0x7fff, 0x8000, random.next() as u16][random.below(6) as usize],
            5 => segment.words = Some(random.below(16) as u8),
            6 => {
                let length = random.below(41) as usize;
                segment.options =
                    (0..length).map(|_| [0, 1, 2, 3, 4, 255, random.byte()][random.below(7) as usize]).collect();
            }
            7 => segment.data = vec![random.byte(); [0, 1, 2, 535, 1_440, 1_460][random.below(6) as usize]],
            _ => {
                let length = segment.data.len();
                segment.data.truncate(random.below(length as u64 + 1) as usize);
            }
        }
    }
    // What a packet holds.
    segment.options.truncate(40);
    segment.data.truncate(1_480 - HEADER - segment.options.len().next_multiple_of(4));
    segment
}

/// The answers of the host, by kind.
#[derive(Default)]
pub(super) struct Answers {
    taken: u64,
    acknowledged: u64,
    data: u64,
    ended: u64,
    reset: u64,
    found: u64,
    refused: u64,
    other: u64,
}

impl Answers {
    /// Counts a frame; returns its segment, if it has one.
    pub(super) fn count(&mut self, frame: &[u8]) -> Option<Said> {
        if frame.len() < 54 || frame[12..14] != [8, 0] || frame[23] != 6 {
            self.other += 1;
            return None;
        }
        let number = |at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);
        let long = |at: usize| u32::from_be_bytes([frame[at], frame[at + 1], frame[at + 2], frame[at + 3]]);
        let content = usize::from(number(16)) - 20 - 4 * usize::from(frame[46] >> 4);
        let said = Said {
            address: [frame[30], frame[31], frame[32], frame[33]],
            port: number(36),
            local: number(34),
            flags: frame[47],
            seq: long(38),
            ack: long(42),
            length: content as u32,
        };
        let kind = match (said.flags, content) {
            (flags, _) if flags & RST != 0 => &mut self.reset,
            (flags, _) if flags & SYN != 0 => &mut self.taken,
            (flags, _) if flags & FIN != 0 => &mut self.ended,
            (_, 0) => &mut self.acknowledged,
            (_, _) => &mut self.data,
        };
        *kind += 1;
        let data = &frame[frame.len().min(54)..];
        self.found += u64::from(data.starts_with(b"HTTP/1.0 200"));
        self.refused += u64::from(data.starts_with(b"HTTP/1.0 4"));
        Some(said)
    }

    /// Whether this many packets have caused enough answers of each kind, so that they have reached all parts of the
    /// host.
    pub(super) fn suffice(&self, sent: u64) {
        let Answers { taken, acknowledged, data, ended, reset, found, refused, other } = *self;
        let kinds = [
            ("connections taken", taken, 30),
            ("acknowledgements", acknowledged, 5),
            ("segments of data", data, 10),
            ("ends", ended, 150),
            ("resets", reset, 50),
            ("pages", found, 400),
            ("refusals", refused, 800),
            ("other frames", other, 30),
        ];
        for (kind, count, one_in) in kinds {
            assert!(count >= sent / one_in, "tcpip: {sent} packets have brought {count} {kind} only");
        }
    }
}

impl fmt::Display for Answers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Answers { taken, acknowledged, data, ended, reset, found, refused, other } = self;
        write!(
            f,
            "{taken} connections, {acknowledged} acknowledgements, {data} of data, {ended} ends, {reset} resets, \
             {found} pages, {refused} refusals, {other} other frames"
        )
    }
}
