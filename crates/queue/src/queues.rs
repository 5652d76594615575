//! The queues by name: which algorithm, which sides, where the memory lies. Holds no algorithm.
//!
//! | | one consumer | many consumers |
//! |---|---|---|
//! | one producer | `sp_sc` (throughput), `sp_sc_prompt` (latency), `sp_sc_dense` (memory) | `sp_mc` |
//! | many producers | `mp_sc` | `mp_mc` |
//!
//! "Dedicated" sides are [`Single`], "optimistic" ones [`Multi`], in the words of the Synthesis papers.

use crate::ends::{Consumer, Producer, split};
use crate::indexed::{Indexed, ItemCell};
use crate::slots::{Multi, Side, Single};
use crate::threads::{OwnLine, Slot, Slotted};

/// One producer, one consumer, `N` items in place. For throughput.
pub type SpScArray<T, const N: usize> = Slotted<T, Single, Single, [Slot<T>; N]>;
/// One producer, one consumer, `N` items in place, a cache line each. For latency.
pub type SpScPromptArray<T, const N: usize> = Slotted<T, Single, Single, [Slot<T, OwnLine>; N], OwnLine>;
/// One producer, one consumer, `N` items in place, side by side. For little memory.
pub type SpScDenseArray<T, const N: usize> = Indexed<T, [ItemCell<T>; N]>;
/// Many producers, one consumer, `N` items in place.
pub type MpScArray<T, const N: usize> = Slotted<T, Multi, Single, [Slot<T>; N]>;
/// One producer, many consumers, `N` items in place.
pub type SpMcArray<T, const N: usize> = Slotted<T, Single, Multi, [Slot<T>; N]>;
/// Many producers, many consumers, `N` items in place.
pub type MpMcArray<T, const N: usize> = Slotted<T, Multi, Multi, [Slot<T>; N]>;

impl<T, const N: usize> SpScDenseArray<T, N> {
    /// The two ends; `None` after the first call.
    pub fn split(&self) -> Option<(Producer<&Self>, Consumer<&Self>)> {
        split(self)
    }
}

impl<T, P: Side, C: Side, const N: usize, A> Slotted<T, P, C, [Slot<T, A>; N], A> {
    /// The two ends; `None` after the first call.
    pub fn split(&self) -> Option<(Producer<&Self>, Consumer<&Self>)> {
        split(self)
    }
}

#[cfg(feature = "alloc")]
pub use owned::*;

/// Queues that own their memory and live as long as one of their ends.
#[cfg(feature = "alloc")]
mod owned {
    use alloc::boxed::Box;
    use alloc::sync::Arc;

    use super::*;
    use crate::storage::boxed;

    /// An end's reference to a queue of [`sp_sc`].
    pub type SpSc<T> = Arc<Slotted<T, Single, Single, Box<[Slot<T>]>>>;
    /// An end's reference to a queue of [`sp_sc_prompt`].
    pub type SpScPrompt<T> = Arc<Slotted<T, Single, Single, Box<[Slot<T, OwnLine>]>, OwnLine>>;
    /// An end's reference to a queue of [`sp_sc_dense`].
    pub type SpScDense<T> = Arc<Indexed<T, Box<[ItemCell<T>]>>>;
    /// An end's reference to a queue of [`mp_sc`].
    pub type MpSc<T> = Arc<Slotted<T, Multi, Single, Box<[Slot<T>]>>>;
    /// An end's reference to a queue of [`sp_mc`].
    pub type SpMc<T> = Arc<Slotted<T, Single, Multi, Box<[Slot<T>]>>>;
    /// An end's reference to a queue of [`mp_mc`].
    pub type MpMc<T> = Arc<Slotted<T, Multi, Multi, Box<[Slot<T>]>>>;

    /// One producer, one consumer, room for at least `capacity` items. For throughput.
    pub fn sp_sc<T>(capacity: usize) -> (Producer<SpSc<T>>, Consumer<SpSc<T>>) {
        slotted(capacity)
    }

    /// One producer, one consumer, room for at least `capacity` items, a cache line each. For latency.
    pub fn sp_sc_prompt<T>(capacity: usize) -> (Producer<SpScPrompt<T>>, Consumer<SpScPrompt<T>>) {
        slotted(capacity)
    }

    /// One producer, one consumer, room for at least `capacity` items, side by side. For little memory.
    pub fn sp_sc_dense<T>(capacity: usize) -> (Producer<SpScDense<T>>, Consumer<SpScDense<T>>) {
        split(Arc::new(Indexed::with_cells(boxed(capacity, ItemCell::new)))).expect("the queue is new")
    }

    /// Many producers, one consumer, room for at least `capacity` items.
    pub fn mp_sc<T>(capacity: usize) -> (Producer<MpSc<T>>, Consumer<MpSc<T>>) {
        slotted(capacity)
    }

    /// One producer, many consumers, room for at least `capacity` items.
    pub fn sp_mc<T>(capacity: usize) -> (Producer<SpMc<T>>, Consumer<SpMc<T>>) {
        slotted(capacity)
    }

    /// Many producers, many consumers, room for at least `capacity` items.
    pub fn mp_mc<T>(capacity: usize) -> (Producer<MpMc<T>>, Consumer<MpMc<T>>) {
        slotted(capacity)
    }

    type OwnedSlotted<T, P, C, A> = Arc<Slotted<T, P, C, Box<[Slot<T, A>]>, A>>;
    type OwnedEnds<R> = (Producer<R>, Consumer<R>);

    fn slotted<T, P: Side, C: Side, A>(capacity: usize) -> OwnedEnds<OwnedSlotted<T, P, C, A>> {
        split(Arc::new(Slotted::with_slots(boxed(capacity, Slot::new)))).expect("the queue is new")
    }
}
