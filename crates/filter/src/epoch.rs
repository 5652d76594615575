//! When what readers may still look at can be used again. Readers say at which epoch they began; what was taken away at
//! an epoch is free once every reader that has begun has begun later. Knows nothing of what is taken away.
//!
//! ```text
//! writer   unlink ── fence ── tag = epoch, epoch + 1 ............ fence ── every pinned reader > tag? ── use again
//! reader            pin: slot = epoch ── fence ── look ── ... ── unpin: slot = 0
//! ```

use super::sync::{Arc, AtomicU64, BARRIER, ENTER, LEAVE, Mutex, OBSERVE, Ordering, fence};
use std::collections::VecDeque;
use std::sync::PoisonError;

/// What a reader says: the epoch it is pinned at, or zero. On cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Pin(AtomicU64);

impl Pin {
    /// From here until [`Pin::leave`] nothing that can be reached is used again.
    #[inline]
    pub(crate) fn enter(&self, epochs: &Epochs) {
        // Pairs with the increment in `tag`: an epoch that is seen here was begun after things were unlinked.
        let epoch = epochs.current.load(OBSERVE);
        // Pairs with the acquire in `oldest`: who sees this pin knows that what was looked at under the one before has
        // been looked at.
        self.0.store(epoch, ENTER);
        // Pairs with the fence in `oldest`: either the writer sees this pin, or what is loaded after it is new.
        fence(BARRIER);
    }

    /// Nothing that was reached is looked at any more.
    #[inline]
    pub(crate) fn leave(&self) {
        // Pairs with the acquire in `oldest`: what was looked at has been looked at before.
        self.0.store(0, LEAVE);
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
        // A pin that only this list knows belongs to a reader that has gone.
        pins.retain(|pin| Arc::strong_count(pin) > 1);
        pins.push(Arc::clone(&pin));
        pin
    }

    /// Begins an epoch; the tag of what was unlinked before.
    pub(crate) fn tag(&self) -> u64 {
        self.current.fetch_add(1, Ordering::AcqRel)
    }

    /// What has a tag below this one is not looked at any more.
    pub(crate) fn oldest(&self) -> u64 {
        // Pairs with the fence in `enter`.
        fence(BARRIER);
        let pins = self.pins.lock().unwrap_or_else(PoisonError::into_inner);
        let epochs = pins.iter().map(|pin| pin.0.load(OBSERVE));
        epochs.filter(|epoch| *epoch != 0).min().unwrap_or(u64::MAX)
    }
}

/// Things that are dropped when nobody looks at them any more, oldest first.
#[derive(Debug)]
pub(crate) struct Limbo<T>(VecDeque<(u64, T)>);

impl<T> Default for Limbo<T> {
    fn default() -> Self {
        Limbo(VecDeque::new())
    }
}

impl<T> Limbo<T> {
    /// Keeps something that has been unlinked.
    pub(crate) fn push(&mut self, epochs: &Epochs, thing: T) {
        self.0.push_back((epochs.tag(), thing));
    }

    /// The next thing that nobody looks at any more, given what [`Epochs::oldest`] said.
    pub(crate) fn pop(&mut self, oldest: u64) -> Option<T> {
        self.0.pop_front_if(|(tag, _)| *tag < oldest).map(|(_, thing)| thing)
    }

    /// Everything, looked at or not.
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
