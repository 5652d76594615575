//! Waits for events on many descriptors. A list of descriptors that stay open becomes, after several equal waits, a set
//! that the kernel keeps (epoll): the cost of a wait is then proportional to the number of events, not of descriptors.
//! Any other list is passed to `poll`. Knows no driver.
//!
//! Putting a thread to sleep and waking it costs both sides more than a short response takes. After several short waits
//! the next one polls for [`SPIN_TIME`] before it sleeps (adaptive spinning); a program whose waits are long never
//! polls.

#[cfg(target_os = "linux")]
mod epoll;
#[cfg(not(target_os = "linux"))]
mod poll_only;

use crate::system::timespec;
#[cfg(target_os = "linux")]
use epoll::DescriptorSet;
#[cfg(not(target_os = "linux"))]
use poll_only::DescriptorSet;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsRawFd, BorrowedFd, RawFd};
use rustix::io::Errno;
use std::time::{Duration, Instant};

/// Consecutive equal lists after which a set is made, because making one costs a system call per descriptor.
const EQUAL_WAITS: u32 = 8;

/// The time that a wait polls before it sleeps: about the time to sleep and wake up.
const SPIN_TIME: Duration = Duration::from_micros(50);
/// Consecutive short waits after which the next one is expected to be short, too.
const MIN_SHORT_WAITS: u32 = 4;

/// A descriptor and the events to wait for.
pub(crate) type Interest<'d> = (BorrowedFd<'d>, PollFlags);

/// Whether the descriptors of a list may be closed before the run ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lifetime {
    /// All are open to the end.
    Run,
    /// Some may be closed and their numbers reused: the kernel removes them from a set without notice.
    Passing,
}

/// The state of waiting: the last list, its set, and the expected length of a wait.
#[derive(Default)]
pub(crate) struct Poller {
    /// The list of the last wait, and how often it was waited for in a row.
    last: Vec<(RawFd, PollFlags)>,
    equal_waits: u32,
    /// The set of the descriptors in `last`.
    set: Option<DescriptorSet>,
    expectation: Expectation,
}

/// The expected length of the next wait.
struct Expectation {
    /// Consecutive short waits.
    short: u32,
    /// Whether another thread can run while this one polls.
    has_other_processors: bool,
}

impl Default for Expectation {
    fn default() -> Expectation {
        let processors = std::thread::available_parallelism();
        Expectation { short: 0, has_other_processors: processors.is_ok_and(|count| count.get() > 1) }
    }
}

impl Expectation {
    fn is_short(&self) -> bool {
        self.has_other_processors && self.short >= MIN_SHORT_WAITS
    }

    /// Updates the expectation after a wait. One that slept includes the time to wake up.
    fn learn(&mut self, ended: &Result<usize, Errno>, took: Duration) {
        let short = ended.is_ok_and(|count| count > 0) && took < 2 * SPIN_TIME;
        self.short = if short { self.short.saturating_add(1) } else { 0 };
    }
}

impl Poller {
    /// Waits for an event or the timeout. Returns the number of descriptors with events, and sets `happened` for each
    /// of them.
    pub(crate) fn wait(
        &mut self,
        watched: &[Interest<'_>],
        lifetime: Lifetime,
        timeout: Option<Duration>,
        happened: &mut Vec<bool>,
    ) -> Result<usize, Errno> {
        if lifetime == Lifetime::Run {
            self.remember(watched);
        } else {
            self.forget();
        }
        let started = Instant::now();
        let mut ended = Ok(0);
        let mut took = Duration::ZERO;
        if self.expectation.is_short() {
            while ended == Ok(0) && took < SPIN_TIME && timeout.is_none_or(|timeout| took < timeout) {
                ended = self.wait_asleep(watched, Some(Duration::ZERO), happened);
                took = started.elapsed();
            }
        }
        if ended == Ok(0) {
            let left = timeout.map(|timeout| timeout.saturating_sub(took));
            ended = self.wait_asleep(watched, left, happened);
            took = started.elapsed();
        }
        self.expectation.learn(&ended, took);
        ended
    }

    /// Waits as [`Poller::wait`] does, without polling first.
    fn wait_asleep(
        &self,
        watched: &[Interest<'_>],
        timeout: Option<Duration>,
        happened: &mut Vec<bool>,
    ) -> Result<usize, Errno> {
        happened.clear();
        if let Some(set) = &self.set {
            return set.wait(watched.len(), timeout.map(timespec).as_ref(), happened);
        }
        let mut polled: Vec<PollFd<'_>> =
            watched.iter().map(|(descriptor, flags)| PollFd::from_borrowed_fd(*descriptor, *flags)).collect();
        let count = poll(&mut polled, timeout.map(timespec).as_ref());
        happened.extend(polled.iter().map(|polled| !polled.revents().is_empty()));
        count
    }

    fn remember(&mut self, watched: &[Interest<'_>]) {
        let same = self.last.len() == watched.len()
            && self.last.iter().zip(watched).all(|(last, (fd, flags))| *last == (fd.as_raw_fd(), *flags));
        if !same {
            self.forget();
            self.last.extend(watched.iter().map(|(fd, flags)| (fd.as_raw_fd(), *flags)));
        }
        self.equal_waits = self.equal_waits.saturating_add(1);
        if self.equal_waits == EQUAL_WAITS {
            // Without a set, `poll` does the same.
            self.set = DescriptorSet::new(watched).ok();
        }
    }

    fn forget(&mut self) {
        self.last.clear();
        self.equal_waits = 0;
        self.set = None;
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
