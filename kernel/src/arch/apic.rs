//! The local interrupt controller: its timer interrupts programs periodically. The old controllers (8259) are masked.

use super::interrupts::{SPURIOUS, TIMER};
use super::{port, time};
use crate::cell::Global;

/// Where the registers lie in physical memory after a reset.
pub(crate) const PHYSICAL_ADDRESS: u64 = 0xfee0_0000;

/// Ticks a second.
pub(crate) const TICK_RATE: u64 = 100;

const END_OF_INTERRUPT: usize = 0xb0;
const SPURIOUS_VECTOR: usize = 0xf0;
const TIMER_VECTOR: usize = 0x320;
const TIMER_COUNT: usize = 0x380;
const TIMER_CURRENT: usize = 0x390;
const TIMER_DIVISOR: usize = 0x3e0;

const ENABLED: u32 = 0x100;
const PERIODIC: u32 = 0x2_0000;
const MASKED: u32 = 0x1_0000;
const DIVIDE_BY_1: u32 = 0xb;

/// Where the registers are mapped.
static REGISTERS: Global<usize> = Global::new(0);

fn write(register: usize, value: u32) {
    let base = REGISTERS.with(|base| *base);
    // SAFETY: `initialize` has set where the registers are mapped; the callers write what the device expects.
    unsafe { ((base + register) as *mut u32).write_volatile(value) }
}

fn read(register: usize) -> u32 {
    let base = REGISTERS.with(|base| *base);
    // SAFETY: `initialize` has set where the registers are mapped.
    unsafe { ((base + register) as *const u32).read_volatile() }
}

/// Switches the controller on and measures its clock.
///
/// # Safety
/// The registers are mapped at `address`, uncached, until the machine ends.
pub(crate) unsafe fn initialize(address: usize) {
    const FIRST_MASK: u16 = 0x21;
    const SECOND_MASK: u16 = 0xa1;
    REGISTERS.with(|base| *base = address);
    // SAFETY: the old controllers raise nothing while everything is masked.
    unsafe {
        port::write_u8(FIRST_MASK, 0xff);
        port::write_u8(SECOND_MASK, 0xff);
    }
    write(SPURIOUS_VECTOR, ENABLED | u32::from(SPURIOUS));
    write(TIMER_DIVISOR, DIVIDE_BY_1);
    write(TIMER_VECTOR, MASKED);
    write(TIMER_COUNT, u32::MAX);
    let counted = time::calibrate(|| read(TIMER_CURRENT));
    let per_second = u64::from(counted) * time::CALIBRATIONS_PER_SECOND;
    write(TIMER_VECTOR, PERIODIC | u32::from(TIMER));
    write(TIMER_COUNT, u32::try_from(per_second / TICK_RATE).unwrap_or(u32::MAX).max(1));
}

/// Ends the interrupt that is being handled.
pub(crate) fn end_interrupt() {
    write(END_OF_INTERRUPT, 0);
}
