//! Prefetches cache lines. A line that another processor owns takes hundreds of cycles to transfer, and a batch would
//! wait for each of its lines in turn; prefetched in time, several transfers overlap. A prefetch is a hint: it reads
//! and writes nothing, so it needs no memory order, and any address is valid.

/// Bytes of a line.
pub(crate) const LINE: usize = 64;

/// The access that a line is prefetched for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// The line stays in other caches too.
    Read,
    /// The line is invalidated in other caches.
    Write,
}

/// Prefetches the line that holds `at`.
#[inline(always)]
#[cfg_attr(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))), expect(unused_variables))]
pub(crate) fn prefetch<T>(at: *const T, access: Access) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a prefetch changes nothing that a program can see, and never faults. (The intrinsic would write
    // `prefetcht0` for `prefetchw`, which every processor of 64 bits takes.)
    unsafe {
        match access {
            Access::Read => {
                core::arch::asm!("prefetcht0 [{}]", in(reg) at, options(nostack, preserves_flags, readonly))
            }
            Access::Write => {
                core::arch::asm!("prefetchw [{}]", in(reg) at, options(nostack, preserves_flags, readonly))
            }
        }
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    // SAFETY: as above.
    unsafe {
        match access {
            Access::Read => {
                core::arch::asm!("prfm pldl1keep, [{}]", in(reg) at, options(nostack, preserves_flags, readonly))
            }
            Access::Write => {
                core::arch::asm!("prfm pstl1keep, [{}]", in(reg) at, options(nostack, preserves_flags, readonly))
            }
        }
    }
}

/// How many neighbouring `T` share a line, at least 1.
pub(crate) const fn per_line<T>() -> usize {
    if size_of::<T>() == 0 || size_of::<T>() >= LINE { 1 } else { LINE / size_of::<T>() }
}
