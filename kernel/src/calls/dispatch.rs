//! From the entry stub to a call, and back to the program.

use super::call::{Call, CallResult, Registers};
use super::table::HANDLERS;
use crate::arch::frame::Frame;
use crate::arch::time::ticks;
use crate::cell::Global;
use crate::counts::{self, Counting, Run};
use crate::log::log;
use crate::memory::layout::USER_END;
use crate::process::ending::{kill_process, log_fatal_signal};
use crate::process::signal::SIGSEGV;
use crate::process::signal_frame::{Delivery, deliver_pending};
use crate::process::task::{Task, current_task};
use crate::schedule::scheduler;
use crate::trace::Trace;
use core::sync::atomic::{AtomicBool, Ordering};
use syscalls::{Errno, Sysno};

static TRACE: Global<Trace> = Global::new(Trace::Off);

/// Whether calls are reported or counted.
static IS_OBSERVED: AtomicBool = AtomicBool::new(false);

/// Says whether calls are reported and counted.
pub(crate) fn observe(trace: Trace, counting: Counting) {
    TRACE.with(|current| *current = trace);
    IS_OBSERVED.store(trace == Trace::On || counting == Counting::On, Ordering::Relaxed);
}

/// How `entry.s` returns to the program.
#[repr(u64)]
enum Return {
    /// SYSRETQ: rcx and r11 are lost, as after every call.
    Fast = 0,
    /// IRETQ: every register is as in the frame.
    Full = 1,
}

/// Called by the general entry of `entry.s`.
// SAFETY: no other function has the name.
#[unsafe(no_mangle)]
extern "C" fn general_call(frame: &mut Frame) -> u64 {
    let is_observed = IS_OBSERVED.load(Ordering::Relaxed);
    let returns = if is_observed { observe_call(frame) } else { perform_and_return(frame, perform) };
    returns as u64
}

/// Performs a call, and counts or reports it.
#[cold]
fn observe_call(frame: &mut Frame) -> Return {
    let (start, switches) = (ticks(), scheduler::switches());
    let number = frame.error;
    let returns = perform_and_return(frame, perform_with_trace);
    let run = if scheduler::switches() == switches { Run::Through } else { Run::Switched };
    counts::record(number, ticks() - start, run);
    returns
}

#[inline(always)]
fn perform_and_return(frame: &mut Frame, perform: impl FnOnce(&mut Call<'_>, u64) -> CallResult) -> Return {
    let number = frame.error;
    let task = current_task();
    let mut call = Call { frame, task, registers: Registers::Kept };
    let result = perform(&mut call, number);
    let Call { frame, task, registers } = call;
    match registers {
        Registers::Replaced => {
            prepare_return(&task, frame, None);
            Return::Full
        }
        Registers::Kept => {
            frame.rax = match result {
                Ok(value) => value,
                Err(error) => -i64::from(error.into_raw()) as u64,
            };
            prepare_return(&task, frame, Some(number))
        }
    }
}

fn perform(call: &mut Call<'_>, number: u64) -> CallResult {
    match HANDLERS.get(number as usize) {
        Some(Some(handler)) => handler(call),
        Some(None) | None => Err(Errno::ENOSYS),
    }
}

fn perform_with_trace(call: &mut Call<'_>, number: u64) -> CallResult {
    if TRACE.with(|trace| *trace) == Trace::Off {
        return perform(call, number);
    }
    let name = usize::try_from(number).ok().and_then(Sysno::new).map_or("?", |known| known.name());
    let arguments: [u64; 6] = core::array::from_fn(|index| call.argument(index));
    let thread = call.task.id;
    // Before the call: it may not return, or block.
    log!("[{thread}] {name}({number}) {arguments:x?}");
    let result = perform(call, number);
    match result {
        Ok(value) => log!("[{thread}] {name} = {value:#x}"),
        Err(Errno::ENOSYS) => log!("[{thread}] {name} is not implemented (ENOSYS)"),
        Err(error) => log!("[{thread}] {name} = {}", error.name().unwrap_or("an internal error")),
    }
    result
}

/// Handles signals before the program runs on. `number` is that of the call whose result is in the frame.
fn prepare_return(task: &Task, frame: &mut Frame, number: Option<u64>) -> Return {
    let delivery = deliver_pending(task, frame, number);
    check_address(task, frame);
    match delivery {
        Delivery::Nothing => Return::Fast,
        Delivery::Changed => Return::Full,
    }
}

/// Handles signals before a program that was interrupted runs on.
pub(crate) fn return_from_interrupt(frame: &mut Frame) {
    let task = current_task();
    deliver_pending(&task, frame, None);
    check_address(&task, frame);
}

/// SYSRETQ and IRETQ with an address that is not canonical would fault in the kernel.
fn check_address(task: &Task, frame: &Frame) {
    if frame.rip >= USER_END {
        log_fatal_signal(task, SIGSEGV, format_args!("the program continues at {:#x}", frame.rip));
        kill_process(SIGSEGV);
    }
}
