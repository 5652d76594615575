//! Which driver serves which external channel: `CHANNEL=DRIVER:ARGUMENT` from the command line, else the program's
//! driver string, else `text:-`. Opens nothing.

use crate::trouble::Trouble;
use quaject_esp_ir::ir::{Boundary, ChannelId, Program};
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
    /// The driver the channel's declaration names, `text` or `bytes`, at this place.
    File(Place),
}

/// What serves an external channel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Driver {
    /// One message per line in ESP's literal syntax, its values separated by blanks.
    Text(Place),
    /// One message per byte.
    Bytes(Place),
    /// A message per period.
    Timer {
        /// The time between two messages.
        period: Duration,
        /// How many messages there are before the channel closes.
        limit: Option<u64>,
    },
}

/// Where data comes from or goes to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Place {
    /// Standard input or output, written `-`.
    Standard,
    /// A file, device or named pipe.
    Path(PathBuf),
}

const DRIVERS: &str = "drivers are `text:PATH`, `bytes:PATH` and `timer:10ms`; PATH `-` is standard input or output; \
                       `file:PATH` keeps the channel's own driver";

impl std::str::FromStr for Binding {
    type Err = Trouble;

    fn from_str(text: &str) -> Result<Binding, Trouble> {
        let form = "write `--bind CHANNEL=DRIVER:ARGUMENT`, as in `--bind linesC=text:in.txt`";
        let Some((channel, driver)) = text.split_once('=') else {
            return Err(Trouble::usage(format!("`{text}` names no driver")).help(form));
        };
        if channel.is_empty() {
            return Err(Trouble::usage(format!("`{text}` names no channel")).help(form));
        }
        let choice = match driver.split_once(':') {
            Some(("file", place)) => Choice::File(parse_place(driver, "file", place)?),
            Some(_) | None => Choice::Driver(driver.parse()?),
        };
        Ok(Binding { channel: channel.to_string(), choice })
    }
}

impl std::str::FromStr for Driver {
    type Err = Trouble;

    fn from_str(text: &str) -> Result<Driver, Trouble> {
        let (name, argument) = text.split_once(':').unwrap_or((text, ""));
        let place = || parse_place(text, name, argument);
        match name {
            "text" => Ok(Driver::Text(place()?)),
            "bytes" => Ok(Driver::Bytes(place()?)),
            "timer" => timer(argument),
            _ => Err(Trouble::usage(format!("there is no driver `{name}`")).help(DRIVERS)),
        }
    }
}

/// What stands after `text:`, `bytes:` and `file:`.
fn parse_place(text: &str, driver: &str, argument: &str) -> Result<Place, Trouble> {
    match argument {
        "" => Err(Trouble::usage(format!("driver `{text}` names no file"))
            .help(format!("write `{driver}:PATH`, or `{driver}:-` for standard input or output"))),
        "-" => Ok(Place::Standard),
        path => Ok(Place::Path(PathBuf::from(path))),
    }
}

/// `10ms`, or `10ms,5` for five messages.
fn timer(argument: &str) -> Result<Driver, Trouble> {
    let wrong = || {
        Trouble::usage(format!("`timer:{argument}` is no timer"))
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
pub(crate) fn resolve(program: &Program, bindings: &[Binding]) -> Result<Vec<Option<Driver>>, Trouble> {
    let mut drivers: Vec<Option<Driver>> = Vec::with_capacity(program.channels.len());
    for channel in &program.channels {
        drivers.push(match (channel.boundary, &channel.driver) {
            (Boundary::Internal, _) => None,
            (Boundary::ToWorld | Boundary::FromWorld, None) => Some(Driver::Text(Place::Standard)),
            (Boundary::ToWorld | Boundary::FromWorld, Some(text)) => {
                // A driver this tool does not have is a fault only if the command line does not replace it.
                let replaced = bindings.iter().any(|binding| binding.channel == channel.name);
                match text.parse() {
                    Ok(driver) => Some(driver),
                    Err(_) if replaced => Some(Driver::Text(Place::Standard)),
                    Err(trouble) => {
                        return Err(Trouble::new(format!("channel `{}`: {}", channel.name, trouble.cause))
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
            return Err(Trouble::usage(format!("channel `{}` is bound twice", binding.channel)));
        }
        drivers[index] = Some(match (&binding.choice, &drivers[index]) {
            (Choice::Driver(driver), _) => driver.clone(),
            (Choice::File(place), Some(Driver::Bytes(_))) => Driver::Bytes(place.clone()),
            (Choice::File(place), Some(Driver::Text(_) | Driver::Timer { .. }) | None) => Driver::Text(place.clone()),
        });
    }
    for (channel, driver) in program.channels.iter().zip(&drivers) {
        if let (Boundary::ToWorld, Some(Driver::Timer { .. })) = (channel.boundary, driver) {
            return Err(Trouble::usage(format!("channel `{}`: a timer cannot take messages", channel.name))
                .help("the program writes this channel: bind it to `text:PATH` or `bytes:PATH`"));
        }
    }
    share_standard_input(program, &drivers)?;
    Ok(drivers)
}

fn external_channel(program: &Program, name: &str) -> Result<usize, Trouble> {
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
        return Err(Trouble::usage(format!("the program has no channel `{name}`")).help(list));
    };
    match program.channels[index].boundary {
        Boundary::ToWorld | Boundary::FromWorld => Ok(index),
        Boundary::Internal => {
            Err(Trouble::usage(format!("channel `{name}` is not external, so no driver can serve it")).help(list))
        }
    }
}

/// Standard input can serve one channel only: which message would be whose?
fn share_standard_input(program: &Program, drivers: &[Option<Driver>]) -> Result<(), Trouble> {
    let mut first: Option<ChannelId> = None;
    for (index, (channel, driver)) in program.channels.iter().zip(drivers).enumerate() {
        let standard = match driver {
            Some(Driver::Text(Place::Standard) | Driver::Bytes(Place::Standard)) => true,
            Some(Driver::Text(Place::Path(_)) | Driver::Bytes(Place::Path(_)) | Driver::Timer { .. }) | None => false,
        };
        if channel.boundary != Boundary::FromWorld || !standard {
            continue;
        }
        if let Some(first) = first {
            let first = &program.channels[first.0 as usize].name;
            return Err(Trouble::usage(format!(
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
    use super::{Binding, Choice, Driver, Place};
    use std::time::Duration;

    fn parse(text: &str) -> Result<Binding, String> {
        text.parse().map_err(|trouble: crate::trouble::Trouble| trouble.to_string())
    }

    #[test]
    fn a_binding_names_a_channel_a_driver_and_its_argument() {
        let bind = |driver| Ok(Binding { channel: "c".to_string(), choice: Choice::Driver(driver) });
        assert_eq!(parse("c=text:-"), bind(Driver::Text(Place::Standard)));
        assert_eq!(parse("c=bytes:a=b:c"), bind(Driver::Bytes(Place::Path("a=b:c".into()))));
        assert_eq!(parse("c=timer:10ms"), bind(Driver::Timer { period: Duration::from_millis(10), limit: None }));
        assert_eq!(parse("c=timer:2s,5"), bind(Driver::Timer { period: Duration::from_secs(2), limit: Some(5) }));
    }

    #[test]
    fn a_wrong_binding_says_how_to_write_it() {
        for (text, cause) in [
            ("c", "`c` names no driver"),
            ("=text:-", "`=text:-` names no channel"),
            ("c=tap:tap0", "there is no driver `tap`"),
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
