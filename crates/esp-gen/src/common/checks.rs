//! Which arithmetic the generated code checks.

/// Which arithmetic faults.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Checks {
    /// Signed overflow, shift counts outside the width, layout stores that lose bits.
    Overflow,
    /// None: arithmetic wraps.
    None,
}
