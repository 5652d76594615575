//! `qj profile` and `qj fastpath`: record a profile, and suggest a fast path from it.

use super::run::{print_notes, report_outcome, settings};
use super::{CompiledProgram, ProgramFiles, compile, compile_error, reject_aliased_files};
use crate::arguments::{self, Fastpath, FastpathCommand, ImportFolders, Suggest};
use crate::terminal::{CliError, Status, Terminal, write_output};
use quaject_diagnostic::{Message, Severity};
use quaject_esp::{Emit, Options, Profile, SuggestError, Suggestion, suggest};
use quaject_esp_run::files::{is_same_file, read_text, write_file};
use quaject_esp_run::{HostCode, HostError};
use std::path::Path;

pub(crate) fn profile(terminal: &Terminal, arguments: arguments::Profile) -> Result<Status, CliError> {
    reject_aliased_files(&arguments.file, Some(&arguments.output))?;
    let settings = settings(&arguments.options, Some(arguments::Engine::Interp));
    let options = Options { checked: arguments.options.checked, ..Options::new(Emit::Ir) };
    let CompiledProgram { sources, outputs, .. } =
        compile(terminal, files(&arguments.file, &arguments.imports), &options)?;
    let (report, run) = quaject_esp_run::profile(&outputs.ir, &settings)?;
    let profile = Profile::new(&outputs.ir, &run);
    write_file(&arguments.output, profile.text().as_bytes())?;
    print_notes(terminal, &report);
    terminal.print_note(profile.summary());
    Ok(report_outcome(terminal, &outputs.ir, &sources, report.outcome))
}

fn files<'a>(file: &'a Path, imports: &'a ImportFolders) -> ProgramFiles<'a> {
    ProgramFiles { root: file, fast_paths: &[], import_folders: &imports.import_folders }
}

pub(crate) fn fastpath(terminal: &Terminal, arguments: Fastpath) -> Result<Status, CliError> {
    match arguments.command {
        FastpathCommand::Suggest(arguments) => suggest_for(terminal, arguments),
    }
}

fn suggest_for(terminal: &Terminal, arguments: Suggest) -> Result<Status, CliError> {
    reject_aliased_files(&arguments.file, arguments.output.as_deref())?;
    if arguments.output.as_deref().is_some_and(|output| is_same_file(&arguments.profile, output)) {
        let error = HostError::usage(
            HostCode::Overwrite,
            format!("`{}` is the profile: it would be overwritten", arguments.profile.display()),
        );
        return Err(CliError::from(error.help("give the output another name")));
    }
    let (source, mut disk) = files(&arguments.file, &arguments.imports).open()?;
    let checked = quaject_esp::check(source.clone(), &mut disk);
    terminal.print_diagnostics(&checked.sources, &checked.diagnostics);
    if checked.program.is_none() {
        return Ok(Status::Failed);
    }
    let text = read_text(&arguments.profile)?;
    let profile = Profile::parse(&text).map_err(|cause| {
        let cause = format!("`{}` is not a profile: {cause}", arguments.profile.display());
        CliError::from(HostError::new(HostCode::Content, cause).help(profile_again_help(&arguments)))
    })?;
    match suggest(&source, &mut disk, &profile) {
        Ok(suggestion) => {
            let output = arguments.output.as_deref();
            if arguments.json {
                write_output(output, &format!("{}\n", json(&suggestion)))?;
            } else {
                write_output(output, &suggestion.text)?;
                print_suggestion_notes(terminal, &suggestion, &arguments.file, output);
            }
            Ok(Status::Done)
        }
        Err(SuggestError::Compile(reason)) => Err(compile_error(&arguments.file, reason)),
        Err(reason) => Err(CliError::from(suggestion_error(&reason, &arguments))),
    }
}

fn profile_again_help(arguments: &Suggest) -> String {
    format!("make it with `qj profile {} -o {}`", arguments.file.display(), arguments.profile.display())
}

/// The error of a missing suggestion, with its help.
fn suggestion_error(reason: &SuggestError, arguments: &Suggest) -> HostError {
    let (file, profile) = (arguments.file.display(), arguments.profile.display());
    match reason {
        SuggestError::Compile(_) => HostError::new(HostCode::Content, format!("`{file}` has errors")),
        SuggestError::NoCommunication => {
            HostError::new(HostCode::Empty, format!("nothing was communicated in `{profile}`"))
                .help("profile a run with real input: `--bind CHANNEL=DRIVER:ARG`")
        }
        SuggestError::UnknownOperation(operation) => HostError::new(
            HostCode::Content,
            format!(
                "`{profile}` is of another program: `{file}` has no `{}` in `{}`",
                operation.statement, operation.process
            ),
        )
        .help(profile_again_help(arguments)),
        SuggestError::NoPartner(process) => HostError::new(
            HostCode::Empty,
            format!("`{process}` communicates with no other process often enough for a fast path"),
        )
        .help("a fast path connects several processes; profile a run in which they communicate"),
        SuggestError::PathRefused(report) => HostError::new(
            HostCode::Empty,
            format!("no fast path for the most frequent iteration can be formed\n{report}"),
        )
        .help("write one by hand, with fewer processes: `qj build --report --mode fastpath` lists the reasons"),
    }
}

/// Prints which processes the suggestion excludes, and how to run with it.
fn print_suggestion_notes(terminal: &Terminal, suggestion: &Suggestion, file: &Path, output: Option<&Path>) {
    for process in &suggestion.excluded {
        terminal.print_note(format!("`{process}` is excluded: with it no path could be formed"));
    }
    let path = Message::new(Severity::Note, suggestion.report.lines().next().unwrap_or_default());
    terminal.print(&match output {
        Some(output) => {
            path.help(format!("`qj run {} --mode fastpath --fast-paths {}`", file.display(), output.display()))
        }
        None => path,
    });
}

fn json(suggestion: &Suggestion) -> serde_json::Value {
    serde_json::json!({
        "fastpath": suggestion.text,
        "members": suggestion.members,
        "excluded": suggestion.excluded,
        "report": suggestion.report,
        // The earlier name of `excluded`.
        "left_out": suggestion.excluded,
    })
}
