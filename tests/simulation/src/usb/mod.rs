//! The USB device behind USB/IP (examples/usb) and two hosts that want it, one after the other: each takes it, enumerates, tells the
//! port things and hears them again, calls transfers off, halts endpoints, and goes or is cut off.

mod host;

use crate::node::{Node, compile};
use crate::stream::{Channels, GOOD, Heard, LinkId, Network, Weather};
use crate::{Ending, MILLISECOND_NS, SECOND_NS, Trace, wanted_ns};
use host::{Counts, Session};
use quaject_test_support::random::Random;

const CHANNELS: Channels =
    Channels { events: "eventC", requests: "requestC", chunk: 1024, instances: 1, hears_sent: false };
const HOSTS: usize = 2;
/// What an answer may take on the worst of these networks.
const PATIENCE_NS: i64 = 60 * SECOND_NS;

enum State {
    Away,
    Attaching,
    Attached(Box<Session>),
}

struct Host {
    state: State,
    link: LinkId,
    /// When it does something by itself.
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
    /// Whether hosts that go do not come back.
    ends: bool,
}

impl Simulation<'_> {
    /// One moment: everything that can happen now does.
    fn settle(&mut self) {
        loop {
            let mut moved = false;
            self.node.run(self.now_ns);
            while let Some((channel, message)) = self.node.heard() {
                moved = true;
                self.trace.note(self.now_ns, channel, &message);
                self.network.carry(&mut self.node, &message, self.now_ns);
            }
            while self.network.reach(&mut self.node, self.now_ns) {
                moved = true;
            }
            while let Some((link, heard)) = self.network.hear(self.now_ns) {
                moved = true;
                let number = self.hosts.iter().position(|host| host.link == link).expect("hosts hear only theirs");
                match heard {
                    Heard::Bytes(bytes) => self.hear(number, &bytes),
                    Heard::Ended => self.lose(number),
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

    fn hear(&mut self, number: usize, bytes: &[u8]) {
        let Simulation { hosts, random, counts, now_ns, .. } = self;
        let host = &mut hosts[number];
        host.inbox.extend(bytes);
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
            while session.hear(&mut host.inbox, counts).is_some() {
                session.acts_ns = *now_ns;
            }
        }
    }

    /// A host's connection has ended.
    fn lose(&mut self, number: usize) {
        let link = self.hosts[number].link;
        self.network.hang_up(link, self.now_ns);
        self.leave(number);
    }

    fn leave(&mut self, number: usize) {
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

    /// A host does something by itself; whether it has.
    fn act(&mut self, number: usize) -> bool {
        let host = &mut self.hosts[number];
        match &mut host.state {
            State::Away => {
                host.link = self.network.call(self.now_ns);
                let mut import = b"\x01\x11\x80\x03\0\0\0\x001-1".to_vec();
                import.resize(40, 0);
                self.network.say(host.link, &import, self.now_ns);
                host.state = State::Attaching;
                host.next_ns = i64::MAX;
                true
            }
            State::Attaching => false,
            State::Attached(session) => {
                host.next_ns = self.now_ns + 1 + self.random.below(60 * MILLISECOND_NS as u64) as i64;
                let begun_ns = session.transfers.values().map(|transfer| transfer.begun_ns).min();
                let finishes = self.now_ns > session.ends_ns + PATIENCE_NS;
                // A host in its own right calls off what takes too long; here nothing may.
                assert!(
                    !finishes || self.now_ns - session.acts_ns < PATIENCE_NS,
                    "host {number}: no answer for a minute; the oldest transfer began at {begun_ns:?}"
                );
                match session.act(&mut self.random, self.now_ns) {
                    Some(bytes) => self.network.say(host.link, &bytes, self.now_ns),
                    None => {
                        assert!(session.told.is_empty() && session.transfers.is_empty());
                        self.counts.served += 1;
                        let link = host.link;
                        self.network.hang_up(link, self.now_ns);
                        self.leave(number);
                    }
                }
                true
            }
        }
    }

    fn run_until(&mut self, end_ns: i64) {
        while self.now_ns < end_ns {
            self.settle();
            let hosts_ns = self.hosts.iter().map(|host| host.next_ns).min().expect("there are two");
            let deadline_ns = self.node.deadline_ns.unwrap_or(i64::MAX);
            let next_ns = self.network.next_ns(self.now_ns).unwrap_or(i64::MAX).min(hosts_ns).min(deadline_ns);
            assert!(next_ns > self.now_ns, "the clock stands still");
            self.now_ns = next_ns.min(end_ns);
        }
    }
}

/// Runs it all in this weather.
fn simulate(weather: Weather, seed: u64, length_ns: i64) -> (Counts, Ending) {
    let program = compile("examples/usb/server.esp");
    let node = Node::new(&program);
    let network = Network::new(&node, &CHANNELS, weather, seed + 100);
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
    // On a network without faults whoever comes is served, and goes when all is said.
    simulation.network.weather = GOOD;
    simulation.run_until(length_ns + 200 * SECOND_NS);
    let before = simulation.counts.clone();
    simulation.run_until(length_ns + 600 * SECOND_NS);
    let after = &simulation.counts;
    assert!(after.served > before.served + 2, "only {} hosts after all is well", after.served - before.served);
    assert!(after.failed == before.failed, "transfers fail although all is well");
    simulation.ends = true;
    simulation.run_until(length_ns + 900 * SECOND_NS);
    assert!(simulation.hosts.iter().all(|host| matches!(host.state, State::Away)), "a host is not served");
    (simulation.counts, Ending { trace: simulation.trace.end(), sufferings: simulation.network.sufferings })
}

fn run(name: &str, weather: Weather, seed: u64) -> (Counts, Ending) {
    let begun = std::time::Instant::now();
    let (counts, ending) = simulate(weather, seed, wanted_ns());
    println!("usb, {name}: {:.2} h in {:.1} s: {counts:?} {ending:?}", hours(), begun.elapsed().as_secs_f64());
    let Counts { served, out, inward, stalled, called_off, too_late, controls, .. } = counts;
    let least = [served, out, inward, stalled, called_off, too_late, controls].into_iter().min();
    assert!(least.is_some_and(|least| least > 0), "{name}: {counts:?}");
    (counts, ending)
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
    let weather = Weather {
        delay_ns: (MILLISECOND_NS, 80 * MILLISECOND_NS),
        stalls: 200,
        stall_ns: 2 * SECOND_NS,
        lasts_ns: 90 * SECOND_NS,
        ..GOOD
    };
    let (counts, ending) = run("a network that breaks connections", weather, 2);
    let sufferings = ending.sufferings;
    assert!(counts.failed > 0 && sufferings.broken > 0 && sufferings.cut_short > 0 && sufferings.stalled > 0);
}

#[test]
fn a_network_that_is_cut() {
    let weather = Weather {
        delay_ns: (MILLISECOND_NS, 20 * MILLISECOND_NS),
        lasts_ns: 200 * SECOND_NS,
        cut_ns: Some((60 * SECOND_NS, 15 * SECOND_NS)),
        ..GOOD
    };
    let (counts, ending) = run("a network that is cut", weather, 3);
    assert!(counts.failed > 0 && ending.sufferings.broken > 0);
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let weather = Weather {
        delay_ns: (1, 80 * MILLISECOND_NS),
        lasts_ns: 30 * SECOND_NS,
        stalls: 50,
        stall_ns: SECOND_NS,
        ..GOOD
    };
    let run = |seed| simulate(weather, seed, 60 * SECOND_NS).1.trace;
    assert_eq!(run(4), run(4));
    assert_ne!(run(4), run(5));
}
