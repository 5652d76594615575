//! Exceptions and interrupts: what each one means.

use crate::arch::frame::Frame;
use crate::arch::interrupts::{DEVICE_NOT_AVAILABLE, FIRST_INTERRUPT, GENERAL_PROTECTION, PAGE_FAULT, SPURIOUS, TIMER};
use crate::arch::{apic, entry, processor, time};
use crate::calls::dispatch::return_from_interrupt;
use crate::memory::layout::{PAGE_BYTES, USER_END};
use crate::memory::region::Access;
use crate::memory::space::FaultCause;
use crate::panic::report_kernel_exception;
use crate::process::ending::{kill_process, log_fatal_signal};
use crate::process::signal::{SIGBUS, SIGFPE, SIGILL, SIGKILL, SIGSEGV, SIGTRAP};
use crate::process::signal_frame::{FaultInformation, deliver_fault};
use crate::process::task::{Task, current_task};
use crate::schedule::scheduler;
use crate::synthesis;

/// Called by the stubs of `entry.s`.
// SAFETY: no other function has the name.
#[unsafe(no_mangle)]
extern "C" fn handle_trap(frame: &mut Frame) {
    if frame.vector < FIRST_INTERRUPT {
        if frame.is_of_program() {
            handle_fault(frame);
        } else {
            handle_kernel_exception(frame);
        }
    } else if frame.vector == u64::from(TIMER) {
        apic::end_interrupt();
        time::update_coarse_clock();
        // In the kernel the interrupt ends the idle loop's wait, and nothing more.
        if frame.is_of_program() {
            scheduler::end_quantum();
        }
    } else if frame.vector != u64::from(SPURIOUS) {
        report_kernel_exception(frame);
    }
    if frame.is_of_program() {
        return_from_interrupt(frame);
    }
}

/// What the error code of a page fault says.
fn access_of(error: u64) -> Access {
    const WRITE: u64 = 1 << 1;
    const INSTRUCTION: u64 = 1 << 4;
    if error & INSTRUCTION != 0 {
        Access::Execute
    } else if error & WRITE != 0 {
        Access::Write
    } else {
        Access::Read
    }
}

fn resolve(task: &Task, address: u64, access: Access) -> Result<(), FaultCause> {
    if address >= USER_END {
        return Err(FaultCause::Unmapped);
    }
    task.process.space.borrow_mut().resolve(address, access)
}

/// An exception of the program.
fn handle_fault(frame: &mut Frame) {
    let task = current_task();
    if frame.vector == PAGE_FAULT {
        handle_page_fault(&task, frame);
        return;
    }
    if frame.vector == DEVICE_NOT_AVAILABLE {
        scheduler::allow_vectors();
        return;
    }
    let (signal, code) = signal_of(frame.vector);
    let address = if frame.vector == GENERAL_PROTECTION { 0 } else { frame.rip };
    deliver_fault(&task, frame, signal, FaultInformation { code, address });
}

fn handle_page_fault(task: &Task, frame: &mut Frame) {
    const NOT_MAPPED: i32 = 1;
    const NOT_ALLOWED: i32 = 2;
    let address = processor::fault_address();
    let code = match resolve(task, address, access_of(frame.error)) {
        Ok(()) => return,
        Err(FaultCause::Unmapped) => NOT_MAPPED,
        Err(FaultCause::Denied) => NOT_ALLOWED,
        Err(FaultCause::OutOfMemory) => {
            log_fatal_signal(task, SIGKILL, format_args!("out of memory"));
            kill_process(SIGKILL)
        }
    };
    deliver_fault(task, frame, SIGSEGV, FaultInformation { code, address });
}

/// The signal of an exception, and its `si_code`, as Linux has them.
fn signal_of(vector: u64) -> (u8, i32) {
    const BY_KERNEL: i32 = 0x80;
    match vector {
        0 => (SIGFPE, 1),
        1 => (SIGTRAP, 1),
        3 => (SIGTRAP, BY_KERNEL),
        6 => (SIGILL, 2),
        16 | 19 => (SIGFPE, 7),
        17 => (SIGBUS, 1),
        _ => (SIGSEGV, BY_KERNEL),
    }
}

/// An exception of the kernel. A page fault on the program's memory provides the page, as one of the program would, or
/// continues where the exception table says.
fn handle_kernel_exception(frame: &mut Frame) {
    let landing =
        if synthesis::is_in_area(frame.rip) { synthesis::fix_up(frame.rip) } else { entry::fixup_of(frame.rip) };
    let address = processor::fault_address();
    match landing {
        // An address between the two halves, which routines do not look at before.
        Some(landing) if frame.vector == GENERAL_PROTECTION => frame.rip = landing,
        // Routines look at the sign of a single byte's address only, so that it may be in the last page of the lower
        // half.
        Some(landing) if frame.vector == PAGE_FAULT && address < USER_END + PAGE_BYTES => {
            // Self-tests run before the first program.
            let is_resolved =
                scheduler::is_running() && resolve(&current_task(), address, access_of(frame.error)).is_ok();
            if !is_resolved {
                frame.rip = landing;
            }
        }
        _ => report_kernel_exception(frame),
    }
}
