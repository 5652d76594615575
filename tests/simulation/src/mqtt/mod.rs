//! The MQTT broker (examples/mqtt) and eight clients, whose connections are cut to pieces, held up, broken between any two bytes or
//! left in silence: QoS 0, 1 and 2, sessions that outlive connections, messages that topics keep, wills, and subscriptions
//! that come and go. Every so often the network is good for a while, and then all that had to arrive has arrived.

mod client;
mod farewell;
mod ledger;
mod packets;

use crate::node::{Node, compile};
use crate::stream::{Channels, GOOD, Heard, LinkId, Network, Said, Weather};
use crate::{Ending, MILLISECOND_NS, SECOND_NS, Trace, wanted_ns};
use client::{Client, State, Surroundings};
use ledger::Ledger;
use quaject_test_support::random::Random;
use std::collections::{BTreeMap, BTreeSet};

const CHANNELS: Channels =
    Channels { events: "eventC", requests: "sendC", chunk: 4096, instances: 36, hears_sent: true };
/// How long it goes on until all has to arrive, and how long that may take.
const STORM_NS: i64 = 110 * SECOND_NS;
const CALM_NS: i64 = 40 * SECOND_NS;
/// How long the broker waits for CONNECT.
const GREETING_NS: i64 = 10 * SECOND_NS;
/// The clients; the last one only looks what topics keep.
const CLIENTS: usize = 8;
const PROBE: usize = CLIENTS;

#[derive(Default, Debug, Clone, PartialEq, Eq)]
struct Counts {
    connected: u64,
    /// Connections that the broker closed because nothing came.
    silent: u64,
    /// Clients that came while the broker still had an older connection of theirs.
    replaced: u64,
    published: [u64; 3],
    /// Connections that ended without a word, so that their will is published, and with one.
    wills: u64,
    farewells: u64,
    heard: ledger::Heard,
}

/// What there is to know of a connection.
struct Connection {
    client: usize,
    accepted: bool,
    keep_alive_s: u16,
    will: Option<usize>,
    /// How many bytes have been said when the client has taken its leave.
    leaves_at: Option<u64>,
}

struct Simulation<'p> {
    now_ns: i64,
    node: Node<'p>,
    network: Network,
    clients: Vec<Client>,
    connections: BTreeMap<LinkId, Connection>,
    /// By client: whether the broker keeps a session for it.
    has_session: Vec<bool>,
    ledger: Ledger,
    random: Random,
    counts: Counts,
    trace: Trace,
    /// Whether all clients only complete what is in progress.
    calm: bool,
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
    fn settle(&mut self) {
        loop {
            let mut moved = false;
            self.node.run(self.now_ns);
            while let Some((channel, message)) = self.node.heard() {
                moved = true;
                self.trace.note(self.now_ns, channel, &message);
                if let Some(said) = self.network.carry(&mut self.node, &message, self.now_ns) {
                    self.broker_said(&said);
                }
            }
            while self.network.reach(&mut self.node, self.now_ns) {
                moved = true;
            }
            while let Some((link, heard)) = self.network.hear(self.now_ns) {
                moved = true;
                let number = self.clients.iter().position(|client| client.link == link);
                let number = number.expect("who has another connection has given this one up");
                let (client, mut around) = self.parts(number);
                match heard {
                    Heard::Bytes(bytes) => client.hear(&mut around, &bytes),
                    Heard::Ended => {
                        around.network.hang_up(link, around.now_ns);
                        client.state = State::Away;
                        self.rest(number);
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

    fn parts(&mut self, number: usize) -> (&mut Client, Surroundings<'_>) {
        let Simulation { clients, network, ledger, now_ns, .. } = self;
        (&mut clients[number], Surroundings { network, ledger, now_ns: *now_ns })
    }

    /// The broker has said something on a connection, or has closed it.
    fn broker_said(&mut self, said: &Said) {
        let Some(bytes) = &said.bytes else { return self.closed(said) };
        if bytes[0] != 0x20 {
            return;
        }
        assert_eq!((bytes.len(), bytes[3]), (4, 0), "a client is not let in: {bytes:?}");
        let connection = self.connections.get_mut(&said.id).expect("the broker has it");
        let (client, clean) = (connection.client, self.clients[connection.client].clean);
        assert!(!connection.accepted, "it is let in twice");
        connection.accepted = true;
        let present = bytes[2] == 1;
        assert_eq!(present, self.has_session[client] && !clean, "whether there is a session of client {client}");
        self.has_session[client] = !clean;
        self.counts.connected += 1;
    }

    fn closed(&mut self, said: &Said) {
        let connection = self.connections.remove(&said.id).expect("the broker has it");
        let left = connection.leaves_at.is_some_and(|bytes| said.reached >= bytes);
        let replaced = self.connections.values().any(|other| other.client == connection.client);
        let silent_ns = self.now_ns - said.reached_ns;
        let keep_alive_ns = i64::from(connection.keep_alive_s) * SECOND_NS;
        let rang = connection.accepted && keep_alive_ns > 0 && silent_ns == keep_alive_ns * 3 / 2;
        self.counts.silent += u64::from(rang);
        self.counts.replaced += u64::from(connection.accepted && replaced);
        self.counts.farewells += u64::from(left && connection.accepted);
        let Some(will) = connection.will else { return };
        let executed = connection.accepted && !left;
        self.counts.wills += u64::from(executed);
        let (topic, qos) = (self.ledger.get(will).topic.clone(), self.ledger.get(will).qos);
        let owed = executed.then(|| self.owed(&topic, qos));
        self.ledger.execute(will, owed);
    }

    /// Who must hear what is published now.
    fn owed(&self, topic: &str, qos: u8) -> BTreeSet<usize> {
        self.clients.iter().filter(|client| client.is_owed(topic, qos)).map(|client| client.number).collect()
    }

    /// A client is away for a while.
    fn rest(&mut self, number: usize) {
        let rests_ms = if self.calm { [0, 100, 500, 1_000] } else { [0, 500, 3_000, 15_000] };
        let most_ms = rests_ms[self.random.below(4) as usize];
        let rest_ms = self.random.below(most_ms + 1) as i64;
        self.clients[number].next_ns =
            if number == PROBE { i64::MAX } else { self.now_ns + 1 + rest_ms * MILLISECOND_NS };
    }

    /// A client does something by itself.
    fn act(&mut self, number: usize) {
        self.clients[number].next_ns = self.now_ns + 1 + self.random.below(2_000 * MILLISECOND_NS as u64) as i64;
        if self.clients[number].state == State::Away {
            return self.connect(number);
        }
        let (client, mut around) = self.parts(number);
        if client.watch(&mut around) {
            return self.rest(number);
        }
        if self.calm || self.clients[number].state != State::Online {
            return;
        }
        match self.random.below(40) {
            0 => self.disconnect(number),
            1 => {
                let (client, mut around) = self.parts(number);
                client.abandon(&mut around);
                self.rest(number);
            }
            2 | 3 => {
                let (client, mut around) = self.parts(number);
                client.change(&mut around);
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
        let (client, mut around) = self.parts(number);
        client.connect(&mut around, text.as_ref());
        let (link, keep_alive_s) = (client.link, client.keep_alive_s);
        let connection = Connection { client: number, accepted: false, keep_alive_s, will, leaves_at: None };
        self.connections.insert(link, connection);
    }

    fn disconnect(&mut self, number: usize) {
        let (client, mut around) = self.parts(number);
        let (link, said) = (client.link, client.disconnect(&mut around));
        if let Some(connection) = self.connections.get_mut(&link) {
            connection.leaves_at = Some(said);
        }
        self.rest(number);
    }

    fn publish(&mut self, number: usize) {
        if !self.clients[number].may_publish() {
            return;
        }
        for _ in 0..1 + self.random.below(3) {
            // What a topic keeps is what was published last if nothing of it can be lost, nor come again after a later one: order is
            // promised among messages of one QoS.
            let keeps = !self.clients[number].clean && self.random.below(12) == 0;
            let qos = if keeps { 1 + number as u8 % 2 } else { self.random.below(3) as u8 };
            let topic = match self.random.below(4) {
                _ if keeps => format!("k/c{number}"),
                0 => format!("t/c{number}/a"),
                1 => format!("t/c{number}/b"),
                2 => format!("t/c{number}/a/x"),
                _ => format!("t/c{number}"),
            };
            let any = [100, 1_000, 8_000].map(|most| self.random.below(most) as usize);
            let size = [any[0], any[0], any[0], any[1], any[1], any[2]][self.random.below(6) as usize];
            let owed = self.owed(&topic, qos);
            let publication = self.ledger.publish(&topic, qos, keeps, size, owed);
            self.counts.published[usize::from(qos)] += 1;
            let (client, mut around) = self.parts(number);
            client.publish(&mut around, publication);
        }
    }

    /// The broker has ended connections in which nothing has come for too long, and those whose clients have come again.
    fn assert_connections(&self) {
        let mut served = [false; CLIENTS + 1];
        for connection in self.connections.values().filter(|connection| connection.accepted) {
            let other = std::mem::replace(&mut served[connection.client], true);
            assert!(!other, "two connections of client {}", connection.client);
        }
        for (link, connection) in &self.connections {
            let Some(reached_ns) = self.network.reached_ns(*link) else { continue };
            let silent_ns = self.now_ns - reached_ns;
            let most_ns = match (connection.accepted, connection.keep_alive_s) {
                (true, 0) => continue,
                (true, keep_alive_s) => i64::from(keep_alive_s) * SECOND_NS * 3 / 2,
                (false, _) => GREETING_NS,
            };
            assert!(
                silent_ns <= most_ns,
                "client {} has been silent for {silent_ns} ns, and its connection is there",
                connection.client
            );
        }
    }

    fn run_until(&mut self, end_ns: i64) {
        while self.now_ns < end_ns {
            self.settle();
            self.assert_connections();
            let clients_ns = self.clients.iter().map(|client| client.next_ns).min().expect("there are some");
            let deadline_ns = self.node.deadline_ns.unwrap_or(i64::MAX);
            let next_ns = self.network.next_ns(self.now_ns).unwrap_or(i64::MAX).min(clients_ns).min(deadline_ns);
            assert!(next_ns > self.now_ns, "the clock stands still");
            self.now_ns = next_ns.min(end_ns);
        }
    }

    /// The network is good, nobody begins anything, and all that had to arrive has.
    fn come_to_rest(&mut self) {
        let storm = std::mem::replace(&mut self.network.weather, GOOD);
        self.network.spare();
        self.calm = true;
        self.run_until(self.now_ns + CALM_NS);
        for client in &self.clients[..CLIENTS] {
            assert!(client.is_settled(), "after {} s: {}", self.now_ns / SECOND_NS, client.state_in_words());
        }
        self.ledger.settle();
        // What do topics keep?
        self.clients[PROBE].replayed.clear();
        self.connect(PROBE);
        self.run_until(self.now_ns + SECOND_NS);
        assert_eq!(self.clients[PROBE].replayed, self.ledger.kept(), "what topics keep");
        self.disconnect(PROBE);
        self.run_until(self.now_ns + SECOND_NS);
        self.calm = false;
        self.network.weather = storm;
    }

    /// Everybody goes and leaves nothing; how many objects the broker has free then.
    fn clear(&mut self) -> u32 {
        self.network.weather = GOOD;
        self.calm = true;
        for number in 0..CLIENTS {
            self.clients[number].clean = true;
            self.disconnect(number);
        }
        self.run_until(self.now_ns + 5 * SECOND_NS);
        for topic in self.ledger.kept().into_keys() {
            let (client, mut around) = self.parts(0);
            client.clear(&mut around, &topic);
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

/// Runs it all in this weather.
fn simulate(weather: Weather, seed: u64, length_ns: i64) -> (Counts, Ending) {
    let program = compile("examples/mqtt/broker.esp");
    let node = Node::new(&program);
    let network = Network::new(&node, &CHANNELS, weather, seed + 100);
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
        calm: false,
    };
    while simulation.now_ns < length_ns {
        simulation.run_until(simulation.now_ns + STORM_NS);
        simulation.come_to_rest();
        // Nobody is owed anything: there are what topics keep, and wills.
        let free = simulation.node.free_objects();
        let used = all_free - free;
        assert!(used as usize <= 2 * CLIENTS, "after {} s: {used} objects are taken", simulation.now_ns / SECOND_NS);
    }
    assert_eq!(simulation.clear(), all_free, "the broker keeps something of clients that are gone");
    simulation.counts.heard = simulation.ledger.heard;
    (simulation.counts, Ending { trace: simulation.trace.end(), sufferings: simulation.network.sufferings })
}

fn run(name: &str, weather: Weather, seed: u64) -> (Counts, Ending) {
    let begun = std::time::Instant::now();
    let (counts, ending) = simulate(weather, seed, wanted_ns());
    let hours = wanted_ns() as f64 / 3_600e9;
    println!("mqtt, {name}: {hours:.2} h in {:.1} s: {counts:?} {ending:?}", begun.elapsed().as_secs_f64());
    let heard = counts.heard;
    let least = [heard.by_qos, counts.published].into_iter().flatten();
    let least = least.chain([heard.replayed, heard.wills, counts.wills, counts.farewells]).min();
    assert!(least.is_some_and(|least| least > 0), "{name}: {counts:?}");
    (counts, ending)
}

#[test]
fn a_good_network() {
    let (counts, ending) = run("a good network", GOOD, 1);
    assert!(ending.sufferings.broken == 0 && counts.silent == 0, "{counts:?}");
}

#[test]
fn a_network_that_breaks_connections() {
    let weather = Weather {
        delay_ns: (MILLISECOND_NS, 80 * MILLISECOND_NS),
        stalls: 200,
        stall_ns: 2 * SECOND_NS,
        lasts_ns: 60 * SECOND_NS,
        silent: 3,
        ..GOOD
    };
    let (counts, ending) = run("a network that breaks connections", weather, 2);
    let sufferings = ending.sufferings;
    let least = [sufferings.broken, sufferings.silenced, sufferings.stalled, sufferings.cut_short];
    assert!(least.into_iter().min() > Some(0), "{sufferings:?}");
    assert!(counts.silent > 0 && counts.replaced > 0 && counts.heard.again > 0, "{counts:?}");
}

#[test]
fn a_network_that_is_cut() {
    let weather = Weather {
        delay_ns: (MILLISECOND_NS, 20 * MILLISECOND_NS),
        lasts_ns: 200 * SECOND_NS,
        silent: 2,
        cut_ns: Some((50 * SECOND_NS, 15 * SECOND_NS)),
        ..GOOD
    };
    let (counts, _) = run("a network that is cut", weather, 3);
    assert!(counts.silent > 0 && counts.heard.again > 0, "{counts:?}");
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let weather = Weather { delay_ns: (1, 80 * MILLISECOND_NS), lasts_ns: 30 * SECOND_NS, silent: 3, ..GOOD };
    let trace = |seed| simulate(weather, seed, 60 * SECOND_NS).1.trace;
    assert_eq!(trace(4), trace(4));
    assert_ne!(trace(4), trace(5));
}
