//! A host on an Ethernet whose network is smoltcp's: talks, one after the other and several at once, and services for
//! the talks of others. Its time is the simulation's.

use super::service::Services;
use super::talk::{Plan, Talk, Verdict};
use crate::SECOND_NS;
use quaject_test_support::random::Random;
use smoltcp::iface::{Config, Interface, SocketSet};
use smoltcp::phy::{self, Device, DeviceCapabilities, Medium};
use smoltcp::time::Instant;
use smoltcp::wire::{EthernetAddress, IpCidr, Ipv4Address};
use std::collections::{BTreeMap, VecDeque};

const BROADCAST: [u8; 6] = [0xff; 6];
/// Where the ports of talks begin; a few, so that they come round again while the last talk is still remembered.
const FIRST_PORT: u16 = 20_000;

/// What has become of talks of one kind.
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

/// What a host is.
pub(crate) struct Settings {
    pub(crate) station: [u8; 6],
    pub(crate) addresses: Vec<(Ipv4Address, u8)>,
    pub(crate) gateway: Option<Ipv4Address>,
    /// Bytes of a packet.
    pub(crate) mtu: usize,
    /// Ports for its talks.
    pub(crate) ports: u16,
    pub(crate) serves: Serves,
}

/// Whether a host has services for others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Serves {
    Nobody,
    Others,
}

pub(crate) struct Host {
    station: [u8; 6],
    interface: Interface,
    sockets: SocketSet<'static>,
    frames: Frames,
    services: Services,
    pub(crate) talks: Vec<Talk>,
    ports: u16,
    pub(crate) tallies: Tallies,
    /// When it goes on by itself.
    pub(crate) due_ns: Option<i64>,
}

/// What lies between the network and the wires.
struct Frames {
    mtu: usize,
    came: VecDeque<Vec<u8>>,
    /// The one that the network takes now.
    next: Option<Vec<u8>>,
    sent: VecDeque<Vec<u8>>,
}

fn instant(now_ns: i64) -> Instant {
    Instant::from_micros(now_ns / 1_000)
}

impl Host {
    pub(crate) fn new(settings: Settings, seed: u64) -> Host {
        let Settings { station, addresses, gateway, mtu, ports, serves } = settings;
        let mut frames = Frames { mtu, came: VecDeque::new(), next: None, sent: VecDeque::new() };
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
        let services = match serves {
            Serves::Nobody => Services::None,
            Serves::Others => Services::open(&mut sockets),
        };
        let (talks, tallies) = (Vec::new(), BTreeMap::new());
        Host { station, interface, sockets, frames, services, talks, ports, tallies, due_ns: Some(0) }
    }

    /// Whether a frame is for it.
    pub(crate) fn takes(&self, frame: &[u8]) -> bool {
        frame.starts_with(&self.station) || frame.starts_with(&BROADCAST)
    }

    pub(crate) fn receive(&mut self, frame: Vec<u8>) {
        self.frames.came.push_back(frame);
    }

    /// A frame that it has sent.
    pub(crate) fn sent(&mut self) -> Option<Vec<u8>> {
        self.frames.sent.pop_front()
    }

    /// How many talks are under way.
    pub(crate) fn busy(&self) -> usize {
        self.talks.iter().filter(|talk| talk.verdict.is_none()).count()
    }

    pub(crate) fn begin(&mut self, plan: Plan, random: &mut Random, now_ns: i64) {
        let mut port = || FIRST_PORT + random.below(u64::from(self.ports)) as u16;
        let mut local = port();
        while self.talks.iter().any(|talk| talk.local == local) {
            local = port();
        }
        self.talks.push(Talk::begin(plan, local, &mut self.interface, &mut self.sockets, now_ns));
        self.due_ns = Some(now_ns);
    }

    /// Goes on, if there is something to go on with; whether there was.
    pub(crate) fn step(&mut self, now_ns: i64) -> bool {
        if self.frames.came.is_empty() && self.due_ns.is_none_or(|due_ns| due_ns > now_ns) {
            return false;
        }
        while let Some(frame) = self.frames.came.pop_front() {
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
            for talk in &mut self.talks {
                moves |= talk.step(&mut self.sockets, now_ns);
            }
        }
        for talk in self.talks.extract_if(.., |talk| talk.over) {
            talk.end(&mut self.sockets);
            let tally = self.tallies.entry(talk.kind).or_default();
            tally.bytes += talk.bytes();
            tally.longest_ns = tally.longest_ns.max(now_ns - talk.begun_ns);
            *match talk.verdict.expect("it is over") {
                Verdict::Done => &mut tally.done,
                Verdict::Dismissed => &mut tally.dismissed,
                Verdict::Reset => &mut tally.reset,
                Verdict::TimedOut => &mut tally.timed_out,
                Verdict::Broken => &mut tally.broken,
            } += 1;
        }
        let poll_ns = self.interface.poll_at(instant(now_ns), &self.sockets).map(|at| at.total_micros() * 1_000);
        // What cannot be done now, because a neighbour is not known, is tried again soon.
        let poll_ns = poll_ns.map(|poll_ns| poll_ns.max(now_ns + SECOND_NS / 1_000));
        let talks = self.talks.iter().filter_map(|talk| talk.due_ns(now_ns));
        self.due_ns = talks.chain(self.services.due_ns()).chain(poll_ns).min();
        true
    }
}

impl Device for Frames {
    type RxToken<'a> = Came;
    type TxToken<'a> = Sent<'a>;

    fn receive(&mut self, _: Instant) -> Option<(Came, Sent<'_>)> {
        let frame = self.next.take()?;
        Some((Came(frame), Sent(&mut self.sent)))
    }

    fn transmit(&mut self, _: Instant) -> Option<Sent<'_>> {
        Some(Sent(&mut self.sent))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = self.mtu + 14;
        capabilities
    }
}

struct Came(Vec<u8>);
struct Sent<'a>(&'a mut VecDeque<Vec<u8>>);

impl phy::RxToken for Came {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, take: F) -> R {
        take(&self.0)
    }
}

impl phy::TxToken for Sent<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, fill: F) -> R {
        let mut frame = vec![0; length];
        let result = fill(&mut frame);
        self.0.push_back(frame);
        result
    }
}
