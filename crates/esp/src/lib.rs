//! The ESP compiler as one function. Does no I/O.
#![forbid(unsafe_code)]
