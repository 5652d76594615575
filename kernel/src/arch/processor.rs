//! Control registers, model-specific registers and the features that the kernel requires.

use core::arch::asm;
use core::arch::x86_64::{__cpuid, __cpuid_count};

const EFER: u32 = 0xc000_0080;
const STAR: u32 = 0xc000_0081;
const LSTAR: u32 = 0xc000_0082;
const SFMASK: u32 = 0xc000_0084;
const FS_BASE: u32 = 0xc000_0100;
const GS_BASE: u32 = 0xc000_0101;
const KERNEL_GS_BASE: u32 = 0xc000_0102;

const EFER_NXE: u64 = 1 << 11;
const CR0_WP: u64 = 1 << 16;
const CR4_UMIP: u64 = 1 << 11;
const CR4_FSGSBASE: u64 = 1 << 16;
const CR4_SMEP: u64 = 1 << 20;
const CR4_SMAP: u64 = 1 << 21;

/// Flags that a call clears: carry and direction have meanings for C code, the others would give a program power over
/// the kernel (trap, interrupt, privilege level of I/O, nested task, alignment check).
const CLEARED_BY_CALL: u64 = 0x4_7700;

/// A feature that the kernel does not run without.
struct Feature {
    name: &'static str,
    leaf: u32,
    register: Register,
    bit: u32,
}

#[derive(Clone, Copy)]
enum Register {
    Ebx,
    Ecx,
    Edx,
}

const REQUIRED: &[Feature] = &[
    Feature { name: "FXSR", leaf: 1, register: Register::Edx, bit: 24 },
    Feature { name: "SSE2", leaf: 1, register: Register::Edx, bit: 26 },
    Feature { name: "RDRAND", leaf: 1, register: Register::Ecx, bit: 30 },
    Feature { name: "FSGSBASE", leaf: 7, register: Register::Ebx, bit: 0 },
    Feature { name: "SMEP", leaf: 7, register: Register::Ebx, bit: 7 },
    Feature { name: "SMAP", leaf: 7, register: Register::Ebx, bit: 20 },
    Feature { name: "SYSCALL", leaf: 0x8000_0001, register: Register::Edx, bit: 11 },
    Feature { name: "NX", leaf: 0x8000_0001, register: Register::Edx, bit: 20 },
];

/// The required features that this processor lacks.
pub(crate) fn missing_features() -> impl Iterator<Item = &'static str> {
    let is_missing = |feature: &&Feature| {
        let registers = __cpuid_count(feature.leaf, 0);
        let word = match feature.register {
            Register::Ebx => registers.ebx,
            Register::Ecx => registers.ecx,
            Register::Edx => registers.edx,
        };
        word & 1 << feature.bit == 0
    };
    REQUIRED.iter().filter(is_missing).map(|feature| feature.name)
}

/// Whether the processor keeps descriptor table addresses from programs (UMIP).
fn has_umip() -> bool {
    __cpuid(7).ecx & 1 << 2 != 0
}

/// Switches the protections on: no execution or use of a program's memory by the kernel, no writes of the kernel to
/// read-only pages, no execution of data.
///
/// # Safety
/// The active page tables give the kernel everything that it uses under these rules.
pub(crate) unsafe fn enable_protection() {
    let umip = if has_umip() { CR4_UMIP } else { 0 };
    // SAFETY: by the contract; the features are present (`missing_features`).
    unsafe {
        write_msr(EFER, read_msr(EFER) | EFER_NXE);
        write_cr0(read_cr0() | CR0_WP);
        write_cr4(read_cr4() | CR4_FSGSBASE | CR4_SMEP | CR4_SMAP | umip);
    }
}

/// The protections that are off.
pub(crate) fn missing_protections() -> impl Iterator<Item = &'static str> {
    // SAFETY: EFER exists on every 64-bit processor.
    let no_execute = unsafe { read_msr(EFER) } & EFER_NXE != 0;
    let states = [
        ("NX", no_execute),
        ("WP", read_cr0() & CR0_WP != 0),
        ("SMEP", read_cr4() & CR4_SMEP != 0),
        ("SMAP", read_cr4() & CR4_SMAP != 0),
        ("UMIP", read_cr4() & CR4_UMIP != 0 || !has_umip()),
    ];
    states.into_iter().filter(|(_, on)| !on).map(|(name, _)| name)
}

/// Sets where SYSCALL leads.
///
/// # Safety
/// `entry` handles a call as `entry.s` does; the segments are loaded.
pub(crate) unsafe fn set_call_entry(entry: u64, kernel_code: u16, sysret_base: u16) {
    // SAFETY: by the contract.
    unsafe {
        write_msr(STAR, u64::from(sysret_base) << 48 | u64::from(kernel_code) << 32);
        write_msr(LSTAR, entry);
        write_msr(SFMASK, CLEARED_BY_CALL);
    }
}

/// Sets what gs is in the kernel from now on, and at the next `swapgs` in the program: nothing.
pub(crate) fn set_thread_block(address: u64) {
    // SAFETY: while the kernel runs, only it uses gs, and finds the block of the current thread there.
    unsafe { write_msr(GS_BASE, address) }
}

/// What gs is in the program that runs next.
pub(crate) fn set_user_gs(address: u64) {
    // SAFETY: the value is a program's; it is canonical by the check of the caller, and the kernel does not use it.
    unsafe { write_msr(KERNEL_GS_BASE, address) }
}

/// What gs is in the program.
pub(crate) fn user_gs() -> u64 {
    // SAFETY: the register exists on every 64-bit processor.
    unsafe { read_msr(KERNEL_GS_BASE) }
}

/// What fs is: the kernel does not use it.
pub(crate) fn set_user_fs(address: u64) {
    // SAFETY: the value is a program's; it is canonical by the check of the caller, and the kernel does not use it.
    unsafe { write_msr(FS_BASE, address) }
}

/// What fs is in the program.
pub(crate) fn user_fs() -> u64 {
    // SAFETY: the register exists on every 64-bit processor.
    unsafe { read_msr(FS_BASE) }
}

/// # Safety
/// The register exists, and the kernel can do with the value.
unsafe fn write_msr(register: u32, value: u64) {
    let (low, high) = (value as u32, (value >> 32) as u32);
    // SAFETY: by the contract of the callers.
    unsafe { asm!("wrmsr", in("ecx") register, in("eax") low, in("edx") high, options(nostack, preserves_flags)) }
}

/// # Safety
/// The register exists.
unsafe fn read_msr(register: u32) -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: the callers name registers that exist.
    unsafe { asm!("rdmsr", in("ecx") register, out("eax") low, out("edx") high, options(nostack, preserves_flags)) }
    u64::from(high) << 32 | u64::from(low)
}

fn read_cr0() -> u64 {
    let value: u64;
    // SAFETY: reading has no effect.
    unsafe { asm!("mov {}, cr0", out(reg) value, options(nomem, nostack, preserves_flags)) }
    value
}

/// # Safety
/// The kernel can do with the value.
unsafe fn write_cr0(value: u64) {
    // SAFETY: by the contract of the caller.
    unsafe { asm!("mov cr0, {}", in(reg) value, options(nostack, preserves_flags)) }
}

fn read_cr4() -> u64 {
    let value: u64;
    // SAFETY: reading has no effect.
    unsafe { asm!("mov {}, cr4", out(reg) value, options(nomem, nostack, preserves_flags)) }
    value
}

/// # Safety
/// The kernel can do with the value.
unsafe fn write_cr4(value: u64) {
    // SAFETY: by the contract of the caller.
    unsafe { asm!("mov cr4, {}", in(reg) value, options(nostack, preserves_flags)) }
}

/// Ends that every use of the vector registers is an exception.
pub(crate) fn allow_vectors() {
    // SAFETY: the switch routines set the bit again for threads that do not use the registers.
    unsafe { asm!("clts", options(nostack, preserves_flags)) }
}

/// The address that the last page fault concerns.
pub(crate) fn fault_address() -> u64 {
    let value: u64;
    // SAFETY: reading has no effect.
    unsafe { asm!("mov {}, cr2", out(reg) value, options(nomem, nostack, preserves_flags)) }
    value
}

/// The physical address of the active page tables.
pub(crate) fn page_root() -> u64 {
    let value: u64;
    // SAFETY: reading has no effect.
    unsafe { asm!("mov {}, cr3", out(reg) value, options(nomem, nostack, preserves_flags)) }
    value & !0xfff
}

/// Activates page tables.
///
/// # Safety
/// They map what the kernel uses as the active ones do, the code that runs now included.
pub(crate) unsafe fn set_page_root(address: u64) {
    // SAFETY: by the contract.
    unsafe { asm!("mov cr3, {}", in(reg) address, options(nostack, preserves_flags)) }
}

/// Makes the processor forget what it knows of the page at `address`.
pub(crate) fn flush_page(address: u64) {
    // SAFETY: a walk of the tables replaces what is forgotten.
    unsafe { asm!("invlpg [{}]", in(reg) address, options(nostack, preserves_flags)) }
}

/// Waits for an interrupt, with interrupts on; they are off afterwards. An interrupt between the two instructions is
/// not lost: STI takes effect after HLT has begun.
pub(crate) fn wait_for_interrupt() {
    // SAFETY: the caller holds no global, so that the interrupt handler may use all of them.
    unsafe { asm!("sti", "hlt", "cli", options(nostack)) }
}

/// Stops for ever.
pub(crate) fn halt() -> ! {
    loop {
        // SAFETY: nothing follows.
        unsafe { asm!("cli", "hlt", options(nomem, nostack)) }
    }
}

/// The floating-point and vector registers of a thread (FXSAVE).
#[repr(C, align(16))]
#[derive(Clone)]
pub(crate) struct VectorRegisters([u8; 512]);

impl VectorRegisters {
    /// Those of a new program: exceptions are masked, everything else is zero.
    pub(crate) const fn new() -> VectorRegisters {
        let mut image = [0; 512];
        image[0] = 0x7f;
        image[1] = 0x03;
        image[24] = 0x80;
        image[25] = 0x1f;
        VectorRegisters(image)
    }

    pub(crate) fn save(&mut self) {
        // SAFETY: the area has the size and alignment that the instruction requires.
        unsafe { asm!("fxsave64 [{}]", in(reg) &raw mut self.0, options(nostack, preserves_flags)) }
    }

    pub(crate) fn load(&self) {
        // SAFETY: the area holds an image that `new` or `save` has made; the kernel does not use these registers.
        unsafe { asm!("fxrstor64 [{}]", in(reg) &raw const self.0, options(nostack, preserves_flags)) }
    }

    /// Those of an image that a program has written: bits of MXCSR that would fault are cleared.
    pub(crate) fn from_image(mut image: [u8; 512]) -> VectorRegisters {
        const MXCSR: usize = 24;
        image[MXCSR + 2] = 0;
        image[MXCSR + 3] = 0;
        VectorRegisters(image)
    }

    /// The image, for frames of signal handlers.
    pub(crate) fn image(&self) -> &[u8; 512] {
        &self.0
    }
}
