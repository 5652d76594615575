//! The router with NAT (examples/nat) between three hosts inside and two outside, all with smoltcp's TCP: pages, echo,
//! datagrams and pings, some with pauses in which the router drops their mapping, and unsolicited connections from
//! outside.

use super::exchange::{Plan, Traffic};
use super::goal::{Expected, Goal};
use super::host::{Host, Role, Settings};
use super::network::Network;
use super::packets::{Packets, Protocol};
use super::plans::{any_size, bytes, echo, kind, packets, page, pick, stream, varied};
use super::scenario::{Outcome, Workload, report, simulate};
use super::service;
use super::stream::Stream;
use crate::SECOND_NS;
use crate::node::{Engine, Node, compile_for};
use quaject_test_support::random::Random;
use smoltcp::wire::Ipv4Address;

const PROGRAM: &str = "examples/nat/nat.esp";
const INSIDE: Ipv4Address = Ipv4Address::new(10, 78, 0, 1);
const PUBLIC: Ipv4Address = Ipv4Address::new(203, 0, 113, 1);
const FIRST_PORT: u16 = 32_768;
const PORTS: u64 = 1_024;
/// The hosts inside; the last one keeps connections for hours.
const HOSTS: [(Ipv4Address, usize); 3] = [
    (Ipv4Address::new(10, 78, 0, 2), 1500),
    (Ipv4Address::new(10, 78, 0, 3), 576),
    (Ipv4Address::new(10, 78, 0, 4), 1500),
];
const LONG_LIVED: usize = 2;
/// The hosts outside: the gateway, which has a second address, and one more.
const GATEWAY: Ipv4Address = Ipv4Address::new(203, 0, 113, 254);
const FAR: Ipv4Address = Ipv4Address::new(198, 51, 100, 1);
const NEAR: Ipv4Address = Ipv4Address::new(203, 0, 113, 7);
/// Lifetimes of the router, in seconds.
const UDP_S: i64 = 300;
const ICMP_S: i64 = 60;
const OPEN_S: i64 = 7_440;

struct Hosts;

fn plan(
    station: usize,
    kind: &'static str,
    target: Ipv4Address,
    port: u16,
    expected: Expected,
    traffic: Traffic,
) -> Plan {
    let source = match station {
        0..3 => HOSTS[station].0,
        3 => GATEWAY,
        _ => NEAR,
    };
    Plan { kind, goal: Goal { source, target, port, expected }, traffic }
}

/// An exchange of the host that keeps connections for hours.
fn long_lived(random: &mut Random, turn: u64, target: Ipv4Address) -> Plan {
    let stream = echo(random, 3_000);
    let pause_of = |pause_s: i64| Some((1_500, pause_s * SECOND_NS));
    let (name, expected, pause) = match kind(random, turn, 3) {
        0 => ("pause of minutes", Expected::Served, pause_of(600)),
        1 => ("pause of hours", Expected::Served, pause_of(OPEN_S - 100)),
        _ => ("pause for too long", Expected::Forgotten, pause_of(OPEN_S + 1_000)),
    };
    plan(LONG_LIVED, name, target, service::ECHO, expected, Traffic::Stream(Stream { pause, ..stream }))
}

/// An unsolicited exchange from outside.
fn unsolicited(random: &mut Random, turn: u64, station: usize) -> Plan {
    let port = FIRST_PORT + random.below(PORTS) as u16;
    let connection = |stream: Stream| Traffic::Stream(Stream { timeout_ns: 20 * SECOND_NS, ..stream });
    let silent = stream(Vec::new(), Vec::new());
    match kind(random, turn, 4) {
        0 => plan(station, "unsolicited connection", PUBLIC, port, Expected::Ignored, connection(silent)),
        1 => {
            let packets = Traffic::Packets(packets(Protocol::Udp, bytes(random, 100)));
            plan(station, "unsolicited datagram", PUBLIC, port, Expected::Ignored, packets)
        }
        2 => {
            let packets = Traffic::Packets(packets(Protocol::Ping, bytes(random, 100)));
            plan(station, "unsolicited ping", PUBLIC, 0, Expected::Ignored, packets)
        }
        _ => {
            let inside = HOSTS[random.below(3) as usize].0;
            let port = service::HTTP;
            plan(station, "connection to an inner address", inside, port, Expected::Ignored, connection(silent))
        }
    }
}

impl Workload for Hosts {
    fn quiet_ns(&self) -> i64 {
        6 * 3_600 * SECOND_NS
    }

    fn max_exchanges(&self, station: usize) -> usize {
        [12, 12, 6, 1, 1][station]
    }

    fn pauses_ns(&self) -> [i64; 6] {
        [1, SECOND_NS / 10, SECOND_NS, 3 * SECOND_NS, 8 * SECOND_NS, 12 * SECOND_NS]
    }

    fn plan(&self, random: &mut Random, station: usize, turn: u64) -> Plan {
        let target = pick(random, &[FAR, NEAR, GATEWAY]);
        match station {
            0..2 => {}
            LONG_LIVED => return long_lived(random, turn, target),
            _ => return unsolicited(random, turn, station),
        }
        let size = any_size(random);
        let max = HOSTS[station].1 - 28 - 11;
        let content = bytes(random, size % (max + 1));
        let pauses = |pauses: &[i64]| pauses.iter().map(|pause_s| pause_s * SECOND_NS).collect();
        let made = |kind, port, expected, traffic| plan(station, kind, target, port, expected, traffic);
        match kind(random, turn, 30) {
            0..9 => {
                let page = page(random, size);
                made("page", service::HTTP, Expected::Served, Traffic::Stream(varied(random, page)))
            }
            9..17 => {
                // With more bytes than the buffers of both sides smoltcp can stall, even without a router.
                let echo = echo(random, size % 8_000);
                made("echo", service::ECHO, Expected::Served, Traffic::Stream(varied(random, echo)))
            }
            17..19 => {
                made("datagram", service::ECHO, Expected::Served, Traffic::Packets(packets(Protocol::Udp, content)))
            }
            19 => {
                let pauses = pauses(&[1, UDP_S - 20, UDP_S + 20]);
                let packets = Packets { pauses, ..packets(Protocol::Udp, content) };
                made("datagrams with pauses", service::ECHO, Expected::Served, Traffic::Packets(packets))
            }
            20..22 => made("ping", 0, Expected::Served, Traffic::Packets(packets(Protocol::Ping, content))),
            22 => {
                let pauses = pauses(&[1, ICMP_S - 20, ICMP_S + 20]);
                let packets = Packets { pauses, ..packets(Protocol::Ping, content) };
                made("pings with pauses", 0, Expected::Served, Traffic::Packets(packets))
            }
            23..25 => {
                let packets = Packets { late: Some(UDP_S as u16 - 20), ..packets(Protocol::Udp, Vec::new()) };
                made("late answer", service::LATE_ECHO, Expected::Served, Traffic::Packets(packets))
            }
            25..27 => {
                let packets = Packets { late: Some(UDP_S as u16 + 20), ..packets(Protocol::Udp, Vec::new()) };
                made("answer that is too late", service::LATE_ECHO, Expected::Forgotten, Traffic::Packets(packets))
            }
            27 => made(
                "datagram to a closed port",
                9,
                Expected::Refused,
                Traffic::Packets(packets(Protocol::Udp, content)),
            ),
            28 => made(
                "connection to a closed port",
                81,
                Expected::Refused,
                Traffic::Stream(stream(Vec::new(), Vec::new())),
            ),
            _ => {
                let ping =
                    made("ping of the router", 0, Expected::Served, Traffic::Packets(packets(Protocol::Ping, content)));
                Plan { goal: Goal { target: INSIDE, ..ping.goal }, ..ping }
            }
        }
    }

    fn recovery_plans(&self) -> Vec<(usize, Plan)> {
        let random = &mut Random(1);
        let mut plans = Vec::new();
        for number in 0..120 {
            let (station, target) = (number % 2, [FAR, NEAR][number / 2 % 2]);
            let (kind, port, traffic) = match number {
                0..20 => ("page", service::HTTP, Traffic::Stream(page(random, 20_000))),
                20..40 => ("echo", service::ECHO, Traffic::Stream(echo(random, 20_000))),
                40..80 => ("datagram", service::ECHO, Traffic::Packets(packets(Protocol::Udp, bytes(random, 500)))),
                _ => ("ping", 0, Traffic::Packets(packets(Protocol::Ping, bytes(random, 500)))),
            };
            plans.push((station, plan(station, kind, target, port, Expected::Served, traffic)));
        }
        plans
    }
}

/// Runs the simulation with these faults.
fn run(engine: Engine, faults: &str, seed: u64, length_ns: i64) -> Outcome {
    let program = compile_for(engine, PROGRAM);
    let host = |station: u8, addresses, gateway, mtu, role| {
        let station = [2, 0, 0, 0, 2, station];
        let settings = Settings { station, addresses, gateway: Some(gateway), mtu, ports: 130, role };
        Host::new(settings, seed + u64::from(station[5]))
    };
    let inside = HOSTS
        .iter()
        .zip(0..)
        .map(|((address, mtu), number)| host(number, vec![(*address, 24)], INSIDE, *mtu, Role::Client));
    let outside = [vec![(GATEWAY, 24), (FAR, 32)], vec![(NEAR, 24)]].into_iter().zip(10..);
    let outside = outside.map(|(addresses, number)| host(number, addresses, PUBLIC, 1500, Role::Server));
    let links =
        vec![(("insideInC", "insideOutC"), inside.collect()), (("outsideInC", "outsideOutC"), outside.collect())];
    let faults = faults.parse().expect("they are faults");
    simulate(Network::new(Node::on(engine, &program), links, &faults), Hosts, seed, length_ns)
}

fn run_and_report(name: &str, faults: &str, seed: u64) -> Outcome {
    let outcome = report("nat", name, |length_ns| run(Engine::Best, faults, seed, length_ns));
    let kinds =
        ["page", "echo", "datagram", "ping", "late answer", "answer that is too late", "connection to a closed port"];
    let others = ["pause of minutes", "unsolicited connection", "unsolicited datagram", "ping of the router"];
    for kind in kinds.into_iter().chain(others) {
        assert!(outcome.tally(kind).done > 0, "{name}: no {kind} came to its end");
    }
    assert!(outcome.all().broken > 0, "{name}: no connection was broken on purpose");
    outcome
}

#[test]
fn a_good_network() {
    let outcome = run_and_report("a good network", "tap:delay=2ms", 1);
    assert_eq!(outcome.failed(), 0);
    for kind in ["pause of hours", "pause for too long", "datagrams with pauses", "pings with pauses"] {
        assert!(outcome.tally(kind).done > 0, "no {kind} came to its end");
    }
}

#[test]
fn a_bad_network() {
    let outcome = run_and_report("a bad network", "tap:loss=2%,dup=2%,reorder=2%,delay=1ms..20ms,seed=7", 2);
    let (frames, faults) = (outcome.carried.frames, outcome.carried.faults);
    assert!(faults.lost.min(faults.doubled).min(outcome.carried.overtaken) > frames / 100, "{:?}", outcome.carried);
    assert!(outcome.failed() * 10 < outcome.all().done);
}

#[test]
fn a_network_that_is_cut() {
    let faults = "tap:loss=1%,dup=1%,reorder=1%,delay=1ms..100ms,cut=130s/290s,seed=9";
    let outcome = run_and_report("a network that is cut", faults, 3);
    assert!(outcome.failed() > 0 && outcome.failed() < outcome.all().done);
}

#[test]
fn the_same_seed_gives_the_same_frames_at_the_same_times_in_all_engines() {
    let digest = |engine, seed| {
        let faults = format!("tap:loss=2%,dup=2%,reorder=2%,delay=1ms..20ms,seed={seed}");
        run(engine, &faults, 5, 20 * SECOND_NS).digest
    };
    let once = digest(Engine::Best, 1);
    assert_eq!(digest(Engine::Best, 1), once);
    assert_eq!(digest(Engine::Interpreter, 1), once, "the interpreter does something else");
    assert_ne!(digest(Engine::Best, 2), once);
}
