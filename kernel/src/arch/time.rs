//! Clocks: the time stamp counter, whose speed is measured once against the programmable interval timer (PIT), and the
//! date of the real-time clock at the start.

use super::port;
use crate::cell::Global;
use core::arch::x86_64::_rdtsc;
use core::sync::atomic::{AtomicU64, Ordering};

pub(crate) const NANOSECONDS: u64 = 1_000_000_000;
/// A calibration lasts 10 ms.
pub(crate) const CALIBRATIONS_PER_SECOND: u64 = 100;
const PIT_HZ: u64 = 1_193_182;

struct Clock {
    /// The counter when the clock was set.
    start: u64,
    /// Nanoseconds per tick, with 32 binary digits after the point.
    scale: u64,
    /// Seconds since 1970 at `start`.
    date: u64,
}

static CLOCK: Global<Clock> = Global::new(Clock { start: 0, scale: 1 << 32, date: 0 });

/// The time stamp counter.
pub(crate) fn ticks() -> u64 {
    // SAFETY: every 64-bit processor counts.
    unsafe { _rdtsc() }
}

/// Measures the counter and reads the date. Called by `calibrate` of the interrupt controller's timer.
fn set_clock(ticks_per_calibration: u64) {
    let date = read_date();
    let ticks_per_second = (ticks_per_calibration * CALIBRATIONS_PER_SECOND).max(1);
    CLOCK.with(|clock| *clock = Clock { start: ticks(), scale: (NANOSECONDS << 32) / ticks_per_second, date });
    update_coarse_clock();
}

/// The clock of files: nanoseconds since 1970 at the last tick of the timer, as on Linux. Routines read it.
static COARSE_CLOCK: AtomicU64 = AtomicU64::new(0);

/// Sets the clock of files.
pub(crate) fn update_coarse_clock() {
    COARSE_CLOCK.store(real_ns(), Ordering::Relaxed);
}

/// The clock of files.
pub(crate) fn coarse_ns() -> u64 {
    COARSE_CLOCK.load(Ordering::Relaxed)
}

/// Where the clock of files lies.
pub(crate) fn coarse_clock_address() -> usize {
    COARSE_CLOCK.as_ptr() as usize
}

/// Nanoseconds since the start.
pub(crate) fn monotonic_ns() -> u64 {
    CLOCK.with(|clock| {
        let passed = u128::from(ticks().saturating_sub(clock.start));
        ((passed * u128::from(clock.scale)) >> 32) as u64
    })
}

/// Nanoseconds since 1970.
pub(crate) fn real_ns() -> u64 {
    CLOCK.with(|clock| clock.date) * NANOSECONDS + monotonic_ns()
}

/// Lets the PIT count for a calibration, sets the clock, and returns how far `count`, which counts down, came.
pub(crate) fn calibrate(count: impl Fn() -> u32) -> u32 {
    const CHANNEL_2: u16 = 0x42;
    const COMMAND: u16 = 0x43;
    const CONTROL: u16 = 0x61;
    /// Channel 2, both bytes, mode 0: the output rises when the count ends.
    const ONE_SHOT: u8 = 0xb0;
    const GATE: u8 = 0x01;
    const SPEAKER: u8 = 0x02;
    const OUTPUT: u8 = 0x20;
    let periods = (PIT_HZ / CALIBRATIONS_PER_SECOND) as u16;
    // SAFETY: channel 2 drives the speaker only, which stays off.
    unsafe {
        let control = port::read_u8(CONTROL) & !(GATE | SPEAKER);
        port::write_u8(CONTROL, control);
        port::write_u8(COMMAND, ONE_SHOT);
        port::write_u8(CHANNEL_2, periods as u8);
        port::write_u8(CHANNEL_2, (periods >> 8) as u8);
        port::write_u8(CONTROL, control | GATE);
    }
    let (first_count, first_ticks) = (count(), ticks());
    // SAFETY: reading the control port has no effect.
    while unsafe { port::read_u8(CONTROL) } & OUTPUT == 0 {
        core::hint::spin_loop();
    }
    let (last_count, last_ticks) = (count(), ticks());
    set_clock(last_ticks - first_ticks);
    first_count - last_count
}

fn read_clock_register(register: u8) -> u8 {
    const INDEX: u16 = 0x70;
    const VALUE: u16 = 0x71;
    /// Bit 7 keeps non-maskable interrupts off meanwhile.
    const QUIET: u8 = 0x80;
    // SAFETY: reading the real-time clock changes nothing but the index.
    unsafe {
        port::write_u8(INDEX, QUIET | register);
        port::read_u8(VALUE)
    }
}

/// Seconds since 1970 by the real-time clock, read twice until two readings agree.
fn read_date() -> u64 {
    const FIELDS: [u8; 6] = [0, 2, 4, 7, 8, 9];
    const STATUS_B: u8 = 0x0b;
    const BINARY: u8 = 0x04;
    let read = || FIELDS.map(read_clock_register);
    let mut fields = read();
    loop {
        let again = read();
        if again == fields {
            break;
        }
        fields = again;
    }
    let is_binary = read_clock_register(STATUS_B) & BINARY != 0;
    let number = |value: u8| u64::from(if is_binary { value } else { (value >> 4) * 10 + (value & 15) });
    let [second, minute, hour, day, month, year] = fields.map(number);
    ((days_since_1970(2000 + year, month, day) * 24 + hour) * 60 + minute) * 60 + second
}

/// Days from 1 January 1970 to a date of the Gregorian calendar (Hinnant, "chrono-Compatible Low-Level Date
/// Algorithms", `days_from_civil`).
fn days_since_1970(year: u64, month: u64, day: u64) -> u64 {
    const DAYS_TO_1970: u64 = 719_468;
    let year = if month <= 2 { year - 1 } else { year };
    let era = year / 400;
    let year_of_era = year % 400;
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - DAYS_TO_1970
}
