//! Generated pipes against the reference: on this machine between guard pages, on the others under emulators.
#![allow(missing_docs, unreachable_pub, reason = "modules of one test program")]

mod every;
mod floats;
mod lists;
mod machines;
mod memory;
mod oracle;
mod programs;
mod support;
