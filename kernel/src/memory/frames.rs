//! The allocator of physical pages: a bit for each page of memory, and a search from where the last one ended.

use super::layout::{BOOT_MAPPED, PAGE_BYTES, direct};
use crate::arch::boot::PhysicalRange;
use crate::cell::Global;

/// There is no memory for what was asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct OutOfMemory;

/// The physical address of a page that has been allocated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PhysicalPage(pub(crate) u64);

/// Pages that programs do not get: for page tables, stacks and the heap.
const KERNEL_RESERVE: u64 = 512;

/// Below are the tables of the firmware and the loader.
const FIRST_USABLE: u64 = 1 << 20;

struct Allocator {
    /// A bit for each page from 0 on, set for free ones.
    free: &'static mut [u64],
    free_pages: u64,
    /// The word at which the next search starts.
    next: usize,
}

static ALLOCATOR: Global<Option<Allocator>> = Global::new(None);

/// Collects the usable memory, except for the given ranges.
///
/// # Panics
/// When no usable range has room for the bits.
pub(crate) fn initialize(memory: impl Iterator<Item = PhysicalRange> + Clone, in_use: &[PhysicalRange]) {
    let usable = memory.map(|range| PhysicalRange {
        start: range.start.max(FIRST_USABLE).next_multiple_of(PAGE_BYTES),
        end: range.end.min(BOOT_MAPPED) & !(PAGE_BYTES - 1),
    });
    let usable = usable.filter(|range| range.start < range.end);
    let end = usable.clone().map(|range| range.end).max().unwrap_or(0);
    let words = (end / PAGE_BYTES).div_ceil(64);
    let bits =
        place_of_bits(usable.clone(), in_use, words * 8).expect("a usable range holds a bit for each of its pages");
    // SAFETY: the range is usable, mapped by the direct map, and marked as in use below.
    let free = unsafe { core::slice::from_raw_parts_mut(direct(bits.start).cast::<u64>(), words as usize) };
    free.fill(0);
    let mut allocator = Allocator { free, free_pages: 0, next: 0 };
    for range in usable {
        for page in (range.start..range.end).step_by(PAGE_BYTES as usize) {
            let overlaps = |other: &PhysicalRange| page < other.end && other.start < page + PAGE_BYTES;
            if !overlaps(&bits) && !in_use.iter().any(overlaps) {
                allocator.mark_free(page);
            }
        }
    }
    ALLOCATOR.with(|slot| *slot = Some(allocator));
}

/// Room for the bits behind a range in use, or at the start of a usable range.
fn place_of_bits(
    usable: impl Iterator<Item = PhysicalRange> + Clone,
    in_use: &[PhysicalRange],
    bytes: u64,
) -> Option<PhysicalRange> {
    let starts = usable.clone().map(|range| range.start).chain(in_use.iter().map(|range| range.end));
    let mut places = starts.map(|start| {
        let start = start.next_multiple_of(PAGE_BYTES);
        PhysicalRange { start, end: (start + bytes).next_multiple_of(PAGE_BYTES) }
    });
    places.find(|place| {
        usable.clone().any(|range| range.start <= place.start && place.end <= range.end)
            && !in_use.iter().any(|other| place.start < other.end && other.start < place.end)
    })
}

impl Allocator {
    fn mark_free(&mut self, page: u64) {
        let index = page / PAGE_BYTES;
        let bit = 1 << (index % 64);
        let word = &mut self.free[(index / 64) as usize];
        assert!(*word & bit == 0, "a page is freed once");
        *word |= bit;
        self.free_pages += 1;
    }

    fn take(&mut self) -> Option<u64> {
        let words = self.free.len();
        let at = (0..words).map(|step| (self.next + step) % words).find(|at| self.free[*at] != 0)?;
        let bit = self.free[at].trailing_zeros();
        self.free[at] &= self.free[at] - 1;
        self.free_pages -= 1;
        self.next = at;
        Some((at as u64 * 64 + u64::from(bit)) * PAGE_BYTES)
    }
}

fn with_allocator<R>(work: impl FnOnce(&mut Allocator) -> R) -> R {
    ALLOCATOR.with(|slot| work(slot.as_mut().expect("memory is initialised before it is used")))
}

fn allocate_beyond(reserve: u64) -> Result<PhysicalPage, OutOfMemory> {
    let page = with_allocator(|allocator| if allocator.free_pages > reserve { allocator.take() } else { None });
    let page = page.ok_or(OutOfMemory)?;
    // SAFETY: the page was free: nothing refers to it.
    unsafe { direct(page).write_bytes(0, PAGE_BYTES as usize) }
    Ok(PhysicalPage(page))
}

/// A page of zeros for the kernel.
pub(crate) fn allocate() -> Result<PhysicalPage, OutOfMemory> {
    allocate_beyond(0)
}

/// A page of zeros for a program.
pub(crate) fn allocate_for_program() -> Result<PhysicalPage, OutOfMemory> {
    allocate_beyond(KERNEL_RESERVE)
}

/// Gives a page back.
///
/// # Safety
/// Nothing refers to the page any more.
pub(crate) unsafe fn free(page: PhysicalPage) {
    with_allocator(|allocator| allocator.mark_free(page.0));
}

/// Free memory, in bytes.
pub(crate) fn free_bytes() -> u64 {
    with_allocator(|allocator| allocator.free_pages * PAGE_BYTES)
}

/// Free memory that programs may have, in bytes.
pub(crate) fn free_bytes_for_programs() -> u64 {
    free_bytes().saturating_sub(KERNEL_RESERVE * PAGE_BYTES)
}

/// The end of physical memory.
pub(crate) fn end() -> u64 {
    with_allocator(|allocator| allocator.free.len() as u64 * 64 * PAGE_BYTES)
}
