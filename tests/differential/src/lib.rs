//! Differential testing: random well-typed ESP programs, each run by the interpreter and as generated C. The
//! interpreter replays every trace of the C program; programs whose choices are unobservable have the same output on
//! both.
#![forbid(unsafe_code)]

pub mod c;
pub mod compare;
pub mod environment;
pub mod explore;
pub mod externs;
pub mod generate;
pub mod interpret;
pub mod machine;
pub mod marshal;
pub mod modes;
pub mod prove;
pub mod repository;
pub mod soak;
pub mod talkative;
