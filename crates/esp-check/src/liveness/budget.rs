//! The limits and progress reports of a liveness search.

use crate::options::{Limit, Limits, Progress};
use crate::search::BETWEEN_PROGRESS;
use crate::timer::Stopwatch;

/// Nodes between two checks of the limits that cost a system call.
const NODES_BETWEEN_CHECKS: u32 = 64;

/// The nodes of the product so far, and the memory of all that is stored.
#[derive(Clone, Copy)]
pub(super) struct ProductSize {
    pub(super) nodes: u64,
    pub(super) bytes: u64,
}

/// The limits of a search, and its progress reports.
pub(super) struct SearchBudget<'c> {
    pub(super) limits: &'c Limits,
    pub(super) started: Stopwatch,
    pub(super) last_report: Stopwatch,
    pub(super) progress: &'c mut dyn FnMut(Progress),
}

impl SearchBudget<'_> {
    /// Checks the limits before a node of the product is expanded. `depth` is called for a progress report only.
    pub(super) fn check_node(&mut self, size: ProductSize, node: u32, depth: &dyn Fn() -> u32) -> Result<(), Limit> {
        let ProductSize { nodes, bytes } = size;
        if self.limits.states.is_some_and(|max| nodes > max) {
            return Err(Limit::States);
        }
        if !node.is_multiple_of(NODES_BETWEEN_CHECKS) {
            return if self.limits.bytes.is_some_and(|max| bytes > max) { Err(Limit::Memory) } else { Ok(()) };
        }
        if self.last_report.elapsed() > BETWEEN_PROGRESS {
            self.last_report.restart();
            (self.progress)(Progress { states: nodes, depth: depth(), bytes, elapsed: self.started.elapsed() });
        }
        self.check(bytes)
    }

    /// Whether a limit is reached with this memory.
    pub(super) fn check(&self, bytes: u64) -> Result<(), Limit> {
        if self.limits.bytes.is_some_and(|max| bytes > max) {
            return Err(Limit::Memory);
        }
        if self.limits.is_interrupted() {
            return Err(Limit::Interrupted);
        }
        match self.limits.time() {
            Some(max) if self.started.elapsed() > max => Err(Limit::Time),
            Some(_) | None => Ok(()),
        }
    }
}
