//! Queues of waiting threads: each resource has its own ("Threads and Input/Output in the Synthesis Kernel" 3.2).

use super::scheduler;
use super::thread::{Thread, WakeReason};
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::RefCell;

/// Threads that wait for a resource, the one that has waited longest last.
#[derive(Default)]
pub(crate) struct WaitQueue {
    waiters: RefCell<Vec<Rc<Thread>>>,
}

impl WaitQueue {
    /// Blocks the thread that runs until it is woken here, its deadline passes, or a signal comes.
    pub(crate) fn wait(&self, deadline_ns: Option<u64>) -> WakeReason {
        let thread = scheduler::current();
        self.waiters.borrow_mut().insert(0, thread.clone());
        let reason = scheduler::block(deadline_ns);
        // After a wake-up it is out of the queue already.
        if reason != WakeReason::Woken {
            self.waiters.borrow_mut().retain(|other| !Rc::ptr_eq(other, &thread));
        }
        reason
    }

    /// Wakes every thread that waits.
    pub(crate) fn wake_all(&self) {
        // A thread that is woken runs next, so that the last one woken here is the first to run.
        while let Some(thread) = self.waiters.borrow_mut().pop() {
            scheduler::wake(&thread, WakeReason::Woken);
        }
    }
}
