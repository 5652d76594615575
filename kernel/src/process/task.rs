//! What the process layer knows of a thread.

use super::process_state::Process;
use super::signal::Signals;
use crate::cell::Global;
use crate::schedule::scheduler;
use alloc::rc::Rc;
use core::cell::{Cell, RefCell};

/// A thread as the program sees it.
pub(crate) struct Task {
    pub(crate) id: u32,
    pub(crate) process: Rc<Process>,
    /// Where the end of the thread is written (`set_tid_address`); 0 for nowhere.
    pub(crate) clear_at: Cell<u64>,
    pub(crate) signals: RefCell<Signals>,
}

impl Task {
    pub(crate) fn new(id: u32, process: Rc<Process>) -> Task {
        Task { id, process, clear_at: Cell::new(0), signals: RefCell::new(Signals::default()) }
    }
}

/// An identifier that no thread has had. The first is not 1, which Linux treats in a special way.
pub(crate) fn new_id() -> u32 {
    static NEXT: Global<u32> = Global::new(2);
    NEXT.with(|next| {
        *next += 1;
        *next - 1
    })
}

/// The task of the thread that runs.
pub(crate) fn current_task() -> Rc<Task> {
    let task = scheduler::current_task_address().cast::<Task>();
    // SAFETY: the process layer makes every thread with a task, which lives as long as the thread.
    unsafe {
        Rc::increment_strong_count(task);
        Rc::from_raw(task)
    }
}
