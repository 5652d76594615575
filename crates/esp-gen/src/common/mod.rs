//! What several back ends share. Knows none of them.

pub(crate) mod names;
