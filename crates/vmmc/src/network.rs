//! Cards and the crossbar between them, in virtual time. Knows no instruction and no register.
//!
//! A packet whose last byte leaves a card in cycle t is complete at its receiver `latency_cycles` later, or later if
//! the receiver's link is busy with an earlier one. So cards can run for less than that time without packets of each
//! other (conservative simulation: Chandy and Misra 1979): the network runs them one after the other in windows of that
//! length, and then hands over packets in the order of the cycles in which they were sent. Runs are the same however
//! they are divided into calls.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::card::{Card, link_cycles};
use crate::link::Image;
use crate::processor::{MAX_OVERRUN_CYCLES, Processor};

/// What a network is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetworkOptions {
    /// The bytes of memory of each host.
    pub host_memory_bytes: usize,
    /// The cycles through the crossbar. The papers do not state it; at least [`MIN_LATENCY_CYCLES`].
    pub latency_cycles: u64,
    /// What the network does to packets.
    pub faults: NetworkFaults,
    /// Chooses the packets that faults concern.
    pub seed: u64,
}

/// The shortest latency that can be simulated.
pub const MIN_LATENCY_CYCLES: u64 = MAX_OVERRUN_CYCLES + 1;

impl Default for NetworkOptions {
    /// 1 MB of host memory, 17 cycles (half a microsecond), no faults.
    fn default() -> Self {
        NetworkOptions { host_memory_bytes: 1 << 20, latency_cycles: 17, faults: NetworkFaults::default(), seed: 0 }
    }
}

/// How many of a thousand packets have each fault. Faults are independent of each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetworkFaults {
    /// Never arrive.
    pub lost_per_mille: u32,
    /// Arrive twice.
    pub duplicated_per_mille: u32,
    /// Arrive up to `max_delay_cycles` later, so that later ones may overtake them.
    pub delayed_per_mille: u32,
    /// The longest delay.
    pub max_delay_cycles: u64,
}

/// A packet in the crossbar, ordered by time, then by sender and number so that the order is the same in every run.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Transit {
    cycle: u64,
    sender: usize,
    number: u64,
    receiver: usize,
    bytes: Vec<u8>,
}

/// Random numbers (SplitMix64, Steele, Lea and Flood 2014). Our own, as runs must not change with a library's version.
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn happens(&mut self, per_mille: u32) -> bool {
        self.next() % 1000 < u64::from(per_mille)
    }
}

/// A crossbar port of a node.
struct Port {
    /// Faults of the packets that the node sends.
    random: SplitMix,
    /// The number of packets it has sent, duplicates included.
    sent: u64,
    /// When the link to the node becomes free.
    free: u64,
}

/// Cards that a crossbar connects.
pub struct Network<P> {
    cards: Vec<Card<P>>,
    ports: Vec<Port>,
    transit: BinaryHeap<Reverse<Transit>>,
    options: NetworkOptions,
    cycle: u64,
    misrouted_packets: u64,
}

impl<P: Processor + Default> Network<P> {
    /// A network of one card for each image, whose firmware is the function `entry` of the image.
    ///
    /// # Errors
    /// When an image has no such symbol, or the latency is less than [`MIN_LATENCY_CYCLES`].
    pub fn new(images: &[&Image], entry: &str, options: NetworkOptions) -> Result<Network<P>, String> {
        if options.latency_cycles < MIN_LATENCY_CYCLES {
            return Err(format!("a latency of less than {MIN_LATENCY_CYCLES} cycles cannot be simulated"));
        }
        let mut cards = Vec::new();
        for (node, image) in images.iter().enumerate() {
            let Some(&address) = image.symbols.get(entry) else {
                return Err(format!("the firmware of node {node} has no symbol `{entry}`"));
            };
            let nodes = images.len() as u32;
            cards.push(Card::new(P::default(), image, address, node as u32, nodes, options.host_memory_bytes));
        }
        let ports = (0..images.len() as u64)
            .map(|node| Port { random: SplitMix(options.seed.wrapping_add(node << 32)), sent: 0, free: 0 })
            .collect();
        let (transit, cycle, misrouted_packets) = (BinaryHeap::new(), 0, 0);
        Ok(Network { cards, ports, transit, options, cycle, misrouted_packets })
    }

    /// The cycle up to which all nodes have run.
    pub fn cycle(&self) -> u64 {
        self.cycle
    }

    /// The card of each node.
    pub fn cards(&self) -> &[Card<P>] {
        &self.cards
    }

    /// The card of each node, for what its host does at cycle [`Network::cycle`].
    pub fn cards_mut(&mut self) -> &mut [Card<P>] {
        &mut self.cards
    }

    /// Packets for nodes that there are not.
    pub fn misrouted_packets(&self) -> u64 {
        self.misrouted_packets
    }

    /// Runs all nodes to a cycle.
    pub fn run_to(&mut self, end: u64) {
        while self.cycle < end {
            // Before `start` no node does anything: nothing is sent before, nor complete before the window's end.
            let start = self.next_activity().max(self.cycle);
            let window = self.options.latency_cycles - MAX_OVERRUN_CYCLES;
            self.cycle = start.saturating_add(window).min(end);
            for sender in 0..self.cards.len() {
                self.cards[sender].run_to(self.cycle);
                for packet in self.cards[sender].take_sent() {
                    self.accept(sender, packet.cycle, packet.node, packet.bytes);
                }
            }
            self.deliver();
        }
    }

    fn next_activity(&self) -> u64 {
        let cards = self.cards.iter().map(Card::next_activity).min().unwrap_or(u64::MAX);
        cards.min(self.transit.peek().map_or(u64::MAX, |Reverse(packet)| packet.cycle))
    }

    /// Decides what happens to a packet. Takes the same number of random numbers for each.
    fn accept(&mut self, sender: usize, cycle: u64, receiver: u32, bytes: Vec<u8>) {
        let faults = self.options.faults;
        let random = &mut self.ports[sender].random;
        let is_lost = random.happens(faults.lost_per_mille);
        let is_duplicated = random.happens(faults.duplicated_per_mille);
        let mut delay = || {
            let is_delayed = random.happens(faults.delayed_per_mille);
            let cycles = random.next() % faults.max_delay_cycles.saturating_add(1).max(1);
            if is_delayed { cycles } else { 0 }
        };
        let delays = [delay(), delay()];
        let receiver = receiver as usize;
        if receiver >= self.cards.len() {
            self.misrouted_packets += 1;
            return;
        }
        let copies = if is_lost { 0 } else { 1 + usize::from(is_duplicated) };
        for delay in &delays[..copies] {
            let number = self.ports[sender].sent;
            self.ports[sender].sent += 1;
            let transit = Transit { cycle: cycle + delay, sender, number, receiver, bytes: bytes.clone() };
            self.transit.push(Reverse(transit));
        }
    }

    /// Hands over the packets that have reached the receiver's port.
    fn deliver(&mut self) {
        while self.transit.peek().is_some_and(|Reverse(packet)| packet.cycle <= self.cycle) {
            let Some(Reverse(packet)) = self.transit.pop() else { return };
            let port = &mut self.ports[packet.receiver];
            let duration = link_cycles(packet.bytes.len());
            port.free = (packet.cycle + self.options.latency_cycles).max(port.free + duration);
            self.cards[packet.receiver].announce(port.free, packet.bytes);
        }
    }
}
