//! Which driver serves which external channel: `CHANNEL=DRIVER:ARGUMENT` from the command line, else the program's
//! driver string, else `text:-`. Opens nothing.

use crate::error::HostError;
use quaject_esp_ir::ir::{Boundary, ChannelId, Program};
use quaject_queue::shared::SLOT_BYTES;
use std::fmt;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

/// A choice of driver for one channel, as written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Binding {
    /// The channel's name.
    pub channel: String,
    /// What shall serve it.
    pub choice: Choice,
}

/// What shall serve a channel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Choice {
    /// This driver.
    Driver(Driver),
    /// The driver the channel's declaration names, `text` or `bytes`, with the data of this endpoint.
    Data(StreamEndpoint),
}

/// What serves an external channel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Driver {
    /// One message per line in ESP's literal syntax, its values separated by blanks.
    Text(StreamEndpoint),
    /// One message per byte.
    Bytes(StreamEndpoint),
    /// A message per period.
    Timer {
        /// The time between two messages.
        period: Duration,
        /// How many messages there are before the channel closes.
        limit: Option<u64>,
    },
    /// A thing that two channels may share, one for each direction.
    Device(Device),
}

/// What one channel may read while another writes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Device {
    /// UDP sockets.
    Udp(SocketEndpoint),
    /// TCP connections, those that come in at this place among them.
    Tcp(Option<SocketEndpoint>),
    /// The files of a folder.
    Files(PathBuf),
    /// The other end of a TAP interface.
    Tap(Interface),
    /// A network interface, frame by frame.
    Packet(Interface),
    /// A CAN bus.
    Can(Bus),
    /// A queue in shared memory, to another process or from it.
    Ring(Ring),
}

/// A queue in shared memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ring {
    /// Where its two sides meet.
    pub path: PathBuf,
    /// How many slots of 64 bytes it has, as a power of two, if we come first.
    pub slots_log2: u32,
}

impl Ring {
    /// 64 KiB, as pipes have.
    const SLOTS_LOG2: u32 = 10;
    /// 16 MiB: whoever joins a ring looks at all of it.
    pub(crate) const SLOTS_LOG2_MAX: u32 = 18;
}

/// A network interface.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interface {
    /// What the system calls it.
    pub name: String,
    /// The rules that say which port of the program's channel a frame is for.
    pub rules: Option<PathBuf>,
}

/// Which CAN bus.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Bus {
    /// An interface of SocketCAN.
    Interface(String),
    /// A bus of this machine, at this UDP port of the loopback interface.
    Loopback(u16),
}

/// Where a socket is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SocketEndpoint {
    /// One of this machine's addresses, or 0.0.0.0 for all of them.
    pub address: Ipv4Addr,
    /// The port; 0 lets the system choose one.
    pub port: u16,
}

impl fmt::Display for SocketEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.address, self.port)
    }
}

/// Where data comes from or goes to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StreamEndpoint {
    /// Standard input or output, written `-`.
    Standard,
    /// A file, device or named pipe.
    Path(PathBuf),
    /// A shell command: what it reads and what it writes.
    Command(String),
    /// A serial line, and its bits per second if they are to be set.
    Serial(PathBuf, Option<u32>),
    /// A terminal of its own, whose other end has this name.
    Pty(PathBuf),
}

const DRIVERS: &str = "drivers are `text:PATH`, `bytes:PATH`, `timer:10ms`, `udp:PORT`, `tcp:PORT`, `file:FOLDER`, \
                       `tap:NAME`, `packet:NAME`, `can:NAME`, `ring:PATH`, `exec:COMMAND`, `serial:PATH` and `pty:PATH`; `qj run --help` tells \
                       more";

impl StreamEndpoint {
    /// Whether channels in both directions must share what is opened.
    pub(crate) fn is_opened_once(&self) -> bool {
        match self {
            StreamEndpoint::Standard | StreamEndpoint::Path(_) => false,
            StreamEndpoint::Command(_) | StreamEndpoint::Serial(..) | StreamEndpoint::Pty(_) => true,
        }
    }
}

impl std::str::FromStr for Binding {
    type Err = HostError;

    fn from_str(text: &str) -> Result<Binding, HostError> {
        let form = "write `--bind CHANNEL=DRIVER:ARGUMENT`, as in `--bind linesC=text:in.txt`";
        let Some((channel, driver)) = text.split_once('=') else {
            return Err(HostError::usage(format!("`{text}` names no driver")).help(form));
        };
        if channel.is_empty() {
            return Err(HostError::usage(format!("`{text}` names no channel")).help(form));
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
            "timer" => timer(argument),
            "exec" => Ok(Driver::Bytes(StreamEndpoint::Command(named(text, argument, "a command")?))),
            "serial" => serial(argument),
            "pty" => Ok(Driver::Bytes(StreamEndpoint::Pty(named(text, argument, "a name for the terminal")?.into()))),
            "udp" => Ok(Driver::Device(Device::Udp(socket_endpoint(name, argument)?))),
            "tcp" if argument == "-" => Ok(Driver::Device(Device::Tcp(None))),
            "tcp" => Ok(Driver::Device(Device::Tcp(Some(socket_endpoint(name, argument)?)))),
            "file" => Ok(Driver::Device(Device::Files(named(text, argument, "a folder")?.into()))),
            "tap" => Ok(Driver::Device(Device::Tap(interface(text, argument)?))),
            "packet" => Ok(Driver::Device(Device::Packet(interface(text, argument)?))),
            "can" => Ok(Driver::Device(Device::Can(bus(text, argument)?))),
            "ring" => Ok(Driver::Device(Device::Ring(ring(text, argument)?))),
            _ => Err(HostError::usage(format!("there is no driver `{name}`")).help(DRIVERS)),
        }
    }
}

impl Driver {
    /// What the command line calls drivers of this kind.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Driver::Text(_) => "text",
            Driver::Bytes(StreamEndpoint::Command(_)) => "exec",
            Driver::Bytes(StreamEndpoint::Serial(..)) => "serial",
            Driver::Bytes(StreamEndpoint::Pty(_)) => "pty",
            Driver::Bytes(StreamEndpoint::Standard | StreamEndpoint::Path(_)) => "bytes",
            Driver::Timer { .. } => "timer",
            Driver::Device(device) => match device {
                Device::Udp(_) => "udp",
                Device::Tcp(_) => "tcp",
                Device::Files(_) => "file",
                Device::Tap(_) => "tap",
                Device::Packet(_) => "packet",
                Device::Can(_) => "can",
                Device::Ring(_) => "ring",
            },
        }
    }

    /// Where its data comes from or goes to, if it is of the kind that has such a endpoint.
    pub(crate) fn endpoint(&self) -> Option<&StreamEndpoint> {
        match self {
            Driver::Text(endpoint) | Driver::Bytes(endpoint) => Some(endpoint),
            Driver::Timer { .. } | Driver::Device(_) => None,
        }
    }
}

/// An argument that may not be missing.
fn named(text: &str, argument: &str, what: &str) -> Result<String, HostError> {
    if argument.is_empty() {
        return Err(HostError::usage(format!("driver `{text}` does not name {what}")).help(DRIVERS));
    }
    Ok(argument.to_string())
}

/// `69` or `0.0.0.0:69`. A port alone is one of this machine for itself: nobody shall serve a network unawares.
fn socket_endpoint(driver: &str, argument: &str) -> Result<SocketEndpoint, HostError> {
    let parsed = match argument.rsplit_once(':') {
        Some((address, port)) => address.parse().ok().zip(port.parse().ok()),
        None => argument.parse().ok().map(|port| (Ipv4Addr::LOCALHOST, port)),
    };
    let (address, port) = parsed.ok_or_else(|| {
        HostError::usage(format!("`{driver}:{argument}` names no port")).help(format!(
            "write `{driver}:PORT` for this machine's own use, `{driver}:0.0.0.0:PORT` for every network it is in"
        ))
    })?;
    Ok(SocketEndpoint { address, port })
}

/// `eth0`, or `eth0,rules=FILE`.
fn interface(text: &str, argument: &str) -> Result<Interface, HostError> {
    let (name, more) = argument.split_once(',').map_or((argument, None), |(name, more)| (name, Some(more)));
    let name = named(text, name, "an interface")?;
    let path = more.map(|more| more.strip_prefix("rules=").filter(|path| !path.is_empty()).ok_or(more)).transpose();
    let rules = path.map_err(|more| {
        let kind = text.split(':').next().unwrap_or_default();
        HostError::usage(format!("driver `{text}`: `{more}` says nothing about an interface"))
            .help(format!("write `{kind}:{name}`, or `{kind}:{name},rules=FILE` to have its frames sorted by rules"))
    })?;
    Ok(Interface { name, rules: rules.map(PathBuf::from) })
}

/// `can0`, or `43113` for a bus that is a port.
fn bus(text: &str, argument: &str) -> Result<Bus, HostError> {
    let argument = named(text, argument, "a bus")?;
    if !argument.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(Bus::Interface(argument));
    }
    match argument.parse() {
        Ok(port) if port > 0 => Ok(Bus::Loopback(port)),
        Ok(_) | Err(_) => Err(HostError::usage(format!("`{text}` names no port"))
            .help("write `can:NAME` for an interface, `can:43113` for a bus of this machine at that UDP port")),
    }
}

/// `/dev/shm/samples`, or `/dev/shm/samples,size=1M`.
fn ring(text: &str, argument: &str) -> Result<Ring, HostError> {
    let (path, size) = argument.rsplit_once(",size=").map_or((argument, None), |(path, size)| (path, Some(size)));
    let path = named(text, path, "a place to meet")?;
    let wrong = || {
        let largest = (SLOT_BYTES << Ring::SLOTS_LOG2_MAX) >> 20;
        HostError::usage(format!("driver `{text}`: that is no size of a ring")).help(format!(
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
        (bytes > 0 && slots_log2 <= Ring::SLOTS_LOG2_MAX).then_some(slots_log2)
    });
    let slots_log2 = slots_log2.map_or(Ok(Ring::SLOTS_LOG2), |slots_log2| slots_log2.ok_or_else(wrong))?;
    Ok(Ring { path: path.into(), slots_log2 })
}

/// `/dev/ttyUSB0` or `/dev/ttyUSB0,19200`.
fn serial(argument: &str) -> Result<Driver, HostError> {
    let wrong = || {
        HostError::usage(format!("`serial:{argument}` is no serial line"))
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

/// What stands after `text:`, `bytes:` and `data:`.
fn parse_endpoint(text: &str, driver: &str, argument: &str) -> Result<StreamEndpoint, HostError> {
    match argument {
        "" => Err(HostError::usage(format!("driver `{text}` names no file"))
            .help(format!("write `{driver}:PATH`, or `{driver}:-` for standard input or output"))),
        "-" => Ok(StreamEndpoint::Standard),
        path => Ok(StreamEndpoint::Path(PathBuf::from(path))),
    }
}

/// `10ms`, or `10ms,5` for five messages.
fn timer(argument: &str) -> Result<Driver, HostError> {
    let wrong = || {
        HostError::usage(format!("`timer:{argument}` is no timer"))
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

/// The driver of every external channel, in order of channels; `None` for internal ones.
pub(crate) fn resolve(program: &Program, bindings: &[Binding]) -> Result<Vec<Option<Driver>>, HostError> {
    let mut drivers: Vec<Option<Driver>> = Vec::with_capacity(program.channels.len());
    for channel in &program.channels {
        drivers.push(match (channel.boundary, &channel.driver) {
            (Boundary::Internal, _) => None,
            (Boundary::ToEnvironment | Boundary::FromEnvironment, None) => Some(Driver::Text(StreamEndpoint::Standard)),
            (Boundary::ToEnvironment | Boundary::FromEnvironment, Some(text)) => {
                // A driver this tool does not have is a fault only if the command line does not replace it.
                let replaced = bindings.iter().any(|binding| binding.channel == channel.name);
                match text.parse() {
                    Ok(driver) => Some(driver),
                    Err(_) if replaced => Some(Driver::Text(StreamEndpoint::Standard)),
                    Err(error) => {
                        return Err(HostError::new(format!("channel `{}`: {}", channel.name, error.cause))
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
            return Err(HostError::usage(format!("channel `{}` is bound twice", binding.channel)));
        }
        drivers[index] = Some(match (&binding.choice, &drivers[index]) {
            (Choice::Driver(driver), _) => driver.clone(),
            (Choice::Data(endpoint), Some(Driver::Bytes(_))) => Driver::Bytes(endpoint.clone()),
            (Choice::Data(endpoint), Some(Driver::Text(_) | Driver::Timer { .. } | Driver::Device(_)) | None) => {
                Driver::Text(endpoint.clone())
            }
        });
    }
    for (channel, driver) in program.channels.iter().zip(&drivers) {
        if let (Boundary::ToEnvironment, Some(Driver::Timer { .. })) = (channel.boundary, driver) {
            return Err(HostError::usage(format!("channel `{}`: a timer cannot take messages", channel.name))
                .help("the program writes this channel: bind it to `text:PATH` or `bytes:PATH`"));
        }
    }
    share_rules(program, &mut drivers);
    share_standard_input(program, &drivers)?;
    share_devices(program, &drivers)?;
    Ok(drivers)
}

/// A channel that the program writes is at the same interface as one that it reads, whether or not what is read is sorted.
fn share_rules(program: &Program, drivers: &mut [Option<Driver>]) {
    let sorted: Vec<Device> = program
        .channels
        .iter()
        .zip(&*drivers)
        .filter(|(channel, _)| channel.boundary == Boundary::FromEnvironment)
        .filter_map(|(_, driver)| match driver {
            Some(Driver::Device(device @ (Device::Tap(own) | Device::Packet(own)))) if own.rules.is_some() => {
                Some(device.clone())
            }
            Some(_) | None => None,
        })
        .collect();
    for (channel, driver) in program.channels.iter().zip(drivers) {
        let Some(Driver::Device(device)) = driver else { continue };
        let same = sorted.iter().find(|sorted| match (&*device, sorted) {
            (Device::Tap(own), Device::Tap(other)) | (Device::Packet(own), Device::Packet(other)) => {
                own.name == other.name && own.rules.is_none()
            }
            _ => false,
        });
        if let (Boundary::ToEnvironment, Some(same)) = (channel.boundary, same) {
            *device = same.clone();
        }
    }
}

/// A device has one channel in each direction: which message would be whose?
fn share_devices(program: &Program, drivers: &[Option<Driver>]) -> Result<(), HostError> {
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
                return Err(HostError::usage(format!(
                    "channels `{}` and `{}` share one `{name}` driver in the same direction",
                    other.name, channel.name
                ))
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
        return Err(HostError::usage(format!("the program has no channel `{name}`")).help(list));
    };
    match program.channels[index].boundary {
        Boundary::ToEnvironment | Boundary::FromEnvironment => Ok(index),
        Boundary::Internal => {
            Err(HostError::usage(format!("channel `{name}` is not external, so no driver can serve it")).help(list))
        }
    }
}

/// Standard input can serve one channel only: which message would be whose?
fn share_standard_input(program: &Program, drivers: &[Option<Driver>]) -> Result<(), HostError> {
    let mut first: Option<ChannelId> = None;
    for (index, (channel, driver)) in program.channels.iter().zip(drivers).enumerate() {
        let standard = driver.as_ref().and_then(Driver::endpoint) == Some(&StreamEndpoint::Standard);
        if channel.boundary != Boundary::FromEnvironment || !standard {
            continue;
        }
        if let Some(first) = first {
            let first = &program.channels[first.0 as usize].name;
            return Err(HostError::usage(format!(
                "channels `{first}` and `{}` would both read standard input",
                channel.name
            ))
            .help(format!("bind one of them elsewhere, as in `--bind {}=text:PATH`", channel.name)));
        }
        first = Some(ChannelId(index as u32));
    }
    Ok(())
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
        assert_eq!(parse("c=timer:10ms"), bind(Driver::Timer { period: Duration::from_millis(10), limit: None }));
        let endpoint = |port| super::SocketEndpoint { address: std::net::Ipv4Addr::LOCALHOST, port };
        assert_eq!(parse("c=udp:69"), bind(Driver::Device(super::Device::Udp(endpoint(69)))));
        let can = |bus| bind(Driver::Device(super::Device::Can(bus)));
        assert_eq!(parse("c=can:can0"), can(super::Bus::Interface("can0".to_string())));
        assert_eq!(parse("c=can:43113"), can(super::Bus::Loopback(43_113)));
        let ring =
            |slots_log2| bind(Driver::Device(super::Device::Ring(super::Ring { path: "r,s".into(), slots_log2 })));
        assert_eq!(parse("c=ring:r,s"), ring(10));
        for (size, slots_log2) in [("1", 0), ("64", 0), ("65", 1), ("1K", 4), ("100K", 11), ("16M", 18)] {
            assert_eq!(parse(&format!("c=ring:r,s,size={size}")), ring(slots_log2), "{size}");
        }
        let frames = |rules| {
            let rules: Option<&str> = rules;
            let interface = super::Interface { name: "eth0".to_string(), rules: rules.map(Into::into) };
            bind(Driver::Device(super::Device::Packet(interface)))
        };
        assert_eq!(parse("c=packet:eth0"), frames(None));
        assert_eq!(parse("c=packet:eth0,rules=a,b.rules"), frames(Some("a,b.rules")));
        assert_eq!(parse("c=tcp:-"), bind(Driver::Device(super::Device::Tcp(None))));
        assert_eq!(parse("c=serial:d,9600"), bind(Driver::Bytes(StreamEndpoint::Serial("d".into(), Some(9600)))));
        assert_eq!(
            parse("c=data:-"),
            Ok(Binding { channel: "c".to_string(), choice: Choice::Data(StreamEndpoint::Standard) })
        );
        assert_eq!(parse("c=timer:2s,5"), bind(Driver::Timer { period: Duration::from_secs(2), limit: Some(5) }));
    }

    #[test]
    fn a_wrong_binding_says_how_to_write_it() {
        for (text, cause) in [
            ("c", "`c` names no driver"),
            ("=text:-", "`=text:-` names no channel"),
            ("c=lin:lin0", "there is no driver `lin`"),
            ("c=can:", "driver `can:` does not name a bus"),
            ("c=can:0", "`can:0` names no port"),
            ("c=can:65536", "`can:65536` names no port"),
            ("c=ring:", "driver `ring:` does not name a place to meet"),
            ("c=ring:,size=1K", "driver `ring:,size=1K` does not name a place to meet"),
            ("c=ring:r,size=", "driver `ring:r,size=`: that is no size of a ring"),
            ("c=ring:r,size=0", "driver `ring:r,size=0`: that is no size of a ring"),
            ("c=ring:r,size=1KM", "driver `ring:r,size=1KM`: that is no size of a ring"),
            ("c=ring:r,size=17M", "driver `ring:r,size=17M`: that is no size of a ring"),
            ("c=ring:r,size=18446744073709551615M", "driver `ring:r,size=18446744073709551615M`: that is no size"),
            ("c=udp:", "`udp:` names no port"),
            ("c=udp:65536", "`udp:65536` names no port"),
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
