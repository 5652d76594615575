//! The regions of a program's address space: ranges of pages with one protection, in the order of their addresses.

use super::layout::{USER_END, USER_START};
use super::tables::Permission;
use alloc::vec::Vec;

/// What a program may do with a region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Protection {
    /// Nothing: a guard.
    Nothing,
    Only(Permission),
}

impl Protection {
    /// Whether an access is allowed.
    pub(crate) fn allows(self, access: Access) -> bool {
        match self {
            Protection::Nothing => false,
            Protection::Only(permission) => match access {
                Access::Read => true,
                Access::Write => permission == Permission::ReadWrite,
                Access::Execute => permission == Permission::ReadExecute,
            },
        }
    }
}

/// What an instruction tries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    Read,
    Write,
    Execute,
}

/// Some pages with one protection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Region {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) protection: Protection,
}

/// There are too many regions, or no memory for their list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TooManyRegions;

/// Disjoint regions, sorted; neighbours of one protection are one region.
#[derive(Default, Debug)]
pub(crate) struct Regions {
    list: Vec<Region>,
}

/// The limit of Linux (`vm.max_map_count`).
const MAX_REGIONS: usize = 65_530;

impl Regions {
    /// The region that contains an address.
    pub(crate) fn at(&self, address: u64) -> Option<Region> {
        let index = self.list.partition_point(|region| region.end <= address);
        self.list.get(index).copied().filter(|region| region.start <= address)
    }

    fn overlapping(&self, start: u64, end: u64) -> core::ops::Range<usize> {
        let first = self.list.partition_point(|region| region.end <= start);
        let last = self.list.partition_point(|region| region.start < end);
        first..last.max(first)
    }

    /// Whether no region is in the range.
    pub(crate) fn is_free(&self, start: u64, end: u64) -> bool {
        self.overlapping(start, end).is_empty()
    }

    /// Whether regions cover the whole range.
    pub(crate) fn cover(&self, start: u64, end: u64) -> bool {
        let mut reached = start;
        for region in &self.list[self.overlapping(start, end)] {
            if region.start > reached {
                return false;
            }
            reached = region.end;
        }
        reached >= end
    }

    /// Gives the range a protection, or takes it away, whatever was there.
    pub(crate) fn set(&mut self, start: u64, end: u64, protection: Option<Protection>) -> Result<(), TooManyRegions> {
        let range = self.overlapping(start, end);
        // A region that contains the range is cut into two, and the new one is between them.
        if self.list.len() + 2 > MAX_REGIONS {
            return Err(TooManyRegions);
        }
        self.list.try_reserve(2).map_err(|_| TooManyRegions)?;
        let left = self.list[range.clone()].first().filter(|region| region.start < start).copied();
        let right = self.list[range.clone()].last().filter(|region| region.end > end).copied();
        let left = left.map(|region| Region { end: start, ..region });
        let right = right.map(|region| Region { start: end, ..region });
        let new = protection.map(|protection| Region { start, end, protection });
        let place = range.start;
        self.list.splice(range, [left, new, right].into_iter().flatten());
        self.merge_around(place);
        Ok(())
    }

    fn merge_around(&mut self, place: usize) {
        let mut index = place.saturating_sub(1);
        // The parts of `set`, and a neighbour on each side.
        for _ in 0..4 {
            let Some([first, second]) = self.list.get(index..index + 2) else { return };
            if first.end == second.start && first.protection == second.protection {
                self.list[index].end = second.end;
                self.list.remove(index + 1);
            } else {
                index += 1;
            }
        }
    }

    /// The highest free range of `length` bytes below `limit`.
    pub(crate) fn find_free(&self, length: u64, limit: u64) -> Option<u64> {
        let mut end = limit;
        for region in self.list.iter().rev() {
            if region.start >= end {
                continue;
            }
            let floor = region.end.max(USER_START);
            if floor <= end && end - floor >= length {
                return Some(end - length);
            }
            end = region.start.min(end);
        }
        end.checked_sub(length).filter(|start| *start >= USER_START && end <= USER_END)
    }

    /// The parts of the range that are in regions.
    pub(crate) fn parts(&self, start: u64, end: u64) -> impl Iterator<Item = Region> + '_ {
        self.list[self.overlapping(start, end)].iter().map(move |region| Region {
            start: region.start.max(start),
            end: region.end.min(end),
            ..*region
        })
    }
}
