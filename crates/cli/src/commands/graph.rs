//! `qj graph`

use crate::arguments::Graph;
use crate::terminal::{Status, Stop, Terminal, deliver};
use quaject_esp_run::disk::open_program;

pub(crate) fn graph(terminal: &Terminal, arguments: Graph) -> Result<Status, Stop> {
    super::keep_apart(&arguments.file, arguments.output.as_deref())?;
    let (source, mut disk) = open_program(&arguments.file, &[]).map_err(Stop::at)?;
    let checked = quaject_esp::check(source, &mut disk);
    terminal.diagnostics(&checked.sources, &checked.diagnostics);
    let Some(program) = checked.program else { return Ok(Status::Wrong) };
    let picture = quaject_esp::graph(&program);
    deliver(arguments.output.as_deref(), &picture)?;
    Ok(Status::Done)
}
