//! Signals on their way: sent, pending, and what the process does with each.

use super::process_state::Process;
use super::signal::{Action, DEFAULT_HANDLER, IGNORE_HANDLER, SIGCHLD, SIGCONT, SIGURG, SIGWINCH, UNBLOCKABLE, bit_of};
use super::task::Task;
use crate::schedule::scheduler;
use crate::schedule::thread::WakeReason;
use alloc::rc::Rc;
use alloc::vec::Vec;

/// What happens with a signal.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reaction {
    Ignore,
    /// The program ends.
    Terminate,
    Handle(Action),
}

/// What the process does with a signal.
pub(crate) fn reaction_to(process: &Process, signal: u8) -> Reaction {
    let action = process.actions.borrow().get(signal);
    match (action.handler, signal) {
        (IGNORE_HANDLER, _) => Reaction::Ignore,
        (DEFAULT_HANDLER, SIGCHLD | SIGCONT | SIGURG | SIGWINCH) => Reaction::Ignore,
        (DEFAULT_HANDLER, _) => Reaction::Terminate,
        _ => Reaction::Handle(action),
    }
}

/// Sends a signal to a thread: it is handled when the thread returns to its program.
pub(crate) fn send(task: &Task, signal: u8) {
    let mut signals = task.signals.borrow_mut();
    if let Reaction::Ignore = reaction_to(&task.process, signal) {
        return;
    }
    signals.pending |= bit_of(signal);
    let is_blocked = signals.blocked & !UNBLOCKABLE & bit_of(signal) != 0;
    drop(signals);
    if !is_blocked && let Some(thread) = scheduler::find(task.id) {
        scheduler::wake(&thread, WakeReason::Interrupted);
    }
}

/// Whether a signal is pending and not blocked.
pub(crate) fn has_pending(task: &Task) -> bool {
    let signals = task.signals.borrow();
    signals.pending & !(signals.blocked & !UNBLOCKABLE) != 0
}

/// Takes the least signal that is pending and not blocked.
pub(crate) fn take_pending(task: &Task) -> Option<u8> {
    let mut signals = task.signals.borrow_mut();
    let ready = signals.pending & !(signals.blocked & !UNBLOCKABLE);
    if ready == 0 {
        return None;
    }
    let signal = ready.trailing_zeros() as u8 + 1;
    signals.pending &= !bit_of(signal);
    Some(signal)
}

/// Sends a signal to the program: to the oldest thread that does not block it, or to the oldest.
pub(crate) fn send_to_program(signal: u8) {
    let tasks: Vec<Rc<Task>> =
        scheduler::threads().iter().filter_map(|thread| thread.task.clone()?.downcast().ok()).collect();
    let takes = |task: &&Rc<Task>| task.signals.borrow().blocked & bit_of(signal) == 0;
    if let Some(task) = tasks.iter().find(takes).or(tasks.first()) {
        send(task, signal);
    }
}
