//! Random well-typed ESP programs, each run by the interpreter and as generated C. Every trace of the C program is one
//! the interpreter can replay; programs whose choices cannot be seen show the same on both.
#![forbid(unsafe_code)]

pub mod c;
pub mod compare;
pub mod environment;
pub mod explore;
pub mod externs;
pub mod generate;
pub mod interpret;
pub mod marshal;
pub mod modes;
pub mod prove;
pub mod talkative;
