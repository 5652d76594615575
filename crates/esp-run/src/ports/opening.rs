//! Opens the drivers of a program, each device once for all its channels.

use super::injection::injectors;
use super::{Incoming, Port, Ports};
use crate::binding::{self, Binding, DeviceEndpoint, Driver};
use crate::clock::{Clock, Time};
use crate::drivers::devices::{self, Device, Ends, PollThrottle};
use crate::drivers::endpoints::{Directions, OpenEndpoints, reject_aliased_files};
use crate::drivers::input::Input;
use crate::drivers::output::Output;
use crate::drivers::stream::Writer;
use crate::error::{HostCode, HostError};
use crate::externs::Externs;
use crate::fault_injection::FaultPlan;
use crate::frame_log::{FrameKind, FrameLog};
use crate::poller::Poller;
use quaject_esp_ir::ir::{Boundary, Channel, Program};
use std::path::Path;

/// The drivers of a program while they are opened.
struct Opening<'p, 'd> {
    program: &'p Program,
    drivers: &'d [Option<Driver>],
    writers: Vec<Writer>,
    devices: Vec<Box<dyn Device>>,
    /// By device; its driver.
    device_drivers: Vec<&'d Driver>,
    endpoints: OpenEndpoints,
    log: Option<FrameLog>,
}

/// Creates the capture of the frames that these drivers carry.
fn open_log(drivers: &[Option<Driver>], path: &Path) -> Result<FrameLog, HostError> {
    let kind_of = |driver: &Driver| match driver {
        Driver::Device(DeviceEndpoint::Tap(_) | DeviceEndpoint::Packet(_)) => Some(FrameKind::Ethernet),
        Driver::Device(DeviceEndpoint::Can(_)) => Some(FrameKind::Can),
        Driver::Device(
            DeviceEndpoint::Udp(_) | DeviceEndpoint::Tcp(_) | DeviceEndpoint::Files(_) | DeviceEndpoint::Ring(_),
        )
        | Driver::Text(_)
        | Driver::Bytes(_)
        | Driver::Hex(_)
        | Driver::Timer { .. } => None,
    };
    let mut kinds: Vec<FrameKind> = Vec::new();
    for kind in drivers.iter().flatten().filter_map(kind_of) {
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    match kinds[..] {
        [kind] => FrameLog::create(path, kind),
        [] => Err(HostError::usage(HostCode::Conflict, "`--pcap` has no effect: no channel carries frames")
            .help("it is for the drivers `tap`, `packet` and `can`; `tcpdump` captures what sockets carry")),
        _ => {
            Err(HostError::usage(HostCode::Conflict, "`--pcap` has one file for frames of two kinds, Ethernet and CAN")
                .help("a capture has one link type: bind the channels of one kind to another driver"))
        }
    }
}

impl<'d> Opening<'_, 'd> {
    fn open_port(&mut self, channel: &Channel, driver: &'d Driver) -> Result<Port, HostError> {
        if let Driver::Device(_) = driver {
            let device = self.device(driver)?;
            return Ok(match channel.boundary {
                Boundary::Internal => Port::Internal,
                Boundary::FromEnvironment => {
                    Port::From(Incoming { device, message: Vec::new(), offered: false, ended: false, wanted: false })
                }
                Boundary::ToEnvironment => Port::To(device),
            });
        }
        let directions = self.directions(driver);
        let (program, endpoints) = (self.program, &mut self.endpoints);
        match channel.boundary {
            Boundary::Internal => Ok(Port::Internal),
            Boundary::FromEnvironment => Input::open(program, channel, driver, directions, endpoints).map(Port::Input),
            Boundary::ToEnvironment => {
                Output::open(program, channel, driver, directions, endpoints, &mut self.writers).map(Port::Output)
            }
        }
    }

    /// The number of a device, which is opened with its first channel for all of them.
    fn device(&mut self, driver: &'d Driver) -> Result<usize, HostError> {
        if let Some(number) = self.device_drivers.iter().position(|known| *known == driver) {
            return Ok(number);
        }
        let Driver::Device(name) = driver else { unreachable!("`open_port` passes devices only") };
        let end = |boundary| {
            let channels = self.program.channels.iter().zip(self.drivers);
            let mut ends = channels.filter(|(channel, at)| channel.boundary == boundary && at.as_ref() == Some(driver));
            ends.next().map(|(channel, _)| channel)
        };
        let (input, output) = (end(Boundary::FromEnvironment), end(Boundary::ToEnvironment));
        let ends = Ends { input, output, log: self.log.as_ref() };
        self.devices.push(devices::open(self.program, name, ends)?);
        self.device_drivers.push(driver);
        Ok(self.devices.len() - 1)
    }

    fn directions(&self, driver: &Driver) -> Directions {
        let mut directions = Directions::default();
        for (channel, other) in self.program.channels.iter().zip(self.drivers) {
            if other.as_ref().and_then(Driver::endpoint) == driver.endpoint() {
                directions.reads |= channel.boundary == Boundary::FromEnvironment;
                directions.writes |= channel.boundary == Boundary::ToEnvironment;
            }
        }
        directions
    }
}

impl<'p> Ports<'p> {
    /// Opens the drivers of a program: those of `bindings`, else the declared ones, else `text:-`. Frames are written
    /// to the capture `pcap`.
    pub fn open(
        program: &'p Program,
        bindings: &[Binding],
        faults: &[FaultPlan],
        externs: Externs,
        time: Time,
        pcap: Option<&Path>,
    ) -> Result<Ports<'p>, HostError> {
        let drivers = binding::resolve(program, bindings)?;
        reject_aliased_files(program, &drivers)?;
        let injectors = injectors(program, &drivers, faults)?;
        let mut opening = Opening {
            program,
            drivers: &drivers,
            writers: Vec::new(),
            devices: Vec::new(),
            device_drivers: Vec::new(),
            endpoints: OpenEndpoints::default(),
            log: pcap.map(|path| open_log(&drivers, path)).transpose()?,
        };
        let mut channels = Vec::with_capacity(drivers.len());
        for (channel, driver) in program.channels.iter().zip(&drivers) {
            channels.push(match driver {
                None => Port::Internal,
                Some(driver) => opening.open_port(channel, driver).map_err(|error| HostError {
                    help: error.help.or_else(|| {
                        Some(format!(
                            "channel `{0}` is bound to it; choose another with `--bind {0}=DRIVER`",
                            channel.name
                        ))
                    }),
                    ..error
                })?,
            });
        }
        let Opening { writers, devices, endpoints, .. } = opening;
        Ok(Ports {
            program,
            channels,
            injectors,
            busy: Vec::new(),
            writers,
            throttles: devices.iter().map(|_| PollThrottle::default()).collect(),
            devices,
            poller: Poller::default(),
            happened: Vec::new(),
            endpoints,
            clock: Clock::start(time),
            externs,
            input_error: None,
            output_error: None,
            output_closed: false,
        })
    }
}
