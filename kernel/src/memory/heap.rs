//! The kernel's heap: lists of freed blocks by size for what is small (quick fit, Weinstock and Wulf 1988), over the
//! allocator Talc, over pages that are mapped when it asks for more.

use super::frames;
use super::kernel_space;
use super::layout::{HEAP, PAGE_BYTES};
use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::ptr::NonNull;
use talc::base::Talc;
use talc::base::binning::Binning;
use talc::source::Source;
use talc::{DefaultBinning, TalcCell};

/// What is mapped at once, at least.
const GROWTH_BYTES: u64 = 64 << 10;
/// What larger requests leave.
const RESERVE_BYTES: u64 = 4 << 20;
/// The end of the heap's addresses.
const MAX_BYTES: u64 = 1 << 40;

/// Maps pages behind the end of the heap.
#[derive(Debug)]
struct Pages {
    /// The end of what is mapped.
    mapped: u64,
    /// The end as Talc knows it; it differs by alignment.
    end: Option<NonNull<u8>>,
}

// SAFETY: the pages are mapped by the page tables alone, which do not allocate from the heap.
unsafe impl Source for Pages {
    fn acquire<B: Binning>(talc: &mut Talc<Self, B>, layout: Layout) -> Result<(), ()> {
        // Talc needs room for its own words too.
        let wanted = (layout.size() as u64).checked_add(layout.align() as u64 + PAGE_BYTES).ok_or(())?;
        let bytes = wanted.max(GROWTH_BYTES).checked_next_multiple_of(PAGE_BYTES).ok_or(())?;
        // What a program can ask for at will must not take the memory that the kernel cannot do without.
        if bytes > GROWTH_BYTES && frames::free_bytes() < bytes + RESERVE_BYTES {
            return Err(());
        }
        let start = talc.source.mapped;
        let new_end = start.checked_add(bytes).filter(|end| end - HEAP <= MAX_BYTES).ok_or(())?;
        kernel_space::map_fresh(start, new_end).map_err(drop)?;
        talc.source.mapped = new_end;
        // SAFETY: the pages from `start` to `new_end` are new, and those before belong to the heap.
        talc.source.end = unsafe {
            match talc.source.end {
                Some(end) => Some(talc.extend(end, new_end as *mut u8)),
                None => talc.claim(start as *mut u8, bytes as usize),
            }
        };
        talc.source.end.map(drop).ok_or(())
    }
}

/// The sizes of small blocks are multiples of this.
const CLASS_BYTES: usize = 64;
/// Larger blocks are Talc's.
const CLASSES: usize = 32;

/// Freed small blocks by size; each begins with the address of the next.
struct QuickLists(UnsafeCell<[*mut u8; CLASSES]>);

struct KernelHeap {
    talc: TalcCell<Pages>,
    quick: QuickLists,
}

/// The list of blocks of a size; nothing for large ones.
fn class_of(layout: Layout) -> Option<usize> {
    let class = layout.size().wrapping_sub(1) / CLASS_BYTES;
    (class < CLASSES && layout.align() <= CLASS_BYTES).then_some(class)
}

/// What is allocated for a class.
fn layout_of(class: usize) -> Layout {
    // SAFETY: the alignment is a power of two, and the size is small.
    unsafe { Layout::from_size_align_unchecked((class + 1) * CLASS_BYTES, CLASS_BYTES) }
}

// SAFETY: there is one processor, and nothing interrupts the kernel while it allocates.
unsafe impl Sync for KernelHeap {}

// SAFETY: blocks come from Talc, and a block of a list has the size of its class.
unsafe impl GlobalAlloc for KernelHeap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let Some(class) = class_of(layout) else {
            // SAFETY: by the contract.
            return unsafe { self.talc.alloc(layout) };
        };
        // SAFETY: blocks in the lists are free, and begin with an address.
        unsafe {
            let list = &mut (*self.quick.0.get())[class];
            if list.is_null() {
                return self.talc.alloc(layout_of(class));
            }
            core::mem::replace(list, list.cast::<*mut u8>().read())
        }
    }

    // SAFETY: as the trait says.
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        let Some(class) = class_of(layout) else {
            // SAFETY: by the contract.
            return unsafe { self.talc.dealloc(pointer, layout) };
        };
        // SAFETY: the block is free now, and has room for an address.
        unsafe {
            let list = &mut (*self.quick.0.get())[class];
            pointer.cast::<*mut u8>().write(core::mem::replace(list, pointer));
        }
    }

    // SAFETY: as the trait says.
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: by the contract, the new layout is one.
        let new = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
        match (class_of(layout), class_of(new)) {
            (Some(old), Some(class)) if old == class => pointer,
            // SAFETY: both are Talc's; by the contract.
            (None, None) => unsafe { self.talc.realloc(pointer, layout, new_size) },
            // SAFETY: by the contract; the shorter length is in both blocks.
            (Some(_) | None, Some(_) | None) => unsafe {
                let moved = self.alloc(new);
                if !moved.is_null() {
                    core::ptr::copy_nonoverlapping(pointer, moved, layout.size().min(new_size));
                    self.dealloc(pointer, layout);
                }
                moved
            },
        }
    }
}

#[global_allocator]
static KERNEL_HEAP: KernelHeap = KernelHeap {
    talc: talc::cell::TalcCell::<Pages, DefaultBinning>::new(Pages { mapped: HEAP, end: None }),
    quick: QuickLists(UnsafeCell::new([core::ptr::null_mut(); CLASSES])),
};
