//! The end of threads and of the program. There is one process: with it the machine ends.

use super::task::{Task, current_task};
use crate::checks;
use crate::counts;
use crate::log::log;
use crate::memory::user;
use crate::outcome::{Outcome, end_machine};
use crate::schedule::scheduler;

/// Reports what was counted. The image that is tested also looks at the program's page tables once more.
fn finish() {
    counts::report();
    if cfg!(debug_assertions) {
        checks::check_protection();
    }
}

/// Ends the program.
pub(crate) fn exit_process(status: u8) -> ! {
    finish();
    end_machine(Outcome::Exited(status))
}

/// Ends the program by a signal.
pub(crate) fn kill_process(signal: u8) -> ! {
    finish();
    end_machine(Outcome::Killed(signal))
}

/// Ends the thread that runs, and the program if it is the last one.
pub(crate) fn exit_thread(status: u8) -> ! {
    if scheduler::thread_count() == 1 {
        exit_process(status);
    }
    // Nothing may be held when the thread ends: it does not come back.
    announce(&current_task());
    scheduler::end_current()
}

/// Writes a zero where the program waits for it, and wakes a thread that does.
fn announce(task: &Task) {
    let address = task.clear_at.get();
    if address != 0 && user::write(address, &0_u32).is_ok() {
        task.process.futexes.wake(address, 1, u32::MAX);
    }
}

/// Reports why a program is ended that did not ask for it.
pub(crate) fn log_fatal_signal(task: &Task, signal: u8, reason: core::fmt::Arguments<'_>) {
    log!(
        "thread {} of `{}`: signal {signal}: {reason}",
        task.id,
        alloc::string::String::from_utf8_lossy(&task.process.program)
    );
}
