//! Devices: the files of `/dev`.

use super::random;
use crate::arch::serial::CONSOLE;
use crate::memory::user;
use syscalls::Errno;

/// A device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Device {
    Null,
    Zero,
    /// Reads as zeros and has no room for anything.
    Full,
    Random,
    /// The serial port. Nothing can be read from it: its input is at the end.
    Console,
}

/// The names in `/dev`, each with its device.
pub(crate) const NAMES: &[(&[u8], Device)] = &[
    (b"null", Device::Null),
    (b"zero", Device::Zero),
    (b"full", Device::Full),
    (b"random", Device::Random),
    (b"urandom", Device::Random),
    (b"console", Device::Console),
    (b"tty", Device::Console),
];

impl Device {
    /// The major and minor number, as Linux has them.
    pub(crate) fn number(self) -> u64 {
        let (major, minor) = match self {
            Device::Null => (1, 3),
            Device::Zero => (1, 5),
            Device::Full => (1, 7),
            Device::Random => (1, 9),
            Device::Console => (5, 1),
        };
        major << 8 | minor
    }

    /// Whether it is a terminal.
    pub(crate) fn is_terminal(self) -> bool {
        self == Device::Console
    }

    pub(crate) fn read(self, address: u64, length: usize) -> Result<usize, Errno> {
        let copied = match self {
            Device::Null | Device::Console => return Ok(0),
            Device::Zero | Device::Full => user::clear(address, length),
            Device::Random => random::fill(address, length),
        };
        if copied == 0 && length > 0 { Err(Errno::EFAULT) } else { Ok(copied) }
    }

    pub(crate) fn write(self, address: u64, length: usize) -> Result<usize, Errno> {
        match self {
            // As on Linux, the bytes are not looked at.
            Device::Null | Device::Zero => Ok(length),
            Device::Full => Err(Errno::ENOSPC),
            Device::Random | Device::Console => self.write_parts(address, length),
        }
    }

    fn write_parts(self, address: u64, length: usize) -> Result<usize, Errno> {
        let mut buffer = [0; 512];
        let mut written = 0;
        while written < length {
            let part = &mut buffer[..(length - written).min(512)];
            let wanted = part.len();
            let copied = user::copy_in(address + written as u64, part);
            if self == Device::Console {
                CONSOLE.write(&part[..copied]);
            }
            written += copied;
            if copied < wanted {
                return if written == 0 { Err(Errno::EFAULT) } else { Ok(written) };
            }
        }
        Ok(written)
    }
}
