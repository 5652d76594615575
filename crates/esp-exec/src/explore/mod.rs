//! The interface of a machine for state-space exploration: the observable part of an instance, whether two branches can
//! rendezvous, the steps enabled under the most general environment, and variables for reports. Keeps no states and
//! chooses no steps. It and its submodules are in this crate because they read and write the encoding of a state
//! (pools, frames, layouts), which no other crate knows; what a search does with them is `quaject-esp-check`'s.

mod heap_symmetry;
pub mod leak;
pub mod live_projection;

use crate::code::OperationCode;
use crate::coverage::Coverage;
use crate::datum::Datum;
use crate::environment::Environment;
use crate::pools::{Address, MemorySpace};
use crate::state::{Control, State};
use crate::step::{EnvironmentMode, Machine, Step};
use crate::values::{DataView, ValueRef};
use quaject_esp_ir::ir::{AltOrder, Blocking, Boundary, ChannelId, Location, ProcessId, TypeId};
use smol_str::SmolStr;

/// The part of an instance's state that other instances can observe.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InstanceView {
    /// The control state.
    pub control: Control,
    /// While waiting: how a branch is chosen.
    pub order: AltOrder,
    /// While waiting: whether there is an `else`.
    pub otherwise: bool,
    /// While waiting: whether blocking there forever is a deadlock.
    pub blocking: Blocking,
    /// While waiting: what each branch waits for; none for a closed one.
    pub branches: Vec<Option<OpenBranch>>,
}

/// What an open branch waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpenBranch {
    /// A message of another instance.
    In(ChannelId),
    /// Another instance to take a message.
    Out(ChannelId),
    /// A message of the environment.
    FromEnvironment(ChannelId),
    /// The environment to take a message.
    ToEnvironment(ChannelId),
    /// A time.
    After,
}

impl Machine<'_> {
    /// The part of an instance's state that other instances can observe.
    pub fn instance_view(&self, state: &State, instance: u32) -> InstanceView {
        let mut instance_view = InstanceView {
            control: state.control(instance),
            order: AltOrder::Fair,
            otherwise: false,
            blocking: Blocking::Deadlock,
            branches: Vec::new(),
        };
        let Control::Waiting { wait } = instance_view.control else { return instance_view };
        let (process, _) = self.code.instances[instance as usize];
        let wait = &self.code.processes[process.0 as usize].waits[wait as usize];
        instance_view.order = wait.order;
        instance_view.otherwise = wait.otherwise.is_some();
        instance_view.blocking = wait.blocking;
        let known = &state.instances[instance as usize].branches;
        instance_view.branches.extend(wait.branches.iter().zip(known).map(|(branch, known)| {
            let offered = match &branch.operation {
                OperationCode::After { .. } => OpenBranch::After,
                OperationCode::In { channel, .. } => match self.boundary(*channel) {
                    Boundary::Internal => OpenBranch::In(*channel),
                    Boundary::ToEnvironment | Boundary::FromEnvironment => OpenBranch::FromEnvironment(*channel),
                },
                OperationCode::Out { channel, .. } => match self.boundary(*channel) {
                    Boundary::Internal => OpenBranch::Out(*channel),
                    Boundary::ToEnvironment | Boundary::FromEnvironment => OpenBranch::ToEnvironment(*channel),
                },
            };
            known.open.then_some(offered)
        }));
        instance_view
    }

    /// Whether an open branch of a sender and one of a receiver can rendezvous, apart from priorities. A payload or
    /// condition that would fault counts as a match; the fault is raised when the step is taken.
    pub fn can_rendezvous(
        &mut self,
        state: &mut State,
        environment: &mut dyn Environment,
        (sender, sender_branch): (u32, u32),
        (receiver, receiver_branch): (u32, u32),
    ) -> bool {
        self.context(state, environment).can_rendezvous((sender, sender_branch), (receiver, receiver_branch))
    }

    /// Whether the environment offers a message that an open branch matches, or accepts the branch's message.
    pub fn environment_ready(
        &mut self,
        state: &mut State,
        environment: &mut dyn Environment,
        instance: u32,
        branch: u32,
    ) -> bool {
        self.context(state, environment).environment_ready(EnvironmentMode::Polled, instance, branch)
    }

    /// The message of a sender's open branch, as data of the environment; none if its evaluation faults.
    pub fn message(
        &mut self,
        state: &mut State,
        environment: &mut dyn Environment,
        sender: u32,
        branch: u32,
    ) -> Option<(ChannelId, Vec<Datum>)> {
        self.context(state, environment).message(sender, branch)
    }

    /// The steps enabled under the most general environment: messages may arrive or not, the environment may be ready
    /// or not, times may have passed or not. Whether a message matches a `FromEnvironment` step is not checked.
    pub fn enabled_under_open_environment(
        &mut self,
        state: &mut State,
        environment: &mut dyn Environment,
    ) -> Vec<Step> {
        let mut context = self.context(state, environment);
        let mut steps = context.structurally_enabled();
        steps.retain(|step| match step {
            Step::FromEnvironment { instance, branch } | Step::ToEnvironment { instance, branch } => {
                context.open(*instance, *branch).is_some() && context.is_allowed(*step, EnvironmentMode::AsTraced)
            }
            Step::Local { .. } | Step::Communicate { .. } | Step::After { .. } | Step::Else { .. } => {
                context.is_enabled(*step, EnvironmentMode::AsTraced)
            }
        });
        steps
    }

    /// The source location of an instance: its operation, or the next instruction. The default if it has terminated.
    pub fn location(&self, state: &State, instance: u32) -> Location {
        let (process, _) = self.code.instances[instance as usize];
        let body = &self.code.processes[process.0 as usize];
        match state.control(instance) {
            Control::Running { at } => body.locations[at as usize],
            Control::Waiting { wait } | Control::CapturedByPath { wait } => body.waits[wait as usize].location,
            Control::Ended => Location::default(),
        }
    }

    /// The observed variables that are in registers, with their types and values, of a waiting instance; none for
    /// another.
    pub fn register_variables(&self, state: &State, instance: u32) -> Vec<(SmolStr, TypeId, Datum)> {
        let (process, _) = self.code.instances[instance as usize];
        let Control::Waiting { wait } = state.control(instance) else { return Vec::new() };
        let wait = &self.code.processes[process.0 as usize].waits[wait as usize];
        let frame = &state.instances[instance as usize].frame;
        let view = DataView { program: self.program(), layouts: &self.code.layouts, pools: &state.pools };
        let observed = wait.observed.iter().filter_map(|(name, register, ty)| {
            let part = ValueRef::Scalar(frame.registers[*register as usize]);
            Some((name.clone(), *ty, view.datum(*ty, part, &frame.memory).ok()?))
        });
        observed.collect()
    }

    /// The observed variables that an instance has received in the last step, with their types and values.
    pub fn received_variables(&self, state: &State, instance: u32) -> Vec<(SmolStr, TypeId, Datum)> {
        let frame = &state.instances[instance as usize].frame;
        let view = DataView { program: self.program(), layouts: &self.code.layouts, pools: &state.pools };
        let own = self.work.received.iter().filter(|(receiver, ..)| *receiver == instance);
        let received = own.filter_map(|(_, name, value, ty)| {
            Some((name.clone(), *ty, view.datum(*ty, ValueRef::Scalar(*value), &frame.memory).ok()?))
        });
        received.collect()
    }

    /// The variables of an instance that are in slots, apart from those that share their name. A dead one may be zero.
    pub fn memory_variables(&self, state: &State, instance: u32) -> Vec<(SmolStr, TypeId, Datum)> {
        let (process, _) = self.code.instances[instance as usize];
        let slots = &self.program().processes[process.0 as usize].body.slots;
        let frame = &state.instances[instance as usize].frame;
        let view = DataView { program: self.program(), layouts: &self.code.layouts, pools: &state.pools };
        let stored = slots.iter().zip(&self.code.processes[process.0 as usize].slots).filter_map(|(slot, (at, _))| {
            let name = slot.name.clone()?;
            let is_unique = slots.iter().filter(|other| other.name.as_ref() == Some(&name)).count() == 1;
            let part = ValueRef::Memory(Address { space: MemorySpace::Frame, at: *at });
            is_unique.then(|| Some((name, slot.ty, view.datum(slot.ty, part, &frame.memory).ok()?)))?
        });
        stored.collect()
    }

    /// The source location of a branch of the operation at which an instance waits.
    pub fn branch_location(&self, state: &State, instance: u32, branch: u32) -> Location {
        let (process, _) = self.code.instances[instance as usize];
        let Control::Waiting { wait } = state.control(instance) else { return Location::default() };
        let wait = &self.code.processes[process.0 as usize].waits[wait as usize];
        wait.branches.get(branch as usize).map_or(wait.location, |branch| branch.location)
    }

    /// The process of each instance.
    pub fn instance_processes(&self) -> impl Iterator<Item = ProcessId> {
        self.code.instances.iter().map(|(process, _)| *process)
    }

    /// Limits the fuel of each guard, condition and message from now on. One that reaches the limit counts as a fault,
    /// and [`Machine::fuel_exhausted`] returns true.
    pub fn set_fuel_limit(&mut self, max_steps: u64) {
        self.work.scratch.set_region_fuel_limit(max_steps);
    }

    /// Whether the limit was reached since [`Machine::set_fuel_limit`] was last called.
    pub fn fuel_exhausted(&self) -> bool {
        self.work.scratch.region_fuel_exhausted
    }

    /// Searches the states of local code for repetitions from now on.
    pub fn detect_repetition(&mut self) {
        self.work.scratch.detects_repetition = true;
    }

    /// Whether local code has reached one position twice with the same state since [`Machine::set_fuel_limit`] was last
    /// called. It has then stopped as if its fuel were used up.
    pub fn has_repetition(&self) -> bool {
        self.work.scratch.has_repetition
    }

    /// Records coverage from now on.
    pub fn record_coverage(&mut self) {
        self.work.scratch.coverage = Some(Box::new(Coverage::new(self.program())));
    }

    /// The coverage since [`Machine::record_coverage`] or since it was cleared; none if none is recorded.
    pub fn coverage(&mut self) -> Option<&mut Coverage> {
        self.work.scratch.coverage.as_deref_mut()
    }

    fn boundary(&self, channel: ChannelId) -> Boundary {
        self.program().channels[channel.0 as usize].boundary
    }
}
