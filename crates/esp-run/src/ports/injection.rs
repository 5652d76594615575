//! Fault injection between drivers and channels.

use super::{Port, Ports};
use crate::binding::Driver;
use crate::drivers::input::InputState;
use crate::error::{HostCode, HostError};
use crate::fault_injection::{self, FaultInjector, FaultPlan};
use quaject_esp_ir::ir::{ChannelId, Program};

/// The delayed messages that are released.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// Those that are due.
    Now,
    /// All of them.
    AtEnd,
}

impl Ports<'_> {
    /// Delivers the messages that have passed their injectors.
    pub(super) fn release(&mut self, due: Due) {
        for index in 0..self.injectors.len() {
            if let (Some(_), Port::Output(_) | Port::To(_)) = (&self.injectors[index], &self.channels[index]) {
                let now_ns = match due {
                    Due::Now => self.clock.now_ns(),
                    Due::AtEnd => i64::MAX,
                };
                while let Some(message) = self.injectors[index].as_mut().and_then(|injector| injector.leave(now_ns)) {
                    self.deliver(ChannelId(index as u32), &message);
                }
            }
        }
    }

    /// Moves messages that the driver of a channel offers into its injector, and polls the injector.
    pub(super) fn poll_injector(&mut self, channel: ChannelId) -> Result<InputState, HostError> {
        let index = channel.0 as usize;
        let now_ns = self.clock.now_ns();
        loop {
            let open = self.injectors[index]
                .as_ref()
                .is_some_and(|injector| !injector.closed && injector.len() < fault_injection::MAX_DELAYED);
            if !open {
                break;
            }
            let state = self.poll_driver(channel)?;
            let message = (state == InputState::Offered).then(|| self.offered(channel).to_vec());
            let Some(injector) = &mut self.injectors[index] else { break };
            match message {
                Some(message) => {
                    injector.enter(message, now_ns);
                    self.accept(channel);
                }
                None => {
                    injector.closed = state == InputState::Closed;
                    break;
                }
            }
        }
        let Some(injector) = &mut self.injectors[index] else { return Ok(InputState::Closed) };
        if injector.offered.is_none() {
            injector.offered = injector.leave(now_ns);
        }
        Ok(match &injector.offered {
            Some(_) => InputState::Offered,
            None if injector.closed && injector.len() == 0 => InputState::Closed,
            None => InputState::Pending,
        })
    }
}

/// By channel; its injector, if `faults` name it or its driver.
pub(super) fn injectors(
    program: &Program,
    drivers: &[Option<Driver>],
    faults: &[FaultPlan],
) -> Result<Vec<Option<FaultInjector>>, HostError> {
    let mut injectors: Vec<Option<FaultInjector>> = program.channels.iter().map(|_| None).collect();
    for faults in faults {
        let mut found = false;
        for ((channel, driver), injector) in program.channels.iter().zip(drivers).zip(&mut injectors) {
            let Some(driver) = driver else { continue };
            if faults.selector == driver.name() || faults.selector == channel.name {
                found = true;
                *injector = Some(FaultInjector::new(faults, &channel.name));
            }
        }
        if !found {
            return Err(HostError::usage(
                HostCode::UnknownName,
                format!("no channel is called `{0}` or bound to a driver `{0}`", faults.selector),
            )
            .help("faults are those of a driver or of an external channel, as in `--fault udp:loss=5%`"));
        }
    }
    Ok(injectors)
}
