//! A configuration of a run for presentation: the location of each instance, what it waits for and from which partners,
//! and the values of its variables.

use crate::static_matching::may_receive;
use quaject_esp_exec::datum::print;
use quaject_esp_exec::environment::Environment;
use quaject_esp_exec::explore::OpenBranch;
use quaject_esp_exec::step::{Control, Machine, State};
use quaject_esp_ir::ir::{ChannelId, Direction, Location, Program};

/// All instances between two steps.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Configuration {
    /// Every instance, in order.
    pub instances: Vec<InstanceStatus>,
}

/// One instance between two steps.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InstanceStatus {
    /// Whether it runs, waits or has ended.
    pub control: Control,
    /// Its location in the source.
    pub location: Location,
    /// The events it waits for.
    pub waits: Vec<AwaitedEvent>,
    /// Variables and their values as text, at its last wait.
    pub variables: Vec<(String, String)>,
}

/// An event that an instance waits for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AwaitedEvent {
    /// A rendezvous, with the possible partners that have not ended.
    Partner(ChannelId, Direction, Vec<u32>),
    /// The environment, on this channel.
    Environment(ChannelId),
    /// A time.
    Time,
}

impl Configuration {
    pub(crate) fn of(
        machine: &mut Machine<'_>,
        state: &mut State,
        environment: &mut dyn Environment,
        before: Option<&Configuration>,
    ) -> Configuration {
        let processes: Vec<usize> = machine.instance_processes().map(|process| process.0 as usize).collect();
        let status_of = |instance: usize| {
            let variables = before
                .and_then(|configuration| configuration.instances.get(instance))
                .map(|status| &status.variables[..]);
            instance_status(machine, state, environment, &processes, instance as u32, variables.unwrap_or_default())
        };
        Configuration { instances: (0..processes.len()).map(status_of).collect() }
    }
}

fn instance_status(
    machine: &mut Machine<'_>,
    state: &mut State,
    environment: &mut dyn Environment,
    processes: &[usize],
    instance: u32,
    before: &[(String, String)],
) -> InstanceStatus {
    let view = machine.instance_view(state, instance);
    let mut waits = Vec::new();
    for (branch, open_branch) in view.branches.iter().enumerate() {
        waits.extend(match open_branch {
            Some(OpenBranch::In(channel)) => {
                let program = machine.program();
                let writes = |other: &u32| uses(program, processes[*other as usize], *channel, Direction::Out);
                Some(AwaitedEvent::Partner(*channel, Direction::In, others(state, processes, instance, &writes)))
            }
            Some(OpenBranch::Out(channel)) => {
                let message = machine.message(state, environment, instance, branch as u32);
                let program = machine.program();
                let reads = |other: &u32| {
                    let process = processes[*other as usize];
                    let takes = |(_, message): &(_, Vec<_>)| {
                        may_receive(&program.processes[process], *other, *channel, message)
                    };
                    uses(program, process, *channel, Direction::In) && message.as_ref().is_none_or(takes)
                };
                Some(AwaitedEvent::Partner(*channel, Direction::Out, others(state, processes, instance, &reads)))
            }
            Some(OpenBranch::FromEnvironment(channel) | OpenBranch::ToEnvironment(channel)) => {
                Some(AwaitedEvent::Environment(*channel))
            }
            Some(OpenBranch::After) => Some(AwaitedEvent::Time),
            None => None,
        });
    }
    let variables = match view.control {
        Control::Waiting { .. } => {
            let known = machine
                .register_variables(state, instance)
                .into_iter()
                .chain(machine.memory_variables(state, instance));
            let text = |(name, ty, value): (smol_str::SmolStr, _, _)| {
                let mut text = String::new();
                print(machine.program(), ty, &value, &mut text);
                (name.to_string(), text)
            };
            known.map(text).collect()
        }
        Control::Running { .. } | Control::CapturedByPath { .. } | Control::Ended => before.to_vec(),
    };
    InstanceStatus { control: view.control, location: machine.location(state, instance), waits, variables }
}

fn others(state: &State, processes: &[usize], instance: u32, can: &dyn Fn(&u32) -> bool) -> Vec<u32> {
    let all = 0..processes.len() as u32;
    all.filter(|other| *other != instance && state.control(*other) != Control::Ended)
        .filter(|other| can(other))
        .collect()
}

fn uses(program: &Program, process: usize, channel: ChannelId, direction: Direction) -> bool {
    program.processes[process].sites.iter().any(|site| site.channel == channel && site.direction == direction)
}
