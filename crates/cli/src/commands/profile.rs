//! `qj profile` and `qj fastpath`

use super::run::{settings, tell, tell_notes};
use super::{compile, refused, reject_aliased_files};
use crate::arguments::{self, Fastpath, FastpathCommand, Suggest};
use crate::terminal::{CliError, Status, Terminal, deliver, say};
use quaject_esp::{Emit, NoSuggestion, Options, Profile, Suggestion, suggest};
use quaject_esp_run::HostError;
use quaject_esp_run::disk::open_program;
use quaject_esp_run::files::{is_same_file, read_text, write_file};
use std::path::Path;

pub(crate) fn profile(terminal: &Terminal, arguments: arguments::Profile) -> Result<Status, CliError> {
    reject_aliased_files(&arguments.file, Some(&arguments.output))?;
    let settings = settings(&arguments.options, Some(arguments::Engine::Interp));
    let options = Options { checked: arguments.options.checked, ..Options::new(Emit::Ir) };
    let (sources, outputs) = compile(terminal, &arguments.file, &[], &options)?;
    let (report, run) = quaject_esp_run::profile(&outputs.ir, &settings)?;
    let profile = Profile::new(&outputs.ir, &run);
    write_file(&arguments.output, profile.text().as_bytes())?;
    tell_notes(&report);
    say(&format!("note: {}\n", profile.summary()));
    Ok(tell(terminal, &outputs.ir, &sources, report.outcome))
}

pub(crate) fn fastpath(terminal: &Terminal, arguments: Fastpath) -> Result<Status, CliError> {
    match arguments.command {
        FastpathCommand::Suggest(arguments) => suggest_for(terminal, arguments),
    }
}

fn suggest_for(terminal: &Terminal, arguments: Suggest) -> Result<Status, CliError> {
    reject_aliased_files(&arguments.file, arguments.output.as_deref())?;
    if arguments.output.as_deref().is_some_and(|output| is_same_file(&arguments.profile, output)) {
        let error =
            HostError::usage(format!("`{}` is the profile: it would be overwritten", arguments.profile.display()));
        return Err(CliError::from(error.help("give what is written another name")));
    }
    let (source, mut disk) = open_program(&arguments.file, &[])?;
    let checked = quaject_esp::check(source.clone(), &mut disk);
    terminal.diagnostics(&checked.sources, &checked.diagnostics);
    if checked.program.is_none() {
        return Ok(Status::Failed);
    }
    let text = read_text(&arguments.profile)?;
    let profile = Profile::parse(&text).map_err(|cause| {
        let cause = format!("`{}` is no profile: {cause}", arguments.profile.display());
        CliError::from(HostError::new(cause).help(anew(&arguments)))
    })?;
    match suggest(&source, &mut disk, &profile) {
        Ok(suggestion) => {
            let output = arguments.output.as_deref();
            if arguments.json {
                deliver(output, &format!("{}\n", json(&suggestion)))?;
            } else {
                deliver(output, &suggestion.text)?;
                say(&notes(&suggestion, &arguments.file, output));
            }
            Ok(Status::Done)
        }
        Err(NoSuggestion::Program(reason)) => Err(refused(&arguments.file, reason)),
        Err(reason) => Err(CliError::from(error(&reason, &arguments))),
    }
}

fn anew(arguments: &Suggest) -> String {
    format!("make it with `qj profile {} -o {}`", arguments.file.display(), arguments.profile.display())
}

/// Why there is no suggestion, and what can be done.
fn error(reason: &NoSuggestion, arguments: &Suggest) -> HostError {
    let (file, profile) = (arguments.file.display(), arguments.profile.display());
    match reason {
        NoSuggestion::Program(_) => HostError::new(format!("`{file}` is wrong")),
        NoSuggestion::Silence => HostError::new(format!("nothing was communicated in `{profile}`"))
            .help("profile a run with real input: `--bind CHANNEL=DRIVER:ARG`"),
        NoSuggestion::Foreign(operation) => HostError::new(format!(
            "`{profile}` is of another program: `{file}` has no `{}` in `{}`",
            operation.statement, operation.process
        ))
        .help(anew(arguments)),
        NoSuggestion::Alone(process) => {
            HostError::new(format!("`{process}` does most, and talks to no other process often enough for a fast path"))
                .help("a fast path makes one of several processes; profile a run in which they talk")
        }
        NoSuggestion::Refused(report) => HostError::new(format!(
            "no fast path of the most frequent round can be made\n{report}"
        ))
        .help("write one by hand, of fewer processes: `qj build --report --mode fastpath` tells what hinders it"),
    }
}

fn notes(suggestion: &Suggestion, file: &Path, output: Option<&Path>) -> String {
    let mut text = String::new();
    for process in &suggestion.left_out {
        text += &format!("note: with `{process}` the path could not be made: it is left out\n");
    }
    text += &format!("note: {}\n", suggestion.report.lines().next().unwrap_or_default());
    if let Some(output) = output {
        let (file, output) = (file.display(), output.display());
        text += &format!("help: `qj run {file} --mode fastpath --fast-paths {output}`\n");
    }
    text
}

fn json(suggestion: &Suggestion) -> serde_json::Value {
    serde_json::json!({
        "fastpath": suggestion.text,
        "members": suggestion.members,
        "left_out": suggestion.left_out,
        "report": suggestion.report,
    })
}
