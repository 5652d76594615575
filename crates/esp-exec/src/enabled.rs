//! The enabled steps of a state: which branches can rendezvous, which of them the environment is ready for, and which
//! the `pri alt`s allow. Changes nothing in a state, except that a channel that the environment has closed is recorded
//! as closed. Schedules choose among these steps.

use crate::code::{OperationCode, PayloadCode};
use crate::priority::{self, participants};
use crate::speculate::condition_changes_pools;
use crate::state::Control;
use crate::step::{EnvironmentMode, StepContext};
use crate::trace::Step;
use quaject_esp_ir::ir::AltOrder;

impl<'a> StepContext<'a> {
    /// All enabled steps, in order.
    pub(crate) fn enabled(&mut self) -> Vec<Step> {
        if let Some(instance) = self.state.unfinished {
            return vec![Step::Local { instance }];
        }
        let mut structurally_enabled = self.structurally_enabled();
        structurally_enabled.retain(|step| self.is_enabled(*step, EnvironmentMode::Polled));
        structurally_enabled
    }

    /// Every step that the control states of the instances allow, whether or not a partner or message is there.
    pub(crate) fn structurally_enabled(&self) -> Vec<Step> {
        let mut structurally_enabled = Vec::new();
        for instance in 0..self.state.instances.len() as u32 {
            if let Control::Running { .. } = self.state.instances[instance as usize].control {
                structurally_enabled.push(Step::Local { instance });
            }
            let Some(wait) = self.wait(instance) else { continue };
            for (branch, branch_code) in wait.branches.iter().enumerate() {
                let branch = branch as u32;
                match &branch_code.operation {
                    OperationCode::In { channel, .. } if self.is_internal(*channel) => {}
                    OperationCode::In { .. } => structurally_enabled.push(Step::FromEnvironment { instance, branch }),
                    OperationCode::Out { channel, .. } if self.is_internal(*channel) => {
                        for receiver in 0..self.state.instances.len() as u32 {
                            let Some(wait) = self.wait(receiver) else { continue };
                            structurally_enabled.extend((0..wait.branches.len() as u32).map(|receiver_branch| {
                                Step::Communicate { sender: instance, sender_branch: branch, receiver, receiver_branch }
                            }));
                        }
                    }
                    OperationCode::Out { .. } => structurally_enabled.push(Step::ToEnvironment { instance, branch }),
                    OperationCode::After { .. } => structurally_enabled.push(Step::After { instance, branch }),
                }
            }
            if wait.otherwise.is_some() {
                structurally_enabled.push(Step::Else { instance });
            }
        }
        structurally_enabled
    }

    /// Whether a step is enabled; any step may be passed. The state does not change, except that a channel that the
    /// environment has closed is recorded as closed.
    pub(crate) fn is_enabled(&mut self, step: Step, mode: EnvironmentMode) -> bool {
        match step {
            Step::Local { instance } => {
                let running = match self.state.instances.get(instance as usize).map(|instance| instance.control) {
                    Some(Control::Running { .. }) => true,
                    Some(Control::Waiting { .. } | Control::CapturedByPath { .. } | Control::Ended) | None => false,
                };
                running && self.state.unfinished.is_none_or(|unfinished| unfinished == instance)
            }
            _ if self.state.unfinished.is_some() => false,
            Step::Communicate { sender, sender_branch, receiver, receiver_branch } => {
                let (from, to) = ((sender, sender_branch), (receiver, receiver_branch));
                self.can_rendezvous(from, to) && self.is_allowed(step, mode)
            }
            Step::FromEnvironment { instance, branch } | Step::ToEnvironment { instance, branch } => {
                self.environment_ready(EnvironmentMode::Polled, instance, branch)
                    && step == self.environment_step(instance, branch)
                    && self.is_allowed(step, mode)
            }
            Step::After { instance, branch } => {
                let due = match self.open(instance, branch).map(|branch| &branch.operation) {
                    Some(OperationCode::After { .. }) => match mode {
                        EnvironmentMode::Polled => self.environment_ready(mode, instance, branch),
                        EnvironmentMode::AsTraced => true,
                    },
                    Some(OperationCode::In { .. } | OperationCode::Out { .. }) | None => false,
                };
                due && self.is_allowed(step, mode)
            }
            Step::Else { instance } => {
                let wait = self.state.instances.get(instance as usize).and_then(|_| self.wait(instance));
                wait.is_some_and(|wait| {
                    wait.otherwise.is_some()
                        && (0..wait.branches.len() as u32).all(|branch| !self.can_commit(mode, instance, branch))
                })
            }
        }
    }

    /// The step that an open branch takes whose operation is on an external channel or a time.
    pub(crate) fn environment_step(&self, instance: u32, branch: u32) -> Step {
        match self.open(instance, branch).map(|branch| &branch.operation) {
            Some(OperationCode::In { .. }) => Step::FromEnvironment { instance, branch },
            Some(OperationCode::Out { .. }) => Step::ToEnvironment { instance, branch },
            Some(OperationCode::After { .. }) | None => Step::After { instance, branch },
        }
    }

    /// Whether the `pri alt`s allow a step whose participants are all ready.
    pub(crate) fn is_allowed(&mut self, step: Step, mode: EnvironmentMode) -> bool {
        if participants(step).all(|(instance, branch)| self.is_first(mode, instance, branch)) {
            return true;
        }
        // A cycle of preferences needs at least two `pri alt`s.
        if (0..self.state.instances.len() as u32).filter(|instance| self.is_priority(*instance)).count() < 2 {
            return false;
        }
        let mut steps = self.structurally_enabled();
        steps.retain(|other| {
            *other == step
                || match *other {
                    Step::Communicate { sender, sender_branch, receiver, receiver_branch } => {
                        self.can_rendezvous((sender, sender_branch), (receiver, receiver_branch))
                    }
                    Step::FromEnvironment { instance, branch }
                    | Step::ToEnvironment { instance, branch }
                    | Step::After { instance, branch } => self.environment_ready(mode, instance, branch),
                    Step::Local { .. } | Step::Else { .. } => false,
                }
        });
        priority::is_allowed(step, &steps, &|instance| self.is_priority(instance))
    }

    /// Whether an instance waits at a `pri alt` of several branches.
    fn is_priority(&self, instance: u32) -> bool {
        self.wait(instance).is_some_and(|wait| match wait.order {
            AltOrder::Priority => wait.branches.len() > 1,
            AltOrder::Fair => false,
        })
    }

    /// Whether no earlier branch of a `pri alt` can commit.
    fn is_first(&mut self, mode: EnvironmentMode, instance: u32, branch: u32) -> bool {
        match self.wait(instance).map(|wait| wait.order) {
            Some(AltOrder::Priority) => (0..branch).all(|earlier| !self.can_commit(mode, instance, earlier)),
            Some(AltOrder::Fair) | None => true,
        }
    }

    /// Whether a branch is open and a partner, message or time is there for it.
    fn can_commit(&mut self, mode: EnvironmentMode, instance: u32, branch: u32) -> bool {
        let Some(branch_code) = self.open(instance, branch) else { return false };
        let (channel, sends) = match &branch_code.operation {
            OperationCode::In { channel, .. } => (*channel, false),
            OperationCode::Out { channel, .. } => (*channel, true),
            OperationCode::After { .. } => return self.environment_ready(mode, instance, branch),
        };
        if !self.is_internal(channel) {
            return self.environment_ready(mode, instance, branch);
        }
        for partner in 0..self.state.instances.len() as u32 {
            let branches = self.wait(partner).map_or(0, |wait| wait.branches.len() as u32);
            for other in 0..branches {
                let (own, other) = ((instance, branch), (partner, other));
                let (from, to) = if sends { (own, other) } else { (other, own) };
                if self.can_rendezvous(from, to) {
                    return true;
                }
            }
        }
        false
    }

    /// Whether an open branch of a sender and one of a receiver can rendezvous: the channel is the same, and the
    /// message matches the patterns. A payload or condition that would fault counts as a match; the fault is raised
    /// when the step is taken.
    pub(crate) fn can_rendezvous(
        &mut self,
        (sender, sender_branch): (u32, u32),
        (receiver, receiver_branch): (u32, u32),
    ) -> bool {
        if sender == receiver {
            return false;
        }
        let Some(out) = self.open(sender, sender_branch) else { return false };
        let Some(input) = self.open(receiver, receiver_branch) else { return false };
        let payload = match (&out.operation, &input.operation) {
            (OperationCode::Out { channel: to, payload }, OperationCode::In { channel: from, .. })
                if to == from && self.is_internal(*to) =>
            {
                payload
            }
            (OperationCode::Out { .. } | OperationCode::In { .. } | OperationCode::After { .. }, _) => return false,
        };
        let region = match payload {
            PayloadCode::Ready(_) => None,
            PayloadCode::Region(region) => Some(region),
        };
        let changes_pools = region.is_some_and(|region| region.changes_pools) || condition_changes_pools(input);
        let before = changes_pools.then(|| self.state.pools.clone());
        let matches = match self.evaluate_message(sender, out) {
            Err(_) => true,
            Ok(_) => {
                let memory = std::mem::take(&mut self.state.instances[sender as usize].frame.memory);
                let matches = self.try_match(&memory, receiver, input);
                self.state.instances[sender as usize].frame.memory = memory;
                matches
            }
        };
        if let Some(region) = region {
            self.state.instances[sender as usize].frame.clear_region(region);
        }
        if let Some(pools) = before {
            self.state.pools = pools;
        }
        matches
    }
}
