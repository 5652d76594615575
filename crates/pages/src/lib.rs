//! Zeroed memory straight from the system, in huge pages where it is long enough: for tables and logs of many mebibytes
//! that several threads fill at once. The system gives out pages one at a time, and threads of one process wait for
//! each other when it does; on a virtual machine this can take a tenth of the time of a search. Five hundred times
//! fewer pages are five hundred times fewer such moments.

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

/// Bytes of a huge page. Memory of so many bytes, or a multiple, is asked for in huge pages.
pub const HUGE: usize = 2 << 20;

/// What zeroed memory can hold.
///
/// # Safety
///
/// All bytes zero must be a value, which need not be dropped, and whose alignment is at most that of a page.
pub unsafe trait Zeroed {}

// SAFETY: zero is a number, and nothing is dropped.
unsafe impl Zeroed for u64 {}
// SAFETY: as for numbers.
unsafe impl Zeroed for AtomicU32 {}

/// So many values in memory of their own, all zero at first. The system gives pages when they are first written or read
/// and takes them back when this is dropped.
///
/// ```
/// let mut slots = quaject_pages::Pages::<u64>::zeroed(1 << 18)?;
/// slots[7] = 9;
/// assert_eq!(slots.iter().sum::<u64>(), 9);
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Pages<T> {
    /// None if there are no values: the system gives no empty memory.
    memory: Option<ZeroedMemory>,
    values: PhantomData<[T]>,
}

impl<T: Zeroed> Pages<T> {
    /// Memory for so many values.
    ///
    /// # Errors
    ///
    /// What the system says, if it has no such memory, or if it would be longer than addresses go.
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
                // A system without huge pages refuses; the memory is then in small pages.
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

/// Has the heap of the C library, from which `Box`, `Vec` and the like are, begin with so many bytes (a multiple of a huge
/// page) in huge pages, as far as the system has any; where another library has the heap, nothing is done. For programs
/// that run for a few milliseconds, most of which they would spend on getting pages one at a time. To be called once, at
/// the beginning. Memory that is not used is not taken from others, but for the rest of a huge page.
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

    /// What the C library asks for in addition to what is needed, by default.
    const TOP_PAD: libc::c_int = 128 << 10;

    pub(super) fn begin(bytes: usize) {
        let Ok(pad) = libc::c_int::try_from(bytes + HUGE) else { return };
        // Where the heap is full it grows by so much, once; and what is smaller than that comes from it.
        // SAFETY: sets numbers of the allocator, which takes its lock.
        let is_set = unsafe {
            libc::mallopt(libc::M_TOP_PAD, pad) == 1
                && libc::mallopt(libc::M_MMAP_THRESHOLD, 2 * HUGE as libc::c_int) == 1
        };
        if !is_set {
            return;
        }
        // SAFETY: asks where the heap ends, and moves nothing.
        let end = unsafe { libc::sbrk(0) } as usize;
        let boundary = end.next_multiple_of(HUGE);
        // Up to there pages are small, so that nothing is put there. It is never written, and so takes no memory.
        mem::forget(room(boundary - end));
        drop(room(HUGE / 2));
        // SAFETY: asks where the heap ends, and moves nothing.
        let end = unsafe { libc::sbrk(0) } as usize;
        if boundary + bytes <= end {
            // A system without huge pages refuses, and serves as well, only later.
            // SAFETY: this is memory of the heap, which keeps what it holds.
            unsafe { libc::madvise(boundary as *mut libc::c_void, bytes, libc::MADV_HUGEPAGE) };
        } else {
            // The process may not have so much: it gets what it needs, little by little.
            // SAFETY: sets a number of the allocator, which takes its lock.
            unsafe { libc::mallopt(libc::M_TOP_PAD, TOP_PAD) };
        }
    }

    /// Room for so many bytes, if there are.
    fn room(bytes: usize) -> Vec<u8> {
        let mut room = Vec::new();
        // Without them it is empty, and the heap ends where it did.
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
