//! The flow IR of ESP programs: one control-flow graph per process, channel operations as terminators; its text
//! form, verifier, the one `step` function that defines the semantics, and the reference interpreter on it.
//! Knows no back end and does no I/O.
#![forbid(unsafe_code)]

pub mod datum;
mod instances;
pub mod ir;
pub mod lower;
pub mod world;
