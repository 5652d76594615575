//! x
use super::names::Checker;
/// x
pub(super) fn check(_checker: &mut Checker) {}
