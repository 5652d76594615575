//! A debug adapter for runs that the checker found, as a function from requests to messages. A run is known from its
//! start to its end, so that both directions cost the same. Does no I/O.
//!
//! ```text
//!   protocol      requests, and the numbered messages that answer them (Debug Adapter Protocol)
//!   debugged_run  a run with its stops, its configurations and the texts of its program
//!   breakpoints   lines and communications at which a session stops
//!   navigation    the position in the run, and the stop that a request leads to
//!   view          threads, stack frames and variables at a stop
//!   session       the requests
//! ```
#![forbid(unsafe_code)]

mod breakpoints;
mod debugged_run;
mod navigation;
mod protocol;
mod session;
mod view;

pub use debugged_run::{DebuggedRun, SourceText};
pub use protocol::{Launch, Request};
pub use session::{LaunchedRun, RunLoader, Session};
