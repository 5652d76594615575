//! Execution of the flow IR: `step`, the one function that defines the semantics; the reference interpreter on it, with
//! entries into machine code; the state of a run, its snapshots, traces and reports. Knows no back end and does no I/O.
#![forbid(unsafe_code)]

pub mod adopt;
mod code;
mod commit;
pub mod coverage;
pub mod datum;
mod execute;
pub mod explore;
pub mod footprint;
pub mod interpreter;
pub mod lost;
mod matching;
pub mod native;
pub mod observer;
mod outside;
mod path;
pub mod priority;
pub mod profile;
mod renumber;
pub mod replay;
pub mod report;
mod rest;
mod retire;
mod search;
mod snapshot;
pub mod step;
mod store;
pub mod trace;
mod trial;
pub mod world;
