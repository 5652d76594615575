//! The MQTT broker (examples/mqtt) and eight clients, whose connections are segmented, delayed, broken between any two
//! bytes or silenced: QoS 0, 1 and 2, sessions that outlive connections, retained messages, wills, and changing
//! subscriptions. The network is unimpaired at intervals; after each of them every message that had to arrive has
//! arrived.

mod client;
mod ledger;
mod packets;
mod takeover;

use crate::node::{Node, compile};
use crate::stream::{Channels, Delivery, GOOD, Impairments, LinkId, Network, ProgramRequest};
use crate::{MILLISECOND_NS, SECOND_NS, SimulationResult, Trace, wanted_ns};
use client::{Client, Context, State};
use ledger::Ledger;
use quaject_test_support::random::Random;
use std::collections::{BTreeMap, BTreeSet};

const CHANNELS: Channels =
    Channels { events: "eventC", requests: "sendC", chunk: 4096, instances: 36, hears_sent: true };
/// The time under load between two checks, and the time in which all messages must then arrive.
const LOAD_NS: i64 = 110 * SECOND_NS;
const DRAIN_NS: i64 = 40 * SECOND_NS;
/// How long the broker waits for CONNECT.
const CONNECT_TIMEOUT_NS: i64 = 10 * SECOND_NS;
/// The clients; the last one only reads retained messages.
const CLIENTS: usize = 8;
const PROBE: usize = CLIENTS;

#[derive(Default, Debug, Clone, PartialEq, Eq)]
struct Counts {
    connected: u64,
    /// Connections that the broker closed at the keep-alive timeout.
    silent: u64,
    /// Clients that connected while the broker had an older connection of theirs.
    replaced: u64,
    published: [u64; 3],
    /// Connections that ended without DISCONNECT, so that their will is published, and with it.
    wills: u64,
    disconnected: u64,
    received: ledger::Received,
}

/// A connection as the broker has to treat it.
struct Connection {
    client: usize,
    accepted: bool,
    keep_alive_s: u16,
    will: Option<usize>,
    /// The number of bytes that the client has sent including its DISCONNECT.
    disconnects_at: Option<u64>,
}

struct Simulation<'p> {
    now_ns: i64,
    node: Node<'p>,
    network: Network,
    clients: Vec<Client>,
    connections: BTreeMap<LinkId, Connection>,
    /// By client: whether the broker has a session of it.
    has_session: Vec<bool>,
    ledger: Ledger,
    random: Random,
    counts: Counts,
    trace: Trace,
    /// Whether clients only complete what is in progress.
    is_draining: bool,
}

fn clients() -> Vec<Client> {
    let mut clients = vec![
        Client::new(0, false, 5, &[("#", 2, true)]),
        Client::new(1, false, 4, &[("t/+/a", 1, true), ("t/c2/#", 2, false)]),
        Client::new(2, false, 0, &[("t/#", 2, true), ("will/+", 2, true), ("k/+", 1, false)]),
        Client::new(3, false, 3, &[("t/c0/#", 2, true), ("t/+/b", 0, true), ("t/c1/a", 1, true), ("k/+", 2, false)]),
        Client::new(4, false, 20, &[("+/+/a", 0, true), ("k/#", 2, false)]),
        Client::new(5, false, 4, &[("t/c4/b", 1, true), ("t/+/a", 1, false)]),
        Client::new(6, true, 3, &[("t/#", 1, true)]),
        Client::new(7, true, 6, &[("#", 2, true)]),
        Client::new(PROBE, true, 0, &[("k/#", 2, true)]),
    ];
    clients[PROBE].next_ns = i64::MAX;
    clients
}

impl Simulation<'_> {
    fn run_to_quiescence(&mut self) {
        loop {
            let mut moved = false;
            self.node.run(self.now_ns);
            while let Some((channel, message)) = self.node.next_output() {
                moved = true;
                self.trace.note(self.now_ns, channel, &message);
                if let Some(request) = self.network.execute(&mut self.node, &message, self.now_ns) {
                    self.handle_request(&request);
                }
            }
            while self.network.deliver_event(&mut self.node, self.now_ns) {
                moved = true;
            }
            while let Some((link, received)) = self.network.next_delivery(self.now_ns) {
                moved = true;
                let number = self.clients.iter().position(|client| client.link == link);
                let number = number.expect("a client has one connection");
                let (client, mut context) = self.client_and_context(number);
                match received {
                    Delivery::Bytes(bytes) => client.receive(&mut context, &bytes),
                    Delivery::Closed => {
                        context.network.close(link, context.now_ns);
                        client.state = State::Disconnected;
                        self.schedule_reconnect(number);
                    }
                }
            }
            for number in 0..self.clients.len() {
                if self.clients[number].next_ns <= self.now_ns {
                    moved = true;
                    self.act(number);
                }
            }
            if !moved {
                return;
            }
        }
    }

    fn client_and_context(&mut self, number: usize) -> (&mut Client, Context<'_>) {
        let Simulation { clients, network, ledger, now_ns, .. } = self;
        (&mut clients[number], Context { network, ledger, now_ns: *now_ns })
    }

    /// The broker has sent bytes on a connection, or has closed it.
    fn handle_request(&mut self, request: &ProgramRequest) {
        let Some(bytes) = &request.bytes else { return self.handle_close(request) };
        if bytes[0] != 0x20 {
            return;
        }
        assert_eq!((bytes.len(), bytes[3]), (4, 0), "a client is not let in: {bytes:?}");
        let connection = self.connections.get_mut(&request.id).expect("the broker has it");
        let (client, clean) = (connection.client, self.clients[connection.client].clean);
        assert!(!connection.accepted, "it is let in twice");
        connection.accepted = true;
        let present = bytes[2] == 1;
        assert_eq!(present, self.has_session[client] && !clean, "whether there is a session of client {client}");
        self.has_session[client] = !clean;
        self.counts.connected += 1;
    }

    fn handle_close(&mut self, request: &ProgramRequest) {
        let connection = self.connections.remove(&request.id).expect("the broker has it");
        let has_disconnected = connection.disconnects_at.is_some_and(|bytes| request.delivered >= bytes);
        let replaced = self.connections.values().any(|other| other.client == connection.client);
        let silent_ns = self.now_ns - request.delivered_ns;
        let keep_alive_ns = i64::from(connection.keep_alive_s) * SECOND_NS;
        let timed_out = connection.accepted && keep_alive_ns > 0 && silent_ns == keep_alive_ns * 3 / 2;
        self.counts.silent += u64::from(timed_out);
        self.counts.replaced += u64::from(connection.accepted && replaced);
        self.counts.disconnected += u64::from(has_disconnected && connection.accepted);
        let Some(will) = connection.will else { return };
        let executed = connection.accepted && !has_disconnected;
        self.counts.wills += u64::from(executed);
        let (topic, qos) = (self.ledger.get(will).topic.clone(), self.ledger.get(will).qos);
        let required = executed.then(|| self.required_receivers(&topic, qos));
        self.ledger.publish_will(will, required);
    }

    /// The clients that must receive a message that is published now.
    fn required_receivers(&self, topic: &str, qos: u8) -> BTreeSet<usize> {
        self.clients.iter().filter(|client| client.must_receive(topic, qos)).map(|client| client.number).collect()
    }

    /// A client reconnects after a random time.
    fn schedule_reconnect(&mut self, number: usize) {
        let rests_ms = if self.is_draining { [0, 100, 500, 1_000] } else { [0, 500, 3_000, 15_000] };
        let max_ms = rests_ms[self.random.below(4) as usize];
        let rest_ms = self.random.below(max_ms + 1) as i64;
        self.clients[number].next_ns =
            if number == PROBE { i64::MAX } else { self.now_ns + 1 + rest_ms * MILLISECOND_NS };
    }

    /// The next action of a client.
    fn act(&mut self, number: usize) {
        self.clients[number].next_ns = self.now_ns + 1 + self.random.below(2_000 * MILLISECOND_NS as u64) as i64;
        if self.clients[number].state == State::Disconnected {
            return self.connect(number);
        }
        let (client, mut context) = self.client_and_context(number);
        if client.check_keep_alive(&mut context) {
            return self.schedule_reconnect(number);
        }
        if self.is_draining || self.clients[number].state != State::Connected {
            return;
        }
        match self.random.below(40) {
            0 => self.disconnect(number),
            1 => {
                let (client, mut context) = self.client_and_context(number);
                client.abort(&mut context);
                self.schedule_reconnect(number);
            }
            2 | 3 => {
                let (client, mut context) = self.client_and_context(number);
                client.toggle_subscription(&mut context);
            }
            4..11 => self.publish(number),
            _ => {}
        }
    }

    fn connect(&mut self, number: usize) {
        let has_will = number != PROBE && self.random.below(4) > 0;
        let qos = self.random.below(3) as u8;
        let will = has_will.then(|| self.ledger.will(&format!("will/c{number}"), qos, 30));
        let text = will.map(|will| {
            let publication = self.ledger.get(will);
            (publication.topic.clone(), publication.content.clone(), publication.qos)
        });
        let (client, mut context) = self.client_and_context(number);
        client.connect(&mut context, text.as_ref());
        let (link, keep_alive_s) = (client.link, client.keep_alive_s);
        let connection = Connection { client: number, accepted: false, keep_alive_s, will, disconnects_at: None };
        self.connections.insert(link, connection);
    }

    fn disconnect(&mut self, number: usize) {
        let (client, mut context) = self.client_and_context(number);
        let (link, request) = (client.link, client.disconnect(&mut context));
        if let Some(connection) = self.connections.get_mut(&link) {
            connection.disconnects_at = Some(request);
        }
        self.schedule_reconnect(number);
    }

    fn publish(&mut self, number: usize) {
        if !self.clients[number].may_publish() {
            return;
        }
        for _ in 0..1 + self.random.below(3) {
            // The retained message is the last published one if none can be lost, or be duplicated after a later one:
            // MQTT guarantees the order of messages of one QoS.
            let keeps = !self.clients[number].clean && self.random.below(12) == 0;
            let qos = if keeps { 1 + number as u8 % 2 } else { self.random.below(3) as u8 };
            let topic = match self.random.below(4) {
                _ if keeps => format!("k/c{number}"),
                0 => format!("t/c{number}/a"),
                1 => format!("t/c{number}/b"),
                2 => format!("t/c{number}/a/x"),
                _ => format!("t/c{number}"),
            };
            let any = [100, 1_000, 8_000].map(|max| self.random.below(max) as usize);
            let size = [any[0], any[0], any[0], any[1], any[1], any[2]][self.random.below(6) as usize];
            let required = self.required_receivers(&topic, qos);
            let publication = self.ledger.publish(&topic, qos, keeps, size, required);
            self.counts.published[usize::from(qos)] += 1;
            let (client, mut context) = self.client_and_context(number);
            client.publish(&mut context, publication);
        }
    }

    /// The broker has closed connections that were silent for too long, and those that a later connection replaces.
    fn assert_connections(&self) {
        let mut served = [false; CLIENTS + 1];
        for connection in self.connections.values().filter(|connection| connection.accepted) {
            let other = std::mem::replace(&mut served[connection.client], true);
            assert!(!other, "two connections of client {}", connection.client);
        }
        for (link, connection) in &self.connections {
            let Some(delivered_ns) = self.network.delivered_ns(*link) else { continue };
            let silent_ns = self.now_ns - delivered_ns;
            let max_ns = match (connection.accepted, connection.keep_alive_s) {
                (true, 0) => continue,
                (true, keep_alive_s) => i64::from(keep_alive_s) * SECOND_NS * 3 / 2,
                (false, _) => CONNECT_TIMEOUT_NS,
            };
            assert!(
                silent_ns <= max_ns,
                "client {} has been silent for {silent_ns} ns, and its connection is there",
                connection.client
            );
        }
    }

    fn run_until(&mut self, end_ns: i64) {
        while self.now_ns < end_ns {
            self.run_to_quiescence();
            self.assert_connections();
            let clients_ns = self.clients.iter().map(|client| client.next_ns).min().expect("there are some");
            let deadline_ns = self.node.deadline_ns.unwrap_or(i64::MAX);
            let next_ns = self.network.next_ns(self.now_ns).unwrap_or(i64::MAX).min(clients_ns).min(deadline_ns);
            assert!(next_ns > self.now_ns, "the clock does not advance");
            self.now_ns = next_ns.min(end_ns);
        }
    }

    /// The network is unimpaired and no client starts anything: all messages that had to arrive arrive.
    fn drain_and_check(&mut self) {
        let impairments = std::mem::replace(&mut self.network.impairments, GOOD);
        self.network.cancel_failures();
        self.is_draining = true;
        self.run_until(self.now_ns + DRAIN_NS);
        for client in &self.clients[..CLIENTS] {
            assert!(client.is_idle(), "after {} s: {}", self.now_ns / SECOND_NS, client.state_text());
        }
        self.ledger.check_complete();
        // Read the retained messages.
        self.clients[PROBE].retained.clear();
        self.connect(PROBE);
        self.run_until(self.now_ns + SECOND_NS);
        assert_eq!(self.clients[PROBE].retained, self.ledger.retained(), "retained messages");
        self.disconnect(PROBE);
        self.run_until(self.now_ns + SECOND_NS);
        self.is_draining = false;
        self.network.impairments = impairments;
    }

    /// All clients disconnect with clean sessions, and no message stays retained. Returns the broker's free objects.
    fn clear(&mut self) -> u32 {
        self.network.impairments = GOOD;
        self.is_draining = true;
        for number in 0..CLIENTS {
            self.clients[number].clean = true;
            self.disconnect(number);
        }
        self.run_until(self.now_ns + 5 * SECOND_NS);
        for topic in self.ledger.retained().into_keys() {
            let (client, mut context) = self.client_and_context(0);
            client.clear(&mut context, &topic);
        }
        self.run_until(self.now_ns + SECOND_NS);
        for number in 0..CLIENTS {
            self.disconnect(number);
            self.clients[number].next_ns = i64::MAX;
        }
        self.run_until(self.now_ns + SECOND_NS);
        self.node.free_objects()
    }
}

/// Runs the simulation on this network.
fn simulate(impairments: Impairments, seed: u64, length_ns: i64) -> (Counts, SimulationResult) {
    let program = compile("examples/mqtt/broker.esp");
    let node = Node::new(&program);
    let network = Network::new(&node, &CHANNELS, impairments, seed + 100);
    let all_free = node.free_objects();
    let mut simulation = Simulation {
        now_ns: 0,
        node,
        network,
        clients: clients(),
        connections: BTreeMap::new(),
        has_session: vec![false; CLIENTS + 1],
        ledger: Ledger::default(),
        random: Random(seed),
        counts: Counts::default(),
        trace: Trace::default(),
        is_draining: false,
    };
    while simulation.now_ns < length_ns {
        simulation.run_until(simulation.now_ns + LOAD_NS);
        simulation.drain_and_check();
        // Only retained messages and wills are left.
        let free = simulation.node.free_objects();
        let used = all_free - free;
        assert!(used as usize <= 2 * CLIENTS, "after {} s: {used} objects are taken", simulation.now_ns / SECOND_NS);
    }
    assert_eq!(simulation.clear(), all_free, "the broker has not released all objects of disconnected clients");
    simulation.counts.received = simulation.ledger.received;
    (
        simulation.counts,
        SimulationResult { trace: simulation.trace.digest(), impairment_counts: simulation.network.impairment_counts },
    )
}

fn run(name: &str, impairments: Impairments, seed: u64) -> (Counts, SimulationResult) {
    let begun = std::time::Instant::now();
    let (counts, result) = simulate(impairments, seed, wanted_ns());
    let hours = wanted_ns() as f64 / 3_600e9;
    println!("mqtt, {name}: {hours:.2} h in {:.1} s: {counts:?} {result:?}", begun.elapsed().as_secs_f64());
    let received = counts.received;
    let least = [received.by_qos, counts.published].into_iter().flatten();
    let least = least.chain([received.retained, received.wills, counts.wills, counts.disconnected]).min();
    assert!(least.is_some_and(|least| least > 0), "{name}: {counts:?}");
    (counts, result)
}

#[test]
fn a_good_network() {
    let (counts, result) = run("a good network", GOOD, 1);
    assert!(result.impairment_counts.broken == 0 && counts.silent == 0, "{counts:?}");
}

#[test]
fn a_network_that_breaks_connections() {
    let impairments = Impairments {
        delay_ns: (MILLISECOND_NS, 80 * MILLISECOND_NS),
        stalls: 200,
        stall_ns: 2 * SECOND_NS,
        max_lifetime_ns: 60 * SECOND_NS,
        silent: 3,
        ..GOOD
    };
    let (counts, result) = run("a network that breaks connections", impairments, 2);
    let impairment_counts = result.impairment_counts;
    let least =
        [impairment_counts.broken, impairment_counts.silenced, impairment_counts.stalled, impairment_counts.cut_short];
    assert!(least.into_iter().min() > Some(0), "{impairment_counts:?}");
    assert!(counts.silent > 0 && counts.replaced > 0 && counts.received.duplicate > 0, "{counts:?}");
}

#[test]
fn a_network_that_is_cut() {
    let impairments = Impairments {
        delay_ns: (MILLISECOND_NS, 20 * MILLISECOND_NS),
        max_lifetime_ns: 200 * SECOND_NS,
        silent: 2,
        outages_ns: Some((50 * SECOND_NS, 15 * SECOND_NS)),
        ..GOOD
    };
    let (counts, _) = run("a network that is cut", impairments, 3);
    assert!(counts.silent > 0 && counts.received.duplicate > 0, "{counts:?}");
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let impairments =
        Impairments { delay_ns: (1, 80 * MILLISECOND_NS), max_lifetime_ns: 30 * SECOND_NS, silent: 3, ..GOOD };
    let trace = |seed| simulate(impairments, seed, 60 * SECOND_NS).1.trace;
    assert_eq!(trace(4), trace(4));
    assert_ne!(trace(4), trace(5));
}
