//! One place for a request and, after it, its answer: whose turn it is stands beside what travels. Knows nothing of who owns
//! the memory, nor how to wait.
//!
//! ```text
//!   caller     write the request, ASKED                                        read the answer
//!   answerer                             read the request, write the answer, ANSWERED
//! ```
//!
//! Over two queues a request and its answer are two lines, each of which one processor has taken from the other when it looks
//! and loses when the other writes. Here it is one. The answerer takes the line for writing whenever it looks, so that it can
//! put the answer there at once; the caller, which had the line, mostly asks for it again when the answer is there.

use core::mem::ManuallyDrop;

use super::ahead::{Use, ask};
use super::sync::{AtomicU32, Cell, HINT, OBSERVE, PUBLISH};

/// Nothing lies here.
const EMPTY: u32 = 0;
/// A request lies here, or did until the answerer took it.
const ASKED: u32 = 1;
/// An answer lies here, or did until the caller took it.
const ANSWERED: u32 = 2;

/// What travels: never both at once.
union Travels<Q, A> {
    request: ManuallyDrop<Q>,
    answer: ManuallyDrop<A>,
}

/// The place.
#[repr(C)]
pub(crate) struct Exchange<Q, A> {
    turn: AtomicU32,
    travels: Cell<Travels<Q, A>>,
}

impl<Q, A> Exchange<Q, A> {
    pub(crate) fn new() -> Self {
        Exchange { turn: AtomicU32::new(EMPTY), travels: Cell::new() }
    }

    /// # Safety
    /// The caller calls, and has taken the answer of every request before.
    #[inline(always)]
    pub(crate) unsafe fn ask(&self, request: Q) {
        // SAFETY: between an answer that was taken and the next request the place is the caller's.
        unsafe { self.travels.write(Travels { request: ManuallyDrop::new(request) }) };
        // Pairs with OBSERVE in `request`: the request is written before it is seen.
        self.turn.store(ASKED, PUBLISH);
    }

    /// # Safety
    /// The answerer calls, and has answered every request that it took before.
    #[inline(always)]
    pub(crate) unsafe fn request(&self) -> Option<Q> {
        ask(&raw const self.turn, Use::Write);
        // Pairs with PUBLISH in `ask`.
        if self.turn.load(OBSERVE) != ASKED {
            return None;
        }
        // SAFETY: asked, so a request lies here, and it is the answerer's until it answers; it takes it once.
        Some(ManuallyDrop::into_inner(unsafe { self.travels.read().request }))
    }

    /// # Safety
    /// The answerer calls, and has taken a request that it has not answered.
    #[inline(always)]
    pub(crate) unsafe fn reply(&self, answer: A) {
        // SAFETY: the place is the answerer's, and the request was taken out.
        unsafe { self.travels.write(Travels { answer: ManuallyDrop::new(answer) }) };
        // Pairs with OBSERVE in `answer`: the answer is written, and the request was read, before that is seen.
        self.turn.store(ANSWERED, PUBLISH);
    }

    /// # Safety
    /// The caller calls, and has asked since it took an answer last.
    #[inline(always)]
    pub(crate) unsafe fn answer(&self) -> Option<A> {
        // Pairs with PUBLISH in `reply`.
        if self.turn.load(OBSERVE) != ANSWERED {
            return None;
        }
        // SAFETY: answered, so an answer lies here, and it is the caller's; it takes it once.
        Some(ManuallyDrop::into_inner(unsafe { self.travels.read().answer }))
    }

    /// What lay here was taken, and nobody will put anything here again.
    ///
    /// # Safety
    /// It is the turn of whoever calls, and what came was taken.
    pub(crate) unsafe fn empty(&self) {
        // No partner: read by whoever has the place for itself.
        self.turn.store(EMPTY, HINT);
    }

    /// Drops what nobody took.
    ///
    /// # Safety
    /// Nobody uses the place any more; who has taken what lay here and put nothing has said so (`empty`).
    pub(crate) unsafe fn clear(&self) {
        // No partner: the place is the caller's own.
        match self.turn.load(HINT) {
            // SAFETY: a request lies here, says the turn and the caller; nobody takes it afterwards.
            ASKED => drop(ManuallyDrop::into_inner(unsafe { self.travels.read().request })),
            // SAFETY: as above, an answer.
            ANSWERED => drop(ManuallyDrop::into_inner(unsafe { self.travels.read().answer })),
            _ => {}
        }
    }
}
