//! A host on an Ethernet with smoltcp's network stack: its exchanges, sequential and concurrent, and services for the
//! exchanges of others, in virtual time.

use super::exchange::{Exchange, Plan};
use super::goal::Verdict;
use super::service::Services;
use crate::SECOND_NS;
use quaject_test_support::random::Random;
use smoltcp::iface::{Config, Interface, SocketSet};
use smoltcp::phy::{self, Device, DeviceCapabilities, Medium};
use smoltcp::time::Instant;
use smoltcp::wire::{EthernetAddress, IpCidr, Ipv4Address};
use std::collections::{BTreeMap, VecDeque};

const BROADCAST: [u8; 6] = [0xff; 6];
/// The first local port. There are few, so that they are reused while the last exchange is in TIME-WAIT.
const FIRST_PORT: u16 = 20_000;

/// The results of the exchanges of one kind.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Tally {
    pub(crate) done: u64,
    pub(crate) dismissed: u64,
    pub(crate) reset: u64,
    pub(crate) timed_out: u64,
    pub(crate) broken: u64,
    pub(crate) bytes: u64,
    pub(crate) longest_ns: i64,
}

pub(crate) type Tallies = BTreeMap<&'static str, Tally>;

/// The configuration of a host.
pub(crate) struct Settings {
    pub(crate) station: [u8; 6],
    pub(crate) addresses: Vec<(Ipv4Address, u8)>,
    pub(crate) gateway: Option<Ipv4Address>,
    /// Bytes of a packet.
    pub(crate) mtu: usize,
    /// Ports for its exchanges.
    pub(crate) ports: u16,
    pub(crate) role: Role,
}

/// Whether a host has services.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    Client,
    Server,
}

pub(crate) struct Host {
    station: [u8; 6],
    interface: Interface,
    sockets: SocketSet<'static>,
    frames: Frames,
    services: Services,
    pub(crate) exchanges: Vec<Exchange>,
    ports: u16,
    pub(crate) tallies: Tallies,
    /// The time of its next action.
    pub(crate) due_ns: Option<i64>,
}

/// The link layer between the network stack and the wires.
struct Frames {
    mtu: usize,
    received: VecDeque<Vec<u8>>,
    /// The frame that the stack receives next.
    next: Option<Vec<u8>>,
    sent: VecDeque<Vec<u8>>,
}

fn instant(now_ns: i64) -> Instant {
    Instant::from_micros(now_ns / 1_000)
}

impl Host {
    pub(crate) fn new(settings: Settings, seed: u64) -> Host {
        let Settings { station, addresses, gateway, mtu, ports, role } = settings;
        let mut frames = Frames { mtu, received: VecDeque::new(), next: None, sent: VecDeque::new() };
        let mut config = Config::new(EthernetAddress(station).into());
        config.random_seed = seed;
        let mut interface = Interface::new(config, &mut frames, instant(0));
        interface.update_ip_addrs(|all| {
            for (address, length) in addresses {
                all.push(IpCidr::new(address.into(), length)).expect("there are few");
            }
        });
        if let Some(gateway) = gateway {
            interface.routes_mut().add_default_ipv4_route(gateway).expect("there is no other");
        }
        let mut sockets = SocketSet::new(Vec::new());
        let services = match role {
            Role::Client => Services::None,
            Role::Server => Services::open(&mut sockets),
        };
        let (exchanges, tallies) = (Vec::new(), BTreeMap::new());
        Host { station, interface, sockets, frames, services, exchanges, ports, tallies, due_ns: Some(0) }
    }

    /// Whether a frame is addressed to it.
    pub(crate) fn takes(&self, frame: &[u8]) -> bool {
        frame.starts_with(&self.station) || frame.starts_with(&BROADCAST)
    }

    pub(crate) fn receive(&mut self, frame: Vec<u8>) {
        self.frames.received.push_back(frame);
    }

    /// A frame that it has sent.
    pub(crate) fn sent(&mut self) -> Option<Vec<u8>> {
        self.frames.sent.pop_front()
    }

    /// The number of exchanges in progress.
    pub(crate) fn busy(&self) -> usize {
        self.exchanges.iter().filter(|exchange| exchange.verdict.is_none()).count()
    }

    pub(crate) fn begin(&mut self, plan: Plan, random: &mut Random, now_ns: i64) {
        let mut port = || FIRST_PORT + random.below(u64::from(self.ports)) as u16;
        let mut local = port();
        while self.exchanges.iter().any(|exchange| exchange.local == local) {
            local = port();
        }
        self.exchanges.push(Exchange::begin(plan, local, &mut self.interface, &mut self.sockets, now_ns));
        self.due_ns = Some(now_ns);
    }

    /// Continues, if there is a frame or its time has come; whether it did.
    pub(crate) fn step(&mut self, now_ns: i64) -> bool {
        if self.frames.received.is_empty() && self.due_ns.is_none_or(|due_ns| due_ns > now_ns) {
            return false;
        }
        while let Some(frame) = self.frames.received.pop_front() {
            let fresh = self.services.listeners(&frame, &mut self.sockets);
            self.frames.next = Some(frame);
            let sockets = fresh.unwrap_or(&mut self.sockets);
            self.interface.poll_ingress_single(instant(now_ns), &mut self.frames, sockets);
            self.services.accept(&mut self.sockets);
        }
        let mut moves = true;
        while moves {
            self.interface.poll(instant(now_ns), &mut self.frames, &mut self.sockets);
            moves = self.services.step(&mut self.sockets, now_ns);
            for exchange in &mut self.exchanges {
                moves |= exchange.step(&mut self.sockets, now_ns);
            }
        }
        for exchange in self.exchanges.extract_if(.., |exchange| exchange.over) {
            exchange.end(&mut self.sockets);
            let tally = self.tallies.entry(exchange.kind).or_default();
            tally.bytes += exchange.bytes();
            tally.longest_ns = tally.longest_ns.max(now_ns - exchange.begun_ns);
            *match exchange.verdict.expect("it is over") {
                Verdict::Done => &mut tally.done,
                Verdict::Dismissed => &mut tally.dismissed,
                Verdict::Reset => &mut tally.reset,
                Verdict::TimedOut => &mut tally.timed_out,
                Verdict::Broken => &mut tally.broken,
            } += 1;
        }
        let poll_ns = self.interface.poll_at(instant(now_ns), &self.sockets).map(|at| at.total_micros() * 1_000);
        // What fails because an address is not resolved is retried soon.
        let poll_ns = poll_ns.map(|poll_ns| poll_ns.max(now_ns + SECOND_NS / 1_000));
        let exchanges = self.exchanges.iter().filter_map(|exchange| exchange.due_ns(now_ns));
        self.due_ns = exchanges.chain(self.services.due_ns()).chain(poll_ns).min();
        true
    }
}

impl Device for Frames {
    type RxToken<'a> = ReceivedFrame;
    type TxToken<'a> = TransmitSlot<'a>;

    fn receive(&mut self, _: Instant) -> Option<(ReceivedFrame, TransmitSlot<'_>)> {
        let frame = self.next.take()?;
        Some((ReceivedFrame(frame), TransmitSlot(&mut self.sent)))
    }

    fn transmit(&mut self, _: Instant) -> Option<TransmitSlot<'_>> {
        Some(TransmitSlot(&mut self.sent))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = self.mtu + 14;
        capabilities
    }
}

struct ReceivedFrame(Vec<u8>);
struct TransmitSlot<'a>(&'a mut VecDeque<Vec<u8>>);

impl phy::RxToken for ReceivedFrame {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, take: F) -> R {
        take(&self.0)
    }
}

impl phy::TxToken for TransmitSlot<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, fill: F) -> R {
        let mut frame = vec![0; length];
        let result = fill(&mut frame);
        self.0.push_back(frame);
        result
    }
}
