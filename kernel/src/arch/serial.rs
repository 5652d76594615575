//! The serial ports (16550): the first carries what the program writes, the second what the kernel reports. On a
//! machine with one port both are on the first.

use super::port;
use core::fmt;

/// A serial port, by its first register.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Serial(u16);

/// What the program writes.
pub(crate) const CONSOLE: Serial = Serial(0x3f8);
/// What the kernel reports, where the machine has it.
const SECOND: Serial = Serial(0x2f8);

const DATA: u16 = 0;
const FIFO_CONTROL: u16 = 2;
const LINE_CONTROL: u16 = 3;
const MODEM_CONTROL: u16 = 4;
const LINE_STATUS: u16 = 5;
const SCRATCH: u16 = 7;
/// The transmitter's buffer has room for [`FIFO_BYTES`].
const BUFFER_EMPTY: u8 = 0x20;
/// The last byte has left the device.
const TRANSMITTER_EMPTY: u8 = 0x40;
const FIFO_BYTES: usize = 16;

/// The port of the kernel's reports.
pub(crate) fn log_port() -> Serial {
    if SECOND.is_present() { SECOND } else { CONSOLE }
}

impl Serial {
    /// Whether a device answers: the scratch register of a 16550 holds what is written to it.
    fn is_present(self) -> bool {
        const PATTERN: u8 = 0xa5;
        // SAFETY: the scratch register has no effect, and where there is no device a write has none either.
        unsafe {
            port::write_u8(self.0 + SCRATCH, PATTERN);
            port::read_u8(self.0 + SCRATCH) == PATTERN
        }
    }

    /// Sets eight bits without parity, and switches the FIFO on. The speed means nothing to an emulated device.
    pub(crate) fn initialize(self) {
        // SAFETY: these registers concern the port alone.
        unsafe {
            port::write_u8(self.0 + LINE_CONTROL, 0x03);
            port::write_u8(self.0 + FIFO_CONTROL, 0x07);
            port::write_u8(self.0 + MODEM_CONTROL, 0x03);
        }
    }

    fn wait_for(self, status: u8) {
        // SAFETY: reading the line status clears error bits, which nothing reads.
        while unsafe { port::read_u8(self.0 + LINE_STATUS) } & status == 0 {
            core::hint::spin_loop();
        }
    }

    /// Sends the bytes as they are.
    pub(crate) fn write(self, bytes: &[u8]) {
        for part in bytes.chunks(FIFO_BYTES) {
            self.wait_for(BUFFER_EMPTY);
            for byte in part {
                // SAFETY: the data register sends the byte.
                unsafe { port::write_u8(self.0 + DATA, *byte) }
            }
        }
    }

    /// Waits until everything has left the device: the machine may end then.
    pub(crate) fn flush(self) {
        self.wait_for(TRANSMITTER_EMPTY);
    }
}

impl fmt::Write for Serial {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.write(text.as_bytes());
        Ok(())
    }
}
