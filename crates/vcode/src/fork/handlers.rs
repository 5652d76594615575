//! What runs at a fork: the handlers of `pthread_atfork`, and the states that they prepare and replace.

use super::{FORKING, ForkLock, HOLDERS, OWN, wait_until};
use crate::error::Error;
use core::mem::take;
use std::boxed::Box;
use std::cell::{Cell, UnsafeCell};
use std::ffi::c_int;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::vec::Vec;

// SAFETY: the declaration of the C library's manual.
unsafe extern "C" {
    fn pthread_atfork(
        prepare: Option<extern "C" fn()>,
        parent: Option<extern "C" fn()>,
        child: Option<extern "C" fn()>,
    ) -> c_int;
}

/// What a process must replace or reset when it is forked.
pub trait ForkState: Send + Sync {
    /// Runs in the parent before the fork, while no other thread holds a [`ForkLock`]. What it returns runs in the
    /// child, whose only thread is the one that forked, and is dropped in the parent.
    fn prepare(self: Arc<Self>) -> Box<dyn FnOnce() + Send>;
}

/// Prepares and replaces a state at each fork, as long as it lives.
///
/// # Errors
/// [`Error::Memory`] if the system refuses to register handlers.
pub fn register(state: Weak<dyn ForkState>) -> Result<(), Error> {
    static ARE_REGISTERED: OnceLock<bool> = OnceLock::new();
    let _fork = ForkLock::hold();
    // SAFETY: the handlers may run at any fork from now on; they access statics only.
    let register = || unsafe { pthread_atfork(Some(before), Some(in_parent), Some(in_child)) == 0 };
    if !ARE_REGISTERED.get_or_init(register) {
        return Err(Error::Memory);
    }
    let mut states = STATES.lock().unwrap_or_else(PoisonError::into_inner);
    states.retain(|state| state.strong_count() > 0);
    states.push(state);
    Ok(())
}

/// Locked only by holders of a [`ForkLock`] and by the thread that forks.
static STATES: Mutex<Vec<Weak<dyn ForkState>>> = Mutex::new(Vec::new());
static PREPARED: Prepared = Prepared(UnsafeCell::new(Vec::new()));

/// What runs in the child. Accessed only by the thread that has set [`FORKING`].
struct Prepared(UnsafeCell<Vec<Box<dyn FnOnce() + Send>>>);

// SAFETY: accesses are exclusive, see above.
unsafe impl Sync for Prepared {}

extern "C" fn before() {
    wait_until(|| HOLDERS.fetch_or(FORKING, Ordering::Acquire) & FORKING == 0);
    // A thread that forks while it holds the lock itself must not wait for itself.
    let own = u32::from(OWN.try_with(Cell::get).unwrap_or(0) > 0);
    wait_until(|| HOLDERS.load(Ordering::Acquire) == FORKING + own);
    let states = STATES.lock().unwrap_or_else(PoisonError::into_inner);
    let prepared = states.iter().filter_map(Weak::upgrade).map(ForkState::prepare).collect();
    // SAFETY: this thread has set FORKING.
    unsafe { *PREPARED.0.get() = prepared };
}

extern "C" fn in_parent() {
    // SAFETY: this thread has set FORKING.
    drop(take(unsafe { &mut *PREPARED.0.get() }));
    HOLDERS.fetch_and(!FORKING, Ordering::Release);
}

extern "C" fn in_child() {
    // SAFETY: this thread has set FORKING before the fork, and is the only one.
    for replace in take(unsafe { &mut *PREPARED.0.get() }) {
        replace();
    }
    HOLDERS.fetch_and(!FORKING, Ordering::Release);
}
