//! Sets of processor features beyond the baseline of a machine. Rows of `machines/ext/*.spec` name the features that
//! they need.

use core::ops::BitOr;

/// A set of features; the bits are those of one machine, whose module names them: [`x86_64::POPCNT`](crate::x86_64).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Features(u64);

impl Features {
    /// The baseline.
    pub const NONE: Features = Features(0);

    /// The feature with this bit.
    pub(crate) const fn bit(bit: u32) -> Features {
        Features(1 << bit)
    }

    pub(crate) const fn from_bits(bits: u64) -> Features {
        Features(bits)
    }

    /// The set as a bit mask, as in the C header.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Whether all of `others` are in the set.
    #[inline(always)]
    pub const fn contains(self, others: Features) -> bool {
        self.0 & others.0 == others.0
    }

    /// The difference of two sets.
    #[must_use]
    pub const fn without(self, others: Features) -> Features {
        Features(self.0 & !others.0)
    }

    #[cfg(any(
        target_arch = "x86_64",
        target_arch = "riscv64",
        all(target_arch = "aarch64", any(target_os = "linux", target_os = "none"))
    ))]
    pub(crate) fn when(self, present: bool) -> Features {
        if present { self } else { Features::NONE }
    }
}

impl BitOr for Features {
    type Output = Features;

    fn bitor(self, other: Features) -> Features {
        Features(self.0 | other.0)
    }
}
