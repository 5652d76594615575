//! Classifiers: one writer at a time changes the filters, readers classify and never wait.
//!
//! ```text
//! current ──> snapshot ──> chunks ──> stages ──> table of a group
//!                            └─ code     └───────────┘ addresses are constants in the code
//! ```
//!
//! A known shape is a word in a table; a new shape is new code for its chunk and a new snapshot. What was replaced is
//! kept until every reader that was pinned has left.

use crate::epoch::{Epochs, Pin};
use crate::error::Error;
use crate::ir::Filter;
use crate::packet::Packet;
use crate::stage::{Scratch, Snapshot, Wanted};
use crate::writer::Writer;
use std::fmt;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The number of a filter in its classifier. Numbers are given in order; those of removed filters are given again.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Id(pub(crate) u32);

impl Id {
    /// The number.
    pub fn number(self) -> u32 {
        self.0
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// What a packet was classified as: the filter that matches it with the best priority, or none.
///
/// The rank in one word: priority above, complement of the number below, so that a higher priority is better, and of
/// equal ones the filter with the smaller number.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
#[repr(transparent)]
pub struct Match(pub(crate) u64);

impl Match {
    /// No filter matches.
    pub const NONE: Match = Match(0);

    pub(crate) const fn rank(priority: u32, id: u32) -> u64 {
        (priority as u64) << 32 | !id as u64
    }

    /// The filter.
    #[inline]
    pub fn id(self) -> Option<Id> {
        if self.0 == 0 { None } else { Some(Id(!(self.0 as u32))) }
    }

    /// Its priority.
    #[inline]
    pub fn priority(self) -> Option<u32> {
        if self.0 == 0 { None } else { Some((self.0 >> 32) as u32) }
    }
}

impl fmt::Debug for Match {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.id(), self.priority()) {
            (Some(id), Some(priority)) => write!(f, "Match({id}, priority {priority})"),
            _ => write!(f, "Match(none)"),
        }
    }
}

/// Who classifies.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Engine {
    /// Generated code where it can be generated, else the interpreter.
    #[default]
    Code,
    /// The interpreter.
    Interpreter,
}

/// What is shared by writer and readers.
pub(crate) struct Shared {
    current: AtomicPtr<Snapshot>,
    /// The code of the snapshot's only chunk, if that is all there is to do; else null.
    entry: AtomicPtr<()>,
    pub(crate) epochs: Epochs,
    writer: Mutex<Writer>,
}

impl Shared {
    /// Shows readers another snapshot; the old one, which they may still look at.
    pub(crate) fn replace(&self, snapshot: Snapshot) -> Box<Snapshot> {
        let entry = snapshot.entry();
        let new = Box::into_raw(Box::new(snapshot));
        // Pairs with the acquire in `View::snapshot`: everything in the snapshot is written before it is shown.
        let old = self.current.swap(new, Ordering::AcqRel);
        // Pairs with the acquire in `View::classify`. What was there before is in the old snapshot and kept with it.
        self.entry.store(entry, Ordering::Release);
        // SAFETY: pointers in `current` come from `Box::into_raw`, and this one has just been taken out.
        unsafe { Box::from_raw(old) }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: pointers in `current` come from `Box::into_raw`; no reader is left, because readers share this.
        drop(unsafe { Box::from_raw(*self.current.get_mut()) });
    }
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
        Classifier {
            shared: Arc::new(Shared {
                current: AtomicPtr::new(Box::into_raw(Box::default())),
                entry: AtomicPtr::new(ptr::null_mut()),
                epochs: Epochs::new(),
                writer: Mutex::new(Writer::new(engine)),
            }),
        }
    }

    fn writer(&self) -> MutexGuard<'_, Writer> {
        self.shared.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a filter. Of several that match a packet the one with the highest priority has it; among equals the one
    /// with the smaller number. When this returns, every classification that begins sees the filter; its alternatives
    /// become visible one by one before.
    ///
    /// # Errors
    /// [`Error::Full`] at 2^32 - 1 filters; [`Error::Width`] for a field of a width that loads do not have; [`Error::Shift`] for
    /// a base that is shifted by more than 31 bits.
    pub fn insert(&self, filter: &Filter, priority: u32) -> Result<Id, Error> {
        self.writer().insert(&self.shared, filter, priority)
    }

    /// Adds many filters with their priorities; their tables are built once.
    ///
    /// # Errors
    /// Those of [`Classifier::insert`]; nothing has been added then.
    pub fn insert_all<'f>(&self, filters: impl IntoIterator<Item = (&'f Filter, u32)>) -> Result<Vec<Id>, Error> {
        self.writer().insert_all(&self.shared, filters.into_iter())
    }

    /// Removes a filter. When this returns, no classification that begins finds it.
    ///
    /// # Errors
    /// [`Error::Unknown`] if there is none of this number.
    pub fn remove(&self, id: Id) -> Result<(), Error> {
        self.writer().remove(&self.shared, id)
    }

    /// A reader: one for each thread that classifies.
    pub fn reader(&self) -> Reader {
        Reader { pin: self.shared.epochs.register(), shared: Arc::clone(&self.shared), scratch: Scratch::default() }
    }

    /// What there is, in numbers.
    pub fn stats(&self) -> Stats {
        self.writer().stats(&self.shared)
    }

    /// How packets are classified: groups with what is compared and hashed, and the generated code.
    pub fn explain(&self) -> String {
        self.writer().explain()
    }
}

/// What a classifier holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// Filters.
    pub filters: usize,
    /// Groups of filters, or parts of filters, of one shape.
    pub groups: usize,
    /// Filters that are programs, run one by one.
    pub programs: usize,
    /// Pieces in which code is generated.
    pub chunks: usize,
    /// How many of them are interpreted, because no code could be generated.
    pub interpreted: usize,
    /// Bytes of generated code.
    pub code_bytes: usize,
    /// Bytes of tables.
    pub table_bytes: usize,
    /// How often code has been generated.
    pub generations: u64,
    /// Things that are kept for readers that may still look at them.
    pub waiting: usize,
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
    /// Begins to classify: as long as the view lives, nothing that was replaced is used again. So take one for each
    /// burst of packets, and none across a wait.
    #[inline]
    pub fn pin(&mut self) -> View<'_> {
        self.pin.enter(&self.shared.epochs);
        self.view()
    }

    /// What a reader that is pinned already sees; it is no longer pinned when this is dropped.
    #[inline]
    pub(crate) fn view(&mut self) -> View<'_> {
        View { shared: &self.shared, pin: &self.pin, scratch: &mut self.scratch }
    }

    /// Classifies one packet by itself. For many, [`Reader::pin`] once.
    pub fn classify(&mut self, packet: Packet<'_>) -> Match {
        self.pin().classify(packet)
    }
}

/// The filters, as they are now and change while they are looked at.
///
/// An answer is a filter that was there at some moment of the call, and none that was there all the time and matches is
/// better.
pub struct View<'r> {
    shared: &'r Shared,
    pin: &'r Pin,
    scratch: &'r mut Scratch,
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
        // Pairs with the release in `Shared::replace`.
        let snapshot = self.shared.current.load(Ordering::Acquire);
        // SAFETY: this reader is pinned, so the snapshot is dropped after the view at the earliest.
        unsafe { &*snapshot }
    }

    /// The filter that has a packet.
    #[inline]
    pub fn classify(&self, packet: Packet<'_>) -> Match {
        #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
        {
            // Pairs with the release in `Shared::replace`.
            let entry = self.shared.entry.load(Ordering::Acquire);
            if !entry.is_null() {
                // SAFETY: 1. What is not null is code of this type. 2. As `Chunk::classify`: this reader is pinned.
                let best = unsafe {
                    let code = std::mem::transmute::<*mut (), crate::emit::Classify>(entry);
                    code(packet.data, packet.length.into(), packet.wire_length.into(), 0)
                };
                return Match(best);
            }
        }
        self.classify_by_chunks(packet.data(), packet.wire_length())
    }

    /// Takes the packet in parts: a reference to it would have it in memory in every loop around [`View::classify`].
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

    /// The filters that have these packets, written to as many places.
    ///
    /// # Panics
    /// If there are more packets than places.
    pub fn classify_batch(&self, packets: &[Packet<'_>], matches: &mut [Match]) {
        let matches = &mut matches[..packets.len()];
        let snapshot = self.snapshot();
        // So good that no later chunk has better.
        let mut enough = u64::MAX;
        for (at, chunk) in snapshot.chunks.iter().enumerate() {
            #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
            if at == 0
                && chunk.tree().is_none()
                && let Some(many) = chunk.code.as_ref().and_then(|code| code.many)
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
