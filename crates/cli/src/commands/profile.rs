//! `qj profile` and `qj fastpath`

use super::run::{settings, tell, tell_notes};
use super::{compile, keep_apart, refused};
use crate::arguments::{self, Fastpath, FastpathCommand, Suggest};
use crate::terminal::{Status, Stop, Terminal, deliver, say};
use quaject_esp::{Emit, NoSuggestion, Options, Profile, Suggestion, suggest};
use quaject_esp_run::Trouble;
use quaject_esp_run::disk::open_program;
use quaject_esp_run::files::{are_one, read_text, write_file};
use std::path::Path;

pub(crate) fn profile(terminal: &Terminal, arguments: arguments::Profile) -> Result<Status, Stop> {
    keep_apart(&arguments.file, Some(&arguments.output))?;
    let settings = settings(&arguments.options, Some(arguments::Engine::Interp));
    let options = Options { checked: arguments.options.checked, ..Options::new(Emit::Ir) };
    let (sources, outputs) = compile(terminal, &arguments.file, &[], &options)?;
    let (ended, run) = quaject_esp_run::profile(&outputs.ir, &settings).map_err(Stop::at)?;
    let profile = Profile::new(&outputs.ir, &run);
    write_file(&arguments.output, profile.text().as_bytes()).map_err(Stop::at)?;
    tell_notes(&ended);
    say(&format!("note: {}\n", profile.summary()));
    Ok(tell(terminal, &outputs.ir, &sources, ended.ending))
}

pub(crate) fn fastpath(terminal: &Terminal, arguments: Fastpath) -> Result<Status, Stop> {
    match arguments.command {
        FastpathCommand::Suggest(arguments) => suggest_for(terminal, arguments),
    }
}

fn suggest_for(terminal: &Terminal, arguments: Suggest) -> Result<Status, Stop> {
    keep_apart(&arguments.file, arguments.output.as_deref())?;
    if arguments.output.as_deref().is_some_and(|output| are_one(&arguments.profile, output)) {
        let trouble =
            Trouble::usage(format!("`{}` is the profile: it would be overwritten", arguments.profile.display()));
        return Err(Stop::at(trouble.help("give what is written another name")));
    }
    let (source, mut disk) = open_program(&arguments.file, &[]).map_err(Stop::at)?;
    let checked = quaject_esp::check(source.clone(), &mut disk);
    terminal.diagnostics(&checked.sources, &checked.diagnostics);
    if checked.program.is_none() {
        return Ok(Status::Wrong);
    }
    let text = read_text(&arguments.profile).map_err(Stop::at)?;
    let profile = Profile::parse(&text).map_err(|cause| {
        let cause = format!("`{}` is no profile: {cause}", arguments.profile.display());
        Stop::at(Trouble::new(cause).help(anew(&arguments)))
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
        Err(reason) => Err(Stop::at(trouble(&reason, &arguments))),
    }
}

fn anew(arguments: &Suggest) -> String {
    format!("make it with `qj profile {} -o {}`", arguments.file.display(), arguments.profile.display())
}

/// Why there is no suggestion, and what can be done.
fn trouble(reason: &NoSuggestion, arguments: &Suggest) -> Trouble {
    let (file, profile) = (arguments.file.display(), arguments.profile.display());
    match reason {
        NoSuggestion::Program(_) => Trouble::new(format!("`{file}` is wrong")),
        NoSuggestion::Silence => Trouble::new(format!("nothing was communicated in `{profile}`"))
            .help("profile a run with real input: `--bind CHANNEL=DRIVER:ARG`"),
        NoSuggestion::Foreign(operation) => Trouble::new(format!(
            "`{profile}` is of another program: `{file}` has no `{}` in `{}`",
            operation.statement, operation.process
        ))
        .help(anew(arguments)),
        NoSuggestion::Alone(process) => {
            Trouble::new(format!("`{process}` does most, and talks to no other process often enough for a fast path"))
                .help("a fast path makes one of several processes; profile a run in which they talk")
        }
        NoSuggestion::Refused(report) => Trouble::new(format!(
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
