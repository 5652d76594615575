//! What `qj explain CODE` says.
