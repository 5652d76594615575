//! Synthesised routines on the host, where they are called instead of entered by `syscall`.
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]
#![allow(unreachable_pub, missing_docs, reason = "modules of one test program")]

mod gate;
mod host;
mod ready;
mod stream;
