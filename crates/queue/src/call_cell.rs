//! One cell for a request and, after it, its reply, with the word that says which of the two it holds. Knows neither
//! the owner of the memory nor how to wait.
//!
//! ```text
//!   caller     write the request, REQUESTED                                       read the reply
//!   responder                                read the request, write the reply, REPLIED
//! ```
//!
//! Over two queues a request and its reply use two cache lines. Each line moves to the polling processor and back when
//! the other one writes. Here both use one line. The responder requests the line for writing at every poll, so that it
//! can write the reply at once; the caller, which had the line, usually polls it again when the reply is there.

use core::mem::ManuallyDrop;

use super::prefetch::{Access, prefetch};
use super::sync::{AtomicU32, Cell, HINT, OBSERVE, PUBLISH};

/// The cell holds nothing.
const EMPTY: u32 = 0;
/// The cell holds a request, or did until the responder took it.
const REQUESTED: u32 = 1;
/// The cell holds a reply, or did until the caller took it.
const REPLIED: u32 = 2;

/// The content of the cell: never both at once.
union Content<Q, R> {
    request: ManuallyDrop<Q>,
    reply: ManuallyDrop<R>,
}

/// The cell and its state.
#[repr(C)]
pub(crate) struct CallCell<Q, R> {
    turn: AtomicU32,
    content: Cell<Content<Q, R>>,
}

impl<Q, R> CallCell<Q, R> {
    pub(crate) fn new() -> Self {
        CallCell { turn: AtomicU32::new(EMPTY), content: Cell::new() }
    }

    /// # Safety
    /// The caller's end calls, and has taken the reply to every request before.
    #[inline(always)]
    pub(crate) unsafe fn send_request(&self, request: Q) {
        // SAFETY: between a reply that was taken and the next request the cell is the caller's.
        unsafe { self.content.write(Content { request: ManuallyDrop::new(request) }) };
        // Pairs with OBSERVE in `take_request`: the request is written before it is seen.
        self.turn.store(REQUESTED, PUBLISH);
    }

    /// # Safety
    /// The responder calls, and has replied to every request that it took before.
    #[inline(always)]
    pub(crate) unsafe fn take_request(&self) -> Option<Q> {
        prefetch(&raw const self.turn, Access::Write);
        // Pairs with PUBLISH in `send_request`.
        if self.turn.load(OBSERVE) != REQUESTED {
            return None;
        }
        // SAFETY: the cell holds a request and is the responder's until it replies; it takes the request once.
        Some(ManuallyDrop::into_inner(unsafe { self.content.read().request }))
    }

    /// # Safety
    /// The responder calls, and has taken a request that it has not replied to.
    #[inline(always)]
    pub(crate) unsafe fn send_reply(&self, reply: R) {
        // SAFETY: the cell is the responder's, and the request was taken out.
        unsafe { self.content.write(Content { reply: ManuallyDrop::new(reply) }) };
        // Pairs with OBSERVE in `take_reply`: the reply is written, and the request was read, before that is seen.
        self.turn.store(REPLIED, PUBLISH);
    }

    /// # Safety
    /// The caller's end calls, and has sent a request since it last took a reply.
    #[inline(always)]
    pub(crate) unsafe fn take_reply(&self) -> Option<R> {
        // Pairs with PUBLISH in `send_reply`.
        if self.turn.load(OBSERVE) != REPLIED {
            return None;
        }
        // SAFETY: the cell holds a reply and is the caller's; it takes the reply once.
        Some(ManuallyDrop::into_inner(unsafe { self.content.read().reply }))
    }

    /// Records that the content was taken and that nothing will be written any more.
    ///
    /// # Safety
    /// The cell belongs to the end that calls, which has taken the content.
    pub(crate) unsafe fn mark_empty(&self) {
        // No partner: read by the last end alone.
        self.turn.store(EMPTY, HINT);
    }

    /// Drops a request or a reply that was never taken.
    ///
    /// # Safety
    /// No end uses the cell any more; an end that took the content and wrote none has called `mark_empty`.
    pub(crate) unsafe fn drop_pending(&self) {
        // No partner: the cell is the caller's own.
        match self.turn.load(HINT) {
            // SAFETY: by `turn` and the caller's promise the cell holds a request; it is not read again.
            REQUESTED => drop(ManuallyDrop::into_inner(unsafe { self.content.read().request })),
            // SAFETY: as above, a reply.
            REPLIED => drop(ManuallyDrop::into_inner(unsafe { self.content.read().reply })),
            _ => {}
        }
    }
}
