//! `qj graph`

use super::run::options;
use crate::arguments::{Graph, ModeChoice};
use crate::terminal::{CliError, Status, Terminal, deliver};
use quaject_esp::{Emit, NoPicture, Optimiser, Options};
use quaject_esp_run::HostError;
use quaject_esp_run::disk::open_program;

pub(crate) fn graph(terminal: &Terminal, arguments: Graph) -> Result<Status, CliError> {
    super::reject_aliased_files(&arguments.file, arguments.output.as_deref())?;
    let mode = arguments.coding.mode.unwrap_or(ModeChoice::Process);
    let picture = match mode {
        ModeChoice::Process | ModeChoice::Direct => {
            // What is refused of modes is refused of this picture, too.
            options(Emit::Ir, mode, &arguments.coding, false)?;
            let (source, mut disk) = open_program(&arguments.file, &arguments.coding.fast_paths)?;
            let checked = quaject_esp::check(source, &mut disk);
            terminal.diagnostics(&checked.sources, &checked.diagnostics);
            let Some(program) = checked.program else { return Ok(Status::Failed) };
            quaject_esp::graph(&program)
        }
        ModeChoice::Fastpath | ModeChoice::Automata | ModeChoice::Auto => states(terminal, mode, &arguments)?,
    };
    deliver(arguments.output.as_deref(), &picture)?;
    Ok(Status::Done)
}

/// What processes have become.
fn states(terminal: &Terminal, mode: ModeChoice, arguments: &Graph) -> Result<String, CliError> {
    let compilation = Options { optimiser: Optimiser::On, ..options(Emit::Ir, mode, &arguments.coding, false)? };
    let (_, outputs) = super::compile(terminal, &arguments.file, &arguments.coding.fast_paths, &compilation)?;
    quaject_esp::states(&outputs.ir, &outputs.extractions).map_err(|reason| {
        CliError::from(match reason {
            NoPicture::Nothing => HostError::new("nothing was made of the processes that could be drawn")
                .help("`qj build --emit c --report` with this mode says why"),
            NoPicture::TooLarge { states, max } => HostError::new(format!("more than {max} states, at least {states}"))
                .help("`--growth` makes smaller ones; `qj build --emit c --report` counts them"),
        })
    })
}
