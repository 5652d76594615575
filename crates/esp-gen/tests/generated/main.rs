//! Generated C as its users meet it: compiled by every compiler there is with all warnings as errors and under
//! sanitizers where they exist, run, read.

mod golden;
mod memory;
mod names;
mod priority;
mod styles;
mod support;
