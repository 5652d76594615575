//! Packet filters by the thousand, merged into one classifier whose machine code is generated for exactly these
//! filters. Packets are bytes; only `af_xdp`, `pcap` and `capture` depend on where packets come from.
//!
#![doc = include_str!("../README.md")]

#[cfg(all(feature = "af-xdp", target_os = "linux"))]
pub mod af_xdp;
pub mod bpf;
#[cfg(feature = "c")]
mod c;
#[cfg(feature = "pcap")]
pub mod candidates;
#[cfg(feature = "capture")]
pub mod capture;
#[cfg(feature = "pcap")]
pub mod check;
mod chunk_code;
mod classifier;
#[cfg(target_arch = "x86_64")]
mod emit;
mod epoch;
mod error;
mod explain;
#[cfg(all(feature = "fuzz", target_os = "linux"))]
pub mod fuzz;
mod generate;
mod group;
pub mod ir;
mod layout;
mod lift;
pub mod link;
mod packet;
#[cfg(feature = "pcap")]
pub mod pcap;
mod perfect;
mod published;
mod ranges;
#[cfg(feature = "pcap")]
pub mod rules;
mod section;
mod shape;
mod stage;
mod sync;
mod table;
mod template;
mod types;
mod writer;
pub mod xdp;

pub use classifier::{Classifier, Reader, View};
pub use error::{EXPLANATIONS, Error};
pub use ir::{Expression, Filter, Scope};
pub use packet::Packet;
pub use types::{Engine, Id, Match, Stats};
