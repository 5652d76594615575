//! Sets of instances as the bits of a `u128`.

use quaject_esp_exec::step::Step;

/// The largest number of instances in a set.
pub(crate) const MAX_SET_INSTANCES: usize = 128;

/// The set of one instance; empty for an instance beyond [`MAX_SET_INSTANCES`].
pub(crate) fn instance_bit(instance: usize) -> u128 {
    if instance < MAX_SET_INSTANCES { 1 << instance } else { 0 }
}

/// The set of the first `count` instances.
pub(crate) fn first_instances(count: usize) -> u128 {
    if count >= MAX_SET_INSTANCES { u128::MAX } else { instance_bit(count) - 1 }
}

/// The instances that take part in a step.
pub(crate) fn participant_set(step: Step) -> u128 {
    match step {
        Step::Communicate { sender, receiver, .. } => instance_bit(sender as usize) | instance_bit(receiver as usize),
        Step::Local { instance }
        | Step::FromEnvironment { instance, .. }
        | Step::ToEnvironment { instance, .. }
        | Step::After { instance, .. }
        | Step::Else { instance } => instance_bit(instance as usize),
    }
}
