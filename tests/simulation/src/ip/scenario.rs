//! Hosts on a bad network that have something to do with the program all the time; and, now and then, hours in which
//! the network is good: then everything ends, the program waits for nothing, and whatever is begun comes to a good
//! end.

use super::host::{Tallies, Tally};
use super::network::Network;
use super::talk::Plan;
use super::wire::Carried;
use crate::{SECOND_NS, wanted_ns};
use quaject_test_support::random::Random;

/// Between two trials.
const TRIAL_NS: i64 = 4 * 3_600 * SECOND_NS;
/// How long everything that is begun on a good network may take, with what hosts remember of earlier ports.
const PROMPT_NS: i64 = 200 * SECOND_NS;

/// What hosts do.
pub(crate) trait Workload {
    /// After how long on a good network, without anything new, nothing is left of what was before.
    fn quiet_ns(&self) -> i64;
    /// How many talks a host has at once.
    fn most(&self, station: usize) -> usize;
    /// For how long a host rests between the beginnings of two.
    fn pauses_ns(&self) -> [i64; 6];
    /// What a host does in this turn.
    fn plan(&self, random: &mut Random, station: usize, turn: u64) -> Plan;
    /// What hosts do all at once when the network is good.
    fn trial(&self) -> Vec<(usize, Plan)>;
}

/// What has come of it.
pub(crate) struct Outcome {
    pub(crate) tallies: Tallies,
    pub(crate) carried: Carried,
    pub(crate) trials: u64,
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

    /// Talks that have ended with an error.
    pub(crate) fn failed(&self) -> u64 {
        let all = self.all();
        all.dismissed + all.reset + all.timed_out
    }
}

struct Scenario<'n, 'p, W> {
    network: &'n mut Network<'p>,
    workload: W,
    random: Random,
    /// By station: when it begins the next talk.
    next_ns: Vec<i64>,
    /// How many it has begun.
    turns: Vec<u64>,
}

/// Runs it for so long, beside the trials.
pub(crate) fn simulate(mut network: Network<'_>, workload: impl Workload, seed: u64, length_ns: i64) -> Outcome {
    let (next_ns, turns) = (vec![0; network.stations.len()], vec![0; network.stations.len()]);
    let mut scenario = Scenario { network: &mut network, workload, random: Random(seed), next_ns, turns };
    // What has no pools holds all its memory from the beginning.
    assert_eq!(scenario.network.node.program.types.pools().len(), 0, "objects are to be counted");
    let mut trials = 0;
    let mut busy_ns = 0;
    while busy_ns < length_ns {
        let part_ns = TRIAL_NS.min(length_ns - busy_ns);
        scenario.go_on(scenario.network.now_ns + part_ns);
        busy_ns += part_ns;
        scenario.trial();
        trials += 1;
    }
    let mut tallies = Tallies::new();
    for station in &network.stations {
        for (kind, tally) in &station.host.tallies {
            let sum = tallies.entry(*kind).or_default();
            *sum = merged(*sum, *tally);
        }
    }
    Outcome { tallies, carried: network.carried(), trials, digest: network.digest() }
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
    /// Everybody is busy until then.
    fn go_on(&mut self, limit_ns: i64) {
        while self.network.now_ns < limit_ns {
            self.network.settle();
            while self.begin() {
                self.network.settle();
            }
            let now_ns = self.network.now_ns;
            let next_ns = self.next_ns.iter().copied().filter(|next_ns| *next_ns > now_ns).fold(limit_ns, i64::min);
            self.network.advance(next_ns);
        }
    }

    /// Hosts that have time begin something; whether one did.
    fn begin(&mut self) -> bool {
        let now_ns = self.network.now_ns;
        let mut begun = false;
        for number in 0..self.next_ns.len() {
            let host = &mut self.network.stations[number].host;
            if self.next_ns[number] > now_ns || host.busy() >= self.workload.most(number) {
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

    /// The network is good, and nobody begins anything.
    fn rest(&mut self, length_ns: i64) {
        let limit_ns = self.network.now_ns + length_ns;
        while self.network.now_ns < limit_ns {
            self.network.settle();
            self.network.advance(limit_ns);
        }
        self.network.settle();
    }

    /// What was promised for a good network.
    fn trial(&mut self) {
        let begun_ns = self.network.now_ns;
        self.network.mend(true);
        self.rest(self.workload.quiet_ns());
        self.assert_quiet();
        let before = self.tally();
        let plans = self.workload.trial();
        let count = plans.len() as u64;
        let now_ns = self.network.now_ns;
        for (station, plan) in plans {
            self.network.stations[station].host.begin(plan, &mut self.random, now_ns);
        }
        self.rest(PROMPT_NS);
        let after = self.tally();
        assert_eq!(after.done - before.done, count, "{} s after the network has become good", {
            (now_ns - begun_ns) / SECOND_NS
        });
        self.rest(self.workload.quiet_ns());
        self.assert_quiet();
        self.network.mend(false);
    }

    fn tally(&self) -> Tally {
        let hosts = self.network.stations.iter().map(|station| &station.host);
        hosts.flat_map(|host| host.tallies.values()).copied().fold(Tally::default(), merged)
    }

    /// Nobody waits for anything but others.
    fn assert_quiet(&self) {
        let left = self.network.stations.iter().flat_map(|station| &station.host.talks).next();
        assert!(left.is_none(), "{:?}: no end in sight", left.map(|talk| (talk.kind, talk.local)));
        let now_s = self.network.now_ns / SECOND_NS;
        assert_eq!(self.network.node.deadline_ns, None, "after {now_s} s the program waits for a time");
        assert_eq!(self.network.due_ns(), None, "after {now_s} s a host waits for a time");
    }
}

/// How long it shall be, and what has come of it, in words.
pub(crate) fn report(program: &str, name: &str, simulate: impl FnOnce(i64) -> Outcome) -> Outcome {
    let begun = std::time::Instant::now();
    let outcome = simulate(wanted_ns());
    let (all, carried) = (outcome.all(), outcome.carried);
    println!(
        "{program}, {name}: {:.2} h of the program's clock in {:.1} s: {} done, {} broken on purpose, {} dismissed, \
         {} reset, {} timed out; {} bytes, {} s for one at most; {} trials",
        wanted_ns() as f64 / 3_600e9,
        begun.elapsed().as_secs_f64(),
        all.done,
        all.broken,
        all.dismissed,
        all.reset,
        all.timed_out,
        all.bytes,
        all.longest_ns / SECOND_NS,
        outcome.trials
    );
    println!(
        "  {} frames, of which {} lost, {} doubled, {} delayed, {} overtaken",
        carried.frames, carried.suffered.lost, carried.suffered.doubled, carried.suffered.delayed, carried.overtaken
    );
    for (kind, tally) in &outcome.tallies {
        println!("  {kind}: {tally:?}");
    }
    outcome
}
