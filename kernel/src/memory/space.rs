//! The address space of a program: regions, and the pages of them that have been used. A page is allocated when it is
//! used for the first time.

use super::frames::{self, OutOfMemory};
use super::kernel_space;
use super::layout::{PAGE_BYTES, USER_END, direct, page_ceiling, page_floor};
use super::region::{Access, Protection, Regions, TooManyRegions};
use super::tables::{Owner, PageTables, Permission};

/// The bytes of the first thread's stack, as Linux limits it.
pub(crate) const STACK_BYTES: u64 = 8 << 20;
/// What stays free between the stack and other regions.
const STACK_GAP: u64 = 1 << 20;

/// Why an access to an address faults.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FaultCause {
    /// No region contains it.
    Unmapped,
    /// The region does not allow it.
    Denied,
    OutOfMemory,
}

/// Why a range cannot be mapped or changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MapError {
    /// No memory, no addresses, or too many regions.
    NoRoom,
    /// A part of the range is not mapped.
    NotMapped,
    /// The range is outside of a program's addresses.
    OutOfRange,
}

impl From<TooManyRegions> for MapError {
    fn from(_: TooManyRegions) -> MapError {
        MapError::NoRoom
    }
}

impl From<OutOfMemory> for MapError {
    fn from(_: OutOfMemory) -> MapError {
        MapError::NoRoom
    }
}

/// An address space.
#[derive(Debug)]
pub(crate) struct AddressSpace {
    tables: Option<PageTables>,
    root: u64,
    regions: Regions,
    break_start: u64,
    break_end: u64,
}

impl AddressSpace {
    pub(crate) fn new() -> Result<AddressSpace, OutOfMemory> {
        let tables = kernel_space::tables_for_program()?;
        let root = tables.root();
        Ok(AddressSpace { tables: Some(tables), root, regions: Regions::default(), break_start: 0, break_end: 0 })
    }

    /// The physical address of the page tables.
    pub(crate) fn root(&self) -> u64 {
        self.root
    }

    fn tables(&mut self) -> &mut PageTables {
        self.tables.as_mut().expect("the tables are freed when the space is dropped")
    }

    /// Maps a range, in place of whatever was there.
    pub(crate) fn map(&mut self, start: u64, end: u64, protection: Protection) -> Result<(), MapError> {
        if start >= end || end > USER_END {
            return Err(MapError::OutOfRange);
        }
        self.unmap(start, end)?;
        // Pages come later; a program that asks for more than there is hears so now, as with Linux's heuristics.
        if protection != Protection::Nothing && end - start > frames::free_bytes_for_programs() {
            return Err(MapError::NoRoom);
        }
        Ok(self.regions.set(start, end, Some(protection))?)
    }

    /// Whether nothing is mapped in the range.
    pub(crate) fn is_free(&self, start: u64, end: u64) -> bool {
        self.regions.is_free(start, end)
    }

    /// A free range below the stack.
    pub(crate) fn find_free(&self, length: u64) -> Option<u64> {
        self.regions.find_free(length, USER_END - STACK_BYTES - STACK_GAP)
    }

    /// Ends whatever is mapped in the range.
    pub(crate) fn unmap(&mut self, start: u64, end: u64) -> Result<(), MapError> {
        // The list first: it may have no room, and then nothing has changed.
        let parts: alloc::vec::Vec<_> = self.regions.parts(start, end).collect();
        self.regions.set(start, end, None)?;
        for part in parts {
            self.free_pages(part.start, part.end);
        }
        Ok(())
    }

    fn free_pages(&mut self, start: u64, end: u64) {
        let mut at = start;
        while let Some(address) = self.tables().next_page(at, end) {
            let page = self.tables().unmap(address).expect("`next_page` finds pages");
            // SAFETY: the page was mapped here only, and the processor has forgotten it.
            unsafe { frames::free(page) }
            at = address + PAGE_BYTES;
        }
    }

    /// Gives the pages of a range back; its regions stay, and read as zeros.
    pub(crate) fn discard(&mut self, start: u64, end: u64) -> Result<(), MapError> {
        if !self.regions.cover(start, end) {
            return Err(MapError::NotMapped);
        }
        self.free_pages(start, end);
        Ok(())
    }

    /// Changes the protection of a range. Linux changes what is before a hole and then reports it; so does this.
    pub(crate) fn protect(&mut self, start: u64, end: u64, protection: Protection) -> Result<(), MapError> {
        let parts: alloc::vec::Vec<_> = self.regions.parts(start, end).collect();
        let mut reached = start;
        for part in parts {
            if part.start > reached {
                return Err(MapError::NotMapped);
            }
            self.regions.set(part.start, part.end, Some(protection))?;
            self.protect_pages(part.start, part.end, protection);
            reached = part.end;
        }
        if reached < end { Err(MapError::NotMapped) } else { Ok(()) }
    }

    fn protect_pages(&mut self, start: u64, end: u64, protection: Protection) {
        let mut at = start;
        while let Some(address) = self.tables().next_page(at, end) {
            at = address + PAGE_BYTES;
            match protection {
                // A program that may not read a page does not see it; the page keeps its contents.
                Protection::Nothing => self.tables().hide(address),
                Protection::Only(permission) => self.tables().protect(address, permission, Owner::Program),
            }
        }
    }

    /// Makes the page of an address usable for an access, if its region allows it.
    pub(crate) fn resolve(&mut self, address: u64, access: Access) -> Result<(), FaultCause> {
        let region = self.regions.at(address).ok_or(FaultCause::Unmapped)?;
        let Protection::Only(permission) = region.protection else { return Err(FaultCause::Denied) };
        if !region.protection.allows(access) {
            return Err(FaultCause::Denied);
        }
        self.provide_page(page_floor(address), permission).map_err(|OutOfMemory| FaultCause::OutOfMemory)
    }

    fn provide_page(&mut self, address: u64, permission: Permission) -> Result<(), OutOfMemory> {
        if self.tables().page_at(address).is_some() {
            return Ok(());
        }
        let page = frames::allocate_for_program()?;
        let mapped = self.tables().map(address, page, permission, Owner::Program);
        if mapped.is_err() {
            // SAFETY: the page is not mapped.
            unsafe { frames::free(page) }
        }
        mapped
    }

    /// Writes to mapped pages, whatever their protection.
    pub(crate) fn write_initial(&mut self, address: u64, bytes: &[u8]) -> Result<(), MapError> {
        let mut rest = bytes;
        let mut at = address;
        while !rest.is_empty() {
            let region = self.regions.at(at).ok_or(MapError::NotMapped)?;
            let Protection::Only(permission) = region.protection else { return Err(MapError::NotMapped) };
            self.provide_page(page_floor(at), permission)?;
            let page = self.tables().page_at(page_floor(at)).expect("the page has just been provided");
            let offset = at % PAGE_BYTES;
            let length = rest.len().min((PAGE_BYTES - offset) as usize);
            // SAFETY: the page belongs to this space, and `length` bytes are in it.
            unsafe { direct(page.0 + offset).copy_from_nonoverlapping(rest.as_ptr(), length) }
            rest = &rest[length..];
            at += length as u64;
        }
        Ok(())
    }

    /// Sets where the break starts.
    pub(crate) fn set_break_start(&mut self, address: u64) {
        self.break_start = address;
        self.break_end = address;
    }

    /// Moves the break, if that is possible, and returns where it is.
    pub(crate) fn set_break(&mut self, wanted: u64) -> u64 {
        let (Some(old), Some(new)) = (page_ceiling(self.break_end), page_ceiling(wanted)) else {
            return self.break_end;
        };
        if wanted < self.break_start || new > USER_END {
            return self.break_end;
        }
        let done = if new > old && self.is_free(old, new) {
            self.map(old, new, Protection::Only(Permission::ReadWrite))
        } else if new > old {
            Err(MapError::NoRoom)
        } else {
            self.unmap(new, old)
        };
        if done.is_ok() {
            self.break_end = wanted;
        }
        self.break_end
    }
}

impl Drop for AddressSpace {
    fn drop(&mut self) {
        if let Some(tables) = self.tables.take() {
            // SAFETY: the threads of the space have ended, and the kernel's own tables are active.
            unsafe { tables.free_program() }
        }
    }
}
