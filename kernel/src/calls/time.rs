//! Calls on time.

use super::call::{Call, CallResult, fault};
use crate::arch::time::{NANOSECONDS, monotonic_ns, real_ns};
use crate::memory::user;
use crate::schedule::scheduler;
use crate::schedule::thread::WakeReason;
use linux_raw_sys::general::{
    CLOCK_BOOTTIME, CLOCK_MONOTONIC, CLOCK_MONOTONIC_COARSE, CLOCK_MONOTONIC_RAW, CLOCK_PROCESS_CPUTIME_ID,
    CLOCK_REALTIME, CLOCK_REALTIME_COARSE, CLOCK_THREAD_CPUTIME_ID, ITIMER_PROF, ITIMER_REAL, ITIMER_VIRTUAL,
    TIMER_ABSTIME,
};
use syscalls::Errno;

/// By what a moment is given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Clock {
    /// From now on.
    Relative,
    Monotonic,
    Real,
}

/// Reads a time of seconds and nanoseconds.
fn read_time(address: u64) -> Result<u64, Errno> {
    let [seconds, nanoseconds]: [i64; 2] = user::read(address).map_err(fault)?;
    let (Ok(seconds), Ok(nanoseconds)) = (u64::try_from(seconds), u64::try_from(nanoseconds)) else {
        return Err(Errno::EINVAL);
    };
    if nanoseconds >= NANOSECONDS {
        return Err(Errno::EINVAL);
    }
    Ok(seconds.saturating_mul(NANOSECONDS).saturating_add(nanoseconds))
}

fn write_time(address: u64, time_ns: u64) -> CallResult {
    user::write(address, &[time_ns / NANOSECONDS, time_ns % NANOSECONDS]).map_err(fault)?;
    Ok(0)
}

/// The moment, on the monotonic clock, that the time at an address stands for; none for address 0.
pub(super) fn deadline(address: u64, clock: Clock) -> Result<Option<u64>, Errno> {
    if address == 0 {
        return Ok(None);
    }
    let time = read_time(address)?;
    Ok(Some(match clock {
        Clock::Relative => monotonic_ns().saturating_add(time),
        Clock::Monotonic => time,
        Clock::Real => monotonic_ns().saturating_add(time.saturating_sub(real_ns())),
    }))
}

/// The time of a clock. The program has the processor for itself: its processor time is the time since the start.
fn clock_ns(clock: u32) -> Result<u64, Errno> {
    match clock {
        CLOCK_REALTIME | CLOCK_REALTIME_COARSE => Ok(real_ns()),
        CLOCK_MONOTONIC
        | CLOCK_MONOTONIC_RAW
        | CLOCK_MONOTONIC_COARSE
        | CLOCK_BOOTTIME
        | CLOCK_PROCESS_CPUTIME_ID
        | CLOCK_THREAD_CPUTIME_ID => Ok(monotonic_ns()),
        _ => Err(Errno::EINVAL),
    }
}

pub(super) fn clock_gettime(call: &mut Call<'_>) -> CallResult {
    write_time(call.argument(1), clock_ns(call.word(0))?)
}

pub(super) fn clock_getres(call: &mut Call<'_>) -> CallResult {
    clock_ns(call.word(0))?;
    if call.argument(1) == 0 { Ok(0) } else { write_time(call.argument(1), 1) }
}

pub(super) fn gettimeofday(call: &mut Call<'_>) -> CallResult {
    let now = real_ns();
    if call.argument(0) != 0 {
        user::write(call.argument(0), &[now / NANOSECONDS, now % NANOSECONDS / 1000]).map_err(fault)?;
    }
    if call.argument(1) != 0 {
        user::write(call.argument(1), &[0_u32; 2]).map_err(fault)?;
    }
    Ok(0)
}

pub(super) fn time(call: &mut Call<'_>) -> CallResult {
    let seconds = real_ns() / NANOSECONDS;
    if call.argument(0) != 0 {
        user::write(call.argument(0), &seconds).map_err(fault)?;
    }
    Ok(seconds)
}

pub(super) fn nanosleep(call: &mut Call<'_>) -> CallResult {
    let until = monotonic_ns().saturating_add(read_time(call.argument(0))?);
    sleep_until(until, call.argument(1))
}

pub(super) fn clock_nanosleep(call: &mut Call<'_>) -> CallResult {
    let clock = match call.word(0) {
        CLOCK_REALTIME => Clock::Real,
        CLOCK_MONOTONIC | CLOCK_BOOTTIME => Clock::Monotonic,
        _ => return Err(Errno::EINVAL),
    };
    let is_absolute = call.word(1) & TIMER_ABSTIME != 0;
    let until = deadline(call.argument(2), if is_absolute { clock } else { Clock::Relative })?.ok_or(Errno::EFAULT)?;
    sleep_until(until, if is_absolute { 0 } else { call.argument(3) })
}

/// Sleeps; after a signal, reports what is left at the address `rest`, unless it is 0.
fn sleep_until(until_ns: u64, rest: u64) -> CallResult {
    match scheduler::block(Some(until_ns)) {
        WakeReason::TimedOut | WakeReason::Woken => Ok(0),
        WakeReason::Interrupted => {
            if rest != 0 {
                write_time(rest, until_ns.saturating_sub(monotonic_ns()))?;
            }
            Err(Errno::EINTR)
        }
    }
}

/// Sets the timer to ring after a time, and then again after each interval; no time is no ringing. Returns what was
/// left.
fn set_alarm(call: &Call<'_>, first_ns: u64, interval_ns: u64) -> [u64; 2] {
    let alarm = &call.process().alarm;
    let now = monotonic_ns();
    let old = [alarm.interval_ns.get(), alarm.remaining_ns(now)];
    alarm.deadline_ns.set((first_ns > 0).then(|| now.saturating_add(first_ns)));
    alarm.interval_ns.set(interval_ns);
    old
}

pub(super) fn alarm(call: &mut Call<'_>) -> CallResult {
    let [_, left] = set_alarm(call, u64::from(call.word(0)) * NANOSECONDS, 0);
    // As on Linux: rounded, but never to nothing.
    let seconds = (left + NANOSECONDS / 2) / NANOSECONDS;
    Ok(if left > 0 { seconds.max(1) } else { 0 })
}

const MICROSECOND_NS: u64 = 1000;

/// Reads a time of seconds and microseconds.
fn microseconds([seconds, microseconds]: [i64; 2]) -> Result<u64, Errno> {
    let (Ok(seconds), Ok(microseconds)) = (u64::try_from(seconds), u64::try_from(microseconds)) else {
        return Err(Errno::EINVAL);
    };
    if microseconds >= NANOSECONDS / MICROSECOND_NS {
        return Err(Errno::EINVAL);
    }
    Ok(seconds.saturating_mul(NANOSECONDS).saturating_add(microseconds * MICROSECOND_NS))
}

/// Writes the structure of `setitimer`: the interval, and what is left.
fn write_timer(address: u64, times_ns: [u64; 2]) -> CallResult {
    let fields = times_ns.map(|time| [time / NANOSECONDS, time % NANOSECONDS / MICROSECOND_NS]);
    user::write(address, &fields).map_err(fault)?;
    Ok(0)
}

/// Whether an argument names the timer of real time; those of processor time are not implemented.
fn check_timer(timer: u32) -> Result<(), Errno> {
    match timer {
        ITIMER_REAL => Ok(()),
        ITIMER_VIRTUAL | ITIMER_PROF => Err(Errno::ENOSYS),
        _ => Err(Errno::EINVAL),
    }
}

pub(super) fn setitimer(call: &mut Call<'_>) -> CallResult {
    check_timer(call.word(0))?;
    let [interval, first] = match call.argument(1) {
        0 => [0; 2],
        address => {
            let [interval, first]: [[i64; 2]; 2] = user::read(address).map_err(fault)?;
            [microseconds(interval)?, microseconds(first)?]
        }
    };
    let old = set_alarm(call, first, interval);
    if call.argument(2) == 0 { Ok(0) } else { write_timer(call.argument(2), old) }
}

pub(super) fn getitimer(call: &mut Call<'_>) -> CallResult {
    check_timer(call.word(0))?;
    let alarm = &call.process().alarm;
    write_timer(call.argument(1), [alarm.interval_ns.get(), alarm.remaining_ns(monotonic_ns())])
}
