//! Small programs and what the checker says of them: each property with a program that has it and one that has not.

mod abstractions;
mod endless;
mod faults;
mod patience;
mod planted;
mod runs;
mod support;
mod threads;
