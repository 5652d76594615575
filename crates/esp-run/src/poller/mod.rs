//! Waiting for many descriptors. A list of descriptors that stay open and are asked about time after time becomes a set
//! that the kernel keeps (epoll): then a wait costs as much as has happened, not as much as is watched. Any other list
//! goes to `poll`. Knows no driver.
//!
//! To put a thread to sleep and wake it costs both sides more than a short answer takes. Where the last waits were short,
//! the next one looks again and again for a moment before it sleeps; a program that waits for long never does.

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

/// Equal lists in a row after which a set is made: to make one costs a system call for each descriptor.
const HABIT: u32 = 8;

/// How long a wait looks before it sleeps: about what it costs to sleep and be woken.
const MOMENT: Duration = Duration::from_micros(50);
/// Short waits in a row after which the next one is expected to be short, too.
const SHORT_IN_A_ROW: u32 = 4;

/// A descriptor and what to wait for.
pub(crate) type Interest<'d> = (BorrowedFd<'d>, PollFlags);

/// Whether the descriptors of a list may be closed before the run ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lifetime {
    /// All are open to the end.
    Run,
    /// Some may be closed, and their numbers given to others: the kernel would forget them in a set, unseen.
    Passing,
}

/// The way to wait, and what is known of earlier waits.
#[derive(Default)]
pub(crate) struct Poller {
    /// What was asked for last, and how often in a row.
    last: Vec<(RawFd, PollFlags)>,
    times: u32,
    /// A set of what is in `last`.
    set: Option<DescriptorSet>,
    expectation: Expectation,
}

/// How long the next wait will be, by those before it.
struct Expectation {
    /// Short waits in a row.
    short: u32,
    /// Whether whoever answers can run while we look.
    company: bool,
}

impl Default for Expectation {
    fn default() -> Expectation {
        let processors = std::thread::available_parallelism();
        Expectation { short: 0, company: processors.is_ok_and(|count| count.get() > 1) }
    }
}

impl Expectation {
    fn is_short(&self) -> bool {
        self.company && self.short >= SHORT_IN_A_ROW
    }

    /// Learns of a wait. One that slept took longer than what it waited for, by the time it takes to wake up.
    fn learn(&mut self, ended: &Result<usize, Errno>, took: Duration) {
        let short = ended.is_ok_and(|count| count > 0) && took < 2 * MOMENT;
        self.short = if short { self.short.saturating_add(1) } else { 0 };
    }
}

impl Poller {
    /// Waits until something happens or the time is over. Tells how much has happened, and writes down for each of the
    /// descriptors whether it was there.
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
            while ended == Ok(0) && took < MOMENT && timeout.is_none_or(|timeout| took < timeout) {
                ended = self.look(watched, Some(Duration::ZERO), happened);
                took = started.elapsed();
            }
        }
        if ended == Ok(0) {
            let left = timeout.map(|timeout| timeout.saturating_sub(took));
            ended = self.look(watched, left, happened);
            took = started.elapsed();
        }
        self.expectation.learn(&ended, took);
        ended
    }

    /// Waits as [`Poller::wait`] does, asleep.
    fn look(
        &self,
        watched: &[Interest<'_>],
        timeout: Option<Duration>,
        happened: &mut Vec<bool>,
    ) -> Result<usize, Errno> {
        happened.clear();
        if let Some(set) = &self.set {
            return set.wait(watched.len(), timeout.map(timespec).as_ref(), happened);
        }
        let mut asked: Vec<PollFd<'_>> =
            watched.iter().map(|(descriptor, flags)| PollFd::from_borrowed_fd(*descriptor, *flags)).collect();
        let count = poll(&mut asked, timeout.map(timespec).as_ref());
        happened.extend(asked.iter().map(|asked| !asked.revents().is_empty()));
        count
    }

    fn remember(&mut self, watched: &[Interest<'_>]) {
        let same = self.last.len() == watched.len()
            && self.last.iter().zip(watched).all(|(last, (fd, flags))| *last == (fd.as_raw_fd(), *flags));
        if !same {
            self.forget();
            self.last.extend(watched.iter().map(|(fd, flags)| (fd.as_raw_fd(), *flags)));
        }
        self.times = self.times.saturating_add(1);
        if self.times == HABIT {
            // Without a set, `poll` does the same.
            self.set = DescriptorSet::new(watched).ok();
        }
    }

    fn forget(&mut self) {
        self.last.clear();
        self.times = 0;
        self.set = None;
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
