//! The system calls of Linux, on the general path. `table.rs` lists them; a call that it does not list is ENOSYS.

pub(crate) mod call;
pub(crate) mod dispatch;
mod file;
mod identity;
mod listing;
mod memory;
mod path;
mod process;
mod signal;
mod table;
mod thread;
mod time;
