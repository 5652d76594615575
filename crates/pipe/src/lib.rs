//! Steps over data, composed at run time into one pass over memory.
//!
//! A [`Composer`] compiles a list of [`Step`]s to a [`Pipe`]: a function for these steps and this processor that reads
//! every byte once (integrated layer processing: Clark, Tennenhouse, "Architectural Considerations for a New Generation
//! of Protocols", SIGCOMM 1990). We differ from "VCODE" 4.3 (ASHs) in three ways: code uses the widest vectors of the
//! processor instead of words; the size of the data and hints of the caller determine how they are stored; and
//! [`mod@reference`] defines the result of every pipe, so that tests can compare.
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

pub use error::{EXPLANATIONS, Error, TextCode, TextDiagnostic};
pub use ir::UserStep;
pub use ir::text::Definitions;
pub use pipe::{Composer, Options, Pipe};
pub use policy::{Store, Temperature};
pub use report::{Outcome, Report, RunReport};
pub use runner::{Pass, Runner};
pub use step::{Key, MAX_STEPS, MAX_STREAMS, Step};
pub use text::read_pipe;
