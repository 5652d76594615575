//! Classifiers: one writer at a time changes the filters, readers classify and never wait.
//!
//! ```text
//! current ──> snapshot ──> chunks ──> stages ──> table of a group
//!                            └─ code     └───────────┘ addresses are constants in the code
//! ```
//!
//! A filter of a known shape is inserted by a store to a table; a new shape needs new code for its chunk and a new
//! snapshot. Replaced objects are kept until all readers that were pinned have been unpinned.

use crate::chunk_code::ChunkCode;
use crate::epoch::Pin;
use crate::error::Error;
use crate::ir::Filter;
use crate::packet::Packet;
use crate::published::Published;
use crate::stage::{Scratch, Snapshot, Wanted};
use crate::types::{Classify, Engine, Id, Match, Stats};
use crate::writer::Writer;
use quaject_vcode::fork::ForkLock;
use std::fmt;
use std::marker::PhantomData;
use std::ptr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

/// The state that a classifier and its readers share.
struct Shared {
    published: Published,
    writer: Mutex<Writer>,
}

/// Many filters as one.
///
/// ```
/// use quaject_filter::{Classifier, Packet, Scope};
///
/// let ethernet = Scope::packet();
/// let ip = ethernet.skip(14);
/// let to_port = |port| {
///     (ethernet.equals(12, 2, 0x0800) & ip.equals(9, 1, 6) & ip.after_ipv4().equals(2, 2, port)).filter()
/// };
/// let classifier = Classifier::new();
/// let web = classifier.insert(&to_port(80)?, 0)?;
/// let mail = classifier.insert(&to_port(25)?, 0)?;
///
/// let mut packet = [0; 54];
/// packet[12] = 8;
/// packet[14] = 0x45;
/// packet[23] = 6;
/// packet[37] = 25;
/// let mut reader = classifier.reader();
/// assert_eq!(reader.pin().classify(Packet::new(&packet)).id(), Some(mail));
/// classifier.remove(mail)?;
/// assert_eq!(reader.pin().classify(Packet::new(&packet)).id(), None);
/// # Ok::<(), quaject_filter::Error>(())
/// ```
///
/// A forked child has a copy of the classifier and its readers, which it changes independently of its parent (see
/// [`quaject_vcode::fork`]). A reader that another thread had pinned at the fork is not pinned in the child, which does
/// not have that thread.
#[derive(Clone)]
pub struct Classifier {
    shared: Arc<Shared>,
}

impl Default for Classifier {
    fn default() -> Self {
        Classifier::new()
    }
}

impl fmt::Debug for Classifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Classifier").field("stats", &self.stats()).finish()
    }
}

impl Classifier {
    /// A classifier without filters.
    pub fn new() -> Classifier {
        Classifier::with_engine(Engine::Code)
    }

    /// A classifier without filters that classifies in a certain way.
    pub fn with_engine(engine: Engine) -> Classifier {
        Classifier { shared: Arc::new(Shared { published: Published::new(), writer: Mutex::new(Writer::new(engine)) }) }
    }

    /// Changes the filters. A fork by another thread waits meanwhile, so that the child finds the lock free.
    fn change<R>(&self, change: impl FnOnce(&mut Writer, &Published) -> R) -> R {
        let _fork = ForkLock::hold();
        change(&mut self.shared.writer.lock().unwrap_or_else(PoisonError::into_inner), &self.shared.published)
    }

    /// Adds a filter. Of several filters that match a packet, the one with the highest priority is its match; among
    /// equal ones the one with the smallest number. When this returns, every classification that begins sees the
    /// filter; its alternatives become visible one by one before.
    ///
    /// # Errors
    /// [`Error::Full`] at 2^32 - 1 filters; [`Error::Width`] for a field of a width that loads do not have;
    /// [`Error::Shift`] for a base that is shifted by more than 31 bits.
    pub fn insert(&self, filter: &Filter, priority: u32) -> Result<Id, Error> {
        self.change(|writer, published| writer.insert(published, filter, priority))
    }

    /// Adds many filters with their priorities; their tables are built once.
    ///
    /// # Errors
    /// Those of [`Classifier::insert`]; nothing has been added then.
    pub fn insert_all<'f>(&self, filters: impl IntoIterator<Item = (&'f Filter, u32)>) -> Result<Vec<Id>, Error> {
        self.change(|writer, published| writer.insert_all(published, filters.into_iter()))
    }

    /// Removes a filter. When this returns, no classification that begins finds it.
    ///
    /// # Errors
    /// [`Error::Unknown`] if there is none of this number.
    pub fn remove(&self, id: Id) -> Result<(), Error> {
        self.change(|writer, published| writer.remove(published, id))
    }

    /// A reader: one for each thread that classifies.
    pub fn reader(&self) -> Reader {
        let _fork = ForkLock::hold();
        Reader {
            pin: self.shared.published.epochs.register(),
            shared: Arc::clone(&self.shared),
            scratch: Scratch::default(),
        }
    }

    /// Counts of filters, groups, chunks and bytes.
    pub fn stats(&self) -> Stats {
        self.change(|writer, published| writer.stats(published))
    }

    /// How packets are classified: groups with what is compared and hashed, and the generated code.
    pub fn explain(&self) -> String {
        self.change(|writer, _| writer.explain())
    }
}

/// Classifies packets on one thread.
pub struct Reader {
    shared: Arc<Shared>,
    pin: Arc<Pin>,
    scratch: Scratch,
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").finish_non_exhaustive()
    }
}

impl Reader {
    /// Begins to classify: as long as the view lives, memory that was replaced is not reused. Take one for each burst
    /// of packets, and none across a wait.
    #[inline]
    pub fn pin(&mut self) -> View<'_> {
        self.pin.enter(&self.shared.published.epochs);
        self.view()
    }

    /// The view of a reader that is pinned already. Dropping it unpins the reader.
    #[inline]
    pub(crate) fn view(&mut self) -> View<'_> {
        View { shared: &self.shared, pin: &self.pin, scratch: &mut self.scratch, not_send: PhantomData }
    }

    /// Whether the reader is pinned.
    #[cfg(feature = "c")]
    pub(crate) fn is_pinned(&self) -> bool {
        self.pin.is_pinned()
    }

    /// Classifies one packet by itself. For many, [`Reader::pin`] once.
    pub fn classify(&mut self, packet: Packet<'_>) -> Match {
        self.pin().classify(packet)
    }
}

/// The current filters, which may change while the view is used.
///
/// The answer is a filter that was in the classifier at some moment of the call, and no matching filter that was there
/// during the whole call is better.
pub struct View<'r> {
    shared: &'r Shared,
    pin: &'r Pin,
    scratch: &'r mut Scratch,
    /// In a forked child, no pin of another thread than the forking one holds.
    not_send: PhantomData<*const ()>,
}

impl fmt::Debug for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("View").finish_non_exhaustive()
    }
}

impl Drop for View<'_> {
    #[inline]
    fn drop(&mut self) {
        self.pin.leave();
    }
}

impl View<'_> {
    #[inline]
    fn snapshot(&self) -> &Snapshot {
        // SAFETY: this reader is pinned as long as the view lives.
        unsafe { self.shared.published.snapshot() }
    }

    /// The best filter that matches a packet.
    #[inline]
    pub fn classify(&self, packet: Packet<'_>) -> Match {
        let entry = self.shared.published.entry();
        if !entry.is_null() {
            // SAFETY: 1. What is not null is code of this type. 2. As `Chunk::classify`: this reader is pinned.
            let best = unsafe {
                let code = std::mem::transmute::<*mut (), Classify>(entry);
                code(packet.data, packet.length.into(), packet.wire_length.into(), 0)
            };
            return Match(best);
        }
        self.classify_by_chunks(packet.data(), packet.wire_length())
    }

    /// Takes the parts of the packet by value: a reference would force it to memory in every loop around
    /// [`View::classify`].
    fn classify_by_chunks(&self, data: &[u8], wire_length: u32) -> Match {
        let packet = Packet::captured(data, wire_length);
        let mut best = 0;
        for chunk in &self.snapshot().chunks {
            // SAFETY: this reader is pinned.
            best = unsafe { chunk.classify(packet, best) };
            // Raised before better ranks are published.
            if best >= chunk.after.load(Ordering::Acquire) {
                break;
            }
        }
        Match(best)
    }

    /// Writes the best filter of each packet to `matches`.
    ///
    /// # Panics
    /// If there are more packets than places.
    pub fn classify_batch(&self, packets: &[Packet<'_>], matches: &mut [Match]) {
        let matches = &mut matches[..packets.len()];
        let snapshot = self.snapshot();
        // A rank that no later chunk exceeds.
        let mut enough = u64::MAX;
        for (at, chunk) in snapshot.chunks.iter().enumerate() {
            if at == 0
                && chunk.tree().is_none()
                && let Some(many) = chunk.code.as_ref().and_then(ChunkCode::batch)
            {
                // SAFETY: 1. As `Chunk::classify`. 2. There are as many packets and places as is said, and `Match` is a
                // word.
                unsafe { many(packets.as_ptr().cast(), packets.len() as u64, ptr::from_mut(matches).cast()) };
                enough = chunk.after.load(Ordering::Acquire);
                continue;
            }
            if at == 0 {
                matches.fill(Match::NONE);
            }
            // SAFETY: this reader is pinned.
            unsafe { chunk.classify_batch(packets, matches, enough) };
            // Raised before better ranks are published.
            enough = chunk.after.load(Ordering::Acquire);
        }
        if snapshot.chunks.is_empty() {
            matches.fill(Match::NONE);
        }
    }

    /// All filters that match a packet, the best first.
    pub fn matches(&mut self, packet: Packet<'_>, all: &mut Vec<Match>) {
        all.clear();
        let mut scratch = std::mem::take(self.scratch);
        for stage in self.snapshot().chunks.iter().flat_map(|chunk| &chunk.stages) {
            // SAFETY: this reader is pinned.
            unsafe { stage.ranks(packet, &mut scratch, Wanted::All, &mut |rank| all.push(Match(rank))) };
        }
        *self.scratch = scratch;
        all.sort_unstable_by_key(|found| std::cmp::Reverse(found.0));
        all.dedup();
    }
}
