//! The limits and progress reports of a liveness search.

use super::product::Graph;
use crate::options::{Limit, Limits, Progress};
use crate::search::BETWEEN_PROGRESS;
use crate::timer::Stopwatch;

/// The limits of a search, and its progress reports.
pub(super) struct SearchBudget<'c> {
    pub(super) limits: &'c Limits,
    pub(super) started: Stopwatch,
    pub(super) last_report: Stopwatch,
    pub(super) progress: &'c mut dyn FnMut(Progress),
}

impl SearchBudget<'_> {
    /// Called before each node.
    pub(super) fn check_node(&mut self, graph: &Graph, at: u32, automaton: u64) -> Result<(), Limit> {
        let bytes = graph.bytes() + automaton;
        if self.limits.states.is_some_and(|most| graph.nodes.len() as u64 > most) {
            return Err(Limit::States);
        }
        if !at.is_multiple_of(64) {
            return if self.limits.bytes.is_some_and(|most| bytes > most) { Err(Limit::Memory) } else { Ok(()) };
        }
        if self.last_report.elapsed() > BETWEEN_PROGRESS {
            self.last_report.restart();
            let (states, depth) = (graph.nodes.len() as u64, graph.depth(at));
            (self.progress)(Progress { states, depth, bytes, elapsed: self.started.elapsed() });
        }
        self.check(bytes)
    }

    /// Whether a limit is reached with this memory.
    pub(super) fn check(&self, bytes: u64) -> Result<(), Limit> {
        if self.limits.bytes.is_some_and(|most| bytes > most) {
            return Err(Limit::Memory);
        }
        if self.limits.is_interrupted() {
            return Err(Limit::Interrupted);
        }
        match self.limits.time() {
            Some(most) if self.started.elapsed() > most => Err(Limit::Time),
            Some(_) | None => Ok(()),
        }
    }
}
