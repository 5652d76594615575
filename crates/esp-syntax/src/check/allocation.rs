//! Allocations that no guard protects (reference, section 6, W0904).

use super::names::Checker;

/// Warns about them.
pub(super) fn check(_checker: &mut Checker) {}
