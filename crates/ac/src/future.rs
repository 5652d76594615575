//! Futures inside tasks: a task polls a future, and the other tasks of its thread run while the future is pending. Any
//! thread may wake it.

use std::cell::Cell;
use std::convert::Infallible;
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use crate::scope::{Canceled, UnwindingWait, unwinds};
use crate::sys;

/// The task that waits; null after its wait. A waker may outlive the wait and the thread.
struct Sleeper {
    woken: AtomicBool,
    task: Mutex<Option<*mut sys::RawTask>>,
}

// SAFETY: the pointer is only handed to `qj_ac_ffi_wake`, which any thread may call for a task that exists; it is
// taken away, under the lock, before the task can end.
unsafe impl Send for Sleeper {}
// SAFETY: as above.
unsafe impl Sync for Sleeper {}

impl Wake for Sleeper {
    fn wake(self: Arc<Self>) {
        // Pairs with the swap in `drive`: what the waker wrote before is seen by the poll that follows.
        self.woken.store(true, Ordering::Release);
        if let Some(task) = *self.task.lock().unwrap_or_else(PoisonError::into_inner) {
            // SAFETY: while the lock is held and the pointer there, `drive` has not returned: the task exists.
            unsafe { sys::qj_ac_ffi_wake(task) };
        }
    }
}

thread_local! {
    /// Futures that tasks of the thread wait for.
    static DRIVEN: Cell<usize> = const { Cell::new(0) };
}

/// Whether a future refers to a task of the thread.
pub(crate) fn is_driving() -> bool {
    DRIVEN.get() != 0
}

/// Clears the pointer on every exit of `drive`.
struct Forget<'a>(&'a Sleeper);

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        DRIVEN.set(DRIVEN.get() - 1);
        *self.0.task.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// Waits for the future; other tasks of the thread run meanwhile.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let wait = || {
        // SAFETY: this code runs in the task that waits.
        unsafe { sys::qj_ac_ffi_wait_remote() };
        Ok::<(), Infallible>(())
    };
    match drive(future, wait) {
        Ok(output) => output,
    }
}

/// Waits for the future, or drops it as soon as the enclosing scope is cancelled.
///
/// # Errors
/// When the scope was cancelled before the future was ready; and, without a wait, in a destructor that runs because of
/// a panic.
pub fn block_on_or_cancel<F: Future>(future: F) -> Result<F::Output, Canceled> {
    if unwinds() {
        return Err(Canceled);
    }
    // SAFETY: this code runs in the task that waits.
    drive(future, || if unsafe { sys::qj_ac_ffi_wait_remote_x() } == 0 { Ok(()) } else { Err(Canceled) })
}

fn drive<F: Future, E>(future: F, wait: impl Fn() -> Result<(), E>) -> Result<F::Output, E> {
    // SAFETY: the function has no preconditions.
    let task = unsafe { sys::qj_ac_ffi_current() };
    let sleeper = Arc::new(Sleeper { woken: AtomicBool::new(false), task: Mutex::new(Some(task)) });
    DRIVEN.set(DRIVEN.get() + 1);
    let _forget = Forget(&sleeper);
    let _waits = UnwindingWait::begin();
    let waker = Waker::from(Arc::clone(&sleeper));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return Ok(output);
        }
        // Pairs with the store in `wake`. A wake between the poll and the wait is found here, or by the poller.
        while !sleeper.woken.swap(false, Ordering::Acquire) {
            wait()?;
        }
    }
}
