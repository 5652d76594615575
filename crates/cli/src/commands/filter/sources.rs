//! Common parts of the sources of packets: libpcap, and the kind of access to an interface.

use crate::terminal::CliError;
use quaject_esp_run::{HostCode, HostError};
use quaject_filter::pcap::Pcap;

/// Whether the kernel's network stack receives the packets too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    /// It does: AF_PACKET.
    Shared,
    /// It does not: AF_XDP.
    Exclusive,
}

/// The system's libpcap.
pub(crate) fn load() -> Result<Pcap, CliError> {
    Pcap::load()
        .map_err(|absent| CliError::from(HostError::new(HostCode::Tool, absent.to_string()).help(absent.help())))
}
