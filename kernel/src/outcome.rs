//! How the machine ends: a last line of the log for the tool that started it, and the status of QEMU.

use crate::arch::{port, processor, serial};
use crate::log::log;
use core::fmt;

/// Why the machine ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    /// The program called exit.
    Exited(u8),
    /// A signal ended the program.
    Killed(u8),
    /// The kernel itself failed; the report is in the log.
    KernelFault,
    /// The program could not be started; the reason is in the log.
    Refused,
    /// Every thread waits for another one, for ever.
    Deadlock,
    /// A self-test found nothing wrong.
    Checked,
}

impl fmt::Display for Outcome {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Exited(status) => write!(out, "exited {status}"),
            Outcome::Killed(signal) => write!(out, "killed {signal}"),
            Outcome::KernelFault => out.write_str("kernel-fault"),
            Outcome::Refused => out.write_str("refused"),
            Outcome::Deadlock => out.write_str("deadlock"),
            Outcome::Checked => out.write_str("checked"),
        }
    }
}

impl Outcome {
    /// What is written to the exit device. QEMU ends with twice the value plus 1, of which a shell sees eight bits; so
    /// the status of the program is in the log only.
    fn exit_value(self) -> u32 {
        match self {
            Outcome::Exited(_) => 0x10,
            Outcome::Killed(_) => 0x11,
            Outcome::KernelFault => 0x12,
            Outcome::Refused => 0x13,
            Outcome::Deadlock => 0x14,
            Outcome::Checked => 0x15,
        }
    }
}

/// Ends the machine.
pub(crate) fn end_machine(outcome: Outcome) -> ! {
    const EXIT_DEVICE: u16 = 0xf4;
    log!("outcome: {outcome}");
    serial::CONSOLE.flush();
    serial::log_port().flush();
    // SAFETY: the device ends QEMU, and where it is missing nothing happens.
    unsafe { port::write_u32(EXIT_DEVICE, outcome.exit_value()) }
    processor::halt()
}
