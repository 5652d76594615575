//! The map of virtual memory.
//!
//! ```text
//! 0x0000000000000000   the program
//! 0x00007ffffffff000   end of the program
//! 0xffff800000000000   direct map: physical memory, never executable, writable except for text and constants
//! 0xffff900000000000   heap
//! 0xffffa00000000000   kernel stacks, each below an unmapped page
//! 0xffffb00000000000   device registers
//! 0xffffc00000000000   code area, for writing
//! 0xffffffff80000000   image
//! 0xffffffffc0000000   code area, for execution: a 32-bit displacement reaches the image
//! ```

pub(crate) const PAGE_BYTES: u64 = 4096;
/// What a level-2 entry maps at once.
pub(crate) const LARGE_PAGE_BYTES: u64 = 2 << 20;

/// The end of what a program may map. The page before 2^47 stays empty, so that no instruction ends there.
pub(crate) const USER_END: u64 = 0x7fff_ffff_f000;
/// The least address that a program may map, as Linux sets it (`vm.mmap_min_addr`).
pub(crate) const USER_START: u64 = 0x1_0000;

pub(crate) const DIRECT_MAP: u64 = 0xffff_8000_0000_0000;
pub(crate) const HEAP: u64 = 0xffff_9000_0000_0000;
pub(crate) const STACKS: u64 = 0xffff_a000_0000_0000;
pub(crate) const DEVICES: u64 = 0xffff_b000_0000_0000;
pub(crate) const CODE_WRITE: u64 = 0xffff_c000_0000_0000;
pub(crate) const IMAGE: u64 = 0xffff_ffff_8000_0000;
pub(crate) const CODE_EXECUTE: u64 = 0xffff_ffff_c000_0000;

/// The bytes of the code area.
pub(crate) const CODE_BYTES: u64 = 1 << 20;
/// What `boot.s` maps: memory beyond is not used.
pub(crate) const BOOT_MAPPED: u64 = 4 << 30;

/// The address at which the kernel sees a physical address.
pub(crate) fn direct(physical: u64) -> *mut u8 {
    (DIRECT_MAP + physical) as *mut u8
}

pub(crate) fn page_floor(address: u64) -> u64 {
    address & !(PAGE_BYTES - 1)
}

/// The next page boundary; nothing when it is beyond the last address.
pub(crate) fn page_ceiling(address: u64) -> Option<u64> {
    address.checked_add(PAGE_BYTES - 1).map(page_floor)
}
