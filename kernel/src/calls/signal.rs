//! Calls on signals.

use super::call::{Call, CallResult, Registers, fault};
use crate::memory::user::{self, Plain};
use crate::process::ending::{kill_process, log_fatal_signal};
use crate::process::signal::{Action, SIGNALS, SIGSEGV, SignalStack, UNBLOCKABLE, bit_of};
use crate::process::signal_frame::leave_handler;
use crate::process::signal_queue::{send, send_to_program};
use crate::process::task::Task;
use crate::schedule::scheduler;
use crate::schedule::thread::WakeReason;
use alloc::rc::Rc;
use linux_raw_sys::general::{SIG_BLOCK, SIG_SETMASK, SIG_UNBLOCK, SS_DISABLE, SS_ONSTACK};
use syscalls::Errno;

// SAFETY: four words.
unsafe impl Plain for Action {}
// SAFETY: integers; the padding is a field.
unsafe impl Plain for SignalStack {}

/// Masks have 64 bits.
const MASK_BYTES: u64 = 8;
/// The least stack for handlers.
const MIN_STACK_BYTES: u64 = 2048;

/// A signal that an argument names.
fn signal(number: u32) -> Result<u8, Errno> {
    u8::try_from(number).ok().filter(|signal| (1..=SIGNALS).contains(signal)).ok_or(Errno::EINVAL)
}

pub(super) fn rt_sigaction(call: &mut Call<'_>) -> CallResult {
    if call.argument(3) != MASK_BYTES {
        return Err(Errno::EINVAL);
    }
    let signal = signal(call.word(0))?;
    let new = match call.argument(1) {
        0 => None,
        _ if bit_of(signal) & UNBLOCKABLE != 0 => return Err(Errno::EINVAL),
        address => Some(user::read::<Action>(address).map_err(fault)?),
    };
    let old = call.process().actions.borrow().get(signal);
    if call.argument(2) != 0 {
        user::write(call.argument(2), &old).map_err(fault)?;
    }
    if let Some(new) = new {
        call.process().actions.borrow_mut().set(signal, new);
    }
    Ok(0)
}

pub(super) fn rt_sigprocmask(call: &mut Call<'_>) -> CallResult {
    if call.argument(3) != MASK_BYTES {
        return Err(Errno::EINVAL);
    }
    let old = call.task.signals.borrow().blocked;
    if call.argument(1) != 0 {
        let set: u64 = user::read(call.argument(1)).map_err(fault)?;
        let new = match call.word(0) {
            SIG_BLOCK => old | set,
            SIG_UNBLOCK => old & !set,
            SIG_SETMASK => set,
            _ => return Err(Errno::EINVAL),
        };
        call.task.signals.borrow_mut().blocked = new & !UNBLOCKABLE;
    }
    if call.argument(2) != 0 {
        user::write(call.argument(2), &old).map_err(fault)?;
    }
    Ok(0)
}

pub(super) fn rt_sigpending(call: &mut Call<'_>) -> CallResult {
    if call.argument(1) > MASK_BYTES {
        return Err(Errno::EINVAL);
    }
    let pending = {
        let signals = call.task.signals.borrow();
        signals.pending & signals.blocked
    };
    user::write(call.argument(0), &pending).map_err(fault)?;
    Ok(0)
}

pub(super) fn rt_sigreturn(call: &mut Call<'_>) -> CallResult {
    call.registers = Registers::Replaced;
    if leave_handler(&call.task, call.frame).is_err() {
        log_fatal_signal(&call.task, SIGSEGV, format_args!("no frame to return to from a handler"));
        kill_process(SIGSEGV);
    }
    Ok(0)
}

pub(super) fn sigaltstack(call: &mut Call<'_>) -> CallResult {
    let old = call.task.signals.borrow().stack;
    let is_on_stack = old.flags & SS_DISABLE == 0 && call.frame.rsp.wrapping_sub(old.start) < old.bytes;
    if call.argument(0) != 0 {
        let new: SignalStack = user::read(call.argument(0)).map_err(fault)?;
        if is_on_stack {
            return Err(Errno::EPERM);
        }
        if new.flags & !(SS_DISABLE | SS_ONSTACK) != 0 {
            return Err(Errno::EINVAL);
        }
        if new.flags & SS_DISABLE == 0 && new.bytes < MIN_STACK_BYTES {
            return Err(Errno::ENOMEM);
        }
        let is_disabled = new.flags & SS_DISABLE != 0;
        call.task.signals.borrow_mut().stack =
            if is_disabled { SignalStack::default() } else { SignalStack { flags: 0, ..new } };
    }
    if call.argument(1) != 0 {
        let flags = if is_on_stack { SS_ONSTACK } else { old.flags };
        user::write(call.argument(1), &SignalStack { flags, ..old }).map_err(fault)?;
    }
    Ok(0)
}

/// The thread of this program with an identifier.
fn task_of(id: u32) -> Result<Rc<Task>, Errno> {
    let thread = scheduler::find(id).ok_or(Errno::ESRCH)?;
    thread.task.clone().ok_or(Errno::ESRCH)?.downcast().map_err(|_| Errno::ESRCH)
}

fn send_to(id: u32, number: u32) -> CallResult {
    let task = task_of(id)?;
    if number != 0 {
        send(&task, signal(number)?);
    }
    Ok(0)
}

pub(super) fn tkill(call: &mut Call<'_>) -> CallResult {
    send_to(call.word(0), call.word(1))
}

pub(super) fn tgkill(call: &mut Call<'_>) -> CallResult {
    if call.word(0) != call.process().id {
        return Err(Errno::ESRCH);
    }
    send_to(call.word(1), call.word(2))
}

/// There is one process.
pub(super) fn kill(call: &mut Call<'_>) -> CallResult {
    let target = call.word(0) as i32;
    let id = call.process().id;
    if target != id as i32 && target != 0 && target != -1 {
        return Err(Errno::ESRCH);
    }
    if call.word(1) != 0 {
        send_to_program(signal(call.word(1))?);
    }
    Ok(0)
}

/// Waits for a signal that is handled.
pub(super) fn pause(_: &mut Call<'_>) -> CallResult {
    loop {
        match scheduler::block(None) {
            WakeReason::Interrupted => return Err(Errno::EINTR),
            WakeReason::Woken | WakeReason::TimedOut => {}
        }
    }
}
