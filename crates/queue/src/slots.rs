//! The algorithm of the queues whose slots hold their own state, free or full: claim, publish, acquire, give back, for
//! one or many producers and consumers, among threads or processes. Specialised by the compiler through [`Side`] and
//! [`Memory`]. Knows neither the owner of the memory nor how to wait.
//!
//! "Threads in the Synthesis kernel", section 3.2 (optimistic queues), puts a flag next to each slot because the head
//! alone does not show that an item has been written. We put the flag *into* the slot, with the lap: one cache line
//! moves per item and direction, neighbouring flags are not shared falsely, and the index is never needed to decide
//! whether a slot may be accessed. The lap is the sequence number of Vyukov's bounded MPMC queue (2010); the states
//! that name an owner, and the recovery from its death, are ours.
//!
//! ```text
//!   one producer      load state[p]                            write   state[p] = FULL(lap)
//!   many, threads     load, compare-and-swap claim p -> p+n   write   state[p+n-1] .. state[p] = FULL(lap)
//!   many, processes   load, compare-and-swap state[p] -> BUSY(lap, owner, n), claim -> p+n  (helped on by others)
//!                                                             write   state[p+n-1] .. state[p] = FULL(lap)
//! ```
//!
//! Consumers mirror this with `take`, `TAKEN` and `FREE(lap + 1)`. Threads may claim by the index because they do not
//! fail independently; processes do, and then the state of the slot names the owner to recover from.

use super::prefetch::{Access, per_line, prefetch};
use super::sync::{ADVANCE, AtomicU64, GIVE_BACK, HINT, MARK, OBSERVE, PUBLISH};
use super::word::{Phase, SPAN_MAX, Word};

/// The number of ends of a side of a queue: one or many.
pub trait Side: sealed::Side + Send + Sync + 'static {}

/// One user: no compare-and-swap, because its position is private.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Single;

/// Many users, which claim positions optimistically: load, compare-and-swap, retry if another end has claimed first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Multi;

impl Side for Single {}
impl Side for Multi {}

pub(crate) mod sealed {
    /// The number of ends of a side, as a constant of the algorithm.
    pub trait Side {
        /// Whether positions must be claimed.
        const COUNT: Count;
    }

    /// One or many.
    #[derive(Clone, Copy, PartialEq, Eq)]
    pub enum Count {
        /// The position is private.
        One,
        /// The position is claimed.
        Many,
    }

    impl Side for super::Single {
        const COUNT: Count = Count::One;
    }
    impl Side for super::Multi {
        const COUNT: Count = Count::Many;
    }
}
use sealed::Count;

/// The memory of a slot: its state and its item, and the faults that its users must survive.
pub(crate) trait Memory {
    /// The type of the item.
    type Item;
    /// The faults that the algorithm must survive.
    const FAULT_MODEL: FaultModel;

    /// The state of the slot.
    fn state(&self) -> &AtomicU64;
    /// Writes the item.
    ///
    /// # Safety
    /// The caller has claimed the slot.
    unsafe fn write(&self, item: Self::Item);
    /// Reads the item out of the slot.
    ///
    /// # Safety
    /// The caller has acquired the slot and reads it once.
    unsafe fn read(&self) -> Self::Item;
}

/// Which ends may fail on their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FaultModel {
    /// Threads fail together: an end that has claimed will publish, and this crate has written all words.
    Threads,
    /// Processes fail independently and may be malicious: an end may die at any instruction, and words may have any
    /// value.
    Processes,
}

/// Why an operation was not possible now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TryError {
    /// A push found no room, a pop no item.
    NotReady,
    /// Not ready, and this owner holds the slot; when it is dead, call [`recover`](crate::shared::Ring::recover).
    Held {
        /// The number of the end that holds the slot.
        owner: u8,
    },
    /// The memory holds what no correct peer writes.
    Broken,
}

impl core::fmt::Display for TryError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            TryError::NotReady => f.write_str("the queue is full or empty"),
            TryError::Held { owner } => write!(f, "owner {owner} holds the slot"),
            TryError::Broken => f.write_str("the shared memory holds what no correct peer writes"),
        }
    }
}

impl core::error::Error for TryError {}

/// The slots and the two indices of a queue, as an end sees them. The mask is the end's own: whatever the memory says,
/// no access leaves the slots.
pub(crate) struct View<M> {
    pub(crate) slots: *const M,
    pub(crate) claim: *const AtomicU64,
    pub(crate) take: *const AtomicU64,
    pub(crate) mask: u64,
    pub(crate) shift: u32,
}

impl<M> Clone for View<M> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<M> Copy for View<M> {}

// SAFETY: a view is a shared reference to slots and indices, kept as pointers because an end owns what they lie in.
unsafe impl<M: Sync> Send for View<M> {}
// SAFETY: as above.
unsafe impl<M: Sync> Sync for View<M> {}

/// Consecutive positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    pub(crate) first: u64,
    pub(crate) count: u64,
}

impl<M: Memory> View<M> {
    /// # Safety
    /// `slots` points to `capacity` slots, a power of two; all three outlive every use of the view, and only views
    /// (here or in another process, in this or the C implementation) touch them.
    pub(crate) unsafe fn new(
        slots: *const M,
        capacity: usize,
        claim: *const AtomicU64,
        take: *const AtomicU64,
    ) -> View<M> {
        View { slots, claim, take, mask: capacity as u64 - 1, shift: capacity.trailing_zeros() }
    }

    #[inline(always)]
    pub(crate) fn slot(&self, position: u64) -> &M {
        // SAFETY: masked to an index below the capacity that was promised to `new`.
        unsafe { &*self.slots.add((position & self.mask) as usize) }
    }

    #[inline(always)]
    fn claim_counter(&self) -> &AtomicU64 {
        // SAFETY: promised to `new`.
        unsafe { &*self.claim }
    }

    #[inline(always)]
    fn take_counter(&self) -> &AtomicU64 {
        // SAFETY: promised to `new`.
        unsafe { &*self.take }
    }

    #[inline(always)]
    pub(crate) fn lap(&self, position: u64) -> u64 {
        position >> self.shift
    }

    #[inline(always)]
    pub(crate) fn idle(&self, position: u64, phase: Phase) -> Word {
        Word::idle(self.lap(position), phase)
    }

    #[inline(always)]
    pub(crate) fn state(&self, position: u64) -> Word {
        // Pairs with PUBLISH in `publish`, GIVE_BACK in `give_back` and MARK in `compare_exchange`.
        Word(self.slot(position).state().load(OBSERVE))
    }

    #[inline(always)]
    pub(crate) fn compare_exchange(&self, position: u64, from: Word, to: Word) -> bool {
        // Pairs with OBSERVE in `state` and with itself: marks follow marks.
        self.slot(position).state().compare_exchange(from.0, to.0, MARK, HINT).is_ok()
    }

    /// Attempts after which a call among processes gives up: correct peers cost one per call of theirs, a malicious one
    /// could move the hints forever.
    fn attempts(&self) -> u64 {
        2 * self.mask + 64
    }

    // ---- producers ----

    /// How many items may be claimed at once.
    pub(crate) fn max_insert(&self) -> u64 {
        match M::FAULT_MODEL {
            FaultModel::Threads => self.mask + 1,
            FaultModel::Processes => SPAN_MAX.min(self.mask + 1),
        }
    }

    /// The last of `count` positions from `first` whose slot is not free, and its state.
    #[inline(always)]
    fn occupied<C: Side>(&self, first: u64, count: u64) -> Option<(u64, Word)> {
        let last = first.wrapping_add(count - 1);
        // One consumer of our own process gives slots back in order: when the last is free, all are.
        let least = match (C::COUNT, M::FAULT_MODEL) {
            (Count::One, FaultModel::Threads) => last,
            (Count::One, FaultModel::Processes) | (Count::Many, _) => first,
        };
        let mut position = last;
        loop {
            let found = self.state(position);
            if found != self.idle(position, Phase::Free) {
                return Some((position, found));
            }
            if position == least {
                return None;
            }
            position = position.wrapping_sub(1);
        }
    }

    /// Gets `count` neighbouring free slots, all or none. They belong to the caller until it publishes them.
    #[inline(always)]
    pub(crate) fn claim<P: Side, C: Side>(
        &self,
        local_position: &mut u64,
        owner: u8,
        count: u64,
    ) -> Result<Run, TryError> {
        debug_assert!(count >= 1 && count <= self.max_insert());
        match (P::COUNT, M::FAULT_MODEL) {
            (Count::One, _) => match self.occupied::<C>(*local_position, count) {
                None => {
                    let run = Run { first: *local_position, count };
                    *local_position = local_position.wrapping_add(count);
                    Ok(run)
                }
                Some((position, found)) => Err(self.full::<P, C>(position, found)),
            },
            (Count::Many, FaultModel::Threads) => self.claim_index::<C>(count),
            (Count::Many, FaultModel::Processes) => self.claim_slot::<P, C>(owner, count),
        }
    }

    fn claim_index<C: Side>(&self, count: u64) -> Result<Run, TryError> {
        loop {
            let first = self.claim_counter().load(HINT);
            match self.occupied::<C>(first, count) {
                None => {
                    // `first` was not claimed since: its slot, and those behind it, are still free.
                    if self.claim_counter().compare_exchange_weak(first, first + count, HINT, HINT).is_ok() {
                        return Ok(Run { first, count });
                    }
                }
                // A producer moves the index before it fills a slot; OBSERVE makes that visible, so an unmoved index
                // means full.
                Some(_) if self.claim_counter().load(HINT) == first => return Err(TryError::NotReady),
                Some(_) => {}
            }
        }
    }

    fn claim_slot<P: Side, C: Side>(&self, owner: u8, count: u64) -> Result<Run, TryError> {
        for _ in 0..self.attempts() {
            // Pairs with ADVANCE in `help`.
            let first = self.claim_counter().load(OBSERVE);
            match self.occupied::<C>(first, count) {
                None => {
                    let busy = Word::held(self.lap(first), owner, count, Phase::Busy);
                    if self.compare_exchange(first, self.idle(first, Phase::Free), busy) {
                        self.help(self.claim_counter(), first, first.wrapping_add(count));
                        return Ok(Run { first, count });
                    }
                }
                // Claimed since, or the hint lags behind; the first slot holds the length of the claim.
                Some((position, found)) if found.ahead_of(self.lap(position)) >= 0 => {
                    let state = self.state(first);
                    let ahead = state.ahead_of(self.lap(first));
                    let span = if ahead == 0 && state.phase() == Some(Phase::Busy) { state.span() } else { 1 };
                    if ahead >= 0 && state != self.idle(first, Phase::Free) {
                        self.help(self.claim_counter(), first, first.wrapping_add(span));
                    }
                }
                Some((position, found)) => {
                    if self.claim_counter().load(HINT) == first {
                        return Err(self.full::<P, C>(position, found));
                    }
                }
            }
        }
        Err(TryError::NotReady)
    }

    /// Advances a hint, unless another end has done so.
    fn help(&self, hint: &AtomicU64, from: u64, to: u64) {
        // Pairs with OBSERVE in `claim_slot` and `acquire_slot`.
        let _ = hint.compare_exchange(from, to, ADVANCE, HINT);
    }

    /// Writes an item into a claimed position.
    ///
    /// # Safety
    /// The position was claimed by the caller and is not published.
    #[inline(always)]
    pub(crate) unsafe fn write(&self, position: u64, item: M::Item) {
        // SAFETY: claimed, says the caller.
        unsafe { self.slot(position).write(item) };
    }

    /// Publishes claimed and written positions, the last one first: consumers start at the first, so they see all or
    /// none.
    ///
    /// # Safety
    /// The positions were claimed by the caller and written.
    #[inline(always)]
    pub(crate) unsafe fn publish(&self, run: Run) {
        for offset in (0..run.count).rev() {
            let position = run.first.wrapping_add(offset);
            // Pairs with OBSERVE in `state`, called by `acquire`: the item is written before it is seen.
            self.slot(position).state().store(self.idle(position, Phase::Full).0, PUBLISH);
        }
    }

    // ---- consumers ----

    /// Gets up to `wanted` items. They belong to the caller until it gives the slots back.
    #[inline(always)]
    pub(crate) fn acquire<P: Side, C: Side>(
        &self,
        local_position: &mut u64,
        owner: u8,
        wanted: u64,
    ) -> Result<Run, TryError> {
        debug_assert!(wanted >= 1);
        match (C::COUNT, M::FAULT_MODEL) {
            (Count::One, FaultModel::Threads) => {
                let run = Run { first: *local_position, count: self.full_from(*local_position, wanted) };
                if run.count == 0 {
                    return Err(TryError::NotReady);
                }
                *local_position = local_position.wrapping_add(run.count);
                if wanted > 1 && run.count == wanted {
                    self.prefetch_ahead(*local_position, wanted);
                }
                Ok(run)
            }
            (Count::Many, FaultModel::Threads) => self.acquire_index(wanted),
            (Count::One, FaultModel::Processes) => self.acquire_single::<P, C>(local_position, wanted),
            (Count::Many, FaultModel::Processes) => self.acquire_slot::<P, C>(owner),
        }
    }

    /// Prefetches the run after the next for writing, as slots are also given back. A consumer that finds a full run
    /// usually finds another, so those lines have been written, or will be before they are read. Not where each slot
    /// has a line: so many lines are better left to the producer.
    #[inline(always)]
    fn prefetch_ahead(&self, next: u64, count: u64) {
        if per_line::<M>() == 1 {
            return;
        }
        for offset in (count..2 * count).step_by(per_line::<M>()) {
            prefetch(self.slot(next.wrapping_add(offset)), Access::Write);
        }
    }

    /// How many items, up to `wanted`, are ready from `first` on.
    #[inline(always)]
    fn full_from(&self, first: u64, wanted: u64) -> u64 {
        let mut count = 0;
        let mut position = first;
        while count < wanted && self.state(position) == self.idle(position, Phase::Full) {
            count += 1;
            position = first.wrapping_add(count);
        }
        count
    }

    fn acquire_index(&self, wanted: u64) -> Result<Run, TryError> {
        loop {
            let first = self.take_counter().load(HINT);
            let count = self.full_from(first, wanted);
            if count > 0 {
                // `first` was not taken since: it, and those behind it, are still full.
                if self.take_counter().compare_exchange_weak(first, first + count, HINT, HINT).is_ok() {
                    return Ok(Run { first, count });
                }
            } else if self.take_counter().load(HINT) == first {
                // A consumer moves the index before it empties a slot; an unmoved index means empty.
                return Err(TryError::NotReady);
            }
        }
    }

    /// One consumer among processes: skips the slots that a dead producer left void.
    #[inline(always)]
    fn acquire_single<P: Side, C: Side>(&self, local_position: &mut u64, wanted: u64) -> Result<Run, TryError> {
        for _ in 0..=self.mask {
            let run = Run { first: *local_position, count: self.full_from(*local_position, wanted) };
            if run.count > 0 {
                *local_position = local_position.wrapping_add(run.count);
                return Ok(run);
            }
            let found = self.state(*local_position);
            if found == self.idle(*local_position, Phase::Full) {
                continue;
            }
            if found != self.idle(*local_position, Phase::Void) {
                return Err(self.empty::<P, C>(*local_position, found));
            }
            self.give_back_one(*local_position);
            *local_position = local_position.wrapping_add(1);
        }
        Err(TryError::NotReady)
    }

    fn acquire_slot<P: Side, C: Side>(&self, owner: u8) -> Result<Run, TryError> {
        for _ in 0..self.attempts() {
            // Pairs with ADVANCE in `help`.
            let first = self.take_counter().load(OBSERVE);
            let (found, lap) = (self.state(first), self.lap(first));
            if found == self.idle(first, Phase::Full) {
                if self.compare_exchange(first, found, Word::held(lap, owner, 1, Phase::Taken)) {
                    self.help(self.take_counter(), first, first.wrapping_add(1));
                    return Ok(Run { first, count: 1 });
                }
            } else if found == self.idle(first, Phase::Void) {
                if self.compare_exchange(first, found, Word::idle(lap + 1, Phase::Free)) {
                    self.help(self.take_counter(), first, first.wrapping_add(1));
                }
            } else if found.ahead_of(lap) > 0 || (found.ahead_of(lap) == 0 && found.phase() == Some(Phase::Taken)) {
                // Taken already: the hint lags behind, or a consumer died between its claim and its advance.
                self.help(self.take_counter(), first, first.wrapping_add(1));
            } else if self.take_counter().load(HINT) == first {
                return Err(self.empty::<P, C>(first, found));
            }
        }
        Err(TryError::NotReady)
    }

    /// Takes the item out of an acquired position.
    ///
    /// # Safety
    /// The position was acquired by the caller, is not given back, and is read once.
    #[inline(always)]
    pub(crate) unsafe fn read(&self, position: u64) -> M::Item {
        // SAFETY: acquired, says the caller.
        unsafe { self.slot(position).read() }
    }

    /// Gives acquired and read slots to the producers of the next lap, in order.
    ///
    /// # Safety
    /// The positions were acquired by the caller and read.
    #[inline(always)]
    pub(crate) unsafe fn give_back(&self, run: Run) {
        for offset in 0..run.count {
            self.give_back_one(run.first.wrapping_add(offset));
        }
    }

    #[inline(always)]
    pub(crate) fn give_back_one(&self, position: u64) {
        let free = Word::idle(self.lap(position) + 1, Phase::Free);
        // Pairs with OBSERVE in `state`, called by `occupied`: the item is read before it is overwritten.
        self.slot(position).state().store(free.0, GIVE_BACK);
    }

    // ---- reasons of failure ----

    /// Why there is no room at `position`: among correct peers, because it holds the item of the lap before.
    #[cold]
    fn full<P: Side, C: Side>(&self, position: u64, found: Word) -> TryError {
        if M::FAULT_MODEL == FaultModel::Threads {
            return TryError::NotReady;
        }
        let before = self.lap(position).wrapping_sub(1);
        if found == Word::idle(before, Phase::Full) || found == Word::idle(before, Phase::Void) {
            TryError::NotReady
        } else if found.ahead_of(before) == 0 {
            match found.phase() {
                Some(Phase::Busy) => held::<P>(found),
                Some(Phase::Taken) => held::<C>(found),
                Some(Phase::Free) if found == Word::idle(before, Phase::Free) => {
                    self.unpublished::<P>(position.wrapping_sub(self.mask + 1))
                }
                Some(Phase::Free | Phase::Full | Phase::Void) | None => TryError::Broken,
            }
        } else {
            TryError::Broken
        }
    }

    /// Why `position` is still free although the next lap has begun: it is an inner slot of an insert of several items,
    /// whose first slot names the owner and is published last.
    #[cold]
    fn unpublished<P: Side>(&self, position: u64) -> TryError {
        for back in 1..SPAN_MAX.min(self.mask + 1) {
            let first = position.wrapping_sub(back);
            let state = self.state(first);
            let covers = state.ahead_of(self.lap(first)) == 0 && state.span() > back;
            if covers && state.phase() == Some(Phase::Busy) {
                return held::<P>(state);
            }
        }
        if self.state(position) == self.idle(position, Phase::Free) { TryError::Broken } else { TryError::NotReady }
    }

    /// Why there is no item at `position`: correct peers have not published there yet, or a consumer is still reading
    /// the item of the lap before.
    #[cold]
    fn empty<P: Side, C: Side>(&self, position: u64, found: Word) -> TryError {
        if found == self.idle(position, Phase::Free) {
            TryError::NotReady
        } else if found.ahead_of(self.lap(position)) == 0 && found.phase() == Some(Phase::Busy) {
            held::<P>(found)
        } else if found.ahead_of(self.lap(position)) == -1 && found.phase() == Some(Phase::Taken) {
            held::<C>(found)
        } else {
            TryError::Broken
        }
    }
}

/// The owner that holds the slot; only ends of a shared side write an owner into a state.
fn held<S: Side>(found: Word) -> TryError {
    match (S::COUNT, found.owner()) {
        (Count::One, _) | (Count::Many, 0) => TryError::Broken,
        (Count::Many, owner) => TryError::Held { owner },
    }
}
