//! The commands of `qj`, one file each.

pub(crate) mod check;
pub(crate) mod documents;
pub(crate) mod explain;
pub(crate) mod fmt;
pub(crate) mod graph;
