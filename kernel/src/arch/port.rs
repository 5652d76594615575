//! Input and output ports.

use core::arch::asm;

/// Writes a byte to a port.
///
/// # Safety
/// The device at the port does nothing with the byte that breaks an invariant of the kernel.
pub(crate) unsafe fn write_u8(port: u16, value: u8) {
    // SAFETY: by the contract; the instruction touches no memory.
    unsafe { asm!("out dx, al", in("dx") port, in("al") value, options(nomem, nostack, preserves_flags)) }
}

/// Writes a 32-bit word to a port.
///
/// # Safety
/// As for [`write_u8`].
pub(crate) unsafe fn write_u32(port: u16, value: u32) {
    // SAFETY: by the contract; the instruction touches no memory.
    unsafe { asm!("out dx, eax", in("dx") port, in("eax") value, options(nomem, nostack, preserves_flags)) }
}

/// Reads a byte from a port.
///
/// # Safety
/// As for [`write_u8`]: reading may change the state of a device.
pub(crate) unsafe fn read_u8(port: u16) -> u8 {
    let value: u8;
    // SAFETY: by the contract; the instruction touches no memory.
    unsafe { asm!("in al, dx", in("dx") port, out("al") value, options(nomem, nostack, preserves_flags)) }
    value
}
