//! `qj fmt`: formats programs.

use crate::arguments::Fmt;
use crate::terminal::{CliError, Status, Terminal, print};
use quaject_esp_run::files::{read_bytes, write_file};
use quaject_esp_run::{HostCode, HostError};
use quaject_esp_syntax::check::decode;
use quaject_esp_syntax::format::format;
use quaject_esp_syntax::parser::{parse, parse_fast_paths};
use quaject_esp_syntax::span::SourceMap;
use std::path::{Path, PathBuf};

pub(crate) fn fmt(terminal: &Terminal, arguments: Fmt) -> Result<Status, CliError> {
    let files = if arguments.files.is_empty() { vec![PathBuf::from("-")] } else { arguments.files };
    let mut status = Status::Done;
    for file in &files {
        match format_file(terminal, file, arguments.check) {
            Ok(Status::Done) => {}
            Ok(other) => status = other,
            Err(CliError { status: failed, error: Some(error) }) => {
                terminal.print(&error);
                status = failed;
            }
            Err(stop) => return Err(stop),
        }
    }
    Ok(status)
}

fn format_file(terminal: &Terminal, path: &Path, check: bool) -> Result<Status, CliError> {
    let standard = path.as_os_str() == "-";
    let name = if standard { "<stdin>".to_string() } else { path.display().to_string() };
    let mut sources = SourceMap::default();
    let (id, undecodable) = decode(&mut sources, name.clone(), read_bytes(path)?);
    let text = &sources.file(id).text;
    let parsed = if path.extension().is_some_and(|extension| extension == "fp") {
        parse_fast_paths(id, text)
    } else {
        parse(id, text)
    };
    if let Some(undecodable) = undecodable {
        terminal.print_diagnostics(&sources, &[undecodable]);
        return Ok(Status::Failed);
    }
    let formatted = match format(&parsed) {
        Ok(formatted) => formatted,
        Err(errors) => {
            terminal.print_diagnostics(&sources, &errors);
            return Ok(Status::Failed);
        }
    };
    match (check, standard) {
        (true, _) if formatted == *text => Ok(Status::Done),
        (true, _) => {
            let error = HostError::new(HostCode::Format, format!("`{name}` is not formatted"));
            Err(CliError::from(error.help(format!("run `qj fmt {}`", if standard { "-" } else { &name }))))
        }
        (false, true) => print(formatted.as_bytes()).map(|()| Status::Done),
        (false, false) if formatted == *text => Ok(Status::Done),
        (false, false) => write_file(path, formatted.as_bytes()).map(|()| Status::Done).map_err(CliError::from),
    }
}
