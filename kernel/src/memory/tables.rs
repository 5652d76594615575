//! Page tables of four levels. What is writable is not executable: no permission says both.

use super::frames::{self, OutOfMemory, PhysicalPage};
use super::layout::{LARGE_PAGE_BYTES, PAGE_BYTES, direct, page_floor};
use crate::arch::processor;

pub(crate) const ENTRIES: usize = 512;

pub(crate) const PRESENT: u64 = 1;
pub(crate) const WRITABLE: u64 = 1 << 1;
pub(crate) const USER: u64 = 1 << 2;
const WRITE_THROUGH: u64 = 1 << 3;
const UNCACHED: u64 = 1 << 4;
pub(crate) const LARGE: u64 = 1 << 7;
/// A page that belongs to an address although no access is allowed: the processor ignores this bit.
const HIDDEN: u64 = 1 << 9;
pub(crate) const NO_EXECUTE: u64 = 1 << 63;
const ADDRESS: u64 = 0x000f_ffff_ffff_f000;

/// What may be done with a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Permission {
    Read,
    ReadWrite,
    ReadExecute,
}

/// For what a page is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Owner {
    Kernel,
    /// Registers of a device: uncached.
    Device,
    Program,
}

fn leaf_flags(permission: Permission, owner: Owner) -> u64 {
    let access = match permission {
        Permission::Read => NO_EXECUTE,
        Permission::ReadWrite => WRITABLE | NO_EXECUTE,
        Permission::ReadExecute => 0,
    };
    let owner = match owner {
        Owner::Kernel => 0,
        Owner::Device => UNCACHED | WRITE_THROUGH,
        Owner::Program => USER,
    };
    PRESENT | access | owner
}

/// A tree of tables, by the physical address of its root.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PageTables {
    root: PhysicalPage,
}

/// The first entry with a page. Most are empty, so that several are looked at together.
fn first_page(entries: &[u64]) -> Option<usize> {
    const TOGETHER: usize = 16;
    let (groups, _) = entries.as_chunks::<TOGETHER>();
    let empty = groups.iter().take_while(|group| group.iter().fold(0, |all, entry| all | entry) == 0).count();
    let rest = &entries[empty * TOGETHER..];
    rest.iter().position(|entry| *entry & (PRESENT | HIDDEN) != 0).map(|at| empty * TOGETHER + at)
}

/// One table of a tree.
pub(crate) fn table_at(physical: u64) -> *mut [u64; ENTRIES] {
    direct(physical).cast()
}

/// The physical address in an entry.
pub(crate) fn address_of(entry: u64) -> u64 {
    entry & ADDRESS
}

fn index(address: u64, level: u32) -> usize {
    (address >> (12 + 9 * (level - 1))) as usize % ENTRIES
}

impl PageTables {
    /// Tables that map nothing.
    pub(crate) fn new() -> Result<PageTables, OutOfMemory> {
        Ok(PageTables { root: frames::allocate()? })
    }

    pub(crate) fn root(&self) -> u64 {
        self.root.0
    }

    /// The entry of the table of `level` that concerns `address`; nothing if the tables above it do not lead there.
    fn entry(&self, address: u64, level: u32) -> Option<*mut u64> {
        let mut table = self.root.0;
        for above in (level + 1..=4).rev() {
            // SAFETY: `table` is a table of this tree.
            let entry = unsafe { (*table_at(table))[index(address, above)] };
            if entry & PRESENT == 0 || entry & LARGE != 0 {
                return None;
            }
            table = address_of(entry);
        }
        // SAFETY: the index is in the table.
        Some(unsafe { &raw mut (*table_at(table))[index(address, level)] })
    }

    /// The same, after the missing tables have been made.
    fn make_entry(&mut self, address: u64, level: u32) -> Result<*mut u64, OutOfMemory> {
        for above in (level + 1..=4).rev() {
            let entry = self.entry(address, above).expect("the tables above exist since the round before");
            // SAFETY: the entry is one of this tree.
            unsafe {
                if *entry & PRESENT == 0 {
                    // Leaves restrict what these allow. The upper half has no leaf for programs.
                    let user = if address >> 63 == 0 { USER } else { 0 };
                    *entry = frames::allocate()?.0 | PRESENT | WRITABLE | user;
                }
            }
        }
        Ok(self.entry(address, level).expect("all tables above exist now"))
    }

    /// Maps a page at an address at which nothing is mapped.
    pub(crate) fn map(
        &mut self,
        address: u64,
        page: PhysicalPage,
        permission: Permission,
        owner: Owner,
    ) -> Result<(), OutOfMemory> {
        let entry = self.make_entry(address, 1)?;
        // SAFETY: the entry is one of this tree.
        unsafe {
            assert!(*entry == 0, "a page is mapped at {address:#x} already");
            *entry = page.0 | leaf_flags(permission, owner);
        }
        Ok(())
    }

    /// Maps 2 MiB of the kernel at once.
    pub(crate) fn map_large(&mut self, address: u64, physical: u64, permission: Permission) -> Result<(), OutOfMemory> {
        assert!(
            address.is_multiple_of(LARGE_PAGE_BYTES) && physical.is_multiple_of(LARGE_PAGE_BYTES),
            "large pages are aligned"
        );
        let entry = self.make_entry(address, 2)?;
        // SAFETY: the entry is one of this tree.
        unsafe { *entry = physical | leaf_flags(permission, Owner::Kernel) | LARGE }
        Ok(())
    }

    /// Makes the table of level 3 for an address, so that trees which share it see later changes.
    pub(crate) fn reserve_top(&mut self, address: u64) -> Result<(), OutOfMemory> {
        self.make_entry(address, 3).map(drop)
    }

    /// The page that is mapped at an address, or hidden there.
    pub(crate) fn page_at(&self, address: u64) -> Option<PhysicalPage> {
        // SAFETY: the entry is one of this tree.
        let entry = unsafe { *self.entry(address, 1)? };
        (entry & (PRESENT | HIDDEN) != 0).then_some(PhysicalPage(address_of(entry)))
    }

    /// The first address from `start` to `end` that has a page. Absent tables are passed over at once.
    pub(crate) fn next_page(&self, start: u64, end: u64) -> Option<u64> {
        let mut address = start;
        while address < end {
            if let Some(first) = self.entry(address, 1) {
                let count = ENTRIES - index(address, 1);
                // SAFETY: the entries of a table of this tree, from that of the address on.
                let entries = unsafe { core::slice::from_raw_parts(first, count) };
                match first_page(entries) {
                    Some(at) => return Some(address + at as u64 * PAGE_BYTES).filter(|address| *address < end),
                    None => {
                        address = page_floor(address).checked_add(count as u64 * PAGE_BYTES)?;
                        continue;
                    }
                }
            }
            let absent = (1..=4).rev().find(|level| match self.entry(address, *level) {
                // SAFETY: the entry is one of this tree.
                Some(entry) => unsafe { *entry == 0 },
                None => true,
            });
            let bytes = bytes_of_level(absent.unwrap_or(1));
            address = (address & !(bytes - 1)).checked_add(bytes)?;
        }
        None
    }

    /// Forbids every access to a page, which stays where it is.
    pub(crate) fn hide(&mut self, address: u64) {
        let Some(page) = self.page_at(address) else { return };
        let entry = self.entry(address, 1).expect("a page is mapped");
        // SAFETY: the entry is one of this tree.
        unsafe { *entry = page.0 | HIDDEN }
        processor::flush_page(address);
    }

    /// Ends the mapping at an address and returns the page that was there.
    pub(crate) fn unmap(&mut self, address: u64) -> Option<PhysicalPage> {
        let page = self.page_at(address)?;
        let entry = self.entry(address, 1).expect("a page is mapped");
        // SAFETY: the entry is one of this tree.
        unsafe { *entry = 0 }
        processor::flush_page(address);
        Some(page)
    }

    /// Changes the permission of a mapped page.
    pub(crate) fn protect(&mut self, address: u64, permission: Permission, owner: Owner) {
        let Some(page) = self.page_at(address) else { return };
        let entry = self.entry(address, 1).expect("a page is mapped");
        // SAFETY: the entry is one of this tree.
        unsafe { *entry = page.0 | leaf_flags(permission, owner) }
        processor::flush_page(address);
    }

    /// Takes the upper half from `kernel`.
    pub(crate) fn share_upper_half(&mut self, kernel: &PageTables) {
        // SAFETY: both are tables.
        unsafe {
            let (from, to) = (&*table_at(kernel.root.0), &mut *table_at(self.root.0));
            to[ENTRIES / 2..].copy_from_slice(&from[ENTRIES / 2..]);
        }
    }

    /// Frees the pages and the tables of the lower half, and the root.
    ///
    /// # Safety
    /// The tables are not active and nothing refers to the pages.
    pub(crate) unsafe fn free_program(self) {
        for top in 0..ENTRIES / 2 {
            // SAFETY: the root is a table; by the contract.
            unsafe {
                let entry = (*table_at(self.root.0))[top];
                if entry & PRESENT != 0 {
                    free_table(address_of(entry), 3);
                }
            }
        }
        // SAFETY: by the contract.
        unsafe { frames::free(self.root) }
    }
}

/// Frees a table and everything below it.
///
/// # Safety
/// As for `free_program`.
unsafe fn free_table(table: u64, level: u32) {
    for index in 0..ENTRIES {
        // SAFETY: `table` is a table of this level; those of level 1 hold pages.
        unsafe {
            let entry = (*table_at(table))[index];
            if entry == 0 {
                continue;
            }
            if level == 1 {
                frames::free(PhysicalPage(address_of(entry)));
            } else {
                free_table(address_of(entry), level - 1);
            }
        }
    }
    // SAFETY: nothing leads to the table any more.
    unsafe { frames::free(PhysicalPage(table)) }
}

/// The size of what an entry of a level maps or covers.
pub(crate) fn bytes_of_level(level: u32) -> u64 {
    PAGE_BYTES << (9 * (level - 1))
}
