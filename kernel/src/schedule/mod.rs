//! Threads and which of them runs. Knows no process, no call and no file.

pub(crate) mod alarm;
pub(crate) mod queue;
pub(crate) mod scheduler;
pub(crate) mod thread;
