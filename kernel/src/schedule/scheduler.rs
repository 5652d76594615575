//! Which thread runs: round robin among those that are ready, a quantum each. The ready queue is executable: the switch
//! routine of each thread ends with a jump to that of the next one ("Threads and Input/Output in the Synthesis Kernel"
//! 3.2). A thread that is woken runs next.

use super::alarm;
use super::thread::{State, Thread, WakeReason};
use crate::arch::block;
use crate::arch::{processor, time};
use crate::cell::Global;
use crate::log::log;
use crate::memory::stacks::KernelStack;
use crate::outcome::{Outcome, end_machine};
use crate::synthesis::VectorUse;
use alloc::rc::Rc;
use alloc::vec::Vec;
use quaject_synth::ready::{Place, Ready};

/// A process may have that many threads.
pub(crate) const MAX_THREADS: usize = 4096;

struct Scheduler {
    /// Nothing while the machine starts.
    ready: Option<Ready<'static>>,
    /// Places of the ready queue that no thread has.
    free_places: Vec<u32>,
    /// A thread of the ready queue, while none of it runs.
    anchor: usize,
    /// The thread that runs when no other can.
    idle: Option<Rc<Thread>>,
    /// Every thread that has not ended.
    all: Vec<Rc<Thread>>,
    /// Blocked threads that have deadlines.
    timed: usize,
    /// How often another thread has been switched to.
    switches: u64,
    /// Threads that have ended; the stack of the last one may still be in use.
    ended: Vec<Rc<Thread>>,
}

static SCHEDULER: Global<Scheduler> = Global::new(Scheduler {
    ready: None,
    free_places: Vec::new(),
    anchor: 0,
    idle: None,
    all: Vec::new(),
    timed: 0,
    switches: 0,
    ended: Vec::new(),
});

/// Prepares an empty ready queue.
pub(crate) fn initialize() {
    let stack = KernelStack::new().expect("there is memory for the stack of the idle thread");
    let idle = Thread::idle(stack).expect("there is memory for the idle thread");
    processor::set_thread_block(idle.block_address());
    let mut places = Vec::new();
    places.resize(MAX_THREADS, Place::EMPTY);
    SCHEDULER.with(|scheduler| {
        scheduler.ready = Some(Ready::new(places.leak(), idle.switch_entry()));
        scheduler.free_places = (0..MAX_THREADS as u32).rev().collect();
        scheduler.idle = Some(idle);
    });
}

impl Scheduler {
    fn ready(&mut self) -> &mut Ready<'static> {
        self.ready.as_mut().expect("the queue is made before threads are")
    }

    /// Puts a thread into the ready queue, so that it runs after the one that runs now.
    fn insert(&mut self, thread: &Thread) {
        // SAFETY: a thread is removed from the queue before it is dropped.
        let member = unsafe { thread.member() };
        let place = thread.place();
        let current = current_place();
        let anchor = self.anchor;
        let ready = self.ready();
        let inserted = if ready.is_empty() {
            ready.insert_first(place, member)
        } else {
            // One that is about to block is in the queue no more.
            let before = current.filter(|current| ready.contains(*current)).unwrap_or(anchor);
            ready.insert_after(before, place, member)
        };
        inserted.expect("a thread is in the queue once, and the code area is small");
        if current.is_none_or(|current| !self.ready().contains(current)) {
            self.anchor = place;
        }
    }

    fn remove(&mut self, thread: &Thread) {
        let place = thread.place();
        if self.anchor == place
            && let Some(next) = self.ready().after(place)
        {
            self.anchor = next;
        }
        self.ready().remove(place).expect("a thread that runs is in the queue");
    }
}

/// The place of the thread that runs; nothing for the idle thread, and while the machine starts.
fn current_place() -> Option<usize> {
    // SAFETY: the address is that of a thread that has not ended.
    unsafe { block::current_thread().cast::<Thread>().as_ref() }.map(Thread::place)
}

/// The thread that runs.
///
/// # Panics
/// Before the first one runs.
pub(crate) fn current() -> Rc<Thread> {
    let thread = block::current_thread().cast::<Thread>();
    assert!(!thread.is_null(), "a thread runs");
    // SAFETY: `Thread::new` has stored where its `Rc` points to, and the list of all threads holds a count.
    unsafe {
        Rc::increment_strong_count(thread);
        Rc::from_raw(thread)
    }
}

/// The task of the thread that runs.
///
/// # Panics
/// Before the first one runs.
pub(crate) fn current_task_address() -> *const () {
    let task = block::current_task();
    assert!(!task.is_null(), "a thread runs");
    task
}

/// Whether a thread runs: not while the machine starts, or is idle.
pub(crate) fn is_running() -> bool {
    !block::current_thread().is_null()
}

/// How often another thread has been switched to.
pub(crate) fn switches() -> u64 {
    SCHEDULER.with(|scheduler| scheduler.switches)
}

/// Lets a new thread take part.
pub(crate) fn add(thread: Rc<Thread>) {
    SCHEDULER.with(|scheduler| {
        let place = scheduler.free_places.pop().expect("there are as many places as threads may be");
        thread.set_place(place as usize);
        scheduler.insert(&thread);
        scheduler.all.push(thread);
    });
}

/// The thread with an identifier.
pub(crate) fn find(id: u32) -> Option<Rc<Thread>> {
    SCHEDULER.with(|scheduler| scheduler.all.iter().find(|thread| thread.id == id).cloned())
}

/// The threads that have not ended.
pub(crate) fn threads() -> Vec<Rc<Thread>> {
    SCHEDULER.with(|scheduler| scheduler.all.clone())
}

/// The number of threads that have not ended.
pub(crate) fn thread_count() -> usize {
    SCHEDULER.with(|scheduler| scheduler.all.len())
}

/// Makes a blocked thread ready; a thread that is not blocked stays as it is.
pub(crate) fn wake(thread: &Rc<Thread>, reason: WakeReason) {
    if let State::Blocked { deadline_ns } = thread.state.get() {
        thread.state.set(State::Ready);
        thread.wake_reason.set(reason);
        SCHEDULER.with(|scheduler| {
            scheduler.timed -= usize::from(deadline_ns.is_some());
            scheduler.insert(thread);
        });
    }
}

/// Runs the threads. Does not return.
pub(crate) fn start() -> ! {
    let (idle, first) = SCHEDULER.with(|scheduler| (scheduler.idle.clone(), scheduler.all.first().cloned()));
    let (idle, first) = idle.zip(first).expect("there is a thread to run");
    // All threads are of one process; the idle thread uses what all spaces share.
    // SAFETY: the upper half of all tables is the same.
    unsafe { processor::set_page_root(first.page_root.get()) }
    drop(first);
    loop {
        run_ready(&idle);
        wait_for_wake();
    }
}

/// Runs threads until none is ready. The idle thread is not in the queue: its switch jumps there once.
fn run_ready(idle: &Thread) {
    let next = SCHEDULER.with(|scheduler| {
        scheduler.switches += 1;
        let anchor = scheduler.anchor;
        scheduler.ready().entry_of(anchor)
    });
    if let Some(next) = next {
        // SAFETY: the address is that of a switch routine in the queue.
        unsafe { idle.switch_to(next) }
    }
}

/// Sleeps until something has happened. If neither a thread has a deadline nor an alarm is set, nothing ever will.
fn wait_for_wake() {
    free_ended();
    let is_timed = SCHEDULER.with(|scheduler| scheduler.timed > 0);
    if !is_timed && !alarm::is_any_set() {
        log!("deadlock: {} thread(s) wait for ever", thread_count());
        end_machine(Outcome::Deadlock);
    }
    processor::wait_for_interrupt();
    wake_expired();
}

/// Blocks the thread that runs until it is woken, or until its deadline.
pub(crate) fn block(deadline_ns: Option<u64>) -> WakeReason {
    let thread = current();
    thread.state.set(State::Blocked { deadline_ns });
    SCHEDULER.with(|scheduler| {
        scheduler.timed += usize::from(deadline_ns.is_some());
        scheduler.switches += 1;
        scheduler.remove(&thread);
    });
    // SAFETY: the thread is held by the list of all.
    unsafe { thread.switch_away() }
    thread.wake_reason.get()
}

/// Lets the other threads that are ready run first.
pub(crate) fn yield_now() {
    let is_alone = SCHEDULER.with(|scheduler| {
        let is_alone = scheduler.ready().len() == 1;
        scheduler.switches += u64::from(!is_alone);
        is_alone
    });
    if !is_alone {
        // SAFETY: the thread is in the queue, and held by the list of all.
        unsafe { (*block::current_thread().cast::<Thread>()).switch_away() }
    }
}

/// Ends the thread that runs.
pub(crate) fn end_current() -> ! {
    free_ended();
    let thread = current();
    thread.state.set(State::Ended);
    let address = Rc::as_ptr(&thread);
    SCHEDULER.with(|scheduler| {
        scheduler.switches += 1;
        scheduler.remove(&thread);
        scheduler.free_places.push(thread.place() as u32);
        scheduler.all.retain(|other| !Rc::ptr_eq(other, &thread));
        // Its stack and its switch routine are in use until the next thread runs.
        scheduler.ended.push(thread);
    });
    // SAFETY: the list of ended threads holds it.
    unsafe { (*address).switch_away() }
    unreachable!("a thread that has ended is not ready")
}

/// Frees the threads that have ended before the one that runs.
fn free_ended() {
    let ended = SCHEDULER.with(|scheduler| core::mem::take(&mut scheduler.ended));
    drop(ended);
}

/// Lets the thread that runs use the vector registers from now on: its switch routine is synthesised anew, and saves
/// and loads them.
///
/// # Panics
/// When the code area has no room.
pub(crate) fn allow_vectors() {
    let thread = current();
    let old = thread.allow_vectors().expect("the code area has room for the switch routine");
    SCHEDULER.with(|scheduler| {
        // SAFETY: as for `insert`.
        let member = unsafe { thread.member() };
        scheduler.ready().replace(thread.place(), member).expect("a thread that runs is in the queue");
    });
    drop(old);
    debug_assert!(thread.vector_use.get() == VectorUse::Allowed, "the thread uses them");
}

/// A quantum has ended: threads whose deadlines have passed wake, and another thread runs.
pub(crate) fn end_quantum() {
    wake_expired();
    yield_now();
}

fn wake_expired() {
    let is_timed = SCHEDULER.with(|scheduler| scheduler.timed > 0);
    let has_alarms = alarm::is_any_set();
    if !is_timed && !has_alarms {
        return;
    }
    let now = time::monotonic_ns();
    if has_alarms {
        alarm::ring_due(now);
    }
    let is_expired = |thread: &&Rc<Thread>| match thread.state.get() {
        State::Blocked { deadline_ns: Some(deadline) } => deadline <= now,
        State::Blocked { deadline_ns: None } | State::Ready | State::Ended => false,
    };
    let expired: Vec<Rc<Thread>> =
        SCHEDULER.with(|scheduler| scheduler.all.iter().filter(is_expired).cloned().collect());
    expired.iter().for_each(|thread| wake(thread, WakeReason::TimedOut));
}
