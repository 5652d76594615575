//! A program on Ethernets with fault injection, and the hosts on them: the event loop, and a digest of all frames. Does
//! not interpret frames; `path.rs` does for paths with a smaller MTU.

use super::disk::Disk;
use super::host::Host;
use super::path;
use super::wire::{Carried, Wire};
use crate::node::Node;
use quaject_esp_exec::datum::Datum;
use quaject_esp_ir::ir::ChannelId;
use quaject_esp_run::FaultPlan;
use std::collections::hash_map::DefaultHasher;
use std::hash::Hasher;

/// A host and its links.
pub(crate) struct Station {
    pub(crate) host: Host,
    up: Wire,
    down: Wire,
    /// The largest packet that the path to the host forwards, if it is smaller than the host's.
    pub(crate) path_mtu: Option<u16>,
    /// Packets of the program that were discarded on the path, and reported.
    pub(crate) reported: u64,
}

/// An Ethernet of the program.
struct Link {
    to: ChannelId,
    from: ChannelId,
    stations: Vec<usize>,
}

pub(crate) struct Network<'p> {
    pub(crate) node: Node<'p>,
    pub(crate) now_ns: i64,
    pub(crate) stations: Vec<Station>,
    links: Vec<Link>,
    disk: Disk,
    digest: DefaultHasher,
}

impl<'p> Network<'p> {
    /// Hosts on links; a link is the names of the channels to and from the program.
    pub(crate) fn new(node: Node<'p>, links: Vec<((&str, &str), Vec<Host>)>, faults: &FaultPlan) -> Network<'p> {
        let mut stations = Vec::new();
        let links = links.into_iter().map(|((to, from), hosts)| {
            let numbers = stations.len()..stations.len() + hosts.len();
            for (number, host) in numbers.clone().zip(hosts) {
                let wire = |direction: &str| Wire::new(faults, &format!("{direction}{number}"));
                stations.push(Station { host, up: wire("up"), down: wire("down"), path_mtu: None, reported: 0 });
            }
            Link { to: node.channel(to), from: node.channel(from), stations: numbers.collect() }
        });
        let links = links.collect();
        Network { node, now_ns: 0, stations, links, disk: Disk::default(), digest: DefaultHasher::new() }
    }

    /// Switches faults off or on.
    pub(crate) fn set_unimpaired(&mut self, is_unimpaired: bool) {
        for station in &mut self.stations {
            station.up.set_unimpaired(is_unimpaired);
            station.down.set_unimpaired(is_unimpaired);
        }
    }

    /// Executes all events of the current time.
    pub(crate) fn run_to_quiescence(&mut self) {
        let now_ns = self.now_ns;
        self.node.run(now_ns);
        loop {
            let mut moved = false;
            for number in 0..self.links.len() {
                moved |= self.exchange(number);
            }
            if moved || self.node.deadline_ns.is_some_and(|deadline_ns| deadline_ns <= now_ns) {
                self.node.run(now_ns);
            }
            while let Some((channel, message)) = self.node.next_output() {
                moved = true;
                self.deliver(channel, &message);
            }
            if !moved {
                return;
            }
        }
    }

    /// Hosts receive and send frames; whether the program gets one.
    fn exchange(&mut self, number: usize) -> bool {
        let (now_ns, link) = (self.now_ns, &self.links[number]);
        let mut moved = false;
        for station in &link.stations {
            let Station { host, up, down, .. } = &mut self.stations[*station];
            while let Some(frame) = down.leave(now_ns) {
                host.receive(frame);
            }
            host.step(now_ns);
            while let Some(frame) = host.sent() {
                up.enter(frame, now_ns);
            }
            while let Some(frame) = up.leave(now_ns) {
                note(&mut self.digest, now_ns, *station, &frame);
                self.node.offer(link.to, vec![Datum::Bytes(frame)]);
                moved = true;
            }
        }
        moved
    }

    /// Delivers an output of the program.
    fn deliver(&mut self, channel: ChannelId, message: &[Datum]) {
        let Some(link) = self.links.iter().position(|link| link.from == channel) else {
            return self.disk.execute(&mut self.node, channel, message);
        };
        let [Datum::Bytes(frame)] = message else { panic!("{message:?}") };
        note(&mut self.digest, self.now_ns, self.stations.len() + link, frame);
        for station in &self.links[link].stations {
            let Station { host, up, down, path_mtu, reported } = &mut self.stations[*station];
            if host.takes(frame) {
                match path_mtu.and_then(|mtu| path::report_of_discarded(frame, mtu)) {
                    Some(report) => {
                        *reported += 1;
                        up.enter(report, self.now_ns);
                    }
                    None => down.enter(frame.clone(), self.now_ns),
                }
            }
        }
    }

    /// The time of the next event.
    pub(crate) fn due_ns(&self) -> Option<i64> {
        let stations = self
            .stations
            .iter()
            .flat_map(|Station { host, up, down, .. }| [host.due_ns, up.due_ns(), down.due_ns()].into_iter().flatten());
        stations.chain(self.node.deadline_ns).min()
    }

    /// Advances the clock to the next event, or to this time.
    pub(crate) fn advance(&mut self, limit_ns: i64) {
        let due_ns = self.due_ns().unwrap_or(limit_ns).min(limit_ns);
        assert!(due_ns > self.now_ns, "after {} ns the clock does not advance", self.now_ns);
        self.now_ns = due_ns;
    }

    /// Statistics of all links.
    pub(crate) fn carried(&self) -> Carried {
        let mut carried = Carried::default();
        for station in &self.stations {
            station.up.count(&mut carried);
            station.down.count(&mut carried);
        }
        carried
    }

    /// The number of packets that were discarded on the path and reported.
    pub(crate) fn reported(&self) -> u64 {
        self.stations.iter().map(|station| station.reported).sum()
    }

    /// A digest of all frames with their times.
    pub(crate) fn digest(&self) -> u64 {
        self.digest.finish()
    }
}

fn note(digest: &mut DefaultHasher, now_ns: i64, place: usize, frame: &[u8]) {
    digest.write_i64(now_ns);
    digest.write_usize(place);
    digest.write(frame);
}
