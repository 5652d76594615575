//! The reasons why a model cannot be checked at all.

use crate::domain::Unbounded;
use crate::instance_set::MAX_SET_INSTANCES;
use crate::ltl::BadProperty;
use quaject_esp_exec::step::TooLarge;

/// Why a program cannot be explored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// It is larger than any engine takes.
    TooLarge(TooLarge),
    /// These would need ranges.
    Unbounded(Vec<Unbounded>),
    /// A property does not say anything.
    Property(BadProperty),
    /// It has so many instances: more than runs that go on for ever are looked for with.
    TooMany(u32),
}

/// Most instances of programs of which runs that go on for ever are looked for.
pub const MAX_FAIR_INSTANCES: usize = MAX_SET_INSTANCES;

impl From<TooLarge> for Refusal {
    fn from(error: TooLarge) -> Refusal {
        Refusal::TooLarge(error)
    }
}
