//! Intervals of numbers, as the analyses of the compiler exchange them.

/// Lower and upper bound, both included.
pub(super) type Interval = (i128, i128);
