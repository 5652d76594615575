//! The TCP/IP host (examples/tcpip) and three hosts with smoltcp's TCP: pages of all sizes, echo, pings, at any pace,
//! closed by either side or aborted.

use super::exchange::{Plan, Traffic};
use super::goal::{Expected, Goal};
use super::host::{Host, Role, Settings};
use super::network::Network;
use super::packets::Protocol;
use super::plans::{any_size, bytes, echo, kind, packets, page, stream, varied};
use super::scenario::{Outcome, Workload, report, simulate};
use super::service;
use crate::SECOND_NS;
use crate::node::{Engine, Node, compile_for};
use quaject_esp_exec::datum::Datum;
use quaject_test_support::random::Random;
use smoltcp::wire::Ipv4Address;

const PROGRAM: &str = "examples/tcpip/host.esp";
const ADDRESS: Ipv4Address = Ipv4Address::new(10, 77, 0, 2);
/// The hosts; the first is also the gateway, with an address that is reached only through it.
const HOSTS: [(Ipv4Address, usize); 3] = [
    (Ipv4Address::new(10, 77, 0, 1), 1500),
    (Ipv4Address::new(10, 77, 0, 3), 1500),
    (Ipv4Address::new(10, 77, 0, 4), 600),
];
const FAR: Ipv4Address = Ipv4Address::new(192, 0, 2, 1);
/// Simultaneous connections of the program, by service.
const HTTPS: usize = 8;
const ECHOES: usize = 4;

struct Hosts;

fn plan(kind: &'static str, port: u16, expected: Expected, traffic: Traffic) -> Plan {
    Plan { kind, goal: Goal { source: Ipv4Address::UNSPECIFIED, target: ADDRESS, port, expected }, traffic }
}

fn from(random: &mut Random, station: usize, plan: Plan) -> Plan {
    let source = if station == 0 && random.below(2) == 0 { FAR } else { HOSTS[station].0 };
    Plan { goal: Goal { source, ..plan.goal }, ..plan }
}

impl Workload for Hosts {
    fn quiet_ns(&self) -> i64 {
        1_800 * SECOND_NS
    }

    fn max_exchanges(&self, _: usize) -> usize {
        3
    }

    fn pauses_ns(&self) -> [i64; 6] {
        [1, SECOND_NS / 10, SECOND_NS, 5 * SECOND_NS, 15 * SECOND_NS, 40 * SECOND_NS]
    }

    fn plan(&self, random: &mut Random, station: usize, turn: u64) -> Plan {
        let size = any_size(random);
        // The payload of a packet without headers and unique prefix.
        let max = HOSTS[station].1 - 28 - 11;
        let packets =
            |random: &mut Random, protocol| Traffic::Packets(packets(protocol, bytes(random, size % (max + 1))));
        let plan = match kind(random, turn, 20) {
            0..8 => {
                let page = page(random, size);
                plan("page", service::HTTP, Expected::Served, Traffic::Stream(varied(random, page)))
            }
            8 => {
                let missing = stream(service::request("missing"), service::answer("missing"));
                plan("missing page", service::HTTP, Expected::Served, Traffic::Stream(varied(random, missing)))
            }
            9..13 => {
                let echo = echo(random, size);
                let echo = varied(random, echo);
                plan("echo", service::ECHO, Expected::Served, Traffic::Stream(echo))
            }
            13 => {
                // Sends nothing until the other side closes.
                let silent = stream(Vec::new(), Vec::new());
                plan("silence", service::HTTP, Expected::Served, Traffic::Stream(silent))
            }
            14..16 => plan("datagram", service::ECHO, Expected::Served, packets(random, Protocol::Udp)),
            16..18 => plan("ping", 0, Expected::Served, packets(random, Protocol::Ping)),
            18 => plan("datagram to a closed port", 9, Expected::Refused, packets(random, Protocol::Udp)),
            _ => plan(
                "connection to a closed port",
                81,
                Expected::Refused,
                Traffic::Stream(stream(Vec::new(), Vec::new())),
            ),
        };
        from(random, station, plan)
    }

    fn recovery_plans(&self) -> Vec<(usize, Plan)> {
        let random = &mut Random(1);
        let mut plans = Vec::new();
        for number in 0..HTTPS {
            let page = page(random, 20_000);
            plans.push((number % 3, plan("page", service::HTTP, Expected::Served, Traffic::Stream(page))));
        }
        for number in 0..ECHOES {
            let echo = echo(random, 20_000);
            plans.push((number % 3, plan("echo", service::ECHO, Expected::Served, Traffic::Stream(echo))));
        }
        for protocol in [Protocol::Udp, Protocol::Ping] {
            let packets = packets(protocol, bytes(random, 500));
            let kind = if protocol == Protocol::Udp { "datagram" } else { "ping" };
            plans.push((1, plan(kind, service::ECHO, Expected::Served, Traffic::Packets(packets))));
        }
        plans.into_iter().map(|(station, plan)| (station, from(random, station, plan))).collect()
    }
}

/// Runs the simulation with these faults.
fn run(engine: Engine, faults: &str, seed: u64, length_ns: i64) -> Outcome {
    run_on_path(engine, faults, None, seed, length_ns)
}

/// Likewise; the path to the second host forwards packets of this size only.
fn run_on_path(engine: Engine, faults: &str, path_mtu: Option<u16>, seed: u64, length_ns: i64) -> Outcome {
    let program = compile_for(engine, PROGRAM);
    let mut node = Node::on(engine, &program);
    node.offer(node.channel("secretC"), vec![Datum::Bytes((0..16).collect())]);
    let hosts = HOSTS.iter().enumerate().map(|(number, (address, mtu))| {
        let mut addresses = vec![(*address, 24)];
        addresses.extend((number == 0).then_some((FAR, 32)));
        let station = [2, 0, 0, 0, 1, number as u8];
        let settings = Settings { station, addresses, gateway: None, mtu: *mtu, ports: 400, role: Role::Client };
        Host::new(settings, seed + number as u64)
    });
    let links = vec![(("inC", "outC"), hosts.collect())];
    let mut network = Network::new(node, links, &faults.parse().expect("they are faults"));
    network.stations[1].path_mtu = path_mtu;
    simulate(network, Hosts, seed, length_ns)
}

fn run_and_report(name: &str, faults: &str, seed: u64) -> Outcome {
    let outcome = report("tcpip", name, |length_ns| run(Engine::Best, faults, seed, length_ns));
    for kind in ["page", "missing page", "echo", "silence", "datagram", "ping", "connection to a closed port"] {
        assert!(outcome.tally(kind).done > 0, "{name}: no {kind} came to its end");
    }
    assert!(outcome.all().broken > 0, "{name}: no connection was broken on purpose");
    outcome
}

#[test]
fn a_good_network() {
    let outcome = run_and_report("a good network", "tap:delay=2ms", 1);
    assert_eq!(outcome.failed(), 0);
}

/// Reports of packets that are too large for their path (RFC 1191), also delayed, duplicated and lost ones.
#[test]
fn a_path_with_a_smaller_mtu() {
    for (name, faults) in
        [("a narrow path", "tap:delay=2ms"), ("a bad one", "tap:loss=1%,dup=1%,delay=1ms..30ms,seed=3")]
    {
        let outcome = report("tcpip", name, |length_ns| run_on_path(Engine::Best, faults, Some(400), 4, length_ns));
        assert!(outcome.reported > 0, "{name}: no packet was too large");
        assert!(outcome.failed() * 20 < outcome.all().done, "{name}: {} failed", outcome.failed());
    }
}

#[test]
fn a_bad_network() {
    let outcome = run_and_report("a bad network", "tap:loss=3%,dup=3%,reorder=3%,delay=1ms..30ms,seed=7", 2);
    let (frames, faults) = (outcome.carried.frames, outcome.carried.faults);
    assert!(faults.lost.min(faults.doubled).min(outcome.carried.overtaken) > frames / 50, "{:?}", outcome.carried);
    assert!(outcome.failed() * 20 < outcome.all().done);
}

#[test]
fn a_network_that_is_cut() {
    // Longer than any timeout: exchanges in progress fail, and later ones are not disturbed.
    let faults = "tap:loss=2%,dup=2%,reorder=2%,delay=1ms..200ms,cut=130s/290s,seed=9";
    let outcome = run_and_report("a network that is cut", faults, 3);
    assert!(outcome.failed() > 0 && outcome.failed() < outcome.all().done);
}

#[test]
fn the_same_seed_gives_the_same_frames_at_the_same_times_in_all_engines() {
    let digest = |engine, seed| {
        let faults = format!("tap:loss=3%,dup=3%,reorder=3%,delay=1ms..30ms,seed={seed}");
        run(engine, &faults, 5, 20 * SECOND_NS).digest
    };
    let once = digest(Engine::Best, 1);
    assert_eq!(digest(Engine::Best, 1), once);
    assert_eq!(digest(Engine::Interpreter, 1), once, "the interpreter does something else");
    assert_ne!(digest(Engine::Best, 2), once);
}
