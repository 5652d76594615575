//! What a user reads of fusion, loop unrolling and fast paths: one line for each attempt, refusal and exit. The algorithms
//! return data; this module has the words.

mod fusion;
mod paths;
mod refusal;
mod unrolling;
