//! Limits of files that calls and synthesised code know.

/// The number of descriptors that a process may have.
pub(crate) const MAX_DESCRIPTORS: usize = 1024;
