//! Runs ESP programs: drivers at external channels, the event loop, extern functions, the engines.
//! Everything around a program that is not the program: the only ESP crate that does I/O or has `unsafe`.

pub mod disk;
pub mod files;
mod trouble;

pub use trouble::Trouble;
