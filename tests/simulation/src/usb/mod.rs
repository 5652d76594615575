//! The USB device behind USB/IP (examples/usb) and two hosts that attach it in turn, each trying again while it is
//! busy: each enumerates it, writes to its serial port and reads the echo, unlinks transfers, halts endpoints, and
//! detaches or is disconnected.

mod host;

use crate::node::{Node, compile};
use crate::stream::{Channels, Delivery, GOOD, Impairments, LinkId, Network};
use crate::{MILLISECOND_NS, SECOND_NS, SimulationResult, Trace, wanted_ns};
use host::{Counts, Session};
use quaject_test_support::random::Random;

const CHANNELS: Channels =
    Channels { events: "eventC", requests: "requestC", chunk: 1024, instances: 4, hears_sent: false };
const HOSTS: usize = 2;
const BUSY: [u8; 8] = *b"\x01\x11\0\x03\0\0\0\x02";
/// The maximal time of an answer on the worst of these networks.
const ANSWER_TIMEOUT_NS: i64 = 60 * SECOND_NS;

enum State {
    Away,
    Attaching,
    Attached(Box<Session>),
}

struct Host {
    state: State,
    link: LinkId,
    /// The time of its next action.
    next_ns: i64,
    inbox: Vec<u8>,
}

struct Simulation<'p> {
    now_ns: i64,
    node: Node<'p>,
    network: Network,
    hosts: Vec<Host>,
    random: Random,
    counts: Counts,
    trace: Trace,
    /// Whether hosts that detach do not attach again.
    ends: bool,
}

impl Simulation<'_> {
    /// Executes all events of the current time.
    fn run_to_quiescence(&mut self) {
        loop {
            let mut moved = false;
            self.node.run(self.now_ns);
            while let Some((channel, message)) = self.node.next_output() {
                moved = true;
                self.trace.note(self.now_ns, channel, &message);
                self.network.execute(&mut self.node, &message, self.now_ns);
            }
            while self.network.deliver_event(&mut self.node, self.now_ns) {
                moved = true;
            }
            while let Some((link, heard)) = self.network.next_delivery(self.now_ns) {
                moved = true;
                let number = self.hosts.iter().position(|host| host.link == link).expect("hosts hear only theirs");
                match heard {
                    Delivery::Bytes(bytes) => self.receive(number, &bytes),
                    Delivery::Closed => self.handle_disconnect(number),
                }
            }
            for number in 0..HOSTS {
                if self.hosts[number].next_ns <= self.now_ns {
                    moved |= self.act(number);
                }
            }
            if !moved {
                return;
            }
        }
    }

    fn receive(&mut self, number: usize, bytes: &[u8]) {
        let Simulation { hosts, random, counts, now_ns, .. } = self;
        let host = &mut hosts[number];
        host.inbox.extend(bytes);
        if matches!(host.state, State::Attaching) && host.inbox == BUSY {
            counts.busy += 1;
            let link = host.link;
            self.network.close(link, self.now_ns);
            self.detach(number);
            return;
        }
        if matches!(host.state, State::Attaching) && host.inbox.len() >= 320 {
            let answer: Vec<u8> = host.inbox.drain(..320).collect();
            assert_eq!(answer[..8], *b"\x01\x11\0\x03\0\0\0\0");
            assert_eq!(answer[264..268], *b"1-1\0");
            counts.attached += 1;
            let ends_ns = *now_ns + random.below(40 * SECOND_NS as u64) as i64;
            host.state = State::Attached(Box::new(Session::new(*now_ns, ends_ns)));
            host.next_ns = *now_ns;
        }
        if let State::Attached(session) = &mut host.state {
            while session.handle_answer(&mut host.inbox, counts).is_some() {
                session.acts_ns = *now_ns;
            }
        }
    }

    /// A host's connection has ended.
    fn handle_disconnect(&mut self, number: usize) {
        let link = self.hosts[number].link;
        self.network.close(link, self.now_ns);
        self.detach(number);
    }

    fn detach(&mut self, number: usize) {
        let host = &mut self.hosts[number];
        if let State::Attached(session) = &host.state {
            self.counts.failed += session.transfers.len() as u64 + u64::from(session.control.is_some());
        }
        host.state = State::Away;
        host.inbox.clear();
        host.link = 0;
        let rest_ns = [0, MILLISECOND_NS, SECOND_NS, 5 * SECOND_NS][self.random.below(4) as usize];
        host.next_ns = if self.ends { i64::MAX } else { self.now_ns + rest_ns };
    }

    /// The next action of a host; whether there was one.
    fn act(&mut self, number: usize) -> bool {
        let host = &mut self.hosts[number];
        match &mut host.state {
            State::Away => {
                host.link = self.network.connect(self.now_ns);
                let mut import = b"\x01\x11\x80\x03\0\0\0\x001-1".to_vec();
                import.resize(40, 0);
                self.network.send(host.link, &import, self.now_ns);
                host.state = State::Attaching;
                host.next_ns = i64::MAX;
                true
            }
            State::Attaching => false,
            State::Attached(session) => {
                host.next_ns = self.now_ns + 1 + self.random.below(60 * MILLISECOND_NS as u64) as i64;
                let begun_ns = session.transfers.values().map(|transfer| transfer.begun_ns).min();
                let finishes = self.now_ns > session.ends_ns + ANSWER_TIMEOUT_NS;
                // A real host unlinks transfers that take too long; here none may.
                assert!(
                    !finishes || self.now_ns - session.acts_ns < ANSWER_TIMEOUT_NS,
                    "host {number}: no answer for a minute; the oldest transfer began at {begun_ns:?}"
                );
                match session.act(&mut self.random, self.now_ns) {
                    Some(bytes) => self.network.send(host.link, &bytes, self.now_ns),
                    None => {
                        assert!(session.pending_echo.is_empty() && session.transfers.is_empty());
                        self.counts.served += 1;
                        let link = host.link;
                        self.network.close(link, self.now_ns);
                        self.detach(number);
                    }
                }
                true
            }
        }
    }

    fn run_until(&mut self, end_ns: i64) {
        while self.now_ns < end_ns {
            self.run_to_quiescence();
            let hosts_ns = self.hosts.iter().map(|host| host.next_ns).min().expect("there are two");
            let deadline_ns = self.node.deadline_ns.unwrap_or(i64::MAX);
            let next_ns = self.network.next_ns(self.now_ns).unwrap_or(i64::MAX).min(hosts_ns).min(deadline_ns);
            assert!(next_ns > self.now_ns, "the clock does not advance");
            self.now_ns = next_ns.min(end_ns);
        }
    }
}

/// Runs the simulation on this network.
fn simulate(impairments: Impairments, seed: u64, length_ns: i64) -> (Counts, SimulationResult) {
    let program = compile("examples/usb/server.esp");
    let node = Node::new(&program);
    let network = Network::new(&node, &CHANNELS, impairments, seed + 100);
    let host = |_| Host { state: State::Away, link: 0, next_ns: 0, inbox: Vec::new() };
    let mut simulation = Simulation {
        now_ns: 0,
        node,
        network,
        hosts: (0..HOSTS).map(host).collect(),
        random: Random(seed),
        counts: Counts::default(),
        trace: Trace::default(),
        ends: false,
    };
    simulation.run_until(length_ns);
    // On an unimpaired network every host is served, and detaches at the end.
    simulation.network.impairments = GOOD;
    simulation.run_until(length_ns + 200 * SECOND_NS);
    let before = simulation.counts.clone();
    simulation.run_until(length_ns + 600 * SECOND_NS);
    let after = &simulation.counts;
    assert!(after.served > before.served + 2, "only {} hosts on the unimpaired network", after.served - before.served);
    assert!(after.failed == before.failed, "transfers fail on the unimpaired network");
    simulation.ends = true;
    simulation.run_until(length_ns + 900 * SECOND_NS);
    assert!(simulation.hosts.iter().all(|host| matches!(host.state, State::Away)), "a host is not served");
    (
        simulation.counts,
        SimulationResult { trace: simulation.trace.digest(), impairment_counts: simulation.network.impairment_counts },
    )
}

fn run(name: &str, impairments: Impairments, seed: u64) -> (Counts, SimulationResult) {
    let begun = std::time::Instant::now();
    let (counts, result) = simulate(impairments, seed, wanted_ns());
    println!("usb, {name}: {:.2} h in {:.1} s: {counts:?} {result:?}", hours(), begun.elapsed().as_secs_f64());
    let Counts { served, busy, out, inward, stalled, unlinked, too_late, controls, .. } = counts;
    let least = [served, busy, out, inward, stalled, unlinked, too_late, controls].into_iter().min();
    assert!(least.is_some_and(|least| least > 0), "{name}: {counts:?}");
    (counts, result)
}

fn hours() -> f64 {
    wanted_ns() as f64 / 3_600e9
}

#[test]
fn a_good_network() {
    let (counts, _) = run("a good network", GOOD, 1);
    assert_eq!(counts.failed, 0);
}

#[test]
fn a_network_that_breaks_connections() {
    let impairments = Impairments {
        delay_ns: (MILLISECOND_NS, 80 * MILLISECOND_NS),
        stalls: 200,
        stall_ns: 2 * SECOND_NS,
        max_lifetime_ns: 90 * SECOND_NS,
        ..GOOD
    };
    let (counts, result) = run("a network that breaks connections", impairments, 2);
    let impairment_counts = result.impairment_counts;
    assert!(
        counts.failed > 0
            && impairment_counts.broken > 0
            && impairment_counts.cut_short > 0
            && impairment_counts.stalled > 0
    );
}

#[test]
fn a_network_that_is_cut() {
    let impairments = Impairments {
        delay_ns: (MILLISECOND_NS, 20 * MILLISECOND_NS),
        max_lifetime_ns: 200 * SECOND_NS,
        outages_ns: Some((60 * SECOND_NS, 15 * SECOND_NS)),
        ..GOOD
    };
    let (counts, result) = run("a network that is cut", impairments, 3);
    assert!(counts.failed > 0 && result.impairment_counts.broken > 0);
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let impairments = Impairments {
        delay_ns: (1, 80 * MILLISECOND_NS),
        max_lifetime_ns: 30 * SECOND_NS,
        stalls: 50,
        stall_ns: SECOND_NS,
        ..GOOD
    };
    let run = |seed| simulate(impairments, seed, 60 * SECOND_NS).1.trace;
    assert_eq!(run(4), run(4));
    assert_ne!(run(4), run(5));
}
