//! Asks for cache lines before they are needed. A line of the other processor takes hundreds of cycles to come, and a
//! batch would wait for each of its lines in turn; asked for in time, several come at once. Only a hint: nothing is read
//! or written, so it needs no order and no address can be wrong.

/// Bytes of a line.
pub(crate) const LINE: usize = 64;

/// What is going to be done with a line.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// It stays in other caches too.
    Read,
    /// It is taken away from other caches.
    Write,
}

/// Asks for the line in which `at` lies.
#[inline(always)]
#[cfg_attr(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))), expect(unused_variables))]
pub(crate) fn ask<T>(at: *const T, purpose: Use) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a prefetch changes nothing that a program can see, and never faults. (The intrinsic would write `prefetcht0`
    // for `prefetchw`, which every processor of 64 bits takes.)
    unsafe {
        match purpose {
            Use::Read => core::arch::asm!("prefetcht0 [{}]", in(reg) at, options(nostack, preserves_flags, readonly)),
            Use::Write => core::arch::asm!("prefetchw [{}]", in(reg) at, options(nostack, preserves_flags, readonly)),
        }
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    // SAFETY: as above.
    unsafe {
        match purpose {
            Use::Read => {
                core::arch::asm!("prfm pldl1keep, [{}]", in(reg) at, options(nostack, preserves_flags, readonly))
            }
            Use::Write => {
                core::arch::asm!("prfm pstl1keep, [{}]", in(reg) at, options(nostack, preserves_flags, readonly))
            }
        }
    }
}

/// Every how many neighbours of `T` a new line begins, at least.
pub(crate) const fn per_line<T>() -> usize {
    if size_of::<T>() == 0 || size_of::<T>() >= LINE { 1 } else { LINE / size_of::<T>() }
}
