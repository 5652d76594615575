//! Transformations from flow IR to flow IR. Generates no code, in text or bytes.
//!
//! ```text
//!   facts, channel_ranges                     intervals: of a value, of the values of all processes
//!   possible_faults                           which instructions of a program may fault
//!   observability                             whether the schedule of a program is observable
//!   limits, refusal, path_spec, path_exit,
//!   placement, places                         the data types that the product shares with its users
//!   absolute_deadlines, label_instances       preparation of the members of a product
//!   passes, loop_versioning                   passes over one body
//!   product                                   the product of several instances, by abstract interpretation
//!   fuse, groups                              fusion: a group of processes becomes one, on the product
//!   path                                      fast paths, on the product
//!   report                                    the texts of reports on all of the above
//! ```
#![forbid(unsafe_code)]

/// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod absolute_deadlines;
mod channel_ranges;
pub mod fuse;
pub mod groups;
mod label_instances;
pub mod limits;
pub mod loop_versioning;
pub mod observability;
pub mod passes;
pub mod path;
pub mod path_exit;
pub mod path_spec;
mod placement;
mod places;
pub mod possible_faults;
mod product;
pub mod refusal;
mod report;

pub use quaject_esp_ir::facts;
