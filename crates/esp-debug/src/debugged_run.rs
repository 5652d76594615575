//! The run of a session: what the checker found, with its stops and the texts of its program.

use quaject_esp_check::{Configuration, Counterexample, InstanceStatus, Stop, stops};
use quaject_esp_exec::step::Control;
use quaject_esp_ir::ir::{Location, Program};
use quaject_esp_ir::model::ModelProgram;
use std::collections::BTreeSet;

/// A file of the program, as it was when the run was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SourceText {
    /// Its name in the program.
    pub name: String,
    /// Its text.
    pub text: String,
    /// The absolute path of a file that still has this text.
    pub path: Option<String>,
}

/// A run to debug.
#[derive(Debug)]
pub struct DebuggedRun {
    pub(crate) model: ModelProgram,
    pub(crate) found: Counterexample,
    pub(crate) sources: Vec<SourceText>,
    /// The stops, the start first.
    pub(crate) stops: Vec<Stop>,
    configurations: Vec<Configuration>,
    /// The source of each file of the program.
    sources_of_files: Vec<Option<usize>>,
}

impl DebuggedRun {
    /// A run with its configurations, before the first step and after each step.
    pub fn new(
        model: ModelProgram,
        found: Counterexample,
        configurations: Vec<Configuration>,
        sources: Vec<SourceText>,
    ) -> DebuggedRun {
        let stops = stops(&model.program, &found, configurations.len());
        let source_of = |name: &String| sources.iter().position(|source| source.name == *name);
        let sources_of_files = model.program.files.iter().map(source_of).collect();
        DebuggedRun { model, found, sources, stops, configurations, sources_of_files }
    }

    pub(crate) fn program(&self) -> &Program {
        &self.model.program
    }

    /// The instances that are not omitted, in order.
    pub(crate) fn instances(&self) -> impl Iterator<Item = u32> {
        let first = self.configurations.first().map_or(&[][..], |configuration| &configuration.instances);
        let is_shown = |status: &InstanceStatus| status.control != Control::Ended || !status.variables.is_empty();
        (0..).zip(first).filter(move |(_, status)| is_shown(status)).map(|(instance, _)| instance)
    }

    /// An instance at a stop.
    pub(crate) fn status(&self, stop: usize, instance: u32) -> Option<&InstanceStatus> {
        let configuration = self.configurations.get(self.stops.get(stop)?.configuration)?;
        configuration.instances.get(instance as usize)
    }

    /// The number of the last stop.
    pub(crate) fn last(&self) -> usize {
        self.stops.len() - 1
    }

    /// The first stop in the cycle of an infinite run.
    pub(crate) fn cycle(&self) -> Option<usize> {
        let cycle = self.found.cycle?;
        self.stops.iter().position(|stop| stop.step.is_some_and(|step| step >= cycle))
    }

    /// Source and line of a location; none for generated code.
    pub(crate) fn source_line(&self, location: Location) -> Option<(usize, u32)> {
        let source = *self.sources_of_files.get(usize::from(location.file))?;
        (location.line > 0).then_some((source?, location.line))
    }

    /// The lines of a source at which a process can wait.
    pub(crate) fn waiting_lines(&self, source: usize) -> BTreeSet<u32> {
        let blocks = self.program().processes.iter().flat_map(|process| &process.body.blocks);
        let branches = blocks.filter_map(|block| block.terminator.as_wait()).flat_map(|wait| &wait.branches);
        let lines = branches.filter_map(|branch| self.source_line(branch.location));
        lines.filter(|(other, _)| *other == source).map(|(_, line)| line).collect()
    }
}
