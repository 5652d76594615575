//! Files, all in memory, and what else has a descriptor. Knows threads only as waiters; knows no process and no call.

mod contents;
pub(crate) mod descriptors;
pub(crate) mod device;
pub(crate) mod directory;
pub(crate) mod limits;
pub(crate) mod location;
mod name_cache;
pub(crate) mod node;
pub(crate) mod open_file;
pub(crate) mod path;
pub(crate) mod pipe;
pub(crate) mod populate;
pub(crate) mod random;
pub(crate) mod status;
