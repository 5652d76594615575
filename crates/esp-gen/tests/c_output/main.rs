//! Generated C as its users see it: compiled by every available compiler with all warnings as errors, and under
//! sanitizers where they are available, and run.

mod golden;
mod memory;
mod names;
mod priority;
mod styles;
mod support;
