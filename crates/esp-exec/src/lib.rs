//! Execution of the flow IR: `step`, the one function that defines the semantics; the reference interpreter on it, with
//! entries into machine code; the state of a run, its snapshots, traces and reports. Knows no back end and does no I/O.
#![forbid(unsafe_code)]

/// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod code;
mod commit;
mod constants;
pub mod coverage;
mod dangling;
pub mod datum;
mod enabled;
pub mod environment;
mod environment_io;
mod execute;
pub mod explore;
mod fast_path;
pub mod footprint;
mod frame;
pub mod interpreter;
mod layout;
mod matching;
pub mod message_log;
pub mod native;
pub mod observer;
pub mod path_counters;
mod pools;
pub mod priority;
pub mod profile;
mod quiescence;
pub mod replay;
pub mod report;
mod snapshot;
mod speculate;
mod state;
pub mod step;
pub mod trace;
mod values;
