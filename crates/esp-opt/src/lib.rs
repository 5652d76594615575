//! Passes from flow IR to flow IR. Emits neither text nor code of a machine.
//!
//! ```text
//!   facts, ranges, within, channel_ranges     intervals: of a value, a body, a program
//!   observability                             whether the schedule of a program is observable
//!   limits, refusal, path_spec, path_exit,
//!   placement, places                         the vocabulary that the product shares with its users
//!   passes, loop_versioning                   passes over one body
//!   product                                   the product of several instances, by abstract interpretation
//!   fuse, groups                              fusion: a group of processes becomes one, on the product
//!   path                                      fast paths, on the product
//!   report                                    all of the above in words
//! ```
#![forbid(unsafe_code)]

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
mod product;
pub mod refusal;
mod report;

pub use quaject_esp_ir::facts;
