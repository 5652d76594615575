//! Which processes are fused: every set of them that channels connect; when that is too large or has a process that
//! cannot be fused, the sets that are left without one. Says for each process what became of it. Knows no states.

use crate::fuse::{install, make};
use crate::limits::{CodeGrowth, LimitKind, Limits, code_size};
use crate::order::Order;
use crate::refusal::Refusal;
use quaject_esp_ir::ir::{Boundary, Direction, Process, ProcessId, Program};
use std::collections::BTreeSet;

/// Of so many processes, no single one is in the way.
const MANY: usize = 16;

/// What became of some processes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Attempt {
    /// The processes, in order of text.
    pub processes: Vec<ProcessId>,
    /// What became of them.
    pub outcome: Outcome,
}

/// What became of processes that channels connect.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// They are one process.
    Fused {
        /// Nodes of its product.
        nodes: usize,
        /// Its instructions and ends of blocks.
        instructions: usize,
        /// Those of its members' processes.
        before: usize,
    },
    /// They were too many: each half is a group of its own.
    Divided(Refusal),
    /// One process was left out so that the others could be fused; it runs on its own.
    LeftOut(Refusal),
    /// They run on their own.
    Refused(Refusal),
    /// They run on their own, as no channel leads from one process to another.
    Alone,
}

impl Attempt {
    /// Whether they are one process now.
    pub fn is_fused(&self) -> bool {
        match self.outcome {
            Outcome::Fused { .. } => true,
            Outcome::Divided(_) | Outcome::LeftOut(_) | Outcome::Refused(_) | Outcome::Alone => false,
        }
    }
}

/// Fuses every set of processes that channels connect, without those that are in the way. What is refused runs as it
/// did. Ends within the limits' fuel, for however many processes.
pub fn fuse_all(program: Program, checked: bool, limits: Limits) -> (Program, Vec<Attempt>) {
    fuse_unless(program, checked, limits, &|_| None)
}

/// Likewise, but only those sets in which another order of processes cannot be seen: the program shows the same.
pub fn fuse_unseen(program: Program, checked: bool, limits: Limits, order: &Order) -> (Program, Vec<Attempt>) {
    fuse_unless(program, checked, limits, &|processes| order.seen(processes))
}

fn fuse_unless(
    mut program: Program,
    checked: bool,
    limits: Limits,
    refused: &dyn Fn(&[ProcessId]) -> Option<Refusal>,
) -> (Program, Vec<Attempt>) {
    let (machines, attempts) = machines(&program, checked, limits, refused);
    machines.into_iter().for_each(|(processes, machine)| install(&mut program, &processes, machine));
    (program, attempts)
}

/// The state machines that sets of processes can be, and what became of all sets.
fn machines(
    program: &Program,
    checked: bool,
    limits: Limits,
    refused: &dyn Fn(&[ProcessId]) -> Option<Refusal>,
) -> (Vec<(Vec<ProcessId>, Process)>, Vec<Attempt>) {
    let all: Vec<ProcessId> = (0..program.processes.len() as u32).map(ProcessId).collect();
    let mut machines = Vec::new();
    let mut attempts = Vec::new();
    let mut fuel = limits.fuel;
    let mut work = connected(program, &all);
    let together: BTreeSet<ProcessId> = work.iter().flatten().copied().collect();
    let alone = all.into_iter().filter(|process| !together.contains(process));
    attempts.extend(alone.map(|process| Attempt { processes: vec![process], outcome: Outcome::Alone }));
    work.retain(|processes| {
        let refusal = refused(processes);
        let refused = refusal.map(|why| Attempt { processes: processes.clone(), outcome: Outcome::Refused(why) });
        attempts.extend(refused);
        attempts.last().is_none_or(|last| last.processes != *processes)
    });
    work.reverse();
    while let Some(processes) = work.pop() {
        let mut share = limits.fuel_share(program, &processes, fuel);
        fuel -= share;
        let made = make(program, &processes, checked, limits, &mut share);
        fuel += share;
        let refusal = match made {
            Ok(made) => {
                let before =
                    processes.iter().map(|process| code_size(&program.processes[process.0 as usize].body)).sum();
                let outcome = Outcome::Fused { nodes: made.nodes, instructions: code_size(&made.process.body), before };
                machines.push((processes.clone(), made.process));
                attempts.push(Attempt { processes, outcome });
                continue;
            }
            Err(refusal) => refusal,
        };
        if let Some(halves) = halves(program, &processes, &refusal, limits.growth) {
            attempts.push(Attempt { processes, outcome: Outcome::Divided(refusal) });
            work.extend(halves.into_iter().rev());
            continue;
        }
        // Who is in the way is known only after all has been walked in vain.
        let is_in_vain = limits.growth == CodeGrowth::Conservative && matches!(refusal, Refusal::LimitExceeded { .. });
        let out = in_the_way(program, &processes, &refusal).filter(|_| processes.len() > 1 && !is_in_vain);
        let Some(out) = out else {
            attempts.push(Attempt { processes, outcome: Outcome::Refused(refusal) });
            continue;
        };
        let rest: Vec<ProcessId> = processes.iter().copied().filter(|process| *process != out).collect();
        let mut rest = connected(program, &rest);
        if rest.is_empty() {
            attempts.push(Attempt { processes, outcome: Outcome::Refused(refusal) });
            continue;
        }
        attempts.push(Attempt { processes: vec![out], outcome: Outcome::LeftOut(refusal) });
        rest.reverse();
        work.append(&mut rest);
    }
    (machines, attempts)
}

/// The groups that are left of the halves, in order of text, of one with too many members.
fn halves(
    program: &Program,
    processes: &[ProcessId],
    refusal: &Refusal,
    growth: CodeGrowth,
) -> Option<Vec<Vec<ProcessId>>> {
    match refusal {
        Refusal::LimitExceeded { kind: LimitKind::Instances, .. } if processes.len() >= 4 => {}
        Refusal::LimitExceeded { .. } if growth == CodeGrowth::Conservative => return None,
        Refusal::LimitExceeded { kind: LimitKind::Fuel, .. } if processes.len() >= 4 => {}
        Refusal::LimitExceeded { .. } if processes.len() >= MANY => {}
        Refusal::LimitExceeded { .. }
        | Refusal::SharedChannel { .. }
        | Refusal::Unsupported { .. }
        | Refusal::ScheduleDependent { .. }
        | Refusal::AlreadyFused { .. }
        | Refusal::ManualPath { .. }
        | Refusal::ObservesAbsence { .. }
        | Refusal::MayStarve { .. } => return None,
    }
    let (first, second) = processes.split_at(processes.len() / 2);
    let groups: Vec<_> = [first, second].into_iter().flat_map(|half| connected(program, half)).collect();
    (!groups.is_empty()).then_some(groups)
}

/// The process without which the others might be fused.
fn in_the_way(program: &Program, processes: &[ProcessId], refusal: &Refusal) -> Option<ProcessId> {
    match refusal {
        Refusal::Unsupported { process, .. } | Refusal::AlreadyFused { process } | Refusal::MayStarve { process } => {
            Some(*process)
        }
        Refusal::LimitExceeded { costliest, .. } => *costliest,
        Refusal::ManualPath { .. } | Refusal::ObservesAbsence { .. } | Refusal::ScheduleDependent { .. } => None,
        // Of the ends in the group, those are left out that are fewer.
        Refusal::SharedChannel { channel } => {
            let at = |direction: Direction| -> Vec<ProcessId> {
                let is_at = |process: &&ProcessId| {
                    let sites = &program.processes[process.0 as usize].sites;
                    sites.iter().any(|site| site.channel == *channel && site.direction == direction)
                };
                processes.iter().filter(is_at).copied().collect()
            };
            let (readers, writers) = (at(Direction::In), at(Direction::Out));
            let readers_go = writers.is_empty() || !readers.is_empty() && readers.len() <= writers.len();
            let fewer = if readers_go { readers } else { writers };
            fewer.first().copied()
        }
    }
}

/// The sets of these processes that internal channels connect, of two instances and more. A channel that others write
/// or read, too, connects those of them that could meet on it.
fn connected(program: &Program, processes: &[ProcessId]) -> Vec<Vec<ProcessId>> {
    let inside: BTreeSet<ProcessId> = processes.iter().copied().collect();
    let mut users: Vec<Vec<(ProcessId, Direction)>> = vec![Vec::new(); program.channels.len()];
    for process in &inside {
        for site in &program.processes[process.0 as usize].sites {
            users[site.channel.0 as usize].push((*process, site.direction));
        }
    }
    // Of each process, one that stands for its set.
    let mut set: Vec<usize> = (0..program.processes.len()).collect();
    fn root(set: &mut [usize], mut of: usize) -> usize {
        while set[of] != of {
            set[of] = set[set[of]];
            of = set[of];
        }
        of
    }
    for (channel, users) in users.iter().enumerate() {
        let has = |direction: Direction| users.iter().any(|(_, other)| *other == direction);
        let is_internal = program.channels[channel].boundary == Boundary::Internal;
        if !is_internal || !has(Direction::In) || !has(Direction::Out) {
            continue;
        }
        for (user, _) in users {
            let (from, to) = (root(&mut set, user.0 as usize), root(&mut set, users[0].0.0 as usize));
            set[from] = to;
        }
    }
    let mut groups: Vec<Vec<ProcessId>> = vec![Vec::new(); program.processes.len()];
    for process in &inside {
        let set = root(&mut set, process.0 as usize);
        groups[set].push(*process);
    }
    let instances = |group: &Vec<ProcessId>| -> u32 {
        group.iter().map(|process| program.processes[process.0 as usize].replicas).sum()
    };
    groups.retain(|group| instances(group) > 1);
    groups.sort();
    groups
}
