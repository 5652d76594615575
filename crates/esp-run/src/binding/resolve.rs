//! The drivers of a program's external channels, by its declarations and the bindings of a run.

use super::parse::DRIVERS;
use super::{Binding, Choice, DeviceEndpoint, Driver, StreamEndpoint};
use crate::error::{HostCode, HostError};
use quaject_esp_ir::ir::{Boundary, ChannelId, Program};

/// The driver of every external channel, in order of channels; `None` for internal ones.
pub(crate) fn resolve(program: &Program, bindings: &[Binding]) -> Result<Vec<Option<Driver>>, HostError> {
    let mut drivers: Vec<Option<Driver>> = Vec::with_capacity(program.channels.len());
    for channel in &program.channels {
        drivers.push(match (channel.boundary, &channel.driver) {
            (Boundary::Internal, _) => None,
            (Boundary::ToEnvironment | Boundary::FromEnvironment, None) => Some(Driver::Text(StreamEndpoint::Standard)),
            (Boundary::ToEnvironment | Boundary::FromEnvironment, Some(text)) => {
                // An unknown driver is an error only if the command line does not replace it.
                let replaced = bindings.iter().any(|binding| binding.channel == channel.name);
                match text.parse() {
                    Ok(driver) => Some(driver),
                    Err(_) if replaced => Some(Driver::Text(StreamEndpoint::Standard)),
                    Err(error) => {
                        return Err(HostError::new(error.code, format!("channel `{}`: {}", channel.name, error.cause))
                            .help(format!("choose another with `--bind {}=DRIVER`; {DRIVERS}", channel.name)));
                    }
                }
            }
        });
    }
    let mut bound = vec![false; program.channels.len()];
    for binding in bindings {
        let index = external_channel(program, &binding.channel)?;
        if std::mem::replace(&mut bound[index], true) {
            return Err(HostError::usage(HostCode::Binding, format!("channel `{}` is bound twice", binding.channel)));
        }
        drivers[index] = Some(match (&binding.choice, &drivers[index]) {
            (Choice::Driver(driver), _) => driver.clone(),
            (Choice::Data(endpoint), Some(Driver::Bytes(_))) => Driver::Bytes(endpoint.clone()),
            (Choice::Data(endpoint), Some(Driver::Hex(_))) => Driver::Hex(endpoint.clone()),
            (Choice::Data(endpoint), Some(Driver::Text(_) | Driver::Timer { .. } | Driver::Device(_)) | None) => {
                Driver::Text(endpoint.clone())
            }
        });
    }
    for (channel, driver) in program.channels.iter().zip(&drivers) {
        if let (Boundary::ToEnvironment, Some(Driver::Timer { .. })) = (channel.boundary, driver) {
            return Err(HostError::usage(
                HostCode::Binding,
                format!("channel `{}`: a timer cannot take messages", channel.name),
            )
            .help("the program writes this channel: bind it to `text:PATH`, `bytes:PATH` or `hex:PATH`"));
        }
    }
    copy_rules(program, &mut drivers);
    check_standard_input(program, &drivers)?;
    check_devices(program, &drivers)?;
    Ok(drivers)
}

/// Gives a channel that the program writes the rules of the one that it reads from the same interface, so that both
/// share a device.
fn copy_rules(program: &Program, drivers: &mut [Option<Driver>]) {
    let sorted: Vec<DeviceEndpoint> = program
        .channels
        .iter()
        .zip(&*drivers)
        .filter(|(channel, _)| channel.boundary == Boundary::FromEnvironment)
        .filter_map(|(_, driver)| match driver {
            Some(Driver::Device(device @ (DeviceEndpoint::Tap(own) | DeviceEndpoint::Packet(own))))
                if own.rules.is_some() =>
            {
                Some(device.clone())
            }
            Some(_) | None => None,
        })
        .collect();
    for (channel, driver) in program.channels.iter().zip(drivers) {
        let Some(Driver::Device(device)) = driver else { continue };
        let same = sorted.iter().find(|sorted| match (&*device, sorted) {
            (DeviceEndpoint::Tap(own), DeviceEndpoint::Tap(other))
            | (DeviceEndpoint::Packet(own), DeviceEndpoint::Packet(other)) => {
                own.name == other.name && own.rules.is_none()
            }
            _ => false,
        });
        if let (Boundary::ToEnvironment, Some(same)) = (channel.boundary, same) {
            *device = same.clone();
        }
    }
}

/// Refuses two channels of one direction at a device: which of them receives a message would depend on the schedule.
fn check_devices(program: &Program, drivers: &[Option<Driver>]) -> Result<(), HostError> {
    let devices: Vec<_> = program
        .channels
        .iter()
        .zip(drivers)
        .filter(|(_, driver)| match driver {
            Some(Driver::Device(_)) => true,
            Some(driver) => driver.endpoint().is_some_and(StreamEndpoint::is_opened_once),
            None => false,
        })
        .collect();
    for (at, (channel, driver)) in devices.iter().enumerate() {
        for (other, other_driver) in &devices[..at] {
            if driver == other_driver && channel.boundary == other.boundary {
                let name = driver.as_ref().map_or("", Driver::name);
                return Err(HostError::usage(
                    HostCode::Binding,
                    format!(
                        "channels `{}` and `{}` share one `{name}` driver in the same direction",
                        other.name, channel.name
                    ),
                )
                .help("one channel that the program reads and one that it writes may share it"));
            }
        }
    }
    Ok(())
}

fn external_channel(program: &Program, name: &str) -> Result<usize, HostError> {
    let external: Vec<&str> = program
        .channels
        .iter()
        .filter(|channel| channel.boundary != Boundary::Internal)
        .map(|channel| channel.name.as_str())
        .collect();
    let list = match external.as_slice() {
        [] => "this program has no external channels".to_string(),
        names => format!("its external channels are `{}`", names.join("`, `")),
    };
    let Some(index) = program.channels.iter().position(|channel| channel.name == name) else {
        return Err(HostError::usage(HostCode::UnknownName, format!("the program has no channel `{name}`")).help(list));
    };
    match program.channels[index].boundary {
        Boundary::ToEnvironment | Boundary::FromEnvironment => Ok(index),
        Boundary::Internal => Err(HostError::usage(
            HostCode::Binding,
            format!("channel `{name}` is not external, so no driver can serve it"),
        )
        .help(list)),
    }
}

/// Refuses two channels that read standard input: which of them receives a message would depend on the schedule.
fn check_standard_input(program: &Program, drivers: &[Option<Driver>]) -> Result<(), HostError> {
    let mut first: Option<ChannelId> = None;
    for (index, (channel, driver)) in program.channels.iter().zip(drivers).enumerate() {
        let standard = driver.as_ref().and_then(Driver::endpoint) == Some(&StreamEndpoint::Standard);
        if channel.boundary != Boundary::FromEnvironment || !standard {
            continue;
        }
        if let Some(first) = first {
            let first = &program.channels[first.0 as usize].name;
            return Err(HostError::usage(
                HostCode::Binding,
                format!("channels `{first}` and `{}` would both read standard input", channel.name),
            )
            .help(format!("bind one of them elsewhere, as in `--bind {}=text:PATH`", channel.name)));
        }
        first = Some(ChannelId(index as u32));
    }
    Ok(())
}
