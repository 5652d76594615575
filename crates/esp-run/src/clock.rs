//! The clock of a program: nanoseconds since its start. Does not wait.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// The time since this function was first called, by the monotonic clock of the system: the clock of searches
/// (`quaject_esp_check::Timer`), which have none of their own.
pub fn monotonic_time() -> Duration {
    static ORIGIN: LazyLock<Instant> = LazyLock::new(Instant::now);
    ORIGIN.elapsed()
}

/// How time passes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Time {
    /// Wall-clock time.
    #[default]
    Real,
    /// Virtual time: stands still while the program can continue, then jumps to its next deadline. Runs with timers
    /// become fast and reproducible.
    Virtual,
}

/// A clock that starts at 0.
pub(crate) enum Clock {
    Real(Instant),
    Virtual(i64),
}

impl Clock {
    pub(crate) fn start(time: Time) -> Clock {
        match time {
            Time::Real => Clock::Real(Instant::now()),
            Time::Virtual => Clock::Virtual(0),
        }
    }

    pub(crate) fn now_ns(&self) -> i64 {
        match self {
            Clock::Real(start) => i64::try_from(start.elapsed().as_nanos()).unwrap_or(i64::MAX),
            Clock::Virtual(now_ns) => *now_ns,
        }
    }
}
