//! What the kernel reports, a line each.

use crate::arch::serial::log_port;
use core::fmt::{self, Write};

/// Writes a line.
pub(crate) fn line(text: fmt::Arguments<'_>) {
    let mut port = log_port();
    // Writing to a serial port cannot fail.
    let _ = port.write_fmt(text);
    port.write(b"\n");
}

/// Reports a line to the kernel's log.
macro_rules! log {
    ($($argument:tt)*) => { $crate::log::line(format_args!($($argument)*)) };
}
pub(crate) use log;
