//! Quiescence: the state of a program that has no enabled step (reference, section 8). The wakeable instances are the
//! least fixed point of "the environment, the clock or a wakeable instance can wake it". A program whose other
//! instances have terminated, or may block forever, is quiescent or has terminated; any other program is deadlocked.

use crate::code::{BranchCode, GuardCode, OperationCode, WaitCode};
use crate::environment::Readiness;
use crate::environment_io::Input;
use crate::report::edges_by_member;
use crate::report::{AwaitedEvents, FaultReport, Outcome};
use crate::state::Control;
use crate::step::{StepContext, channel_of};
use quaject_esp_ir::ir::WaitForEdge;
use quaject_esp_ir::ir::{Blocking, ChannelId, Direction, Fault, ProcessId};

/// What could wake a blocked instance, apart from its partners.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WakeSource {
    /// Nothing.
    None,
    /// The environment or the clock.
    Environment,
    /// Any wakeable instance: it may release objects.
    OtherInstances,
}

impl StepContext<'_> {
    /// Classifies a state without enabled steps: quiescent, terminated, or deadlocked.
    pub(crate) fn classify_quiescence(&mut self) -> Outcome {
        let mut awaited = AwaitedEvents::default();
        let count = self.state.instances.len();
        let mut wakeable = vec![false; count];
        let mut others = vec![false; count];
        for instance in 0..count as u32 {
            let Some(wait) = self.wait(instance) else { continue };
            for (number, branch) in wait.branches.iter().enumerate() {
                match self.wake_source(instance, number as u32, branch, &mut awaited) {
                    WakeSource::None => {}
                    WakeSource::Environment => wakeable[instance as usize] = true,
                    WakeSource::OtherInstances => others[instance as usize] = true,
                }
            }
        }
        self.close_wakeable(&mut wakeable, &others);
        let stuck: Vec<u32> = (0..count as u32)
            .filter(|instance| {
                let idle = self.wait(*instance).is_some_and(|wait| wait.blocking == Blocking::MayBlockForever);
                self.state.instances[*instance as usize].control != Control::Ended
                    && !wakeable[*instance as usize]
                    && !idle
            })
            .collect();
        if let Some(first) = stuck.first() {
            return Outcome::Faulted(Box::new(self.deadlock(*first, &stuck)));
        }
        if !wakeable.contains(&true) {
            return Outcome::Ended(0);
        }
        awaited.readable.sort_unstable();
        awaited.readable.dedup();
        awaited.writable.sort_unstable();
        awaited.writable.dedup();
        Outcome::Quiescent(awaited)
    }

    fn wake_source(
        &mut self,
        instance: u32,
        number: u32,
        branch: &BranchCode,
        awaited: &mut AwaitedEvents,
    ) -> WakeSource {
        let known = self.state.instances[instance as usize].branches[number as usize];
        if !known.open {
            return match branch.guard {
                GuardCode::Region(_) => WakeSource::OtherInstances,
                GuardCode::Open | GuardCode::Register(_) => WakeSource::None,
            };
        }
        match &branch.operation {
            OperationCode::After { .. } => {
                let earliest = awaited.deadline_ns.map_or(known.deadline_ns, |time| time.min(known.deadline_ns));
                awaited.deadline_ns = Some(earliest);
                WakeSource::Environment
            }
            OperationCode::In { channel, .. } if !self.is_internal(*channel) => {
                match self.input_for(instance, number) {
                    Input::Closed => WakeSource::None,
                    Input::PoolExhausted => WakeSource::OtherInstances,
                    Input::NoMatch => WakeSource::Environment,
                    Input::Pending | Input::Matching => {
                        awaited.readable.push(*channel);
                        WakeSource::Environment
                    }
                }
            }
            OperationCode::Out { channel, .. } if !self.is_internal(*channel) => {
                if self.state.closed[channel.0 as usize] || self.environment.readiness(*channel) == Readiness::Closed {
                    self.state.closed[channel.0 as usize] = true;
                    return WakeSource::None;
                }
                awaited.writable.push(*channel);
                WakeSource::Environment
            }
            OperationCode::In { .. } | OperationCode::Out { .. } => WakeSource::None,
        }
    }

    /// Computes the least fixed point: an instance is wakeable if a wakeable instance could be its partner.
    fn close_wakeable(&self, wakeable: &mut [bool], others: &[bool]) {
        // Wakeable instances are counted per process, because programs have many instances of few processes.
        let mut wakeable_of_process = vec![0_u32; self.program.processes.len()];
        for (instance, _) in wakeable.iter().enumerate().filter(|(_, wakeable)| **wakeable) {
            wakeable_of_process[self.code.instances[instance].0.0 as usize] += 1;
        }
        loop {
            let mut grown = false;
            for instance in 0..wakeable.len() {
                if wakeable[instance] {
                    continue;
                }
                let Some(wait) = self.wait(instance as u32) else { continue };
                let is_any_wakeable = wakeable_of_process.iter().any(|count| *count > 0);
                if others[instance] && is_any_wakeable
                    || self.has_wakeable_partner(wait, instance as u32, &wakeable_of_process)
                {
                    wakeable[instance] = true;
                    wakeable_of_process[self.code.instances[instance].0.0 as usize] += 1;
                    grown = true;
                }
            }
            if !grown {
                return;
            }
        }
    }

    /// Whether an instance waits for a communication with a wakeable one.
    fn has_wakeable_partner(&self, wait: &WaitCode, instance: u32, wakeable_of_process: &[u32]) -> bool {
        let known = &self.state.instances[instance as usize].branches;
        wait.branches.iter().zip(known).filter(|(_, known)| known.open).any(|(branch, _)| {
            channel_of(branch).is_some_and(|channel| {
                let wanted = direction(branch).other();
                let mut wakeable_of_process = (0..).zip(wakeable_of_process).filter(|(_, count)| **count > 0);
                self.is_internal(channel)
                    && wakeable_of_process
                        .any(|(process, _)| self.code.process_uses(ProcessId(process), channel, wanted))
            })
        })
    }

    /// The possible partners: instances that have not terminated and whose code has an operation of the other
    /// direction on the channel.
    fn partners(&self, instance: u32, channel: ChannelId, direction: Direction) -> Vec<u32> {
        (0..self.state.instances.len() as u32)
            .filter(|other| {
                *other != instance && self.code.uses(*other, channel, direction.other()) && !self.has_ended(*other)
            })
            .collect()
    }

    /// Whether an instance has terminated, or waits for nothing because it has.
    fn has_ended(&self, instance: u32) -> bool {
        let waits_for_nothing = |wait: &WaitCode| wait.branches.is_empty() && wait.otherwise.is_none();
        self.state.instances[instance as usize].control == Control::Ended
            || self.wait(instance).is_some_and(waits_for_nothing)
    }

    fn deadlock(&self, first: u32, stuck: &[u32]) -> FaultReport {
        let mut waits = Vec::new();
        for instance in stuck {
            let Some(wait) = self.wait(*instance) else { continue };
            let known = &self.state.instances[*instance as usize].branches;
            let before = waits.len();
            for (branch, _) in wait.branches.iter().zip(known).filter(|(_, known)| known.open) {
                if let Some(channel) = channel_of(branch) {
                    let direction = direction(branch);
                    waits.push(WaitForEdge {
                        instance: *instance,
                        location: branch.location,
                        operation: Some((channel, direction)),
                        partners: self.partners(*instance, channel, direction),
                    });
                }
            }
            if waits.len() == before {
                let location = wait.location;
                waits.push(WaitForEdge { instance: *instance, location, operation: None, partners: Vec::new() });
            }
        }
        let location = waits.first().map(|wait| wait.location).unwrap_or_default();
        let channel = waits.first().and_then(|wait| wait.operation).map(|(channel, _)| channel);
        let members = stuck.iter().flat_map(|instance| {
            let known = &self.state.instances[*instance as usize].branches;
            let members = self.wait(*instance).into_iter().flat_map(|wait| wait.members.iter());
            members.filter(|(branch, _)| known[*branch as usize].open).map(|(_, wait)| (*instance, wait))
        });
        let members: Vec<(u32, &WaitForEdge)> = members.collect();
        let waits = edges_by_member(waits, &members);
        FaultReport { fault: Fault::Deadlock, instance: first, location, channel, name: None, waits }
    }
}

pub(crate) fn direction(branch: &BranchCode) -> Direction {
    match &branch.operation {
        OperationCode::In { .. } | OperationCode::After { .. } => Direction::In,
        OperationCode::Out { .. } => Direction::Out,
    }
}
