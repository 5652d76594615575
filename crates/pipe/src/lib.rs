//! Steps over data, composed at run time into one pass over memory.
//!
//! A [`Composer`] makes a [`Pipe`] of a list of [`Step`]s: a function, written for these steps and this processor, that
//! reads every byte once. "VCODE" 4.3 (ASHs) is the idea; we differ in three ways. Code is for vectors as wide as the
//! processor's, not for words; how data are stored is decided by their size and by what the caller knows of them; and
//! [`mod@reference`] says what every pipe does, so that tests can compare.
//!
#![doc = include_str!("../README.md")]

#[cfg(feature = "c")]
mod c;
mod compose;
mod crc32c;
#[doc(hidden)]
pub mod cross;
mod error;
mod frame;
pub mod handler;
pub mod ir;
mod lists;
mod pipe;
mod plan;
mod policy;
pub mod reference;
mod report;
mod runner;
mod step;
mod text;

pub use error::{Error, TextCode, TextDiagnostic};
pub use ir::UserStep;
pub use ir::text::Definitions;
pub use pipe::{Composer, Options, Pipe};
pub use policy::{Store, Temperature};
pub use report::{Outcome, Report, RunReport};
pub use runner::{Pass, Runner};
pub use step::{Key, MAX_STEPS, MAX_STREAMS, Step};
pub use text::read_pipe;
