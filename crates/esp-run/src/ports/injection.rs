//! Fault injection between drivers and channels.

use super::{Port, Ports};
use crate::binding::{DeviceEndpoint, Driver};
use crate::drivers::devices::Flow;
use crate::drivers::input::InputState;
use crate::error::{HostCode, HostError};
use crate::fault_injection::{self, DeliveryOrder, FaultInjector, FaultPlan};
use quaject_esp_exec::datum::Datum;
use quaject_esp_ir::ir::{Boundary, ChannelId, Program};

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
                    if self.closes_connection(index, &message) {
                        self.injectors_of_device(index).for_each(|injector| injector.end_close(&message));
                    }
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
                    let device = match &self.channels[index] {
                        Port::From(incoming) => Some(&mut self.devices[incoming.device]),
                        Port::Internal | Port::Input(_) | Port::Output(_) | Port::To(_) => None,
                    };
                    if injector.cuts(now_ns) && device.is_some_and(|device| device.cut(&message, Flow::FromDevice)) {
                        injector.count_cut();
                    } else if !injector.is_closing(&message) {
                        injector.enter(message, now_ns);
                    }
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

impl Ports<'_> {
    /// A message enters the injector of an output.
    pub(super) fn inject(&mut self, channel: ChannelId, message: &[Datum]) {
        let (index, now_ns) = (channel.0 as usize, self.clock.now_ns());
        if let (Some(injector), Port::To(device)) = (&mut self.injectors[index], &self.channels[index])
            && injector.cuts(now_ns)
            && self.devices[*device].cut(message, Flow::ToDevice)
        {
            injector.count_cut();
        }
        if let Some(injector) = &mut self.injectors[index] {
            injector.enter(message.to_vec(), now_ns);
        }
        if self.closes_connection(index, message) {
            self.injectors_of_device(index).for_each(|injector| injector.begin_close(message));
        }
        self.release(Due::Now);
    }

    fn closes_connection(&self, index: usize, message: &[Datum]) -> bool {
        match &self.channels[index] {
            Port::To(device) => self.devices[*device].closes_connection(message),
            Port::Internal | Port::Input(_) | Port::Output(_) | Port::From(_) => false,
        }
    }

    /// The injectors of the messages from the device to which a channel leads.
    fn injectors_of_device(&mut self, index: usize) -> impl Iterator<Item = &mut FaultInjector> {
        let number = match &self.channels[index] {
            Port::To(device) => Some(*device),
            Port::Internal | Port::Input(_) | Port::Output(_) | Port::From(_) => None,
        };
        self.channels.iter().zip(&mut self.injectors).filter_map(move |(port, injector)| match port {
            Port::From(incoming) if Some(incoming.device) == number => injector.as_mut(),
            Port::Internal | Port::Input(_) | Port::Output(_) | Port::From(_) | Port::To(_) => None,
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
                let order = order_of(driver);
                if let Some(fault) = faults.contradiction(order) {
                    return Err(HostError::usage(
                        HostCode::Conflict,
                        format!(
                            "driver `{}` cannot have the fault `{fault}`: TCP delivers all bytes of a connection once \
                             and in order",
                            driver.name()
                        ),
                    )
                    .help(
                        "write `delay=1ms..20ms`, `stall=1s/10s` for a network that is interrupted, or `cut=1s/10s` for \
                         connections that break",
                    ));
                }
                *injector = Some(FaultInjector::with_order(faults, &channel.name, order));
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
    // What a connection still receives after the program has closed it is dropped at the channel of its events, also if
    // faults are only those of the other channel.
    for index in 0..injectors.len() {
        let is_faulty = drivers[index].as_ref().is_some_and(|driver| {
            order_of(driver) == DeliveryOrder::PerConnection
                && drivers
                    .iter()
                    .zip(&injectors)
                    .any(|(other, injector)| other.as_ref() == Some(driver) && injector.is_some())
        });
        let channel = &program.channels[index];
        if is_faulty && injectors[index].is_none() && channel.boundary == Boundary::FromEnvironment {
            injectors[index] = Some(FaultInjector::without_faults(DeliveryOrder::PerConnection));
        }
    }
    Ok(injectors)
}

/// The order that the medium of a driver keeps.
fn order_of(driver: &Driver) -> DeliveryOrder {
    match driver {
        Driver::Device(DeviceEndpoint::Tcp(_)) => DeliveryOrder::PerConnection,
        Driver::Device(_) | Driver::Text(_) | Driver::Bytes(_) | Driver::Hex(_) | Driver::Timer { .. } => {
            DeliveryOrder::Free
        }
    }
}
