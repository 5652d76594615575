//! The interrupt descriptor table: every vector leads to its stub in `entry.s`.

use super::entry::{page_fault_entry, protection_fault_entry, trap_stubs};
use super::segments::{DOUBLE_FAULT_STACK, FAULT_STACK, KERNEL_CODE};
use crate::cell::Global;
use core::arch::asm;

/// Exceptions, by the processor's numbers.
pub(crate) const DEVICE_NOT_AVAILABLE: u64 = 7;
pub(crate) const DOUBLE_FAULT: u64 = 8;
pub(crate) const GENERAL_PROTECTION: u64 = 13;
pub(crate) const PAGE_FAULT: u64 = 14;
/// The first vector that no exception has.
pub(crate) const FIRST_INTERRUPT: u64 = 32;
/// The timer's vector.
pub(crate) const TIMER: u8 = 0x20;
/// Where the local APIC reports an interrupt that has disappeared.
pub(crate) const SPURIOUS: u8 = 0xff;
/// The vectors that programs may raise by an instruction: INT3 and INTO.
const OF_PROGRAMS: [usize; 2] = [3, 4];

#[repr(C, align(16))]
struct Table([[u64; 2]; 256]);

static TABLE: Global<Table> = Global::new(Table([[0; 2]; 256]));

#[repr(C, packed)]
struct TableRegister {
    limit: u16,
    address: u64,
}

/// Fills and loads the table.
pub(crate) fn initialize() {
    TABLE.with(|table| {
        for (vector, gate) in table.0.iter_mut().enumerate() {
            // SAFETY: only the address of a stub is computed.
            let stub = unsafe { &raw const trap_stubs[vector] } as u64;
            let level = if OF_PROGRAMS.contains(&vector) { 3 } else { 0 };
            let (stub, stack) = match vector as u64 {
                DOUBLE_FAULT => (stub, DOUBLE_FAULT_STACK),
                PAGE_FAULT => (page_fault_entry as *const () as u64, FAULT_STACK),
                GENERAL_PROTECTION => (protection_fault_entry as *const () as u64, FAULT_STACK),
                _ => (stub, 0),
            };
            *gate = interrupt_gate(stub, level, stack);
        }
    });
    let register = TableRegister { limit: size_of::<Table>() as u16 - 1, address: TABLE.address() as u64 };
    // SAFETY: the table is a static, and its gates lead to code that saves and restores everything.
    unsafe { asm!("lidt [{}]", in(reg) &raw const register, options(nostack, preserves_flags)) }
}

/// A gate that switches interrupts off, for code of privilege `level` and higher privileges.
fn interrupt_gate(address: u64, level: u64, stack: u8) -> [u64; 2] {
    const PRESENT_INTERRUPT_GATE: u64 = 0x8e00;
    let kind = PRESENT_INTERRUPT_GATE | level << 13;
    let low = address & 0xffff | u64::from(KERNEL_CODE) << 16 | u64::from(stack) << 32 | kind << 32;
    [low | (address >> 16 & 0xffff) << 48, address >> 32]
}

/// The name of an exception.
pub(crate) fn exception_name(vector: u64) -> &'static str {
    const NAMES: [&str; 22] = [
        "divide error",
        "debug exception",
        "non-maskable interrupt",
        "breakpoint",
        "overflow",
        "bound range exceeded",
        "invalid opcode",
        "device not available",
        "double fault",
        "coprocessor segment overrun",
        "invalid task state segment",
        "segment not present",
        "stack fault",
        "general protection",
        "page fault",
        "exception 15",
        "x87 floating-point error",
        "alignment check",
        "machine check",
        "SIMD floating-point error",
        "virtualisation exception",
        "control protection",
    ];
    usize::try_from(vector).ok().and_then(|vector| NAMES.get(vector)).copied().unwrap_or("unexpected interrupt")
}
