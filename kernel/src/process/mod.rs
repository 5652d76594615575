//! Processes: what the threads of a program share, how it starts, its signals and its end.

pub(crate) mod ending;
pub(crate) mod exec;
pub(crate) mod futex;
pub(crate) mod initial_stack;
pub(crate) mod process_state;
pub(crate) mod signal;
pub(crate) mod signal_frame;
pub(crate) mod signal_queue;
pub(crate) mod task;
