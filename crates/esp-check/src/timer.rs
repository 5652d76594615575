//! The clock of a search. The caller supplies it, because this crate does no I/O: on some hosts
//! (`wasm32-unknown-unknown`) the standard library has none.

use std::ptr::fn_addr_eq;
use std::time::Duration;

/// A monotonic clock, and the time after which a search ends.
///
/// ```
/// use quaject_esp_check::{Limits, Timer};
/// use std::sync::LazyLock;
/// use std::time::{Duration, Instant};
///
/// fn now() -> Duration {
///     static ORIGIN: LazyLock<Instant> = LazyLock::new(Instant::now);
///     ORIGIN.elapsed()
/// }
///
/// let limits = Limits { timer: Some(Timer::limited(now, Duration::from_secs(60))), ..Limits::default() };
/// # assert_eq!(limits.time(), Some(Duration::from_secs(60)));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Timer {
    /// The time since a fixed moment.
    pub now: fn() -> Duration,
    /// The time that a search may take.
    pub limit: Option<Duration>,
}

impl Timer {
    /// A clock without a limit: for progress reports, and the elapsed time in the report.
    pub const fn unlimited(now: fn() -> Duration) -> Timer {
        Timer { now, limit: None }
    }

    /// A clock with a limit.
    pub const fn limited(now: fn() -> Duration, limit: Duration) -> Timer {
        Timer { now, limit: Some(limit) }
    }
}

impl PartialEq for Timer {
    /// Whether both read the same clock and have the same limit.
    fn eq(&self, other: &Timer) -> bool {
        self.limit == other.limit && fn_addr_eq(self.now, other.now)
    }
}

impl Eq for Timer {}

/// The time since the start of a search; always zero without a clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch {
    clock: Option<fn() -> Duration>,
    started: Duration,
}

impl Stopwatch {
    pub(crate) fn start(timer: Option<Timer>) -> Stopwatch {
        let clock = timer.map(|timer| timer.now);
        Stopwatch { clock, started: clock.map_or(Duration::ZERO, |now| now()) }
    }

    pub(crate) fn restart(&mut self) {
        self.started = self.clock.map_or(Duration::ZERO, |now| now());
    }

    pub(crate) fn elapsed(self) -> Duration {
        self.clock.map_or(Duration::ZERO, |now| now().saturating_sub(self.started))
    }
}
