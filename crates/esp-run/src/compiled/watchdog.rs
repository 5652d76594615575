//! Ends a step of compiled code that does not return after a signal: a process that computes endlessly does not poll
//! for signals.

use super::abi::LeaveStep;
use crate::signals::{Signals, die_of};
use crate::system::timespec;
use rustix::event::{PollFd, PollFlags, poll};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The time that compiled code may continue to compute after a signal has arrived.
const COMPUTE_GRACE: Duration = Duration::from_millis(300);

/// Counts when a step of the compiled code begins or ends, for another thread: odd while one is taken.
#[derive(Default)]
pub(super) struct StepCounter(AtomicU64);

impl StepCounter {
    /// Takes a step of the compiled code.
    pub(super) fn count(&self, step: impl FnOnce() -> i32) -> i32 {
        // Relaxed, both: the number orders no data; it only shows whether a step ends.
        self.0.fetch_add(1, Ordering::Relaxed);
        let status = step();
        self.0.fetch_add(1, Ordering::Relaxed);
        status
    }

    /// [`COMPUTE_GRACE`] after a signal, leaves the step in which it arrived if the compiled code has not returned from
    /// it. If an extern function does not return either, ends the process; what that step has sent is lost then.
    /// Returns when the other end of `ended` is closed.
    pub(super) fn watch(&self, signals: &Signals, ended: &UnixStream, leave: LeaveStep) {
        loop {
            let mut ready = [
                PollFd::from_borrowed_fd(ended.as_fd(), PollFlags::IN),
                PollFd::from_borrowed_fd(signals.descriptor(), PollFlags::IN),
            ];
            if poll(&mut ready, None).is_err() {
                continue;
            }
            if !ready[0].revents().is_empty() {
                return;
            }
            let step = self.0.load(Ordering::Relaxed);
            let is_over = || {
                let mut ready = [PollFd::from_borrowed_fd(ended.as_fd(), PollFlags::IN)];
                poll(&mut ready, Some(&timespec(COMPUTE_GRACE))).is_ok_and(|ready| ready > 0)
            };
            if is_over() {
                return;
            }
            let (1, Some(signal)) = (step % 2, signals.pending()) else { continue };
            if step != self.0.load(Ordering::Relaxed) {
                continue;
            }
            // SAFETY: It may be called from any thread once a step has been taken, and one is being taken.
            unsafe { leave() };
            if is_over() {
                return;
            }
            if step == self.0.load(Ordering::Relaxed) {
                die_of(signal);
            }
        }
    }
}
