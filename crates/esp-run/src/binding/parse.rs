//! The syntax of bindings and drivers.

use super::{Binding, CanEndpoint, Choice, DeviceEndpoint, Driver, Interface, Ring, SocketEndpoint, StreamEndpoint};
use crate::error::{HostCode, HostError};
use quaject_queue::shared::SLOT_BYTES;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// The drivers, for the help of an error.
pub(super) const DRIVERS: &str = "drivers are `text:PATH`, `bytes:PATH`, `hex:PATH`, `timer:10ms`, `udp:PORT`, `tcp:PORT`, `file:FOLDER`, \
                       `tap:NAME`, `packet:NAME`, `can:NAME`, `ring:PATH`, `exec:COMMAND`, `serial:PATH` and `pty:PATH`; `qj run --help` tells \
                       more";

impl std::str::FromStr for Binding {
    type Err = HostError;

    fn from_str(text: &str) -> Result<Binding, HostError> {
        let form = "write `--bind CHANNEL=DRIVER:ARGUMENT`, as in `--bind linesC=text:in.txt`";
        let Some((channel, driver)) = text.split_once('=') else {
            return Err(HostError::usage(HostCode::Driver, format!("`{text}` names no driver")).help(form));
        };
        if channel.is_empty() {
            return Err(HostError::usage(HostCode::Driver, format!("`{text}` names no channel")).help(form));
        }
        let choice = match driver.split_once(':') {
            Some(("data", endpoint)) => Choice::Data(parse_endpoint(driver, "data", endpoint)?),
            Some(_) | None => Choice::Driver(driver.parse()?),
        };
        Ok(Binding { channel: channel.to_string(), choice })
    }
}

impl std::str::FromStr for Driver {
    type Err = HostError;

    fn from_str(text: &str) -> Result<Driver, HostError> {
        let (name, argument) = text.split_once(':').unwrap_or((text, ""));
        let endpoint = || parse_endpoint(text, name, argument);
        match name {
            "text" => Ok(Driver::Text(endpoint()?)),
            "bytes" => Ok(Driver::Bytes(endpoint()?)),
            "hex" => Ok(Driver::Hex(endpoint()?)),
            "timer" => timer(argument),
            "exec" => Ok(Driver::Bytes(StreamEndpoint::Command(named(text, argument, "a command")?))),
            "serial" => serial(argument),
            "pty" => Ok(Driver::Bytes(StreamEndpoint::Pty(named(text, argument, "a name for the terminal")?.into()))),
            "udp" => Ok(Driver::Device(DeviceEndpoint::Udp(socket_endpoint(name, argument)?))),
            "tcp" if argument == "-" => Ok(Driver::Device(DeviceEndpoint::Tcp(None))),
            "tcp" => Ok(Driver::Device(DeviceEndpoint::Tcp(Some(socket_endpoint(name, argument)?)))),
            "file" => Ok(Driver::Device(DeviceEndpoint::Files(named(text, argument, "a folder")?.into()))),
            "tap" => Ok(Driver::Device(DeviceEndpoint::Tap(interface(text, argument)?))),
            "packet" => Ok(Driver::Device(DeviceEndpoint::Packet(interface(text, argument)?))),
            "can" => Ok(Driver::Device(DeviceEndpoint::Can(bus(text, argument)?))),
            "ring" => Ok(Driver::Device(DeviceEndpoint::Ring(ring(text, argument)?))),
            _ => Err(HostError::usage(HostCode::Driver, format!("there is no driver `{name}`")).help(DRIVERS)),
        }
    }
}

/// An argument that is required.
fn named(text: &str, argument: &str, what: &str) -> Result<String, HostError> {
    if argument.is_empty() {
        return Err(HostError::usage(HostCode::Driver, format!("driver `{text}` does not name {what}")).help(DRIVERS));
    }
    Ok(argument.to_string())
}

/// `69`, `0.0.0.0:69` or `[::]:69`. A port alone is one of the loopback interface, so that no program serves a network
/// unintentionally.
fn socket_endpoint(driver: &str, argument: &str) -> Result<SocketEndpoint, HostError> {
    let alone = argument.parse().ok().map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    let address = alone.or_else(|| argument.parse().ok()).ok_or_else(|| {
        HostError::usage(HostCode::Driver, format!("`{driver}:{argument}` names no port")).help(format!(
            "write `{driver}:PORT` for this machine's own use, `{driver}:0.0.0.0:PORT` for every network it is in, \
             `{driver}:[::]:PORT` for IPv6"
        ))
    })?;
    Ok(SocketEndpoint(address))
}

/// `eth0`, or `eth0,rules=FILE`.
fn interface(text: &str, argument: &str) -> Result<Interface, HostError> {
    let (name, more) = argument.split_once(',').map_or((argument, None), |(name, more)| (name, Some(more)));
    let name = named(text, name, "an interface")?;
    let path = more.map(|more| more.strip_prefix("rules=").filter(|path| !path.is_empty()).ok_or(more)).transpose();
    let rules = path.map_err(|more| {
        let kind = text.split(':').next().unwrap_or_default();
        HostError::usage(HostCode::Driver, format!("driver `{text}`: `{more}` says nothing about an interface"))
            .help(format!("write `{kind}:{name}`, or `{kind}:{name},rules=FILE` to have its frames sorted by rules"))
    })?;
    Ok(Interface { name, rules: rules.map(PathBuf::from) })
}

/// `can0`, or `43113` for a bus that is a port.
fn bus(text: &str, argument: &str) -> Result<CanEndpoint, HostError> {
    let argument = named(text, argument, "a bus")?;
    if !argument.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(CanEndpoint::Interface(argument));
    }
    match argument.parse() {
        Ok(port) if port > 0 => Ok(CanEndpoint::Loopback(port)),
        Ok(_) | Err(_) => Err(HostError::usage(HostCode::Driver, format!("`{text}` names no port"))
            .help("write `can:NAME` for an interface, `can:43113` for a bus of this machine at that UDP port")),
    }
}

/// `/dev/shm/samples`, or `/dev/shm/samples,size=1M`.
fn ring(text: &str, argument: &str) -> Result<Ring, HostError> {
    let (path, size) = argument.rsplit_once(",size=").map_or((argument, None), |(path, size)| (path, Some(size)));
    let path = named(text, path, "a path")?;
    let wrong = || {
        let largest = (SLOT_BYTES << Ring::MAX_SLOTS_LOG2) >> 20;
        HostError::usage(HostCode::Driver, format!("driver `{text}`: that is no size of a ring")).help(format!(
            "write bytes, or K or M of them, {SLOT_BYTES} to {largest}M: `ring:{path},size=256K`; it is rounded up to a power of two"
        ))
    };
    let slots_log2 = size.map(|size| {
        let digits = size.trim_end_matches(['K', 'M']);
        let unit: u64 = match &size[digits.len()..] {
            "" => 1,
            "K" => 1 << 10,
            "M" => 1 << 20,
            _ => return None,
        };
        let bytes = digits.parse::<u64>().ok()?.checked_mul(unit)?;
        let slots_log2 = bytes.div_ceil(SLOT_BYTES as u64).checked_next_power_of_two()?.ilog2();
        (bytes > 0 && slots_log2 <= Ring::MAX_SLOTS_LOG2).then_some(slots_log2)
    });
    let slots_log2 = slots_log2.map_or(Ok(Ring::DEFAULT_SLOTS_LOG2), |slots_log2| slots_log2.ok_or_else(wrong))?;
    Ok(Ring { path: path.into(), slots_log2 })
}

/// `/dev/ttyUSB0` or `/dev/ttyUSB0,19200`.
fn serial(argument: &str) -> Result<Driver, HostError> {
    let wrong = || {
        HostError::usage(HostCode::Driver, format!("`serial:{argument}` is no serial line"))
            .help("write its device and, if it shall be set, its speed: `serial:/dev/ttyUSB0,19200`")
    };
    let (path, speed) = match argument.split_once(',') {
        Some((path, speed)) => (path, Some(speed.parse().map_err(|_| wrong())?)),
        None => (argument, None),
    };
    if path.is_empty() || speed == Some(0) {
        Err(wrong())
    } else {
        Ok(Driver::Bytes(StreamEndpoint::Serial(path.into(), speed)))
    }
}

/// The argument of `text:`, `bytes:`, `hex:` and `data:`.
fn parse_endpoint(text: &str, driver: &str, argument: &str) -> Result<StreamEndpoint, HostError> {
    match argument {
        "" => Err(HostError::usage(HostCode::Driver, format!("driver `{text}` names no file"))
            .help(format!("write `{driver}:PATH`, or `{driver}:-` for standard input or output"))),
        "-" => Ok(StreamEndpoint::Standard),
        path => Ok(StreamEndpoint::Path(PathBuf::from(path))),
    }
}

/// `10ms`, or `10ms,5` for five messages.
fn timer(argument: &str) -> Result<Driver, HostError> {
    let wrong = || {
        HostError::usage(HostCode::Driver, format!("`timer:{argument}` is no timer"))
            .help("write a period and, if the channel shall close, a number of ticks: `timer:10ms` or `timer:2s,5`; units are ns, us, ms and s")
    };
    let (period, limit) = match argument.split_once(',') {
        Some((period, limit)) => (period, Some(limit.parse().map_err(|_| wrong())?)),
        None => (argument, None),
    };
    let digits = period.find(|c: char| !c.is_ascii_digit()).unwrap_or(period.len());
    let amount: u64 = period[..digits].parse().map_err(|_| wrong())?;
    let unit_ns: u64 = match &period[digits..] {
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return Err(wrong()),
    };
    let period = amount.checked_mul(unit_ns).filter(|ns| *ns > 0 && *ns <= i64::MAX as u64).ok_or_else(wrong)?;
    Ok(Driver::Timer { period: Duration::from_nanos(period), limit })
}

#[cfg(test)]
mod tests {
    use super::{Binding, Choice, Driver, StreamEndpoint};
    use std::time::Duration;

    fn parse(text: &str) -> Result<Binding, String> {
        text.parse().map_err(|error: crate::error::HostError| error.to_string())
    }

    #[test]
    fn a_binding_names_a_channel_a_driver_and_its_argument() {
        let bind = |driver| Ok(Binding { channel: "c".to_string(), choice: Choice::Driver(driver) });
        assert_eq!(parse("c=text:-"), bind(Driver::Text(StreamEndpoint::Standard)));
        assert_eq!(parse("c=bytes:a=b:c"), bind(Driver::Bytes(StreamEndpoint::Path("a=b:c".into()))));
        assert_eq!(parse("c=hex:-"), bind(Driver::Hex(StreamEndpoint::Standard)));
        assert_eq!(parse("c=timer:10ms"), bind(Driver::Timer { period: Duration::from_millis(10), limit: None }));
        let endpoint = |port| super::SocketEndpoint((std::net::Ipv4Addr::LOCALHOST, port).into());
        assert_eq!(parse("c=udp:69"), bind(Driver::Device(super::DeviceEndpoint::Udp(endpoint(69)))));
        let at = |text: &str| super::SocketEndpoint(text.parse().expect("an address"));
        for text in ["0.0.0.0:0", "[::1]:69", "[fe80::1%3]:69"] {
            assert_eq!(parse(&format!("c=udp:{text}")), bind(Driver::Device(super::DeviceEndpoint::Udp(at(text)))));
        }
        let can = |bus| bind(Driver::Device(super::DeviceEndpoint::Can(bus)));
        assert_eq!(parse("c=can:can0"), can(super::CanEndpoint::Interface("can0".to_string())));
        assert_eq!(parse("c=can:43113"), can(super::CanEndpoint::Loopback(43_113)));
        let ring = |slots_log2| {
            bind(Driver::Device(super::DeviceEndpoint::Ring(super::Ring { path: "r,s".into(), slots_log2 })))
        };
        assert_eq!(parse("c=ring:r,s"), ring(10));
        for (size, slots_log2) in [("1", 0), ("64", 0), ("65", 1), ("1K", 4), ("100K", 11), ("16M", 18)] {
            assert_eq!(parse(&format!("c=ring:r,s,size={size}")), ring(slots_log2), "{size}");
        }
        let frames = |rules| {
            let rules: Option<&str> = rules;
            let interface = super::Interface { name: "eth0".to_string(), rules: rules.map(Into::into) };
            bind(Driver::Device(super::DeviceEndpoint::Packet(interface)))
        };
        assert_eq!(parse("c=packet:eth0"), frames(None));
        assert_eq!(parse("c=packet:eth0,rules=a,b.rules"), frames(Some("a,b.rules")));
        assert_eq!(parse("c=tcp:-"), bind(Driver::Device(super::DeviceEndpoint::Tcp(None))));
        assert_eq!(parse("c=serial:d,9600"), bind(Driver::Bytes(StreamEndpoint::Serial("d".into(), Some(9600)))));
        assert_eq!(
            parse("c=data:-"),
            Ok(Binding { channel: "c".to_string(), choice: Choice::Data(StreamEndpoint::Standard) })
        );
        assert_eq!(parse("c=timer:2s,5"), bind(Driver::Timer { period: Duration::from_secs(2), limit: Some(5) }));
    }

    #[test]
    fn an_invalid_binding_shows_the_syntax() {
        for (text, cause) in [
            ("c", "`c` names no driver"),
            ("=text:-", "`=text:-` names no channel"),
            ("c=lin:lin0", "there is no driver `lin`"),
            ("c=can:", "driver `can:` does not name a bus"),
            ("c=can:0", "`can:0` names no port"),
            ("c=can:65536", "`can:65536` names no port"),
            ("c=ring:", "driver `ring:` does not name a path"),
            ("c=ring:,size=1K", "driver `ring:,size=1K` does not name a path"),
            ("c=ring:r,size=", "driver `ring:r,size=`: that is no size of a ring"),
            ("c=ring:r,size=0", "driver `ring:r,size=0`: that is no size of a ring"),
            ("c=ring:r,size=1KM", "driver `ring:r,size=1KM`: that is no size of a ring"),
            ("c=ring:r,size=17M", "driver `ring:r,size=17M`: that is no size of a ring"),
            ("c=ring:r,size=18446744073709551615M", "driver `ring:r,size=18446744073709551615M`: that is no size"),
            ("c=udp:", "`udp:` names no port"),
            ("c=udp:65536", "`udp:65536` names no port"),
            ("c=udp:::1:69", "`udp:::1:69` names no port"),
            ("c=tcp:localhost:80", "`tcp:localhost:80` names no port"),
            ("c=file:", "driver `file:` does not name a folder"),
            ("c=packet:,rules=r", "driver `packet:,rules=r` does not name an interface"),
            ("c=packet:eth0,rules=", "driver `packet:eth0,rules=`: `rules=` says nothing about an interface"),
            ("c=tap:t0,filter=ip", "driver `tap:t0,filter=ip`: `filter=ip` says nothing about an interface"),
            ("c=serial:/dev/ttyS0,fast", "`serial:/dev/ttyS0,fast` is no serial line"),
            ("c=text", "driver `text` names no file"),
            ("c=timer:", "`timer:` is no timer"),
            ("c=timer:10", "`timer:10` is no timer"),
            ("c=timer:0s", "`timer:0s` is no timer"),
            ("c=timer:99999999999999999999s", "`timer:99999999999999999999s` is no timer"),
            ("c=timer:1s,x", "`timer:1s,x` is no timer"),
        ] {
            let error = parse(text).expect_err("each of these is wrong");
            assert!(error.starts_with(cause) && error.contains("\nhelp: "), "{text}: {error}");
        }
    }
}
