//! The reasons why a model cannot be checked at all.

use crate::domain::Unbounded;
use crate::instance_set::MAX_SET_INSTANCES;
use crate::ltl::BadProperty;
use quaject_esp_exec::step::TooLarge;

/// Why a model cannot be checked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// It exceeds the limits of every engine.
    TooLarge(TooLarge),
    /// These values need ranges.
    Unbounded(Vec<Unbounded>),
    /// A property is malformed.
    Property(BadProperty),
    /// It has this many instances, more than [`MAX_FAIR_INSTANCES`].
    TooMany(u32),
}

/// Most instances in a check of liveness.
///
pub const MAX_FAIR_INSTANCES: usize = MAX_SET_INSTANCES;

impl From<TooLarge> for Refusal {
    fn from(error: TooLarge) -> Refusal {
        Refusal::TooLarge(error)
    }
}
