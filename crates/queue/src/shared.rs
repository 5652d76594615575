//! Queues in memory that processes share, in the layout of `include/quaject/ring.h`: 64-byte slots, the state in the
//! slot, the position private on single sides. The algorithm is in `slots`; this module holds the layout, creation and
//! attachment, and the recovery after a peer has died. Knows no operating system: the caller supplies the memory.
//!
//! An index read from the memory is masked with the end's private mask, so no access leaves the ring; every call ends
//! after a bounded number of steps, and words are copied out with atomic loads before they are used: a malicious peer
//! can lose or forge messages, and nothing else. A consumer whose producers do not trust each other uses one ring for
//! each producer and combines them with [`FanIn`](crate::FanIn).

use core::marker::PhantomData;

use crate::bell::Bell;
use crate::ends::{Consumer, Ends, Producer, Queue, sealed::Sealed};
use crate::slots::sealed::Count;
use crate::slots::{FaultModel, Memory, Run, Side, TryError, View};
use crate::sync::{AtomicU32, AtomicU64, HINT, OBSERVE, PUBLISH};
use crate::word::{Phase, SPAN_MAX, Word};

/// Words of a message.
pub const WORDS: usize = 7;
/// Bytes of the header.
pub const HEADER_BYTES: usize = 512;
/// Bytes of a slot.
pub const SLOT_BYTES: usize = 64;
/// Rings have at most 2 to the power of this slots.
pub const CAPACITY_LOG2_MAX: u32 = 24;
const MAGIC: u64 = 0x0031_474e_4952_4a51;
const LAYOUT: u32 = 1;

/// A message: words that are not interpreted. The receiver must validate them.
pub type Message = [u64; WORDS];

/// The header of a ring in shared memory. The slots follow.
#[repr(C)]
pub struct Header {
    identity: Identity,
    claim: Hint,
    take: Hint,
    consumer_bell: BellLine,
    producer_bell: BellLine,
}

#[repr(C, align(128))]
struct Identity {
    magic: AtomicU64,
    layout: AtomicU32,
    capacity_log2: AtomicU32,
    kind: AtomicU32,
}

#[repr(C, align(128))]
struct Hint(AtomicU64);

#[repr(C, align(64))]
struct BellLine(Bell);

/// A slot in shared memory.
#[repr(C, align(64))]
pub struct RingSlot {
    state: AtomicU64,
    words: [AtomicU64; WORDS],
}

impl Memory for RingSlot {
    type Item = Message;
    const FAULT_MODEL: FaultModel = FaultModel::Processes;

    #[inline(always)]
    fn state(&self) -> &AtomicU64 {
        &self.state
    }

    // SAFETY: the caller keeps what the trait asks for.
    #[inline(always)]
    unsafe fn write(&self, item: Message) {
        for (word, value) in self.words.iter().zip(item) {
            // No partner: the state orders correct peers, and atomic access keeps faults of the others harmless.
            word.store(value, HINT);
        }
    }

    // SAFETY: the caller keeps what the trait asks for.
    #[inline(always)]
    unsafe fn read(&self) -> Message {
        // No partner: as in `write`.
        core::array::from_fn(|index| self.words[index].load(HINT))
    }
}

/// Bytes in which a ring can lie.
///
/// # Safety
/// The bytes stay readable and writable at the same address as long as the value lives, also when it is moved, and are
/// used for nothing but rings. A `Box` or a vector does not qualify: moving one asserts unique access to its bytes.
pub unsafe trait Bytes {
    /// Where they start.
    fn start(&self) -> *mut u8;
    /// How many there are.
    fn size(&self) -> usize;
}

/// Bytes that are kept alive by another owner, such as a mapping of the kernel.
#[derive(Debug)]
pub struct RawBytes {
    start: *mut u8,
    size: usize,
}

impl RawBytes {
    /// # Safety
    /// The bytes stay readable and writable as long as the value lives, and are used for nothing but rings.
    pub unsafe fn new(start: *mut u8, size: usize) -> RawBytes {
        RawBytes { start, size }
    }
}

// SAFETY: promised to `new`.
unsafe impl Bytes for RawBytes {
    fn start(&self) -> *mut u8 {
        self.start
    }
    fn size(&self) -> usize {
        self.size
    }
}

// SAFETY: the bytes are reached through atomics only.
unsafe impl Send for RawBytes {}
// SAFETY: as above.
unsafe impl Sync for RawBytes {}

/// Why memory cannot be attached to as the expected ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttachError {
    /// The memory is smaller than the ring, not aligned to 128 bytes, or the capacity is too large.
    Size,
    /// The header differs from what the caller expects.
    Header,
    /// The owner is 0.
    Owner,
}

impl core::fmt::Display for AttachError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            AttachError::Size => "the memory cannot hold a ring of this capacity",
            AttachError::Header => "the memory holds no ring of this capacity and kind",
            AttachError::Owner => "0 is not the number of an owner; owners are 1 to 255",
        })
    }
}

impl core::error::Error for AttachError {}

/// Bytes a ring of 2 to the power of `capacity_log2` slots needs: a multiple of 128, so that rings can follow each
/// other.
pub const fn bytes_needed(capacity_log2: u32) -> usize {
    (HEADER_BYTES + (SLOT_BYTES << capacity_log2)).next_multiple_of(128)
}

/// This process's view of a ring in shared memory. Its ends are made with [`Ring::producer`] and [`Ring::consumer`].
pub struct Ring<P, C, M> {
    view: View<RingSlot>,
    header: *const Header,
    owner: u8,
    memory: M,
    sides: PhantomData<(P, C)>,
}

// SAFETY: the memory is reached through atomics only; `memory` itself decides for itself.
unsafe impl<P, C, M: Send> Send for Ring<P, C, M> {}
// SAFETY: as above.
unsafe impl<P, C, M: Sync> Sync for Ring<P, C, M> {}

impl<P: Side, C: Side, M: Bytes> Ring<P, C, M> {
    /// The number that stands for this kind in the header.
    fn kind() -> u32 {
        let bit = |count| match count {
            Count::One => 0,
            Count::Many => 1,
        };
        bit(P::COUNT) | (bit(C::COUNT) << 1)
    }

    /// Writes the header into zeroed memory and attaches. Done once, by the process that created the memory.
    ///
    /// # Errors
    /// As [`Ring::attach`].
    pub fn create(memory: M, capacity_log2: u32, owner: u8) -> Result<Self, AttachError> {
        let header = Self::header_of(&memory, capacity_log2)?;
        // No partner: what the next store publishes.
        header.identity.layout.store(LAYOUT, HINT);
        header.identity.capacity_log2.store(capacity_log2, HINT);
        header.identity.kind.store(Self::kind(), HINT);
        // Pairs with OBSERVE in `attach`.
        header.identity.magic.store(MAGIC, PUBLISH);
        Self::attach(memory, capacity_log2, owner)
    }

    /// Attaches to a ring that a peer has created. Capacity and kind are what the caller expects; a header that differs
    /// is an error, and is not read again. `owner` is the number of this process on shared sides, 1 to 255: peers pass
    /// it to [`Ring::recover`] when this process has died.
    ///
    /// # Errors
    /// When the memory cannot hold the ring, or holds another one.
    pub fn attach(memory: M, capacity_log2: u32, owner: u8) -> Result<Self, AttachError> {
        if owner == 0 {
            return Err(AttachError::Owner);
        }
        let header = Self::header_of(&memory, capacity_log2)?;
        // Pairs with PUBLISH in `create`.
        if header.identity.magic.load(OBSERVE) != MAGIC
            || header.identity.layout.load(HINT) != LAYOUT
            || header.identity.capacity_log2.load(HINT) != capacity_log2
            || header.identity.kind.load(HINT) != Self::kind()
        {
            return Err(AttachError::Header);
        }
        let header: *const Header = header;
        // SAFETY: `header_of` has checked size and alignment; the slots follow the header; the memory lives as long as
        // the ring does, at the same address.
        let view = unsafe {
            let slots = memory.start().add(HEADER_BYTES).cast::<RingSlot>();
            View::new(slots, 1 << capacity_log2, &raw const (*header).claim.0, &raw const (*header).take.0)
        };
        Ok(Ring { view, header, owner, memory, sides: PhantomData })
    }

    fn header_of(memory: &M, capacity_log2: u32) -> Result<&Header, AttachError> {
        let start = memory.start();
        let is_large_enough = capacity_log2 <= CAPACITY_LOG2_MAX && memory.size() >= bytes_needed(capacity_log2);
        if !is_large_enough || !start.cast::<Header>().is_aligned() {
            return Err(AttachError::Size);
        }
        // SAFETY: 1. The bytes are there, says `Bytes`, and enough. 2. The header consists of atomics, for which any
        // bits are a value. 3. It is only ever reached through shared references.
        Ok(unsafe { &*start.cast::<Header>() })
    }

    fn header(&self) -> &Header {
        // SAFETY: checked by `attach`, and the memory is still there.
        unsafe { &*self.header }
    }

    /// The memory the ring lies in.
    pub fn memory(&self) -> &M {
        &self.memory
    }

    /// Armed by consumers that wait, rung by producers.
    pub fn consumer_bell(&self) -> &Bell {
        &self.header().consumer_bell.0
    }

    /// Armed by producers that wait, rung by consumers.
    pub fn producer_bell(&self) -> &Bell {
        &self.header().producer_bell.0
    }

    /// A producer of the ring behind `ring`. When the side is [`Single`](crate::Single), the caller is the only one, or
    /// takes the place of one that is dead: it continues after the last complete insert.
    ///
    /// # Errors
    /// When the slots hold what no correct peer writes.
    pub fn producer<R: core::ops::Deref<Target = Self>>(ring: R) -> Result<Producer<R>, TryError> {
        let position = match P::COUNT {
            Count::One => ring.resume_producer()?,
            Count::Many => 0,
        };
        let mut producer = Producer::at(ring);
        producer.local_mut().position = position;
        Ok(producer)
    }

    /// A consumer of the ring behind `ring`. When the side is [`Single`](crate::Single), the caller is the only one, or
    /// takes the place of one that is dead: it continues with the first message that was not given back.
    ///
    /// # Errors
    /// When the slots hold what no correct peer writes.
    pub fn consumer<R: core::ops::Deref<Target = Self>>(ring: R) -> Result<Consumer<R>, TryError> {
        let position = match C::COUNT {
            Count::One => ring.first()?,
            Count::Many => 0,
        };
        let mut consumer = Consumer::at(ring);
        consumer.local_mut().position = position;
        Ok(consumer)
    }

    /// The slots hold the positions `first .. first + capacity`; `first` is the next to be consumed. Laps are counted
    /// from the one of slot 0, because they wrap around.
    fn first(&self) -> Result<u64, TryError> {
        let view = &self.view;
        let start = view.state(0).lap();
        let (mut lowest, mut highest) = (i64::MAX, i64::MIN);
        for index in 0..=view.mask {
            let found = view.state(index);
            let ahead = found.ahead_of(start);
            if found.phase().is_none() || !(-2..=2).contains(&ahead) {
                return Err(TryError::Broken);
            }
            let position = (ahead << view.shift) + index as i64;
            (lowest, highest) = (lowest.min(position), highest.max(position));
        }
        // The live side advances during this scan, by less than two rings.
        if highest - lowest > 2 * view.mask as i64 + 1 {
            return Err(TryError::Broken);
        }
        Ok((start << view.shift).wrapping_add(lowest as u64))
    }

    fn resume_producer(&self) -> Result<u64, TryError> {
        let view = &self.view;
        let mut next = self.first()?;
        // The first position whose slot is free. The consumer frees slots meanwhile, but only behind that one, or that
        // one when the ring was full; so going up from a position that was not free finds it.
        for _ in 0..=2 * view.mask + 1 {
            let found = view.state(next);
            if found == view.idle(next, Phase::Free) || found.ahead_of(view.lap(next)) < 0 {
                break;
            }
            next = next.wrapping_add(1);
        }
        // What the dead producer published of an insert whose first slot it did not reach.
        for offset in 1..=view.mask {
            let position = next.wrapping_add(offset);
            if view.state(position) == view.idle(position, Phase::Full) {
                // Pairs with OBSERVE in `View::state`; consumers have not read here, for `next` is free.
                view.slot(position).state().store(view.idle(position, Phase::Free).0, PUBLISH);
            }
        }
        Ok(next)
    }

    /// Recovers the slots that the dead `owner` of a shared side has held. Its unfinished inserts are skipped by the
    /// consumers; `each` gets every message it had taken and not given back, which the caller thereby takes over. Any
    /// end may call this, several at once too. The owner must be dead, and its number not be assigned again before.
    pub fn recover(&self, owner: u8, mut each: impl FnMut(Message)) {
        let view = &self.view;
        for index in 0..=view.mask {
            let found = view.state(index);
            let (lap, first) = (found.lap(), (found.lap() << view.shift).wrapping_add(index));
            if found.owner() != owner {
                continue;
            }
            match found.phase() {
                Some(Phase::Busy) => {
                    // The last first, as when publishing: no consumer passes the first before all are void.
                    for offset in (1..found.span()).rev() {
                        let position = first.wrapping_add(offset);
                        let inner = view.state(position);
                        if inner == view.idle(position, Phase::Free) || inner == view.idle(position, Phase::Full) {
                            view.compare_exchange(position, inner, view.idle(position, Phase::Void));
                        }
                    }
                    view.compare_exchange(first, found, Word::idle(lap, Phase::Void));
                }
                Some(Phase::Taken) => {
                    if view.compare_exchange(first, found, Word::held(lap, self.owner, 1, Phase::Taken)) {
                        // SAFETY: the mark in the slot is ours: acquired, and read once.
                        each(unsafe { view.read(first) });
                        view.give_back_one(first);
                    }
                }
                Some(Phase::Free | Phase::Full | Phase::Void) | None => {}
            }
        }
    }
}

impl<P, C, M> core::fmt::Debug for Ring<P, C, M> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Ring").field("slots", &(self.view.mask + 1)).field("owner", &self.owner).finish_non_exhaustive()
    }
}

/// The private state of an end. On separate cache lines: an end is written at every operation.
#[derive(Clone)]
#[repr(align(128))]
pub struct RingEnd {
    view: View<RingSlot>,
    position: u64,
    owner: u8,
}

impl<P, C, M> Sealed for Ring<P, C, M> {}

impl<P: Side, C: Side, M: Bytes> Queue for Ring<P, C, M> {
    type Item = Message;
    type Producers = P;
    type Consumers = C;
    type ProducerLocal = RingEnd;
    type ConsumerLocal = RingEnd;

    fn producer(&self) -> RingEnd {
        RingEnd { view: self.view, position: 0, owner: self.owner }
    }

    fn consumer(&self) -> RingEnd {
        RingEnd { view: self.view, position: 0, owner: self.owner }
    }

    fn ends(&self) -> Option<&Ends> {
        None
    }

    fn max_insert(&self) -> usize {
        SPAN_MAX.min(self.view.mask + 1) as usize
    }

    #[inline(always)]
    fn claim(local: &mut RingEnd, count: u64) -> Result<Run, TryError> {
        local.view.claim::<P, C>(&mut local.position, local.owner, count)
    }

    // SAFETY: the caller keeps what the trait asks for.
    #[inline(always)]
    unsafe fn write(local: &RingEnd, position: u64, item: Message) {
        // SAFETY: claimed, says the caller.
        unsafe { local.view.write(position, item) };
    }

    // SAFETY: the caller keeps what the trait asks for.
    #[inline(always)]
    unsafe fn publish(local: &mut RingEnd, run: Run) {
        // SAFETY: claimed and written, says the caller.
        unsafe { local.view.publish(run) };
    }

    #[inline(always)]
    fn acquire(local: &mut RingEnd, wanted: u64) -> Result<Run, TryError> {
        local.view.acquire::<P, C>(&mut local.position, local.owner, wanted)
    }

    // SAFETY: the caller keeps what the trait asks for.
    #[inline(always)]
    unsafe fn read(local: &RingEnd, position: u64) -> Message {
        // SAFETY: acquired, says the caller, and read once.
        unsafe { local.view.read(position) }
    }

    // SAFETY: the caller keeps what the trait asks for.
    #[inline(always)]
    unsafe fn give_back(local: &mut RingEnd, run: Run) {
        // SAFETY: acquired and read, says the caller.
        unsafe { local.view.give_back(run) };
    }
}

/// Offsets of the layout, for the test that compares it with the C header.
pub mod layout {
    use super::{Header, RingSlot};
    use core::mem::offset_of;

    /// Name and value, in the order of the header file.
    pub const OFFSETS: &[(&str, usize)] = &[
        ("header", size_of::<Header>()),
        ("header alignment", align_of::<Header>()),
        ("magic", offset_of!(Header, identity.magic)),
        ("layout", offset_of!(Header, identity.layout)),
        ("capacity_log2", offset_of!(Header, identity.capacity_log2)),
        ("kind", offset_of!(Header, identity.kind)),
        ("claim", offset_of!(Header, claim)),
        ("take", offset_of!(Header, take)),
        ("consumer_bell", offset_of!(Header, consumer_bell)),
        ("producer_bell", offset_of!(Header, producer_bell)),
        ("slot", size_of::<RingSlot>()),
        ("slot alignment", align_of::<RingSlot>()),
        ("state", offset_of!(RingSlot, state)),
        ("words", offset_of!(RingSlot, words)),
    ];
}
