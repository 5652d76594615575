//! Back ends: flow IR in, bytes and text out. Executes nothing and optimises nothing.
#![forbid(unsafe_code)]
