//! Hosts on an impaired network that load the program permanently. At intervals the network is unimpaired for hours:
//! then all exchanges end, the program becomes idle, and new exchanges succeed.

use super::exchange::Plan;
use super::host::{Tallies, Tally};
use super::network::Network;
use super::wire::Carried;
use crate::{SECOND_NS, wanted_ns};
use quaject_test_support::random::Random;

/// The time under load between two checks.
const CHECK_INTERVAL_NS: i64 = 4 * 3_600 * SECOND_NS;
/// How long exchanges on an unimpaired network may take, TIME-WAIT of earlier ones included.
const RECOVERY_LIMIT_NS: i64 = 200 * SECOND_NS;

/// The exchanges of the hosts.
pub(crate) trait Workload {
    /// The time on an unimpaired network, without new exchanges, after which all earlier ones have ended.
    fn quiet_ns(&self) -> i64;
    /// The number of simultaneous exchanges of a host.
    fn max_exchanges(&self, station: usize) -> usize;
    /// The pauses of a host between the starts of two.
    fn pauses_ns(&self) -> [i64; 6];
    /// The exchange of a host in this turn.
    fn plan(&self, random: &mut Random, station: usize, turn: u64) -> Plan;
    /// The exchanges that all succeed on an unimpaired network.
    fn recovery_plans(&self) -> Vec<(usize, Plan)>;
}

/// The result of a simulation.
pub(crate) struct Outcome {
    pub(crate) tallies: Tallies,
    pub(crate) carried: Carried,
    /// Packets that were discarded on a path with a smaller MTU, and reported.
    pub(crate) reported: u64,
    pub(crate) checks: u64,
    pub(crate) digest: u64,
}

impl Outcome {
    pub(crate) fn tally(&self, kind: &str) -> Tally {
        self.tallies.get(kind).copied().unwrap_or_else(|| panic!("there was no {kind}: {:?}", self.tallies))
    }

    /// Of all kinds together.
    pub(crate) fn all(&self) -> Tally {
        let mut all = Tally::default();
        for tally in self.tallies.values() {
            all.done += tally.done;
            all.dismissed += tally.dismissed;
            all.reset += tally.reset;
            all.timed_out += tally.timed_out;
            all.broken += tally.broken;
            all.bytes += tally.bytes;
            all.longest_ns = all.longest_ns.max(tally.longest_ns);
        }
        all
    }

    /// Exchanges that have ended with an error.
    pub(crate) fn failed(&self) -> u64 {
        let all = self.all();
        all.dismissed + all.reset + all.timed_out
    }
}

struct Scenario<'n, 'p, W> {
    network: &'n mut Network<'p>,
    workload: W,
    random: Random,
    /// By station: when it starts the next exchange.
    next_ns: Vec<i64>,
    /// By station: the number of exchanges started.
    turns: Vec<u64>,
}

/// Runs the workload for this time, not counting the checks.
pub(crate) fn simulate(mut network: Network<'_>, workload: impl Workload, seed: u64, length_ns: i64) -> Outcome {
    let (next_ns, turns) = (vec![0; network.stations.len()], vec![0; network.stations.len()]);
    let mut scenario = Scenario { network: &mut network, workload, random: Random(seed), next_ns, turns };
    // A program without pools allocates all memory at its start.
    assert_eq!(scenario.network.node.program.types.pools().len(), 0, "objects are to be counted");
    let mut checks = 0;
    let mut busy_ns = 0;
    while busy_ns < length_ns {
        let part_ns = CHECK_INTERVAL_NS.min(length_ns - busy_ns);
        scenario.run_load(scenario.network.now_ns + part_ns);
        busy_ns += part_ns;
        scenario.check_recovery();
        checks += 1;
    }
    let mut tallies = Tallies::new();
    for station in &network.stations {
        for (kind, tally) in &station.host.tallies {
            let sum = tallies.entry(*kind).or_default();
            *sum = merged(*sum, *tally);
        }
    }
    let (carried, reported) = (network.carried(), network.reported());
    Outcome { tallies, carried, reported, checks, digest: network.digest() }
}

fn merged(a: Tally, b: Tally) -> Tally {
    Tally {
        done: a.done + b.done,
        dismissed: a.dismissed + b.dismissed,
        reset: a.reset + b.reset,
        timed_out: a.timed_out + b.timed_out,
        broken: a.broken + b.broken,
        bytes: a.bytes + b.bytes,
        longest_ns: a.longest_ns.max(b.longest_ns),
    }
}

impl<W: Workload> Scenario<'_, '_, W> {
    /// All hosts start exchanges until then.
    fn run_load(&mut self, limit_ns: i64) {
        while self.network.now_ns < limit_ns {
            self.network.run_to_quiescence();
            while self.begin() {
                self.network.run_to_quiescence();
            }
            let now_ns = self.network.now_ns;
            let next_ns = self.next_ns.iter().copied().filter(|next_ns| *next_ns > now_ns).fold(limit_ns, i64::min);
            self.network.advance(next_ns);
        }
    }

    /// Hosts below their limit start an exchange; whether one did.
    fn begin(&mut self) -> bool {
        let now_ns = self.network.now_ns;
        let mut begun = false;
        for number in 0..self.next_ns.len() {
            let host = &mut self.network.stations[number].host;
            if self.next_ns[number] > now_ns || host.busy() >= self.workload.max_exchanges(number) {
                continue;
            }
            self.next_ns[number] = now_ns + self.workload.pauses_ns()[self.random.below(6) as usize];
            let plan = self.workload.plan(&mut self.random, number, self.turns[number]);
            self.turns[number] += 1;
            host.begin(plan, &mut self.random, now_ns);
            begun = true;
        }
        begun
    }

    /// Advances the time; no host starts an exchange.
    fn run_idle(&mut self, length_ns: i64) {
        let limit_ns = self.network.now_ns + length_ns;
        while self.network.now_ns < limit_ns {
            self.network.run_to_quiescence();
            self.network.advance(limit_ns);
        }
        self.network.run_to_quiescence();
    }

    /// Checks that the program recovers on an unimpaired network.
    fn check_recovery(&mut self) {
        let begun_ns = self.network.now_ns;
        self.network.set_unimpaired(true);
        self.run_idle(self.workload.quiet_ns());
        self.assert_idle();
        let before = self.tally();
        let plans = self.workload.recovery_plans();
        let count = plans.len() as u64;
        let now_ns = self.network.now_ns;
        for (station, plan) in plans {
            self.network.stations[station].host.begin(plan, &mut self.random, now_ns);
        }
        self.run_idle(RECOVERY_LIMIT_NS);
        let after = self.tally();
        assert_eq!(after.done - before.done, count, "{} s after the network has become good", {
            (now_ns - begun_ns) / SECOND_NS
        });
        self.run_idle(self.workload.quiet_ns());
        self.assert_idle();
        self.network.set_unimpaired(false);
    }

    fn tally(&self) -> Tally {
        let hosts = self.network.stations.iter().map(|station| &station.host);
        hosts.flat_map(|host| host.tallies.values()).copied().fold(Tally::default(), merged)
    }

    /// Checks that no exchange and no timer is left.
    fn assert_idle(&self) {
        let left = self.network.stations.iter().flat_map(|station| &station.host.exchanges).next();
        assert!(
            left.is_none(),
            "{:?}: the exchange does not end",
            left.map(|exchange| (exchange.kind, exchange.local))
        );
        let now_s = self.network.now_ns / SECOND_NS;
        assert_eq!(self.network.node.deadline_ns, None, "after {now_s} s the program waits for a time");
        assert_eq!(self.network.due_ns(), None, "after {now_s} s a host waits for a time");
    }
}

/// Runs a simulation of the wanted length and prints its result.
pub(crate) fn report(program: &str, name: &str, simulate: impl FnOnce(i64) -> Outcome) -> Outcome {
    let begun = std::time::Instant::now();
    let outcome = simulate(wanted_ns());
    let (all, carried) = (outcome.all(), outcome.carried);
    println!(
        "{program}, {name}: {:.2} h of the program's clock in {:.1} s: {} done, {} broken on purpose, {} dismissed, \
         {} reset, {} timed out; {} bytes, longest {} s; {} checks",
        wanted_ns() as f64 / 3_600e9,
        begun.elapsed().as_secs_f64(),
        all.done,
        all.broken,
        all.dismissed,
        all.reset,
        all.timed_out,
        all.bytes,
        all.longest_ns / SECOND_NS,
        outcome.checks
    );
    println!(
        "  {} frames, of which {} lost, {} doubled, {} delayed, {} overtaken",
        carried.frames, carried.faults.lost, carried.faults.doubled, carried.faults.delayed, carried.overtaken
    );
    for (kind, tally) in &outcome.tallies {
        println!("  {kind}: {tally:?}");
    }
    outcome
}
