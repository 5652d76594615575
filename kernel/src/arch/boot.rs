//! What the loader hands over: `boot.s`, and the start information of the PVH protocol (Xen,
//! `public/arch-x86/hvm/start_info.h`).

use core::arch::global_asm;

global_asm!(include_str!("boot.s"));

const MAGIC: u32 = 0x336e_c578;
/// The kind of usable memory in the memory map.
const USABLE: u32 = 1;

#[repr(C)]
struct StartInfo {
    magic: u32,
    version: u32,
    flags: u32,
    module_count: u32,
    modules: u64,
    command_line: u64,
    acpi: u64,
    memory_map: u64,
    memory_map_entries: u32,
    reserved: u32,
}

#[repr(C)]
struct Module {
    start: u64,
    length: u64,
    command_line: u64,
    reserved: u64,
}

#[repr(C)]
struct MemoryMapEntry {
    start: u64,
    length: u64,
    kind: u32,
    reserved: u32,
}

/// A range of physical memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PhysicalRange {
    pub(crate) start: u64,
    pub(crate) end: u64,
}

/// The start information, in the loader's memory.
pub(crate) struct Boot {
    info: &'static StartInfo,
    /// Where physical memory is mapped.
    direct_map: u64,
}

impl Boot {
    /// Reads the start information at the physical address `start_info`; nothing if another loader has started us.
    ///
    /// # Safety
    /// The address is the one of the PVH protocol. The first 4 GiB are mapped at `direct_map`, and the loader's memory,
    /// all of it in the first MiB or in the initial ramdisk, stays as it is.
    pub(crate) unsafe fn read(start_info: u64, direct_map: u64) -> Option<Boot> {
        // SAFETY: by the contract.
        let info = unsafe { &*((direct_map + start_info) as *const StartInfo) };
        (info.magic == MAGIC && info.version >= 1).then_some(Boot { info, direct_map })
    }

    fn slice<T>(&self, physical: u64, count: u32) -> &'static [T] {
        if physical == 0 || count == 0 {
            return &[];
        }
        // SAFETY: by the contract of `read`: the protocol says that `count` values lie there.
        unsafe { core::slice::from_raw_parts((self.direct_map + physical) as *const T, count as usize) }
    }

    /// The usable ranges of memory.
    pub(crate) fn memory(&self) -> impl Iterator<Item = PhysicalRange> + Clone + use<> {
        let entries = self.slice::<MemoryMapEntry>(self.info.memory_map, self.info.memory_map_entries);
        entries
            .iter()
            .filter(|entry| entry.kind == USABLE)
            .map(|entry| PhysicalRange { start: entry.start, end: entry.start.saturating_add(entry.length) })
    }

    /// Where the initial ramdisk lies.
    pub(crate) fn ramdisk(&self) -> Option<PhysicalRange> {
        let module = self.slice::<Module>(self.info.modules, self.info.module_count).first()?;
        Some(PhysicalRange { start: module.start, end: module.start + module.length })
    }

    /// The contents of the initial ramdisk.
    pub(crate) fn ramdisk_bytes(&self) -> &'static [u8] {
        let Some(range) = self.ramdisk() else { return &[] };
        self.slice(range.start, u32::try_from(range.end - range.start).unwrap_or(0))
    }

    /// The command line.
    pub(crate) fn command_line(&self) -> &'static [u8] {
        const MAX_LENGTH: u32 = 1 << 16;
        let bytes = self.slice::<u8>(self.info.command_line, MAX_LENGTH);
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(0);
        &bytes[..end]
    }
}
