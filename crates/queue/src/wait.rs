//! Blocking operations: an operation is repeated until it succeeds, with a pause of the caller's choice between two
//! attempts. Uses a queue only through its ends.

use core::ops::{ControlFlow, Deref};
use core::time::Duration;

use crate::ends::{Consumer, Producer, Queue, TryPushError};
use crate::slots::TryError;

/// What to do between two attempts. Closures are strategies too: a task of a scheduler yields in one.
pub trait Wait {
    /// Called after the attempt number `turn`, from 0, has failed. `Break` gives up.
    fn pause(&mut self, turn: u32) -> ControlFlow<()>;

    /// The same, by a caller that has a time limit: a strategy that sleeps wakes up after `limit` at the latest.
    fn pause_within(&mut self, turn: u32, limit: Duration) -> ControlFlow<()> {
        let _ = limit;
        self.pause(turn)
    }
}

impl<F: FnMut(u32) -> ControlFlow<()>> Wait for F {
    fn pause(&mut self, turn: u32) -> ControlFlow<()> {
        self(turn)
    }
}

/// Busy-waits. For waits shorter than a context switch, on a dedicated processor.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spin;

impl Wait for Spin {
    fn pause(&mut self, _turn: u32) -> ControlFlow<()> {
        core::hint::spin_loop();
        ControlFlow::Continue(())
    }
}

/// Spins a little, then gives up the processor each time. For more threads than processors.
#[cfg(all(feature = "std", not(target_os = "none")))]
#[derive(Clone, Copy, Debug, Default)]
pub struct Yield;

#[cfg(all(feature = "std", not(target_os = "none")))]
impl Wait for Yield {
    fn pause(&mut self, turn: u32) -> ControlFlow<()> {
        if turn < 16 {
            core::hint::spin_loop();
        } else {
            std::thread::yield_now();
        }
        ControlFlow::Continue(())
    }
}

/// The attempts before [`Futex`] sleeps for the first time.
#[cfg(all(feature = "std", not(target_os = "none")))]
const FIRST_SLEEP: u32 = 64;

/// Another strategy with a time limit.
#[cfg(all(feature = "std", not(target_os = "none")))]
#[derive(Clone, Copy, Debug)]
pub struct Until<W> {
    /// `None`: later than any time the clock can show.
    end: Option<std::time::Instant>,
    wait: W,
}

#[cfg(all(feature = "std", not(target_os = "none")))]
impl<W> Until<W> {
    /// `wait`, but no longer than `limit` from now on; a strategy that sleeps is woken by then. `Duration::MAX` is no
    /// limit.
    pub fn passed(limit: Duration, wait: W) -> Self {
        Until { end: std::time::Instant::now().checked_add(limit), wait }
    }

    /// The time that is left; none when it has passed.
    fn left(&self) -> Option<Duration> {
        let Some(end) = self.end else { return Some(Duration::MAX) };
        end.checked_duration_since(std::time::Instant::now()).filter(|left| !left.is_zero())
    }
}

#[cfg(all(feature = "std", not(target_os = "none")))]
impl<W: Wait> Wait for Until<W> {
    fn pause(&mut self, turn: u32) -> ControlFlow<()> {
        self.pause_within(turn, Duration::MAX)
    }

    fn pause_within(&mut self, turn: u32, limit: Duration) -> ControlFlow<()> {
        // Reading the clock costs more than a spin: it is read at every attempt only once attempts are slow. No
        // strategy of this crate sleeps before.
        if turn < FIRST_SLEEP && turn % 16 != 15 {
            return self.wait.pause_within(turn, limit);
        }
        let Some(left) = self.left() else { return ControlFlow::Break(()) };
        self.wait.pause_within(turn, limit.min(left))
    }
}

/// Sleeps at a [`Bell`](crate::Bell) that the other side rings with [`wake`], in this process or another. Sleeps no
/// longer than `nap` at a time, because a peer may die before it rings; `Until` limits each sleep and the sum.
#[cfg(all(feature = "std", target_os = "linux"))]
#[derive(Clone, Copy, Debug)]
pub struct Futex<'a> {
    bell: &'a crate::Bell,
    nap: Duration,
    armed: bool,
}

#[cfg(all(feature = "std", target_os = "linux"))]
impl<'a> Futex<'a> {
    /// Spins a little, then sleeps up to `nap` at a time. `Duration::MAX`: until the bell rings.
    pub fn new(bell: &'a crate::Bell, nap: Duration) -> Self {
        Futex { bell, nap, armed: false }
    }
}

#[cfg(all(feature = "std", target_os = "linux"))]
impl Wait for Futex<'_> {
    fn pause(&mut self, turn: u32) -> ControlFlow<()> {
        self.pause_within(turn, Duration::MAX)
    }

    fn pause_within(&mut self, turn: u32, limit: Duration) -> ControlFlow<()> {
        if turn < FIRST_SLEEP {
            core::hint::spin_loop();
        } else if !self.armed || !self.bell.is_armed() {
            // The attempt that follows is the one that makes it safe to sleep.
            self.bell.arm();
            self.armed = true;
        } else {
            sleep(self.bell, self.nap.min(limit));
        }
        ControlFlow::Continue(())
    }
}

/// Sleeps while the bell is armed, at most `nap`.
#[cfg(all(feature = "std", target_os = "linux"))]
fn sleep(bell: &crate::Bell, nap: Duration) {
    // More seconds than the kernel's type holds would be refused.
    let nap = nap.min(Duration::from_secs(i32::MAX as u64));
    let limit = libc::timespec { tv_sec: nap.as_secs() as _, tv_nsec: nap.subsec_nanos() as _ };
    // SAFETY: the word is alive and aligned, the time limit too. Any outcome is fine: the caller tries again.
    unsafe { libc::syscall(libc::SYS_futex, bell.0.as_ptr(), libc::FUTEX_WAIT, 1, &raw const limit) };
}

/// Wakes every thread that sleeps at the bell: `bell.ring(|| wake(bell))`.
#[cfg(all(feature = "std", target_os = "linux"))]
pub fn wake(bell: &crate::Bell) {
    // SAFETY: the word is alive and aligned.
    unsafe { libc::syscall(libc::SYS_futex, bell.0.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
}

/// Why a wait ended without success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitError {
    /// The strategy gave up while the operation failed with this.
    GaveUp(TryError),
    /// Every end of the other side was dropped.
    Disconnected,
    /// The shared memory holds what no correct peer writes.
    Broken,
}

impl core::fmt::Display for WaitError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            WaitError::GaveUp(error) => write!(f, "gave up waiting: {error}"),
            WaitError::Disconnected => f.write_str("every end of the other side was dropped"),
            WaitError::Broken => TryError::Broken.fmt(f),
        }
    }
}

impl core::error::Error for WaitError {}

/// What could not be inserted, and why the wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PushWaitError<T> {
    /// What the caller wanted to insert.
    pub item: T,
    /// Why the wait ended.
    pub error: WaitError,
}

impl<T> core::fmt::Display for PushWaitError<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.error.fmt(f)
    }
}

impl<T: core::fmt::Debug> core::error::Error for PushWaitError<T> {}

/// Pauses after a failed attempt; an error if the strategy gives up.
fn pause(wait: &mut impl Wait, turn: u32, error: TryError) -> Result<(), WaitError> {
    match error {
        TryError::Broken => Err(WaitError::Broken),
        TryError::NotReady | TryError::Held { .. } => match wait.pause(turn) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(WaitError::GaveUp(error)),
        },
    }
}

impl<R: Deref<Target: Queue>> Producer<R> {
    /// Inserts an item as soon as there is room.
    ///
    /// # Errors
    /// When the strategy gives up, every consumer was dropped, or the memory is broken; the item is returned.
    pub fn push_wait(
        &mut self,
        mut item: <R::Target as Queue>::Item,
        mut wait: impl Wait,
    ) -> Result<(), PushWaitError<<R::Target as Queue>::Item>> {
        let mut turn = 0;
        loop {
            let Err(TryPushError { item: back, error }) = self.push(item) else { return Ok(()) };
            let stop =
                if self.is_disconnected() { Err(WaitError::Disconnected) } else { pause(&mut wait, turn, error) };
            if let Err(error) = stop {
                return Err(PushWaitError { item: back, error });
            }
            (item, turn) = (back, turn.saturating_add(1));
        }
    }

    /// Inserts all items in neighbouring positions as soon as there is room for all.
    ///
    /// # Errors
    /// As [`Producer::push_wait`]; none is inserted.
    ///
    /// # Panics
    /// As [`Producer::push_slice`].
    pub fn push_slice_wait(
        &mut self,
        items: &[<R::Target as Queue>::Item],
        mut wait: impl Wait,
    ) -> Result<(), WaitError>
    where
        <R::Target as Queue>::Item: Copy,
    {
        let mut turn = 0;
        loop {
            let Err(error) = self.push_slice(items) else { return Ok(()) };
            if self.is_disconnected() {
                return Err(WaitError::Disconnected);
            }
            pause(&mut wait, turn, error)?;
            turn = turn.saturating_add(1);
        }
    }
}

impl<R: Deref<Target: Queue>> Consumer<R> {
    /// Takes the next item as soon as there is one.
    ///
    /// # Errors
    /// When the strategy gives up, the queue is empty and every producer was dropped, or the memory is broken.
    pub fn pop_wait(&mut self, mut wait: impl Wait) -> Result<<R::Target as Queue>::Item, WaitError> {
        let mut turn = 0;
        loop {
            let error = match self.pop() {
                Ok(item) => return Ok(item),
                Err(error) => error,
            };
            // The last producer may have pushed between the attempt and its drop: what it pushed is seen now.
            if self.is_disconnected() {
                return self.pop().map_err(|_| WaitError::Disconnected);
            }
            pause(&mut wait, turn, error)?;
            turn = turn.saturating_add(1);
        }
    }
}
