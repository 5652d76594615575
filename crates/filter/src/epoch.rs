//! Epoch-based reclamation (Fraser, "Practical lock-freedom", 2004): memory that readers may still use is kept in
//! limbo. A reader publishes the epoch at which it was pinned; what was unlinked at an epoch may be reused once every
//! pinned reader was pinned later. Knows nothing of what is reclaimed.
//!
//! ```text
//! writer   unlink ── fence ── tag = epoch, epoch + 1 ............ fence ── every pinned reader > tag? ── reuse
//! reader            pin: slot = epoch ── fence ── read ── ... ── unpin: slot = 0
//! ```

use super::sync::{ADVANCE, Arc, AtomicU64, BARRIER, GIVE_BACK, MARK, Mutex, OBSERVE, OWN, fence, this_thread};
use std::collections::VecDeque;
use std::sync::PoisonError;

/// The epoch at which a reader is pinned, or zero; and the thread that has pinned it last. On cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Pin(AtomicU64, AtomicU64);

impl Pin {
    /// Pins the reader: until [`Pin::leave`], no reachable object is reclaimed.
    #[inline]
    pub(crate) fn enter(&self, epochs: &Epochs) {
        // Pairs with the increment in `advance`: an epoch that is seen here began after the objects of earlier ones
        // were unlinked.
        let epoch = epochs.current.load(OBSERVE);
        // No partner: read in a forked child only, by its one thread.
        self.1.store(this_thread(), OWN);
        // Pairs with the acquire in `oldest`: a writer that sees this pin sees the reads under the one before as
        // complete.
        self.0.store(epoch, ADVANCE);
        // Pairs with the fence in `oldest`: either the writer sees this pin, or loads after it see the new objects.
        fence(BARRIER);
    }

    /// Whether the reader is pinned. Asked by the reader itself.
    #[cfg(feature = "c")]
    pub(crate) fn is_pinned(&self) -> bool {
        // No partner: only the reader writes it, and the handler of a fork.
        self.0.load(OWN) != 0
    }

    /// Unpins the reader: it holds no reference any more.
    #[inline]
    pub(crate) fn leave(&self) {
        // Pairs with the acquire in `oldest`: all reads are complete before.
        self.0.store(0, GIVE_BACK);
    }
}

/// The epochs of a classifier.
#[derive(Debug)]
pub(crate) struct Epochs {
    current: AtomicU64,
    pins: Mutex<Vec<Arc<Pin>>>,
}

impl Epochs {
    pub(crate) fn new() -> Epochs {
        Epochs { current: AtomicU64::new(1), pins: Mutex::new(Vec::new()) }
    }

    /// A new reader.
    pub(crate) fn register(&self) -> Arc<Pin> {
        let pin = Arc::new(Pin::default());
        let mut pins = self.pins.lock().unwrap_or_else(PoisonError::into_inner);
        // A pin that only this list references belongs to a dropped reader.
        pins.retain(|pin| Arc::strong_count(pin) > 1);
        pins.push(Arc::clone(&pin));
        pin
    }

    /// In a forked child: unpins the readers of all threads but the calling one, which the child does not have.
    #[cfg(target_os = "linux")]
    pub(crate) fn unpin_other_threads(&self) {
        let pins = self.pins.lock().unwrap_or_else(PoisonError::into_inner);
        for pin in pins.iter().filter(|pin| pin.1.load(OWN) != this_thread()) {
            pin.leave();
        }
    }

    /// Begins an epoch; returns the tag of objects unlinked before.
    pub(crate) fn advance(&self) -> u64 {
        self.current.fetch_add(1, MARK)
    }

    /// Objects with a tag below this one are not used any more.
    pub(crate) fn oldest(&self) -> u64 {
        // Pairs with the fence in `enter`.
        fence(BARRIER);
        let pins = self.pins.lock().unwrap_or_else(PoisonError::into_inner);
        let epochs = pins.iter().map(|pin| pin.0.load(OBSERVE));
        epochs.filter(|epoch| *epoch != 0).min().unwrap_or(u64::MAX)
    }
}

/// Retired objects, oldest first, which are dropped when no reader uses them any more.
#[derive(Debug)]
pub(crate) struct Limbo<T>(VecDeque<(u64, T)>);

impl<T> Default for Limbo<T> {
    fn default() -> Self {
        Limbo(VecDeque::new())
    }
}

impl<T> Limbo<T> {
    /// Keeps an object that has been unlinked.
    pub(crate) fn push(&mut self, epochs: &Epochs, thing: T) {
        self.0.push_back((epochs.advance(), thing));
    }

    /// The next object that no reader uses any more, by what [`Epochs::oldest`] returned.
    pub(crate) fn pop(&mut self, oldest: u64) -> Option<T> {
        self.0.pop_front_if(|(tag, _)| *tag < oldest).map(|(_, thing)| thing)
    }

    /// All objects, in use or not.
    pub(crate) fn into_all(self) -> impl Iterator<Item = T> {
        self.0.into_iter().map(|(_, thing)| thing)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}
