//! The types that a classifier and its stages share: filter numbers, matches, engines, statistics, and the signatures
//! of generated code. Knows neither how packets are classified nor how code is generated.

use std::fmt;

/// The number of a filter in its classifier. Numbers are allocated in order; those of removed filters are reused.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Id(pub(crate) u32);

impl Id {
    /// The number.
    pub fn number(self) -> u32 {
        self.0
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// The result of a classification: the matching filter with the best priority, or none.
///
/// The rank in one word: priority above, complement of the number below, so that a higher priority is better, and of
/// equal ones the filter with the smaller number.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
#[repr(transparent)]
pub struct Match(pub(crate) u64);

impl Match {
    /// No filter matches.
    pub const NONE: Match = Match(0);

    pub(crate) const fn rank(priority: u32, id: u32) -> u64 {
        (priority as u64) << 32 | !id as u64
    }

    /// The filter.
    #[inline]
    pub fn id(self) -> Option<Id> {
        if self.0 == 0 { None } else { Some(Id(!(self.0 as u32))) }
    }

    /// Its priority.
    #[inline]
    pub fn priority(self) -> Option<u32> {
        if self.0 == 0 { None } else { Some((self.0 >> 32) as u32) }
    }
}

impl fmt::Debug for Match {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.id(), self.priority()) {
            (Some(id), Some(priority)) => write!(f, "Match({id}, priority {priority})"),
            _ => write!(f, "Match(none)"),
        }
    }
}

/// The engine that classifies packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Engine {
    /// Generated code where it can be generated, else the interpreter.
    #[default]
    Code,
    /// The interpreter.
    Interpreter,
}

/// Statistics of a classifier.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// Filters.
    pub filters: usize,
    /// Groups of filters, or parts of filters, of one shape.
    pub groups: usize,
    /// Filters that are programs, run one by one.
    pub programs: usize,
    /// Chunks: the units of code generation.
    pub chunks: usize,
    /// How many of them are interpreted, because no code could be generated.
    pub interpreted: usize,
    /// Bytes of generated code.
    pub code_bytes: usize,
    /// Bytes of tables.
    pub table_bytes: usize,
    /// How often code has been generated.
    pub generations: u64,
    /// Retired objects that are kept because a reader may still use them.
    pub waiting: usize,
}

/// The generated code of a chunk: data, length, wire length, best rank so far; returns the best rank.
pub(crate) type Classify = unsafe extern "C" fn(*const u8, u64, u64, u64) -> u64;
/// The same for an array of packets: the packets, their number, the array of ranks.
pub(crate) type ClassifyMany = unsafe extern "C" fn(*const u8, u64, *mut u64);
