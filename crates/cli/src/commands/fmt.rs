//! `qj fmt`: formats programs.

use super::ProgramFiles;
use crate::arguments::Fmt;
use crate::project::Project;
use crate::terminal::{CliError, Status, Terminal, print};
use quaject_esp_run::files::{read_bytes, write_file};
use quaject_esp_run::{HostCode, HostError};
use quaject_esp_syntax::check::decode;
use quaject_esp_syntax::format::format;
use quaject_esp_syntax::parser::{parse, parse_fast_paths};
use quaject_esp_syntax::span::SourceMap;
use std::io::{self, IsTerminal};
use std::path::{Component, Path, PathBuf};

pub(crate) fn fmt(terminal: &Terminal, arguments: Fmt) -> Result<Status, CliError> {
    let mut status = Status::Done;
    for text in texts(terminal, &arguments)? {
        let formatted = match &text {
            Text::File(path) => format_file(terminal, path, arguments.check),
            Text::Input(bytes) => format_text(terminal, Path::new("-"), bytes.clone(), arguments.check),
        };
        match formatted {
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

/// A text to format.
enum Text {
    File(PathBuf),
    /// Standard input, which has been read.
    Input(Vec<u8>),
}

/// The texts that the command line names; without any, standard input or the files of the project. An editor writes the
/// text to standard input, whatever folder it is in; a shell leaves the terminal there, a build server nothing.
fn texts(terminal: &Terminal, arguments: &Fmt) -> Result<Vec<Text>, CliError> {
    if !arguments.files.is_empty() {
        return Ok(arguments.files.iter().cloned().map(Text::File).collect());
    }
    let project = Project::find(terminal, &arguments.project, &arguments.files)?;
    let Some(folder) = project.folder() else { return Ok(vec![Text::File(PathBuf::from("-"))]) };
    if arguments.project.project.is_none() && !io::stdin().is_terminal() {
        let input = read_bytes(Path::new("-"))?;
        if !input.is_empty() {
            return Ok(vec![Text::Input(input)]);
        }
    }
    let mut files: Vec<PathBuf> = Vec::new();
    for root in &project.roots {
        let program = ProgramFiles { root, fast_paths: &[], import_folders: &project.import_folders };
        let (source, mut disk) = program.open()?;
        // Errors are reported file by file; here the imports matter.
        quaject_esp::check(source, &mut disk);
        // Other projects format what is outside of the folder.
        let is_own = |path: &PathBuf| path == root || (path.starts_with(folder) && is_below(path, folder));
        files.extend(disk.paths_read().into_iter().filter(is_own));
    }
    files.sort();
    files.dedup();
    Ok(files.into_iter().map(Text::File).collect())
}

/// Whether a path that starts with a folder stays in it.
fn is_below(path: &Path, folder: &Path) -> bool {
    path.strip_prefix(folder).is_ok_and(|rest| rest.components().all(|part| matches!(part, Component::Normal(_))))
}

fn format_file(terminal: &Terminal, path: &Path, check: bool) -> Result<Status, CliError> {
    format_text(terminal, path, read_bytes(path)?, check)
}

fn format_text(terminal: &Terminal, path: &Path, bytes: Vec<u8>, check: bool) -> Result<Status, CliError> {
    let standard = path.as_os_str() == "-";
    let name = if standard { "<stdin>".to_string() } else { path.display().to_string() };
    let mut sources = SourceMap::default();
    let (id, undecodable) = decode(&mut sources, name.clone(), bytes);
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
