//! Counterexample files: `qj replay` steps through one in a terminal, or prints it; `qj dap` opens one for its client.

use super::models::unknown_name;
use super::report::concretize;
use super::stepper;
use crate::terminal::{CliError, Status, Terminal, print_verdict};
use quaject_esp::{LoweredModels, ModelSelection, PartSelection};
use quaject_esp_check::counterexample_file::{CounterexampleFile, ExploredPart, ParseError};
use quaject_esp_check::{Configuration, Counterexample, Options};
use quaject_esp_ir::model::ModelProgram;
use quaject_esp_run::disk::open_recorded;
use quaject_esp_run::{HostCode, HostError};
use std::io::{self, IsTerminal};

/// A counterexample with its program, and the configurations of the run.
pub(crate) struct ReplayedRun {
    pub(crate) modelled: LoweredModels,
    pub(crate) model: ModelProgram,
    pub(crate) found: Counterexample,
    /// Before the first step and after each step.
    pub(crate) configurations: Vec<Configuration>,
    /// Name and text of every source file, the root first.
    pub(crate) files: Vec<(String, String)>,
}

/// Why a counterexample cannot be opened.
pub(crate) enum OpenError {
    /// An error without a place in the program.
    Host(CliError),
    /// Its program has errors.
    Program(Box<LoweredModels>),
}

impl From<HostError> for OpenError {
    fn from(error: HostError) -> OpenError {
        OpenError::Host(CliError::from(error))
    }
}

/// Reads a counterexample file of this name and replays its run.
pub(crate) fn open_counterexample(name: &str, text: &str) -> Result<ReplayedRun, OpenError> {
    let malformed = |error: ParseError| {
        HostError::new(HostCode::Content, format!("{name}:{}: {}", error.line, error.message))
            .help("counterexamples are made by `qj verify --trace FILE`; make this one again")
    };
    let file = CounterexampleFile::parse(text).map_err(malformed)?;
    let (source, mut disk) = open_recorded(&file.files).expect("a counterexample without files is refused");
    let scope = file.part.as_ref().map(|part| match part {
        ExploredPart::Process(process) => PartSelection::Process(process.clone()),
        ExploredPart::Slice(processes) => PartSelection::Slice(processes.clone()),
    });
    let subject = ModelSelection { model: file.model.clone(), scope };
    let modelled = quaject_esp::models_with_variables(source, &mut disk, &subject)
        .map_err(|missing| OpenError::Host(unknown_name(missing)))?;
    let Some(model) = modelled.models.as_ref().and_then(|models| models.first()).cloned() else {
        return Err(OpenError::Program(Box::new(modelled)));
    };
    let replayed = file.configurations(&model).map_err(|error| HostError::new(HostCode::Replay, error.to_string()))?;
    let (found, configurations) = replayed.map_err(malformed)?;
    Ok(ReplayedRun { modelled, model, found, configurations, files: file.files })
}

/// Replays a counterexample on its program.
pub(crate) fn replay_counterexample(terminal: &Terminal, name: &str, text: &str) -> Result<Status, CliError> {
    let ReplayedRun { modelled, model, found, configurations, files: _ } = match open_counterexample(name, text) {
        Ok(run) => run,
        Err(OpenError::Host(error)) => return Err(error),
        Err(OpenError::Program(modelled)) => {
            terminal.print_diagnostics(&modelled.sources, &modelled.diagnostics);
            return Ok(Status::Failed);
        }
    };
    if io::stdin().is_terminal() && io::stdout().is_terminal() {
        let shown = stepper::step_through(&model, &found, &configurations);
        shown.map_err(|error| {
            CliError::from(HostError::new(HostCode::System, format!("the terminal cannot be used: {error}")))
        })?;
    }
    print_verdict(found.text(&model).as_bytes())?;
    if let Some(concretization) = concretize(&modelled, &model, &found, &Options::default()) {
        print_verdict(format!("{}\n", concretization.text()).as_bytes())?;
    }
    Ok(Status::Fault)
}
