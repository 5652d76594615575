//! The end of a kernel that has failed: where, why, the registers and the return addresses.

use crate::arch::frame::Frame;
use crate::arch::interrupts::{PAGE_FAULT, exception_name};
use crate::arch::processor;
use crate::log::log;
use crate::outcome::{Outcome, end_machine};
use crate::synthesis;
use core::panic::PanicInfo;

/// Reports an exception of the kernel itself and ends the machine.
pub(crate) fn report_kernel_exception(frame: &Frame) -> ! {
    log!("kernel fault: {} (vector {})", exception_name(frame.vector), frame.vector);
    if frame.vector == PAGE_FAULT {
        log!("address {:016x}", processor::fault_address());
    }
    log!("{frame}");
    if let Some(routine) = synthesis::describe_at(frame.rip) {
        log!("in the routine {routine}");
    }
    end_machine(Outcome::KernelFault)
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    log!("kernel fault: {info}");
    end_machine(Outcome::KernelFault)
}
