//! A host while it has the device: enumerates, tells the port things and hears them again, calls transfers off, halts endpoints. Written
//! from the kernel's documentation (`usbip_protocol`) and USB 2.0; shares nothing with the device.

use quaject_test_support::random::Random;
use std::collections::{BTreeMap, VecDeque};

const HEADER: usize = 48;
const TRANSFER: u64 = 512;
/// Transfers that a host has under way at once; the device refuses the 33rd.
const UNDER_WAY: usize = 30;
const STALL: i32 = -32;
const CALLED_OFF: i32 = -104;
/// The numbers of the endpoints, which no two share whatever their direction.
const OUT: u32 = 2;
const IN: u32 = 1;
const NOTIFY: u32 = 3;

#[derive(Default, Debug, Clone, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) attached: u64,
    /// Hosts that have had all they had told, and went by themselves.
    pub(super) served: u64,
    pub(super) controls: u64,
    pub(super) out: u64,
    pub(super) inward: u64,
    pub(super) bytes: u64,
    pub(super) stalled: u64,
    pub(super) called_off: u64,
    /// Calls that came too late.
    pub(super) too_late: u64,
    /// Transfers whose connection has ended, which their host knows.
    pub(super) failed: u64,
}

/// A transfer that is not answered.
pub(super) struct Transfer {
    endpoint: u32,
    data: Vec<u8>,
    /// Bytes that may come in.
    length: usize,
    pub(super) begun_ns: i64,
}

/// What a control transfer is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Aim {
    Look,
    Code,
    Halt(u32),
    Unhalt(u32),
    Configure(bool),
}

pub(super) struct Control {
    number: u32,
    aim: Aim,
    setup: [u8; 8],
    data: Vec<u8>,
    /// What must be answered: bytes, or a stall.
    wanted: Option<Vec<u8>>,
}

/// A host while it has the device.
#[derive(Default)]
pub(super) struct Session {
    number: u32,
    /// Steps of the enumeration that are done.
    steps: usize,
    pub(super) transfers: BTreeMap<u32, Transfer>,
    pub(super) control: Option<Control>,
    /// Questions to call off: by their number, the transfer's.
    calls: BTreeMap<u32, u32>,
    /// Bytes that the port has been told and has not said.
    pub(super) told: VecDeque<u8>,
    halted: [bool; 4],
    configured: bool,
    coding: Vec<u8>,
    /// When it wants to go.
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
        aim: Aim,
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
        self.control = Some(Control { number, aim, setup, data, wanted });
        bytes
    }

    /// The next step of the enumeration.
    fn enumerate(&mut self, random: &mut Random) -> Option<Vec<u8>> {
        let look = |value, length, wanted: &[u8]| {
            let wanted = &wanted[..wanted.len().min(length)];
            (Aim::Look, [0x80, 6], (value, 0), length, vec![], (!wanted.is_empty()).then(|| wanted.to_vec()))
        };
        let coding: Vec<u8> = (0..7).map(|_| random.byte()).collect();
        let (aim, kind, place, length, data, wanted) = match self.steps {
            0 => look(0x0100, 8, DEVICE),
            1 => look(0x0100, 64, DEVICE),
            // What it is made of, the answer tells.
            2 => (Aim::Look, [0x80, 6], (0x0200, 0), 255, vec![], Some(vec![])),
            3 => look(0x0300, 255, b"\x04\x03\x09\x04"),
            4 => look(0x0301, 255, &string("Quaject")),
            5 => look(0x0302, 3, &string("Echo")),
            6 => look(0x0303, 255, &string("42")),
            7 => look(0x0304, 255, b""),
            8 => (Aim::Configure(true), [0, 9], (1, 0), 0, vec![], Some(vec![])),
            9 => (Aim::Look, [0x80, 8], (0, 0), 1, vec![], Some(vec![1])),
            10 => (Aim::Code, [0x21, 0x20], (0, 0), 7, coding, Some(vec![])),
            11 => (Aim::Look, [0xa1, 0x21], (0, 0), 7, vec![], Some(self.coding.clone())),
            12 => (Aim::Look, [0x21, 0x22], (3, 0), 0, vec![], Some(vec![])),
            _ => return None,
        };
        self.steps += 1;
        Some(self.ask(aim, kind, place, length, data, wanted))
    }

    /// Some request of endpoint 0 between other transfers.
    fn any_control(&mut self, random: &mut Random) -> Vec<u8> {
        if !self.configured {
            return self.ask(Aim::Configure(true), [0, 9], (1, 0), 0, vec![], Some(vec![]));
        }
        let endpoint = [OUT, IN][random.below(2) as usize];
        let index = if endpoint == IN { 0x81 } else { 2 };
        let halted = self.halted[endpoint as usize];
        match random.below(12) {
            0 => self.ask(Aim::Configure(true), [0, 9], (1, 0), 0, vec![], Some(vec![])),
            1 => self.ask(Aim::Configure(false), [0, 9], (0, 0), 0, vec![], Some(vec![])),
            2..=4 if halted => self.ask(Aim::Unhalt(endpoint), [2, 1], (0, index), 0, vec![], Some(vec![])),
            2 => self.ask(Aim::Halt(endpoint), [2, 3], (0, index), 0, vec![], Some(vec![])),
            5 => self.ask(Aim::Look, [0x80, 6], (0x0700, 0), 64, vec![], None),
            6 => self.ask(Aim::Look, [0xa1, 0x21], (0, 0), 7, vec![], Some(self.coding.clone())),
            7 => {
                let coding = (0..7).map(|_| random.byte()).collect();
                self.ask(Aim::Code, [0x21, 0x20], (0, 0), 7, coding, Some(vec![]))
            }
            _ => self.ask(Aim::Look, [0x82, 0], (0, index), 2, vec![], Some(vec![u8::from(halted), 0])),
        }
    }

    fn tell(&mut self, endpoint: u32, data: Vec<u8>, length: usize, now_ns: i64) -> Vec<u8> {
        let number = self.number();
        let bytes = submit(number, endpoint != OUT, endpoint, length.max(data.len()), [0; 8], &data);
        self.transfers.insert(number, Transfer { endpoint, data, length, begun_ns: now_ns });
        bytes
    }

    fn call_off(&mut self, wanted: u32) -> Vec<u8> {
        let mut rest = [0; 28];
        rest[..4].copy_from_slice(&wanted.to_be_bytes());
        let number = self.number();
        self.calls.insert(number, wanted);
        command(2, number, false, 0, rest)
    }

    /// What a host does next; nothing: it is done.
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
        let room = self.transfers.len() < UNDER_WAY;
        let size = |random: &mut Random| {
            let any = 1 + random.below(TRANSFER);
            [1, 63, 64, 65, TRANSFER - 1, TRANSFER, any, any][random.below(8) as usize] as usize
        };
        Some(match random.below(16) {
            0..=4 if room => {
                let data = (0..size(random)).map(|_| random.byte()).collect();
                self.tell(OUT, data, 0, now_ns)
            }
            5..=9 if room => self.tell(IN, vec![], size(random), now_ns),
            10 if room && random.below(8) == 0 => self.tell(NOTIFY, vec![], 8, now_ns),
            11 | 12 if self.control.is_none() => self.any_control(random),
            13 => {
                // One that waits, or has just been answered.
                let wanted = 1 + self.number.saturating_sub(random.below(20) as u32 + 1);
                let is_call = self.calls.contains_key(&wanted) || self.calls.values().any(|call| *call == wanted);
                let is_control = self.control.as_ref().is_some_and(|control| control.number == wanted);
                if is_call || is_control { vec![] } else { self.call_off(wanted) }
            }
            _ => vec![],
        })
    }

    /// Has the port say all it was told, then calls off what is left; nothing when that is done.
    fn finish(&mut self, now_ns: i64) -> Option<Vec<u8>> {
        let count = |endpoint: u32| self.transfers.values().filter(|transfer| transfer.endpoint == endpoint).count();
        if self.control.is_some() || !self.calls.is_empty() {
            return Some(vec![]);
        }
        for endpoint in [OUT, IN] {
            if self.configured && self.halted[endpoint as usize] {
                let index = if endpoint == IN { 0x81 } else { 2 };
                return Some(self.ask(Aim::Unhalt(endpoint), [2, 1], (0, index), 0, vec![], Some(vec![])));
            }
        }
        if !self.configured {
            return Some(self.ask(Aim::Configure(true), [0, 9], (1, 0), 0, vec![], Some(vec![])));
        }
        if count(OUT) > 0 || !self.told.is_empty() {
            return Some(if count(IN) == 0 { self.tell(IN, vec![], TRANSFER as usize, now_ns) } else { vec![] });
        }
        let left = self.transfers.keys().next().copied()?;
        Some(self.call_off(left))
    }

    /// An answer: its header, and what comes in. Returns nothing if it is not all there.
    pub(super) fn hear(&mut self, inbox: &mut Vec<u8>, counts: &mut Counts) -> Option<()> {
        if inbox.len() < HEADER {
            return None;
        }
        let (kind, number, status) = (word(inbox, 0), word(inbox, 4), word(inbox, 20) as i32);
        let length = word(inbox, 24) as usize;
        if kind == 4 {
            inbox.drain(..HEADER);
            self.called_off(number, status, counts);
            return Some(());
        }
        assert_eq!(kind, 3, "no answer begins so: {inbox:?}");
        let control = self.control.as_ref().filter(|control| control.number == number);
        let inward = match (control, self.transfers.get(&number)) {
            (Some(control), _) => control.setup[0] & 0x80 != 0,
            (None, Some(transfer)) => transfer.endpoint != OUT,
            (None, None) => panic!("transfer {number} is none, or was answered before"),
        };
        let comes = if inward { length } else { 0 };
        if inbox.len() < HEADER + comes {
            return None;
        }
        let data: Vec<u8> = inbox.drain(..HEADER + comes).skip(HEADER).collect();
        if self.transfers.contains_key(&number) {
            self.transferred(number, status, length, &data, counts);
        } else {
            self.controlled(status, length, &data, counts);
        }
        Some(())
    }

    fn called_off(&mut self, number: u32, status: i32, counts: &mut Counts) {
        let wanted = self.calls.remove(&number).unwrap_or_else(|| panic!("nobody asked {number}"));
        match status {
            CALLED_OFF => {
                self.transfers.remove(&wanted).unwrap_or_else(|| panic!("{wanted} is called off and was answered"));
                counts.called_off += 1;
            }
            0 => {
                assert!(!self.transfers.contains_key(&wanted), "{wanted} is neither called off nor answered");
                counts.too_late += 1;
            }
            _ => panic!("{wanted}: {status}"),
        }
    }

    fn transferred(&mut self, number: u32, status: i32, length: usize, data: &[u8], counts: &mut Counts) {
        let transfer = self.transfers.remove(&number).expect("it was looked for");
        let endpoint = transfer.endpoint;
        let older = self.transfers.iter().find(|(other, transfer)| **other < number && transfer.endpoint == endpoint);
        assert!(older.is_none(), "transfer {number} ends before one that began earlier");
        assert_ne!(endpoint, NOTIFY, "there is nothing to notify of");
        // A request that is under way may have had its effect, or not yet.
        let changes = self.control.as_ref().is_some_and(|control| match control.aim {
            Aim::Halt(of) | Aim::Unhalt(of) => of == endpoint,
            Aim::Configure(_) => true,
            Aim::Look | Aim::Code => false,
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
            self.told.extend(transfer.data);
        } else {
            assert!(0 < length && length <= transfer.length.min(self.told.len()), "{length} bytes come");
            let wanted: Vec<u8> = self.told.drain(..length).collect();
            assert_eq!(data, wanted, "other bytes come than were told");
            counts.inward += 1;
            counts.bytes += length as u64;
        }
    }

    fn controlled(&mut self, status: i32, length: usize, data: &[u8], counts: &mut Counts) {
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
        match control.aim {
            Aim::Look => {}
            Aim::Code => self.coding = control.data,
            Aim::Halt(endpoint) => self.halted[endpoint as usize] = true,
            Aim::Unhalt(endpoint) => self.halted[endpoint as usize] = false,
            Aim::Configure(on) => {
                self.configured = on;
                self.halted = [false; 4];
                self.told.clear();
            }
        }
    }
}

/// Its parts, each of which says how long it is, are those of a serial port.
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
