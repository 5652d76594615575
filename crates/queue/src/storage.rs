//! The memory of a queue's cells, and values aligned against false sharing. Knows no queue.

/// Consecutive cells that do not move while the storage is borrowed.
pub trait Storage<S>: sealed::Sealed {
    /// The cells; their number is a power of two.
    fn cells(&self) -> &[S];
}

mod sealed {
    /// Only this crate's storages are known not to move their cells.
    pub trait Sealed {}
    impl<S, const N: usize> Sealed for [S; N] {}
    #[cfg(feature = "alloc")]
    impl<S> Sealed for alloc::boxed::Box<[S]> {}
}

impl<S, const N: usize> Storage<S> for [S; N] {
    fn cells(&self) -> &[S] {
        self
    }
}

#[cfg(feature = "alloc")]
impl<S> Storage<S> for alloc::boxed::Box<[S]> {
    fn cells(&self) -> &[S] {
        self
    }
}

/// Capacity `wanted` rounded up to a power of two, of cells made by `cell`.
#[cfg(feature = "alloc")]
pub(crate) fn boxed<S>(wanted: usize, cell: impl Fn() -> S) -> alloc::boxed::Box<[S]> {
    (0..wanted.max(1).next_power_of_two()).map(|_| cell()).collect()
}

/// A value on cache lines of its own: 128 bytes, because processors prefetch lines in pairs.
#[repr(align(128))]
pub(crate) struct Line<T>(pub(crate) T);
