//! Sections: the units of the writer, each of which becomes a stage of a chunk. Knows no classifier.

use crate::group::Group;
use crate::ranges::Ranges;
use crate::stage::{ProgramFilter, Stage};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The maximum number of stages of a chunk, which is generated anew when a shape is added to it.
pub(crate) const MAX_STAGES: usize = 16;
/// Programs of more instructions have chunks of their own.
const LONG_PROGRAM: usize = 200;

/// Filters of one shape, or one program.
#[derive(Debug)]
pub(crate) enum Kind {
    Group(Box<Group>),
    Program(Arc<ProgramFilter>),
    Ranges(RangeSet),
}

/// Filters that differ in ranges and prefixes.
#[derive(Debug)]
pub(crate) struct RangeSet {
    pub(crate) ranges: Arc<Ranges>,
    /// The number of filters that were not removed.
    pub(crate) members: usize,
    /// An upper bound of their ranks.
    pub(crate) best: u64,
}

/// One stage, as the writer sees it.
#[derive(Debug)]
pub(crate) struct Section {
    pub(crate) kind: Kind,
    pub(crate) chunk: usize,
}

impl Section {
    pub(crate) fn best(&self) -> u64 {
        match &self.kind {
            Kind::Group(group) => group.best(),
            // Pairs with nothing: only the writer stores.
            Kind::Program(filter) => filter.rank.load(Ordering::Relaxed),
            Kind::Ranges(set) => set.best,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        match &self.kind {
            Kind::Group(group) => group.members() == 0,
            Kind::Program(filter) => filter.rank.load(Ordering::Relaxed) == 0,
            Kind::Ranges(set) => set.members == 0,
        }
    }

    /// The most stages of a chunk with this one.
    pub(crate) fn max_stages(&self) -> usize {
        match &self.kind {
            Kind::Program(filter) if filter.program.operations().len() > LONG_PROGRAM => 1,
            Kind::Ranges(set) if set.ranges.tree.is_some() => 1,
            Kind::Group(_) | Kind::Program(_) | Kind::Ranges(_) => MAX_STAGES,
        }
    }

    /// Whether no section may follow it in its chunk: ranges with a tree, which is searched before the code is called.
    pub(crate) fn closes(&self) -> bool {
        matches!(&self.kind, Kind::Ranges(set) if set.ranges.tree.is_some())
    }

    pub(crate) fn stage(&self) -> Stage {
        match &self.kind {
            Kind::Group(group) => Stage::Group(Arc::clone(group.data())),
            Kind::Program(filter) => Stage::Program(Arc::clone(filter)),
            Kind::Ranges(set) => Stage::Ranges(Arc::clone(&set.ranges)),
        }
    }
}
