//! The processor and the devices every PC has. Knows no thread, no program and no file.

pub(crate) mod apic;
pub(crate) mod block;
pub(crate) mod boot;
pub(crate) mod entry;
pub(crate) mod frame;
pub(crate) mod interrupts;
pub(crate) mod port;
pub(crate) mod processor;
pub(crate) mod segments;
pub(crate) mod serial;
pub(crate) mod time;
