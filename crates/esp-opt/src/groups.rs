//! Chooses the groups to fuse: the connected components of the graph of processes and internal channels. A component
//! that exceeds a limit is divided, or loses the process that prevents its fusion, and what remains is tried again.
//! Knows no states of processes.

use crate::fuse::{build_fused_process, install_fused_process};
use crate::limits::{CodeGrowth, LimitKind, Limits, code_size};
use crate::observability::ScheduleIndependence;
use crate::refusal::Refusal;
use quaject_esp_ir::ir::{Boundary, Direction, Process, ProcessId, Program};
use std::collections::BTreeSet;

/// The minimal number of processes of an oversized group that is divided: its size is not due to a single process.
const MIN_PROCESSES_TO_DIVIDE: usize = 16;

/// The result of fusing some processes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FusionAttempt {
    /// The processes, in source order.
    pub processes: Vec<ProcessId>,
    /// The result.
    pub outcome: FusionOutcome,
}

/// The result of fusing processes that channels connect.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FusionOutcome {
    /// They are one process.
    Fused {
        /// Nodes of its product.
        nodes: usize,
        /// Its instructions and terminators.
        instructions: usize,
        /// Those of its members' processes.
        before: usize,
    },
    /// The group exceeds a limit: each half is a group of its own.
    Divided(Refusal),
    /// The process was removed from the group so that the others could be fused; it runs separately.
    Excluded(Refusal),
    /// They run separately.
    Refused(Refusal),
    /// The process runs separately, as no channel connects it to another.
    Alone,
}

impl FusionAttempt {
    /// Whether they are one process now.
    pub fn is_fused(&self) -> bool {
        match self.outcome {
            FusionOutcome::Fused { .. } => true,
            FusionOutcome::Divided(_)
            | FusionOutcome::Excluded(_)
            | FusionOutcome::Refused(_)
            | FusionOutcome::Alone => false,
        }
    }
}

/// Whether a group may be fused at all; the reason if not.
type Admission<'a> = &'a dyn Fn(&[ProcessId]) -> Option<Refusal>;

/// Fuses the connected components of a program, as far as possible. Refused processes run unchanged. Terminates within
/// the limits' fuel, for any number of processes.
pub fn fuse_all(program: &mut Program, checked: bool, limits: Limits) -> Vec<FusionAttempt> {
    fuse_admitted(program, checked, limits, &|_| None)
}

/// Likewise, but only the components whose schedule is not observable: the program's output is unchanged.
pub fn fuse_if_schedule_independent(
    program: &mut Program,
    checked: bool,
    limits: Limits,
    independence: &ScheduleIndependence,
) -> Vec<FusionAttempt> {
    fuse_admitted(program, checked, limits, &|processes| independence.violation_by(processes))
}

fn fuse_admitted(program: &mut Program, checked: bool, limits: Limits, admission: Admission<'_>) -> Vec<FusionAttempt> {
    let (machines, attempts) = build_state_machines(program, checked, limits, admission);
    for (processes, machine) in machines {
        install_fused_process(program, &processes, machine);
    }
    attempts
}

/// The state machines that groups become, with their members, and the result for every group.
fn build_state_machines(
    program: &Program,
    checked: bool,
    limits: Limits,
    admission: Admission<'_>,
) -> (Vec<(Vec<ProcessId>, Process)>, Vec<FusionAttempt>) {
    let all: Vec<ProcessId> = (0..program.processes.len() as u32).map(ProcessId).collect();
    let mut machines = Vec::new();
    let mut attempts = Vec::new();
    let mut fuel = limits.fuel;
    let mut worklist = connected_components(program, &all);
    let connected: BTreeSet<ProcessId> = worklist.iter().flatten().copied().collect();
    let alone = all.into_iter().filter(|process| !connected.contains(process));
    attempts.extend(alone.map(|process| FusionAttempt { processes: vec![process], outcome: FusionOutcome::Alone }));
    worklist.retain(|processes| {
        let refusal = admission(processes);
        let is_admitted = refusal.is_none();
        let refused =
            |refusal| FusionAttempt { processes: processes.clone(), outcome: FusionOutcome::Refused(refusal) };
        attempts.extend(refusal.map(refused));
        is_admitted
    });
    worklist.reverse();
    while let Some(processes) = worklist.pop() {
        let mut share = limits.fuel_share(program, &processes, fuel);
        fuel -= share;
        let built = build_fused_process(program, &processes, checked, limits, &mut share);
        fuel += share;
        match built {
            Ok(fused) => {
                let size = |process: &ProcessId| code_size(&program.processes[process.0 as usize].body);
                let before = processes.iter().map(size).sum();
                let instructions = code_size(&fused.process.body);
                let outcome = FusionOutcome::Fused { nodes: fused.nodes, instructions, before };
                machines.push((processes.clone(), fused.process));
                attempts.push(FusionAttempt { processes, outcome });
            }
            Err(refusal) => {
                let (attempt, mut groups) = regroup(program, processes, refusal, limits.growth);
                attempts.push(attempt);
                groups.reverse();
                worklist.append(&mut groups);
            }
        }
    }
    (machines, attempts)
}

/// The report on a group that was refused, and the smaller groups to try instead.
fn regroup(
    program: &Program,
    processes: Vec<ProcessId>,
    refusal: Refusal,
    growth: CodeGrowth,
) -> (FusionAttempt, Vec<Vec<ProcessId>>) {
    if let Some(groups) = halves(program, &processes, &refusal, growth) {
        return (FusionAttempt { processes, outcome: FusionOutcome::Divided(refusal) }, groups);
    }
    // No process is excluded: each attempt explores another product, which takes too long.
    let is_limited = growth == CodeGrowth::Conservative && matches!(refusal, Refusal::LimitExceeded { .. });
    let excluded = excluded_process(program, &processes, &refusal).filter(|_| processes.len() > 1 && !is_limited);
    let rest = |excluded: &ProcessId| {
        let rest: Vec<ProcessId> = processes.iter().copied().filter(|process| process != excluded).collect();
        connected_components(program, &rest)
    };
    match excluded.map(|excluded| (excluded, rest(&excluded))) {
        Some((excluded, groups)) if !groups.is_empty() => {
            (FusionAttempt { processes: vec![excluded], outcome: FusionOutcome::Excluded(refusal) }, groups)
        }
        Some(_) | None => (FusionAttempt { processes, outcome: FusionOutcome::Refused(refusal) }, Vec::new()),
    }
}

/// The components of both halves, in source order, of a group with too many members.
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
        Refusal::LimitExceeded { .. } if processes.len() >= MIN_PROCESSES_TO_DIVIDE => {}
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
    let groups: Vec<_> = [first, second].into_iter().flat_map(|half| connected_components(program, half)).collect();
    (!groups.is_empty()).then_some(groups)
}

/// The process without which the others might be fused.
fn excluded_process(program: &Program, processes: &[ProcessId], refusal: &Refusal) -> Option<ProcessId> {
    match refusal {
        Refusal::Unsupported { process, .. } | Refusal::AlreadyFused { process } | Refusal::MayStarve { process } => {
            Some(*process)
        }
        Refusal::LimitExceeded { costliest, .. } => *costliest,
        Refusal::ManualPath { .. } | Refusal::ObservesAbsence { .. } | Refusal::ScheduleDependent { .. } => None,
        // Of the two ends within the group, the one with fewer processes.
        Refusal::SharedChannel { channel } => {
            let at = |direction: Direction| -> Vec<ProcessId> {
                let is_at = |process: &&ProcessId| {
                    let sites = &program.processes[process.0 as usize].sites;
                    sites.iter().any(|site| site.channel == *channel && site.direction == direction)
                };
                processes.iter().filter(is_at).copied().collect()
            };
            let (readers, writers) = (at(Direction::In), at(Direction::Out));
            let is_reader_end = writers.is_empty() || !readers.is_empty() && readers.len() <= writers.len();
            let smaller_end = if is_reader_end { readers } else { writers };
            smaller_end.first().copied()
        }
    }
}

/// The connected components of these processes with at least two instances. An internal channel connects all its users
/// if the processes include both a reader and a writer of it.
fn connected_components(program: &Program, processes: &[ProcessId]) -> Vec<Vec<ProcessId>> {
    let inside: BTreeSet<ProcessId> = processes.iter().copied().collect();
    let mut users: Vec<Vec<(ProcessId, Direction)>> = vec![Vec::new(); program.channels.len()];
    for process in &inside {
        for site in &program.processes[process.0 as usize].sites {
            users[site.channel.0 as usize].push((*process, site.direction));
        }
    }
    let mut sets = DisjointSets { parent: (0..program.processes.len()).collect() };
    for (channel, users) in users.iter().enumerate() {
        let has = |direction: Direction| users.iter().any(|(_, other)| *other == direction);
        let is_internal = program.channels[channel].boundary == Boundary::Internal;
        if !is_internal || !has(Direction::In) || !has(Direction::Out) {
            continue;
        }
        for (user, _) in users {
            sets.union(user.0 as usize, users[0].0.0 as usize);
        }
    }
    let mut groups: Vec<Vec<ProcessId>> = vec![Vec::new(); program.processes.len()];
    for process in &inside {
        groups[sets.find(process.0 as usize)].push(*process);
    }
    let instances = |group: &Vec<ProcessId>| -> u32 {
        group.iter().map(|process| program.processes[process.0 as usize].replicas).sum()
    };
    groups.retain(|group| instances(group) > 1);
    groups.sort();
    groups
}

/// Union-find over indices, with path halving.
struct DisjointSets {
    parent: Vec<usize>,
}

impl DisjointSets {
    fn find(&mut self, mut element: usize) -> usize {
        while self.parent[element] != element {
            self.parent[element] = self.parent[self.parent[element]];
            element = self.parent[element];
        }
        element
    }

    fn union(&mut self, a: usize, b: usize) {
        let (a, b) = (self.find(a), self.find(b));
        self.parent[a] = b;
    }
}
