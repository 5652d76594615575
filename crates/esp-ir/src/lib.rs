//! The flow IR of ESP programs: one control-flow graph per process, channel operations as terminators. Its text form
//! and reader, verifier, visitors, and analyses of its graphs; models of programs and the syntax of their properties.
//! Executes nothing, knows no front end and does no I/O.
#![forbid(unsafe_code)]

/// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub mod access;
pub mod cfg;
pub mod dataflow;
pub mod dominators;
pub mod facts;
pub mod faults;
pub mod graph;
pub mod inequalities;
mod instances;
pub mod intervals;
pub mod ir;
pub mod length_ssa;
mod lexer;
pub mod liveness;
pub mod loops;
pub mod ltl;
pub mod model;
pub mod pool_recheck;
pub mod read;
pub mod sets;
pub mod simplify_cfg;
pub mod small_map;
pub mod text;
pub mod typing;
pub mod verify;
pub mod visit;
