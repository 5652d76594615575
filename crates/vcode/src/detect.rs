//! Detection of the features of the running processor, from the processor itself (CPUID, ID registers): works without
//! `std`.

use crate::features::Features;

impl Features {
    /// The features that the processor has and the operating system enables. The result is cached: on x86-64 each CPUID
    /// exits a virtual machine, which takes microseconds.
    pub fn detect() -> Features {
        probe::features()
    }
}

#[cfg(target_arch = "x86_64")]
mod probe {
    use core::arch::x86_64::{__cpuid, __cpuid_count, _xgetbv, CpuidResult};
    use core::sync::atomic::{AtomicU64, Ordering};

    use crate::features::Features;
    use crate::x86_64::{AVX2, AVX512, BMI1, LZCNT, MOVBE, PCLMUL, POPCNT, SSE42, VNNI, VPCLMUL};

    /// A leaf of CPUID; empty if the processor has no such leaf.
    fn leaf(number: u32) -> CpuidResult {
        let last = __cpuid(number & 0x8000_0000).eax;
        if number <= last { __cpuid_count(number, 0) } else { CpuidResult { eax: 0, ebx: 0, ecx: 0, edx: 0 } }
    }

    /// The components of the processor's state that the operating system saves (XCR0); none without OSXSAVE.
    fn saved_state(os_says: bool) -> u64 {
        #[target_feature(enable = "xsave")]
        fn read() -> u64 {
            // SAFETY: register 0 exists wherever the instruction does.
            unsafe { _xgetbv(0) }
        }
        // SAFETY: when OSXSAVE is set, the operating system has turned the instruction on.
        if os_says { unsafe { read() } } else { 0 }
    }

    /// The detected features and [`IS_CACHED`]; 0 before the first detection.
    static CACHE: AtomicU64 = AtomicU64::new(0);
    const IS_CACHED: u64 = 1 << 63;

    pub(super) fn features() -> Features {
        // Relaxed: the word is the whole result, and every thread computes the same.
        let cached = CACHE.load(Ordering::Relaxed);
        if cached != 0 {
            return Features::from_bits(cached & !IS_CACHED);
        }
        let features = query();
        CACHE.store(features.bits() | IS_CACHED, Ordering::Relaxed);
        features
    }

    fn query() -> Features {
        let bit = |word: u32, number: u32| word >> number & 1 == 1;
        let (one, seven, extended) = (leaf(1), leaf(7), leaf(0x8000_0001));
        let state = saved_state(bit(one.ecx, 27));
        let (saves_avx, saves_avx512) = (state & 0x6 == 0x6, state & 0xe6 == 0xe6);
        let avx512 = [16, 17, 30, 31].into_iter().all(|number| bit(seven.ebx, number));
        POPCNT.when(bit(one.ecx, 23))
            | LZCNT.when(bit(extended.ecx, 5))
            | BMI1.when(bit(seven.ebx, 3))
            | MOVBE.when(bit(one.ecx, 22))
            // SSE4.2 implies SSSE3 and SSE4.1, which are checked too.
            | SSE42.when(bit(one.ecx, 20) && bit(one.ecx, 19) && bit(one.ecx, 9))
            | AVX2.when(bit(seven.ebx, 5) && saves_avx)
            | AVX512.when(avx512 && saves_avx512)
            | VNNI.when(avx512 && saves_avx512 && bit(seven.ecx, 11))
            | PCLMUL.when(bit(one.ecx, 1))
            | VPCLMUL.when(bit(seven.ecx, 10) && saves_avx)
    }
}

// Linux emulates reads of the identification registers; without an operating system they are readable.
#[cfg(all(target_arch = "aarch64", any(target_os = "linux", target_os = "none")))]
mod probe {
    use core::arch::asm;

    use crate::aarch64::{CRC, DOTPROD, LSE, PMULL};
    use crate::features::Features;

    pub(super) fn features() -> Features {
        let isar0: u64;
        // SAFETY: reading the register has no side effects; it is readable here, see above.
        unsafe { asm!("mrs {}, ID_AA64ISAR0_EL1", out(reg) isar0, options(pure, nomem, nostack, preserves_flags)) };
        let field = |low: u32| isar0 >> low & 15;
        CRC.when(field(16) >= 1) | LSE.when(field(20) >= 2) | DOTPROD.when(field(44) >= 1) | PMULL.when(field(4) >= 2)
    }
}

#[cfg(not(any(target_arch = "x86_64", all(target_arch = "aarch64", any(target_os = "linux", target_os = "none")))))]
mod probe {
    use crate::features::Features;

    /// The features that the program was compiled for.
    pub(super) fn features() -> Features {
        #[cfg(target_arch = "riscv64")]
        return crate::riscv64::ZBB.when(cfg!(target_feature = "zbb"));
        #[cfg(not(target_arch = "riscv64"))]
        return Features::NONE;
    }
}
