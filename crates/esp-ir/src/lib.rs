//! The flow IR of ESP programs: one control-flow graph per process, channel operations as terminators; its text
//! form, verifier, the one `step` function that defines the semantics, and the reference interpreter on it.
//! Knows no back end and does no I/O.
#![forbid(unsafe_code)]

pub mod adopt;
mod code;
mod commit;
pub mod coverage;
pub mod datum;
pub mod dominators;
mod execute;
pub mod exhaustion;
pub mod explore;
pub mod footprint;
pub mod graph;
mod instances;
pub mod interpreter;
pub mod ir;
mod lexer;
pub mod liveness;
pub mod lost;
pub mod lower;
mod matching;
pub mod model;
pub mod native;
pub mod observer;
mod outside;
mod path;
pub mod priority;
pub mod profile;
pub mod read;
mod renumber;
pub mod replay;
pub mod report;
mod rest;
mod retire;
mod search;
mod sets;
mod snapshot;
pub mod step;
mod store;
pub mod text;
pub mod trace;
mod trial;
pub mod typing;
pub mod verify;
pub mod visit;
pub mod world;
