//! Segments and the task state segment. A 64-bit kernel needs them for privilege levels and for the stacks of
//! interrupts only.

use crate::cell::Global;
use core::arch::asm;
use core::mem::offset_of;

/// Selectors. SYSRET takes the user's data segment from 8 above its base and the user's code from 16 above.
pub(crate) const KERNEL_CODE: u16 = 0x08;
pub(crate) const KERNEL_DATA: u16 = 0x10;
pub(crate) const USER_DATA: u16 = 0x20 | 3;
pub(crate) const USER_CODE: u16 = 0x28 | 3;
/// The base from which SYSRET computes the user's selectors.
pub(crate) const SYSRET_BASE: u16 = 0x18 | 3;
const TASK_STATE: u16 = 0x30;

/// Which entry of the interrupt stack table double faults use: their cause may be the kernel's stack.
pub(crate) const DOUBLE_FAULT_STACK: u8 = 1;
/// That of faults which a routine may cause. Their stubs leave it at once (`entry.s`).
pub(crate) const FAULT_STACK: u8 = 2;
const EXCEPTION_STACK_BYTES: usize = 16 << 10;

/// Null, kernel code and data, an unused 32-bit code segment, user data and code, and two entries for the task state.
static DESCRIPTORS: Global<[u64; 8]> = Global::new([
    0,
    0x00af_9b00_0000_ffff,
    0x00cf_9300_0000_ffff,
    0,
    0x00cf_f300_0000_ffff,
    0x00af_fb00_0000_ffff,
    0,
    0,
]);

#[repr(C, packed(4))]
struct TaskState {
    reserved: u32,
    /// Stacks of privilege levels 0 to 2.
    stacks: [u64; 3],
    reserved_too: u64,
    interrupt_stacks: [u64; 7],
    reserved_three: [u16; 5],
    /// Beyond the limit: programs have no ports.
    port_map: u16,
}

static TASK: Global<TaskState> = Global::new(TaskState {
    reserved: 0,
    stacks: [0; 3],
    reserved_too: 0,
    interrupt_stacks: [0; 7],
    reserved_three: [0; 5],
    port_map: size_of::<TaskState>() as u16,
});

/// Stacks of exceptions, of words of 16 bytes, because a stack is aligned so.
static EXCEPTION_STACKS: Global<[[u128; EXCEPTION_STACK_BYTES / 16]; 2]> =
    Global::new([[0; EXCEPTION_STACK_BYTES / 16]; 2]);

#[repr(C, packed)]
struct TableRegister {
    limit: u16,
    address: u64,
}

/// Loads the segments and the task state.
pub(crate) fn initialize() {
    TASK.with(|task| {
        for number in [DOUBLE_FAULT_STACK, FAULT_STACK] {
            let end = EXCEPTION_STACKS.address() as u64 + u64::from(number) * EXCEPTION_STACK_BYTES as u64;
            task.interrupt_stacks[usize::from(number) - 1] = end;
        }
    });
    let base = TASK.address() as u64;
    let limit = size_of::<TaskState>() as u64 - 1;
    DESCRIPTORS.with(|descriptors| {
        descriptors[6] = limit | (base & 0xff_ffff) << 16 | 0x89 << 40 | (base >> 24 & 0xff) << 56;
        descriptors[7] = base >> 32;
    });
    let register = TableRegister { limit: size_of::<[u64; 8]>() as u16 - 1, address: DESCRIPTORS.address() as u64 };
    // SAFETY: 1. The table is a static and never changes again, except for the busy bit that LTR sets. 2. Its entries 1
    // and 2 are code and data of the kernel, which the far return and the loads switch to.
    unsafe {
        asm!(
            "lgdt [{register}]",
            "push {code}",
            "lea {scratch}, [rip + 2f]",
            "push {scratch}",
            "retfq",
            "2:",
            "mov ss, {data:x}",
            "mov ds, {zero:x}",
            "mov es, {zero:x}",
            "ltr {task:x}",
            register = in(reg) &raw const register,
            code = const KERNEL_CODE,
            scratch = out(reg) _,
            data = in(reg) KERNEL_DATA,
            zero = in(reg) 0_u16,
            task = in(reg) TASK_STATE,
        );
    }
}

/// Where switch routines set the stack on which interrupts of programs start.
pub(crate) fn kernel_stack_address() -> usize {
    TASK.address() as usize + offset_of!(TaskState, stacks)
}
