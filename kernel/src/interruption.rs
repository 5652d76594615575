//! The error of a call that a signal has interrupted before it did anything. Programs do not see it: the call begins
//! again, or, if the handler does not want that, fails with EINTR.

use syscalls::Errno;

/// Linux's ERESTARTSYS.
const RESTART: i32 = 512;

/// The error.
pub(crate) fn interrupted() -> Errno {
    Errno::new(RESTART)
}

/// Whether a result in a register is the error.
pub(crate) fn is_interrupted(result: u64) -> bool {
    result as i64 == -i64::from(RESTART)
}
