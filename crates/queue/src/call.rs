//! Request and reply between two threads. The caller sends a request and waits, the responder replies; both ends share
//! one `CallCell`, which the last of them frees. A round trip is faster than over any two queues; two queues are better
//! when several requests are outstanding at once.

use alloc::sync::Arc;
use core::ops::ControlFlow;

use crate::call_cell::CallCell;
use crate::slots::TryError;
use crate::storage::Line;
use crate::sync::{AtomicU32, OBSERVE, PUBLISH};
use crate::wait::{Wait, WaitError};

/// What the two ends share.
struct CallState<Q, R> {
    cell: CallCell<Q, R>,
    /// Not 0 once an end has been dropped.
    disconnected: AtomicU32,
}

impl<Q, R> Drop for CallState<Q, R> {
    fn drop(&mut self) {
        // SAFETY: both ends have been dropped, and each has recorded what it had taken.
        unsafe { self.cell.drop_pending() };
    }
}

type Shared<Q, R> = Arc<Line<CallState<Q, R>>>;

/// The end that sends requests. It has one request outstanding at a time.
pub struct Caller<Q, R> {
    state: Shared<Q, R>,
    /// A request was sent whose reply has not been taken.
    is_outstanding: bool,
}

/// The end that replies.
pub struct Responder<Q, R> {
    state: Shared<Q, R>,
    /// A request was taken and not yet replied to.
    owes_reply: bool,
}

// SAFETY: the ends share one cell, which belongs to one of them at a time; requests and replies move between their
// threads.
unsafe impl<Q: Send, R: Send> Send for Caller<Q, R> {}
// SAFETY: as above; through a shared reference an end only reads whether the other is connected.
unsafe impl<Q: Send, R: Send> Sync for Caller<Q, R> {}
// SAFETY: as above.
unsafe impl<Q: Send, R: Send> Send for Responder<Q, R> {}
// SAFETY: as above.
unsafe impl<Q: Send, R: Send> Sync for Responder<Q, R> {}

/// Both ends of a call from one thread to another, for the shortest round trip: a request and its reply share a cache
/// line when both are small (56 bytes).
pub fn call<Q, R>() -> (Caller<Q, R>, Responder<Q, R>) {
    let state = Arc::new(Line(CallState { cell: CallCell::new(), disconnected: AtomicU32::new(0) }));
    (Caller { state: state.clone(), is_outstanding: false }, Responder { state, owes_reply: false })
}

fn is_disconnected<Q, R>(state: &Shared<Q, R>) -> bool {
    // Pairs with PUBLISH in `disconnect`: what the other end did before it was dropped is seen.
    state.0.disconnected.load(OBSERVE) != 0
}

fn disconnect<Q, R>(state: &Shared<Q, R>) {
    // Pairs with OBSERVE in `is_disconnected`.
    state.0.disconnected.store(1, PUBLISH);
}

/// Repeats `attempt` with pauses in between. The other end may have acted between the attempt and its drop, so one more
/// attempt follows a disconnection.
fn repeat<T>(
    attempt: impl Fn() -> Option<T>,
    is_disconnected: impl Fn() -> bool,
    mut wait: impl Wait,
) -> Result<T, WaitError> {
    let mut turn = 0u32;
    loop {
        if let Some(done) = attempt() {
            return Ok(done);
        }
        if is_disconnected() {
            return attempt().ok_or(WaitError::Disconnected);
        }
        if let ControlFlow::Break(()) = wait.pause(turn) {
            return Err(WaitError::GaveUp(TryError::NotReady));
        }
        turn = turn.saturating_add(1);
    }
}

impl<Q, R> Caller<Q, R> {
    /// Sends a request.
    ///
    /// # Errors
    /// The request is returned while the reply to the one before has not been taken.
    #[inline]
    pub fn call(&mut self, request: Q) -> Result<(), Q> {
        if self.is_outstanding {
            return Err(request);
        }
        // SAFETY: the reply to every request was taken.
        unsafe { self.state.0.cell.send_request(request) };
        self.is_outstanding = true;
        Ok(())
    }

    /// Takes the reply.
    ///
    /// # Errors
    /// `NotReady` while there is none.
    #[inline]
    pub fn take_reply(&mut self) -> Result<R, TryError> {
        if !self.is_outstanding {
            return Err(TryError::NotReady);
        }
        // SAFETY: a request is outstanding, or its reply is here.
        let reply = unsafe { self.state.0.cell.take_reply() }.ok_or(TryError::NotReady)?;
        self.is_outstanding = false;
        Ok(reply)
    }

    /// Takes the reply as soon as there is one.
    ///
    /// # Errors
    /// When the strategy gives up, which leaves the reply to a later attempt; at once when no request is outstanding
    /// (`GaveUp`); and when the responder was dropped.
    pub fn take_reply_wait(&mut self, wait: impl Wait) -> Result<R, WaitError> {
        if !self.is_outstanding {
            return Err(WaitError::GaveUp(TryError::NotReady));
        }
        // SAFETY: a request is outstanding, or its reply is here.
        let attempt = || unsafe { self.state.0.cell.take_reply() };
        let reply = repeat(attempt, || is_disconnected(&self.state), wait)?;
        self.is_outstanding = false;
        Ok(reply)
    }

    /// Whether the responder was dropped.
    pub fn is_disconnected(&self) -> bool {
        is_disconnected(&self.state)
    }
}

impl<Q, R> Responder<Q, R> {
    /// Takes a request, which must be replied to before the next one can be taken.
    ///
    /// # Errors
    /// `NotReady` while there is none.
    #[inline]
    pub fn take_request(&mut self) -> Result<Q, TryError> {
        if self.owes_reply {
            return Err(TryError::NotReady);
        }
        // SAFETY: every request that was taken was replied to.
        let request = unsafe { self.state.0.cell.take_request() }.ok_or(TryError::NotReady)?;
        self.owes_reply = true;
        Ok(request)
    }

    /// Takes a request as soon as there is one.
    ///
    /// # Errors
    /// When the strategy gives up; at once when the last request was not replied to (`GaveUp`); and when the caller was
    /// dropped.
    pub fn take_request_wait(&mut self, wait: impl Wait) -> Result<Q, WaitError> {
        if self.owes_reply {
            return Err(WaitError::GaveUp(TryError::NotReady));
        }
        // SAFETY: every request that was taken was replied to.
        let attempt = || unsafe { self.state.0.cell.take_request() };
        let request = repeat(attempt, || is_disconnected(&self.state), wait)?;
        self.owes_reply = true;
        Ok(request)
    }

    /// Replies to the request that was taken.
    ///
    /// # Errors
    /// The reply is returned when there is no request to reply to.
    #[inline]
    pub fn reply(&mut self, reply: R) -> Result<(), R> {
        if !self.owes_reply {
            return Err(reply);
        }
        // SAFETY: a request was taken and not replied to.
        unsafe { self.state.0.cell.send_reply(reply) };
        self.owes_reply = false;
        Ok(())
    }

    /// Whether the caller was dropped.
    pub fn is_disconnected(&self) -> bool {
        is_disconnected(&self.state)
    }
}

impl<Q, R> Drop for Caller<Q, R> {
    fn drop(&mut self) {
        if !self.is_outstanding {
            // SAFETY: the last reply was taken, so the cell belongs to the caller.
            unsafe { self.state.0.cell.mark_empty() };
        }
        disconnect(&self.state);
    }
}

impl<Q, R> Drop for Responder<Q, R> {
    fn drop(&mut self) {
        if self.owes_reply {
            // SAFETY: the request was taken, so the cell belongs to the responder.
            unsafe { self.state.0.cell.mark_empty() };
        }
        disconnect(&self.state);
    }
}
