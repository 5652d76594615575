//! A USB/IP host that has attached the device: enumerates it, writes bytes to the serial port and reads their echo,
//! unlinks transfers, halts endpoints. Written from the kernel's documentation (`usbip_protocol`) and USB 2.0; shares
//! no code with the device.

use quaject_test_support::random::Random;
use std::collections::{BTreeMap, VecDeque};

const HEADER: usize = 48;
const TRANSFER: u64 = 512;
/// The maximal number of pending transfers of a host; the device refuses the 33rd.
const MAX_PENDING: usize = 30;
const STALL: i32 = -32;
const UNLINKED: i32 = -104;
/// The numbers of the endpoints.
const OUT: u32 = 2;
const IN: u32 = 1;
const NOTIFY: u32 = 3;

#[derive(Default, Debug, Clone, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) attached: u64,
    /// Attempts to attach while the other host had the device.
    pub(super) busy: u64,
    /// Hosts that received the complete echo and detached by themselves.
    pub(super) served: u64,
    pub(super) controls: u64,
    pub(super) out: u64,
    pub(super) inward: u64,
    pub(super) bytes: u64,
    pub(super) stalled: u64,
    pub(super) unlinked: u64,
    /// Unlink requests that arrived after the transfer.
    pub(super) too_late: u64,
    /// Transfers that failed because their connection ended.
    pub(super) failed: u64,
}

/// A pending transfer.
pub(super) struct Transfer {
    endpoint: u32,
    data: Vec<u8>,
    /// The maximal number of bytes to read.
    length: usize,
    pub(super) begun_ns: i64,
}

/// The purpose of a control transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Purpose {
    Look,
    Code,
    Halt(u32),
    Unhalt(u32),
    Configure(bool),
}

pub(super) struct Control {
    number: u32,
    purpose: Purpose,
    setup: [u8; 8],
    data: Vec<u8>,
    /// The expected answer: bytes, or a stall.
    wanted: Option<Vec<u8>>,
}

/// The session of a host that has attached the device.
#[derive(Default)]
pub(super) struct Session {
    number: u32,
    /// Steps of the enumeration that are done.
    steps: usize,
    pub(super) transfers: BTreeMap<u32, Transfer>,
    pub(super) control: Option<Control>,
    /// Pending unlink requests: by their number, the transfer's.
    calls: BTreeMap<u32, u32>,
    /// Bytes written to the port whose echo is pending.
    pub(super) pending_echo: VecDeque<u8>,
    halted: [bool; 4],
    configured: bool,
    coding: Vec<u8>,
    /// When it detaches.
    pub(super) ends_ns: i64,
    pub(super) acts_ns: i64,
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn command(kind: u32, number: u32, inward: bool, endpoint: u32, rest: [u8; 28]) -> Vec<u8> {
    let words = [kind, number, 0x0001_0002, u32::from(inward), endpoint];
    words.iter().flat_map(|word| word.to_be_bytes()).chain(rest).collect()
}

/// A command that begins a transfer.
fn submit(number: u32, inward: bool, endpoint: u32, length: usize, setup: [u8; 8], data: &[u8]) -> Vec<u8> {
    let mut rest = [0; 28];
    rest[4..8].copy_from_slice(&(length as u32).to_be_bytes());
    rest[20..].copy_from_slice(&setup);
    [&command(1, number, inward, endpoint, rest)[..], data].concat()
}

fn setup(kind: [u8; 2], value: u16, index: u16, length: usize) -> [u8; 8] {
    let ([v, w], [i, j], [l, m]) = (value.to_le_bytes(), index.to_le_bytes(), (length as u16).to_le_bytes());
    [kind[0], kind[1], v, w, i, j, l, m]
}

const DEVICE: &[u8] = b"\x12\x01\0\x02\x02\0\0\x40\x09\x12\x01\0\0\x01\x01\x02\x03\x01";

/// A string descriptor (USB 2.0, 9.6.7).
fn string(text: &str) -> Vec<u8> {
    let units: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    [&[2 + units.len() as u8, 3][..], &units].concat()
}

impl Session {
    pub(super) fn new(now_ns: i64, ends_ns: i64) -> Session {
        Session { ends_ns, acts_ns: now_ns, ..Session::default() }
    }

    fn number(&mut self) -> u32 {
        self.number += 1;
        self.number
    }

    fn ask(
        &mut self,
        purpose: Purpose,
        kind: [u8; 2],
        place: (u16, u16),
        length: usize,
        data: Vec<u8>,
        wanted: Option<Vec<u8>>,
    ) -> Vec<u8> {
        let inward = kind[0] & 0x80 != 0;
        let setup = setup(kind, place.0, place.1, length);
        let number = self.number();
        let bytes = submit(number, inward, 0, length, setup, &data);
        self.control = Some(Control { number, purpose, setup, data, wanted });
        bytes
    }

    /// The next step of the enumeration.
    fn enumerate(&mut self, random: &mut Random) -> Option<Vec<u8>> {
        let look = |value, length, wanted: &[u8]| {
            let wanted = &wanted[..wanted.len().min(length)];
            (Purpose::Look, [0x80, 6], (value, 0), length, vec![], (!wanted.is_empty()).then(|| wanted.to_vec()))
        };
        let coding: Vec<u8> = (0..7).map(|_| random.byte()).collect();
        let (purpose, kind, place, length, data, wanted) = match self.steps {
            0 => look(0x0100, 8, DEVICE),
            1 => look(0x0100, 64, DEVICE),
            // Its length is known from the answer.
            2 => (Purpose::Look, [0x80, 6], (0x0200, 0), 255, vec![], Some(vec![])),
            3 => look(0x0300, 255, b"\x04\x03\x09\x04"),
            4 => look(0x0301, 255, &string("Quaject")),
            5 => look(0x0302, 3, &string("Echo")),
            6 => look(0x0303, 255, &string("42")),
            7 => look(0x0304, 255, b""),
            8 => (Purpose::Configure(true), [0, 9], (1, 0), 0, vec![], Some(vec![])),
            9 => (Purpose::Look, [0x80, 8], (0, 0), 1, vec![], Some(vec![1])),
            10 => (Purpose::Code, [0x21, 0x20], (0, 0), 7, coding, Some(vec![])),
            11 => (Purpose::Look, [0xa1, 0x21], (0, 0), 7, vec![], Some(self.coding.clone())),
            12 => (Purpose::Look, [0x21, 0x22], (3, 0), 0, vec![], Some(vec![])),
            _ => return None,
        };
        self.steps += 1;
        Some(self.ask(purpose, kind, place, length, data, wanted))
    }

    /// Some request of endpoint 0 between other transfers.
    fn any_control(&mut self, random: &mut Random) -> Vec<u8> {
        if !self.configured {
            return self.ask(Purpose::Configure(true), [0, 9], (1, 0), 0, vec![], Some(vec![]));
        }
        let endpoint = [OUT, IN][random.below(2) as usize];
        let index = if endpoint == IN { 0x81 } else { 2 };
        let halted = self.halted[endpoint as usize];
        match random.below(12) {
            0 => self.ask(Purpose::Configure(true), [0, 9], (1, 0), 0, vec![], Some(vec![])),
            1 => self.ask(Purpose::Configure(false), [0, 9], (0, 0), 0, vec![], Some(vec![])),
            2..=4 if halted => self.ask(Purpose::Unhalt(endpoint), [2, 1], (0, index), 0, vec![], Some(vec![])),
            2 => self.ask(Purpose::Halt(endpoint), [2, 3], (0, index), 0, vec![], Some(vec![])),
            5 => self.ask(Purpose::Look, [0x80, 6], (0x0700, 0), 64, vec![], None),
            6 => self.ask(Purpose::Look, [0xa1, 0x21], (0, 0), 7, vec![], Some(self.coding.clone())),
            7 => {
                let coding = (0..7).map(|_| random.byte()).collect();
                self.ask(Purpose::Code, [0x21, 0x20], (0, 0), 7, coding, Some(vec![]))
            }
            _ => self.ask(Purpose::Look, [0x82, 0], (0, index), 2, vec![], Some(vec![u8::from(halted), 0])),
        }
    }

    fn submit_bulk(&mut self, endpoint: u32, data: Vec<u8>, length: usize, now_ns: i64) -> Vec<u8> {
        let number = self.number();
        let bytes = submit(number, endpoint != OUT, endpoint, length.max(data.len()), [0; 8], &data);
        self.transfers.insert(number, Transfer { endpoint, data, length, begun_ns: now_ns });
        bytes
    }

    fn unlink(&mut self, wanted: u32) -> Vec<u8> {
        let mut rest = [0; 28];
        rest[..4].copy_from_slice(&wanted.to_be_bytes());
        let number = self.number();
        self.calls.insert(number, wanted);
        command(2, number, false, 0, rest)
    }

    /// The next command of a host; none at the end.
    pub(super) fn act(&mut self, random: &mut Random, now_ns: i64) -> Option<Vec<u8>> {
        if self.control.is_none()
            && let Some(step) = self.enumerate(random)
        {
            return Some(step);
        }
        if self.steps < 13 || self.control.is_some() && random.below(2) == 0 {
            return Some(vec![]);
        }
        if now_ns >= self.ends_ns {
            return self.finish(now_ns);
        }
        let room = self.transfers.len() < MAX_PENDING;
        let size = |random: &mut Random| {
            let any = 1 + random.below(TRANSFER);
            [1, 63, 64, 65, TRANSFER - 1, TRANSFER, any, any][random.below(8) as usize] as usize
        };
        Some(match random.below(16) {
            0..=4 if room => {
                let data = (0..size(random)).map(|_| random.byte()).collect();
                self.submit_bulk(OUT, data, 0, now_ns)
            }
            5..=9 if room => self.submit_bulk(IN, vec![], size(random), now_ns),
            10 if room && random.below(8) == 0 => self.submit_bulk(NOTIFY, vec![], 8, now_ns),
            11 | 12 if self.control.is_none() => self.any_control(random),
            13 => {
                // A transfer that is pending or has just ended.
                let wanted = 1 + self.number.saturating_sub(random.below(20) as u32 + 1);
                let is_call = self.calls.contains_key(&wanted) || self.calls.values().any(|call| *call == wanted);
                let is_control = self.control.as_ref().is_some_and(|control| control.number == wanted);
                if is_call || is_control { vec![] } else { self.unlink(wanted) }
            }
            _ => vec![],
        })
    }

    /// Reads the pending echo, then unlinks the remaining transfers; none when that is done.
    fn finish(&mut self, now_ns: i64) -> Option<Vec<u8>> {
        let count = |endpoint: u32| self.transfers.values().filter(|transfer| transfer.endpoint == endpoint).count();
        if self.control.is_some() || !self.calls.is_empty() {
            return Some(vec![]);
        }
        for endpoint in [OUT, IN] {
            if self.configured && self.halted[endpoint as usize] {
                let index = if endpoint == IN { 0x81 } else { 2 };
                return Some(self.ask(Purpose::Unhalt(endpoint), [2, 1], (0, index), 0, vec![], Some(vec![])));
            }
        }
        if !self.configured {
            return Some(self.ask(Purpose::Configure(true), [0, 9], (1, 0), 0, vec![], Some(vec![])));
        }
        if count(OUT) > 0 || !self.pending_echo.is_empty() {
            return Some(if count(IN) == 0 { self.submit_bulk(IN, vec![], TRANSFER as usize, now_ns) } else { vec![] });
        }
        let left = self.transfers.keys().next().copied()?;
        Some(self.unlink(left))
    }

    /// Handles an answer: its header and data. None if it is incomplete.
    pub(super) fn handle_answer(&mut self, inbox: &mut Vec<u8>, counts: &mut Counts) -> Option<()> {
        if inbox.len() < HEADER {
            return None;
        }
        let (kind, number, status) = (word(inbox, 0), word(inbox, 4), word(inbox, 20) as i32);
        let length = word(inbox, 24) as usize;
        if kind == 4 {
            inbox.drain(..HEADER);
            self.handle_unlinked(number, status, counts);
            return Some(());
        }
        assert_eq!(kind, 3, "not an answer: {inbox:?}");
        let control = self.control.as_ref().filter(|control| control.number == number);
        let inward = match (control, self.transfers.get(&number)) {
            (Some(control), _) => control.setup[0] & 0x80 != 0,
            (None, Some(transfer)) => transfer.endpoint != OUT,
            (None, None) => panic!("transfer {number} is not pending"),
        };
        let comes = if inward { length } else { 0 };
        if inbox.len() < HEADER + comes {
            return None;
        }
        let data: Vec<u8> = inbox.drain(..HEADER + comes).skip(HEADER).collect();
        if self.transfers.contains_key(&number) {
            self.complete_transfer(number, status, length, &data, counts);
        } else {
            self.complete_control(status, length, &data, counts);
        }
        Some(())
    }

    fn handle_unlinked(&mut self, number: u32, status: i32, counts: &mut Counts) {
        let wanted = self.calls.remove(&number).unwrap_or_else(|| panic!("{number} is not an unlink request"));
        match status {
            UNLINKED => {
                self.transfers.remove(&wanted).unwrap_or_else(|| panic!("{wanted} is unlinked and was answered"));
                counts.unlinked += 1;
            }
            0 => {
                assert!(!self.transfers.contains_key(&wanted), "{wanted} is neither unlinked nor answered");
                counts.too_late += 1;
            }
            _ => panic!("{wanted}: {status}"),
        }
    }

    fn complete_transfer(&mut self, number: u32, status: i32, length: usize, data: &[u8], counts: &mut Counts) {
        let transfer = self.transfers.remove(&number).expect("it was looked for");
        let endpoint = transfer.endpoint;
        let older = self.transfers.iter().find(|(other, transfer)| **other < number && transfer.endpoint == endpoint);
        assert!(older.is_none(), "transfer {number} ends before one that began earlier");
        assert_ne!(endpoint, NOTIFY, "the device has no notifications");
        // A pending request may have taken effect already.
        let changes = self.control.as_ref().is_some_and(|control| match control.purpose {
            Purpose::Halt(of) | Purpose::Unhalt(of) => of == endpoint,
            Purpose::Configure(_) => true,
            Purpose::Look | Purpose::Code => false,
        });
        let refuses = self.halted[endpoint as usize] || !self.configured;
        assert!(changes || (status == STALL) == refuses, "transfer {number}: {status}, and the endpoint: {refuses}");
        if status == STALL {
            assert_eq!(length, 0);
            counts.stalled += 1;
            return;
        }
        assert_eq!(status, 0);
        if endpoint == OUT {
            assert_eq!(length, transfer.data.len());
            counts.out += 1;
            self.pending_echo.extend(transfer.data);
        } else {
            assert!(0 < length && length <= transfer.length.min(self.pending_echo.len()), "{length} bytes arrive");
            let wanted: Vec<u8> = self.pending_echo.drain(..length).collect();
            assert_eq!(data, wanted, "the echo differs");
            counts.inward += 1;
            counts.bytes += length as u64;
        }
    }

    fn complete_control(&mut self, status: i32, length: usize, data: &[u8], counts: &mut Counts) {
        let control = self.control.take().expect("it was looked for");
        let what = format!("{:02x?}", control.setup);
        counts.controls += 1;
        let Some(wanted) = control.wanted else {
            assert_eq!((status, length), (STALL, 0), "{what}");
            return;
        };
        assert_eq!(status, 0, "{what}");
        if control.setup[..4] == [0x80, 6, 0, 2] {
            assert_configuration(data);
        } else if control.setup[0] & 0x80 != 0 {
            assert_eq!(data, wanted, "{what}");
        } else {
            assert_eq!(length, control.data.len(), "{what}");
        }
        match control.purpose {
            Purpose::Look => {}
            Purpose::Code => self.coding = control.data,
            Purpose::Halt(endpoint) => self.halted[endpoint as usize] = true,
            Purpose::Unhalt(endpoint) => self.halted[endpoint as usize] = false,
            Purpose::Configure(on) => {
                self.configured = on;
                self.halted = [false; 4];
                self.pending_echo.clear();
            }
        }
    }
}

/// Checks that the descriptors are those of a serial port.
fn assert_configuration(all: &[u8]) {
    assert_eq!(usize::from(u16::from_le_bytes([all[2], all[3]])), all.len());
    let (mut at, mut endpoints) = (0, Vec::new());
    while at < all.len() {
        if all[at + 1] == 5 {
            endpoints.push((all[at + 2], all[at + 3]));
        }
        at += usize::from(all[at]);
    }
    assert_eq!((at, endpoints), (all.len(), vec![(0x83, 3), (0x02, 2), (0x81, 2)]));
}
