//! Passes from flow IR to flow IR. The product explorer turns a group of instances into one process that does what
//! they do, without rendezvous: the concurrency is compiled away, and every engine runs the result as it runs any
//! program. Emits neither text nor bytes.
#![forbid(unsafe_code)]

pub mod batch;
pub mod facts;
pub mod fuse;
pub mod groups;
pub mod limits;
mod loops;
mod map;
mod marked;
mod messages;
mod moments;
pub mod order;
pub mod passes;
pub mod path;
pub mod path_exit;
pub mod path_spec;
mod placement;
mod places;
mod product;
mod ranges;
pub mod refusal;
mod report;
mod within;
