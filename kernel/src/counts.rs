//! How much each call costs, in ticks of the time stamp counter; in a machine that counts instructions (QEMU's
//! `-icount`) a tick is an instruction. Of calls that take the general path the stubs of `entry.s` are not included; of
//! calls that a routine handles everything is, from SYSCALL to SYSRETQ.

use crate::cell::Global;
use crate::log::log;
use core::cell::UnsafeCell;
use syscalls::Sysno;

/// Calls with larger numbers are not counted.
const NUMBERS: usize = 512;

/// The calls of one number. `entry.s` knows the layout.
#[repr(C)]
#[derive(Clone, Copy)]
struct Count {
    /// Those that ran to their end without another thread in between.
    calls: u64,
    /// Those that let another thread run.
    switched: u64,
    /// The ticks of the former, and the least of one.
    ticks: u64,
    least: u64,
}

const NOTHING: Count = Count { calls: 0, switched: 0, ticks: 0, least: u64::MAX };

/// The counts of all numbers.
pub(crate) struct CountTable(UnsafeCell<[Count; NUMBERS]>);

// SAFETY: there is one processor, and nothing interrupts what changes the table.
unsafe impl Sync for CountTable {}

/// Where calls are counted. Routines end in `counting_exit`, which adds to it; `record` does for the general path.
pub(crate) static COUNTS: CountTable = CountTable(UnsafeCell::new([NOTHING; NUMBERS]));

static COUNTING: Global<Counting> = Global::new(Counting::Off);

/// Whether calls are counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Counting {
    Off,
    On,
}

/// Counts from now on.
pub(crate) fn enable() {
    COUNTING.with(|counting| *counting = Counting::On);
}

/// Whether calls are counted.
pub(crate) fn counting() -> Counting {
    COUNTING.with(|counting| *counting)
}

/// What the instructions between the two readings of the counter, without those of the routine, differ from SYSCALL,
/// the entry stub and SWAPGS, SYSRETQ.
const STUB_CORRECTION: i64 = -6;

/// Whether another thread ran during a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Run {
    Through,
    Switched,
}

/// Adds a call.
pub(crate) fn record(number: u64, ticks: u64, run: Run) {
    if counting() == Counting::Off {
        return;
    }
    // SAFETY: nothing else uses the table meanwhile.
    let counts = unsafe { &mut *COUNTS.0.get() };
    let Some(count) = usize::try_from(number).ok().and_then(|number| counts.get_mut(number)) else { return };
    match run {
        Run::Switched => count.switched += 1,
        Run::Through => {
            count.calls += 1;
            // Routines are counted with the stubs, and corrected in the report.
            count.ticks += ticks.wrapping_sub_signed(STUB_CORRECTION);
            count.least = count.least.min(ticks.wrapping_sub_signed(STUB_CORRECTION));
        }
    }
}

/// Reports what has been counted: a line for each number.
pub(crate) fn report() {
    if counting() == Counting::Off {
        return;
    }
    // SAFETY: nothing else uses the table meanwhile.
    let counts = unsafe { &*COUNTS.0.get() };
    for (number, count) in counts.iter().enumerate().filter(|(_, count)| count.calls + count.switched > 0) {
        let name = Sysno::new(number).map_or("?", |known| known.name());
        let corrected = |ticks: u64, calls: u64| ticks.saturating_add_signed(STUB_CORRECTION * calls as i64);
        let least = if count.calls == 0 { 0 } else { corrected(count.least, 1) };
        log!("count: {name} {} {} {} {least}", count.calls, count.switched, corrected(count.ticks, count.calls));
    }
}
