//! Alarms: something that happens at a moment of the monotonic clock, with no thread that waits for it.

use crate::cell::Global;
use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::Cell;

/// An alarm.
pub(crate) struct Alarm {
    /// When it rings next.
    pub(crate) deadline_ns: Cell<Option<u64>>,
    /// The time from one ringing to the next; 0 for an alarm that rings once.
    pub(crate) interval_ns: Cell<u64>,
    ring: Box<dyn Fn()>,
}

static ALARMS: Global<Vec<Rc<Alarm>>> = Global::new(Vec::new());

impl Alarm {
    /// An alarm that is not set.
    pub(crate) fn new(ring: Box<dyn Fn()>) -> Rc<Alarm> {
        let alarm = Rc::new(Alarm { deadline_ns: Cell::new(None), interval_ns: Cell::new(0), ring });
        ALARMS.with(|alarms| alarms.push(alarm.clone()));
        alarm
    }

    /// The time from `now_ns` to the next ringing; 0 if it is not set.
    pub(crate) fn remaining_ns(&self, now_ns: u64) -> u64 {
        // An alarm that is due has not rung yet: it is still set.
        self.deadline_ns.get().map_or(0, |deadline| deadline.saturating_sub(now_ns).max(1))
    }
}

/// Whether an alarm is set.
pub(super) fn is_any_set() -> bool {
    ALARMS.with(|alarms| alarms.iter().any(|alarm| alarm.deadline_ns.get().is_some()))
}

/// Rings the alarms that are due.
pub(super) fn ring_due(now_ns: u64) {
    let is_due = |alarm: &&Rc<Alarm>| alarm.deadline_ns.get().is_some_and(|deadline| deadline <= now_ns);
    let due: Vec<Rc<Alarm>> = ALARMS.with(|alarms| alarms.iter().filter(is_due).cloned().collect());
    for alarm in due {
        let interval = alarm.interval_ns.get();
        // After a long pause it rings once, not for each interval.
        alarm.deadline_ns.set((interval > 0).then(|| now_ns + interval));
        (alarm.ring)();
    }
}
