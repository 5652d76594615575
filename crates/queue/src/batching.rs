//! Batching ends: items are put one by one and inserted `B` at a time (the blocking factor), so that the cost of an
//! insertion is paid once per `B` items. "Threads in the Synthesis kernel", section 6.4 (buffered queues): the device
//! server of a sound converter that packs eight samples into a queue element. The specialised code the kernel
//! synthesised for each place in the element is here the constant `B`. Uses a queue only through its ends.

use core::mem::MaybeUninit;
use core::ops::Deref;

use crate::ends::{Consumer, Producer, Queue, TryPushError};
use crate::slots::TryError;

/// Up to `B` items in order: written at one end, read at the other.
struct Block<T, const B: usize> {
    items: [MaybeUninit<T>; B],
    read: usize,
    written: usize,
}

impl<T, const B: usize> Block<T, B> {
    fn new() -> Self {
        const { assert!(B > 0, "a blocking factor is at least 1") };
        Block { items: [const { MaybeUninit::uninit() }; B], read: 0, written: 0 }
    }

    #[inline(always)]
    fn put(&mut self, item: T) {
        self.items[self.written].write(item);
        self.written += 1;
    }

    #[inline(always)]
    fn get(&mut self) -> Option<T> {
        if self.read == self.written {
            (self.read, self.written) = (0, 0);
            return None;
        }
        self.read += 1;
        // SAFETY: the items from `read` to `written` are initialised; this one is counted as read.
        Some(unsafe { self.items[self.read - 1].assume_init_read() })
    }
}

impl<T, const B: usize> Drop for Block<T, B> {
    fn drop(&mut self) {
        while self.get().is_some() {}
    }
}

/// A producer that inserts `B` items at a time. Items wait in it until there are `B` or [`BatchingProducer::flush`] is
/// called.
pub struct BatchingProducer<R: Deref<Target: Queue>, const B: usize> {
    producer: Producer<R>,
    block: Block<<R::Target as Queue>::Item, B>,
}

impl<R: Deref<Target: Queue>, const B: usize> BatchingProducer<R, B> {
    /// Batches the inserts of `producer`.
    ///
    /// # Panics
    /// When `B` exceeds [`Queue::max_insert`].
    pub fn new(producer: Producer<R>) -> Self {
        let limit = producer.queue().max_insert();
        assert!(B <= limit, "an insert of {B} items can never succeed: this queue takes {limit} at once");
        BatchingProducer { producer, block: Block::new() }
    }

    /// Puts an item into the block, and a full block into the queue. Fails only when the block is full and the queue
    /// has no room for it.
    #[inline]
    pub fn put(&mut self, item: <R::Target as Queue>::Item) -> Result<(), TryPushError<<R::Target as Queue>::Item>> {
        if self.block.written == B
            && let Err(error) = self.flush()
        {
            return Err(TryPushError { item, error });
        }
        self.block.put(item);
        if self.block.written == B {
            // If there is no room, the block stays pending; the next `put` or `flush` tries again.
            let _ = self.flush();
        }
        Ok(())
    }

    /// Inserts the pending items, all or none.
    ///
    /// # Errors
    /// When there is no room; the items stay pending.
    #[inline]
    pub fn flush(&mut self) -> Result<(), TryError> {
        if self.block.written == 0 {
            return Ok(());
        }
        let run = R::Target::claim(self.producer.local_mut(), self.block.written as u64)?;
        // SAFETY: just claimed as many positions as there are items; all are moved out, written, then published.
        unsafe {
            for (offset, item) in self.block.items[..self.block.written].iter().enumerate() {
                let position = run.first.wrapping_add(offset as u64);
                R::Target::write(self.producer.local_mut(), position, item.assume_init_read());
            }
            self.block.written = 0;
            R::Target::publish(self.producer.local_mut(), run);
        }
        Ok(())
    }

    /// How many items are pending.
    pub fn pending(&self) -> usize {
        self.block.written
    }
}

/// Tries to insert the pending items; items for which there is no room are dropped, as a queue drops those that were
/// not taken.
impl<R: Deref<Target: Queue>, const B: usize> Drop for BatchingProducer<R, B> {
    fn drop(&mut self) {
        let _ = self.flush();
    }
}

/// A consumer that takes up to `B` items at a time and hands them out one by one.
pub struct BatchingConsumer<R: Deref<Target: Queue>, const B: usize> {
    consumer: Consumer<R>,
    block: Block<<R::Target as Queue>::Item, B>,
}

impl<R: Deref<Target: Queue>, const B: usize> BatchingConsumer<R, B> {
    /// Takes batches from `consumer`.
    pub fn new(consumer: Consumer<R>) -> Self {
        BatchingConsumer { consumer, block: Block::new() }
    }

    /// The next item.
    ///
    /// # Errors
    /// When the queue is empty.
    #[inline]
    pub fn get(&mut self) -> Result<<R::Target as Queue>::Item, TryError> {
        if let Some(item) = self.block.get() {
            return Ok(item);
        }
        let run = R::Target::acquire(self.consumer.local_mut(), B as u64)?;
        // SAFETY: acquired at most `B` positions; each is read once into the empty block, then given back.
        unsafe {
            for offset in 0..run.count {
                let item = R::Target::read(self.consumer.local_mut(), run.first.wrapping_add(offset));
                self.block.put(item);
            }
            R::Target::give_back(self.consumer.local_mut(), run);
        }
        Ok(self.block.get().expect("a successful acquire brings at least one item"))
    }
}

impl<R: Deref<Target: Queue>, const B: usize> core::fmt::Debug for BatchingProducer<R, B> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("BatchingProducer").field("pending", &self.block.written).finish_non_exhaustive()
    }
}

impl<R: Deref<Target: Queue>, const B: usize> core::fmt::Debug for BatchingConsumer<R, B> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("BatchingConsumer").finish_non_exhaustive()
    }
}
