//! `qj graph`: draws a program, or the result of fusion and of the formation of fast paths.

use super::run::options;
use super::{CompiledProgram, ProgramFiles};
use crate::arguments::{Graph, ModeChoice};
use crate::terminal::{CliError, Status, Terminal, write_output};
use quaject_esp::{DrawError, Emit, Optimiser, Options};
use quaject_esp_run::{HostCode, HostError};

pub(crate) fn graph(terminal: &Terminal, arguments: Graph) -> Result<Status, CliError> {
    super::reject_aliased_files(&arguments.file, arguments.output.as_deref())?;
    let mode = arguments.coding.mode.unwrap_or(ModeChoice::Process);
    let picture = match mode {
        ModeChoice::Process | ModeChoice::Direct => {
            // Rejects options that contradict the mode.
            options(Emit::Ir, mode, &arguments.coding, false)?;
            let (source, mut disk) = files(&arguments).open()?;
            let checked = quaject_esp::check(source, &mut disk);
            terminal.print_diagnostics(&checked.sources, &checked.diagnostics);
            let Some(program) = checked.program else { return Ok(Status::Failed) };
            quaject_esp::graph(&program)
        }
        ModeChoice::Fastpath | ModeChoice::Automata | ModeChoice::Auto => states(terminal, mode, &arguments)?,
    };
    write_output(arguments.output.as_deref(), &picture)?;
    Ok(Status::Done)
}

fn files(arguments: &Graph) -> ProgramFiles<'_> {
    let Graph { file, imports, coding, .. } = arguments;
    ProgramFiles { root: file, fast_paths: &coding.fast_paths, import_folders: &imports.import_folders }
}

/// A picture of fused processes and fast paths.
fn states(terminal: &Terminal, mode: ModeChoice, arguments: &Graph) -> Result<String, CliError> {
    let compilation = Options { optimiser: Optimiser::On, ..options(Emit::Ir, mode, &arguments.coding, false)? };
    let CompiledProgram { outputs, .. } = super::compile(terminal, files(arguments), &compilation)?;
    quaject_esp::states(&outputs.ir, &outputs.path_attempts).map_err(|error| {
        CliError::from(match error {
            DrawError::Empty => {
                HostError::new(HostCode::Empty, "no process is fused, and there is no fast path to draw")
                    .help("`qj build --emit c --report` with this mode lists the reasons")
            }
            DrawError::TooLarge { states, max } => {
                HostError::new(HostCode::Size, format!("more than {max} states, at least {states}"))
                    .help("`--growth` makes smaller ones; `qj build --emit c --report` counts them")
            }
        })
    })
}
