//! The commands of `qj`, one file each.

pub(crate) mod asm;
pub(crate) mod build;
pub(crate) mod check;
pub(crate) mod documents;
pub(crate) mod explain;
pub(crate) mod fmt;
pub(crate) mod graph;
pub(crate) mod init;
pub(crate) mod promela;
pub(crate) mod replay;
pub(crate) mod run;
pub(crate) mod test;
pub(crate) mod verify;

use crate::terminal::{Status, Stop, Terminal};
use quaject_esp::{Compiled, Options, Outputs};
use quaject_esp_run::disk::open_program;
use quaject_esp_syntax::span::SourceMap;
use std::path::Path;

/// Compiles a program and says what there is to say; stops if it is wrong.
fn compile(terminal: &Terminal, file: &Path, options: &Options) -> Result<(SourceMap, Outputs), Stop> {
    let (source, mut disk) = open_program(file, &[]).map_err(Stop::wrong)?;
    let Compiled { sources, diagnostics, outputs } = quaject_esp::compile(source, &mut disk, options);
    terminal.diagnostics(&sources, &diagnostics);
    match outputs {
        Some(outputs) => Ok((sources, outputs)),
        None => Err(Stop::silent(Status::Wrong)),
    }
}
