//! Zeroed memory mapped from the system, in huge pages if it is long enough: for tables and logs of many mebibytes that
//! several threads fill concurrently. Concurrent page faults of a process contend for locks and counters of its address
//! space (`mmap_lock` before Linux 6.4); on a virtual machine they can take a tenth of the time of a search. A huge
//! page replaces 512 page faults by one.

/// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

use memory::ZeroedMemory;
use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::AtomicU32;

/// Bytes of a huge page. Memory of at least this length is requested in huge pages.
pub const HUGE: usize = 2 << 20;

/// Types for which zeroed memory is valid.
///
/// # Safety
///
/// All bytes zero must be a value, which need not be dropped, and whose alignment is at most that of a page.
pub unsafe trait Zeroed {}

// SAFETY: zero is a number, and nothing is dropped.
unsafe impl Zeroed for u64 {}
// SAFETY: as for numbers.
unsafe impl Zeroed for AtomicU32 {}

/// An array of values in memory of its own, initially zero. Pages are allocated at their first access and freed when
/// the array is dropped.
///
/// ```
/// let mut slots = quaject_pages::Pages::<u64>::zeroed(1 << 18)?;
/// slots[7] = 9;
/// assert_eq!(slots.iter().sum::<u64>(), 9);
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Pages<T> {
    /// None if the length is zero, because an empty mapping is impossible.
    memory: Option<ZeroedMemory>,
    values: PhantomData<[T]>,
}

impl<T: Zeroed> Pages<T> {
    /// An array of `length` values.
    ///
    /// # Errors
    ///
    /// The error of the system if it refuses the memory, or an error if its size exceeds the address space.
    pub fn zeroed(length: usize) -> io::Result<Pages<T>> {
        let bytes = length.checked_mul(size_of::<T>()).ok_or(io::ErrorKind::OutOfMemory)?;
        if bytes == 0 {
            return Ok(Pages::default());
        }
        Ok(Pages { memory: Some(ZeroedMemory::new(bytes)?), values: PhantomData })
    }
}

impl<T> Default for Pages<T> {
    fn default() -> Pages<T> {
        Pages { memory: None, values: PhantomData }
    }
}

/// Memory that is mapped from the system.
#[cfg(not(target_family = "wasm"))]
mod memory {
    use memmap2::MmapMut;
    use std::io;

    pub(crate) struct ZeroedMemory(MmapMut);

    impl ZeroedMemory {
        pub(crate) fn new(bytes: usize) -> io::Result<ZeroedMemory> {
            let memory = MmapMut::map_anon(bytes)?;
            #[cfg(target_os = "linux")]
            if bytes.is_multiple_of(super::HUGE) && !cfg!(miri) {
                // Fails on a system without huge pages; the memory is then in small pages.
                let _ = memory.advise(memmap2::Advice::HugePage);
            }
            Ok(ZeroedMemory(memory))
        }

        pub(crate) fn bytes(&self) -> usize {
            self.0.len()
        }

        pub(crate) fn as_ptr(&self) -> *const u8 {
            self.0.as_ptr()
        }

        pub(crate) fn as_mut_ptr(&mut self) -> *mut u8 {
            self.0.as_mut_ptr()
        }
    }
}

/// Memory from the heap, in WebAssembly, which maps none.
#[cfg(target_family = "wasm")]
mod memory {
    use std::io;

    /// Aligned as [`Zeroed`](super::Zeroed) types may require.
    #[derive(Clone, Copy)]
    #[repr(align(4096))]
    struct Page(#[expect(dead_code, reason = "read through pointers")] [u8; 4096]);

    pub(crate) struct ZeroedMemory {
        pages: Vec<Page>,
        bytes: usize,
    }

    impl ZeroedMemory {
        pub(crate) fn new(bytes: usize) -> io::Result<ZeroedMemory> {
            let count = bytes.div_ceil(size_of::<Page>());
            let mut pages = Vec::new();
            pages.try_reserve_exact(count).map_err(|_| io::ErrorKind::OutOfMemory)?;
            pages.resize(count, Page([0; size_of::<Page>()]));
            Ok(ZeroedMemory { pages, bytes })
        }

        pub(crate) fn bytes(&self) -> usize {
            self.bytes
        }

        pub(crate) fn as_ptr(&self) -> *const u8 {
            self.pages.as_ptr().cast()
        }

        pub(crate) fn as_mut_ptr(&mut self) -> *mut u8 {
            self.pages.as_mut_ptr().cast()
        }
    }
}

/// Places the next `bytes` bytes (a multiple of a huge page) of the C library's heap, which `Box` and `Vec` use, in
/// huge pages, if the system has any; has no effect with another allocator. For programs that run for a few
/// milliseconds, most of which would be page faults. Call it once, at the start. Unused memory is not allocated, except
/// the rest of a huge page.
pub fn heap_in_huge_pages(bytes: usize) {
    #[cfg(all(target_os = "linux", target_env = "gnu", not(miri)))]
    heap::begin(bytes);
    #[cfg(not(all(target_os = "linux", target_env = "gnu", not(miri))))]
    let _ = bytes;
}

/// ```text
///            end         boundary                    boundary + bytes
///   heap ─────┤ filler      │  huge pages               │ ...
///   (small)   └─────────────┴───────────────────────────┘
/// ```
#[cfg(all(target_os = "linux", target_env = "gnu", not(miri)))]
mod heap {
    use super::HUGE;
    use std::hint::black_box;
    use std::mem;

    /// The default of `M_TOP_PAD`: the amount by which the C library extends the heap beyond a request.
    const TOP_PAD: libc::c_int = 128 << 10;

    pub(super) fn begin(bytes: usize) {
        let Ok(pad) = libc::c_int::try_from(bytes + HUGE) else { return };
        // A full heap grows once by this amount, and smaller requests are served from it.
        // SAFETY: sets parameters of the allocator, which takes its lock.
        let is_set = unsafe {
            libc::mallopt(libc::M_TOP_PAD, pad) == 1
                && libc::mallopt(libc::M_MMAP_THRESHOLD, 2 * HUGE as libc::c_int) == 1
        };
        if !is_set {
            return;
        }
        // SAFETY: reads the end of the heap and does not move it.
        let end = unsafe { libc::sbrk(0) } as usize;
        let boundary = end.next_multiple_of(HUGE);
        // Pages up to the boundary are small: a filler keeps allocations out of them. It is never written, so that it
        // takes no memory.
        mem::forget(room(boundary - end));
        drop(room(HUGE / 2));
        // SAFETY: reads the end of the heap and does not move it.
        let end = unsafe { libc::sbrk(0) } as usize;
        if boundary + bytes <= end {
            // Fails on a system without huge pages, which is harmless.
            // SAFETY: this is memory of the heap, which keeps what it holds.
            unsafe { libc::madvise(boundary as *mut libc::c_void, bytes, libc::MADV_HUGEPAGE) };
        } else {
            // The limit of the process may be lower: the heap then grows in steps.
            // SAFETY: sets a number of the allocator, which takes its lock.
            unsafe { libc::mallopt(libc::M_TOP_PAD, TOP_PAD) };
        }
    }

    /// An empty vector with this capacity, if there is memory.
    fn room(bytes: usize) -> Vec<u8> {
        let mut room = Vec::new();
        // If there is none, it has no capacity, and the heap does not grow.
        let _ = room.try_reserve_exact(bytes);
        black_box(room)
    }
}

impl<T: Zeroed> Deref for Pages<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        let Some(memory) = &self.memory else { return &[] };
        // SAFETY: the memory is this one's alone, for as long as it is borrowed; it begins with a page, so that values
        // are aligned, and holds so many whole ones; all of its bytes were zero at first, which is a value, and only
        // values have been written since.
        unsafe { std::slice::from_raw_parts(memory.as_ptr().cast(), memory.bytes() / size_of::<T>()) }
    }
}

impl<T: Zeroed> DerefMut for Pages<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        let Some(memory) = &mut self.memory else { return &mut [] };
        // SAFETY: as above, and it has no other borrow.
        unsafe { std::slice::from_raw_parts_mut(memory.as_mut_ptr().cast(), memory.bytes() / size_of::<T>()) }
    }
}

impl<T: Zeroed> fmt::Debug for Pages<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} values", self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn memory_of_every_length_is_zero_and_holds_what_is_written() {
        for length in [0, 1, 2, 511, 512, 513, HUGE / 8 - 1, HUGE / 8, HUGE / 8 + 1, HUGE] {
            let mut pages = Pages::<u64>::zeroed(length).expect("there is memory");
            assert_eq!(pages.len(), length);
            assert!(pages.iter().all(|value| *value == 0), "{length}");
            for (index, value) in pages.iter_mut().enumerate() {
                *value = index as u64;
            }
            assert!(pages.iter().enumerate().all(|(index, value)| *value == index as u64), "{length}");
        }
    }

    #[test]
    fn threads_share_memory_of_atomic_values() {
        let pages = Pages::<AtomicU32>::zeroed(HUGE / 4).expect("there is memory");
        std::thread::scope(|scope| {
            for first in 0..2 {
                let pages = &pages;
                scope.spawn(move || {
                    for value in pages.iter().skip(first).step_by(2) {
                        value.store(1 + first as u32, Ordering::Relaxed);
                    }
                });
            }
        });
        let sum: u32 = pages.iter().map(|value| value.load(Ordering::Relaxed)).sum();
        assert_eq!(sum as usize, 3 * HUGE / 8);
    }

    #[test]
    fn too_much_is_an_error() {
        assert!(Pages::<u64>::zeroed(usize::MAX / 4).is_err());
        assert!(Pages::<u64>::zeroed(1 << 60).is_err());
    }
}
