//! The kernel's half of every address space: what `layout` lists, each with its own permission.

use super::frames::{self, OutOfMemory, PhysicalPage};
use super::layout::{CODE_WRITE, DEVICES, DIRECT_MAP, HEAP, IMAGE, LARGE_PAGE_BYTES, PAGE_BYTES, STACKS};
use super::tables::{Owner, PageTables, Permission};
use crate::arch::boot::PhysicalRange;
use crate::arch::{apic, processor};
use crate::cell::Global;

// SAFETY: link.ld defines these ends of sections; only their addresses are used.
unsafe extern "C" {
    static text_start: u8;
    static text_end: u8;
    static rodata_end: u8;
    static image_end: u8;
}

/// Where `boot.s` lies, which is executed once.
const BOOT_CODE: u64 = 0x20_0000;

static TABLES: Global<Option<PageTables>> = Global::new(None);

/// The physical memory of the image.
pub(crate) fn image() -> PhysicalRange {
    PhysicalRange { start: BOOT_CODE, end: (&raw const image_end) as u64 - IMAGE }
}

/// The parts of the image and their permissions.
fn parts_of_image() -> [(PhysicalRange, Permission); 3] {
    let physical = |symbol: *const u8| symbol as u64 - IMAGE;
    let (text, constants) = (physical(&raw const text_start), physical(&raw const text_end));
    let (data, end) = (physical(&raw const rodata_end), physical(&raw const image_end));
    [
        (PhysicalRange { start: text, end: constants }, Permission::ReadExecute),
        (PhysicalRange { start: constants, end: data }, Permission::Read),
        (PhysicalRange { start: data, end }, Permission::ReadWrite),
    ]
}

/// Builds the tables and activates them.
pub(crate) fn initialize() -> Result<(), OutOfMemory> {
    let mut tables = PageTables::new()?;
    map_image(&mut tables)?;
    map_memory(&mut tables)?;
    tables.map(DEVICES, PhysicalPage(apic::PHYSICAL_ADDRESS), Permission::ReadWrite, Owner::Device)?;
    // Programs' tables copy the top entries when they are made.
    for area in [HEAP, STACKS, CODE_WRITE] {
        tables.reserve_top(area)?;
    }
    // SAFETY: everything in use is mapped where it was: the image, its stack in it, and the direct map.
    unsafe {
        processor::set_page_root(tables.root());
        processor::enable_protection();
    }
    TABLES.with(|slot| *slot = Some(tables));
    Ok(())
}

fn map_image(tables: &mut PageTables) -> Result<(), OutOfMemory> {
    for (range, permission) in parts_of_image() {
        for page in (range.start..range.end).step_by(PAGE_BYTES as usize) {
            tables.map(IMAGE + page, PhysicalPage(page), permission, Owner::Kernel)?;
        }
    }
    Ok(())
}

/// Maps physical memory at the direct map. What is read-only in the image is read-only here too.
fn map_memory(tables: &mut PageTables) -> Result<(), OutOfMemory> {
    let image = image();
    let [_, _, (data, _)] = parts_of_image();
    for large in (0..frames::end()).step_by(LARGE_PAGE_BYTES as usize) {
        if large + LARGE_PAGE_BYTES <= image.start || image.end <= large {
            tables.map_large(DIRECT_MAP + large, large, Permission::ReadWrite)?;
            continue;
        }
        for page in (large..large + LARGE_PAGE_BYTES).step_by(PAGE_BYTES as usize) {
            let is_constant = image.start <= page && page < data.start;
            let permission = if is_constant { Permission::Read } else { Permission::ReadWrite };
            tables.map(DIRECT_MAP + page, PhysicalPage(page), permission, Owner::Kernel)?;
        }
    }
    Ok(())
}

/// Changes the kernel's tables.
pub(crate) fn with_tables<R>(work: impl FnOnce(&mut PageTables) -> R) -> R {
    TABLES.with(|slot| work(slot.as_mut().expect("the kernel's tables are made before they are changed")))
}

/// Maps new pages of zeros, for reading and writing. When memory runs out, nothing of it stays mapped.
pub(crate) fn map_fresh(start: u64, end: u64) -> Result<(), OutOfMemory> {
    with_tables(|tables| {
        for address in (start..end).step_by(PAGE_BYTES as usize) {
            let mapped =
                frames::allocate().and_then(|page| tables.map(address, page, Permission::ReadWrite, Owner::Kernel));
            if mapped.is_err() {
                unmap_fresh(tables, start, address);
                return mapped;
            }
        }
        Ok(())
    })
}

fn unmap_fresh(tables: &mut PageTables, start: u64, end: u64) {
    for address in (start..end).step_by(PAGE_BYTES as usize) {
        if let Some(page) = tables.unmap(address) {
            // SAFETY: `map_fresh` has just mapped it, and its caller has not seen it.
            unsafe { frames::free(page) }
        }
    }
}

/// Tables for a program, which map the kernel's half.
pub(crate) fn tables_for_program() -> Result<PageTables, OutOfMemory> {
    let mut tables = PageTables::new()?;
    with_tables(|kernel| tables.share_upper_half(kernel));
    Ok(tables)
}
