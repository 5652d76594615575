//! The parts of `qj filter` that need Linux, on other systems: each is an error.

use super::sources::Access;
use crate::arguments::{FilterCorpus, FilterFuzz};
use crate::terminal::{CliError, Status, Terminal};
use quaject_esp_run::HostError;
use quaject_filter::capture::CapturedPacket;
use quaject_filter::link::LinkLayer;
use quaject_filter::pcap::Pcap;
use std::convert::Infallible;
use std::marker::PhantomData;

fn needs_linux(what: &str) -> HostError {
    HostError::unsupported(format!("{what} needs Linux")).help("captures can be read on every system: `-r FILE`")
}

pub(super) fn fuzz(_: &Terminal, _: &FilterFuzz) -> Result<Status, CliError> {
    Err(CliError::from(needs_linux("`qj filter fuzz`")))
}

pub(super) fn corpus(_: &Terminal, _: &FilterCorpus) -> Result<Status, CliError> {
    Err(CliError::from(needs_linux("`qj filter corpus`")))
}

/// No such capture exists.
pub(super) struct InterfaceCapture<'p>(Infallible, PhantomData<&'p Pcap>);

impl<'p> InterfaceCapture<'p> {
    pub(super) fn open(
        _: &Terminal,
        _: &'p Pcap,
        _: &str,
        _: Access,
        _: Option<u64>,
    ) -> Result<InterfaceCapture<'p>, HostError> {
        Err(needs_linux("`--interface`"))
    }

    pub(super) fn link(&self) -> LinkLayer {
        match self.0 {}
    }

    pub(super) fn each(
        &mut self,
        _: impl FnMut(CapturedPacket<'_>) -> Result<(), HostError>,
    ) -> Result<u64, HostError> {
        match self.0 {}
    }
}
