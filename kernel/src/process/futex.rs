//! Futexes: threads that wait for a change of a word (Franke, Russell, Kirkwood 2002, "Fuss, Futexes and Furwocks").

use crate::interruption::interrupted;
use crate::memory::user;
use crate::schedule::scheduler;
use crate::schedule::thread::{Thread, WakeReason};
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::RefCell;
use syscalls::Errno;

struct Waiter {
    address: u64,
    bits: u32,
    thread: Rc<Thread>,
}

/// The waiting threads of a process, by the address that each waits for.
#[derive(Default)]
pub(crate) struct Futexes {
    waiters: RefCell<Vec<Waiter>>,
}

/// The word must lie so that it can be read at once.
fn check_alignment(address: u64) -> Result<(), Errno> {
    if address.is_multiple_of(4) { Ok(()) } else { Err(Errno::EINVAL) }
}

impl Futexes {
    /// Blocks the thread that runs while the word is `expected`: until a wake-up with one of `bits`, or the deadline.
    pub(crate) fn wait(&self, address: u64, expected: u32, bits: u32, deadline_ns: Option<u64>) -> Result<(), Errno> {
        check_alignment(address)?;
        if bits == 0 {
            return Err(Errno::EINVAL);
        }
        // No other thread runs between the two: the kernel is not preempted.
        if user::read_word(address).map_err(|_| Errno::EFAULT)? != expected {
            return Err(Errno::EAGAIN);
        }
        let thread = scheduler::current();
        let mut waiters = self.waiters.borrow_mut();
        waiters.try_reserve(1).map_err(|_| Errno::ENOMEM)?;
        waiters.push(Waiter { address, bits, thread: thread.clone() });
        drop(waiters);
        let reason = scheduler::block(deadline_ns);
        // After a wake-up it is not waiting any more.
        if reason != WakeReason::Woken {
            self.waiters.borrow_mut().retain(|waiter| !Rc::ptr_eq(&waiter.thread, &thread));
        }
        match reason {
            WakeReason::Woken => Ok(()),
            WakeReason::TimedOut => Err(Errno::ETIMEDOUT),
            // A relative deadline would begin again too.
            WakeReason::Interrupted if deadline_ns.is_some() => Err(Errno::EINTR),
            WakeReason::Interrupted => Err(interrupted()),
        }
    }

    /// Wakes up to `count` threads that wait with one of `bits`, and returns how many.
    pub(crate) fn wake(&self, address: u64, count: u32, bits: u32) -> u64 {
        let mut woken = 0;
        while woken < u64::from(count) {
            let mut waiters = self.waiters.borrow_mut();
            let is_meant = |waiter: &Waiter| waiter.address == address && waiter.bits & bits != 0;
            let Some(at) = waiters.iter().position(is_meant) else { break };
            let waiter = waiters.remove(at);
            drop(waiters);
            scheduler::wake(&waiter.thread, WakeReason::Woken);
            woken += 1;
        }
        woken
    }

    /// Wakes up to `count` threads and lets up to `limit` others wait for `target`; returns how many of both.
    pub(crate) fn requeue(&self, address: u64, count: u32, target: u64, limit: u32) -> u64 {
        let woken = self.wake(address, count, u32::MAX);
        let mut waiters = self.waiters.borrow_mut();
        let others = waiters.iter_mut().filter(|waiter| waiter.address == address);
        woken + others.take(limit as usize).map(|waiter| waiter.address = target).count() as u64
    }
}
