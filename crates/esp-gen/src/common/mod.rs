//! What several back ends share. Knows none of them.

mod checks;
pub(crate) mod names;

pub use checks::Checks;
