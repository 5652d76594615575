//! `qj replay` of a counterexample: steps through it in a terminal, or prints it.

use super::models::unknown_name;
use super::report::concretize;
use super::stepper;
use crate::terminal::{CliError, Status, Terminal, print_verdict};
use quaject_esp::{ModelSelection, PartSelection};
use quaject_esp_check::Options;
use quaject_esp_check::counterexample_file::{CounterexampleFile, ExploredPart, ParseError};
use quaject_esp_run::disk::open_recorded;
use quaject_esp_run::{HostCode, HostError};
use std::io::{self, IsTerminal};

/// Replays a counterexample on its program.
pub(crate) fn replay_counterexample(terminal: &Terminal, name: &str, text: &str) -> Result<Status, CliError> {
    let malformed = |error: ParseError| {
        CliError::from(
            HostError::new(HostCode::Content, format!("{name}:{}: {}", error.line, error.message))
                .help("counterexamples are made by `qj verify --trace FILE`; make this one again"),
        )
    };
    let file = CounterexampleFile::parse(text).map_err(malformed)?;
    let (source, mut disk) = open_recorded(&file.files).expect("a counterexample without files is refused");
    let scope = file.part.as_ref().map(|part| match part {
        ExploredPart::Process(process) => PartSelection::Process(process.clone()),
        ExploredPart::Slice(processes) => PartSelection::Slice(processes.clone()),
    });
    let subject = ModelSelection { model: file.model.clone(), scope };
    let modelled = quaject_esp::models_with_variables(source, &mut disk, &subject).map_err(unknown_name)?;
    let Some(models) = &modelled.models else {
        terminal.print_diagnostics(&modelled.sources, &modelled.diagnostics);
        return Ok(Status::Failed);
    };
    let Some(model) = models.first() else { return Ok(Status::Failed) };
    let replayed = file
        .configurations(model)
        .map_err(|error| CliError::from(HostError::new(HostCode::Replay, error.to_string())))?;
    let (found, configurations) = replayed.map_err(malformed)?;
    if io::stdin().is_terminal() && io::stdout().is_terminal() {
        let shown = stepper::step_through(model, &found, &configurations);
        shown.map_err(|error| {
            CliError::from(HostError::new(HostCode::System, format!("the terminal cannot be used: {error}")))
        })?;
    }
    print_verdict(found.text(model).as_bytes())?;
    if let Some(concretization) = concretize(&modelled, model, &found, &Options::default()) {
        print_verdict(format!("{}\n", concretization.text()).as_bytes())?;
    }
    Ok(Status::Fault)
}
