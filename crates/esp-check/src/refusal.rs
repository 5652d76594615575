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
    /// It has this many instances, more than [`MAX_CHECKED_INSTANCES`].
    TooMany(u32),
}

/// The maximum number of instances of a liveness or refinement check.
pub const MAX_CHECKED_INSTANCES: usize = MAX_SET_INSTANCES;

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Refusal::TooLarge(error) => write!(f, "{error}"),
            Refusal::Unbounded(missing) => {
                write!(f, "{} values of the environment need ranges in the model", missing.len())
            }
            Refusal::Property(error) => write!(f, "{error}"),
            Refusal::TooMany(instances) => {
                write!(f, "the model has {instances} instances; at most {MAX_CHECKED_INSTANCES} can be checked")
            }
        }
    }
}

impl std::error::Error for Refusal {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Refusal::TooLarge(error) => Some(error),
            Refusal::Property(error) => Some(error),
            Refusal::Unbounded(_) | Refusal::TooMany(_) => None,
        }
    }
}

impl From<TooLarge> for Refusal {
    fn from(error: TooLarge) -> Refusal {
        Refusal::TooLarge(error)
    }
}
