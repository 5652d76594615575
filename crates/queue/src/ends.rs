//! The two ends of every queue: the operations of a producer and a consumer, written once over [`Queue`]. Nothing here
//! waits; `wait` does, with the caller's strategy. Knows no slot and no index.

use core::ops::Deref;

use crate::slots::{Multi, Run, Side, TryError};
use crate::sync::{AtomicU32, GIVE_BACK, HINT, OBSERVE};

/// The operations of a queue below its ends: find room, publish, find items, give back. Implemented by the queues of
/// this crate.
pub trait Queue: sealed::Sealed {
    /// The type of the items.
    type Item;
    /// How many produce.
    type Producers: Side;
    /// How many consume.
    type Consumers: Side;
    /// The private state of a producer.
    #[doc(hidden)]
    type ProducerLocal;
    /// The private state of a consumer.
    #[doc(hidden)]
    type ConsumerLocal;

    #[doc(hidden)]
    fn producer(&self) -> Self::ProducerLocal;
    #[doc(hidden)]
    fn consumer(&self) -> Self::ConsumerLocal;
    /// The count of the ends; `None` when they are in other processes.
    #[doc(hidden)]
    fn ends(&self) -> Option<&Ends>;
    /// How many items can be inserted at once.
    fn max_insert(&self) -> usize;

    #[doc(hidden)]
    fn claim(local: &mut Self::ProducerLocal, count: u64) -> Result<Run, TryError>;
    /// # Safety
    /// The position was claimed and is not published.
    #[doc(hidden)]
    unsafe fn write(local: &Self::ProducerLocal, position: u64, item: Self::Item);
    /// # Safety
    /// The run was claimed, and all of it written.
    #[doc(hidden)]
    unsafe fn publish(local: &mut Self::ProducerLocal, run: Run);
    #[doc(hidden)]
    fn acquire(local: &mut Self::ConsumerLocal, wanted: u64) -> Result<Run, TryError>;
    /// # Safety
    /// The position was acquired, is not given back, and is read once.
    #[doc(hidden)]
    unsafe fn read(local: &Self::ConsumerLocal, position: u64) -> Self::Item;
    /// # Safety
    /// The run was acquired, and all of it read.
    #[doc(hidden)]
    unsafe fn give_back(local: &mut Self::ConsumerLocal, run: Run);
}

pub(crate) mod sealed {
    /// Implemented by each queue of this crate, next to `Queue`: the ends trust what `claim` and `acquire` return.
    pub trait Sealed {}
}

/// What could not be inserted, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TryPushError<T> {
    /// What the caller wanted to insert.
    pub item: T,
    /// Why it was not possible. Among threads always [`TryError::NotReady`].
    pub error: TryError,
}

/// How many ends there are, so that a wait ends when the other side was dropped.
pub struct Ends {
    producers: AtomicU32,
    consumers: AtomicU32,
    split: AtomicU32,
}

impl<T> core::fmt::Display for TryPushError<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.error.fmt(f)
    }
}

impl<T: core::fmt::Debug> core::error::Error for TryPushError<T> {}

impl Ends {
    #[cfg(feature = "alloc")]
    pub(crate) fn new() -> Ends {
        Ends { producers: AtomicU32::new(0), consumers: AtomicU32::new(0), split: AtomicU32::new(0) }
    }
}

/// The end that inserts. With [`Multi`] producers it can be cloned.
pub struct Producer<R: Deref<Target: Queue>> {
    local: <R::Target as Queue>::ProducerLocal,
    queue: R,
}

/// The end that takes. With [`Multi`] consumers it can be cloned.
pub struct Consumer<R: Deref<Target: Queue>> {
    local: <R::Target as Queue>::ConsumerLocal,
    queue: R,
}

/// Both ends of a queue that is reached through `queue`; `None` when it has been split before.
pub(crate) fn split<R: Deref<Target: Queue> + Clone>(queue: R) -> Option<(Producer<R>, Consumer<R>)> {
    if let Some(ends) = queue.ends() {
        // No partner: a thread that reads 0 here got the queue in a way that synchronised with its creation.
        if ends.split.swap(1, HINT) == 1 {
            return None;
        }
        ends.producers.store(1, HINT);
        ends.consumers.store(1, HINT);
    }
    Some((Producer::at(queue.clone()), Consumer::at(queue)))
}

impl<R: Deref<Target: Queue>> Producer<R> {
    /// An end that `split` or `clone` has counted.
    pub(crate) fn at(queue: R) -> Self {
        Producer { local: queue.producer(), queue }
    }

    pub(crate) fn local_mut(&mut self) -> &mut <R::Target as Queue>::ProducerLocal {
        &mut self.local
    }

    /// The queue.
    pub fn queue(&self) -> &R::Target {
        &self.queue
    }

    /// Inserts an item unless the queue is full.
    #[inline]
    pub fn push(&mut self, item: <R::Target as Queue>::Item) -> Result<(), TryPushError<<R::Target as Queue>::Item>> {
        match R::Target::claim(&mut self.local, 1) {
            Ok(run) => {
                // SAFETY: just claimed; written, then published.
                unsafe {
                    R::Target::write(&self.local, run.first, item);
                    R::Target::publish(&mut self.local, run);
                }
                Ok(())
            }
            Err(error) => Err(TryPushError { item, error }),
        }
    }

    /// Inserts all items in neighbouring positions, or none: consumers see them together and in this order, whatever
    /// other producers do.
    ///
    /// # Panics
    /// When there are more items than [`Queue::max_insert`]: no attempt could succeed.
    #[inline]
    pub fn push_all<const N: usize>(
        &mut self,
        items: [<R::Target as Queue>::Item; N],
    ) -> Result<(), TryPushError<[<R::Target as Queue>::Item; N]>> {
        match self.room(N) {
            Ok(Some(run)) => {
                // SAFETY: just claimed; the array has as many items as the run; all written, then published. No code
                // of the caller runs in between.
                unsafe {
                    for (offset, item) in items.into_iter().enumerate() {
                        R::Target::write(&self.local, run.first.wrapping_add(offset as u64), item);
                    }
                    R::Target::publish(&mut self.local, run);
                }
                Ok(())
            }
            Ok(None) => Ok(()),
            Err(error) => Err(TryPushError { item: items, error }),
        }
    }

    /// Inserts all items of a slice, or none, as [`Producer::push_all`] does.
    ///
    /// # Panics
    /// When there are more items than [`Queue::max_insert`]: no attempt could succeed.
    #[inline]
    pub fn push_slice(&mut self, items: &[<R::Target as Queue>::Item]) -> Result<(), TryError>
    where
        <R::Target as Queue>::Item: Copy,
    {
        let Some(run) = self.room(items.len())? else { return Ok(()) };
        // SAFETY: just claimed; the slice has as many items as the run; all written, then published.
        unsafe {
            for (offset, item) in items.iter().enumerate() {
                R::Target::write(&self.local, run.first.wrapping_add(offset as u64), *item);
            }
            R::Target::publish(&mut self.local, run);
        }
        Ok(())
    }

    /// Room for `count` items; `None` for none.
    #[inline(always)]
    fn room(&mut self, count: usize) -> Result<Option<Run>, TryError> {
        if count == 0 {
            return Ok(None);
        }
        let limit = self.queue.max_insert();
        assert!(count <= limit, "an insert of {count} items can never succeed: this queue takes {limit} at once");
        R::Target::claim(&mut self.local, count as u64).map(Some)
    }

    /// Whether every consumer was dropped, so that nothing pushed will be taken. Ends in other processes are not
    /// counted.
    pub fn is_disconnected(&self) -> bool {
        // Pairs with GIVE_BACK in the consumer's `drop`.
        self.queue.ends().is_some_and(|ends| ends.consumers.load(OBSERVE) == 0)
    }
}

impl<R: Deref<Target: Queue>> Consumer<R> {
    /// An end that `split` or `clone` has counted.
    pub(crate) fn at(queue: R) -> Self {
        Consumer { local: queue.consumer(), queue }
    }

    pub(crate) fn local_mut(&mut self) -> &mut <R::Target as Queue>::ConsumerLocal {
        &mut self.local
    }

    /// The queue.
    pub fn queue(&self) -> &R::Target {
        &self.queue
    }

    /// Takes the next item unless the queue is empty.
    #[inline]
    pub fn pop(&mut self) -> Result<<R::Target as Queue>::Item, TryError> {
        let run = R::Target::acquire(&mut self.local, 1)?;
        // SAFETY: just acquired one position; read once, then given back.
        unsafe {
            let item = R::Target::read(&self.local, run.first);
            R::Target::give_back(&mut self.local, run);
            Ok(item)
        }
    }

    /// Takes up to `items.len()` items that are ready, in one step; returns how many.
    #[inline]
    pub fn pop_slice(&mut self, items: &mut [<R::Target as Queue>::Item]) -> Result<usize, TryError>
    where
        <R::Target as Queue>::Item: Copy,
    {
        if items.is_empty() {
            return Ok(0);
        }
        let run = R::Target::acquire(&mut self.local, items.len() as u64)?;
        // SAFETY: acquired at most as many as there are items; each read once, then given back.
        unsafe {
            for (offset, item) in items.iter_mut().take(run.count as usize).enumerate() {
                *item = R::Target::read(&self.local, run.first.wrapping_add(offset as u64));
            }
            R::Target::give_back(&mut self.local, run);
        }
        Ok(run.count as usize)
    }

    /// Takes up to `limit` items that are ready, in one step, and passes each to `each`; returns how many. When `each`
    /// panics the items it has not seen are dropped.
    pub fn pop_each(
        &mut self,
        limit: usize,
        mut each: impl FnMut(<R::Target as Queue>::Item),
    ) -> Result<usize, TryError> {
        if limit == 0 {
            return Ok(0);
        }
        let run = R::Target::acquire(&mut self.local, limit as u64)?;
        let mut taking = AcquiredRun { consumer: self, run, read: 0 };
        while let Some(item) = taking.next() {
            each(item);
        }
        Ok(run.count as usize)
    }

    /// Whether every producer was dropped. Items they pushed before may still be in the queue. Ends in other processes
    /// are not counted.
    pub fn is_disconnected(&self) -> bool {
        // Pairs with GIVE_BACK in the producer's `drop`: after `true`, one more `pop` sees all they have pushed.
        self.queue.ends().is_some_and(|ends| ends.producers.load(OBSERVE) == 0)
    }
}

/// An acquired run that is given back on drop, also when a panic unwinds.
struct AcquiredRun<'a, R: Deref<Target: Queue>> {
    consumer: &'a mut Consumer<R>,
    run: Run,
    read: u64,
}

impl<R: Deref<Target: Queue>> AcquiredRun<'_, R> {
    fn next(&mut self) -> Option<<R::Target as Queue>::Item> {
        if self.read == self.run.count {
            return None;
        }
        let position = self.run.first.wrapping_add(self.read);
        self.read += 1;
        // SAFETY: acquired, not given back before `drop`, and counted as read.
        Some(unsafe { R::Target::read(&self.consumer.local, position) })
    }
}

impl<R: Deref<Target: Queue>> Drop for AcquiredRun<'_, R> {
    fn drop(&mut self) {
        while self.next().is_some() {}
        // SAFETY: acquired, and all of it read.
        unsafe { R::Target::give_back(&mut self.consumer.local, self.run) };
    }
}

impl<R> Clone for Producer<R>
where
    R: Deref<Target: Queue<Producers = Multi, ProducerLocal: Clone>> + Clone,
{
    fn clone(&self) -> Self {
        if let Some(ends) = self.queue.ends() {
            // No partner: this end is counted, so the number cannot reach 0 meanwhile.
            ends.producers.fetch_add(1, HINT);
        }
        Producer { local: self.local.clone(), queue: self.queue.clone() }
    }
}

impl<R> Clone for Consumer<R>
where
    R: Deref<Target: Queue<Consumers = Multi, ConsumerLocal: Clone>> + Clone,
{
    fn clone(&self) -> Self {
        if let Some(ends) = self.queue.ends() {
            // No partner: this end is counted, so the number cannot reach 0 meanwhile.
            ends.consumers.fetch_add(1, HINT);
        }
        Consumer { local: self.local.clone(), queue: self.queue.clone() }
    }
}

impl<R: Deref<Target: Queue>> Drop for Producer<R> {
    fn drop(&mut self) {
        if let Some(ends) = self.queue.ends() {
            // Pairs with OBSERVE in the consumer's `is_disconnected`.
            ends.producers.fetch_sub(1, GIVE_BACK);
        }
    }
}

impl<R: Deref<Target: Queue>> Drop for Consumer<R> {
    fn drop(&mut self) {
        if let Some(ends) = self.queue.ends() {
            // Pairs with OBSERVE in the producer's `is_disconnected`.
            ends.consumers.fetch_sub(1, GIVE_BACK);
        }
    }
}

impl<R: Deref<Target: Queue>> core::fmt::Debug for Producer<R> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Producer").finish_non_exhaustive()
    }
}

impl<R: Deref<Target: Queue>> core::fmt::Debug for Consumer<R> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Consumer").finish_non_exhaustive()
    }
}
