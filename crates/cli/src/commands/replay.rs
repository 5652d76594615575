//! `qj replay`: repeats a recorded run, or shows a counterexample.

use super::run::report_outcome;
use crate::arguments::Replay;
use crate::terminal::{CliError, Status, Terminal};
use quaject_esp::{Compiled, Emit, Options};
use quaject_esp_check::counterexample_file::CounterexampleFile;
use quaject_esp_run::disk::open_recorded;
use quaject_esp_run::files::read_text;
use quaject_esp_run::{Recording, RunOutcome, Settings};
use quaject_esp_syntax::diagnostics::Severity;
use std::io::{self, BufWriter, Write};

pub(crate) fn replay(terminal: &Terminal, arguments: Replay) -> Result<Status, CliError> {
    let name = arguments.file.display().to_string();
    let text = read_text(&arguments.file)?;
    if CounterexampleFile::has_header(&text) {
        return super::verify::replay::replay_counterexample(terminal, &name, &text);
    }
    let recording = Recording::parse(&name, &text)?;
    let header = recording.header.clone();
    let settings = Settings { seed: header.seed, checks: header.checks, ..Settings::default() };

    let (source, mut disk) = open_recorded(&header.files).expect("a recording without files is refused");
    let Compiled { sources, diagnostics, outputs } = quaject_esp::compile(source, &mut disk, &Options::new(Emit::Ir));
    let errors: Vec<_> =
        diagnostics.into_iter().filter(|diagnostic| diagnostic.severity() == Severity::Error).collect();
    terminal.print_diagnostics(&sources, &errors);
    let outputs = outputs.map_err(|reason| super::compile_error(&arguments.file, reason))?;

    let mut output = BufWriter::new(io::stdout().lock());
    let outcome = quaject_esp_run::replay(&outputs.ir, &settings, recording, &mut output)?;
    // A closed pipe does not change the result of the replay.
    let _ = output.flush();
    match outcome {
        RunOutcome::Failed(difference) => Err(CliError::from(difference)),
        outcome => Ok(report_outcome(terminal, &outputs.ir, &sources, outcome)),
    }
}
