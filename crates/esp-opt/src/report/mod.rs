//! The texts of reports on fusion, loop unrolling and fast paths: one line for each attempt, refusal and exit. The
//! algorithms return data; this module formats it.

mod fusion;
mod paths;
mod refusal;
mod unrolling;
