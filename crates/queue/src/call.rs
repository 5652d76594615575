//! Calls between two threads: one asks and waits, the other answers. The two ends of an `Exchange`, and who frees it. A round
//! trip here is quicker than over any two queues; with several requests on their way at once, queues are.

use alloc::sync::Arc;
use core::ops::ControlFlow;

use crate::exchange::Exchange;
use crate::slots::Refusal;
use crate::storage::Line;
use crate::sync::{AtomicU32, OBSERVE, PUBLISH};
use crate::wait::{Stopped, Wait};

struct Place<Q, A> {
    exchange: Exchange<Q, A>,
    /// Not 0 when an end is gone.
    left: AtomicU32,
}

impl<Q, A> Drop for Place<Q, A> {
    fn drop(&mut self) {
        // SAFETY: both ends are gone, and each has told what it had taken.
        unsafe { self.exchange.clear() };
    }
}

type Shared<Q, A> = Arc<Line<Place<Q, A>>>;

/// The end that asks. It has one request on its way at a time.
pub struct Caller<Q, A> {
    place: Shared<Q, A>,
    /// A request is on its way, or its answer waits.
    asked: bool,
}

/// The end that answers.
pub struct Answerer<Q, A> {
    place: Shared<Q, A>,
    /// A request was taken and not yet answered.
    owes: bool,
}

// SAFETY: the ends share one place, of which one at a time has the use; requests and answers move between their threads.
unsafe impl<Q: Send, A: Send> Send for Caller<Q, A> {}
// SAFETY: as above; through a shared reference an end only looks whether the other is there.
unsafe impl<Q: Send, A: Send> Sync for Caller<Q, A> {}
// SAFETY: as above.
unsafe impl<Q: Send, A: Send> Send for Answerer<Q, A> {}
// SAFETY: as above.
unsafe impl<Q: Send, A: Send> Sync for Answerer<Q, A> {}

/// Both ends of a call from one thread to another, for the shortest round trip: a request and its answer share a cache line
/// when both are small (56 bytes).
pub fn call<Q, A>() -> (Caller<Q, A>, Answerer<Q, A>) {
    let place = Arc::new(Line(Place { exchange: Exchange::new(), left: AtomicU32::new(0) }));
    (Caller { place: place.clone(), asked: false }, Answerer { place, owes: false })
}

fn left<Q, A>(place: &Shared<Q, A>) -> bool {
    // Pairs with PUBLISH in `leave`: what the other did before it left is seen.
    place.0.left.load(OBSERVE) != 0
}

fn leave<Q, A>(place: &Shared<Q, A>) {
    // Pairs with OBSERVE in `left`.
    place.0.left.store(1, PUBLISH);
}

/// Repeats `attempt` with pauses in between. An end that has left may have done something since the attempt: one more.
fn repeat<T>(attempt: impl Fn() -> Option<T>, left: impl Fn() -> bool, mut wait: impl Wait) -> Result<T, Stopped> {
    let mut turn = 0u32;
    loop {
        if let Some(done) = attempt() {
            return Ok(done);
        }
        if left() {
            return attempt().ok_or(Stopped::Abandoned);
        }
        if let ControlFlow::Break(()) = wait.pause(turn) {
            return Err(Stopped::GaveUp(Refusal::NotReady));
        }
        turn = turn.saturating_add(1);
    }
}

impl<Q, A> Caller<Q, A> {
    /// Sends a request.
    ///
    /// # Errors
    /// The request comes back while the answer of the one before has not been taken.
    #[inline]
    pub fn ask(&mut self, request: Q) -> Result<(), Q> {
        if self.asked {
            return Err(request);
        }
        // SAFETY: the answer of every request was taken.
        unsafe { self.place.0.exchange.ask(request) };
        self.asked = true;
        Ok(())
    }

    /// Takes the answer.
    ///
    /// # Errors
    /// `NotReady` while there is none.
    #[inline]
    pub fn answer(&mut self) -> Result<A, Refusal> {
        if !self.asked {
            return Err(Refusal::NotReady);
        }
        // SAFETY: a request is on its way, or its answer is here.
        let answer = unsafe { self.place.0.exchange.answer() }.ok_or(Refusal::NotReady)?;
        self.asked = false;
        Ok(answer)
    }

    /// Takes the answer as soon as there is one.
    ///
    /// # Errors
    /// When the strategy gives up, which leaves the answer to a later attempt; at once when nothing was asked
    /// (`GaveUp`); and when the answerer is gone.
    pub fn answer_wait(&mut self, wait: impl Wait) -> Result<A, Stopped> {
        if !self.asked {
            return Err(Stopped::GaveUp(Refusal::NotReady));
        }
        // SAFETY: a request is on its way, or its answer is here.
        let answer = repeat(|| unsafe { self.place.0.exchange.answer() }, || left(&self.place), wait)?;
        self.asked = false;
        Ok(answer)
    }

    /// Whether the answerer is gone.
    pub fn is_abandoned(&self) -> bool {
        left(&self.place)
    }
}

impl<Q, A> Answerer<Q, A> {
    /// Takes a request, which is to be answered before the next one comes.
    ///
    /// # Errors
    /// `NotReady` while there is none.
    #[inline]
    pub fn request(&mut self) -> Result<Q, Refusal> {
        if self.owes {
            return Err(Refusal::NotReady);
        }
        // SAFETY: every request that was taken was answered.
        let request = unsafe { self.place.0.exchange.request() }.ok_or(Refusal::NotReady)?;
        self.owes = true;
        Ok(request)
    }

    /// Takes a request as soon as there is one.
    ///
    /// # Errors
    /// When the strategy gives up; at once when the last request was not answered (`GaveUp`); and when the caller is gone.
    pub fn request_wait(&mut self, wait: impl Wait) -> Result<Q, Stopped> {
        if self.owes {
            return Err(Stopped::GaveUp(Refusal::NotReady));
        }
        // SAFETY: every request that was taken was answered.
        let request = repeat(|| unsafe { self.place.0.exchange.request() }, || left(&self.place), wait)?;
        self.owes = true;
        Ok(request)
    }

    /// Answers the request that was taken.
    ///
    /// # Errors
    /// The answer comes back when there is no request to answer.
    #[inline]
    pub fn reply(&mut self, answer: A) -> Result<(), A> {
        if !self.owes {
            return Err(answer);
        }
        // SAFETY: a request was taken and not answered.
        unsafe { self.place.0.exchange.reply(answer) };
        self.owes = false;
        Ok(())
    }

    /// Whether the caller is gone.
    pub fn is_abandoned(&self) -> bool {
        left(&self.place)
    }
}

impl<Q, A> Drop for Caller<Q, A> {
    fn drop(&mut self) {
        if !self.asked {
            // SAFETY: the last answer was taken, so it is the caller's turn.
            unsafe { self.place.0.exchange.empty() };
        }
        leave(&self.place);
    }
}

impl<Q, A> Drop for Answerer<Q, A> {
    fn drop(&mut self) {
        if self.owes {
            // SAFETY: the request was taken, so it is the answerer's turn.
            unsafe { self.place.0.exchange.empty() };
        }
        leave(&self.place);
    }
}
